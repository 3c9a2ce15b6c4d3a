#!/usr/bin/env python3
"""hotenv keeps secrets in one process's memory for a while and hands them to what you run.

    printf 'API_KEY=abc123\\n' | python3 hotenv.py serve --background
    python3 hotenv.py run -- printenv API_KEY

One file, standard library only, Python 3.8 and later, Linux and macOS.
"""
# It protects from secrets in files, argv and logs, and in memory for longer than needed; not from root, swap, a child
# that prints what it got, nor a process of the same user that asks the server itself: who can connect is trusted.
#
# Invariants, each with a test that fails without it:
#   1. By our doing, no value is on an argv, in a log, error, traceback or file, or in /proc.
#   2. Nothing is created before the whole input has parsed; a refused start leaves nothing.
#   3. Expire first, then serve, on a clock that counts suspend. Then no value leaves any more.
#   4. The snapshot is immutable: its response is encoded once, a request costs a send.
#   5. No client can hold up another, the timers or the signals.
#   6. Only a successful request, handed to the kernel in full, resets the idle timer; log and time stamp come first.
#   7. We remove only what is ours; with --force also an old socket that lies where ours lie.
#   8. `run` is exec: same process, terminal, signals and status, no word of ours on its output.
#   9. A marker may lie, and so may a socket: both count only if they are ours or root's.
#  10. What is not ours is escaped before a terminal or a log sees it.
#  11. A command imports what it needs alone; an import changes nothing; no check is an assert.
#  12. One copy of the values lives in the server: the encoded response.
# The rooms, each below a banner, stand in the order in which data flows: each calls only rooms above it.
# A script is compiled at each start: with over 32,700 tokens that takes a millisecond more; a docstring is compiled
# too, so what is private has comments in their place.

from __future__ import annotations

import sys

# The script's directory, or under -m the current one, stands first: no json.py there is to be taken for Python's.
if not (_ISOLATED := sys.flags.isolated or getattr(sys.flags, "safe_path", 0)) and __name__ == "__main__":
    del sys.path[0]

import errno
import os
import time
from os import O_APPEND, O_CREAT, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDWR, O_TRUNC, O_WRONLY
from os import close, dup2, environ, fork, fsdecode, fsencode, fstat, getcwd, geteuid, getpgrp, getpid, isatty, kill
from os import listdir, lstat, pathsep, pipe, read, readlink, rename, set_blocking, setpgid, umask, unlink, urandom
from os import utime, waitpid, write
from os.path import abspath, basename, dirname, exists, isdir, isfile, join, lexists, realpath, samestat
from stat import S_ISLNK, S_ISREG, S_ISSOCK
from sys import executable
from time import monotonic, sleep

# For `run`, the C halves of these: with the public ones it costs 8 ms over the interpreter, when installed, not 2.
import _signal  # type: ignore[import-not-found]
import _socket
from _signal import SIGABRT, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGKILL, SIGPIPE, SIGQUIT
from _signal import SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH, SIGXFSZ
from _signal import SIG_BLOCK, SIG_DFL, SIG_IGN, SIG_SETMASK, SIG_UNBLOCK, pthread_sigmask
# No number in JSON is ever wanted, so none is computed; `int` refuses NaN.
_JSON_RULES: Fields = {"parse_int": len, "parse_float": len, "parse_constant": int, "strict": True,
                        "object_hook": None, "object_pairs_hook": None}
try:
    from _json import encode_basestring_ascii as _json_quoted, make_scanner
    _scan_json: Any = make_scanner(type("Rules", (), _JSON_RULES))  # type: ignore[arg-type]
except ImportError:  # an interpreter that is built otherwise
    from json import JSONDecoder
    from json.encoder import encode_basestring_ascii as _json_quoted
    _scan_json = JSONDecoder(**_JSON_RULES).raw_decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import threading
    from argparse import ArgumentParser, Namespace
    from mmap import mmap
    from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Mapping, NoReturn, Sequence

    Env = Mapping[str, str]
    Fields = Dict[str, Any]
    Strings = Iterable[str]
    Values = Dict[str, str]
    Waits = Generator[Any, None, None]
    Words = List[str]

__version__ = "1.1.0"

# ==== limits and errors ===============================================================================================
# The limits of all rooms up to the client's, each with its reason (later rooms begin with their own); exit codes, what
# ends a command, small helpers; the table of options, and how it is read. All that is long, in lines that dotenv,
# environment, session files and kernel guards leave over.

MAX_INPUT = MAX_EXPANSION = 64 << 20  # bytes of dotenv text, characters of references: far above any real file
MAX_NESTING = 64  # references within defaults: deeper is a mistake, and recursion must end
MAX_REQUEST = 256 << 10  # bytes: JSON of any shape that fits costs the others less than 0.1 s
MAX_UNFINISHED = 16 << 20  # bytes of all incomplete requests together
MAX_RESPONSE = 256 << 20  # bytes of an answer that a client reads
MAX_MARKER = 8 << 10  # bytes: one path
MAX_LOG_BACKLOG = 1 << 20  # bytes of log lines that wait for a stderr that nobody reads
MAX_DURATION = 366 * 86400.0  # seconds: a session is short-lived
PIPE_BUF = 512 if sys.platform == "darwin" else 4096  # bytes that go into a pipe in one piece
DESCRIPTORS = 4096  # soft limit that the server asks for: a connection is one descriptor
BATCH = 64  # connections accepted in one go, before the timers are looked at again
BACKLOG = 4096  # pending connections; the system lowers it to its own limit
IDLE_TIMEOUT = 300.0  # seconds: the specification's default
REQUEST_TIME = 5.0  # seconds for a request to be complete: they are sent at once
ANSWER_TIME = 30.0  # seconds without progress before a client that does not read is dropped
EXCHANGE_TIME = 10.0  # seconds that a client gives connecting and exchange together
LOCK_TIME = LAST_WORDS = 1.0  # seconds to wait for a lock; at a session's end, for whoever reads its log
TICK = 10.0  # seconds: the selector's own clock stands still during suspend, ours does not
STAMP_STEP = 0.01  # seconds by which the time stamp may lag: at 30,000 requests a second it matters
SHORT_TICK = 0.1  # seconds until the next try, where nothing would wake us
GUARD_SIGN = 1117  # a hard limit of RLIMIT_MSGQUEUE that is this modulo 4096 marks the guarded
OVERFLOW_UID = 65534  # what a user namespace that maps only some ids shows for every stranger
SUN_PATH = 104  # bytes of a socket's address, with its NUL: macOS has these, Linux four more

EXIT_USAGE, EXIT_NO_SESSION, EXIT_UNREACHABLE = 2, 3, 4
EXIT_INPUT, EXIT_SYSTEM, EXIT_ARTIFACT, EXIT_REFUSED = 7, 8, 9, 10


class HotenvError(Exception):
    """What ends a command: `code` is the exit status, `str()` the message, less "hotenv: "."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _NotBelieved(HotenvError):
    """What was found is somebody else's: for `run --optional` that is no session."""


class _Afterwards(BaseException):
    """A function and its arguments, for when all is cleaned up and nothing of ours is on the stack."""


def _die_of(signum: int) -> NoReturn:
    _tried(_signal.signal, signum, SIG_DFL)  # not SIGKILL, nor one that the C library keeps for itself
    pthread_sigmask(SIG_UNBLOCK, {signum} & _signal.valid_signals())
    kill(getpid(), signum)
    os._exit(128 + signum)  # the first process of a container cannot be killed so


def _as_it_ended(status: int) -> int:
    # The exit status in a child's wait status; where a signal ended it, that ends us.
    if os.WIFSIGNALED(status):
        _die_of(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _encoded(text: str) -> bytes:
    # The bytes that text of the environment stands for, whatever the locale.
    return text.encode("utf-8", "surrogateescape")


def _decoded(raw: bytes) -> str:
    # Bytes of the environment as text, from which _encoded makes them again.
    return raw.decode("utf-8", "surrogateescape")


def _shown(text: str) -> str:
    # `text` as a terminal or a log may see it: what is not printable as its Python escape.
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else ascii(c)[1:-1] for c in text])


