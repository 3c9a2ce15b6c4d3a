#!/usr/bin/env python3
"""hotenv keeps secrets in one process's memory for a short while and hands them to what you run.

    printf 'API_KEY=abc123\\n' | python3 hotenv.py serve --background
    python3 hotenv.py run -- printenv API_KEY

One file, standard library only, Python 3.8 and later, Linux and macOS.
"""
#
# It protects from secrets in files, in argv, in logs, and in memory for longer than they are needed;
# not from root, swap, a child that prints what it got, and any process of the same user that asks the
# server itself. There is no authentication beyond the file system: who can connect to the socket is
# trusted (and who answers is checked).
#
# Invariants, each with a test that fails without it:
#   1. No value is ever, by our doing, on an argv, in a log, an error, a traceback, a file or in /proc.
#   2. Nothing is created before the whole input has parsed; a refused start leaves nothing.
#   3. Expire first, then serve, on a clock that counts suspend. After the deadline no value leaves.
#   4. The snapshot is immutable: its response is encoded once, a request costs a send.
#   5. No client can hold up another, the timers or the signals.
#   6. Only a successful request, fully handed to the kernel, resets the idle timer; log line and time
#      stamp come before the connection is closed, so they are there when `run` returns.
#   7. We remove only what is ours; with --force also an old socket that lies where ours lie.
#   8. `run` is exec: same process, terminal, signals and status, and nothing of ours on its output.
#   9. A marker may lie, and so may a socket: both count only if they are ours or root's.
#  10. What is not ours is escaped before a terminal or a log sees it.
#  11. A command imports only what it needs; importing hotenv changes nothing; no check is an assert.
#  12. One copy of the values lives in the server: the encoded response.
#
# The rooms, in the order in which data flows; each calls only rooms above it: limits and errors,
# dotenv, environment, session files, protocol, server, client, launch, redaction, masked launch,
# kernel guards, hermetic, hermetic host, shell session, mcp, terminal, formats, command line.

from __future__ import annotations

import sys

# A script's directory (or, under -m, the current one) stands first on the path: a json.py that
# lies beside a vendored copy must not be taken for the standard library's.
if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]

import errno
import os
import stat
import time

# On the path of `run` stand the C halves of socket, signal and json: with the public ones an
# installed `run` costs 8 ms over the interpreter instead of 1.3. All else imports the public ones.
try:
    import _signal  # type: ignore[import-not-found]
    import _socket
    from _json import encode_basestring_ascii as _json_quoted, make_scanner as _json_scanner
except ImportError:  # an interpreter that is built otherwise
    import signal as _signal  # type: ignore[no-redef]
    import socket as _socket  # type: ignore[no-redef]
    from json import JSONDecoder
    from json.encoder import encode_basestring_ascii as _json_quoted

    def _json_scanner(rules: Any) -> Any:  # type: ignore[no-redef]
        decoder: Any = JSONDecoder(parse_int=rules.parse_int, parse_float=rules.parse_int)
        return decoder.scan_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import re
    import socket
    import threading
    from typing import Any, Callable, Iterable, Iterator, Mapping, NoReturn, Sequence

__version__ = "1.1.0"

# ==== limits and errors ===============================================================================================
# Every limit with its reason, the exit codes, the one exception that ends a command, and how words are shown.

MAX_INPUT = 64 << 20  # bytes of dotenv text: far above any real file, far below what hurts
MAX_EXPANSION = 64 << 20  # characters of references: doubling sixty times is one short file
MAX_NESTING = 64  # references within defaults: deeper is a mistake, and recursion must end
MAX_REQUEST = 256 << 10  # bytes: JSON of any shape that fits costs the others less than 0.1 s
MAX_UNFINISHED = 16 << 20  # bytes of all incomplete requests together
MAX_RESPONSE = 256 << 20  # bytes of an answer that a client reads
MAX_MARKER = 8 << 10  # bytes: one path
MAX_LOG_BACKLOG = 1 << 20  # bytes of log lines that wait for a stderr that nobody reads
MAX_DURATION = 366 * 86400.0  # seconds: a session is short-lived
PIPE_BUF = 512 if sys.platform == "darwin" else 4096  # bytes that go into a pipe in one piece
DESCRIPTORS = 4096  # soft limit that the server asks for: a connection is one descriptor
BATCH = 128  # connections accepted in one go, before the timers are looked at again
BACKLOG = 4096  # pending connections; the system lowers it to its own limit
IDLE_TIMEOUT = 300.0  # seconds: the specification's default
REQUEST_TIME = 5.0  # seconds for a request to be complete: they are sent at once
ANSWER_TIME = 30.0  # seconds without progress before a client that does not read is dropped
EXCHANGE_TIME = 10.0  # seconds that a client gives connecting and exchange together
LOCK_TIME = 1.0  # seconds to wait for a lock: it is a courtesy, nobody may hold us up
LAST_WORDS = 1.0  # seconds that the end of a session waits for whoever reads its log
TICK = 10.0  # seconds: the selector's own clock stands still during suspend, ours does not
SHORT_TICK = 0.1  # seconds until the next try, where nothing would wake us
GUARD_SIGN = 1117  # a hard limit of RLIMIT_MSGQUEUE that is this modulo 4096 marks the guarded
OVERFLOW_UID = 65534  # what a user namespace that maps only some ids shows for every stranger
SUN_PATH = 104 if sys.platform == "darwin" else 108  # bytes of a socket's address, with its NUL

EXIT_USAGE, EXIT_NO_SESSION, EXIT_UNREACHABLE = 2, 3, 4
EXIT_INPUT, EXIT_SYSTEM, EXIT_ARTIFACT, EXIT_REFUSED = 7, 8, 9, 10


class HotenvError(Exception):
    """What ends a command: `code` is the exit status, `str()` the message without "hotenv: "."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _NotBelieved(HotenvError):
    """What was found is somebody else's: for `run --optional` that is no session."""


class _Killed(BaseException):
    """Holds the signal that this process is to die of once everything is cleaned up."""


class _Afterwards(BaseException):
    """Holds what is to be done once nothing of ours is on the stack."""


def _die_of(signum: int) -> NoReturn:
    try:
        _signal.signal(signum, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (signum,))
    except OSError:
        pass  # SIGKILL, or one that the C library keeps for itself: it was not handled, not blocked
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # the first process of a container cannot be killed so


def _encoded(text: str) -> bytes:
    """The bytes that text of the environment stands for, whatever the locale."""
    return text.encode("utf-8", "surrogateescape")


def _shown(text: str) -> str:
    """`text` as a terminal or a log may see it: what is not printable as its Python escape."""
    if not text.isprintable():
        text = "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])
    return text


def _duration(seconds: float) -> str:
    """5m, 1h30m, 0.5s: as `serve --timeout` reads it."""
    text = ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            text += f"{int(seconds // size)}{unit}"
            seconds %= size
    if seconds or not text:
        text += f"{seconds:.10g}s"
    return text


def _system_error(error: OSError, doing: str) -> HotenvError:
    return HotenvError(EXIT_SYSTEM, f"{doing}: {error.strerror or type(error).__name__}")


