#!/usr/bin/env python3
"""hotenv keeps an environment of secrets in one process's memory for a short while and hands it to what you run.

    python3 hotenv.py serve < secrets.env        # holds the environment; gone after 5 idle minutes
    python3 hotenv.py run -- ./deploy.sh         # runs with it, from this directory or any below it

One file, standard library only, Python 3.8 and later, Linux and macOS.
"""
#
# What it protects from: secrets in files, in argv, in logs, and in memory for longer than they are needed. What it does
# not: root, swap, a child that prints what it got, and any process of the same user that asks the server itself. There
# is no authentication beyond the file system: who can connect to the socket is trusted (and who answers is checked).
#
# Invariants, each with a test that fails without it:
#   1. No value is ever, by our doing, on an argv, in a log, an error, a traceback, a file or the server's /proc entry.
#   2. Nothing is created before the whole input has parsed; a refused start leaves nothing.
#   3. Expire first, then serve, on a clock that counts suspend. After the deadline not one value leaves the process.
#   4. The snapshot is immutable: its response is encoded once, a request costs a send.
#   5. No client can hold up another, the timers or the signals.
#   6. Only a successful request, fully handed to the kernel, resets the idle timer; log line and time stamp come before
#      the connection is closed, so they are there when `run` returns.
#   7. We remove only what is ours: the socket that we bound, the marker that names it, and with --force an old socket
#      that lies where ours lie.
#   8. `run` is exec: same process, terminal, signals and status, and nothing of ours on stdout or stderr.
#   9. A marker may lie, and so may a socket: both count only if they are ours or root's.
#  10. What is not ours is escaped before a terminal or a log sees it.
#  11. A command imports only what it needs; importing hotenv changes nothing; no check lives in an assert.
#
# The rooms, in the order in which data flows; each calls only rooms above it:
#   limits and errors | folds | dotenv | environment | session files | protocol | server | client | launch |
#   and, each of them folded, redaction, masked launch, hermetic, hermetic host, shell session, mcp, terminal, formats,
#   options, daily use | command line

from __future__ import annotations

import sys

# A script's directory (or, under -m, the current one) stands first on the path: a json.py or signal.py that lies beside
# a vendored copy must not be taken for the standard library's. Nothing outside the standard library is imported here.
if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]

import _thread
import errno
import os
import stat
import time

# The C halves of socket, signal and json: the public modules bring in selectors, enum and re, 7 of the 9 ms that a
# bare interpreter takes to start, at every `run`. Only names that both halves have are used.
try:
    import _signal
    import _socket
    from _json import encode_basestring_ascii as _json_quote, make_scanner as _json_scanner
except ImportError:  # an interpreter that is built otherwise
    import signal as _signal  # type: ignore[no-redef]
    import socket as _socket  # type: ignore[no-redef]
    from json import JSONDecoder
    from json.encoder import encode_basestring_ascii as _json_quote

    def _json_scanner(rules):
        return JSONDecoder(parse_int=rules.parse_int, parse_float=rules.parse_float,
                           parse_constant=rules.parse_constant).scan_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple,
                        Union)

__version__ = "1.0.0"

# ==== limits and errors ===============================================================================================
# Every limit with its reason, the exit codes, and the one exception that ends a command.

MAX_INPUT = 64 << 20  # bytes of dotenv text: far above any real file, far below what hurts
MAX_EXPANSION = 64 << 20  # characters that references may expand to: doubling sixty times is one short file
MAX_NESTING = 64  # references within defaults: deeper is a mistake, and recursion must end
MAX_REQUEST = 16 << 20  # bytes: a long command line is legal, and the kernel takes no longer one
MAX_UNFINISHED = 64 << 20  # bytes of all incomplete requests together
MAX_RESPONSE = 256 << 20  # bytes of an answer that a client reads
MAX_MARKER = 8 << 10  # bytes: one path
MAX_LOG_LINE = 2 << 20  # characters of a logged command line: the usual limit of the system's
MAX_LOG_BACKLOG = 1 << 20  # bytes of log lines that wait for a stderr that nobody reads
MAX_DURATION = 366 * 86400.0  # seconds: a session is short-lived
PIPE_BUF = 512 if sys.platform == "darwin" else 4096  # bytes that a writable pipe takes without blocking
DESCRIPTORS = 4096  # soft limit that the server asks for: a connection is one descriptor
BATCH = 128  # connections accepted in one go, before the timers are looked at again
IDLE_TIMEOUT = 300.0  # seconds: the specification's default
REQUEST_TIME = 5.0  # seconds for a request to be complete: they are sent at once
ANSWER_TIME = 30.0  # seconds without progress before a client that does not read is dropped
EXCHANGE_TIME = 10.0  # seconds that a client gives the whole exchange
LOCK_TIME = 1.0  # seconds to wait for the lock on the project directory: it is a courtesy, nobody may hold us up
TICK = 10.0  # seconds: the poller's own clock stands still during suspend, ours does not
BACKLOG = 4096  # pending connections; the system lowers it to its own limit

EXIT_USAGE, EXIT_NO_SESSION, EXIT_UNREACHABLE = 2, 3, 4
EXIT_INPUT, EXIT_SYSTEM, EXIT_ARTIFACT, EXIT_REFUSED = 7, 8, 9, 10

OVERFLOW_UID = 65534  # what a user namespace shows for every stranger
_SUN_PATH = 104 if sys.platform == "darwin" else 108  # bytes of a socket's address, its final NUL included


class HotenvError(Exception):
    """What ends a command: `code` is the exit status, `str()` the message without "hotenv: "."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Killed(BaseException):
    """A signal that this process is to die of once everything is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _killed(number: int, frame: object) -> NoReturn:
    raise _Killed(number)


class _Afterwards(BaseException):
    """What is left to be done once nothing of ours is on the stack, to catch or to show what it raises."""

    def __init__(self, work: Callable[[], int]) -> None:
        super().__init__()
        self.work = work


def _die_of(number: int) -> NoReturn:
    try:
        _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (number,))
    except OSError:
        pass  # SIGKILL, or one that the C library keeps for itself: it was not handled, and not blocked
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container cannot be killed so


def _shown(text: str) -> str:
    """`text` as a terminal or a log may see it: whatever is not printable as its Python escape."""
    if text.isprintable():
        return text
    return text.translate({ord(c): c.encode("unicode_escape").decode() for c in set(text) if not c.isprintable()})


def _duration(seconds: float) -> str:
    """5m, 1h30m, 0.5s: as _parse_duration reads it."""
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            parts.append(f"{int(seconds // size)}{unit}")
            seconds %= size
    if seconds or not parts:
        parts.append(f"{seconds:.10g}s")
    return "".join(parts)


def _system_error(error: OSError, doing: str) -> HotenvError:
    return HotenvError(EXIT_SYSTEM, f"{doing}: {error.strerror or type(error).__name__}")


