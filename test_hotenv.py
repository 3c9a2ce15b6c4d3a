"""The promises of hotenv, kept against the real program.

Environment variables that change a run of the suite:

- HOTENV_TEST_FULL=1 runs the long forms: 20 times as much of whatever is random.
- HOTENV_TEST_SEED=N changes what is random.
- HOTENV_TEST_PROGRAMS names a virtual environment with httpie, pytest and black.
- HOTENV_TEST_MCP names a virtual environment with the mcp package.

A test that needs one of these, root, Linux or a missing tool is skipped with a reason.
"""

import ast
import base64
import contextlib
import ctypes
import errno
import fcntl
import gc
import glob
import html
import http.server
import importlib.util
import io
import itertools
import json
import os
import pickle
import pty
import pwd
import py_compile
import random
import re
import resource
import select
import shlex
import shutil
import signal
import socket
import socketserver
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import traceback
import tracemalloc
import types
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import pytest

import hotenv

HERE = Path(__file__).resolve().parent
HOTENV = HERE / "hotenv.py"
SEED = int(os.environ.get("HOTENV_TEST_SEED", "20260214"))
FULL = os.environ.get("HOTENV_TEST_FULL") == "1"
LINUX = sys.platform == "linux"
ROOT = os.geteuid() == 0

# The program as pip installs it: Python compiles hotenv.py once, where it compiles a script at
# each start.
INSTALLED = [
    sys.executable,
    "-S",
    "-c",
    "import sys; sys.path.insert(0, %r); import hotenv; del sys.path[0];"
    "sys.exit(hotenv.main())" % str(HERE),
]

# Seconds after which a condition that should hold at once counts as failed.
PATIENCE = 30.0

# The user id of somebody else. Only root can become that user.
STRANGER = 4242

only_linux = pytest.mark.skipif(not LINUX, reason="looks at /proc, which is Linux's")
only_root = pytest.mark.skipif(not ROOT, reason="needs root, to become somebody else")

PATHS = "/usr/local/bin:/usr/bin:/bin"
ENV = "/usr/bin/env"

# A locale that has no character beyond ASCII.
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

TOKEN = "sk-live-51H8sVq0"
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
SECRETS = {
    "TOKEN": TOKEN,
    "PEM": PEM,
    "PIN": "12",
    "URL": "postgres://u:p%40ss w@h/db?x='1'",
}

# The environment of the session `daily`.
SNAPSHOT = {
    b"API_KEY": b"s3cr3t-1",
    b"API_URL": b"s3cr3t-2",
    b"AWS_ID": b"s3cr3t-3",
    b"AWS_KEY": b"s3cr3t-4",
    b"TERM": b"snapshot",
    b"OTHER": b"s3cr3t-5",
}

# Two requests, and the beginning of the answer to a bad one.
DUMP = b'{"command":"dump"}\n'
RUN = b'{"command":"run","args":["x"]}\n'
BAD_REQUEST = b'{"error":"BAD_REQUEST","message":"'

# A shell that starts the suite by nohup, or with `&`, has it ignore these signals. Programs that
# the tests start would inherit that, so the signals get their usual effect back.
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        if ignored == signal.SIGINT:
            signal.signal(ignored, signal.default_int_handler)
        else:
            signal.signal(ignored, signal.SIG_DFL)

# A suite that is started from within a session must not find that session.
os.environ.pop("HOTENV_SOCKET", None)


def amount(n):
    """Return how often something random is tried: `n` times in the long form, else a twentieth."""
    if FULL:
        return n
    return max(1, n // 20)


# ==== the project directory =======================================================================
# A project directory with a runtime directory of its own. What is started in it ends with it.


def until(condition, what="the condition", patience=PATIENCE):
    """Wait for a true value of `condition()` and return it; fail the test if none comes in time."""
    give_up = time.monotonic() + patience
    value = condition()
    while not value:
        if time.monotonic() > give_up:
            pytest.fail("waited in vain for " + what)
        time.sleep(0.002)
        value = condition()
    return value


class Project:
    """A fresh directory in which a test starts sessions.

    - `root`: holds all the others, and whatever else a test puts there.
    - `dir`: the project directory, in which programs start.
    - `base`: the XDG_RUNTIME_DIR of these programs; hotenv's `runtime` directory is below it.
    - `log_path`: takes the stderr of programs that `start` starts.
    - `env`: the whole environment of programs.
    - `program`: the words that start hotenv.
    - `source`: the hotenv.py to copy where a test needs a copy.
    """

    def __init__(self):
        # The path is short, because a socket's path has to be.
        self.root = Path(tempfile.mkdtemp(prefix="hot-", dir="/tmp")).resolve()
        self.dir = self.root / "p"
        self.base = self.root / "r"
        self.runtime = self.base / "hotenv"
        self.log_path = self.root / "log"
        self.dir.mkdir()
        self.base.mkdir(0o700)

        self.env = {"PATH": PATHS, "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.base)}
        self.program = INSTALLED
        self.source = HOTENV
        self.started = []
        self.clients = []

    # -- which program --

    def command(self, args):
        """Return the words that start the program with these arguments."""
        return [*self.program, *args]

    def with_own_tmp(self):
        """Give the program directories of this project in place of those that all runs share.

        These are /tmp/hotenv-UID, which takes the sessions where XDG_RUNTIME_DIR is of no use,
        and /run/user/UID. All programs of a user share them, other runs of this suite included, so
        no test may touch the real ones. From here on the program is a copy of hotenv.py whose text
        names other places. Return the one for /tmp/hotenv-UID, without the user id at its end.
        """
        text = HOTENV.read_text(encoding="utf-8")
        assert "/tmp/hotenv-" in text, "hotenv.py no longer names /tmp/hotenv-UID in its text"

        # Every user may make a directory in there, as in /tmp.
        tmp = self.root / "tmp"
        tmp.mkdir()
        tmp.chmod(0o1777)
        self.root.chmod(0o755)

        copies = self.root / "with_own_tmp"
        copies.mkdir()
        self.source = copies / "hotenv.py"
        text = text.replace("/tmp/hotenv-", "%s/hotenv-" % tmp)
        text = text.replace("/run/user/", "%s/run-user/" % tmp)
        self.source.write_text(text, encoding="utf-8")
        python, *arguments = INSTALLED
        self.program = [python, *[word.replace(str(HERE), str(copies)) for word in arguments]]
        return "%s/hotenv-" % tmp

    def for_strangers(self, owner=None):
        """Make the program one that other users can start, too.

        It becomes a copy of hotenv.py, started by a Python that other users can reach. With an
        `owner`, a user id, the project belongs to that user. Return a preexec_fn that makes a
        program that user's, or None without an owner.
        """
        python = _python_for_strangers()
        if python is None:
            pytest.skip("no Python here that another user can run")

        self.root.chmod(0o755)
        self.program = [python, shutil.copy(str(self.source), str(self.root))]
        if owner is None:
            return None

        for path in [self.base, self.dir, *self.dir.rglob("*")]:
            os.chown(str(path), owner, owner)
        return become(owner)

    # -- starting it --

    def start(self, *args, env=None, **options):
        """Start the program with these arguments, and return its process at once."""
        with open(str(self.log_path), "ab") as log:
            options = {"cwd": str(self.dir), "stderr": log, **options}
            process = subprocess.Popen(
                self.command(args), env={**self.env, **(env or {})}, **options
            )
        self.started.append(process)
        return process

    def serve(self, text=b"A=1\n", *options, **more):
        """Start `serve` with `text` on its stdin, and return its process once it serves."""
        before = self.marker_content()
        process = self.start("serve", *options, stdin=PIPE, **more)
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(text)
        self.wait_ready(process, before)
        return process

    def wait_ready(self, process, before=None):
        """Wait until a server has written a marker other than `before`; fail if it ends instead."""

        def is_ready():
            if process.poll() is not None:
                return True
            if self.marker_content() == before:
                return False
            # The file from which the marker was made goes a moment later.
            return not any(self.dir.glob(".hotenv.*"))

        until(is_ready, "a marker")
        if process.poll() is not None:
            pytest.fail("serve ended with %s: %s" % (process.returncode, self.log()))

    def held(self, *args, **options):
        """Start `serve` with a stdin that does not end.

        Return its process, and a descriptor: the other end of its stdin.
        """
        reader, writer = os.pipe()
        process = self.start("serve", *args, stdin=reader, **{"stderr": PIPE, **options})
        os.close(reader)
        return process, writer

    def hotenv(self, *args, env=None, timeout=PATIENCE, **options):
        """Run the program with these arguments until it ends; return a CompletedProcess."""
        options = {"cwd": str(self.dir), "stdout": PIPE, "stderr": PIPE, **options}
        if "stdin" not in options:
            options.setdefault("input", b"")
        return subprocess.run(
            self.command(args), env={**self.env, **(env or {})}, timeout=timeout, **options
        )

    def run(self, *command, **options):
        """Run a command with `hotenv run --`; return a CompletedProcess."""
        return self.hotenv("run", "--", *command, **options)

    def dump(self, *options, **more):
        """Return the environment that the session hands out, or None where there is no session."""
        done = self.hotenv("dump", "--format", "nul", *options, **more)
        if done.returncode:
            return None
        return environment_of(done)

    def sh(self, lines):
        """Run shell lines in `root`, where the project is `p` and the runtime base is `r`."""
        subprocess.run(["sh", "-ec", lines], cwd=str(self.root), check=True)

    # -- what it left --

    def log(self):
        """Return what the programs have written to stderr."""
        if not self.log_path.exists():
            return b""
        return self.log_path.read_bytes()

    def log_lines(self):
        """Return the lines that the programs have written to stderr."""
        return self.log().decode().splitlines()

    @property
    def marker(self):
        """The path of the project's marker."""
        return self.dir / ".hotenv"

    def marker_content(self):
        """Return the bytes of the marker, or None where no plain file has its name."""
        try:
            if stat.S_ISREG(os.lstat(str(self.marker)).st_mode):
                return self.marker.read_bytes()
        except OSError:
            pass
        return None

    def socket_path(self):
        """Return the path of the socket that the marker names."""
        return os.fsdecode(self.marker.read_bytes()[len(b"socket=") : -1])

    def points_at(self, path):
        """Write a marker that names the socket `path`."""
        self.marker.write_bytes(b"socket=" + os.fsencode(str(path)) + b"\n")

    def ends_at(self):
        """Return when the session will end: the time stamp of its socket."""
        return os.stat(self.socket_path()).st_mtime

    def files(self):
        """Return the paths of everything below the project and the runtime base, from `root`."""
        found = [*self.dir.rglob("*"), *self.base.rglob("*")]
        return sorted(str(path.relative_to(self.root)) for path in found)

    # -- its socket --

    def connect(self, path=None):
        """Return a client that is connected to the session's socket, or to the one at `path`."""
        client = socket.socket(socket.AF_UNIX)
        self.clients.append(client)
        client.settimeout(PATIENCE)
        client.connect(path or self.socket_path())
        return client

    def ask(self, request=DUMP, path=None):
        """Send a request to the session and return the whole answer."""
        with self.connect(path) as client:
            # A server may answer a bad request, and close, before it has read all of it.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(request)
            return answer(client)

    def server_pid(self):
        """Return the pid of whoever answers; a session in the background is no child of ours."""
        with self.connect() as client:
            return peer_pid(client)

    # -- its end --

    def close(self):
        """End what was started here, and remove the directory."""
        for client in self.clients:
            client.close()
        for process in self.started:
            with contextlib.suppress(BrokenPipeError), process:
                process.kill()
        self._end_background_sessions()

        shutil.rmtree(str(self.root), ignore_errors=True)
        if self.root.exists():
            # A test has taken a permission away.
            lines = 'chmod -R u+rwx "$0"; rm -rf "$0"'
            subprocess.run(["sh", "-c", lines, str(self.root)], stderr=DEVNULL)

    def _end_background_sessions(self):
        """Kill the servers behind sockets of this project: they need not be children of ours."""
        places = [self.runtime, *self.root.glob("tmp/hotenv-*")]
        for path in [path for place in places for path in place.glob("*.sock")]:
            with contextlib.suppress(OSError), self.connect(str(path)) as client:
                pid = peer_pid(client)
                if pid not in (0, os.getpid()):
                    os.kill(pid, signal.SIGKILL)


def _python_for_strangers():
    """Return the path of a Python that another user can run and hotenv supports, or None."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(probe, preexec_fn=become(STRANGER), timeout=PATIENCE)
            if done.returncode == 0:
                return python
    return None


@pytest.fixture(autouse=True)
def no_test_hangs():
    """Fail a test that takes far longer than any should."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("this test hangs"))
    signal.alarm(900 if FULL else 120)
    yield
    signal.alarm(0)


@pytest.fixture
def project():
    """A fresh Project."""
    with contextlib.closing(Project()) as fresh:
        yield fresh


def standing(text, *options, **env):
    """Yield a Project with a session that many tests ask, and none ends."""
    with contextlib.closing(Project()) as shared:
        shared.env.update(env)
        server = shared.serve(text, "--timeout", "1h", *options)
        yield shared
        last_words = shared.log()[-500:].decode(errors="replace")
        assert server.poll() is None, "a session that many tests share has ended: " + last_words


@pytest.fixture(scope="module")
def session():
    """A Project with a small session, which logs what is asked of it."""
    yield from standing(b"A=1\nB=two words\nEMPTY=\n", "--verbose")


@pytest.fixture(scope="module")
def daily():
    """A Project with a session like one of every day: SNAPSHOT, asked from a host of its own.

    Its attribute `host` is the environment in which its programs start, as bytes.
    """
    text = b"".join(b"%s=%s\n" % pair for pair in SNAPSHOT.items())
    host = {"HOME": "/h", "EDITOR": "vi", "OTHER": "host", "BLANK": "", "LANG": "C.UTF-8"}
    for shared in standing(text, **host):
        shared.host = {name.encode(): value.encode() for name, value in shared.env.items()}
        yield shared


@pytest.fixture
def answerer(project):
    """answerer(response): a server that gives every client the same bytes, whatever it asks.

    The server has a `path`, the one of its socket, and a `response`, which a test may replace.
    """

    def give(client, _, server):
        with contextlib.suppress(OSError):
            client.recv(1 << 20)
            client.sendall(server.response)

    with contextlib.ExitStack() as ends:

        def make(response=b""):
            path = str(project.root / os.urandom(8).hex())
            server = ends.enter_context(socketserver.UnixStreamServer(path, give))
            server.path = path
            server.response = response
            server.socket.listen(64)
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            ends.callback(server.shutdown)
            return server

        yield make


# ==== what came back ==============================================================================
# How a test reads an answer, a refusal, an environment.


def short(value):
    """Return the beginning of a value's representation, to name a case of a parametrized test."""
    return repr(value)[:30]


def environment_of(done):
    """Return the environment that a command has printed with a zero byte after each variable."""
    assert done.returncode == 0, done.stderr
    return dict(pair.split(b"=", 1) for pair in done.stdout.split(b"\0") if pair)


def answer(client):
    """Return the bytes that come from a socket until the other side closes it."""
    chunks = []
    with contextlib.suppress(ConnectionResetError):
        chunks.extend(iter(lambda: client.recv(1 << 20), b""))
    return b"".join(chunks)


def peer_pid(client):
    """Return the pid of the process at the other end of a Unix socket."""
    if LINUX:
        return client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED)
    local_peer_pid = 2  # LOCAL_PEERPID of <sys/un.h> on macOS, at the level SOL_LOCAL, which is 0
    return client.getsockopt(0, local_peer_pid)


def refusal(done, code):
    """Return the error with which a command must have ended, without its prefix `hotenv: `.

    An error is one line `hotenv: MESSAGE` and any number of lines `hint: WHAT TO DO`, all of them
    printable. A traceback, or a word of an internal error, fails the test.
    """
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert text.endswith("\n"), "an error ends with its line: %r" % text
    assert "internal error" not in text

    message, *hints = text[:-1].split("\n")
    assert re.match(r"hotenv: .", message), "an error begins with `hotenv: `: %r" % text
    for hint in hints:
        assert re.match(r"hint: .", hint), "after the message come hints alone: %r" % text
    for line in (message, *hints):
        assert line.isprintable(), "a line of an error is printable: %r" % text
    return text[len("hotenv: ") : -1]


# ==== processes, and what surrounds them ==========================================================
# How a test ends, watches, forks and limits processes, and how it starts the program oddly.


def ended(process, signum=None):
    """Wait for a process to end, by itself or by this signal, and return its exit status."""
    process.send_signal(signum or 0)
    return process.wait(PATIENCE)


def children(pid):
    """Return [pid, state, name] of each child of a process, as text."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "ppid=,pid=,stat=,comm="], stdout=PIPE, timeout=PATIENCE
    )
    rows = [line.split(None, 3) for line in listing.stdout.decode().splitlines()]
    return [row[1:] for row in rows if row[0] == str(pid)]


def process_stat(pid):
    """Return the fields of /proc/PID/stat from the third on, the state, as proc(5) lists them."""
    return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()


def resident(pid):
    """Return how many bytes of memory a process holds."""
    rss = 21  # its place among the fields that process_stat returns
    return int(process_stat(pid)[rss]) * resource.getpagesize()


def mode(path):
    """Return the permission bits of a path; those of a link, where the path is one."""
    return stat.S_IMODE(os.lstat(str(path)).st_mode)


def limits(**soft_and_hard):
    """Return a preexec_fn that sets resource limits: limits(NOFILE=(64, 64))."""
    pairs = [
        (getattr(resource, "RLIMIT_" + name), pair) for name, pair in soft_and_hard.items()
    ]

    def set_limits():
        for which, pair in pairs:
            resource.setrlimit(which, pair)

    return set_limits


def become(uid):
    """Return a preexec_fn that makes a child another user's."""

    def change_user():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)

    return change_user


def forked(work):
    """Fork a child that calls `work()`, and return its pid.

    Its exit status is what `work` returns, the code of a HotenvError that `work` raises, or 99 for
    any other exception.
    """
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        status = work() or 0
    except hotenv.HotenvError as error:
        status = error.code
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def in_child(work):
    """Call `work()` in a fork, and return its exit status, as `forked` has it."""
    return os.WEXITSTATUS(os.waitpid(forked(work), 0)[1])


@contextlib.contextmanager
def on_terminal(*command, cwd=None, env=None, **redirected):
    """Start a process that leads a session on a new terminal; yield its pid and the terminal.

    `redirected` gives files to some of its streams: on_terminal(..., stderr=path).
    """
    pid, terminal = pty.fork()
    if not pid:
        try:
            for stream, path in redirected.items():
                file = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(file, ["stdin", "stdout", "stderr"].index(stream))
            os.chdir(str(cwd or os.getcwd()))
            os.execvpe(command[0], command, os.environ if env is None else env)
        finally:
            os._exit(99)
    try:
        yield pid, terminal
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        os.close(terminal)


def read_until(descriptor, wanted=None, seen=b""):
    """Read a descriptor until `wanted`, a pattern, is in the bytes; without one, until the end.

    Return all the bytes, after those in `seen`.
    """
    give_up = time.monotonic() + PATIENCE
    while wanted is None or not re.search(wanted, seen):
        patience = max(0, give_up - time.monotonic())
        if not select.select([descriptor], [], [], patience)[0]:
            pytest.fail("waited in vain for %r in %r" % (wanted, seen))

        piece = b""
        # Linux says EIO when all other ends of a terminal are closed.
        with contextlib.suppress(OSError):
            piece = os.read(descriptor, 65536)
        if not piece:
            assert wanted is None, "the end came before %r in %r" % (wanted, seen)
            return seen
        seen += piece
    return seen


@pytest.fixture
def meddle(project):
    """meddle("linkat:error=EPERM"): have the kernel do that to what the project starts from now on.

    A rule is what strace(1) calls `inject`. `told` is a file for strace's own report.
    """
    probe = ["sh", "-c", "strace -D -qq -o /dev/null true"]
    if subprocess.run(probe, stderr=DEVNULL).returncode:
        pytest.skip("needs strace, and the right to trace a child")
    plain = project.program

    def start_under_strace(*rules, told="/dev/null"):
        calls = ",".join(rule.split(":")[0] for rule in rules)
        words = ["-e", "trace=" + calls]
        for rule in rules:
            words += ["-e", "inject=" + rule]
        project.program = ["strace", "-D", "-qq", "-o", str(told), *words, *plain]

    return start_under_strace


def in_mounts(project, lines):
    """Start the program, from here on, as the "$@" of shell lines in a mount namespace."""
    if not ROOT or subprocess.run(["sh", "-c", "unshare -m true"], stderr=DEVNULL).returncode:
        pytest.skip("needs root and mount namespaces")
    project.program = ["unshare", "-m", "sh", "-c", lines, "sh", *project.program]


@contextlib.contextmanager
def _input_file(data):
    """Yield a file from which these bytes can be read."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def called(project, *args, env=None, input=b"", cwd=None):
    """Run the program as its console script does, but in a fork of this process.

    That saves the time of a start. Return a CompletedProcess, as `Project.hotenv` does.
    """
    with contextlib.ExitStack() as files:
        stdin = files.enter_context(_input_file(input))
        stdout = files.enter_context(tempfile.TemporaryFile())
        stderr = files.enter_context(tempfile.TemporaryFile())
        child = os.fork()
        if not child:
            try:
                for number, stream in enumerate((stdin, stdout, stderr)):
                    os.dup2(stream.fileno(), number)
                os.setsid()
                os.chdir(str(cwd or project.dir))
                os.environ.clear()
                os.environ.update({**project.env, **(env or {})})
                signal.alarm(0)
                sys.argv = ["hotenv", *args]
                sys.stdout = open(1, "w")
                sys.stderr = open(2, "w", errors="backslashreplace")
                status = hotenv.main(list(args))
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
            finally:
                os._exit(99)

        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            code = -os.WTERMSIG(status)
        else:
            code = os.WEXITSTATUS(status)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(args, code, stdout.read(), stderr.read())


def side_by_side(rows, check, at_once=2):
    """Call check(row) for every row, some of them at once.

    A failure is told with its row. If no row fails, and one is skipped, the test is skipped.
    """

    def tried(row):
        try:
            check(row)
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
            return row, error
        return None

    with ThreadPoolExecutor(at_once) as pool:
        told = [each for each in pool.map(tried, rows) if each]
    wrong = [each for each in told if not isinstance(each[1], pytest.skip.Exception)]
    assert not wrong, "\n".join("%r: %r" % each for each in wrong)
    if told:
        pytest.skip("; ".join("%r: %s" % each for each in told))


def strangers(project, owner=None):
    """Do what `project.for_strangers` does, but start the program from the compiled file."""
    as_them = project.for_strangers(owner)
    python, file = project.program
    py_compile.compile(file)
    (project.root / "__pycache__").chmod(0o755)
    arguments = [word.replace(str(HERE), str(project.root)) for word in INSTALLED[1:]]
    project.program = [python, *arguments]
    return as_them


def executable(path, text, mode=0o755):
    """Write a text file with this mode."""
    path.write_text(text)
    path.chmod(mode)


def script(path, text, permissions=0o755):
    """Write a file of bytes with this mode, and its directory where there is none.

    Return its path as text.
    """
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    path.chmod(permissions)
    return str(path)


def planted(path, kind):
    """Put at `path` what is no plain file: a link, a fifo or a directory, as `kind` says."""
    if "link" in kind:
        path.symlink_to("target")
    if kind == "link":
        path.with_name("target").write_bytes(b"precious\n")
    if "fifo" in kind:
        os.mkfifo(str(path))
    if kind == "directory":
        path.mkdir()


def unique_sleep():
    """Return a command, `sleep` of some hours, that no other process runs."""
    return f"sleep 4{os.getpid()}.{random.randrange(10 ** 6)}"


def python_dotenv():
    """Return the module dotenv of the package python-dotenv; skip the test where it is missing."""
    dotenv = pytest.importorskip("dotenv", reason="needs python-dotenv")
    text = "A='\\\\'\nB='b'\n"
    if dotenv.dotenv_values(stream=io.StringIO(text)) != {"A": "\\", "B": "b"}:
        pytest.skip("python-dotenv before 1.2.3 has quoted values that cannot end in a backslash")
    return dotenv


# ==== tables that several sections use ============================================================
# Requests, answers and words that more than one section tries.

# The beginning of each line that `serve --verbose` logs.
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (run|dump) ")

# Words that are nobody's secret, so that masking leaves them alone.
COMMON = (
    "true false yes no on off null none debug info warning error test dev staging production"
    " localhost postgres root admin 0 1 80 443 3000 5432 8080 65535 00042"
).split()

LONGEST = 256 << 10  # bytes of a request; its newline does not count
DIGITS = b"1" * 200000

# Requests that a JSON parser must not fall over; this holds without the C half of `json`, too.
TORN = [
    b'{"command":"du\n',
    DIGITS + b"\n",
    b"[" * 100000 + b"\n",
]

BAD_REQUESTS = [
    b"\n",
    b"  \n",
    b"dump\n",
    b"null\n",
    b'["dump"]\n',
    b'"dump"\n',
    b'{"command":"dump"}{"command":"dump"}\n',
    b'{"command":"dump"} x\n',
    b"{'command':'dump'}\n",
    b'{"command":"dump",}\n',
    b'{"command":"\\"\n',
    b'{"command":"run","args":["\xff"]}\n',
    '{"command":"dump"}\n'.encode("utf-16"),
    b"\0\n",
    b"{}\n",
    b'\xef\xbb\xbf{"command":"dump"}\n',
    b'{"command":"run","args":["a\tb"]}\n',
    b'{"command":"stop"}\n',
    b'{"command":"Dump"}\n',
    b'{"command":null}\n',
    b'{"command":["dump"]}\n',
    b'{"command":1}\n',
    b'{"command":"run"}\n',
    b'{"command":"run","args":[]}\n',
    b'{"command":"run","args":"ls"}\n',
    b'{"command":"run","args":{"0":"ls"}}\n',
    b'{"command":"run","args":null}\n',
    b'{"command":"run","args":["ls",1]}\n',
    b'{"command":"run","args":[null]}\n',
    b'{"command":NaN}\n',
    b'{"command":"dump","x":NaN}\n',
    b"-Infinity\n",
    *TORN,
    b'{"command":' + DIGITS + b"}\n",
    b'{"command":1e' + DIGITS + b"}\n",
    b"[" * 100000 + b"]" * 100000 + b"\n",
    b'{"a":' * 50000 + b"\n",
    # These two are too long.
    b'{"command":"dump","x":"' + b"x" * (LONGEST - 24) + b'"}\n',
    b"x" * (17 << 20),
]

GOOD_REQUESTS = [
    DUMP,
    RUN,
    b'  { "command" : "dump" } \r\n',
    b'{"version":3,"command":"dump","more":{"a":[1,2.5,null,true]}}\n',
    b'{"command":"dump","args":7}\n',
    b'{"comm\\u0061nd":"\\u0064ump"}\n',
    b'{"command":"run","args":[""]}\n',
    b'{"command":"run","args":["\\ud800"]}\n',
    b'{"command":1,"command":"dump"}\n',
    b'{"command":"dump","n":' + DIGITS + b"}\n",
    # This one is as long as a request may be.
    b'{"command":"dump","x":"' + b"x" * (LONGEST - 25) + b'"}\n',
    # What follows the first line is ignored.
    b'{"command":"dump"}\nand more\n',
    b'{"command":"dump"}\n{"command":"stop"}\n',
]

# What a server may answer, and the exit code of a command that gets the answer.
ANSWERS = [
    # This is no answer at all, or more than one.
    (b"\n", 9),
    (b"{}\n", 9),
    (b"[]\n", 9),
    (b"null\n", 9),
    (b'"env"\n', 9),
    (b"x", 9),
    (b'{"env":{"A":"1"}}\n{"env":{}}\n', 9),
    (b'{"env":{"A":"1"}}\n\n', 9),
    (b'\n{"env":{"A":"1"}}\n', 9),
    (b'{"env":{"A":"1"}} x\n', 9),
    # This is no environment.
    (b'{"env":["A=1"]}\n', 9),
    (b'{"env":null}\n', 9),
    (b'{"env":"A=1"}\n', 9),
    (b'{"env":{"A":1}}\n', 9),
    (b'{"env":{"A":null}}\n', 9),
    (b'{"env":{"A":["1"]}}\n', 9),
    (b'{"env":{"":"1"}}\n', 9),
    (b'{"env":{"A=B":"1"}}\n', 9),
    (b'{"env":{"A":"\\u0000"}}\n', 9),
    (b'{"env":{"A\\u0000":"1"}}\n', 9),
    (b'{"env":{"A":"\\ud800"}}\n', 9),
    # This is not JSON.
    (b'{"env":{"\xff":"1"}}\n', 9),
    (b'{"env":{"A":"un\n', 9),
    (b'{"env":{"A":"a\tb"}}\n', 9),
    (b'{"env":{"A":"\\x"}}\n', 9),
    (b"[" * 100000 + b"\n", 9),
    (b'{"a":' * 100000 + b"\n", 9),
    (b'{"env":' + b"1" * 1000000 + b"}\n", 9),
    (b'{"env":{"A":NaN}}\n', 9),
    (b'{"env":{},"x":Infinity}\n', 9),
    (b'\xef\xbb\xbf{"env":{}}\n', 9),
    # This is an error.
    (b'{"error":"BAD_REQUEST","message":"why"}\n', 9),
    (b'{"error":"INTERNAL"}\n', 9),
    (b'{"error":1,"message":[]}\n', 9),
    (b'{"error":"BAD_REQUEST","env":{"A":"1"}}\n', 9),
    # This is the beginning of an answer: the session has ended meanwhile.
    (b'{"env":{"A":"1"}}', 4),
    (b'{"env":{"A":"un', 4),
    (b'{"en', 4),
    # This is an environment.
    (b'{"env":{"A":"1"}}\n', 0),
    (b'{"env":{},"more":[1.5e9]}\n', 0),
    (b' {"env" : {} }\r\n', 0),
    (b'{"env":{"A":"\\udcff"}}\n', 0),
    (b'{"env":{"A":"\xc3\xa9"}}\n', 0),
    (b'{"env":{"with blank":"1","a\\nb":""}}\n', 0),
    (b'{"env":{"A":"1","A":"2"}}\n', 0),
    (b'{"n":' + b"1" * 1000000 + b',"env":{}}\n', 0),
    # The session has just ended.
    (b"", 4),
]
if FULL:
    # This is too long. It takes so much memory that only the long form tries it.
    ANSWERS.append((b'{"env":{"A":"' + b"x" * (256 << 20) + b'"}}\n', 9))


# ==== another host ================================================================================
# What hotenv does over ssh, tried on this machine alone.


class Host:
    """An sshd on loopback with a key of its own, and an `ssh` that finds it under the name `host`.

    - `command`: the words that start that ssh.
    - `process`: the sshd.
    """

    def __init__(self, root, started):
        self.root = root
        self.command = ["ssh", "-T", "-F", str(root / "ssh_config"), "host"]

        # 1. What is needed?
        sshd = shutil.which("sshd", path=PATHS + ":/usr/sbin")
        users = [each.pw_name for each in pwd.getpwall() if each.pw_uid == os.geteuid()]
        if not (sshd and users and shutil.which("ssh") and shutil.which("ssh-keygen")):
            pytest.skip("needs sshd, ssh, ssh-keygen, and a user name")
        if ROOT:
            # Here sshd locks its children up; it has no option for another place.
            os.makedirs("/run/sshd", exist_ok=True)

        # 2. Keys and configuration.
        for name in ("server", "client"):
            key = str(root / name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._configure(port, users[0])

        # 3. The server, which a skip must leave to be ended with the others in `started`.
        said = root / "sshd_log"
        with open(str(said), "wb") as log:
            self.process = subprocess.Popen(
                [sshd, "-D", "-e", "-f", str(root / "sshd_config")],
                start_new_session=True,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
            )
        started.append(self.process)
        until(lambda: self.process.poll() is not None or b"listening" in said.read_bytes(), "sshd")
        if self.process.poll() is not None or self.ssh("true").returncode:
            last_line = said.read_text().strip().splitlines()[-1:]
            pytest.skip("sshd lets nobody in here: %s" % last_line)

    def _configure(self, port, user):
        """Write the configuration of the server and of the client."""
        server = [
            f"Port {port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.root}/server",
            f"AuthorizedKeysFile {self.root}/client.pub",
            "UsePAM no",
            "PidFile none",
            "StrictModes no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
        ]
        client = [
            "Host host",
            "HostName 127.0.0.1",
            f"Port {port}",
            f"User {user}",
            f"IdentityFile {self.root}/client",
            "BatchMode yes",
            "IdentitiesOnly yes",
            "StrictHostKeyChecking no",
            "LogLevel ERROR",
            f"UserKnownHostsFile {self.root}/known",
        ]
        (self.root / "sshd_config").write_text("\n".join(server) + "\n")
        (self.root / "ssh_config").write_text("\n".join(client) + "\n")

    def ssh(self, *words, **options):
        """Run a command on the host; return a CompletedProcess."""
        options = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE, **options}
        return subprocess.run([*self.command, *words], timeout=PATIENCE, **options)


@pytest.fixture(scope="module")
def host():
    """A Host that all tests share."""
    holder = Project()
    with contextlib.closing(holder):
        yield Host(holder.root, holder.started)


# ==== two processes ===============================================================================
# Most tests wait for processes, so two forks of pytest share the tests: both are `workers`. Each
# takes the number of its next test from one pipe. What pytest would say of a test in a worker, a
# call of one of its reporting hooks, goes through a file to the first process, which makes that
# call there.

# This file is a plugin, too, so that its hook pytest_runtestloop counts.
pytest_plugins = [__name__]

# The hooks of pytest that tell what became of a test.
REPORTING_HOOKS = {
    "pytest_runtest_logstart",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
    "pytest_warning_recorded",
}

# Two bytes for the number of each test. All of them wait in the pipe at once, and every system's
# pipes hold 16 KiB.
TEST_NUMBER = struct.Struct("H")
MOST_TESTS_AT_ONCE = (16 << 10) // TEST_NUMBER.size


def pytest_runtestloop(session):
    """Run the tests in two workers; return None to leave them to the loop of pytest itself."""
    if not _two_workers_can_share(session):
        return None
    _TwoWorkers(session).run()
    return True


def _two_workers_can_share(session):
    """Say whether there is enough to do, and no option that wants all tests in one process."""
    config = session.config
    if not 20 < len(session.items) < MOST_TESTS_AT_ONCE:
        return False
    if (os.cpu_count() or 1) < 2:
        return False
    if session.testsfailed:  # some tests could not even be collected
        return False
    if hasattr(config, "workerinput"):  # pytest-xdist shares the tests already
        return False
    if config.getoption("capture") == "no":
        return False
    by_hand = ("collectonly", "usepdb", "trace", "setupshow")
    return not any(config.getoption(name) for name in by_hand)


class _TwoWorkers:
    """The tests of a pytest session, shared by two forks of the process.

    - `numbers`: the end of the pipe from which a worker reads the number of its next test.
    - `report_path`: the file of reports: pickled lists of (name of a hook, its arguments), one list
      a test. Both workers append to it, each list by one write.
    - `first_pid`: the process that started the workers and tells what they report.
    """

    def __init__(self, session):
        self.session = session
        self.config = session.config
        self.items = session.items
        self.first_pid = os.getpid()
        # The base directory is made here, before the forks, so that both workers have the same.
        self.report_path = self.config._tmp_path_factory.getbasetemp() / "reports"

        self.numbers, writer = os.pipe()
        numbers = range(len(self.items))
        os.write(writer, b"".join(TEST_NUMBER.pack(number) for number in numbers))
        os.close(writer)

    def run(self):
        """Start the workers, tell what they report, and fail the tests that they lost."""
        with open(self.report_path, "ab", buffering=0) as reports:
            with open(self.report_path, "rb") as source:
                self.source = source
                self.reported = set()
                self.statuses = {forked(lambda: self._work(reports)): None for _ in range(2)}
                try:
                    while not self._must_stop() and not self._all_is_told():
                        time.sleep(0.01)
                finally:
                    self._take_all_numbers()  # so that no worker begins another test
                    while not self._all_is_told():
                        time.sleep(0.01)
        os.close(self.numbers)

        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)
        self._fail_what_was_lost()

    def _must_stop(self):
        """Say whether pytest wants no further test, as with --exitfirst."""
        return bool(self.session.shouldfail or self.session.shouldstop)

    # -- in a worker --

    def _work(self, reports):
        """Run tests until there are no more, and write what pytest would say of each."""
        calls = []
        self._say_nothing_here(calls)
        with contextlib.ExitStack() as at_end:
            # The runner ends the fixtures that are still set up.
            runner = self.config.pluginmanager.getplugin("runner")
            at_end.callback(runner.pytest_sessionfinish, self.session)

            # A worker takes the next test before it runs one: pytest has to know, when it ends
            # fixtures, which of them the next test needs.
            item = self._next_item()
            following = self._next_item()
            while item and not self._must_stop() and os.getppid() == self.first_pid:
                self.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                reports.write(pickle.dumps(calls))
                calls.clear()
                item = following
                following = self._next_item()

    def _say_nothing_here(self, calls):
        """Send what pytest prints here to nowhere, and append its reports to `calls`."""
        # With the capture of the first process both workers would capture into one file.
        capture = self.config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        capture.start_global_capturing()
        capture.suspend_global_capture()

        def before(name, _, arguments):
            if name in REPORTING_HOOKS:
                calls.append((name, arguments))

        def after(*_):
            pass

        self.config.pluginmanager.add_hookcall_monitoring(before, after)

    def _next_item(self):
        """Take the next test from the pipe; return None where no test is left."""
        number = os.read(self.numbers, TEST_NUMBER.size)
        if not number:
            return None
        return self.items[TEST_NUMBER.unpack(number)[0]]

    # -- in the first process --

    def _take_all_numbers(self):
        """Empty the pipe."""
        while os.read(self.numbers, TEST_NUMBER.size):
            pass

    def _all_is_told(self):
        """Tell the reports that have come; return whether the workers have ended before that."""
        for worker, status in list(self.statuses.items()):
            if status is None:
                pid, ended_with = os.waitpid(worker, os.WNOHANG)
                if pid:
                    self.statuses[worker] = ended_with
        all_ended = None not in self.statuses.values()
        for name, arguments in self._new_reports():
            self.reported.add(arguments.get("nodeid"))
            hook = getattr(self.config.hook, name)
            if name == "pytest_warning_recorded":
                hook.call_historic(kwargs=arguments)
            else:
                hook(**arguments)
        return all_ended

    def _new_reports(self):
        """Yield the reports that the workers have written since the last call."""
        while True:
            begin = self.source.tell()
            try:
                calls = pickle.load(self.source)
            except (EOFError, pickle.UnpicklingError):
                # No list is there yet, or the beginning of one, to be read again later.
                self.source.seek(begin)
                return
            yield from calls

    def _fail_what_was_lost(self):
        """Report a failure for each test of which no worker has told anything.

        If a worker failed after its last test, that becomes a failure of the last test of all.
        """
        lost = [item for item in self.items if item.nodeid not in self.reported]
        if not lost and any(self.statuses.values()):
            lost = self.items[-1:]
        why = "its process ended with one of %s" % list(self.statuses.values())
        for item in lost:
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
            self.config.hook.pytest_runtest_logreport(report=report)


# ==== limits and errors ===========================================================================
# The documented limits, some of which other tests make shorter than they are; what the source must
# not hold; and what a failure without memory may not do.

DOCUMENTED_LIMITS = [
    ("MAX_INPUT", 64 << 20),
    ("MAX_EXPANSION", 64 << 20),
    ("MAX_REQUEST", 256 << 10),
    ("MAX_UNFINISHED", 16 << 20),
    ("MAX_RESPONSE", 256 << 20),
    ("MAX_MARKER", 8 << 10),
    ("MAX_DURATION", 366 * 86400),
    ("MAX_NESTING", 64),
    ("DESCRIPTORS", 4096),
    ("TICK", 10),
    ("IDLE_TIMEOUT", 300),
    ("REQUEST_TIME", 5),
    ("ANSWER_TIME", 30),
    ("EXCHANGE_TIME", 10),
    ("LOCK_TIME", 1),
]


@pytest.mark.parametrize("name, value", DOCUMENTED_LIMITS)
def test_limit_is_the_documented_one(name, value):
    """Each limit has the value that the documentation gives."""
    assert getattr(hotenv, name) == value


@pytest.fixture(scope="module")
def source_nodes():
    """The nodes in the syntax tree of hotenv.py, as Python 3.8 reads it."""
    tree = ast.parse(HOTENV.read_text(encoding="utf-8"), feature_version=(3, 8))
    return list(ast.walk(tree))


@pytest.fixture(scope="module")
def called_names(source_nodes):
    """The names of the plain functions that hotenv.py calls, one for each call."""
    calls = _nodes_of(source_nodes, ast.Call)
    return [node.func.id for node in calls if isinstance(node.func, ast.Name)]


def _nodes_of(nodes, kind):
    """Return those of the nodes that are of this kind."""
    return [node for node in nodes if isinstance(node, kind)]


def test_source_is_for_the_oldest_python(source_nodes):
    """The whole file is syntax that Python 3.8 knows."""
    assert _nodes_of(source_nodes, ast.FunctionDef) != []


def test_source_has_no_assert_statement(source_nodes):
    """Invariant 11: no check lives in an `assert`, because `python -O` leaves those out."""
    assert [node.lineno for node in _nodes_of(source_nodes, ast.Assert)] == []


def test_source_has_no_bare_except(source_nodes):
    """Each `except` names what it catches."""
    handlers = _nodes_of(source_nodes, ast.ExceptHandler)
    assert [node.lineno for node in handlers if node.type is None] == []


@pytest.mark.parametrize("name", ["eval", "__import__"])
def test_source_calls_no_such_function(called_names, name):
    """The file is plain code: it neither evaluates text nor looks names up by text."""
    assert name not in called_names


def test_source_executes_nothing_but_a_target(called_names):
    """`exec` is called for a guarded target alone: for its file, and for the text behind -c."""
    assert called_names.count("exec") <= 2


def test_deadlines_count_suspended_time(source_nodes):
    """Invariant 3: deadlines are on a clock that goes on while the machine is suspended.

    No test can suspend this machine, so the name of that clock in the source has to do.
    """
    names = [node.id for node in _nodes_of(source_nodes, ast.Name)]
    attributes = [node.attr for node in _nodes_of(source_nodes, ast.Attribute)]
    constants = [node.value for node in _nodes_of(source_nodes, ast.Constant)]
    assert "CLOCK_BOOTTIME" in names + attributes + constants


def test_source_imports_the_standard_library(source_nodes):
    """Every module that the file imports comes with Python."""
    imports = _nodes_of(source_nodes, ast.Import)
    imported = [alias.name for node in imports for alias in node.names]
    imported += [node.module for node in _nodes_of(source_nodes, ast.ImportFrom)]
    assert "os" in imported
    modules = {name.split(".")[0] for name in imported}

    # The first two are files of a user that `site` imports, and tomllib came with Python 3.11.
    may_be_missing = {"sitecustomize", "usercustomize", "tomllib"}
    # Before 3.10 Python had no list of its modules.
    standard = getattr(sys, "stdlib_module_names", modules)
    assert modules - standard - may_be_missing == set()


def _serve_without_memory(project):
    """Start `serve` with a value that its limit of memory cannot hold; return its result."""
    text = b"A=s3cr3t" + b"x" * (20 << 20) + b"\n"
    little_memory = limits(AS=(64 << 20, 64 << 20))
    return project.hotenv("serve", input=text, preexec_fn=little_memory)


@only_linux
def test_serve_without_memory_says_so(project):
    """A start for which memory is short ends with an error that names memory."""
    assert "memory" in refusal(_serve_without_memory(project), 8)


@only_linux
def test_serve_without_memory_shows_no_value(project):
    """Invariant 1: the error about memory holds nothing of a value."""
    assert b"s3cr3t" not in _serve_without_memory(project).stderr


@only_linux
def test_serve_without_memory_leaves_nothing(project):
    """Invariant 2: a start for which memory is short leaves no file."""
    _serve_without_memory(project)
    assert project.files() == []


# ==== environment =================================================================================
# How an entry becomes a value, and how the value gets to a command.

# The entries, the environment of the host, and the values in their order.
RESOLVED = [
    # Text without a reference stays as it is.
    ({"A": "as it is, $HOME and all "}, {"HOME": "/h"}, {"A": "as it is, $HOME and all "}),
    ({"A": ""}, {"A": "host"}, {"A": ""}),
    ({"A": "?no one asks"}, {}, {"A": "?no one asks"}),
    ({"A": "\\${H}"}, {"H": "no"}, {"A": "${H}"}),
    # A reference is what an earlier entry set, or what the host has, or empty.
    ({"A": "${H}"}, {"H": "from the host"}, {"A": "from the host"}),
    ({"A": "${H}"}, {}, {"A": ""}),
    ({"B": "${A}", "A": "later"}, {}, {"B": "", "A": "later"}),
    ({"PATH": "${PATH}:/x"}, {"PATH": "/bin"}, {"PATH": "/bin:/x"}),
    ({"URL": "http://${HOST}:${PORT:-80}/"}, {"HOST": "db"}, {"URL": "http://db:80/"}),
    (
        {"A": "1", "B": "${A}2", "C": "${B}3"},
        {"A": "host"},
        {"A": "1", "B": "12", "C": "123"},
    ),
    # What a reference brought is not read again.
    ({"A": "${H}"}, {"H": "${A} is not read again"}, {"A": "${A} is not read again"}),
    # The string of a pair is a literal, and the last of two entries counts.
    ([("A", "${H}"), ("A", "?x")], {"H": "1"}, {"A": "?x"}),
]


@pytest.mark.parametrize("entries, host, values", RESOLVED)
def test_entry_becomes_a_value(entries, host, values):
    """An entry becomes its value with all references resolved, and entries keep their order."""
    resolved = hotenv.resolve_env(entries, host)
    assert list(resolved.items()) == list(values.items())


@pytest.mark.parametrize("entries, host, values", RESOLVED)
def test_resolving_leaves_the_host_alone(entries, host, values):
    """Resolving entries does not change the host's environment."""
    before = dict(host)
    hotenv.resolve_env(entries, host)
    assert host == before


def test_parsed_dotenv_has_resolved_references():
    """References of bare and double-quoted text are resolved, those of single-quoted text not."""
    text = "A=${H}\nB='${H}'\nC=\"${H}\"\n"
    values = {"A": "x", "B": "${H}", "C": "x"}
    assert list(hotenv.parse_dotenv(text, {"H": "x"}).items()) == list(values.items())


def test_parsing_leaves_the_host_alone():
    """Parsing a dotenv text does not change the host's environment."""
    host = {"H": "x"}
    hotenv.parse_dotenv("H=1\nA=${H}\n", host)
    assert host == {"H": "x"}


def _refused_resolution(text):
    """Return the error with which the entry KEY of this text is refused, where H is empty."""
    with pytest.raises(hotenv.HotenvError) as caught:
        hotenv.resolve_env({"KEY": text}, {"H": ""})
    return caught.value


# A reference that must have a value and has none, one that does not end, and one that is none.
BAD_REFERENCES = ["s3cr3t ${H:?}", "s3cr3t ${", "s3cr3t ${H!}"]


@pytest.mark.parametrize("text", BAD_REFERENCES)
def test_bad_reference_is_malformed_input(text):
    """A bad reference is refused with code 7, the one of malformed input."""
    assert _refused_resolution(text).code == 7


@pytest.mark.parametrize("text", BAD_REFERENCES)
def test_bad_reference_is_told_by_its_entry(text):
    """The error about a bad reference names its entry."""
    assert "KEY" in str(_refused_resolution(text))


@pytest.mark.parametrize("text", BAD_REFERENCES)
def test_bad_reference_error_holds_no_value(text):
    """Invariant 1: the error about a bad reference holds nothing of the entry's text."""
    assert "s3cr3t" not in str(_refused_resolution(text))


def _resolve_with_answers():
    """Resolve entries with three questions; return the questions asked, and the values."""
    entries = {
        "A": "?first",
        "LIT": "\\?x",
        "B": "?second",
        "URL": "${A}/${B:-empty}",
        "C": "?and the last",
    }
    answers = {
        "first": "answer ${URL}",
        "second": "",
        "and the last": "?not asked again",
    }
    asked = []

    def prompt(question):
        asked.append(question)
        return answers[question]

    return asked, hotenv.resolve_env(entries, {}, prompt)


def test_questions_are_asked_in_order():
    """Each question is asked once, in the order of the entries, and no literal is a question."""
    asked, _ = _resolve_with_answers()
    assert asked == ["first", "second", "and the last"]


def test_references_see_answers():
    """Later references see the answers, and nothing in an answer is read as a reference."""
    _, values = _resolve_with_answers()
    assert values == {
        "A": "answer ${URL}",
        "LIT": "\\?x",
        "B": "",
        "URL": "answer ${URL}/empty",
        "C": "?not asked again",
    }


# The variables of the host that an isolated environment keeps.
ESSENTIAL_NAMES = [
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
ALMOST_ESSENTIAL_NAMES = ["path", "LC_ALL2", "LC_MESSAGES", "PWD", "LD_PRELOAD"]


def test_isolated_environment_has_its_allowlist():
    """An isolated environment has the documented variables of the host, in that order."""
    names = ESSENTIAL_NAMES + ALMOST_ESSENTIAL_NAMES
    isolated = hotenv.build_isolated_env(dict.fromkeys(names, "x"))
    assert list(isolated) == ESSENTIAL_NAMES


_ISOLATED_BASE = {"PATH": "/bin", "HOME": "/h", "TERM": "xterm"}
_ISOLATED_SOURCE = {**_ISOLATED_BASE, "AWS_KEY": "k", "EDITOR": "vi", "BLANK": ""}

# The arguments of build_isolated_env, and what they change in the variables of the allowlist.
ISOLATED_LAYERS = [
    ({}, {}),
    # Names that nobody has are passed over; an empty value is a value.
    (
        {"pass_through": ["EDITOR", "NOWHERE", "BLANK", "HOME"]},
        {"EDITOR": "vi", "BLANK": ""},
    ),
    # A definition is above what is passed, and above the allowlist.
    (
        {"pass_through": ["EDITOR"], "define": {"EDITOR": "ed", "E": ""}},
        {"EDITOR": "ed", "E": ""},
    ),
    (
        {"bin_paths": [], "define": {"PATH": "/d", "HOME": "/other"}},
        {"PATH": "/d", "HOME": "/other"},
    ),
    # Directories of programs go before PATH, wherever that came from.
    ({"bin_paths": ["/a", "/b"]}, {"PATH": "/a:/b:/bin"}),
    ({"bin_paths": ["/a"], "define": {"PATH": "/d"}}, {"PATH": "/a:/d"}),
    ({"bin_paths": ["/a", "/b"], "define": {"PATH": ""}}, {"PATH": "/a:/b"}),
    # Nothing is checked or cleaned.
    ({"define": {"odd = name": "odd\nvalue"}}, {"odd = name": "odd\nvalue"}),
]


@pytest.mark.parametrize("arguments, changes", ISOLATED_LAYERS)
def test_isolated_environment_has_its_layers(arguments, changes):
    """The allowlist is the lowest layer, then come passed names, definitions, and directories."""
    isolated = hotenv.build_isolated_env(_ISOLATED_SOURCE, **arguments)
    assert isolated == {**_ISOLATED_BASE, **changes}


@pytest.mark.parametrize("arguments, changes", ISOLATED_LAYERS)
def test_isolation_leaves_its_source_alone(arguments, changes):
    """Making an isolated environment does not change the environment it is made from."""
    source = dict(_ISOLATED_SOURCE)
    hotenv.build_isolated_env(source, **arguments)
    assert source == _ISOLATED_SOURCE


# Variables whose names or values are no UTF-8, for the host of `run`.
_ODD_VARIABLES = {b"ODD": b"\xff caf\xe9", b"N\xe9": b"1"}

# The options of `run`, and what they change in the host's environment under the snapshot.
RUN_CHANGES = [
    ([], {}),
    (
        ["--define", "OTHER=defined", "--define", "N=a=b"],
        {b"OTHER": b"defined", b"N": b"a=b"},
    ),
    (
        ["--define", "PATH=/d", "--bin", "/x", "--bin", "/y"],
        {b"PATH": b"/x:/y:/d"},
    ),
    (["--define", "PATH=", "--bin", "/x"], {b"PATH": b"/x"}),
]

# The options of `run --isolated`, and what they change in the allowlist under the snapshot.
RUN_ISOLATED_CHANGES = [
    ([], {}),
    # The snapshot is above what is passed, and the last of two definitions counts.
    (["--pass", "OTHER"], {}),
    (["--define", "A=1", "--define", "A=2"], {b"A": b"2"}),
    (
        ["--pass", "EDITOR", "--pass", "NOWHERE", "--pass", "BLANK"],
        {b"EDITOR": b"vi", b"BLANK": b""},
    ),
    (["--pass", "ED*,N*"], {b"EDITOR": b"vi", b"N\xe9": b"1"}),
    (
        ["--define", "OTHER=own", "--define", "N=a=b", "--define", "E="],
        {b"OTHER": b"own", b"N": b"a=b", b"E": b""},
    ),
    (
        ["--define", "PATH=/d", "--bin", "/x y", "--bin", "/z"],
        {b"PATH": b"/x y:/z:/d"},
    ),
    # Names and values are bytes.
    (
        ["--pass", b"N\xe9", "--define", b"\xe8=x"],
        {b"N\xe9": b"1", b"\xe8": b"x"},
    ),
    (
        ["--pass", "ODD", "--define", b"D=\xff\xfe", "--bin", b"/\xfd"],
        {
            b"ODD": b"\xff caf\xe9",
            b"D": b"\xff\xfe",
            b"PATH": b"/\xfd:" + PATHS.encode(),
        },
    ),
]


def _environment_of_run(daily, *options):
    """Return the environment of a command that `run` starts with these options."""
    odd = {os.fsdecode(name): value for name, value in _ODD_VARIABLES.items()}
    return environment_of(daily.hotenv("run", *options, "--", ENV, "-0", env=odd))


@pytest.mark.parametrize("options, changes", RUN_CHANGES)
def test_run_starts_from_the_host(daily, options, changes):
    """`run` gives a command the host's environment, the snapshot above it, and definitions."""
    seen = _environment_of_run(daily, *options)
    assert seen == {**daily.host, **_ODD_VARIABLES, **SNAPSHOT, **changes}


@pytest.mark.parametrize("options, changes", RUN_ISOLATED_CHANGES)
def test_isolated_run_starts_from_the_allowlist(daily, options, changes):
    """`run --isolated` gives a command the allowlist, the snapshot above it, and definitions."""
    kept = {name: daily.host[name] for name in (b"PATH", b"HOME", b"LC_ALL", b"LANG")}
    seen = _environment_of_run(daily, "--isolated", *options)
    assert seen == {**kept, **SNAPSHOT, **changes}


def test_isolated_run_gets_only_what_is_named(daily):
    """`run --isolated --only` gives a command no other variable of the snapshot."""
    kept = {name: daily.host[name] for name in (b"HOME", b"LC_ALL", b"LANG")}
    keys = {name: SNAPSHOT[name] for name in (b"API_KEY", b"API_URL")}
    seen = _environment_of_run(daily, "--isolated", "--bin", "/x", "--only", "API_*")
    assert seen == {**kept, **keys, b"PATH": b"/x:" + PATHS.encode()}


def test_definition_without_a_value_is_refused(daily):
    """A definition that is no NAME=VALUE is refused with that form."""
    done = daily.hotenv("run", "--define", "s3cr3t", "--", "echo", "ran")
    assert "NAME=VALUE" in refusal(done, 2)


def test_refused_definition_is_not_shown(daily):
    """Invariant 1: what stands where NAME=VALUE should stand may be a value."""
    done = daily.hotenv("run", "--define", "s3cr3t", "--", "echo", "ran")
    assert "s3cr3t" not in refusal(done, 2)


def test_pass_without_a_name_is_refused(daily):
    """An option --pass without a name is refused by the option's name."""
    done = daily.hotenv("run", "--isolated", "--pass", "--", "echo", "ran")
    assert "--pass" in refusal(done, 2)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--define", "s3cr3t"], id="define"),
        pytest.param(["--isolated", "--pass"], id="pass"),
        pytest.param(["--only", "API_KEX"], id="only"),
    ],
)
def test_refused_run_starts_no_command(daily, options):
    """A command does not run where an option of `run` is refused."""
    done = daily.hotenv("run", *options, "--", "echo", "ran")
    assert done.stdout == b""


# What --only is given, and what the error shows of it or near it.
NEAR_NAMES = [
    ("API_KEX", "API_KEY"),
    ("OTHER,AP_KEY", "API_KEY"),
    ("AWZ_*", "AWS_"),
    ("api_key", "API_KEY"),
    ("\x1b[2J", "\\x1b[2J"),
]

# What --only is given, where no name of the session is near, or what is given is no name.
NO_NAMES = ["HOME", "", "API_KEY,", "*KEY", "s3cr3t-1", "API_*Y"]


@pytest.mark.parametrize("given, near", NEAR_NAMES, ids=repr)
def test_unknown_name_is_refused_with_a_near_one(daily, given, near):
    """A name that the session has not is refused, and the error shows a name that is near."""
    done = daily.hotenv("run", "--only", given, "--", "echo", "ran")
    assert near in refusal(done, 2)


@pytest.mark.parametrize("given", NO_NAMES, ids=repr)
def test_selection_of_nothing_is_refused(daily, given):
    """A selection is refused that is empty, is no name, or names nothing of the session."""
    assert refusal(daily.hotenv("dump", "--only", given), 2)


@pytest.mark.parametrize("given", NO_NAMES, ids=repr)
def test_refused_selection_prints_nothing(daily, given):
    """Nothing is on stdout where a selection is refused."""
    assert daily.hotenv("dump", "--only", given).stdout == b""


@pytest.mark.parametrize("given", [*NO_NAMES, *[given for given, _ in NEAR_NAMES]], ids=repr)
def test_refused_selection_shows_no_value(daily, given):
    """Invariant 1: the error about a selection shows what was given, and no value."""
    message = refusal(daily.hotenv("dump", "--only", given), 2)
    if given:
        message = message.replace(given, "")
    assert "s3cr3t" not in message


# What each --only is given, and the names that are handed over.
SELECTIONS = [
    (["API_KEY"], [b"API_KEY"]),
    (["API_KEY,OTHER"], [b"API_KEY", b"OTHER"]),
    (["AWS_*"], [b"AWS_ID", b"AWS_KEY"]),
    (["AWS_*,API_KEY,AWS_ID"], [b"AWS_ID", b"AWS_KEY", b"API_KEY"]),
    (["*"], [b"API_KEY", b"API_URL", b"AWS_ID", b"AWS_KEY", b"TERM", b"OTHER"]),
    (["A*,T*"], [b"API_KEY", b"API_URL", b"AWS_ID", b"AWS_KEY", b"TERM"]),
    (["API_KEY", "OTHER"], [b"API_KEY", b"OTHER"]),
    ([" API_KEY , OTHER"], [b"API_KEY", b"OTHER"]),
]


def _selecting(selections):
    """Return the options --only for these selections."""
    return [word for each in selections for word in ("--only", each)]


@pytest.mark.parametrize("selections, names", SELECTIONS)
def test_dump_hands_over_what_is_selected(daily, selections, names):
    """`dump --only` prints the variables that are named, and no other."""
    chosen = {name: SNAPSHOT[name] for name in names}
    assert daily.dump(*_selecting(selections)) == chosen


@pytest.mark.parametrize("selections, names", SELECTIONS)
def test_run_hands_over_what_is_selected(daily, selections, names):
    """`run --only` gives a command the variables that are named, and no other."""
    chosen = {name: SNAPSHOT[name] for name in names}
    done = daily.hotenv("run", *_selecting(selections), "--", ENV, "-0")
    assert environment_of(done) == {**daily.host, **chosen}


# ==== session files ===============================================================================
# The runtime directory, the socket and the marker: what they look like, who may have made them, and
# what hotenv removes.


@pytest.fixture(scope="module", params=[0o777, 0o000, 0o077], ids=oct)
def umasked(request):
    """A session that was started under a umask, and had to make its runtime directory."""
    with contextlib.closing(Project()) as shared:
        shared.env["XDG_RUNTIME_DIR"] = str(shared.base / "missing" / "too")
        shared.serve(preexec_fn=lambda: os.umask(request.param))
        yield shared


def test_session_answers_whatever_the_umask(umasked):
    """No umask keeps a session from being used."""
    assert umasked.dump() == {b"A": b"1"}


def test_marker_names_the_socket(umasked):
    """A marker is one line: `socket=` and the path of the socket."""
    assert re.fullmatch(rb"socket=/.*\.sock\n", umasked.marker.read_bytes())


def test_marker_is_its_users_alone(umasked):
    """Only its user may read and write a marker."""
    assert mode(umasked.marker) == 0o600


def test_socket_is_in_the_runtime_directory(umasked):
    """A socket lies in the directory `hotenv` of XDG_RUNTIME_DIR."""
    directory = umasked.base / "missing" / "too" / "hotenv"
    assert Path(umasked.socket_path()).parent == directory


def test_socket_has_a_name_of_eight_digits(umasked):
    """A socket is named by eight hexadecimal digits, which tell a socket of hotenv from others."""
    assert re.fullmatch(r"[0-9a-f]{8}\.sock", Path(umasked.socket_path()).name)


def test_socket_is_a_socket(umasked):
    """The path in the marker is the one of a socket."""
    assert stat.S_ISSOCK(os.lstat(umasked.socket_path()).st_mode)


def test_socket_is_its_users_alone(umasked):
    """No other user has a permission on a socket."""
    assert mode(umasked.socket_path()) & 0o077 == 0


@pytest.mark.parametrize("made", ["missing", "missing/too", "missing/too/hotenv"])
def test_missing_runtime_directory_is_private(umasked, made):
    """Each directory that hotenv makes for its sockets is its user's alone."""
    assert mode(umasked.base / made) == 0o700
    assert os.stat(str(umasked.base / made)).st_uid == os.geteuid()


def test_open_runtime_directory_is_closed(project):
    """A runtime directory of the user's, on which others have permissions, loses these."""
    project.sh("mkdir -m 777 r/hotenv")
    project.serve()
    assert mode(project.runtime) == 0o700


# Unset, empty, relative, and with a line break, which a marker, being one line, cannot hold.
UNUSABLE_RUNTIME_DIRS = [None, "", "relative/dir", "/a\nb"]


@pytest.fixture(params=UNUSABLE_RUNTIME_DIRS, ids=repr)
def without_xdg(project, request):
    """A Project whose programs have no usable XDG_RUNTIME_DIR.

    Its attribute `fallback` is what stands for /tmp/hotenv-UID.
    """
    project.fallback = Path(project.with_own_tmp() + str(os.geteuid()))
    if request.param is None:
        del project.env["XDG_RUNTIME_DIR"]
    else:
        project.env["XDG_RUNTIME_DIR"] = request.param
    return project


def test_fallback_takes_the_socket(without_xdg):
    """Where XDG_RUNTIME_DIR is of no use, sockets lie in /tmp/hotenv-UID."""
    without_xdg.serve()
    assert Path(without_xdg.socket_path()).parent == without_xdg.fallback


def test_session_in_the_fallback_answers(without_xdg):
    """A session whose socket lies in /tmp/hotenv-UID can be used."""
    without_xdg.serve()
    assert without_xdg.dump() == {b"A": b"1"}


def test_session_in_the_fallback_ends_clean(without_xdg):
    """A session whose socket lies in /tmp/hotenv-UID leaves no file when it ends."""
    server = without_xdg.serve()
    assert ended(server, signal.SIGTERM) == 0
    assert without_xdg.files() == []
    assert list(without_xdg.fallback.iterdir()) == []


# Nobody (65534) is a user like any other in a user namespace that knows all users.
OTHER_USERS = [STRANGER, 65534]


@only_root
@pytest.mark.parametrize("uid", OTHER_USERS)
def test_runtime_base_of_another_is_avoided(project, uid):
    """An XDG_RUNTIME_DIR of another user, as `sudo -E` brings it, is of no use."""
    fallback = project.with_own_tmp()
    project.for_strangers(uid)
    project.serve()
    assert Path(project.socket_path()).parent == Path(fallback + "0")
    assert not project.runtime.exists()


@only_root
@pytest.mark.parametrize("uid", OTHER_USERS)
def test_session_beside_anothers_base_answers(project, uid):
    """A session that avoids the XDG_RUNTIME_DIR of another user can be used, and ends clean."""
    project.with_own_tmp()
    project.for_strangers(uid)
    server = project.serve()
    assert project.dump() == {b"A": b"1"}
    assert ended(server, signal.SIGTERM) == 0


@only_root
@pytest.mark.parametrize("uid", OTHER_USERS)
def test_avoided_base_still_serves_its_owner(project, uid):
    """The owner of an XDG_RUNTIME_DIR can use it after a session of root's has avoided it."""
    project.with_own_tmp()
    theirs = project.for_strangers(uid)
    ended(project.serve(), signal.SIGTERM)
    project.serve(b"A=2\n", preexec_fn=theirs)
    assert project.runtime.stat().st_uid == uid
    assert project.dump(preexec_fn=theirs) == {b"A": b"2"}


# Shell lines that plant something in place of the runtime directory, and the part of
# XDG_RUNTIME_DIR below the runtime base.
STRANGE_RUNTIME_DIRS = [
    pytest.param("mkdir -m 700 far; ln -s ../far r/hotenv", "", id="link"),
    pytest.param(": > r/hotenv", "", id="file"),
    pytest.param("rmdir r; : > r", "", id="file for its parent"),
    pytest.param(
        "mkdir -m 700 r/hotenv; chown %d r/hotenv" % STRANGER,
        "",
        marks=only_root,
        id="another user's",
    ),
    pytest.param(":", "new/x/" + "y" * 300, id="impossible name"),
]


@pytest.mark.parametrize("lines, below", STRANGE_RUNTIME_DIRS)
def test_strange_runtime_directory_is_refused(project, lines, below):
    """What is in place of the runtime directory, and is none of the user's, is refused."""
    project.sh(lines)
    project.env["XDG_RUNTIME_DIR"] = str(project.base / below)
    message = refusal(project.hotenv("serve", input=b"A=1\n"), 8)
    assert re.search("XDG_RUNTIME_DIR|runtime directory", message)


@pytest.mark.parametrize("lines, below", STRANGE_RUNTIME_DIRS)
def test_strange_runtime_directory_stays_as_it_is(project, lines, below):
    """Invariant 2: a start that the runtime directory has refused leaves no file."""
    project.sh(lines)
    project.env["XDG_RUNTIME_DIR"] = str(project.base / below)
    before = project.files()
    project.hotenv("serve", input=b"A=1\n")
    assert project.files() == before


# -- the length of a socket's path -----------------------------------------------------------------

only_linux_binds_long_paths = pytest.mark.skipif(
    not LINUX, reason="elsewhere a path beyond sun_path is refused"
)


@pytest.fixture
def far_away(project):
    """A Project whose sockets have paths that do not fit into `sun_path`, 108 bytes."""
    project.env["XDG_RUNTIME_DIR"] = str(project.base / ("x" * 100))
    return project


@only_linux_binds_long_paths
def test_socket_at_a_long_path_answers(far_away):
    """A session works whose socket's path does not fit into `sun_path`."""
    far_away.serve()
    assert len(far_away.socket_path()) > 108
    assert far_away.dump() == {b"A": b"1"}


@only_linux_binds_long_paths
def test_session_at_a_long_path_is_noticed(far_away):
    """A second `serve` is refused where a session at a long path answers."""
    far_away.serve()
    assert "still answers" in refusal(far_away.hotenv("serve", input=b"A=2\n"), 10)


@only_linux_binds_long_paths
def test_session_at_a_long_path_is_replaced(far_away):
    """`serve --force` takes the place of a session at a long path, and removes its socket."""
    far_away.serve()
    old_path = far_away.socket_path()
    far_away.serve(b"A=2\n", "--force")
    assert far_away.dump() == {b"A": b"2"}
    assert not os.path.exists(old_path)


@only_linux_binds_long_paths
def test_sessions_at_long_paths_end_clean(far_away):
    """A session at a long path and the one that replaced it leave neither socket nor marker."""
    first = far_away.serve()
    second = far_away.serve(b"A=2\n", "--force")
    assert ended(second, signal.SIGTERM) == 0
    assert ended(first, signal.SIGTERM) == 0
    assert list(far_away.root.rglob("*.sock")) == []
    assert not far_away.marker.exists()


@only_linux_binds_long_paths
def test_too_long_a_socket_path_is_refused(far_away):
    """Without /proc a long path cannot be bound: the error names the limit and the variable."""
    in_mounts(far_away, 'mount -t tmpfs none /proc && exec "$@"')
    message = refusal(far_away.hotenv("serve", input=b"A=1\n"), 8)
    assert "too long" in message
    # The bytes of sun_path on macOS or on Linux, less the zero at the end.
    assert re.search(r"\b(103|107)\b", message)
    assert "XDG_RUNTIME_DIR" in message


@only_linux_binds_long_paths
def test_too_long_a_socket_path_leaves_nothing(far_away):
    """Invariant 2: a start that was refused for the length of its path leaves no file."""
    in_mounts(far_away, 'mount -t tmpfs none /proc && exec "$@"')
    before = far_away.files()
    far_away.hotenv("serve", input=b"A=1\n")
    assert far_away.files() == before


# -- paths that are no text ------------------------------------------------------------------------


@pytest.fixture
def odd_path(project):
    """A Project in a directory, its runtime directory below it, whose name is no UTF-8."""
    project.dir = project.dir / os.fsdecode(b"with blank, \xc3\xa9 and \xff")
    try:
        project.dir.joinpath("r").mkdir(parents=True)
    except OSError:
        pytest.skip("this file system wants UTF-8")
    project.env["XDG_RUNTIME_DIR"] = str(project.dir / "r")
    return project


def test_session_at_an_odd_path_answers(odd_path):
    """A path is bytes: one that is no UTF-8 does not disturb a session."""
    odd_path.serve()
    assert odd_path.dump() == {b"A": b"1"}


def test_session_at_an_odd_path_is_noticed(odd_path):
    """A second `serve` finds a session at a path that is no UTF-8 by its marker alone."""
    odd_path.serve()
    done = odd_path.hotenv("serve", input=b"A=2\n", env={"XDG_RUNTIME_DIR": "/nowhere"})
    assert b"still answers" in done.stderr


def test_session_at_an_odd_path_ends_clean(odd_path):
    """A session at a path that is no UTF-8 removes its marker when it ends."""
    server = odd_path.serve()
    assert ended(server, signal.SIGTERM) == 0
    assert not odd_path.marker.exists()


# -- the way up to a marker ------------------------------------------------------------------------


@pytest.fixture
def nested(project):
    """A Project with a session, and the directories `a/b/c` below it.

    Its attribute `deep` is the path of the last one.
    """
    project.deep = project.dir / "a" / "b" / "c"
    project.deep.mkdir(parents=True)
    project.serve(b"A=outer\n")
    return project


def _serve_in_between(nested):
    """Start a session with the variable B in the directory `a`."""
    marker = nested.dir / "a" / ".hotenv"
    process = nested.start("serve", stdin=PIPE, cwd=str(marker.parent))
    with process.stdin:
        process.stdin.write(b"B=inner\n")
    until(marker.exists, "the inner marker")


def test_session_is_found_upward(nested):
    """A command finds the session of a directory above its own."""
    assert nested.dump(cwd=str(nested.deep)) == {b"A": b"outer"}


def test_nearest_marker_wins(nested):
    """Of two sessions above a command, the nearest one counts."""
    _serve_in_between(nested)
    assert nested.dump(cwd=str(nested.deep)) == {b"B": b"inner"}


def test_inner_session_hides_no_outer_one(nested):
    """Above the nearest session the one further up is found as before."""
    _serve_in_between(nested)
    assert nested.dump() == {b"A": b"outer"}


def test_name_is_the_nearest_sessions(nested):
    """A name that only a session further up has is refused."""
    _serve_in_between(nested)
    done = nested.hotenv("run", "--only", "A", "--", "true", cwd=str(nested.deep))
    assert "A" in refusal(done, 2)


def test_damaged_nearest_marker_counts(nested):
    """The nearest marker counts although it is of no use."""
    (nested.dir / "a" / ".hotenv").write_bytes(b"damaged")
    refusal(nested.run("true", cwd=str(nested.deep)), 9)


def _below_unsearchable(project, lines):
    """Run shell lines in a directory whose parent may not be searched, and return their stdout.

    "$@" starts the program. Above that parent lies a damaged marker. Root may search every
    directory, so where root runs the tests a stranger runs the lines.
    """
    project.sh("mkdir -p p/outer/inner; echo damaged > p/.hotenv")
    theirs = project.for_strangers(STRANGER) if ROOT else None
    done = subprocess.run(
        ["sh", "-c", "cd outer/inner && chmod 0 .. && " + lines, "sh", *project.program],
        cwd=str(project.dir),
        env=project.env,
        preexec_fn=theirs,
        stdout=PIPE,
        timeout=PATIENCE,
    )
    project.dir.joinpath("outer").chmod(0o700)
    return done.stdout


def test_unsearchable_parent_ends_the_walk(project):
    """A directory that may not be searched ends the way up: there is no session, code 3."""
    assert _below_unsearchable(project, '"$@" dump; echo $?') == b"3\n"


def test_optional_run_needs_no_searchable_parent(project):
    """`run --optional` runs its command below a directory that may not be searched."""
    lines = '"$@" run --optional -- echo none'
    assert _below_unsearchable(project, lines) == b"none\n"


def test_session_needs_no_searchable_parent(project):
    """A session lives and ends below a directory that may not be searched."""
    lines = """
        echo A=1 | "$@" serve --background &&
        "$@" run -- sh -c 'echo $A' &&
        "$@" status -q &&
        "$@" stop
        echo $?"""
    assert _below_unsearchable(project, lines) == b"1\n0\n"


def test_unreadable_marker_is_a_system_error(project):
    """A marker that may not be read is refused with the system's reason."""
    theirs = project.for_strangers(STRANGER) if ROOT else None
    project.points_at("/nowhere/1.sock")
    project.marker.chmod(0)
    assert "Permission denied" in refusal(project.hotenv("dump", preexec_fn=theirs), 8)


# -- what a marker says ----------------------------------------------------------------------------

# `%s` stands for the path of a session's socket.
GOOD_MARKERS = [
    b"socket=%s",
    b"socket=%s\n",
    b"\n\nsocket=%s\n\n",
    b"\n \t\nsocket=%s\n  \n",
]
DAMAGED_MARKERS = [
    b"",
    b"\n",
    b"\xff\xfe",
    b"socket=",
    b"socket=\n",
    b"socket=relative.sock\n",
    b"socket=/a\0b\n",
    b"socket%s\n",
    b"Socket=%s\n",
    b"sock=%s\n",
    b" socket=%s\n",
    b"socket= %s\n",
    b"socket='%s'\n",
    b"export socket=%s\n",
    b"socket=%s\nsocket=%s\n",
    b"socket=%s\nmore\n",
    b"# note\nsocket=%s\n",
    # These two are too long.
    b"socket=%s" + b"\n" * 8192,
    b"socket=/" + b"x" * 8300,
]
# Nobody answers at the path in these.
DEAD_MARKERS = [
    b"socket=/nowhere/1.sock\n",
    b"socket=/etc/passwd\n",
    b"socket=/tmp\n",
    b"socket=/\xff\n",
    b"socket=%s\r\n",
    b"socket=/" + b"x" * 4000 + b"\n",
]


@pytest.fixture
def marked(project, session, monkeypatch):
    """marked(content): write a marker into the current directory; return its Project."""
    monkeypatch.chdir(str(project.dir))

    def write(content):
        path = os.fsencode(session.socket_path())
        project.marker.write_bytes(content.replace(b"%s", path))
        return project

    return write


def _refused_fetch():
    """Return the error with which the session of the current directory is refused."""
    with pytest.raises(hotenv.HotenvError) as caught:
        hotenv.fetch()
    return caught.value


@pytest.mark.parametrize("content", GOOD_MARKERS)
def test_marker_leads_to_its_session(marked, content):
    """A marker is one line with an absolute path; blank lines around it do no harm."""
    marked(content)
    assert hotenv.fetch() == {"A": "1", "B": "two words", "EMPTY": ""}


@pytest.mark.parametrize("content", DAMAGED_MARKERS, ids=short)
def test_damaged_marker_is_not_believed(marked, content):
    """A marker that is no single line with an absolute path is refused, code 9."""
    marked(content)
    assert _refused_fetch().code == 9


@pytest.mark.parametrize("content", DAMAGED_MARKERS, ids=short)
def test_damaged_marker_error_shows_the_form(marked, content):
    """The error about a damaged marker is printable, and shows what a marker holds."""
    done = called(marked(content), "dump")
    assert "socket=" in refusal(done, 9)


@pytest.mark.parametrize("content", DEAD_MARKERS, ids=short)
def test_marker_of_no_session_is_dead(marked, content):
    """A marker that names what nobody answers at is one of a session that has ended, code 4."""
    marked(content)
    assert _refused_fetch().code == 4


@pytest.mark.parametrize("content", DEAD_MARKERS, ids=short)
def test_dead_marker_error_says_how_to_serve(marked, content):
    """The error about a session that has ended is printable, and says how to start another."""
    done = called(marked(content), "dump")
    assert re.search("serve .*< ", refusal(done, 4))


# -- who made a marker -----------------------------------------------------------------------------

# Shell lines that plant something in place of a marker, where the file `real` is one.
PLANTED_DIRECTORY = pytest.param("mkdir .hotenv", id="directory")
PLANTED_OTHERS = [
    pytest.param("mkfifo .hotenv", id="fifo"),
    pytest.param("ln -s /dev/zero .hotenv", id="link to a device"),
    pytest.param("ln -s .hotenv .hotenv", id="link to itself"),
    pytest.param("ln -s nothing .hotenv", id="link to nothing"),
    pytest.param("ln -s real .hotenv", id="link to a marker"),
]
PLANTED_BY_STRANGERS = [
    pytest.param(
        "mv real .hotenv; chown %d .hotenv" % STRANGER,
        marks=only_root,
        id="a stranger's marker",
    ),
    pytest.param(
        "ln -s real .hotenv; chown -h %d .hotenv" % STRANGER,
        marks=only_root,
        id="a stranger's link",
    ),
    pytest.param(
        "ln -s real between; ln -s between .hotenv; chown -h %d between" % STRANGER,
        marks=only_root,
        id="a link to a stranger's link",
    ),
]
PLANTED_MARKERS = [PLANTED_DIRECTORY, *PLANTED_OTHERS, *PLANTED_BY_STRANGERS]


def _plant(project, lines):
    """Run shell lines in the project directory, where the file `real` is a marker."""
    project.sh("cd p; echo socket=/tmp/x.sock > real; " + lines)


@pytest.mark.parametrize("lines", PLANTED_MARKERS)
def test_planted_marker_is_not_believed(project, lines):
    """Invariant 9: a marker is a plain file of the user's or root's; all else is refused, 8."""
    _plant(project, lines)
    assert ".hotenv" in refusal(project.run("echo", "ran"), 8)


@pytest.mark.parametrize("lines", PLANTED_MARKERS)
def test_planted_marker_is_one_for_serve(project, lines):
    """What is in place of a marker keeps `serve` from starting, and the error names --force."""
    _plant(project, lines)
    assert "--force" in refusal(project.hotenv("serve", input=b"A=1\n"), 10)


@pytest.mark.parametrize("lines", PLANTED_MARKERS)
def test_planted_marker_stays_as_it_is(project, lines):
    """Neither a refused `run` nor a refused `serve` changes a file."""
    _plant(project, lines)
    before = project.files()
    project.run("echo", "ran")
    project.hotenv("serve", input=b"A=1\n")
    assert project.files() == before


def test_force_refuses_a_directory(project):
    """`serve --force` refuses a directory in place of the marker, and leaves no file."""
    project.sh("mkdir p/.hotenv")
    before = project.files()
    refusal(project.hotenv("serve", "--force", input=b"A=1\n"), 8)
    assert project.files() == before


@pytest.mark.parametrize("lines", PLANTED_OTHERS)
def test_force_replaces_a_planted_marker(project, lines):
    """`serve --force` puts a marker of its own, a plain file, in place of what is planted."""
    _plant(project, lines)
    project.serve(b"A=1\n", "--force")
    assert stat.S_ISREG(os.lstat(str(project.marker)).st_mode)
    assert project.dump() == {b"A": b"1"}


def test_force_spares_the_target_of_a_link(project):
    """`serve --force` over a link does not touch the file that the link leads to."""
    project.sh("echo precious > p/real; ln -s real p/.hotenv")
    project.serve(b"A=1\n", "--force")
    assert (project.dir / "real").read_bytes() == b"precious\n"


def test_force_makes_no_target_of_a_link(project):
    """`serve --force` over a link to nothing makes no file where the link leads."""
    project.sh("ln -s nothing p/.hotenv")
    project.serve(b"A=1\n", "--force")
    assert not (project.dir / "nothing").exists()


def test_force_spares_the_device_behind_a_link(project):
    """`serve --force` over a link to a device leaves the device in its place."""
    project.sh("ln -s /dev/zero p/.hotenv")
    project.serve(b"A=1\n", "--force")
    assert stat.S_ISCHR(os.lstat("/dev/zero").st_mode)


@pytest.fixture
def roots_marker(project, session):
    """A Project in which a marker of root's names a session of root's.

    Strangers may read the marker. Its attribute `ask` is how a stranger asks from below.
    """
    project.for_strangers()
    project.marker.write_bytes(session.marker.read_bytes())
    project.marker.chmod(0o644)
    below = project.dir / "below"
    below.mkdir()
    project.ask = {"cwd": str(below), "preexec_fn": become(STRANGER)}
    return project


@only_root
def test_marker_of_root_is_believed_by_others(roots_marker, session):
    """Invariant 9: a marker of root's is believed.

    What keeps a stranger out then is the directory of the socket that the marker names.
    """
    done = roots_marker.hotenv("dump", **roots_marker.ask)
    assert session.socket_path() in refusal(done, 4)


@only_root
def test_link_of_root_is_not_believed(roots_marker):
    """Invariant 9: a link to a marker is refused, although both are root's."""
    roots_marker.sh("ln -s ../.hotenv p/below/.hotenv")
    refusal(roots_marker.hotenv("dump", **roots_marker.ask), 8)


@only_root
def test_marker_of_a_third_user_is_not_believed(roots_marker):
    """Invariant 9: a marker that is neither the user's nor root's is refused with its owner."""
    os.chown(str(roots_marker.marker), STRANGER + 1, STRANGER + 1)
    done = roots_marker.hotenv("dump", **roots_marker.ask)
    assert str(STRANGER + 1) in refusal(done, 8)


# -- who answers -----------------------------------------------------------------------------------


@pytest.fixture
def stranger(project):
    """A Project in which a marker of root's names a session of another user."""
    if not ROOT:
        pytest.skip("needs root, to become somebody else")
    plain = project.program
    theirs = project.for_strangers(STRANGER)
    project.serve(b"PATH=/evil\n", preexec_fn=theirs)
    os.chown(str(project.marker), 0, 0)
    project.program = plain
    return project


ASKING_A_STRANGER = [
    ["dump"],
    ["run", "--", "echo", "ran"],
    ["dump", "--peer-uid", str(STRANGER + 1)],
]


@pytest.mark.parametrize("command", ASKING_A_STRANGER, ids=" ".join)
def test_server_of_another_user_is_not_believed(stranger, command):
    """Invariant 9: a server of another user is refused, and the error names its user id."""
    assert "uid %d" % STRANGER in refusal(stranger.hotenv(*command), 9)


@pytest.mark.parametrize("command", ASKING_A_STRANGER, ids=" ".join)
def test_answer_of_another_user_is_not_used(stranger, command):
    """Invariant 9: nothing that a server of another user says is shown."""
    done = stranger.hotenv(*command)
    assert b"evil" not in done.stdout + done.stderr


def test_command_does_not_run_for_a_stranger(stranger):
    """`run` starts no command where a server of another user answers."""
    assert stranger.run("echo", "ran").stdout == b""


def test_allowed_user_is_believed(stranger):
    """Invariant 9: --peer-uid allows one user more."""
    done = stranger.hotenv("dump", "--peer-uid", str(STRANGER))
    assert done.stdout == b"PATH=/evil\n"


def test_serve_spares_the_session_of_another_user(stranger):
    """A marker that names a server of another user keeps `serve` from starting, and says why."""
    message = refusal(stranger.hotenv("serve", input=b"A=1\n"), 10)
    assert re.search("believed|trusted", message)


@pytest.fixture
def as_nobody(project):
    """A Project whose programs run in a user namespace that maps no user.

    In there every file and every process belongs to uid 65534.
    """
    if subprocess.run(["sh", "-c", "unshare -U true"], stderr=DEVNULL).returncode:
        pytest.skip("needs user namespaces")
    project.program = ["unshare", "-U", *project.program]
    return project


@only_linux
def test_serve_by_nobody_is_refused_at_once(as_nobody):
    """Invariant 9: `serve` by nobody in particular is refused before it reads its input."""
    process, writer = as_nobody.held()
    assert ended(process) == 8
    assert b"nobody" in process.stderr.read()
    assert as_nobody.files() == []
    os.close(writer)


@only_linux
def test_dump_by_nobody_is_refused(as_nobody):
    """Invariant 9: no marker is believed by nobody in particular."""
    as_nobody.points_at("/x")
    refusal(as_nobody.hotenv("dump"), 8)


# -- every moment of a marker's life ---------------------------------------------------------------


@pytest.fixture
def without_links(project, meddle):
    """A Project on a file system that has no hard links."""
    meddle("?link,?linkat:error=EPERM")
    return project


def test_session_needs_no_hard_links(without_links):
    """A session works on a file system without hard links."""
    without_links.serve()
    assert without_links.dump() == {b"A": b"1"}


def test_marker_without_links_is_its_users_alone(without_links):
    """Only its user may read and write a marker that was made without a hard link."""
    without_links.serve()
    assert mode(without_links.marker) == 0o600


def test_second_serve_without_links_is_refused(without_links):
    """Without hard links, too, a marker keeps a second `serve` from starting."""
    without_links.serve()
    refusal(without_links.hotenv("serve", input=b"A=2\n"), 10)


def test_refused_serve_without_links_is_clean(without_links):
    """Invariant 2: a `serve` that was refused without hard links leaves no file."""
    without_links.serve()
    before = without_links.files()
    without_links.hotenv("serve", input=b"A=2\n")
    assert without_links.files() == before
    assert len(list(without_links.runtime.glob("*.sock"))) == 1
    assert os.listdir(str(without_links.dir)) == [".hotenv"]


def test_session_without_links_ends_clean(without_links):
    """A session that made its marker without a hard link removes it when it ends."""
    server = without_links.serve()
    assert ended(server, signal.SIGTERM) == 0
    assert without_links.files() == ["r/hotenv"]


@pytest.fixture
def slow_disk(project, meddle):
    """A Project whose programs wait before each write, listen, rename and removal."""
    meddle(
        "write,listen:delay_enter=100000",  # microseconds
        "?rename,?renameat,?renameat2,?unlink,unlinkat:delay_enter=30000",
    )
    return project


def _start_serve(project, text, *options):
    """Start `serve` with this text, and return its process at once."""
    path = project.root / "input"
    path.write_bytes(text)
    with open(str(path), "rb") as stdin:
        return project.start("serve", *options, stdin=stdin)


def test_marker_comes_after_a_listening_session(slow_disk):
    """Whoever sees a marker sees all of it, and finds a session that answers."""
    process = _start_serve(slow_disk, b"A=1\n")
    until(slow_disk.marker.exists, "a marker")
    assert slow_disk.ask() == b'{"env":{"A":"1"}}\n'
    assert process.poll() is None


def test_marker_is_whole_while_it_is_replaced(slow_disk):
    """While `serve --force` replaces a marker, there is one at every moment, and it is whole."""
    _start_serve(slow_disk, b"A=old\n")
    until(slow_disk.marker.exists, "a marker")
    before = slow_disk.marker.read_bytes()
    _start_serve(slow_disk, b"A=new\n", "--force")

    def is_replaced():
        content = slow_disk.marker.read_bytes()  # an error, where there is no marker
        assert re.fullmatch(rb"socket=/.*\.sock\n", content)
        return content != before

    until(is_replaced, "another marker")


def test_replaced_session_gives_way(slow_disk):
    """After `serve --force` the new session answers, and no other file lies beside its marker."""
    _start_serve(slow_disk, b"A=old\n")
    until(slow_disk.marker.exists, "a marker")
    before = slow_disk.marker_content()
    process = _start_serve(slow_disk, b"A=new\n", "--force")
    slow_disk.wait_ready(process, before)
    until(lambda: slow_disk.ask() == b'{"env":{"A":"new"}}\n', "an answer of the new session")


def test_leaving_server_spares_a_newcomers_marker(project, meddle):
    """A server that ends removes no marker that another one made meanwhile.

    The old server waits between the look at its marker and the removal of it.
    """
    plain = project.program
    meddle("?unlink,unlinkat:delay_enter=150000")  # microseconds
    old = project.serve(b"A=old\n")
    before = project.marker_content()

    # The newcomer is as far as it comes without the end of its input.
    project.program = plain
    newcomer, writer = project.held("--force")
    os.write(writer, b"A=new\n")
    until(lambda: _unread_bytes(writer) == 0, "a server that reads")

    old.terminate()
    os.close(writer)
    assert ended(old) == 0
    project.wait_ready(newcomer, before)
    assert project.ask() == b'{"env":{"A":"new"}}\n'


def _unread_bytes(pipe):
    """Return how many bytes in a pipe nobody has read yet."""
    size = struct.Struct("i")
    return size.unpack(fcntl.ioctl(pipe, termios.FIONREAD, bytes(size.size)))[0]


# -- what is removed -------------------------------------------------------------------------------


def test_renamed_project_directory_is_cleaned_up(project):
    """A session that ends finds its marker in a directory that was renamed meanwhile."""
    server = project.serve()
    moved = project.root / "moved"
    project.dir.rename(moved)
    assert ended(server, signal.SIGTERM) == 0
    assert list(moved.iterdir()) == []
    assert project.files() == ["r/hotenv"]


def test_ending_session_spares_a_strange_socket(project):
    """Invariant 7: what lies in the place of a session's socket, and is none, stays."""
    server = project.serve()
    path = project.socket_path()
    project.sh("rm %s; echo precious > %s" % (path, path))
    assert ended(server, signal.SIGTERM) == 0
    assert Path(path).read_bytes() == b"precious\n"


def test_ending_session_spares_a_strange_marker(project):
    """Invariant 7: a marker that names another socket stays."""
    server = project.serve()
    project.sh("echo socket=/tmp/another.sock > p/.hotenv")
    assert ended(server, signal.SIGTERM) == 0
    assert project.marker.read_bytes() == b"socket=/tmp/another.sock\n"


def test_force_replaces_a_live_session(project):
    """`serve -f` takes the place of a session that is still alive."""
    project.serve(b"A=old\n")
    project.serve(b"A=new\n", "-f")
    assert project.dump() == {b"A": b"new"}


def test_force_removes_the_old_socket(project):
    """Invariant 7: `serve -f` removes the socket of the session that it replaces."""
    project.serve(b"A=old\n")
    old_path = project.socket_path()
    project.serve(b"A=new\n", "-f")
    project.dump()  # a session that answers has removed what it replaces
    assert not os.path.exists(old_path)


def test_force_needs_no_marker(project):
    """`serve -f` starts a session where there is nothing to replace."""
    project.serve(b"A=1\n", "-f")
    assert project.dump() == {b"A": b"1"}


def test_force_replaces_a_link_to_a_session(project, session):
    """`serve --force` puts a plain file in place of a link to the marker of another session."""
    project.marker.symlink_to(session.marker)
    project.serve(b"A=new\n", "--force")
    assert not project.marker.is_symlink()
    assert project.dump() == {b"A": b"new"}


def test_force_spares_the_session_behind_a_link(project, session):
    """Invariant 7: `serve --force` over a link spares the session that the link leads to."""
    project.marker.symlink_to(session.marker)
    project.serve(b"A=new\n", "--force")
    project.dump()  # a session that answers has removed what it replaces
    assert session.dump() == {b"A": b"1", b"B": b"two words", b"EMPTY": b""}


# Paths at which no socket of hotenv lies. In each case one more lies in the runtime directory under
# the same name.
STRANGE_SOCKETS = [
    "r/hotenv/0123ABCD.sock",
    "r/hotenv/other.sock",
    "r/hotenv/0123abcd.sock.sock",
    "r/hotenv/sub/0123abcd.sock",
    "r/0123abcd.sock",
    "p/0123abcd.sock",
]


@pytest.mark.parametrize("name", STRANGE_SOCKETS)
def test_force_spares_a_strange_socket(project, name):
    """Invariant 7: --force removes no socket that lies where none of hotenv's does."""
    project.sh("mkdir -p r/hotenv/sub")
    strange = project.root / name
    namesake = project.runtime / Path(name).name
    for path in {strange, namesake}:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))

    project.points_at(strange)
    project.serve(b"A=1\n", "--force")
    assert project.dump() == {b"A": b"1"}  # a session that answers has removed what it replaces
    assert strange.exists()
    assert namesake.exists()


def test_force_spares_a_file_like_a_socket(project):
    """Invariant 7: --force removes no file that is no socket, wherever it lies."""
    path = project.runtime / "0123abcd.sock"
    project.sh("mkdir r/hotenv; echo precious > r/hotenv/0123abcd.sock")
    project.points_at(path)
    project.serve(b"A=1\n", "--force")
    assert project.dump() == {b"A": b"1"}  # a session that answers has removed what it replaces
    assert path.read_bytes() == b"precious\n"


BAD_FILE_SYSTEMS = [
    pytest.param("size=4k", id="full"),
    pytest.param("nr_inodes=2", id="without inodes"),
    pytest.param("ro", id="read-only"),
]


def _serve_on_file_system(project, options):
    """Run `serve` in a file system of its own, mounted with these options; return the result.

    Lists of what is in there, `before` and `after`, are then in the root of the project.
    """
    lines = """
        mount -t tmpfs -o OPTIONS none . && cd "$PWD" || exit 99
        { head -c 4096 /dev/zero > full; } 2>/dev/null
        ls -A > ../before
        "$@"
        code=$?
        ls -A > ../after
        exit $code"""
    in_mounts(project, lines.replace("OPTIONS", options))
    return project.hotenv("serve", input=b"A=1\n")


@pytest.mark.parametrize("options", BAD_FILE_SYSTEMS)
def test_serve_without_room_is_refused(project, options):
    """A start in a file system that takes no marker is refused, code 8."""
    refusal(_serve_on_file_system(project, options), 8)


@pytest.mark.parametrize("options", BAD_FILE_SYSTEMS)
def test_serve_without_room_leaves_nothing(project, options):
    """Invariant 2: a start in a file system that takes no marker leaves neither file nor socket."""
    _serve_on_file_system(project, options)
    before = (project.root / "before").read_bytes()
    assert (project.root / "after").read_bytes() == before
    assert list(project.base.rglob("*.sock")) == []


# ==== protocol ====================================================================================
# One JSON line each way. What is no request gets a reason, and changes nothing.


@pytest.mark.parametrize("request_", GOOD_REQUESTS, ids=short)
def test_request_gets_the_environment(session, request_):
    """Whatever is a request gets the whole environment."""
    told = json.loads(session.ask(request_).decode())
    assert told == {"env": {"A": "1", "B": "two words", "EMPTY": ""}}


def test_longest_request_is_among_the_good_ones():
    """The longest of the good requests has as many bytes as a request may have."""
    first_lines = [request.split(b"\n")[0] for request in GOOD_REQUESTS]
    assert max(map(len, first_lines)) == hotenv.MAX_REQUEST


@pytest.mark.parametrize("request_", GOOD_REQUESTS + BAD_REQUESTS, ids=short)
def test_answer_is_one_line_of_ascii(session, request_):
    """An answer, whatever it answers, is one line of ASCII characters."""
    lines = session.ask(request_).decode("ascii").split("\n")
    assert len(lines) == 2
    assert lines[1] == ""


@pytest.mark.parametrize("request_", BAD_REQUESTS, ids=short)
def test_bad_request_gets_a_reason(session, request_):
    """What is no request gets the error BAD_REQUEST with a message that says why."""
    reply = session.ask(request_)
    assert reply[: len(BAD_REQUEST)] == BAD_REQUEST
    told = json.loads(reply.decode())
    assert set(told) == {"error", "message", "pid"}
    assert len(told["message"]) > 10


@pytest.fixture(scope="module")
def unasked():
    """A Project with a session of which nobody asks the environment."""
    yield from standing(b"A=1\n", "--verbose")


@pytest.mark.parametrize("request_", BAD_REQUESTS, ids=short)
def test_bad_request_is_no_use_of_a_session(unasked, request_):
    """Invariant 6: a bad request does not put off the end of a session."""
    before = unasked.ends_at()
    unasked.ask(request_)
    assert unasked.ends_at() == before


@pytest.mark.parametrize("request_", BAD_REQUESTS, ids=short)
def test_bad_request_is_not_logged(unasked, request_):
    """A bad request leaves no line in the log."""
    before = unasked.log()
    unasked.ask(request_)
    assert unasked.log() == before


def test_what_follows_a_request_is_not_answered(session):
    """What comes after a request gets no answer, and spoils none.

    A server that closes with bytes unread would reset the connection, and the client might then
    never read its answer.
    """
    alone = session.ask(DUMP)
    for _ in range(20):
        with session.connect() as client:
            client.sendall(DUMP + b"x" * 100000)
            # This reads until the end, and a reset is an error.
            reply = b"".join(iter(lambda: client.recv(1000), b""))
        assert reply == alone


# -- requests that cost much -----------------------------------------------------------------------

# What a request goes on with after `{"command":`, what comes again and again, and how it ends.
REQUEST_SHAPES = [
    pytest.param(b'"dump","x":[', b"[],", b"[]]}", id="lists"),
    pytest.param(b'"dump","x":[', b'{"a":{}},', b"{}]}", id="objects"),
    pytest.param(b'"dump","x":', b"1", b"}", id="a long number"),
    pytest.param(b'"dump","x":[', b"1,", b"1]}", id="numbers"),
    pytest.param(b'"dump","x":[', b"[" * 900 + b"]" * 900 + b",", b"[]]}", id="depth"),
    pytest.param(b'"dump","x":[', b'"\\u00e9",', b"1]}", id="escapes"),
    pytest.param(b'"run","args":[', b'"\xc2\x80",', b'""]}', id="arguments"),
    pytest.param(b'"dump"', b',"a":1', b"}", id="names"),
]

# A request of the one size is answered, one of the other size is too long.
LARGE_REQUESTS = [
    pytest.param(LONGEST, b'{"env"', id="the longest"),
    pytest.param(16 << 20, BAD_REQUEST, id="16 MiB"),
]


def _request_of(size, start, again, end):
    """Return a request of a shape, of about `size` bytes."""
    times = (size - 100) // len(again)
    return b'{"command":' + start + again * times + end + b"\n"


def _cpu_seconds(pid):
    """Return how many seconds of a processor a process has used."""
    user, system = process_stat(pid)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@only_linux
@pytest.mark.parametrize("size, begins", LARGE_REQUESTS)
@pytest.mark.parametrize("start, again, end", REQUEST_SHAPES)
def test_no_shape_of_a_request_takes_long(session, size, begins, start, again, end):
    """Invariant 5: whatever a large request holds, it keeps the server busy for a moment only."""
    request = _request_of(size, start, again, end)
    before = _cpu_seconds(session.server_pid())
    reply = session.ask(request)
    assert reply[: len(begins)] == begins
    assert _cpu_seconds(session.server_pid()) - before <= 0.1


@only_linux
@pytest.mark.parametrize("size, begins", LARGE_REQUESTS)
def test_large_requests_leave_no_memory_taken(project, size, begins):
    """Invariant 5: after large requests of all shapes the server's memory is about what it was."""
    server = project.serve(b"A=1\n", "--verbose")
    before = resident(server.pid)
    for shape in REQUEST_SHAPES:
        reply = project.ask(_request_of(size, *shape.values))
        assert reply[: len(begins)] == begins
    assert resident(server.pid) - before < 8 << 20
    assert project.ask() == b'{"env":{"A":"1"}}\n'


@pytest.fixture
def flooded(project):
    """A Project with a session to which 100 clients have sent most of a request, and no end of it.

    - `flood`: these clients. Together their requests take more than MAX_UNFINISHED.
    - `growth`: by how many bytes the server's memory has grown; 0 where it cannot be seen.
    """
    server = project.serve()
    before = resident(server.pid) if LINUX else 0
    project.flood = [project.connect() for _ in range(100)]
    unfinished = b'{"command":"dump","x":"' + b"x" * 200000
    for client in project.flood:
        client.sendall(unfinished)

    # The server may still be reading. So many of the clients it has to drop, at least.
    too_many = 100 - hotenv.MAX_UNFINISHED // 200000
    until(lambda: len(_dropped(project)) >= too_many, "clients that are dropped")
    project.growth = resident(server.pid) - before if LINUX else 0
    return project


def _dropped(flooded):
    """Return those clients of a flood to which the server has said its last word."""
    return select.select(flooded.flood, [], [], 0)[0]


def test_unfinished_requests_hold_up_nobody(flooded):
    """Invariant 5: who sends a whole request is served beside many who do not."""
    assert flooded.dump() == {b"A": b"1"}


def test_oldest_unfinished_requests_go(flooded):
    """Of the unfinished requests those are dropped that have made no progress for longest."""
    dropped = _dropped(flooded)
    assert dropped == flooded.flood[: len(dropped)]


def test_few_unfinished_requests_go(flooded):
    """No more unfinished requests are dropped than the memory that they share demands."""
    assert len(_dropped(flooded)) < 40


def test_unfinished_requests_share_their_memory(flooded):
    """Invariant 5: unfinished requests take no more memory, together, than is meant for them."""
    assert flooded.growth < 40 << 20


def test_unfinished_request_may_be_finished(flooded):
    """An unfinished request that was not dropped is answered once it is whole."""
    last = flooded.flood[-1]
    last.sendall(b'"}\n')
    assert answer(last) == b'{"env":{"A":"1"}}\n'


# -- values and arguments --------------------------------------------------------------------------

EXACT_VALUES = [
    "",
    " ",
    "'\"\\",
    "a\nb\r\tc",
    "\x01\x7f",
    "\u00e9\u20ac\U0001f511",
    "}{\",:",
    "x" * 100000,
]


@pytest.fixture(scope="module")
def exact():
    """A Project with a session that holds EXACT_VALUES, and a variable R that is no UTF-8.

    Its attribute `expected` is the environment that the session should hand out.
    """
    lines = ["R=<${ODD}>\n"]
    expected = {b"R": b"<\xff\xc3\xa9>"}
    for number, value in enumerate(EXACT_VALUES):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        lines.append("A%d='%s'\n" % (number, escaped))
        # A dotenv text has line feeds for line ends of all kinds.
        expected[b"A%d" % number] = value.replace("\r", "\n").encode()

    for shared in standing("".join(lines).encode(), ODD=os.fsdecode(b"\xff\xc3\xa9")):
        shared.expected = expected
        yield shared


def test_dump_hands_values_over_to_the_byte(exact):
    """`dump` prints each value as it was in the input, to the byte."""
    assert exact.dump() == exact.expected


def test_run_hands_values_over_to_the_byte(exact):
    """`run` gives a command each value as it was in the input, above the host's."""
    seen = environment_of(exact.run(ENV, "-0", env={"A0": "before"}))
    assert {name: seen.get(name) for name in exact.expected} == exact.expected


# Fifty arguments of 20,000 bytes each: far more than a request may have.
LONG_ARGUMENTS = [b"\xc3\xa9" * 10000] * 50


def test_command_longer_than_a_request_runs(session):
    """A command line that does not fit into a request runs all the same."""
    done = session.run("sh", "-c", 'echo "$A $#"', "sh", *LONG_ARGUMENTS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"1 50\n"


def test_command_longer_than_a_request_is_cut(project):
    """Of a command line that does not fit into a request the log has the beginning."""
    project.serve(b"A=1\n", "--verbose")
    project.run("sh", "-c", "true", "sh", *LONG_ARGUMENTS)
    line = project.log_lines()[-1]
    assert line[20:50] == "run sh -c true sh " + "\u00e9" * 12
    assert 30000 < len(line)
    assert len(line) < LONGEST


# ==== server ======================================================================================
# A server keeps its timers, heeds signals and writes its log, whether its clients are slow, silent,
# many or gone. The first constants and helpers serve the next sections, too.

MEGABYTE = 1 << 20

# A session that has ended leaves its runtime directory alone; `Project.files` shows it so.
LEFT_BEHIND = ["r/hotenv"]


def program_with(statements):
    """Return the words of the installed program that runs Python statements before it begins.

    A test that would wait for seconds shortens a limit so: `hotenv.TICK = 0.5`.
    """
    begin = f"import sys; sys.path.insert(0, {str(HERE)!r}); import hotenv; del sys.path[0]"
    code = "\n".join([begin, textwrap.dedent(statements), "sys.exit(hotenv.main())"])
    return [sys.executable, "-S", "-c", code]


def finished(process):
    """Wait for a process that `Project.start` has started; return its CompletedProcess."""
    stdout, stderr = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def sleeps(pid):
    """Return whether a process waits and does not spin: 46 of 50 looks must find it asleep."""
    states = []
    for _ in range(50):
        time.sleep(0.002)
        states.append(process_stat(pid)[0])
    return states.count("S") > 45


def _server_stop(server):
    """Stop a server as Ctrl-Z does, and return once it has stopped."""
    server.send_signal(signal.SIGSTOP)
    os.waitpid(server.pid, os.WUNTRACED)


# -- the end of a session by its timers --


def test_idle_session_ends_by_itself(project):
    """A session ends with status 0 once its idle timeout has passed since its last use."""
    server = project.serve(b"A=1\n", "--timeout", "1", "-q")
    assert b'"env"' in project.ask()
    end = project.ends_at()
    assert ended(server) == 0
    assert end <= time.time() < end + 2.7


def test_each_use_prolongs_a_session(project):
    """A session that is in use outlives the end that it had at its start."""
    server = project.serve(b"A=1\n", "--timeout", "2", "-q")
    first_end = project.ends_at()

    def is_in_use_beyond_its_first_end():
        assert b'"env"' in project.ask()
        return time.time() > first_end + 0.2

    until(is_in_use_beyond_its_first_end)
    assert server.poll() is None


def test_open_connections_prolong_no_session(project):
    """Clients that stay connected, silent or in the middle of a request, keep no session alive."""
    server = project.serve(b"A=1\n", "--timeout", "1", "-q")
    end = project.ends_at()
    with project.connect(), project.connect() as unfinished:
        unfinished.sendall(b'{"comm')
        assert ended(server) == 0
    assert end <= time.time() < end + 2.7


@pytest.mark.parametrize("limit", ["--timeout", "--max-age"])
def test_expired_session_leaves_no_file(project, limit):
    """A session that ends by a timer removes its socket and its marker."""
    assert ended(project.serve(b"A=1\n", limit, "1", "-q")) == 0
    assert project.files() == LEFT_BEHIND


def test_expired_session_logs_no_last_word(project):
    """A log in a file holds lines of requests alone, and no word about the end of the session."""
    assert ended(project.serve(b"A=1\n", "--timeout", "1")) == 0
    assert project.log() == b""


def test_expired_session_is_no_session(project):
    """A command that comes after the end of a session is refused with 3."""
    assert ended(project.serve(b"A=1\n", "--timeout", "1")) == 0
    refusal(project.run("true"), 3)


def test_max_age_ends_a_session_in_use(project):
    """A session ends at its maximal age, however often it is used until then."""
    server = project.serve(b"A=1\n", "--timeout", "1h", "--max-age", "1", "-q")
    path = project.socket_path()
    end = project.ends_at()

    def refuses_connections():
        try:
            project.ask(path=path)
        except OSError:
            return True
        return False

    assert b'"env"' in project.ask(path=path)
    until(refuses_connections, "the end")
    assert ended(server) == 0
    assert end <= time.time() < end + 5


def test_deadline_comes_before_an_answer(project):
    """Invariant 3: a server that is past its deadline when it sees a request does not answer it."""
    project.program = program_with("""
        import selectors, time
        select = selectors.DefaultSelector.select

        def slow_select(selector, timeout=None):
            events = select(selector, timeout)
            if events:
                time.sleep(1.1)
            return events

        selectors.DefaultSelector.select = slow_select
    """)
    server = project.serve(b"A=1\n", "--timeout", "1")
    assert project.ask() == b""
    assert ended(server) == 0


def test_no_answer_begins_after_the_deadline(project):
    """Invariant 3: a server that wakes up after its deadline ends, and answers nobody any more."""
    server = project.serve(b"A=1\n", "--timeout", "1")
    with project.connect() as early:
        # Once this request has its answer, the server has accepted the early client.
        assert project.ask(b"{}\n").startswith(BAD_REQUEST)
        _server_stop(server)
        early.sendall(DUMP)
        with project.connect() as late:
            late.sendall(DUMP)
            until(lambda: time.time() > project.ends_at() + 0.1, "the deadline")
            server.send_signal(signal.SIGCONT)
            assert answer(early) == b""
            assert answer(late) == b""
    assert ended(server) == 0
    assert project.log() == b""


def test_no_answer_goes_on_after_the_deadline(project):
    """Invariant 3: an answer that is not yet sent at the deadline stays incomplete."""
    size = 8 * MEGABYTE
    server = project.serve(b"A=%s\n" % (b"x" * size), "--timeout", "2")
    with project.connect() as slow:
        slow.sendall(DUMP)
        received = len(slow.recv(1000))
        _server_stop(server)
        until(lambda: time.time() > project.ends_at() + 0.1, "the deadline")
        server.send_signal(signal.SIGCONT)
        received += len(answer(slow))
    assert ended(server) == 0
    assert 0 < received < size // 2
    assert project.log() == b""


# -- what a success changes --


def _server_successes(project):
    """Return functions that each have one request of the session answered."""

    def runs():
        assert project.run("true").returncode == 0

    def dumps():
        assert project.dump() == {b"A": b"1"}

    def asks():
        assert b'"env"' in project.ask()

    return [runs, dumps] + [asks] * amount(2000)


def test_each_success_resets_the_idle_timer(project):
    """Invariant 6: the socket's time stamp shows the new end before a client is let go."""
    project.serve(b"A=1\n", "--timeout", "1000")
    first_end = project.ends_at()
    for succeed in _server_successes(project):
        before = time.time()
        succeed()
        assert before + 1000 - 0.02 <= project.ends_at() <= time.time() + 1000.01
    # The two starts of an interpreter alone take longer than this.
    assert project.ends_at() >= first_end + 0.02


def test_each_success_is_logged_in_time(project):
    """Invariant 6: the log has the line of a request before its client is let go."""
    project.serve(b"A=1\n", "--timeout", "1000")
    for count, succeed in enumerate(_server_successes(project), 1):
        succeed()
        assert len(project.log_lines()) == count


# -- clients that fail, and clients that are slow --

# The answer of large_session is as long as its values and the JSON around them.
_SERVER_LARGE_NAMES = ["V%d" % number for number in range(20)]
_SERVER_LARGE_SIZE = len(_SERVER_LARGE_NAMES) * MEGABYTE + len(
    json.dumps({"env": dict.fromkeys(_SERVER_LARGE_NAMES, "")}, separators=(",", ":")) + "\n"
)


@pytest.fixture(scope="module")
def large_session():
    """A Project with a session of 20 values, each of a megabyte."""
    value = b"x" * MEGABYTE
    lines = [b"%s=%s\n" % (name.encode(), value) for name in _SERVER_LARGE_NAMES]
    yield from standing(b"".join(lines))


@pytest.mark.parametrize(
    "request_, answer_begins",
    [
        pytest.param(b"{}\n", BAD_REQUEST, id="refused"),
        pytest.param(DUMP[:-1], b"", id="gone before its newline"),
        pytest.param(b"", b"", id="gone without a word"),
        pytest.param(DUMP, b'{"env"', id="gone in the middle of its answer"),
    ],
)
def test_failed_request_prolongs_no_session(large_session, request_, answer_begins):
    """Invariant 6: a request without success neither resets the idle timer nor is logged."""
    end = large_session.ends_at()
    log = large_session.log()
    with large_session.connect() as client:
        client.sendall(request_)
        if answer_begins:
            assert client.recv(len(answer_begins)) == answer_begins
    # Once this request is refused, the server is done with the client before it.
    assert large_session.ask(b"{}\n").startswith(BAD_REQUEST)
    assert large_session.ends_at() == end
    assert large_session.log() == log


@contextlib.contextmanager
def _server_slow_readers(session):
    """Yield five clients, each of which has read ten bytes of an answer."""
    with contextlib.ExitStack() as at_end:
        clients = [at_end.enter_context(session.connect()) for _ in range(5)]
        for client in clients:
            client.sendall(DUMP)
            assert len(client.recv(10)) == 10
        yield clients


def test_slow_readers_hold_up_nobody(large_session):
    """Invariant 5: while some clients are slow to read, others get their answers at once."""
    with _server_slow_readers(large_session):
        began = time.monotonic()
        assert len(large_session.ask()) == _SERVER_LARGE_SIZE
        assert large_session.ask(b"{}\n").startswith(BAD_REQUEST)
        assert time.monotonic() - began < 5


def test_slow_readers_get_their_whole_answer(large_session):
    """A client that is slow to read gets all of its answer, and its line in the log."""
    logged_before = len(large_session.log_lines())
    with _server_slow_readers(large_session) as clients:
        sizes = [10 + len(answer(client)) for client in clients]
    assert sizes == [_SERVER_LARGE_SIZE] * 5
    assert len(large_session.log_lines()) == logged_before + 5


@only_linux
def test_slow_readers_share_one_answer(large_session):
    """Invariant 4: the answer was encoded once, so clients that read it take no memory each."""
    pid = large_session.server_pid()
    memory_before = resident(pid)
    with _server_slow_readers(large_session):
        assert len(large_session.ask()) == _SERVER_LARGE_SIZE
        assert resident(pid) - memory_before < _SERVER_LARGE_SIZE


def _server_bare_memory(*options):
    """Return the bytes that an interpreter with the modules of a server holds."""
    modules = "argparse, ctypes, fcntl, json, re, resource, selectors, signal, socket, sys"
    command = [sys.executable, *options, "-c", f"import {modules}; print(flush=1); input()"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as interpreter:
        interpreter.stdout.readline()
        memory = resident(interpreter.pid)
        interpreter.kill()
    return memory


@only_linux
@pytest.mark.parametrize("options", [[], ["--background"]], ids=short)
@pytest.mark.parametrize(
    "program, python_options, megabytes",
    [
        # A script is compiled at each start, which takes memory that Python keeps.
        pytest.param([sys.executable, str(HOTENV)], [], 40, id="script"),
        # The compiled program takes two, and a quarter more in Python 3.14.
        pytest.param(INSTALLED, ["-S"], 4, id="installed"),
    ],
)
def test_session_takes_little_memory(project, program, python_options, megabytes, options):
    """A session takes few megabytes more than an interpreter with the modules that it needs."""
    project.program = program
    if options:
        assert project.hotenv("serve", *options, input=b"A=1\n").returncode == 0
    else:
        project.serve()
    assert project.dump() == {b"A": b"1"}
    more = resident(project.server_pid()) - _server_bare_memory(*python_options)
    assert more < megabytes * MEGABYTE


# -- more clients than descriptors --


@pytest.fixture
def crowd(project):
    """The clients of a thousand connections to the project's session, half of them in a request.

    The server starts with room for 64 descriptors, and has a minute's time for each request.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("needs 1,200 descriptors")
    project.program = program_with("hotenv.REQUEST_TIME = 60")
    with contextlib.ExitStack() as at_end:
        at_end.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        project.serve(b"A=1\n", "--timeout", "1h", preexec_fn=limits(NOFILE=(64, hard)))
        clients = []
        for number in range(1000):
            client = at_end.enter_context(project.connect())
            if number % 2:
                client.sendall(b'{"comm')
            clients.append(client)
        yield clients


def test_a_thousand_clients_delay_nobody(project, crowd):
    """Invariant 5: beside a thousand silent clients, others get their answers at once."""
    for _ in range(20):
        asked = time.monotonic()
        assert b'"env"' in project.ask()
        assert time.monotonic() - asked < 1.0
    assert project.run("true").returncode == 0


def test_a_thousand_clients_all_stay(project, crowd):
    """The server raises its limit of descriptors, so that no silent client has to go."""
    assert b'"env"' in project.ask()
    poll = select.poll()
    for client in crowd:
        poll.register(client, select.POLLIN)
    assert poll.poll(0) == [], "clients that the server has let go"


_SERVER_UNFINISHED = pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"", id="silent"),
        pytest.param(b'{"comm', id="in its request"),
        pytest.param(DUMP, id="not reading"),
    ],
)


def _server_without_descriptors(project, request_):
    """Start a server with 40 descriptors, and connect 100 clients that make no progress.

    Return the server, and the clients.
    """
    text = b"A=%s\n" % (b"x" * 2 * MEGABYTE)
    server = project.serve(text, preexec_fn=limits(NOFILE=(40, 40)))
    clients = []
    for _ in range(100):
        client = project.connect()
        client.sendall(request_)
        clients.append(client)
    return server, clients


@only_linux
@_SERVER_UNFINISHED
def test_full_server_serves_whoever_is_quick(project, request_):
    """Invariant 5: a server without descriptors makes room for a client, and answers it."""
    _server_without_descriptors(project, request_)
    assert len(project.ask()) > 2 * MEGABYTE
    assert len(project.dump()[b"A"]) == 2 * MEGABYTE


@only_linux
@_SERVER_UNFINISHED
def test_full_server_drops_the_oldest_client(project, request_):
    """Invariant 5: a server without descriptors drops who has made no progress for longest."""
    clients = _server_without_descriptors(project, request_)[1]
    assert len(project.ask()) > 2 * MEGABYTE
    assert len(answer(clients[0])) < 2 * MEGABYTE


@only_linux
@pytest.mark.parametrize("request_", [b"", b'{"comm'], ids=["silent", "in its request"])
def test_full_server_keeps_the_newest_client(project, request_):
    """Invariant 5: a server without descriptors leaves alone who has come last."""
    clients = _server_without_descriptors(project, request_)[1]
    assert len(project.ask()) > 2 * MEGABYTE
    readable = select.select(clients[-1:], [], [], 0)[0]
    assert readable == [], "the newest client has been dropped"


@only_linux
@_SERVER_UNFINISHED
def test_full_server_does_not_spin(project, request_):
    """Invariant 5: a server without descriptors sleeps until somebody makes progress."""
    server = _server_without_descriptors(project, request_)[0]
    assert len(project.ask()) > 2 * MEGABYTE
    until(lambda: sleeps(server.pid), "a server that waits", 5)


@only_linux
@_SERVER_UNFINISHED
def test_full_server_cleans_up_at_its_end(project, request_):
    """A server that has no descriptor to spare removes its files all the same."""
    server = _server_without_descriptors(project, request_)[0]
    assert len(project.ask()) > 2 * MEGABYTE
    assert ended(server, signal.SIGTERM) == 0
    assert project.files() == LEFT_BEHIND


@only_linux
def test_full_backlog_is_waited_for(project):
    """A client waits for a server whose backlog is full, and then gets its answer."""
    path = str(project.root / "busy.sock")
    with contextlib.ExitStack() as at_end:
        listener = at_end.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(path)
        listener.listen(0)
        waiting = []
        refused = 0
        # The system says EAGAIN once the backlog is full.
        while refused != errno.EAGAIN:
            client = at_end.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            refused = client.connect_ex(path)
            waiting.append(client)

        dump = project.start("dump", "--socket", path, stdout=PIPE)
        until(lambda: dump.poll() is not None or sleeps(dump.pid), "somebody who waits")
        assert dump.poll() is None

        for client in waiting:
            client.close()
        request = b""
        # The clients that have gone are accepted first, and send nothing.
        while not request:
            with listener.accept()[0] as accepted:
                request = accepted.recv(100)
                if request:
                    accepted.sendall(b'{"env":{"A":"1"}}\n')
        assert finished(dump).stdout == b"A=1\n"


# -- signals, and the end of a session --


@only_linux
def test_foreign_signal_handler_wakes_no_server(project):
    """A signal that has a handler of somebody else's neither ends a server nor has it spin."""
    handler = "import signal; signal.signal(signal.SIGUSR1, lambda *_: None)"
    project.program = program_with(handler)
    server = project.serve()
    os.kill(server.pid, signal.SIGUSR1)
    assert project.dump() == {b"A": b"1"}
    until(lambda: sleeps(server.pid), "a server that waits", 5)
    assert len(project.log_lines()) == 1


_SERVER_ENDING_SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
_SERVER_HARMLESS_SIGNALS = [signal.SIGCONT, signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD]


@pytest.mark.parametrize("signum", _SERVER_ENDING_SIGNALS)
def test_signal_ends_a_session_properly(project, signum):
    """A signal that would kill another program ends a session with status 0, and its files go."""
    assert ended(project.serve(), signum) == 0
    assert project.files() == LEFT_BEHIND


@pytest.mark.parametrize("signum", _SERVER_HARMLESS_SIGNALS)
def test_harmless_signal_ends_no_session(project, signum):
    """A signal that kills no program by default does not end a session, either."""
    server = project.serve()
    server.send_signal(signum)
    assert b'"env"' in project.ask()
    assert server.poll() is None


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_signal_ignored_at_start_stays_ignored(project, signum):
    """A server heeds nohup, and the `&` of a shell, which start it with a signal ignored."""
    server = project.serve(preexec_fn=lambda: signal.signal(signum, signal.SIG_IGN))
    server.send_signal(signum)
    assert b'"env"' in project.ask()
    assert ended(server, signal.SIGTERM) == 0


@only_linux
@pytest.mark.parametrize(
    "options, code, printed",
    [
        ([], 4, b""),
        (["--optional"], 0, b"x\n"),
    ],
    ids=short,
)
def test_client_at_the_very_end_finds_no_session(project, options, code, printed):
    """A client that has connected to a session, and is not accepted before its end, is told so."""
    server = project.serve()
    entry = " %s\n" % project.socket_path()
    _server_stop(server)
    run = project.start("run", *options, "--", "echo", "x", stdout=PIPE, stderr=PIPE)
    # The kernel lists the listening socket, and one for each client that is not yet accepted.
    until(lambda: Path("/proc/net/unix").read_text().count(entry) > 1, "a client")
    server.terminate()
    server.send_signal(signal.SIGCONT)
    done = finished(run)
    refusal(done, code)
    assert done.stdout == printed


def test_clients_beside_an_end_get_all_or_nothing(project):
    """A client that asks while a session ends gets the whole environment, or is refused with 4."""

    def fetch_until_the_end(path):
        with pytest.raises(hotenv.HotenvError) as refused:
            while True:
                assert hotenv.fetch(socket_path=path) == {"A": "1"}
        return refused.value.code

    for _ in range(amount(200)):
        server = project.serve()
        with ThreadPoolExecutor(4) as pool:
            codes = pool.map(fetch_until_the_end, [project.socket_path()] * 4)
            until(lambda: project.log().count(b"\n") > 40, "some traffic")
            assert ended(server, signal.SIGTERM) == 0
            assert list(codes) == [4, 4, 4, 4]
        project.log_path.unlink()


def test_stop_beside_stop_ends_a_session(project):
    """Several `stop` and a `status` side by side end the session, and each tells 0, 3 or 4."""
    for _ in range(amount(100)):
        server = project.serve()
        started = [
            project.start(command, stdout=PIPE, stderr=PIPE)
            for command in ("stop", "status", "stop", "stop")
        ]
        codes = [finished(process).returncode for process in started]
        assert set(codes) - {0, 3, 4} == set()
        assert 0 in codes
        assert ended(server) == 0
        assert not project.marker.exists()


def test_status_of_a_stopped_server_is_4(project):
    """A server that is stopped, by Ctrl-Z, is not live, and `status` says why."""
    _server_stop(project.serve())
    done = project.hotenv("status")
    assert done.returncode == 4
    assert b"stopped" in done.stdout + done.stderr


def test_serve_names_a_stopped_server(project):
    """A refused `serve` says that the session which is here already is stopped."""
    _server_stop(project.serve())
    assert "stopped" in refusal(project.hotenv("serve", input=b"A=2\n"), 10)


def test_stop_ends_a_stopped_server(project):
    """`stop` continues a server that is stopped, so that it can end properly."""
    server = project.serve()
    _server_stop(server)
    assert project.hotenv("stop").returncode == 0
    assert ended(server) == 0
    assert project.files() == LEFT_BEHIND


# -- the request log --

# A line of the log begins with a date and a time of this length.
_SERVER_LOG_TIME = len("2026-02-14 12:00:00 ")


def _server_run_request(*args):
    """Return the request of `run` for a command with these arguments."""
    return json.dumps({"command": "run", "args": args}).encode() + b"\n"


_SERVER_LOGGED_REQUESTS = [
    _server_run_request("python", "script.py", "--debug"),
    _server_run_request("two words", "a ", "b"),
    _server_run_request(""),
    DUMP,
]


@pytest.mark.parametrize(
    "options, logged",
    [
        ([], ["run python", "run two words", "run ", "dump -"]),
        (["-q"], []),
        (
            ["--verbose"],
            ["run python script.py --debug", "run two words a  b", "run ", "dump -"],
        ),
    ],
    ids=short,
)
def test_log_has_a_line_for_each_success(project, options, logged):
    """The log tells of each request that was served, and of no other, as `serve` was asked to."""
    project.serve(b"A=1\n", *options)
    for request in _SERVER_LOGGED_REQUESTS:
        assert b'"env"' in project.ask(request)
        assert project.ask(b"nonsense\n").startswith(BAD_REQUEST)
    assert [line[_SERVER_LOG_TIME:] for line in project.log_lines()] == logged


def test_log_line_begins_with_local_time(project):
    """A line of the log begins with the date and time of the server's time zone."""
    project.serve(b"A=1\n", env={"TZ": "UTC-5"})
    began = time.time()
    for request in _SERVER_LOGGED_REQUESTS:
        assert b'"env"' in project.ask(request)
    five_hours = 5 * 3600
    lines = project.log_lines()
    assert len(lines) == len(_SERVER_LOGGED_REQUESTS)
    earliest = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began - 1 + five_hours))
    latest = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + 1 + five_hours))
    for line in lines:
        assert LOG_LINE.match(line), line
        assert earliest <= line[: len(latest)] <= latest


@pytest.mark.parametrize(
    "arg, shown",
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("two\nlines", r"two\nlines"),
        ("a\rb", r"a\rb"),
        ("tab\t.", r"tab\t."),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\u2028", r"\u2028"),
        ("\x7f\x80", r"\x7f\x80"),
        ("\ud800", r"\ud800"),
        ("\udcff", r"\udcff"),
        ("\U000e0001", r"\U000e0001"),
        # Characters that can be printed stay, a backslash and a quote among them.
        ("back\\slash", "back\\slash"),
        ("\u00e9\u20ac\U0001f511", "\u00e9\u20ac\U0001f511"),
        ("'quotes\"", "'quotes\""),
    ],
    ids=short,
)
def test_log_escapes_what_a_client_sends(session, arg, shown):
    """Invariant 10: a character that cannot be printed is in the log as its Python escape."""
    before = session.log()
    assert b'"env"' in session.ask(_server_run_request("x", arg))
    line = session.log()[len(before) :]
    assert line[_SERVER_LOG_TIME:] == b"run x %s\n" % shown.encode()


# fcntl has a name for this number from Python 3.10 on.
_SERVER_F_GETPIPE_SZ = 1032


@contextlib.contextmanager
def _server_unread_log(kind):
    """Yield a descriptor to write a log to that nobody reads, and that has room for little."""
    if kind == "pipe":
        reader, writer = os.pipe()
        os.write(writer, b"." * fcntl.fcntl(writer, _SERVER_F_GETPIPE_SZ))
    else:
        reader, writer = pty.openpty()
        if kind == "stopped terminal":
            termios.tcflow(writer, termios.TCOOFF)
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


_SERVER_UNREAD_LOGS = pytest.mark.parametrize("kind", ["pipe", "terminal", "stopped terminal"])


@only_linux
@_SERVER_UNREAD_LOGS
def test_unread_log_holds_up_no_request(project, kind):
    """Requests are answered though nobody reads the log, or its terminal is under Ctrl-S."""
    with _server_unread_log(kind) as log:
        project.serve(b"A=1\n", "--verbose", stderr=log)
        for _ in range(4):
            assert b'"env"' in project.ask(_server_run_request("x" * 100000))


@only_linux
@_SERVER_UNREAD_LOGS
@pytest.mark.parametrize("timeout", ["1", "1h"], ids=["by timeout", "by signal"])
def test_unread_log_delays_no_end(project, kind, timeout):
    """A session ends in time though nobody reads its log, or the terminal is under Ctrl-S."""
    with _server_unread_log(kind) as log:
        server = project.serve(b"A=1\n", "--verbose", "--timeout", timeout, stderr=log)
        for _ in range(4):
            assert b'"env"' in project.ask(_server_run_request("x" * 100000))
        began = time.monotonic()
        if timeout == "1h":
            server.terminate()
        assert ended(server) == 0
        assert time.monotonic() - began < 6
    assert project.files() == LEFT_BEHIND


def _server_logged_and_lost(log, size):
    """Return how many requests with arguments of this size a log has, and how many it lost.

    The latter is the sum of the counts that the log itself tells.
    """
    logged = 0
    lost = 0
    for line in log.decode().splitlines():
        note = re.search(r"\b(\d+) (?:log )?lines? .*(?:dropped|lost)", line)
        if note:
            lost += int(note.group(1))
        elif line.endswith("x" * size):
            logged += 1
    return logged, lost


@pytest.fixture
def logging_session(project):
    """A server that logs whole requests into a pipe, and the end of the pipe to read from."""
    reader, writer = os.pipe()
    server = project.serve(b"A=1\n", "--verbose", stderr=writer)
    os.close(writer)
    yield server, reader
    os.close(reader)


def _server_ask_often(project, count, size):
    """Send as many requests, with arguments of this size."""
    for _ in range(count):
        assert b'"env"' in project.ask(_server_run_request("x" * size))


def test_log_that_is_read_is_whole(project, logging_session):
    """A log in a pipe has a line for each request as long as somebody reads it now and then."""
    server, reader = logging_session
    log = b""
    for _ in range(20):
        # Every system's pipes have room for these lines.
        _server_ask_often(project, 50, 200)
        log += os.read(reader, MEGABYTE)
    server.terminate()
    log += read_until(reader)
    assert ended(server) == 0
    assert _server_logged_and_lost(log, 200) == (1000, 0)


def test_log_counts_the_lines_that_it_drops(project, logging_session):
    """A log that was not read for a while tells how many lines it lacks."""
    server, reader = logging_session
    _server_ask_often(project, 100, 20000)
    log = os.read(reader, MEGABYTE)
    _server_ask_often(project, 1, 20000)
    server.terminate()
    log += read_until(reader)
    assert ended(server) == 0
    logged, lost = _server_logged_and_lost(log, 20000)
    assert logged + lost == 101
    assert lost > 20


def test_log_ends_with_a_count_of_dropped_lines(project, logging_session):
    """A log that nobody has read until the end tells how many lines it lacks."""
    server, reader = logging_session
    _server_ask_often(project, 100, 20000)
    server.terminate()
    until(lambda: not project.marker.exists(), "the end")
    log = read_until(reader)
    assert ended(server) == 0
    logged, lost = _server_logged_and_lost(log, 20000)
    assert logged + lost == 100
    assert lost > 20


def test_log_without_room_counts_what_it_lost(project):
    """A log on a full disk, which is emptied later, tells how many lines it lacks."""
    full_disk = limits(FSIZE=(1 << 16, 1 << 16))
    server = project.serve(b"A=1\n", "--verbose", preexec_fn=full_disk)
    for _ in range(900):
        assert b'"env"' in project.ask(_server_run_request("x" * 100))
    log = project.log()
    os.truncate(project.log_path, 0)
    assert b'"env"' in project.ask(_server_run_request("x" * 100))
    assert ended(server, signal.SIGTERM) == 0
    logged, lost = _server_logged_and_lost(log + project.log(), 100)
    assert logged + lost == 901


@pytest.mark.parametrize("kind", ["left", pytest.param("full", marks=only_linux)])
def test_unwritable_log_ends_no_session(project, kind):
    """A session lives on when the reader of its log has left, or the log's disk is full."""
    reader, writer = os.pipe()
    os.close(reader)
    if kind == "full":
        os.close(writer)
        writer = os.open("/dev/full", os.O_WRONLY)
    server = project.serve(b"A=1\n", "--verbose", stderr=writer)
    os.close(writer)
    for request in (DUMP, RUN, DUMP):
        assert project.ask(request) == b'{"env":{"A":"1"}}\n'
    assert ended(server, signal.SIGTERM) == 0


@pytest.mark.parametrize(
    "closed, options, response",
    [
        ([2], [], b'{"env":{"A":"1"}}\n'),
        ([1, 2], [], b'{"env":{"A":"1"}}\n'),
        # Without a stdin there is no input, which `serve` takes only when told so.
        ([0, 1, 2], ["--empty"], b'{"env":{}}\n'),
    ],
    ids=str,
)
def test_closed_descriptor_gets_no_other_file(project, closed, options, response):
    """A server that starts with closed standard streams takes no socket of its own for them."""

    def close_streams():
        for number in closed:
            os.close(number)

    server = project.serve(
        b"A=1\n", "--verbose", *options, stdout=DEVNULL, stderr=None, preexec_fn=close_streams
    )
    for request in (DUMP, RUN, DUMP):
        assert project.ask(request) == response
    assert ended(server, signal.SIGTERM) == 0


# ==== client ======================================================================================
# A command asks the session that it is told to ask, and believes only what a session can say.


@pytest.fixture
def client_sessions(project, session, answerer):
    """The sockets of three sessions, by name, each with another value of A.

    `marker` is named by the project's marker, `other` and `session` have to be named. `none` stands
    for the empty text, which names no session.
    """
    project.serve(b"A=marker\n")
    return {
        "none": "",
        "marker": project.socket_path(),
        "other": answerer(b'{"env":{"A":"other"}}\n').path,
        "session": session.socket_path(),
    }


def _client_naming(sessions, option, variable):
    """Return the options and the variables that name these sessions to a command."""
    options = []
    if option is not None:
        options = ["--socket", sessions[option]]
    env = {}
    if variable is not None:
        env = {"HOTENV_SOCKET": sessions[variable]}
    return options, env


_CLIENT_PRECEDENCE = pytest.mark.parametrize(
    "option, variable, value",
    [
        (None, None, b"marker"),
        (None, "none", b"marker"),
        (None, "other", b"other"),
        ("other", None, b"other"),
        ("session", "other", b"1"),
    ],
)


@_CLIENT_PRECEDENCE
def test_dump_asks_the_session_that_is_named(project, client_sessions, option, variable, value):
    """`dump` asks the session of --socket, then of HOTENV_SOCKET, then of the marker."""
    options, env = _client_naming(client_sessions, option, variable)
    assert project.dump(*options, env=env)[b"A"] == value


@_CLIENT_PRECEDENCE
def test_run_asks_the_session_that_is_named(project, client_sessions, option, variable, value):
    """`run` asks the session of --socket, then of HOTENV_SOCKET, then of the marker."""
    options, env = _client_naming(client_sessions, option, variable)
    done = project.hotenv("run", *options, "--", "sh", "-c", "printf %s $A", env=env)
    assert done.stdout == value


def test_serve_looks_at_the_marker_alone(project, client_sessions):
    """`serve` looks at the marker here, whatever session HOTENV_SOCKET names."""
    env = {"HOTENV_SOCKET": client_sessions["other"]}
    refusal(project.hotenv("serve", input=b"A=2\n", env=env), 10)


def test_status_tells_the_session_that_is_named(project, client_sessions):
    """`status --socket` tells of the session that is named, and not of the marker here."""
    done = project.hotenv("status", "--socket", client_sessions["session"])
    told = done.stdout.decode()
    assert client_sessions["session"] in told
    assert str(project.marker) not in told


def test_fetch_finds_the_session_of_a_directory(project, client_sessions, monkeypatch):
    """A program that calls fetch() gets the environment of the session that is found from here."""
    monkeypatch.chdir(str(project.dir))
    assert hotenv.fetch() == {"A": "marker"}


def test_fetch_asks_the_session_of_a_socket(session):
    """A program that calls fetch() with a path gets the environment of the session there."""
    env = hotenv.fetch("dump", [], session.socket_path())
    assert env == {"A": "1", "B": "two words", "EMPTY": ""}


def test_fetch_sends_its_arguments_to_the_log(session):
    """A program that calls fetch() can say which command it is about to run."""
    hotenv.fetch("run", ["a", "b"], session.socket_path())
    assert session.log().endswith(b" run a b\n")


# How an error says that a session is started.
_CLIENT_HOW_TO_START = r"\bserve (--force )?< "

_CLIENT_COMMANDS = [
    ["run", "--", "true"],
    ["dump"],
    ["run", "--only", "A", "--", "true"],
]


@pytest.mark.parametrize("command", [["run", "--", "true"], ["dump"]], ids=short)
def test_stale_socket_option_is_named(project, command):
    """A --socket that leads nowhere is told as such: another session would be of no help."""
    path = str(project.root / "gone.sock")
    message = refusal(project.hotenv(command[0], "--socket", path, *command[1:]), 4)
    assert path in message
    assert not re.search(r"\bserve\b", message), message
    assert "any more" not in message


@pytest.mark.parametrize("command", [["run", "--", "true"], ["dump"]], ids=short)
def test_stale_hotenv_socket_is_to_be_unset(project, command):
    """A HOTENV_SOCKET that leads nowhere is told as such, with the advice to unset it."""
    path = str(project.root / "gone.sock")
    message = refusal(project.hotenv(*command, env={"HOTENV_SOCKET": path}), 4)
    assert path in message
    assert not re.search(r"\bserve\b", message), message
    assert "any more" not in message
    assert "unset" in message
    assert "HOTENV_SOCKET" in message


@pytest.mark.parametrize("command", _CLIENT_COMMANDS, ids=short)
def test_no_session_is_3(project, command):
    """Where there is no marker, a command is refused with 3, and says how to start a session."""
    message = refusal(project.hotenv(*command), 3)
    assert ".hotenv" in message
    assert re.search(_CLIENT_HOW_TO_START, message), message


def _client_make_unreachable(path, kind):
    """Put at `path` what a client cannot connect to."""
    if kind == "refused":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "datagram":
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
            made.bind(str(path))
    elif kind == "file":
        path.touch()
    elif kind == "directory":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        assert kind == "missing"


@pytest.mark.parametrize("command", _CLIENT_COMMANDS, ids=short)
@pytest.mark.parametrize("kind", ["refused", "missing", "file", "datagram", "directory", "loop"])
def test_unreachable_session_is_4(project, kind, command):
    """Whatever keeps a command from connecting is 4, with the path, and how to start a session."""
    path = project.root / "x.sock"
    _client_make_unreachable(path, kind)
    project.points_at(path)
    message = refusal(project.hotenv(*command), 4)
    assert str(path) in message
    assert re.search(_CLIENT_HOW_TO_START, message), message


@pytest.mark.parametrize("command", _CLIENT_COMMANDS, ids=short)
def test_socket_path_too_long_is_4(project, command):
    """A marker with a path that no system can open is 4, with that path."""
    path = "/" + "x" * 300
    project.points_at(path)
    message = refusal(project.hotenv(*command), 4)
    assert path in message
    assert re.search(_CLIENT_HOW_TO_START, message), message


@pytest.mark.parametrize(
    "words, code",
    [
        (["run", "--", "true"], 8),
        (["serve"], 8),
        (["hermetic", "--fs-readonly", "--", "true"], 1),
        (["run", "--no-network", "--", "true"], 8),
    ],
    ids=short,
)
def test_removed_directory_is_named(project, words, code):
    """A command that starts in a directory which was removed says so, and leaves no file."""
    into_removed = 'mkdir x && cd x && rmdir ../x && exec "$@"'
    project.program = ["sh", "-c", into_removed, "sh", *project.program]
    assert "current directory" in refusal(project.hotenv(*words, input=b"A=1\n"), code)
    assert project.files() == []


_CLIENT_GOOD_ANSWERS = [response for response, code in ANSWERS if code == 0]
_CLIENT_WRONG_ANSWERS = [(response, code) for response, code in ANSWERS if code != 0]


@pytest.mark.parametrize("response", _CLIENT_GOOD_ANSWERS, ids=short)
def test_good_answer_is_an_environment(answerer, response):
    """An answer that is one line of JSON with an environment is believed."""
    assert isinstance(hotenv.fetch(socket_path=answerer(response).path), dict)


@pytest.mark.parametrize("response, code", _CLIENT_WRONG_ANSWERS, ids=short)
def test_wrong_answer_is_refused(answerer, response, code):
    """An answer that is anything else is refused, by a message that can be printed."""
    with pytest.raises(hotenv.HotenvError) as refused:
        hotenv.fetch(socket_path=answerer(response).path)
    assert refused.value.code == code
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("response, code", _CLIENT_WRONG_ANSWERS, ids=short)
def test_wrong_answer_is_in_no_traceback(answerer, response, code):
    """Invariant 1: the error for a wrong answer brings no other error that quotes the answer."""
    with pytest.raises(hotenv.HotenvError) as refused:
        hotenv.fetch(socket_path=answerer(response).path)
    error = refused.value
    assert error.__cause__ is None
    if not error.__suppress_context__:
        assert error.__context__ is None


def test_message_of_a_server_is_escaped(project, answerer):
    """Invariant 10: a terminal sees what a server says only with its control characters escaped."""
    server = answerer(b'{"error":"BAD_REQUEST","message":"\\u001b[2Jno\\n\\u202e xxx"}\n')
    message = refusal(project.hotenv("dump", env={"HOTENV_SOCKET": server.path}), 9)
    assert r"BAD_REQUEST: \x1b[2Jno\n\u202e xxx" in message


def test_long_message_of_a_server_is_cut(project, answerer):
    """A server's message is shown no longer than a few lines."""
    server = answerer(b'{"error":"BAD_REQUEST","message":"%s"}\n' % (b"x" * 100000))
    message = refusal(project.hotenv("dump", env={"HOTENV_SOCKET": server.path}), 9)
    assert "BAD_REQUEST: xxx" in message
    assert len(message) < 2000


@pytest.mark.parametrize("command", [["dump"], ["run", "--", "true"]], ids=short)
@pytest.mark.parametrize(
    "response",
    [
        b'{"env":{"A":"s3cr3t\n',
        b'{"env":{"A":"s3cr3t\\x"}}\n',
        b'{"env":{"A\t":"s3cr3t"}}\n',
        b"s3cr3t\n",
    ],
    ids=short,
)
def test_wrong_answer_is_not_shown(project, answerer, response, command):
    """Invariant 1: nothing of an answer that cannot be parsed is shown.

    These processes never import json, whose C half then reports errors in another way.
    """
    env = {"HOTENV_SOCKET": answerer(response).path}
    done = project.hotenv(*command, env=env)
    assert "s3cr3t" not in refusal(done, 9)
    assert b"s3cr3t" not in done.stdout


# -- a session that lost its files --

_CLIENT_LOSSES = pytest.mark.parametrize(
    "loss",
    ["socket removed", "socket replaced", "marker replaced by --force", "marker replaced"],
)


def _client_lose_files(project, loss):
    """Take from the project's session the files that it can be found by."""
    path = project.socket_path()
    if loss == "socket removed":
        os.unlink(path)
    elif loss == "socket replaced":
        os.unlink(path)
        Path(path).touch()
    elif loss == "marker replaced by --force":
        project.serve(b"A=new\n", "--force")
    else:
        assert loss == "marker replaced"
        project.points_at("/tmp/x.sock")


@_CLIENT_LOSSES
def test_server_that_lost_its_files_ends(project, loss):
    """A server that can no longer be found notices that at its next look, and ends with 0."""
    project.program = program_with("hotenv.TICK = 0.5")
    server = project.serve()
    began = time.monotonic()
    _client_lose_files(project, loss)
    assert ended(server) == 0
    assert time.monotonic() - began < 2.5


@pytest.mark.parametrize(
    "loss, left",
    [
        ("socket removed", []),
        ("socket replaced", ["socket"]),
        ("marker replaced by --force", ["marker"]),
        ("marker replaced", ["marker"]),
    ],
)
def test_server_removes_only_its_own_files(project, loss, left):
    """Invariant 7: a server whose files were replaced leaves those of others alone.

    The link to the project's directory, which lies beside the socket, goes in any case.
    """
    project.program = program_with("hotenv.TICK = 0.5")
    server = project.serve()
    path = project.socket_path()
    link = path[: -len(".sock")]
    _client_lose_files(project, loss)
    assert ended(server) == 0
    found = []
    if os.path.exists(path):
        found.append("socket")
    if project.marker.exists():
        found.append("marker")
    if os.path.lexists(link):
        found.append("link")
    assert found == left


def test_force_puts_a_session_in_place_of_another(project):
    """The session that `serve --force` starts is the one that a command finds."""
    project.serve(b"A=old\n")
    project.serve(b"A=new\n", "--force")
    assert project.dump() == {b"A": b"new"}


def test_missing_marker_ends_no_session(project):
    """A session lives on when its marker is removed: it can still be named by its socket."""
    project.program = program_with("hotenv.TICK = 0.5")
    server = project.serve()
    path = project.socket_path()
    project.marker.unlink()

    # The second server starts later, and ends when it looks at its files: by then the first server
    # has looked at its own.
    project.dir = project.root / "q"
    project.dir.mkdir()
    second = project.serve()
    os.unlink(project.socket_path())
    assert ended(second) == 0
    assert server.poll() is None
    assert project.dump("--socket", path) == {b"A": b"1"}


def test_force_over_a_copy_spares_the_original(project):
    """`serve --force` in a copy of a project, by `cp -a`, ends no session of the original."""
    project.serve()
    path = project.socket_path()
    copy = project.root / "c"
    shutil.copytree(str(project.dir), str(copy))
    project.dir = copy
    project.serve(b"A=c\n", "--force")
    assert project.dump("--socket", path) == {b"A": b"1"}


# -- what has its time --


def test_lock_of_somebody_else_delays_little(project):
    """A server gives up a lock that somebody else holds, and begins and ends without it."""
    project.program = program_with("hotenv.LOCK_TIME = 0.5")
    descriptor = os.open(str(project.dir), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert ended(project.serve(), signal.SIGTERM) == 0
    assert project.files() == LEFT_BEHIND
    os.close(descriptor)


@pytest.mark.parametrize(
    "request_, more",
    [
        pytest.param(b"", b"", id="silent"),
        pytest.param(b'{"comm', b"", id="unfinished"),
        pytest.param(b'{"comm', b"x", id="a byte now and then"),
    ],
)
def test_request_has_its_time(project, request_, more):
    """A client whose request is not complete in time is let go without the environment."""
    project.program = program_with("hotenv.REQUEST_TIME = 0.5")
    project.serve()
    began = time.monotonic()
    client = project.connect()
    client.sendall(request_)
    while not select.select([client], [], [], 0.05)[0]:
        client.send(more)
    assert b"env" not in answer(client)
    assert 0.45 < time.monotonic() - began < 3.5


@pytest.mark.parametrize("drip", [b"", b" "], ids=["silent", "a byte now and then"])
def test_exchange_has_its_time(project, drip):
    """A client gives up a server that does not answer in time, and no byte prolongs that time."""
    project.program = program_with("hotenv.EXCHANGE_TIME = 0.5")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(PATIENCE)
        listener.bind(str(project.root / "slow.sock"))
        listener.listen(1)
        path = listener.getsockname()
        began = time.monotonic()
        run = project.start("run", "--socket", path, "--", "true", stdout=PIPE, stderr=PIPE)
        with listener.accept()[0] as accepted:
            while run.poll() is None:
                with contextlib.suppress(OSError):
                    accepted.send(drip)
                time.sleep(0.01)
        assert 0.45 < time.monotonic() - began < 3.5
    assert "no answer in time" in refusal(finished(run), 4)


def _client_with_small_buffer(project):
    """Return a client that has read the beginning of an answer, and how many bytes these are."""
    client = project.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(DUMP)
    return client, len(client.recv(1000))


def test_client_that_stops_reading_is_let_go(project):
    """A client that reads nothing of its answer for some time loses the rest."""
    project.program = program_with("hotenv.ANSWER_TIME = 0.5")
    size = 8 * MEGABYTE
    project.serve(b"A=%s\n" % (b"x" * size))
    began = time.monotonic()
    client, received = _client_with_small_buffer(project)

    def is_let_go():
        try:
            client.send(b"\n")
        except OSError:
            return True
        return False

    until(is_let_go, "the server to close the connection", 3.5)
    assert time.monotonic() - began > 0.45
    assert received + len(answer(client)) < size


def test_client_that_reads_slowly_stays(project):
    """An answer has its time from its last progress, so a slow reader gets all of it."""
    project.program = program_with("hotenv.ANSWER_TIME = 1")
    size = 8 * MEGABYTE
    project.serve(b"A=%s\n" % (b"x" * size))
    client, received = _client_with_small_buffer(project)
    began = time.monotonic()
    while time.monotonic() < began + 2:
        time.sleep(0.1)
        received += len(client.recv(1 << 18))
    assert received < size, "the client has read too fast for this test"
    assert received + len(answer(client)) > size


# ==== launch ======================================================================================
# A command sees nothing of hotenv but the variables of the session.


def test_run_becomes_the_command(session):
    """Invariant 8: `run` is an exec, so the command has its pid, and nothing else is printed."""
    run = session.start("run", "--", "sh", "-c", "echo $$", stdout=PIPE, stderr=PIPE)
    done = finished(run)
    assert done.stdout == b"%d\n" % run.pid
    assert done.stderr == b""


@pytest.mark.parametrize("status", [0, 1, 2, 9, 127, 255])
def test_exit_status_is_the_commands(session, status):
    """Invariant 8: `run` has the exit status of its command, and says nothing."""
    done = session.run("sh", "-c", "exit %d" % status)
    assert done.returncode == status
    assert done.stderr == b""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE])
def test_death_by_signal_is_the_commands(session, signum):
    """Invariant 8: `run` dies of the signal that its command dies of, and says nothing."""
    done = session.run("sh", "-c", "ulimit -c 0; kill -%d $$" % signum)
    assert done.returncode == -signum
    assert done.stderr == b""


def test_command_dies_of_a_closed_pipe(session):
    """Invariant 8: a command does not inherit that Python ignores SIGPIPE."""
    assert session.run("sh", "-c", "yes | head -1").stderr == b""


@only_linux
def test_command_inherits_no_signal_handling(session):
    """Invariant 8: no signal is ignored, blocked or caught because of Python."""
    status = session.run("cat", "/proc/self/status").stdout.decode()
    masks = dict(re.findall(r"^Sig(Ign|Blk|Cgt):\s*([0-9a-f]+)$", status, re.MULTILINE))
    assert {name: int(mask, 16) for name, mask in masks.items()} == {"Ign": 0, "Blk": 0, "Cgt": 0}


_LAUNCH_ARGUMENTS = [
    b"",
    b" ",
    b"two words",
    b"new\nline",
    b"\xff\xfe",
    "\u00e9\u20ac".encode(),
    b"--",
    b"-x",
    b"$HOME",
    b"*",
    b"'",
    b'"',
    b"\\",
]


@pytest.mark.parametrize(
    "locale",
    [
        pytest.param({}, id="UTF-8"),
        pytest.param({"LC_ALL": "C"}, id="C"),
        pytest.param({"LC_ALL": "POSIX"}, id="POSIX"),
        pytest.param(ASCII, id="ASCII"),
    ],
)
def test_arguments_arrive_to_the_byte(session, locale):
    """Invariant 8: a command gets its arguments as they were typed, in every locale."""
    done = session.run("printf", "%s\\0", *_LAUNCH_ARGUMENTS, env=locale)
    assert done.stdout == b"".join(arg + b"\0" for arg in _LAUNCH_ARGUMENTS)
    assert done.stderr == b""


def test_command_has_the_terminal(session):
    """Invariant 8: a command's streams are the terminal, and Ctrl-C there reaches it."""
    lines = """
        test -t 0 && test -t 1 && test -t 2
        echo on=$?
        read line
        trap 'echo caught; exit 7' INT
        echo got $line
        while :; do sleep 0.02; done
    """
    command = session.command(["run", "--", "sh", "-c", lines])
    with on_terminal(*command, cwd=session.dir, env=session.env) as (pid, terminal):
        read_until(terminal, b"on=0")
        os.write(terminal, b"typed\n")
        read_until(terminal, b"got typed\r\n")
        os.write(terminal, b"\x03")
        read_until(terminal, b"caught")
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 7


# -- locales --

_LAUNCH_VALUE = "\u00e9\u20ac\U0001f511".encode()


@pytest.fixture(scope="module", params=["latin-1", "ascii"])
def odd_locale(request, tmp_path_factory):
    """The variables of a locale that is not UTF-8."""
    if request.param == "ascii":
        return ASCII

    # No system has to have a Latin-1 locale, so this one is made here.
    where = tmp_path_factory.mktemp("locale") / "xx_XX.ISO-8859-1"
    command = ["localedef", "-c", "-i", "POSIX", "-f", "ISO-8859-1", str(where)]
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(command, stderr=DEVNULL)
    variables = {"LOCPATH": str(where.parent), "LC_ALL": where.name, "PYTHONUTF8": "0"}
    probe = "import sys; sys.exit('8859' not in sys.getfilesystemencoding())"
    if subprocess.run([sys.executable, "-c", probe], env=variables).returncode:
        pytest.skip("cannot make a Latin-1 locale here")
    return variables


@pytest.fixture
def odd_session(project, odd_locale):
    """A Project with a session whose server has a locale that is not UTF-8."""
    project.serve(b"A=%s\n" % _LAUNCH_VALUE, "--verbose", env=odd_locale)
    return project


@pytest.fixture(params=["UTF-8", "as the server"])
def client_locale(request, odd_locale):
    """The variables of the locale that a client has: UTF-8, or the one of its server."""
    if request.param == "UTF-8":
        return {}
    return odd_locale


def test_locale_changes_no_answer(odd_session):
    """A server takes its input for UTF-8, whatever its locale."""
    assert odd_session.ask() == b'{"env":{"A":"\\u00e9\\u20ac\\ud83d\\udd11"}}\n'


@pytest.mark.parametrize("form, end", [("plain", b"\n"), ("nul", b"\0")])
def test_locale_changes_no_dump(odd_session, client_locale, form, end):
    """`dump` prints UTF-8, whatever its locale."""
    done = odd_session.hotenv("dump", "--format", form, env=client_locale)
    assert done.stdout == b"A=" + _LAUNCH_VALUE + end


def test_locale_changes_no_command(odd_session, client_locale):
    """A command gets values and arguments as UTF-8, whatever the locale of `run`."""
    printed = ["sh", "-c", 'printf "%s %s" "$A" "$1"', "sh", b"\xc3\xa9"]
    done = odd_session.run(*printed, env=client_locale)
    assert done.stdout == _LAUNCH_VALUE + b" \xc3\xa9"
    assert done.stderr == b""


def test_locale_changes_no_line_of_the_log(odd_session, client_locale):
    """The log has arguments as UTF-8, whatever the locale of the server."""
    assert odd_session.run("true", b"\xc3\xa9", env=client_locale).returncode == 0
    assert odd_session.log().endswith(b"run true \xc3\xa9\n")


@pytest.mark.parametrize(
    "options, variable, value",
    [
        ([], b"ODD", b"\xe9"),
        (["--define", b"D=\xe9\xc3\xa9"], b"D", b"\xe9\xc3\xa9"),
        (["--define", b"N\xe9=1"], b"N\xe9", b"1"),
        (["--bin", b"/\xe9"], b"PATH", b"/\xe9:" + PATHS.encode()),
    ],
    ids=["inherited", "defined value", "defined name", "bin"],
)
def test_locale_changes_no_option(odd_session, odd_locale, options, variable, value):
    """Bytes that are no UTF-8 reach a command from the environment and from options of `run`."""
    env = {**odd_locale, "ODD": b"\xe9"}
    done = odd_session.hotenv("run", *options, "--", ENV, "-0", env=env)
    assert environment_of(done).get(variable) == value


# -- the environment, and the program that is found --


@pytest.mark.parametrize(
    "inherited",
    [
        {},
        {"LC_CTYPE": "C.UTF-8"},
        {"LC_CTYPE": "C"},
        {"LANG": "C"},
        {"LC_ALL": "C"},
        {"LC_ALL": ""},
        {"PYTHONUTF8": "1"},
        {"PYTHONCOERCECLOCALE": "0"},
        {"EMPTY": ""},
        {"A": "mine"},
    ],
    ids=str,
)
def test_command_sees_no_other_variable(session, inherited):
    """Invariant 8: a command has its parent's variables and the session's, and no other."""
    done = subprocess.run(
        session.command(["run", "--", ENV, "-0"]),
        env=inherited,
        cwd=str(session.dir),
        stdout=PIPE,
        stderr=PIPE,
        timeout=PATIENCE,
    )
    expected = {name.encode(): value.encode() for name, value in inherited.items()}
    expected.update({b"A": b"1", b"B": b"two words", b"EMPTY": b""})
    seen = environment_of(done)
    if sys.platform == "darwin":
        # On macOS every process gets this variable from the system.
        seen.pop(b"__CF_USER_TEXT_ENCODING", None)
    assert seen == expected
    assert done.stderr == b""


@pytest.fixture
def tools(project):
    """The project directory, with programs in it, and with files that are no programs."""
    programs = {
        "a tool": b"#!/bin/sh\necho here $A\n",
        "new/tool": b"#!/bin/sh\necho new\n",
        "old/tool": b"#!/bin/sh\necho old\n",
        "new/broken": b"#!/no/such/interpreter\n",
        "bin/plain": b'echo "$A:$0:$1:$2"\n',
        "bin/dos": b"#!/bin/sh\r\necho\r\n",
    }
    for name, text in programs.items():
        script(project.dir / name, text)
    for name in ("no/tool", "no/x"):
        script(project.dir / name, b"", 0o644)
    (project.dir / "dir/tool").mkdir(parents=True)
    return project.dir


def test_empty_part_of_path_is_the_directory(project, session, tools):
    """A command is looked up in the current directory for an empty part of PATH."""
    env = {"HOTENV_SOCKET": session.socket_path(), "PATH": "/nowhere:"}
    assert project.run("a tool", env=env).stdout == b"here 1\n"


def test_command_is_found_in_a_bin_directory(project, session, tools):
    """A command is looked up in the directories of --bin."""
    env = {"HOTENV_SOCKET": session.socket_path(), "PATH": "/nowhere:"}
    options = ["--isolated", "--bin", str(tools)]
    done = project.hotenv("run", *options, "--", "a tool", env=env)
    assert done.stdout == b"here 1\n"


@pytest.mark.parametrize(
    "name, shown",
    [
        ("plain", "{bin}/plain"),
        ("{bin}/plain", "{bin}/plain"),
        ("./plain", "./plain"),
    ],
)
def test_script_without_shebang_is_the_shells(project, session, tools, name, shown):
    """A script without a first line that names an interpreter is run by /bin/sh."""
    directory = tools / "bin"
    env = {"HOTENV_SOCKET": session.socket_path(), "PATH": f"{PATHS}:{directory}"}
    done = project.run(name.format(bin=directory), "a b", "", cwd=directory, env=env)
    assert done.stdout.decode() == "1:%s:a b:\n" % shown.format(bin=directory)


def _launch_serve_path(project, tools):
    """Start a session whose PATH leads by what is no program to the directory `new`."""
    parts = [f"{tools}/dir", "/nowhere", "/etc/passwd", f"{tools}/no", f"{tools}/new"]
    parts += ["/bin", "/usr/bin"]
    project.serve(b"PATH=%s\n" % ":".join(parts).encode())


def test_command_is_found_on_the_sessions_path(project, tools):
    """A command is looked up on the PATH that it will have, past what cannot be executed."""
    _launch_serve_path(project, tools)
    assert project.run("tool", env={"PATH": f"{tools}/old"}).stdout == b"new\n"


@pytest.mark.parametrize(
    "name, reason",
    [
        ("{tools}/no/tool", "Permission denied|not executable"),
        ("broken", "line, /no/such/interpreter,"),
        ("{tools}/bin/dos", r"/bin/sh\\r, is missing"),
        ("x", "not found on PATH as a"),
    ],
)
def test_program_that_cannot_start_is_8(project, tools, name, reason):
    """A program that is found, but cannot be executed, is refused with the reason."""
    _launch_serve_path(project, tools)
    message = refusal(project.run(name.format(tools=tools)), 8)
    assert re.search(reason, message), message


_LAUNCH_IMPOSSIBLE = pytest.mark.parametrize(
    "command, reason",
    [
        ("no-such-command-anywhere", "not found"),
        ("./missing", "No such file"),
        ("/etc/passwd", "Permission denied|not executable"),
        ("/", ""),
        ("", ""),
        ("/etc/passwd/x", "Not a directory"),
        ("\x1b[31m\n", r"\\x1b\[31m\\n"),
        ("x" * 5000, ""),
    ],
    ids=short,
)


@_LAUNCH_IMPOSSIBLE
def test_command_that_cannot_be_run_is_8(session, command, reason):
    """A command that cannot be executed is refused with the reason."""
    message = refusal(session.run(command), 8)
    assert message.startswith("cannot run ")
    assert re.search(reason, message), message


@_LAUNCH_IMPOSSIBLE
def test_unread_refusal_of_a_command_is_8(session, command, reason):
    """A command that cannot be executed is 8 also where nobody reads stderr any more."""
    with subprocess.Popen("true", stdin=PIPE) as gone:
        assert gone.wait() == 0
        assert session.run(command, stderr=gone.stdin).returncode == 8


@only_linux
@pytest.mark.parametrize("inherited", [100, 131000])
def test_environment_too_large_names_the_cause(project, inherited):
    """Invariant 1: where variables are too large for exec, the largest is named, but not shown."""
    # Linux takes 131,071 bytes for one variable.
    value = b"s3cr3t" + b"x" * 140000
    project.serve(b"SMALL=1\nHUGE_ONE=%s\n" % value)
    message = refusal(project.run("true", env={"OTHER": "y" * inherited}), 8)
    assert "HUGE_ONE" in message
    assert str(len(value)) in message
    assert "s3cr3t" not in message


# -- what a process inherits --

_LAUNCH_FORMS = pytest.mark.parametrize("options", [[], ["--mask"]], ids=str)


def _launch_inherited(session, options, expression, handed):
    """Return what a Python program inherits when it is executed, and when hotenv runs it.

    `expression` is what the program prints; `handed` is a descriptor that it is given.
    """

    def before():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    code = f"import json, os, signal; print(json.dumps({expression}))"
    command = [sys.executable, "-ISc", code]
    how = {"stdin": DEVNULL, "stdout": PIPE, "pass_fds": [handed], "preexec_fn": before}
    executed = subprocess.run(command, timeout=PATIENCE, **how)
    run = session.hotenv("run", *options, "--", *command, **how)
    assert run.returncode == 0, run.stderr
    return json.loads(executed.stdout.decode()), json.loads(run.stdout.decode())


@pytest.fixture
def handed():
    """A descriptor that a test hands to a program."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@_LAUNCH_FORMS
def test_command_inherits_blocked_signals(session, handed, options):
    """Invariant 8: the signals that are blocked for a command are those that its caller blocked."""
    expression = "sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    executed, run = _launch_inherited(session, options, expression, handed)
    assert run == executed
    assert signal.SIGUSR1 in executed


@_LAUNCH_FORMS
def test_command_inherits_ignored_signals(session, handed, options):
    """Invariant 8: the signals that are ignored for a command are those that its caller ignored."""
    expression = (
        "sorted(s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN)"
    )
    executed, run = _launch_inherited(session, options, expression, handed)
    assert run == executed
    assert signal.SIGHUP in executed


@_LAUNCH_FORMS
def test_command_inherits_descriptors(session, handed, options):
    """Invariant 8: a command has the descriptors of its caller, and none of hotenv's."""
    expression = "sorted(int(n) for n in os.listdir('/dev/fd') if os.path.exists('/dev/fd/' + n))"
    executed, run = _launch_inherited(session, options, expression, handed)
    assert run == executed
    assert handed in executed


# -- a dump that is at work --


@pytest.fixture
def blocked_dump(project):
    """A `dump` that holds an environment in its memory, while nobody reads its output.

    Its limit of core dumps is as high as can be.
    """
    become_stranger = None
    if ROOT:
        # Root could read every process, so that the dump has to be another user's.
        become_stranger = project.for_strangers(STRANGER)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]

    def before():
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        if become_stranger:
            become_stranger()

    project.serve(b"A=%s\n" % (b"s3cr3t" * 50000), preexec_fn=before)
    reader, writer = os.pipe()
    dump = project.start("dump", stdout=writer, preexec_fn=before)
    os.close(writer)
    assert os.read(reader, 10) == b"A=s3cr3ts3"
    yield dump
    os.close(reader)


@only_linux
def test_blocked_dump_leaves_no_core(blocked_dump):
    """A `dump` that dies while it holds an environment leaves no core file."""
    rows = Path("/proc/%d/limits" % blocked_dump.pid).read_text()
    assert re.search(r"Max core file size +0 ", rows), rows


@only_linux
def test_blocked_dump_is_closed_to_others(blocked_dump):
    """The memory of a `dump` cannot be read by other processes of the same user."""
    assert os.stat("/proc/%d/mem" % blocked_dump.pid).st_uid == 0


# -- run --optional --


def _launch_optional(project):
    """Run a command with --optional, which prints A and B and ends with 5."""
    words = ["run", "--optional", "--define", "B=2", "--", "sh", "-c", "echo $A $B; exit 5"]
    return project.hotenv(*words, env={"A": "host"})


def _launch_prepare(project, state):
    """Bring about a state in which there is no session for us."""
    if state == "dead":
        server = project.serve(b"A=session\n")
        assert ended(server, signal.SIGKILL) == -signal.SIGKILL
    elif "stranger" in state:
        # The server is another user's. The marker that names it is root's, or theirs.
        plain = project.program
        become_stranger = project.for_strangers(STRANGER)
        project.serve(b"A=evil\n", preexec_fn=become_stranger)
        project.program = plain
        owner = {"a stranger's server": 0, "a stranger's marker": STRANGER}[state]
        os.chown(str(project.marker), owner, 0)
    else:
        assert state == "none"


@pytest.mark.parametrize(
    "state",
    [
        "none",
        "dead",
        pytest.param("a stranger's marker", marks=only_root),
        pytest.param("a stranger's server", marks=only_root),
    ],
)
def test_optional_runs_without_a_session(project, state):
    """Where there is no session to be believed, --optional runs the command and says so."""
    _launch_prepare(project, state)
    done = _launch_optional(project)
    assert done.stdout == b"host 2\n"
    assert "\n" not in refusal(done, 5)


def test_optional_asks_a_live_session(project):
    """Where a session answers, --optional changes nothing."""
    project.serve(b"A=session\n")
    done = _launch_optional(project)
    assert done.stdout == b"session 2\n"
    assert done.stderr == b""
    assert done.returncode == 5


def test_optional_refuses_a_damaged_marker(project):
    """A marker that is damaged is an error also with --optional, and the command does not run."""
    project.marker.write_bytes(b"x\n")
    done = _launch_optional(project)
    refusal(done, 9)
    assert done.stdout == b""


# ==== masked launch ===============================================================================
# A command whose output is masked behaves as if it were run without a mask.

# This program says "ready", and then each signal that comes. SIGUSR1 ends it with status 5.
_MASKED_LISTENER = """
import os, signal
def say(signum, frame):
    os.write(1, b"got %d\\n" % signum)
    if signum == signal.SIGUSR1:
        os._exit(5)
for name in "INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "TSTP", "WINCH", "VTALRM", "IO", "RTMIN":
    # macOS has no SIGRTMIN: there SIGIO takes its place.
    signal.signal(getattr(signal, "SIG" + name, signal.SIGIO), say)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def _masked_signals_heard(said):
    """Return the signals that a listener has had, in the order of their numbers."""
    return sorted(int(number) for number in re.findall(rb"got (\d+)", said))


def _masked_wait_for(path, wanted):
    """Wait until a file holds these bytes."""
    until(lambda: path.exists() and wanted in path.read_bytes(), "what a command writes")


class MaskedRuns:
    """Starts commands with masked output, in a `project` whose session has a TOKEN and a PIN."""

    def __init__(self, project):
        self.project = project

    def words(self, *argv):
        """Return the arguments of hotenv that run a command with its output masked."""
        return ["run", "--mask", "--", *argv]

    def shell_line(self, *argv):
        """Return a line for a shell that does the same."""
        return shlex.join(self.project.command(self.words(*argv)))

    def run(self, *argv, **how):
        """Run a command until it ends; return a CompletedProcess."""
        return self.project.hotenv(*self.words(*argv), **{"stdin": DEVNULL, **how})

    @contextlib.contextmanager
    def start(self, *argv, **how):
        """Start a command and yield its process, in a group of its own that ends with the test."""
        how = {"stdin": DEVNULL, "stdout": PIPE, "preexec_fn": os.setpgrp, **how}
        process = self.project.start(*self.words(*argv), bufsize=0, **how)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def on_terminal(self, *argv, **redirected):
        """Start a command on a terminal of its own, as the function on_terminal does."""
        command = self.project.command(self.words(*argv))
        return on_terminal(*command, cwd=self.project.dir, env=self.project.env, **redirected)


@pytest.fixture(scope="module")
def masked():
    """MaskedRuns from a session that many tests share."""
    for project in standing(b"TOKEN=%s\nPIN=pin-8443\n" % TOKEN.encode()):
        yield MaskedRuns(project)


# -- how a masked command ends --

_MASKED_DEADLY_SIGNALS = [
    signal.SIGTERM,
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGQUIT,
    signal.SIGINT,
]
if LINUX:
    # The C library keeps these two signals for itself.
    _MASKED_DEADLY_SIGNALS += [32, 33]


@pytest.mark.parametrize("signum", _MASKED_DEADLY_SIGNALS)
def test_masked_run_dies_as_its_command(masked, signum, tmp_path):
    """A masked run dies of the signal that its command died of; it leaves no word and no core."""
    code = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL);"
        f"os.kill(os.getpid(), {int(signum)})"
    )
    env = {"HOTENV_SOCKET": masked.project.socket_path()}
    done = masked.run(sys.executable, "-c", code, env=env, cwd=tmp_path)
    assert done.returncode == -signum
    assert done.stdout == b""
    assert done.stderr == b""
    assert os.listdir(str(tmp_path)) == []


def test_masked_exit_status_is_the_commands(masked):
    """A masked run has the exit status of its command."""
    assert masked.run("sh", "-c", "exit 37").returncode == 37


def test_masked_command_not_found_is_8(masked):
    """A masked command that cannot be executed is refused as without --mask."""
    done = masked.run("/no/such/command")
    message = refusal(done, 8)
    assert message.startswith("cannot run /no/such/command: No such file or directory")
    assert done.stdout == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_masked_output_on_a_full_disk_is_8(masked):
    """A masked run whose output finds no room ends its command, and says so."""
    with open("/dev/full", "wb") as full:
        done = masked.run("sh", "-c", "echo x; while :; do echo y; done", stdout=full)
    message = refusal(done, 8)
    assert message.startswith("cannot write the command's output: No space left on device")


def test_masked_command_is_the_only_child(masked):
    """A masked run has one child: its command."""
    with masked.start("yes") as process:
        read_until(process.stdout.fileno(), b"y\ny\n")
        assert [name for _, _, name in children(process.pid)] == ["yes"]


def _masked_has_ended(pid):
    """Return whether a process has ended, by its absence or as a zombie."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pid], stdout=PIPE)
    return shown.stdout[:1] in (b"", b"Z")


def test_masked_command_dies_with_hotenv(masked):
    """When a masked run is killed while its command writes, the command ends, too."""
    with masked.start("yes", stderr=PIPE) as process:
        read_until(process.stdout.fileno(), b"y\ny\n")
        child = children(process.pid)[0][0]
        assert ended(process, signal.SIGKILL) == -signal.SIGKILL
        until(lambda: _masked_has_ended(child), "the end of the command")
        assert process.stderr.read() == b""


def test_masked_command_dies_with_its_reader(masked):
    """When the reader of a masked run has gone, both its command and the run die of SIGPIPE."""
    with masked.start("yes", stderr=PIPE) as process:
        read_until(process.stdout.fileno(), b"y\ny\n")
        child = children(process.pid)[0][0]
        process.stdout.close()
        assert ended(process) == -signal.SIGPIPE
        until(lambda: _masked_has_ended(child), "the end of the command")
        assert process.stderr.read() == b""


@only_linux
def test_kill_9_ends_a_masked_command(masked):
    """A masked command dies when its run is killed by -9, as one that was executed would."""
    with masked.start("sh", "-c", "echo ready; exec " + unique_sleep()) as process:
        read_until(process.stdout.fileno(), b"ready")
        child = children(process.pid)[-1][0]
        process.kill()
        until(lambda: _masked_has_ended(child), "the end of the command")


@pytest.mark.parametrize("left_behind", ["sleep 300", "yes $TOKEN"])
def test_grandchild_is_not_waited_for(masked, left_behind):
    """A masked run ends with its command, whoever else still holds the pipe of its output."""
    lines = f"({left_behind}) & echo $! >&2; printf 'the end, sk-live'; exit 4"
    done = masked.run("sh", "-c", lines)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(done.stderr), signal.SIGKILL)
    assert done.returncode == 4
    assert b"the end, sk-live" in done.stdout
    assert b"51H8" not in done.stdout


def test_signal_ends_a_run_with_a_slow_reader(masked):
    """A signal ends a masked run whose command has ended, and that waits for a slow reader."""
    with masked.start(sys.executable, "-c", "print('x' * 200000)") as process:
        received = 0
        while received < 100_000:
            received += len(process.stdout.read(100_000 - received))

        def command_has_ended():
            states = [state for _, state, _ in children(process.pid)]
            return [state for state in states if not state.startswith("Z")] == []

        until(command_has_ended, "the end of the command")
        assert ended(process, signal.SIGTERM) == -signal.SIGTERM


def test_ended_masked_run_holds_no_descriptor(masked):
    """A masked run leaves no process behind that keeps a descriptor of its caller open."""
    for _ in range(3):
        reader, writer = os.pipe()
        with open(reader, "rb", 0) as end_of_file:
            with masked.start("sh", "-c", "echo $TOKEN", pass_fds=[writer]) as process:
                os.close(writer)
                assert ended(process) == 0
                os.set_blocking(reader, False)
                # Empty bytes are the end of the file; None would say that somebody may write.
                assert end_of_file.read(1) == b""


# -- streams --


def test_masked_streams_stay_apart(masked):
    """A masked run masks stdout and stderr, each of them by itself."""
    done = masked.run("sh", "-c", "echo out $TOKEN; echo err $PIN >&2")
    assert done.stdout == b"out [hidden:TOKEN]\n"
    assert done.stderr == b"err [hidden:PIN]\n"


@pytest.mark.parametrize("joined", ["one pipe", "one file", "one file opened twice"])
def test_streams_of_one_file_keep_their_order(masked, joined, tmp_path):
    """Lines that a command writes to stdout and stderr in turn keep their order in one file."""
    lines = """
        for i in 1 2 3 4 5 6 7 8 9; do
            echo o$i
            echo e$i >&2
            printf sk-live-
            printf '51H8sVq0\\n' >&2
        done
    """
    path = tmp_path / "out"
    with open(path, "w+b", buffering=0) as file, open(path, "ab", buffering=0) as other:
        streams = {
            "one pipe": (PIPE, STDOUT),
            "one file": (file, file),
            "one file opened twice": (file, other),
        }
        stdout, stderr = streams[joined]
        done = masked.run("sh", "-c", lines, stdout=stdout, stderr=stderr)
    written = done.stdout
    if joined != "one pipe":
        written = path.read_bytes()
    assert written == b"".join(b"o%d\ne%d\n[hidden:TOKEN]\n" % (i, i) for i in range(1, 10))


def test_closed_stdout_stays_closed(masked):
    """A command that is run with stdout closed finds it closed, and its stderr is masked."""

    def close_streams():
        os.close(1)
        os.close(0)

    lines = "echo $TOKEN >&2; if echo x 2>/dev/null; then exit 1; fi; exit 6"
    how = {"stdin": None, "stdout": None, "preexec_fn": close_streams}
    done = masked.run("sh", "-c", lines, **how)
    assert done.returncode == 6
    assert done.stderr == b"[hidden:TOKEN]\n"


def test_masked_run_takes_many_descriptors(masked):
    """A masked run works beside a thousand descriptors of its caller, which select() could not."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 1300:
        pytest.skip("needs 1,300 descriptors")

    def open_many():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1300, 1300))
        for number in range(3, 1100):
            os.dup2(0, number)

    code = (
        "import os, time; os.write(1, b'1'); time.sleep(0.05);"
        "os.write(2, b'2 ' + os.environ['TOKEN'].encode())"
    )
    done = masked.run(sys.executable, "-c", code, close_fds=False, preexec_fn=open_many)
    assert done.stdout == b"1"
    assert done.stderr == b"2 [hidden:TOKEN]"


def test_masked_prompt_comes_through_at_once(masked):
    """What a command writes without a newline is there before the command goes on."""
    with masked.start("sh", "-c", "printf 'Password: '; read x", stdin=PIPE) as process:
        assert read_until(process.stdout.fileno(), b": ") == b"Password: "
        process.stdin.close()


def test_value_in_pieces_is_masked(masked):
    """A value that a command writes in pieces is masked, however long it waits between them."""
    pieces = ["Password: ", "sk-live-", "51H8sVq0", ". and pin-844", "3\\n"]
    lines = "; read x; ".join("printf '%s'" % piece for piece in pieces)
    with masked.start("sh", "-c", lines, stdin=PIPE) as process:
        output = process.stdout.fileno()
        seen = read_until(output, b"Password: ")
        # The first piece of a value is held back, so nothing is waited for.
        process.stdin.write(b"\n")
        for wanted in (rb"TOKEN\]", b". and ", rb"PIN\]\n"):
            process.stdin.write(b"\n")
            seen += read_until(output, wanted)
        assert seen == b"Password: [hidden:TOKEN]. and [hidden:PIN]\n"
        process.stdin.close()
        assert ended(process) == 0


def test_unread_stdout_does_not_hold_up_stderr(masked):
    """What a command writes to stderr comes through while nobody reads its stdout."""
    lines = [
        "import os",
        "os.write(2, b'one\\n')",
        "os.write(1, b' pin-8443' * 7000)",
        "os.write(2, b'two\\n')",
    ]
    with masked.start(sys.executable, "-c", "\n".join(lines), stderr=PIPE) as process:
        assert read_until(process.stderr.fileno(), b"two\n") == b"one\ntwo\n"
        assert process.stdout.read() == b" [hidden:PIN]" * 7000


def test_slow_reader_gets_all_masked_output(masked):
    """A masked run waits while its reader does, and then the reader gets everything."""
    code = "import os\nfor n in range(20000): os.write(1, b'%07d sk-live-51H8sVq0\\n' % n)"
    with masked.start(sys.executable, "-c", code) as process:
        until(lambda: process.poll() is None and sleeps(process.pid), "full pipes")
        lines = [b"%07d [hidden:TOKEN]\n" % number for number in range(20000)]
        assert process.stdout.read() == b"".join(lines)
        assert ended(process) == 0


# -- signals --


def _masked_to_run(pid, signum):
    """Send a signal to a masked run alone."""
    os.kill(pid, signum)


def _masked_to_group(pid, signum):
    """Send a signal to the process group of a masked run."""
    os.killpg(pid, signum)


def _masked_to_command(pid, signum):
    """Send a signal to the command of a masked run alone."""
    os.kill(int(children(pid)[0][0]), signum)


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(_masked_to_run, id="to the run"),
        pytest.param(_masked_to_group, id="to the group"),
        pytest.param(_masked_to_command, id="to the command"),
    ],
)
def test_signal_reaches_a_masked_command_once(masked, send):
    """A masked command gets each signal once, whomever it was sent to."""
    signals = [
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGUSR2,
        signal.SIGQUIT,
        signal.SIGWINCH,
        signal.SIGVTALRM,
        signal.SIGIO,
    ]
    if LINUX:
        signals.append(signal.SIGRTMIN)
    with masked.start(sys.executable, "-c", _MASKED_LISTENER) as process:
        output = process.stdout.fileno()
        said = read_until(output, b"ready\n")
        for signum in signals:
            send(process.pid, signum)
            said += read_until(output, b"got %d\n" % signum)
        os.kill(process.pid, signal.SIGUSR1)
        said += read_until(output)
        assert _masked_signals_heard(said) == sorted([*signals, signal.SIGUSR1])
        assert ended(process) == 5


@pytest.mark.parametrize("continued", ["the run", "the command"])
@pytest.mark.parametrize(
    "apart",
    [
        pytest.param(os.setpgrp, id="group"),
        pytest.param(os.setsid, id="session"),
    ],
)
def test_stopped_masked_command_goes_on(masked, continued, apart):
    """A masked command that was stopped goes on when it, or its run, is continued.

    No shell looks after either here, so the run must not be stopped for good.
    """
    lines = "echo ready; kill -STOP $$; echo went on"
    with masked.start("sh", "-c", lines, preexec_fn=apart) as process:

        def stopped_children():
            rows = children(process.pid)
            return [int(pid) for pid, state, _ in rows if state.startswith("T")]

        (command,) = until(stopped_children, "a command that is stopped")
        pid = {"the run": process.pid, "the command": command}[continued]
        os.kill(pid, signal.SIGCONT)
        output = read_until(process.stdout.fileno(), b"went on")
        assert output == b"ready\nwent on\n"
        assert ended(process) == 0


# -- terminals --

# This Python program prints which of its streams are terminals, and a value.
_MASKED_ASK_TERMINALS = (
    "import os; print([os.isatty(n) for n in (0, 1, 2)], os.environ['TOKEN'], end='')"
)


def test_terminal_is_handed_over_with_a_note(masked):
    """A command whose streams are a terminal gets it, unmasked, and a note says so."""
    with masked.on_terminal(sys.executable, "-c", _MASKED_ASK_TERMINALS) as (_, terminal):
        seen = read_until(terminal, TOKEN.encode())
    assert seen.endswith(b"[True, True, True] " + TOKEN.encode())
    assert b"stderr" in seen
    assert b"not masked" in seen


def test_stream_that_is_no_terminal_is_masked(masked, tmp_path):
    """A command whose stdout alone is a terminal gets it; the note is in the file of stderr."""
    path = tmp_path / "err"
    ask = [sys.executable, "-c", _MASKED_ASK_TERMINALS]
    with masked.on_terminal(*ask, stderr=path) as (pid, terminal):
        seen = read_until(terminal, TOKEN.encode())
        assert os.waitpid(pid, 0)[1] == 0
    assert seen == b"[True, True, False] " + TOKEN.encode()
    assert path.read_bytes() == b"hotenv: stdout is a terminal: not masked\n"


def test_key_reaches_a_masked_command_once(masked, tmp_path):
    """A key reaches a masked command once, also where the run leads a session.

    The leader of a session cannot leave its process group, so the key is sent to both processes.
    """
    path = tmp_path / "out"
    keys = [
        (b"\x03", signal.SIGINT),
        (b"\x1c", signal.SIGQUIT),
        (b"\x1a", signal.SIGTSTP),
    ]
    listen = [sys.executable, "-c", _MASKED_LISTENER]
    with masked.on_terminal(*listen, stdout=path) as (pid, terminal):
        _masked_wait_for(path, b"ready\n")
        for key, signum in keys:
            os.write(terminal, key)
            _masked_wait_for(path, b"got %d\n" % signum)
        os.kill(pid, signal.SIGUSR1)
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 5
    signals = [signum for _, signum in keys]
    assert _masked_signals_heard(path.read_bytes()) == sorted([*signals, signal.SIGUSR1])


class InteractiveBash:
    """A bash with job control: its `pid`, and the `terminal` that it is on."""

    def __init__(self, pid, terminal):
        self.pid = pid
        self.terminal = terminal

    def press(self, key, shown=b""):
        """Press a key, and wait for what the terminal shows."""
        os.write(self.terminal, key)
        read_until(self.terminal, shown)

    def type_line(self, line, shown=b""):
        """Type a line, and wait for what the terminal shows."""
        self.press(line.encode() + b"\n", shown)


@pytest.fixture
def bash(masked):
    """An InteractiveBash in the directory of a session."""
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    command = ["bash", "--norc", "--noprofile", "-i"]
    project = masked.project
    with on_terminal(*command, cwd=project.dir, env=project.env) as (pid, terminal):
        shell = InteractiveBash(pid, terminal)
        shell.type_line("PS1=")
        yield shell


def _masked_end_listener(bash):
    """End the listener that is the command of the only job of a bash."""
    ((run, _, _),) = children(bash.pid)
    ((command, _, _),) = children(run)
    os.kill(int(command), signal.SIGUSR1)


@pytest.mark.parametrize("resumed", ["by the shell", "by somebody else"])
def test_ctrl_z_stops_a_masked_command(masked, bash, tmp_path, resumed):
    """Ctrl-Z stops a masked command and its run, and the shell's fg has both go on."""
    path = tmp_path / "out"
    lines = "echo ready; read line; echo got $line and $TOKEN; exit 7"
    bash.type_line("%s >%s 2>&1" % (masked.shell_line("sh", "-c", lines), path))
    _masked_wait_for(path, b"ready")
    bash.press(b"\x1a", b"Stopped")
    ((run, run_state, _),) = children(bash.pid)
    ((_, command_state, _),) = children(run)
    assert run_state[0] == "T"
    assert command_state[0] == "T"

    if resumed == "by somebody else":
        # The run alone is continued. In the background its command may not read, and both stop.
        os.kill(int(run), signal.SIGCONT)

        def both_are_stopped():
            rows = children(bash.pid) + children(run)
            return [state[0] for _, state, _ in rows] == ["T", "T"]

        until(both_are_stopped, "both to stop again")
    bash.type_line("echo m=$?.", rb"m=\d+\.")

    bash.type_line("fg", b"run --mask")
    bash.type_line("words")
    _masked_wait_for(path, b"got")
    bash.type_line("echo status=$?.", rb"status=7\.")
    assert path.read_bytes() == b"ready\ngot words and [hidden:TOKEN]\n"


@pytest.mark.parametrize(
    "line, signum",
    [
        ("kill %1", signal.SIGTERM),
        ("kill $!", signal.SIGTERM),
        ("kill -INT -- -$!", signal.SIGINT),
    ],
)
def test_shell_signals_a_masked_job_once(masked, bash, tmp_path, line, signum):
    """A masked job in the background gets a signal from its shell once."""
    path = tmp_path / "out"
    listen = masked.shell_line(sys.executable, "-c", _MASKED_LISTENER)
    bash.type_line("%s >%s 2>&1 &" % (listen, path))
    _masked_wait_for(path, b"ready\n")
    bash.type_line(line)
    _masked_wait_for(path, b"got")
    _masked_end_listener(bash)
    bash.type_line("wait $!; echo status=$?.", rb"status=5\.")
    assert _masked_signals_heard(path.read_bytes()) == sorted([signum, signal.SIGUSR1])


def test_ctrl_c_reaches_a_masked_job_once(masked, bash, tmp_path):
    """A masked command in the foreground of a shell gets one SIGINT for a Ctrl-C."""
    path = tmp_path / "out"
    listen = masked.shell_line(sys.executable, "-c", _MASKED_LISTENER)
    bash.type_line("%s >%s 2>&1" % (listen, path))
    _masked_wait_for(path, b"ready\n")
    bash.press(b"\x03")
    _masked_wait_for(path, b"got")
    _masked_end_listener(bash)
    bash.type_line("echo status=$?.", rb"status=5\.")
    assert _masked_signals_heard(path.read_bytes()) == [signal.SIGINT, signal.SIGUSR1]


@pytest.mark.parametrize("room", [2, 3, 4])
def test_no_masked_command_runs_alone(project, room):
    """Where a process cannot be had that a masked run needs, its command does not run, either.

    The session's server is the first process of its user, the run the second, its command the
    third. One more helps the run out of its process group.
    """
    become_owner = None
    if ROOT:
        # The limit counts all processes of a user, so this user must have no other.
        become_owner = project.for_strangers(20000 + os.getpid() % 40000)

    def before():
        if become_owner:
            become_owner()
        resource.setrlimit(resource.RLIMIT_NPROC, (room, room))

    project.serve(b"TOKEN=%s\n" % TOKEN.encode(), preexec_fn=become_owner)
    reader, writer = os.pipe()
    words = ["run", "--mask", "--", "sh", "-c", "echo $TOKEN; exec touch ran"]
    done = project.hotenv(*words, pass_fds=[writer], preexec_fn=before)
    os.close(writer)
    # The pipe ends once all processes have ended that were handed its other end.
    assert read_until(reader) == b""
    os.close(reader)

    has_run = project.dir.joinpath("ran").exists()
    if done.returncode == 0:
        assert has_run
        assert done.stdout == b"[hidden:TOKEN]\n"
    else:
        refusal(done, 8)
        assert not has_run


# ==== importing and packaging =====================================================================
# hotenv is one file that can be copied anywhere. It takes nothing from the directory where it lies,
# each command imports only what it needs, and the package has no dependency.

# Python needs modules before hotenv's first statement. With -m it looks for them in the current
# directory too, where hotenv cannot keep a neighbour out. Only the late ones come after that.
IMPORT_EARLY = ["os", "stat", "re", "collections", "locale", "random", "struct", "shutil"]
IMPORT_LATE = [
    "json",
    "signal",
    "secrets",
    "socket",
    "selectors",
    "argparse",
    "time",
    "errno",
    "select",
    "ctypes",
    "resource",
    "fcntl",
    "difflib",
    "gettext",
]


@pytest.fixture(params=["script", "module"])
def among_neighbours(request, project):
    """A Project whose program lies beside files that end whoever imports them as modules."""
    tools = project.root / "tools"
    tools.mkdir()
    copy = shutil.copy(str(HOTENV), str(tools / "hotenv.py"))

    if request.param == "script":
        names = IMPORT_EARLY + IMPORT_LATE
        project.program = [sys.executable, copy]
    else:
        names = IMPORT_LATE
        project.program = [sys.executable, "-m", "hotenv"]
        project.dir = tools
    for name in names:
        (tools / (name + ".py")).write_text("raise SystemExit('a neighbour was imported')\n")
    return project


def test_refusal_imports_no_neighbour(among_neighbours):
    """A refusal of wrong options imports nothing from the directory of the program."""
    refusal(among_neighbours.hotenv("serve", "--timeout", "0"), 2)


def test_session_imports_no_neighbour(among_neighbours):
    """Neither a server nor `dump` imports anything from the directory of the program."""
    among_neighbours.serve(b"A=1\n", "--verbose")
    done = among_neighbours.hotenv("dump", "--format", "json")
    assert json.loads(done.stdout.decode()) == {"A": "1"}


@pytest.mark.parametrize("options", [[], ["--mask"]], ids=["plain", "--mask"])
def test_run_imports_no_neighbour(among_neighbours, options):
    """`run` imports nothing from the directory of the program, with or without a mask."""
    among_neighbours.serve(b"A=1\n")
    done = among_neighbours.hotenv("run", *options, "--", "sh", "-c", "echo $A")
    assert done.stdout == b"1\n"


# What a child prints that imports hotenv: its state before and after, and the modules that came.
IMPORT_LOOK = """
import os, signal, sys, threading

os.umask(0o22)
sys.path.insert(0, %r)

def state():
    return {
        "environment": dict(os.environ),
        "path": list(sys.path),
        "signal handlers": [str(signal.getsignal(number)) for number in range(1, 32)],
        "flags": str(sys.flags),
        "umask": os.umask(0o22),
        "arguments": list(sys.argv),
        "exception hook": str(sys.excepthook),
        "threads": threading.active_count(),
        "current directory": os.listdir("."),
        "recursion limit": sys.getrecursionlimit(),
    }

before = state()
known = set(sys.modules)
import hotenv
modules = sorted(set(sys.modules) - known)
after = state()

import json
print(json.dumps([before, after, modules]))
"""


def _import_in_child(project):
    """Import hotenv in a child; return its state before, its state after, and the new modules."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", IMPORT_LOOK % str(HERE)],
        cwd=str(project.dir),
        stdout=PIPE,
        timeout=PATIENCE,
        env=project.env,
    )
    assert done.returncode == 0
    return json.loads(done.stdout.decode())


def test_import_changes_no_state(project):
    """Invariant 11: importing hotenv leaves the state of its process as it was."""
    before, after, _ = _import_in_child(project)
    assert after == before


def test_import_loads_next_to_nothing(project):
    """Invariant 11: importing hotenv loads no module but a few that are built of C."""
    allowed = {"hotenv", "_json", "_socket", "_signal", "errno", "__future__"}
    _, _, modules = _import_in_child(project)
    assert set(modules) - allowed == set()


@pytest.fixture
def without_c_json(project):
    """A Project with a server, whose programs from now on run without the C half of json.

    An interpreter that is built otherwise has no _json, or one that hotenv does not know.
    """
    project.serve(b"A=1\n")
    *words, code = INSTALLED
    project.program = [*words, "import sys; sys.modules['_json'] = None; " + code]
    return project


def test_run_works_without_c_json(without_c_json):
    """`run` reads an answer without the C half of json."""
    assert without_c_json.run("sh", "-c", "echo $A").stdout == b"1\n"


def test_dump_works_without_c_json(without_c_json):
    """`dump` reads an answer without the C half of json."""
    assert without_c_json.hotenv("dump").stdout == b"A=1\n"


def test_server_works_without_c_json(without_c_json):
    """A server without the C half of json hands out its environment."""
    without_c_json.serve(b"A=2\n", "--force")
    assert without_c_json.dump() == {b"A": b"2"}


@pytest.mark.parametrize("request_", TORN, ids=short)
def test_torn_request_without_c_json(without_c_json, request_):
    """A server without the C half of json survives a request that is no JSON, and says why."""
    server = without_c_json.serve(b"A=2\n", "--force")
    reply = without_c_json.ask(request_)
    assert reply[: len(BAD_REQUEST)] == BAD_REQUEST
    assert without_c_json.dump() == {b"A": b"2"}
    assert server.poll() is None


# Modules that take long to import, and public modules whose place modules of C can take.
IMPORT_SLOW = [
    "ctypes",
    "typing",
    "dataclasses",
    "subprocess",
    "pathlib",
    "logging",
    "secrets",
    "inspect",
    "tempfile",
]
IMPORT_PUBLIC = [
    "re",
    "enum",
    "selectors",
    "signal",
    "socket",
    "json",
    "argparse",
    "collections",
    "random",
    "hashlib",
    "threading",
    "warnings",
    "fcntl",
]


@pytest.mark.parametrize(
    "args, unwanted",
    [
        pytest.param(["run", "--", "/bin/true"], IMPORT_SLOW + IMPORT_PUBLIC, id="run"),
        pytest.param(["run", "--optional", "--", "true"], IMPORT_SLOW, id="run --optional"),
        pytest.param(["dump"], [name for name in IMPORT_SLOW if name != "ctypes"], id="dump"),
    ],
)
def test_command_imports_next_to_nothing(session, args, unwanted):
    """Invariant 11: `run` and `dump` pay for no module that they do not need."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", str(HOTENV), *args],
        stderr=PIPE,
        stdout=DEVNULL,
        cwd=str(session.dir),
        env=session.env,
        timeout=PATIENCE,
    )
    assert done.returncode == 0

    lines = done.stderr.decode().splitlines()
    imported = {line.rsplit("|", 1)[1].strip() for line in lines if "|" in line}
    assert "_socket" in imported, "Python told nothing of what it imported"
    assert imported & set(unwanted) == set()


def _packaging_versions():
    """Return the version numbers that stand in the text of hotenv.py."""
    return re.findall(r'^__version__ = "(.+)"$', HOTENV.read_text(encoding="utf-8"), re.M)


@pytest.fixture
def pyproject():
    """The text of pyproject.toml; the test is skipped where a copy of hotenv.py stands alone."""
    path = HERE / "pyproject.toml"
    if not path.exists():
        pytest.skip("there is no pyproject.toml here")
    return path.read_text(encoding="utf-8")


def test_version_stands_in_the_source_once():
    """The text of hotenv.py holds the version of the module, and holds it once."""
    assert _packaging_versions() == [hotenv.__version__]


def test_version_is_three_numbers():
    """The version is three numbers with dots between them."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", hotenv.__version__)


def test_package_takes_its_version(pyproject):
    """The package takes its version from the source, so that no other file names one."""
    assert hotenv.__version__ not in pyproject
    assert re.search(r'dynamic *= *\[ *"version" *\]', pyproject)


def test_package_installs_the_command(pyproject):
    """The package installs a command `hotenv`, which calls main()."""
    assert re.search(r'^hotenv *= *"hotenv:main"', pyproject, re.M)


def test_package_has_no_dependency(pyproject):
    """The package depends on no other package."""
    lists = re.findall(r"^ *dependencies *= *(\[[^]]*\])", pyproject, re.M)
    assert [each for each in lists if each != "[]"] == []


def test_package_needs_pytest_for_tests(pyproject):
    """The one optional dependency is pytest, for the tests."""
    extras = re.search(r"^\[project.optional-dependencies\]\n((?:[a-z].*\n)*)", pyproject, re.M)
    assert extras
    assert re.fullmatch(r'test *= *\["pytest[^"-]*"\]\n*', extras[1])


# ==== attacks =====================================================================================
# Requests, markers and answers with random mistakes; faults and signals at each step of a start;
# load; and a hunt for a secret. Where a specification is short, it is stated here a second time.

# What replaces some bytes of a valid request, marker or answer.
ATTACK_PIECES = [
    b"",
    b" ",
    b"\n",
    b"\0",
    b"\xff",
    b"\x1b[2J",
    b"\xc3\xa9",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"NaN",
    b"1e999",
    b'"\\ud800"',
    b'"\\udc80"',
    b"=",
    b"/",
    b'"args":["x"],',
    b'"command":1,',
    b"-0",
    b"01",
]


def _attack_mutated(dice, seeds):
    """Return one of the seeds with up to three pieces of it replaced, and now and then cut off."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randrange(4)):
        start = dice.randrange(len(data) + 1)
        end = start + dice.randrange(4)
        data[start:end] = dice.choice(ATTACK_PIECES)
    if dice.random() < 0.25:
        del data[dice.randrange(len(data) + 1) :]
    return bytes(data)


def _attack_strict_json(data):
    """Return what bytes mean as JSON, without the liberties of Python's json; None for no JSON.

    A number comes back as its length, because no test looks at one.
    """
    try:
        text = data.decode("utf-8")
        # int() refuses the words NaN and Infinity, which are no JSON.
        return json.loads(text, parse_int=len, parse_float=len, parse_constant=int)
    except (ValueError, RecursionError):
        return None


def _attack_is_request(data):
    """Return whether a server must answer these bytes with the environment."""
    line, newline, _ = data.partition(b"\n")
    if not newline:
        return False
    request = _attack_strict_json(line)
    if not isinstance(request, dict):
        return False
    if request.get("command") == "dump":
        return True
    if request.get("command") != "run":
        return False
    args = request.get("args")
    return isinstance(args, list) and {type(arg) for arg in args} == {str}


class _Attacked:
    """A server to which clients have sent a lot of mutated requests.

    - `project` and `server`: where it runs, and its process.
    - `exchanges`: each request, and the reply to it, of the clients that waited for one.
    - `memory`: the bytes that the server held after the first hundred requests; Linux alone.
    """

    def __init__(self, project):
        self.project = project
        self.server = project.serve(b"A=1\n", "--verbose", "--timeout", "1h")
        self.exchanges = []
        self.memory = 0

    def attack(self, rounds):
        """Let five clients a round send their requests, each in two pieces."""
        dice = random.Random(SEED)
        seeds = [each for each in GOOD_REQUESTS + BAD_REQUESTS if len(each) < 1000]
        for number in range(rounds):
            clients = []
            for _ in range(5):
                client = self.project.connect()
                request = _attack_mutated(dice, seeds)
                sent = dice.randrange(100)
                client.sendall(request[:sent])
                clients.append((client, request, sent))

            for client, request, sent in dice.sample(clients, 5):
                self._finish(client, request, request[sent:], waits=dice.random() < 0.9)
            if LINUX and number == 19:
                self.memory = resident(self.server.pid)

    def _finish(self, client, request, rest, waits):
        """Send the rest of a request; then leave, or wait for the reply."""
        # A server may reply to a bad request, and close, before it has read all of it.
        with client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(rest)
            client.shutdown(socket.SHUT_WR)
            if waits:
                self.exchanges.append((request, answer(client)))


@pytest.fixture(scope="module")
def attacked():
    """A server after the attack, which tests look at and none ends."""
    with contextlib.closing(Project()) as project:
        target = _Attacked(project)
        target.attack(amount(40_000) // 5)
        yield target


def test_mutated_request_gets_its_reply(attacked):
    """A mutated request gets the environment where it still is a request, else a reason."""
    assert len(attacked.exchanges) > 100
    for request, reply in attacked.exchanges:
        if _attack_is_request(request):
            assert reply == b'{"env":{"A":"1"}}\n', request
        else:
            assert reply[: len(BAD_REQUEST)] == BAD_REQUEST, request


def test_attacked_server_serves_on(attacked):
    """A server answers as before after mutated requests."""
    assert attacked.project.ask() == b'{"env":{"A":"1"}}\n'
    assert attacked.project.dump() == {b"A": b"1"}


@only_linux
def test_attacked_server_gains_no_memory(attacked):
    """Mutated requests leave no more than a little memory behind in the server."""
    gained = resident(attacked.server.pid) - attacked.memory
    assert gained < 8 << 20


@only_linux
@only_root
def test_attacked_server_closes_descriptors(attacked):
    """A server closes its connection to each client, those that left early included."""
    directory = "/proc/%d/fd" % attacked.server.pid
    until(lambda: len(os.listdir(directory)) < 12, "the end of all connections")


def test_attacked_server_logs_plain_lines(attacked):
    """Invariant 10: each line of the log is printable, and names a request that was answered."""
    lines = attacked.project.log_lines()
    assert [line for line in lines if not line.isprintable()] == []
    assert [line for line in lines if not LOG_LINE.match(line)] == []


def _attack_code(*args):
    """Return the exit status that fetch() would give a command: 0, or the code of its error."""
    try:
        hotenv.fetch(*args)
    except hotenv.HotenvError as error:
        assert str(error) != ""
        for line in [str(error), *getattr(error, "hints", ())]:
            assert line.isprintable()
        return error.code
    return 0


def _attack_marker_code(content, socket_path):
    """Return the exit status for a marker: 9 for no marker, 0 for the session, 4 for no session."""
    lines = [line for line in content.split(b"\n") if line.strip()]
    if len(content) > 8192 or b"\0" in content:
        return 9
    if len(lines) != 1 or not lines[0].startswith(b"socket=/"):
        return 9
    # A mutated path may lead to the same socket all the same, by one slash more.
    with contextlib.suppress(OSError):
        if os.path.samefile(lines[0][len(b"socket=") :], socket_path):
            return 0
    return 4


def _attack_markers(socket_path):
    """Yield mutated contents of a marker that names this socket."""
    dice = random.Random(SEED + 1)
    valid = b"socket=" + os.fsencode(socket_path) + b"\n"
    seeds = [
        valid,
        b"\n" + valid,
        valid + valid,
        b"socket=/" + b"x" * 9000 + b"\n",
        b"socket=~/x\n",
        valid.upper(),
    ]
    for _ in range(amount(10_000)):
        yield _attack_mutated(dice, seeds)


def test_mutated_marker_is_judged(project, session, monkeypatch):
    """fetch() follows a mutated marker where it still is one, and refuses any other."""
    monkeypatch.chdir(str(project.dir))
    path = session.socket_path()
    for content in _attack_markers(path):
        project.marker.write_bytes(content)
        assert _attack_code() == _attack_marker_code(content, path), content


def test_run_judges_a_mutated_marker(project, session):
    """`run` ends with the status that a mutated marker calls for."""
    path = session.socket_path()
    for content in itertools.islice(_attack_markers(path), 3):
        project.marker.write_bytes(content)
        done = project.run("true")
        assert done.returncode == _attack_marker_code(content, path), content


def _attack_is_environment(data):
    """Return whether a client must take these bytes for an environment."""
    if data.find(b"\n") != len(data) - 1:
        return False
    reply = _attack_strict_json(data)
    if not isinstance(reply, dict) or isinstance(reply.get("error"), str):
        return False
    env = reply.get("env")
    if not isinstance(env, dict):
        return False
    for name, value in env.items():
        if not isinstance(value, str) or not name or "=" in name:
            return False
        try:
            if b"\0" in (name + value).encode("utf-8", "surrogateescape"):
                return False
        except UnicodeError:
            return False
    return True


def _attack_answer_code(data):
    """Return the exit status for an answer.

    A server that says nothing, or only the beginning of an answer with an environment, has just
    ended.
    """
    start = b'{"env":{'
    if not data.endswith(b"\n") and data[: len(start)] == start[: len(data)]:
        return 4
    if _attack_is_environment(data):
        return 0
    return 9


def _attack_answers():
    """Yield mutated answers of a server."""
    dice = random.Random(SEED + 2)
    seeds = [data for data, _ in ANSWERS if len(data) < 1000]
    for _ in range(amount(10_000)):
        yield _attack_mutated(dice, seeds)


def test_mutated_answer_is_judged(answerer):
    """fetch() takes a mutated answer where it still is an environment, and refuses any other."""
    server = answerer()
    for data in _attack_answers():
        server.response = data
        assert _attack_code("dump", [], server.path) == _attack_answer_code(data), data


def test_run_judges_a_mutated_answer(project, answerer):
    """`run` ends with the status that a mutated answer calls for."""
    server = answerer()
    for data in itertools.islice(_attack_answers(), 3):
        server.response = data
        done = project.run("true", env={"HOTENV_SOCKET": server.path})
        assert done.returncode == _attack_answer_code(data), data


# The system calls of a start, as strace names them. A `?` allows that a machine has no such call.
ATTACK_STEPS = [
    "?mkdir",
    "?mkdirat",
    "fchmod",
    "write",
    "?link",
    "?linkat",
    "?rename",
    "?renameat",
    "?renameat2",
    "utimensat",
    "bind",
    "listen",
    "?flock",
]
ATTACK_FAULTS = ["error=ENOSPC", "error=EACCES", "error=EIO", "signal=SIGTERM"]


class _Faulty:
    """Starts of `serve` with a fault at one of their steps, in a runtime directory to be made."""

    def __init__(self, project, meddle):
        self.project = project
        self.meddle = meddle
        self.told = project.root / "strace"
        self.new = project.base / "new"
        project.env["XDG_RUNTIME_DIR"] = str(self.new)

    def starts(self, action):
        """Yield for some starts: where the fault was, and the CompletedProcess."""
        cases = list(itertools.product(ATTACK_STEPS, [1, 2, 3], [[], ["--force"]]))
        for step, when, options in random.Random(SEED).sample(cases, min(len(cases), amount(160))):
            self.meddle("%s:%s:when=%d" % (step, action, when), told=self.told)
            done = self.project.hotenv("serve", "--timeout", "0.05", *options, input=b"A=1\n")
            yield "%s %d %s" % (step, when, options), done
            shutil.rmtree(str(self.new), ignore_errors=True)


@pytest.mark.parametrize("action", ATTACK_FAULTS)
def test_fault_at_start_ends_in_a_refusal(project, meddle, action):
    """A start that cannot survive a fault says so and ends with 8, or by the signal it got."""
    faulty = _Faulty(project, meddle)
    for where, done in faulty.starts(action):
        allowed = [0, -signal.SIGTERM] if "signal" in action else [0]
        if done.returncode in allowed:
            assert done.stderr == b"", where
        elif done.stderr == b"" and where.startswith("write"):
            # The fault hit the refusal's own way out.
            assert "error" in action, where
            assert done.returncode == 8, where
            assert "INJECTED" in faulty.told.read_text(), where
        else:
            assert "error" in action, where
            assert refusal(done, 8), where


@pytest.mark.parametrize("action", ATTACK_FAULTS)
def test_fault_at_start_leaves_nothing(project, meddle, action):
    """Invariant 2: a fault at any step of a start leaves no marker, socket or new directory."""
    faulty = _Faulty(project, meddle)
    for where, done in faulty.starts(action):
        left = project.files()
        if done.returncode == 0:
            # A session that came about leaves its runtime directory to the next one.
            left = [path for path in left if not path.startswith("r/new") or path.endswith(".sock")]
        assert left == [], where


def _attack_load(project):
    """Have eight clients at a time ask a session; return what each request got, by its number.

    Now and then a client leaves in the middle of another request.
    """
    path = project.socket_path()
    count = amount(20_000) // 8
    dice = random.Random(SEED)
    doomed = b'{"command":"run","args":["doomed"]}\n'

    def ask(worker):
        """Send this worker's requests, one after another."""
        replies = {}
        for number in range(count):
            name = "w%d.%d" % (worker, number)
            replies[name] = hotenv.fetch("run", [name], path)
            if number % 5 == 0:
                with socket.socket(socket.AF_UNIX) as client:
                    if client.connect_ex(path) == 0:
                        client.sendall(doomed[: dice.randrange(len(doomed) + 1)])
        return replies

    replies = {}
    with ThreadPoolExecutor(8) as pool:
        for each in pool.map(ask, range(8)):
            replies.update(each)
    assert len(replies) == 8 * count
    return replies


def test_load_loses_no_request(project):
    """Each request gets the environment, with eight clients at a time."""
    project.serve(b"A=1\n", "--timeout", "1h")
    replies = _attack_load(project)
    assert {name: reply for name, reply in replies.items() if reply != {"A": "1"}} == {}


def test_load_loses_no_log_line(project):
    """Each request that was answered is logged once, with eight clients at a time."""
    project.serve(b"A=1\n", "--timeout", "1h")
    replies = _attack_load(project)
    lines = project.log_lines()
    assert [line for line in lines if not LOG_LINE.match(line)] == []
    logged = [line.split()[3] for line in lines if not line.endswith("doomed")]
    assert sorted(logged) == sorted(replies)


class _Hunt:
    """A thread that reads the arguments and the environment of all processes, over and over.

    Where it sees the secret, it keeps the name of the file of /proc/PID, and the program of the
    process.
    """

    def __init__(self, secret):
        self.secret = secret
        self.rounds = 0
        self._seen = set()
        self._is_over = False
        self._thread = threading.Thread(target=self._work)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over = True
        self._thread.join()

    def _work(self):
        """Go round all processes until the hunt is over."""
        while not self._is_over:
            for process in filter(str.isdigit, os.listdir("/proc")):
                for name in ("cmdline", "environ"):
                    # The process may have ended, or may not let itself be read.
                    with contextlib.suppress(OSError):
                        self._look(Path("/proc", process), name)
            self.rounds += 1

    def _look(self, process, name):
        """Look for the secret in one file of a process."""
        if self.secret in (process / name).read_bytes():
            program = (process / "cmdline").read_bytes().split(b"\0")[0]
            self._seen.add((name, program))

    def wait_for_two_looks(self):
        """Wait until each process has been looked at, wherever the thread is now."""
        enough = self.rounds + 2
        until(lambda: self.rounds >= enough, "two looks at every process")

    def result(self):
        """End the hunt, and return where the secret was seen."""
        self.__exit__()
        return self._seen


# Where a secret may be seen: in the environment of a command. The name is empty for a process that
# is just becoming the command, or has just ended.
HUNT_ALLOWED = {("environ", b"sh"), ("environ", b"true"), ("environ", b"")}

# The long ones would only take time.
HUNT_BAD_REQUESTS = [request for request in BAD_REQUESTS if len(request) <= 100]


@pytest.fixture(scope="module")
def secretive():
    """A session with a value that nobody else on the machine has, a suite beside us included.

    Its attribute `secret` is the value, and `text` the input of the session.
    """
    secret = b"s3cr3t-" + os.urandom(8).hex().encode()
    text = b"TOKEN=%s\nDERIVED=x${TOKEN}y\n" % secret
    for shared in standing(text, "--verbose"):
        shared.secret = secret
        shared.text = text
        yield shared


@pytest.fixture
def hunt(secretive):
    """A _Hunt for the secret of `secretive`, which lasts as long as the test."""
    with _Hunt(secretive.secret) as hunter:
        yield hunter


@only_linux
@pytest.mark.parametrize(
    "text",
    [
        b"A=SECRET'\nB='SECRET",
        b"SECRET",
        b"A='SECRET",
        b"A=${SECRET",
        b"'SECRET'x=1",
        b'A="SECRET" SECRET',
        b"A=${X:?SECRET}",
        b"A=SECRET\0",
    ],
    ids=short,
)
def test_refused_input_shows_no_secret(project, secretive, hunt, text):
    """Invariant 1: `serve` shows no value of an input that it refuses."""
    done = project.hotenv("serve", input=text.replace(b"SECRET", secretive.secret))
    assert done.returncode == 7
    assert secretive.secret not in done.stderr
    assert hunt.result() == set()


@only_linux
@pytest.mark.parametrize(
    "options",
    [[], ["--mask"], ["--isolated", "--only", "T*", "--define", "A=1", "--optional"]],
    ids=["plain", "masked", "isolated"],
)
def test_only_commands_hold_the_secret(secretive, hunt, options):
    """Invariant 1: a value is in the environment of the command and of its children alone."""
    lines = 'sh -c "read x" <&0 & echo ${#TOKEN}; read x; wait'
    child = secretive.start(
        "run", *options, "--", "sh", "-c", lines, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert child.stdout.readline() == b"%d\n" % len(secretive.secret)
    hunt.wait_for_two_looks()
    _, errors = child.communicate(b"")

    assert secretive.secret not in errors
    seen = hunt.result()
    assert ("environ", b"sh") in seen
    assert seen - HUNT_ALLOWED == set()


@only_linux
@pytest.mark.parametrize("form", ["plain", "sh", "json", "dotenv", "nul"])
def test_dump_shows_the_secret_on_stdout(secretive, hunt, form):
    """Invariant 1: `dump` writes a value to stdout, and nowhere else."""
    done = secretive.hotenv("dump", "--format", form)
    assert secretive.secret in done.stdout
    assert secretive.secret not in done.stderr
    assert hunt.result() == set()


@only_linux
@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["run", "--", "no-such-command"], id="no command"),
        pytest.param(["run", "--", "/etc/passwd"], id="no program"),
        pytest.param(["run", "--only", "NOTHING", "--", "true"], id="no such name"),
    ],
)
def test_failed_run_shows_no_secret(secretive, hunt, args):
    """Invariant 1: the error of a command that does not start shows no value."""
    done = secretive.hotenv(*args)
    assert done.returncode != 0
    assert secretive.secret not in done.stdout + done.stderr
    assert hunt.result() - HUNT_ALLOWED == set()


@only_linux
def test_second_serve_shows_no_secret(secretive, hunt):
    """Invariant 1: `serve` shows no value where it refuses because of another session."""
    done = secretive.hotenv("serve", input=secretive.text)
    assert done.returncode == 10
    assert secretive.secret not in done.stdout + done.stderr
    assert hunt.result() == set()


@only_linux
def test_dump_on_full_disk_shows_no_secret(secretive, hunt):
    """Invariant 1: the error of an output that cannot be written shows no value."""
    with open("/dev/full", "wb") as full:
        done = secretive.hotenv("dump", stdout=full)
    assert done.returncode != 0
    assert secretive.secret not in done.stderr
    assert hunt.result() == set()


@only_linux
def test_bad_request_gets_no_secret(secretive, hunt):
    """Invariant 1: the reply to a bad request holds no value."""
    for request in HUNT_BAD_REQUESTS:
        assert secretive.secret not in secretive.ask(request), request
    assert hunt.result() == set()


@only_linux
def test_background_shows_no_secret(project, secretive, hunt):
    """Invariant 1: a session in the background, which takes another's place, shows no value."""
    project.serve(b"A=1\n")
    options = ["--background", "--force", "--log", "log"]
    done = project.hotenv("serve", *options, input=secretive.text)
    ran = project.run("true")

    assert done.returncode == 0
    assert secretive.secret not in done.stderr + ran.stderr
    assert hunt.result() - HUNT_ALLOWED == set()


@only_linux
def test_no_file_holds_the_secret(project, secretive):
    """Invariant 1: no file of a session, its log included, holds a value; neither does a name."""
    project.serve(secretive.text, "--verbose")
    for request in HUNT_BAD_REQUESTS:
        project.ask(request)
    project.run("true")
    project.hotenv("serve", "--background", "--force", "--log", "log", input=secretive.text)
    project.run("true")

    for path in project.root.rglob("*"):
        assert secretive.secret not in os.fsencode(str(path))
        if stat.S_ISREG(os.lstat(str(path)).st_mode):
            assert secretive.secret not in path.read_bytes(), path


# ==== dotenv ======================================================================================
# What the language means is two tables of texts. Then come two slow statements of the language, one
# of python-dotenv's grammar and one of hotenv's references, with which the tables and random texts
# are compared; then what parsing costs, and what an error may show.

# The environment in which the cases are read. U and V are never set.
DOTENV_HOST = {"H": "host", "NIL": "", "PROC": "proc", "X": '${H} # "\\n'}

# By topic: a text, and what it means.
DOTENV_MEANINGS = {
    "basic": [
        ("A=", {"A": ""}),
        ("A=\U0001f511", {"A": "\U0001f511"}),
        ("A=e\u0301", {"A": "e\u0301"}),
        (" \t\n ", {}),
        ("A==b", {"A": "=b"}),
        ("A=\u201cb\u201d", {"A": "\u201cb\u201d"}),
        ("A=1\nA=", {"A": ""}),
        ("A=a\x01\x08\x7fb", {"A": "a\x01\x08\x7fb"}),
        ("\ufeff# c\nA=b", {"A": "b"}),
        ("A=   \nB=c", {"A": "", "B": "c"}),
        ("A=1\n'A'=2", {"A": "2"}),
        ("A=export B=c", {"A": "export B=c"}),
        ("\n\nA=b\n\n\nC=d\n", {"A": "b", "C": "d"}),
        ("B=1\nA=2\nB=3\nC=4", {"B": "3", "A": "2", "C": "4"}),
        ("A=p@$$!%^&*()[]{}|;:,.<>/?`~+-_", {"A": "p@$$!%^&*()[]{}|;:,.<>/?`~+-_"}),
    ],
    "blanks": [
        ("A=\u200bb\u2060", {"A": "\u200bb\u2060"}),
        ("A\x0b=\x0cb", {"A": "b"}),
        ("\xa0A\u3000=\u3000b\xa0", {"A": "b"}),
        ("A=b\u2029C=d", {"A": "b\u2029C=d"}),
        ('A="\xa0b\xa0"', {"A": "\xa0b\xa0"}),
        ("A=b\xa0# c", {"A": "b"}),
        ('A="  b\t"', {"A": "  b\t"}),
        ("A='b' \t ", {"A": "b"}),
        ("A=\x85\u2028\u2029b\x85\u2028\u2029", {"A": "b"}),
        ("A=\x1c\x1d\x1e\x1fb\x1f\x1e\x1d\x1c", {"A": "b"}),
        ("  A  =  b  ", {"A": "b"}),
        ("A=b # x\u2028y\nC=d", {"A": "b", "C": "d"}),
        (" \t A \t=\t b \t ", {"A": "b"}),
    ],
    "newline": [
        ("\ufeff", {}),
        ("A=\ufeffb\n", {"A": "\ufeffb"}),
        ("A=\rC=d", {"A": "", "C": "d"}),
        ("\x0b\x0c\u2028A=b\n", {"A": "b"}),
        (b"\xef\xbb\xbfA=b\n", {"A": "b"}),
        ("\ufeff\n A=b\n", {"A": "b"}),
        ("A=b\rC=d\r", {"A": "b", "C": "d"}),
        ("A=b\r\nC=d", {"A": "b", "C": "d"}),
        ("A=b\x0bC=d\n", {"A": "b\x0bC=d"}),
        ("A=b\x85C=d\n", {"A": "b\x85C=d"}),
        ('A="b\n\rc"', {"A": "b\n\nc"}),
        ('A="b\rc"\r', {"A": "b\nc"}),
        ("A=b\n\rC=d\n\r", {"A": "b", "C": "d"}),
        ('A="b\r\nc"\r\n', {"A": "b\nc"}),
        ("A='b\u2028\x0b\x0c\x85c'\n", {"A": "b\u2028\x0b\x0c\x85c"}),
        ('A="b\\\r\nc"\r\n', {"A": "b\\\nc"}),
        ("A=b\r\n\r\nC=d\r\n", {"A": "b", "C": "d"}),
        ("# c\x85A=b\nC=d\n", {"C": "d"}),
        ('A="b\\r\\nc"\r\n', {"A": "b\r\nc"}),
        ("A=b # c\x0bd\x0ce\nC=d\n", {"A": "b", "C": "d"}),
    ],
    "export": [
        ("export=b", {"export": "b"}),
        ("export A=", {"A": ""}),
        ("export.A=b", {"export.A": "b"}),
        ("'export'=b", {"export": "b"}),
        ("export\u2028A=b", {"A": "b"}),
        ("A=\nexport A", {"A": ""}),
        ("  export A=b", {"A": "b"}),
        ("export 'A'=b", {"A": "b"}),
        ("export A = b", {"A": "b"}),
        ("export \t  A=b", {"A": "b"}),
        ("export # c\nA=b", {"A": "b"}),
        ("A=b\nexport A#c", {"A": "b"}),
        ("export export=b", {"export": "b"}),
        ("A=b\nexport A\nC=d", {"A": "b", "C": "d"}),
        ("export export =b", {"export": "b"}),
        ("A=b\nexport A\nA=c", {"A": "c"}),
    ],
    "comment": [
        ("A= #", {"A": ""}),
        ("A=$b\x85", {"A": "$b"}),
        ("A=b #", {"A": "b"}),
        ('A="b"#c', {"A": "b"}),
        (r"A=b \#c", {"A": r"b \#c"}),
        ("A=b#c\u2028#d", {"A": "b#c"}),
        ("A=$b\x0b# c", {"A": "$b"}),
        ("A=a #b #c", {"A": "a"}),
        ("A=#fff\nB=a#b#c", {"A": "#fff", "B": "a#b#c"}),
        ("#a\n #b\n\t#c\nA=b", {"A": "b"}),
        ("A=b # ${\n# ${}", {"A": "b"}),
        ("A=http://b // c", {"A": "http://b // c"}),
        ("A=''# c\nB=\"\" # d", {"A": "", "B": ""}),
    ],
    "quoted": [
        ('A=""', {"A": ""}),
        ("A=''", {"A": ""}),
        ('A=b"c"d', {"A": 'b"c"d'}),
        (r'A="b\\"', {"A": "b\\"}),
        (r"A='b\\'", {"A": "b\\"}),
        ('A="\\\xe9\\\U0001f511"', {"A": "\\\xe9\\\U0001f511"}),
        (r"A='\\ \''", {"A": r"\ '"}),
        ('A="b # c\n# d"', {"A": "b # c\n# d"}),
        (r'A="\\\\n\\\n"', {"A": "\\\\n\\\n"}),
        ("A='b\n\n c '\nD=e", {"A": "b\n\n c ", "D": "e"}),
        (r"A='C:\dir\new'", {"A": r"C:\dir\new"}),
        ("A='b=c'\nD=\"e=f\"", {"A": "b=c", "D": "e=f"}),
        ("A=`b`\nC=`d # e`", {"A": "`b`", "C": "`d"}),
        ('A="\nexport B=c\n"', {"A": "\nexport B=c\n"}),
        (r"A='\x41 \u0041 \$'", {"A": r"\x41 \u0041 \$"}),
        (r'A="\f \n \r \t \v"', {"A": "\x0c \n \r \t \x0b"}),
        (r"""A="\\ \' \" \a \b" """, {"A": "\\ ' \" \x07 \x08"}),
        (r"'A'='\\ \' \n ${A}'", {"A": r"\ ' \n ${A}"}),
        (r'A="\x41 \u0041 \N{DASH}"', {"A": r"\x41 \u0041 \N{DASH}"}),
        ("A='\\\" \\a \\b \\f \\n \\r \\t \\v'", {"A": r"\" \a \b \f \n \r \t \v"}),
        (r'A="\0 \1 \e \q \/ \# \= \$ \`"', {"A": r"\0 \1 \e \q \/ \# \= \$ \`"}),
    ],
    "bare": [
        ("A=b\\", {"A": "b\\"}),
        ("A=b\\\nC=d\\", {"A": "b\\", "C": "d\\"}),
        ("A=?${U:-x}", {"A": "?x"}),
        ("A=$(id) `id`", {"A": "$(id) `id`"}),
        (r"A=\n\t\\ \' \x", {"A": r"\n\t\\ \' \x"}),
        ('A={"b": "c"} # d', {"A": '{"b": "c"}'}),
        ("A=?Password\nB= ? x", {"A": "?Password", "B": "? x"}),
        ("A=b;c|d&e<f(g)*?!~", {"A": "b;c|d&e<f(g)*?!~"}),
        ("A=$2b$12$abc/def.ghi", {"A": "$2b$12$abc/def.ghi"}),
    ],
    "name": [
        ("-=b", {"-": "b"}),
        (".=b", {".": "b"}),
        ("_=c", {"_": "c"}),
        ("007=b", {"007": "b"}),
        ("aZ09_.-=b", {"aZ09_.-": "b"}),
        ("'A' \t=  b", {"A": "b"}),
        ("'a-b.c_1'=d", {"a-b.c_1": "d"}),
        ("__proto__=c\nA=b", {"__proto__": "c", "A": "b"}),
    ],
    "ref": [
        ("A=${H}", {"A": "host"}),
        ("A=<${U}>", {"A": "<>"}),
        ("A= # ${}", {"A": ""}),
        ("A=<${NIL}>", {"A": "<>"}),
        ("1=x\nA=${1}", {"1": "x", "A": "x"}),
        ("A=${B}\nB=b", {"A": "", "B": "b"}),
        ("A=1\nB=$${A}", {"A": "1", "B": "$1"}),
        ("A=1\nB=${A}}", {"A": "1", "B": "1}"}),
        ("H=\nA=<${H}>", {"H": "", "A": "<>"}),
        ("A=${H} # ${", {"A": "host"}),
        ("H=${H}:more", {"H": "host:more"}),
        ("H=file\nA=${H}", {"H": "file", "A": "file"}),
        ("A=${H}\nH=file", {"A": "host", "H": "file"}),
        ('A=1\nB="<${A}>"', {"A": "1", "B": "<1>"}),
        ("A.B=1\nC=${A.B}", {"A.B": "1", "C": "1"}),
        ("A-B=1\nC=${A-B}", {"A-B": "1", "C": "B"}),
        ("A=1\nB=${A}\nA=2", {"A": "2", "B": "1"}),
        ("A='1\n2'\nB=${A}3", {"A": "1\n2", "B": "1\n23"}),
        ("A='\\n'\nB=\"${A}\"", {"A": r"\n", "B": r"\n"}),
        ("D='$'\nA=${D}{H}", {"D": "$", "A": "${H}"}),
        ('A=1\nB="x\n${A}\ny"', {"A": "1", "B": "x\n1\ny"}),
        ("A='  b  '\nC=${A}", {"A": "  b  ", "C": "  b  "}),
        ("A=' # b'\nC=x${A} y", {"A": " # b", "C": "x # b y"}),
        (r"B=$ {A} {$A} $\{A}", {"B": r"$ {A} {$A} $\{A}"}),
        ('B=x\nA="${B}\\n${B}"', {"B": "x", "A": "x\nx"}),
        ("A=1\nA=${A}2\nA=${A}3", {"A": "123"}),
        ("A=1\nB='${A} ${} ${'", {"A": "1", "B": "${A} ${} ${"}),
        ("A='${H}'\nB=${A}\nC=${B}", {"A": "${H}", "B": "${H}", "C": "${H}"}),
        ("A=1\nB=2\nC=${A}${B}${A}", {"A": "1", "B": "2", "C": "121"}),
        ('A=1\nB=$A $$ $1 $\nC="$A"', {"A": "1", "B": "$A $$ $1 $", "C": "$A"}),
    ],
    "operator": [
        ("A='${U:-d}'", {"A": "${U:-d}"}),
        ("A=${H+a:-b}", {"A": "a:-b"}),
        ("A=${U-b-c:-d}", {"A": "b-c:-d"}),
        ("NIL=x\nA=${NIL:-d}", {"NIL": "x", "A": "x"}),
        ('A="${U:-d} ${H:+e}"', {"A": "d e"}),
        ("A=${U--d}\nB=${U:--d}", {"A": "-d", "B": "-d"}),
        ("H=\nA=${H:-d}\nB=${H-d}", {"H": "", "A": "d", "B": ""}),
        ("A=${H:?w},${NIL?w},${H?w}", {"A": "host,,host"}),
        ("A=${U-w},${NIL-w},${H-w},${U-}", {"A": "w,,host,"}),
        ("A=${U+w},${NIL+w},${H+w},${H+}", {"A": ",w,w,"}),
        ("A=${U:-w},${NIL:-w},${H:-w},${U:-}", {"A": "w,w,host,"}),
        ("A=${U:+w},${NIL:+w},${H:+w},${H:+}", {"A": ",,w,"}),
        ("E=\nA=${E:-w},${E-w},${E:+w},${E+w},${E?w}", {"E": "", "A": "w,,,w,"}),
        ("S=s\nA=${S:-w},${S-w},${S:+w},${S+w},${S:?w},${S?w}", {"S": "s", "A": "s,s,w,w,s,s"}),
    ],
    "default": [
        ("A=${U:- }", {"A": " "}),
        ("A=${U:-a#b}", {"A": "a#b"}),
        ("A=${U:-{b}}", {"A": "{b}"}),
        ("A=${U:-$b$}", {"A": "$b$"}),
        ("A=${U:-b} \t", {"A": "b"}),
        (r"A=${U:-a\}b}", {"A": r"a\b}"}),
        ('A="${U:-a\nb}"', {"A": "a\nb"}),
        ("A=${H:+${H}:}x", {"A": "host:x"}),
        ("A=${U:-  b  }c", {"A": "  b  c"}),
        ('A="${U:-a #b}"', {"A": "a #b"}),
        ("A=${U:-\"b\" 'c'}", {"A": "\"b\" 'c'"}),
        ('A="${U:-  b  }"', {"A": "  b  "}),
        ("A=${H:-${U:?w}}", {"A": "host"}),
        ("A=${H:?${U:?w}}", {"A": "host"}),
        (r'A="${U:-\"b\"}"', {"A": '"b"'}),
        ("A=${U:-${V:-d}}", {"A": "d"}),
        (r'A="${U:-a\tb\\c\q}"', {"A": "a\tb\\c\\q"}),
        ("A=${U:-${V:-${W-d}}}", {"A": "d"}),
        ("D='${H}'\nA=${U:-${D}}", {"D": "${H}", "A": "${H}"}),
        ("A=${U:-a${V:-b}c${W:-d}e}f", {"A": "abcdef"}),
    ],
    "escape": [
        (r"A=\${H}", {"A": "${H}"}),
        (r'A="\${"', {"A": "${"}),
        (r"A=\$${H}", {"A": r"\$host"}),
        (r"A=\\${H}", {"A": r"\${H}"}),
        (r'A="\${}"', {"A": "${}"}),
        (r"A='\${H}'", {"A": r"\${H}"}),
        (r"A=\\\${H}", {"A": r"\\${H}"}),
        (r'A="\${H}"', {"A": "${H}"}),
        (r'A="\\${H}"', {"A": r"\host"}),
        (r"A=\${H}${H}", {"A": "${H}host"}),
        (r'A="\\\${H}"', {"A": r"\${H}"}),
        (r'A="\\\\${H}"', {"A": r"\\host"}),
        ('A=\\$H\nB="\\$H"', {"A": r"\$H", "B": r"\$H"}),
        (r"A=${U:-\${X}}", {"A": "${X}"}),
        (r"A=${U:+\${x}}", {"A": "}"}),
        (r"A=${U:-\\${H}}", {"A": r"\${H}"}),
        (r'A="${U:-\${X}}"', {"A": "${X}"}),
        (r'A="${U:-\\${H}}"', {"A": r"\host"}),
    ],
}

# By reason: the line and the column at which a text is refused for this reason, and the text.
DOTENV_REFUSALS = {
    "bad name": [
        ("1:1", "}"),
        ("1:1", "=b"),
        ("1:1", "\xe9=b"),
        ("1:1", "\uff21=b"),
        ("1:1", "$A=b"),
        ("1:1", "`A`=b"),
        ("1:1", '"A"=b'),
        ("1:1", "\ufeff\ufeffA=b"),
        ("1:1", "; c\nA=b"),
        ("1:2", " =b"),
        ("1:2", "A\u0661=b"),
        ("1:2", "A\u200b=b"),
        ("1:2", "A\x07=b"),
        ("1:2", "A+=b"),
        ("1:2", "A: b"),
        ("1:2", r"A\=b"),
        ("1:2", "''=c"),
        ("1:2", "A'B=c"),
        ("1:2", "A:B=c"),
        ("1:2", "' A'=b"),
        ("1:2", "A[0]=c"),
        ("1:3", "AB\U0001f511=b"),
        ("1:3", "'A\tB'=c"),
        ("1:3", "'A B'=c"),
        ("1:3", "'A=B'=c"),
        ("1:3", r"'A\nB'=c"),
        ("1:4", "caf\xe9=b"),
        ("1:8", "export =b"),
        ("1:8", "export = 'b'"),
        ("1:10", "export   =b"),
        ("2:1", 'A=\n"b"'),
        ("2:1", "A=b\n\ufeffC=d"),
        ("2:1", "A=1\n${A}=b"),
        ("2:1", "A=b\n=c\nD=e"),
        ("2:1", "A=b\n=x\nC=d\n'q\nE=f"),
        ("2:2", "X=1\n''=b"),
        ("2:2", 'A={\n "x": "y"\n}\nB=c'),
        ("2:3", "A=YWJj\nZG/m"),
        ("2:8", "A=1\nexport\t=b"),
        ("3:3", "\n\n  =b"),
    ],
    "no =": [
        ("1:2", "A"),
        ("1:2", "A# c"),
        ("1:2", "A\n=b"),
        ("1:2", "B\nA=${}"),
        ("1:2", "A\r\nB=c\r\n"),
        ("1:3", "A B"),
        ("1:3", "\ufeffA B"),
        ("1:3", "A #=c"),
        ("1:3", "- A=b"),
        ("1:3", "A B=c"),
        ("1:3", "A\u2028B=c"),
        ("1:3", "A \\\n=b"),
        ("1:4", "'A'"),
        ("1:4", "---\nA=b"),
        ("1:4", "A  :  b"),
        ("1:4", "if true; then\nA=b\nfi"),
        ("1:5", "'A' b"),
        ("1:5", "set A=b"),
        ("1:5", "A \t \nB=c"),
        ("1:7", "export"),
        ("1:8", "EXPORT A=b"),
        ("1:9", "export A"),
        ("1:9", "export A\nA=b"),
        ("1:9", "declare -x A=b"),
        ("1:10", "'export' A=b"),
        ("1:10", "-----END X-----"),
        ("1:11", "export A  "),
        ("1:15", "export export A=b"),
        ("2:2", "A=\nb"),
        ("2:2", "A=b\nA"),
        ("2:2", "A=1\x0b\x0c\u2028\nC"),
        ("2:2", "A=b\nB\n=c\nD='e"),
        ("2:4", "A=\n  b"),
        ("2:5", "A=YWJj\nZGVm"),
        ("2:5", "K=-----BEGIN KEY-----\nabcd"),
        ("2:9", "A=b\nexport B"),
        ("3:2", "A=1\rB=2\rC\r"),
        ("3:10", "A=b\nC=d\nexport A C"),
        ("4:2", "A='1\n2\n3'\nB"),
        ("4:3", "# c\n\n\nA B=c\nD=e"),
        ("5:3", "X=1\n\n\n\nA B"),
    ],
    "NUL": [
        ("1:1", "\x00"),
        ("1:2", "A\x00B=c"),
        ("1:2", b"A\x00=\x00b\x00\n\x00"),
        ("1:3", "'A\x00'=b"),
        ("1:3", b"\xef\xbb\xbfA=\x00"),
        ("1:4", "A='\x00'"),
        ("1:4", "A=b\x00c"),
        ("1:5", "A=\xe9\U0001f511\x00"),
        ("2:1", 'A="b\n\x00"'),
        ("2:3", "A=b\n# \x00"),
        ("2:3", "A=b\r\nC=\x00\r\n"),
    ],
    "UTF-8": [
        ("1:1", b"\xff\xfeA\x00"),
        ("1:1", b"\xef\xbbA=b"),
        ("1:2", b"A\xff=b"),
        ("1:3", b"A=\x80"),
        ("1:3", b"A=\xe2\x82"),
        ("1:3", b"A=\xc0\x80"),
        ("1:3", b"A=\xed\xa0\x80"),
        ("1:3", b"A=\xf4\x90\x80\x80"),
        ("1:3", b"\xef\xbb\xbfA=\xff"),
        ("1:4", b"A=b\xff\xfe\nC=d"),
        ("1:5", b"A=\xc3\xa9\xf0\x9f\x94\x91\xff"),
        ("1:6", b"A=caf\xe9"),
        ("1:6", b"# caf\xe9\nC=d"),
        ("2:3", b"A=b\nC=\xf0\x9f"),
        ("3:1", b"A=b\r\n\r\n\xff"),
    ],
    "text after": [
        ("1:5", "A=''b"),
        ("1:5", "A='''b'''"),
        ("1:5", 'A="""b"""'),
        ("1:6", 'A="\U0001f511"x'),
        ("1:6", "A='b'\\"),
        ("1:6", 'A="b"=c'),
        ("1:6", "A=\"b\"'c'"),
        ("1:6", 'A="b""c"'),
        ("1:6", 'A="b"${H}'),
        ("1:6", r"A='b'\''c'"),
        ("1:7", "A='b' c"),
        ("1:7", 'A="b" c\nD=e'),
        ("1:7", "A='it's'\nB=c"),
        ("1:9", 'A="b" \t c # d'),
        ("2:4", 'A="b\nc" d\nE=f'),
        ("2:4", 'A="b\nC="d"\nE=f'),
        ("2:4", "A='b\nC='d'\nE=f"),
        ("2:4", "A='C:\\dir\\new\\'\nC='d'"),
        ("4:4", "X=1\nA='b\n\nc' d"),
        ("4:4", "X=1\r\nA='b\r\n\r\nc' d\r\n"),
    ],
    "unterminated quote": [
        ("1:1", "'A"),
        ("1:1", "'A=c\nB=d"),
        ("1:3", 'A="'),
        ("1:3", "A='"),
        ("1:3", 'A="b'),
        ("1:3", "A='b"),
        ("1:3", "A='b\\"),
        ("1:3", "A='b\""),
        ("1:3", "\ufeffA='b"),
        ("1:3", r'A="\"'),
        ("1:3", 'A="b\\'),
        ("1:3", r'A="b\"'),
        ("1:3", r"A='b\'"),
        ("1:3", r'A="b\\\"'),
        ("1:3", 'A="b\nC=d'),
        ("1:3", 'A="b # c\nC=d'),
        ("1:3", "A='b\\\\\\'\nC=d"),
        ("1:9", "  A  =  'b"),
        ("1:10", 'export A="b'),
        ("2:3", "A=b\n  '"),
        ("3:3", "A='1\n2' # c\nB=\"x"),
        ("3:3", "X=1\n\nA='b\nC=d\nE=f"),
        ("3:3", "X=1\r\n\r\nA='b\r\nC=d\r\n"),
    ],
    "required": [
        ("1:3", "A=${U?}"),
        ("1:3", "A=${U:?}"),
        ("1:3", "\ufeffA=${U?}"),
        ("1:3", "A=${B:?}\nB=1"),
        ("1:4", "A=<${U?w}>"),
        ("1:4", "A=<${U:?w}>"),
        ("1:4", "A=<${NIL:?w}>"),
        ("1:8", "A=${U:-${V:?w}}"),
        ("2:4", "E=\nA=<${E:?w}>"),
        ("2:4", "X=1\r\nA=b${U?}\r\n"),
        ("2:9", "S=1\nA=${S:?}${U:?}"),
        ("4:3", 'X=1\n\nA="b\n  ${U:?w}"'),
    ],
    "bad reference": [
        ("1:3", "A=${"),
        ("1:3", "A=${}"),
        ("1:3", "A=${H"),
        ("1:3", "A=${ }"),
        ("1:3", "A=${H:"),
        ("1:3", "A=${@}"),
        ("1:3", "A=${\xe9}"),
        ("1:3", "\ufeffA=${}"),
        ("1:3", "A=${ H}"),
        ("1:3", "A=${H }"),
        ("1:3", "A=${-d}"),
        ("1:3", "A=${+d}"),
        ("1:3", "A=${?d}"),
        ("1:3", "A=${H:}"),
        ("1:3", "A=${H:-"),
        ("1:3", "A=${#H}"),
        ("1:3", "A=${$H}"),
        ("1:3", "A=${H\xe9}"),
        ("1:3", r"A=${H\}"),
        ("1:3", "A=${H B}"),
        ("1:3", "A=${:-d}"),
        ("1:3", "A=${H^^}"),
        ("1:3", "A=${H@Q}"),
        ("1:3", "A=${'H'}"),
        ("1:3", "A=${H:=x}"),
        ("1:3", "A=${H[0]}"),
        ("1:3", "A=${${H}}"),
        ("1:3", r"A=${\${H}}"),
        ("1:3", "A=${H/x/y}"),
        ("1:3", "A=${H:0:1}"),
        ("1:3", "A=${H${H}}"),
        ("1:3", "A=${U:-${V}"),
        ("1:3", "A=${U:-a # b}"),
        ("1:3", "A=${U:-a\nB=c}"),
        ("1:4", "A=\U0001f511${}"),
        ("1:4", 'A="${}"'),
        ("1:4", 'A="${H"'),
        ("1:4", 'A="${H\n}"'),
        ("1:4", 'A="${U:-${V}"'),
        ("1:7", r"A=\${}${}"),
        ("1:8", "A=${H}-${}"),
        ("1:8", "A =  b ${}"),
        ("1:8", "A=${H:?${}}"),
        ("1:8", "A=${H-}${-H}"),
        ("1:8", "A=${U:+${B C}}"),
        ("1:9", "A=${U:-b${}}"),
        ("1:9", "A=${H:-b${}}"),
        ("1:10", r'A="\n\\\t${}"'),
        ("3:4", "export A='1\n2'\nB=x${"),
        ("4:1", 'X=1\r\n\r\nA="b\r\n${}"\r\n'),
        ("4:3", 'X=1\n\nA="b\nc ${H d}"'),
    ],
}


def _dotenv_checked(error):
    """Return the text of an error and of its hints, after a look at what every error must be."""
    parts = [str(error), *getattr(error, "hints", ())]
    assert error.code == 7
    assert parts[0].startswith("<stdin>:")
    assert [part for part in parts if not part.isprintable()] == []
    # A traceback would show the values that another exception holds.
    assert error.__cause__ is None
    if error.__context__ is not None:
        assert error.__suppress_context__
    return "\n".join(parts)


def _dotenv_refusal(text, host=DOTENV_HOST):
    """Return the text of the error with which parse_dotenv() must refuse an input."""
    with pytest.raises(hotenv.HotenvError) as caught:
        hotenv.parse_dotenv(text, host)
    return _dotenv_checked(caught.value)


def _dotenv_outcome(text, host=DOTENV_HOST):
    """Return the variables of a text as pairs in their order, or the text of the error."""
    try:
        return list(hotenv.parse_dotenv(text, host).items())
    except hotenv.HotenvError as error:
        return _dotenv_checked(error)


def _dotenv_place(message):
    """Return `LINE:COLUMN`, with which an error begins."""
    return re.match(r"<stdin>:(\d+:\d+): ", message)[1]


def _dotenv_has_reason(message, reason):
    """Return whether an error names a reason, whatever quotes it puts around a word."""
    return reason in message.replace("`", "").replace("'", "")


def _dotenv_as_bytes(text):
    """Return the input that holds a text; some cases are bytes already."""
    if isinstance(text, bytes):
        return text
    return text.encode()


@pytest.mark.parametrize("topic", DOTENV_MEANINGS)
def test_text_means_what_the_table_says(topic):
    """parse_dotenv() reads the variables of a text in their order."""
    cases = [case for case in DOTENV_MEANINGS[topic] if isinstance(case[0], str)]
    seen = [(text, _dotenv_outcome(text)) for text, _ in cases]
    assert seen == [(text, list(meaning.items())) for text, meaning in cases]


@pytest.mark.parametrize("topic", DOTENV_MEANINGS)
def test_bytes_mean_what_their_text_means(topic):
    """parse_dotenv() reads the same variables from the UTF-8 of a text."""
    cases = DOTENV_MEANINGS[topic]
    seen = [(text, _dotenv_outcome(_dotenv_as_bytes(text))) for text, _ in cases]
    assert seen == [(text, list(meaning.items())) for text, meaning in cases]


def _dotenv_where_refused(text, reason):
    """Return the place at which a text is refused for a reason; else what came instead."""
    outcome = _dotenv_outcome(text)
    if isinstance(outcome, str) and _dotenv_has_reason(outcome, reason):
        return _dotenv_place(outcome)
    return outcome


@pytest.mark.parametrize("reason", DOTENV_REFUSALS)
def test_text_is_refused_at_its_mistake(reason):
    """parse_dotenv() refuses a text at the line and the column of its mistake, with the reason."""
    cases = [case for case in DOTENV_REFUSALS[reason] if isinstance(case[1], str)]
    assert [(_dotenv_where_refused(text, reason), text) for _, text in cases] == cases


@pytest.mark.parametrize("reason", DOTENV_REFUSALS)
def test_bytes_are_refused_at_their_mistake(reason):
    """parse_dotenv() refuses the UTF-8 of a text where it refuses the text."""
    cases = DOTENV_REFUSALS[reason]
    seen = []
    for _, text in cases:
        seen.append((_dotenv_where_refused(_dotenv_as_bytes(text), reason), text))
    assert seen == cases


@pytest.mark.parametrize("text", ['{"A": "b"}', '{\n  "A": "b"\n}'])
def test_json_is_refused_at_its_beginning(text):
    """parse_dotenv() refuses JSON at its first character."""
    assert _dotenv_place(_dotenv_refusal(text)) == "1:1"
    assert _dotenv_expected(text) is None


# What an escape stands for within single and within double quotes.
DOTENV_ESCAPES = {
    "'": {
        "\\\\": "\\",
        "\\'": "'",
    },
    '"': {
        "\\\\": "\\",
        "\\'": "'",
        '\\"': '"',
        "\\a": "\a",
        "\\b": "\b",
        "\\f": "\f",
        "\\n": "\n",
        "\\r": "\r",
        "\\t": "\t",
        "\\v": "\v",
    },
}


class _DotenvGrammar:
    """python-dotenv 1.2.4's grammar, a step at a time."""

    def __init__(self, text):
        # python-dotenv keeps a carriage return within quotes. In hotenv a newline is a newline.
        text = re.sub("^\ufeff", "", text)
        self.text = re.sub("\r\n?", "\n", text)
        self.at = 0

    def entries(self):
        """Return name, value or None, and whether it is exported, of each entry.

        Raise ValueError where the text is malformed.
        """
        entries = []
        while self._take(r"\s*") and self.at < len(self.text):
            is_exported = self._take(r"(export[^\S\n]+)?")[1] is not None
            name = None
            value = None
            if not self.text.startswith("#", self.at):
                quoted, bare = self._take(r"'([^']+)'|(?!')([^=#\s]+)").groups()
                name = quoted or bare
            self._take(r"[^\S\n]*")
            if self.text.startswith("=", self.at):
                value = self._value()
            self._take(r"[^\S\n]*(#[^\n]*)?(\n|$(?!\n))")
            if name is not None:
                entries.append((name, value, is_exported))
        return entries

    def _value(self):
        """Return the value that begins with its `=`."""
        blanks = self._take(r"=([^\S\n]*)")[1]
        mark = self.text[self.at : self.at + 1]
        if mark == "#" and blanks:
            return ""
        if mark in ("'", '"'):
            return self._quoted(mark)
        line = self._take(r"[^\n]*")[0]
        return re.split(r"\s#", line)[0].rstrip()

    def _quoted(self, mark):
        """Return the value that begins with this quote."""
        body = self._take(r"%s((?:\\.|[^\\%s])*)%s" % (mark, mark, mark))[1]

        def decoded(escape):
            return DOTENV_ESCAPES[mark].get(escape[0], escape[0])

        return re.sub(r"\\.", decoded, body, flags=re.DOTALL)

    def _take(self, pattern):
        """Match a pattern at this point of the text, and go behind it."""
        found = re.compile(pattern, re.DOTALL).match(self.text, self.at)
        if not found:
            raise ValueError
        self.at = found.end()
        return found


def _dotenv_expected(text):
    """Return what a text without references means by python-dotenv's grammar.

    Return None where hotenv must refuse: a malformed text, a name that no shell would take, a name
    alone, a NUL.
    """
    try:
        entries = _DotenvGrammar(text).entries()
    except ValueError:
        return None

    meaning = {}
    for name, value, is_exported in entries:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            return None
        if value is not None:
            meaning[name] = value
        elif not (is_exported and name in meaning):
            return None
    if "\0" in text:
        return None
    return meaning


@pytest.mark.parametrize("topic", DOTENV_MEANINGS)
def test_meanings_agree_with_the_grammar(topic):
    """The table of meanings says what python-dotenv's grammar says."""
    cases = []
    for text, meaning in DOTENV_MEANINGS[topic]:
        if isinstance(text, str) and "${" not in text:
            cases.append((text, meaning))
    assert [(text, _dotenv_expected(text)) for text, _ in cases] == cases


@pytest.mark.parametrize("reason", DOTENV_REFUSALS)
def test_refusals_agree_with_the_grammar(reason):
    """The table of refusals holds no text that python-dotenv's grammar would have read."""
    texts = []
    for _, text in DOTENV_REFUSALS[reason]:
        if isinstance(text, str) and "${" not in text:
            texts.append(text)
    assert [(text, _dotenv_expected(text)) for text in texts] == [(text, None) for text in texts]


def test_meanings_agree_with_python_dotenv():
    """The table of meanings says what python-dotenv itself says."""
    dotenv = python_dotenv()
    for text, meaning in itertools.chain(*DOTENV_MEANINGS.values()):
        # python-dotenv differs in newlines within quotes, byte order marks and references.
        if isinstance(text, bytes) or re.search("\r|\ufeff|[$]{", text):
            continue
        found = dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False)
        # After `export NAME` alone python-dotenv loses a value.
        if None not in found.values():
            assert found == meaning, ascii(text)


# The pieces of random texts; an odd one makes most texts malformed.
DOTENV_NAMES = ["A", "B", "A.b-1", "export", "'Q'", "export A", "export\t'B'"]
DOTENV_ODD_NAMES = [
    "'A B'",
    "''",
    "\u00e9",
    "'",
    "",
    "export ",
    "A B",
    "#",
    "A:",
    "export\n",
]
DOTENV_EQUALS = ["=", "=", "=", " = ", "=\t", "\x0b=\x0c", "\u2028=\u3000", "\xa0=\x85"]
DOTENV_ODD_EQUALS = ["", " ", ":", "\n=", " #", "#", "=="]
DOTENV_VALUES = [
    "",
    "x",
    "b c",
    "#c",
    " #c",
    "x #c",
    "x#c",
    "\u00e9",
    "'q'",
    '"q"',
    "'a\\'b\\\\'",
    "' # '#",
    '"a\\"b\\n\\q\\\\" # c',
    '"\\\\"',
    "'two\n#lines'",
    '"two\\\r\nlines"',
    '"$x\\n # y"',
    '"' + "\\q" * 120 + '"',
    "'" + "\\'" * 120 + "'",
    "\\",
    "\\\\",
    "b\\",
    "b'",
    "$A",
    "{}",
    "x\x1c",
    "\x85",
    "\u2028x",
    "\x0b# ",
    "x \t \x0c#",
]
DOTENV_ODD_ENDS = ["x", " ", "'", '"', "#", "\\", "\r", "\x00", "\x0b", "\ufeff", '"q"']
DOTENV_NEWLINES = ["\n", "\n", "\n", "\r\n", "\r", "\n \n", " # c\n", "\x0b\n", "#\n"]
DOTENV_STRUCTURE = " =#'\"\\\n\r\tAexport\x0b\u2028\x00$"


def _dotenv_random_text(rng):
    """Return a random text: mostly pieces in the shape of the grammar, else structure alone."""
    text = ""
    if rng.random() < 0.1:
        text = "\ufeff"
    if rng.random() < 0.25:
        return text + "".join(rng.choice(DOTENV_STRUCTURE) for _ in range(rng.randrange(14)))

    for _ in range(rng.randrange(1, 5)):
        text += rng.choice(DOTENV_NAMES if rng.random() < 0.9 else DOTENV_ODD_NAMES)
        text += rng.choice(DOTENV_EQUALS if rng.random() < 0.9 else DOTENV_ODD_EQUALS)
        text += rng.choice(DOTENV_VALUES)
        if rng.random() < 0.2:
            text += rng.choice(DOTENV_ODD_ENDS)
        text += rng.choice(DOTENV_NEWLINES)
    if rng.random() < 0.3:
        text = text.rstrip("\n")
    return text.replace("${", "$")


def test_random_texts_agree_with_the_grammar():
    """What python-dotenv's grammar reads means the same here, and all else is refused."""
    rng = random.Random(SEED)
    counts = {"read": 0, "refused": 0}
    for _ in range(amount(60_000)):
        text = _dotenv_random_text(rng)
        source = rng.choice([text, text.encode()])
        expected = _dotenv_expected(text)
        seen = _dotenv_outcome(source, {})
        if expected is None:
            counts["refused"] += 1
            assert isinstance(seen, str), ascii(text)
        else:
            counts["read"] += 1
            assert seen == list(expected.items()), ascii(text)
    assert min(counts.values()) > amount(60_000) / 5, "one side of the comparison was hardly tried"


class _DotenvMistake(Exception):
    """A malformed reference.

    `places` are the offsets of the `$` of each reference that is open there, the outermost first.
    """

    def __init__(self, places):
        super().__init__(places)
        self.places = places


class _DotenvDescent:
    """hotenv's language of references, read by recursive descent.

    A method returns what a piece of the text stands for, and the offsets of the `$` of references
    whose variable is required and missing. It goes behind that piece.
    """

    def __init__(self, text, known, has_escapes):
        self.text = text
        self.known = known  # what names stand for
        self.has_escapes = has_escapes  # as between double quotes
        self.at = 0

    def expand(self, opened=()):
        """Read up to the `}` of the last reference that is open, or up to the end if none is."""
        value = ""
        missing = []
        while self.at < len(self.text):
            step = self.text[self.at : self.at + 2]
            if opened and step[0] == "}":
                break
            if self.text.startswith("\\${", self.at):
                value += "${"
                self.at += 3
            elif self.has_escapes and step in DOTENV_ESCAPES['"']:
                value += DOTENV_ESCAPES['"'][step]
                self.at += 2
            elif step == "${":
                found, more = self._reference(opened)
                value += found
                missing += more
            else:
                value += step[0]
                self.at += 1
        return value, missing

    def _reference(self, opened):
        """Read a reference, which stands within those that are open."""
        dollar = self.at
        opened = (*opened, dollar)
        start = re.compile(r"([\w.]*)(:?[-+?]|}|)", re.ASCII).match(self.text, dollar + 2)
        name, operator = start.groups()
        if not name or not operator:
            raise _DotenvMistake(opened)
        self.at = start.end()
        found = self.known.get(name)
        if operator == "}":
            return found or "", []

        word, missing = self.expand(opened)
        if self.at == len(self.text):
            raise _DotenvMistake(opened)
        self.at += 1  # the closing brace

        is_there = found is not None
        if operator.startswith(":"):
            is_there = bool(found)
        if operator.endswith("+"):
            return (word, missing) if is_there else ("", [])
        if is_there:
            return found, []
        if operator.endswith("-"):
            return word, missing
        return "", [dollar]


# What random references are made of. The pieces mean the same in bare values and in double quotes.
DOTENV_REFERENCE_PIECES = [
    "x",
    "yz",
    "$",
    "$S",
    "{",
    "}",
    "\\${",
    "\u00e9",
    "\U0001f511",
    "\\\\",
    "-",
    ":",
    "?",
    "$$",
]
DOTENV_REFERENCE_NAMES = ["S", "E", "U", "H", "NIL", "S.1"]
DOTENV_REFERENCE_ODD_NAMES = ["", "S", "S ", "!S", "\u00e9", "${S}", "S:"]
DOTENV_REFERENCE_OPERATORS = ["", "", ":-", "-", ":+", "+", ":?", "?"]
DOTENV_REFERENCE_ODD_OPERATORS = ["", ":=", "=", ":", "/", "%", "[0]"]


def _dotenv_random_value(rng, depth=0):
    """Return random text with references in it, some of them malformed."""
    value = ""
    for _ in range(rng.randrange(4)):
        if depth >= 4 or rng.random() >= 0.45:
            value += rng.choice(DOTENV_REFERENCE_PIECES)
            continue

        if rng.random() < 0.95:
            name = rng.choice(DOTENV_REFERENCE_NAMES)
            operator = rng.choice(DOTENV_REFERENCE_OPERATORS)
        else:
            name = rng.choice(DOTENV_REFERENCE_ODD_NAMES)
            operator = rng.choice(DOTENV_REFERENCE_ODD_OPERATORS)
        value += "${" + name + operator
        if operator:
            value += _dotenv_random_value(rng, depth + 1)
        if rng.random() < 0.97:
            value += "}"
    return value


# The host of random texts with references, and what names stand for after their first entries.
DOTENV_RANDOM_HOST = {"S": "hidden", "E": "hidden", "H": "${H}\\n", "NIL": ""}
DOTENV_RANDOM_ENTRIES = "S=set\nE=\n'S.1'='${S}'\n"
DOTENV_RANDOM_KNOWN = {"S": "set", "E": "", "S.1": "${S}", "H": "${H}\\n", "NIL": ""}


class _DotenvCase:
    """A random text whose entry A has references, and what parse_dotenv() must make of it.

    - `value`: the value of A; None where the text must be refused.
    - `reason` and `places`: why, and at which of these places.
    - `may_be_two`: whether the text may have another mistake, which hotenv may find first.
    """

    def __init__(self, rng):
        value = _dotenv_random_value(rng)
        is_quoted = rng.random() < 0.5
        if is_quoted:
            if rng.random() < 0.5:
                before = rng.choice(["\\n", '\\"', "\n", "\\q", "a #b"])
                value = before + value + rng.choice(["\\t", "\r\n", " ", "\\$"])
            self.text = DOTENV_RANDOM_ENTRIES + 'A="' + value + '"\n'
            descent = _DotenvDescent(value, DOTENV_RANDOM_KNOWN, has_escapes=True)
        else:
            self.text = DOTENV_RANDOM_ENTRIES + "A=x" + value + "\n"
            descent = _DotenvDescent(value.rstrip(), DOTENV_RANDOM_KNOWN, has_escapes=False)

        self.value = None
        self.reason = None
        self.places = []
        try:
            expanded, missing = descent.expand()
        except _DotenvMistake as mistake:
            self.reason = "bad reference"
            self.places = [self._place(offset) for offset in mistake.places]
            self.may_be_two = "?" in value
            return
        self.may_be_two = False
        if missing:
            self.reason = "required"
            self.places = [self._place(missing[0])]
        else:
            self.value = ("" if is_quoted else "x") + expanded.replace("\r\n", "\n")

    def _place(self, offset):
        """Return LINE:COLUMN of an offset in the value, which a quote or an `x` precedes."""
        start = self.text.index("A=") + len("A=x")
        before = self.text[: start + offset].replace("\r\n", "\n")
        return "%d:%d" % (before.count("\n") + 1, len(before) - before.rfind("\n"))


def _dotenv_random_cases():
    """Return random texts with references, the same ones for each test."""
    rng = random.Random(SEED)
    return [_DotenvCase(rng) for _ in range(amount(60_000))]


def test_random_references_expand():
    """A value with references expands to what a recursive descent finds."""
    for case in _dotenv_random_cases():
        if case.reason is None:
            seen = hotenv.parse_dotenv(case.text, DOTENV_RANDOM_HOST)["A"]
            assert seen == case.value, ascii(case.text)


def test_random_mistakes_are_refused():
    """A malformed reference, or a missing variable, is refused at the place of its `$`."""
    for case in _dotenv_random_cases():
        if case.reason is None:
            continue
        message = _dotenv_refusal(case.text.encode(), DOTENV_RANDOM_HOST)
        if not case.may_be_two:
            assert _dotenv_has_reason(message, case.reason), ascii(case.text)
            assert _dotenv_place(message) in case.places, ascii(case.text)


def test_random_references_are_of_each_kind():
    """The random texts with references that tests compare are good and bad ones, enough of each."""
    counts = {None: 0, "bad reference": 0, "required": 0}
    for case in _dotenv_random_cases():
        counts[case.reason] += 1
    assert min(counts.values()) > amount(60_000) / 50, counts


def _dotenv_doubling(lines):
    """Return the lines of a text in which each value is twice as long as the one before."""
    doubling = ["A%d=${A%d}${A%d}" % (number, number - 1, number - 1) for number in range(1, lines)]
    return ["A0=x", *doubling]


def test_doubling_is_refused():
    """References that double a value again and again are refused at once."""
    quoted = [line.replace("=", '="') + '"' for line in _dotenv_doubling(61)]
    # The first text comes first: without a limit the others would take all memory of the machine.
    for lines in (_dotenv_doubling(28), _dotenv_doubling(61), quoted):
        started = time.process_time()
        assert "too large" in _dotenv_refusal("\n".join(lines))
        assert time.process_time() - started < 2


@pytest.mark.parametrize("reference", ["${A:-}", "${U:-${A}}", "${A:+${A}}", "${A:?}"])
def test_too_large_expansion_is_refused(reference):
    """References that expand to more than 64 MiB are refused at once."""
    text = "A=" + "x" * 100_000 + "\nB=" + reference * 1_000
    started = time.process_time()
    assert "too large" in _dotenv_refusal(text)
    assert time.process_time() - started < 2


def test_a_megabyte_of_expansion_is_read():
    """References may expand to a megabyte."""
    values = hotenv.parse_dotenv("\n".join(_dotenv_doubling(21))).values()
    assert [len(value) for value in values] == [2**exponent for exponent in range(21)]


def _dotenv_nested(depth):
    """Return a text with this many references within each other's defaults."""
    return "A=" + "${U:-" * depth + "x" + "}" * depth


@pytest.mark.parametrize("depth", [1, 30])
def test_thirty_nested_references_are_read(depth):
    """References may stand in the defaults of references, thirty deep."""
    assert hotenv.parse_dotenv(_dotenv_nested(depth)) == {"A": "x"}


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_very_deep_references_do_no_harm(depth):
    """References within very many others are read or refused, and exhaust no stack."""
    outcome = _dotenv_outcome(_dotenv_nested(depth))
    if isinstance(outcome, list):
        assert outcome == [("A", "x")]


@pytest.mark.parametrize("depth", [1, 30, 1_000, 100_000])
def test_unclosed_reference_is_refused(depth):
    """A reference whose `}` is missing is refused, whatever stands within it."""
    assert re.search("bad reference|nested", _dotenv_refusal(_dotenv_nested(depth)[:-1]))


class _DotenvShape:
    """A text of any size: a head, a unit again and again, a middle, a closing for each unit.

    A `%d` in the unit becomes its number.
    """

    def __init__(self, head, unit, middle="", closing=""):
        self.head = head
        self.unit = unit
        self.middle = middle
        self.closing = closing

    def text(self, size):
        """Return a text of about so many characters."""
        count = size // len(self.unit + self.closing)
        if "%d" in self.unit:
            body = "".join(self.unit.replace("%d", str(number)) for number in range(count))
        else:
            body = self.unit * count
        return self.head + body + self.middle + self.closing * count


DOTENV_SHAPES = {
    "lines": _DotenvShape("", "KEY_%d=value-%d-of-some-length\n"),
    "quoted values": _DotenvShape("", "K%d=\"quo\\ted '%d'\" # c\n"),
    "quoted lines": _DotenvShape("K='", "some words of it\n", "'\n"),
    "one double": _DotenvShape('K="', "x", '"'),
    "one bare": _DotenvShape("K=", "x"),
    "one escaped": _DotenvShape('K="', "\\n\\q", '"'),
    "blanks inside": _DotenvShape("K=x", " ", "y"),
    "blanks after": _DotenvShape("K=x", " \t", "\nA=b"),
    "blanks first": _DotenvShape("", " ", "K=x"),
    "blanks before junk": _DotenvShape("K", " ", "x"),
    "blanks after quote": _DotenvShape("K='x'", " ", "x"),
    "blank lines": _DotenvShape("", "\n \r\n"),
    "blank words": _DotenvShape("K=", "x ", "\n"),
    "references": _DotenvShape("B=x\nK=", "${B}"),
    "references on lines": _DotenvShape("B=x\n", "K%d=${B}${K%d:-y}\n"),
    "open references": _DotenvShape("K=", "${"),
    "unclosed references": _DotenvShape("K=", "${B"),
    "literal references": _DotenvShape('K="', "\\${", '"'),
    "references in single": _DotenvShape("K='", "${", "'"),
    "nested": _DotenvShape("K=", "${B:-", "x", "}"),
    "nested and used": _DotenvShape("B=x\nK=", "${B:+", "x", "}"),
    "nested and open": _DotenvShape("K=", "${B:-"),
    "nested in required": _DotenvShape("K=", "${B:?", "", "}"),
    "dollars": _DotenvShape("K=", "$"),
    "braces": _DotenvShape("K=${B:-", "{", "}"),
    "hashes": _DotenvShape("K=", "#"),
    "hashes and blanks": _DotenvShape("K='x' ", " #"),
    "hash lines": _DotenvShape("", "#\n"),
    "backslashes": _DotenvShape("K=", "\\"),
    "double backslashes": _DotenvShape('K="', "\\\\", '"'),
    "single backslashes": _DotenvShape("K='", "\\\\", "'"),
    "unclosed backslashes": _DotenvShape('K="\\', "\\\\"),
    "backslashes and quotes": _DotenvShape('K="', '\\"', '"'),
    "escaped quotes": _DotenvShape("K='", "\\'", "'"),
    "escaped quotes, reference": _DotenvShape('K="', '\\"', '${B}"'),
    "escaped quotes, junk": _DotenvShape("K='", "\\'", "' x"),
    "escaped quotes, open": _DotenvShape("K='", "\\'"),
    "quotes": _DotenvShape("K=x", "'\""),
    "one name": _DotenvShape("", "K", "=x"),
    "one name alone": _DotenvShape("", "K"),
    "one quoted name": _DotenvShape("'", "K", "'=x"),
    "exports": _DotenvShape("K=1\n", "export K\n"),
    "export exports": _DotenvShape("", "export "),
    "late error": _DotenvShape("", "KEY=value\r\n", "!"),
    "one name's entries": _DotenvShape("", "K=1\n"),
    "questions": _DotenvShape("", "A=?\n"),
    "questions with text": _DotenvShape("", "K%d=?text\n"),
}
DOTENV_SHAPE_SIZE = 10_000_000 if FULL else 200_000  # characters


def _dotenv_seconds(text, runs=1):
    """Return the processor time of the best of some runs; a refusal counts as well.

    The garbage collector stays out of the measure.
    """
    best = float("inf")
    gc.disable()
    try:
        for _ in range(runs):
            started = time.process_time()
            with contextlib.suppress(hotenv.HotenvError):
                hotenv.parse_dotenv(text)
            best = min(best, time.process_time() - started)
    finally:
        gc.enable()
    return best


@pytest.mark.parametrize("shape", DOTENV_SHAPES)
def test_parsing_time_is_linear(shape):
    """Ten times the text takes at most 14 times the time to parse, whatever its shape."""
    big_text = DOTENV_SHAPES[shape].text(DOTENV_SHAPE_SIZE)
    small_text = DOTENV_SHAPES[shape].text(DOTENV_SHAPE_SIZE // 10)
    small = _dotenv_seconds(small_text, runs=3)
    big = _dotenv_seconds(big_text)
    if big > 14 * small + 0.01:
        # Another program may have held up the first runs.
        small = _dotenv_seconds(small_text, runs=3)
        big = _dotenv_seconds(big_text, runs=2)
    assert big <= 14 * small + 0.01


@pytest.mark.parametrize("shape", DOTENV_SHAPES)
def test_parsing_is_fast_for_any_shape(shape):
    """Half a megabyte of text takes at most a second to parse, whatever its shape."""
    assert _dotenv_seconds(DOTENV_SHAPES[shape].text(DOTENV_SHAPE_SIZE)) < DOTENV_SHAPE_SIZE * 2e-6


def _dotenv_beside_a_split(text):
    """Return how many times as long parsing takes as splitting each line at its `=`."""
    parsing = _dotenv_seconds(text)
    started = time.process_time()
    dict([line.split("=", 1) for line in text.split("\n") if "=" in line])
    return parsing / (time.process_time() - started)


def test_parsing_takes_four_times_a_split():
    """Plain lines parse in less than four times the time that splitting them takes."""
    text = DOTENV_SHAPES["lines"].text(DOTENV_SHAPE_SIZE * 9)
    measures = []
    while len(measures) < 15:
        measures.append(_dotenv_beside_a_split(text))
        if measures[-1] < 4:
            break
    assert min(measures) < 4


# How many times the size of the text its reading may take.
DOTENV_MEMORY = {
    "one double": 32,
    "one bare": 32,
    "one escaped": 32,
    "blanks inside": 32,
    "double backslashes": 32,
    "quoted lines": 32,
    "escaped quotes": 32,
    "literal references": 32,
    "references": 120,
    "questions": 60,
}


@pytest.mark.parametrize("shape", DOTENV_MEMORY)
def test_parsing_memory_is_linear(shape):
    """A value takes a few times its length to parse.

    So there is no list of its characters, no frame for each escape, and no copy for each key.
    """
    text = DOTENV_SHAPES[shape].text(400_000 if FULL else 30_000)
    tracemalloc.start()
    hotenv.parse_dotenv(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(text) * DOTENV_MEMORY[shape]


# Characters that stand in no message of hotenv, and pieces that make texts malformed.
DOTENV_FOREIGN = [
    "\u0416",
    "\u0449",
    "\u044f",
    "\u03a9",
    "\u03b4",
    "\u05d0",
    "\u0e01",
    "\u4e2d",
    "\ue000",
    "\uf8ff",
    "\U0001f511",
    "\U0010fffd",
    "\u200b",
    "\u0301",
]
DOTENV_MALFORMING = [
    "=",
    "'",
    '"',
    "\\",
    "#",
    " ",
    "\n",
    "\r",
    "${",
    "}",
    ":-",
    ":?",
    "?",
    "-",
    "+",
    "\x0b",
    "export ",
    "A",
    "B",
    "\0",
    "\ufeff",
    "A=",
    "A='",
    'B="',
    "\nA=",
    "${A",
    "${A:?",
]


def _dotenv_random_foreign_input(rng):
    """Return a random text, or its bytes with one of them wrong."""
    text = ""
    for _ in range(rng.randrange(1, 24)):
        text += rng.choice(DOTENV_FOREIGN if rng.random() < 0.5 else DOTENV_MALFORMING)
    if rng.random() >= 0.3:
        return text
    data = bytearray(text.encode())
    data[rng.randrange(len(data))] = rng.randrange(128, 256)
    return bytes(data)


def test_random_errors_show_no_input():
    """Invariant 1: an error holds no character of its input, and no escape of one."""
    rng = random.Random(SEED)
    hidden = set(DOTENV_FOREIGN)
    escapes = [character.encode("unicode_escape").decode() for character in DOTENV_FOREIGN]
    refused = 0
    for _ in range(amount(100_000)):
        source = _dotenv_random_foreign_input(rng)
        try:
            hotenv.parse_dotenv(source, {"B": rng.choice(DOTENV_FOREIGN)})
        except hotenv.HotenvError as error:
            refused += 1
            parts = [_dotenv_checked(error), repr(error), error.args, vars(error)]
            shown = " ".join(map(str, parts))
            assert hidden & set(shown) == set(), ascii(source)
            assert [each for each in escapes if each in shown] == [], ascii(source)
    assert refused > amount(100_000) / 5, "hardly any text was refused"


DOTENV_LONG_SECRET = "sesame " * 1_000


@pytest.mark.parametrize(
    "source",
    [
        "sesame",
        "sesame open",
        "A=open\nsesame",
        "export sesame",
        "A=b\nexport sesame # c",
        "export 'sesame'",
        "'sesame' x",
        "sesame: x",
        "A=open${sesame",
        "A=open${sesame:=x}",
        "A=open${sesame?}",
        "A=${U:-${sesame:?}}",
        "A=${U:?sesame}",
        'A="${U?ses${H}same}"',
        "A=${U:?sesame ${U:-sesame}}",
        "A=${V:-${U?sesame}}",
        "A='" + DOTENV_LONG_SECRET,
        'A="b" ' + DOTENV_LONG_SECRET,
        DOTENV_LONG_SECRET,
        "'" + DOTENV_LONG_SECRET + "'=b",
        "A=${" + DOTENV_LONG_SECRET,
        "A=b\n" + DOTENV_LONG_SECRET,
        DOTENV_LONG_SECRET + "\0",
        "A=${U:?" + DOTENV_LONG_SECRET + "}",
        "A=${U:-" + DOTENV_LONG_SECRET,
        ("A=" + DOTENV_LONG_SECRET).encode() + b"\xff",
        "=" + DOTENV_LONG_SECRET,
        "A b " + DOTENV_LONG_SECRET,
    ],
    ids=short,
)
def test_error_shows_no_tail_of_a_secret(source):
    """Invariant 1: an error shows nothing that is no key: it may be the tail of a secret.

    A bare name, an exported name and the name of a reference are no keys.
    """
    message = _dotenv_refusal(source)
    assert "sesame" not in message
    assert "host" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    "text",
    [
        "KEY='b",
        'export KEY="b',
        "'KEY'='b' c",
        "KEY=${",
        'KEY="${U:?}"',
    ],
)
def test_error_names_the_key(text):
    """An error in a value names the key."""
    assert "KEY" in _dotenv_refusal(text)


def test_error_shows_the_opening_quote():
    """The error for text after a closing quote says where the quote was opened."""
    assert "2:7" in _dotenv_refusal("A=b\nKEY = 'c\nd' e")


def test_lone_surrogate_is_refused():
    """A text that no UTF-8 can hold is refused, as bytes that are no UTF-8 are."""
    message = _dotenv_refusal("A=b\r\nB=c\udc80")
    assert _dotenv_has_reason(message, "UTF-8")
    assert _dotenv_place(message) == "2:4"


# ==== redaction ===================================================================================
# Values and their spellings, in a string and in a stream.


def raw(value):
    """Return the bytes that a value of the environment stands for."""
    return value.encode("utf-8", "surrogateescape")


def cut(redactor, data, *at):
    """Return what a stream gives for `data` that comes in pieces, cut at these offsets."""
    stream = redactor.stream()
    starts = [0, *at]
    ends = [*at, len(data)]
    pieces = [stream.feed(data[start:end]) for start, end in zip(starts, ends)]
    return b"".join(pieces) + stream.flush()


def _redaction_pem():
    """Return a private key of sixty lines, which nobody has."""
    lines = ["-----BEGIN PRIVATE KEY-----"]
    for seed in range(60):
        number = random.Random(seed).getrandbits(384)
        lines.append(base64.b64encode(number.to_bytes(48, "big")).decode())
    lines.append("-----END PRIVATE KEY-----")
    return "\n".join(lines) + "\n"


REDACTION_PEM = _redaction_pem()
REDACTION_VALUES = {
    "TOKEN": TOKEN,
    "URL": "postgres://app:p%40ss/w?rd=1&x=~a'b@db.example:5432/main",
    "QUOTES": 'it\'s "quoted" <b>&amp; `x` $HOME \\n!',
    "ACCENTS": "naïve-Größe-\U0001f511-key",
    "LINES": "first line's text\nsecond\tline\r\nthird line: ü",
    "PADDED": "  blanks around me \n",
    "JSON": json.dumps({"type": "service_account", "key": "-----BEGIN\nabc/def+ghi==\n"}, indent=2),
    "BYTES": os.fsdecode(b"latin-1 \xe9\xff text"),
    "HEX_ODD": "what-is-31-characters-in-length",
    "CONTROL": "esc\x1b[1m bell\x07 del\x7f nul-less",
    "PEM": REDACTION_PEM,
    "PATHS": r"C:\xyz\x07;\\nas-7\new",
}


def _spelled_repr_in_single_quotes(value):
    """Return repr() of a value as it would be next to both quotes: with its own `'` escaped."""
    return repr(value + "'\"")[: -len("\\'\"'")]


def _spelled_url(value, safe):
    """Return a value with all but letters, digits and `safe` as %XX."""
    return urllib.parse.quote_from_bytes(raw(value.strip()), safe)


def _spelled_json(value):
    """Return what stands between the quotes in JSON of ASCII alone."""
    return json.dumps(value)[1:-1]


def _spelled_json_with_utf8(value):
    """Return what stands between the quotes in JSON that keeps other characters."""
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _spelled_json_of_go(value):
    """Return the JSON that Go writes, which escapes what HTML would read as markup."""
    return re.sub("[&<>]", lambda found: "\\u%04x" % ord(found[0]), _spelled_json_with_utf8(value))


REDACTION_SPELLINGS = {
    "as it is": str,
    "repr": repr,
    "repr, the other quote": _spelled_repr_in_single_quotes,
    "repr of bytes": lambda value: repr(raw(value)),
    "ascii": ascii,
    "base64": lambda value: base64.b64encode(raw(value.strip())).decode(),
    "base64 without padding": lambda value: base64.b64encode(raw(value.strip()))
    .decode()
    .rstrip("="),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(raw(value.strip())).decode(),
    "hex": lambda value: raw(value.strip()).hex(),
    "quote": lambda value: _spelled_url(value, "/"),
    "quote, nothing safe": lambda value: _spelled_url(value, ""),
    "encodeURIComponent": lambda value: _spelled_url(value, "!'()*"),
    "quote_plus": lambda value: urllib.parse.quote_plus(raw(value.strip())),
    "JSON": _spelled_json,
    "JSON with UTF-8": _spelled_json_with_utf8,
    "JSON of PHP": lambda value: _spelled_json(value).replace("/", "\\/"),
    "JSON of Go": _spelled_json_of_go,
    "shlex": shlex.quote,
    "single quotes": lambda value: "'" + value.replace("'", "'\\''") + "'",
    "html.escape": html.escape,
    "html.escape, quotes kept": lambda value: html.escape(value, quote=False),
}


@pytest.fixture(scope="module")
def redactor_of_all():
    """A Redactor of all values that the tests of spellings use, and of one more."""
    return hotenv.Redactor({"OTHER": "something else entirely", **REDACTION_VALUES})


@pytest.mark.parametrize("spelling", REDACTION_SPELLINGS)
def test_every_spelling_is_masked(redactor_of_all, spelling):
    """A spelling of a value is hidden under the name of the value.

    What may stay around it is quotes and blanks, the latter also as escapes, and the b of bytes.
    """
    for name, value in REDACTION_VALUES.items():
        spelled = REDACTION_SPELLINGS[spelling](value)
        masked = redactor_of_all("<<%s>>" % spelled)
        left = masked.replace("[hidden:%s]" % name, "", 1)
        assert left[:2] + left[-2:] == "<<>>", masked
        assert left[2:-2].strip("'\" \nb\\nt") == "", masked


@pytest.mark.parametrize(
    "coder", [base64.b64encode, base64.urlsafe_b64encode], ids=["standard", "for URLs"]
)
@pytest.mark.parametrize("before", [b"use", b"user", b"user:"])
@pytest.mark.parametrize("after", [b"", b"\n", b":more text after it"])
def test_base64_at_any_offset_is_masked(redactor_of_all, coder, before, after):
    """A value is hidden within the base64 of a longer text, at whatever offset it stands."""
    for name, value in REDACTION_VALUES.items():
        mark = b"[hidden:%s]" % name.encode()
        masked = cut(redactor_of_all, coder(before + raw(value.strip()) + after))
        assert mark in masked
        left = masked.replace(mark, b"")
        assert len(left) <= 8 + len(coder(after)) + 4, masked


# Environments, and what texts become with them. Short values are hidden as whole words, or not at
# all. Of several names the first is shown. A value of several lines is hidden as a whole, and so is
# each of its lines that has 8 characters or more.
REDACTION_SHORT = {"WORD": "x443", "PIN": "12-34", "SIGN": "$abc", "UMLAUT": "grün"}
REDACTION_TOO_SHORT = {"A": "abc", "B": "", "C": "  x  ", "D": "   \n\n      ", "E": "abcd"}
REDACTION_SLASHES = {"U": "ws://host///p\\'s/"}
REDACTION_TWINS = {"A": "abcdefgh", "B": "abcdefgh"}
REDACTION_LINES = {"KEY": REDACTION_PEM, "SHORT": "aaa\nbbb\nccc"}
REDACTION_CASES = [
    (REDACTION_SHORT, "x443", "[hidden:WORD]"),
    (REDACTION_SHORT, "=x443,", "=[hidden:WORD],"),
    (REDACTION_SHORT, "1x443", "1x443"),
    (REDACTION_SHORT, "x4430", "x4430"),
    (REDACTION_SHORT, "_x443", "_x443"),
    (REDACTION_SHORT, "x443 x443", "[hidden:WORD] [hidden:WORD]"),
    (REDACTION_SHORT, "\u201cx443\u201d", "\u201c[hidden:WORD]\u201d"),
    (REDACTION_SHORT, "$abcd", "$abcd"),
    (REDACTION_SHORT, "12-34", "[hidden:PIN]"),
    (REDACTION_SHORT, "912-34", "912-34"),
    (REDACTION_SHORT, "12-34-", "[hidden:PIN]-"),
    (REDACTION_SHORT, "x$abc", "x[hidden:SIGN]"),
    (REDACTION_SHORT, "grün", "[hidden:UMLAUT]"),
    (REDACTION_SHORT, "grüner", "grüner"),
    (REDACTION_SHORT, "eDQ0Mw==", "eDQ0Mw=="),  # base64 of x443
    (REDACTION_TOO_SHORT, "abc x abcd         ", "abc x [hidden:E]         "),
    ({}, "any text", "any text"),
    (REDACTION_SLASHES, "/ws:/host/p\\'s;", "/[hidden:U];"),
    (REDACTION_SLASHES, "$'ws://host///p\\\\\\'s/'", "$'[hidden:U]'"),
    (REDACTION_TWINS, "\udce9abcdefgh", "\udce9[hidden:A]"),
    (REDACTION_LINES, "[%s]" % REDACTION_PEM, "[[hidden:KEY]\n]"),
    (REDACTION_LINES, "aaa\nbbb\nccc, aaa\nbbb", "[hidden:SHORT], aaa\nbbb"),
    (
        REDACTION_LINES,
        "\r\n".join("    " + line for line in REDACTION_PEM.splitlines()),
        "\r\n".join(["    [hidden:KEY]"] * 62),
    ),
    (
        REDACTION_LINES,
        json.dumps({"key": REDACTION_PEM}),
        '{"key": "[hidden:KEY]\\n"}',
    ),
]
REDACTION_CASE_IDS = [short(text) for _, text, _ in REDACTION_CASES]


@pytest.mark.parametrize("env, text, masked", REDACTION_CASES, ids=REDACTION_CASE_IDS)
def test_text_is_masked_as_the_table_says(env, text, masked):
    """A Redactor hides what is a value, and leaves what is none."""
    assert hotenv.Redactor(env)(text) == masked


@pytest.mark.parametrize("env, text, masked", REDACTION_CASES, ids=REDACTION_CASE_IDS)
def test_stream_is_masked_as_its_text(env, text, masked):
    """A stream in up to a hundred pieces gives what the whole text gives."""
    data = raw(text)
    step = 1 + len(data) // 99
    out = cut(hotenv.Redactor(env), data, *range(1, len(data), step))
    assert os.fsdecode(out) == masked


def test_short_values_are_unmaskable():
    """A Redactor names the values that are too short to hide; an empty one is no value."""
    assert hotenv.Redactor(REDACTION_TOO_SHORT).unmaskable == ["A", "C"]


def test_skip_leaves_values_as_they_are():
    """A Redactor hides no value whose name, or whose pattern of names, it is to skip."""
    env = {"APP_ENV": "productive", "AWS_ID": "id-of-aws", "AWS_KEY": "key-of-aws", "TOKEN": TOKEN}
    redactor = hotenv.Redactor(env, skip=["APP_ENV", "AWS_*"])
    masked = redactor("productive id-of-aws key-of-aws " + TOKEN)
    assert masked == "productive id-of-aws key-of-aws [hidden:TOKEN]"


def test_no_values_hold_nothing_back():
    """A Redactor without values gives everything back at once."""
    redactor = hotenv.Redactor({})
    assert redactor.longest == 0
    assert redactor.stream().feed(b"any") == b"any"


@pytest.mark.parametrize(
    "text",
    [
        "Password: ",
        "step 1 of 3...",
        "\r 42%",
        "y",
        "https://example.com/",
        "x442",
        "sk-live_",
        "1x443 ",
    ],
)
def test_prompt_comes_through_at_once(text):
    """A stream holds back nothing that can become no value: a prompt, a progress bar."""
    env = {"TOKEN": TOKEN, "URL": REDACTION_VALUES["URL"], "WORD": "x443"}
    stream = hotenv.Redactor(env).stream()
    assert stream.feed(b"\n") + stream.feed(raw(text)) == b"\n" + raw(text)


def test_stream_holds_back_a_beginning():
    """A stream holds back the beginning of a value until the value is whole, and then hides it."""
    stream = hotenv.Redactor({"TOKEN": TOKEN}).stream()
    pieces = [b"a sk-l", b"", b"ive-5", b"1H8sVq", b"0"]
    assert [stream.feed(piece) for piece in pieces] == [b"a ", b"", b"", b"", b"[hidden:TOKEN]"]


def test_stream_gives_back_what_is_no_value():
    """A stream gives the beginning of a value back when the rest of the value does not come."""
    stream = hotenv.Redactor({"TOKEN": TOKEN}).stream()
    pieces = [b"sk-live-", b"ssk-", b"live-6"]
    assert [stream.feed(piece) for piece in pieces] == [b"", b"sk-live-s", b"sk-live-6"]


def test_flush_gives_back_the_beginning():
    """A flush gives the beginning of a value back, and the stream begins anew."""
    stream = hotenv.Redactor({"TOKEN": TOKEN}).stream()
    assert stream.feed(b"sk-li") == b""
    assert stream.flush() == b"sk-li"
    assert stream.feed(b"ve") == b"ve"


@pytest.mark.parametrize(
    "program, command",
    [
        ("bash", 'printf %q "$V"'),
        ("bash", 'printf %s "${V@Q}"'),
        ("bash", 'set -x; : "$V"'),
        ("bash", "declare -p V"),
        ("bash", "export -p"),
        ("bash", "set"),
        ("bash", 'LC_ALL=C; printf %q "$V"'),
        ("base64", 'printf %s "$V" | base64'),
        ("xxd", 'printf %s "$V" | xxd -p -c 256'),
        ("openssl", 'printf %s "$V" | openssl base64'),
        ("bash", "env"),
        ("jq", "jq -n env"),
        ("jq", "jq -rn 'env.V|@uri,@base64,@sh,@json'"),
        (
            "node",
            "node -p 'JSON.stringify(process.env.V)+encodeURIComponent(process.env.V)"
            "+new URLSearchParams({v: process.env.V})'",
        ),
    ],
)
def test_spelling_of_programs_is_masked(program, command):
    """What other programs make of a value is hidden."""
    if not shutil.which(program) or not shutil.which("bash"):
        pytest.skip("no %s, or no bash" % program)
    names = ["TOKEN", "URL", "QUOTES", "ACCENTS", "CONTROL", "JSON", "PATHS"]
    values = {name: REDACTION_VALUES[name].strip() for name in names}

    lines = (
        'for value; do export V="$value"; ( unset value; set --; %s\n ) 2>&1; echo; done' % command
    )
    ran = subprocess.run(
        ["bash", "--norc", "-c", lines, "bash", *values.values()],
        cwd="/",
        stdout=PIPE,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/"},
        timeout=PATIENCE,
    )
    if b"bad substitution" in ran.stdout:
        pytest.skip("this bash is too old for @Q")

    masked = cut(hotenv.Redactor(values), ran.stdout)
    for name, value in values.items():
        assert b"[hidden:%s]" % name.encode() in masked, ran.stdout
        words = [word for word in re.split(r"\W+", value, flags=re.ASCII) if len(word) > 3]
        # HOME stands in what programs write of their environment, too.
        left = [word for word in words if word != "HOME" and word.encode() in masked]
        assert left == [], masked


# Variables whose values are nobody's secret, because they stand in every log; and two others.
REDACTION_COMMON = {
    **{"V%d" % number: word for number, word in enumerate(COMMON)},
    "LEVEL": "INFO",
    "FLAG": "True",
}
REDACTION_RARE = {"PIN": "123456", "NAME": "productive"}


def test_common_words_are_not_masked():
    """A word that is nobody's secret stays as it is, in small and in capital letters."""
    redactor = hotenv.Redactor({**REDACTION_COMMON, **REDACTION_RARE})
    text = " ".join(COMMON) + ' {"ok": true, "port": 5432} INFO True'
    assert redactor(text) == text


def test_common_words_are_unmaskable():
    """A Redactor names the variables whose values are nobody's secret."""
    redactor = hotenv.Redactor({**REDACTION_COMMON, **REDACTION_RARE})
    assert sorted(redactor.unmaskable) == sorted(REDACTION_COMMON)


def test_uncommon_words_are_masked():
    """A number of six digits, or a word that only begins as a common one, is hidden."""
    redactor = hotenv.Redactor({**REDACTION_COMMON, **REDACTION_RARE})
    assert redactor("123456 productive") == "[hidden:PIN] [hidden:NAME]"


def _redaction_masked_run(project):
    """Serve common and secret values, and return what `run --mask` makes of a text with them."""
    lines = [
        b"DEBUG=true",
        b"PORT=5432",
        b"DB_NAME=postgres",
        b"AWS_ID=aws-id-1",
        b"AWS_KEY=aws-key-1",
        b"TOKEN=t0ken-t0ken",
    ]
    project.serve(b"\n".join(lines) + b"\n")
    text = '{"ok": true, "port": 5432, "db": "postgres"} aws-id-1 aws-key-1 t0ken-t0ken\n'
    options = ["--mask", "--no-mask", "AWS_*"]
    return project.hotenv("run", *options, "--", "printf", "%s", text)


def test_mask_hides_secrets_alone(project):
    """`run --mask` hides a secret, no common word, and nothing that --no-mask names."""
    done = _redaction_masked_run(project)
    expected = '{"ok": true, "port": 5432, "db": "postgres"} aws-id-1 aws-key-1 [hidden:TOKEN]\n'
    assert done.stdout.decode() == expected


def test_mask_names_what_it_does_not_hide(project):
    """`run --mask` says which variables it does not hide, and shows no value."""
    message = _redaction_masked_run(project).stderr.decode()
    assert "DEBUG" in message
    assert "PORT" in message
    assert "DB_NAME" in message
    assert "TOKEN" not in message
    assert "postgres" not in message


class _LargeValue:
    """A random value of this many hexadecimal digits, and the Redactor that hides it."""

    def __init__(self, size):
        number = random.Random(SEED).getrandbits(4 * size)
        self.size = size
        self.value = number.to_bytes(size // 2 + 1, "big").hex()[:size]
        self.redactor = hotenv.Redactor({"BIG": self.value})


@pytest.fixture(scope="module", params=[63, 65, 1023, 1025, 40_000])
def large_value(request):
    """A _LargeValue of a size near a limit, and of one far beyond all of them."""
    return _LargeValue(request.param)


def test_large_value_is_masked_whole(large_value):
    """A value is hidden once, however long it is."""
    assert large_value.redactor("(%s)" % large_value.value) == "([hidden:BIG])"


def test_large_value_is_masked_in_base64(large_value):
    """A value is hidden once in base64, however long it is."""
    masked = large_value.redactor(base64.b64encode(b"xy" + raw(large_value.value)).decode())
    assert masked.count("[hidden:BIG]") == 1


def test_large_value_is_masked_in_pieces(large_value):
    """A value is hidden once in a stream, however long it is."""
    data = raw("(%s)" % large_value.value)
    out = cut(large_value.redactor, data, *range(700, large_value.size, 700))
    assert out == b"([hidden:BIG])"


def test_longest_has_a_bound(large_value):
    """The most that a stream holds back, `longest`, is at most 2048 bytes."""
    assert large_value.redactor.longest <= 2048


def test_stream_holds_back_at_most_longest(large_value):
    """A stream holds back at most `longest` bytes of a value that has not come whole."""
    stream = large_value.redactor.stream()
    stream.feed(raw("(" + large_value.value[:-1]))
    assert len(stream.flush()) <= large_value.redactor.longest + 1


def test_large_value_costs_no_square(large_value):
    """What a value costs a Redactor grows with the length of the value, not with its square."""
    begun = time.process_time()
    hotenv.Redactor({"BIG": "abc1" * 10 * large_value.size})
    assert time.process_time() - begun < 2


def _redaction_by_trying(env, text):
    """Return the masked text, found the slow way: by trying every value at every place.

    The values consist of letters alone, so most of their spellings are the same.
    """
    found = {}
    for start in range(len(text)):
        for name, value in env.items():
            word = r"(?<!\w)%s(?!\w)" if len(value) < 8 else "%s"
            longest, _ = found.get(start, (0, ""))
            if len(value) > longest and re.compile(word % value).match(text, start):
                found[start] = len(value), name

    out = ""
    done = 0  # all text before it is in `out`, or hidden
    shown = ""  # the name in the mark at the end of `out`
    for start in sorted(found):
        size, name = found[start]
        if start > done:
            out += text[done:start]
            done = start
            shown = ""
        if start + size > done:
            # Values that overlap under one name get one mark.
            if name != shown:
                out += "[hidden:%s]" % name
            done = start + size
            shown = name
    return out + text[done:]


def _redaction_random_case(rng):
    """Return a random environment, and a text with values, parts of values, and other letters."""
    letters = rng.choice(["ab", "abc", "xyz"])
    values = []
    for _ in range(rng.randrange(1, 5)):
        size = rng.choice([4, 5, 7, 8, 9, 12, 20, 40])
        values.append("".join(rng.choices(letters, k=size)))
    env = {}
    for number, value in enumerate(values):
        if values.count(value) == 1:
            env["N%d" % number] = value

    text = ""
    for _ in range(rng.randrange(1, 12)):
        value = rng.choice(list(env.values()) or ["-"])
        start, end = sorted(rng.randrange(len(value) + 1) for _ in range(2))
        filling = "".join(rng.choice(letters + " ") for _ in range(rng.randrange(9)))
        text += rng.choice([value, value[start:end], filling])
    return env, text


def test_random_text_is_masked_as_by_trying():
    """A Redactor hides what trying every value at every place finds."""
    rng = random.Random(SEED)
    for _ in range(amount(2500)):
        env, text = _redaction_random_case(rng)
        expected = raw(_redaction_by_trying(env, text))
        assert cut(hotenv.Redactor(env), raw(text)) == expected, (env, text)


@pytest.mark.parametrize("most", [1, 3, 9, 30])
def test_any_cut_of_random_text_is_masked(most):
    """A stream that comes in random pieces gives what trying every value at every place finds."""
    rng = random.Random(SEED)
    for _ in range(amount(2500)):
        env, text = _redaction_random_case(rng)
        expected = raw(_redaction_by_trying(env, text))
        ends = itertools.accumulate(rng.randrange(1, most + 1) for _ in text)
        at = [end for end in ends if end < len(text)]
        assert cut(hotenv.Redactor(env), raw(text), *at) == expected, (env, text, at)


# A value of several lines in which a log breaks off, and one whose characters have many bytes.
REDACTION_ACCOUNT = (
    '{\n  "type": "service_account",\n  "key": "0123456789abcdef0123456789abcdef"\n}'
)
REDACTION_KANJI = "\u65e5\u672c\u8a9e\u9375"
REDACTION_BROKEN_OFF = raw("ERROR 1\nERROR 2\n" + REDACTION_ACCOUNT[:50])
REDACTION_WHOLE = REDACTION_BROKEN_OFF + raw(
    "%s\ndone %s %sx" % (REDACTION_ACCOUNT, REDACTION_KANJI, REDACTION_KANJI)
)


@pytest.fixture(scope="module")
def redactor_of_account():
    """A Redactor of a value with several lines, and of one whose characters have many bytes."""
    return hotenv.Redactor({"SA": REDACTION_ACCOUNT, "S": REDACTION_KANJI})


def test_text_before_a_beginning_is_kept(redactor_of_account):
    """What stands before the beginning of a value is never lost."""
    out = cut(redactor_of_account, REDACTION_BROKEN_OFF)
    assert out.startswith(b"ERROR 1\nERROR 2\n{\n  [hidden:SA]")


def test_few_long_characters_are_masked(redactor_of_account):
    """A value of a few characters with many bytes is hidden where it does not end a word, too."""
    out = cut(redactor_of_account, REDACTION_WHOLE)
    assert out.endswith(b"done [hidden:S] [hidden:S]x")


@pytest.mark.parametrize(
    "data", [REDACTION_BROKEN_OFF, REDACTION_WHOLE], ids=["broken off", "whole"]
)
def test_any_single_cut_gives_the_same(redactor_of_account, data):
    """A stream gives the same wherever it is cut in two, within a character too."""
    expected = cut(redactor_of_account, data)
    for at in range(len(data)):
        assert cut(redactor_of_account, data, at) == expected, at


def test_no_random_value_comes_through():
    """No value is left of a log that is full of them, wherever its stream is cut."""
    rng = random.Random(SEED)
    letters = "abcdefABCDEF0123456789+/=$'\" "
    env = {}
    for number in range(20):
        value = "".join(rng.choices(letters, k=rng.randrange(4, 60)))
        if len(value.strip()) >= 4:
            env["V%d" % number] = value
    redactor = hotenv.Redactor(env)
    values = list(env.values())

    for _ in range(amount(10_000)):
        text = ""
        for _ in range(3):
            text += rng.choice([" ", "=", "\n", "log: "]) + rng.choice(values) + " "
        data = raw(text)
        at = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(6)))
        out = cut(redactor, data, *at)
        assert [value for value in values if raw(value.strip()) in out] == []


def _redaction_speed(redactor, data, enough, step=65536):
    """Return the bytes that a stream masks in a second of processor time, in writes of `step`.

    This is the best of up to three runs; one that is fast enough is the last.
    """
    best = 0
    for _ in range(3):
        stream = redactor.stream()
        begun = time.process_time()
        for start in range(0, len(data), step):
            stream.feed(data[start : start + step])
        stream.flush()
        best = max(best, len(data) / (time.process_time() - begun))
        if best > enough:
            break
    return best


def _redaction_log():
    """Return 15,000 lines of a server's log, as bytes."""
    rng = random.Random(SEED)
    line = (
        "2024-05-14T12:00:%02dZ INFO app[%d]: "
        "GET https://api.example.com/users/%x?page=%d 200 %d ms\n"
    )
    lines = []
    for number in range(15_000):
        process = rng.randrange(9999)
        user = rng.getrandbits(64)
        lines.append(line % (number % 60, process, user, rng.randrange(90), rng.randrange(900)))
    return "".join(lines).encode()


def _redaction_tokens():
    """Return twenty random tokens by their names."""
    rng = random.Random(SEED + 1)
    tokens = {}
    for number in range(20):
        token = rng.getrandbits(240).to_bytes(30, "big")
        tokens["TOKEN_%d" % number] = base64.b64encode(token).decode()
    return tokens


# A quiet machine masks 80 MB/s of a log, 16 where the values and the log are full of URLs, and 9 in
# writes of 64 bytes.
def test_log_is_masked_fast():
    """A Redactor of twenty tokens masks more than 20 MB of a log in a second."""
    assert _redaction_speed(hotenv.Redactor(_redaction_tokens()), _redaction_log(), 20e6) > 20e6


def test_short_writes_are_masked_fast():
    """A Redactor of twenty tokens masks more than 2 MB a second in writes of 64 bytes."""
    data = _redaction_log()[:300_000]
    assert _redaction_speed(hotenv.Redactor(_redaction_tokens()), data, 2e6, step=64) > 2e6


def test_log_full_of_urls_is_masked_fast():
    """A Redactor masks more than 4 MB a second where values and log are full of URLs."""
    env = _redaction_tokens()
    for number in range(5):
        url = "https://api.%d.internal.example/users/%d" % (number, number)
        env["URL_%d" % number] = url
    assert _redaction_speed(hotenv.Redactor(env), _redaction_log(), 4e6) > 4e6


# A value, and a text of which a long repetition keeps a stream waiting for that value.
REDACTION_HOSTILE = [
    pytest.param("a" * 8, "a", id="one letter"),
    pytest.param("a" * 4096 + "b", "a", id="one letter, then another"),
    pytest.param("a" * 2048 + "b" + "a" * 2048, "a", id="one letter around another"),
    pytest.param("ab" * 32768 + "c", "ab", id="two letters"),
    pytest.param(REDACTION_PEM, REDACTION_PEM[:900], id="a key"),
    pytest.param("x" * 100_000, "x" * 1000 + "y", id="nearly the value"),
]


@pytest.mark.parametrize("value, text", REDACTION_HOSTILE)
def test_hostile_text_is_masked_fast(value, text):
    """A text that is nearly a value, again and again, is masked at more than 50 kB a second."""
    data = raw(text * ((200_000 if FULL else 10_000) // len(text)))
    assert _redaction_speed(hotenv.Redactor({"V": value}), data, 5e4) > 5e4


@pytest.mark.parametrize("value, text", REDACTION_HOSTILE)
def test_hostile_short_writes_are_fast(value, text):
    """A text that is nearly a value is masked at more than 10 kB a second in writes of 10 bytes."""
    data = raw(text * (10_000 // len(text)))[:2_000]
    assert _redaction_speed(hotenv.Redactor({"V": value}), data, 1e4, step=10) > 1e4


# ==== terminal ====================================================================================
# A session asks its questions on the terminal of whoever starts it, and every way out of a question
# leaves that terminal as it was.

# A shell with job control, as far as a prompt needs one. It waits for the file that becomes the
# stdin of its one job, starts the job in a process group of its own, says `<STATUS>` when the job
# has ended or stopped, and continues the job in the foreground at each line that is typed then.
_TERMINAL_SHELL = """
import os, signal, sys, time

input_path, is_behind, *command = sys.argv[1:]
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
while not os.path.exists(input_path) or not os.path.getsize(input_path):
    time.sleep(0.002)

child = os.fork()
if not child:
    os.setpgid(0, 0)
    if not is_behind:
        os.tcsetpgrp(1, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.dup2(os.open(input_path, os.O_RDONLY), 0)
    os.execv(command[0], command)

while True:
    status = os.waitpid(child, os.WUNTRACED)[1]
    os.tcsetpgrp(1, os.getpid())
    if os.WIFSTOPPED(status):
        code = -os.WSTOPSIG(status)
    elif os.WIFSIGNALED(status):
        code = -os.WTERMSIG(status)
    else:
        code = os.WEXITSTATUS(status)
    os.write(1, b"<%d>" % code)
    sys.stdin.readline()  # a shell lives on until its terminal is closed
    os.tcsetpgrp(1, child)
    os.kill(-child, signal.SIGCONT)
"""


class AskingServe:
    """A `serve --prompt` that a shell with job control has started on a terminal of its own.

    - `said`: what was shown on the terminal up to now.
    """

    def __init__(self, project, options, text, is_behind):
        input_path = Path(tempfile.mkdtemp(dir=str(project.root)), "input")
        behind = "yes" if is_behind else ""
        shell = [sys.executable, "-ISc", _TERMINAL_SHELL, str(input_path), behind]
        serve = project.command(["serve", "--prompt", *options])
        self._ends = contextlib.ExitStack()
        on = on_terminal(*shell, *serve, cwd=project.dir, env=project.env)
        self._leader, self._terminal = self._ends.enter_context(on)
        self._settings = termios.tcgetattr(self._terminal)
        self.said = b""
        self._found_until = 0  # where in `said` the search of the next `see` begins
        input_path.write_bytes(text)  # from here on the shell starts its job

    def see(self, pattern):
        """Wait until the terminal shows this, after what was seen before; return all it showed."""
        known = self.said[: self._found_until]
        self.said = known + read_until(self._terminal, pattern, self.said[self._found_until :])
        self._found_until += re.search(pattern, self.said[self._found_until :]).end()
        return self.said

    def status(self):
        """Wait for the end or the stop of the job: its exit status, or the signal, negative."""
        return int(re.findall(rb"<(-?\d+)>", self.see(rb"<-?\d+>"))[-1])

    def type(self, text):
        """Type these bytes."""
        os.write(self._terminal, text)

    def pid(self):
        """Return the process id of the job."""
        return int(children(self._leader)[0][0])

    def echoes(self):
        """Say whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def assert_restored(self):
        """Fail unless the terminal has the settings that it had at the start."""
        assert termios.tcgetattr(self._terminal) == self._settings

    def hang_up(self):
        """End the shell, and close the terminal."""
        self._ends.close()


@pytest.fixture
def prompting(project):
    """prompting(*options): start an AskingServe, and wait until it shows `until`.

    Its input is `text`. With `is_behind` it is a job in the background of its shell.
    """
    with contextlib.ExitStack() as ends:

        def start(*options, text=b"A=?First\n", until=b"First: ", is_behind=False):
            asking = AskingServe(project, options, text, is_behind)
            ends.callback(asking.hang_up)
            asking.see(until)
            return asking

        yield start


def test_prompt_without_terminal_is_refused(project):
    """A `serve --prompt` without a terminal is refused with status 8, and creates nothing."""
    done = project.hotenv("serve", "--prompt", input=b"A=?First\n", start_new_session=True)
    assert "terminal" in refusal(done, 8)
    assert project.files() == []


def test_prompt_from_behind_is_refused(project, prompting):
    """A job in the background of a shell asks nothing: it is told to ask from the foreground."""
    asking = prompting(until=b"\n", is_behind=True)
    assert asking.status() == 8
    assert b"foreground" in asking.said
    assert b"First: " not in asking.said
    asking.assert_restored()
    assert project.files() == []


def test_malformed_input_asks_no_question(project, prompting):
    """A malformed line is refused before the first question, even where it is the last line."""
    asking = prompting(until=b"\n", text=b"A=?First\nB\n")
    assert asking.status() == 7
    assert b"First: " not in asking.said
    asking.assert_restored()
    assert project.files() == []


def test_questions_come_in_file_order(prompting):
    """The questions come in the order of the file; one without a text names its variable."""
    text = b"A=?Zulu\nB=literal\nSECOND=?\nE=  ?Alpha  # a comment\n"
    asking = prompting("--background", text=text, until=b"Zulu: ")
    asking.type(b"1\n")
    asking.see(rb"SECOND.*: ")
    asking.type(b"2\n")
    asking.see(b"Alpha: ")
    asking.type(b"3\n")
    assert asking.status() == 0


def test_answers_are_typed_without_echo(prompting):
    """The terminal shows no answer while it is typed, and its settings come back at the end."""
    asking = prompting("--background", text=b"A=?First\nB=?Second\n")
    assert not asking.echoes()
    asking.type(b"s3cr3t\n")
    asking.see(b"Second: ")
    assert not asking.echoes()
    asking.type(b"s3cr3t\n")
    assert asking.status() == 0
    asking.assert_restored()
    assert b"s3cr3t" not in asking.said


def test_nothing_is_created_while_asking(project, prompting):
    """Invariant 2: before the last answer there is no socket, no marker and no directory."""
    asking = prompting("--background", text=b"A=?First\nB=?Second\n")
    assert project.files() == []
    asking.type(b"1\n")
    asking.see(b"Second: ")
    assert project.files() == []


def test_only_a_bare_question_mark_asks(project, prompting):
    """A question mark that is quoted, not the first character, or from a reference is a value."""
    project.env["H"] = "?x"
    text = b"A=?First\nLIT='?x'\nDQ=\"?y\"\nF=x?\nG=\"${H}\"\nI=${H}\n"
    asking = prompting("--background", text=text)
    asking.type(b"answer\n")
    assert asking.status() == 0
    assert project.dump() == {
        b"A": b"answer",
        b"LIT": b"?x",
        b"DQ": b"?y",
        b"F": b"x?",
        b"G": b"?x",
        b"I": b"?x",
    }


def test_references_stand_for_answers(project, prompting):
    """A later reference means the answer, and an empty answer is an empty value."""
    text = b'A=?First\nSECOND=?\nC="${A}-${SECOND}"\nD=${SECOND:-dflt}\n'
    asking = prompting("--background", text=text)
    asking.type(b"typed answer\n")
    asking.see(rb"SECOND.*: ")
    asking.type(b"\n")
    assert asking.status() == 0
    assert project.dump() == {
        b"A": b"typed answer",
        b"SECOND": b"",
        b"C": b"typed answer-",
        b"D": b"dflt",
    }


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param("s3cr3t \u00e9 ' \" ${A} #x".encode(), id="no syntax"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
    ],
)
def test_answer_arrives_to_the_byte(project, prompting, typed):
    """An answer is no dotenv text: each byte of the typed line is a byte of the value."""
    asking = prompting("--background")
    asking.type(typed + b"\n")
    assert asking.status() == 0
    assert project.dump() == {b"A": typed}
    assert project.run("printenv", "A").stdout == typed + b"\n"


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(b"\x04", id="Ctrl-D"),
        pytest.param(b"x" * 5000 + b"\n", id="more than a terminal takes"),
        pytest.param(b"s3cr3t\nsecond\nthird\n", id="several lines"),
        pytest.param(b"nul\0\n", id="what no environment holds"),
    ],
)
def test_answer_that_would_lose_is_refused(project, prompting, typed):
    """An answer of which hotenv could only take a part is refused, and no part of it is shown."""
    asking = prompting("--background")
    asking.type(typed)
    assert asking.status() == 7
    assert b"hotenv: " in asking.said
    assert b"s3cr3t" not in asking.said
    assert b"xxx" not in asking.said
    asking.assert_restored()
    assert project.files() == []


def test_question_is_escaped(prompting):
    """Invariant 10: a question shows what is not printable as an escape."""
    asking = prompting(text="A=?x\x1b[2J\u202ey\x07\x9b1m\n".encode(), until=b": ")
    assert b"x\\x1b[2J\\u202ey\\x07\\x9b1m: " in asking.said


def test_foreground_session_asks_too(project, prompting):
    """A session without --background asks, gives the terminal back, and then serves."""
    asking = prompting()
    asking.type(b"x\n")
    asking.see(b"ready: 1 variable")
    asking.assert_restored()
    assert project.dump() == {b"A": b"x"}


@pytest.mark.parametrize(
    "key, statuses",
    [
        pytest.param(b"\x03", {0}, id="Ctrl-C"),
        pytest.param(b"\x1c", {0, -signal.SIGQUIT}, id="Ctrl-backslash"),
    ],
)
def test_key_ends_a_session_that_asked(project, prompting, key, statuses):
    """A key that ends a session in the foreground leaves neither a socket nor a marker."""
    asking = prompting()
    asking.type(b"x\n")
    asking.see(b"ready: 1 variable")
    asking.type(key)
    assert asking.status() in statuses
    asking.assert_restored()
    assert project.files() == ["r/hotenv"]


# How a user or the system ends a program: by a key on the terminal, or by a signal without a key.
_TERMINAL_ENDINGS = [
    pytest.param(signal.SIGINT, b"\x03", id="Ctrl-C"),
    pytest.param(signal.SIGQUIT, b"\x1c", id="Ctrl-backslash"),
    pytest.param(signal.SIGTERM, b"", id="SIGTERM"),
    pytest.param(signal.SIGHUP, b"", id="SIGHUP"),
]


@pytest.mark.parametrize("signum, key", _TERMINAL_ENDINGS)
def test_signal_ends_a_question_cleanly(project, prompting, signum, key):
    """A signal amid an answer ends `serve` by that signal, and the terminal is as it was."""
    asking = prompting("--background", text=b"A=?First\nB=?Second\n")
    asking.type(b"s3cr3t\n")
    asking.see(b"Second: ")
    assert not asking.echoes()
    if key:
        asking.type(b"half" + key)
    else:
        os.kill(asking.pid(), signum)
    assert asking.status() == -signum
    asking.assert_restored()
    assert project.files() == []


@pytest.mark.parametrize("signum, key", _TERMINAL_ENDINGS)
def test_many_signals_end_a_question_cleanly(project, prompting, signum, key):
    """Several signals at once end `serve` by one of them, and the terminal is as it was."""
    asking = prompting("--background")
    pid = asking.pid()
    for each in (signum, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, each)
    assert asking.status() < 0
    asking.assert_restored()
    assert project.files() == []


def test_refusal_after_an_answer_restores(project, prompting):
    """An input that is refused because of an answer leaves the terminal as it was, and no file."""
    asking = prompting("--background", text=b"A=?First\nB=${A:?}\n")
    asking.type(b"\n")
    assert asking.status() == 7
    asking.assert_restored()
    assert project.files() == []


def test_stop_amid_a_question_restores(project, prompting):
    """Ctrl-Z amid an answer gives the shell a terminal as it was, as often as it is typed."""
    asking = prompting("--background")
    for _ in range(2):
        asking.type(b"ha\x1a")
        assert asking.status() in (-signal.SIGTSTP, -signal.SIGSTOP)
        asking.assert_restored()
        assert project.files() == []
        asking.type(b"fg\n")
        asking.see(b"First: ")


def test_continued_question_is_asked_again(project, prompting):
    """After Ctrl-Z and `fg` the question comes again, without echo and without the half answer."""
    asking = prompting("--background")
    asking.type(b"ha\x1a")
    asking.status()
    asking.type(b"fg\n")
    asking.see(b"First: ")
    assert not asking.echoes()
    asking.type(b"whole\n")
    assert asking.status() == 0
    assert project.dump() == {b"A": b"whole"}


def test_session_outlives_its_terminal(project, prompting):
    """A session in the background that asked on a terminal lives on when that terminal closes."""
    asking = prompting("--background")
    asking.type(b"x\n")
    assert asking.status() == 0
    server = project.server_pid()
    assert os.getsid(server) == server
    asking.hang_up()
    assert project.dump() == {b"A": b"x"}


@contextlib.contextmanager
def _terminal_session(project, *options):
    """Type two variables into a `serve` on a terminal: its pid, the terminal, what it showed."""
    command = project.command(["serve", *options])
    with on_terminal(*command, cwd=project.dir, env=project.env) as (pid, terminal):
        shown = read_until(terminal, rb"Ctrl-D[^\n]*\n")
        os.write(terminal, b"A=1\nB=2\n\x04")
        until(project.marker.exists, "a marker")
        yield pid, terminal, shown


@pytest.mark.parametrize("options", [[], ["--quiet"]], ids=["by default", "quiet"])
def test_serve_on_a_terminal_tells_how_to_end(project, options):
    """A `serve` that reads a terminal names Ctrl-D, and --prompt as what shows no value."""
    with _terminal_session(project, *options) as (_, _, shown):
        assert shown.startswith(b"hotenv: ")
        assert b"--prompt" in shown


def test_serve_on_a_terminal_warns_of_echo(project):
    """What is typed into a `serve` on a terminal can be seen, and the user is told."""
    with _terminal_session(project) as (_, terminal, shown):
        assert re.search(rb"\bseen?\b|\bvisible|\bshow|\bhide\b", shown)
        assert termios.tcgetattr(terminal)[3] & termios.ECHO


def test_serve_on_a_terminal_says_when_ready(project):
    """A session in the foreground tells its id, its number of variables, and its idle timeout."""
    with _terminal_session(project) as (_, terminal, shown):
        shown = read_until(terminal, rb"ready[^\n]*\n", shown)
        assert re.search(rb"hotenv: session [0-9a-f]{8} ready: 2 variables\b.*\b5m", shown)


def test_serve_on_a_terminal_logs_requests(project):
    """A session in the foreground shows a line for each request."""
    with _terminal_session(project) as (_, terminal, _):
        project.ask()
        read_until(terminal, b"dump -\r\n")


def test_quiet_serve_on_a_terminal_is_quiet(project):
    """With --quiet there is no word of readiness, of a request, or of the end."""
    with _terminal_session(project, "--quiet") as (_, terminal, _):
        project.ask()
        os.write(terminal, b"\x03")
        shown = read_until(terminal)
        assert b"ready" not in shown
        assert b"dump" not in shown
        assert b"hotenv: session" not in shown


@pytest.mark.parametrize("options", [[], ["--quiet"]], ids=["by default", "quiet"])
def test_ctrl_c_is_a_good_end(project, options):
    """Ctrl-C ends a session in the foreground with status 0."""
    with _terminal_session(project, *options) as (pid, terminal, _):
        project.ask()
        os.write(terminal, b"\x03")
        read_until(terminal)
        assert os.waitpid(pid, 0)[1] == 0


# ==== formats =====================================================================================
# Each format of `dump` either carries a variable without loss, or refuses it by its name.


def outcome(done):
    """Return what a command made of its work: its exit status, its stdout and its stderr."""
    return done.returncode, done.stdout, done.stderr


_FORMATS_LONG = "x" * 200000  # more than a pipe holds


@pytest.fixture(scope="module")
def printed():
    """A Project with a session of a few variables, one of which is long."""
    text = "A=1\nB='two\nlines'\nEMPTY=\nC=\u00e9\nA=2\nLONG=" + _FORMATS_LONG
    yield from standing(text.encode())


@pytest.mark.parametrize("options", [[], ["--format", "plain"]], ids=["default", "plain"])
def test_plain_is_the_format_by_default(printed, options):
    """Without a format, `dump` prints NAME=value and a newline, a variable after the other."""
    expected = "A=2\nB=two\nlines\nEMPTY=\nC=\u00e9\nLONG=" + _FORMATS_LONG + "\n"
    assert outcome(called(printed, "dump", *options)) == (0, expected.encode(), b"")


@pytest.mark.parametrize(
    "name, value",
    [
        ("A", b"2"),
        ("B", b"two\nlines"),
        ("EMPTY", b""),
        ("C", b"\xc3\xa9"),
    ],
)
def test_value_prints_the_bare_value(printed, name, value):
    """`dump --format value` prints the bytes of one value, as --password-stdin wants them."""
    done = called(printed, "dump", "--only", name, "--format", "value")
    assert outcome(done) == (0, value, b"")


@pytest.mark.parametrize("options", [[], ["--only", "A,B"], ["--only", "*"]], ids=str)
def test_value_refuses_several_variables(printed, options):
    """`dump --format value` of several variables is refused: which value would that be?"""
    done = called(printed, "dump", *options, "--format", "value")
    assert "--only" in refusal(done, 2)
    assert done.stdout == b""


def test_only_takes_names_and_prefixes(printed):
    """`dump --only` prints the variables that a name or a PREFIX* picks; blanks do not count."""
    assert called(printed, "dump", "--only", "A, E*").stdout == b"A=2\nEMPTY=\n"


@pytest.mark.parametrize("names", ["X", "A,X", "", "A,,B", "Z*", "\x1b"], ids=ascii)
def test_only_refuses_what_fits_nothing(printed, names):
    """`dump --only` with a name or a prefix of no variable is refused."""
    done = called(printed, "dump", "--only", names)
    assert "--only" in refusal(done, 2)
    assert done.stdout == b""


def test_reader_that_leaves_is_no_error(printed):
    """A reader that closes the pipe early, as `head` does, costs `dump` no status and no word."""
    process = printed.start("dump", stdout=PIPE, stderr=PIPE)
    assert process.stdout.read(1) == b"A"
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_an_error(printed):
    """A `dump` that cannot write its output ends with status 8."""
    with open("/dev/full", "wb") as full:
        refusal(printed.hotenv("dump", stdout=full), 8)


# What a value may be made of: all that some parser, shell or terminal gives a meaning to.
ODD_PIECES = [chr(number) for number in range(1, 32)]
ODD_PIECES += ["'", '"', "\\", "`"]
ODD_PIECES += ["$", "${", "${A}", "$(", "}"]
ODD_PIECES += ["#", " #", "=", " ", "export ", "?", "!", "~", "*", "%"]
ODD_PIECES += ["\r\n", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff"]
ODD_PIECES += ["\x1b[31m", "\x7f"]
ODD_PIECES += ["a", "Zz", "0", "\u00e9", "\u20ac", "\U0001f511"]


def _odd_values():
    """Return variables with whatever a value may hold, in a random part as in fixed ones."""
    values = ["", "-n", "?ask", "\\r\r'\\'", "  lead and trail  "]
    for piece in ODD_PIECES:
        values += [piece, piece * 2, "x" + piece, piece + "x"]
    dice = random.Random(SEED)
    while len(values) < amount(8000):
        pieces = [dice.choice(ODD_PIECES) for _ in range(dice.randrange(1, 12))]
        values.append("".join(pieces))
    return {"V%d" % number: value for number, value in enumerate(values)}


def _odd_quoted(value):
    """Return a value in double quotes, in another way than `dump --format dotenv` quotes it."""
    value = value.replace("\\", "\\\\")
    value = value.replace('"', '\\"')
    value = value.replace("\r", "\\r")
    value = value.replace("${", "\\${")
    return '"' + value + '"'


@pytest.fixture(scope="module")
def odd():
    """A Project with a session of odd values; its attribute `values` has them."""
    values = _odd_values()
    lines = ["%s=%s\n" % (name, _odd_quoted(value)) for name, value in values.items()]
    for shared in standing("".join(lines).encode()):
        shared.values = values
        assert json.loads(shared.ask().decode())["env"] == values
        yield shared


def dumped(project, form, *options):
    """Return what `dump` prints in this format."""
    done = called(project, "dump", "--format", form, *options)
    assert done.stderr == b""
    assert done.returncode == 0
    return done.stdout


def test_json_carries_every_value(odd):
    """`dump --format json` is an object with every variable."""
    assert json.loads(dumped(odd, "json").decode()) == odd.values


def test_nul_carries_every_value(odd):
    """`dump --format nul` is NAME=value and a zero byte for every variable."""
    pairs = ["%s=%s\0" % pair for pair in odd.values.items()]
    assert dumped(odd, "nul").decode() == "".join(pairs)


def test_plain_shows_every_value_as_it_is(odd):
    """`dump --format plain` escapes and quotes nothing."""
    pairs = ["%s=%s\n" % pair for pair in odd.values.items()]
    assert dumped(odd, "plain").decode() == "".join(pairs)


def test_names_lists_every_name(odd):
    """`dump --format names` is a line for every variable."""
    assert dumped(odd, "names").decode().split("\n") == [*odd.values, ""]


def test_dotenv_is_what_parse_dotenv_reads(odd):
    """`hotenv.parse_dotenv` reads `dump --format dotenv` back, whatever its host environment."""
    assert hotenv.parse_dotenv(dumped(odd, "dotenv"), {"A": "host"}) == odd.values


def test_dotenv_is_what_serve_reads(odd, project):
    """A session that is served `dump --format dotenv` has every value again."""
    project.serve(dumped(odd, "dotenv"))
    assert json.loads(project.ask().decode())["env"] == odd.values


def test_dotenv_is_what_python_dotenv_reads(odd):
    """python-dotenv reads `dump --format dotenv`, but for values with both CR and `${`."""
    dotenv = python_dotenv()
    text = io.StringIO(dumped(odd, "dotenv").decode(), newline="")
    found = dotenv.dotenv_values(stream=text, interpolate=False)
    for name, value in odd.values.items():
        if "${" not in value or "\r" not in value:
            assert found.get(name) == value, name


def shells():
    """Return the shells for a parametrized test, each once: `sh` is one of the others, mostly."""
    found = {}
    for name in ("sh", "dash", "bash", "zsh"):
        path = shutil.which(name)
        if path is None:
            missing = pytest.mark.skip(reason="there is no %s here" % name)
            found[name] = pytest.param(name, marks=missing)
        elif os.path.realpath(path) not in found:
            found[os.path.realpath(path)] = pytest.param(name)
    return list(found.values())


def _shell_words(shell):
    """Return the words that start a shell without its user's start files."""
    if shell == "zsh":
        return ["zsh", "-f"]
    return [shell]


def evaluated(project, shell, text):
    """Return the environment of a program that a shell starts after `eval` of this text."""
    (project.root / "eval").write_bytes(text)
    done = subprocess.run(
        [
            *_shell_words(shell),
            *["-c", 'eval "$(cat "$1")" && exec %s -0' % ENV],
            *[shell, str(project.root / "eval")],
        ],
        stdout=PIPE,
        stderr=PIPE,
        timeout=PATIENCE,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "A": "not this"},
    )
    return environment_of(done)


@pytest.mark.parametrize("shell", shells())
def test_sh_carries_every_value(odd, project, shell):
    """A shell that evaluates `dump --format sh` has and exports every value."""
    found = evaluated(project, shell, dumped(odd, "sh"))
    for name, value in odd.values.items():
        assert found.get(name.encode()) == value.encode(), name


# Names that mean something to a shell, which takes them from everybody all the same.
_FORMATS_SHELL_NAMES = [
    # How words and paths are taken apart and found.
    "IFS", "HOME", "CDPATH", "PWD", "OLDPWD", "FPATH", "MANPATH", "GLOBIGNORE", "EXECIGNORE",
    # What a shell reads at its start.
    "ENV", "BASH_ENV", "ZDOTDIR", "POSIXLY_CORRECT", "INPUTRC", "HOSTFILE",
    # Prompts, mail, and the history.
    "PS1", "PS2", "PS3", "PS4", "PROMPT", "PROMPT2", "prompt", "MAIL", "MAILPATH",
    "HISTFILE", "HISTFILESIZE", "HISTCONTROL", "HISTIGNORE", "FCEDIT", "EDITOR", "VISUAL",
    # The language and the terminal.
    "LANG", "LC_CTYPE", "TERM", "TZ", "TMOUT", "TIMEFORMAT", "IGNOREEOF",
    # What builtins set.
    "OPTARG", "OPTERR", "REPLY", "MAPFILE", "COPROC", "COMP_WORDS", "COMPREPLY",
    "NULLCMD", "READNULLCMD",
    # Programs behind the shell.
    "NODE_OPTIONS", "LD_LIBRARY_PATH",
    # Reserved words, and builtins.
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "in", "time", "coproc", "end", "repeat", "foreach", "nocorrect",
    "export", "eval", "exec", "set", "unset", "cd", "test", "exit", "return", "trap", "hash",
    "alias", "local", "declare", "typeset", "readonly", "read", "source", "shift", "true",
    # Odd ones.
    "_1", "__", "Z9_",
]
_FORMATS_SHELL_NAMES += list("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize("shell", shells())
def test_sh_carries_names_that_shells_know(project, answerer, shell):
    """`dump --format sh` hands over a variable also where a shell gives its name a meaning."""
    env = {name: "17 'x' $y " + name for name in _FORMATS_SHELL_NAMES}
    server = answerer(json.dumps({"env": env}).encode() + b"\n")
    found = evaluated(project, shell, dumped(project, "sh", "--socket", server.path))
    for name, value in env.items():
        assert found.get(name.encode()) == value.encode(), name


# A format, and a name and a value that it cannot carry. A server of ours makes no such names, but
# another implementation may.
_FORMATS_LIMITS = [
    ("sh", "a.b", "s3cr3t"),
    ("sh", "c-d", "s3cr3t"),
    ("sh", "1E", "s3cr3t"),
    ("sh", "a b", "s3cr3t"),
    ("sh", "\u00c9", "s3cr3t"),
    ("sh", "A;echo", "s3cr3t"),
    ("dotenv", "a b", "s3cr3t"),
    ("dotenv", "\u00e9", "s3cr3t"),
    ("dotenv", "A\nB", "s3cr3t"),
    ("dotenv", "A", "s3cr3t\udcff"),
    ("json", "A", "s3cr3t\udcff"),
    ("names", "A\nB", "s3cr3t"),
]


@pytest.mark.parametrize("form, name, value", _FORMATS_LIMITS, ids=ascii)
def test_format_refuses_what_it_would_spoil(project, answerer, form, name, value):
    """A format that cannot carry a variable refuses by its name, and tells no value."""
    env = {"FINE": "s3cr3t", name: value}
    server = answerer(json.dumps({"env": env}).encode() + b"\n")
    done = called(project, "dump", "--format", form, "--socket", server.path)
    message = refusal(done, 2)
    assert name.replace("\n", "\\n") in message
    assert form in message
    assert "s3cr3t" not in message
    assert done.stdout == b""


def test_nul_carries_every_name(project, answerer):
    """`dump --format nul` carries whatever name another implementation made."""
    env = {name: "x" for _, name, _ in _FORMATS_LIMITS}
    server = answerer(json.dumps({"env": env}).encode() + b"\n")
    done = called(project, "dump", "--format", "nul", "--socket", server.path)
    assert environment_of(done) == {name.encode(): b"x" for name in env}


# ==== daily use ===================================================================================
# Sessions are looked at and ended: the nearest, a named one, all of a user, somebody else's.


def status_of(project, *options, code=0, **more):
    """Return what `status --json` prints, which must end with this status."""
    done = called(project, "status", "--json", *options, **more)
    assert done.returncode == code, done.stderr
    if code:
        refusal(done, code)
    else:
        assert done.stderr == b""
    return json.loads(done.stdout.decode())


def assert_tells(found, expected):
    """Fail unless a dict has all of these items; it may have more."""
    assert {key: found.get(key, "missing") for key in expected} == expected


def test_status_describes_a_live_session(project):
    """`status --json`, here or below, tells the socket, the marker, the server, and the end."""
    server = project.serve()
    below = project.dir / "below"
    below.mkdir()
    expected = {
        "live": True,
        "socket": project.socket_path(),
        "marker": str(project.marker),
        "directory": str(project.dir),
        "pid": server.pid,
        "ends": project.ends_at(),
    }
    assert_tells(status_of(project), expected)
    assert_tells(status_of(project, cwd=below), expected)


def test_status_tells_since_when(project):
    """`status --json` tells when a session began, in seconds since 1970."""
    before = time.time()
    project.serve()
    after = time.time()
    # The time stamp of a file may be older than the clock by a tick of the kernel.
    assert before - 1 <= status_of(project)["since"] <= after


def test_session_ends_after_five_minutes(project):
    """Without an option a session ends after 300 idle seconds, and `status` tells when."""
    before = time.time()
    project.serve()
    after = time.time()
    assert before + 300 <= status_of(project)["ends"] + 0.01
    assert status_of(project)["ends"] - 0.01 <= after + 300


def test_status_text_tells_the_same(project):
    """`status` prints, for a human, what `status --json` tells."""
    server = project.serve()
    shown = called(project, "status").stdout.decode()
    end = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(project.ends_at()))
    assert shown.startswith("live\n")
    assert project.socket_path() in shown
    assert str(project.marker) in shown
    assert re.search(r"(?m)^pid +%d$" % server.pid, shown)
    assert re.search(re.escape(end) + r".*\b4m", shown)


def test_status_text_shows_no_value(project):
    """Invariant 1: `status` shows no value."""
    project.serve(b"A=s3cr3t\n")
    assert "s3cr3t" not in called(project, "status").stdout.decode()


def test_status_leaves_the_timer_alone(project):
    """`status` does not restart the idle time of a session."""
    project.serve()
    before = project.ends_at()
    status_of(project)
    called(project, "status")
    assert project.ends_at() == before


def test_run_restarts_the_timer(project):
    """`run` restarts the idle time of a session."""
    project.serve()
    before = project.ends_at()
    assert project.run("true").returncode == 0
    assert project.ends_at() > before


def test_status_is_not_logged(project):
    """`status` is no use of a session, so the log has no line of it."""
    server = project.serve(stderr=PIPE)
    status_of(project)
    called(project, "status")
    project.run("true")
    assert ended(server, signal.SIGTERM) == 0
    lines = server.stderr.read().decode().splitlines()
    assert [line.split()[2:] for line in lines] == [["run", "true"]]


def test_status_without_a_session_is_3(project):
    """`status` without a session ends with 3, and shows the command that starts one."""
    assert "serve <" in refusal(called(project, "status"), 3)


def test_status_json_without_a_session_is_3(project):
    """`status --json` without a session ends with 3, and tells that none is live."""
    assert status_of(project, code=3)["live"] is False


def test_stop_without_a_session_is_3(project):
    """`stop` without a session ends with 3."""
    refusal(called(project, "stop"), 3)


@pytest.fixture
def killed(project):
    """A Project whose session was killed: its marker and its socket are left."""
    ended(project.serve(), signal.SIGKILL)
    return project


def test_status_of_a_dead_session_is_4(killed):
    """`status` of a session that was killed ends with 4, and names its socket."""
    assert killed.socket_path() in refusal(called(killed, "status"), 4)


def test_status_json_of_a_dead_session_is_4(killed):
    """`status --json` of a session that was killed ends with 4, and tells what is left of it."""
    found = status_of(killed, code=4)
    expected = {
        "live": False,
        "socket": killed.socket_path(),
        "marker": str(killed.marker),
        "pid": None,
    }
    assert_tells(found, expected)


def test_stop_clears_a_dead_session(killed):
    """`stop` removes the marker, the record and the socket of a session that was killed."""
    assert outcome(called(killed, "stop")) == (0, b"", b"")
    assert killed.files() == ["r/hotenv"]


def test_status_leaves_a_dead_session_alone(killed):
    """`status` removes nothing of a session that was killed."""
    before = killed.files()
    called(killed, "status")
    assert killed.files() == before


def test_force_replaces_a_dead_session(killed):
    """`serve --force` takes the place of a session that was killed, and removes its socket."""
    old_socket = killed.socket_path()
    killed.serve(b"A=2\n", "--force")
    assert killed.dump() == {b"A": b"2"}
    assert not os.path.exists(old_socket)


def test_quiet_status_of_a_live_session_is_0(project):
    """`status -q` of a live session says so by its status alone."""
    project.serve()
    assert outcome(called(project, "status", "-q")) == (0, b"", b"")


def test_quiet_status_without_a_session_is_3(project):
    """`status -q` without a session says so by its status alone."""
    assert outcome(called(project, "status", "-q")) == (3, b"", b"")


def test_quiet_status_of_a_dead_session_is_4(killed):
    """`status -q` of a session that was killed says so by its status alone."""
    assert outcome(called(killed, "status", "-q")) == (4, b"", b"")


def test_serve_ignores_hotenv_socket(project, daily):
    """`serve` starts a session of its own also where HOTENV_SOCKET names another one."""
    project.serve(b"A=1\n", env={"HOTENV_SOCKET": daily.socket_path()})
    assert project.dump() == {b"A": b"1"}
    assert daily.dump() == SNAPSHOT


def test_empty_hotenv_socket_is_unset(project):
    """A HOTENV_SOCKET that is empty names nothing: the nearest session is asked."""
    project.serve()
    assert project.dump(env={"HOTENV_SOCKET": ""}) == {b"A": b"1"}


# How a command is told which socket to ask.
_DAILY_NAMINGS = ["--socket", "HOTENV_SOCKET"]


def _daily_naming(how, path):
    """Return the options, and the environment, by which a command is told of a socket."""
    if how == "--socket":
        return ["--socket", path], {}
    return [], {how: path}


@pytest.mark.parametrize("how", _DAILY_NAMINGS)
def test_status_of_a_named_socket(project, daily, how):
    """`status` of a named socket tells of that session, not of the nearest."""
    project.serve()
    options, env = _daily_naming(how, daily.socket_path())
    expected = {
        "live": True,
        "socket": daily.socket_path(),
        "marker": str(daily.marker),
        "pid": daily.server_pid(),
        "ends": daily.ends_at(),
    }
    assert_tells(status_of(project, *options, env=env), expected)


@pytest.mark.parametrize("how", _DAILY_NAMINGS)
def test_stop_of_a_named_socket(project, daily, how):
    """`stop` of a named socket ends that session, and leaves the nearest alone."""
    server = project.serve()
    options, env = _daily_naming(how, project.socket_path())
    assert outcome(called(daily, "stop", *options, env=env)) == (0, b"", b"")
    assert ended(server) == 0
    assert project.files() == ["r/hotenv"]
    assert daily.dump() == SNAPSHOT


def test_stop_ends_the_nearest_session(project):
    """`stop` ends the nearest session upward, and not the one above it."""
    below = project.dir / "a" / "b"
    below.mkdir(parents=True)
    project.serve(b"A=outer\n")
    called(project, "serve", "--background", input=b"A=inner\n", cwd=below.parent)
    assert project.dump(cwd=str(below)) == {b"A": b"inner"}

    assert outcome(called(project, "stop", cwd=below)) == (0, b"", b"")
    assert project.dump(cwd=str(below)) == {b"A": b"outer"}
    assert not (below.parent / ".hotenv").exists()


def test_stop_follows_a_link_to_a_socket(project):
    """`stop --socket` takes a link to a socket, ends its session, and leaves none of its files."""
    server = project.serve()
    link = project.root / "link"
    link.symlink_to(project.socket_path())
    assert called(project, "stop", "--socket", str(link)).returncode == 0
    assert ended(server) == 0
    assert project.files() == ["r/hotenv"]


class _DailyUser:
    """A user who has no session but those of a test, so that `stop --all` can mean it.

    - `project`: the directories of that user.
    """

    def __init__(self, project):
        self.project = project
        self._uid = os.geteuid()
        self._options = {}
        project.with_own_tmp()  # --all also looks into /tmp/hotenv-UID
        if ROOT:
            self._uid = STRANGER + 1
            self._options["preexec_fn"] = strangers(project, self._uid)
        if os.path.exists("/run/user/%d/hotenv" % self._uid):
            pytest.skip("there may be sessions of yours, which this test would end")

    def types(self, *words):
        """Run a command in a directory that has nothing to do with a session."""
        return self.project.hotenv(*words, cwd="/", **self._options)

    def serves_in(self, name):
        """Start a session in a new directory of the project: that directory, its process."""
        directory = self.project.dir / name
        directory.mkdir()
        os.chown(str(directory), self._uid, -1)
        with tempfile.TemporaryFile() as text:
            text.write(b"A=1\n")
            text.seek(0)
            server = self.project.start("serve", stdin=text, cwd=str(directory), **self._options)
        until((directory / ".hotenv").exists, "a session in " + name)
        return directory, server


@pytest.fixture
def lone_user(project):
    """A _DailyUser without a session."""
    return _DailyUser(project)


class _DailyThree:
    """Three sessions of a user: a whole one, one that lost its marker, and one that was killed."""

    def __init__(self, user):
        self.user = user
        self.whole, self.whole_server = user.serves_in("whole")
        self.lost, self.lost_server = user.serves_in("lost")
        self.dead, dead_server = user.serves_in("dead")
        self.whole_socket = self._socket_of(self.whole)
        self.lost_socket = self._socket_of(self.lost)
        self.dead_socket = self._socket_of(self.dead)
        (self.lost / ".hotenv").unlink()  # as `git clean` does
        ended(dead_server, signal.SIGKILL)

    def _socket_of(self, directory):
        return (directory / ".hotenv").read_text()[len("socket=") : -1]


@pytest.fixture
def three_sessions(lone_user):
    """The _DailyThree of a user who has no other session."""
    return _DailyThree(lone_user)


@pytest.mark.parametrize("command", ["status", "stop"])
def test_all_without_a_session_is_3(lone_user, command):
    """`status --all` and `stop --all` of a user without a session end with 3."""
    refusal(lone_user.types(command, "--all"), 3)


def test_status_all_lists_every_session(three_sessions):
    """`status --all --json` lists each session, by its marker or not, live or dead."""
    done = three_sessions.user.types("status", "--all", "--json")
    assert done.returncode == 0
    found = {each["socket"]: each for each in json.loads(done.stdout.decode())}
    whole = three_sessions.whole_socket
    lost = three_sessions.lost_socket
    dead = three_sessions.dead_socket
    assert set(found) == {whole, lost, dead}

    expected = {
        "live": True,
        "ends": os.stat(whole).st_mtime,
        "marker": str(three_sessions.whole / ".hotenv"),
        "directory": str(three_sessions.whole),
    }
    assert_tells(found[whole], expected)
    assert_tells(found[lost], {"live": True, "ends": os.stat(lost).st_mtime, "marker": None})
    assert_tells(found[dead], {"live": False, "marker": str(three_sessions.dead / ".hotenv")})


def test_status_all_text_lists_the_same(three_sessions):
    """`status --all` prints each session for a human: two live ones, a dead one."""
    done = three_sessions.user.types("status", "--all")
    assert done.returncode == 0
    shown = done.stdout.decode()
    assert re.findall("(?m)^(?:live|dead)", shown).count("live") == 2
    assert re.findall("(?m)^(?:live|dead)", shown).count("dead") == 1
    assert three_sessions.whole_socket in shown
    assert three_sessions.lost_socket in shown
    assert three_sessions.dead_socket in shown
    assert str(three_sessions.whole) in shown


def test_stop_all_ends_every_session(three_sessions):
    """`stop --all` ends every live session, the one without a marker too."""
    assert three_sessions.user.types("stop", "--all").returncode == 0
    assert ended(three_sessions.whole_server) == 0
    assert ended(three_sessions.lost_server) == 0


def test_stop_all_clears_what_is_left(three_sessions):
    """`stop --all` leaves no socket and no marker, not even of a session that was killed."""
    assert three_sessions.user.types("stop", "--all").returncode == 0
    project = three_sessions.user.project
    assert list(project.base.rglob("*.sock")) == []
    assert list(project.dir.rglob(".hotenv")) == []


# A program that listens on a socket under a name of its own, and hands on the answers of a session.
_DAILY_LISTENER = """
import contextlib, socket, sys

path, name = sys.argv[1:]
with open("/proc/self/comm", "w") as comm:
    comm.write(name)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(16)
print("up", flush=True)
while True:
    with contextlib.suppress(OSError), listener.accept()[0] as client:
        client.recv(1 << 16)
        client.sendall(b'{"error":"BAD_REQUEST","message":"no","pid":"1"}\\n')
"""


@pytest.fixture(params=["python3", "ssh", "hotenv2"])
def other_listener(request, project):
    """A process that is no hotenv, and to whose socket the marker of the project leads."""
    project.points_at(project.root / "fake.sock")
    command = [sys.executable, "-c", _DAILY_LISTENER, project.socket_path(), request.param]
    process = subprocess.Popen(command, stdout=PIPE)
    project.started.append(process)
    assert process.stdout.readline() == b"up\n"
    return process


@only_linux
def test_stop_spares_another_program(project, other_listener):
    """`stop` ends no process that is not hotenv, and says that the socket may be forwarded."""
    assert "forwarded" in refusal(called(project, "stop"), 8)
    assert other_listener.poll() is None
    assert project.marker.exists()


@only_linux
def test_status_admits_what_it_cannot_know(project, other_listener):
    """`status` names no process where another program answers at the socket."""
    shown = called(project, "status").stdout.decode()
    assert re.search("forwarded|unknown", shown)
    assert str(other_listener.pid) not in shown.split()


@only_linux
@only_root
def test_stop_spares_other_pid_namespaces(project):
    """`stop` in another pid namespace than the session's sends no signal, and says why."""
    if subprocess.run(["unshare", "-pf", "true"], stderr=DEVNULL).returncode:
        pytest.skip("needs pid namespaces")
    server = project.serve()
    project.program = ["unshare", "-pf", *project.program]
    assert "pid namespace" in refusal(project.hotenv("stop"), 8)
    assert server.poll() is None


@pytest.fixture(scope="module")
def strangers_session():
    """A Project of another user, with a session of that user."""
    with contextlib.closing(Project()) as shared:
        as_stranger = strangers(shared, STRANGER)
        shared.serve(preexec_fn=as_stranger)
        yield shared


@only_root
@pytest.mark.parametrize("command", ["dump", "status", "stop"])
def test_socket_of_a_stranger_is_refused(strangers_session, command):
    """Invariant 9: a session of another user is not believed; the option that does so is told."""
    done = called(strangers_session, command, "--socket", strangers_session.socket_path())
    assert "--peer-uid %d" % STRANGER in refusal(done, 9)
    assert done.stdout == b""


@only_root
@pytest.mark.parametrize("command", ["dump", "status", "stop"])
def test_marker_of_a_stranger_is_refused(strangers_session, command):
    """Invariant 9: a marker of another user is not believed; the options that do so are told."""
    message = refusal(called(strangers_session, command), 8)
    assert "--socket" in message
    assert "--peer-uid" in message


@only_root
def test_stranger_is_believed_by_its_number(strangers_session):
    """With --peer-uid a session of that user hands out its environment."""
    believed = ["--socket", strangers_session.socket_path(), "--peer-uid", str(STRANGER)]
    assert strangers_session.dump(*believed) == {b"A": b"1"}
    assert status_of(strangers_session, *believed)["pid"] == strangers_session.server_pid()


@only_root
def test_root_ends_a_believed_session(project):
    """With --peer-uid root ends a session of that user."""
    server = project.serve(preexec_fn=strangers(project, STRANGER))
    path = project.socket_path()
    done = called(project, "stop", "--socket", path, "--peer-uid", str(STRANGER))
    assert done.returncode == 0
    assert ended(server) == 0
    assert not os.path.exists(path)


@only_root
def test_stranger_ends_no_session_of_root(project):
    """A user who believes root, and may open root's socket, may still not end root's session."""
    as_stranger = strangers(project, STRANGER)
    runtime_base = project.root / "ours"
    os.chown(str(project.base), 0, 0)
    server = project.serve(env={"XDG_RUNTIME_DIR": str(runtime_base)})
    runtime_base.chmod(0o755)
    (runtime_base / "hotenv").chmod(0o755)
    os.chmod(project.socket_path(), 0o666)

    options = ["--socket", project.socket_path(), "--peer-uid", "0"]
    refusal(project.hotenv("stop", *options, preexec_fn=as_stranger), 8)
    assert server.poll() is None


@only_root
def test_serve_in_a_read_only_project_is_8(project):
    """A `serve` in a directory of somebody else is refused, and told where else to serve."""
    as_stranger = strangers(project, STRANGER)
    os.chown(str(project.dir), 0, 0)
    message = refusal(project.hotenv("serve", input=b"A=1\n", preexec_fn=as_stranger), 8)
    assert re.search("above|other|else|HOTENV_SOCKET|--socket", message)


def test_background_returns_when_it_answers(project):
    """`serve --background` returns, without a word, when requests are accepted."""
    for attempt in range(amount(60)):
        done = project.hotenv("serve", "--background", "--force", input=b"A=%d\n" % attempt)
        assert outcome(done) == (0, b"", b"")
        assert json.loads(project.ask().decode()) == {"env": {"A": str(attempt)}}


def test_background_session_leads_its_own(project):
    """A session in the background has a session of its own: no terminal's hang-up ends it."""
    project.hotenv("serve", "--background", input=b"A=1\n")
    server = project.server_pid()
    assert os.getsid(server) == server


@only_linux
def test_background_session_is_named(project):
    """The process of a session in the background is called hotenv."""
    project.hotenv("serve", "--background", input=b"A=1\n")
    assert Path("/proc/%d/comm" % project.server_pid()).read_text() == "hotenv\n"


@only_linux
@only_root
def test_background_session_holds_no_directory(project):
    """A session in the background leaves the directory in which it was started, for `/`."""
    project.hotenv("serve", "--background", input=b"A=1\n")
    assert os.readlink("/proc/%d/cwd" % project.server_pid()) == "/"


def test_background_session_holds_no_lock(project):
    """A session in the background keeps no descriptor, and so no lock, of its caller."""
    path = str(project.root / "lock")
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        project.hotenv("serve", "--background", input=b"A=1\n", pass_fds=[lock.fileno()])
    project.ask()
    with open(path) as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_second_background_session_is_refused(project):
    """`serve --background` is refused with 10 where a session answers."""
    project.hotenv("serve", "--background", input=b"A=1\n")
    done = project.hotenv("serve", "--background", input=b"A=new\n")
    assert re.search("(?<!nobody )answers", refusal(done, 10))
    assert project.dump() == {b"A": b"1"}


# What stands at the path of a log, as `planted` has it, and that path.
_DAILY_NO_LOGS = [
    ("link", "log"),
    ("dangling link", "log"),
    ("fifo", "log"),
    ("fifo with a reader", "log"),
    ("directory", "log"),
    ("missing directory", "missing/log"),
    ("device", "/dev/null"),
]


@pytest.mark.parametrize("kind, log", _DAILY_NO_LOGS)
def test_log_goes_to_a_plain_file_alone(project, kind, log):
    """`serve --log` refuses what is no plain file of the user, and creates nothing."""
    if log == "log":
        planted(project.dir / "log", kind)
    before = project.files()
    with contextlib.ExitStack() as ends:
        if kind == "fifo with a reader":
            reader = os.open(str(project.dir / "log"), os.O_RDONLY | os.O_NONBLOCK)
            ends.callback(os.close, reader)
        done = project.hotenv("serve", "--background", "--log", log, input=b"A=1\n")
    refusal(done, 8)
    assert project.files() == before


def test_log_follows_no_link(project):
    """`serve --log` leaves a file alone to which a link at that path leads."""
    planted(project.dir / "log", "link")
    project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    assert (project.dir / "target").read_bytes() == b"precious\n"


def test_start_that_fails_leaves_no_log(project):
    """A start that fails late, at its runtime directory, does not leave a log behind."""
    project.runtime.symlink_to("/tmp")
    before = project.files()
    refusal(project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n"), 8)
    assert project.files() == before


def _daily_serve_by_hand(project, mask):
    """Start a session with a log on a terminal, under this umask; return the path of the log."""
    serve = project.command(["serve", "--background", "--verbose", "--log", "a log"])
    command = ["sh", "-c", 'umask %o; exec "$@"' % mask, "sh", *serve]
    with on_terminal(*command, cwd=project.dir, env=project.env) as (pid, terminal):
        read_until(terminal, b"Ctrl-D")
        os.write(terminal, b"A=1\n\x04")
        assert os.waitpid(pid, 0)[1] == 0
    return project.dir / "a log"


@pytest.mark.parametrize("mask", [0, 0o777], ids=oct)
def test_log_is_private_whatever_the_umask(project, mask):
    """A new log can be read and written by its user alone."""
    assert mode(_daily_serve_by_hand(project, mask)) == 0o600


def test_log_that_is_there_becomes_private(project):
    """A log that others could read before can be read by its user alone."""
    (project.dir / "a log").write_bytes(b"before\n")
    (project.dir / "a log").chmod(0o666)
    assert mode(_daily_serve_by_hand(project, 0)) == 0o600


def test_log_is_appended_to(project):
    """A log keeps what it had."""
    (project.dir / "a log").write_bytes(b"before\n")
    log = _daily_serve_by_hand(project, 0o022)
    project.run("true")
    assert re.fullmatch(rb"before\n\S+ \S+ run true\n", log.read_bytes())


def test_log_holds_requests_alone(project):
    """A log has a line for each request, and no word of a start or an end on a terminal."""
    log = _daily_serve_by_hand(project, 0o022)
    assert project.run("echo", "x y").stdout == b"x y\n"
    assert project.hotenv("stop").returncode == 0
    assert re.fullmatch(rb"\S+ \S+ run echo x y\n", log.read_bytes())


# A name of a directory that has to be quoted in a shell.
_DAILY_AWKWARD = "it's a \"dir\" $HOME `x` \\ \u00e9"


def through_shellenv(shell, file, script, *args, env):
    """Run a script in a shell that has evaluated `FILE shellenv`."""
    start = 'eval "$("$1" "$2" shellenv)" || exit 99\nshift 2\n' + script
    return subprocess.run(
        [*_shell_words(shell), "-uc", start, shell, sys.executable, str(file), *args],
        stdout=PIPE,
        stderr=PIPE,
        env=env,
        timeout=PATIENCE,
        cwd="/",
    )


@pytest.fixture(scope="module")
def shellenv_function():
    """The path of a file with what `shellenv` prints, for a copy in an awkward directory."""
    with contextlib.closing(Project()) as holder:
        tools = holder.root / _DAILY_AWKWARD
        tools.mkdir()
        holder.program = [sys.executable, shutil.copy(str(HOTENV), str(tools / "hotenv.py"))]
        (holder.root / "function").write_bytes(holder.hotenv("shellenv").stdout)
        yield holder.root / "function"


def with_shellenv(shell, function, script, project):
    """Run a script in a shell that has the function `hotenv`, in the directory of a project."""
    return subprocess.run(
        [*_shell_words(shell), "-uc", '. "$1"\n' + script, shell, str(function)],
        stdout=PIPE,
        stderr=PIPE,
        env=project.env,
        timeout=PATIENCE,
        cwd=str(project.dir),
    )


# A script, and what it prints.
_DAILY_SCRIPTS = [
    pytest.param(
        "hotenv --version",
        "hotenv %s\n" % hotenv.__version__,
        id="version",
    ),
    pytest.param(
        """hotenv run -- printf '<%s>' "a b" '' "it's" '$x' '*' -- --help""",
        "<a b><><it's><$x><*><--><--help>",
        id="arguments",
    ),
    pytest.param(
        "hotenv run -- sh -c 'exit 7'; echo \"status $?\"",
        "status 7\n",
        id="status",
    ),
    pytest.param(
        'echo "from stdin" | hotenv run -- cat',
        "from stdin\n",
        id="stdin",
    ),
    pytest.param(
        'hotenv stop --nonsense; echo "status $?"',
        "status 2\n",
        id="mistake",
    ),
    pytest.param(
        "hotenv hermetic --no-network -- echo guarded",
        "guarded\n",
        id="guards",
    ),
]


@pytest.mark.parametrize("shell", shells())
@pytest.mark.parametrize("script, expected", _DAILY_SCRIPTS)
def test_shellenv_function_is_hotenv(daily, shellenv_function, shell, script, expected):
    """The function of `shellenv` takes what the program takes, and does what the program does."""
    done = with_shellenv(shell, shellenv_function, script, daily)
    assert done.stdout.decode() == expected, done.stderr


@pytest.mark.parametrize("shell", shells())
def test_shellenv_function_names_itself(daily, shellenv_function, shell):
    """An error under the function of `shellenv` shows commands as the user can type them."""
    done = with_shellenv(shell, shellenv_function, "hotenv stop --nonsense", daily)
    assert "hotenv stop --help" in refusal(done, 2)


@pytest.mark.parametrize("shell", shells())
def test_shellenv_function_runs_compiled(project, shell):
    """The function of `shellenv` runs the compiled file, in a Python that is isolated."""
    # The compiled file is replaced by another program, with a mark that Python does not compare
    # it with its source.
    other = project.root / "other.py"
    other.write_text("import sys\ndef main():\n    print('compiled', sys.flags.isolated)\n")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cfile=str(other) + "c", invalidation_mode=unchecked)

    tools = project.root / _DAILY_AWKWARD
    tools.mkdir()
    copy = shutil.copy(str(HOTENV), str(tools / "hotenv.py"))
    script = """
        hotenv --version
        cp "$2" "$1"/__pycache__/hotenv.*.pyc
        hotenv
    """
    done = through_shellenv(shell, copy, script, str(tools), str(other) + "c", env=project.env)
    assert done.stdout.decode() == "hotenv %s\ncompiled 1\n" % hotenv.__version__, done.stderr


def test_shellenv_for_fish(daily):
    """`shellenv fish` prints a function in the language of fish."""
    text = called(daily, "shellenv", "fish").stdout.decode()
    assert re.match(r"function hotenv\b.*\$argv; end\n", text)
    assert "@" not in text.splitlines()[0]


def test_shellenv_for_zsh_has_the_same_function(daily):
    """`shellenv zsh` prints the function that `shellenv sh` prints, and the completion for zsh."""
    function = called(daily, "shellenv", "sh").stdout
    text = called(daily, "shellenv", "zsh").stdout
    assert text[: len(function)] == function
    assert b"compdef" in text[len(function) :]


# A shell, what is typed before the line of the README, and what has hotenv if Tab completes it.
_DAILY_TABS = [
    ("bash", "true", "complete -p hotenv"),
    ("zsh", "autoload -Uz compinit; compinit -u -D", "echo $_comps[hotenv]"),
]


@pytest.mark.parametrize("shell, before, asked", _DAILY_TABS, ids=["bash", "zsh"])
def test_shellenv_alone_completes_at_tab(project, shell, before, asked):
    """`shellenv` without the name of a shell brings the completion, too, as the README says."""
    if not shutil.which(shell):
        pytest.skip("there is no " + shell)
    script = before + '; eval "$("$1" "$2" shellenv)"; ' + asked
    done = subprocess.run(
        [shell, "-c", script, shell, sys.executable, str(HOTENV)],
        stdout=PIPE, stderr=STDOUT, env=project.env, timeout=PATIENCE)
    assert "_hotenv" in done.stdout.decode()


@pytest.mark.parametrize(
    "name", ["bin/hotenv", "hotenv-1.0.py", "a link/hotenv", "a link/hot.py"]
)
def test_shellenv_runs_no_neighbour(project, name):
    """A copy with another name, or behind a link, runs itself or refuses, never a neighbour."""
    file = project.root / name
    real = project.root / "real" / "hotenv.py"
    file.parent.mkdir(exist_ok=True)
    real.parent.mkdir()
    (file.parent / "hotenv.py").write_text("def main():\n    print('the neighbour')\n")
    if "link" in name:
        shutil.copy(str(HOTENV), str(real))
        file.symlink_to("../real/hotenv.py")
    else:
        shutil.copy(str(HOTENV), str(file))

    done = through_shellenv("sh", file, "hotenv --version; hotenv --version", env=project.env)
    if done.stdout:
        assert done.stdout.decode() == ("hotenv %s\n" % hotenv.__version__) * 2
    else:
        assert done.returncode != 0
        refusal(done, done.returncode)


# ==== command line ================================================================================
# What may be typed, how a mistake is answered, and in which order `serve` refuses.

COMMANDS = [
    *["serve", "run", "dump", "mask", "status", "stop", "hermetic", "mcp", "shellenv"],
    "completion",
]
TOPICS = ["exit", "environment", "sessions", "dotenv", "masking", "mcp", "hermetic"]

# Words that are typed, and a pattern of the error that answers them with exit code 2. A pattern
# names what helps: a command or an option.
_CLI_MISTAKES = [
    # There is no such command.
    (["nonsense"], "serve.*run.*dump"),
    (["server"], r"\bserve\b"),
    (["--nonsense"], "serve|help"),
    (["\x1b[31m\n"], "serve|help"),
    (["start"], "hotenv serve"),
    (["up"], "hotenv serve"),
    (["exec", "ls"], "hotenv run -- ls"),
    (["exec", "--", "ls", "-l"], "hotenv run -- ls -l"),
    (["get", "API_KEY"], "dump|status"),
    (["show"], "dump|status"),
    (["list"], "dump|status"),
    (["end"], "hotenv stop"),
    (["kill"], "hotenv stop"),
    (["down"], "hotenv stop"),
    (["statsu"], "hotenv status"),
    (["rnu", "--", "ls"], "hotenv run -- ls"),
    (["RUN"], "hotenv run"),
    (["help", "nonsense"], "masking|serve"),
    # A program stands where a command should.
    (["env"], "dump"),
    (["--", "env"], "run -- env"),
    (["/bin/ls"], "run -- /bin/ls"),
    (["sh", "-c", "ls"], "run -- sh"),
    (["sh", "-c", "echo a; ls"], "run -- sh -c 'echo a; ls'"),
    (["./here.sh", "-f"], r"run -- \./here\.sh"),
    (["./no-such.sh"], r"run -- \./no-such\.sh"),
    # serve
    (["serve", "extra"], "serve <"),
    (["serve", "--nonsense"], "--nonsense"),
    (["serve", "-q", "-v"], "not allowed with|-q.*-v"),
    (["serve", "--quiet", "--verbose"], "not allowed with|quiet.*verbose"),
    (["serve", "-qv"], "not allowed with|-q"),
    (["serve", "--time", "5"], "--timeout"),
    (["serve", "--ttl", "5"], "serve --help"),
    (["serve", "--back"], "--back"),
    (["serve", "-t"], "--timeout|-t"),
    (["serve", "--log", "x"], "--background"),
    (["serve", "--max-age", "0"], "366|5m"),
    (["serve", "--quiet=yes"], "--quiet"),
    (["serve", "--socket", "/x"], "--socket"),
    # run
    (["run"], "run .*-- COMMAND"),
    (["run", "--"], "run .*-- COMMAND"),
    (["run", "true"], "hotenv run -- true"),
    (["run", "sh", "-c", "echo a; ls"], "run -- sh -c 'echo a; ls'"),
    (["run", "extra", "--", "true"], "extra"),
    (["run", "--only", "A", "env"], r"-- COMMAND"),
    (["run", "--socket"], "-- COMMAND"),
    (["run", "--opt", "--", "true"], "--opt"),
    (["run", "--optionl", "--", "true"], "--optional"),
    (["run", "--pass", "X", "--", "true"], "--isolated"),
    (["run", "--isolate", "--", "true"], "--isolated"),
    (["run", "--masked", "--", "true"], "--mask"),
    (["run", "--no-mask", "X", "--", "true"], "--mask"),
    (["run", "--nomask", "X", "--", "true"], "--no-mask"),
    (["run", "--peer-uid", "x", "--", "true"], "--peer-uid"),
    (["run", "--define", "NO", "--", "true"], "NAME=VALUE"),
    (["run", "--define", "=1", "--", "true"], "NAME=VALUE"),
    (["run", "--bin=", "--", "true"], "--bin"),
    (["run", "--trace", "--", "true"], "guard"),
    # the others
    (["dump", "extra"], "extra"),
    (["dump", " "], "unrecognized"),
    (["dump", "--json", "--format", "value"], "not allowed|--format"),
    (["dump", "--form", "json"], "--form"),
    (["dump", "--format", "xml"], "json"),
    (["dump", "--peer-uid", "-"], "--peer-uid"),
    (["status", "now"], "now"),
    (["status", "--jsn"], "--json"),
    (["status", "--all", "--socket", "/x"], "--socket"),
    (["stop", "now"], "now"),
    (["stop", "--al"], "--al"),
    (["stop", "--all", "--socket", "/x"], "--socket"),
    (["stop", "--all", "--socket", ""], "--socket"),
    (["mcp", "extra"], "extra"),
    (["mcp", "--remote", "web"], "NAME=CMD"),
    (["shellenv", "tcsh"], "fish"),
]

# What is no duration; the error shows one that is.
_CLI_NO_DURATIONS = [
    "0",
    "-1",
    "367d",
    "x",
    "nan",
    "inf",
    "1e3",
    "1m1h",
    "0x10",
    "0s",
    "5 m",
    "\u0665",  # a digit, but not an ASCII one
    "9" * 5000,
]


def _cli_assert_mistake(project, words, pattern):
    """Fail unless these words are refused with 2, by a pattern, and nothing is created."""
    executable(project.dir / "here.sh", "")
    message = refusal(called(project, *words, input=b"A=1\n"), 2)
    assert re.search(pattern, message, re.DOTALL)
    assert len(message) <= 1000, "the answer to a mistake can be read at a glance"
    assert project.files() == ["p/here.sh"]


@pytest.mark.parametrize("words, pattern", _CLI_MISTAKES, ids=ascii)
def test_mistake_is_answered_with_help(project, words, pattern):
    """A mistake on the command line ends with 2, and names what was meant or what is there."""
    _cli_assert_mistake(project, words, pattern)


@pytest.mark.parametrize("duration", _CLI_NO_DURATIONS, ids=short)
def test_wrong_duration_is_answered_with_one(project, duration):
    """A duration that is none ends with 2, and the error shows how one is written."""
    _cli_assert_mistake(project, ["serve", "-t", duration], "5m")


@pytest.mark.parametrize(
    "words",
    [
        ["hermetic", "--nonsense", "--", "x"],
        ["run"],
        ["dump"],
    ],
    ids=str,
)
def test_error_names_the_program_as_called(project, words):
    """An error of a copy in the repository shows commands that run that copy."""
    copy = os.path.relpath(str(HOTENV), str(project.dir))
    project.program = [sys.executable, copy]
    said = project.hotenv(*words).stderr.decode()
    assert "hotenv.py " in said
    assert not re.search(r"[`\s]hotenv (run|serve|hermetic)\b", said[len("hotenv: ") :])


def test_no_command_prints_the_usage(project):
    """Without a command the usage comes on stderr, with status 2."""
    done = called(project)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"usage: " in done.stderr
    assert b"serve" in done.stderr


# Words that ask for what cannot be run, or is not there; the exit code, and what the error names.
_CLI_VAIN = [
    (["run", "--", "no-such"], 8, "no-such"),
    (["run", "--", "cd", "/"], 8, "sh -c"),
    (["run", "--", "echo $A"], 8, "sh -c"),
    (["run", "--", "ll && ls"], 8, "sh -c"),
    (["run", "--", "./orphan"], 8, "/no/such/python"),
    (["run", "--", "./plain"], 8, "chmod +x ./plain"),
    (["run", "--", "/etc"], 8, "/etc"),
    (["run", "--only", "X", "--", "true"], 2, "X"),
    (["run", "--only", "", "--", "true"], 2, "--only"),
    (["run", "--mask", "--no-mask", "Z", "--", "true"], 2, "Z"),
    (["run", "--socket", "/x", "--", "true"], 4, "without --socket"),
    (["hermetic", "--no-network", "--", "no-such"], 1, "no-such"),
    (["dump", "--only", "TOKENS"], 2, "TOKEN?"),
]


@pytest.fixture(scope="module")
def cli_session():
    """A Project with a session, a script for an interpreter that is missing, and a plain file."""
    for shared in standing(b"TOKEN=1\n"):
        executable(shared.dir / "orphan", "#!/no/such/python\n")
        executable(shared.dir / "plain", "text", 0o644)
        yield shared


@pytest.mark.parametrize("words, code, telling", _CLI_VAIN, ids=ascii)
def test_vain_command_is_told_what_to_do(cli_session, words, code, telling):
    """What cannot be run, or is not there, is named, and nothing is printed in its place."""
    done = called(cli_session, *words)
    assert telling in refusal(done, code)
    assert done.stdout == b""


def test_mcp_on_a_terminal_says_what_it_wants(project):
    """An `mcp` that a human starts says that it waits for a program, and where to read on."""
    command = project.command(["mcp"])
    with on_terminal(*command, cwd=project.dir, env=project.env) as (_, terminal):
        said = read_until(terminal, rb"help mcp")
    assert said.startswith(b"hotenv: ")
    assert re.search(rb"agent|client|JSON|MCP", said)


def _cli_help(project, *words):
    """Return the help that these words print."""
    done = called(project, *words, env={"COLUMNS": "100"})
    assert done.returncode == 0
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_two_spellings(session, command):
    """-h and --help of a command print the same."""
    assert _cli_help(session, command, "-h") == _cli_help(session, command, "--help")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in TOPICS])
def test_help_with_a_command_is_its_help(session, command):
    """`help COMMAND` prints the help of a command, unless a topic has that name."""
    assert _cli_help(session, "help", command) == _cli_help(session, command, "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_an_example(session, command):
    """The help of a command ends with an example of its use."""
    example = _cli_help(session, command, "--help").partition("example")[2]
    assert command in example


@pytest.mark.parametrize("words", [["-h"], ["help"], ["help", "--help"]], ids=str)
def test_overview_has_several_spellings(session, words):
    """The overview can be asked for in each usual way."""
    assert _cli_help(session, *words) == _cli_help(session, "--help")


@pytest.mark.parametrize("name", [*COMMANDS, "version"])
def test_overview_names_every_command(session, name):
    """The overview names every command."""
    assert re.search(r"\b%s\b" % name, _cli_help(session, "--help"))


def test_overview_begins_with_daily_use(session):
    """The overview tells of the commands of every day before those for few."""
    overview = _cli_help(session, "--help")
    places = [overview.index(name) for name in ("serve", "run", "hermetic", "mcp")]
    assert places == sorted(places)


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_version_has_several_spellings(session, word):
    """The version can be asked for in each usual way."""
    done = called(session, word)
    assert (done.returncode, done.stdout.decode()) == (0, "hotenv %s\n" % hotenv.__version__)


def test_dump_json_is_understood(session):
    """`dump --json` prints JSON, or is told how to ask for JSON."""
    done = called(session, "dump", "--json")
    if done.returncode:
        assert b"--format json" in done.stderr
    else:
        assert json.loads(done.stdout.decode()) == {"A": "1", "B": "two words", "EMPTY": ""}


# A topic of the help, and a word without which it would explain nothing.
_CLI_TOPIC_WORDS = [
    ("masking", "[hidden:NAME]"),
    ("hermetic", "--no-subprocess"),
    ("mcp", "--policy"),
    ("dotenv", "${NAME}"),
    ("sessions", "--socket"),
]


@pytest.mark.parametrize("topic, word", _CLI_TOPIC_WORDS)
def test_topic_is_explained(session, topic, word):
    """`help TOPIC` explains a topic."""
    assert word in _cli_help(session, "help", topic)


@pytest.mark.parametrize("word", [word for word in COMMON if word.isalpha()])
def test_unmasked_words_are_documented(session, word):
    """`help masking` lists the words that are nobody's secret."""
    assert re.search(r"\b%s\b" % word, _cli_help(session, "help", "masking"))


# What is typed as a duration, and how many seconds that is.
_CLI_DURATIONS = [
    ("300", 300),
    ("1h30m", 5400),
    ("366d", 366 * 86400),
    (".5h", 1800),
    ("999.5", 999.5),
    ("1d2h3m4s", 93784),
    ("7.m", 420),
    ("0070", 70),
]


def _cli_assert_lifetime(project, options, seconds):
    """Fail unless a session with these options will end after so many seconds."""
    before = time.time()
    done = called(project, "serve", "--background", *options, input=b"A=1\n")
    after = time.time()
    assert outcome(done) == (0, b"", b"")
    # A time stamp is not exact to the last digit of a clock.
    assert before + seconds <= project.ends_at() + 0.01
    assert project.ends_at() - 0.01 <= after + seconds


@pytest.mark.parametrize("text, seconds", _CLI_DURATIONS)
def test_timeout_takes_durations(project, text, seconds):
    """`serve -t` takes seconds, and counts with units, as the time until an idle session ends."""
    _cli_assert_lifetime(project, ["-t", text], seconds)


@pytest.mark.parametrize("text, seconds", _CLI_DURATIONS)
def test_max_age_takes_durations(project, text, seconds):
    """`serve --max-age` takes the same durations, and ends a session before its idle time does."""
    _cli_assert_lifetime(project, ["-t", "366d", "--max-age", text], seconds)


def test_request_does_not_extend_max_age(project):
    """A request restarts the idle time of a session, but not its --max-age."""
    _cli_assert_lifetime(project, ["-t", "366d", "--max-age", "70"], 70)
    before = project.ends_at()
    project.ask()
    assert abs(project.ends_at() - before) < 1


# What may stand in the place of a marker, as `planted` has it.
_CLI_MARKERS = ["directory", "fifo", "dangling link", "file"]


def _cli_spoil(project, marker="", runtime=False):
    """Put something in the place of the marker, or of the runtime directory."""
    if marker == "file":
        project.marker.write_bytes(b"socket=/nowhere.sock\n")
    elif marker:
        planted(project.marker, marker)
    if runtime:
        project.runtime.touch()


def _cli_done(process):
    """Wait for the end of a process; return a CompletedProcess."""
    stdout, stderr = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.mark.parametrize("kind", _CLI_MARKERS)
def test_usage_is_refused_first(project, kind):
    """Wrong usage of `serve` is refused before a marker, a malformed input, and the system."""
    _cli_spoil(project, marker=kind, runtime=True)
    refusal(called(project, "serve", "--timeout", "0", input=b"not dotenv\n"), 2)


@pytest.mark.parametrize("kind", _CLI_MARKERS)
def test_marker_is_refused_before_the_input(project, kind):
    """A marker is refused before `serve` has read its input, and --force is shown."""
    _cli_spoil(project, marker=kind, runtime=True)
    process, writer = project.held()
    done = _cli_done(process)
    os.close(writer)  # the input had no end until here
    assert "--force" in refusal(done, 10)


def test_refused_marker_is_told_to_be_dead(project):
    """The refusal of a marker says when nobody answers at its socket."""
    _cli_spoil(project, marker="file")
    message = refusal(called(project, "serve", input=b"A=1\n"), 10)
    assert re.search("nobody answers|not answer", message)


def test_input_is_refused_before_the_system(project):
    """A malformed input is refused before a runtime directory that cannot be used."""
    _cli_spoil(project, runtime=True)
    assert "<stdin>:1:" in refusal(called(project, "serve", input=b"not dotenv\n"), 7)


def test_system_is_refused_last(project):
    """A runtime directory that cannot be used is refused with 8."""
    _cli_spoil(project, runtime=True)
    assert str(project.runtime) in refusal(called(project, "serve", input=b"A=1\n"), 8)


_CLI_MORE_THAN_A_PIPE = b"A=1\n" * 20000  # its writer waits until somebody reads


def test_nothing_is_created_before_input_ends(project):
    """Invariant 2: a `serve` that still reads has created nothing."""
    process, writer = project.held()
    os.write(writer, _CLI_MORE_THAN_A_PIPE)
    assert project.files() == []
    os.close(writer)
    project.wait_ready(process)


def test_session_made_meanwhile_stays(project):
    """A `serve` whose input ends after another one has begun to serve is refused."""
    process, writer = project.held()
    os.write(writer, _CLI_MORE_THAN_A_PIPE)
    project.serve(b"A=early\n")
    os.close(writer)
    message = refusal(_cli_done(process), 10)
    assert re.search("(?<!nobody )answers", message)
    assert "stop" in message
    assert "--force" in message
    assert project.dump() == {b"A": b"early"}


def test_refused_force_leaves_the_older(project):
    """A `serve --force` with a malformed input leaves the older session alone."""
    project.serve(b"A=early\n")
    before = project.files()
    refusal(called(project, "serve", "--force", input=b"nonsense\n"), 7)
    assert project.files() == before
    assert project.dump() == {b"A": b"early"}


def test_one_of_six_starts_wins(project):
    """Of six that start at once exactly one serves, and the others are refused."""
    started = [project.held() for _ in range(6)]
    for number, (_, writer) in enumerate(started):
        os.write(writer, b"A=%d\n" % number)
    for _, writer in started:
        os.close(writer)

    processes = [process for process, _ in started]
    until(lambda: [each.poll() for each in processes].count(None) == 1, "five losers")
    for number, process in enumerate(processes):
        if process.poll() is None:
            assert project.dump() == {b"A": b"%d" % number}
        else:
            refusal(_cli_done(process), 10)
    assert len(list(project.runtime.glob("*.sock"))) == 1


def _cli_close_stdin():
    """Close the stdin of a child."""
    os.close(0)


# How a process is started that reads not one byte.
_CLI_NO_INPUTS = [
    pytest.param({"input": b""}, id="a pipe"),
    pytest.param({"stdin": DEVNULL}, id="/dev/null"),
    pytest.param({"stdin": DEVNULL, "preexec_fn": _cli_close_stdin}, id="closed"),
]


@pytest.mark.parametrize("how", _CLI_NO_INPUTS)
def test_no_byte_of_input_is_refused(project, how):
    """A `serve` without one byte of input is refused: the left side of a pipe has failed."""
    message = refusal(project.hotenv("serve", "--background", **how), 7)
    assert "empty" in message
    assert "--empty" in message
    assert project.files() == []


@pytest.mark.parametrize("how", _CLI_NO_INPUTS)
def test_empty_input_can_be_meant(project, how):
    """With --empty a `serve` without one byte of input is an empty session."""
    done = project.hotenv("serve", "--background", "--empty", **how)
    assert done.returncode == 0
    assert project.ask() == b'{"env":{}}\n'


def test_input_without_entries_is_a_session(project):
    """A text without entries is an empty session, from which commands run."""
    project.serve(b"\n \n# nothing\n")
    assert project.ask() == b'{"env":{}}\n'
    assert called(project, "dump").stdout == b""
    assert project.run("true").returncode == 0


def test_stdin_that_cannot_be_read_is_refused(project):
    """Invariant 2: a stdin that cannot be read is refused with 8, and nothing is created."""
    with open(os.devnull, "wb") as write_only:
        assert "stdin" in refusal(project.hotenv("serve", stdin=write_only), 8)
    assert project.files() == []


def test_input_over_64_mib_is_refused(project):
    """Invariant 2: an input above the limit is refused with 7, and nothing is created."""
    process, writer = project.held()
    comment = b"# " + b"x" * (1 << 20) + b"\n"
    with contextlib.suppress(BrokenPipeError), open(writer, "wb") as pipe:
        for _ in range(65):
            pipe.write(comment)
    assert "64 MiB" in refusal(_cli_done(process), 7)
    assert project.files() == []


@pytest.mark.parametrize(
    "words, code",
    [
        (["run", "--", "true"], 3),
        (["dump"], 3),
        (["serve", "--nonsense"], 2),
        ([], 2),
        (["run"], 2),
        (["serve"], 7),
    ],
    ids=str,
)
def test_closed_stderr_changes_no_status(project, words, code):
    """A command whose stderr is closed ends as it would, prints nothing, and creates nothing."""

    def close_stderr():
        os.close(2)

    done = project.hotenv(*words, input=b"nonsense\n", preexec_fn=close_stderr)
    assert (done.returncode, done.stdout) == (code, b"")
    assert project.files() == []


@pytest.mark.parametrize(
    "signum",
    [
        pytest.param(signal.SIGTERM, id="SIGTERM"),
        pytest.param(signal.SIGINT, id="SIGINT"),
        pytest.param(signal.SIGHUP, id="SIGHUP"),
        pytest.param(signal.SIGQUIT, id="SIGQUIT"),
    ],
)
def test_signal_ends_a_reading_serve(project, signum):
    """Invariant 2: a `serve` that still reads dies of a signal, without a word or a trace."""
    env = {"XDG_RUNTIME_DIR": str(project.base / "new")}
    process, writer = project.held(env=env, preexec_fn=limits(CORE=(0, 0)))
    os.write(writer, _CLI_MORE_THAN_A_PIPE)
    assert ended(process, signum) == -signum
    assert process.stderr.read() == b""
    assert project.files() == []

    # A pipe that nobody reads any more is in error.
    poll = select.poll()
    poll.register(writer, 0)
    assert poll.poll(PATIENCE * 1000), "a process still reads the stdin"
    os.close(writer)


@pytest.mark.parametrize(
    "options, text",
    [
        ([], b"="),
        ([], b"A"),
        ([], b"A=1\nB\n"),
        ([], b"A=\xff"),
        ([], b"\xff\xfeA\0"),
        (["--force"], b"A"),
        (["--force"], b"A=${"),
        (["--background"], b"A='"),
        (["--background"], b"A=\0"),
        (["--background"], b"x" * 100000),
    ],
    ids=short,
)
def test_malformed_input_creates_nothing(project, options, text):
    """Invariant 2: a malformed input is refused by its place, and nothing is created."""
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "not" / "there")
    message = refusal(called(project, "serve", *options, input=text), 7)
    assert re.match(r"<stdin>:\d+:\d+: ", message)
    assert project.files() == []


class _CliReading:
    """A `serve` whose stdin is a socket, so that it waits for its input.

    - `process`: that `serve`.
    - `place`: its directory in /proc.
    - `peer`: the other end of its stdin.
    """

    def __init__(self, project):
        self._project = project
        self.peer, stdin = socket.socketpair()
        self.peer.settimeout(PATIENCE)
        self.process = project.start("serve", stdin=stdin)
        stdin.close()
        self.place = Path("/proc/%d" % self.process.pid)

    def send(self, text):
        """Send the whole input, and wait until it is served."""
        self.peer.sendall(text)
        self.peer.shutdown(socket.SHUT_WR)
        self._project.wait_ready(self.process)


@pytest.fixture
def reading(project):
    """A _CliReading."""
    started = _CliReading(project)
    with started.peer:
        yield started


@only_linux
def test_serve_is_named_before_it_reads(reading):
    """A `serve` is called hotenv before it reads its input."""
    until(lambda: (reading.place / "comm").read_text() == "hotenv\n", "the name")


@only_linux
def test_serve_dumps_no_core_before_it_reads(reading):
    """Invariant 12: a `serve` can leave no core before it reads its input."""
    no_core = re.compile("core file size +0 ")
    until(lambda: no_core.search((reading.place / "limits").read_text()), "a limit of cores")


@only_linux
def test_serve_is_closed_before_it_reads(reading):
    """Invariant 12: the /proc entry of a `serve` is root's before it reads its input."""
    until(lambda: os.stat(str(reading.place / "environ")).st_uid == 0, "a closed /proc entry")


@only_linux
def test_serve_lets_go_of_stdin(reading):
    """A session does not hold who holds the other end of its stdin."""
    reading.send(b"A=1\n")
    assert reading.peer.recv(1) == b""
    if ROOT:  # nobody else may look
        assert os.readlink(str(reading.place / "fd" / "0")) == "/dev/null"


@only_linux
@pytest.mark.parametrize("name", ["cmdline", "environ", "comm"])
def test_proc_shows_no_value(reading, name):
    """Invariant 1: what /proc shows of a session holds no value."""
    reading.send(b"A=s3cr3t-value\n")
    with contextlib.suppress(PermissionError):
        assert b"s3cr3t" not in (reading.place / name).read_bytes()


@only_linux
@pytest.mark.parametrize("name", ["environ", "mem", "maps"])
def test_proc_is_closed_to_its_user(project, name):
    """Invariant 12: other processes of the same user read neither memory nor environment."""
    # As root may read all, root tries this as another user.
    as_user = strangers(project, STRANGER) if ROOT else None
    server = project.serve(preexec_fn=as_user)
    done = subprocess.run(
        ["head", "-c", "1", "/proc/%d/%s" % (server.pid, name)],
        preexec_fn=as_user,
        env={"PATH": PATHS, "LC_ALL": "C"},
        stdout=PIPE,
        stderr=PIPE,
        timeout=PATIENCE,
    )
    assert b"Permission denied" in done.stderr
    assert done.stdout == b""


# A program that runs a script, and goes on after it.
_CLI_GOES_ON = """
import runpy, subprocess, sys

sys.argv[0] = sys.argv.pop(1)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as finished:
    killed = subprocess.run(["sh", "-c", "kill -TERM $$; echo survived"]).returncode
    print("then", finished.code, killed, flush=True)
    sys.exit(5)
"""

# Options with which `serve` returns at once, or soon.
_CLI_SOON = [
    pytest.param(["--background"], id="background"),
    pytest.param(["--timeout", "0.1"], id="soon over"),
]


@pytest.mark.parametrize("options", _CLI_SOON)
def test_program_goes_on_after_serve(project, options):
    """A program that runs the script goes on once, after it, and signals have their effect."""
    project.program = [sys.executable, "-c", _CLI_GOES_ON, str(HOTENV)]
    done = project.hotenv("serve", *options, input=b"A=1\n")
    assert outcome(done) == (5, b"then 0 %d\n" % -signal.SIGTERM, b"")


def test_background_outlives_the_program(project):
    """A session in the background serves, whatever the program does that started it."""
    project.program = [sys.executable, "-c", _CLI_GOES_ON, str(HOTENV)]
    project.hotenv("serve", "--background", input=b"A=1\n")
    project.program = INSTALLED
    assert project.dump() == {b"A": b"1"}


def test_session_is_over_when_the_program_goes_on(project):
    """After a session in the foreground nothing serves any more."""
    project.program = [sys.executable, "-c", _CLI_GOES_ON, str(HOTENV)]
    project.hotenv("serve", "--timeout", "0.1", input=b"A=1\n")
    project.program = INSTALLED
    assert project.dump() is None


@pytest.mark.parametrize("options", _CLI_SOON)
def test_prompt_of_python_reads_no_secrets(project, options):
    """The prompt of a `python -i` that has run the script does not read the input of `serve`."""
    project.program = [sys.executable, "-i", str(HOTENV)]
    done = project.hotenv("serve", *options, input=b"A=s3cr3t\n")
    assert b"SystemExit: 0" in done.stderr
    assert b"s3cr3t" not in done.stderr


@pytest.mark.parametrize("options", _CLI_SOON)
def test_ignored_sigchld_changes_no_status(project, options):
    """A `serve` whose caller ignores SIGCHLD still knows how its children have ended."""

    def ignore_sigchld():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    done = project.hotenv("serve", *options, input=b"A=1\n", preexec_fn=ignore_sigchld)
    assert outcome(done)[:2] == (0, b"")


# ==== the README ==================================================================================
# Every command in a code block of the README runs as it is written, and prints what the block shows
# that it prints. The reference names every option and every exit code.


def _readme_text():
    """Return the README."""
    return (HERE / "README.md").read_text(encoding="utf-8")


def _readme_blocks():
    """Return the code blocks of the README, indented or fenced, and the commands of the help."""

    def indented(fenced):
        return "\n" + re.sub("(?m)^", "    ", fenced[1])

    blocks = _readme_indented(re.sub(r"(?ms)^```[^\n]*\n(.*?)^```$", indented, _readme_text()))
    for topic in TOPICS:
        command = [*INSTALLED, "help", topic]
        text = subprocess.run(command, stdout=PIPE, timeout=PATIENCE).stdout.decode()
        # A blank line before each block, and behind it.
        text = re.sub(r"(?m)^(\S.*\n)(?= {4})", r"\1\n", text)
        text = re.sub(r"(?m)^( {4}.*\n)(?=\S)", r"\1\n", text)
        for block in _readme_indented(text):
            if "host$ " in block or _readme_commands(block) is not None:
                blocks.append(block)
    return blocks


def _readme_indented(text):
    """Return the blocks of a text that are indented by four blanks, without these."""
    found = re.findall(r"(?m)(?<=\n\n)((?:(?: {4}.*)?\n)+)", text + "\n")
    blocks = [re.sub("(?m)^ {4}", "", block).strip("\n") for block in found]
    return [block for block in blocks if block]


# What the stores of the README print.
_README_SECRETS = """\
API_KEY=abc123
AWS_ID=1
AWS_KEY=2
DATABASE_URL=postgres://db/app
GOOGLE_APPLICATION_CREDENTIALS='{"type": "service_account"}'
TLS_KEY=key
"""

_README_STORE = "cat <<'END'\n%sEND\n" % _README_SECRETS
_README_DOES_NOTHING = ":\n"
_README_HOTENV = 'exec %s "$@"\n' % " ".join(shlex.quote(word) for word in INSTALLED)

# This Python, but the commands that would install something do nothing.
_README_PYTHON = """\
case "$2" in
    venv|pytest) ;;
    *) exec "PYTHON" "$@" ;;
esac
"""

_README_SSH = 'exec %s -F "$SSH_CONFIG" "$@"\n' % shutil.which("ssh")

# An `nc -U PATH`.
_README_NC = """\
#!PYTHON
import socket, sys

client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[2])
client.sendall(sys.stdin.buffer.read())
sys.stdout.buffer.write(client.makefile("rb").read())
"""

# A pip that installs nothing, and downloads from a host.
_README_PIP = """\
#!PYTHON
import socket, sys

if "install" not in sys.argv:
    socket.create_connection(("example.com", 443))
"""

# A docker whose containers are processes: a path that is mounted becomes the mounted one again.
_README_DOCKER = """\
#!PYTHON
import argparse, os, sys

if sys.argv[1] != "run":
    if sys.stdin.read():
        print("Login Succeeded")
    sys.exit()

parser = argparse.ArgumentParser()
parser.add_argument("--rm", action="store_true")
parser.add_argument("-e", action="append", default=[])
parser.add_argument("-v", action="append", default=[])
parser.add_argument("image")
options, words = parser.parse_known_args(sys.argv[2:])

env = {"PATH": os.environ["PATH"]}
for setting in options.e:
    name, sets, value = setting.partition("=")
    env[name] = value if sets else os.environ[name]
for mount in options.v:
    outside, inside = mount.split(":")[:2]
    words = [word.replace(inside, outside) for word in words]
    env = {name: value.replace(inside, outside) for name, value in env.items()}
os.execvpe(words[0], words, env)
"""

# Programs that a reader of the README may have. Each does what matters here of what it would do:
# as shell lines, or as a script with a first line of its own. PYTHON stands for this Python.
_README_STAND_INS = {
    # Stores.
    "pass": _README_STORE,
    "gpg": _README_STORE,
    "sops": _README_STORE,
    "op": _README_STORE,
    "age": _README_STORE,
    "aws": """echo '{"API_KEY": "abc123", "DATABASE_URL": "postgres://db/app"}'\n""",
    "bw": _README_STORE,
    "gopass": _README_STORE,
    "secret-tool": _README_STORE,
    "vault": _README_STORE,
    # Programs whose effect does not matter.
    "claude": _README_DOES_NOTHING,
    "curl": _README_DOES_NOTHING,
    "pipx": _README_DOES_NOTHING,
    "uv": _README_DOES_NOTHING,
    "watch_file": _README_DOES_NOTHING,
    # Programs that a command goes through.
    "docker": _README_DOCKER,
    "git": "echo .git/info/exclude\n",
    "hotenv": _README_HOTENV,
    "nc": _README_NC,
    "pip": _README_PIP,
    "python3": _README_PYTHON,
    "ssh": _README_SSH,
    "sudo": 'exec "$@"\n',
}

# Other words with which a command begins.
_README_SHELL_WORDS = [
    *[".", ":", "[", "alias", "cat", "cd", "chmod", "cp", "echo", "env", "eval", "export", "for"],
    *["if", "ls", "make", "mkdir", "printf", "set", "sh", "source", "test", "trap", "while"],
]

# A command that starts a session which stays in the foreground.
_README_FOREGROUND = re.compile(
    r"(?:^|[|&;] *)(?:hotenv|python3 (?:-m )?[\w./~-]*hotenv(?:\.py)?) serve\b(?!.*--background)"
)

# How a command of the foreground is typed in another window, so to say: what was served before is
# stopped, and the shell waits until the marker is there, or until the command has ended.
_README_IN_ANOTHER_WINDOW = """\
[ ! -e MARKER ] || hotenv stop NAMED
{ COMMAND
} >.said 2>&1 &
until [ -e MARKER ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
[ -e MARKER ] || { cat .said; wait $!; }"""

_README_MARK = "@@@@"  # a line before the output of each command


class _ReadmeReader:
    """Somebody who types what the README shows, in a project with scripts of their own.

    - `project`: the Project in which that user works.
    - `env`: the environment of that user's shell.
    """

    def __init__(self, project, block):
        self.project = project
        tools = project.root / "bin"
        home = project.root / "home"
        self.env = {
            **project.env,
            "PATH": "%s:%s" % (tools, project.env["PATH"]),
            "HOME": str(home),
            "USER": "me",
            "SSH_AUTH_SOCK": "agent",
            "PIP_RETRIES": "0",
        }
        for place in ("tools", ".git/info", "yourproject/tools", ".venv/bin"):
            (project.dir / place).mkdir(parents=True)
        for place in (tools, home / "trusted", project.root / "main"):
            place.mkdir(parents=True)
        for place in (project.dir, project.dir / "tools", home, home / "trusted"):
            shutil.copy(str(HOTENV), str(place))

        for name, text in _README_STAND_INS.items():
            if not text.startswith("#!"):
                text = "#!/bin/sh\n" + text
            executable(tools / name, text.replace("PYTHON", sys.executable))
        for name in re.findall(r"\.venv/bin/\w+", block):
            executable(project.dir / name, "#!/bin/sh\n")
        self._write_files_of(block)

    def _write_files_of(self, block):
        """Write the files that a block names: scripts that need the secrets, and input."""
        files = r"(?<![\w/-])(?:\./)?([\w-]*\.env(?:\.\w+)*|[\w-]+\.(?:sh|py))\b"
        for name in re.findall(files, block):
            if name == "hotenv.py":
                continue
            if name.endswith(".py"):
                text = "import os; print(os.environ.get('API_KEY', ''))\n"
            elif name.endswith(".sh"):
                text = '#!/bin/sh\n[ "$API_KEY$DATABASE_URL$TOKEN" ] && echo "ran"\n'
            else:
                text = _README_SECRETS
            executable(self.project.dir / name, text)

    def has_a_session(self, block):
        """Start a session, unless the block starts or fills one; SOCKET names its socket.

        Where the block shows an answer of the server, it is that of this session.
        """
        if re.search(" serve|HOTENV_FILL|--fill", block):
            return
        shown = re.search(r'(?m)^\{"env":(\{.*\})\}$', block)
        if shown:
            pairs = json.loads(shown[1]).items()
            text = "".join("%s=%s\n" % pair for pair in pairs)
        else:
            text = _README_SECRETS
        self.project.serve(text.encode())
        shutil.copy(str(self.project.marker), str(self.project.root / "main"))
        self.env["SOCKET"] = self.project.socket_path()

    def types(self, commands, shell="bash"):
        """Type commands into a shell: the output of each, and the status of the last."""
        lines = []
        for command in commands:
            lines += ["echo " + _README_MARK, _readme_typed(command), "ended=$?"]
        no_profile = {"bash": "--norc", "zsh": "-f"}
        done = subprocess.run(
            [shell, no_profile[shell], "-c", "\n".join([*lines, "exit $ended"])],
            cwd=str(self.project.dir),
            env=self.env,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            timeout=PATIENCE,
        )
        outputs = done.stdout.decode().split(_README_MARK + "\n")[1:]
        assert len(outputs) == len(commands), outputs
        return outputs, done.returncode

    def types_well(self, commands):
        """Type commands, the last of which ends with 0; return the output of each."""
        outputs, status = self.types(commands)
        assert status == 0, outputs
        return outputs


def _readme_typed(command):
    """Return a command as it is typed where no command may stay in the foreground."""
    if not _README_FOREGROUND.search(command):
        return command
    marker = ".hotenv"
    named = re.search(r"--name[ =](\S+)", command)
    if named:
        marker += "." + named[1]
    text = _README_IN_ANOTHER_WINDOW.replace("MARKER", marker)
    text = text.replace("NAMED", named[0] if named else "")
    return text.replace("COMMAND", command)


def _readme_alike(text):
    """Return text with its moments, numbers, paths and blanks made the same."""
    variable = [
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", "TIME"),
        (r"\b[0-9a-f]{8}\b", "ID"),
        (r"(?<![\w/.:])/[\w./~-]+", "PATH"),
        (r"\b(\d+[dhms]?)+\b", "N"),
    ]
    for pattern, name in variable:
        text = re.sub(pattern, name, text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def _readme_commands(block):
    """Return [(a command, the output that is shown or None)] of a block; None for another block.

    A block with a prompt `$ ` shows output. A block of commands alone shows none.
    """
    if block.startswith("$ "):
        commands = []
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            lines = part.split("\n")
            length = 1
            while lines[length - 1].endswith("\\"):
                length += 1
            commands.append(("\n".join(lines[:length]), "\n".join(lines[length:])))
        return commands

    without_comments = re.sub(r"(?m)^#.*\n", "", block)
    without_settings = re.sub(r"^(\w+=\S*\s+)*", "", without_comments)
    first_word = re.split(r"[\s;(]", without_settings)[0]
    is_known = first_word in _README_SHELL_WORDS or first_word in _README_STAND_INS
    if not is_known and not re.match(r"\w+=\$\(", block):
        return None
    # A line that is indented, or ends a compound command, belongs to the command before it.
    return [(command, None) for command in re.split(r"(?<!\\)\n(?![ \t}\n]|fi|done|$)", block)]


def _readme_kind(block):
    """Return what a reader does with a block."""
    if re.match(r"(import|from) hotenv", block):
        return "module"
    if "\t" in block and re.match(r"[\w.-]+:", block):
        return "makefile"
    if "host$ " in block:
        return "forwarding"
    if _readme_commands(block) is None:
        return "text"
    if "--prompt" in block:
        return "prompt"
    return "commands"


_README_BLOCKS = _readme_blocks()


def _readme_blocks_of(kind):
    """Return the blocks of a kind."""
    return [block for block in _README_BLOCKS if _readme_kind(block) == kind]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("block", _readme_blocks_of("commands"), ids=short)
def test_readme_commands_are_so(project, block, shell):
    """The commands of a block run in bash and zsh, and print what the block shows."""
    if not shutil.which(shell):
        pytest.skip("there is no " + shell)
    reader = _ReadmeReader(project, block)
    reader.has_a_session(block)
    commands = _readme_commands(block)
    outputs, status = reader.types([command for command, _ in commands], shell)

    _, last_shown = commands[-1]
    if not last_shown:
        assert status == 0, outputs

    for (command, shown), output in zip(commands, outputs):
        assert not re.search("command not found|usage:|internal error", output), command
        if shown is not None:
            pattern = re.escape(_readme_alike(shown)).replace(re.escape("..."), r"[\s\S]*")
            assert re.fullmatch(pattern, _readme_alike(output)), (command, shown, output)


@pytest.mark.parametrize("block", _readme_blocks_of("prompt"), ids=short)
def test_readme_prompt_is_so(project, block):
    """A block with --prompt asks a question on the terminal, and then serves the answer."""
    reader = _ReadmeReader(project, block)
    (project.dir / "staging.env").write_text("DB_PASSWORD=?Password\n")
    command = _readme_commands(block)[0][0]
    with on_terminal("bash", "-c", command, cwd=project.dir, env=reader.env) as (_, terminal):
        read_until(terminal, b": $")
        os.write(terminal, b"p4ss\n")
        read_until(terminal)  # a session in the background holds no terminal, so its end comes
    assert b"p4ss" in project.dump().values()


@pytest.mark.parametrize("block", _readme_blocks_of("module"), ids=short)
def test_readme_module_is_so(project, block):
    """The lines of Python run, and have the values that stand in comments behind them."""
    reader = _ReadmeReader(project, block)
    reader.has_a_session(block)
    lines = []
    for line in block.split("\n"):
        lines.append(re.sub(r"^(\S.*?)\s+# ([\[({'\"].*)", r"assert (\1) == (\2)", line))
    assert [line for line in lines if line.startswith("assert ")], "the block shows no value"
    executable(project.dir / "as_a_module.py", "\n".join(lines))
    reader.types_well(["python3 as_a_module.py"])


@pytest.mark.parametrize("block", _readme_blocks_of("makefile"), ids=short)
def test_readme_makefile_needs_no_session(project, block):
    """The Makefile works without a session where the variables are there already, as in CI."""
    reader = _ReadmeReader(project, block)
    executable(project.dir / "Makefile", block + "\n")
    reader.env["TOKEN"] = "from the CI"
    reader.types_well(["make"])


@pytest.mark.parametrize("block", _readme_blocks_of("makefile"), ids=short)
def test_readme_makefile_takes_a_session(project, block):
    """The Makefile gets its variables from a session."""
    reader = _ReadmeReader(project, block)
    executable(project.dir / "Makefile", block + "\n")
    reader.has_a_session(block)
    reader.types_well(["make"])


@pytest.mark.parametrize("block", _readme_blocks_of("text"), ids=short)
def test_readme_text_is_known(block):
    """A block without a command is a diagram, or text that `serve` takes."""
    is_diagram = re.search(r"[-=]>|[─│┌└▶►→]|\+--", block)
    if not is_diagram:
        assert hotenv.parse_dotenv(block), "a block of an unknown kind"


class _ReadmeForwarding:
    """What a reader saw who typed the block that forwards a socket by ssh, two times.

    - `outputs`: what was printed on the host, each time.
    - `directory_modes`: the mode of the socket's directory on the host, each time.
    """

    def __init__(self, project, host, block):
        reader = _ReadmeReader(project, block)
        reader.has_a_session(block)
        reader.env["SSH_CONFIG"] = str(host.root / "ssh_config")

        # The home directory on the host is another directory of this machine.
        (project.root / "far").mkdir()
        far = re.sub("~/|/home/me/", "%s/far/" % project.root, block.replace("\\\n", " "))
        lines = [re.sub(r"^\$ ", "", line) for line in far.split("\n")]
        here = [line for line in lines if not line.startswith("host$ ")]
        there = [line[len("host$ ") :] for line in lines if line.startswith("host$ ")]
        path = re.search(r"-R (\S+?):", far)[1]
        on_host = [
            "cd " + str(project.dir),
            "PATH=" + reader.env["PATH"],
            *there,
            "hotenv status --socket " + path,
            "hotenv stop --socket " + path,
            "echo stop $?",
        ]

        connect = "%s %s" % (here[-1], shlex.quote("\n".join(on_host)))
        self.outputs = []
        self.directory_modes = []
        for _ in range(2):
            self.outputs.append(reader.types_well([*here[:-1], connect])[-1])
            self.directory_modes.append(mode(os.path.dirname(path)))


@pytest.fixture(scope="module", params=_readme_blocks_of("forwarding"), ids=short)
def readme_forwarding(request, host):
    """The _ReadmeForwarding of a block."""
    with contextlib.closing(Project()) as project:
        yield _ReadmeForwarding(project, host, request.param)


def test_forwarding_is_shown():
    """The README, or the help, shows how a socket is forwarded to another host."""
    assert _readme_blocks_of("forwarding") != []


def test_readme_forwarding_is_so(readme_forwarding):
    """A command on another host gets the secrets, also with what the time before has left."""
    for output in readme_forwarding.outputs:
        assert "ran\n" in output


def test_forwarded_session_is_not_ended_there(readme_forwarding):
    """`stop` on another host does not end a session whose socket is forwarded."""
    for output in readme_forwarding.outputs:
        assert "stop 8\n" in output


def test_forwarded_session_has_no_known_process(readme_forwarding):
    """`status` on another host admits that it does not see the server."""
    for output in readme_forwarding.outputs:
        assert re.search("forwarded|unknown", output)


def test_forwarded_socket_lies_in_private(readme_forwarding):
    """The directory of a forwarded socket is its user's alone."""
    assert readme_forwarding.directory_modes == [0o700, 0o700]


@pytest.mark.parametrize("block", _readme_blocks_of("commands"), ids=short)
def test_readme_commands_have_no_comments(block):
    """No command ends in a comment, which an interactive zsh would take for words."""
    for command, _ in _readme_commands(block):
        assert not re.search(r"\s#\s", command)


def test_readme_ends_nothing_by_name():
    """The README does not tell users to end processes by a name, which others may have."""
    assert "pkill hotenv" not in _readme_text()


def test_readme_names_the_other_program():
    """The README names the program whose specification hotenv follows."""
    assert "pkel/hotenv" in _readme_text()


def test_readme_names_the_python_dotenv():
    """The README names the version from which python-dotenv reads `dump --format dotenv`."""
    assert re.search(r"python-dotenv\W+(>=\s*)?1\.2\.3", _readme_text())


def test_readme_warns_of_wrapped_values():
    """A wrapped value without quotes makes a name of a secret's piece, and the README says so."""
    assert hotenv.parse_dotenv("A=c2VjcmV0\nc2Vj=\n") == {"A": "c2VjcmV0", "c2Vj": ""}
    wrapped = r"(?i)[^.|]*\b(?:wrapped|second line|next line|unquoted)\b[^.|]*"
    warnings = re.findall(wrapped, _readme_text())
    assert [text for text in warnings if re.search(r"\bnames?\b", text)]


_README_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+[a-z]|-[a-zA-Z])(?![\w-])")


def _readme_options_of(command):
    """Return the options that the help of a command lists."""
    done = subprocess.run([*INSTALLED, command, "--help"], stdout=PIPE, timeout=PATIENCE)
    options = done.stdout.decode().split("example")[0]
    return set(_README_OPTION.findall(options))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(session, command):
    """Every option of a command stands in the README, or in a topic of the help."""
    text = _readme_text()
    for topic in TOPICS:
        text += _cli_help(session, "help", topic)
    explained = {*_README_OPTION.findall(text), "-h", "--help"}
    assert _readme_options_of(command) - explained == set()


def _readme_reference():
    """Return the first cells of the tables below the heading of the reference."""
    heading = r"(?ims)^#+ [^\n]*(?:reference|commands)[^\n]*$(.*?)(?=^## |\Z)"
    found = re.search(heading, _readme_text())
    assert found, "the README has no heading with the word reference or commands"
    return [line.split("|")[1] for line in found[1].splitlines() if line.startswith("|")]


def test_readme_has_no_option_that_is_none():
    """Every option in the tables of the README's reference is an option of a command."""
    code = " ".join(re.findall("`([^`]*)`", " ".join(_readme_reference())))
    shown = set(_README_OPTION.findall(code))
    assert shown >= {"--timeout", "--only", "--format", "--socket"}

    known = {"--version", "-V"}
    for command in COMMANDS:
        known |= _readme_options_of(command)
    assert shown - known == set()


def test_readme_lists_every_exit_code():
    """The README has a row for every exit code, and for no other number."""
    listed = {int(code) for code in re.findall(r"(?m)^\|\s*(\d+)\s*\|", _readme_text())}
    constants = {value for name, value in vars(hotenv).items() if name.startswith("EXIT_")}
    assert listed == {0, 1} | constants


# ==== the help, the man page and the picture ======================================================
# The topics of the help fit a terminal. The man page is made of them. The picture of the README
# shows what the program prints.


@pytest.mark.parametrize("topic", ["help", *TOPICS])
def test_topic_fits_a_terminal(session, topic):
    """No line of a topic is wider than 80 columns."""
    lines = _cli_help(session, "help", topic).splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_overview_ends_with_the_way_on(session):
    """The last line of the overview leads to the exit codes."""
    assert "hotenv help exit" in _cli_help(session, "help").splitlines()[-1]


def test_exit_topic_has_every_code(session):
    """`help exit` explains every exit code."""
    codes = re.findall(r"(?m)^  (\d+) ", _cli_help(session, "help", "exit"))
    constants = {value for name, value in vars(hotenv).items() if name.startswith("EXIT_")}
    assert {int(code) for code in codes} == {0, 1} | constants


def test_environment_topic_has_every_variable(session):
    """`help environment` explains every variable that hotenv reads or sets."""
    reads = r"""(?:environ(?:\.get\(|\[)|_duration_of_variable\()"([A-Z_]+)\""""
    source = HOTENV.read_text(encoding="utf-8")
    variables = {*re.findall(reads, source), *hotenv._HOOK_NAMES, "HOTENV_SHELL"}
    assert "HOTENV_SHELL" in source
    assert variables >= {"HOTENV_SOCKET", "HOTENV_FILL", "HOTENV_TIMEOUT", "HERMETIC_FLAGS"}
    topic = _cli_help(session, "help", "environment")
    assert [name for name in sorted(variables) if name not in topic] == []


def test_environment_topic_has_what_shells_get(session):
    """`help environment` explains each variable that hotenv sets for a shell."""
    with hotenv.ShellSession() as shell:
        names = re.findall(r"(?m)^(HOTENV_\w+)=", shell.exec("env").stdout)
    assert names != []
    topic = _cli_help(session, "help", "environment")
    assert [name for name in names if name not in topic] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_has_every_option(session, command):
    """The man page has every option that the help of a command lists."""
    page = re.sub(r"\\f[BIR]", "", _cli_help(session, "help", "--man")).replace("\\-", "-")
    section = re.search(r"(?ms)^\.SS %s\b.*?(?=^\.S[SH] )" % command, page)[0]
    assert _readme_options_of(command) - set(_README_OPTION.findall(section)) == set()


def test_man_page_is_correct(session, tmp_path):
    """`man -l` shows the man page without a warning."""
    if not shutil.which("man") or sys.platform == "darwin":
        pytest.skip("there is no man -l")
    page = tmp_path / "hotenv.1"
    page.write_text(_cli_help(session, "help", "--man"), encoding="utf-8")
    env = {**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    done = subprocess.run(
        ["man", "--warnings", "-l", str(page)], env=env, stdout=PIPE, stderr=PIPE, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "[hidden:NAME]" in done.stdout.decode()


@only_linux
def test_picture_shows_what_is_printed():
    """The picture of the README is drawn again from the program's output, and is the same."""
    demo = HERE / ".ci" / "demo"
    done = subprocess.run(
        [sys.executable, str(demo), "--check"], stdout=PIPE, stderr=STDOUT, timeout=2 * PATIENCE)
    assert (done.returncode, done.stdout.decode()) == (0, "")


def test_picture_is_small_and_still():
    """The picture of the README has no script and nothing from elsewhere, and is small."""
    picture = (HERE / ".github" / "demo.svg").read_text(encoding="utf-8")
    assert len(picture) < 60_000
    assert re.findall(r"<script|<image|href|url\(|@import", picture) == []


# ==== kernel guards ===============================================================================
# This section shows what Linux refuses to any program, in whatever language the program is written,
# and what Linux leaves alone. Every connection goes to this machine.

NET = "--no-network"
LOCAL = "--no-network --allow-localhost"
SUB = "--no-subprocess"
IMP = "--strict-imports"
FS = "--fs-readonly"
ANY = "--fs-readonly=/"

# Here pyenv keeps the Pythons of this user.
PYENV = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")


def _supported_pythons():
    """Return {minor version: path} of the supported Pythons here, one path for each version."""
    found = {}
    for path in glob.glob(PYENV + "/3.*/bin/python") + glob.glob("/usr/bin/python3.[0-9]*"):
        version = re.search(r"3\.(\d+)[^/]*(?:/bin/python)?$", path)
        if version and 8 <= int(version.group(1)) <= 14 and "-config" not in path:
            found.setdefault(int(version.group(1)), path)
    found.setdefault(sys.version_info[1], sys.executable)
    return found


SUPPORTED_PYTHONS = _supported_pythons()
OLDEST_PYTHON = SUPPORTED_PYTHONS[min(SUPPORTED_PYTHONS)]
NEWEST_PYTHON = SUPPORTED_PYTHONS[max(SUPPORTED_PYTHONS)]
PYTHONS = [OLDEST_PYTHON, NEWEST_PYTHON]
UNSUPPORTED_PYTHONS = sorted(glob.glob(PYENV + "/[23].[5-7]*/bin/python"))

SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446
LANDLOCK_CREATE_RULESET_VERSION = 1


def _landlock_version():
    """Return the version of Landlock here; 0 where there is none, or hotenv knows no machine of
    this kind."""
    if not LINUX or os.uname().machine not in ("x86_64", "aarch64", "riscv64"):
        return 0
    no_size = ctypes.c_long(0)
    version = ctypes.CDLL(None).syscall(
        SYS_LANDLOCK_CREATE_RULESET, None, no_size, LANDLOCK_CREATE_RULESET_VERSION
    )
    return max(0, version)


LANDLOCK = _landlock_version()
LANDLOCK_WITH_TCP = 4  # since Linux 6.7
only_landlock = pytest.mark.skipif(LANDLOCK == 0, reason="needs a Linux with Landlock")
only_kernel = pytest.mark.skipif(
    LANDLOCK < LANDLOCK_WITH_TCP, reason="needs a Linux whose Landlock refuses TCP (6.7)"
)


# -- how a guarded program is started --


@pytest.fixture(scope="module")
def guards_runtime():
    """The path of a runtime directory, for whatever these tests guard.

    In it lies `installed`, a script as pip would write it: Python compiles what it imports once.
    """
    with contextlib.closing(Project()) as holder:
        (holder.base / "installed").write_text(
            "import sys\n"
            f"sys.path.insert(0, {str(HERE)!r})\n"
            "import hotenv\n"
            "del sys.path[0]\n"
            "sys.exit(hotenv.main(sys.argv[1:]))\n"
        )
        yield str(holder.base)


def environment(runtime, **more):
    """Return this environment with a runtime directory, and without what configures guards,
    Pythons or pytest."""
    configures = ("HERMETIC_", "HOTENV", "PYTHON", "PYTEST_", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(configures)}
    return {**env, "XDG_RUNTIME_DIR": str(runtime), **more}


def output_of(words, runtime, cwd, env=None, timeout=60, **options):
    """Run a program until it ends; return a CompletedProcess with its output as text."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=str(cwd),
        env=env or environment(runtime),
        timeout=timeout,
        text=True,
        **{"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE, **options},
    )


@pytest.fixture
def hermetic(guards_runtime, tmp_path):
    """hermetic(guards, *target): run `hotenv hermetic` until it ends, in an empty directory."""

    def run(guards, *target, python=sys.executable, cwd=tmp_path, **options):
        words = [python, guards_runtime + "/installed", "hermetic", *guards.split(), "--", *target]
        return output_of(words, guards_runtime, cwd, **options)

    return run


@pytest.fixture
def guarded(hermetic, tmp_path):
    """guarded(guards, code): run Python code under guards.

    In the mode "bootstrapped" a Python is started for the code; in the mode "in-process" the code
    is a script that runs in the process of hotenv.
    """

    def run(guards, code, python=OLDEST_PYTHON, mode="bootstrapped", cwd=tmp_path, **options):
        if mode == "bootstrapped":
            return hermetic(guards, python, "-c", code, python=python, cwd=cwd, **options)
        path = Path(cwd, "target_script.py")
        path.write_text(code + "\n")
        return hermetic(guards, path, python=python, cwd=cwd, **options)

    return run


def _run_guarded(project, *words):
    """Run `hotenv run` with these words; return a CompletedProcess with its output as text."""
    env = environment(project.base)
    return project.hotenv("run", *words, env=env, input="", text=True)


def _guards_refusal(done, code):
    """Return what `refusal` returns, for a CompletedProcess whose output is text."""
    as_bytes = subprocess.CompletedProcess(done.args, done.returncode, b"", done.stderr.encode())
    return refusal(as_bytes, code)


# -- what a program has done --


class Ears:
    """This machine, listening on one `port` for TCP and for UDP."""

    def __enter__(self):
        while True:
            self.tcp = socket.create_server(("127.0.0.1", 0), backlog=50)
            self.port = self.tcp.getsockname()[1]
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self.udp.bind(("127.0.0.1", self.port))
                return self
            except OSError:
                # Somebody else has the port for UDP: the next one may be free for both.
                self.__exit__()

    def __exit__(self, *_):
        self.tcp.close()
        self.udp.close()

    def reached(self):
        """Return "tcp" or "udp" for everything that has come since the last call."""
        heard = []
        while True:
            ready = select.select([self.tcp, self.udp], [], [], 0)[0]
            if not ready:
                return heard
            if self.tcp in ready:
                self.tcp.accept()[0].close()
                heard.append("tcp")
            if self.udp in ready:
                self.udp.recv(100)
                heard.append("udp")


VICTIM_TIME = 1e9  # the time stamp of the file `victim`, in seconds


def _guards_stage(base, owner=None):
    """Make a directory to act in, which belongs to a user, and return its path.

    It holds a file `victim` and an empty directory `dir`; a program may make a file `made`.
    """
    here = Path(tempfile.mkdtemp(dir=str(base)))
    (here / "dir").mkdir()
    victim = here / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    os.utime(str(victim), (VICTIM_TIME, VICTIM_TIME))
    if owner is not None:
        for path in (here, here / "dir", victim):
            os.chown(str(path), owner, owner)
    return here


def _victim_is_untouched(here):
    """Say whether the file `victim` of this stage is as it was made."""
    try:
        status = os.lstat(str(here / "victim"))
    except FileNotFoundError:
        return False
    now = (stat.S_IMODE(status.st_mode), status.st_mtime, status.st_size)
    return now == (0o600, VICTIM_TIME, len("precious"))


def _guards_effects(here, ears):
    """Return what a program has reached, changed and made, in the words of the table NATIVE."""
    effects = ears.reached()
    if not _victim_is_untouched(here):
        effects.append("victim")
    if os.path.lexists(str(here / "made")):
        effects.append("made")
    return effects


def _guards_words(program, python, port=0):
    """Return the words of a program of these tables, with PYTHON and PORT filled in.

    The test is skipped where the program is not installed.
    """
    words = [word.replace("PYTHON", python).replace("PORT", str(port)) for word in program]
    if not words[0].startswith("./") and not shutil.which(words[0]):
        pytest.skip(words[0] + " is not installed")
    return words


# -- what the kernel closes --


def _sh(line):
    """Return a shell with this line."""
    return ["sh", "-c", line]


def _bash(line):
    """Return a bash with this line; /dev/tcp and /dev/udp are files to bash alone."""
    return ["bash", "-c", line]


def _python_c_calls(code):
    """Return a Python that makes calls of the C library `c`, past all that Python knows of them.

    In the code `to` is the socket address of our port, a sockaddr_in of 16 bytes.
    """
    prelude = (
        "import ctypes, os, socket, struct\n"
        "from socket import AF_INET, SOCK_DGRAM, SOCK_STREAM\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "family, port = struct.pack('=H', AF_INET), struct.pack('!H', PORT)\n"
        "to = family + port + bytes([127, 0, 0, 1]) + bytes(8)\n"
    )
    return ["PYTHON", "-c", prelude + code]


NODE_TCP = (
    "const s = require('net').connect(PORT, '127.0.0.1', "
    "() => { s.end('x', () => process.exit()) }); "
    "s.on('error', () => {})"
)
NODE_UDP = (
    "require('dgram').createSocket('udp4').on('error', () => {})"
    ".send('x', PORT, '127.0.0.1', () => process.exit())"
)
PERL_TCP = (
    "use IO::Socket::INET; "
    "(IO::Socket::INET->new(PeerAddr => '127.0.0.1:PORT', Proto => 'tcp') or exit)->send('x')"
)
PERL_UDP = PERL_TCP.replace("'tcp'", "'udp'")
PYTHON_TCP = 'import socket; socket.create_connection(("127.0.0.1", PORT))'
PYTHON_ATTACH = (
    "import sqlite3; database = sqlite3.connect(':memory:'); "
    "database.execute(\"ATTACH 'made' AS a\"); database.execute('create table a.t(x)')"
)

# Guards, the effect that a program has without them, the program. The effects are: "tcp" or "udp"
# reaches this machine, "victim" is changed, "made" is made.
NATIVE = [
    # Programs that connect, or send.
    (NET, "tcp", ["curl", "-s", "-m", "1", "http://127.0.0.1:PORT/"]),
    (NET, "tcp", _bash("echo x > /dev/tcp/127.0.0.1/PORT")),
    (NET, "udp", _bash("echo x > /dev/udp/127.0.0.1/PORT")),
    (NET, "tcp", ["perl", "-e", PERL_TCP]),
    (NET, "udp", ["perl", "-e", PERL_UDP]),
    (NET, "tcp", ["node", "-e", NODE_TCP]),
    (NET, "udp", ["node", "-e", NODE_UDP]),
    (NET, "tcp", _sh(f"PYTHON -I -c '{PYTHON_TCP}'")),
    (NET, "tcp", _python_c_calls("c.connect(c.socket(AF_INET, SOCK_STREAM, 0), to, 16)")),
    (NET, "udp", _python_c_calls("c.sendto(c.socket(AF_INET, SOCK_DGRAM, 0), b'x', 1, 0, to, 16)")),
    # Programs that start others.
    (SUB, "made", _python_c_calls("c.system(b'echo x > made')")),
    (SUB, "made", _python_c_calls("c.fork() or open('made', 'w')")),
    (SUB, "made", _bash("/bin/sh -c 'echo x > made'; (echo x > made)")),
    (SUB, "made", ["perl", "-e", "exec '/bin/sh', '-c', 'echo x > made'"]),
    # Programs that make a file.
    (ANY, "made", ["mkdir", "made"]),
    (ANY, "made", _python_c_calls("c.creat(b'made', 0o600)")),
    (ANY, "made", _sh("echo x > made")),
    (ANY, "made", ["ln", "victim", "made"]),
    (ANY, "made", ["mv", "victim", "made"]),
    (ANY, "made", ["PYTHON", "-c", PYTHON_ATTACH]),
    (ANY + " --fs-write dir", "made", _sh("echo x > dir/in && echo x > made")),
    # Programs that change a file.
    (ANY, "victim", _sh("echo x >> victim")),
    (ANY, "victim", ["rm", "-f", "victim"]),
    (ANY, "victim", ["perl", "-e", "truncate 'victim', 1"]),
    (ANY, "victim", ["touch", "victim"]),
    (ANY, "victim", ["chmod", "604", "victim"]),
]

# The same for what some kernels cannot do, guarded or not: IPPROTO_MPTCP is 262, MSG_FASTOPEN is
# 1 << 29, and io_uring_setup has the number 425.
NATIVE_OF_SOME_KERNELS = [
    (NET, "tcp", _python_c_calls("c.connect(c.socket(AF_INET, SOCK_STREAM, 262), to, 16)")),
    (
        NET,
        "tcp",
        _python_c_calls("c.sendto(c.socket(AF_INET, SOCK_STREAM, 0), b'x', 1, 1 << 29, to, 16)"),
    ),
    (NET, "made", _python_c_calls("c.syscall(425, 4, bytes(120)) < 0 or open('made', 'w')")),
]


@pytest.fixture(scope="module")
def guards_of_stranger():
    """A Project of a plain user, in which hotenv can be run as that user."""
    with contextlib.closing(Project()) as theirs:
        theirs.become = strangers(theirs, STRANGER)
        yield theirs


def _one_python(*row):
    """Return the oldest or the newest Python, by chance, which the seed and the row decide."""
    return random.Random(f"{SEED}{row}").choice(PYTHONS)


@only_kernel
@pytest.mark.parametrize("guards, effect, program", NATIVE)
def test_native_action_works_without_guards(guards_runtime, tmp_path, guards, effect, program):
    """A program of the table has its effect without guards, or the table would show nothing."""
    here = _guards_stage(tmp_path)
    with Ears() as ears:
        words = _guards_words(program, _one_python(guards, program), ears.port)
        done = output_of(words, guards_runtime, here)
        assert effect in _guards_effects(here, ears), done.stderr


@only_kernel
@pytest.mark.parametrize("guards, effect, program", NATIVE + NATIVE_OF_SOME_KERNELS)
def test_kernel_closes_what_no_hook_sees(hermetic, tmp_path, guards, effect, program):
    """The kernel keeps a program of any language from its effect, and the program is run."""
    python = _one_python(guards, program)
    here = _guards_stage(tmp_path)
    with Ears() as ears:
        words = _guards_words(program, python, ears.port)
        done = hermetic(guards, *words, python=python, cwd=here)
        assert "hotenv: " not in done.stderr
        assert _guards_effects(here, ears) == [], done.stderr


@only_kernel
@only_root
@pytest.mark.parametrize("guards, effect, program", NATIVE + NATIVE_OF_SOME_KERNELS)
def test_kernel_guards_need_no_privilege(guards_of_stranger, guards, effect, program):
    """The kernel keeps a program of a plain user from its effect, too."""
    project = guards_of_stranger
    here = _guards_stage(project.dir, STRANGER)
    with Ears() as ears:
        words = _guards_words(program, project.program[0], ears.port)
        done = project.hotenv(
            "hermetic", *guards.split(), "--", *words, cwd=str(here), preexec_fn=project.become
        )
        assert b"hotenv: " not in done.stderr
        assert _guards_effects(here, ears) == [], done.stderr


@only_kernel
@pytest.mark.parametrize("python", PYTHONS)
def test_history_of_readline_is_not_written(hermetic, tmp_path, python):
    """readline writes no file under --fs-readonly: before Python 3.14 the hook does not see it."""
    code = "import readline; readline.write_history_file('made')"
    output_of([python, "-c", code], environment(tmp_path), tmp_path)
    assert (tmp_path / "made").exists()
    (tmp_path / "made").unlink()
    hermetic(ANY, python, "-c", code, python=python, cwd=tmp_path)
    assert not (tmp_path / "made").exists()


# -- what the kernel leaves alone --


PYTHON_POOL = textwrap.dedent("""
    import multiprocessing, multiprocessing.shared_memory
    if __name__ == "__main__":
        memory = multiprocessing.shared_memory.SharedMemory(create=True, size=9)
        memory.close()
        memory.unlink()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, 2]) == [1, 2]
        lock = multiprocessing.Lock()
        lock.acquire()
        lock.release()
        queue = multiprocessing.Queue()
        queue.put(1)
        assert queue.get(timeout=20) == 1
    """)
PYTHON_THREADS = textwrap.dedent("""
    import sqlite3, threading
    done = []
    for number in range(9):
        thread = threading.Thread(target=done.append, args=(number,))
        thread.start()
        thread.join()
    assert len(done) == 9
    sqlite3.connect(":memory:").execute("create table t(x)")
    """)
NODE_READS = (
    "require('fs').readFile('victim', (e, d) => process.exit(String(d) === 'precious' ? 0 : 3))"
)
PERL_SOCKETPAIR = (
    "use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or exit 3"
)
SH_WRITES_HERE = "echo x > a && mv a b && mkdir -p d/e && rm -r d b && chmod 600 victim"

# Guards, and a program that ends with 0 under them.
HARMLESS = [
    (f"{ANY} {NET}", ["PYTHON", "-c", PYTHON_POOL]),
    (f"{ANY} {NET}", ["git", "log", "--oneline", "-1"]),
    (f"{ANY} {NET}", _sh("echo one | cat | grep -q one && echo x > /dev/null")),
    (f"{NET} {SUB} {ANY}", ["PYTHON", "-c", PYTHON_THREADS]),
    (f"{NET} {SUB} {ANY}", ["node", "-e", NODE_READS]),
    (SUB, ["./plain"]),
    (NET, ["PYTHON", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]),
    (NET, ["perl", "-e", PERL_SOCKETPAIR]),
    (ANY, _sh("echo x > /dev/null; echo x 2>&1 > /dev/stdout; echo y >&2")),
    (ANY + " --fs-write .", _sh(SH_WRITES_HERE)),
]


@only_kernel
@pytest.mark.parametrize("guards, program", HARMLESS)
def test_kernel_leaves_a_harmless_program_alone(hermetic, tmp_path, guards, program):
    """A program that does nothing that its guards close runs as it does without them."""
    words = _guards_words(program, sys.executable)
    here = _guards_stage(tmp_path)
    (here / "test_it.py").write_text("def test_one(): assert True\n")
    executable(here / "plain", "#!/bin/sh\nexit 0\n")
    if program[0] == "git":
        for line in "init -q", "add victim", "-c user.name=n -c user.email=e@x commit -qm first":
            subprocess.run(["git", *line.split()], cwd=str(here), check=True, timeout=PATIENCE)

    # A caller has redirected the output into a file, which stays writable.
    with tempfile.TemporaryFile() as out:
        done = hermetic(guards, *words, cwd=here, stdout=out)
    assert done.returncode == 0, done.stderr


PYTHON_SERVES = textwrap.dedent("""
    import socket
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    server.settimeout(20)
    print(server.getsockname()[1], flush=True)
    client = server.accept()[0]
    client.sendall(b"served")
    client.close()
    """)


@only_kernel
def test_python_without_network_may_serve_here(guards_runtime, tmp_path):
    """A Python under --no-network may serve on this machine."""
    process = subprocess.Popen(
        [sys.executable, str(HOTENV), "hermetic", NET, "--", sys.executable, "-c", PYTHON_SERVES],
        cwd=str(tmp_path),
        env=environment(guards_runtime),
        stdout=PIPE,
    )
    with process:
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            assert answer(client) == b"served"
    assert process.returncode == 0


# -- where the kernel refuses to guard --


PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_RET_ERRNO = 0x00050000
BPF_LOAD = 0x20
BPF_IF_EQUAL = 0x15
BPF_RETURN = 0x06
OFFSET_OF_NUMBER = 0  # what seccomp sees begins with the number of the call
OFFSET_OF_FIRST_ARGUMENT = 16


def _kernel_that_refuses(what, error):
    """Return a preexec_fn that has the kernel answer some calls with this error, as the profile
    of a container does.

    `what` is "landlock" (all of its calls), "prctl" (that whole call) or "seccomp" (the call of
    prctl that adds a filter).
    """
    prctl_number = 157 if os.uname().machine == "x86_64" else 167
    refuse = (BPF_RETURN, 0, 0, SECCOMP_RET_ERRNO | error)
    allow = (BPF_RETURN, 0, 0, SECCOMP_RET_ALLOW)

    # An instruction is: its code, how many to skip if the condition holds, how many if it does
    # not, its number.
    program = [(BPF_LOAD, 0, 0, OFFSET_OF_NUMBER)]
    if what == "landlock":
        for number in (
            SYS_LANDLOCK_CREATE_RULESET,
            SYS_LANDLOCK_ADD_RULE,
            SYS_LANDLOCK_RESTRICT_SELF,
        ):
            program += [(BPF_IF_EQUAL, 0, 1, number), refuse]
    if what == "prctl":
        program += [(BPF_IF_EQUAL, 0, 1, prctl_number), refuse]
    if what == "seccomp":
        program += [
            (BPF_IF_EQUAL, 0, 3, prctl_number),
            (BPF_LOAD, 0, 0, OFFSET_OF_FIRST_ARGUMENT),
            (BPF_IF_EQUAL, 0, 1, PR_SET_SECCOMP),
            refuse,
        ]
    program.append(allow)

    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def refuse_from_here_on():
        wanted = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
        if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            os._exit(99)
        if prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, wanted, 0, 0) != 0:
            os._exit(99)

    return refuse_from_here_on


kernels_that_refuse = pytest.mark.parametrize(
    "what, error",
    [
        pytest.param("landlock", errno.ENOSYS, id="landlock-ENOSYS"),
        pytest.param("landlock", errno.EPERM, id="landlock-EPERM"),
        pytest.param("seccomp", errno.ENOSYS, id="seccomp-ENOSYS"),
        pytest.param("seccomp", errno.EPERM, id="seccomp-EPERM"),
        pytest.param("prctl", errno.ENOSYS, id="prctl-ENOSYS"),
        pytest.param("prctl", errno.EPERM, id="prctl-EPERM"),
    ],
)


@only_kernel
@kernels_that_refuse
def test_refusing_kernel_leaves_the_hook(guarded, what, error):
    """Where the kernel refuses to guard, a Python has its hook."""
    done = guarded(
        "--no-network --fs-readonly=/ --trace",
        "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
        python=_one_python(what, error),
        preexec_fn=_kernel_that_refuses(what, error),
    )
    assert "blocked socket.create_connection" in done.stderr
    assert done.returncode == 2


@only_kernel
@kernels_that_refuse
def test_refusing_kernel_is_told_in_the_trace(guarded, what, error):
    """Where the kernel refuses to guard, the trace says once which guards the hook alone holds."""
    done = guarded(
        "--no-network --fs-readonly=/ --trace",
        "pass",
        python=_one_python(what, error),
        preexec_fn=_kernel_that_refuses(what, error),
    )
    told = "[hermetic] for Python code only: fs-readonly, no-network\n"
    assert done.stderr.count(told) == 1, done.stderr


@only_kernel
@kernels_that_refuse
def test_refusing_kernel_refuses_a_program(hermetic, tmp_path, what, error):
    """Where the kernel refuses to guard, a program that is no Python is refused."""
    here = _guards_stage(tmp_path)
    done = hermetic(
        ANY,
        "touch",
        "victim",
        python=_one_python(what, error),
        cwd=here,
        preexec_fn=_kernel_that_refuses(what, error),
    )
    assert "--fs-readonly" in _guards_refusal(done, 1)
    assert _victim_is_untouched(here)


@only_kernel
@kernels_that_refuse
def test_refusing_kernel_opens_no_network(hermetic, tmp_path, what, error):
    """Where the kernel refuses to guard, a program that is no Python still reaches nothing."""
    here = _guards_stage(tmp_path)
    with Ears() as ears:
        hermetic(
            NET,
            *_bash(f"echo x > /dev/tcp/127.0.0.1/{ears.port}"),
            python=_one_python(what, error),
            cwd=here,
            preexec_fn=_kernel_that_refuses(what, error),
        )
        assert _guards_effects(here, ears) == []


OLD_LANDLOCKS = [0, 1, 2]  # versions that cannot hold --fs-readonly: none, Linux 5.13, Linux 5.19


def _on_old_landlock(version, runtime, cwd, *words):
    """Run `hotenv hermetic` on a Linux whose Landlock is of this version, and return its end."""
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "import hotenv\n"
        "del sys.path[0]\n"
        f"hotenv._landlock_version = lambda: {version}\n"
        "sys.exit(hotenv.main(sys.argv[1:]))\n"
    )
    return output_of([sys.executable, "-c", code, "hermetic", *words], runtime, cwd)


@only_kernel
@pytest.mark.parametrize("version", OLD_LANDLOCKS)
def test_old_landlock_refuses_a_program(guards_runtime, tmp_path, version):
    """Where Landlock is too old for --fs-readonly, a program that is no Python is not run."""
    here = _guards_stage(tmp_path)
    words = [ANY, "--", *_sh("echo x > victim")]
    done = _on_old_landlock(version, guards_runtime, here, *words)
    assert "--fs-readonly" in _guards_refusal(done, 1)
    assert _victim_is_untouched(here)


@only_kernel
@pytest.mark.parametrize("version", OLD_LANDLOCKS)
def test_old_landlock_is_told(guards_runtime, tmp_path, version):
    """Where Landlock is too old for --fs-readonly, a line says that only Python code is held."""
    words = [ANY, "--", sys.executable, "-c", "pass"]
    done = _on_old_landlock(version, guards_runtime, tmp_path, *words)
    assert done.stderr == "[hermetic] for Python code only: fs-readonly\n"
    assert done.returncode == 0


# -- what hotenv itself keeps from the guarded --


def _without_hook(code):
    """Return the words of a program that starts a Python without a hook.

    A Python becomes a shell, which starts the other Python with an empty environment.
    """
    line = 'env -i "$0" -Ic "$1"; :'
    words = ["sh", "-c", line, sys.executable, code]
    return [sys.executable, "-c", f"import os; os.execv('/bin/sh', {words!r})"]


def _asking_code(project, before=""):
    """Return code that connects to a session, does something else, and prints the answer."""
    return (
        "import os, resource, socket\n"
        "client = socket.socket(socket.AF_UNIX)\n"
        f"client.connect({project.socket_path()!r})\n"
        f"{before}"
        f"client.sendall({DUMP!r})\n"
        "print(client.recv(9999))\n"
    )


@only_landlock
def test_guard_loader_is_closed_to_the_guarded(project):
    """A program under --fs-readonly cannot change what a guarded Python imports."""
    project.serve()
    writes = "echo x > ${PYTHONPATH%%:*}/__pycache__/x"
    done = project.hotenv("run", ANY, "--", "sh", "-c", writes, env=environment(project.base))
    assert done.returncode != 0
    assert list(project.base.rglob("x")) == []


@pytest.fixture(scope="module")
def guards_session():
    """A Project with a session of one secret, which guarded programs ask for it."""
    yield from standing(b"TOKEN=sk-live-51H8sVq0\n")


@only_linux
def test_unguarded_program_is_told(guards_session):
    """The program with which the following tests ask a session gets a value where no guard is."""
    target = _without_hook(_asking_code(guards_session))
    done = output_of(target, guards_session.base, guards_session.dir)
    assert "sk-live" in done.stdout, done.stderr


@only_linux
@pytest.mark.parametrize("guards", [NET, LOCAL, NET + " --mask"])
def test_no_network_closes_the_session(guards_session, guards):
    """A program under --no-network gets no value of a session."""
    target = _without_hook(_asking_code(guards_session))
    done = _run_guarded(guards_session, *guards.split(), "--", *target)
    assert "sk-live" not in done.stdout


@only_landlock
@pytest.mark.parametrize("guards", [NET, ANY, IMP, LOCAL, NET + " --mask"])
def test_guarded_program_gains_no_privilege(guards_session, guards):
    """Whatever a guarded program starts has a filter of system calls, and gains no privilege."""
    code = (
        "for line in open('/proc/self/status'):\n"
        "    if line.startswith(('NoNewPrivs:', 'Seccomp:')): print(*line.split())\n"
    )
    done = _run_guarded(guards_session, *guards.split(), "--", *_without_hook(code))
    assert done.stdout.splitlines() == ["NoNewPrivs: 1", "Seccomp: 2"], done.stderr


# ==== hermetic ====================================================================================
# This section shows what a guarded Python may do, and what its guards block.

CONNECT = "import socket; socket.create_connection(('0.1.2.3', 80), 0.2)"
CONNECT_BLOCKED = "[hermetic] blocked socket.create_connection host=0.1.2.3 reason=no-network"


class Action:
    """What a Python does under guards: its code, and what the trace must say, where that is tested.

    In the code `outside` is the path of a directory with a file `old`, beside the current one. The
    current directory is one that `_action_stage` has made.
    """

    def __init__(self, guards, code, trace=None):
        self.guards = guards
        self.code = code
        self.trace = trace


ONLY_DIR = "--fs-readonly=/ --fs-write dir"
ONLY_HERE = "--fs-readonly=/ --fs-write ."

# The beginnings of some actions.
UDP = "from socket import *; s = socket(AF_INET, SOCK_DGRAM); "
FROM_HERE = (
    "import socket; "
    "reach = lambda to: socket.create_connection(to, 0.2, ('127.0.0.1', 0)); "
)
LISTEN = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1); "

BLOCKED = [
    # No host is reached by TCP, by whatever function of the module socket.
    Action(NET, "import socket; socket.create_connection(('0.1.2.3', 80), 0.2)"),
    Action(NET, "import socket; socket.create_connection(('example.invalid', 80), 0.2)",
           "socket.create_connection host=example.invalid reason=no-network"),
    Action(NET, "import socket; socket.create_connection(('localhost', 9), 0.2)"),
    Action(NET, "import socket; socket.create_connection(('127.0.0.1', 9), 0.2)"),
    Action(NET, "import socket; socket.socket().connect(('0.1.2.3', 80))",
           "socket.connect host=0.1.2.3 reason=no-network"),
    Action(NET, "import socket; socket.socket().connect(('example.invalid', 80))",
           "socket.connect host=example.invalid reason=no-network"),
    Action(NET, "import socket; socket.socket().connect_ex(('0.1.2.3', 80))"),
    Action(NET, "import socket; socket.socket().connect_ex(('example.invalid', 80))"),
    Action(NET, "import socket; socket.socket(socket.AF_INET6).connect(('::1', 9))"),
    # No host is reached by UDP: the guard refuses the socket itself.
    Action(NET, UDP + "s.sendto(b'x', ('0.1.2.3', 9))"),
    Action(NET, UDP + "s.sendto(b'x', 0, ('0.1.2.3', 9))"),
    Action(NET, UDP + "s.sendto(b'x', ('example.invalid', 9))"),
    Action(NET, UDP + "s.sendmsg([b'x'], [], 0, ('0.1.2.3', 9))"),
    Action(NET, UDP + "s.connect(('0.1.2.3', 9))"),
    # No name is looked up.
    Action(NET, "import socket; socket.getaddrinfo('example.invalid', 80)"),
    Action(NET, "import socket; socket.gethostbyname('example.invalid')"),
    Action(NET, "import socket; socket.gethostbyaddr('0.1.2.3')"),
    Action(NET, "import socket; socket.getnameinfo(('0.1.2.3', 80), 0)"),
    # No address is bound that others can reach.
    Action(NET, "import socket; socket.socket().bind(('0.0.0.0', 0))"),
    Action(NET, "import socket; socket.socket().bind(('', 0))"),
    Action(NET, "import socket; socket.socket().bind(('example.invalid', 0))"),
    # No module that connects gets round the guard, and neither does a thread or a fork.
    Action(NET, "from _socket import *; socket(AF_INET, SOCK_STREAM).connect(('0.1.2.3', 80))"),
    Action(NET, "import _socket, sys; sys.modules.pop('_socket'); "
                "from _socket import *; socket(AF_INET, SOCK_STREAM).connect(('0.1.2.3', 80))"),
    Action(NET, "import urllib.request; urllib.request.urlopen('http://example.invalid')",
           "socket.create_connection host=example.invalid reason=no-network"),
    Action(NET, "import smtplib; smtplib.SMTP('0.1.2.3', timeout=0.2)"),
    Action(NET, "import asyncio; asyncio.run(asyncio.open_connection('0.1.2.3', 80))"),
    Action(NET, "import socket, threading; to = ('0.1.2.3', 80); "
                "t = threading.Thread(target=socket.create_connection, args=(to, 0.2)); "
                "t.start(); t.join()"),
    Action(NET, "import os, socket, sys; pid = os.fork(); "
                "pid or socket.create_connection(('0.1.2.3', 80), 0.2); "
                "sys.exit(os.waitpid(pid, 0)[1] >> 8)"),

    # --allow-localhost opens this machine alone, no host whose name or address resembles it.
    Action(LOCAL, "import socket; socket.create_connection(('0.1.2.3', 80), 0.2)"),
    Action(LOCAL, FROM_HERE + "reach(('169.254.169.254', 80))"),
    Action(LOCAL, FROM_HERE + "reach(('128.0.0.1', 80))"),
    Action(LOCAL, "import socket; socket.create_connection(('notlocalhost', 80), 0.2)"),
    Action(LOCAL, "import socket; "
                  "socket.create_connection(('localhost.example.invalid', 80), 0.2)"),
    Action(LOCAL, "import socket; socket.create_connection(('0.0.0.0', 9), 0.2)"),
    Action(LOCAL, "import socket; socket.socket(socket.AF_INET6).connect(('::ffff:0.1.2.3', 80))"),

    # --allow-domain opens a name and those below it. A part of a name or of an address opens
    # nothing, and the metadata address of a cloud has its own name alone.
    Action("--no-network --allow-domain internal",
           "import socket; socket.getaddrinfo('metadata.google.internal', 80)"),
    Action("--no-network --allow-domain 254", FROM_HERE + "reach(('169.254.169.254', 80))"),
    Action("--no-network --allow-domain example.invalid",
           "import socket; socket.getaddrinfo('example.invalid.evil.test', 80)"),
    Action("--no-network --allow-domain example.invalid",
           "import socket; socket.getaddrinfo('notexample.invalid', 80)"),
    Action("--no-network --allow-domain 0.1.2.3",
           "import socket; socket.create_connection(('0.1.2.30', 80), 0.2)"),
    Action("--no-network --allow-domain 2852039166.test", FROM_HERE + "reach(('2852039166', 80))"),

    # No process is started by the module subprocess; the trace shows its words, without secrets.
    Action(SUB, "import subprocess; subprocess.check_output(['touch', 'made'])",
           "subprocess.check_output argv=['touch','made'] reason=no-subprocess"),
    Action(SUB, "import subprocess; subprocess.run(['touch', 'made', 'x y'])",
           "subprocess.run argv=['touch','made','x y'] reason=no-subprocess"),
    Action(SUB, "import subprocess; subprocess.run(["
                "'x', '--token', 'a\\0hunter2', '--password=hunter2', 'API_KEY=hunter2', "
                "'-H', 'Authorization: Bearer hunter2', 'https://me:hunter2@host/', "
                "'--verbose', 'y'])",
           "subprocess.run argv=["
           "'x','--token','***','--password=***','API_KEY=***',"
           "'-H','Authorization: ***','https://***@host/',"
           "'--verbose','y'] reason=no-subprocess"),
    Action(SUB, "import subprocess; subprocess.getoutput('touch made')"),
    Action(SUB, "import subprocess; subprocess.Popen('touch made', shell=True).wait()",
           "subprocess.Popen argv=['/bin/sh','-c','touch made'] reason=no-subprocess"),
    Action(SUB, "import subprocess; subprocess.Popen(['touch', 'made'], close_fds=False).wait()"),
    # No process is started by the module os, or by posix below it.
    Action(SUB, "import os; os.system('x --secret-key \"hunter2 hunter2\"')",
           "os.system argv=['x --secret-key ***'] reason=no-subprocess"),
    Action(SUB, "import os; os.system('touch made')",
           "os.system argv=['touch made'] reason=no-subprocess"),
    Action(SUB, "import os; os.popen('touch made').read()"),
    Action(SUB, "import os; os.execv('/bin/sh', ['sh', '-c', 'touch made'])"),
    Action(SUB, "import os; os.execvp('touch', ['touch', 'made'])",
           "os.execvp argv=['touch','made'] reason=no-subprocess"),
    Action(SUB, "import os; os.execvpe('touch', ['touch', 'made'], dict(os.environ))"),
    Action(SUB, "import os; os.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', 'touch made'])"),
    Action(SUB, "import os; os.posix_spawn('/bin/sh', ['sh', '-c', 'touch made'], os.environ)"),
    Action(SUB, "import os; os.posix_spawnp('touch', ['touch', 'made'], os.environ)"),
    Action(SUB, "import posix; posix.execv('/bin/sh', ['sh', '-c', 'touch made'])"),
    Action(SUB, "import os; os.fork() or os._exit(0)", "os.fork reason=no-subprocess"),
    Action(SUB, "import os; os.forkpty()[0] or os._exit(0)"),
    # No process is started by any other module.
    Action(SUB, "import pty; pty.spawn(['touch', 'made'])"),
    Action(SUB, "import asyncio; asyncio.run(asyncio.create_subprocess_exec('touch', 'made'))"),
    Action(SUB, "import multiprocessing; "
                "multiprocessing.get_context('spawn').Process(target=print).start()"),
    Action(SUB, "import multiprocessing; "
                "multiprocessing.get_context('fork').Process(target=print).start()"),
    Action(SUB, "import _posixsubprocess, multiprocessing.util; "
                "words = [b'sh', b'-c', b'touch made']; "
                "multiprocessing.util.spawnv_passfds(b'/bin/sh', words, [])"),
    Action(SUB, "from concurrent.futures import ProcessPoolExecutor as Pool; "
                "Pool(1).submit(print).result(5)"),

    # No file is opened to write; the trace escapes what a terminal would take for a command.
    Action(ANY, "open('/nowhere/x', 'w')", "open path=/nowhere/x reason=fs-readonly"),
    Action(ANY, "open('/nowhere/x y', 'w')", "open path='/nowhere/x y' reason=fs-readonly"),
    Action(ANY, "open('/nowhere/x\\x1b[2J\\n\\udcff', 'w')",
           "open path='/nowhere/x\\x1b[2J\\n\\udcff' reason=fs-readonly"),
    Action(ANY, "open('made', 'w')"),
    Action(ANY, "open('made', 'x')"),
    Action(ANY, "open('victim', 'a')"),
    Action(ANY, "open('victim', 'r+')"),
    Action(ANY, "import io; io.FileIO('made', 'w')"),
    Action(ANY, "import pathlib; pathlib.Path('made').touch()"),
    Action(ANY, "import os; os.open('made', os.O_WRONLY | os.O_CREAT)"),
    Action(ANY, "import os; os.open('made', os.O_RDONLY | os.O_CREAT)"),
    Action(ANY, "import os; os.open('victim', os.O_WRONLY | os.O_TRUNC)"),
    Action(ANY, "import os; fd = os.open('victim', os.O_RDONLY); "
                "os.open('/proc/self/fd/%d' % fd, os.O_WRONLY)"),
    # Nothing is made, moved or removed.
    Action(ANY, "import pathlib; pathlib.Path('victim').unlink()"),
    Action(ANY, "import os; os.remove('victim')"),
    Action(ANY, "import os; os.rename('victim', 'made')"),
    Action(ANY, "import os; os.replace('victim', 'made')"),
    Action(ANY, "import os; os.mkdir('made')"),
    Action(ANY, "import os; os.makedirs('made/deep')"),
    Action(ANY, "import os; os.rmdir('dir')"),
    Action(ANY, "import os; os.link('victim', 'made')"),
    Action(ANY, "import os; os.symlink('victim', 'made')"),
    Action(ANY, "import shutil; shutil.copy('victim', 'made')"),
    Action(ANY, "import shutil; shutil.move('victim', 'made')"),
    Action(ANY, "import shutil; shutil.rmtree('dir')"),
    Action(ANY, "import tempfile; tempfile.mkdtemp(dir='.')"),
    # No attribute of a file is changed. (macOS has no setxattr: there the file is made instead.)
    Action(ANY, "import os; os.chmod('victim', 0o600)"),
    Action(ANY, "import os; os.fchmod(os.open('victim', os.O_RDONLY), 0o600)"),
    Action(ANY, "import os; os.chown('victim', -1, -1)"),
    Action(ANY, "import os; os.utime('victim', (1, 1))"),
    Action(ANY, "import os; os.truncate('victim', 0)"),
    Action(ANY, "import os; set_it = getattr(os, 'setxattr', lambda *_: open('made', 'w')); "
                "set_it('victim', 'user.x', b'x')"),
    # No library in C that Python brings makes a file.
    Action(ANY, "import sqlite3; sqlite3.connect('made')"),
    Action(ANY, "import sqlite3; sqlite3.connect('file:made?mode=rwc', uri=True)"),
    Action(ANY, "import sqlite3; sqlite3.connect(':memory:?made').execute('create table t(x)')"),
    Action(ANY, "import ssl; ssl.create_default_context().keylog_filename = 'made'"),
    Action(ANY, "import socket; socket.socket(socket.AF_UNIX).bind('made')"),

    # Nothing outside of the current directory is read, by a path or through a link.
    Action(FS, "open('/etc/passwd').read()"),
    Action(FS, "open(outside + '/old').read()"),
    Action(FS, "import os; open('../' + os.path.basename(outside) + '/old').read()"),
    Action(FS, "open('link').read()"),
    Action(FS, "open('/proc/self/root/etc/passwd').read()"),
    Action(FS, "import os; os.open('/etc/passwd', os.O_RDONLY)"),
    Action(FS, "import os\n"
               "for path, directories, files, descriptor in os.fwalk('.'):\n"
               "    if 'link' in files: os.open('link', os.O_RDONLY, dir_fd=descriptor)\n"),
    Action(FS, "import os; os.listdir('/etc')"),
    Action(FS, "import os; list(os.scandir('/etc'))"),
    Action(FS, "import pathlib; pathlib.Path('/etc/passwd').read_text()"),
    Action(FS, "import sqlite3; sqlite3.connect('file:' + outside + '/old?mode=ro', uri=True)"),
    Action(FS, "import sqlite3; "
               "sqlite3.connect('file://localhost' + outside + '/old?mode=ro', uri=True)"),

    # --fs-write opens one directory, and no link in that directory opens a file elsewhere.
    Action(ONLY_DIR, "open('made', 'w')"),
    Action(ONLY_DIR, "import os; os.symlink(os.path.abspath('victim'), 'dir/l'); "
                     "open('dir/l', 'w')"),
    Action(ONLY_DIR, "import os; os.link('victim', 'dir/l')"),
    Action(ONLY_DIR, "import os; os.rename('victim', 'dir/l')"),
    Action(ONLY_HERE, "import sqlite3; sqlite3.connect('file:' + outside + '/new', uri=True)"),

    # --strict-imports refuses native code, but for Python's own.
    Action(IMP, "import ctypes", "import module=ctypes reason=strict-imports"),
    Action(IMP, "import _ctypes"),
    Action(IMP, "import cffi"),
    Action(IMP, "import native_module"),
    Action(IMP, "import importlib.machinery, importlib.util; "
                "name, path = 'native_module', 'native_module.so'; "
                "spec = importlib.util.spec_from_file_location(name, path); "
                "importlib.machinery.ExtensionFileLoader(name, path).create_module(spec)"),
]

NO_UVLOOP = """\
try:
    import uvloop
except ImportError:
    pass
else:
    raise SystemExit("uvloop was there")
"""

ALLOWED = [
    # A program may use unix sockets, within itself and between programs of this machine.
    Action(NET, "import socket; a, b = socket.socketpair(); "
                "a.send(b'x'); assert b.recv(1) == b'x'"),
    Action(NET, "import socket; a, b = socket.socketpair(); "
                "a.sendmsg([b'x']); assert b.recv(1) == b'x'"),
    Action(NET, "from socket import *; s = socket(AF_UNIX); s.bind('s'); s.listen(1); "
                "c = socket(AF_UNIX); c.connect('s')"),
    Action(NET, "from socket import *; s = socket(AF_UNIX, SOCK_DGRAM); s.bind('d'); "
                "socket(AF_UNIX, SOCK_DGRAM).sendto(b'x', 'd')"),
    Action(NET, "import os, socket; s = socket.socket(socket.AF_UNIX); "
                "s.bind('\\0hotenv-test-%d' % os.getpid())"),
    # A program may bind an address of this machine alone, and look its names up.
    Action(NET, "import socket; socket.socket().bind(('127.0.0.1', 0))"),
    Action(NET, "import socket; socket.socket().bind(('localhost', 0))"),
    Action(NET, "from socket import *; has_ipv6 and socket(AF_INET6).bind(('::1', 0))"),
    Action(NET, "import http.server as h; "
                "h.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler).server_close()"),
    Action(NET, "import socket; socket.gethostname()"),
    Action(NET, "import socket; socket.getaddrinfo(None, 80); "
                "socket.getaddrinfo('127.0.0.1', 80); socket.getaddrinfo('localhost', 80)"),
    Action(NET, "import socket; socket.getfqdn()\n"
                "try: socket.gethostbyname(socket.gethostname())\n"
                "except socket.gaierror: pass\n"),
    Action(NET, "import os, socket; os.mkfifo('fifo'); "
                "C = type('C', (), {'resolve': socket.gethostbyname}); C().resolve('127.0.0.1')"),
    # A program may do what needs no network at all.
    Action(NET, "import asyncio; asyncio.run(asyncio.sleep(0))"),
    Action(NET, "import multiprocessing as m; m.set_start_method('fork'); "
                "l = m.Manager().list([1]); assert l[0] == 1"),
    Action(NET, "import subprocess; assert subprocess.check_output(['echo', 'x']) == b'x\\n'"),
    Action(NET, "import ssl; ssl.create_default_context()"),
    Action(NET, "import ssl; "
                "ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())"),
    Action(NET, "import tempfile; left_open = tempfile.NamedTemporaryFile(dir='dir'); "
                "left_open.write(b'x')"),
    # A program may ask for uvloop, which no hook sees, and does without it.
    Action(NET, NO_UVLOOP),
    Action(SUB, NO_UVLOOP),

    # A program may use the modules that start processes, as long as it starts none.
    Action(SUB, "import subprocess; assert isinstance(3, subprocess.Popen) is False; "
                "hasattr(subprocess.Popen, '__class_getitem__') and subprocess.Popen[bytes]"),
    Action(SUB, "import platform; platform.processor(); platform.platform()"),
    Action(SUB, "import os; os.close(os.openpty()[0])"),
    Action(SUB, "import threading; t = threading.Thread(target=print); t.start(); t.join()"),
    Action(SUB, "from concurrent.futures import ThreadPoolExecutor as Pool; "
                "assert Pool(2).submit(int, '3').result() == 3"),
    Action(SUB, "open('made', 'w').write('x')"),
    Action(SUB, "import asyncio; asyncio.run(asyncio.sleep(0))"),

    # --allow-localhost lets a program reach this machine.
    Action(LOCAL, LISTEN + "socket.create_connection(s.getsockname(), 2)"),
    Action(LOCAL, LISTEN + "socket.create_connection(('localhost', s.getsockname()[1]), 2)"),
    Action(LOCAL, LISTEN.replace("127.0.0.1", "127.3.2.1")
                  + "socket.create_connection(s.getsockname(), 2)"),
    Action(LOCAL, LISTEN + "assert socket.socket().connect_ex(s.getsockname()) == 0"),
    Action(LOCAL, UDP + "s.bind(('127.0.0.1', 0)); "
                  "socket(AF_INET, SOCK_DGRAM).sendto(b'x', s.getsockname())"),
    Action(LOCAL, LISTEN + "import asyncio; "
                  "asyncio.run(asyncio.open_connection(*s.getsockname()))"),
    Action(LOCAL, "import email.utils, smtplib; email.utils.make_msgid(); smtplib.SMTP()"),

    # --fs-readonly=/ lets a program read, and write to what is no file.
    Action(ANY, "open('/etc/passwd').read()"),
    Action(ANY, "open('/dev/null', 'w').write('x')"),
    Action(ANY, "open('/dev/stderr', 'w').write('')"),
    Action(ANY, "import os; r, w = os.pipe(); "
                "open(w, 'w').write('x'); assert os.read(r, 1) == b'x'"),
    Action(ANY, "import os; fd = os.open('victim', os.O_RDONLY); "
                "assert isinstance(fd, int); os.fdopen(fd).read()"),
    Action(ANY, "import os; C = type('C', (), {'open': os.open}); "
                "os.close(C().open('victim', os.O_RDONLY))"),
    Action(ANY, "import tempfile; tempfile.SpooledTemporaryFile().write(b'x')"),
    Action(ANY, "import plain_module, os; assert not os.path.exists('__pycache__')"),
    Action(ANY, "import subprocess; subprocess.run(['true'], check=True)"),
    # A database may be in memory, or only be read.
    Action(ANY, "import sqlite3; c = sqlite3.connect(':memory:').execute('create table t(x)'); "
                "c.execute('insert into t values (1)')"),
    Action(ANY, "import sqlite3; c = sqlite3.connect('file:base.db?mode=ro', uri=True); "
                "c.execute('select * from t').fetchall()"),
    Action(ANY, "import sqlite3; c = sqlite3.connect('file:base.db?immutable=1', uri=True); "
                "c.execute('select 1').fetchall()"),
    # A file that is not there is missing, not refused.
    Action(ANY, "import os\n"
                "for act in os.remove, os.rmdir, os.listdir:\n"
                "    try: act('missing')\n"
                "    except FileNotFoundError: pass\n"
                "    else: raise SystemExit(3)\n"),

    # --fs-write lets a program make, change, move and remove files below the directory.
    Action(ONLY_HERE, "import pathlib; p = pathlib.Path('made'); "
                      "p.touch(); p.write_text('x'); p.unlink()"),
    Action(ONLY_DIR, "import os; open('dir/new', 'w').write('x'); "
                     "os.rename('dir/new', 'dir/newer'); os.remove('dir/newer'); "
                     "os.mkdir('dir/sub'); os.rmdir('dir/sub')"),
    Action(ONLY_DIR, "import shutil, tempfile; d = tempfile.mkdtemp(dir='dir'); "
                     "open(d + '/x', 'w'); shutil.rmtree(d)"),
    Action(ONLY_DIR, "import sqlite3; c = sqlite3.connect('dir/x.db'); "
                     "c.execute('create table t(x)'); c.execute(\"ATTACH 'dir/y.db' AS y\")"),
    Action(ONLY_DIR, "import dbm.dumb; dbm.dumb.open('dir/d', 'c').close()"),

    # --fs-readonly lets a program read the current directory, and what Python itself reads.
    Action(FS, "import os; open('victim').read(); os.listdir('.'); list(os.scandir())"),
    Action(FS, "import glob; glob.glob('link/*'); glob.glob('**', recursive=True)"),
    Action(FS, "import json, email, unittest, xml.dom.minidom, sqlite3, http.client, mimetypes; "
               "mimetypes.guess_type('a.html')"),
    Action(FS, "import random, secrets, uuid, tempfile, zipfile; "
               "random.random(); secrets.token_hex(); uuid.uuid4(); uuid.uuid1()"),
    Action(FS, "open('/dev/urandom', 'rb').read(1); open('/dev/null').read()"),
    Action(FS, "import os; os.cpu_count(); p = os.fork(); "
               "p or os._exit(not open('/proc/self/status').read()); "
               "assert not os.waitpid(p, 0)[1]"),
    Action(FS, "import datetime, time; time.localtime(); datetime.datetime.now().astimezone()"),
    Action(FS, "import encodings.idna, encodings.cp1252; 'x'.encode('cp1252')"),
    Action(FS, "import pathlib; assert not pathlib.Path('/etc/no-such.conf').exists()\n"
               "try: open('/etc/no-such.conf')\n"
               "except FileNotFoundError: pass\n"
               "else: raise SystemExit(3)\n"),

    # --strict-imports lets a program import what comes with Python or is written in Python.
    Action(IMP, "import json, decimal, sqlite3, ssl, socket, hashlib, zlib, bz2, select, math, "
                "array, _datetime, unicodedata"),
    Action(IMP, "import uuid, pickle, asyncio, multiprocessing, subprocess, csv, "
                "xml.etree.ElementTree"),
    Action(IMP, "import plain_module"),
]

GUARDED_MODES = ["in-process", "bootstrapped"]
GUARDED_WAYS = [(python, mode) for python in PYTHONS for mode in GUARDED_MODES]


def _guarded_ways(*seed):
    """Return pairs of a Python and a mode: all in the long form, else one that the seed decides."""
    if FULL:
        return GUARDED_WAYS
    return [random.Random(f"{SEED}{seed}").choice(GUARDED_WAYS)]


def _action_cases(actions):
    """Return the cases of a test of actions: the long form tries each one in every way."""
    return [
        pytest.param(
            action.guards, action.code, action.trace, python, mode, id=f"{number}-{mode}"
        )
        for number, action in actions
        for python, mode in _guarded_ways(number)
    ]


def _traced_actions(table):
    """Return numbered actions: those whose trace is tested."""
    return [(number, action) for number, action in enumerate(table) if action.trace]


def _other_actions(table):
    """Return numbered actions without a trace: all in the long form, else every third one."""
    return [
        (number, action)
        for number, action in enumerate(table)
        if not action.trace and (FULL or (number + SEED) % 3 == 0)
    ]


def _action_stage(base):
    """Make the directory of an action and the one outside it, and return both paths."""
    here = _guards_stage(base)
    outside = Path(tempfile.mkdtemp(dir=str(base)))
    (outside / "old").write_text("old")
    (here / "link").symlink_to(outside / "old")
    (here / "plain_module.py").write_text("x = 1\n")
    (here / "uvloop.py").write_text("x = 1\n")
    (here / "native_module.so").write_text("\x7fELF, but not really")
    with contextlib.closing(sqlite3.connect(str(here / "base.db"))) as database:
        database.execute("create table t(x)")
    return here, outside


def _action_code(here, outside, code):
    """Return the program that does an action, and prints "ran" if nothing has stopped it."""
    return f"here, outside = {str(here)!r}, {str(outside)!r}\n{code}\nprint('ran')\n"


def _blocked_lines(done):
    """Return the lines of a trace that tell what was blocked."""
    return [line for line in done.stderr.splitlines() if line.startswith("[hermetic] blocked ")]


def _state_of(here):
    """Return path, mode and (of a file) time of everything below a directory, but for the script
    that `guarded` writes."""
    state = []
    for path in sorted(glob.glob(f"{here}/**", recursive=True)):
        if os.path.basename(path) == "target_script.py":
            continue
        status = os.lstat(path)
        if os.path.isfile(path):
            state.append((path, status.st_mode, status.st_mtime))
        else:
            state.append((path, status.st_mode, None))
    return state


@pytest.mark.parametrize(
    "guards, code, trace, python, mode",
    _action_cases(_traced_actions(BLOCKED) + _other_actions(BLOCKED)),
)
def test_action_is_blocked(guarded, tmp_path, guards, code, trace, python, mode):
    """What the guards close is blocked before it has any effect, and ends in a status of 2."""
    here, outside = _action_stage(tmp_path)
    before = _state_of(here)
    done = guarded(guards + " --trace", _action_code(here, outside, code), python, mode, here)
    assert _blocked_lines(done) != [], done.stderr
    assert done.returncode == 2, done.stderr
    assert not (here / "made").exists()
    if "--fs-write" not in guards:
        assert _state_of(here) == before


@pytest.mark.parametrize(
    "guards, code, trace, python, mode", _action_cases(_traced_actions(BLOCKED))
)
def test_trace_names_what_was_blocked(guarded, tmp_path, guards, code, trace, python, mode):
    """The trace has one line for a blocked action: the function, its argument, and the guard."""
    here, outside = _action_stage(tmp_path)
    done = guarded(guards + " --trace", _action_code(here, outside, code), python, mode, here)
    assert _blocked_lines(done) == ["[hermetic] blocked " + trace]
    assert done.returncode == 2


@pytest.mark.parametrize(
    "guards, code, trace, python, mode", _action_cases(_other_actions(ALLOWED))
)
def test_harmless_action_is_left_alone(guarded, tmp_path, guards, code, trace, python, mode):
    """What a well-behaved program does runs under guards to its end."""
    here, outside = _action_stage(tmp_path)
    done = guarded(guards + " --trace", _action_code(here, outside, code), python, mode, here)
    assert done.stdout.endswith("ran\n"), done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "table, least",
    [pytest.param(BLOCKED, 115, id="blocked"), pytest.param(ALLOWED, 60, id="allowed")],
)
def test_tables_of_actions_keep_their_rows(table, least):
    """The tables of actions have as many rows as what is said of the guards rests on."""
    assert len(table) >= least


# -- children, and pools of them --


@pytest.fixture(scope="module")
def guards_venvs(tmp_path_factory):
    """The paths of two virtual environments, of the oldest and of the newest Python.

    The second one has a blank in its path.
    """
    base = tmp_path_factory.mktemp("venvs")
    venvs = [base / "venv0", base / "venv 1"]
    for python, venv in zip(PYTHONS, venvs):
        subprocess.run([python, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=60)
    return venvs


def _site_packages(venv):
    """Return the path of the site-packages of a virtual environment."""
    return Path(glob.glob(f"{venv}/lib/python*/site-packages")[0])


# How a Python starts another one. `child` is the list of words to start, `line` is the same for a
# shell: a Python that connects.
CHILDREN = [
    "subprocess.run(child)",
    "subprocess.run(child, env={})",
    "subprocess.run(child, env={'PYTHONPATH': '/nowhere', 'HOTENV_GUARDS': '[]'})",
    "subprocess.run(child, env={b'PYTHONPATH': b'/nowhere', b'HOTENV_GUARDS': b''})",
    "subprocess.run(child, env={'PYTHONPATH': b'/nowhere', b'HOTENV_GUARDS': ''})",
    "subprocess.run(child, env=os.environb)",
    "subprocess.run(child, env={}, close_fds=False)",
    "subprocess.run(['/bin/sh', '-c', line])",
    "os.environ.clear(); subprocess.run(child)",
    "os.environ.clear(); os.system(line)",
    "os.spawnve(os.P_WAIT, child[0], child, {})",
    "os.waitpid(os.posix_spawn(child[0], child, {}), 0)",
    # A coroutine starts the child.
    "import asyncio\n"
    "async def go(): await (await asyncio.create_subprocess_exec(*child, env={})).wait()\n"
    "asyncio.run(asyncio.wait_for(go(), 20))\n",
    # The child of a child is guarded, too.
    "between = 'import subprocess; subprocess.run(%r, env={})' % (child,)\n"
    "subprocess.run([sys.executable, '-c', between], env={})\n",
]

# How a Python becomes another one.
EXECS = [
    "os.execve(child[0], child, {})",
    "os.environ.clear(); os.execv(child[0], child)",
]

POOLS = textwrap.dedent("""
    if __name__ == "__main__":
        os.environ.pop("HOTENV_GUARDS")
        os.environ.pop("PYTHONPATH", None)
        import multiprocessing
        for method in ("spawn", "fork", "forkserver"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                try:
                    pool.map(exec, [connect])
                except PermissionError as error:
                    print(method, error.errno)
    """)


def _code_with_children(code, python):
    """Return a program that starts Pythons, each of which tries to connect."""
    child = [python, "-c", CONNECT]
    line = f'{python} -c "{CONNECT}"'
    return (
        "import os, subprocess, sys\n"
        f"connect = {CONNECT!r}\nchild = {child!r}\nline = {line!r}\n"
        f"{code}"
    )


def _cases_in_ways(rows):
    """Return the cases of a test of rows: the long form tries each row in every way."""
    return [
        pytest.param(*row, python, mode, id=f"{number}-{mode}")
        for number, row in enumerate(rows)
        for python, mode in _guarded_ways(row)
    ]


@pytest.mark.parametrize("code, python, mode", _cases_in_ways([(code,) for code in CHILDREN]))
def test_guards_stay_on_in_a_child(guarded, code, python, mode):
    """A Python that a guarded one starts is guarded, whatever its environment; its block is not
    one of its parent's."""
    done = guarded("--no-network --trace", _code_with_children(code, python), python, mode)
    assert _blocked_lines(done) == [CONNECT_BLOCKED], done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code, python, mode", _cases_in_ways([(code,) for code in EXECS]))
def test_guards_stay_on_beyond_exec(guarded, code, python, mode):
    """A Python that a guarded one becomes is guarded, whatever its environment."""
    done = guarded("--no-network --trace", _code_with_children(code, python), python, mode)
    assert _blocked_lines(done) == [CONNECT_BLOCKED], done.stderr
    assert done.returncode == 2, done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_guards_stay_on_in_pools(guarded, python):
    """The workers of a pool are guarded, whatever method starts them."""
    done = guarded("--no-network --trace", _code_with_children(POOLS, python), python)
    refused = [f"{method} {errno.EACCES}" for method in ("spawn", "fork", "forkserver")]
    assert done.stdout.splitlines() == refused, done.stderr
    assert _blocked_lines(done) == [CONNECT_BLOCKED] * len(refused)
    assert done.returncode == 0, done.stderr


# -- the exit status --


# What each program does first: it leaves half a line in every kind of file.
WRITE = textwrap.dedent("""
    import os, sys
    out = open("out", "w")
    out.write("half")
    print("shown", end="")
    raw = open("raw", "wb")
    raw.write(b"half")
    """)
FLUSH = "for file in (out, raw, sys.stdout): file.flush()\n"
TRY = f"try:\n    {CONNECT}\nexcept OSError:\n    pass\n"

# Code that follows WRITE, and the exit status that it leads to.
EXITS = [
    # A block decides, however the program ends.
    (CONNECT, 2),
    (TRY, 2),
    (TRY + "sys.exit(5)", 2),
    (TRY + "1 / 0", 2),
    (TRY + FLUSH + "os._exit(0)", 2),
    (TRY + FLUSH + "import posix; posix._exit(0)", 2),
    # Without a block the program decides.
    ("", 0),
    ("sys.exit(5)", 5),
    ("1 / 0", 1),
    ("sys.exit('x')", 1),
    # A signal is not hidden by a block.
    (TRY + FLUSH + "import signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    # A block counts in every thread, and at the end of the interpreter.
    (f"import threading; t = threading.Thread(target=lambda: exec({CONNECT!r})); "
     "t.start(); t.join()", 2),
    (f"import threading; threading.Timer(0.2, lambda: exec({CONNECT!r})).start()", 2),
    (f"import atexit; atexit.register(lambda: exec({CONNECT!r}))", 2),
    ("import socket\n"
     "class ConnectsAtItsEnd:\n"
     "    def __del__(self, client=socket.socket()):\n"
     "        try: client.connect(('0.1.2.3', 80))\n"
     "        except OSError: pass\n"
     "left = ConnectsAtItsEnd()\n", 2),
    # A block in a fork is the fork's.
    (FLUSH + "pid = os.fork()\n"
     "if not pid:\n"
     f"    try: exec({CONNECT!r})\n"
     "    except OSError: pass\n"
     "    os._exit(0)\n"
     "assert os.waitpid(pid, 0)[1] >> 8 == 2, 'the fork is told by its status'\n", 0),
    # A block before a fork is not the fork's.
    (TRY + FLUSH + "pid = os.fork()\n"
     "if not pid:\n"
     "    os._exit(0)\n"
     "if os.waitpid(pid, 0)[1]:\n"
     "    out.write('the fork was told of what its parent did')\n", 2),
]


@pytest.mark.parametrize("code, status, python, mode", _cases_in_ways(EXITS))
def test_exit_status_tells_of_a_block(guarded, code, status, python, mode):
    """The exit status alone tells, without --trace, whether something was blocked."""
    done = guarded("--no-network", WRITE + code, python, mode)
    assert done.returncode == status, done.stderr
    assert _blocked_lines(done) == []


@pytest.mark.parametrize("code, status, python, mode", _cases_in_ways(EXITS))
def test_no_file_loses_its_end(guarded, tmp_path, code, status, python, mode):
    """What a program has written is there after its end, though a block has changed its status."""
    done = guarded("--no-network", WRITE + code, python, mode)
    assert done.stdout == "shown", done.stderr
    assert (tmp_path / "out").read_text() == "half", done.stderr
    assert (tmp_path / "raw").read_bytes() == b"half", done.stderr


# -- which hosts are reached --


@pytest.fixture
def guards_resolver(guards_venvs):
    """Virtual environments in which names below .test and .internal are those of this machine; but
    creds.test and metadata.* have the address of a cloud's metadata.

    The value is the list of their Pythons. What is looked up is told on stderr.
    """
    places = [_site_packages(venv) for venv in guards_venvs]
    for place in places:
        (place / "names.pth").write_text("import names_of_the_test\n")
        (place / "names_of_the_test.py").write_text(
            textwrap.dedent("""
                import _socket, sys
                real = _socket.getaddrinfo
                def getaddrinfo(host, port, *args, **kwargs):
                    name = host.lower().rstrip(".") if isinstance(host, str) else ""
                    if not name.endswith((".test", ".internal")):
                        return real(host, port, *args, **kwargs)
                    sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
                    sys.stderr.write("ASKED %s\\n" % host)
                    if name.startswith(("creds", "metadata")):
                        address = "169.254.169.254"
                    else:
                        address = "127.0.0.1"
                    return [(2, 1, 6, "", (address, port))]
                _socket.getaddrinfo = getaddrinfo
                """)
        )
    yield [f"{venv}/bin/python" for venv in guards_venvs]
    for place in places:
        (place / "names.pth").unlink()


# An allowance, a host, and the function that connects or sends to the host.
REACHED = [
    ("--allow-domain api.test", "api.test", "create_connection"),
    ("--allow-domain api.test", "API.TEST.", "create_connection"),
    ("--allow-domain api.test", "api.test", "connect"),
    ("--allow-domain api.test", "api.test", "connect_ex"),
    ("--allow-domain api.test", "a.api.test", "create_connection"),
    ("--allow-domain test", "api.test", "create_connection"),
    ("--allow-domain API.Test.", "api.test", "create_connection"),
    ("--allow-domain *.test", "api.test", "create_connection"),
    ("--allow-domain .test", "api.test", "create_connection"),
    ("--allow-domain 127.0.0.1", "127.0.0.1", "create_connection"),
    ("--allow-localhost", "localhost", "create_connection"),
]
NOT_REACHED = [
    ("--allow-domain api.test", "xapi.test", "create_connection"),
    ("--allow-domain api.test", "api.test.test", "create_connection"),
    ("--allow-domain api.test", "other.test", "create_connection"),
    ("--allow-domain api.test", "other.test", "connect"),
    ("--allow-domain api.test", "api.test", "sendto"),
    ("--allow-domain api.test", "other.test", "sendto"),
    ("--allow-domain api.test", "127.0.0.1", "create_connection"),
    ("--allow-domain ::1", "127.0.0.1", "create_connection"),
    ("--allow-domain 0.0.1", "127.0.0.1", "create_connection"),
    ("--allow-localhost", "api.test", "create_connection"),
    ("--allow-domain internal", "metadata.google.internal", "create_connection"),
]
# Names that are allowed, at an address that no name but its own opens.
METADATA_NOT_REACHED = [
    ("--allow-domain test", "creds.test", "create_connection"),
    ("--allow-domain creds.test", "creds.test", "create_connection"),
    ("--allow-domain creds.test", "creds.test", "connect"),
]


def _reach(guarded, pythons, allowance, host, function):
    """Run a program that reaches a host at a port where this machine listens, and return what
    `guarded` returns; the program prints "reached" if it has."""
    acts = {
        "create_connection": "socket.create_connection((host, port), 2)",
        "connect": "socket.socket().connect((host, port))",
        "connect_ex": "assert socket.socket().connect_ex((host, port)) == 0",
        "sendto": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (host, port))",
    }
    python = random.Random(f"{SEED}{allowance}{host}{function}").choice(pythons)
    with Ears() as ears:
        code = (
            f"import socket; host = {host!r}; port = {ears.port}; "
            f"{acts[function]}; print('reached')"
        )
        return guarded("--trace --no-network " + allowance, code, python)


@pytest.mark.parametrize("allowance, host, function", REACHED)
def test_allowed_host_is_reached(guards_resolver, guarded, allowance, host, function):
    """A host that is allowed is reached, and nothing is blocked."""
    done = _reach(guarded, guards_resolver, allowance, host, function)
    assert done.stdout == "reached\n", done.stderr
    assert _blocked_lines(done) == []
    assert done.returncode == 0


@pytest.mark.parametrize("allowance, host, function", NOT_REACHED + METADATA_NOT_REACHED)
def test_other_host_is_not_reached(guards_resolver, guarded, allowance, host, function):
    """A host that is not allowed is not reached, and that is one block."""
    done = _reach(guarded, guards_resolver, allowance, host, function)
    assert done.stdout == ""
    assert len(_blocked_lines(done)) == 1, done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("allowance, host, function", NOT_REACHED)
def test_no_name_is_asked_for_in_vain(guards_resolver, guarded, allowance, host, function):
    """A name that is not allowed is never looked up: that alone would tell others of it."""
    done = _reach(guarded, guards_resolver, allowance, host, function)
    assert "ASKED" not in done.stderr


@pytest.mark.parametrize("host", ["metadata.google.internal", "169.254.169.254"])
def test_metadata_is_opened_by_its_own_name(guards_resolver, guarded, host):
    """A metadata address is opened by exactly its own name."""
    # The attempt is given up at once, before anything could have answered.
    code = (
        "import socket; s = socket.socket(); s.setblocking(False); "
        f"found = socket.getaddrinfo({host!r}, 80, socket.AF_INET, socket.SOCK_STREAM); "
        "s.connect_ex(found[0][4]); s.close()"
    )
    done = guarded(f"--trace --no-network --allow-domain {host}", code, guards_resolver[0])
    assert _blocked_lines(done) == [], done.stderr


# -- what any guard closes --


# The code of ways into the runtime directory `place`, whose socket is at `path`; `s` is a new unix
# socket.
RUNTIME_ATTEMPTS = [
    "s.connect(path)",
    "s.connect(path.encode())",
    "s.connect(os.path.relpath(path))",
    "s.connect_ex(path)",
    "s.connect('link/00000000.sock')",
    "os.chdir(place); s.connect('00000000.sock')",
    "s.bind(place + '/mine')",
    "open(place + '/new', 'w')",
    "os.unlink(path)",
    "os.rename(path, 'moved')",
    "os.link(path, 'linked')",
    "os.rename('file', place + '/file')",
    "os.chmod(place, 0o777)",
    "os.symlink('/', place + '/l')",
    "os.rmdir(place)",
]


@pytest.mark.parametrize("guards", [NET, SUB, ANY, IMP, LOCAL])
@pytest.mark.parametrize("python, mode", GUARDED_WAYS if FULL else GUARDED_WAYS[:2])
def test_runtime_directory_is_closed(guarded, guards_runtime, tmp_path, guards, python, mode):
    """Under any guard no file and no socket in the runtime directory is used or changed."""
    place = Path(guards_runtime, "hotenv")
    place.mkdir(exist_ok=True)
    path = str(place / "00000000.sock")
    (tmp_path / "link").symlink_to(place)
    (tmp_path / "file").write_text("x")
    code = textwrap.dedent(f"""
        import os, socket
        path, place, top = {path!r}, {str(place)!r}, os.getcwd()
        before = sorted(os.listdir(place))
        for attempt in {RUNTIME_ATTEMPTS!r}:
            os.chdir(top)
            s = socket.socket(socket.AF_UNIX)
            try:
                exec(attempt)
            except PermissionError:
                pass
            else:
                print("done:", attempt)
        print("left:", set(os.listdir(place)) ^ set(before))
        """)
    with contextlib.ExitStack() as ends:
        server = ends.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(path)
        ends.callback(os.unlink, path)
        server.listen(5)
        done = guarded(guards + " --trace", code, python, mode)
    assert done.stdout == "left: set()\n", done.stderr
    assert len(_blocked_lines(done)) == len(RUNTIME_ATTEMPTS), done.stderr
    assert done.returncode == 2, done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_hermetic_within_hermetic_keeps_both(guarded, guards_runtime, python):
    """A program that two runs of hermetic guard, one within the other, has the guards of both."""
    code = TRY + "try:\n    open('made', 'w')\nexcept OSError:\n    pass\n"
    inner = [
        *[python, str(HOTENV), "hermetic", "--fs-readonly=/", "--trace"],
        *["--", python, "-c", code],
    ]
    env = {"XDG_RUNTIME_DIR": guards_runtime, "PATH": "/usr/bin"}
    outer = f"import subprocess; subprocess.run({inner!r}, env={env!r})"
    done = guarded("--no-network --trace", outer, python)
    reasons = sorted(line.rsplit("=", 1)[1] for line in _blocked_lines(done))
    assert reasons == ["fs-readonly", "no-network"], done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_no_subinterpreter_is_made(guarded, python):
    """A guarded Python makes no subinterpreter, which would have no hook; to ask is no offence."""
    code = textwrap.dedent("""
        import concurrent.futures, importlib
        for name in ("_interpreters", "_xxsubinterpreters"):
            try:
                importlib.import_module(name).create()
            except ImportError:
                print("none")
        """)
    done = guarded("--no-network --trace", code, python)
    assert done.stdout == "none\nnone\n", done.stderr
    assert "reason=hermetic" in done.stderr
    assert done.returncode == 0


# -- what traces show --


TRACED_ENVIRONMENT = (
    b"TOKEN=sk-live/51H8=Vq0+x\n"
    b"URL=postgres://db.internal/pw-very-1234/\n"
    b"QUOTE=\"it's-a-secret\"\n"
    b"SHORT=ab\n"
    b'PEM="-----BEGIN KEY-----\\nMIIEvQIBADANBgkq\\nhkiG9w0BAQEFAASC\\n-----END KEY-----"\n'
)

# Parts of these values, in each spelling in which the actions below use them.
TRACED_VALUES = [
    "sk-live",
    "pw-very",
    "a-secret",
    "hkiG9w0BAQEF",
    "MIIEvQIBADAN",
    "c2stbGl2ZS81",
    "51H8%3D",
]

# An action on `e`, the environment, and what the trace shows of it.
TRACED = [
    ("subprocess.run(['x', 'a-' + e['TOKEN'] + '-z', 'ab'])",
     "subprocess.run argv=['x','a-[hidden:TOKEN]-z','ab']"),
    ("socket.create_connection(('it.sk-live/51H8=Vq0+x', 1))",
     "socket.create_connection host=it.[hidden:TOKEN]"),
    ("t = e.pop('TOKEN'); os.system('echo ' + t)",
     "os.system argv=['echo [hidden:TOKEN]']"),
    ("subprocess.run(['x', base64.b64encode(e['TOKEN'].encode()).decode()])",
     "argv=['x','[hidden:TOKEN]']"),
    ("subprocess.run(['x', urllib.parse.quote(e['TOKEN'], '')])", "argv=['x','[hidden:TOKEN]']"),
    ("open('/nowhere/' + e['QUOTE'], 'w')", "open path=/nowhere/[hidden:QUOTE]"),
    ("os.system('echo ' + shlex.quote(e['QUOTE']))", "[hidden:QUOTE]"),
    ("sqlite3.connect(e['URL'])", "[hidden:URL]"),
    ("subprocess.run(['x', e['PEM'].split(chr(10))[2]])", "argv=['x','[hidden:PEM]']"),
    ("subprocess.run(['x', e['PEM']])", "argv=['x','[hidden:PEM]']"),
]


@pytest.fixture(scope="module")
def traced_session():
    """A Project with a session that holds TRACED_ENVIRONMENT."""
    yield from standing(TRACED_ENVIRONMENT)


def _trace_action(project, python, action):
    """Run an action on the environment of a session, under all guards and with a trace."""
    code = (
        "import base64, os, shlex, socket, sqlite3, subprocess, urllib.parse\n"
        "e = dict(os.environ)\n"
        "try:\n"
        f"    {action}\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    return _run_guarded(project, "--profile=all", "--trace", "--", python, "-c", code)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("action, shown", TRACED)
def test_trace_hides_a_value_in_any_spelling(traced_session, python, action, shown):
    """A trace and an error have the name of a variable in place of its value, however a program
    has spelled the value."""
    done = _trace_action(traced_session, python, action)
    assert len(_blocked_lines(done)) == 1, done.stderr
    assert shown in _blocked_lines(done)[0]
    assert "blocked by hotenv" in done.stdout
    for value in TRACED_VALUES:
        assert value not in done.stdout
        assert value not in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("command", ["hermetic", "run"])
def test_trace_hides_what_has_a_secret_name(traced_session, command):
    """A trace hides the value of a variable with the name of a secret, which no session holds."""
    code = "import os; os.system('echo ' + os.environ['MY_API_KEY'])"
    words = [command, SUB, "--trace", "--", OLDEST_PYTHON, "-c", code]
    done = traced_session.hotenv(*words, env={"MY_API_KEY": "sk-live-1234"})
    assert b"[hidden:MY_API_KEY]" in done.stderr
    assert b"sk-live" not in done.stderr


@pytest.mark.parametrize(
    "redirects",
    [
        "os.dup2(os.open('elsewhere', os.O_CREAT | os.O_WRONLY), 2)\n",
        "os.closerange(3, 100)\n"
        "fds = [os.open('elsewhere', os.O_CREAT | os.O_WRONLY) for _ in range(70)]\n",
    ],
    ids=["another stderr", "closed descriptors"],
)
def test_trace_goes_to_the_first_stderr(guarded, tmp_path, redirects):
    """The trace goes to the stderr of the start, never into a file that the program has opened."""
    done = guarded("--no-network --trace", "import os\n" + redirects + TRY)
    assert len(_blocked_lines(done)) == 1, done.stderr
    assert (tmp_path / "elsewhere").read_text() == ""


def _refused_words(done):
    """Return what the traceback of a guarded program says of the refusal that ended it."""
    found = done.stderr.rpartition("PermissionError: ")[2]
    assert "blocked by hotenv" in found, done.stderr
    return found


def test_refused_read_names_the_ways_out(guarded, tmp_path):
    """An error of a refused read says below which path is read, and which options allow more."""
    found = _refused_words(guarded(FS, "open('/etc/passwd')"))
    assert str(tmp_path) in found
    assert "--fs-readonly=PATH" in found
    assert re.search(r"=/(?!\w)", found), found


def test_refused_write_names_the_way_out(guarded):
    """An error of a refused write says which option allows it."""
    assert "--fs-write PATH" in _refused_words(guarded(FS, "open('new', 'w')"))


PYTHON_STARTS_PYTHON = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])"


@pytest.mark.parametrize(
    "guards, count",
    [(LOCAL + " --trace", 1), (LOCAL, 1), (IMP + " --trace", 0), ("--allow-localhost", 0)],
)
def test_what_only_the_hook_holds_is_said(guarded, guards, count):
    """One line, not one for each child, says that the hook alone holds the network."""
    done = guarded(guards, PYTHON_STARTS_PYTHON, python=sys.executable)
    assert done.stderr.count("for Python code only: no-network") == count, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    "guards, is_told",
    [
        (LOCAL + " --trace", False),
        (LOCAL, False),
        (IMP + " --trace", False),
        ("--allow-localhost", True),
    ],
)
def test_allowance_without_a_guard_is_told(guarded, guards, is_told):
    """An allowance turns no guard on, and hotenv says so where no guard is on."""
    done = guarded(guards, PYTHON_STARTS_PYTHON, python=sys.executable)
    assert ("no guard is on" in done.stderr) == is_told, done.stderr
    assert done.returncode == 0


# -- threads, forks and signals --


@pytest.mark.parametrize("python", PYTHONS)
def test_fork_beside_busy_threads_is_guarded(guarded, python):
    """A fork is guarded, also when other threads were in the middle of a check."""
    code = textwrap.dedent("""
        import os, socket, subprocess, threading

        def begin(work):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            return threads

        def start_processes():
            for _ in range(8):
                subprocess.run(["true"])

        def connect():
            try:
                reached.append(socket.create_connection(("127.0.0.1", PORT), 1))
            except PermissionError:
                pass

        reached = []
        statuses = set()
        busy = begin(start_processes)
        for _ in range(25):
            pid = os.fork()
            if not pid:
                for thread in begin(connect):
                    thread.join()
                os._exit(len(reached))
            statuses.add(os.waitpid(pid, 0)[1])
        for thread in busy:
            thread.join()

        # A fork ends with 2 for what was blocked, or with 0 if it has not come to that.
        print(statuses - {0, 2 << 8})
        """)
    with Ears() as ears:
        # Under --allow-domain the kernel leaves connecting to the hook.
        guards = "--no-network --allow-domain x.test"
        done = guarded(guards, code.replace("PORT", str(ears.port)), python)
        assert done.stdout == "set()\n", done.stderr
        assert ears.reached() == []


def test_signal_handler_within_a_check_is_guarded(guarded):
    """A signal handler that interrupts a check is guarded itself."""
    code = textwrap.dedent("""
        import signal, socket, time
        tried, reached = [], []

        def handler(*_):
            tried.append(1)
            try:
                reached.append(socket.socket().connect_ex(("127.0.0.1", 9)))
            except PermissionError:
                pass

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        give_up = time.monotonic() + 30
        while len(tried) < 200 and time.monotonic() < give_up:
            try:
                open("/etc/passwd")
            except PermissionError:
                pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(tried) >= 200, reached)
        """)
    done = guarded("--no-network --allow-domain x.test --fs-readonly", code, NEWEST_PYTHON)
    assert done.stdout == "True []\n", done.stderr


# -- what a guarded program shows of hotenv --


def _run_script_guarded(runtime, tmp_path, code, target, **options):
    """Run the script it.py, with this code, by a guarded target; return a CompletedProcess."""
    (tmp_path / "it.py").write_text(code)
    words = [sys.executable, str(HOTENV), "hermetic", ANY, "--fs-write=.", "--", *target]
    return output_of(words, runtime, tmp_path, **options)


def _check_shows_nothing_of_hotenv(done):
    """Fail if the output of a program names a file of hotenv."""
    for shown in (done.stdout, done.stderr):
        assert "hotenv.py" not in shown
        assert "sitecustomize" not in shown


@pytest.mark.parametrize(
    "code, target",
    [
        ("def f():\n    open('/made', 'w')\nf()\n", [sys.executable, "it.py"]),
        ("open('/made', 'w')\n", ["./it.py"]),
        ("import os\nos.execve('/nowhere/x', ['x'], {})\n", [sys.executable, "it.py"]),
    ],
    ids=["bootstrapped", "in-process", "patched function"],
)
def test_traceback_shows_nothing_of_hotenv(guards_runtime, tmp_path, code, target):
    """The traceback of a guarded program has no line of a file of hotenv."""
    done = _run_script_guarded(guards_runtime, tmp_path, code, target)
    assert "Traceback" in done.stderr
    _check_shows_nothing_of_hotenv(done)


def test_pdb_shows_nothing_of_hotenv(guards_runtime, tmp_path):
    """The stack that pdb shows in a guarded program has no line of a file of hotenv."""
    code = "import pdb\nprint(__file__)\npdb.Pdb(nosigint=True).set_trace()\nprint(1)\n"
    done = _run_script_guarded(
        guards_runtime,
        tmp_path,
        code,
        [sys.executable, "it.py"],
        stdin=None,
        input="where\ncontinue\n",
    )
    assert "it.py" in done.stdout
    _check_shows_nothing_of_hotenv(done)


def test_coverage_shows_nothing_of_hotenv(guards_runtime, tmp_path):
    """Coverage of a guarded program has no line of a file of hotenv."""
    if importlib.util.find_spec("coverage") is None:
        pytest.skip("coverage is not installed")
    code = (
        "import os\n"
        "os.close(os.open('.', os.O_RDONLY))\n"
        "open('/dev/null', 'w').close()\n"
        "os.path.exists('x') or os.mkfifo\n"
    )
    coverage = [sys.executable, "-m", "coverage"]
    target = [*coverage, "run", "--data-file=x", "it.py"]
    done = _run_script_guarded(guards_runtime, tmp_path, code, target)
    _check_shows_nothing_of_hotenv(done)

    report = output_of([*coverage, "report", "--data-file=x"], guards_runtime, tmp_path)
    assert "it.py" in report.stdout
    assert "hotenv" not in report.stdout


# -- guards of a session --


@only_linux
def test_left_out_value_is_not_in_memory(project, guards_runtime):
    """What --only left out is not in the memory of a target of hotenv's own environment."""
    (project.dir / "it.py").write_text(
        textwrap.dedent("""
            import re

            # This pattern does not find itself.
            pattern = re.compile(b"left.out.valu[e]")
            found = 0
            memory = open("/proc/self/mem", "rb")
            for line in open("/proc/self/maps"):
                begin, end = [int(word, 16) for word in line.split()[0].split("-")]
                if " rw" in line and "vvar" not in line:
                    memory.seek(begin)
                    found += len(pattern.findall(memory.read(end - begin)))
            print(found)
            """)
    )
    project.serve(b"ONE=1\nTWO=left-out-value\n")
    # A Python with -S never runs a target in its own process.
    project.program = [sys.executable, guards_runtime + "/installed"]
    done = _run_guarded(project, "--only", "ONE", NET, "--", "./it.py")
    assert done.stdout == "0\n", done.stderr


@only_linux
def test_session_configures_no_guard(project):
    """Variables of a session are not taken for the configuration of the guards."""
    project.serve(b"HERMETIC_FLAGS=--allow-localhost\nHOTENV_GUARDS=\nPYTHONPATH=/nowhere\n")
    code = CONNECT.replace("0.1.2.3", "127.0.0.1")
    done = _run_guarded(project, NET, "--trace", "--", OLDEST_PYTHON, "-c", code)
    assert len(_blocked_lines(done)) == 1, done.stderr
    assert done.returncode == 2


# ==== hermetic host ===============================================================================
# This section shows which guards are asked for, what a target is, and how a target is started.


# -- what a target is --


SHEBANGS = [
    "#!PYTHON",
    "#!PYTHON -s",
    "#!PYTHON -sE",
    "#!PYTHON -E",
    "#!PYTHON -I",
    "#!PYTHON -S",
    "#!/usr/bin/env python3",
    "#!/usr/bin/env -S python3 -I",
    "#!/usr/bin/env -S python3 -s -E",
    # pip and uv write these where a path is too long for a first line, or relative to the script.
    "#!/bin/sh\n'''exec' \"PYTHON\" \"$0\" \"$@\"\n' '''",
    "#!/bin/sh\n'''exec' \"PYTHON\" -E \"$0\" \"$@\"\n' '''",
    "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' "
    '\"$0\" \"$@\"\n\' \'\'\'',
]


@pytest.fixture
def guards_tool(guards_venvs, guards_runtime):
    """guards_tool(shebang): install a script in a virtual environment, and return a command line
    for it, and the environment in which to run that."""
    place = guards_venvs[0] / "bin"
    tool = place / "tool"

    def install(shebang):
        text = textwrap.dedent(f"""
            import sys
            print(sys.argv)
            print(sys.flags.isolated, sys.flags.ignore_environment, sys.flags.no_site)
            print(__file__, __name__)
            print(sys.prefix, flush=True)
            {CONNECT}
            """)
        executable(tool, shebang.replace("PYTHON", str(place / "python3")) + text)
        env = environment(guards_runtime, PATH=f"{place}:{os.environ['PATH']}")
        return ["tool", "--flag", "a b", "--", ""], env

    yield install
    with contextlib.suppress(FileNotFoundError):
        tool.unlink()


@pytest.mark.parametrize("shebang", SHEBANGS)
def test_shebang_of_any_form_is_guarded(hermetic, guards_tool, shebang):
    """A script is guarded, whatever form its first line has."""
    words, env = guards_tool(shebang)
    done = hermetic("--no-network --trace", *words, python=NEWEST_PYTHON, env=env)
    assert _blocked_lines(done) == [CONNECT_BLOCKED], done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("shebang", SHEBANGS)
def test_shebang_of_any_form_keeps_its_meaning(
    hermetic, guards_tool, guards_runtime, tmp_path, shebang
):
    """A guarded script has the arguments, the options and the Python that it has without guards."""
    words, env = guards_tool(shebang)
    bare = output_of(words, guards_runtime, tmp_path, env)
    assert bare.stdout.count("\n") == 4, bare.stderr
    assert bare.returncode in (0, 1), bare.stderr
    done = hermetic("--no-network", *words, python=NEWEST_PYTHON, env=env)
    assert done.stdout == bare.stdout, done.stderr


# Guards, a target, and the text of the script ./it.
REFUSED_TARGETS = [
    # The kernel cannot hold these guards, and a program that is no Python has no hook.
    (IMP, ["/bin/ls"], ""),
    ("--profile=all", ["./it"], "#!/bin/sh\necho ran\n"),
    # These Pythons could not be started on the loader.
    (IMP, [sys.executable, "-I"], ""),
    (IMP, ["./it"], "#!/usr/bin/env -i python3\nprint('ran')\n"),
    (IMP, ["./it"], "#!/usr/bin/python3 -mthis\n"),
    # There is no such program.
    (NET, ["./missing"], ""),
    (NET, ["no-such-target-anywhere"], ""),
    (NET, [""], ""),
    (NET, [], ""),
    # The guards themselves are wrong.
    (ANY + " --fs-write=", ["true"], ""),
    (NET + " --allow-domain=.", ["true"], ""),
]


@pytest.mark.parametrize("guards, target, text", REFUSED_TARGETS)
def test_what_cannot_be_guarded_is_not_run(hermetic, tmp_path, guards, target, text):
    """A target that cannot be held to its guards is refused, with 1, and not run."""
    executable(tmp_path / "it", text)
    done = hermetic(guards, *target, python=NEWEST_PYTHON)
    _guards_refusal(done, 1)
    assert done.stdout == ""


TARGET_FILES = {
    "pkg/__init__.py": "",
    "pkg/__main__.py": "import sys; print('package', sys.argv[1:]); sys.exit(4)\n",
    "pkg/mod.py": (
        "import sys\n"
        "def main(): print(sys.argv, __name__); return 7\n"
        "data = 3\n"
        "class Deep: main = staticmethod(main)\n"
        "if __name__ == '__main__': print('module', sys.argv[1:]); sys.exit(5)\n"
    ),
    "plain.py": "import sys, pkg; print('plain', sys.argv, __file__, __name__); sys.exit(3)\n",
    "away.py": "import os; os.chdir('/'); print(os.path.isabs(__file__), open(__file__).read(6))\n",
    "typed.py": "def f(x: int): pass\nprint(f.__annotations__)\n",
}

# A target, its exit status, and its output. PYTHON is a Python, HERE the current directory.
TARGETS = [
    # A callable, or a module where the name behind the colon is none.
    ("pkg.mod:main a -- -x", 7, "['pkg.mod:main', 'a', '--', '-x'] pkg.mod\n"),
    ("pkg.mod:Deep.main a", 7, "['pkg.mod:Deep.main', 'a'] pkg.mod\n"),
    ("pkg.mod:data a", 5, "module ['a']\n"),
    # A module, or a package.
    ("pkg.mod -- a", 5, "module ['--', 'a']\n"),
    ("pkg a", 4, "package ['a']\n"),
    ("./pkg a", 4, "package ['a']\n"),
    ("away", 0, "True import\n"),
    # A script, which is compiled as it is; its path needs no slash.
    ("./plain.py a", 3, "plain ['./plain.py', 'a'] HERE/plain.py __main__\n"),
    ("typed.py", 0, "{'x': <class 'int'>}\n"),
    ("away.py", 0, "True import\n"),
    ("./away.py", 0, "True import\n"),
    # A Python with its own arguments.
    ("PYTHON -uWerror -c print(__import__('sys').argv) a", 0, "['-c', 'a']\n"),
    ("PYTHON -m pkg.mod a", 5, "module ['a']\n"),
    ("PYTHON -X dev plain.py", 3, "plain ['plain.py'] HERE/plain.py __main__\n"),
    ("PYTHON away.py", 0, "True import\n"),
    ("PYTHON -I away.py", 0, "True import\n"),
]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("target, status, output", TARGETS)
def test_target_runs_as_by_itself(hermetic, tmp_path, python, target, status, output):
    """A target by name runs with the arguments, the names and the status of a bare run."""
    (tmp_path / "pkg").mkdir()
    for name, text in TARGET_FILES.items():
        (tmp_path / name).write_text(text)
    words = [word.replace("PYTHON", python) for word in target.split()]
    done = hermetic("--no-network", *words, python=python)
    # Python 3.9 and later make the path of a script absolute, and leave its `./` as it is.
    shown = done.stdout.replace("/./", "/")
    assert shown == output.replace("HERE", str(tmp_path)), done.stderr
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize("number", [0, 1], ids=["oldest", "newest"])
@pytest.mark.parametrize("flags", [[], ["-I"], ["-S"]], ids=["no flag", "-I", "-S"])
@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "of another Python"])
def test_console_script_has_hotenvs_process(
    guards_venvs, guards_runtime, tmp_path, number, flags, is_beside
):
    """A console script runs in the process of hotenv, with the prefix of its own environment and
    without hotenv among its modules."""
    venv = guards_venvs[number]
    executable(
        venv / "bin" / "beside",
        f"#!/bin/sh\n'''exec' \"{venv}/bin/python3\" \"$0\" \"$@\"\n' '''\n"
        "import os, sys; print(os.getpid(), sys.prefix, 'hotenv' in sys.modules, sep='\\n')\n",
    )
    if is_beside:
        python = venv / "bin" / "python3"
        target = "beside"
    else:
        python = guards_venvs[1 - number] / "bin" / "python3"
        target = str(venv / "bin" / "beside")

    words = [guards_runtime + "/installed", "hermetic", "--no-network", "--", target]
    started = subprocess.Popen(
        [str(python), *flags, *words],
        cwd=str(tmp_path),
        env=environment(guards_runtime),
        stdout=PIPE,
    )
    output = started.communicate(timeout=PATIENCE)[0].decode().splitlines()
    assert output == [str(started.pid), str(venv), "False"]


@pytest.mark.parametrize(
    "guards, is_blocked", [(NET, True), (IMP, False), (NET + " " + SUB, True)]
)
def test_script_that_stands_for_a_python(hermetic, guards_runtime, tmp_path, guards, is_blocked):
    """A script that is called python3, as pyenv has one, is asked for the Python that it starts."""
    executable(tmp_path / "python3", f'#!/usr/bin/env bash\nexec "{NEWEST_PYTHON}" "$@"\n')
    env = environment(guards_runtime, PATH=f"{tmp_path}:{os.environ['PATH']}")
    code = "import sys; print(sys.version_info[1]); " + CONNECT
    done = hermetic(guards, "python3", "-c", code, python=OLDEST_PYTHON, env=env)
    assert done.stdout == f"{max(SUPPORTED_PYTHONS)}\n", done.stderr
    assert (done.returncode == 2) == is_blocked, done.stderr


# -- how a target is started --


@pytest.mark.parametrize("python", PYTHONS)
def test_sitecustomize_that_was_there_still_runs(guarded, guards_runtime, tmp_path, python):
    """A sitecustomize of the user runs after the guards are on, and can be imported by its name."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text(
        f"try:\n    {CONNECT}\nexcept PermissionError:\n    print('guarded')\n"
    )
    env = environment(guards_runtime, PYTHONPATH=str(theirs))
    code = "import sitecustomize; print(sitecustomize.__file__)"
    done = guarded("--no-network", code, python, env=env)
    assert done.stdout == f"guarded\n{theirs}/sitecustomize.py\n", done.stderr


@pytest.mark.parametrize("before", [{}, {"PYTHONPATH": ""}], ids=["unset", "empty"])
def test_pythonpath_gets_no_empty_entry(hermetic, guards_runtime, tmp_path, before):
    """The PYTHONPATH of a guarded program has no empty entry, which would mean the directory it is
    in."""
    (tmp_path / "random.py").write_text("raise SystemExit('shadowed')\n")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    executable(
        scripts / "show",
        f"#!{OLDEST_PYTHON}\n"
        "import random, os, sys; print(os.environ['PYTHONPATH'], '' in sys.path)\n",
    )
    env = environment(guards_runtime, **before)
    done = hermetic("--no-network", scripts / "show", python=NEWEST_PYTHON, env=env)
    path, has_empty = done.stdout.split()
    assert os.pathsep not in path
    assert has_empty == "False"


def test_grandchild_has_paths_with_quotes(guards_runtime, tmp_path):
    """A path with quotes and blanks in an option means the same for a child of a child."""
    odd = tmp_path / 'a "read": b'
    odd.mkdir()
    code = (
        f"open({str(odd / 'in')!r}, 'w').close()\n"
        "try:\n    open('/etc/passwd')\nexcept PermissionError:\n    print('refused')\n"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], env={{}})"
    guards = ["--fs-readonly", "--fs-write", odd]
    words = [OLDEST_PYTHON, guards_runtime + "/installed", "hermetic", *guards, "--"]
    done = output_of([*words, OLDEST_PYTHON, "-c", parent], guards_runtime, tmp_path)
    assert done.stdout == "refused\n", done.stderr
    assert (odd / "in").exists()


def test_spawned_worker_may_read_its_script(hermetic, tmp_path):
    """Under --fs-readonly a worker that multiprocessing spawns may read the script of the target,
    though that is outside of the current directory."""
    (tmp_path / "here").mkdir()
    (tmp_path / "mp.py").write_text(
        "import multiprocessing as m\n"
        "if __name__ == '__main__':\n"
        "    process = m.get_context('spawn').Process(target=print, args=('worked',))\n"
        "    process.start()\n"
        "    process.join()\n"
        "    raise SystemExit(process.exitcode)\n"
    )
    done = hermetic("--fs-readonly", "../mp.py", cwd=tmp_path / "here")
    assert done.stdout == "worked\n", done.stderr
    assert done.returncode == 0


# -- which guards are asked for --


NET_ON = {"no-network": True}
NET_BUT_LOCAL = {"no-network": True, "allow-localhost": True}
TOML_ELSEWHERE = "[tool.other]\nno-network = true\n"
TOML_INLINE = "[tool]\nhermetic = {no-network = true}\n"
TOML_INLINE_TOOL = "tool = {hermetic = {no-network = true}}\n"

# A configuration file (its guards, or the whole text of pyproject.toml), environment variables, and
# the command line; then what they block together, of what CONFIGURED_PROBE tries.
CONFIGURED = [
    # The file alone.
    ({}, {}, "", ""),
    (NET_ON, {}, "", "local"),
    ({"no_network": True}, {}, "", "local"),
    ({"no-network": False}, {}, "", ""),
    (NET_BUT_LOCAL, {}, "", ""),
    ({"no-network": True, "allow-domain": ["127.0.0.1"]}, {}, "", ""),
    ({"profile": "exec-deny"}, {}, "", "sub"),
    ({"fs-readonly": "/etc"}, {}, "", "write"),
    ({"fs-readonly": True}, {}, "", "write passwd"),
    ({"fs-readonly": True, "fs-write": ["."]}, {}, "", "passwd"),
    # A text that has no table of ours is not read, broken or not.
    ("[project\n", {}, "", ""),
    (TOML_ELSEWHERE, {}, "", ""),
    (TOML_INLINE, {}, "", "local"),
    (TOML_INLINE_TOOL, {}, "", "local"),
    # The command line closes what the file allows, and opens what the file closes.
    (NET_BUT_LOCAL, {}, "--no-network", "local"),
    (NET_ON, {}, "--allow-localhost", ""),
    ({"allow-localhost": True}, {}, "--no-network", "local"),
    ({"allow-domain": ["127.0.0.1"]}, {}, "--no-network", "local"),
    (NET_ON, {}, "--no-subprocess", "local sub"),
    ({"profile": ["exec-deny"]}, {}, "--profile=strict-imports", "sub ctypes"),
    ({"fs-readonly": True}, {}, "--fs-readonly=/etc", "write"),
    ({"fs-readonly": "/etc"}, {}, "--fs-readonly", "write passwd"),
    ({"fs-write": ["."]}, {}, "--fs-readonly=/", "write"),
    ({"fs-readonly": "/"}, {}, "--fs-write .", ""),
    # The environment stands above the file, and below the command line.
    (NET_BUT_LOCAL, {"HERMETIC_FLAGS": "--no-network"}, "", "local"),
    (NET_ON, {"HERMETIC_FLAGS": "--allow-localhost"}, "", ""),
    ({}, {"HERMETIC_FLAGS": "--no-network --allow-localhost"}, "--no-subprocess", "sub"),
    ({}, {"HERMETIC_FLAGS": "--allow-localhost"}, "--no-network", "local"),
    ({}, {"HERMETIC_PROFILE": "exec-deny,strict-imports"}, "", "sub ctypes"),
    ({}, {"HERMETIC_PROFILE": "net-hermetic"}, "", ""),
    ({}, {"HERMETIC_FS_ROOT": "/etc"}, "", "write"),
    ({}, {"HERMETIC_FS_ROOT": "/"}, "--fs-readonly", "write passwd"),
    # The profiles.
    ({}, {}, "--profile net-hermetic", ""),
    ({}, {}, "--profile exec-deny", "sub"),
    ({}, {}, "--profile strict-imports", "ctypes"),
    ({}, {}, "--profile fs-readonly", "write passwd"),
    ({}, {}, "--profile all", "local sub write ctypes passwd"),
]

# This program prints the name of each action that is blocked.
CONFIGURED_PROBE = """\
import socket, subprocess
actions = {
    "local": lambda: socket.create_connection(("127.0.0.1", 9), 1),
    "sub": lambda: subprocess.run("true"),
    "write": lambda: open("probe", "w").close(),
    "ctypes": lambda: __import__("ctypes"),
    "passwd": lambda: open("/etc/passwd").close(),
}
for name, act in actions.items():
    try:
        act()
    except (PermissionError, ImportError):
        print(name)
    except ConnectionRefusedError:
        pass
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_unrelated_pyproject_is_not_parsed(hermetic, tmp_path, python):
    """A pyproject.toml without guards is no error, also where Python reads no TOML."""
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'hermetic'\n[tool.black]\nline-length = 99\n# [tool.hermetic]\n"
    )
    done = hermetic("", python, "-c", "print('ran')", python=python)
    assert done.stdout == "ran\n", done.stderr


def _configure_guards(place, file, config):
    """Write the configuration of a case: a dict of guards into `file`, a text to pyproject.toml."""
    if isinstance(config, str):
        (place / "pyproject.toml").write_text(config)
    elif config:
        text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items())
        if file == "pyproject.toml":
            text = "[project]\nname = 'x'\n[tool.hermetic]\n" + text
        (place / file).write_text(text)


def _configured_cases():
    """Return the rows of CONFIGURED with one of the two files, in turn; the long form has both."""
    files = ["HERMETIC.toml", "pyproject.toml"]
    return [
        pytest.param(file, *row, id=f"{number}-{file}")
        for number, row in enumerate(CONFIGURED)
        for file in (files if FULL else [files[number % 2]])
    ]


@pytest.mark.skipif(max(SUPPORTED_PYTHONS) < 11, reason="no Python that reads TOML is installed")
@pytest.mark.parametrize("file, config, env, line, blocked", _configured_cases())
def test_sources_of_guards_add_up(
    hermetic, guards_runtime, tmp_path, file, config, env, line, blocked
):
    """Guards of all sources add up, and no allowance opens what a higher source has closed."""
    (tmp_path / "probe.py").write_text(CONFIGURED_PROBE)
    _configure_guards(tmp_path, file, config)
    env = environment(guards_runtime, **env)
    done = hermetic(line, "./probe.py", python=NEWEST_PYTHON, env=env)
    assert done.stdout.split() == blocked.split(), done.stderr
    assert done.returncode == (2 if blocked else 0)


@pytest.mark.parametrize(
    "line",
    [
        "--no-network",
        "--no-such-guard --",
        "--no-net -- x",
        "--profile nothing -- x",
        "--fs-readonly= -- x",
        "--allow-domain= -- x",
        "--allow-domain http://x -- x",
    ],
)
def test_mistake_in_guards_is_refused(project, line):
    """A mistake in the options of `hermetic` is a usage error, which is 1 for that command."""
    refusal(called(project, "hermetic", *line.split()), 1)


@pytest.mark.parametrize("command, code", [("run", 2), ("hermetic", 1)])
@pytest.mark.parametrize(
    "file, content",
    [
        ("pyproject.toml", b"[tool.hermetic]\nno-netwrok = true\n"),
        ("pyproject.toml", b"[tool.hermetic]\nno-network = 3\n"),
        ("pyproject.toml", b"[tool.hermetic\n"),
        ("pyproject.toml", b"[tool]\nhermetic = 3\n"),
        ("pyproject.toml", b"\xff\xfe[tool.hermetic]"),
        ("pyproject.toml", b"[tool.hermetic]\nhelp = true\n"),
        ("pyproject.toml", b"[tool.hermetic]\nfs-readonly = true\nfs-write = [1]\n"),
        ("HERMETIC.toml", b"[hermetic]\nno-network = true\n"),
        ("HERMETIC.toml", b"allow-localhost = 'yes'\n"),
    ],
)
def test_mistake_in_configuration_is_refused(session, tmp_path, command, code, file, content):
    """A mistake in the configuration of guards is the usage error of the command, and nothing is
    run."""
    (tmp_path / file).write_bytes(content)
    words = [command, SUB, "--", sys.executable, "-c", "print('ran')"]
    env = {"HOTENV_SOCKET": session.socket_path()}
    done = called(session, *words, env=env, cwd=tmp_path)
    refusal(done, code)
    assert done.stdout == b""


# -- the files that guard a child --


@pytest.fixture
def fresh_guards(tmp_path):
    """A directory `base`, in which no program was guarded yet, and the environment `env` that has
    hotenv use it."""
    base = tmp_path / "hotenv"
    base.mkdir(0o700)
    return base, environment(tmp_path)


def _guards_home(base):
    """Return the one directory in `base` that holds files that guard a child."""
    homes = list(base.iterdir())
    assert len(homes) == 1, homes
    return homes[0]


def test_starts_side_by_side_are_all_guarded(guarded, fresh_guards, tmp_path):
    """Of many first starts at once, by two Pythons, none finds half a guard."""
    base, env = fresh_guards

    def start(number):
        return guarded(NET, CONNECT, PYTHONS[number % 2], env=env)

    with ThreadPoolExecutor(6) as pool:
        starts = list(pool.map(start, range(24 if FULL else 8)))
    failed = [done.stderr for done in starts if done.returncode != 2]
    assert failed == []


def test_full_disk_leaves_no_half_a_guard(guarded, fresh_guards):
    """A start on a full disk is refused, and leaves no file that a later start would take."""
    base, env = fresh_guards
    disk_is_full = limits(FSIZE=(9999, 9999))
    done = guarded(NET, "pass", env=env, preexec_fn=disk_is_full)
    assert done.returncode == 1
    left = {path.name for path in _guards_home(base).iterdir()}
    assert left - {"__pycache__"} == set()


def test_guards_of_other_versions_go(guarded, fresh_guards):
    """Files of other versions that were not used for a week go; nothing else does."""
    base, env = fresh_guards
    day = 86400
    for name, age in ("guards-00000001", 8 * day), ("guards-00000002", 6 * day), ("other", 8 * day):
        (base / name).mkdir()
        (base / name / "hotenv.py").write_text("")
        os.utime(str(base / name), (time.time() - age, time.time() - age))

    for _ in range(2):
        assert guarded(NET, "pass", env=env).returncode == 0
        left = {path.name for path in base.iterdir()}
        assert {"guards-00000002", "other"} < left
        assert "guards-00000001" not in left
        assert len(left) == 3


def test_start_says_that_its_guards_are_in_use(guarded, fresh_guards):
    """Each start renews the time stamp by which unused files are found."""
    base, env = fresh_guards
    guarded(NET, "pass", env=env)
    home = _guards_home(base)
    os.utime(str(home), (0, 0))
    clock_step = 1  # seconds by which the clock of a file system may be behind
    before = time.time() - clock_step
    guarded(NET, "pass", env=env)
    assert home.stat().st_mtime >= before


@pytest.mark.parametrize("python", PYTHONS)
def test_guards_have_no_other_cache(guarded, fresh_guards, tmp_path, python):
    """A guarded Python has no cache of bytecode but the usual one, which is closed to it."""
    base, env = fresh_guards
    env = {**env, "PYTHONPYCACHEPREFIX": str(tmp_path / "cache")}
    code = "import sys; print(sys.pycache_prefix)"
    assert guarded(NET, code, python, env=env).stdout == "None\n"


def test_guards_are_compiled_once_for_each_python(guarded, fresh_guards, tmp_path):
    """The files that guard a child are compiled for each Python, beside themselves, also where the
    environment wants no bytecode there."""
    base, env = fresh_guards
    env = {**env, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    for python in (*PYTHONS, *PYTHONS):
        assert guarded(NET, "pass", python, env=env).returncode == 0
    compiled = list((_guards_home(base) / "__pycache__").iterdir())
    assert len(compiled) == 2 * len(set(PYTHONS)), compiled


@pytest.mark.parametrize("taken", ["hotenv.py", "sitecustomize.py"])
def test_missing_guards_are_put_back(guarded, fresh_guards, taken):
    """A start puts back what is missing of its files: a cleaner of /tmp may have taken that."""
    base, env = fresh_guards
    guarded(NET, "pass", env=env)
    (_guards_home(base) / taken).unlink()
    shutil.rmtree(str(_guards_home(base) / "__pycache__"))
    done = guarded(NET, CONNECT, env=env)
    assert done.returncode == 2, done.stderr
    assert (_guards_home(base) / taken).exists()


def test_no_child_starts_without_its_guards(guarded, fresh_guards):
    """Where the files that guard a child are gone, no child is started."""
    base, env = fresh_guards
    code = (
        "import os, subprocess, sys\n"
        f"os.system('rm -r {base}/guards-*')\n"
        "subprocess.run([sys.executable, '-c', 'print(1)'], env={})\n"
    )
    done = guarded(NET, code, NEWEST_PYTHON, env=env)
    assert "are gone" in done.stderr
    assert done.stdout == ""
    assert done.returncode == 2


@pytest.mark.parametrize(
    "variables",
    [{"HOTENV_GUARDS": ""}, {"HOTENV_GUARDS": "no-network"}, {}],
    ids=["empty", "damaged", "unset"],
)
def test_damaged_guards_end_the_program(guarded, guards_runtime, tmp_path, variables):
    """A Python that finds the loader of guards, but no guards, ends before its first line."""
    home = guarded(NET, "import os; print(os.environ['PYTHONPATH'])").stdout.strip()
    env = environment(guards_runtime, PYTHONPATH=home, **variables)
    done = output_of([OLDEST_PYTHON, "-c", "print('ran')"], guards_runtime, tmp_path, env)
    assert "hotenv: cannot guard" in done.stderr
    assert done.stdout == ""
    assert done.returncode == 1


def test_hook_that_refuses_guards_ends_python(guarded, guards_venvs):
    """A Python in which an older audit hook refuses the guards' ends before its first line."""
    venv = guards_venvs[0]
    veto = _site_packages(venv) / "veto.pth"
    veto.write_text(
        "import sys; "
        "exec(\"def veto(e, a):\\n if e == 'sys.addaudithook': raise RuntimeError\\n"
        'sys.addaudithook(veto)")\n'
    )
    try:
        done = guarded(NET, "print('ran')", venv / "bin" / "python")
    finally:
        veto.unlink()
    assert "hotenv: cannot guard" in done.stderr
    assert done.stdout == ""
    assert done.returncode == 1


# -- real programs --


PROGRAMS = os.environ.get("HOTENV_TEST_PROGRAMS", "")

# Guards, the command line of an installed program, and a word of its output.
PROGRAMS_THAT_WORK = [
    (NET, "http --version", "."),
    (ANY, "http --version", "."),
    (NET, "pip --version", "pip"),
    (ANY, "pip list", "pytest"),
    (NET, "pytest -q test_it.py", "1 passed"),
    (IMP, "pytest -q test_it.py", "1 passed"),
]
PROGRAMS_THAT_CONNECT = [
    (NET, "http --ignore-stdin http://0.1.2.3/", ""),
    (NET, "pytest -q test_net.py", "1 failed"),
]

# A script has one of these options in its first line: none, or -E, which pipx writes.
PROGRAM_FLAGS = ["", " -E"]

only_programs = pytest.mark.skipif(
    not PROGRAMS, reason="HOTENV_TEST_PROGRAMS names no venv with httpie, pytest and black"
)


def _program_cases(rows):
    """Return rows with one of PROGRAM_FLAGS, in turn; the long form has each row with both."""
    return [
        (flag, *row)
        for number, row in enumerate(rows)
        for flag in (PROGRAM_FLAGS if FULL else [PROGRAM_FLAGS[number % 2]])
    ]


@pytest.fixture
def guarded_program(hermetic, guards_runtime, tmp_path):
    """guarded_program(guards, command, flag): run an installed program under guards."""

    def run(guards, command, flag):
        name, *words = command.split()
        text = Path(PROGRAMS, "bin", name).read_text().split("\n", 1)[1]
        executable(tmp_path / name, f"#!{PROGRAMS}/bin/python{flag}\n{text}")
        (tmp_path / "test_it.py").write_text("def test_one(): assert True\n")
        (tmp_path / "test_net.py").write_text(f"def test_one():\n    {CONNECT}\n")
        env = environment(guards_runtime, HOME=str(tmp_path))
        return hermetic(guards, f"./{name}", *words, python=f"{PROGRAMS}/bin/python", env=env)

    return run


@only_programs
@pytest.mark.parametrize("flag, guards, command, word", _program_cases(PROGRAMS_THAT_WORK))
def test_real_program_works_under_guards(guarded_program, flag, guards, command, word):
    """A program that people use works under guards."""
    done = guarded_program(guards, command, flag)
    assert word in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr


@only_programs
@pytest.mark.parametrize("flag, guards, command, word", _program_cases(PROGRAMS_THAT_CONNECT))
def test_real_program_is_held_by_guards(guarded_program, flag, guards, command, word):
    """A program that people use ends with 2 where it does what its guards close."""
    done = guarded_program(guards, command, flag)
    assert word in done.stdout, done.stderr
    assert done.returncode == 2, done.stderr


# ==== guards: programs without a hook =============================================================
# This section shows what a program that is no Python under its hook can do under guards: as the
# target itself, and as whatever a guarded Python starts. The program is a Python with -I and -S,
# which loads no hook and can make every system call.

# What such a program does under --no-network: a name, and code that raises OSError where it is
# refused. In the code PORT is a port of this machine that listens, STREAM, DGRAM and PACKET are
# sockets with a path, ABSTRACT is one without, and PID is a process outside.
NETWORK_DEEDS = {
    "connects by TCP": "socket.create_connection(('127.0.0.1', PORT), 5)",
    "connects by TCP, not blocking": (
        "s = socket.socket(); s.setblocking(False); assert s.connect_ex(('127.0.0.1', PORT)) "
        "in (0, errno.EINPROGRESS), 'refused'"
    ),
    "sends by UDP": "socket.socket(AF_INET, SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "connects by UDP": "socket.socket(AF_INET, SOCK_DGRAM).connect(('127.0.0.1', PORT))",
    "sends a message by UDP": (
        "socket.socket(AF_INET, SOCK_DGRAM).sendmsg([b'x'], [], 0, ('127.0.0.1', PORT))"
    ),
    "serves all machines": "s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen()",
    "serves all machines without bind": "socket.socket().listen()",
    "serves this machine": "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
    "receives by UDP": "socket.socket(AF_INET, SOCK_DGRAM).bind(('0.0.0.0', 0))",
    "has a socket of TCP": "socket.socket()",
    "has a socket of UDP": "socket.socket(AF_INET, SOCK_DGRAM)",
    "has a socket of TCP over IPv6": "socket.socket(socket.AF_INET6)",
    "connects to a unix socket": "socket.socket(AF_UNIX).connect(STREAM)",
    "connects to a unix socket by a short path": (
        "os.chdir(os.path.dirname(STREAM)); s = socket.socket(AF_UNIX)\n"
        "s.connect(os.path.basename(STREAM))"
    ),
    "connects to a unix socket of packets": (
        "socket.socket(AF_UNIX, socket.SOCK_SEQPACKET).connect(PACKET)"
    ),
    "sends to a unix socket": "socket.socket(AF_UNIX, SOCK_DGRAM).sendto(b'x', DGRAM)",
    "sends to a unix socket by a short path": (
        "os.chdir(os.path.dirname(DGRAM)); s = socket.socket(AF_UNIX, SOCK_DGRAM)\n"
        "s.sendto(b'x', os.path.basename(DGRAM))"
    ),
    "sends a message to a unix socket": (
        "socket.socket(AF_UNIX, SOCK_DGRAM).sendmsg([b'x'], [], 0, DGRAM)"
    ),
    "sends from a pair to a unix socket": (
        "socket.socketpair(AF_UNIX, SOCK_DGRAM)[0].sendto(b'x', DGRAM)"
    ),
    "sends a message from a pair to a unix socket": (
        "socket.socketpair(AF_UNIX, SOCK_DGRAM)[0].sendmsg([b'x'], [], 0, DGRAM)"
    ),
    "connects to a unix socket for datagrams": "socket.socket(AF_UNIX, SOCK_DGRAM).connect(DGRAM)",
    "connects to an abstract unix socket": "socket.socket(AF_UNIX).connect(ABSTRACT)",
    "serves a unix socket": "s = socket.socket(AF_UNIX); s.bind('made'); s.listen()",
    "serves a unix socket of a long path": (
        "s = socket.socket(AF_UNIX); s.bind(os.path.abspath('made too')); s.listen()"
    ),
    "serves an abstract unix socket": (
        "s = socket.socket(AF_UNIX); s.bind('\\0made-%d' % os.getpid()); s.listen()"
    ),
}
# The same, with a privilege or on a kernel that not every machine has.
RARE_NETWORK_DEEDS = {
    "has a raw socket": "socket.socket(AF_INET, socket.SOCK_RAW, 1)",
    "has a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "has a socket of a virtual machine": "socket.socket(socket.AF_VSOCK)",
    "has a socket of MPTCP": "socket.socket(AF_INET, socket.SOCK_STREAM, 262)",
    "has a socket of SCTP": "socket.socket(AF_INET, socket.SOCK_STREAM, 132)",
    "has a socket of bluetooth": "socket.socket(31, socket.SOCK_RAW, 1)",
    "has a socket of TIPC": "socket.socket(30, SOCK_DGRAM)",
    "has a ring": "import ctypes; assert ctypes.CDLL(None).syscall(425, 4, bytes(120)) >= 0",
    "sends with the connection": (
        "socket.socket().sendto(b'x', 1 << 29, ('127.0.0.1', PORT))"
    ),
    "reads another process's memory": "open('/proc/%d/mem' % PID, 'rb')",
    "writes another process's memory": "open('/proc/%d/mem' % PID, 'wb')",
    "traces another process": (
        "import ctypes; assert ctypes.CDLL(None).ptrace(16, PID, 0, 0) == 0, 'refused'"
    ),
    "takes another process's descriptor": (
        "import ctypes; c = ctypes.CDLL(None); f = c.syscall(434, PID, 0)\n"
        "assert c.syscall(438, f, 1, 0) >= 0, 'refused'"
    ),
}
UNIX_DEEDS = [name for name in NETWORK_DEEDS if "unix socket" in name]

# What such a program may do under any guard of the network.
NETWORK_HARMLESS = {
    "a pair of sockets": (
        "a, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(1) == b'x'"
    ),
    "a pair of sockets of packets": (
        "a, b = socket.socketpair(AF_UNIX, socket.SOCK_SEQPACKET); a.send(b'x'); b.recv(1)"
    ),
    "messages over a pair": "a, b = socket.socketpair(); a.sendmsg([b'x']); b.recvmsg(1)",
    "a descriptor over a pair": (
        "a, b = socket.socketpair(); fds = array.array('i', [0])\n"
        "a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])\n"
        "assert b.recvmsg(1, socket.CMSG_LEN(4))[1]"
    ),
    "a pipe": "r, w = os.pipe(); os.write(w, b'x'); os.read(r, 1)",
    "names of interfaces": "assert socket.if_nameindex()",
    "the name of this machine": "assert socket.gethostname()",
    "an address as a text": "socket.getaddrinfo('127.0.0.1', 80)",
    "netlink": "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0))",
    "asyncio": "import asyncio; asyncio.run(asyncio.sleep(0))",
    "a subprocess of asyncio": (
        "import asyncio\n"
        "async def go(): return await (await asyncio.create_subprocess_exec('true')).wait()\n"
        "assert asyncio.run(go()) == 0"
    ),
    "a program": "assert os.system('true') == 0",
    "a program's output": "assert subprocess.check_output(['echo', 'x']) == b'x\\n'",
    "a pipeline": "assert os.system('echo one | cat | grep -q one') == 0",
    "a fork": "pid = os.fork(); pid or os._exit(0); assert os.waitpid(pid, 0)[1] == 0",
    "threads": (
        "t = [threading.Thread(target=print) for _ in range(9)]\n"
        "for each in t: each.start()\n"
        "for each in t: each.join()"
    ),
    "a pool of processes": (
        "import multiprocessing as m\n"
        "with m.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]"
    ),
    "a queue of processes": (
        "import multiprocessing as m; q = m.get_context('fork').Queue(); q.put(1)\n"
        "assert q.get(timeout=20) == 1"
    ),
    "a file": "open('made', 'w').write('x')",
    "a directory": "os.mkdir('new'); os.rmdir('new')",
    "a mode": "open('m', 'w').close(); os.chmod('m', 0o700)",
    "a time": "open('t', 'w').close(); os.utime('t', (1, 1))",
    "another directory for a file": (
        "os.makedirs('one'); os.makedirs('two'); open('one/x', 'w').close()\n"
        "os.rename('one/x', 'two/x')"
    ),
    "a link to a file of another directory": (
        "os.makedirs('three'); open('y', 'w').close(); os.link('y', 'three/y')"
    ),
    "a temporary file": "import tempfile; tempfile.TemporaryFile(dir='.').write(b'x')",
    "a FIFO": "os.mkfifo('fifo')",
    "a file in memory": "os.write(os.memfd_create('x'), b'x')",
    "a terminal": "a, b = os.openpty(); os.write(b, b'x'); os.read(a, 1)",
    "the size of a terminal": (
        "a, b = os.openpty(); fcntl.ioctl(b, termios.TIOCGWINSZ, bytes(8))"
    ),
    "the state of a terminal": "a, b = os.openpty(); termios.tcgetattr(b)",
    "epoll": "p = select.epoll(); p.register(0) if False else p.poll(0)",
    "poll": "select.poll().poll(0)",
    "a lock": "f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)",
    "a map of a file": "mmap.mmap(-1, 4096).write(b'x')",
    "shared memory": (
        "from multiprocessing.shared_memory import SharedMemory as S\n"
        "b = S(create=True, size=9); b.close(); b.unlink()"
    ),
    "a database": "import sqlite3; sqlite3.connect('db').execute('create table t(x)')",
    "a signal to a child": (
        "p = subprocess.Popen(['sleep', '60']); p.kill(); assert p.wait() == -9"
    ),
    "a signal to the program above": "os.kill(os.getppid(), 0)",
    "random bytes": "os.urandom(9)",
    "the clock": "import time; time.localtime(); time.sleep(0)",
    "this process's entry": "open('/proc/self/status').read()",
    "a priority": "os.nice(1)",
    "a limit": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "a limit of message queues": (
        "soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)\n"
        "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, hard))"
    ),
    "a session": "os.setsid()",
    "a group": "os.setpgid(0, 0)",
    "an extended attribute": (
        "open('a', 'w').close()\n"
        "try: os.setxattr('a', 'user.x', b'x')\n"
        "except OSError as error: assert error.errno == errno.ENOTSUP"
    ),
}

# How a program is started: as the target of hotenv, with the guards that it has then.
DEED_TARGETS = {
    "env": ["env", "-i", "WORDS"],
    "shell": ["sh", "-c", "LINE; :"],
}
# ... or by code of a guarded Python, in which `words` are its command line and `line` the same as
# a text for a shell.
DEED_STARTS = {
    "subprocess": "subprocess.run(words)",
    "subprocess without an environment": "subprocess.run(words, env={})",
    "subprocess that keeps descriptors": "subprocess.run(words, close_fds=False)",
    "subprocess elsewhere": "subprocess.run(words, cwd='.')",
    "subprocess by another name": "subprocess.run(['python3', *words[1:]], executable=words[0])",
    "subprocess with a hook of its own": "subprocess.run(words, preexec_fn=os.getpid)",
    "shell of subprocess": "subprocess.run(line, shell=True)",
    "env -i": "subprocess.run(['env', '-i', *words])",
    "os.system": "os.system(line)",
    "os.popen": "print(os.popen(line).read())",
    "os.execv": "os.execv(words[0], words)",
    "os.execve": "os.execve(words[0], words, {})",
    "os.execvp": "os.execvp('env', ['env', *words])",
    "os.execlp": "os.execlp('env', 'env', *words)",
    "os.spawnv": "os.spawnv(os.P_WAIT, words[0], words)",
    "os.spawnvpe": "os.spawnvpe(os.P_WAIT, 'env', ['env', *words], {'PATH': os.defpath})",
    "os.posix_spawn": "os.waitpid(os.posix_spawn(words[0], words, {}), 0)",
    "os.posix_spawnp": "os.waitpid(os.posix_spawnp('env', ['env', *words], os.environ), 0)",
    "a fork": "os.fork() or os.execv(words[0], words); os.wait()",
    "pty.spawn": "import pty; pty.spawn(words)",
    "posix.execv": "import posix; posix.execv(words[0], words)",
    "asyncio": (
        "import asyncio\n"
        "async def go(): await (await asyncio.create_subprocess_exec(*words)).wait()\n"
        "asyncio.run(go())"
    ),
    "a thread": (
        "import threading; t = threading.Thread(target=subprocess.run, args=(words,))\n"
        "t.start(); t.join()"
    ),
    "a process of multiprocessing": (
        "import multiprocessing as m; c = m.get_context('fork')\n"
        "p = c.Process(target=subprocess.run, args=(words,)); p.start(); p.join()"
    ),
    "a Python below": (
        "code = 'import subprocess; subprocess.run(%r)' % (words,)\n"
        "subprocess.run([sys.executable, '-c', code], env={})"
    ),
    "a spawned worker of spawnv_passfds": (
        "import multiprocessing.util as u\n"
        "os.waitpid(u.spawnv_passfds(os.fsencode(words[0]), words, []), 0)"
    ),
    "os.environ cleared": "os.environ.clear(); subprocess.run(words)",
}
# Runs each of the deeds in a fork and prints the names of those that were not refused.
DEED_RUNNER = r"""
import array, errno, fcntl, json, mmap, os, resource, select, socket, subprocess, sys, termios
import threading
from socket import AF_INET, AF_UNIX, SOCK_DGRAM
deeds = json.loads(sys.stdin.readline() if sys.argv[1] == "-" else sys.argv[1])
done = []
for name, code in deeds.items():
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            exec(code, globals())
            status = 0
        except (OSError, AssertionError) as error:
            os.write(2, ("%s: %r\n" % (name, error)).encode())
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1] == 0:
        done.append(name)
print("DONE " + json.dumps(done), flush=True)
"""


class _DeedWorld:
    """What the deeds of this section reach: sockets of this machine, and a process outside.

    `here` is the directory in which they are done.
    """

    def __init__(self, base, owner=None):
        self.here = Path(tempfile.mkdtemp(dir=str(base)))
        self.sockets = Path(tempfile.mkdtemp(prefix="s-", dir="/tmp"))
        self.sockets.chmod(0o755)
        self.tcp = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.unix = []
        abstract = "\0hotenv-test-%s" % os.urandom(4).hex()
        for name, kind in (
            ("s", socket.SOCK_STREAM),
            ("d", socket.SOCK_DGRAM),
            ("p", socket.SOCK_SEQPACKET),
            (abstract, socket.SOCK_STREAM),
        ):
            sock = socket.socket(socket.AF_UNIX, kind)
            sock.setblocking(False)
            sock.bind(name if name == abstract else str(self.sockets / name))
            if kind != socket.SOCK_DGRAM:
                sock.listen(500)
            self.unix.append(sock)
        for path in self.sockets.iterdir():
            path.chmod(0o777)
        if owner is not None:
            os.chown(str(self.here), owner, owner)
        self.outside = subprocess.Popen(
            ["sleep", "600"], preexec_fn=None if owner is None else become(owner)
        )
        self.names = {
            "PORT": self.tcp.getsockname()[1],
            "STREAM": str(self.sockets / "s"),
            "DGRAM": str(self.sockets / "d"),
            "PACKET": str(self.sockets / "p"),
            "ABSTRACT": abstract,
            "PID": self.outside.pid,
        }

    def words(self, deeds, python):
        """Return the words of a Python without a hook that does these deeds."""
        prelude = "".join("%s = %r\n" % pair for pair in self.names.items())
        return [python, "-I", "-S", "-c", prelude + DEED_RUNNER, json.dumps(deeds)]

    def close(self):
        """End what listens, and the process outside."""
        for sock in [self.tcp, *self.unix]:
            sock.close()
        self.outside.kill()
        self.outside.wait()
        shutil.rmtree(str(self.sockets))


@pytest.fixture
def deeds(tmp_path):
    """A _DeedWorld."""
    with contextlib.closing(_DeedWorld(tmp_path)) as world:
        yield world


def _deeds_done(done):
    """Return the names of the deeds that the runner could do."""
    for line in done.stdout.splitlines():
        if line.strip().startswith("DONE "):
            return json.loads(line.strip()[len("DONE ") :])
    pytest.fail("the runner did not end: %s %s" % (done.stdout, done.stderr))


def _deed_target(how, words):
    """Return the command line of a target that does deeds: one of DEED_TARGETS."""
    target = []
    for word in DEED_TARGETS[how]:
        if word == "WORDS":
            target += words
        else:
            target.append(word.replace("LINE", shlex.join(words)))
    return target


def _deed_starter(how, words):
    """Return the code of a Python that starts the deeds: one of DEED_STARTS."""
    return (
        "import os, shlex, subprocess, sys\n"
        f"words = {words!r}\n"
        "line = shlex.join(words)\n"
        f"{DEED_STARTS[how]}\n"
    )


DEED_GUARDS = [
    NET,
    LOCAL,
    "--no-network --allow-domain x.test",
    "--profile net-hermetic",
    "--no-network --fs-readonly=/ --fs-write .",
]


def _one_of(choices, *seed):
    """Return one of the choices, another one with each seed."""
    return random.Random("%s%s" % (SEED, seed)).choice(choices)


@only_kernel
def test_every_network_deed_works_unguarded(deeds):
    """Each deed of the table can be done where no guard is on, or a refusal would show nothing."""
    done = output_of(deeds.words(NETWORK_DEEDS, sys.executable), "/tmp", deeds.here)
    assert _deeds_done(done) == list(NETWORK_DEEDS), done.stderr


@only_kernel
def test_every_harmless_deed_works_unguarded(deeds):
    """Each harmless deed can be done where no guard is on."""
    done = output_of(deeds.words(NETWORK_HARMLESS, sys.executable), "/tmp", deeds.here)
    assert _deeds_done(done) == list(NETWORK_HARMLESS), done.stderr


@only_kernel
@pytest.mark.parametrize("guards", DEED_GUARDS)
@pytest.mark.parametrize("how", DEED_TARGETS)
def test_target_without_hook_has_no_network(hermetic, deeds, how, guards):
    """A program that is no Python has no network under --no-network, whatever is allowed."""
    table = {**NETWORK_DEEDS, **RARE_NETWORK_DEEDS}
    python = _one_of(PYTHONS, how, guards)
    words = _deed_target(how, deeds.words(table, python))
    assert _deeds_done(hermetic(guards, *words, cwd=deeds.here)) == []


@only_kernel
@pytest.mark.parametrize("how", DEED_STARTS)
def test_child_without_hook_has_no_network(hermetic, deeds, how):
    """A program that a guarded Python starts, in whatever way, has no network if it has no hook."""
    table = {**NETWORK_DEEDS, **RARE_NETWORK_DEEDS}
    for guards in (LOCAL, _one_of(DEED_GUARDS, how)):
        python = _one_of(PYTHONS, how, guards)
        code = _deed_starter(how, deeds.words(table, python))
        done = hermetic(guards, python, "-c", code, python=python, cwd=deeds.here)
        assert _deeds_done(done) == [], (guards, done.stderr)


@only_kernel
@pytest.mark.parametrize("guards", DEED_GUARDS)
@pytest.mark.parametrize("how", DEED_TARGETS)
def test_target_without_hook_goes_on(hermetic, deeds, how, guards):
    """A program without network can do all that a harmless one does."""
    words = _deed_target(how, deeds.words(NETWORK_HARMLESS, _one_of(PYTHONS, guards)))
    done = hermetic(guards, *words, cwd=deeds.here)
    wanted = dict(NETWORK_HARMLESS)
    if "--fs-readonly" in guards:
        wanted.pop("a temporary file", None)
    assert [name for name in wanted if name not in _deeds_done(done)] == [], done.stderr


@only_kernel
@pytest.mark.parametrize("how", DEED_STARTS)
def test_child_without_hook_goes_on(hermetic, deeds, how):
    """A program that a guarded Python starts can do all that a harmless one does."""
    python = _one_of(PYTHONS, how)
    code = _deed_starter(how, deeds.words(NETWORK_HARMLESS, python))
    done = hermetic(LOCAL, python, "-c", code, python=python, cwd=deeds.here)
    missing = [name for name in NETWORK_HARMLESS if name not in _deeds_done(done)]
    if how.startswith(("pty", "os.posix", "os.exec", "posix")):
        # The runner leads a session already, or is the first process of hotenv's own group.
        missing = [name for name in missing if name not in ("a session", "a group")]
    assert missing == [], done.stderr


@only_kernel
@pytest.mark.parametrize("how", DEED_TARGETS)
def test_allow_unix_opens_unix_sockets_alone(hermetic, deeds, how):
    """With --allow-unix a program may use unix sockets, and no others."""
    table = {**NETWORK_DEEDS, **RARE_NETWORK_DEEDS}
    words = _deed_target(how, deeds.words(table, sys.executable))
    done = hermetic(NET + " --allow-unix", *words, cwd=deeds.here)
    assert _deeds_done(done) == UNIX_DEEDS, done.stderr


@only_kernel
@only_root
@pytest.mark.parametrize("table, is_open", [(NETWORK_DEEDS, False), (NETWORK_HARMLESS, True)])
def test_program_of_a_plain_user_is_held(guards_of_stranger, table, is_open):
    """What the kernel holds for root it holds for a plain user, and leaves alone the same."""
    project = guards_of_stranger
    with contextlib.closing(_DeedWorld(project.dir, STRANGER)) as world:
        words = ["env", "-i", *world.words(table, project.program[0])]
        done = project.hotenv(
            "hermetic", "--no-network", "--", *words, cwd=str(world.here),
            preexec_fn=project.become, text=True, input=None, stdin=DEVNULL,
        )
        expected = list(table) if is_open else []
        assert _deeds_done(done) == expected, done.stderr


# ==== guards: what the kernel refuses by --fs-readonly ============================================


IOCTL_PROBE = r"""
import ctypes, errno, json, sys
c = ctypes.CDLL(None, use_errno=True)
def error_of(request):
    ctypes.set_errno(0)
    c.ioctl(-1, ctypes.c_ulong(request), 0)
    return errno.errorcode[ctypes.get_errno()]
print(json.dumps({name: error_of(int(number)) for name, number in json.loads(sys.argv[1]).items()}))
"""
# Requests of ioctl that change nothing, or need a descriptor that was opened for writing.
HARMLESS_REQUESTS = {
    "TIOCGWINSZ": 0x5413,
    "TCGETS": 0x5401,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,
    "FIOCLEX": 0x5451,
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
    "FS_IOC_GETFLAGS": 0x80086601,
    "FS_IOC_FSGETXATTR": 0x801C581F,
    "FS_IOC_FIEMAP": 0xC020660B,
    "BTRFS_IOC_TREE_SEARCH": 0xD0009411,
    "BLKGETSIZE64": 0x80081272,
    "LOOP_GET_STATUS64": 0x4C05,
}


def _ioctl_errors(hermetic, guards, requests):
    """Return {name: error} of requests to a descriptor that is not open, by a program under guards.

    A request that no guard refuses says EBADF, and has no effect.
    """
    words = ["env", "-i", sys.executable, "-I", "-S", "-c", IOCTL_PROBE, json.dumps(requests)]
    done = hermetic(guards, *words)
    return json.loads(done.stdout)


def _expect_for_each(requests, error):
    return {name: error for name in requests}


@only_kernel
@pytest.mark.parametrize("guards", [ANY, ANY + " --fs-write ."])
def test_request_that_changes_files_is_refused(hermetic, guards):
    """Under --fs-readonly no request of ioctl changes files by a descriptor that only reads."""
    requests = hotenv._CHANGING_REQUESTS
    expected = _expect_for_each(requests, "EACCES")
    assert _ioctl_errors(hermetic, guards, requests) == expected


@only_kernel
def test_request_that_changes_nothing_goes_on(hermetic):
    """Under --fs-readonly requests of ioctl that change nothing are left alone."""
    expected = _expect_for_each(HARMLESS_REQUESTS, "EBADF")
    assert _ioctl_errors(hermetic, ANY, HARMLESS_REQUESTS) == expected


@only_kernel
def test_requests_are_open_without_the_guard(hermetic):
    """Under --no-network requests to files are left alone."""
    requests = {
        name: number
        for name, number in hotenv._CHANGING_REQUESTS.items()
        if name.startswith(("FS_", "BTRFS_"))
    }
    assert _ioctl_errors(hermetic, NET, requests) == _expect_for_each(requests, "EBADF")


@only_kernel
@pytest.mark.parametrize("guards", [NET, ANY, SUB, LOCAL])
def test_no_program_types_into_the_terminal(hermetic, guards):
    """Under any guard nothing can be typed into the terminal, where a shell would run it."""
    requests = hotenv._TERMINAL_REQUESTS
    if guards == SUB:
        code = IOCTL_PROBE
        done = hermetic(guards, sys.executable, "-I", "-S", "-c", code, json.dumps(requests))
        assert json.loads(done.stdout) == _expect_for_each(requests, "EACCES")
        return
    assert _ioctl_errors(hermetic, guards, requests) == _expect_for_each(requests, "EACCES")


@only_kernel
def test_python_types_nothing_into_the_terminal(guarded):
    """A Python that tries to type into the terminal is told that a guard blocks it."""
    code = (
        "import fcntl, os, termios\n"
        "terminal = os.openpty()[1]\n"
        "fcntl.ioctl(terminal, termios.TIOCSTI, b'x')\n"
    )
    done = guarded(SUB, code)
    assert "blocked by hotenv: fcntl.ioctl request=0x5412" in done.stderr
    assert done.returncode == 2


@only_kernel
@pytest.mark.parametrize("guards", [NET, ANY, LOCAL, FS, "--strict-imports", NET + " " + ANY])
def test_guarded_program_looks_into_no_other(guarded, deeds, guards):
    """Under any guard no process outside can be traced, whoever owns it."""
    code = (
        "import os, sys\n"
        "try: open('/proc/%d/mem', 'rb')\n"
        "except PermissionError: print('refused')\n"
    ) % deeds.outside.pid
    done = guarded(guards + " --trace", code)
    assert done.stdout == "refused\n", done.stderr


@only_kernel
def test_guards_without_files_leave_mounts_of_files_alone(hermetic, tmp_path):
    """A file goes from one directory to another under guards that do not take writing."""
    line = "mkdir a b && echo x > a/f && mv a/f b/f && ln b/f a/g && cat a/g"
    done = hermetic("--no-network --allow-localhost", "sh", "-c", line, cwd=tmp_path)
    assert done.stdout == "x\n", done.stderr


# ==== guards: reads of programs without a hook ====================================================

# A line of a shell in a directory with a file `victim`, below --fs-readonly, and what it prints.
READ_LINES = [
    ("cat victim", "precious"),
    ("ls dir; echo $?", "0\n"),
    ("echo one | cat | sort", "one\n"),
    ("cat /etc/passwd >/dev/null 2>&1; echo $?", "1\n"),
    ("cat ../outside >/dev/null 2>&1; echo $?", "1\n"),
    ("ls .. >/dev/null 2>&1 || echo refused", "refused\n"),
    ("cat /proc/1/environ >/dev/null 2>&1; echo $?", "1\n"),
    ("echo x > made 2>/dev/null || echo refused", "refused\n"),
    ("echo x > /dev/null; echo $?", "0\n"),
    ("PYTHON -ISc 'print(open(\"victim\").read())'", "precious\n"),
    ("PYTHON -ISc 'open(\"/etc/passwd\")' 2>/dev/null; echo $?", "1\n"),
    ("PYTHON -c 'print(5)'", "5\n"),
    ("PYTHON -c 'import ssl, sqlite3, json; print(6)'", "6\n"),
    ("perl -e 'print 7'", "7"),
    ("node -e 'console.log(8)'", "8\n"),
    ("git --version > /dev/null 2>&1; echo $?", "0\n"),
]


@only_kernel
@pytest.mark.parametrize("line, output", READ_LINES)
@pytest.mark.parametrize("how", ["target", "child"])
def test_program_reads_below_its_root_alone(hermetic, tmp_path, how, line, output):
    """Under --fs-readonly=PATH a program that is no Python reads below PATH, and what it needs."""
    for name in ("perl", "node", "git"):
        if line.startswith(name) and not shutil.which(name):
            pytest.skip(name + " is not installed")
    here = _guards_stage(tmp_path)
    (tmp_path / "outside").write_text("outside")
    words = ["sh", "-c", line.replace("PYTHON", sys.executable) + "\n:"]
    if how == "child":
        words = [sys.executable, "-c", f"import subprocess; subprocess.run({words!r})"]
    assert hermetic(FS, *words, cwd=here).stdout == output


@pytest.mark.parametrize(
    "code",
    [
        "os.remove('/dev/null')",
        "os.rename('/dev/null', '/dev/other')",
        "os.chmod('/dev/null', 0o600)",
        "os.utime('/dev/null')",
    ],
)
def test_device_is_written_and_not_removed(guarded, code):
    """Under --fs-readonly a device that may be written is neither removed nor changed."""
    write = "import os, sys\nopen('/dev/null', 'w').write('x'); print('written', flush=True)\n"
    # The program refuses the action itself, in case no guard does.
    last = (
        "def refuse(event, args):\n"
        "    if event in ('os.remove', 'os.rename', 'os.chmod', 'os.utime'): os._exit(9)\n"
        "sys.addaudithook(refuse)\n"
    )
    done = guarded(ANY + " --trace", write + last + code)
    assert (done.stdout, done.returncode, len(_blocked_lines(done))) == ("written\n", 2, 1)


def test_file_actions_may_be_a_generator(guarded):
    """What posix_spawn is to do with files is looked at, and then done, if it can be read once."""
    code = (
        "import os\n"
        "actions = (action for action in [(os.POSIX_SPAWN_DUP2, 2, 1)])\n"
        "child = os.posix_spawn('/bin/echo', ['echo', 'told'], {}, file_actions=actions)\n"
        "os.waitpid(child, 0)\n"
    )
    done = guarded(ANY, code)
    assert (done.stdout, done.stderr, done.returncode) == ("", "told\n", 0)


@pytest.mark.parametrize("guards", [NET, SUB, IMP])
def test_directory_above_a_session_is_not_moved(project, guards):
    """A guarded Python moves no directory above a session: its socket would be closed no longer."""
    project.serve()
    above = os.path.dirname(os.path.dirname(project.socket_path()))
    code = f"import os; os.rename({above!r}, {above + '.moved'!r})"
    done = _run_guarded(project, guards, "--", sys.executable, "-c", code)
    assert os.path.exists(project.socket_path())
    assert "reason=hotenv-session" in done.stderr
    assert done.returncode == 2


def test_path_that_is_to_be_made_opens_nothing_else(guarded, tmp_path):
    """In a Python --fs-write opens a path that is missing, and not the files beside it."""
    here = _guards_stage(tmp_path)
    code = "open('new', 'w').close(); open('victim', 'w')"
    done = guarded(ANY + " --fs-write new", code, cwd=here)
    assert (done.returncode, (here / "new").exists()) == (2, True)
    assert _victim_is_untouched(here)


@only_kernel
def test_missing_path_opens_nothing_to_a_program(hermetic, tmp_path):
    """A program without a hook can neither make a missing --fs-write path nor change others."""
    here = _guards_stage(tmp_path)
    script = "echo x > new; echo x >> victim; echo x > other"
    done = hermetic(ANY + " --fs-write new", *_sh(script), cwd=here)
    assert "new is missing" in done.stderr
    assert not (here / "new").exists()
    assert not (here / "other").exists()
    assert _victim_is_untouched(here)


@only_kernel
def test_missing_path_opens_nothing_to_a_child(guarded, tmp_path):
    """What a guarded Python starts can write below --fs-write, and not beside a missing path."""
    here = _guards_stage(tmp_path)
    code = "import os; os.system('echo x > dir/in; echo x >> victim; echo x > other')"
    guarded(ANY + " --fs-write new --fs-write dir", code, cwd=here)
    assert (here / "dir" / "in").exists()
    assert not (here / "other").exists()
    assert _victim_is_untouched(here)


@pytest.mark.parametrize("letters", ["-uc", "-Bsc", "-Ic", "-sIc"])
def test_python_with_joined_letters_is_one(hermetic, letters):
    """`python3 -uc CODE` is a Python, as `python3 -u -c CODE` is, and its hook is in force."""
    code = "import socket; socket.create_connection(('127.0.0.1', 9))"
    done = hermetic(NET + " --trace", sys.executable, letters, code)
    assert done.returncode == 2
    assert "reason=no-network" in done.stderr


@only_kernel
def test_python_below_a_program_says_what_is_refused(hermetic):
    """A Python that a program without a hook starts has its hook, which reports what is refused."""
    target = _sh(f"{sys.executable} -c 'import socket; socket.socket()'; :")
    done = hermetic(NET + " --trace", *target)
    told = "[hermetic] blocked socket.__new__ family=2 reason=no-network"
    assert told in done.stderr.splitlines()


@only_kernel
@pytest.mark.parametrize("module", ["urllib3", "pip._vendor.urllib3"])
def test_question_for_ipv6_does_not_count(hermetic, tmp_path, module):
    """urllib3 tries IPv6 when it is imported. Where no socket is left, that is a mere probe."""
    asking = tmp_path / module.replace(".", "/") / "util" / "connection.py"
    asking.parent.mkdir(parents=True)
    for package in list(asking.relative_to(tmp_path).parents)[:-1]:
        (tmp_path / package / "__init__.py").touch()  # so that it comes before an installed one
    asking.write_text(
        "import socket\n"
        "try:\n"
        "    socket.socket(socket.AF_INET6)\n"
        "except OSError:\n"
        "    print('no IPv6')\n"
    )
    (tmp_path / "asks.py").write_text(f"import {module}.util.connection\n")
    target = _sh(f"{sys.executable} asks.py; echo $?")
    done = hermetic(NET + " --trace", *target, cwd=tmp_path)
    assert done.stdout == "no IPv6\n0\n", done.stderr
    assert done.stderr == "[hermetic] probe socket.__new__ family=10 reason=no-network\n"


@only_kernel
def test_kernel_holds_a_program_once(hermetic):
    """What a program without a hook starts is held already: no launcher asks the kernel again."""
    code = "import subprocess; subprocess.run(['grep', 'Seccomp_filters', '/proc/self/status'])"
    filters = []
    for target in (["grep", "Seccomp_filters", "/proc/self/status"],
                   _sh(f'{sys.executable} -c "{code}"; :')):
        filters.append(hermetic(NET, *target).stdout)
    assert filters[0] == filters[1] != ""


@only_linux
@pytest.mark.parametrize("name", ["PYTHONPATH", "HOTENV_GUARDS", "RES_OPTIONS"])
def test_environment_of_a_child_may_have_bytes(guarded, name):
    """A child may be given a name as a text, and its value as bytes."""
    code = (
        "import subprocess\n"
        f"subprocess.run(['/bin/echo', 'told'], env={{{name!r}: b'/nowhere'}}, check=True)\n"
    )
    done = guarded("--no-network --allow-domain x.y", code)
    assert (done.stdout, done.returncode) == ("told\n", 0), done.stderr


def test_resolver_asks_by_tcp(guarded):
    """A guarded Python has no UDP, so the C library is told to ask name servers by TCP."""
    code = "import os; print(os.environ['RES_OPTIONS'])"
    assert guarded("--no-network --allow-domain x.y", code).stdout == "use-vc\n"


@only_kernel
def test_guards_bear_a_python_that_warns_of_bytes(hermetic):
    """A Python that takes a comparison of text and bytes for an error starts programs."""
    code = (
        "import os, subprocess\n"
        "subprocess.run(['echo', 'x'], env={b'A': b'1'})\n"
        "os.system('echo y')\n"
    )
    done = hermetic(LOCAL, sys.executable, "-bb", "-c", code)
    assert done.stdout == "x\ny\n", done.stderr


@only_kernel
def test_file_of_posix_spawn_is_held(guarded):
    """Under --fs-readonly=PATH what posix_spawn opens for a child is looked at."""
    code = (
        "import os\n"
        "opens = [(os.POSIX_SPAWN_OPEN, 0, '/etc/passwd', os.O_RDONLY, 0)]\n"
        "os.posix_spawn('/bin/cat', ['cat'], os.environ, file_actions=opens)\n"
    )
    done = guarded(FS + " --trace", code)
    assert _blocked_lines(done) == ["[hermetic] blocked open path=/etc/passwd reason=fs-readonly"]


def test_code_has_no_directory_of_its_own(guarded, tmp_path):
    """Under --fs-readonly=PATH code of `python -c` reads nothing in the current directory."""
    (tmp_path / "victim").write_text("precious")
    done = guarded("--fs-readonly=/etc --trace", "open('victim')", cwd=tmp_path)
    assert len(_blocked_lines(done)) == 1, done.stderr
    assert "victim" in _blocked_lines(done)[0]


# The words of a target whose script lies outside of the current directory.
OUTER_SCRIPTS = [
    ["PYTHON", "../outer.py"],
    ["PYTHON", "-u", "../outer.py"],
    ["PYTHON", "-X", "dev", "../outer.py"],
    ["PYTHON", "-W", "ignore", "-sB", "../outer.py"],
    ["PYTHON", "-I", "../outer.py"],
    ["PYTHON", "-E", "-u", "../outer.py"],
    ["../outer.py"],
    ["../with_E"],
    ["../with_env"],
]


@pytest.mark.parametrize("words", OUTER_SCRIPTS)
@pytest.mark.parametrize("python", PYTHONS)
def test_target_reads_its_own_script(hermetic, tmp_path, python, words):
    """Under --fs-readonly a script may be read by the target, whatever options stand before it."""
    code = "import os\nprint(open(__file__).read()[:2] + '.')\n"
    executable(tmp_path / "outer.py", code)
    executable(tmp_path / "with_E", f"#!{python} -E\n" + code)
    executable(tmp_path / "with_env", "#!/usr/bin/env -S python3 -u -E\n" + code)
    here = tmp_path / "here"
    here.mkdir()
    words = [python if word == "PYTHON" else word for word in words]
    done = hermetic(FS, *words, python=python, cwd=here)
    assert (done.stdout.strip() in ("im.", "#!."), done.returncode) == (True, 0), done.stderr


# ==== guards: what is said ========================================================================


def test_status_2_is_explained_in_one_line(guarded):
    """When a block makes the exit status 2, one line says how many, which guards, and the first."""
    code = (
        "import socket, subprocess\n"
        "for port in 1, 2:\n"
        "    try: socket.create_connection(('0.1.2.3', port), 0.2)\n"
        "    except OSError: pass\n"
        "try: subprocess.run('true')\n"
        "except OSError: pass\n"
    )
    done = guarded("--no-network --no-subprocess", code)
    assert done.stderr.splitlines()[-1] == (
        "hotenv: exit status 2: 3 actions blocked (no-network, no-subprocess), the first: "
        "socket.create_connection host=0.1.2.3 reason=no-network; --trace shows each"
    )


@pytest.mark.parametrize("ending", ["", "import os; os._exit(0)", "1 / 0", "raise SystemExit(5)"])
def test_explanation_comes_once(guarded, ending):
    """The line about the exit status comes once, however the program ends."""
    code = "try:\n    " + CONNECT + "\nexcept OSError: pass\n" + ending
    done = guarded(NET, code)
    assert (done.stderr.count("hotenv: exit status 2"), done.returncode) == (1, 2)


def test_nothing_is_explained_without_a_block(guarded):
    """A program that no guard has blocked ends without a word of hotenv's."""
    done = guarded(NET, "raise SystemExit(2)")
    assert (done.stderr, done.returncode) == ("", 2)


# Guards, and code that asks something in passing, and does without.
PROBES = [
    ("--no-subprocess", "import platform; platform.processor()"),
    ("--no-subprocess", "import platform; platform.architecture(); platform.uname()"),
    ("--no-subprocess", "import uuid; uuid.getnode(); uuid.uuid1()"),
    (FS, "try: open('/etc/pip.conf')\nexcept OSError: pass"),
    (FS, "try: open('/proc/self/../1/cmdline')\nexcept OSError: pass"),
    (FS, "import os\ntry: open(os.path.expanduser('~/.config/probe'))\nexcept OSError: pass"),
    ("--fs-readonly=/etc", "import json, csv, sqlite3, xml.dom.minidom"),
    (ANY, "import os\ntry: os.mkdir('__pycache__')\nexcept OSError: pass"),
    (ANY, "import os\ntry: os.makedirs('.pytest_cache/v')\nexcept OSError: pass"),
    (ANY, "import os\ntry: os.makedirs(os.path.expanduser('~/.cache/x'))\nexcept OSError: pass"),
    (ANY, "import multiprocessing\nassert multiprocessing.get_start_method()"),
    (ANY, "import multiprocessing\nwith multiprocessing.Lock(): pass"),
    (ANY, "from concurrent.futures import ProcessPoolExecutor as Pool\n"
     "if __name__ == '__main__':\n"
     "    with Pool(1) as pool: assert list(pool.map(abs, [-1])) == [1]"),
    (NET, "import asyncio, concurrent.futures"),
    (NET, "try: import _interpreters\nexcept ImportError: pass"),
    (NET, "try: import _xxsubinterpreters\nexcept ImportError: pass"),
]


@pytest.mark.parametrize("guards, code", PROBES)
@pytest.mark.parametrize("python", PYTHONS)
def test_probe_does_not_count(guarded, python, guards, code):
    """What a program only asks in passing is refused, and leaves the exit status alone."""
    done = guarded(guards + " --trace", code, python)
    assert (_blocked_lines(done), done.returncode) == ([], 0), done.stderr


PROBES_IN_TRACES = ("platform.processor", "/etc/pip.conf", "__pycache__", "import _interpreters")


@pytest.mark.parametrize("guards, code", [
    row for row in PROBES if any(word in row[1] for word in PROBES_IN_TRACES)
])
def test_probe_is_refused_and_traced(guarded, guards, code):
    """A probe is refused like any other action, and --trace shows it under a name of its own."""
    if "/etc/pip.conf" in code and not os.path.exists("/etc/pip.conf"):
        pytest.skip("there is no /etc/pip.conf here")
    if "_interpreters" in code and NEWEST_PYTHON == OLDEST_PYTHON:
        pytest.skip("there is one Python here")
    done = guarded(guards + " --trace", code, NEWEST_PYTHON)
    assert "[hermetic] probe " in done.stderr


@only_kernel
@pytest.mark.parametrize(
    "guards, target, word",
    [
        (LOCAL, ["PYTHON", "-c", "pass"], "for Python code only: no-network"),
        ("--no-network --allow-domain x.y", ["PYTHON", "-c", "pass"], "for Python code only"),
        (LOCAL, ["true"], "is no Python program: it has no network at all"),
        (NET, ["PYTHON", "-c", "pass"], ""),
        (NET + " --allow-unix", ["true"], ""),
        (NET, ["true"], ""),
        (ANY, ["true"], ""),
        (IMP, ["PYTHON", "-c", "pass"], ""),
    ],
)
def test_what_is_not_held_is_said(hermetic, guards, target, word):
    """One line says what is not held, or what an allowance does not open; else there is none."""
    target = [sys.executable if each == "PYTHON" else each for each in target]
    done = hermetic(guards, *target)
    assert done.stderr.count("\n") == (1 if word else 0), done.stderr
    assert word in done.stderr


# A value that must not be in a trace, and code of an argv that holds it. `e` is the environment.
LEAKS = [
    ("hunter2", "['x', '{\"password\": \"hunter2\"}']"),
    ("hunter2", "['x', \"{'api_key': 'hunter2'}\"]"),
    ("hunter2", "['x', '--pass', 'hunter2']"),
    ("hunter2", "['x', '--pw', 'hunter2']"),
    ("hunter2", "['x', '--pw=hunter2']"),
    ("hunter2", "['mysql', '-phunter2']"),
    ("hunter2", "['curl', '-u', 'me:hunter2', 'x']"),
    ("hunter2", "['curl', '-H', 'X-Api-Key: hunter2']"),
    ("hunter2", "['x', 'Authorization: Basic hunter2']"),
    ("hunter2", "['x', 'https://me:hunter2@host/']"),
    ("hunter2", "['x', 'DB_PASSWORD=hunter2']"),
    ("hunter2", "['x', '--db-password', 'hunter2']"),
    ("hunter2", "['x', '--client-secret=hunter2']"),
    ("hunter2", "['x', 'pass: hunter2']"),
    ("ghp_", "['x', 'ghp_16C7e42F292c6912E7710c838347Ae178B4a']"),
    ("github_pat_", "['x', 'github_pat_11ABCDEFG0123456789_abcdef']"),
    ("sk_live_", "['x', 'sk_live_51H8sVq0abcdefgh']"),
    ("AKIA", "['x', 'AKIAIOSFODNN7EXAMPLE']"),
    ("xoxb-", "['x', 'xoxb-1234567890-abcdefgh']"),
    ("eyJ", "['x', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N']"),
    ("MIIE", "['x', '-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADAN\\n-----END PRIVATE KEY-----']"),
    ("not-so-harmless", "['x', e['GH_PAT']]"),
    ("also-a-secret", "['x', 'a' + e['STRIPE'] + 'b']"),
    ("YWxzby1hLXNlY3JldC0x", "['x', __import__('base64').b64encode(e['STRIPE'].encode())]"),
    ("short12", "['x', e['MY_TOKEN']]"),
    ("wJalrXUtnFEMI", "['x', e['AWS_SECRET_ACCESS_KEY']]"),
]


@pytest.mark.parametrize("value, argv", LEAKS)
def test_trace_hides_a_secret(hermetic, guards_runtime, value, argv):
    """No trace, and no error, shows what looks like a secret."""
    env = environment(
        guards_runtime,
        GH_PAT="not-so-harmless-1",
        STRIPE="also-a-secret-1",
        MY_TOKEN="short12",
        AWS_SECRET_ACCESS_KEY="/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )
    code = f"import os, subprocess; e = dict(os.environ); subprocess.run({argv})"
    done = hermetic("--no-subprocess --trace", sys.executable, "-c", code, env=env)
    trace = [line for line in done.stderr.splitlines() if "blocked" in line]
    assert trace and value not in "\n".join(trace)


@pytest.mark.parametrize(
    "argv",
    [
        ["mkdir", "-p", "dir"],
        ["find", ".", "-print"],
        ["git", "log", "--author", "Bob", "--oneline"],
        ["gcc", "-pthread", "-pipe", "-o", "x"],
        ["x", "8080", "2026-11-19", "/usr/local/bin", "--verbose"],
        ["python3", "-m", "tokenizer.main"],
    ],
)
def test_trace_shows_what_is_no_secret(guarded, argv):
    """A trace shows words that are everyday words."""
    done = guarded("--no-subprocess --trace", f"import subprocess; subprocess.run({argv!r})")
    shown = "argv=[" + ",".join(map(repr, argv)) + "]"
    assert shown in _blocked_lines(done)[0]


# ==== guards: what a guarded Python may do, since other ways round were found =====================

# A name, guards, code that must be blocked, and what the trace names.
CLOSED = [
    ("listen without bind", NET, "import socket; socket.socket().listen()", "host=0.0.0.0"),
    (
        "create_server without bind",
        LOCAL,
        "import socket; socket.create_server(('', 0))",
        "reason=no-network",
    ),
    (
        "listen on all addresses of IPv6",
        LOCAL,
        "import socket; socket.socket(socket.AF_INET6).listen()",
        "host=::",
    ),
    ("UDP to this machine", LOCAL, "import socket; socket.socket(2, 2)", "type=2"),
    ("a raw socket", LOCAL, "import socket; socket.socket(2, 3, 1)", "type=3"),
    ("pycurl", LOCAL, "import pycurl", "module=pycurl"),
    ("grpc", LOCAL, "import grpc", "module=grpc"),
    ("curl_cffi", "--no-network --allow-domain x.y", "import curl_cffi", "module=curl_cffi"),
    ("ctypes imported before", IMP, "import early; early.ctypes.CDLL(None)", "ctypes.dlopen"),
    # Since Python 3.14 string_at() is a call like any other.
    ("a C pointer read before", IMP, "import early; early.ctypes.string_at(id(1), 1)", "ctypes."),
    ("Tcl", IMP, "import _tkinter", "module=_tkinter"),
    (
        "another directory called lib-dynload",
        IMP,
        "import os, sys; sys.path.insert(0, os.path.abspath('lib-dynload')); import evil_module",
        "module=evil_module",
    ),
    ("a FIFO", ANY, "import os; os.mkfifo('made')", "os.mkfifo path="),
    ("a device node", ANY, "import os; os.mknod('made')", "os.mknod path="),
    ("a FIFO in a directory", ANY, "import os; os.mkfifo('made', dir_fd=os.open('.', 0))",
     "os.mkfifo path="),
    (
        "a set-up of loop devices",
        ANY,
        "import fcntl; fcntl.ioctl(0, 0x4C82)",
        "request=0x4c82",
    ),
]


@pytest.mark.parametrize("guards, code, word", [row[1:] for row in CLOSED],
                         ids=[row[0] for row in CLOSED])
@pytest.mark.parametrize("python", PYTHONS)
def test_way_round_is_closed(guarded, guards_venvs, tmp_path, python, guards, code, word):
    """Each way round a guard that was found is closed, and the trace names it."""
    venv = guards_venvs[PYTHONS.index(python)]
    (tmp_path / "lib-dynload").mkdir()
    (tmp_path / "lib-dynload" / "evil_module.so").write_bytes(b"\x7fELF, but not really")
    place = Path(_site_packages(venv))
    (place / "early.pth").write_text("import early\n")
    (place / "early.py").write_text("import ctypes\n")
    try:
        done = guarded(guards + " --trace", code, str(venv / "bin" / "python"))
    finally:
        (place / "early.pth").unlink()
    assert (len(_blocked_lines(done)), done.returncode) == (1, 2), done.stderr
    assert word in _blocked_lines(done)[0]


def test_remote_exec_is_refused(guarded):
    """Under any guard no code is run in another Python: sys.remote_exec raises its event first."""
    done = guarded(SUB + " --trace", "import sys; sys.audit('sys.remote_exec', 1, 'x')")
    assert (len(_blocked_lines(done)), done.returncode) == (1, 2), done.stderr


@pytest.fixture(scope="module")
def guards_names(guards_venvs):
    """Pythons whose older look-ups, too, answer by a table: names in .test and .localhost."""
    code = textwrap.dedent("""
        import _socket, sys
        TABLE = {
            "api.test": "127.0.0.1",
            "evil.localhost": "0.1.2.3",
            "good.localhost": "127.0.0.1",
            "creds.test": "169.254.169.254",
        }
        def answers(original, event, make):
            def look_up(host, *args, **how):
                if host in TABLE:
                    sys.audit(event, host, *args)
                    return make(TABLE[host], *args)
                return original(host, *args, **how)
            return look_up
        _socket.getaddrinfo = answers(
            _socket.getaddrinfo, "socket.getaddrinfo",
            lambda address, port=0, *_: [(2, 1, 6, "", (address, port))])
        _socket.gethostbyname = answers(
            _socket.gethostbyname, "socket.gethostbyname", lambda address: address)
        _socket.gethostbyname_ex = answers(
            _socket.gethostbyname_ex, "socket.gethostbyname", lambda address: ("x", [], [address]))
        """)
    places = [Path(_site_packages(venv)) for venv in guards_venvs]
    for place in places:
        (place / "tables.pth").write_text("import table_of_names\n")
        (place / "table_of_names.py").write_text(code)
    yield [str(venv / "bin" / "python") for venv in guards_venvs]
    for place in places:
        (place / "tables.pth").unlink()


# Guards, code in which `p` is a port that listens, and whether it comes through.
NAMES = [
    (LOCAL, "socket.create_connection(('evil.localhost', p), 1)", False),
    (LOCAL, "socket.socket().connect(('evil.localhost', p))", False),
    (LOCAL, "socket.getaddrinfo('evil.localhost', p); socket.create_connection(('0.1.2.3', p), 1)",
     False),
    (LOCAL, "socket.gethostbyname('evil.localhost'); socket.create_connection(('0.1.2.3', p), 1)",
     False),
    (LOCAL, "socket.create_connection(('good.localhost', p), 5)", True),
    (LOCAL, "socket.create_connection(('localhost', p), 5)", True),
    (NET, "socket.create_connection(('good.localhost', p), 5)", False),
    (NET + " --allow-domain api.test",
     "socket.create_connection((socket.gethostbyname('api.test'), p), 5)", True),
    (NET + " --allow-domain api.test",
     "socket.create_connection((socket.gethostbyname_ex('api.test')[2][0], p), 5)", True),
    (NET + " --allow-domain api.test", "socket.create_connection(('api.test', p), 5)", True),
    (NET + " --allow-domain api.test", "socket.gethostbyname('creds.test')", False),
    (NET + " --allow-domain test",
     "a = socket.gethostbyname('creds.test'); socket.create_connection((a, p), 1)", False),
]


@pytest.mark.parametrize("guards, code, is_open", NAMES)
def test_name_is_as_local_as_its_address(guards_names, guarded, guards, code, is_open):
    """A name of this machine counts by its addresses; an older look-up opens an allowed name."""
    with Ears() as ears:
        code = f"import socket; p = {ears.port}\n{code}\nprint('through')"
        done = guarded(guards + " --trace", code, _one_of(guards_names, guards, code))
    expected = ("through\n", 0) if is_open else ("", 2)
    assert (done.stdout, done.returncode) == expected, done.stderr


@only_kernel
@pytest.mark.parametrize("how", ["target", "child"])
def test_other_program_called_python_has_no_network(hermetic, tmp_path, how):
    """A program that is called python, and leads to another program, is not taken for a Python."""
    if not shutil.which("perl"):
        pytest.skip("perl is not installed")
    (tmp_path / "python3").symlink_to(shutil.which("perl"))
    with Ears() as ears:
        words = ["./python3", "-e", PERL_TCP.replace("PORT", str(ears.port))]
        if how == "child":
            words = [sys.executable, "-c", f"import subprocess; subprocess.run({words!r})"]
        hermetic(LOCAL, *words, cwd=tmp_path)
        assert ears.reached() == []


@only_kernel
def test_subprocess_that_was_there_starts_by_the_launcher(guarded, guards_venvs, deeds):
    """What a .pth file has imported before the guards starts programs under the kernel's part."""
    venv = guards_venvs[-1]
    (Path(_site_packages(venv)) / "before.pth").write_text("import subprocess\n")
    try:
        code = _deed_starter("subprocess", deeds.words(NETWORK_DEEDS, sys.executable))
        done = guarded(LOCAL, code, str(venv / "bin" / "python"), cwd=deeds.here)
    finally:
        (Path(_site_packages(venv)) / "before.pth").unlink()
    assert _deeds_done(done) == [], done.stderr


@only_kernel
def test_coverage_lists_no_file_of_hotenv(hermetic, tmp_path):
    """A tool that lists what ran lists none of hotenv's files, though its patches ran."""
    if importlib.util.find_spec("coverage") is None:
        pytest.skip("coverage is not installed")
    (tmp_path / "it.py").write_text(
        "import os, socket, subprocess, sys\n"
        "subprocess.run(['true'])\n"
        "subprocess.run([sys.executable, '-c', 'pass'])\n"
        "os.system('true')\n"
        "socket.create_server(('localhost', 0)).close()\n"
    )
    python = [sys.executable, "-m", "coverage"]
    hermetic(LOCAL, *python, "run", "--data-file=data", "it.py")
    done = output_of([*python, "report", "--data-file=data"], tmp_path, tmp_path)
    assert "it.py" in done.stdout
    assert "hotenv" not in done.stdout


@only_kernel
@pytest.mark.parametrize("python", UNSUPPORTED_PYTHONS)
@pytest.mark.parametrize("how", ["target", "child"])
def test_old_python_runs_without_network(hermetic, deeds, how, python):
    """A Python before 3.8 has no hook: under --no-network it runs, and has no network."""
    code = (
        "import socket, sys\n"
        "print('ran')\n"
        "try: socket.socket()\n"
        "except EnvironmentError: print('refused')\n"
    )
    words = [python, "-c", code]
    if how == "child":
        words = [sys.executable, "-c", f"import subprocess; subprocess.run({words!r}, env={{}})"]
    done = hermetic(LOCAL, *words)
    assert done.stdout == "ran\nrefused\n", done.stderr


def test_missing_program_is_missing_for_a_guarded_python(guarded):
    """A program that is not there is missing, as without guards, and no launcher is started."""
    code = (
        "import os, subprocess\n"
        "for start in (lambda: subprocess.run(['no-such-program']),\n"
        "              lambda: subprocess.run(['/no/such']),\n"
        "              lambda: os.execvp('no-such-program', ['x']),\n"
        "              lambda: os.posix_spawnp('no-such-program', ['x'], os.environ)):\n"
        "    try: start()\n"
        "    except FileNotFoundError as error: print(error.errno)\n"
    )
    done = guarded(LOCAL, code)
    assert done.stdout == "2\n" * 4, done.stderr


# How a guarded Python starts a shell that ends with 7, and prints its status.
STATUSES = [
    "subprocess.run(['sh', '-c', 'exit 7']).returncode",
    "subprocess.run('exit 7', shell=True).returncode",
    "os.system('exit 7') >> 8",
    "os.spawnvp(os.P_WAIT, 'sh', ['sh', '-c', 'exit 7'])",
    "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 7'], {}), 0)[1] >> 8",
    "subprocess.run(['sh', '-c', 'kill -9 $$']).returncode + 16",
]


@only_kernel
@pytest.mark.parametrize("start", STATUSES)
def test_status_of_a_launched_program_is_its_own(guarded, start):
    """The launcher becomes the program, so its exit status and its signals are the program's."""
    done = guarded(LOCAL, f"import os, subprocess; print({start})")
    assert done.stdout == "7\n", done.stderr


@only_kernel
def test_launched_program_keeps_its_arguments(guarded):
    """A launched program has the command line and the environment that it was given."""
    code = (
        "import subprocess\n"
        "words = ['other name', '-c', 'echo \"$0|$1|$A|$B\"', 'zero', 'a \"b\\nc']\n"
        "subprocess.run(words, executable='/bin/sh', env={'A': '1'})\n"
    )
    assert guarded(LOCAL, code).stdout == 'zero|a "b\nc|1|\n'


# ==== guards: the seams ===========================================================================
# What can be said of guards without a process.


def _guards(text):
    """Return the Guards that options stand for."""
    return hotenv.Guards.parse(text.split(), "here")


# The guards of a higher source and of a lower one, and those in force.
MERGED = [
    ("", "", ""),
    ("--no-network", "", "--no-network"),
    ("", "--no-network", "--no-network"),
    ("--no-network", "--allow-localhost", "--no-network"),
    ("--no-network", "--no-network --allow-localhost", "--no-network"),
    ("--no-network", "--allow-unix", "--no-network"),
    ("--no-network", "--allow-domain x.y", "--no-network"),
    ("--allow-localhost", "--no-network", "--no-network --allow-localhost"),
    ("--allow-unix", "--no-network", "--no-network --allow-unix"),
    ("--no-subprocess", "--no-network --allow-unix", "--no-subprocess --no-network --allow-unix"),
    ("--fs-readonly=/", "--fs-readonly=/etc", "--fs-readonly=/"),
    ("--fs-readonly=/etc", "--fs-readonly=/", "--fs-readonly=/etc"),
    ("--fs-readonly=/", "--fs-write /tmp", "--fs-readonly=/"),
    ("--fs-write /tmp", "--fs-readonly=/", "--fs-readonly=/ --fs-write /tmp"),
    ("--strict-imports", "--trace", "--strict-imports --trace"),
]


@pytest.mark.parametrize("higher, lower, merged", MERGED)
def test_guards_are_merged_by_precedence(higher, lower, merged):
    """No allowance of a lower source opens a guard that a higher source has asked for."""
    assert _guards(higher).merge(_guards(lower)).to_text() == _guards(merged).to_text()


@pytest.mark.parametrize("text", [row[2] for row in MERGED] + ["--profile all", "--trace"])
def test_guards_as_text_are_the_same_guards(text):
    """Guards that were written as a text and read again are the same."""
    guards = _guards(text)
    assert hotenv.Guards.from_text(guards.to_text()).to_text() == guards.to_text()


def test_damaged_text_is_no_guards():
    """A text with a line that no guard has is refused."""
    with pytest.raises(ValueError):
        hotenv.Guards.from_text("no-network\nno-such-guard")


@pytest.mark.parametrize(
    "variable, value", [("HERMETIC_PROFILE", "nothing"), ("HERMETIC_FLAGS", "--no-netwrok")]
)
def test_error_names_the_variable(hermetic, guards_runtime, variable, value):
    """A mistake in a variable that configures guards names that variable."""
    env = environment(guards_runtime, **{variable: value})
    assert variable in _guards_refusal(hermetic(NET, "true", env=env), 1)


# A command line of a Python, how it runs, and whether it imports the loader.
PYTHON_LINES = [
    ("python3 x.py", "script", True),
    ("python3 -u x.py", "script", True),
    ("python3 -X dev x.py", "script", True),
    ("python3 -Xdev -Wignore x.py", "script", True),
    ("python3 -m x", "module", True),
    ("python3 -c x", "code", True),
    ("python3", "input", True),
    ("python3 -", "input", True),
    ("python3 -I x.py", "script", False),
    ("python3 -sE x.py", "script", False),
    ("python3 -S -c x", "code", False),
    ("python3 -uI", "input", False),
]


@pytest.mark.parametrize("line, how, has_loader", PYTHON_LINES)
def test_command_line_of_a_python_is_understood(line, how, has_loader):
    """The options of a Python say what runs, and whether the loader is imported."""
    words = line.split()
    command = hotenv._PythonCommand("/usr/bin/python3", words[1:])
    assert (command.how, command.has_loader()) == (how, has_loader)


@pytest.mark.parametrize("line", ["python3 --help", "python3 -V", "python3 -mthis", "python3 -cx"])
def test_unclear_command_line_is_no_python(line):
    """A command line with an option that is not known is not taken for a Python under its hook."""
    with pytest.raises(ValueError):
        hotenv._PythonCommand("/usr/bin/python3", line.split()[1:])


# How a target is written, how it is started, and the script that it has.
SEAM_TARGETS = [
    ("pkg.mod:main a", "call", ""),
    ("./plain.py a", "python", "./plain.py"),
    ("plain.py", "python", "./plain.py"),
    ("plain", "python", ""),
    ("./tool", "program", "./tool"),
    ("./with_E a", "script", "./with_E"),
    ("./with_I_module", "program", "./with_I_module"),
    ("./binary", "program", "./binary"),
    ("./dir", "python", "./dir"),
]


@pytest.mark.parametrize("line, how, script", SEAM_TARGETS)
def test_target_is_resolved(tmp_path, monkeypatch, line, how, script):
    """A target's command line says which program it is, and which word is the script."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "plain.py").write_text("pass\n")
    executable(tmp_path / "tool", "#!/bin/sh\n")
    executable(tmp_path / "with_E", f"#!{sys.executable} -E\n")
    executable(tmp_path / "with_I_module", f"#!{sys.executable} -mthis\n")
    executable(tmp_path / "binary", "\x7fELF\n")
    monkeypatch.chdir(tmp_path)
    target = hotenv._Target.resolve(line.split(), PATHS)
    assert (target.how, target.script) == (how, script)


def test_missing_target_is_missing(tmp_path, monkeypatch):
    """A target that is no program and no module is missing."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        hotenv._Target.resolve(["no-such-target-anywhere"], PATHS)


def _judged(rules, machine, number, *arguments):
    """Return what a filter of these rules says to a system call, by walking its instructions."""
    architecture, column = hotenv._MACHINES[machine]
    program = hotenv._seccomp_program(rules, architecture, column)
    words = struct.pack("<II", number, architecture) + bytes(8)
    words += b"".join(struct.pack("<Q", argument % (1 << 64)) for argument in arguments)
    words = words.ljust(64, b"\0")
    value, place = 0, 0
    while True:
        code, if_true, if_false, operand = program[place]
        place += 1
        if code == hotenv._BPF_LOAD:
            value = struct.unpack_from("<I", words, operand)[0]
        elif code == hotenv._BPF_MASK:
            value &= operand
        elif code == hotenv._BPF_IF_EQUAL:
            place += if_true if value == operand else if_false
        elif code == hotenv._BPF_IF_AT_LEAST:
            place += if_true if value >= operand else if_false
        else:
            return operand


# A system call with its arguments, and whether a program without a hook may make it under
# --no-network, and with --allow-unix, and whether a Python may.
JUDGED = [
    ("socket", (1, 1, 0), True, True, True),
    ("socket", (1, 1 | 0x80000, 0), True, True, True),
    ("socket", (1, 5, 0), True, True, True),
    ("socket", (1, 2, 0), False, True, True),
    ("socket", (1, 3, 0), False, True, True),
    ("socket", (16, 3, 0), True, True, True),
    ("socket", (2, 1, 0), False, False, True),
    ("socket", (2, 1 | 0x800, 6), False, False, True),
    ("socket", (10, 1, 6), False, False, True),
    ("socket", (2, 1, 262), False, False, False),
    ("socket", (2, 2, 0), False, False, False),
    ("socket", (2, 3, 1), False, False, False),
    ("socket", (17, 3, 0), False, False, False),
    ("socket", (40, 1, 0), False, False, False),
    ("socket", ((1 << 32) | 2, 1, 0), False, False, True),
    ("socketpair", (1, 1, 0), True, True, True),
    ("socketpair", (1, 5 | 0x80000, 0), True, True, True),
    ("socketpair", (1, 2, 0), False, True, True),
    ("connect", (3, 99, 16), False, True, True),
    ("bind", (3, 99, 16), False, True, True),
    ("bind", (3, 99, 110), False, True, True),
    ("bind", (3, 99, 12), True, True, True),
    ("listen", (3, 5), False, True, True),
    ("sendto", (3, 99, 1, 0, 0, 0), True, True, True),
    ("sendto", (3, 99, 1, 0, 99, 16), False, True, True),
    ("sendto", (3, 99, 1, 0, 1 << 32, 16), False, True, True),
    ("sendto", (3, 99, 1, 0, 99, 12), True, True, True),
    ("sendto", (3, 99, 1, 1 << 29, 99, 16), False, True, False),
    ("sendmsg", (3, 99, 0), True, True, True),
    ("sendmsg", (3, 99, 1 << 29), False, True, False),
    ("sendmmsg", (3, 99, 1, 1 << 29), False, True, False),
    ("ioctl", (0, 0x5412, 0), False, False, False),
    ("ioctl", (0, (1 << 32) | 0x5412, 0), False, False, False),
    ("ioctl", (0, 0x5413, 0), True, True, True),
    ("io_uring_setup", (1, 0), False, False, False),
    ("execve", (1, 2, 3), True, True, True),
    ("clone", (0, 0), True, True, True),
]


@pytest.mark.parametrize("call, arguments, alone, with_unix, with_hook", JUDGED)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_filter_judges_a_call(machine, call, arguments, alone, with_unix, with_hook):
    """The filters of --no-network let through what they should, on each machine."""
    number = hotenv._CALLS[call][hotenv._MACHINES[machine][1]]
    seen = []
    for text, has_hook in ((NET, False), (NET + " --allow-unix", False), (NET, True)):
        rules = hotenv._any_guard_rules() + hotenv._network_rules(_guards(text), has_hook)
        verdict = _judged(rules, machine, number, *arguments)
        seen.append(verdict == hotenv._SECCOMP_ALLOW)
    assert seen == [alone, with_unix, with_hook]


def test_calls_by_other_numbers_end_the_program():
    """The calls of x32, which have numbers of their own, are not judged: they end the program."""
    rules = hotenv._any_guard_rules()
    assert _judged(rules, "x86_64", 0x40000000 + 41, 2, 1, 0) == hotenv._SECCOMP_KILL


# ==== shell session ===============================================================================
# One bash serves command after command. No command costs the session, and each result tells how its
# command ended.


@pytest.fixture
def shell(tmp_path):
    """A session with SECRETS that starts in a directory of its own."""
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path), timeout=20) as session:
        yield session


# The ways to reach a shell, as values of ShellSession's `remote`. A remote shell has two streams
# where a local one has three pipes; over ssh, death by a signal arrives as an exit status.
_SHELL_WAYS = {
    "local": None,
    "remote": "sh",
    "as by ssh": "sh -c 'sh; exit $?'",
}

_shell_local_and_remote = pytest.mark.parametrize("remote", [None, "sh"], ids=["local", "remote"])

_SHELL_PYTHON = shlex.quote(sys.executable)


def processes_with(mark):
    """Return the rows of ps whose arguments hold `mark`, without zombies and without ps itself."""
    listing = subprocess.run(["ps", "-Ao", "stat=,pid=,args="], stdout=PIPE).stdout
    rows = listing.decode("utf-8", "replace").splitlines()
    alive = [row for row in rows if not row.startswith("Z") and " ps " not in row]
    return [row for row in alive if mark in row]


def _shell_unique_value():
    """Return a secret that no other test, and no other run of the suite, has on an argv."""
    return f"secret-{os.getpid()}-{random.randrange(10**9)}"


def _shell_error(work, *args, **options):
    """Call `work`, and return the HotenvError that it must raise."""
    with pytest.raises(hotenv.HotenvError) as caught:
        work(*args, **options)
    return caught.value


def _shell_text_of(error):
    """Return the whole text of an error: its message, and its hints where it has some."""
    return "\n".join([str(error), *getattr(error, "hints", ())])


def _shell_python(program, *args, **options):
    """Run a Python program that can import hotenv, until it succeeds; return a CompletedProcess."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *args],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        timeout=120,
        stdout=PIPE,
        stderr=PIPE,
        encoding="utf-8",
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done


class _ShellAnything:
    """Equal to everything; stands in a table for a fact that may be any."""

    def __eq__(self, other):
        return True

    def __repr__(self):
        return "<anything>"


class _ShellSaid:
    """Equal to every text at whose beginning a pattern matches."""

    def __init__(self, pattern):
        self.pattern = pattern

    def __eq__(self, text):
        return re.match(self.pattern, text, re.S) is not None

    def __repr__(self):
        return "<text that begins like %r>" % self.pattern


_SHELL_ANYTHING = _ShellAnything()


def _shell_facts(result):
    """Return the facts of a result that the tables below compare, as a dict."""
    return {
        "exit_code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "timed_out": result.timed_out,
        "shell_restarted": result.shell_restarted,
        "truncated": result.truncated,
    }


def _shell_expected(**facts):
    """Return the facts of a command that succeeds and says nothing, but for these."""
    return {
        "exit_code": 0,
        "stdout": "",
        "stderr": "",
        "timed_out": False,
        "shell_restarted": False,
        "truncated": False,
        **facts,
    }


@contextlib.contextmanager
def _shell_that_goes_on(directory, remote=None):
    """Yield a session that must still serve when the block ends.

    Then two commands must find the directory and the exports that the session had before the
    block, and neither of them may find that the shell has ended.
    """
    options = {"cwd": str(directory), "timeout": 20, "remote": remote}
    with hotenv.ShellSession(SECRETS, **options) as session:
        first = session.exec("echo $?; export KEPT='a b'; cd /; cd - >/dev/null")
        assert first.stdout == "0\n"
        yield session
        for _ in range(2):
            after = session.exec("\\builtin printf '[%s]' \"$KEPT\"; \\builtin pwd")
            kept = _shell_expected(stdout=f"[a b]{directory}\n", stderr=_SHELL_ANYTHING)
            assert _shell_facts(after) == kept


def _shell_trial(directory, command, remote=None, limit=None):
    """Run one command in a fresh session, which must go on after it; return the result."""
    with _shell_that_goes_on(directory, remote) as session:
        result = session.exec(command, timeout=limit)
    assert result.command == command
    return result


def _shell_cases(rows, *ways):
    """Return a parameter for each row and way: the row's fields, and a value for `remote`."""
    return [
        pytest.param(*row, _SHELL_WAYS[way], id=f"{way}: {ascii(row[0])[:50]}")
        for way in ways
        for row in rows
    ]


# The names of commands that a session might use itself. Functions may take each of these names.
_SHELL_SHADOWED = [
    ":",
    "__hotenv_probe",
    "alias",
    "builtin",
    "cd",
    "command",
    "compgen",
    "declare",
    "echo",
    "eval",
    "exec",
    "exit",
    "export",
    "jobs",
    "kill",
    "local",
    "printf",
    "read",
    "readonly",
    "return",
    "set",
    "shopt",
    "test",
    "trap",
    "true",
    "unset",
]
_SHELL_SHADOWS = "; ".join(
    f"function {name} {{ /bin/echo BAD; false; }}" for name in _SHELL_SHADOWED
)

# Commands that write nothing to stderr: command, exit code, stdout.
_SHELL_QUIET_EVERYWHERE = [
    ("# nothing", 0, ""),
    ("cat", 0, ""),
    ("cat <<X\n$((1+1)) 'b\nX", 0, "2 'b\n"),
    ("printf abc", 0, "abc"),
    (r"printf '\0\1\377a\200'", 0, "\ufffda\ufffd"),
    ("exec 0<&- 1>&- 2>&-; true", 0, ""),
    ("exec >/dev/null; echo a", 0, ""),
]
_SHELL_QUIET = [
    # nothing, and lines
    ("", 0, ""),
    (" \t ", 0, ""),
    ("\n\n\n", 0, ""),
    ("echo a # b", 0, "a\n"),
    ("echo a\necho b\n\necho c\n", 0, "a\nb\nc\n"),
    ("echo a\nfalse", 1, "a\n"),
    ("echo a \\", 0, "a \\\n"),
    ("cat <<'X'\n$((1+1))\nX\necho b", 0, "$((1+1))\nb\n"),
    # no terminal, and no input
    ('read x; echo "$?[$x]"', 0, "1[]\n"),
    ("test -t 0 -o -t 1 -o -t 2", 1, ""),
    # characters
    ("printf '%s.' a\tb", 0, "a.b."),
    ("printf %s 'a\tb'", 0, "a\tb"),
    ("echo 'a'\"'\"'b' \\\"c\\\" $'d\\'e'", 0, "a'b \"c\" d'e\n"),
    ("echo hi! !! !x '!1'\necho \"!!\"", 0, "hi! !! !x !1\n!!\n"),
    ("printf %s '%d$1`x`'", 0, "%d$1`x`"),
    ("echo 'ä €😀'", 0, "ä €😀\n"),
    ("printf %s '\udcff' | od -An -tx1", 0, " ff\n"),
    # statuses
    ("(exit 4)", 4, ""),
    ("(exit 255)", 255, ""),
    ("bash -c 'kill -9 $$'", 137, ""),
    ("echo a | tr a b", 0, "b\n"),
    ("false | true; echo ${PIPESTATUS[0]}", 0, "1\n"),
    ("kill $$", 0, ""),
    ("kill -INT $$; echo a", 130, ""),
    ("set -e; false || true; if false; then :; fi; echo $?", 0, "0\n"),
    # control characters, which a terminal would obey
    ("printf 'a\\r\\nb\\r\\n'", 0, "a\nb\n"),
    (r"printf '\e[31mred\e[0m \e]0;title\a.'", 0, "red ."),
    (r"printf '10%%\r20%%\r9'", 0, "90%"),
    (r"printf 'downloading\r\e[Kdone'", 0, "done"),
    # descriptors
    ("exec 2>&1; echo a >&2", 0, "a\n"),
    ("exec 3>f; echo x >&3; cat f", 0, "x\n"),
    ("cat <(echo a)", 0, "a\n"),
    ("ulimit -n 250; ls /dev/null", 0, "/dev/null\n"),
    ("umask 777; echo a", 0, "a\n"),
    # options of the shell
    ("set -f; echo *", 0, "*\n"),
    ("set -v; echo a", 0, "a\n"),
    ("set -n; echo a", 0, "a\n"),
    ("set -C; echo a", 0, "a\n"),
    ("set -m; sleep 0.01; sleep 0.01 | echo a", 0, "a\n"),
    ("set -o posix; echo a", 0, "a\n"),
    # traps, prompts and handlers
    ("trap 'echo D; trap - DEBUG' DEBUG; :", 0, "D\n"),
    ("set -T; trap 'false' DEBUG; echo a", 0, "a\n"),
    ("trap 'echo E' ERR; true", 0, ""),
    ("set -T; trap 'echo R; false' RETURN; echo a", 0, "a\n"),
    ("PROMPT_COMMAND='echo P; false'; echo a", 0, "a\n"),
    ("PS1='$(echo no; exit 3)'; PS4='$(exit 4)'; PS0='$(exit 5)'; echo a", 0, "a\n"),
    ("command_not_found_handle() { echo H; }; nope", 0, "H\n"),
    # names that the session itself uses
    (_SHELL_SHADOWS, 0, ""),
    ("alias eval=false builtin=false printf=false {=false", 0, ""),
    ("unset PWD OLDPWD; echo a", 0, "a\n"),
    ("TMOUT=1; echo a", 0, "a\n"),
    ("IFS=0123456789x; echo a", 0, "a\n"),
]


@pytest.mark.parametrize(
    "command, exit_code, stdout, remote",
    [
        *_shell_cases(_SHELL_QUIET_EVERYWHERE, "local", "remote"),
        *_shell_cases(_SHELL_QUIET, "local"),
    ],
)
def test_quiet_command_gives_its_result(command, exit_code, stdout, remote, tmp_path):
    """A command gives its exit code and its stdout, and the session goes on."""
    result = _shell_trial(tmp_path, command, remote)
    assert _shell_facts(result) == _shell_expected(exit_code=exit_code, stdout=stdout)


# Commands that write to stderr: command, exit code, stdout, a pattern for the beginning of stderr.
# The empty pattern stands for any text.
_SHELL_LOUD_EVERYWHERE = [
    ("}", 2, "", "bash: .*syntax error"),
    ("echo 'a", 2, "", "bash: .*unexpected EOF"),
    ("echo a; echo b >&2; echo c", 0, "a\nc\n", "b\n$"),
    ("exec >&-; echo a", 1, "", "bash: .*write error"),
    ("set -x; echo a", 0, "a\n", r"\++ echo a"),
]
_SHELL_LOUD = [
    # text that is not whole
    ("for i in 1 2", 2, "", "bash: .*syntax error"),
    (")", 2, "", "bash: .*syntax error"),
    ("{ echo a", 2, "", "bash: .*syntax error"),
    ("}; } >x; {", 2, "", "bash: .*syntax error"),
    ("echo a\nif", 2, "a\n", "bash: .*syntax error"),
    ('echo "a', 2, "", "bash: .*unexpected EOF"),
    ("echo $(echo a", _SHELL_ANYTHING, "", "bash: .*unexpected EOF"),
    ("cat <<X\nabc", 0, "abc\n", "bash: .*here-document"),
    # no terminal, and no input
    (f"{_SHELL_PYTHON} -c 'input()'", 1, "", "Traceback"),
    ("cat /dev/tty", 1, "", "cat: /dev/tty"),
    # programs that cannot run
    ("no_such_command_here", 127, "", "bash: .*not found"),
    ("exec no_such_command_here", 127, "", "bash: .*not found"),
    ("/", 126, "", "bash: .*directory"),
    ("PATH=; ls", 127, "", "bash: ls"),
    # words that would end another shell, or a loop
    ("logout", 1, "", "bash: logout"),
    ("return 5", _SHELL_ANYTHING, "", "bash: return"),
    ("break", 0, "", "bash: break"),
    ("set -u; echo $nothing; echo no", _SHELL_ANYTHING, "", "bash: .*nothing"),
    # jobs, and shells within the shell
    ("true &", 0, "", r"\[1\] \d+\n"),
    ("sleep 30 & disown; echo a", 0, "a\n", ""),
    ("coproc cat; echo a", 0, "a\n", ""),
    ("bash --norc -i", 0, "", ""),
    ("time true", 0, "", "\nreal"),
]


@pytest.mark.parametrize(
    "command, exit_code, stdout, said, remote",
    [
        *_shell_cases(_SHELL_LOUD_EVERYWHERE, "local", "remote"),
        *_shell_cases(_SHELL_LOUD, "local"),
    ],
)
def test_loud_command_gives_its_result(command, exit_code, stdout, said, remote, tmp_path):
    """A command that complains gives its stderr beside its stdout, and the session goes on."""
    result = _shell_trial(tmp_path, command, remote)
    stderr = _ShellSaid(said)
    assert _shell_facts(result) == _shell_expected(
        exit_code=exit_code, stdout=stdout, stderr=stderr
    )


# Commands with which the shell ends: command, exit code, stdout.
_SHELL_ENDS_AS_BY_SSH = [
    ("kill -TERM $BASHPID; exit 5", 5, ""),
    ("kill -SEGV $$; sleep 1", 139, ""),
]
_SHELL_ENDS_EVERYWHERE = [
    ("exit 3", 3, ""),
    ("echo a; kill -9 $$", 137, "a\n"),
]
_SHELL_ENDS_LOCAL_AND_REMOTE = [
    ("exec echo a", 0, "a\n"),
]
_SHELL_ENDS = [
    ("echo a; exit 7", 7, "a\n"),
    ("f() { exit 4; }; f", 4, ""),
    ("trap 'echo bye' EXIT; exit 5", 5, "bye\n"),
    ("exec sh -c 'sleep 0.1; echo a; exit 9'", 9, "a\n"),
    ("exec bash", 0, ""),
    ("kill -HUP $$; sleep 1", 129, ""),
    ("kill -9 0", 137, ""),
]


@pytest.mark.parametrize(
    "command, exit_code, stdout, remote",
    [
        *_shell_cases(_SHELL_ENDS_AS_BY_SSH, "local", "as by ssh"),
        *_shell_cases(_SHELL_ENDS_EVERYWHERE, "local", "remote", "as by ssh"),
        *_shell_cases(_SHELL_ENDS_LOCAL_AND_REMOTE, "local", "remote"),
        *_shell_cases(_SHELL_ENDS, "local"),
    ],
)
def test_command_may_end_the_shell(command, exit_code, stdout, remote, tmp_path):
    """The result of a command that ends the shell says so, and the session goes on."""
    result = _shell_trial(tmp_path, command, remote)
    assert _shell_facts(result) == _shell_expected(
        exit_code=exit_code, stdout=stdout, shell_restarted=True
    )


@_shell_local_and_remote
def test_errexit_may_end_the_shell(remote, tmp_path):
    """Under `set -e` a command that fails ends the shell, and the session goes on."""
    result = _shell_trial(tmp_path, "set -e; false; echo no", remote)
    assert _shell_facts(result) == _shell_expected(
        exit_code=1, stderr=_SHELL_ANYTHING, shell_restarted=True
    )


def test_background_job_may_end_the_shell(tmp_path):
    """A shell that a background job kills ends the command that runs, and the session goes on."""
    result = _shell_trial(tmp_path, "(sleep 0.05; kill -9 $$) & sleep 30")
    assert _shell_facts(result) == _shell_expected(
        exit_code=137, stderr=_SHELL_ANYTHING, shell_restarted=True
    )


def test_onecmd_option_may_end_the_shell(tmp_path):
    """After `set -t`, with which a shell reads one more command and ends, the session goes on."""
    result = _shell_trial(tmp_path, "set -t; echo a")
    assert _shell_facts(result) == _shell_expected(
        stdout="a\n", stderr=_SHELL_ANYTHING, shell_restarted=_SHELL_ANYTHING
    )


@only_linux
def test_closed_descriptors_may_end_the_shell(tmp_path):
    """A command that closes all the shell's descriptors ends the shell; the session goes on."""
    close_all = 'for f in /proc/$$/fd/*; do eval "exec ${f##*/}>&-"; done'
    result = _shell_trial(tmp_path, close_all)
    assert result.shell_restarted is True
    assert result.timed_out is False
    assert result.truncated is False


@_shell_local_and_remote
def test_printed_marks_end_no_command(remote, tmp_path):
    """Output that looks like the marks of a session ends no command."""
    marks = r"printf '\0%s\n' 0 1 2; printf '\0x\0'; printf '\0%032d\0000\0/\0\0\0%032d\n' 1 1"
    result = _shell_trial(tmp_path, marks + "; false", remote)
    assert _shell_facts(result) == _shell_expected(exit_code=1, stdout=_SHELL_ANYTHING)


def test_writing_to_every_descriptor_ends_nothing(tmp_path):
    """A command that writes to every number of a descriptor reaches no pipe of the session."""
    result = _shell_trial(tmp_path, "for i in {3..260}; do echo x >&$i; done 2>/dev/null; false")
    assert _shell_facts(result) == _shell_expected(
        exit_code=1, stdout=_SHELL_ANYTHING, stderr=_SHELL_ANYTHING
    )


@only_linux
def test_writing_to_the_shells_input_ends_nothing(tmp_path):
    """A command that writes to the shell's own stdin does not disturb the session."""
    result = _shell_trial(tmp_path, "echo 'echo no' >/proc/$$/fd/0; echo a")
    assert _shell_facts(result) == _shell_expected(stdout="a\n", stderr=_SHELL_ANYTHING)


def test_history_expansion_costs_no_session(tmp_path):
    """A command that turns on history expansion does not disturb the session."""
    result = _shell_trial(tmp_path, "set -H -o history; echo 'a\n!!'; echo \"$(history | wc -l)\"")
    assert result.shell_restarted is False
    assert result.timed_out is False
    assert result.truncated is False


def test_functions_of_the_session_are_readonly(tmp_path):
    """A command can neither replace nor remove the functions by which a session works."""
    replaced = 'for each in $(compgen -A function); do eval "$each() { :; }"; done'
    removed = "unset -f $(compgen -A function)"
    for command in (replaced, removed):
        with _shell_that_goes_on(tmp_path) as session:
            result = session.exec(command)
        assert "readonly" in result.stderr
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.shell_restarted is False


def test_state_is_kept_between_commands(shell):
    """Directory, variables, functions, aliases, exports, options and umask outlive a command."""
    shell.exec(
        'mkdir d; cd d; x=1; f() { echo "f$x"; }; alias g=f; export E=2; set -- a b; '
        "umask 077; shopt -s nullglob"
    )
    result = shell.exec("echo ${PWD##*/} $x $E $2 $#; f; umask; shopt -q nullglob && f; g")
    assert result.stdout == "d 1 2 b 2\nf1\n0077\nf1\nf1\n"
    assert result.stderr == ""
    assert result.exit_code == 0


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_next_command_knows_the_status(code, shell):
    """The exit code of a command is `$?` for the next one."""
    shell.exec(f"(exit {code})")
    assert shell.exec("echo $?").stdout == f"{code}\n"


def test_files_of_a_script_stay_its_own(tmp_path):
    """A session writes nothing to descriptors that a command has opened, whatever their numbers."""
    with _shell_that_goes_on(tmp_path) as session:
        session.exec("exec {a}>f1 10>f2 11>f3 12>f4 >f5; export A=1; exit 3")
        result = session.exec("cat f?")
    assert _shell_facts(result) == _shell_expected()


def test_shell_may_end_in_a_removed_directory(tmp_path):
    """A shell that is killed in a directory that is gone is replaced, and the session goes on."""
    with _shell_that_goes_on(tmp_path) as session:
        session.exec("export TOP=$PWD")
        session.exec("mkdir d; cd d; rmdir ../d; kill -9 $$")
        result = session.exec("echo a; cd $TOP")
    assert _shell_facts(result) == _shell_expected(stdout="a\n")


# The ways to export a variable: commands that give X a value, and the value.
_SHELL_EXPORTS = [
    (["export X=1"], "1"),
    (["X=2; export X"], "2"),
    (["declare -x X=3"], "3"),
    (["set -a; X=4; set +a"], "4"),
    (["read -r X <<<5; export X"], "5"),
    (["f() { export X=6; }; f"], "6"),
    (["f() { export X=7; }", "f"], "7"),
    (["alias ex='export X=8'", "ex"], "8"),
    (["printf -v X 9; export X"], "9"),
    (["echo 'export X=10' >s; . ./s"], "10"),
    (["export X=1", "X=11"], "11"),
    (["export X=1", "for X in 12; do :; done"], "12"),
    (["eval 'export X=13'"], "13"),
    (["builtin export X=14"], "14"),
    (["export X=1", "source ./no-such-file 2>/dev/null; unset X"], "gone"),
]


@pytest.mark.parametrize("commands, value", _SHELL_EXPORTS)
def test_each_way_to_export_is_kept(commands, value, shell):
    """A variable that was exported in any way has its value in the next shell."""
    for command in commands:
        shell.exec(command)
    shell.exec("kill -9 $$")
    assert shell.exec("echo ${X-gone}").stdout == f"{value}\n"


# ==== shell session: the next shell ===============================================================
# When a shell has ended, the next one continues where that one was.


@contextlib.contextmanager
def _shell_here_or_afar(remote, directory, environment=SECRETS):
    """Yield a session that starts in this directory."""
    options = {"remote": remote, "cwd": str(directory), "timeout": 20}
    with hotenv.ShellSession(environment, **options) as session:
        yield session


@_shell_local_and_remote
def test_next_shell_keeps_the_directory(remote, tmp_path):
    """The next shell is in the directory of the one that ended."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec("mkdir 'a b'; cd 'a b'")
        session.exec("exit 3")
        result = session.exec("pwd")
        assert result.stdout == f"{tmp_path}/a b\n"
        assert result.cwd == f"{tmp_path}/a b"
        assert session.cwd == f"{tmp_path}/a b"


@_shell_local_and_remote
def test_next_shell_keeps_exported_values(remote, tmp_path):
    """The next shell has each exported value to the byte."""
    value = "two\nlines 'single' \"double\" $x `y` \\ \t!"
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec(f"export KEPT={shlex.quote(value)}")
        session.exec("exit 3")
        assert session.exec('printf %s "$KEPT"').stdout == value


@_shell_local_and_remote
def test_next_shell_keeps_a_changed_path(remote, tmp_path):
    """The next shell has the PATH of the last one, not the PATH of its host."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec("export PATH=$PATH:/x")
        session.exec("exit 3")
        assert session.exec('echo "${PATH##*:}"').stdout == "/x\n"


@_shell_local_and_remote
def test_next_shell_lacks_what_was_unset(remote, tmp_path):
    """The next shell does not have a secret that the last one had unset."""
    with _shell_here_or_afar(remote, tmp_path, {**SECRETS, "GONE": "12345678"}) as session:
        session.exec("unset GONE")
        session.exec("exit 3")
        assert session.exec("echo ${GONE-gone}").stdout == "gone\n"


@_shell_local_and_remote
def test_next_shell_has_only_what_is_exported(remote, tmp_path):
    """The next shell has neither plain variables nor functions of the one that ended."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec("lost=1; f() { :; }")
        session.exec("exit 3")
        assert session.exec('echo "[$lost]"; type -t f').stdout == "[]\n"


@_shell_local_and_remote
def test_next_shell_keeps_values_of_many_lines(remote, tmp_path):
    """The next shell has every line of a secret of many lines."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec("exit 3")
        assert session.exec('printf %s "$PEM" | wc -c').stdout.strip() == str(len(PEM))


@_shell_local_and_remote
def test_restart_is_said_once(remote, tmp_path):
    """The result of the command that ended the shell says so, and the next result does not."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        assert session.exec("true").exit_code == 0
        assert session.exec("exit 3").shell_restarted is True
        assert session.exec("true").shell_restarted is False


@_shell_local_and_remote
@pytest.mark.parametrize(
    "end",
    [
        "exit 3",
        "set -e; false",
        "set -e; cd /no/such",
        "kill -HUP $$; sleep 1",
        "set -u; : $nothing",
        "f() { exit; }; f >/dev/null",
    ],
)
def test_line_that_ends_the_shell_counts(end, remote, tmp_path):
    """The next shell has the directory and the exports of the very line that ended the last one."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec("cd /")
        result = session.exec(f"cd {tmp_path}; export A='{end}' B=\"$TOKEN\"; {end}")
        assert result.cwd == str(tmp_path)
        assert result.timed_out is False
        assert session.exec("echo $A $B; pwd").stdout == f"{end} [hidden:TOKEN]\n{tmp_path}\n"


@_shell_local_and_remote
def test_no_exported_value_is_on_an_argv(remote, tmp_path):
    """Invariant 1: no process has a value among its arguments, not even after a restart."""
    sleep = unique_sleep()
    value = _shell_unique_value()
    with _shell_here_or_afar(remote, tmp_path, {"VALUE": value}) as session:
        session.exec(f"export X={value}; kill -9 $$")
        session.exec(f"{sleep} & true")
        until(lambda: processes_with(sleep))
        assert processes_with(value) == []


@_shell_local_and_remote
def test_no_command_is_kept_in_a_history(remote, monkeypatch, tmp_path):
    """A shell leaves no file in the home directory, a history least of all."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HISTFILE", str(home / "history"))
    with _shell_here_or_afar(remote, tmp_path) as session:
        session.exec(f"export X={TOKEN}")
        session.exec("exit 3")
        session.exec("echo a")
    assert os.listdir(str(home)) == []


@_shell_local_and_remote
@pytest.mark.parametrize("size", [1, 200_000])
def test_dead_shell_is_replaced_before_a_command(size, remote, tmp_path):
    """A shell that has died between commands is replaced, and a command of any size runs once."""
    with _shell_here_or_afar(remote, tmp_path) as session:
        dying = "export KEPT=x; mkdir d; cd d; (sleep 0.02; echo b; kill -9 $$) & echo $$"
        pid = session.exec(dying).stdout.strip()

        def is_dead():
            state = subprocess.run(["ps", "-o", "stat=", "-p", pid], stdout=PIPE).stdout[:1]
            return state in (b"", b"Z")

        until(is_dead, "the end of the shell")
        result = session.exec(
            f"echo $KEPT; pwd; echo {'x' * size} | wc -c | tr -d ' '; echo ran >>ran; cat ran"
        )
        assert result.stdout == f"x\n{tmp_path}/d\n{size + 1}\nran\n"
        assert result.exit_code == 0
        assert result.timed_out is False
        assert result.shell_restarted is True
        assert result.background == "b\n"
        assert session.exec("true").shell_restarted is False


@pytest.mark.parametrize(
    "name, shown",
    [
        ("a b", "a b"),
        ("a'b", "a'b"),
        ("a\nb", r"a\nb"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("-n", "-n"),
        ("*", "*"),
        ("a\\nb", "a\\nb"),
        ("ä\udcff", r"ä\udcff"),
    ],
    ids=ascii,
)
def test_directory_may_have_any_name(name, shown, shell, tmp_path):
    """A directory of any name is shown as printable text, and the next shell is in it."""
    (tmp_path / name).mkdir()
    result = shell.exec(f"cd {tmp_path}/{shlex.quote(name)}")
    assert result.exit_code == 0
    assert result.cwd == f"{tmp_path}/{shown}"

    assert shell.exec("kill -9 $$").shell_restarted is True
    assert shell.exec("true").cwd == f"{tmp_path}/{shown}"
    (tmp_path / name / "here").touch()
    assert shell.exec("ls").stdout == "here\n"


def test_background_output_is_told_apart(shell, tmp_path):
    """The output of a background job is `background`, not the output of the next command."""
    shell.exec("(sleep 0.05; echo late; echo err >&2; touch done) & true")
    until((tmp_path / "done").exists)
    result = shell.exec("echo a")
    assert result.stdout == "a\n"
    assert result.stderr == ""
    assert sorted(result.background.split()) == ["err", "late"]


def test_background_output_is_told_once(shell, tmp_path):
    """The output of a background job is in one result only."""
    shell.exec("(sleep 0.05; echo late; touch done) & true")
    until((tmp_path / "done").exists)
    assert shell.exec("echo a").background == "late\n"
    assert shell.exec("echo b").background == ""


def test_flooding_job_holds_up_nothing(shell):
    """A background job that writes without end neither hangs nor drowns the next commands."""
    shell.exec("yes & echo $!")
    for _ in range(3):
        result = shell.exec("echo a >&2")
        assert result.timed_out is False
        assert "a\n" in result.stderr
        assert len(result.background) < 200_000
    assert shell.exec("kill %1 2>/dev/null || kill $!").timed_out is False


# ==== shell session: limits and interrupts ========================================================
# A time limit and `interrupt()` are one Ctrl-C for the command, and cost no shell that heeds it.


@contextlib.contextmanager
def _shell_interrupted_once(session, condition):
    """Interrupt a session one time, in the block, as soon as `condition()` is true."""

    def interrupt():
        until(condition, "the moment to interrupt")
        session.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextlib.contextmanager
def _shell_interrupted_often(session, condition):
    """Interrupt a session time and again, from when `condition()` is true to the block's end."""
    chance = random.Random(SEED)
    done = threading.Event()

    def interrupt():
        until(condition, "the moment to interrupt")
        while not done.is_set():
            session.interrupt()
            time.sleep(chance.random() / 300)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# Commands that a time limit ends, and that leave the shell alone: command, stdout, stderr.
_SHELL_TOO_LONG = [
    ("set -e; sleep 30", "", ""),
    ("sleep 30 & wait", "", _SHELL_ANYTHING),
    ("while :; do :; done", "", ""),
    ("while :; do sleep 30; done", "", ""),
    ("while :; do sleep 0.03; done", "", ""),
    ("sleep 30 | sleep 30; echo no", "", ""),
    ("(sleep 30; echo no); echo no", "", ""),
    ("bash -c 'sleep 30; echo no'; echo no", "", ""),
    ("mkfifo p; cat p", "", ""),
    ("trap 'echo I' INT; sleep 30", _SHELL_ANYTHING, ""),
]


@pytest.mark.parametrize("command, stdout, stderr", _SHELL_TOO_LONG)
def test_limit_ends_a_command(command, stdout, stderr, tmp_path):
    """A time limit ends a command and all that it started, and costs no shell."""
    result = _shell_trial(tmp_path, command, limit=0.3)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, stdout=stdout, stderr=stderr, timed_out=True
    )


@pytest.mark.parametrize(
    "command",
    [
        "kill -STOP $$",
        "while :; do sleep 0.03; done | while :; do sleep 0.03; done",
    ],
)
def test_limit_ends_what_may_cost_the_shell(command, tmp_path):
    """A time limit ends a stopped shell, or a busy pipeline; the shell may end with it."""
    result = _shell_trial(tmp_path, command, limit=0.3)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, timed_out=True, shell_restarted=_SHELL_ANYTHING
    )


def test_limit_ends_a_shell_that_runs_nothing(tmp_path):
    """A shell whose debugger has it skip every command ends at the time limit."""
    command = "shopt -s extdebug; trap 'false' DEBUG; echo a"
    result = _shell_trial(tmp_path, command, limit=1)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, timed_out=True, shell_restarted=True
    )


@_shell_local_and_remote
def test_limit_keeps_what_was_printed(remote, tmp_path):
    """The output of a command until its time limit is in the result, and the shell goes on."""
    result = _shell_trial(tmp_path, "echo a; sleep 30; echo no", remote, limit=1)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, stdout="a\n", timed_out=True
    )


@_shell_local_and_remote
def test_limit_ends_a_flood(remote, tmp_path):
    """A time limit ends a command that prints without end, and the output of that is cut."""
    result = _shell_trial(tmp_path, "yes", remote, limit=1)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124,
        stdout=_SHELL_ANYTHING,
        timed_out=True,
        truncated=True,
    )


def test_prompt_that_reads_is_ended(tmp_path):
    """A PROMPT_COMMAND that swallows the session's own lines is ended, and the session goes on."""
    with _shell_that_goes_on(tmp_path) as session:
        with _shell_interrupted_once(session, (tmp_path / "begun").exists):
            result = session.exec("PROMPT_COMMAND='read x; read x'; echo a; touch begun")
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, stdout="a\n", timed_out=True, shell_restarted=_SHELL_ANYTHING
    )


def _shell_interrupted_at_rest(directory, command, remote=None):
    """Run a command, interrupt it when it runs `$NAP`, which is a sleep, and return the result."""
    nap = unique_sleep()
    with _shell_that_goes_on(directory, remote) as session:
        session.exec(f"export NAP='{nap}'")
        with _shell_interrupted_once(session, lambda: processes_with(nap)):
            return session.exec(command, timeout=60)


@pytest.mark.parametrize(
    "command, stdout",
    [
        ("echo a; $NAP; echo no", "a\n"),
        ("sh -c 'trap : INT; $NAP; sleep 0.8; echo 1'; echo no", "1\nno\n"),
    ],
)
def test_interrupted_command_may_clean_up(command, stdout, tmp_path):
    """A command may take a moment to end after an interrupt, and costs no shell."""
    result = _shell_interrupted_at_rest(tmp_path, command)
    assert _shell_facts(result) == _shell_expected(exit_code=124, stdout=stdout, timed_out=True)


@pytest.mark.parametrize(
    "command, stdout",
    [
        ("trap '' INT; $NAP", ""),
        ("exec $NAP", ""),
        ("sh -c 'echo 1; trap \"\" INT; $NAP'; echo no", "1\n"),
    ],
)
def test_interrupt_ends_what_ignores_it(command, stdout, tmp_path):
    """A command that ignores an interrupt is ended, and its shell with it."""
    result = _shell_interrupted_at_rest(tmp_path, command)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, stdout=stdout, timed_out=True, shell_restarted=True
    )


@pytest.mark.parametrize(
    "command, stdout",
    [
        ("echo a; $NAP; echo no", "a\n"),
        ("sh -c 'echo 1; trap \"\" INT; $NAP'; echo no", "1\n"),
    ],
)
def test_interrupt_ends_a_remote_command(command, stdout, tmp_path):
    """An interrupt ends a remote command. If the command ignores it, its shell ends, too."""
    result = _shell_interrupted_at_rest(tmp_path, command, remote="sh")
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, stdout=stdout, timed_out=True, shell_restarted="trap" in command
    )


def test_interrupted_command_has_two_seconds(tmp_path):
    """A command that goes on after an interrupt is killed with its shell two seconds later."""
    command = "sh -c 'trap : INT; $NAP; $NAP; echo 1'; echo no"
    result = _shell_interrupted_at_rest(tmp_path, command)
    assert _shell_facts(result) == _shell_expected(
        exit_code=124, timed_out=True, shell_restarted=True
    )
    assert result.duration_ms >= 2000


def test_interrupt_spares_background_jobs(tmp_path):
    """A background job survives the interrupts of other commands."""
    nap = unique_sleep()
    job = (
        "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "open('ready', 'w').close(); time.sleep(60)"
    )
    with _shell_that_goes_on(tmp_path) as session:
        session.exec(f"{_SHELL_PYTHON} -c {shlex.quote(job)} & pid=$!")
        until((tmp_path / "ready").exists)
        for _ in range(2):
            with _shell_interrupted_once(session, lambda: processes_with(nap)):
                result = session.exec(nap)
            assert _shell_facts(result) == _shell_expected(exit_code=124, timed_out=True)
        alive = session.exec("kill -0 $pid && [ $(jobs -p) = $pid ] && echo on")
        assert alive.stdout == "on\n"


# A program that tells of each SIGINT that it gets within 0.6 s after the first one.
_SHELL_COUNTER = """
import signal, sys, time

def count(signum, frame):
    global until
    until = time.monotonic() + 0.6
    print("SIGINT", flush=True)

signal.signal(signal.SIGINT, count)
until = time.monotonic() + 60
print("begun", flush=True)
open("begun." + "".join(sys.argv[1:]), "w").close()
while time.monotonic() < until:
    time.sleep(0.05)
print("cleaned up")
"""


def test_interrupt_reaches_each_process_once(shell, tmp_path):
    """Each process of a command gets SIGINT once, and the shell goes on."""
    (tmp_path / "counter").write_text(_SHELL_COUNTER)
    count = f"{_SHELL_PYTHON} counter"
    command = f'bash -c "{count} 1; echo go on" | ({count} 2 >&2; grep -v x)'

    def both_have_begun():
        return (tmp_path / "begun.1").exists() and (tmp_path / "begun.2").exists()

    with _shell_interrupted_once(shell, both_have_begun):
        result = shell.exec(command, timeout=60)
    assert result.stdout == "begun\nSIGINT\ncleaned up\ngo on\n"
    assert result.stderr == "begun\nSIGINT\ncleaned up\n"
    assert result.timed_out is True
    assert result.shell_restarted is False


def test_limit_on_a_busy_loop_costs_no_shell(shell):
    """A time limit at any moment ends a loop that starts processes, and costs no shell."""
    shell.exec("kept=1")
    for _ in range(amount(200)):
        result = shell.exec("while :; do sleep 0.03; done; echo no", timeout=0.1)
        assert result.stdout == ""
        assert result.timed_out is True
        assert result.shell_restarted is False
    assert shell.exec("echo $kept").stdout == "1\n"


def test_second_interrupt_costs_no_shell(shell, tmp_path):
    """Interrupts after the first one reach neither the command nor the shell."""
    (tmp_path / "counter").write_text(_SHELL_COUNTER)
    shell.exec("kept=1")
    with _shell_interrupted_often(shell, (tmp_path / "begun.").exists):
        result = shell.exec(f"{_SHELL_PYTHON} counter", timeout=60)
    assert result.stdout.count("SIGINT") == 1
    assert "cleaned up" in result.stdout
    assert result.shell_restarted is False
    assert shell.exec("echo $kept").stdout == "1\n"


def test_interrupt_at_any_moment_costs_no_shell(shell):
    """An interrupt at any moment ends the command that runs, and costs no shell."""
    shell.exec("kept=1")
    with _shell_interrupted_often(shell, lambda: True):
        for _ in range(amount(700)):
            result = shell.exec("sleep 5; echo no")
            assert result.stdout == ""
            assert result.timed_out is True
            assert result.shell_restarted is False
    assert shell.exec("echo $kept").stdout == "1\n"


# Seconds: limits that pass before, or just when, a command begins.
_SHELL_SHORT_LIMITS = [0, -1, 1e-9, 0.0003, 0.001, 0.003, 0.004, 0.01, 0.02]


def test_limit_before_a_command_begins():
    """A time limit that passes before the command begins costs no shell and prints nothing."""

    def check(limit):
        with tempfile.TemporaryDirectory() as place:
            with hotenv.ShellSession(SECRETS, cwd=place, timeout=20) as session:
                session.exec("kept=1")
                for _ in range(amount(200)):
                    result = session.exec("sleep 5", timeout=limit)
                    assert result.exit_code == 124
                    assert result.timed_out is True
                    assert result.shell_restarted is False
                    assert result.stdout == ""
                assert session.exec("echo $kept").stdout == "1\n"

    side_by_side(_SHELL_SHORT_LIMITS, check, len(_SHELL_SHORT_LIMITS))


def test_limit_while_a_command_is_read():
    """A time limit that passes while the shell reads a long command runs no part of it."""

    def check(limit):
        with tempfile.TemporaryDirectory() as place:
            with hotenv.ShellSession(SECRETS, cwd=place, timeout=20) as session:
                session.exec(": '\n" + "touch ran\n" * 40_000 + "'", timeout=limit)
                assert session.exec("ls").stdout == ""

    side_by_side(_SHELL_SHORT_LIMITS, check, len(_SHELL_SHORT_LIMITS))


# Commands whose output is the number N, with short sleeps S and an exit code X.
_SHELL_SHAPES = [
    "echo {N}",
    "echo {N}; sleep {S}; echo {N}e >&2",
    "sleep {S}; echo {N}",
    "sleep {S} & wait; echo {N}",
    "echo {N}; exit {X}",
    "for i in 1 2 3; do echo {N}; sleep {S}; done",
    "/bin/echo {N} | cat",
    "seq {N} {N}; (sleep {S}; exit {X})",
    "echo {N}; (exit {X})",
    "export N={N}; cd /; echo $N",
    "exec echo {N}",
    _SHELL_PYTHON + " -c 'print({N})'",
    "cat <<X\n{N}\nX",
    "echo {N}; kill -INT $$",
    "# {N}",
    "echo '{N}",
    "bash -c 'echo {N}; sleep {S}'",
]


def test_random_limits_mix_no_results(tmp_path):
    """Under random time limits no result has the output of another command."""
    chance = random.Random(SEED)
    late = 0
    restarted = 0
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path)) as session:
        for number in range(10**9, 10**9 + amount(2000)):
            shape = chance.choice(_SHELL_SHAPES)
            command = shape.format(
                N=number, S=f"0.0{chance.randrange(30):02}", X=chance.randrange(1, 120)
            )
            limit = chance.choice((0.0001, 0.001, 0.003, 0.01, 0.03, 5))
            result = session.exec(command, timeout=limit)

            output = result.stdout + result.stderr + result.background
            others = set(re.findall(r"1\d{9}", output)) - {str(number)}
            assert others == set(), (command, result)
            assert result.timed_out == (result.exit_code == 124), (command, result)
            late += result.timed_out
            restarted += result.shell_restarted
        assert session.exec("echo alive").stdout == "alive\n"
    assert late > 0
    assert restarted > 0


def test_interrupt_from_a_thread_ends_a_command(shell, tmp_path):
    """`interrupt()` of another thread ends a command as its time limit would."""
    with _shell_interrupted_once(shell, (tmp_path / "begun").exists):
        result = shell.exec("echo a; touch begun; sleep 30")
    assert _shell_facts(result) == _shell_expected(exit_code=124, stdout="a\n", timed_out=True)


def test_limit_holds_for_a_stopped_shell(shell):
    """A time limit holds for a shell that somebody has stopped, and the shell goes on."""
    os.kill(int(shell.exec("echo $$").stdout), signal.SIGSTOP)
    result = shell.exec("sleep 30", timeout=0.2)
    assert result.timed_out is True
    assert result.shell_restarted is False


@contextlib.contextmanager
def _shell_signal(signum, handler):
    """Have a handler for a signal in the block."""
    earlier = signal.signal(signum, handler)
    try:
        yield
    finally:
        signal.signal(signum, earlier)


def test_limit_holds_where_sigint_is_ignored():
    """A time limit is an interrupt for a shell whose host ignores interrupts itself."""
    with _shell_signal(signal.SIGINT, signal.SIG_IGN), hotenv.ShellSession() as session:
        session.exec("kept=1")
        assert session.exec("sleep 30", timeout=0.2).timed_out is True
        assert session.exec("echo $kept").stdout == "1\n"


def test_exception_leaves_no_output(shell, tmp_path):
    """A command that an exception of the caller ends leaves no process, and no output."""
    sleep = unique_sleep()
    main = threading.main_thread().ident

    def raise_it():
        until(lambda: processes_with(sleep))
        signal.pthread_kill(main, signal.SIGUSR1)

    with _shell_signal(signal.SIGUSR1, signal.default_int_handler):
        thread = threading.Thread(target=raise_it)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            shell.exec(f"echo early; {sleep}; echo late; touch late")
        thread.join()
    assert processes_with(sleep) == []

    result = shell.exec("echo new; ls")
    assert result.stdout == "new\n"
    assert result.background == ""
    assert result.shell_restarted is True


# ==== shell session: its end ======================================================================
# When a session or its host ends, all processes end that the session has started.


def _shell_strays(sleep):
    """Return a command that starts `sleep` in all the ways in which a shell may lose a process."""
    return f"{sleep} & ({sleep} &) ; nohup {sleep} & disown; set -m; {sleep} & timeout 90 {sleep} &"


def test_closed_session_leaves_no_process(tmp_path):
    """No process that a session started, in whatever way, outlives the session."""
    sleep = unique_sleep()
    with hotenv.ShellSession(cwd=str(tmp_path)) as session:
        session.exec(_shell_strays(sleep))
        until(lambda: len(processes_with(sleep)) >= 5)
    until(lambda: not processes_with(sleep), patience=5)


@only_linux
def test_ended_shell_leaves_no_process(tmp_path):
    """No process that a shell started, in whatever way, outlives the shell."""
    sleep = unique_sleep()
    with hotenv.ShellSession(cwd=str(tmp_path)) as session:
        session.exec(_shell_strays(sleep))
        until(lambda: len(processes_with(sleep)) >= 5)
        session.exec("exit")
        until(lambda: not processes_with(sleep), patience=5)


def test_closed_session_refuses_commands():
    """A closed session raises SessionPoisoned for each command."""
    with hotenv.ShellSession() as session:
        session.exec("true")
    error = _shell_error(session.exec, "echo a")
    assert isinstance(error, hotenv.SessionPoisoned)


def test_session_may_be_closed_twice():
    """A session that is closed may be closed again."""
    session = hotenv.ShellSession()
    session.close()
    session.close()


def test_dropped_session_leaves_no_process():
    """No process that a session started outlives the last reference to the session."""
    sleep = unique_sleep()
    session = hotenv.ShellSession()
    session.exec(f"{sleep} & true")
    until(lambda: processes_with(sleep))
    del session
    gc.collect()
    assert processes_with(sleep) == []


@only_linux
@_shell_local_and_remote
def test_killed_host_leaves_no_process(remote):
    """No process that a session started outlives a host that is killed."""
    program = """if 1:
        import hotenv, sys
        session = hotenv.ShellSession({"A": "12345678"}, remote=sys.argv[1] or None)
        command = "$NAP & ($NAP & set -m; timeout 99 $NAP &) ; trap '' INT HUP TERM; $NAP"
        session.exec(command, timeout=99)
        """
    sleep = unique_sleep()
    host = subprocess.Popen(
        [sys.executable, "-c", program, remote or ""],
        env={**os.environ, "PYTHONPATH": str(HERE), "NAP": sleep},
    )
    until(lambda: len(processes_with(sleep)) >= 5)
    host.kill()
    host.wait()
    until(lambda: not processes_with(sleep))


# The beginning of a program that counts its descriptors. Its first session does the imports that
# sessions need.
_SHELL_DESCRIPTORS = """
import gc, json, os, resource, sys
import hotenv

def descriptors():
    return len(os.listdir("/dev/fd"))

with hotenv.ShellSession(audit="audit") as session:
    session.exec("exit")
before = descriptors()
"""


def test_closed_session_leaves_no_descriptor(tmp_path):
    """A closed session, also one whose shells have ended, leaves no descriptor open."""
    program = """
for remote in (None, "sh", None):
    with hotenv.ShellSession(remote=remote, audit="audit") as session:
        session.exec("exit")
        session.exec("true")
print(descriptors() - before)
"""
    assert _shell_python(_SHELL_DESCRIPTORS + program, cwd=str(tmp_path)).stdout == "0\n"


def test_dropped_session_leaves_no_descriptor(tmp_path):
    """A session to which nobody refers any more leaves no descriptor open."""
    program = """
session = hotenv.ShellSession()
session.exec("sleep 30 & true")
del session
gc.collect()
print(descriptors() - before)
"""
    assert _shell_python(_SHELL_DESCRIPTORS + program, cwd=str(tmp_path)).stdout == "0\n"


@pytest.mark.parametrize(
    "options",
    [
        {"remote": "/no/such/program"},
        {"remote": "false"},
        {"cwd": "/no/such/directory"},
        {"audit": "/no/such/directory/audit"},
    ],
    ids=str,
)
def test_refused_session_leaves_no_descriptor(options, tmp_path):
    """A session that cannot begin is refused, and leaves no descriptor open."""
    program = """
try:
    hotenv.ShellSession(**json.loads(sys.argv[1]))
except hotenv.HotenvError:
    print("refused")
print(descriptors() - before)
"""
    done = _shell_python(_SHELL_DESCRIPTORS + program, json.dumps(options), cwd=str(tmp_path))
    assert done.stdout == "refused\n0\n"


def test_session_without_descriptors_is_refused(tmp_path):
    """A session is refused, 8, where no descriptors are left, and leaves none open."""
    program = """
resource.setrlimit(resource.RLIMIT_NOFILE, (260, 260))
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(180)]
before = descriptors()
sessions = []
try:
    for _ in range(99):
        sessions.append(hotenv.ShellSession())
except hotenv.HotenvError as error:
    code, text = error.code, str(error)
while sessions:
    sessions.pop().close()
print(json.dumps([code, text, descriptors() - before]))
"""
    done = _shell_python(_SHELL_DESCRIPTORS + program, cwd=str(tmp_path))
    code, text, left = json.loads(done.stdout)
    assert code == 8
    assert "bash" in text
    assert left == 0


def test_sessions_leave_no_zombie(tmp_path):
    """Closed, dropped and refused sessions leave no child that waits to be reaped."""
    program = """
for remote in (None, "sh"):
    with hotenv.ShellSession(remote=remote) as session:
        session.exec("exit")
        session.exec("true")
session = hotenv.ShellSession()
session.exec("sleep 30 & true")
del session
gc.collect()
try:
    hotenv.ShellSession(remote="false")
except hotenv.HotenvError:
    print("refused")
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""
    done = _shell_python(_SHELL_DESCRIPTORS + program, cwd=str(tmp_path))
    assert done.stdout == "refused\nno child\n"


# ==== shell session: threads and forks ============================================================
# Threads may share a session. A fork of its process ends nothing of it.


def test_threads_share_a_shell(shell):
    """Each thread that uses a session gets the results of its own commands."""

    def work(number):
        said = []
        for step in range(20):
            said.append(shell.exec(f"echo {number}.{step}; echo {number} >&2").stdout)
        return said

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(6)))
    assert results == [[f"{number}.{step}\n" for step in range(20)] for number in range(6)]


def test_threads_open_sessions_at_once():
    """Several threads may open sessions at one moment, and each session masks its secrets."""

    def work(number):
        with hotenv.ShellSession(SECRETS) as session:
            return session.exec(f"echo {number} $TOKEN").stdout

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(6)))
    assert results == [f"{number} [hidden:TOKEN]\n" for number in range(6)]


def test_session_outlives_its_thread():
    """Sessions serve on when the threads that opened them have ended."""

    def work(number):
        session = hotenv.ShellSession(SECRETS)
        session.exec(f"echo {number}")
        return session

    with ThreadPoolExecutor(6) as pool:
        sessions = list(pool.map(work, range(6)))
    for session in sessions:
        with session:
            result = session.exec("sleep 0.1; echo a")
            assert result.stdout == "a\n"
            assert result.shell_restarted is False


def test_forked_child_cannot_use_a_session(shell):
    """A fork of the process that opened a session cannot run commands in it."""

    def child():
        error = _shell_error(shell.exec, "echo a")
        return 0 if isinstance(error, hotenv.SessionPoisoned) else 1

    assert in_child(child) == 0


def test_forked_child_ends_no_session(shell):
    """A session serves on when a fork of its process has closed its copy."""
    shell.exec("kept=1")

    def child():
        with shell:
            pass

    assert in_child(child) == 0
    result = shell.exec("echo $kept")
    assert result.stdout == "1\n"
    assert result.shell_restarted is False


def test_forked_child_ends_no_command(shell, tmp_path):
    """A command goes on while a fork of the process closes its copy of the session."""
    shell.exec("kept=1")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            shell.exec, "touch begun; until [ -e go ]; do sleep 0.01; done; echo $kept"
        )
        until((tmp_path / "begun").exists)
        assert in_child(shell.close) == 0
        (tmp_path / "go").touch()
        result = running.result()
    assert result.stdout == "1\n"
    assert result.shell_restarted is False


def test_close_from_a_thread_ends_a_command(shell):
    """`close()` of another thread ends a command with its processes, and `exec()` raises."""
    sleep = unique_sleep()

    def close():
        until(lambda: processes_with(sleep))
        shell.close()

    thread = threading.Thread(target=close)
    thread.start()
    error = _shell_error(shell.exec, sleep)
    assert isinstance(error, hotenv.SessionPoisoned)
    assert processes_with(sleep) == []
    thread.join()


def test_close_from_a_handler_ends_a_command(shell):
    """`close()` of a signal handler ends the command that runs, and `exec()` raises."""
    sleep = unique_sleep()
    main = threading.main_thread().ident

    def send():
        until(lambda: processes_with(sleep))
        signal.pthread_kill(main, signal.SIGUSR1)

    with _shell_signal(signal.SIGUSR1, lambda signum, frame: shell.close()):
        thread = threading.Thread(target=send)
        thread.start()
        error = _shell_error(shell.exec, sleep)
        assert isinstance(error, hotenv.SessionPoisoned)
        assert processes_with(sleep) == []
        thread.join()


# ==== shell session: refusals =====================================================================
# A session refuses whatever it cannot do, with a reason that holds no value.


def _shell_door(path, lines):
    """Make `path` a program that leads to a shell, or does not."""
    executable(path, "#!/bin/sh\n" + lines + "\n")


def test_session_that_cannot_come_back_refuses(tmp_path):
    """A session whose shell cannot be replaced refuses every command, and says why."""
    door = tmp_path / "door"
    _shell_door(door, "exec sh")
    with hotenv.ShellSession(SECRETS, remote=str(door)) as session:
        assert session.exec("echo a").stdout == "a\n"
        _shell_door(door, f"echo 'bad key {TOKEN}' >&2; exit 7")
        assert session.exec("exit 3").exit_code == 3
        for _ in range(2):
            error = _shell_error(session.exec, "echo a")
            assert isinstance(error, hotenv.SessionPoisoned)
            assert error.code == 8
            assert "status 7" in str(error)
            assert "bad key" in str(error)
            assert TOKEN not in _shell_text_of(error)


def test_session_that_cannot_come_back_is_audited(tmp_path):
    """The audit has the reason why a command could not run, without a value."""
    door = tmp_path / "door"
    audit = tmp_path / "audit"
    _shell_door(door, "exec sh")
    with hotenv.ShellSession(SECRETS, remote=str(door), audit=str(audit)) as session:
        session.exec("echo a")
        _shell_door(door, f"echo 'bad key {TOKEN}' >&2; exit 7")
        session.exec("exit 3")
        for _ in range(2):
            _shell_error(session.exec, "echo a")
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert events == ["start", "end", "start", "end", "start", "failed"]
    assert "status 7" in lines[-1]["reason"]
    assert TOKEN not in audit.read_text()


# Options with which no session can begin: options, exit code, a pattern of the reason.
_SHELL_BAD_OPTIONS = [
    ({"remote": "false"}, 8, "status 1"),
    ({"remote": "no-such-program"}, 8, "No such file"),
    ({"remote": "sh", "cwd": "/no/such"}, 8, "directory"),
    ({"remote": "sh", "isolated": True}, 2, "isolated"),
    ({"remote": ""}, 2, "command"),
    ({"remote": "ssh 'x"}, 2, "command"),
    ({"cwd": "/no/such"}, 2, "directory"),
    ({"policy": {"allowed": []}}, 2, "JSON"),
    ({"policy": "/no/such"}, 8, "policy"),
    ({"timeout": float("nan")}, 2, "time limit"),
    ({"timeout": "5"}, 2, "time limit"),
    ({"timeout": [1]}, 2, "time limit"),
    ({"environment": {"A=B": "1"}}, 2, "name"),
    ({"environment": {"": "1"}}, 2, "name"),
    ({"environment": {1: "1"}}, 2, "name"),
    ({"environment": {"A": 1}}, 2, "value"),
    ({"environment": {"A": "x\0y"}}, 2, "value"),
    ({"environment": {"A": "\ud800"}}, 2, "value"),
]


@pytest.mark.parametrize("options, code, words", _SHELL_BAD_OPTIONS, ids=ascii)
def test_session_that_cannot_open_says_why(options, code, words):
    """A session that cannot begin with its options is refused with a reason."""
    error = _shell_error(hotenv.ShellSession, **{"environment": SECRETS, **options})
    assert error.code == code
    assert re.search(words, _shell_text_of(error))


# Commands and time limits that no shell can take.
_SHELL_BAD_COMMANDS = [
    pytest.param("true", float("nan"), id="limit NaN"),
    pytest.param("true", "5", id="limit text"),
    pytest.param("true", [1], id="limit list"),
    pytest.param("echo a\0b", 9, id="NUL"),
    pytest.param("echo \ud800", 9, id="lone surrogate"),
    pytest.param("x" * (16 << 20) + "y", 9, id="over 16 MiB"),
]


@pytest.mark.parametrize("command, limit", _SHELL_BAD_COMMANDS)
def test_command_that_cannot_be_sent_is_refused(command, limit, shell):
    """A command or a limit that no shell can take is refused, 2, and the session serves on."""
    assert _shell_error(shell.exec, command, timeout=limit).code == 2
    assert shell.exec("echo a").stdout == "a\n"


def test_limit_may_be_infinite(shell):
    """A time limit may be infinite."""
    assert shell.exec("echo a", timeout=float("inf")).stdout == "a\n"


# ==== shell session: its environment ==============================================================
# A shell gets the secrets and its host's variables, but none by which somebody could control it.


def test_shell_gets_the_host_environment(monkeypatch):
    """A local shell has the variables of its host."""
    monkeypatch.setenv("FROM_HOST", "host")
    with hotenv.ShellSession(SECRETS) as session:
        assert session.exec("echo $FROM_HOST").stdout == "host\n"


def test_shell_gets_secrets_over_the_host(monkeypatch):
    """A secret wins over a variable of the host that has its name."""
    monkeypatch.setenv("TOKEN", "other")
    with hotenv.ShellSession(SECRETS) as session:
        assert session.exec("echo ${#TOKEN}").stdout == f"{len(TOKEN)}\n"


def test_shell_without_secrets_masks_none(monkeypatch):
    """A session without an environment of its own masks no variable of the host."""
    monkeypatch.setenv("TOKEN", "other")
    with hotenv.ShellSession() as session:
        assert session.exec("echo $TOKEN").stdout == "other\n"


def test_isolated_shell_lacks_the_hosts_variables(monkeypatch):
    """An isolated shell has the secrets and PATH, but no other variable of its host."""
    monkeypatch.setenv("FROM_HOST", "host")
    with hotenv.ShellSession(SECRETS, isolated=True) as session:
        result = session.exec("echo [$FROM_HOST] ${#TOKEN} ${PATH:+path}")
        assert result.stdout == f"[] {len(TOKEN)} path\n"


def test_unmaskable_names_are_told(shell):
    """A session tells the names whose values are too short to be masked."""
    assert shell.unmaskable == ["PIN"]


def test_local_shell_takes_odd_names():
    """A local shell has secrets whose names no shell could export."""
    with hotenv.ShellSession({**SECRETS, "a.b": "12345678"}) as session:
        assert session.omitted == []
        assert "a.b=[" in session.exec("env").stdout


def test_remote_shell_omits_odd_names():
    """A remote session leaves out the names that no shell can export, and tells them."""
    with hotenv.ShellSession({**SECRETS, "a.b": "12345678"}, remote="sh") as session:
        assert session.omitted == ["a.b"]


def test_commands_get_three_descriptors(shell):
    """A command has the descriptors 0, 1 and 2 alone; `ls` lists these and its directory."""
    assert shell.exec("ls /dev/fd | wc -l | tr -d ' '").stdout == "4\n"


# Variables that would have a bash run `EVIL`, print, or end: name, value.
_SHELL_EVIL = [
    ("BASH_ENV", "EVIL"),
    ("ENV", "EVIL"),
    ("PROMPT_COMMAND", ". EVIL"),
    ("PS0", "$(. EVIL)"),
    ("PS1", "$(. EVIL)"),
    ("PS4", "$(. EVIL)"),
    ("SHELLOPTS", "xtrace:errexit"),
    ("BASHOPTS", "extdebug"),
    ("TMOUT", "1"),
    ("IGNOREEOF", "9"),
    ("POSIXLY_CORRECT", "1"),
]

# Functions that a bash takes from its environment: name, definition.
_SHELL_EVIL_FUNCTIONS = [
    ("BASH_FUNC_printf%%", "() { . EVIL; }"),
    ("BASH_FUNC_builtin%%", "() { . EVIL; }"),
]


def _shell_is_undisturbed(session):
    """Check that the shell is not in POSIX mode, and that no text but a command's is printed."""
    result = session.exec("set -o | grep -c 'posix.*on'; printf a", timeout=5)
    assert result.stdout == "0\na"
    assert result.stderr == ""
    assert result.shell_restarted is False


@pytest.mark.parametrize("name, value", [*_SHELL_EVIL, *_SHELL_EVIL_FUNCTIONS])
def test_no_host_variable_runs_anything(name, value, monkeypatch, tmp_path):
    """No variable of the host makes the shell run, print or end something."""
    (tmp_path / "evil").write_text(f"echo evil; touch {tmp_path}/ran")
    monkeypatch.setenv(name, value.replace("EVIL", str(tmp_path / "evil")))
    with hotenv.ShellSession() as session:
        _shell_is_undisturbed(session)
        assert session.omitted == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name, value", _SHELL_EVIL)
def test_no_given_variable_runs_anything(name, value, tmp_path):
    """No variable of the session's environment makes the shell run, print or end something."""
    (tmp_path / "evil").write_text(f"echo evil; touch {tmp_path}/ran")
    with hotenv.ShellSession({name: value.replace("EVIL", str(tmp_path / "evil"))}) as session:
        _shell_is_undisturbed(session)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name, value", _SHELL_EVIL)
def test_variables_that_are_left_out_are_told(name, value):
    """A session tells the names that it left out; ENV, which bash does not read, is not one."""
    expected = [] if name == "ENV" else [name]
    with hotenv.ShellSession({name: value}) as session:
        assert session.omitted == expected


# ==== shell session: what is shown ================================================================
# No text that a session gives back holds a value, and none is longer than its limit.


def test_no_text_of_a_result_holds_a_value(shell, tmp_path):
    """Command, stdout, stderr and directory of a result are masked, in every form of the result."""
    (tmp_path / TOKEN).mkdir()
    result = shell.exec(
        f"cd {TOKEN}; echo $TOKEN; echo $TOKEN >&2; printf '%s' \"$PEM\"; echo $TOKEN | base64; "
        f"no_$TOKEN; echo '{TOKEN}'"
    )
    assert "hidden:TOKEN" in result.command
    assert "hidden:TOKEN" in result.stdout
    assert "hidden:TOKEN" in result.stderr
    assert "hidden:TOKEN" in result.cwd
    assert TOKEN not in repr(result)
    assert TOKEN not in repr(result.as_dict())
    assert "MIIEvQ" not in result.stdout


def test_background_output_is_masked(shell, tmp_path):
    """The output of a background job is masked."""
    shell.exec("(sleep 0.05; echo $TOKEN; echo x >done) &")
    until((tmp_path / "done").exists)
    assert "hidden:TOKEN" in shell.exec("true").background


def test_directory_of_a_session_is_masked(shell, tmp_path):
    """The directory of a session is masked."""
    (tmp_path / TOKEN).mkdir()
    shell.exec(f"cd {TOKEN}")
    assert shell.cwd == f"{tmp_path}/[hidden:TOKEN]"


# Formats of printf that hide a value among control characters: format, and how many characters of
# the value the first `%s` takes where the rest follows in the second one.
_SHELL_HIDING_PLACES = [
    (r"\e[1m%s\e[0m", 0),
    (r"\r%s", 0),
    (r"a\r\n%s\r\n", 0),
    (r"Token: %s\rToken: ******\n", 0),
    (r"%.6s\e[31m%s", 6),
    (r"%.5s\0%s", 5),
    (r"%.4s\a%s", 4),
    (r"...%.6s%s\r...", 6),
    (r"Token: %.6s\e[0m%s\rToken: ***\n", 6),
    (r"......%.1s%s\r......\n", 1),
]


@pytest.mark.parametrize("written, first", _SHELL_HIDING_PLACES)
def test_no_control_character_hides_a_value(written, first, shell):
    """A value that is printed with control characters around or within it is masked."""
    rest = TOKEN[first:] if first else ""
    said = shell.exec(f"printf '{written}' {TOKEN} {rest}").stdout
    assert re.search(r"hidden|TOKEN\]", said), said
    for at in range(len(TOKEN) - 4):
        assert TOKEN[at : at + 5] not in said


def test_overwritten_line_shows_no_value(shell):
    """A value whose two halves are put together by a carriage return is masked."""
    said = shell.exec(f"printf 'xxxxxx%s\\r%s' '{TOKEN[6:]}' '{TOKEN[:6]}'").stdout
    assert said == "[hidden:TOKEN]"


def test_value_with_control_characters_is_masked():
    """A value is masked before control characters are taken out of it."""
    odd = "first\x1b[31msecond\x07third\r\nfourth"
    with hotenv.ShellSession({"ODD": odd}) as session:
        said = session.exec("printf 'a %s b' \"$ODD\"").stdout
    assert said.startswith("a [hidden:ODD]")
    assert "second" not in said


def test_no_mask_shows_named_values(tmp_path):
    """`no_mask` shows the values of its names and prefixes, and no others."""
    given = {
        "LEVEL": "verbose-mode",
        "AWS_REGION": "eu-central-1",
        "AWS_ZONE": "eu-central-1a",
        "TOKEN": TOKEN,
    }
    with hotenv.ShellSession(given, no_mask=["LEVEL", "AWS_*"]) as session:
        said = session.exec("echo $LEVEL $AWS_REGION $AWS_ZONE $TOKEN").stdout
    assert said == "verbose-mode eu-central-1 eu-central-1a [hidden:TOKEN]\n"


def test_directory_that_is_a_value_is_shown(tmp_path):
    """A directory that is the value of a variable is shown, but no secret in its path."""
    below = tmp_path / "below"
    (below / TOKEN).mkdir(parents=True)
    given = {"HOME": str(tmp_path), "BELOW": str(below), "TOKEN": TOKEN}
    with hotenv.ShellSession(given, cwd=str(tmp_path)) as session:
        assert session.exec("true").cwd == str(tmp_path)
        assert session.cwd == str(tmp_path)
        assert session.exec(f"cd below/{TOKEN}").cwd == f"{tmp_path}/below/[hidden:TOKEN]"


def test_long_output_lacks_its_middle():
    """Output beyond the limit is cut to its head, the count of all bytes, and its tail."""
    size = sum(len(str(number)) + 1 for number in range(1, 100001))
    with hotenv.ShellSession(max_output=1000) as session:
        result = session.exec("seq 1 100000")
    assert result.truncated is True
    assert len(result.stdout) < 1100
    assert result.stdout.startswith("1\n2\n")
    assert f"[hotenv: {size} bytes in all" in result.stdout
    assert result.stdout.endswith("\n99999\n100000\n")


def test_each_stream_has_a_limit_of_its_own():
    """A stream within the limit is whole although the other one is cut."""
    with hotenv.ShellSession(max_output=1000) as session:
        result = session.exec("seq 1 100000; seq 1 200 >&2")
    assert result.truncated is True
    assert result.stderr == "".join(f"{number}\n" for number in range(1, 201))


@pytest.mark.parametrize("size, truncated", [(1000, False), (1001, True)])
def test_output_is_cut_beyond_the_limit(size, truncated):
    """Output of just the limit is whole, and one character more is not."""
    with hotenv.ShellSession(max_output=1000) as session:
        result = session.exec(f"head -c {size} /dev/zero | tr '\\0' x")
    assert result.truncated is truncated


def test_negative_limit_shows_no_output():
    """A limit below zero is a limit of zero."""
    with hotenv.ShellSession(max_output=-1) as session:
        assert session.exec("echo a").stdout.strip().startswith("[hotenv: 2 bytes")


@pytest.mark.parametrize("escapes", ["", "\x1b[31m" * 20], ids=["plain", "escapes"])
def test_no_part_of_a_value_is_left_at_a_cut(escapes, tmp_path):
    """No part of a value is left where output is cut, wherever the cut falls."""
    chance = random.Random(SEED)
    secret = "".join(chance.choice("abcdefghijklmnop") for _ in range(120))
    options = {"max_output": 400, "cwd": str(tmp_path)}
    with hotenv.ShellSession({"LONG": secret}, **options) as session:
        for _ in range(amount(1000)):
            line = escapes + "." * chance.randrange(1, 40) + secret
            (tmp_path / "text").write_text(line * chance.choice((1, 3, 9, 30, 60, 200)))
            result = session.exec("cat text")
            left = result.stdout.replace("[hidden:LONG]", "")
            parts = [secret[at : at + 6] for at in range(len(secret) - 5)]
            assert [part for part in parts if part in left] == [], result.stdout
            assert result.truncated == ("[hotenv: " in result.stdout)
            assert len(result.stdout) < 480


@only_linux
@_shell_local_and_remote
def test_memory_stays_flat_in_a_flood(remote):
    """Sixty megabytes of output take no more memory than nine."""
    program = """
import hotenv, json, sys

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

session = hotenv.ShellSession({"A": "12345678"}, remote=sys.argv[1] or None)
floods = ["head -c %d /dev/zero", "yes | head -c %d", "head -c %d /dev/zero >&2"]
for flood in floods * 2:
    session.exec(flood % 9_000_000, timeout=60)
before = peak()
for flood in floods:
    result = session.exec(flood % 60_000_000, timeout=60)
    print(json.dumps([peak() - before, result.truncated, result.timed_out]))
"""
    lines = _shell_python(program, remote or "").stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        kilobytes, truncated, timed_out = json.loads(line)
        # Under load more of it waits, up to eight megabytes. To keep a flood would take 51 more.
        assert kilobytes < 16 * 1024
        assert truncated is True
        assert timed_out is False


# ==== policy ======================================================================================
# A policy sees the first word of every simple command, and refuses text that it cannot follow.


def _policy_refusal(policy, command, directory):
    """Return the reason with which a policy refuses a command, which therefore does not run."""
    with hotenv.ShellSession(policy=policy, cwd=str(directory), timeout=5) as session:
        with pytest.raises(hotenv.PolicyDenied) as caught:
            session.exec(command)
    assert caught.value.code == 10
    return str(caught.value)


# Shell text, and the first words of the simple commands in it.
_POLICY_FIRST_WORDS = [
    # simple commands and their words
    ("ls -l", ["ls"]),
    ("a=1 b=$x ls; rm x", ["ls", "rm"]),
    ("2>/dev/null ls >x 2>&1 <y", ["ls"]),
    ("foo&>x; bar &>> y", ["foo", "bar"]),
    ('r\'m\' x; \\rm y; "rm" z; r""m; [ a ]', ["rm", "["]),
    ("s\\udo x; 'su'do y", ["sudo"]),
    ("su\\\ndo x", ["sudo"]),
    ("/bin/rm x", ["/bin/rm"]),
    ("\trm", ["rm"]),
    ("echo a\\\nb; next", ["echo", "next"]),
    ("a=(x y z); ls", ["ls"]),
    ("declare -a b=(q 'r s' \"$t\"); ls", ["declare", "ls"]),
    ("echo {a,b}; ls", ["echo", "ls"]),
    # quotes
    ("echo $'it\\'s'; ls", ["echo", "ls"]),
    ('echo "a;b"; ls', ["echo", "ls"]),
    ("echo 'a\nrm\n'; ls", ["echo", "ls"]),
    ('echo "it\'s"; rm', ["echo", "rm"]),
    # comments
    ("", []),
    ("# rm\nls # rm", ["ls"]),
    ("echo a#b; ls", ["echo", "ls"]),
    ("(a)#b\nc", ["a", "c"]),
    # lists and groups
    ("a\nb\n\nc", ["a", "b", "c"]),
    ("! grep x | tee y |& wc && a || b & c", ["grep", "tee", "wc", "a", "b", "c"]),
    ("(rm x)", ["rm"]),
    ("( (rm x); ls)", ["rm", "ls"]),
    ("{ a; b; } && (c; d)", ["a", "b", "c", "d"]),
    ("a && { b || c; } | d", ["a", "b", "c", "d"]),
    # compound commands
    ("if true; then echo a; else rm b; fi", ["true", "echo", "rm"]),
    ("for x in a b; do echo $x; done", ["echo"]),
    ("for x do sudo; done", ["sudo"]),
    ("for ((i=0;i<3;i++)); do git x; done", ["git"]),
    ("for ((;;)) do sudo ls; done", ["sudo"]),
    ("until a; do b; done", ["a", "b"]),
    ("while read l; do x; done < <(gen)", ["read", "x", "gen"]),
    ("f() { rm x; }; f", ["rm", "f"]),
    ("f () ( rm x )", ["rm"]),
    ("time -p make", ["make"]),
    ("[[ a && b ]] && c", ["c"]),
    ("A=1 [[ ; sudo x; [[ a ]]", ["[[", "sudo"]),
    ("(( i = (2+3)*2 )) && d", ["d"]),
    # substitutions
    ("echo \"a $(curl x) b\" 'no $(x)'", ["echo", "curl"]),
    ('x=$(cmd "$(inner)")', ["cmd", "inner"]),
    ("diff <(sort a) <(uniq b)", ["diff", "sort", "uniq"]),
    # here-documents
    ("cat <<'EOF'\n$(sudo x)\nEOF\nls", ["cat", "ls"]),
    ("cat <<-EOF; mv\n\trm\n\tEOF\nls", ["cat", "mv", "ls"]),
    ("cat <<A <<B\nrm\nA\nrm\nB\nls", ["cat", "ls"]),
    ("cmd <<< 'rm'; ls", ["cmd", "ls"]),
]


@pytest.mark.parametrize("command, words", _POLICY_FIRST_WORDS)
def test_policy_denies_each_first_word(command, words, tmp_path):
    """Text is refused if the first word of any of its simple commands is denied."""
    for word in words:
        reason = _policy_refusal({"deny": [word]}, command, tmp_path)
        assert f"{word} is denied" in reason


@pytest.mark.parametrize("command, words", _POLICY_FIRST_WORDS)
def test_policy_asks_for_each_first_word(command, words, tmp_path):
    """Text is refused if the first word of any of its simple commands is not allowed."""
    for word in words:
        others = [each for each in words if each != word]
        reason = _policy_refusal({"allow": others}, command, tmp_path)
        assert f"{word} is not among" in reason


@pytest.mark.parametrize("command, words", _POLICY_FIRST_WORDS)
def test_policy_sees_no_other_word(command, words, tmp_path):
    """Text whose first words are allowed is refused only for a denied command that follows it."""
    policy = {"allow": words, "deny": ["stop-here"]}
    reason = _policy_refusal(policy, command + "\nstop-here", tmp_path)
    assert "stop-here is denied" in reason


# Shell text whose commands a policy cannot tell apart.
_POLICY_UNCLEAR = [
    # text that is not whole
    "echo '",
    'echo "',
    "echo $(",
    "echo `",
    "case x in",
    ")",
    "${",
    "$((",
    "cat <<X\na",
    # text that may mean more than one thing
    "ls !(a)",
    "(" * 10000,
    "echo `a \\`rm\\``",
    'echo "${x:-`rm`}"',
    'x="${a:-"}"',
    "echo ${x@P}",
    'cat <<E"O"F\nE\nEOF\n',
    "$(cat <<A)\nsudo\nA",
    # compound commands that no policy reads
    "select x in a; do b; done",
    "coproc N { sudo ls; }",
    "function f { a; }",
    "echo [[ a ]]",
    # first words that the shell makes
    "$CMD q",
    '"$(rm x)" y',
    "`echo a`",
    "{fd}>/dev/null id",
]


@pytest.mark.parametrize("command", _POLICY_UNCLEAR, ids=short)
def test_policy_refuses_what_it_cannot_follow(command, tmp_path):
    """Text whose commands cannot be told apart is refused, whatever is denied."""
    assert "cannot be told apart" in _policy_refusal({"deny": []}, command, tmp_path)


# Ways to run sudo in shell text.
_POLICY_SUDO = [
    # behind quotes that a careless reader would pair wrongly
    '"[[" ; sudo ls; echo "]]"',
    '"$\'"; sudo ls; echo "\'"',
    '"${x:-\'}"; sudo ls; echo "\'}"',
    "[[ a == ' ]] ' ]]; sudo ls; echo ' '",
    # behind comments, and behind signs that begin none
    "echo a\\\n#; sudo ls",
    "echo $(date)#x; sudo ls",
    "echo \\ #; sudo ls",
    "echo \\;# ; sudo ls",
    "echo $((1+1))#x; sudo ls",
    "echo <(true)#; sudo ls",
    "a=(1)#; sudo ls",
    "ls \r#x; sudo ls",
    "a\r\nsudo ls",
    # in and behind here-documents
    "cat <<EOF\n\tEOF\n'\nEOF\nsudo ls\necho '",
    "cat <<X\n$(sudo ls)\nX",
    'cat <<X\n"$(sudo ls)"\nX',
    # in substitutions
    "a=$(sudo ls)",
    "a=($(sudo ls))",
    "echo ${a[$(sudo ls)]}",
    "((a[$(sudo ls)]))",
    "[[ $(sudo ls) ]]",
    'echo "`sudo ls`"',
    # in compound commands
    "if ! sudo ls; then :; fi",
    "A=1 case x; sudo ls",
    "case x in $(sudo ls)) a;; esac",
    "case a in b) ;; esac; sudo ls",
    "case a in esac\nsudo ls",
    "case x in (a) sudo ls;; esac",
    "case x in a) b ;& c) sudo ls;; esac",
    "function f { sudo ls; }",
    "function f () { sudo ls; }",
    "sudo ls\n ()",
    "coproc sudo ls",
    "select x in a; do sudo ls; done",
    "for ((i=0;i<1;i++)) { sudo ls; }",
    # under another spelling
    "S=sudo; $S ls",
    "$(echo sudo) ls",
    "{sudo,ls}",
    "$'su\\x64o' ls",
    "a[1 + 2]=5 sudo ls",
    "/usr/bin/sud? ls",
    "{fd}>x sudo ls",
]


@pytest.mark.parametrize("command", _POLICY_SUDO)
def test_policy_misses_no_way_to_run_sudo(command, tmp_path):
    """Text that may run a denied command is refused, in whatever way it is written."""
    assert _policy_refusal({"deny": ["sudo"]}, command, tmp_path)


@pytest.mark.parametrize(
    "piece",
    [
        "echo $(",
        "a;",
        "'a' ",
        '"a" ',
        "# x\n",
        "`a` ",
        "<<A\n",
        "<<A ",
        "((1)) ",
        "((1+(2)",
        "${a",
        "\\",
        "\\\n",
        "(",
        "[[ ",
        "a=(",
        "a=('x' ",
        '"',
        "case x in ",
        "case a in b) c;; esac\n",
    ],
)
def test_policy_takes_linear_time(piece, tmp_path):
    """Text of 40,000 characters is read in less than a second of processor time."""
    command = piece * (40_000 // len(piece)) + "\nstop-here"
    with hotenv.ShellSession(policy={"deny": ["stop-here"]}, cwd=str(tmp_path)) as session:
        begun = time.process_time()
        with pytest.raises(hotenv.PolicyDenied):
            session.exec(command)
        assert time.process_time() - begun < 1


def test_policy_that_allows_nothing(tmp_path):
    """An empty list of allowed commands allows none."""
    assert "not among" in _policy_refusal({"allow": []}, "ls", tmp_path)


def test_policy_without_rules_allows_all():
    """A policy without any list allows every command."""
    with hotenv.ShellSession(policy={}) as session:
        assert session.exec("case a in a) echo a;; esac").stdout == "a\n"


def test_policy_may_be_a_file(tmp_path):
    """A policy may be a file, whose refusals leave the session as it is."""
    policy = tmp_path / "policy"
    policy.write_text('{"allow": ["echo", "export", "cat"], "deny": ["cat"]}')
    with hotenv.ShellSession(SECRETS, policy=str(policy)) as session:
        assert session.exec("echo a").stdout == "a\n"
        error = _shell_error(session.exec, "echo a; rm x")
        assert "rm is not among" in str(error)
        error = _shell_error(session.exec, "echo a; /bin/cat x")
        assert "cat is denied" in str(error)
        assert session.exec("echo b").stdout == "b\n"


@pytest.mark.parametrize(
    "command, words",
    [
        (f"rm {TOKEN}", "rm is not among"),
        (f"{TOKEN} x", "hidden:TOKEN"),
        ("echo '", "told apart"),
    ],
)
def test_refusal_of_a_policy_holds_no_value(command, words):
    """The refusal of a command says why, 10, and holds no value."""
    with hotenv.ShellSession(SECRETS, policy={"allow": ["echo"]}) as session:
        with pytest.raises(hotenv.PolicyDenied, match=words) as caught:
            session.exec(command)
    assert caught.value.code == 10
    assert TOKEN not in _shell_text_of(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b'{"allow": "ls"}',
        b'{"allow": [1]}',
        b'{"block": []}',
        b'{"deny": null}',
        b"[" * 100000,
        b'"\\ud800"',
        b"\xff",
    ],
    ids=short,
)
def test_malformed_policy_is_refused(text, tmp_path):
    """A policy file that is no JSON object of two lists of words is refused, 2."""
    (tmp_path / "policy").write_bytes(text)
    assert _shell_error(hotenv.ShellSession, policy=str(tmp_path / "policy")).code == 2


# ==== audit =======================================================================================
# Every command has a line where it starts and one where it ends, before and after it runs.


def _audit_lines(path):
    """Return the lines of an audit file, parsed."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The audit of one session: a file that had a line before, and four commands, the last late."""
    directory = tmp_path_factory.mktemp("audited")
    path = directory / "audit"
    executable(path, '{"event": "earlier"}\n', 0o644)
    with hotenv.ShellSession(SECRETS, audit=str(path), cwd=str(directory)) as session:
        session.exec(f"echo {TOKEN}\x1b")
        session.exec("false")
        session.exec("exit 3")
        session.exec("sleep 30", timeout=0.1)
    return path


def test_audit_adds_to_the_file(audited):
    """An audit file keeps the lines that it had before."""
    assert _audit_lines(audited)[0] == {"event": "earlier"}


def test_audit_has_two_lines_for_a_command(audited):
    """The audit has two lines with the number of each command: its start and its end."""
    told = [(line["event"], line["id"]) for line in _audit_lines(audited)[1:]]
    assert told == [
        ("start", 1),
        ("end", 1),
        ("start", 2),
        ("end", 2),
        ("start", 3),
        ("end", 3),
        ("start", 4),
        ("end", 4),
    ]


def test_audit_says_how_commands_ended(audited):
    """The line of an end has the exit code, and tells of a time limit and of a restart."""
    ends = [line for line in _audit_lines(audited) if line["event"] == "end"]
    told = [(end["exit_code"], end["timed_out"], end["shell_restarted"]) for end in ends]
    assert told == [
        (0, False, False),
        (1, False, False),
        (3, False, True),
        (124, True, False),
    ]


def test_audit_says_where_commands_ended(audited):
    """The line of an end has the directory."""
    assert _audit_lines(audited)[2]["cwd"] == str(audited.parent)


def test_audit_names_one_session(audited):
    """All lines of a session have one name."""
    assert len({line["session"] for line in _audit_lines(audited)[1:]}) == 1


def test_audit_has_the_time_in_utc(audited):
    """A line of the audit has the time in UTC, to the millisecond."""
    for line in _audit_lines(audited)[1:]:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", line["time"])


def test_audit_holds_no_value(audited):
    """Invariant 1: a command is masked in the audit."""
    assert TOKEN not in audited.read_text()
    assert _audit_lines(audited)[1]["command"] == "echo [hidden:TOKEN]\x1b"


def test_audit_is_printable(audited):
    """Invariant 10: every line of the audit is printable, whatever the command is."""
    for line in audited.read_text().splitlines():
        assert line.isprintable()


def test_audit_is_its_users_alone(audited):
    """Only its user may read an audit file, even if others could read it before."""
    assert mode(audited) == 0o600


def test_audit_has_refused_commands(tmp_path):
    """The audit has a command that a policy refuses, with the reason and without a value."""
    audit = tmp_path / "audit"
    policy = {"allow": ["echo"]}
    with hotenv.ShellSession(SECRETS, policy=policy, audit=str(audit)) as session:
        session.exec("echo a")
        _shell_error(session.exec, f"rm {TOKEN}")
        _shell_error(session.exec, f"{TOKEN} x")
        session.exec("echo b")
    lines = _audit_lines(audit)
    events = [line["event"] for line in lines]
    assert events == ["start", "end", "blocked", "blocked", "start", "end"]
    assert lines[2]["command"] == "rm [hidden:TOKEN]"
    assert "rm" in lines[2]["reason"]
    assert TOKEN not in audit.read_text()


def test_audit_leaves_a_rotated_file_alone(tmp_path):
    """An audit file that was moved away for rotation gets no further line."""
    audit = tmp_path / "audit"
    rotated = tmp_path / "rotated"
    with hotenv.ShellSession(audit=str(audit)) as session:
        session.exec("echo one")
        text = audit.read_text()
        audit.rename(rotated)
        session.exec("echo two")
    assert rotated.read_text() == text
    assert mode(rotated) == 0o600


def test_audit_follows_its_path(tmp_path):
    """An audit file that is gone is made anew, for its user alone."""
    audit = tmp_path / "audit"
    with hotenv.ShellSession(audit=str(audit)) as session:
        session.exec("echo one")
        audit.unlink()
        session.exec("echo two")
    told = [(line["event"], line.get("command")) for line in _audit_lines(audit)]
    assert told == [("start", "echo two"), ("end", None)]
    assert mode(audit) == 0o600


@pytest.mark.parametrize(
    "kind", ["link", "hard link", "directory", "fifo", "/dev/null", "/no/such/audit"]
)
def test_audit_goes_to_a_plain_file_alone(kind, tmp_path):
    """An audit that is no plain file with one name is refused, 8, and nothing is written there."""
    path = tmp_path / "audit"
    target = tmp_path / "target"
    target.write_text("precious\n")
    if kind == "hard link":
        os.link(str(target), str(path))
    else:
        planted(path, kind)
    place = kind if kind.startswith("/") else str(path)

    error = _shell_error(hotenv.ShellSession, audit=place)
    assert error.code == 8
    assert "audit" in _shell_text_of(error)
    assert target.read_text() == "precious\n"


# The beginning of a program with a session whose audit file may run out of room.
_AUDIT_WITHOUT_ROOM = """
import os, resource, signal, sys
import hotenv

soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def leave_room(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize("audit") + size, hard))

def refused(command):
    try:
        session.exec(command)
    except hotenv.HotenvError as error:
        print(error)

session = hotenv.ShellSession(audit="audit")
session.exec("true")
first_line = open("audit", "rb").readline()
room_for_a_start = len(first_line) + len("touch b") - len("true")
"""


@pytest.mark.parametrize("room", [0, 20])
def test_command_that_no_audit_holds_is_refused(room, tmp_path):
    """A command whose start cannot be written to the audit does not run."""
    program = """
leave_room(int(sys.argv[1]))
refused("touch ran")
"""
    done = _shell_python(_AUDIT_WITHOUT_ROOM + program, str(room), cwd=str(tmp_path))
    assert "cannot write the audit" in done.stdout
    assert not (tmp_path / "ran").exists()


def test_end_that_no_audit_holds_is_said(tmp_path):
    """A command whose end cannot be written to the audit has its result, and stderr says so."""
    program = """
leave_room(room_for_a_start)
print(session.exec("touch b").exit_code)
"""
    done = _shell_python(_AUDIT_WITHOUT_ROOM + program, cwd=str(tmp_path))
    assert done.stdout == "0\n"
    assert "cannot write the audit" in done.stderr
    assert (tmp_path / "b").exists()


def test_audit_goes_on_after_a_full_disk(tmp_path):
    """After the half line that a full disk has left, the audit goes on with whole lines."""
    program = """
for room in (0, 20):
    leave_room(room)
    refused("touch ran")
leave_room(len("\\n") + room_for_a_start)
session.exec("touch b")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(session.exec("echo a").stdout)
"""
    done = _shell_python(_AUDIT_WITHOUT_ROOM + program, cwd=str(tmp_path))
    assert done.stdout.endswith("\na\n\n")
    whole = []
    for text in (tmp_path / "audit").read_text().splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            whole.append((line["event"], line["id"]))
    assert whole == [("start", 1), ("end", 1), ("start", 4), ("start", 5), ("end", 5)]


# ==== shells over ssh =============================================================================
# A session over ssh does what a local one does.


@pytest.fixture
def ssh_shell(host, tmp_path):
    """A session with SECRETS over ssh."""
    options = {"remote": host.command, "cwd": str(tmp_path), "timeout": 20}
    with hotenv.ShellSession(SECRETS, **options) as session:
        yield session


def test_ssh_shell_gets_the_secrets(ssh_shell, tmp_path):
    """A shell over ssh has the secrets, and its output is masked."""
    result = ssh_shell.exec(
        'echo ${#TOKEN}; echo $TOKEN >&2; printf %s "$PEM" | wc -c; test -n "$SSH_CONNECTION"'
    )
    assert result.stdout == f"{len(TOKEN)}\n{len(PEM)}\n"
    assert result.stderr == "[hidden:TOKEN]\n"
    assert result.exit_code == 0
    assert result.cwd == str(tmp_path)


def test_ssh_shell_is_replaced(ssh_shell, tmp_path):
    """The next shell over ssh has directory and exports of the one that ended."""
    ssh_shell.exec("export KEPT=x; mkdir d; cd d; unset PIN")
    result = ssh_shell.exec("echo a; exit 7")
    assert result.stdout == "a\n"
    assert result.exit_code == 7
    assert result.shell_restarted is True
    assert ssh_shell.exec("echo $KEPT [${PIN-gone}]; pwd").stdout == f"x [gone]\n{tmp_path}/d\n"


def test_ssh_shell_that_is_killed_is_replaced(ssh_shell):
    """A shell over ssh that dies of a signal has its status, and is replaced."""
    assert ssh_shell.exec("kill -9 $$").exit_code == 137
    assert ssh_shell.exec("true").exit_code == 0


def test_ssh_shell_keeps_a_time_limit(ssh_shell, tmp_path):
    """A time limit ends a command over ssh, and the shell goes on."""
    sleep = unique_sleep()
    ssh_shell.exec("export KEPT=x")
    late = ssh_shell.exec(f"echo a; {sleep}", timeout=1)
    assert _shell_facts(late) == _shell_expected(
        exit_code=124, stdout="a\n", timed_out=True
    )
    assert ssh_shell.exec("echo $KEPT; pwd").stdout == f"x\n{tmp_path}\n"
    until(lambda: not processes_with(sleep))


def test_ssh_shell_gives_no_input(ssh_shell):
    """A command over ssh reads an empty stdin."""
    assert ssh_shell.exec("seq 1 200000 | tail -1; cat").stdout == "200000\n"


def test_ssh_shell_has_no_value_on_an_argv(host):
    """Invariant 1: no process of a session over ssh has a value among its arguments."""
    sleep = unique_sleep()
    value = _shell_unique_value()
    with hotenv.ShellSession({"VALUE": value}, remote=host.command, timeout=20) as session:
        session.exec(f"export X={value}; kill -9 $$")
        session.exec(f"{sleep} & true")
        until(lambda: processes_with(sleep))
        assert processes_with(value) == []


def test_ssh_that_lets_nobody_in_is_told(host):
    """A session that ssh refuses is refused with the words of ssh."""
    stranger = [*host.command[:-1], "-l", "nobody-here", "host"]
    error = _shell_error(hotenv.ShellSession, SECRETS, remote=stranger)
    assert re.search("(?i)ended with status 255.*(denied|permission)", _shell_text_of(error))


# ==== mcp =========================================================================================
# An agent asks for shells and commands over stdin, and gets masked results over stdout.


def _mcp_dotenv(snapshot):
    """Return dotenv text for `serve` that holds these variables."""
    lines = []
    for name, value in snapshot.items():
        quoted = value.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"{name}='{quoted}'\n")
    return "".join(lines).encode()


def _mcp_line(**fields):
    """Return a JSON-RPC message as one line."""
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


class _McpAgent:
    """A client of `hotenv mcp`, by raw JSON lines, in a project whose session holds SECRETS.

    - `server`: the process of `hotenv serve`.
    - `process`: the process of `hotenv mcp`.
    - `dir`: the directory in which its shells start.
    """

    def __init__(self, project, *options, serve=()):
        self.project = project
        self.dir = project.dir
        self.count = 0
        self.start_session(SECRETS, *serve)

        def ignore_children():
            # An ignored signal stays ignored across exec, and `mcp` has to see its shells end.
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        self.process = project.start(
            "mcp", *options, stdin=PIPE, stdout=PIPE, stderr=PIPE, preexec_fn=ignore_children
        )

    def start_session(self, snapshot, *options):
        """Start a hotenv session with this snapshot in place of the last one."""
        self.server = self.project.serve(_mcp_dotenv(snapshot), "--force", *options)

    def send(self, line):
        """Write a line."""
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self):
        """Return the next message."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def ask(self, method, number=None, **params):
        """Call a method, and return the result or the error that the next message must hold."""
        self.count += 1
        if number is None:
            number = self.count
        self.send(_mcp_line(id=number, method=method, params=params))
        answer = self.receive()
        assert answer["id"] == number
        return answer["result"] if "result" in answer else answer["error"]

    def tool(self, tool, **arguments):
        """Call a tool, and return what its text holds: JSON, or a sentence where it has failed."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        text = result["content"][0]["text"]
        return text if result["isError"] else json.loads(text)

    def exec(self, command, session="s1", **arguments):
        """Run a command in a session, and return its result."""
        return self.tool("session_exec", session=session, command=command, **arguments)

    def begin(self, number, command, session="s1"):
        """Ask for a command with this number, and wait for nothing."""
        arguments = {"session": session, "command": command}
        params = {"name": "session_exec", "arguments": arguments}
        self.send(_mcp_line(id=number, method="tools/call", params=params))

    def cancel(self, number):
        """Cancel the call with this number."""
        params = {"requestId": number, "reason": "x"}
        self.send(_mcp_line(method="notifications/cancelled", params=params))


@pytest.fixture
def mcp(project):
    """An agent with one open session, s1."""
    agent = _McpAgent(project)
    assert agent.tool("session_open")["session"] == "s1"
    return agent


@pytest.fixture(scope="module")
def mcp_standing():
    """An agent with one open session, s1, that many tests use, and none ends."""
    with contextlib.closing(Project()) as project:
        agent = _McpAgent(project, serve=("--timeout", "1h"))
        assert agent.tool("session_open")["session"] == "s1"
        yield agent
        assert agent.process.poll() is None, "the mcp that many tests share has ended"


# The revisions of the protocol that are known, the newest last.
_MCP_REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("offered", _MCP_REVISIONS)
def test_mcp_speaks_a_known_revision(offered, mcp_standing):
    """The revision of the protocol is the one that the client offers, if it is a known one."""
    hello = mcp_standing.ask(
        "initialize", protocolVersion=offered, capabilities={}, clientInfo={"name": "t"}
    )
    assert hello["protocolVersion"] == offered


@pytest.mark.parametrize("offered", ["2099-01-01", "", None, 7])
def test_mcp_offers_its_newest_revision(offered, mcp_standing):
    """A client that offers an unknown revision of the protocol is offered the newest."""
    hello = mcp_standing.ask(
        "initialize", protocolVersion=offered, capabilities={}, clientInfo={"name": "t"}
    )
    assert hello["protocolVersion"] == _MCP_REVISIONS[-1]


def test_mcp_says_what_it_is(mcp_standing):
    """The answer to `initialize` has the name of the program, and offers tools."""
    hello = mcp_standing.ask("initialize", protocolVersion=_MCP_REVISIONS[-1])
    assert hello["serverInfo"]["name"] == "hotenv"
    assert "tools" in hello["capabilities"]


def test_mcp_answers_a_ping(mcp_standing):
    """A ping is answered, and the notification that a client is initialized is not."""
    mcp_standing.send(_mcp_line(method="notifications/initialized"))
    assert mcp_standing.ask("ping") == {}


def test_mcp_takes_text_as_an_id(mcp_standing):
    """The id of a request may be text."""
    assert mcp_standing.ask("ping", "some text") == {}


def test_mcp_has_seven_tools(mcp_standing):
    """An agent has tools to open, use, list and close sessions, and to use their jobs."""
    tools = mcp_standing.ask("tools/list")["tools"]
    assert {tool["name"] for tool in tools} == {
        "session_open",
        "session_exec",
        "session_read",
        "session_write",
        "session_stop",
        "session_list",
        "session_close",
    }


def test_mcp_describes_its_tools(mcp_standing):
    """Each tool has a description, and a schema for its arguments."""
    for tool in mcp_standing.ask("tools/list")["tools"]:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"


def test_mcp_tools_take_little_of_a_context(mcp_standing):
    """The list of tools, which an agent has to read as a whole, is below 8 KiB."""
    assert len(json.dumps(mcp_standing.ask("tools/list")["tools"])) < 8192


def test_mcp_offers_its_remotes(project):
    """An agent may open sessions on the machines that `--remote` names, and on no other."""
    agent = _McpAgent(
        project, "--remote", "web=ssh -T web", "--remote", "db=docker exec -i db bash"
    )
    schema = agent.ask("tools/list")["tools"][0]["inputSchema"]
    assert schema["properties"]["remote"]["enum"] == ["db", "web"]


def test_mcp_open_tells_names(project, tmp_path):
    """An opened session is told with its directory, and the names of its secrets."""
    agent = _McpAgent(project)
    assert agent.tool("session_open", cwd=str(tmp_path)) == {
        "session": "s1",
        "cwd": str(tmp_path),
        "secrets": sorted(SECRETS),
        "unmaskable": ["PIN"],
        "not_exported": [],
    }


def test_mcp_exec_tells_a_result(mcp_standing):
    """The result of a command has the fields of an ExecResult, without the command itself."""
    result = mcp_standing.exec("true")
    assert list(result) == [
        "stdout",
        "stderr",
        "exit_code",
        "duration_ms",
        "cwd",
        "truncated",
        "timed_out",
        "shell_restarted",
        "background",
    ]


def test_mcp_exec_masks_both_streams(mcp_standing):
    """Both stdout and stderr of a command are masked."""
    result = mcp_standing.exec("echo $TOKEN; echo $TOKEN >&2")
    assert result["stdout"] == "[hidden:TOKEN]\n"
    assert result["stderr"] == "[hidden:TOKEN]\n"


def test_mcp_exec_tells_how_a_command_ended(mcp):
    """The result of a command has its exit code, and the directory in which it ended."""
    result = mcp.exec("cd /; false")
    assert result["exit_code"] == 1
    assert result["cwd"] == "/"


def test_mcp_exec_goes_on_after_an_exit(mcp):
    """A command that ends the shell has its exit code, and the next one has its exports."""
    mcp.exec("export A=1; cd /")
    assert mcp.exec("exit 3")["exit_code"] == 3
    result = mcp.exec("echo $A ${#TOKEN}")
    assert result["stdout"] == f"1 {len(TOKEN)}\n"
    assert result["cwd"] == "/"


def test_mcp_exec_keeps_a_time_limit(mcp):
    """A command that takes longer than its `timeout` ends with 124."""
    assert mcp.exec("sleep 30", timeout=0.2)["exit_code"] == 124


def test_mcp_answer_does_not_grow_with_a_command(mcp):
    """An answer does not repeat the command."""
    mcp.begin(99, "cat >/dev/null <<X\n" + "x" * 20_000 + "\nX")
    assert len(json.dumps(mcp.receive())) < 1000


def test_mcp_lists_open_sessions(mcp):
    """The list of sessions has the machine and the directory of each."""
    mcp.exec("cd /")
    listed = mcp.tool("session_list")["sessions"]
    assert listed == [{"session": "s1", "where": "this machine", "cwd": "/"}]


def test_mcp_closed_session_is_gone(mcp):
    """A closed session is not in the list, and a command for it is told how to open another."""
    assert mcp.tool("session_close", session="s1") == {"closed": "s1"}
    assert mcp.tool("session_list")["sessions"] == []
    assert "session_open" in mcp.exec("true")


@only_linux
def test_mcp_process_is_closed_to_others(mcp_standing):
    """Invariant 12: other processes cannot read the memory of `mcp`, and it leaves no core."""
    pid = mcp_standing.process.pid
    assert os.stat(f"/proc/{pid}/environ").st_uid == 0
    assert re.search("core file size +0 ", Path(f"/proc/{pid}/limits").read_text())


def test_mcp_answers_what_came_before_the_end(project):
    """A request is answered although stdin ends behind it, and then the program ends."""
    agent = _McpAgent(project)
    agent.send(_mcp_line(id="last", method="tools/call", params={"name": "session_open"}))
    agent.process.stdin.close()
    assert agent.receive()["id"] == "last"
    assert agent.process.wait(20) == 0


def test_mcp_answers_in_full_after_the_end(project):
    """An answer that its client is slow to read is not cut when stdin ends."""
    agent = _McpAgent(project)
    agent.tool("session_open")
    number = 300_000
    arguments = {
        "session": "s1",
        "command": f"head -c {number} /dev/zero | tr '\\0' x",
        "max_output": number + 1000,
    }
    params = {"name": "session_exec", "arguments": arguments}
    agent.send(_mcp_line(id="last", method="tools/call", params=params))
    until(lambda: select.select([agent.process.stdout], [], [], 0)[0])
    agent.process.stdin.close()
    time.sleep(0.3)
    answer = agent.receive()
    assert len(answer["result"]["structuredContent"]["stdout"]) == number
    assert agent.process.wait(20) == 0


# ==== mcp: bad lines ==============================================================================
# No line upsets the server, and an agent gets an explanation of each mistake.


_MCP_NOT_JSON = -32700
_MCP_NO_REQUEST = -32600
_MCP_NO_METHOD = -32601
_MCP_NO_PARAMS = -32602


def _mcp_request(**fields):
    """Return a good request as a line, but for these fields."""
    return _mcp_line(**{"id": 1, "method": "ping", **fields})


def _mcp_call(**params):
    """Return a call of a tool as a line, with these params."""
    return _mcp_request(method="tools/call", params=params)


# Lines, each with the code of the error that answers it.
_MCP_BROKEN_LINES = [
    (_MCP_NOT_JSON, b"nonsense\n"),
    (_MCP_NOT_JSON, b"{\n"),
    (_MCP_NOT_JSON, b"\xff\xfe\n"),
    (_MCP_NOT_JSON, b"[" * 100000 + b"\n"),
    (_MCP_NO_REQUEST, b"null\n"),
    (_MCP_NO_REQUEST, b"[]\n"),
    (_MCP_NO_REQUEST, b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n'),
    (_MCP_NO_REQUEST, b"7\n"),
    (_MCP_NO_REQUEST, b'"x"\n'),
    (_MCP_NO_REQUEST, b"{}\n"),
    (_MCP_NO_REQUEST, b'{"jsonrpc":"2.0","id":1}\n'),
    (_MCP_NO_REQUEST, _mcp_request(jsonrpc="1.0")),
    (_MCP_NO_REQUEST, _mcp_request(method=5)),
    (_MCP_NO_REQUEST, _mcp_request(id=None)),
    (_MCP_NO_REQUEST, _mcp_request(id=[1])),
    (_MCP_NO_REQUEST, _mcp_request(id=True)),
    (_MCP_NO_PARAMS, _mcp_request(params=[])),
    (_MCP_NO_PARAMS, _mcp_request(method="tools/call")),
    (_MCP_NO_PARAMS, _mcp_call(name="x")),
    (_MCP_NO_PARAMS, _mcp_call(name=["session_list"])),
    (_MCP_NO_PARAMS, _mcp_call(name="session_list", arguments=[1])),
    (_MCP_NO_METHOD, _mcp_request(method="no/such")),
    (_MCP_NO_PARAMS, _mcp_request(method="server/discover")),
    (_MCP_NO_METHOD, _mcp_request(method="x\x1b[31m\ud800")),
]


@pytest.mark.parametrize("code, line", _MCP_BROKEN_LINES, ids=short)
def test_mcp_answers_a_broken_line(code, line, mcp_standing):
    """A line that is no request is answered by an error, and the next request is served."""
    mcp_standing.send(line)
    assert mcp_standing.receive()["error"]["code"] == code
    assert mcp_standing.ask("ping") == {}


def test_mcp_answers_a_line_beyond_its_limit(mcp_standing):
    """A line of 40 MiB is answered by one error, and the next request is served."""
    mcp_standing.send(b"x" * (40 << 20) + b"\n")
    assert mcp_standing.receive()["error"]["code"] == _MCP_NOT_JSON
    assert mcp_standing.ask("ping") == {}


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b" \r\n",
        _mcp_line(method="no/such"),
        _mcp_line(method="x", params=3),
        _mcp_line(id=9, result={}),
        _mcp_line(method="notifications/cancelled"),
        _mcp_line(method="notifications/cancelled", params={"requestId": {}}),
        _mcp_line(method="notifications/cancelled", params={"requestId": 77}),
    ],
    ids=short,
)
def test_mcp_is_silent_on_what_is_no_request(line, mcp_standing):
    """A notification, an answer or a blank line is answered by nothing."""
    mcp_standing.send(line)
    assert mcp_standing.ask("ping") == {}


# Calls with wrong arguments: tool, arguments, and a word of the explanation.
_MCP_WRONG_ARGUMENTS = [
    ("session_open", {"remote": "x"}, "no argument remote"),
    ("session_open", {"cwd": "/no/such"}, "no directory"),
    ("session_open", {"isolated": "yes"}, "boolean"),
    ("session_exec", {}, "session is missing"),
    ("session_exec", {"session": "s1"}, "command is missing"),
    ("session_exec", {"session": 1, "command": "x"}, "string"),
    ("session_exec", {"session": "s9", "command": "x"}, "session_open"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": -1}, "86400"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": 0}, "86400"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": float("nan")}, "86400"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": "9"}, '"type": "number"'),
    ("session_exec", {"session": "s1", "command": "x", "timeout": True}, "number"),
    ("session_exec", {"session": "s1", "command": "x", "shell": "x"}, "no argument shell"),
    ("session_list", {"x": 1}, "no argument"),
    ("session_close", {"session": [1]}, "string"),
    ("session_close", {"session": "s9"}, "session_open"),
]


@pytest.mark.parametrize("tool, arguments, words", _MCP_WRONG_ARGUMENTS)
def test_mcp_explains_wrong_arguments(tool, arguments, words, mcp_standing):
    """A call with wrong arguments is answered by a sentence that names the mistake."""
    told = mcp_standing.tool(tool, **arguments)
    assert isinstance(told, str)
    assert words in told


# ==== mcp: several sessions, and their ends =======================================================
# The commands of one shell run in order, and hold up no other shell. A shell ends with the hotenv
# session that gave it its secrets.


def test_mcp_commands_run_in_order(mcp):
    """Commands for one session run in the order in which they came."""
    for step in range(20):
        mcp.begin(100 + step, f"x=$x.{step}; echo $x")
    said = []
    for _ in range(20):
        text = mcp.receive()["result"]["content"][0]["text"]
        said.append(json.loads(text)["stdout"])
    assert said == ["".join(f".{step}" for step in range(upto + 1)) + "\n" for upto in range(20)]


def test_mcp_session_holds_up_no_other(mcp):
    """While a command runs in one session, another session and a ping are answered."""
    mcp.tool("session_open")
    mcp.begin("slow", "touch begun; until [ -e go ]; do sleep 0.01; done; echo slow")
    until((mcp.dir / "begun").exists)
    assert mcp.exec("echo quick", "s2")["stdout"] == "quick\n"
    assert mcp.ask("ping") == {}

    (mcp.dir / "go").touch()
    answer = mcp.receive()
    assert answer["id"] == "slow"
    assert json.loads(answer["result"]["content"][0]["text"])["stdout"] == "slow\n"


def test_mcp_cancel_ends_a_command(mcp):
    """A cancelled command ends without an answer, and the session serves on."""
    sleep = unique_sleep()
    mcp.begin("slow", f"{sleep}; echo slow")
    until(lambda: processes_with(sleep))
    mcp.cancel("slow")
    assert mcp.exec("echo after")["stdout"] == "after\n"
    assert processes_with(sleep) == []


def test_mcp_cancelled_command_never_begins(mcp):
    """A command that is cancelled while it waits for another one never runs."""
    mcp.begin("slow", "touch begun; sleep 30")
    mcp.begin("never", "touch never")
    until((mcp.dir / "begun").exists)
    mcp.cancel("never")
    mcp.cancel("slow")
    assert mcp.exec("echo after")["stdout"] == "after\n"
    assert not (mcp.dir / "never").exists()


def test_mcp_cancel_spares_commands_that_wait(mcp):
    """A command that waits for a cancelled one runs, and is answered."""
    mcp.begin("slow", "touch begun; sleep 30")
    mcp.begin("queued", "echo queued")
    until((mcp.dir / "begun").exists)
    mcp.cancel("slow")
    answer = mcp.receive()
    assert answer["id"] == "queued"
    assert json.loads(answer["result"]["content"][0]["text"])["stdout"] == "queued\n"


def test_mcp_close_ends_a_command(mcp):
    """A session may be closed while a command runs, whose answer is then an error."""
    sleep = unique_sleep()
    mcp.begin("slow", sleep)
    until(lambda: processes_with(sleep))
    close = {"name": "session_close", "arguments": {"session": "s1"}}
    mcp.send(_mcp_line(id="close", method="tools/call", params=close))
    answers = {}
    for _ in range(2):
        answer = mcp.receive()
        answers[answer["id"]] = answer["result"]
    assert answers["slow"]["isError"] is True
    assert answers["close"]["isError"] is False


def test_mcp_shells_end_with_the_hotenv_session(mcp):
    """When the hotenv session has ended, all shells with its secrets end, and the agent is told."""
    other = mcp.tool("session_open")["session"]
    sleep = unique_sleep()
    mcp.exec(f"{sleep} & true", other)
    until(lambda: processes_with(sleep))
    assert ended(mcp.server, signal.SIGTERM) == 0

    told = mcp.exec("echo $TOKEN")
    assert "s1" in told
    assert other in told
    assert "serve" in told
    assert "session_open" in told
    until(lambda: not processes_with(sleep), patience=10)
    assert mcp.tool("session_list")["sessions"] == []


def test_mcp_tells_that_a_session_does_not_answer(mcp):
    """A session that is stopped has not ended, and the agent is not told that it has."""
    os.kill(mcp.server.pid, signal.SIGSTOP)
    try:
        told = mcp.exec("true")
    finally:
        os.kill(mcp.server.pid, signal.SIGCONT)
    assert "has ended, or does not answer" in told
    assert mcp.tool("session_list") == {"sessions": []}


def test_mcp_needs_a_hotenv_session(mcp):
    """Without a hotenv session none can be opened, and the agent is told how one is started."""
    assert ended(mcp.server, signal.SIGTERM) == 0
    assert "serve" in mcp.tool("session_open")


def test_mcp_shell_keeps_its_hotenv_session(project):
    """A shell keeps the secrets of the hotenv session that was there when the shell was opened."""
    agent = _McpAgent(project)
    agent.start_session({"OTHER": "another value", "TOKEN": TOKEN})
    older = agent.tool("session_open")
    # Without its marker the older session is not replaced: the next one stands beside it.
    project.marker.unlink()
    agent.start_session({"TOKEN": "another new value"})
    newer = agent.tool("session_open")

    assert older["secrets"] == ["OTHER", "TOKEN"]
    assert newer["secrets"] == ["TOKEN"]
    command = "printf '%s.' ${#TOKEN}; echo $TOKEN"
    said = agent.exec(command, older["session"])["stdout"]
    assert said == f"{len(TOKEN)}.[hidden:TOKEN]\n"
    said = agent.exec(command, newer["session"])["stdout"]
    assert said == f"{len('another new value')}.[hidden:TOKEN]\n"


def test_mcp_call_is_a_use_of_the_session(project):
    """Each command is a use of the hotenv session, and puts off the end of that."""
    agent = _McpAgent(project, serve=("--timeout", "1h"))
    agent.tool("session_open")
    for _ in range(3):
        before = project.ends_at()
        time.sleep(2 * hotenv.STAMP_STEP)  # a use sooner than one step is not noted on the socket
        agent.exec("true")
        assert project.ends_at() > before


def test_mcp_calls_are_logged(project):
    """The log of the hotenv session has a line with the tool of each call."""
    agent = _McpAgent(project, serve=("--verbose",))
    agent.tool("session_open")
    agent.exec("true")
    agent.exec("true")
    tools = [line.split()[-1] for line in project.log_lines()]
    assert tools == ["session_open", "session_exec", "session_exec"]


def test_mcp_calls_outlive_the_idle_timeout(project):
    """A shell that is used lives beyond the idle timeout of the hotenv session."""
    agent = _McpAgent(project, serve=("--timeout", "2s"))
    agent.tool("session_open")
    unused_end = project.ends_at()
    while time.time() < unused_end + 0.2:
        assert "stdout" in agent.exec("sleep 0.1")


def test_mcp_max_age_bounds_a_shell(project):
    """A shell ends, however much it is used, when the hotenv session has its greatest age."""
    agent = _McpAgent(project, serve=("--timeout", "1h", "--max-age", "2.5s"))
    agent.tool("session_open")
    end = project.ends_at()
    uses = []

    def is_over():
        now = time.time()
        result = agent.exec("sleep 0.1")
        if "stdout" not in result:
            return True
        uses.append(now)
        return False

    until(is_over, "the end of the session")
    assert uses
    assert max(uses) < end
    assert agent.tool("session_list")["sessions"] == []


@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT", "SIGHUP"])
def test_mcp_leaves_no_process(end, mcp):
    """However `mcp` ends, it first ends all processes of its shells, and says nothing."""
    sleep = unique_sleep()
    mcp.exec(f"{sleep} & true")
    mcp.begin(1, f"{sleep}; true")
    until(lambda: len(processes_with(sleep)) == 2)
    if end == "eof":
        mcp.process.stdin.close()
    else:
        mcp.process.send_signal(getattr(signal, end))
    assert mcp.process.wait(10) == 0
    assert processes_with(sleep) == []
    assert mcp.process.stderr.read() == b""


def test_mcp_that_is_killed_leaves_no_process(mcp):
    """When `mcp` is killed, all processes of its shells end."""
    sleep = unique_sleep()
    mcp.exec(f"{sleep} & true")
    mcp.begin(1, f"{sleep}; true")
    until(lambda: len(processes_with(sleep)) == 2)
    assert ended(mcp.process, signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not processes_with(sleep), patience=10)
    assert mcp.process.stderr.read() == b""


def test_mcp_ends_though_nobody_reads(mcp):
    """A client that does not read its answers keeps neither `mcp` nor a shell alive."""
    sleep = unique_sleep()
    mcp.exec(f"{sleep} & true")
    for number in range(100, 106):
        mcp.begin(number, "head -c 90000 /dev/zero | tr '\\0' a")

    def is_answered():
        return select.select([mcp.process.stdout], [], [], 0)[0]

    until(is_answered, "an answer, which nobody reads")
    mcp.send(_mcp_line(id=1, method="ping"))
    assert ended(mcp.process, signal.SIGTERM) == 0
    until(lambda: not processes_with(sleep), patience=10)
    assert mcp.process.stderr.read() == b""


# ==== mcp: what an agent gets to see ==============================================================
# No answer holds a value, and the options of the user hold for the agent.


def test_mcp_tells_no_value(project, tmp_path):
    """Invariant 1: no answer of `mcp`, none of its other output and no audit line holds a value."""
    audit = tmp_path / "audit"
    bad = f"bad=sh -c 'echo {TOKEN} >&2; exit 1'"
    agent = _McpAgent(project, "--audit", str(audit), "--remote", "here=sh", "--remote", bad)
    seen = [agent.ask("initialize"), agent.ask("tools/list")]
    opened = [
        {},
        {"remote": "here"},
        {"remote": "bad"},
        {"isolated": True},
        {"remote": "here", "isolated": True},
    ]
    for arguments in opened:
        seen.append(agent.tool("session_open", **arguments))
    commands = [
        "env",
        "set",
        "cat /proc/$$/environ",
        "echo $TOKEN >/dev/stderr",
        "export -p",
        "cd $TOKEN",
        "exit 3",
        "env",
        "echo $PEM | base64",
    ]
    for session in ("s1", "s2", "s4"):
        for command in commands:
            seen.append(agent.exec(command, session))
    agent.process.stdin.close()
    seen.append(agent.process.stdout.read().decode())
    seen.append(agent.process.stderr.read().decode())
    seen.append(audit.read_text())

    text = json.dumps(seen)
    for value in (TOKEN, "MIIEvQIBADANBgkq", "p%40ss w@h"):
        assert value not in text


def test_mcp_prints_nothing_but_answers(project):
    """Behind the answers there is nothing on stdout, and nothing on stderr at all."""
    bad = "bad=sh -c 'echo a; echo b >&2; exit 1'"
    agent = _McpAgent(project, "--remote", "here=sh", "--remote", bad)
    agent.tool("session_open")
    agent.tool("session_open", remote="here")
    agent.tool("session_open", remote="bad")
    agent.exec("echo a; echo b >&2")
    agent.exec("exit 3", "s2")
    agent.exec("true", "s2")
    agent.process.stdin.close()
    assert agent.process.stdout.read() == b""
    assert agent.process.stderr.read() == b""


def test_mcp_policy_holds_for_an_agent(project, tmp_path):
    """A command that `--policy` refuses does not run, and the agent is told why."""
    (tmp_path / "policy").write_text('{"deny": ["rm"]}')
    agent = _McpAgent(project, "--policy", str(tmp_path / "policy"))
    agent.tool("session_open")
    told = agent.exec("echo $TOKEN; touch ran; rm b")
    assert "rm is denied" in told
    assert TOKEN not in told
    assert not (agent.dir / "ran").exists()


def test_mcp_audit_has_all_commands(project, tmp_path):
    """The `--audit` file has the start and the end of each command, and each refused command."""
    audit = tmp_path / "audit"
    (tmp_path / "policy").write_text('{"deny": ["rm"]}')
    agent = _McpAgent(project, "--audit", str(audit), "--policy", str(tmp_path / "policy"))
    agent.tool("session_open")
    agent.exec("true")
    agent.exec("exit 3")
    agent.exec("rm b")
    events = [line["event"] for line in _audit_lines(audit)]
    assert events == ["start", "end", "start", "end", "blocked"]


def test_mcp_no_mask_shows_named_values(project):
    """`--no-mask` shows the values of the names in its argument."""
    agent = _McpAgent(project, "--no-mask", "TO*")
    agent.tool("session_open")
    assert agent.exec("echo $TOKEN")["stdout"] == TOKEN + "\n"


@pytest.mark.parametrize("option", ["--policy", "--audit"])
def test_mcp_refuses_what_is_no_file(option, project):
    """A policy or an audit that is no plain file is refused, 8, before anything is served."""
    done = project.hotenv("mcp", option, "/etc")
    assert "/etc" in refusal(done, 8)


def test_mcp_without_a_stdin_says_so(project):
    """Where stdin is closed, `mcp` says that it cannot read it, and exits with 8."""
    done = project.hotenv("mcp", stdin=None, preexec_fn=lambda: os.close(0))
    assert "cannot read stdin" in refusal(done, 8)


# ==== mcp: the official client ====================================================================
# The mcp package, where a virtual environment has it, must get along with the server.


_MCP_PYTHON = os.path.join(os.environ.get("HOTENV_TEST_MCP", "/no/such"), "bin", "python")

# A program that uses the server through the mcp package, in each of the two ways that the package
# has had, and prints the revision of the protocol and what it has seen.
_MCP_OFFICIAL_CLIENT = """
import asyncio
import json
import sys
import warnings

warnings.simplefilter("ignore")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def use(version, call, tools):
    names = [tool.name for tool in tools.tools]
    assert {"session_open", "session_exec", "session_list", "session_close"} <= set(names), names
    opened = json.loads((await call("session_open", {})).content[0].text)
    session = opened["session"]
    command = "echo $TOKEN; echo $((6*7)); exit 3"
    result = await call("session_exec", {"session": session, "command": command})
    seen = json.loads(result.content[0].text)
    failed = await call("session_exec", {"session": "s9", "command": "true"})
    assert (getattr(failed, "isError", None) or getattr(failed, "is_error", None)) is True
    await call("session_close", {"session": session})
    print(json.dumps([version, [opened["secrets"], seen["stdout"], seen["exit_code"]]]))


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        await session.send_ping()
        version = getattr(hello, "protocolVersion", None) or hello.protocol_version
        await use(version, session.call_tool, await session.list_tools())
    try:
        from mcp import Client
    except ImportError:
        return
    async with Client(stdio_client(server)) as client:
        await use(client.protocol_version, client.call_tool, await client.list_tools())


asyncio.run(main())
"""


@pytest.mark.skipif(
    not os.path.exists(_MCP_PYTHON), reason="HOTENV_TEST_MCP names no venv with the mcp package"
)
def test_mcp_serves_the_official_client(project):
    """The client of the mcp package lists the tools, and opens, uses and closes a session."""
    project.serve(_mcp_dotenv(SECRETS))
    done = subprocess.run(
        [_MCP_PYTHON, "-c", _MCP_OFFICIAL_CLIENT, sys.executable, str(HOTENV), "mcp"],
        cwd=str(project.dir),
        timeout=60,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    heard = [json.loads(line) for line in done.stdout.splitlines()]
    assert heard
    for revision, seen in heard:
        assert revision in [*_MCP_REVISIONS, "2026-07-28"]
        assert seen == [sorted(SECRETS), "[hidden:TOKEN]\n42\n", 3]


# ==== agents ======================================================================================
# What an agent must never see, what must not outlive its shell, and how it follows long work.

_agents_both = pytest.mark.parametrize("remote", [None, "sh"], ids=["local", "remote"])


@pytest.fixture
def agents_shell(tmp_path):
    """A session with SECRETS that starts in a directory of its own."""
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path), timeout=20) as session:
        yield session


def _agents_processes(mark):
    """Return the rows of ps whose arguments hold `mark`, without zombies."""
    listing = subprocess.run(["ps", "-Ao", "stat=,pid=,args="], stdout=PIPE).stdout
    rows = listing.decode("utf-8", "replace").splitlines()
    return [row for row in rows if mark in row and not row.startswith("Z") and " ps " not in row]


def _agents_sleep():
    """Return a command that sleeps, and that no other test or run of the suite uses."""
    return f"sleep 5{os.getpid()}.{random.randrange(10**9)}"


def _agents_error(work, *args, **options):
    """Call `work`, and return the whole text of the HotenvError that it must raise."""
    with pytest.raises(hotenv.HotenvError) as caught:
        work(*args, **options)
    return "\n".join([str(caught.value), *caught.value.hints])


# -- records ---------------------------------------------------------------------------------------

# Commands that may be at any point of their life when a time limit of milliseconds expires.
_AGENTS_SHAPES = [
    "true",
    "echo {n}",
    "echo {n}; (exit {x})",
    "(sleep 0.0{x}; exit {x})",
    "echo {n}; exit {x}",
    "sleep 0.0{x} & wait; echo {n}",
    "/bin/echo {n} | cat",
    "export N={n}; cd /; echo $N",
    "bash -c 'echo {n}; sleep 0.0{x}'",
    "echo {n}; kill -INT $$",
    "for i in 1 2 3; do (echo {n}); done",
]


def test_no_result_holds_a_record(tmp_path):
    """However close a time limit is to a command's end, no result holds what the shell says."""

    if FULL:
        signal.alarm(3600)  # 100,000 calls take longer than any other test

    def run(seed):
        chance = random.Random(seed)
        held = []
        with hotenv.ShellSession({"TOKEN": TOKEN}, cwd=str(tmp_path)) as shell:
            for number in range(amount(25_000)):
                command = chance.choice(_AGENTS_SHAPES).format(
                    n=10**9 + number, x=chance.randrange(1, 30)
                )
                result = shell.exec(command, timeout=chance.uniform(0.0001, 0.03))
                text = result.stdout + result.stderr + result.background
                if re.search(r"[0-9a-f]{32}|declare -x", text):
                    held.append((command, result))
        return held

    # Four sessions at once are the load under which limits expire anywhere.
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(SEED, SEED + 4)))
    assert results == [[], [], [], []]


def test_record_of_a_subshell_goes_nowhere():
    """What comes on the pipe for records never reaches an output, even if it comes twice."""
    output = hotenv._ShellBytes(1000)
    last = hotenv._AwaitedRecord()
    stream = hotenv._ShellStream(-1, hotenv._NOWHERE)
    begin = hotenv._ShellMark(b"\0" + b"b" * 32 + b"\n", hotenv._NOWHERE)
    stream.marks = [begin, *last.marks_of_notes(hotenv._NOWHERE)]
    record = b"\0%s\0000\0/\n\0\0declare -x A\n\0%s\n" % (last.nonce, last.nonce)

    for piece in (begin.raw, record[:7], record[7:50], record[50:], record):
        stream.take(piece)

    assert output.data == b""
    assert last.parse().exports == b"declare -x A\n"


# The nonce, the bytes, and what is read of them: status, directory, jobs and exports.
_AGENTS_RECORDS = [
    (b"0\0/srv\n\0\0declare -x A\n", (0, "/srv", [], b"declare -x A\n")),
    (b"130\0/\n\x0012\n13\n\0", (130, "/", [12, 13], b"")),
    (b"1\0/a\nb\n\0\0", (1, "/a\nb", [], b"")),
    (b"x\0/\n\0\0", None),
    (b"0\0/\n\0", None),
    (b"", None),
]


@pytest.mark.parametrize("fields, expected", _AGENTS_RECORDS, ids=short)
def test_record_is_parsed(fields, expected):
    """A whole record is read, and anything else is none."""
    record = hotenv._ShellRecord.parse(b"\0n\0" + fields + b"\0n\n", b"n")
    seen = record and (record.status, record.directory, record.jobs, record.exports)
    assert seen == expected


def test_record_cut_short_is_passed_over():
    """Behind a record that an interrupt has cut short, the whole one counts."""
    cut = b"\0n\0007\0/old\n\0declare"
    record = hotenv._ShellRecord.parse(cut + b"\0n\x00124\0/new\n\0\0\0n\n", b"n")
    assert (record.status, record.directory) == (124, "/new")


# -- what runs in a remote shell -------------------------------------------------------------------


@only_linux
@pytest.mark.parametrize(
    "line",
    [
        "{nap} & true",
        "({nap} &)",
        "set -m; {nap} & true",
        "nohup {nap} >/dev/null 2>&1 & disown",
        "setsid {nap} & true",
        "(setsid {nap} </dev/null >/dev/null 2>&1 &)",
        "timeout 900 {nap} & true",
        "(trap '' INT TERM HUP; {nap}) & true",
    ],
)
def test_closed_remote_shell_leaves_no_process(line, host):
    """When a remote shell is closed, its far side ends everything that has been started there."""
    nap = _agents_sleep()
    with hotenv.ShellSession(remote=host.command) as shell:
        shell.exec(line.format(nap=nap))
        until(lambda: _agents_processes(nap), "the process")
    until(lambda: not _agents_processes(nap), "its end")


@only_linux
def test_killed_host_leaves_no_process_afar(host):
    """When the host of a remote shell is killed, the far side ends everything there."""
    nap = _agents_sleep()
    program = """if 1:
        import sys, hotenv
        shell = hotenv.ShellSession(remote=sys.argv[2:])
        shell.exec(sys.argv[1] + " & " + sys.argv[1], timeout=600)
        """
    process = subprocess.Popen(
        [sys.executable, "-c", program, nap, *host.command],
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    with process:
        until(lambda: len([row for row in _agents_processes(nap) if "import" not in row]) >= 2)
        process.kill()
    until(lambda: not _agents_processes(nap), "the end of what runs there")


@only_linux
def test_time_limit_leaves_no_process_afar(host):
    """What ignores the interrupt of a time limit on a remote shell is killed there."""
    nap = _agents_sleep()
    with hotenv.ShellSession(remote=host.command) as shell:
        result = shell.exec(f"trap '' INT; {nap}", timeout=0.5)
        assert (result.timed_out, result.shell_restarted) == (True, True)
        until(lambda: not _agents_processes(nap), "its end")


def test_time_limit_is_one_interrupt_afar(tmp_path):
    """A time limit on a remote shell interrupts the command, and the shell goes on."""
    with hotenv.ShellSession(remote="sh", cwd=str(tmp_path), timeout=20) as shell:
        shell.exec("kept=1")
        result = shell.exec("echo a; sleep 30; echo no", timeout=0.5)
        assert (result.exit_code, result.timed_out, result.shell_restarted) == (124, True, False)
        assert "no" not in result.stdout
        assert shell.exec("echo $kept").stdout == "1\n"


def test_remote_interrupt_spares_background_jobs(tmp_path):
    """What a remote shell runs in the background gets no interrupt of a time limit."""
    with hotenv.ShellSession(remote="sh", cwd=str(tmp_path), timeout=20) as shell:
        loop = "while :; do sleep 0.05; done"
        shell.exec(f"bash -c 'trap \"touch hit; exit\" INT; {loop}' & pid=$!")
        assert shell.exec("sleep 30", timeout=0.5).timed_out
        assert shell.exec("kill -0 $pid && echo on").stdout == "on\n"
        assert not (tmp_path / "hit").exists()


def test_cancelled_remote_command_is_interrupted(tmp_path):
    """interrupt() ends a command in a remote shell at once, and costs no shell."""
    with hotenv.ShellSession(remote="sh", cwd=str(tmp_path), timeout=60) as shell:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(shell.exec, "touch begun; sleep 50")
            until((tmp_path / "begun").exists)
            shell.interrupt()
            result = running.result(30)
        assert (result.timed_out, result.shell_restarted) == (True, False)


# -- policy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "echo `ls`",
        "echo \"`ls`\"",
        "echo `echo '`; rm -rf x; echo `'`",
        "echo `cat <<E\n`; rm x\nE\n`",
        "echo `echo \\\\`; rm x`",
    ],
)
def test_policy_refuses_backticks(command):
    """Backticks are refused, with the way to write them."""
    assert "write $(...)" in hotenv._denied({"allow": ["echo", "ls", "cat"]}, command)


@pytest.mark.parametrize(
    "command",
    [
        # Since 5.3 bash runs what stands in such braces.
        "echo ${ rm x; }",
        "echo ${|rm x; }",
        "echo ${\trm x; }",
        "echo ${\nrm x\n}",
        'echo "${ rm x; }"',
        'echo $"${ rm x; }"',
        "x=${ rm x; }",
        "x=(${\nrm x\n})",
        'x=("${ rm x; }")',
        "((${ rm x; }))",
        "[[ ${ rm x; } ]]",
        '[[ "${ rm x; }" ]]',
        "cat <<E\n${ rm x; }\nE\n",
        "cat <<E\n${x:-${ rm x; }}\nE\n",
        "cat <<E\n${\\\n rm x; }\nE\n",
        "for x in ${ rm x; }; do ls; done",
        # The line goes on behind a backslash, and so does what the dollar sign begins.
        'echo "$\\\n(rm x)"',
        '[[ "$\\\n(rm x)" ]]',
        "[[ $\\\n(rm x) ]]",
        "cat <<E\n$\\\n(rm x)\nE\n",
        "echo $\\\n'\\' '; rm x #'",
        # `$$` is a parameter, so that the next sign belongs to no dollar sign.
        "echo $$'\\'; rm x #'",
        "echo $${\nrm x\n}",
        "[[ $$$(rm x) ]]",
        # In $'...' a quote behind a backslash ends nothing.
        "[[ $'\\' ' == a ]]; rm x #' ]]",
        # The value of the variable is expanded once more.
        "[[ ${x@P} ]]",
        "((${x@P}))",
        "x=(${x@P})",
        "cat <<E\n${x@P}\nE\n",
        "[[ ${x@\\\nP} ]]",
        'x=("${x@\\\nP}")',
    ],
)
def test_policy_refuses_hidden_substitutions(command):
    """What stands behind a dollar sign runs no command that the policy has not seen."""
    assert hotenv._denied({"allow": ["echo", "cat", "ls", "[[", "(("]}, command)


# Text that only looks as if it held one of these substitutions, and its commands.
@pytest.mark.parametrize(
    "command, words",
    [
        ("echo ${x} ${x:-1} ${#x} ${x[1]} $$", "echo"),
        ("echo $$ && ls /proc/$$/fd", "echo ls"),
        ("[[ $x == ${y} && $$ -gt 1 ]] && ls", "ls"),
        ('[[ "$x" == "${y}" ]] && ls', "ls"),
        ("(( $x + ${y} + $$ )); ls", "ls"),
        ('x=($y "${z}" $$); ls', "ls"),
        ("cat <<E\n$x ${x} $$ {\n}\nE\nls", "cat ls"),
        ("cat <<'E'\n${ rm x; }\nE\nls", "cat ls"),
        ("echo '${ rm x; }' \\${", "echo"),
        ('echo "$" $ a$', "echo"),
    ],
)
def test_policy_follows_plain_dollar_signs(command, words):
    """Parameters run no command, wherever they stand."""
    assert hotenv._CommandReader(command).read() == words.split()


@pytest.mark.parametrize(
    "command, words",
    [
        ("\\g2>x", ["g2"]),
        ("'py'3>x", ["py3"]),
        ("\\ 2>x", [" 2"]),
        ("ls 2>x", ["ls"]),
        ("2>x ls", ["ls"]),
    ],
)
def test_policy_reads_digits_of_a_word(command, words):
    """Digits before a redirection name a descriptor only where they are a word of their own."""
    assert hotenv._CommandReader(command).read() == words


@pytest.mark.parametrize("command", [
    "ls; \\",
    "ls \\",
    "ls | time rm x",
    "ls |& time rm x",
    '"l\\s"',
    "\"'ls'\"",
])
def test_policy_refuses_words_that_change_by_place(command):
    """At the end a backslash is a word, behind `|` `time` is a program, and in "..." a quote and
    a backslash are signs of the name."""
    assert "cannot be told apart" in hotenv._denied({"allow": ["ls", "rm", "time"]}, command)


@pytest.mark.parametrize(
    "command",
    [
        "$(do rm x)",
        "echo $(then rm x)",
        "echo $(fi; rm x)",
        "echo $(} ; rm x)",
        "done; ls",
        "else ls",
        "esac",
        "then ls",
        "in ls",
        "}",
        "if ls; fi",
        "while ls; then ls; done",
        "for x in a; then ls; done",
        "if ls; then ls",
        "{ ls",
        "fi rm x",
    ],
)
def test_policy_refuses_stray_reserved_words(command):
    """A reserved word that nothing has opened is refused."""
    allowed = {"allow": ["ls", "echo", "do", "then", "fi", "}", "done", "else", "esac", "in"]}
    assert "cannot be told apart" in hotenv._denied(allowed, command)


# Text, and the first words of its commands.
_AGENTS_CASES = [
    ("case $x in a|b) foo;; (c) bar ;; esac", "foo bar"),
    ("case x in\n  'a b') one ;;  # no\n  *) two\nesac\nthree", "one two three"),
    ("case $(kind) in x) a;& y) b;;& esac; c", "kind a b c"),
    ("case x in x) case y in y) a;; esac;; esac", "a"),
    ("case x in esac; a", "a"),
    ("for f in *; do case $f in *.py) lint;; esac; done", "lint"),
    ("if case x in x) a;; esac then b; fi", "a b"),
    ("if (a) then b; fi", "a b"),
    ("if [[ x ]] then b; fi", "b"),
    ("{ a; } && while { b; } do c; done", "a b c"),
    ("time -p -- a", "a"),
]


@pytest.mark.parametrize("command, words", _AGENTS_CASES, ids=short)
def test_policy_reads_constructs(command, words):
    """Each command in the branches of a construct is seen."""
    assert hotenv._CommandReader(command).read() == words.split()


def test_refusal_tells_what_is_allowed(tmp_path):
    """The refusal of a policy names the commands that are allowed."""
    with hotenv.ShellSession(policy={"allow": ["git", "ls"]}) as shell:
        assert "allowed: git, ls" in _agents_error(shell.exec, "rm x")


# Pieces of shell text, of which random lines are made.
_AGENTS_PIECES = [
    *["a", "b", "c", ";", "|", "(", ")", "{", "}", "!", "#", "=", "'", '"', "\\", "`"],
    *[" ", " ", " ", "\n", " && ", " & ", "; ", " x", "\\\n"],
    *["$(", "$((", "))", "((", "[[ ", " ]]"],
    *["if ", " then ", "; then ", " else ", "; fi", " fi", " elif ", "; do ", " do ", "; done"],
    *["for x in ", "for ((;;)) ", "while ", "until ", "case ", " in ", "x) ", "(x) ", "x|y) "],
    *[" esac", ";;", ";&", ";;&", "time ", "-p ", "-- ", "v=", "v=(", ">f ", "2>&1 ", "<<E\n"],
    *["<<'E'\n", "\nE\n", "<<<", "<(", ">(", "f() ", "function f ", "coproc "],
    *["${x}", "${x:-", "$'", "$", "$$", "${ ", "${|", "\\'"],
]
_AGENTS_LINES = [
    "if a; then b; else c; fi",
    "for x in 1 2; do a; done",
    "case x in x) a;; y|z) b;; *) c;; esac",
    'a $(b) "$(c)"',
    "a && { b || c; } | a",
    "(a; b) && c",
    "f() { a; }; f",
    "cat <<E\nb\nE\na",
    "v=$(a); b",
    "[[ x == y ]] && a",
    "a <(b) >(c)",
    "case $(a) in (x) b ;; esac; c",
    "if (a) then b; fi",
    "a # b\nc",
    "a $(case x in (x) b;; esac)",
]

# Each of these words says that it was run, and ends what runs for too long. The names have a NUL
# between them: one that is looked up may hold blanks.
_AGENTS_LOGGING = """
exec 2>/dev/null </dev/null >/dev/null
PATH=
said() { printf '%s\\0' "$1" >&9; }
for word in a b c x f E then do done fi esac in; do
eval "function $word { said $word; ((++n > 12)) && exit; [ \\"\\$n\\" -lt 6 ]; }" 2>/dev/null
done
cat() { :; }
command_not_found_handle() { said "$1"; }
"""


def _agents_random_line(chance):
    """Return random shell text: of pieces, or a line that has been damaged."""
    if chance.random() < 0.4:
        return "".join(chance.choice(_AGENTS_PIECES) for _ in range(chance.randrange(1, 14)))
    text = chance.choice(_AGENTS_LINES)
    for _ in range(chance.randrange(4)):
        start = chance.randrange(len(text) + 1)
        end = start + chance.choice((0, 0, 1, 2))
        text = text[:start] + chance.choice(_AGENTS_PIECES) + text[end:]
    return text


def test_policy_misses_no_command_of_bash(tmp_path):
    """Of random text that the policy follows, bash runs no command that the policy has not seen."""
    chance = random.Random(SEED)
    read = []
    for _ in range(amount(40_000)):
        text = _agents_random_line(chance)
        with contextlib.suppress(hotenv._Unclear):
            read.append((text, hotenv._CommandReader(text).read()))
    assert len(read) > amount(40_000) / 20

    script = _AGENTS_LOGGING
    for number, (text, _) in enumerate(read):
        # A loop around words that are unknown would not end: it may run for a second.
        script += f"( ulimit -t 1; eval {shlex.quote(text)} ) 9>{number}\n"
    (tmp_path / "script").write_text(script)
    bash = shutil.which("bash")
    subprocess.run([bash, "--norc", "script"], cwd=str(tmp_path), timeout=600)

    missed = []
    for number, (text, words) in enumerate(read):
        ran = (tmp_path / str(number)).read_text().split("\0")[:-1]
        if not set(ran) <= set(words):
            missed.append((text, words, ran))
    assert missed == []


# -- a shell that is replaced ----------------------------------------------------------------------


@_agents_both
def test_shell_of_a_gone_directory_is_replaced(remote, tmp_path):
    """A shell that ended in a directory that is gone is replaced in the nearest one above."""
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path), timeout=20) as shell:
        shell.exec("export A=1; mkdir -p d/e/f; cd d/e/f; rm -r ../../e; exit 3")
        result = shell.exec('echo $A $PWD; [[ $PWD == "$(pwd)" ]]')
        assert result.stdout == f"1 {tmp_path}/d\n"
        assert result.exit_code == 0
        place = f"{tmp_path}/d"
        assert result.note == f"the directory {place}/e/f is gone: the shell is in {place}"
        assert shell.exec("true").note == ""


@pytest.mark.parametrize(
    "command",
    [
        "readonly __hotenv_n=1",
        "enable -n eval",
        "enable -n builtin",
        "enable -n printf",
        "enable -n export",
        "declare -i __hotenv_n",
        "enable -n exit builtin",
    ],
)
def test_disabled_shell_is_replaced(command, tmp_path):
    """A shell that a command has disabled is replaced before it swallows the next command."""
    with hotenv.ShellSession(cwd=str(tmp_path), timeout=20) as shell:
        shell.exec("export A=1")
        first = shell.exec(command)
        second = shell.exec("echo $A")
        assert not first.timed_out
        assert (second.stdout, second.exit_code) == ("1\n", 0)
        assert first.shell_restarted or second.shell_restarted


def test_few_descriptors_cost_no_shell(agents_shell):
    """A limit of 128 descriptors leaves the shell as it is."""
    agents_shell.exec("kept=1; ulimit -n 128")
    result = agents_shell.exec("echo $kept; ls /dev/null")
    assert (result.stdout, result.shell_restarted) == ("1\n/dev/null\n", False)


# This way to a bash ends with 0 where the first command would begin.
_AGENTS_WAY_THAT_ENDS = """
while IFS= read -r line; do
    case $line in "__hotenv_begin "[0-9a-f]*) break ;; esac
    printf "%s\\n" "$line"
done | bash
exit 0
"""


def test_command_that_no_shell_begins_raises(tmp_path):
    """Where each shell ends before the command begins, there is an error and no result."""
    way = ["sh", "-c", _AGENTS_WAY_THAT_ENDS]
    with hotenv.ShellSession(remote=way, timeout=20) as shell:
        command = f"touch {shlex.quote(str(tmp_path / 'ran'))}"
        assert "before it ran the command" in _agents_error(shell.exec, command)
    assert not (tmp_path / "ran").exists()


def test_exit_on_stderr_is_kept_after_a_restart(agents_shell):
    """A command in a new shell keeps its `exit` on stderr, which is no word of bash's."""
    pid = agents_shell.exec("(sleep 0.05; kill -9 $$) & echo $$").stdout.strip()
    until(lambda: subprocess.run(["ps", "-o", "stat=", "-p", pid], stdout=PIPE).stdout[:1] in b"Z")
    result = agents_shell.exec("echo exit >&2")
    assert (result.stderr, result.shell_restarted) == ("exit\n", True)


@pytest.mark.parametrize("command", ["exit 3", "f() { exit; }; f", "trap : EXIT; exit 3"])
def test_word_of_an_ending_bash_is_dropped(command, agents_shell):
    """What an interactive bash writes as it ends is no output of the command."""
    assert agents_shell.exec(command).stderr == ""


def test_cut_background_is_truncated(tmp_path):
    """A result whose background output is cut says that it is truncated."""
    with hotenv.ShellSession(max_output=1000, cwd=str(tmp_path)) as shell:
        shell.exec("(sleep 0.3; seq 1 5000; touch done) &")
        until((tmp_path / "done").exists)
        assert shell.exec("true").truncated


def test_returning_lines_fold_in_linear_time():
    """400,000 carriage returns in a line of as many characters are soon folded."""
    redactor = hotenv.Redactor({})
    begun = time.process_time()
    shown = hotenv._displayed(redactor, b"b" * 400_000 + b"\rab" * 400_000)
    assert time.process_time() - begun < 2
    assert shown == "ab" + "b" * 399_998


@pytest.mark.parametrize(
    "line, shown",
    [
        ("10%\r20%\r9", "90%"),
        ("abc\rd", "dbc"),
        ("abc\r", "abc"),
        ("\r\rabc", "abc"),
        ("a\rbcd\rxy\rz", "zyd"),
        ("", ""),
    ],
)
def test_last_text_of_a_line_is_seen(line, shown):
    """Of parts that carriage returns divide, the last one covers those before."""
    assert hotenv._as_overwritten(line) == shown


# -- closing ---------------------------------------------------------------------------------------


@only_linux
def test_many_processes_end_in_one_pass(tmp_path):
    """A shell with hundreds of processes is closed without work that grows with their square."""
    nap = _agents_sleep()
    shell = hotenv.ShellSession(cwd=str(tmp_path), timeout=60)
    shell.exec(f"for i in {{1..800}}; do {nap} & done; true")
    until(lambda: len(_agents_processes(nap)) == 800)
    begun = time.process_time()
    shell.close()
    assert time.process_time() - begun < 0.5
    assert _agents_processes(nap) == []


def test_chain_of_forks_ends_with_its_shell(tmp_path):
    """A process that forks and ends again and again does not outlive close()."""
    program = """if 1:
        import os
        log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        while True:
            os.write(log, b".")
            if os.fork():
                os._exit(0)
        """
    log = tmp_path / "log"
    shell = hotenv.ShellSession(cwd=str(tmp_path))
    shell.exec(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} & true")
    until(lambda: log.exists() and log.stat().st_size > 100)
    shell.close()
    size = log.stat().st_size
    time.sleep(0.3)
    assert log.stat().st_size == size


# -- remotes that are no shells --------------------------------------------------------------------

# What stands at the other end, and what is said of it. Each would once have cost 30 seconds.
_AGENTS_STRANGE_REMOTES = [
    pytest.param("env -i PATH={empty} {sh}", "there is no bash.*install bash", id="no bash"),
    pytest.param("{sh} {whole}", "reads all of its input.*ssh -T host sh", id="fish"),
    pytest.param("script -qec sh /dev/null", "terminal.*ssh -T", id="terminal"),
]


@only_linux
@pytest.mark.parametrize("remote, words", _AGENTS_STRANGE_REMOTES)
def test_strange_remote_is_explained(remote, words, tmp_path):
    """A remote that is no shell, or not such a one, is told what to do, long before 30 seconds."""
    if remote.startswith("script") and not shutil.which("script"):
        pytest.skip("needs script(1), to make a terminal")
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("env", "printf"):
        (empty / name).symlink_to(shutil.which(name))
    (empty / "sh").symlink_to("/bin/sh")
    # A shell that runs nothing before its input has ended, as fish.
    (tmp_path / "whole").write_text('text=$(cat); eval "$text"\n')
    begun = time.monotonic()
    command = remote.format(empty=empty, sh="/bin/sh", whole=tmp_path / "whole")
    error = _agents_error(hotenv.ShellSession, remote=command)
    assert re.search(words, error, re.DOTALL)
    assert time.monotonic() - begun < 20


# -- the user's own tokens -------------------------------------------------------------------------


@_agents_both
def test_hosts_tokens_are_masked(remote, monkeypatch):
    """A token in the caller's environment is masked under its name, or by its form."""
    monkeypatch.setenv("MY_GITHUB_TOKEN", "a-token-of-nobodys-form")
    monkeypatch.setenv("WHATEVER", "ghp_0123456789abcdefghijABCDEFGHIJ012345")
    monkeypatch.setenv("OTHER", "AKIAIOSFODNN7EXAMPLE")
    with hotenv.ShellSession({"A": "12345678"}, remote=remote) as shell:
        said = shell.exec("echo $MY_GITHUB_TOKEN, $WHATEVER, $OTHER").stdout
    assert said == "[hidden:MY_GITHUB_TOKEN], [hidden:token], [hidden:token]\n"


@pytest.mark.parametrize(
    "name, value",
    [
        ("TOKEN_TYPE", "Bearer"),
        ("AUTH_METHOD", "vault"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXXX/agent.12"),
        ("EDITOR", "emacs-in-a-terminal"),
    ],
)
def test_harmless_variables_are_seen(name, value, monkeypatch):
    """Words, paths and variables of everyday names are not masked."""
    monkeypatch.setenv(name, value)
    with hotenv.ShellSession() as shell:
        assert shell.exec(f"echo ${name}").stdout == value + "\n"


def test_token_may_be_let_through(monkeypatch):
    """`no_mask` lets a token of the caller's be seen."""
    monkeypatch.setenv("MY_GITHUB_TOKEN", "a-token-of-nobodys-form")
    with hotenv.ShellSession(no_mask=["MY_*"]) as shell:
        assert shell.exec("echo $MY_GITHUB_TOKEN").stdout == "a-token-of-nobodys-form\n"


def test_masked_values_need_not_be_given():
    """`also_mask` hides values that the shell does not get."""
    with hotenv.ShellSession({"A": "12345678"}, also_mask={"B": "other-value"}) as shell:
        assert shell.exec("echo [$B] other-value").stdout == "[] [hidden:B]\n"


# -- progress --------------------------------------------------------------------------------------


def test_progress_tells_lines_and_the_last_one(agents_shell):
    """Each second with news, the caller hears the number of lines, and the last one, masked."""
    told = []
    agents_shell.exec(
        "for i in 1 2 3; do echo $i $TOKEN; sleep 0.9; done",
        progress=lambda lines, last: told.append((lines, last)),
    )
    assert told[0] == (2, "2 [hidden:TOKEN]")
    assert {last for _, last in told} <= {f"{i} [hidden:TOKEN]" for i in (1, 2, 3)}


# -- jobs ------------------------------------------------------------------------------------------


@_agents_both
def test_job_is_read_while_it_runs(remote, tmp_path):
    """A job's output can be read before its end, masked."""
    with hotenv.ShellSession(SECRETS, remote=remote, cwd=str(tmp_path)) as shell:
        job = shell.start("echo $TOKEN; echo err >&2; read line")
        part = job.read(wait=20)
        assert (part.text, part.running, part.exit_code) == ("[hidden:TOKEN]\n", True, None)
        assert job.read("stderr", wait=20).text == "err\n"


@_agents_both
def test_job_is_read_after_its_end(remote, tmp_path):
    """A job's output and exit code are there after its end."""
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path)) as shell:
        job = shell.start("echo a; exit 3")
        assert job.wait(20) == 3
        part = shell.read(job.id)
        assert (part.text, part.running, part.exit_code) == ("a\n", False, 3)


@_agents_both
def test_job_has_directory_and_exports(remote, tmp_path):
    """A job starts where the session's last command has ended, with what it has exported."""
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path)) as shell:
        shell.exec("mkdir d; cd d; export A=1; unset PATH_OF_NOBODY")
        job = shell.start("echo $A; pwd")
        assert job.wait(20) == 0
        assert job.read().text == f"1\n{tmp_path}/d\n"


@_agents_both
def test_job_reads_what_is_written(remote, tmp_path):
    """Text that is written to a job is its stdin, to the byte and to its end."""
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path)) as shell:
        job = shell.start("cat > got")
        job.write("a\\n%s 'ä'\n")
        job.write("no newline", end=True)
        assert job.wait(20) == 0
    assert (tmp_path / "got").read_bytes() == "a\\n%s 'ä'\nno newline".encode()


def test_local_job_reads_a_megabyte(agents_shell):
    """More input than a pipe holds reaches a job that takes its time."""
    job = agents_shell.start("sleep 0.2; wc -c")
    job.write("x" * 1_000_000, end=True)
    assert job.wait(20) == 0
    assert job.read().text.strip() == "1000000"


@only_linux
@_agents_both
def test_prompt_is_answered_by_a_secrets_name(remote, tmp_path):
    """A job on a terminal asks for a password, and gets a secret that nobody sees."""
    if remote and not shutil.which("script"):
        pytest.skip("needs script(1), which makes the terminal of a remote job")
    ask = "import getpass; print(sum(map(ord, getpass.getpass())))"
    with hotenv.ShellSession(SECRETS, remote=remote, cwd=str(tmp_path)) as shell:
        job = shell.start(f"{shlex.quote(sys.executable)} -c {shlex.quote(ask)}", terminal=True)
        assert "Password:" in job.read(pattern="Password:", wait=20).text
        job.write(secret="TOKEN")
        assert job.wait(20) == 0
        said = job.read().text
    assert str(sum(map(ord, TOKEN))) in said
    assert TOKEN not in said


def test_echoed_secret_is_masked(agents_shell):
    """A terminal that repeats what is typed shows a secret's name."""
    job = agents_shell.start("read line; echo ${#line}", terminal=True)
    job.write(secret="TOKEN")
    assert job.wait(20) == 0
    assert job.read().text == f"[hidden:TOKEN]\n{len(TOKEN)}\n"


def test_unknown_secret_is_refused(agents_shell):
    """A job is sent no variable that the session does not hold."""
    job = agents_shell.start("cat")
    assert "no secret HOME" in _agents_error(job.write, secret="HOME")


def test_lone_surrogate_is_sent_to_no_job(agents_shell):
    """A text that has no bytes is refused with a reason."""
    job = agents_shell.start("cat")
    assert "surrogate" in _agents_error(job.write, "\ud800")


def test_jobs_terminal_has_a_size(agents_shell):
    """The terminal of a job is one, and has a size."""
    job = agents_shell.start("stty size; test -t 0 -a -t 1 -a -t 2 && echo all", terminal=True)
    assert job.wait(20) == 0
    assert job.read().text == "40 120\nall\n"


@_agents_both
def test_stopped_job_gets_one_interrupt(remote, tmp_path):
    """To stop a job is Ctrl-C first: it may clean up, and say how it ends."""
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path)) as shell:
        job = shell.start("trap 'echo told; exit 9' INT; echo on; while :; do sleep 0.05; done")
        job.read(pattern="on", wait=20)
        assert job.stop() == 9
        assert job.read().text.count("told") == 1


@only_linux
@pytest.mark.parametrize("terminal", [False, True])
def test_job_that_becomes_its_command_is_stopped(agents_shell, terminal):
    """A process that loses its Ctrl-C until it is another program, as a fork of bash's, gets it."""
    forked = "trap '' INT; echo on; sleep 0.2; trap - INT; exec sleep 60"
    job = agents_shell.start(f"bash -c {shlex.quote(forked)}; exit 9", terminal=terminal)
    job.read(pattern="on", wait=20)
    begun = time.monotonic()
    assert job.stop(grace=20) != 137
    assert time.monotonic() - begun < 10


@_agents_both
def test_stubborn_job_is_killed(remote, tmp_path):
    """A job that ignores Ctrl-C is killed, with all that it has started."""
    nap = _agents_sleep()
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path)) as shell:
        job = shell.start(f"trap '' INT; echo on; {nap} & {nap}")
        job.read(pattern="on", wait=20)
        assert job.stop(grace=0.2) == 137
        until(lambda: not _agents_processes(nap), "the end of what it has started")


@_agents_both
def test_jobs_end_with_their_session(remote, tmp_path):
    """close() ends the jobs of a session."""
    nap = _agents_sleep()
    with hotenv.ShellSession(remote=remote, cwd=str(tmp_path)) as shell:
        shell.start(f"{nap} & {nap}")
        until(lambda: len(_agents_processes(nap)) >= 2)
    until(lambda: not _agents_processes(nap), "the end of the job", 10)


@only_linux
@_agents_both
def test_jobs_end_with_their_host(remote):
    """A job does not outlive a host that is killed."""
    nap = _agents_sleep()
    program = """if 1:
        import sys, time, hotenv
        shell = hotenv.ShellSession(remote=sys.argv[2] or None)
        shell.start(sys.argv[1] + " & " + sys.argv[1])
        time.sleep(600)
        """
    host = subprocess.Popen(
        [sys.executable, "-c", program, nap, remote or ""],
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    with host:
        until(lambda: len([row for row in _agents_processes(nap) if "import" not in row]) >= 2)
        host.kill()
    until(lambda: not _agents_processes(nap), "the end of the job")


def test_job_mixes_with_no_command(agents_shell):
    """What a job prints never stands in a command's result."""
    job = agents_shell.start("while :; do echo noise; sleep 0.01; done")
    job.read(pattern="noise", wait=20)
    for _ in range(5):
        result = agents_shell.exec("echo a; sleep 0.05")
        assert (result.stdout, result.stderr, result.background) == ("a\n", "", "")


def test_too_many_jobs_are_refused(agents_shell):
    """Sixteen jobs run at once, and another one must wait until one has ended."""
    jobs = [agents_shell.start("read line") for _ in range(16)]
    assert "stop one" in _agents_error(agents_shell.start, "true")
    jobs[0].write("\n")
    assert jobs[0].wait(20) == 0
    assert agents_shell.start("true").wait(20) == 0


def test_job_that_cannot_start_costs_no_session(tmp_path):
    """Where no second connection is to be had, a job is refused, and the session goes on."""
    down = tmp_path / "down"
    way = ["sh", "-c", f"test ! -e {shlex.quote(str(down))} || exit 255; exec bash"]
    with hotenv.ShellSession(remote=way, timeout=20) as shell:
        down.touch()
        with pytest.raises(hotenv.HotenvError, match="cannot run a job: .* status 255") as caught:
            shell.start("true")
        assert not isinstance(caught.value, hotenv.SessionPoisoned)  # mcp would end the shell
        assert shell.exec("echo here").stdout == "here\n"


def test_job_heeds_the_policy():
    """A job runs no command that the policy denies."""
    with hotenv.ShellSession(policy={"deny": ["rm"]}) as shell:
        with pytest.raises(hotenv.PolicyDenied):
            shell.start("rm x")


# -- any part of an output -------------------------------------------------------------------------

# Arguments of read() on the output of `seq 1 5000`, and what it returns: text, first and next line.
_AGENTS_PARTS = [
    ({"count": 2}, ("1\n2\n", 1, 3)),
    ({"first": 2500, "count": 2}, ("2500\n2501\n", 2500, 2502)),
    ({"first": -2}, ("4999\n5000\n", 4999, 5001)),
    ({"first": 5001}, ("", 5001, 5001)),
    ({"pattern": "^(7|4999)$"}, ("7:7\n4999:4999\n", 1, 5001)),
    ({"pattern": "0$", "count": 2, "first": 15}, ("20:20\n30:30\n", 15, 40)),
    ({"stream": "stderr"}, ("", 1, 1)),
]


@pytest.mark.parametrize("arguments, expected", _AGENTS_PARTS, ids=short)
def test_cut_output_is_read_in_parts(arguments, expected):
    """Of a result that was cut, any lines can be read."""
    with hotenv.ShellSession(max_output=100) as shell:
        result = shell.exec("seq 1 5000")
        assert result.truncated
        part = shell.read(result.id, **arguments)
        assert (part.text, part.first_line, part.next_line) == expected
        assert part.lines == (5000 if "stream" not in arguments else 0)


def test_parts_hold_no_value():
    """Values are masked in parts, whatever lines they cover."""
    with hotenv.ShellSession(SECRETS, max_output=50) as shell:
        result = shell.exec('for i in {1..9}; do echo "$i $TOKEN"; echo "$PEM"; done')
        seen = ""
        for first in range(1, 46):
            for count in (1, 2, 7):
                seen += shell.read(result.id, first=first, count=count).text
    assert TOKEN not in seen
    assert "MIIEvQIBADANBgkq" not in seen
    assert "[hidden:TOKEN]" in seen


def test_middle_of_a_flood_is_gone():
    """Of an output of 40 MB the beginning and the end are kept, and what is gone is told."""
    with hotenv.ShellSession(max_output=100, timeout=60) as shell:
        result = shell.exec("seq 1 5000000")
        assert shell.read(result.id, first=3, count=1).text == "3\n"
        assert shell.read(result.id, first=-1).text == "5000000\n"
        part = shell.read(result.id, first=2_000_000, count=1)
        assert part.text == f"{part.first_line}\n"
        assert part.note == f"the lines 2000000 to {part.first_line - 1} are no longer kept"


def test_lines_behind_a_complaint_of_bash_are_read():
    """That bash says that it has no terminal costs no line of what is read behind it."""
    command = "for i in 1 2 3 4; do echo line$i >&2; sh -c 'kill -9 $$'; done; seq 1 999 >&2"
    with hotenv.ShellSession({"LONG": "x" * 300}, max_output=100) as shell:
        number = shell.exec(command).id
        seen = ""
        for first in range(1, 9):
            seen += shell.read(number, "stderr", first=first, count=1).text
    assert seen.startswith("line1\nline2\nline3\nline4\n")


def test_whole_results_are_not_kept(agents_shell):
    """A result that was not cut is complete, and cannot be read again."""
    result = agents_shell.exec("echo a")
    assert f"there is no output {result.id}" in _agents_error(agents_shell.read, result.id)


def test_oldest_outputs_go_first():
    """The last outputs are kept, up to 16 MiB in all."""
    with hotenv.ShellSession(max_output=100, timeout=60) as shell:
        numbers = [shell.exec(f"echo {step}; seq 1 700000").id for step in range(5)]
        assert "there is no output" in _agents_error(shell.read, numbers[0])
        assert shell.read(numbers[4], count=1).text == "4\n"


def test_failed_commands_take_no_room():
    """What commands that failed have printed takes no room from the outputs that are kept."""

    def fail(*news):
        raise ValueError

    with hotenv.ShellSession(max_output=100, timeout=60) as shell:
        for _ in range(2):
            with pytest.raises(ValueError):
                shell.exec("head -c 9000000 /dev/zero | tr '\\0' a; sleep 20", progress=fail)
        number = shell.exec("seq 1 5000").id
        shell.exec("echo")
        assert shell.read(number, first=2500, count=1).text == "2500\n"


@pytest.mark.parametrize(
    "arguments",
    [{"pattern": "("}, {"stream": "x"}, {"first": 0}, {"count": 0}, {"wait": float("nan")}],
    ids=str,
)
def test_wrong_part_is_refused(arguments, agents_shell):
    """What cannot be asked of an output is refused."""
    job = agents_shell.start("true")
    with pytest.raises(hotenv.HotenvError) as caught:
        job.read(**arguments)
    assert caught.value.code == 2


# -- audit -----------------------------------------------------------------------------------------


def test_audit_tells_machine_and_output(tmp_path):
    """A line of the audit says where a command ran, for whom, and masked, what came out."""
    audit = tmp_path / "audit"
    fields = {"client": "a client 1.0", "agent_session": "s1"}
    with hotenv.ShellSession(SECRETS, audit=str(audit), audit_fields=fields) as shell:
        shell.exec("echo $TOKEN; echo err >&2; seq 1 9999")
    start, end = [json.loads(line) for line in audit.read_text().splitlines()]
    for line in (start, end):
        assert line["machine"] == os.uname().nodename
        assert line["client"] == "a client 1.0"
        assert line["agent_session"] == "s1"
    assert end["stdout"].startswith("[hidden:TOKEN]\n1\n")
    assert len(end["stdout"]) < 1200
    assert end["stderr"] == "err\n"
    assert TOKEN not in audit.read_text()


def test_audit_tells_of_jobs(tmp_path):
    """The start and the end of a job, and the name of a secret that it was sent, are audited."""
    audit = tmp_path / "audit"
    with hotenv.ShellSession(SECRETS, audit=str(audit)) as shell:
        job = shell.start("read line; exit 4")
        job.write(secret="TOKEN")
        job.wait(20)
        until(lambda: len(audit.read_text().splitlines()) == 3)
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["start", "write", "end"]
    assert [line["id"] for line in lines] == [job.id] * 3
    assert lines[1]["secret"] == "TOKEN"
    assert lines[2]["exit_code"] == 4
    assert TOKEN not in audit.read_text()


def test_poisoned_session_says_so():
    """A session without a shell is poisoned, and one with a shell is not."""
    shell = hotenv.ShellSession()
    assert not shell.is_poisoned
    shell.close()
    assert shell.is_poisoned


# ==== agents over MCP =============================================================================
# What a host that speaks the Model Context Protocol is offered.

# What each request of the revision 2026-07-28 says of itself.
_AGENTS_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class _AgentsHost:
    """A host of `hotenv mcp`, by raw JSON lines, in a project.

    - `notices`: the notifications that have come.
    - `dir`: where its shells start.
    """

    def __init__(self, project, *options, snapshot=SECRETS):
        self.project = project
        self.dir = project.dir
        self.count = 0
        self.notices = []
        if snapshot is not None:
            self.serve(snapshot)
        self.process = project.start("mcp", *options, stdin=PIPE, stdout=PIPE, stderr=PIPE)

    def serve(self, snapshot, *options):
        """Start a session with this snapshot."""
        text = ""
        for name, value in snapshot.items():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            text += f"{name}='{escaped}'\n"
        self.project.serve(text.encode(), "--force", *options)

    def send(self, **message):
        """Write a message."""
        line = json.dumps({"jsonrpc": "2.0", **message})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        """Return the next message that is no notification."""
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            message = json.loads(line)
            if "id" in message:
                return message
            self.notices.append(message)

    def begin(self, number, tool, **arguments):
        """Call a tool, and wait for nothing."""
        params = {"name": tool, "arguments": arguments}
        self.send(id=number, method="tools/call", params=params)

    def ask(self, method, **params):
        """Call a method, and return its result or its error."""
        self.count += 1
        self.send(id=self.count, method=method, params=params)
        message = self.receive()
        assert message["id"] == self.count
        return message["result"] if "result" in message else message["error"]

    def tool(self, tool, **arguments):
        """Call a tool, and return its structured content, or its text if it has failed."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result["isError"]:
            return result["content"][0]["text"]
        return result["structuredContent"]

    def exec(self, command, **arguments):
        """Run a command in the first session."""
        return self.tool("session_exec", session="s1", command=command, **arguments)


@pytest.fixture
def agents_host(project):
    """A host with an open session s1."""
    host = _AgentsHost(project)
    assert host.tool("session_open")["session"] == "s1"
    return host


def test_tools_tell_what_they_do(agents_host):
    """Each tool has a title, and hints on whether it reads, destroys, or reaches out."""
    hints = {}
    for tool in agents_host.ask("tools/list")["tools"]:
        assert tool["title"]
        notes = tool["annotations"]
        hints[tool["name"]] = (notes["readOnlyHint"], notes.get("destructiveHint"))
    assert hints == {
        "session_open": (False, False),
        "session_exec": (False, True),
        "session_read": (True, None),
        "session_write": (False, True),
        "session_stop": (False, True),
        "session_list": (True, None),
        "session_close": (False, True),
    }


def test_exec_reaches_out(agents_host):
    """session_exec is marked as one that reaches an open world."""
    tools = {tool["name"]: tool for tool in agents_host.ask("tools/list")["tools"]}
    assert tools["session_exec"]["annotations"]["openWorldHint"] is True
    assert tools["session_list"]["annotations"]["openWorldHint"] is False


def _agents_misfits(value, schema, path=""):
    """Return where a value is not as a JSON schema of objects, lists and plain types has it."""
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
    }
    if not isinstance(value, kinds[schema["type"]]):
        return [path]
    misfits = []
    if schema["type"] == "object" and "properties" in schema:
        misfits += [f"{path}.{name}" for name in schema["required"] if name not in value]
        for name, item in value.items():
            if name not in schema["properties"]:
                misfits.append(f"{path}.{name}")
            else:
                misfits += _agents_misfits(item, schema["properties"][name], f"{path}.{name}")
    if schema["type"] == "array":
        for number, item in enumerate(value):
            misfits += _agents_misfits(item, schema["items"], f"{path}[{number}]")
    return misfits


def test_results_fit_their_schemas(project):
    """Each tool's structured content is as its outputSchema says, and its text is the same."""
    host = _AgentsHost(project)
    schemas = {tool["name"]: tool["outputSchema"] for tool in host.ask("tools/list")["tools"]}
    calls = [
        ("session_open", {}),
        ("session_exec", {"session": "s1", "command": "echo a"}),
        ("session_exec", {"session": "s1", "command": "seq 1 99999"}),
        ("session_exec", {"session": "s1", "command": "cat", "background": True}),
        ("session_read", {"session": "s1", "id": 3}),
        ("session_read", {"session": "s1", "id": 2, "lines": 2}),
        ("session_write", {"session": "s1", "id": 3, "text": "a"}),
        ("session_list", {}),
        ("session_stop", {"session": "s1", "id": 3}),
        ("session_read", {"session": "s1", "id": 3}),
        ("session_close", {"session": "s1"}),
    ]
    for tool, arguments in calls:
        result = host.ask("tools/call", name=tool, arguments=arguments)
        assert result["isError"] is False, result
        assert _agents_misfits(result["structuredContent"], schemas[tool]) == []
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_result_is_at_most_20000_characters(agents_host):
    """A result has 20,000 characters in all, unless `max_output` asks for more."""
    flood = "seq 1 99999; seq 1 99999 >&2; echo $TOKEN"
    result = agents_host.exec(flood)
    assert result["truncated"]
    assert 19_000 < len(result["stdout"]) + len(result["stderr"]) < 20_300
    more = agents_host.exec(flood, max_output=100_000)
    assert 99_000 < len(more["stdout"]) + len(more["stderr"]) < 100_300


def test_short_stream_leaves_room_to_the_other(agents_host):
    """What stderr does not need, stdout has."""
    result = agents_host.exec("seq 1 99999; echo err >&2")
    assert result["stderr"] == "err\n"
    assert len(result["stdout"]) > 19_000


def test_cut_result_is_read_by_its_id(agents_host):
    """session_read returns any part of a result that was cut."""
    result = agents_host.exec("seq 1 99999")
    part = agents_host.tool(
        "session_read", session="s1", id=result["id"], **{"from": 50_000, "lines": 2}
    )
    assert part["text"] == "50000\n50001\n"
    assert (part["next_line"], part["lines"]) == (50_002, 99_999)


def test_whole_result_has_no_id(agents_host):
    """A result that is whole has neither id nor note: there is nothing to know."""
    result = agents_host.exec("echo a")
    assert "id" not in result
    assert "note" not in result


def test_part_is_at_most_20000_characters(agents_host):
    """A part of an output is bounded as a result is, and says where to read on."""
    number = agents_host.exec("seq 1 99999")["id"]
    part = agents_host.tool("session_read", session="s1", id=number, lines=90_000)
    assert 19_900 < len(part["text"]) <= 20_000
    assert part["text"].split()[-1] == str(part["next_line"] - 1)


def test_progress_is_told(project):
    """A call with a progress token is told each second how many lines there are, and the last."""
    host = _AgentsHost(project)
    host.tool("session_open")
    params = {
        "name": "session_exec",
        "arguments": {
            "session": "s1",
            "command": "for i in 1 2 3; do echo $i $TOKEN; sleep 0.9; done",
        },
        "_meta": {"progressToken": "p1"},
    }
    host.send(id="slow", method="tools/call", params=params)
    assert host.receive()["id"] == "slow"
    told = [notice["params"] for notice in host.notices]
    assert {notice["progressToken"] for notice in told} == {"p1"}
    assert told[0]["message"] == "2 lines: 2 [hidden:TOKEN]"
    numbers = [notice["progress"] for notice in told]
    assert numbers == sorted(set(numbers))


def test_progress_holds_up_no_time_limit(agents_host):
    """A client that does not read keeps no command beyond its time limit."""
    agents_host.tool("session_open")
    # Answers that nobody reads fill the pipe; then another session's command runs into its limit.
    flood = "head -c 90000 /dev/zero | tr '\\0' a"
    for number in range(5):
        agents_host.begin(number, "session_exec", session="s1", command=flood, max_output=90_000)
    nap = _agents_sleep()
    command = f"for i in 1 2 3; do echo $i; sleep 1; done; {nap}"
    params = {
        "name": "session_exec",
        "arguments": {"session": "s2", "command": command, "timeout": 4},
        "_meta": {"progressToken": 1},
    }
    agents_host.send(id="limited", method="tools/call", params=params)
    until(lambda: _agents_processes(nap), "the last part of the command")
    until(lambda: not _agents_processes(nap), "the end by the time limit", 15)


def test_job_is_used_over_mcp(agents_host):
    """A job is started, read, answered with a secret's name, and stopped."""
    command = "read -p 'Password: ' p; echo ${#p}; read rest"
    number = agents_host.exec(command, background=True, terminal=True)["id"]
    there = {"session": "s1", "id": number}
    asked = agents_host.tool("session_read", pattern="Password", wait=20, **there)
    assert asked["text"].startswith("1:Password:")
    agents_host.tool("session_write", secret="TOKEN", **there)
    seen = agents_host.tool("session_read", pattern=r"^\d+$", wait=20, **there)
    assert seen["text"] == f"2:{len(TOKEN)}\n"
    assert agents_host.tool("session_stop", **there)["exit_code"] in (1, 130)
    assert TOKEN not in json.dumps(agents_host.tool("session_read", **there))


def test_waiting_for_a_job_holds_up_nothing(agents_host):
    """While session_read waits, commands run in the same session, and `ping` is answered."""
    number = agents_host.exec("read line; echo got", background=True)["id"]
    agents_host.begin("wait", "session_read", session="s1", id=number, wait=600)
    assert agents_host.exec("echo a")["stdout"] == "a\n"
    assert agents_host.ask("ping") == {}
    agents_host.begin("write", "session_write", session="s1", id=number, text="x\n")
    answers = {}
    for _ in range(2):
        message = agents_host.receive()
        answers[message["id"]] = message["result"]["structuredContent"]
    assert answers["wait"]["text"] == "got\n"


def test_jobs_are_listed(agents_host):
    """session_list names the jobs of a session."""
    number = agents_host.exec("sleep 600 # $TOKEN", background=True)["id"]
    (row,) = agents_host.tool("session_list")["sessions"]
    assert row["jobs"] == [{"id": number, "command": "sleep 600 # $TOKEN", "running": True}]


def test_cancelled_open_leaves_no_shell(project, tmp_path):
    """A session_open that is cancelled leaves no session and no process."""
    door = tmp_path / "door"
    slow = tmp_path / "go"
    door.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/begun\n"
        f"while ! test -e {slow}; do sleep 0.05; done\nexec sh\n"
    )
    door.chmod(0o755)
    host = _AgentsHost(project, "--remote", f"slow={door}")
    host.begin("open", "session_open", remote="slow")
    until((tmp_path / "begun").exists)
    host.send(method="notifications/cancelled", params={"requestId": "open"})
    assert host.ask("ping") == {}
    slow.touch()
    until(lambda: "not open" in host.exec("true"))
    until(lambda: not _agents_processes(str(door)), "the end of what leads there")


def test_closing_holds_up_nobody(project):
    """While a session is being closed, other calls are answered."""
    # This remote does not end when its stdin does, so closing takes two seconds.
    host = _AgentsHost(project, "--remote", "slow=sh -c 'sh; sleep 600'")
    host.tool("session_open", remote="slow")
    host.begin("close", "session_close", session="s1")
    host.begin("list", "session_list")
    assert [host.receive()["id"] for _ in range(2)] == ["list", "close"]


def test_policy_that_allows_all_is_not_told(project, tmp_path):
    """The instructions say nothing of a policy without any rule."""
    policy = tmp_path / "policy"
    policy.write_text('{"deny": []}')
    instructions = _AgentsHost(project, "--policy", str(policy)).ask("initialize")["instructions"]
    assert instructions == _AgentsHost(project).ask("initialize")["instructions"]


def test_policy_is_told_to_the_agent(project, tmp_path):
    """The instructions, and a refusal, tell what a policy allows."""
    policy = tmp_path / "policy"
    policy.write_text('{"allow": ["git", "ls"]}')
    host = _AgentsHost(project, "--policy", str(policy))
    assert "allowed: git, ls" in host.ask("initialize")["instructions"]
    host.tool("session_open")
    assert "allowed: git, ls" in host.exec("rm x")


def test_poisoned_shell_says_open_another(project, tmp_path):
    """A session that cannot get a shell again tells the agent to open another."""
    door = tmp_path / "door"
    door.write_text("#!/bin/sh\nexec sh\n")
    door.chmod(0o755)
    host = _AgentsHost(project, "--remote", f"far={door}")
    host.tool("session_open", remote="far")
    door.write_text("#!/bin/sh\nexit 7\n")
    host.exec("exit 3")
    assert "open another with session_open" in host.exec("true")
    assert host.tool("session_list") == {"sessions": []}


# -- the revision 2026-07-28 -----------------------------------------------------------------------


def test_discovery_needs_no_handshake(project):
    """server/discover tells revision, capabilities, instructions and name, and may be cached."""
    result = _AgentsHost(project).ask("server/discover", _meta=_AGENTS_META)
    assert result["resultType"] == "complete"
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {}}
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] in ("public", "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "hotenv"


def test_stateless_calls_work(project):
    """Tools are listed and called by requests that each say all about themselves."""
    host = _AgentsHost(project)
    listed = host.ask("tools/list", _meta=_AGENTS_META)
    assert listed["resultType"] == "complete"
    assert listed["ttlMs"] >= 0
    opened = host.ask("tools/call", name="session_open", arguments={}, _meta=_AGENTS_META)
    assert opened["resultType"] == "complete"
    call = {"session": "s1", "command": "echo $TOKEN"}
    result = host.ask("tools/call", name="session_exec", arguments=call, _meta=_AGENTS_META)
    assert result["structuredContent"]["stdout"] == "[hidden:TOKEN]\n"


def test_unknown_revision_is_refused(project):
    """A revision that is not served is refused with those that are."""
    meta = {**_AGENTS_META, "io.modelcontextprotocol/protocolVersion": "1900-01-01"}
    error = _AgentsHost(project).ask("tools/list", _meta=meta)
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "1900-01-01"}


def _agents_without(key):
    """Return what requests say of themselves, but for one thing."""
    return {name: value for name, value in _AGENTS_META.items() if not name.endswith(key)}


@pytest.mark.parametrize(
    "method, meta, code",
    [
        ("server/discover", {}, -32602),
        ("tools/list", _agents_without("clientCapabilities"), -32602),
        ("ping", _AGENTS_META, -32601),
        ("initialize", _AGENTS_META, -32601),
        ("no/such", _AGENTS_META, -32601),
    ],
)
def test_odd_stateless_request_is_refused(method, meta, code, project):
    """A request of the new revision that lacks something, or asks for something old, is refused."""
    assert _AgentsHost(project).ask(method, _meta=meta)["code"] == code


def test_stateless_client_need_not_name_itself(project):
    """A client of the new revision may keep its name to itself."""
    meta = _agents_without("clientInfo")
    assert "tools" in _AgentsHost(project).ask("tools/list", _meta=meta)


def test_older_answers_stay_as_they_were(agents_host):
    """A client of an older revision gets no field that it does not know."""
    result = agents_host.ask("tools/list")
    assert list(result) == ["tools"]


# -- asking the user -------------------------------------------------------------------------------


def test_user_is_asked_for_a_session(project):
    """Without a session, an older client's user is asked to start one, and the call goes on."""
    host = _AgentsHost(project, snapshot=None)
    host.ask("initialize", capabilities={"elicitation": {}})
    host.begin("open", "session_open")
    question = host.receive()
    assert question["method"] == "elicitation/create"
    assert "serve" in question["params"]["message"]
    assert question["params"]["requestedSchema"]["type"] == "object"
    host.serve(SECRETS)
    host.send(id=question["id"], result={"action": "accept", "content": {}})
    answer = host.receive()
    assert answer["id"] == "open"
    assert answer["result"]["structuredContent"]["secrets"] == sorted(SECRETS)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_user_may_decline(action, project):
    """A user who starts no session leaves the agent with an error."""
    host = _AgentsHost(project, snapshot=None)
    host.ask("initialize", capabilities={"elicitation": {}})
    host.begin("open", "session_open")
    host.send(id=host.receive()["id"], result={"action": action})
    result = host.receive()["result"]
    assert result["isError"]
    assert "no session" in result["content"][0]["text"]


def test_stateless_user_is_asked_for_a_session(project):
    """Without a session, a client of the new revision is to ask, and to call again."""
    meta = {**_AGENTS_META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    host = _AgentsHost(project, snapshot=None)
    call = {"name": "session_open", "arguments": {}, "_meta": meta}
    first = host.ask("tools/call", **call)
    assert first["resultType"] == "input_required"
    ((key, question),) = first["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert question["params"]["mode"] == "form"
    host.serve(SECRETS)
    second = host.ask("tools/call", inputResponses={key: {"action": "accept"}}, **call)
    assert second["resultType"] == "complete"
    assert second["structuredContent"]["secrets"] == sorted(SECRETS)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}], ids=str)
def test_nobody_is_asked_who_cannot_be(capabilities, project):
    """Where the host cannot ask its user by a form, the agent is told at once."""
    host = _AgentsHost(project, snapshot=None)
    host.ask("initialize", capabilities=capabilities)
    assert "no session" in host.tool("session_open")


# -- which secrets, which session, who asked -------------------------------------------------------


def test_agent_gets_only_what_is_named(project):
    """`mcp --only` gives an agent's shells these secrets alone, and masks the others still."""
    host = _AgentsHost(project, "--only", "TOKEN,P*")
    opened = host.tool("session_open")
    assert opened["secrets"] == ["PEM", "PIN", "TOKEN"]
    result = host.exec(f"echo [$URL] {shlex.quote(SECRETS['URL'])}")
    assert result["stdout"] == "[] [hidden:URL]\n"


def test_withheld_secret_cannot_be_sent(project):
    """A secret that `--only` leaves out cannot be sent to a job, either."""
    host = _AgentsHost(project, "--only", "TOKEN")
    host.tool("session_open")
    number = host.exec("cat", background=True)["id"]
    assert "no secret PIN" in host.tool("session_write", session="s1", id=number, secret="PIN")


def test_named_session_is_used(project):
    """`mcp --name` uses the session of that name, beside another one."""
    host = _AgentsHost(project, "--name", "deploy")
    named = project.start("serve", "--name", "deploy", stdin=PIPE)
    with named.stdin:
        named.stdin.write(b"OTHER=in-the-named-one\n")
    until((project.dir / ".hotenv.deploy").exists)
    assert host.tool("session_open")["secrets"] == ["OTHER"]


def test_mcp_audit_tells_who_asked(project, tmp_path):
    """The audit says which machine, which of the agent's sessions, and which client it was."""
    audit = tmp_path / "audit"
    host = _AgentsHost(project, "--audit", str(audit), "--remote", "here=sh")
    host.ask("initialize", clientInfo={"name": "some-client", "version": "2\n"}, capabilities={})
    host.tool("session_open")
    host.tool("session_open", remote="here")
    host.exec("echo a")
    host.tool("session_exec", session="s2", command="echo b")
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    facts = [(line["machine"], line["agent_session"], line["client"]) for line in lines]
    local = (os.uname().nodename, "s1", "some-client 2\\n")
    remote = ("here", "s2", "some-client 2\\n")
    assert facts == [local, local, remote, remote]


# ==== odd interpreters ============================================================================
# Pythons that lack a module, or whose C halves of modules have changed, and systems that refuse
# what only hardens a process.

# What takes a module away, as if this Python were built without it.
_CORE_WITHOUT = """
    import sys
    for name in {names!r}:
        sys.modules[name] = None
"""


def _core_program(statements):
    """Return the words of the installed program, which first runs Python statements.

    What the public modules need of their C halves is imported before the statements run.
    """
    lines = [
        "import sys, json, signal, socket",
        textwrap.dedent(statements),
        "sys.path.insert(0, %r)" % str(HERE),
        "import hotenv",
        "del sys.path[0]",
        "sys.exit(hotenv.main())",
    ]
    return [sys.executable, "-S", "-c", "\n".join(lines)]


def _core_without(*names):
    """Return the words of the program on a Python that lacks these modules."""
    return _core_program(_CORE_WITHOUT.format(names=names))


def _core_outcome(done):
    """Return the exit status, stdout and stderr of a CompletedProcess."""
    return done.returncode, done.stdout, done.stderr


def _core_half(module, change):
    """Return statements that put a changed copy in place of a C half of a module.

    `change` are statements about `half`, a copy of the module with all that is in it, and `real`,
    the module itself.
    """
    lines = [
        "import sys, types",
        "import %s as real" % module,
        "half = types.ModuleType(%r)" % module,
        "half.__dict__.update(vars(real))",
        textwrap.dedent(change),
        "sys.modules[%r] = half" % module,
    ]
    return "\n".join(lines)


# -- the C halves of modules --

_CORE_STRANGE_HALVES = [
    pytest.param(_CORE_WITHOUT.format(names=["_json"]), id="json: missing"),
    pytest.param(_core_half("_json", "del half.make_scanner"), id="json: no scanner"),
    pytest.param(
        _core_half(
            "_json",
            """
            def make_scanner(context):
                context.wanted_since_some_version
            half.make_scanner = make_scanner
            """,
        ),
        id="json: wants one attribute more",
    ),
    pytest.param(
        _core_half(
            "_json",
            """
            def make_scanner(context):
                raise SystemError("refused")
            half.make_scanner = make_scanner
            """,
        ),
        id="json: refuses",
    ),
    pytest.param(
        _core_half(
            "_json",
            """
            half.make_scanner = lambda context: lambda text, start: ({}, len(text))
            """,
        ),
        id="json: reads something else",
    ),
    pytest.param(
        _core_half(
            "_json",
            """
            def make_scanner(context):
                scan = real.make_scanner(context)
                return lambda text, start, depth: scan(text, start)
            half.make_scanner = make_scanner
            """,
        ),
        id="json: wants one argument more",
    ),
    pytest.param(
        _core_half("_json", "half.encode_basestring_ascii = repr"), id="json: quotes otherwise"
    ),
    pytest.param(_CORE_WITHOUT.format(names=["_socket"]), id="socket: missing"),
    pytest.param(_core_half("_socket", "del half.AF_UNIX"), id="socket: one name less"),
    pytest.param(_core_half("_socket", "half.__dict__.clear()"), id="socket: empty"),
    pytest.param(_CORE_WITHOUT.format(names=["_signal"]), id="signal: missing"),
    pytest.param(_core_half("_signal", "del half.pthread_sigmask"), id="signal: one name less"),
    pytest.param(_core_half("_signal", "half.__dict__.clear()"), id="signal: empty"),
]


@pytest.mark.parametrize("statements", _CORE_STRANGE_HALVES)
def test_client_does_without_a_c_half(project, session, statements):
    """A command asks a session as ever where a C half of a module is missing, new or refuses."""
    project.program = _core_program(statements)
    done = project.run("printenv", "B", cwd=str(session.dir), env=session.env)
    assert _core_outcome(done) == (0, b"two words\n", b"")


@pytest.mark.parametrize("statements", _CORE_STRANGE_HALVES)
def test_server_does_without_a_c_half(project, statements):
    """A session serves as ever where a C half of a module is missing, new or refuses."""
    project.program = _core_program(statements)
    server = project.serve(b"A=\xc3\xa9\n", "-q")
    assert project.ask(RUN) == b'{"env":{"A":"\\u00e9"}}\n'
    assert ended(server, signal.SIGTERM) == 0
    assert project.log() == b""


# -- modules that a Python lacks --


_CORE_NO_JSON = ["_json", "json", "json.decoder", "json.encoder"]


@pytest.mark.parametrize("words", [["run", "--", "true"], ["dump"], ["status"]], ids=" ".join)
def test_client_without_json_says_so(project, session, words):
    """A command on a Python without `json`, as Debian's smallest, says that `json` is missing."""
    project.program = _core_without(*_CORE_NO_JSON)
    done = project.hotenv(*words, cwd=str(session.dir), env=session.env)
    assert re.search("lacks .*json", refusal(done, 8))


def test_server_without_json_says_so(project):
    """`serve` on a Python without `json` says that `json` is missing, and leaves nothing."""
    project.program = _core_without(*_CORE_NO_JSON)
    done = project.hotenv("serve", input=b"A=1\n")
    assert re.search("lacks .*json", refusal(done, 8))
    assert project.files() == []


def test_version_needs_no_json(project):
    """`hotenv version` says which version this is on a Python without `json`."""
    project.program = _core_without(*_CORE_NO_JSON)
    done = project.hotenv("version")
    assert _core_outcome(done) == (0, b"hotenv %s\n" % hotenv.__version__.encode(), b"")


@pytest.mark.parametrize(
    "module, words",
    [
        ("selectors", ["serve"]),
        ("select", ["serve", "--background"]),
        ("fcntl", ["serve", "--background"]),
        ("argparse", ["serve"]),
        ("difflib", ["serve", "--backgruond"]),
        ("shlex", ["shellenv"]),
    ],
)
def test_missing_module_is_no_internal_error(project, module, words):
    """A command on a Python that lacks a module says which, or goes on without it."""
    project.program = _core_without(module)
    done = project.hotenv(*words, input=b"A=1\n")
    if done.returncode:
        assert re.search("lacks .*module|unrecognized", refusal(done, done.returncode))


@pytest.mark.parametrize("module", ["selectors", "select", "socket", "fcntl"])
def test_serve_without_a_module_leaves_nothing(project, module):
    """Invariant 2: `serve` that lacks a module, and so is refused, leaves no file."""
    project.program = _core_without(module)
    done = project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    if done.returncode:
        assert project.files() == []


def test_session_needs_no_locks(project):
    """A session starts and ends on a Python without `fcntl`, which is only for a lock."""
    project.program = _core_without("fcntl")
    server = project.serve()
    assert project.dump() == {b"A": b"1"}
    assert ended(server, signal.SIGTERM) == 0
    assert project.files() == ["r/hotenv"]


# What only hardens a process, and is refused or missing.
_CORE_NO_HARDENING = [
    pytest.param(_CORE_WITHOUT.format(names=["resource"]), id="no resource"),
    pytest.param(
        """
        import resource
        def setrlimit(*limit):
            raise ValueError("not allowed to raise maximum limit")
        resource.setrlimit = setrlimit
        """,
        id="a ValueError",
    ),
    pytest.param(
        """
        import resource
        def refuse(*limit):
            raise PermissionError(1, "refused by a sandbox")
        resource.setrlimit = resource.getrlimit = refuse
        """,
        id="an OSError",
    ),
]


@pytest.mark.parametrize("options", [[], ["--background"]], ids=["foreground", "background"])
@pytest.mark.parametrize("statements", _CORE_NO_HARDENING)
def test_serve_needs_no_limits(project, statements, options):
    """`serve` goes on, and says nothing, where the limits of its process cannot be set."""
    plain = project.program
    project.program = _core_program(statements)
    if options:
        done = project.hotenv("serve", *options, input=b"A=1\n")
        assert _core_outcome(done) == (0, b"", b"")
    else:
        project.serve(b"A=1\n", "-q")
    project.program = plain
    assert project.dump() == {b"A": b"1"}
    assert project.log() == b""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["dump", "--only", "B"], id="dump"),
        pytest.param(["run", "--mask", "--", "echo", "B=two"], id="run --mask"),
    ],
)
@pytest.mark.parametrize("statements", _CORE_NO_HARDENING)
def test_client_needs_no_limits(project, session, statements, words):
    """`dump` and `run --mask` go on where the limits of their process cannot be set."""
    project.program = _core_program(statements)
    done = project.hotenv(*words, cwd=str(session.dir), env=session.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"B=two")
    assert b"internal error" not in done.stderr


@pytest.mark.parametrize("words", [["serve"], ["dump"], ["run", "--mask", "--", "true"]])
@only_linux
def test_sandbox_may_refuse_limits(project, meddle, words):
    """A command goes on where the kernel lets it set no limit."""
    if words[0] != "serve":
        project.serve()
    meddle("prlimit64:error=EPERM")
    if words[0] == "serve":
        project.serve()
    else:
        assert project.hotenv(*words).returncode == 0


# -- a Python without ctypes --


@pytest.fixture
def no_ctypes(project):
    """A project whose Python has no ctypes."""
    project.program = _core_without("ctypes", "_ctypes")
    return project


def test_serve_without_ctypes_says_so(no_ctypes):
    """`serve` says in one line on stderr that other processes of the user can read its memory."""
    done = no_ctypes.hotenv("serve", "--background", input=b"A=1\n")
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1
    assert re.fullmatch("hotenv: the memory of this .* is open to your other processes.*", lines[0])


def test_log_without_ctypes_has_requests_alone(no_ctypes):
    """The log of a session whose memory is open has a line for each request, and no other."""
    no_ctypes.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    no_ctypes.ask(RUN)
    lines = (no_ctypes.dir / "log").read_text().splitlines()
    assert len(lines) == 1
    assert LOG_LINE.match(lines[0])


@pytest.mark.parametrize("closed", [True, False])
def test_status_tells_whether_memory_is_closed(project, closed):
    """`status --json` tells whether the system keeps the user's processes out of the memory."""
    plain = project.program
    if not closed:
        project.program = _core_without("ctypes", "_ctypes")
    project.serve()
    project.program = plain
    assert json.loads(project.hotenv("status", "--json").stdout)["memory_closed"] is closed


def test_status_warns_of_open_memory(no_ctypes):
    """`status` has a line for a memory that is open."""
    no_ctypes.serve()
    assert b"open to your other processes" in no_ctypes.hotenv("status").stdout


def test_status_says_nothing_of_closed_memory(session):
    """`status` has no line about a memory that is closed, as it should be."""
    assert b"other processes" not in session.hotenv("status").stdout


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_stop_needs_no_name_of_a_process(no_ctypes, state):
    """`stop` ends a session whose process could not name itself."""
    server = no_ctypes.serve()
    if state == "stopped":
        server.send_signal(signal.SIGSTOP)
        os.waitpid(server.pid, os.WUNTRACED)
    done = no_ctypes.hotenv("stop")
    assert _core_outcome(done) == (0, b"", b"")
    assert ended(server) == 0


def test_readme_has_the_condition_of_closed_memory():
    """The README says that the memory of a session is closed only by a Python with ctypes."""
    text = (HERE / "README.md").read_text()
    sentence = re.search(r"[^.\n]*cannot read its memory[^.]*\.", text).group()
    assert "ctypes" in sentence


def test_readme_tells_of_user_namespaces():
    """The README says that a session in a user namespace can be read from outside of it."""
    text = (HERE / "README.md").read_text()
    assert "user namespace" in text


# -- warnings of Python --


@pytest.fixture
def warned(project):
    """A project whose Python is in development mode, and turns each warning into an error."""
    python, *arguments = project.program
    project.program = [python, "-X", "dev", "-W", "error", *arguments]
    return project


def test_warnings_add_nothing_to_a_log(warned):
    """A Python that warns of all it can adds nothing to the log of a session."""
    server = warned.serve(b"A=1\n", "-q")
    with warned.connect() as silent, warned.connect() as unfinished:
        unfinished.sendall(b'{"comm')
        warned.ask(RUN)
        warned.ask(b"{}\n")
        with warned.connect() as half:
            half.sendall(b"x")
        silent.sendall(b"y")
        assert ended(server, signal.SIGTERM) == 0
    assert warned.log() == b""


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--", "true"],
        ["run", "--mask", "--", "true"],
        ["run", "--only", "A", "--isolated", "--", "true"],
        ["dump", "--json"],
        ["status"],
        ["status", "--all"],
        ["stop"],
    ],
    ids=" ".join,
)
def test_warnings_add_nothing_to_a_command(warned, words):
    """A Python that warns of all it can adds nothing to what a command says."""
    warned.hotenv("serve", "--background", input=b"A=long enough\n")
    done = warned.hotenv(*words)
    assert (done.returncode, done.stderr) == (0, b"")


def test_warnings_add_nothing_to_a_background_log(warned):
    """A session in the background of a Python that warns logs a line for each request alone."""
    done = warned.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    assert _core_outcome(done) == (0, b"", b"")
    warned.run("true")
    warned.hotenv("stop")
    assert len((warned.dir / "log").read_text().splitlines()) == 1


# ==== markers that lead elsewhere =================================================================
# A marker is a plain file in a directory above. What a clone brings is not believed, and what a
# start that was killed has left is found.


@pytest.fixture
def cloned(project, session):
    """A project whose marker is a link to the marker of another session, as a clone can have."""
    project.marker.symlink_to(session.marker)
    return project


@pytest.mark.parametrize(
    "words", [["run", "--", "printenv"], ["dump"], ["status"]], ids=lambda words: words[0]
)
def test_link_in_a_clone_is_refused(cloned, words):
    """Invariant 9: a marker that is a link hands nobody the secrets of another project."""
    done = cloned.hotenv(*words)
    assert "is a link" in refusal(done, 8)
    assert done.stdout == b""


@pytest.mark.parametrize("way", ["--socket", "HOTENV_SOCKET"])
def test_link_in_a_clone_names_the_way_to_share(cloned, way):
    """The error for a marker that is a link says how a session is shared on purpose."""
    assert way in refusal(cloned.run("true"), 8)


@pytest.mark.parametrize("words", [["stop"], ["stop", "--all"]], ids=" ".join)
def test_stop_by_a_link_spares_the_session(cloned, session, words):
    """`stop` does not end the session of another project by way of a link."""
    cloned.hotenv(*words)
    assert session.dump()[b"A"] == b"1"


def test_link_in_a_clone_is_no_session(cloned):
    """`run --optional` runs its command without a session where the marker is a link."""
    done = cloned.hotenv("run", "--optional", "-q", "--", "printenv", "B")
    assert _core_outcome(done) == (1, b"", b"")


# -- a start that is killed --


@pytest.fixture
def core_killed(project):
    """A project in which a start was killed when its marker had no name yet."""
    plain = project.program
    project.program = _core_program(
        """
        import os
        def link(*paths, **options):
            os.kill(os.getpid(), signal.SIGKILL)
        os.link = link
        """
    )
    process = project.start("serve", stdin=PIPE)
    process.stdin.write(b"A=1\n")
    process.stdin.close()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert [path.name for path in project.dir.iterdir()] != []
    project.program = plain
    return project


def test_stop_all_clears_a_killed_start(core_killed):
    """`stop --all` removes all that a start has left which was killed before it was ready."""
    core_killed.hotenv("stop", "--all")
    assert core_killed.files() == ["r/hotenv"]


def test_force_clears_a_killed_start(core_killed):
    """`serve --force` removes the first file of a marker that a killed start has left."""
    core_killed.serve(b"A=2\n", "--force")
    assert [path.name for path in core_killed.dir.iterdir()] == [".hotenv"]


def test_force_clears_a_killed_start_after_a_restart(core_killed):
    """`serve --force` removes what a killed start has left, although its socket is gone."""
    shutil.rmtree(str(core_killed.runtime))
    core_killed.serve(b"A=2\n", "--force")
    assert [path.name for path in core_killed.dir.iterdir()] == [".hotenv"]


def test_killed_start_is_no_session(core_killed):
    """What a killed start has left is no session."""
    refusal(core_killed.run("true"), 3)


def test_killed_start_hinders_no_start(core_killed):
    """A session starts where a start was killed before."""
    assert core_killed.hotenv("serve", "--background", input=b"A=2\n").returncode == 0
    assert core_killed.dump() == {b"A": b"2"}


def test_readme_excludes_all_that_a_start_makes(core_killed):
    """The line that the README has for .git/info/exclude covers whatever a start makes."""
    if not shutil.which("git"):
        pytest.skip("needs git")
    text = (HERE / "README.md").read_text()
    pattern = re.search(r"echo (\S+) >> .*info/exclude", text).group(1).strip("'\"")
    core_killed.sh("git init -q p")
    (core_killed.dir / ".git" / "info" / "exclude").write_text(pattern + "\n")
    listed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=str(core_killed.dir), stdout=PIPE, timeout=PATIENCE
    )
    assert listed.stdout == b""


def test_refused_start_without_links_is_clean(project):
    """Invariant 2: where a marker can be neither linked nor renamed, no half of one stays."""
    project.program = _core_program(
        """
        import errno, os
        def refuse(*paths, **options):
            raise OSError(errno.EIO, "the disk is broken")
        os.link = os.rename = refuse
        """
    )
    refusal(project.hotenv("serve", input=b"A=1\n"), 8)
    assert project.files() == []


# -- directories that lie deep --


@contextlib.contextmanager
def _core_below(top, levels):
    """Yield a descriptor of a directory that many levels below another, given by a descriptor."""
    directory = os.dup(top)
    for _ in range(levels):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_DIRECTORY, dir_fd=directory)
        os.close(directory)
        directory = below
    try:
        yield directory
    finally:
        # A path to the bottom would be too long for shutil, and rm would take seconds.
        for _ in range(levels):
            parent = os.open("..", os.O_DIRECTORY, dir_fd=directory)
            os.close(directory)
            os.rmdir("d", dir_fd=parent)
            directory = parent
        os.close(directory)


@contextlib.contextmanager
def _core_at_depth(project, levels):
    """Yield a preexec_fn that goes so many levels below the project directory."""
    top = os.open(str(project.dir), os.O_DIRECTORY)
    try:
        with _core_below(top, levels) as bottom:
            yield lambda: os.fchdir(bottom)
    finally:
        os.close(top)


_CORE_DEPTHS = pytest.mark.parametrize("levels", [999, 1000, 1400, 2100])


@_CORE_DEPTHS
def test_marker_far_above_is_found(project, levels):
    """`run` finds a marker that so many levels above that a path of `../` would be too long."""
    project.serve()
    with _core_at_depth(project, levels) as go_there:
        done = project.run("printenv", "A", preexec_fn=go_there)
    assert _core_outcome(done) == (0, b"1\n", b"")


@_CORE_DEPTHS
def test_stop_ends_a_session_far_above(project, levels):
    """`stop` ends a session whose marker lies far above, and takes the marker for no copy."""
    server = project.serve()
    with _core_at_depth(project, levels) as go_there:
        done = project.hotenv("stop", preexec_fn=go_there)
    assert _core_outcome(done) == (0, b"", b"")
    assert ended(server) == 0
    assert not project.marker.exists()


def test_deep_marker_far_above_is_found(project):
    """`run` finds a marker that lies far above, and whose own path is too long for the system."""
    project.serve()
    content = project.marker.read_bytes()
    top = os.open(str(project.dir), os.O_DIRECTORY)
    with _core_below(top, 2100) as middle, _core_below(middle, 400) as bottom:
        with open(os.open(".hotenv", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=middle), "wb") as file:
            file.write(content)
        project.marker.unlink()
        done = project.run("printenv", "A", preexec_fn=lambda: os.fchdir(bottom))
        os.unlink(".hotenv", dir_fd=middle)
    os.close(top)
    assert _core_outcome(done) == (0, b"1\n", b"")


def test_stop_clears_a_dead_session_far_above(project):
    """`stop` far below a marker of a dead session removes that marker."""
    assert ended(project.serve(), signal.SIGKILL) == -signal.SIGKILL
    with _core_at_depth(project, 1400) as go_there:
        done = project.hotenv("stop", preexec_fn=go_there)
    assert _core_outcome(done) == (0, b"", b"")
    assert project.files() == ["r/hotenv"]


def test_error_names_a_marker_far_above(project):
    """The error for a damaged marker far above shows the whole path of that marker."""
    project.marker.write_text("damaged\n")
    with _core_at_depth(project, 1400) as go_there:
        done = project.run("true", preexec_fn=go_there)
    assert str(project.marker) in refusal(done, 9)


@only_root
@pytest.mark.parametrize("levels", [5, 998, 999, 1000, 1500])
def test_locked_directory_far_above_ends_the_walk(project, levels):
    """A directory above that may not be searched ends the walk for a marker, however far it is."""
    become_stranger = project.for_strangers(STRANGER)
    with _core_at_depth(project, levels) as go_there:
        os.chown(str(project.dir), 0, 0)
        os.chmod(str(project.dir), 0o700)

        def before():
            go_there()
            become_stranger()

        done = project.run("true", preexec_fn=before)
    refusal(done, 3)


# ==== who answers, and for how long ===============================================================
# What `stop` and `status` see of a server that is hidden, stopped, reached by another name, or
# about to end.


@pytest.fixture
def hidden(project):
    """A project of a user from whom /proc hides the user's own servers: hidepid=2."""
    if not ROOT or not LINUX:
        pytest.skip("needs root, and namespaces of Linux")
    if shutil.which("setpriv", path=PATHS) is None:
        pytest.skip("needs setpriv")
    project.for_strangers(STRANGER)
    plain = project.program
    held = _core_namespace("mount -t proc -o hidepid=2 proc /proc")
    project.started.append(held)
    enter = ["nsenter", "--mount", "--pid", "--target", str(_core_child_of(held))]
    in_directory = ["sh", "-c", 'cd "$0" && exec "$@"', str(project.dir)]
    as_user = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups"]
    project.program = [*enter, *in_directory, *as_user, *plain]
    return project


def _core_namespace(lines):
    """Return a process that holds a mount and pid namespace, in which it has run shell lines."""
    held = subprocess.Popen(
        ["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-ec", lines + "; echo; exec cat"],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    if held.stdout.readline() != b"\n":
        pytest.skip("needs namespaces, and a /proc of one's own")
    return held


def _core_child_of(process):
    """Return the pid of the only child of a process."""
    return int(children(process.pid)[0][0])


def test_stop_ends_a_hidden_session(hidden):
    """`stop` ends a session of the user's own whose process /proc hides from the user."""
    assert hidden.hotenv("serve", "--background", input=b"A=1\n").returncode == 0
    assert _core_outcome(hidden.hotenv("stop")) == (0, b"", b"")
    refusal(hidden.run("true"), 3)


def test_status_knows_the_pid_of_a_hidden_server(hidden):
    """`status` shows the pid of a server that /proc hides: the kernel and the server say it."""
    hidden.hotenv("serve", "--background", input=b"A=1\n")
    assert type(json.loads(hidden.hotenv("status", "--json").stdout)["pid"]) is int


def test_stop_ends_a_hidden_stopped_session(hidden):
    """`stop` lets a server go on that is stopped, also where /proc does not show that it is."""
    hidden.hotenv("serve", "--background", input=b"A=1\n")
    with hidden.connect() as client:
        os.kill(peer_pid(client), signal.SIGSTOP)
    assert _core_outcome(hidden.hotenv("stop")) == (0, b"", b"")
    refusal(hidden.run("true"), 3)


def test_stop_of_a_forwarder_is_refused(project, session):
    """`stop` ends nobody who only forwards for a session, and the session lives on."""
    path = str(project.root / "forward")

    def forward(client, _, server):
        client.sendall(session.ask(client.recv(1 << 20)))

    with socketserver.UnixStreamServer(path, forward) as forwarder:
        thread = threading.Thread(target=forwarder.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        done = project.hotenv("stop", "--socket", path)
        forwarder.shutdown()
    assert "forwarded" in refusal(done, 8)
    assert session.dump()[b"A"] == b"1"


def test_stop_by_another_name_reports_the_end(project):
    """`stop --socket` ends a session by a name of its socket that stays, as one in a mount does."""
    server = project.serve()
    other = project.root / "mounted"
    os.link(project.socket_path(), str(other))
    done = project.hotenv("stop", "--socket", str(other))
    assert _core_outcome(done) == (0, b"", b"")
    assert ended(server) == 0


@only_root
@only_linux
def test_stop_by_a_mounted_name_reports_the_end(project):
    """`stop --socket` ends a session by a mount of its socket, which cannot be removed."""
    server = project.serve()
    other = project.root / "mounted"
    other.touch()
    in_mounts(project, 'mount --bind "%s" "%s"; exec "$@"' % (project.socket_path(), other))
    done = project.hotenv("stop", "--socket", str(other))
    assert _core_outcome(done) == (0, b"", b"")
    assert ended(server) == 0


# -- clocks --


def test_clock_that_went_back_shows_no_late_end(project):
    """`status` shows no end beyond the idle timeout when the wall clock has gone back."""
    project.serve(b"A=1\n", "--timeout", "10m")
    later = time.time() + 86400
    os.utime(project.socket_path(), (later, later))
    told = json.loads(project.hotenv("status", "--json").stdout)
    assert told["ends"] <= time.time() + 600


def test_clock_that_went_back_shows_no_long_rest(project):
    """`status` shows a rest of at most the idle timeout when the wall clock has gone back."""
    project.serve(b"A=1\n", "--timeout", "10m")
    later = time.time() + 86400
    os.utime(project.socket_path(), (later, later))
    shown = project.hotenv("status").stdout.decode()
    assert re.search(r"\nends .*, in (9m59s|10m|9m5\ds)\n", shown)


def test_clock_that_went_back_respects_max_age(project):
    """`status` shows no end beyond the maximal age when the wall clock has gone back."""
    project.serve(b"A=1\n", "--timeout", "10m", "--max-age", "1m")
    later = time.time() + 86400
    os.utime(project.socket_path(), (later, later))
    told = json.loads(project.hotenv("status", "--json").stdout)
    assert told["ends"] <= time.time() + 60


def test_end_of_a_session_in_use_is_shown(project):
    """`status` shows the end that the time stamp of the socket says, where the clock is right."""
    project.serve(b"A=1\n", "--timeout", "10m")
    told = json.loads(project.hotenv("status", "--json").stdout)
    assert abs(told["ends"] - project.ends_at()) < 0.01


# -- a server that is stopped --


@pytest.fixture
def stopped(project):
    """A project whose server is stopped, as by Ctrl-Z."""
    server = project.serve()
    server.send_signal(signal.SIGSTOP)
    os.waitpid(server.pid, os.WUNTRACED)
    return project


@pytest.mark.parametrize("options", [[], ["--mask"], ["--only", "A"]], ids=" ".join)
def test_run_names_a_stopped_server(stopped, options):
    """`run` says that the process of the session is stopped."""
    assert "is stopped" in refusal(stopped.hotenv("run", *options, "--", "true"), 4)


def test_run_waits_little_for_a_stopped_server(stopped):
    """`run` does not wait out the 10 s of an exchange for a server that is stopped."""
    began = time.monotonic()
    stopped.run("true")
    assert time.monotonic() - began < 5


def test_run_says_what_status_says(stopped):
    """`run` says of a stopped server just what `status` says."""
    assert stopped.run("true").stderr == stopped.hotenv("status").stderr


def test_stopped_server_is_no_session(stopped):
    """`run --optional` runs its command while the server is stopped."""
    done = stopped.hotenv("run", "--optional", "-q", "--", "echo", "ran")
    assert _core_outcome(done) == (0, b"ran\n", b"")


def test_slow_server_is_waited_for(project):
    """`run` waits for a server that takes longer than a moment, and is not stopped."""
    project.program = _core_program(
        """
        import selectors, time
        select = selectors.DefaultSelector.select
        def slow_select(selector, timeout=None):
            events = select(selector, timeout)
            time.sleep(0.5)
            return events
        selectors.DefaultSelector.select = slow_select
        """
    )
    project.serve()
    project.program = INSTALLED
    assert _core_outcome(project.run("printenv", "A")) == (0, b"1\n", b"")


# -- an answer that is cut --

_CORE_CUT_ANSWERS = [
    b"{",
    b'{"env":{',
    b'{"env":{"A":"un',
    b'{"env":{"A":"1"}',
    b'{"env":{"A":"1"}}',
]


@pytest.mark.parametrize("cut", _CORE_CUT_ANSWERS, ids=short)
def test_cut_answer_is_a_session_that_has_ended(project, answerer, cut):
    """An answer that the end of the session cuts is 4, as any session that has just ended."""
    done = project.hotenv("run", "--socket", answerer(cut).path, "--", "true")
    assert "has just ended" in refusal(done, 4)


@pytest.mark.parametrize("cut", _CORE_CUT_ANSWERS, ids=short)
def test_cut_answer_is_optional(project, answerer, cut):
    """`run --optional` runs its command where the end of the session cuts the answer."""
    path = answerer(cut).path
    done = project.hotenv("run", "--optional", "-q", "--socket", path, "--", "echo", "ran")
    assert _core_outcome(done) == (0, b"ran\n", b"")


@pytest.mark.parametrize("cut", _CORE_CUT_ANSWERS, ids=short)
def test_cut_answer_is_not_shown(project, answerer, cut):
    """Invariant 1: an error about an answer that was cut shows nothing of the answer."""
    done = project.hotenv("dump", "--socket", answerer(cut[:-1] + b"s3cr3t").path)
    assert b"s3cr3t" not in done.stdout + done.stderr


def test_answer_of_a_killed_server_is_4(project):
    """A server that is killed while it answers was a session that has ended: 4."""
    server = project.serve(b"A=" + b"x" * (8 << 20) + b"\n")
    project.program = _core_program(
        f"""
        import _socket, os, time
        class Slow(_socket.socket):
            def recv(self, size, *flags):
                piece = super().recv(1000, *flags)
                os.kill({server.pid}, signal.SIGKILL)
                time.sleep(0.01)
                return piece
        _socket.socket = Slow
        """
    )
    done = project.hotenv("dump")
    assert "has just ended" in refusal(done, 4)


# ==== a session that is short of something ========================================================
# Memory, descriptors and disks that run short at a start, and while a session serves.


@contextlib.contextmanager
def _core_crowd(project, clients, piece):
    """Connect so many clients, which send a piece of a request each and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, clients + 500)
    if wanted > hard:
        pytest.skip("needs a limit of %d descriptors" % wanted)
    path = project.socket_path()
    with contextlib.ExitStack() as ends:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        ends.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(clients):
            client = ends.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(1)
            with contextlib.suppress(OSError):
                client.connect(path)
                client.sendall(piece)
        yield


def _core_limit_memory(process, more):
    """Let a process take so many bytes of memory more than it has: `ulimit -v`."""
    status = Path("/proc/%d/status" % process.pid).read_text()
    size = int(re.search(r"VmSize:\s+(\d+) kB", status).group(1)) << 10
    resource.prlimit(process.pid, resource.RLIMIT_AS, (size + more, size + more))


@only_linux
@pytest.mark.parametrize(
    "clients, size, more",
    [
        pytest.param(100, 200 << 10, 100 << 10, id="large requests"),
        pytest.param(1500, 1500, 100 << 10, id="requests of a page"),
        pytest.param(3500, 1, 100 << 10, id="a byte each"),
        pytest.param(3500, 100, 400 << 10, id="many small requests"),
    ],
)
def test_short_memory_ends_no_session(project, clients, size, more):
    """Unfinished requests end no session whose memory is short."""
    server = project.serve(b"A=1\n", "-q")
    assert project.ask() == b'{"env":{"A":"1"}}\n'
    _core_limit_memory(server, more)
    with _core_crowd(project, clients, b"x" * size):
        assert server.poll() is None, project.log()


@only_linux
@pytest.mark.parametrize("more", [0, 100 << 10, 400 << 10])
def test_session_serves_again_after_a_crowd(project, more):
    """A session whose memory was short serves each client again when the crowd has gone."""
    server = project.serve(b"A=1\n", "-q")
    assert project.ask() == b'{"env":{"A":"1"}}\n'
    _core_limit_memory(server, more)
    for _ in range(3):
        with _core_crowd(project, 3500, b"x"):
            pass
        assert server.poll() is None, project.log()

        # The first request may be the one that finds no memory, until the others are forgotten.
        until(lambda: project.ask() == b'{"env":{"A":"1"}}\n', "an answer")
        answers = [project.ask() for _ in range(20)]
        assert answers == [b'{"env":{"A":"1"}}\n'] * 20


@only_linux
def test_short_memory_loses_no_other_client(project):
    """A client that takes more memory than there is goes alone: one beside it is served."""
    server = project.serve(b"A=1\n", "-q")
    assert project.ask() == b'{"env":{"A":"1"}}\n'
    _core_limit_memory(server, more=100 << 10)
    with project.connect() as waiting:
        waiting.sendall(DUMP[:-1])
        assert project.ask(b"{}\n").startswith(BAD_REQUEST)
        for _ in range(10):
            with project.connect() as large, contextlib.suppress(OSError):
                large.sendall(b"x" * (250 << 10))
        waiting.sendall(b"\n")
        assert answer(waiting) == b'{"env":{"A":"1"}}\n'


# -- a start in the background --

_CORE_BROKEN_SERVERS = [
    pytest.param(
        """
        import selectors
        def refuse(*args, **options):
            raise OSError(24, "Too many open files")
        selectors.DefaultSelector = refuse
        """,
        id="no selector",
    ),
    pytest.param(
        """
        import selectors
        def refuse(*args, **options):
            raise OSError(28, "No space left on device")
        selectors.DefaultSelector.register = refuse
        """,
        id="nothing can be watched",
    ),
    pytest.param(
        """
        import selectors
        def refuse(*args, **options):
            raise MemoryError
        selectors.DefaultSelector = refuse
        """,
        id="no memory",
    ),
    pytest.param(_CORE_WITHOUT.format(names=["selectors"]), id="no module selectors"),
]


@pytest.mark.parametrize("statements", _CORE_BROKEN_SERVERS)
def test_background_tells_what_fails(project, statements):
    """`serve --background` fails, and says why, where the session fails after it was published."""
    project.program = _core_program(statements)
    refusal(project.hotenv("serve", "--background", input=b"A=1\n"), 8)


@pytest.mark.parametrize("statements", _CORE_BROKEN_SERVERS)
def test_failed_background_start_leaves_nothing(project, statements):
    """Invariant 2: a start in the background that fails late leaves no file."""
    project.program = _core_program(statements)
    project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    assert project.files() == []


@only_linux
@pytest.mark.parametrize("limit", range(5, 20))
def test_background_start_short_of_descriptors(project, limit):
    """With few descriptors a start in the background fails and leaves nothing, or serves."""
    plain = project.program
    done = project.hotenv(
        "serve", "--background", "--log", "log", input=b"A=1\n",
        preexec_fn=limits(NOFILE=(limit, limit)),
    )
    project.program = plain
    if done.returncode:
        assert project.files() == []
    else:
        assert project.dump() == {b"A": b"1"}


@pytest.fixture
def many_open(project):
    """A project whose programs inherit more than 1,024 open descriptors."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 2000:
        pytest.skip("needs a limit of 2,000 descriptors")
    code = """
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (2000, %d))
        for _ in range(1100):
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
        os.execv(sys.argv[1], sys.argv[1:])
    """
    project.program = [sys.executable, "-c", textwrap.dedent(code % hard), *project.program]
    return project


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--background"],
        ["run", "--", "true"],
        ["run", "--mask", "--", "true"],
        ["dump"],
        ["status"],
        ["stop"],
    ],
    ids=" ".join,
)
def test_many_open_descriptors_hinder_nothing(many_open, words):
    """A command works whose caller hands over more than 1,024 open descriptors."""
    if words[0] != "serve":
        many_open.serve()
    done = many_open.hotenv(*words, input=b"A=1\n")
    assert done.returncode == 0, done.stderr


def test_many_open_descriptors_hinder_no_prompt(many_open):
    """`serve --prompt` asks on a terminal whose descriptor has a number beyond 1,023."""
    words = many_open.command(["serve", "--prompt", "--background"])
    lines = 'printf "A=?\\n" | "$@"; echo status=$?.'
    shell = ["sh", "-c", lines, "sh", *words]
    with on_terminal(*shell, cwd=many_open.dir, env=many_open.env) as (_, terminal):
        seen = read_until(terminal, rb"A: |status=")
        assert b"internal error" not in seen
        os.write(terminal, b"typed\n")
        read_until(terminal, rb"status=0\.")
    assert many_open.dump() == {b"A": b"typed"}


# -- the log --

_CORE_NO_MARKER = """
    import errno, os
    def refuse(*paths, **options):
        raise OSError(errno.ENOSPC, "No space left on device")
    os.link = os.rename = refuse
"""


def test_refused_start_leaves_no_log(project):
    """Invariant 2: a start that cannot write its marker leaves no log behind."""
    project.program = _core_program(_CORE_NO_MARKER)
    done = project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    refusal(done, 8)
    assert not (project.dir / "log").exists()


def test_refused_start_keeps_an_old_log(project):
    """A start that is refused leaves a log alone that was there before."""
    (project.dir / "log").write_text("precious\n")
    project.program = _core_program(_CORE_NO_MARKER)
    refusal(project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n"), 8)
    assert (project.dir / "log").read_text() == "precious\n"


def test_refused_start_keeps_the_log_of_another(project):
    """A start that is refused leaves a log that it made, and into which another session logs."""
    project.program = _core_program(
        """
        import os, time
        real = os.link
        def link(*paths, **options):
            open("waits", "x").close()
            while not os.path.exists("go"):
                time.sleep(0.01)
            return real(*paths, **options)
        os.link = link
        """
    )
    late = project.start("serve", "--background", "--log", "log", stdin=PIPE)
    late.stdin.write(b"A=late\n")
    late.stdin.close()
    until((project.dir / "waits").exists, "the first start")

    project.program = INSTALLED
    elsewhere = project.dir / "elsewhere"
    elsewhere.mkdir()
    done = project.hotenv(
        "serve", "--background", "--log", "../log", input=b"A=1\n", cwd=str(elsewhere)
    )
    assert done.returncode == 0, done.stderr

    project.points_at(project.root / "nothing")
    (project.dir / "go").touch()
    assert late.wait(PATIENCE) == 10
    assert project.run("true", cwd=str(elsewhere)).returncode == 0
    assert len((project.dir / "log").read_text().splitlines()) == 1


def _core_exists(pid):
    """Return whether there is a process of this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_session_that_breaks_keeps_its_log(project):
    """A session that ends by a defect leaves its log, which tells of its life."""
    project.program = _core_program(
        """
        import selectors
        select = selectors.DefaultSelector.select
        def break_later(selector, timeout=None):
            import os
            if os.path.exists(%r):
                raise RuntimeError
            return select(selector, timeout)
        selectors.DefaultSelector.select = break_later
        """
        % str(project.dir / "break")
    )
    project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n")
    project.run("true")
    with project.connect() as client:
        server = peer_pid(client)
        (project.dir / "break").touch()
        client.sendall(b"{}\n")
        until(lambda: not _core_exists(server), "the end")
    assert LOG_LINE.match((project.dir / "log").read_text())


# ==== signals and terminals =======================================================================
# What a signal to the caller of a start means, and what a terminal may do to a log.


def _core_is_live(project):
    """Return whether the project has a session that answers."""
    return project.hotenv("status", "-q").returncode == 0


def _core_background(project):
    """Start `serve --background`, and return its process at once."""
    process = project.start("serve", "--background", stdin=PIPE, start_new_session=True)
    process.stdin.write(b"A=1\n")
    process.stdin.close()
    return process


_CORE_ENDING_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.mark.parametrize("signum", _CORE_ENDING_SIGNALS)
def test_signal_at_the_end_of_a_background_start(project, signum):
    """A signal that comes after the report changes no exit status: the session lives."""
    project.program = _core_program(
        """
        import atexit, time
        def slow_end():
            open("ending", "x").close()
            time.sleep(0.3)
        atexit.register(slow_end)  # what is registered later runs earlier
        """
    )
    process = _core_background(project)
    until((project.dir / "ending").exists, "the end of the caller")
    process.send_signal(signum)
    assert process.wait(PATIENCE) == 0
    assert _core_is_live(project)


@pytest.mark.parametrize("signum", _CORE_ENDING_SIGNALS)
def test_signal_before_the_report_ends_both(project, signum):
    """A signal to the caller before the report ends the caller by it, and the session, too."""
    project.program = _core_program(
        """
        import os
        real = os.link
        def link(*paths, **options):
            # The session is published when the signal has come, and not before.
            ending = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
            signal.pthread_sigmask(signal.SIG_BLOCK, ending)
            open("waits", "x").close()
            os.kill(os.getpid(), signal.sigwait(ending))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
            return real(*paths, **options)
        os.link = link
        """
    )
    process = _core_background(project)
    until((project.dir / "waits").exists, "the marker")
    process.send_signal(signum)
    assert process.wait(PATIENCE) == -signum
    (project.dir / "waits").unlink()
    assert project.files() in ([], ["r/hotenv"])


def test_signal_at_any_moment_leaves_the_truth(project):
    """Whenever a signal comes, `serve --background` tells truly whether there is a session."""
    random.seed(SEED)
    began = time.monotonic()
    assert _core_background(project).wait(PATIENCE) == 0
    usual = time.monotonic() - began
    project.hotenv("stop")

    for _ in range(amount(400)):
        process = _core_background(project)
        time.sleep(random.uniform(0.3, 1.3) * usual)
        process.send_signal(random.choice(_CORE_ENDING_SIGNALS))
        status = process.wait(PATIENCE)
        assert (status == 0) == _core_is_live(project)
        project.hotenv("stop", "--all")
        assert project.files() in ([], ["r/hotenv"])


# -- stty tostop --

_CORE_TOSTOP = [
    pytest.param("", id="plain"),
    pytest.param(_CORE_WITHOUT.format(names=["ctypes", "_ctypes"]), id="without ctypes"),
]


@contextlib.contextmanager
def _core_behind_tostop(project, statements):
    """Run `serve &` in a shell on a terminal that stops whoever writes from the background."""
    (project.root / "input").write_bytes(b"A=1\n")
    words = " ".join(map(shlex.quote, [*_core_program(statements), "serve"]))
    lines = "stty tostop; set -m; %s < %s & cat" % (words, project.root / "input")
    with on_terminal("sh", "-c", lines, cwd=project.dir, env=project.env) as (pid, terminal):
        yield terminal
        with contextlib.suppress(OSError), project.connect() as client:
            os.kill(peer_pid(client), signal.SIGKILL)


@pytest.mark.parametrize("statements", _CORE_TOSTOP)
def test_log_line_never_stops_a_session(project, statements):
    """`serve &` under `stty tostop` serves on after the first line of its log."""
    with _core_behind_tostop(project, statements) as terminal:
        until(project.marker.exists, "the marker")
        assert project.run("printenv", "A").stdout == b"1\n"
        assert project.run("printenv", "A").stdout == b"1\n"
        read_until(terminal, rb"run printenv\r?\n(.*\n)*.*run printenv")


# ==== a masked command ============================================================================
# `run --mask` prepares all before its command begins, and is one process with it from outside.


@pytest.mark.parametrize("module", ["select", "base64", "bisect", "re"])
def test_masked_command_does_not_begin_in_vain(project, module):
    """`run --mask` that lacks a module is refused before its command has begun."""
    project.serve(b"A=long enough\n")
    project.program = _core_without(module)
    touch = project.dir / "began"
    done = project.hotenv("run", "--mask", "--", "touch", str(touch))
    assert re.search("lacks .*module", refusal(done, 8))
    assert not touch.exists()


@only_linux
def test_masked_command_short_of_descriptors(project, session):
    """With few descriptors `run --mask` begins no command, or carries all that it prints."""
    seen = set()
    for limit in range(4, 20):
        done = project.hotenv(
            "run", "--mask", "--", "sh", "-c", "echo began; echo $B",
            cwd=str(session.dir), env=session.env, preexec_fn=limits(NOFILE=(limit, limit)),
        )
        seen.add((done.returncode, done.stdout))
    assert seen == {(8, b""), (0, b"began\n[hidden:B]\n")}


@only_linux
def test_masked_run_hardens_before_it_asks(project):
    """`run --mask` can leave no core, and cannot be traced, when the values reach it."""
    become_stranger = None
    if ROOT:
        # Root's own processes could be read by root in any case.
        become_stranger = project.for_strangers(STRANGER)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]

    def before():
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        if become_stranger:
            become_stranger()

    path = str(project.root / "s.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen()
        listener.settimeout(PATIENCE)
        asking = project.start(
            "run", "--mask", "--socket", path, "--peer-uid", str(os.geteuid()), "--", "true",
            preexec_fn=before, stdout=PIPE,
        )
        client = listener.accept()[0]
        with client:
            client.recv(1000)
            core = re.search(
                r"Max core file size +(\S+)", Path("/proc/%d/limits" % asking.pid).read_text()
            )
            owner = os.stat("/proc/%d/environ" % asking.pid).st_uid
            client.sendall(b'{"env":{}}\n')
    assert asking.wait(PATIENCE) == 0
    assert core.group(1) == "0"
    assert owner == 0  # of a process that its user may not read


def test_masked_command_has_its_callers_core_limit(session):
    """The command of `run --mask` has the limit of cores that its caller has."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("no core is allowed here")
    done = session.hotenv(
        "run", "--mask", "--", "sh", "-c", "ulimit -c; ulimit -Hc",
        preexec_fn=limits(CORE=(hard, hard)),
    )
    words = done.stdout.split()
    assert words[0] == words[1]
    assert words[0] != b"0"


@pytest.mark.parametrize("options", [[], ["--mask"]], ids=["exec", "mask"])
@pytest.mark.parametrize("signum", [signal.SIGPIPE, signal.SIGXFSZ])
def test_signal_that_python_ignores_ends_a_command(project, options, signum):
    """SIGPIPE and SIGXFSZ to the pid of a command end the command, masked or not."""
    project.serve()
    process = project.start(
        "run", *options, "--", "sh", "-c", "echo ready; exec sleep 100", stdout=PIPE
    )
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        assert ended(process, signum) == -signum


@pytest.mark.parametrize("signum", [signal.SIGPIPE, signal.SIGXFSZ])
def test_masked_command_hears_what_python_ignores(project, signum):
    """A masked command that handles SIGPIPE or SIGXFSZ hears the one sent to hotenv's pid."""
    project.serve()
    code = (
        "import signal, sys, time\n"
        "signal.signal(%d, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(100)" % signum
    )
    process = project.start("run", "--mask", "--", sys.executable, "-c", code, stdout=PIPE)
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        assert ended(process, signum) == 7


# ==== filling =====================================================================================
# Where a command finds no session, a text that asks a store starts one, once for all who wait.


class _FillStore:
    """A program that stands for a store of secrets, and notes each time that it is asked.

    - `command`: what --fill takes to ask it.
    - `asked`: a file with the directory in which it ran, a line for each time.
    """

    def __init__(self, project, prints="A=filled\n", then="true", waits=False):
        self.asked = project.root / "asked"
        self._released = project.root / "released"
        text = project.root / "store.text"
        text.write_text(prints)
        wait = ""
        if waits:
            wait = f"for i in $(seq 600); do [ -e {self._released} ] && break; sleep 0.05; done"
        path = project.root / "store"
        executable(path, f'#!/bin/sh\necho "$PWD" >> {self.asked}\n{wait}\ncat {text}\n{then}\n')
        self.command = str(path)

    def places(self):
        """Return the directory of each time that the store was asked."""
        if not self.asked.exists():
            return []
        return self.asked.read_text().splitlines()

    def times(self):
        """Return how often the store was asked."""
        return len(self.places())

    def release(self):
        """Let a store that waits go on."""
        self._released.touch()


def _fill_run(project, store, *options, **more):
    """Return what `run` prints of the variable A, with this store, where that must succeed."""
    words = ["run", *options, "--fill", store.command, "--", "printenv", "A"]
    done = called(project, *words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


# A command that needs a session, its stdin, and what it prints with A=filled-1 in the session.
_FILL_COMMANDS = [
    pytest.param(["run"], ["--", "printenv", "A"], b"", b"filled-1\n", id="run"),
    pytest.param(["run", "--only", "A"], ["--", "printenv", "A"], b"", b"filled-1\n", id="only"),
    pytest.param(["dump"], [], b"", b"A=filled-1\n", id="dump"),
    pytest.param(["mask"], [], b"<filled-1>\n", b"<[hidden:A]>\n", id="mask"),
]


@pytest.mark.parametrize("words, rest, text, printed", _FILL_COMMANDS)
def test_fill_starts_a_session(project, words, rest, text, printed):
    """With --fill a command that finds no session starts one with what the text prints."""
    done = called(project, *words, "--fill", "echo A=filled-1", *rest, input=text)
    assert done.stderr == b""
    assert done.stdout == printed
    assert project.dump() == {b"A": b"filled-1"}


@pytest.mark.parametrize("words, rest, text, printed", _FILL_COMMANDS)
def test_fill_may_stand_in_a_variable(project, words, rest, text, printed):
    """HOTENV_FILL is a text for every command."""
    done = called(project, *words, *rest, input=text, env={"HOTENV_FILL": "echo A=filled-1"})
    assert done.stderr == b""
    assert done.stdout == printed


def test_fill_option_wins_over_the_variable(project):
    """--fill wins over HOTENV_FILL."""
    env = {"HOTENV_FILL": "echo A=variable"}
    done = called(project, "run", "--fill", "echo A=option", "--", "printenv", "A", env=env)
    assert done.stdout == b"option\n"


def test_empty_fill_option_wins_over_the_variable(project):
    """An empty --fill asks nobody, whatever HOTENV_FILL says."""
    env = {"HOTENV_FILL": "echo A=variable"}
    refusal(called(project, "run", "--fill", "", "--", "true", env=env), 3)


def test_empty_fill_variable_is_unset(project):
    """An empty HOTENV_FILL asks nobody."""
    refusal(called(project, "run", "--", "true", env={"HOTENV_FILL": ""}), 3)


def test_filled_session_stays(project):
    """The commands that come later ask the session, and not the store."""
    store = _FillStore(project)
    for _ in range(3):
        assert _fill_run(project, store) == b"filled\n"
    assert store.times() == 1


def test_live_session_is_not_filled(project):
    """A session that lives is used as it is."""
    project.serve(b"A=live\n")
    store = _FillStore(project)
    assert _fill_run(project, store) == b"live\n"
    assert store.times() == 0


def test_fill_replaces_a_dead_session(project):
    """A session that was killed is replaced, and its socket goes."""
    ended(project.serve(b"A=old\n"), signal.SIGKILL)
    old_socket = project.socket_path()
    assert _fill_run(project, _FillStore(project)) == b"filled\n"
    assert not os.path.exists(old_socket)


def test_filled_project_has_a_marker_and_a_session(project):
    """A filled session leaves the files of a session, and none of its start."""
    _fill_run(project, _FillStore(project))
    session_id = os.path.basename(project.socket_path())[: -len(".sock")]
    files = ["p/.hotenv", "r/hotenv", f"r/hotenv/{session_id}.json", f"r/hotenv/{session_id}.sock"]
    assert project.files() == files


# What stands in place of a marker and is not believed, as shell lines in the project directory, and
# the exit code of a command that finds it.
_FILL_UNBELIEVABLE = [
    pytest.param("echo nonsense > .hotenv", 9, id="damaged"),
    pytest.param("mkdir .hotenv", 8, id="directory"),
    pytest.param("echo socket=/x > real; ln -s real .hotenv", 8, id="link"),
    pytest.param(
        "echo socket=/x > .hotenv; chown %d .hotenv" % STRANGER,
        8,
        marks=only_root,
        id="a stranger's",
    ),
]


@pytest.mark.parametrize("lines, code", _FILL_UNBELIEVABLE)
def test_unbelievable_marker_is_not_replaced(project, lines, code):
    """A marker that is not believed is refused as without --fill, and the store is not asked."""
    project.sh("cd p; " + lines)
    before = project.files()
    store = _FillStore(project)
    refusal(called(project, "run", "--fill", store.command, "--", "true"), code)
    assert store.times() == 0
    assert project.files() == before


def test_stopped_session_is_not_replaced(project):
    """A session whose process is stopped is refused with 4, and the store is not asked."""
    server = project.serve()
    os.kill(server.pid, signal.SIGSTOP)
    store = _FillStore(project)
    refusal(called(project, "run", "--fill", store.command, "--", "true"), 4)
    assert store.times() == 0


def test_another_programs_answer_is_not_replaced(project, answerer):
    """Where something answers that is no session, the store is not asked."""
    project.points_at(answerer(b"220 mail.example\r\n").path)
    store = _FillStore(project)
    refusal(called(project, "run", "--fill", store.command, "--", "true"), 9)
    assert store.times() == 0


def test_fill_text_is_run_by_sh(project):
    """The text may be whatever `sh -c` takes."""
    text = "for name in A B; do echo $name=$((20 + 3)); done | tr 3 4"
    assert called(project, "dump", "--fill", text).stdout == b"A=24\nB=24\n"


def test_fill_input_is_dotenv(project):
    """What the text prints is read as `serve` reads it, with references to the environment."""
    text = "echo \"A='x y'\"; echo 'B=${A}-${HOST:-none}' '# note'"
    assert called(project, "dump", "--fill", text).stdout == b"A=x y\nB=x y-none\n"


def test_fill_text_writes_to_stderr(project):
    """What the text writes to stderr reaches the caller's."""
    done = called(project, "run", "--fill", "echo unlocking >&2; echo A=1", "--", "true")
    assert done.returncode == 0
    assert done.stderr == b"unlocking\n"


def test_fill_text_leaves_stdin_to_the_command(project):
    """A pipe on stdin is the command's, and the text reads nothing of it."""
    done = called(project, "run", "--fill", "cat; echo A=1", "--", "cat", input=b"for the command")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"for the command"


def test_fill_text_asks_on_the_terminal(project):
    """The text can ask on the caller's terminal, as a store does for a password."""
    text = "printf 'Password: ' >&2; read -r answer; echo A=$answer"
    command = project.command(["run", "--fill", text, "--", "printenv", "A"])
    with on_terminal(*command, cwd=project.dir, env=project.env) as (_, terminal):
        seen = read_until(terminal, b"Password: ")
        os.write(terminal, b"typed\n")
        assert read_until(terminal, None, seen).endswith(b"typed\r\n")
    assert project.dump() == {b"A": b"typed"}


# Shell lines in the project directory, and where below it the session of a command in a/b begins.
_FILL_PLACES = [
    pytest.param("true", "a/b", id="the current directory"),
    pytest.param("mkdir .git", "", id="a repository"),
    pytest.param("mkdir .git a/.git", "a", id="the nearest repository"),
    pytest.param("echo gitdir: /x > a/.git", "a", id="a worktree"),
    pytest.param("mkdir a/.git; echo socket=/no/such.sock > .hotenv", "", id="a dead marker"),
    pytest.param("mkdir .git; echo socket=/no/such.sock > a/.hotenv", "a", id="a dead one below"),
]


@pytest.mark.parametrize("lines, place", _FILL_PLACES)
def test_fill_happens_in_the_project_directory(project, lines, place):
    """The text runs, and the session begins, where the dead marker is; else the repository."""
    project.sh("cd p; mkdir -p a/b; " + lines)
    store = _FillStore(project)
    assert _fill_run(project, store, cwd=project.dir / "a" / "b") == b"filled\n"
    expected = project.dir / place
    assert store.places() == [str(expected)]
    assert (expected / ".hotenv").read_bytes() != b"socket=/no/such.sock\n"
    assert len(list(project.dir.rglob(".hotenv"))) == 1


def test_command_stays_where_it_was_called(project):
    """The command runs in the current directory, wherever the session began."""
    project.sh("cd p; mkdir -p .git a/b")
    below = project.dir / "a" / "b"
    done = called(project, "run", "--fill", "echo A=1", "--", "pwd", cwd=below)
    assert done.stdout.decode() == "%s\n" % below


def test_filled_command_keeps_its_status(project):
    """A command ends with its own exit status also where its session was just filled."""
    done = called(project, "run", "--fill", "echo A=1", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7


# -- many at once ----------------------------------------------------------------------------------

_FILL_WAITING = rb"waiting for another command[^\n]*\n"


def _fill_in_background(project, store, **options):
    """Start a `run` with this store, and wait until the store is being asked."""
    words = ["run", "--fill", store.command, "--", "printenv", "A"]
    process = project.start(*words, stdin=DEVNULL, stdout=PIPE, start_new_session=True, **options)
    until(store.times, "a store that is asked")
    return process


@contextlib.contextmanager
def _fill_waiting(project, text):
    """Start a `run` on a terminal that must wait for another one: its pid, terminal, and words."""
    command = project.command(["run", "--fill", text, "--", "printenv", "A"])
    with on_terminal(*command, cwd=project.dir, env=project.env) as (pid, terminal):
        yield pid, terminal, read_until(terminal, _FILL_WAITING)


def test_ten_at_once_ask_once(project):
    """Of ten commands that start at once, one asks the store, and all get the values."""
    store = _FillStore(project, waits=True)
    reader, writer = pty.openpty()
    words = ["run", "--fill", store.command, "--", "printenv", "A"]
    started = []
    for _ in range(10):
        started.append(project.start(*words, stdin=DEVNULL, stdout=PIPE, stderr=writer))
    os.close(writer)

    # The nine others wait now, as their words on the terminal tell.
    read_until(reader, rb"(?s)(?:waiting for another.*?){9}")
    store.release()
    printed = [process.communicate(timeout=PATIENCE)[0] for process in started]
    os.close(reader)
    assert printed == [b"filled\n"] * 10
    assert store.times() == 1


# Lines that make each look at an open file take longer than a command waits between two looks.
_FILL_SLOW_LOOKS = """
import os, time
looked = os.fstat
def fstat(descriptor):
    time.sleep(0.3)
    return looked(descriptor)
os.fstat = fstat
"""


def test_lock_may_go_while_it_is_opened(project):
    """Who opens the lock at the moment in which the other removes it goes on as ever."""
    store = _FillStore(project, waits=True)
    first = _fill_in_background(project, store)
    start = project.program[-1]
    slow = start.replace("import hotenv;", f"exec({_FILL_SLOW_LOOKS!r}); import hotenv;")
    project.program = [*project.program[:-1], slow]
    with _fill_waiting(project, "echo A=second") as (_, terminal, seen):
        store.release()
        assert read_until(terminal, None, seen).endswith(b"filled\r\n")
    first.wait(PATIENCE)


def test_waiting_is_told_once(project):
    """Who waits for another's store is told so on a terminal, by one line."""
    store = _FillStore(project, waits=True)
    first = _fill_in_background(project, store)
    with _fill_waiting(project, "echo A=second") as (_, terminal, seen):
        for _ in range(3):
            called(project, "status")
        store.release()
        seen = read_until(terminal, None, seen)
    assert len(re.findall(_FILL_WAITING, seen)) == 1
    assert seen.endswith(b"filled\r\n")
    first.wait(PATIENCE)


def test_waiting_is_told_on_a_terminal_alone(project):
    """Where stderr is no terminal, nothing is said of waiting."""
    store = _FillStore(project, waits=True)
    first = _fill_in_background(project, store)
    words = ["run", "--fill", "echo A=second", "--", "printenv", "A"]
    quiet = project.start(*words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    with _fill_waiting(project, "echo A=third"):  # it says so after the one before could have
        store.release()
        said = quiet.communicate(timeout=PATIENCE)
    assert said == (b"filled\n", b"")
    first.wait(PATIENCE)


def test_ctrl_c_ends_the_waiting(project):
    """Ctrl-C ends a command that waits, at once, and leaves the one that asks alone."""
    store = _FillStore(project, waits=True)
    first = _fill_in_background(project, store)
    with _fill_waiting(project, "echo A=second") as (pid, terminal, _):
        os.write(terminal, b"\x03")
        status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGINT
    assert first.poll() is None
    store.release()
    assert first.communicate(timeout=PATIENCE)[0] == b"filled\n"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_store_frees_the_next(project, signum):
    """When a command that asks a store is ended by a signal, the one that waits asks its own."""
    store = _FillStore(project, waits=True)
    first = _fill_in_background(project, store)
    with _fill_waiting(project, "echo A=second") as (_, terminal, seen):
        os.killpg(first.pid, signum)
        assert read_until(terminal, None, seen).endswith(b"second\r\n")
    assert first.wait(PATIENCE) == -signum
    assert project.dump() == {b"A": b"second"}


def test_failed_store_frees_the_next(project):
    """When a store fails, the command that waits asks its own."""
    store = _FillStore(project, then="exit 5", waits=True)
    first = _fill_in_background(project, store)
    with _fill_waiting(project, "echo A=second") as (_, terminal, seen):
        store.release()
        assert read_until(terminal, None, seen).endswith(b"second\r\n")
    assert first.wait(PATIENCE) == 3


def test_ctrl_c_ends_a_store(project):
    """Ctrl-C ends a store that is being asked, and the command; there is no session."""
    store = _FillStore(project, waits=True)
    command = project.command(["run", "--fill", store.command, "--", "printenv", "A"])
    with on_terminal(*command, cwd=project.dir, env=project.env) as (pid, terminal):
        until(store.times, "a store that is asked")
        os.write(terminal, b"\x03")
        status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGINT
    assert project.files() == ["r/hotenv"]


@pytest.mark.parametrize("options, place", [(["--name", "b"], "p"), ([], "q")], ids=["name", "dir"])
def test_other_session_does_not_wait(project, options, place):
    """A session of another name, or of another directory, is filled meanwhile."""
    (project.root / "q").mkdir()
    store = _FillStore(project, waits=True)
    first = _fill_in_background(project, store)
    words = ["run", *options, "--fill", "echo A=other", "--", "printenv", "A"]
    done = called(project, *words, cwd=project.root / place)
    assert done.stdout == b"other\n"
    assert first.poll() is None
    store.release()
    assert first.communicate(timeout=PATIENCE)[0] == b"filled\n"


# -- what goes wrong -------------------------------------------------------------------------------

# A text that gives no session, and what the error tells of it.
_FILL_FAILURES = [
    ("exit 5", r"status 5\b"),
    ("echo A=s3cr3t; exit 1", r"status 1\b"),
    ("no-such-store 2> /dev/null", r"status 127\b"),
    ("kill -9 $$", r"signal 9\b"),
    ("true", "nothing"),
    ("echo; echo ' '", "nothing"),
]


@pytest.mark.parametrize("text, telling", _FILL_FAILURES, ids=short)
def test_failed_fill_without_a_session_is_3(project, text, telling):
    """Where there is no session, a fill that fails is told, with 3, and starts none."""
    message = refusal(called(project, "run", "--fill", text, "--", "true"), 3)
    assert re.search(telling, message)
    assert "s3cr3t" not in message
    assert project.files() == ["r/hotenv"]


@pytest.mark.parametrize("text, telling", _FILL_FAILURES, ids=short)
def test_failed_fill_of_a_dead_session_is_4(project, text, telling):
    """Where the session is dead, a fill that fails is told, with 4, and leaves all as it was."""
    ended(project.serve(), signal.SIGKILL)
    before = project.files()
    message = refusal(called(project, "run", "--fill", text, "--", "true"), 4)
    assert re.search(telling, message)
    assert project.files() == before


def test_malformed_fill_is_7(project):
    """A fill that prints what `serve` refuses is told with 7 and its place, and starts none."""
    text = "echo A=1; echo s3cr3t words"
    message = refusal(called(project, "run", "--fill", text, "--", "true"), 7)
    assert ":2:" in message
    assert "s3cr3t" not in message
    assert project.files() == ["r/hotenv"]


def test_malformed_fill_is_not_stdins(project):
    """The place of a mistake is one of what the fill command printed, and not of stdin."""
    message = refusal(called(project, "run", "--fill", "echo {", "--", "true"), 7)
    assert "<stdin>" not in message
    assert "fill" in message


def test_fill_that_prints_json_is_told_how(project):
    """A fill that prints JSON is told that stores can print NAME=value lines, and how."""
    message = refusal(called(project, "run", "--fill", "echo '{\"A\": \"1\"}'", "--", "true"), 7)
    assert "JSON" in message
    assert "NAME=value lines if asked" in message
    assert "serve --format" not in message


def test_malformed_fill_leaves_a_dead_session(project):
    """A fill that prints what `serve` refuses leaves the files of a dead session as they were."""
    ended(project.serve(), signal.SIGKILL)
    before = project.files()
    refusal(called(project, "run", "--fill", "echo nonsense", "--", "true"), 7)
    assert project.files() == before


def test_endless_fill_is_7(project):
    """A fill that prints more than `serve` reads is told with 7, and ended."""
    text = "head -c 70000000 /dev/zero; exec sleep 1000"
    message = refusal(called(project, "run", "--fill", text, "--", "true"), 7)
    assert "64 MiB" in message


def test_optional_run_goes_on_after_a_failed_fill(project):
    """With --optional the command runs without a session when the fill fails, and that is told."""
    done = called(project, "run", "--optional", "--fill", "exit 5", "--", "echo", "ran")
    assert done.returncode == 0
    assert done.stdout == b"ran\n"
    assert re.fullmatch(rb"hotenv: [^\n]*status 5\b[^\n]*\n", done.stderr)


def test_fill_never_fills_itself(project):
    """A text that runs hotenv finds no HOTENV_FILL: it would wait for itself."""
    inner = shlex.join(project.command(["dump"]))
    env = {"HOTENV_FILL": inner + " 2> /dev/null"}
    assert re.search(r"status 3\b", refusal(project.hotenv("dump", env=env), 3))


@pytest.mark.parametrize("text, code", [("echo A=1", 0), ("echo A=1; exit 5", 3)])
def test_fill_sees_statuses_with_ignored_sigchld(project, text, code):
    """A caller that ignores SIGCHLD changes no outcome of a fill."""

    def ignore_children():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    done = project.hotenv("run", "--fill", text, "--", "true", preexec_fn=ignore_children)
    assert done.returncode == code, done.stderr


def test_filled_value_is_in_no_file(project):
    """Invariant 1: no file of the project or of the runtime directory has a filled value."""
    value = "s3cr3t-%d" % random.randrange(10 ** 9)
    _fill_run(project, _FillStore(project, prints=f"A={value}\n"))
    for name in project.files():
        path = project.root / name
        if path.is_file():
            assert value not in path.read_text(), name


@only_linux
def test_filled_session_is_closed(project):
    """Invariant 12: the server of a filled session is closed as one that `serve` starts."""
    _fill_run(project, _FillStore(project))
    told = called(project, "status", "--json").stdout.decode()
    assert json.loads(told)["memory_closed"] is True
    pid = project.server_pid()
    assert Path("/proc/%d/comm" % pid).read_text() == "hotenv\n"
    if not ROOT:
        with pytest.raises(PermissionError):
            Path("/proc/%d/environ" % pid).read_bytes()


# -- where nothing is filled -----------------------------------------------------------------------

# A file that a clone may bring, and a text for it. `%s` stands for a command.
_FILL_FILES = [
    ("pyproject.toml", '[tool.hotenv]\nfill = "%s"\nHOTENV_FILL = "%s"\n'),
    ("pyproject.toml", '[tool.hermetic]\nfill = "%s"\n'),
    ("HERMETIC.toml", 'fill = "%s"\n'),
    ("hotenv.toml", 'fill = "%s"\n'),
    (".hotenvrc", "fill=%s\n"),
    (".hotenv.toml", 'fill = "%s"\n'),
    (".env", "HOTENV_FILL='%s'\n"),
    (".envrc", "export HOTENV_FILL='%s'\n"),
    ("setup.cfg", "[hotenv]\nfill = %s\n"),
]


@pytest.mark.parametrize("name, text", _FILL_FILES, ids=short)
def test_no_file_fills_a_session(project, name, text):
    """A file of the project starts no session: a clone must not be able to run code."""
    store = _FillStore(project)
    (project.dir / name).write_text(text.replace("%s", store.command))
    (project.dir / ".git").mkdir()
    for words in (["run", "--", "true"], ["run", "--only", "A", "--", "true"], ["dump"]):
        refusal(called(project, *words), 3)
    assert store.times() == 0


def test_marker_fills_no_session(project):
    """A marker that names more than a socket is damaged, and starts no session."""
    store = _FillStore(project)
    project.marker.write_text("socket=/no/such.sock\nfill=%s\n" % store.command)
    refusal(called(project, "dump"), 9)
    assert store.times() == 0


def _names_mcp_lines(revision, tool, **arguments):
    """Return what a client of `mcp` sends to call one tool."""
    client = {"name": "t", "version": "1"}
    beginning = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
    messages = [
        {"id": 1, "method": "initialize", "params": beginning},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in messages)


def _names_mcp_answer(project, lines, *options, **more):
    """Return how `mcp` answers the tool that these lines call; its stdin stays open until then."""
    process = project.start("mcp", *options, stdin=PIPE, stdout=PIPE, **more)
    with process:
        process.stdin.write(lines)
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line.decode())
            if answer["id"] == 2:
                process.stdin.close()
                return answer["result"]
    return None


def test_mcp_fills_no_session(project):
    """`mcp` starts no session: an agent must not be able to ask a store."""
    store = _FillStore(project)
    lines = _names_mcp_lines("2025-06-18", "session_open")
    result = _names_mcp_answer(project, lines, env={"HOTENV_FILL": store.command})
    assert result["isError"] is True
    assert store.times() == 0


@pytest.mark.parametrize("words", [["serve"], ["status"], ["stop"], ["mcp"]], ids=short)
def test_fill_is_no_option_of_others(project, words):
    """--fill is an option of `run`, `dump` and `mask` alone."""
    refusal(called(project, *words, "--fill", "echo A=1"), 2)


@pytest.mark.parametrize("words", [["status"], ["stop"]], ids=short)
def test_looking_fills_no_session(project, words):
    """`status` and `stop` start no session."""
    store = _FillStore(project)
    refusal(called(project, *words, env={"HOTENV_FILL": store.command}), 3)
    assert store.times() == 0


def test_guarded_program_fills_no_session(project):
    """A program under guards cannot start a session."""
    store = _FillStore(project)
    inner = project.command(["run", "--fill", store.command, "--", "true"])
    done = project.hotenv("hermetic", "--no-network", "--", *inner)
    if done.returncode == 1:
        pytest.skip("this system has no guards: %s" % done.stderr.decode())
    refusal(done, 3)
    assert store.times() == 0


@pytest.mark.parametrize("how", ["--socket", "HOTENV_SOCKET"])
def test_named_socket_is_not_filled(project, how):
    """A socket that somebody has named is not hotenv's to make."""
    path = str(project.root / "gone.sock")
    store = _FillStore(project)
    options = ["--socket", path] if how == "--socket" else []
    env = {"HOTENV_SOCKET": path} if how == "HOTENV_SOCKET" else {}
    words = ["run", *options, "--fill", store.command, "--", "true"]
    refusal(called(project, *words, env=env), 4)
    assert store.times() == 0


# -- how long a session lives ----------------------------------------------------------------------

_FILL_TIMES = {"HOTENV_TIMEOUT": "90s", "HOTENV_MAX_AGE": "1h"}


def _fill_times_of(project):
    """Return the idle timeout and the maximal age that `status` tells."""
    told = json.loads(called(project, "status", "--json").stdout.decode())
    return told["idle_timeout"], told["max_age"]


def test_variables_are_the_times_of_serve(project):
    """HOTENV_TIMEOUT and HOTENV_MAX_AGE are the defaults of the options of `serve`."""
    called(project, "serve", "--background", input=b"A=1\n", env=_FILL_TIMES)
    assert _fill_times_of(project) == (90.0, 3600.0)


def test_variables_are_the_times_of_a_filled_session(project):
    """HOTENV_TIMEOUT and HOTENV_MAX_AGE count for a session that is filled."""
    _fill_run(project, _FillStore(project), env=_FILL_TIMES)
    assert _fill_times_of(project) == (90.0, 3600.0)


def test_max_age_of_a_variable_is_kept(project):
    """A session ends at the age that HOTENV_MAX_AGE names."""
    called(project, "serve", "--background", input=b"A=1\n", env={"HOTENV_MAX_AGE": "0.3"})
    until(lambda: not project.marker.exists(), "the end of the session")


def test_options_win_over_the_variables_of_times(project):
    """--timeout and --max-age win over the variables."""
    options = ["--timeout", "10", "--max-age", "20"]
    called(project, "serve", "--background", *options, input=b"A=1\n", env=_FILL_TIMES)
    assert _fill_times_of(project) == (10.0, 20.0)


def test_empty_variables_of_times_are_unset(project):
    """Empty variables leave the idle timeout at 5 minutes, and the age without an end."""
    env = {"HOTENV_TIMEOUT": "", "HOTENV_MAX_AGE": ""}
    called(project, "serve", "--background", input=b"A=1\n", env=env)
    assert _fill_times_of(project) == (300.0, None)


@pytest.mark.parametrize("variable", ["HOTENV_TIMEOUT", "HOTENV_MAX_AGE"])
def test_wrong_variable_of_a_time_is_named(project, variable):
    """A variable that is no duration is refused by its name, and no session starts."""
    done = called(project, "serve", input=b"A=1\n", env={variable: "soon"})
    message = refusal(done, 2)
    assert variable in message
    assert "soon" in message
    assert project.files() == []


@pytest.mark.parametrize("variable", ["HOTENV_TIMEOUT", "HOTENV_MAX_AGE"])
def test_wrong_variable_of_a_time_asks_no_store(project, variable):
    """A variable that is no duration is refused before a store is asked."""
    store = _FillStore(project)
    words = ["run", "--fill", store.command, "--", "true"]
    assert variable in refusal(called(project, *words, env={variable: "soon"}), 2)
    assert store.times() == 0


# ==== names =======================================================================================
# Several sessions in one directory, each with a name; the one without a name is as ever.


@pytest.fixture(scope="module")
def names_sessions():
    """A Project with a session without a name, and with two named `prod` and `dev-2_X`."""
    for shared in standing(b"A=plain-1\n"):
        for name in ("prod", "dev-2_X"):
            text = b"A=%s-1\n" % name.encode()
            done = called(shared, "serve", "--background", "--name", name, input=text)
            assert done.returncode == 0, done.stderr
        yield shared


def _names_asked(project, command, options=(), env=None):
    """Return the value of A that a command gets from the session that is named to it."""
    if command == "run":
        done = called(project, "run", *options, "--", "printenv", "A", env=env)
        return done.stdout.decode().strip()
    if command == "dump":
        done = called(project, "dump", *options, "--format", "value", env=env)
        return done.stdout.decode()
    assert command == "mask"
    text = b"plain-1 prod-1 dev-2_X-1 other-1"
    masked = called(project, "mask", *options, input=text, env=env).stdout.split()
    return text.split()[masked.index(b"[hidden:A]")].decode()


_NAMES_COMMANDS = ["run", "dump", "mask"]


@pytest.mark.parametrize("command", _NAMES_COMMANDS)
@pytest.mark.parametrize("name", ["prod", "dev-2_X"])
def test_name_names_a_session(names_sessions, command, name):
    """--name asks the session of that name."""
    assert _names_asked(names_sessions, command, ["--name", name]) == name + "-1"


@pytest.mark.parametrize("command", _NAMES_COMMANDS)
def test_without_a_name_the_plain_session_is_asked(names_sessions, command):
    """Without a name, the session without a name is asked, whatever others are here."""
    assert _names_asked(names_sessions, command) == "plain-1"


# The value of --name, of HOTENV_NAME, whether --socket and whether HOTENV_SOCKET name a fourth
# session, and the value that comes.
_NAMES_PRECEDENCE = [
    (None, "prod", False, False, "prod-1"),
    (None, "", False, False, "plain-1"),
    ("dev-2_X", "prod", False, False, "dev-2_X-1"),
    (None, "prod", False, True, "other-1"),
    ("prod", None, False, True, "prod-1"),
    ("prod", "dev-2_X", False, True, "prod-1"),
    (None, "prod", True, False, "other-1"),
    (None, None, False, True, "other-1"),
]


@pytest.mark.parametrize("command", _NAMES_COMMANDS)
@pytest.mark.parametrize("option, variable, is_socket, is_variable, value", _NAMES_PRECEDENCE)
def test_nearer_naming_wins(
    names_sessions, answerer, command, option, variable, is_socket, is_variable, value
):
    """An option wins over a variable, and HOTENV_SOCKET over HOTENV_NAME."""
    path = answerer(b'{"env":{"A":"other-1"}}\n').path
    options = []
    env = {}
    if option is not None:
        options += ["--name", option]
    if is_socket:
        options += ["--socket", path]
    if variable is not None:
        env["HOTENV_NAME"] = variable
    if is_variable:
        env["HOTENV_SOCKET"] = path
    assert _names_asked(names_sessions, command, options, env) == value


@pytest.mark.parametrize("words", [["dump"], ["run", "--", "true"], ["status"], ["stop"], ["mask"]])
def test_two_names_of_one_session_are_refused(names_sessions, words):
    """--name and --socket together name two sessions, and are refused."""
    options = ["--name", "x", "--socket", "/x"]
    message = refusal(called(names_sessions, words[0], *options, *words[1:]), 2)
    assert "--name" in message
    assert "--socket" in message


@pytest.mark.parametrize("words", [["dump"], ["run", "--", "true"], ["status"], ["stop"], ["mask"]])
def test_named_session_is_not_found_without_a_name(project, words):
    """Without a name, a session with a name is not found: 3."""
    project.sh("mkdir p/below")
    called(project, "serve", "--background", "--name", "prod", input=b"A=1\n")
    refusal(called(project, *words, cwd=project.dir / "below"), 3)


@pytest.mark.parametrize("words", [["dump"], ["run", "--", "true"], ["status"], ["stop"], ["mask"]])
@pytest.mark.parametrize("how", ["--name", "HOTENV_NAME"])
def test_plain_session_is_not_found_by_a_name(session, words, how):
    """By a name, the session without a name is not found: 3, and the error says how to start."""
    options = ["--name", "prod"] if how == "--name" else []
    env = {"HOTENV_NAME": "prod"} if how == "HOTENV_NAME" else {}
    message = refusal(called(session, words[0], *options, *words[1:], env=env), 3)
    assert ".hotenv.prod" in message
    assert "serve --name prod" in message


def test_name_is_part_of_the_marker(project):
    """The marker of a session with a name is .hotenv.NAME."""
    called(project, "serve", "--background", "--name", "prod", input=b"A=1\n")
    assert os.listdir(str(project.dir)) == [".hotenv.prod"]


def test_variable_names_what_serve_starts(project):
    """HOTENV_NAME names the session that `serve` starts."""
    called(project, "serve", "--background", input=b"A=1\n", env={"HOTENV_NAME": "prod"})
    assert os.listdir(str(project.dir)) == [".hotenv.prod"]


def test_fill_starts_a_session_of_the_name(project):
    """--fill starts the session that --name names, and leaves the plain one alone."""
    project.serve(b"A=plain\n")
    words = ["run", "--name", "prod", "--fill", "echo A=prod", "--", "printenv", "A"]
    assert called(project, *words).stdout == b"prod\n"
    assert called(project, "dump", "--name", "prod").stdout == b"A=prod\n"
    assert project.dump() == {b"A": b"plain"}


def test_named_session_is_found_upward(project):
    """A session with a name is found from below, past other markers."""
    below = project.dir / "a" / "b"
    below.mkdir(parents=True)
    called(project, "serve", "--background", "--name", "prod", input=b"A=prod\n")
    called(project, "serve", "--background", input=b"A=plain\n", cwd=below)
    assert called(project, "dump", "--name", "prod", cwd=below).stdout == b"A=prod\n"


@pytest.mark.parametrize("name", ["a", "A-b_9", "-", "_", "-x", "x" * 64, "new", "json"], ids=short)
def test_name_has_letters_digits_and_two_signs(project, name):
    """A name may have letters, digits, `-` and `_`, up to 64 of them."""
    text = b"A=1\n"
    done = called(project, "serve", "--background", "--name=" + name, input=text)
    assert done.returncode == 0, done.stderr
    assert called(project, "dump", "--name=" + name).stdout == text


# What is no name, the one under which a marker is written first among them.
_NAMES_WRONG = [
    "x" * 65,
    "a b",
    "a.b",
    "new.01234567",
    ".",
    "..",
    "a/b",
    "/x",
    "\u00e9",
    "\u0665",
    "a\n",
    "*",
    "\x1b[31m",
]


@pytest.mark.parametrize("name", _NAMES_WRONG, ids=short)
@pytest.mark.parametrize("words", [["serve", "--background"], ["run", "--", "true"], ["status"]])
def test_wrong_name_is_refused(project, words, name):
    """What is no name is refused, and the error says what a name may have."""
    done = called(project, words[0], "--name=" + name, *words[1:], input=b"A=1\n")
    assert re.search("letters.*64", refusal(done, 2))
    assert project.files() == []


@pytest.mark.parametrize("words", [["serve"], ["run", "--", "true"], ["stop", "--all"]], ids=short)
def test_wrong_name_in_the_variable_is_told_so(project, words):
    """What is no name in HOTENV_NAME is refused, and the error names the variable."""
    done = called(project, *words, input=b"A=1\n", env={"HOTENV_NAME": "a b"})
    assert "HOTENV_NAME" in refusal(done, 2)


def test_second_session_of_a_name_is_refused(project):
    """A second `serve` of a name is refused, and told how that name's session is ended."""
    called(project, "serve", "--background", "--name", "prod", input=b"A=1\n")
    message = refusal(called(project, "serve", "--name", "prod", input=b"A=2\n"), 10)
    assert ".hotenv.prod" in message
    assert "stop --name prod" in message
    assert "serve --name prod --force" in message


def test_force_replaces_the_session_of_its_name(project):
    """`serve --name --force` replaces the session of that name alone."""
    project.serve(b"A=plain\n")
    called(project, "serve", "--background", "--name", "prod", input=b"A=1\n")
    called(project, "serve", "--background", "--name", "prod", "--force", input=b"A=2\n")
    assert called(project, "dump", "--name", "prod").stdout == b"A=2\n"
    assert project.dump() == {b"A": b"plain"}
    assert len(list(project.runtime.glob("*.sock"))) == 2


def test_stop_ends_the_session_of_its_name(project):
    """`stop --name` ends the session of that name alone, and removes its marker."""
    project.serve(b"A=plain\n")
    called(project, "serve", "--background", "--name", "prod", input=b"A=1\n")
    assert called(project, "stop", "--name", "prod").returncode == 0
    assert os.listdir(str(project.dir)) == [".hotenv"]
    assert project.dump() == {b"A": b"plain"}


def test_stop_all_looks_at_markers_alone(tmp_path, monkeypatch):
    """`stop --all` takes no file for a marker whose name only ends as a marker's does."""
    for name in [".hotenv", ".hotenv.prod", "_hotenv", "xhotenv.prod", ".hotenv.new.0123abcd"]:
        (tmp_path / name).write_text("socket=/no/such\n")
    monkeypatch.chdir(tmp_path)
    markers = {os.path.basename(marker.absolute_path) for marker in hotenv._markers_here("")}
    assert markers == {".hotenv", ".hotenv.prod"}


def test_stop_all_ends_named_sessions(project):
    """`stop --all` ends the sessions with names, too."""
    project.with_own_tmp()
    for options in ([], ["--name", "prod"]):
        project.hotenv("serve", "--background", *options, input=b"A=1\n")
    assert project.hotenv("stop", "--all").returncode == 0
    assert os.listdir(str(project.dir)) == []


def test_status_tells_the_name(names_sessions):
    """`status` tells the name of a session, in words and as JSON, and none where there is none."""
    text = called(names_sessions, "status", "--name", "prod").stdout.decode()
    assert re.search(r"(?m)^name +prod$", text)
    told = json.loads(called(names_sessions, "status", "--name", "prod", "--json").stdout.decode())
    assert told["name"] == "prod"
    assert told["marker"] == str(names_sessions.dir / ".hotenv.prod")
    plain = called(names_sessions, "status").stdout.decode()
    assert not re.search(r"(?m)^name\b", plain)


def test_status_all_tells_names(project):
    """`status --all` tells each session by its name."""
    project.with_own_tmp()
    for options in ([], ["--name", "prod"], ["--name", "dev"]):
        project.hotenv("serve", "--background", *options, input=b"A=1\n")
    text = project.hotenv("status", "--all").stdout.decode()
    assert sorted(re.findall(r"(?m)^name +(\S+)$", text)) == ["dev", "prod"]
    told = json.loads(project.hotenv("status", "--all", "--json").stdout.decode())
    assert sorted(each["name"] for each in told) == ["", "dev", "prod"]


def test_log_tells_the_name_at_both_ends(project):
    """The lines at the start and at the end of a session show its name."""
    (project.root / "text").write_bytes(b"A=1\n")
    command = project.command(["serve", "--name", "prod"])
    options = {"cwd": project.dir, "env": project.env, "stdin": project.root / "text"}
    with on_terminal(*command, **options) as (_, terminal):
        seen = read_until(terminal, rb"ready[^\n]*\n")
        assert re.search(rb"session [0-9a-f]{8} \(prod\) ready", seen)
        os.write(terminal, b"\x03")
        seen = read_until(terminal, None, seen)
    assert re.search(rb"session [0-9a-f]{8} \(prod\) ended", seen)


def test_mcp_asks_the_session_of_its_name(names_sessions):
    """`mcp --name` gives an agent the variables of the session of that name."""
    lines = _names_mcp_lines("2025-06-18", "session_open")
    result = _names_mcp_answer(names_sessions, lines, "--name", "prod")
    assert result["isError"] is False, result
    refused = _names_mcp_answer(names_sessions, lines, "--name", "none")
    assert ".hotenv.none" in json.dumps(refused)


# ==== input formats ===============================================================================
# What stores print: one object of JSON, or NAME=value texts that end with NUL.


def _input_served(project, form, text, *options):
    """Start a session in the background from a text of this format; a CompletedProcess."""
    words = ["serve", "--background", "--force", "--format", form, *options]
    return called(project, *words, input=text)


# A value of JSON, and the value that a variable gets.
_INPUT_JSON_VALUES = [
    ('""', ""),
    ('"x"', "x"),
    ('" a  b "', " a  b "),
    ('"# no comment"', "# no comment"),
    ('"${HOME}"', "${HOME}"),
    ('"\'q\'"', "'q'"),
    ('"?ask"', "?ask"),
    ('"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\/\b\f\n\r\t'),
    ('"\\u00e9\u00e9"', "\u00e9\u00e9"),
    ('"\\ud83d\\ude00"', "\U0001f600"),
    ("0", "0"),
    ("-0", "-0"),
    ("17", "17"),
    ("1.50", "1.50"),
    ("1e400", "1e400"),
    ("-2.5E-3", "-2.5E-3"),
    ("12345678901234567890123456789", "12345678901234567890123456789"),
    ("true", "true"),
    ("false", "false"),
]


def test_json_values_are_as_written(project):
    """`serve --format json` takes strings as they are, numbers and booleans as they are written."""
    members = ['"V%d": %s' % (number, text) for number, (text, _) in enumerate(_INPUT_JSON_VALUES)]
    text = "{%s}" % ", ".join(members)
    assert _input_served(project, "json", text.encode()).returncode == 0
    seen = {name.decode(): value.decode() for name, value in project.dump().items()}
    expected = {}
    for number, (_, value) in enumerate(_INPUT_JSON_VALUES):
        expected["V%d" % number] = value
    assert seen == expected


# An object of JSON, and the environment that it means.
_INPUT_JSON_SHAPES = [
    ("{}", {}),
    (' \r\n\t{ "A" :\n"1"\r, "B":2 }\n\n', {"A": "1", "B": "2"}),
    ('\ufeff{"A":"1"}', {"A": "1"}),
    ('{"a b":"1","a.b-c":"2","\\u00e9":"3"}', {"a b": "1", "a.b-c": "2", "\xe9": "3"}),
]


@pytest.mark.parametrize("text, env", _INPUT_JSON_SHAPES, ids=ascii)
def test_json_object_is_an_environment(project, text, env):
    """`serve --format json` takes one object, with blanks and a byte order mark around it."""
    assert _input_served(project, "json", text.encode()).returncode == 0
    assert project.dump() == {name.encode(): value.encode() for name, value in env.items()}


# What is no object of JSON for an environment, its place, and what the error tells. `s3cr3t` is in
# values alone.
_INPUT_JSON_REFUSED = [
    ('{"A": null, "B": "s3cr3t"}', "1:7", r"\bA is null"),
    ('{"A": ["s3cr3t"]}', "1:7", r"\bA is a list"),
    ('{"A":\n {"B": "s3cr3t"}}', "2:2", r"\bA is an object"),
    ('{"A": "s3cr3t", "A": "s3cr3t"}', "1:17", r"\bA\b"),
    ('{"A": "s3cr3t", "\\u0041": 1}', "1:17", r"\bA\b"),
    ('{"A": "s3cr3t"', "1:15", "`}`"),
    ('{"A": "s3cr3t" "B": 1}', "1:16", "`,`"),
    ('{"A" "s3cr3t"}', "1:5", "`:`"),
    ('{"A": "s3cr3t",}', "1:16", "name"),
    ("{'A': 's3cr3t'}", "1:2", "name"),
    ('{A: "s3cr3t"}', "1:2", "name"),
    ('{"A": s3cr3t}', "1:7", r"\bA\b"),
    ('{"A": "s3cr3t', "1:7", r"\bA\b"),
    ('{"A": "s3cr3t\\x"}', "1:7", r"\bA\b"),
    ('{"A": "s3cr3t\n"}', "1:7", r"\bA\b"),
    ('{"A": 01}', "1:8", "`,`"),
    ('{"A": NaN}', "1:7", r"\bA\b"),
    ('{"A": +1}', "1:7", r"\bA\b"),
    ('{"A": "s3cr3t\\u0000"}', "1:2", "NUL"),
    ('{"A": "s3cr3t\\ud800"}', "1:2", r"\bA\b"),
    ('{"": "s3cr3t"}', "1:2", "empty"),
    ('{"A=B": "s3cr3t"}', "1:2", "="),
    ('{"A": "s3cr3t"} {}', "1:17", "behind"),
    ('["s3cr3t"]', "1:1", "object"),
    ('"s3cr3t"', "1:1", "object"),
    ("A=s3cr3t", "1:1", "object"),
    ("[" * 5000, "1:1", "object"),
    ('{"A":' * 5000, "1:6", r"\bA\b"),
]


@pytest.mark.parametrize("text, place, telling", _INPUT_JSON_REFUSED, ids=short)
def test_wrong_json_is_refused(project, text, place, telling):
    """What is no object of strings, numbers and booleans is refused by place and name, 7."""
    message = refusal(_input_served(project, "json", text.encode()), 7)
    assert ":%s:" % place in message
    assert re.search(telling, message)
    assert "s3cr3t" not in message
    assert project.files() == []


def test_json_that_is_no_utf8_is_refused(project):
    """JSON with a byte that is no UTF-8 is refused, 7."""
    assert "UTF-8" in refusal(_input_served(project, "json", b'{"A": "s3cr3t\xff"}'), 7)


_INPUT_NUL_TEXTS = [
    (b"A=1\0", {b"A": b"1"}),
    (b"A=\0B=x=y\0", {b"A": b"", b"B": b"x=y"}),
    (b"A= two\nlines \0", {b"A": b" two\nlines "}),
    (b"A=${HOME} '#\0", {b"A": b"${HOME} '#"}),
    (b"A=\xff\xfe\0", {b"A": b"\xff\xfe"}),
    (b"with blank=1\0F%%=() { :; }\0", {b"with blank": b"1", b"F%%": b"() { :; }"}),
    (b"\xc3\xa9=1\0", {b"\xc3\xa9": b"1"}),
]


@pytest.mark.parametrize("text, env", _INPUT_NUL_TEXTS, ids=short)
def test_nul_texts_are_an_environment(project, text, env):
    """`serve --format nul` takes each NAME=value as it is, to the byte."""
    assert _input_served(project, "nul", text).returncode == 0
    assert project.dump() == env


def test_nul_takes_what_env_prints(project):
    """`env -0 | hotenv serve --format nul` holds the environment."""
    env = {"A": "one\ntwo", "B": "", "C": "x=y"}
    printed = subprocess.run([ENV, "-0"], env=env, stdout=PIPE, timeout=PATIENCE).stdout
    assert _input_served(project, "nul", printed).returncode == 0
    assert project.dump() == {name.encode(): value.encode() for name, value in env.items()}


# What `env -0` does not print, and the number of the entry that is wrong.
_INPUT_NUL_REFUSED = [
    (b"s3cr3t\0", 1),
    (b"A=1\0s3cr3t\0", 2),
    (b"A=1\0=s3cr3t\0", 2),
    (b"A=1\0\0B=s3cr3t\0", 2),
    # The last text was cut, or the lines are dotenv.
    (b"A=1\0B=s3cr3t", 2),
    (b"A=1\nB=s3cr3t\n", 1),
]


@pytest.mark.parametrize("text, entry", _INPUT_NUL_REFUSED, ids=short)
def test_wrong_nul_is_refused(project, text, entry):
    """What is no NAME=value with a NUL behind it is refused by its number, 7."""
    message = refusal(_input_served(project, "nul", text), 7)
    assert re.search(r"\bentry %d\b" % entry, message)
    assert "s3cr3t" not in message
    assert project.files() == []


def _input_random_env(form, dice):
    """Return random variables that `dump` can print in a format, as bytes."""
    env = {}
    characters = ["a", "\n", "\r", "\t", " ", "'", '"', "\\", "$", "${A}", "#", "=", "?", "{", "}"]
    characters += ["\x01", "\x7f", "\x85", "\u2028", "\ufeff", "\u00e9", "\U0001f511", "\\n", "\\u"]
    while len(env) < amount(4000):
        value = "".join(dice.choices(characters, k=dice.randrange(12))).encode()
        name = "V%d" % len(env)
        if form != "dotenv":
            name += "".join(dice.choices(characters, k=dice.randrange(4))).replace("=", "")
        if form == "nul":
            value += bytes(dice.choices(range(1, 256), k=dice.randrange(6)))
        env[name.encode()] = value
    return env


@pytest.mark.parametrize("form", ["dotenv", "json", "nul"])
def test_serve_reads_what_dump_writes(project, form):
    """What `dump` writes as dotenv, json or nul, `serve` reads back to the byte."""
    env = _input_random_env(form, random.Random(SEED))
    given = b"".join(b"%s=%s\0" % pair for pair in env.items())
    assert _input_served(project, "nul", given).returncode == 0
    printed = called(project, "dump", "--format", form)
    assert printed.returncode == 0, printed.stderr

    assert _input_served(project, form, printed.stdout, "--name", "back").returncode == 0
    assert project.dump("--name", "back") == env


def test_dotenv_is_the_format_by_default(project):
    """`serve --format dotenv` is `serve` without an option."""
    text = b"A='x y' # note\n"
    assert _input_served(project, "dotenv", text).returncode == 0
    assert project.dump() == {b"A": b"x y"}


@pytest.mark.parametrize("form", ["json", "nul"])
def test_prompt_goes_with_dotenv_alone(project, form):
    """--prompt with another format is refused: a value there is never a question."""
    assert "--prompt" in refusal(called(project, "serve", "--prompt", "--format", form), 2)


def test_unknown_format_is_refused_with_those_that_are(project):
    """A format that is none is refused, and the error names those that are."""
    message = refusal(called(project, "serve", "--format", "yaml", input=b"A: 1\n"), 2)
    assert re.search("dotenv.*json.*nul", message)


@pytest.mark.parametrize("form", ["dotenv", "json", "nul"])
def test_empty_input_is_refused_in_each_format(project, form):
    """Not one byte of input is refused in each format, and --empty means it."""
    assert "--empty" in refusal(_input_served(project, form, b""), 7)
    assert _input_served(project, form, b"", "--empty").returncode == 0
    assert project.dump() == {}


# A text that is no dotenv from its beginning, and what the error tells.
_INPUT_TELLING = [
    (b'{"A": "s3cr3t"}', "JSON(?s:.*)--format json"),
    (b'\n  {\n"A": "s3cr3t"\n}\n', "JSON(?s:.*)--format json"),
    (b'\xef\xbb\xbf{"A": "s3cr3t"}', "JSON(?s:.*)--format json"),
    (b"<!DOCTYPE html><p>s3cr3t</p>", "HTML"),
    (b"<?xml version='1.0'?><s3cr3t/>", "XML"),
    # `pass` prints the password first.
    (b"s3cr3t\nUSER=me\n", r"password(?s:.*)tail -n \+2"),
    (b"s3cr3t!x\nUSER=me\n", r"password(?s:.*)tail -n \+2"),
    (b"s3cr3t words of a phrase\nUSER=me\n", r"password(?s:.*)tail -n \+2"),
]


@pytest.mark.parametrize("text, telling", _INPUT_TELLING, ids=short)
def test_first_line_is_told_what_it_is(project, text, telling):
    """Input that is JSON, HTML or a bare password in its first line is told so, 7."""
    message = refusal(called(project, "serve", input=text), 7)
    assert re.search(telling, message)
    assert "s3cr3t" not in message


def test_later_line_is_no_password(project):
    """Only a first line may be a bare password."""
    message = refusal(called(project, "serve", input=b"A=1\ns3cr3t\n"), 7)
    assert "tail" not in message


# ==== secrets as files ============================================================================
# With --file a variable holds the path of a file in memory.

_FILES_KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n\u00e9hkiG9w0BAQEFAASC\n-----END KEY-----\n"


@pytest.fixture(scope="module")
def files_session():
    """A Project with a session of KEY (several lines), TOKEN, TOKEN_2 and PLAIN."""
    lines = 'KEY="%s"\nTOKEN=%s\nTOKEN_2=second-token\nPLAIN=plain-value\n' % (_FILES_KEY, TOKEN)
    yield from standing(lines.encode())


def _files_run(project, script, *options, names="KEY", **more):
    """Run a script of sh with these variables as files; return what it prints."""
    done = called(project, "run", "--file", names, *options, "--", "sh", "-c", script, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@only_linux
def test_file_has_the_value_to_the_byte(files_session):
    """The file has the value, and not one byte more."""
    assert _files_run(files_session, 'cat "$KEY"') == _FILES_KEY.encode()


@only_linux
def test_variable_names_a_descriptor_of_the_command(files_session):
    """The variable holds /proc/PID/fd/N, where PID is the command's own."""
    pid, path = _files_run(files_session, 'echo "$$ $KEY"').decode().split()
    assert re.fullmatch(r"/proc/%s/fd/\d+" % pid, path)


@only_linux
def test_file_can_be_read_again_and_again(files_session):
    """Each reader begins at the beginning."""
    script = 'for i in 1 2 3; do cat "$KEY"; done; head -c 3 "$KEY"; cat < "$KEY"'
    key = _FILES_KEY.encode()
    assert _files_run(files_session, script) == key * 3 + key[:3] + key


@only_linux
def test_file_can_be_read_by_grandchildren(files_session):
    """A child of a child of the command can read the file, and several at once."""
    script = """sh -c 'sh -c "cat \\"\\$KEY\\""; exit 0'; (cat "$KEY" & wait)"""
    assert _files_run(files_session, script) == _FILES_KEY.encode() * 2


@only_linux
def test_file_stays_across_exec(files_session):
    """The path holds for a program that the command becomes."""
    script = """exec sh -c 'exec cat "$KEY"'"""
    assert _files_run(files_session, script) == _FILES_KEY.encode()


@only_linux
def test_script_may_use_low_descriptors(files_session):
    """A script that opens descriptors 3 to 9 for itself takes no file away."""
    opened = "; ".join("exec %d> /dev/null" % number for number in range(3, 10))
    words = ["run", "--file", "KEY,TOKEN", "--", "sh", "-c", opened + '; cat "$KEY" "$TOKEN"']
    # In a process of its own hotenv has no descriptor open but the first three.
    assert files_session.hotenv(*words).stdout == (_FILES_KEY + TOKEN).encode()


_FILES_LOOK = """
import fcntl, os, stat
path = os.environ["KEY"]
with open(path, "rb") as file:
    found = os.fstat(file.fileno())
    seals = fcntl.fcntl(file.fileno(), 1034)  # F_GET_SEALS
print(oct(stat.S_IMODE(found.st_mode)), found.st_uid == os.getuid(), found.st_nlink, bin(seals))
print(os.readlink(path))
for mode in "r+b", "wb", "ab":
    try:
        with open(path, mode) as file:
            file.write(b"x")
        print("written")
    except OSError:
        print("refused")
"""


@pytest.fixture(scope="module")
def files_look(files_session):
    """What a Python program sees of its file: lines."""
    words = ["run", "--file", "KEY", "--", sys.executable, "-c", _FILES_LOOK]
    done = called(files_session, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


@only_linux
def test_file_is_its_users_alone(files_look):
    """The file has the mode 0600, belongs to the user, and has no name on any disk."""
    assert files_look[0].split()[:3] == ["0o600", "True", "0"]


@only_linux
def test_file_has_every_seal(files_look):
    """The file is sealed against writing, growing, shrinking, and against more seals."""
    assert files_look[0].split()[3] == "0b1111"


@only_linux
def test_file_is_in_memory(files_look):
    """The file is a memfd, and so on no disk."""
    assert files_look[1].startswith("/memfd:")


@only_linux
def test_file_cannot_be_changed(files_look):
    """The command cannot write into the file, nor cut it, nor add to it."""
    assert files_look[2:] == ["refused"] * 3


@only_linux
def test_file_is_gone_with_the_command(files_session):
    """Behind the end of the command nobody can open the path."""
    path = _files_run(files_session, 'printf %s "$KEY"').decode()
    assert not os.path.exists(path)


@only_linux
def test_file_takes_names_as_only_does(files_session):
    """--file takes names and prefixes, and can be repeated; other variables stay values."""
    script = 'cat "$KEY" "$TOKEN" "$TOKEN_2"; printf %s "$PLAIN"'
    printed = _files_run(files_session, script, "--file", "KEY", names="TOKEN*")
    assert printed == (_FILES_KEY + TOKEN + "second-token" + "plain-value").encode()


@only_linux
def test_file_takes_the_sessions_variables_alone(files_session):
    """`--file '*'` makes files of the session's variables, and of no other."""
    script = 'cat "$KEY" && printf "%s" "$XDG_RUNTIME_DIR"'
    printed = _files_run(files_session, script, names="*").decode()
    assert printed == _FILES_KEY + str(files_session.base)


@pytest.mark.parametrize("names", ["NOPE", "KEY,NOPE", "XDG_RUNTIME_DIR", "", "Z*"], ids=short)
def test_file_of_no_variable_is_refused(files_session, names):
    """A name that the session does not have is refused, 2, and nothing runs."""
    done = called(files_session, "run", "--file", names, "--", "echo", "ran")
    assert "--file" in refusal(done, 2)
    assert done.stdout == b""


@only_linux
def test_file_goes_with_other_options(files_session):
    """--file goes with --only and --isolated: what is handed over comes as a file."""
    script = 'cat "$TOKEN"; printf "<%s>" "$KEY"'
    options = ["--only", "TOKEN", "--isolated"]
    assert _files_run(files_session, script, *options, names="TOKEN") == TOKEN.encode() + b"<>"


@only_linux
def test_file_left_out_by_only_is_refused(files_session):
    """A file of a variable that --only leaves out is refused, and told why."""
    words = ["run", "--only", "TOKEN", "--file", "KEY", "--", "true"]
    assert "--only" in refusal(called(files_session, *words), 2)


@only_linux
def test_optional_run_needs_no_file(project):
    """With --optional and without a session the command runs, and has no such variable."""
    script = 'echo "ran <$KEY>"'
    words = ["run", "--optional", "-q", "--file", "KEY", "--", "sh", "-c", script]
    done = called(project, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"ran <>\n"


@only_linux
def test_content_of_a_file_is_masked(files_session):
    """With --mask the content is masked as any value, and the path is not."""
    script = 'cat "$TOKEN"; echo; cat "$KEY"; echo "$TOKEN"; echo "$PLAIN"'
    printed = _files_run(files_session, script, "--mask", names="KEY,TOKEN").decode()
    lines = printed.splitlines()
    assert lines[0] == "[hidden:TOKEN]"
    assert lines[1] == "[hidden:KEY]"
    assert re.fullmatch(r"/proc/\d+/fd/\d+", lines[2])
    assert lines[3] == "[hidden:PLAIN]"


@only_linux
def test_masked_command_has_its_own_path(files_session):
    """With --mask the path is one of the command, and a grandchild can read it."""
    script = 'echo "$$ $KEY"; sh -c "cat \\"\\$KEY\\"" | wc -c'
    pid, path, size = _files_run(files_session, script, "--mask").decode().split()
    assert path.startswith("/proc/%s/fd/" % pid)
    assert int(size) == len(_FILES_KEY.encode())


_FILES_GUARDS = [
    pytest.param(["--no-network"], id="network"),
    pytest.param(["--fs-readonly"], id="files"),
    pytest.param(["--no-network", "--fs-readonly"], id="both"),
]


@only_linux
@pytest.mark.parametrize("guards", _FILES_GUARDS)
@pytest.mark.parametrize("program", ["sh", "python"])
def test_guarded_command_can_read_its_file(files_session, guards, program):
    """A command under guards can read the file."""
    command = ["sh", "-c", 'cat "$KEY"']
    if program == "python":
        code = "import os, sys; sys.stdout.write(open(os.environ['KEY'], encoding='utf-8').read())"
        command = [sys.executable, "-X", "utf8", "-c", code]
    done = called(files_session, "run", "--file", "KEY", *guards, "--", *command)
    if done.returncode == 8 and program == "sh":
        pytest.skip("this system has no such guards: %s" % done.stderr.decode())
    assert done.returncode == 0, done.stderr
    assert done.stdout == _FILES_KEY.encode()


@only_linux
@pytest.mark.parametrize("guards", _FILES_GUARDS)
def test_program_of_a_guarded_python_can_read_its_file(files_session, guards):
    """A program without a hook that a guarded Python starts can read the file, and so can its."""
    code = """
import subprocess
subprocess.run(["sh", "-c", 'cat "$KEY"; sh -c "cat \\"\\$KEY\\""; :'])
"""
    words = ["run", "--file", "KEY", *guards, "--", sys.executable, "-c", code]
    done = called(files_session, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == _FILES_KEY.encode() * 2


def _files_trace(project, code):
    """Return the trace of a guarded Python program to which TOKEN came as a file."""
    guards = ["--no-network", "--fs-readonly", "--no-subprocess", "--trace"]
    words = ["run", "--file", "TOKEN", *guards, "--", sys.executable, "-c", code]
    return called(project, *words).stderr.decode()


@only_linux
def test_trace_hides_the_value_of_a_file(files_session):
    """A trace does not show the value that a program read from its file."""
    code = """
import os, subprocess
token = open(os.environ["TOKEN"]).read()
try:
    subprocess.run(["curl", "https://api.test/" + token])
except BaseException:
    pass
"""
    trace = _files_trace(files_session, code)
    assert "curl" in trace
    assert TOKEN not in trace
    assert "[hidden:TOKEN]" in trace


@only_linux
def test_trace_shows_the_path_of_a_file(files_session):
    """A trace shows the path of a file: it is no secret."""
    code = """
import os, subprocess
try:
    subprocess.run(["curl", "--config", os.environ["TOKEN"]])
except BaseException:
    pass
"""
    assert re.search(r"/proc/\d+/fd/\d+", _files_trace(files_session, code))


def test_system_without_such_files_is_told(project):
    """Where there is no memfd, --file is refused with 8 and a word, and nothing runs."""
    project.serve(b"KEY=1\n")
    start = project.program[-1].replace(
        "import hotenv;", "import os; vars(os).pop('memfd_create', 0); import hotenv;"
    )
    project.program = [*project.program[:-1], start]
    done = project.hotenv("run", "--file", "KEY", "--", "echo", "ran")
    assert re.search("memory", refusal(done, 8))
    assert done.stdout == b""


@only_linux
def test_kernel_without_such_files_is_told(project, meddle):
    """Where the kernel makes no memfd, --file is refused with 8, and nothing runs."""
    project.serve(b"KEY=1\n")
    meddle("memfd_create:error=ENOSYS")
    done = project.hotenv("run", "--file", "KEY", "--", "echo", "ran")
    assert "--file" in refusal(done, 8)
    assert done.stdout == b""


def test_help_says_what_a_file_cannot_do(project):
    """The help says that programs which close what they inherit, and daemons, cannot read it."""
    told = called(project, "help", "sessions").stdout.decode()
    told += called(project, "run", "--help").stdout.decode()
    told = " ".join(told.split())
    assert "ssh -i" in told
    assert "ssh-add" in told
    assert "daemon" in told


# ==== load ========================================================================================
# A Python program asks by itself: load() sets variables in os.environ.


@pytest.fixture(scope="module")
def load_session():
    """A Project with a session of API_KEY, API_URL, OTHER and RAW, which is no UTF-8."""
    text = b"API_KEY=k-1\0API_URL=u-1\0OTHER=o-1\0RAW=\xff\0"
    with contextlib.closing(Project()) as shared:
        assert _input_served(shared, "nul", text).returncode == 0
        assert _input_served(shared, "nul", b"A=named\0", "--name", "prod").returncode == 0
        yield shared


def _load_in(project, code, env=None):
    """Run lines of Python in a project that has imported hotenv; return what they print."""
    start = f"import os, sys; sys.path.insert(0, {str(HERE)!r}); import hotenv\n"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", start + textwrap.dedent(code)],
        cwd=str(project.dir),
        env={**project.env, **(env or {})},
        stdout=PIPE,
        stderr=PIPE,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def test_load_sets_every_variable(load_session):
    """load() sets the session's variables in os.environ, and returns them."""
    code = """
        loaded = hotenv.load()
        print(sorted(loaded), {name: os.environ[name] for name in loaded} == loaded)
        print(os.environ["API_KEY"], os.environb[b"RAW"])
    """
    expected = "['API_KEY', 'API_URL', 'OTHER', 'RAW'] True\nk-1 b'\\xff'"
    assert _load_in(load_session, code) == expected


def test_loaded_variable_reaches_children(load_session):
    """A child of a program that called load() has the variables."""
    code = "import subprocess; hotenv.load(); subprocess.run(['printenv', 'API_KEY'])"
    assert _load_in(load_session, code) == "k-1"


@pytest.mark.parametrize("value", ["mine", ""], ids=["set", "empty"])
def test_load_leaves_what_is_set(load_session, value):
    """A variable that is set stays as it is, an empty one too, and is not returned."""
    code = "print(sorted(hotenv.load()), '<%s>' % os.environ['API_KEY'])"
    expected = "['API_URL', 'OTHER', 'RAW'] <%s>" % value
    assert _load_in(load_session, code, {"API_KEY": value}) == expected


def test_load_may_override(load_session):
    """load(override=True) also sets what is set already, and returns it."""
    code = "print('API_KEY' in hotenv.load(override=True), os.environ['API_KEY'])"
    assert _load_in(load_session, code, {"API_KEY": "mine"}) == "True k-1"


@pytest.mark.parametrize(
    "only, names",
    [
        (["API_KEY"], ["API_KEY"]),
        (["API_*", "OTHER"], ["API_KEY", "API_URL", "OTHER"]),
        (("NOPE",), []),
        ([], ["API_KEY", "API_URL", "OTHER", "RAW"]),
    ],
    ids=str,
)
def test_load_takes_names_and_prefixes(load_session, only, names):
    """load(only=...) sets the variables of these names and prefixes alone."""
    code = f"""
        loaded = hotenv.load(only={only!r})
        print(sorted(loaded) == {names!r}, ["OTHER" in os.environ, "OTHER" in loaded])
    """
    is_other = "OTHER" in names
    assert _load_in(load_session, code) == "True %s" % [is_other, is_other]


def test_load_takes_an_iterator_of_names(load_session):
    """load(only=...) takes whatever can be iterated over, once."""
    code = "print(sorted(hotenv.load(only=iter(['API_KEY', 'OTHER']))))"
    assert _load_in(load_session, code) == "['API_KEY', 'OTHER']"


def test_load_takes_no_single_text_for_names(load_session):
    """load(only="NAME") means that name, and not its letters."""
    code = "print(sorted(hotenv.load(only='API_KEY')))"
    assert _load_in(load_session, code) == "['API_KEY']"


def test_load_asks_a_name(load_session):
    """load(name=...) asks the session of that name."""
    assert _load_in(load_session, "print(hotenv.load(name='prod'))") == "{'A': 'named'}"


def test_load_asks_a_socket(load_session, session):
    """load(socket_path=...) asks the session there."""
    code = f"print(hotenv.load(socket_path={session.socket_path()!r}, only=['A']))"
    assert _load_in(load_session, code) == "{'A': '1'}"


_LOAD_CODES = """
    def code_of(**arguments):
        try:
            return hotenv.load(**arguments)
        except hotenv.HotenvError as error:
            return error.code
"""


def test_load_without_a_session_raises(project):
    """load() raises HotenvError 3 where there is no session, and 4 where it is dead."""
    print_both = "    print(code_of(), code_of(socket_path='/no/such.sock'))"
    assert _load_in(project, _LOAD_CODES + print_both) == "3 4"


def test_optional_load_needs_no_session(project):
    """load(optional=True) sets nothing where there is no session, or a dead one."""
    print_both = """
    print(code_of(optional=True), code_of(optional=True, socket_path='/no/such.sock'))"""
    assert _load_in(project, _LOAD_CODES + print_both) == "{} {}"


def test_optional_load_refuses_a_damaged_marker(project):
    """load(optional=True) raises where a marker is not to be believed."""
    project.marker.write_bytes(b"nonsense\n")
    print_it = "    print(code_of(optional=True))"
    assert _load_in(project, _LOAD_CODES + print_it) == "9"


def test_load_takes_keywords_alone(load_session):
    """load() takes no argument by its place: load(True) would be a riddle."""
    code = """
        try:
            hotenv.load(True)
        except TypeError:
            print("TypeError")
    """
    assert _load_in(load_session, code) == "TypeError"


def test_load_fills_no_session(project):
    """load() starts no session: only a command line asks a store."""
    store = _FillStore(project)
    print_it = "    print(code_of())"
    env = {"HOTENV_FILL": store.command}
    assert _load_in(project, _LOAD_CODES + print_it, env) == "3"
    assert store.times() == 0


def test_conftest_may_load(load_session):
    """A conftest.py that calls load() gives the variables to the tests."""
    place = load_session.dir / "tests"
    place.mkdir()
    start = f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
    (place / "conftest.py").write_text(start + "import hotenv\nhotenv.load(optional=True)\n")
    (place / "test_it.py").write_text(
        "import os\n\n\ndef test_key():\n    assert os.environ['API_KEY'] == 'k-1'\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(place)]
    done = subprocess.run(
        words, cwd=str(place), env=load_session.env, stdout=PIPE, stderr=STDOUT, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout.decode()


# ==== mask ========================================================================================
# A filter that knows the values: stdin to stdout, or a check.

_MASK_VALUES = {"TOKEN": TOKEN, "PEM": PEM, "PIN": "12", "OTHER": "another-secret"}


@pytest.fixture(scope="module")
def mask_session():
    """A Project with a session of _MASK_VALUES."""
    lines = ['%s="%s"\n' % pair for pair in _MASK_VALUES.items()]
    yield from standing("".join(lines).encode())


# What goes in, the options, and what comes out.
_MASK_TEXTS = [
    ("plain text\n", [], "plain text\n"),
    ("", [], ""),
    (f"a {TOKEN} b\n", [], "a [hidden:TOKEN] b\n"),
    (f"no newline {TOKEN}", [], "no newline [hidden:TOKEN]"),
    (f"{PEM}\n", [], "[hidden:PEM]\n"),
    (f"{TOKEN}{TOKEN}", [], "[hidden:TOKEN]"),
    ("pin 12\n", [], "pin 12\n"),
    (f"{TOKEN} another-secret", ["--no-mask", "TOKEN"], f"{TOKEN} [hidden:OTHER]"),
    (f"{TOKEN} another-secret", ["--no-mask", "T*,O*"], f"{TOKEN} another-secret"),
]


@pytest.mark.parametrize("text, options, masked", _MASK_TEXTS, ids=short)
def test_mask_hides_the_values(mask_session, text, options, masked):
    """`mask` copies stdin to stdout with the session's values hidden."""
    done = called(mask_session, "mask", *options, input=text.encode())
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == masked


def test_mask_leaves_other_bytes_alone(mask_session):
    """`mask` changes no other byte, of whatever kind, and in whatever amount."""
    noise = random.Random(SEED).getrandbits(8 * 3 << 20).to_bytes(3 << 20, "big")
    done = called(mask_session, "mask", input=noise)
    assert done.returncode == 0, done.stderr
    assert done.stdout == noise


class _MaskFilter:
    """A `mask` that runs, with pipes to its stdin and from its stdout."""

    def __init__(self, project, *options):
        self.process = project.start("mask", *options, stdin=PIPE, stdout=PIPE, stderr=PIPE)

    def write(self, data):
        """Write a piece."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def wait_read(self):
        """Wait until all that was written has been read."""
        waiting = bytearray(4)

        def is_read():
            fcntl.ioctl(self.process.stdin, termios.FIONREAD, waiting)
            return not any(waiting)

        until(is_read, "a `mask` that reads")

    def read(self, wanted):
        """Return what comes until this is in it."""
        return read_until(self.process.stdout.fileno(), wanted)

    def rest(self):
        """Close stdin; return the rest of stdout, stderr, and the exit status."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return out, err, self.process.returncode


def test_mask_passes_on_what_comes(mask_session):
    """`mask` writes a line as soon as it has come, and does not wait for the end."""
    running = _MaskFilter(mask_session)
    running.write(b"first %s line\n" % TOKEN.encode())
    assert running.read(rb"line\n") == b"first [hidden:TOKEN] line\n"
    running.write(b"a prompt: ")
    assert running.read(rb"prompt: ") == b"a prompt: "
    assert running.rest() == (b"", b"", 0)


def test_mask_hides_a_value_in_pieces(mask_session):
    """A value that comes in two pieces is hidden: its beginning waits for its end."""
    running = _MaskFilter(mask_session)
    running.write(b"before " + TOKEN[:9].encode())
    assert running.read(rb"before ") == b"before "
    running.write(TOKEN[9:].encode() + b" after")
    assert running.rest() == (b"[hidden:TOKEN] after", b"", 0)


def test_mask_ends_with_its_reader(mask_session):
    """`mask` ends by SIGPIPE when nobody reads any more, as other filters do."""
    running = _MaskFilter(mask_session)
    running.process.stdout.close()
    running.process.stdout = None
    with contextlib.suppress(BrokenPipeError):
        for _ in range(1000):
            running.write(b"line\n" * 1000)
    assert running.process.wait(PATIENCE) == -signal.SIGPIPE
    assert running.process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_mask_to_a_full_disk_is_8(mask_session):
    """`mask` that cannot write its output ends with 8."""
    with open("/dev/full", "wb") as full:
        done = mask_session.hotenv("mask", input=b"line\n", stdout=full)
    refusal(done, 8)


@pytest.mark.parametrize("options", [[], ["--check"]], ids=["mask", "check"])
def test_mask_refuses_an_unknown_name(mask_session, options):
    """--no-mask of a name that the session does not have is refused, and nothing passes."""
    done = called(mask_session, "mask", *options, "--no-mask", "TOKN", input=b"line\n")
    assert "TOKEN" in refusal(done, 2)
    assert done.stdout == b""


# Shell lines in the project directory, and the exit code of a `mask` there.
_MASK_NO_SESSIONS = [
    pytest.param("true", 3, id="none"),
    pytest.param("echo socket=/no/such.sock > .hotenv", 4, id="dead"),
    pytest.param("echo nonsense > .hotenv", 9, id="damaged"),
]


@pytest.mark.parametrize("lines, code", _MASK_NO_SESSIONS)
@pytest.mark.parametrize("options", [[], ["--check"]], ids=["mask", "check"])
def test_nothing_passes_without_a_session(project, options, lines, code):
    """Without a session nothing passes through `mask`, and its status is that of `run`."""
    project.sh("cd p; " + lines)
    done = called(project, "mask", *options, input=b"text with a secret\n")
    refusal(done, code)
    assert done.stdout == b""


# What goes into a check, and the lines that come on stderr.
_MASK_CHECKS = [
    (f"a\nb {TOKEN}\n", ["2: TOKEN"]),
    (f"{TOKEN}", ["1: TOKEN"]),
    (f"{TOKEN} {TOKEN}\n", ["1: TOKEN", "1: TOKEN"]),
    (f"another-secret {TOKEN}\n\n{TOKEN}\r\n", ["1: OTHER", "1: TOKEN", "3: TOKEN"]),
    (f"a\n{PEM}\n{TOKEN}\n", ["2: PEM", "6: TOKEN"]),
    (f"{PEM}{PEM}\n{TOKEN}\n", ["1: PEM", "8: TOKEN"]),
    ("x\n" * 70000 + base64.b64encode(TOKEN.encode()).decode(), ["70001: TOKEN"]),
    (f"a\rb\x0b\x0c\x1c\u2028\n{TOKEN}", ["2: TOKEN"]),
]


@pytest.mark.parametrize("text, lines", _MASK_CHECKS, ids=short)
def test_check_tells_lines_and_names(mask_session, text, lines):
    """`mask --check` ends with 1, and tells the line and the name of each value on stderr."""
    done = called(mask_session, "mask", "--check", input=text.encode())
    assert done.stderr.decode().splitlines() == lines
    assert done.stdout == b""
    assert done.returncode == 1


@pytest.mark.parametrize("text", ["", "clean\n", "12\n", TOKEN[:-1]], ids=short)
def test_check_of_clean_text_is_0(mask_session, text):
    """`mask --check` of a text without a value prints nothing, and ends with 0."""
    done = called(mask_session, "mask", "--check", input=text.encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_check_finds_a_value_in_pieces(mask_session):
    """`mask --check` finds a value that comes in pieces, and knows its line."""
    running = _MaskFilter(mask_session, "--check")
    running.write(b"one\ntwo " + TOKEN[:5].encode())
    running.wait_read()
    running.write(TOKEN[5:].encode() + b"\nthree\n" + PEM[:30].encode())
    running.wait_read()
    running.write(PEM[30:].encode() + b"\n")
    assert running.rest() == (b"", b"2: TOKEN\n4: PEM\n", 1)


def test_check_leaves_out_what_may_be_seen(mask_session):
    """`mask --check --no-mask` does not tell these names."""
    text = f"{TOKEN}\nanother-secret\n".encode()
    done = called(mask_session, "mask", "--check", "--no-mask", "TOKEN", input=text)
    assert done.stderr == b"2: OTHER\n"


def test_check_never_tells_a_value(mask_session):
    """`mask --check` shows nothing of its input, whatever spelling a value has there."""
    spellings = [TOKEN, base64.b64encode(b"user:" + TOKEN.encode()).decode(), TOKEN.encode().hex()]
    text = "\n".join(f"context {spelling} context" for spelling in [*spellings, PEM])
    done = called(mask_session, "mask", "--check", input=text.encode())
    assert done.returncode == 1
    assert re.fullmatch(rb"(?:\d+: [A-Z]+\n)+", done.stderr)


def test_check_holds_up_a_commit(project):
    """As a pre-commit hook, `mask --check` refuses a commit with a value, and no other."""
    if shutil.which("git", path=PATHS) is None:
        pytest.skip("needs git")
    project.serve(b"TOKEN=%s\n" % TOKEN.encode())
    check = shlex.join(project.command(["mask", "--check"]))
    project.sh("cd p; git init -q .; echo .hotenv > .git/info/exclude")
    hook = project.dir / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    executable(hook, "#!/bin/sh\nset -e\ngit diff --cached | " + check + "\n")

    def commit(text):
        (project.dir / "file").write_text(text)
        lines = "git add file && git -c user.name=n -c user.email=e commit -q -m x"
        return subprocess.run(
            ["sh", "-c", lines], cwd=str(project.dir), env={**project.env, "HOME": "/"},
            stdout=PIPE, stderr=PIPE, timeout=PATIENCE,
        )

    assert commit("clean\n").returncode == 0
    refused = commit(f"clean\nkey: {TOKEN}\n")
    assert refused.returncode == 1
    assert re.fullmatch(rb"\d+: TOKEN\n", refused.stderr)


# ==== completion ==================================================================================
# The Tab key in the real shells. A stand-in for `hotenv` is on PATH: it notes each start, and the
# arguments that it was given.



def _tab_param(shell):
    """Return a shell for a parametrized test, to be skipped where it is missing."""
    marks = []
    if shutil.which(shell) is None:
        marks = [pytest.mark.skip(reason="there is no %s here" % shell)]
    return pytest.param(shell, marks=marks)


_TAB_SHELLS = [_tab_param(shell) for shell in ("bash", "zsh", "fish")]

# The commands whose words are completed, as `hotenv --help` lists them.
_TAB_COMMANDS = ["serve", "run", "dump", "mask", "status", "stop", "hermetic", "mcp", "shellenv"]
_TAB_COMMANDS += ["completion", "help", "version"]

# How a shell learns the completion of a tool that is not hotenv.
_TAB_TOOL = {
    "bash": """
_xqtool() { COMPREPLY=($(compgen -W '--flavour --size' -- "${COMP_WORDS[COMP_CWORD]}")); }
complete -F _xqtool xqtool
complete -W 'vanilla mint' xqother
""",
    "zsh": """
_xqtool() { _arguments '--flavour[of it]' '--size[of it]' }
compdef _xqtool xqtool
_xqother() { _arguments '1:kind:(vanilla mint)' }
compdef _xqother xqother
""",
    "fish": """
complete -c xqtool -f -l flavour
complete -c xqtool -f -l size
complete -c xqother -f -a 'vanilla mint'
""",
}

# How a shell starts without its user's files, and what makes its Tab key quiet.
_TAB_STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "bind 'set bell-style none'\n"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; setopt no_beep no_prompt_sp\n",
    ),
    "fish": (["fish", "--no-config"], ""),
}


# The prompt, at the end of what a terminal has shown but for sequences that move nothing.
_TAB_PROMPT = rb"\$ (?:\x1b\[[?\d;]*[a-zA-Z])*$"


class _TabShell:
    """A shell that has read a completion, in a directory with files to complete.

    `last_word(line)` is the last word that `line` has behind a Tab key, if there is one way to go
    on; otherwise the words that are possible, or the line's own last word.
    """

    def __init__(self, shell, project, text):
        self.shell = shell
        self.root = project.root
        self.dir = project.dir
        tools = project.root / "bin"
        tools.mkdir()
        note = f"""printf '%s\\n' "$0" >> {self.root}/starts"""
        give = f"""printf '%s\\n' "$@" > {self.root}/new; mv {self.root}/new {self.root}/given"""
        for name in ("hotenv", "xqtool", "xqother"):
            executable(tools / name, f"#!/bin/sh\n{note}\n{give}\n")
        for name in ("python", "python3"):
            executable(tools / name, f"#!/bin/sh\n{note}\n")
        for name in ("xdirectory", "ydirectory"):
            (self.dir / name).mkdir()
        (self.dir / "xfile").touch()

        self.words, settings = _TAB_STARTS[shell]
        (project.root / "rc").write_bytes(settings.encode() + text + _TAB_TOOL[shell].encode())
        self.env = {
            "PATH": f"{tools}:{PATHS}",
            "HOME": str(project.root),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm",
            "PS1": "$ ",
        }
        self.ends = contextlib.ExitStack()
        self.terminal = None

    def last_word(self, line):
        """Return the word at the end of a line behind a Tab key."""
        if self.shell == "fish":
            return self._fish_word(line)
        if self.terminal is None:
            self._start()
        given = self.root / "given"
        os.write(self.terminal, line.encode() + b"\t")
        os.write(self.terminal, b"\n")
        until(given.exists, "%s to run what was typed: %s" % (self.shell, line))
        words = given.read_text().splitlines()
        given.unlink()
        read_until(self.terminal, _TAB_PROMPT)
        return words[-1]

    def starts(self):
        """Return the programs that were started, each with its path, and forget them."""
        path = self.root / "starts"
        if not path.exists():
            return []
        started = [os.path.basename(line) for line in path.read_text().splitlines()]
        path.unlink()
        return started

    def _start(self):
        """Start an interactive shell on a terminal, and have it read its file."""
        starting = on_terminal(*self.words, cwd=self.dir, env=self.env)
        _, self.terminal = self.ends.enter_context(starting)
        os.write(self.terminal, b". %s/rc; PS1='$ '; echo rea'd'y\n" % os.fsencode(self.root))
        read_until(self.terminal, rb"(?s)ready\r\n.*" + _TAB_PROMPT)

    def _fish_word(self, line):
        """Ask fish for what it would offer; return a word, or all of them."""
        script = 'source "$argv[1]"; complete -C "$argv[2]"'
        words = [*self.words, "-c", script, str(self.root / "rc"), line]
        done = subprocess.run(
            words, cwd=str(self.dir), env=self.env, stdout=PIPE, stderr=PIPE, timeout=PATIENCE
        )
        assert done.stderr == b"", done.stderr
        offered = [each.split("\t")[0] for each in done.stdout.decode().splitlines()]
        if len(offered) == 1:
            return offered[0]
        return offered


@pytest.fixture(scope="module", params=_TAB_SHELLS)
def tab_shell(request):
    """A _TabShell of each shell, with what `hotenv completion SHELL` prints."""
    with contextlib.closing(Project()) as project:
        text = called(project, "completion", request.param).stdout
        shell = _TabShell(request.param, project, text)
        with shell.ends:
            yield shell


def _tab_unique_beginnings(words):
    """Yield each word with its shortest beginning that no other of the words has."""
    for word in words:
        others = [other for other in words if other != word]
        for size in range(1, len(word)):
            if not any(other.startswith(word[:size]) for other in others):
                yield word, word[:size]
                break


def test_tab_completes_commands(tab_shell):
    """The Tab key completes each command."""
    cases = [case for case in _tab_unique_beginnings(_TAB_COMMANDS) if case[1] != "x"]
    seen = [(tab_shell.last_word("hotenv " + begun), begun) for _, begun in cases]
    assert seen == cases


def _tab_options_of(command):
    """Return the options of a command that its help tells."""
    done = subprocess.run([*INSTALLED, command, "--help"], stdout=PIPE, timeout=PATIENCE)
    return re.findall(r"(?m)^  (?:-\w(?: [A-Z]+)?, )?(--[a-z-]+)", done.stdout.decode())


@pytest.mark.parametrize("command", _TAB_COMMANDS[:-2])
def test_tab_completes_each_option(tab_shell, command):
    """The Tab key completes each option that the help of a command tells."""
    options = _tab_options_of(command)
    assert "--help" in options
    if command == "run":  # guards, which the help of `hermetic` tells
        options += ["--no-network", "--fs-write"]
    # Of options that share a beginning, enough is typed to tell them apart.
    cases = []
    for option in options:
        begun = option[:-1]
        if [other for other in options if other.startswith(begun)] == [option]:
            cases.append((option, begun))
    seen = [(tab_shell.last_word(f"hotenv {command} {begun}"), begun) for _, begun in cases]
    # A shell may add the `=` behind which a value is typed.
    assert [(word.rstrip("="), begun) for word, begun in seen] == cases


# What is typed before a Tab key, and the last word that it becomes.
_TAB_LINES = [
    ("hotenv dump --format dot", "dotenv"),
    ("hotenv dump --only A --format va", "value"),
    ("hotenv serve --format j", "json"),
    ("hotenv shellenv z", "zsh"),
    ("hotenv completion f", "fish"),
    ("hotenv help ses", "sessions"),
    ("hotenv help comp", "completion"),
    ("hotenv hermetic --profile exec", "exec-deny"),
    # Files and directories. `xfile` is no directory.
    ("hotenv run --bin xd", "xdirectory"),
    ("hotenv run --bin x", "xdirectory"),
    ("hotenv serve --log xf", "xfile"),
    ("hotenv run --socket xf", "xfile"),
    # Behind `--` stands another command.
    ("hotenv run -- xqt", "xqtool"),
    ("hotenv run -- xqtool --fl", "--flavour"),
    ("hotenv run -- xqtool --size --fl", "--flavour"),
    ("hotenv run --only A --mask -- xqtool --fl", "--flavour"),
    ("hotenv run -- xqother van", "vanilla"),
    ("hotenv hermetic --no-network -- xqtool --fl", "--flavour"),
    ("hotenv run -- cat xf", "xfile"),
]


@pytest.mark.parametrize("line, word", _TAB_LINES, ids=[line for line, _ in _TAB_LINES])
def test_tab_completes_a_line(tab_shell, line, word):
    """The Tab key completes values, files, directories, and what stands behind `--`."""
    # zsh takes the `/` behind a directory back when a line ends there.
    assert tab_shell.last_word(line).rstrip("/") == word


@pytest.mark.parametrize(
    "line, word",
    [
        ("hotenv dump --format=dot", "--format=dotenv"),
        ("hotenv run --bin=xd", "--bin=xdirectory"),
        ("hotenv hermetic --fs-readonly=xd", "--fs-readonly=xdirectory"),
    ],
)
def test_tab_completes_behind_an_equals_sign(tab_shell, line, word):
    """The Tab key completes a value behind an option and `=`."""
    assert tab_shell.last_word(line).rstrip("/") == word


def test_tab_offers_no_option_behind_the_dashes(tab_shell):
    """Behind `--` no option of hotenv is offered."""
    offered = tab_shell.last_word("hotenv run -- xqtool --opti")
    assert "--optional" not in offered


def test_tab_starts_no_python(tab_shell):
    """The Tab key starts neither hotenv nor a Python."""
    tab_shell.starts()
    for line in ("hotenv dump --format dot", "hotenv run --opti", "hotenv ver"):
        tab_shell.last_word(line)
    # What was typed is run behind the Tab key, but for fish, which is only asked.
    expected = [] if tab_shell.shell == "fish" else ["hotenv"] * 3
    assert tab_shell.starts() == expected


@pytest.mark.parametrize("shell", _TAB_SHELLS)
def test_shellenv_also_prints_the_completion(project, shell):
    """`shellenv SHELL` ends with what `completion SHELL` prints."""
    completion = called(project, "completion", shell).stdout
    function = called(project, "shellenv", shell).stdout
    assert completion
    assert function.endswith(completion)
    assert function != completion


def test_shellenv_of_sh_has_no_completion(project):
    """`shellenv sh` prints the function alone: a POSIX shell has no completion."""
    assert len(called(project, "shellenv", "sh").stdout.splitlines()) == 1


@pytest.mark.parametrize("shell", _TAB_SHELLS)
@pytest.mark.parametrize("command", ["completion", "shellenv"])
def test_completion_is_read_without_a_word(project, shell, command):
    """A script that is strict, and has no completion, reads the text, and goes on."""
    (project.root / "rc").write_bytes(called(project, command, shell).stdout)
    start = {
        "bash": ["bash", "-euc"],
        "zsh": ["zsh", "-feuc"],
        "fish": ["fish", "--no-config", "-c"],
    }
    script = 'eval "$(cat %s/rc)" && echo went on' % project.root
    if shell == "fish":
        script = "source %s/rc; and echo went on" % project.root
    done = subprocess.run([*start[shell], script], env=project.env, stdout=PIPE, stderr=PIPE)
    assert (done.stdout, done.stderr) == (b"went on\n", b"")


@pytest.mark.parametrize("shell", [_TAB_SHELLS[1]])
def test_completion_of_zsh_may_be_a_file(project, shell):
    """zsh finds the completion in a file `_hotenv` of its fpath, at the first Tab."""
    text = called(project, "completion", shell).stdout
    functions = project.root / "functions"
    functions.mkdir()
    (functions / "_hotenv").write_bytes(text)
    early = f"fpath=({functions} $fpath)\n"
    tab = _TabShell(shell, project, b"")
    rc = project.root / "rc"
    rc.write_text(early + rc.read_text())
    with tab.ends:
        assert tab.last_word("hotenv dump --format dot") == "dotenv"
        assert tab.last_word("hotenv stat") == "status"


@pytest.mark.parametrize("shell", [_TAB_SHELLS[2]])
def test_completion_of_fish_may_be_a_file(project, shell):
    """fish finds the completion in a file hotenv.fish of its directory of completions."""
    text = called(project, "completion", shell).stdout
    place = project.root / "config" / "fish" / "completions"
    place.mkdir(parents=True)
    (place / "hotenv.fish").write_bytes(text)
    tab = _TabShell(shell, project, b"")
    tab.words = ["fish"]
    tab.env["XDG_CONFIG_HOME"] = str(project.root / "config")
    tab.env["XDG_DATA_HOME"] = str(project.root / "data")
    assert tab.last_word("hotenv dump --format dot") == "dotenv"


@pytest.mark.parametrize("words", [["completion"], ["completion", "tcsh"]], ids=short)
def test_completion_of_no_shell_is_refused(project, words):
    """`completion` wants a shell that it knows, and names those."""
    message = refusal(called(project, *words), 2)
    assert re.search("(?s)bash.*zsh.*fish", message)


# ==== answers =====================================================================================
# What a new user gets for a mistake: what is wrong, and what to do.


def _answers_on_terminal(project, *words, cwd=None, env=None):
    """Run a command on a terminal, and return what it shows."""
    command = project.command(words)
    env = {**project.env, **(env or {})}
    with on_terminal(*command, cwd=cwd or project.dir, env=env) as (_, terminal):
        return read_until(terminal)


def _answers_background(project, *options, text=b"A=1\n", **more):
    """Start a session in the background, which must succeed."""
    done = called(project, "serve", "--background", *options, input=text, **more)
    assert done.returncode == 0, done.stderr


# -- serve -----------------------------------------------------------------------------------------


def test_empty_input_replaces_no_session(project):
    """`serve --force` without one byte of input leaves a live session as it is."""
    project.serve(b"A=live\n")
    before = project.files()
    assert "--empty" in refusal(called(project, "serve", "--force", input=b""), 7)
    assert project.files() == before
    assert project.dump() == {b"A": b"live"}


def test_serve_says_when_a_variable_hides_it(project):
    """A `serve` on a terminal says that HOTENV_SOCKET leads `run` to another session."""
    (project.root / "text").write_bytes(b"A=1\n")
    command = project.command(["serve", "--background"])
    env = {**project.env, "HOTENV_SOCKET": "/x"}
    options = {"cwd": project.dir, "env": env, "stdin": project.root / "text"}
    with on_terminal(*command, **options) as (_, terminal):
        assert b"HOTENV_SOCKET" in read_until(terminal)


@pytest.mark.parametrize("name", ["secrets.env", "my file", ".env"])
def test_file_as_an_argument_is_to_be_redirected(project, name):
    """A file that stands behind `serve` or `mask` is answered with how it goes to stdin."""
    (project.dir / name).write_bytes(b"A=1\n")
    for command in ("serve", "mask"):
        message = refusal(called(project, command, name), 2)
        assert f"{command} < {shlex.quote(name)}" in message


def test_ctrl_d_at_a_question_is_no_answer(project):
    """Ctrl-D at a question of `serve --prompt` is told to be no answer, 7."""
    (project.root / "text").write_bytes(b"A=?\n")
    command = project.command(["serve", "--prompt"])
    options = {"cwd": project.dir, "env": project.env, "stdin": project.root / "text"}
    with on_terminal(*command, **options) as (pid, terminal):
        seen = read_until(terminal, b"A: ")
        os.write(terminal, b"\x04")
        seen = read_until(terminal, None, seen)
        status = os.waitpid(pid, 0)[1]
    assert os.WEXITSTATUS(status) == 7
    assert re.search(rb"hotenv: no answer to A\r\n", seen)


def test_word_that_is_no_file_is_not_redirected(project):
    """A word behind `serve` that cannot be a file is not said to go to stdin."""
    message = refusal(called(project, "serve", "--timeout", "5", "minutes"), 2)
    assert "serve < secrets.env" in message
    assert "< minutes" not in message


def test_ctrl_d_at_once_is_no_failed_pipe(project):
    """Ctrl-D before the first line of a `serve` on a terminal is told, and no pipe is blamed."""
    command = project.command(["serve"])
    with on_terminal(*command, cwd=project.dir, env=project.env) as (_, terminal):
        seen = read_until(terminal, rb"Ctrl-D[^\n]*\n")
        os.write(terminal, b"\x04")
        seen = read_until(terminal, None, seen)
    assert b"hint: Ctrl-D came before" in seen
    assert b"pipe" not in seen


def test_zero_is_told_to_be_too_short(project):
    """A duration of 0 is not said to be outside of a range that begins with 0."""
    assert "above 0 and up to 366d" in refusal(called(project, "serve", "-t", "0"), 2)


# -- run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["deploy.sh", "my deploy"])
def test_forgotten_dot_and_slash_are_told(session, name):
    """A command that lies in this directory, and not on PATH, is answered with its path."""
    executable(session.dir / name, "#!/bin/sh\n")
    message = refusal(session.run(name), 8)
    advice = re.search(r"hint: [^\n]*: (run -- .*)", message)[1]
    done = session.hotenv(*shlex.split(advice))
    assert (done.returncode, done.stderr) == (0, b"")


def test_path_of_the_session_is_told(project):
    """A command that only the user's own PATH has is answered with where the other is from."""
    project.serve(b"PATH=/nowhere\n")
    message = refusal(project.run("sh"), 8)
    assert "your own PATH has it" in message
    assert "from the session" in message


def test_session_elsewhere_is_told(project):
    """In a wrong directory, a live session of another one is told, and how to find it."""
    project.serve()
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    message = refusal(called(project, "dump", cwd=elsewhere), 3)
    assert re.search(r"hint: another directory has a live session: .*status --all$", message)


def test_no_session_elsewhere_is_told(project):
    """Where no session is live, nothing is said of another directory."""
    project.with_own_tmp()
    ended(project.serve(), signal.SIGKILL)
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    assert "another directory" not in refusal(project.hotenv("dump", cwd=elsewhere), 3)


@only_root
def test_sudo_before_hotenv_is_told(project):
    """root in somebody's project is told the user id, and to put sudo behind hotenv."""
    project.serve()
    os.chown(str(project.marker), STRANGER, STRANGER)
    message = refusal(called(project, "dump"), 8)
    assert "--peer-uid %d" % STRANGER in message
    assert "run -- sudo --preserve-env=NAME COMMAND" in message


@pytest.mark.parametrize("text", ["false", "true"])
def test_failed_fill_says_where_to_try(project, text):
    """A store that fails, or prints nothing, is to be tried by hand, in the right directory."""
    message = refusal(called(project, "run", "--fill", text, "--", "true"), 3)
    assert re.search("hint: try it by hand: .*sh -c.* " + re.escape(str(project.dir)), message)


# -- stop ------------------------------------------------------------------------------------------


def test_stop_says_that_it_has_ended_a_session(project):
    """`stop` on a terminal says that a live session has ended."""
    project.serve()
    assert re.fullmatch(rb"hotenv: [^\n]*has ended\r\n", _answers_on_terminal(project, "stop"))


def test_stop_all_says_what_it_did(project):
    """`stop --all` on a terminal counts the sessions that it has ended, and the dead ones."""
    project.with_own_tmp()
    ended(project.serve(), signal.SIGKILL)
    for name in ("one", "two"):
        project.hotenv("serve", "--background", "--name", name, input=b"A=1\n")
    said = _answers_on_terminal(project, "stop", "--all")
    assert said == b"hotenv: ended 2 sessions, and cleared what 1 dead session left\r\n"


def test_stop_says_that_a_session_had_ended(project):
    """`stop` on a terminal says that a dead session had ended already, and clears it."""
    ended(project.serve(), signal.SIGKILL)
    said = _answers_on_terminal(project, "stop")
    assert re.fullmatch(rb"hotenv: [^\n]*had ended[^\n]*\r\n", said)
    assert project.files() == ["r/hotenv"]


def test_stop_waits_for_a_slow_disk(project, meddle):
    """When `stop` returns, no file is left, however long the server needs to remove the marker."""
    meddle("unlinkat:delay_enter=300000")
    project.serve()
    assert called(project, "stop").returncode == 0
    assert project.files() == ["r/hotenv"]


def test_stop_below_clears_a_dead_session(project):
    """`stop` below a directory with a dead session removes its marker."""
    ended(project.serve(), signal.SIGKILL)
    project.sh("mkdir p/below")
    assert called(project, "stop", cwd=project.dir / "below").returncode == 0
    assert not project.marker.exists()


def test_stop_clears_a_dead_session_of_a_name(project):
    """`stop --name` clears the dead session of that name."""
    _answers_background(project, "--name", "prod")
    marker = project.dir / ".hotenv.prod"
    path = marker.read_text()[len("socket=") : -1]
    with project.connect(path) as client:
        os.kill(peer_pid(client), signal.SIGKILL)
    until(lambda: called(project, "status", "-q", "--name", "prod").returncode == 4, "its death")
    assert called(project, "stop", "--name", "prod").returncode == 0
    assert project.files() == ["r/hotenv"]


@pytest.mark.parametrize("options", [[], ["--name", "prod"]], ids=["plain", "named"])
def test_stop_all_clears_a_marker_after_a_restart(project, options):
    """`stop --all` removes a dead marker here when the runtime directory has gone."""
    project.with_own_tmp()
    project.hotenv("serve", "--background", *options, input=b"A=1\n")
    (marker,) = project.dir.iterdir()
    path = marker.read_text()[len("socket=") : -1]
    with project.connect(path) as client:
        os.kill(peer_pid(client), signal.SIGKILL)
    shutil.rmtree(str(project.runtime))
    assert project.hotenv("stop", "--all").returncode == 0
    assert list(project.dir.iterdir()) == []


def test_stop_of_a_dead_session_spares_strange_files(project):
    """Invariant 7: a marker that names a dead socket of another program costs no file there."""
    place = project.root / "other"
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place / "config.sock"))
    (place / "config.json").write_text("{}")
    project.points_at(place / "config.sock")
    assert called(project, "stop").returncode == 0
    assert not project.marker.exists()
    assert sorted(os.listdir(str(place))) == ["config.json", "config.sock"]


# -- copies ----------------------------------------------------------------------------------------


@pytest.fixture
def answers_copy(project):
    """A Project with a session; `copy` is a copy of its directory, as `cp -r` makes it."""
    project.serve(b"A=original\n")
    project.copy = project.root / "copy"
    project.sh("cp -r p copy")
    return project


def test_stop_in_a_copy_is_refused(answers_copy):
    """`stop` in a copy of a project ends no session, and names where that session belongs."""
    before = answers_copy.files()
    message = refusal(called(answers_copy, "stop", cwd=answers_copy.copy), 10)
    assert re.search(r"\bcopy\b|copied", message)
    assert str(answers_copy.dir) in message
    assert answers_copy.files() == before
    assert answers_copy.dump() == {b"A": b"original"}


def test_stop_by_name_in_a_copy_is_refused(project):
    """`stop --name` in a copy is refused, and its advice has the name."""
    _answers_background(project, "--name", "prod")
    project.sh("cp -r p copy")
    message = refusal(called(project, "stop", "--name", "prod", cwd=project.root / "copy"), 10)
    assert "stop --name prod" in message


def test_serve_in_a_copy_is_told(answers_copy):
    """`serve` in a copy of a project is told that the marker was copied, and from where."""
    message = refusal(called(answers_copy, "serve", input=b"A=2\n", cwd=answers_copy.copy), 10)
    assert re.search(r"\bcopy\b|copied", message)
    assert str(answers_copy.dir) in message
    assert "--force" in message


def test_advice_for_a_copy_works(answers_copy):
    """The commands that `stop` in a copy advises can be typed: they end and clear what they say."""
    message = refusal(called(answers_copy, "stop", cwd=answers_copy.copy), 10)
    removal = re.search(r"rm [^\n]*", message)[0]
    subprocess.run(["sh", "-c", removal], cwd="/", check=True)
    assert not (answers_copy.copy / ".hotenv").exists()
    assert "cd %s && " % answers_copy.dir in message


@pytest.mark.parametrize("words", [["stop"], ["serve", "--force", "--background"]], ids=short)
def test_moved_project_is_no_copy(project, words):
    """In a project that was moved, its session is ended as ever."""
    server = project.serve(b"A=original\n")
    os.rename(str(project.dir), str(project.root / "moved"))
    done = called(project, *words, input=b"A=2\n", cwd=project.root / "moved")
    assert done.returncode == 0, done.stderr
    project.dir = project.root / "moved"
    if words == ["stop"]:
        assert ended(server) == 0
        assert not project.marker.exists()
    else:
        assert project.dump() == {b"A": b"2"}
        assert len(list(project.runtime.glob("*.sock"))) == 1


# -- sockets ---------------------------------------------------------------------------------------

_ANSWERS_ASKING = [["run", "--", "true"], ["dump"], ["mask"], ["status"], ["stop"]]


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
@pytest.mark.parametrize("how", ["--socket", "HOTENV_SOCKET"])
def test_marker_for_a_socket_is_told(session, words, how):
    """A socket that is a marker is told to be one, and how to get at the socket."""
    options, env = [], {}
    if how == "--socket":
        options = ["--socket", str(session.marker)]
    else:
        env = {"HOTENV_SOCKET": str(session.marker)}
    message = refusal(called(session, words[0], *options, *words[1:], env=env), 4)
    assert "is a marker" in message
    advice = re.search(r"cut -d= [^\n]*", message)[0]
    printed = subprocess.run(["sh", "-c", advice], stdout=PIPE, check=True).stdout
    assert printed.decode() == session.socket_path() + "\n"
    assert session.ask().startswith(b'{"env"')


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
def test_plain_file_for_a_socket_is_told(project, words):
    """A socket that is a plain file is told to be one, and the file stays."""
    path = project.root / "secrets.env"
    path.write_text("A=1\n")
    message = refusal(called(project, words[0], "--socket", str(path), *words[1:]), 4)
    assert "plain file" in message
    assert "without --socket" in message
    assert path.read_text() == "A=1\n"


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
def test_socket_that_hangs_up_is_told(project, answerer, words):
    """Another program that hangs up without an answer is no session that has just ended."""
    message = refusal(called(project, words[0], "--socket", answerer(b"").path, *words[1:]), 4)
    assert "hangs up" in message
    assert "another program's socket" in message
    assert "just ended" not in message


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
def test_directory_for_a_socket_is_told(project, words):
    """A socket that is a directory is told to be one."""
    message = refusal(called(project, words[0], "--socket", "/", *words[1:]), 4)
    assert "directory, and no socket" in message


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
def test_missing_socket_is_told(project, words):
    """A socket that does not exist is told so, also by `stop`: there was a slip of the pen."""
    path = str(project.root / "typo.sock")
    message = refusal(called(project, words[0], "--socket", path, *words[1:]), 4)
    assert "no such socket" in message


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
def test_empty_socket_option_is_told(project, words):
    """An empty --socket is told to be empty: a variable of the shell may be."""
    message = refusal(called(project, words[0], "--socket", "", *words[1:]), 2)
    assert "--socket" in message
    assert "empty" in message


# What another program may answer to whatever hotenv asks.
_ANSWERS_OTHERS = [
    pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="greets"),
    pytest.param(b"\0\0\0\1\5", id="agent"),
    pytest.param(b'{"jsonrpc":"2.0","error":{"code":-32600}}\n', id="JSON"),
]


@pytest.mark.parametrize("words", _ANSWERS_ASKING, ids=short)
@pytest.mark.parametrize("response", _ANSWERS_OTHERS)
def test_socket_of_another_program_is_told(project, answerer, words, response):
    """A socket at which another program answers is told so, and is no live session."""
    server = answerer(response)
    done = called(project, words[0], "--socket", server.path, *words[1:])
    assert done.returncode in (4, 8, 9), done.stdout
    message = refusal(done, done.returncode)
    assert "another program" in message
    assert done.stdout == b""


# -- directories -----------------------------------------------------------------------------------


def test_missing_runtime_base_is_told(project):
    """An XDG_RUNTIME_DIR that does not exist and cannot be made is told so."""
    (project.root / "file").touch()
    base = str(project.root / "file" / "run")
    env = {"XDG_RUNTIME_DIR": base}
    message = refusal(called(project, "serve", input=b"A=1\n", env=env), 8)
    assert "XDG_RUNTIME_DIR" in message
    assert base in message
    assert "does not exist" in message
    assert "move" not in message
    assert project.files() == []


@only_root
def test_fill_without_a_runtime_base_is_told(project):
    """A fill is refused by the same words, before the store is asked."""
    (project.root / "file").touch()
    store = _FillStore(project)
    env = {"XDG_RUNTIME_DIR": str(project.root / "file" / "run")}
    words = ["run", "--fill", store.command, "--", "true"]
    assert "XDG_RUNTIME_DIR" in refusal(called(project, *words, env=env), 8)
    assert store.times() == 0


@only_root
@pytest.mark.parametrize("words", [["serve"], ["stop"], ["dump"], ["run", "--", "true"]], ids=short)
def test_strangers_marker_gets_no_vain_advice(project, words):
    """Of somebody else's marker in a shared directory nobody is told to replace or remove it."""
    project.with_own_tmp()
    project.for_strangers()
    project.points_at("/no/such.sock")
    os.chown(str(project.marker), STRANGER, STRANGER)
    project.dir.chmod(0o1777)
    done = project.hotenv(*words, input=b"A=1\n", preexec_fn=become(STRANGER + 1))
    message = refusal(done, 10 if words == ["serve"] else 8)
    assert "somebody else" in message
    assert not re.search(r"--force|\brm\b|remove|move it", message), message
    if words == ["serve"]:
        assert "directory of your own" in message


def test_no_session_may_have_expired(project):
    """The error where there is no session says that one may have expired."""
    assert "expired" in refusal(called(project, "run", "--", "true"), 3)


def test_session_without_its_marker_is_named(project):
    """Where a marker has gone, the error names the socket of the session that lives on."""
    project.serve(b"A=1\n")
    path = project.socket_path()
    project.marker.unlink()
    project.sh("mkdir p/below")
    message = refusal(called(project, "run", "--", "true", cwd=project.dir / "below"), 3)
    assert "--socket " + path in message
    assert project.dump("--socket", path) == {b"A": b"1"}


def test_lost_session_of_elsewhere_is_not_named(project):
    """A session of another directory is no help, and is not named; nor is one that is dead."""
    project.serve(b"A=1\n")
    elsewhere = project.root / "pq"
    elsewhere.mkdir()
    message = refusal(called(project, "run", "--", "true", cwd=elsewhere), 3)
    assert "--socket" not in message


def test_dead_session_without_its_marker_is_not_named(project):
    """A session that is dead and has no marker is not named: nobody could use it."""
    ended(project.serve(), signal.SIGKILL)
    project.marker.unlink()
    assert "--socket" not in refusal(called(project, "run", "--", "true"), 3)


@pytest.mark.parametrize("how", ["--name", "HOTENV_NAME"])
def test_wrong_name_is_told_the_right_ones(project, how):
    """Where no session has the name, the error names the live sessions of this directory."""
    _answers_background(project, "--name", "prod")
    _answers_background(project, "--name", "staging")
    _answers_background(project)
    options = ["--name", "pord"] if how == "--name" else []
    env = {} if options else {"HOTENV_NAME": "pord"}
    message = refusal(called(project, "run", *options, "--", "true", env=env), 3)
    assert "--name prod\n" in message
    assert "--name staging\n" in message
    assert "leave out --name and HOTENV_NAME" in message


def test_missing_name_is_told_the_names(project):
    """Where only named sessions are here, a command without a name is told their names."""
    _answers_background(project, "--name", "prod")
    assert "--name prod" in refusal(called(project, "run", "--", "true"), 3)


# -- words -----------------------------------------------------------------------------------------

# What users of other tools type, and what must be among the words of the answer.
_ANSWERS_WORDS = [
    (["dump", "API_KEY"], "dump --only API_KEY"),
    (["get", "API_KEY"], "dump --only API_KEY --format value"),
    (["get"], "dump --only NAME --format value"),
    (["list"], "dump --format names"),
    (["ls"], "dump --format names"),
    (["show"], "dump"),
    (["show", "API_KEY"], "dump --only API_KEY"),
    (["export"], "dump --format sh"),
    (["export", "API_KEY"], "dump --format sh --only API_KEY"),
    (["env"], "dump"),
    (["env", "API_KEY"], "dump --only API_KEY"),
    (["env", "printenv", "API_KEY"], "run -- printenv API_KEY"),
    (["print"], "dump"),
    (["print", "API_KEY"], "dump --only API_KEY"),
    (["printenv", "API_KEY"], "run -- printenv API_KEY"),
    (["restart"], "serve --force"),
    (["reload"], "serve --force"),
    (["refresh"], "serve --force"),
    (["stop", "prod"], "stop --name prod"),
    (["status", "prod"], "status --name prod"),
]


@pytest.mark.parametrize("words, meant", _ANSWERS_WORDS, ids=ascii)
def test_words_of_others_are_known(project, words, meant):
    """What users of other tools type is answered with hotenv's command for it."""
    message = refusal(called(project, *words), 2)
    assert re.search(re.escape(meant) + r"(?![\w-])(?! [A-Z-])", message), message


@pytest.fixture
def answers_prod(project):
    """A Project with a plain session and one named prod, both of API_KEY."""
    _answers_background(project, text=b"API_KEY=1\n")
    _answers_background(project, "--name", "prod", text=b"API_KEY=1\n")
    return project


_ANSWERS_TYPED = [words for words, _ in _ANSWERS_WORDS if words != ["get"]]


@pytest.mark.parametrize("words", _ANSWERS_TYPED, ids=ascii)
def test_answer_can_be_typed(answers_prod, words):
    """What an answer suggests is no mistake itself."""
    message = refusal(called(answers_prod, *words), 2)
    said = re.search("`hotenv ([^`\n]+)`|: ((?:dump|stop|status) --[^\n]+)", message)
    assert said, message
    meant = shlex.split(said[1] or said[2])
    text = b"API_KEY=1\n"
    if meant[0] == "serve":
        meant += ["--background"]
    done = called(answers_prod, *meant, input=text)
    assert done.returncode == 0, (meant, done.stderr)


def test_unknown_name_shows_few_names(project):
    """Of many names of a session, a name that it lacks is answered with the nearest alone."""
    names = ["DATABASE_URL", "API_KEY"] + ["OTHER_%03d" % number for number in range(200)]
    _answers_background(project, text="".join(f"{name}=1\n" for name in names).encode())
    message = refusal(called(project, "dump", "--only", "DATABASEURL"), 2)
    assert "DATABASE_URL" in message
    assert "OTHER" not in message
    assert "API_KEY" not in message


@pytest.mark.parametrize(
    "words, telling",
    [
        (["run", "--", "/"], "is a directory"),
        (["run", "--", "./x"], r"not executable(?s:.*)chmod \+x \./x"),
    ],
    ids=short,
)
def test_what_cannot_run_is_told_why(answers_prod, words, telling):
    """A command that cannot run is told why, and what to do."""
    executable(answers_prod.dir / "x", "text", 0o644)
    assert re.search(telling, refusal(called(answers_prod, *words), 8))


def test_advice_for_an_odd_name_works(answers_prod):
    """The command that makes a program executable can be typed, whatever the program's name."""
    path = answers_prod.dir / "it's $one"
    executable(path, "#!/bin/sh\necho ran\n", 0o644)
    words = ["run", "--", "./it's $one"]
    advice = re.search("chmod [^\n]*", refusal(called(answers_prod, *words), 8))[0]
    subprocess.run(["sh", "-c", advice], cwd=str(answers_prod.dir), check=True)
    assert called(answers_prod, *words).stdout == b"ran\n"


def test_user_id_is_a_number(project):
    """`--peer-uid root` is answered with that a number is wanted, and where to find it."""
    message = refusal(called(project, "dump", "--peer-uid", "root"), 2)
    assert "number" in message
    assert "id -u" in message


@pytest.mark.parametrize("option", ["allowed", "Deny", "comment"])
def test_wrong_key_of_a_policy_is_named(project, tmp_path, option):
    """A policy with a key that is none is refused by the name of that key."""
    (tmp_path / "policy").write_text(json.dumps({"allow": ["git"], option: ["sudo"]}))
    project.serve()
    done = called(project, "mcp", "--policy", str(tmp_path / "policy"))
    message = refusal(done, 2)
    assert repr(option) in message or '"%s"' % option in message
    assert "deny" in message


# A file that asks for a guard which `run` does not heed.
_ANSWERS_GUARD_FILES = [
    ("pyproject.toml", "[tool.hermetic]\nno-network = true\n"),
    ("pyproject.toml", '[project]\nname = "x"\n\n[tool.hermetic]\nno_network = true\n'),
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python reads no TOML")
@pytest.mark.parametrize("name, text", _ANSWERS_GUARD_FILES, ids=short)
def test_guard_of_a_file_is_told_not_to_count(project, name, text):
    """`run` without a guard says, by one line on a terminal, that a file's guards do not count."""
    project.serve()
    (project.dir / name).write_text(text)
    for words in (["run", "--", "echo", "ran"], ["run", "--only", "A", "--", "echo", "ran"]):
        said = _answers_on_terminal(project, *words)
        assert re.fullmatch(rb"hotenv: [^\n]*no-network[^\n]*\r\nran\r\n", said), said
        assert name.encode() in said
    assert called(project, "run", "--", "true").stderr == b""


@pytest.mark.parametrize(
    "text",
    ["", "[tool.other]\nno-network = true\n", "[tool.hermetic]\ntrace = true\n"],
    ids=short,
)
def test_file_without_a_guard_is_not_spoken_of(project, text):
    """`run` says nothing of a pyproject.toml that asks for no guard."""
    project.serve()
    (project.dir / "pyproject.toml").write_text(text)
    assert _answers_on_terminal(project, "run", "--", "echo", "ran") == b"ran\r\n"


def test_quiet_optional_run_says_nothing(project):
    """`run --optional -q` without a session adds no line to what the command says."""
    done = called(project, "run", "--optional", "-q", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


def test_optional_run_says_one_line(project):
    """`run --optional` without a session says so by one line."""
    done = called(project, "run", "--optional", "--", "echo", "out")
    assert (done.returncode, done.stdout) == (0, b"out\n")
    assert re.fullmatch(rb"hotenv: [^\n]+\n", done.stderr)


def test_help_has_the_exit_codes(project):
    """`help exit` explains each exit code, and the last line of the help leads there."""
    told = called(project, "help", "exit").stdout.decode()
    assert re.findall(r"(?m)^  (\d+) ", told) == ["0", "1", "2", "3", "4", "7", "8", "9", "10"]
    last_line = called(project, "--help").stdout.decode().splitlines()[-1]
    assert "hotenv help exit" in last_line


# -- status ----------------------------------------------------------------------------------------


def test_status_tells_all_of_a_session(project):
    """`status` tells the name, the variables, the idle timeout, the age, and the last use."""
    options = ["--name", "prod", "--timeout", "90s", "--max-age", "2h"]
    _answers_background(project, *options, text=b"A=1\nB=2\nA=3\n")
    text = called(project, "status", "--name", "prod").stdout.decode()
    told = dict(re.findall(r"(?m)^(\w[\w ]*?)  +(.+)$", text))
    assert told["name"] == "prod"
    assert told["variables"] == "2"
    assert told["idle timeout"] == "1m30s"
    assert told["max age"] == "2h"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", told["last use"])


def test_status_tells_all_as_json(project):
    """`status --json` tells the same by numbers."""
    options = ["--timeout", "90s", "--max-age", "2h"]
    _answers_background(project, *options, text=b"A=1\nB=2\n")
    told = json.loads(called(project, "status", "--json").stdout.decode())
    seen = {key: told[key] for key in ("name", "variables", "idle_timeout", "max_age")}
    assert seen == {"name": "", "variables": 2, "idle_timeout": 90.0, "max_age": 7200.0}


def test_status_without_a_maximal_age_says_so(project):
    """Without --max-age `status` says that there is none."""
    _answers_background(project)
    assert re.search(r"(?m)^max age +none$", called(project, "status").stdout.decode())
    assert json.loads(called(project, "status", "--json").stdout.decode())["max_age"] is None


def _answers_last_use(project):
    """Return the last use that `status --json` tells."""
    return json.loads(called(project, "status", "--json").stdout.decode())["used"]


def test_last_use_is_the_last_request(project):
    """The last use is the time of the last request that was answered, and not of `status`."""
    before = time.time()
    _answers_background(project)
    started = _answers_last_use(project)
    assert before - 1 <= started <= time.time() + 1
    assert _answers_last_use(project) == started

    def is_later():
        project.ask()
        return _answers_last_use(project) > started

    until(is_later, "a later last use")


def _answers_record(project):
    """Return the path of the record beside the session's socket."""
    return Path(project.socket_path()[: -len(".sock")] + ".json")


def test_record_is_its_users_alone(project):
    """The record of a session is a plain file of the mode 0600 beside its socket."""
    _answers_background(project)
    assert mode(_answers_record(project)) == 0o600
    assert stat.S_ISREG(os.lstat(str(_answers_record(project))).st_mode)


def test_record_has_no_name_and_no_value(project):
    """The record has no name and no value of a variable."""
    _answers_background(project, text=b"XQ_NAME=xq-value\nXQ_OTHER='xq\nlines'\n")
    text = _answers_record(project).read_text().lower()
    assert "xq" not in text


def test_record_goes_with_its_session(project):
    """A session leaves neither its socket nor its record."""
    _answers_background(project)
    assert called(project, "stop").returncode == 0
    assert project.files() == ["r/hotenv"]


# What somebody may have left in place of a record.
_ANSWERS_RECORDS = [
    "",
    "null",
    "[]",
    "{}",
    "{",
    '{"directory": 1}',
    "\ufffd" * 100,
    "[" * 100000,
]


@pytest.mark.parametrize("text", _ANSWERS_RECORDS, ids=short)
def test_damaged_record_hinders_nothing(project, text):
    """With a damaged record `status` tells what it knows, and `stop` ends the session."""
    _answers_background(project)
    _answers_record(project).write_text(text)
    told = called(project, "status")
    assert told.returncode == 0, told.stderr
    assert project.socket_path() in told.stdout.decode()
    assert called(project, "stop").returncode == 0
    assert not project.marker.exists()


def test_record_that_is_a_link_is_not_read(project):
    """A link in place of a record is not followed."""
    _answers_background(project, "--timeout", "90s")
    record = _answers_record(project)
    os.rename(str(record), str(project.root / "moved"))
    record.symlink_to(project.root / "moved")
    told = json.loads(called(project, "status", "--json").stdout.decode())
    assert told["idle_timeout"] is None


# -- recipes ---------------------------------------------------------------------------------------


def _answers_readme():
    """Return the README, and the lines of its indented blocks."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    return text, [line for line in text.splitlines() if line.startswith("    ")]


def test_readme_script_ends_its_session():
    """The script in the README ends its session whatever happens."""
    _, lines = _answers_readme()
    assert [line for line in lines if re.match(r" +trap '.*hotenv stop.*' EXIT$", line)] != []


def test_readme_asks_no_status_before_a_store():
    """No recipe asks `status` and then a store: ten at once would ask ten times."""
    text, _ = _answers_readme()
    assert re.findall(r"(?m)^ +.*status -q *\|\|.*serve", text) == []


def test_readme_commands_have_no_comment_behind():
    """No command of the README ends in a comment, which an interactive zsh takes for words."""
    _, lines = _answers_readme()
    typed = re.compile(r" +(?:\$ )?(?:python3 )?[\w./-]*hotenv(?:\.py)? |.*\| *hotenv ")
    commands = [line for line in lines if typed.match(line)]
    assert commands != []
    assert [line for line in commands if re.search(r"\s# ", line)] == []


# ==== regressions of OpenSSH's agent ==============================================================
# What keeps keys in memory for a while has been attacked before. Three tests of OpenSSH's
# regress/ directory are promises of hotenv, too, and are kept here under their names.


@pytest.fixture
def plain_agent(project):
    """A Project of a plain user; `agent` is the process of a session that allows core files."""
    as_owner = None
    if ROOT:
        # Root could trace every process, so that the session has to be another user's.
        as_owner = strangers(project, STRANGER)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]

    def before():
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        if as_owner:
            as_owner()

    project.before = before
    project.agent = project.serve(b"TOKEN=s3cr3t\n", preexec_fn=before)
    return project


# What a user tries on a process of the same user: code for a Python, in which PID is the process.
# The code ends with 0 if the memory of the process is open.
_AGENT_PTRACE = {
    "gdb": """
        import subprocess
        words = ["gdb", "-nx", "-batch", "-p", str(PID), "-ex", "print $pc"]
        seen = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
        sys.exit(b"$1 = " not in seen)
    """,
    "ptrace": """
        attach = 16
        sys.exit(libc.ptrace(attach, PID, None, None) != 0)
    """,
    "ptrace that seizes": """
        seize = 0x4206
        sys.exit(libc.ptrace(seize, PID, None, None) != 0)
    """,
    "memory by its file": """
        open("/proc/%d/mem" % PID, "rb")
    """,
    "memory that is written": """
        open("/proc/%d/mem" % PID, "r+b")
    """,
    "memory by process_vm_readv": """
        class Piece(ctypes.Structure):
            _fields_ = [("place", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        # The attempt reads at the address of its own buffer. In another process nothing need be
        # there (EFAULT), but only who may not read it at all is told so.
        room = ctypes.create_string_buffer(8)
        here = Piece(ctypes.addressof(room), 8)
        seen = libc.process_vm_readv(PID, ctypes.byref(here), 1, ctypes.byref(here), 1, 0)
        sys.exit(seen < 0 and ctypes.get_errno() == errno.EPERM)
    """,
    "map of the memory": """
        sys.exit(not open("/proc/%d/maps" % PID).read())
    """,
    "environment": """
        open("/proc/%d/environ" % PID, "rb").read()
    """,
    "a descriptor": """
        pidfd_open, pidfd_getfd = 434, 438
        sys.exit(libc.syscall(pidfd_getfd, libc.syscall(pidfd_open, PID, 0), 0, 0) < 0)
    """,
}


def _agent_attempt(project, attempt, pid):
    """Return whether the owner of a session succeeds with an attempt on a process."""
    prelude = (
        "import ctypes, errno, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]\n"
        f"PID = {pid}\n"
    )
    code = prelude + textwrap.dedent(_AGENT_PTRACE[attempt])
    done = subprocess.run(
        [project.program[0], "-S", "-c", code],
        preexec_fn=project.before,
        stdout=DEVNULL,
        stderr=DEVNULL,
        timeout=PATIENCE,
    )
    return done.returncode == 0


@only_root
def test_agent_getpeereid(project):
    """Another user who can reach the socket, through directories that were opened, gets nothing."""
    project.serve(b"TOKEN=s3cr3t\n", preexec_fn=lambda: os.umask(0))
    path = project.socket_path()
    for place in (project.root, project.base, project.runtime):
        place.chmod(0o755)

    def ask():
        become(STRANGER)()
        assert stat.S_ISSOCK(os.stat(path).st_mode), "the socket cannot even be reached"
        try:
            project.ask(DUMP, path)
        except PermissionError:
            return 1
        return 2

    assert in_child(ask) == 1
    assert project.ask() == b'{"env":{"TOKEN":"s3cr3t"}}\n'


@only_linux
@pytest.mark.parametrize("attempt", _AGENT_PTRACE)
def test_agent_ptrace(plain_agent, attempt):
    """Who runs as the same user can neither trace a session's process nor read its memory."""
    if attempt == "gdb" and not shutil.which("gdb"):
        pytest.skip("gdb is not installed")
    ordinary = subprocess.Popen(["sleep", "600"], preexec_fn=plain_agent.before)
    plain_agent.started.append(ordinary)
    if not _agent_attempt(plain_agent, attempt, ordinary.pid):
        pytest.skip("this system closes every process to others of its user")
    assert not _agent_attempt(plain_agent, attempt, plain_agent.agent.pid)
    assert plain_agent.agent.poll() is None


def _agent_core(process):
    """End a process by SIGABRT, and return whether it has left a core file."""
    os.kill(process.pid, signal.SIGABRT)
    return os.WCOREDUMP(os.waitpid(process.pid, 0)[1])


@only_linux
def test_agent_ptrace_core(plain_agent):
    """A session's process that dies of a fault leaves no core file."""
    if Path("/proc/sys/kernel/core_pattern").read_bytes()[:1] in b"|/":
        pytest.skip("core files go elsewhere here")
    options = {"cwd": str(plain_agent.dir), "preexec_fn": plain_agent.before}
    if not _agent_core(subprocess.Popen(["sleep", "600"], **options)):
        pytest.skip("no process leaves a core file here")
    assert not _agent_core(plain_agent.agent)


@pytest.mark.parametrize("limit", ["--timeout", "--max-age"])
def test_agent_timeout(project, limit):
    """Before the time limit a session hands out its values, after it nobody gets one."""
    server = project.serve(b"TOKEN=s3cr3t\n", limit, "2")
    path = project.socket_path()
    assert project.ask() == b'{"env":{"TOKEN":"s3cr3t"}}\n'
    assert server.wait(PATIENCE) == 0
    refusal(project.hotenv("dump"), 3)
    refusal(project.hotenv("dump", "--socket", path), 4)


@pytest.mark.parametrize("limit", ["--timeout", "--max-age"])
def test_agent_timeout_of_a_request(project, limit):
    """A request that came before the time limit gets no value after it."""
    server = project.serve(b"TOKEN=s3cr3t\n", limit, "2")
    ends_at = project.ends_at()
    with project.connect() as client:
        server.send_signal(signal.SIGSTOP)
        client.sendall(DUMP)
        until(lambda: time.time() > ends_at + 0.1, "the time limit")
        server.send_signal(signal.SIGCONT)
        assert answer(client) == b""
    assert server.wait(PATIENCE) == 0


# ==== escapes from a sandbox without network ======================================================
# What Codex tries in its own sandbox for Linux (openai/codex, Apache-2.0: the file
# codex-rs/linux-sandbox/tests/suite/landlock.rs), tried here under --no-network. Codex takes hosts
# of the internet; here the commands reach servers of this machine, so that each of them succeeds
# where nothing is guarded.

# The words of each command. HTTP is a web server, PORT is its port, NAME is a name that a name
# server knows, and SSH stands for the options with which ssh finds the host `host`.
_ESCAPES = {
    "curl": ["curl", "-I", "http://HTTP/"],
    "wget": ["wget", "-qO-", "http://HTTP/"],
    "ping": ["ping", "-c", "1", "127.0.0.1"],
    "nc": ["nc", "-z", "127.0.0.1", "PORT"],
    "ssh": ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=1", "SSH", "host", "true"],
    "getent": ["getent", "ahosts", "NAME"],
    "bash": ["bash", "-c", "echo hi > /dev/tcp/127.0.0.1/PORT"],
}

# A name server for the network namespace in which it is started: every name has the address
# 192.0.2.1, and none has one of IPv6. It prints a line when it can be asked.
_ESCAPES_NAME_SERVER = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    asked, client = server.recvfrom(512)
    end = asked.index(0, 12) + 5
    is_v4 = asked[end - 4 : end - 2] == b"\\0\\1"
    counts = b"\\0\\1" + (b"\\0\\1" if is_v4 else b"\\0\\0") + bytes(4)
    found = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4" + bytes([192, 0, 2, 1]) if is_v4 else b""
    server.sendto(asked[:2] + b"\\x81\\x80" + counts + asked[12:end] + found, client)
"""


@pytest.fixture(scope="module")
def escapes_server():
    """The address HOST:PORT of a web server on this machine."""

    class Answer(http.server.BaseHTTPRequestHandler):
        """Answers each request by an empty page."""

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *words):
            """Keep the output of the tests as it is."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield "127.0.0.1:%d" % server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def escapes_names():
    """The words that start a program in a network namespace with a name server of its own."""
    if not ROOT or not LINUX:
        pytest.skip("needs root, and namespaces of Linux")
    with contextlib.closing(Project()) as holder:
        (holder.root / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        lines = 'ip link set lo up && mount --bind "$0" /etc/resolv.conf && exec "$@"'
        words = ["unshare", "--net", "--mount", "sh", "-c", lines, str(holder.root / "resolv.conf")]
        server = subprocess.Popen(
            [*words, sys.executable, "-S", "-c", _ESCAPES_NAME_SERVER], stdout=PIPE, stderr=DEVNULL
        )
        holder.started.append(server)
        if server.stdout.readline() != b"ready\n":
            pytest.skip("needs ip(8), and namespaces for the network and for mounts")
        yield ["nsenter", "--net", "--mount", "--target", str(server.pid)]


@pytest.fixture
def escape(request, guards_runtime, tmp_path):
    """escape(name, *guards): run a command of the table, under guards or without any."""

    def run(name, *guards):
        words = list(_ESCAPES[name])
        if not shutil.which(words[0]):
            pytest.skip(words[0] + " is not installed")

        # 1. Fill the gaps in the words, each with a server that is started for it alone.
        before = []
        if "SSH" in words:
            place = words.index("SSH")
            words[place : place + 1] = request.getfixturevalue("host").command[1:-1]
        elif "NAME" in words:
            before = request.getfixturevalue("escapes_names")
            words[words.index("NAME")] = "example.test"
        elif name != "ping":
            address = request.getfixturevalue("escapes_server")
            port = address.rpartition(":")[2]
            words = [word.replace("HTTP", address).replace("PORT", port) for word in words]

        # 2. Start the command. By itself wget would try again for minutes.
        (tmp_path / "wgetrc").write_text("tries = 1\n")
        env = environment(guards_runtime, WGETRC=str(tmp_path / "wgetrc"))
        if guards:
            hotenv_words = [sys.executable, guards_runtime + "/installed", "hermetic", *guards]
            words = [*hotenv_words, "--", *words]
        return output_of([*before, *words], guards_runtime, tmp_path, env)

    return run


@only_kernel
@pytest.mark.parametrize("name", _ESCAPES)
def test_escape_succeeds_without_guards(escape, name):
    """Without guards the command gets through, or the table would show nothing."""
    done = escape(name)
    if name == "ping" and "permitted" in done.stderr:
        pytest.skip("this system lets nobody ping")
    assert done.returncode == 0, done.stderr


@only_kernel
@pytest.mark.parametrize("name", _ESCAPES)
def test_escape_is_blocked(escape, name):
    """Under --no-network the command does not get through, and says so by its exit status."""
    done = escape(name, "--no-network")
    assert done.returncode != 0, done.stdout
    assert "hotenv: internal" not in done.stderr


# What Codex expects of a command in its sandbox: the guards, the line of a shell, its exit status
# and output. ROOT is a directory that may be written under --fs-write=ROOT.
_ESCAPES_ALLOWED = [
    ("--no-network", "grep '^NoNewPrivs:' /proc/self/status", 0, "NoNewPrivs:\t1\n"),
    (ANY, "grep '^NoNewPrivs:' /proc/self/status", 0, "NoNewPrivs:\t1\n"),
    (ANY, "ls -l /bin > /dev/null", 0, ""),
    (ANY, "echo blah > /dev/null", 0, ""),
    (ANY + " --fs-write=ROOT", "echo blah > ROOT/test && cat ROOT/test", 0, "blah\n"),
    (ANY, "echo blah > ROOT/test", 1, ""),
]


@only_landlock
@pytest.mark.parametrize("guards, line, status, output", _ESCAPES_ALLOWED)
def test_sandbox_of_codex_is_like_ours(hermetic, tmp_path, guards, line, status, output):
    """A command may do what Codex lets it do in a sandbox: no privileges, /dev/null, one root."""
    line = line.replace("ROOT", str(tmp_path))
    done = hermetic(guards.replace("ROOT", str(tmp_path)), "bash", "-c", line)
    assert (done.returncode, done.stdout) == (status, output), done.stderr


# ==== whatever bytes come =========================================================================
# h11 promises that whatever bytes come, its parser returns an event or raises one kind of error. So
# does each place of hotenv at which something from outside comes in: the result is a value of a
# known kind, or an error that the place documents, and never another exception.

# What a fuzzed text may get: bytes with a meaning in some format, and shapes that are hard to read.
_FUZZ_PIECES = [
    *[b"\0", b"\n", b"\r\n", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x1b[2J"],
    *[b"=", b"'", b'"', b"\\", b"#", b"$", b"${", b"}", b":-", b":?", b"export ", b"[", b"]", b"{"],
    *[b",", b":", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-0", b'"\\ud800"', b"\\u0000"],
    *[b"9" * 400, b"9" * 5000, b"(", b")", b"$(", b"`", b"<<E\n", b";;", b" in ", b"case ", b"do "],
    *[b"/", b"../", b"#!", b"/env", b" -S ", b"python3", b"-c", b"'''exec' ", b'"$0" "$@"'],
]


def _fuzz_data(dice, seeds):
    """Return random bytes now and then, and else a seed with some random changes."""
    if dice.random() < 0.1:
        return bytes(dice.randrange(256) for _ in range(dice.randrange(40)))
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randrange(1, 5)):
        start = dice.randrange(len(data) + 1)
        end = min(len(data), start + dice.choice((0, 1, 2, 8, 40)))
        change = dice.choice(("flip", "cut", "end", "double", "splice", "put", "put", "nest"))
        if change == "flip" and start < len(data):
            data[start] ^= 1 << dice.randrange(8)
        elif change == "cut":
            del data[start:end]
        elif change == "end":
            del data[start:]
        elif change == "double":
            data[start:start] = data[start:end] * dice.choice((1, 2, 50))
        elif change == "splice":
            other = dice.choice(seeds)
            data[start:] = other[dice.randrange(len(other) + 1) :]
        elif change == "put":
            data[start:end] = dice.choice(_FUZZ_PIECES)
        elif change == "nest":
            opened, closed = dice.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"${A:-", b"}"), (b"$(", b")")))
            depth = dice.choice((3, dice.randrange(1200)))
            data[start:end] = opened * depth + b"1" + closed * depth
    return bytes(data)


class _FuzzedMcp:
    """The server of `mcp`, whose tools check their arguments, and start no shell."""

    def __init__(self):
        stdout = os.dup(1)
        self.server = hotenv._McpServer(types.SimpleNamespace(remote={"far": "x"}, policy=None))
        os.dup2(stdout, 1)  # the server has taken descriptor 1 for itself
        os.close(stdout)
        self.sent = []
        output = self.server._output
        output.send = lambda message: self.sent.append(output._line(message))
        self.server._queue = self._answer
        self.server._start_thread = self._answer

    def _answer(self, call, shell):
        """Answer a call at once."""
        self.server._send_result(call.request, hotenv._mcp_content({"session": shell.name}))

    def take(self, line):
        """Take a line as it comes from stdin; return the lines that are sent."""
        self.sent.clear()
        self.server.take(line)
        return self.sent


class _FuzzedTarget:
    """A script whose beginning is fuzzed."""

    def __init__(self, directory):
        self.path = directory / "script"
        executable(self.path, "")

    def resolve(self, data):
        """Return what the script is, for somebody who guards it."""
        self.path.write_bytes(data)
        return hotenv._Target.resolve([str(self.path), "word"], PATHS)


class _FuzzedPolicy:
    """A policy file whose content is fuzzed."""

    def __init__(self, directory):
        self.path = directory / "policy"

    def load(self, data):
        """Return the policy in the file."""
        self.path.write_bytes(data)
        return hotenv._load_policy(str(self.path))


class _Fuzzed:
    """A place at which something from outside comes in.

    - `read`: takes bytes.
    - `kinds`: what it may return.
    - `errors`: what it may raise.
    - `seeds`: bytes that are right.
    - `count`: how often the long form tries it; the usual form tries a twentieth.
    """

    def __init__(self, read, kinds, errors, seeds, count=400_000):
        self.read = read
        self.kinds = kinds
        self.errors = errors
        self.seeds = seeds
        self.count = count


_FUZZ_DOTENV = [
    b"A=1\nB='two words'\nexport C=\"${A} $B \\n\"\n# comment\nD = ${E:-${A:+x}} # more\n",
    b"KEY='-----BEGIN-----\nabc\n-----END-----'\nexport KEY\nURL=${HOST:?missing}\\${x}\r\n",
    b"'quoted name'=1\nA.B-C=?\nEMPTY=\nX=\"\\\"\"",
]
_FUZZ_JSON = [
    b'{"A": "1", "B": 2.5e3, "C": true, "\\u00e9": "\\ud83d\\ude00\\n"}\n',
    b' { } ',
]
_FUZZ_REQUESTS = [request for request in GOOD_REQUESTS + BAD_REQUESTS if len(request) < 1000]
_FUZZ_ANSWERS = [data for data, _ in ANSWERS if len(data) < 1000]
_FUZZ_RECORD = (
    b'{"directory": "/home/me/p", "name": "prod", "started": 1771000000.5, "variables": 3,'
    b' "idle_timeout": 300.0, "max_age": null, "memory_closed": true}\n'
)
_FUZZ_GUARDS = [
    b"no-network\nallow-domain=a.b\nsealed=/tmp/x\nprogram=/p\nsecret=TOKEN\nlauncher=/py\nkernel",
    b"fs-readonly=/\nfs-write=/tmp\nsealed=/x\ncode\nunhooked\n\ntrace\nallow-unix\nsealed=/y",
]
_FUZZ_SCRIPTS = [
    b"#!/usr/bin/python3 -I\nprint(1)\n",
    b"#!/usr/bin/env -S python3 -m x\n",
    b"#!/bin/sh\n'''exec' \"/usr/bin/python3\" -E \"$0\" \"$@\"\n' '''\nprint(1)\n",
    b"#!/bin/sh\necho $1\n",
    b"\x7fELF\2\1\1",
]
_FUZZ_MCP = [
    _mcp_request(method="initialize", params={"protocolVersion": "2025-06-18", "clientInfo": {"name": "t"}}),
    _mcp_request(method="tools/list"),
    _mcp_call(name="session_open", arguments={"cwd": "/tmp", "isolated": True, "remote": "far"}),
    _mcp_call(name="session_exec", arguments={"session": "s1", "command": "ls", "timeout": 2.5}),
    _mcp_call(name="session_read", arguments={"session": "s1", "id": 1, "from": 7}),
    _mcp_call(name="session_write", arguments={"session": "s1", "id": 1, "secret": "TOKEN"}),
    _mcp_call(name="session_stop", arguments={"session": "s1", "id": 1}),
    _mcp_call(name="session_list"),
    _mcp_call(name="session_close", arguments={"session": "s1"}),
    _mcp_line(method="notifications/cancelled", params={"requestId": 1}),
    _mcp_line(id="q1", result={"action": "accept", "content": {}}),
    _mcp_request(method="tools/list", params={"_meta": {**_AGENTS_META, "progressToken": 1}}),
    _mcp_request(method="server/discover", params={"_meta": _AGENTS_META}),
]
_FUZZ_NONCE = b"0123456789abcdef"
_FUZZ_SHELL = b"junk\0%s\x000\0/home/me\n\x0012 34\0export A=1\n\0%s\n" % (_FUZZ_NONCE, _FUZZ_NONCE)

_FUZZED = {
    "dotenv": lambda _: _Fuzzed(
        lambda data: hotenv.parse_dotenv(data, {"HOST": "h"}),
        dict, hotenv.HotenvError, _FUZZ_DOTENV,
    ),
    "dotenv as JSON": lambda _: _Fuzzed(
        lambda data: dict(hotenv._parse_json_entries(data)),
        dict, hotenv.HotenvError, _FUZZ_JSON,
    ),
    "dotenv as NUL": lambda _: _Fuzzed(
        lambda data: dict(hotenv._parse_nul_entries(data)),
        dict, hotenv.HotenvError, [b"A=1\0B=two\nlines\0C=\0"],
    ),
    "request": lambda _: _Fuzzed(
        hotenv._decode_request, hotenv._Request, ValueError, _FUZZ_REQUESTS
    ),
    "answer": lambda _: _Fuzzed(
        hotenv._decode_snapshot, dict, hotenv.HotenvError, _FUZZ_ANSWERS
    ),
    "marker": lambda _: _Fuzzed(
        hotenv._Marker.parse, (str, type(None)), (), [b"socket=/run/user/1/hotenv/0a1b2c3d.sock\n"]
    ),
    "record": lambda _: _Fuzzed(
        hotenv._Record.parse, (hotenv._Record, type(None)), (), [_FUZZ_RECORD]
    ),
    "MCP line": lambda _: _Fuzzed(_FuzzedMcp().take, list, (), _FUZZ_MCP),
    "policy file": lambda directory: _Fuzzed(
        _FuzzedPolicy(directory).load,
        dict, hotenv.HotenvError, [b'{"allow": ["git", "ls"], "deny": ["sudo"]}'], count=40_000,
    ),
    "command under a policy": lambda _: _Fuzzed(
        lambda data: hotenv._denied({"allow": ["a", "b"]}, data.decode("utf-8", "replace")),
        str, (), [line.encode() for line in _AGENTS_LINES], count=200_000,
    ),
    "guards": lambda _: _Fuzzed(
        lambda data: hotenv._Orders.all_of(os.fsdecode(data)), list, ValueError, _FUZZ_GUARDS
    ),
    "script": lambda directory: _Fuzzed(
        _FuzzedTarget(directory).resolve, hotenv._Target, OSError, _FUZZ_SCRIPTS, count=40_000
    ),
    "shell": lambda _: _Fuzzed(
        lambda data: hotenv._ShellRecord.parse(data, _FUZZ_NONCE),
        (hotenv._ShellRecord, type(None)), (), [_FUZZ_SHELL],
    ),
}


@pytest.mark.parametrize("place", _FUZZED)
def test_whatever_bytes_come(tmp_path, place):
    """Whatever bytes come, a place returns a value or raises a documented error, and no other."""
    fuzzed = _FUZZED[place](tmp_path)
    dice = random.Random(f"{SEED}{place}")
    for _ in range(amount(fuzzed.count)):
        data = _fuzz_data(dice, fuzzed.seeds)
        try:
            found = fuzzed.read(data)
        except fuzzed.errors:
            continue
        except Exception as error:
            pytest.fail("%r leads to %r" % (data, error))
        assert isinstance(found, fuzzed.kinds), data


@pytest.mark.parametrize("place", _FUZZED)
def test_right_bytes_are_taken(tmp_path, place):
    """At least one of the seeds of each place is right, or its fuzzing would show little."""
    fuzzed = _FUZZED[place](tmp_path)
    taken = []
    for data in fuzzed.seeds:
        with contextlib.suppress(fuzzed.errors):
            taken.append(fuzzed.read(data))
    assert any(found not in (None, []) for found in taken), taken


# -- what fuzzing has found --

# Beginnings of scripts that no kernel and no shell can run.
_FUZZ_BROKEN_SCRIPTS = [
    b"#!/bin/sh\n'''exec' \"/usr/bin/python3 \"$0\" \"$@\"\n",
    b"#!/bin/sh\n'''exec' /usr/bin/py\0/python3 \"$0\" \"$@\"\n\n",
    b"#!/usr/bin/\0/python3\n",
]


@pytest.mark.parametrize("data", _FUZZ_BROKEN_SCRIPTS, ids=short)
def test_script_that_nothing_can_run_is_a_program(tmp_path, data):
    """A script whose first lines nothing can run is taken for a program without a hook."""
    assert _FuzzedTarget(tmp_path).resolve(data).how == "program"


def test_damaged_guards_are_refused(hermetic, guards_runtime):
    """With a damaged HOTENV_GUARDS nothing is started, and the error names that variable."""
    env = environment(guards_runtime, HOTENV_GUARDS="x")
    assert "HOTENV_GUARDS" in _guards_refusal(hermetic("--no-network", "true", env=env), 1)


def test_mcp_bears_a_revision_of_any_depth():
    """A line whose revision is JSON as deep as can be read is answered by an error."""
    mcp = _FuzzedMcp()
    key = "io.modelcontextprotocol/protocolVersion"
    line = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"%s":DEEP}}}' % key
    for depth in range(940, 1000):
        deep = "[" * depth + "]" * depth
        (told,) = mcp.take(line.replace("DEEP", deep).encode())
        assert "error" in json.loads(told), depth


# ==== values never leave ==========================================================================
# Invariant 1, seen from outside: strace looks at each command of hotenv, and at all that the command
# starts. Every value of the session begins with the same letters. They may pass through sockets,
# pipes, files in memory and terminals, and stand in environments, which strace does not show here.
# They stand in no argument, no path, no file and no message, and on stdout only if asked for.

_LEAVING_MARK = b"v4lue-"
_LEAVING_TEXT = (
    b"TOKEN=v4lue-of-token\nURL='https://me:v4lue-of-url@h/?x=1'\nPEM='v4lue-of-line-1\nv4lue-of-line-2'\n"
    b"DERIVED=\"${TOKEN}-and-more\"\nHOST=v4lue-of-host.test\n"
)
_LEAVING_JSON = b'{"TOKEN": "v4lue-of-token", "PEM": "v4lue-of-line-1\\nv4lue-of-line-2"}'
_LEAVING_NUL = b"TOKEN=v4lue-of-token\0PEM=v4lue-of-line-1\nv4lue-of-line-2\0"

# The calls that have a path or arguments, those that write, and those by which a process begins.
_LEAVING_WRITES = "write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg".split()
_LEAVING_BEGINS = "fork vfork clone clone3".split()
_LEAVING_CALLS = ",".join(["%file", *("?" + call for call in _LEAVING_WRITES + _LEAVING_BEGINS)])

# What strace calls the targets through which a value may pass.
_LEAVING_WAYS = re.compile(
    rb"(socket:\[|UNIX|pipe:\[|/memfd:hotenv|/dev/ptmx|/dev/pts/|/dev/tty$|/dev/null)"
)


class _Leaving:
    """A Project whose programs strace looks at, from `watch` on.

    - `stdout` and `stderr`: plain files, which take what the commands write.
    """

    def __init__(self, project):
        self.end = -1
        if subprocess.run(["sh", "-c", "strace -D -q -o /dev/null true"], stderr=DEVNULL).returncode:
            pytest.skip("needs strace, and the right to trace a child")
        self.project = project
        self.traces = project.root / "trace"
        self.stdout = project.root / "stdout"
        self.stderr = project.root / "stderr"
        (project.root / "store").write_bytes(_LEAVING_TEXT)

    def watch(self):
        """Have strace look at whatever is started from now on."""
        self.traces.mkdir()
        options = ["-D", "-q", "-ff", "-y", "-s", "10000000", "-e", "signal=none"]
        words = ["strace", *options, "-e", "trace=" + _LEAVING_CALLS, "-o", self.traces / "of"]

        # A pipe that strace has open says when strace ends, which outlives all that it looks at.
        pipe = self.project.root / "end"
        os.mkfifo(str(pipe))
        self.end = os.open(str(pipe), os.O_RDONLY | os.O_NONBLOCK)
        held = ["sh", "-c", 'exec 9> "$0" && exec "$@"', pipe]
        self.project.program = [*map(str, held + words), *self.project.program]

    def run(self, words, text=b"", status=None, **options):
        """Run a command until it ends, and compare its exit status where there is one to be."""
        with open(str(self.stdout), "ab") as stdout, open(str(self.stderr), "ab") as stderr:
            options = {"input": text, "stdout": stdout, "stderr": stderr, **options}
            done = self.project.hotenv(*words, **options)
        assert status in (None, done.returncode), self.stderr.read_bytes()

    def lines(self):
        """Return the calls that were made, as lines, once strace and all that it saw have ended."""
        until(self._is_over, "the end of strace")
        lines = []
        for path in self.traces.iterdir():
            lines += path.read_bytes().splitlines()
        return lines

    def _is_over(self):
        """Has everybody closed the pipe?"""
        try:
            return os.read(self.end, 1) == b""
        except BlockingIOError:
            return False

    def is_allowed(self, line, shows):
        """May a value stand in this call?"""
        call, _, rest = line.partition(b"(")
        target = re.match(rb"\d+<(.*?)>(?:, |\()", rest)
        if call.decode() not in _LEAVING_WRITES or not target:
            return False
        if target[1] == os.fsencode(self.stdout):
            return shows
        return bool(_LEAVING_WAYS.match(target[1]))

    def check(self, shows):
        """Fail if a value has left; `shows` says whether stdout has to have one."""
        # 1. The calls.
        lines = self.lines()
        assert [line for line in lines if line.startswith(b"execve(")] != [], "strace saw nothing"
        cut = [line for line in lines if re.match(rb'execve\(.*"\.\.\.|execve\(.*, \.\.\.\]', line)]
        assert cut == [], "strace has not shown all arguments"
        with_value = [line for line in lines if _LEAVING_MARK in line]
        assert [line for line in with_value if not self.is_allowed(line, shows)] == []

        # 2. What is left. The test itself has written the store, and strace its records.
        assert (_LEAVING_MARK in self.stdout.read_bytes()) is shows
        for path in self.project.root.rglob("*"):
            is_ours = path.name == "store" or self.traces in path.parents
            if path == self.stdout or is_ours or not stat.S_ISREG(os.lstat(str(path)).st_mode):
                continue
            assert _LEAVING_MARK not in path.read_bytes(), path


@pytest.fixture
def leaving(project):
    """A _Leaving, in whose project nothing runs yet."""
    watcher = _Leaving(project)
    yield watcher
    if watcher.end >= 0:
        os.close(watcher.end)


_LEAVING_SH = ["--", "sh", "-c", 'test -n "$TOKEN"']
_LEAVING_PYTHON = ["--", sys.executable, "-c"]
_LEAVING_LOOKUP = "import os, socket; socket.getaddrinfo(os.environ['HOST'], 80)"
_LEAVING_START = "import os, subprocess; subprocess.run(['echo', os.environ['HOST']])"
_LEAVING_WRITE = "import os; open('/tmp/' + os.environ['TOKEN'], 'w')"

# Commands that ask a live session: their words, exit status, and whether stdout has to have a value.
_LEAVING_ASKS = [
    (["run", "--", "true"], 0, False),
    (["run", *_LEAVING_SH], 0, False),
    (["run", "--", "printenv", "TOKEN"], 0, True),
    (["run", "--mask", "--", "env"], 0, False),
    (["run", "--mask", "--no-mask", "URL", "--", "env"], 0, True),
    (["run", "--isolated", "--define", "X=1", "--pass", "LC_*", *_LEAVING_SH], 0, False),
    (["run", "--only", "TOKEN", *_LEAVING_SH], 0, False),
    (["run", "--optional", *_LEAVING_SH], 0, False),
    (["run", "--file", "TOKEN", "--", "sh", "-c", "cat $TOKEN > /dev/null"], 0, False),
    (["run", "--file", "TOKEN", "--mask", "--", "sh", "-c", "cat $TOKEN"], 0, False),
    (["run", "--no-network", *_LEAVING_SH], 0, False),
    (["run", "--no-subprocess", *_LEAVING_SH], 0, False),
    (["run", "--fs-readonly=/", *_LEAVING_SH], 0, False),
    (["run", "--fs-readonly=/", "--mask", "--", "env"], 0, False),
    (["run", "--no-network", "--trace", *_LEAVING_PYTHON, _LEAVING_LOOKUP], 2, False),
    (["run", "--no-network", "--allow-domain=x.y", *_LEAVING_PYTHON, _LEAVING_LOOKUP], 2, False),
    (["run", "--no-subprocess", "--trace", *_LEAVING_PYTHON, _LEAVING_START], 2, False),
    (["run", "--strict-imports", "--trace", *_LEAVING_PYTHON, "import _ctypes"], 2, False),
    (["run", "--profile", "all", *_LEAVING_PYTHON, "pass"], 0, False),
    (["run", "--", "no-such-program"], 8, False),
    (["run", "--only", "NOTHING", "--", "true"], 2, False),
    (["run", "--file", "NOTHING", "--", "true"], 2, False),
    (["run", "--no-such-option", "--", "true"], 2, False),
    (["dump"], 0, True),
    (["dump", "--format", "dotenv"], 0, True),
    (["dump", "--format", "sh"], 0, True),
    (["dump", "--format", "json"], 0, True),
    (["dump", "--format", "nul"], 0, True),
    (["dump", "--format", "names"], 0, False),
    (["dump", "--format", "value", "--only", "TOKEN"], 0, True),
    (["dump", "--format", "value"], None, False),
    (["mask"], 0, False),
    (["mask", "--check"], 1, False),
    (["status"], 0, False),
    (["status", "--json"], 0, False),
    (["status", "-q"], 0, False),
    (["status", "--all"], 0, False),
    (["stop"], 0, False),
    (["stop", "--all"], 0, False),
    (["serve"], 10, False),
    (["shellenv", "bash"], 0, False),
    (["help", "exit"], 0, False),
]


@only_linux
@only_root
@pytest.mark.parametrize("words, status, shows", _LEAVING_ASKS, ids=short)
def test_no_value_leaves_a_command(leaving, words, status, shows):
    """A command that asks a session lets no value out, but to what it starts, and as it is told."""
    leaving.project.serve(_LEAVING_TEXT)
    leaving.watch()
    leaving.run(words, _LEAVING_TEXT, status)
    leaving.check(shows)


# Commands that make a session: their words, and their input.
_LEAVING_SERVES = [
    (["serve"], _LEAVING_TEXT),
    (["serve", "--verbose", "--max-age", "1h", "--timeout", "5m"], _LEAVING_TEXT),
    (["serve", "--format", "json"], _LEAVING_JSON),
    (["serve", "--format", "nul"], _LEAVING_NUL),
    (["serve", "--background"], _LEAVING_TEXT),
    (["serve", "--background", "--force", "--verbose", "--log", "log"], _LEAVING_TEXT),
    (["serve", "--background", "--format", "json", "--quiet"], _LEAVING_JSON),
    (["run", "--fill", "cat ../store", *_LEAVING_SH], b""),
    (["dump", "--format", "names"], b""),
]


@only_linux
@only_root
@pytest.mark.parametrize("words, text", _LEAVING_SERVES, ids=short)
def test_no_value_leaves_a_server(leaving, words, text):
    """A server lets no value out, but by its socket: not at its start, nor later, nor at its end."""
    project = leaving.project
    project.env["HOTENV_FILL"] = "cat ../store"
    plain = project.program
    leaving.watch()
    if words[0] == "serve" and "--background" not in words:
        with open(str(leaving.stdout), "wb") as stdout:
            project.serve(text, *words[1:], stdout=stdout)
    else:
        leaving.run(words, text, 0)

    assert _LEAVING_MARK in project.ask()
    project.ask(RUN)
    assert _LEAVING_MARK not in project.ask(b'{"command":"v4lu\n')
    project.program = plain
    assert project.hotenv("stop").returncode == 0
    leaving.check(False)


# Input that `serve` refuses: its options and the input.
_LEAVING_REFUSED = [
    ([], b"v4lue-of-token\n"),
    ([], b"v4lue-of-token!\n"),
    ([], b"A='v4lue-of-token\n"),
    ([], b"A='v4lue-of-token' v4lue\n"),
    ([], b"A=${X:?v4lue-of-token}\n"),
    ([], b"A=v4lue-of-token\0\n"),
    (["--format", "json"], b'{"A": "v4lue-of-token", "B": ["v4lue-of-token"]}'),
    (["--format", "json"], b'{"A": "v4lue-of-token'),
    (["--format", "nul"], b"A=v4lue-of-token"),
    (["--background"], b"A=\"v4lue-of-token\n"),
]


@only_linux
@only_root
@pytest.mark.parametrize("options, text", _LEAVING_REFUSED, ids=short)
def test_no_value_leaves_a_refusal(leaving, options, text):
    """An input that is refused lets no value out."""
    leaving.watch()
    leaving.run(["serve", *options], text, 7)
    leaving.check(False)


@only_linux
@only_root
def test_no_value_leaves_a_prompt(leaving):
    """A value that somebody types at `serve --prompt` stays in the server."""
    project = leaving.project
    (project.dir / "text").write_bytes(b"TOKEN=?\n")
    plain = project.program
    leaving.watch()
    command = project.command(["serve", "--prompt", "--background"])
    options = {"cwd": project.dir, "env": project.env, "stdin": project.dir / "text"}
    leaving.stdout.touch()
    with on_terminal(*command, **options) as (pid, terminal):
        read_until(terminal, b"TOKEN: ")
        os.write(terminal, b"v4lue-of-token\n")
        assert _LEAVING_MARK not in read_until(terminal, rb"ready: [^\n]*\n")
        assert os.waitpid(pid, 0)[1] == 0
    assert _LEAVING_MARK in project.ask()
    project.program = plain
    assert project.hotenv("stop").returncode == 0
    leaving.check(False)


@only_linux
@only_root
def test_no_value_leaves_a_full_disk(leaving):
    """A dump that cannot be written lets no value out but to where it was told to."""
    leaving.project.serve(_LEAVING_TEXT)
    leaving.watch()
    leaving.stdout.touch()
    with open("/dev/full", "wb") as full:
        leaving.run(["dump"], b"", 8, stdout=full)
    told = [line for line in leaving.lines() if b"</dev/full>" not in line]
    assert [line for line in told if _LEAVING_MARK in line and b"<socket:" not in line] == []
    assert _LEAVING_MARK not in leaving.stderr.read_bytes()


# What an agent does with a session: the tool and its arguments, in this order.
_LEAVING_AGENT = [
    ("session_open", {}),
    ("session_exec", {"session": "s1", "command": "echo $TOKEN $PEM; env; cd /tmp; false"}),
    ("session_exec", {"session": "s1", "command": "cat <<< $TOKEN; cat <<E\n$URL\nE"}),
    ("session_exec", {"session": "s1", "command": "read -rs x", "background": True, "terminal": True}),
    ("session_write", {"session": "s1", "id": 3, "secret": "TOKEN"}),
    ("session_exec", {"session": "s1", "command": "cat", "background": True}),
    ("session_write", {"session": "s1", "id": 4, "secret": "PEM", "end": True}),
    ("session_read", {"session": "s1", "id": 4, "wait": 5}),
    ("session_write", {"session": "s1", "id": 4, "secret": "NOTHING"}),
    ("session_exec", {"session": "s1", "command": "exit 3"}),
    ("session_list", {}),
    ("session_close", {"session": "s1"}),
    ("session_exec", {"session": "s1", "command": "true"}),
]


@only_linux
@only_root
def test_no_value_leaves_an_agent(leaving):
    """What an agent does with shells and jobs lets no value out, to the agent least of all."""
    project = leaving.project
    project.serve(_LEAVING_TEXT)
    leaving.watch()
    leaving.stdout.touch()
    told = b""
    with open(str(leaving.stderr), "wb") as stderr:
        words = ["mcp", "--audit", "audit"]
        mcp = project.start(*words, stdin=PIPE, stdout=PIPE, stderr=stderr)
        for number, (tool, arguments) in enumerate(_LEAVING_AGENT):
            params = {"name": tool, "arguments": arguments}
            mcp.stdin.write(_mcp_line(id=number, method="tools/call", params=params))
            mcp.stdin.flush()
            told += mcp.stdout.readline()
        mcp.stdin.close()
        assert mcp.wait(PATIENCE) == 0
    assert told.count(b"[hidden:TOKEN]") > 1
    assert _LEAVING_MARK not in told
    leaving.check(False)


_LEAVING_OTHERS = ["prompt", "full disk", "agent"]  # tests of one run each
_LEAVING_TABLES = [_LEAVING_ASKS, _LEAVING_SERVES, _LEAVING_REFUSED, _LEAVING_OTHERS]


def test_readme_tells_how_many_runs_are_watched():
    """The README tells the number of runs of hotenv that strace looks at, which this test prints."""
    runs = sum(len(table) for table in _LEAVING_TABLES)
    print("runs of hotenv under strace:", runs)
    assert re.search(r"\b%d runs of hotenv under strace" % runs, " ".join(_readme_text().split()))
