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
#   limits and errors | dotenv | environment | session files | protocol | server | client | launch |
#   folds: redaction, masked launch, terminal, formats, daily use | command line

from __future__ import annotations

import sys

# A script's directory (or, under -m, the current one) stands first on the path: a json.py or signal.py that lies beside
# a vendored copy must not be taken for the standard library's. Nothing outside the standard library is imported here.
if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]

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
TICK = 10.0  # seconds: the selector's own clock stands still during suspend, ours does not
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


def _die_of(number: int) -> NoReturn:
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container cannot be killed so


def _shown(text: str) -> str:
    """`text` as a terminal or a log may see it: whatever is not printable as its Python escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _system_error(error: OSError, doing: str) -> HotenvError:
    return HotenvError(EXIT_SYSTEM, f"{doing}: {error.strerror or type(error).__name__}")


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


def parse_dotenv(text: Union[str, bytes], host: Mapping[str, str] = {}) -> Dict[str, str]:
    """What `serve` would hold for this dotenv text; raises HotenvError with code 7.

    `host` is where `${NAME}` looks when the text has not set NAME so far.
    """
    return resolve_env(_parse_entries(text), host)


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
        pos, name, value = _parse_statement(text, match.start())
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


def _parse_statement(text: str, pos: int) -> Tuple[int, str, Union[str, _Template, None]]:
    """(where the next one starts, name, value); no name for a comment or the end, no value for `export NAME`."""
    pos = _skip(r"\s+", text, pos)
    start = _skip(r"export[^\S\n]+", text, pos)
    exported, pos = start > pos, start
    if pos == len(text) and not exported:
        return pos, "", None
    if text.startswith("#", pos):
        return _skip(r"[^\n]*\n?", text, pos), "", None
    pos, name = _parse_name(text, pos)
    pos = _skip(_BLANKS, text, pos)
    if text.startswith("=", pos):
        pos, value = _parse_value(text, pos + 1, name)
        return pos, name, value
    if exported and (pos == len(text) or text[pos] in "#\n"):
        return pos, name, None
    raise _dotenv_error(text, pos, "no `=` after a name: is this the rest of a value that needs quotes?")


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


def _bare_value(name: str, text: str) -> Union[str, _Template]:
    def fail(at: int, reason: str) -> HotenvError:
        return HotenvError(EXIT_INPUT, f"{name}: {reason} at character {at + 1}")

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
    try:
        _make_private(base, made)
        descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise HotenvError(EXIT_SYSTEM, f"{_shown(base)} is not a directory of its own: move it away, "
                                           "or set XDG_RUNTIME_DIR to a directory of yours") from None
        raise _system_error(error, f"cannot use the runtime directory {_shown(base)}") from None
    found = os.fstat(descriptor)
    try:
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
                raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is somebody else's (uid {found.st_uid}): not believed")
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


def _unlink(name: str, directory: int) -> None:
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
        line = f"{self.stamp} {command} {_shown(summary)}\n".encode("utf-8", "backslashreplace")
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
        import selectors
        from collections import OrderedDict

        self.listener, self.response, self.files, self.log, self.idle = listener, response, files, log, idle
        self.selector = selectors.DefaultSelector()
        self.read_event, self.write_event = selectors.EVENT_READ, selectors.EVENT_WRITE
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
        self.selector.register(signals.wakeup, self.read_event, "signal")
        self._listen(True)
        while True:
            events = self.selector.select(self._patience())
            reason = self._over(signals)
            if reason:
                return reason
            if not events:
                self._listen(True)
            self._drop_overdue()
            for key, _ in events:
                if key.data == "listener":
                    self._accept()
                elif key.data == "log":
                    self._flush_log()
                elif key.data.queue is self.answering:
                    self._send(key.data)
                elif key.data.queue is not None:
                    self._receive(key.data)
            self._settle()

    def _patience(self) -> float:
        queues = (self.reading, self.answering, self.lingering)
        first = [next(iter(queue.values())).deadline for queue in queues if queue]
        wake = min([self.deadline, self.next_look, *first])
        return max(0.0, min(wake - _now(), TICK if self.listening else 0.1))

    def _over(self, signals: _Signals) -> str:
        now = _now()
        if signals.received:
            return "ended by a signal"
        if now >= self.deadline:
            return "its time is up"
        if now >= self.next_look:
            self.next_look = now + TICK
            if not self.files.bound():
                return "its socket file is gone"
            if self.files.named() is False:
                return "another session has taken its place"
        return ""

    def _listen(self, wanted: bool) -> None:
        """Arms or disarms the listener: without descriptors to accept with, it would only make the loop spin."""
        if wanted != self.listening:
            if wanted:
                self.selector.register(self.listener, self.read_event, "listener")
            else:
                self.selector.unregister(self.listener)
            self.listening = wanted

    def _accept(self) -> None:
        """Answers one client after the other: its request is usually there already, so most never see the selector."""
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
        sock, event = connection.sock, self.write_event if queue is self.answering else self.read_event
        try:
            if connection.queue is None:
                self.selector.register(sock, event, connection)
            elif connection.queue is not queue:
                self.selector.modify(sock, event, connection)
        except OSError:  # no memory for one more
            self._drop(connection)
            return
        if connection.queue is not None:
            del connection.queue[sock.fileno()]
        queue[sock.fileno()] = connection
        connection.queue, connection.deadline = queue, _now() + self.times[id(queue)]

    def _drop(self, connection: _Connection) -> None:
        if connection.queue is not None:
            self.selector.unregister(connection.sock)
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
                    self.selector.register(self.log.descriptor, self.write_event, "log")
                else:
                    self.selector.unregister(self.log.descriptor)
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

    def die_if_received(self) -> None:
        """Before the session is ready a signal means what it always means; for the caller to clean up first."""
        if self.received:
            raise _Killed(self.received)


def _harden() -> None:
    """No core dumps; not dumpable, so neither traceable nor readable in /proc, by others of the same user."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        import ctypes

        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
        elif sys.platform == "darwin":
            ctypes.CDLL(None).ptrace(31, 0, 0, 0)  # PT_DENY_ATTACH
    except (ImportError, OSError, AttributeError):
        pass  # an interpreter without ctypes: what the system does not offer is not claimed