def _say(message: str, prefix: str = "hotenv: ") -> None:
    if sys.stderr is None:  # it was closed; print() would take stdout instead
        return
    try:
        print(prefix + message, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = None  # broken or full, and that is to change no exit status: not even when Python flushes it


def _write(descriptor: int, data: bytes) -> int:
    """All of it; a reader that has gone is no error, a full disk is one."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left):]
    except BrokenPipeError:
        pass
    except OSError as error:
        raise _system_error(error, "cannot write the output") from None
    return 0


# ==== folds ===========================================================================================================
# A vendored script is compiled at each run, 8 ms for every 1,000 lines of code, and `run` needs few of them. Most of
# what it does not need is ordinary code too, but the file holds it as text until it is entered. Then it is compiled
# into this module under its own line numbers, so tracebacks, debuggers and `inspect` see nothing special.

_folds: Dict[str, Tuple[int, str]] = {}
_entered: set = set()
_entering = _thread.RLock()


def _fold(room: str, source: str) -> None:
    _folds[room] = (sys._getframe(1).f_lineno, source)


def _unfold(room: str) -> None:
    with _entering:
        if room not in _entered:
            line, source = _folds[room]
            exec(compile("\n" * (line - 1) + source, globals().get("__file__", "hotenv"), "exec"), globals())
            _entered.add(room)


_PUBLIC = {"Redactor": "redaction", "ShellSession": "shell session", "ExecResult": "shell session",
           "SessionPoisoned": "shell session", "PolicyDenied": "shell session"}  # public names in folds


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        _unfold(_PUBLIC[name])
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ==== dotenv ==========================================================================================================
# Text into entries, or one error with its line and column. Knows nothing of files, sockets or the environment.
#
# An entry is (name, value): a str is a literal, a _Template holds references. Errors show a position and, once `key =`
# has been read, the key; never any other piece of the text, which may be the tail of a secret.

_NAME = r"[A-Za-z0-9_.-]+"
_BLANKS = r"[^\S\n]*"
_LINE_END = r"(?:\n|\Z)"

# One match for an ordinary statement: 10 times as fast as a statement a step. Group 2 is a bare value, 3 a "..." and 4
# a '...' one; without a group it is a comment. What it does not know it leaves to _parse_statement by matching nothing:
# references, questions, a bare value with a # in it, quoted names, every mistake. No two neighbouring repeats share a
# character, so it stays linear; a "..." with more than 99 escapes goes there too, as each costs a frame.
_ORDINARY = (
    rf"\s*(?:#[^\n]*{_LINE_END}|(?:export[^\S\n]+)?(?!export[^\S\n])({_NAME}){_BLANKS}={_BLANKS}(?:"
    r"""([^\s#$'"?][^\n#$]*|)(?:(?<=\s)#[^\n]*)?"""
    rf"""|"([^"\\$]*(?:\\[^$][^"\\$]*){{0,99}})"{_BLANKS}(?:#[^\n]*)?"""
    rf"""|'([^'\\]*(?:\\[\s\S][^'\\]*){{0,99}})'{_BLANKS}(?:#[^\n]*)?"""
    rf"){_LINE_END})|"
)

_ESCAPES = (("\\n", "\n"), ('\\"', '"'), ("\\t", "\t"), ("\\r", "\r"), ("\\'", "'"),
            ("\\a", "\a"), ("\\b", "\b"), ("\\f", "\f"), ("\\v", "\v"))


def _parse_entries(source: Union[str, bytes]) -> Iterable[Tuple[str, Union[str, _Template]]]:
    import re

    text = _normalised(source)
    ordinary = re.compile(_ORDINARY).finditer
    # Two lists and no tuples: a million tuples would keep the garbage collector busy for a third of the time.
    names: List[str] = []
    values: List[Union[str, _Template]] = []
    known: set = set()  # names[:counted], for `export NAME`
    counted = pos = 0
    while pos < len(text):
        for match in ordinary(text, pos):
            kind = match.lastindex
            if kind == 2:
                values.append(match[2].rstrip())
            elif kind:
                values.append(_unescape(_pairs_marked(match[kind]), '"' if kind == 3 else "'"))
            elif match.end() > match.start():
                continue  # a comment
            else:
                break
            names.append(match[1])
        pos = _skip(r"\s+", text, match.start())
        if pos == len(text):
            break
        _unfold("dotenv statements")
        pos, name, value = _parse_statement(text, pos)
        if value is not None:
            names.append(name)
            values.append(value)
        elif name:
            known.update(names[counted:])
            counted = len(names)
            if name not in known:
                raise _dotenv_error(text, pos, "no `=` after a name that is exported before it has a value")
    return zip(names, values)


def _normalised(source: Union[str, bytes]) -> str:
    """The text without a BOM, every line ending in LF; without NULs, so that one is free to stand for a pair."""
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        if not isinstance(source, bytes) and not text.isascii():
            text.encode("utf-8")
    except UnicodeError as error:
        before = source[:error.start]  # type: ignore[attr-defined]
        before = before.decode("utf-8") if isinstance(before, bytes) else before
        before = _newlines(before)
        raise _dotenv_error(before, len(before), "invalid UTF-8: save the file as UTF-8") from None
    text = _newlines(text)
    nul = text.find("\0")
    if nul >= 0:
        raise _dotenv_error(text, nul, "NUL: no environment can hold it; is this a text file?")
    return text


def _newlines(text: str) -> str:
    text = text[1:] if text.startswith("\ufeff") else text
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _dotenv_error(text: str, pos: int, reason: str) -> HotenvError:
    line = text.count("\n", 0, pos) + 1
    return HotenvError(EXIT_INPUT, f"<stdin>:{line}:{pos - text.rfind(chr(10), 0, pos)}: {reason}")


def _skip(pattern: str, text: str, pos: int) -> int:
    import re

    found = re.compile(pattern).match(text, pos)
    return found.end() if found else pos


def _pairs_marked(body: str) -> str:
    """A quoted body with each pair of backslashes as one NUL, so that any backslash left escapes what follows it."""
    return body.replace("\\\\", "\0") if "\\" in body else body


def _unescape(body: str, quote: str) -> str:
    if "\\" in body:
        for escape, character in _ESCAPES if quote == '"' else (("\\'", "'"),) if quote else ():
            body = body.replace(escape, character)
    return body.replace("\0", "\\") if "\0" in body else body


class _Template:
    """A value with references: a list of literals and of (name, operator, parts of its word, where its `$` stands)."""

    __slots__ = ("parts", "fail", "question")

    def __init__(self, parts: list, fail: Callable[[int, str], HotenvError], question: Optional[str]) -> None:
        self.parts, self.fail, self.question = parts, fail, question


# ---- statements that are not ordinary, step by step

_fold("dotenv statements", r'''
def _parse_statement(text: str, pos: int) -> Tuple[int, str, Union[str, _Template, None]]:
    """(where the next one starts, name, value); no name for a comment, no value for `export NAME`."""
    start = _skip(r"export[^\S\n]+", text, pos)
    exported, pos = start > pos, start
    if text.startswith("#", pos):
        return _skip(r"[^\n]*\n?", text, pos), "", None
    pos, name = _parse_name(text, pos)
    pos = _skip(_BLANKS, text, pos)
    if text.startswith("=", pos):
        pos, value = _parse_value(text, pos + 1, name)
        return pos, name, value
    if exported and (pos == len(text) or text[pos] in "#\n"):
        return pos, name, None
    raise _dotenv_error(text, pos, "no `=` after a name: write NAME=value; or is this the rest of a value that "
                                   "needs quotes?")


def _parse_name(text: str, pos: int) -> Tuple[int, str]:
    if text.startswith("'", pos):
        end = _skip(_NAME, text, pos + 1)
        if end > pos + 1 and text.startswith("'", end):
            return end + 1, text[pos + 1:end]
        if text.find("'", pos + 1) < 0:
            raise _dotenv_error(text, pos, "unterminated quote around a name")
        raise _bad_name(text, end)
    end = _skip(_NAME, text, pos)
    if end == pos or not (end == len(text) or text[end] in "=#" or text[end].isspace()):
        raise _bad_name(text, end)
    return end, text[pos:end]


def _bad_name(text: str, pos: int) -> HotenvError:
    character = text[pos:pos + 1]
    what = "this character"
    if character in ("", "\n"):
        what = "the end of the line"
    elif character.isascii() and character.isprintable() and not character.isalnum():
        what = f"`{character}`"
    return _dotenv_error(text, pos, f"bad name: {what} cannot be in one; names are letters, digits, `_`, `.` and `-`")


def _parse_value(text: str, pos: int, key: str) -> Tuple[int, Union[str, _Template]]:
    start = _skip(_BLANKS, text, pos)
    if text[start:start + 1] in ("'", '"'):
        return _parse_quoted(text, start, key)
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    if text.startswith("#", start) and start > pos:
        return end, ""
    raw = text[start:end]
    if "#" in raw:
        import re

        comment = re.search(r"\s#", raw)
        raw = raw[:comment.start()] if comment else raw
    raw = raw.rstrip()

    def fail(at: int, reason: str) -> HotenvError:
        return _dotenv_error(text, start + at, f"{reason} in the value of {key}")

    return end, _parse_template(raw, "", fail)


def _parse_quoted(text: str, start: int, key: str) -> Tuple[int, Union[str, _Template]]:
    quote = text[start]
    begin = start + 1
    close = text.find(quote, begin)
    while close > 0 and (close - begin - len(text[begin:close].rstrip("\\"))) % 2:
        begin, close = close + 1, text.find(quote, close + 1)
    if close < 0:
        raise _dotenv_error(text, start, f"unterminated quote: the value of {key} starts here and never ends")
    body = _pairs_marked(text[start + 1:close])
    end = _skip(_BLANKS + r"(?:#[^\n]*)?", text, close + 1)
    if end < len(text) and text[end] != "\n":
        opened = str(_dotenv_error(text, start, ""))[len("<stdin>:"):-2]
        raise _dotenv_error(text, end, f"text after the closing quote of {key}, which opened at {opened}: "
                                       "escape a quote inside as \\" + quote)

    def fail(at: int, reason: str) -> HotenvError:
        return _dotenv_error(text, start + 1 + at + body.count("\0", 0, at), f"{reason} in the value of {key}")

    return end, _unescape(body, quote) if quote == "'" else _parse_template(body, quote, fail)


def _parse_template(body: str, quote: str, fail: Callable[[int, str], HotenvError]) -> Union[str, _Template]:
    question = body[1:] if not quote and body.startswith("?") else None
    if body.count("${") == body.count("\\${"):
        literal = _unescape(body.replace("\\${", "${"), quote)
        return literal if question is None else _Template([literal], fail, question)
    import re

    head = re.compile(r"([A-Za-z0-9_.]+)(:?[-+?]|(?=\}))")
    parts: list = []
    opened: list = []  # (name, operator, the parts around it, position) of each reference that is not closed yet
    at = 0
    for token in re.compile(r"\\?\$\{|\}").finditer(body):
        if token[0] == "}" and not opened:
            continue
        if token.start() > at:
            parts.append(_unescape(body[at:token.start()], quote))
        at = token.end()
        if token[0] == "\\${":
            parts.append("${")
        elif token[0] == "}":
            name, operator, around, position = opened.pop()
            around.append((name, operator, parts, position))
            parts = around
        else:
            found = head.match(body, at)
            if not found or len(opened) == MAX_NESTING:
                raise fail(token.start(), "bad reference: write ${NAME}, ${NAME:-default}, or \\${ for a literal ${,")
            opened.append((found[1], found[2], parts, token.start()))
            parts, at = [], found.end()
    if opened:
        raise fail(opened[0][3], "bad reference: its } is missing; write \\${ for a literal ${,")
    parts.append(_unescape(body[at:], quote))
    return _Template(parts, fail, question)
''')


# ==== environment =====================================================================================================
# Entries into values, and the environment of a child. Knows nothing of where the entries came from.

ESSENTIALS = (
    "PATH HOME SHELL USER LOGNAME TMPDIR TEMP TMP LANG LC_ALL LC_CTYPE TERM COLORTERM FORCE_COLOR NO_COLOR CI "
    "NODE_OPTIONS"
    if os.name != "nt" else
    "SYSTEMROOT APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) COMSPEC PATHEXT"
).split()


def resolve_env(entries: Union[Mapping[str, str], Iterable[Tuple[str, Any]]], host: Mapping[str, str],
                prompt: Optional[Callable[[str], str]] = None) -> Dict[str, str]:
    """The one place where an entry becomes a value.

    A literal stays as it is; `${NAME}` is what an earlier entry set, or `host` has; with `prompt`, a bare `?text` is
    what `prompt("text")` returns. The strings of a mapping mean what bare values in dotenv text mean.
    """
    if hasattr(entries, "items"):
        entries = [(name, _bare_value(name, text)) for name, text in entries.items()]
    env: Dict[str, str] = {}
    room = MAX_EXPANSION

    def expand(template: _Template, parts: list) -> str:
        nonlocal room
        pieces = []
        for part in parts:
            if isinstance(part, tuple):
                name, operator, word, at = part
                value = env.get(name)
                value = host.get(name) if value is None else value
                there = bool(value) if operator[:1] == ":" else value is not None
                if operator[-1:] == "?" and not there:
                    what = "not set" if value is None else "empty"
                    raise template.fail(at, f"what is referred to is required, and {what},")
                if operator[-1:] == "+" or operator[-1:] == "-" and not there:
                    part = expand(template, word) if there or operator[-1:] == "-" else ""
                else:
                    part = value or ""
                    room -= len(part)
                if room < 0:
                    raise template.fail(at, f"references expand to too large a text, over {MAX_EXPANSION >> 20} MiB,")
            pieces.append(part)
        return "".join(pieces)

    for name, value in entries:
        if not isinstance(value, str):
            asked = prompt is not None and value.question is not None
            value = prompt(value.question) if asked else expand(value, value.parts)  # type: ignore[misc]
        env[name] = value
    return env


def parse_dotenv(text: Union[str, bytes], host: Mapping[str, str] = {}) -> Dict[str, str]:
    """What `serve` would hold for this dotenv text; raises HotenvError with code 7.

    `host` is where `${NAME}` looks when the text has not set NAME so far.
    """
    return resolve_env(_parse_entries(text), host)


def _bare_value(name: str, text: str) -> Union[str, _Template]:
    def fail(at: int, reason: str) -> HotenvError:
        return HotenvError(EXIT_INPUT, f"{name}: {reason} at character {at + 1}")

    _unfold("dotenv statements")
    return _parse_template(text, "", fail)


def build_isolated_env(source: Mapping[str, str], pass_through: Iterable[str] = (), define: Mapping[str, str] = {},
                       bin_paths: Sequence[str] = ()) -> Dict[str, str]:
    """A child's environment from an allowlist: essentials and `pass_through` from `source` where it has them, then
    `define`, then `bin_paths` before PATH. Nothing is checked or cleaned: what `source` has is what the child sees."""
    env = {name: source[name] for name in (*ESSENTIALS, *pass_through) if name in source}
    env.update(define)
    if bin_paths:
        env["PATH"] = os.pathsep.join([*bin_paths, *([env["PATH"]] if env.get("PATH") else [])])
    return env


def _host_environment() -> Dict[str, str]:
    """What we were started with, as text that goes back to the same bytes whatever the locale."""
    env = {name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
           for name, value in os.environb.items()}
    if env.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8") and not env.get("LC_ALL"):
        _take_back_locale(env)
    return env


def _take_back_locale(env: Dict[str, str]) -> None:
    """Under the C locale Python sets LC_CTYPE in its own environment (PEP 538); the child shall have what was there."""
    try:
        with open("/proc/self/environ", "rb") as file:
            before = [line[9:] for line in file.read().split(b"\0") if line.startswith(b"LC_CTYPE=")]
    except OSError:  # no /proc: it was Python if it also took the C locale for a reason to turn UTF-8 mode on
        before = [] if sys.flags.utf8_mode and "PYTHONUTF8" not in env else [env["LC_CTYPE"].encode()]
    del env["LC_CTYPE"]
    if before:
        env["LC_CTYPE"] = before[0].decode("utf-8", "surrogateescape")


def _carriable(env: Mapping[str, str]) -> Optional[str]:
    """The first name that no environment can carry, or whose value none can."""
    for name, value in env.items():
        try:
            raw = name.encode("utf-8", "surrogateescape") + value.encode("utf-8", "surrogateescape")
        except UnicodeError:
            return name
        if not name or "=" in name or b"\0" in raw:
            return name
    return None


# ==== session files ===================================================================================================
# The runtime directory, a session's socket path, and the marker `.hotenv`: made, found, read, removed.

MARKER = ".hotenv"


def _ours(uid: int) -> bool:
    return uid == os.geteuid() and uid != OVERFLOW_UID


def _trusted(uid: int) -> bool:
    return _ours(uid) or uid == 0


def _runtime_base() -> str:
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    return os.path.join(base, "hotenv") if base.startswith("/") else f"/tmp/hotenv-{os.getuid()}"


def _runtime_dir() -> str:
    """The runtime directory, made if missing, and private: a directory of ours with mode 0700."""
    base = _runtime_base()
    os.close(_open_runtime_dir(base, []))
    return base


def _open_runtime_dir(base: str, made: List[str]) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(base, flags)
        except FileNotFoundError:
            _make_private(base, made)
            descriptor = os.open(base, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise HotenvError(EXIT_SYSTEM, f"{_shown(base)} is not a directory of its own: move it away, "
                                           "or set XDG_RUNTIME_DIR to a directory of yours") from None
        raise _system_error(error, f"cannot use the runtime directory {_shown(base)}") from None
    found = os.fstat(descriptor)
    try:
        if os.geteuid() == OVERFLOW_UID:
            raise HotenvError(EXIT_SYSTEM, f"uid {OVERFLOW_UID} (nobody) stands for every stranger in a container: "
                                           "hotenv does not run as it; use another user")
        if not _ours(found.st_uid):
            raise HotenvError(EXIT_SYSTEM, f"{_shown(base)} belongs to somebody else (uid {found.st_uid}): "
                                           "set XDG_RUNTIME_DIR to a directory of yours")
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.fchmod(descriptor, 0o700)
    except OSError as error:
        os.close(descriptor)
        raise _system_error(error, f"cannot make {_shown(base)} private") from None
    except HotenvError:
        os.close(descriptor)
        raise
    return descriptor


def _make_private(path: str, made: List[str]) -> None:
    """The directory and its missing parents; what was made is added to `made`."""
    parent = os.path.dirname(path)
    if not os.path.exists(parent):
        _make_private(parent, made)
    previous = os.umask(0o077)
    try:
        os.mkdir(path, 0o700)
        made.append(path)
    except FileExistsError:
        pass
    except OSError:
        while made:
            os.rmdir(made.pop())
        raise
    finally:
        os.umask(previous)


def _find_marker() -> Optional[str]:
    """The nearest marker from the current directory upward."""
    try:
        directory = os.getcwd()
    except OSError as error:
        raise _system_error(error, "the current directory cannot be told (was it removed?)") from None
    while True:
        marker = os.path.join(directory, MARKER)
        try:
            os.lstat(marker)
            return marker
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise _system_error(error, f"cannot look for {_shown(marker)}") from None
        if directory == (directory := os.path.dirname(directory)):
            return None


def _read_marker(path: str, directory: Optional[int] = None) -> str:
    """The socket path in a marker that is ours or root's, as is every link that leads to it."""
    target = path
    try:
        for _ in range(40):  # as many links as the kernel follows
            link = os.stat(target, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISLNK(link.st_mode):
                break
            if not _trusted(link.st_uid):
                raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is the link of somebody else (uid {link.st_uid})")
            target = os.path.join(os.path.dirname(target), os.readlink(target, dir_fd=directory))
        if not stat.S_ISREG(link.st_mode):  # before it is opened: that alone does something to a device
            raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is not a regular file: move it away")
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            found = os.fstat(descriptor)
            if not _trusted(found.st_uid):
                raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is somebody else's (uid {found.st_uid}): not "
                                               "believed; --socket names a socket without it")
            content = os.read(descriptor, MAX_MARKER + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _system_error(error, f"cannot read {_shown(path)}") from None
    return _parse_marker(path, content)


def _parse_marker(path: str, content: bytes) -> str:
    lines = [line for line in content.split(b"\n") if line.strip()]
    if len(content) > MAX_MARKER or len(lines) != 1 or not lines[0].startswith(b"socket=/") or b"\0" in content:
        raise HotenvError(EXIT_ARTIFACT, f"{_shown(path)} is damaged: it should hold one line, socket=<absolute path>; "
                                         "remove it and start a session anew")
    return os.fsdecode(lines[0][len(b"socket="):])


def _address(path: str, directory: Optional[int] = None) -> Tuple[str, Optional[int]]:
    """A socket address for `path`, by way of a directory's descriptor where the path is too long for one."""
    if len(os.fsencode(path)) < _SUN_PATH:
        return path, None
    if not os.path.isdir("/proc/self/fd"):
        raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is too long for a socket ({_SUN_PATH - 1} bytes here): "
                                       "set XDG_RUNTIME_DIR to a shorter path")
    parent = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{parent}/{os.path.basename(path)}", parent


class _Lock:
    """flock on a directory while a `with` lasts; best effort, as file systems differ and others may hold it."""

    def __init__(self, directory: int) -> None:
        self.directory = directory

    def __enter__(self) -> None:
        import fcntl

        give_up = time.monotonic() + LOCK_TIME
        while True:
            try:
                return fcntl.flock(self.directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EINTR) or time.monotonic() > give_up:
                    return None
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        import fcntl

        try:
            fcntl.flock(self.directory, fcntl.LOCK_UN)
        except OSError:
            pass


class _SessionFiles:
    """The files of one session, by descriptors of their directories: a rename of either does not confuse it."""

    def __init__(self) -> None:
        self.base = _runtime_base()
        if "\n" in self.base:
            raise HotenvError(EXIT_SYSTEM, "the runtime directory's path holds a line break: set XDG_RUNTIME_DIR")
        self.made: List[str] = []
        self.runtime = _open_runtime_dir(self.base, self.made)
        self.project = -1
        self.published = False
        self.identity: Optional[Tuple[int, int]] = None

    def bind(self) -> Any:
        """A listening socket at a path that nobody has."""
        try:
            self.project = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            previous = os.umask(0o177)
            try:
                self._bind_anywhere(listener)
            finally:
                os.umask(previous)
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            raise _system_error(error, f"cannot make a socket in {_shown(self.base)}") from None
        return listener

    def _bind_anywhere(self, listener: Any) -> None:
        for attempt in range(16):
            self.id = os.urandom(4).hex()
            self.name = self.id + ".sock"
            self.path = os.path.join(self.base, self.name)
            address, parent = _address(self.path)
            try:
                listener.bind(address)
                found = os.stat(self.name, dir_fd=self.runtime, follow_symlinks=False)
                self.identity = (found.st_dev, found.st_ino)
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE or attempt == 15:
                    raise
            finally:
                if parent is not None:
                    os.close(parent)

    def publish(self, force: bool) -> None:
        """The marker, whole or not at all: written aside, then linked, which fails where one is; `force` renames it."""
        content = b"socket=" + os.fsencode(self.path) + b"\n"
        aside = f"{MARKER}.{self.id}"
        try:
            with _Lock(self.project):
                old = self._old_socket() if force else None
                try:
                    _write_new(aside, content, self.project)
                    if force:
                        os.rename(aside, MARKER, src_dir_fd=self.project, dst_dir_fd=self.project)
                    else:
                        self._link(aside, content)
                    self.published = True
                finally:
                    _unlink(aside, self.project)
                if old:
                    _unlink(old, self.runtime)
        except FileExistsError:
            raise HotenvError(EXIT_REFUSED, f"{MARKER} exists already") from None
        except OSError as error:
            raise _system_error(error, f"cannot write {MARKER} in this directory") from None

    def _link(self, aside: str, content: bytes) -> None:
        try:
            os.link(aside, MARKER, src_dir_fd=self.project, dst_dir_fd=self.project, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV):
                raise
            _write_new(MARKER, content, self.project)  # a file system without links

    def _old_socket(self) -> Optional[str]:
        """The name of the socket that the marker to be replaced points to, if it is one that we would have made."""
        try:
            directory, name = os.path.split(_read_marker(MARKER, self.project))
            is_socket = stat.S_ISSOCK(os.stat(name, dir_fd=self.runtime, follow_symlinks=False).st_mode)
        except (HotenvError, OSError):
            return None
        shaped = len(name) == 13 and name.endswith(".sock") and set(name[:8]) <= set("0123456789abcdef")
        return name if directory == self.base and shaped and is_socket else None

    def stamp(self, end: float) -> None:
        """The socket's mtime is the moment when the session will end: `ls -l` and `status` show it."""
        try:
            os.utime(self.name, (end, end), dir_fd=self.runtime, follow_symlinks=False)
        except OSError:
            pass  # the next look at the files finds out

    def bound(self) -> bool:
        try:
            found = os.stat(self.name, dir_fd=self.runtime, follow_symlinks=False)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self.identity

    def named(self) -> Optional[bool]:
        """Whether the marker names our socket; None where there is no marker to be read."""
        try:
            return _read_marker(MARKER, self.project) == self.path
        except HotenvError:
            return None

    def remove(self) -> None:
        """The marker if it names us, and the socket if it is the one that we bound."""
        if self.published:
            with _Lock(self.project):
                if self.named():
                    _unlink(MARKER, self.project)
        if self.identity and self.bound():
            _unlink(self.name, self.runtime)

    def undo(self) -> None:
        """After a start that came to nothing: also the directories that were made for it, if nobody else uses them."""
        self.remove()
        for path in reversed(self.made):
            try:
                os.rmdir(path)
            except OSError:
                return


def _write_new(name: str, content: bytes, directory: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        os.fchmod(descriptor, 0o600)
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        _unlink(name, directory)
        raise
    finally:
        os.close(descriptor)


def _unlink(name: str, directory: Optional[int] = None) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        pass  # it is gone, which is what was asked for, or cannot be removed, which nobody here could mend


# ==== protocol ========================================================================================================
# One JSON line each way: bytes into a request or a snapshot, and back. Knows nothing of sockets.


class _JsonRules:
    """How the scanner reads: no number is ever wanted, so none is computed (a million digits are quadratic)."""

    strict = True
    object_hook = object_pairs_hook = None
    memo: dict = {}
    parse_int = parse_float = staticmethod(lambda text: None)

    @staticmethod
    def parse_constant(name: str) -> None:
        raise ValueError(name)


_scan = _json_scanner(_JsonRules)


def _decode_json(line: bytes) -> Any:
    """The one JSON value in a line; ValueError for anything else, however deep or long."""
    text = line.decode("utf-8").strip(" \t\r\n")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, RecursionError, MemoryError, SystemError):  # the last: its own error is in json, not loaded
        raise ValueError("not JSON, or nested too deep") from None
    if end != len(text):
        raise ValueError("text after the JSON value")
    return value


def _encode_request(command: str, args: Sequence[str]) -> bytes:
    listed = f',"args":[{",".join(map(_json_quote, args))}]' if command == "run" else ""
    return f'{{"command":"{command}"{listed}}}\n'.encode("ascii")


def _decode_request(line: bytes) -> Tuple[str, List[str]]:
    """(command, args) of a request; ValueError with what is wrong, in words of our own."""
    try:
        request = _decode_json(line)
    except ValueError:
        raise ValueError("a request is one line of JSON in UTF-8") from None
    if not isinstance(request, dict):
        raise ValueError("a request is a JSON object")
    command, args = request.get("command"), request.get("args")
    if command == "dump":
        return "dump", []
    if command != "run":
        raise ValueError('"command" is "run" or "dump"')
    if not isinstance(args, list) or not args or not all([isinstance(arg, str) for arg in args]):
        raise ValueError('"args" is a list of strings with the command first')
    return "run", args


def _encode_snapshot(env: Mapping[str, str]) -> bytes:
    pairs = ",".join([f"{_json_quote(name)}:{_json_quote(value)}" for name, value in env.items()])
    return f'{{"env":{{{pairs}}}}}\n'.encode("ascii")


def _encode_failure(code: str, message: str) -> bytes:
    return f'{{"error":"{code}","message":{_json_quote(message)}}}\n'.encode("ascii")


def _decode_snapshot(data: bytes) -> Dict[str, str]:
    """The environment in an answer; HotenvError 9 for whatever is none. Of an answer, only a message is shown."""
    try:
        if data.find(b"\n") != len(data) - 1:
            raise ValueError("not one line")
        answer = _decode_json(data)
    except ValueError:
        raise HotenvError(EXIT_ARTIFACT, "the session's answer is not one line of JSON") from None
    env = answer.get("env") if isinstance(answer, dict) else None
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        message = answer.get("message")
        message = f": {message}" if isinstance(message, str) else ""
        raise HotenvError(EXIT_ARTIFACT, _shown(f"the session refused the request: {answer['error']}{message}"[:1000]))
    if not isinstance(env, dict) or not all([isinstance(value, str) for value in env.values()]):
        raise HotenvError(EXIT_ARTIFACT, "the session's answer holds no environment")
    if _carriable(env) is not None:
        raise HotenvError(EXIT_ARTIFACT, "the session's answer holds a name or a value that no environment can")
    return env


# ==== server ==========================================================================================================
# The loop that hands out the snapshot, its timers, signals and request log. Knows nothing of dotenv.

_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))  # on macOS the second counts sleep


_POLLIN, _POLLOUT = 1, 4  # and epoll's EPOLLIN and EPOLLOUT: the same numbers everywhere


def _now() -> float:
    return time.clock_gettime(_CLOCK)


class _Log:
    """Request lines on a descriptor that is not ours alone: never blocks, keeps a little, drops with a count."""

    def __init__(self, descriptor: int, level: Optional[str]) -> None:
        import select

        self.descriptor, self.level = descriptor, level
        self.waiting = bytearray()
        self.dropped = 0
        self.second = -1
        self.stamp = ""
        self.never_blocks = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self.poll = select.poll()
        self.poll.register(descriptor, select.POLLOUT)

    def request(self, command: str, args: List[str]) -> None:
        summary = " ".join(args if self.level == "verbose" else args[:1]) if command == "run" else "-"
        second = int(time.time())
        if second != self.second:
            self.second, self.stamp = second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        line = f"{self.stamp} {command} {_shown(summary[:MAX_LOG_LINE])}\n".encode("utf-8", "backslashreplace")
        if len(self.waiting) + len(line) > MAX_LOG_BACKLOG and self.waiting:
            self.dropped += 1
            return
        if self.dropped:
            self.waiting += f"{self.stamp} - {self.dropped} lines were dropped here\n".encode()
            self.dropped = 0
        self.waiting += line

    def flush(self) -> bool:
        """Writes what can be written now; true if some has to wait."""
        try:
            while self.waiting:
                if not self.never_blocks and not self.poll.poll(0):
                    return True
                del self.waiting[:os.write(self.descriptor, self.waiting[:PIPE_BUF])]
        except BlockingIOError:
            return True
        except OSError:  # closed, broken or full: a session does not end for its log
            self.waiting.clear()
        return False


class _Connection:
    """One client: what it sent so far, or what it has not been sent yet."""

    __slots__ = ("sock", "queue", "deadline", "received", "unsent", "request", "linger")

    def __init__(self, sock: Any) -> None:
        self.sock = sock
        self.queue: Any = None
        self.deadline = 0.0
        self.received = b""
        self.unsent: Any = b""
        self.request: Optional[Tuple[str, List[str]]] = None
        self.linger = False  # it may still be sending: closing now would reset it before it has read its answer


class _Server:
    """Serves one response until its time is up, it is told to end, or its files are no longer its own."""

    def __init__(self, listener: Any, response: bytes, files: _SessionFiles, log: _Log, idle: float,
                 max_age: float) -> None:
        import select
        from collections import OrderedDict

        self.listener, self.response, self.files, self.log, self.idle = listener, response, files, log, idle
        # Without selectors: 0.6 ms of every start.
        self.poller, self.second = (select.epoll(), 1) if hasattr(select, "epoll") else (select.poll(), 1000)
        self.watched: Dict[int, Any] = {}  # descriptor -> what for: a word, or the connection
        # First in, first out, since all in one queue have the same time: overdue ones are always at its head.
        self.reading, self.answering, self.lingering = OrderedDict(), OrderedDict(), OrderedDict()
        self.times = {id(self.reading): REQUEST_TIME, id(self.answering): ANSWER_TIME, id(self.lingering): REQUEST_TIME}
        self.unfinished = 0  # bytes in all incomplete requests
        self.finished: List[_Connection] = []  # answered in this wake
        self.listening = False
        self.log_waits = False
        self.end = _now() + max_age
        self.deadline = min(self.end, _now() + idle)
        self.next_look = _now() + TICK

    def run(self, signals: _Signals) -> str:
        """Serves; returns why it ended."""
        self._watch(signals.wakeup, _POLLIN, "signal")
        self._listen(True)
        while True:
            events = self.poller.poll(self._patience() * self.second)
            awake = [self.watched[descriptor] for descriptor, _ in events]
            reason = self._over(signals)
            if reason:
                return reason
            if not awake:
                self._listen(True)
            self._drop_overdue()
            for each in awake:
                if each == "listener":
                    self._accept()
                elif each == "log":
                    self._flush_log()
                elif each == "signal":
                    os.read(signals.wakeup, 4096)  # one that has a handler of somebody else's
                elif each.queue is self.answering:
                    self._send(each)
                elif each.queue is not None:
                    self._receive(each)
            self._settle()

    def _patience(self) -> float:
        queues = (self.reading, self.answering, self.lingering)
        first = [next(iter(queue.values())).deadline for queue in queues if queue]
        wake = min([self.deadline, self.next_look, *first])
        return max(0.0, min(wake - _now(), TICK if self.listening else 0.1))

    def _over(self, signals: _Signals) -> str:
        now = _now()
        if signals.received:
            names = {_signal.SIGINT: "SIGINT", _signal.SIGTERM: "SIGTERM", _signal.SIGHUP: "SIGHUP"}
            return f"ended by {names[signals.received]}"
        if now >= self.end:
            return "ended: --max-age is over"
        if now >= self.deadline:
            return f"ended: idle for {_duration(self.idle)}"
        if now >= self.next_look:
            self.next_look = now + TICK
            if not self.files.bound():
                return "ended: its socket file is gone"
            if self.files.named() is False:
                return "ended: another session has taken its place"
        return ""

    def _listen(self, wanted: bool) -> None:
        """Arms or disarms the listener: without descriptors to accept with, it would only make the loop spin."""
        if wanted != self.listening:
            if wanted:
                self._watch(self.listener.fileno(), _POLLIN, "listener")
            else:
                self._forget(self.listener.fileno())
            self.listening = wanted

    def _watch(self, descriptor: int, events: int, what: Any) -> None:
        self.poller.register(descriptor, events)
        self.watched[descriptor] = what

    def _forget(self, descriptor: int) -> None:
        del self.watched[descriptor]
        self.poller.unregister(descriptor)

    def _accept(self) -> None:
        """Answers one client after the other: its request is usually there already, so most never see the poller."""
        for _ in range(BATCH):
            try:
                descriptor, _address = self.listener._accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    continue  # that client has gone
                if not self._drop_oldest():
                    self._listen(False)
                    return
                continue
            self._receive(_Connection(_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)))
            self._settle()

    def _drop_oldest(self) -> bool:
        """Makes room for one more: the oldest client without a complete request goes, unless it has come meanwhile."""
        for queue in (self.lingering, self.reading):
            if queue:
                oldest = next(iter(queue.values()))
                self._receive(oldest)
                self._settle()
                if oldest.queue is queue:
                    self._drop(oldest)
                return True
        return False

    def _drop_overdue(self) -> None:
        now = _now()
        for queue in (self.reading, self.answering, self.lingering):
            while queue and next(iter(queue.values())).deadline <= now:
                self._drop(next(iter(queue.values())))

    def _enter(self, connection: _Connection, queue: Any) -> None:
        """Waits in `queue` for its descriptor; entering again gives it the queue's whole time anew."""
        descriptor, events = connection.sock.fileno(), _POLLOUT if queue is self.answering else _POLLIN
        try:
            if connection.queue is None:
                self._watch(descriptor, events, connection)
            elif connection.queue is not queue:
                self.poller.modify(descriptor, events)
        except OSError:  # no memory for one more
            self._drop(connection)
            return
        if connection.queue is not None:
            del connection.queue[descriptor]
        queue[descriptor] = connection
        connection.queue, connection.deadline = queue, _now() + self.times[id(queue)]

    def _drop(self, connection: _Connection) -> None:
        if connection.queue is not None:
            self._forget(connection.sock.fileno())
            del connection.queue[connection.sock.fileno()]
            connection.queue = None
        if connection.received:
            self.unfinished -= len(connection.received)
            connection.received = b""
        connection.sock.close()
        if not self.listening:
            self._listen(True)

    def _receive(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(65536 if connection.received else 4096, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            if connection.queue is None:
                self._enter(connection, self.reading)
            return
        except OSError:
            self._drop(connection)
            return
        if connection.queue is self.lingering:
            if not data:
                self._drop(connection)
            return
        newline = data.find(b"\n")
        connection.linger = newline != len(data) - 1
        length = len(connection.received) + (len(data) if newline < 0 else newline)
        if not data:
            self._refuse(connection, "the request ended before its newline")
        elif length > MAX_REQUEST:
            self._refuse(connection, f"a request is at most {MAX_REQUEST} bytes long")
        elif newline < 0:
            self._keep(connection, data)
        else:
            line = data[:newline]
            try:
                connection.request = _decode_request(bytes(connection.received) + line if connection.received else line)
            except ValueError as error:
                self._refuse(connection, str(error))
            except Exception:  # a bug of ours ends one request, not the session; what it says may hold what was sent
                self._refuse(connection, "the request met a bug in hotenv", "INTERNAL")
            else:
                self._answer(connection, self.response)

    def _keep(self, connection: _Connection, data: bytes) -> None:
        """Keeps the beginning of a request until the rest has come."""
        if self.unfinished + len(data) > MAX_UNFINISHED:
            self._refuse(connection, "too many long requests at once: try again", "INTERNAL")
            return
        connection.received = connection.received or bytearray()  # type: ignore[assignment]
        connection.received += data
        self.unfinished += len(data)
        if connection.queue is None:
            self._enter(connection, self.reading)

    def _refuse(self, connection: _Connection, message: str, code: str = "BAD_REQUEST") -> None:
        self._answer(connection, _encode_failure(code, message))

    def _answer(self, connection: _Connection, response: bytes) -> None:
        if connection.received:
            self.unfinished -= len(connection.received)
            connection.received = b""
        connection.unsent = response
        self._send(connection)

    def _send(self, connection: _Connection) -> None:
        now = _now()
        if now >= self.deadline:
            self._drop(connection)  # it is too late, and the loop ends before anything else is served
            return
        try:
            sent = connection.sock.send(connection.unsent, _socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(connection)
            return
        if sent == len(connection.unsent):
            if connection.request:
                self.deadline = min(self.end, now + self.idle)
            self.finished.append(connection)
            return
        if sent or connection.queue is not self.answering:
            connection.unsent = memoryview(connection.unsent)[sent:]
            self._enter(connection, self.answering)

    def _settle(self) -> None:
        """For whoever has been answered: time stamp and log line, and only then the connection is closed."""
        for connection in self.finished:
            if connection.request:
                self.files.stamp(time.time() + self.deadline - _now())
                if self.log.level != "quiet":
                    self.log.request(*connection.request)
                    self._flush_log()
            if connection.linger:
                self._linger(connection)
            else:
                self._drop(connection)
        self.finished.clear()

    def _linger(self, connection: _Connection) -> None:
        try:
            connection.sock.shutdown(_socket.SHUT_WR)
        except OSError:
            self._drop(connection)
            return
        connection.linger = False
        self._enter(connection, self.lingering)

    def _flush_log(self) -> None:
        waits = self.log.flush()
        if waits != self.log_waits:
            try:
                if waits:
                    self._watch(self.log.descriptor, _POLLOUT, "log")
                else:
                    self._forget(self.log.descriptor)
            except OSError:
                return
            self.log_waits = waits


class _Signals:
    """Handlers that set a flag, and a descriptor that wakes the loop. What was ignored at start stays ignored, but
    for SIGTERM: nohup and a shell's `&` mean it."""

    def __init__(self) -> None:
        self.received = 0
        self.wakeup, self.wakeup_end = os.pipe()
        for end in (self.wakeup, self.wakeup_end):
            os.set_blocking(end, False)
        _signal.set_wakeup_fd(self.wakeup_end, warn_on_full_buffer=False)
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
            if number == _signal.SIGTERM or _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        self.received = self.received or number

    def ignore(self) -> None:
        """At the very end: the interpreter, as it goes, gives a signal that comes late its deadly meaning back."""
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, _signal.SIG_IGN)

    def die_if_received(self) -> None:
        """Before the session is ready a signal means what it always means; for the caller to clean up first."""
        if self.received:
            raise _Killed(self.received)


def _harden() -> None:
    """No core dumps; not dumpable, so neither traceable nor readable in /proc, by others of the same user."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        _call_c("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    elif sys.platform == "darwin":
        _call_c("ptrace", 31, 0, 0, 0)  # PT_DENY_ATTACH


def _give_back_memory() -> None:
    """What parsing has freed goes back to the system, and the copies of the values in it with it."""
    _call_c("malloc_trim", 0)


def _call_c(function: str, *numbers: int) -> None:
    """Calls a function of the C library, if there is a way to. By the C half of ctypes: the whole takes 1 ms more."""
    try:
        try:
            from _ctypes import call_function, dlopen, dlsym
            call_function(dlsym(dlopen(None, 0), function), numbers)
        except ImportError:  # an interpreter that is built otherwise
            import ctypes
            getattr(ctypes.CDLL(None), function)(*numbers)
    except (ImportError, OSError, AttributeError):
        pass  # what the interpreter and the system do not offer is not claimed


def _name_process() -> None:
    """`pkill hotenv` finds the server. To be done before _harden: afterwards the file is root's."""
    try:
        with open("/proc/self/comm", "wb") as file:
            file.write(b"hotenv")
    except OSError:
        pass


def _raise_descriptor_limit() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            pass


# ==== client ==========================================================================================================
# Find a session, ask it, get its snapshot. Knows nothing of the server's insides.


def fetch(command: str = "dump", args: Sequence[str] = (), socket_path: Optional[str] = None, *,
          peer_uid: Optional[int] = None) -> Dict[str, str]:
    """The environment of the session that is found from here, or that listens at `socket_path`.

    Raises HotenvError: 3 where there is none, 4 where nobody answers, 8 and 9 where what is found cannot be believed.
    """
    path = socket_path or _find_session()
    sock = _connect(path, peer_uid)
    try:
        return _decode_snapshot(_exchange(sock, _encode_request(command, args), path))
    finally:
        sock.close()


def _find_session() -> str:
    path = os.environ.get("HOTENV_SOCKET")
    if path:
        return path
    marker = _find_marker()
    if marker is None:
        raise HotenvError(EXIT_NO_SESSION, f"no session: no {MARKER} in this directory or above; {_how_to_start()}")
    return _read_marker(marker)


def _how_to_start() -> str:
    return f"start one with: {_invocation()} serve < secrets.env"


def _invocation() -> str:
    """How the user called us, as it can be typed again."""
    script = sys.argv[0] if sys.argv else ""
    return f"python3 {_shown(script)}" if os.path.basename(script) == os.path.basename(__file__) else "hotenv"


_SILENT = "no answer in time (is its process stopped?)"


def _unreachable(path: str, why: str) -> HotenvError:
    source = ", which HOTENV_SOCKET names," if os.environ.get("HOTENV_SOCKET") == path else ""
    return HotenvError(EXIT_UNREACHABLE, f"the session at {_shown(path)}{source} cannot be reached: {why}; "
                                         f"{_how_to_start()} (add --force to replace this one)")


def _connect(path: str, peer_uid: Optional[int] = None) -> Any:
    """A connection to a server that is ours, root's or `peer_uid`'s."""
    give_up = time.monotonic() + EXCHANGE_TIME
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    parent = None
    try:
        address, parent = _address(path)
        while True:
            sock.settimeout(max(0.001, give_up - time.monotonic()))
            try:
                sock.connect(address)
                break
            except BlockingIOError:  # its backlog is full: it lives, and is busy
                if time.monotonic() >= give_up:
                    raise
                time.sleep(0.005)
        _check_peer(sock, path, peer_uid)
    except (OSError, ValueError) as error:
        sock.close()
        dead = isinstance(error, (ConnectionRefusedError, FileNotFoundError))
        why = "nobody answers there any more" if dead else getattr(error, "strerror", None) or _SILENT
        raise _unreachable(path, why) from None
    except HotenvError:
        sock.close()
        raise
    finally:
        if parent is not None:
            os.close(parent)
    return sock


def _check_peer(sock: Any, path: str, peer_uid: Optional[int]) -> None:
    uid = _peer(sock)[1]
    if not _trusted(uid) and uid != peer_uid:
        raise HotenvError(EXIT_ARTIFACT, f"the server at {_shown(path)} belongs to uid {uid}, who is not you: "
                                         f"not believed (--peer-uid {uid} would allow it)")


def _peer(sock: Any) -> Tuple[int, int]:
    """(pid, uid) of whoever listens; a pid of 0 or less is unknown."""
    if hasattr(_socket, "SO_PEERCRED"):
        raw = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # struct ucred: pid, uid, gid
        return int.from_bytes(raw[:4], sys.byteorder, signed=True), int.from_bytes(raw[4:8], sys.byteorder)
    raw = sock.getsockopt(0, 1, 76)  # macOS: SOL_LOCAL, LOCAL_PEERCRED, struct xucred: version, uid, groups
    pid = sock.getsockopt(0, 2) if sys.platform == "darwin" else 0  # LOCAL_PEERPID
    return pid, int.from_bytes(raw[4:8], sys.byteorder)


def _exchange(sock: Any, request: bytes, path: str) -> bytes:
    """What the server sends until it closes: then its log line and time stamp are written too."""
    give_up = time.monotonic() + EXCHANGE_TIME
    chunks: List[bytes] = []
    size = 0
    try:
        try:
            sock.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered, and why is in there
        while size <= MAX_RESPONSE:
            sock.settimeout(max(0.001, give_up - time.monotonic()))
            chunk = sock.recv(1 << 20 if size > 65536 else 65536)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
            if time.monotonic() >= give_up:
                raise TimeoutError
    except ConnectionResetError:
        pass  # what came before may be whole
    except OSError as error:
        timed_out = isinstance(error, _socket.timeout) or error.errno in (None, errno.EAGAIN)
        raise _unreachable(path, _SILENT if timed_out else error.strerror or "no answer") from None
    if size > MAX_RESPONSE:
        raise HotenvError(EXIT_ARTIFACT, f"the session's answer is over {MAX_RESPONSE >> 20} MiB long")
    return b"".join(chunks)


# ==== launch ==========================================================================================================
# Become the command: same process, same terminal, same signals, same status.


def _as_bytes(env: Mapping[str, str]) -> Dict[bytes, bytes]:
    return {name.encode("utf-8", "surrogateescape"): value.encode("utf-8", "surrogateescape")
            for name, value in env.items()}


def _exec(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Replaces this process; returns only by a HotenvError that says why it could not."""
    raw = _as_bytes(env)
    words = [os.fsencode(word) for word in argv]
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these two, and what is ignored stays so in the child
        _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
    failure = FileNotFoundError(errno.ENOENT, "not found on PATH")
    # By hand: os.execvpe imports warnings, and the C library's runs a script without a shebang where it does not.
    for path in _candidates(words[0], raw.get(b"PATH")):
        try:
            os.execve(path, words, raw)
        except OSError as error:
            try:
                if error.errno == errno.ENOEXEC:
                    os.execve(b"/bin/sh", [b"/bin/sh", path, *words[1:]], raw)
            except OSError as second:
                error = second
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                failure = error  # type: ignore[assignment]
                break
            if error.errno == errno.EACCES or b"/" in words[0]:
                failure = error  # type: ignore[assignment]
        except ValueError:
            failure = OSError(errno.EINVAL, "it holds a NUL")  # type: ignore[assignment]
            break
    for name in ("SIGPIPE", "SIGXFSZ"):  # we live on, if only to say why
        _signal.signal(getattr(_signal, name), _signal.SIG_IGN)
    raise _exec_failure(argv[0], failure, raw)


def _candidates(name: bytes, path: Optional[bytes]) -> List[bytes]:
    if b"/" in name or not name:
        return [name] if name else []
    directories = os.fsencode(os.defpath) if path is None else path
    return [os.path.join(directory, name) if directory else b"./" + name for directory in directories.split(b":")]


def _exec_failure(command: str, error: OSError, env: Mapping[bytes, bytes]) -> HotenvError:
    reason = "it is a directory" if error.errno == errno.EACCES and os.path.isdir(command) else error.strerror
    if error.errno == errno.E2BIG and env:
        name = max(env, key=lambda each: len(each) + len(env[each]))
        reason += (f"; of the {len(env)} variables, {_shown(name.decode('utf-8', 'backslashreplace'))} is the largest, "
                   f"with {len(env[name])} bytes")
    return HotenvError(EXIT_SYSTEM, f"cannot run {_shown(command)}: {reason}")


# ==== redaction =======================================================================================================
# Owns exact values and their encodings: text or a stream of bytes in, the same with `[hidden:NAME]` in their place out.
# It knows nothing of who prints. It prevents accidents and is no boundary: a value that is cut, reversed, compressed or
# spelled in a way that is not listed in `_spellings` goes through.
#
# How it is cheap. Every form is at least 7 bytes long, so wherever it stands, one whole four-byte word of the buffer
# (counted from the buffer's start) begins in its first four bytes. The four words that can be are kept for each form,
# and a buffer is looked at as an array of words: one hash look-up for four bytes, all of it in C. Only where a word
# hits, the sorted forms are searched. What is masked is the union of all places where any form stands, so nothing
# depends on the order of the search, on how values overlap, or on where a stream was cut.

_fold("redaction", r'''
_SHORTEST_VALUE = 4     # characters; shorter ones are too common to hide: they are reported instead
_SHORTEST_FORM = 8      # characters; shorter values are masked as whole words only
_LONGEST_FORM = 1024    # bytes; a longer form is masked in pieces of this size, which bounds what a stream holds back
_MASK_STEP = 65536      # bytes masked at once, whatever the size of the input
_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _respelled(raw: bytes, special: Iterable[int], spell: Callable[[int], bytes]) -> bytes:
    """`raw` with each special byte spelled out. The sign that opens a spelling goes first: the others bring it in."""
    for byte in sorted(set(special).intersection(raw), key=lambda byte: byte != spell(byte)[0]):
        raw = raw.replace(bytes((byte,)), spell(byte))
    return raw


def _url_spellings(raw: bytes) -> Iterator[bytes]:
    """Percent-encoding as Python, JavaScript, browsers, PHP and Java do it, with capital and with small hex digits."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
    for kept in (b"~", b"~/", b"~!'()*", b"~!'()*;,/?:@&=+$#", b"~ ", b" *", b" "):
        special = raw.translate(None, plain + kept)
        for spelled in (b"%%%02X", b"%%%02x") if special else ():
            yield _respelled(raw, special, lambda byte: spelled % byte).replace(b" ", b"+")
        if not special and b" " in kept:
            yield raw.replace(b" ", b"+")


def _base64_spellings(raw: bytes) -> Iterator[bytes]:
    """Base64 of anything that holds `raw`: what does not depend on its neighbours, and what an end would make of it."""
    from binascii import b2a_base64
    for offset, shared in ((0, 0), (1, 2), (2, 3)):
        padded = b2a_base64(bytes(offset) + raw, newline=False)[shared:]
        core = padded[:(offset + len(raw)) * 8 // 6 - shared]
        for form in (core, padded.rstrip(b"="), padded):
            yield form
            yield form.translate(bytes.maketrans(b"+/", b"-_"))
        if not offset:
            for width in (76, 64):      # how base64 and openssl wrap it
                yield from (core[i:i + width] for i in range(0, len(core), width))


def _shell_spellings(raw: bytes) -> Iterator[bytes]:
    """What stands between the quotes that shells and `shlex` put around a value, and `printf %q` without them."""
    named = {39: b"\\'", 92: b"\\\\", 7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f",
             13: b"\\r", 27: b"\\E"}
    yield raw.replace(b"'", b"'\"'\"'")
    yield raw.replace(b"'", b"'\\''")
    for special in (b'\\"$`', b'\\"$`!', b" \t!\"#$&'()*,;<>?[\\]^`{|}~", b" \t!\"$&'()*,;<>?[\\]^`{|}"):
        yield _respelled(raw, special, lambda byte: b"\\%c" % byte)
    for last in (127, 255):             # beyond ASCII only in the C locale
        special = {*named, *range(32), *range(127, last + 1)}
        yield _respelled(raw, special, lambda byte: named.get(byte) or b"\\%03o" % byte)


def _spellings(text: str) -> Iterator[bytes]:
    """Every form of `text` that is masked, each usable anywhere in a line; most are equal for a plain value."""
    import json
    raw = text.encode("utf-8", "surrogateescape")
    yield raw
    yield from _base64_spellings(raw)
    yield from _url_spellings(raw)
    yield from _shell_spellings(raw)
    for ascii_only in (True, False):
        coded = json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogateescape")
        yield coded
        yield coded.replace(b"/", b"\\/")                                                  # PHP
        yield coded.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")  # Go
    for shown in (repr(text)[1:-1], ascii(text)[1:-1], repr(raw)[2:-1]):
        shown = shown.encode("utf-8", "surrogateescape")
        yield shown
        yield shown.replace(b"\\'", b"'")       # which quote is escaped depends on what stands around it
        yield shown.replace(b"\\'", b"'").replace(b"'", b"\\'")
    for double, single in ((b'"', b"'"), (b"&quot;", b"'"), (b"&quot;", b"&#x27;"), (b"&quot;", b"&#39;"),
                           (b"&#34;", b"&#39;"), (b"&quot;", b"&apos;")):
        table = {38: b"&amp;", 60: b"&lt;", 62: b"&gt;"}
        yield _respelled(raw, table, table.get).replace(b'"', double).replace(b"'", single)
    for digits in (raw.hex(), raw.hex().upper()):
        yield digits.encode()
        yield from (digits[i:i + 60].encode() for i in range(0, len(digits), 60))          # xxd -p


class Redactor:
    """Hides the values of an environment: each place where one stands, in any usual spelling, reads `[hidden:NAME]`.

    Call it with a string, `mask()` bytes, or push pieces through a `stream()`; all three agree, wherever the pieces are
    cut. Values of several lines are hidden as a whole and by each line of 8 or more characters; blanks around a value
    or line do not count. Values of 4 to 7 characters are hidden as whole words, as they are, in no other spelling;
    those with fewer are listed in `unmaskable`. `longest` is how many bytes a stream may hold back. Names in `skip` are
    left alone. Where the same value has several names the first is shown; side by side, one name is shown once.
    """

    def __init__(self, env: Mapping[str, str], skip: Iterable[str] = ()) -> None:
        """Costs about 50 microseconds for a usual value, so some milliseconds for an environment of 50."""
        from sys import byteorder
        lifted = frozenset(skip)
        self.unmaskable: list[str] = []
        names: dict[bytes, str] = {}
        words: dict[bytes, str] = {}
        for name, value in env.items():
            value = value.strip()
            if name in lifted or not value:
                continue
            if len(value) < _SHORTEST_VALUE:
                self.unmaskable.append(name)
            elif len(value) < _SHORTEST_FORM:
                words.setdefault(value.encode("utf-8", "surrogateescape"), name)
            else:
                for form in _forms(value):
                    names.setdefault(form, name)
        self._masks = {name: b"[hidden:%s]" % name.encode("utf-8", "replace") for name in env}
        self._words = words
        self._forms = sorted(names)
        self._names = [names[form] for form in self._forms]
        self._shorter = _nested(self._forms)
        # Where in the first bytes of a form (0 to 3) a four-byte word can stand.
        self._heads: dict[int, set[int]] = {}
        for form in self._forms:
            for offset in range(4):
                self._heads.setdefault(int.from_bytes(form[offset:offset + 4], byteorder), set()).add(offset)
        # With 7 bytes a beginning holds one of those words; shorter ones count at the end of a buffer only.
        self._starts = {form[:length] for form in self._forms for length in range(1, 8)}
        self._word_starts = {word[:length] for word in words for length in range(1, len(word) + 1)}
        self._reach = max(map(len, self._word_starts | self._starts), default=0)
        self.longest: int = max(map(len, [*self._forms, *words]), default=0)

    def __call__(self, text: str) -> str:
        """`text` with every value masked."""
        try:
            return self.mask(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        except UnicodeEncodeError:      # half a surrogate pair, which no value can hold: what stands between is masked
            import re
            return re.sub("[^\ud800-\udc7f\udd00-\udfff]+", lambda part: self(part[0]), text)

    def mask(self, data: bytes) -> bytes:
        """`data` with every value masked."""
        stream = self.stream()
        return stream.feed(data) + stream.flush()

    def stream(self) -> _Stream:
        """A new stream: `feed(data)` returns what may go out by now, `flush()` the rest."""
        return _Stream(self)

    def _look_up(self, seen: bytes) -> tuple[int, bool]:
        """The longest form that `seen` begins with (or -1), and whether a longer one begins with all of `seen`."""
        from bisect import bisect_right
        after = bisect_right(self._forms, seen)
        longer = after < len(self._forms) and self._forms[after].startswith(seen)
        found = after - 1
        while found >= 0 and not seen.startswith(self._forms[found]):
            found = self._shorter[found]
        return found, longer

    def _find(self, data: bytes, last: bool) -> tuple[list[tuple[int, int, str]], int]:
        """Places in `data` as (start, -end, name), and where what must be held back begins: every place before that is
        final. The first byte of `data` is there only for what it says about the second."""
        from itertools import compress
        places, held = [], len(data)
        heads, longest = self._heads, self.longest
        fours = memoryview(data)[:len(data) & ~3].cast("I")
        for index in compress(range(len(fours)), map(heads.__contains__, fours)):
            if index * 4 - 3 > held:
                break       # nothing behind it is decided before more has come
            for offset in heads[fours[index]]:
                start = index * 4 - offset
                if start > 0 and data[start:start + 7] in self._starts:
                    seen = data[start:start + longest]
                    found, longer = self._look_up(seen)
                    if longer and start + len(seen) == len(data):
                        held = min(held, start)
                    if found >= 0:
                        places.append((start, -start - len(self._forms[found]), self._names[found]))
        for word, name in self._words.items():
            start = data.find(word, 1)
            while start > 0:
                if _is_border(data, start) and _is_border(data, start + len(word)):
                    places.append((start, -start - len(word), name))
                start = data.find(word, start + 1)
        for start in range(max(1, len(data) - self._reach), held):
            rest = data[start:]
            if rest in self._starts or rest in self._word_starts and _is_border(data, start):
                held = start
                break
        return sorted(places), len(data) if last else held


class _Stream:
    """One stream's state: what is held back, behind one byte that is already out, and how much of it is masked."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._data = b"\n"
        self._done = 1          # what stands before this is out, as it was or as a mask
        self._name = ""         # whose mask was the last that went out, if nothing went out since

    def feed(self, data: bytes) -> bytes:
        """Takes the next piece, returns all that no later piece can make part of a value."""
        return b"".join([self._step(data[i:i + _MASK_STEP]) for i in range(0, len(data), _MASK_STEP)])

    def flush(self) -> bytes:
        """The end of the stream has come: returns what was held back. The stream is then as new."""
        rest = self._step(b"", last=True)
        self.__init__(self._redactor)
        return rest

    def _step(self, piece: bytes, last: bool = False) -> bytes:
        data = self._data + piece
        places, held = self._redactor._find(data, last)
        out = []
        for start, end, name in places:
            if start >= held:
                break
            if start > self._done:
                out.append(data[self._done:start])
                self._done, self._name = start, ""
            if -end > self._done:
                if name != self._name:
                    out.append(self._redactor._masks[name])
                self._done, self._name = -end, name
        if held > self._done:
            out.append(data[self._done:held])
            self._done, self._name = held, ""
        self._data = data[held - 1:]
        self._done -= held - 1
        return b"".join(out)


def _is_border(data: bytes, at: int) -> bool:
    """Whether no word goes on from the byte before `at` to the one there."""
    return at >= len(data) or not (data[at - 1] in _WORD_BYTES and data[at] in _WORD_BYTES)


def _forms(value: str) -> Iterator[bytes]:
    """All that is looked for on behalf of one value of 8 or more characters, none of it longer than _LONGEST_FORM."""
    lines = [line.strip() for line in value.splitlines()]
    for text in dict.fromkeys([value, *lines]):
        if len(text) < _SHORTEST_FORM:
            continue
        for form in dict.fromkeys(_spellings(text)):
            if len(form) >= _SHORTEST_FORM:
                yield from (form[i:i + _LONGEST_FORM] for i in range(0, len(form) - _LONGEST_FORM, _LONGEST_FORM))
                yield form[-_LONGEST_FORM:]


def _nested(forms: list[bytes]) -> list[int]:
    """For each of the sorted `forms` the index of the longest other one that it begins with, or -1."""
    shorter, around = [], []
    for index, form in enumerate(forms):
        while around and not form.startswith(forms[around[-1]]):
            around.pop()
        shorter.append(around[-1] if around else -1)
        around.append(index)
    return shorter
''')


# ==== masked launch ===================================================================================================
# Owns the one case where the command is a child: its stdout and stderr run through pipes that we mask. To everybody
# else the two of us should look like one process, as after an exec.
#
# Signals. The child shares our process group, so what is sent to the group (Ctrl-C and Ctrl-Z, a hang-up, `kill -TERM
# -PGID`, a manager that ends all of a cgroup) reaches it without us, and what is sent to our pid alone reaches it
# only if we hand it on. Nothing that comes with a signal tells the two apart: `kill` of a group and of a pid look the
# same, and a child that handled a signal shows no trace of it. So a lookout stands in the group, and a signal that
# came there too was not meant for us alone. It is an idle `sh`: it holds no value, and a `pkill -f` that means us
# does not hit it. The limits: a signal has 0.1 s to get to everybody, or the child sees it twice, and so it does when
# the same one is sent to the group twice within a millisecond; whoever signals us and the lookout but not the child
# (`kill` with both pids) is not understood.
#
# Stopping. When the child stops we stop as well, by a SIGTSTP of our own and only under a terminal, so that a shell
# sees it; a SIGCONT that did not reach the child is handed on.
#
# Over its length in the map of rooms because of the signals: the lookout and what follows from stopping are half of
# it.

_fold("masked launch", r'''
_unfold("redaction")

_HANDED_ON = frozenset((
    _signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGALRM,
    _signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU))
_GRACE = (0, 0.01, 0.03, 0.06)      # seconds between questions whether a signal has reached the others as well


def _redactor(snapshot: Dict[str, str], lifted: List[str]) -> Redactor:
    """For all values of the session, also those that the command does not get: it may have them by other ways."""
    unknown = [name for name in lifted if name not in snapshot]
    if unknown and snapshot:
        raise HotenvError(EXIT_USAGE, f"--no-mask: the session has no {_shown(unknown[0])}")
    redactor = Redactor(snapshot, lifted)
    if redactor.unmaskable:
        _say(f"too short to mask: {', '.join(map(_shown, redactor.unmaskable))}")
    return redactor


def _run_masked(become: Callable[[], None], redactor: Redactor) -> int:
    """Has a child `become` the command and masks its stdout and stderr; returns its exit status, or dies as it did.

    A stream that is a terminal is handed over as it is, with a note; if both are, the command takes our place.
    """
    routes = _masked_routes()
    if not routes:
        become()
    blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    inherited, wake = _catch_signals()
    channels, ends = [], {}
    for targets in routes:
        source, end = _high_pipe()
        channels.append(_Channel(source, targets[0], redactor.stream()))
        ends.update(dict.fromkeys(targets, end))
    lookout = _Lookout()  # before the child: where this fork fails, nothing has been run
    try:
        child, report = _start_child(become, ends, inherited, blocked)
    except OSError:
        lookout.dismiss()
        raise
    for end in set(ends.values()):
        os.close(end)
    command = _Command(child, lookout)
    try:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked - _HANDED_ON - {_signal.SIGCHLD, _signal.SIGCONT})
        _harden()               # after the forks: a core of ours would hold the values
        with open(report, "rb") as failure:
            reason = failure.read()
        if reason:
            os.waitpid(child, 0)
            raise HotenvError(reason[0], reason[1:].decode("utf-8", "surrogateescape"))
        status = _attend(command, wake, channels)
    finally:
        command.lookout.dismiss()
    for channel in channels:
        if channel.error:
            raise HotenvError(EXIT_SYSTEM, f"cannot write the command's output: {channel.error.strerror}")
    return _die_of(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _masked_routes() -> list[list[int]]:
    """Which of our descriptors 1 and 2 are masked: those that share a file in one list, so that their order holds."""
    routes: dict[tuple[int, int], list[int]] = {}
    terminals = []
    for target, name in ((1, "stdout"), (2, "stderr")):
        try:
            about = os.fstat(target)
        except OSError:
            continue        # it is closed, and the child shall have it closed
        if os.isatty(target):
            terminals.append(name)
        else:
            routes.setdefault((about.st_dev, about.st_ino), []).append(target)
    if terminals:
        verb = "is a terminal" if len(terminals) == 1 else "are terminals"
        try:
            os.write(2, f"hotenv: {' and '.join(terminals)} {verb}: not masked\n".encode())
        except OSError:
            pass            # nobody is there to read it
    return list(routes.values())


def _high_pipe() -> tuple[int, int]:
    """A pipe, closed on exec, that is none of the descriptors 0 to 2. Two of those at most are closed when we mask, and
    its first ends are in their places then."""
    low = os.pipe()
    high = os.dup(low[0]), os.dup(low[1])
    for end in low:
        os.close(end)
    return high


def _catch_signals() -> tuple[dict, int]:
    """From now on each signal that concerns the child is a byte to be read. Returns how they were handled before; what
    was ignored stays so, as it would through an exec."""
    inherited = {}
    for signum in _HANDED_ON | {_signal.SIGCHLD, _signal.SIGCONT}:
        ignored = _signal.getsignal(signum) == _signal.SIG_IGN
        inherited[signum] = _signal.SIG_IGN if ignored else _signal.SIG_DFL
        if not ignored or signum == _signal.SIGCHLD:        # an ignored SIGCHLD would lose the exit status
            _signal.signal(signum, lambda *_: None)
    wake, end = _high_pipe()
    os.set_blocking(wake, False)
    os.set_blocking(end, False)
    _signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    return inherited, wake


def _start_child(become: Callable[[], None], ends: dict, inherited: dict, blocked: set) -> tuple[int, int]:
    """Forks and executes. Returns the pid, and a descriptor to read a failure from: its exit code and reason."""
    report, failed = _high_pipe()
    child = os.fork()
    if child:
        os.close(failed)
        return child, report
    try:
        for target, end in ends.items():
            os.dup2(end, target)
        for signum, handling in inherited.items():
            _signal.signal(signum, handling)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
        become()
    except HotenvError as error:
        os.write(failed, bytes((error.code,)) + str(error).encode("utf-8", "surrogateescape"))
    finally:
        os._exit(EXIT_SYSTEM)


class _Lookout:
    """The idle process in our group that tells a signal to the group from one to us: it says which came there."""

    def __init__(self) -> None:
        questions, self._ask = _high_pipe()         # when we are gone, it reads the end of them and goes too
        self._answers, output = _high_pipe()
        self._said = b""
        traps = "".join(f"trap 'echo {signum:d}; got=1' {signum:d};" for signum in _HANDED_ON)
        # A signal makes `read` fail in some shells, as the end of all questions does; in others its trap waits for one.
        script = traps + "while got=; do if read x; then echo .; elif [ ! $got ]; then exit; fi; done"
        blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        self._pid = os.fork()
        if not self._pid:
            try:
                for target, end in enumerate((questions, output, os.open(os.devnull, os.O_WRONLY))):
                    os.dup2(end, target)
                for signum in _HANDED_ON:
                    _signal.signal(signum, _signal.SIG_DFL)
                _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
                os.execve("/bin/sh", ["sh", "-c", script], {})
            finally:
                os._exit(0)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
        os.close(questions)
        os.close(output)

    def hits(self) -> set[int]:
        """The signals that came there since the last question. The first may have killed it before its traps stood."""
        from select import POLLIN, poll
        answers = poll()
        answers.register(self._answers, POLLIN)
        try:
            os.write(self._ask, b"\n")
            while b"." not in self._said:
                if not answers.poll(1000):
                    os.kill(self._pid, _signal.SIGCONT)     # somebody stopped it
                    continue
                more = os.read(self._answers, 4096)
                if not more:
                    raise BrokenPipeError
                self._said += more
        except BrokenPipeError:
            _, status = os.waitpid(self._pid, 0)
            os.close(self._ask)
            os.close(self._answers)
            self.__init__()
            return {os.WTERMSIG(status)}
        came, _, self._said = self._said.partition(b".\n")
        return {int(signum) for signum in came.split()}

    def dismiss(self) -> None:
        """It has gone when this returns."""
        os.kill(self._pid, _signal.SIGKILL)
        os.waitpid(self._pid, 0)


class _Channel:
    """One pipe from the child to one of our descriptors. It reads only when all that was read before is written."""

    def __init__(self, source: int, target: int, stream: _Stream) -> None:
        from select import PIPE_BUF
        self.source, self.target, self._stream = source, target, stream
        self.pending = memoryview(b"")
        self.error: OSError | None = None
        self._left: int | None = None   # bytes that were in the pipe when the child had ended
        # So much a pipe takes without blocking once it has said that it can be written.
        self._portion = _MASK_STEP if stat.S_ISREG(os.fstat(target).st_mode) else PIPE_BUF

    def expect_no_more(self) -> None:
        """The child has ended: what is in the pipe now is the rest, whoever else still holds its other end."""
        if self.source >= 0:
            from fcntl import ioctl
            from termios import FIONREAD
            self._left = int.from_bytes(ioctl(self.source, FIONREAD, bytes(4)), sys.byteorder)
            if not self._left:
                self.pending = memoryview(bytes(self.pending) + self._stream.flush())
                self._close()

    def read(self) -> None:
        """Takes what is there, masks it and leaves it pending."""
        raw = os.read(self.source, _MASK_STEP if self._left is None else min(_MASK_STEP, self._left))
        if self._left is not None:
            self._left -= len(raw)
        masked = self._stream.feed(raw)
        if not raw or self._left == 0:
            masked += self._stream.flush()
            self._close()
        self.pending = memoryview(masked)

    def write(self) -> None:
        """Writes some of what is pending. When that cannot be, the pipe is closed: the child learns it as we did."""
        try:
            self.pending = self.pending[os.write(self.target, self.pending[:self._portion]):]
        except BlockingIOError:
            pass            # somebody else made the descriptor non-blocking
        except OSError as error:
            self.pending = memoryview(b"")
            self._close()
            if error.errno != errno.EPIPE:
                self.error = error

    def _close(self) -> None:
        if self.source >= 0:
            os.close(self.source)
            self.source = -1


class _Command:
    """The child, and what the outside does to it by way of us."""

    def __init__(self, pid: int, lookout: _Lookout) -> None:
        self.pid, self.stopped, self.lookout = pid, False, lookout
        self.status: int | None = None      # its wait status, once it has ended
        self._shared: set[int] = set()      # what was sent to all of us, and has not yet come here

    def hand_on(self, caught: set[int]) -> None:
        """Sends the child those of the caught signals that did not reach it anyway."""
        if _signal.SIGCONT in caught:
            for patience in _GRACE if self.stopped else ():
                time.sleep(patience)
                if self._follow():
                    break
            else:
                os.kill(self.pid, _signal.SIGCONT)
        due = caught & _HANDED_ON
        if due and self._has_left():
            for signum in due:
                os.kill(self.pid, signum)
            return
        for patience in _GRACE if due else ():
            time.sleep(patience)
            self._shared |= self.lookout.hits()
            due, self._shared = due - self._shared, self._shared - due
            if not due:
                return
        for signum in due:
            os.kill(self.pid, signum)

    def _has_left(self) -> bool:
        """Whether the child has a group of its own, as `timeout` makes: what is sent to ours does not reach it."""
        try:
            return os.getpgid(self.pid) != os.getpgrp()
        except ProcessLookupError:
            return False

    def has_stopped(self) -> bool:
        """Asks what has become of the child since; whether it has just stopped."""
        before = self.stopped
        while self.status is None and self._follow():
            pass
        return self.stopped and not before

    def _follow(self) -> bool:
        changed, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if changed:
            self.stopped = os.WIFSTOPPED(status)
            if not self.stopped and not os.WIFCONTINUED(status):
                self.status = status
        return bool(changed)


def _attend(command: _Command, wake: int, channels: list[_Channel]) -> int:
    """Carries output and signals until the child has ended and all it wrote is out; returns its wait status."""
    while command.status is None or any(channel.pending or channel.source >= 0 for channel in channels):
        if wake not in _carry(channels, wake):
            continue
        caught = set(os.read(wake, 4096))
        if command.status is not None:
            continue
        command.hand_on(caught)
        if command.has_stopped():
            _stop_too(channels, wake)
        elif command.status is not None:
            for channel in channels:
                channel.expect_no_more()
            for signum in _HANDED_ON:       # from here on they are meant for us, who may wait for a slow reader
                if _signal.getsignal(signum) != _signal.SIG_IGN:
                    _signal.signal(signum, _signal.SIG_DFL)
    return command.status


def _carry(channels: list[_Channel], wake: int, patience: int | None = None) -> list[int]:
    """Waits until something can be read or written or a signal came; reads or writes it. Returns what was ready."""
    from select import POLLIN, POLLOUT, poll
    doors, poller = {}, poll()
    for channel in channels:
        if channel.pending:
            doors[channel.target] = channel.write
            poller.register(channel.target, POLLOUT)
        elif channel.source >= 0:
            doors[channel.source] = channel.read
            poller.register(channel.source, POLLIN)
    poller.register(wake, POLLIN)
    ready = [descriptor for descriptor, _ in poller.poll(patience)]
    for descriptor in ready:
        if descriptor != wake:
            doors[descriptor]()
    return ready


def _stop_too(channels: list[_Channel], wake: int) -> None:
    """The child has stopped: what it wrote goes out, then we stop, until somebody continues us."""
    for _ in range(1000):               # a bound, for what another process may write without end
        if not set(_carry(channels, wake, 0)) - {wake}:
            break
    try:
        os.close(os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return                          # no terminal, no shell that would continue us
    handler = _signal.signal(_signal.SIGTSTP, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGTSTP)
    _signal.signal(_signal.SIGTSTP, handler)
''')


# ==== hermetic ========================================================================================================
# Owns the guards: what a guarded Python program may not do, and how its children come to be guarded too. The text of
# its four folds is written out verbatim and runs in the target's interpreter (CPython 3.8 or later), given nothing but
# errno, os, stat and sys: it calls no other room, and only "hermetic host" calls it.
#
# One audit hook (PEP 578) decides; raising from it aborts the action. Patches stand where CPython raises no event, or
# one that comes too late. Whatever goes wrong in a check closes: it never lets through. All this is for programs that
# make mistakes, not for ones that mean harm. What stands above "part 1" is compiled at the start of every child and so
# is short; the rest is compiled there when first needed, and no .pyc is read, for nobody could tell a planted one. The
# room is over its budget because it is whole: what a child needs in order to guard its own children is in it too.

_fold("hermetic", r'''
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = frozenset(
    "open import sqlite3.connect subprocess.Popen pty.spawn ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle "
    "ctypes.call_function ctypes.cdata ctypes.cdata/buffer ctypes.string_at socket.connect socket.bind socket.sendto "
    "socket.sendmsg socket.getaddrinfo socket.gethostbyname socket.gethostbyaddr socket.getnameinfo os.chflags "
    "os.chmod os.chown os.exec os.fork os.forkpty os.link os.listdir os.mkdir os.posix_spawn os.remove os.removexattr "
    "os.rename os.rmdir os.scandir os.setxattr os.spawn os.symlink os.system os.truncate os.utime".split())
_WATCHED = frozenset(  # modules that are patched once they are there, or refused
    "_socket _ssl _posixsubprocess readline _gdbm _dbm _sqlite3 _interpreters _xxsubinterpreters uvloop ctypes _ctypes "
    "cffi _cffi_backend".split())
_leave = os._exit  # later it is ours
_ident = sys.modules["_thread"].get_ident


class _Here:
    """What this interpreter knows of its guards."""

    text = home = block = ""  # HOTENV_GUARDS; the directory that PYTHONPATH leads to; the source of this room
    options = []      # one dict for each set of guards: hermetic within hermetic has several, and all must agree
    guards = None     # their _Guard objects, once the second half is loaded
    prefixes = ()     # where the interpreter reads its own files
    root = ""         # the directory that may be read, where it is one and in plain spelling
    limited = imports = False  # is reading limited to some directories; are native extensions refused
    alive = False     # has the hook answered
    born = {}         # the environment at the start: a program may take its secrets out of os.environ
    blocked = False   # was anything, in this process: decides its exit status
    busy = set()      # threads that do the guards' own work
    trace = None      # a duplicate of stderr, and its status: pytest redirects 2, daemons close everything
    target = ()       # the directory of the target
    sockets = None    # the module _socket
    told = None       # a descriptor on which a subinterpreter leaves a mark when something was blocked there
    inner = False     # is this a subinterpreter


def _hook(event, args):
    """Let pass at once what no guard minds; about the rest, the second half decides."""
    if event not in _EVENTS:
        if event == "hotenv.alive":
            _Here.alive = True
        elif event == "cpython.PyInterpreterState_Clear" and _Here.guards is not None and not _Here.inner:
            _end()
        return
    if event in ("os.listdir", "os.scandir") or event == "open" and not args[2] & _WRITE_FLAGS and (
            args[1] is None or "r" in args[1] and "+" not in args[1]):
        if not _Here.limited:
            return
        # A link that lies below the interpreter's own prefixes is trusted: that spares every import a realpath. What is
        # below the read root is let pass here by the test of the second half: 6 ms for a program that reads no more.
        path = args[0]
        if isinstance(path, str) and (path.startswith(_Here.prefixes) and "/.." not in path
                                      or _Here.root and (os.path.realpath(path) + "/").startswith(_Here.root)):
            return
    elif event == "import" and args[0].partition(".")[0] not in _WATCHED and not (_Here.imports and args[1]):
        return
    if _ident() not in _Here.busy:
        for guard in _guards():
            guard.decide(event, args)


def _guards():
    if _Here.guards is None:
        outermost = _ident() not in _Here.busy
        _Here.busy.add(_ident())
        try:
            if "_trace" not in globals():  # the last name there: another thread may be in the middle of it
                _load(3)
            _load_guards()
        finally:
            if outermost:
                _Here.busy.discard(_ident())
    return _Here.guards


def _load(part):
    parts = _Here.block.split(b"\n# -- part")
    above = b"\n" * b"".join(parts[:part]).count(b"\n") + b"\n" * part  # so that line numbers are right
    exec(compile(above + b"#" + parts[part], _Here.home + "/guards.py", "exec"), globals())


def _install(text, home, block):
    """Put the guards of `text`, a JSON list, in force here and in whatever Python is started from here."""
    if text[:2] != "[{" or text[-2:] != "}]":
        raise RuntimeError("HOTENV_GUARDS is damaged")
    _Here.text, _Here.home, _Here.block, _Here.born = text, home, block, dict(os.environ)
    # Parsing JSON would cost more than all else here. Inside its strings a quote has a backslash, so this is safe.
    _Here.imports, _Here.limited = '"imports": true' in text, text.count('"read": "') > text.count('"read": "/"')
    roots = text.split('"read": "')[1:]
    if len(roots) == 1 and "}, {" not in text and "\\" not in roots[0]:
        _Here.root = roots[0].partition('"')[0].rstrip("/") + "/"
    _Here.prefixes = tuple({path + "/" for path in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix,
                                                    os.path.dirname(os.__file__), home) if path.strip("/")})
    sys.dont_write_bytecode |= '"readonly": true' in text
    if '"trace": true' in text:
        try:
            descriptor = os.dup(2)
            _Here.trace = (descriptor, os.fstat(descriptor))
        except OSError:
            pass  # stderr is closed
    for name in ("mkfifo", "mknod", "execve", "posix_spawn", "posix_spawnp", "open", "_exit", "_execvpe"):
        _stand_in(name)
    for name in ("exec_dynamic", "exec_builtin"):
        original = getattr(sys.modules["_imp"], name)
        setattr(sys.modules["_imp"], name, _Function(_executing(original), original))
    sys.addaudithook(_hook)
    sys.audit("hotenv.alive")
    if not _Here.alive:  # an older hook may veto a new one, and CPython says nothing
        raise RuntimeError("another audit hook refuses the guards")
    if not _WATCHED.isdisjoint(sys.modules):
        _guards()
    sys._hotenv = globals()


class _Function:
    """In place of a builtin function and, like it, no method when it is the attribute of a class (as in pathlib)."""

    def __init__(self, call, original):
        self.call, self.__name__, self.__module__ = call, original.__name__, original.__module__

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)


def _executing(original):
    """How every import of a native module ends, also one that raises no event, and that of a second copy."""
    def call(module, names=globals()):
        status = original(module)
        if module.__name__ in _WATCHED and _ident() not in _Here.busy:
            _guards()
            names["_patch_executed"](module)
        return status
    return call


def _stand_in(name):
    """Replace a function of os by one of the second half, `_call_` and its name, which is given the original."""
    original = getattr(os, name)

    def call(*args, names=globals(), **kwargs):
        _guards()
        return names["_call_" + name](original, *args, **kwargs)
    function = _Function(call, original)
    for functions in (os.supports_dir_fd, os.supports_fd):
        if original in functions:
            functions.add(function)
    for module in (os, sys.modules["posix"]):
        if hasattr(module, name):
            setattr(module, name, function)


def _hand_over():
    """Take our directory off sys.path, and run the sitecustomize that would have run without us."""
    sys.path[:] = [path for path in sys.path if path != _Here.home]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)
''')


# ---- part 1: becoming the target

_fold("hermetic target", r'''
def _become(kind, argv):
    """Run a path, a module, a callable or the text after -c as `__main__`; argv[0] names it, the rest are its own."""
    target = argv[0]
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={})
    if sys.path[:1] == [os.path.dirname(os.path.realpath(sys.argv[0]))]:
        del sys.path[0]  # hotenv's own directory, or the loader's
    sys.argv[:] = argv[:1] + argv[2:] if kind == "code" else argv
    first = os.path.dirname(os.path.realpath(target)) if kind == "path" else os.getcwd()
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path.insert(0, first)
    _Here.target = (first + "/",)
    if kind == "path" and not os.path.isdir(target):
        import io
        main.__dict__.update(__file__=target, __cached__=None)
        with io.open_code(os.path.abspath(target)) as script:
            source = script.read()
        if b"\0" not in source:
            return exec(compile(source, target, "exec", dont_inherit=True), main.__dict__)
        sys.path.remove(first)
    _become_other(kind, argv, main.__dict__)


def _become_other(kind, argv, namespace):
    import importlib
    import runpy
    target = argv[0]
    if kind == "code":
        return exec(compile(argv[1], "<string>", "exec", dont_inherit=True), namespace)
    if kind == "path":  # a directory, or a zip file, with a __main__.py
        sys.path.insert(0, target)
        return runpy._run_module_as_main("__main__", False)
    if kind == "call":
        target, _, attributes = target.partition(":")
        found = importlib.import_module(target)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
        if callable(found):
            sys.exit(found())
    runpy._run_module_as_main(target)
''')


# ---- part 2: what makes a Python that is started guard itself; it is done anew before each start

_fold("hermetic files", r'''
_LOADER = """\
# Written by hotenv, compared at every start. When site imports it, it guards this interpreter; run as a script it then
# becomes the target: for a Python that ignores PYTHONPATH, and because a missing file is then an error, no open door.
import errno, os, stat, sys
try:
    if sys.version_info < (3, 8) or sys.implementation.name != "cpython":
        raise RuntimeError("it is no CPython 3.8 or later")
    _names = getattr(sys, "_hotenv", None)
    if _names is None:
        _home = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(_home, "guards.py"), "rb") as _file:
            _block = _file.read()
        _names = {"__name__": "hotenv_guards", "errno": errno, "os": os, "stat": stat, "sys": sys}
        exec(compile(_block.partition(b"\\n# -- part")[0], os.path.join(_home, "guards.py"), "exec"), _names)
        _names["_install"](os.environ["HOTENV_GUARDS"], _home, _block)
except BaseException:
    os.write(2, ("hotenv: cannot guard %s: %s\\n" % (sys.executable, sys.exc_info()[1])).encode("ascii", "replace"))
    os._exit(1)
if __name__ == "__main__":
    _names["_load"](1)
    _names["_become"](sys.argv[1], sys.argv[2:])
elif __name__ == "sitecustomize":
    _names["_hand_over"]()
"""


def _carried(env, guards, home):
    """The two variables that guard a child. Guards that add to ours stay as they are."""
    text = env.get("HOTENV_GUARDS", "")
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path != home]
    if paths == [""]:  # an empty entry is the current directory, before the standard library
        paths = []
    return {"HOTENV_GUARDS": text if text.startswith(guards[:-1] + ",") else guards,
            "PYTHONPATH": os.pathsep.join([home] + paths)}


def _write_block(home, block):
    """Leave in the directory `home` this room, its loader, a file where a cache would be, and nothing else."""
    wanted = {"guards.py": block, "sitecustomize.py": _LOADER.encode(), "__pycache__": b""}  # so no .pyc is ever read
    parent = _own_directory(os.path.dirname(home))
    try:
        directory = _own_directory(home)
        try:
            for name in os.listdir(directory):
                if name not in wanted or stat.S_ISDIR(os.lstat(f"{home}/{name}").st_mode):
                    _remove(f"{home}/{name}")
            for name, content in wanted.items():
                if _content(directory, name, len(content)) != content:
                    _write_file(parent, directory, name, content)
        finally:
            os.close(directory)
    finally:
        os.close(parent)


def _own_directory(path):
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        os.mkdir(path, 0o700)
        descriptor = os.open(path, flags)
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        os.close(descriptor)
        raise RuntimeError(f"{path} is not a directory of ours alone")
    return descriptor


def _remove(path):
    try:
        os.unlink(path)
    except (IsADirectoryError, PermissionError):
        import shutil
        shutil.rmtree(path)


def _content(directory, name, size):
    """What a regular file of ours holds, up to one byte more than it should; None for anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
        return os.read(descriptor, size + 1) if ours else None
    finally:
        os.close(descriptor)


def _write_file(parent, directory, name, content):
    """Put a whole file in place at once. It is written beside the directory: another start would tidy it away."""
    private = f".guards-{os.getpid()}-{sys.modules['_thread'].get_ident()}"
    descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=parent)
    try:
        while content:
            content = content[os.write(descriptor, content):]
        os.replace(private, name, src_dir_fd=parent, dst_dir_fd=directory)
    except BaseException:
        os.unlink(private, dir_fd=parent)
        raise
    finally:
        os.close(descriptor)
''')


# ---- part 3: loaded when a program first does what a guard may mind

_fold("hermetic guards", r'''
_METADATA = (  # where clouds hand out credentials: reached neither by a suffix nor by what an allowed name resolves to
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "metadata.google.internal", "metadata.goog", "metadata",
    "instance-data", "instance-data.ec2.internal")
_DEVICES = ("/dev/null/", "/dev/zero/", "/dev/full/", "/dev/tty/", "/dev/ptmx/", "/dev/pts/")
_READABLE = _DEVICES + (  # what the standard library reads on its own; none of it is anybody's
    "/dev/random/", "/dev/urandom/", "/etc/localtime/", "/etc/mime.types/", "/etc/os-release/", "/usr/lib/os-release/",
    "/usr/share/zoneinfo/", "/proc/cpuinfo/", "/proc/meminfo/", "/proc/stat/")
_CHANGES = {  # event -> for each path in it: its index, that of its directory descriptor, is a final link followed
    "os.chflags": ((0, 9, True),), "os.chmod": ((0, 2, True),), "os.chown": ((0, 3, True),),
    "os.link": ((0, 2, True), (1, 3, False)), "os.mkdir": ((0, 2, False),), "os.remove": ((0, 1, False),),
    "os.removexattr": ((0, 9, True),), "os.rename": ((0, 2, False), (1, 3, False)), "os.rmdir": ((0, 1, False),),
    "os.setxattr": ((0, 9, True),), "os.symlink": ((1, 2, False),), "os.truncate": ((0, 9, True),),
    "os.utime": ((0, 3, True),)}
_PROCESSES = {  # event -> index of what is shown as argv
    "subprocess.Popen": 1, "os.system": 0, "os.exec": 1, "os.posix_spawn": 1, "os.spawn": 2, "os.fork": 9,
    "os.forkpty": 9, "pty.spawn": 0}
_SECRET = (r"(?i)((?<![\w-])[\w-]*(?:passw|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key"
           r"|credential|cookie|auth)[\w-]*)")


class _Busy:
    """What this thread does meanwhile is the guards' own work."""

    def __enter__(self):
        self.outermost = _ident() not in _Here.busy
        _Here.busy.add(_ident())

    def __exit__(self, *_):
        if self.outermost:
            _Here.busy.discard(_ident())


class _Blocked(PermissionError):
    """What a guarded action raises: a program that tolerates a failed write goes on."""

    def __reduce__(self):  # a worker sends it to a parent that may not know this class
        return PermissionError, self.args


class _BlockedImport(ImportError):
    """What a refused import raises: a program that can do without goes on."""


class _Guard:
    """One set of guards."""

    def __init__(self, options):
        self.network, self.processes, self.imports, self.readonly, self.localhost = (
            options.get(name) for name in ("network", "subprocess", "imports", "readonly", "localhost"))
        self.domains = set(options.get("domains", ()))
        self.metadata = {_packed(name) for name in _METADATA if self.network} - {None}
        self.known = {_packed(name) for name in self.domains} - {None}  # addresses that may be reached
        self.sealed, self.writable = _roots(options.get("sealed", ())), _roots(options.get("write", ()))
        self.read_root = options.get("read")
        self.readable = None if self.read_root in (None, "/") else _roots(
            [self.read_root, options.get("program"), os.path.dirname(_Here.home), sys.pycache_prefix,
             *_Here.prefixes, *map(str, sys.path)])
        self.readable = self.readable and self.readable + self.writable
        self.native = [path for path in sys.path if path.startswith(_Here.prefixes) and path.endswith("/lib-dynload")]
        self.options = options

    def decide(self, event, args):
        try:
            if event in _CHANGES:
                self.on_change(event, args)
            elif event in _PROCESSES:
                self.on_process(event, args)
            else:
                getattr(self, "on_" + event.partition("/")[0].replace(".", "_"), self.on_ctypes)(*args)
        except (_Blocked, _BlockedImport):
            raise
        except Exception as error:  # a bug of ours, or an event of a later Python that looks different
            self.block(event, "guard-failure", error=f"{type(error).__name__}")

    def block(self, action, reason, quiet=False, hint="", **details):
        """Raise. It counts, unless the program only asks in passing and has another way (`quiet`)."""
        with _Busy():
            if not quiet:
                _Here.blocked = True
                if _Here.inner:
                    os.set_inheritable(_Here.told, True)
            try:
                line = _caller(action) + "".join(f" {key}={_masked(value)}" for key, value in details.items())
            except Exception:  # at the end of the interpreter nothing can be imported any more
                line = action
            line = f"{line if len(line) < 2000 else line[:1990] + '...'} reason={reason}"
            _trace(f"[hermetic] blocked {line}\n")
        if "module" in details:
            raise _BlockedImport(f"blocked by hotenv: {line}", name=details["module"])
        raise _Blocked(errno.EACCES, f"blocked by hotenv: {line}{hint}")

    # network

    def may_reach(self, host, connecting=True):
        """Is this host, a name or an address, allowed? To resolve or bind this machine itself always is."""
        name = _host_name(host)
        address = _packed(name)
        if name in _METADATA or address in self.metadata:
            return name in self.domains or address in self.known
        if address is None:
            local = name == "localhost" or name.endswith(".localhost")
        else:
            local = address == bytes(15) + b"\1" or len(address) == 4 and address[0] == 127
        if local and (self.localhost or not connecting):
            return True
        if address is not None:
            return address in self.known
        return any(name == domain or name.endswith("." + domain) for domain in self.domains)

    def on_socket_connect(self, sock, address, event="socket.connect"):
        family, binding = sock.family, event == "socket.bind"
        if family == 1:  # AF_UNIX is this machine's own, but the door to the secrets stays shut
            if address and address[0] not in (0, "\0"):
                if binding:
                    self.change(event, address)
                elif _below(_real(address), self.sealed):
                    self.block(event, "hotenv-session", path=_real(address))
        elif self.network and address is not None:
            internet = family in (2, _Here.sockets.AF_INET6)
            host = address[0] if internet else repr(address)
            if not internet or not self.may_reach(host, not binding):
                self.block(event, "no-network", host=host)

    def on_socket_bind(self, sock, address):
        self.on_socket_connect(sock, address, "socket.bind")

    def on_socket_sendto(self, sock, address):
        self.on_socket_connect(sock, address, "socket.sendto")

    def on_socket_sendmsg(self, sock, address):
        self.on_socket_connect(sock, address, "socket.sendmsg")

    def on_socket_getaddrinfo(self, host, *_):
        # create_connection wants to go there, even to this machine: one line, not one for ::1 and one for 127.0.0.1.
        connecting = _caller("socket.getaddrinfo").endswith(".create_connection")
        if self.network and host and not self.may_reach(host, connecting):
            self.block("socket.getaddrinfo", "no-network", host=host)

    def on_socket_gethostbyname(self, host):
        if self.network and host and not self.may_reach(host, False):
            self.block("socket.gethostbyname", "no-network", host=host)

    on_socket_gethostbyaddr = on_socket_gethostbyname

    def on_socket_getnameinfo(self, address):
        self.on_socket_gethostbyname(address[0])

    def remembering(self, addresses):
        """An allowed name is known by its addresses from then on: connect sees nothing else."""
        def make(original):
            def resolve(host, *args, **kwargs):
                found = original(host, *args, **kwargs)
                name = _host_name(host) if host else ""
                if name and _packed(name) is None and self.may_reach(name):
                    new = {_packed(_host_name(address)) for address in addresses(found)}
                    self.known |= new if name in _METADATA else new - self.metadata
                return found
            return resolve
        return make

    def resolving(self, base):
        """The methods of a socket that look up a name before their event: by then the query has left."""
        def method(name, index):
            original = getattr(base, name)

            def call(sock, *args):
                if len(args) > max(index, 0) and sock.family != 1 and isinstance(args[index], tuple):
                    host = args[index][0]
                    if isinstance(host, (str, bytes, bytearray)) and host and _packed(_host_name(host)) is None:
                        sys.audit("socket." + name.replace("_ex", ""), sock, args[index])
                        found = sys.modules["_socket"].getaddrinfo(host, None, sock.family, sock.type, sock.proto)
                        args = list(args)
                        args[index] = (found[0][4][0],) + args[index][1:]
                return original(sock, *args)
            call.__name__ = name
            return call
        methods = {name: method(name, index) for name, index in (
            ("connect", 0), ("connect_ex", 0), ("bind", 0), ("sendto", -1), ("sendmsg", 3))}
        for name, function in methods.items() if hasattr(sys.modules.get("socket"), "socket") else ():
            setattr(sys.modules["socket"].socket, name, function)
        return type("socket", (base,), dict(methods, __slots__=(), __module__="_socket"))

    def naming(self, base):
        """TLS to a host by name, over memory too: the class that ssl.py derives from this has its methods wrapped."""
        def wrap(context, name):
            original = getattr(context, name)

            def call(this, *args, **kwargs):
                host = kwargs.get("server_hostname") or (args[3] if name == "wrap_bio" and len(args) > 3 else None)
                if host and not self.may_reach(host):
                    self.block("ssl.SSLContext." + name, "no-network", host=host)
                return original(this, *args, **kwargs)
            setattr(context, name, call)

        class _SSLContext(base):
            def __init_subclass__(cls, **kwargs):
                for name in {"wrap_socket", "wrap_bio"} & set(vars(cls)) if cls.__module__ == "ssl" else ():
                    wrap(cls, name)
        for name in ("wrap_socket", "wrap_bio") if hasattr(sys.modules.get("ssl"), "SSLContext") else ():
            wrap(sys.modules["ssl"].SSLContext, name)
        return _SSLContext

    # files

    def change(self, action, path, dir_fd=None, follow=True):
        """May this path be written, made, removed or changed?"""
        if isinstance(path, int) and action == "os.truncate":
            return  # it was opened for writing, so that was allowed
        real = _real(path, dir_fd, follow)
        if _below(real, self.sealed):
            self.block(action, "hotenv-session", path=real)
        if self.readonly and path not in ("/dev/stdout", "/dev/stderr") and not _below(real, self.writable):
            if not _below(real, _DEVICES) and not real.rpartition("/")[2].startswith(("pipe:[", "socket:[")):
                self.block(action, "fs-readonly", path=real, hint=" (--fs-write PATH allows writing below PATH)")

    def read(self, action, path, dir_fd=None):
        if self.readable is None:
            return
        real = _real(path, dir_fd)
        if not (_below(real, self.readable) or _below(real, _READABLE) or path == "/dev/stdin" or
                real.startswith(f"/proc/{os.getpid()}/") or _below(real, _Here.target)):
            self.block(action, "fs-readonly", path=real, hint=(
                f" (reads are allowed below {self.read_root}; --fs-readonly=PATH reads below PATH, =/ reads anything)"))

    def on_open(self, path, mode, flags):
        if not isinstance(path, int):
            (self.change if _is_write(mode, flags) else self.read)("open", path)

    def on_os_listdir(self, path):
        if not isinstance(path, int):
            self.read("os.listdir", path or ".")

    on_os_scandir = on_os_listdir

    def on_change(self, event, args):
        for index, directory, follow in _CHANGES[event]:
            self.change(event, args[index], args[directory] if directory < len(args) else None, follow)

    def on_sqlite3_connect(self, database):
        """Only what is in memory may be opened, or what says in its URI that it is only read."""
        text = os.fsdecode(database)
        path, _, query = text[5:].partition("#")[0].partition("?") if text.startswith("file:") else (text, "", "")
        modes = [word for word in query.split("&") if word.startswith("mode=") or "%" in word]
        if path in (":memory:", "") or modes == ["mode=memory"]:
            return
        reads = modes == ["mode=ro"] or not modes and "immutable=1" in query.split("&")
        (self.read if reads else self.change)("sqlite3.connect", path[2:] if path.startswith("//") else path)

    def attaching(self, original):
        """ATTACH and VACUUM INTO open files of their own in C: SQLite itself asks about them."""
        def authorize(action, path, *_):
            try:
                if action == 24:  # SQLITE_ATTACH
                    self.decide("sqlite3.connect", (path or "",))
            except PermissionError:
                return 1  # SQLITE_DENY
            return 0

        def connect(*args, **kwargs):
            connection = original(*args, **kwargs)
            connection.set_authorizer(authorize)
            return connection
        return connect

    def writing(self, original):
        """Functions that open a file in C: a history to write, a database whose second argument says how."""
        def call(*args, **kwargs):
            path, how = (args + (None, None))[:2]
            action = f"{original.__module__}.{original.__name__}"
            if "history" in action:
                path = path if original.__name__ == "write_history_file" else how
                self.change(action, path or os.path.expanduser("~/.history"))
            else:
                (self.read if str(how or "r").startswith("r") else self.change)(action, path)
            return original(*args, **kwargs)
        return call

    # processes and imports

    def on_process(self, event, args):
        if not self.processes:
            return _keep()
        argv = args[_PROCESSES[event]] if _PROCESSES[event] < len(args) else None
        argv = list(argv) if isinstance(argv, (list, tuple)) else [argv]
        # platform.processor() asks uname, and has an answer without it.
        self.block(event, "no-subprocess", argv == ["uname", "-p"], **({} if argv == [None] else {"argv": argv}))

    def executing(self, original):
        """No event: multiprocessing starts its children so."""
        return lambda argv, *_: self.block("os.exec", "no-subprocess", argv=list(argv))

    def on_import(self, module, filename, *_):
        top = module.partition(".")[0]
        if top == "uvloop" and (self.network or self.processes):  # its sockets are opened in C; asyncio does as well
            self.block("import", "no-network" if self.network else "no-subprocess", True, module=module)
        native = filename and os.path.dirname(filename) not in self.native
        if self.imports and (native or top in ("ctypes", "_ctypes", "cffi", "_cffi_backend")):
            self.block("import", "strict-imports", module=module)

    def on_ctypes(self, *_):
        if self.imports:
            self.block("ctypes", "strict-imports")

    def patch(self):
        if self.network:
            _patch("_socket", "getaddrinfo", self.remembering(lambda found: [entry[4][0] for entry in found]))
            _patch("_socket", "gethostbyname", self.remembering(lambda found: [found]))
            _patch("_socket", "gethostbyname_ex", self.remembering(lambda found: found[2]))
            _patch("_socket", "socket", self.resolving)
            _patch("_ssl", "_SSLContext", self.naming)
        if self.readonly:
            for module, name in (("readline", "write_history_file"), ("readline", "append_history_file"),
                                 ("_gdbm", "open"), ("_dbm", "open")):
                _patch(module, name, self.writing)
            _patch("_sqlite3", "connect", self.attaching)
        if self.processes:
            _patch("_posixsubprocess", "fork_exec", self.executing)
        for name in [name for name in sys.modules if self.imports and name.partition(".")[0] in ("ctypes", "_ctypes")]:
            del sys.modules[name]


def _load_guards():
    _Here.options = _from_json(_Here.text)
    guards = [_Guard(options) for options in _Here.options]
    for guard in guards:
        guard.patch()
    _patch("_posixsubprocess", "fork_exec", lambda original: lambda *args: _call_with_env(original, 5, args, {}))
    for module in ("_interpreters", "_xxsubinterpreters"):
        _patch(module, "create", _guarding_interpreter)
    os.register_at_fork(after_in_child=_after_fork)
    _Here.guards = guards


def _from_json(text):
    """Without the json package, which the program may be in the middle of importing."""
    from _json import make_scanner
    context = type(sys)("context")
    context.__dict__.update(strict=True, object_hook=None, object_pairs_hook=None, parse_float=float, parse_int=int,
                            parse_constant=None, memo={})
    return make_scanner(context)(text, 0)[0]


def _exit_status(status, inheritable=os.get_inheritable):
    return 2 if _Here.blocked or _Here.told is not None and inheritable(_Here.told) else status


def _end():
    """The very end of the interpreter: every module is gone, every file flushed and closed."""
    if _exit_status(0):
        _leave(2)


def _after_fork():
    _Here.blocked = False
    if _Here.told is not None:
        os.set_inheritable(_Here.told, False)


_patches = []  # module, name, what makes the replacement of it


def _patch(module, name, make):
    """Replace a function or class wherever it is known by now, and in whatever is imported under this name later."""
    _patches.append((module, name, make))
    if module in sys.modules:
        _replace(sys.modules[module], name, make)


def _replace(module, name, make):
    original = getattr(module, name, None)
    if original is None:
        return
    replacement = make(original)
    if not isinstance(original, type):
        replacement = _Function(replacement, original)
    for place in ("os", "socket", "subprocess", "ssl", "sqlite3", "sqlite3.dbapi2", "dbm.gnu", "dbm.ndbm", None):
        names = vars(sys.modules.get(place) or module)
        for key in [key for key, value in names.items() if value is original]:
            names[key] = replacement


def _patch_executed(module):
    for known, name, make in _patches:
        if known == module.__name__:
            _replace(module, name, make)


def _call_open(original, path, flags, mode=0o777, *, dir_fd=None):
    """The event of os.open does not carry dir_fd: the path would be judged from the wrong directory."""
    if dir_fd is None:
        return original(path, flags, mode)
    if _ident() not in _Here.busy:
        for guard in _Here.guards:
            (guard.change if _is_write(None, flags) else guard.read)("os.open", path, dir_fd)
    with _Busy():
        return original(path, flags, mode, dir_fd=dir_fd)


def _call_mkfifo(original, path, *args, dir_fd=None, **kwargs):
    for guard in _Here.guards:
        guard.change("os." + original.__name__, path, dir_fd, False)
    return original(path, *args, dir_fd=dir_fd, **kwargs)


_call_mknod = _call_mkfifo


def _call_execve(original, *args, **kwargs):
    return _call_with_env(original, 2, args, kwargs)


_call_posix_spawn = _call_posix_spawnp = _call_execve


def _call__execvpe(original, file, args, env=None):
    """One refusal for one attempt: the event comes for each entry of PATH."""
    for guard in _Here.guards:
        guard.decide("os.exec", (file, args, env))
    original(file, args, env)


def _call__exit(original, status):
    original(_exit_status(status))


def _call_with_env(original, index, args, kwargs):
    """A call that starts a program with an environment of its own, a mapping or a list of NAME=VALUE."""
    env = args[index] if len(args) > index else kwargs.get("env")
    with _Busy():
        _keep()
        if env is not None:
            listed = isinstance(env, (list, tuple))
            full = {os.fsdecode(name): os.fsdecode(value) for name, value in (
                (item.split(b"=", 1) for item in env) if listed else env.items())}
            full.update(_carried(full, _Here.text, _Here.home))
            full = [os.fsencode(f"{name}={value}") for name, value in full.items()] if listed else full
            if len(args) > index:
                args = (*args[:index], full, *args[index + 1:])
            else:
                kwargs["env"] = full
    return original(*args, **kwargs)


def _keep():
    """Before a child starts: put back what the program, or a cleaner of /tmp, took away."""
    with _Busy():
        if "_write_file" not in globals():  # the last name there
            _load(2)
        _write_block(_Here.home, _Here.block)
        for name, value in _carried(os.environ, _Here.text, _Here.home).items():
            if os.environ.get(name) != value:
                os.environ[name] = value


def _guarding_interpreter(original):
    """A subinterpreter has hooks of its own. It is given ours before the program gets hold of it."""
    def create(*args, **kwargs):
        module = sys.modules.get("_interpreters") or sys.modules["_xxsubinterpreters"]
        _keep()
        if _Here.told is None:
            _Here.told = os.dup(2)
        new = original(*args, **kwargs)
        path = _Here.home + "/sitecustomize.py"
        failed = module.run_string(new, f"__file__, __name__ = {path!r}, 'hotenv'\n{_LOADER}\n"
                                   f"_names['_Here'].inner, _names['_Here'].told = True, {_Here.told}\n")
        if failed is not None:
            raise RuntimeError("hotenv cannot guard a subinterpreter")
        return new
    return create


def _roots(paths):
    return tuple(os.path.realpath(path).rstrip("/") + "/" for path in paths if path)


def _below(path, roots):
    return (path + "/").startswith(roots)


def _real(path, dir_fd=None, follow=True):
    """The path that an action is about, without links; of a descriptor, the path that it was opened by."""
    if isinstance(path, int):
        return _descriptor_path(path)
    path = os.fsdecode(path)
    if dir_fd is not None and dir_fd >= 0:
        path = os.path.join(_descriptor_path(dir_fd), path)
    head, tail = os.path.split(path.rstrip("/"))
    if follow or tail in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(head), tail)


def _descriptor_path(descriptor):
    if sys.platform == "darwin":
        import fcntl
        return os.fsdecode(fcntl.fcntl(descriptor, 50, bytes(1024)).rstrip(b"\0"))  # F_GETPATH
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _is_write(mode, flags):
    return flags & _WRITE_FLAGS or isinstance(mode, str) and not set("wax+").isdisjoint(mode)


def _host_name(host):
    """One spelling of a host: lower case, no final dot, no zone of an IPv6 address, the ASCII form of a name."""
    name = host.decode("ascii") if isinstance(host, (bytes, bytearray)) else host
    name = name if name.isascii() else name.encode("idna").decode()
    return name.lower().rstrip(".").partition("%")[0]


def _packed(name):
    """The bytes of an address, in any form that the system takes, or None for a name."""
    if _Here.sockets is None:  # kept: at the end of the interpreter nothing can be imported
        _Here.sockets = __import__("_socket")
    inet_pton, inet_aton = _Here.sockets.inet_pton, _Here.sockets.inet_aton
    for parse in (lambda: inet_pton(_Here.sockets.AF_INET6, name), lambda: inet_aton(name)):
        try:
            address = parse()
        except (OSError, ValueError):
            continue
        return address[12:] if address.startswith(bytes(10) + b"\xff\xff") else address
    return None


def _caller(action):
    """The standard library's public function that led to an event: subprocess.run rather than subprocess.Popen."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals is globals():
        frame = frame.f_back
    home = frame.f_globals.get("__name__") if frame is not None else None
    while frame is not None and home in ("os", "socket", "subprocess") and frame.f_globals.get("__name__") == home:
        function = frame.f_code.co_name.replace("__init__", "Popen")
        if function[0] not in "_<":
            action = f"{home}.{function}"
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == "create_connection" and action == "socket.getaddrinfo":
        return "socket.create_connection"  # urllib3 has its own
    return action


def _masked(value):
    """For a trace or an error: escaped, and without the secrets that can be told."""
    import re
    if not isinstance(value, list):
        text = _hidden(value)
        return text if repr(text) == f"'{text}'" and " " not in text else repr(text)
    shown, hide = [], False
    for item in value:
        text = _hidden(item)
        shown.append("'***'" if hide else repr(text))
        hide = text.startswith("-") and re.fullmatch(_SECRET, text)
    return f"[{','.join(shown)}]"


def _hidden(value):
    import re
    text = os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else repr(value)
    values = [(env.get(name, ""), name) for env in (_Here.born, os.environ)
              for options in _Here.options for name in options.get("names", ())]
    names = {spelled: name for value, name in values  # as a path comes out of realpath, as a shell quotes it, as it is
             for spelled in (os.path.normpath(value), value.replace("'", "'\"'\"'"), value)}
    for secret in sorted(names, key=len, reverse=True):
        text = text.replace(secret, f"[{names[secret]}]") if len(secret) > 3 else text
    text = re.sub(_SECRET + r"(\s*[=:]\s*|\s+).+", r"\1\2***", text, flags=re.DOTALL)
    return re.sub(r"://[^/\s@]*@", "://***@", text)


def _trace(line):
    if _Here.trace is not None:
        descriptor, status = _Here.trace
        try:
            same = os.path.samestat(os.fstat(descriptor), status)
        except OSError:
            same = False
        try:
            os.write(descriptor if same else 2, line.encode("ascii", "replace"))
        except OSError:
            pass
''')


# ==== hermetic host ===================================================================================================
# Owns the way in: which program a target is, which Python runs it, and how the guards get there before its first line.
# The room above is written out for that interpreter, which is started on the loader, which becomes the target.

_fold("hermetic host", r'''
_unfold("hermetic files")


def _run_guarded(options: dict, target: list, env: dict, in_process: bool) -> None:
    """Become `target` under the guards; returns never. Raises HotenvError 1 for what cannot be guarded."""
    if not any(options.get(guard) for guard in ("network", "subprocess", "imports", "readonly")):
        _say("no guard is on: the target runs as it is (--no-network, ..., see: hotenv hermetic --help)")
    python, kind, argv = _resolve_target(target, env.get("PATH", os.defpath))
    if kind == "path":  # a child that multiprocessing spawns reads the script again
        options = dict(options, program=os.path.dirname(os.path.realpath(argv[0])))
    try:
        block = _room_source()
        # The name only has to tell versions apart: what counts is the comparison at each start.
        home = f"{_runtime_dir()}/guards-{int.from_bytes(block, 'big') % (2**61 - 1):015x}"
        _write_block(home, block)
    except (OSError, RuntimeError) as error:
        raise HotenvError(1, f"cannot put the guards in place: {error}")
    env = dict(env, HOTENV_GUARDS=_guards_text(options))
    if python is None and in_process and not (sys.flags.isolated or sys.flags.no_site or sys.flags.ignore_environment):
        os.environ.clear()
        os.environb.update(_as_bytes(env))
        raise _Afterwards(lambda: _run_here(kind, argv, home, block))
    env.update(_carried(env, env["HOTENV_GUARDS"], home))
    words = (python or [sys.executable]) + [f"{home}/sitecustomize.py", kind, *argv]
    try:
        _exec(words, env)
    except HotenvError as error:
        raise HotenvError(1, str(error)) from None


def _guards_text(options: dict) -> str:
    """These guards as JSON, after those that we stand under: hermetic within hermetic, and both hold."""
    try:
        outer = _decode_json((os.environ.get("HOTENV_GUARDS") or "[]").encode())
    except ValueError:
        outer = None
    if not isinstance(outer, list):
        raise HotenvError(1, "HOTENV_GUARDS is damaged")
    return f"[{', '.join(map(_as_json_text, [*outer, options]))}]"


def _as_json_text(value: Any) -> str:
    """As json.dumps writes it, which takes 2 ms to import."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_json_quote(name)}: {_as_json_text(each)}" for name, each in value.items()]) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_json_text, value))}]"
    return _json_quote(value) if isinstance(value, str) else str(value).lower()  # True, False


