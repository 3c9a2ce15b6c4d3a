#!/usr/bin/env python3
"""hotenv keeps secrets in the memory of one process for a while, and hands them to what you run.

    printf 'API_KEY=abc123\\n' | python3 hotenv.py serve --background
    python3 hotenv.py run -- printenv API_KEY

One file, standard library only, Python 3.8 and later, Linux and macOS.

For importers: the names in `__all__` are the library. They keep their parameters and their meaning
within a major version. Every other name may change in any version, with or without an underscore.
Importing this module has no side effects.
"""
# What hotenv protects from: secrets in files, on command lines and in logs, and secrets that stay
# in memory for longer than they are needed.
#
# What hotenv does not protect from: root, swap, a command that prints its own environment, and any
# process of the same user that asks the server. Whoever can connect to the socket is trusted.
#
# The invariants. For each there are tests that fail without it.
#
#   1. hotenv never puts a value on an argv, into a log line, an error message, a traceback or a
#      file, nor where other users can read it in /proc.
#   2. Nothing is created before the whole input has been parsed. A refused start leaves nothing.
#      (A fill makes the runtime directory, in which its lock is.)
#   3. Expire first, then serve: deadlines are checked before any request is answered, on a clock
#      that counts suspend. After the deadline no value leaves the process.
#   4. The snapshot never changes, so the response is encoded once. A request costs one send.
#   5. No client can hold up another client, the timers or the signals.
#   6. Only a request that was answered in full resets the idle timer. Its log line and the
#      socket's time stamp are written before the connection is closed.
#   7. hotenv removes only its own files. With --force it also removes an old socket that lies
#      where hotenv's sockets lie.
#   8. `run` becomes the command: the same process, terminal, signals and exit status. If that
#      succeeds, hotenv prints nothing of its own. Only with --mask the command is a child.
#   9. Markers and sockets may lie. A marker counts only if it belongs to this user or root. A
#      server counts only if it runs as this user, as root, or as --peer-uid.
#  10. Whatever comes from outside is escaped before a terminal or a log shows it.
#  11. Each command imports only what it needs. No check is an `assert`, which -O removes.
#  12. The server writes no core dump, and closes its memory and its /proc entry to the user's other
#      processes, as far as the system can.
#
# The rooms stand in the order in which the data flows, and each uses only rooms above it:
#
#   errors and text          exit codes, HotenvError, escaping, durations
#   the process              signals, the C library, exec, hardening, who the other end is
#   dotenv                   text into entries
#   environment              entries into values, and the environment of a child
#   session files            the runtime directory, the socket, the record, the marker
#   protocol                 bytes into a request or a snapshot
#   client                   find a session, ask it, look at it, end it
#   server                   the loop that hands out the snapshot
#   serving                  read the input, go to the background, hold the session
#   redaction                values and their spellings into masks
#   tokens                   secrets that no session holds, told by how they look
#   masked run               the one case in which the command is a child
#   guards: what is asked    options and files into one set of guards
#   guards: the kernel       what Linux itself refuses to a program
#   guards: the hook         what a guarded Python may not do
#   guards: the start        which program a target is, and how it is started
#   policy                   which commands a piece of shell text runs
#   shell                    a live bash for programs and agents
#   mcp                      the Model Context Protocol over shells
#   command line             options, one function a command, help, exit status

from __future__ import annotations

import sys

# Python puts the directory of a script, or under -m the current directory, first on the path. A
# json.py there must not be taken for Python's own. Two files cannot be kept out in this way:
# __future__.py, which is imported above, and under -m a hotenv.py.
_ISOLATED = bool(sys.flags.isolated or getattr(sys.flags, "safe_path", False))
if __name__ == "__main__" and not _ISOLATED:
    del sys.path[0]

import errno
import os
import stat
import time

TYPE_CHECKING = False  # `typing` costs milliseconds at each start, and type checkers know this name
if TYPE_CHECKING:
    import mmap
    import re
    import socket
    import threading
    from argparse import Action, ArgumentParser, Namespace
    from argparse import _ActionsContainer as OptionGroup
    from typing import Any, Callable, Container, Dict, Generator, Iterable, Iterator, List
    from types import FrameType, TracebackType
    from typing import Mapping, NoReturn, Sequence, Tuple

    Env = Mapping[str, str]  # an environment that is only read
    Values = Dict[str, str]  # an environment that is being made
    Strings = Iterable[str]
    Words = List[str]
    Json = Dict[str, Any]  # an object of JSON: what it holds must be looked at
    SeccompCondition = Tuple[int, int, int]
    SeccompInstruction = Tuple[int, int, int, int]

# The path of `run` uses the C halves of three modules: to import signal, socket and json would cost
# several times as much at each run. Their names are Python's own business: an interpreter may lack
# one, or want more of it. Whatever goes wrong, the public module serves.
_SIGNAL_NAMES = [  # what hotenv uses of the first
    "SIG_BLOCK", "SIG_DFL", "SIG_IGN", "SIG_SETMASK", "SIG_UNBLOCK", "SIGABRT", "SIGBUS",
    "SIGCHLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGKILL", "SIGPIPE",
    "SIGQUIT", "SIGSEGV", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN",
    "SIGTTOU", "SIGURG", "SIGWINCH", "SIGXFSZ", "getsignal", "pthread_sigmask", "set_wakeup_fd",
    "signal", "sigpending", "valid_signals",
]
_SOCKET_NAMES = [  # and of the second; the protocol sees to the third
    "AF_INET", "AF_INET6", "AF_UNIX", "MSG_DONTWAIT", "SHUT_WR", "SOCK_STREAM", "SOL_SOCKET",
    "SocketType", "getaddrinfo", "gethostbyname", "gethostbyname_ex", "inet_aton", "inet_ntoa",
    "inet_ntop", "inet_pton", "socket", "timeout",
]
try:
    import _signal
    for _name in _SIGNAL_NAMES:
        getattr(_signal, _name)
except Exception:
    import signal as _signal
try:
    import _socket
    for _name in _SOCKET_NAMES:
        getattr(_socket, _name)
except Exception:
    import socket as _socket  # type: ignore[no-redef]

__version__ = "1.2.0"
__all__ = [
    "ExecResult",
    "HotenvError",
    "OutputPart",
    "PolicyDenied",
    "Redactor",
    "SessionPoisoned",
    "ShellJob",
    "ShellSession",
    "build_isolated_env",
    "fetch",
    "load",
    "main",
    "parse_dotenv",
    "resolve_env",
]


# ==== errors and text =============================================================================
# What ends a command, and how text is shown. Every other room uses this one.
#
# An error is one line that says what is wrong, and for each remedy a line behind `hint: `. Names
# may stand in an error, values never.

EXIT_USAGE = 2
EXIT_NO_SESSION = 3
EXIT_UNREACHABLE = 4
EXIT_INPUT = 7
EXIT_SYSTEM = 8
EXIT_ARTIFACT = 9
EXIT_REFUSED = 10

MAX_DURATION = 366 * 86400.0  # seconds: a session is short-lived
_SHOWN_WORD = 60  # characters of a mistyped word that an error repeats
# The characters that need no quotes in a shell.
_SHELL_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_")


class HotenvError(Exception):
    """What ends a command: `code` is the exit status, `str()` the message without `hotenv: `.

    `hints` says what to do about it, one remedy a string.
    """

    def __init__(self, code: int, message: str, *hints: str) -> None:
        """Take the exit status, what is wrong, and what to do about it."""
        super().__init__(message)
        self.code = code
        self.hints = hints


class _NotTrusted(HotenvError):
    """What was found belongs to somebody else. `run --optional` goes on as without a session."""


def _usage(message: str, *hints: str) -> HotenvError:
    """Return the error for wrong words on the command line, or for wrong arguments."""
    return HotenvError(EXIT_USAGE, message, *hints)


def _system_error(error: OSError, doing: str, *hints: str) -> HotenvError:
    """Return the error for what the system refused while hotenv was `doing` something."""
    return HotenvError(EXIT_SYSTEM, f"{doing}: {_reason(error)}", *hints)


def _reason(error: OSError) -> str:
    """Return why the system refused, without the path, which may hold control characters."""
    return error.strerror or _shown(str(error)) or type(error).__name__


def _encoded(text: str) -> bytes:
    """Return the bytes that a text of the environment stands for, whatever the locale."""
    return text.encode("utf-8", "surrogateescape")


def _decoded(raw: bytes) -> str:
    """Return bytes of the environment as a text, from which _encoded() makes them again."""
    return raw.decode("utf-8", "surrogateescape")


def _as_utf8(word: str) -> str:
    """Return a word of the command line as _encoded() takes it, whatever the locale."""
    return _decoded(os.fsencode(word))


def _shown(text: str) -> str:
    """Return `text` with everything unprintable escaped, safe for terminals and logs."""
    if text.isprintable():
        return text
    shown = []
    for character in text:
        if character.isprintable():
            shown.append(character)
        else:
            shown.append(ascii(character)[1:-1])
    return "".join(shown)


def _plural(count: int, noun: str) -> str:
    """Return `1 variable`, `2 variables`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}s"


def _duration(seconds: float) -> str:
    """Return seconds as 5m, 1h30m or 0.5s."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = []
    for count, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")):
        if count:
            parts.append(f"{count:.10g}{unit}")
    return "".join(parts) or "0s"


def _parse_duration(text: str) -> float:
    """Return the seconds of 300, 90s, 1h30m or 2d; HotenvError 2 for anything else."""
    import re
    number = r"(\d+(?:\.\d*)?|\.\d+)"
    pattern = f"(?:{number}d)?(?:{number}h)?(?:{number}m)?(?:{number}s)?|{number}"
    found = re.fullmatch(pattern, text, re.ASCII)
    seconds = 0.0
    if found:
        days, hours, minutes, seconds_with_unit, seconds_alone = map(float, found.groups("0"))
        seconds = days * 86400 + hours * 3600 + minutes * 60 + seconds_with_unit + seconds_alone
    if not 0 < seconds <= MAX_DURATION:
        raise _usage(
            f"{text[:_SHOWN_WORD]!r} is no duration above 0 and up to 366d",
            "durations are written 90s, 5m, 1h30m or 2d",
        )
    return seconds


def _quoted(word: str) -> str:
    """Return a word as a shell reads it as one word; unprintable characters are escaped."""
    shown = _shown(word)
    if shown and _SHELL_SAFE.issuperset(shown):
        return shown
    return "'" + shown.replace("'", "'\\''") + "'"


def _invocation() -> str:
    """Return how the user called hotenv, as a shell takes it."""
    if sys.argv and os.path.basename(sys.argv[0]) == os.path.basename(__file__):
        return "python3 " + _quoted(sys.argv[0])
    return "hotenv"


def _say(message: str) -> None:
    """Write a line to stderr. If stderr is closed, broken or full, no exit status changes."""
    _say_lines(f"hotenv: {message}\n")


def _say_error(error: HotenvError) -> None:
    """Write what is wrong, and behind `hint: ` each thing to do about it."""
    lines = f"hotenv: {error}\n"
    for hint in error.hints:
        lines += f"hint: {hint}\n"
    _say_lines(lines)


def _say_lines(text: str) -> None:
    if not sys.stderr:  # it was closed at the start, and another file may have its number by now
        return
    try:
        os.write(2, text.encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of these bytes."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left):]


def _write(descriptor: int, text: str, what: str = "the output") -> None:
    """Write all of a text. A reader that has gone is no error. A full disk is one."""
    try:
        _write_all(descriptor, _encoded(text))
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise _system_error(error, "cannot write " + what) from None


def _content(path: str | bytes, size: int = -1) -> bytes:
    """Return the bytes of a file, or the first of them."""
    with open(path, "rb") as file:
        return file.read(size)


def _best_effort(call: Callable[..., object], *args: object, **kwargs: object) -> None:
    """Call a function, and go on where the system refuses.

    There is no result, so that no decision can hang on it.
    """
    try:
        call(*args, **kwargs)
    except OSError:
        pass


# ==== the process =================================================================================
# What hotenv asks of the operating system on behalf of its own process: signals, functions of the
# C library, hardening, who sits at the other end of a socket, finding a program and becoming it.

_PRCTL_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
_PRCTL_SET_DUMPABLE = 4  # PR_SET_DUMPABLE
_PRCTL_SET_NAME = 15  # PR_SET_NAME
_PRCTL_SET_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
_PTRACE_DENY_ATTACH = 31  # PT_DENY_ATTACH of macOS

_SOL_LOCAL = 0  # of macOS, as are the next two
_LOCAL_PEER_CREDENTIALS = 1  # LOCAL_PEERCRED: struct xucred, which has a version and then the uid
_LOCAL_PEER_PROCESS = 2  # LOCAL_PEERPID
_PEER_STRUCT = 76  # bytes: room for struct xucred, and more than struct ucred has

OVERFLOW_UID = 65534  # what a user namespace that maps only some ids shows for every stranger
_ALL_UIDS = b"4294967295"  # how many uids /proc/self/uid_map lists where all are mapped

_FIRST_LINE = 4096  # bytes of a script that are read for its interpreter

# The signals that end a session cleanly.
_SESSION_ENDING = {_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT}

# The signals that a handler can wait for: all but two that no process can catch, and those that a
# fault of the process itself raises.
_CATCHABLE = _signal.valid_signals() - {
    _signal.SIGKILL,
    _signal.SIGSTOP,
    _signal.SIGILL,
    _signal.SIGTRAP,
    _signal.SIGABRT,
    _signal.SIGBUS,
    _signal.SIGFPE,
    _signal.SIGSEGV,
    _signal.SIGSYS,
}

# Those of them that end a process which has no handler for them.
_PROCESS_ENDING = _CATCHABLE - {
    _signal.SIGCHLD,
    _signal.SIGTSTP,
    _signal.SIGTTIN,
    _signal.SIGTTOU,
    _signal.SIGCONT,
    _signal.SIGWINCH,
    _signal.SIGURG,
}


class _Signals:
    """Signals that are caught: they are noted in `received`, and wake whoever waits for `wake`.

    Signals that were ignored at the start stay ignored, as nohup and `&` ask for. Those in `always`
    are caught even so.
    """

    def __init__(self, signums: Iterable[int], always: Container[int] = ()) -> None:
        self.received: list[int] = []  # in the order in which they came
        self.caught: list[int] = []
        self.wake, end = os.pipe()
        os.set_blocking(end, False)
        _signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        for signum in signums:
            if signum in always or _signal.getsignal(signum) != _signal.SIG_IGN:
                _signal.signal(signum, self._note)
                self.caught.append(signum)

    def _note(self, signum: int, frame: object) -> None:
        self.received.append(signum)

    def clear_wake(self) -> None:
        """Empty the descriptor `wake`, which is ready to be read."""
        os.read(self.wake, 4096)


def _block_at_exit(signums: Iterable[int]) -> None:
    """Let no caught signal change the exit status any more.

    Python forgets its handlers when the interpreter ends. A signal that came after that would end
    the process although its work is done.
    """
    import atexit
    atexit.register(_signal.pthread_sigmask, _signal.SIG_BLOCK, signums)


def _die_of(signum: int) -> NoReturn:
    """End this process by a signal, so that its parent sees that it was this signal."""
    try:
        _signal.signal(signum, _signal.SIG_DFL)
    except OSError:
        pass  # it is SIGKILL, or one that the C library keeps for itself
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {signum} & _signal.valid_signals())
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # the first process of a container does not die of a signal


def _end_like(status: int) -> int:
    """Return the exit status in a child's wait status. If a signal ended the child, die of it."""
    if os.WIFSIGNALED(status):
        _die_of(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _call_c(function: str, *args: int | bytes) -> int:
    """Return what a function of the C library returns; bytes are passed by their address.

    OSError: this Python has no ctypes, there is no such function, or the system refuses.
    """
    try:
        import ctypes
    except ImportError:  # a Python can be built without
        raise OSError(errno.ENOSYS, "this Python has no ctypes") from None
    try:
        found = ctypes.pythonapi[function]  # it finds whatever the process has loaded
    except AttributeError:
        raise OSError(errno.ENOSYS, "there is no " + function) from None
    result: int = found(*[ctypes.c_void_p.from_param(arg) for arg in args])
    if result < 0:
        raise OSError(errno.EPERM, "the system refuses " + function)
    return result


def _die_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent, whose pid is given, ends in any way."""
    _best_effort(_call_c, "prctl", _PRCTL_SET_DEATH_SIGNAL, _signal.SIGKILL)
    if os.getppid() != parent:  # the parent has ended before that call
        os.kill(os.getpid(), _signal.SIGKILL)


def _name_process(name: bytes) -> None:
    """Give this process a name, for `ps` and pkill on Linux."""
    _best_effort(_call_c, "prctl", _PRCTL_SET_NAME, name)


def _forbid_new_privileges() -> None:
    """Forbid, for good, that a set-user-ID program gains privileges below this process; OSError."""
    _call_c("prctl", _PRCTL_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


class _CoreLimit:
    """The limit on core dumps: none for this process, and for a command what was there before."""

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None
        try:
            import resource
            soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
            self._before = (soft, hard)
        except (ImportError, OSError, ValueError):
            pass  # a small Python lacks the module, and some sandboxes refuse the call

    def put_back(self) -> None:
        """Give the command that this process becomes the limit that was there before."""
        if self._before:
            import resource
            resource.setrlimit(resource.RLIMIT_CORE, self._before)


def _close_memory() -> bool:
    """Close the memory of this process to others of the same user, until it becomes a program.

    False: the system, or a Python without ctypes, leaves it open.
    """
    try:
        if sys.platform == "darwin":
            _call_c("ptrace", _PTRACE_DENY_ATTACH, 0, 0, 0)
        else:
            _call_c("prctl", _PRCTL_SET_DUMPABLE, 0)
    except OSError:
        return False
    return True


def _harden() -> bool:
    """Write no core dump, and close the memory of this process; see _close_memory()."""
    _CoreLimit()
    return _close_memory()


def _is_own_uid(uid: int) -> bool:
    """Is this the user id of this process, and no stranger's?

    In a user namespace that maps only some ids, strangers show the overflow uid, and a process with
    that uid cannot tell them from itself.
    """
    if uid != os.geteuid():
        return False
    if uid != OVERFLOW_UID:
        return True
    try:
        mapping = _content("/proc/self/uid_map")
    except OSError:
        return True  # there is no /proc, or this kernel has no user namespaces
    return _ALL_UIDS in mapping  # one range that has them all


class _Peer:
    """The process at the other end of a socket. A pid of 0 or less is unknown."""

    def __init__(self, pid: int, uid: int) -> None:
        self.pid = pid
        self.uid = uid


def _peer_of(sock: _socket.socket) -> _Peer:
    """Return who listens at the other end of a socket of either module."""
    if hasattr(_socket, "SO_PEERCRED"):
        level, credentials, process = _socket.SOL_SOCKET, _socket.SO_PEERCRED, _socket.SO_PEERCRED
    else:
        level, credentials, process = _SOL_LOCAL, _LOCAL_PEER_CREDENTIALS, _LOCAL_PEER_PROCESS
    # Both structures have the uid in their second word. On Linux the pid is the first one.
    raw = sock.getsockopt(level, credentials, _PEER_STRUCT)
    if len(raw) < 8:  # no uid: without this check, it would be read as 0, the uid of root
        raise OSError(errno.EPROTO, "the system does not say who listens")
    pid = sock.getsockopt(level, process)
    return _Peer(pid, int.from_bytes(raw[4:8], sys.byteorder))


def _host_environment() -> Values:
    """Return the environment of this process, without the LC_CTYPE that Python adds (PEP 538)."""
    env = {_decoded(name): _decoded(value) for name, value in os.environb.items()}
    if env.get("LC_CTYPE") not in ("C.UTF-8", "C.utf8", "UTF-8") or env.get("LC_ALL"):
        return env
    try:
        started = _content("/proc/self/environ")
    except OSError:
        # There is no /proc, or this process is closed even to itself: see _close_memory(). Python
        # adds the variable together with its UTF-8 mode.
        if sys.flags.utf8_mode and "PYTHONUTF8" not in env:
            del env["LC_CTYPE"]
        return env
    for entry in started.split(b"\0"):
        if entry.startswith(b"LC_CTYPE="):
            env["LC_CTYPE"] = _decoded(entry[len(b"LC_CTYPE="):])
            return env
    del env["LC_CTYPE"]
    return env


def _which(name: str, path: str) -> str:
    """Return the program that a name means on this PATH, or ''. A path means itself."""
    if "/" in name:
        return name
    # shutil.which and os.execvpe would import more, at each `run`.
    for directory in _encoded(path).split(b":"):
        place = os.path.join(directory, os.fsencode(name))
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.fsdecode(place)
    return ""


def _hints_for_no_program(name: str) -> list[str]:
    """Return hints at what may be meant by a name that the PATH of a command does not have."""
    if os.path.isfile(name):
        return ["there is a file of this name here: run -- " + _quoted("./" + name)]
    if _which(name, os.environ.get("PATH", os.defpath)):
        return ["your own PATH has it: the command gets another, from the session or an option"]
    hints = ["builtins, aliases and `a && b` belong to a shell: run -- sh -c '...'"]
    if " " in name:
        hints.insert(0, "a command is several words: run -- " + _shown(name))
    return hints


def _exec(argv: Words, env: Env, place: bytes = b"") -> NoReturn:
    """Replace this process by a program: by what lies at `place`, or by what PATH has for argv[0].

    HotenvError 8 says why the program could not be started.
    """
    words = [os.fsencode(word) for word in argv]
    raw = {_encoded(name): _encoded(value) for name, value in env.items()}
    if not place:
        place = os.fsencode(_which(argv[0], env.get("PATH", os.defpath)))
    if not place:
        hints = _hints_for_no_program(argv[0])
        raise _cannot_run(argv[0], "not found on PATH as a program", *hints)
    # Python ignores these two, and a program would inherit that.
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
    try:
        os.execve(place, words, raw)
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script without a first line, as execvp runs it
            _best_effort(os.execve, b"/bin/sh", [b"/bin/sh", place, *words[1:]], raw)
        failure = _why_not_run(argv[0], place, words, raw, error)
    # This process lives on, if only to say why.
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
    raise failure


def _cannot_run(name: str, reason: str, *hints: str) -> HotenvError:
    return HotenvError(EXIT_SYSTEM, f"cannot run {_shown(name)}: {reason}", *hints)


def _why_not_run(
    name: str, place: bytes, words: list[bytes], env: dict[bytes, bytes], error: OSError
) -> HotenvError:
    """Return the error for a program that the system did not start."""
    if error.errno == errno.ENOENT and os.path.exists(place):
        return _cannot_run(name, _missing_interpreter(place))
    if error.errno == errno.E2BIG:
        sizes = {}
        for number, word in enumerate(words):
            sizes[f"argument {number}"] = len(word)
        for variable, value in env.items():
            sizes["the variable " + _shown(os.fsdecode(variable))] = len(value)
        largest = max(sizes, key=lambda part: sizes[part])
        return _cannot_run(
            name, _reason(error), f"the largest part is {largest}, with {sizes[largest]} bytes")
    if error.errno == errno.EACCES and os.path.isdir(place):
        return _cannot_run(name, "it is a directory")
    if error.errno == errno.EACCES and os.path.isfile(place) and not os.access(place, os.X_OK):
        return _cannot_run(name, "it is not executable", f"chmod +x {_quoted(name)}")
    return _cannot_run(name, _reason(error))


def _missing_interpreter(place: bytes) -> str:
    """Say why the kernel does not find a program that is there."""
    try:
        head = _decoded(_content(place, _FIRST_LINE))
    except OSError:
        head = ""
    line = head.split("\n")[0].strip(" ")
    if line.startswith("#!"):  # a \r at its end is often what is wrong
        return f"the interpreter in its first line, {_shown(line[2:].strip(' '))}, is missing"
    return "the interpreter or the loader that it needs is missing"


def _exit_status(work: Callable[..., int], *args: object) -> int:
    """Return what `work` returns, or print the error that it raises and return its exit status."""
    try:
        return work(*args)
    except HotenvError as error:
        _say_error(error)
        return error.code
    except ImportError as error:
        _say_error(HotenvError(
            EXIT_SYSTEM, f"this Python lacks the module {_shown(error.name or str(error))}",
            "install all of Python: on Debian python3, not python3-minimal"))
        return EXIT_SYSTEM
    except OSError as error:
        _say(_reason(error))
        return EXIT_SYSTEM
    except MemoryError:
        _say("out of memory")
        return EXIT_SYSTEM
    except KeyboardInterrupt:
        _die_of(_signal.SIGINT)
    except Exception as error:  # the last line of a traceback may hold a value: say where, no more
        line = 0
        frame = error.__traceback__
        while frame:
            if frame.tb_frame.f_code.co_filename == _exit_status.__code__.co_filename:
                line = frame.tb_lineno
            frame = frame.tb_next
        _say(f"internal error: {type(error).__name__} at line {line} of hotenv; please report it")
        return EXIT_SYSTEM


# ==== dotenv ======================================================================================
# The input of `serve` into entries, or one error with its place. Knows nothing of files or sockets.
#
# An error shows a position and, once `key =` has been read, the key. It shows nothing else of the
# text: any of the text may be the tail of a secret.

MAX_INPUT = 64 << 20  # bytes of input: far above any real file
MAX_EXPANSION = 64 << 20  # characters made by references: to double sixty times is a short file
MAX_NESTING = 64  # references within defaults: deeper is a mistake, and recursion must end

# One statement. A mistake is matched as nothing. The pattern takes linear time, because no two
# neighbouring repeats share a character.
_STATEMENT = r"""(?x)
    \s*
    (?: \Z
      | (?P<export> export[^\S\n]+ )?
        (?: \#.*\n
          | (?(export)|(?!export[^\S\n]))
            (?P<name_quote>'?) (?P<name>[A-Za-z0-9_.-]+) (?P=name_quote) [^\S\n]*
            (?: = (?: [^\S\n]* (?P<quote>["']) | (?P<bare>.*)\n )
              | (?:\#.*)? \n ) ) )
  | """

# The signs that mean something in a value: in a bare one, within "..." and within '...'. A `${`
# without a name is a mistake.
_REFERENCE = r"\$\{ (?: (?P<name>[A-Za-z0-9_.]+) (?: (?P<colon>:?)(?P<operator>[-+?]) | (?=\}) ) )?"
_SIGN_IN_BARE = rf"(?x) \\\$\{{ | \}} | {_REFERENCE}"
_SIGN_IN_DOUBLE = _SIGN_IN_BARE + r"""| \\[\\'"abfnrtv]"""
_ESCAPE_IN_SINGLE = r"\\[\\']"

# What an escape stands for, by its last character.
_ESCAPED = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "{": "${",
}

# How far a statement without `=` makes sense. The pattern matches anything.
_BEGINNING = r"""(?x)
    \s* (?:export[^\S\n]+)? (?P<name_quote>')? [A-Za-z0-9_.-]*
    (?P<whole> (?<=[A-Za-z0-9_.-]) (?(name_quote)'|(?=[\s\#])) [^\S\n]* )?"""

_HINT_JSON_TEXT = "in a JSON text a newline is written \\n, and a tab \\t"
_HINT_REFERENCE = "write ${NAME}, ${NAME:-default}, or \\${ for a literal ${"


class _Template:
    """A value that is not final: one with references, or a bare one that begins with `?`."""

    def __init__(self, raw: str, quote: str, text: str, start: int) -> None:
        self.raw = raw  # as it stands in the text, without its quotes
        self.quote = quote  # a double one, or "" for a bare value
        self.text = text  # the whole input
        self.start = start  # where `raw` stands in it

    def question(self) -> str | None:
        """Return what is to be asked, without its `?`; None if this is no question."""
        if self.quote or not self.raw.startswith("?"):
            return None
        return self.raw[1:].strip()

    def error(self, position: int, name: str, reason: str, *hints: str) -> HotenvError:
        """Return the error for a position in the value of `name`."""
        reason = f"{reason}, in the value of {name}"
        return _dotenv_error(self.text, self.start + position, reason, *hints)


class _Expansion:
    """Finds out what templates stand for, and counts the characters that references make."""

    def __init__(self, host: Env) -> None:
        self.env: Values = {}  # what earlier entries have set
        self.host = host
        self.room = MAX_EXPANSION  # characters that references may still make

    def expand(self, name: str, template: _Template, is_used: bool) -> str:
        """Return the value of a template. If it is not used, its text is only checked."""
        import re
        self.name = name
        self.template = template
        pattern = _SIGN_IN_DOUBLE if template.quote else _SIGN_IN_BARE
        self.signs = re.compile(pattern).finditer(template.raw)
        self.position = 0  # all text before this place has been read
        return self._text(is_used, ()) + template.raw[self.position:]

    def _text(self, is_used: bool, opened: tuple[int, ...]) -> str:
        """Return the text up to the } of the innermost open reference; without one, to the end.

        `opened` has the positions of the references that are open, the innermost last.
        """
        raw = self.template.raw
        pieces = []
        for sign in self.signs:
            pieces.append(raw[self.position:sign.start()])
            self.position = sign.end()
            if sign[0] == "}":
                if opened:
                    return "".join(pieces)
                pieces.append("}")
            elif sign[0].startswith("${"):
                pieces.append(self._reference(sign, is_used, opened))
            else:
                pieces.append(_ESCAPED[sign[0][-1]])
        if opened:
            raise self._error(
                opened[0], "bad reference: its } is missing", "write \\${ for a literal ${")
        return "".join(pieces)

    def _reference(self, sign: re.Match[str], is_used: bool, opened: tuple[int, ...]) -> str:
        """Return what a reference stands for. Its word is read in any case."""
        name, colon, operator = sign["name"], sign["colon"], sign["operator"]
        if not name:
            raise self._error(sign.start(), "bad reference", _HINT_REFERENCE)
        if len(opened) == MAX_NESTING:
            raise self._error(sign.start(), f"references are nested over {MAX_NESTING} deep")
        found = self.env.get(name, self.host.get(name))
        if found is None or not found and colon == ":":
            if operator == "?" and is_used:
                raise self._error(sign.start(), "a required reference is not set, or empty")
            value = ""
            needs_word = operator == "-"
        elif operator == "+":
            value = ""
            needs_word = True
        else:
            value = found
            needs_word = False
        if is_used:
            self._take_room(len(value), sign.start())
        word = self._text(is_used and needs_word, (*opened, sign.start()))
        return word if needs_word else value

    def _take_room(self, size: int, position: int) -> None:
        """Count what a reference has made; HotenvError 7 if all together have made too much."""
        self.room -= size
        if self.room < 0:
            limit = f"{MAX_EXPANSION >> 20} MiB"
            raise self._error(position, f"references expand to too large a text, over {limit}")

    def _error(self, position: int, reason: str, *hints: str) -> HotenvError:
        return self.template.error(position, self.name, reason, *hints)


def _parse_entries(source: str | bytes) -> Iterator[tuple[str, str | _Template]]:
    """Yield the name and the value of each entry; HotenvError 7 at the first mistake."""
    import re
    text = _dotenv_text(source)
    match_statement = re.compile(_STATEMENT).match
    known = set()  # names that may be exported without a value
    position = 0
    while position < len(text):
        start = position
        statement = match_statement(text, start)
        if not statement or statement.end() == start:
            raise _mistake(text, start)
        position = statement.end()
        name, quote, bare = statement["name"], statement["quote"], statement["bare"]
        if not name:
            continue  # a comment, or the end
        if quote:
            raw, position = _quoted_value(text, position, name, quote)
        elif bare is not None:
            raw = _bare_value(bare)
        elif statement["export"] and name in known:
            continue
        else:
            raise _mistake(text, start)
        known.add(name)
        has_reference = quote != "'" and "${" in raw
        may_be_question = not quote and raw.startswith("?")
        if has_reference or may_be_question:
            place = text.index(raw, statement.end("name"))
            yield name, _Template(raw, quote or "", text, place)
        else:
            yield name, _unescaped(raw, quote)


def _dotenv_text(source: str | bytes) -> str:
    """Return the text that is parsed: its newlines are \\n, and it ends with one."""
    import re
    text = _decoded(source) if isinstance(source, bytes) else source
    if text.startswith("\ufeff"):  # a byte order mark
        text = text[1:]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii() or "\0" in text:
        wrong = re.search("[\0\ud800-\udfff]", text)
        if wrong:
            raise _dotenv_error(
                text, wrong.start(), "NUL or invalid UTF-8",
                "save the text as UTF-8; --format nul takes any bytes but NUL")
    return text + "\n"


def _quoted_value(text: str, start: int, name: str, quote: str) -> tuple[str, int]:
    """Return the raw value that begins at `start`, and where the next statement may begin.

    `start` is behind the quote that opens the value.
    """
    end = text.find(quote, start)
    checked = start
    while end > 0 and _is_escaped(text, checked, end):
        checked = end + 1
        end = text.find(quote, checked)
    if end < 0:
        raise _dotenv_error(
            text, start - 1, f"unterminated quote: the value of {name} starts here and never ends")
    next_line = text.index("\n", end) + 1
    rest = text[end + 1:next_line].lstrip()
    if rest and not rest.startswith("#"):
        opened = _place(text, start - 1)
        raise _dotenv_error(
            text, next_line - len(rest),
            f"text after the closing quote of {name}, which opened at {opened}",
            f"within the quotes, write \\{quote}")
    return text[start:end], next_line


def _is_escaped(text: str, start: int, position: int) -> bool:
    """Does an odd number of backslashes, none of them before `start`, end at this position?"""
    before = text[start:position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _bare_value(value: str) -> str:
    """Return an unquoted value without its comment, and without blanks around it."""
    if "#" in value:
        import re
        value = re.split(r"\s#", value, maxsplit=1)[0]
    return value.strip()


def _unescaped(raw: str, quote: str | None) -> str:
    """Return the value that stands between quotes, or a bare one, where it has no references."""
    if not quote or "\\" not in raw:
        return raw
    import re
    escape = _ESCAPE_IN_SINGLE if quote == "'" else _SIGN_IN_DOUBLE
    return re.sub(escape, lambda sign: _ESCAPED.get(sign[0][-1], sign[0]), raw)


def _place(text: str, position: int) -> str:
    """Return the line and the column of a position, as 3:14."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"{line}:{column}"


def _dotenv_error(text: str, position: int, reason: str, *hints: str) -> HotenvError:
    return HotenvError(EXIT_INPUT, f"<stdin>:{_place(text, position)}: {reason}", *hints)


def _mistake(text: str, start: int) -> HotenvError:
    """Return the error that says why no statement begins at `start`."""
    import re
    hints = []
    if not text[:start].strip():
        error = _error_of_other_format(text)
        if error:
            return error
        hints = [f"is the first line a password alone? ... | tail -n +2 | {_invocation()} serve"]
    found = re.compile(_BEGINNING).match(text, start)
    end = _end_of(found)
    if found and found["whole"] is not None:
        return _dotenv_error(
            text, end, "no `=` after a name",
            "is it the rest of an unquoted value, or exported before it is set?", *hints)
    if found and found["name_quote"] and "'" not in text[end:]:
        return _dotenv_error(
            text, found.start("name_quote"), "unterminated quote around a name")
    return _dotenv_error(
        text, end, "bad name", "a name has letters, digits, `_`, `.` and `-`", *hints)


def _error_of_other_format(text: str) -> HotenvError | None:
    """Return the error for a text that is JSON or markup; None for any other text."""
    start = len(text) - len(text.lstrip())
    if text.startswith("{", start):
        return _dotenv_error(text, start, "this looks like JSON", "serve --format json reads JSON")
    if text.startswith("<", start):
        return _dotenv_error(
            text, start, "this looks like HTML or XML, not NAME=value lines",
            "did the store answer with an error page?")
    return None


def _parse_json_entries(source: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of one JSON object; HotenvError 7 if it is anything else.

    Strings are taken as they are, numbers and booleans as they are written. Nothing else is a value
    of an environment: the error names the member, never its value.
    """
    import re
    text = _dotenv_text(source).rstrip()
    if not text:
        return  # --empty has allowed it
    skip_blanks = re.compile(r"[ \t\n]*").match
    position = _end_of(skip_blanks(text, 0))
    if not text.startswith("{", position):
        raise _dotenv_error(text, position, "this is no JSON object")
    known: set[str] = set()
    position = _end_of(skip_blanks(text, position + 1))
    is_first = True
    while not text.startswith("}", position):
        if not is_first:
            position = _skip_json_sign(text, position, ",")
        is_first = False
        start = position
        name, position = _json_name(text, position, known)
        position = _skip_json_sign(text, position, ":")
        value, position = _json_value(text, position, name)
        if not _is_environment({name: value}):
            raise _dotenv_error(
                text, start, f"no environment can hold {_shown(name) or 'an empty name'}",
                "a name is not empty and has no `=`; neither has NUL or half a character")
        yield name, value
        position = _end_of(skip_blanks(text, position))
    position = _end_of(skip_blanks(text, position + 1))
    if position < len(text):
        raise _dotenv_error(text, position, "there is something behind the JSON object")


def _end_of(match: re.Match[str] | None) -> int:
    """Return where a match of a pattern that matches anything ends."""
    return match.end() if match else 0


def _skip_json_sign(text: str, position: int, sign: str) -> int:
    """Return the place of what follows a comma or a colon; HotenvError 7 if there is none."""
    import re
    found = re.compile(rf"[ \t\n]*{sign}[ \t\n]*").match(text, position)
    if not found:
        if position == len(text):
            raise _dotenv_error(text, position, "malformed JSON: its `}` is missing")
        raise _dotenv_error(text, position, f"malformed JSON: a `{sign}` is expected here")
    return found.end()


def _json_name(text: str, position: int, known: set[str]) -> tuple[str, int]:
    """Return the name of a member and where it ends; HotenvError 7 if there is none, or again."""
    from json.decoder import scanstring  # type: ignore[attr-defined]
    if not text.startswith('"', position):
        raise _dotenv_error(text, position, "malformed JSON: a name in double quotes is expected")
    try:
        name, end = scanstring(text, position + 1)
    except ValueError:
        reason = "malformed JSON: this name never ends, or has a bad escape"
        raise _dotenv_error(text, position, reason, _HINT_JSON_TEXT) from None
    if name in known:
        raise _dotenv_error(text, position, f"{_shown(name)} is here a second time")
    known.add(name)
    return name, end


def _json_value(text: str, position: int, name: str) -> tuple[str, int]:
    """Return a value as a text, and where it ends; HotenvError 7 if no environment can hold it."""
    import re
    from json.decoder import scanstring  # type: ignore[attr-defined]
    if text.startswith('"', position):
        try:
            found: tuple[str, int] = scanstring(text, position + 1)
            return found
        except ValueError:
            reason = f"malformed JSON: the value of {_shown(name)} never ends, or has a bad escape"
            raise _dotenv_error(text, position, reason, _HINT_JSON_TEXT) from None
    scalar = re.compile(r"true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?").match(
        text, position)
    if scalar:
        return scalar[0], scalar.end()
    kinds = {"{": "an object", "[": "a list", "n": "null"}
    kind = kinds.get(text[position:position + 1], "no JSON")
    raise _dotenv_error(
        text, position, f"the value of {_shown(name)} is {kind}",
        "a value is a string, a number, true or false")


def _parse_nul_entries(source: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of NAME=value texts that end with NUL, as `env -0` prints them."""
    entries = source.split(b"\0")
    if entries.pop():  # what stands behind the last NUL
        raise HotenvError(
            EXIT_INPUT, f"<stdin>: entry {len(entries) + 1} does not end with NUL",
            "was the input cut? --format nul is for what `env -0` prints")
    for number, entry in enumerate(entries, 1):
        name, equals, value = _decoded(entry).partition("=")
        if not name or not equals:
            raise HotenvError(
                EXIT_INPUT, f"<stdin>: entry {number} is no NAME=value that ends with NUL",
                "--format nul is for what `env -0` prints")
        yield name, value


def _is_environment(env: object) -> bool:
    """Is this a dict of strings that a process can have as its environment?"""
    if not isinstance(env, dict):
        return False
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return False
        if not name or "=" in name:
            return False
        try:
            raw = _encoded(name + value)
        except UnicodeError:  # half a character
            return False
        if b"\0" in raw:
            return False
    return True


# ==== environment =================================================================================
# Entries into values, and the environment of a child. Knows nothing of where the entries came from.
# The question for a value is asked here, on the terminal: nobody else sees the answer, and whatever
# ends the process, the terminal is left as it was.

# The variables of the host that an isolated environment keeps.
ESSENTIALS = [
    "PATH",
    "HOME",
    "SHELL",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "COLORTERM",
    "FORCE_COLOR",
    "NO_COLOR",
    "CI",
    "NODE_OPTIONS",
]

# Bytes of a line that is typed on a terminal: the terminal cuts what is longer.
_TYPED_LINE = 1023 if sys.platform == "darwin" else 4095
_LOCAL_FLAGS = 3  # where tcgetattr() has the flags of <termios.h> that are called c_lflag
_SIGNAL_LOOK = 0.1  # seconds between two looks for a signal while a question waits


def resolve_env(
    entries: Env | Iterable[tuple[str, Any]],
    host: Env,
    prompt: Callable[[str], str] | None = None,
) -> Values:
    """Return the values of entries: the one place where an entry becomes a value.

    `entries` are those of the dotenv parser, or a mapping whose texts are read as bare values.
    `${NAME}` is what an earlier entry set, or what `host` has. With `prompt`, a bare `?text` is
    `prompt("text")`, and a `?` alone is `prompt(name)`. HotenvError 7: a reference is malformed.
    """
    if hasattr(entries, "items"):
        entries = [(name, _Template(text, "", text, 0)) for name, text in entries.items()]
    # A malformed entry is told before the first question. A ${NAME:?} that fails is told later: an
    # answer may set NAME.
    if prompt:
        entries = list(entries)
        _resolved(entries, host, None, is_used=False)
    return _resolved(entries, host, prompt, is_used=True)


def _resolved(
    entries: Iterable[tuple[str, Any]],
    host: Env,
    prompt: Callable[[str], str] | None,
    is_used: bool,
) -> Values:
    """Return the values of entries. If they are not used, the entries are only checked."""
    expansion = _Expansion(host)
    for name, value in entries:
        if isinstance(value, _Template):
            question = value.question()
            if prompt and question is not None:
                value = prompt(question or name)
            else:
                value = expansion.expand(name, value, is_used)
        expansion.env[name] = value
    return expansion.env


def parse_dotenv(text: str | bytes, host: Env = {}) -> Values:  # noqa: B006  (only read)
    """Return what `serve` would hold for this text, with `host` around it; may raise code 7."""
    return resolve_env(_parse_entries(text), host)


def build_isolated_env(
    source: Env,
    pass_through: Strings = (),
    define: Env = {},  # noqa: B006  (only read)
    bin_paths: Strings = (),
) -> Values:
    """Return a child's environment that is built from an allowlist.

    It has the essential variables and `pass_through` from `source`, as far as `source` has them,
    then `define`, then `bin_paths` before PATH. Nothing is checked or cleaned.
    """
    env = {}
    for name in [*ESSENTIALS, *pass_through]:
        if name in source:
            env[name] = source[name]
    env.update(define)
    if bin_paths:
        path = os.pathsep.join([*bin_paths, env.get("PATH", "")])
        env["PATH"] = path.rstrip(os.pathsep)
    return env


def _matches(name: str, patterns: Strings) -> bool:
    """Is a name one of these, or does it begin with one of these that ends in `*`?"""
    for pattern in patterns:
        if name == pattern:
            return True
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return True
    return False


def _ask(question: str) -> str:
    """Return the line that somebody types on the terminal, without an echo.

    HotenvError 8: there is no terminal to ask on. HotenvError 7: what was typed is no answer.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        raise _system_error(error, "--prompt cannot open the terminal") from None
    try:
        if os.tcgetpgrp(terminal) != os.getpgrp():
            raise HotenvError(
                EXIT_SYSTEM, "--prompt cannot ask: hotenv is not in the terminal's foreground",
                "start it without `&`")
        asked = _Question(terminal, question)
        typed = asked.ask()
        while typed is None:  # a signal came, such as Ctrl-Z, and this process goes on
            typed = asked.ask()
    finally:
        os.close(terminal)
    if not typed:
        raise HotenvError(EXIT_INPUT, f"no answer to {_shown(question)}")
    is_line = typed.endswith(b"\n") and len(typed) <= _TYPED_LINE and b"\0" not in typed
    if not is_line or asked.has_more:
        raise HotenvError(
            EXIT_INPUT, f"no answer to {_shown(question)} that can be taken",
            f"an answer is one line of less than {_TYPED_LINE} bytes, without NUL",
            "pipe any other value into serve, in quotes")
    return _decoded(typed[:-1])


class _Question:
    """A question on a terminal. While it waits, signals that end or stop the process wait too."""

    def __init__(self, terminal: int, question: str) -> None:
        import termios
        self.has_more = False  # whether more was typed than one line
        self._terminal = terminal
        self._question = question
        self._signals = _PROCESS_ENDING | {_signal.SIGTSTP}
        self._settings = termios.tcgetattr(terminal)
        self._quiet = list(self._settings)
        self._quiet[_LOCAL_FLAGS] = self._settings[_LOCAL_FLAGS] & ~termios.ECHO | termios.ECHONL

    def ask(self) -> bytes | None:
        """Return the line that was typed, b"" if there was none, None if a signal came first.

        The signal takes effect when the terminal is as it was: it may end or stop this process.
        """
        import termios
        blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, self._signals)
        typed: bytes | None
        try:
            termios.tcsetattr(self._terminal, termios.TCSAFLUSH, self._quiet)
            os.write(self._terminal, _encoded(_shown(self._question) + ": "))
            typed = self._wait()
            termios.tcflush(self._terminal, termios.TCIFLUSH)  # half an answer is not for the shell
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._settings)
        except (OSError, termios.error):
            typed = b""  # the terminal has gone
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
        return typed

    def _wait(self) -> bytes | None:
        """Return what the terminal gives, which is a line; None as soon as a signal waits."""
        while not self._signals & _signal.sigpending():
            if self._has_input():
                typed = os.read(self._terminal, 1 << 16)
                self.has_more = self._has_input()
                return typed
        return None

    def _has_input(self) -> bool:
        """Has something been typed, or is something typed within a moment?"""
        import select
        if sys.platform == "darwin":  # whose poll() knows no terminals
            return bool(select.select([self._terminal], [], [], _SIGNAL_LOOK)[0])
        poller = select.poll()
        poller.register(self._terminal, select.POLLIN)
        return bool(poller.poll(_SIGNAL_LOOK * 1000))


# ==== session files ===============================================================================
# What a session has on disk: the private runtime directory with its socket and its record, and in
# the project directory the marker. Knows nothing of what is served.
#
# A marker counts only if it is a plain file of this user or of root. A clone can bring a link to
# another project's marker, so a link is refused. A marker is written whole under another name and
# then linked, so nobody ever reads half of one.

MARKER = ".hotenv"
MAX_MARKER = 8 << 10  # bytes: one path
_MAX_RECORD = 64 << 10  # bytes: a path, and a few numbers
_LATEST_TIME = 1e11  # seconds since 1970: `time` can show no year that is far beyond 3000
_MAX_NAME = 64  # characters of a session's name
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
SUN_PATH = 104  # bytes of a socket's address with its NUL: macOS has these, Linux four more
LOCK_TIME = 1.0  # seconds to wait for the lock of a project directory
_LOCK_STEP = 0.005  # seconds between two attempts to get it
BACKLOG = 4096  # pending connections; the system lowers this to its own limit
_LONGEST_WAY_UP = 1000  # characters of `../../...`: PATH_MAX is 1,024 on macOS, 4,096 on Linux
_SOCKET_NAME = r"[0-9a-f]{8}\.sock"


def _marker_name(name: str) -> str:
    """Return what the marker of a session is called: `.hotenv`, or `.hotenv.NAME`."""
    if name:
        return f"{MARKER}.{name}"
    return MARKER


def _session_name(text: str) -> str:
    """Return the name of a session if it is one; HotenvError 2 otherwise. '' is no name."""
    if len(text) > _MAX_NAME or not _NAME_CHARACTERS.issuperset(text):
        raise _usage(
            f"{text[:_SHOWN_WORD]!r} is no name for a session",
            f"a name has letters, digits, `-` and `_`, at most {_MAX_NAME} of them")
    return text


class _Marker:
    """A marker that was found: a file in a project directory that names a session's socket."""

    def __init__(
        self, path: str, directory: int | None = None, absolute_path: str | None = None
    ) -> None:
        self.path = path  # relative to the current directory, or to `directory`
        self.directory = directory  # a descriptor
        self.absolute_path = absolute_path or path  # as errors show it
        self.shown = _shown(self.absolute_path)

    @classmethod
    def find(cls, name: str = "") -> _Marker | None:
        """Return the nearest marker upward from the current directory, or None.

        HotenvError 8: the current directory is gone. A parent that may not be searched has none.
        """
        try:
            here = os.getcwd()
        except OSError:
            raise HotenvError(
                EXIT_SYSTEM, "cannot tell the current directory", "was it removed? cd elsewhere"
            ) from None
        file = _marker_name(name)
        way_up = ""  # from the current directory, or from `directory`
        directory = None  # a descriptor, once the way is longer than the kernel takes it
        while True:
            if len(way_up) > _LONGEST_WAY_UP:
                flags = os.O_DIRECTORY | getattr(os, "O_PATH", 0)
                try:
                    directory = os.open(way_up, flags, dir_fd=directory)
                except OSError:
                    return None  # this parent may not be searched
                way_up = ""
            if _is_there(way_up + file, directory):
                return cls(way_up + file, directory, os.path.join(here, file))
            if here == "/":
                return None
            here = os.path.dirname(here)
            way_up += "../"

    @staticmethod
    def parse(content: bytes) -> str | None:
        """Return the path of the socket in the content of a marker; None if it is damaged."""
        if len(content) > MAX_MARKER or b"\0" in content:
            return None
        lines = [line for line in content.split(b"\n") if line.strip()]
        if len(lines) != 1 or not lines[0].startswith(b"socket=/"):
            return None
        return os.fsdecode(lines[0][len(b"socket="):])

    def socket_path(self) -> str:
        """Return the path of the socket that this marker names.

        HotenvError 3: the marker has gone. 8: it cannot be read, or cannot be trusted. 9: it is
        damaged.
        """
        try:
            content = self._trusted_content()
        except FileNotFoundError:
            raise HotenvError(EXIT_NO_SESSION, f"no session: {self.shown} has just gone") from None
        except OSError as error:
            raise _system_error(error, "cannot read " + self.shown) from None
        path = self.parse(content)
        if path is None:
            raise HotenvError(
                EXIT_ARTIFACT,
                f"{self.shown} is damaged: it is not one line socket=<absolute path>",
                "remove it")
        return path

    def _trusted_content(self) -> bytes:
        """Return what is in the marker, if it is a plain file of this user or of root."""
        found = os.lstat(self.path, dir_fd=self.directory)
        if stat.S_ISLNK(found.st_mode):
            raise _NotTrusted(
                EXIT_SYSTEM, f"{self.shown} is a link, and could lead to another project's session",
                "name a session that you share by --socket PATH, or HOTENV_SOCKET")
        if found.st_uid != 0 and not _is_own_uid(found.st_uid):
            hints = [
                "to use that session all the same: --socket PATH --peer-uid " + str(found.st_uid)]
            if os.geteuid() == 0:
                hints.insert(0, "put sudo behind hotenv: run -- sudo --preserve-env=NAME COMMAND")
            raise _NotTrusted(
                EXIT_SYSTEM, f"{self.shown} belongs to somebody else (uid {found.st_uid})", *hints)
        if not stat.S_ISREG(found.st_mode):  # not opened: that does something to a device
            raise HotenvError(EXIT_SYSTEM, self.shown + " is not a regular file", "move it away")
        descriptor = os.open(
            self.path, os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.directory)
        try:
            if not os.path.samestat(os.fstat(descriptor), found):
                raise FileNotFoundError  # it was replaced just now
            return os.read(descriptor, MAX_MARKER + 1)
        finally:
            os.close(descriptor)

    def named_socket(self) -> str | None:
        """Return the path of the socket, or None where no marker is to be read."""
        try:
            return self.socket_path()
        except HotenvError:
            return None


def _is_there(path: str, directory: int | None = None) -> bool:
    """Is there anything by this name, be it a broken link? What cannot be searched has nothing."""
    return _lstat(path, directory) is not None


def _lstat(path: str, directory: int | None = None) -> os.stat_result | None:
    """Return what is known of a file, or None if there is none that can be seen."""
    try:
        return os.lstat(path, dir_fd=directory)
    except OSError:
        return None


class _RuntimeDir:
    """The private directory of this user's sockets: $XDG_RUNTIME_DIR/hotenv, or /tmp/hotenv-UID."""

    def __init__(self) -> None:
        self.path = self.choose()
        self.made: list[str] = []  # directories that make() would make, the innermost first
        missing = self.path
        while not os.path.lexists(missing):
            self.made.append(missing)
            missing = os.path.dirname(missing)

    @staticmethod
    def fallback() -> str:
        """Return the directory for a user without an XDG_RUNTIME_DIR."""
        return f"/tmp/hotenv-{os.geteuid()}"

    @classmethod
    def choose(cls) -> str:
        """Return the path of the directory. Nothing is made.

        An XDG_RUNTIME_DIR that is empty, relative or somebody else's counts as unset, as its
        specification says: `sudo -E` and `su` leave one behind.
        """
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if not base.startswith("/") or "\n" in base:  # a marker is one line
            return cls.fallback()
        try:
            owner = os.stat(base).st_uid
        except OSError:
            owner = os.geteuid()  # the directory is still to be made
        if owner != os.geteuid():
            return cls.fallback()
        return os.path.join(base, "hotenv")

    def make(self) -> None:
        """Make the directory if it is missing, and private whatever the umask is.

        HotenvError 8: it cannot be made, or it is a link, or somebody else's.
        """
        hint = "set XDG_RUNTIME_DIR to a directory of yours"
        previous = os.umask(0o077)
        try:
            if not os.path.lexists(self.path):  # under guards even an attempt would be refused
                os.makedirs(self.path, 0o700, exist_ok=True)
        except OSError as error:
            doing = f"cannot make the runtime directory {_shown(self.path)}"
            base = os.path.dirname(self.path)
            if not os.path.exists(base):
                hint = f"XDG_RUNTIME_DIR names {_shown(base)}, which does not exist: unset it"
            raise _system_error(error, doing, hint) from None
        finally:
            os.umask(previous)
        try:
            self._close_to_others()
        except OSError as error:
            doing = f"cannot use the runtime directory {_shown(self.path)}"
            raise _system_error(error, doing, "move it away, or " + hint) from None

    def _close_to_others(self) -> None:
        """Take the access of others away, by a descriptor: the path could change meanwhile."""
        descriptor = os.open(self.path, os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if not _is_own_uid(found.st_uid):
                raise OSError(errno.EPERM, f"it belongs to uid {found.st_uid}")
            if found.st_mode & 0o777 != 0o700:
                os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)

    def remove_made(self) -> None:
        """Remove the directories that make() has made, as far as nobody uses them."""
        for path in self.made:
            _best_effort(os.rmdir, path)


class _Record:
    """What a session says about itself in a file beside its socket: `status` and `stop` read it.

    The file has no name and no value of a variable.
    """

    directory = ""  # where the marker is
    name = ""  # of the session
    started = 0.0  # seconds since 1970, as are all times in here
    variables = 0
    idle_timeout = 0.0
    max_age: float | None = None
    memory_closed = True  # whether other processes of the user cannot read the server's memory

    def to_json(self) -> str:
        """Return the content of the file."""
        import json
        return json.dumps({
            "directory": _as_utf8(self.directory),
            "name": self.name,
            "started": self.started,
            "variables": self.variables,
            "idle_timeout": self.idle_timeout,
            "max_age": self.max_age,
            "memory_closed": self.memory_closed,
        }) + "\n"

    @classmethod
    def parse(cls, data: bytes) -> _Record | None:
        """Return the record in the content of the file, or None if it is none."""
        import json
        try:
            fields = json.loads(data)
            record = cls()
            record.directory = os.fsdecode(_encoded(fields["directory"]))
            record.name = str(fields["name"])
            record.started = cls._time(fields["started"])
            record.variables = int(fields["variables"])
            record.idle_timeout = cls._time(fields["idle_timeout"])
            if fields["max_age"] is not None:
                record.max_age = cls._time(fields["max_age"])
            record.memory_closed = bool(fields["memory_closed"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return None
        return record

    @staticmethod
    def _time(value: Any) -> float:
        """Return a number of seconds that `time` can show; ValueError for any other number."""
        seconds = float(value)
        if not 0 <= seconds < _LATEST_TIME:
            raise ValueError("no time of a session")
        return seconds

    @staticmethod
    def path_of(socket_path: str) -> str:
        """Return where the record of the session at a socket lies."""
        if socket_path.endswith(".sock"):
            socket_path = socket_path[:-len(".sock")]
        return socket_path + ".json"

    @classmethod
    def read(cls, socket_path: str) -> _Record | None:
        """Return the record beside a socket; None if there is none that can be trusted."""
        path = cls.path_of(socket_path)
        found = _lstat(path)
        if not found or not stat.S_ISREG(found.st_mode):
            return None
        if found.st_uid != 0 and not _is_own_uid(found.st_uid):
            return None
        try:
            descriptor = os.open(path, os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            if not os.path.samestat(os.fstat(descriptor), found):
                return None  # it was replaced just now
            return cls.parse(file.read(_MAX_RECORD))

    def is_elsewhere(self, socket_path: str, marker_path: str) -> bool:
        """Does another marker lead to this session, so that the one at `marker_path` is a copy?

        A project that was moved has taken its only marker along: that one is no copy.
        """
        original = _Marker(os.path.join(self.directory, _marker_name(self.name)))
        if original.named_socket() != socket_path:
            return False
        return not _same_directory(original.absolute_path, marker_path)


def _same_directory(one: str, other: str) -> bool:
    """Do two paths lead to one directory, or file?"""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one == other


def _at_socket_address(path: str, action: Callable[[str], object]) -> None:
    """Bind or connect to `path`, by way of its directory if it is too long for an address."""
    if len(os.fsencode(path)) < SUN_PATH:
        action(path)
        return
    if not os.path.isdir("/proc/self/fd"):
        raise HotenvError(
            EXIT_SYSTEM, f"{_shown(path)} is too long for a socket: over {SUN_PATH - 1} bytes",
            "set XDG_RUNTIME_DIR to a shorter path")
    parent = os.open(os.path.dirname(path), os.O_DIRECTORY)
    try:
        action(f"/proc/self/fd/{parent}/{os.path.basename(path)}")
    finally:
        os.close(parent)


class _SessionFiles:
    """The files of the session that this process holds: socket, record, and marker."""

    def __init__(self, name: str = "") -> None:
        self.id = os.urandom(4).hex()
        self.marker = _marker_name(name)
        self.runtime = _RuntimeDir()
        self.socket_path = os.path.join(self.runtime.path, self.id + ".sock")
        self.record_path = _Record.path_of(self.socket_path)
        self._name = name
        self._project: int | None = None  # a descriptor: the directory may be renamed
        self._bound: os.stat_result | None = None  # the socket file

    def bind(self) -> socket.socket:
        """Return a listening socket. Its path is new: it has 32 random bits."""
        import socket

        class Listener(socket.socket):
            # accept() reads these two for each client: as properties they cost a twentieth of a
            # request.
            family = socket.AddressFamily.AF_UNIX
            type = socket.SocketKind.SOCK_STREAM

        self.runtime.make()
        os.umask(0o177)  # for good: a server makes its own files, and no others
        listener = Listener(socket.AF_UNIX)
        self._project = os.open(".", os.O_DIRECTORY)
        _at_socket_address(self.socket_path, listener.bind)
        self._bound = os.lstat(self.socket_path)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        return listener

    def write_record(self, record: _Record) -> None:
        """Write what `status` shows of this session."""
        record.directory = os.getcwd()
        record.name = self._name
        with open(self.record_path, "x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(record.to_json())

    def publish(self, force: bool) -> None:
        """Write the marker, whole or not at all. From then on there is a session.

        Without `force`, FileExistsError says that there is a marker already. With `force` it is
        replaced, and the socket that it names is removed if that was this directory's session.
        HotenvError 8: the marker cannot be written.
        """
        aside = _unnamed_marker(self.id)
        is_locked = self._lock()
        try:
            old = None
            if force:
                old = _Marker(self.marker).named_socket()
            with open(aside, "xb") as file:
                file.write(b"socket=%s\n" % os.fsencode(self.socket_path))
            if force:
                os.rename(aside, self.marker)
                if is_locked:  # else another start may be between the two names right now
                    _remove_leftover_markers()
            else:
                self._link(aside)
            if old:
                self._remove_replaced(old)
        except FileExistsError:
            raise
        except OSError as error:
            raise _system_error(
                error, f"cannot write {self.marker} here",
                "serve elsewhere, and run here with --socket PATH") from None
        finally:
            _best_effort(os.unlink, aside)
            self._unlock()

    def _link(self, aside: str) -> None:
        """Give the marker its name; FileExistsError if that is taken."""
        try:
            os.link(aside, self.marker)
        except OSError:
            # The name is taken, or this file system has no links: take the name, then fill it.
            open(self.marker, "xb").close()
            try:
                os.rename(aside, self.marker)
            except OSError:
                os.unlink(self.marker)
                raise

    def _remove_replaced(self, old: str) -> None:
        """Remove the socket of the session that this one replaces, if it is hotenv's own.

        A marker that was copied here with its directory names another directory's session, which
        lives on.
        """
        import re
        directory, name = os.path.split(old)
        if directory != self.runtime.path or not re.fullmatch(_SOCKET_NAME, name):
            return
        record = _Record.read(old)
        place = os.path.abspath(self.marker)
        if record is None or not record.is_elsewhere(old, place):
            _remove_session_files(old)

    def stamp(self, end: float, used: float) -> None:
        """Note when the session will end, as the socket's time, and when it was used last."""
        _best_effort(os.utime, self.socket_path, (end, end), follow_symlinks=False)
        _best_effort(os.utime, self.record_path, (used, used), follow_symlinks=False)

    def why_lost(self) -> str:
        """Return why the session must end because of its files, or ''."""
        if not self._is_bound():
            return "its socket file is gone"
        # A marker that is missing, or that cannot be read, is no reason to end.
        try:
            named: str | None = _Marker(self.marker, self._project).socket_path()
        except HotenvError:
            named = None
        if named is not None and named != self.socket_path:
            return "another session has taken its place"
        return ""

    def remove(self) -> None:
        """Remove the marker if it names this session, and the socket if it is still the same."""
        if self._project is not None:
            self._lock()
            if _Marker(self.marker, self._project).named_socket() == self.socket_path:
                _best_effort(os.unlink, self.marker, dir_fd=self._project)
            os.close(self._project)
            self._project = None
            _best_effort(os.unlink, self.record_path)
        if self._is_bound():
            _best_effort(os.unlink, self.socket_path)

    def _is_bound(self) -> bool:
        """Is the socket file still there, and the one that this process bound?"""
        found = _lstat(self.socket_path)
        return bool(found and self._bound and os.path.samestat(found, self._bound))

    def _lock(self) -> bool:
        """Lock the project directory against other starts and ends; False where that fails."""
        try:
            import fcntl
        except ImportError:
            return False
        if self._project is None:
            return False
        give_up = time.monotonic() + LOCK_TIME
        while time.monotonic() < give_up:
            try:
                fcntl.flock(self._project, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_STEP)
            except OSError:
                return False  # this file system has no locks
            else:
                return True
        return False

    def _unlock(self) -> None:
        try:
            import fcntl
        except ImportError:
            return
        if self._project is not None:
            _best_effort(fcntl.flock, self._project, fcntl.LOCK_UN)


def _remove_session_files(socket_path: str) -> None:
    """Remove a session's socket and the record beside it. What is no socket stays."""
    found = _lstat(socket_path)
    if found and not stat.S_ISSOCK(found.st_mode):
        return
    _best_effort(os.unlink, socket_path)
    _best_effort(os.unlink, _Record.path_of(socket_path))


def _unnamed_marker(session_id: str) -> str:
    """Return what a marker is called before it has its name. No session can have such a name."""
    return f"{MARKER}.new.{session_id}"


def _remove_leftover_markers() -> None:
    """Remove what starts in this directory left that were killed before their marker had its name.

    The caller holds the lock of the directory, so no other start is under way.
    """
    import re
    pattern = re.escape(_unnamed_marker("")) + r"[0-9a-f]{8}"
    for entry in os.listdir("."):
        if re.fullmatch(pattern, entry):
            _best_effort(os.unlink, entry)


def _open_private(path: str, what: str) -> int:
    """Return a descriptor to append to a file, which is made if missing and closed to others.

    HotenvError 8: it is a link, no plain file, has a second name, or belongs to somebody else.
    """
    # With O_RDWR a pipe without a reader can be opened, and is then refused for what it is.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    doing = f"cannot write the {what} {_shown(path)}"
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise _system_error(error, doing) from None
    try:
        found = os.fstat(descriptor)
        # A lock may lose its only name between its opening and this look at it.
        is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink <= 1
        if not is_plain or not _is_own_uid(found.st_uid):
            raise OSError(errno.EINVAL, "it must be a plain file of yours, and no link")
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        os.close(descriptor)
        raise _system_error(error, doing) from None
    return descriptor


# ==== protocol ====================================================================================
# One JSON line each way: bytes into a request or a snapshot, and back. Knows nothing of sockets.

MAX_REQUEST = 256 << 10  # bytes: JSON of any shape that fits costs other clients less than 0.1 s
MAX_RESPONSE = 256 << 20  # bytes of an answer that a client reads
_MAX_SHOWN_MESSAGE = 1000  # characters of a server's message that a client shows

_DUMP_REQUEST = b'{"command":"dump"}\n'
_RUN_REQUEST = b'{"command":"run","args":[%s]}\n'


# The C half of json, for the reason that the header gives.


class _JsonRules:
    """How the protocol reads JSON, as attributes that the C scanner looks for.

    No number in a message of the protocol is ever used, so none is computed: it becomes None.
    """

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None  # since Python 3.15

    @staticmethod
    def parse_int(digits: str) -> None:
        """Ignore a number: a long one would take quadratic time."""

    @staticmethod
    def parse_float(digits: str) -> None:
        """Ignore a number."""

    @staticmethod
    def parse_constant(name: str) -> None:
        """Refuse NaN and Infinity, which are no JSON."""
        raise ValueError(name + " is no JSON")


def _quote_by_public_json(text: str) -> str:
    """Return a text as JSON, by the public module."""
    from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def _scan_by_public_json(text: str, position: int) -> tuple[Any, int]:
    """Return the value of JSON at a position and where it ends, by the public module."""
    from json import JSONDecoder
    decoder = JSONDecoder(
        parse_int=_JsonRules.parse_int,
        parse_float=_JsonRules.parse_float,
        parse_constant=_JsonRules.parse_constant,
    )
    return decoder.raw_decode(text, position)


def _json_functions() -> tuple[Callable[[str], str], Callable[[str, int], tuple[Any, int]]]:
    """Return what quotes a text as JSON, and what reads a value of JSON at a position."""
    try:
        from _json import encode_basestring_ascii, make_scanner
        scan = make_scanner(_JsonRules)  # type: ignore[arg-type]
        can_scan = scan('{"a":["b",1]}', 0) == ({"a": ["b", None]}, 13)
        can_quote = encode_basestring_ascii('"\xe9') == '"\\"\\u00e9"'
    except Exception:
        return _quote_by_public_json, _scan_by_public_json
    if can_scan and can_quote:
        return encode_basestring_ascii, scan
    return _quote_by_public_json, _scan_by_public_json


_quote_json, _scan_json = _json_functions()


class _Request:
    """What a client asks for, and the words that the log shows of it."""

    def __init__(self, command: str, words: Words) -> None:
        self.command = command
        self.words = words


def _read_json_object(line: bytes) -> Json | None:
    """Return the object of JSON that a line is; None if the line is anything else, or more."""
    try:
        text = line.decode().strip(" \t\r\n")
        found, end = _scan_json(text, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        # SystemError: up to Python 3.8 the C scanner looks for its own exception in a module that
        # nobody has imported.
        return None
    if end != len(text) or not isinstance(found, dict):
        return None
    return found


def _encode_request(command: str, args: Strings) -> bytes:
    """Return a request that the server takes. Of arguments that are too long, as many as fit."""
    if command != "run":
        return _DUMP_REQUEST
    room = MAX_REQUEST - len(_RUN_REQUEST % b"")
    quoted = []
    for arg in args:
        word = _quote_json(arg)
        room -= len(word) + len(",")
        if room < 0:
            break
        quoted.append(word)
    if not quoted:  # even the first word is too long
        quoted.append('"..."')
    words = ",".join(quoted).encode()
    return _RUN_REQUEST % words


def _decode_request(line: bytes) -> _Request:
    """Return the request in a line; ValueError says what is wrong with it."""
    fields = _read_json_object(line) or {}
    command = fields.get("command")
    if command == "dump":
        return _Request(command, ["-"])  # what the log shows of a request without words
    if command != "run":
        raise ValueError(
            'a request is one JSON object in UTF-8, and nothing more; its "command" is "run" or '
            '"dump"')
    args = fields.get("args")
    if not isinstance(args, list) or not args:
        raise ValueError('"args" is a list of strings with the command first')
    for arg in args:
        if not isinstance(arg, str):
            raise ValueError('"args" is a list of strings with the command first')
    return _Request(command, args)


def _encode_response(env: Env) -> bytes:
    """Return the line with which the server answers; HotenvError 7 if no client would take it."""
    import json
    response = json.dumps({"env": env}, separators=(",", ":")).encode("ascii") + b"\n"
    if len(response) > MAX_RESPONSE:
        raise HotenvError(
            EXIT_INPUT, f"as JSON this is over {MAX_RESPONSE >> 20} MiB, which no client takes")
    return response


def _encode_failure(code: str, message: str, pid: str) -> bytes:
    """Return the line with which the server `pid` refuses a request.

    The pid lets a client tell a server from somebody who only forwards for it.
    """
    quoted = _quote_json(message)
    return f'{{"error":"{code}","message":{quoted},"pid":"{pid}"}}\n'.encode()


def _decode_snapshot(data: bytes) -> Values:
    """Return the environment in an answer; HotenvError 9 for anything else.

    An error shows a message of the server, and nothing else of the answer.
    """
    is_one_line = len(data) <= MAX_RESPONSE and data.find(b"\n") == len(data) - 1
    answer = None
    if is_one_line:
        answer = _read_json_object(data)
    if answer is None:
        raise HotenvError(
            EXIT_ARTIFACT, f"the answer is not one line of JSON up to {MAX_RESPONSE >> 20} MiB")
    if answer.get("error") and not isinstance(answer["error"], str):
        raise HotenvError(EXIT_ARTIFACT, "another program, and no session, has answered")
    if answer.get("error"):
        message = f"{answer['error']}: {answer.get('message')}"[:_MAX_SHOWN_MESSAGE]
        raise HotenvError(EXIT_ARTIFACT, "the session refused the request: " + _shown(message))
    env: Any = answer.get("env")
    if not _is_environment(env):
        raise HotenvError(
            EXIT_ARTIFACT, "the answer is not an environment that a process can have")
    snapshot: Values = env
    return snapshot


# ==== client ======================================================================================
# Find a session, ask it for its snapshot, look at it, end it. Knows nothing of how a server works.
#
# A socket is trusted only if the kernel says that the process behind it runs as this user or as
# root. `status` and `stop` also ask who answers: a server names its own pid. If the kernel names
# another pid, somebody in between forwards for the server.

EXCHANGE_TIME = 10.0  # seconds that a client gives connecting and the exchange together
_SILENCE = 0.1  # seconds without an answer before a client asks whether the server is stopped
_RETRY_STEP = 0.005  # seconds between two attempts
_STATUS_TIME = 2.0  # seconds for a server to say who it is: any other program may be silent
_MOMENT = 0.001  # seconds: the shortest time limit that a socket takes
_CUT_ANSWER = b'{"env":{'  # how each snapshot begins
_REFUSAL = b'{"error":"'  # and how each error of a server
_STATUS_REQUEST = b'{"command":"status"}\n'  # no command of the protocol: it is refused, with a pid


class _Session:
    """A session that was found: the path of its socket, and what to do if nobody answers there."""

    def __init__(self, path: str, *hints: str, marker: _Marker | None = None) -> None:
        self.path = path
        self.hints = hints
        self.marker = marker  # that led to it, if one did

    def unreachable(self, reason: str) -> _Unreachable:
        """Return the error for a session that does not answer."""
        return _Unreachable(self, reason, *self.hints)

    def refused(self, error: OSError) -> HotenvError:
        """Return the error for a session that the system does not lead to."""
        found = _lstat(self.path)
        if found and stat.S_ISREG(found.st_mode):
            if _Marker(self.path).named_socket():
                return HotenvError(
                    EXIT_UNREACHABLE, f"{_shown(self.path)} is a marker, and no socket",
                    f"take the socket that it names: cut -d= -f2- {_quoted(self.path)}")
            return HotenvError(
                EXIT_UNREACHABLE, f"{_shown(self.path)} is a plain file, and no socket",
                *self.hints)
        if found and stat.S_ISDIR(found.st_mode):
            return HotenvError(
                EXIT_UNREACHABLE, f"{_shown(self.path)} is a directory, and no socket", *self.hints)
        if error.errno == errno.ENOENT:
            return self.unreachable("there is no such socket")
        if error.errno == errno.ECONNREFUSED:
            return self.unreachable("nobody answers there any more")
        return self.unreachable(_reason(error))

    def silent(self, pid: int) -> HotenvError:
        """Return the error for a server that takes connections and does not answer."""
        if _is_stopped(pid):
            return self.stopped()
        return self.unreachable("no answer in time")

    def hung_up(self) -> HotenvError:
        """Return the error for a connection that ended without an answer."""
        if _is_dead(self):
            return self.unreachable("the session has just ended")
        return _Unreachable(
            self, "who listens there hangs up without an answer",
            "is it another program's socket, or forwarded from where the session has ended?",
            *self.hints)

    def stopped(self) -> HotenvError:
        """Return the error for a server whose process is stopped."""
        return _Unreachable(
            self, "its process is stopped (Ctrl-Z?)",
            "`fg` lets it go on", f"`{_invocation()} stop` ends it")


class _Unreachable(HotenvError):
    """A session that does not answer, and the `reason`."""

    def __init__(self, session: _Session, reason: str, *hints: str) -> None:
        message = f"cannot reach the session at {_shown(session.path)}: {reason}"
        super().__init__(EXIT_UNREACHABLE, message, *hints)
        self.reason = reason


def fetch(
    command: str = "dump",
    args: Strings = (),
    socket_path: str | None = None,
    *,
    peer_uid: int | None = None,
    name: str | None = None,
) -> Values:
    """Return the environment of the session that is found from here, or listens at `socket_path`.

    `name` finds the session of that name; a server that runs as `peer_uid` is trusted, too. The
    `code` of HotenvError is 3 if there is no session, 4 if nobody answers, 8 or 9 if what was found
    cannot be trusted.
    """
    if command not in ("dump", "run"):
        raise _usage(f"{command[:_SHOWN_WORD]!r} is no request: it is `dump` or `run`")
    session = _locate(socket_path, name)
    return _snapshot_in(_asked(session, command, args, peer_uid), session)


def load(
    *,
    override: bool = False,
    only: Strings = (),
    socket_path: str | None = None,
    name: str | None = None,
    optional: bool = False,
) -> Values:
    """Set the session's variables in `os.environ`, and return those that were set.

    A variable that is there already stays as it is, unless `override` is true. `only` has names,
    and prefixes that end in `*`, of the variables that are wanted. With `optional`,
    nothing is set if there is no session, if it does not answer, or if it belongs to somebody else.
    Otherwise HotenvError is raised as by fetch().
    """
    if isinstance(only, str):
        only = [only]
    only = list(only)
    try:
        env = fetch("dump", (), socket_path, name=name)
    except HotenvError as error:
        is_absent = error.code in (EXIT_NO_SESSION, EXIT_UNREACHABLE)
        if optional and (is_absent or isinstance(error, _NotTrusted)):
            return {}
        raise
    loaded = {}
    for variable, value in env.items():
        if only and not _matches(variable, only):
            continue
        raw_name = _encoded(variable)
        if raw_name in os.environb and not override:
            continue
        os.environb[raw_name] = _encoded(value)
        loaded[variable] = value
    return loaded


def _touch(command: str, args: Strings, session: _Session, peer_uid: int | None) -> None:
    """Use a session as fetch() does, for somebody who has its values and wants to keep them."""
    answer = _asked(session, command, args, peer_uid)
    if not answer.startswith(_CUT_ANSWER):
        _snapshot_in(answer, session)  # raises an error, because this is no snapshot


def _asked(session: _Session, command: str, args: Strings, peer_uid: int | None) -> bytes:
    """Ask a session for its snapshot, and return the whole answer, whatever it is."""
    give_up = time.monotonic() + EXCHANGE_TIME
    sock = _connect(session, peer_uid)
    try:
        answer = _exchange(session, sock, _encode_request(command, args), give_up)
    finally:
        sock.close()
    if not answer:
        raise session.hung_up()
    if not answer.endswith(b"\n") and _is_beginning(answer):
        raise session.unreachable("the session has just ended")
    return answer


def _snapshot_in(answer: bytes, session: _Session) -> Values:
    """Return the snapshot in an answer; HotenvError 9 if it holds none."""
    try:
        return _decode_snapshot(answer)
    except HotenvError as error:
        if not answer.startswith((_CUT_ANSWER, _REFUSAL)):
            error.hints = (f"does another program listen at {_shown(session.path)}?",)
        raise


def _is_beginning(answer: bytes) -> bool:
    """Is this an answer of hotenv's that was cut?"""
    return answer.startswith(_CUT_ANSWER) or _CUT_ANSWER.startswith(answer)


def _exchange(session: _Session, sock: _socket.socket, request: bytes, give_up: float) -> bytes:
    """Send a request, and return all that comes back until the other end closes."""
    answer = bytearray()
    look = time.monotonic() + _SILENCE  # when to look whether the server is stopped
    has_looked = False
    try:
        sock.settimeout(max(_MOMENT, give_up - time.monotonic()))
        _best_effort(sock.sendall, request)  # if it is refused, the answer may say why
        while len(answer) <= MAX_RESPONSE:  # the end follows the log line and the time stamp
            limit = give_up if has_looked else min(give_up, look)
            sock.settimeout(max(_MOMENT, limit - time.monotonic()))
            try:
                piece = sock.recv(1 << 16)
            except _socket.timeout:
                pid = _peer_of(sock).pid
                if has_looked or time.monotonic() >= give_up or _is_stopped(pid):
                    raise session.silent(pid) from None
                has_looked = True
                continue
            if not piece:
                break
            answer += piece
    except ConnectionResetError:
        pass  # what came before may be whole
    except OSError as error:
        raise session.refused(error) from None
    return bytes(answer)


def _locate(socket_path: str | None = None, name: str | None = None) -> _Session:
    """Find the session that is meant; HotenvError 3 if there is none.

    An option wins over a variable, and a socket over a name.
    """
    if socket_path is not None:
        if name is not None:
            raise _usage("--socket and --name both name a session", "take either")
        if not socket_path:
            raise _usage("--socket takes a path, and this one is empty")
        return _Session(
            socket_path, "without --socket, HOTENV_SOCKET or the marker names the session")
    from_variable = os.environ.get("HOTENV_SOCKET")
    if name is None and from_variable:
        return _Session(
            from_variable, "`unset HOTENV_SOCKET` to ask the session of this directory")
    name = _chosen_name(name)
    marker = _Marker.find(name)
    start = f"start one: {_invocation()} serve{_name_option(name)}"
    if marker:
        return _Session(
            marker.socket_path(), f"{start} --force < secrets.env", marker=marker)
    raise HotenvError(
        EXIT_NO_SESSION,
        f"no session: no {_marker_name(name)} in this directory or above",
        "a session ends after some idle minutes: has this one expired?",
        f"{start} < secrets.env", *_hints_of_others(name))


def _chosen_name(name: str | None) -> str:
    """Return the name of the session that an option, or else HOTENV_NAME, asks for."""
    if name is not None:
        return _session_name(name)
    try:
        return _session_name(os.environ.get("HOTENV_NAME", ""))
    except HotenvError as error:
        raise HotenvError(error.code, f"HOTENV_NAME: {error}", *error.hints) from None


def _name_option(name: str) -> str:
    """Return ` --name NAME`, as a hint has it behind a command."""
    if name:
        return " --name " + name
    return ""


def _hints_of_others(name: str) -> list[str]:
    """Return hints at the live sessions that were not found.

    In this directory, or in one above, a session of that name has lost its marker. Any other has
    another name. If there is none of these, a session elsewhere may be the one that is meant.
    """
    hints = []
    is_elsewhere = False
    here = os.getcwd() + "/"
    for session in _all_sessions():
        record = _Record.read(session.path)
        if record is None or _is_dead(session):
            continue
        if not here.startswith(record.directory.rstrip("/") + "/"):
            is_elsewhere = True
        elif record.name == name:
            hints.append(
                f"a session that has lost its marker may live: --socket {_quoted(session.path)}")
        elif record.name:
            hints.append(f"a session with another name is here: --name {_shown(record.name)}")
        else:
            hints.append("a session without a name is here: leave out --name and HOTENV_NAME")
    if is_elsewhere and not hints:
        return [f"another directory has a live session: {_invocation()} status --all"]
    return sorted(set(hints))


def _connect(session: _Session, peer_uid: int | None) -> _socket.socket:
    """Return a connection to a session's server, which runs as this user, as root or as `peer_uid`.

    HotenvError 4: there is no such server. 9: it belongs to somebody else.
    """
    give_up = time.monotonic() + EXCHANGE_TIME
    sock = _socket.socket(_socket.AF_UNIX)
    try:
        _connect_in_time(session, sock, give_up)
        uid = _peer_of(sock).uid
    except OSError as error:
        sock.close()
        raise session.refused(error) from None
    except HotenvError:
        sock.close()
        raise
    if uid in (0, peer_uid) or _is_own_uid(uid):
        return sock
    sock.close()
    raise _NotTrusted(
        EXIT_ARTIFACT, f"{_shown(session.path)} is served by somebody else (uid {uid})",
        f"if you trust that user: --peer-uid {uid}")


def _connect_in_time(session: _Session, sock: _socket.socket, give_up: float) -> None:
    """Connect, again and again while the backlog of a busy server is full."""
    while True:
        sock.settimeout(max(_MOMENT, give_up - time.monotonic()))
        try:
            _at_socket_address(session.path, sock.connect)
            return
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise session.unreachable("no answer in time") from None
            time.sleep(_RETRY_STEP)
        except _socket.timeout:
            raise session.unreachable("no answer in time") from None


def _is_stopped(pid: int) -> bool:
    """Is this process stopped, as by Ctrl-Z? False where the system does not show the process."""
    if pid <= 0:
        return False
    if sys.platform != "linux":
        import subprocess
        try:
            shown = subprocess.run(
                ["/bin/ps", "-o", "state=", "-p", str(pid)],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        except OSError:
            return False
        return shown.stdout.startswith(b"T")
    try:
        row = _content(f"/proc/{pid}/stat")
    except OSError:
        return False
    return row.rpartition(b") ")[2].startswith(b"T")  # the state follows the name


class _Status:
    """What can be told of a session without a use of it: nothing here resets its timer."""

    live = False
    dead = False  # nobody listens; a server that is stopped or slow is neither live nor dead
    failure: HotenvError | None = None  # why it is not live
    record: _Record | None = None
    marker: str | None = None  # the path of the marker that leads to it
    pid: int | None = None  # of the server, unless somebody forwards for it
    ends: float | None = None  # when it will end; all times are seconds since 1970
    used: float | None = None  # when it was used last

    def __init__(self, socket_path: str | None) -> None:
        self.socket_path = socket_path

    def as_dict(self) -> Json:
        """Return what `status --json` prints."""
        record = self.record
        return {
            "live": self.live,
            "name": record.name if record else None,
            "directory": record.directory if record else None,
            "socket": self.socket_path,
            "marker": self.marker,
            "pid": self.pid,
            "since": record.started if record else None,
            "used": self.used,
            "ends": self.ends,
            "variables": record.variables if record else None,
            "idle_timeout": record.idle_timeout if record else None,
            "max_age": record.max_age if record else None,
            "memory_closed": record.memory_closed if record else None,
        }


def _status_of(session: _Session, peer_uid: int | None) -> _Status:
    """Return what can be told of a session, be it live or dead."""
    status = _Status(session.path)
    record = status.record = _Record.read(session.path)
    if record:
        marker = os.path.join(record.directory, _marker_name(record.name))
        if _Marker(marker).named_socket() == session.path:
            status.marker = marker
        status.used = _modified(_Record.path_of(session.path))
        status.ends = _modified(session.path)
    if record and status.ends is not None:
        # When the wall clock was put back, the session ends earlier than its time stamp says.
        lifetime = record.idle_timeout
        if record.max_age is not None:
            lifetime = min(lifetime, record.max_age)
        status.ends = min(status.ends, time.time() + lifetime)
    try:
        status.pid = _server_pid(session, peer_uid)
        status.live = True
    except HotenvError as error:
        status.failure = error
        status.dead = _is_dead(session)
    return status


def _modified(path: str) -> float | None:
    """Return the time stamp of a file, or None if there is no such file."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _server_pid(session: _Session, peer_uid: int | None) -> int | None:
    """Return the pid of a live server; None if somebody forwards for it, or if it is not seen here.

    HotenvError 4: nobody answers, or the server is stopped. 9: it is somebody else's.
    """
    sock = _connect(session, peer_uid)
    try:
        peer = _peer_of(sock)
        if _is_stopped(peer.pid):
            raise session.stopped()
        answer = _exchange(
            session, sock, _STATUS_REQUEST, time.monotonic() + _STATUS_TIME)
    finally:
        sock.close()
    if not answer:
        raise session.hung_up()
    fields = _read_json_object(answer) or {}
    if "pid" not in fields:
        raise HotenvError(
            EXIT_ARTIFACT, f"another program, and no session, answers at {_shown(session.path)}")
    if peer.pid > 0 and fields.get("pid") == str(peer.pid):
        return peer.pid
    return None


def _all_sessions() -> list[_Session]:
    """Return every session of this user that has left a socket, live or dead."""
    import glob
    paths = []
    bases = [_RuntimeDir.choose(), _RuntimeDir.fallback(), f"/run/user/{os.geteuid()}/hotenv"]
    for base in sorted(set(bases)):
        found = _lstat(base)
        if found and stat.S_ISDIR(found.st_mode) and _is_own_uid(found.st_uid):
            pattern = "[0-9a-f]" * 8 + ".sock"
            paths += sorted(glob.glob(os.path.join(glob.escape(base), pattern)))
    return [_Session(path) for path in paths]


def _end_session(session: _Session, peer_uid: int | None) -> bool:
    """End a live session, and return when its process and its files are gone.

    False: it was dead already. HotenvError 8: it cannot be ended from here.
    """
    try:
        pid = _pid_to_end(session, peer_uid)
        sock = _connect(session, peer_uid)
    except HotenvError as error:
        if error.code != EXIT_UNREACHABLE or not _is_dead(session):
            raise
        if session.marker is None and _Record.read(session.path) is None:
            raise  # nothing says that there ever was a session
        return False
    if _peer_of(sock).pid != pid:
        sock.close()
        raise HotenvError(
            EXIT_SYSTEM, f"another process serves {_shown(session.path)} now", "try again")
    try:
        os.kill(pid, _signal.SIGTERM)
        os.kill(pid, _signal.SIGCONT)  # a server that is stopped would wait with its end
    except ProcessLookupError:
        pass  # it has ended meanwhile
    except PermissionError:
        sock.close()
        raise _not_yours_to_end(session) from None
    _wait_for_end(session, sock)
    return True


def _not_yours_to_end(session: _Session) -> HotenvError:
    """Return the error for a server that runs as another user."""
    return HotenvError(
        EXIT_SYSTEM, f"the session at {_shown(session.path)} belongs to another user",
        "only that user and root can end it")


def _pid_to_end(session: _Session, peer_uid: int | None) -> int:
    """Return the pid of a session's server. A server that is stopped is let go on first.

    HotenvError 8: somebody in between forwards for it, or it is another user's.
    """
    try:
        pid = _server_pid(session, peer_uid)
    except _Unreachable:
        # A server that is stopped takes connections, and cannot say who it is. Whether it is
        # stopped may be hidden. To others that signal does nothing.
        sock = _connect(session, peer_uid)
        silent = _peer_of(sock).pid
        sock.close()
        if silent <= 0:
            raise
        try:
            os.kill(silent, _signal.SIGCONT)
        except PermissionError:
            raise _not_yours_to_end(session) from None
        pid = _server_pid(session, peer_uid)
    if pid is None:
        raise HotenvError(
            EXIT_SYSTEM, f"{_shown(session.path)} is forwarded, or of another pid namespace",
            "run `hotenv stop` where the session was started")
    return pid


def _is_dead(session: _Session) -> bool:
    """Does nobody listen at a session's socket? A server that is slow or stopped is not dead."""
    sock = _socket.socket(_socket.AF_UNIX)
    sock.setblocking(False)
    try:
        _at_socket_address(session.path, sock.connect)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ECONNREFUSED)
    finally:
        sock.close()
    return False


def _wait_for_end(session: _Session, sock: _socket.socket) -> None:
    """Wait until a server that was told to end has ended; HotenvError 8 if it does not."""
    give_up = time.monotonic() + EXCHANGE_TIME
    sock.settimeout(EXCHANGE_TIME)
    try:
        sock.recv(1)  # the connection ends with the process, when all files are gone
    except OSError:
        pass
    sock.close()
    # The socket may have another name that stays, as in a container that mounts it. So the end has
    # come when nobody listens.
    while not _is_dead(session):
        if time.monotonic() > give_up:
            raise HotenvError(
                EXIT_SYSTEM,
                f"the session at {_shown(session.path)} was told to end, and has not")
        time.sleep(_RETRY_STEP)


def _clear_dead(session: _Session) -> None:
    """Remove what a session that is dead has left: its marker, its record and its socket."""
    import re
    socket_path = os.path.abspath(session.path)
    socket_name = os.path.basename(socket_path)
    record = _Record.read(socket_path)
    if record is None and not re.fullmatch(_SOCKET_NAME, socket_name):
        return  # another program's socket
    if record:
        session_id = socket_name[:-len(".sock")]
        marker = os.path.join(record.directory, _marker_name(record.name))
        unnamed = os.path.join(record.directory, _unnamed_marker(session_id))
        for path in (marker, unnamed):
            if _Marker(path).named_socket() == socket_path:
                _best_effort(os.unlink, path)
    # A marker may lie, and name a socket of another program.
    if socket_path in [each.path for each in _all_sessions()]:
        _remove_session_files(socket_path)


# ==== server ======================================================================================
# The loop that hands out the snapshot, its timers, and the request log. Knows nothing of dotenv.
#
# Each client is served by a generator, a "visit": it goes on as far as it can, and then yields a
# wait. The loop waits for no client. On every wake the deadlines come first, then the requests.

IDLE_TIMEOUT = 300.0  # seconds: the specification's default
REQUEST_TIME = 5.0  # seconds for a request to be complete: requests are sent at once
ANSWER_TIME = 30.0  # seconds without progress before a client that does not read is dropped
TICK = 10.0  # seconds: the selector's own clock stands still during suspend, the server's does not
_BUSY_TICK = 1.0  # seconds between two looks for clients that are too slow, while any waits
_SHORT_PAUSE = 0.1  # seconds until the next try where the system has no descriptor to give
STAMP_STEP = 0.01  # seconds by which the time stamp may lag: at 30,000 requests a second it matters
MAX_UNFINISHED = 16 << 20  # bytes of all incomplete requests together
DESCRIPTORS = 4096  # the soft limit that the server asks for: a connection is one descriptor
_RESERVE = 2 << 20  # bytes: Python takes memory for its small objects in pieces of 1 MiB
_BATCH = 64  # connections that are accepted before the timers are looked at again
_REQUEST_PIECE = 1 << 12  # bytes read at once of a request: each client keeps so much meanwhile
_DRAIN_PIECE = 1 << 16  # bytes read at once of what nobody wants
PIPE_BUF = 512 if sys.platform == "darwin" else 4096  # bytes that go into a pipe in one piece

LAST_WORDS = 1.0  # seconds that a session's end waits for whoever reads its log
_LOG_STEP = 0.01  # seconds between two attempts
_F_SETPIPE_SZ = 1031  # of <fcntl.h>; Python names it since 3.10
_LARGEST_PIPE = 1 << 20  # bytes: what Linux allows every user

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # on macOS this one counts suspend


def _now() -> float:
    """Return the time of a clock that nobody sets, and that counts suspend."""
    return time.clock_gettime(_CLOCK)


class _Log:
    """Lines for stderr. A line that cannot be written at once is dropped, and counted.

    Stderr may be a pipe that nobody reads, a terminal that is held by Ctrl-S, or a full disk. None
    of these may end the server, or hold it up.
    """

    def __init__(self, is_quiet: bool, is_verbose: bool) -> None:
        self._is_quiet = is_quiet
        self._is_verbose = is_verbose
        self._dropped = 0  # lines, since the last one that was written
        self._rest = b""  # of a line that was written in part
        self._descriptor = 2
        self._may_block = False
        try:
            if not stat.S_ISREG(os.fstat(2).st_mode):
                # A flag on descriptor 2 would be seen by all who share its description.
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
                self._descriptor = os.open("/proc/self/fd/2", flags)
        except OSError:
            self._may_block = True  # a socket, somebody else's terminal, or there is no /proc

    def request(self, request: _Request) -> None:
        """Add the line of a request that was served."""
        if self._is_quiet:
            return
        words = request.words
        if not self._is_verbose:
            words = words[:1]
        moment = time.strftime("%Y-%m-%d %H:%M:%S")
        self.add(f"{moment} {request.command} {_shown(' '.join(words))}")

    def add(self, line: str) -> None:
        """Write a line if it can be written now; count it if not."""
        if not self._tell_dropped() or not self._write(line):
            self._dropped += 1

    def close(self) -> None:
        """Say how many lines are missing at the end, as far as that can be said in a second."""
        give_up = time.monotonic() + LAST_WORDS
        if self._dropped:
            self._enlarge_pipe()
        while not self._tell_dropped() and time.monotonic() < give_up:
            time.sleep(_LOG_STEP)

    def _enlarge_pipe(self) -> None:
        """Give a pipe that is full room for a last line."""
        try:
            import fcntl
            fcntl.fcntl(self._descriptor, _F_SETPIPE_SZ, _LARGEST_PIPE)
        except (ImportError, OSError):
            pass  # the log is no pipe, or the system has no such call

    def _tell_dropped(self) -> bool:
        """Finish the last line, and say how many are missing behind it; False if that fails."""
        if not self._write_rest():
            return False
        if self._dropped:
            missing = _plural(self._dropped, "line")
            if not self._write(f"hotenv: {missing} of this log dropped here"):
                return False
            self._dropped = 0
        return True

    def _write(self, line: str) -> bool:
        """Write a line, or at least its beginning; False if nothing of it can be written now."""
        whole = line.encode("utf-8", "backslashreplace") + b"\n"
        self._rest = whole
        if self._write_rest() or len(self._rest) < len(whole):
            return True  # what is left of it is written before the next line
        self._rest = b""
        return False

    def _write_rest(self) -> bool:
        """Write what is left of a line; False if some of it must wait."""
        import select
        try:
            while self._rest:
                if self._may_block and not select.select([], [self._descriptor], [], 0)[1]:
                    return False
                # A descriptor that is ready takes so much without blocking.
                self._rest = self._rest[os.write(self._descriptor, self._rest[:PIPE_BUF]):]
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return False
            self._rest = b""  # stderr is closed or broken: nobody will ever read the log
        return True


class _Wait:
    """What a visit waits for: that its socket can be read, or written, until a moment."""

    def __init__(self, sock: socket.socket, events: int, until: float) -> None:
        self.sock = sock
        self.events = events
        self.until = until

    def is_like(self, other: _Wait | None) -> bool:
        """Is nothing different, so that the client has made no progress that counts?"""
        return other is not None and other.events == self.events and other.until == self.until


class _Server:
    """Serves one response until its time is up, it is told to end, or its files are lost."""

    def __init__(
        self,
        listener: socket.socket,
        response: bytes,
        files: _SessionFiles,
        signals: _Signals,
        idle_timeout: float,
        max_age: float | None,
    ) -> None:
        import selectors
        self._listener = listener
        self._response = memoryview(response)
        self._files = files
        self._signals = signals
        self._log: _Log | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals.wake, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)
        self._idle_timeout = idle_timeout
        # The visits that wait. They stand in the order of their last progress: the first has made
        # none for the longest time, and is dropped first where something runs short.
        self._waiting: dict[_Visit, _Wait] = {}
        self._unfinished = 0  # bytes of requests that visits keep, of all visits together
        now = _now()
        self._end = float("inf") if max_age is None else now + max_age
        self._deadline = min(self._end, now + idle_timeout)
        self._next_look = now + TICK  # for clients that are too slow, and for lost files
        self._stamped = 0.0  # the deadline that the socket's time stamp shows
        self._is_memory_short = False
        self._reserve: mmap.mmap | None = None
        self._set_reserve_aside()
        _raise_descriptor_limit()

    def run(self, log: _Log) -> str:
        """Serve until the session ends; returns why it has ended."""
        self._log = log
        while True:
            try:
                if self._is_memory_short:
                    self._make_room()
                ending = self._turn()
            except MemoryError:
                # Nothing is called here: a call may need memory too, and its error would end the
                # session. By now, all that the turn kept for itself is free again.
                self._is_memory_short = True
                continue
            if ending:
                # Cleaning up needs a descriptor, and memory: there may be no other left.
                self._selector.close()
                self._give_up_reserve()
                return ending

    def _turn(self) -> str:
        """Wait, and serve whoever is ready; returns why the session ends, or ''."""
        import signal
        pause = max(0.0, min(self._deadline, self._next_look) - _now())
        events = self._selector.select(pause)
        now = _now()
        if self._signals.received:
            return "ended by " + signal.Signals(self._signals.received[0]).name
        if now >= self._end:
            return "ended: --max-age is over"
        if now >= self._deadline:
            return "ended: idle for " + _duration(self._idle_timeout)
        for key, _ in events:
            if key.data is not None:
                self._go_on(key.data)
            elif key.fd == self._signals.wake:
                self._signals.clear_wake()  # a signal came that has a handler of somebody else's
            else:
                self._accept()
        if now >= self._next_look:
            self._drop_slow_clients(now)
            lost = self._files.why_lost()
            if lost:
                return "ended: " + lost
        return ""

    def _make_room(self) -> None:
        """Drop those who have waited longest, until there is memory to work with."""
        self._give_up_reserve()
        while not self._has_memory(_RESERVE):
            if not self._waiting:  # others have taken all of it
                time.sleep(_SHORT_PAUSE)
                break
            self._drop_longest_waiting()
        self._is_memory_short = False

    def _set_reserve_aside(self) -> None:
        """Set memory aside to work with when there is no other left.

        As much again has to be there. Otherwise setting it aside would leave none for a client.
        """
        if self._reserve is None and self._has_memory(2 * _RESERVE):
            self._reserve = self._take_memory(_RESERVE)

    def _give_up_reserve(self) -> None:
        """Make use of the memory that was set aside."""
        if self._reserve is not None:
            self._reserve.close()
            self._reserve = None

    def _has_memory(self, size: int) -> bool:
        """Can this process take so many bytes of memory?"""
        taken = self._take_memory(size)
        if taken is None:
            return False
        taken.close()
        return True

    def _take_memory(self, size: int) -> mmap.mmap | None:
        """Take so many bytes of memory. Return None if the system does not give them.

        What nobody has touched counts for a limit, and takes up no memory.
        """
        try:
            import mmap
            return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANON)
        except MemoryError:  # there is not even room for an error of the system
            return None
        except (ImportError, OSError):  # a small Python lacks the module
            return None

    def close(self) -> None:
        """Close all connections. A client that waits for the end of the session sees it then."""
        for visit in list(self._waiting):
            self._drop(visit)

    def _drop_slow_clients(self, now: float) -> None:
        for visit, wait in list(self._waiting.items()):
            if wait.until <= now:
                self._drop(visit)
        self._next_look = now + (_BUSY_TICK if self._waiting else TICK)
        self._set_reserve_aside()

    def _accept(self) -> None:
        """Serve one new client after the other: most have sent their request already."""
        for _ in range(_BATCH):
            try:
                sock, _address = self._listener.accept()
            except BlockingIOError:
                return  # nobody else is there
            except ConnectionAbortedError:
                return  # the client has gone
            except OSError:  # there is no descriptor for one more
                if self._waiting:
                    self._drop_longest_waiting()
                else:  # others have taken all of them
                    time.sleep(_SHORT_PAUSE)
                return
            self._go_on(self._visit(sock))

    def _go_on(self, visit: _Visit) -> None:
        """Let a visit go on as far as it can. Then it waits, unless it is done."""
        before = self._waiting.get(visit)
        try:
            wait = next(visit, None)
        except MemoryError:
            self._give_up_reserve()
            wait = None  # memory is short: this client is dropped, and nothing else ends
        if wait is None:
            self._drop(visit)
        elif not wait.is_like(before):
            self._wait(visit, wait)
        while self._unfinished > MAX_UNFINISHED:
            self._drop_longest_waiting()

    def _wait(self, visit: _Visit, wait: _Wait) -> None:
        """Note what a visit waits for from now on, behind all others that wait."""
        try:
            if self._waiting.pop(visit, None):
                self._selector.unregister(wait.sock)
            self._waiting[visit] = wait
            self._selector.register(wait.sock, wait.events, visit)
        except (OSError, MemoryError):  # there is no memory for one more
            self._give_up_reserve()
            self._forget(visit, wait)
            return
        except KeyError:
            # By this descriptor the selector knows an earlier client, whom memory was too short to
            # forget. Both are forgotten now.
            self._forget(visit, wait)
            return
        self._next_look = min(self._next_look, wait.until)

    def _drop_longest_waiting(self) -> None:
        """Forget the visit that has made no progress for the longest time."""
        self._drop(next(iter(self._waiting)))

    def _drop(self, visit: _Visit) -> None:
        """Forget a visit, and close its connection. It may not wait for anything."""
        wait = self._waiting.get(visit)
        if wait:
            self._forget(visit, wait)
        else:
            visit.close()

    def _forget(self, visit: _Visit, wait: _Wait) -> None:
        """Forget a visit that waits, or that was about to wait, and close its connection."""
        try:
            self._selector.unregister(wait.sock)
        except (KeyError, ValueError):
            pass  # memory ran short before it was registered, or when its connection was closed
        self._waiting.pop(visit, None)
        visit.close()

    def _visit(self, sock: socket.socket) -> _Visit:
        """Do all that is to be done with a client, and yield where that must wait."""
        import selectors
        request_ends = 0.0  # when the whole request must be here; 0 while none of it was missing
        line = b""
        newline = b""
        rest = b""  # what follows the request
        data = b""
        try:
            # 1. Read the request.
            while not newline and len(line) <= MAX_REQUEST:
                try:
                    data = sock.recv(_REQUEST_PIECE, _socket.MSG_DONTWAIT)
                except BlockingIOError:
                    if not request_ends:
                        request_ends = _now() + REQUEST_TIME
                    yield _Wait(sock, selectors.EVENT_READ, request_ends)
                    continue
                if not data:
                    break
                piece, newline, rest = data.partition(b"\n")
                line += piece
                self._unfinished += len(piece)

            # 2. Send the answer.
            request, unsent = self._answer(line, newline)
            while unsent:
                now = _now()
                if now >= self._deadline:
                    return  # and the loop ends before anything more is served
                try:
                    unsent = unsent[sock.send(unsent, _socket.MSG_DONTWAIT):]
                except BlockingIOError:
                    pass
                if unsent:
                    yield _Wait(sock, selectors.EVENT_WRITE, now + ANSWER_TIME)

            # 3. Now the snapshot is handed over: note that, while the client still waits.
            if request:
                self._note_use(request, now)

            # 4. If the client may still be sending, closing now would reset the connection, and
            #    take the answer away from the client.
            if rest or not newline:
                sock.shutdown(_socket.SHUT_WR)
                while data:
                    yield _Wait(sock, selectors.EVENT_READ, now + REQUEST_TIME)
                    data = sock.recv(_DRAIN_PIECE, _socket.MSG_DONTWAIT)
        except OSError:
            pass  # the client has gone
        finally:
            self._unfinished -= len(line)
            sock.close()

    def _answer(self, line: bytes, newline: bytes) -> tuple[_Request | None, memoryview]:
        """Return the request if it is served, and what is sent in any case."""
        try:
            if not newline or len(line) > MAX_REQUEST:
                limit = f"{MAX_REQUEST >> 10} KiB"
                raise ValueError(f"a request is one line of at most {limit}, with its newline")
            return _decode_request(line), self._response
        except ValueError as error:
            failure = _encode_failure("BAD_REQUEST", str(error), str(os.getpid()))
        except MemoryError:
            raise  # this client is dropped
        except Exception:  # a bug ends one request; its message could hold what was sent
            failure = _encode_failure("INTERNAL", "this is a bug in hotenv", str(os.getpid()))
        return None, memoryview(failure)

    def _note_use(self, request: _Request, now: float) -> None:
        """Reset the idle timer, and write the time stamp and the log line."""
        self._deadline = min(self._end, now + self._idle_timeout)
        if self._deadline > self._stamped + STAMP_STEP:
            self._stamped = self._deadline
            used = time.time()
            self._files.stamp(used + self._deadline - now, used)
        if self._log:
            self._log.request(request)


if TYPE_CHECKING:
    _Visit = Generator[_Wait, None, None]


def _raise_descriptor_limit() -> None:
    """Ask for more descriptors, as far as the system lets this process have them."""
    try:
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = max(soft, min(DESCRIPTORS, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ImportError, OSError, ValueError):
        pass  # a small Python lacks the module, and some sandboxes refuse the call


# ==== serving =====================================================================================
# The way of `serve`: read the input, encode it, go to the background if that is wanted, hold the
# session, and leave nothing behind.

_REPORT = 3  # the descriptor by which a child in the background tells its caller that it is ready
_MOST_DESCRIPTORS = 1 << 16  # higher ones are not looked for, to be closed
_READ_PIECE = 1 << 20  # bytes read at once of stdin


def _serve(options: Namespace) -> int:
    """Hold what stdin has until the session ends; with --background, have a child hold it."""
    if options.log is not None and not options.background:
        raise _usage("serve: --log goes with --background", "without it, redirect: 2>> FILE")
    if options.prompt and options.format != "dotenv":
        raise _usage("serve: --prompt asks for values in dotenv input, not in " + options.format)
    if options.timeout is None:
        options.timeout = _duration_of_variable("HOTENV_TIMEOUT", IDLE_TIMEOUT)
    if options.max_age is None:
        options.max_age = _duration_of_variable("HOTENV_MAX_AGE", None)
    name = _chosen_name(options.name)
    null = _open_standard_streams()
    if not _is_own_uid(os.geteuid()):
        raise HotenvError(
            EXIT_SYSTEM, f"uid {OVERFLOW_UID} (nobody) is every stranger here",
            "serve as another user")
    here = _Marker.find(name)
    is_here = here is not None and here.path == _marker_name(name)  # and not in a directory above
    if is_here and not options.force:
        raise _refusal(name)
    is_closed = _prepare_server()
    holder = _holder_of_input(options, name, is_closed, null)
    return _hold(holder, options)


def _prepare_server() -> bool:
    """Prepare this process for the values. False: its memory stays open to the user's processes."""
    # With `stty tostop`, a line of a session behind `&` would stop it: it may always write.
    _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
    _name_process(b"hotenv")
    is_closed = _harden()
    if not is_closed:
        _say("the memory of this session is open to your other processes (no ctypes?)")
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # there is nothing yet to clean up
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)  # ends a session even where it was ignored
    return is_closed


def _holder_of_input(options: Namespace, name: str, is_closed: bool, null: int) -> _Holder:
    """Read stdin, and return what holds the environment that it means.

    Behind that, descriptor 0 is `null`, and the holder's response alone has the values.
    """
    data = _read_input(options)
    os.dup2(null, 0)
    os.close(null)
    env = _read_environment(data, options)
    _warn_of_surprises(env, options)
    return _holder_of(env, options, name, is_closed)


def _holder_of(env: Env, options: Namespace, name: str, is_closed: bool) -> _Holder:
    """Return what holds an environment."""
    record = _Record()
    record.variables = len(env)
    record.idle_timeout = options.timeout
    record.max_age = options.max_age
    record.memory_closed = is_closed
    return _Holder(options, name, _encode_response(env), record)


def _hold(holder: _Holder, options: Namespace) -> int:
    """Hold a session, in this process or in the background."""
    # Reading has taken several times the memory of the values. glibc gives it back if it is asked.
    _best_effort(_call_c, "malloc_trim", 0)
    if options.background:
        return _serve_in_background(holder, is_quiet=options.quiet)
    return holder.hold()


def _duration_of_variable(variable: str, default: float | None) -> float | None:
    """Return the seconds that a variable of the environment names, or the default."""
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        return _parse_duration(text)
    except HotenvError as error:
        raise HotenvError(error.code, f"{variable}: {error}", *error.hints) from None


def _open_standard_streams() -> int:
    """Open what is closed of stdin, stdout and stderr; returns a descriptor of /dev/null.

    Otherwise the next file or socket would get the number of a closed one.
    """
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:
        null = os.open(os.devnull, os.O_RDWR)
    return null


def _read_input(options: Namespace) -> bytes:
    """Return all of stdin. HotenvError 7: it is too much, or it is empty and may not be."""
    if os.isatty(0) and options.format == "dotenv":
        _say("type NAME=value lines, then Ctrl-D; to hide what you type: NAME=? and --prompt")
    elif os.isatty(0):
        _say(f"type {options.format} input, then Ctrl-D")
    data = bytearray()
    try:
        while True:
            piece = os.read(0, _READ_PIECE)
            if not piece:
                break
            data += piece
            if len(data) > MAX_INPUT:
                raise HotenvError(
                    EXIT_INPUT, f"stdin has over {MAX_INPUT >> 20} MiB", "is it the right file?")
    except OSError as error:
        raise _system_error(error, "cannot read stdin") from None
    if not data and not options.empty:
        hint = "did the left side of the pipe fail?"
        if os.isatty(0):
            hint = "Ctrl-D came before a line was typed"
        raise HotenvError(
            EXIT_INPUT, "stdin is empty", hint, "--empty starts a session without variables")
    return bytes(data)


def _read_environment(data: bytes, options: Namespace) -> Values:
    """Return the environment that the input means in the format that the options name."""
    if options.format == "json":
        return dict(_parse_json_entries(data))
    if options.format == "nul":
        return dict(_parse_nul_entries(data))
    prompt = _ask if options.prompt else None
    return resolve_env(_parse_entries(data), _host_environment(), prompt)


def _warn_of_surprises(env: Env, options: Namespace) -> None:
    """Say on a terminal what somebody at that terminal may not expect."""
    if not os.isatty(2):
        return
    may_be_question = options.format == "dotenv" and not options.prompt
    if may_be_question and any(value.startswith("?") for value in env.values()):
        _say("a value begins with `?`: with --prompt, an unquoted one is asked for")
    if os.environ.get("HOTENV_SOCKET"):
        _say("HOTENV_SOCKET is set: a `run` without --name asks that session, and not this one")


def _refusal(name: str) -> HotenvError:
    """Return the error for a marker that is here already, with what became of its session."""
    marker = _marker_name(name)
    message = f"{marker} is here already"
    replace = f"{_invocation()} serve{_name_option(name)} --force replaces it"
    try:
        path = _Marker(marker).socket_path()
        record = _Record.read(path)
        if record and record.is_elsewhere(path, os.path.abspath(marker)):
            return HotenvError(
                EXIT_REFUSED, f"{message}: it is a copy of the one in {_shown(record.directory)}",
                replace)
        _server_pid(_Session(path), None)
    except _NotTrusted as error:
        # In a directory of somebody else, such as /tmp, another user's file cannot be replaced.
        is_own_directory = _is_own_uid(os.stat(".").st_uid)
        return HotenvError(
            EXIT_REFUSED, f"{message}, and is not trusted: {error}",
            replace if is_own_directory else "serve in a directory of your own")
    except _Unreachable as error:
        return HotenvError(
            EXIT_REFUSED, f"{message}, but its session does not answer: {error.reason}",
            *error.hints, replace)
    except HotenvError as error:
        return HotenvError(EXIT_REFUSED, f"{message}, and useless: {error}", replace)
    return HotenvError(
        EXIT_REFUSED, f"{message}, and its session still answers",
        f"use it, or end it: {_invocation()} stop{_name_option(name)}", replace)


def _serve_in_background(holder: _Holder, is_quiet: bool) -> int:
    """Have a child hold the session; return when it is ready, or with what went wrong.

    Until the child's report a signal ends both processes. From the report on there is a session,
    and no signal keeps this process from saying so.
    """
    import select
    news, report = os.pipe()
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # if it is ignored, exit statuses are lost
    blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _SESSION_ENDING)
    child = os.fork()  # before listen(): clients see the credentials of whoever called that
    if not child:
        os.close(news)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
        os._exit(_exit_status(_hold_detached, holder, report))
    os.close(report)
    signals = _Signals(_SESSION_ENDING)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
    poller = select.poll()
    poller.register(news, select.POLLIN)
    poller.register(signals.wake, select.POLLIN)
    ready: dict[int, int] = {}
    while news not in ready:
        if signals.received:
            _best_effort(os.kill, child, signals.received[0])
            os.waitpid(child, 0)
            _die_of(signals.received[0])
        ready = dict(poller.poll())
        if signals.wake in ready:
            signals.clear_wake()
    message = os.read(news, PIPE_BUF).decode()
    os.close(news)
    if not message:
        return _end_like(os.waitpid(child, 0)[1]) or EXIT_SYSTEM
    _block_at_exit(_SESSION_ENDING)
    if os.isatty(2) and not is_quiet:
        _say(message)
    return 0


def _hold_detached(holder: _Holder, report: int) -> int:
    """Hold the session in a process of its own, which keeps nothing open of its caller's."""
    os.setsid()
    os.dup2(report, _REPORT)
    os.closerange(_REPORT + 1, _MOST_DESCRIPTORS)
    return holder.hold(reports=True)


class _Holder:
    """Holds a session: binds, publishes, serves, and leaves nothing behind."""

    def __init__(self, options: Namespace, name: str, response: bytes, record: _Record) -> None:
        self._options = options
        self._name = name
        self._response = response
        self._record = record
        self._talks = False  # whether stderr is a terminal that gets more than the log
        self._log: _Log | None = None
        self._server: _Server | None = None
        self._has_begun = False  # whether there was a session: then this is no refused start

    def hold(self, reports: bool = False) -> int:
        """Serve until the session ends; returns the exit status, or dies of an early signal.

        With `reports`, the caller waits for a report: see _REPORT.
        """
        signals = _Signals(_SESSION_ENDING)
        files = _SessionFiles(self._name)
        ending = ""
        listener = None
        try:
            self._check_log()
            listener = files.bind()
            self._record.started = time.time()
            files.write_record(self._record)
            if not signals.received:  # else the session does not begin
                ending = self._serve(files, listener, signals, reports)
        except FileExistsError:
            raise _refusal(self._name) from None
        except OSError as error:
            if self._has_begun:
                raise
            doing = "cannot serve this directory by a socket in " + _shown(files.runtime.path)
            raise _system_error(error, doing) from None
        finally:
            files.remove()  # first: whoever waits in the backlog waits for this
            if listener:
                listener.close()
            if not self._has_begun:  # a refused start leaves nothing
                files.runtime.remove_made()
        if not ending:
            _die_of(signals.received[0])
        if self._server:
            self._server.close()  # not before all files are gone: `stop` waits for this
        self._end_log(files, ending)  # last: whoever reads the log may be slow
        _block_at_exit(_SESSION_ENDING)
        return 0

    def _check_log(self) -> None:
        """Refuse a log that cannot be written, before anything is made or replaced."""
        path = self._options.log
        if path is None:
            return
        if os.path.lexists(path):
            os.close(_open_private(path, "log"))
            return
        directory = os.path.dirname(path) or "."
        if not os.access(directory, os.W_OK | os.X_OK):
            raise HotenvError(
                EXIT_SYSTEM, f"cannot write the log {_shown(path)}",
                f"there must be a directory {_shown(directory)} that you can write to")

    def _open_output(self) -> int:
        """Return a descriptor for what a session in the background writes."""
        if self._options.log is not None:
            return _open_private(self._options.log, "log")
        return os.open(os.devnull, os.O_RDWR)

    def _serve(
        self,
        files: _SessionFiles,
        listener: socket.socket,
        signals: _Signals,
        reports: bool,
    ) -> str:
        """Publish the session and serve it; returns why it has ended."""
        options = self._options
        ready = (
            f"session {self._shown_name(files)} ready: "
            f"{_plural(self._record.variables, 'variable')}, "
            f"idle timeout {_duration(options.timeout)}")
        server = _Server(
            listener, self._response, files, signals, options.timeout, options.max_age)
        now = time.time()
        lifetime = options.timeout
        if options.max_age is not None:
            lifetime = min(lifetime, options.max_age)
        files.stamp(now + lifetime, now)
        files.publish(options.force)  # from here on there is a session, and a signal ends it
        self._has_begun = True
        if reports:
            output = self._open_output()
            os.chdir("/")
            os.dup2(output, 1)
            os.dup2(output, 2)  # from here on, stderr is the log
            os.close(output)
        self._talks = os.isatty(2) and not options.quiet
        log = _Log(options.quiet, options.verbose)
        if reports:  # nothing that can fail comes behind the report
            os.write(_REPORT, ready.encode())
            os.close(_REPORT)
        if self._talks:
            log.add("hotenv: " + ready)
        ending = server.run(log)
        self._server = server
        self._log = log
        return ending

    def _end_log(self, files: _SessionFiles, ending: str) -> None:
        if self._log is None:
            return
        if self._talks:
            self._log.add(f"hotenv: session {self._shown_name(files)} {ending}")
        self._log.close()

    def _shown_name(self, files: _SessionFiles) -> str:
        """Return how log lines call the session: by its id, and by its name if it has one."""
        if self._name:
            return f"{files.id} ({self._name})"
        return files.id


# -- filling ---------------------------------------------------------------------------------------
#
# Where a command finds no session, it can run a text that asks a store for the values, once, and
# start a session with what the text prints. The text comes from an option or from the caller's
# environment, and never from a file of the project: a clone must not be able to run code.

_FILL_STEP = 0.02  # seconds between two attempts to get the lock
_FILL_PATIENCE = 1.0  # seconds of waiting before a line on the terminal says so


def _fetch_or_fill(command: str, words: Words, options: Namespace) -> Values:
    """Return the session's environment. If there is no live session, start one by the fill text.

    HotenvError 3 or 4: there is none, and nothing starts one. 7: what the text prints is malformed.
    """
    try:
        return _fetch_for(command, words, options)
    except HotenvError as error:
        text = options.fill
        if text is None:
            text = os.environ.get("HOTENV_FILL")
        if not text or not _may_fill(error, options):
            raise
        failure = error
    name = _chosen_name(options.name)
    directory = _directory_to_fill(name)
    settings = _filled_settings(name)
    _close_memory()  # until this process becomes the command
    lock = _FillLock(directory, name)
    lock.acquire()
    # If SIGCHLD is ignored, exit statuses are lost.
    child_signal = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    try:
        env = _fetch_if_live(command, words, options)  # somebody else may have filled it meanwhile
        if env is None:
            filled = _environment_of_fill(_output_of_fill(text, directory, failure))
            env = _fetch_if_live(command, words, options)  # so may `serve`, which takes no lock
        if env is None:
            _start_filled(filled, directory, settings)
            env = _fetch_for(command, words, options)
    finally:
        _signal.signal(_signal.SIGCHLD, child_signal)
        lock.release()
    return env


def _fetch_if_live(command: str, words: Words, options: Namespace) -> Values | None:
    """Return the session's environment, or None if a session may be started for it."""
    try:
        return _fetch_for(command, words, options)
    except HotenvError as error:
        if not _may_fill(error, options):
            raise
    return None


def _fetch_for(command: str, words: Words, options: Namespace) -> Values:
    """Return the environment of the session that the options name."""
    return fetch(command, words, options.socket, peer_uid=options.peer_uid, name=options.name)


def _may_fill(error: HotenvError, options: Namespace) -> bool:
    """May a session be started in place of what was found? Only if there is none, or a dead one.

    A session that is slow, stopped or somebody else's is never replaced. A socket that somebody has
    named is not hotenv's to make. Under guards no session is to be had.
    """
    if options.socket is not None or "HOTENV_GUARDS" in os.environ:
        return False
    if options.name is None and os.environ.get("HOTENV_SOCKET"):
        return False
    if error.code == EXIT_NO_SESSION:
        return True
    if error.code != EXIT_UNREACHABLE:
        return False
    try:
        return _is_dead(_locate(None, options.name))
    except HotenvError as gone:
        return gone.code == EXIT_NO_SESSION


def _directory_to_fill(name: str) -> str:
    """Return the directory of the dead marker, else of the repository, else the current one."""
    marker = _Marker.find(name)
    if marker:
        return os.path.dirname(marker.absolute_path)
    here = os.getcwd()
    above = here
    while above != os.path.dirname(above):
        if os.path.lexists(os.path.join(above, ".git")):
            return above
        above = os.path.dirname(above)
    return here


class _FillLock:
    """Lets one process at a time fill the session of a directory and a name."""

    def __init__(self, directory: str, name: str) -> None:
        import zlib
        runtime = _RuntimeDir()
        runtime.make()
        key = zlib.crc32(os.fsencode(f"{directory}\n{name}"))
        self._path = os.path.join(runtime.path, f"fill-{key:08x}.lock")
        self._descriptor = -1

    def acquire(self) -> None:
        """Wait until nobody else fills. Ctrl-C ends the waiting at once."""
        import fcntl
        told_at = time.monotonic() + _FILL_PATIENCE
        is_told = False
        while True:
            self._descriptor = _open_private(self._path, "lock")
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current():
                    return
            except BlockingIOError:
                pass
            os.close(self._descriptor)
            if not is_told and time.monotonic() > told_at and os.isatty(2):
                is_told = True
                _say("waiting for another command that fills this session")
            time.sleep(_FILL_STEP)

    def _is_current(self) -> bool:
        """Is the locked file still the one that others would lock?"""
        found = _lstat(self._path)
        return found is not None and os.path.samestat(found, os.fstat(self._descriptor))

    def release(self) -> None:
        """Let the next one go on."""
        _best_effort(os.unlink, self._path)
        os.close(self._descriptor)


def _start_filled(env: Values, directory: str, settings: Namespace) -> None:
    """Hold an environment in a session in the background, as `serve --background --force` does."""
    server = os.fork()
    if not server:
        os._exit(_exit_status(_serve_filled, env, directory, settings))
    status = os.waitpid(server, 0)[1]
    if status:
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else EXIT_SYSTEM
        raise HotenvError(code, "no session was started: see above")


def _environment_of_fill(output: bytes) -> Values:
    """Return the environment that the output means; HotenvError 7 for a mistake in it."""
    try:
        return resolve_env(_parse_entries(output), _host_environment())
    except HotenvError as error:
        message = str(error).replace("<stdin>", "the output of the fill command", 1)
        hint = "the fill command prints NAME=value lines"
        if output.lstrip().startswith(b"{"):
            hint = ("many stores print NAME=value lines if asked: `--format env` of doppler, "
                    "`--output-type dotenv` of sops")
        raise HotenvError(error.code, message, hint) from None


def _output_of_fill(text: str, directory: str, failure: HotenvError) -> bytes:
    """Return what the text prints; HotenvError if it fails, or prints nothing."""
    import subprocess
    env = dict(os.environ)
    env.pop("HOTENV_FILL", None)  # else a text that runs hotenv would wait for itself
    # A pipe on stdin is the command's, and not the store's.
    stdin = None if os.isatty(0) else subprocess.DEVNULL
    with subprocess.Popen(
        ["sh", "-c", text], stdin=stdin, stdout=subprocess.PIPE, cwd=directory, env=env,
    ) as store:
        output = store.stdout.read(MAX_INPUT + 1) if store.stdout else b""
        is_too_long = len(output) > MAX_INPUT
        if is_too_long:
            store.kill()
    if is_too_long:
        raise HotenvError(
            EXIT_INPUT, f"the fill command prints over {MAX_INPUT >> 20} MiB: no session")
    if store.returncode < 0:
        signum = -store.returncode
        if signum == _signal.SIGINT:
            raise KeyboardInterrupt
        raise HotenvError(failure.code, f"the fill command died of signal {signum}: no session")
    hint = "try it by hand: `sh -c` runs it in " + _shown(directory)
    if store.returncode:
        raise HotenvError(
            failure.code, f"the fill command ended with status {store.returncode}: no session",
            hint)
    if not output.strip():
        raise HotenvError(failure.code, "the fill command has printed nothing: no session", hint)
    return output


def _filled_settings(name: str) -> Namespace:
    """Return the options of `serve` with which a filled session is held; HotenvError 2."""
    from argparse import Namespace
    return Namespace(
        background=True,
        empty=False,
        force=True,
        format="dotenv",
        log=None,
        max_age=_duration_of_variable("HOTENV_MAX_AGE", None),
        name=name,
        prompt=False,
        quiet=False,
        timeout=_duration_of_variable("HOTENV_TIMEOUT", IDLE_TIMEOUT),
        verbose=False,
    )


def _serve_filled(env: Values, directory: str, settings: Namespace) -> int:
    """Start the session in a process of its own."""
    os.chdir(directory)
    is_closed = _prepare_server()
    null = _open_standard_streams()
    os.dup2(null, 0)
    os.close(null)
    return _hold(_holder_of(env, settings, settings.name, is_closed), settings)


# ==== redaction ===================================================================================
# Text or bytes in, the same out with `[hidden:NAME]` in place of every value, in any of its usual
# spellings ("forms"). Redaction prevents accidents and is no boundary: a value that is cut,
# reversed or compressed goes through.

_SHORTEST_WORD = 4  # characters of a value that is hidden at all
_LONGEST_NUMBER = 5  # digits of a number that is nobody's secret: ports, years and counts
_SHORTEST_FORM = 8  # characters; shorter values are hidden as whole words only
_LONGEST_FORM = 1024  # bytes; longer forms are cut into pieces, so a stream holds back no more
_MASK_STEP = 1 << 16  # bytes masked at once, whatever the size of the input
_WORD_BLOCK = 1024  # four-byte words of a buffer that are looked at together

# Everyday words: to hide one would harm output, and protect nothing.
_NO_SECRETS = [
    "admin", "administrator", "always", "auto", "critical", "debug", "default", "dev",
    "devel", "development", "disabled", "enabled", "error", "eu-central-1", "eu-west-1",
    "false", "fatal", "guest", "http", "https", "info", "json", "live", "local",
    "localhost", "main", "mariadb", "master", "memory", "mongodb", "mysql", "never",
    "nil", "no", "none", "notice", "null", "off", "on", "plain", "postgres", "postgresql",
    "private", "prod", "production", "public", "redis", "root", "sqlite", "sqlite3",
    "stage", "staging", "test", "testing", "tests", "text", "trace", "true", "undefined",
    "us-east-1", "us-west-2", "user", "users", "utf-8", "utf8", "verbose", "warn",
    "warning", "yes",
]

# How programs escape single characters of a text that they print.
_ESCAPES = [
    [],
    [(b"/", b"\\/")],  # JSON of PHP
    [(b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026")],  # JSON of Go
    [(b"'", b"\\'")],  # repr() within single quotes
    [(b"\\'", b"'")],  # repr() within double quotes
    [(b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;")],  # HTML
    [(b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&quot;"), (b"'", b"&#x27;")],
    [(b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&#34;"), (b"'", b"&#39;")],
    [(b"'", b"'\\''")],  # dash, and `set -x`
    [(b"'", b"'\"'\"'")],  # shlex.quote()
    [(b"'", b"''")],  # SQL and YAML
    [(b"$", b"$$")],  # compose files and make
    [(b"\\", b"\\\\"), (b'"', b'\\"'), (b"$", b"\\$"), (b"`", b"\\`")],  # `declare -p` of bash
]

# The characters that URL encoders leave as they are.
_KEPT_IN_URLS = [
    rb"\w.~-",  # urllib.parse.quote(text, safe="")
    rb"\w.~/-",  # urllib.parse.quote(text)
    rb"\w.!~*'()-",  # encodeURIComponent() of JavaScript
    rb"\w.!~*'();,/?:@&=+$#-",  # encodeURI() of JavaScript
    rb"\w.*-",  # forms
]

# The characters that bash's $'...' writes by a letter or a sign.
_BASH_ESCAPES = {
    b"\a": b"\\a",
    b"\b": b"\\b",
    b"\t": b"\\t",
    b"\n": b"\\n",
    b"\v": b"\\v",
    b"\f": b"\\f",
    b"\r": b"\\r",
    b"\x1b": b"\\E",
    b"'": b"\\'",
    b"\\": b"\\\\",
}


def _spellings(text: str) -> Iterator[bytes]:
    """Yield how tools print `text`, without quotes around it. Each form earned its place."""
    raw = _encoded(text)
    yield raw.hex().encode()
    yield os.path.normpath(raw)  # as it stands in a path
    yield from _quoted_spellings(text, raw)
    yield from _base64_spellings(raw)
    yield from _url_spellings(raw)
    yield from _bash_spellings(raw)


def _quoted_spellings(text: str, raw: bytes) -> Iterator[bytes]:
    """Yield the text as literals of programming languages and of shells have it."""
    import json
    quoted = [
        json.dumps(text),
        json.dumps(text, ensure_ascii=False),
        repr(text),
        ascii(text),
        repr(raw)[1:],
    ]
    literals = {text}
    for literal in quoted:
        literals.add(literal[1:-1])
    for literal in literals:
        for escapes in _ESCAPES:
            escaped = _encoded(literal)
            for plain, escape in escapes:
                escaped = escaped.replace(plain, escape)
            yield escaped


def _base64_spellings(raw: bytes) -> Iterator[bytes]:
    """Yield the text in base64, alone or within something longer, in one line or wrapped."""
    import re
    from base64 import b64encode
    # The value may also stand within what is encoded, as in user:secret. There `shared` characters
    # at its beginning hold bits of what comes before, and one at its end bits of what comes after.
    for offset, shared in (0, 0), (1, 2), (2, 3):
        for alphabet in b"+/", b"-_":
            padded = b64encode(bytes(offset) + raw, alphabet)[shared:]
            bare = padded.rstrip(b"=")
            yield padded
            yield bare
            yield bare[:-1]
    encoded = b64encode(raw)
    complete = encoded[:len(raw) * 8 // 6]  # without a character that has bits of what comes after
    for width in 64, 76:  # wrapped, as openssl and base64 do it
        yield from re.findall(rb".{1,%d}" % width, complete)


def _url_spellings(raw: bytes) -> Iterator[bytes]:
    """Yield the text with percent signs, as URLs and forms have it."""
    import re
    for kept in _KEPT_IN_URLS:
        encoded = re.sub(rb"[^%s]" % kept, lambda found: b"%%%02X" % ord(found[0]), raw)
        yield encoded
        yield encoded.replace(b"%20", b"+")


def _bash_spellings(raw: bytes) -> Iterator[bytes]:
    """Yield the text as bash prints it with `printf %q`, and as it writes $'...'."""
    import re
    for plain in rb"", rb"#~":  # `printf %q` escapes these two only where a word begins
        yield re.sub(rb"([^\w%%+./:=@%s\x80-\xff-])" % plain, rb"\\\1", raw)

    def escape(found: re.Match[bytes]) -> bytes:
        return _BASH_ESCAPES.get(found[0], b"\\%03o" % ord(found[0]))

    yield re.sub(rb"['\\\0-\x1f\x7f-\xff]", escape, raw)


def _forms(value: str) -> Iterator[bytes]:
    """Yield all that is looked for on behalf of a value: its spellings, and those of its lines."""
    texts = {value}
    for line in value.splitlines():
        texts.add(line.strip())
    for text in texts:
        if len(text) < _SHORTEST_FORM or text.lower() in _NO_SECRETS:
            continue
        for form in _spellings(text):
            if len(form) >= _SHORTEST_FORM:
                yield from _pieces(form)


def _pieces(form: bytes) -> Iterator[bytes]:
    """Yield a form, or pieces that cover it. The last piece may overlap the one before."""
    yield form[-_LONGEST_FORM:]
    for start in range(0, len(form) - _LONGEST_FORM, _LONGEST_FORM):
        yield form[start:start + _LONGEST_FORM]


class _FormIndex:
    """Finds forms in a buffer, and costs little where there are none.

    A buffer is read as an array of four-byte words, in C. A form has at least 8 bytes, so wherever
    it lies, one whole word of the buffer begins within the form's first four bytes. Only around a
    word that occurs there in some form is the buffer looked at byte by byte.
    """

    def __init__(self, forms: Iterable[bytes]) -> None:
        from bisect import bisect_right  # not later: a masked run imports nothing behind its fork
        self._bisect_right = bisect_right
        self._sorted = sorted(forms)
        self._longest = max(map(len, self._sorted), default=0)
        # For each word, where it stands in the first bytes of the forms that have it there.
        self._offsets: dict[int, set[int]] = {}
        # For each form, the longest other form that it begins with.
        self._prefix = {b"": b""}
        previous = b""
        for form in self._sorted:  # each comes after all that it begins with
            while not form.startswith(previous):
                previous = self._prefix[previous]
            self._prefix[form] = previous
            previous = form
            for offset in range(4):
                word = int.from_bytes(form[offset:offset + 4], sys.byteorder)
                self._offsets.setdefault(word, set()).add(offset)

    def find(self, data: bytes) -> tuple[list[tuple[int, bytes]], int]:
        """Return the longest form at each place where one stands, and where `data` may be held.

        It is held from the place on where its end may become a form when more data comes; that is
        its length if there is no such place. The very first byte is not looked at.
        """
        found = []
        held = len(data)
        for start in self._possible_starts(data):
            rest = data[start:start + self._longest]
            after = self._bisect_right(self._sorted, rest)
            if after < len(self._sorted) and self._sorted[after].startswith(rest):
                held = min(held, start)  # that form goes on behind the data
            form = self._sorted[after - 1] if after else b""
            while not rest.startswith(form):
                form = self._prefix[form]
            if form:
                found.append((start, form))
        return found, held

    def _possible_starts(self, data: bytes) -> list[int]:
        """Return the places of `data` where a form may begin, seen from its words alone."""
        words = memoryview(data)[:len(data) // 4 * 4].cast("I")
        starts = []
        for base in range(0, len(words), _WORD_BLOCK):
            block = words[base:base + _WORD_BLOCK]
            if self._offsets.keys().isdisjoint(block):  # so it is for most blocks of a log
                continue
            for index, word in enumerate(block, base):
                for offset in self._offsets.get(word, ()):
                    if offset < index * 4:
                        starts.append(index * 4 - offset)
        return starts


class Redactor:
    """Hides the values of an environment: each, in any usual spelling, becomes `[hidden:NAME]`.

    Call it with a string, or push pieces of bytes through a `stream()`.

    A value of several lines is hidden as a whole, and by each of its lines of 8 or more characters.
    Blanks around a value do not count. A value of 4 to 7 characters is hidden as a whole word only.
    Shorter values, everyday words, and the values of variables that `build_isolated_env` lets
    through (HOME) are not hidden: `unmaskable` has their names. `skip` has names, and prefixes that
    end in `*`, of values that are left alone. If several names have one value, the first name is
    shown. Side by side, a mask is shown once. A stream holds back at most `longest` bytes.
    """

    def __init__(self, env: Env, skip: Strings = ()) -> None:
        """Take the environment whose values are hidden, and which of its names are skipped."""
        import re
        skip = list(skip)
        self.unmaskable: Words = []
        self._masks: dict[bytes, bytes] = {}  # of each form
        self._words: dict[bytes, bytes] = {}  # of each value that is hidden as a whole word only
        for name, value in env.items():
            value = value.strip()
            mask = b"[hidden:%s]" % name.encode("utf-8", "replace")
            if not value or _matches(name, skip):
                continue
            if _is_no_secret(name, value):
                self.unmaskable.append(name)
            elif len(value) < _SHORTEST_FORM:
                self._words.setdefault(_encoded(value), mask)
            else:
                for form in _forms(value):
                    self._masks.setdefault(form, mask)
        self._index = _FormIndex(self._masks)
        self.longest = max(map(len, [*self._masks, *self._words]), default=0)
        # What the end of a buffer may be that goes on to be a value: a word, which must be seen to
        # end, or the beginning of a form that is too short for the index.
        beginnings = list(self._words)
        for form in self._masks:
            beginnings.append(form[:_SHORTEST_FORM - 1])
        self._ends = set()
        for beginning in beginnings:
            for size in range(1, len(beginning) + 1):
                self._ends.add(beginning[:size])
        self._longest_end = max(map(len, self._ends), default=0)
        self._is_border = re.compile(rb"(?!(?<=\w)\w)").match  # no word goes on across it

    def __call__(self, text: str) -> str:
        """Return `text` with every value masked."""
        import re
        # No value can hold half of a surrogate pair, and no encoding can.
        text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
        stream = self.stream()
        return _decoded(stream.feed(_encoded(text)) + stream.flush())

    def stream(self) -> _MaskedStream:
        """Return a new stream: `feed(data)` returns what may go out by now, `flush()` the rest."""
        return _MaskedStream(self)

    def _find(self, data: bytes) -> tuple[list[tuple[int, int, bytes]], int]:
        """Return every place of a value in `data`, as (start, end, mask), and where it may be held.

        The first byte is only there to say whether a word goes on behind it. See _FormIndex.find().
        """
        forms, held = self._index.find(data)
        places = [(start, start + len(form), self._masks[form]) for start, form in forms]
        for word, mask in self._words.items():
            start = data.find(word, 1)
            while start > 0:
                end = start + len(word)
                if self._is_border(data, start) and self._is_border(data, end):
                    places.append((start, end, mask))
                start = data.find(word, start + 1)
        for start in range(max(1, len(data) - self._longest_end), held):
            if data[start:] in self._ends:
                held = start
                break
        return sorted(places, key=lambda place: (place[0], -place[1])), held  # the longest first


def _is_no_secret(name: str, value: str) -> bool:
    """Is a value too short or too common to be hidden, or its variable an essential one?"""
    if name in ESSENTIALS or value.lower() in _NO_SECRETS:
        return True
    if value.isdecimal() and len(value) <= _LONGEST_NUMBER:
        return True
    return len(value) < _SHORTEST_WORD


class _MaskedStream:
    """A stream of bytes on its way through a Redactor."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._data = b"\n"  # what is held back, behind one byte that has gone out
        self._done = 1  # how much of that has gone out
        self._last_mask = b""  # the mask that went out last, if nothing has gone out since

    def feed(self, data: bytes) -> bytes:
        """Take the next piece, and return all that no later piece can make part of a value."""
        out = []
        for start in range(0, len(data), _MASK_STEP):
            self._data += data[start:start + _MASK_STEP]
            out.append(self.flush(last=False))
        return b"".join(out)

    def flush(self, last: bool = True) -> bytes:
        """Return what was held back: the end of the stream has come."""
        places, held = self._redactor._find(self._data)
        if last:
            held = len(self._data)
        out = []
        for start, end, mask in places:
            if start >= held:
                break
            out.append(self._take(start))
            if end > self._done:  # else it lies within the one before
                out.append(self._hide(end, mask))
        out.append(self._take(held))
        self._data = self._data[held - 1:]
        self._done -= held - 1
        return b"".join(out)

    def _hide(self, end: int, mask: bytes) -> bytes:
        """Return the mask of a value that ends here. Side by side, a mask is shown once."""
        self._done = end
        if mask == self._last_mask:
            return b""
        self._last_mask = mask
        return mask

    def _take(self, end: int) -> bytes:
        """Return what stands before this place and has not gone out: it goes out as it is."""
        piece = self._data[self._done:end]
        if piece:
            self._done = end
            self._last_mask = b""
        return piece


class _FoundValues(_MaskedStream):
    """Finds values in a stream of bytes, and notes in `found` the line and the name of each."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(redactor)
        self.found: list[tuple[int, str]] = []
        self._line = 1  # of what comes next

    def _hide(self, end: int, mask: bytes) -> bytes:
        hidden = self._data[self._done:end]
        shown = super()._hide(end, mask)
        if shown:
            name = mask.decode("utf-8", "replace")[len("[hidden:"):-len("]")]
            self.found.append((self._line, name))
        self._line += hidden.count(b"\n")
        return b""

    def _take(self, end: int) -> bytes:
        self._line += super()._take(end).count(b"\n")
        return b""


# ==== tokens ======================================================================================
# Secrets that no session holds, told by how they look: values in the form of well-known tokens, and
# what stands behind a name that says that it is a secret. Traces of guards and shells use the same
# tables. A token of another form is not seen.

_TOKEN_WORD = 8  # letters: a shorter word is no token

# The services whose tokens are known, and the form of each.
_TOKEN_FORMS = [
    ("GitHub: personal, OAuth, app and refresh tokens", r"gh[pousr]_[A-Za-z0-9]{10,}"),
    ("GitHub: fine-grained personal tokens", r"github_pat_[A-Za-z0-9_]{10,}"),
    ("GitLab: personal, runner, deploy and job tokens", r"gl[a-z]{2,6}-[A-Za-z0-9_-]{16,}"),
    ("Stripe: secret and restricted keys", r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,}"),
    ("Stripe: secrets of webhooks", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("AWS: ids of access keys", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    ("Slack: tokens of users, bots and apps", r"xox[a-z]-[A-Za-z0-9-]{8,}"),
    ("Slack: tokens of an application", r"xapp-[A-Za-z0-9-]{8,}"),
    ("JSON Web Tokens, which begin with {\" in base64", r"eyJ[A-Za-z0-9_-]{8,}(?:\.[\w-]+)*"),
    ("Google: API keys", r"AIza[A-Za-z0-9_-]{30,}"),
    ("Google: OAuth access tokens", r"ya29\.[A-Za-z0-9_-]{16,}"),
    ("OpenAI, Anthropic and others: API keys", r"sk-[A-Za-z0-9_-]{24,}"),
    ("npm: access tokens", r"npm_[A-Za-z0-9]{20,}"),
    ("PyPI: upload tokens", r"pypi-[A-Za-z0-9_-]{32,}"),
    ("Hugging Face: access tokens", r"hf_[A-Za-z0-9]{20,}"),
    ("SendGrid: API keys", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("DigitalOcean: personal, OAuth and refresh tokens", r"do[opr]_v1_[a-f0-9]{32,}"),
    ("Shopify: access tokens and secrets", r"shp[a-z]{2}_[A-Fa-f0-9]{20,}"),
    ("HashiCorp Vault: tokens", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("age: secret keys", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
]
# PEM: private keys, and all that has a heading of its own, but what is public by its nature.
_TOKEN_PEM = (
    r"-----BEGIN (?!CERTIFICATE|X509|TRUSTED CERT|PUBLIC KEY|RSA PUBLIC|PGP PUBLIC|SSH2 PUBLIC)"
    r"[A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)"
)

# A name that says that its value is a secret: of a variable, an option, a header or a JSON key.
_TOKEN_NAME = r"""
    [\w-]* (?: passw | passphrase | pwd | secret | token | credent | cookie | bearer
             | (?:api|access|private|signing|encryption) [-_]? key
             | auth (?! or(?!iz) ) ) [\w-]*
  | (?: [\w-]* [-_] )? (?: pass | pw | pat | otp | pin | jwt ) (?![\w-])
"""
# Options that begin with -p, and are no password behind -p.
_TOKEN_NO_PASSWORDS = [
    "ath", "edantic", "erm", "ie", "ipe", "lugin", "rint", "rint0", "rune", "thread",
]


def _hide_tokens(text: str) -> str:
    """Return a text with `[hidden:token]` in place of each token whose form is known."""
    import re
    forms = "|".join([form for _, form in _TOKEN_FORMS])
    text = re.sub(rf"(?<![A-Za-z0-9])(?:{forms})", "[hidden:token]", text)
    return re.sub(rf"(?s){_TOKEN_PEM}", "[hidden:token]", text)


def _is_secret_name(name: str) -> bool:
    """Does the name of a variable say that its value is a secret?"""
    import re
    if name in ("PWD", "OLDPWD"):  # in which directory a shell is, and was
        return False
    return re.fullmatch(_TOKEN_NAME, name, re.VERBOSE | re.IGNORECASE) is not None


def _tokens_of(env: Env) -> Values:
    """Return what an environment holds that looks like a secret: by its name, or by its form.

    Paths, and short words such as `vault` in TOKEN_TYPE, are no secrets. Tokens under other names
    become the lines of one value named `token`, because a Redactor hides each line of a value.
    """
    import re
    forms = "|".join([form for _, form in _TOKEN_FORMS] + [_TOKEN_PEM])
    find = re.compile(rf"(?s)(?<![A-Za-z0-9])(?:{forms})").findall
    tokens = {}
    found: Words = []
    for name, value in env.items():
        if value.startswith("/") or len(value) < _TOKEN_WORD and value.isalpha():
            continue
        if _is_secret_name(name):
            tokens[name] = value
        elif len(value) >= _TOKEN_WORD:
            found += find(value)
    if found:
        tokens["token"] = "\n".join(found)
    return tokens


def _hide_arguments(words: Words) -> Words:
    """Return the words of a command line with `***` in place of what stands behind a secret's name.

    Hidden are the word behind `--password`, the rest of a word behind `password=`, `"password":` or
    `password `, the rest of `-pPASSWORD` as mysql takes it, the password behind `-u NAME:`, and who
    logs in before the @ of a URL.
    """
    import re
    text = "\0".join([word.replace("\0", "?") for word in words])
    flags = re.VERBOSE | re.IGNORECASE
    text = re.sub(rf"((?<![^\0])-(?:{_TOKEN_NAME})\0)[^\0]+", r"\1***", text, flags=flags)
    separator = r"""["']? (?: \s*[=:]\s* | \s+ )"""
    text = re.sub(rf"((?<![\w-])(?:{_TOKEN_NAME}){separator})[^\0]+", r"\1***", text, flags=flags)
    others = "|".join(_TOKEN_NO_PASSWORDS)
    text = re.sub(rf"(?<![^\0\s])-p(?!(?:{others})(?![^\0\s]))[^\0\s]+", "-p***", text)
    text = re.sub(r"(?<![^\0\s])(-u|--user)([\0\s=])([^\0\s:]*:)[^\0\s]+", r"\1\2\3***", text)
    text = re.sub(r"://[^/\s@\0]*@", "://***@", text)
    return text.split("\0")


# ==== masked run ==================================================================================
# The one case in which the command is a child: hotenv masks its stdout and stderr, through pipes.
#
# From outside, hotenv and the command should look like one process, as if hotenv had become the
# command. A signal to the process group (Ctrl-C, Ctrl-Z, `kill %1`) is meant for the command. So is
# a signal to hotenv's pid. Nothing in a signal tells the two apart. So hotenv leaves the group and
# the command stays: the first kind reaches the command alone, the second kind hotenv alone, which
# hands it on. When the command stops, hotenv returns to the group and stops as well, so that the
# shell sees it.
#
# Only the leader of a session (the first process of a container, a service) cannot leave its group.
# There hotenv hands on all signals except those that a keyboard may have sent.
#
# Everything that can fail comes before the command is started.

_KEYBOARD_SIGNALS = (_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTSTP, _signal.SIGWINCH)
_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)
_HELPER_LIFE = 2.0  # seconds after which a helper ends by itself, if nobody has ended it
_MASKED_PIECE = 1 << 20  # bytes read at once: more than a pipe holds, so one read empties it


def _run_masked(
    become: Callable[[], NoReturn],
    redactor: Redactor,
    core_limit: _CoreLimit | None = None,
) -> int:
    """Have a child `become` the command, and mask its output.

    Returns the command's exit status, or dies of the signal of which the command died. If stdout
    and stderr are terminals, nothing is to be masked, and this process becomes the command.
    """
    channels = _open_channels(redactor)
    if not channels:
        if core_limit:
            core_limit.put_back()
        become()
    blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _CATCHABLE)
    child_signal = _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, it loses the status
    try:
        command = _MaskedCommand(channels)
        helper = _start_group_helper()
        child = os.fork()
    except OSError as error:
        raise _system_error(error, "cannot start a masked command") from None
    if not child:
        command.prepare_child()
        _signal.signal(_signal.SIGCHLD, child_signal)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
        if core_limit:
            core_limit.put_back()
        os._exit(_exit_status(become))  # become() returns by an exception alone
    command.pid = child
    for channel in channels:
        os.close(channel.far_end)
    _leave_group(helper)
    command.follow()
    _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
    command.attend()
    if command.error:
        raise _system_error(command.error, "cannot write the command's output")
    return _end_like(command.status or 0)


class _MaskedChannel:
    """A pipe from the command, and the descriptor to which its output goes, masked.

    It reads only when all that it has read is written. No write waits, or holds up the other pipe.
    """

    def __init__(self, targets: list[int], stream: _MaskedStream) -> None:
        self.targets = targets  # stdout, stderr, or both
        self.source, self.far_end = os.pipe()
        self.is_done = False
        self._stream = stream
        self._pending = b""  # masked, and still to be written
        self._is_last = False  # whether the command writes nothing more
        os.set_blocking(self.source, False)

    def is_waiting_for_output(self) -> bool:
        """Does this channel wait for the command to write something?"""
        return not self._pending

    def awaited_descriptor(self) -> int:
        """Return the descriptor that must be ready before go_on()."""
        if self._pending:
            return self.targets[0]
        return self.source

    def go_on(self, has_ended: bool) -> None:
        """Read or write once. If the command `has_ended`, all of its output is in the pipe.

        OSError: the output cannot be written. BrokenPipeError: nobody reads it any more.
        """
        if not self._pending:
            self._read(has_ended)
        if self._pending:
            # So much a descriptor takes without blocking, once it has said that it is ready.
            piece = self._pending[:PIPE_BUF]
            try:
                self._pending = self._pending[os.write(self.targets[0], piece):]
            except BlockingIOError:
                pass  # somebody else made the descriptor non-blocking
        if self._is_last and not self._pending:
            self.close()

    def _read(self, has_ended: bool) -> None:
        try:
            data = os.read(self.source, _MASKED_PIECE)
        except BlockingIOError:
            if not has_ended:
                return
            data = b""
        self._is_last = has_ended or not data
        self._pending = self._stream.feed(data)
        if self._is_last:
            self._pending += self._stream.flush()

    def close(self) -> None:
        """Close the pipe. If the command still writes, it learns that nobody reads."""
        self.is_done = True
        os.close(self.source)


def _open_channels(redactor: Redactor) -> list[_MaskedChannel]:
    """Return a channel for each file that stdout and stderr lead to. Terminals get none.

    If both lead to one file they share a channel, which keeps the order of what is written.
    """
    routes: dict[tuple[int, int], list[int]] = {}  # by device and inode
    for target, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        try:
            found = os.fstat(target)
        except OSError:
            # It is closed, and stays closed for the command. Until then nothing gets its number.
            os.open(os.devnull, os.O_RDWR)
            continue
        if name == "stdin":
            continue
        if os.isatty(target):
            _say(name + " is a terminal: not masked")
            continue
        routes.setdefault((found.st_dev, found.st_ino), []).append(target)
    try:
        return [_MaskedChannel(targets, redactor.stream()) for targets in routes.values()]
    except OSError as error:
        raise _system_error(error, "cannot make a pipe") from None


class _MaskedCommand:
    """The command, and what happens to it by way of this process."""

    def __init__(self, channels: list[_MaskedChannel]) -> None:
        import select
        self.pid = 0
        self.status: int | None = None  # its wait status, once it has ended
        self.error: OSError | None = None  # why its output could not be written
        self._select = select
        self._channels = channels
        self._own_pid = os.getpid()
        self._group = os.getpgrp()  # the command stays in it
        self._own_signals: list[int] = []  # that writing has raised for this process itself
        self._signals = _Signals(_CATCHABLE, always=_IGNORED_BY_PYTHON)

    def prepare_child(self) -> None:
        """In the child: connect the pipes, and handle signals as the command expects."""
        for channel in self._channels:
            for target in channel.targets:
                os.dup2(channel.far_end, target)
        for signum in self._signals.caught:
            _signal.signal(signum, _signal.SIG_DFL)
        _die_with_parent(self._own_pid)  # kill -9 of that pid would end an exec, too

    def attend(self) -> None:
        """Carry output and hand on signals until the command has ended and all of it is written."""
        while self.status is None or not all(channel.is_done for channel in self._channels):
            poller = self._select.poll()
            poller.register(self._signals.wake, self._select.POLLIN)
            for channel in self._open_channels():
                event = self._select.POLLOUT
                if channel.is_waiting_for_output():
                    event = self._select.POLLIN
                poller.register(channel.awaited_descriptor(), event)
            has_ended = self.status is not None
            limit = None
            if has_ended and any(each.is_waiting_for_output() for each in self._open_channels()):
                limit = 0  # what those wait for is in the pipe already
            ready = dict(poller.poll(limit))
            if self._signals.wake in ready:
                self._signals.clear_wake()
                self._heed_signals()
            for channel in self._open_channels():
                is_ready = channel.awaited_descriptor() in ready
                if is_ready or has_ended and channel.is_waiting_for_output():
                    self._carry(channel, has_ended)

    def _open_channels(self) -> list[_MaskedChannel]:
        return [channel for channel in self._channels if not channel.is_done]

    def _carry(self, channel: _MaskedChannel, has_ended: bool) -> None:
        """Let a channel go on. If that fails, close it, so that the command learns of it."""
        try:
            channel.go_on(has_ended)
        except OSError as error:
            if error.errno == errno.EPIPE:
                self._own_signals.append(_signal.SIGPIPE)
            else:
                if error.errno == errno.EFBIG:
                    self._own_signals.append(_signal.SIGXFSZ)
                self.error = error
            channel.close()

    def _heed_signals(self) -> None:
        """Do what the signals that have come are meant to do."""
        while self._signals.received:
            signum = self._signals.received.pop(0)
            if signum in self._own_signals:
                self._own_signals.remove(signum)
            elif signum == _signal.SIGCHLD:
                self.follow()
            elif self.status is None:
                if not self._was_typed(signum):
                    # A process of sudo's may not be signalled.
                    _best_effort(os.kill, self.pid, signum)
            elif signum in _PROCESS_ENDING:
                _die_of(signum)  # it is meant for this process, which may wait for a slow reader

    def _was_typed(self, signum: int) -> bool:
        """May a keyboard have sent this signal to the whole group, so to the command as well?"""
        shares_group = os.getpgrp() == self._group
        return shares_group and signum in _KEYBOARD_SIGNALS and os.isatty(0)

    def follow(self) -> None:
        """Note what has become of the command. If it has stopped, stop as well until continued."""
        while self.status is None:
            changed, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if not changed:
                return
            if not os.WIFSTOPPED(status):
                self.status = status
                # Back to the group of the command, if anybody is left in it.
                _best_effort(os.setpgid, 0, self._group)
                return
            self._stop_with_command()

    def _stop_with_command(self) -> None:
        """Return to the group, stop, and leave the group again when somebody continues it."""
        try:
            # Only at a terminal is there a shell that would continue this process.
            os.close(os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY))
            os.setpgid(0, self._group)
            os.kill(os.getpid(), _signal.SIGSTOP)
            _leave_group(_start_group_helper())
        except OSError:
            pass  # this process leads a session and never left, or can leave no more


def _start_group_helper() -> int:
    """Return the pid of a process with a group of its own, which another process can join.

    The leader of a group cannot found another one, but it can join one.
    """
    helper = os.fork()
    if not helper:
        time.sleep(_HELPER_LIFE)
        os._exit(0)
    os.setpgid(helper, helper)
    return helper


def _leave_group(helper: int) -> None:
    """Move this process into the helper's group, and end the helper."""
    _best_effort(os.setpgid, 0, helper)  # refused to the leader of a session, which stays
    os.kill(helper, _signal.SIGKILL)
    os.waitpid(helper, 0)


# ==== guards: what is asked =======================================================================
# A guard takes something from a program: the network, other programs, writing, native code. An
# allowance gives a part of it back. Both are asked for by options, in the environment and in two
# files. The sources add up by these rules:
#
#   1. A guard that any source asks for is on.
#   2. An allowance counts only if no higher source has asked for its guard: a file in a checkout
#      cannot open what the command line has closed.
#   3. The highest source that asks for --fs-readonly chooses what may be read.
#
# What all of them ask for together is one object, Guards. The rooms below take it as it is.

_EXIT_HERMETIC = 1  # the exit status when a program cannot be guarded as asked

_GUARD_PROFILES = {  # a name, and the options that it stands for
    "net-hermetic": ["--no-network", "--allow-localhost"],
    "exec-deny": ["--no-subprocess"],
    "fs-readonly": ["--fs-readonly"],
    "strict-imports": ["--strict-imports"],
    "all": ["--no-network", "--no-subprocess", "--fs-readonly", "--strict-imports"],
}
_GUARD_FILES = ["pyproject.toml", "HERMETIC.toml"]


class Guards:
    """What is taken from a program, and what of that is allowed.

    network     no connection to any host, no name looked up, no service for other machines
    localhost   ... but Python code may connect to this machine
    domains     ... but Python code may connect to these hosts, and to what ends in .HOST
    unix        ... but unix sockets are open, also to a program that is no Python
    processes   no other program is started
    read_root   where files may be read: "" is no guard at all, "/" everywhere; nothing is written
    writable    ... but below these paths
    imports     no native code is imported into a Python, other than Python's own
    trace       each action that was blocked is a line on stderr
    """

    def __init__(self) -> None:
        """Begin with no guard."""
        self.network = False
        self.localhost = False
        self.domains: Words = []
        self.unix = False
        self.processes = False
        self.read_root = ""
        self.writable: Words = []
        self.imports = False
        self.trace = False

    @classmethod
    def from_options(cls, options: Namespace) -> Guards:
        """Return what the options of _add_guard_options() ask for, as argparse has read them."""
        guards = cls()
        for name in options.profile:
            guards.add(cls.parse(_GUARD_PROFILES[name], "--profile " + name))
        guards.network |= options.no_network
        guards.localhost |= options.allow_localhost
        guards.domains += options.allow_domain
        guards.unix |= options.allow_unix
        guards.processes |= options.no_subprocess
        guards.read_root = options.fs_readonly or guards.read_root
        guards.writable += options.fs_write
        guards.imports |= options.strict_imports
        guards.trace |= options.trace
        return guards

    @classmethod
    def parse(cls, words: Words, where: str) -> Guards:
        """Return what these words, spelled as options, ask for.

        HotenvError 2 for wrong words says `where` they stand.
        """
        if not words:
            return cls()  # a parser would cost a millisecond
        import argparse

        class Parser(argparse.ArgumentParser):
            def error(self, message: str) -> NoReturn:
                raise _usage(f"{where}: {_shown(message)}", f"see: {_invocation()} hermetic --help")

        parser = Parser(add_help=False, allow_abbrev=False)
        _add_guard_options(parser)
        return cls.from_options(parser.parse_args(words))

    def add(self, other: Guards) -> None:
        """Add what `other` asks for, and what it allows."""
        self.network |= other.network
        self.localhost |= other.localhost
        self.domains = self.domains + other.domains
        self.unix |= other.unix
        self.processes |= other.processes
        self.read_root = other.read_root or self.read_root
        self.writable = self.writable + other.writable
        self.imports |= other.imports
        self.trace |= other.trace

    def merge(self, lower: Guards) -> Guards:
        """Return these guards together with those of a lower source, by the rules of this room."""
        merged = Guards()
        merged.add(self)
        merged.processes |= lower.processes
        merged.imports |= lower.imports
        merged.trace |= lower.trace
        if not self.network:
            merged.network = lower.network
            merged.localhost |= lower.localhost
            merged.domains = self.domains + lower.domains
            merged.unix |= lower.unix
        if not self.read_root:
            merged.read_root = lower.read_root
            merged.writable = self.writable + lower.writable
        return merged

    def is_on(self) -> bool:
        """Is there any guard? Allowances and --trace alone are none."""
        return self.network or self.processes or self.imports or bool(self.read_root)

    def allows_hosts(self) -> bool:
        """May Python code connect to some host, in spite of --no-network?"""
        return self.localhost or bool(self.domains)

    def reads_below(self) -> bool:
        """Is reading guarded, too?"""
        return self.read_root not in ("", "/")

    def needs_hook(self) -> bool:
        """Is there a guard that no kernel can hold, so that only a Python under its hook has it?"""
        return self.imports

    def asked(self) -> Words:
        """Return the names of the guards that are on."""
        names = []
        if self.network:
            names.append("no-network")
        if self.processes:
            names.append("no-subprocess")
        if self.read_root:
            names.append("fs-readonly")
        if self.imports:
            names.append("strict-imports")
        return names

    def to_text(self) -> str:
        """Return the guards as lines, from which from_text() makes them again."""
        lines = []
        if self.network:
            lines.append("no-network")
        if self.localhost:
            lines.append("allow-localhost")
        for domain in self.domains:
            lines.append("allow-domain=" + domain)
        if self.unix:
            lines.append("allow-unix")
        if self.processes:
            lines.append("no-subprocess")
        if self.read_root:
            lines.append("fs-readonly=" + self.read_root)
        for path in self.writable:
            lines.append("fs-write=" + path)
        if self.imports:
            lines.append("strict-imports")
        if self.trace:
            lines.append("trace")
        return "\n".join(lines)

    @classmethod
    def from_text(cls, text: str) -> Guards:
        """Return the guards of such lines; ValueError for any other line."""
        guards = cls()
        for line in text.split("\n"):
            name, _, value = line.partition("=")
            if not line:
                continue
            if name == "allow-domain":
                guards.domains.append(value)
            elif name == "fs-readonly":
                guards.read_root = value
            elif name == "fs-write":
                guards.writable.append(value)
            elif line in _GUARD_FLAGS:
                setattr(guards, _GUARD_FLAGS[line], True)
            else:
                raise ValueError("HOTENV_GUARDS is damaged")
        return guards


_GUARD_FLAGS = {  # the lines of Guards.to_text() that have no value, and the attribute of each
    "no-network": "network",
    "allow-localhost": "localhost",
    "allow-unix": "unix",
    "no-subprocess": "processes",
    "strict-imports": "imports",
    "trace": "trace",
}


def _add_guard_options(options: OptionGroup, in_help: bool = True) -> None:
    """Add the options of the guards to a parser of argparse, or to a group of one.

    `run` takes the same options, and has no room for them in its help.
    """
    import argparse

    def add(name: str, *, help: str, **how: Any) -> None:
        if not in_help:
            help = argparse.SUPPRESS
        options.add_argument(name, help=help, **how)

    def add_flag(name: str, help: str) -> None:
        add(name, action="store_true", help=help)

    add_flag("--no-network", "no connection, no name looked up")
    add_flag("--allow-localhost", "except this machine (127.0.0.0/8, ::1), for Python code")
    add("--allow-domain", metavar="D", type=_guard_domain, action="append", default=[],
        help="except D and what ends in .D, for Python code")
    add_flag("--allow-unix", "except unix sockets, also for other programs: an ssh-agent, a "
             "database; docker and hotenv's sessions are among them")
    add_flag("--no-subprocess", "no other program, no fork")
    add("--fs-readonly", metavar="PATH", type=_guard_path, nargs="?", const=os.curdir,
        help="write nothing; read only below the current directory, or PATH "
             "(--fs-readonly=/ reads anything)")
    add("--fs-write", metavar="PATH", type=_guard_path, action="append", default=[],
        help="except below PATH")
    add_flag("--strict-imports", "no native code but Python's own; no ctypes, cffi")
    add_flag("--trace", "a line on stderr for each blocked action")
    add("--profile", metavar="NAME", action="append", default=[], choices=list(_GUARD_PROFILES),
        help="%(choices)s")


def _guard_path(text: str) -> str:
    """Return a path of a guard in the form that no directory changes. For argparse."""
    import argparse
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    try:
        return os.path.realpath(_as_utf8(text))
    except OSError as error:
        raise _system_error(error, "cannot tell the current directory") from None


def _guard_domain(text: str) -> str:
    """Return a host of --allow-domain in its one spelling. For argparse."""
    import argparse
    import re
    name = _host_spelling(text.lstrip("*."))
    if not re.fullmatch(r"[\w.-]+|[\da-f.]*(:[\da-f.]*){2,}", name):
        raise argparse.ArgumentTypeError("takes a host or an address, not " + text)
    return name


def _host_spelling(host: str | bytes | bytearray) -> str:
    """Return the one spelling of a host: ASCII, lower case, without a final dot.

    An address in any form that the system takes becomes one of IPv6, without a zone. So an address
    has a colon, and a name has none.
    """
    if isinstance(host, bytearray):
        host = bytes(host)
    name = os.fsdecode(host).lower().rstrip(".").partition("%")[0]
    try:
        if not name.isascii():
            name = name.encode("idna").decode()
        if ":" not in name:
            name = "::ffff:" + _socket.inet_ntoa(_socket.inet_aton(name))
        return _socket.inet_ntop(_socket.AF_INET6, _socket.inet_pton(_socket.AF_INET6, name))
    except (OSError, ValueError):
        return name


def _guards_for_run(options: Namespace) -> Guards | None:
    """Return the guards of `run` in force, or None if its options ask for none.

    Without an option the other sources do not count: `run` is a plain exec. HotenvError 2.
    """
    asked = Guards.from_options(options)
    if asked.is_on():
        return _guards_of_all_sources(asked)
    _say_what_does_not_count()
    if asked.to_text():
        raise _usage("run: no guard is on", f"see: {_invocation()} hermetic --help")
    return None


def _say_what_does_not_count() -> None:
    """Say on a terminal that `run` without a guard does not heed the guards of a file."""
    if not os.isatty(2):
        return
    for path in _GUARD_FILES:
        if not os.path.exists(path):
            continue
        try:
            guards = _guards_of_file(path)
        except HotenvError:
            continue  # the error is for a command that asks for a guard
        if guards.is_on():
            names = ", ".join(guards.asked())
            _say(f"{names} in {path} does not count for `run` without a guard of its own")


def _guards_for_hermetic(options: Namespace) -> Guards:
    """Return the guards of `hermetic` in force. HotenvError 2."""
    guards = _guards_of_all_sources(Guards.from_options(options))
    if not guards.is_on():
        _say("no guard is on: the target runs as it is "
             f"(--no-network, ..., see: {_invocation()} hermetic --help)")
    return guards


def _guards_of_all_sources(asked: Guards) -> Guards:
    """Return the guards of the command line together with those of the environment and the files.

    HotenvError 2 names the source that is wrong, HotenvError 8 that there is no current directory.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise _system_error(error, "cannot look for guards in the current directory") from None
    of_files = Guards()  # both files together are one source
    for path in _GUARD_FILES:
        of_files.add(_guards_of_file(path))
    return asked.merge(_guards_of_environment()).merge(of_files)


def _guards_of_environment() -> Guards:
    """Return the guards of HERMETIC_FLAGS, HERMETIC_PROFILE and HERMETIC_FS_ROOT, one source."""
    profiles = []
    for name in os.environ.get("HERMETIC_PROFILE", "").replace(",", " ").split():
        profiles += ["--profile", name]
    root = os.environ.get("HERMETIC_FS_ROOT", "")
    guards = Guards.parse(profiles, "HERMETIC_PROFILE")
    guards.add(Guards.parse(os.environ.get("HERMETIC_FLAGS", "").split(), "HERMETIC_FLAGS"))
    if root:
        guards.add(Guards.parse(["--fs-readonly=" + root], "HERMETIC_FS_ROOT"))
    return guards


def _guards_of_file(path: str) -> Guards:
    """Return the guards of ./pyproject.toml, in [tool.hermetic], or of ./HERMETIC.toml."""
    import re
    try:
        text = _content(path).decode()
    except FileNotFoundError:
        return Guards()
    except (OSError, ValueError) as error:
        raise _unusable_file(path, error) from None
    # To read TOML takes 8 ms, and Python 3.11. Most projects have no table for guards, so one has
    # to be mentioned: in a header, in the name of a key, or within a value (x = {hermetic = 1}).
    mentioned = r"""(?m)^[^#=\n]*hermetic|^(?![ \t]*\#).*hermetic["']?\s*[].=]"""
    if path == "pyproject.toml" and not re.search(mentioned, text):
        return Guards()
    try:
        import tomllib
        table = tomllib.loads(text)
        if path == "pyproject.toml":
            table = table.get("tool", {}).get("hermetic", {})
        words = _words_of_table(table)
    except (ImportError, ValueError, AttributeError) as error:
        raise _unusable_file(path, error) from None
    return Guards.parse(words, path)


def _words_of_table(table: Json) -> Words:
    """Return a table of TOML as options: `no_network = true`, `fs-write = ["a", "b"]`."""
    words = []
    for name, value in table.items():
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        for each in values:
            if each is True:
                words.append(option)
            elif isinstance(each, str) and each:
                words.append(option + "=" + each)
            elif not isinstance(each, (bool, str)):
                raise ValueError(name + " takes true, a text or a list of texts")
    return words


def _unusable_file(path: str, error: Exception) -> HotenvError:
    """Return the error for a file whose guards cannot be read. The file may ask for some."""
    if isinstance(error, ImportError):
        return _usage(f"cannot take guards from {path}: this Python reads no TOML",
                      "Python 3.11 and later can")
    reason = _shown(str(error))
    if isinstance(error, OSError):
        reason = _reason(error)
    return _usage(f"cannot take guards from {path}: {reason}")


class _Orders:
    """One set of guards on its way to every program that it holds for.

    The variable HOTENV_GUARDS carries it as lines. `hermetic` within `hermetic` adds a set, behind
    an empty line, and all sets hold.

    guards     what is asked
    sealed     paths that any guard closes: the session, and the directory of the loader
    program    the directory of the target's own files, which may be read; "" if it has none
    secrets    names of the session's variables, whose values no trace shows
    launcher   the Python that starts programs without a hook, under the kernel's part
    kernel     does the kernel hold a program that has no hook?
    code       does the kernel hold the C code of a guarded Python, so that it connects nowhere?
    unhooked   is this process, or one above it, a program without a hook? Then it has no network
               at all, and what it starts needs no launcher
    """

    def __init__(self, guards: Guards, sealed: Words, program: str, secrets: Words) -> None:
        """Take the guards and what belongs to the target; what the kernel does is set afterwards.
        """
        self.guards = guards
        self.sealed = sealed
        self.program = program
        self.secrets = secrets
        self.launcher = ""
        self.kernel = False
        self.code = False
        self.unhooked = False

    def to_text(self) -> str:
        """Return the set as lines, none of which is empty.

        HotenvError 1: there is a line break in a path.
        """
        paths = [*self.sealed, *self.guards.writable]
        paths += [self.program, self.guards.read_root, self.launcher]
        if "\n" in "".join(paths):
            raise HotenvError(_EXIT_HERMETIC, "a path with a line break in it cannot be guarded")
        lines = []
        if self.guards.to_text():
            lines.append(self.guards.to_text())
        if self.program:
            lines.append("program=" + self.program)
        for path in self.sealed:
            lines.append("sealed=" + path)
        for name in self.secrets:
            lines.append("secret=" + name)
        if self.launcher:
            lines.append("launcher=" + self.launcher)
        if self.kernel:
            lines.append("kernel")
        if self.code:
            lines.append("code")
        if self.unhooked:
            lines.append("unhooked")
        return "\n".join(lines)

    @classmethod
    def from_text(cls, text: str) -> _Orders:
        """Return the set of such lines; ValueError for a damaged one."""
        orders = cls(Guards(), [], "", [])
        guards = []
        for line in text.split("\n"):
            name, _, value = line.partition("=")
            if name == "sealed":
                orders.sealed.append(value)
            elif name == "secret":
                orders.secrets.append(value)
            elif name == "program":
                orders.program = value
            elif name == "launcher":
                orders.launcher = value
            elif line == "kernel":
                orders.kernel = True
            elif line == "code":
                orders.code = True
            elif line == "unhooked":
                orders.unhooked = True
            else:
                guards.append(line)
        if not orders.sealed:
            raise ValueError("HOTENV_GUARDS is damaged")
        orders.guards = Guards.from_text("\n".join(guards))
        return orders

    @staticmethod
    def all_of(text: str) -> list[_Orders]:
        """Return the sets that HOTENV_GUARDS carries, the outermost first; ValueError."""
        return [_Orders.from_text(part) for part in text.split("\n\n")]


# ==== guards: the kernel ==========================================================================
# What Linux itself refuses to this process and to all that it starts, in any language. Its two
# mechanisms need no privilege, and cannot be lifted again. In return no program below this process
# gains privileges, so sudo fails:
#
#   - seccomp judges a system call by its number and its plain arguments;
#   - Landlock judges opening files, connecting by TCP, and looking into other processes.
#
# Neither sees an address, and seccomp sees no path. So what they refuse depends on the program:
#
#   - A Python has a hook, which sees addresses and paths. The kernel leaves it sockets of TCP, and
#     unix sockets.
#   - Any other program, under --no-network, has sockets that lead nowhere. Of what may be allowed,
#     --allow-unix alone counts for such a program.
#
# The refused program sees "Permission denied". Reports come from the hook alone.

# Instructions and verdicts of a seccomp filter: <linux/bpf_common.h>, <linux/seccomp.h>.
_BPF_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_BPF_MASK = 0x54  # BPF_ALU | BPF_AND | BPF_K
_BPF_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_BPF_IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_BPF_RETURN = 0x06  # BPF_RET | BPF_K

_SECCOMP_ALLOW = 0x7FFF0000  # SECCOMP_RET_ALLOW
_SECCOMP_KILL = 0x80000000  # SECCOMP_RET_KILL_PROCESS
_SECCOMP_FAIL = 0x00050000  # SECCOMP_RET_ERRNO; the low bits are the error
_SECCOMP_REFUSE = _SECCOMP_FAIL | errno.EACCES
_SECCOMP_ABSENT = _SECCOMP_FAIL | errno.ENOSYS  # the C library takes another call instead

_PRCTL_SET_SECCOMP = 22  # PR_SET_SECCOMP of <linux/prctl.h>
_SECCOMP_MODE_FILTER = 2

# struct seccomp_data: where a filter finds the call's number, the architecture and the arguments.
_DATA_NUMBER = 0
_DATA_ARCHITECTURE = 4
_DATA_ARGUMENTS = 16
_ALL_BITS = 0xFFFFFFFF
_X32_CALLS = 0x40000000  # numbers from here on are other names for the same calls

_MACHINES = {  # AUDIT_ARCH_* of <linux/audit.h>, and the column of the tables below
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}
_CALLS = {  # the number on x86-64, and the one that newer architectures share; None: no such call
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "ioctl": (16, 29),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "io_uring_setup": (425, 425),
}
_ATTRIBUTE_CALLS = {  # what changes a file without opening it: Landlock has no right for that
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
_TERMINAL_REQUESTS = {  # of ioctl: what types into the terminal, for the shell that is there
    "TIOCSTI": 0x5412,
    "TIOCLINUX": 0x541C,
}
_CHANGING_REQUESTS = {  # of ioctl: what changes files or devices by a descriptor that only reads
    # Attributes of a file, as chattr and lsattr know them: <linux/fs.h>.
    "FS_IOC_SETFLAGS": 0x40086602,
    "FS_IOC32_SETFLAGS": 0x40046602,
    "FS_IOC_SETVERSION": 0x40087602,
    "FS_IOC32_SETVERSION": 0x40047602,
    "EXT4_IOC_SETVERSION": 0x40086604,
    "EXT4_IOC32_SETVERSION": 0x40046604,
    "FS_IOC_FSSETXATTR": 0x401C5820,
    "FS_IOC_SETFSLABEL": 0x41009432,
    "EXT4_IOC_SETFSUUID": 0x4008662C,
    "FS_IOC_ENABLE_VERITY": 0x40806685,
    "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613,
    "FS_IOC_ADD_ENCRYPTION_KEY": 0xC0506617,
    "FS_IOC_REMOVE_ENCRYPTION_KEY": 0xC0406618,
    "FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS": 0xC0406619,
    "FAT_IOCTL_SET_ATTRIBUTES": 0x40047211,  # <linux/msdos_fs.h>
    # A whole file system, or its free space.
    "FIFREEZE": 0xC0045877,
    "FITHAW": 0xC0045878,
    "FITRIM": 0xC0185879,
    "EXT4_IOC_RESIZE_FS": 0x40086610,
    "EXT4_IOC_GROUP_EXTEND": 0x40086607,
    "EXT4_IOC_MIGRATE": 0x6609,
    "EXT4_IOC_ALLOC_DA_BLKS": 0x660C,
    "EXT4_IOC_SWAP_BOOT": 0x6611,
    "EXT4_IOC_SHUTDOWN": 0x8004587D,
    "XFS_IOC_FSGROWFSDATA": 0x4010586E,
    # Subvolumes and devices: <linux/btrfs.h>.
    "BTRFS_IOC_SNAP_CREATE": 0x50009401,
    "BTRFS_IOC_SNAP_CREATE_V2": 0x50009417,
    "BTRFS_IOC_SUBVOL_CREATE": 0x5000940E,
    "BTRFS_IOC_SUBVOL_CREATE_V2": 0x50009418,
    "BTRFS_IOC_SNAP_DESTROY": 0x5000940F,
    "BTRFS_IOC_SNAP_DESTROY_V2": 0x5000943F,
    "BTRFS_IOC_SUBVOL_SETFLAGS": 0x4008941A,
    "BTRFS_IOC_DEFAULT_SUBVOL": 0x40089413,
    "BTRFS_IOC_SET_RECEIVED_SUBVOL": 0xC0C89425,
    "BTRFS_IOC_DEFRAG": 0x50009402,
    "BTRFS_IOC_DEFRAG_RANGE": 0x40309410,
    "BTRFS_IOC_RESIZE": 0x50009403,
    "BTRFS_IOC_ADD_DEV": 0x5000940A,
    "BTRFS_IOC_RM_DEV": 0x5000940B,
    "BTRFS_IOC_RM_DEV_V2": 0x5000943A,
    "BTRFS_IOC_BALANCE": 0x5000940C,
    "BTRFS_IOC_BALANCE_V2": 0xC4009420,
    "BTRFS_IOC_BALANCE_CTL": 0x40049421,
    "BTRFS_IOC_SCRUB": 0xC400941B,
    "BTRFS_IOC_DEV_REPLACE": 0xCA289435,
    "BTRFS_IOC_SET_FEATURES": 0x40309439,
    "BTRFS_IOC_QUOTA_CTL": 0xC0109428,
    "BTRFS_IOC_QGROUP_ASSIGN": 0x40189429,
    "BTRFS_IOC_QGROUP_CREATE": 0x4010942A,
    "BTRFS_IOC_QGROUP_LIMIT": 0x8030942B,
    # Files that become block devices: <linux/loop.h>.
    "LOOP_SET_FD": 0x4C00,
    "LOOP_CLR_FD": 0x4C01,
    "LOOP_SET_STATUS": 0x4C02,
    "LOOP_SET_STATUS64": 0x4C04,
    "LOOP_CHANGE_FD": 0x4C06,
    "LOOP_SET_CAPACITY": 0x4C07,
    "LOOP_SET_DIRECT_IO": 0x4C08,
    "LOOP_SET_BLOCK_SIZE": 0x4C09,
    "LOOP_CONFIGURE": 0x4C0A,
    "LOOP_CTL_ADD": 0x4C80,
    "LOOP_CTL_REMOVE": 0x4C81,
    "LOOP_CTL_GET_FREE": 0x4C82,
    # Commands to block devices, past the file system.
    "BLKROSET": 0x125D,
    "BLKRRPART": 0x125F,
    "BLKPG": 0x1269,
    "BLKDISCARD": 0x1277,
    "BLKSECDISCARD": 0x127D,
    "BLKZEROOUT": 0x127F,
    "SG_IO": 0x2285,
    "NVME_IOCTL_ADMIN_CMD": 0xC0484E41,
    "NVME_IOCTL_SUBMIT_IO": 0x40304E42,
    "NVME_IOCTL_IO_CMD": 0xC0484E43,
    "NVME_IOCTL_ADMIN64_CMD": 0xC0504E47,
    "NVME_IOCTL_IO64_CMD": 0xC0504E48,
}

# Landlock: <linux/landlock.h>.
_LANDLOCK_CREATE_RULESET = 444  # the numbers of its system calls, on all machines
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_LANDLOCK_PATH_BENEATH = 1  # LANDLOCK_RULE_PATH_BENEATH
_LANDLOCK_WRITE = 0x7FF2  # all rights to the file system that change anything (Linux 6.2)
_LANDLOCK_WRITE_FILE = 0x4002  # those of them that a file can have: writing, truncating
_LANDLOCK_READ = 0xC  # READ_FILE, READ_DIR
_LANDLOCK_READ_FILE = 0x4
_LANDLOCK_OF_FILES = _LANDLOCK_WRITE_FILE | _LANDLOCK_READ_FILE  # the rights that a file can have
_LANDLOCK_SELDOM_USED = 0x2800  # MAKE_BLOCK, and REFER, which a ruleset refuses if it is not named
_LANDLOCK_CONNECT_TCP = 2
_LANDLOCK_ABSTRACT_SOCKETS = 1  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
# The versions of Landlock that brought what is used here.
_LANDLOCK_HAS_REFER = 2  # Linux 5.19
_LANDLOCK_HAS_TRUNCATE = 3  # Linux 6.2
_LANDLOCK_HAS_TCP = 4  # Linux 6.7
_LANDLOCK_HAS_SCOPES = 6  # Linux 6.12

# These devices may always be written.
_DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"]
# May be written by programs: multiprocessing keeps its locks in shm, and the others may be files.
_OF_THE_CALLER = ["/dev/shm", "/dev/stdout", "/dev/stderr"]
# What a program without a hook may read under --fs-readonly=PATH, beside PATH: other programs and
# what the dynamic linker and the C library need for a start.
_READABLE_BY_PROGRAMS = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/nix/store",
    "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/alternatives", "/etc/localtime", "/etc/nsswitch.conf", "/etc/os-release",
    "/etc/ssl/openssl.cnf", "/etc/ssl/certs", "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/certs",
    "/etc/crypto-policies",
    "/dev/random", "/dev/urandom", "/dev/stdin", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/stat", "/proc/filesystems", "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
]


class _Rule:
    """What becomes of a system call where all of these conditions hold.

    The first rule that fits a call decides. A call without a rule is allowed. A condition is where
    in struct seccomp_data to look, a mask, and the value that the masked bits have.
    """

    def __init__(self, call: str, verdict: int, *conditions: SeccompCondition) -> None:
        """Take the name of a call, and what seccomp answers if these conditions hold."""
        self.call = call
        self.verdict = verdict
        self.conditions = conditions


def _low(argument: int, value: int, mask: int = _ALL_BITS) -> SeccompCondition:
    """Return the condition that these bits of an argument's lower half have this value."""
    return _DATA_ARGUMENTS + 8 * argument, mask, value


def _high(argument: int, value: int) -> SeccompCondition:
    """Return the condition that the upper half of an argument has this value."""
    return _DATA_ARGUMENTS + 8 * argument + 4, _ALL_BITS, value


_AF_UNIX = 1
_AF_INET = 2  # AF_INET6 is AF_INET with 8
_AF_NETLINK = 16
_SOCK_STREAM = 1
_SOCK_DGRAM = 2
_SOCK_SEQPACKET = 5
_SOCK_TYPE_MASK = 15  # the other bits are flags
_IPPROTO_TCP = 6
_MSG_FASTOPEN = 0x20000000  # sends and connects in one call
_NETLINK_ADDRESS = 12  # sizeof(struct sockaddr_nl)
_CLONE_THREAD = 0x00010000

# A Python keeps TCP and unix sockets: its hook sees who is at the other end.
_SOCKETS_WITH_HOOK = [
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_UNIX)),
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_NETLINK)),
    _Rule("socket", _SECCOMP_ALLOW,
          _low(0, _AF_INET, mask=~8 & _ALL_BITS),
          _low(1, _SOCK_STREAM, mask=_SOCK_TYPE_MASK),
          # 0 or TCP. The mask lets 2 and 4 pass, too: no stream socket has these protocols.
          _low(2, 0, mask=~_IPPROTO_TCP & _ALL_BITS)),
    _Rule("socket", _SECCOMP_REFUSE),
    _Rule("sendto", _SECCOMP_REFUSE, _low(3, _MSG_FASTOPEN, mask=_MSG_FASTOPEN)),
    _Rule("sendmsg", _SECCOMP_REFUSE, _low(2, _MSG_FASTOPEN, mask=_MSG_FASTOPEN)),
    _Rule("sendmmsg", _SECCOMP_REFUSE, _low(3, _MSG_FASTOPEN, mask=_MSG_FASTOPEN)),
]
# The C library asks name servers by UDP. Only that of GNU can be told to ask by TCP.
_RESOLVER_SOCKETS = _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_INET, mask=~8 & _ALL_BITS),
                          _low(1, _SOCK_DGRAM, mask=_SOCK_TYPE_MASK))
_UNIX_SOCKETS_ONLY = [  # any other program, with --allow-unix
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_UNIX)),
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_NETLINK)),
    _Rule("socket", _SECCOMP_REFUSE),
]
_NO_SOCKETS = [  # any other program
    # A unix socket that is no stream could send to any path, by sendmsg: seccomp does not see the
    # address there. That holds for a pair of sockets, too. So there are no sockets for datagrams.
    # SOCK_SEQPACKET is a stream in this respect: it sends to the other end of a connection alone.
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_UNIX), _low(1, _SOCK_STREAM, mask=_SOCK_TYPE_MASK)),
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_UNIX),
          _low(1, _SOCK_SEQPACKET, mask=_SOCK_TYPE_MASK)),
    _Rule("socket", _SECCOMP_ALLOW, _low(0, _AF_NETLINK)),
    _Rule("socket", _SECCOMP_REFUSE),
    _Rule("socketpair", _SECCOMP_ALLOW, _low(1, _SOCK_STREAM, mask=_SOCK_TYPE_MASK)),
    _Rule("socketpair", _SECCOMP_ALLOW, _low(1, _SOCK_SEQPACKET, mask=_SOCK_TYPE_MASK)),
    _Rule("socketpair", _SECCOMP_REFUSE),
    # Netlink tells which interfaces there are: programs bind it, and send to the kernel. A unix
    # socket with so short an address can be bound, too, but neither listen nor connect.
    _Rule("bind", _SECCOMP_ALLOW, _low(2, _NETLINK_ADDRESS)),
    _Rule("bind", _SECCOMP_REFUSE),
    _Rule("listen", _SECCOMP_REFUSE),
    _Rule("connect", _SECCOMP_REFUSE),
    _Rule("sendto", _SECCOMP_ALLOW, _low(4, 0), _high(4, 0)),
    _Rule("sendto", _SECCOMP_ALLOW, _low(5, _NETLINK_ADDRESS)),
    _Rule("sendto", _SECCOMP_REFUSE),
    # These connect a TCP socket that was inherited.
    _Rule("sendmsg", _SECCOMP_REFUSE, _low(2, _MSG_FASTOPEN, mask=_MSG_FASTOPEN)),
    _Rule("sendmmsg", _SECCOMP_REFUSE, _low(3, _MSG_FASTOPEN, mask=_MSG_FASTOPEN)),
]
_NO_SUBPROCESS = [  # threads are allowed
    _Rule("clone", _SECCOMP_ALLOW, _low(0, _CLONE_THREAD, mask=_CLONE_THREAD)),
    _Rule("clone", _SECCOMP_REFUSE),
    _Rule("clone3", _SECCOMP_ABSENT),
    _Rule("fork", _SECCOMP_REFUSE),
    _Rule("vfork", _SECCOMP_REFUSE),
    _Rule("execve", _SECCOMP_REFUSE),
    _Rule("execveat", _SECCOMP_REFUSE),
]


def _any_guard_rules() -> list[_Rule]:
    """Return the rules of every guard: without them, a program could get round it."""
    # A ring of io_uring makes sockets and opens files without a system call for each.
    rules = [_Rule("io_uring_setup", _SECCOMP_ABSENT)]
    for request in _TERMINAL_REQUESTS.values():
        rules.append(_Rule("ioctl", _SECCOMP_REFUSE, _low(1, request)))
    return rules


def _no_write_rules(guards: Guards) -> list[_Rule]:
    """Return what Landlock leaves open of --fs-readonly."""
    rules = []
    for request in _CHANGING_REQUESTS.values():
        rules.append(_Rule("ioctl", _SECCOMP_REFUSE, _low(1, request)))
    if not guards.writable:  # below --fs-write these calls are needed, and they show no path
        for call in _ATTRIBUTE_CALLS:
            rules.append(_Rule(call, _SECCOMP_REFUSE))
    return rules


def _network_rules(guards: Guards, has_hook: bool) -> list[_Rule]:
    """Return what holds --no-network, in a Python under its hook or in any other program."""
    if not has_hook:
        return _UNIX_SOCKETS_ONLY if guards.unix else _NO_SOCKETS
    if guards.domains and not _resolves_by_tcp():
        return [_RESOLVER_SOCKETS, *_SOCKETS_WITH_HOOK]
    return _SOCKETS_WITH_HOOK


def _resolves_by_tcp() -> bool:
    """Does the resolver of this C library heed `RES_OPTIONS=use-vc`?"""
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (OSError, ValueError):
        return False


class _KernelPart:
    """What the kernel is to refuse to this process and to all that it starts.

    The constructor changes nothing; hold() asks the kernel.

    rules             for seccomp
    files             the rights to the file system that Landlock refuses, but at these `places`
    places            paths, with the rights that they have
    network           the rights to the network that Landlock refuses
    scopes            what Landlock keeps within this process and those that it starts
    refuses_writing   are the rights to write among `files`, and open only at some places?
    """

    def __init__(self, guards: Guards, has_hook: bool, readable: Words, program: bytes) -> None:
        """Gather what holds these guards.

        A Python has a hook, which sees to reading. For any other program `readable` is what may be
        read under --fs-readonly=PATH. Under --no-subprocess one exec is left, that of the path
        `program`. The kernel knows that path by the address of these very bytes, which means
        nothing any more after the exec.
        """
        self.guards = guards
        self.has_hook = has_hook
        self.rules = _any_guard_rules()
        self.files = 0
        self.places: list[tuple[str, int]] = []
        self.network = 0
        self.scopes = 0
        self.version = _landlock_version()
        if guards.network:
            self.rules += _network_rules(guards, has_hook)
            if has_hook and not guards.allows_hosts() and self.version >= _LANDLOCK_HAS_TCP:
                self.network = _LANDLOCK_CONNECT_TCP
            if not guards.unix and self.version >= _LANDLOCK_HAS_SCOPES:
                self.scopes = _LANDLOCK_ABSTRACT_SOCKETS
        self.refuses_writing = False
        if guards.read_root and self.version >= _LANDLOCK_HAS_TRUNCATE:
            self._refuse_files(readable)
        if guards.read_root:
            self.rules += _no_write_rules(guards)
        if guards.processes:
            high, low = divmod(_address(program), 1 << 32)
            self.rules.append(_Rule("execve", _SECCOMP_ALLOW, _low(0, low), _high(0, high)))
            self.rules += _NO_SUBPROCESS
        has_domain = self.files or self.network or self.scopes
        if not has_domain and self.version >= _LANDLOCK_HAS_REFER:
            # A process in a domain cannot look into processes outside of it. This domain takes
            # nothing else: its two rights hold for every path.
            self.files = _LANDLOCK_SELDOM_USED
            self.places = [("/", self.files)]

    def _refuse_files(self, readable: Words) -> None:
        """Refuse writing, but below --fs-write, and reading where that is asked."""
        self.refuses_writing = True
        self.files = _LANDLOCK_WRITE
        if self.guards.reads_below() and not self.has_hook:
            self.files |= _LANDLOCK_READ
            for path in [self.guards.read_root, *readable, *_READABLE_BY_PROGRAMS]:
                self.places.append((path, _LANDLOCK_READ))
        for path in self.guards.writable:
            if not os.path.exists(path):
                # Whoever makes the path writes into its directory. Landlock can open that as a
                # whole, and no less. Only a hook then closes the other files there.
                if not self.has_hook:
                    continue
                path = os.path.dirname(path)
            self.places.append((path, self.files))
        for path in [*_DEVICES, *_OF_THE_CALLER]:
            self.places.append((path, self.files))

    def hold(self) -> Words:
        """Have the kernel refuse all of it, for good. Return the names of the guards it holds.

        Where a mechanism is missing, or a sandbox around this process refuses it, the guards that
        need it are left out.
        """
        if sys.platform != "linux" or sys.maxsize < 1 << 32:
            return []
        try:
            _forbid_new_privileges()
        except OSError:
            return []
        has_landlock = self._hold_by_landlock()
        has_seccomp = self._hold_by_seccomp()
        if not has_seccomp:
            return []  # every guard needs it
        held = []
        # A Python may make TCP sockets, so there Landlock has to refuse to connect them.
        connects_nowhere = not self.has_hook or (has_landlock and self.network)
        if self.guards.network and connects_nowhere:
            held.append("no-network")
        if self.guards.processes:
            held.append("no-subprocess")
        if self.refuses_writing and has_landlock:
            held.append("fs-readonly")
        return held

    def _hold_by_landlock(self) -> bool:
        """Have Landlock refuse its part. Return False where it is missing, or has no part."""
        import struct
        if not (self.files or self.network or self.scopes):
            return False
        asked = struct.pack("QQQ", self.files, self.network, self.scopes)
        try:
            ruleset = _call_c("syscall", _LANDLOCK_CREATE_RULESET, asked, len(asked), 0)
        except OSError:
            return False
        try:
            for path, rights in self.places:
                self._allow(ruleset, path, rights)
            _call_c("syscall", _LANDLOCK_RESTRICT_SELF, ruleset, 0)
        except OSError:
            return False
        finally:
            os.close(ruleset)
        return True

    def _allow(self, ruleset: int, path: str, rights: int) -> None:
        """Allow these rights for a path and what is below it, as far as it is there."""
        import struct
        try:
            descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
        except OSError:
            return  # there is nothing to allow
        if not os.path.isdir(path):
            rights &= _LANDLOCK_OF_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        # Landlock refuses a rule for a pipe, which needs none.
        _best_effort(
            _call_c, "syscall", _LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0)
        os.close(descriptor)

    def _hold_by_seccomp(self) -> bool:
        """Have seccomp judge by the rules; False where it, or a table of calls, is missing."""
        import struct
        machine = _MACHINES.get(os.uname().machine)
        if not machine:
            return False
        program = _seccomp_program(self.rules, *machine)
        code = b"".join([struct.pack("HBBI", *instruction) for instruction in program])
        wanted = struct.pack("HxxxxxxP", len(program), _address(code))
        try:
            _call_c("prctl", _PRCTL_SET_SECCOMP, _SECCOMP_MODE_FILTER, wanted, 0, 0)
        except OSError:
            return False
        return True


def _seccomp_program(
        rules: list[_Rule], architecture: int, column: int) -> list[SeccompInstruction]:
    """Return the filter that judges system calls by these rules.

    An instruction is a code, how many instructions to skip if its test is true, how many if it is
    false, and an operand.
    """
    # The calls of 32-bit programs and of x32 have other numbers. Such a program is killed.
    program = [
        (_BPF_LOAD, 0, 0, _DATA_ARCHITECTURE),
        (_BPF_IF_EQUAL, 1, 0, architecture),
        (_BPF_RETURN, 0, 0, _SECCOMP_KILL),
        (_BPF_LOAD, 0, 0, _DATA_NUMBER),
        (_BPF_IF_AT_LEAST, 0, 1, _X32_CALLS),
        (_BPF_RETURN, 0, 0, _SECCOMP_KILL),
    ]
    numbers = {**_CALLS, **_ATTRIBUTE_CALLS}
    for rule in rules:
        number = numbers[rule.call][column]
        if number is not None:
            program += _compiled_rule(rule, number)
    program.append((_BPF_RETURN, 0, 0, _SECCOMP_ALLOW))
    return program


def _compiled_rule(rule: _Rule, number: int) -> list[SeccompInstruction]:
    """Return the instructions of one rule, for a call with this number.

    The last one returns the verdict. A condition that does not hold skips all that is behind it.
    """
    code = [(_BPF_RETURN, 0, 0, rule.verdict)]
    is_this_call = (_DATA_NUMBER, _ALL_BITS, number)
    for place, mask, value in reversed([is_this_call, *rule.conditions]):
        test = [
            (_BPF_LOAD, 0, 0, place),
            (_BPF_MASK, 0, 0, mask),
            (_BPF_IF_EQUAL, 0, len(code), value),
        ]
        code = test + code
    return code


def _landlock_version() -> int:
    """Return the version of Landlock that this kernel has; 0 where there is none."""
    try:
        return _call_c("syscall", _LANDLOCK_CREATE_RULESET, 0, 0, _LANDLOCK_VERSION)
    except OSError:
        return 0


def _address(data: bytes) -> int:
    """Return where these bytes are in memory; 0 in a Python without ctypes."""
    try:
        import ctypes
    except ImportError:
        return 0
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _kernel_holds_programs(guards: Guards) -> bool:
    """Can this kernel hold --no-network and --fs-readonly for a program without a hook?

    The question changes nothing: without a filter to read, seccomp fails with EFAULT where it is
    there, and with another error where it is not.
    """
    if sys.platform != "linux" or os.uname().machine not in _MACHINES or sys.maxsize < 1 << 32:
        return False
    if guards.read_root and _landlock_version() < _LANDLOCK_HAS_TRUNCATE:
        return False
    try:
        import ctypes
    except ImportError:
        return False
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PRCTL_SET_SECCOMP, _SECCOMP_MODE_FILTER, None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT


# ==== guards: the hook ============================================================================
# What a guarded Python may not do. This room runs within the guarded program: the loader imports a
# copy of this file before the program's first line. The rules:
#
#   1. An audit hook (PEP 578) decides, and nothing else does. A check that raises aborts the
#      action; so does a mistake in a check.
#   2. Each event that a check needs stands in one table, _HOOK_CHECKS. An event that is not there
#      is no guard's concern.
#   3. Where CPython raises an event too late, or none, a function is patched so that it raises one.
#      The decision stays in the hook.
#   4. No check depends on the state of a thread. So there is no moment in which another thread, a
#      fork or a signal handler finds a guard open.
#   5. What is not there is missing, not refused.
#
# The hook is for mistakes, not for malice: code that looks for the hook can get round it.

_HOOK_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_HOOK_LONGEST_LINE = 2000  # characters of a trace: longer lines of several processes would mix
_HOOK_SHOWN = 300  # characters of the first blocked action in the last word
_HOOK_SHORTEST_SECRET = 8  # characters of a value that is hidden whatever its variable is called
_HOOK_SPARE_DESCRIPTOR = 200  # the duplicate of stderr is above what daemons close


class _PathArgument:
    """A path among the arguments of an audit event.

    index        its place
    directory    the place of a descriptor: the directory that the path is relative to, if any
    follows      is a link at the path's end followed?
    makes        does the action make the path?
    """

    def __init__(self, index: int, directory: int | None = None, *, follows: bool = False,
                 makes: bool = False) -> None:
        """Take what is known of the path."""
        self.index = index
        self.directory = directory
        self.follows = follows
        self.makes = makes


_CHANGED_PATHS = {  # the events that change files, and the paths in each
    "os.chflags": [_PathArgument(0, follows=True)],
    "os.chmod": [_PathArgument(0, 2, follows=True)],
    "os.chown": [_PathArgument(0, 3, follows=True)],
    "os.link": [_PathArgument(0, 2, follows=True), _PathArgument(1, 3, makes=True)],
    "os.mkdir": [_PathArgument(0, 2, makes=True)],
    "os.mkfifo": [_PathArgument(0, 1, makes=True)],
    "os.mknod": [_PathArgument(0, 1, makes=True)],
    "os.remove": [_PathArgument(0, 1)],
    "os.removexattr": [_PathArgument(0, follows=True)],
    "os.rename": [_PathArgument(0, 2), _PathArgument(1, 3, makes=True)],
    "os.rmdir": [_PathArgument(0, 1)],
    "os.setxattr": [_PathArgument(0, follows=True)],
    "os.symlink": [_PathArgument(1, 2, makes=True)],
    "os.truncate": [_PathArgument(0, follows=True)],
    "os.utime": [_PathArgument(0, 3, follows=True)],
}
# What the standard library reads on its own. A slash stands at each end, as in _with_slash().
_ALWAYS_READABLE = (
    "/dev/random/",
    "/dev/urandom/",
    "/etc/localtime/",
    "/etc/mime.types/",
    "/etc/os-release/",
    "/usr/lib/os-release/",
    "/usr/share/zoneinfo/",
    "/proc/cpuinfo/",
    "/proc/meminfo/",
    "/proc/stat/",
)
# Where clouds hand out credentials, as _host_spelling() spells a host. Of --allow-domain only that
# very name or address opens one of them.
_METADATA_HOSTS = {
    "::ffff:169.254.169.254",  # AWS, Google, Azure, DigitalOcean, OpenStack
    "::ffff:169.254.170.2",  # AWS, of a container
    "::ffff:169.254.170.23",  # AWS, of a pod
    "::ffff:168.63.129.16",  # Azure
    "::ffff:100.100.100.200",  # Alibaba
    "::ffff:192.0.0.192",  # Oracle
    "fd00:ec2::254",  # AWS
    "fd00:ec2::23",  # AWS, of a pod
    "fd20:ce::254",  # Google
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
}
# What may be opened for writing under --fs-readonly.
_DEVICE_ROOTS = tuple([path + "/" for path in _DEVICES])
_STANDARD_OUTPUTS = ("/dev/stdout", "/dev/stderr")
_INTERNET = (_socket.AF_INET, _socket.AF_INET6)

# Modules that would go round the hook under any guard, and why. They are refused, and that does not
# count: asyncio and concurrent.futures import the first two, and have another way.
_MODULES_PAST_THE_HOOK = {
    "_interpreters": "a subinterpreter has audit hooks of its own",
    "_xxsubinterpreters": "the same, before Python 3.13",
    "uvloop": "its sockets raise no events",
}
# Modules whose sockets are opened in C, and raise no events. They are refused where the kernel does
# not hold C code: with --allow-*, and on an old Linux.
_MODULES_WITH_SOCKETS = {
    "pycurl": "libcurl",
    "curl_cffi": "libcurl",
    "grpc": "a network stack of its own",
}
# Modules that load native code.
_MODULES_THAT_LOAD = {
    "ctypes": "loads any library",
    "_ctypes": "loads any library",
    "cffi": "loads any library",
    "_cffi_backend": "loads any library",
    "_tkinter": "the command `load` of Tcl",
}

# What a program asks in passing, and can do without. It is refused, and does not count: the exit
# status stays the program's own.
_PROBING_MODULES = {  # modules that start programs in passing, and what they do without
    "ctypes.util": "find_library() asks gcc, ld and ldconfig, one after the other",
    "distro": "lsb_release: there are files that say the same",
    "pip._internal.network.session": "rustc: pip tells the index which compilers there are",
    "pip._vendor.distro.distro": "as distro",
    "platform": "uname and file: processor() and architecture() have an answer without",
    "uuid": "ifconfig and ip: getnode() takes a random number",
}
_PROBING_SOCKETS = {  # modules that make sockets in passing, and why
    "urllib3.util.connection": "is there IPv6 on this machine?",
    "pip._vendor.urllib3.util.connection": "the same",
}
_PROBED_READS = [  # paths, and all below them; ~ is the home directory
    ("/etc/pip.conf/", "pip: settings of the machine, if there are any"),
    ("/etc/xdg/", "settings of the machine, if there are any"),
    ("~/.config/", "settings of the user, if there are any"),
    ("~/.pip/", "pip: settings of the user, if there are any"),
    ("~/.cache/", "what was kept from a run before, if there is anything"),
    ("~/.local/", "modules and data of the user, if there are any"),
    ("/proc/", "what the system says of itself: psutil, distro, numpy"),
    ("/sys/", "what the system says of itself: psutil, numpy"),
    ("/etc/lsb-release/", "distro: one of several files that may say the system's name"),
    ("/etc/debian_version/", "distro: one of several files that may say the system's name"),
    ("/etc/gitconfig/", "GitPython, hatch: settings of the machine, if there are any"),
    ("/etc/ssl/", "certificates, which a program without network has no use for"),
]
_PROBED_IMPORTS = [  # a module, who imports it ("" is anybody), and what is there in its place
    ("ctypes", "colorama.win32", "nothing: there is no console of Windows here"),
    ("ctypes", "pip._vendor.colorama.win32", "the same"),
    ("ctypes", "packaging._manylinux", "os.confstr() says which C library there is"),
    ("ctypes", "pip._vendor.packaging._manylinux", "the same"),
    ("ctypes", "pip._internal.utils.glibc", "the same"),
    ("aiohttp._http_parser", "", "Python code"),
    ("coverage.tracer", "", "Python code"),
    ("curl_cffi", "yt_dlp.dependencies", "urllib, or requests"),
    ("markupsafe._speedups", "", "Python code"),
    ("msgpack._cmsgpack", "", "Python code"),
    ("multidict._multidict", "", "Python code"),
    ("simplejson._speedups", "", "Python code"),
    ("sqlalchemy.cyextension", "", "Python code"),
    ("tornado.speedups", "", "Python code"),
    ("wcwidth._wcwidth_c", "", "Python code"),
    ("websockets.speedups", "", "Python code"),
    ("wrapt._wrappers", "", "Python code"),
    ("yaml._yaml", "", "Python code"),
    ("yarl._quoting_c", "", "Python code"),
]
_PROBING_FUNCTIONS = {  # functions, by module, that ask for files, and what is there in their place
    ("pip._internal.utils.compat", "get_path_uid"): "for root: no cache",
    ("multiprocessing.util", "_has_writeable_tempdir"): "spawn, where forkserver has no directory",
}
_PROBED_WRITES = [  # names of directories in a path
    ("__pycache__", "Python: bytecode for the next start"),
    (".cache", "programs keep results here for the next run"),
    (".pytest_cache", "pytest: which tests failed last"),
    (".mypy_cache", "mypy: what it knows of files"),
    (".ruff_cache", "ruff: what it knows of files"),
    (".hypothesis", "hypothesis: examples that failed"),
    (".ipython", "IPython: a history, and settings where there are none"),
    (".jupyter", "Jupyter: a note that old settings were moved"),
    (".config", "matplotlib, black: a directory for settings is made where none is"),
]

_leave_process = os._exit  # the real one; at the end of the interpreter os is empty
_write_raw = os.write


class _HookState:
    """What all sets of guards of this process share.

    text          HOTENV_GUARDS
    home          the directory of the loader, with which PYTHONPATH begins
    sets          the sets of guards in force
    blocked       the guards that blocked something, one entry an action
    first         the first blocked action
    ending        what will be said of all blocked actions at the end
    trace         a duplicate of stderr, which the program may redirect; -1 without --trace
    environment   the environment at the start: a program may take its secrets away
    """

    def __init__(self, text: str, home: str) -> None:
        """Take HOTENV_GUARDS and where the loader is. ValueError: the guards are damaged."""
        self.text = text
        self.home = home
        self.sets = _Orders.all_of(text)
        self.blocked: Words = []
        self.first = ""
        self.ending = b""
        self.trace = -1
        self.environment = dict(os.environ)
        self._read_secret_files()
        self._redactor: Redactor | None = None

    def _read_secret_files(self) -> None:
        """Read the values that `run --file` hands over as files: later a guard may refuse that."""
        place = f"/proc/{os.getpid()}/fd/"
        for orders in self.sets:
            for name in orders.secrets:
                path = self.environment.get(name, "")
                if path.startswith(place):
                    try:
                        self.environment[name] = _decoded(_content(path))
                    except OSError:
                        pass  # the file is closed already

    def open_trace(self) -> None:
        """Keep stderr for the traces."""
        import fcntl
        try:
            self.trace = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, _HOOK_SPARE_DESCRIPTOR)
        except OSError:
            self.trace = -1  # there is no stderr

    def forget(self) -> None:
        """Begin to count anew: this process is a fork."""
        self.blocked.clear()

    def refuse(self, event: str, guard: str, about: str, value: Any, *, hint: str = "",
               is_probe: bool = False) -> NoReturn:
        """Count, trace and refuse an action, by the error that programs know how to take.

        `guard` is the name of the guard, `about` says what `value` is; '' is no value at all.
        """
        line = _public_name(event)
        try:
            if about:
                line += f" {about}={self.shown(value)}"
        except Exception:
            pass  # at the end of the interpreter nothing can be imported any more
        line = line[:_HOOK_LONGEST_LINE - 40] + " reason=" + guard
        word = "probe" if is_probe else "blocked"
        if not is_probe:
            self._count(guard, line)
        if self.trace >= 0:
            self._tell(self.trace, f"[hermetic] {word} {line}\n")
        message = "blocked by hotenv: " + line + hint
        if event == "import":
            raise ImportError(message, name=value)
        raise PermissionError(errno.EACCES, message)

    def _count(self, guard: str, line: str) -> None:
        """Count a blocked action, and prepare what the last word says.

        At the end of the interpreter there are no builtin functions any more.
        """
        if not self.blocked:
            self.first = line
        self.blocked.append(guard)
        guards = ", ".join(sorted(set(self.blocked)))
        actions = _plural(len(self.blocked), "action")
        ending = f"hotenv: exit status 2: {actions} blocked ({guards}), the first: " \
                 f"{self.first[:_HOOK_SHOWN]}; --trace shows each\n"
        self.ending = ending.encode("ascii", "backslashreplace")

    def last_word(self) -> None:
        """Say, once, why the exit status of this process is 2."""
        ending = self.ending
        self.ending = b""
        if ending:
            descriptor = 2
            if self.trace >= 0:
                descriptor = self.trace
            _best_effort(_write_raw, descriptor, ending)

    @staticmethod
    def _tell(descriptor: int, line: str) -> None:
        _best_effort(_write_raw, descriptor, line.encode("ascii", "backslashreplace"))

    def shown(self, value: Any) -> str:
        """Return a value as a trace or an error may show it: escaped, and without any secret."""
        words = [value]
        if isinstance(value, (list, tuple)):
            words = list(value)
        texts = []
        for word in words:
            texts.append(_text_of(word).replace("\0", "?"))
        # One text holds all words, so that a value that was split is found.
        joined = self._hidden("\0".join(texts))
        shown = [repr(text) for text in _hide_arguments(_hide_tokens(joined).split("\0"))]
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(shown) + "]"
        if " " in shown[0] or "\\" in shown[0]:
            return shown[0]
        return shown[0][1:-1]  # a plain word needs no quotes

    def _hidden(self, text: str) -> str:
        """Return a text without the values of the environment in any of their usual spellings."""
        if self._redactor is None:
            secrets = {name for orders in self.sets for name in orders.secrets}
            values = {}
            for name, value in self.environment.items():
                if name in secrets or (_is_worth_hiding(name, value) and name not in _HOOK_NAMES):
                    values[name] = value
            self._redactor = Redactor(values)
        return self._redactor(text)

    def carry(self, env: Any) -> None:
        """Set the variables that guard a child in its environment, a mapping of texts or bytes."""
        for name in list(env):
            # As bytes, a name would stand beside the same name as a text.
            is_bytes = isinstance(name, bytes) or isinstance(env[name], bytes)
            if is_bytes and os.fsdecode(name) in _HOOK_NAMES:
                env[os.fsdecode(name)] = os.fsdecode(env.pop(name))
        # Guards that add to these stay as they are.
        if not env.get("HOTENV_GUARDS", "").startswith(self.text + "\n\n"):
            env["HOTENV_GUARDS"] = self.text
        env.pop("PYTHONPYCACHEPREFIX", None)  # what lies there is not closed to the program
        places = [self.home]
        for place in env.get("PYTHONPATH", "").split(os.pathsep):
            if place and place not in places:  # an empty one would be the current directory
                places.append(place)
        env["PYTHONPATH"] = os.pathsep.join(places)
        if any([orders.guards.domains for orders in self.sets]):
            _resolve_by_tcp(env)

    def carry_on(self) -> None:
        """Set the variables that guard a child in the environment of this process.

        A program can change what a child inherits behind the back of os.environ, by os.unsetenv(),
        or by another mapping in the place of os.environ.
        """
        self.carry(os.environ)
        for name in _HOOK_NAMES:
            if name in os.environ:
                os.putenv(name, os.environ[name])


_HOOK_NAMES = ("HOTENV_GUARDS", "PYTHONPATH", "RES_OPTIONS")  # variables that hotenv itself has set


def _resolve_by_tcp(env: Any) -> None:
    """Have glibc ask name servers by TCP: a guarded Python has no sockets of UDP."""
    options = env.get("RES_OPTIONS", "")
    if "use-vc" not in options.split():
        env["RES_OPTIONS"] = (options + " use-vc").lstrip()


def _is_worth_hiding(name: str, value: str) -> bool:
    """May the value of this variable be a secret that nobody has declared?"""
    import re
    first = value.partition(os.pathsep)[0]  # the value may be a list of paths
    is_path = value[:1] in ("/", "~", ".") and os.path.exists(os.path.expanduser(first))
    if is_path or value.startswith("file:"):
        return False
    if _is_secret_name(name):
        return True
    is_number = re.fullmatch(r"[\d.,:+-]+", value) is not None
    return len(value) >= _HOOK_SHORTEST_SECRET and not is_number


def _text_of(value: Any) -> str:
    """Return a word of a command, a path or a host as a text."""
    if isinstance(value, (str, bytes)) or hasattr(value, "__fspath__"):
        return os.fsdecode(value)
    try:
        buffer = memoryview(value)  # unix sockets, and paths before Python 3.12, may be any buffer
    except TypeError:
        return str(value)
    return os.fsdecode(bytes(buffer))


def _public_name(event: str) -> str:
    """Return the public function that led to an event: subprocess.run, not subprocess.Popen."""
    name = event
    frame: FrameType | None = sys._getframe()
    while frame:
        module = frame.f_globals.get("__name__")
        is_own = frame.f_globals is globals()
        if not is_own and module not in ("os", "socket", "subprocess"):
            return name
        function = frame.f_code.co_name
        if not is_own and function[0] not in "_<":
            name = f"{module}.{function}"
        frame = frame.f_back
    return name


def _with_slash(path: str) -> str:
    """Return a path as one that all paths below it begin with."""
    return os.path.join(path, "")


def _real_roots(paths: Words) -> tuple[str, ...]:
    """Return the real paths, without links, each with a slash at its end."""
    return tuple([_with_slash(os.path.realpath(path)) for path in paths])


def _real_path(path: Any, dir_fd: int = -1, follows: bool = True) -> str:
    """Return the path of an action without links; of a descriptor, the path of what is open there.

    A path that is not absolute is below the directory `dir_fd`, if that is a descriptor. A link at
    the end of the path stays if the action does not follow it.
    """
    if isinstance(path, int):
        dir_fd = path
        path = "."
    directory = ""
    if dir_fd >= 0:
        directory = _path_of_descriptor(dir_fd)
    full_path = os.path.join(directory, _text_of(path))
    head, tail = os.path.split(full_path.rstrip("/"))
    if follows or tail in ("", ".", ".."):
        return os.path.realpath(full_path)
    return os.path.join(os.path.realpath(head), tail)


def _path_of_descriptor(descriptor: int) -> str:
    """Return a path that leads to what is open at a descriptor."""
    if sys.platform != "darwin":
        return f"/proc/self/fd/{descriptor}"
    import fcntl
    get_path = 50  # F_GETPATH
    longest_path = 1024  # MAXPATHLEN
    return os.fsdecode(fcntl.fcntl(descriptor, get_path, bytes(longest_path)).rstrip(b"\0"))


def _own_lib_dynload() -> set[str]:
    """Return where this Python has its own extension modules."""
    flags = getattr(sys, "abiflags", "")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}{flags}"
    library = os.path.join(sys.base_exec_prefix, getattr(sys, "platlibdir", "lib"), version)
    beside_os = os.path.dirname(os.__file__)
    return {os.path.join(library, "lib-dynload"), os.path.join(beside_os, "lib-dynload")}


class _Hook:
    """One set of guards in force. Each method named on_... takes an audit event and its arguments.

    A method returns to let the action go on, and raises to refuse it.
    """

    def __init__(self, orders: _Orders, state: _HookState) -> None:
        """Put nothing in force yet: watch() has to be added as an audit hook."""
        guards = orders.guards
        self.guards = guards
        self.orders = orders
        self.state = state
        self.sealed = _real_roots(orders.sealed)
        # Hosts that may be reached. An allowed name adds the addresses that it was found to have.
        self.hosts = set(guards.domains)
        self.suffixes = tuple(["." + domain for domain in guards.domains])
        self.writable: tuple[str, ...] = ("/",)
        if guards.read_root:
            self.writable = _real_roots(guards.writable)
        self.readable: tuple[str, ...] = ("/",)
        # What is below these is read without a look at links: imports would pay for each of them.
        self.trusted: tuple[str, ...] = ()
        if guards.reads_below():
            places = [guards.read_root, state.home, sys.prefix, sys.base_prefix]
            places += [str(place) for place in sys.path]
            if orders.program:
                places.append(orders.program)
            self.readable = _real_roots(places + _DEVICES) + self.writable + _ALWAYS_READABLE
            own = [sys.prefix + "/", sys.base_prefix + "/"]
            self.trusted = ("/dev/stdin", *[path for path in own if not self.may_hold_links(path)])
        self.lib_dynload = _own_lib_dynload()
        self.home_directory = os.path.expanduser("~")

    def watch(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook: look at one event."""
        check = _HOOK_CHECKS.get(event)
        if check is not None:
            check(self, event, *args)

    def refuse(self, event: str, guard: str, about: str, value: Any, **how: Any) -> NoReturn:
        """Refuse an action, as _HookState.refuse() has it."""
        self.state.refuse(event, guard, about, value, **how)

    # -- hosts --

    def is_allowed_name(self, name: str) -> bool:
        """Does --allow-domain open this host, a name or an address?"""
        if name in _METADATA_HOSTS:
            return name in self.hosts
        return name in self.hosts or name.endswith(self.suffixes)

    @staticmethod
    def is_local_name(name: str) -> bool:
        """May this name mean this machine? It does only if its address says so."""
        own_name = _host_spelling(os.uname().nodename)
        return ("." + name).endswith(".localhost") or name == own_name

    def may_reach(self, host: Any, connecting: bool) -> bool:
        """May this name or address be connected to, or else be bound or looked up?

        Of a name this is not the last word: what it resolves to is looked at, too.
        """
        name = _host_spelling(host)
        if self.is_allowed_name(name):
            return True
        if name in _METADATA_HOSTS:
            return False
        if ":" in name:
            is_local = name.startswith("::ffff:127.") or name == "::1"
        else:
            is_local = self.is_local_name(name)
        return is_local and (self.guards.localhost or not connecting)

    def on_address(self, event: str, sock: socket.socket, address: Any) -> None:
        """A socket is connected, bound, made to listen, or sends to an address."""
        if not address:
            return  # it sends over a connection
        connecting = event not in ("socket.bind", "socket.listen")
        if sock.family == _socket.AF_UNIX:
            self.on_unix_address(event, address, connecting)
            return
        if not self.guards.network:
            return
        # The addresses of other families do not say which host they mean.
        if sock.family not in _INTERNET or not self.may_reach(address[0], connecting):
            self.refuse(event, "no-network", "host", address[0])

    def on_unix_address(self, event: str, address: Any, connecting: bool) -> None:
        """A unix socket is connected, bound, or sends to an address."""
        if self.guards.network and self.orders.unhooked and not self.guards.unix:
            self.refuse(event, "no-network", "path", address)
        if address[0] in (0, "\0"):
            return  # an abstract name, which is no file
        if not connecting:
            self.may_change(event, address)
        elif _with_slash(_real_path(address)).startswith(self.sealed):  # the door to the secrets
            self.refuse(event, "hotenv-session", "path", address)

    def on_socket(self, event: str, sock: Any, family: int, kind: int, *_: Any) -> None:
        """A socket is made. Of those that reach hosts, a guarded Python has those of TCP alone."""
        if self.guards.network and family in _INTERNET:
            if self.orders.unhooked:  # a program above this one has no hook
                is_probe = _caller() in _PROBING_SOCKETS
                self.refuse(event, "no-network", "family", int(family), is_probe=is_probe)
            if (kind & _SOCK_TYPE_MASK) != _socket.SOCK_STREAM:
                self.refuse(event, "no-network", "type", int(kind))

    def on_lookup(self, event: str, host: Any, *_: Any) -> None:
        """A name, or an address as a pair of an address and a port, is looked up."""
        if isinstance(host, tuple):
            host = host[0]
        if self.guards.network and host and not self.may_reach(host, connecting=False):
            self.refuse(event, "no-network", "host", host)

    def on_found(self, event: str, host: Any, addresses: Words) -> None:
        """A name has been looked up. An allowed one is known by its addresses from here on.

        Where a cloud hands out credentials stays closed, also if an allowed name leads there.
        """
        if not host or not self.is_allowed_name(_host_spelling(host)):
            return
        found = {_host_spelling(address) for address in addresses}
        if _host_spelling(host) not in _METADATA_HOSTS:
            found -= _METADATA_HOSTS
        self.hosts |= found

    # -- files --

    def may_change(self, event: str, path: Any, dir_fd: int = -1, *, follows: bool = True,
                   makes: bool = True) -> None:
        """Refuse to make, remove or change what must not be.

        An action that only works on what is there does not make its path. Where the path is
        missing, such an action fails by itself.
        """
        real = _real_path(path, dir_fd, follows)
        place = _with_slash(real)
        # What is sealed would have another path once a directory above it has moved.
        is_above = any([sealed.startswith(place) for sealed in self.sealed])
        if place.startswith(self.sealed) or (event == "os.rename" and is_above):
            self.refuse(event, "hotenv-session", "path", real)
        if place.startswith(self.writable):
            return
        # Devices are written, and neither removed nor changed.
        is_device = place.startswith(_DEVICE_ROOTS) or _text_of(path) in _STANDARD_OUTPUTS
        if event == "open" and is_device:
            return
        if makes or os.path.lexists(real):
            is_probe = any([f"/{name}/" in place for name, _ in _PROBED_WRITES])
            is_probe = is_probe or _is_in_probing_function()
            self.refuse(event, "fs-readonly", "path", real, is_probe=is_probe,
                        hint=" (--fs-write PATH allows it below PATH)")

    def may_read(self, event: str, path: Any) -> None:
        """Refuse to read a file or list a directory outside of --fs-readonly=PATH."""
        text = os.fsdecode(path or ".")
        if text.startswith(self.trusted) and "/.." not in text:
            return
        real = os.path.realpath(text)
        if self.is_readable(real):
            return
        if _is_import_search():
            raise PermissionError(errno.EACCES, "blocked by hotenv: an import looks elsewhere")
        wanted = real
        if event != "open":
            wanted = _with_slash(real)  # what is to be listed has to be a directory
        if not os.path.exists(wanted):
            return
        hint = f" (read only below {self.guards.read_root}; --fs-readonly=PATH, =/ all)"
        is_probe = self.is_probed(real) or _is_in_probing_function()
        self.refuse(event, "fs-readonly", "path", real, hint=hint, is_probe=is_probe)

    def is_readable(self, real: str) -> bool:
        """May what has this real path be read?"""
        own_entry = f"/proc/{os.getpid()}/"
        return _with_slash(real).startswith((own_entry, *self.readable))

    def is_probed(self, real: str) -> bool:
        """Is this a path that programs try to read, and do without?"""
        for start, _ in _PROBED_READS:
            if start.startswith("~"):
                start = self.home_directory + start[1:]
            if _with_slash(real).startswith(start):
                return True
        return False

    def may_hold_links(self, directory: str) -> bool:
        """May the program make links below this directory, or is it below such a directory?"""
        real = _with_slash(os.path.realpath(directory))
        return any([real.startswith(root) or root.startswith(real) for root in self.writable])

    def on_open(self, event: str, path: Any, mode: Any = None, flags: int = 0) -> None:
        """A file is opened, or a directory is listed."""
        if isinstance(path, int):
            return  # it was opened before
        writes_from_c = mode and mode[0] in "wa"  # C code that opens a file has no flags
        if flags & _HOOK_WRITING or writes_from_c:
            makes = not flags or bool(flags & os.O_CREAT)
            self.may_change(event, path, makes=makes)
        elif self.guards.reads_below():
            self.may_read(event, path)

    def on_change(self, event: str, *args: Any) -> None:
        """One of the functions of os changes a file or a directory."""
        if event == "os.truncate" and isinstance(args[0], int):
            return  # it was opened for writing
        for each in _CHANGED_PATHS[event]:
            dir_fd = -1
            if each.directory is not None and each.directory < len(args):
                dir_fd = args[each.directory]
            self.may_change(event, args[each.index], dir_fd, follows=each.follows, makes=each.makes)

    def on_sqlite(self, event: str, database: Any) -> None:
        """A database is opened. One in memory is free; one that says so is only read."""
        path = os.fsdecode(database)
        modes: set[str] = set()
        options: dict[str, str] = {}
        if path.startswith("file:"):
            from urllib.parse import unquote
            path, _, query = path.partition("#")[0].partition("?")
            if path.startswith("file://localhost/"):
                path = path.replace("//localhost", "", 1)
            path = unquote(path[len("file:"):])
            for parameter in query.split("&"):
                # In each part sqlite reads no further than a NUL.
                name, value = [unquote(part).partition("\0")[0]
                               for part in parameter.partition("=")[::2]]
                options.setdefault(name, value)
                if name == "mode":
                    modes.add(value)  # any of them may be the one that counts
        elif path in ("", ":memory:"):
            modes.add("memory")
        # sqlite makes an immutable database that is missing, and then writes no more.
        is_immutable = options.get("immutable") == "1" and os.path.lexists(path)
        if is_immutable or (modes and modes <= {"ro", "memory"}):
            if modes != {"memory"}:
                self.on_open("open", path)
        else:
            self.may_change(event, path)

    def on_ioctl(self, event: str, descriptor: Any, request: int, *_: Any) -> None:
        """A request goes to a device or a file system. The kernel refuses the same ones."""
        request &= _ALL_BITS
        if request in _TERMINAL_REQUESTS.values():
            self.refuse(event, "hermetic", "request", hex(request))
        if self.guards.read_root and request in _CHANGING_REQUESTS.values():
            self.refuse(event, "fs-readonly", "request", hex(request))

    # -- programs --

    def on_start(self, event: str, *args: Any) -> None:
        """Another program, or a fork, is to be started."""
        if self.guards.processes:
            argv = _argv_of(args)
            about = "argv" if argv else ""  # a fork has none
            is_probe = _caller() in _PROBING_MODULES
            self.refuse(event, "no-subprocess", about, argv, is_probe=is_probe)
        self.must_be_guarded(event)
        self.state.carry_on()
        for env in args:  # whatever environment the program makes for a child
            if hasattr(env, "keys") and env is not os.environb:
                self.state.carry(env)

    def on_exec(self, event: str) -> None:
        """A child is about to become another program, with the environment that it has now."""
        self.state.carry_on()

    def must_be_guarded(self, event: str) -> None:
        """Refuse a child that no loader would guard."""
        if not os.path.exists(self.state.home + "/sitecustomize.py"):
            self.refuse(event, "hermetic", "path", self.state.home,
                        hint=" (the files that guard a child are gone)")

    def on_start_request(self, event: str, request: _StartRequest) -> None:
        """A patched function is about to start a program: the launcher may have to come first."""
        self.on_start(request.event, request.argv, request.env)
        needs_kernel = self.guards.network or self.guards.read_root
        if not needs_kernel or self.orders.unhooked or request.is_launched:
            return
        place = request.found()
        if not place or self.is_guarded_python(request, place):
            return
        if not self.orders.kernel:
            guard = "no-network" if self.guards.network else "fs-readonly"
            self.refuse(request.event, guard, "program", place,
                        hint=" (the kernel cannot hold a program that is no Python here)")
        if self.guards.read_root == "/" and not (self.guards.network or self.guards.writable):
            return  # the kernel has refused writing to this process, and so to the program
        launch = [self.orders.launcher, "-I", "-S", self.state.home + "/sitecustomize.py"]
        request.launch_by(launch + ["program", sys.prefix, place])

    def is_guarded_python(self, request: _StartRequest, place: str) -> bool:
        """Is a Python started that imports the loader?"""
        directory = _text_of(request.directory or "")

        def read(path: str) -> bytes:
            path = os.path.join(directory, path)
            if not self.is_readable(os.path.realpath(path)):
                return b""  # it could not be read without a refusal
            return _content(path, _FIRST_LINE)

        words = [_text_of(word) for word in request.argv]
        command = _PythonCommand.of(place, words, request.path(), read)
        return command is not None and command.has_loader()

    def on_remote(self, event: str, pid: int, *_: Any) -> None:
        """Code is to be run in another Python, which is not guarded."""
        self.refuse(event, "hermetic", "pid", str(pid))

    # -- code --

    def on_import(self, event: str, module: str, filename: Any, *_: Any) -> None:
        """A module is imported; of an extension module a second event names the file."""
        top = module.partition(".")[0]
        if top in _MODULES_PAST_THE_HOOK:
            self.refuse(event, "hermetic", "module", module, is_probe=True)
        if self.guards.network and not self.orders.code and top in _MODULES_WITH_SOCKETS:
            is_probe = _is_probed_import(module)
            self.refuse(event, "no-network", "module", module, is_probe=is_probe)
        if not self.guards.imports:
            return
        is_native = bool(filename) and os.path.dirname(filename) not in self.lib_dynload
        if is_native or top in _MODULES_THAT_LOAD:
            is_probe = _is_probed_import(module)
            self.refuse(event, "strict-imports", "module", module, is_probe=is_probe)

    def on_native_code(self, event: str, *args: Any) -> None:
        """Native code is loaded or called past the importer."""
        if self.guards.imports:
            self.refuse(event, "strict-imports", "value", [str(arg) for arg in args[:2]])

    def on_extension(self, event: str, connection: Any, value: Any = True) -> None:
        """Extensions of sqlite are allowed, or one is loaded."""
        if self.guards.imports and value:
            self.refuse(event, "strict-imports", "value", str(value))

    # -- this process --

    def on_alive(self, event: str, answered: list[bool]) -> None:
        """The loader asks whether this hook is in force."""
        answered.append(True)

    def on_end(self, event: str) -> None:
        """The interpreter ends, and every file is flushed and closed."""
        if self.state.blocked:
            self.state.last_word()
            _leave_process(2)


def _argv_of(args: tuple[Any, ...]) -> Any:
    """Return the command line in an event: Popen has a list, system a text, fork nothing."""
    for arg in args:
        if isinstance(arg, (list, tuple)):
            return arg
    return args[:1]


def _is_probed_import(module: str) -> bool:
    """Is this an import that the importer can do without?"""
    importer = _caller()
    for name, by_whom, _ in _PROBED_IMPORTS:
        if (module + ".").startswith(name + ".") and by_whom in ("", importer):
            return True
    return False


def _is_in_probing_function() -> bool:
    """Does a function ask for this that can do without?"""
    frame: Any = sys._getframe()
    while frame:
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _PROBING_FUNCTIONS:
            return True
        frame = frame.f_back
    return False


def _is_import_search() -> bool:
    """Does an import look for a module in a directory? A refusal is an empty directory to it."""
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_globals is globals():
        frame = frame.f_back
    names = ("_frozen_importlib_external", "importlib._bootstrap_external")
    return frame is not None and frame.f_globals.get("__name__") in names


def _caller() -> str:
    """Return the name of the module that imports a module, makes a socket or starts a program."""
    frame: FrameType | None = sys._getframe()
    while frame:
        module = str(frame.f_globals.get("__name__"))
        is_own = frame.f_globals is globals()
        top = module.partition(".")[0]
        if not is_own and top not in ("importlib", "os", "socket", "subprocess"):
            return module
        frame = frame.f_back
    return ""


_HOOK_CHECKS: dict[str, Callable[..., None]] = {  # the method that decides about an event
    # Files.
    "open": _Hook.on_open,
    "os.listdir": _Hook.on_open,
    "os.scandir": _Hook.on_open,
    "os.chflags": _Hook.on_change,
    "os.chmod": _Hook.on_change,
    "os.chown": _Hook.on_change,
    "os.link": _Hook.on_change,
    "os.mkdir": _Hook.on_change,
    "os.mkfifo": _Hook.on_change,  # raised by a patch
    "os.mknod": _Hook.on_change,  # raised by a patch
    "os.remove": _Hook.on_change,
    "os.removexattr": _Hook.on_change,
    "os.rename": _Hook.on_change,
    "os.rmdir": _Hook.on_change,
    "os.setxattr": _Hook.on_change,
    "os.symlink": _Hook.on_change,
    "os.truncate": _Hook.on_change,
    "os.utime": _Hook.on_change,
    "sqlite3.connect": _Hook.on_sqlite,
    "fcntl.ioctl": _Hook.on_ioctl,
    # Hosts.
    "socket.__new__": _Hook.on_socket,
    "socket.bind": _Hook.on_address,
    "socket.connect": _Hook.on_address,
    "socket.connect_ex": _Hook.on_address,
    "socket.listen": _Hook.on_address,  # raised by a patch
    "socket.sendmsg": _Hook.on_address,
    "socket.sendto": _Hook.on_address,
    "socket.getaddrinfo": _Hook.on_lookup,
    "socket.gethostbyaddr": _Hook.on_lookup,
    "socket.gethostbyname": _Hook.on_lookup,
    "socket.getnameinfo": _Hook.on_lookup,
    "hotenv.found": _Hook.on_found,  # raised by a patch
    # Programs.
    "os.exec": _Hook.on_start,
    "os.fork": _Hook.on_start,
    "os.forkpty": _Hook.on_start,
    "os.posix_spawn": _Hook.on_start,
    "os.spawn": _Hook.on_start,
    "os.system": _Hook.on_start,
    "pty.spawn": _Hook.on_start,
    "subprocess.Popen": _Hook.on_start,
    "hotenv.start": _Hook.on_start_request,  # raised by a patch
    "hotenv.exec": _Hook.on_exec,  # raised by a patch
    "sys.remote_exec": _Hook.on_remote,
    # Code.
    "import": _Hook.on_import,
    "ctypes.PyObj_FromPtr": _Hook.on_native_code,
    "ctypes.call_function": _Hook.on_native_code,
    "ctypes.cdata": _Hook.on_native_code,
    "ctypes.cdata/buffer": _Hook.on_native_code,
    "ctypes.dlopen": _Hook.on_native_code,
    "ctypes.dlsym": _Hook.on_native_code,
    "ctypes.dlsym/handle": _Hook.on_native_code,
    "ctypes.memoryview_at": _Hook.on_native_code,
    "ctypes.string_at": _Hook.on_native_code,
    "ctypes.wstring_at": _Hook.on_native_code,
    "sqlite3.enable_load_extension": _Hook.on_extension,
    "sqlite3.load_extension": _Hook.on_extension,
    # This process.
    "hotenv.alive": _Hook.on_alive,
    "cpython.PyInterpreterState_Clear": _Hook.on_end,
}


# -- which programs are Pythons under the hook -----------------------------------------------------


class _PythonCommand:
    """A command line that starts a Python.

    place      the path of the interpreter
    options    the words behind the interpreter, up to what is to be run
    letters    the options of one letter among them
    how        what is to be run: "script", "module", "code", "input" for stdin, or "nothing" where
               the interpreter only tells of itself
    rest       the words that say what is to be run, and its arguments
    """

    def __init__(self, place: str, words: Words) -> None:
        """Take the interpreter, and the words behind it. ValueError: they are not clear."""
        self.place = place
        self.options: Words = []
        self.letters = ""
        self.rest = list(words)
        size = self._count_option_words()
        while size:
            self.options += self.rest[:size]
            del self.rest[:size]
            size = self._count_option_words()
        first = ""
        if self.rest:
            first = self.rest[0]
        if first in _TELLING_WORDS or any([letter in self.letters for letter in "hV?"]):
            self.how = "nothing"
        elif first == "-c":
            self.how = "code"
        elif first == "-m":
            self.how = "module"
        elif first in ("", "-"):
            self.how = "input"
        elif first.startswith("-"):
            raise ValueError("an option that is not known")
        else:
            self.how = "script"

    def _count_option_words(self) -> int:
        """Return how many words the next option has, and note its letters; 0 if there is none."""
        if not self.rest or not self.rest[0].startswith("-"):
            return 0
        letters = self.rest[0][1:]
        if not letters:
            return 0  # a mere "-" is no option
        for index, letter in enumerate(letters):
            if letter in "WX":  # these take a value: -Xdev, or -X dev
                self.letters += letters[:index]
                has_value = index + 1 < len(letters)
                return 1 if has_value else 2
            if letter in "cm" and index:  # -uc is -u -c
                self.rest[:1] = ["-" + letters[:index], "-" + letters[index:]]
                self.letters += letters[:index]
                return 1
            if letter not in "bBdEhiIOPqRsSuvVx?":
                return 0
        self.letters += letters
        return 1

    def has_loader(self) -> bool:
        """Does the Python import the loader by itself?

        With -E and -I it ignores PYTHONPATH. With -S it has no `site`, which imports the loader.
        One that runs nothing needs none.
        """
        return self.how == "nothing" or not any([letter in self.letters for letter in "EIS"])

    @classmethod
    def of(cls, place: str, words: Words, path: str,
           read: Callable[[str], bytes]) -> _PythonCommand | None:
        """Return what a program at `place` starts, or None if that is no Python, or not clear.

        `words` is its whole command line, `path` its PATH; `read` returns how a file begins.
        """
        try:
            if not _is_python_name(place):
                line = _line_of_script(place, words[1:], read(place))
                if not line:
                    return None
                place = _which(line[0], path)
                words = line
            real = os.path.realpath(place)
            if not (_is_python_name(place) and _is_python_name(real)):
                return None
            if read(place)[:2] in (b"#!", b""):
                return None  # pyenv and its like put a script in the place of a Python
            return cls(place, words[1:])
        except (OSError, ValueError):
            return None


_TELLING_WORDS = ("--version", "--help", "--help-all", "--help-env", "--help-xoptions")


def _is_python_name(path: str) -> bool:
    """Is a program called python, python3, python3.13 or python3.13t?"""
    name = os.path.basename(path).rstrip("dmt0123456789.")
    return name in ("python", "platform-python")  # the latter is what python3 leads to on RHEL 8


def _line_of_script(script: str, words: Words, head: bytes) -> Words:
    """Return the command line that the first line of a script makes, or [] if there is none.

    `head` is how the script begins, `words` are its arguments.
    """
    text = os.fsdecode(head)
    lines = text.split("\n")
    if not text.startswith("#!") or "\0" in lines[0]:
        return []  # no path has a NUL

    # 1. How pip and uv write a first line that is too long, or relative to the script.
    second = ""
    if len(lines) > 2:  # else the second line is cut, or missing
        second = lines[1]
    start, end = "'''exec' ", ' "$0" "$@"'
    if lines[0] == "#!/bin/sh" and second.startswith(start) and second.endswith(end):
        import shlex
        directory = shlex.quote(os.path.dirname(os.path.realpath(script)))
        line = second[len(start):-len(end)]
        line = line.replace('"$(dirname -- "$(realpath -- "$0")")"', directory)
        try:
            command = shlex.split(line)
        except ValueError:
            return []  # a quote is missing, so that no shell can run the line
        if not command or "\0" in line:
            return []
        return [*command, script, *words]

    # 2. A path with arguments, or what `env` is to find on PATH.
    interpreter = lines[0][len("#!"):].split()
    if interpreter and interpreter[0].endswith("/env"):
        del interpreter[0]
        if interpreter and interpreter[0] == "-S":
            del interpreter[0]
    if not interpreter:
        return []
    return [*interpreter, script, *words]


# -- patches ---------------------------------------------------------------------------------------


class _StartRequest:
    """A program that is about to be started, as a patched function was asked to.

    event         the audit event that stands for the function
    places        where the program may be; the first that is there counts
    argv          its command line
    env           its environment, or None for that of this process
    directory     where it is to start, if that is not the current directory
    is_launched   does the launcher come first?
    """

    def __init__(self, event: str, places: Any, argv: Any, env: Any, directory: Any = None) -> None:
        """Take what the function was given."""
        self.event = event
        self.places = list(places)
        self.argv = argv
        self.env = env
        self.directory = directory
        self.is_launched = False

    def found(self) -> str:
        """Return which program will be started, or '' where the attempt will fail by itself."""
        for place in self.places:
            if isinstance(place, int):
                return os.path.realpath(_path_of_descriptor(place))
            path = os.path.join(_text_of(self.directory or ""), _text_of(place))
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return _text_of(place)
        return ""

    def path(self) -> str:
        """Return the PATH of the program."""
        env = self.env
        if env is None:
            env = os.environ
        for name, value in env.items():  # names and values are texts or bytes
            if _text_of(name) == "PATH":
                return _text_of(value)
        return os.defpath

    def launch_by(self, launcher: Words) -> None:
        """Start the launcher, with the program's command line behind its own."""
        self.places = [launcher[0]]
        self.argv = [*launcher, *self.argv]
        self.is_launched = True


class _Patches:
    """Functions in the place of others, which raise an event first, and decide nothing.

    They are bound methods: like a builtin function, and unlike a function, a bound method stays the
    same as an attribute of a class. They have loops where comprehensions would be shorter: before
    Python 3.12 a comprehension is a function of its own, which _hide_from_coverage() would miss.
    """

    def __init__(self, state: _HookState) -> None:
        """Take the state, and find the modules; install() changes them."""
        self.state = state
        import _posixsubprocess
        import posix
        self.modules = {
            "os": os,
            "posix": posix,
            "_posixsubprocess": _posixsubprocess,
            "_socket": _socket,
        }
        self.originals: dict[str, Callable[..., Any]] = {}

    def install(self, has_network: bool) -> None:
        """Put the functions in place. One that is not there is an error: a guard would be open."""
        for name, (places, _) in _PATCHES.items():
            if not has_network and places[0].startswith("_socket"):
                continue
            for place in places:
                module, _, attribute = place.partition(".")
                space = vars(self.modules[module])
                self.originals[name] = space[attribute]
                space[attribute] = getattr(self, name)
        # What a .pth file imported has the original under a name of its own, since Python 3.11.
        subprocess = sys.modules.get("subprocess")
        if hasattr(subprocess, "_fork_exec"):
            vars(subprocess)["_fork_exec"] = self.fork_exec

    def execv(self, path: Any, argv: Any) -> Any:
        """os.execv"""
        request = _StartRequest("os.exec", [path], argv, None)
        sys.audit("hotenv.start", request)
        return self.originals["execv"](request.places[0], request.argv)

    def execve(self, path: Any, argv: Any, env: Any) -> Any:
        """os.execve"""
        request = _StartRequest("os.exec", [path], argv, env)
        sys.audit("hotenv.start", request)
        return self.originals["execve"](request.places[0], request.argv, env)

    def _execvpe(self, file: Any, args: Any, env: Any = None) -> Any:
        """os.execvp and its like, which try each directory of PATH"""
        sys.audit("os.exec", file, args, env)
        return self.originals["_execvpe"](file, args, env)

    def posix_spawn(self, path: Any, argv: Any, env: Any, **how: Any) -> Any:
        """os.posix_spawn"""
        return self._spawn("posix_spawn", path, [path], argv, env, how)

    def posix_spawnp(self, path: Any, argv: Any, env: Any, **how: Any) -> Any:
        """os.posix_spawnp"""
        places = [path]
        if "/" not in _text_of(path):
            places = []
            for directory in os.get_exec_path(env):
                places.append(os.path.join(directory, _text_of(path)))
        return self._spawn("posix_spawnp", path, places, argv, env, how)

    def _spawn(self, name: str, path: Any, places: Any, argv: Any, env: Any, how: Any) -> Any:
        """Look at the files that the child opens at its start, which raise no event, and start."""
        if how.get("file_actions"):
            how["file_actions"] = list(how["file_actions"])  # a generator can be read only once
            for action in how["file_actions"]:
                if action[0] == os.POSIX_SPAWN_OPEN:
                    sys.audit("open", action[2], None, action[3])
        request = _StartRequest("os.posix_spawn", places, argv, env)
        sys.audit("hotenv.start", request)
        if request.is_launched:
            path = request.places[0]
        return self.originals[name](path, request.argv, env, **how)

    def system(self, command: Any) -> Any:
        """os.system"""
        sys.audit("os.system", command)
        request = _StartRequest("os.system", ["/bin/sh"], ["sh", "-c", command], None)
        sys.audit("hotenv.start", request)
        if request.is_launched:
            command = "exec"
            for word in request.argv:
                command += " '" + _text_of(word).replace("'", "'\\''") + "'"
        return self.originals["system"](command)

    def fork_exec(self, argv: Any, places: Any, close_fds: Any, kept: Any, directory: Any,
                  env: Any, *rest: Any) -> Any:
        """_posixsubprocess.fork_exec, below subprocess and multiprocessing"""
        import functools
        variables: Any = None
        if env is not None:
            variables = {}
            for entry in env:
                name, _, value = os.fsdecode(entry).partition("=")
                variables[name] = value
        request = _StartRequest("os.exec", places, argv, variables, directory)
        sys.audit("hotenv.start", request)
        if env is not None:
            env = []
            for name, value in variables.items():
                env.append(os.fsencode(f"{name}={value}"))
        places = tuple(map(os.fsencode, request.places))
        settings = []
        for setting in rest:
            if callable(setting):  # the only one is preexec_fn
                setting = functools.partial(self._preexec_fn, setting)
            settings.append(setting)
        return self.originals["fork_exec"](
            request.argv, places, close_fds, kept, directory, env, *settings)

    def _preexec_fn(self, function: Callable[[], object]) -> None:
        """What a child does before its exec. It may change the environment that it has then."""
        function()
        sys.audit("hotenv.exec")

    def _exit(self, status: int) -> Any:
        """os._exit"""
        if self.state.blocked:
            self.state.last_word()
            status = 2
        return self.originals["_exit"](status)

    def open(self, path: Any, *args: Any, dir_fd: Any = None, **how: Any) -> Any:
        """os.open"""
        if dir_fd is not None:
            path = os.path.join(_real_path(dir_fd), os.fsdecode(path))
        return self.originals["open"](path, *args, **how)

    def mkfifo(self, path: Any, mode: int = 0o666, *, dir_fd: Any = None) -> Any:
        """os.mkfifo"""
        sys.audit("os.mkfifo", path, -1 if dir_fd is None else dir_fd)
        return self.originals["mkfifo"](path, mode, dir_fd=dir_fd)

    def mknod(self, path: Any, *args: Any, dir_fd: Any = None, **how: Any) -> Any:
        """os.mknod"""
        sys.audit("os.mknod", path, -1 if dir_fd is None else dir_fd)
        return self.originals["mknod"](path, *args, dir_fd=dir_fd, **how)

    def getaddrinfo(self, host: Any, *args: Any, **how: Any) -> Any:
        """socket.getaddrinfo"""
        found = self.originals["getaddrinfo"](host, *args, **how)
        addresses = []
        for entry in found:
            addresses.append(entry[4][0])
        sys.audit("hotenv.found", host, addresses)
        return found

    def gethostbyname(self, host: Any) -> Any:
        """socket.gethostbyname"""
        address = self.originals["gethostbyname"](host)
        sys.audit("hotenv.found", host, [address])
        return address

    def gethostbyname_ex(self, host: Any) -> Any:
        """socket.gethostbyname_ex"""
        found = self.originals["gethostbyname_ex"](host)
        sys.audit("hotenv.found", host, found[2])
        return found


_PATCHES = {  # the method of _Patches, the functions that it stands for, and why
    "execv": (["os.execv", "posix.execv"], "its event comes when argv can no more be changed"),
    "execve": (["os.execve", "posix.execve"], "its event comes after the environment was read"),
    "_execvpe": (["os._execvpe"], "one attempt is one refusal, not one for each entry of PATH"),
    "posix_spawn": (["os.posix_spawn", "posix.posix_spawn"], "as execve; and it opens files"),
    "posix_spawnp": (["os.posix_spawnp", "posix.posix_spawnp"], "as execve; and it opens files"),
    "system": (["os.system", "posix.system"], "its event comes when the line cannot be changed"),
    "fork_exec": (["_posixsubprocess.fork_exec"], "it raises no event"),
    "_exit": (["os._exit", "posix._exit"], "the interpreter does not end as usual"),
    "open": (["os.open", "posix.open"], "its event does not tell of dir_fd, so the path has to"),
    "mkfifo": (["os.mkfifo", "posix.mkfifo"], "it raises no event"),
    "mknod": (["os.mknod", "posix.mknod"], "it raises no event"),
    "getaddrinfo": (["_socket.getaddrinfo"], "connect sees the address alone, not the name"),
    "gethostbyname": (["_socket.gethostbyname"], "connect sees the address alone, not the name"),
    "gethostbyname_ex": (["_socket.gethostbyname_ex"], "connect sees the address, not the name"),
}
_EARLY_METHODS = ["bind", "connect", "connect_ex", "sendto"]  # of sockets: the address comes last


def _patch_sockets() -> None:
    """Have the methods of sockets show the address before a name in it is looked up."""
    early: Any = type("socket", (_socket.socket,), {"__slots__": ()})
    kinds = {early}
    if "socket" in sys.modules:  # the public class is there already, made from the original
        kinds.add(sys.modules["socket"].socket)
    for kind in kinds:
        for name in _EARLY_METHODS:
            _patch_method_with_address(kind, name)
        _patch_listen(kind)
    _socket.socket = early  # type: ignore[misc]
    _socket.SocketType = early


def _patch_method_with_address(kind: Any, name: str) -> None:
    """Have a method raise its event with the name of a host, and again with its address.

    By itself the method looks the name up first, and then raises its event with the name alone.
    """
    original = getattr(kind, name)

    def call(sock: Any, *args: Any) -> Any:
        *others, address = args
        if sock.family in _INTERNET and ":" not in _host_spelling(address[0]):
            sys.audit("socket." + name, sock, address)
            found = _socket.getaddrinfo(address[0], None, sock.family)
            address = (found[0][4][0], *address[1:])
        return original(sock, *others, address)

    _hide_from_coverage(call)
    setattr(kind, name, call)


def _patch_listen(kind: Any) -> None:
    """Have listen() raise an event. Without bind(), it takes all addresses of the machine."""
    original = kind.listen

    def listen(sock: Any, *args: Any) -> Any:
        if sock.family in _INTERNET:
            sys.audit("socket.listen", sock, sock.getsockname())
        return original(sock, *args)

    _hide_from_coverage(listen)
    kind.listen = listen


def _hide_from_coverage(function: Any) -> None:
    """Have a function show no file: tools that list what ran would list the copy of this file.

    The functions of the hook show their file: CPython traces no audit hook.
    """
    function.__code__ = function.__code__.replace(co_filename="<hotenv>")


# -- putting guards in force -----------------------------------------------------------------------


def _install_guards(text: str, home: str) -> None:
    """Put guards in force in this interpreter, for good, and in every Python that it starts.

    `text` is HOTENV_GUARDS, `home` the directory of the loader. Any error: they are not in force.
    """
    state = _HookState(text, home)
    sets = [orders.guards for orders in state.sets]
    if any([guards.read_root for guards in sets]):
        sys.dont_write_bytecode = True
    if any([guards.trace for guards in sets]):
        state.open_trace()
    has_network = any([guards.network for guards in sets])
    patches = _Patches(state)
    patches.install(has_network)
    # The patches, what they call, and what a fork calls.
    for function in [*vars(_Patches).values(), *vars(_StartRequest).values(), _text_of, _real_path,
                     _path_of_descriptor, _host_spelling, _HookState.forget]:
        if hasattr(function, "__code__"):
            _hide_from_coverage(function)
    if has_network:
        _patch_sockets()
    os.register_at_fork(after_in_child=state.forget)
    for orders in state.sets:
        sys.addaudithook(_Hook(orders, state).watch)
    answered: list[bool] = []
    sys.audit("hotenv.alive", answered)
    # CPython says nothing when an older hook refuses a new one.
    if len(answered) != len(state.sets):
        raise RuntimeError("another audit hook refuses the guards")
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_uncaught
    sys.modules.pop("hotenv", None)  # what stays importable is emptied before the program's end
    state.carry(os.environ)


def _show_uncaught(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception without the frames of the start and of a refusal.

    The frames of the start end with _become(). Those of a refusal are in this file, too. Frames of
    either kind may be in the exceptions that led to this one.
    """
    kept = _without_own_frames(trace)
    seen = {id(error)}
    cause = error.__cause__ or error.__context__
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        cause.__traceback__ = _without_own_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
    sys.__excepthook__(kind, error.with_traceback(kept), kept)


def _without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of the start and of a refusal."""
    kept: list[TracebackType] = []
    while trace:
        if trace.tb_frame.f_code is _become.__code__:
            kept.clear()
        elif trace.tb_frame.f_globals is not globals():
            kept.append(trace)
        trace = trace.tb_next
    head = None
    for entry in reversed(kept):
        entry.tb_next = head
        head = entry
    return head


def _become(kind: str, argv: Words) -> NoReturn:
    """Run what argv[0] names as `__main__`, in a Python that does not import the loader by itself.

    `kind` says what argv[0] is: a "script", a "module", or a "call" (module:callable). Of "code"
    argv[0] is -c, and the text comes behind it.
    """
    import importlib
    import operator
    import runpy
    target = argv[0]
    main = sys.modules["__main__"] = type(sys)("__main__")
    sys.argv[:] = argv
    if not _ISOLATED:
        directory = os.getcwd()
        if kind == "script":
            directory = os.path.dirname(os.path.realpath(target))
        sys.path.insert(0, directory)
    if kind == "call":
        target, _, attributes = target.partition(":")
        found = operator.attrgetter(attributes)(importlib.import_module(target))
        if callable(found):
            sys.exit(found())
        kind = "module"
    if kind == "module":
        runpy._run_module_as_main(target)  # type: ignore[attr-defined]
        sys.exit()
    if kind == "code":
        del sys.argv[1]
        exec(compile(argv[1], "<string>", "exec", 0, True), vars(main))
        sys.exit()
    path = os.path.abspath(target)
    if not os.path.isfile(path) or b"\0" in _content(path):
        runpy.run_path(target, run_name="__main__")  # a directory, or a zip file
    else:
        main.__file__ = path
        exec(compile(_content(path), path, "exec", 0, True), vars(main))
    sys.exit()


# ==== guards: the start ===========================================================================
# Which program a target is, and how it is started under guards. The ways, first the usual one:
#
#   1. A Python imports the loader by itself: PYTHONPATH leads there, and the loader guards the
#      Python before the first line of the program.
#   2. A Python that ignores PYTHONPATH (-I, -E, -S) is started on the loader, which then runs what
#      the Python was to run.
#   3. Any other program has no hook. The kernel alone must be able to hold its guards, or the
#      program is refused.
#
# What a guarded Python starts in the third way is started by the launcher: a Python without a hook
# runs the loader, which asks the kernel, and then becomes the program.

_SECRET_FILE = "hotenv"  # what Linux calls a file in memory of `run --file`, in /proc/PID/fd

# Seconds that the loader of another version stays. A program that is guarded by it, and runs for
# longer, can then start no child.
_LOADERS_KEPT = 7 * 86400

# A guarded Python imports this file up to the following line, which stands below Launch. The rooms
# above that line cost 3 ms, and all rooms 5. If the line is missing, the whole file is copied.
_LOADER_END = b"\n# -- a guarded Python needs nothing below this line --\n"

# The loader is a file of its own, which Python 2 can read, too.
_LOADER = b"""\
# Written by hotenv, to guard a Python. `site` imports this file, or it is run as a script.
import gc
import os
import sys

HOME = os.path.dirname(os.path.abspath(__file__))


def import_hotenv():
    sys.path.insert(0, HOME)
    import hotenv
    return hotenv


def start_again_without_hook():
    # This Python cannot be guarded by the hook. The launcher has the kernel hold it, and starts it
    # again; then its guards say so.
    lines = os.environ["HOTENV_GUARDS"].split("\\n")
    if "strict-imports" in lines:
        raise RuntimeError("it is no CPython 3.8 or later")
    if "unhooked" not in lines:
        launcher = [line[len("launcher="):] for line in lines if line.startswith("launcher=")][-1]
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\\0")[:-1]
        loader = os.path.join(HOME, "sitecustomize.py")
        line = [launcher, "-I", "-S", loader, "program", sys.prefix, sys.executable]
        os.execv(launcher, line + words)


is_launcher = __name__ == "__main__" and sys.argv[1] == "program"
try:
    if is_launcher:
        import_hotenv()._launch_program(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif sys.version_info < (3, 8) or sys.implementation.name != "cpython":
        start_again_without_hook()
    elif not hasattr(sys, "_hotenv"):
        gc.disable()  # nothing is garbage yet, and to look for some takes a tenth of the time
        hotenv = import_hotenv()
        hotenv._install_guards(os.environ["HOTENV_GUARDS"], HOME)
        gc.enable()
        sys._hotenv = hotenv._become
except BaseException:
    text = "hotenv: cannot guard %s: %s\\n" % (sys.executable, sys.exc_info()[1])
    os.write(2, text.encode("ascii", "replace"))
    os._exit(1)

sys.path[:] = [place for place in sys.path if place != HOME]
if __name__ == "__main__":
    sys._hotenv(sys.argv[1], sys.argv[2:])
else:
    # Later Pythons make the path of a script absolute by themselves.
    if (3,) < sys.version_info < (3, 9) and os.path.isfile(sys.argv[0]):
        sys.modules["__main__"].__file__ = os.path.abspath(sys.argv[0])
    # The sitecustomize that would have run without this one; `site` expects that there is none.
    del sys.modules["sitecustomize"]
    import sitecustomize
"""


def _place_loader() -> str:
    """Return a directory with the loader and what it imports, made if it is missing; OSError.

    The directory is closed to guarded programs. The copy is compiled there for this Python, as a
    guarded one cannot do it under --fs-readonly.
    """
    import zlib
    whole = _content(__file__)  # by its path: shellenv's function gives a module no loader
    source = whole.partition(_LOADER_END)[0]
    directory = _RuntimeDir()
    directory.make()
    runtime = directory.path
    home = f"{runtime}/guards-{zlib.crc32(source):08x}"
    compiled = f"{home}/__pycache__/hotenv.{sys.implementation.cache_tag}.pyc"
    is_guarded = "HOTENV_GUARDS" in os.environ  # then nothing can be written there
    is_complete = _has_loader_files(home)
    if not is_complete or (not is_guarded and not os.path.exists(compiled)):
        _remove_old_loaders(runtime)
        os.makedirs(home + "/__pycache__", 0o700, exist_ok=True)
        _write_module(home, "hotenv", source)
        _write_module(home, "sitecustomize", _LOADER)
    if not is_guarded:
        os.utime(home)  # in use
    return home


def _has_loader_files(home: str) -> bool:
    """Are the files of the loader there? A cleaner of /tmp may have taken any of them."""
    try:
        return {"hotenv.py", "sitecustomize.py"}.issubset(os.listdir(home))
    except OSError:
        return False


def _remove_old_loaders(runtime: str) -> None:
    """Remove the loaders of other versions that nobody has used for a while."""
    import shutil
    for entry in os.scandir(runtime):
        if entry.name.startswith("guards-"):
            try:
                age = time.time() - entry.stat().st_mtime
            except FileNotFoundError:
                continue  # another start removes it, too
            if age > _LOADERS_KEPT:
                shutil.rmtree(entry.path, ignore_errors=True)


def _write_module(home: str, name: str, source: bytes) -> None:
    """Write a module and its bytecode. A Python that starts meanwhile finds a whole file."""
    import py_compile
    path = f"{home}/{name}.py"
    aside = f"{home}/{name}.{os.getpid()}"
    try:
        with open(aside, "wb") as file:
            file.write(source)
        os.rename(aside, path)
    finally:
        _best_effort(os.unlink, aside)  # it is still there where the disk was full
    # Another Python may place the files anew, for itself: they are the same, and only newer.
    compiled = f"{home}/__pycache__/{name}.{sys.implementation.cache_tag}.pyc"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(path, compiled, invalidation_mode=mode)


class _Target:
    """What a target is.

    how       "program": it has no hook; "python": it imports the loader by itself; else it is a
              Python that is started on the loader, which is to run a "script", a "module", "code",
              or a "call" (module:callable)
    place     the path of what is executed
    options   the words behind it, up to what is to be run
    rest      the words that say what is to be run, and its arguments
    script    the path of the file that is to be run, or "" where there is none
    """

    def __init__(self, how: str, place: str, options: Words, rest: Words, script: str = "") -> None:
        """Take what resolve() has found."""
        self.how = how
        self.place = place
        self.options = options
        self.rest = rest
        self.script = script

    def has_hook(self) -> bool:
        """Will the hook be in force in the target?"""
        return self.how != "program"

    def argv(self, home: str) -> Words:
        """Return the command line that starts the target; `home` is the directory of the loader."""
        line = [self.place, *self.options]
        if self.how not in ("program", "python"):
            line += [home + "/sitecustomize.py", self.how]
        return line + self.rest

    def directory(self) -> str:
        """Return where the target's own files are, or "" where it has none."""
        if self.script:
            return os.path.dirname(os.path.realpath(self.script))
        if self.how in ("module", "call") or self.rest[:1] == ["-m"]:
            return os.getcwd()
        return ""

    @classmethod
    def resolve(cls, words: Words, path: str) -> _Target:
        """Return what a target's command line means, with this PATH.

        FileNotFoundError: nothing has that name. OSError: a file cannot be read.
        """
        name = words[0]

        # 1. A callable of a module.
        if "/" not in name and ":" in name:
            return cls("call", sys.executable, [], words)

        # 2. A program. What this Python's environment has comes first; but a Python is the one that
        #    PATH means.
        places = path
        if not _is_python_name(name):
            places = os.path.dirname(sys.executable) + ":" + path
        found = _which(name, places)
        if not found and name.endswith(".py") and os.path.isfile(name):
            found = "./" + name
        if found:
            return cls._of_file(found, words[1:], path)

        # 3. A console script of this Python that is not on PATH, or a module.
        entry_point = _console_script(name)
        if entry_point:
            return cls("call", sys.executable, [], [entry_point, *words[1:]])
        if not _has_module(name):
            reason = "no program on PATH, and no module of this Python"
            raise FileNotFoundError(errno.ENOENT, reason, name)
        return cls("python", sys.executable, [], ["-m", *words])

    @classmethod
    def _of_file(cls, place: str, words: Words, path: str) -> _Target:
        """Return what a file with these arguments is."""
        program = cls("program", place, [], words, script=place)

        def read(file: str) -> bytes:
            return _content(file, _FIRST_LINE)

        # 1. A Python program without a first line is run by this Python.
        is_directory = os.path.isdir(place)
        if is_directory or (place.endswith((".py", ".pyz")) and read(place)[:2] != b"#!"):
            return cls("python", sys.executable, [], [place, *words], script=place)

        # 2. What does the first line of a script say? A Python may be a script, too.
        line = [place, *words]
        if not _is_python_name(place):
            line = _line_of_script(place, words, read(place))
        if not line:
            return program
        interpreter = _real_python(_which(line[0], path))
        if not interpreter:
            return program
        try:
            command = _PythonCommand(interpreter, line[1:])
        except ValueError:
            return program

        # 3. How does that Python run?
        script = ""
        if command.how == "script":
            script = command.rest[0]
        if command.has_loader():
            return cls("python", interpreter, command.options, command.rest, script)
        if command.how == "input":
            return program  # no loader can run what comes from stdin
        rest = command.rest
        if command.how == "module":
            rest = rest[1:]
        return cls(command.how, interpreter, command.options, rest, script)


def _console_script(name: str) -> str:
    """Return the module:callable of a console script of this Python, or ''."""
    from importlib import metadata
    for distribution in metadata.distributions():
        for entry in distribution.entry_points:
            if entry.group == "console_scripts" and entry.name == name:
                return entry.value.partition("[")[0].strip()
    return ""


def _has_module(name: str) -> bool:
    """Has this Python a module of that name?"""
    from importlib.machinery import PathFinder
    top = name.partition(".")[0]
    return PathFinder.find_spec(top, [os.getcwd(), *sys.path]) is not None


def _real_python(place: str) -> str:
    """Return the interpreter that a program called python is, or '' where it is none.

    pyenv, asdf and mise put a script in front of the real one, which has to be asked.
    """
    if not place or not _is_python_name(place):
        return ""
    if _content(place, 2) != b"#!":
        return place if _is_python_name(os.path.realpath(place)) else ""
    import subprocess
    ask = [place, "-IS", "-c", "import sys; print(sys.executable)"]
    return os.fsdecode(subprocess.run(ask, stdout=subprocess.PIPE, check=False).stdout).strip()


class _GuardedStart:
    """A target that is about to be started under guards.

    The constructor does whatever can be done before a fork; become() asks the kernel, and becomes
    the target. HotenvError 1 says why a target cannot be guarded.
    """

    def __init__(self, launch: Launch, guards: Guards) -> None:
        """Find the target, and place the loader."""
        self.guards = guards
        try:
            self.home = _place_loader()
            self.target = _Target.resolve(launch.argv, launch.env.get("PATH", os.defpath))
        except OSError as error:
            name = _shown(str(error.filename or launch.argv[0]))
            raise HotenvError(_EXIT_HERMETIC, f"cannot guard {name}: {_reason(error)}") from None
        self.argv = self.target.argv(self.home)
        outer = os.environ.get("HOTENV_GUARDS", "")
        try:
            self.outer = _Orders.all_of(outer) if outer else []
        except ValueError as error:
            raise HotenvError(_EXIT_HERMETIC, str(error)) from None
        orders = _Orders(guards, self._sealed(launch), self.target.directory(), launch.secrets)
        orders.launcher = sys.executable
        orders.kernel = _kernel_holds_programs(guards)
        orders.unhooked = not self.target.has_hook() or any([each.unhooked for each in self.outer])
        self.orders = orders
        self._text()  # a path that it cannot hold is an error, which must come before a fork
        if not self.target.has_hook() and guards.needs_hook():
            raise _cannot_hold(self.target.place, ["strict-imports"])

    @staticmethod
    def _sealed(launch: Launch) -> Words:
        """Return what no guarded program may touch: hotenv's directories, sessions near here."""
        sealed = [_RuntimeDir.fallback(), _RuntimeDir.choose()]
        sockets = [os.environ.get("HOTENV_SOCKET"), launch.socket_path]
        for name in {"", os.environ.get("HOTENV_NAME", "")}:
            marker = _Marker.find(name)
            if marker:
                sockets.append(marker.named_socket())
        return sealed + [os.path.abspath(path) for path in sockets if path]

    def become(self, env: Values) -> NoReturn:
        """Have the kernel hold what it can, for good, and become the target."""
        place = os.fsencode(self.argv[0])
        if self.target.has_hook():
            held = _KernelPart(self.guards, True, [], place).hold()
            self._note_what_is_held(held)
        elif not self._is_launched():
            if self.guards.allows_hosts():
                _say(f"{_shown(self.argv[0])} is no Python program: it has no network at all, "
                     "whatever is allowed")
            for path in self.guards.writable:
                if not os.path.exists(path):
                    _say(f"--fs-write: {_shown(path)} is missing, and only a Python can make it")
            _hold_program(self.orders, place, [self.home, sys.prefix])
        _HookState(self._text(), self.home).carry(env)
        _exec(self.argv, env, place)

    def _text(self) -> str:
        """Return HOTENV_GUARDS: the guards around this process, and those of the target."""
        return "\n\n".join([orders.to_text() for orders in [*self.outer, self.orders]])

    def _is_launched(self) -> bool:
        """Will the guards of this very process start the target by the launcher?

        The launcher then asks the kernel for these guards, too.
        """
        if not hasattr(sys, "_hotenv"):
            return False
        for orders in self.outer:
            needs_kernel = orders.guards.network or orders.guards.reads_below()
            if needs_kernel and not orders.unhooked:
                return True
        return False

    def _note_what_is_held(self, held: Words) -> None:
        """Say which guards hold for the Python code of the target, and not for C code in it."""
        self.orders.code = "no-network" in held
        if self.guards.read_root and "fs-readonly" not in held:
            self.orders.kernel = False  # what the target starts would not be held, either
        left = _left_open(self.guards, held)
        if left:
            _say_lines(f"[hermetic] for Python code only: {', '.join(sorted(left))}\n")


def _hold_program(orders: _Orders, place: bytes, readable: Words) -> None:
    """Have the kernel hold guards for a program without a hook. HotenvError 1: it cannot.

    Only what lies at `place` can still be executed under --no-subprocess, by these very bytes.
    `readable` is what Pythons below the program need: their own files, and the loader.
    """
    guards = orders.guards
    readable = [*readable, sys.base_prefix, *_places_of_program(os.fsdecode(place))]
    if orders.program:
        readable.append(orders.program)
    held = _KernelPart(guards, False, readable, place).hold()
    left = _left_open(guards, held)
    if left:
        raise _cannot_hold(os.fsdecode(place), left)


def _left_open(guards: Guards, held: Words) -> Words:
    """Return the names of the guards that the kernel was to hold and does not.

    --strict-imports is the hook's alone.
    """
    return [name for name in guards.asked() if name not in held and name != "strict-imports"]


def _places_of_program(place: str) -> Words:
    """Return the paths of a program, of its interpreter if it is a script, and of libraries."""
    places = []
    try:
        line = _line_of_script(place, [], _content(place, _FIRST_LINE))
    except OSError:
        line = []
    interpreter = ""
    if line:
        interpreter = _which(line[0], os.environ.get("PATH", os.defpath))
    for path in (place, interpreter):
        if not path:
            continue
        real = os.path.realpath(path)
        places.append(real)
        directory = os.path.dirname(real)
        if os.path.basename(directory) == "bin":
            for name in ("lib", "lib64", "libexec"):
                places.append(os.path.join(os.path.dirname(directory), name))
    return places


def _cannot_hold(place: str, names: Words) -> HotenvError:
    """Return the error for a program that the guards of these names cannot hold."""
    guards = ", ".join(["--" + name for name in names])
    return HotenvError(
        _EXIT_HERMETIC,
        f"{_shown(place)} is no Python program, and cannot be held to {guards} here",
        "the kernel holds --no-network, --no-subprocess and --fs-readonly, where it can",
        f"see: {_invocation()} help hermetic")


def _launch_program(prefix: str, place: str, argv: Words) -> NoReturn:
    """Have the kernel hold the guards of HOTENV_GUARDS, and become a program without a hook.

    The loader calls this, as the launcher. `prefix` is where the Python that starts the program has
    its own files. The exit status for a failure is a shell's.
    """
    home = os.path.dirname(os.path.abspath(__file__))
    env = _host_environment()
    raw = os.fsencode(place)
    _take_secret_files(env)
    try:
        texts = []
        for orders in _Orders.all_of(env["HOTENV_GUARDS"]):
            _hold_program(orders, raw, [home, prefix])
            orders.unhooked = True
            texts.append(orders.to_text())
        env["HOTENV_GUARDS"] = "\n\n".join(texts)
        _exec(argv, env, raw)
    except HotenvError as error:
        _say_error(error)
        os._exit(126 if error.code == EXIT_SYSTEM else error.code)


def _take_secret_files(env: Values) -> None:
    """Open the files in memory that variables name, and name them as this process's own.

    They belong to the command of `run --file`. Once the kernel holds this process more closely than
    that command, it may not look into the command's descriptors any more.
    """
    import re
    for name, value in env.items():
        if not re.fullmatch(r"/proc/\d+/fd/\d+", value):
            continue
        try:
            if not os.readlink(value).startswith(f"/memfd:{_SECRET_FILE} "):
                continue
            descriptor = os.open(value, os.O_RDONLY)
        except OSError:
            continue  # the command has ended, and its file has gone with it
        os.set_inheritable(descriptor, True)
        env[name] = f"/proc/{os.getpid()}/fd/{descriptor}"


class Launch:
    """What `run` and `hermetic` are to start, and how.

    argv          the words of the command, as str or bytes
    env           its whole environment
    guards        what is taken from it, or None
    redactor      what hides the secrets in its output, or None
    core_limit    with a redactor: the limit of core files to which the command goes back, or None
    files         variables that are to hold the path of a file in memory, with its descriptor
    secrets       names of the session's variables: their values are in no trace
    socket_path   the session that was asked for, which guards close, or None
    """

    def __init__(self, argv: Sequence[str | bytes], env: Env) -> None:
        """Take the command; all else is set afterwards."""
        self.argv = [os.fsdecode(word) for word in argv]
        self.env = dict(env)
        self.guards: Guards | None = None
        self.redactor: Redactor | None = None
        self.core_limit: _CoreLimit | None = None
        self.files: dict[str, int] = {}
        self.secrets: Words = []
        self.socket_path: str | None = None

    def start(self) -> int:
        """Become the command, or run it with its output masked, and return its exit status.

        HotenvError 1: the command cannot be guarded. HotenvError 8: it cannot be started.
        """
        guarded = None
        if self.guards is not None:
            guarded = _GuardedStart(self, self.guards)

        def become() -> NoReturn:
            for name, descriptor in self.files.items():
                os.set_inheritable(descriptor, True)
                self.env[name] = f"/proc/{os.getpid()}/fd/{descriptor}"
            if guarded is None:
                _exec(self.argv, self.env)
            guarded.become(self.env)

        if self.redactor is None:
            become()
        return _run_masked(become, self.redactor, self.core_limit)


# -- a guarded Python needs nothing below this line --


# ==== policy ======================================================================================
# Which commands a piece of shell text runs, and whether an agent may run them. No shell is
# involved.
#
# A policy is advice, and no boundary: `make` and `$((x))` run anything. Its one rule: what the
# reader below cannot follow with certainty is refused, because text that is misread could hide a
# command. The reader knows as much of the shell's grammar as everyday lines need. A test compares
# it with what bash itself runs.

_POLICY_DEPTH = 50  # quotes, substitutions and `case` within each other: more is no everyday line
_POLICY_SHOWN = 20  # names of allowed commands that a refusal repeats

# Each construct of the shell has states, and a reserved word leads from one state to the next.
# A word that leads nowhere from the innermost open state was opened by nothing, and is refused.
_POLICY_OPENS = {"if": "if", "while": "loop", "until": "loop", "{": "group"}
_POLICY_CONTINUES = {
    ("if", "then"): "then",
    ("then", "elif"): "if",
    ("then", "else"): "else",
    ("loop", "do"): "body",
    ("for", "do"): "body",
    ("for", "{"): "group",
}
_POLICY_CLOSES = {("then", "fi"), ("else", "fi"), ("body", "done"), ("group", "}")}
_POLICY_RESERVED = {
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "for", "case",
    "esac", "in", "!", "time",
}
_POLICY_UNKNOWN = {"coproc", "function", "select"}  # the reader does not know what these begin

# A dollar sign that begins no substitution. Since 5.3 bash runs `${ ls; }` and `${|ls; }`. A line
# that ends with a backslash may go on between a dollar sign and what belongs to that sign.
_POLICY_DOLLAR = r"\$\$ | \$(?! \$ | \( | \{ [\s|\\] | \\\n )"
# `${x@P}` runs the substitutions in the value of x.
_POLICY_RUNS_VALUE = r"@ (?:\\\n)* P (?:\\\n)* \}"
# The tokens. Text that no pattern matches is refused.
#
# What an array, or an expression in `[[ ]]`, may hold: nothing that runs a command.
_POLICY_PLAIN = rf"""
    (?!{_POLICY_RUNS_VALUE}) [^`$"'\\<>#;&()] | (?: {_POLICY_DOLLAR} )(?!') | \\. | '[^']*'
  | "(?: (?!{_POLICY_RUNS_VALUE}) [^"`$\\] | \\. | {_POLICY_DOLLAR} )*"
"""
# What a word may hold, in double quotes too: an escaped character, `${...}` and `$((...))`, without
# a substitution in it.
_POLICY_TEXT = r"""
    \\[^`\n] | \$\{ (?! [\s|] | [^}]*@P ) [^{}()`$"'\\]* \} | \$\(\( [^()`$"'\\]* \)\) | \$\$
"""
_POLICY_TOKEN_IN_QUOTES = rf"""(?xs)
    (?P<text> {_POLICY_TEXT} | \\\n | \\` | \$(?![({{] | \\\n) | [^"`$\\]+ )
  | (?P<backtick> ` )
  | (?P<opens> \$\( )
  | (?P<closes> " )
"""
# `opens` and `closes` are the ends of quotes, substitutions and subshells. `tests` are `((...))`
# and `[[ ... ]]`. `branch` ends a branch of `case`. `joins` continues a line.
_POLICY_TOKEN = rf"""(?xs)
    (?P<joins> \\\n )
  | (?P<blank> [ \t]+ )
  | (?P<comment> \#[^\n]* )
  | (?P<heredoc> \d*<<(?!<) (?P<dash>-?) [ \t]*
        (?P<quote>\\?['"]?) (?P<end>[\w.-]+) ['"]? (?=[\s;&|<>)]) )
  | (?P<redirect>
        (?: \d*(?:<<<|<>|>>|>\||[<>]&|<(?![<(])|>(?!\()) | &>>? ) (?: [ \t] | \\\n )* )
  | (?P<tests>
        \(\( (?: (?!{_POLICY_RUNS_VALUE}) [^()`$"'\\] | {_POLICY_DOLLAR} | \([^()`$"'\\]*\) )* \)\)
      | \[\[\s (?: (?!\[\[\s) (?: {_POLICY_PLAIN} | [&()] | [<>](?!\() ) )*? \s\]\](?=[\s;&|)]) )
  | (?P<function> [\w.:-]+[ \t]*\([ \t]*\) )
  | (?P<branch> ;;& | ;; | ;& )
  | (?P<ends> \n | [;&|]+ )
  | (?P<text> {_POLICY_TEXT} | \\` | \w+\+?=\( (?:{_POLICY_PLAIN})* \) | \$(?![({{"'] | \\\n)
            | '[^']*' | \$'(?:[^'\\]|\\.)*' | [^ \t\n;&|()<>`\\'"$]+ )
  | (?P<backtick> ` )
  | (?P<opens> \$?" | \$\( | [<>]?\((?!\s*\)) )
  | (?P<closes> \) )
"""
_POLICY_IN_HEREDOC = rf"""(?x)  # what would run a command there
    ` | \$(?: \( | \{{ [\s|\\] | \\\n ) | {_POLICY_RUNS_VALUE}
"""
_POLICY_ASSIGNMENT = r"[A-Za-z_]\w*(\[[^]]*\])?\+?="
_POLICY_EXPANSION = r"[`${[(*?\n]"  # in a command's name: its result would be run
_POLICY_LAST_SIGNS = {"\n", ";", "&", "|", "&&", "||", "|&"}  # what may end a command


class _Unclear(Exception):
    """This shell text cannot be followed with certainty. `str()` says why, or is empty."""


class _CommandReader:
    """Reads shell text, and collects the first word of each simple command in that text.

    Commands within substitutions and branches count as well.
    """

    def __init__(self, text: str) -> None:
        """Take the text of a command, of a script, or of several lines."""
        import re
        self.text = text + "\n"  # so that each command ends with a line
        self.position = 0
        self.commands: Words = []
        self.inner_kinds: set[str] = set()  # of `case` and here-documents within substitutions
        self._match_token = re.compile(_POLICY_TOKEN).match
        self._match_token_in_quotes = re.compile(_POLICY_TOKEN_IN_QUOTES).match

    def read(self) -> Words:
        """Return the first words of all commands, in order; _Unclear if one cannot be told."""
        _CommandList(self, depth=0).read(closer="")
        return self.commands

    def note_inner(self, kind: str) -> None:
        """Take note of a `case` or a here-document within a substitution.

        Where both are there, bash 5 runs other text than stands there: it loses a semicolon.
        """
        self.inner_kinds.add(kind)
        if len(self.inner_kinds) > 1:
            raise _Unclear

    def next_token(self, in_quotes: bool = False) -> tuple[str, str, re.Match[str]]:
        """Return the kind of the next token, its text, and its match."""
        if in_quotes:
            token = self._match_token_in_quotes(self.text, self.position)
        else:
            token = self._match_token(self.text, self.position)
        if not token or not token.lastgroup:
            raise _Unclear
        if token.lastgroup == "backtick":
            raise _Unclear("write $(...) in place of backticks")
        self.position = token.end()
        return token.lastgroup, token[0], token

    def read_quotes(self, depth: int) -> None:
        """Go on behind the double quote that closes."""
        if depth >= _POLICY_DEPTH:
            raise _Unclear
        while True:
            kind, sign, _ = self.next_token(in_quotes=True)
            if kind == "closes":
                return
            if kind == "opens":
                self.read_within(sign, depth)

    def read_within(self, opening: str, depth: int) -> None:
        """Go on behind whatever `opening` (a quote, `$(`, `<(`, ...) opens."""
        if opening.endswith("("):
            _CommandList(self, depth + 1).read(closer=")")
        else:
            self.read_quotes(depth + 1)


class _CommandList:
    """The commands of one level: of the whole text, of a substitution, or of a branch of `case`."""

    # The states: what may come next.
    START = "start"  # a command or a reserved word
    TIMED = "timed"  # behind `time`: its options, a command or a reserved word
    NAME = "name"  # behind an assignment or a redirection: a command, but no reserved word
    ARGUMENTS = "arguments"  # behind a command's name: any words
    CLOSED = "closed"  # behind `fi`: redirections, or a reserved word of the outer construct
    LOOP = "loop"  # between `for` and `do`

    def __init__(self, reader: _CommandReader, depth: int) -> None:
        self.reader = reader
        self.depth = depth
        self.state = self.START
        self.open: Words = []  # the states of the constructs that are open here, the innermost last
        self.word = ""  # the word that is being read
        self.is_target = False  # whether that word is the file of a redirection
        self.is_piped = False  # whether a `|` stands before what may come next
        self.heredocs: list[re.Match[str]] = []  # their texts come after the end of this line

    def read(self, closer: str) -> None:
        """Go on behind `closer`; without one, read to the end of the text."""
        self._check_depth()
        while closer or self.reader.position < len(self.reader.text):
            start = self.reader.position
            kind, sign, token = self.reader.next_token()
            if sign == closer:
                self._end_word()
                if self.open or self.heredocs:
                    raise _Unclear
                return
            self._read_token(start, kind, sign, token)
        if not self._is_between_commands():
            raise _Unclear

    def read_branch(self) -> None:
        """Read the commands of a branch of `case`: go on behind `;;` and such, or before `esac`."""
        self._check_depth()
        while not (self._is_between_commands() and self._is_esac_ahead()):
            start = self.reader.position
            kind, sign, token = self.reader.next_token()
            if kind == "branch":
                self._end_word()
                if self.open or self.heredocs:
                    raise _Unclear
                return
            self._read_token(start, kind, sign, token)

    def _check_depth(self) -> None:
        """Refuse a level that is too deep, before the recursion is."""
        if self.depth >= _POLICY_DEPTH:
            raise _Unclear

    def _is_in_word(self) -> bool:
        """Has a word begun, or must one follow as the file of a redirection?"""
        return bool(self.word) or self.is_target

    def _is_between_commands(self) -> bool:
        """May this level end here, because no command and no construct has begun?"""
        return self.state == self.START and not self.open and not self._is_in_word()

    def _is_esac_ahead(self) -> bool:
        """Is `esac` the next word?"""
        import re
        esac = re.compile(r"esac(?=[\s;&|()<>])")
        return esac.match(self.reader.text, self.reader.position) is not None

    def _read_token(self, start: int, kind: str, sign: str, token: re.Match[str]) -> None:
        """Follow a token, which began at `start`, and whatever it opens."""
        if kind in ("opens", "closes") and self.heredocs:
            raise _Unclear
        if kind == "comment" and self._is_in_word():
            raise _Unclear
        if kind == "joins" and self.reader.position == len(self.reader.text):
            raise _Unclear  # a backslash at the very end joins nothing: it is a word
        digits = sign[:len(sign) - len(sign.lstrip("0123456789"))]
        if kind in ("redirect", "heredoc") and digits and self._is_in_word():
            # The digits name no descriptor: they belong to the word.
            kind, sign = "text", digits
            self.reader.position = start + len(digits)
        if kind == "text":
            self.word += sign
        elif kind == "opens" and sign == "(":
            self._read_subshell()
        elif kind == "opens":
            self.reader.read_within(sign, self.depth)
            self.word += self.reader.text[start:self.reader.position]
        elif kind != "joins":
            self._end_word()
            self._read_sign(kind, sign, token)

    def _read_subshell(self) -> None:
        """Read `( ... )` where a command may begin."""
        if self._is_in_word() or self.state not in (self.START, self.TIMED):
            raise _Unclear
        self.reader.read_within("(", self.depth)
        self.state = self.CLOSED

    def _read_sign(self, kind: str, sign: str, token: re.Match[str]) -> None:
        """Take note of a token that is no part of a word."""
        if kind == "redirect":
            self.is_target = True
        elif kind == "heredoc":
            self.heredocs.append(token)
            if self.depth:
                self.reader.note_inner("heredoc")
        elif kind == "ends":
            self._end_command(sign)
        elif kind == "tests" and self.state == self.LOOP:
            pass  # for ((...))
        elif kind == "tests":
            self._expect_start()
            self.state = self.CLOSED
        elif kind == "function":
            self._expect_start()
            self.state = self.START
        elif kind in ("closes", "branch"):
            raise _Unclear  # nothing is open that this sign could close

    def _end_command(self, sign: str) -> None:
        """Begin the next command behind a new line, a semicolon and such."""
        if sign not in _POLICY_LAST_SIGNS:
            raise _Unclear
        self.is_piped = sign in ("|", "|&")
        if self.state != self.LOOP:
            self.state = self.START
        elif sign not in ("\n", ";"):
            raise _Unclear
        if sign == "\n":
            self._skip_heredocs()

    def _expect_start(self) -> None:
        """Refuse what stands here, unless a command may begin here."""
        if self.state not in (self.START, self.TIMED):
            raise _Unclear

    def _end_word(self) -> None:
        """The word is complete. Take note of what it means where it stands."""
        word, is_target = self.word, self.is_target
        self.word = ""
        self.is_target = False
        if is_target:
            if self.state in (self.START, self.TIMED):
                self.state = self.NAME
            return
        if not word or self.state == self.ARGUMENTS:
            return
        if self.state == self.LOOP:
            if word in ("do", "{"):
                self._take_reserved(word)
            return  # any other word is the variable of the loop, `in`, or an item
        if self.state == self.TIMED and word in ("-p", "--"):
            return
        if self.state != self.NAME and word in _POLICY_RESERVED:
            self._take_reserved(word)
        elif self.state == self.CLOSED:
            raise _Unclear  # only a reserved word may stand here
        else:
            self._take_command(word)

    def _take_reserved(self, word: str) -> None:
        """Follow a reserved word from the state of the innermost construct to the next state."""
        if word == "time" and self.is_piped:
            raise _Unclear("behind `|`, `time` is a program: write it before the whole pipeline")
        self.is_piped = False
        innermost = self.open[-1] if self.open else ""
        if (innermost, word) in _POLICY_CONTINUES:
            self.open[-1] = _POLICY_CONTINUES[innermost, word]
            self.state = self.START
        elif (innermost, word) in _POLICY_CLOSES:
            self.open.pop()
            self.state = self.CLOSED
        elif self.state == self.CLOSED:
            raise _Unclear  # behind `fi`, no new construct begins
        elif word in _POLICY_OPENS:
            self.open.append(_POLICY_OPENS[word])
            self.state = self.START
        elif word == "for":
            self.open.append("for")
            self.state = self.LOOP
        elif word == "case":
            self._read_case()
        elif word == "time":
            self.state = self.TIMED
        elif word == "!":
            self.state = self.START
        else:
            raise _Unclear(f"nothing opens this `{word}`")

    def _read_case(self) -> None:
        """Read behind `case`: a word, `in`, the branches, `esac`."""
        if self.depth:
            self.reader.note_inner("case")
        self._read_case_word()
        if self._read_case_word() != "in":
            raise _Unclear
        self._skip_space()
        while not self._is_esac_ahead():
            self._read_pattern()
            _CommandList(self.reader, self.depth + 1).read_branch()
            self._skip_space()
        self.reader.position += len("esac")
        self.state = self.CLOSED

    def _skip_space(self) -> None:
        """Go on to what is no blank, no new line and no comment."""
        import re
        space = re.compile(r"(?: [ \t\n] | \\\n | \#[^\n]*\n )*", re.VERBOSE)
        found = space.match(self.reader.text, self.reader.position)
        if found:
            self.reader.position = found.end()

    def _read_case_word(self) -> str:
        """Return the next word behind `case`; substitutions may stand in it."""
        self._skip_space()
        start = self.reader.position
        while True:
            end = self.reader.position
            kind, sign, _ = self.reader.next_token()
            if kind == "opens" and sign != "(":
                self.reader.read_within(sign, self.depth)
            elif kind != "text":
                break
        self.reader.position = end
        if end == start or kind not in ("blank", "ends", "joins"):
            raise _Unclear
        return self.reader.text[start:end]

    def _read_pattern(self) -> None:
        """Go on behind the `)` that ends the patterns of a branch."""
        kind, sign, _ = self.reader.next_token()
        if kind == "opens" and sign == "(":
            kind, sign, _ = self.reader.next_token()
        is_empty = True
        while kind != "closes":
            if kind == "opens" and sign != "(":
                self.reader.read_within(sign, self.depth)
            elif kind not in ("text", "blank") and sign != "|":
                raise _Unclear
            if kind != "blank":
                is_empty = False
            kind, sign, _ = self.reader.next_token()
        if is_empty:
            raise _Unclear

    def _take_command(self, word: str) -> None:
        """Collect a command's name, as the shell has it without its quotes."""
        import re
        if re.match(_POLICY_ASSIGNMENT, word):
            self.state = self.NAME
            return
        if word in _POLICY_UNKNOWN:
            raise _Unclear(f"`{word}` is not known here")
        if word not in ("[", "[[") and re.search(_POLICY_EXPANSION, word):
            raise _Unclear("the name of a command must be plain")
        if '"' in word and re.search(r"['\\]", word):
            raise _Unclear("the name of a command is in two kinds of quotes")
        self.reader.commands.append(re.sub(r"\\(.)|'([^']*)'|\"", r"\1\2", word))
        self.state = self.ARGUMENTS

    def _skip_heredocs(self) -> None:
        """Skip the texts of the here-documents that this line began.

        A text that would run commands is refused.
        """
        import re
        for heredoc in self.heredocs:
            indent = "\t*" if heredoc["dash"] else ""
            last_line = rf"(?ms)(.*?)^{indent}{re.escape(heredoc['end'])}$"
            body = re.compile(last_line).match(self.reader.text, self.reader.position)
            if not body:
                raise _Unclear
            if not heredoc["quote"] and re.search(_POLICY_IN_HEREDOC, body[1]):
                raise _Unclear
            self.reader.position = body.end()
        self.heredocs = []


def _load_policy(policy: Any) -> Json:
    """Return `{"allow": [...], "deny": [...]}`, read from the file of this name, or taken as it is.

    An empty list `allow` allows nothing; no such list allows everything. HotenvError 2 or 8.
    """
    import json
    form = 'a policy is JSON like {"allow": ["git", "ls"], "deny": ["sudo"]}'
    if isinstance(policy, str):
        try:
            policy = json.loads(_content(policy))
        except OSError as error:
            raise _system_error(error, "cannot read the policy " + _shown(policy)) from None
        except (ValueError, RecursionError):
            raise _usage(form) from None
    if not isinstance(policy, dict):
        raise _usage(form)
    for name in policy:
        if name not in ("allow", "deny"):
            raise _usage(f"a policy has no key {ascii(name)}, but allow and deny", form)
    if not all(map(_is_list_of_words, policy.values())):
        raise _usage(form)
    return policy


def _is_list_of_words(words: Any) -> bool:
    """Is this a list, a tuple or a set of strings?"""
    if not isinstance(words, (list, tuple, set, frozenset)):
        return False
    return all([isinstance(word, str) for word in words])


def _policy_summary(policy: Json) -> str:
    """Return in a few words which commands a policy lets run, or ''."""
    parts = []
    if policy.get("allow") is not None:
        parts.append("allowed: " + (_policy_names(policy["allow"]) or "nothing"))
    if policy.get("deny"):
        parts.append("denied: " + _policy_names(policy["deny"]))
    return "; ".join(parts)


def _policy_names(words: Iterable[str]) -> str:
    """Return names as one line, and of many only the first."""
    names = sorted(words)
    shown = ", ".join(map(_shown, names[:_POLICY_SHOWN]))
    if len(names) > _POLICY_SHOWN:
        shown += f" and {len(names) - _POLICY_SHOWN} more"
    return shown


def _denied(policy: Json, command: str) -> str:
    """Return why the policy does not let the command run, or ''."""
    if not policy:
        return ""
    try:
        words = _CommandReader(command).read()
    except _Unclear as unclear:
        reason = "its commands cannot be told apart"
        if str(unclear):
            reason += f" ({unclear})"
        return reason
    denied = policy.get("deny", ())
    allowed = policy.get("allow")
    for word in words:
        if word in denied or os.path.basename(word) in denied:
            return word + " is denied"
        if allowed is not None and word not in allowed:
            return word + " is not among the allowed"
    return ""


# ==== shell =======================================================================================
# A live bash for whoever may use the secrets without seeing them. Each command has one result,
# which is masked, bounded and audited. A shell is no sandbox, and takes no guards.
#
# The rules:
#
#   1. The shell reads its text from a pipe. A command gets /dev/null, the pipe O and the pipe E as
#      its descriptors 0, 1 and 2, and none of the shell's others.
#   2. On a pipe N of its own the shell says that a command begins, and when the command or the
#      shell has ended: a record with status, directory, background jobs and exports. The bytes of N
#      never go to a result. A remote shell has two streams: there records travel on stdout.
#   3. Each message begins and ends with a nonce. The shell reads the nonce of a record behind the
#      command, so nothing that the command prints can pass for the record of its end. A command
#      that sets a trap, or that reads the nonce in the EXIT trap, can forge a record: that deceives
#      about its own shell alone, which it can as well end or change.
#   4. A time limit is one Ctrl-C: each process gets SIGINT once. Whatever is there two seconds
#      later is killed, with the shell. Neither costs the shell before the command has begun.
#   5. A shell that has ended is replaced: its directory and its exports are kept, and the result
#      says `shell_restarted`.
#   6. Nothing of a shell outlives its host: a guard beside each shell ends its processes when a
#      pipe from the host ends. At the far side of a remote shell a relay does so when its stdin
#      ends.
#   7. Text is masked, cleaned of control sequences, and masked again, before anything is cut.

_SHELL_MAX_OUTPUT = 100_000  # characters of stdout, and of stderr: more than an agent reads
_SHELL_TIMEOUT = 30.0  # seconds for a command that names no limit of its own
_SHELL_GRACE = 2.0  # seconds for an interrupted command to end: then it and the shell are killed
_SHELL_INTERRUPT_ROUNDS = 8  # looks within that time at what must be told once more
_SHELL_SETTLE = 0.05  # seconds before an interrupt: bash loses one while it starts a command
_SHELL_CONNECT = 30.0  # seconds for a shell to start, to read a very long command, or to be ended
_SHELL_PROBE = 3.0  # seconds until a silent remote is asked by a second connection what is wrong
_SHELL_FAREWELL = 2.0  # seconds for a remote shell's far side to end everything there
_SHELL_LAST_WORDS = 0.5  # seconds for a shell to end that has said that it ends
_SHELL_EXEC_LOOKS = 5  # looks at a young process that shows no environment
_SHELL_KILL_ROUNDS = 20  # looks, about a second, at whether all that was killed is gone
_SHELL_COMMAND_MAX = 16 << 20  # bytes of one command: bash reads 5 MB a second
_SHELL_RECORD_MAX = 64 << 20  # bytes of one record: as many as `serve` accepts
_SHELL_PIPE = 1 << 20  # bytes in a pipe, where the system allows it: fewer wake-ups
_SHELL_OUTPUT_KEPT = 8 << 20  # bytes of one output that can be read later
_SHELL_OUTPUTS_KEPT = 16 << 20  # bytes of a shell's last outputs together
_SHELL_PIECE = 64 << 10  # bytes: smaller pieces of output are joined
_SHELL_JOBS_MAX = 16  # jobs of a shell that run at once
_SHELL_AUDITED = 1000  # characters of stdout, and of stderr, that a line of the audit repeats
_SHELL_JOB_KEPT = 4 << 20  # bytes of each output of a job
_SHELL_INPUT_MAX = 16 << 20  # bytes that wait until a job reads them
_SHELL_MATCHED = 1000  # characters of a line in which a pattern is looked for
_SHELL_TERMINAL_SIZE = (40, 120)  # lines and columns of a job's terminal
_SHELL_TICK = 1.0  # seconds between two looks at how a command gets on
_SHELL_SILENCE = 15.0  # seconds without output after which that is news, too
_STAT_START = 19  # the place of `starttime` behind the name in /proc/PID/stat: proc(5) counts 22

_SHELL_BASH = ["bash", "--norc", "--noprofile", "--noediting", "+o", "history", "-i"]
_SHELL_JOB_BASH = ["bash", "--norc", "--noprofile"]

# Each of these variables would change what the shell's text means, or would have the shell run,
# print, log or end something on its own.
_SHELL_DROPPED = [
    "BASH_ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "TMOUT", "IGNOREEOF", "SHELLOPTS",
    "BASHOPTS", "BASH_XTRACEFD", "POSIXLY_CORRECT", "HISTFILE", "BASH_FUNC_*",
]


# -- the text that the shells read -----------------------------------------------------------------

# In the shell, O, E and N are the descriptors 50, 51 and 52: hardly a script uses these numbers,
# and `ulimit -n 64` allows them. A remote shell marks the end of stderr by way of descriptor 53.
_SHELL_ARRANGE_HERE = b"exec 52>&%d- 50>&1 51>&2 53>/dev/null >/dev/null 2>&1\n"
_SHELL_ARRANGE_THERE = b"exec 50>&3 51>&4 52>&3- 53>&4-\n"

# One command: the mark of its beginning, the status of the command before, the command in quotes,
# and twice the nonce of its record. The last line ends a shell that could not write its record.
_SHELL_COMMAND = b"""\
__hotenv_begin %s %d; \\builtin eval %s 52>&- </dev/null >&50 2>&51 50>&- 51>&- 53>&-
__hotenv_end %s "$?"
[[ ${__hotenv_n-} == %s ]] || \\builtin exit 1 || \\exit 1 || \\kill -9 $$
"""

# Comments, which begin a line here, are not sent. {LAST} is the nonce of the record in the EXIT
# trap.
_SHELL_SETUP = rb"""
unset PROMPT_COMMAND PS0 HISTFILE MAILCHECK TMOUT
PS1= PS2= PS4='+ '
set +H
# An array is never exported, not even under `set -a`.
declare -a __hotenv_n=(10)

# __hotenv_begin MARK STATUS: say that a command begins, and return the status of the one before,
# which is `$?` for this one. With `set -e`, to return a status would end the shell.
# While the command runs, N is closed. Bash holds a copy of N, to restore it from, at the descriptor
# that was the lowest free one from 10 on: its number is noted for the EXIT trap.
# `builtin eval` sets the variable, so a shell without `eval` says that nothing has begun.
__hotenv_begin() {
builtin eval __hotenv_n=10 || builtin return
while [[ -e /dev/fd/$__hotenv_n ]]; do (( ++__hotenv_n )); done
builtin printf '\0%s\n' "$1" >&52
builtin printf '\0%s\n' "$1" >&53
[[ -o errexit ]] || builtin return "$2"
}

# __hotenv_end NONCE STATUS [DESCRIPTOR]: write a record, and return the status. The probe finds out
# whether `builtin` is a function now, which is then removed: only in POSIX mode, bash finds `unset`
# before a function of that name. Once the record is written, __hotenv_n has the nonce.
__hotenv_end() {
builtin printf -v __hotenv_probe %s "$1"
if [[ ${__hotenv_probe-} != "$1" ]]; then
POSIXLY_CORRECT=1; unset -f builtin; unset POSIXLY_CORRECT; builtin shopt -u inherit_errexit
fi
builtin unset -v __hotenv_probe PROMPT_COMMAND
{
builtin printf '\0%s\0%s\0' "$1" "$2"
builtin pwd
builtin printf '\0' && builtin jobs -p &&
builtin printf '\0' && builtin export -p &&
builtin printf '\0%s\n' "$1"
} >&"${3:-52}" || builtin return 1
[[ ${3-} ]] || builtin printf '\0%s\n' "$1" >&53
builtin eval '__hotenv_n=$1'
[[ -o errexit ]] || builtin return "$2"
}

# __hotenv_go DIRECTORY: change to it, or to the nearest directory above that is there.
__hotenv_go() {
until builtin cd -- "$1" 2>/dev/null; do
__hotenv_gone=1
[[ $1 == */* && $1 != / ]] || builtin exit 1
set -- "${1%/*}"
[[ $1 ]] || set -- /
done
}
readonly -f __hotenv_begin __hotenv_end

# When the shell ends, it says how it was then: on N, or on the copy of N. The status of this record
# is 1 if the shell ends by `exit`, of which an interactive bash writes a line on stderr. A subshell
# that is interrupted before it has dropped this trap says nothing.
trap '[[ ${BASHPID-$$} != "$$" ]] || {
__hotenv_said=0; [[ $BASH_COMMAND != *exit* && $BASH_COMMAND != *logout* ]] || __hotenv_said=1
[[ ! -p /dev/fd/52 && ! -S /dev/fd/52 ]] || __hotenv_n=52
[[ ! -p /dev/fd/$__hotenv_n && ! -S /dev/fd/$__hotenv_n ]] ||
__hotenv_end {LAST} "$__hotenv_said" "$__hotenv_n" 2>/dev/null
}' EXIT
"""

# How a shell takes its place: the directory, the exports of the shell before, and its first record.
# A first shell must reach its directory; a later one goes to the nearest that is there. Then PWD,
# which the exports have set to the directory that is gone, is set anew.
# The mark of a shell, by which its processes are known, is its own, and not one of the exports.
_SHELL_KEEP_MARK = b"__hotenv_mark=$HOTENV_SHELL\n"
_SHELL_OWN_MARK = b"export HOTENV_SHELL=\"$__hotenv_mark\"; unset -v __hotenv_mark\n"
_SHELL_FIRST_PLACE = b"\\builtin cd -- %s || exit 1\n"
_SHELL_LATER_PLACE = b"__hotenv_go %s\n"
_SHELL_SETTLED = b"""\
[[ ! ${__hotenv_gone-} ]] || \\builtin cd .
unset -v __hotenv_gone; unset -f __hotenv_go
__hotenv_end %s 0
"""
_SHELL_FORGET_EXPORTS = b"\\builtin unset -v $(\\builtin compgen -e)\n"

# A job is a bash of its own, which runs one line. Its script is read from a pipe at descriptor N.
_SHELL_JOB_HERE = b"exec %d<&-\n"
_SHELL_JOB_THERE = b"exec >&3 2>&4 3>&- 4>&-\n"
_SHELL_JOB_LINE = b"{ \\builtin eval %s; \\builtin exit; }\n"
# Programs ask what kind of terminal it is. The host may have none, and so no name for one.
_SHELL_JOB_TERMINAL = b'\\builtin export TERM="${TERM:-dumb}"\n'
# On a remote machine, a program makes the terminal. It hands the command on in a variable, which
# others cannot read.
_SHELL_JOB_ON_TERMINAL_THERE = b"""\
{ \\builtin command -v script >/dev/null || {
echo 'there is no program `script` here, which makes a terminal' >&2; exit 127; }
export HOTENV_COMMAND=%s SHELL="$BASH"
exec script -qefc '
c=$HOTENV_COMMAND; unset HOTENV_COMMAND; stty rows 40 cols 120; eval "$c"' /dev/null; }
"""

# The guard beside a shell: when the pipe from its host ends, it ends the session of the process $1,
# and whatever has the mark $2 in its environment. A process may fork meanwhile, so the guard looks
# several times.
_SHELL_GUARD = """\
read -r line
kill -9 -$1
for round in 1 2 3 4 5 6; do
    for each in /proc/[0-9]*/stat; do
        read -r line <$each || continue
        set -- $1 $2 ${line##*) }
        if [ "$6" = "$1" ]; then
            each=${each%/stat}
            kill -9 ${each#/proc/}
        fi
    done
    for each in $(grep -lsF $2 /proc/[0-9]*/environ); do
        each=${each%/environ}
        kill -9 ${each#/proc/}
    done
done
"""

_SHELL_NO_BASH = "hotenv finds no bash here"

# What the login shell of a remote reads first. That shell may read ahead, so all stands in one
# line: it prints {B}, to say that it is there, and becomes a bash, which reads what comes next.
_SHELL_GREETING = rb"""printf '\0%s\n' {B}; printf '\0%s\n' {B} >&2; \
exec env PS0= PS1= PROMPT_COMMAND= sh -c '\
HOTENV_SHELL="${HOTENV_SHELL-} {B}"; export HOTENV_SHELL; \
command -v bash >/dev/null 2>&1 || { echo "{NO_BASH}" >&2; exit 127; }; \
exec bash --norc --noprofile'
""".replace(b"\\\n", b"").replace(b"{NO_BASH}", _SHELL_NO_BASH.encode())

# The far side of a remote shell: a relay reads stdin, and hands lines on to the shell proper. A
# line that begins with {B} is meant for the relay itself. When stdin ends, the relay ends all that
# the shell has started. {ARGUMENTS} are those of the shell proper. Comments are not sent.
_SHELL_RELAY = rb"""
# Read the processes that there are into the arrays parent, group, session and name.
__hotenv_list() {
parent=() group=() session=() name=()
local each line pid
if [[ -e /proc/self/stat ]]; then
for each in /proc/[0-9]*/stat; do
{ read -r line <"$each"; } 2>/dev/null || continue
pid=${each#/proc/}; pid=${pid%/stat}
set -- ${line##*) }
[[ $1 != [ZX] ]] || continue
parent[pid]=$2 group[pid]=$3 session[pid]=$4
line=${line#*(}; line=${line%)*}; name[pid]=${line//[^A-Za-z0-9]/_}
done
else
while read -r pid each line; do
set -- $line
parent[pid]=$each group[pid]=$1 session[pid]=0 name[pid]=${2//[^A-Za-z0-9]/_}
done < <(ps -Ao pid=,ppid=,pgid=,ucomm=)
fi
}

# __hotenv_below PID... : put into `family` all processes below those, but for `spared` ones, and
# but for this relay.
__hotenv_below() {
local pid grew=1 known=" $* "
family=
while (( grew )); do
grew=0
for pid in "${!parent[@]}"; do
[[ $known != *" $pid "* && " $spared $relay " != *" $pid "* ]] || continue
[[ $known == *" ${parent[pid]} "* ]] || continue
known+="$pid "; family+=" $pid"; grew=1
done
done
}

# Put the number of the shell proper, a child of this bash, into `shell`.
__hotenv_find_shell() {
local pid
shell=
for pid in "${!parent[@]}"; do
[[ ${parent[pid]} != "$$" || $pid == "$relay" ]] || shell=$pid
done
}

# __hotenv_interrupt NUMBER SPARED... : one Ctrl-C for the shell and all below it, but for those
# that are spared. A second one for the same command (NUMBER) only once all are gone that were told.
__hotenv_interrupt() {
local pid others= shell
[[ $1 == "$number" ]] || told=" "
number=$1
shift
spared=$*
__hotenv_list
__hotenv_find_shell
[[ $shell ]] || return
__hotenv_below "$shell"
for pid in $family; do
[[ $told != *" $pid:${name[pid]} "* ]] || return
done
for pid in $family; do
told+="$pid:${name[pid]} "
[[ ${group[pid]} == "$shell" ]] || others+=" $pid"
done
if [[ $spared ]]; then
kill -INT $shell $family
else
kill -INT -- "-$shell" $others
fi
}

# Let the shell proper go on, if somebody has stopped it.
__hotenv_continue() {
local shell
__hotenv_list
__hotenv_find_shell
[[ ! $shell ]] || kill -CONT $shell
}

# End all that the shell has started: below it, in its session, or with {B} in its environment.
__hotenv_finish() {
local pid all round
spared=
for round in 1 2 3 4 5 6; do
__hotenv_list
__hotenv_below "$$"
all=$family
[[ ${session[$$]-} != "$$" ]] || for pid in "${!session[@]}"; do
[[ ${session[pid]} != "$$" ]] || all+=" $pid"
done
for pid in $(grep -lsF {B} /proc/[0-9]*/environ 2>/dev/null); do
pid=${pid#/proc/}; all+=" ${pid%/environ}"
done
family=
for pid in $all; do
[[ $pid != "$$" && $pid != "$relay" && ${parent[pid]-$relay} != "$relay" ]] || continue
family+=" $pid"
[[ ${group[pid]} == "${group[relay]}" ]] || kill -9 -- "-${group[pid]}"
done
[[ $family ]] || break
kill -9 $family
done
exit
}

# __hotenv_pass SIZE: hand on so many bytes, which end with a line. The `head` of Linux reads no
# byte more than it prints.
__hotenv_pass() {
local left=$1 line
if [[ -e /proc/self/stat ]]; then
head -c "$left"
return
fi
while (( left > 0 )) && IFS= read -r line; do
printf "%s\n" "$line"
(( left -= ${#line} + 1 ))
done
}

# Read stdin to its end; lines for the relay itself begin with {B}.
__hotenv_relay() {
local line relay number= told=" " spared= family= LC_ALL=C
local -a parent group session name
trap "" INT PIPE HUP TERM
trap __hotenv_finish USR1
relay=$(exec sh -c "echo \$PPID")
while IFS= read -r line; do
case $line in
{B}\ continue) __hotenv_continue ;;
{B}\ interrupt\ *) __hotenv_interrupt ${line#* * } ;;
{B}\ pass\ *) __hotenv_pass "${line#* * }" ;;
{B}\ write\ *) printf %b "${line#* * }" ;;
{B}\ end) exec >/dev/null ;;
*) printf "%s\n" "$line" ;;
esac
done
__hotenv_finish
}
exec 3>&1 4>&2 5<&0 >/dev/null 2>&1
# With `set -m` the shell proper has a process group of its own. What follows is one line, because
# here no more of stdin is read. When the shell has ended, the relay is told, and has time to
# finish.
set -m
exec 6< <(__hotenv_relay <&5 3>&- 4>&- 5<&-); set -- $!; bash {ARGUMENTS} <&6 6<&- 5<&-; \
set -- $? $1; kill -USR1 $2; wait $2; exit $1
"""


def _shell_text(text: bytes) -> bytes:
    """Return the text of a shell without its comments and empty lines."""
    lines = []
    for line in text.split(b"\n"):
        if line and not line.startswith(b"#"):
            lines.append(line + b"\n")
    return b"".join(lines)


# -- results ---------------------------------------------------------------------------------------


class SessionPoisoned(HotenvError):
    """The session has no shell and cannot get a new one: it refuses each command. `.code` is 8."""


def _poisoned(poison: list[HotenvError]) -> SessionPoisoned:
    """Return the error for a session without a shell: the first reason counts."""
    return SessionPoisoned(EXIT_SYSTEM, str(poison[0]), *poison[0].hints)


class PolicyDenied(HotenvError):
    """The policy does not let this command run; the audit has it as blocked. `.code` is 10."""


class _Fields:
    """A record whose attributes are its fields."""

    def __init__(self, **fields: object) -> None:
        """Take a value for each of the fields, in their order."""
        self.__dict__.update(fields)

    def as_dict(self) -> Json:
        """Return the record as a dict, in the order of the fields, ready for JSON."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        """Show all fields."""
        return f"{type(self).__name__}({self.__dict__})"


class ExecResult(_Fields):
    """What one command did. Every text in it is masked, and cleaned of control sequences."""

    command: str
    stdout: str
    stderr: str
    exit_code: int  # 128+N after signal N, 124 after a time limit
    duration_ms: int
    cwd: str
    truncated: bool  # of an output only head and tail are here; ShellSession.read() has the rest
    timed_out: bool  # the time limit ended the command, or interrupt() did
    shell_restarted: bool  # the shell ended with this command or before; see `note` and the README
    background: str  # what background jobs printed before this command
    id: int  # the number of the command in this session, for ShellSession.read() and the audit
    note: str  # what else there is to know, such as a directory that is gone, or ''


class OutputPart(_Fields):
    """Some lines of an output, masked and cleaned, and where to read on."""

    text: str  # the last line may be unfinished, as a prompt is
    first_line: int  # the number of the first line in `text`; lines count from 1
    next_line: int  # where to read on: behind the last whole line in `text`
    lines: int  # how many whole lines there are by now
    running: bool  # whether more may come
    exit_code: int | None  # None while it runs
    note: str  # what else there is to know, such as lines that are no longer kept, or ''


# -- what is displayed -----------------------------------------------------------------------------

# An interactive bash says that it has no terminal whenever a child dies of a signal.
_DISPLAY_COMPLAINT = rb"(?m)^bash: \[\d+: \d+ \(\d+\)\] tcsetattr: .*\n"
_DISPLAY_CONTROL = rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]"
_DISPLAY_REMOVED = [
    rb"^[^\n]*(?:\r\x1b\[0?K|\x1b\[2K)",  # a line up to where it is erased
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]?",  # control sequences: colours, movements
    rb"\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?",  # control strings: titles, links
    rb"\x1b[ -/]*[0-~]?",  # other escape sequences
    rb"[\0-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]+",  # characters that control alone
    rb"\xc2[\x80-\x9f]",  # the same, of the second kind, in UTF-8
    rb"\r(?=\n)",
]


def _displayed(redactor: Redactor, data: bytes, first: int = 0, last: bool = True) -> str:
    """Return `data` as a terminal would show it, without values.

    The bytes before the index `first` are not shown: they are there because a value may begin in
    them. If `data` is not the `last` of its output, what may be half of a value at its end is not
    shown either.

    The text is masked before and after each step, because a value may hold what is taken out, may
    have that between its letters, or may be overwritten by half.
    """
    import re

    def masked(text: bytes, before: bytes = b"") -> bytes:
        stream = redactor.stream()
        stream.feed(before)
        return stream.feed(text) + stream.flush(last)

    before = re.sub(_DISPLAY_COMPLAINT, b"", data[:first])
    text = masked(re.sub(_DISPLAY_COMPLAINT, b"", data[first:]), before)
    if re.search(_DISPLAY_CONTROL, text):
        text = masked(re.sub(b"(?m)" + b"|".join(_DISPLAY_REMOVED), b"", text))
        lines = [_as_overwritten(line) for line in _decoded(text).split("\n")]
        text = masked(_encoded("\n".join(lines)))
    return text.decode("utf-8", "replace")


def _as_overwritten(line: str) -> str:
    """Return what a terminal shows of a line in which carriage returns lead back to its start."""
    if "\r" not in line:
        return line
    shown = []
    width = 0
    for part in reversed(line.split("\r")):  # what came last is seen; of the rest, what is longer
        if len(part) > width:
            shown.append(part[width:])
            width = len(part)
    return "".join(shown)


class _Sink:
    """Takes the bytes of a stream. This one drops them; others keep them."""

    def add(self, data: bytes) -> None:
        """Take the next bytes."""


_NOWHERE = _Sink()


class _OutputMemory:
    """The outputs of a shell that can still be read: the last ones, up to a number of bytes."""

    def __init__(self, room: int) -> None:
        """Take how many bytes are kept in all."""
        import threading
        self._room = room
        self._size = 0  # bytes that are kept, also of commands that run
        self._finished: dict[int, list[_ShellOutput]] = {}  # by the command's number, oldest first
        self._lock = threading.Lock()  # jobs grow, each in a thread of its own

    def grow(self, size: int) -> None:
        """Take note that outputs have grown. Drop the oldest finished ones if there is no room."""
        with self._lock:
            self._size += size
            while self._size > self._room and self._finished:
                self._forget(self._finished.pop(next(iter(self._finished))))

    def keep(self, number: int, outputs: list[_ShellOutput]) -> None:
        """Keep what a command has printed, until there is no room any more."""
        with self._lock:
            self._finished[number] = outputs

    def drop(self, outputs: list[_ShellOutput]) -> None:
        """Take note that nobody needs these outputs any more."""
        with self._lock:
            self._forget(outputs)

    def _forget(self, outputs: list[_ShellOutput]) -> None:
        """Drop the bytes of these outputs. The lock is held."""
        for output in outputs:
            self._size -= output.kept_size
            output.forget()

    def find(self, number: int) -> list[_ShellOutput] | None:
        """Return the outputs of a command that has ended, stdout first, or None."""
        return self._finished.get(number)


class _ShellOutput(_Sink):
    """What came through one pipe: all of it, or its beginning and its end."""

    def __init__(self, room: int, memory: _OutputMemory | None = None) -> None:
        """Take how many bytes are kept at most, and who is told how many are."""
        self.size = 0  # bytes that came
        self.lines = 0  # whole lines that came
        self.kept_size = 0  # bytes that are here
        self._room = room
        self._memory = memory
        self._head = bytearray()
        self._head_room = room // 4
        self._tail: list[bytes | bytearray] = []  # small pieces are joined to a bytearray
        self._tail_size = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        if not data:
            return
        self.size += len(data)
        self.lines += data.count(b"\n")
        size = self.kept_size
        room = self._head_room - len(self._head)
        self._head += data[:room]
        data = data[room:]
        if self._tail and len(self._tail[-1]) + len(data) <= _SHELL_PIECE:
            self._tail[-1] += data
        elif len(data) > _SHELL_PIECE:
            self._tail.append(data)
        elif data:
            self._tail.append(bytearray(data))
        self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._room - self._head_room:
            self._tail_size -= len(self._tail.pop(0))
        self.kept_size = len(self._head) + self._tail_size
        if self._memory:
            self._memory.grow(self.kept_size - size)

    def forget(self) -> None:
        """Drop all that is here."""
        self._head = bytearray()
        self._tail = []
        self._tail_size = 0
        self.kept_size = 0

    def is_whole(self) -> bool:
        """Is all here that came?"""
        return self.kept_size == self.size

    def has_line(self, number: int) -> bool:
        """Has this line come, or at least its beginning?"""
        if number <= self.lines:
            return True
        return number == self.lines + 1 and self.size > 0 and self.last(1) != b"\n"

    def all(self) -> bytes:
        """Return all that is here."""
        return bytes(self._head) + b"".join(self._tail)

    def last(self, size: int) -> bytes:
        """Return the last bytes."""
        pieces: list[bytes] = []
        for piece in reversed(self._tail):
            if size <= 0:
                break
            pieces.append(bytes(piece[-size:]))
            size -= len(piece)
        if size > 0:
            pieces.append(bytes(self._head[-size:]))
        return b"".join(reversed(pieces))

    def presented(self, redactor: Redactor, limit: int) -> _Presented:
        """Return the output as a result shows it: masked, cleaned, and only then cut."""
        if not self.size:  # most commands print nothing on stderr
            return _Presented("", is_cut=False)
        room = _presented_room(redactor, limit)
        if self.size <= room and self.is_whole():
            text = _displayed(redactor, self.all())
            if len(text) <= limit:
                return _Presented(text, is_cut=False)
            head = text
            tail = text
        else:
            head = _displayed(redactor, bytes(self._head[:room // 4]), last=False)
            tail = _displayed(redactor, self.last(room // 4), first=2 * redactor.longest)
        note = f"\n[hotenv: {self.size} bytes in all, the middle is left out]\n"
        return _Presented(head[:limit // 2] + note + tail[len(tail) - limit // 2:], is_cut=True)

    def last_line(self, redactor: Redactor, limit: int) -> str:
        """Return the last line that is not empty, masked, or ''."""
        margin = 2 * redactor.longest
        data = self.last(4 * limit + margin)
        if len(data) == self.size:
            margin = 0
        text = _displayed(redactor, data, first=margin, last=False)
        return text.rstrip().rpartition("\n")[2][-limit:]

    def part(self, redactor: Redactor, first: int, count: int, is_last: bool) -> _OutputLines:
        """Return up to `count` lines from the line number `first` on.

        `is_last`: no more output comes. Lines that are no longer here are skipped.
        """
        head = bytes(self._head)
        tail = b"".join(self._tail)
        number = 1  # of the line with which `data` begins
        data = head + tail
        if not self.is_whole() and first > head.count(b"\n"):
            # The lines between head and tail are gone. The tail begins within a line, which is
            # skipped.
            number = self.lines - tail.count(b"\n") + 1
            data = tail
            first = max(first, number + 1)
        elif not self.is_whole():
            data = head
            is_last = False
        start = _line_offset(data, first - number)
        end = _line_offset(data, first - number + count)
        is_last = is_last and end == len(data)
        margin = min(start, 2 * redactor.longest)
        text = _displayed(redactor, data[start - margin:end], first=margin, last=is_last)
        return _OutputLines(text, first, first + data.count(b"\n", start, end))


class _Presented:
    """An output as a result shows it, and whether a part of it is missing there."""

    def __init__(self, text: str, is_cut: bool) -> None:
        self.text = text
        self.is_cut = is_cut


class _OutputLines:
    """Some lines of an output; the number of the first, and of the one behind the last."""

    def __init__(self, text: str, first: int, after: int) -> None:
        self.text = text
        self.first = first
        self.after = after


def _presented_room(redactor: Redactor, limit: int) -> int:
    """Return how many bytes are displayed to get `limit` characters: cleaned text is shorter."""
    return 4 * limit + 16 * redactor.longest + (16 << 10)


def _line_offset(data: bytes, count: int) -> int:
    """Return where the line begins before which `count` lines stand, or the length of `data`."""
    offset = 0
    for _ in range(count):
        offset = data.find(b"\n", offset) + 1
        if not offset:
            return len(data)
    return offset


# -- processes -------------------------------------------------------------------------------------


class _ProcessRow:
    """A process, as far as it matters to whom it belongs.

    Only Linux tells `session`, and `start`, when the process has started: else both are 0.
    """

    def __init__(
        self, pid: int, parent: int, group: int, name: bytes, session: int = 0, start: int = 0
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.name = name
        self.session = session
        self.start = start

    @classmethod
    def read(cls, pid: int) -> _ProcessRow | None:
        """Return a live process on Linux, or None."""
        try:
            line = _content(f"/proc/{pid}/stat")
        except OSError:
            return None
        name, _, rest = line.rpartition(b")")
        fields = rest.split()
        if fields[0] in (b"Z", b"X"):  # dead, but not yet waited for
            return None
        parent, group, session = map(int, fields[1:4])
        return cls(pid, parent, group, name, session, start=int(fields[_STAT_START]))


def _list_processes() -> list[_ProcessRow]:
    """Return all live processes."""
    rows = []
    if not os.path.isdir("/proc/self"):
        from subprocess import check_output
        for line in check_output(["ps", "-Ao", "pid=,ppid=,pgid=,ucomm="]).splitlines():
            pid, parent, group, name = line.split(None, 3)
            rows.append(_ProcessRow(int(pid), int(parent), int(group), name))
        return rows
    for number in os.listdir("/proc"):
        if number.isdigit():
            row = _ProcessRow.read(int(number))
            if row:
                rows.append(row)
    return rows


def _processes_below(
    rows: list[_ProcessRow], leader: int, spared: Iterable[int] = ()
) -> list[_ProcessRow]:
    """Return those of some processes that are below one, without `spared` and all below those."""
    children: dict[int, list[_ProcessRow]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
    below = []
    parents = [leader]
    while parents:
        for row in children.pop(parents.pop(), []):
            if row.pid not in spared:
                below.append(row)
                parents.append(row.pid)
    return below


def _exit_code(status: int) -> int:
    """Return the exit code that a shell shows for a process: 128 and more for a signal."""
    if status < 0:
        return 128 - status
    return status


def _new_nonce() -> bytes:
    """Return 32 characters that nobody can guess."""
    return os.urandom(16).hex().encode()


class _GuardedProcess:
    """A process that leads a session of its own, and a guard that ends this session if need be."""

    def __init__(
        self,
        argv: Words,
        env: Env,
        stdin: int,
        stdout: int,
        stderr: int,
        passed: Sequence[int] = (),
        has_terminal: bool = False,
    ) -> None:
        """Start both, or none. `has_terminal`: `stdin` is to become the controlling terminal."""
        import signal
        from subprocess import DEVNULL, PIPE, Popen
        prepare: Callable[[], None] | None = None
        if has_terminal:
            prepare = _take_terminal
        elif signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as behind a `&`: it would stay so
            prepare = _heed_interrupts
        self._mark = _new_nonce()
        env = {**env, "HOTENV_SHELL": self._mark.decode()}
        self.process: Any = Popen(
            argv, 0, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=passed, env=env,
            preexec_fn=prepare, start_new_session=True)
        self.pid: int = self.process.pid
        leader = _ProcessRow.read(self.pid)
        self._start = leader.start if leader else 0
        try:
            self._guard = Popen(
                ["/bin/sh", "-c", _SHELL_GUARD, "hotenv", str(self.pid), self._mark.decode()],
                stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, cwd="/",
                env={"PATH": os.defpath}, start_new_session=True)
        except BaseException:
            self.process.kill()
            self.process.wait()
            if self.process.stdin:
                self.process.stdin.close()
            raise

    def status(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        status: int | None = self.process.poll()
        if status is None:
            return None
        return _exit_code(status)

    def end(self) -> int:
        """Kill the process and its session, and the guard. Return the exit code."""
        self._end_all()
        # The guard ends before the process is waited for: from then on, the process's number may be
        # a stranger's.
        with self._guard:
            self._guard.kill()
        self.process.kill()
        _best_effort(self._close_stdin)
        return _exit_code(self.process.wait())

    def _close_stdin(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()

    def _end_all(self) -> None:
        """Kill the process, and all that belongs to it. The process itself becomes a zombie.

        Whoever is there after about a second can only be another user's.
        """
        rows = self._belonging(set())
        if rows or self.process.returncode is None:
            # All at one moment, so that no fork escapes. Once the process has been waited for, its
            # number may be a stranger's, unless others in its session still hold it.
            _best_effort(os.killpg, self.pid, _signal.SIGKILL)
        pids = {row.pid for row in rows}
        for pause in range(_SHELL_KILL_ROUNDS):
            for group in {row.group for row in rows}:
                _best_effort(os.killpg, group, _signal.SIGKILL)
            for row in rows:
                _best_effort(os.kill, row.pid, _signal.SIGKILL)
            time.sleep(pause * pause / 2500)  # whoever is killed may wait for a processor
            rows = self._belonging(pids)  # somebody may have left the group meanwhile
            if not rows:
                return
            pids |= {row.pid for row in rows}

    def _belonging(self, known: set[int]) -> list[_ProcessRow]:
        """Return all live processes that belong to this one, but for itself.

        These are the `known` ones, those in its session, those below it, and on Linux those that
        have its mark in their environment: a daemon has left the session, and has another parent.
        """
        rows = _list_processes()
        pids = known | {row.pid for row in _processes_below(rows, self.pid)}
        found = []
        for row in rows:
            is_in_session = self.pid in (row.group, row.session)
            if row.pid == self.pid:
                continue
            if is_in_session or row.pid in pids or self._has_marked(row):
                found.append(row)
        return found

    def _has_marked(self, row: _ProcessRow) -> bool:
        """Has this process the mark in its environment?"""
        if not row.session or row.start < self._start:
            return False  # a thread of the kernel's, or older than this process
        for _ in range(_SHELL_EXEC_LOOKS):
            try:
                environment = _content(f"/proc/{row.pid}/environ")
            except OSError:
                return False  # another user's, or ended meanwhile
            if environment:
                return self._mark in environment
            time.sleep(0.002)  # it is just becoming another program, or it has no environment
        return False


def _heed_interrupts() -> None:
    """Let SIGINT end this process, which is about to become another program."""
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _take_terminal() -> None:
    """Make descriptor 0 the controlling terminal of this session."""
    import fcntl
    import termios
    _heed_interrupts()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


# -- streams ---------------------------------------------------------------------------------------


class _ShellBytes(_Sink):
    """Takes bytes up to a number, and keeps them as they are."""

    def __init__(self, room: int) -> None:
        self.data = bytearray()
        self._room = room

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.data += data[:self._room - len(self.data)]


class _ShellMark:
    """Bytes by which a shell says where it is. The bytes behind a mark go to its sink.

    A mark that comes again changes the sink again. The bytes of the mark itself go to the `keeper`.
    """

    SIZE = 34  # bytes of each mark: NUL, a nonce in hex, and NUL or a new line

    def __init__(self, raw: bytes, sink: _Sink, keeper: _Sink = _NOWHERE) -> None:
        self.raw = raw
        self.sink = sink
        self.keeper = keeper
        self.is_seen = False


class _ShellStream:
    """A pipe from a shell. Its bytes go to the sink; marks among them change the sink."""

    def __init__(self, descriptor: int, sink: _Sink) -> None:
        self.descriptor = descriptor
        self.sink = sink
        self.marks: list[_ShellMark] = []
        self.is_open = True
        self._held = b""  # what may be the beginning of a mark

    def read(self) -> None:
        """Take once what the pipe holds, or its end. If there is neither, this may wait."""
        try:
            piece = os.read(self.descriptor, _SHELL_PIPE)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            piece = b""  # so Linux ends a terminal that nobody has open any more
        self.take(piece)

    def take(self, piece: bytes) -> None:
        """Take bytes as if they came through the pipe; no bytes are the end."""
        data = self._held + piece
        self._held = b""
        if self.marks and b"\0" in data:
            data = self._divide(data)
        if piece and self.marks:
            start = data.rfind(b"\0", 1 - _ShellMark.SIZE)
            if start >= 0:
                self._held = data[start:]
                data = data[:start]
        self.sink.add(data)
        if not piece:
            self.is_open = False

    def _divide(self, data: bytes) -> bytes:
        """Hand out what stands before the last mark; return what stands behind."""
        while True:
            first = None
            place = len(data)
            for mark in self.marks:
                found = data.find(mark.raw)
                if 0 <= found < place:
                    place = found
                    first = mark
            if not first:
                return data
            self.sink.add(data[:place])
            self.sink = first.sink
            first.keeper.add(first.raw)
            first.is_seen = True
            data = data[place + len(first.raw):]


class _ShellRecord:
    """How a shell is: see __hotenv_end in _SHELL_SETUP.

    `jobs` are the pids of what runs in the background, `exports` is text for a shell.
    """

    def __init__(self, status: int, directory: str, jobs: list[int], exports: bytes) -> None:
        self.status = status
        self.directory = directory
        self.jobs = jobs
        self.exports = exports

    @classmethod
    def parse(cls, data: bytes, nonce: bytes) -> _ShellRecord | None:
        """Return the last whole record with this nonce, or None.

        A record that SIGINT has cut short may stand before a whole one. Other records than whole
        ones come only from a shell that a command has meddled with.
        """
        end = data.find(b"\0%s\n" % nonce)
        fields = data[:end].rpartition(b"\0%s\0" % nonce)[2].split(b"\0")
        if end < 0 or len(fields) != 4:
            return None
        status, directory, jobs, exports = fields
        try:
            pids = [int(pid) for pid in jobs.split()]
            return cls(int(status), os.fsdecode(directory[:-1]), pids, exports)
        except ValueError:
            return None


class _AwaitedRecord:
    """A record that will come: its nonce, its marks, and what has come of it."""

    def __init__(self) -> None:
        self.nonce = _new_nonce()
        self._bytes = _ShellBytes(_SHELL_RECORD_MAX)
        self._end = b"\0%s\n" % self.nonce
        self.marks: list[_ShellMark] = []  # of the record's end, on each stream where it stands

    def marks_of_notes(self, after: _Sink) -> list[_ShellMark]:
        """Return the marks around the record. What comes behind the record goes to `after`."""
        end = _ShellMark(self._end, after, keeper=self._bytes)
        self.marks.append(end)
        start = _ShellMark(b"\0%s\0" % self.nonce, self._bytes, keeper=self._bytes)
        return [start, end]

    def mark_of_stderr(self, after: _Sink) -> _ShellMark:
        """Return the mark by which a remote shell says on stderr that the record has ended."""
        end = _ShellMark(self._end, after)
        self.marks.append(end)
        return end

    def late_marks(self, after: _Sink) -> list[_ShellMark]:
        """Return marks for records with this nonce that come too late, and are dropped."""
        return [_ShellMark(b"\0%s\0" % self.nonce, _NOWHERE), _ShellMark(self._end, after)]

    def has_come(self) -> bool:
        """Has the record come, or the mark of its end, on each stream where it stands?"""
        return all([mark.is_seen for mark in self.marks])

    def parse(self) -> _ShellRecord | None:
        """Return the record that has come, or None."""
        return _ShellRecord.parse(bytes(self._bytes.data), self.nonce)


class _ShellProcess:
    """A bash, or what leads to one elsewhere, its guard, and the pipes to it.

    What comes to stand in `poison` ends each wait with SessionPoisoned. `tick`, if there is one, is
    called now and then during a wait.
    """

    def __init__(self, argv: Words, env: Env, is_remote: bool, poison: list[HotenvError]) -> None:
        import fcntl
        import selectors
        from contextlib import ExitStack
        from subprocess import PIPE
        self._poison = poison
        self.tick: Callable[[], None] | None = None
        self.last = _AwaitedRecord()  # the record that the EXIT trap writes
        self.last_marks = self.last.marks_of_notes(_NOWHERE)
        self._unsent = b""
        self._selector = selectors.PollSelector()
        self.streams: list[_ShellStream] = []
        ends: list[int] = []
        with ExitStack() as near, ExitStack() as far:
            # These pipes are not made by Popen: an older Python leaks some of them when there are
            # no more descriptors.
            for _ in range(2 if is_remote else 3):
                reader, writer = os.pipe()
                near.callback(os.close, reader)
                far.callback(os.close, writer)
                _best_effort(fcntl.fcntl, reader, _F_SETPIPE_SZ, _SHELL_PIPE)  # within a quota
                stream = _ShellStream(reader, _NOWHERE)
                self.streams.append(stream)
                self._selector.register(reader, selectors.EVENT_READ, stream)
                ends.append(writer)
            self.child = _GuardedProcess(argv, env, PIPE, ends[0], ends[1], passed=ends[2:])
            self._close_pipes = near.pop_all().close
        self._stdin: Any = self.child.process.stdin
        os.set_blocking(self._stdin.fileno(), False)
        self.out = self.streams[0]
        self.err = self.streams[1]
        self.notes = self.streams[-1]
        if is_remote:
            self.notes = self.out
        self.far_notes = ends[-1]  # the number of N in the shell, where it is no remote one

    def send(self, text: bytes) -> None:
        """Have the shell read this text. Some of it may wait until the next wait."""
        self._unsent += text
        self._write_unsent()

    def _write_unsent(self) -> None:
        """Write as much as the shell's stdin has room for."""
        try:
            written = self._stdin.write(self._unsent)
        except (OSError, ValueError):
            return  # the shell has ended, and its other pipes say so
        self._unsent = self._unsent[written or 0:]

    def move(self, seconds: float) -> bool:
        """Read once all that is there, and wait at most so long for something.

        Return whether there was something.
        """
        ready = self._selector.select(seconds)
        for key, _ in ready:
            stream: _ShellStream = key.data
            stream.read()
            if not stream.is_open:
                self._selector.unregister(stream.descriptor)
        return bool(ready)

    def drain(self) -> None:
        """Take what the pipes hold by now, not more: a background job may write for ever."""
        if self.move(0):
            self.move(0)  # a pipe's end shows after what was in it

    def unsent_size(self) -> int:
        """Return how many bytes wait for room in the pipe."""
        return len(self._unsent)

    def has_ended(self) -> bool:
        """Has the shell ended, or said that it ends?"""
        return not self.notes.is_open or self.last.has_come()

    def wait_for_mark(
        self, marks: list[_ShellMark], deadline: float, stop: threading.Event | None = None
    ) -> bool:
        """Wait until these marks are seen. False: the deadline, `stop` or the end came first."""
        while not all([mark.is_seen for mark in marks]):
            if self.has_ended() or not self._wait(deadline, stop, 0.05):
                return False
        return True

    def wait_for_end(self, deadline: float, stop: threading.Event | None = None) -> bool:
        """Send nothing more, and wait until the process has ended; False as in wait_for_mark()."""
        self._unsent = b""
        self.close_stdin()
        while self.child.status() is None:
            if not self._wait(deadline, stop, 0.005):  # a process's end wakes nobody
                return False
        return True

    def _wait(self, deadline: float, stop: threading.Event | None, pause: float) -> bool:
        """Move bytes once, waiting at most `pause` for some. False: the deadline or `stop` came."""
        if self._poison:
            raise _poisoned(self._poison)
        left = deadline - time.monotonic()
        if left <= 0 or stop and stop.is_set():
            return False
        if self._unsent:
            self._write_unsent()
            pause = 0.005  # room in a pipe wakes nobody: bash takes 64 KiB in 13 ms
        self.move(min(left, pause))
        if self.tick:
            self.tick()
        return True

    def close_stdin(self) -> None:
        """Let the shell's stdin end."""
        _best_effort(self._stdin.close)

    def end(self) -> int:
        """Kill all that is left, and close the pipes. Return the exit code."""
        status = self.child.end()
        self._close_pipes()
        return status


# -- here and elsewhere ----------------------------------------------------------------------------


class _LocalShells:
    """How shells on this machine are started, interrupted and ended."""

    is_remote = False
    argv = _SHELL_BASH

    def __init__(self, env: Env) -> None:
        self._env = env

    def start(self, poison: list[HotenvError], said: _ShellOutput) -> _ShellProcess:
        """Start a shell, which has read nothing yet."""
        return _ShellProcess(self.argv, self._env, is_remote=False, poison=poison)

    def greeting(self, shell: _ShellProcess) -> bytes:
        """Return what a shell reads first: its descriptors get their numbers."""
        return _SHELL_ARRANGE_HERE % shell.far_notes

    def framed(self, text: bytes) -> bytes:
        """Return text as it is sent to a shell."""
        return text

    def resume(self, shell: _ShellProcess) -> None:
        """Let a shell go on that somebody may have stopped."""
        _best_effort(os.kill, shell.child.pid, _signal.SIGCONT)

    def interrupt(
        self, shell: _ShellProcess, number: int, jobs: list[int], told: set[bytes]
    ) -> None:
        """Send one Ctrl-C to the shell and all below it but `jobs`; without any, at one moment.

        Whoever stands in `told` has had one. As long as one of those is there, nobody gets another.
        """
        pid = shell.child.pid
        below = _processes_below(_list_processes(), pid, jobs)
        names = {b"%d:%s" % (row.pid, row.name) for row in below}
        if told & names:
            return
        told |= names
        if jobs:
            _best_effort(os.kill, pid, _signal.SIGINT)
        else:
            _best_effort(os.killpg, pid, _signal.SIGINT)
        for row in below:
            if jobs or row.group != pid:
                _best_effort(os.kill, row.pid, _signal.SIGINT)  # it may be root's, by sudo

    def end(self, shell: _ShellProcess) -> int:
        """End a shell and all that it has started. Return its exit code."""
        return shell.end()

    def start_job(self, place: bytes, command: str, has_terminal: bool) -> _LocalJob:
        """Start a bash that takes its place, runs a command, and takes input from the caller."""
        import shlex
        if has_terminal:
            place += _SHELL_JOB_TERMINAL
        script = place + _SHELL_JOB_LINE % _encoded(shlex.quote(command))
        return _LocalJob(script, self._env, has_terminal)


class _RemoteShells:
    """How shells are started, interrupted and ended to which a command leads, as `ssh -T host`."""

    is_remote = True

    def __init__(self, argv: Words, env: Env) -> None:
        self.argv = argv
        self._env = env
        self._address = b""  # by which the relay of the newest shell is addressed

    def start(self, poison: list[HotenvError], said: _ShellOutput) -> _ShellProcess:
        """Start what leads to a shell, and wait until there is a relay. HotenvError: why not.

        What comes on stderr meanwhile goes to `said`.
        """
        shell = _ShellProcess(self.argv, self._env, is_remote=True, poison=poison)
        try:
            self._address = _greet_remote(shell, self, _SHELL_BASH, said)
        except BaseException:
            shell.end()
            raise
        return shell

    def greeting(self, shell: _ShellProcess) -> bytes:
        """Return what the shell behind the relay reads first."""
        return _SHELL_ARRANGE_THERE

    def framed(self, text: bytes) -> bytes:
        """Return text as it is sent to a shell: what is long, the relay is to pass on in one go."""
        if len(text) < _SHELL_PIECE:
            return text
        return b"%s pass %d\n" % (self._address, len(text)) + text

    def resume(self, shell: _ShellProcess) -> None:
        """Let a shell go on that somebody may have stopped."""
        shell.send(b"\n%s continue\n" % self._address)

    def interrupt(
        self, shell: _ShellProcess, number: int, jobs: list[int], told: set[bytes]
    ) -> None:
        """Have the relay send one Ctrl-C, as for a local shell; it knows who was told."""
        words = [b"\n%s interrupt %d" % (self._address, number)]
        for pid in jobs:
            words.append(b"%d" % pid)
        shell.send(b" ".join(words) + b"\n")

    def end(self, shell: _ShellProcess) -> int:
        """Let the far side end everything, then end what leads there. Return the exit code."""
        if shell.last.has_come():
            give_up = time.monotonic() + _SHELL_LAST_WORDS
            while shell.notes.is_open and time.monotonic() < give_up:
                shell.move(0.005)
        shell.close_stdin()
        give_up = time.monotonic() + _SHELL_FAREWELL
        while shell.child.status() is None and time.monotonic() < give_up:
            shell.move(0.002)
        return shell.end()

    def start_job(self, place: bytes, command: str, has_terminal: bool) -> _RemoteJob:
        """Start what leads to such a bash elsewhere. HotenvError: why not."""
        import shlex
        line = _SHELL_JOB_LINE
        if has_terminal:
            line = _SHELL_JOB_TERMINAL + _SHELL_JOB_ON_TERMINAL_THERE
        return _RemoteJob(place + line % _encoded(shlex.quote(command)), self, self._env)

    def probe(self, answers: list[float]) -> None:
        """Ask the other end by a connection whose stdin ends at once; note when it has answered."""
        from subprocess import DEVNULL, PIPE, run
        nonce = _new_nonce()
        try:
            done = run(
                self.argv, input=b"echo %s\n" % nonce, stdout=PIPE, stderr=DEVNULL, env=self._env,
                timeout=_SHELL_CONNECT, start_new_session=True)
        except Exception:
            return  # the first connection will say what is wrong, or its time will end
        if nonce in done.stdout:
            answers.append(time.monotonic())


def _greet_remote(
    shell: _ShellProcess, remote: _RemoteShells, bash: Words, said: _ShellOutput
) -> bytes:
    """Have a remote's login shell become a relay to a bash; return the address of that relay.

    HotenvError says what is there in place of a shell, and what to do.
    """
    import threading
    address = _new_nonce()
    mark = b"\0%s\n" % address
    said_out = _ShellBytes(1 << 16)
    shell.out.sink = said_out
    shell.err.sink = said
    marks = [_ShellMark(mark, _NOWHERE), _ShellMark(mark, said)]
    shell.out.marks = marks[:1]
    shell.err.marks = marks[1:]
    shell.send(_SHELL_GREETING.replace(b"{B}", address))
    begun = time.monotonic()
    answers: list[float] = []  # when the second connection has had an answer
    probe = None
    while not shell.wait_for_mark(marks, min(begun + _SHELL_CONNECT, time.monotonic() + 0.2)):
        if address in said_out.data:  # this end of a terminal repeats what is typed
            raise HotenvError(
                EXIT_SYSTEM, "there is a terminal at the other end",
                "connect without one: ssh -T in place of -t and -tt, docker exec -i without -t")
        if shell.has_ended():
            raise _remote_ended(shell, said)
        if answers and time.monotonic() > answers[0] + _SHELL_GRACE:
            raise HotenvError(
                EXIT_SYSTEM,
                "the shell at the other end reads all of its input before it runs a line",
                "let the command lead to another shell: ssh -T host sh (fish does this)")
        if time.monotonic() > begun + _SHELL_CONNECT:
            raise HotenvError(EXIT_SYSTEM, "it gave no answer in time")
        if not probe and time.monotonic() > begun + _SHELL_PROBE:
            probe = threading.Thread(target=remote.probe, args=(answers,), daemon=True)
            probe.start()
    relay = _shell_text(_SHELL_RELAY).replace(b"{B}", address)
    shell.send(relay.replace(b"{ARGUMENTS}", " ".join(bash[1:]).encode()))
    return address


def _remote_ended(shell: _ShellProcess, said: _ShellOutput) -> HotenvError:
    """Return the error for a remote that has ended before there was a relay."""
    shell.wait_for_end(time.monotonic() + _SHELL_GRACE)
    shell.drain()
    words = said.all().decode("utf-8", "replace").strip()
    reason = f"it ended with status {shell.child.status()} (it must lead to bash)"
    if words:
        reason += ": " + words
    return HotenvError(EXIT_SYSTEM, reason)


# -- the session -----------------------------------------------------------------------------------


class _Command:
    """One command, and what has come back of it."""

    def __init__(self, number: int, text: str, room: int, memory: _OutputMemory) -> None:
        self.number = number
        self.text = text
        self.out = _ShellOutput(room, memory)
        self.err = _ShellOutput(room, memory)
        self.status = 0
        self.is_late = False  # the time limit ended it, or interrupt() did
        self.has_said_exit = False  # bash has written `exit` on stderr


class _Passage:
    """A command on its way through a shell: where it begins, and the record of its end."""

    def __init__(self) -> None:
        self.opening = _new_nonce()
        self.record = _AwaitedRecord()
        self.begins: list[_ShellMark] = []  # on each stream where the beginning is marked

    def mark_beginning(self, sink: _Sink) -> _ShellMark:
        """Return a mark behind which the command's output goes to `sink`."""
        mark = _ShellMark(b"\0%s\n" % self.opening, sink)
        self.begins.append(mark)
        return mark

    def has_begun(self) -> bool:
        """Has the command begun?"""
        return self.begins[0].is_seen


class ShellSession:
    """A bash that stays: directory, variables and functions are kept from one `exec()` to the next.

        with hotenv.ShellSession(hotenv.fetch()) as shell:
            print(shell.exec("make deploy", timeout=600).stdout)

    - `environment` goes into the shell, and is masked in all that comes out, but for names and
      prefixes (`AWS_*`) in `no_mask`. The rest of the shell's environment is the caller's, or with
      `isolated` a short allowlist of it. Tokens of the caller's own are masked as well.
    - `also_mask`: values that are masked, and that the shell does not get.
    - `remote`: a command (a list, or shell text) that leads to a shell elsewhere, as `ssh -T host`.
      There `environment` alone is added, over stdin.
    - `cwd`: where to start.
    - `timeout`: seconds for a command without a limit of its own.
    - `max_output`: characters of each stream in a result. More is cut to head and tail.
    - `policy`: a JSON file, or a dict, with lists `allow` and `deny` of first words. A policy is
      advice, and no boundary.
    - `audit`: a file that gets a line at the start and the end of every command. `audit_fields`
      stand in each of these lines.

    Threads may share a session: one command runs at a time, and the others wait.
    """

    # Where __init__() fails early, __del__() finds these.
    _shell: _ShellProcess | None = None
    _owner = 0

    def __init__(
        self,
        environment: Env | None = None,
        *,
        isolated: bool = False,
        remote: str | Strings | None = None,
        cwd: str | None = None,
        timeout: float = _SHELL_TIMEOUT,
        max_output: int = _SHELL_MAX_OUTPUT,
        policy: str | Json | None = None,
        audit: str | None = None,
        no_mask: Sequence[str] = (),
        also_mask: Env | None = None,
        audit_fields: Mapping[str, str] | None = None,
    ) -> None:
        """Start the shell. HotenvError: an argument is wrong, or there is no shell."""
        import itertools
        import threading
        environment = dict(environment or {})
        if not _is_environment(environment):
            raise _usage("there is a name or a value that no environment can hold")
        self._limit = max(0, max_output)
        self._timeout = _time_limit(timeout)
        self._policy = _load_policy(policy or {})
        self._environment = environment  # for secrets that a job is sent by their names
        words = _remote_words(remote, isolated)
        if cwd and words is None:
            if not os.path.isdir(cwd):
                raise _usage("there is no directory " + _shown(cwd))
            cwd = os.path.abspath(cwd)
        self._cwd = cwd or "."
        self.cwd = ""  # after the last command, masked, but for values that are absolute paths
        self._set_masks(environment, also_mask or {}, no_mask)
        self._set_audit(audit, words, audit_fields or {})
        self._set_transport(environment, words, isolated)
        # The lock is held while a command runs; a signal handler that calls close() has it then,
        # too.
        self._lock = threading.RLock()
        self._is_busy = False
        self._owner = os.getpid()
        self._stop = threading.Event()
        self._poison: list[HotenvError] = []  # why there is no shell any more, and no new one
        self._numbers = itertools.count(1)  # of commands and jobs
        self._memory = _OutputMemory(_SHELL_OUTPUTS_KEPT)
        self._room = max(_SHELL_OUTPUT_KEPT, _presented_room(self._redactor, self._limit))
        self._background = self._new_background()
        self._earlier: _AwaitedRecord | None = None  # of the last command: it may come once more
        self._background_jobs: list[int] = []  # pids of what the shell runs in the background
        self._status = 0  # of the last command
        self._has_started = False  # whether there has been a shell before
        self._has_lost_shell = False  # whether a shell was, and no result has said so yet
        self._note = ""  # what the next result is to say
        self._jobs: dict[int, ShellJob] = {}
        self._ready()

    def _set_masks(self, environment: Env, also_mask: Env, no_mask: Sequence[str]) -> None:
        """Settle what is masked in outputs, and what in the names of directories."""
        masked = {**_tokens_of(_host_environment()), **also_mask, **environment}
        self._redactor = Redactor(masked, no_mask)
        # A value that is a path is no secret in the name of a directory.
        paths = [name for name, value in masked.items() if value.startswith("/")]
        self._place_redactor = self._redactor
        if paths:
            self._place_redactor = Redactor(masked, [*no_mask, *paths])
        self.unmaskable = []  # names whose values are not masked
        for name in self._redactor.unmaskable:
            if name in environment:
                self.unmaskable.append(name)

    def _set_audit(
        self, audit: str | None, words: Words | None, fields: Mapping[str, str]
    ) -> None:
        """Settle what each line of the audit says. HotenvError: its file cannot be written."""
        self._audit = audit
        self._audit_name = os.urandom(4).hex()
        machine = os.uname().nodename
        if words is not None:
            machine = _shown(self._redactor(" ".join(words)))
        self.audit_fields = {"machine": machine, **fields}  # what each line of the audit says, too
        if audit is not None:
            os.close(_open_private(audit, "audit file"))

    def _set_transport(self, environment: Env, words: Words | None, isolated: bool) -> None:
        """Settle what a shell is started with. A remote one is sent all that it is given."""
        import shlex
        self._exports = b""
        self.omitted: Words = []  # names that the shell cannot take
        env = {}
        for name, value in _host_environment().items():
            if not _matches(name, _SHELL_DROPPED):
                env[name] = value
        for name, value in environment.items():
            is_plain = name.isascii() and name.isidentifier()
            if _matches(name, _SHELL_DROPPED) or words is not None and not is_plain:
                self.omitted.append(name)
            elif words is not None:
                self._exports += _encoded(f"export {name}={shlex.quote(value)}\n")
            else:
                env[name] = value
        if isolated:
            env = build_isolated_env(env, environment)
        self._transport: _LocalShells | _RemoteShells = _LocalShells(env)
        if words is not None:
            self._transport = _RemoteShells(words, env)

    def _new_background(self) -> _ShellOutput:
        """Return room for what background jobs print between two commands."""
        return _ShellOutput(_presented_room(self._redactor, self._limit))

    def __enter__(self) -> ShellSession:
        """Return the session, which the end of the `with` block closes."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the session."""
        self.close()

    def __del__(self) -> None:
        """End the shell of a session that nobody has closed."""
        if not sys.is_finalizing():  # then the guards do it
            self._end_jobs()
            self._end()

    @property
    def is_poisoned(self) -> bool:
        """Has the session no shell any more, and can get none? It then refuses each command."""
        return bool(self._poison)

    def interrupt(self) -> None:
        """End the command that runs, as its time limit would. For other threads and handlers."""
        self._stop.set()

    def close(self) -> None:
        """End the shell, its jobs, and all that runs in their sessions; a running command raises.

        To close a session again is allowed.
        """
        self._poison.append(SessionPoisoned(EXIT_SYSTEM, "the shell session is closed"))
        if os.getpid() != self._owner:  # in a fork nobody may ever release the lock
            return
        self._end_jobs()
        with self._lock:
            if not self._is_busy:  # or else exec() does it, up the stack from a signal handler
                self._end()

    def exec(
        self,
        command: str,
        timeout: float | None = None,
        *,
        stop: threading.Event | None = None,
        max_total: int | None = None,
        progress: Callable[[int, str], object] | None = None,
    ) -> ExecResult:
        """Run one command and wait for its end.

        `stop` interrupts this very command. `max_total` bounds the characters of all outputs in
        this result together, in place of the session's limit for each. `progress` is called each
        second in which there is news, with the number of lines so far and the last one; it must not
        wait for anything.

        Raises PolicyDenied, SessionPoisoned, or HotenvError if the command cannot be sent, no shell
        begins it, or the audit cannot be written.
        """
        import threading
        limit = self._timeout
        if timeout is not None:
            limit = _time_limit(timeout)
        _check_command(command)
        with self._lock:
            if self._is_busy:
                raise _usage("a signal handler cannot use the shell that it interrupted")
            self._check_usable()
            self._is_busy = True
            self._stop = stop or threading.Event()
            try:
                return self._exec(command, limit, max_total, progress)
            finally:
                self._is_busy = False
                if self._poison:
                    self._end()

    def start(self, command: str, *, terminal: bool = False) -> ShellJob:
        """Start a command as a job, and return at once.

        A job is a bash of its own, with the directory and the exports of this session's last
        command; stdout and stderr are apart. With `terminal` it has a terminal in place of pipes,
        as a program wants that asks for a password. Raises as `exec()` does, and HotenvError 8 if
        the job cannot be started: that costs the session nothing.
        """
        _check_command(command)
        self._check_usable()
        running = [job for job in self.jobs() if job.is_running]
        if len(running) >= _SHELL_JOBS_MAX:
            raise _usage(f"{_SHELL_JOBS_MAX} jobs run in this session: stop one")
        number = next(self._numbers)
        self._check_policy(number, command)
        self._record(number, "start", command=self._redactor(command), job=True)
        try:
            process = self._transport.start_job(
                self._place(_SHELL_FIRST_PLACE), command, terminal)
        except (OSError, HotenvError) as error:
            failure = self._failure_to_run("a job", error)
            self._record(number, "failed", reason=str(failure))
            raise failure from None
        job = ShellJob(self, number, self._redactor(command), process)
        self._jobs[number] = job
        return job

    def _place(self, change: bytes) -> bytes:
        """Return the text by which a bash takes its place: `change` leads to a directory."""
        import shlex
        directory = os.fsencode(shlex.quote(self._cwd))
        return _SHELL_KEEP_MARK + change % directory + self._exports + _SHELL_OWN_MARK

    def job(self, number: int) -> ShellJob | None:
        """Return the job that has this `id`, or None."""
        return self._jobs.get(number)

    def jobs(self) -> list[ShellJob]:
        """Return the jobs of this session, also those that have ended."""
        return list(self._jobs.values())

    def read(
        self,
        number: int,
        stream: str = "stdout",
        first: int = 1,
        count: int = 1000,
        pattern: str | None = None,
        wait: float = 0.0,
        *,
        max_output: int = _SHELL_MAX_OUTPUT,
        stop: threading.Event | None = None,
    ) -> OutputPart:
        """Return lines of an output: of a job, or of a result that was cut, by its `id`.

        See ShellJob.read(). Of results, the last are kept, 16 MiB in all. HotenvError 2: this
        output is not kept, or an argument is wrong.
        """
        job = self._jobs.get(number)
        if job:
            return job.read(
                stream, first, count, pattern, wait, max_output=max_output, stop=stop)
        outputs = self._memory.find(number)
        if not outputs:
            raise _usage(
                f"there is no output {number}",
                "a result that was not cut is complete; of those that were, the last are kept")
        reader = _OutputReader(self._redactor, stream, first, count, pattern, max_output)
        return reader.read(outputs[reader.index], is_running=False, exit_code=None)

    def _check_usable(self) -> None:
        """SessionPoisoned: the session has no shell, or another process has opened it."""
        if self._poison:
            raise _poisoned(self._poison)
        if os.getpid() != self._owner:
            raise SessionPoisoned(EXIT_SYSTEM, "the shell session is another process's")

    def _check_policy(self, number: int, command: str) -> None:
        """PolicyDenied: the command may not run. The audit has it as blocked."""
        reason = _denied(self._policy, command)
        if reason:
            reason = self._redactor(reason)
            self._record(number, "blocked", command=self._redactor(command), reason=reason)
            raise PolicyDenied(
                EXIT_REFUSED, "the policy does not allow it: " + _shown(reason),
                _policy_summary(self._policy))

    def _exec(
        self, text: str, limit: float, max_total: int | None,
        progress: Callable[[int, str], object] | None,
    ) -> ExecResult:
        """Run a command that may be run, and return its result. The lock is held."""
        begun = time.monotonic()
        number = next(self._numbers)
        self._check_policy(number, text)
        shown = self._redactor(text)
        self._record(number, "start", command=shown)
        room = max(self._room, _presented_room(self._redactor, max_total or 0))
        command = _Command(number, text, room, self._memory)
        background = self._background
        self._background = self._new_background()
        tick: Callable[[], None] | None = None
        if progress:
            tick = _Ticker(command, self._redactor, progress).tick
        try:
            self._run(command, begun + limit, tick)
            outputs = [command.out, command.err, background]
            stdout, stderr, earlier = self._present(outputs, max_total)
        except BaseException as error:  # KeyboardInterrupt too: no other command gets its output
            self._end()
            reason = type(error).__name__  # the text of others might quote a value
            if isinstance(error, HotenvError):
                reason = str(error)
            self._memory.drop([command.out, command.err])
            self._record(number, "failed", reason=reason)
            raise
        said = stderr.text
        if command.has_said_exit and said.endswith("exit\n"):
            said = said[:-len("exit\n")]
        if stdout.is_cut or stderr.is_cut:
            self._memory.keep(number, [command.out, command.err])
        else:
            self._memory.drop([command.out, command.err])
        exit_code = command.status
        if command.is_late:
            exit_code = 124
        result = ExecResult(
            command=shown,
            stdout=stdout.text,
            stderr=said,
            exit_code=exit_code,
            duration_ms=int((time.monotonic() - begun) * 1000),
            cwd=self.cwd,
            truncated=stdout.is_cut or stderr.is_cut or earlier.is_cut,
            timed_out=command.is_late,
            shell_restarted=self._has_lost_shell,
            background=earlier.text,
            id=number,
            note=self._note,
        )
        self._has_lost_shell = False
        self._note = ""
        self._record_end(result)
        return result

    def _present(
        self, outputs: list[_ShellOutput], max_total: int | None
    ) -> list[_Presented]:
        """Return the outputs as a result shows them, within the limit for each or for all."""
        limit = self._limit
        if max_total is not None:
            limit = max(0, max_total)
        shown = [output.presented(self._redactor, limit) for output in outputs]
        if max_total is None:
            return shown
        shares = _fair_shares([len(each.text) for each in shown], limit)
        for index, output in enumerate(outputs):
            if len(shown[index].text) > shares[index]:
                shown[index] = output.presented(self._redactor, shares[index])
        return shown

    def _record_end(self, result: ExecResult) -> None:
        """Write the line for the audit that says how a command has ended."""
        self._record(
            result.id, "end", exit_code=result.exit_code, duration_ms=result.duration_ms,
            cwd=result.cwd, truncated=result.truncated, timed_out=result.timed_out,
            shell_restarted=result.shell_restarted, stdout=_shortened(result.stdout),
            stderr=_shortened(result.stderr))

    def _record(self, number: int, event: str, **fields: object) -> None:
        """Write a line for the audit. How a command ended may go unsaid; else HotenvError 8.

        The file is opened anew each time, as a rotation of logs expects.
        """
        import json
        from datetime import datetime, timezone
        if self._audit is None:
            return
        stamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        entry: dict[str, object] = {
            "time": stamp.replace("+00:00", "Z"),
            "session": self._audit_name,
            "id": number,
            "event": event,
        }
        for name, value in self.audit_fields.items():
            entry.setdefault(name, value)
        entry.update(fields)
        line = json.dumps(entry) + "\n"
        try:
            with open(_open_private(self._audit, "audit file"), "ab+", 0) as file:
                size = file.tell()
                if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                    line = "\n" + line  # half a line stands there, from when the disk was full
                _write(file.fileno(), line, "the audit file " + _shown(self._audit))
        except HotenvError as error:
            if event not in ("end", "failed"):
                raise
            _say(str(error))

    # What follows is called with the lock held, or before anybody else knows the session.

    def _run(
        self, command: _Command, deadline: float, tick: Callable[[], None] | None
    ) -> None:
        """See a command through, in a new shell if need be. HotenvError 8: it has not run."""
        import shlex
        quoted = _encoded(shlex.quote(command.text))
        has_run = self._attempt(command, quoted, deadline, tick)
        if not has_run:  # an interrupt of the command before may have come late
            has_run = self._attempt(command, quoted, deadline, tick)
        if not has_run:
            self._end()  # this shell can run nothing any more
            has_run = self._attempt(command, quoted, deadline, tick)
        if not has_run:
            raise HotenvError(EXIT_SYSTEM, "each shell has ended before it ran the command")

    def _attempt(
        self, command: _Command, quoted: bytes, deadline: float, tick: Callable[[], None] | None
    ) -> bool:
        """Send a command, and see it through to a record, or to the end of its shell or time.

        False: the shell has not begun it, and there is time for another attempt.
        """
        shell = self._ready()
        shell.tick = tick
        passage = _Passage()
        self._expect(shell, passage, command)
        nonce = passage.record.nonce
        settled = time.monotonic() + _SHELL_SETTLE
        text = _SHELL_COMMAND % (passage.opening, self._status, quoted, nonce, nonce)
        shell.send(self._transport.framed(text))
        has_come = shell.wait_for_mark(passage.record.marks, deadline, self._stop)
        if not has_come and not shell.has_ended():
            command.is_late = True
            has_come = self._interrupt(shell, passage, command.number, settled)
        if has_come:
            record = passage.record.parse()
            if record:
                if not passage.has_begun() and not command.is_late:
                    return False
                self._accept(record)
                command.status = record.status
                shell.drain()
                self._rest(shell)
                return True
        return self._see_end(shell, passage, command, deadline)

    def _expect(self, shell: _ShellProcess, passage: _Passage, command: _Command) -> None:
        """Set the marks for a command: what comes before, within and after goes where."""
        # A record of the command before may come again, because an interrupt asks for several.
        after: _Sink = _NOWHERE
        if self._transport.is_remote:
            after = self._background
        late = []
        if self._earlier:
            late = self._earlier.late_marks(after)
        if self._transport.is_remote:
            begin = passage.mark_beginning(command.out)
            shell.err.marks = [
                passage.mark_beginning(command.err), passage.record.mark_of_stderr(after)]
            shell.err.marks += late
        else:
            begin = passage.mark_beginning(_NOWHERE)
            shell.out.sink = command.out
            shell.err.sink = command.err
        shell.notes.marks = [begin] + passage.record.marks_of_notes(after) + shell.last_marks + late
        self._earlier = passage.record

    def _rest(self, shell: _ShellProcess) -> None:
        """Have all that is printed between two commands go to `background`."""
        shell.tick = None
        shell.out.sink = self._background
        shell.err.sink = self._background

    def _interrupt(
        self, shell: _ShellProcess, passage: _Passage, number: int, settled: float
    ) -> bool:
        """Interrupt a command. Return whether the shell is then ready for the next one.

        1. The command must have begun: of a line that bash still reads, SIGINT drops a part, and
           the rest would run.
        2. Until `settled`, bash may lose an interrupt, because it is starting the command.
        3. All are told, and the shell is asked for a record. It may have lost the interrupt, or the
           child may not yet have been the command. So once nobody is left who was told, whoever is
           new is told, and the shell is asked again.
        """
        self._transport.resume(shell)
        if not shell.wait_for_mark(passage.begins, time.monotonic() + _SHELL_CONNECT):
            return False
        record = passage.record
        told: set[bytes] = set()
        deadline = settled
        for _ in range(_SHELL_INTERRUPT_ROUNDS):
            if shell.wait_for_mark(record.marks, deadline) or shell.has_ended():
                break
            jobs = list(self._background_jobs)
            if not self._transport.is_remote:
                jobs = [pid for pid in jobs if _is_alive(pid)]
            self._transport.interrupt(shell, number, jobs, told)
            shell.send(b"\n\n__hotenv_end %s 124\n" % record.nonce)
            deadline = time.monotonic() + _SHELL_GRACE / _SHELL_INTERRUPT_ROUNDS
        return shell.wait_for_mark(record.marks, deadline)

    def _see_end(
        self, shell: _ShellProcess, passage: _Passage, command: _Command, deadline: float
    ) -> bool:
        """Wait for a shell that ends, is another program now, or is ended here.

        Returns what `_attempt()` does.
        """
        has_begun = passage.has_begun()
        # A remote shell that says that it ends: the transport waits for its last words.
        is_leaving = self._transport.is_remote and shell.last.has_come()
        if not is_leaving and not shell.wait_for_end(deadline, self._stop):
            command.is_late = True
        shell.drain()
        record = shell.last.parse()
        if record:
            self._accept(record)
        command.status = self._end()
        command.has_said_exit = command.status < 128 and _may_have_said_exit(record, command.text)
        return has_begun or command.is_late

    def _ready(self) -> _ShellProcess:
        """Return the shell, with the output of background jobs taken, or a new one in its place."""
        shell = self._shell
        if shell:
            shell.drain()  # into the `background` of before
            if not shell.has_ended():
                return shell
            record = shell.last.parse()
            if record:
                self._accept(record)
            self._end()
        said = _ShellOutput(4096)
        try:
            shell = self._transport.start(self._poison, said)
            self._shell = shell
            self._settle(shell, said)
            self._rest(shell)
        except (OSError, HotenvError) as error:
            self._end()
            if not self._poison:
                self._poison.append(self._failure_to_run(self._transport.argv[0], error))
            raise _poisoned(self._poison) from None
        return shell

    def _settle(self, shell: _ShellProcess, said: _ShellOutput) -> None:
        """Send a new shell its setup, and wait for its first record."""
        first = _AwaitedRecord()
        shell.notes.marks = [*first.marks_of_notes(self._background), *shell.last_marks]
        shell.err.sink = said  # bash says that it has no terminal
        if self._transport.is_remote:
            shell.err.marks = [first.mark_of_stderr(self._background)]
        change = _SHELL_FIRST_PLACE
        if self._has_started:
            change = _SHELL_LATER_PLACE
        setup = _shell_text(_SHELL_SETUP).replace(b"{LAST}", shell.last.nonce)
        shell.send(
            self._transport.greeting(shell) + setup + self._place(change)
            + _SHELL_SETTLED % first.nonce)
        record = None
        if shell.wait_for_mark(first.marks, time.monotonic() + _SHELL_CONNECT):
            record = first.parse()
        if not record:
            raise self._why_not_settled(shell, said)
        shell.drain()
        gone = self._cwd
        self._accept(record)
        self._earlier = first
        if self._has_started and self._cwd != gone:
            place_shown = _shown(self._place_redactor(gone))
            self._note = f"the directory {place_shown} is gone: the shell is in {self.cwd}"
        self._has_started = True

    def _why_not_settled(self, shell: _ShellProcess, said: _ShellOutput) -> HotenvError:
        """Return the error for a shell whose first record has not come."""
        why = "it gave no answer in time"
        if shell.has_ended() and shell.wait_for_end(time.monotonic() + _SHELL_GRACE):
            why = (
                f"it ended with status {shell.child.status()} "
                "(it must lead to bash and the directory)")
        shell.drain()
        words = said.presented(self._redactor, 400).text.strip()
        if _SHELL_NO_BASH in words:
            return HotenvError(
                EXIT_SYSTEM, "there is no bash at the other end", "install bash there")
        if words:
            why += ": " + words
        return HotenvError(EXIT_SYSTEM, why)

    def _failure_to_run(self, what: str, error: OSError | HotenvError) -> HotenvError:
        """Return the error for a shell or a job that cannot be started."""
        if isinstance(error, HotenvError):
            reason = str(error)
            hints = error.hints
        else:
            reason = _reason(error)
            hints = ()
        return HotenvError(
            EXIT_SYSTEM, _shown(self._redactor(f"cannot run {what}: {reason}")), *hints)

    def _accept(self, record: _ShellRecord) -> None:
        """Take over what a record says of the shell."""
        self._status = record.status & 255
        self._background_jobs = record.jobs
        self._cwd = record.directory or self._cwd
        self._exports = _SHELL_FORGET_EXPORTS + record.exports  # in place of those it is born with
        self.cwd = _shown(self._place_redactor(self._cwd))

    def _end(self) -> int:
        """End the shell and all that is left of its session. Return the shell's exit code."""
        shell = self._shell
        self._shell = None
        if not shell or os.getpid() != self._owner:  # a fork has copies of the pipes, no more
            return 0
        self._has_lost_shell = True
        return self._transport.end(shell)

    def _end_jobs(self) -> None:
        """End all jobs, and wait until what they have to say stands in the audit."""
        if os.getpid() != self._owner:
            return
        for job in self.jobs():
            job.kill(wait=False)  # so that they end side by side
        for job in self.jobs():
            job.kill()


class _Ticker:
    """Tells somebody now and then how a command gets on."""

    def __init__(
        self, command: _Command, redactor: Redactor, progress: Callable[[int, str], object]
    ) -> None:
        self._command = command
        self._redactor = redactor
        self._progress = progress
        self._next = time.monotonic() + _SHELL_TICK
        self._silent_until = time.monotonic() + _SHELL_SILENCE
        self._size = 0

    def tick(self) -> None:
        """Look at the output, at most once a second, and tell the news if there is some."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _SHELL_TICK
        size = self._command.out.size + self._command.err.size
        if size == self._size and now < self._silent_until:
            return
        self._silent_until = now + _SHELL_SILENCE
        self._size = size
        lines = self._command.out.lines + self._command.err.lines
        output = self._command.out
        if not output.size:
            output = self._command.err
        self._progress(lines, output.last_line(self._redactor, 200))


def _remote_words(remote: str | Strings | None, isolated: bool) -> Words | None:
    """Return the words of the command that leads to a remote shell, or None for a local one."""
    import shlex
    if remote is None:
        return None
    try:
        words = shlex.split(remote) if isinstance(remote, str) else list(remote)
    except ValueError:  # a quote is not closed
        words = []
    if not words or isolated:
        raise _usage("a remote shell needs a command, and cannot be isolated")
    return words


def _may_have_said_exit(record: _ShellRecord | None, command: str) -> bool:
    """Has bash written `exit` on stderr as it ended? There is no record if a trap replaces ours."""
    if record:
        return record.status > 0
    return "exit" in command or "logout" in command


def _check_command(command: str) -> None:
    """HotenvError 2: no shell can be sent this text."""
    if not _is_environment({"it": command}) or len(_encoded(command)) > _SHELL_COMMAND_MAX:
        raise _usage("a command is at most 16 MiB, without NUL and lone surrogates")


def _time_limit(seconds: float) -> float:
    """Return a number of seconds; HotenvError 2 for anything else."""
    import math
    if not isinstance(seconds, (int, float)) or math.isnan(seconds):
        raise _usage("a time limit is a number of seconds")
    return seconds


def _is_alive(pid: int) -> bool:
    """Is there such a process on this machine?"""
    try:
        os.getpgid(pid)
    except OSError:
        return False
    return True


def _fair_shares(sizes: list[int], total: int) -> list[int]:
    """Divide a total among several: whoever needs less than its share leaves the rest to others."""
    shares = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for place, index in enumerate(order):
        shares[index] = min(sizes[index], total // (len(sizes) - place))
        total -= shares[index]
    return shares


def _shortened(text: str) -> str:
    """Return the beginning and the end of a text that is long."""
    if len(text) <= _SHELL_AUDITED:
        return text
    half = _SHELL_AUDITED // 2
    return f"{text[:half]}\n[hotenv: {len(text)} characters]\n{text[-half:]}"


# -- jobs ------------------------------------------------------------------------------------------


class _OutputReader:
    """How lines of an output are asked for; see ShellJob.read()."""

    def __init__(
        self,
        redactor: Redactor,
        stream: str,
        first: int,
        count: int,
        pattern: str | None,
        max_output: int,
    ) -> None:
        import re
        self._redactor = redactor
        self._limit = max(1, max_output)
        if stream not in ("stdout", "stderr"):
            raise _usage("an output is stdout or stderr")
        self.index = 0  # of the output that is read, in a pair
        if stream == "stderr":
            self.index = 1
        if not first or count < 1:
            raise _usage("lines count from 1, or from the end by -1; at least one is read")
        self.first = first
        self._count = count
        self._find: Callable[[str], object] | None = None
        if pattern is not None:
            try:
                self._find = re.compile(pattern).search
            except (re.error, OverflowError, RecursionError):
                raise _usage("no regular expression of Python: " + _shown(pattern)) from None

    def settle(self, output: _ShellOutput) -> None:
        """Settle from which line on is read, if lines were counted from the end."""
        if self.first < 0:
            lines = output.lines
            if output.has_line(lines + 1):
                lines += 1
            self.first = max(1, lines + 1 + self.first)

    def has_news(self, output: _ShellOutput, is_running: bool) -> bool:
        """Is there something to return by now?"""
        if not output.has_line(self.first):
            return False
        if not self._find:
            return True
        if self._matching(output, is_running).text:
            return True
        self.first = max(self.first, output.lines + 1)  # all whole lines so far are of no interest
        return False

    def _matching(self, output: _ShellOutput, is_running: bool) -> _OutputLines:
        """Return the lines that match, each behind its number."""
        lines = output.part(self._redactor, self.first, output.lines + 1, not is_running)
        found: Words = []
        size = 0
        after = lines.after
        for number, line in enumerate(lines.text.split("\n"), lines.first):
            if not line or not self._find or not self._find(line[:_SHELL_MATCHED]):
                continue
            size += len(line) + len(f"{number}:\n")
            if len(found) == self._count or found and size > self._limit:
                after = number
                break
            found.append(f"{number}:{line[:self._limit]}\n")
        return _OutputLines("".join(found), lines.first, after)

    def _cut(self, lines: _OutputLines) -> _OutputLines:
        """Return as many whole lines as the limit allows, or the beginning of the first one."""
        text = lines.text[:self._limit]
        end = text.rfind("\n") + 1
        if not end:
            return _OutputLines(text, lines.first, lines.first + 1)
        text = text[:end]
        return _OutputLines(text, lines.first, lines.first + text.count("\n"))

    def read(
        self, output: _ShellOutput, is_running: bool, exit_code: int | None
    ) -> OutputPart:
        """Return the part that is there by now."""
        self.settle(output)
        note = ""
        if output.size and not output.kept_size:
            note = "this output is no longer kept"
        if self._find:
            lines = self._matching(output, is_running)
        else:
            lines = output.part(self._redactor, self.first, self._count, not is_running)
            if len(lines.text) > self._limit:
                lines = self._cut(lines)
                if lines.after == lines.first + 1 and not lines.text.endswith("\n"):
                    note = f"only the beginning of the line {lines.first} is here"
        if lines.first > self.first and not note:
            note = f"the lines {self.first} to {lines.first - 1} are no longer kept"
        return OutputPart(
            text=lines.text, first_line=lines.first, next_line=lines.after, lines=output.lines,
            running=is_running, exit_code=exit_code, note=note)


class _SharedSink(_Sink):
    """Hands bytes to an output that other threads read, and wakes them."""

    def __init__(self, output: _ShellOutput, changed: threading.Condition) -> None:
        self._output = output
        self._changed = changed

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        with self._changed:
            self._output.add(data)
            self._changed.notify_all()


class _Outgoing:
    """Bytes on their way into a pipe or a terminal that takes only some at a time."""

    def __init__(self, descriptor: int, data: bytes = b"") -> None:
        self.descriptor = descriptor
        self.data = data
        self.is_ending = False  # whether the descriptor is closed once all is written
        self.is_open = True
        os.set_blocking(descriptor, False)

    def write(self) -> None:
        """Write as much as there is room for."""
        try:
            if self.data:
                self.data = self.data[os.write(self.descriptor, self.data):]
        except BlockingIOError:
            return
        except OSError:  # nobody reads it any more
            self.data = b""
            self.is_ending = True
        if self.is_ending and not self.data:
            self.close()

    def close(self) -> None:
        """Close the descriptor, once."""
        if self.is_open:
            self.is_open = False
            os.close(self.descriptor)


class _LocalJob:
    """A job on this machine: a bash that reads its script from a pipe beside its stdin."""

    def __init__(self, script: bytes, env: Env, has_terminal: bool) -> None:
        import threading
        from contextlib import ExitStack
        self._lock = threading.Lock()  # around the outgoing bytes
        self._has_terminal = has_terminal
        self._interrupted: dict[int, bytes] = {}  # who has had a Ctrl-C: by pid, the name it had
        # All descriptors are closed on a failure; else only those that the job alone needs are.
        with ExitStack() as on_failure, ExitStack() as only_the_jobs:

            def kept(ends: tuple[int, int]) -> tuple[int, int]:
                for descriptor in ends:
                    on_failure.callback(os.close, descriptor)
                return ends

            script_reader, script_writer = kept(os.pipe())
            if has_terminal:
                terminal, stdin = kept(_open_terminal())
                stdin_writer = os.dup(terminal)
                on_failure.callback(os.close, stdin_writer)
                descriptors = [terminal]
                inner = [stdin, stdin, stdin]
            else:
                stdin, stdin_writer = kept(os.pipe())
                out, stdout = kept(os.pipe())
                err, stderr = kept(os.pipe())
                descriptors = [out, err]
                inner = [stdin, stdout, stderr]
            argv = [*_SHELL_JOB_BASH, f"/dev/fd/{script_reader}"]
            self.child = _GuardedProcess(
                argv, env, inner[0], inner[1], inner[2], passed=[script_reader],
                has_terminal=has_terminal)
            on_failure.pop_all()
            for descriptor in {script_reader, *inner}:
                only_the_jobs.callback(os.close, descriptor)
        self._streams = [_ShellStream(descriptor, _NOWHERE) for descriptor in descriptors]
        script = _SHELL_JOB_HERE % script_reader + script
        self._script = _Outgoing(script_writer, script)
        self._script.is_ending = True
        self._input = _Outgoing(stdin_writer)
        self._script.write()

    def connect(self, out: _SharedSink, err: _SharedSink) -> None:
        """Settle where the output goes; that of a terminal is all `out`."""
        self._streams[0].sink = out
        if not self._has_terminal:
            self._streams[1].sink = err

    def is_open(self) -> bool:
        """May there come more output?"""
        return any([stream.is_open for stream in self._streams])

    def attend(self, seconds: float) -> None:
        """Read what has come, and write what waits. Wait at most so long for either."""
        import select
        readers = {stream.descriptor: stream for stream in self._streams if stream.is_open}
        with self._lock:
            writers = []
            for outgoing in (self._script, self._input):
                if outgoing.is_open and outgoing.data:
                    writers.append(outgoing)
        poll = select.poll()
        for descriptor in readers:
            poll.register(descriptor, select.POLLIN)
        for outgoing in writers:
            poll.register(outgoing.descriptor, select.POLLOUT)
        for descriptor, _ in poll.poll(seconds * 1000):
            if descriptor in readers:
                readers[descriptor].read()
        with self._lock:
            for outgoing in writers:
                if outgoing.is_open:
                    outgoing.write()

    def write(self, data: bytes) -> None:
        """Have the job read this. HotenvError 8: too much waits already, or its stdin has ended."""
        with self._lock:
            if not self._input.is_open or self._input.is_ending:
                raise HotenvError(EXIT_SYSTEM, "the job's stdin has ended")
            if len(self._input.data) + len(data) > _SHELL_INPUT_MAX:
                raise HotenvError(EXIT_SYSTEM, "the job does not read what it is sent")
            self._input.data += data
            self._input.write()

    def end_input(self) -> None:
        """Let the job's stdin end; on a terminal, that is a Ctrl-D."""
        if self._has_terminal:
            self.write(b"\x04")
            return
        with self._lock:
            if self._input.is_open:
                self._input.is_ending = True
                self._input.write()

    def interrupt(self) -> None:
        """Send one Ctrl-C: to all below the job, or to whoever has its terminal."""
        if self.child.process.returncode is not None:
            return
        group = self.child.pid
        others = []
        below = _processes_below(_list_processes(), group)
        self._interrupted = {row.pid: row.name for row in below}
        if self._has_terminal:
            try:
                # Where nobody has the terminal, that is 0, which would mean this very process.
                group = os.tcgetpgrp(self._streams[0].descriptor) or group
            except OSError:
                pass  # the terminal is closed
        else:
            others = [row.pid for row in below if row.group != group]
        _best_effort(os.killpg, group, _signal.SIGINT)
        for pid in others:
            _best_effort(os.kill, pid, _signal.SIGINT)

    def interrupt_again(self) -> None:
        """Send a Ctrl-C to each process that has become another program since interrupt().

        A bash that has just forked loses a Ctrl-C until it has become its command. Other processes
        get no second one.
        """
        if not self._interrupted:
            return
        for row in _processes_below(_list_processes(), self.child.pid):
            if self._interrupted.get(row.pid, row.name) != row.name:
                self._interrupted[row.pid] = row.name
                _best_effort(os.kill, row.pid, _signal.SIGINT)

    def kill(self) -> None:
        """Have the process end at once; end() follows."""
        if self.child.process.returncode is None:
            _best_effort(os.killpg, self.child.pid, _signal.SIGKILL)

    def end(self) -> int:
        """Kill all that is left of the job, and close its pipes. Return the exit code."""
        status = self.child.end()
        with self._lock:
            self._script.close()
            self._input.close()
        for stream in self._streams:
            os.close(stream.descriptor)
        return status


def _open_terminal() -> tuple[int, int]:
    """Return the two ends of a new terminal: ours, and that of whoever runs on it."""
    import fcntl
    import struct
    import termios
    near, far = os.openpty()
    size = struct.pack("HHHH", *_SHELL_TERMINAL_SIZE, 0, 0)
    _best_effort(fcntl.ioctl, far, termios.TIOCSWINSZ, size)
    return near, far


class _RemoteJob:
    """A job elsewhere: a bash behind a relay, which reads its script and then its stdin from it."""

    def __init__(self, script: bytes, remote: _RemoteShells, env: Env) -> None:
        import threading
        self._lock = threading.Lock()  # around what the shell is sent
        self._remote = remote
        self._shell = _ShellProcess(remote.argv, env, is_remote=True, poison=[])
        self.child = self._shell.child
        try:
            said = _ShellOutput(4096)
            self._address = _greet_remote(self._shell, remote, _SHELL_JOB_BASH, said)
        except BaseException:
            self._shell.end()
            raise
        for stream in self._shell.streams:
            stream.marks = []
        self._has_input = True
        self._shell.send(_SHELL_JOB_THERE + script)

    def connect(self, out: _SharedSink, err: _SharedSink) -> None:
        """Settle where the output goes."""
        self._shell.out.sink = out
        self._shell.err.sink = err

    def is_open(self) -> bool:
        """May there come more output?"""
        return self._shell.out.is_open or self._shell.err.is_open

    def attend(self, seconds: float) -> None:
        """Read what has come, and write what waits. Wait at most so long for either."""
        with self._lock:
            if self._shell.unsent_size():
                self._shell.send(b"")
                seconds = min(seconds, 0.005)
        self._shell.move(seconds)

    def write(self, data: bytes) -> None:
        """Have the job read this. HotenvError 8: too much waits already, or its stdin has ended."""
        escaped = "".join([f"\\0{byte:03o}" for byte in data])
        with self._lock:
            if not self._has_input:
                raise HotenvError(EXIT_SYSTEM, "the job's stdin has ended")
            if self._shell.unsent_size() + len(data) > _SHELL_INPUT_MAX:
                raise HotenvError(EXIT_SYSTEM, "the job does not read what it is sent")
            self._shell.send(b"%s write %s\n" % (self._address, escaped.encode()))

    def end_input(self) -> None:
        """Let the job's stdin end."""
        with self._lock:
            self._has_input = False
            self._shell.send(b"%s end\n" % self._address)

    def interrupt(self) -> None:
        """Have the relay send one Ctrl-C."""
        with self._lock:
            self._shell.send(b"%s interrupt 1\n" % self._address)

    def interrupt_again(self) -> None:
        """Do nothing: the relay cannot tell who has become another program."""

    def kill(self) -> None:
        """Let stdin end: then the far side ends everything. end() follows."""
        with self._lock:
            self._shell.close_stdin()

    def end(self) -> int:
        """Let the far side end everything, then end what leads there. Return the exit code."""
        return self._remote.end(self._shell)


class ShellJob:
    """A command that runs beside its session: it has its own output, stdin and end.

    `id` is its number in the session. Threads may share a job.
    """

    def __init__(
        self,
        session: ShellSession,
        number: int,
        command: str,
        process: _LocalJob | _RemoteJob,
    ) -> None:
        """Take a process that has just been started. Only ShellSession.start() makes jobs."""
        import threading
        self.id = number
        self.command = command  # masked
        self.exit_code: int | None = None  # 128+N after signal N; None while it runs
        self._session = session
        self._process = process
        self._begun = time.monotonic()
        self._changed = threading.Condition()
        self._outputs = [
            _ShellOutput(_SHELL_JOB_KEPT, session._memory),
            _ShellOutput(_SHELL_JOB_KEPT, session._memory),
        ]
        self._killed = threading.Event()
        process.connect(
            _SharedSink(self._outputs[0], self._changed),
            _SharedSink(self._outputs[1], self._changed))
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Has it not ended yet?"""
        return self.exit_code is None

    def _attend(self) -> None:
        """Carry output and input until the job has ended. Runs in a thread of its own."""
        process = self._process
        while process.is_open() and not self._killed.is_set():
            process.attend(0.25)
        while process.child.status() is None and not self._killed.is_set():
            self._killed.wait(0.02)  # it has closed its output, and runs on
        status = process.end()
        with self._changed:
            self.exit_code = status
            self._session._memory.keep(self.id, self._outputs)
            self._changed.notify_all()
        self._session._record(
            self.id, "end", exit_code=status, job=True,
            duration_ms=int((time.monotonic() - self._begun) * 1000))

    def read(
        self,
        stream: str = "stdout",
        first: int = 1,
        count: int = 1000,
        pattern: str | None = None,
        wait: float = 0.0,
        *,
        max_output: int = _SHELL_MAX_OUTPUT,
        stop: threading.Event | None = None,
    ) -> OutputPart:
        """Return lines of the output, while the job runs or after its end.

        `stream` is stdout or stderr. `first` is the line to begin with; -10 means the last ten. At
        most `count` lines and `max_output` characters are returned. With `pattern`, a regular
        expression, these are only the lines that match, each behind its number. A value of several
        lines is masked as one line: behind it, these numbers are too small. `wait`: if there is
        nothing to return yet, wait up to so many seconds until there is, or until the job has
        ended; `stop` ends the wait.
        """
        redactor = self._session._redactor
        reader = _OutputReader(redactor, stream, first, count, pattern, max_output)
        give_up = time.monotonic() + min(_time_limit(wait), MAX_DURATION)
        output = self._outputs[reader.index]
        with self._changed:
            reader.settle(output)
            while self.is_running and not reader.has_news(output, self.is_running):
                left = give_up - time.monotonic()
                if left <= 0 or stop and stop.is_set():
                    break
                self._changed.wait(min(left, 0.25))
            return reader.read(output, self.is_running, self.exit_code)

    def write(self, text: str = "", *, secret: str | None = None, end: bool = False) -> None:
        """Send text to the job's stdin, then the value of a secret and a new line, then the end.

        `secret` is the name of a variable of the session's environment: so a prompt is answered by
        somebody who never sees the value. HotenvError 2: there is no such name, or the text has no
        bytes; 8: the job has ended, or reads nothing.
        """
        try:
            data = _encoded(text)
        except UnicodeEncodeError:
            raise _usage("a text for a job has no lone surrogates") from None
        if secret is not None:
            value = self._session._environment.get(secret)
            if value is None:
                raise _usage(f"there is no secret {_shown(secret)} in this session")
            data += _encoded(value) + b"\n"
        if not self.is_running:
            raise HotenvError(EXIT_SYSTEM, "the job has ended")
        shown = _shortened(self._session._redactor(text))
        self._session._record(self.id, "write", text=shown, secret=secret)
        if data:
            self._process.write(data)
        if end:
            self._process.end_input()

    def stop(self, grace: float = _SHELL_GRACE) -> int:
        """Send Ctrl-C, and kill whatever is there `grace` seconds later. Return the exit code."""
        if self.is_running:
            self._process.interrupt()
        give_up = time.monotonic() + min(_time_limit(grace), MAX_DURATION)
        while self.is_running and time.monotonic() < give_up:
            if self._process.child.status() is not None:
                break  # what it has left behind ignores Ctrl-C, as the jobs of a script do
            self._wait_until_ended(_SHELL_SETTLE)
            self._process.interrupt_again()
        self.kill()
        return self.wait() or 0

    def kill(self, *, wait: bool = True) -> None:
        """Kill the job and all that it has started, and wait until that is done."""
        import threading
        if not self._killed.is_set():
            self._killed.set()
            self._process.kill()
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(_SHELL_CONNECT)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end, at most so many seconds. Return the exit code, None if it runs on."""
        limit = MAX_DURATION
        if timeout is not None:
            limit = _time_limit(timeout)
        self._wait_until_ended(limit)
        return self.exit_code

    def _wait_until_ended(self, seconds: float) -> None:
        """Wait for the end, at most so many seconds."""
        give_up = time.monotonic() + min(seconds, MAX_DURATION)
        with self._changed:
            while self.is_running:
                left = give_up - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)


# ==== mcp =========================================================================================
# The Model Context Protocol on stdio, over shell sessions: one JSON message a line, and nothing
# else ever on stdout.
#
# The rules:
#
#   1. A snapshot is fetched by each session_open, for that shell and its masks alone. Each later
#      call that works in a shell asks the hotenv session again. That counts as a use of the
#      session, and shows whether it is still there.
#   2. The thread that reads stdin starts no shell, ends none, and waits for none. The commands of a
#      shell run in order of arrival, in a thread of that shell's own. Any other call that may take
#      time has a thread of its own.
#   3. Clients of two kinds are served. A stateless one, of the revision 2026-07-28, says in the
#      `_meta` of each request which revision it speaks, who it is, and what it can do. An older one
#      has said so once, by `initialize`.

_MCP_OLDER_REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
_MCP_REVISION = "2026-07-28"
_MCP_META = "io.modelcontextprotocol/"  # how the protocol's own keys in `_meta` begin
_MCP_LINE_MAX = 32 << 20  # bytes of one message: the longest command, escaped
_MCP_SHELLS_MAX = 32  # shells at once: each is a few processes and descriptors
_MCP_OUTPUT = 20_000  # characters of a result: beyond about 25,000 tokens, hosts hide it
_MCP_OUTPUT_MAX = 1_000_000  # characters of a result that is asked to be longer
_MCP_WAIT_MAX = 3600  # seconds that session_read may wait
_MCP_TIME_MAX = 86400  # seconds that a command may take
_MCP_LINES = 500  # lines that session_read returns unless the call says how many
_MCP_FRESH = 3_600_000  # milliseconds for which a client may keep the list of tools
_MCP_LAST_ANSWERS = 1.0  # seconds, once stdin has ended, to answer what was asked before
_MCP_FAREWELL = 10.0  # seconds for all shells to end
_MCP_QUESTION = 600.0  # seconds for a user to answer
_MCP_NOTICE_MAX = 3000  # bytes of a notice: a pipe that select() finds writable has 4096 free
_MCP_NAME_MAX = 100  # characters of a client's name in the audit

# Codes of JSON-RPC and of the protocol.
_MCP_NO_JSON = -32700
_MCP_NO_REQUEST = -32600
_MCP_NO_METHOD = -32601
_MCP_WRONG_PARAMS = -32602
_MCP_NO_SUCH_REVISION = -32022

_MCP_INSTRUCTIONS = (
    "Shells with the user's secrets in their environment. Refer to secrets by name ($NAME): "
    "values are masked in all output. Open a session, run commands in it, close it. What runs "
    "long or asks for input is a job (background: true): read its output, answer its prompts with "
    "a secret by its name, stop it.")


def _mcp_object(required: Words, properties: Json) -> Json:
    """Return the JSON schema of an object that has these properties alone."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


_MCP_SESSION = {"type": "string", "description": "id from session_open"}
_MCP_ID = {"type": "integer", "minimum": 1, "description": "id of a job or of a truncated result"}
_MCP_TEXT = {"type": "string"}
_MCP_FLAG = {"type": "boolean"}
_MCP_INTEGER = {"type": "integer"}
_MCP_NAMES = {"type": "array", "items": {"type": "string"}}

# The tools, as tools/list describes them. The arguments of a call are checked by `inputSchema`.
_MCP_TOOLS: list[Json] = [
    {
        "name": "session_open",
        "title": "Open a shell",
        "description": "Open a bash that has the user's secrets. Returns its id and their names.",
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
        },
        "inputSchema": _mcp_object([], {
            "cwd": {"type": "string", "description": "directory to start in"},
            "isolated": {
                "type": "boolean",
                "description": "leave out the user's own environment, except PATH and such",
            },
        }),
        "outputSchema": _mcp_object(["session", "cwd", "secrets", "unmaskable", "not_exported"], {
            "session": _MCP_TEXT,
            "cwd": _MCP_TEXT,
            "secrets": _MCP_NAMES,
            "unmaskable": _MCP_NAMES,
            "not_exported": _MCP_NAMES,
        }),
    },
    {
        "name": "session_exec",
        "title": "Run a command",
        "description": (
            "Run a command and wait for its end. Returns stdout, stderr, exit_code, cwd, masked. "
            "State persists, unless shell_restarted: then only directory and exports do. The rest "
            "of a truncated result is read by session_read with its id. With background, returns "
            "the id of a job at once: for servers, long work, programs that ask."),
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        },
        "inputSchema": _mcp_object(["session", "command"], {
            "session": _MCP_SESSION,
            "command": {
                "type": "string",
                "description": "bash; may have several lines; stdin is empty",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _MCP_TIME_MAX,
                "description": "seconds, default 30; then interrupted, with exit_code 124",
            },
            "max_output": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MCP_OUTPUT_MAX,
                "description": f"characters of the result, default {_MCP_OUTPUT}",
            },
            "background": {"type": "boolean", "description": "start a job, return its id"},
            "terminal": {
                "type": "boolean",
                "description": "with background: give the job a terminal, as sudo and ssh want",
            },
        }),
        "outputSchema": _mcp_object([], {
            "stdout": _MCP_TEXT,
            "stderr": _MCP_TEXT,
            "exit_code": _MCP_INTEGER,
            "duration_ms": _MCP_INTEGER,
            "cwd": _MCP_TEXT,
            "truncated": _MCP_FLAG,
            "timed_out": _MCP_FLAG,
            "shell_restarted": _MCP_FLAG,
            "background": _MCP_TEXT,
            "id": _MCP_INTEGER,
            "note": _MCP_TEXT,
            "running": _MCP_FLAG,
        }),
    },
    {
        "name": "session_read",
        "title": "Read output",
        "description": (
            "Read lines of a job's output, while it runs or after its end, or of a truncated "
            "result. The last line may be unfinished, as a prompt is; read on from next_line."),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "inputSchema": _mcp_object(["session", "id"], {
            "session": _MCP_SESSION,
            "id": _MCP_ID,
            "stream": {
                "type": "string",
                "enum": ["stdout", "stderr"],
                "description": "default stdout; a terminal has only this one",
            },
            "from": {
                "type": "integer",
                "description": "first line, default 1; -10: the last ten",
            },
            "lines": {
                "type": "integer",
                "minimum": 1,
                "description": f"how many, default {_MCP_LINES}",
            },
            "pattern": {
                "type": "string",
                "description": "regular expression: only lines that match, as NUMBER:LINE",
            },
            "wait": {
                "type": "number",
                "minimum": 0,
                "maximum": _MCP_WAIT_MAX,
                "description": "seconds to wait if there is nothing (that matches) yet",
            },
        }),
        "outputSchema": _mcp_object(["text", "first_line", "next_line", "lines", "running"], {
            "text": _MCP_TEXT,
            "first_line": _MCP_INTEGER,
            "next_line": _MCP_INTEGER,
            "lines": _MCP_INTEGER,
            "running": _MCP_FLAG,
            "exit_code": _MCP_INTEGER,
            "note": _MCP_TEXT,
        }),
    },
    {
        "name": "session_write",
        "title": "Send input to a job",
        "description": (
            "Send to a job's stdin a text, or a secret by its name with a new line behind it, or "
            "the end of input."),
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        },
        "inputSchema": _mcp_object(["session", "id"], {
            "session": _MCP_SESSION,
            "id": _MCP_ID,
            "text": {"type": "string", "description": "sent as it is: end lines with a new line"},
            "secret": {"type": "string", "description": "name of a secret, such as DB_PASSWORD"},
            "end": {"type": "boolean", "description": "let stdin end after that"},
        }),
        "outputSchema": _mcp_object(["id", "running"], {"id": _MCP_INTEGER, "running": _MCP_FLAG}),
    },
    {
        "name": "session_stop",
        "title": "Stop a job",
        "description": "Send Ctrl-C to a job, and kill what is left two seconds later.",
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": True,
            "openWorldHint": True,
        },
        "inputSchema": _mcp_object(["session", "id"], {"session": _MCP_SESSION, "id": _MCP_ID}),
        "outputSchema": _mcp_object(["id", "exit_code"], {
            "id": _MCP_INTEGER,
            "exit_code": _MCP_INTEGER,
        }),
    },
    {
        "name": "session_list",
        "title": "List shells",
        "description": "List the open sessions and their jobs.",
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "inputSchema": _mcp_object([], {}),
        "outputSchema": _mcp_object(["sessions"], {
            "sessions": {"type": "array", "items": {"type": "object"}},
        }),
    },
    {
        "name": "session_close",
        "title": "Close a shell",
        "description": "End a session and everything that runs in it.",
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "inputSchema": _mcp_object(["session"], {"session": _MCP_SESSION}),
        "outputSchema": _mcp_object(["closed"], {"closed": _MCP_TEXT}),
    },
]


class _ProtocolError(Exception):
    """A message that is no request, or a request that the protocol does not know."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class _QuestionAsked(Exception):
    """A call waits for the user: a stateless client asks its user, and calls again."""

    def __init__(self, requests: Json) -> None:
        super().__init__("a question for the user")
        self.requests = requests


class _McpClient:
    """A client: its name, for the audit, and whether it can ask its user.

    `info` and `capabilities` are what the client says of itself, and may be any JSON.
    """

    def __init__(self, info: object, capabilities: object) -> None:
        words = []
        if isinstance(info, dict):
            for key in ("name", "version"):
                if isinstance(info.get(key), str):
                    words.append(info[key])
        self.name = _shown(" ".join(words)[:_MCP_NAME_MAX])
        self.can_ask = False
        if isinstance(capabilities, dict):
            elicitation = capabilities.get("elicitation")
            if isinstance(elicitation, dict):  # an empty object means forms
                self.can_ask = not elicitation or "form" in elicitation


class _McpRequest:
    """A request, and what its `_meta` says."""

    def __init__(
        self, request_id: str | int, method: str, params: Json, client: _McpClient
    ) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.client = client
        self.is_stateless = False  # until check_revision() has found that it is
        meta = params.get("_meta")
        self.meta: Json = {}
        if isinstance(meta, dict):
            self.meta = meta

    def check_revision(self) -> None:
        """Find out whether this request is stateless. _ProtocolError: its `_meta` is wrong."""
        revision = self.meta.get(_MCP_META + "protocolVersion")
        if revision is None:
            if self.method == "server/discover":
                raise _ProtocolError(_MCP_WRONG_PARAMS, "_meta must name a protocolVersion")
            return
        if not isinstance(revision, str):  # deep JSON could not even be sent back
            raise _ProtocolError(_MCP_WRONG_PARAMS, "the protocolVersion in _meta must be a string")
        if revision != _MCP_REVISION:
            raise _ProtocolError(
                _MCP_NO_SUCH_REVISION, "Unsupported protocol version",
                {"supported": [_MCP_REVISION], "requested": revision})
        capabilities = self.meta.get(_MCP_META + "clientCapabilities")
        if not isinstance(capabilities, dict):
            raise _ProtocolError(_MCP_WRONG_PARAMS, "_meta must have clientCapabilities")
        self.is_stateless = True
        self.client = _McpClient(self.meta.get(_MCP_META + "clientInfo"), capabilities)

    def progress_token(self) -> str | int | None:
        """Return the token under which the client wants to hear of progress, or None."""
        token = self.meta.get("progressToken")
        if type(token) in (str, int):
            return token
        return None


class _McpShell:
    """A shell of the agent's: its name, and the remote that it is at, or '' for this machine."""

    def __init__(self, name: str, where: str) -> None:
        from concurrent.futures import ThreadPoolExecutor
        self.name = name
        self.where = where
        self.session: ShellSession | None = None  # once it is open
        self.path = ""  # of the socket of the hotenv session behind it, once that is known
        self.thread = ThreadPoolExecutor(1)  # does the shell's work in order of arrival
        self.is_closed = False  # whether it is ending, or has ended


class _McpQuestion:
    """A question to the user of an older client, which a thread waits for."""

    def __init__(self) -> None:
        import threading
        self.has_come = threading.Event()  # set when the client answers, in whatever way
        self.answer: Json | None = None  # the result; None too if the client answers by an error


class _McpCall:
    """A call of a tool."""

    def __init__(self, request: _McpRequest, tool: str, arguments: Json) -> None:
        import threading
        self.request = request
        self.tool = tool
        self.arguments = arguments
        self.stop = threading.Event()  # set when the client cancels the call

    def answers(self) -> Json:
        """Return what a stateless client has sent along in answer to questions."""
        answers = self.request.params.get("inputResponses")
        if isinstance(answers, dict):
            return answers
        return {}


class _McpOutput:
    """Where messages go: the standard output that this process was started with."""

    def __init__(self) -> None:
        import threading
        self._descriptor = os.dup(1)
        os.dup2(2, 1)  # what else is printed to stdout goes to stderr
        self._lock = threading.Lock()

    def send(self, message: Json) -> None:
        """Write a message, however long the client takes to read it."""
        text = self._line(message)
        with self._lock:
            _write(self._descriptor, text)

    def offer(self, message: Json) -> None:
        """Write a short message, or drop it if the client does not read just now."""
        import select
        text = self._line(message)
        if len(text) > _MCP_NOTICE_MAX or not self._lock.acquire(blocking=False):
            return
        try:
            if select.select([], [self._descriptor], [], 0)[1]:
                _write(self._descriptor, text)
        finally:
            self._lock.release()

    @staticmethod
    def _line(message: Json) -> str:
        """Return a message as one line of ASCII."""
        import json
        return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


class _McpProgress:
    """Tells a client how its call gets on."""

    def __init__(self, output: _McpOutput, token: str | int) -> None:
        self._output = output
        self._token = token
        self._last = -1.0

    def tell(self, lines: int, last_line: str) -> None:
        """Offer a notice. By the protocol, its number is larger than that of the one before."""
        self._last = max(float(lines), self._last + 0.01)
        self._output.offer({
            "method": "notifications/progress",
            "params": {
                "progressToken": self._token,
                "progress": round(self._last, 2),
                "message": f"{_plural(lines, 'line')}: {last_line}",
            },
        })


class _McpServer:
    """The protocol, and the shells by their names."""

    def __init__(self, options: Namespace) -> None:
        import itertools
        self._options = options
        self._output = _McpOutput()
        self._client = _McpClient(None, None)  # as `initialize` introduces it
        self._tools = self._described_tools()
        self._schemas = {tool["name"]: tool["inputSchema"] for tool in self._tools}
        self._shells: dict[str, _McpShell] = {}
        self._numbers = itertools.count(1)
        # The calls that are not answered yet, by the repr() of their ids. A notice of cancellation
        # may hold any value of JSON as the id, and a list or an object could be no key.
        self.unanswered: dict[str, _McpCall] = {}
        self._questions: dict[str, _McpQuestion] = {}  # by the ids that they were sent with
        # What a method returns is sent as the result at once. A method that returns None has sent
        # an answer, or a thread will.
        self._older_methods: dict[str, Callable[[_McpRequest], Json | None]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call,
        }
        self._stateless_methods: dict[str, Callable[[_McpRequest], Json | None]] = {
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "tools/list": self._list_tools,
            "tools/call": self._call,
        }
        # How the thread that reads has a call of each tool done.
        self._runs: dict[str, Callable[[_McpCall], None]] = {
            "session_open": self._run_open,
            "session_exec": self._run_in_order,
            "session_read": self._run_beside,
            "session_write": self._run_beside,
            "session_stop": self._run_beside,
            "session_list": self._run_list,
            "session_close": self._run_close,
        }
        # What another thread then does; it returns what the agent is told.
        self._results: dict[str, Callable[[_McpCall, _McpShell], Json]] = {
            "session_open": self._open,
            "session_exec": self._exec,
            "session_read": self._read,
            "session_write": self._write,
            "session_stop": self._stop,
            "session_close": self._close,
        }

    def _described_tools(self) -> list[Json]:
        """Return the tools, with the names of the remotes that can be opened."""
        import copy
        tools = copy.deepcopy(_MCP_TOOLS)
        for tool in tools:
            if tool["name"] == "session_open" and self._options.remote:
                tool["inputSchema"]["properties"]["remote"] = {
                    "type": "string",
                    "description": "where; default: this machine",
                    "enum": sorted(self._options.remote),
                }
        return tools

    # -- messages --

    def take(self, line: bytes) -> None:
        """Answer a message, or have a thread do so."""
        request_id: str | int | None = None  # None: the line has no id that could be told
        try:
            message = self._parse(line)
            if message is None:
                return
            request_id = message.get("id")
            if request_id is None:
                self._notice(message)
                return
            self._answer(message)
        except _ProtocolError as error:
            failure: Json = {"code": error.code, "message": str(error)}
            if error.data:
                failure["data"] = error.data
            self._output.send({"id": request_id, "error": failure})

    def _parse(self, line: bytes) -> Json | None:
        """Return a request or a notification; None if the message needs no answer."""
        import json
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise _ProtocolError(_MCP_NO_JSON, "not JSON, or a line of more than 32 MiB") from None
        if _is_mcp_answer(message):
            self._take_answer(message)
            return None
        if not _is_mcp_request(message):
            raise _ProtocolError(
                _MCP_NO_REQUEST,
                "no JSON-RPC 2.0 message: method is a string, id a string or an integer")
        request: Json = message
        return request

    def _notice(self, message: Json) -> None:
        """Take a notification. Only one that cancels a call has an effect."""
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            call = self.unanswered.get(repr(params.get("requestId")))
            if call:
                call.stop.set()

    def _answer(self, message: Json) -> None:
        """Do what a request asks for."""
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise _ProtocolError(_MCP_WRONG_PARAMS, "params must be an object")
        request = _McpRequest(message["id"], message["method"], params, self._client)
        request.check_revision()
        methods = self._older_methods
        if request.is_stateless:
            methods = self._stateless_methods
        method = methods.get(request.method)
        if not method:
            raise _ProtocolError(_MCP_NO_METHOD, "no method " + _shown(request.method))
        result = method(request)
        if result is not None:
            self._send_result(request, result)

    def _send_result(self, request: _McpRequest, result: Json) -> None:
        """Send what a request has led to, in the form that the client's revision has for it."""
        if request.is_stateless:
            result = {
                "resultType": "complete",  # unless the result says that it needs input
                **result,
                "_meta": {_MCP_META + "serverInfo": _mcp_server_info()},
            }
        self._output.send({"id": request.id, "result": result})

    # -- methods --

    def _initialize(self, request: _McpRequest) -> Json:
        """Learn who an older client is, and agree with it on a revision."""
        revision = request.params.get("protocolVersion")
        if revision not in _MCP_OLDER_REVISIONS:
            revision = _MCP_OLDER_REVISIONS[-1]
        self._client = _McpClient(
            request.params.get("clientInfo"), request.params.get("capabilities"))
        return {
            "protocolVersion": revision,
            "capabilities": {"tools": {}},
            "serverInfo": _mcp_server_info(),
            "instructions": self._instructions(),
        }

    def _ping(self, request: _McpRequest) -> Json:
        """Show that the server is there."""
        return {}

    def _discover(self, request: _McpRequest) -> Json:
        """Tell a stateless client what the server is."""
        return {
            "supportedVersions": [_MCP_REVISION],
            "capabilities": {"tools": {}},
            "instructions": self._instructions(),
            "ttlMs": _MCP_FRESH,
            "cacheScope": "private",
        }

    def _listen(self, request: _McpRequest) -> None:
        """Acknowledge a subscription. Nothing here ever changes, so no notice follows."""
        self._output.send({
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {_MCP_META + "subscriptionId": request.id},
                "notifications": {},
            },
        })

    def _list_tools(self, request: _McpRequest) -> Json:
        """Return the tools."""
        result: Json = {"tools": self._tools}
        if request.is_stateless:
            result["ttlMs"] = _MCP_FRESH
            result["cacheScope"] = "private"
        return result

    def _instructions(self) -> str:
        """Return what an agent should know before its first call."""
        text = _MCP_INSTRUCTIONS
        if self._options.policy:
            summary = _policy_summary(self._options.policy)
            if summary:
                text += f" A policy looks at the first word of each command: {summary}."
        return text

    def _call(self, request: _McpRequest) -> None:
        """Check a call of a tool, and have it done."""
        name = request.params.get("name")
        arguments = request.params.get("arguments") or {}
        if not isinstance(name, str) or name not in self._schemas:
            raise _ProtocolError(_MCP_WRONG_PARAMS, "there is no such tool")
        if not isinstance(arguments, dict):
            raise _ProtocolError(_MCP_WRONG_PARAMS, "the arguments of a tool are an object")
        call = _McpCall(request, name, arguments)
        try:
            _check_arguments(self._schemas[name], arguments)
            self._runs[name](call)
        except HotenvError as error:
            self._send_result(request, _mcp_failure(_mcp_text(error)))

    # -- how calls run --

    def _shell_of(self, call: _McpCall) -> _McpShell:
        """Return the shell that a call names."""
        shell = self._shells.get(call.arguments["session"])
        if not shell:
            raise _usage("that session is not open: see session_list, session_open")
        return shell

    def _run_open(self, call: _McpCall) -> None:
        """Have the thread of a new shell open it."""
        if len(self._shells) >= _MCP_SHELLS_MAX:
            raise _usage(f"{_MCP_SHELLS_MAX} sessions are open: close one")
        shell = _McpShell(f"s{next(self._numbers)}", call.arguments.get("remote", ""))
        self._shells[shell.name] = shell
        self._queue(call, shell)

    def _run_in_order(self, call: _McpCall) -> None:
        """Have a call done when those that came before it are done."""
        self._queue(call, self._shell_of(call))

    def _run_beside(self, call: _McpCall) -> None:
        """Have a thread do a call at once, also while a command runs in the shell."""
        self._start_thread(call, self._shell_of(call))

    def _run_close(self, call: _McpCall) -> None:
        """Take a shell away from later calls, and end it in a thread.

        The calls that wait for the shell find it closed.
        """
        shell = self._shell_of(call)
        shell.is_closed = True
        del self._shells[shell.name]
        self._start_thread(call, shell)

    def _queue(self, call: _McpCall, shell: _McpShell) -> None:
        """Have the shell's own thread do a call, after those that came before."""
        self.unanswered[repr(call.request.id)] = call
        shell.thread.submit(self._work, call, shell)

    def _start_thread(self, call: _McpCall, shell: _McpShell) -> None:
        """Have a new thread do a call."""
        import threading
        self.unanswered[repr(call.request.id)] = call
        threading.Thread(target=self._work, args=(call, shell), daemon=True).start()

    def _run_list(self, call: _McpCall) -> None:
        """Answer with the open shells and their jobs, at once."""
        rows = []
        for shell in list(self._shells.values()):
            if shell.session:
                row: Json = {
                    "session": shell.name,
                    "where": shell.where or "this machine",
                    "cwd": shell.session.cwd,
                }
                jobs = [_mcp_job(job) for job in shell.session.jobs()]
                if jobs:
                    row["jobs"] = jobs
                rows.append(row)
        self._send_result(call.request, _mcp_content({"sessions": rows}))

    def _work(self, call: _McpCall, shell: _McpShell) -> None:
        """Do what a call asks for, and answer. A cancelled call gets no answer."""
        result = self._outcome(call, shell)
        if call.tool == "session_open" and not shell.session:  # the shell could not be opened
            self._shells.pop(shell.name, None)
        if not call.stop.is_set():
            self._send_result(call.request, result)
        self.unanswered.pop(repr(call.request.id), None)

    def _outcome(self, call: _McpCall, shell: _McpShell) -> Json:
        """Do what a call asks for, and return the result, which may be a failure or a question."""
        try:
            return _mcp_content(self._results[call.tool](call, shell))
        except _QuestionAsked as question:
            return {"resultType": "input_required", "inputRequests": question.requests}
        except SessionPoisoned as error:
            failure = _mcp_text(error)
            if not shell.is_closed and shell.session:
                self._end_shell(shell)
                failure += "; open another with session_open"
        except HotenvError as error:
            failure = self._explained(error, shell)
        except Exception as error:  # its text might quote a value, as a traceback would
            failure = getattr(error, "strerror", None) or "internal error: " + type(error).__name__
        return _mcp_failure(failure)

    def _explained(self, error: HotenvError, shell: _McpShell) -> str:
        """Return what to tell the agent of an error.

        If the hotenv session behind a shell does not answer any more, every shell that has secrets
        of that session is ended.
        """
        related = self._related(shell)
        if error.code != EXIT_UNREACHABLE or not related:
            return _mcp_text(error)
        for each in related:
            self._end_shell(each)
        names = ", ".join([each.name for each in related])
        return (
            f"the hotenv session has ended, or does not answer. So its shells are closed: {names}. "
            f"Ask the user for: {_invocation()} serve < secrets.env; then session_open.")

    def _related(self, shell: _McpShell) -> list[_McpShell]:
        """Return the open shells that have secrets of the same hotenv session."""
        related = []
        for each in list(self._shells.values()):
            if each.session and each.path == shell.path:
                related.append(each)
        return related

    def _end_shell(self, shell: _McpShell) -> None:
        """End a shell. The calls that still wait for it find it closed."""
        shell.is_closed = True
        self._shells.pop(shell.name, None)
        if shell.session:
            shell.session.close()

    def end(self) -> None:
        """End all shells, side by side, within a time."""
        import threading
        threads = []
        for shell in list(self._shells.values()):
            thread = threading.Thread(target=self._end_shell, args=(shell,), daemon=True)
            thread.start()
            threads.append(thread)
        give_up = time.monotonic() + _MCP_FAREWELL
        for thread in threads:
            thread.join(max(0.0, give_up - time.monotonic()))

    # -- the tools --

    def _snapshot(self, call: _McpCall, shell: _McpShell) -> Values:
        """Find the hotenv session for a new shell, and return its snapshot."""
        options = self._options
        shell.path = _locate(options.socket, options.name).path
        return fetch("run", ["mcp", call.tool], shell.path, peer_uid=options.peer_uid)

    def _session_of(self, call: _McpCall, shell: _McpShell) -> ShellSession:
        """Return the open shell of a call, which is a use of the hotenv session."""
        if not shell.session:
            raise HotenvError(EXIT_SYSTEM, "that session is not open")
        # This is a use of the hotenv session, and shows whether it is still there.
        _touch("run", ["mcp", call.tool], _Session(shell.path), self._options.peer_uid)
        if call.request.client.name:
            shell.session.audit_fields["client"] = call.request.client.name
        return shell.session

    def _open(self, call: _McpCall, shell: _McpShell) -> Json:
        """Start the bash of a new shell."""
        options = self._options
        environment = self._first_use(call, shell)
        given = environment
        if options.only:
            given = {}
            for name, value in environment.items():
                if _matches(name, options.only):
                    given[name] = value
        fields = {"agent_session": shell.name}
        if shell.where:
            fields["machine"] = shell.where
        if call.request.client.name:
            fields["client"] = call.request.client.name
        session = ShellSession(
            given, isolated=call.arguments.get("isolated", False), cwd=call.arguments.get("cwd"),
            remote=options.remote.get(shell.where), policy=options.policy, audit=options.audit,
            no_mask=options.no_mask, also_mask=environment, audit_fields=fields)
        if call.stop.is_set() or shell.is_closed:  # cancelled or closed while the bash started
            session.close()
            raise HotenvError(EXIT_SYSTEM, "the call was cancelled")
        shell.session = session
        return {
            "session": shell.name,
            "cwd": session.cwd,
            "secrets": sorted(given),
            "unmaskable": session.unmaskable,
            "not_exported": session.omitted,
        }

    def _first_use(self, call: _McpCall, shell: _McpShell) -> Values:
        """Return the snapshot for a new shell. Without a session, the user is asked for one."""
        if call.stop.is_set():
            raise HotenvError(EXIT_SYSTEM, "the call was cancelled")
        try:
            return self._snapshot(call, shell)
        except HotenvError as error:
            if not self._may_ask(call, shell, error) or not self._ask_for_session(call, error):
                raise
        return self._snapshot(call, shell)  # the new session has another socket

    def _may_ask(self, call: _McpCall, shell: _McpShell, error: HotenvError) -> bool:
        """Is there no session, and can the user be asked to start one?

        Where open shells have lost their session, nobody is asked yet: they are closed first, and
        the agent is told so.
        """
        is_absent = error.code in (EXIT_NO_SESSION, EXIT_UNREACHABLE)
        return is_absent and call.request.client.can_ask and not self._related(shell)

    def _ask_for_session(self, call: _McpCall, error: HotenvError) -> bool:
        """Ask the user to start a session. Return whether the user says that there is one now."""
        question: Json = {
            "message": (
                f"hotenv: {error}. The agent wants a shell with your secrets. Start a session for "
                f"{_shown(os.getcwd())} in a terminal of yours, then accept: "
                f"{_invocation()} serve < secrets.env"),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "started": {
                        "type": "boolean",
                        "title": "The session is started",
                        "default": True,
                    },
                },
            },
        }
        if call.request.is_stateless:
            answer = call.answers().get("start_session")
            if answer is None:
                raise _QuestionAsked({
                    "start_session": {
                        "method": "elicitation/create",
                        "params": {"mode": "form", **question},
                    },
                })
        else:
            answer = self._ask_client(call, question)
        return isinstance(answer, dict) and answer.get("action") == "accept"

    def _ask_client(self, call: _McpCall, params: Json) -> Json | None:
        """Ask the user of an older client; return the answer, or None if there is none."""
        number = f"hotenv-{next(self._numbers)}"
        question = _McpQuestion()
        self._questions[number] = question
        self._output.send({"id": number, "method": "elicitation/create", "params": params})
        give_up = time.monotonic() + _MCP_QUESTION
        while not question.has_come.wait(0.1):
            if call.stop.is_set() or time.monotonic() > give_up:
                self._output.send({  # the host need not show it any longer
                    "method": "notifications/cancelled",
                    "params": {"requestId": number},
                })
                break
        del self._questions[number]
        return question.answer

    def _take_answer(self, message: Json) -> None:
        """Take an answer to a question. Answers that nobody waits for are ignored."""
        question = self._questions.get(str(message.get("id")))
        if question:
            if isinstance(message.get("result"), dict):
                question.answer = message["result"]
            question.has_come.set()

    def _exec(self, call: _McpCall, shell: _McpShell) -> Json:
        """Run a command, or start it as a job."""
        if call.stop.is_set():
            raise HotenvError(EXIT_SYSTEM, "the call was cancelled")
        session = self._session_of(call, shell)
        arguments = call.arguments
        if arguments.get("background"):
            job = session.start(arguments["command"], terminal=arguments.get("terminal", False))
            return {"id": job.id, "running": True}
        if arguments.get("terminal"):
            raise _usage("only a job has a terminal: set background, too")
        token = call.request.progress_token()
        progress = None
        if token is not None:
            progress = _McpProgress(self._output, token).tell
        result = session.exec(
            arguments["command"], arguments.get("timeout"), stop=call.stop, progress=progress,
            max_total=arguments.get("max_output", _MCP_OUTPUT)).as_dict()
        del result["command"]  # the agent knows that one
        if not result["truncated"]:
            del result["id"]
        if not result["note"]:
            del result["note"]
        return result

    def _read(self, call: _McpCall, shell: _McpShell) -> Json:
        """Read lines of an output."""
        arguments = call.arguments
        session = self._session_of(call, shell)
        part = session.read(
            arguments["id"], arguments.get("stream", "stdout"), arguments.get("from", 1),
            arguments.get("lines", _MCP_LINES), arguments.get("pattern"), arguments.get("wait", 0),
            max_output=_MCP_OUTPUT, stop=call.stop).as_dict()
        if part["exit_code"] is None:
            del part["exit_code"]
        if not part["note"]:
            del part["note"]
        return part

    def _job_of(self, call: _McpCall, shell: _McpShell) -> ShellJob:
        """Return the job that a call names."""
        job = self._session_of(call, shell).job(call.arguments["id"])
        if not job:
            raise _usage("there is no such job: see session_list")
        return job

    def _write(self, call: _McpCall, shell: _McpShell) -> Json:
        """Send something to a job."""
        arguments = call.arguments
        job = self._job_of(call, shell)
        job.write(
            arguments.get("text", ""), secret=arguments.get("secret"),
            end=arguments.get("end", False))
        return {"id": job.id, "running": job.is_running}

    def _stop(self, call: _McpCall, shell: _McpShell) -> Json:
        """End a job."""
        job = self._job_of(call, shell)
        return {"id": job.id, "exit_code": job.stop()}

    def _close(self, call: _McpCall, shell: _McpShell) -> Json:
        """End a shell."""
        self._end_shell(shell)
        return {"closed": shell.name}


def _is_mcp_answer(message: object) -> bool:
    """Is a line of JSON the client's answer to a question?"""
    if not isinstance(message, dict) or message.get("method"):
        return False
    return "result" in message or "error" in message


def _is_mcp_request(message: object) -> bool:
    """Is a line of JSON a request, or a notification, which has no id?"""
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and type(message.get("id", 0)) in (str, int))


def _mcp_server_info() -> Json:
    """Return the name and the version of this server."""
    return {"name": "hotenv", "version": __version__}


def _mcp_content(content: Json) -> Json:
    """Return the result of a tool: an object, and its text for clients that know only text."""
    import json
    return {
        "content": [{"type": "text", "text": json.dumps(content, ensure_ascii=False)}],
        "structuredContent": content,
        "isError": False,
    }


def _mcp_failure(text: str) -> Json:
    """Return the result of a tool that has failed, with what the agent should know."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _mcp_text(error: HotenvError) -> str:
    """Return an error as an agent reads it: what is wrong, then what to do."""
    return "; ".join([str(error), *[hint for hint in error.hints if hint]])


def _mcp_job(job: ShellJob) -> Json:
    """Return a job as session_list describes it."""
    command = _shown(_shortened(job.command))
    row: Json = {"id": job.id, "command": command, "running": job.is_running}
    if job.exit_code is not None:
        row["exit_code"] = job.exit_code
    return row


def _check_arguments(schema: Json, arguments: Json) -> None:
    """Check the arguments of a tool against its schema; HotenvError 2 says what is wrong."""
    import json
    for name in schema["required"]:
        if name not in arguments:
            raise _usage("the argument " + name + " is missing")
    for name, value in arguments.items():
        expected = schema["properties"].get(name)
        if not expected:
            raise _usage("there is no argument " + _shown(name))
        if not _fits_schema(value, expected):
            raise _usage(f"the argument {name} must fit {json.dumps(expected)}")


def _fits_schema(value: Any, expected: Json) -> bool:
    """Is a value of the kind, and within the bounds, that a property's schema tells?"""
    kinds = {"string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}
    if type(value) not in kinds[expected["type"]]:  # not isinstance(): True is an int there
        return False
    # Of two numbers, `not a >= b` is not `a < b`: NaN is within no bounds.
    if "minimum" in expected and not value >= expected["minimum"]:
        return False
    if "exclusiveMinimum" in expected and not value > expected["exclusiveMinimum"]:
        return False
    if "maximum" in expected and not value <= expected["maximum"]:
        return False
    return "enum" not in expected or value in expected["enum"]


class _McpEnd(Exception):
    """A signal asks this process to end."""


def _serve_mcp(options: Namespace) -> NoReturn:
    """Serve stdin and stdout until stdin ends or a signal comes; then every shell ends, too."""
    if not sys.stdin:  # it was closed at the start, and another file may have its number by now
        raise HotenvError(
            EXIT_SYSTEM, "mcp: cannot read stdin: it is closed",
            "an agent starts `hotenv mcp`, and speaks to it over stdin and stdout")
    if options.policy is not None:
        options.policy = _load_policy(options.policy)
    options.remote = _mcp_remotes(options.remote)
    _harden()
    if options.audit is not None:
        os.close(_open_private(options.audit, "audit file"))
    if os.isatty(0):
        _say(
            "mcp: waiting for an agent's JSON lines on stdin, see: "
            f"{_invocation()} help mcp (Ctrl-D ends it)")
    server = _McpServer(options)

    def end(signum: int, frame: object) -> None:
        for each in _SESSION_ENDING:
            _signal.signal(each, _signal.SIG_IGN)
        raise _McpEnd

    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # ignored, it would lose exit statuses
    try:
        for signum in _SESSION_ENDING:
            _signal.signal(signum, end)
        _read_mcp(server)
    except _McpEnd:
        pass
    finally:
        server.end()
    os._exit(0)  # a thread may still wait for a client that does not read


def _mcp_remotes(definitions: Words) -> dict[str, str]:
    """Return the commands of --remote, by the names under which the agent asks for a shell."""
    remotes = {}
    for definition in definitions:
        name, _, command = definition.partition("=")
        if not name or not command:
            raise _usage("mcp: --remote takes NAME=CMD")
        remotes[name] = command
    return remotes


def _read_mcp(server: _McpServer) -> None:
    """Read messages until stdin ends. Then wait a moment for calls that are not answered yet."""
    for line in _mcp_lines():
        server.take(line)
    give_up = time.monotonic() + _MCP_LAST_ANSWERS
    while server.unanswered and time.monotonic() < give_up:
        time.sleep(0.01)


def _mcp_lines() -> Iterator[bytes]:
    """Yield the lines of stdin that are not blank.

    Of a line that is too long, only the beginning comes, which is then refused as no JSON.
    """
    try:
        with open(0, "rb", closefd=False) as stdin:
            is_rest = False
            while True:
                line = stdin.readline(_MCP_LINE_MAX)
                if not line:
                    return
                if not is_rest and line.strip():
                    yield line
                is_rest = not line.endswith(b"\n")
    except OSError as error:
        raise _system_error(error, "cannot read stdin") from None


# ==== command line ================================================================================
# The options, one function a command, and the help. main() has _exit_status(), of the room of the
# process, print an error and pick the exit status. When main() returns, all work is done: a handler
# at exit only blocks signals.


class _CommandHelp:
    """What the help says of a command: how it is called, what it does, an example, and more."""

    def __init__(self, usage: str, summary: str, example: str, more: str = "") -> None:
        self.usage = usage
        self.summary = summary
        self.example = example
        self.more = more


_COMMANDS = {
    "serve": _CommandHelp(
        "serve [options]",
        "Read variables from stdin, and hold them in memory for `hotenv run`.",
        "pass show deploy/env | hotenv serve --timeout 15m"),
    "run": _CommandHelp(
        "run [options] -- COMMAND [ARG...]",
        "Run a command with the session's variables in its environment.",
        "hotenv run -- ./deploy.sh --to production",
        more="Guards (--no-network, ...): hotenv hermetic --help"),
    "dump": _CommandHelp(
        "dump [options]",
        "Print the session's variables.",
        "hotenv dump --only TOKEN --format value | docker login --password-stdin"),
    "mask": _CommandHelp(
        "mask [options]",
        "Copy stdin to stdout, with the session's values hidden.",
        "kubectl logs web | hotenv mask"),
    "status": _CommandHelp(
        "status [options]",
        "Say whether a session is live, and until when. Asking does not prolong it.",
        "hotenv status -q || echo 'no session'"),
    "stop": _CommandHelp(
        "stop [options]",
        "End this directory's session, and return when its files are gone.",
        "hotenv stop"),
    "hermetic": _CommandHelp(
        "hermetic [GUARDS] -- TARGET [ARG...]",
        "Run a program without network, subprocesses, writes or native code, as the guards say.",
        "hotenv hermetic --no-network --trace -- pip download requests",
        more="What each guard holds: hotenv help hermetic"),
    "mcp": _CommandHelp(
        "mcp [options]",
        "Give an agent shells with the session's variables, masked: MCP on stdio.",
        "claude mcp add hotenv -- python3 hotenv.py mcp --audit ~/hotenv-audit.log"),
    "shellenv": _CommandHelp(
        "shellenv [SHELL]",
        "Print a shell function that runs this file, compiled once.",
        'eval "$(python3 ~/trusted/hotenv.py shellenv)"      # ~/.profile, ~/.bashrc or ~/.zshrc\n'
        "  python3 ~/trusted/hotenv.py shellenv fish | source  # ~/.config/fish/config.fish"),
    "completion": _CommandHelp(
        "completion SHELL",
        "Print what a shell needs to complete the words of an installed hotenv.",
        "hotenv completion bash > ~/.local/share/bash-completion/completions/hotenv",
        more="`hotenv shellenv` prints the same behind its function."),
}

_INPUT_FORMATS = ["dotenv", "json", "nul"]
_DUMP_FORMATS = ["plain", "dotenv", "sh", "json", "nul", "names", "value"]
_SHELLS = ["sh", "bash", "zsh", "fish"]
_COMPLETED_SHELLS = ["bash", "zsh", "fish"]

# Words of other tools that people type, and the words of hotenv that mean the same.
_WORDS_OF_OTHERS = {
    "start": ["serve"],
    "up": ["serve"],
    "restart": ["serve", "--force"],
    "reload": ["serve", "--force"],
    "refresh": ["serve", "--force"],
    "exec": ["run"],
    "end": ["stop"],
    "kill": ["stop"],
    "down": ["stop"],
    "list": ["dump", "--format", "names"],
    "ls": ["dump", "--format", "names"],
    "redact": ["mask"],
    "filter": ["mask"],
    "show": ["dump"],
    "print": ["dump"],
    "env": ["dump"],
    "export": ["dump", "--format", "sh"],
}


def _parser(command: str) -> ArgumentParser:
    """Return a parser of a command's options. For wrong words the parser raises HotenvError."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            known = list(self._option_string_actions)
            raise _usage(f"{command}: {_shown(message)}", *_parser_hints(command, message, known))

    about = _COMMANDS[command]
    epilog = "example:\n  " + about.example
    if about.more:
        epilog += "\n\n" + about.more
    parser = Parser(
        usage="hotenv " + about.usage,
        description=about.summary,
        epilog=epilog,
        allow_abbrev=False,
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # The options go into a group, because that is faster: for each option that is added to a parser
    # itself, argparse asks how wide the terminal is.
    options = parser.add_argument_group("options")
    options.add_argument("-h", "--help", action="store_true", help="show this help")
    add_options: dict[str, Callable[[OptionGroup], None]] = {
        "serve": _add_serve_options,
        "run": _add_run_options,
        "dump": _add_dump_options,
        "mask": _add_mask_options,
        "status": _add_status_options,
        "stop": _add_stop_options,
        "hermetic": _add_guard_options,
        "mcp": _add_mcp_options,
        "shellenv": _add_shellenv_options,
        "completion": _add_completion_options,
    }
    add_options[command](options)
    return parser


def _parser_hints(command: str, message: str, known: Strings) -> list[str]:
    """Return what to do about a mistake that argparse has found in the words of a command."""
    import difflib
    unknown = message.partition("unrecognized arguments: ")[2]
    near = difflib.get_close_matches(unknown, known, 1)
    if near:
        return ["did you mean " + near[0] + "?"]
    hints = []
    if command == "dump" and unknown.strip() and not unknown.startswith("-"):
        hints.append("for one variable: dump --only " + _quoted(unknown.split()[0]))
    if command in ("serve", "mask"):
        file = "secrets.env"
        if os.path.exists(unknown) or (unknown[:1] != "-" and ("." in unknown or "/" in unknown)):
            file = _quoted(unknown)
        hints.append(f"the input comes from stdin: {_invocation()} {command} < {file}")
    if command == "completion":
        hints.append("SHELL is bash, zsh or fish")
    if command in ("status", "stop", "run") and unknown and not unknown.startswith("-"):
        hints.append(f"for a session of that name: {command} --name {_quoted(unknown)}")
    if "argument --peer-uid" in message:
        hints.append("a user id is a number: id -u NAME")
    hints.append(f"see: {_invocation()} {command} --help")
    return hints


def _list_of_names(text: str) -> Words:
    """Return the names in NAME,PREFIX*,..."""
    return [name.strip() for name in _as_utf8(text).split(",")]


def _add_flag(options: OptionGroup, *names: str, help: str) -> None:
    """Add an option that takes nothing."""
    options.add_argument(*names, action="store_true", help=help)


def _add_names(options: OptionGroup, option: str, help: str) -> None:
    """Add an option that takes NAME,PREFIX*,... and can be repeated."""
    options.add_argument(
        option, metavar="NAMES", type=_list_of_names, action="extend", default=[], help=help)


def _add_repeated(options: OptionGroup, option: str, takes: str, help: str) -> None:
    """Add an option that takes one text and can be repeated."""
    options.add_argument(
        option, metavar=takes, type=_as_utf8, action="append", default=[], help=help)


def _add_name_option(options: OptionGroup, help: str) -> None:
    """Add --name, which means another thing to `serve` than to those that ask."""
    options.add_argument("--name", metavar="NAME", help=help)


def _add_session_options(options: OptionGroup) -> None:
    """Add the options of all commands that ask a session."""
    _add_name_option(options, "ask the session of this name (default: $HOTENV_NAME)")
    options.add_argument(
        "--socket", metavar="PATH",
        help="ask the session at this socket (default: $HOTENV_SOCKET, else .hotenv)")
    options.add_argument(
        "--peer-uid", metavar="N", type=int, help="also trust a server that runs as this user id")


def _add_fill_option(options: OptionGroup) -> None:
    """Add the option of the commands that start a session where there is none."""
    options.add_argument(
        "--fill", metavar="CMD",
        help="without a session, start one with what CMD prints (default: $HOTENV_FILL)")


def _add_serve_options(options: OptionGroup) -> None:
    options.add_argument(
        "-t", "--timeout", metavar="DUR", type=_parse_duration,
        help="end after this idle time, such as 1h30m (default: $HOTENV_TIMEOUT, else 5m)")
    options.add_argument(
        "--max-age", metavar="DUR", type=_parse_duration,
        help="end after this time in any case (default: $HOTENV_MAX_AGE)")
    _add_name_option(options, "start a second session beside the one without a name")
    _add_flag(options, "-f", "--force", help="replace the session that is here")
    _add_flag(options, "--background", help="return as soon as requests are accepted")
    options.add_argument(
        "--log", metavar="FILE", help="with --background: append the log to FILE (default: no log)")
    options.add_argument(
        "--format", metavar="FORMAT", choices=_INPUT_FORMATS, default="dotenv",
        help="what stdin has: dotenv (default), json (one object), nul (as `env -0` prints)")
    _add_flag(options, "--empty", help="start a session even if stdin is empty")
    _add_flag(options, "--prompt", help="ask for each bare value `?text` on the terminal")
    one_of = options.add_mutually_exclusive_group()
    _add_flag(one_of, "-q", "--quiet", help="log no requests")
    _add_flag(one_of, "-v", "--verbose", help="log all arguments: they may hold secrets")


def _add_run_options(options: OptionGroup) -> None:
    _add_session_options(options)
    _add_fill_option(options)
    _add_names(
        options, "--only",
        help="hand over only these: NAME,PREFIX*,... (the command can still ask for all)")
    _add_names(options, "--file", help="hand over these as files: each variable holds a path")
    _add_flag(options, "--isolated", help="start from an allowlist (PATH, HOME, TERM, ...)")
    options.add_argument(
        "--pass", dest="passed", metavar="NAMES", type=_list_of_names, action="extend", default=[],
        help="with --isolated: also keep these of your variables")
    _add_repeated(
        options, "--define", "NAME=VALUE", help="set a variable that is no secret: `ps` shows it")
    _add_repeated(options, "--bin", "DIR", help="put a directory before PATH")
    _add_flag(options, "--mask", help="hide the values in output to a file or a pipe")
    _add_names(options, "--no-mask", help="with --mask: let these be seen")
    _add_flag(options, "--optional", help="without a session, run the command as it is")
    _add_flag(options, "-q", "--quiet", help="with --optional: say nothing about it")
    _add_guard_options(options, in_help=False)


def _add_dump_options(options: OptionGroup) -> None:
    _add_session_options(options)
    _add_fill_option(options)
    _add_names(options, "--only", help="print only these: NAME,PREFIX*,...")
    one_of = options.add_mutually_exclusive_group()
    one_of.add_argument(
        "--format", metavar="FORMAT", choices=_DUMP_FORMATS, default="plain",
        help="plain (KEY=VALUE), dotenv (to be parsed), sh (for eval), json, nul, names, "
        "value (one, raw)")
    _add_flag(one_of, "--json", help="as --format json")


def _add_mask_options(options: OptionGroup) -> None:
    _add_session_options(options)
    _add_fill_option(options)
    _add_flag(options, "--check", help="print no input: exit 1 if it has values, and say where")
    _add_names(options, "--no-mask", help="let these values be seen: NAME,PREFIX*,...")


def _add_status_options(options: OptionGroup) -> None:
    _add_session_options(options)
    _add_flag(options, "--all", help="show all your sessions, the dead ones too")
    one_of = options.add_mutually_exclusive_group()
    _add_flag(one_of, "--json", help="print JSON; times are seconds since 1970, or null")
    _add_flag(one_of, "-q", "--quiet", help="print nothing: the exit status is the answer")


def _add_stop_options(options: OptionGroup) -> None:
    _add_session_options(options)
    _add_flag(options, "--all", help="end all your sessions, and remove what dead ones left")


def _add_mcp_options(options: OptionGroup) -> None:
    _add_session_options(options)
    options.add_argument(
        "--policy", metavar="FILE",
        help='{"allow": [...], "deny": [...]}, for first words of commands; only advice')
    options.add_argument(
        "--audit", metavar="FILE", help="append a JSON line at the start and end of each command")
    _add_repeated(
        options, "--remote", "NAME=CMD",
        help="let the agent open a shell by CMD, such as `ssh -T host`")
    _add_names(options, "--only", help="give the agent only these: NAME,PREFIX*,...")
    _add_names(options, "--no-mask", help="let these values be seen: NAME,PREFIX*,...")


def _add_shellenv_options(options: OptionGroup) -> None:
    options.add_argument(
        "shell", metavar="SHELL", nargs="?", choices=_SHELLS,
        help="sh, bash, zsh or fish; without it, for any but fish")


def _add_completion_options(options: OptionGroup) -> None:
    options.add_argument(
        "shell", metavar="SHELL", choices=_COMPLETED_SHELLS, help="bash, zsh or fish")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: return an exit status, become another program, or die of a signal."""
    words = list(sys.argv[1:]) if argv is None else list(argv)
    return _exit_status(_command, words)


def _command(argv: Words) -> int:
    """Run the command that these words name; returns an exit status."""
    if not argv:
        _say_lines(_TOPICS["help"])
        return EXIT_USAGE
    name, rest = argv[0], argv[1:]
    if name in _COMMANDS:
        return _run_command(name, rest)
    if name in ("version", "--version", "-V"):
        _write(1, f"hotenv {__version__}\n")
        return 0
    if name in ("help", "--help", "-h"):
        return _help(rest)
    raise _usage(f"there is no command {_shown(name)}", *_meant(argv))


def _run_command(name: str, words: Words) -> int:
    """Run the command of this name with the words behind it; returns an exit status."""
    own, target = _split_at_dashes(words)
    if "-h" in own or "--help" in own:
        _write(1, _parser(name).format_help())
        return 0
    if name in ("run", "hermetic"):
        if not target:
            raise _without_target(name, own)
        if name == "run":
            return _run(own, target)
        return _hermetic(own, target)
    commands: dict[str, Callable[[Namespace], int]] = {
        "serve": _serve,
        "dump": _dump,
        "mask": _mask,
        "status": _status,
        "stop": _stop,
        "mcp": _serve_mcp,
        "shellenv": _shellenv,
        "completion": _completion,
    }
    return commands[name](_parser(name).parse_args(words))


def _split_at_dashes(words: Words) -> tuple[Words, Words]:
    """Return the words before the first `--`, and those behind it, which belong to the target."""
    if "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1:]


def _without_target(name: str, own: Words) -> HotenvError:
    """Return the error for a `run` or a `hermetic` that does not say what to run."""
    typed = "[options] -- COMMAND..."
    if own and not own[0].startswith("-"):
        typed = " ".join(map(_quoted, ["--", *own]))
    code = _EXIT_HERMETIC if name == "hermetic" else EXIT_USAGE
    return HotenvError(
        code, f"{name}: what to run goes behind `--`, and options before it",
        f"{_invocation()} {name} {typed}")


def _meant(argv: Words) -> list[str]:
    """Return hints for words that begin with no command: what the user may have meant."""
    import difflib
    name, rest = argv[0], argv[1:]
    if name in ("--name", "--socket") and len(rest) >= 2 and rest[1] in _COMMANDS:
        return [_did_you_mean([rest[1], name, rest[0], *rest[2:]])]
    has_name = bool(rest) and not rest[0].startswith("-")
    if name == "get":
        variable = rest[0] if has_name else "NAME"
        meant = ["dump", "--only", variable, "--format", "value"]
    elif name == "env" and has_name and _which(rest[0], os.environ.get("PATH", "")):
        meant = ["run", *rest]
    elif name in _WORDS_OF_OTHERS and _WORDS_OF_OTHERS[name][0] == "dump" and has_name:
        meant = [*_WORDS_OF_OTHERS[name], "--only", rest[0]]
    elif name in _WORDS_OF_OTHERS:
        meant = _WORDS_OF_OTHERS[name] + rest
    else:
        near = difflib.get_close_matches(name.lower(), [*_COMMANDS, "help", "version"], 1)
        program = _which(name, os.environ.get("PATH", ""))
        if name == "--" or program and not near:
            meant = ["run", *argv]
        elif near:
            meant = [near[0], *rest]
        else:
            return [f"the commands are {', '.join(_COMMANDS)}", f"see: {_invocation()} --help"]
    has_option = len(meant) > 1 and meant[1].startswith("-")
    if meant[0] == "run" and not has_option:
        meant.insert(1, "--")
    return [_did_you_mean(meant)]


def _did_you_mean(words: Words) -> str:
    """Return the hint with a command line of hotenv's, as a shell takes it."""
    line = " ".join([_invocation(), *map(_quoted, words)])
    return f"did you mean `{line}`?"


def _help(words: Words) -> int:
    """Print the help about a topic or a command, or all of it as a man page."""
    if words[:1] == ["--man"]:
        _write(1, _manual())
        return 0
    topic = "help"
    if words:
        topic = words[0].lstrip("-") or "help"
    if topic in _TOPICS:
        _write(1, _TOPICS[topic])
        return 0
    if topic in _COMMANDS:
        return _run_command(topic, ["--help"])
    known = ", ".join(dict.fromkeys([*_TOPICS, *_COMMANDS]))
    raise _usage(
        f"help: there is nothing about {_shown(topic)}", "the topics and commands are " + known)


# -- run and hermetic ------------------------------------------------------------------------------


def _run(own: Words, command: Words) -> int:
    """Run a command with the session's environment; `own` are the options before the `--`."""
    words = [_as_utf8(word) for word in command]
    if not own and not os.environ.get("HOTENV_FILL"):  # the everyday form: argparse costs 5 ms
        _say_what_does_not_count()
        env = {**_host_environment(), **fetch("run", words)}
        return Launch(command, env).start()
    options = _run_options(own)
    core_limit = None
    if options.mask:  # this process stays, and will hold the values
        core_limit = _CoreLimit()
        _close_memory()
    snapshot = _snapshot_for_run(options, words)
    launch = Launch(command, _child_environment(options, snapshot))
    launch.guards = options.guards
    launch.secrets = list(snapshot)
    for name in _names_of_files(options, snapshot):
        launch.files[name] = _secret_file(launch.env[name])
    launch.socket_path = options.socket
    if options.mask:
        launch.redactor = _redactor_for(options, snapshot)
        launch.core_limit = core_limit
    return launch.start()


def _run_options(own: Words) -> Namespace:
    """Return the options of `run`, checked. Its `guards` are None where no guard is on."""
    options: Namespace = _parser("run").parse_args(own)
    if options.passed and not options.isolated:
        raise _usage("run: --pass goes with --isolated")
    for definition in options.define:
        name, equals, _ = definition.partition("=")
        if not name or not equals:
            raise _usage("run: --define takes NAME=VALUE")
    if "" in options.bin:
        raise _usage("run: --bin takes a directory, and an empty name would be this one")
    if options.no_mask and not options.mask:
        raise _usage("run: --no-mask goes with --mask")
    if options.quiet and not options.optional:
        raise _usage("run: --quiet goes with --optional")
    options.guards = _guards_for_run(options)
    return options


def _snapshot_for_run(options: Namespace, words: Words) -> Values:
    """Return the session's variables; none if there is no session and --optional allows that."""
    try:
        return _fetch_or_fill("run", words, options)
    except HotenvError as error:
        is_absent = error.code in (EXIT_NO_SESSION, EXIT_UNREACHABLE)
        if not options.optional or not is_absent and not isinstance(error, _NotTrusted):
            raise
        if not options.quiet:
            _say(f"{error}; running without one")
    options.only = []
    options.file = []
    options.no_mask = []
    return {}


def _child_environment(options: Namespace, snapshot: Env) -> Values:
    """Return the command's environment: the host's, then the session's, --define, and --bin."""
    host = _host_environment()
    define = _chosen(snapshot, options.only, "--only")
    for definition in options.define:
        name, _, value = definition.partition("=")
        define[name] = value
    kept = list(host)
    if options.isolated:
        kept = [name for name in host if _matches(name, options.passed)]
    return build_isolated_env(host, kept, define, options.bin)


def _names_of_files(options: Namespace, snapshot: Env) -> list[str]:
    """Return the variables that are handed over as files.

    HotenvError 2: the session does not have what --file names, or --only leaves that out.
    """
    if not options.file:
        return []
    _chosen(snapshot, options.file, "--file")  # a name that the session lacks is a mistake
    handed_over = _chosen(snapshot, options.only, "--only")
    for pattern in options.file:
        if not any(_matches(name, [pattern]) for name in handed_over):
            raise _usage(f"run: --only leaves out what --file names: {_shown(pattern)}")
    return [name for name in handed_over if _matches(name, options.file)]


def _redactor_for(options: Namespace, snapshot: Env) -> Redactor:
    """Return what masks the command's output.

    It hides all values of the session, also those that --only left out, and the tokens that the
    caller's own environment has.
    """
    _chosen(snapshot, options.no_mask, "--no-mask")  # a name that the session lacks is a mistake
    values = {**_tokens_of(_host_environment()), **snapshot}
    redactor = Redactor(values, options.no_mask)
    if redactor.unmaskable:
        names = ", ".join(map(_shown, redactor.unmaskable))
        _say("not masked (too short, an everyday word, or on --isolated's list): " + names)
    return redactor


_LOWEST_SECRET_FILE = 50  # a descriptor: standard streams may be closed, scripts use low numbers


def _secret_file(value: str) -> int:
    """Return a descriptor of a file in memory that has a value, and that nobody can change.

    The file is on no disk. It lives as long as the processes that have the descriptor.
    HotenvError 8: this system has no such files.
    """
    if sys.platform != "linux":
        raise HotenvError(
            EXIT_SYSTEM, "--file needs files in memory, which this system does not have")
    try:
        import fcntl
        made = os.memfd_create(_SECRET_FILE, os.MFD_ALLOW_SEALING)
        descriptor = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, _LOWEST_SECRET_FILE)
        os.close(made)
        os.fchmod(descriptor, 0o600)
        _write_all(descriptor, _encoded(value))
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except (AttributeError, OSError) as error:  # this C library may not know such files
        reason = _shown(str(error))
        raise HotenvError(
            EXIT_SYSTEM, f"cannot make a file in memory for --file: {reason}") from None
    return descriptor


def _chosen(snapshot: Env, patterns: Strings, option: str) -> Values:
    """Return the variables that an option names, or all if it names none.

    HotenvError 2: a name fits no variable.
    """
    if not patterns:
        return dict(snapshot)
    chosen: Values = {}
    for pattern in patterns:
        found = {name: snapshot[name] for name in snapshot if _matches(name, [pattern])}
        if not found:
            raise _usage(
                f"{option}: the session has no {_shown(pattern) or 'empty name'}",
                *_near_names(pattern, snapshot))
        chosen.update(found)
    return chosen


def _near_names(pattern: str, snapshot: Env) -> list[str]:
    """Return a hint with the names of a session that are most like the one that was typed."""
    import difflib
    if not snapshot:
        return ["the session has no variables at all"]
    typed = pattern.rstrip("*").lower()
    alike = {}
    for name in snapshot:
        compared = name
        if pattern.endswith("*"):
            compared = name[:len(typed)]
        alike[compared.lower()] = name
    near = [alike[each] for each in difflib.get_close_matches(typed, alike, 3)]
    if near:
        return [f"did you mean {' or '.join(map(_shown, near))}?"]
    return [f"to see its names: {_invocation()} dump --format names"]


def _hermetic(own: Words, target: Words) -> int:
    """Run a target under guards. Every error of hotenv's is 1 here: 2 means a blocked action."""
    try:
        launch = Launch(target, _host_environment())
        launch.guards = _guards_for_hermetic(_parser("hermetic").parse_args(own))
        return launch.start()
    except HotenvError as error:
        raise HotenvError(_EXIT_HERMETIC, str(error), *error.hints) from None


# -- dump ------------------------------------------------------------------------------------------


def _dump(options: Namespace) -> int:
    """Print the session's variables in the format that is asked for."""
    _harden()  # a core of this process would hold the values
    snapshot = _fetch_or_fill("dump", [], options)
    env = _chosen(snapshot, options.only, "--only")
    form = "json" if options.json else options.format
    if form == "json":
        text = _dump_json(env)
    elif form == "value":
        if len(env) != 1:
            raise _usage(
                f"dump: --format value prints one variable, not {len(env)}", "name it: --only NAME")
        text = "".join(env.values())
    else:
        lines = {
            "plain": _plain_line,
            "dotenv": _dotenv_line,
            "sh": _sh_line,
            "nul": _nul_entry,
            "names": _name_line,
        }
        line_of = lines[form]
        text = "".join([line_of(name, value) for name, value in env.items()])
    _write(1, text)
    return 0


def _plain_line(name: str, value: str) -> str:
    """Return the line of --format plain."""
    return f"{name}={value}\n"


def _nul_entry(name: str, value: str) -> str:
    """Return the entry of --format nul, as `env -0` prints it."""
    return f"{name}={value}\0"


def _name_line(name: str, value: str) -> str:
    """Return the line of --format names."""
    if "\n" in name:
        raise _cannot_carry("names", name)
    return name + "\n"


def _sh_line(name: str, value: str) -> str:
    """Return the line for a POSIX shell's `eval`."""
    if not name.isascii() or not name.isidentifier():
        raise _cannot_carry("sh", name)
    quoted = value.replace("'", "'\\''")
    return f"export {name}='{quoted}'\n"


def _dotenv_line(name: str, value: str) -> str:
    """Return the line that parse_dotenv() reads as this very value."""
    import re
    if not re.fullmatch("[A-Za-z0-9_.-]+", name) or not _is_text(value):
        raise _cannot_carry("dotenv", name)
    if "\r" in value:  # only "..." has an escape for it
        escaped = re.sub(r'["\\]|\$(?={)', r"\\\g<0>", value).replace("\r", "\\r")
        return f'{name}="{escaped}"\n'
    escaped = re.sub(r"['\\]", r"\\\g<0>", value)
    return f"{name}='{escaped}'\n"


def _dump_json(env: Env) -> str:
    """Return the variables as one object of JSON."""
    import json
    for name, value in env.items():
        if not _is_text(name + value):
            raise _cannot_carry("json", name)
    return json.dumps(env, indent=2, ensure_ascii=False) + "\n"


def _is_text(value: str) -> bool:
    """Is this text, and not bytes that are no UTF-8?"""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _cannot_carry(form: str, name: str) -> HotenvError:
    """Return the error for a variable that a format has no way to write."""
    return _usage(
        f"dump: {form} cannot carry {_shown(name)}", "leave it out by --only, or --format nul")


# -- mask ------------------------------------------------------------------------------------------


def _mask(options: Namespace) -> int:
    """Copy stdin to stdout with the values hidden, or with --check say where values are."""
    _harden()  # a core of this process would hold the values
    snapshot = _fetch_or_fill("dump", [], options)
    _chosen(snapshot, options.no_mask, "--no-mask")  # a name that the session lacks is a mistake
    redactor = Redactor(snapshot, options.no_mask)
    if options.check:
        return _check_for_values(redactor)
    stream = redactor.stream()
    for piece in _stdin_pieces():
        _write_all_or_end(stream.feed(piece))
    _write_all_or_end(stream.flush())
    return 0


def _check_for_values(redactor: Redactor) -> int:
    """Write the line and the name of each value in stdin to stderr; returns 1 if there is any."""
    values = _FoundValues(redactor)
    for piece in _stdin_pieces():
        values.feed(piece)
    values.flush()
    for line, name in values.found:
        _say_lines(f"{line}: {_shown(name)}\n")
    return 1 if values.found else 0


def _stdin_pieces() -> Iterator[bytes]:
    """Yield what stdin has, as it comes."""
    while True:
        try:
            piece = os.read(0, _READ_PIECE)
        except OSError as error:
            raise _system_error(error, "cannot read stdin") from None
        if not piece:
            return
        yield piece


def _write_all_or_end(data: bytes) -> None:
    """Write to stdout. If nobody reads any more, end as other filters do."""
    try:
        _write_all(1, data)
    except BrokenPipeError:
        _die_of(_signal.SIGPIPE)
    except OSError as error:
        raise _system_error(error, "cannot write the output") from None


# -- status and stop -------------------------------------------------------------------------------


def _status(options: Namespace) -> int:
    """Print what can be told of a session, or of all."""
    import json
    if options.all:
        return _status_of_all(options)
    try:
        session = _locate(options.socket, options.name)
        status = _status_of(session, options.peer_uid)
    except HotenvError as error:
        status = _Status(None)
        status.failure = error
    if options.quiet:
        return status.failure.code if status.failure else 0
    if options.json:
        _write(1, json.dumps(status.as_dict(), indent=2) + "\n")
    elif status.live:
        _write(1, _status_text(status))
    if status.failure:
        raise status.failure
    return 0


def _status_of_all(options: Namespace) -> int:
    """Print what can be told of every session of this user, also of the dead ones."""
    import json
    _refuse_with_all(options)
    found = [_status_of(session, options.peer_uid) for session in _all_sessions()]
    is_any_live = any(status.live for status in found)
    if options.quiet:
        return 0 if is_any_live else EXIT_NO_SESSION
    if options.json:
        _write(1, json.dumps([status.as_dict() for status in found], indent=2) + "\n")
    else:
        _write(1, "\n".join([_status_text(status) for status in found]))
    if not is_any_live:
        raise HotenvError(EXIT_NO_SESSION, "you have no live session")
    return 0


def _refuse_with_all(options: Namespace) -> None:
    """Refuse --all with an option that names one session."""
    for option, value in (("--socket", options.socket), ("--name", options.name)):
        if value is not None:
            raise _usage(
                f"--all means every session, and {option} names one", "give one of the two")


def _status_text(status: _Status) -> str:
    """Return the lines that `status` prints of a session."""
    record = status.record
    state = "not live"
    if status.live:
        state = "live"
    elif status.dead:
        state = "dead"
    lines = [state]

    def add(key: str, value: str | None) -> None:
        lines.append(f"{key:<13} {_shown(value or 'unknown')}")

    if record and record.name:
        add("name", record.name)
    if isinstance(status.failure, _Unreachable):
        add("reason", status.failure.reason)
    elif status.failure:
        add("reason", str(status.failure))
    add("directory", record.directory if record else None)
    add("socket", status.socket_path)
    add("marker", status.marker)
    add("pid", str(status.pid) if status.pid else None)
    if record:
        add("variables", str(record.variables))
        add("since", _moment(record.started))
        add("last use", _moment(status.used))
        add("idle timeout", _duration(record.idle_timeout))
        add("max age", _duration(record.max_age) if record.max_age else "none")
    ends = _moment(status.ends)
    if status.live and status.ends is not None:
        left = int(status.ends - time.time())
        if left > 0:
            ends = f"{ends}, in {_duration(left)}"
    add("ends", ends)
    if record and not record.memory_closed:
        add("memory", "open to your other processes")
    return "\n".join(lines) + "\n"


def _moment(seconds: float | None) -> str | None:
    """Return a time as people read it, in the local time zone."""
    if seconds is None:
        return None
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _stop(options: Namespace) -> int:
    """End a session, or all."""
    if options.all:
        return _stop_all(options)
    session = _locate(options.socket, options.name)
    record = _Record.read(session.path)
    marker = session.marker
    if marker and record and record.is_elsewhere(session.path, marker.absolute_path):
        stop = f"{_invocation()} stop{_name_option(record.name)}"
        raise HotenvError(
            EXIT_REFUSED, f"{marker.shown} is a copy: its session belongs elsewhere",
            f"to end that session: cd {_quoted(record.directory)} && {stop}",
            f"to get rid of the copy: rm {_quoted(marker.absolute_path)}")
    has_ended = _end_session(session, options.peer_uid)
    if not has_ended:
        _clear_dead(session)
        _remove_marker_of(session)
    if os.isatty(2):
        said = "the session has ended"
        if not has_ended:
            said = "the session had ended already"
        _say(said)
    return 0


def _remove_marker_of(session: _Session) -> None:
    """Remove the marker that led to a session that is dead."""
    marker = session.marker
    if marker and marker.named_socket() == session.path:
        _best_effort(os.unlink, marker.path, dir_fd=marker.directory)


def _markers_here(name: str) -> list[_Marker]:
    """Return the nearest marker of the session of this name, and the markers of this directory."""
    markers = []
    try:
        nearest = _Marker.find(name)
        if nearest:
            markers.append(nearest)
        for entry in sorted(os.listdir(".")):
            is_named = entry.startswith(MARKER + ".") and entry.count(".") == 2
            if entry == MARKER or is_named:
                markers.append(_Marker(entry, absolute_path=os.path.abspath(entry)))
    except (HotenvError, OSError):
        pass  # this directory was removed, or cannot be listed
    return markers


def _stop_all(options: Namespace) -> int:
    """End every session of this user, and the one that the marker of this directory names."""
    _refuse_with_all(options)
    sessions = _all_sessions()
    for marker in _markers_here(_chosen_name(None)):
        path = marker.named_socket()
        if path is not None and path not in [session.path for session in sessions]:
            sessions.append(_Session(path, marker=marker))
    if not sessions:
        raise HotenvError(EXIT_NO_SESSION, "you have no session: there is nothing to stop")
    status = 0
    ended = 0
    cleared = 0
    for session in sessions:
        try:
            if _end_session(session, options.peer_uid):
                ended += 1
            else:
                _clear_dead(session)
                _remove_marker_of(session)
                cleared += 1
        except HotenvError as error:
            _say_error(error)
            status = error.code
    if os.isatty(2):
        text = "ended " + _plural(ended, "session")
        if cleared:
            text += f", and cleared what {_plural(cleared, 'dead session')} left"
        _say(text)
    return status


# -- shellenv --------------------------------------------------------------------------------------


# One line in a start file serves bash and zsh. What is quoted is read by the shell that it is for.
_SHELLENV_COMPLETION = """\
if [ -n "${{BASH_VERSION-}}" ]; then eval {bash}
elif [ -n "${{ZSH_VERSION-}}" ]; then eval {zsh}
fi
"""


def _shellenv(options: Namespace) -> int:
    """Print a shell function that runs this very file, from its compiled form."""
    import shlex
    # By the loader that `import` has, so that a .pyc serves; by its path, so that it is this file.
    program = (
        "import sys; from _frozen_importlib_external import SourceFileLoader as Loader; "
        "hotenv = sys.modules['hotenv'] = type(sys)('hotenv'); "
        f"hotenv.__file__ = {os.path.realpath(__file__)!r}; "
        "Loader('hotenv', hotenv.__file__).exec_module(hotenv); sys.exit(hotenv.main())")
    words = shlex.join([sys.executable or "python3", "-I", "-S", "-c", program])
    if options.shell == "fish":
        escaped = words.replace("\\", "\\\\")
        _write(1, f"function hotenv; {escaped} $argv; end\n")
    else:
        _write(1, f'hotenv() {{ {words} "$@"; }}\n')
    if options.shell:
        _write(1, _completion_text(options.shell))
    else:
        _write(1, _SHELLENV_COMPLETION.format(
            bash=shlex.quote(_completion_text("bash")), zsh=shlex.quote(_completion_text("zsh"))))
    return 0


# -- completion ------------------------------------------------------------------------------------
#
# A shell completes hotenv's words without a start of Python: the text below is made once, from the
# parsers, and the shell keeps it. Behind `--` a shell completes as it does for the command there.

_COMPLETES_FILES = {"FILE", "PATH"}  # what the help calls the value of an option that takes a file
_COMPLETES_DIRECTORIES = {"DIR"}  # the same for a directory


def _help_of(action: Action) -> str:
    """Return what the help says of an option, or '' if the help leaves the option out."""
    import argparse
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    return action.help % {"choices": ", ".join(action.choices or ())}


class _Completed:
    """An option as a completion sees it."""

    def __init__(self, action: Action) -> None:
        self.names: Words = list(action.option_strings)
        self.help = _help_of(action)
        self.takes_value = action.nargs != 0
        self.needs_equals = action.nargs == "?"  # as --fs-readonly, whose value may be missing
        self.choices: Words = list(action.choices or ())
        self.takes_file = action.metavar in _COMPLETES_FILES
        self.takes_directory = action.metavar in _COMPLETES_DIRECTORIES


def _completed_options(command: str) -> list[_Completed]:
    """Return the options of a command, in the order of its help."""
    return [_Completed(action) for action in _parser(command)._actions if action.option_strings]


def _completed_words(command: str) -> Words:
    """Return what may stand behind a command and is no option."""
    if command == "help":
        return list(dict.fromkeys([*_TOPICS, *_COMMANDS]))
    words: Words = []
    if command in _COMMANDS:
        for action in _parser(command)._actions:
            if not action.option_strings and action.choices:
                words += list(action.choices)
    return words


def _completion(options: Namespace) -> int:
    """Print the completion of an installed `hotenv` for a shell."""
    _write(1, _completion_text(options.shell))
    return 0


def _completion_text(shell: str) -> str:
    """Return what a shell must read to complete the words of `hotenv`."""
    texts = {
        "bash": _bash_completion,
        "zsh": _zsh_completion,
        "fish": _fish_completion,
    }
    if shell not in texts:
        return ""
    return texts[shell]()


_BASH_COMPLETION = r"""_hotenv() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} place
    COMPREPLY=()
    if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    if [[ $word == = ]]; then before=${COMP_WORDS[COMP_CWORD-1]} word=; fi
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W '@COMMANDS@' -- "$word"))
        return
    fi
    for (( place = 2; place < COMP_CWORD; place++ )); do
        if [[ ${COMP_WORDS[place]} == -- ]]; then
            _hotenv_command "$((place + 1))"
            return
        fi
    done
    case "${COMP_WORDS[1]} $before" in
@VALUES@    esac
    case "${COMP_WORDS[1]}" in
@OPTIONS@    esac
}
_hotenv_command() {
    local start=$1 found function
    if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$start"; return; fi
    if declare -F _command_offset >/dev/null; then _command_offset "$start"; return; fi
    if (( COMP_CWORD == start )); then
        COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
        return
    fi
    COMP_WORDS=("${COMP_WORDS[@]:start}")
    (( COMP_CWORD -= start ))
    COMP_LINE="${COMP_WORDS[*]}"
    COMP_POINT=${#COMP_LINE}
    found=$(complete -p -- "${COMP_WORDS[0]}" 2>/dev/null)
    if [[ $found =~ \ -F\ ([^ ]+) ]]; then
        function=${BASH_REMATCH[1]}
        "$function" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    elif [[ $found =~ \ -W\ \'([^\']*)\' ]]; then
        COMPREPLY=($(compgen -W "${BASH_REMATCH[1]}" -- "${COMP_WORDS[COMP_CWORD]}"))
    else
        _hotenv_paths -f "${COMP_WORDS[COMP_CWORD]}"
    fi
}
_hotenv_paths() {
    local IFS=$'\n'
    COMPREPLY=($(compgen "$1" -- "$2"))
}
complete -o filenames -o bashdefault -F _hotenv hotenv
"""


def _bash_completion() -> str:
    """Return the completion for bash."""
    values = []
    options = []
    for command in [*_COMMANDS, "help"]:
        words = _completed_words(command)
        if command in _COMMANDS:
            for option in _completed_options(command):
                words += option.names
                values += _bash_value_cases(command, option)
        options.append(
            f"""    {command}) COMPREPLY=($(compgen -W '{" ".join(words)}' -- "$word")) ;;\n""")
    text = _BASH_COMPLETION.replace("@COMMANDS@", " ".join([*_COMMANDS, "help", "version"]))
    return text.replace("@VALUES@", "".join(values)).replace("@OPTIONS@", "".join(options))


def _bash_value_cases(command: str, option: _Completed) -> list[str]:
    """Return the lines that complete the value of an option."""
    if not option.takes_value:
        return []
    if option.takes_directory or option.needs_equals:
        complete = '_hotenv_paths -d "$word"'
    elif option.takes_file:
        complete = '_hotenv_paths -f "$word"'
    else:
        complete = f"""COMPREPLY=($(compgen -W '{' '.join(option.choices)}' -- "$word"))"""
    pattern = "|".join([f"'{command} {name}'" for name in option.names])
    return [f"    {pattern}) {complete}; return ;;\n"]


_ZSH_COMPLETION = r"""#compdef hotenv
_hotenv() {
    local -a subcommands=(
@COMMANDS@    )
    local dashes=${words[(i)--]}
    if (( CURRENT == 2 )); then
        _describe command subcommands
        return
    fi
    if (( dashes < CURRENT )); then
        words=("${(@)words[dashes+1,-1]}")
        (( CURRENT -= dashes ))
        _normal -p hotenv
        return
    fi
    local command=${words[2]}
    shift words
    (( CURRENT-- ))
    case $command in
@OPTIONS@    esac
}
if [[ $funcstack[1] == _hotenv ]]; then
    _hotenv "$@"
elif (( $+functions[compdef] )); then
    compdef _hotenv hotenv
fi
"""


def _zsh_completion() -> str:
    """Return the completion for zsh."""
    commands = []
    options = []
    for command, about in _COMMANDS.items():
        commands.append(f"        {_zsh_quoted(command + ':' + _first_sentence(about.summary))}\n")
    commands.append("        'help:Explain a topic or a command'\n")
    commands.append("        'version:Print the version'\n")
    for command in [*_COMMANDS, "help"]:
        words = _completed_words(command)
        specifications = []
        if command in _COMMANDS:
            for option in _completed_options(command):
                specifications += _zsh_specifications(option)
        if words:
            specifications.append(_zsh_quoted(f"1:word:({' '.join(words)})"))
        joined = " \\\n            ".join(specifications)
        options.append(f"        {command}) _arguments -S \\\n            {joined} ;;\n")
    text = _ZSH_COMPLETION.replace("@COMMANDS@", "".join(commands))
    return text.replace("@OPTIONS@", "".join(options))


def _zsh_specifications(option: _Completed) -> list[str]:
    """Return what _arguments wants to know of an option, once for each of its names."""
    told = option.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    value = ""
    if option.takes_value:
        value = ":value:"
        if option.choices:
            value += f"({' '.join(option.choices)})"
        elif option.takes_directory or option.needs_equals:
            value += "_files -/"
        elif option.takes_file:
            value += "_files"
        else:
            value += "( )"
    found = []
    for name in option.names:
        if option.needs_equals:
            name += "=-"
        elif option.takes_value and name.startswith("--"):
            name += "="
        found.append(_zsh_quoted(f"*{name}[{told}]{value}"))
    return found


def _zsh_quoted(text: str) -> str:
    """Return a text as one word of zsh, whatever it holds."""
    return "'" + text.replace("'", "'\\''") + "'"


def _first_sentence(text: str) -> str:
    """Return a text up to its first full stop or colon."""
    return text.replace(": ", ". ").partition(". ")[0].rstrip(".")


_FISH_COMPLETION = r"""function __hotenv_is_command
    set -l tokens (commandline -opc)
    test (count $tokens) -eq 1
end
function __hotenv_is_in
    set -l tokens (commandline -opc)
    test (count $tokens) -ge 2; and test $tokens[2] = $argv[1]; and not contains -- -- $tokens
end
function __hotenv_is_behind
    contains -- -- (commandline -opc)
end
function __hotenv_complete_behind
    set -l tokens (commandline -opc)
    set -l place (contains -i -- -- $tokens)
    set -e tokens[1..$place]
    complete -C (string join ' ' -- (string escape -- $tokens) (commandline -ct))
end
complete -c hotenv -e
complete -c hotenv -f
complete -c hotenv -n __hotenv_is_behind -a '(__hotenv_complete_behind)'
"""


def _fish_completion() -> str:
    """Return the completion for fish."""
    lines = [_FISH_COMPLETION]
    for command, about in _COMMANDS.items():
        told = _fish_quoted(_first_sentence(about.summary))
        lines.append(f"complete -c hotenv -n __hotenv_is_command -a {command} -d {told}\n")
    lines.append("complete -c hotenv -n __hotenv_is_command -a 'help version'\n")
    for command in [*_COMMANDS, "help"]:
        condition = f"'__hotenv_is_in {command}'"
        words = _completed_words(command)
        if words:
            lines.append(f"complete -c hotenv -n {condition} -a {_fish_quoted(' '.join(words))}\n")
        if command in _COMMANDS:
            for option in _completed_options(command):
                lines.append(_fish_line(condition, option))
    return "".join(lines)


def _fish_line(condition: str, option: _Completed) -> str:
    """Return the line that tells fish of an option."""
    words = ["complete", "-c", "hotenv", "-n", condition]
    for name in option.names:
        words += ["-l" if name.startswith("--") else "-s", name.lstrip("-")]
    if option.choices:
        words += ["-x", "-a", _fish_quoted(" ".join(option.choices))]
    elif option.takes_directory:
        words += ["-x", "-a", "'(__fish_complete_directories)'"]
    elif option.takes_file or option.needs_equals:
        words += ["-r", "-F"]
    elif option.takes_value:
        words.append("-x")
    if option.help:
        words += ["-d", _fish_quoted(option.help)]
    return " ".join(words) + "\n"


def _fish_quoted(text: str) -> str:
    """Return a text as one word of fish, whatever it holds."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# -- the man page ----------------------------------------------------------------------------------
#
# `hotenv help --man` prints a page in the language of man(7). The options come from the parsers,
# and most of the rest from the topics of the help. So the page agrees with the help.

_MANUAL_SECTIONS = {  # the topics, in the order of the page, and the heading of each
    "sessions": "SESSIONS",
    "dotenv": "INPUT",
    "masking": "MASKING",
    "mcp": "AGENTS",
    "hermetic": "GUARDS",
    "exit": "EXIT STATUS",
    "environment": "ENVIRONMENT",
}
_MANUAL_DESCRIPTION = """\
hotenv keeps the environment variables of a project in the memory of one small
process, and hands them to the commands that you name. No value is ever written
to a file. When nobody has asked for five minutes, the process ends and the
values are gone.

hotenv is not a sandbox. While a session is live, every program that runs under
your user account can ask for the values.
    printf 'API_KEY=abc123\\n' | hotenv serve --background
    hotenv run -- printenv API_KEY
    hotenv stop
"""
_MANUAL_FILES = """\
  .hotenv, .hotenv.NAME     The marker of a session, in its directory. It holds
                            the path of a socket.
  $XDG_RUNTIME_DIR/hotenv/  The sockets of your sessions, and a record beside
                            each, which has no names and no values of variables.
  /tmp/hotenv-UID/          The same, where XDG_RUNTIME_DIR is not set.
  pyproject.toml, HERMETIC.toml
                            Guards for what is run in this directory.
"""


class _TopicPart:
    """A part of a topic of the help.

    kind    "text", a paragraph; "item", a term with its explanation; or "literal", lines that are
            shown as they are
    term    of an item, what is explained
    lines   the text, or of an item the explanation
    """

    def __init__(self, kind: str, term: str = "") -> None:
        self.kind = kind
        self.term = term
        self.lines: Words = []


def _topic_parts(text: str) -> list[_TopicPart]:
    """Return the parts of a topic, by the rules that stand above the topics."""
    parts: list[_TopicPart] = []
    kind = ""  # of the part that the next line may belong to
    for line in text.splitlines():
        content = line.strip()
        indent = len(line) - len(line.lstrip())
        if not content:
            kind = ""
            continue
        if indent == 2:
            kind = "item"
            term, _, content = content.partition("  ")
            parts.append(_TopicPart(kind, term))
        elif kind != "item" or not indent:  # any other line belongs to the item
            previous = kind
            kind = "text"
            if indent:
                kind = "literal"
            if kind != previous:
                parts.append(_TopicPart(kind))
        if kind == "literal":
            content = line[4:]
        if content:
            parts[-1].lines.append(content.rstrip() if kind == "literal" else content.strip())
    return parts


def _manual() -> str:
    """Return the man page of hotenv."""
    lines = [f'.TH HOTENV 1 "" "hotenv {__version__}" "User Commands"', ".nh", ".ad l"]
    lines.append(".SH NAME")
    lines.append("hotenv \\- keep secrets in memory for a while, and hand them to commands")
    lines.append(".SH SYNOPSIS")
    for about in _COMMANDS.values():
        command, _, words = about.usage.partition(" ")
        lines += [f"\\fBhotenv {command}\\fR {_manual_text(words)}".rstrip(), ".br"]
    lines += ["\\fBhotenv help\\fR [TOPIC | COMMAND | \\fB\\-\\-man\\fR]", ".br"]
    lines.append("\\fBhotenv \\-\\-version\\fR")
    lines += [".SH DESCRIPTION", *_manual_topic(_MANUAL_DESCRIPTION)]
    lines.append(".SH COMMANDS")
    for command in _COMMANDS:
        lines += _manual_command(command)
    for topic, heading in _MANUAL_SECTIONS.items():
        lines += [".SH " + heading, *_manual_topic(_TOPICS[topic])]
    lines += [".SH FILES", *_manual_topic(_MANUAL_FILES)]
    lines += [".SH SEE ALSO", ".BR env (1),", ".BR ssh\\-agent (1),", ".BR prctl (2),",
              ".BR seccomp (2),", ".BR landlock (7)"]
    return "\n".join(lines) + "\n"


def _manual_command(command: str) -> Words:
    """Return the lines about a command: what it does, its options, and an example."""
    about = _COMMANDS[command]
    lines = [".SS " + _manual_text(about.usage), _manual_text(about.summary)]
    for action in _parser(command)._actions:
        told = _help_of(action)
        if not told:
            continue
        names = ", ".join([f"\\fB{_manual_text(name)}\\fR" for name in action.option_strings])
        value = ""
        if action.nargs == "?" and action.option_strings:
            value = f"[=\\fI{action.metavar}\\fR]"
        elif action.nargs != 0:
            value = f" \\fI{action.metavar}\\fR"
        lines += [".TP", (names + value).strip(), _manual_text(told)]
    examples = [line.strip() for line in about.example.split("\n")]
    lines += [".PP", "Example:", *_manual_literal(examples)]
    if about.more:
        lines += [".PP", _manual_text(about.more)]
    return lines


def _manual_topic(text: str) -> Words:
    """Return the lines of the page that say what a topic says, behind a heading."""
    lines: Words = []
    for part in _topic_parts(text):
        if part.kind == "literal":
            lines += _manual_literal(part.lines)
        elif part.kind == "item":
            lines += [".TP", f"\\fB{_manual_text(part.term)}\\fR", *map(_manual_text, part.lines)]
        else:
            lines += [".PP", *map(_manual_text, part.lines)]
    if lines[0] == ".PP":
        del lines[0]  # the heading has begun a paragraph
    return lines


def _manual_literal(rows: Words) -> Words:
    """Return the lines of the page that show these rows as they are."""
    return [".PP", ".RS 4", ".nf", *[_manual_escaped(row) for row in rows], ".fi", ".RE"]


def _manual_text(text: str) -> str:
    """Return a line of running text, in which what stands between two backquotes is bold."""
    shown = []
    for place, piece in enumerate(text.split("`")):
        escaped = _manual_escaped(piece)
        shown.append(f"\\fB{escaped}\\fR" if place % 2 else escaped)
    return _manual_line("".join(shown))


def _manual_escaped(text: str) -> str:
    """Return text whose characters mean nothing to man(7)."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    escaped = escaped.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return _manual_line(escaped)


def _manual_line(line: str) -> str:
    """Return a line that man(7) does not take for a request, which begins with `.` or `'`."""
    if line.startswith((".", "'")):
        return "\\&" + line
    return line


# -- help ------------------------------------------------------------------------------------------
#
# Each topic is plain text of at most 80 columns, which a terminal shows as it is. A man page is
# made of the same text, by these rules:
#
#   1. A blank line ends a paragraph.
#   2. A line that begins with exactly two blanks begins an item: a term, two blanks or more, and
#      what the term means. The lines behind it that begin with more blanks belong to the item.
#   3. Any other line that begins with four blanks is shown as it is: a command, or a row of a
#      table.

_TOPIC_WIDTH = 80  # columns


def _everyday_words() -> str:
    """Return the words that are nobody's secret, as lines for the help."""
    lines = ["   "]
    for word in _NO_SECRETS:
        if len(lines[-1]) + len(word) + 1 > _TOPIC_WIDTH:
            lines.append("   ")
        lines[-1] += " " + word
    return "\n".join(lines) + "\n"


_TOPICS = {
    "help": r"""usage: hotenv COMMAND [options]; see hotenv COMMAND --help

everyday:
  serve < secrets.env   hold NAME=value lines in memory, for 5 idle minutes
  run -- COMMAND...     run a command with them, in this directory or below
  status                say whether there is a session, and until when
  stop                  end the session
  dump                  print what it holds
  mask < LOG            hide the session's values in any text

advanced:
  hermetic -- TARGET... run a program without network, subprocesses or writes
  mcp                   give an agent shells with the secrets, masked
  shellenv, completion  a shell function that starts fast; words for the Tab key
  help TOPIC            exit, environment, sessions, dotenv, masking, mcp,
                        hermetic, or a command; help --man prints a man page
  version               also --version

What the exit codes mean: hotenv help exit
""",
    "exit": r"""The exit codes of hotenv's own commands:

  0   Success.
  1   A guard could not be enforced, so the program was not run. Every error of
      `hermetic` is 1, because 2 means something else there. `mask --check`
      exits with 1 if it has found a value.
  2   The command line is wrong. Under guards: something was blocked, even if
      the program went on.
  3   There is no session in this directory or above.
  4   The session cannot be reached. It was killed, its socket is gone, or its
      process is stopped (Ctrl-Z).
  7   The input of `serve` is malformed or empty. Or what the command of
      `--fill` prints is malformed.
  8   The system refused something, or a file belongs to somebody else.
  9   A marker (.hotenv) is damaged, or what answers at a socket cannot be
      trusted.
  10  `serve` found a marker, and --force was not given. Or `stop` found a
      marker that was copied from another directory.

`run` and `hermetic` end as their command ends: with its exit status, or by the
signal that ended it. So 3 may be an answer of the command, too. hotenv's own
errors begin with `hotenv: ` on stderr, and come before the command is started.
Two come later. With 2, a guard has blocked something. With 8, `run --mask`
could not write the output of the command.

If the command of --fill fails, or prints nothing, the exit code is 3 or 4, as
it is without --fill. A script that wants to know beforehand asks for the
status:
    hotenv status -q || echo "no session"
""",
    "environment": r"""Variables that hotenv reads. An option of the same meaning wins. Guards
of all sources add up.

  HOTENV_NAME       The name of the session that is meant, like --name.
  HOTENV_SOCKET     The socket of the session that is asked, like --socket. It
                    wins over HOTENV_NAME and over every marker, also for
                    `stop`. `serve` ignores it.
  HOTENV_FILL       A command for `sh -c` that asks your store, like --fill. If
                    there is no session, `run`, `dump` and `mask` start one
                    with what the command prints. No file of a project can set
                    this variable.
  HOTENV_TIMEOUT    The idle time of new sessions, like `serve --timeout`.
  HOTENV_MAX_AGE    The maximum age of new sessions, like `serve --max-age`.
  XDG_RUNTIME_DIR   Sockets lie below it, in hotenv/. If it is not set, or if
                    it is not yours, they lie in /tmp/hotenv-UID/.
  HERMETIC_FLAGS    Guards, as options: "--no-network --trace".
  HERMETIC_PROFILE  Guards, as names of profiles: "net-hermetic,exec-deny".
  HERMETIC_FS_ROOT  The path of --fs-readonly=PATH.
  PATH              Where commands are found. `run` looks in the PATH that the
                    command will have.

An empty variable counts as one that is not set, except PATH, in which an empty
name is the current directory. The three HERMETIC variables count for
`hermetic`, and for a `run` that has a guard among its options.

Variables that hotenv sets for what it runs:

  HOTENV_GUARDS  The guards, for the children of a guarded program. A guarded
                 Python puts it back for each child.
  PYTHONPATH     Under guards, begins with the directory from which a guarded
                 Python loads them.
  RES_OPTIONS    Under --allow-domain, has `use-vc` at its end for a guarded
                 Python: names are then looked up by TCP.
  HOTENV_SHELL   A mark in the shells of `mcp` and ShellSession. By this mark
                 hotenv finds what such a shell has started.

`run` without guards sets none of these. A command's environment is made in
this order, and what comes later wins: your own variables (with --isolated, an
allowlist of them), the session's, --define, --bin.
""",
    "sessions": r"""A session is one process that holds the variables of one directory. It ends
after 5 idle minutes (`serve --timeout`), at its maximum age (--max-age), by
`stop`, or when it is killed. Each run, dump and mask resets the idle timer.
`status` does not. Time during which the machine sleeps counts.

`serve` writes a marker, .hotenv, into the current directory. The other
commands take the nearest marker upward. --socket and HOTENV_SOCKET name a
socket instead.

Several sessions can live in one directory. Each has a name and a marker of its
own, .hotenv.NAME. The session without a name and the others never find each
other:
    pass show prod/env | hotenv serve --name prod --background
    hotenv run --name prod -- ./migrate.sh

A session can start by itself when a command needs it:
    hotenv run --fill 'pass show deploy/env' -- ./deploy.sh
The text is run once by `sh -c`, however many commands wait for it. It runs in
the directory of a dead marker, else in the nearest directory upward with .git,
else in the current one. There the session begins. The text sees your terminal,
so a store can ask for a password. HOTENV_FILL holds such a text for all
commands.

A secret can be handed over as a file. Its variable then holds a path:
    hotenv run --file TLS_KEY -- ./deploy.sh
The file is in memory and cannot be changed. The command and its children can
read it as often as they like, and it is gone when they are (Linux only). A
program that closes the files that it inherits cannot read it: `ssh -i` is one,
and `ssh-add` works. A daemon that outlives the command cannot read it, either.

To let a container use a session, mount the session's socket:
    SOCKET=$(cut -d= -f2- .hotenv)
    docker run --rm -v "$SOCKET:/s.sock" \
        -v "$PWD/hotenv.py:/hotenv.py:ro" python:3 python3 /hotenv.py \
        run --socket /s.sock --peer-uid "$(id -u)" -- ./test.sh

For another host, ssh forwards the socket into a directory there that is yours
alone. Write your home directory on that host in place of /home/me. End the
session where it was started, not there:
    ssh host 'mkdir -p -m 700 ~/.hotenv-far && rm -f ~/.hotenv-far/s.sock'
    ssh -o ExitOnForwardFailure=yes \
        -R /home/me/.hotenv-far/s.sock:"$SOCKET" host
    host$ hotenv run --socket ~/.hotenv-far/s.sock -- ./deploy.sh

`hotenv status --all` lists all your sessions, also what a `kill -9` or a
restart has left of one. `hotenv stop --all` ends the live ones and removes the
dead ones.
""",
    "dotenv": r"""What `serve` reads, unless --format says json or nul:
    # a comment
    API_KEY=abc123
    export GREETING='hello world'
    URL="postgres://${DB_USER:-app}@db/app"

A name consists of letters, digits, `_`, `.` and `-`. Blanks around the name
and around `=` do not count. `#` begins a comment at the start of a line, or
after a blank. If a name comes twice, the last value counts.

  bare   Ends at the end of the line, or before a comment. Blanks at its end do
         not count. A backslash is a backslash.
  '...'  Is literal, except for \\ and \'. It may span lines.
  "..."  Knows \n \r \t \\ \" \' \a \b \f \v. It may span lines.

In bare and "..." values, ${NAME} stands for what an earlier line has set, or
else for a variable of the environment in which `serve` was started, or else
for nothing. These work as in a shell, and may be nested:

    ${A:-x}   x if A is empty or not set      ${A-x}   x if A is not set
    ${A:+x}   x if A has a text               ${A+x}   x if A is set
    ${A:?x}   an error if A is empty or not   ${A?x}   an error if A is not set

\${ is a literal ${. $NAME without braces is literal: passwords hold dollars.

With --prompt, a bare value `?text` is a question on the terminal. A `?` alone
asks by the variable's name:
    DB_PASSWORD=?Password of staging

If one line is malformed, the whole input is refused, with exit code 7. These
are malformed: a name without `=` (except `export NAME` after NAME was set), a
quote that never ends, text behind a closing quote, an odd ${, NUL, and bytes
that are not UTF-8. All references together may make at most 64 MiB. An error
names the place, and never shows a value.

--format json takes one object of strings, numbers and booleans. --format nul
takes what `env -0` prints. `dump --format dotenv`, json and nul print what
`serve` reads back to the byte.
""",
    "masking": r"""`run --mask`, `mask`, `mcp`, and in Python ShellSession and Redactor, replace
each value of the session by [hidden:NAME], also the values that --only left
out. Very short values and everyday words are left as they are: see below.

    hotenv run --mask -- ./deploy.sh > deploy.log
    docker logs web | hotenv mask
    git diff --cached | hotenv mask --check

`run --mask` masks what goes to a file or a pipe, and leaves a terminal as it
is. `mask --check` prints no input. It writes `LINE: NAME` for each value that
it finds to stderr, and exits with 1.

What is found: a value as it is; in base64, also within something longer, also
in the alphabet for URLs; in hex; in percent-encoding; as JSON, HTML, SQL, YAML
and shells quote it; as Python's repr shows it. Of a value with several lines,
each line of 8 or more characters is found, too. A value of 4 to 7 characters
is found as a whole word only.

`run --mask`, `mcp` and ShellSession also hide secrets of your own environment
that no session holds: variables whose names look secret
([hidden:GITHUB_TOKEN]), and values in the form of a known token, such as
ghp_..., AKIA... or a private key ([hidden:token]).

What is not found: a piece of a value, its reverse, compressed or encrypted
text, one character a line, upper-case hex, most wrapped base64, and whatever
nobody has thought of. Masking prevents accidents. It does not stop intent.

Output comes at once, except for what may be the beginning of a value. What a
background process prints after the command has ended is lost.

These are not masked: values of up to 3 characters, numbers of up to 5 digits,
the variables of --isolated's allowlist (HOME, PATH), and the everyday words
below, in upper and lower case. `run --mask` names such variables on stderr, and
`mcp` names them to the agent. --no-mask NAMES leaves others unmasked, too.
""" + _everyday_words(),
    "mcp": r"""`hotenv mcp` speaks the Model Context Protocol on stdin and stdout. It gives an
agent shells in which the session's secrets are set. In all that the agent
sees, each value is replaced by [hidden:NAME], unless it is very short or an
everyday word (`hotenv help masking`).

Start a session in the project first. Each call that uses a shell is a use of
the session, so give the session a maximum age:
    pass show deploy/env | hotenv serve --background --max-age 8h

If there is no session, a client that can ask questions asks you to start one.
Start it in a terminal, then accept. When a session has ended, the next call
that needs it closes the agent's shells.

Claude Code:
    claude mcp add hotenv -- python3 hotenv.py mcp

Claude Desktop, Cursor, Gemini CLI. (VS Code has "servers" in place of
"mcpServers", and wants "type": "stdio" beside "command".)
    {"mcpServers": {"hotenv": {"command": "sh", "args": ["-c",
      "cd /path/to/project && exec python3 hotenv.py mcp"]}}}

  --only NAMES       The secrets that the agent's shells have. The others are
                     masked all the same.
  --no-mask NAMES    Values that the agent may see.
  --policy FILE      Which programs may be run: {"allow": ["git", "make"]},
                     {"deny": ["sudo"]}, or both in one object. The names are
                     compared with the first word of every simple command. What
                     is unclear, such as $CMD or backticks, is refused. A
                     policy is only advice: make and $((x)) can run anything.
  --audit FILE       A line of JSON at the start and the end of each command:
                     who asked, where it ran, and what came out, masked. Only
                     you can read the file. A command whose start cannot be
                     written does not run.
  --remote NAME=CMD  Lets the agent open a shell by CMD, such as `ssh -T host`.
                     Nothing that runs there outlives the session. A host whose
                     login shell reads all of its input first, as fish does,
                     wants `ssh -T host sh`.

The tools:

  session_open   Opens a shell, here or at a remote, and names its secrets.
  session_exec   Runs a command. A result has at most 20,000 characters, unless
                 "max_output" asks for more. With "background" the command is a
                 job, and the call returns at once. With "terminal" as well,
                 the job has a terminal.
  session_read   Reads the output of a job, or the rest of a long result (of
                 the last 16 MiB). It can look for a pattern, and wait for it.
  session_write  Sends text to a job, or a secret by its name. So an agent
                 answers the password prompt of sudo, psql or ssh, and never
                 sees the password.
  session_stop   Sends Ctrl-C to a job, and kills what is left two seconds
                 later.
  session_list   Lists shells and jobs.
  session_close  Closes a shell, and ends all that runs in it.

A command has an empty stdin and no terminal. After 30 seconds, or its own
"timeout", it gets a Ctrl-C. If it still runs two seconds later, it is killed
with its shell. A new shell then takes over the directory and the exports, and
the result says shell_restarted. What moves away on purpose (docker, a tmux
server) outlives its shell.

This is no boundary. An agent can use what it cannot see: it can send a value
somewhere, or print it in disguise. Give it only what it may use. And an agent
with another shell, such as that of Claude Code, runs as you: it can run
`hotenv dump`. Three things help, and none of them is a wall:

Run the agent as another user, who cannot connect to your sessions. Let it
reach `hotenv mcp` by one command that you allow, such as
`sudo -u you /home/you/bin/hotenv mcp --socket PATH`. The shells that this
command opens still run as you.

Hold in the session only what the agent may have, and the rest in a session of
another directory. --only limits what `hotenv mcp` hands out, but not what
`hotenv dump` prints.

Forbid the commands in the settings of the agent, as advice. In Claude Code:
    {"permissions": {"deny": ["Bash(hotenv:*)", "Bash(python3 hotenv.py:*)"]}}
""",
    "hermetic": r"""`run` and `hermetic` can take something from a program. Guards add up:

  --no-network          No connection, and no name is looked up.
  --allow-localhost     Except this machine (127.0.0.0/8 and ::1), for Python
                        code.
  --allow-domain D      Except D and what ends in .D, for Python code.
  --allow-unix          Except unix sockets, also for other programs. Docker,
                        an SSH agent and hotenv's own sessions are among them.
  --no-subprocess       No other program, and no fork. Threads are allowed.
  --fs-readonly[=PATH]  Nothing is written. Files are read only below PATH, or
                        below the current directory. =/ reads everything.
  --fs-write PATH       Except below PATH.
  --strict-imports      No native modules but Python's own, and no ctypes.
  --trace               Each blocked action is a line on stderr, without
                        secrets.
  --profile NAME        net-hermetic, exec-deny, fs-readonly, strict-imports,
                        all.

    hotenv hermetic --fs-readonly=/ -- python3 report.py
    hotenv hermetic --no-network --allow-localhost --trace -- python3 report.py
    hotenv run --no-network --only API_KEY -- ./report.sh

A target is a command, a path, `python3 ...`, a module (its code is run), or
pkg.module:callable. If a guard cannot be enforced for a target, the target is
not run, and the exit status is 1.

Two layers hold the guards. The kernel (seccomp and Landlock; Linux on x86-64,
aarch64 and riscv64) holds any program and all that it starts. An audit hook
holds a Python of 3.8 or later: the kernel sees no names, addresses and paths,
and the hook does. In the table, K is the kernel, H is the hook, and - is
nobody. C code is that of modules within a guarded Python, such as numpy or
grpc.
                                     Python   its C code   other programs
    --no-network
      connecting by TCP              H K1     K1           K
      UDP and other sockets          H K      K            K
      looking up names               H        K            K
      listening for other machines   H        -            K
      unix sockets by path           H2       -            K
      connections open before        -        -            -
    --allow-localhost, --allow-domain
      connecting elsewhere           H        -            K: no network at all
    --allow-unix
      unix sockets by path           H2       -            -
    --no-subprocess
      fork and exec                  H K      K            K
      asking docker, systemd, cron   -        -            - (K: --no-network)
    --fs-readonly
      making, writing, removing      H5 K3    K3           K3
      modes, owners, times           H K3 4   K3 4         K3 4
      reading outside of PATH        H5       -            K3
    --strict-imports
      native modules, ctypes         H        -            not run: exit 1 (6)
    any guard
      looking into other programs    K7       K7           K7
      typing into the terminal       K        K            K
      becoming root by sudo or su    K        K            K

  1  From Linux 6.7 on. Before, C code in a Python can connect.
  2  The hook closes hotenv's own sessions, and no other unix socket.
  3  From Linux 6.2 on. Open are /dev/null and its like, /dev/shm, and the
     files that are stdout and stderr. Where the PATH of --fs-write is missing,
     other programs cannot make it. For a Python the kernel opens its directory,
     and the hook does not. A Python writes no bytecode, not even below PATH.
  4  The kernel does not hold these under --fs-write, and the hook does.
  5  The hook does not see the files that ssl, dlopen, readline, dbm, pwd,
     -X perf, and sqlite's ATTACH and VACUUM INTO open.
  6  As a child of a guarded Python it is run, and this guard does not hold it.
  7  From Linux 5.19 on.

A child is held as a target of its kind is held. What C code in a Python starts
is held as that C code is. A Python counts as another program if it cannot load
the hook: `python -I`, -E and -S, `env -i python`, and versions before 3.8.
Under --no-network it then runs without any network.

Where Linux cannot hold a guard (an old kernel, some containers, macOS), a
Python has its hook alone, and a line on stderr says so. Any other program is
not run. Under any guard 32-bit programs are killed. A script that begins with
`#!/usr/bin/env node` needs two starts: under --no-subprocess, write
`node script.js`. Below --fs-write PATH, hotenv's own files can be changed if
they lie there, as in /tmp.

Code that looks for the hook can get round it: guards prevent accidents. Before
Python 3.10 --strict-imports does not see which extensions sqlite loads. uvloop
and subinterpreters are refused under any guard. pycurl, curl_cffi and grpc are
refused where a host is allowed. The addresses at which clouds hand out
credentials (169.254.169.254) are closed, unless --allow-domain names that very
one. An allowed name stands for the addresses that it had when it was looked
up.

Exit status 2 says that the hook of the first process has blocked something,
even if the program went on. One line on stderr names the first action. What a
program only probes is refused, and does not count. What only the kernel
refused is "Permission denied" to the program, and no more.

Guards can also stand in [tool.hermetic] of ./pyproject.toml and in
./HERMETIC.toml (Python 3.11 and later), as no-network = true, and in
HERMETIC_FLAGS, HERMETIC_PROFILE and HERMETIC_FS_ROOT. All of them count for
`hermetic`, and for a `run` with a guard among its options. A guard that any
source asks for is on. An --allow... counts only if no higher source has asked
for its guard.
""",
}


if __name__ == "__main__":
    sys.exit(main())