def _give_back_memory() -> None:
    """What parsing has freed goes back to the system, and the copies of the values in it with it."""
    try:
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)
    except (ImportError, OSError, AttributeError):
        pass  # a C library without it


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
    return f"python3 {_shown(script)}" if script.endswith(".py") and not script.endswith("__main__.py") else "hotenv"


def _unreachable(path: str, why: str) -> HotenvError:
    return HotenvError(EXIT_UNREACHABLE, f"the session at {_shown(path)} cannot be reached: {why}; {_how_to_start()}")


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
        why = "nobody answers there any more" if dead else getattr(error, "strerror", None) or "no answer in time"
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
        raise _unreachable(path, "no answer in time" if timed_out else error.strerror or "no answer") from None
    if size > MAX_RESPONSE:
        raise HotenvError(EXIT_ARTIFACT, f"the session's answer is over {MAX_RESPONSE >> 20} MiB long")
    return b"".join(chunks)


# ==== launch ==========================================================================================================
# Become the command: same process, same terminal, same signals, same status.


def _exec(argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Replaces this process; returns only by a HotenvError that says why it could not."""
    raw = {name.encode("utf-8", "surrogateescape"): value.encode("utf-8", "surrogateescape")
           for name, value in env.items()}
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


# ==== folds ===========================================================================================================
# The rooms from here to the command line are ordinary code, but the file holds them as text until one is entered: a
# vendored script is compiled at each run, 8 ms for every 1,000 lines of code, and `run` needs none of these. A room is
# then compiled into this module under its own line numbers, so tracebacks, debuggers and `inspect` see nothing special.

_folds: Dict[str, Tuple[int, str]] = {}


def _fold(room: str, source: str) -> None:
    _folds[room] = (sys._getframe(1).f_lineno, source)


def _unfold(room: str) -> None:
    if room in _folds:
        line, source = _folds.pop(room)
        exec(compile("\n" * (line - 1) + source, __file__, "exec"), globals())


_PUBLIC = {"Redactor": "redaction"}  # public names in folds, and where they are


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        _unfold(_PUBLIC[name])
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
_HANDED_ON = frozenset((
    _signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGALRM,
    _signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU))
_GRACE = (0, 0.01, 0.03, 0.06)      # seconds between questions whether a signal has reached the others as well


def _run_masked(argv: list, env: dict, redactor: Redactor) -> int:
    """Runs the command with every value in its stdout and stderr masked; returns its exit status, or dies as it did.

    A stream that is a terminal is handed over as it is, with a note; if both are, the command takes our place.
    """
    routes = _masked_routes()
    if not routes:
        _exec(argv, env)
    blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    inherited, wake = _catch_signals()
    channels, ends = [], {}
    for targets in routes:
        source, end = _high_pipe()
        channels.append(_Channel(source, targets[0], redactor.stream()))
        ends.update(dict.fromkeys(targets, end))
    child, report = _start_child(argv, env, ends, inherited, blocked)
    for end in set(ends.values()):
        os.close(end)
    command = _Command(child)
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


def _start_child(argv: list, env: dict, ends: dict, inherited: dict, blocked: set) -> tuple[int, int]:
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
        _exec(argv, env)
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
        from select import select
        try:
            os.write(self._ask, b"\n")
            while b"." not in self._said:
                if not select((self._answers,), (), (), 1)[0]:
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

    def __init__(self, pid: int) -> None:
        self.pid, self.stopped = pid, False
        self.status: int | None = None      # its wait status, once it has ended
        self.lookout = _Lookout()
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
        for patience in _GRACE if due else ():
            time.sleep(patience)
            self._shared |= self.lookout.hits()
            due, self._shared = due - self._shared, self._shared - due
            if not due:
                return
        for signum in due:
            os.kill(self.pid, signum)

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


# ==== terminal ========================================================================================================
# Questions, and answers that nobody sees.

_fold("terminal", r'''
class _Terminal:
    """Asks on /dev/tty without echo; whatever ends or stops us in the meantime, the terminal is left as it was."""

    def __init__(self) -> None:
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
        ending = [_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT]
        before = {number: _signal.getsignal(number) for number in (*ending, _signal.SIGTSTP)}
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
            self._restore()
            for number, handler in before.items():
                _signal.signal(number, handler)

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
            self.termios.tcsetattr(self.tty, self.termios.TCSAFLUSH, self.settings)
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
    "plain": _as_plain,
    "dotenv": _as_dotenv,
    "sh": _as_sh,
    "json": _as_json,
    "nul": lambda env: "".join([f"{name}={value}\0" for name, value in env.items()]),
    "names": _as_names,
}
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
    path = options.socket or _find_session()
    found = {"live": False, "socket": path, "marker": marker, "pid": None, "since": None, "ends": None}
    try:
        sock = _connect(path, options.peer_uid)
    except HotenvError as error:
        if options.json and error.code == EXIT_UNREACHABLE:
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
    while os.path.lexists(path):
        if time.monotonic() > give_up:
            raise HotenvError(EXIT_SYSTEM, f"the session at {_shown(path)} was told to end and has not: is it stopped?")
        time.sleep(0.01)
    return 0


def _terminate(sock: Any, path: str) -> None:
    """SIGTERM to the process at the other end: pinned first, then seen to be still the one, then signalled."""
    pid = _peer(sock)[0]
    pinned = os.pidfd_open(pid) if hasattr(os, "pidfd_open") and pid > 1 else None
    try:
        if not _is_server(pid) or not _still_open(sock):
            raise HotenvError(EXIT_SYSTEM, f"who serves {_shown(path)} cannot be told from here (a forwarded socket, "
                                           "or another pid namespace): run `stop` where the session was started")
        if pinned is not None:
            _signal.pidfd_send_signal(pinned, _signal.SIGTERM)
        else:
            os.kill(pid, _signal.SIGTERM)
    except PermissionError:
        raise HotenvError(EXIT_SYSTEM, f"process {pid}, which serves {_shown(path)}, is not yours to end") from None
    finally:
        if pinned is not None:
            os.close(pinned)


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
    try:
        if not hasattr(_socket, "AF_UNIX") or os.name != "posix":
            raise HotenvError(EXIT_SYSTEM, "this system's Python has no Unix sockets, which hotenv is made of: "
                                           "it runs on Linux and macOS")
        return _command(list(sys.argv[1:] if argv is None else argv))
    except HotenvError as error:
        _say(str(error))
        return error.code
    except SystemExit as finished:  # argparse, after --help
        return finished.code or 0  # type: ignore[return-value]
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


def _say(message: str) -> None:
    try:
        print(f"hotenv: {message}", file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass  # a closed or full stderr changes no exit status


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
            sys.stderr.write(_USAGE)
            return EXIT_USAGE
        import difflib

        near = difflib.get_close_matches(name, _COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_COMMANDS)}"
        raise HotenvError(EXIT_USAGE, f"no command {_shown(name)}: {hint}")
    room, function = _COMMANDS[name]
    _unfold(room)
    return globals()[function](argv[1:])


class _Options:
    """Every option of every command as it is when nothing is said."""

    socket = peer_uid = only = level = log = None
    force = background = prompt = isolated = optional = mask = json = False
    timeout, max_age, format = IDLE_TIMEOUT, MAX_DURATION, "plain"
    pass_through: List[str] = []
    define: List[str] = []
    bin: List[str] = []
    no_mask: List[str] = []


_USAGE = """\
usage: hotenv serve [options] < secrets.env    hold an environment in memory, for this directory
       hotenv run [options] -- COMMAND...      run a command with it, from here or below
       hotenv dump [options]                   print it
       hotenv status | stop                    look at the session, or end it
       hotenv shellenv                         print a shell function that runs this file

A session ends after 5 idle minutes. `hotenv COMMAND --help` shows a command's options and an example.
"""


def _parser(command: str, summary: str, example: str) -> Any:
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise HotenvError(EXIT_USAGE, f"{command}: {_shown(message)}; see: {_invocation()} {command} --help")

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


# ---- serve


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
        return _serve_in_background(options, response, count)
    return _hold(options, response, count, lambda: None)


def _open_standard_descriptors() -> None:
    """Closed ones would be given to the next file that is opened: a socket must not become stderr."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _refusal() -> HotenvError:
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
    signals = _Signals()
    files = None
    served = False
    try:
        files = _SessionFiles()
        listener = files.bind()
        signals.die_if_received()
        _raise_descriptor_limit()
        server = _Server(listener, response, files, _Log(2, options.level), options.timeout, options.max_age)
        files.stamp(time.time() + server.deadline - _now())
        files.publish(options.force)
        signals.die_if_received()
        served = True
        talks = os.isatty(2) and options.level != "quiet"
        if talks:
            _say(f"session {files.id} ready: {count} variable{'' if count == 1 else 's'}, "
                 f"idle timeout {_duration(options.timeout)}")
        ready()
        reason = server.run(signals)
    except HotenvError as error:
        raise _refusal() if error.code == EXIT_REFUSED else error
    except OSError as error:
        raise _system_error(error, "cannot serve") from None
    finally:
        if files:
            files.remove() if served else files.undo()
    if talks:
        _say(f"session {files.id} ended: {reason}")
    return 0


def _serve_in_background(options: Any, response: bytes, count: int) -> int:
    """The child holds the session; the parent returns when requests are accepted, or with what went wrong."""
    log = _open_private_log(options.log) if options.log is not None else os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    status, report = os.pipe()
    # Fork before listen: the credentials that a client sees are those of whoever called it.
    child = os.fork()
    if child:
        os.close(report)
        if os.read(status, 1):
            return 0
        ended = os.waitpid(child, 0)[1]
        return _die_of(os.WTERMSIG(ended)) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
    os.close(status)

    def ready() -> None:
        os.setsid()
        os.write(report, b"+")  # fails, and ends us, when the caller was interrupted meanwhile
        os.close(report)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir("/")

    os._exit(_in_child(lambda: _hold(options, response, count, ready)))


def _in_child(work: Callable[[], int]) -> int:
    try:
        return work()
    except HotenvError as error:
        _say(str(error))
        return error.code
    except _Killed as signalled:
        return _die_of(signalled.number)


def _open_private_log(path: str) -> int:
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise HotenvError(EXIT_SYSTEM, f"{_shown(path)} is not a regular file: a log goes to one")
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise HotenvError(EXIT_SYSTEM, f"cannot write the log {_shown(path)}: {reason}") from None
    return descriptor


# ---- run and dump


def _run_command(argv: List[str]) -> int:
    parser = _parser("run", "Run a command with the session's environment; all after -- is the command's own.",
                     "  hotenv run -- ./deploy.sh --to production")
    parser.usage = "hotenv run [options] -- COMMAND [ARG...]"
    add = parser.add_argument
    add("--only", metavar="NAMES", help="hand over these alone: NAME,PREFIX*,... (no boundary: a child can ask itself)")
    add("--isolated", action="store_true",
        help="start from an allowlist (PATH, HOME, TERM, ...), not from all you have")
    add("--pass", metavar="NAME", action="append", dest="pass_through",
        help="with --isolated: hand over this variable of yours too")
    add("--define", metavar="NAME=VALUE", action="append",
        help="set a variable that is no secret: `ps` shows it")
    add("--bin", metavar="DIR", action="append", help="put a directory before PATH")
    add("--mask", action="store_true", help="hide the session's values in the command's output, but on a terminal")
    add("--no-mask", metavar="NAME", action="append", help="with --mask: let this variable's value be seen")
    add("--optional", action="store_true", help="without a session, run the command as it is, and say so")
    _add_session_options(parser)
    own, command = _split(argv)
    options = parser.parse_args(own, _Options())
    if not command:
        raise HotenvError(EXIT_USAGE, f"run: the command goes after `--`: {_invocation()} run -- COMMAND...")
    if options.pass_through and not options.isolated:
        raise HotenvError(EXIT_USAGE, "run: --pass goes with --isolated: without it the command gets them all")
    for text in options.define:
        if text.find("=") < 1:
            raise HotenvError(EXIT_USAGE, "run: --define takes NAME=VALUE, and one has no `=` or no name")
    if options.no_mask and not options.mask:
        raise HotenvError(EXIT_USAGE, "run: --no-mask goes with --mask")
    return _run(options, command)


def _split(argv: List[str]) -> Tuple[List[str], List[str]]:
    """What stands before the first `--` is ours; what stands behind it is the command's, to the letter."""
    if "--" not in argv:
        return argv, []
    at = argv.index("--")
    return argv[:at], argv[at + 1:]


def _as_utf8(words: Sequence[str]) -> List[str]:
    """Arguments as text that stands for their bytes whatever the locale, as the environment's is."""
    if sys.getfilesystemencoding() == "utf-8":
        return list(words)
    return [os.fsencode(word).decode("utf-8", "surrogateescape") for word in words]


def _run(options: Any, command: List[str]) -> int:
    host = _host_environment()
    try:
        snapshot = _ask("run", command, options)
    except HotenvError as error:
        if not options.optional or error.code not in (EXIT_NO_SESSION, EXIT_UNREACHABLE):
            raise
        _say(f"{str(error).split(';')[0]}; running without one")
        snapshot = {}
    env = _child_environment(host, _chosen(snapshot, options.only if snapshot else None), options)
    if options.mask:
        redactor = _redactor(snapshot, options.no_mask)
        return _run_masked(command, env, redactor)
    _exec(command, env)


def _redactor(snapshot: Dict[str, str], lifted: Sequence[str]) -> Redactor:
    """For all values of the session, also those that the command does not get: it may have them by other ways."""
    _unfold("redaction")
    _unfold("masked launch")
    unknown = [name for name in _as_utf8(lifted) if name not in snapshot]
    if unknown and snapshot:
        raise HotenvError(EXIT_USAGE, f"--no-mask: the session has no {_shown(unknown[0])}")
    redactor = Redactor(snapshot, _as_utf8(lifted))
    if redactor.unmaskable:
        _say(f"too short to mask: {', '.join(map(_shown, redactor.unmaskable))}")
    return redactor


def _ask(command: str, args: List[str], options: Any) -> Dict[str, str]:
    return fetch(command, _as_utf8(args), options.socket, peer_uid=options.peer_uid)


def _child_environment(host: Dict[str, str], snapshot: Dict[str, str], options: Any) -> Dict[str, str]:
    """Host or allowlist, snapshot, --define, --bin: always in this order."""
    define = dict(snapshot)
    define.update(text.partition("=")[::2] for text in _as_utf8(options.define))
    kept = _as_utf8(options.pass_through) if options.isolated else list(host)
    return build_isolated_env(host, kept, define, _as_utf8(options.bin))


def _chosen(snapshot: Dict[str, str], only: Optional[str]) -> Dict[str, str]:
    """The variables that --only names, by name or PREFIX*; a name that is not there is a usage error."""
    if only is None:
        return snapshot
    chosen: Dict[str, str] = {}
    for wanted in _as_utf8([only])[0].split(","):
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


def _dump_command(argv: List[str]) -> int:
    _unfold("formats")
    parser = _parser("dump", "Print the session's environment.", "  hotenv dump --format names")
    parser.add_argument("--only", metavar="NAMES", help="print these alone: NAME,PREFIX*,...")
    parser.add_argument("--format", choices=list(_FORMATS),
                        help="plain (KEY=VALUE), dotenv (to be parsed), sh (for eval), json, nul, names")
    _add_session_options(parser)
    return _dump(parser.parse_args(argv, _Options()))


def _dump(options: Any) -> int:
    snapshot = _chosen(_ask("dump", [], options), options.only)
    form = _as_plain if options.format == "plain" else _FORMATS[options.format]
    return _write(1, form(snapshot).encode("utf-8", "surrogateescape"))


def _as_plain(env: Dict[str, str]) -> str:
    return "".join([f"{name}={value}\n" for name, value in env.items()])


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


_COMMANDS = {  # command -> the fold that holds it, its function
    "serve": ("", "_serve_command"),
    "run": ("", "_run_command"),
    "dump": ("", "_dump_command"),
    "status": ("daily use", "_status_command"),
    "stop": ("daily use", "_stop_command"),
    "shellenv": ("daily use", "_shellenv_command"),
}

if __name__ == "__main__":
    sys.exit(main())