def _run_here(kind, argv, home, block):
    """In this very process. Nothing of hotenv stays importable, so that the end of the program finds it whole."""
    for name in [name for name, module in sys.modules.items() if getattr(module, "__dict__", None) is globals()]:
        del sys.modules[name]
    try:
        _unfold("hermetic")
        _unfold("hermetic target")
        _install(os.environ["HOTENV_GUARDS"], home, block)
        os.environ.update(_carried(os.environ, os.environ["HOTENV_GUARDS"], home))
    except Exception as error:
        _say(f"cannot guard this Python: {error}")
        sys.exit(1)
    _become(kind, argv)
    sys.exit(0)


def _room_source() -> bytes:
    """The text of the hermetic room, as it goes into a target."""
    parts = "hermetic", "hermetic target", "hermetic files", "hermetic guards"
    return "\n# -- part\n".join([_folds[part][1] for part in parts]).encode()


def _resolve_target(target: list, path: str):
    """(words that start its Python, or None for this one; "path", "module", "call" or "code"; its argv)"""
    name = target[0]
    bin_directory = os.path.dirname(sys.executable)
    if ":" in name and "/" not in name:
        return None, "call", target
    if "/" in name:
        found = name
        if not os.path.exists(found):
            raise HotenvError(1, f"{_shown(name)}: no such file")
    else:
        # PEP order: what this environment has comes first. A Python is the one that the caller's PATH means.
        places = [bin_directory] + path.split(os.pathsep)
        found = _find_program(name, places[1:] if _names_python(name) else places)
    if found is None and name.endswith(".py") and os.path.isfile(name):
        found = "./" + name
    if found is None:
        return _resolve_installed(name, target)
    if _names_python(found) and not _first_bytes(found).startswith(b"#!"):
        return _resolve_python([found] + target[1:])
    words = _interpreter_words(found)
    return (None if words and _is_this_environment(found, words) else words), "path", [found] + target[1:]