def _duration(seconds: float) -> str:
    # 5m, 1h30m, 0.5s: as `serve --timeout` reads it.
    minutes, seconds = divmod(seconds, 60)
    counts = zip((minutes // 1440, minutes // 60 % 24, minutes % 60, seconds), "dhms")
    return "".join([f"{count:.10g}{unit}" for count, unit in counts if count]) or "0s"


def _system_error(error: OSError, doing: str) -> HotenvError:
    return HotenvError(EXIT_SYSTEM, f"{doing}: {error.strerror or type(error).__name__}")


def _usage(message: str) -> HotenvError:
    return HotenvError(EXIT_USAGE, message)


def _tried(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # What the call returns; None where the system or we refuse, and nothing need be done about it.
    try:
        return call(*args, **kwargs)
    except (OSError, HotenvError):
        return None


def _say(message: str) -> None:
    # A line on stderr. That it is closed, broken or full is to change no exit status.
    if sys.stderr:  # else it was closed, and another file may have its number by now
        _tried(write, 2, f"hotenv: {message}\n".encode("utf-8", "backslashreplace"))


def _write(descriptor: int, text: str, what: str = "the output") -> int:
    # All of it; a reader that has gone is no error, a full disk is one.
    left = memoryview(_encoded(text))
    try:
        while left:
            left = left[write(descriptor, left):]
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise _system_error(error, "cannot write " + what) from None
    return 0


def _content(path: str, size: int = -1) -> bytes:
    # A file's bytes, or the first of them.
    with open(path, "rb") as file:
        return file.read(size)


def _invocation() -> str:
    # How the user called us, as it can be typed again.
    by_path = sys.argv[0].endswith(basename(__file__))
    return "python3 " + _shown(sys.argv[0]).replace(" ", "\\ ") if by_path else "hotenv"


def _parse_duration(text: str) -> float:
    import re
    found = re.fullmatch("(?:Nd)?(?:Nh)?(?:Nm)?(?:Ns)?|N".replace("N", r"(\d+\.?\d*|\.\d+)"), text, re.ASCII)
    counts = found.groups("0") if found else ()
    seconds = sum([float(count) * size for count, size in zip(counts, (86400, 3600, 60, 1, 1))])
    if not 0 < seconds <= MAX_DURATION:
        raise _usage(f"serve: {text[:99]!r} is no duration: 90s, 5m, 1h30m; at most 366d")
    return seconds


def _as_utf8(word: str) -> str:
    # An argument as text that stands for its bytes whatever the locale, as _encoded has it.
    return _decoded(fsencode(word))


def _names(text: str) -> Words:
    return [name.strip() for name in _as_utf8(text).split(",")]


# How each command is called, what it does, and an example.
_COMMANDS = {
    "serve": """serve [options]
Hold dotenv lines from stdin in memory, for `hotenv run`.
  pass show deploy/env | hotenv serve --timeout 15m""",
    "run": """run [options] -- COMMAND [ARG...]
Run a command with the session's environment.
  hotenv run -- ./deploy.sh --to production

Guards (--no-network, ...): hotenv hermetic --help""",
    "dump": """dump [options]
Print the session's environment.
  hotenv dump --only TOKEN --format value | docker login --password-stdin""",
    "status": """status [options]
Whether a session is live, and until when; its timer runs on.
  hotenv status -q || pass show deploy/env | hotenv serve --background""",
    "stop": """stop [options]
End this directory's session; returns when its files are gone.
  hotenv stop""",
    "hermetic": """hermetic [GUARDS] -- TARGET [ARG...]
Run a program without network, subprocesses, writes or native code; more: hotenv help hermetic
  hotenv hermetic --no-network --trace -- pip download requests""",
    "mcp": """mcp [options]
Shells with the session's environment for an agent, masked: MCP on stdio.
  claude mcp add hotenv -- python3 hotenv.py mcp --audit ~/hotenv-audit.log""",
    "shellenv": """shellenv [SHELL]
Print a shell function that runs this file, compiled once.
  eval "$(python3 ~/trusted/hotenv.py shellenv)"      # ~/.profile, ~/.bashrc or ~/.zshrc
  python3 ~/trusted/hotenv.py shellenv fish | source  # ~/.config/fish/config.fish"""}
# The commands that have an option, (those) whose help has no room for it, how it is typed,
# what it takes, or -, and what it does.
_OPTIONS = """\
serve run dump status stop hermetic mcp shellenv | -h --help | - | show this help
run dump status stop mcp | --socket | PATH | ask this; else $HOTENV_SOCKET, else by .hotenv
run dump status stop mcp | --peer-uid | N | also believe a server of this user id
serve | -t --timeout | DUR | idle time until it ends: 1h30m (default: 5m)
serve | --max-age | DUR | end after this time in any case
serve | -f --force | - | replace the session that is here
serve | --background | - | return as soon as requests are accepted
serve | --log | FILE | with --background: append the log (default: none)
serve | --prompt | - | ask for each bare value `?text` on the terminal
serve | -q --quiet | - | log no requests
serve | -v --verbose | - | log all arguments: some hold secrets
run | --only | NAMES | hand over these alone: NAME,PREFIX*,... (no boundary)
run | --isolated | - | start from an allowlist (PATH, HOME, TERM, ...)
run | --pass | NAMES | with --isolated: these of yours too
run | --define | NAME=VALUE | set a variable that is no secret: `ps` shows it
run | --bin | DIR | put a directory before PATH
run | --mask | - | hide the values in output to a file or a pipe
run | --no-mask | NAMES | with --mask: let these be seen
run | --optional | - | without a session, run the command as it is
dump | --only | NAMES | print these alone: NAME,PREFIX*,...
dump | --format | FORMAT | plain (KEY=VALUE), dotenv (to be parsed), sh (for eval), json, nul, names, value (one, raw)
dump | --json | - | as --format json
status | --all | - | all of yours, the dead ones too
status | --json | - | print JSON; times are seconds since 1970, or null
status | -q --quiet | - | print nothing: the exit code says it
stop | --all | - | all of yours; clears what dead ones left
mcp | --policy | FILE | {"allow": [...], "deny": [...]}: first words; advisory
mcp | --audit | FILE | append a JSON line at the start and end of each command
mcp | --remote | NAME=CMD | let the agent open a shell by CMD, such as `ssh -T host`
mcp | --no-mask | NAMES | let these values be seen: NAME,PREFIX*,...
shellenv | shell | SHELL | sh, bash, zsh or fish
hermetic (run) | --no-network | GUARD | no connection, no name looked up
hermetic (run) | --allow-localhost | GUARD | except this machine (127.0.0.0/8, ::1)
hermetic (run) | --allow-domain | D | except D and what ends in .D
hermetic (run) | --no-subprocess | GUARD | no other program, no fork
hermetic (run) | --fs-readonly | PATH | write nothing; read only below the current directory, or PATH \
(--fs-readonly=/ reads anything)
hermetic (run) | --fs-write | PATH | except below PATH
hermetic (run) | --strict-imports | GUARD | no native code but Python's own; no ctypes, cffi
hermetic (run) | --trace | GUARD | a line on stderr for each blocked action
hermetic (run) | --profile | NAME | %(choices)s
"""
_PROFILES = {"net-hermetic": "no-network allow-localhost", "exec-deny": "no-subprocess", "fs-readonly": "fs-readonly=.",
             "strict-imports": "strict-imports", "all": "no-network no-subprocess fs-readonly=. strict-imports"}
_REPEATED = {"type": _as_utf8, "action": "append", "default": []}
_GUARD = {"action": "append", "dest": "words", "default": []}
_TAKEN: dict[str, Fields] = {  # how it is read (NAMES with commas, repeated, or both); what is not here, as it is
    "-": {"action": "store_true"}, "DUR": {"type": _parse_duration}, "N": {"type": int},
    "SHELL": {"nargs": "?", "choices": "sh bash zsh fish".split()},
    "FORMAT": {"choices": "plain dotenv sh json nul names value".split()}, "DIR": _REPEATED, "NAME=VALUE": _REPEATED,
    "NAME=CMD": _REPEATED, "NAMES": {"type": _names, "action": "extend", "default": []},
    "NAME": {**_REPEATED, "choices": _PROFILES}, "D": _GUARD,
    "GUARD": {**_GUARD, "action": "append_const", "const": ""},
    "--fs-write": _GUARD, "--fs-readonly": {**_GUARD, "nargs": "?", "const": "."}}


def _parser(command: str, where: str = "") -> ArgumentParser:
    # A parser of a command's options; HotenvError for wrong words, which stand where `where` says.
    import argparse

    def error(message: str) -> NoReturn:
        import difflib
        unknown = message.partition("unrecognized arguments: ")[2]
        hint = f"see: {_invocation()} {command} --help"
        if command == "serve":
            hint += f"; its input comes from stdin: {_invocation()} serve < secrets.env"
        for near in difflib.get_close_matches(unknown, parser._option_string_actions, 1):
            hint = "did you mean " + near + "?"
        raise _usage(f"{where or command}: {_shown(message)}; {hint}")

    usage, summary, example = _COMMANDS[command].split("\n", 2)
    parser = argparse.ArgumentParser(
        None, "hotenv " + usage, summary, "example:\n" + example, allow_abbrev=False, add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = error  # type: ignore[method-assign]
    parser.set_defaults(timeout=IDLE_TIMEOUT, max_age=MAX_DURATION, format="plain", shell="sh")
    # For each option of the parser's own argparse would look up how wide the terminal is.
    options = parser.add_argument_group("options")
    either = options.add_mutually_exclusive_group()  # how, and how much, is told: at most one of these
    for line in _OPTIONS.splitlines()[where != "":]:  # --help, the first, is for the command line alone
        commands, typed, takes, told = line.split(" | ")
        group = either if typed in ("-q --quiet", "-v --verbose", "--json", "--format") else options
        if command in commands:
            action = group.add_argument(*typed.split(), help=told, **_TAKEN.get(typed, _TAKEN.get(takes, {})))
            action.metavar = takes
            if action.dest == "words":  # a guard: all of them become words, as they are typed
                action.const, action.type = action.const or typed[2:], f"{typed[2:]}={{}}".format
            if "(" + command + ")" in commands:
                action.help = argparse.SUPPRESS
    return parser


# ==== dotenv ==========================================================================================================
# Text into entries, or one error with its line and column. Knows nothing of files or sockets.
#
# An entry is (name, value): a str is a literal, a tuple a template, which has references or, bare, begins with `?`:
# the raw value, its quote, a double one or "" for a bare one, the text that it stands in, its position there. Errors
# show a position and, once `key =` is read, the key: any other text may be the tail of a secret.

# One statement. Groups: 1 export, 2 the quote around a name, 3 the name, 4 the quote that opens a value and ends the
# match, 5 a bare value. A mistake is matched as nothing. It is linear: no two neighbouring repeats share a character.
_STATEMENT = r"""(?x) \s* (?: \Z | (export[^\S\n]+)? (?:
    \#.*\n
  | (?(1)|(?!export[^\S\n])) ('?) ([A-Za-z0-9_.-]+) \2 [^\S\n]* (?:
      = (?: [^\S\n]*(["']) | (.*)\n )
    | (?:\#.*)?\n ) ) ) | """
# What counts in a value, by its quote. Groups: 1 name, 2 colon, 3 operator. Without a name, `${` is a mistake.
_BARE = r"(?x) \\\$\{ | \} | \$\{ (?: ([A-Za-z0-9_.]+) (?: (:?)([-+?]) | (?=\}) ) )?"
_SIGNS = {"": _BARE, "'": r"\\[\\']", '"': _BARE + r"""| \\[\\'"abfnrtv]"""}
# What they stand for, by their last character, where they are no reference.
_LITERAL = {**dict(zip("}\\'\"abfnrtv", "}\\'\"\a\b\f\n\r\t\v")), "{": "${"}


def _expanded(name: str, template: Any, env: Env, host: Env, room: list[int], used: bool) -> str:
    # What a template stands for. Of what is not `used`, a default where there is a value, only the grammar counts.
    import re
    raw, quote, text, start = template
    pieces, done = [], 0
    around: Any = []  # the open references: is it used around it, its position
    for token in re.compile(_SIGNS[quote]).finditer(raw):
        sign, at = token[0], token.start()
        pieces.append(raw[done:at] * used)
        done = token.end()
        if sign == "}" and around:
            used = around.pop()[0]
        elif not sign.startswith("${"):
            pieces.append(_LITERAL[sign[-1]] * used)
        elif not token[1] or len(around) == MAX_NESTING:
            reason = "bad reference: write ${NAME}, ${NAME:-default}, or \\${ for a literal ${"
            break
        else:
            around.append((used, at))
            if used:
                key, colon, operator = token.groups()
                value: Any = env.get(key, host.get(key))
                missing = value is None or not value and colon == ":"
                if missing and operator == "?":
                    reason = "what is referred to is required, and not set or empty"
                    break
                if missing or operator == "+":
                    value = ""
                used = operator == ("-" if missing else "+")  # then the word behind it counts
                pieces.append(value)
                room[0] -= len(value)  # what references may still make
                if room[0] < 0:
                    reason = f"references expand to too large a text, over {MAX_EXPANSION >> 20} MiB"
                    break
    else:
        if not around:
            return "".join(pieces) + raw[done:]
        at, reason = around[0][1], "bad reference: its } is missing; write \\${ for a literal ${"
    raise _dotenv_error(text, start + at, reason + ", in the value of " + name)


def _parse_entries(source: str | bytes) -> Iterator[tuple[str, Any]]:
    # The (name, value) of each statement; HotenvError 7 at the first that is none.
    import re
    text = _decoded(source) if isinstance(source, bytes) else source
    text = text[text.startswith("\ufeff"):].replace("\r\n", "\n").replace("\r", "\n")  # less a BOM
    if (not text.isascii() or "\0" in text) and (wrong := re.search("[\0\ud800-\udfff]", text)):
        raise _dotenv_error(text, wrong.start(), "NUL or invalid UTF-8, which no environment holds: save it as UTF-8")
    text += "\n"  # so that each statement ends with one
    statement = re.compile(_STATEMENT).match
    known = set()  # for `export NAME`
    pos = 0
    while pos < len(text):
        match: Any = statement(text, pos)
        start, pos = pos, match.end()
        name, quote, value = match.group(3, 4, 5)
        if quote:
            begin, close = pos, text.find(quote, pos)
            while close > 0 and (close - begin - len(text[begin:close].rstrip("\\"))) % 2:  # it is escaped
                begin, close = close + 1, text.find(quote, close + 1)
            if close < 0:
                reason = "unterminated quote: the value of " + name + " starts here and never ends"
                raise _dotenv_error(text, pos - 1, reason)
            opened, value, pos = pos - 1, text[pos:close], text.index("\n", close) + 1
            rest = text[close + 1:pos].lstrip()
            if rest and rest[0] != "#":
                reason = f"text after the closing quote of {name}, which opened at {_place(text, opened)}"
                raise _dotenv_error(text, pos - len(rest), f"{reason}: inside, write \\{quote}")
        elif value is not None:  # to its line's end or a comment
            if "#" in value:
                value = re.split(r"\s#", value, maxsplit=1)[0]
            value = value.strip()
        elif pos == start or name and not (match[1] and name in known):
            raise _mistake(text, start)
        else:
            continue  # a comment, an `export NAME`, the end
        known.add(name)
        if quote != "'" and "${" in value or not quote and value.startswith("?"):
            value = value, quote or "", text, text.index(value, match.end(3))
        elif quote and "\\" in value:
            value = re.compile(_SIGNS[quote]).sub(lambda sign: _LITERAL[sign[0][-1]], value)
        yield name, value


def _place(text: str, pos: int) -> str:
    return "%d:%d" % (text.count("\n", 0, pos) + 1, pos - text.rfind("\n", 0, pos))


def _dotenv_error(text: str, pos: int, reason: str) -> HotenvError:
    return HotenvError(EXIT_INPUT, f"<stdin>:{_place(text, pos)}: {reason}")


def _mistake(text: str, pos: int) -> HotenvError:
    # Why no statement starts here.
    import re
    # It matches anything. Groups: 1 the quote before a name, 2 what makes it a whole one.
    named = r"\s*(?:export[^\S\n]+)?(')?[A-Za-z0-9_.-]*((?<=[A-Za-z0-9_.-])(?(1)'|(?=[\s#]))[^\S\n]*)?"
    found: Any = re.compile(named).match(text, pos)
    at, reason = found.end(), "bad name: it holds letters, digits, `_`, `.` and `-` alone"
    if found.lastindex == 2:
        reason = "no `=` after a name: rest of an unquoted value, or exported too early?"
    elif found[1] and text.find("'", at) < 0:
        at, reason = found.start(1), "unterminated quote around a name"
    return _dotenv_error(text, at, reason)


# ==== environment =====================================================================================================
# Entries into values, and the environment of a child. Knows nothing of where the entries came from.

ESSENTIALS = ("PATH HOME SHELL USER LOGNAME TMPDIR TEMP TMP LANG LC_ALL LC_CTYPE TERM COLORTERM "
              "FORCE_COLOR NO_COLOR CI NODE_OPTIONS").split()


def resolve_env(entries: Env | Iterable[tuple[str, Any]], host: Env,
                prompt: Callable[[str], str] | None = None) -> Values:
    """The one place where an entry becomes a value; a mapping's strings are read as bare ones. `${NAME}` is what an
    earlier entry set, or `host` has; with `prompt`, a bare `?text` is `prompt("text")`, and a `?` `prompt(name)`."""
    if hasattr(entries, "items"):
        entries = [(name, (text, "", text, 0)) for name, text in entries.items()]
    room = [MAX_EXPANSION]
    passes = [True]
    if prompt:  # a mistake in the last entry comes before the first question
        entries = list(entries)
        passes = [False, True]
    for used in passes:
        env: Values = {}
        for name, value in entries:
            if isinstance(value, tuple):
                raw, quote = value[:2]
                if used and prompt and (quote + raw).startswith("?"):
                    value = prompt(raw[1:].strip() or name)
                else:
                    value = _expanded(name, value, env, host, room, used)
            env[name] = value
    return env


def parse_dotenv(text: str | bytes, host: Env = {}) -> Values:
    """What `serve` would hold for this dotenv text, and `host` around it; HotenvError 7 if it is none."""
    return resolve_env(_parse_entries(text), host)


def build_isolated_env(source: Env, pass_through: Strings = (), define: Env = {},
                       bin_paths: Strings = ()) -> Values:
    """A child's environment from an allowlist: essentials and `pass_through` from `source` where it
    has them, then `define`, then `bin_paths` before PATH. Nothing is checked or cleaned."""
    env = {name: source[name] for name in (*ESSENTIALS, *pass_through) if name in source}
    env.update(define)
    if bin_paths:
        env["PATH"] = pathsep.join([*bin_paths, env.get("PATH", "")]).rstrip(pathsep)
    return env


def _matches(name: str, patterns: Strings) -> bool:
    # Is it one of these names, or does it begin with one that ends in `*`?
    return any([name == each or each.endswith("*") and name.startswith(each[:-1]) for each in patterns])


def _host_environment() -> Values:
    # What we were started with, as _encoded takes it, less the LC_CTYPE that Python itself sets (PEP 538).
    env = {_decoded(name): _decoded(value) for name, value in os.environb.items()}
    if env.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8") and not env.get("LC_ALL"):
        started = _tried(_content, "/proc/self/environ")
        given = not sys.flags.utf8_mode or "PYTHONUTF8" in env  # else the locale was its reason too
        if started is not None:  # there it can be seen
            _, given, value = (b"\0" + started).partition(b"\0LC_CTYPE=")
            env["LC_CTYPE"] = _decoded(value.partition(b"\0")[0])
        if not given:
            del env["LC_CTYPE"]
    return env


# ==== session files ===================================================================================================
# The runtime directory, a session's socket, and its marker `.hotenv`. Knows nothing of what is served.

MARKER = ".hotenv"


def _ours(uid: int) -> bool:
    # Is it our user id? In a user namespace that maps only some, strangers have the overflow uid.
    if uid != geteuid() or uid != OVERFLOW_UID:
        return uid == geteuid()
    known = _tried(_content, "/proc/self/uid_map")
    # All of them, as one range; so it is, too, without a /proc, or user namespaces in this kernel.
    return known is None or b"4294967295" in known


def _runtime_base() -> str:
    # $XDG_RUNTIME_DIR/hotenv; /tmp/hotenv-UID where that is unset, relative or somebody else's.
    base = environ.get("XDG_RUNTIME_DIR", "")
    found = _tried(os.stat, base)  # None: it is still to be made
    if not base.startswith("/") or "\n" in base or found and found.st_uid != geteuid():
        return f"/tmp/hotenv-{geteuid()}"
    return join(base, "hotenv")


def _runtime_dir() -> str:
    # The runtime directory: made if missing, and private whatever the umask.
    base = _runtime_base()
    previous = umask(0o077)
    try:
        if not lexists(base):  # under guards of our own, even an attempt would be refused
            os.makedirs(base, 0o700, exist_ok=True)
        descriptor = os.open(base, O_DIRECTORY | O_NOFOLLOW)
        found = fstat(descriptor)
        if not _ours(found.st_uid):
            raise OSError(errno.EPERM, f"it belongs to uid {found.st_uid}")
        if found.st_mode & 0o777 != 0o700:
            os.fchmod(descriptor, 0o700)
        close(descriptor)
    except OSError as error:
        raise _system_error(error, f"cannot use {_shown(base)} (move it away, or set XDG_RUNTIME_DIR)") from None
    finally:
        umask(previous)
    return base


def _find_marker() -> str:
    # The nearest marker upward, or '', by a relative path: parents that may not be searched end the walk.
    here = _tried(getcwd)
    if here is None:
        raise HotenvError(EXIT_SYSTEM, "cannot tell the current directory (was it removed?)")
    marker = MARKER
    for _ in here.split("/"):
        if lexists(marker):
            return marker
        marker = "../" + marker
    return ""


def _read_marker(path: str, directory: int | None = None) -> str:
    # The socket path in a marker that is ours or root's, as is every link that leads to it.
    shown = _shown(abspath(path))
    target = path
    try:
        for _ in range(40):  # as many links as the kernel follows
            found = lstat(target, dir_fd=directory)
            if found.st_uid and not _ours(found.st_uid):
                raise _NotBelieved(EXIT_SYSTEM, f"{shown} is somebody else's (uid {found.st_uid}): not believed. Or "
                                                "name its socket: --socket PATH --peer-uid N")
            if not S_ISLNK(found.st_mode):
                break
            target = join(dirname(target), readlink(target, dir_fd=directory))
        if not S_ISREG(found.st_mode):  # before it is opened: that does something to a device
            raise HotenvError(EXIT_SYSTEM, shown + " is not a regular file: move it away")
        descriptor = os.open(target, O_NOFOLLOW | O_NONBLOCK, dir_fd=directory)
        same = samestat(fstat(descriptor), found)  # else it was replaced just now
        content = read(descriptor, MAX_MARKER + 1) * same
        close(descriptor)
    except OSError as error:
        if not lexists(path):
            raise HotenvError(EXIT_NO_SESSION, "no session: " + shown + " has just gone") from None
        raise _system_error(error, "cannot read " + shown) from None
    lines = [*filter(bytes.strip, content.split(b"\n"))]
    if len(lines) != 1 or not lines[0].startswith(b"socket=/") or b"\0" in content or len(content) > MAX_MARKER:
        raise HotenvError(EXIT_ARTIFACT, shown + " is damaged (not one socket=<absolute path>): remove it")
    return fsdecode(lines[0][len(b"socket="):])


def _at_address(path: str, action: Callable[[str], None]) -> None:
    # Binds or connects to `path`, by its directory's descriptor if it is too long for an address.
    if len(fsencode(path)) < SUN_PATH:
        return action(path)
    if not isdir("/proc/self/fd"):
        raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is too long (over {SUN_PATH - 1}): shorten XDG_RUNTIME_DIR")
    parent = os.open(dirname(path), O_DIRECTORY)
    try:
        action(f"/proc/self/fd/{parent}/{basename(path)}")
    finally:
        close(parent)


class _SessionFiles:
    # A session's socket, a link beside it to the project directory (for `status --all`), and there the marker.

    def __init__(self) -> None:
        self.id = urandom(4).hex()
        self.project = -1
        self.base = path = _runtime_base()
        self.link = join(self.base, self.id)
        self.path = self.link + ".sock"
        self.found: Any = None  # the socket file, once it is bound
        self.made = []  # directories, for a start that comes to nothing
        while not lexists(path):
            self.made.append(path)
            path = dirname(path)

    def bind(self) -> socket.socket:
        # A listening socket. Its path is new: 32 random bits, and bind replaces nothing.
        import socket

        class Listener(socket.socket):  # whose accept need not look up two enums: a twentieth of a request
            family, type = socket.AddressFamily.AF_UNIX, socket.SocketKind.SOCK_STREAM

        _runtime_dir()
        umask(0o177)  # for good: a server makes its files, and no others
        listener = Listener(socket.AF_UNIX)
        self.project = os.open(".", O_DIRECTORY)  # it may be renamed
        _at_address(self.path, listener.bind)
        self.found = lstat(self.path)
        os.symlink(getcwd(), self.link)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        return listener

    def lock(self) -> None:
        # flock on the project directory; best effort.
        import fcntl
        give_up = monotonic() + LOCK_TIME
        while monotonic() < give_up:
            try:
                return fcntl.flock(self.project, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sleep(0.005)
            except OSError:
                return  # not on this file system

    def publish(self, force: bool) -> None:
        # The marker, whole or not at all: linked, which fails where there is one; with `force` renamed over that,
        # whose socket goes if it is one of ours, but what a link leads to is another directory's, and lives on.
        import fcntl
        import re
        aside = MARKER + "." + self.id
        self.lock()
        try:
            old = force and not os.path.islink(MARKER) and _tried(_read_marker, MARKER)
            with open(aside, "xb") as file:
                file.write(b"socket=%s\n" % fsencode(self.path))
            if not force:
                try:
                    return os.link(aside, MARKER)
                except OSError:  # there is one, or there are no links: the place is taken, then filled
                    open(MARKER, "xb").close()
            rename(aside, MARKER)
            if (old and re.fullmatch(re.escape(self.base) + r"/[0-9a-f]{8}\.sock", old)
                    and _tried(readlink, old[:-5]) in (None, getcwd())):  # else the marker is a copy
                _remove_socket(old)
        except FileExistsError:
            raise
        except OSError as error:
            doing = "cannot write " + MARKER + " here (serve elsewhere, and run here with --socket PATH)"
            raise _system_error(error, doing) from None
        finally:
            _tried(unlink, aside)
            _tried(fcntl.flock, self.project, fcntl.LOCK_UN)

    def stamp(self, end: float) -> None:
        # The socket's mtime is the moment when the session will end: `status` shows it.
        _tried(utime, self.path, (end, end), follow_symlinks=False)

    def bound(self) -> bool:
        # Is the socket still there, and the one that we bound?
        found = _tried(lstat, self.path)
        return bool(found and self.found and samestat(found, self.found))

    def lost(self) -> str:
        # Why the files are ours no more, or ''. A marker that is missing is no reason.
        if not self.bound():
            return "its socket file is gone"
        if _tried(_read_marker, MARKER, self.project) not in (None, self.path):
            return "another session has taken its place"
        return ""

    def remove(self) -> None:
        # The marker if it names us, and the socket if it is the one that we bound.
        if self.project >= 0:
            self.lock()
            if _tried(_read_marker, MARKER, self.project) == self.path:
                _tried(unlink, MARKER, dir_fd=self.project)
            close(self.project)
            _tried(unlink, self.link)  # even where the socket is gone already
        if self.bound():
            _tried(unlink, self.path)


def _remove_socket(path: str) -> None:
    # A session's socket, and the link beside it; no other kind of file, whatever its name.
    if (found := _tried(lstat, path)) and S_ISSOCK(found.st_mode):
        _tried(unlink, path)
        _tried(unlink, path[:-5])  # less .sock


def _open_private(path: str, what: str) -> int:
    # A file that is ours alone, to append to, never through a link; made if it is not there.
    flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    try:
        descriptor = os.open(path, flags, 0o600)
        found = fstat(descriptor)
        if not S_ISREG(found.st_mode) or found.st_uid != geteuid() or found.st_nlink > 1:
            close(descriptor)
            raise OSError(errno.EINVAL, "it must be a plain file of yours, and no link")
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        raise _system_error(error, f"cannot write the {what} {_shown(path)}") from None
    return descriptor


# ==== protocol ========================================================================================================
# One JSON line each way: bytes into a request or a snapshot, and back. Knows nothing of sockets.


def _json_object(line: bytes, scan: Any) -> Fields:
    # The object that a line is; an empty one if it is anything else, or more.
    try:
        text = line.decode().strip(" \t\r\n")
        found, end = scan(text, 0)
        if end == len(text) and isinstance(found, dict):
            return found
    except (ValueError, StopIteration, RecursionError, SystemError):  # the last: json is not loaded
        pass
    return {}


def _encode_request(command: str, args: Strings) -> bytes:
    # A request that the server takes: of arguments that are too long, as many as fit.
    if command != "run":
        return b'{"command":"dump"}\n'
    # Only between two of them is there a tab: within one JSON has it escaped.
    listed = (",\t".join(map(_json_quoted, args)) + ",\t")[:MAX_REQUEST - len('{"command":"run","args":[]}')]
    listed = listed.rpartition(",\t")[0] or '"..."'
    return b'{"command":"run","args":[%s]}\n' % listed.encode()


def _decode_request(line: bytes, scan: Any) -> tuple[str, Words]:
    # The command of a request, and its words for the log; ValueError with what is wrong.
    request = _json_object(line, scan)
    command = request.get("command")
    args = request.get("args")
    if command == "dump":
        return command, ["-"]
    if command != "run":
        raise ValueError('a request is one JSON object in UTF-8, and nothing more; its "command" is "run" or "dump"')
    if not isinstance(args, list) or {*map(type, args)} != {str}:
        raise ValueError('"args" is a list of strings with the command first')
    return command, args


def _decode_snapshot(data: bytes) -> Values:
    # The environment in an answer; HotenvError 9 for whatever is none. Only a message is shown.
    whole = len(data) <= MAX_RESPONSE and data.find(b"\n") == len(data) - 1
    answer = _json_object(data if whole else b"", _scan_json)
    if answer.get("error"):
        message = _shown(f"{answer['error']}: {answer.get('message')}"[:1000])
        raise HotenvError(EXIT_ARTIFACT, "the session refused the request: " + message)
    env: Any = answer.get("env")
    if _is_environment(env):
        return env  # type: ignore[no-any-return]
    raise HotenvError(EXIT_ARTIFACT, f"the answer is no line of JSON up to {MAX_RESPONSE >> 20} MiB, "
                                     "or no environment that a process can have")


def _is_environment(env: Any) -> bool:
    # Can a process have it?
    try:
        names = "".join(env)
        raw = _encoded(names + "".join(env.values()))
    except (TypeError, AttributeError, UnicodeError):  # no dict of strings, or half a surrogate pair
        return False
    return b"\0" not in raw and "=" not in names and "" not in env


# ==== server ==========================================================================================================
# The loop that hands out the snapshot, its timers, signals and request log. Knows nothing of dotenv. At its end stands
# what later rooms use too: who the other end is, signals in a list, no core dumps, functions of the C library.

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # counts suspend; on macOS the second does
_ENDS = {SIGTERM, SIGINT, SIGHUP, SIGQUIT}  # of a session, cleanly


def _now() -> float:
    return time.clock_gettime(_CLOCK)


class _Log:
    # Lines for a stderr that is not ours alone: never blocks, keeps some, drops with a count.

    def __init__(self, options: Namespace) -> None:
        self.options, self.waiting, self.dropped, own = options, bytearray(), 0, 2
        if not S_ISREG(fstat(2).st_mode):  # a description of our own, which never blocks
            own = _tried(os.open, "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY)
        # There is none for a socket, somebody else's terminal, or without a /proc. Others write to that too: it is
        # borrowed, and told each time not to block.
        self.descriptor, self.borrowed = own or 2, own is None

    def request(self, command: str, words: Words) -> None:
        if not self.options.quiet:
            words = words if self.options.verbose else words[:1]
            self.add(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {command} {_shown(' '.join(words))}")

    def add(self, line: str) -> None:
        if len(self.waiting) + len(line) > MAX_LOG_BACKLOG:
            self.dropped += 1
            return
        if self.dropped:
            self.waiting += b"hotenv: %d lines were dropped here\n" % self.dropped
            self.dropped = 0
        self.waiting += line.encode("utf-8", "backslashreplace") + b"\n"
        self.flush()

    def flush(self) -> None:
        # Writes what can be written now; the loop tries again while something waits.
        if self.borrowed:
            set_blocking(2, False)
        try:
            while self.waiting:
                del self.waiting[:write(self.descriptor, self.waiting[:1 << 16])]
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self.waiting.clear()  # closed or broken: a session does not end for its log
        if self.borrowed:
            set_blocking(2, True)

    def close(self) -> None:
        # What still waits has a second; what is lost then is counted in the last line.
        give_up = monotonic() + LAST_WORDS
        while self.waiting and monotonic() < give_up:
            self.flush()
            sleep(0.01)
        if lost := self.waiting.count(b"\n") + self.dropped:
            import fcntl
            _tried(fcntl.fcntl, self.descriptor, 1031, 1 << 20)  # F_SETPIPE_SZ: room for a last line
            self.waiting[:] = b"\nhotenv: %d lines of this log are lost\n" % lost
            self.flush()


class _Server:
    # Serves one response until its time is up, it is told to end, or its files are not its own.

    def __init__(self, listener: socket.socket, response: bytes, files: _SessionFiles, log: _Log,
                 idle: float, max_age: float) -> None:
        import json
        import resource
        import selectors
        self.scan = json.JSONDecoder(**_JSON_RULES).raw_decode
        self.listener, self.response, self.files, self.log = listener, memoryview(response), files, log
        self.selector = selectors.DefaultSelector()
        self.resource: Any = resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(DESCRIPTORS, hard)), hard))
        self.waiting: dict[Waits, Any] = {}  # who waits longest comes first
        self.unfinished = 0  # bytes of requests, of all who wait
        now = _now()
        self.idle, self.end, self.next_look = idle, now + max_age, now + TICK
        self.deadline = min(self.end, now + idle)
        self.stamped = 0.0  # the deadline that the socket's time stamp shows

    def run(self, wake: int, received: list[int]) -> str:
        # Serves; returns why it ended.
        import signal
        self.selector.register(wake, 1)  # 1: EVENT_READ
        self.selector.register(self.listener, 1)
        now = _now()
        while True:
            pause = min(self.deadline, self.next_look) - now
            if self.log.waiting:
                self.log.flush()
                pause = min(pause, SHORT_TICK)
            events = self.selector.select(pause)
            now = _now()
            if received:
                return "ended by " + signal.Signals(received[0]).name
            if now >= self.end:
                return "ended: --max-age is over"
            if now >= self.deadline:
                return "ended: idle for " + _duration(self.idle)
            for key, _ in events:
                if key.data:
                    self.go_on(key.data)
                elif key.fd == wake:
                    read(wake, 4096)  # a signal that has a handler of somebody else's
                else:
                    self.accept()
            if now >= self.next_look:
                for visit, wait in [*self.waiting.items()]:
                    if wait[2] <= now:
                        self.wait(visit, None)
                self.next_look = now + (TICK / 10 if self.waiting else TICK)
                if lost := self.files.lost():
                    return "ended: " + lost

    def accept(self) -> None:
        # Answers one client after the other: most have sent their request already.
        for _ in range(BATCH):
            try:
                sock, _address = self.listener.accept()
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ECONNABORTED):
                    return  # there is none, or it has gone
                if not self.waiting:  # others took all descriptors, or all memory
                    return sleep(SHORT_TICK)
                return self.wait(next(iter(self.waiting)), None)
            self.go_on(self.visit(sock))

    def go_on(self, visit: Waits) -> None:
        # As far as it can by now; then it waits, unless it is done, or was dropped before.
        wait = next(visit, None)
        if wait != self.waiting.get(visit):  # else it keeps its place
            self.wait(visit, wait)
        while self.unfinished > MAX_UNFINISHED:
            self.wait(next(iter(self.waiting)), None)

    def wait(self, visit: Waits, wait: Any) -> None:
        # What a client waits for from now on; for nothing: it is dropped.
        if before := self.waiting.pop(visit, None):
            self.selector.unregister(before[0])
        if wait and _tried(self.selector.register, *wait[:2], visit):
            self.waiting[visit] = wait
            self.next_look = min(self.next_look, wait[2])
        else:  # also where there is no memory for one more
            visit.close()

    def visit(self, sock: socket.socket) -> Waits:
        # All that is done with a client. Each yield is a wait: for the socket, to read (1) or to
        # write (2), and until when.
        give_up, line, newline, rest = 0.0, b"", b"", b""
        try:
            guarded = self.is_guarded(sock)  # now, while it is there: its pid may soon be another's
            while not newline and len(line) <= MAX_REQUEST:
                try:
                    data = sock.recv(1 << 12, _socket.MSG_DONTWAIT)  # little: it is kept meanwhile
                except BlockingIOError:
                    give_up = give_up or _now() + REQUEST_TIME  # for the whole of its request
                    yield sock, 1, give_up
                    continue
                if not data:
                    break
                piece, newline, rest = data.partition(b"\n")
                line += piece
                self.unfinished += len(piece)
            unsent, request = self.answer(guarded, line, newline)
            while unsent:
                now = _now()
                if now >= self.deadline:
                    return  # and so does the loop, before anything more is served
                try:
                    unsent = unsent[sock.send(unsent, _socket.MSG_DONTWAIT):]
                except BlockingIOError:
                    pass
                if unsent:
                    yield sock, 2, now + ANSWER_TIME
            if request:
                self.deadline = min(self.end, now + self.idle)
                if self.deadline > self.stamped + STAMP_STEP:
                    self.stamped = self.deadline
                    self.files.stamp(time.time() + self.deadline - now)
                self.log.request(*request)
            if rest or not newline:  # it may still be sending: to close now would reset it
                sock.shutdown(_socket.SHUT_WR)
                while data:
                    yield sock, 1, now + REQUEST_TIME
                    data = sock.recv(1 << 16, _socket.MSG_DONTWAIT)  # thrown away
        except OSError:
            pass  # it has gone
        finally:
            self.unfinished -= len(line)
            sock.close()

    def answer(self, guarded: bool, line: bytes, newline: bytes) -> tuple[Any, Any]:
        # What to send, and what to log of a request that is served.
        try:
            if not newline or len(line) > MAX_REQUEST:
                raise ValueError(f"a request is one line, with its newline, of at most {MAX_REQUEST >> 10} KiB")
            if guarded:
                raise ValueError("a program under guards gets no secrets but its own")
            return self.response, _decode_request(line, self.scan)
        except ValueError as error:
            return b'{"error":"BAD_REQUEST","message":%s}\n' % _json_quoted(str(error)).encode(), None
        except Exception:  # a bug of ours ends one request; what it says may hold what was sent
            return b'{"error":"INTERNAL","message":"this is a bug in hotenv"}\n', None

    def is_guarded(self, sock: socket.socket) -> bool:
        # A guard of ours shows in RLIMIT_MSGQUEUE (12), which nothing else sets so. A pid of 0 is of another pid
        # namespace, where it cannot be told.
        if sys.platform != "linux":
            return False
        pid = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED)
        try:
            hard = self.resource.prlimit(pid, 12)[1]
        except PermissionError:  # of another user or group: there it can be read
            words = (_tried(_content, f"/proc/{pid}/limits") or b"").partition(b"msgqueue size")[2].split()
            hard = int(words[1]) if words and words[1].isdigit() else 0
        except OSError:
            return True  # who connected has gone, and somebody else sits at its end
        return hard % 4096 == GUARD_SIGN


def _peer(sock: socket.socket) -> tuple[int, int]:
    # (pid, uid) of the other end; a pid of 0 or less is unknown.
    level, credentials, process = 0, 1, 2  # SOL_LOCAL, LOCAL_PEERCRED (version, uid, groups), LOCAL_PEERPID
    if hasattr(_socket, "SO_PEERCRED"):
        level, credentials = _socket.SOL_SOCKET, _socket.SO_PEERCRED  # struct ucred: pid, uid, gid
        process = credentials  # the first of its three
    uid = sock.getsockopt(level, credentials, 76)[4:8]
    return sock.getsockopt(level, process), int.from_bytes(uid, sys.byteorder)


def _caught(signums: Iterable[int]) -> tuple[int, list[int]]:
    # A descriptor that can be read when one of these signals has come, and the list to which they
    # are added as they come. Those that are ignored stay so: nohup and `&` mean it.
    received: list[int] = []
    wake, end = pipe()
    set_blocking(end, False)
    _signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    for signum in signums:
        if _signal.getsignal(signum) != SIG_IGN:
            _signal.signal(signum, lambda signum, _: received.append(signum))
    return wake, received


def _harden() -> None:
    # No core dumps; where the system offers it, neither traceable nor readable in /proc by the same user.
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _tried(_ask_c, "prctl", 4, 0)  # PR_SET_DUMPABLE
    if sys.platform == "darwin":
        _tried(_ask_c, "ptrace", 31, 0, 0, 0)  # PT_DENY_ATTACH


def _ask_c(function: str, *args: Any) -> int:
    # What a function of the C library returns. OSError: there is none, or the system refuses.
    try:
        import ctypes  # a Python can be built without
        word = ctypes.c_void_p.from_param  # of bytes, their address
        result = ctypes.pythonapi[function](*map(word, args))  # it finds all that is loaded
        if result >= 0:
            return result
    except (ImportError, AttributeError):
        pass
    raise OSError(function)


# ==== client ==========================================================================================================
# Find a session, ask it, get its snapshot. Knows nothing of the server's insides.


class _Session:
    # A session that was found: the path of its socket, and what to do if it cannot be reached.

    def __init__(self, path: str, advice: str = "") -> None:
        self.path = path
        self.advice = advice

    def unreachable(self, error: OSError) -> HotenvError:
        told = {errno.ENOENT: "there is no such socket", errno.ECONNREFUSED: "nobody answers there any more"}
        why = told.get(error.errno or 0, error.strerror or "no answer in time (is it stopped? `fg`, or `stop`)")
        return HotenvError(EXIT_UNREACHABLE, f"cannot reach the session at {_shown(self.path)}: {why}; {self.advice}")


def fetch(command: str = "dump", args: Strings = (), socket_path: str | None = None, *,
          peer_uid: int | None = None) -> Values:
    """The environment of the session that is found from here, or that listens at `socket_path`. The
    code of HotenvError is 3 if there is none, 4 if nobody answers, 8 or 9 if it is not believed."""
    session = _locate(socket_path)
    give_up = monotonic() + EXCHANGE_TIME
    sock = _connect(session, peer_uid)
    answer = bytearray()
    chunk = b"?"
    try:
        _tried(sock.sendall, _encode_request(command, args))  # refused, the answer may say why
        while chunk and len(answer) <= MAX_RESPONSE:  # its end follows its log line and time stamp
            sock.settimeout(max(0.001, give_up - monotonic()))
            chunk = sock.recv(1 << 16)
            answer += chunk
    except ConnectionResetError:
        pass  # what came before may be whole
    except OSError as error:
        raise session.unreachable(error) from None
    finally:
        sock.close()
    if not answer:
        raise session.unreachable(OSError(0, "it has just ended"))
    return _decode_snapshot(answer)


def _locate(socket_path: str | None) -> _Session:
    if socket_path is not None:
        return _Session(socket_path, "without --socket the directory's is asked")
    if path := environ.get("HOTENV_SOCKET"):
        return _Session(path, "`unset HOTENV_SOCKET` to find the directory's")
    advice = "start one with: " + _invocation() + " serve < secrets.env"
    if marker := _find_marker():
        return _Session(_read_marker(marker), advice + " (--force replaces this one)")
    raise HotenvError(EXIT_NO_SESSION, "no session: no .hotenv in this directory or above; " + advice)


def _connect(session: _Session, peer_uid: int | None) -> Any:
    # A connection to a server that is ours, root's or `peer_uid`'s.
    give_up = monotonic() + EXCHANGE_TIME
    sock: Any = _socket.socket(_socket.AF_UNIX)
    try:
        while True:
            sock.settimeout(max(0.001, give_up - monotonic()))
            try:
                _at_address(session.path, sock.connect)
                break
            except BlockingIOError:  # its backlog is full: it lives, and is busy
                if monotonic() >= give_up:
                    raise TimeoutError
                sleep(0.005)
        uid = _peer(sock)[1]
        if uid in (0, peer_uid) or _ours(uid):
            return sock
        failure: HotenvError = _NotBelieved(EXIT_ARTIFACT, f"{_shown(session.path)} is served by uid {uid}, not you: "
                                                           f"not believed (--peer-uid {uid} allows it)")
    except OSError as error:
        failure = session.unreachable(error)
    sock.close()
    raise failure


# ==== launch ==========================================================================================================
# Become the command: same process, same terminal, same signals, same status.


def _which(name: str, path: str) -> str:
    # The program that a name means, or ''; a path means itself.
    if "/" in name:
        return name
    for each in _encoded(path).split(b":"):  # shutil and os.execvpe import more, at each `run`
        place = join(each, fsencode(name))
        if isfile(place) and os.access(place, os.X_OK):
            return fsdecode(place)
    return ""


def _exec(argv: Words, env: Env, place: bytes = b"") -> NoReturn:
    # Replaces this process, by what lies at `place` if that is known; else a HotenvError says why it could not.
    words = [*map(fsencode, argv)]
    raw = {_encoded(name): _encoded(value) for name, value in env.items()}
    place = place or fsencode(_which(argv[0], env.get("PATH", os.defpath)))
    reason = "not found on PATH as a program (builtins, aliases and `a && b` are a shell's: run -- sh -c '...')"
    # Python ignores these two, and what is ignored stays so.
    _signal.signal(SIGPIPE, SIG_DFL)
    _signal.signal(SIGXFSZ, SIG_DFL)
    try:
        if place:
            os.execve(place, words, raw)
    except OSError as error:
        reason = error.strerror or ""
        if error.errno == errno.ENOEXEC:  # a script without a first line, as execvp has it
            _tried(os.execve, b"/bin/sh", [b"/bin/sh", place, *words[1:]], raw)
        elif error.errno == errno.ENOENT and exists(place):
            reason = "the interpreter or the loader that it needs is missing"
            line = _decoded(_tried(_content, place, 4096) or b"").split("\n")[0].strip(" ")
            if line.startswith("#!"):  # a \r at its end is what may be wrong
                reason = f"the interpreter in its first line, {_shown(line[2:])}, is missing"
        elif error.errno == errno.E2BIG and raw:
            size, name = max(zip(map(len, raw.values()), raw))
            reason += f"; of {len(raw)} variables, {_shown(fsdecode(name))} is the largest, with {size} bytes"
    _signal.signal(SIGPIPE, SIG_IGN)  # we live on, if only to say why
    raise HotenvError(EXIT_SYSTEM, f"cannot run {_shown(argv[0])}: {reason}")


# ==== redaction =======================================================================================================
# Exact values and their usual spellings: text or bytes in, the same with `[hidden:NAME]` out. It prevents accidents
# and is no boundary: what is cut, reversed or compressed goes through. How it is cheap: a form has at least 8 bytes,
# so one whole four-byte word of the buffer begins within its first four. A buffer is read as an array of words, in C;
# only around one that hits is it looked at. Hidden is the union of all places of any form, wherever a stream is cut.

_SHORTEST_FORM = 8  # characters; shorter values are hidden as whole words alone
_LONGEST_FORM = 1024  # bytes; longer forms are cut in pieces, which bounds what is held back
_MASK_STEP = 1 << 16  # bytes masked at once, whatever the size of the input
_NO_SECRETS = """\
admin administrator always auto critical debug default dev devel development disabled enabled error
eu-central-1 eu-west-1 false fatal guest http https info json live local localhost main mariadb
master memory mongodb mysql never nil no none notice null off on plain postgres postgresql private
prod production public redis root sqlite sqlite3 stage staging test testing tests text trace true
undefined us-east-1 us-west-2 user users utf-8 utf8 verbose warn warning yes
"""  # everyday words: to hide one would harm output, and protect nothing


# What stands for a character, row by row: nothing else, in JSON of PHP and of Go, in a repr() within the one quote
# and the other, in HTML (three rows), for dash and `set -x`, shlex.quote, `declare -p` of bash.
_ESCAPES_OF_OTHERS = rb"""
/|\/
<|\u003c >|\u003e &|\u0026
'|\'
\'|'
&|&amp; <|&lt; >|&gt;
&|&amp; <|&lt; >|&gt; "|&quot; '|&#x27;
&|&amp; <|&lt; >|&gt; "|&#34; '|&#39;
'|'\''
'|'"'"'
\|\\ "|\" $|\$ `|\`"""


def _spellings(text: str) -> Iterator[bytes]:
    # How tools print `text`, without quotes around it. Each form earned its place.
    import json
    import re
    from base64 import b64encode
    raw = _encoded(text)
    for quoted in {"'" + text + "'", json.dumps(text), json.dumps(text, ensure_ascii=False),
                   repr(text), ascii(text), repr(raw)[1:]}:
        for row in _ESCAPES_OF_OTHERS.splitlines():
            escaped = _encoded(quoted[1:-1])
            for pair in row.split():
                plain, escape = pair.split(b"|")
                escaped = escaped.replace(plain, escape)
            yield escaped
    yield raw.hex().encode()
    yield os.path.normpath(raw)  # as it stands in a path
    for offset, shared in enumerate((0, 2, 3)):  # also within other base64, as user:secret
        for alphabet in b"+/", b"-_":  # shared: characters that hold bits of what comes before
            padded = b64encode(bytes(offset) + raw, alphabet)[shared:]
            bare = padded.rstrip(b"=")
            yield from (padded, bare, bare[:-1])  # its last may hold bits of what comes after
    for size in 64, 76:  # wrapped, as openssl and base64 do
        yield from re.findall(rb".{1,%d}" % size, b64encode(raw)[:len(raw) * 8 // 6])
    for kept in rb"\w.~-", rb"\w.~/-", rb"\w.!~*'()-", rb"\w.*-":  # URLs of Python, JavaScript, forms
        percent = re.sub(rb"[^%s]" % kept, lambda found: b"%%%02X" % found[0][0], raw)
        yield from (percent, percent.replace(b"%20", b"+"))
    for plain in rb"", rb"#~":  # `printf %q`: these two only where a word begins
        yield re.sub(rb"([^\w%%+./:=@%s\x80-\xff-])" % plain, rb"\\\1", raw)
    # What follows is bash's $'...'.
    named = dict(zip(b"\a\b\t\n\v\f\r\x1b'\\", rb"\a \b \t \n \v \f \r \E \' \\".split()))
    yield re.sub(rb"['\\\0-\x1f\x7f-\xff]",
                 lambda found: named.get(found[0][0], b"\\%03o" % found[0][0]), raw)


def _forms(value: str) -> Iterator[bytes]:
    # All that is looked for on behalf of a value: each spelling of it and of its lines.
    for text in {value, *map(str.strip, value.splitlines())}:
        for form in _spellings(text):
            if min(len(text), len(form)) >= _SHORTEST_FORM:
                yield form[-_LONGEST_FORM:]
                for at in range(0, len(form) - _LONGEST_FORM, _LONGEST_FORM):
                    yield form[at:at + _LONGEST_FORM]


class Redactor:
    """Hides the values of an environment: each, in any usual spelling, becomes `[hidden:NAME]`.

    Call it with a string, or push pieces of bytes through a `stream()`. Values of several lines are hidden as a whole
    and by each line of 8 or more characters; blanks around do not count. Values of 4 to 7 characters are hidden as
    whole words alone. Shorter ones, everyday words and what `build_isolated_env` lets through (HOME) are not:
    `unmaskable` has their names. A stream holds back `longest` bytes at most. `skip`: names and PREFIX* that are left
    alone. Of several names of a value the first is shown; side by side, it is shown once.
    """

    def __init__(self, env: Env, skip: Strings = ()) -> None:
        import re
        skipped, everyday = list(skip), _NO_SECRETS.split()
        self.unmaskable: Words = []
        self._masks: dict[bytes, bytes] = {}  # of each form
        self._short: dict[bytes, bytes] = {}  # of each value that is hidden as a whole word only
        for name, value in env.items():
            value, mask = value.strip(), b"[hidden:%s]" % name.encode("utf-8", "replace")
            if not value or _matches(name, skipped):
                continue
            # What is too short or too common to hide is reported.
            if re.fullmatch(r"(?s).{0,3}|\d{4,5}", value) or value.lower() in everyday or name in ESSENTIALS:
                self.unmaskable.append(name)
            elif len(value) < _SHORTEST_FORM:
                self._short.setdefault(_encoded(value), mask)
            else:
                for form in _forms(value):
                    self._masks.setdefault(form, mask)
        self.longest = max(map(len, [*self._masks, *self._short]), default=0)
        self._sorted, before = sorted(self._masks), b""
        self._shorter = {before: before}  # form -> the longest that it begins with, or none
        self._offsets: dict[int, set[int]] = {}  # four-byte word -> where in a form's beginning
        begun = [*self._short]  # what is too short to have a word in it, or has one that may go on
        for form in self._sorted:
            while not form.startswith(before):
                before = self._shorter[before]
            self._shorter[form], before = before, form
            begun.append(form[:_SHORTEST_FORM - 1])
            for offset in range(4):
                word = int.from_bytes(form[offset:offset + 4], sys.byteorder)
                self._offsets.setdefault(word, set()).add(offset)
        self._ends = {each[:size + 1] for each in begun for size in range(len(each))}  # of a buffer
        self._last = max(map(len, begun), default=0)
        self._is_border = re.compile(rb"(?!(?<=\w)\w)").match  # no word goes on across it

    def __call__(self, text: str) -> str:
        """`text` with every value masked."""
        import re
        # Half a surrogate pair no value can hold, and no encoding.
        text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
        stream = self.stream()
        return _decoded(stream.feed(_encoded(text)) + stream.flush())

    def stream(self) -> _Stream:
        """A new stream: `feed(data)` returns what may go out by now, `flush()` the rest."""
        return _Stream(self)

    def find(self, data: bytes, last: bool) -> list[tuple[int, int, bytes]]:
        """Every place in `data` as (start, end, mask), and an empty one where begins what may become
        part of one: at the end, if this is the `last`. The first byte of `data` is only there to say
        whether a word goes on behind it."""
        from bisect import bisect_right
        places, held = [], len(data)
        words = memoryview(data)[:len(data) & ~3].cast("I")
        starts: list[int] = []  # of what may be a form
        for base in range(0, len(words), 1024):  # most blocks of a log have no word of any form
            block = words[base:base + 1024]
            if not self._offsets.keys().isdisjoint(block):
                starts += [index * 4 - offset for index, word in enumerate(block, base)
                           if word in self._offsets for offset in self._offsets[word] if offset < index * 4]
        for start in starts:
            rest = data[start:start + self.longest]
            after = bisect_right(self._sorted, rest)
            form = self._sorted[after - 1]
            while not rest.startswith(form):
                form = self._shorter[form]
            if form:
                places.append((start, start + len(form), self._masks[form]))
            if after < len(self._sorted) and self._sorted[after].startswith(rest):
                held = min(held, start)  # a form begins with the rest, and goes on
        for word, mask in self._short.items():
            start = 0
            while (start := data.find(word, start + 1)) > 0:
                end = start + len(word)
                if self._is_border(data, start) and self._is_border(data, end):
                    places.append((start, end, mask))
        ends = range(max(1, len(data) - self._last), held)
        held = len(data) if last else next((start for start in ends if data[start:] in self._ends), held)
        return sorted([*places, (held, held, b"")])


class _Stream:
    # What is held back, behind one byte that is already out, and what of it is masked.

    _data, _done = b"\n", 1  # all before `_done` is out
    _mask = b""  # the one that went out last, if nothing went out since

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def feed(self, data: bytes) -> bytes:
        # Takes the next piece, returns all that no later piece can make part of a value.
        out = []
        for at in range(0, len(data), _MASK_STEP):
            self._data += data[at:at + _MASK_STEP]
            out.append(self.flush(last=False))
        return b"".join(out)

    def flush(self, last: bool = True) -> bytes:
        # The end of the stream has come: returns what was held back.
        data, out = self._data, []
        for start, end, mask in self._redactor.find(data, last):
            if start > self._done:
                out.append(data[self._done:start])
                self._done, self._mask = start, b""
            if start == end:  # from here on it is held back
                self._data = data[start - 1:]
                self._done -= start - 1
                break
            if end > self._done:
                out += [mask] * (mask != self._mask)
                self._done, self._mask = end, mask
        return b"".join(out)


# ==== masked launch ===================================================================================================
# Owns the one case where the command is a child: we mask its stdout and stderr, by pipes. To all others the two of us
# should look like one process, as after an exec. What is sent to our process group (Ctrl-C, Ctrl-Z, `kill %1`) is
# meant for the command, as is what is sent to our pid; nothing tells them apart. So we leave the group, and the
# command stays: the first kind reaches it alone, the second us alone, and we hand it on. When it stops, we return to
# the group and stop too: the shell sees it. Only a session's leader (a container's first process, a service) cannot
# leave: there we hand on all but what a keyboard may have sent, and who signals that group signals the command twice.

_CAUGHT = _signal.valid_signals() - {  # but what cannot be, and what a fault of our own raises
    SIGKILL, SIGSTOP, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS}
_ENDING = _CAUGHT - {SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH, SIGURG}
_KEYBOARD = (SIGINT, SIGQUIT, SIGTSTP, SIGWINCH)  # and what a terminal sends


def _run_masked(become: Callable[[], NoReturn], redactor: Redactor) -> int:
    # Has a child `become` the command and masks its output; returns its exit status, or dies as it did.
    pipes = [(*pipe(), targets) for targets in _masked_routes()]
    if not pipes:
        become()  # in our place: nothing is to be masked
    blocked = pthread_sigmask(SIG_BLOCK, _CAUGHT)
    before = _signal.signal(SIGCHLD, SIG_DFL)  # ignored, it loses the exit status
    helper = _found_group()  # before the child: where this fails, nothing has been run
    child = fork()
    if not child:
        try:
            for _, end, targets in pipes:
                for target in targets:
                    dup2(end, target)
            _signal.signal(SIGCHLD, before)
            pthread_sigmask(SIG_SETMASK, blocked)
            _tried(_ask_c, "prctl", 1, 9)  # PR_SET_PDEATHSIG: kill -9 ends an exec, too
            become()
        except HotenvError as error:
            _say(str(error))
            os._exit(error.code)
        finally:
            os._exit(EXIT_SYSTEM)
    for _, end, _ in pipes:
        close(end)
    command = _Command(child)
    _leave_group(helper)
    _harden()  # after the forks: a core of ours would hold the values
    command.follow()
    pthread_sigmask(SIG_SETMASK, blocked)
    _attend(command, [_channel(command, source, targets[0], redactor.stream()) for source, _, targets in pipes])
    if command.error:
        raise _system_error(command.error, "cannot write the command's output")
    return _as_it_ended(command.status)


def _masked_routes() -> list[list[int]]:
    # Which of our descriptors 1 and 2 are masked: two of one file together, to keep their order.
    routes: dict[Any, list[int]] = {}  # by device and inode
    for target, name in enumerate(("stdin", "stdout", "stderr")):
        found = _tried(fstat, target)
        if not found:  # it stays closed for the command, and no pipe of ours becomes it
            os.open(os.devnull, O_RDWR)  # an exec closes it
        elif target and isatty(target):
            _say(name + " is a terminal: not masked")
        elif target:
            routes.setdefault((found.st_dev, found.st_ino), []).append(target)
    return list(routes.values())


class _Command:
    # The child, and what happens to it by way of us; `wake` can be read when something has.

    status: Any = None  # its wait status, once it has ended
    error: OSError | None = None  # why its output could not be written, though there was a reader

    def __init__(self, pid: int) -> None:
        self.pid, self.group = pid, getpgrp()
        self.wake, self.received = _caught(_CAUGHT)

    def heed(self) -> None:
        read(self.wake, 4096)
        while self.received:
            signum = self.received.pop(0)
            if signum == SIGCHLD:
                self.follow()
            elif self.status is None:
                if signum not in _KEYBOARD or getpgrp() != self.group or not isatty(0):
                    kill(self.pid, signum)  # else it was typed, and the child has it already
            elif signum in _ENDING:  # it is meant for us, who may wait for a slow reader
                _die_of(signum)

    def follow(self) -> None:
        # What has become of the child? If it has stopped, so do we, until we are continued.
        while self.status is None:
            changed, status = waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if not changed:
                return
            if not os.WIFSTOPPED(status):
                self.status = status
                _tried(setpgid, 0, self.group)  # back to the child's, if anybody is left in it
                return
            try:  # only at a terminal is there a shell that would continue us
                close(os.open(os.ctermid(), O_RDWR | O_NOCTTY))
                setpgid(0, self.group)
                kill(getpid(), SIGSTOP)
                _leave_group(_found_group())
            except OSError:
                pass  # we lead a session and never left, or can leave no more


def _found_group() -> int:
    # A process with a group that we can join: who leads one can found no other.
    helper = fork()
    if not helper:
        sleep(2)
        os._exit(0)
    setpgid(helper, helper)
    return helper


def _leave_group(helper: int) -> None:
    _tried(setpgid, 0, helper)  # refused to a session's leader, who stays
    kill(helper, SIGKILL)
    waitpid(helper, 0)


def _channel(command: _Command, source: int, target: int, stream: _Stream) -> Waits:
    # Masks what the child writes into a pipe. Each yield is a wait: for a descriptor, and what is
    # to be done with it. The pipe is read once all is written; no write waits, nor holds up another.
    import select
    set_blocking(source, False)
    last = False
    try:
        while not last:
            if command.status is None:  # else all is in the pipe, whoever still holds its end
                yield source, select.POLLIN
            data = _tried(read, source, 1 << 20) or b""  # all; refused: it is empty, the child has ended
            last = not data or command.status is not None
            pending = stream.feed(data)
            if last:
                pending += stream.flush()
            while pending:
                yield target, select.POLLOUT
                try:  # so much it takes without a wait, once it has said that it can be written
                    pending = pending[write(target, pending[:PIPE_BUF]):]
                except BlockingIOError:
                    pass  # somebody else made the descriptor non-blocking
    except OSError as error:
        if error.errno != errno.EPIPE:
            command.error = error
    close(source)  # when we cannot write, the child is to learn it as we did


def _attend(command: _Command, channels: list[Waits]) -> None:
    # Lets output be carried until the child has ended and all it wrote is out.
    import select
    waits = {channel: next(channel, None) for channel in channels}  # None: it is done
    while command.status is None or any(waits.values()):
        poller = select.poll()
        poller.register(command.wake, select.POLLIN)
        for descriptor, event in filter(None, waits.values()):
            poller.register(descriptor, event)
        ready = dict(poller.poll())
        if command.wake in ready:
            command.heed()
        for channel, wait in waits.items():
            if wait and (wait[0] in ready or command.status is not None and wait[1] == select.POLLIN):
                waits[channel] = next(channel, None)


# ==== kernel guards ===================================================================================================
# Owns what Linux itself refuses to us and all that we start, in any language. What it alone refused is "Permission
# denied" to the program: reports are the hook's. Seccomp judges system calls by number and plain arguments, Landlock
# opening to write and connecting by TCP. Neither needs a privilege or can be lifted: sudo gains nothing. They see no
# addresses (so no --allow-*), reads, unix sockets by path, listening, chmod beside --fs-write.

_COLUMNS = {"x86_64": 1, "aarch64": 2, "riscv64": 2}  # of the table below: which numbers a machine has
# The words of a filter, each with its number on x86_64, and in the table that newer machines
# share (9999: none): machines, instructions, verdicts (to refuse is to return an error's number),
# system calls.
_NUMBERS = ("x86_64 0xc000003e 9999 aarch64 9999 0xc00000b7 riscv64 9999 0xc00000f3 load 0x20 0x20 mask 0x54 0x54 "
            "equal 0x15 0x15 above 0x35 0x35 end 6 6 allowed 0x7fff0000 0x7fff0000 killed 0x80000000 0x80000000 "
            "ignored 0x50000 0x50000 EACCES 0x5000d 0x5000d ENOSYS 0x50026 0x50026 socket 41 198 sendto 44 206 "
            "sendmsg 46 211 sendmmsg 307 269 clone 56 220 fork 57 9999 vfork 58 9999 clone3 435 435 execve 59 221 "
            "execveat 322 281 io_uring_setup 425 425 setrlimit 160 164 prlimit64 302 261 ")
_ATTRIBUTE_CALLS = (  # Landlock has no right for these
    "chmod 90 9999 fchmod 91 52 chown 92 9999 fchown 93 55 lchown 94 9999 fchownat 260 54 fchmodat 268 53 fchmodat2 "
    "452 452 utime 132 9999 utimes 235 9999 futimesat 261 9999 utimensat 280 88 setxattr 188 5 lsetxattr 189 6 "
    "fsetxattr 190 7 removexattr 197 14 lremovexattr 198 15 fremovexattr 199 16 setxattrat 463 463 removexattrat 466 "
    "466 file_setattr 469 469")
# A call that has a rule is refused, but where all its (place in what seccomp sees, mask, value)s hold.
_TCP = "socket 16 0xfffffff7 2 24 15 1 32 0xfffffff9 0"
# But unix (1), netlink (16), and TCP, which Landlock judges; MSG_FASTOPEN connects.
_NO_NETWORK = f"""socket 16 0xffffffff 1|socket 16 0xffffffff 16|{_TCP}|socket|sendto 40 0x20000000 0|sendto|\
sendmsg 32 0x20000000 0|sendmsg|sendmmsg 40 0x20000000 0|sendmmsg""".split("|")
_NO_SUBPROCESS = "clone 16 0x10000 0x10000|clone|clone3|fork|vfork|execve|execveat".split("|")  # but threads
# What a session tells the guarded by, RLIMIT_MSGQUEUE (12): nobody may set it, but read it.
_KEEPS_SIGN = """setrlimit 16 8 0|setrlimit 16 4 0|setrlimit 16 1 1|setrlimit 16 2 2|setrlimit|prlimit64 24 8 0|\
prlimit64 24 4 0|prlimit64 24 1 1|prlimit64 24 2 2|prlimit64 32 0xffffffff 0 36 0xffffffff 0|prlimit64""".split("|")
# libc takes clone instead; by io_uring sockets can be made without a call; su and sudo set all limits, or give up.
_VERDICTS = {"clone3": "ENOSYS", "io_uring_setup": "ENOSYS", "setrlimit": "ignored", "prlimit64": "ignored"}
_WRITE_RIGHTS, _FILE_RIGHTS = 0x7FF2, 0x4002  # all that change anything (Linux 6.2); those that a file has
_DEVICES = "/dev/null /dev/zero /dev/full /dev/tty /dev/ptmx /dev/pts".split()  # may always be written
_OF_THE_CALLER = "/dev/shm /dev/stdout /dev/stderr".split()  # shm: locks of multiprocessing; the others may be files


def _landlock(files: int, network: int, writable: Words) -> bool:
    # Refuse what needs these rights, but writing below `writable`.
    import struct
    rules = _ask_c("syscall", 444, struct.pack("QQ", files, network), 16, 0)  # landlock_create_ruleset
    for path in filter(exists, writable):
        descriptor = os.open(path, os.O_PATH)  # type: ignore[attr-defined]  # Linux has it
        rule = struct.pack("=Qi", files if isdir(path) else _FILE_RIGHTS, descriptor)
        _tried(_ask_c, "syscall", 445, rules, 1, rule, 0)  # landlock_add_rule: not to a pipe, which needs none
        close(descriptor)
    _ask_c("syscall", 446, rules, 0)  # landlock_restrict_self
    close(rules)
    return True


def _address(data: bytes) -> int:
    import ctypes
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _seccomp(rules: Words) -> None:
    # The first rule decides that names the call, and whose conditions hold.
    import struct
    machine = os.uname().machine
    column = _COLUMNS[machine]
    words = (_NUMBERS + _ATTRIBUTE_CALLS).split()
    table = dict(zip(words[::3], words[column::3]))
    # An instruction, how many to skip if it holds, and if not, its number. Neither 32-bit programs nor x32 calls,
    # whose numbers are others: both end on the spot.
    program = f"load 0 0 4 equal 1 0 {machine} end 0 0 killed load 0 0 0 above 0 1 0x40000000 end 0 0 killed "
    for rule in rules:
        name, *left = rule.split()  # three words a condition, which takes three instructions
        verdict = "allowed" if left else _VERDICTS.get(name, "EACCES")
        program += f"load 0 0 0 equal 0 {len(left) + 1} {name} "
        while left:
            place, bits, value, *left = left
            program += f"load 0 0 {place} mask 0 0 {bits} equal 0 {len(left) + 1} {value} "
        program += f"end 0 0 {verdict} "
    numbers = [int(table.get(word, word), 0) for word in (program + "end 0 0 allowed").split()]
    count = len(numbers) // 4
    code = struct.pack("HBBI" * count, *numbers)
    _ask_c("prctl", 22, 2, struct.pack("HxxxxxxP", count, _address(code)), 0, 0)


# ==== hermetic ========================================================================================================
# Owns the audit hook: what a guarded Python may not do, and how each that it starts is guarded too, by a private copy
# of this room and those that it calls. For mistakes, not for malice. A hook (PEP 578) decides: raising aborts the
# action; so does a mistake in a check. Where CPython raises an event too late, a patch does, and decides nothing.
# No thread has a state: nothing is open for a moment in another, a fork or a signal handler.
#
# Guards travel in HOTENV_GUARDS, a word a line: no-network, allow-domain=example.com, and three of ours: sealed=, what
# any guard closes; program=, where the target's own files are; secret=, a name whose value no trace shows. After an
# empty line comes a further set (hermetic within hermetic), with a hook of its own: all hold.


def _by_name(words: Words) -> Fields:
    values: Fields = {}
    for word in words:
        name, _, value = word.partition("=")
        values.setdefault(name, []).append(value)
    return values


_WRITING = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND
# An event, and for each path in it: its index, that of its directory's descriptor (9: none),
# whether a final link is followed (f), and whether the path is to be made (m).
_CHANGES = _by_name("""
    os.chflags=09f os.chmod=02f os.chown=03f os.link=02f os.link=13m os.mkdir=02m os.remove=01 os.removexattr=09f
    os.rename=02 os.rename=13m os.rmdir=01 os.setxattr=09f os.symlink=12m os.truncate=09f os.utime=03f""".split())
# What the standard library reads on its own; none of it is anybody's.
_READABLE = """/dev/random/ /dev/urandom/ /etc/localtime/ /etc/mime.types/ /etc/os-release/ /proc/cpuinfo/
    /usr/lib/os-release/ /usr/share/zoneinfo/ /proc/meminfo/ /proc/stat/""".split()
# Where clouds hand out credentials, as _host spells it: only that very name opens it.
_METADATA = set("""
    ::ffff:169.254.169.254 ::ffff:169.254.170.2 ::ffff:169.254.170.23 ::ffff:168.63.129.16 ::ffff:100.100.100.200
    ::ffff:192.0.0.192 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 metadata.google.internal metadata.goog metadata
    instance-data instance-data.ec2.internal""".split())
_SECRET = r"[\w-]*(?:passw|passphrase|pwd|secret|token|(?:api|access|private)[-_]?key|credent|cookie|auth(?!or_))[\w-]*"
_INTERNET = (_socket.AF_INET, _socket.AF_INET6)
_leave = os._exit  # the real one; at the end of the interpreter os is empty


class _Guarded:
    # One set of guards that is in force; what belongs to the class, all sets share.

    text = home = ""  # HOTENV_GUARDS, and the directory that PYTHONPATH begins with
    blocked: Words = []  # the events that were: any decides the exit status
    trace = -1  # a duplicate of stderr, which the program may redirect
    environment: Values = {}  # as it was at the start: a program may take its secrets away
    redactor: Redactor | None = None  # what hides them, once it was needed

    def __init__(self, words: Words) -> None:
        values = {"allow-domain": [], "fs-write": [], **_by_name(words)}
        self.network = "no-network" in values
        self.processes = "no-subprocess" in values
        self.imports = "strict-imports" in values
        self.localhost = "allow-localhost" in values
        self.known = set(values["allow-domain"])  # may be reached
        self.suffixes = tuple(map(".{}".format, self.known))
        self.sealed = _roots(values["sealed"])
        self.root = values.get("fs-readonly", ["/"])[-1]
        self.writable = _roots([*values["fs-write"], *_DEVICES] if "fs-readonly" in values else ["/"])
        if self.root != "/":  # below it, the target's own files, and Python's
            places = [self.root, _Guarded.home, sys.prefix, sys.base_prefix, *map(str, sys.path), *values["program"]]
            self.readable = (*_roots(places), *self.writable, *_READABLE)
            # Links there are believed, to spare imports a realpath.
            self.trusted = ("/dev/stdin", sys.prefix + "/", sys.base_prefix + "/")

    def may_reach(self, host: Any, connecting: bool = True) -> bool:
        # Is this name or address allowed? To resolve or bind this machine always is.
        name = _host(host)
        if name in self.known or name in _METADATA:
            return name in self.known
        local = name.startswith("::ffff:127.") or ("." + name).endswith(".localhost")
        local |= name in ("::1", _host(os.uname().nodename))
        return name.endswith(self.suffixes) or local and (self.localhost or not connecting)

    def on_address(self, event: str, sock: Any, address: Any) -> None:
        if not address:
            return  # sent over a connection
        connecting = event != "socket.bind"
        if sock.family != _socket.AF_UNIX:
            internet = sock.family in _INTERNET  # no other has hosts that could be told
            if self.network and not (internet and self.may_reach(address[0], connecting)):
                _block(event, "no-network host", address[0])
        elif address[0] not in (0, "\0"):  # else an abstract name, which is no file
            if not connecting:
                self.change(event, address)
            elif (_real(address) + "/").startswith(self.sealed):  # the door to the secrets
                _block(event, "hotenv-session path", address)

    def on_socket(self, event: str, sock: Any, family: int, kind: int, *_: Any) -> None:
        # Nothing but TCP, as in the kernel: it would not see where a datagram goes.
        strict = self.network and not self.localhost and not self.suffixes
        if strict and family in _INTERNET and kind & 15 != _socket.SOCK_STREAM:
            _block(event, "no-network type", str(kind))

    def on_lookup(self, event: str, host: Any, *_: Any) -> None:
        host = host[0] if isinstance(host, tuple) else host
        if self.network and host and not self.may_reach(host, connecting=False):
            _block(event, "no-network host", host)

    def on_found(self, event: str, host: Any, found: Any) -> None:
        # An allowed name is known by its addresses from then on: connect sees nothing else.
        if host and self.may_reach(host):
            addresses = {_host(entry[4][0]) for entry in found}
            self.known |= addresses if _host(host) in _METADATA else addresses - _METADATA

    def change(self, event: str, path: Any, dir_fd: int = -1, follow: bool = True, made: bool = True) -> None:
        # May this be made, removed or changed? What is not there is missing, not refused.
        real = _real(path, dir_fd, follow)
        place = real + "/"
        if place.startswith(self.sealed):
            _block(event, "hotenv-session path", real)
        allowed = place.startswith(self.writable) or path in ("/dev/stdout", "/dev/stderr")
        if not allowed and (made or lexists(real)):
            _block(event, "fs-readonly path", real, " (--fs-write PATH allows it below PATH)")

    def on_open(self, event: str, path: Any, mode: Any = None, flags: int = 0) -> None:
        if isinstance(path, int):
            return  # it was opened before
        if flags & _WRITING or mode and mode[0] in "wa":  # C opens files without flags
            self.change(event, path, made=not flags or flags & O_CREAT > 0)
        elif self.root != "/":
            text = fsdecode(path or ".")
            if text.startswith(self.trusted) and "/.." not in text:
                return
            real = realpath(text)
            known = (real + "/").startswith((f"/proc/{getpid()}/", *self.readable))
            if not known and exists(real + "/" * (event != "open")):  # only a directory can be listed
                hint = f" (read only below {self.root}; --fs-readonly=PATH, =/ all)"
                _block(event, "fs-readonly path", real, hint)

    def on_change(self, event: str, *args: Any) -> None:
        padded = [*args, *[-1] * 10]
        if event == "os.truncate" and isinstance(args[0], int):
            return  # it was opened for writing
        for path, base, *how in _CHANGES[event]:
            self.change(event, padded[int(path)], padded[int(base)], "f" in how, "m" in how)

    def on_sqlite(self, event: str, database: Any) -> None:
        # Only what is in memory may be opened, or a URI that says that it is only read.
        path = fsdecode(database)
        modes = ""
        if path.startswith("file:"):
            from urllib.parse import unquote
            path, _, query = path.partition("#")[0].partition("?")
            path = unquote(path.replace("file://localhost/", "file:/", 1)[5:])
            modes = "&" + query + "&"
        elif path in ("", ":memory:"):
            modes = "&mode=memory&"
        if "&mode=ro&" in modes or "&immutable=1&" in modes:
            self.on_open("open", path)
        elif "&mode=memory&" not in modes:
            self.change(event, path)

    def on_start(self, event: str, *args: Any) -> None:
        if self.processes:
            argv = [arg for arg in (*args, args[:1]) if isinstance(arg, (list, tuple))][0]  # at last, a shell's line
            # platform.processor() asks uname, and has an answer without it.
            _block(event, "no-subprocess argv", argv, counts=argv != ["uname", "-p"])
        if not exists(_Guarded.home + "/sitecustomize.py"):
            _block(event, "hermetic path", _Guarded.home, " (the files that guard a child are gone)")
        for env in (os.environ, *args):  # whatever environment the program makes for a child, or puts there
            if hasattr(env, "keys") and env is not os.environb:
                for name in {b"HOTENV_GUARDS", b"PYTHONPATH"} & set(env):  # would come before ours
                    env[fsdecode(name)] = fsdecode(env.pop(name))
                _carry(env)

    def on_import(self, event: str, module: str, filename: Any, *_: Any) -> None:
        top = module.partition(".")[0]  # subinterpreters have hooks of their own, uvloop raises no events
        if top in ("_interpreters", "_xxsubinterpreters", "uvloop"):
            _block(event, "hermetic module", module, counts=False)
        if self.imports:
            place = dirname(filename or "")
            native = filename and not (place.endswith("/lib-dynload") and place in sys.path)
            if native or top in ("ctypes", "_ctypes", "cffi"):
                _block(event, "strict-imports module", module)

    checks: Fields = {event: check for check, events in (  # what is not here is no guard's concern
        (on_change, " ".join(_CHANGES)), (on_open, "open os.listdir os.scandir"),
        (on_start, "subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty pty.spawn"),
        (on_address, "socket.connect socket.connect_ex socket.bind socket.sendto socket.sendmsg"),
        (on_socket, "socket.__new__"),
        (on_lookup, "socket.getaddrinfo socket.gethostbyname socket.gethostbyaddr socket.getnameinfo"),
        (on_sqlite, "sqlite3.connect"), (on_import, "import"), (on_found, "hotenv.found"),
        (lambda guards, event, parts: parts.pop(), "hotenv.alive"),
        # At the very end: every file is flushed and closed.
        (lambda guards, event: guards.blocked and _leave(2), "cpython.PyInterpreterState_Clear"))
        for event in events.split()}

    def hook(self, event: str, args: Any) -> None:
        if event in self.checks:
            self.checks[event](self, event, *args)


def _block(event: str, what: str, value: Any, hint: str = "", counts: bool = True) -> NoReturn:
    # Count it (unless a program asks in passing), trace it, raise what programs know how to take. `what`: which
    # guard refuses, and what the value is.
    reason, about = what.split()
    frame: Any = sys._getframe()
    ours = frame.f_globals
    line = event
    # The public function that led to the event: subprocess.run, not subprocess.Popen.
    while frame and (frame.f_globals is ours or frame.f_globals.get("__name__") in ("os", "socket", "subprocess")):
        name = frame.f_code.co_name
        if frame.f_globals is not ours and name[0] not in "_<":
            line = frame.f_globals["__name__"] + "." + name
        frame = frame.f_back
    try:
        line += f" {about}={_traced(value)}" * (value != ())
    except Exception:
        pass  # at the end of the interpreter nothing can be imported any more
    line = line[:1990] + " reason=" + reason
    _Guarded.blocked += [event] * counts
    _tried(write, _Guarded.trace, f"[hermetic] blocked {line}\n".encode("ascii", "backslashreplace"))
    line = "blocked by hotenv: " + line + hint
    if event == "import":
        raise ImportError(line, name=value)
    raise PermissionError(errno.EACCES, line)


def _traced(value: Any) -> str:
    # For a trace or an error: escaped, and without the secrets that can be told.
    import re
    if not _Guarded.redactor:
        guards = _Guarded.text + "\n"
        _Guarded.redactor = Redactor({
            name: value for name, value in _Guarded.environment.items() if "\nsecret=" + name + "\n" in guards
            or re.fullmatch(_SECRET, name, re.I) and value[:1] != "/"})  # PWD is none
    several = isinstance(value, (list, tuple))
    # One text holds all words; what has a NUL itself is not executed, but is shown.
    words = value if several else [value]
    text = _Guarded.redactor("\0".join([fsdecode(word).replace("\0", "?") for word in words]))
    text = re.sub(rf"(?i)((?<![^\0])-{_SECRET}\0|(?<![\w-]){_SECRET}(?:\s*[=:]\s*|\s+))[^\0]+", r"\1***", text)
    text = re.sub(r"://[^/\s@\0]*@", "://***@", text)
    line = ",".join(map(repr, text.split("\0")))
    return "[" + line + "]" if several else re.sub(r"^'([^ \\]*)'$", r"\1", line)


def _roots(paths: Words) -> tuple[str, ...]:
    return tuple([join(realpath(path), "") for path in paths])


def _real(path: Any, dir_fd: int = -1, follow: bool = True) -> str:
    # The path of an action, without links; of a descriptor, the one that it was opened by.
    if isinstance(path, int):
        dir_fd = path
        path = "."
    directory = f"/proc/self/fd/{dir_fd}" * (dir_fd >= 0)
    if sys.platform == "darwin" and dir_fd >= 0:
        import fcntl
        directory = fsdecode(fcntl.fcntl(dir_fd, 50, bytes(1024)).rstrip(b"\0"))  # F_GETPATH
    path = join(directory, fsdecode(path))
    head, tail = os.path.split(path.rstrip("/"))
    if follow or tail in ("", ".", ".."):
        return realpath(path)
    return join(realpath(head), tail)


def _host(host: Any) -> str:
    # One spelling of a host: ASCII, lower case, no final dot. An address in any form that the system
    # takes becomes one of IPv6, without a zone: it has a colon, a name has none.
    name = fsdecode(host).lower().rstrip(".").partition("%")[0]
    try:
        if not name.isascii():
            name = name.encode("idna").decode()
        if ":" not in name:
            name = "::ffff:" + _socket.inet_ntoa(_socket.inet_aton(name))
        return _socket.inet_ntop(_socket.AF_INET6, _socket.inet_pton(_socket.AF_INET6, name))
    except (OSError, ValueError):
        return name


def _patch(names: str, call: Any) -> None:
    # Put call(original, ...) in the place of functions. One that is not there is an error.
    call.__code__ = call.__code__.replace(co_filename="<hotenv>")  # coverage knows that this is no file
    for name in names.split():
        module, _, function = name.partition(".")
        space = vars(sys.modules[module])
        space[function] = call.__get__(space[function])  # like a builtin: no method of a class that has it


def _start(original: Any, *args: Any, **kwargs: Any) -> Any:
    # While the environment can still be changed.
    sys.audit("os.exec", *args, *kwargs.values())
    return original(*args, **kwargs)


def _open_at(original: Any, path: Any, *args: Any, dir_fd: Any = None, **kwargs: Any) -> Any:
    # The event of open does not tell of a directory, so the path does.
    if dir_fd is not None:
        path = join(_real(dir_fd), fsdecode(path))
    return original(path, *args, **kwargs)


def _resolve(original: Any, host: Any, *args: Any, **kwargs: Any) -> Any:
    found = original(host, *args, **kwargs)
    sys.audit("hotenv.found", host, found)
    return found


def _patch_early(kind: Any, name: str) -> None:
    # A method of sockets that looks up a name before its event: so the name goes first, alone.
    original = getattr(kind, name)
    def call(sock: Any, *args: Any) -> Any:
        *others, address = args
        if sock.family in _INTERNET and ":" not in _host(address[0]):
            sys.audit("socket." + name, sock, address)
            found = _socket.getaddrinfo(address[0], None, sock.family)
            address = (found[0][4][0], *address[1:])  # now the check sees where it goes
        return original(sock, *others, address)
    call.__code__ = call.__code__.replace(co_filename="<hotenv>")
    setattr(kind, name, call)


def _guard() -> None:
    # Put _Guarded.text in force in this interpreter, for good, and in every Python that it starts.
    import _posixsubprocess  # noqa: F401  (for those that import it later)
    values = _by_name(_Guarded.text.split("\n"))
    if "sealed" not in values:
        raise RuntimeError("HOTENV_GUARDS is damaged")
    _Guarded.environment = dict(environ)
    sys.dont_write_bytecode |= "fs-readonly" in values
    if "trace" in values:
        import fcntl
        _Guarded.trace = _tried(fcntl.fcntl, 2, fcntl.F_DUPFD_CLOEXEC, 200) or -1  # above what daemons close
    # _execvpe so that one attempt is one refusal, not one for each entry of PATH.
    _patch("os.execve os._execvpe os.posix_spawn os.posix_spawnp posix.execve posix.posix_spawn posix.posix_spawnp "
           "_posixsubprocess.fork_exec", _start)
    _patch("os._exit posix._exit", lambda original, status: original(2 if _Guarded.blocked else status))
    _patch("os.open posix.open", _open_at)
    if "no-network" in values:
        _patch("_socket.getaddrinfo", _resolve)
        ours: Any = type("socket", (_socket.socket,), {"__slots__": ()})
        # The public class, if it is there already, was made from the original.
        for kind in {ours, getattr(sys.modules.get("socket"), "socket", ours)}:
            for name in "connect", "connect_ex", "bind", "sendto":
                _patch_early(kind, name)
        _socket.socket = _socket.SocketType = ours  # type: ignore[misc]
    os.register_at_fork(after_in_child=_Guarded.blocked.clear)
    parts = _Guarded.text.split("\n\n")
    for part in parts:
        sys.addaudithook(_Guarded(part.split("\n")).hook)
    sys.audit("hotenv.alive", parts)  # each hook takes one away
    if parts:  # CPython says nothing when an older hook refuses a new one
        raise RuntimeError("another audit hook refuses the guards")
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _uncaught
    sys.modules.pop("hotenv", None)  # what stays importable is emptied before the program's end
    _carry(environ)


def _carry(env: Any) -> None:
    # Set the two variables that guard a child. Guards that add to ours stay as they are.
    if not env.get("HOTENV_GUARDS", "").startswith(_Guarded.text + "\n\n"):
        env["HOTENV_GUARDS"] = _Guarded.text
    env.pop("PYTHONPYCACHEPREFIX", None)  # what lies there is not sealed
    places = [_Guarded.home, *env.get("PYTHONPATH", "").split(pathsep)]
    # An empty one would be the current directory.
    env["PYTHONPATH"] = pathsep.join(filter(None, dict.fromkeys(places)))


def _uncaught(kind: Any, error: Any, trace: Any) -> None:
    # The last word about an exception, without what led to the target, and what refused.
    kept: Any = []
    while trace:
        if trace.tb_frame.f_code is _become.__code__:
            kept.clear()  # it led to the target
        elif trace.tb_frame.f_globals is not _become.__globals__:
            kept.append(trace)
        trace = trace.tb_next
    for frame in reversed(kept):
        frame.tb_next, trace = trace, frame
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


_LOADER = b"""\
# By hotenv, to guard a Python: site imports it, or it is run where PYTHONPATH is ignored.
import os, sys
try:
    if sys.version_info < (3, 8) or sys.implementation.name != "cpython":
        raise RuntimeError("it is no CPython 3.8 or later")
    if not hasattr(sys, "_hotenv"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import hotenv
        hotenv._Guarded.text, hotenv._Guarded.home = os.environ["HOTENV_GUARDS"], sys.path[0]
        hotenv._guard()
        sys._hotenv = hotenv._become
except BaseException:
    text = "hotenv: cannot guard %s: %s\\n" % (sys.executable, sys.exc_info()[1])
    os.write(2, text.encode("ascii", "replace"))
    os._exit(1)
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]
if __name__ == "__main__":
    sys._hotenv(sys.argv[1], sys.argv[2:])
else:
    del sys.modules["sitecustomize"]
    if sys.version_info < (3, 9) and os.path.isfile(sys.argv[0]):  # later ones make it absolute
        sys.modules["__main__"].__file__ = os.path.abspath(sys.argv[0])
    import sitecustomize  # the one that would have run without us; site expects none
"""


def _become(kind: str, argv: Words) -> NoReturn:
    # Run what argv[0] names as `__main__`: a path, a module, a callable, or -c and a text.
    import importlib
    import operator
    import runpy
    target = argv[0]
    path = abspath(target)
    main = sys.modules["__main__"] = type(sys)("__main__")
    sys.argv[:] = argv
    if not _ISOLATED:
        sys.path.insert(0, dirname(realpath(target)) if kind == "path" else getcwd())
    if kind == "call":
        target, _, attributes = target.partition(":")
        found = operator.attrgetter(attributes)(importlib.import_module(target))
        if callable(found):
            sys.exit(found())
    if kind in ("call", "module"):
        runpy._run_module_as_main(target)  # type: ignore[attr-defined]
        sys.exit()
    source: Any = b"\0"
    if kind == "code":
        path, source = "<string>", sys.argv.pop(1)
    elif isfile(path):
        main.__file__, source = path, _content(path)
    if kind == "path" and b"\0" in source:
        runpy.run_path(target, run_name="__main__")  # a directory, or a zip file
    else:
        exec(compile(source, path, "exec", 0, True), vars(main))
    sys.exit()


# ==== hermetic host ===================================================================================================
# Owns the way in: the guards asked for, and which of them the kernel holds; what a target is, how it is started.
# A Python is started as by itself: PYTHONPATH brings in the loader, which guards it before its first line. One that
# ignores PYTHONPATH is started on the loader. What belongs to this very environment runs in this process, unless that
# has held a session's values. All else is a program: the kernel alone must be able to hold its guards. It is long, in
# lines that session files leave over.

_GUARDS_KEPT = 7 * 86400  # seconds that another version's stays; then what it guards starts no children
# Each guard with what opens it again: all that no lower source can choose, once it is on.
_ALLOWANCES = {"no-network": "no-network allow-localhost allow-domain", "no-subprocess": "no-subprocess",
               "strict-imports": "strict-imports", "fs-readonly": "fs-readonly fs-write"}


def _absolute(word: str) -> str:
    # A guard as it means the same wherever it is read: its path, or its domain, in one spelling.
    option, given, value = word.partition("=")
    if option == "allow-domain":
        import re
        name = _host(value.lstrip("*."))
        if not re.fullmatch(r"[\w.-]+|[\da-f.]*(:[\da-f.]*){2,}", name):
            raise _usage("--allow-domain takes a host or an address, not " + _shown(value))
        return "allow-domain=" + name
    if not given:
        return word
    if not value:
        raise _usage("the path of --" + option + " is empty")
    return option + "=" + realpath(value)


def _guard_words(asked: Namespace) -> Words:
    # The guards of all sources, highest first. They add up; but no allowance counts below the highest source that
    # has its guard: a file in a checkout cannot open what the command line closed.
    _find_marker()  # raises in a removed directory
    flags = environ.get("HERMETIC_FLAGS", "").split()
    flags += map("--profile={}".format, environ.get("HERMETIC_PROFILE", "").replace(",", " ").split())
    if root := environ.get("HERMETIC_FS_ROOT"):
        flags.append("--fs-readonly=" + root)
    sources, words, closed = [asked], [], set()  # closed is what no lower source can open, nor choose
    for where, given in ("HERMETIC_FLAGS", flags), ("pyproject.toml or HERMETIC.toml", _config_flags()):
        if given:  # else a parser would be made for nothing, and takes a millisecond
            sources.append(_parser("hermetic", where=where).parse_args(given))
    for source in sources:
        profiles = " ".join(map(_PROFILES.__getitem__, source.profile))
        own = list(map(_absolute, profiles.split() + source.words))
        words += [word for word in own if word.partition("=")[0] not in closed]
        for guard in _by_name(own):
            closed.update(_ALLOWANCES.get(guard, "").split())
    return words


def _config_flags() -> Words:
    # The guards in ./pyproject.toml, [tool.hermetic], and ./HERMETIC.toml, as options.
    import re
    flags = []
    for path in filter(exists, ("pyproject.toml", "HERMETIC.toml")):
        try:
            text = _content(path).decode()
            if path == "pyproject.toml" and not re.search(
                    r"""(?m)^[^#=\n]*hermetic|^(?![ \t]*\#).*hermetic["']?\s*[].=]""", text):
                continue  # parsing takes 8 ms, and Python 3.11
            import tomllib  # type: ignore[import-not-found]  # where it is older than 3.11
            table = tomllib.loads(text)
            table = table if path == "HERMETIC.toml" else table.get("tool", {}).get("hermetic", {})
            for name, value in table.items():
                for each in value if isinstance(value, list) else [value]:
                    if not isinstance(each, (bool, str)):
                        raise ValueError(name + " takes true, a text or a list of texts")
                    if each:
                        flags.append("--" + name.replace("_", "-") + f"={each}" * (each is not True))
        except (ImportError, OSError, ValueError, AttributeError) as error:
            raise _usage(f"cannot take guards from {path} (TOML, from Python 3.11 on): {_shown(str(error))}") from None
    return flags


def _run_hermetic(guards: Words, target: Words, env: Values,
                  secrets: Strings | None = None, socket_path: str = "") -> NoReturn:
    # Become the target under the guards. Under `run`, `secrets` are the session's names, and the
    # target gets a process image of its own: what --only left out is not in its memory.
    if not _ALLOWANCES.keys() & _by_name(guards):
        _say(f"no guard is on: the target runs as it is (--no-network, ..., see: {_invocation()} hermetic --help)")
    try:
        _Guarded.home = _place_loader()
        kind, *argv = _resolve_target(target, env.get("PATH", os.defpath))
    except OSError as error:
        raise HotenvError(1, f"cannot guard {_shown(str(error.filename or target[0]))}: {error.strerror}") from None
    place = getcwd()
    for word in filter(isfile, argv[:2]):
        place = dirname(realpath(word))
    # No guarded program may touch our directories, nor sessions that can be found from here.
    sealed = [f"/tmp/hotenv-{geteuid()}", _runtime_dir(), environ.get("HOTENV_SOCKET"), socket_path,
              _tried(_read_marker, _find_marker())]
    words = ["sealed=" + abspath(path) for path in sealed if path]
    words += [*guards, "program=" + place, *map("secret={}".format, secrets or ())]
    if "\n" in "".join(words):
        raise HotenvError(1, "a path with a line break in it cannot be guarded")
    _Guarded.text = (environ.get("HOTENV_GUARDS", "") + "\n\n" + "\n".join(words)).lstrip()
    _carry(env)
    if sys.platform == "linux":
        import resource  # a session tells by a limit that we and all that we start are guarded
        hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1] % (1 << 62)  # -1 says that there is none
        hard -= (hard - GUARD_SIGN) % 4096
        if hard < 0:
            raise HotenvError(1, "`ulimit -q` is too low: it is what tells a session who is under guards")
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (hard, hard))
    if kind not in ("program", "python"):
        if secrets is None and not sys.flags.no_site + sys.flags.ignore_environment:  # as -S, -E and -I have it
            raise _Afterwards(_run_here, kind, argv, guards)
        argv = [executable, _Guarded.home + "/sitecustomize.py", kind, *argv]
    path = fsencode(argv[0])
    _guard_in_kernel(guards, path, kind != "program")
    _exec(argv, env, path)  # under --no-subprocess nothing else can be executed but by these very bytes


def _guard_in_kernel(guards: Words, path: bytes, python: bool) -> None:
    # Have the kernel hold what it can, for good. A Python has its hook for the rest; else it is refused. Only `path`
    # can be executed: its address then means nothing more.
    values, rules = _by_name(guards), ["io_uring_setup", *_KEEPS_SIGN]
    left = _ALLOWANCES.keys() & values.keys()
    allowed = {"allow-localhost", "allow-domain"} & values.keys()
    held = left - {"strict-imports", "no-network" if allowed else ""}  # the kernel sees no addresses
    try:
        if not left or sys.platform != "linux" or sys.maxsize < 1 << 32:
            raise OSError  # as an old kernel does
        _ask_c("prctl", 38, 1, 0, 0, 0)  # no_new_privs
        if "fs-readonly" in held:
            given = values.get("fs-write", [])  # one still to be made opens its directory
            there = [each if exists(each) else dirname(each) for each in given]
            writable = [*there, *_DEVICES, *_OF_THE_CALLER]
            if not _tried(_landlock, _WRITE_RIGHTS, 0, writable):
                held.remove("fs-readonly")
            if not given:
                rules += _ATTRIBUTE_CALLS.split()[::3]
        if "no-network" in held:
            rules += _NO_NETWORK
            if not _tried(_landlock, 0, 2, []):  # the right to connect by TCP (Linux 6.7)
                if python:  # it may serve here, and its hook sees it connect
                    held.remove("no-network")
                else:
                    rules.remove(_TCP)
        if "no-subprocess" in held:
            high, low = divmod(_address(path), 1 << 32)
            rules += [f"execve 16 0xffffffff {low} 20 0xffffffff {high}", *_NO_SUBPROCESS]
        _seccomp(rules)
        left -= held
    except (ImportError, OSError, LookupError):
        pass  # an old kernel, a sandbox around us that refuses it, or another machine
    if python:
        text = ", ".join(sorted(left - {"strict-imports"}))  # that is said in its name
        if text and "trace" in guards:
            write(2, f"[hermetic] for Python code only: {text}\n".encode())
        return
    if values.get("fs-readonly", ["/"])[-1] != "/":
        left.add("fs-readonly=PATH")
    if left:
        raise HotenvError(1, f"{_shown(fsdecode(path))} is no Python program, and cannot be held to --"
                             f"{', --'.join(sorted(left))} here: others take --no-network without --allow, "
                             "--no-subprocess, --fs-readonly=/")


def _run_here(kind: str, argv: Words, guards: Words) -> NoReturn:
    # In this process: the target belongs to this environment, and we have held no values.
    if sys.path[0] == dirname(realpath(sys.argv[0])):
        del sys.path[0]  # hotenv's own directory
    before = len(sys.modules)
    _guard_in_kernel(guards, b"", True)
    for name in [*sys.modules][before:]:
        del sys.modules[name]  # else to import ctypes would be no import
    _guard()
    _become(kind, argv)


def _place_loader() -> str:
    # A directory that is closed to the guarded: with the loader, and a copy of some rooms, compiled for this Python, as
    # the guarded cannot do it under --fs-readonly.
    import zlib
    source = _content(__file__)  # by its path: shellenv's function gives a module no loader
    runtime = _runtime_dir()
    home = f"{runtime}/guards-{zlib.crc32(source):08x}"
    compiled = f"{home}/__pycache__/%s.{sys.implementation.cache_tag}.pyc"
    sealed = "HOTENV_GUARDS" in environ
    needed = {"hotenv.py", "sitecustomize.py"}  # a cleaner of /tmp may take any of them
    if not needed.issubset(_tried(listdir, home) or ()) or not sealed and not exists(compiled % "hotenv"):
        import py_compile
        import shutil
        header, *rooms = source.split(b"\n# ==== ")
        copied = (b"limits", b"environment", b"redaction", b"kernel", b"hermetic =")  # these call no others in there
        text = b"\n# ==== ".join([header, *[room for room in rooms if room.startswith(copied)]])
        for entry in os.scandir(runtime):
            found = entry.name.startswith("guards-") and _tried(entry.stat)  # another start may clear it too
            if found and found.st_mtime < time.time() - _GUARDS_KEPT:
                shutil.rmtree(entry.path, ignore_errors=True)
        os.makedirs(home + "/__pycache__", 0o700, exist_ok=True)
        for name, content in ("hotenv", text), ("sitecustomize", _LOADER):
            path, aside = f"{home}/{name}.py", f"{home}/{name}.{getpid()}"
            try:
                with open(aside, "wb") as file:
                    file.write(content)
                rename(aside, path)  # whole, for one that starts meanwhile
            finally:
                _tried(unlink, aside)  # the disk was full
            # Another Python may place it anew, for itself: the same, later.
            py_compile.compile(path, compiled % name, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    if not sealed:
        utime(home)  # in use
    return home


def _resolve_target(target: Words, path: str) -> Words:
    # What a target is, before its command line: "program" or "python", to be executed as it stands;
    # or what this Python runs, in words of _become: "path", "module" or "call".
    name = target[0]
    if "/" not in name and ":" in name:
        return ["call", *target]
    # What this environment has comes first; but a Python is the one that PATH means.
    places = path if _is_python(name) else dirname(executable) + ":" + path
    found = _which(name, places)
    if not found and name.endswith(".py") and isfile(name):
        found = "./" + name
    if not found:
        from importlib import metadata
        from importlib.machinery import PathFinder
        for distribution in metadata.distributions():
            for entry in distribution.entry_points:
                if entry.group == "console_scripts" and entry.name == name:
                    return ["call", entry.value.partition("[")[0].strip(), *target[1:]]
        if not PathFinder.find_spec(name.partition(".")[0], [getcwd(), *sys.path]):
            raise FileNotFoundError(errno.ENOENT, "no program on PATH, and no module of this Python", name)
        return ["module", *target]
    return _resolve_python([found, *target[1:]], path)


def _resolve_python(words: Words, path: str) -> Words:
    # `python3 -X dev script.py`, `python3 -m module`, `python3 -c text`, `python3`; anything else is a program.
    import re
    script, line = words[0], words  # line: what the kernel makes of them, by a script's first line
    if isdir(script) or script.endswith((".py", ".pyz")) and _content(script, 2) != b"#!":
        line = [executable, *words]  # ours for a Python program that has none
    elif not _is_python(script):
        text = fsdecode(_content(script, 4096))
        if first := re.match(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(.+)", text):
            line = [*first[1].split(), *words]
        # How pip and uv write a path that is too long for a first line, or relative to the script.
        if long := re.match(r"#!/bin/sh\n'''exec' (.*) \"\$0\" \"\$@\"\n", text):
            import shlex
            here = shlex.quote(dirname(realpath(script)))
            line = [*shlex.split(long[1].replace('"$(dirname -- "$(realpath -- "$0")")"', here)), *words]
    rest, flags = [*line[1:], "", ""], ""  # the last -X may have no value
    while option := re.fullmatch(r"-(?=.)([bBdEiIOPqRsSuvx]*)(?:[WX](.*))?", rest[0]):
        flags += option[1]
        del rest[:1 + (option[2] == "")]  # -Xdev, or -X dev
    python, what, isolated = _which(line[0], path), rest[0], set(flags) & set("EIS")
    unclear = what.startswith("-") and what not in ("-", "-c", "-m")
    if unclear or isolated and what in ("", "-") or not _is_python(python):
        return ["program", *words]
    if _content(python, 2) == b"#!":  # pyenv, asdf and mise put a script before the real one
        import subprocess
        ask = [python, "-IS", "-c", "import sys; print(sys.executable)"]
        python = fsdecode(subprocess.run(ask, stdout=subprocess.PIPE).stdout).strip()
    here = dirname(executable)
    if line[1:] == words and dirname(python) == here and os.path.samefile(python, executable):
        return ["path", *words]
    if not isolated:  # it reads PYTHONPATH, and imports what lies there
        return ["python", python, *line[1:]]
    kind = {"-c": "code", "-m": "module"}.get(what, "path")
    return ["python", python, *line[1:len(line) + 2 - len(rest)], _Guarded.home + "/sitecustomize.py",
            kind, *rest[kind == "module":-2]]


def _is_python(path: str) -> bool:
    # Is it called python, python3, python3.13 or python3.13t?
    return basename(path).rstrip("dmt0123456789.") == "python"


# ==== policy ==========================================================================================================
# Which commands shell text has, and whether an agent may run them. Knows nothing of a shell that runs.
#
# What a policy looks at: tokens of shell text, and a state. In `go` a command or a reserved word may come, in
# `command` no reserved one, in `rest` arguments, in `loop` what `for` has. It knows no more of the grammar than
# everyday lines need: what may mean something else is refused, `case` too.
_POLICY_DEPTH = 50  # quotes and substitutions within each other: more is no everyday line
_POLICY_PLAIN = r"""[^`$"'\\<>#;&()] | \$(?!\() | \\. | '[^']*' | "(?: [^"`$\\] | \\. | \$(?!\() )*" """
_POLICY_TEXT = r"""\\[^`\n] | \$\{(?![^}]*@P)[^{}()`$"'\\]*\} | \$\(\([^()`$"'\\]*\)\)"""
_POLICY_QUOTED = rf"""(?xs)
  (?P<text> {_POLICY_TEXT} | \\\n | \$(?![({{]) | [^"`$\\]+ ) | (?P<opens> ` | \$\( ) | (?P<closes> ")"""
_POLICY_TOKEN = rf"""(?xs)
  (?P<joins> \\\n ) | (?P<blank> [ \t]+ ) | (?P<comment> \#[^\n]* )
| (?P<heredoc> \d*<<(?!<)(-?)[ \t]*(\\?['"]?)([\w.-]+)['"]?(?=[\s;&|<>)]) )
| (?P<redirect> (?: \d*(?:<<<|<>|>>|>\||[<>]&|<(?![<(])|>(?!\()) | &>>? ) (?: [ \t] | \\\n )* )
| (?P<tests> \(\( (?: [^()`$"'\\] | \$(?!\() | \([^()`$"'\\]*\) )* \)\)
          | \[\[\s (?: (?!\[\[\s) (?: {_POLICY_PLAIN} | [&()] | [<>](?!\() ) )*? \s\]\](?=[\s;&|)]) )
| (?P<function> [\w.:-]+[ \t]*\([ \t]*\) ) | (?P<ends> \n | [;&|]+ )
| (?P<text> {_POLICY_TEXT} | \w+\+?=\( (?:{_POLICY_PLAIN})* \) | \$(?![({{"']) | '[^']*'
          | \$'(?:[^'\\]|\\.)*' | [^ \t\n;&|()<>`\\'"$]+ )
| (?P<opens> \$?" | ` | \$\( | [<>]?\((?!\s*\)) ) | (?P<closes> \) )"""
# The state after a kind of token in a state, or in a state after a reserved word; else it stays as it is.
_POLICY_AFTER = dict([row.split("=") for row in """
ends/command=go ends/rest=go ends/loop=go function/go=go function/command=lost function/rest=lost function/loop=lost
tests/go=rest tests/command=lost tests/rest=lost closes/go=lost closes/command=lost closes/rest=lost closes/loop=lost
go/for=loop loop/do=go loop/{=go go/fi=rest go/done=rest go/}=rest go/if=go go/then=go go/else=go go/elif=go go/do=go
go/while=go go/until=go go/!=go go/{=go go/time=go go/-p=go go/--=go
""".split()])


def _read_commands(text: str, at: int, ends: str, found: Words) -> int:
    # Take down the first word of every simple command, also within substitutions, up to what the last
    # of `ends` closes; the place after it. ValueError: it has lost its way.
    import re
    last = ends[-1:]
    quoted = last == '"'
    state, word = "rest" if quoted else "go", ""
    heredocs: Any = []
    while len(ends) < _POLICY_DEPTH and state != "lost":
        match = re.compile(_POLICY_QUOTED if quoted else _POLICY_TOKEN).match(text, at)
        kind = match and match.lastgroup
        if not match or heredocs and kind in ("opens", "closes") or word and kind == "comment":
            break
        start, at, sign = at, match.end(), match[0]
        if kind == "text":
            word += sign
        elif kind == "opens" and sign != last:
            if sign == "(" and (word or state != "go") or sign == "`" and "`" in ends:
                break
            at = _read_commands(text, at, ends + sign[-1].replace("(", ")"), found)
            if sign == "(":
                state = "rest"
            else:
                word += text[start:at]
        elif kind != "joins":
            state, word = _state_after(state, word, found), "> " * (kind == "redirect")
            if sign == last:
                return at
            if kind == "heredoc":
                heredocs.append(match)
            state = _POLICY_AFTER.get(f"{kind}/{state}", state)
            while sign == "\n" and heredocs:
                dash, quote, end = heredocs.pop(0).group(5, 6, 7)
                body = re.compile(rf"(?ms)(.*?)^{dash and '	*'}{re.escape(end)}$").match(text, at)
                if not body or not quote and re.search(r"`|\$\(", body[1]):
                    raise ValueError  # what it substitutes is run
                at = body.end()
    if at < len(text) or ends or word or state != "go":
        raise ValueError
    return at


def _state_after(state: str, word: str, found: Words) -> str:
    # The state after a word; where a command begins, it is taken down.
    import re
    after = _POLICY_AFTER.get(state + "/" + word)
    if after or not word or state in ("rest", "loop"):
        return after or state
    if re.match(r"> |[A-Za-z_]\w*(\[[^]]*\])?\+?=", word):  # a redirection's sign, an assignment
        return "command"
    # What it expands to would be run; what these four begin is not known here.
    if re.search(r"^(case|coproc|function|select)$|^(?!\[\[?$).*[`${[(*?\n]", word):
        raise ValueError
    found.append(re.sub(r"\\(.)|'([^']*)'|\"", r"\1\2", word))
    return "rest"


def _load_policy(policy: Any) -> Fields:
    # `{"allow": [...], "deny": [...]}` from a file, or as it is. An empty list `allow` allows nothing; none, all.
    import json
    try:
        given = json.loads(_content(policy)) if isinstance(policy, str) else policy
        for name, words in given.items():
            "".join(words)  # TypeError: not each of them is one
            if isinstance(words, str) or name not in ("allow", "deny"):
                raise ValueError
        return given
    except OSError as error:
        raise _system_error(error, "cannot read the policy " + _shown(policy)) from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass  # what is said below
    raise _usage('a policy is JSON like {"allow": ["git", "ls"], "deny": ["sudo"]}')


def _denied(policy: Fields, command: str) -> str:
    # Why the policy does not let the command run, or ''.
    words: Words = []
    if not policy:
        return ""
    try:
        _read_commands(command + "\n", 0, "", words)
    except ValueError:
        return "its commands cannot be told apart"
    for word in words:
        if {word, word.rpartition("/")[2]} & {*policy.get("deny", ())}:
            return word + " is denied"
        if word not in policy.get("allow", words):
            return word + " is not among the allowed"
    return ""


# ==== shell session ===================================================================================================
# A live bash for whoever may use the secrets without seeing them, and one result for each command: masked, bounded,
# audited. It is no sandbox and takes no guards.
# The shell reads from a pipe. A command gets /dev/null, the pipe O and the pipe E as its 0, 1 and 2, and none of the
# shell's other descriptors. On a pipe N the shell says that a command begins, and when it, or (by an EXIT trap) the
# shell, has ended, status, directory, background jobs and exports: a record, which ends with a nonce that the shell
# has not read before, so nothing that is printed can pass for one. A remote shell has two streams: there records
# travel on stdout, and their nonces stand on stderr too.

_SHELL_MAX_OUTPUT = 100_000  # characters of stdout, and of stderr: more than an agent reads
_SHELL_TIMEOUT = 30.0  # seconds for a command that names no limit of its own
_SHELL_GRACE = 2.0  # seconds for an interrupted command to end: then it and the shell are killed
_SHELL_CONNECT = 30.0  # seconds for a shell to start, to answer, or to read a very long command
_SHELL_COMMAND_MAX = 16 << 20  # bytes of one command: bash reads 5 MB a second
_SHELL_RECORD_MAX = 64 << 20  # bytes of one record: as many as `serve` accepts
_SHELL_SETTLE = 0.05  # seconds before an interrupt: bash loses one as it starts a command
_SHELL_PIPE = 1 << 20  # bytes in a pipe, where the system lets us: fewer wake-ups
_SHELL_BASH = "bash --norc --noprofile --noediting +o history -i"
# Each of these would have the shell run, print, log or end something on its own.
_SHELL_DROPPED = ("BASH_ENV PROMPT_COMMAND PS0 PS1 PS2 PS4 TMOUT IGNOREEOF SHELLOPTS BASHOPTS "
                  "BASH_XTRACEFD POSIXLY_CORRECT HISTFILE BASH_FUNC_*").split()

# The shell knows O, E and N as 200, 201 and 202, numbers that no script uses; 203 is where the end of stderr is marked,
# and {X} is the nonce of the record from the EXIT trap. There N may still be closed, as for the command, but bash holds
# a copy to restore it from, close-on-exec, at the descriptor that was the lowest free one from 10 on: __hotenv_begin
# looks for it. The probe finds a `builtin` that is a function now: only in POSIX mode `unset` is found before any. With
# `set -e`, to return a status ends the shell.
_SHELL_HERE = b"exec 202>&%d- 200>&1 201>&2 203>/dev/null >/dev/null 2>&1\n"
_SHELL_THERE = b"exec 200>&3 201>&4 202>&3- 203>&4-\n"
_SHELL_LINES = b"""\
__hotenv_begin %s "$?"; \\builtin eval %s 202>&- </dev/null >&200 2>&201 200>&- 201>&- 203>&-
__hotenv_end %s "$?"
"""
_SHELL_SETUP = b"""\
unset PROMPT_COMMAND PS0 HISTFILE MAILCHECK TMOUT; PS1= PS2= PS4='+ '; set +H; declare -a __hotenv_n=(10)
__hotenv_begin() {
__hotenv_n=10; while [[ -e /dev/fd/$__hotenv_n ]]; do (( ++__hotenv_n )); done
builtin printf '\\0%s\\n' "$1" >&202; builtin printf '\\0%s\\n' "$1" >&203
[[ -o errexit ]] || builtin return "$2"
}
__hotenv_end() {
builtin printf -v __hotenv_probe %s "$1"
if [[ ${__hotenv_probe-} != "$1" ]]; then
POSIXLY_CORRECT=1; unset -f builtin; unset POSIXLY_CORRECT; builtin shopt -u inherit_errexit
fi
builtin unset -v __hotenv_probe PROMPT_COMMAND
{ builtin printf '\\0%s\\0%s\\0' "$1" "$2"; builtin pwd; builtin printf '\\0'; builtin jobs -p
builtin printf '\\0'; builtin export -p; builtin printf '\\0%s\\n' "$1"; } >&"${3:-202}"
[[ ${3-} ]] || builtin printf '\\0%s\\n' "$1" >&203
[[ -o errexit ]] || builtin return "$2"
}
readonly -f __hotenv_begin __hotenv_end
trap '[[ ! -p /dev/fd/202 && ! -S /dev/fd/202 ]] || __hotenv_n=202
[[ ! -p /dev/fd/$__hotenv_n && ! -S /dev/fd/$__hotenv_n ]] || __hotenv_end {X} 0 "$__hotenv_n" 2>/dev/null' EXIT
"""

# What stands beside a shell, and ends all of its session when a pipe ends: we are done with it, or have been killed.
_SHELL_GUARD = """\
read -r line; kill -9 -$1
for round in 1 2 3 4 5 6; do for each in /proc/[0-9]*/stat; do
read -r line <$each && set -- $1 ${line##*) } && [ $5 = $1 ] && each=${each%/stat} && kill -9 ${each#/proc/}
done; done
"""

# A login shell may read ahead: so in one line it says {B}, it is there, and becomes a sh that will say how bash ended.
_SHELL_REMOTE = b"""\
printf '\\0%%s\\n' {B}; exec env PS0= PS1= PROMPT_COMMAND= HOTENV_SHELL={B} sh -c \
'type bash >&2 && exec 3>&1 4>&2 >/dev/null 2>&1; %s; exit $?'
""" % _SHELL_BASH.encode()


class SessionPoisoned(HotenvError):
    """The session has no shell any more and cannot get one: it refuses every command. `.code` is 8."""


class PolicyDenied(HotenvError):
    """The policy does not let this command run; the audit has it as blocked. `.code` is 10."""


class ExecResult:
    """What one command did. Every text in it is masked and cleaned of control sequences."""

    command: str
    stdout: str
    stderr: str
    exit_code: int  # 128+N after signal N, 124 after a time limit
    duration_ms: int
    cwd: str
    truncated: bool  # stdout or stderr is head and tail only
    timed_out: bool  # the time limit ended it, or interrupt() did
    shell_restarted: bool  # it ended with, or before, this command; directory and exports remain
    background: str  # what background jobs printed before this command

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def as_dict(self) -> Fields:
        """The result as a dict, in the order of the fields, ready for JSON."""
        return {**self.__dict__}

    def __repr__(self) -> str:
        return f"ExecResult({self.__dict__})"


class _Kept:
    # A stream, or its beginning and its end, `room` bytes in all.

    def __init__(self, room: int) -> None:
        self.room, self.data, self.size, self.cut = room, bytearray(), 0, False

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.data += data
        if len(self.data) > self.room:
            del self.data[self.room // 4:len(self.data) - self.room // 4]

    def presented(self, redactor: Redactor, limit: int) -> str:
        # As a result shows it: masked, cleaned, and only then cut; `cut`: is something missing?
        data, part = bytes(self.data), self.room // 4
        if self.size == len(data):
            head = tail = _displayed(redactor, data)
            if len(head) <= limit:
                return head
        else:
            head = _displayed(redactor, data[:part], last=False)
            tail = _displayed(redactor, data[-part:], 2 * redactor.longest)
        self.cut = True
        note = f"\n[hotenv: {self.size} bytes in all, the middle is left out]\n"
        return head[:limit // 2] + note + tail[len(tail) - limit // 2:]


def _displayed(redactor: Redactor, data: bytes, first: int = 0, last: bool = True) -> str:
    # `data` as a terminal would show it, without values, nor what may be half of one: what is before `first`, and at
    # the end of what is not the `last`. Masked before and after each step: a value may hold what is taken out, have it
    # between its letters, or be half overwritten.
    import re

    def masked(data: bytes) -> bytes:
        stream = redactor.stream()
        stream.feed(data[:first])  # which keeps the rest in step
        return stream.feed(data[first:]) + stream.flush(last)

    # An interactive bash says that it has no terminal whenever a child dies of a signal.
    data = masked(re.sub(rb"(?m)^bash: \[\d+: \d+ \(\d+\)\] tcsetattr: .*\n", b"", data))
    if re.search(rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", data):
        # Erased lines, control sequences, and characters that control alone.
        data = re.sub(rb"(?m)^[^\n]*(?:\r\x1b\[0?K|\x1b\[2K)"
                      rb"|(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]?|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
                      rb"|\x1b[ -/]*[0-~]?|[\0-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]+|\xc2[\x80-\x9f]|\r(?=\n)",
                      b"", data)
        lines = []
        for line in _decoded(masked(data)).split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part + shown[len(part):]
            lines.append(shown)
        data = masked(_encoded("\n".join(lines)))
    return data.decode("utf-8", "replace")


def _family(shell: int, spared: list[int] | None) -> dict[int, bytes]:
    # All live processes below the shell but the jobs in `spared`, or (None) of its session; names.
    rows: Any = []  # the ids of process, parent, group and, on Linux, session; its name
    if isdir("/proc/self"):
        for number in filter(str.isdigit, listdir("/proc")):
            row = _tried(_content, f"/proc/{number}/stat") or b") X"  # it has ended meanwhile
            name, _, rest = row.rpartition(b")")
            state, *others = rest.split()[:4]
            if state not in b"ZX":
                rows.append([int(number), *map(int, others), name])
    else:
        from subprocess import check_output
        for row in check_output(["ps", "-Ao", "pid=,ppid=,pgid=,ucomm="]).splitlines():
            *numbers, name = row.split(None, 3)
            rows.append([*map(int, numbers), name])
    family, known = {}, [shell]
    for parent in known:  # grows while it is walked
        for pid, above, *groups, name in rows:
            mine = above == parent or spared is None and shell in groups
            if mine and pid not in known and pid not in (spared or ()):
                family[pid] = name
                known.append(pid)
    return family


class _Shell:
    # One bash, or what leads to one elsewhere, and our pipes to it. What comes to stand in `poison` ends each wait.

    def __init__(self, argv: Words, env: Env, remote: bool, poison: Words) -> None:
        import fcntl
        import functools
        import selectors
        import signal
        from contextlib import ExitStack
        from subprocess import DEVNULL, PIPE, Popen
        from types import SimpleNamespace
        self.unsent, self._poison = b"", poison  # for the shell; wait_for() writes it
        self.last = _Job(0)  # the record from the EXIT trap
        hear = None
        if signal.getsignal(SIGINT) == SIG_IGN:  # as behind a `&`: it would stay so
            hear = functools.partial(signal.signal, SIGINT, SIG_DFL)
        # Each pipe from the shell has a tap. Bytes go to its sink until a mark comes, then to that
        # mark's; marks are dropped. They stand in the order in which they come. What may be the
        # beginning of one is held.
        self._selector = selectors.PollSelector()
        taps, ends = [], []
        with ExitStack() as ours, ExitStack() as theirs:
            for _ in range(2 if remote else 3):  # not by Popen: on older Pythons it leaks some when there are no more
                near, far = pipe()
                ours.callback(close, near)
                theirs.callback(close, far)
                _tried(fcntl.fcntl, near, 1031, _SHELL_PIPE)  # F_SETPIPE_SZ, within a quota
                taps.append(SimpleNamespace(open=True, sink=_Kept(0), marks={}, held=b""))
                ends.append(far)
                self._selector.register(near, selectors.EVENT_READ, taps[-1])
            self.process: Any = ours.enter_context(Popen(
                argv, 0, stdin=PIPE, stdout=ends[0], stderr=ends[1], pass_fds=ends[2:], preexec_fn=hear,
                env=env, start_new_session=True))
            ours.callback(self.process.kill)
            guard = ours.enter_context(Popen(
                ["/bin/sh", "-c", _SHELL_GUARD, "hotenv", str(self.process.pid)], stdin=PIPE, stdout=DEVNULL,
                stderr=DEVNULL, cwd="/", env={}, start_new_session=True))
            ours.callback(guard.kill)  # this one first: a pid that is free may be a stranger's
            self.close = ours.pop_all().close
        set_blocking(self.process.stdin.fileno(), False)  # type: ignore[union-attr]
        self.out, self.err, self.notes = (*taps, taps[0])[:3]
        self.arrange = _SHELL_THERE if remote else _SHELL_HERE % ends[2]  # what it is to do first

    def move(self, seconds: float) -> None:
        # Read once what is there, all that a pipe can hold, and wait at most so long for it.
        for key, _ in self._selector.select(seconds):
            tap, piece = key.data, read(key.fd, _SHELL_PIPE)
            data, tap.held = tap.held + piece, b""
            for mark in [*tap.marks]:
                before, found, after = data.partition(mark)
                if found:
                    tap.sink.add(before)
                    data, tap.sink = after, tap.marks.pop(mark)
            at = data.rfind(b"\0", -33)  # a mark is this and 33 more
            if piece and tap.marks and at >= 0:
                data, tap.held = data[:at], data[at:]
            tap.sink.add(data)
            if not piece:  # the end
                tap.open = False
                self._selector.unregister(key.fileobj)

    def drain(self) -> None:
        # Take what the pipes hold by now, not more: a background job may write for ever.
        self.move(0)
        self.move(0)  # a pipe's end shows after what was in it

    def wait_for(self, mark: bytes, deadline: float, stop: Any = None) -> bool:
        # Move bytes until no pipe waits for a mark; or for b"", and send no more, until the shell has ended. False:
        # deadline, `stop` or the end of its pipes came first.
        if not mark:
            self.unsent = b""
            self.process.stdin.close()
        while mark in {*self.notes.marks, *self.err.marks} or not mark and self.process.poll() is None:
            if self._poison:
                raise SessionPoisoned(EXIT_SYSTEM, self._poison[-1])
            left = deadline - monotonic()
            if left <= 0 or stop and stop.is_set() or mark and not self.notes.open:
                return False
            if self.unsent:  # what a pipe has no room for waits; if the shell has ended, its other pipes say so
                self.unsent = self.unsent[_tried(self.process.stdin.write, self.unsent) or 0:]
            # A process's end wakes nobody, nor does room in a pipe: bash takes 64 KiB in 13 ms.
            self.move(min(left, 0.05 if mark and not self.unsent else 0.005))
        return True

    def interrupt(self, job: _Job, jobs: list[int], deadline: float) -> bool:
        # One Ctrl-C for the shell and all below it but live `jobs`; without any, all at one moment. Is it then ready
        # for the next command? Only once it has begun with this: of a line that it still reads SIGINT drops a part, and
        # the rest would run. bash loses one while it starts a command (until `deadline`, and the child until that is
        # the command), or notices its end: once only bash is left of what was told, it and what is new get another.
        shell, spared = self.process.pid, [pid for pid in jobs if _tried(os.getpgid, pid)]
        told: Any = set()
        _tried(kill, shell, SIGCONT)  # somebody may have stopped it
        if not self.wait_for(job.begin, monotonic() + _SHELL_CONNECT):
            return False
        for _ in range(8):
            if self.wait_for(job.end, deadline) or not self.notes.open:
                break
            family = _family(shell, spared)
            if told.isdisjoint(family.items()):
                told.update(family.items())
                if not spared:
                    os.killpg(shell, SIGINT)
                for pid in (shell, *family):  # it may have ended, or be root's by sudo
                    if spared or _tried(os.getpgid, pid) != shell:
                        _tried(kill, pid, SIGINT)
            self.unsent += b"\n\n__hotenv_end %s 124\n" % job.nonce
            deadline = monotonic() + _SHELL_GRACE / 8
        return self.wait_for(job.end, deadline)


class _Job:
    # One command on its way, what has come back, and the marks around it.

    def __init__(self, room: int) -> None:
        self.opening, self.nonce = [urandom(16).hex().encode() for _ in range(2)]
        self.begin = b"\0%s\n" % self.opening
        self.start, self.end = b"\0%s\0" % self.nonce, b"\0%s\n" % self.nonce
        self.out, self.err, self.record = _Kept(room), _Kept(room), _Kept(_SHELL_RECORD_MAX)
        self.status, self.late = 0, False


class ShellSession:
    """A bash that stays: directory, variables and functions are kept from one `exec()` to the next.

        with hotenv.ShellSession(hotenv.fetch()) as shell:
            print(shell.exec("make deploy", timeout=600).stdout)

    `environment` goes into the shell, and is masked in all that comes out, but for names and prefixes (`AWS_*`) in
    `no_mask`. The rest is the caller's, or with `isolated` a short allowlist of it. `remote`: a command (list, or
    shell text) that leads to a shell elsewhere, as `ssh -T host`; there `environment` alone is added, over stdin.
    `cwd`: where to start. `timeout`: seconds for a command without its own limit. `max_output`: characters of each
    stream in a result; more is cut to head and tail. `policy`: a JSON file, or a dict, with lists `allow` and `deny`
    of first words; advice, no boundary. `audit`: a file that gets a line at the start and the end of every command.
    Threads may share it: one command runs at a time, the others wait.
    """

    _shell: _Shell | None = None  # also where __init__() fails early

    def __init__(self, environment: Env | None = None, *, isolated: bool = False,
                 remote: str | Strings | None = None, cwd: str | None = None,
                 timeout: float = _SHELL_TIMEOUT, max_output: int = _SHELL_MAX_OUTPUT,
                 policy: str | Fields | None = None, audit: str | None = None,
                 no_mask: Sequence[str] = ()) -> None:
        import shlex
        import threading
        environment, self._remote = dict(environment or {}), remote is not None
        self._limit, self._timeout = max(0, max_output), _time_limit(timeout)
        if remote is None:
            remote = _SHELL_BASH
        try:
            self._argv = shlex.split(remote) if isinstance(remote, str) else [*remote]
            if not self._argv or isolated and self._remote:
                raise ValueError  # as an open quote does
        except ValueError:
            raise _usage("a remote shell needs a command, and cannot be isolated") from None
        if not _is_environment(environment):
            raise _usage("there is a name or a value that no environment can hold")
        if cwd and not self._remote:
            if not isdir(cwd):
                raise _usage("there is no directory " + _shown(cwd))
            cwd = abspath(cwd)
        self._cwd, self._farewell = cwd or ".", b""
        self.cwd = ""  # after the last command, masked, but for values that are absolute paths
        self._policy = _load_policy(policy or {})
        self._name, self._count, self._audit = urandom(4).hex(), 0, audit
        if audit is not None:
            close(_open_private(audit, "audit file"))
        self._redactor = Redactor(environment, no_mask)
        paths = [name for name, value in environment.items() if value.startswith("/")]  # no secret in a directory
        self._place = Redactor(environment, [*no_mask, *paths]) if paths else self._redactor
        self.unmaskable = self._redactor.unmaskable  # names whose values are not masked
        self._give(environment, isolated)
        # Held while a command runs; a signal handler that calls close() then has it as well.
        self._lock, self._busy, self._owner = threading.RLock(), False, getpid()
        self._stop = threading.Event()
        self._poison: Words = []  # why there is no shell any more, and no new one
        # What jobs print between commands. Cleaned and masked it is shorter: room for more.
        self._background = _Kept(4 * self._limit + 16 * self._redactor.longest + (16 << 10))
        self._jobs: list[int] = []
        self._lost = False  # whether a shell was, and no result has said so yet
        self._ready()

    def _give(self, environment: Env, isolated: bool) -> None:
        # What the shell is started with, and what it is sent then: from afar, all that it is given.
        import shlex
        self._exports = b""
        self._env = {name: value for name, value in _host_environment().items()
                     if not _matches(name, _SHELL_DROPPED)}
        self.omitted: Words = []  # names that the shell cannot take
        for name, value in environment.items():
            if _matches(name, _SHELL_DROPPED) or self._remote and not (name.isascii() and name.isidentifier()):
                self.omitted.append(name)
            elif self._remote:
                self._exports += _encoded(f"export {name}={shlex.quote(value)}\n")
            else:
                self._env[name] = value
        if isolated:
            self._env = build_isolated_env(self._env, environment)

    def __enter__(self) -> ShellSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then the guard does it
            self._end()

    def interrupt(self) -> None:
        """End the command that runs, if any, as its time limit would. For other threads and signal handlers."""
        self._stop.set()

    def close(self) -> None:
        """End the shell and all that runs in its session; a command that is running raises. Again is allowed."""
        self._poison.append("the shell session is closed")
        if getpid() == self._owner:  # in a fork nobody may ever release the lock
            with self._lock:
                if not self._busy:  # or else exec() does it, up the stack from a signal handler
                    self._end()

    def exec(self, command: str, timeout: float | None = None, *, stop: threading.Event | None = None) -> ExecResult:
        """Run one command and wait for its end; `stop` interrupts this very one. Raises PolicyDenied, SessionPoisoned,
        or HotenvError where it cannot be sent or the audit not be written."""
        import threading
        limit = self._timeout if timeout is None else _time_limit(timeout)
        if not _is_environment({"it": command}) or len(_encoded(command)) > _SHELL_COMMAND_MAX:
            raise _usage("a command is at most 16 MiB, without NUL and lone surrogates")
        with self._lock:
            if self._busy:
                raise _usage("a signal handler cannot use the shell that it interrupted")
            if self._poison or getpid() != self._owner:
                raise SessionPoisoned(EXIT_SYSTEM, [*self._poison, "it is another process's"][0])
            self._busy, self._stop = True, stop or threading.Event()
            try:
                return self._audited(command, limit)
            finally:
                self._busy = False
                if self._poison:
                    self._end()

    def _audited(self, command: str, limit: float) -> ExecResult:
        import shlex
        shown, begun = self._redactor(command), monotonic()
        self._count += 1
        if reason := self._redactor(_denied(self._policy, command)):
            self._record("blocked", command=shown, reason=reason)
            raise PolicyDenied(EXIT_REFUSED, "the policy does not allow it: " + _shown(reason))
        self._record("start", command=shown)
        background = self._background
        job, self._background = _Job(background.room), _Kept(background.room)
        try:
            quoted = _encoded(shlex.quote(command))
            if not self._attempt(job, quoted, begun + limit):  # a new shell gets it, once
                self._attempt(job, quoted, begun + limit)
            stdout = job.out.presented(self._redactor, self._limit)
            stderr = job.err.presented(self._redactor, self._limit)
            earlier = background.presented(self._redactor, self._limit)
        except BaseException as error:  # of KeyboardInterrupt too: no other command gets its output
            self._end()
            # The text of others might quote a value.
            self._record("failed", reason=str(error) if isinstance(error, HotenvError) else type(error).__name__)
            raise
        if self._lost and stderr.endswith("exit\n"):
            stderr = stderr[:-5]  # an interactive bash says that it does
        end: Fields = {
            "exit_code": 124 if job.late else job.status, "duration_ms": int((monotonic() - begun) * 1000),
            "cwd": self.cwd, "truncated": job.out.cut or job.err.cut, "timed_out": job.late,
            "shell_restarted": self._lost}
        self._lost = False
        self._record("end", **end)
        return ExecResult(command=shown, stdout=stdout, stderr=stderr, **end, background=earlier)

    def _record(self, event: str, **fields: object) -> None:
        # A line for the audit, whose file is opened anew, as rotation expects. How a command ended may go unsaid.
        import json
        from datetime import datetime, timezone
        if self._audit is None:
            return
        stamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps(
            {"time": stamp, "session": self._name, "id": self._count, "event": event, **fields}) + "\n"
        try:
            with open(_open_private(self._audit, "audit file"), "ab+", 0) as file:
                if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                    line = "\n" + line  # half a line stands there, from when the disk was full
                _write(file.fileno(), line, "the audit file " + _shown(self._audit))
        except HotenvError as error:
            if event not in ("end", "failed"):
                raise
            _say(str(error))

    def _ready(self) -> _Shell:
        # The shell, with the output of background jobs taken; if that has ended a new one, its exports kept.
        import shlex
        if self._shell:
            self._shell.drain()
            if self._shell.notes.open:
                return self._shell
            self._end()
        job = _Job(4096)
        try:
            self._shell = shell = _Shell(self._argv, self._env, self._remote, self._poison)
            shell.notes.marks = {job.begin: _Kept(0), job.start: job.record, job.end: self._background,
                                 shell.last.start: shell.last.record, shell.last.end: _Kept(0)}
            told = {job.end: shell.arrange + _SHELL_SETUP.replace(b"{X}", shell.last.nonce) + b"\n".join([
                self._farewell, b"\\builtin cd -- %s || exit 1" % fsencode(shlex.quote(self._cwd)),
                self._exports, b"__hotenv_end %s \"$PPID\"\n:\n" % job.nonce])}
            if self._remote:
                shell.err.sink, shell.err.marks = job.err, {job.end: self._background}
                told = {job.begin: _SHELL_REMOTE.replace(b"{B}", job.opening), **told}
            for answer, text in told.items():
                shell.unsent += text
                if not shell.wait_for(answer, monotonic() + _SHELL_CONNECT):
                    why = "it gave no answer in time"
                    if not shell.notes.open and shell.wait_for(b"", monotonic() + _SHELL_GRACE):
                        why = f"it ended with status {shell.process.poll()} (it must lead to bash and the directory)"
                    shell.drain()
                    said = job.err.presented(self._redactor, 400).strip()
                    raise HotenvError(EXIT_SYSTEM, f"{why}: {said}".rstrip(": "))
        except (OSError, HotenvError) as error:
            self._end()
            reason = getattr(error, "strerror", None) or error
            self._poison.append(_shown(self._redactor(f"cannot run {self._argv[0]}: {reason}")))
            raise SessionPoisoned(EXIT_SYSTEM, self._poison[-1]) from None
        self._accept(job)
        if self._remote:  # it may not notice our end: what runs on, the next shell ends
            self._farewell = (b"[[ $(</proc/%d/environ) == *HOTENV_SHELL=%s* ]] && \\builtin kill -9 -- -%d"
                              % (job.status, job.opening, job.status))
        return shell

    def _attempt(self, job: _Job, quoted: bytes, deadline: float) -> bool:
        # Send a command, and see it through to a record, to the end of the shell, or of its time.
        # False: the shell had ended before the command began.
        shell, after = self._ready(), self._background
        if self._remote:
            shell.err.marks = {job.begin: job.err, job.end: after}
        else:
            shell.out.sink, shell.err.sink, after = job.out, job.err, _Kept(0)
        # On N nothing stands between a begin and a record; a second record is dropped.
        shell.notes.marks = {job.begin: job.out, job.start: job.record, job.end: after, **shell.notes.marks}
        settled = monotonic() + _SHELL_SETTLE
        shell.unsent += _SHELL_LINES % (job.opening, quoted, job.nonce)
        finished = shell.wait_for(job.end, deadline, self._stop)
        begun, job.late = job.begin not in shell.notes.marks, not finished and shell.notes.open
        if job.late and not self._remote:
            finished = shell.interrupt(job, self._jobs, settled)
        if finished and self._accept(job):
            shell.drain()
            shell.out.sink = shell.err.sink = self._background
            return True
        # It ends, is ended here, or is another program now; what it could still say counts.
        job.late = job.late or not shell.wait_for(b"", deadline, self._stop)
        shell.drain()
        if shell.last.end not in shell.notes.marks:
            self._accept(shell.last)
        job.status = self._end()
        return begun or job.late

    def _accept(self, job: _Job) -> bool:
        # Take over what a record says. One that SIGINT has cut short stands before a whole one.
        try:
            status, cwd, jobs, exports = bytes(job.record.data).rpartition(job.start)[2].split(b"\0")
            job.status, self._jobs = int(status), [*map(int, jobs.split())]
        except ValueError:
            return False  # only code that has meddled with the shell itself can do that
        self._cwd = fsdecode(cwd[:-1]) or self._cwd
        self._exports = b"\\builtin unset -v $(\\builtin compgen -e)\n" + exports  # instead of what it is born with
        self.cwd = _shown(self._place(self._cwd))
        return True

    def _end(self) -> int:
        # End the shell and all that is left of its session; the shell's exit status, 128 and more for a signal.
        shell, self._shell, self._lost = self._shell, None, True
        if not shell or getpid() != self._owner:  # a fork has copies of the pipes, no more
            return 0
        shell.process.send_signal(SIGSTOP)
        for pause in range(20):  # a second at most, until nothing is left: more can only be another user's
            sleep(pause * pause / 2500)  # what is killed may wait for a processor
            family = _family(shell.process.pid, None)
            for pid in family:
                _tried(kill, pid, SIGKILL)
            if not family:
                break
        shell.close()
        status = shell.process.returncode
        return status if status >= 0 else 128 - status


def _time_limit(seconds: float) -> float:
    if not isinstance(seconds, (int, float)) or seconds != seconds:  # as NaN is
        raise _usage("a time limit is a number of seconds")
    return seconds


# ==== mcp =============================================================================================================
# The Model Context Protocol on stdio over shell sessions: one JSON message a line, and nothing else ever on stdout.
# It keeps no snapshot: each session_open fetches one, for that shell and its masks alone. Each command asks the session
# again, which is a use, and shows whether it is there. Each shell has a thread that does its work in order of arrival.

_MCP_REVISIONS = "2024-11-05 2025-03-26 2025-06-18 2025-11-25".split()
_MCP_LINE_MAX = 32 << 20  # bytes of one message: the longest command, escaped
_MCP_SHELLS_MAX = 32  # shells at once: each is a few processes and descriptors
# The answers that are always the same, but for our version, an older revision and the remotes.
# Arguments are checked against tools/list too.
_MCP_ANSWERS = """{"ping": {}, "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
 "serverInfo": {"name": "hotenv", "version": "%s"}, "instructions": "Shells with the user's secrets in their \
environment. Refer to secrets by name ($NAME): values are masked in all output. Open a session, run commands in it, \
close it."}, "tools/list": {"tools": [
{"name": "session_open", "description": "Open a bash with the user's secrets. Returns its id and their names.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": [], "properties": {
  "cwd": {"type": "string", "description": "directory to start in"},
  "isolated": {"type": "boolean", "description": "leave out the user's own environment, but for PATH and such"}}}},
{"name": "session_exec", "description": "Run a command and wait for its end. Returns stdout, stderr, exit_code, cwd as \
JSON, masked. State persists, unless shell_restarted: then only directory and exports do. Start servers with a \
trailing &; the next result has their output as `background`.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": ["session", "command"], "properties": {
  "session": {"type": "string", "description": "id from session_open"},
  "command": {"type": "string", "description": "bash; may have several lines; stdin is empty"},
  "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "description":
              "seconds, default 30; then it is interrupted, exit_code 124"}}}},
{"name": "session_list", "description": "List the open sessions.",
 "inputSchema": {"type": "object", "additionalProperties": false, "required": [], "properties": {}}},
{"name": "session_close", "description": "End a session and everything that runs in it.", "inputSchema": {
 "type": "object", "additionalProperties": false, "required": ["session"], "properties": {
  "session": {"type": "string", "description": "id from session_open"}}}}]}}"""


class _McpServer:
    # The protocol, and the shells by their ids. A HotenvError has a code of JSON-RPC, or is the result of a tool.

    def __init__(self, options: Namespace) -> None:
        import json
        import threading
        self._options, self._output = options, os.dup(1)
        dup2(2, 1)  # whatever prints, prints there
        self._answers = json.loads(_MCP_ANSWERS % __version__)
        self._schemas = {tool["name"]: tool["inputSchema"] for tool in self._answers["tools/list"]["tools"]}
        if options.remote:
            self._schemas["session_open"]["properties"]["remote"] = {
                "type": "string", "description": "where; default: this machine", "enum": sorted(options.remote)}
        self.shells: Fields = {}  # each has a `session`, once it is open, and the `path` of what is behind it
        self.running: Fields = {}  # what cancels each open call, by its id as repr() has it
        self._count, self._writing = 0, threading.Lock()

    def take(self, line: bytes) -> None:
        # Answer a message, or have a thread do it.
        import json
        import threading
        request_id = None
        try:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                raise HotenvError(-32700, "not JSON, or a line of more than 32 MiB") from None
            fields: Fields = message if isinstance(message, dict) else {}
            method, params = fields.get("method"), fields.get("params", {})
            if not method and {"result", "error"} & fields.keys():
                return  # an answer to something that we never ask
            if (fields.get("jsonrpc") != "2.0" or not isinstance(method, str)
                    or type(fields.get("id", 0)) not in (str, int)):
                raise HotenvError(-32600, "no JSON-RPC 2.0 message: method is a string, id a string or an integer")
            request_id = fields.get("id")
            if request_id is None:
                if method == "notifications/cancelled" and isinstance(params, dict):
                    self.running.get(repr(params.get("requestId")), threading.Event()).set()
            elif not isinstance(params, dict):
                raise HotenvError(-32602, "params must be an object")
            elif method == "tools/call":
                self._call(request_id, params)
            elif method not in self._answers:
                raise HotenvError(-32601, "no method " + _shown(method))
            else:
                result = self._answers[method]
                if method == "initialize" and params.get("protocolVersion") in _MCP_REVISIONS:
                    result = {**result, "protocolVersion": params["protocolVersion"]}
                self._send(request_id, result=result)
        except HotenvError as error:
            if error.code > 0:
                self._tell(request_id, str(error))
            else:
                self._send(request_id, error={"code": error.code, "message": str(error)})

    def _send(self, request_id: object, **answer: object) -> None:
        import json
        with self._writing:
            _write(self._output, json.dumps({"jsonrpc": "2.0", "id": request_id, **answer}) + "\n")

    def _tell(self, request_id: object, content: object) -> None:
        # The result of a tool: one text, JSON unless it is a sentence about what went wrong.
        import json
        failed = isinstance(content, str)
        text = content if failed else json.dumps(content, ensure_ascii=False)
        self._send(request_id, result={"content": [{"type": "text", "text": text}], "isError": failed})

    def _call(self, request_id: object, params: Fields) -> None:
        import threading
        from concurrent.futures import ThreadPoolExecutor
        from types import SimpleNamespace
        name, arguments = str(params.get("name")), params.get("arguments") or {}
        schema = self._schemas.get(name)
        if not schema or not isinstance(arguments, dict):
            raise HotenvError(-32602, "no such tool, or its arguments are no object")
        kinds = {str: "string", bool: "boolean", int: "number", float: "number"}
        for word in [*schema["required"], *arguments]:
            expected = schema["properties"].get(word)
            if not expected:
                raise _usage("there is no argument " + _shown(word))
            if word not in arguments:
                raise _usage("the argument " + word + " is missing")
            value = arguments[word]
            if (kinds.get(type(value)) != expected["type"] or value not in expected.get("enum", [value])
                    or word == "timeout" and not 0 < value <= expected["maximum"]):
                raise _usage(f"the argument {word} must be as in {expected}")
        if name == "session_list":
            return self._tell(request_id, [{"session": one.name, "where": one.where, "cwd": one.session.cwd}
                                           for one in [*self.shells.values()] if one.session])
        shell = self.shells.get(arguments.pop("session", ""))
        if name == "session_open":
            if len(self.shells) >= _MCP_SHELLS_MAX:
                raise _usage(f"{_MCP_SHELLS_MAX} sessions are open: close one")
            self._count += 1
            shell = SimpleNamespace(name=f"s{self._count}", where=arguments.pop("remote", "this machine"), session=None,
                                    path="", thread=ThreadPoolExecutor(1))  # it ends when nobody knows the shell
            self.shells[shell.name] = shell
        elif not shell:
            raise _usage("that session is not open: see session_list, session_open")
        if name == "session_close":
            self.close(shell.name)
            return self._tell(request_id, {"closed": shell.name})
        stop = self.running[repr(request_id)] = threading.Event()
        shell.thread.submit(self._work, request_id, shell, name, arguments, stop)

    def close(self, *names: str) -> None:
        # End these shells; what still waits for one finds it closed.
        for name in names:
            shell = self.shells.pop(name, None)
            if shell and shell.session:
                shell.session.close()

    def _work(self, request_id: object, shell: Any, name: str, arguments: Fields, stop: Any) -> None:
        # Open it, or run a command in it. Either is a use of the hotenv session: if that has ended,
        # all that came from it ends too. A cancelled call ends as by a time limit, unanswered.
        options = self._options
        try:
            if stop.is_set() or not shell.session and name != "session_open":
                raise HotenvError(EXIT_SYSTEM, "it could not be opened")
            shell.path = shell.path or _locate(options.socket).path
            environment = fetch("run", ["mcp", name], shell.path, peer_uid=options.peer_uid)
            # What is left of the arguments has the names that a ShellSession knows.
            if shell.session:
                result = shell.session.exec(**arguments, stop=stop).as_dict()
                del result["command"]  # which the agent knows
            else:
                session = shell.session = ShellSession(
                    environment, **arguments, remote=options.remote.get(shell.where), policy=options.policy,
                    audit=options.audit, no_mask=options.no_mask)
                result = {"session": shell.name, "cwd": session.cwd,
                          "secrets": sorted(environment), "unmaskable": session.unmaskable,
                          "not_exported": session.omitted}
        except HotenvError as error:
            result = str(error)
            ended = [each.name for each in [*self.shells.values()] if each.path == shell.path and each.session]
            if error.code == EXIT_UNREACHABLE and ended:
                self.close(*ended)
                result = (f"the hotenv session has ended, and so have {', '.join(ended)}. Ask the user for: "
                          f"{_invocation()} serve < secrets.env; then session_open.")
        except Exception as error:  # its text might quote a value, as a traceback would
            result = getattr(error, "strerror", None) or "internal error: " + type(error).__name__
        if not shell.session:
            self.close(shell.name)
        if not stop.is_set():
            self._tell(request_id, result)
        self.running.pop(repr(request_id), None)


def _serve_mcp(options: Namespace) -> NoReturn:
    # Serve stdin and stdout until stdin ends or a signal comes; then every shell ends too.
    if options.policy is not None:
        options.policy = _load_policy(options.policy)
    options.remote = dict([text.partition("=")[::2] for text in options.remote])
    if "" in [*options.remote, *options.remote.values()]:
        raise _usage("mcp: --remote takes NAME=CMD")
    _harden()
    if options.audit is not None:
        close(_open_private(options.audit, "audit file"))
    if isatty(0):
        _say(f"mcp: waiting for an agent's JSON lines on stdin, see: {_invocation()} help mcp (Ctrl-D ends it)")
    server = _McpServer(options)

    def leave(*_: object) -> NoReturn:
        for signum in _ENDS:
            _signal.signal(signum, SIG_IGN)
        server.close(*server.shells)
        os._exit(0)  # a thread may still wait for a client that does not read

    for signum in _ENDS:
        _signal.signal(signum, leave)
    _signal.signal(SIGCHLD, SIG_DFL)  # ignored, it loses a shell's exit status
    lines, whole = open(0, "rb"), True
    while line := lines.readline(_MCP_LINE_MAX):
        if whole and line.strip():
            server.take(line)
        whole = line.endswith(b"\n")  # of a line that is too long, the beginning is no JSON
    give_up = monotonic() + LAST_WORDS
    while server.running and monotonic() < give_up:  # what has been asked, and is quick, is answered
        sleep(0.01)
    leave()


# ==== terminal, formats ===============================================================================================
# Answers that nobody sees: whatever ends us, the terminal is left as it was. What `dump` prints: each without loss.

_LINE_MAX = 1023 if sys.platform == "darwin" else 4095  # bytes of a typed line: more are cut


def _ask(question: str) -> str:
    # The line that is typed on the terminal, without echo. What it would lose is refused.
    import select
    import termios
    tty = _tried(os.open, "/dev/tty", O_RDWR | O_NOCTTY)
    if tty is None or _tried(os.tcgetpgrp, tty) != getpgrp():
        raise HotenvError(EXIT_SYSTEM, "--prompt asks on a terminal, from its foreground")
    settings = termios.tcgetattr(tty)
    quiet = [*settings]
    quiet[3] = quiet[3] & ~termios.ECHO | termios.ECHONL
    signals = _ENDING | {SIGTSTP}
    awaited: Any = [tty], [], [], SHORT_TICK
    typed = more = None
    while typed is None:
        blocked = pthread_sigmask(SIG_BLOCK, signals)
        try:
            termios.tcsetattr(tty, termios.TCSAFLUSH, quiet)
            write(tty, _encoded(_shown(question) + ": "))
            while typed is None and not signals & _signal.sigpending():
                if select.select(*awaited)[0]:
                    typed = read(tty, 1 << 16)  # a line, as the terminal waits for its end
                    more = select.select(*awaited)[0]
            termios.tcflush(tty, termios.TCIFLUSH)  # half an answer is not for the shell
            termios.tcsetattr(tty, termios.TCSANOW, settings)
        except (OSError, termios.error):
            typed = b""  # the terminal has gone
        pthread_sigmask(SIG_SETMASK, blocked)  # here a signal ends or stops us
    close(tty)
    if more or not typed.endswith(b"\n") or len(typed) > _LINE_MAX or b"\0" in typed:
        raise HotenvError(EXIT_INPUT, f"no answer to {_shown(question)}: one line under {_LINE_MAX} bytes, "
                                      "without NUL; pipe others into serve, in quotes")
    return _decoded(typed[:-1])


# How each writes a variable; and where not all can be carried, how a name, = and its value begin that can.
_FORMATS = {"plain": "{}={}\n", "dotenv": "{}={}\n", "nul": "{}={}\0", "sh": "export {}='{}'\n", "json": "",
            "names": "{}\n", "value": "{1}"}
_CARRIED = {"dotenv": r"[A-Za-z0-9_.-]+=[^\ud800-\udfff]*\Z", "sh": "[A-Za-z_][A-Za-z0-9_]*=",
            "json": r"[^\ud800-\udfff]*\Z", "names": "[^\n]+="}
# What sh, bash or zsh hold read-only, keep for themselves, or take as a number or a list.
_SHELL_OWN = """ARGC ARGV0 BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_LINENO COLUMNS
BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO DIRSTACK EGID EPOCHREALTIME EPOCHSECONDS ERRNO EUID FUNCNAME FUNCNEST GID LINES
GROUPS HISTCHARS HISTCMD HISTSIZE KEYBOARD_HACK KEYTIMEOUT LINENO LISTMAX MAILCHECK OPTIND PIPESTATUS PPID RANDOM SHLVL
SAVEHIST SECONDS SHELLOPTS SRANDOM TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID USERNAME WATCH ZLE_RPROMPT_INDENT _
ZSH_EVAL_CONTEXT ZSH_SUBSHELL aliases argv builtins cdpath commands dirstack dis_aliases dis_builtins dis_functions
dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases fignore fpath funcfiletrace funcsourcetrace
funcstack functions functions_source functrace galiases histchars history historywords jobdirs jobstates jobtexts psvar
keymaps mailpath manpath module_path modules nameddirs options parameters patchars path pipestatus reswords saliases
signals status termcap terminfo userdirs usergroups watch widgets zsh_eval_context zsh_scheduled_events"""


# ==== command line ====================================================================================================
# One function a command, the one place that prints an error and picks an exit code.


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: returns an exit status, becomes another program, or dies of a signal."""
    return _exit_status(_command, list(sys.argv[1:] if argv is None else argv))


def _exit_status(work: Callable[..., int], *args: Any) -> int:
    try:
        return work(*args)
    except _Afterwards as left:
        work, *rest = left.args
    except (HotenvError, OSError, MemoryError) as error:
        _say(getattr(error, "strerror", None) or str(error) or "out of memory")
        return getattr(error, "code", EXIT_SYSTEM)
    except KeyboardInterrupt:
        _die_of(SIGINT)
    except Exception as error:  # a traceback's last line may hold a value: say where, and no more
        import traceback
        *_, (_, line) = traceback.walk_tb(error.__traceback__)
        _say(f"internal error: {type(error).__name__} at line {line}; please report it")
        return EXIT_SYSTEM
    return work(*rest)


def _command(argv: Words) -> int:
    commands: Fields = {"serve": _serve, "run": _run, "dump": _dump, "status": _status, "stop": _stop,
                        "hermetic": _hermetic, "mcp": _serve_mcp, "shellenv": _shellenv}
    if not argv:
        _tried(write, 2, _TOPICS["help"].encode())
        return EXIT_USAGE
    name, topic = [*argv, "help"][:2]
    at = [*argv, "--"].index("--")
    own, target = argv[1:at], argv[at + 1:]  # what stands behind the first `--` is the target's
    if name in commands:
        if "-h" in own or "--help" in own:
            return _write(1, _parser(name).format_help())
        if name not in ("run", "hermetic"):
            return commands[name](_parser(name).parse_args(argv[1:]))
        if target:
            return commands[name](own, target)
        typed = " ".join(map(_shown, ["--", *own])) if own and own[0][:1] != "-" else "[options] -- COMMAND..."
        raise HotenvError(1 if name == "hermetic" else EXIT_USAGE, f"{name}: what to run goes after `--`, "
                          f"options before it: {_invocation()} {name} {typed}")
    if name in ("version", "--version", "-V"):
        return _write(1, "hotenv " + __version__ + "\n")
    if name not in ("help", "--help", "-h"):
        raise _usage(f"no command {_shown(name)}: {_meant(argv)}")
    topic = topic.lstrip("-") or "help"
    if topic in _TOPICS:
        return _write(1, _TOPICS[topic])
    if topic in _COMMANDS:
        return _command([topic, "--help"])
    raise _usage(f"help: nothing about {_shown(topic)}: try {', '.join({**_TOPICS, **_COMMANDS})}")


def _meant(argv: Words) -> str:
    import difflib
    others = {"start": "serve", "up": "serve", "exec": "run", "end": "stop", "kill": "stop", "down": "stop"}
    near = difflib.get_close_matches(argv[0].lower(), [*_COMMANDS, "help", "version"], 1)
    name, rest = others.get(argv[0], "".join(near)), argv[1:]
    if argv[0] == "--" or not name and _which(argv[0], environ.get("PATH", "")):
        name, rest = "run", argv
    if not name:
        return f"there are {', '.join(_COMMANDS)}; see: {_invocation()} --help"
    if name == "run" and "--" not in rest:
        rest = ["--", *rest]
    return f"did you mean `{' '.join(map(_shown, [_invocation(), name, *rest]))}`?"


def _serve(options: Namespace) -> int:
    if options.log is not None and not options.background:
        raise _usage("serve: --log goes with --background; else redirect: 2>> FILE")
    null = 0
    while null < 3:  # a closed one of these would be given to the next file or socket
        null = os.open(os.devnull, O_RDWR)
    if not _ours(geteuid()):
        raise HotenvError(EXIT_SYSTEM, f"uid {OVERFLOW_UID} (nobody) is every stranger here: use another")
    if _find_marker() == MARKER and not options.force:  # raises in a removed directory
        raise _refusal()
    _tried(_ask_c, "prctl", 15, b"hotenv")  # PR_SET_NAME: for `ps`, pkill and `stop`
    _harden()
    if _signal.getsignal(SIGINT) != SIG_IGN:
        _signal.signal(SIGINT, SIG_DFL)  # nothing is there yet to clean up
    _signal.signal(SIGTERM, SIG_DFL)  # which ends a session even where it was ignored
    response = _read_response(options.prompt)
    dup2(null, 0)
    if options.background:  # a child holds the session; we return when it is ready, or with what went wrong
        news, report = pipe()
        child = fork()  # before listen: clients see the credentials of who called that
        if child:
            close(report)
            message = read(news, PIPE_BUF).decode()
            if message and isatty(2) and not options.quiet:
                _say(message)
            return 0 if message else _as_it_ended(waitpid(child, 0)[1]) or EXIT_SYSTEM
        os.setsid()
        dup2(report, 3)
        os.closerange(4, 1 << 16)  # a lock or a pipe of the caller's is not to be held
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    if sys.flags.inspect or frame.f_globals.get("__file__") != __file__:  # somebody goes on after us
        return _hold(options, response)
    import atexit  # a script's syntax tree, 9 MB, is gone after its end: then the session begins
    atexit.register(lambda: os._exit(_exit_status(_hold, options, response)))
    return 0


def _read_response(prompt: bool) -> bytes:
    # The encoded response to all that will ask, read by a child, but for answers: they are typed to us.
    # What a child leaves in its memory goes with it.
    import mmap
    shared = mmap.mmap(-1, MAX_RESPONSE)  # takes as much as is written, and goes when we return
    _signal.signal(SIGCHLD, SIG_DFL)  # ignored, it loses the exit status
    child = prompt or fork()
    if not child:
        _tried(_ask_c, "prctl", 1, 9)  # PR_SET_PDEATHSIG: it does not outlive us
        os._exit(_exit_status(_read_environment, shared))
    import json  # noqa: F401  (what serving needs, while the child reads)
    import socket  # noqa: F401
    if prompt:
        _read_environment(shared, _ask)
    elif status := waitpid(child, 0)[1]:  # it has said why
        raise _Afterwards(_as_it_ended, status)
    return shared[:shared.find(b"\n", 0) + 1]  # one line; find would begin where we have written


def _read_environment(shared: mmap, prompt: Any = None) -> int:
    # Writes the encoded response into memory that is shared.
    import json
    if isatty(0):
        _say("type NAME=value lines, then Ctrl-D. All is seen; to hide a value: NAME=? and --prompt")
    data = bytearray()
    try:
        while piece := read(0, 1 << 20):
            data += piece
            if len(data) > MAX_INPUT:
                raise HotenvError(EXIT_INPUT, f"stdin has over {MAX_INPUT >> 20} MiB: the right file?")
    except OSError as error:
        raise _system_error(error, "cannot read stdin") from None
    if not data:
        _say("stdin is empty, and so is this session: did the left side of the pipe fail?")
    env = resolve_env(_parse_entries(bytes(data)), _host_environment(), prompt)
    response = json.dumps({"env": env}, separators=(",", ":")).encode("ascii") + b"\n"
    if len(response) > MAX_RESPONSE:
        raise HotenvError(EXIT_INPUT, f"as JSON this has over {MAX_RESPONSE >> 20} MiB, which no client takes")
    if isatty(2):
        if not prompt and b'":"?' in response:  # as JSON writes it between a name and a value
            _say("a value that begins with `?` is taken as it is: to be asked for it, use --prompt")
        if environ.get("HOTENV_SOCKET"):
            _say("HOTENV_SOCKET is set: `run` asks that session, not this one, until you unset it")
    shared.write(response)
    return 0


def _refusal() -> HotenvError:
    state = f"its session still answers: use it, or end it with `{_invocation()} stop`"
    try:
        _look(_Session(_read_marker(MARKER)), None, {})
    except HotenvError as error:
        state = "nobody answers" if error.code == EXIT_UNREACHABLE else "it cannot be believed"
        state += f" ({str(error).split(';')[0]})"
    return HotenvError(EXIT_REFUSED, f"{MARKER} is here already: {state}; `{_invocation()} serve --force` replaces it")


def _hold(options: Namespace, response: bytes) -> int:
    # Binds, publishes and serves, and leaves nothing behind.
    import atexit
    _tried(_ask_c, "malloc_trim", 0)  # what the syntax tree took, and --prompt has left, goes back
    wake, received = _caught(_ENDS)
    files = _SessionFiles()
    listener = reason = None
    try:
        listener = files.bind()
        output = 0 if options.log is None else _open_private(options.log, "log")  # 0: /dev/null
        if received:  # not later: with --force, publish ends another session
            raise _Afterwards(_die_of, received[0])
        files.stamp(time.time() + min(options.timeout, options.max_age))
        files.publish(options.force)  # from here on there is a session: a signal ends it
        count = response.count(b'":"')  # which JSON has between a name and a value, and nowhere else
        message = (f"session {files.id} ready: {count} variable{'s' * (count != 1)}, "
                   f"idle timeout {_duration(options.timeout)}")
        if options.background:
            write(3, message.encode())  # fails, and ends us, if the caller has gone
            close(3)
            dup2(output, 1)
            dup2(output, 2)  # from here on, stderr is the log
            os.chdir("/")
        talks = isatty(2) and not options.quiet
        log = _Log(options)
        if talks:
            log.add("hotenv: " + message)
        server = _Server(listener, response, files, log, options.timeout, options.max_age)
        reason = server.run(wake, received)
    except FileExistsError:
        raise _refusal() from None
    except OSError as error:
        raise _system_error(error, "cannot serve this directory by a socket in " + _shown(files.base)) from None
    finally:
        if listener:
            listener.close()  # cleaning up needs a descriptor, and there may be no other left
        files.remove()
        for path in files.made * (not reason):  # of a start that failed, if nobody uses it
            _tried(os.rmdir, path)
    if talks:
        log.add("hotenv: session " + files.id + " " + reason)
    log.close()
    atexit.register(pthread_sigmask, SIG_BLOCK, _ENDS)  # deadly, as the interpreter goes
    return 0


def _run(own: Words, command: Words) -> int:
    host, words = _host_environment(), [*map(_as_utf8, command)]
    if not own:  # the form of every day: argparse would cost 5 ms
        _exec(command, {**host, **fetch("run", words)})
    from functools import partial
    options = _run_options(own)
    try:
        snapshot = fetch("run", words, options.socket, peer_uid=options.peer_uid)
    except HotenvError as error:
        absent = error.code in (EXIT_NO_SESSION, EXIT_UNREACHABLE) or isinstance(error, _NotBelieved)
        if not options.optional or not absent:
            raise
        _say(str(error).split(";")[0] + "; running without one")
        snapshot, options.only, options.no_mask = {}, [], []
    define = _chosen(snapshot, options.only)
    define.update([text.partition("=")[::2] for text in options.define])
    kept = [name for name in host if not options.isolated or _matches(name, options.passed)]
    env = build_isolated_env(host, kept, define, options.bin)
    become = partial(_exec, command, env)
    if options.guards:
        become = partial(_run_hermetic, options.guards, command, env, snapshot, options.socket)
    if not options.mask:
        become()
    _chosen(snapshot, options.no_mask, "--no-mask")
    redactor = Redactor(snapshot, options.no_mask)  # all: it may ask for the rest
    if redactor.unmaskable:
        _say("not masked, too short or an everyday word: " + ", ".join(map(_shown, redactor.unmaskable)))
    return _run_masked(become, redactor)


def _run_options(own: Words) -> Namespace:
    options = _parser("run").parse_args(own)
    options.passed = vars(options)["pass"]  # no name in Python
    guarded = options.profile or _ALLOWANCES.keys() & _by_name(options.words)
    wrong = {"no guard is on: see hotenv hermetic --help": options.words and not guarded,
             "--pass goes with --isolated": options.passed and not options.isolated,
             "--define takes NAME=VALUE": any([text.find("=") < 1 for text in options.define]),
             "--bin takes a directory, and an empty name would be this one": "" in options.bin,
             "--no-mask goes with --mask": options.no_mask and not options.mask}
    for message in filter(wrong.get, wrong):
        raise _usage("run: " + message)
    options.guards = guarded and _guard_words(options)
    return options


def _chosen(snapshot: Env, only: Strings, option: str = "--only") -> Values:
    # The variables that an option names; a name that fits none is a usage error.
    chosen: Values = {}
    for each in only or ["*"]:
        found = {name: snapshot[name] for name in snapshot if _matches(name, [each])}
        if only and not found:
            raise _usage(f"{option}: the session has no {_shown(each) or 'empty name'}, "
                         f"but {', '.join(map(_shown, snapshot)) or 'nothing at all'}")
        chosen.update(found)
    return chosen


def _dump(options: Namespace) -> int:
    import json
    import re
    form = "json" if options.json else options.format
    _harden()  # a core of ours would hold the values
    env = _chosen(fetch("dump", (), options.socket, peer_uid=options.peer_uid), options.only)
    if form == "value" and len(env) != 1:
        raise _usage(f"dump: --format value prints one, not {len(env)}: --only NAME")
    text = ""
    for name, value in env.items():
        if form == "sh" and name in _SHELL_OWN.split() or not re.match(_CARRIED.get(form, ""), name + "=" + value):
            raise _usage(f"dump: {form} cannot carry {_shown(name)}: try --only, or --format nul")
        if form == "sh":
            value = value.replace("'", "'\\''")
        elif form == "dotenv" and "\r" in value:  # only "..." has an escape for it
            value = '"' + re.sub(r'["\\]|\$(?={)', r"\\\g<0>", value).replace("\r", "\\r") + '"'
        elif form == "dotenv":  # as parse_dotenv reads it
            value = "'" + re.sub(r"['\\]", r"\\\g<0>", value) + "'"
        text += _FORMATS[form].format(name, value)
    if form == "json":
        text = json.dumps(env, indent=2, ensure_ascii=False) + "\n"
    return _write(1, text)


def _server_of(session: _Session, peer_uid: int | None) -> tuple[socket.socket, int, str]:
    # A connection, the server's pid, and its state as in `ps` (T: stopped), or '' if it is not seen, or not ours.
    sock = _connect(session, peer_uid)
    pid = _peer(sock)[0]
    row = (_tried(_content, f"/proc/{pid}/stat") or b"").partition(b" (hotenv) ")[2].decode()
    if sys.platform != "linux":
        row = os.popen(f"ps -o state=,command= -p {pid} | grep hotenv").read()
    return sock, pid, row[:1]


def _look(session: _Session, peer_uid: int | None, about: Fields) -> None:
    # Notes what can be told of a session without asking it; raises why it is not live.
    about["socket"], link = session.path, session.path[:-5]
    try:
        about.update(directory=readlink(link), since=lstat(link).st_mtime)
        marker = join(about["directory"], MARKER)
        if _tried(_read_marker, marker) == session.path:
            about["marker"] = marker
        about["ends"] = os.stat(session.path).st_mtime
    except OSError:
        pass  # a forwarded socket, or one that is gone
    sock, pid, state = _server_of(session, peer_uid)
    sock.close()
    if state == "T":
        raise session.unreachable(OSError(0, "its process is stopped (Ctrl-Z?): `fg`, or `stop` to end it"))
    about.update(pid=pid if state else None, live=True)  # without a state, somebody forwards for it


def _all_sessions(options: Namespace) -> list[Any]:
    # Every session of ours that left a socket, live or dead.
    import glob
    if options.socket is not None:
        raise _usage("--all is every session, --socket names one: take either")
    paths = []
    for base in {_runtime_base(), f"/tmp/hotenv-{geteuid()}", f"/run/user/{geteuid()}/hotenv"}:
        if (found := _tried(os.stat, base)) and _ours(found.st_uid):
            paths += glob.glob(f"{glob.escape(base)}/{'[0-9a-f]' * 8}.sock")
    return [*map(_Session, sorted(paths))]


def _status(options: Namespace) -> int:
    import json
    found = []
    failure: Any = HotenvError(EXIT_NO_SESSION, "no session of yours is live")
    sessions = _all_sessions(options) if options.all else [None]  # None: the nearest
    for session in sessions:
        found.append({"live": False, **dict.fromkeys("directory socket marker pid since ends".split())})
        try:
            _look(session or _locate(options.socket), options.peer_uid, found[-1])
            failure = None
        except HotenvError as error:
            failure = failure if options.all else error
    if options.quiet:
        return failure.code if failure else 0
    if options.json:
        _write(1, json.dumps(found if options.all else found[0], indent=2) + "\n")
    elif options.all or not failure:
        _write(1, "\n".join(map(_status_lines, found)))
    if failure:
        raise failure
    return 0


def _status_lines(found: Fields) -> str:
    live = found.pop("live")
    text = "live\n" if live else "dead\n"
    for key, value in found.items():
        if isinstance(value, float):  # since, ends
            left = int(value - time.time())
            value = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
            value += f", in {_duration(left)}" * (live and left > 0)
        text += f"{key:<10} {_shown(str(value or 'unknown'))}\n"
    return text


def _stop(options: Namespace) -> int:
    sessions = _all_sessions(options) if options.all else [_locate(options.socket)]
    if not sessions:
        raise HotenvError(EXIT_NO_SESSION, "no session of yours is left: nothing to stop")
    status = 0
    for session in sessions:
        try:
            _end_session(session, options.peer_uid)
        except HotenvError as error:
            if options.all and error.code == EXIT_UNREACHABLE:
                about: Fields = {"marker": ""}
                _tried(_look, session, options.peer_uid, about)  # it tells where the marker is
                _tried(unlink, about["marker"])
                _remove_socket(session.path)
            else:
                _say(str(error))
                status = error.code
    return status


def _end_session(session: _Session, peer_uid: int | None) -> None:
    shown, (sock, pid, state) = _shown(session.path), _server_of(session, peer_uid)
    if state:
        try:
            kill(pid, SIGTERM)
            kill(pid, SIGCONT)  # a stopped one would wait with its end
        except ProcessLookupError:
            pass  # it has ended meanwhile
        except PermissionError:
            raise HotenvError(EXIT_SYSTEM, "not yours to end: who serves " + shown) from None
    elif exists(session.path):  # else it has just ended
        raise HotenvError(EXIT_SYSTEM, f"{shown} is forwarded, of another pid namespace, or hidden in /proc (process "
                                       f"{pid} answers): run `stop` where the session was started")
    _tried(sock.recv, 1)  # the connection ends with the process, all cleaned up
    sock.close()
    give_up = monotonic() + EXCHANGE_TIME
    while exists(session.path):
        if monotonic() > give_up:
            raise HotenvError(EXIT_SYSTEM, "it was told to end and has not: the session at " + shown)
        sleep(0.005)


def _shellenv(options: Namespace) -> int:
    import shlex
    # By the loader that `import` has, so that a .pyc serves; by its path, so that it is this file.
    program = ("import sys; from _frozen_importlib_external import SourceFileLoader as Loader; "
               "hotenv = sys.modules['hotenv'] = type(sys)('hotenv'); "
               f"hotenv.__file__ = {realpath(__file__)!r}; "
               "Loader('hotenv', hotenv.__file__).exec_module(hotenv); sys.exit(hotenv.main())")
    words = shlex.join([executable or "python3", "-I", "-S", "-c", program])
    text = f'hotenv() {{ {words} "$@"; }}\n'
    if options.shell == "fish":
        text = "function hotenv; " + words.replace("\\", "\\\\") + " $argv; end\n"
    return _write(1, text)


def _hermetic(own: Words, target: Words) -> int:
    # Every error of ours is 1 here: 2 says that something was blocked.
    import gc
    gc.disable()  # what follows is imports, and an exec: it would look for garbage for 0.7 ms
    try:
        _run_hermetic(_guard_words(_parser("hermetic").parse_args(own)), target, _host_environment())
    except HotenvError as error:
        error.code = 1
        raise
    finally:
        gc.enable()


_TOPICS = {"help": r"""usage: hotenv COMMAND [options]; see hotenv COMMAND --help

everyday:
  serve < secrets.env     hold NAME=value lines in memory for this directory, 5 idle minutes
  run -- COMMAND...       run a command with them, from here or below
  status                  is there a session, and until when
  stop                    end it
  dump                    print what it holds

advanced:
  hermetic -- TARGET...   run a program without network, processes or writes
  mcp                     shells for an agent that must not see the values
  shellenv                a shell function `hotenv` that starts fast
  help [TOPIC], version   masking, hermetic, mcp, dotenv, sessions, or a command
""", "sessions": r"""A container gets one socket, and no more:
    SOCKET=$(cut -d= -f2- .hotenv)
    docker run --rm -v "$SOCKET:/s.sock" -v "$PWD/hotenv.py:/hotenv.py:ro" python:3 \
        python3 /hotenv.py run --socket /s.sock --peer-uid "$(id -u)" -- ./test.sh
Another host: ssh forwards the socket to a directory there that is yours alone. `stop` it here.
    ssh host 'mkdir -p -m 700 ~/.hotenv-forward && rm -f ~/.hotenv-forward/s.sock'
    ssh -o ExitOnForwardFailure=yes -R /home/me/.hotenv-forward/s.sock:"$SOCKET" host
    host$ hotenv run --socket ~/.hotenv-forward/s.sock -- ./deploy.sh
""", "dotenv": r"""[export] NAME=value; names are letters, digits, _ . and -. Blanks around them
do not count; # begins a comment at a line's start or after a blank; the last of several wins.
'...' is literal, but for \\ and \'; "..." knows \n \r \t \\ \" \' \a \b \f \v; both may span
lines. --prompt asks for a bare ?text, and for NAME=? by NAME. $NAME is literal. ${NAME} is what
an earlier line set, else what `serve`'s environment has, else empty; :-, -, :+, +, :?, ? work
as in a shell, and nest. A malformed line refuses all; so do a name without =, unless exported
after its definition, an odd ${ (\${ is literal), NUL, bad UTF-8, 64 MiB of references.
""", "hermetic": r"""Linux (seccomp, Landlock) guards any program and all it starts; in a Python
an audit hook also knows names and paths. Where Linux cannot (not x86-64, aarch64 or riscv64, an
old one, some containers) a Python has its hook alone, as --trace says; others are refused.
--no-network. Kernel: sockets but unix, netlink and TCP; connecting by TCP (before Linux 6.7 all
  TCP, but for a Python); io_uring. Hook: looking up names, listening for other machines.
  Neither: unix sockets by path (docker.sock), connections that are open already.
--allow-localhost, --allow-domain D: for a Python alone. Where clouds hand out credentials
  (169.254.169.254, ...), only that very name opens it.
--no-subprocess. Kernel: fork, exec; threads stay. Neither: asking systemd, docker or cron to
  start something. A script of `#!/usr/bin/env node`: -- node script.js.
--fs-readonly[=PATH], --fs-write PATH. Kernel: writing (Linux 6.2), but below --fs-write, to
  /dev/null and its like, /dev/shm, stdout, stderr; without --fs-write chmod and chown too.
  Hook: reads outside PATH (=/ allows all; sqlite's ATTACH and readline are not seen); others
  take =/ alone.
Any guard: sessions do not answer, sudo gains nothing, 32-bit programs are killed, nobody sets
`ulimit -q`. Children drop the hook, not the kernel's part, by PYTHONPATH=... in a shell,
`python -I`, -E or -S, `env -i`, or as another user. Code that looks for the hook can get round
it. Exit status 2: the first process's hook blocked something, even if the program went on; its
own may be 2, too. What only the kernel refused, a child was refused, or came before an exec
does not show. Not held: tracing another program of yours (held by --no-network, --fs-readonly),
hotenv's own files below --fs-write PATH (/tmp). Targets: a command, a path, `python3 ...`,
module, pkg.module:callable.
""", "mcp": r"""Shells for an agent that must not see the values. When their session has ended, the
next call closes them all. Revisions 2024-11-05 to 2025-11-25. For .mcp.json, Claude Desktop,
Cursor, Gemini CLI (VS Code: "servers", "type": "stdio"):
    {"mcpServers": {"hotenv": {"command": "sh",
        "args": ["-c", "cd /path/to/project && exec python3 hotenv.py mcp"]}}}
--policy: {"allow": ["git", "make"], "deny": ["sudo"]}, or one of them: first words of all
simple commands; what is unclear ($CMD, case) is refused. Advice: make and $((x)) run anything.
--audit: masked, 0600, through no link; a command whose start cannot be written does not run.
--remote web="ssh -T web.example": where else the agent may open a shell.
Commands have no terminal and an empty stdin. A time limit (30 s) is one Ctrl-C, and 2 s later a
kill: a new shell has the old one's directory and exports, and the result says shell_restarted.
Daemons (setsid, docker, tmux) outlive their shell. It is no boundary: who runs commands can send
secrets anywhere. Give an agent what it may use.
""", "masking": r"""`run --mask`, mcp, ShellSession, Redactor show a session's value, also what --only left out, as
[hidden:NAME]: as it is, in base64 (at any offset, URL-safe too), hex, percent-encoding, JSON,
HTML, shell quoting, Python's repr; of several lines, also each of 8 or more characters; of 4 to
7 characters, as whole words. Seen are a piece of a value, its reverse, gzip, one letter a line,
a short word right behind a colour code, upper-case hex, wrapped base64 and hex but for a value
at their start, and all else. Output comes at once, but for what may begin a value; what comes
after the command's end is lost. Not masked, but named on stderr: up to 3 characters, numbers of
up to 5 digits, the allowlist of --isolated, and, in whatever case:
""" + _NO_SECRETS}


if __name__ == "__main__":
    sys.exit(main())