def _say(message: str) -> None:
    """A line on stderr. That it is closed, broken or full is to change no exit status."""
    if sys.stderr is None:  # closed: print() would take stdout instead
        return
    try:
        print("hotenv: " + message, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = None  # else Python flushes it at its end, and makes that the exit status


def _write(descriptor: int, text: str) -> int:
    """All of it; a reader that has gone is no error, a full disk is one."""
    left = memoryview(_encoded(text))
    try:
        while left:
            left = left[os.write(descriptor, left):]
    except BrokenPipeError:
        pass
    except OSError as error:
        raise _system_error(error, "cannot write the output") from None
    return 0


def _unlink(path: str, directory: int | None = None) -> None:
    try:
        os.unlink(path, dir_fd=directory)
    except OSError:
        pass  # it is gone, which is what was asked for, or stays, which nobody here could mend


def _invocation() -> str:
    """How the user called us, as it can be typed again."""
    script = sys.argv[0] if sys.argv else ""
    if os.path.basename(script) == os.path.basename(__file__):
        return f"python3 {_shown(script)}"
    return "hotenv"


def _parser(command: str, summary: str, example: str = "") -> argparse.ArgumentParser:
    """A parser of one command's options, which raises HotenvError for wrong words."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            import difflib
            hint = f"see: {_invocation()} {command} --help"
            unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].partition("=")[0]
            near = difflib.get_close_matches(unknown, self.format_help().split(), 1)
            if near and unknown.startswith("-"):
                hint = f"did you mean {near[0].strip('[],')}?"
            elif unknown and command == "serve":
                hint = f"its input comes from stdin: {_invocation()} serve < secrets.env"
            raise HotenvError(EXIT_USAGE, f"{command}: {_shown(message)}; {hint}")

        def print_help(self, file: Any = None) -> None:
            _write(1, self.format_help())

    return Parser(prog=f"hotenv {command}", usage=f"hotenv {command} [options]", description=summary,
                  epilog=f"example:\n{example}", allow_abbrev=False, formatter_class=lambda prog:
                  argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=80))


# ==== dotenv ==========================================================================================================
# Text into entries, or one error with its line and column. Knows nothing of files, sockets or the
# environment.
#
# An entry is (name, value). A str is a literal, a _Question one that begins with `?`, a _Template
# holds references. Errors show a position and, once `key =` has been read, the key; never any other
# piece of the text, which may be the tail of a secret.

# One statement, to the end of its line. Groups: 1 export, 2 the quote around a name, 3 the name,
# 4 a "..." value, 5 a '...' value, 6 a bare one. What it does not match it matches as nothing: a
# mistake, or a quoted value that is long (find() is faster there) or has more than 99 escapes, each
# of which costs the matcher a frame. No two neighbouring repeats share a character: it is linear.
_STATEMENT = r"""(?x) \s* (?: \Z | (export[^\S\n]+)? (?:
    \#[^\n]* (?:\n|\Z)
  | (?(1)|(?!export[^\S\n])) ('?) ([A-Za-z0-9_.-]+) \2 [^\S\n]* (?:
      = [^\S\n]* (?: "( [^"\\]{0,999} (?:\\[\s\S][^"\\]{0,999}){0,99} )"
                  | '( [^'\\]{0,999} (?:\\[\s\S][^'\\]{0,999}){0,99} )' )
        [^\S\n]* (?:\#[^\n]*)? (?:\n|\Z)
    | = (?! [^\S\n]* ["'] ) ([^\n]*) (?:\n|\Z)
    | (?:\#[^\n]*)? (?:\n|\Z) ) ) ) | """
_LONG = r"""\s*(export[^\S\n]+)?(?(1)|(?!export\s))('?)([A-Za-z0-9_.-]+)\2[^\S\n]*=[^\S\n]*(["'])"""
_NAMED = r"\s*(export[^\S\n]+)?('?)(?P<name>[A-Za-z0-9_.-]*)(\2)?[^\S\n]*(?=([\n#]|\Z)?)"  # matches anything
_REFERENCE = r"([A-Za-z0-9_.]+)(?:(:?)([-+?])|(?=\}))"
_ESCAPES = {r"\\": "\\", r"\'": "'", r"\"": '"', r"\a": "\a", r"\b": "\b", r"\f": "\f",
            r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\v": "\v"}


class _Question(str):
    """A bare value that begins with `?`: a literal, unless somebody is there to be asked."""


class _Template:
    """A value with references: strings, and (name, colon, operator, where it is, parts of its word)."""

    def __init__(self, raw: str, place: tuple[str | None, int, str]) -> None:
        self.raw, self.place = raw, place  # the text that it stands in (or None), its position there, its key
        self.parts: list[Any] = []

    def error(self, at: int, reason: str) -> HotenvError:
        text, start, key = self.place
        if text is None:
            return HotenvError(EXIT_INPUT, f"{key}: {reason} at character {at + 1}")
        return _dotenv_error(text, start + at, f"{reason} in the value of {key}")


def _parse_entries(source: str | bytes) -> Iterator[tuple[str, str | _Template]]:
    """The (name, value) of each statement; HotenvError 7 at the first that is none."""
    import re
    text = source.decode("utf-8", "surrogateescape") if isinstance(source, bytes) else source
    text = text[text.startswith("\ufeff"):]  # a BOM
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    wrong = None if text.isascii() else re.search("[\ud800-\udfff]", text)
    if wrong:
        raise _dotenv_error(text, wrong.start(), "invalid UTF-8: save the file as UTF-8")
    if "\0" in text:
        raise _dotenv_error(text, text.index("\0"), "NUL: no environment can hold it; is this a text file?")
    statements = re.compile(_STATEMENT).finditer
    known: set[str] = set()  # for `export NAME`
    pos = 0
    while pos < len(text):
        for match in statements(text, pos):
            pos = match.end()
            kind = match.lastindex or 0
            if kind > 3:
                name, value = match[3], match[kind]
                if kind == 6 and not ("#" in value or "$" in value or "?" in value):
                    value = value.strip()  # as most are: half the time
                else:
                    value = _parse_value(text, match.start(kind), value, kind, name)
            elif kind == 3 and not (match[1] and match[3] in known):
                raise _mistake(text, match.start())
            elif pos == match.start() < len(text):
                pos, name, value = _parse_long(text, pos)
            else:
                continue  # a comment, an `export NAME`, the end
            known.add(name)
            yield name, value
            if not kind:
                break  # the next statement begins behind what this match could not read


def _dotenv_error(text: str, pos: int, reason: str) -> HotenvError:
    line = text.count("\n", 0, pos) + 1
    column = pos - text.rfind("\n", 0, pos)
    return HotenvError(EXIT_INPUT, f"<stdin>:{line}:{column}: {reason}")


def _parse_value(text: str, start: int, raw: str, kind: int, key: str) -> str | _Template:
    """A value by its kind (a group of _STATEMENT), whose raw form begins at `start` of `text`."""
    import re
    if kind == 6:
        if "#" in raw:
            raw = re.split(r"\s#", raw, maxsplit=1)[0]
        start += len(raw) - len(raw.lstrip())
        raw = raw.strip()
        if "${" not in raw:
            return _Question(raw) if raw.startswith("?") else raw
        return _parse_template(raw, False, (text, start, key))
    if kind == 5:  # '...'
        return re.sub(r"\\([\\'])", r"\1", raw)
    if "${" in raw:
        return _parse_template(raw, True, (text, start, key))
    if "\\" in raw:
        raw = raw.replace("\\\\", "\0")  # so that any backslash left escapes what follows it
        for escape, character in _ESCAPES.items():
            raw = raw.replace(escape, character)
    return raw.replace("\0", "\\")


def _parse_template(value: str, quoted: bool, place: tuple[str | None, int, str]) -> str | _Template:
    """A value piece by piece; `quoted` if it has the escapes of "..."."""
    import re
    tokens, head = r"\\?\$\{|\}", re.compile(_REFERENCE)
    if quoted:
        tokens += r"""|\\[\\'"abfnrtv]"""
    template = _Template(value, place)
    parts, refers = template.parts, False
    around: list[tuple[list[Any], tuple[Any, ...]]] = []  # of each open reference: the parts outside, it
    at = 0
    for token in re.compile(tokens).finditer(value):
        sign = token[0]
        if sign == "}" and not around:
            continue
        parts.append(value[at:token.start()])
        at = token.end()
        if sign == "${":
            found = head.match(value, at)
            if not found or len(around) == MAX_NESTING:
                reason = "bad reference: write ${NAME}, ${NAME:-default}, or \\${ for a literal ${,"
                raise template.error(token.start(), reason)
            reference: tuple[Any, ...] = (found[1], bool(found[2]), found[3] or "", token.start(), [])
            around.append((parts, reference))
            parts, at, refers = reference[4], found.end(), True
        elif sign == "}":
            parts, reference = around.pop()
            parts.append(reference)
        else:
            parts.append(_ESCAPES.get(sign, "${"))
    if around:
        raise template.error(around[0][1][3], "bad reference: its } is missing; write \\${ for a literal ${,")
    parts.append(value[at:])
    if refers:
        return template
    literal = "".join(parts)
    return _Question(literal) if literal.startswith("?") and not quoted else literal


def _parse_long(text: str, pos: int) -> tuple[int, str, str | _Template]:
    """A statement whose quoted value is too long for one match, or the mistake that is there."""
    import re
    found = re.compile(_LONG).match(text, pos)
    if not found:
        raise _mistake(text, pos)
    name, quote, start = found[3], found[4], found.end()
    begin, close = start, text.find(quote, start)
    while close > 0 and (close - begin - len(text[begin:close].rstrip("\\"))) % 2:
        begin, close = close + 1, text.find(quote, close + 1)
    if close < 0:
        raise _dotenv_error(text, start - 1, f"unterminated quote: the value of {name} starts here and never ends")
    rest: Any = re.compile(r"[^\S\n]*(?:#[^\n]*)?(\n|\Z)?").match(text, close + 1)
    if rest[1] is None:
        opened = str(_dotenv_error(text, start - 1, ""))[len("<stdin>:"):-2]
        reason = f"text after the closing quote of {name}, which opened at {opened}: escape one inside as \\{quote}"
        raise _dotenv_error(text, rest.end(), reason)
    value = _parse_value(text, start, text[start:close], "\"'".index(quote) + 4, name)
    return rest.end(), name, value


def _mistake(text: str, pos: int) -> HotenvError:
    """Why no statement starts here."""
    import re
    found: Any = re.compile(_NAMED).match(text, pos)
    export, quote, name, closing, ends = found.groups()
    end = found.end("name")
    if name and closing == quote:
        if export and ends is not None:
            return _dotenv_error(text, found.end(), "no `=` after a name that is exported before it has a value")
        if found.end() > end or ends is not None:
            return _dotenv_error(text, found.end(), "no `=` after a name; is it the rest of a value that needs quotes?")
    if quote and text.find("'", end) < 0:
        return _dotenv_error(text, found.start("name") - 1, "unterminated quote around a name")
    character, what = text[end:end + 1], "this character"
    if character in ("", "\n"):
        what = "the end of the line"
    elif character in " !\"#$%&'()*+,/:;<=>?@[\\]^`{|}~":
        what = f"`{character}`"
    return _dotenv_error(text, end, f"bad name: {what} cannot be in one; names are letters, digits, `_`, `.` and `-`")


# ==== environment =====================================================================================================
# Entries into values, and the environment of a child. Knows nothing of where the entries came from.

ESSENTIALS = ("PATH HOME SHELL USER LOGNAME TMPDIR TEMP TMP LANG LC_ALL LC_CTYPE TERM COLORTERM "
              "FORCE_COLOR NO_COLOR CI NODE_OPTIONS").split()
if os.name == "nt":
    ESSENTIALS = ("SYSTEMROOT APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) "
                  "COMSPEC PATHEXT").split()


def resolve_env(entries: Mapping[str, str] | Iterable[tuple[str, Any]], host: Mapping[str, str],
                prompt: Callable[[str], str] | None = None) -> dict[str, str]:
    """The one place where an entry becomes a value.

    A literal stays as it is; `${NAME}` is what an earlier entry set, or `host` has; with `prompt`, a bare `?text`
    is what `prompt("text")` returns, or `prompt(name)` without text. A mapping's strings are read as bare values.
    """
    if hasattr(entries, "items"):
        entries = [(name, _parse_template(text, False, (None, 0, name))) for name, text in entries.items()]
    env: dict[str, str] = {}
    room = [MAX_EXPANSION]
    for name, value in entries:
        raw = getattr(value, "raw", value)
        if prompt and raw.startswith("?") and type(value) is not str:
            value = prompt(raw[1:].strip() or name)
        elif isinstance(value, _Template):
            value = _expand(value, value.parts, env, host, room)
        env[name] = str(value)
    return env


def _expand(template: _Template, parts: list[Any], env: Mapping[str, str], host: Mapping[str, str],
            room: list[int]) -> str:
    """`parts` with what their references stand for; `room` is what may still come out of references."""
    pieces = []
    for part in parts:
        if isinstance(part, tuple):
            name, colon, operator, at, word = part
            value = env.get(name, host.get(name))
            missing = value is None or colon and not value
            if missing and operator == "?":
                what = "not set" if value is None else "empty"
                raise template.error(at, f"what is referred to is required, and {what},")
            part = value or ""
            if operator == ("-" if missing else "+"):
                part = _expand(template, word, env, host, room)
            elif operator == "+":
                part = ""
            else:
                room[0] -= len(part)
            if room[0] < 0:
                raise template.error(at, f"references expand to too large a text, over {MAX_EXPANSION >> 20} MiB,")
        pieces.append(part)
    return "".join(pieces)


def parse_dotenv(text: str | bytes, host: Mapping[str, str] = {}) -> dict[str, str]:
    """What `serve` would hold for this dotenv text, with `${NAME}` also from `host`; HotenvError 7 if it is none."""
    return resolve_env(_parse_entries(text), host)


def build_isolated_env(source: Mapping[str, str], pass_through: Iterable[str] = (),
                       define: Mapping[str, str] = {}, bin_paths: Sequence[str] = ()) -> dict[str, str]:
    """A child's environment from an allowlist: essentials and `pass_through` from `source` where it has them,
    then `define`, then `bin_paths` before PATH. Nothing is checked or cleaned."""
    env = {name: source[name] for name in (*ESSENTIALS, *pass_through) if name in source}
    env.update(define)
    if bin_paths:
        env["PATH"] = os.pathsep.join([*bin_paths, env.get("PATH", "")]).rstrip(os.pathsep)
    return env


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Is it one of these names, or does it begin with one that ends in `*`?"""
    return any([name == each or each.endswith("*") and name.startswith(each[:-1]) for each in patterns])


def _as_bytes(env: Mapping[str, str]) -> dict[bytes, bytes]:
    return {_encoded(name): _encoded(value) for name, value in env.items()}


def _host_environment() -> dict[str, str]:
    """What we were started with, as text that goes back to the same bytes whatever the locale.

    Under the C locale Python sets LC_CTYPE in its own environment (PEP 538): that is taken back."""
    env = {name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
           for name, value in os.environb.items()}
    if env.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8") and not env.get("LC_ALL"):
        try:
            with open("/proc/self/environ", "rb") as file:
                before = (b"\0" + file.read()).partition(b"\0LC_CTYPE=")
        except OSError:  # no /proc: Python set it, if it took the locale for a reason for UTF-8 mode too
            if not sys.flags.utf8_mode or "PYTHONUTF8" in env:
                return env
            before = (b"", b"", b"")
        del env["LC_CTYPE"]
        if before[1]:
            env["LC_CTYPE"] = before[2].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return env


# ==== session files ===================================================================================================
# The runtime directory, a session's socket, and its marker `.hotenv`. Knows nothing of what is served.

MARKER = ".hotenv"
_SESSION_NAME = r"[0-9a-f]{8}\.sock"


def _ours(uid: int) -> bool:
    """Is it our user id? In a user namespace that maps only some, strangers have the overflow uid."""
    if uid != os.geteuid() or uid != OVERFLOW_UID:
        return uid == os.geteuid()
    try:
        with open("/proc/self/uid_map") as file:
            return sum([int(line.split()[2]) for line in file]) >= 0xFFFFFFFF
    except OSError:
        return True  # no /proc, or no user namespaces in this kernel


def _runtime_base() -> str:
    """$XDG_RUNTIME_DIR/hotenv; /tmp/hotenv-UID where that is unset, relative or somebody else's."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    try:
        usable = base.startswith("/") and os.stat(base).st_uid == os.geteuid() and "\n" not in base
    except OSError:
        usable = True  # it is still to be made
    return os.path.join(base, "hotenv") if usable else f"/tmp/hotenv-{os.geteuid()}"


def _runtime_dir() -> str:
    """The runtime directory: made if missing, and private whatever the umask."""
    base, previous = _runtime_base(), os.umask(0o077)
    shown, advice = _shown(base), "set XDG_RUNTIME_DIR to a directory of yours"
    try:
        if not os.path.lexists(base):  # under guards of our own, even an attempt would be refused
            os.makedirs(base, 0o700, exist_ok=True)
        descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        found = os.fstat(descriptor)
        uid = found.st_uid
        if _ours(uid) and found.st_mode & 0o777 != 0o700:
            os.fchmod(descriptor, 0o700)
        os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
            raise HotenvError(EXIT_SYSTEM, f"{shown} is no directory of its own: move it away, or {advice}") from None
        raise _system_error(error, f"cannot use the runtime directory {shown}") from None
    finally:
        os.umask(previous)
    if not _ours(uid):
        raise HotenvError(EXIT_SYSTEM, f"{shown} belongs to somebody else (uid {uid}): {advice}")
    return base


def _remove_empty(directories: list[str]) -> None:
    """What a start that came to nothing has made, if nobody else uses it by now."""
    for path in directories:
        try:
            os.rmdir(path)
        except OSError:
            pass  # it is in use, or was not made


def _find_marker() -> str | None:
    """The nearest marker upward. Its path is relative: an ancestor that may not be searched only ends the walk."""
    try:
        depth = os.getcwd().count("/")
    except OSError as error:
        raise _system_error(error, "the current directory cannot be told (was it removed?)") from None
    path = MARKER
    for _ in range(depth + 1):
        try:
            os.lstat(path)
            return path
        except FileNotFoundError:
            path = "../" + path
        except OSError:
            break
    return None


def _read_marker(path: str, directory: int | None = None) -> str:
    """The socket path in a marker that is ours or root's, as is every link that leads to it."""
    shown, target = _shown(os.path.abspath(path)), path
    try:
        for _ in range(40):  # as many links as the kernel follows
            found = os.stat(target, dir_fd=directory, follow_symlinks=False)
            if found.st_uid and not _ours(found.st_uid):
                raise _NotBelieved(EXIT_SYSTEM, f"{shown} is somebody else's (uid {found.st_uid}): not believed. If "
                                                "you trust it, name the socket that it names: --socket PATH, and "
                                                "--peer-uid N if its server is theirs too")
            if not stat.S_ISLNK(found.st_mode):
                break
            target = os.path.join(os.path.dirname(target), os.readlink(target, dir_fd=directory))
        if not stat.S_ISREG(found.st_mode):  # seen before it is opened: that does something to a device
            raise HotenvError(EXIT_SYSTEM, f"{shown} is not a regular file: move it away")
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        content = b""
        if os.path.samestat(os.fstat(descriptor), found):  # else it was replaced just now
            content = os.read(descriptor, MAX_MARKER + 1)
        os.close(descriptor)
    except OSError as error:
        if directory is None and not os.path.lexists(path):
            raise HotenvError(EXIT_NO_SESSION, f"no session: {shown} has just gone") from None
        raise _system_error(error, f"cannot read {shown}") from None
    lines = [line for line in content.split(b"\n") if line.strip()]
    damaged = len(content) > MAX_MARKER or len(lines) != 1 or b"\0" in content
    if damaged or not lines[0].startswith(b"socket=/"):
        raise HotenvError(EXIT_ARTIFACT, f"{shown} is damaged (not one socket=<absolute path>): remove it, serve anew")
    return os.fsdecode(lines[0][len(b"socket="):])


def _at_address(path: str, action: Callable[[str], Any]) -> None:
    """Binds or connects to `path`, by its directory's descriptor if it is too long for an address."""
    if len(os.fsencode(path)) < SUN_PATH:
        action(path)
        return
    if not os.path.isdir("/proc/self/fd"):
        raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is too long for a socket ({SUN_PATH - 1} bytes here): set "
                                       "XDG_RUNTIME_DIR to a shorter path")
    parent = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        action(f"/proc/self/fd/{parent}/{os.path.basename(path)}")
    finally:
        os.close(parent)


class _SessionFiles:
    """A session's socket, beside it a link to the project directory, for `status --all`, and there the marker, by
    a descriptor, so that a rename does not confuse us."""

    def __init__(self) -> None:
        self.id = os.urandom(4).hex()
        self.base, self.project = _runtime_base(), -1
        self.path = os.path.join(self.base, self.id + ".sock")
        self.found: os.stat_result | None = None  # the socket file, once it is bound
        self.made, path = [], self.base  # directories, for a start that comes to nothing
        while not os.path.lexists(path):
            self.made.append(path)
            path = os.path.dirname(path)

    def bind(self) -> socket.socket:
        """A listening socket. Its path is new: 32 random bits, and bind replaces nothing."""
        import socket
        _runtime_dir()
        listener = socket.socket(socket.AF_UNIX)
        previous = os.umask(0o177)
        try:
            self.project = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _at_address(self.path, listener.bind)
            self.found = os.lstat(self.path)
            os.symlink(os.getcwd(), self.path[:-len(".sock")])
            listener.listen(BACKLOG)
        except OSError as error:
            raise _system_error(error, f"cannot make a socket in {_shown(self.base)}") from None
        finally:
            os.umask(previous)
        listener.setblocking(False)
        return listener

    def publish(self, force: bool) -> None:
        """The marker, whole or not at all: written aside, then linked, which fails where there is one. `force`
        renames it over that, and removes its socket if it is one that we would have made; but what a link
        leads to belongs to another directory, and lives on."""
        import re
        aside, both = f"{MARKER}.{self.id}", {"src_dir_fd": self.project, "dst_dir_fd": self.project}
        lock = _lock(self.project)
        try:
            old = self.named() if force and not os.path.islink(MARKER) else ""
            self.write_new(aside)
            if force:
                os.rename(aside, MARKER, **both)
                if re.fullmatch(re.escape(self.base + "/") + _SESSION_NAME, old):
                    _remove_socket(old)
            else:
                os.link(aside, MARKER, follow_symlinks=False, **both)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise _system_error(error, f"cannot write {MARKER} in {_shown(os.getcwd())} (serve from another "
                                           "directory, and run here with --socket PATH)") from None
            self.write_new(MARKER)  # a file system without links
        finally:
            _unlink(aside, self.project)
            os.close(lock)

    def write_new(self, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=self.project)
        content = b"socket=" + os.fsencode(self.path) + b"\n"
        try:
            os.fchmod(descriptor, 0o600)
            if os.write(descriptor, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            _unlink(name, self.project)
            raise
        finally:
            os.close(descriptor)

    def stamp(self, end: float) -> None:
        """The socket's mtime is the moment when the session will end: `status` shows it."""
        try:
            os.utime(self.path, (end, end), follow_symlinks=False)
        except OSError:
            pass  # the next look at the files finds out

    def bound(self) -> bool:
        """Is the socket still there, and the one that we bound?"""
        try:
            return self.found is not None and os.path.samestat(os.lstat(self.path), self.found)
        except OSError:
            return False

    def named(self) -> str:
        """The socket that the marker names, or '' if there is none to be believed."""
        try:
            return _read_marker(MARKER, self.project)
        except HotenvError:
            return ""

    def lost(self) -> str:
        """Why the files are ours no more, or ''. A marker that is missing is no reason."""
        if not self.bound():
            return "its socket file is gone"
        if self.named() not in ("", self.path):
            return "another session has taken its place"
        return ""

    def remove(self) -> None:
        """The marker if it names us, and the socket if it is the one that we bound."""
        if self.project >= 0:
            lock = _lock(self.project)
            if self.named() == self.path:
                _unlink(MARKER, self.project)
            os.close(lock)
        if self.bound():
            _remove_socket(self.path)


def _remove_socket(path: str) -> None:
    """A session's socket, and the link beside it; no other kind of file, whatever its name."""
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
            os.unlink(path[:-len(".sock")])
    except OSError:
        pass  # it is gone, or there never was one


def _lock(directory: int) -> int:
    """A descriptor that holds flock on a directory until it is closed; best effort."""
    import fcntl
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    give_up = time.monotonic() + LOCK_TIME
    while time.monotonic() < give_up:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            break  # not on this file system
    return descriptor


# ==== protocol ========================================================================================================
# One JSON line each way: bytes into a request or a snapshot, and back. Knows nothing of sockets.


class _JsonRules:
    """How JSON is read: no number is ever wanted, so none is computed; `int` refuses NaN and the like."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_int = parse_float = len
    parse_constant = int


def _encode_request(command: str, args: Iterable[str]) -> bytes:
    """A request that the server takes: of arguments that are too long, as many as fit."""
    if command != "run":
        return b'{"command":"dump"}\n'
    listed, room = [], MAX_REQUEST - len('{"command":"run","args":["..."]}')
    for arg in args:
        quoted = _json_quoted(arg)
        room -= len(quoted) + 1
        if room < 0:
            break
        listed.append(quoted)
    return f'{{"command":"run","args":[{",".join(listed) or _json_quoted("...")}]}}\n'.encode("ascii")


def _decode_request(line: bytes) -> tuple[str, list[str]]:
    """(command, args) of a request; ValueError with what is wrong, in words of our own."""
    try:
        text = line.decode("utf-8").strip(" \t\r")
        request, end = _json_scanner(_JsonRules)(text, 0)  # type: ignore[arg-type]
    except (ValueError, StopIteration, RecursionError):
        text, request, end = "", None, -1
    if end != len(text):
        raise ValueError("a request is one line of JSON in UTF-8")
    if not isinstance(request, dict):
        raise ValueError("a request is a JSON object")
    command, args = request.get("command"), request.get("args")
    if command == "dump":
        return "dump", []
    if command != "run":
        raise ValueError('"command" is "run" or "dump"')
    if not isinstance(args, list) or set(map(type, args)) != {str}:
        raise ValueError('"args" is a list of strings with the command first')
    return "run", args


def _encode_message(message: Mapping[str, object]) -> bytes:
    import json
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def _decode_snapshot(data: bytes | bytearray) -> dict[str, str]:
    """The environment in an answer; HotenvError 9 for whatever is none. Only a message is shown."""
    try:
        text = data.decode("utf-8").lstrip(" \t\r")
        answer, end = _json_scanner(_JsonRules)(text, 0)  # type: ignore[arg-type]
    except (ValueError, StopIteration, RecursionError, SystemError):  # the last: json is not loaded
        answer, text, end = None, "", 0
    if text.find("\n") != len(text) - 1 or text[end:].strip() or not isinstance(answer, dict):
        raise HotenvError(EXIT_ARTIFACT, "the session's answer is not one line of JSON")
    if isinstance(answer.get("error"), str):
        message = _shown(f"{answer['error']}: {answer.get('message')}"[:1000])
        raise HotenvError(EXIT_ARTIFACT, f"the session refused the request: {message}")
    env: Any = answer.get("env")
    try:
        names = "".join(env)
        raw = _encoded(names + "".join(env.values()))
    except (TypeError, AttributeError, UnicodeError):  # no dict, a value that is no string, half a pair
        names, raw = "=", b""
    if b"\0" in raw or "=" in names or "" in env:
        raise HotenvError(EXIT_ARTIFACT, "the session's answer holds no environment that a process can have")
    return env


# ==== server ==========================================================================================================
# The loop that hands out the snapshot, its timers, signals and request log. Knows nothing of dotenv.

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # counts suspend; on macOS the second does


def _now() -> float:
    return time.clock_gettime(_CLOCK)


class _Log:
    """Lines for a stderr that is not ours alone: never blocks, keeps some, drops with a count."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.waiting, self.dropped, self.descriptor = bytearray(), 0, 2
        self.torn = False  # is the last line out only half
        self.borrowed = False  # must it be told not to block each time, as others write to it too
        if not stat.S_ISREG(os.fstat(2).st_mode):
            try:  # a description of our own, which never blocks
                name = os.ttyname(2) if os.isatty(2) else "/proc/self/fd/2"
                self.descriptor = os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            except OSError:
                self.borrowed = True  # a socket, somebody else's terminal, no /proc

    def request(self, command: str, args: Sequence[str]) -> None:
        if self.level == "quiet":
            return
        if self.level != "verbose":
            args = args[:1]
        summary = _shown(" ".join(args)) if command == "run" else "-"
        self.add(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {command} {summary}")

    def add(self, line: str) -> None:
        if self.dropped and len(self.waiting) < MAX_LOG_BACKLOG // 2:
            self.waiting += b"hotenv: %d lines were dropped here\n" % self.dropped
            self.dropped = 0
        if self.dropped or len(self.waiting) + len(line) > MAX_LOG_BACKLOG:
            self.dropped += 1
            return
        self.waiting += line.encode("utf-8", "backslashreplace") + b"\n"
        self.flush()

    def flush(self) -> None:
        """Writes what can be written now; the loop tries again while something waits."""
        if self.borrowed:
            os.set_blocking(2, False)
        try:
            while self.waiting:
                sent = os.write(self.descriptor, self.waiting[:1 << 16])
                self.torn = self.waiting[sent - 1] != 10
                del self.waiting[:sent]
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self.waiting.clear()  # closed or broken: a session does not end for its log
        if self.borrowed:
            os.set_blocking(2, True)

    def close(self) -> None:
        """What still waits has a second; what is lost then is counted in the last line."""
        give_up = time.monotonic() + LAST_WORDS
        self.flush()
        while self.waiting and time.monotonic() < give_up:
            time.sleep(0.01)
            self.flush()
        lost = self.waiting.count(b"\n") + self.dropped
        if not lost:
            return
        try:
            import fcntl
            fcntl.fcntl(self.descriptor, 1031, 1 << 20)  # F_SETPIPE_SZ: room for one more line
        except OSError:
            pass  # no pipe, no Linux, or as wide as it may be
        self.waiting[:] = b"\n" * self.torn + b"hotenv: %d lines of this log are lost\n" % lost
        self.flush()


class _Connection:
    """One client: what it sent so far, or what it has not been sent yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.queue: dict[_Connection, None] | None = None  # where it waits, if it does
        self.since = 0.0  # the moment of its last progress
        self.received = b""
        self.unsent: bytes | memoryview = b""
        self.request: tuple[str, list[str]] | None = None
        self.lingers = False  # it may still be sending: to close now would reset it


class _Server:
    """Serves one response until its time is up, it is told to end, or its files are not its own."""

    def __init__(self, listener: socket.socket, response: bytes, files: _SessionFiles, log: _Log, idle: float,
                 max_age: float) -> None:
        import selectors
        self.listener, self.response, self.files, self.log, self.idle = listener, response, files, log, idle
        self.selector = selectors.DefaultSelector()
        # Whoever waits longest comes first in each, so the overdue are always at the head.
        self.reading: dict[_Connection, None] = {}
        self.answering: dict[_Connection, None] = {}
        self.queues = ((self.reading, REQUEST_TIME), (self.answering, ANSWER_TIME))
        self.unfinished = 0  # bytes in all incomplete requests
        self.end = _now() + max_age
        self.deadline = min(self.end, _now() + idle)
        self.next_look = _now() + TICK

    def run(self, signals: _Signals) -> str:
        """Serves; returns why it ended."""
        self.selector.register(signals.wakeup, 1, signals)  # 1: EVENT_READ
        self.selector.register(self.listener, 1)
        while True:
            events = self.selector.select(self.patience())
            now = _now()
            if signals.reason:
                return signals.reason
            if now >= self.end:
                return "ended: --max-age is over"
            if now >= self.deadline:
                return f"ended: idle for {_duration(self.idle)}"
            if now >= self.next_look:
                self.next_look = now + TICK
                lost = self.files.lost()
                if lost:
                    return f"ended: {lost}"
            self.log.flush()
            for key, _ in events:
                if key.data is None:
                    self.accept()
                elif key.data is signals:
                    os.read(signals.wakeup, 4096)  # a signal that has a handler of somebody else's
                elif key.data.queue is self.answering:
                    self.send(key.data)
                elif key.data.queue is self.reading:
                    self.receive(key.data)

    def patience(self) -> float:
        """Drops who is overdue; returns the seconds until the next one is, or something else is due."""
        now, wake = _now(), min(self.deadline, self.next_look)
        for queue, time_limit in self.queues:
            while queue:
                first = next(iter(queue))
                if first.since + time_limit > now:
                    wake = min(wake, first.since + time_limit)
                    break
                self.drop(first)
        return max(0.0, min(wake - now, SHORT_TICK if self.log.waiting else TICK))

    def accept(self) -> None:
        """Answers one client after the other: most have sent their request already."""
        for _ in range(BATCH):
            try:
                sock, _address = self.listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                short = error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
                if short and not self.make_room():
                    time.sleep(SHORT_TICK)  # nobody is connected: others took all there is
                    return
            else:  # what else fails: that client has gone
                self.receive(_Connection(sock))

    def make_room(self) -> bool:
        """Whoever has made no progress for longest goes, unless it makes some now."""
        stalest: _Connection | None = None
        for queue in (self.reading, self.answering):
            first = next(iter(queue), None)
            if first and (not stalest or first.since < stalest.since):
                stalest = first
        if not stalest:
            return False
        since = stalest.since
        if stalest.queue is self.reading:
            self.receive(stalest)
        else:
            self.send(stalest)
        if stalest.queue is not None and stalest.since == since:
            self.drop(stalest)
        return True

    def wait(self, connection: _Connection, queue: dict[_Connection, None]) -> None:
        """Until it can go on; to wait anew, or for something else, gives it the whole time again."""
        events = 2 if queue is self.answering else 1  # EVENT_WRITE, EVENT_READ
        try:
            if connection.queue is None:
                self.selector.register(connection.sock, events, connection)
            else:
                self.selector.modify(connection.sock, events, connection)
                del connection.queue[connection]
        except OSError:  # no memory for one more
            self.drop(connection)
            return
        connection.queue, connection.since = queue, _now()
        queue[connection] = None

    def drop(self, connection: _Connection) -> None:
        if connection.queue is not None:
            self.selector.unregister(connection.sock)
            del connection.queue[connection]
            connection.queue = None
        self.unfinished -= len(connection.received)
        connection.received = b""
        connection.sock.close()

    def receive(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(1 << 16, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            if connection.queue is None:
                self.wait(connection, self.reading)
            return
        except OSError:
            data, connection.lingers = b"", True  # it has gone
        if connection.lingers:  # it is answered: what still comes is thrown away
            if not data:
                self.drop(connection)
            return
        line, newline, rest = data.partition(b"\n")
        self.unfinished += len(line)
        connection.received += line  # the whole of it is short
        connection.lingers = bool(rest) or len(connection.received) > MAX_REQUEST
        if newline or not data or len(connection.received) > MAX_REQUEST:
            self.respond(connection, bool(newline))
        elif connection.queue is None:
            self.wait(connection, self.reading)
        while self.unfinished > MAX_UNFINISHED and self.reading:
            self.drop(next(iter(self.reading)))

    def respond(self, connection: _Connection, whole: bool) -> None:
        try:
            if len(connection.received) > MAX_REQUEST:
                raise ValueError(f"a request is at most {MAX_REQUEST >> 10} KiB long")
            if not whole:
                raise ValueError("the request ended before its newline")
            request = _decode_request(connection.received)
            if _is_guarded(connection.sock):
                raise ValueError("a program under guards gets no secrets but those it was started with")
            connection.request, connection.unsent = request, self.response
        except ValueError as error:
            connection.unsent = _encode_message({"error": "BAD_REQUEST", "message": str(error)})
        except Exception:  # a bug of ours ends one request, no session; what it says may hold what was sent
            connection.unsent = b'{"error":"INTERNAL","message":"the request met a bug in hotenv"}\n'
        self.unfinished -= len(connection.received)
        connection.received = b""
        self.send(connection)

    def send(self, connection: _Connection) -> None:
        now, sent = _now(), 0
        try:
            if now >= self.deadline:
                raise TimeoutError  # the loop ends before anything else is served
            sent = connection.sock.send(connection.unsent, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except OSError:
            self.drop(connection)
            return
        if sent < len(connection.unsent):
            if sent or connection.queue is not self.answering:
                connection.unsent = memoryview(connection.unsent)[sent:]
                self.wait(connection, self.answering)
            return
        if connection.request:
            self.deadline = min(self.end, now + self.idle)
            self.files.stamp(time.time() + self.deadline - now)
            self.log.request(*connection.request)
        if not connection.lingers:
            self.drop(connection)
            return
        try:
            connection.sock.shutdown(_socket.SHUT_WR)
            self.wait(connection, self.reading)
        except OSError:  # it has gone
            self.drop(connection)


def _is_guarded(sock: socket.socket) -> bool:
    """Has whoever connected a guard of ours? It shows in a limit, which nothing else sets so."""
    import resource
    try:
        return resource.prlimit(_peer(sock)[0], resource.RLIMIT_MSGQUEUE)[1] % 4096 == GUARD_SIGN
    except (OSError, ValueError, AttributeError):
        return False  # another user's, of another pid namespace, or gone; the last: not Linux


def _peer(sock: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the other end; a pid of 0 or less is unknown."""
    if hasattr(_socket, "SO_PEERCRED"):
        raw = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # struct ucred: pid, uid, gid
        return int.from_bytes(raw[:4], sys.byteorder, signed=True), int.from_bytes(raw[4:8], sys.byteorder)
    raw = sock.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED, struct xucred: version, uid, groups
    return sock.getsockopt(0, 2), int.from_bytes(raw[4:8], sys.byteorder)  # LOCAL_PEERPID


class _Signals:
    """Handlers that set a flag, and a descriptor that wakes the loop. What was ignored at the start
    stays ignored, but for SIGTERM: nohup and a shell's `&` mean it."""

    def __init__(self) -> None:
        import signal
        self.received, self.reason = 0, ""
        self.wakeup, end = os.pipe()
        os.set_blocking(end, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            if signum == signal.SIGTERM or signal.getsignal(signum) != signal.SIG_IGN:
                signal.signal(signum, self.note)

    def note(self, signum: int, frame: object) -> None:
        import signal
        self.received = self.received or signum
        self.reason = f"ended by {signal.Signals(self.received).name}"


def _harden(name: str = "") -> None:
    """No core dumps; not dumpable, so neither traceable nor readable in /proc, by others of the same
    user. First a name for `ps`. What the interpreter and the system do not offer is not claimed."""
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if name:
        _call_c("prctl", 15, name.encode())  # PR_SET_NAME
    _call_c("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    if sys.platform == "darwin":
        _call_c("ptrace", 31, 0, 0, 0)  # PT_DENY_ATTACH


def _call_c(function: str, *arguments: int | bytes) -> None:
    try:
        import ctypes
        getattr(ctypes.CDLL(None), function)(*arguments)
    except (ImportError, OSError, AttributeError):
        pass  # an interpreter without ctypes, a system without the function


# ==== client ==========================================================================================================
# Find a session, ask it, get its snapshot. Knows nothing of the server's insides.


class _Session:
    """A session that was found: the path of its socket, and who named it."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source

    def unreachable(self, error: OSError | ValueError | None, why: str = "") -> HotenvError:
        if isinstance(error, FileNotFoundError):
            why = "there is no such socket"
        elif isinstance(error, ConnectionRefusedError):
            why = "nobody answers there any more"
        elif getattr(error, "errno", None) in (None, errno.EAGAIN) and not why:
            why = "no answer in time (is its process stopped?)"
        advice = f"start one with: {_invocation()} serve < secrets.env (add --force to replace this one)"
        if self.source in ("--socket", "HOTENV_SOCKET"):
            advice = f"{self.source} names it: without that (`unset HOTENV_SOCKET`), the directory's is found"
        return HotenvError(EXIT_UNREACHABLE, f"the session at {_shown(self.path)} cannot be reached: "
                                             f"{why or getattr(error, 'strerror', '')}; {advice}")


def fetch(command: str = "dump", args: Sequence[str] = (), socket_path: str | None = None, *,
          peer_uid: int | None = None) -> dict[str, str]:
    """The environment of the session that is found from here, or that listens at `socket_path`. HotenvError
    has code 3 where there is none, 4 where nobody answers, 8 or 9 where what is found cannot be believed."""
    session = _locate(socket_path)
    give_up = time.monotonic() + EXCHANGE_TIME
    sock = _connect(session, peer_uid, give_up)
    answer = bytearray()
    try:
        try:
            sock.sendall(_encode_request(command, args))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered, and why is in there
        chunk = b"?"
        while chunk and len(answer) <= MAX_RESPONSE:  # at the end, its log line and time stamp are written too
            sock.settimeout(max(0.001, give_up - time.monotonic()))
            chunk = sock.recv(1 << 16)
            answer += chunk
    except ConnectionResetError:
        pass  # what came before may be whole
    except OSError as error:
        raise session.unreachable(error) from None
    finally:
        sock.close()
    if not answer:
        raise session.unreachable(None, "it has just ended")
    if len(answer) > MAX_RESPONSE:
        raise HotenvError(EXIT_ARTIFACT, f"the session's answer is over {MAX_RESPONSE >> 20} MiB long")
    return _decode_snapshot(answer)


def _locate(socket_path: str | None = None) -> _Session:
    if socket_path:
        return _Session(socket_path, "--socket")
    path = os.environ.get("HOTENV_SOCKET")
    if path:
        return _Session(path, "HOTENV_SOCKET")
    marker = _find_marker()
    if marker is None:
        raise HotenvError(EXIT_NO_SESSION, f"no session: no {MARKER} in this directory or above; "
                                           f"start one with: {_invocation()} serve < secrets.env")
    return _Session(_read_marker(marker), marker)


def _find_session() -> str:
    return _locate().path


def _connect(session: _Session, peer_uid: int | None = None, give_up: float = 0.0) -> Any:
    """A connection to a server that is ours, root's or `peer_uid`'s."""
    give_up = give_up or time.monotonic() + EXCHANGE_TIME
    sock: Any = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        while True:
            sock.settimeout(max(0.001, give_up - time.monotonic()))
            try:
                _at_address(session.path, sock.connect)
                break
            except BlockingIOError:  # its backlog is full: it lives, and is busy
                if time.monotonic() >= give_up:
                    raise
                time.sleep(0.005)
        uid = _peer(sock)[1]
    except (OSError, ValueError) as error:
        sock.close()
        raise session.unreachable(error) from None
    if uid not in (0, peer_uid) and not _ours(uid):
        sock.close()
        raise _NotBelieved(EXIT_ARTIFACT, f"the server at {_shown(session.path)} belongs to uid {uid}, "
                                          f"who is not you: not believed (--peer-uid {uid} allows it)")
    return sock


# ==== launch ==========================================================================================================
# Become the command: same process, same terminal, same signals, same status.


def _default_signals() -> None:
    """Python ignores these two, and what is ignored stays so in a child."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)


def _exec(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Replaces this process; returns only by a HotenvError that says why it could not."""
    command, raw, words = argv[0], _as_bytes(env), [os.fsencode(word) for word in argv]
    _default_signals()
    try:
        try:
            os.execvpe(words[0], words, raw)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            import shutil
            script = shutil.which(command, path=env.get("PATH", os.defpath)) or command
            os.execve("/bin/sh", [b"/bin/sh", os.fsencode(script), *words[1:]], raw)
    except ValueError:
        reason = "it holds a NUL"
    except OSError as error:
        reason = error.strerror or ""
        if error.errno == errno.ENOENT and "/" not in command:
            reason = "not found on PATH (what only your shell knows, as a builtin, an alias or `a && b`, " \
                     "needs it: run -- sh -c '...')"
        elif error.errno == errno.ENOENT and os.path.exists(command):
            with open(command, "rb") as file:
                line = file.readline(200)[2:].decode("utf-8", "replace").strip()
            reason = f"the interpreter in its first line, {_shown(line)}, is missing"
        elif error.errno == errno.EACCES and os.path.isdir(command):
            reason = "it is a directory"
        elif error.errno == errno.E2BIG and raw:
            size, name = max(zip(map(len, raw.values()), raw))
            reason += (f"; of the {len(raw)} variables, {_shown(name.decode('utf-8', 'backslashreplace'))} "
                       f"is the largest, with {size} bytes")
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)  # we live on, if only to say why
    raise HotenvError(EXIT_SYSTEM, f"cannot run {_shown(command)}: {reason}")


# ==== redaction =======================================================================================================
# Exact values and their usual spellings: text or a stream of bytes in, the same with `[hidden:NAME]` out. It knows
# nothing of who prints. It prevents accidents and is no boundary: what is cut, reversed or compressed goes through.
#
# How it is cheap. A form has at least 8 bytes, so wherever it stands, one whole four-byte word of the buffer begins
# within its first four bytes. A buffer is read as an array of words, one look-up for four bytes, all of it in C; only
# where a word hits, its neighbourhood is looked at. What is hidden is the union of all places where any form stands:
# nothing depends on the order of the search, on how values overlap, or on where a stream was cut.

_SHORTEST_VALUE = 4  # characters; shorter ones are too common to hide: they are reported instead
_SHORTEST_FORM = 8  # characters; shorter values are hidden as whole words only, in no other spelling
_LONGEST_FORM = 1024  # bytes; longer forms are looked for in pieces, which bounds what is held back
_MASK_STEP = 1 << 16  # bytes masked at once, whatever the size of the input
_NO_SECRETS = frozenset(  # everyday words: to hide one would harm output, and protect nothing
    "true false yes no on off null none nil undefined default enabled disabled auto always never "
    "debug info notice warn warning error fatal critical trace verbose test tests testing dev devel "
    "development local localhost stage staging prod production live main master user users root admin "
    "administrator guest public private postgres postgresql mysql mariadb redis mongodb sqlite sqlite3 "
    "memory http https utf-8 utf8 json text plain us-east-1 us-west-2 eu-west-1 eu-central-1".split())


def _spellings(text: str) -> Iterator[bytes]:
    """Every form in which tools print `text`, without quotes around it; most are equal for a plain
    value. Each earned its place: without it, some tool shows the value."""
    import json
    from base64 import b64encode
    raw = _encoded(text)
    yield raw
    yield raw.hex().encode()
    for offset, shared in ((0, 0), (1, 2), (2, 3)):  # also within other base64, as in `user:secret`
        padded = b64encode(bytes(offset) + raw)[shared:]
        known = padded[:(offset + len(raw)) * 8 // 6 - shared]  # does not depend on what comes after
        for form in (known, padded.rstrip(b"="), padded):
            yield form
            yield form.translate(bytes.maketrans(b"+/", b"-_"))
    for width in (64, 76):  # wrapped, as openssl and base64 do
        for at in range(0, len(raw) * 8 // 6, width):
            yield b64encode(raw)[:len(raw) * 8 // 6][at:at + width]
    for ascii_only in (True, False):
        coded = _encoded(json.dumps(text, ensure_ascii=ascii_only)[1:-1])
        yield coded
        yield coded.replace(b"/", rb"\/")  # PHP
        yield coded.replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026")  # Go
    for shown in (repr(text), ascii(text), repr(raw)[1:]):
        coded = _encoded(shown[1:-1])
        plain = coded.replace(rb"\'", b"'")  # which quote is escaped depends on what stands around it
        yield from (coded, plain, plain.replace(b"'", rb"\'"))
    html = raw.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
    yield html
    yield html.replace(b'"', b"&quot;").replace(b"'", b"&#x27;")
    yield html.replace(b'"', b"&#34;").replace(b"'", b"&#39;")
    yield from _quoted_spellings(raw)


def _quoted_spellings(raw: bytes) -> Iterator[bytes]:
    """In URLs, and as shells write it."""
    import re
    for kept in (rb"\w.~-", rb"\w.~/-", rb"\w.!~*'()-", rb"\w.*-"):  # Python and curl, JavaScript, forms
        percent = re.sub(rb"[^%s]" % kept, lambda found: b"%%%02X" % ord(found[0]), raw)
        yield percent
        yield percent.replace(b"%20", b"+")
    yield raw.replace(b"'", rb"'\''")  # `set -x`, `export -p` of dash
    yield raw.replace(b"'", b"'\"'\"'")  # shlex.quote
    yield re.sub(rb'([\\"$`])', rb"\\\1", raw)  # `declare -p`, `export -p` of bash
    for plain in (rb"", rb"#~"):  # `printf %q`: these two only where a word begins
        yield re.sub(rb"([^\w%%+./:=@%s\x80-\xff-])" % plain, rb"\\\1", raw)
    dollar = repr(raw)[2:-1].replace("\\'", "'").replace("'", "\\'")
    named = {"07": "a", "08": "b", "0b": "v", "0c": "f", "1b": "E"}
    yield re.sub(r"\\x(..)", lambda found: "\\" + named.get(found[1], f"{int(found[1], 16):03o}"),
                 dollar).encode()  # bash's $'...'


def _forms(value: str) -> Iterator[bytes]:
    """All that is looked for on behalf of a value: each spelling of it and of its lines."""
    for text in dict.fromkeys([value, *map(str.strip, value.splitlines())]):
        if len(text) < _SHORTEST_FORM:
            continue
        for form in dict.fromkeys(_spellings(text)):
            if len(form) >= _SHORTEST_FORM:
                yield form[-_LONGEST_FORM:]
                for at in range(0, len(form) - _LONGEST_FORM, _LONGEST_FORM):
                    yield form[at:at + _LONGEST_FORM]


class Redactor:
    """Hides the values of an environment: each, in any usual spelling, becomes `[hidden:NAME]`.

    Call it with a string, `mask()` bytes, or push pieces through a `stream()`; all three agree. Values of several lines
    are hidden as a whole and by each line of 8 or more characters; blanks around a value or line do not count. Values of
    4 to 7 characters are hidden as whole words, in no other spelling. Shorter ones, everyday words (true, production, a
    port) and what the allowlist of `build_isolated_env` names (HOME, PATH) are not: they are listed in `unmaskable`.
    `longest` is how many bytes a stream may hold back. `skip` holds names and PREFIX* that are left alone. Where a value
    has several names the first is shown; side by side, one name is shown once.
    """

    def __init__(self, env: Mapping[str, str], skip: Iterable[str] = ()) -> None:
        import re
        lifted = list(skip)
        self.unmaskable: list[str] = []
        self._names: dict[bytes, str] = {}  # of each form
        self._short: dict[bytes, str] = {}  # of each value that is hidden as a whole word only
        for name, value in env.items():
            value = value.strip()
            if not value or _matches(name, lifted):
                continue
            everyday = value.lower() in _NO_SECRETS or value.isdigit() and len(value) < 6
            if everyday or len(value) < _SHORTEST_VALUE or name in ESSENTIALS:
                self.unmaskable.append(name)
            elif len(value) < _SHORTEST_FORM:
                self._short.setdefault(_encoded(value), name)
            else:
                for form in _forms(value):
                    self._names.setdefault(form, name)
        self._sorted = sorted(self._names)
        self.longest: int = max(map(len, [*self._sorted, *self._short]), default=0)
        groups: dict[bytes, list[bytes]] = {}  # forms by their first 8 bytes, the longest first
        for form in reversed(self._sorted):
            groups.setdefault(form[:8], []).append(form)
        self._matchers: dict[bytes, Any] = {}
        self._offsets: dict[int, set[int]] = {}  # four-byte word -> where in a form's beginning
        for start, forms in groups.items():
            self._matchers[start] = re.compile(b"|".join(map(re.escape, forms))).match
            for offset in range(4):
                word = int.from_bytes(start[offset:offset + 4], sys.byteorder)
                self._offsets.setdefault(word, set()).add(offset)
        self._words = frozenset(self._offsets)
        # What is too short to have a word in it, at the end of a buffer.
        self._beginnings = {start[:size] for start in [*groups, *self._short] for size in range(1, 8)}
        self._is_border = re.compile(rb"(?!(?<=\w)\w)").match  # no word goes on from the byte before to this one

    def __call__(self, text: str) -> str:
        """`text` with every value masked."""
        try:
            return self.mask(_encoded(text)).decode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair, which no value can hold
            import re
            return re.sub("[^\ud800-\udc7f\udd00-\udfff]+", lambda part: self(part[0]), text)

    def mask(self, data: bytes) -> bytes:
        """`data` with every value masked."""
        stream = self.stream()
        return stream.feed(data) + stream.flush()

    def stream(self) -> _Stream:
        """A new stream: `feed(data)` returns what may go out by now, `flush()` the rest."""
        return _Stream(self)

    def find(self, data: bytes) -> tuple[list[tuple[int, int, str]], int]:
        """Every place in `data` as (start, end, name), and where begins what more data may make part
        of one. The first byte of `data` is only there to say whether a word goes on behind it."""
        from bisect import bisect_right
        from itertools import compress
        places, held, near = [], len(data), len(data) - self.longest
        fours = memoryview(data)[:len(data) & ~3].cast("I")
        hits: list[int] = []
        for base in range(0, len(fours), 1024):  # most blocks of a log have no word of any form
            block = fours[base:base + 1024]
            if not self._words.isdisjoint(block):
                hits += compress(range(base, base + len(block)), map(self._words.__contains__, block))
        for index in hits:
            for offset in self._offsets[fours[index]]:
                start = index * 4 - offset
                if start > 0:
                    match = self._matchers.get(data[start:start + 8])
                    found = match and match(data, start)
                    if found:
                        places.append((start, found.end(), self._names[found[0]]))
                    if near < start < held:
                        after = bisect_right(self._sorted, data[start:])
                        if after < len(self._sorted) and self._sorted[after].startswith(data[start:]):
                            held = start  # a form begins with the rest, and goes on
        for word, name in self._short.items():
            start = data.find(word, 1)
            while start > 0:
                end = start + len(word)
                if self._is_border(data, start) and self._is_border(data, end):
                    places.append((start, end, name))
                start = data.find(word, start + 1)
        for start in range(max(1, len(data) - 7), held):
            if data[start:] in self._beginnings:
                held = start
                break
        return sorted(places), held


class _Stream:
    """One stream: what is held back, behind one byte that is already out, and what of it is masked."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._data, self._done = b"\n", 1  # all before `_done` is out
        self._name = ""  # whose mask went out last, if nothing went out since

    def feed(self, data: bytes) -> bytes:
        """Takes the next piece, returns all that no later piece can make part of a value."""
        if len(data) <= _MASK_STEP:
            return self._step(data)
        return b"".join([self._step(data[at:at + _MASK_STEP]) for at in range(0, len(data), _MASK_STEP)])

    def flush(self) -> bytes:
        """The end of the stream has come: returns what was held back. The stream is then as new."""
        rest = self._step(b"", last=True)
        self._data, self._done, self._name = b"\n", 1, ""
        return rest

    def _step(self, piece: bytes, last: bool = False) -> bytes:
        data = self._data + piece
        places, held = self._redactor.find(data)
        if last:
            held = len(data)
        out: list[bytes] = []
        for start, end, name in [*places, (held, held, "")]:
            if start > held:
                break
            if start > self._done:
                out.append(data[self._done:start])
                self._done, self._name = start, ""
            if end > self._done and start < held:
                if name != self._name:
                    out.append(b"[hidden:%s]" % name.encode("utf-8", "replace"))
                self._done, self._name = end, name
        self._data = data[held - 1:]
        self._done -= held - 1
        return b"".join(out)


# ==== masked launch ===================================================================================================
# Owns the one case where the command is a child: its stdout and stderr run through pipes that we mask. To everybody
# else the two of us should look like one process, as after an exec.
#
# Signals. What is sent to our process group (Ctrl-C, Ctrl-Z, a hang-up, `kill %1`) is meant for the command; what is sent
# to our pid reaches it only by way of us; and nothing tells the two apart. So we leave the group, and the command stays:
# the kernel sends the first kind to it alone, the second kind comes to us alone, and we hand it on. When the command
# stops, we return to the group and stop with it, so that the shell sees it, and continues us as well. Only the leader of
# a session (the first process of a container, a service) cannot leave: there we hand on all but what a keyboard may have
# sent, and who signals that whole group signals the command twice.

_ENDING = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2,
           _signal.SIGALRM)
_HANDED_ON = (*_ENDING, _signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGCONT)
_KEYBOARD = (_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTSTP)


def _run_masked(become: Callable[[], NoReturn], redactor: Redactor) -> int:
    """Has a child `become` the command and masks its stdout and stderr; returns its exit status, or dies as it did. A
    stream that is a terminal is handed over as it is; if both are, the command takes our place."""
    routes = _masked_routes()
    if not routes:
        become()
    blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, (*_HANDED_ON, _signal.SIGCHLD))
    before = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, it would lose the exit status
    pipes = [_high_pipe() for _ in routes]
    helper = _found_group()  # before the child: where this fails, nothing has been run
    child = os.fork()
    if not child:
        code = EXIT_SYSTEM
        try:
            for targets, (_, end) in zip(routes, pipes):
                for target in targets:
                    os.dup2(end, target)
            _signal.signal(_signal.SIGCHLD, before)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
            become()
        except HotenvError as error:
            _say(str(error))
            code = error.code
        finally:
            os._exit(code)
    channels = []
    for targets, (source, end) in zip(routes, pipes):
        os.close(end)
        channels.append(_Channel(source, targets[0], redactor.stream()))
    status = _attend(_Command(child, helper, blocked), channels)
    for channel in channels:
        if channel.error and channel.error.errno != errno.EPIPE:
            raise _system_error(channel.error, "cannot write the command's output")
    if os.WIFSIGNALED(status):
        _die_of(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _masked_routes() -> list[list[int]]:
    """Which of our descriptors 1 and 2 are masked: those that share a file in one list, so that their order holds."""
    routes: dict[tuple[int, int], list[int]] = {}
    terminals = []
    for target, name in ((1, "stdout"), (2, "stderr")):
        try:
            about = os.fstat(target)
        except OSError:
            continue  # it is closed, and the child shall have it closed
        if os.isatty(target):
            terminals.append(name)
        else:
            routes.setdefault((about.st_dev, about.st_ino), []).append(target)
    if terminals:
        _say(f"{' and '.join(terminals)} {'is a terminal' if routes else 'are terminals'}: not masked")
    return list(routes.values())


def _high_pipe() -> tuple[int, int]:
    """A pipe that is none of the descriptors 0 to 2: a closed one of those stays closed for the child."""
    source, end = os.pipe()
    if source <= 2:
        pipe = _high_pipe()
        os.close(source)
        os.close(end)
        return pipe
    return source, end


class _Command:
    """The child, and what the outside does to it by way of us. `wake` can be read when there is news of it."""

    def __init__(self, pid: int, helper: int, blocked: Iterable[int]) -> None:
        self.pid, self.group = pid, os.getpgrp()
        self.status: int | None = None  # its wait status, once it has ended
        self.wake, end = _high_pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(end, False)
        _signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        self.leave_group(helper)
        _harden()  # after the forks: a core of ours would hold the values
        for signum in (*_HANDED_ON, _signal.SIGCHLD):
            if _signal.getsignal(signum) != _signal.SIG_IGN:
                _signal.signal(signum, self.note)
        self.follow()
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)

    def note(self, signum: int, frame: object) -> None:
        """Nothing: its number is in the pipe, and is heeded there, one after the other."""

    def heed(self) -> None:
        for signum in os.read(self.wake, 4096):
            if signum == _signal.SIGCHLD:
                self.follow()
            elif self.status is None:
                if signum not in _KEYBOARD or os.getpgrp() != self.group or not os.isatty(0):
                    os.kill(self.pid, signum)  # else it was typed, and the child has it already
            elif signum in _ENDING:  # it is meant for us, who may wait for a slow reader
                _die_of(signum)

    def follow(self) -> None:
        """Asks what has become of the child. If it has stopped, so do we, until we are continued."""
        while self.status is None:
            changed, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if not changed:
                return
            if not os.WIFSTOPPED(status):
                self.status = status
            try:
                if self.status is None:  # only where there is a terminal, a shell watches, and would continue us
                    os.close(os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY))
                os.setpgid(0, self.group)  # back to the child's
            except OSError:
                continue  # we lead a session and never left the group, or nobody is in it any more
            if self.status is None:
                os.kill(os.getpid(), _signal.SIGSTOP)
                self.leave_group(_found_group())

    def leave_group(self, helper: int) -> None:
        if helper:
            os.setpgid(0, helper)
            os.kill(helper, _signal.SIGKILL)
            os.waitpid(helper, 0)


def _found_group() -> int:
    """A helper that leads a group of its own, and soon ends: our own group's leader can found no
    other, but it can join one. 0: we lead a session, which cannot be left."""
    if os.getsid(0) == os.getpid():
        return 0
    helper = os.fork()
    if not helper:
        time.sleep(2)
        os._exit(0)
    os.setpgid(helper, helper)
    return helper


class _Channel:
    """One pipe from the child to one of our descriptors. It reads only when all that it read before is written, and never
    waits with a write, so that nobody's slow reader holds up the other stream."""

    def __init__(self, source: int, target: int, stream: _Stream) -> None:
        self.source, self.target, self.stream = source, target, stream
        self.pending, self.portion = b"", _MASK_STEP
        self.error: OSError | None = None
        if not stat.S_ISREG(os.fstat(target).st_mode):
            self.portion = PIPE_BUF  # that much goes into what has said that it can be written
        os.set_blocking(source, False)

    def read(self, most: int = _MASK_STEP) -> None:
        data = b""
        try:
            data = os.read(self.source, most)
        except BlockingIOError:
            pass  # nothing is left, and the child has ended
        self.pending += self.stream.feed(data)
        if not data:
            self.close()

    def write(self) -> None:
        """Some of what is pending. When that cannot be, the child is to learn it as we did."""
        try:
            self.pending = self.pending[os.write(self.target, self.pending[:self.portion]):]
        except BlockingIOError:
            pass  # somebody else made the descriptor non-blocking
        except OSError as error:
            self.error = error
            self.close()
            self.pending = b""

    def close(self) -> None:
        if self.source >= 0:
            os.close(self.source)
            self.source = -1
            self.pending += self.stream.flush()


def _attend(command: _Command, channels: list[_Channel]) -> int:
    """Carries output until the child has ended and all it wrote is out; returns its wait status."""
    import select
    while True:
        poller, doors = select.poll(), {command.wake: command.heed}
        poller.register(command.wake, select.POLLIN)
        for channel in channels:
            if command.status is not None and channel.source >= 0:
                channel.read(1 << 20)  # what is in the pipe now is the rest, whoever still holds its other end
                channel.close()
            if channel.pending:
                doors[channel.target] = channel.write
                poller.register(channel.target, select.POLLOUT)
            elif channel.source >= 0:
                doors[channel.source] = channel.read
                poller.register(channel.source, select.POLLIN)
        if command.status is not None and len(doors) == 1:
            return command.status
        for descriptor, _ in poller.poll():
            doors[descriptor]()


# ==== kernel guards ===================================================================================================
# Owns what Linux itself refuses to this process and to all that it starts, in whatever language they are written. What
# only the kernel refused is "Permission denied" to the program, and to nobody else: reports are the hook's.
#
# Seccomp judges system calls by their number and plain arguments, Landlock what is opened to be written and connected
# by TCP. Neither needs a privilege, neither can be lifted again, and below them sudo and its like gain nothing. They do
# not see addresses (so --allow-* is not theirs), reads, unix sockets by path, listening, or chmod beside --fs-write.

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
# A system call, its number on x86_64, and in the table that all newer machines share (-1: it is not there).
_CALLS = """
prctl 157 167 socket 41 198 sendto 44 206 sendmsg 46 211 sendmmsg 307 269 io_uring_setup 425 425
fork 57 -1 vfork 58 -1 clone 56 220 clone3 435 435 execve 59 221 execveat 322 281
landlock_create_ruleset 444 444 landlock_add_rule 445 445 landlock_restrict_self 446 446
"""
_ATTRIBUTE_CALLS = """
chmod 90 -1 fchmod 91 52 chown 92 -1 fchown 93 55 lchown 94 -1 fchownat 260 54 fchmodat 268 53
fchmodat2 452 452 utime 132 -1 utimes 235 -1 futimesat 261 -1 utimensat 280 88 setxattr 188 5
lsetxattr 189 6 fsetxattr 190 7 removexattr 197 14 lremovexattr 198 15 fremovexattr 199 16
setxattrat 463 463 removexattrat 466 466 file_setattr 469 469
"""  # Landlock has no right for these
_ALL, _ALLOWED, _KILLED = 0xFFFFFFFF, 0x7FFF0000, 0x80000000
_REFUSED, _UNKNOWN = 0x50000 | errno.EACCES, 0x50000 | errno.ENOSYS
_WRITE_RIGHTS, _FILE_RIGHTS = 0x7FF2, 0x4002  # all that changes anything, since Linux 6.2; those that a file has
_ALWAYS_WRITABLE = """
/dev/null /dev/zero /dev/full /dev/tty /dev/ptmx /dev/pts /dev/shm /dev/stdout /dev/stderr
"""  # /dev/shm: locks of multiprocessing; stdout and stderr may be files that the caller opened


class _Kernel:
    """The system calls that guards are made of. OSError: this kernel, or a sandbox around us, has none of them."""

    def __init__(self, path: str) -> None:
        self.machine, column = _MACHINES.get(os.uname().machine, (0, 0))
        if sys.platform != "linux" or not self.machine or sys.maxsize < 1 << 32:
            raise OSError(errno.ENOSYS, "no system calls that are known here")
        try:
            import ctypes
        except ImportError:
            raise OSError(errno.ENOSYS, "this Python is built without ctypes") from None
        self.ctypes, self.libc = ctypes, ctypes.CDLL(None, use_errno=True)
        words = (_CALLS + _ATTRIBUTE_CALLS).split()
        self.numbers = dict(zip(words[::3], map(int, words[1 + column::3])))
        self.path = ctypes.create_string_buffer(os.fsencode(path))  # of what may be executed

    def call(self, name: str, *args: int | bytes | None) -> int:
        long = self.ctypes.c_long
        words = [long(arg) if isinstance(arg, int) else arg for arg in args]  # bytes: their address
        result = self.libc.syscall(long(self.numbers[name]), *words)
        if result < 0:
            raise OSError(self.ctypes.get_errno(), name)
        return int(result)

    def landlock(self, network: bool, writable: Sequence[str]) -> bool:
        """Refuse connecting by TCP, and writing but below `writable` (empty: anywhere). Could it do the former?"""
        import struct
        version = self.call("landlock_create_ruleset", None, 0, 1)
        if version < 3:
            raise OSError(errno.ENOSYS, "this Landlock does not see what is truncated")
        connecting = 2 * (network and version >= 4)  # the right to connect by TCP
        asked = struct.pack("QQ", _WRITE_RIGHTS * bool(writable), connecting)
        rules = self.call("landlock_create_ruleset", asked, 16, 0)
        for path in filter(os.path.exists, writable):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rights = {True: _WRITE_RIGHTS, False: _FILE_RIGHTS}[os.path.isdir(path)]
            try:
                self.call("landlock_add_rule", rules, 1, struct.pack("=Qi", rights, descriptor), 0)
            except OSError:
                pass  # a pipe or a socket, which need no rule
            os.close(descriptor)
        self.call("landlock_restrict_self", rules, 0)
        os.close(rules)
        return connecting > 0

    def seccomp(self, rules: list[tuple[str, list[tuple[int, int, int]], int]]) -> None:
        """The first rule decides: a call, (which 32 bits of its arguments, mask, value) that all hold, the verdict."""
        import struct
        load, equal, above, mask, end = 0x20, 0x15, 0x35, 0x54, 0x06
        # Neither 32-bit programs nor x32 calls, whose numbers are others: both end on the spot.
        program = [load, 0, 0, 4, equal, 1, 0, self.machine, end, 0, 0, _KILLED,
                   load, 0, 0, 0, above, 0, 1, 1 << 30, end, 0, 0, _KILLED]  # four numbers an instruction
        for name, conditions, verdict in rules:
            left = 3 * len(conditions) + 1  # instructions to the end of this rule
            program += [load, 0, 0, 0, equal, 0, left, self.numbers[name] & _ALL]
            for word, bits, value in conditions:
                left -= 3
                program += [load, 0, 0, 16 + 4 * word, mask, 0, 0, bits, equal, 0, left, value]
            program += [end, 0, 0, verdict]
        program += [end, 0, 0, _ALLOWED]
        code = self.ctypes.create_string_buffer(struct.pack("HBBI" * (len(program) // 4), *program))
        self.call("prctl", 22, 2, struct.pack("HxxxxxxP", len(program) // 4, self.ctypes.addressof(code)), 0, 0)

    def hold(self, held: set[str], given: Sequence[str], own: str, python: bool) -> set[str]:
        """Hold these guards from here on, for good, but for writing below `given`; returns those that are held in full.
        A Python keeps TCP where Landlock does not see it: it may serve on this machine, and its hook sees where it
        connects. Nothing but `path` may be executed, and that by its address here, which means nothing from then on.
        """
        writable: list[str] = []
        if "fs-readonly" in held:  # what is to be made below its directory opens that to native code
            there = [path if os.path.exists(path) else os.path.dirname(path) for path in given]
            writable = [own, *there, *_ALWAYS_WRITABLE.split()]
        self.call("prctl", 38, 1, 0, 0, 0)  # no_new_privs
        sees_tcp, refused = False, ""
        try:
            sees_tcp = self.landlock("no-network" in held, writable)
        except OSError:
            held.discard("fs-readonly")  # too old, refused to us, or nothing to hold
        rules: list[Any] = [("io_uring_setup", [], _UNKNOWN)]  # it makes sockets without a call
        if "no-network" in held:  # a socket reaches this machine (1), the kernel (16), or is TCP, which Landlock judges
            rules += [("socket", [(0, _ALL, 1)], _ALLOWED), ("socket", [(0, _ALL, 16)], _ALLOWED)]
            if sees_tcp or python:
                rules.append(("socket", [(0, _ALL - 8, 2), (2, 15, 1), (4, _ALL - 6, 0)], _ALLOWED))
            for name, flags in ("sendto", 6), ("sendmsg", 4), ("sendmmsg", 6):
                rules.append((name, [(flags, 1 << 29, 1 << 29)], _REFUSED))  # MSG_FASTOPEN connects, unseen by Landlock
            refused = "socket "
        if "no-subprocess" in held:  # but a thread may start, and what lies at this address may be executed
            path = self.ctypes.addressof(self.path)
            rules += [("execve", [(0, _ALL, path & _ALL), (1, _ALL, path >> 32)], _ALLOWED),
                      ("clone", [(0, 1 << 16, 1 << 16)], _ALLOWED), ("clone3", [], _UNKNOWN)]
            refused += "clone fork vfork execve execveat "
        if "fs-readonly" in held and not given:
            refused += " ".join(_ATTRIBUTE_CALLS.split()[::3])
        for name in refused.split():
            rules.append((name, [], _REFUSED))
        self.seccomp(rules)
        if python and not sees_tcp:
            held.discard("no-network")
        return held

    def execute(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """Become `path`: the one execve that is left."""
        text, pairs = self.ctypes.c_char_p, list(map(b"=".join, _as_bytes(env).items()))
        words = (text * (len(argv) + 1))(*map(os.fsencode, argv))
        _default_signals()
        self.libc.execve(self.path, words, (text * (len(pairs) + 1))(*pairs))
        code = self.ctypes.get_errno()
        raise _system_error(OSError(code, os.strerror(code)), f"cannot run {_shown(argv[0])}")


def _sign_as_guarded() -> None:
    """Tell the session's server that this process and all that it starts is under guards: it looks at this limit."""
    if sys.platform == "linux":
        import resource
        hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
        if hard == resource.RLIM_INFINITY:
            hard = 1 << 30
        hard -= (hard - GUARD_SIGN) % 4096
        if hard > 0:  # else somebody has set it too low to say anything
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (hard, hard))


# ==== hermetic ========================================================================================================
# Owns the audit hook: what a guarded Python program may not do, and how every Python that it starts is guarded too: it
# imports a private copy of this very file. All this is for programs that make mistakes, not for ones that mean harm.
#
# One hook (PEP 578) for each set of guards decides, and raising from it aborts the action; so does a mistake in a
# check. Where CPython raises an event too late, a patch raises it: patches decide nothing. No thread has a state, so
# nothing is open for a moment in another one, in a fork or in a signal handler.
#
# Guards travel in HOTENV_GUARDS as words, one a line: no-network, allow-domain=example.com, fs-readonly=/srv, and three
# of ours: sealed=, what is closed under any guard; program=, where the target's own files are; secret=, a variable
# whose value no trace shows. An empty line begins a further set (hermetic within hermetic), and all sets hold.

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# An event, and for each path in it: its index, that of its directory's descriptor (9: it has none), whether a final
# link is followed (f), and whether the path is to be made (m).
_CHANGES = """
os.chflags 09f os.chmod 02f os.chown 03f os.link 02f,13m os.mkdir 02m os.remove 01
os.removexattr 09f os.rename 02,13m os.rmdir 01 os.setxattr 09f os.symlink 12m os.truncate 09f
os.utime 03f
""".split()
_WRITABLE = "/dev/null/ /dev/zero/ /dev/full/ /dev/tty/ /dev/ptmx/ /dev/pts/".split()
_READABLE = """
/dev/random/ /dev/urandom/ /etc/localtime/ /etc/mime.types/ /etc/os-release/ /proc/cpuinfo/
/usr/lib/os-release/ /usr/share/zoneinfo/ /proc/meminfo/ /proc/stat/
""".split()  # what the standard library reads on its own; none of it is anybody's
_METADATA = """
169.254.169.254 169.254.170.2 169.254.170.23 168.63.129.16 100.100.100.200 192.0.0.192
fd00:ec2::254 fd00:ec2::23 fd20:ce::254 metadata.google.internal metadata.goog metadata
instance-data instance-data.ec2.internal
""".split()  # where clouds hand out credentials: neither a suffix nor what an allowed name resolves to opens it
_UNSEEN = ("_interpreters", "_xxsubinterpreters")  # have hooks of their own; as uvloop, which opens sockets in C
_THIS_MACHINE = (bytes(10) + b"\xff\xff\x7f", bytes(15) + b"\1")  # how 127.0.0.0/8 and ::1 begin
_SECRET = (r"[\w-]*(?:passw|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key"
           r"|credential|cookie|auth)[\w-]*")
_INTERNET = (_socket.AF_INET, _socket.AF_INET6)
_leave = os._exit  # the real one; at the end of the interpreter os is empty


class _Guarded:
    """This process, once it is guarded."""

    text = home = ""  # HOTENV_GUARDS, and the directory that PYTHONPATH begins with
    blocked: list[str] = []  # the events that were: any decides the exit status
    trace: int | None = None  # a duplicate of stderr, which the program may redirect
    secrets: dict[str, str] = {}  # as they were at the start: a program may take its own away
    redactors: list[Redactor] = []  # what hides them, once it was needed


def _by_name(words: Sequence[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.partition("=")
        values.setdefault(name, []).append(value)
    return values


class _Refusal(Exception):
    """What a check raises. It counts, unless the program only asks in passing and has another way."""

    def __init__(self, reason: str, hint: str = "", counts: bool = True, **details: Any) -> None:
        self.reason, self.hint, self.counts, self.details = reason, hint, counts, details


class _Guards:
    """One set of guards. All sets must let an action pass."""

    def __init__(self, words: Sequence[str]) -> None:
        values = _by_name(words)
        self.network, self.processes = "no-network" in values, "no-subprocess" in values
        self.imports, self.localhost = "strict-imports" in values, "allow-localhost" in values
        self.domains = values.get("allow-domain", [])
        self.known = _addresses(self.domains)  # those that may be reached
        self.metadata = _addresses(_METADATA)
        self.sealed = _roots(values.get("sealed", []))
        self.writable = (*_roots(values.get("fs-write", [])), *_WRITABLE)
        if "fs-readonly" not in values:
            self.writable = ("/",)
        self.root = values.get("fs-readonly", ["/"])[0]
        self.trusted: tuple[str, ...] = ("",)  # what may be read without a look
        self.readable: tuple[str, ...] = ("/",)
        if self.root != "/":  # below it, the target's own files, and Python's
            own = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__)}
            # A link that lies below the interpreter's own directories spares every import a realpath.
            self.trusted = ("/dev/stdin", *[path + "/" for path in own])
            places = [self.root, _Guarded.home, *own, *map(str, sys.path), *values.get("program", [])]
            self.readable = (*_roots(places), *self.writable, *_READABLE, f"/proc/{os.getpid()}/")
        self.changes = dict(zip(_CHANGES[::2], _CHANGES[1::2]))
        self.alive: list[str] = []  # has an event, once the hook is in force
        self.checks: dict[str, Callable[..., None]] = {"hotenv.alive": self.alive.append}
        # What is not here is no guard's concern.
        for check, events in (
                (self.on_change, " ".join(self.changes)), (self.on_open, "open os.listdir os.scandir"),
                (self.on_start, "subprocess.Popen os.system os.exec os.posix_spawn os.spawn"),
                (self.on_start, "os.fork os.forkpty pty.spawn"),
                (self.on_address, "socket.connect socket.bind socket.sendto socket.sendmsg"),
                (self.on_lookup, "socket.getaddrinfo socket.gethostbyname socket.gethostbyaddr socket.getnameinfo"),
                (self.on_socket, "socket.__new__"), (self.on_resolved, "hotenv.resolved"), (self.on_import, "import"),
                (self.on_sqlite, "sqlite3.connect"), (self.on_end, "cpython.PyInterpreterState_Clear")):
            self.checks.update(dict.fromkeys(events.split(), check))

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        check = self.checks.get(event)
        if check is not None:
            try:
                check(event, *args)
            except _Refusal as refusal:
                raise _reported(event, refusal) from None

    def on_end(self, event: str) -> None:
        if _Guarded.blocked:  # at the very end: every module is gone, every file flushed and closed
            _leave(2)

    def may_reach(self, host: Any, connecting: bool = True) -> bool:
        """Is this host, a name or an address, allowed? To resolve or bind this machine itself always is."""
        name = _host_name(host)
        address = _packed(name)
        if name in _METADATA or address in self.metadata:
            return name in self.domains or address in self.known
        if address is None:
            local = name in ("localhost", _host_name(os.uname().nodename)) or name.endswith(".localhost")
            allowed = f".{name}".endswith(tuple(["." + domain for domain in self.domains]))
        else:
            local = address.startswith(_THIS_MACHINE)
            allowed = address in self.known
        return allowed or local and (self.localhost or not connecting)

    def on_address(self, event: str, sock: Any, address: Any) -> None:
        if not address:
            return  # sent over a connection
        if sock.family != _socket.AF_UNIX:
            internet = sock.family in _INTERNET  # no other has hosts that could be told
            if self.network and not (internet and self.may_reach(address[0], event != "socket.bind")):
                raise _Refusal("no-network", host=address[0])
        elif address[0] not in (0, "\0"):  # else an abstract name, which is no file
            if event == "socket.bind":
                self.change(address)
            elif f"{_real(address)}/".startswith(self.sealed):
                raise _Refusal("hotenv-session", path=_real(address))  # the door to the secrets stays shut

    def on_socket(self, event: str, sock: Any, family: int, kind: int, *_: Any) -> None:
        """Nothing but TCP, as in the kernel: it would not see where a datagram goes."""
        strict = self.network and not self.localhost and not self.domains
        if strict and family in _INTERNET and kind & 15 != _socket.SOCK_STREAM:
            raise _Refusal("no-network", family=int(family), type=int(kind))

    def on_lookup(self, event: str, host: Any, *_: Any) -> None:
        if isinstance(host, tuple):
            host = host[0]
        if self.network and host and not self.may_reach(host, connecting=False):
            raise _Refusal("no-network", host=host)

    def on_resolved(self, event: str, host: Any, found: list[Any]) -> None:
        """An allowed name is known by its addresses from then on: connect sees nothing else."""
        if host and self.may_reach(host):
            addresses = {_packed(entry[4][0]) for entry in found}
            if _host_name(host) not in _METADATA:
                addresses -= self.metadata
            self.known |= addresses

    def change(self, path: Any, dir_fd: int = -1, follow: bool = True, made: bool = True) -> None:
        """May this path be written, made, removed or changed? What is not there is missing, not refused."""
        real = _real(path, dir_fd, follow)
        if f"{real}/".startswith(self.sealed):
            raise _Refusal("hotenv-session", path=real)
        allowed = f"{real}/".startswith(self.writable) or path in ("/dev/stdout", "/dev/stderr")
        if not allowed and (made or os.path.lexists(real)):
            raise _Refusal("fs-readonly", " (--fs-write PATH allows writing below PATH)", path=real)

    def read(self, path: Any) -> None:
        text = os.fsdecode(path)
        if text.startswith(self.trusted) and "/.." not in text:
            return
        real = os.path.realpath(text)
        if not f"{real}/".startswith(self.readable) and os.path.exists(real):
            hint = f" (reads are allowed below {self.root}; --fs-readonly=PATH reads below PATH, =/ reads anything)"
            raise _Refusal("fs-readonly", hint, path=real)

    def on_open(self, event: str, path: Any, mode: Any = None, flags: int = 0) -> None:
        if isinstance(path, int):
            return  # it was opened before
        if flags & _WRITING:
            self.change(path, made=flags & os.O_CREAT > 0)
        elif event == "open" or os.path.isdir(path or "."):  # else there is nothing to list
            self.read(path or ".")

    def on_change(self, event: str, *args: Any) -> None:
        padded = [*args, *[-1] * 10]
        if event == "os.truncate" and isinstance(args[0], int):
            return  # it was opened for writing
        for place in self.changes[event].split(","):
            path, directory = padded[int(place[0])], padded[int(place[1])]
            self.change(path, directory, "f" in place, "m" in place)

    def on_sqlite(self, event: str, database: Any) -> None:
        """Only what is in memory may be opened, or what says in its URI that it is only read."""
        path, _, query = os.fsdecode(database).partition("?")
        if path not in ("", ":memory:") and not {"mode=ro", "immutable=1", "mode=memory"} & set(query.split("&")):
            self.change(path)

    def on_start(self, event: str, *args: Any) -> None:
        if self.processes:
            argv = list(args[:1])  # a shell's line
            for arg in args[::-1]:
                if isinstance(arg, (list, tuple)):
                    argv = list(arg)
            # platform.processor() asks uname, and has an answer without it.
            raise _Refusal("no-subprocess", counts=argv != ["uname", "-p"], argv=argv)
        if not os.path.exists(_Guarded.home + "/sitecustomize.py"):
            raise _Refusal("hermetic", " (the files that would guard the child are gone)", path=_Guarded.home)
        for env in (os.environ, *args):  # whatever environment the program makes for a child
            if hasattr(env, "keys"):
                env.update(_carried(env))

    def on_import(self, event: str, module: str, filename: Any, *_: Any) -> None:
        top = module.partition(".")[0]
        if top in _UNSEEN or top == "uvloop" and (self.network or self.processes):
            raise _Refusal("hermetic", counts=False, module=module)
        place = os.path.dirname(filename or "")
        native = filename and not (place.endswith("/lib-dynload") and place in sys.path)
        if self.imports and (native or top in ("ctypes", "_ctypes", "cffi", "_cffi_backend")):
            raise _Refusal("strict-imports", module=module)


def _reported(event: str, refusal: _Refusal) -> Exception:
    """Count it, trace it, and make of it what programs know how to take."""
    frame: Any = sys._getframe()
    line = event
    while frame and frame.f_globals is _reported.__globals__:
        frame = frame.f_back
    home = frame and frame.f_globals.get("__name__")
    # The public function that led to the event: subprocess.run, not subprocess.Popen.
    while frame and home in ("os", "socket", "subprocess") and frame.f_globals.get("__name__") == home:
        name = frame.f_code.co_name.replace("__init__", "Popen")
        if name[0] not in "_<":
            line = f"{home}.{name}"
        frame = frame.f_back
    try:
        for detail, value in refusal.details.items():
            if value != []:
                line += f" {detail}={_traced(value)}"
    except Exception:
        pass  # at the end of the interpreter nothing can be imported any more
    line = f"{line[:1990]} reason={refusal.reason}"
    if refusal.counts:
        _Guarded.blocked.append(event)
    if _Guarded.trace is not None:
        try:
            os.write(_Guarded.trace, f"[hermetic] blocked {line}\n".encode("ascii", "backslashreplace"))
        except OSError:
            pass  # a daemon has closed it
    if event == "import":
        return ImportError(f"blocked by hotenv: {line}", name=refusal.details["module"])
    return PermissionError(errno.EACCES, f"blocked by hotenv: {line}{refusal.hint}")


def _traced(value: Any) -> str:
    """For a trace or an error: escaped, and without the secrets that can be told."""
    import re
    if not _Guarded.redactors:  # a path that was made of a value has lost its double slashes
        paths = {name: os.path.normpath(secret) for name, secret in _Guarded.secrets.items()}
        _Guarded.redactors = [Redactor(_Guarded.secrets), Redactor(paths)]
    shown, text = [], ""
    for word in value if isinstance(value, list) else [value]:
        text = str(word)
        if isinstance(word, (bytes, os.PathLike)):
            text = os.fsdecode(word)
        for redactor in _Guarded.redactors:
            text = redactor(text)
        text = re.sub(rf"(?is)((?<![\w-]){_SECRET})(\s*[=:]\s*|\s+).+", r"\1\2***", text)
        text = re.sub(r"://[^/\s@]*@", "://***@", text)
        shown.append(repr(text))
    if isinstance(value, list):
        words = ",".join(shown)
        return "[%s]" % re.sub(rf"(?i)('-{_SECRET}',)('(?:[^'\\]|\\.)*'|\"[^\"]*\")", r"\1'***'", words)
    if shown[0] == f"'{text}'" and " " not in text:
        return text
    return shown[0]


def _roots(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple([os.path.realpath(path).rstrip("/") + "/" for path in paths])


def _real(path: Any, dir_fd: int = -1, follow: bool = True) -> str:
    """The path that an action is about, without links; of a descriptor, the path that it was opened by."""
    if isinstance(path, int):
        path, dir_fd = ".", path
    directory = f"/proc/self/fd/{dir_fd}" * (dir_fd >= 0)
    if sys.platform == "darwin" and dir_fd >= 0:
        import fcntl
        directory = os.fsdecode(fcntl.fcntl(dir_fd, 50, bytes(1024)).rstrip(b"\0"))  # F_GETPATH
    path = os.path.join(directory, os.fsdecode(path))
    head, tail = os.path.split(path.rstrip("/"))
    if follow or tail in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(head), tail)


def _host_name(host: Any) -> str:
    """One spelling of a host: lower case, no final dot, no zone of an IPv6 address, the ASCII form of a name."""
    name = os.fsdecode(host)
    if not name.isascii():
        name = name.encode("idna").decode()
    return str(name.lower().rstrip(".").partition("%")[0])


def _packed(name: str) -> bytes | None:
    """The 16 bytes of an address, in any form that the system takes, or None for a name."""
    try:
        if ":" in name:
            return _socket.inet_pton(_socket.AF_INET6, name)
        return bytes(10) + b"\xff\xff" + _socket.inet_aton(name)
    except (OSError, ValueError):
        return None


def _addresses(hosts: Iterable[str]) -> set[bytes | None]:
    return {_packed(_host_name(host)) for host in hosts} - {None}


def _patch(names: str, call: Any) -> None:
    """Put call(original, ...) in the place of functions, under whatever name the standard library knows them by now."""
    call.__code__ = call.__code__.replace(co_filename="<hotenv>")  # coverage knows that this is no file
    for name in names.split():
        module, _, function = name.partition(".")
        original = getattr(sys.modules[module], function)
        replacement = call.__get__(original)  # bound like a builtin: no method when it is the attribute of a class
        for place in {"os", "posix", "subprocess", "_posixsubprocess", "socket", "_socket"} & set(sys.modules):
            space = vars(sys.modules[place])
            space.update({key: replacement for key, value in space.items() if value is original})


def _start(original: Any, *args: Any, **kwargs: Any) -> Any:
    """While the environment can still be changed."""
    sys.audit("os.exec", *args, *kwargs.values())
    return original(*args, **kwargs)


def _end(original: Any, status: int) -> None:
    if _Guarded.blocked:
        status = 2
    original(status)


def _resolve(original: Any, host: Any, *args: Any, **kwargs: Any) -> Any:
    found = original(host, *args, **kwargs)
    sys.audit("hotenv.resolved", host, found)
    return found


def _early(original: Any) -> Any:
    """A method that looks up a name before its event: by then the query has left. So the name goes first, alone."""
    event = "socket." + original.__name__.replace("_ex", "")

    def call(sock: Any, *args: Any) -> Any:
        address = args[-1]
        if isinstance(address, tuple) and isinstance(address[0], str) and _packed(_host_name(address[0])) is None:
            sys.audit(event, sock, address)
            found = _socket.getaddrinfo(address[0], None, sock.family, sock.type, sock.proto)
            args = (*args[:-1], (found[0][4][0], *address[1:]))  # now the check sees where it goes
        return original(sock, *args)
    code: Any = call.__code__.replace(co_filename="<hotenv>")
    call.__code__ = code
    return call


def _guard(text: str, home: str) -> None:
    """Put guards in force in this interpreter, for good, and in whatever Python is started from here."""
    import _posixsubprocess  # noqa: F401  (for those that import it later)
    if "sealed=" not in text:
        raise RuntimeError("HOTENV_GUARDS is damaged")
    _Guarded.text, _Guarded.home = text, home
    words = text.split("\n")
    for name in _by_name(words).get("secret", []):
        _Guarded.secrets[name] = os.environ.get(name, "")
    sys.dont_write_bytecode |= "fs-readonly=" in text
    if "trace" in words:
        import fcntl
        try:
            _Guarded.trace = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 200)  # above what daemons close and tests count
        except OSError:
            pass  # stderr is closed, or descriptors end below
    # _execvpe so that one attempt is one refusal, not one for each entry of PATH.
    _patch("os.execve os._execvpe os.posix_spawn os.posix_spawnp _posixsubprocess.fork_exec", _start)
    _patch("os._exit", _end)
    if "no-network" in words:
        _patch("_socket.getaddrinfo", _resolve)
        base: Any = _socket.socket
        methods: dict[str, Any] = {"__slots__": ()}
        for name in "connect connect_ex bind sendto".split():
            methods[name] = _early(getattr(base, name))
            if "socket" in sys.modules:  # whose class was made from the original
                setattr(sys.modules["socket"].socket, name, methods[name])
        patched: Any = type("socket", (base,), methods)
        _socket.socket = _socket.SocketType = patched  # type: ignore[misc]
    os.register_at_fork(after_in_child=_Guarded.blocked.clear)
    for part in text.split("\n\n"):
        guards = _Guards(part.split("\n"))
        sys.addaudithook(guards.hook)
        sys.audit("hotenv.alive")
        if not guards.alive:  # CPython says nothing when an older hook refuses a new one
            raise RuntimeError("another audit hook refuses the guards")
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _uncaught
    while home in sys.path:
        sys.path.remove(home)
    sys.modules.pop("hotenv", None)  # what stays importable is emptied before the program's end
    os.environ.update(_carried(os.environ))


def _carried(env: Mapping[str, str]) -> dict[str, str]:
    """The two variables that guard a child. Guards that add to ours stay as they are."""
    text, paths = env.get("HOTENV_GUARDS", ""), env.get("PYTHONPATH", "").split(os.pathsep)
    if not text.startswith(_Guarded.text + "\n\n"):
        text = _Guarded.text
    paths = [path for path in paths if path not in ("", _Guarded.home)]  # an empty one is the current directory
    return {"HOTENV_GUARDS": text, "PYTHONPATH": os.pathsep.join([_Guarded.home, *paths])}


def _uncaught(kind: Any, error: Any, trace: Any) -> None:
    """The last word about an exception shows nothing of ours: neither what led to the target nor what refused."""
    kept: list[Any] = []
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
# Written by hotenv. When site imports it, it guards this interpreter; run as a script it then becomes the target, for a
# Python that ignores PYTHONPATH.
import os, sys
try:
    if sys.version_info < (3, 8) or sys.implementation.name != "cpython":
        raise RuntimeError("it is no CPython 3.8 or later")
    if not hasattr(sys, "_hotenv"):
        home = os.path.dirname(os.path.abspath(__file__))
        sys.dont_write_bytecode, kept = False, sys.dont_write_bytecode
        sys.path.insert(0, home)
        import hotenv
        sys.dont_write_bytecode = kept
        hotenv._guard(os.environ["HOTENV_GUARDS"], home)
        sys._hotenv = hotenv._become
except BaseException:
    os.write(2, ("hotenv: cannot guard %s: %s\\n" % (sys.executable, sys.exc_info()[1])).encode("ascii", "replace"))
    os._exit(1)
if __name__ == "__main__":
    sys._hotenv(sys.argv[1], sys.argv[2:])
else:
    ours = sys.modules.pop("sitecustomize")
    if sys.version_info < (3, 9) and os.path.isfile(sys.argv[0]):  # later ones make it absolute
        sys.modules["__main__"].__file__ = os.path.abspath(sys.argv[0])
    try:
        import sitecustomize  # the one that would have run without us
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)
"""


def _become(kind: str, argv: list[str]) -> NoReturn:
    """Run a path, a module, a callable or the text after -c as `__main__`; argv[0] names it, the rest are its own."""
    import importlib
    import operator
    import runpy
    runner: Any = runpy
    target, path, first = argv[0], os.path.abspath(argv[0]), os.getcwd()
    main = sys.modules["__main__"] = type(sys)("__main__")
    sys.argv[:] = argv
    if kind == "path":
        first = os.path.dirname(os.path.realpath(target))
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path.insert(0, first)
    if kind == "call":
        target, _, attributes = target.partition(":")
        found = operator.attrgetter(attributes)(importlib.import_module(target))
        if callable(found):
            sys.exit(found())
    if kind in ("call", "module"):
        runner._run_module_as_main(target)
    source: Any = b"\0"
    if kind == "code":
        path, source = "<string>", sys.argv.pop(1)
    elif os.path.isfile(path):
        vars(main).update(__file__=path, __cached__=None)
        with open(path, "rb") as script:
            source = script.read()
    if kind == "path" and b"\0" in source:
        runpy.run_path(target, run_name="__main__")  # a directory, or a zip file
    else:
        exec(compile(source, path, "exec", 0, True), vars(main))
    sys.exit()


# ==== hermetic host ===================================================================================================
# Owns the way in: which guards are asked for, which program a target is, and how it is started under them.
#
# A Python is started as it would be by itself: PYTHONPATH brings in the loader, which guards it before its first line.
# One that ignores PYTHONPATH is started on the loader. What belongs to this very environment runs in this process,
# unless that has held a session's values. All else is a program: the kernel alone must be able to hold its guards.

_GUARDS_KEPT = 7 * 86400  # seconds; what runs for longer on an older version's guards can start no child any more
_ALLOWANCES = {"no_network": "allow_localhost allow_domain", "no_subprocess": "", "strict_imports": "",
               "fs_readonly": "fs_write"}  # guard -> what opens it again
_PROFILES = {"net-hermetic": "no_network allow_localhost", "exec-deny": "no_subprocess", "fs-readonly": "fs_readonly",
             "strict-imports": "strict_imports", "all": "no_network no_subprocess fs_readonly strict_imports"}
_FLAGS = "[bBdEiIOPqRsSuvx]"  # a Python's own that take no value


def _add_guard_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("guards").add_argument
    add("--no-network", action="store_true", help="no connection, no name looked up")
    add("--allow-localhost", action="store_true", help="except this machine (127.0.0.0/8, ::1)")
    add("--allow-domain", action="append", default=[], metavar="D", type=_domain, help="except D and what ends in .D")
    add("--no-subprocess", action="store_true", help="no other program, no fork")
    add("--fs-readonly", nargs="?", const=".", metavar="PATH", type=_guard_path,
        help="write nothing; read only below the current directory, or PATH (--fs-readonly=/ reads anything)")
    add("--fs-write", action="append", default=[], metavar="PATH", type=_guard_path, help="except below PATH")
    add("--strict-imports", action="store_true", help="no native extensions but Python's own; no ctypes, no cffi")
    add("--profile", action="append", default=[], choices=list(_PROFILES), help=", ".join(_PROFILES), metavar="NAME")
    add("--trace", action="store_true", help="a line on stderr for each blocked action")


def _domain(text: str) -> str:
    import re
    name = re.sub(r"^(\*\.|\.+)", "", _host_name(text))
    if not re.fullmatch(r"[\w.-]+", name) and _packed(name) is None:
        raise ValueError("only a host name or an address is wanted")
    return name


def _guard_path(text: str) -> str:
    if not text:
        raise ValueError("an empty path means nothing here")
    return os.path.realpath(text)


def _any_guard(asked: argparse.Namespace) -> bool:
    return any([vars(asked)[name] for name in [*_ALLOWANCES, "profile"]])


def _guard_words(asked: argparse.Namespace, environ: Mapping[str, str]) -> list[str]:
    """The guards of all sources: configuration file, environment, command line, lowest first.
    What switches a guard on adds up. An allowance counts only from the source that switched the guard on last, or from
    a higher one: a file in a checkout cannot open what the command line closed.
    """
    import shlex
    try:
        flags = shlex.split(environ.get("HERMETIC_FLAGS", ""))
    except ValueError as error:
        raise HotenvError(EXIT_USAGE, f"HERMETIC_FLAGS: {error}") from None
    flags += [f"--profile={name}" for name in environ.get("HERMETIC_PROFILE", "").replace(",", " ").split()]
    if environ.get("HERMETIC_FS_ROOT"):
        flags.append(f"--fs-readonly={environ['HERMETIC_FS_ROOT']}")
    sources = [dict(vars(asked))]
    for where, given in ("HERMETIC_FLAGS", flags), ("the configuration file", _config_flags()):
        if {"-h", "--help"} & set(given):
            raise HotenvError(EXIT_USAGE, f"{where}: there is no guard that is called help")
        parser = _parser(where, "")
        _add_guard_options(parser)
        sources.append(vars(parser.parse_args(given)))
    words: list[str] = []
    for source in sources:
        words += ["trace"] * source["trace"]
        for option in " ".join([_PROFILES[name] for name in source["profile"]]).split():
            source[option] = source[option] or {"fs_readonly": os.path.realpath(".")}.get(option, True)
    for guard, allowances in _ALLOWANCES.items():
        allowed: list[str] = []
        for source in sources:
            allowed += _as_words(source, allowances.split())
            if source[guard]:
                words += _as_words(source, [guard]) + allowed
                break
    return words


def _as_words(options: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    words = []
    for name in names:
        values = options[name]
        if not isinstance(values, list):
            values = [values]
        for value in filter(None, values):
            if not isinstance(value, (str, bool)):
                raise ValueError(f"{name} takes true, a text or a list of texts")
            words.append(name.replace("_", "-") + f"={value}" * (value is not True))
    return words


def _config_flags() -> list[str]:
    """The guards in ./pyproject.toml, [tool.hermetic], and ./HERMETIC.toml, as the command line would have them."""
    import re
    flags: list[str] = []
    for path in "pyproject.toml", "HERMETIC.toml":
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if path == "pyproject.toml" and not re.search(r"(?m)^[^#=\n]*hermetic", text):
                continue  # parsing takes 8 ms
            import tomllib  # type: ignore[import-not-found]  # where it is older than 3.11
            table = tomllib.loads(text)
            if path == "pyproject.toml":
                table = table.get("tool", {}).get("hermetic", {})
            flags += ["--" + word for word in _as_words(table, table)]
        except FileNotFoundError:
            pass  # as in most directories
        except ImportError:
            raise HotenvError(EXIT_USAGE, f"only Python 3.11 or later can take guards from {path}") from None
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise HotenvError(EXIT_USAGE, f"cannot take guards from {path}: {_shown(str(error))}") from None
    return flags


def _run_hermetic(guards: list[str], target: list[str], env: dict[str, str], secrets: Iterable[str] | None = None,
                  sockets: Sequence[str] = ()) -> NoReturn:
    """Become the target under the guards. `secrets` is None without a session; under `run`, the session's names.
    With a session the target gets a process image of its own: what --only left out is not in its memory.
    """
    if not set(guards) - {"trace"}:
        _say(f"no guard is on: the target runs as it is (--no-network, ..., see: {_invocation()} hermetic --help)")
    try:
        _Guarded.home = _place_loader()
        kind, argv = _resolve_target(target, env.get("PATH", os.defpath))
    except OSError as error:
        what = _shown(str(error.filename or target[0]))
        raise HotenvError(1, f"cannot guard {_shown(target[0])}: {what}: {error.strerror}") from None
    program = os.getcwd()  # or where the script is, which is one of the first words
    for word in argv[:2]:
        if os.path.isfile(word):
            program = os.path.dirname(os.path.realpath(word))
    # No guarded program may touch our directories, nor the sessions that can be found from here.
    sealed = {f"/tmp/hotenv-{os.getuid()}", _runtime_dir(), *sockets}
    try:
        sealed.add(_find_session())
        sealed.add(_read_marker(_find_marker() or ""))
    except (HotenvError, OSError):
        pass  # there is none, so none to be kept from
    words = [*guards, f"program={program}", *[f"sealed={os.path.abspath(path)}" for path in sealed],
             *[f"secret={name}" for name in secrets or ()]]
    if "\n" in "".join(words):
        raise HotenvError(1, "a path with a line break in it cannot be guarded")
    _Guarded.text = "\n\n".join(filter(None, [os.environ.get("HOTENV_GUARDS"), "\n".join(words)]))
    env = {**env, **_carried(env)}
    _sign_as_guarded()
    if kind in ("path", "module", "call"):
        if secrets is None and not sys.flags.isolated + sys.flags.no_site + sys.flags.ignore_environment:
            raise _Afterwards(lambda: _run_here(kind, argv, env, guards))
        how = {"path": [], "module": ["-m"], "call": [f"{_Guarded.home}/sitecustomize.py", kind]}
        argv = [sys.executable, *how[kind], *argv]
    kernel = _guard_in_kernel(guards, argv[0], kind != "program")
    if kernel and "no-subprocess" in guards:
        kernel.execute(argv, env)
    _exec(argv, env)


def _guard_in_kernel(guards: list[str], path: str, python: bool) -> _Kernel | None:
    """Have the kernel hold what it can. A Python has its hook for the rest; anything else is refused."""
    values, held, kernel = _by_name(guards), set(), None
    asked = {"no-network", "no-subprocess", "fs-readonly"} & set(values)
    wanted = set(asked)
    if "allow-localhost" in values or "allow-domain" in values:
        wanted.discard("no-network")  # it sees no addresses
    try:
        if wanted:
            kernel = _Kernel(path)
            held = kernel.hold(wanted, values.get("fs-write", []), f"{_Guarded.home}/__pycache__", python)
    except OSError:
        kernel = None  # another system, an old kernel, or a sandbox around us that refuses it
    left = sorted(asked - held)
    if python and left and "trace" in guards:
        os.write(2, f"[hermetic] for Python code only: {', '.join(left)}\n".encode())
    if "strict-imports" in values:
        left.append("strict-imports")
    if values.get("fs-readonly", ["/"]) != ["/"]:
        left.append(f"fs-readonly={values['fs-readonly'][0]}")
    if left and not python:
        raise HotenvError(1, f"{_shown(path)} is no Python program, and nothing else can be held to "
                             f"--{', --'.join(left)} here (--fs-readonly=/ can, and --no-network without --allow)")
    return kernel


def _run_here(kind: str, argv: list[str], env: dict[str, str], guards: list[str]) -> NoReturn:
    """In this very process: the target belongs to this environment, and no session's values are in our memory."""
    os.environ.clear()
    os.environb.update(_as_bytes(env))
    if sys.path[:1] == [os.path.dirname(os.path.realpath(sys.argv[0]))]:
        del sys.path[0]  # hotenv's own directory
    before = set(sys.modules)
    kernel = _guard_in_kernel(guards, "", True)  # noqa: F841  (while it lives, no other path has that address)
    for name in set(sys.modules) - before:
        del sys.modules[name]  # else to import ctypes would be no import
    _guard(_Guarded.text, _Guarded.home)
    _become(kind, argv)


def _place_loader() -> str:
    """A directory below our private one with the loader and a copy of this file; every version has its own.
    Python keeps its .pyc there too: what is guarded cannot write to it, and what is not could change this very file.
    """
    import shutil
    import zlib
    loader: Any = __loader__  # type: ignore[name-defined]
    runtime, source = _runtime_dir(), loader.get_data(os.path.abspath(__file__))
    home = f"{runtime}/guards-{zlib.crc32(source):08x}"
    if not os.path.isdir(home + "/__pycache__"):
        for name in os.listdir(runtime):
            path = f"{runtime}/{name}"
            if name.startswith("guards-") and os.path.getmtime(path) < time.time() - _GUARDS_KEPT:
                shutil.rmtree(path, ignore_errors=True)  # another start may clear it too
        os.makedirs(home + "/__pycache__", 0o700, exist_ok=True)
    for path, content in (f"{home}/hotenv.py", source), (f"{home}/sitecustomize.py", _LOADER):
        if not os.path.exists(path):
            with open(f"{path}.{os.getpid()}", "wb") as file:
                file.write(content)
            os.replace(file.name, path)  # whole, for one that starts meanwhile
    if "HOTENV_GUARDS" not in os.environ:  # else it is sealed
        os.utime(home)  # in use
    return home


def _resolve_target(target: list[str], path: str) -> tuple[str, list[str]]:
    """What a target is, and its command line: "program" or "python", to be executed as it stands; or what this Python
    runs, in words of _become: "path", "module" or "call"."""
    import shutil
    name, here = target[0], os.path.dirname(sys.executable)
    if "/" not in name and ":" in name:
        return "call", target
    places = f"{here}:{path}"  # what this environment has comes first; but a Python is the one that PATH means
    if _is_python(name):
        places = path
    found = shutil.which(name, path=places)
    if "/" in name:
        found = name
    elif not found and name.endswith(".py") and os.path.isfile(name):
        found = f"./{name}"
    if not found:
        from importlib import metadata
        for distribution in metadata.distributions():
            for entry in distribution.entry_points:
                if (entry.group, entry.name) == ("console_scripts", name):
                    return "call", [entry.value.partition("[")[0].strip(), *target[1:]]
        return "module", target
    words, first = [found, *target[1:]], _first_line(found)
    if first is None:
        return "path", words
    kind, argv = _resolve_python([*first, *words], path)
    if kind == "program":
        return kind, words
    if argv[1:] == words and os.path.dirname(argv[0]) == here and os.path.samefile(argv[0], sys.executable):
        return "path", words
    return kind, argv


def _resolve_python(words: list[str], path: str) -> tuple[str, list[str]]:
    """`python3 -X dev script.py`, `python3 -m module`, `python3 -c text`, `python3`; anything else is a program."""
    import re
    import shutil
    import subprocess
    rest, flags = [*words[1:], ""], ""
    while re.fullmatch(f"-{_FLAGS}+|-{_FLAGS}*[WX].*", rest[0]):
        flags += re.split("[WX]", rest[0])[0]
        del rest[:1 + (rest[0][-1] in "WX")]
    known = rest[0] in ("-", "-c", "-m") or not rest[0].startswith("-")
    python = shutil.which(words[0], path=path)
    if not python or not known or not _is_python(python):
        return "program", words
    with open(python, "rb") as file:
        if file.read(2) == b"#!":  # pyenv, asdf and mise put a script of that name before the real one
            ask = [python, "-IS", "-c", "import sys; print(sys.executable)"]
            python = subprocess.check_output(ask, stdin=subprocess.DEVNULL, universal_newlines=True).strip()
    own = words[1:len(words) - len(rest) + 1]
    if not set(flags) & set("EIS"):  # it reads PYTHONPATH, and imports what lies there
        return "python", [python, *words[1:]]
    if rest[0] in ("", "-"):
        return "program", words
    kind = {"-c": "code", "-m": "module"}.get(rest[0], "path")
    return "python", [python, *own, f"{_Guarded.home}/sitecustomize.py", kind, *rest[kind == "module":-1]]


def _is_python(path: str) -> bool:
    """Is it called python, python3, python3.13 or python3.13t?"""
    return os.path.basename(path).rstrip("dmt0123456789.") == "python"


def _first_line(path: str) -> list[str] | None:
    """The words of a script's first line, without `env`; None for a Python program that has no such line."""
    import re
    import shlex
    if _is_python(path):
        return []
    if os.path.isdir(path):
        return None
    with open(path, "rb") as file:
        text = file.read(4096).decode("utf-8", "surrogateescape")
    if not text.startswith("#!") and path.endswith((".py", ".pyz")):
        return None
    # How pip and uv write a path that is too long for a first line, or relative to the script.
    long = re.match(r"#!/bin/sh\n'''exec' (.*) \"\$0\" \"\$@\"\n", text)
    if long:
        here = shlex.quote(os.path.dirname(os.path.realpath(path)))
        return shlex.split(long[1].replace('"$(dirname -- "$(realpath -- "$0")")"', here))
    plain = re.match(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(.+)", text)
    return (plain or ["", path])[1].split()


# ==== shell session ===================================================================================================
# A live bash, and one structured result for each command: masked, bounded, audited. It is a convenience for whoever may
# use the secrets, without seeing them; it is no sandbox and takes no guards.
#
# The shell reads its commands from a pipe. Its own stdout and stderr lead nowhere; a command gets /dev/null, the pipe O
# and the pipe E as its 0, 1 and 2, and none of the shell's other descriptors. Beside those a local shell has a pipe N,
# on which it alone writes: that a command begins, and, when it has ended, a record of status, directory, background
# jobs and exports. What ends a record is a nonce that the shell reads only after the command has ended, so nothing that
# is printed can pass for one. A shell that leaves in the middle of a command says the same from an EXIT trap. A remote
# shell has only two streams: there the records travel on stdout, with the same nonces, which stand on stderr too.

_SHELL_MAX_OUTPUT = 100_000  # characters of stdout, and of stderr, in a result: more than an agent reads of one command
_SHELL_TIMEOUT = 30.0  # seconds for a command that names no limit of its own
_SHELL_GRACE = 2.0  # seconds for an interrupted command to end, before it is killed, and the shell with it
_SHELL_CONNECT = 30.0  # seconds for a shell to start, for a remote one to answer, or to read a very long command
_SHELL_COMMAND_MAX = 16 << 20  # bytes of one command: bash reads 5 MB a second, and nobody types more
_SHELL_RECORD_MAX = 64 << 20  # bytes of one record: exports cannot be larger than what `serve` accepts
_SHELL_ROUNDS = 20  # of killing, until nothing is left: more can only be another user's
_SHELL_SETTLE = 0.05  # seconds that a command has run before it is interrupted: bash loses what comes as it starts one
_SHELL_PIPE = 1 << 20  # bytes in a pipe, where the system lets us: fewer wake-ups for large outputs
_SHELL_DESCRIPTOR = 200  # the shell's ends of our pipes get numbers from here on, which nobody writes into a script
_SHELL_BASH = "bash --norc --noprofile --noediting +o history -i"

# Each of these would have the shell run, print, log or end something on its own.
_SHELL_DROPPED = ("BASH_ENV PROMPT_COMMAND PS0 PS1 PS2 PS4 TMOUT IGNOREEOF SHELLOPTS BASHOPTS BASH_XTRACEFD "
                  "POSIXLY_CORRECT HISTFILE").split()

_SHELL_AUDITED = "exit_code duration_ms cwd truncated timed_out shell_restarted".split()  # of a result

# {N} is where records go, {E} marks the end of stderr, {X} is the nonce of the record from the EXIT trap. There N may
# still be closed, as for the command, but bash holds a copy to restore it from, close-on-exec, at the descriptor that
# was the lowest free one from 10 on: __hotenv_begin looks which that is. The probe finds a `builtin` that is now a
# function: only in POSIX mode `unset` is found before any. With `set -e`, to return a status would end the shell.
_SHELL_SETUP = """\
unset PROMPT_COMMAND HISTFILE MAILCHECK TMOUT; PS1= PS2= PS4='+ '; set +H; declare -a __hotenv_n=(10)
__hotenv_begin() {
__hotenv_n=10; while [[ -e /dev/fd/$__hotenv_n ]]; do (( ++__hotenv_n )); done
builtin printf '\\0%s\\n' "$1" >&{N}; {E}
[[ -o errexit ]] || builtin return "$2"
}
__hotenv_end() {
builtin printf -v __hotenv_probe %s "$1"
if [[ ${__hotenv_probe-} != "$1" ]]; then
POSIXLY_CORRECT=1; unset -f builtin; unset POSIXLY_CORRECT; builtin shopt -u inherit_errexit
fi
builtin unset -v __hotenv_probe PROMPT_COMMAND
{ builtin printf '\\0%s\\0%s\\0' "$1" "$2"; builtin pwd; builtin printf '\\0'; builtin jobs -p
builtin printf '\\0'; builtin export -p; builtin printf '\\0%s\\n' "$1"; } >&"${3:-{N}}"
[[ ${3-} ]] || {E}
[[ -o errexit ]] || builtin return "$2"
}
readonly -f __hotenv_begin __hotenv_end
trap '[[ ! -p /dev/fd/{N} && ! -S /dev/fd/{N} ]] || __hotenv_n={N}
[[ ! -p /dev/fd/$__hotenv_n && ! -S /dev/fd/$__hotenv_n ]] || __hotenv_end {X} 0 "$__hotenv_n" 2>/dev/null' EXIT
"""

# What stands beside a shell, and ends all of its session when a pipe ends: we are done with it, or have been killed.
_SHELL_GUARD = """\
read -r line; kill -9 -$1
for round in 1 2 3 4 5 6; do
left=; for each in /proc/[0-9]*/stat; do
read -r line <$each && set -- $1 ${line##*) } && [ $2 != Z ] && [ $5 = $1 ] || continue
each=${each#/proc/}; kill -9 ${each%/stat} && left=1
done; [ $left ] || break; done
"""

# A login shell may read ahead: so first it says {B}, that it is there, and becomes a sh that will say how bash ended.
_SHELL_REMOTE = """\
printf '\\0%s\\n' {B}; exec env HOTENV_SHELL={B} sh -c 'type bash >&2 && exec 3>&1 4>&2 >/dev/null 2>&1; {S}; exit $?'
"""


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
    shell_restarted: bool  # the shell ended with, or before, this command; a new one has its directory and exports
    background: str  # what background jobs printed before this command

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def as_dict(self) -> dict[str, Any]:
        """The result as a dict, in the order of the fields, ready for JSON."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        return f"ExecResult({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class _Kept:
    """The first and the last bytes of a stream, and how many it had in all. Memory stays flat, whatever comes."""

    def __init__(self, room: int) -> None:
        self.room, self.head, self.tail, self.size = room, bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        taken = max(0, self.room - len(self.head))
        self.head += data[:taken]
        if len(data) > taken:
            self.tail += data[max(taken, len(data) - self.room):]
            if len(self.tail) > 2 * self.room:
                del self.tail[:-self.room]

    def presented(self, redactor: Redactor, limit: int) -> tuple[str, bool]:
        """As a result shows it: masked, cleaned, and only then cut; and whether something is missing from it."""
        if not self.size:
            return "", False
        if self.size == len(self.head) + len(self.tail):
            head = tail = _displayed(redactor, bytes(self.head + self.tail), "")
            if len(head) <= limit:
                return head, False
        else:
            head = _displayed(redactor, bytes(self.head), "end")
            tail = _displayed(redactor, bytes(self.tail), "start")
        note = f"\n[hotenv: {self.size} bytes in all, the middle is left out]\n"
        return head[:limit // 2] + note + tail[len(tail) - limit // 2:], True


def _displayed(redactor: Redactor, data: bytes, cut: str) -> str:
    """`data` as a terminal would show it, without values; `cut` says on which side it was cut off.

    Masked before and after each step: a value may hold what is taken out, have it between its letters, or be what was
    half overwritten."""
    import re
    # An interactive bash says that it has no terminal whenever a child dies of a signal.
    data = _without_values(redactor, re.sub(rb"(?m)^bash: \[\d+: \d+ \(\d+\)\] tcsetattr: .*\n", b"", data), cut)
    if re.search(rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", data):
        text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        text = re.sub(r"(?m)^[^\n]*(?:\r\x1b\[0?K|\x1b\[2K)", "", text)  # a line that was erased to be written anew
        text = re.sub(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
                      r"|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "", text)
        text = _without_values(redactor, _encoded(text), cut).decode("utf-8", "surrogateescape")
        lines = map(_overwritten, text.split("\n"))
        data = _without_values(redactor, _encoded("\n".join(lines)), cut)
    return data.decode("utf-8", "replace")


def _overwritten(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part):]
    return shown


def _without_values(redactor: Redactor, data: bytes, cut: str) -> bytes:
    stream, skipped = redactor.stream(), 0
    if cut == "start":  # half a value may stand there; as much again keeps the stream in step
        skipped = 2 * redactor.longest
        stream.feed(data[:skipped])
    shown = stream.feed(data[skipped:])
    if cut != "end":  # where what the stream still holds back may be half a value
        shown += stream.flush()
    return shown


class _Tap:
    """One pipe from the shell. Its bytes go to a sink until a mark comes, then to that mark's; marks are dropped."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.open, self.sink = descriptor, True, _Kept(0)
        self.marks: dict[bytes, _Kept] = {}
        self._held = b""  # what may be the beginning of a mark

    def read(self) -> int:
        """Take what is there. 0: nothing is there now, or (not .open) ever again."""
        try:
            data = os.read(self.descriptor, 1 << 18)
        except BlockingIOError:
            return 0
        self.open = bool(data)
        size, data, self._held = len(data), self._held + data, b""
        while any(mark in data for mark in self.marks):
            at, mark = min((data.find(mark), mark) for mark in self.marks if mark in data)
            self.sink.add(data[:at])
            data, self.sink = data[at + len(mark):], self.marks.pop(mark)
        at = data.rfind(b"\0")  # with which each mark begins
        if size and at >= 0 and any(mark.startswith(data[at:]) for mark in self.marks):
            data, self._held = data[:at], data[at:]
        self.sink.add(data)
        return size


def _family(shell: int, spared: frozenset[int] | None) -> dict[int, int]:
    """The shell and all live processes below it, but for the jobs in `spared`, or (None) all of its session; with the
    group of each."""
    family, parents, rows = {shell: shell}, [shell], list(_processes())
    for parent in parents:  # grows while it is walked
        for pid, above, *groups in rows:
            mine = above == parent or spared is None and shell in groups
            if mine and pid not in family and pid not in (spared or ()):
                family[pid] = groups[0]
                parents.append(pid)
    return family


def _processes() -> Iterator[list[int]]:
    """Of every process: its id, its parent's, and those of its group and, where it is known, session."""
    if not os.path.isdir("/proc/self"):
        import subprocess
        listing = subprocess.run(["ps", "-Ao", "pid=,ppid=,pgid="], stdout=subprocess.PIPE, check=False).stdout
        yield from ([*map(int, row.split())] for row in listing.splitlines())
        return
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb", 0) as file:
                state, *others = file.read(512).rpartition(b")")[2].split()[:4]
        except OSError:
            continue  # it has ended meanwhile
        if state not in b"ZX":
            yield [int(name), *map(int, others)]


def _signal_all(pids: Iterable[int], signum: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signum)
        except (ProcessLookupError, PermissionError):
            pass  # ended meanwhile; or became another user's, by sudo


class _Shell:
    """One bash, or what leads to one elsewhere, from start to end: the pipe that it reads, and those that it writes."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None, remote: bool) -> None:
        import functools
        import signal
        from subprocess import DEVNULL, Popen
        hear = None
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as below nohup or behind a `&`: bash would stay so
            hear = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        self._owner, self._unsent, self.last_nonce = os.getpid(), b"", _nonce()
        self._open: list[int] = []  # our ends of the pipes
        theirs: list[int] = []
        try:
            self._control, _ = self._pipe(theirs, 1), self._pipe(theirs, 1)
            self._taps = [_Tap(self._pipe(theirs, 0)) for _ in range(2 if remote else 3)]
            out, err, self.numbers = DEVNULL, DEVNULL, tuple(theirs[2:])  # the numbers that bash knows them by
            if remote:
                (out, err), self.numbers = self.numbers, (240, 241, 242)  # copies of its 1, 2 and 1
            self.process = Popen(argv, env=env, stdin=theirs[0], stdout=out, stderr=err, start_new_session=True,
                                 pass_fds=() if remote else self.numbers, preexec_fn=hear)
            self._guard = Popen(["/bin/sh", "-c", _SHELL_GUARD, "hotenv", str(self.process.pid)], env={}, cwd="/",
                                stdin=theirs[1], stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)
        except BaseException:
            self._close()  # a shell without a guard reads the end of its orders
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.out, self.err, self.notes = (*self._taps, self._taps[0])[:3]  # records come on the last

    def _pipe(self, theirs: list[int], ours: int) -> int:
        """Our end of a new pipe, 0 to read or 1 to write; the other one goes to `theirs`."""
        import fcntl
        pair = os.pipe()
        near, far = pair[ours], pair[1 - ours]
        self._open.append(near)
        try:
            theirs.append(fcntl.fcntl(far, fcntl.F_DUPFD_CLOEXEC, _SHELL_DESCRIPTOR))
            if not ours and sys.platform == "linux":
                fcntl.fcntl(near, 1031, _SHELL_PIPE)  # F_SETPIPE_SZ
        except PermissionError:
            pass  # over the user's quota of wide pipes
        finally:
            os.close(far)
        os.set_blocking(near, False)
        return near

    def send(self, data: bytes) -> None:
        """Write to the shell what fits now; wait_for() writes the rest."""
        self._unsent += data
        try:
            self._unsent = self._unsent[os.write(self._control, self._unsent):]
        except BlockingIOError:
            pass  # the pipe is full
        except BrokenPipeError:
            self._unsent = b""  # it has ended, and its pipes say so

    def wait_for(self, done: Callable[[], bool], deadline: float, given_up: Callable[[], bool]) -> bool:
        """Move bytes until done() holds. False: first came the deadline, somebody gave up, or the shell's end."""
        import select
        while not done():
            left = deadline - time.monotonic()
            if left <= 0 or given_up() or not self.notes.open:
                return False
            poller = select.poll()
            for tap in self._taps:
                if tap.open:
                    poller.register(tap.descriptor, select.POLLIN)
            if self._unsent:
                poller.register(self._control, select.POLLOUT)
            for descriptor, _ in poller.poll(min(left, 0.05) * 1000):
                self.send(b"")
                for tap in self._taps:
                    if tap.descriptor == descriptor:
                        tap.read()
        return True

    def drain(self) -> None:
        """Take what the pipes hold by now, not more: a background job may write for ever."""
        for tap in self._taps:
            left = _SHELL_PIPE
            while tap.open and left > 0:
                left -= tap.read() or left

    def outlives(self, deadline: float, given_up: Callable[[], bool]) -> bool:
        """It has closed its pipes, so it ends, or has become another program: whether that is too slow."""
        self._open.remove(self._control)
        os.close(self._control)
        while self.process.poll() is None:
            if time.monotonic() > deadline or given_up():
                return True
            self.drain()
            time.sleep(0.005)
        return False

    def interrupt(self, spared: frozenset[int], told: set[int]) -> None:
        """One Ctrl-C for the shell and all below it, but for the jobs in `spared`; without any, all at one moment.

        bash loses one that comes while it starts a command, or notices its end, and goes on with its loop. So this may
        be called again: once nothing but bash is left of those that were `told`, it and what is new get another."""
        import signal
        shell = self.process.pid
        family = _family(shell, spared)
        if told.isdisjoint({*family} - {shell}):
            told.update(family)
            if spared.isdisjoint(pid for pid, *_ in _processes()):
                os.killpg(shell, signal.SIGINT)
                family = {pid: group for pid, group in family.items() if group != shell}
            _signal_all(family, signal.SIGINT)

    def end(self) -> int:
        """End the shell and all that is left of its session; the shell's exit status, 128 and more for a signal."""
        import signal
        if os.getpid() != self._owner:  # a fork of our process has copies of the pipes, and nothing else
            self._close()
            return 0
        self._guard.kill()
        self.process.send_signal(signal.SIGSTOP)
        self._close()
        for _ in range(_SHELL_ROUNDS):
            family = [*_family(self.process.pid, None)][1:]
            _signal_all(family, signal.SIGKILL)
            if not family:
                break
        self.process.kill()
        self._guard.wait()
        status = self.process.wait()
        return status if status >= 0 else 128 - status

    def _close(self) -> None:
        while self._open:
            os.close(self._open.pop())


def _nonce() -> bytes:
    return os.urandom(16).hex().encode()


def _quoted(text: bytes) -> bytes:
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


class _Job:
    """One command on its way, and what has come back."""

    def __init__(self, room: int) -> None:
        self.begin, self.nonce, self.status = _nonce(), _nonce(), 0
        self.out, self.err, self.background = _Kept(room), _Kept(room), _Kept(room)
        self.record, self.last_record = _Kept(_SHELL_RECORD_MAX), _Kept(_SHELL_RECORD_MAX)
        self.begun = self.late = self.lost = False


class ShellSession:
    """A bash that stays: directory, variables and functions are kept from one `exec()` to the next.

        with hotenv.ShellSession(hotenv.fetch()) as shell:
            print(shell.exec("make deploy", timeout=600).stdout)

    `environment` goes into the shell, and is masked in all that comes out, but for names and prefixes (`AWS_*`) in
    `no_mask`. The rest of the shell's environment is the caller's, or with `isolated` a short allowlist of it.
    `remote`: a command (list, or one string in shell quoting) that leads to a shell elsewhere, as `ssh -T host` or
    `docker exec -i name bash`; there `environment` alone is added, over stdin. `cwd`: where to start. `timeout`:
    seconds for a command without its own limit. `max_output`: characters of stdout and of stderr that a result holds;
    more is cut to head and tail. `policy`: a JSON file, or a dict, with the lists `allow` and `deny` of first words;
    advice, no boundary. `audit`: a file that gets a line at the start and the end of every command. Safe to use from
    several threads: one command runs at a time, the others wait.
    """

    _shell: _Shell | None = None  # also where __init__() fails early

    def __init__(self, environment: Mapping[str, str] | None = None, *, remote: str | Sequence[str] | None = None,
                 isolated: bool = False, cwd: str | None = None, timeout: float = _SHELL_TIMEOUT,
                 max_output: int = _SHELL_MAX_OUTPUT, policy: str | Mapping[str, Sequence[str]] | None = None,
                 audit: str | None = None, no_mask: Sequence[str] = ()) -> None:
        import threading
        self._environment, self._isolated, self._limit = dict(environment or {}), isolated, max(0, max_output)
        self._remote, self._timeout = _remote_command(remote, isolated), _time_limit(timeout)
        for name, value in self._environment.items():
            if not _carriable(name) or not _carriable(value) or not name or "=" in name:
                raise HotenvError(EXIT_USAGE, "there is a name or a value that no environment can hold")
        if cwd and not self._remote:
            if not os.path.isdir(cwd):
                raise HotenvError(EXIT_USAGE, f"there is no directory {_shown(cwd)}")
            cwd = os.path.abspath(cwd)
        self._cwd, self._exports, self._farewell = os.fsencode(cwd or ""), b"", b""
        self._policy = None if policy is None else _load_policy(policy)
        self._name, self._count, self._audit = os.urandom(4).hex(), 0, audit
        self._record("check")
        self._redactor = self._place = Redactor(self._environment, no_mask)
        paths = [name for name, value in self._environment.items() if value.startswith("/")]
        if paths:  # HOME=/tmp: in a directory such a value is no secret
            self._place = Redactor(self._environment, (*no_mask, *paths))
        self.unmaskable = list(self._redactor.unmaskable)  # names whose values are not masked
        self.omitted: list[str] = []  # names that the shell cannot take
        # Held while a command runs; a signal handler that calls close() in the midst of it has the lock as well.
        self._lock, self._busy, self._owner = threading.RLock(), False, os.getpid()
        self._stop, self._closed, self._poison = threading.Event(), False, ""
        self._jobs: frozenset[int] = frozenset()
        self._untold = False  # that a shell was lost
        self._shell = self._start()

    def __enter__(self) -> ShellSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then the guard does it
            self._end()

    @property
    def cwd(self) -> str:
        """The directory after the last command, masked, but for values that are absolute paths."""
        return _shown(self._place(os.fsdecode(self._cwd)))

    def interrupt(self) -> None:
        """End the command that is running, if any, as its time limit would. For other threads and signal handlers."""
        self._stop.set()

    def close(self) -> None:
        """End the shell and all that runs in its session; a command that is running raises. Again is allowed."""
        self._closed = True
        if os.getpid() != self._owner:
            self._end()  # without the lock: in a fork nobody may ever release it
            return
        with self._lock:
            if not self._busy:  # or else exec() does it, up the stack from a signal handler
                self._end()

    def exec(self, command: str, timeout: float | None = None, *, stop: threading.Event | None = None) -> ExecResult:
        """Run one command and wait for its end; `stop` interrupts this very one. Raises PolicyDenied, SessionPoisoned,
        or HotenvError where it cannot be sent or the audit not be written; what the command does is in the result."""
        import threading
        limit = self._timeout if timeout is None else _time_limit(timeout)
        if not _carriable(command) or len(command) > _SHELL_COMMAND_MAX:
            raise HotenvError(EXIT_USAGE, "a command may hold no NUL and no lone surrogate, and at most 16 MiB")
        with self._lock:
            if self._busy:
                raise HotenvError(EXIT_USAGE, "a signal handler cannot use the shell that it has interrupted")
            self._check_usable()
            self._busy, self._stop = True, stop or threading.Event()
            try:
                return self._audited(command, limit)
            finally:
                self._busy = False
                if self._closed:
                    self._end()

    def _check_usable(self) -> None:
        if self._closed or os.getpid() != self._owner:
            raise SessionPoisoned(EXIT_SYSTEM, "the shell session is closed, or another process's")
        if self._poison:
            raise SessionPoisoned(EXIT_SYSTEM, self._poison)

    def _audited(self, command: str, limit: float) -> ExecResult:
        shown, begun = self._redactor(command), time.monotonic()
        self._count += 1
        reason = "" if self._policy is None else self._redactor(_denied(self._policy, command))
        if reason:
            self._record("blocked", command=shown, reason=reason)
            raise PolicyDenied(EXIT_REFUSED, f"the policy does not allow it: {_shown(reason)}")
        self._record("start", command=shown)
        try:
            result = self._result(self._run(_encoded(command), begun + limit), shown, begun)
        except BaseException as error:  # the text of one that is not ours might quote a value
            reason = str(error) if isinstance(error, HotenvError) else type(error).__name__
            self._record("failed", reason=reason)
            raise
        self._record("end", **{name: getattr(result, name) for name in _SHELL_AUDITED})
        return result

    def _record(self, event: str, **fields: object) -> None:
        """A line for the audit, if there is one. Where it cannot say how a command ended, the result is not lost."""
        try:
            if self._audit is not None:
                _append_audit(self._audit, session=self._name, id=self._count, event=event, **fields)
        except HotenvError as error:
            if event not in ("end", "failed"):
                raise
            _say(str(error))

    def _result(self, job: _Job, command: str, begun: float) -> ExecResult:
        (stdout, cut_out), (stderr, cut_err), (background, _) = [
            kept.presented(self._redactor, self._limit) for kept in (job.out, job.err, job.background)]
        if job.lost and stderr.endswith("exit\n"):
            stderr = stderr[:-5]  # an interactive bash says that it does
        return ExecResult(
            command=command, stdout=stdout, stderr=stderr, exit_code=124 if job.late else job.status,
            duration_ms=int((time.monotonic() - begun) * 1000), cwd=self.cwd, truncated=cut_out or cut_err,
            timed_out=job.late, shell_restarted=job.lost, background=background)

    def _run(self, text: bytes, deadline: float) -> _Job:
        job = _Job(self._limit + 4 * self._redactor.longest + 4096)  # cleaning and masking make it shorter
        try:
            self._attempt(job, self._ready(job), text, deadline)
            if not job.begun and not job.late and not self._closed:  # it had ended before: a new shell may have it
                self._attempt(job, self._ready(job), text, deadline)
        except BaseException:  # KeyboardInterrupt: its output is not to become another command's
            self._end()
            self._untold = True
            raise
        self._check_usable()
        return job

    def _ready(self, job: _Job) -> _Shell:
        """The shell, after what its background jobs have printed is out of its pipes; a new one if it has ended."""
        shell, job.lost, self._untold = self._shell, job.lost or self._untold, False
        if shell:
            shell.notes.sink = _Kept(0)  # a record that came twice; with a remote shell this is `out`
            shell.out.sink = shell.err.sink = job.background
            shell.drain()
            if shell.notes.open:
                return shell
            self._end()
            job.lost = True
        try:
            self._shell = shell = self._start()
        except HotenvError as error:
            self._poison = f"the shell ended and cannot be started again: {error}"
            raise SessionPoisoned(EXIT_SYSTEM, self._poison) from None
        return shell

    def _attempt(self, job: _Job, shell: _Shell, text: bytes, deadline: float) -> None:
        """Send a command, and see it through to a record, to the end of the shell, or to the end of its time."""
        begin, end = b"\0%s\n" % job.begin, b"\0%s\n" % job.nonce
        shell.notes.marks = {begin: _Kept(0), b"\0%s\0" % job.nonce: job.record,
                             b"\0%s\0" % shell.last_nonce: job.last_record}
        if self._remote:
            shell.notes.marks[begin] = job.out
            shell.err.marks = {begin: job.err, end: _Kept(0)}
        else:
            shell.out.sink, shell.err.sink = job.out, job.err
        out, err, notes = shell.numbers
        started = time.monotonic()
        shell.send(b"__hotenv_begin %s \"$?\"; \\builtin eval %s %d>&- </dev/null >&%d 2>&%d %d>&- %d>&-\n"
                   b"__hotenv_end %s \"$?\"\n" % (job.begin, _quoted(text), notes, out, err, out, err, job.nonce))

        def complete() -> bool:
            return job.record.head.endswith(end) and end not in shell.err.marks

        finished = shell.wait_for(complete, deadline, lambda: self._closed or self._stop.is_set())
        job.begun, job.late = begin not in shell.notes.marks, not finished and shell.notes.open
        if job.late and not self._remote:
            finished = self._interrupt(job, shell, complete, started)
        if finished and self._accept(job, job.record, job.nonce):
            if not self._remote:
                shell.drain()
            return
        job.lost = True  # the shell has ended, or is ended here; what it could still say of itself is taken over
        job.late = job.late or shell.outlives(deadline, lambda: self._closed or self._stop.is_set())
        shell.drain()
        self._accept(job, job.last_record, shell.last_nonce)
        job.status = self._end()

    def _interrupt(self, job: _Job, shell: _Shell, complete: Callable[[], bool], started: float) -> bool:
        """Whether the shell is then ready for the next command.

        It is interrupted only once it has begun with the command: what SIGINT makes it drop of a line that it is still
        reading ends in the middle of it, and the rest would run."""
        begin, finished = b"\0%s\n" % job.begin, False
        told: set[int] = set()
        shell.wait_for(lambda: begin not in shell.notes.marks, time.monotonic() + _SHELL_CONNECT, self._is_closed)
        if begin not in shell.notes.marks:
            finished = shell.wait_for(complete, started + _SHELL_SETTLE, self._is_closed)
            for _ in range(8):
                if not finished and shell.notes.open:
                    shell.interrupt(self._jobs, told)
                    shell.send(b"\n\n__hotenv_end %s 124\n" % job.nonce)
                    finished = shell.wait_for(complete, time.monotonic() + _SHELL_GRACE / 8, self._is_closed)
        return finished

    def _is_closed(self) -> bool:
        return self._closed

    def _accept(self, job: _Job, kept: _Kept, nonce: bytes) -> bool:
        """Take over what a record says. One that SIGINT has cut short stands before a whole one."""
        record = bytes(kept.head).rpartition(b"\0%s\n" % nonce)[0].rpartition(b"\0%s\0" % nonce)[2]
        try:
            status, cwd, jobs, exports = record.split(b"\0")
            job.status, self._jobs = int(status), frozenset(map(int, jobs.split()))
        except ValueError:
            return False  # only code that has meddled with the shell itself can do that
        self._cwd, self._exports = cwd[:-1] or self._cwd, exports
        return True

    def _start(self) -> _Shell:
        """A shell that is ready; a second one gets the directory and the exports that the first had last."""
        argv, env = self._remote or _SHELL_BASH.split(), None
        if not self._remote:
            host = _host_environment()
            if self._isolated:
                host = build_isolated_env(host)
            env = {name: host[name] for name in host if not name.startswith("BASH_FUNC_")}
            env.update(self._environment)
            for name in _SHELL_DROPPED:
                env.pop(name, None)
        try:
            shell = _Shell(argv, env, bool(self._remote))
        except OSError as error:
            raise _system_error(error, f"cannot start {_shown(self._redactor(argv[0]))}") from None
        try:
            self._set_up(shell, _Job(4096))
        except BaseException:
            shell.end()
            raise
        return shell

    def _set_up(self, shell: _Shell, job: _Job) -> None:
        mark_stderr, end = b"builtin :", b"\0%s\n" % job.nonce
        if self._remote:
            mark_stderr = b"builtin printf '\\0%s\\n' \"$1\" >&241"
            shell.out.marks, shell.err.sink = {b"\0%s\n" % job.begin: _Kept(0)}, job.err
            shell.send(_SHELL_REMOTE.replace("{S}", _SHELL_BASH).encode().replace(b"{B}", job.begin))
            self._expect(shell, lambda: not shell.out.marks, job)
            shell.err.marks = {end: _Kept(0)}
            shell.send(b"exec 240>&3 241>&4 242>&3 3>&- 4>&-\n")
        setup = _SHELL_SETUP.encode().replace(b"{N}", b"%d" % shell.numbers[2]).replace(b"{E}", mark_stderr)
        shell.notes.marks = {b"\0%s\0" % job.nonce: job.record}
        shell.send(setup.replace(b"{X}", shell.last_nonce) + self._restoring()
                   + b"__hotenv_end %s \"$PPID\"\n" % job.nonce)
        self._expect(shell, lambda: job.record.head.endswith(end) and not shell.err.marks, job)
        self._accept(job, job.record, job.nonce)
        # A remote side may not notice that we hang up: what still runs there then, the next shell will end.
        if self._remote:
            self._farewell = (b"[[ $(</proc/%d/environ) == *HOTENV_SHELL=%s* ]] && \\builtin kill -9 -- -%d"
                              % (job.status, job.begin, job.status))

    def _expect(self, shell: _Shell, done: Callable[[], bool], job: _Job) -> None:
        if shell.wait_for(done, time.monotonic() + _SHELL_CONNECT, self._is_closed):
            return
        reason = "gave no answer in time"
        if not shell.notes.open and not shell.outlives(time.monotonic() + _SHELL_GRACE, self._is_closed):
            reason = f"ended with status {shell.process.poll()} (it must lead to bash, and the directory asked for)"
        shell.drain()
        said = job.err.presented(self._redactor, 400)[0].strip()
        text = f"{self._redactor((self._remote or ['bash'])[0])} {reason}: {said}"
        raise HotenvError(EXIT_SYSTEM, _shown(text.rstrip(": ")))

    def _restoring(self) -> bytes:
        """Lines for a new shell: where to go, and what to export beside or instead of what it was born with."""
        go = b"\\builtin cd -- %s" % _quoted(self._cwd) if self._cwd else b"\\builtin :"
        names = [name for name in self._environment if name not in _SHELL_DROPPED]
        lines = [go + b" || exit 1", b""]
        if self._remote:
            names = [name for name in names if name.isascii() and name.isidentifier()]
            lines += [b"export %s=%s" % (name.encode(), _quoted(_encoded(self._environment[name]))) for name in names]
        self.omitted = [name for name in self._environment if name not in names]
        if self._exports:
            lines = [b"__hotenv_pwd=${PWD-}; \\builtin unset -v $(\\builtin compgen -e)", self._exports,
                     b"PWD=$__hotenv_pwd; \\builtin unset -v __hotenv_pwd", go, self._farewell]
        return b"\n".join([*lines, b""])

    def _end(self) -> int:
        shell, self._shell = self._shell, None
        return shell.end() if shell else 0


def _carriable(text: str) -> bool:
    try:
        return b"\0" not in _encoded(text)
    except (UnicodeEncodeError, AttributeError):
        return False  # a lone surrogate; no text


def _time_limit(seconds: float) -> float:
    if not isinstance(seconds, (int, float)) or not seconds <= float("inf"):
        raise HotenvError(EXIT_USAGE, "a time limit is a number of seconds")
    return seconds


def _remote_command(remote: str | Sequence[str] | None, isolated: bool) -> list[str]:
    import shlex
    try:
        words = shlex.split(remote) if isinstance(remote, str) else [*(remote or ())]
    except ValueError:
        words = []  # an open quote
    if remote is not None and (isolated or not words):
        raise HotenvError(EXIT_USAGE, "a remote shell needs a command, and cannot be isolated")
    return words


def _append_audit(path: str, **fields: object) -> None:
    """Append a line to a file that is ours alone, never through a link; opened anew each time, as rotation expects."""
    import json
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
    line = json.dumps({"time": stamp, **fields}).encode() + b"\n"
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_nlink != 1:
                raise OSError(errno.EINVAL, "it must be a plain file of yours, and no link")
            os.fchmod(descriptor, 0o600)
            if info.st_size and os.pread(descriptor, 1, info.st_size - 1) != b"\n":
                line = b"\n" + line  # half a line stands there, from when the disk was full
            if fields["event"] != "check" and os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _system_error(error, f"cannot write the audit file {_shown(path)}") from None


# What a policy looks at: tokens of shell text, a state, and a stack of what is open. In the state `go` a command or a
# reserved word may come, in `command` no reserved one, after `named` the () of a function. It knows no more of the
# grammar than everyday lines need: what may mean something else is refused.
_POLICY_PLAIN = r"""[^`$"'\\<>#;&()] | \$(?!\() | \\. | '[^']*' | "(?: [^"`$\\] | \\. | \$(?!\() )*" """
_POLICY_TEXT = r"""\\[^`\n] | \$\{[^{}()`$"'\\]*\} | \$\(\([^()`$"'\\]*\)\)"""
_POLICY_QUOTED = rf"""(?xs)
  (?P<text> {_POLICY_TEXT} | \\\n | \$(?![({{]) | [^"`$\\]+ ) | (?P<opens> ` | \$\( ) | (?P<quote> ")"""
_POLICY_PATTERN = rf"""(?xs) (?:\s|\#[^\n]*\n)* (?: (?P<esac>esac)(?=[\s;&|)]) | \(? (?:{_POLICY_PLAIN})* \) )"""
_POLICY_TEST = rf"""(?xs) \[\[\s (?: {_POLICY_PLAIN} | [&()] | [<>](?!\() )*? \s\]\](?=[\s;&|)])"""
_POLICY_TOKEN = rf"""(?xs)
  (?P<join> \\\n ) | (?P<blank> [ \t\r]+ | (?<![^\s;&|()])(?<!\\\n)\#[^\n]* )
| (?P<heredoc> \d*<<(?!<)(-?)[ \t]*(\\?['"]?)([\w.-]+)['"]?(?=[\s;&|<>)]) )
| (?P<redirect> \d*(?:<<<|<>|>>|>\||[<>]&|<(?![<(])|>(?!\()) | &>>? )
| (?P<arith> \(\( (?: [^()`$"'\\] | \$(?!\() | \([^()`$"'\\]*\) )* \)\) )
| (?P<text> {_POLICY_TEXT} | \w+\+?=\( (?:{_POLICY_PLAIN})* \) | \$(?![({{"']) | '[^']*' | \$'(?:[^'\\]|\\.)*'
          | [^ \t\r\n;&|()<>`\\'"$]+ )
| (?P<function> \([ \t]*\) ) | (?P<quote> \$?" ) | (?P<opens> ` | \$\( | [<>]?\( ) | (?P<closes> \) )
| (?P<ends> \n | [;&|]+ )"""
_POLICY_NEXT = {  # the state after a word: a reserved one, or (...) any other in that state
    **dict.fromkeys("if then else elif do while until ! { time".split(), "go"),
    **dict.fromkeys("fi done } in".split(), "rest"), "coproc": "refused", "function": "refused", "for": "loop",
    "select": "loop", "case": "subject", "esac": "esac", "(subject) in": "case", "(named)": "rest", "(loop) do": "go",
    "(loop) in": "rest"}


def _first_words(text: str) -> list[str]:
    """The first word of every simple command, those in substitutions included. ValueError: it has lost its way."""
    import re
    found: list[str] = []
    heredocs: list[re.Match[str]] = []
    stack: list[tuple[str, str, str]] = []  # of each quote, parenthesis or `case` that is open, what is outside
    end, state, word, at, text = "", "go", "", 0, text + "\n\n"
    while at < len(text):
        pattern = {'"': _POLICY_QUOTED}.get(end, {"pattern": _POLICY_PATTERN}.get(state, _POLICY_TOKEN))
        if state == "go" and not word and text.startswith("[[", at):
            pattern = _POLICY_TEST
        match = re.compile(pattern).match(text, at)
        if not match or state == "refused":
            raise ValueError
        kind, sign, at = match.lastgroup, match[0], match.end()
        if kind in ("text", "join"):
            word += sign.replace("\\\n", "")
        elif kind == "quote" and end == '"':
            inner, (end, state, word) = word, stack.pop()
            word += f'"{inner}"'
        elif kind in ("quote", "opens") and sign != end:
            if heredocs or sign == "`" in [each[0] for each in stack] or sign == "(" and (word or state != "go"):
                raise ValueError
            stack.append((end, "rest", "") if sign == "(" else (end, state, word + "$" * (kind == "opens")))
            end, state, word = {"quote": '"'}.get(kind, sign if sign == "`" else ")"), "go", ""
        elif kind is None:  # a test, or a pattern of `case`
            state = {"pattern": "go"}.get(state, "rest")
        else:
            state, word = "esac" if kind == "esac" else _state_after(state, word, found), ""
            if state == "case":
                stack.append((end, "rest", ""))
                end, state = "esac", "pattern"
            if state == "esac" or kind in ("opens", "closes"):
                if end not in (state, sign) or heredocs:
                    raise ValueError
                end, state, word = stack.pop()
            if kind == "heredoc":
                heredocs.append(match)
            state = _state_at(kind, sign, end, state, found)
            while sign == "\n" and heredocs:
                at = _end_of_heredoc(heredocs.pop(0), text, at)
    if stack or state != "go":
        raise ValueError
    return found


def _state_after(state: str, word: str, found: list[str]) -> str:
    """The state after a word; where a command begins, it is taken down."""
    import re
    if not word:
        return state
    if state.startswith(">"):  # of a redirection
        return state[1:]
    if state == "go" and word in _POLICY_NEXT:
        return _POLICY_NEXT[word]
    if state not in ("go", "command"):
        return _POLICY_NEXT.get(f"({state}) {word}", _POLICY_NEXT.get(f"({state})", state))
    if re.match(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", word):
        return "command"
    if state == "go" and word.startswith("-"):  # as of `time -p`
        return state
    found.append(re.sub(r"\\(.)|\$?'([^']*)'|\"", r"\1\2", word))
    return "named"


def _state_at(kind: str | None, sign: str, end: str, state: str, found: list[str]) -> str:
    """The state after what stands between two words, or instead of them."""
    if kind == "redirect":
        return ">" + state.replace("go", "command")
    if kind == "function" and state == "named":
        found.pop()
        return "go"
    if kind == "arith" and state in ("go", "loop"):
        return {"loop": "go"}.get(state, "rest")
    if kind == "ends" and end == "esac" and sign[:2] in (";;", ";&"):
        return "pattern"
    if kind == "ends" and state not in ("subject", "pattern"):
        return "go"
    if kind in ("ends", "function", "arith") and sign != "\n":
        raise ValueError
    return state


def _end_of_heredoc(start: re.Match[str], text: str, at: int) -> int:
    import re
    dash, quote, end = start.group(4, 5, 6)
    body = re.compile(rf"(?ms)(.*?)^{dash and '	*'}{re.escape(end)}$").match(text, at)
    if not body or not quote and re.search(r"`|\$\(", body[1]):
        raise ValueError  # what it substitutes is run
    return body.end()


def _load_policy(policy: str | Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """`{"allow": [...], "deny": [...]}` from a file, or as it is. An empty list `allow` allows nothing; none, all."""
    import json
    try:
        given: Any = policy
        if isinstance(policy, str):
            with open(policy, "rb") as file:
                given = json.loads(file.read())
        lists = {name: [*words] for name, words in given.items() if not isinstance(words, str)}
        strings = all(isinstance(word, str) for words in lists.values() for word in words)
        if strings and len(lists) == len(given) and {*lists} <= {"allow", "deny"}:
            return lists
    except OSError as error:
        raise _system_error(error, f"cannot read the policy {_shown(str(policy))}") from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass  # what is said below
    raise HotenvError(EXIT_USAGE, 'a policy is JSON like {"allow": ["git", "ls"], "deny": ["sudo"]}')


def _denied(policy: Mapping[str, list[str]], command: str) -> str:
    """Why the policy does not let the command run, or ''."""
    try:
        words = _first_words(command)
    except ValueError:
        return "its commands cannot be told apart"
    for word in words:
        if {word, word.rpartition("/")[2]} & {*policy.get("deny", ())}:
            return f"{word} is denied"
        if word not in policy.get("allow", words):
            return f"{word} is not among the allowed"
    return ""


# ==== mcp =============================================================================================================
# The Model Context Protocol on stdio over shell sessions: one JSON message a line, and nothing else ever on stdout.
#
# It keeps no snapshot. Each session_open fetches one, for that shell and its masks alone; agents see names, not values.
# Each command asks the hotenv session again: that counts as a use, and shows whether it is still there. stdin is read
# all the time; each shell has a thread that does its work in the order of arrival.

_MCP_REVISIONS = "2024-11-05 2025-03-26 2025-06-18 2025-11-25".split()
_MCP_LINE_MAX = 32 << 20  # bytes of one message: the longest command, escaped
_MCP_SHELLS_MAX = 32  # shells at once: each is a few processes and descriptors
_MCP_TIMEOUT_MAX = 86400  # seconds that a command may ask for
_MCP_INSTRUCTIONS = (
    "Shells with the user's secrets in their environment. Refer to secrets by name ($NAME): their values are masked in "
    "all output. Open a session, run commands in it (directory and variables persist), close it.")


def _mcp_tools(remotes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The tools by name, as tools/list shows them; what arguments they take is checked against this too."""
    session = {"session": {"type": "string", "description": "id from session_open"}}
    opening: dict[str, dict[str, Any]] = {
        "cwd": {"type": "string", "description": "directory to start in"},
        "isolated": {"type": "boolean", "description": "leave out the user's own environment, but for PATH and such"}}
    if remotes:
        opening["remote"] = {"type": "string", "description": "where; default: this machine", "enum": sorted(remotes)}
    execution = {
        **session, "command": {"type": "string", "description": "bash; may have several lines; stdin is empty"},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": _MCP_TIMEOUT_MAX,
                    "description": "seconds, default 30; then it is interrupted, exit_code 124"}}
    table = [
        ("session_open", "Open a bash with the user's secrets in its environment. Returns its id and their names.",
         opening, []),
        ("session_exec", "Run a command and wait for its end. Returns stdout, stderr, exit_code, cwd as JSON, secrets "
         "masked. State persists, unless shell_restarted: then only directory and exports do. Start servers with a "
         "trailing &; what they print comes as `background` with the next command.", execution, ["session", "command"]),
        ("session_list", "List the open sessions.", {}, []),
        ("session_close", "End a session and everything that runs in it.", session, ["session"])]
    return {name: {"name": name, "description": text, "inputSchema": {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False}}
        for name, text, properties, required in table}


def _mcp_wrong(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with a tool's arguments, or ''."""
    kinds = {"string": (str,), "boolean": (bool,), "number": (int, float)}
    for name in schema["required"]:
        if name not in arguments:
            return f"the argument {name} is missing"
    for name, value in arguments.items():
        expected = schema["properties"].get(name)
        if expected is None:
            return f"there is no argument {_shown(name[:80])}"
        if type(value) not in kinds[expected["type"]] or value not in expected.get("enum", [value]):
            return f"the argument {name} must be a {expected['type']} {expected.get('enum', '')}".rstrip()
        if "maximum" in expected and not 0 < value <= expected["maximum"]:
            return f"the argument {name} must be above 0 and at most {expected['maximum']}"
    return ""


class _McpShell:
    """A shell session, once it is open, the hotenv session that it came from, and a thread for what is asked of it."""

    def __init__(self, where: str) -> None:
        import queue
        import threading
        self.where, self.path = where, ""
        self.session: ShellSession | None = None
        self.work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.work.get()()

    def close(self) -> None:
        self.work.put(sys.exit)  # after what waits, which finds the session closed
        if self.session:
            self.session.close()


class _McpServer:
    """The protocol, and the shells by their ids. A HotenvError below take() is a JSON-RPC error, with one of its codes;
    what a tool could not do is none: the agent is told in the result."""

    def __init__(self, output: int, remotes: Mapping[str, str], use: Callable[[str, str], dict[str, str]],
                 socket_path: str | None, options: Mapping[str, Any]) -> None:
        import threading
        self._output, self._remotes, self._use, self._socket, self._options = output, remotes, use, socket_path, options
        self._tools = _mcp_tools(remotes)
        self._shells: dict[str, _McpShell] = {}
        self._running: dict[object, threading.Event] = {}  # what cancels each call that waits or runs
        self._count, self._writing = 0, threading.Lock()

    def take(self, line: bytes) -> None:
        """One line of input: a message."""
        import json
        number = None
        try:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                raise HotenvError(-32700, "not JSON, or a line of more than 32 MiB") from None
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise HotenvError(-32600, "not a JSON-RPC 2.0 message")
            if "method" not in message and ("result" in message or "error" in message):
                return  # an answer to something that we never ask
            if type(message.get("id", 0)) not in (str, int) or not isinstance(message.get("method"), str):
                raise HotenvError(-32600, "method must be a string, id a string or an integer")
            number, params = message.get("id"), message.get("params", {})
            if "id" in message and not isinstance(params, dict):
                raise HotenvError(-32602, "params must be an object")
            self._request(number, message["method"], params)
        except HotenvError as error:
            self._send(number, error={"code": error.code, "message": str(error)})

    def _request(self, number: str | int | None, method: str, params: Any) -> None:
        if number is None:
            if method == "notifications/cancelled" and isinstance(params, dict):
                call = params.get("requestId")
                if isinstance(call, (str, int)) and call in self._running:
                    self._running[call].set()
        elif method == "tools/call":
            self._call(number, params)
        elif method == "initialize":
            offered = params.get("protocolVersion")
            version = offered if offered in _MCP_REVISIONS else _MCP_REVISIONS[-1]
            self._send(number, result={
                "protocolVersion": version, "capabilities": {"tools": {}}, "instructions": _MCP_INSTRUCTIONS,
                "serverInfo": {"name": "hotenv", "version": __version__}})
        elif method == "tools/list":
            self._send(number, result={"tools": [*self._tools.values()]})
        elif method == "ping":
            self._send(number, result={})
        else:
            raise HotenvError(-32601, f"no method {_shown(method[:80])}")

    def _send(self, number: object, **answer: object) -> None:
        import json
        text = json.dumps({"jsonrpc": "2.0", "id": number, **answer}, ensure_ascii=False) + "\n"
        left = memoryview(text.encode("utf-8", "backslashreplace"))  # a lone surrogate in JSON's own spelling
        with self._writing:
            try:
                while left:
                    left = left[os.write(self._output, left):]
            except BrokenPipeError:
                pass  # the client has gone: stdin will end too

    def _tell(self, number: object, content: object, failed: bool = False) -> None:
        """The result of a tool: one text, JSON unless it is a sentence about what went wrong."""
        import json
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        self._send(number, result={"content": [{"type": "text", "text": text}], "isError": failed})

    def _call(self, number: str | int, params: Mapping[str, Any]) -> None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or name not in self._tools or not isinstance(arguments, dict):
            raise HotenvError(-32602, "no such tool, or its arguments are no object")
        wrong = _mcp_wrong(self._tools[name]["inputSchema"], arguments)
        session = arguments.get("session", "")
        shell = self._shells.get(session)
        if wrong:
            self._tell(number, wrong, True)
        elif name == "session_list":
            self._tell(number, [{"session": each, "where": shell.where, "cwd": shell.session.cwd}
                                for each, shell in [*self._shells.items()] if shell.session])
        elif name == "session_open":
            if len(self._shells) >= _MCP_SHELLS_MAX:
                return self._tell(number, f"{_MCP_SHELLS_MAX} sessions are open: close one", True)
            self._count += 1
            session, shell = f"s{self._count}", _McpShell(arguments.get("remote", "this machine"))
            self._shells[session] = shell
            self._enqueue(number, shell, lambda stop: self._open(session, shell, arguments))
        elif shell is None:
            self._tell(number, "that session is not open: see session_list, session_open", True)
        elif name == "session_close":
            self._shells.pop(session, shell).close()
            self._tell(number, {"closed": session})
        else:
            self._enqueue(number, shell, lambda stop: self._execute(shell, arguments, stop))

    def _open(self, name: str, shell: _McpShell, arguments: Mapping[str, Any]) -> object:
        try:
            shell.path = self._socket or _find_session()
            environment = self._use("session_open", shell.path)
            session = shell.session = ShellSession(
                environment, remote=self._remotes.get(shell.where), cwd=arguments.get("cwd"),
                isolated=arguments.get("isolated", False), **self._options)
        except BaseException:
            self._shells.pop(name, shell).close()
            raise
        if name not in self._shells:  # it was closed meanwhile
            session.close()
        return {"session": name, "cwd": session.cwd, "secrets": sorted(environment),
                "unmaskable": session.unmaskable, "not_exported": session.omitted}

    def _execute(self, shell: _McpShell, arguments: Mapping[str, Any], stop: threading.Event) -> object:
        if not shell.session:
            raise HotenvError(EXIT_SYSTEM, "it could not be opened")
        try:
            self._use("session_exec", shell.path)
        except HotenvError as error:
            if error.code != EXIT_UNREACHABLE:
                raise
            ended = [name for name, each in [*self._shells.items()] if each.path == shell.path]
            for name in ended:
                self._shells.pop(name, shell).close()
            raise HotenvError(error.code, (
                f"the hotenv session has ended, and with it the shells {', '.join(ended)}. The user can start one "
                f"with: {_invocation()} serve < secrets.env. Then call session_open.")) from None
        result = shell.session.exec(arguments["command"], arguments.get("timeout"), stop=stop).as_dict()
        del result["command"]  # which the agent knows
        return result

    def _enqueue(self, number: str | int, shell: _McpShell, work: Callable[[threading.Event], object]) -> None:
        """Have the shell's thread do the work. A call that is cancelled ends as by a time limit, without an answer."""
        import threading
        stop = self._running[number] = threading.Event()

        def task() -> None:
            content, failed = None, True
            try:
                if not stop.is_set():
                    content, failed = work(stop), False
            except HotenvError as error:
                content = str(error)
            except Exception as error:  # its text might quote a value, as a traceback would
                content = getattr(error, "strerror", None) or f"internal error: {type(error).__name__}"
            self._running.pop(number, None)
            if not stop.is_set():
                self._tell(number, content, failed)

        shell.work.put(task)

    def close(self) -> None:
        for shell in [*self._shells.values()]:
            shell.close()


def _serve_mcp(*, socket_path: str | None, peer_uid: int | None, policy: str | None, audit: str | None,
               remotes: Mapping[str, str], no_mask: Sequence[str]) -> int:
    """Serve stdin and stdout until stdin ends or a signal comes; then every shell ends too."""
    import signal
    _harden()
    options: dict[str, Any] = {"audit": audit, "no_mask": no_mask}
    if policy is not None:
        options["policy"] = _load_policy(policy)
    if audit is not None:
        _append_audit(audit, event="check")
    if os.isatty(0):
        _say("mcp: waiting for an MCP client's messages on stdin, one JSON object a line; agents start this command by "
             f"themselves, see: {_invocation()} help mcp (Ctrl-D ends it)")
    output = os.dup(1)
    os.dup2(2, 1)  # whatever prints, prints there
    server = _McpServer(output, remotes, lambda tool, path: fetch("run", ["mcp", tool], path, peer_uid=peer_uid),
                        socket_path, options)
    ends = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def leave(signum: int, frame: object) -> None:
        for each in ends:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in ends:
        signal.signal(each, leave)
    try:
        whole = True
        with open(0, "rb", closefd=False) as lines:
            for line in iter(lambda: lines.readline(_MCP_LINE_MAX), b""):
                if whole and line.strip():
                    server.take(line)
                whole = line.endswith(b"\n")  # of a line that is too long, the beginning is no JSON
    except KeyboardInterrupt:
        pass  # as the end of stdin
    server.close()
    sys.stderr.flush()
    os._exit(0)  # a thread may still wait for a client that does not read


# ==== terminal ========================================================================================================
# Questions, and answers that nobody sees. Whatever ends or stops us, the terminal is left as it was.

_LINE_MAX = 1023 if sys.platform == "darwin" else 4095  # characters of a typed line: more are cut


def _ask(question: str) -> str:
    """The line that is typed on the terminal, without echo. What it would lose is refused."""
    import select
    silence = _Silence(_shown(question))
    try:
        silence.begin()
        typed = os.read(silence.tty, 1 << 16)  # a line, as the terminal waits for its end
        os.write(silence.tty, b"\n")
        more = select.select([silence.tty], [], [], 0.05)[0]
    finally:
        silence.end()
        os.close(silence.tty)
    wrong = ""
    if not typed.endswith(b"\n"):
        wrong = "Ctrl-D is no answer: for an empty value, press Enter alone"
    elif more:
        wrong = "several lines were typed or pasted, and an answer is one: pipe such a value into serve, in quotes"
    elif len(typed) > _LINE_MAX:
        wrong = f"a terminal cuts what is longer than {_LINE_MAX} characters, as this may have been: pipe it into serve"
    elif b"\0" in typed:
        wrong = "what was typed holds a NUL: no environment can hold it"
    if wrong:
        raise HotenvError(EXIT_INPUT, wrong)
    return typed.rstrip(b"\r\n").decode("utf-8", "surrogateescape")


class _Silence:
    """The terminal without echo, a question on it, and handlers for whatever would leave it so."""

    def __init__(self, question: str) -> None:
        import termios
        self.termios, self.question = termios, question
        try:
            self.tty = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self.settings = termios.tcgetattr(self.tty)
            foreground = os.tcgetpgrp(self.tty) == os.getpgrp()
        except (OSError, termios.error):
            raise HotenvError(EXIT_SYSTEM, "--prompt needs a terminal to ask on, and there is none") from None
        if not foreground:
            raise HotenvError(EXIT_SYSTEM, "--prompt cannot ask from the background: start it in the foreground")
        self.handlers = {signum: _signal.getsignal(signum) for signum in (
            _signal.SIGTSTP, _signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)}

    def begin(self) -> None:
        for signum, handler in self.handlers.items():
            if handler != _signal.SIG_IGN:
                _signal.signal(signum, self.heard)
        quiet = list(self.settings)
        quiet[3] &= ~(self.termios.ECHO | self.termios.ECHONL)
        self.termios.tcsetattr(self.tty, self.termios.TCSAFLUSH, quiet)
        os.write(self.tty, f"{self.question}: ".encode("utf-8", "backslashreplace"))

    def heard(self, signum: int, frame: object) -> None:
        if signum == _signal.SIGTSTP:
            self.end()
            os.kill(os.getpid(), _signal.SIGSTOP)
            self.begin()
            return
        for each in self.handlers:  # a second one is not to keep the terminal from being restored
            _signal.signal(each, _signal.SIG_IGN)
        raise _Killed(signum)

    def end(self) -> None:
        try:
            self.termios.tcflush(self.tty, self.termios.TCIFLUSH)  # half an answer is not for the shell
            self.termios.tcsetattr(self.tty, self.termios.TCSANOW, self.settings)
        except self.termios.error:
            pass  # the terminal has gone
        for signum, handler in self.handlers.items():
            _signal.signal(signum, handler)


# ==== formats =========================================================================================================
# What `dump` prints, each form without loss; what one cannot carry is refused by its name.

# What sh, bash or zsh hold read-only, keep for themselves, or take as a number or a list.
_SHELL_OWN = """
    ARGC ARGV0 BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_LINENO
    BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO COLUMNS DIRSTACK EGID EPOCHREALTIME EPOCHSECONDS ERRNO EUID
    FUNCNAME FUNCNEST GID GROUPS HISTCHARS HISTCMD HISTSIZE KEYBOARD_HACK KEYTIMEOUT LINENO LINES LISTMAX
    MAILCHECK OPTIND PIPESTATUS PPID RANDOM SAVEHIST SECONDS SHELLOPTS SHLVL SRANDOM TRY_BLOCK_ERROR
    TRY_BLOCK_INTERRUPT TTYIDLE UID USERNAME WATCH ZLE_RPROMPT_INDENT ZSH_EVAL_CONTEXT ZSH_SUBSHELL _
    aliases argv builtins cdpath commands dirstack dis_aliases dis_builtins dis_functions
    dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases fignore fpath funcfiletrace
    funcsourcetrace funcstack functions functions_source functrace galiases histchars history
    historywords jobdirs jobstates jobtexts keymaps mailpath manpath module_path modules nameddirs
    options parameters patchars path pipestatus psvar reswords saliases signals status termcap terminfo
    userdirs usergroups watch widgets zsh_eval_context zsh_scheduled_events"""


def _formatted(env: Mapping[str, str], form: str) -> str:
    import json
    import re
    if form == "value" and len(env) != 1:
        raise HotenvError(EXIT_USAGE, f"dump: --format value prints one value, and here are {len(env)}: --only NAME")
    variable = {"nul": "{}={}\0", "names": "{}\n", "value": "{1}", "sh": "export {}='{}'\n"}.get(form, "{}={}\n")
    carried = {"names": "[^\n]+", "dotenv": "[A-Za-z0-9_.-]+", "sh": "[A-Za-z_][A-Za-z0-9_]*"}.get(form, "(?s).+")
    pieces = []
    for name, value in env.items():
        lost = form in ("dotenv", "json") and re.search("[\ud800-\udfff]", name + value)
        if lost or not re.fullmatch(carried, name) or form == "sh" and name in _SHELL_OWN.split():
            raise HotenvError(EXIT_USAGE, f"dump: the format {form} cannot carry {_shown(name)}: leave it "
                                          "out with --only, or take --format nul")
        if form == "sh":
            value = value.replace("'", "'\\''")
        elif form == "dotenv":  # back through parse_dotenv to the same value; only "..." has an escape for a CR
            value = value.replace("\\", "\\\\")
            if "\r" in value:
                value = value.replace('"', '\\"').replace("\r", "\\r").replace("${", "\\${")
                value = f'"{value}"'
            else:
                value = "'" + value.replace("'", "\\'") + "'"
        pieces.append(variable.format(name, value))
    if form == "json":
        return json.dumps(env, indent=2, ensure_ascii=False) + "\n"
    return "".join(pieces)


# ==== command line ====================================================================================================
# One function a command, and the one place that prints an error and picks an exit code.

_USAGE = """\
usage: hotenv COMMAND [options]

everyday:
  serve < secrets.env     read NAME=value lines, hold them in memory, for this directory
  run -- COMMAND...       run a command with them, from here or below
  status                  is there a session, and until when
  stop                    end it
  dump                    print what it holds

advanced:
  hermetic -- TARGET...   run a program without network, processes or writes
  mcp                     shells for an agent that must not see the values
  shellenv                a shell function `hotenv` that starts fast
  help [TOPIC]            masking, hermetic, mcp, dotenv, sessions, or a command
  version

A session ends after 5 idle minutes. See `hotenv COMMAND --help`.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status, or becomes another program, or dies of a signal."""
    return _exit_status(_command, list(sys.argv[1:] if argv is None else argv))


def _exit_status(work: Callable[..., int], *args: Any) -> int:
    """The exit status of this, whatever it raises."""
    try:
        return work(*args)
    except _Afterwards as left:
        rest = left.args[0]
    except HotenvError as error:
        _say(str(error))
        return error.code
    except SystemExit as finished:  # argparse, after --help
        return int(finished.code or 0)
    except KeyboardInterrupt:
        _die_of(_signal.SIGINT)
    except _Killed as killed:
        _die_of(killed.args[0])
    except (OSError, MemoryError) as error:
        _say(getattr(error, "strerror", None) or "out of memory")
        return EXIT_SYSTEM
    except Exception as error:  # a traceback's last line may hold a value: say where, and no more
        trace: Any = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        _say(f"internal error: {type(error).__name__} at line {trace.tb_lineno}; please report it")
        return EXIT_SYSTEM
    return int(rest())


def _command(argv: list[str]) -> int:
    commands = {"serve": _serve, "run": _run, "dump": _dump, "status": _status, "stop": _stop,
                "hermetic": _hermetic, "mcp": _mcp, "shellenv": _shellenv}
    if not argv:
        if sys.stderr is not None:
            print(_USAGE, end="", file=sys.stderr)
        return EXIT_USAGE
    name, topic = argv[0], "".join(argv[1:2])
    if name in commands:
        return commands[name](argv[1:])
    if name in ("version", "--version", "-V"):
        return _write(1, f"hotenv {__version__}\n")
    if name not in ("help", "--help", "-h"):
        raise HotenvError(EXIT_USAGE, _no_command(argv, [*commands, "help", "version"]))
    if topic in _TOPICS or topic in ("", "help"):
        return _write(1, _TOPICS.get(topic, _USAGE).lstrip("\n"))
    if topic in commands:
        return commands[topic](["--help"])
    raise HotenvError(EXIT_USAGE, f"help: nothing about {_shown(topic)}: try {', '.join(_TOPICS)}, a command")


def _no_command(argv: list[str], commands: list[str]) -> str:
    import difflib
    import shutil
    words = "start=serve up=serve exec=run get=dump show=dump env=dump list=status end=stop kill=stop down=stop"
    name, hint = argv[0], f"there are {', '.join(commands)}; see: {_invocation()} --help"
    near = [pair.split("=")[1] for pair in words.split() if pair.startswith(name + "=")]
    near = near or difflib.get_close_matches(name, commands, 1, 0.7)
    if not near and (name == "--" or os.path.exists(name) or shutil.which(name)):
        near = ["run --", *map(_shown, argv[name == "--":])]
    if near:
        hint = f"did you mean `{_invocation()} {' '.join(near)}`?"
    return f"no command {_shown(name)}: {hint}"


def _add_session_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--socket", metavar="PATH", help="ask this; else $HOTENV_SOCKET, else by .hotenv")
    add("--peer-uid", metavar="N", type=int, help="also believe a server of this user id")


def _parse_duration(text: str) -> float:
    import argparse
    import re
    form = "(?:Nd)?(?:Nh)?(?:Nm)?(?:Ns)?|N".replace("N", r"(\d+\.?\d*|\.\d+)")
    found = re.fullmatch(form, text, re.ASCII)
    counts = found.groups("0") if found else ()
    seconds = sum([float(count) * size for count, size in zip(counts, (86400, 3600, 60, 1, 1))])
    if not 0 < seconds <= MAX_DURATION:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: 300, 90s, 5m or 1h30m; above 0, at most 366d")
    return seconds


def _serve(argv: list[str]) -> int:
    parser = _parser("serve", "Read dotenv lines from stdin, hold them in memory, hand them to `hotenv run`.",
                     "  pass show deploy/env | hotenv serve --timeout 15m")
    add = parser.add_argument
    add("-t", "--timeout", metavar="DUR", type=_parse_duration, default=IDLE_TIMEOUT,
        help="end after this idle time: 300, 90s, 1h30m (default: 5m)")
    add("--max-age", metavar="DUR", type=_parse_duration, default=MAX_DURATION, help="end after this time in any case")
    add("-f", "--force", action="store_true", help="replace the session that is here")
    add("--background", action="store_true", help="return as soon as requests are accepted")
    add("--log", metavar="FILE", help="with --background: append the log (default: none)")
    add("--prompt", action="store_true", help="ask for each bare value `?text` on the terminal")
    add = parser.add_mutually_exclusive_group().add_argument
    add("-q", "--quiet", action="store_const", dest="level", const="quiet", help="log no requests", default="")
    add("-v", "--verbose", action="store_const", dest="level", const="verbose",
        help="log commands with all arguments: some hold secrets")
    options = parser.parse_args(argv)
    if options.log is not None and not options.background:
        raise HotenvError(EXIT_USAGE, "serve: --log goes with --background; in the foreground, redirect: 2>> FILE")
    for descriptor in (0, 1, 2):  # a closed one would go to the next file: a socket must not be stderr
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if not _ours(os.geteuid()):
        raise HotenvError(EXIT_SYSTEM, f"uid {OVERFLOW_UID} (nobody) is every stranger in this container: use another")
    if os.path.lexists(MARKER) and not options.force:
        raise _refusal()
    _harden("hotenv")
    _call_c("mallopt", -3, 1 << 17)  # M_MMAP_THRESHOLD: what is large leaves no trace when it is freed
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # nothing is there yet to clean up
    response, count = _read_environment(options.prompt)
    _call_c("malloc_trim", 0)  # what parsing has freed, and the copies of values in it, go back
    if options.background:
        return _serve_in_background(options, response, count)
    return _outlive_script(_hold, options, response, count)


def _read_environment(prompt: bool) -> tuple[bytes, int]:
    """The encoded response, and how many variables are in it. Nothing else holds a value afterwards."""
    if os.isatty(0):
        _say("type NAME=value lines, then Ctrl-D. What you type is seen; for a hidden value: NAME=? and --prompt")
    data = bytearray()
    try:
        piece = os.read(0, 1 << 20)
        while piece and len(data) <= MAX_INPUT:
            data += piece
            piece = os.read(0, 1 << 20)
        os.close(0)
        os.open(os.devnull, os.O_RDWR)
    except OSError as error:
        raise _system_error(error, "cannot read stdin") from None
    if len(data) > MAX_INPUT:
        raise HotenvError(EXIT_INPUT, f"stdin holds more than {MAX_INPUT >> 20} MiB: is this the file that you meant?")
    if not data:
        _say("stdin is empty, and so is this session: did the left side of the pipe fail?")
    entries: Iterable[tuple[str, Any]] = _parse_entries(bytes(data))
    if prompt:
        entries = list(entries)  # a mistake in the last line comes before the first question
    env = resolve_env(entries, _host_environment(), _ask if prompt else None)
    questions = [name for name, value in env.items() if value.startswith("?")]
    if questions and not prompt and os.isatty(2):
        _say(f"what begins with `?` is taken as it is: {', '.join(questions[:5])}; to be asked, use --prompt")
    if os.environ.get("HOTENV_SOCKET") and os.isatty(2):
        _say("HOTENV_SOCKET is set: `run` asks that session, not this one, until you unset it")
    return _encode_message({"env": env}), len(env)


def _refusal() -> HotenvError:
    state = f"and its session still answers: use it, or end it with `{_invocation()} stop`"
    advice = f"`{_invocation()} serve --force` replaces it"
    try:
        _connect(_Session(_read_marker(MARKER), MARKER)).close()
    except HotenvError as error:
        state = f"but cannot be believed ({error})"
        if error.code == EXIT_UNREACHABLE:
            state = "but nobody answers there any more"
    if os.path.isdir(MARKER):
        state, advice = "and is a directory", "move it away, as --force replaces files only"
    return HotenvError(EXIT_REFUSED, f"{MARKER} is here already, {state}; {advice}")


def _outlive_script(work: Callable[..., int], *args: Any) -> int:
    """Does what goes on for long; in a script after its last line: up to there Python keeps its syntax tree, 9 MB."""
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    if frame.f_globals.get("__file__") != __file__:  # somebody goes on after us
        return work(*args)
    import atexit

    def leave() -> NoReturn:
        status = EXIT_SYSTEM
        try:
            _call_c("malloc_trim", 0)
            status = _exit_status(work, *args)
        finally:
            os._exit(status)

    atexit.register(leave)
    return 0


def _hold(options: argparse.Namespace, response: bytes, count: int, ready: Callable[[], None] | None = None) -> int:
    """Binds, publishes and serves, and leaves nothing behind."""
    import atexit
    import resource
    signals, files = _Signals(), _SessionFiles()
    listener = reason = None
    talks = os.isatty(2) and options.level != "quiet"
    try:
        listener = files.bind()
        if signals.received:  # not later: with --force, publish ends another session
            raise _Killed(signals.received)
        files.stamp(time.time() + min(options.timeout, options.max_age))
        files.publish(options.force)  # whoever sees the marker sees a session: a signal now ends one
        idle = _duration(options.timeout)
        message = f"session {files.id} ready: {count} variable{'s' * (count != 1)}, idle timeout {idle}"
        if ready and talks:
            _say(message)
        if ready:
            talks = False
            ready()  # from here on, stderr is the log
        log = _Log(options.level)
        if talks:
            log.add("hotenv: " + message)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < DESCRIPTORS:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(DESCRIPTORS, hard), hard))
        reason = _Server(listener, response, files, log, options.timeout, options.max_age).run(signals)
    except FileExistsError:
        raise _refusal() from None
    except OSError as error:
        raise _system_error(error, "cannot serve") from None
    finally:
        if listener:
            listener.close()  # cleaning up needs a descriptor, and there may be no other left
        files.remove()
        if not reason:
            _remove_empty(files.made)
    if talks:
        log.add(f"hotenv: session {files.id} {reason}")
    log.close()
    for signum in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):  # the interpreter, as it goes, gives
        atexit.register(_signal.signal, signum, _signal.SIG_IGN)  # a late one its deadly meaning back
    return 0


def _serve_in_background(options: argparse.Namespace, response: bytes, count: int) -> int:
    """The child holds the session; the parent returns when requests are accepted, or with what went wrong."""
    is_new = options.log is not None and not os.path.lexists(options.log)
    if options.log is None:
        log = os.open(os.devnull, os.O_RDWR)
    else:
        log = _open_private_log(options.log)
    news, report = os.pipe()
    child = os.fork()  # before listen: the credentials that clients see are those of whoever called that
    if child:
        os.close(report)
        if os.read(news, 1):
            return 0
        if is_new:
            _unlink(options.log)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            _die_of(os.WTERMSIG(status))
        return os.WEXITSTATUS(status) or EXIT_SYSTEM
    os.setsid()
    first = 3
    for kept in (*sorted((log, report)), 1 << 16):  # a lock or a pipe of the caller's is not to be held
        os.closerange(first, kept)
        first = kept + 1

    def ready() -> None:
        os.write(report, b"+")  # fails, and ends us, when the caller was interrupted meanwhile
        os.close(report)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir("/")

    return _outlive_script(_hold, options, response, count, ready)


def _open_private_log(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        raise _system_error(error, f"cannot write the log {_shown(path)}") from None
    return descriptor


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--` is ours; what stands behind it is the command's, to the letter."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1:]


def _as_utf8(words: Iterable[str]) -> list[str]:
    """Arguments as text that stands for their bytes whatever the locale, as the environment's is."""
    return [os.fsencode(word).decode("utf-8", "surrogateescape") for word in words]


def _names(words: Iterable[str]) -> list[str]:
    """The names in options that take several, with commas, repeated, or both."""
    return [name.strip() for word in _as_utf8(words) for name in word.split(",")]


def _run(argv: list[str]) -> int:
    own, command = _split(argv)
    if own:
        return _run_with(own, command)
    if not command:
        raise HotenvError(EXIT_USAGE, f"run: the command goes after `--`: {_invocation()} run -- COMMAND...")
    env = _host_environment()  # the form of every day: argparse would cost 5 ms
    env.update(fetch("run", _as_utf8(command)))
    _exec(command, env)


def _run_with(own: list[str], command: list[str]) -> int:
    options = _run_options(own, command)
    host = _host_environment()
    only = options.only
    try:
        snapshot = fetch("run", _as_utf8(command), options.socket, peer_uid=options.peer_uid)
    except HotenvError as error:
        absent = error.code in (EXIT_NO_SESSION, EXIT_UNREACHABLE) or isinstance(error, _NotBelieved)
        if not options.optional or not absent:
            raise
        _say(f"{str(error).split(';')[0]}; running without one")
        snapshot, only = {}, []
    define = _chosen(snapshot, only)
    define.update([text.partition("=")[::2] for text in _as_utf8(options.define)])
    kept: Iterable[str] = host
    if options.isolated:
        patterns = _names(options.pass_through)
        kept = [name for name in host if _matches(name, patterns)]
    env = build_isolated_env(host, kept, define, _as_utf8(options.bin))

    def become() -> NoReturn:
        if options.guards:
            _run_hermetic(options.guards, command, env, snapshot, [options.socket] * bool(options.socket))
        _exec(command, env)

    if not options.mask:
        become()
    if snapshot:
        _chosen(snapshot, options.no_mask, "--no-mask")
    redactor = Redactor(snapshot, _names(options.no_mask))  # all values: the command may have the others too
    if redactor.unmaskable:
        _say(f"not masked, too short or an everyday word: {', '.join(map(_shown, redactor.unmaskable))}")
    return _run_masked(become, redactor)


def _run_options(own: list[str], command: list[str]) -> argparse.Namespace:
    parser = _parser("run", "Run a command with the session's environment; all after -- is its own.",
                     "  hotenv run -- ./deploy.sh --to production\n\n"
                     "Guards (--no-network, ...): hotenv hermetic --help")
    parser.usage = "hotenv run [options] -- COMMAND [ARG...]"
    several: dict[str, Any] = {"action": "append", "default": []}
    add = parser.add_argument
    add("--only", metavar="NAMES", **several, help="hand over these alone: NAME,PREFIX*,... (no boundary)")
    add("--isolated", action="store_true", help="start from an allowlist (PATH, HOME, TERM, ...)")
    add("--pass", metavar="NAMES", **several, dest="pass_through", help="with --isolated: hand over these of yours too")
    add("--define", metavar="NAME=VALUE", **several, help="set a variable that is no secret: `ps` shows it")
    add("--bin", metavar="DIR", **several, help="put a directory before PATH")
    add("--mask", action="store_true", help="hide the values in output to a file or a pipe")
    add("--no-mask", metavar="NAMES", **several, help="with --mask: let these be seen")
    add("--optional", action="store_true", help="without a session, run the command as it is")
    _add_session_options(parser)
    guards = ("--no-network", "--allow-", "--no-subprocess", "--fs-", "--strict-imports", "--profile", "--trace")
    guarded = any([word.startswith(guards) for word in own])
    if guarded:
        _add_guard_options(parser)
    options = parser.parse_args(own)
    wrong = ""
    if not command:
        wrong = f"the command goes after `--`: {_invocation()} run {' '.join(map(_shown, own))} -- COMMAND..."
    elif guarded and not _any_guard(options):
        wrong = "no guard is on: --no-network, ..., see: hotenv hermetic --help"
    elif options.pass_through and not options.isolated:
        wrong = "--pass goes with --isolated: without it the command gets them all"
    elif any([text.find("=") < 1 for text in options.define]):
        wrong = "--define takes NAME=VALUE, and one has no `=` or no name"
    elif "" in options.bin:
        wrong = "--bin takes a directory, and one is empty: that would be this one"
    elif options.no_mask and not options.mask:
        wrong = "--no-mask goes with --mask"
    if wrong:
        raise HotenvError(EXIT_USAGE, f"run: {wrong}")
    options.guards = _guard_words(options, os.environ) if guarded else []
    return options


def _chosen(snapshot: Mapping[str, str], only: Sequence[str], option: str = "--only") -> dict[str, str]:
    """The variables that an option names, by NAME or PREFIX*; one that is not there is a usage error."""
    if not only:
        return dict(snapshot)
    wanted = _names(only)
    for each in wanted:
        if not any([_matches(name, [each]) for name in snapshot]):
            import difflib
            near = difflib.get_close_matches(each.rstrip("*"), snapshot, 5, 0.5)
            hint = "; near it: " + ", ".join(map(_shown, near)) if near else ""
            raise HotenvError(EXIT_USAGE, f"{option}: the session has no {_shown(each) or 'empty name'}{hint}")
    return {name: value for name, value in snapshot.items() if _matches(name, wanted)}


def _dump(argv: list[str]) -> int:
    parser = _parser("dump", "Print the session's environment.",
                     "  hotenv dump --only TOKEN --format value | docker login --password-stdin ...")
    add = parser.add_argument
    add("--only", metavar="NAMES", action="append", default=[], help="print these alone: NAME,PREFIX*,...")
    add("--format", default="plain", metavar="FORMAT", choices="plain dotenv sh json nul names value".split(),
        help="plain (KEY=VALUE), dotenv (to be parsed), sh (for eval), json, nul, names, value (one, raw)")
    add("--json", action="store_const", dest="format", const="json", help="as --format json")
    _add_session_options(parser)
    options = parser.parse_args(argv)
    _harden()  # a core of ours would hold the values
    snapshot = fetch("dump", (), options.socket, peer_uid=options.peer_uid)
    return _write(1, _formatted(_chosen(snapshot, options.only), options.format))


def _server_state(pid: int) -> str:
    """A letter as `ps` has it (T: stopped); '' if that process is not there, or is no server of ours."""
    if sys.platform == "linux":
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                name, _, rest = file.read().partition(b"(")[2].rpartition(b") ")
        except OSError:
            return ""
        return rest[:1].decode() if name == b"hotenv" else ""
    import subprocess
    row = subprocess.run(["ps", "-o", "state=,command=", "-p", str(pid)], stdout=subprocess.PIPE).stdout
    return row[:1].decode() if b"hotenv" in row else ""


def _look(session: _Session, peer_uid: int | None, about: dict[str, Any]) -> None:
    """Notes what can be told of a session without asking it (its timer runs on); raises why it is not live."""
    about["socket"] = session.path
    if session.source.endswith(MARKER):
        about["marker"] = os.path.abspath(session.source)
    try:
        link = session.path[:-len(".sock")]
        about.update(since=os.lstat(link).st_mtime, directory=os.readlink(link), ends=os.stat(session.path).st_mtime)
    except OSError:
        pass  # a forwarded socket, or one that is gone
    sock = _connect(session, peer_uid)
    pid = _peer(sock)[0]
    sock.close()
    state = _server_state(pid)
    if state == "T":
        raise session.unreachable(None, "its process is stopped (Ctrl-Z?): `fg` continues it, `stop` ends it")
    about.update(live=True, pid=pid)
    if not state:  # somebody forwards for it: the socket's time is not the session's
        about.update(pid=None, since=None, ends=None)


def _all_sessions() -> list[_Session]:
    """Every session of ours that left a socket, live or dead."""
    import re
    sessions = []
    for base in sorted({_runtime_base(), f"/tmp/hotenv-{os.geteuid()}"}):
        if os.path.isdir(base) and _ours(os.stat(base).st_uid):
            names = [name for name in sorted(os.listdir(base)) if re.fullmatch(_SESSION_NAME, name)]
            sessions += [_Session(f"{base}/{name}", "") for name in names]
    return sessions


def _status(argv: list[str]) -> int:
    import json
    parser = _parser("status", "Whether a session is live, and until when. Asks it nothing: its timer runs on.",
                     "  hotenv status -q || pass show deploy/env | hotenv serve --background")
    add = parser.add_mutually_exclusive_group().add_argument
    add("--json", action="store_true", help="print JSON; times are seconds since 1970, or null")
    add("-q", "--quiet", action="store_true", help="print nothing: the exit code says it")
    parser.add_argument("--all", action="store_true", help="all sessions of yours, the dead ones too")
    _add_session_options(parser)
    options = parser.parse_args(argv)
    found: list[dict[str, Any]] = []
    failure: HotenvError | None = None
    sessions: list[Any] = [None]  # the one that is found from here
    if options.all:
        sessions = list(_all_sessions())
    for session in sessions:
        found.append(dict.fromkeys("live directory socket marker pid since ends".split()))
        found[-1]["live"] = False
        try:
            _look(session or _locate(options.socket), options.peer_uid, found[-1])
        except HotenvError as error:
            failure = error
    if options.all:
        failure = None
        if not any([each["live"] for each in found]):
            failure = HotenvError(EXIT_NO_SESSION, "no session of yours is live")
    if options.json:
        _write(1, json.dumps(found if options.all else found[0], indent=2) + "\n")
    elif not options.quiet and (options.all or not failure):
        _write(1, "\n".join(map(_status_lines, found)))
    if failure and not options.quiet:
        raise failure
    return failure.code if failure else 0


def _status_lines(found: Mapping[str, Any]) -> str:
    text = "live\n" if found["live"] else "dead\n"
    for key in "directory socket marker pid since ends".split():
        value = found[key]
        if value is None:
            value = "unknown (the socket is forwarded)" if found["live"] and key == "pid" else "unknown"
        elif key in ("since", "ends"):
            left = int(value - time.time())
            value = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
            if found["live"] and left > 0:
                value += f", in {_duration(left)}"
        text += f"{key:<10} {_shown(str(value))}\n"
    return text


def _stop(argv: list[str]) -> int:
    parser = _parser("stop", "End the session of this directory; returns when its files are gone.", "  hotenv stop")
    parser.add_argument("--all", action="store_true", help="end all of yours, and clear what dead ones left")
    _add_session_options(parser)
    options = parser.parse_args(argv)
    sessions = _all_sessions() if options.all else [_locate(options.socket)]
    if not sessions:
        raise HotenvError(EXIT_NO_SESSION, "no session of yours is left: nothing to stop")
    failure: HotenvError | None = None
    for session in sessions:
        try:
            _end_session(session, options.peer_uid)
        except HotenvError as error:
            if options.all and error.code == EXIT_UNREACHABLE:
                _remove_socket(session.path)
            else:
                failure = error
    if failure:
        raise failure
    return 0


def _end_session(session: _Session, peer_uid: int | None) -> None:
    shown, sock = _shown(session.path), _connect(session, peer_uid)
    pid = _peer(sock)[0]
    state = _server_state(pid)
    try:
        sock.settimeout(0)
        sock.recv(1)  # nothing is ever sent to who asks nothing: it has ended
    except BlockingIOError:  # it is still there, so the process is still that one
        if not state:
            raise HotenvError(EXIT_SYSTEM, f"who serves {shown} cannot be told from here (it is forwarded, or of "
                                           "another pid namespace): run `stop` where the session was started") from None
        try:
            os.kill(pid, _signal.SIGTERM)
            os.kill(pid, _signal.SIGCONT)  # a stopped one would wait with its end
            sock.settimeout(EXCHANGE_TIME)
            sock.recv(1)  # the connection ends with the process, which has cleaned up by then
        except PermissionError:
            raise HotenvError(EXIT_SYSTEM, f"the process that serves {shown} is not yours to end") from None
        except OSError:
            pass  # it has ended meanwhile
    except OSError:
        pass  # reset: it has ended
    give_up = time.monotonic() + EXCHANGE_TIME
    while os.path.exists(session.path):
        if time.monotonic() > give_up:
            raise HotenvError(EXIT_SYSTEM, f"the session at {shown} was told to end and has not")
        time.sleep(0.005)


def _shellenv(argv: list[str]) -> int:
    import shlex
    parser = _parser("shellenv", "Print a shell function `hotenv` that runs this file: short, and compiled only once.",
                     '  eval "$(python3 ~/trusted/hotenv.py shellenv)"     # in ~/.profile, ~/.bashrc or ~/.zshrc\n'
                     "  python3 ~/trusted/hotenv.py shellenv fish | source  # in ~/.config/fish/config.fish")
    parser.add_argument("shell", nargs="?", default="sh", choices=["sh", "bash", "zsh", "fish"], help="its syntax")
    options = parser.parse_args(argv)
    path = os.path.realpath(__file__)
    if not os.path.isfile(path):
        raise HotenvError(EXIT_SYSTEM, f"shellenv: {_shown(path)} is no file that a shell could start again")
    # By the loader that `import` has, so that a .pyc serves; by its path, so that it is this very file.
    program = ("import sys; from _frozen_importlib_external import SourceFileLoader as Loader; "
               f"hotenv = sys.modules['hotenv'] = type(sys)('hotenv'); hotenv.__file__ = {path!r}; "
               f"Loader('hotenv', {path!r}).exec_module(hotenv); sys.exit(hotenv.main())")
    words = " ".join(map(shlex.quote, [sys.executable or "python3", "-I", "-S", "-c", program]))
    if options.shell == "fish":
        words = words.replace("\\", "\\\\")
        return _write(1, f"function hotenv; {words} $argv; end\n")
    return _write(1, f'hotenv() {{ {words} "$@"; }}\n')


def _hermetic(argv: list[str]) -> int:
    """Every error of ours is 1 here: 2 says that something was blocked."""
    parser = _parser("hermetic", "Run a program without network, subprocesses, writes or native code.",
                     "  hotenv hermetic --no-network --trace -- pip download requests\n"
                     "What each guard holds, and what not: hotenv help hermetic")
    parser.usage = "hotenv hermetic [GUARDS] -- TARGET [ARG...]"
    _add_guard_options(parser)
    try:
        own, target = _split(argv)
        options = parser.parse_args(own)
        if not target:
            raise HotenvError(1, f"hermetic: the target goes after `--`: {_invocation()} hermetic ... -- TARGET...")
        _run_hermetic(_guard_words(options, os.environ), target, _host_environment())
    except HotenvError as error:
        raise HotenvError(1, str(error)) from None


def _mcp(argv: list[str]) -> int:
    parser = _parser("mcp", "Serve shells with the session's environment to an agent: MCP on stdio, values masked.",
                     "  claude mcp add hotenv -- python3 hotenv.py mcp --audit ~/hotenv-audit.log")
    add = parser.add_argument
    add("--policy", metavar="FILE", help='JSON: {"allow": [...], "deny": [...]}, first words of commands; advisory')
    add("--audit", metavar="FILE", help="append a JSON line at the start and the end of each command")
    add("--remote", metavar="NAME=CMD", action="append", default=[],
        help="let the agent open a shell by CMD, such as `ssh -T host`")
    add("--no-mask", metavar="NAMES", action="append", default=[], help="let these values be seen: NAME,PREFIX*,...")
    _add_session_options(parser)
    options = parser.parse_args(argv)
    remotes = dict([text.partition("=")[::2] for text in options.remote])
    if not all(remotes) or not all(remotes.values()):
        raise HotenvError(EXIT_USAGE, "mcp: --remote takes NAME=CMD")
    return _serve_mcp(socket_path=options.socket, peer_uid=options.peer_uid, policy=options.policy,
                      audit=options.audit, remotes=remotes, no_mask=_names(options.no_mask))


_TOPICS = {"sessions": r"""
SESSIONS

Which one: --socket PATH, else HOTENV_SOCKET, else the nearest .hotenv from here upward. `serve`
heeds neither of the first two. A marker and a server count only if they are yours or root's;
--peer-uid N also believes a server of user N.
Files: $XDG_RUNTIME_DIR/hotenv, or /tmp/hotenv-UID (0700), holds ID.sock, whose time stamp is the
end of the session, and ID, a link to the project directory: by these `status --all` and `stop
--all` find sessions, also those whose .hotenv is lost. guards-* are copies of hotenv for guarded
programs. .hotenv (0600), where `serve` was started, says socket=PATH. All but guards-* go with the
session; after a kill -9 they stay: `serve --force` or `stop --all` clears them.

A worktree, or any other directory (until `unset HOTENV_SOCKET`):
    export HOTENV_SOCKET=$(cut -d= -f2- ../main/.hotenv)
A container gets one socket, and no more:
    SOCKET=$(cut -d= -f2- .hotenv)
    docker run --rm -v "$SOCKET:/run/hotenv.sock" -v "$PWD/hotenv.py:/hotenv.py:ro" \
        -e HOTENV_SOCKET=/run/hotenv.sock python:3 \
        python3 /hotenv.py run --peer-uid "$(id -u)" -- ./test.sh
Another host: ssh forwards the socket to a directory there that is yours alone. `stop` it here.
    ssh host 'mkdir -p -m 700 ~/.hotenv-forward && rm -f ~/.hotenv-forward/s.sock'
    ssh -o ExitOnForwardFailure=yes -R /home/me/.hotenv-forward/s.sock:"$SOCKET" host
    host$ hotenv run --socket ~/.hotenv-forward/s.sock -- ./deploy.sh

Protocol: one line of JSON, one back. {"command":"dump"}, or {"command":"run","args":["ls"]} (for
the log), of at most 256 KiB; {"env":{"NAME":"..."}}, or {"error":"BAD_REQUEST","message":"..."}.
""", "dotenv": r"""
THE DOTENV DIALECT

NAME=value or export NAME=value. Names are letters, digits, _ . and -. Blanks around either do not
count; # begins a comment at the start of a line or after a blank; the last of several wins.
'...' is literal, but for \\ and \'. "..." knows \n \r \t \\ \" \' \a \b \f \v. Both may span lines.
${NAME} is what an earlier line set, else what the environment of `serve` has, else empty. $NAME is
literal. With --prompt a bare ?text is asked for, showing text; NAME=? asks for NAME.

                   NAME has a value   NAME is empty   NAME is not set
    ${NAME:-word}  the value          word            word
    ${NAME-word}   the value          empty           word
    ${NAME:+word}  word               empty           empty
    ${NAME+word}   word               word            empty
    ${NAME:?word}  the value          refused         refused
    ${NAME?word}   the value          empty           refused

What differs from python-dotenv 1.2, and why:
    the first malformed line refuses all: skipping on would publish pieces of secrets as names
    a name without = is malformed, unless exported after its definition: it may be a lost value
    '...' is never interpolated, and \${ is a literal ${ elsewhere: there has to be a way
    :- also serves an empty value; the other operators work; defaults nest; any other ${ is refused
    references may expand to 64 MiB in all; CRLF and CR end lines; NUL and bad UTF-8 are refused
A wrapped base64 line like c2Vj= is an entry: a part of a secret becomes a name. Quote such values.
""", "masking": r"""
MASKING: run --mask, mcp, ShellSession, Redactor

What: each value of the session, as [hidden:NAME], also those that --only left out. As it is, and in
base64 (at any offset, URL-safe too), hex, percent-encoding, JSON, HTML, shell quoting and Python's
repr; of several lines, also each line of 8 or more characters. 4 to 7 characters: as whole words.
What not, but named on stderr: up to 3 characters, numbers of up to 5 digits, variables of the
allowlist of --isolated (HOME, PATH, ...), and values that are one of these words, in whatever case:
    true false yes no on off null none nil undefined default enabled disabled auto always never
    debug info notice warn warning error fatal critical trace verbose test tests testing dev devel
    development local localhost stage staging prod production live main master user users root admin
    administrator guest public private postgres postgresql mysql mariadb redis mongodb sqlite
    sqlite3 memory http https utf-8 utf8 json text plain us-east-1 us-west-2 eu-west-1 eu-central-1
--no-mask NAME,PREFIX* lets others be seen, where a value is a word that output is full of.
Streams: stdout and stderr; one that is a terminal is left as it is, with a word. Output comes at
once, but for what may be the beginning of a value. Exit status and signals: as without.
Limits: a piece of a value, its reverse, gzip, one letter a line, a short word right behind a colour
code, and all that is not listed above, are seen. Output after the end of the command is lost.
""", "hermetic": r"""
GUARDS: hermetic, run --no-network, ...

Linux itself (seccomp, Landlock) holds a guard for any program and all that it starts. In a Python
an audit hook stands in front: it knows names and paths, and reports. Where the kernel cannot
(macOS, not x86-64, aarch64 or riscv64, old kernels, some containers), a Python has its hook alone,
and --trace says "for Python code only"; any other program is refused, with 1.
--no-network. Kernel: sockets but unix, netlink and TCP; connecting by TCP (Linux 6.7; before, other
  programs get no TCP at all); io_uring. Hook: looking up names, listening for other machines.
  Neither: unix sockets by path (docker.sock), connections that are open already.
--allow-localhost, --allow-domain D (and what ends in .D): for Python programs alone, by their hook.
  Where clouds hand out credentials (169.254.169.254, ...), only that very name opens it.
--no-subprocess. Kernel: fork, exec; threads stay. `#!/usr/bin/env node` scripts: -- node script.js.
  Neither: asking systemd, docker or cron to start something.
--fs-readonly[=PATH], --fs-write PATH. Kernel: writing (Linux 6.2), but below --fs-write, /dev/null
  and its like, /dev/shm, and to stdout and stderr; without --fs-write chmod and chown too. Hook:
  reads outside PATH (=/ allows all); another program takes --fs-readonly=/ alone.
--strict-imports. Hook alone: extension modules but Python's own, ctypes, cffi.
--profile: net-hermetic (localhost is allowed), exec-deny, fs-readonly, strict-imports, all.
Any guard: the session's server answers no guarded program, by a mark that the kernel keeps.
Lost below: sudo and its like gain nothing; 32-bit programs are killed. Children drop the hook by
`PYTHONPATH=src python` in a shell, `python -I`, -E or -S, `env -i`, or as another user; the
kernel's part goes on. Python code that looks for the hook can get round it.
Exit status: 2 when the first process's hook blocked something, even if the program went on; 1 when
hotenv could not do its part; else the program's own, which may be 2. It does not tell what only the
kernel refused ("Permission denied"), what a child was refused, what came before an exec.
Targets: a command, a path, `python3 ...`, module, pkg.module:callable. --trace: each block.
Configuration: [tool.hermetic] in ./pyproject.toml, or ./HERMETIC.toml (Python 3.11), as no-network
= true; HERMETIC_FLAGS, HERMETIC_PROFILE, HERMETIC_FS_ROOT; the command line. Guards add up. What
loosens one counts from where it was switched on last, or later. `run` reads these if given a guard.
""", "mcp": r"""
MCP: shells for an agent that must not see the values

    claude mcp add hotenv -- python3 hotenv.py mcp --audit ~/hotenv-audit.log
    {"mcpServers": {"hotenv": {"command": "sh",
        "args": ["-c", "cd /path/to/project && exec python3 hotenv.py mcp"]}}}
The second is for .mcp.json, Claude Desktop, Cursor, Gemini CLI; VS Code has "servers", "type":
"stdio". Tools: session_open, _exec, _list, _close. Revisions 2024-11-05 to 2025-11-25.
Start `hotenv serve` first. Each call is a use and starts its idle time anew: --max-age is the
bound. When it ends, its shells close at the next call. Names are shown, values masked.
--no-mask NAME,PREFIX*: let these be seen.
--remote web="ssh -T web.example": let the agent open a shell there, by the name web alone.
--policy FILE: {"allow": ["git", "make"], "deny": ["sudo"]}, or one of them. First words of all
    simple commands in a line; what cannot be told apart is refused. Advice: make runs anything.
--audit FILE: a JSON line at the start and the end of each command, masked; 0600, never through a
    link. A command whose start cannot be written does not run.
A command has no terminal and an empty stdin. A time limit (30 s) is one Ctrl-C, and 2 s later a
kill that costs the shell: a new one has its directory and exports; the result says shell_restarted.
It is no boundary: who runs commands can send secrets anywhere. Give an agent only what it may use.
"""}


if __name__ == "__main__":
    sys.exit(main())