def _is_this_environment(script, words):
    """Does the script stand beside this interpreter, and name it? Two venvs on one base differ in nothing but that."""
    here = os.path.dirname(sys.executable)
    return (len(words) == 1 and os.path.dirname(os.path.abspath(script)) == here == os.path.dirname(words[0])
            and os.path.realpath(words[0]) == os.path.realpath(sys.executable))


def _find_program(name, places):
    for place in places:
        path = os.path.join(place or ".", name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def _resolve_installed(name, target):
    from importlib.metadata import entry_points
    everything = entry_points()
    group = everything.select(group="console_scripts") if hasattr(everything, "select") else everything.get(
        "console_scripts", ())
    for entry in group:
        if entry.name == name:
            return None, "call", [entry.value.partition("[")[0].strip()] + target[1:]
    import importlib.util
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        spec = None
    top = name.partition(".")[0]
    if spec is None and not os.path.exists(top) and not os.path.exists(top + ".py"):
        raise HotenvError(1, f"{_shown(name)}: no such command, console script or module")
    return None, "module", target


def _resolve_python(words):
    """`python3 -X dev script.py`, `python3 -m module`, `python3 -c text`: the interpreter, its flags, what it runs."""
    flags, rest = _split_flags(words[1:])
    if rest[:1] == ["-m"] and len(rest) > 1:
        return words[:1] + flags, "module", rest[1:]
    if rest[:1] == ["-c"] and len(rest) > 1:
        return words[:1] + flags, "code", rest
    if not rest or rest[0].startswith("-"):
        raise HotenvError(1, "a Python without a script, -m or -c cannot be guarded")
    return words[:1] + flags, "path", rest


def _names_python(path):
    """Is it python, python3, python3.13, python3.13t?"""
    name = os.path.basename(path)
    rest = name[6:].lstrip("0123456789.")
    return name.startswith("python") and (not rest or len(rest) == 1 and "a" <= rest <= "z")


def _split_flags(words):
    """A Python's own flags, and the rest from -m, -c or the script on."""
    flags, rest = [], list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "-c", "-m"):
        flag = rest.pop(0)
        flags.append(flag)
        letters = flag[1:].partition("W")[0].partition("X")[0]
        if flag.startswith("--") or not letters.isalpha() and letters or set("cmhViV?") & set(letters):
            raise HotenvError(1, f"Python's flag {_shown(flag)} cannot be guarded")
        if flag[-1:] in "WX" and rest:
            flags.append(rest.pop(0))
    return flags, rest


def _first_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read(4096)
    except IsADirectoryError:
        return b""
    except OSError as error:
        raise HotenvError(1, f"cannot read {_shown(path)}: {error.strerror}")


def _interpreter_words(path):
    """The interpreter of a script's shebang and its flags; None for a Python program that has none."""
    head = _first_bytes(path)
    lines = head.decode("utf-8", "surrogateescape").split("\n")
    if not head.startswith(b"#!"):
        if path.endswith((".py", ".pyz")) or os.path.isdir(path) or head.startswith(b"PK\3\4"):
            return None
        raise HotenvError(1, f"{_shown(path)} is no Python program, so it cannot be guarded")
    words = lines[0][2:].split()
    if words[:1] == ["/bin/sh"] and len(lines) > 1 and lines[1].startswith("'" * 3 + "exec' "):
        import shlex
        # How pip and uv write a path that is too long for a shebang, or relative to the script.
        here = shlex.quote(os.path.dirname(os.path.realpath(path)))
        words = shlex.split(lines[1][9:].replace('"$(dirname -- "$(realpath -- "$0")")"', here))
        if words[-2:] == ["$0", "$@"]:
            del words[-2:]
    start = 0
    if words and os.path.basename(words[0]) == "env":
        if words[1:2] in (["-S"], ["--"]):
            del words[1]
        start = 1
    if not words[start:] or not _names_python(words[start]):
        raise HotenvError(1, f"{_shown(path)} is not run by Python but by {_shown(lines[0][2:].strip())}, "
                          "so it cannot be guarded")
    flags, rest = _split_flags(words[start + 1:])
    if rest:
        raise HotenvError(1, f"{_shown(path)}: a first line with {_shown(rest[0])} cannot be guarded")
    return words


_GUARD_OPTIONS = {  # the option: what it takes, in brackets if it need not; its help
    "--no-network": ("", "no connection, no name looked up"),
    "--allow-localhost": ("", "except this machine (127.0.0.0/8, ::1)"),
    "--allow-domain": ("D", "except D and what ends in .D"),
    "--no-subprocess": ("", "no other program, no fork"),
    "--fs-readonly": ("[PATH]", "write nothing; read only below the current directory, or PATH (--fs-readonly=/ reads "
                                "anything)"),
    "--fs-write": ("PATH", "except below PATH"),
    "--strict-imports": ("", "no native extensions but Python's own; no ctypes, no cffi"),
    "--profile": ("NAME", "net-hermetic, exec-deny, fs-readonly, strict-imports or all"),
    "--trace": ("", "a line on stderr for each blocked action"),
}


class _Asked:
    """The guards and allowances that one source asks for."""

    no_network = allow_localhost = no_subprocess = strict_imports = trace = False
    fs_readonly = None  # True, or a path

    def __init__(self):
        self.allow_domain, self.fs_write, self.profile = [], [], []


_PROFILES = {
    "net-hermetic": ["--no-network", "--allow-localhost"], "exec-deny": ["--no-subprocess"],
    "fs-readonly": ["--fs-readonly"], "strict-imports": ["--strict-imports"],
    "all": ["--no-network", "--no-subprocess", "--fs-readonly", "--strict-imports"]}


def _guard_options(asked, environ) -> dict:
    """The guards of all sources: configuration file, environment, command line, lowest first.

    What switches a guard on adds up. An allowance counts only from the source that switched the guard on last, or from
    a higher one: a file in a checkout cannot open what the command line closed.
    """
    flags = []
    if environ.get("HERMETIC_FLAGS"):
        import shlex
        try:
            flags = shlex.split(environ["HERMETIC_FLAGS"])
        except ValueError as error:
            raise HotenvError(EXIT_USAGE, f"HERMETIC_FLAGS: {error}")
    flags += [f"--profile={name}" for name in environ.get("HERMETIC_PROFILE", "").replace(",", " ").split()]
    if environ.get("HERMETIC_FS_ROOT"):
        flags.append(f"--fs-readonly={environ['HERMETIC_FS_ROOT']}")
    sources = [_parse_guards(_config_flags(), "the configuration file"), _parse_guards(flags, "HERMETIC_FLAGS"), asked]
    sources = [_with_profiles(source) for source in sources]
    options = {"trace": any(source.trace for source in sources)}
    network = _last(sources, "no_network")
    if network is not None:
        allowing = sources[network:]
        options["network"] = True
        options["localhost"] = any(source.allow_localhost for source in allowing)
        options["domains"] = sorted({_domain(name) for source in allowing for name in source.allow_domain})
    options["subprocess"] = _last(sources, "no_subprocess") is not None
    options["imports"] = _last(sources, "strict_imports") is not None
    readonly = _last(sources, "fs_readonly")
    if readonly is not None:
        root = sources[readonly].fs_readonly
        options["readonly"] = True
        options["read"] = os.path.realpath("." if root is True else root)
        options["write"] = [os.path.realpath(path) for source in sources[readonly:] for path in source.fs_write]
    return options


def _last(sources, name):
    """The index of the highest source that has this guard on, or None."""
    return max((index for index, source in enumerate(sources) if getattr(source, name)), default=None)


def _domain(text: str) -> str:
    _unfold("hermetic")
    _unfold("hermetic guards")
    name = _host_name(text)
    name = name[2:] if name.startswith("*.") else name.lstrip(".")
    if not name or set(name) & set("/*@ ") or ":" in name and _packed(name) is None:
        raise HotenvError(EXIT_USAGE, f"--allow-domain {_shown(text)}: only a host name or an address is wanted")
    return name


def _parse_guards(words: list, source: str, hint: str = "") -> _Asked:
    """By hand: argparse costs 9 ms, half of what all the rest of a start does."""
    asked, rest = _Asked(), list(words)
    while rest:
        word = rest.pop(0)
        option, given, value = word.partition("=")
        takes = _GUARD_OPTIONS.get(option, (None,))[0]
        if takes and not given and rest and (rest[0] == "-" or not rest[0].startswith("-")):
            given, value = "=", rest.pop(0)
        if takes is None or given and not takes or takes and not given and takes != "[PATH]":
            why = "is no guard" if takes is None else "takes no value" if given else f"takes {takes}"
            raise HotenvError(EXIT_USAGE, f"{source}: {_shown(option)} {why}{hint}")
        name = option[2:].replace("-", "_")
        if isinstance(getattr(asked, name), list):
            getattr(asked, name).append(value)
        else:
            setattr(asked, name, value if given else True)
    return asked


def _with_profiles(source):
    for name in source.profile:
        if name not in _PROFILES:
            raise HotenvError(EXIT_USAGE, f"no profile {_shown(name)}: there are {', '.join(_PROFILES)}")
        for attribute, value in vars(_parse_guards(_PROFILES[name], "profile")).items():
            if value and not getattr(source, attribute):
                setattr(source, attribute, value)
    if "" in source.fs_write or source.fs_readonly == "":
        raise HotenvError(EXIT_USAGE, "an empty PATH means nothing here")
    return source


def _config_flags() -> list:
    """The guards in ./pyproject.toml, [tool.hermetic], and ./HERMETIC.toml, as the command line would have them."""
    flags = []
    for path in ("pyproject.toml", "HERMETIC.toml"):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise HotenvError(EXIT_INPUT, f"cannot read {path}: {error}")
        table = _config_table(path, text)
        for key, value in table.items():
            flags += _config_words(path, "--" + key.replace("_", "-"), value)
    return flags


def _config_table(path, text):
    if path == "pyproject.toml" and "hermetic" not in text and "\\" not in text:
        return {}  # as in most projects, and parsing takes 8 ms; a backslash could spell the word in another way
    try:
        import tomllib
    except ImportError:  # before 3.11: only refused when there is something to read
        wanted = r"(?m)^\s*(\[.*\bhermetic\b|(tool\s*\.\s*)?hermetic\b)"
        wanted = wanted if path == "pyproject.toml" else r"(?m)^\s*[^\s#]"
        import re
        if re.search(wanted, text):
            raise HotenvError(EXIT_USAGE, f"{path} configures guards, which Python 3.11 or later can read, and this is "
                              f"{sys.version_info[0]}.{sys.version_info[1]}")
        return {}
    try:
        found = tomllib.loads(text)
        table = found.get("tool", {}).get("hermetic", {} if path == "pyproject.toml" else found)
        return dict(table)
    except (ValueError, AttributeError, TypeError) as error:
        raise HotenvError(EXIT_USAGE, f"{path}: {_shown(str(error))}")


def _config_words(path, option, value):
    if isinstance(value, bool):
        return [option] if value else []
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in values):
        raise HotenvError(EXIT_USAGE, f"{path}: {_shown(option[2:])} takes true, a text or a list of texts")
    return [f"{option}={item}" for item in values]


def _run_hermetic(options: dict, target_argv: list, env: dict, secret_names=None, sockets=()) -> None:
    """Become the target under the guards. `secret_names` is None without a session; under `run`, the session's names.

    With a session the target gets a process image of its own: what --only left out is not in its memory.
    """
    runtime = [f"/tmp/hotenv-{os.getuid()}", _runtime_dir(), *sockets]
    for find in (_find_session, lambda: _read_marker(_find_marker() or "")):  # HOTENV_SOCKET may hide the marker
        try:
            runtime.append(find())
        except HotenvError:
            pass  # there is none, so none to be kept from
    options = dict(options, sealed=sorted(map(os.path.abspath, set(runtime))), names=sorted(secret_names or ()))
    _run_guarded(options, target_argv, env, in_process=secret_names is None)
''')


# ==== shell session ===================================================================================================
# A live bash, and one structured result for each command: masked, bounded, audited.
#
# The shell reads its commands from a pipe. Its own stdout and stderr lead nowhere; a command gets /dev/null, the pipe O
# and the pipe E as its 0, 1 and 2, and none of the shell's other descriptors. Beside those a local shell has a pipe N,
# on which it alone writes: that a command is about to begin, and, when it has ended, a record of status, directory,
# background jobs and exports. What ends a record is a nonce that the shell reads only after the command has ended, so
# nothing that is printed can pass for a record. Through ssh there are only two streams: there the records travel on
# stdout, with the same nonce, and the nonce alone at the end of stderr.
#
# It is a convenience for whoever may use the secrets, without seeing them. It is no sandbox and takes no guards.
#
# Over its budget because of what a policy needs: a reader of shell text that finds every command in it, substitutions,
# loops and heredocs included. A simpler one would refuse harmless lines under `allow`, and let others by under `deny`.

_fold("shell session", r'''
_unfold("redaction")

_SHELL_MAX_OUTPUT = 100_000  # characters of stdout, and of stderr, in a result: more than an agent reads of one command
_SHELL_TIMEOUT = 30.0  # seconds for a command that names no limit of its own
_SHELL_GRACE = 2.0  # seconds for an interrupted command to end, before the shell is ended with it
_SHELL_CONNECT = 30.0  # seconds for a remote shell to answer
_SHELL_COMMAND_MAX = 16 << 20  # bytes of one command, as much as a request to the server may have
_SHELL_RECORD_MAX = 64 << 20  # bytes of one record: exports cannot be larger than what `serve` accepts
_SHELL_PIPE = 1 << 20  # bytes in a pipe, where the system lets us: fewer wake-ups for large outputs
_SHELL_ARGV = ("bash", "--norc", "--noprofile", "--noediting", "+o", "history", "-i")

# Each of these would have the shell run, print, log or end something on its own.
_SHELL_DROPPED = frozenset(("BASH_ENV ENV PROMPT_COMMAND PS0 PS1 PS2 PS4 TMOUT IGNOREEOF SHELLOPTS BASHOPTS "
                            "BASH_XTRACEFD POSIXLY_CORRECT HISTFILE").split())

# Commands that may change what is exported, beside everything that is more than a word and plain arguments.
_SHELL_EXPORTERS = frozenset((
    ". alias builtin cd command coproc declare eval exec export for getopts let local mapfile popd printf "
    "pushd read readarray readonly select set shopt source time trap typeset unset wait").split())

# The probe finds out whether `builtin` has become a function. Only in POSIX mode a special builtin, such as `unset`, is
# found before any function; when that mode ends, bash leaves inherit_errexit on. Where `set -e` is in force, returning
# the last status would end the shell.
_SHELL_SETUP = """\
unset PROMPT_COMMAND HISTFILE MAILCHECK TMOUT; PS1= PS2= PS4='+ '; set +H
__hotenv_begin() {
builtin printf '\\0%s\\n' "$1" >&{N}; {MARK_E}
[[ -o errexit ]] || builtin return "$2"
}
__hotenv_end() {
builtin printf -v __hotenv_probe %s "$1"
if [[ ${__hotenv_probe-} != "$1" ]]; then
POSIXLY_CORRECT=1; unset -f builtin; unset POSIXLY_CORRECT; builtin shopt -u inherit_errexit
fi
builtin unset -v __hotenv_probe PROMPT_COMMAND
builtin printf '\\0%s\\0%s\\0' "$1" "$2" >&{N}
builtin pwd >&{N}
builtin printf '\\0' >&{N}
builtin jobs -p >&{N}
builtin printf '\\0' >&{N}
if [[ -z $3 ]] || builtin declare -F -- "$3" || builtin alias -- "$3"; then builtin export -p >&{N}; fi
builtin printf '\\0%s\\n' "$1" >&{N}; {MARK_E}
[[ -o errexit ]] || builtin return "$2"
}
readonly -f __hotenv_begin __hotenv_end
"""


class SessionPoisoned(HotenvError):
    """The session has no shell any more and cannot get one: it refuses every command. `.code` is 8."""


class PolicyDenied(HotenvError):
    """The policy does not let this command run; the audit has it as blocked. `.code` is 10."""


class ExecResult:
    """What one command did. Every text in it is masked and cleaned of control sequences.

    command, stdout, stderr, cwd: str. exit_code: int (128+N after signal N, 124 after a time limit). duration_ms: int.
    truncated: stdout or stderr is head and tail only. timed_out: the time limit ended it, or interrupt() did.
    shell_restarted: the shell ended with, or before, this command; a new one has its directory and exports, but no
    functions, aliases, jobs or unexported variables. background: what background jobs printed before this command.
    """

    __slots__ = ("command", "stdout", "stderr", "exit_code", "duration_ms", "cwd", "truncated", "timed_out",
                 "shell_restarted", "background")

    def __init__(self, **fields: object) -> None:
        for name in self.__slots__:
            setattr(self, name, fields[name])

    def as_dict(self) -> dict:
        """The result as a dict, in the order of the fields, ready for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        return f"ExecResult({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"


class _Kept:
    """The first and the last bytes of a stream, and how many it had in all. Memory stays flat, whatever comes."""

    __slots__ = ("room", "head", "tail", "size")

    def __init__(self, room: int) -> None:
        self.room, self.head, self.tail, self.size = room, bytearray(), bytearray(), 0

    def add(self, data: memoryview) -> None:
        self.size += len(data)
        if len(self.head) < self.room:
            taken = self.room - len(self.head)
            self.head += data[:taken]
            data = data[taken:]
        if len(data) >= self.room:
            self.tail = bytearray(data[len(data) - self.room:])
        elif data:
            self.tail += data
            if len(self.tail) > 2 * self.room:
                del self.tail[:-self.room]

    def cut(self) -> bool:
        return self.size > len(self.head) + len(self.tail)


class _Tap:
    """One pipe from the shell. Its bytes go to a sink until a mark comes, then to the next one; marks are dropped."""

    __slots__ = ("fd", "sink", "marks", "held", "open")

    def __init__(self, fd: int, sink: object) -> None:
        self.fd, self.sink, self.marks, self.held, self.open = fd, sink, [], b"", True
        os.set_blocking(fd, False)

    def read(self, buffer: bytearray) -> int:
        """Take what is there, at most a buffer full. 0: nothing is there now, or (not .open) ever again."""
        try:
            size = os.readv(self.fd, [buffer])
        except BlockingIOError:
            return 0
        if not size:
            self.open = False
            self.release()
        elif self.marks or self.held:
            self._divide(self.held + bytes(memoryview(buffer)[:size]))
        else:
            self.sink.add(memoryview(buffer)[:size])
        return size

    def release(self) -> None:
        self.sink.add(memoryview(self.held))
        self.held = b""

    def _divide(self, data: bytes) -> None:
        self.held = b""
        while self.marks:
            mark, after = self.marks[0]
            at = data.find(mark)
            if at < 0:  # the end of the data may be the beginning of the mark
                at = max(0, len(data) - len(mark) + 1)
                data, self.held = data[:at], data[at:]
                break
            self.sink.add(memoryview(data)[:at])
            data, self.sink = data[at + len(mark):], after
            del self.marks[0]
        self.sink.add(memoryview(data))


def _clean(data: bytes) -> bytes:
    """`data` as a terminal would show it: no escape sequences or control characters, `\\r` overwrites, CRLF is LF."""
    import re
    if b" tcsetattr: " in data:  # an interactive bash says that it has no terminal whenever a child dies of a signal
        data = re.sub(rb"(?m)^bash: \[\d+: \d+ \(\d+\)\] tcsetattr: .*\n", b"", data)
    if not re.search(rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", data):
        return data
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    text = re.sub(r"(?m)^[^\n]*(?:\r\x1b\[0?K|\x1b\[2K)", "", text)  # a line that was erased to be written anew
    text = re.sub(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?",
                  "", text)
    if "\r" in text:
        text = "\n".join(_overwritten(line) if "\r" in line else line for line in text.split("\n"))
    return re.sub(r"[\0-\x08\x0b-\x1f\x7f-\x9f]", "", text).encode("utf-8", "surrogateescape")


def _overwritten(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part):]
    return shown


def _mask_piece(redactor: Redactor, data: bytes, cut: str = "") -> bytes:
    """`data` with its values masked; `cut` says on which side it was cut off, where half a value may stand."""
    if not cut:
        return redactor.mask(data)
    stream = redactor.stream()
    if cut == "end":
        return stream.feed(data)  # what it holds back may be the first half of a value
    skipped = 2 * redactor.longest  # its first half may hold the end of a value; the second keeps the stream in step
    stream.feed(data[:skipped])
    return stream.feed(data[skipped:]) + stream.flush()


def _presented(redactor: Redactor, kept: _Kept, limit: int, odd: bool = False) -> tuple[str, bool]:
    """A stream as a result shows it: cleaned, masked, and only then cut; and whether something is missing from it.

    `odd`: some value holds what cleaning takes out, so it can be found only before that.
    """
    half, pieces = limit // 2, [(bytes(kept.head), "end"), (bytes(kept.tail), "start")]
    if not kept.cut():
        pieces = [(pieces[0][0] + pieces[1][0], "")]
    cleaned = [(_clean(_mask_piece(redactor, data, cut) if odd else data), cut) for data, cut in pieces]
    texts = [_mask_piece(redactor, data, cut).decode("utf-8", "replace") for data, cut in cleaned]
    head, tail = texts[0], texts[-1]
    if len(texts) == 1 and len(head) <= limit:
        return head, False
    tail = tail[len(tail) - half:] if half else ""
    return f"{head[:half]}\n[hotenv: {kept.size} bytes in all, the middle is left out]\n{tail}", True


def _processes() -> list[tuple]:
    """Every live process: its id, its parent's, and the ids of the group and session that it is in."""
    rows = []
    if not os.path.isdir("/proc/self"):
        import subprocess
        listing = subprocess.run(["ps", "-Ao", "stat=,pid=,ppid=,pgid="], stdout=subprocess.PIPE).stdout
        return [tuple(map(int, row.split()[1:])) for row in listing.splitlines() if not row.startswith(b"Z")]
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb", 0) as file:
                fields = file.read(512).rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if fields[0] not in b"ZX":
            rows.append((int(name), *map(int, fields[1:4])))
    return rows


def _family(shell: int, spared: frozenset | None = None) -> list[int]:
    """What is below the shell, without the jobs in `spared` and what is below them; None: all its session as well."""
    found, rows = [shell], _processes()
    for parent in found:  # grows while it is walked
        for pid, above, *groups in rows:
            if above == parent or spared is None and shell in groups:
                if pid not in found and pid not in (spared or ()):
                    found.append(pid)
    return found[1:]


def _signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError as error:
            if error.errno not in (errno.ESRCH, errno.EPERM):  # ended meanwhile; or became another user's, by sudo
                raise


def _hear_interrupts() -> None:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _quoted(text: bytes) -> bytes:
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


class _Audit:
    """A file of JSON lines, ours alone, appended to, never through a link. What could not be written is still owed."""

    def __init__(self, path: str) -> None:
        self.path, self.owed = path, b""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            self.fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise HotenvError(EXIT_SYSTEM, f"cannot open the audit file {_shown(path)}: {error.strerror}") from None
        info = os.fstat(self.fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_nlink != 1:
            os.close(self.fd)
            raise HotenvError(EXIT_SYSTEM, f"the audit file {_shown(path)} must be a plain file of yours, and no link")
        os.fchmod(self.fd, 0o600)

    def write(self, keep: bool, **fields: object) -> None:
        """Append a line or raise. With `keep`, a line that could not be written goes before the next one."""
        import json
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
        line = json.dumps({"time": stamp, **fields}).encode() + b"\n"
        data, sent = self.owed + line, 0
        try:
            while sent < len(data):
                sent += os.write(self.fd, data[sent:])
        except OSError as error:
            # A line that is on the disk in part is owed whole, or the next one would be glued to its half.
            begun = sent > len(self.owed)
            self.owed = data[sent:] if keep or begun else self.owed[sent:]
            reason = f"cannot write the audit file {_shown(self.path)}: {error.strerror}"
            raise HotenvError(EXIT_SYSTEM, reason) from None
        self.owed = b""


class ShellSession:
    """A bash that stays: directory, variables and functions are kept from one `exec()` to the next.

        with hotenv.ShellSession(hotenv.fetch()) as shell:
            print(shell.exec("make deploy", timeout=600).stdout)

    `environment` goes into the shell, and is masked in all that comes out. The rest of the shell's environment is the
    caller's, or with `isolated` a short allowlist of it. `remote`: a command (list, or one string in shell quoting)
    that leads to a shell elsewhere, as `ssh -T host` or `docker exec -i name bash`; there `environment` alone is added,
    over stdin. `cwd`: where to start. `timeout`: seconds for a command without its own limit. `max_output`: characters
    of stdout and of stderr that a result holds; more is cut to head and tail. `policy`: a JSON file, or a dict, with
    the lists `allow` and `deny` of first words; advice, no boundary. `audit`: a file that gets a line at the start and
    the end of every command.

    A session is safe to use from several threads: one command runs at a time, the others wait. It takes no hermetic
    guards: a command may do all that its user may, so masking and policy prevent accidents and nothing else.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, *, remote: str | Sequence[str] | None = None,
                 isolated: bool = False, cwd: str | None = None, timeout: float = _SHELL_TIMEOUT,
                 max_output: int = _SHELL_MAX_OUTPUT, policy: str | dict | None = None,
                 audit: str | None = None) -> None:
        import shlex
        import threading
        self._environment = dict(environment or {})
        self._remote = shlex.split(remote) if isinstance(remote, str) else list(remote or ())
        if self._remote and isolated or remote is not None and not self._remote:
            raise HotenvError(EXIT_USAGE, "a remote shell needs a command, and cannot be isolated")
        self._isolated, self._timeout, self._limit = isolated, timeout, max_output
        self._cwd = None if cwd is None else os.fsencode(cwd if remote else os.path.abspath(cwd))
        self._masks = None
        self._policy = _load_policy(policy) if policy is not None else None
        if self._cwd and not self._remote and not os.path.isdir(self._cwd):
            raise HotenvError(EXIT_USAGE, f"there is no directory {_shown(self.cwd)}")
        self._audit = _Audit(audit) if audit is not None else None
        self._name, self._count = os.urandom(4).hex(), 0
        self._lock, self._stop, self._closed, self._poison = threading.Lock(), [], False, ""
        self._process, self._exports, self._jobs, self._farewell = None, b"", frozenset(), b""
        self._buffer, self._unsaid = bytearray(1 << 18), False
        self.omitted = []  # names that the shell cannot take
        try:
            self._start()
        except HotenvError:
            self.close()
            raise
        self.unmaskable = list(self._redactor.unmaskable)  # names whose values are too short to be masked
        self._odd = any(_clean(value) != value for value in map(_encoded, self._environment.values()))

    @property
    def _redactor(self) -> Redactor:
        """Made when first asked for, which is while the shell is starting: both take some milliseconds."""
        self._masks = self._masks or Redactor(self._environment)
        return self._masks

    def __enter__(self) -> ShellSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def cwd(self) -> str:
        """The directory after the last command, masked."""
        return self._redactor((self._cwd or b"").decode("utf-8", "surrogateescape"))

    def interrupt(self) -> None:
        """End the command that is running, if any, as its time limit would. For other threads."""
        self._stop.append(True)

    def close(self) -> None:
        """End the shell and all that runs in its session; a command that is running raises. Again is allowed."""
        self._closed = True
        with self._lock:
            self._end()
            if self._audit and self._audit.fd >= 0:
                os.close(self._audit.fd)
                self._audit.fd = -1

    def exec(self, command: str, timeout: float | None = None) -> ExecResult:
        """Run one command and wait for its end. Raises PolicyDenied, SessionPoisoned, or HotenvError where the command
        cannot be sent or the audit cannot be written; whatever the command itself does is in the result."""
        return self._exec(command, timeout, [])

    def _exec(self, command: str, timeout: float | None, stop: list) -> ExecResult:
        """exec(), and `stop` ends the command as soon as something is in it."""
        text = _encoded(command)
        with self._lock:
            self._stop = stop
            self._check_usable()
            self._count += 1
            self._check_policy(command)
            self._record(False, event="start", command=self._redactor(command))
            begun = time.monotonic()
            try:
                result = self._run(text, begun + (self._timeout if timeout is None else timeout), begun)
            except HotenvError as error:
                self._record(True, event="failed", reason=str(error))
                raise
            fields = result.as_dict()
            self._record(True, event="end", **{name: fields[name] for name in fields if name not in _UNRECORDED})
            return result

    def _check_usable(self) -> None:
        if self._closed or self._poison:
            raise SessionPoisoned(EXIT_SYSTEM, self._poison or "the shell session is closed")

    def _check_policy(self, command: str) -> None:
        reason = self._policy and _denied(self._policy, command)
        if reason:
            reason = self._redactor(reason)
            self._record(False, event="blocked", command=self._redactor(command), reason=reason)
            raise PolicyDenied(EXIT_REFUSED, f"the policy does not allow it: {_shown(reason)}")

    def _record(self, ended: bool, **fields: object) -> None:
        """A line for the audit. One that says how a command ended waits for the next if it cannot be written now."""
        if self._audit:
            try:
                self._audit.write(ended, session=self._name, id=self._count, **fields)
            except HotenvError:
                if not ended:
                    raise

    # ---- one command ----

    def _run(self, text: bytes, deadline: float, begun: float) -> ExecResult:
        lost, self._unsaid = self._unsaid, False
        job = _Job(text, self._limit + 4 * self._redactor.longest + 4096)  # cleaning and masking make it shorter
        for attempt in range(2):
            try:
                if self._process is None:
                    self._start()
            except HotenvError as error:
                self._poison = f"the shell ended and cannot be started again: {error}"
                self._check_usable()
            try:
                self._attempt(job, deadline)
            except BaseException:  # KeyboardInterrupt: its output is not to become another command's
                self._end()
                self._unsaid = True
                raise
            if job.begun or job.late:
                break  # otherwise the shell had ended before: the command has not run, and a new shell may have it
        else:
            self._poison = "the shell ends before it takes a command"
        self._check_usable()
        (stdout, cut_out), (stderr, cut_err), (background, _) = [
            _presented(self._redactor, kept, self._limit, self._odd) for kept in (job.out, job.err, job.background)]
        return ExecResult(
            command=self._redactor(text.decode("utf-8", "surrogateescape")), stdout=stdout, stderr=stderr,
            exit_code=124 if job.late else job.status, duration_ms=int((time.monotonic() - begun) * 1000), cwd=self.cwd,
            truncated=cut_out or cut_err, timed_out=job.late, shell_restarted=job.lost or lost, background=background)

    def _attempt(self, job: _Job, deadline: float) -> None:
        """Send the command, and see it through to a record, to the end of the shell, or to the end of its time."""
        nowhere = _Kept(0)
        out, err, notes = self._taps
        begin, end = b"\0%s\n" % job.begin, b"\0%s\n" % job.nonce
        out.sink = err.sink = job.background
        self._drain()
        record = [(begin, job.out if self._remote else nowhere), (b"\0%s\0" % job.nonce, job.record)]
        if self._remote:
            out.marks, err.marks = record, [(begin, job.err), (end, nowhere)]
        else:
            out.sink, err.sink, notes.sink, notes.marks = job.out, job.err, nowhere, record
        self._send(b"__hotenv_begin %s \"$?\"; \\builtin eval %s %s\n__hotenv_end %s \"$?\" %s\n"
                   % (job.begin, _quoted(job.text), self._redirections, job.nonce, _plain_word(job.text)))

        def complete() -> bool:
            return end in job.record and not (self._remote and err.marks)

        finished = self._await(complete, deadline)
        job.begun = job.begun or len(record) < 2
        if not finished and notes.open:
            job.late = True
            finished = job.begun and not self._remote and not self._closed and self._interrupt(job, complete)
        if not finished or not self._accept(job):
            self._lose(job, deadline)
        elif not self._remote:
            self._drain()

    def _accept(self, job: _Job) -> bool:
        """Take over what the record says. A record that SIGINT has cut short stands before a whole one."""
        record = bytes(job.record).partition(b"\0%s\n" % job.nonce)[0].rpartition(b"\0%s\0" % job.nonce)[2]
        try:
            status, cwd, jobs, exports = record.split(b"\0")
            job.status, jobs = int(status), frozenset(map(int, jobs.split()))
        except ValueError:
            return False  # only code that has meddled with the shell itself can do that
        self._cwd, self._jobs, self._exports = cwd[:-1] or self._cwd, jobs, exports or self._exports
        return True

    def _interrupt(self, job: _Job, complete: Callable[[], bool]) -> bool:
        """Ctrl-C, as often as it takes, for all but background jobs. Whether the shell is ready for the next command.

        Only once the shell has begun the command: what SIGINT makes it drop of a line that it is still reading ends in
        the middle of it, and the rest would run.
        """
        self._stop, deadline = [], time.monotonic() + _SHELL_GRACE
        while self._taps[2].open and time.monotonic() < deadline and not self._closed:
            # Parents first: a shell whose child dies of SIGINT ends its list only if it has one as well.
            _signal_all([self._process.pid, *_family(self._process.pid, self._jobs)], _signal.SIGINT)
            self._send(b"\n\n__hotenv_end %s 124 ''\n" % job.nonce)
            if self._await(complete, min(deadline, time.monotonic() + _SHELL_GRACE / 8)):
                return True
        return False

    def _lose(self, job: _Job, deadline: float) -> None:
        """The shell has ended, or is ended here. A program that it became, by `exec`, may run until the deadline."""
        if self._unsent:
            self._poller.unregister(self._control)
            self._unsent = b""
        self._process.stdin.close()  # all that a shell without its pipes still waits for
        if not job.late and not self._taps[2].open:
            job.late = not self._await(self._exited, deadline, ended=True)
        self._drain()
        for tap in self._taps:  # what was held back as the beginning of a mark is none
            tap.release()
        job.lost = True
        job.status = self._end()

    # ---- the shell and its pipes ----

    def _await(self, done: Callable[[], bool], deadline: float, ended: bool = False) -> bool:
        """Move bytes until done() holds. False: first came the deadline, an interrupt, or its end unless `ended`."""
        while not done():
            left = deadline - time.monotonic()
            if left <= 0 or self._stop or self._closed or not (ended or self._taps[2].open):
                return False
            for fd, _ in self._poller.poll(min(left, 0.002 if ended else 0.05) * 1000):
                if fd == self._control:
                    self._send(b"")
                else:
                    self._read(next(tap for tap in self._taps if tap.fd == fd))
        return True

    def _read(self, tap: _Tap) -> int:
        size = tap.read(self._buffer)
        if not tap.open:
            self._poller.unregister(tap.fd)
        return size

    def _drain(self) -> None:
        """Take what the pipes hold by now. Not more: a background job may write for ever."""
        for tap in dict.fromkeys(self._taps):
            left = _SHELL_PIPE
            while tap.open and left > 0:
                size = self._read(tap)
                left = left - size if size else 0

    def _send(self, data: bytes) -> None:
        """Write to the shell what fits now; _await() writes the rest."""
        waiting, self._unsent = bool(self._unsent), self._unsent + data
        try:
            self._unsent = self._unsent[os.write(self._control, self._unsent):]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent = b""  # it has ended, and its pipes say so
        if bool(self._unsent) != waiting:
            self._poller.unregister(self._control) if waiting else self._poller.register(self._control, 4)  # POLLOUT

    def _start(self) -> None:
        """Start a shell; a second one gets the directory and the exports that the first had last."""
        import select
        self._poller, self._unsent = select.poll(), b""
        stop, self._stop = self._stop, []  # what ends a command does not end the shell that it waits for
        try:
            self._start_remote() if self._remote else self._start_local()
        except ValueError:
            raise HotenvError(EXIT_USAGE, "a name or a value is none that an environment can hold") from None
        except OSError as error:
            what = _shown(self._redactor(self._remote[0] if self._remote else "bash"))
            self._end()
            raise HotenvError(EXIT_SYSTEM, f"cannot start {what}: {error.strerror}") from None
        except HotenvError:
            self._end()
            raise
        finally:
            self._stop = stop

    def _restoring(self) -> bytes:
        """Lines for a new shell: where to go, and what to export instead of what it was born with."""
        lines = b"\\builtin cd -- %s\n" % _quoted(self._cwd) if self._cwd else b""
        if self._exports:
            lines += (b"__hotenv_pwd=${PWD-}; \\builtin unset -v $(\\builtin compgen -e)\n%s\n"
                      b"PWD=$__hotenv_pwd; \\builtin unset -v __hotenv_pwd\n" % self._exports)
        return lines

    def _start_local(self) -> None:
        host = build_isolated_env(os.environ) if self._isolated else os.environ
        env = {name: host[name] for name in host if name not in _SHELL_DROPPED and not name.startswith("BASH_FUNC_")}
        # ENV is common as a name of one's own, and means nothing to a bash that is not in POSIX mode when it starts.
        given = [name for name in self._environment if name not in _SHELL_DROPPED - {"ENV"}]
        env.update((name, self._environment[name]) for name in given)
        self.omitted = [name for name in self._environment if name not in env]
        if self._cwd is None:
            self._cwd = os.getcwdb()
        out, err, notes = self._spawn(_SHELL_ARGV, env)
        self._redirections = b"</dev/null >&%d 2>&%d %d>&- %d>&- %d>&-" % (out, err, out, err, notes)
        self._send(_shell_setup(notes, 0) + self._restoring())

    def _start_remote(self) -> None:
        """In two steps, because a login shell may read ahead: first it says that it is there and becomes bash."""
        self._spawn(self._remote, None)
        job, hello, nowhere = _Job(b"", 512), _nonce(), _Kept(0)
        out, err, _ = self._taps
        out.marks, err.sink = [(hello + b"\n", nowhere)], job.err
        self._send(b"echo %s; exec env HOTENV_SHELL=%s %s\n" % (hello, job.begin, " ".join(_SHELL_ARGV).encode()))
        self._expect(lambda: not out.marks, job)
        out.marks, err.marks = [(b"\0%s\0" % job.nonce, job.record)], [(b"\0%s\n" % job.nonce, nowhere)]
        err.sink = nowhere  # from here on it is bash, which says that it has no terminal
        self._redirections = b"</dev/null >&240 2>&241 240>&- 241>&-"
        lines = [b"exec 240>&1 241>&2 >/dev/null 2>&1\n", _shell_setup(240, 241)]
        names = [name for name in self._environment
                 if name.isascii() and name.isidentifier() and name not in _SHELL_DROPPED - {"ENV"}]
        self.omitted = [name for name in self._environment if name not in names]
        if self._exports:
            lines += [self._farewell, self._restoring()]
        else:
            lines += [b"export %s=%s\n" % (name.encode(), _quoted(_encoded(self._environment[name]))) for name in names]
            lines += [b"\\builtin cd -- %s || exit 1\n" % _quoted(self._cwd)] if self._cwd else []
        self._send(b"".join(lines) + b"__hotenv_end %s \"$$\" ''\n" % job.nonce)
        self._expect(lambda: b"\0%s\n" % job.nonce in job.record and not err.marks, job)
        self._accept(job)
        # The other side may not notice when we hang up: what still runs then, the shell that takes its place will end.
        self._farewell = (b"[[ $(</proc/%d/environ) == *HOTENV_SHELL=%s* ]] && \\builtin kill -9 -- -%d %d\n"
                          % (job.status, job.begin, job.status, job.status))

    def _expect(self, done: Callable[[], bool], job: _Job) -> None:
        if self._await(done, time.monotonic() + _SHELL_CONNECT):
            return
        reason = "gave no answer in time"
        if not self._taps[2].open:
            self._await(self._exited, time.monotonic() + _SHELL_GRACE, ended=True)
            self._drain()
            reason = f"ended with status {self._end()} (it must lead to a shell, bash and the directory asked for)"
        said = _presented(self._redactor, job.err, 400)[0].strip()
        raise HotenvError(EXIT_SYSTEM, _shown(f"{self._redactor(self._remote[0])} {reason}{said and ': ' + said}"))

    def _spawn(self, argv: Sequence[str], env: Mapping[str, str] | None) -> list[int]:
        """Start the program, and tap it. The numbers of the pipes, which a local shell inherits beside its 1 and 2."""
        import subprocess
        ours, theirs = [], []
        try:
            for _ in range(2 if self._remote else 3):
                _wide_pipe(ours, theirs)
            out, err = theirs if self._remote else [subprocess.DEVNULL] * 2
            # As below nohup, or behind a `&`: a shell would stay so.
            deaf = _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN
            self._process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=out, stderr=err, bufsize=0,
                                             pass_fds=() if self._remote else theirs, start_new_session=True,
                                             preexec_fn=_hear_interrupts if deaf else None)
        except BaseException:
            _close_all(ours)
            raise
        finally:
            _close_all(theirs)
        taps = [_Tap(near, _Kept(0)) for near in ours]
        self._taps = taps if len(taps) == 3 else [*taps, taps[0]]  # the last is the one that the records come on
        self._control = self._process.stdin.fileno()
        os.set_blocking(self._control, False)
        for tap in taps:
            self._poller.register(tap.fd, 1)  # POLLIN
        return theirs

    def _exited(self) -> bool:
        """Whether the shell has ended. It is not reaped here, so that its id stays its own until _end() has used it."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _end(self) -> int:
        """End the shell and all that is left of its session; the shell's exit status, 128 and more for a signal."""
        process, self._process = self._process, None
        if process is None:
            return 0
        _signal_all([process.pid], _signal.SIGSTOP)  # it starts nothing more
        for _ in range(20):
            family = _family(process.pid)
            _signal_all(family, _signal.SIGKILL)
            if not family:
                break
        _signal_all([process.pid], _signal.SIGKILL)
        process.stdin.close()
        _close_all({tap.fd for tap in self._taps})
        status = process.wait()
        return 128 - status if status < 0 else status


class _Job:
    """One command on its way: what is sent, what has come back."""

    def __init__(self, text: bytes, room: int) -> None:
        self.text, self.begin, self.nonce = text, _nonce(), _nonce()
        self.out, self.err, self.background, self.record = _Kept(room), _Kept(room), _Kept(room), _Record()
        self.begun = self.late = self.lost = False
        self.status = 0


class _Record(bytearray):
    """What the shell says of a command. Bounded: a shell that was meddled with may say anything."""

    def add(self, data: memoryview) -> None:
        if len(self) + len(data) <= _SHELL_RECORD_MAX:
            self.extend(data)


def _nonce() -> bytes:
    return os.urandom(16).hex().encode()


def _shell_setup(notes: int, errors: int) -> bytes:
    """The first lines for a shell; `errors` is where the end of stderr is marked, or 0."""
    mark = f"builtin printf '\\0%s\\n' \"$1\" >&{errors}" if errors else ""
    return _SHELL_SETUP.replace("{N}", str(notes)).replace("{MARK_E}", mark).encode()


def _wide_pipe(ours: list[int], theirs: list[int]) -> None:
    """Add the ends of a new pipe: ours, and the shell's, with a number that nobody writes into a script."""
    import fcntl
    near, far = os.pipe()
    ours.append(near)
    try:
        theirs.append(fcntl.fcntl(far, fcntl.F_DUPFD_CLOEXEC, 200))
        if sys.platform == "linux":
            fcntl.fcntl(near, 1031, _SHELL_PIPE)  # F_SETPIPE_SZ
    except OSError as error:
        if error.errno != errno.EPERM or len(ours) > len(theirs):  # EPERM: over the user's quota of wide pipes
            raise
    finally:
        os.close(far)


def _close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


def _encoded(command: str) -> bytes:
    try:
        data = command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = b"\0"
    if b"\0" in data or len(data) > _SHELL_COMMAND_MAX:
        raise HotenvError(EXIT_USAGE, "a command may hold no NUL and no lone surrogate, and at most 16 MiB")
    return data


def _plain_word(text: bytes) -> bytes:
    """The first word of a command that cannot change what is exported unless it is a function or an alias; else ''.

    The shell looks whether it is one of those. Exports are costly to list, and most commands are of this kind.
    """
    import re
    plain = re.fullmatch(rb"([\w./-]+)(?: +[\w./:@%+,-]+)*", text)
    return plain[1] if plain and plain[1].decode() not in _SHELL_EXPORTERS else b"''"


_UNRECORDED = frozenset(("command", "stdout", "stderr", "background"))


# What a policy looks at. These words stand before a command; those are followed by none up to the next separator.
_POLICY_GO_ON = frozenset("if then else elif do while until ! { time coproc".split())
_POLICY_NO_MORE = frozenset("fi done } for select".split())


def _load_policy(policy: str | dict) -> dict:
    """`{"allow": [...], "deny": [...]}` from a file, or as it is. An empty list `allow` allows nothing; none, all."""
    import json
    try:
        if isinstance(policy, str):
            with open(policy, "rb") as file:
                policy = json.loads(file.read())
        lists = {key: frozenset(words if type(words) in (list, frozenset) else [0]) for key, words in policy.items()}
    except OSError as error:
        raise HotenvError(EXIT_SYSTEM, f"cannot read the policy {_shown(str(policy))}: {error.strerror}") from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        lists = {"": ()}
    if not lists.keys() <= {"allow", "deny"} or {type(word) for words in lists.values() for word in words} - {str}:
        raise HotenvError(EXIT_USAGE, 'the policy must be JSON like {"allow": ["git", "make"], "deny": ["sudo"]}')
    return lists


def _denied(policy: Mapping, command: str) -> str:
    """Why the policy does not let the command run, or ''."""
    try:
        words = _FirstWords(command).all()
    except (ValueError, IndexError, RecursionError):
        return "its commands cannot be told apart"
    for word in words:
        if {word, word.rpartition("/")[2]} & policy.get("deny", frozenset()):
            return f"{word} is denied"
        if word not in policy.get("allow", (word,)):
            return f"{word} is not among the allowed"
    return ""


class _FirstWords:
    """Reads shell text for the first word of every simple command, those in substitutions included, quotes taken off.

    It knows words and separators, not the whole grammar. ValueError or IndexError: it lost its way.
    """

    def __init__(self, text: str) -> None:
        self.text, self.at, self.found, self.heredocs, self.ticks = text, 0, [], [], 0

    def all(self) -> list[str]:
        self._commands("")
        return self.found

    def _next(self, pattern: str) -> str:
        import re
        match = re.compile(pattern, re.S).match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match[0] if match else ""

    def _commands(self, closer: str, array: bool = False) -> None:
        """Up to `closer`: a parenthesis, a backtick, `esac`, or the end of the text."""
        first = not array
        while True:
            self._next(r"(?:[ \t\r]|\\\n)*(?:#[^\n]*)?")
            sign = self._next(r"\n|;;&?|;&|&&|\|\||\|&|&>>?|[;&|()]|<<<|<<-?|\d*(?:<>|[<>]&|>>|>\||[<>](?!\())")
            sign = sign or (self._next("`") if self.ticks else "")
            if sign == closer and sign or not (closer or self.text[self.at:] or sign):
                return
            if sign == "\n":
                self._skip_heredocs()
            if sign == "(":
                first = self._parenthesis(first)
            elif sign in (")", "`"):
                raise ValueError
            elif sign[:2] in (";;", ";&") and closer == "esac":
                if not self._pattern():
                    return
                first = True
            elif sign.strip("0123456789")[:1] in ("<", ">") and sign or sign[:2] == "&>":
                self._redirection(sign)
            elif sign:
                first = not array
            else:
                word, plain = self._word()
                if plain and word == closer:
                    return
                first = first and self._first(word, plain)

    def _parenthesis(self, first: bool) -> bool:
        if self._next(r"\("):
            self._quoted("))")  # a subshell in a subshell can look the same: that is refused
        elif first:
            self._commands(")")
        elif self._next(r"[ \t]*\)"):
            self.found.pop()  # it is a function that is defined here
            return True
        else:
            raise ValueError
        return False

    def _first(self, word: str, plain: bool) -> bool:
        """Take in a word where a command may begin. Whether one may still begin after it."""
        import re
        if word.startswith("-") or plain and word in _POLICY_GO_ON or re.match(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", word):
            return True
        if plain and word == "function":
            self._next(r"[ \t]+")
            self._word()
            self._next(r"[ \t]*\([ \t]*\)")
            return True
        if plain and word == "case":
            self._next(r"[ \t]+")
            self._word()
            self._next(r"\s+in\b")
            if self._pattern():
                self._commands("esac")
        elif plain and word == "[[":
            self._quoted("]]")
        elif not plain or word not in _POLICY_NO_MORE:
            self.found.append(word)
        return False

    def _pattern(self) -> bool:
        """Over a pattern of `case`, up to its parenthesis. False: it was `esac`."""
        if self._next(r"(?:\s|#[^\n]*\n)*esac\b"):
            return False
        self._next(r"\s*\(?")
        while not self._next(r"[ \t]*\)"):
            self._next(r"[ \t|]*")
            self._word()
        return True

    def _redirection(self, sign: str) -> None:
        self._next(r"[ \t]*")
        word, plain = self._word()
        if sign.lstrip("0123456789") in ("<<", "<<-"):
            self.heredocs.append((word, plain))

    def _skip_heredocs(self) -> None:
        for delimiter, plain in self.heredocs:
            import re
            end = re.compile(rf"(?m)^\t*{re.escape(delimiter)}$").search(self.text, self.at)
            body = _FirstWords(self.text[self.at:end.start() if end else None] + '"')
            if plain:  # what it substitutes is run
                body._quoted('"')
                self.found += body.found
            self.at = end.end() if end else len(self.text)
        self.heredocs = []

    def _word(self) -> tuple[str, bool]:
        """The next word without its quotes, and whether it had none."""
        start, word, plain = self.at, "", True
        while self.at < len(self.text):
            char = self._next(r"[^ \t\r\n;&|()<>`\\'\"$]+|\\.|'[^']*'|\$'(?:[^'\\]|\\.)*'|\$?\"|[<>]\(|\$(?![({])")
            if char.endswith('"'):
                word, plain = word + self._quoted('"'), False
            elif char[:1] in ("\\", "'") or char[:2] == "$'":
                word, plain = word + char.lstrip("$")[1:].rstrip("'").replace("\n", ""), False
            elif char in ("<(", ">("):
                self._commands(")")
                word += "$"
            elif char:
                word += char
            elif self._substitution():
                word += "$"
            elif word.endswith("=") and self._next(r"\("):
                self._commands(")", array=True)
            else:
                break
        if self.at == start:
            raise ValueError
        return word, plain

    def _substitution(self) -> bool:
        sign = self._next(r"\$\(\(|\$\(|\$\{|`" if not self.ticks else r"\$\(\(|\$\(|\$\{")
        if sign in ("$((", "${"):
            self._quoted("))" if sign == "$((" else "}")
        elif sign == "`":
            self.ticks += 1
            self._commands("`")
            self.ticks -= 1
        elif sign:
            self._commands(")")
        return bool(sign)

    def _quoted(self, closer: str) -> str:
        """What stands before `closer`, where only substitutions are run. The text."""
        text, depth = "", 0
        while depth or not self.text.startswith(closer, self.at):
            if self._substitution():
                text += "$"
                continue
            char = self.text[self.at]
            if closer != '"' and self._next(r"'[^']*'"):
                continue
            self.at += 1 + (char == "\\")
            if closer != '"' and char == '"':
                self._quoted('"')
            elif closer == "))" and char in "()":
                depth += 1 if char == "(" else -1
                if depth < 0:
                    raise ValueError
            text += self.text[self.at - 1]
        self.at += len(closer)
        return text
''')


# ==== mcp =============================================================================================================
# The Model Context Protocol on stdio over shell sessions: one JSON message a line, and nothing else ever on stdout.
#
# It keeps no snapshot. Each session_open fetches one, for that shell and its masks alone; agents see names, not values.
# stdin is read all the time; each shell has a thread that does its work in the order of arrival.

_fold("mcp", r'''
_unfold("shell session")

_MCP_HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # revisions that begin with `initialize`
_MCP_STATELESS = "2026-07-28"  # the revision where each request says its own
_MCP_LINE_MAX = 32 << 20  # bytes of one message: the longest command, escaped
_MCP_SHELLS_MAX = 32  # shells at once: each is a few processes and descriptors
_MCP_QUEUE_MAX = 64  # commands that may wait for one shell
_MCP_TIMEOUT_MAX = 86400.0  # seconds that a command may ask for
_MCP_TOO_LONG = object()

_MCP_INSTRUCTIONS = (
    "Shells with the user's secrets in their environment. Refer to secrets by name ($NAME): their values are masked in "
    "all output. Open a session, run commands in it (directory and variables persist), close it.")


def _mcp_tools(remotes: Iterable[str]) -> list[dict]:
    """The tools as tools/list shows them; what arguments they take is checked against this too."""
    def typed(kind: str, text: str, **more: object) -> dict:
        return {"type": kind, "description": text, **more}

    session = {"session": typed("string", "id from session_open")}
    opening = {"cwd": typed("string", "directory to start in"),
               "isolated": typed("boolean", "leave out the user's own environment, but for PATH, HOME and such")}
    if remotes:
        opening["remote"] = typed("string", "where; default: this machine", enum=sorted(remotes))
    execution = {**session, "command": typed("string", "bash; may have several lines; stdin is empty"),
                 "timeout": typed("number", "seconds, default 30; then it is interrupted, exit_code 124")}
    table = (
        ("session_open", "Open a bash with the user's secrets in its environment. Returns its id and the names of the "
         "secrets.", opening, []),
        ("session_exec", "Run a command and wait for its end. Returns stdout, stderr, exit_code, cwd as JSON, secrets "
         "masked. State persists, unless shell_restarted: then only directory and exports do. Start servers with a "
         "trailing &; what they print comes as `background` with the next command.", execution, ["session", "command"]),
        ("session_list", "List the open sessions.", {}, []),
        ("session_close", "End a session and everything that runs in it.", session, ["session"]))
    return [{"name": name, "description": text, "inputSchema": {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False}}
        for name, text, properties, required in table]


class _McpError(Exception):
    """An answer that is a JSON-RPC error. What a tool could not do is none: the agent is told in the result."""

    def __init__(self, code: int, message: str, **data: object) -> None:
        super().__init__(code, message, data)


def _serve_mcp(fetch: Callable[[], tuple], *, remotes: Mapping[str, str] = {}, policy: str | None = None,
               audit: str | None = None, default_timeout: float = _SHELL_TIMEOUT) -> int:
    """Serve stdin and stdout until stdin ends or a signal comes; then every shell ends too.

    `fetch` returns the snapshot of a hotenv session, and a function that says whether that session is still there.
    """
    _harden()
    if audit is not None:
        os.close(_Audit(audit).fd)
    options = {"policy": None if policy is None else _load_policy(policy), "audit": audit, "timeout": default_timeout}
    out, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    os.dup2(2, 1)  # whatever prints, prints there
    server = _McpServer(fetch, dict(remotes), options, out)

    def leave(number: int, frame: object) -> None:
        os.dup2(nothing, 0)  # the end of the input is the one way out
        os.dup2(nothing, out)

    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, leave)
    for line in _mcp_lines(0):
        server.take(line)
    server.close_all()
    return 0


def _mcp_lines(fd: int) -> Iterator[object]:
    """Each line that comes; _MCP_TOO_LONG for one that is not kept."""
    line = bytearray()
    while True:
        data = os.read(fd, 1 << 18)
        *whole, rest = data.split(b"\n")
        for piece in whole:
            yield line + piece if len(line) + len(piece) <= _MCP_LINE_MAX else _MCP_TOO_LONG
            line = bytearray()
        line += rest if len(line) <= _MCP_LINE_MAX else b""
        if not data:
            if line:
                yield line if len(line) <= _MCP_LINE_MAX else _MCP_TOO_LONG
            return


class _McpShell:
    """A shell session, and the thread that does what is asked of it."""

    def __init__(self, remote: str | None) -> None:
        import queue
        import threading
        self.remote, self.session, self.closing, self.work = remote, None, False, queue.Queue()
        self.alive: Callable[[], bool] = lambda: True  # whether the hotenv session that it was fetched from is there
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for task in iter(self.work.get, None):
            task()

    def close(self) -> None:
        self.closing = True
        if self.session:
            self.session.close()
        self.work.put(None)


class _McpServer:
    """The protocol, and the shells by their ids."""

    def __init__(self, fetch: Callable, remotes: dict, options: dict, out: int) -> None:
        import threading
        self.fetch, self.remotes, self.options, self.out = fetch, remotes, options, out
        self.tools, self.shells, self.count = _mcp_tools(remotes), {}, 0
        self.running = {}  # id of a call under way -> what is true once it is cancelled
        self.writing, self.counting = threading.Lock(), threading.Lock()

    def send(self, message: object) -> None:
        import json
        import select
        if message is None:
            return
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n"
        data = text.encode("utf-8", "backslashreplace")  # what is no character in UTF-8 is in JSON's own spelling
        room = select.poll()
        room.register(self.out, select.POLLOUT)
        with self.writing:
            try:
                while data:  # in pieces that do not block: `leave` must be able to end this
                    if room.poll(1000):
                        data = data[os.write(self.out, data[:PIPE_BUF]):]
            except OSError as error:
                if error.errno != errno.EPIPE:  # the client has gone: stdin will end too
                    raise

    def take(self, line: object) -> None:
        """One line of input: a message, or several in a list."""
        import json
        try:
            message = json.loads(line) if line is not _MCP_TOO_LONG else None
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, list) and message:
            self.take_batch(message)
        elif message is None:
            self.send(_mcp_error(None, _McpError(-32700, "not JSON, or a line of more than 32 MiB")))
        else:
            self.request(message, self.send)

    def take_batch(self, messages: list) -> None:
        """Each is done as if it stood alone; the answers go out in one list, when the last one is there."""
        answers, due = [], len(messages)

        def collect(answer: dict | None) -> None:
            nonlocal due
            with self.counting:
                due -= 1
                answers.extend([answer] if answer else [])
                if due or not answers:
                    return
            self.send(answers)

        for message in messages:
            self.request(message, collect)

    def request(self, message: object, reply: Callable) -> None:
        """Do what a message asks. `reply` is called once, now or later, with None where no answer is due."""
        number = None
        try:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise _McpError(-32600, "not a JSON-RPC 2.0 message")
            if "method" not in message and ("result" in message or "error" in message):
                return reply(None)  # an answer to something that we never ask
            method, params = message.get("method"), message.get("params", {})
            if not isinstance(method, str) or "id" in message and type(message["id"]) not in (str, int):
                raise _McpError(-32600, "method must be a string, id a string or an integer")
            if "id" not in message:
                self.notified(method, params)
                return reply(None)
            number = message["id"]
            if not isinstance(params, dict):
                raise _McpError(-32602, "params must be an object")
            stateless = _mcp_is_stateless(params)

            def finish(result: dict | None) -> None:
                if result is not None and stateless:
                    result.update(resultType="complete", _meta={"io.modelcontextprotocol/serverInfo": _mcp_info()})
                reply(None if result is None else {"jsonrpc": "2.0", "id": number, "result": result})

            if method == "tools/call":
                self.call(number, params, finish)
            else:
                finish(self.plain(method, params))
        except _McpError as error:
            reply(_mcp_error(number, error))
        except Exception as error:  # ours, and its text might quote a value
            reply(_mcp_error(number, _McpError(-32603, f"internal error: {type(error).__name__}")))

    def notified(self, method: str, params: object) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            call = params.get("requestId")
            self.running.get(call if type(call) in (str, int) else None, []).append(True)

    def plain(self, method: str, params: dict) -> dict:
        """The result of what is answered at once."""
        about = {"capabilities": {"tools": {}}, "instructions": _MCP_INSTRUCTIONS}
        cached = {"ttlMs": 3_600_000, "cacheScope": "private"} if _mcp_is_stateless(params) else {}
        if method == "initialize":
            offered = params.get("protocolVersion")
            version = offered if offered in _MCP_HANDSHAKE else _MCP_HANDSHAKE[-1]
            return {"protocolVersion": version, "serverInfo": _mcp_info(), **about}
        if method == "server/discover":
            return {"supportedVersions": [_MCP_STATELESS, *_MCP_HANDSHAKE], **about, **cached}
        if method == "tools/list":
            return {"tools": self.tools, **cached}
        if method == "ping":
            return {}
        raise _McpError(-32601, f"no method {_shown(method[:80])}")

    def call(self, number: object, params: dict, finish: Callable) -> None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        tool = next((tool for tool in self.tools if tool["name"] == name), None)
        if tool is None or not isinstance(arguments, dict):
            raise _McpError(-32602, "no such tool, or its arguments are no object")
        wrong = _mcp_wrong(tool["inputSchema"], arguments)
        ended = "" if wrong else self.close_ended()
        if wrong or ended and name != "session_open":
            return finish(_mcp_said(wrong or ended, True))
        shell = self.shells.get(arguments.get("session"))
        if name == "session_list":
            finish(_mcp_said([
                {"session": each, "where": shell.remote or "this machine", "waiting": shell.work.qsize(),
                 "cwd": shell.session.cwd if shell.session else ""} for each, shell in list(self.shells.items())]))
        elif name == "session_open":
            self.open(number, arguments, finish)
        elif shell is None or shell.work.qsize() >= _MCP_QUEUE_MAX:
            finish(_mcp_said("that session is not open, or has too much to do: see session_list, session_open", True))
        elif name == "session_close":
            self.shells.pop(arguments["session"], None)
            shell.close()
            finish(_mcp_said({"closed": arguments["session"]}))
        else:
            self.enqueue(shell, number, finish, lambda stop: shell.session._exec(
                arguments["command"], arguments.get("timeout"), stop).as_dict())

    def open(self, number: object, arguments: dict, finish: Callable) -> None:
        if len(self.shells) >= _MCP_SHELLS_MAX:
            return finish(_mcp_said(f"{_MCP_SHELLS_MAX} sessions are open: close one", True))
        remote = arguments.get("remote")
        shell, self.count = _McpShell(remote), self.count + 1
        name = f"s{self.count}"
        self.shells[name] = shell

        def opened(stop: list) -> dict:
            try:
                environment, shell.alive = self.fetch()
                shell.session = session = ShellSession(
                    environment, remote=self.remotes[remote] if remote else None, cwd=arguments.get("cwd"),
                    isolated=arguments.get("isolated", False), **self.options)
            except BaseException:
                self.shells.pop(name, None)
                shell.work.put(None)
                raise
            if shell.closing:
                session.close()
            return {"session": name, "cwd": session.cwd, "secrets": sorted(environment),
                    "unmaskable": session.unmaskable, "not_exported": session.omitted}

        self.enqueue(shell, number, finish, opened)

    def enqueue(self, shell: _McpShell, number: object, finish: Callable, work: Callable) -> None:
        """Have the shell's thread do the work. A call that is cancelled ends as by a time limit, without an answer."""
        stop = self.running[number] = []

        def task() -> None:
            try:
                result = None if stop else _mcp_said(work(stop))
            except HotenvError as error:
                result = _mcp_said(str(error), True)
            except Exception as error:  # its text might quote a value, and a traceback would
                result = _mcp_said(f"internal error: {type(error).__name__}", True)
            self.running.pop(number, None)
            finish(None if stop else result)

        shell.work.put(task)

    def close_ended(self) -> str:
        """Where the hotenv session behind a shell has ended, ends the shell as well, and says so."""
        names = [name for name, shell in list(self.shells.items()) if not shell.alive()]
        if not names:
            return ""
        for name in names:
            self.shells.pop(name).close()
        return (f"the hotenv session has ended, and with it the shells {', '.join(names)}. "
                "The user can start one with: hotenv serve < secrets.env. Then call session_open.")

    def close_all(self) -> None:
        while self.shells:
            self.shells.popitem()[1].close()


def _mcp_info() -> dict:
    return {"name": "hotenv", "version": __version__}


def _mcp_is_stateless(params: dict) -> bool:
    """Whether the request says its own protocol revision; an error if that is none that we know."""
    meta = params.get("_meta")
    revision = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
    if revision not in (None, _MCP_STATELESS):
        raise _McpError(-32022, "unsupported protocol version", requested=str(revision),
                        supported=[_MCP_STATELESS, *_MCP_HANDSHAKE])
    return revision is not None


def _mcp_error(number: object, error: _McpError) -> dict:
    code, message, data = error.args
    details = {"code": code, "message": message, **({"data": data} if data else {})}
    return {"jsonrpc": "2.0", "id": number, "error": details}


def _mcp_said(content: object, failed: bool = False) -> dict:
    """The result of a tool: one text, JSON unless it is a sentence about what went wrong."""
    import json
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _mcp_wrong(schema: dict, arguments: dict) -> str:
    """What is wrong with a tool's arguments, or ''."""
    kinds = {"string": (str,), "boolean": (bool,), "number": (int, float)}
    for name in schema["required"]:
        if name not in arguments:
            return f"the argument {name} is missing"
    for name, value in arguments.items():
        expected = schema["properties"].get(name)
        if expected is None:
            return f"there is no argument {_shown(name[:80])}"
        if type(value) not in kinds[expected["type"]]:
            return f"the argument {name} must be a {expected['type']}"
        if value not in expected.get("enum", [value]):
            return f"the argument {name} must be one of {', '.join(expected['enum'])}"
        if name == "timeout" and not 0 < value <= _MCP_TIMEOUT_MAX:
            return "the argument timeout must be above 0 and at most 86400"
    return ""
''')


# ==== terminal ========================================================================================================
# Questions, and answers that nobody sees.

_fold("terminal", r'''
class _Terminal:
    """Asks on /dev/tty without echo; whatever ends or stops us in the meantime, the terminal is left as it was."""

    tty = -1

    def _open(self) -> None:
        import termios

        self.termios = termios
        try:
            self.tty = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self.settings = termios.tcgetattr(self.tty)
            foreground = os.tcgetpgrp(self.tty) == os.getpgrp()
        except (OSError, termios.error):
            raise HotenvError(EXIT_SYSTEM, "--prompt needs a terminal to ask on, and there is none") from None
        if not foreground:
            raise HotenvError(EXIT_SYSTEM, "--prompt cannot ask from the background: start it in the foreground; "
                                           "--background goes there once everything is asked")

    def ask(self, question: str) -> str:
        """The line that is typed; a signal that would end us does so, by way of _Killed."""
        if self.tty < 0:
            self._open()
        ending = [_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT]
        before = {number: _signal.getsignal(number) for number in (*ending, _signal.SIGTSTP)}
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        self.shown = (_shown(question.strip()) or "value").encode("utf-8", "backslashreplace") + b": "
        try:
            for number in ending:
                if before[number] != _signal.SIG_IGN:
                    _signal.signal(number, _killed)
            _signal.signal(_signal.SIGTSTP, self._stop)
            self._start()
            return self._line()
        except (OSError, self.termios.error) as error:
            raise HotenvError(EXIT_SYSTEM, f"cannot ask on the terminal: {os.strerror(error.args[0])}") from None
        finally:
            try:
                _signal.pthread_sigmask(_signal.SIG_BLOCK, before)  # one more waits until all is as it was
            finally:
                self._restore()
                for number, handler in before.items():
                    _signal.signal(number, handler)
                _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def _start(self) -> None:
        quiet = list(self.settings)
        quiet[3] &= ~(self.termios.ECHO | self.termios.ECHONL)
        self.termios.tcsetattr(self.tty, self.termios.TCSAFLUSH, quiet)
        os.write(self.tty, self.shown)

    def _line(self) -> str:
        typed = b""
        while not typed.endswith(b"\n"):
            piece = os.read(self.tty, 4096)
            if not piece:
                break
            typed += piece
        os.write(self.tty, b"\n")
        if b"\0" in typed:
            raise HotenvError(EXIT_INPUT, "what was typed holds a NUL: no environment can hold it")
        return typed.rstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def _stop(self, number: int, frame: object) -> None:
        self._restore()
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)  # stopped here, until SIGCONT
        _signal.signal(number, self._stop)
        self._start()

    def _restore(self) -> None:
        try:
            self.termios.tcflush(self.tty, self.termios.TCIFLUSH)  # half an answer is not for the shell
            self.termios.tcsetattr(self.tty, self.termios.TCSANOW, self.settings)
        except self.termios.error:
            pass  # the terminal has gone
''')


# ==== formats =========================================================================================================
# What `dump` prints, each form without loss; what one cannot carry is refused by its name.

_fold("formats", r'''
def _as_dotenv(env: Dict[str, str]) -> str:
    """Back through parse_dotenv to the same values, whatever they are."""
    allowed = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
    lines = []
    for name, value in env.items():
        if not name or not set(name) <= allowed or not _is_utf8(value):
            raise _uncarriable(name, "dotenv")
        if value and set(value) <= allowed:
            lines.append(f"{name}={value}\n")
        elif "\r" in value:  # only "..." has an escape for it
            value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("${", "\\${")
            lines.append(f'{name}="{value}"\n')
        else:
            value = value.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"{name}='{value}'\n")
    return "".join(lines)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def _uncarriable(name: str, form: str) -> HotenvError:
    return HotenvError(EXIT_USAGE, f"dump: the format {form} cannot carry {_shown(name)}: leave it out with --only, "
                                   "or take --format nul")


# What sh, bash or zsh hold read-only, keep for themselves, or take as a number or a list: found by trying.
_SHELL_OWN = """
    ARGC BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_LINENO BASH_SOURCE
    BASH_SUBSHELL BASH_VERSINFO COLUMNS DIRSTACK EGID EPOCHREALTIME EPOCHSECONDS ERRNO EUID FUNCNAME FUNCNEST GID
    GROUPS HISTCHARS HISTCMD HISTSIZE KEYBOARD_HACK KEYTIMEOUT LINENO LINES LISTMAX MAILCHECK OPTIND PPID RANDOM
    SAVEHIST SECONDS SHELLOPTS SHLVL SRANDOM TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID USERNAME WATCH
    ZSH_EVAL_CONTEXT ZSH_SUBSHELL _ aliases argv builtins cdpath commands dirstack dis_aliases dis_builtins
    dis_functions dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases fignore fpath
    funcfiletrace funcsourcetrace funcstack functions functions_source functrace galiases histchars history
    historywords jobdirs jobstates jobtexts keymaps mailpath manpath module_path modules nameddirs options
    parameters patchars path pipestatus psvar reswords saliases signals status termcap terminfo userdirs usergroups
    watch widgets zsh_eval_context zsh_scheduled_events
"""


def _as_sh(env: Dict[str, str]) -> str:
    lines = []
    for name, value in env.items():
        if not (name.isascii() and name.isidentifier()) or name in _SHELL_OWN.split():
            raise _uncarriable(name, "sh")
        quoted = value.replace("'", "'\\''")
        lines.append(f"export {name}='{quoted}'\n")
    return "".join(lines)


def _as_names(env: Dict[str, str]) -> str:
    for name in env:
        if "\n" in name:
            raise _uncarriable(name, "names")
    return "".join([f"{name}\n" for name in env])


def _as_json(env: Dict[str, str]) -> str:
    import json

    for name, value in env.items():
        if not _is_utf8(name + value):
            raise _uncarriable(name, "json")
    return json.dumps(env, indent=2, ensure_ascii=False) + "\n"


_FORMATS: Dict[str, Callable[[Dict[str, str]], str]] = {
    "dotenv": _as_dotenv,
    "sh": _as_sh,
    "json": _as_json,
    "nul": lambda env: "".join([f"{name}={value}\0" for name, value in env.items()]),
    "names": _as_names,
}
''')


# ==== options =========================================================================================================
# What the options of a command are when nothing is said, and how argparse reads them.


class _Options:
    """Every option of every command as it is when nothing is said."""

    socket = peer_uid = level = log = policy = audit = None
    force = background = prompt = isolated = optional = mask = json = False
    guards = None
    timeout, max_age, format = IDLE_TIMEOUT, MAX_DURATION, "plain"
    pass_through: List[str] = []
    define: List[str] = []
    bin: List[str] = []
    no_mask: List[str] = []
    only: List[str] = []
    remote: List[str] = []


_fold("options", r'''
def _parser(command: str, summary: str, example: str) -> Any:
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            hint = f"see: {_invocation()} {command} --help"
            if command == "serve" and message.startswith("unrecognized arguments: ") and message[24] != "-":
                hint = f"its input comes from stdin: {_invocation()} serve < secrets.env"
            raise HotenvError(EXIT_USAGE, f"{command}: {_shown(message)}; {hint}")

        def print_help(self, file: Any = None) -> None:
            _write(1, self.format_help().encode("utf-8", "backslashreplace"))

    def formatter(prog: str) -> Any:
        return argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=100)

    return Parser(prog=f"hotenv {command}", description=summary, epilog=f"example:\n{example}", allow_abbrev=False,
                  formatter_class=formatter)


def _add_session_options(parser: Any) -> None:
    parser.add_argument("--socket", metavar="PATH",
                        help="ask this socket; else $HOTENV_SOCKET, else the nearest .hotenv")
    parser.add_argument("--peer-uid", metavar="N", type=int, help="also believe a server of this user id")


def _parse_duration(text: str) -> float:
    import argparse
    import re

    units = {"d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}
    number = r"(?:\d+\.?\d*|\.\d+)"
    if re.fullmatch(rf"{number}|(?:{number}d)?(?:{number}h)?(?:{number}m)?(?:{number}s)?", text, re.ASCII) and text:
        seconds = sum(float(n) * units[u] for n, u in re.findall(rf"({number})([dhms]?)", text))
        if 0 < seconds <= MAX_DURATION:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 300, 90s, 5m or 1h30m; above 0, at most 366d")
''')


# ==== daily use =======================================================================================================
# Look at a session, end it, make its name short to type.

_fold("daily use", r'''
def _status_command(argv: List[str]) -> int:
    parser = _parser("status", "Whether a session is live, and how long it has left. Asks nothing: its timer runs on.",
                     "  hotenv status --json")
    parser.add_argument("--json", action="store_true", help="print JSON; times are seconds since 1970, or null")
    _add_session_options(parser)
    options = parser.parse_args(argv, _Options())
    marker = None if options.socket or os.environ.get("HOTENV_SOCKET") else _find_marker()
    found = {"live": False, "socket": None, "marker": marker, "pid": None, "since": None, "ends": None}
    try:
        path = found["socket"] = options.socket or _find_session()
        sock = _connect(path, options.peer_uid)
    except HotenvError as error:
        if options.json and error.code in (EXIT_NO_SESSION, EXIT_UNREACHABLE):
            _print_json(found)
        raise
    pid = _peer(sock)[0]
    sock.close()
    found["live"] = True
    if _is_server(pid):  # else somebody forwards for it, and its socket's time is not the session's
        found.update(pid=pid, ends=os.stat(path).st_mtime, since=os.stat(marker).st_mtime if marker else None)
    return _print_json(found) if options.json else _print_status(found)


def _print_json(value: Any) -> int:
    import json

    return _write(1, (json.dumps(value, indent=2) + "\n").encode())


def _print_status(found: Dict[str, Any]) -> int:
    def moment(seconds: Optional[float]) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) if seconds else "unknown"

    left = found["ends"] and max(0, int(found["ends"] - time.time()))
    lines = ["live", f"socket  {found['socket']}", f"marker  {found['marker'] or 'none: the socket was named'}",
             f"server  {'unknown: the socket is forwarded' if found['pid'] is None else 'pid ' + str(found['pid'])}",
             f"since   {moment(found['since'])}",
             f"ends    {moment(found['ends'])}" + (f", in {_duration(left)}" if left else "")]
    return _write(1, "".join(_shown(line) + "\n" for line in lines).encode("utf-8", "backslashreplace"))


def _is_server(pid: int) -> bool:
    """Whether the process is named as ours."""
    if pid <= 1:
        return False
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read() == b"hotenv\n"
    except OSError:
        if sys.platform == "linux":
            return False
    import subprocess

    listed = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], stdout=subprocess.PIPE, check=False).stdout
    return b"hotenv" in listed


def _stop_command(argv: List[str]) -> int:
    parser = _parser("stop", "End the session of this directory; returns when its files are gone.", "  hotenv stop")
    _add_session_options(parser)
    options = parser.parse_args(argv, _Options())
    path = options.socket or _find_session()
    try:
        sock = _connect(path, options.peer_uid)
    except HotenvError as error:
        if error.code == EXIT_UNREACHABLE:
            raise HotenvError(EXIT_UNREACHABLE, f"nobody answers at {_shown(path)} any more: nothing to stop; "
                                                f"`{_invocation()} serve --force` replaces what is left") from None
        raise
    try:
        _terminate(sock, path)
        sock.settimeout(EXCHANGE_TIME)
        sock.recv(1)  # the connection ends with the process, which has cleaned up by then
    except OSError:
        pass
    finally:
        sock.close()
    give_up = time.monotonic() + EXCHANGE_TIME
    while os.path.exists(path):
        if time.monotonic() > give_up:
            raise HotenvError(EXIT_SYSTEM, f"the session at {_shown(path)} was told to end and has not: is it stopped?")
        time.sleep(0.01)
    return 0


def _terminate(sock: Any, path: str) -> None:
    """SIGTERM to the process at the other end: pinned first, then seen to be still the one, then signalled."""
    pid = _peer(sock)[0]
    pinned = _pinned(pid)
    try:
        if not _is_server(pid) or not _still_open(sock):
            raise HotenvError(EXIT_SYSTEM, f"who serves {_shown(path)} cannot be told from here (a forwarded socket, "
                                           "another pid namespace, a /proc that hides processes): run `stop` where "
                                           "the session was started")
        if pinned is not None:
            _signal.pidfd_send_signal(pinned, _signal.SIGTERM)
        else:
            os.kill(pid, _signal.SIGTERM)
    except PermissionError:
        raise HotenvError(EXIT_SYSTEM, f"process {pid}, which serves {_shown(path)}, is not yours to end") from None
    finally:
        if pinned is not None:
            os.close(pinned)


def _pinned(pid: int) -> Optional[int]:
    """A descriptor that stands for this process and no later one; None where there is no such thing."""
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") and pid > 1 else None
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, or a container that forbids it
        return None


def _still_open(sock: Any) -> bool:
    sock.settimeout(0)
    try:
        return bool(sock.recv(1, _socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _shellenv_command(argv: List[str]) -> int:
    parser = _parser("shellenv", "Print a shell function `hotenv` that runs this file: short, and compiled only once.",
                     '  eval "$(python3 ~/trusted/hotenv.py shellenv)"     # in ~/.profile, ~/.bashrc or ~/.zshrc')
    parser.parse_args(argv)
    import shlex

    directory, name = os.path.split(os.path.abspath(__file__))
    # By import, so that a .pyc serves; appended, so that its neighbours hide nothing of the standard library.
    program = (f"import sys; sys.path.append({directory!r}); "
               f"sys.exit(__import__({os.path.splitext(name)[0]!r}).main())")
    words = " ".join(map(shlex.quote, [sys.executable or "python3", "-I", "-S", "-c", program]))
    return _write(1, os.fsencode(f'hotenv() {{ {words} "$@"; }}\n'))
''')


# ==== command line ====================================================================================================
# One function a command, and the one place that prints an error and picks an exit code.


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The command line; returns the exit status, except where it becomes another program or dies of a signal."""
    return _status(lambda: _command(list(sys.argv[1:] if argv is None else argv)))


def _status(work: Callable[[], int]) -> int:
    """The exit status of this, whatever it raises."""
    try:
        if not hasattr(_socket, "AF_UNIX") or os.name != "posix":
            raise HotenvError(EXIT_SYSTEM, "this system's Python has no Unix sockets, which hotenv is made of: "
                                           "it runs on Linux and macOS")
        return work()
    except _Afterwards as left:
        rest = left.work
    except HotenvError as error:
        _say(str(error))
        return error.code
    except SystemExit as finished:  # argparse, after --help
        return finished.code if isinstance(finished.code, int) else int(finished.code is not None)
    except KeyboardInterrupt:
        return _die_of(_signal.SIGINT)
    except _Killed as signalled:
        return _die_of(signalled.number)
    except OSError as error:
        _say(f"{error.strerror or type(error).__name__}")
        return EXIT_SYSTEM
    except MemoryError:
        _say("out of memory")
        return EXIT_SYSTEM
    except Exception as error:  # a traceback's last line may hold a value: say where, and no more
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        _say(f"internal error: {type(error).__name__} at line {trace.tb_lineno if trace else '?'}; please report it")
        return EXIT_SYSTEM
    return rest()


def _at_the_end(work: Callable[[], int], forked: bool = False) -> int:
    """Does what goes on for long. In a script only after its last line: up to there Python keeps the script's syntax
    tree, which would cost a server 5 MB as long as it lives."""
    def leave() -> NoReturn:
        status = EXIT_SYSTEM
        try:
            status = _status(work)
        finally:
            os._exit(status)

    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    if frame.f_globals is globals():  # nobody goes on after us, neither runpy nor a profiler nor a program of yours
        import atexit

        atexit.register(leave)
        return 0
    if forked:
        leave()
    return work()


def _command(argv: List[str]) -> int:
    if argv[:2] == ["run", "--"] and len(argv) > 2:  # the forms of every day, without argparse: 4 ms
        return _run(_Options, argv[2:])
    if argv == ["dump"]:
        return _dump(_Options)
    if argv == ["serve"]:
        return _serve(_Options)
    name = argv[0] if argv else ""
    if name in ("-h", "--help"):
        return _write(1, _USAGE.encode())
    if name in ("-V", "--version"):
        return _write(1, f"hotenv {__version__}\n".encode())
    if name not in _COMMANDS:
        if not name:
            _say(_USAGE.rstrip(), prefix="")
            return EXIT_USAGE
        import difflib

        near = difflib.get_close_matches(name, _COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_COMMANDS)}"
        raise HotenvError(EXIT_USAGE, f"no command {_shown(name)}: {hint}")
    rooms, function = _COMMANDS[name]
    for room in rooms:
        _unfold(room)
    return globals()[function](argv[1:])


_USAGE = """\
usage: hotenv serve [options] < secrets.env    hold an environment in memory, for this directory
       hotenv run [options] -- COMMAND...      run a command with it, from here or below
       hotenv dump [options]                   print it
       hotenv status | stop                    look at the session, or end it
       hotenv shellenv | --version             print a shell function for this file; the version
       hotenv hermetic [GUARDS] -- TARGET...   run a Python program with guards, no session
       hotenv mcp [options]                    shells for an agent that must not see the values

A session ends after 5 idle minutes. `hotenv COMMAND --help` has options and an example.
"""


# ---- serve


def _serve(options: Any) -> int:
    _open_standard_descriptors()
    if os.path.lexists(MARKER) and not options.force:
        raise _refusal()
    _name_process()
    _harden()
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # nothing is there yet to clean up
    entries = _parse_entries(_read_input())
    prompt = None
    if options.prompt:
        _unfold("terminal")
        prompt = _Terminal().ask
    elif os.isatty(2):
        entries = _noting_questions(entries)
    if os.environ.get("HOTENV_SOCKET") and os.isatty(2):
        _say("HOTENV_SOCKET is set: `run` asks that session, not this one, until you unset it")
    env = resolve_env(entries, _host_environment(), prompt)
    response, count = _encode_snapshot(env), len(env)
    if len(response) > MAX_RESPONSE:
        raise HotenvError(EXIT_INPUT, f"the environment is over {MAX_RESPONSE >> 20} MiB encoded: no client takes it")
    del entries, env
    _give_back_memory()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    if options.background:
        _unfold("background")
        return _serve_in_background(options, response, count)
    return _at_the_end(lambda: _hold(options, response, count, lambda: None))


def _noting_questions(entries: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[str, Any]]:
    for name, value in entries:
        if isinstance(value, _Template) and value.question is not None:
            _say(f"the value of {name} begins with `?` and is taken as it is: to be asked for it, use --prompt")
        yield name, value


def _open_standard_descriptors() -> None:
    """Closed ones would be given to the next file that is opened: a socket must not become stderr."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _refusal() -> HotenvError:
    if os.path.isdir(MARKER):
        return HotenvError(EXIT_REFUSED, f"{MARKER} is here already, and is a directory: move it away, as --force "
                                          "replaces files only")
    try:
        _connect(_read_marker(MARKER)).close()
    except HotenvError as error:
        if error.code == EXIT_UNREACHABLE:
            state = "but nobody answers there any more;"
        else:
            state = f"but cannot be believed ({error});"
    else:
        state = f"and its session still answers: use it, or end it with `{_invocation()} stop`;"
    return HotenvError(EXIT_REFUSED, f"{MARKER} is here already, {state} `{_invocation()} serve --force` replaces it")


def _read_input() -> bytes:
    terminal = os.isatty(2)
    if os.isatty(0) and terminal:
        _say("type NAME=VALUE lines, then Ctrl-D on a line of its own")
    chunks, size = [], 0
    try:
        while size <= MAX_INPUT:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
    except OSError as error:
        raise _system_error(error, "cannot read stdin") from None
    if size > MAX_INPUT:
        raise HotenvError(EXIT_INPUT, f"stdin holds more than {MAX_INPUT >> 20} MiB: is this the file that you meant?")
    if not size and terminal:
        _say("stdin is empty, and so is this session: did the left side of the pipe fail?")
    return b"".join(chunks)


def _hold(options: Any, response: bytes, count: int, ready: Callable[[], None]) -> int:
    """Binds, publishes and serves, and leaves nothing behind."""
    import atexit

    _give_back_memory()
    signals = _Signals()
    files = listener = None
    served = False
    try:
        files = _SessionFiles()
        listener = files.bind()
        signals.die_if_received()
        _raise_descriptor_limit()
        server = _Server(listener, response, files, _Log(2, options.level), options.timeout, options.max_age)
        files.stamp(time.time() + server.deadline - _now())
        signals.die_if_received()  # not later: with --force, publish ends another session
        files.publish(options.force)  # whoever sees the marker sees a session: from here on a signal ends one
        talks = os.isatty(2) and options.level != "quiet"
        if talks:
            _say(f"session {files.id} ready: {count} variable{'' if count == 1 else 's'}, "
                 f"idle timeout {_duration(options.timeout)}")
        ready()
        served = True
        reason = server.run(signals)
        atexit.register(signals.ignore)
    except HotenvError as error:
        raise _refusal() if error.code == EXIT_REFUSED else error
    except OSError as error:
        raise _system_error(error, "cannot serve") from None
    finally:
        if listener:
            listener.close()  # cleaning up needs a descriptor, and there may be no other left
        if files:
            files.remove() if served else files.undo()
    if talks and not options.background:  # there, stderr is the log by now
        _say(f"session {files.id} {reason}")
    return 0


# ---- serve, in the background

_fold("background", r'''
def _serve_in_background(options: Any, response: bytes, count: int) -> int:
    """The child holds the session; the parent returns when requests are accepted, or with what went wrong."""
    log, made = _open_private_log(options.log) if options.log is not None else (os.open(os.devnull, os.O_RDWR), False)
    status, report = os.pipe()
    # Fork before listen: the credentials that a client sees are those of whoever called it.
    child = os.fork()
    if child:
        os.close(report)
        if os.read(status, 1):
            return 0
        ended = os.waitpid(child, 0)[1]
        return _die_of(os.WTERMSIG(ended)) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended) or EXIT_SYSTEM
    _close_all_but((0, 1, 2, log, report))  # a lock or a pipe of the caller's is not to be held as long as a session

    unused = [options.log] if made else []

    def ready() -> None:
        os.setsid()
        os.write(report, b"+")  # fails, and ends us, when the caller was interrupted meanwhile
        unused.clear()
        os.close(report)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir("/")

    def hold() -> int:
        try:
            return _hold(options, response, count, ready)
        finally:
            for path in unused:
                _unlink(path)

    return _at_the_end(hold, forked=True)


def _close_all_but(kept: Sequence[int]) -> None:
    try:
        inherited = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        inherited = list(range(DESCRIPTORS))
    for descriptor in inherited:
        if descriptor not in kept:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the listing's own, or none


def _open_private_log(path: str) -> Tuple[int, bool]:
    """Its descriptor, and whether it was made for us."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor, made = os.open(path, flags | os.O_EXCL, 0o600), True
        except FileExistsError:
            descriptor, made = os.open(path, flags, 0o600), False
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is not a regular file: a log goes to one")
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise HotenvError(EXIT_SYSTEM, f"cannot write the log {_shown(path)}: {reason}") from None
    return descriptor, made
''')


# ---- run and dump


def _split(argv: List[str]) -> Tuple[List[str], List[str]]:
    """What stands before the first `--` is ours; what stands behind it is the command's, to the letter."""
    if "--" not in argv:
        return argv, []
    at = argv.index("--")
    return argv[:at], argv[at + 1:]


def _names(words: Sequence[str]) -> List[str]:
    """The names in options that take several, with commas, repeated, or both."""
    return [name.strip() for word in _as_utf8(words) for name in word.split(",")]


def _as_utf8(words: Sequence[str]) -> List[str]:
    """Arguments as text that stands for their bytes whatever the locale, as the environment's is."""
    if sys.getfilesystemencoding() == "utf-8":
        return list(words)
    return [os.fsencode(word).decode("utf-8", "surrogateescape") for word in words]


def _run(options: Any, command: List[str]) -> int:
    host = _host_environment()
    only = options.only
    try:
        snapshot = _ask("run", command, options)
    except HotenvError as error:
        if not options.optional or error.code not in (EXIT_NO_SESSION, EXIT_UNREACHABLE):
            raise
        _say(f"{str(error).split(';')[0]}; running without one")
        snapshot, only = {}, []
    env = _child_environment(host, _chosen(snapshot, only), options)

    def become() -> None:
        if options.guards:
            _run_hermetic(options.guards, command, env, snapshot, [options.socket] if options.socket else [])
        _exec(command, env)

    if options.mask:
        _unfold("masked launch")
        return _run_masked(become, _redactor(snapshot, _names(options.no_mask)))
    become()


def _ask(command: str, args: List[str], options: Any) -> Dict[str, str]:
    return fetch(command, _as_utf8(args), options.socket, peer_uid=options.peer_uid)


def _child_environment(host: Dict[str, str], snapshot: Dict[str, str], options: Any) -> Dict[str, str]:
    """Host or allowlist, snapshot, --define, --bin: always in this order."""
    define = dict(snapshot)
    define.update(text.partition("=")[::2] for text in _as_utf8(options.define))
    kept = _names(options.pass_through) if options.isolated else list(host)
    return build_isolated_env(host, kept, define, _as_utf8(options.bin))


def _chosen(snapshot: Dict[str, str], only: Sequence[str]) -> Dict[str, str]:
    """The variables that --only names, by name or PREFIX*; a name that is not there is a usage error."""
    if not only:
        return snapshot
    chosen: Dict[str, str] = {}
    for wanted in _names(only):
        names = [name for name in snapshot
                 if name == wanted or wanted.endswith("*") and name.startswith(wanted[:-1])]
        if not names:
            import difflib

            near = difflib.get_close_matches(wanted.rstrip("*"), snapshot, 5, 0.5)
            hint = f"; near it: {', '.join(map(_shown, near))}" if near else ""
            name = _shown(wanted) or "variable without a name"
            raise HotenvError(EXIT_USAGE, f"--only: the session has no {name}{hint}")
        chosen.update((name, snapshot[name]) for name in names)
    return chosen


def _dump(options: Any) -> int:
    snapshot = _chosen(_ask("dump", [], options), options.only)
    form = _as_plain if options.format == "plain" else _FORMATS[options.format]
    return _write(1, form(snapshot).encode("utf-8", "surrogateescape"))


def _as_plain(env: Dict[str, str]) -> str:
    return "".join([f"{name}={value}\n" for name, value in env.items()])


# ---- hermetic, and the other commands with their options: `serve`, `run -- COMMAND...` and `dump` alone come not here


def _hermetic_command(argv: List[str]) -> int:
    """Every error of ours is 1 here: 2 says that something was blocked."""
    try:
        own, target = _split(argv)
        if {"-h", "--help"} & set(own):
            _unfold("options")
            _unfold("commands")
            return _hermetic_help()
        if not target:
            raise HotenvError(1, "hermetic: the target goes after `--`: hotenv hermetic [GUARDS] -- TARGET...")
        asked = _parse_guards(own, "hermetic", f"; see: {_invocation()} hermetic --help")
        _run_hermetic(_guard_options(asked, os.environ), target, _host_environment())
    except HotenvError as error:
        raise HotenvError(1, str(error)) from None


_fold("commands", r'''
# How the options of `hermetic` begin, which `run` takes as well.
_GUARDS = ("--no-network", "--allow-", "--no-subprocess", "--fs-", "--strict-imports", "--profile", "--trace")


def _serve_command(argv: List[str]) -> int:
    parser = _parser("serve", "Read dotenv lines from stdin, hold them in memory, hand them to `hotenv run`.",
                     "  pass show deploy/env | hotenv serve --timeout 15m")
    add = parser.add_argument
    add("-t", "--timeout", metavar="DUR", type=_parse_duration,
        help="end after this much idle time: 300, 90s, 5m, 1h30m (default: 5m)")
    add("--max-age", metavar="DUR", type=_parse_duration,
        help="end after this time in any case (default: no limit)")
    add("-f", "--force", action="store_true", help="replace the session that is here")
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_const", dest="level", const="quiet", help="log no requests")
    volume.add_argument("-v", "--verbose", action="store_const", dest="level", const="verbose",
                        help="log whole command lines, with all their arguments: some hold secrets")
    add("--background", action="store_true", help="return as soon as requests are accepted")
    add("--log", metavar="FILE", help="with --background: append the request log to FILE (default: no log)")
    add("--prompt", action="store_true", help="ask for each bare value `?text` on the terminal, showing `text`")
    options = parser.parse_args(argv, _Options())
    if options.log is not None and not options.background:
        raise HotenvError(EXIT_USAGE, "serve: --log goes with --background; in the foreground, redirect: 2>> FILE")
    return _serve(options)


def _add_guard_options(parser) -> None:
    """The options of the guards as argparse has them: for `run`, and for what --help shows."""
    group = parser.add_argument_group("guards (Python programs only)")
    for option, (takes, text) in _GUARD_OPTIONS.items():
        how = {"action": "store_true"}
        if takes:
            how = {"action": "append", "default": [], "metavar": takes}
        if takes == "[PATH]":
            how = {"nargs": "?", "const": True, "metavar": "PATH"}
        group.add_argument(option, help=text, **how)


def _guards_asked(asked) -> bool:
    """Does the command line of `run` switch any guard on? Only then are the other sources read."""
    return bool(asked.no_network or asked.no_subprocess or asked.fs_readonly or asked.strict_imports or asked.profile)


def _hermetic_help() -> int:
    parser = _parser("hermetic", "Run a Python program without network, subprocesses, writes or native code.",
                     "  hotenv hermetic --no-network --trace -- pip download requests")
    parser.usage = "hotenv hermetic [GUARDS] -- TARGET [ARG...]"
    _add_guard_options(parser)
    parser.print_help()
    return 0


def _mcp_command(argv: List[str]) -> int:
    parser = _parser("mcp", "Serve shells with the session's environment to an agent: MCP on stdio, values masked.",
                     "  claude mcp add hotenv -- python3 hotenv.py mcp --audit ~/hotenv-audit.log")
    add = parser.add_argument
    add("--policy", metavar="FILE", help='JSON: {"allow": [...], "deny": [...]}, first words of commands; advisory')
    add("--audit", metavar="FILE", help="append a JSON line at the start and the end of each command")
    add("--remote", metavar="NAME=CMD", action="append",
        help="let the agent open a shell by CMD, such as `ssh -T host`")
    _add_session_options(parser)
    options = parser.parse_args(argv, _Options())
    remotes = dict(text.partition("=")[::2] for text in options.remote)
    if not all(remotes) or not all(remotes.values()):
        raise HotenvError(EXIT_USAGE, "mcp: --remote takes NAME=CMD")

    def snapshot() -> Tuple[Dict[str, str], Callable[[], bool]]:
        path = options.socket or _find_session()
        return fetch("dump", (), path, peer_uid=options.peer_uid), lambda: _answers(path, options.peer_uid)

    return _serve_mcp(snapshot, policy=options.policy, audit=options.audit, remotes=remotes)


def _answers(path: str, peer_uid: Optional[int]) -> bool:
    """Whether a server is there; asks it nothing, so its timer runs on."""
    try:
        _connect(path, peer_uid).close()
        return True
    except HotenvError:
        return False


def _run_command(argv: List[str]) -> int:
    parser = _parser("run", "Run a command with the session's environment; all after -- is the command's own.",
                     "  hotenv run -- ./deploy.sh --to production\n\n"
                     "Guards for a Python program (--no-network, ...): hotenv hermetic --help")
    parser.usage = "hotenv run [options] -- COMMAND [ARG...]"
    own, command = _split(argv)
    if not command and not {"-h", "--help"} & set(own):
        raise HotenvError(EXIT_USAGE, f"run: the command goes after `--`: {_invocation()} run -- COMMAND...")
    add = parser.add_argument
    add("--only", metavar="NAMES", action="append",
        help="hand over these alone: NAME,PREFIX*,... (no boundary: it can ask for the rest)")
    add("--isolated", action="store_true",
        help="start from an allowlist (PATH, HOME, TERM, ...), not from all you have")
    add("--pass", metavar="NAME", action="append", dest="pass_through",
        help="with --isolated: hand over this variable of yours too (repeatable, or with commas)")
    add("--define", metavar="NAME=VALUE", action="append",
        help="set a variable that is no secret: `ps` shows it (repeatable)")
    add("--bin", metavar="DIR", action="append", help="put a directory before PATH")
    add("--mask", action="store_true",
        help="hide the session's values in the output, where it goes to a file or a pipe")
    add("--no-mask", metavar="NAME", action="append", help="with --mask: let this variable's value be seen")
    add("--optional", action="store_true", help="without a session, run the command as it is, and say so")
    _add_session_options(parser)
    guarded = any(word.startswith(_GUARDS) for word in own)
    if guarded:
        _unfold("hermetic host")
        _add_guard_options(parser)
    options = parser.parse_args(own, _Options())
    if guarded and not _guards_asked(options):
        raise HotenvError(EXIT_USAGE, "run: no guard is on: --no-network, ..., see: hotenv hermetic --help")
    options.guards = _guard_options(options, os.environ) if guarded else None
    if options.pass_through and not options.isolated:
        raise HotenvError(EXIT_USAGE, "run: --pass goes with --isolated: without it the command gets them all")
    for text in options.define:
        if text.find("=") < 1:
            raise HotenvError(EXIT_USAGE, "run: --define takes NAME=VALUE, and one has no `=` or no name")
    if options.no_mask and not options.mask:
        raise HotenvError(EXIT_USAGE, "run: --no-mask goes with --mask")
    return _run(options, command)


def _dump_command(argv: List[str]) -> int:
    _unfold("formats")
    parser = _parser("dump", "Print the session's environment.", "  hotenv dump --format names")
    parser.add_argument("--only", metavar="NAMES", action="append", help="print these alone: NAME,PREFIX*,...")
    parser.add_argument("--format", choices=["plain", *_FORMATS],
                        help="plain (KEY=VALUE), dotenv (to be parsed), sh (for eval), json, nul, names")
    _add_session_options(parser)
    return _dump(parser.parse_args(argv, _Options()))
''')


_COMMANDS = {  # command -> the folds that hold it, its function
    "serve": (("options", "commands"), "_serve_command"),
    "run": (("options", "commands"), "_run_command"),
    "dump": (("options", "commands"), "_dump_command"),
    "status": (("options", "daily use"), "_status_command"),
    "stop": (("options", "daily use"), "_stop_command"),
    "shellenv": (("options", "daily use"), "_shellenv_command"),
    "hermetic": (("hermetic host",), "_hermetic_command"),
    "mcp": (("options", "commands", "mcp"), "_mcp_command"),
}

if __name__ == "__main__":
    sys.exit(main())
