"""The promises of hotenv, kept against the real program.

    python3 -m pytest test_hotenv.py

HOTENV_TEST_FULL=1 runs the long forms (20 times as much of whatever is random), HOTENV_TEST_SEED=N changes what is
random. HOTENV_TEST_PROGRAMS names a virtual environment with httpie, pytest and black, HOTENV_TEST_MCP one with the mcp
package. What needs one of these, root, Linux or a tool that is not there is skipped with a word.
"""

import ast
import base64
import contextlib
import errno
import fcntl
import gc
import glob
import html
import http.server
import importlib.util
import inspect
import io
import json
import os
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
import sqlite3
import stat
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import tracemalloc
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hotenv

HERE = Path(__file__).resolve().parent
HOTENV = HERE / "hotenv.py"
for room in hotenv._folds:  # the tests look into every room
    hotenv._unfold(room)
SEED = int(os.environ.get("HOTENV_TEST_SEED", "20260214"))
FULL = os.environ.get("HOTENV_TEST_FULL") == "1"
LINUX = sys.platform == "linux"
ROOT = os.geteuid() == 0
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # the suite was started by nohup, or with a `&`
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)
PATIENCE = 30.0  # seconds until a condition that should have come about at once counts as a failure

only_linux = pytest.mark.skipif(not LINUX, reason="looks at /proc, which is Linux's")
only_root = pytest.mark.skipif(not ROOT, reason="needs root, to become somebody else")


def amount(n):
    """How often something random is tried: `n` times in the long form, a twentieth of that otherwise."""
    return n if FULL else max(1, n // 20)


# ==== the harness =====================================================================================================
# A project directory with a runtime directory of its own; what is started in it ends with it.


def until(condition, what="the condition", patience=PATIENCE):
    """The first true value of `condition()`; a failure if there is none in time."""
    give_up = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > give_up:
            pytest.fail("waited in vain for " + what)
        time.sleep(0.002)


# The real program, after a patch of some name in it: for faults that cannot be had otherwise, and for shorter limits.
PATCHED = """
import sys
sys.path.insert(0, {here!r})
import hotenv
del sys.path[0]
{patch}
sys.exit(hotenv.main(sys.argv[1:]))
"""


class Project:
    """A fresh directory to start sessions in."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="hot-", dir="/tmp")).resolve()  # short: a socket's path must be
        self.dir = self.root / "p"
        self.dir.mkdir()
        self.base = self.root / "r"
        self.base.mkdir(0o700)
        self.runtime = self.base / "hotenv"
        self.marker = self.dir / ".hotenv"
        self.log_path = self.root / "log"
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.base)}
        self.started = []

    def command(self, args, patch=None):
        program = [str(HOTENV)] if patch is None else ["-c", PATCHED.format(here=str(HERE), patch=patch)]
        return [sys.executable, *program, *args]

    def start(self, *args, patch=None, env=None, **options):
        """The program with these arguments, not waited for."""
        options.setdefault("cwd", str(self.dir))
        if "stderr" not in options:
            options["stderr"] = open(str(self.log_path), "ab")
        process = subprocess.Popen(self.command(args, patch), env={**self.env, **(env or {})}, **options)
        self.started.append(process)
        return process

    def serve(self, text=b"A=1\n", *options, **more):
        """A server that accepts requests."""
        before = self.marker_content()
        process = self.start("serve", *options, stdin=subprocess.PIPE, **more)
        try:
            process.stdin.write(text)
            process.stdin.close()
        except BrokenPipeError:
            pass
        self.wait_ready(process, before)
        return process

    def wait_ready(self, process, before=None):
        def ready():
            aside = any(self.dir.glob(".hotenv.*"))  # which goes a moment after the marker has come
            return self.marker_content() != before and not aside or process.poll() is not None

        until(ready, "a marker")
        if process.poll() is not None:
            pytest.fail("serve ended with %s: %s" % (process.returncode, self.log()))

    def hotenv(self, *args, patch=None, env=None, timeout=PATIENCE, **options):
        """The program with these arguments, until it ends."""
        options.setdefault("cwd", str(self.dir))
        if "stdin" not in options and "input" not in options:
            options["input"] = b""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run(self.command(args, patch), env={**self.env, **(env or {})}, timeout=timeout, **options)

    def run(self, *command, **options):
        return self.hotenv("run", "--", *command, **options)

    def dump(self, *options, **more):
        """The environment that the session hands out, or None where there is no session."""
        done = self.hotenv("dump", "--format", "nul", *options, **more)
        if done.returncode:
            return None
        return dict(pair.split(b"=", 1) for pair in done.stdout.split(b"\0") if pair)

    def log(self):
        return self.log_path.read_bytes() if self.log_path.exists() else b""

    def log_lines(self):
        return self.log().decode().splitlines()

    def marker_content(self):
        """What is in the marker; None where there is none, or something else in its place."""
        try:
            return self.marker.read_bytes() if stat.S_ISREG(os.lstat(str(self.marker)).st_mode) else None
        except OSError:
            return None

    def socket_path(self):
        return os.fsdecode(self.marker.read_bytes()[len(b"socket="):-1])

    def ends_at(self):
        """The moment when the session will end, as the socket's time stamp has it."""
        return os.stat(self.socket_path()).st_mtime

    def server_pid(self):
        """Who answers: a session in the background is no child of ours."""
        with self.connect() as client:
            return peer_pid(client)

    def connect(self, path=None):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(path or self.socket_path())
        return client

    def ask(self, request=b'{"command":"dump"}\n', path=None):
        """The whole answer to these bytes."""
        with self.connect(path) as client:
            client.sendall(request)
            return answer(client)

    def files(self):
        """Everything below the project and the runtime base, by its path from there."""
        found = [os.path.relpath(str(each), str(self.root)) for top in (self.dir, self.base) for each in top.rglob("*")]
        return sorted(found)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)
            for stream in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(BrokenPipeError):
                    if stream:
                        stream.close()
        for path in self.runtime.glob("*.sock"):  # a session in the background is no child of ours
            try:
                with self.connect(str(path)) as client:
                    if peer_pid(client) not in (0, os.getpid()):
                        os.kill(peer_pid(client), signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(str(self.root), ignore_errors=True)
        if self.root.exists():  # a test took a permission away
            subprocess.run(["chmod", "-R", "u+rwx", str(self.root)], stderr=subprocess.DEVNULL)
            shutil.rmtree(str(self.root), ignore_errors=True)


@pytest.fixture(autouse=True)
def no_test_hangs():
    def hung(number, frame):
        pytest.fail("this test hangs")

    signal.signal(signal.SIGALRM, hung)
    signal.alarm(900 if FULL else 120)
    yield
    signal.alarm(0)


@pytest.fixture
def project():
    fresh = Project()
    yield fresh
    fresh.close()


@pytest.fixture(scope="module")
def shared():
    holder = Project()
    holder.server = None
    yield holder
    holder.close()


@pytest.fixture
def session(shared):
    """A session that many tests ask, and none ends."""
    if shared.server is None or shared.server.poll() is not None:
        if shared.marker.exists():
            shared.marker.unlink()
        shared.server = shared.serve(b"A=1\nB=two words\nEMPTY=\n", "--verbose", "--timeout", "1h")
    yield shared
    assert shared.server.poll() is None, "the session that many tests share has ended: " + shared.log()[-500:].decode()


@pytest.fixture(scope="module")
def daily():
    """A session that the tests of `run` and `dump` ask, and none ends."""
    shared = Project()
    text = b"API_KEY=s3cr3t-1\nAPI_URL=s3cr3t-2\nAWS_ID=s3cr3t-3\nAWS_KEY=s3cr3t-4\nTERM=snapshot\nOTHER=s3cr3t-5\n"
    shared.env.update(HOME="/h", EDITOR="vi", OTHER="host", BLANK="", LANG="C.UTF-8")
    shared.server = shared.serve(text, "--timeout", "1h")
    yield shared
    assert shared.server.poll() is None, "a test ended the session that all share"
    shared.close()


SNAPSHOT = {b"API_KEY": b"s3cr3t-1", b"API_URL": b"s3cr3t-2", b"AWS_ID": b"s3cr3t-3", b"AWS_KEY": b"s3cr3t-4",
            b"TERM": b"snapshot", b"OTHER": b"s3cr3t-5"}


def environment_of(done):
    assert done.returncode == 0, done.stderr
    return dict(pair.split(b"=", 1) for pair in done.stdout.split(b"\0") if pair)


def bytes_of(env):
    return {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


PATHS = "/usr/local/bin:/usr/bin:/bin"
ENV = "/usr/bin/env"


def answer(client):
    """What comes until the other side closes."""
    chunks = []
    while True:
        try:
            chunk = client.recv(1 << 20)
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def peer_pid(client):
    if LINUX:
        return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    return client.getsockopt(0, 2)


def refusal(done, code):
    """The one line with which a command must have ended: ours, printable, and no traceback."""
    message = done.stderr.decode()
    assert done.returncode == code, message
    assert message.startswith("hotenv: ") and message.endswith("\n") and message[:-1].isprintable(), message
    return message[len("hotenv: "):-1]


def limits(**soft_and_hard):
    """A preexec_fn that sets resource limits: limits(NOFILE=(64, 64))."""
    def apply():
        for name, pair in soft_and_hard.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), pair)
    return apply


def in_child(work, uid=None):
    """The exit status of `work()` in a forked child, as another user if so told; 99 where it raises something else."""
    child = os.fork()
    if not child:
        status = 99
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            status = work()
        except hotenv.HotenvError as error:
            os.write(2, ("hotenv: %s\n" % error).encode())
            status = error.code
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(status)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


@contextlib.contextmanager
def on_terminal(*command, cwd=None, env=None, **redirected):
    """A process that leads a session on a new terminal: its pid, and the terminal's other end."""
    pid, terminal = pty.fork()
    if not pid:
        try:
            for stream, path in redirected.items():
                file = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(file, {"stdout": 1, "stderr": 2}[stream])
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


def read_until(descriptor, wanted=None):
    """What comes from a descriptor until `wanted`, a pattern, is in it; without one, until it ends."""
    seen, give_up = b"", time.monotonic() + PATIENCE
    while wanted is None or not re.search(wanted, seen):
        if not select.select([descriptor], [], [], max(0, give_up - time.monotonic()))[0]:
            pytest.fail("waited in vain for %r in %r" % (wanted, seen))
        try:
            piece = os.read(descriptor, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # with which Linux says that all have closed a terminal
                raise
            piece = b""
        if not piece:
            assert wanted is None, "the end came before %r in %r" % (wanted, seen)
            break
        seen += piece
    return seen


class Answerer:
    """A server of our own that gives every client the same bytes, whatever it asks."""

    def __init__(self, path, response=b""):
        self.path, self.response = str(path), response
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                client.settimeout(PATIENCE)
                client.recv(1 << 20)
                client.sendall(self.response)
            except OSError:
                pass
            client.close()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # which wakes the thread, on Linux
        except OSError:
            pass
        self.listener.close()
        self.thread.join(0.2)


@pytest.fixture
def answerer(project):
    made = []

    def make(response=b""):
        made.append(Answerer(project.root / ("answerer%d.sock" % len(made)), response))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Host:
    """An sshd on loopback with a key of its own, and an `ssh` that finds it under the name `host`."""

    def __init__(self, root):
        self.root, self.process = root, None
        self.made_run = False
        self.command = ["ssh", "-T", "-F", str(root / "ssh_config"), "host"]
        sshd = shutil.which("sshd") or "/usr/sbin/sshd"
        if not (os.path.exists(sshd) and shutil.which("ssh") and shutil.which("ssh-keygen")):
            pytest.skip("needs sshd, ssh and ssh-keygen")
        if ROOT and not os.path.exists("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)  # where sshd locks its children up: no option names another place
            self.made_run = True
        for name in ("server", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)], check=True,
                           timeout=PATIENCE)
        shutil.copy(str(root / "client.pub"), str(root / "authorized"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (root / "sshd_config").write_text(
            "Port %d\nListenAddress 127.0.0.1\nHostKey %s/server\nAuthorizedKeysFile %s/authorized\nPidFile none\n"
            "UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\n"
            % (self.port, root, root))
        user = pwd.getpwuid(os.geteuid()).pw_name
        (root / "ssh_config").write_text(
            "Host host\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s/client\n IdentitiesOnly yes\n"
            " BatchMode yes\n StrictHostKeyChecking no\n UserKnownHostsFile %s/known\n LogLevel ERROR\n"
            % (self.port, user, root, root))
        self.log = open(str(root / "sshd_log"), "wb")
        self.process = subprocess.Popen([sshd, "-D", "-e", "-f", str(root / "sshd_config")], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)

        def up():
            with socket.socket() as probe:
                return self.process.poll() is not None or probe.connect_ex(("127.0.0.1", self.port)) == 0

        until(up, "sshd")
        if self.process.poll() is not None or self.ssh("true").returncode:
            why = (root / "sshd_log").read_text().strip().splitlines()[-1:]
            self.close()
            pytest.skip("sshd lets nobody in here: %s" % why)

    def ssh(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*self.command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                              **options)

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)
            self.log.close()
        if self.made_run:
            try:
                os.rmdir("/run/sshd")
            except OSError:
                pass


@pytest.fixture(scope="module")
def host():
    holder = Project()
    try:
        reached = Host(holder.root)
        yield reached
        reached.close()
    finally:
        holder.close()


TOKEN, PEM = "sk-live-51H8sVq0", "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
SECRETS = {"TOKEN": TOKEN, "PEM": PEM, "PIN": "12", "URL": "postgres://u:p%40ss w@h/db?x='1'"}
DUMP = b'{"command":"dump"}\n'
BAD_REQUEST = b'{"error":"BAD_REQUEST","message":"'


def short(value):
    """An id for a parametrised case."""
    return repr(value)[:30]


# ==== limits and errors ===============================================================================================
# The documented limits, where waiting for them would take too long: tests that need one soon patch it to be short.


@pytest.mark.parametrize("name, value", [
    ("MAX_INPUT", 64 << 20), ("MAX_EXPANSION", 64 << 20), ("MAX_REQUEST", 16 << 20), ("MAX_UNFINISHED", 64 << 20),
    ("MAX_RESPONSE", 256 << 20), ("MAX_MARKER", 8 << 10), ("MAX_LOG_BACKLOG", 1 << 20), ("DESCRIPTORS", 4096),
    ("IDLE_TIMEOUT", 300), ("MAX_DURATION", 366 * 86400), ("REQUEST_TIME", 5), ("ANSWER_TIME", 30),
    ("EXCHANGE_TIME", 10), ("TICK", 10),
])
def test_limits_are_the_documented_ones(name, value):
    assert getattr(hotenv, name) == value


def syntax(feature_version=None):
    """Every node of hotenv.py, those in its folds (source text that is compiled when it is first needed) included."""
    options = {"feature_version": feature_version} if feature_version else {}
    sources = [HOTENV.read_text(encoding="utf-8")]
    for source in sources:
        for node in ast.walk(ast.parse(source, **options)):
            yield node
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_fold":
                sources.append(ast.literal_eval(node.args[1]))


def test_no_check_lives_in_an_assert():  # invariant 11
    assert not [node.lineno for node in syntax() if isinstance(node, ast.Assert)]


def test_an_internal_error_shows_no_value_and_no_traceback(project):  # invariant 1
    patch = "def broken(*_): raise KeyError('s3cr3t-value')\nhotenv._encode_snapshot = broken"
    done = project.hotenv("serve", input=b"A=s3cr3t-value\n", patch=patch)
    assert "internal error" in refusal(done, 8)
    assert b"s3cr3t" not in done.stderr and not project.files()


# ==== dotenv ==========================================================================================================
# What the language means is the table below: one case a line. Then come two slow statements of it, python-dotenv's
# grammar and our own references, that random inputs are compared with; then what it costs, and what its errors may say.


def parse_refusal(text, host={}):
    """The message of the error that parse_dotenv must raise for this text."""
    with pytest.raises(hotenv.HotenvError) as caught:
        hotenv.parse_dotenv(text, host)
    error = caught.value
    assert error.code == 7
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    assert str(error).startswith("<stdin>:") and str(error).isprintable()
    return str(error)


def has_reason(message, place, reason):
    return message.startswith("<stdin>:%s: " % place) and reason in message.replace("`", "").replace("'", "")


HOST = {"H": "host", "NIL": ""}  # the host environment of the cases that name it

# (id, input, what it means or LINE:COLUMN and the reason, who agrees[, host environment])
#
# Who agrees was measured on: P python-dotenv 1.2.4, N npm dotenv 18, E the same with dotenv-expand 13, X dotenvx 2.38,
# J node 20's util.parseEnv, R ruby dotenv 3.2, G godotenv, C compose-go, V dotenvy, B bash `source`. "-": not measured;
# "": none does.
DOTENV_CASES = [
    # The obvious: names, values, blank lines, comments, the last line
    ("basic/empty", "", {}, "-"),
    ("basic/only-blanks", " \t\n \n", {}, "-"),
    ("basic/no-final-newline", "A=b", {"A": "b"}, "-"),
    ("basic/no-final-newline-empty", "A=", {"A": ""}, "-"),
    ("basic/two-lines", "A=b\nC=d", {"A": "b", "C": "d"}, "-"),
    ("basic/blank-lines-between", "\n\nA=b\n\n\nC=d\n\n", {"A": "b", "C": "d"}, "-"),
    ("basic/last-wins-first-order", "B=1\nA=2\nB=3\nC=4\n", {"B": "3", "A": "2", "C": "4"}, "-"),
    ("basic/last-wins-even-empty", "A=1\nA=\n", {"A": ""}, "-"),
    ("basic/last-wins-quoted-name", "A=1\n'A'=2\n", {"A": "2"}, "-"),
    ("basic/case-matters", "a=1\nA=2\n", {"a": "1", "A": "2"}, "-"),
    ("basic/base64-padding", "A=c2VjcmV0==\n", {"A": "c2VjcmV0=="}, "-"),
    ("basic/value-of-symbols", "A=p@$$!%^&*()[]{}|;:,.<>/?`~+-_\n", {"A": "p@$$!%^&*()[]{}|;:,.<>/?`~+-_"}, "-"),
    ("basic/value-is-export", "A=export B=c\n", {"A": "export B=c"}, "-"),
    ("basic/value-no-coercion", "A=true\nB=0x10\nC=null\n", {"A": "true", "B": "0x10", "C": "null"}, "-"),
    ("basic/non-ascii-value", "A=\u043a\u043b\u044e\u0447\n", {"A": "\u043a\u043b\u044e\u0447"}, "-"),
    ("basic/astral-value", "A=\U0001f511\n", {"A": "\U0001f511"}, "-"),
    ("basic/control-characters", "A=a\x01\x08\x7fb\n", {"A": "a\x01\x08\x7fb"}, "-"),
    # Blanks around name, equals sign and value
    ("blanks/all-trimmed", "  A  =  b  \n", {"A": "b"}, "-"),
    ("blanks/tabs-trimmed", "\tA\t=\tb\t\n", {"A": "b"}, "-"),
    ("blanks/mixed-trimmed", " \t A \t=\t b \t \n", {"A": "b"}, "-"),
    ("blanks/inner-kept", "A = b \t c \n", {"A": "b \t c"}, "-"),
    ("blanks/value-only-blanks", "A= \t \n", {"A": ""}, "-"),
    ("blanks/value-only-blanks-at-end", "A= \t ", {"A": ""}, "-"),
    ("blanks/before-quoted", "A=   'b'\n", {"A": "b"}, "-"),
    ("blanks/after-quoted", "A='b' \t \n", {"A": "b"}, "-"),
    ("blanks/inside-double", 'A="  b\t"\n', {"A": "  b\t"}, "-"),
    ("blanks/vt-ff-around-equals", "A\x0b=\x0cb\n", {"A": "b"}, "-"),
    ("blanks/vt-ff-end-of-value", "A=b\x0b\x0c\n", {"A": "b"}, "-"),
    ("blanks/file-separators-trimmed", "A=\x1c\x1d\x1e\x1fb\x1f\x1e\x1d\x1c\n", {"A": "b"}, "-"),
    ("blanks/nel-ls-ps-trimmed", "A=\x85\u2028\u2029b\x85\u2028\u2029\n", {"A": "b"}, "-"),
    ("blanks/nbsp-ideographic-trimmed", "\xa0A\u3000=\u3000b\xa0\n", {"A": "b"}, "-"),
    ("blanks/zero-width-kept", "A=\u200bb\u2060\n", {"A": "\u200bb\u2060"}, "-"),
    ("blanks/vt-then-comment", "A=b\x0b# c\n", {"A": "b"}, "-"),
    ("blanks/ff-alone-is-empty", "A=\x0c\n", {"A": ""}, "-"),
    # Newlines: \n, \r\n and \r everywhere; \v \f NEL U+2028 never; one byte order mark
    ("newline/cr-only", "A=b\rC=d\r", {"A": "b", "C": "d"}, "-"),
    ("newline/cr-empty-value", "A=\rC=d", {"A": "", "C": "d"}, "-"),
    ("newline/crlf-no-final", "A=b\r\nC=d", {"A": "b", "C": "d"}, "-"),
    ("newline/crlf-in-double", 'A="b\r\nc"\r\n', {"A": "b\nc"}, "-"),
    ("newline/crlf-in-single", "A='b\r\nc'\r\n", {"A": "b\nc"}, "-"),
    ("newline/cr-in-double", 'A="b\rc"\r', {"A": "b\nc"}, "-"),
    ("newline/cr-cr-in-single", "A='b\r\rc'", {"A": "b\n\nc"}, "-"),
    ("newline/lf-cr-in-double", 'A="b\n\rc"', {"A": "b\n\nc"}, "-"),
    ("newline/escaped-cr-letter-stays", 'A="b\\r\\nc"\r\n', {"A": "b\r\nc"}, "-"),
    ("newline/backslash-crlf-in-double", 'A="b\\\r\nc"\r\n', {"A": "b\\\nc"}, "-"),
    ("newline/crlf-after-quote", 'A="b"\r\nC=\'d\'\r\n', {"A": "b", "C": "d"}, "-"),
    ("newline/crlf-comment", "# c\r\nA=b\r\n", {"A": "b"}, "-"),
    ("newline/cr-ends-comment", "# c\rA=b", {"A": "b"}, "-"),
    ("newline/vt-no-newline", "A=b\x0bC=d\n", {"A": "b\x0bC=d"}, "-"),
    ("newline/ff-no-newline", "A=b\x0cC=d\n", {"A": "b\x0cC=d"}, "-"),
    ("newline/nel-no-newline", "A=b\x85C=d\n", {"A": "b\x85C=d"}, "-"),
    ("newline/ls-no-newline", "A=b\u2028C=d\n", {"A": "b\u2028C=d"}, "-"),
    ("newline/fs-no-newline", "A=b\x1cC=d\n", {"A": "b\x1cC=d"}, "-"),
    ("newline/nel-in-comment", "# c\x85A=b\nC=d\n", {"C": "d"}, "-"),
    ("newline/vt-in-comment", "A=b # c\x0bd\x0ce\nC=d\n", {"A": "b", "C": "d"}, "-"),
    ("newline/ls-in-single", "A='b\u2028\x0b\x0c\x85c'\n", {"A": "b\u2028\x0b\x0c\x85c"}, "-"),
    ("newline/vt-lines-leading", "\x0b\x0c\u2028A=b\n", {"A": "b"}, "-"),
    ("newline/bom-alone", "\ufeff", {}, "-"),
    ("newline/bom-bytes", b'\xef\xbb\xbfA=b\n', {"A": "b"}, "PNEXRCV"),
    ("newline/bom-then-blank-line", "\ufeff\n A=b\n", {"A": "b"}, "-"),
    ("newline/bom-then-export", "\ufeffexport A=b\n", {"A": "b"}, "-"),
    ("newline/bom-inside-value", "A=\ufeffb\n", {"A": "\ufeffb"}, "-"),
    ("newline/bom-on-second-line", "A=b\n\ufeffC=d\n", '2:1 bad name', "-"),
    ("newline/bom-not-counted", "\ufeffA B\n", '1:3 no =', "-"),
    ("newline/utf16-le", b'A\x00=\x00b\x00\n\x00', '1:2 NUL', "-"),
    ("newline/utf16-bom", b'\xff\xfeA\x00', '1:1 UTF-8', "-"),
    # export
    ("export/many-blanks", "export \t  A=b\n", {"A": "b"}, "-"),
    ("export/indented", "  export A=b\n", {"A": "b"}, "-"),
    ("export/quoted-name", "export 'A'=b\n", {"A": "b"}, "-"),
    ("export/ls-is-a-blank", "export\u2028A=b\n", {"A": "b"}, "-"),
    ("export/vt-is-a-blank", "export\x0bA=b\n", {"A": "b"}, "-"),
    ("export/empty-value", "export A=\n", {"A": ""}, "-"),
    ("export/around-equals", "export A = b\n", {"A": "b"}, "-"),
    ("export/exporting-export-blank", "export export =b\n", {"export": "b"}, "-"),
    ("export/name-export-tab", "A=1\nexport\t=b\n", '2:8 bad name', "-"),
    ("export/name-export-quoted", "export = 'b'\n", '1:8 bad name', "-"),
    ("export/name-export", "export=b\n", {"export": "b"}, "-"),
    ("export/exporting-export", "export export=b\n", {"export": "b"}, "-"),
    ("export/quoted-export-is-a-name", "'export'=b\n", {"export": "b"}, "-"),
    ("export/name-exports", "exports=b\n", {"exports": "b"}, "-"),
    ("export/name-export-dot", "export.A=b\n", {"export.A": "b"}, "-"),
    ("export/then-comment", "export # c\nA=b\n", {"A": "b"}, "-"),
    ("export/bare-after-definition", "A=b\nexport A\nC=d\n", {"A": "b", "C": "d"}, "-"),
    ("export/bare-after-definition-eof", "A=b\nexport A", {"A": "b"}, "-"),
    ("export/bare-after-empty", "A=\nexport A\n", {"A": ""}, "-"),
    ("export/bare-after-comment", "A=b\nexport A # c\n", {"A": "b"}, "-"),
    ("export/bare-after-close-comment", "A=b\nexport A#c\n", {"A": "b"}, "-"),
    ("export/bare-quoted-after-definition", "A=b\nexport 'A'\n", {"A": "b"}, "-"),
    ("export/bare-twice", "A=b\nexport A\nexport A\n", {"A": "b"}, "-"),
    ("export/bare-then-redefined", "A=b\nexport A\nA=c\n", {"A": "c"}, "-"),
    ("export/bare-before-definition", "export A\nA=b\n", '1:9 no =', "-"),
    ("export/bare-of-another", "A=b\nexport B\n", '2:9 no =', "-"),
    ("export/bare-of-host-name", "export H\n", '1:9 no =', "-", HOST),
    ("export/bare-trailing-blanks", "export A  \n", '1:11 no =', "-"),
    ("export/bare-two-names", "A=b\nC=d\nexport A C\n", '3:10 no =', "-"),
    ("export/nothing-at-all", "export\n", '1:7 no =', "-"),
    ("export/nothing-at-all-eof", "export", '1:7 no =', "-"),
    ("export/only-equals", "export =b\n", '1:8 bad name', "P"),
    ("export/only-equals-far", "export   =b\n", '1:10 bad name', "-"),
    ("export/upper-case", "EXPORT A=b\n", '1:8 no =', "-"),
    ("export/quoted-no-prefix", "'export' A=b\n", '1:10 no =', "-"),
    ("export/without-export-after-definition", "A=b\nA\n", '2:2 no =', "-"),
    # Comments: `#` after a blank in a bare value, anywhere after a closing quote
    ("comment/only", "# c", {}, "-"),
    ("comment/empty", "#\nA=b\n", {"A": "b"}, "-"),
    ("comment/many", "#a\n #b\n\t#c\nA=b\n", {"A": "b"}, "-"),
    ("comment/tab-before-hash", "A=b\t# c\n", {"A": "b"}, "-"),
    ("comment/vt-before-hash-after-dollar", "A=$b\x0b# c\n", {"A": "$b"}, "-"),
    ("comment/ls-before-hash-after-hash", "A=b#c\u2028#d\n", {"A": "b#c"}, "-"),
    ("comment/nel-at-end-after-dollar", "A=$b\x85\n", {"A": "$b"}, "-"),
    ("comment/nothing-after-hash", "A=b #\n", {"A": "b"}, "-"),
    ("comment/hash-in-word", "A=#fff\nB=a#b#c\n", {"A": "#fff", "B": "a#b#c"}, "-"),
    ("comment/hash-only", "A=#\n", {"A": "#"}, "-"),
    ("comment/hash-after-blank", "A= #\n", {"A": ""}, "-"),
    ("comment/hash-after-blank-then-next", "A= # c\nB=d\n", {"A": "", "B": "d"}, "-"),
    ("comment/first-cut-counts", "A=a #b #c\n", {"A": "a"}, "-"),
    ("comment/quote-in-comment", 'A=b # "c\nB=\'d\' # it\'s\n', {"A": "b", "B": "d"}, "-"),
    ("comment/reference-in-comment", "A=b # ${\n# ${}\n", {"A": "b"}, "-"),
    ("comment/after-double-no-blank", 'A="b"#c\n', {"A": "b"}, "-"),
    ("comment/after-double-eof", 'A="b" #', {"A": "b"}, "-"),
    ("comment/after-empty-quotes", 'A=\'\'# c\nB="" # d\n', {"A": "", "B": ""}, "-"),
    ("comment/equals-in-comment", "# A=b\nC=d # E=f\n", {"C": "d"}, "-"),
    ("comment/backslash-before-hash", "A=b \\#c\n", {"A": r"b \#c"}, "-"),
    ("comment/quoted-word-then-comment", "A=b 'c # d'\n", {"A": "b 'c"}, "-"),
    ("comment/semicolon-is-none", "A=b ; c\n", {"A": "b ; c"}, "-"),
    ("comment/slashes-are-none", "A=http://b // c\n", {"A": "http://b // c"}, "-"),
    ("comment/hash-after-name", "A# c\n", '1:2 no =', "-"),
    ("comment/hash-in-name", "A#B=c\n", '1:2 no =', "-"),
    ("comment/hash-after-name-and-blank", "A #=c\n", '1:3 no =', "-"),
    # Quoted values
    ("quoted/empty-double", 'A=""\n', {"A": ""}, "-"),
    ("quoted/empty-single-eof", "A=''", {"A": ""}, "-"),
    ("quoted/blank-in-quotes", "A=' '\n", {"A": " "}, "-"),
    ("quoted/equals-inside", 'A=\'b=c\'\nD="e=f"\n', {"A": "b=c", "D": "e=f"}, "-"),
    ("quoted/export-inside", 'A="\nexport B=c\n"\n', {"A": "\nexport B=c\n"}, "-"),
    ("quoted/multi-line-single", "A='b\n\n c '\nD=e\n", {"A": "b\n\n c ", "D": "e"}, "-"),
    ("quoted/multi-line-comment-inside", 'A="b # c\n# d"\n', {"A": "b # c\n# d"}, "-"),
    ("quoted/double-escapes", 'A="\\\\ \\\' \\" \\a \\b" ', {"A": '\\ \' " \x07 \x08'}, "-"),
    ("quoted/double-control-escapes", r'A="\f \n \r \t \v"', {"A": "\x0c \n \r \t \x0b"}, "-"),
    ("quoted/double-unknown-escapes", r'A="\0 \1 \e \q \/ \# \= \$ \`"', {"A": r"\0 \1 \e \q \/ \# \= \$ \`"}, "-"),
    ("quoted/double-unknown-numbers", r'A="\x41 \u0041 \N{DASH}"', {"A": r"\x41 \u0041 \N{DASH}"}, "-"),
    ("quoted/double-pairs", r'A="\\\\n\\\n"', {"A": "\\\\n\\\n"}, "-"),
    ("quoted/double-backslash-end", r'A="b\\"', {"A": "b\\"}, "-"),
    ("quoted/double-escaped-then-close", r'A="b\\\""', {"A": r'b\"'}, "-"),
    ("quoted/double-backslash-newline", 'A="b\\\n\\n"', {"A": "b\\\n\n"}, "-"),
    ("quoted/double-backslash-blank", r'A="b\ "', {"A": r"b\ "}, "-"),
    ("quoted/double-backslash-non-ascii", 'A="\\\xe9\\\U0001f511"', {"A": "\\\xe9\\\U0001f511"}, "-"),
    ("quoted/single-two-escapes", r"A='\\ \''", {"A": r"\ '"}, "-"),
    ("quoted/single-others-stay", 'A=\'\\" \\a \\b \\f \\n \\r \\t \\v\'', {"A": r'\" \a \b \f \n \r \t \v'}, "-"),
    ("quoted/single-numbers-stay", r"A='\x41 \u0041 \$'", {"A": r"\x41 \u0041 \$"}, "-"),
    ("quoted/single-backslash-end", "A='b\\\\'\n", {"A": "b\\"}, "-"),
    ("quoted/single-pairs", r"A='\\\\\\n'", {"A": r"\\\n"}, "-"),
    ("quoted/single-in-quoted-name", "'A'='\\\\ \\' \\n ${A}'\n", {"A": r"\ ' \n ${A}"}, "-"),
    ("quoted/single-windows-path", "A='C:\\dir\\new'\n", {"A": r"C:\dir\new"}, "-"),
    ("quoted/single-backslash-newline", "A='b\\\nc'\n", {"A": "b\\\nc"}, "-"),
    ("quoted/backticks-are-nothing", "A=`b`\nC=`d # e`\n", {"A": "`b`", "C": "`d"}, "-"),
    ("quoted/dollar-quote-is-bare", "A=$'b\\n'\n", {"A": r"$'b\n'"}, "-"),
    ("quoted/smart-quotes-are-bare", "A=\u2018b\u2019\n", {"A": "\u2018b\u2019"}, "-"),
    ("quoted/text-after-single", "A='b' c\n", '1:7 text after', "-"),
    ("quoted/text-after-empty", "A=''b\n", '1:5 text after', "-"),
    ("quoted/text-after-third-quote", "A='''b'''\n", '1:5 text after', "-"),
    ("quoted/text-after-equals", 'A="b"=c\n', '1:6 text after', "-"),
    ("quoted/text-after-far", 'A="b" \t c # d\n', '1:9 text after', "-"),
    ("quoted/text-after-multi-line", "X=1\nA='b\n\nc' d\n", '4:4 text after', "-"),
    ("quoted/text-after-crlf-lines", "X=1\r\nA='b\r\n\r\nc' d\r\n", '4:4 text after', "-"),
    ("quoted/text-after-astral", 'A="\U0001f511"x\n', '1:6 text after', "-"),
    ("quoted/text-after-dollar", 'A="b"${H}\n', '1:6 text after', "-", HOST),
    ("quoted/text-after-backslash", "A='b'\\\n", '1:6 text after', "-"),
    # Bare values: no escapes, no continuation, quotes inside are themselves
    ("bare/quotes-inside", 'A=it\'s "b"\n', {"A": 'it\'s "b"'}, "-"),
    ("bare/quote-at-end", 'A=b\'\nC=d"\n', {"A": "b'", "C": 'd"'}, "-"),
    ("bare/escapes-literal", r"A=\n\t\\ \' \x", {"A": r"\n\t\\ \' \x"}, "-"),
    ("bare/continuation-none", "A=b\\\nC=d\\\n", {"A": "b\\", "C": "d\\"}, "-"),
    ("bare/trailing-backslash-eof", "A=b\\", {"A": "b\\"}, "-"),
    ("bare/unc-path", "A=\\\\server\\share\n", {"A": r"\\server\share"}, "-"),
    ("bare/backslash-then-quote", "A=\\'b\n", {"A": r"\'b"}, "-"),
    ("bare/json", 'A={"b": "c"} # d\n', {"A": '{"b": "c"}'}, "-"),
    ("bare/bcrypt", "A=$2b$12$abc/def.ghi\n", {"A": "$2b$12$abc/def.ghi"}, "-"),
    ("bare/command-substitution", "A=$(id) `id`\n", {"A": "$(id) `id`"}, "-"),
    ("bare/question-first", "A=?Password\nB= ? x\n", {"A": "?Password", "B": "? x"}, "-"),
    ("bare/question-and-reference", "A=?${U:-x}\n", {"A": "?x"}, "-"),
    ("bare/tilde-glob-brace", "A=~/*.{a,b}\n", {"A": "~/*.{a,b}"}, "-"),
    # Names
    ("name/all-characters", "aZ09_.-=b\n", {"aZ09_.-": "b"}, "-"),
    ("name/one-dash", "-=b\n", {"-": "b"}, "-"),
    ("name/one-dot", ".=b\n", {".": "b"}, "-"),
    ("name/digits", "007=b\n", {"007": "b"}, "-"),
    ("name/trailing-dash", "A-=b\n", {"A-": "b"}, "PNEXJGC"),
    ("name/dashes-in-quotes", "'a-b.c_1'=d\n", {"a-b.c_1": "d"}, "-"),
    ("name/quoted-around-equals", "'A' \t=  b\n", {"A": "b"}, "-"),
    ("name/quoted-digits", "'1'='2'\n", {"1": "2"}, "-"),
    ("name/equals-first", "=b\n", '1:1 bad name', "-"),
    ("name/equals-after-blanks", "\n\n  =b\n", '3:3 bad name', "-"),
    ("name/non-ascii", "\xe9=b\n", '1:1 bad name', "-"),
    ("name/non-ascii-later", "caf\xe9=b\n", '1:4 bad name', "-"),
    ("name/full-width", "\uff21=b\n", '1:1 bad name', "-"),
    ("name/arabic-digit", "A\u0661=b\n", '1:2 bad name', "-"),
    ("name/astral", "AB\U0001f511=b\n", '1:3 bad name', "-"),
    ("name/zero-width", "A\u200b=b\n", '1:2 bad name', "-"),
    ("name/control", "A\x07=b\n", '1:2 bad name', "-"),
    ("name/dollar", "$A=b\n", '1:1 bad name', "-"),
    ("name/plus", "A+=b\n", '1:2 bad name', "-"),
    ("name/colon", "A: b\n", '1:2 bad name', "-"),
    ("name/slash", "a/b=c\n", '1:2 bad name', "-"),
    ("name/brace", "}\n", '1:1 bad name', "-"),
    ("name/backtick", "`A`=b\n", '1:1 bad name', "-"),
    ("name/double-quoted", '"A"=b\n', '1:1 bad name', "GCV"),
    ("name/quote-inside", "A'B=c\n", '1:2 bad name', "-"),
    ("name/backslash", "A\\=b\n", '1:2 bad name', "-"),
    ("name/backslash-after", "A \\\n=b\n", '1:3 no =', "-"),
    ("name/bad-before-missing-equals", "A! B\n", '1:2 bad name', "-"),
    ("name/quoted-blank", "' A'=b\n", '1:2 bad name', "-"),
    ("name/quoted-tab-inside", "'A\tB'=c\n", '1:3 bad name', "-"),
    ("name/quoted-escape", "'A\\nB'=c\n", '1:3 bad name', "-"),
    ("name/quoted-non-ascii", "'\xe9'=b\n", '1:2 bad name', "-"),
    ("name/quoted-empty", "X=1\n''=b\n", '2:2 bad name', "-"),
    ("name/quoted-unterminated", "'A", '1:1 unterminated quote', "-"),
    ("name/quoted-unterminated-alone", "A=b\n  '", '2:3 unterminated quote', "-"),
    ("name/quoted-no-equals", "'A' b\n", '1:5 no =', "-"),
    ("name/quoted-no-equals-eof", "'A'", '1:4 no =', "-"),
    ("name/json-line", '{\n  "A": "b"\n}\n', '1:1 bad name', "-"),
    ("name/yaml-list", "- A=b\n", '1:3 no =', "-"),
    # A name without `=`: a wrapped key, a lost value
    ("no-equals/eof", "A", '1:2 no =', "-"),
    ("no-equals/trailing-blanks", "A \t \nB=c\n", '1:5 no =', "-"),
    ("no-equals/crlf", "A\r\nB=c\r\n", '1:2 no =', "-"),
    ("no-equals/wrapped-base64", "A=YWJj\nZGVm\n", '2:5 no =', "-"),
    ("no-equals/wrapped-base64-slash", "A=YWJj\nZG/m\n", '2:3 bad name', "-"),
    ("no-equals/unquoted-pem", "K=-----BEGIN KEY-----\nabcd\n", '2:5 no =', "-"),
    ("no-equals/pem-alone", "-----END X-----\n", '1:10 no =', "-"),
    ("no-equals/set-command", "set A=b\n", '1:5 no =', "-"),
    ("no-equals/equals-next-line", "A\n=b\n", '1:2 no =', "PGV"),
    ("no-equals/value-next-line", "A=\nb\n", '2:2 no =', "-"),
    ("no-equals/two-words-equals", "A B=c\n", '1:3 no =', "-"),
    ("no-equals/ls-is-a-blank", "A\u2028B=c\n", '1:3 no =', "-"),
    ("no-equals/after-multi-line", "A='1\n2\n3'\nB\n", '4:2 no =', "-"),
    ("no-equals/after-cr-lines", "A=1\rB=2\rC\r", '3:2 no =', "-"),
    ("no-equals/after-vt-lines", "A=1\x0b\x0c\u2028\nC\n", '2:2 no =', "-"),
    ("no-equals/first-error-counts", "A=b\nB\n=c\nD='e\n", '2:2 no =', "-"),
    # Unterminated quotes: reported where they open
    ("open-quote/double", 'A="b\n', '1:3 unterminated quote', "-"),
    ("open-quote/single", "A='b\n", '1:3 unterminated quote', "-"),
    ("open-quote/double-alone", 'A="', '1:3 unterminated quote', "-"),
    ("open-quote/single-alone", "A='", '1:3 unterminated quote', "-"),
    ("open-quote/after-blanks", "  A  =  'b", '1:9 unterminated quote', "-"),
    ("open-quote/after-export", 'export A="b', '1:10 unterminated quote', "-"),
    ("open-quote/later-line", "X=1\n\nA='b\nC=d\nE=f\n", '3:3 unterminated quote', "-"),
    ("open-quote/later-line-crlf", "X=1\r\n\r\nA='b\r\nC=d\r\n", '3:3 unterminated quote', "-"),
    ("open-quote/escaped-close", r'A="b\"', '1:3 unterminated quote', "-"),
    ("open-quote/escaped-close-single", r"A='b\'", '1:3 unterminated quote', "-"),
    ("open-quote/odd-backslashes", r'A="b\\\"', '1:3 unterminated quote', "-"),
    ("open-quote/ends-in-backslash", "A='b\\", '1:3 unterminated quote', "-"),
    ("open-quote/other-quote-inside", 'A=\'b"\n', '1:3 unterminated quote', "PGCV"),
    ("open-quote/after-bom", "\ufeffA='b", '1:3 unterminated quote', "-"),
    ("open-quote/after-multi-line", 'A=\'1\n2\' # c\nB="x\n', '3:3 unterminated quote', "-"),
    # NUL and bytes that are no UTF-8: refused wherever they stand
    ("bytes/nul-alone", "\x00", '1:1 NUL', "-"),
    ("bytes/nul-in-double", 'A="b\n\x00"\n', '2:1 NUL', "-"),
    ("bytes/nul-in-single", "A='\x00'\n", '1:4 NUL', "-"),
    ("bytes/nul-in-comment", "A=b\n# \x00\n", '2:3 NUL', "-"),
    ("bytes/nul-in-quoted-name", "'A\x00'=b\n", '1:3 NUL', "-"),
    ("bytes/nul-after-crlf", "A=b\r\nC=\x00\r\n", '2:3 NUL', "-"),
    ("bytes/nul-after-bom", b'\xef\xbb\xbfA=\x00', '1:3 NUL', "-"),
    ("bytes/nul-after-non-ascii", "A=\xe9\U0001f511\x00", '1:5 NUL', "-"),
    ("bytes/latin-1", b'A=caf\xe9\n', '1:6 UTF-8', "-"),
    ("bytes/cut-short", b'A=\xe2\x82', '1:3 UTF-8', "-"),
    ("bytes/cut-short-then-newline", b'A=b\nC=\xf0\x9f\n', '2:3 UTF-8', "-"),
    ("bytes/lone-continuation", b'A=\x80', '1:3 UTF-8', "-"),
    ("bytes/overlong", b'A=\xc0\x80', '1:3 UTF-8', "-"),
    ("bytes/encoded-surrogate", b'A=\xed\xa0\x80', '1:3 UTF-8', "-"),
    ("bytes/beyond-unicode", b'A=\xf4\x90\x80\x80', '1:3 UTF-8', "-"),
    ("bytes/after-characters", b'A=\xc3\xa9\xf0\x9f\x94\x91\xff', '1:5 UTF-8', "-"),
    ("bytes/in-name", b'A\xff=b', '1:2 UTF-8', "-"),
    ("bytes/after-crlf", b'A=b\r\n\r\n\xff', '3:1 UTF-8', "-"),
    ("bytes/after-bom-bytes", b'\xef\xbb\xbfA=\xff', '1:3 UTF-8', "-"),
    ("bytes/half-a-bom", b'\xef\xbbA=b', '1:1 UTF-8', "-"),
    # References: braces only, the file so far before the host, nothing scanned twice
    ("ref/host", "A=${H}\n", {"A": "host"}, "-", HOST),
    ("ref/host-empty", "A=<${NIL}>\n", {"A": "<>"}, "-", HOST),
    ("ref/file-before-host", "H=file\nA=${H}\n", {"H": "file", "A": "file"}, "-", HOST),
    ("ref/empty-file-before-host", "H=\nA=<${H}>\n", {"H": "", "A": "<>"}, "-", HOST),
    ("ref/undefined-is-empty", "A=<${U}>\n", {"A": "<>"}, "-"),
    ("ref/forward-is-host", "A=${H}\nH=file\n", {"A": "host", "H": "file"}, "-", HOST),
    ("ref/self-is-host", "H=${H}:more\n", {"H": "host:more"}, "-", HOST),
    ("ref/self-is-earlier", "A=1\nA=${A}2\nA=${A}3\n", {"A": "123"}, "-"),
    ("ref/chain", "A=a\nB=${A}b\nC=${B}c\n", {"A": "a", "B": "ab", "C": "abc"}, "-"),
    ("ref/value-at-that-time", "A=1\nB=${A}\nA=2\n", {"A": "2", "B": "1"}, "-"),
    ("ref/in-double", 'A=1\nB="<${A}>"\n', {"A": "1", "B": "<1>"}, "-"),
    ("ref/in-double-multi-line", 'A=1\nB="x\n${A}\ny"\n', {"A": "1", "B": "x\n1\ny"}, "-"),
    ("ref/single-is-literal", "A=1\nB='${A} ${} ${'\n", {"A": "1", "B": "${A} ${} ${"}, "-"),
    ("ref/no-braces-literal", 'A=1\nB=$A $$ $1 $\nC="$A"\n', {"A": "1", "B": "$A $$ $1 $", "C": "$A"}, "-"),
    ("ref/dollar-before", "A=1\nB=$${A}\n", {"A": "1", "B": "$1"}, "-"),
    ("ref/brace-after", "A=1\nB=${A}}\n", {"A": "1", "B": "1}"}, "-"),
    ("ref/split-dollar-brace", "B=$ {A} {$A} $\\{A}\n", {"B": r"$ {A} {$A} $\{A}"}, "-"),
    ("ref/neighbours", "A=1\nB=2\nC=${A}${B}${A}\n", {"A": "1", "B": "2", "C": "121"}, "-"),
    ("ref/name-with-dot", "A.B=1\nC=${A.B}\n", {"A.B": "1", "C": "1"}, "-"),
    ("ref/name-of-digits", "1=x\nA=${1}\n", {"1": "x", "A": "x"}, "-"),
    ("ref/name-with-dash-unreachable", "A-B=1\nC=${A-B}\n", {"A-B": "1", "C": "B"}, "-"),
    ("ref/not-scanned-again", "A='${H}'\nB=${A}\nC=${B}\n", {"A": "${H}", "B": "${H}", "C": "${H}"}, "-", HOST),
    ("ref/host-not-scanned", "A=${X}\n", {"A": r'${H} # "\n'}, "-", {'X': '${H} # "\\n', 'H': 'no'}),
    ("ref/no-comment-from-value", "A=' # b'\nC=x${A} y\n", {"A": " # b", "C": "x # b y"}, "-"),
    ("ref/no-trim-of-value", "A='  b  '\nC=${A}\n", {"A": "  b  ", "C": "  b  "}, "-"),
    ("ref/no-escape-from-value", 'A=\'\\n\'\nB="${A}"\n', {"A": r"\n", "B": r"\n"}, "-"),
    ("ref/no-joined-reference", "D='$'\nA=${D}{H}\n", {"D": "$", "A": "${H}"}, "-", HOST),
    ("ref/newline-from-value", "A='1\n2'\nB=${A}3\n", {"A": "1\n2", "B": "1\n23"}, "-"),
    ("ref/comment-cut-first", "A=${H} # ${\n", {"A": "host"}, "-", HOST),
    ("ref/empty-value-then-comment", "A= # ${}\n", {"A": ""}, "-"),
    ("ref/not-in-names", "A=1\n${A}=b\n", '2:1 bad name', "-"),
    ("ref/host-alone-adds-nothing", "A=b\n", {"A": "b"}, "-", HOST),
    ("ref/lower-and-upper", "a=1\nB=<${A}>\n", {"a": "1", "B": "<>"}, "-"),
    ("ref/after-export", "A=1\nexport A\nB=${A}\n", {"A": "1", "B": "1"}, "-"),
    ("ref/in-exported", "A=1\nexport B=${A}\n", {"A": "1", "B": "1"}, "-"),
    ("ref/in-name-value-with-hash", "A=${H}#c\n", {"A": "host#c"}, "-", HOST),
    # Operators: unset, empty and set, in the file and on the host
    ("operator/colon-minus-unset", "A=<${U:-w}>\n", {"A": "<w>"}, "-"),
    ("operator/colon-minus-empty", "E=\nA=<${E:-w}>\n", {"E": "", "A": "<w>"}, "-"),
    ("operator/colon-minus-set", "S=s\nA=<${S:-w}>\n", {"S": "s", "A": "<s>"}, "-"),
    ("operator/colon-minus-host-empty", "A=<${NIL:-w}>\n", {"A": "<w>"}, "-", HOST),
    ("operator/colon-minus-host-set", "A=<${H:-w}>\n", {"A": "<host>"}, "-", HOST),
    ("operator/colon-minus-no-word", "S=s\nA=<${U:-}${S:-}>\n", {"S": "s", "A": "<s>"}, "-"),
    ("operator/minus-unset", "A=<${U-w}>\n", {"A": "<w>"}, "-"),
    ("operator/minus-empty", "E=\nA=<${E-w}>\n", {"E": "", "A": "<>"}, "-"),
    ("operator/minus-set", "S=s\nA=<${S-w}>\n", {"S": "s", "A": "<s>"}, "-"),
    ("operator/minus-host-empty", "A=<${NIL-w}>\n", {"A": "<>"}, "-", HOST),
    ("operator/minus-host-set", "A=<${H-w}>\n", {"A": "<host>"}, "-", HOST),
    ("operator/minus-no-word", "S=s\nA=<${U-}${S-}>\n", {"S": "s", "A": "<s>"}, "-"),
    ("operator/colon-plus-unset", "A=<${U:+w}>\n", {"A": "<>"}, "-"),
    ("operator/colon-plus-empty", "E=\nA=<${E:+w}>\n", {"E": "", "A": "<>"}, "-"),
    ("operator/colon-plus-set", "S=s\nA=<${S:+w}>\n", {"S": "s", "A": "<w>"}, "-"),
    ("operator/colon-plus-host-empty", "A=<${NIL:+w}>\n", {"A": "<>"}, "-", HOST),
    ("operator/colon-plus-host-set", "A=<${H:+w}>\n", {"A": "<w>"}, "-", HOST),
    ("operator/colon-plus-no-word", "S=s\nA=<${U:+}${S:+}>\n", {"S": "s", "A": "<>"}, "-"),
    ("operator/plus-unset", "A=<${U+w}>\n", {"A": "<>"}, "-"),
    ("operator/plus-empty", "E=\nA=<${E+w}>\n", {"E": "", "A": "<w>"}, "-"),
    ("operator/plus-set", "S=s\nA=<${S+w}>\n", {"S": "s", "A": "<w>"}, "-"),
    ("operator/plus-host-empty", "A=<${NIL+w}>\n", {"A": "<w>"}, "-", HOST),
    ("operator/plus-host-set", "A=<${H+w}>\n", {"A": "<w>"}, "-", HOST),
    ("operator/plus-no-word", "S=s\nA=<${U+}${S+}>\n", {"S": "s", "A": "<>"}, "-"),
    ("operator/colon-question-unset", "A=<${U:?w}>\n", '1:4 is required', "-"),
    ("operator/colon-question-empty", "E=\nA=<${E:?w}>\n", '2:4 is required', "-"),
    ("operator/colon-question-set", "S=s\nA=<${S:?w}>\n", {"S": "s", "A": "<s>"}, "-"),
    ("operator/colon-question-host-empty", "A=<${NIL:?w}>\n", '1:4 is required', "-", HOST),
    ("operator/colon-question-host-set", "A=<${H:?w}>\n", {"A": "<host>"}, "-", HOST),
    ("operator/colon-question-no-word", "A=${U:?}\n", '1:3 is required', "-"),
    ("operator/question-unset", "A=<${U?w}>\n", '1:4 is required', "-"),
    ("operator/question-empty", "E=\nA=<${E?w}>\n", {"E": "", "A": "<>"}, "-"),
    ("operator/question-set", "S=s\nA=<${S?w}>\n", {"S": "s", "A": "<s>"}, "-"),
    ("operator/question-host-empty", "A=<${NIL?w}>\n", {"A": "<>"}, "-", HOST),
    ("operator/question-host-set", "A=<${H?w}>\n", {"A": "<host>"}, "-", HOST),
    ("operator/question-no-word", "A=${U?}\n", '1:3 is required', "-"),
    ("operator/file-empty-hides-host", "H=\nA=${H:-d}\nB=${H-d}\n", {"H": "", "A": "d", "B": ""}, "-", HOST),
    ("operator/file-set-hides-empty-host", "NIL=x\nA=${NIL:-d}\n", {"NIL": "x", "A": "x"}, "-", HOST),
    ("operator/in-double", 'A="${U:-d} ${H:+e}"\n', {"A": "d e"}, "-", HOST),
    ("operator/single-is-literal", "A='${U:-d}'\n", {"A": "${U:-d}"}, "-"),
    ("operator/first-dash-is-it", "A=${U-b-c:-d}\n", {"A": "b-c:-d"}, "-"),
    ("operator/dash-then-dash", "A=${U--d}\nB=${U:--d}\n", {"A": "-d", "B": "-d"}, "-"),
    ("operator/plus-then-anything", "A=${H+a:-b}\n", {"A": "a:-b"}, "-", HOST),
    ("operator/question-at-line-and-column", 'X=1\n\nA="b\n  ${U:?w}"\n', '4:3 is required', "-"),
    ("operator/question-after-bom", "\ufeffA=${U?}\n", '1:3 is required', "-"),
    ("operator/question-after-crlf", "X=1\r\nA=b${U?}\r\n", '2:4 is required', "-"),
    ("operator/question-second", "S=1\nA=${S:?}${U:?}\n", '2:9 is required', "-"),
    ("operator/question-forward", "A=${B:?}\nB=1\n", '1:3 is required', "-"),
    # Defaults: nested, up to the brace that matches, text as it stands
    ("default/nested", "A=${U:-${V:-d}}\n", {"A": "d"}, "-"),
    ("default/nested-thrice", "A=${U:-${V:-${W-d}}}\n", {"A": "d"}, "-"),
    ("default/nested-set", "V=v\nA=${U:-${V:-d}}\n", {"V": "v", "A": "v"}, "-"),
    ("default/nested-among-text", "A=${U:-a${V:-b}c${W:-d}e}f\n", {"A": "abcdef"}, "-"),
    ("default/nested-plus", "A=${H:+${H}:}x\n", {"A": "host:x"}, "-", HOST),
    ("default/nested-plus-unset", "A=${U:+${U}:}x\n", {"A": "x"}, "-"),
    ("default/nested-host", "A=${U-${H}}\n", {"A": "host"}, "-", HOST),
    ("default/unused-question", "A=${H:-${U:?w}}\n", {"A": "host"}, "-", HOST),
    ("default/used-question", "A=${U:-${V:?w}}\n", '1:8 is required', "-"),
    ("default/question-word-unused", "A=${H:?${U:?w}}\n", {"A": "host"}, "-", HOST),
    ("default/blanks-kept", 'A="${U:-  b  }"\n', {"A": "  b  "}, "-"),
    ("default/blanks-kept-bare", "A=${U:-  b  }c\n", {"A": "  b  c"}, "-"),
    ("default/quotes-kept-bare", 'A=${U:-"b" \'c\'}\n', {"A": '"b" \'c\''}, "-"),
    ("default/quotes-kept-double", 'A="${U:-\'b\'}"\n', {"A": "'b'"}, "-"),
    ("default/escaped-quotes-double", r'A="${U:-\"b\"}"', {"A": '"b"'}, "-"),
    ("default/escapes-decoded-double", r'A="${U:-a\tb\\c\q}"', {"A": "a\tb\\c\\q"}, "-"),
    ("default/escapes-literal-bare", r"A=${U:-a\tb\\c}", {"A": r"a\tb\\c"}, "-"),
    ("default/newline-in-default", 'A="${U:-a\nb}"\n', {"A": "a\nb"}, "-"),
    ("default/hash-no-blank", "A=${U:-a#b}\n", {"A": "a#b"}, "-"),
    ("default/hash-blank-double", 'A="${U:-a #b}"\n', {"A": "a #b"}, "-"),
    ("default/open-brace-counts-not", "A=${U:-{b}}\n", {"A": "{b}"}, "-"),
    ("default/dollar-in-default", "A=${U:-$b$}\n", {"A": "$b$"}, "-"),
    ("default/backslash-brace", r"A=${U:-a\}b}", {"A": r"a\b}"}, "-"),
    ("default/backslash-brace-double", r'A="${U:-a\}b}"', {"A": r"a\b}"}, "-"),
    ("default/default-not-scanned-again", "D='${H}'\nA=${U:-${D}}\n", {"D": "${H}", "A": "${H}"}, "-", HOST),
    ("default/default-trimmed-after-cut", "A=${U:-b} \t\n", {"A": "b"}, "-"),
    ("default/expanded-blanks-stay", "A=${U:- }\n", {"A": " "}, "-"),
    ("default/unclosed-by-comment", "A=${U:-a # b}\n", '1:3 bad reference', "-"),
    ("default/unclosed-by-newline", "A=${U:-a\nB=c}\n", '1:3 bad reference', "-"),
    # `\${` is a literal `${` in bare and double-quoted values
    ("escape/bare", "A=\\${H}\n", {"A": "${H}"}, "-", HOST),
    ("escape/double", 'A="\\${H}"\n', {"A": "${H}"}, "-", HOST),
    ("escape/single-keeps-backslash", "A='\\${H}'\n", {"A": r"\${H}"}, "-", HOST),
    ("escape/bare-unclosed", "A=\\${\n", {"A": "${"}, "-"),
    ("escape/double-unclosed", 'A="\\${"\n', {"A": "${"}, "-"),
    ("escape/double-empty", 'A="\\${}"\n', {"A": "${}"}, "-"),
    ("escape/bare-then-reference", "A=\\${H}${H}\n", {"A": "${H}host"}, "-", HOST),
    ("escape/bare-two-backslashes", "A=\\\\${H}\n", {"A": r"\${H}"}, "-", HOST),
    ("escape/bare-three-backslashes", "A=\\\\\\${H}\n", {"A": r"\\${H}"}, "-", HOST),
    ("escape/double-two-backslashes", 'A="\\\\${H}"\n', {"A": r"\host"}, "-", HOST),
    ("escape/double-three-backslashes", 'A="\\\\\\${H}"\n', {"A": r"\${H}"}, "-", HOST),
    ("escape/double-four-backslashes", 'A="\\\\\\\\${H}"\n', {"A": r"\\host"}, "-", HOST),
    ("escape/dollar-alone-keeps-backslash", 'A=\\$H\nB="\\$H"\n', {"A": r"\$H", "B": r"\$H"}, "-", HOST),
    ("escape/double-dollar", "A=\\$${H}\n", {"A": r"\$host"}, "-", HOST),
    ("escape/in-default-bare", "A=${U:-\\${X}}\n", {"A": "${X}"}, "-"),
    ("escape/in-default-double", 'A="${U:-\\${X}}"\n', {"A": "${X}"}, "-"),
    ("escape/in-default-pairs", 'A="${U:-\\\\${H}}"\n', {"A": r"\host"}, "-", HOST),
    ("escape/in-default-pairs-bare", "A=${U:-\\\\${H}}\n", {"A": r"\${H}"}, "-", HOST),
    ("escape/in-unused-word", "A=${U:+\\${x}}\n", {"A": "}"}, "-"),
    ("escape/not-in-name", "A=${\\${H}}\n", '1:3 bad reference', "-", HOST),
    # Bad references: the position is the `$`, used or not
    ("bad-ref/empty", "A=${}\n", '1:3 bad reference', "C", HOST),
    ("bad-ref/open-at-end", "A=${\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/blank", "A=${ }\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/no-close", "A=${H\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/blank-inside", "A=${H B}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/blank-first", "A=${ H}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/blank-last", "A=${H }\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/no-name-colon-minus", "A=${:-d}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/no-name-minus", "A=${-d}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/no-name-plus", "A=${+d}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/no-name-question", "A=${?d}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/colon-alone", "A=${H:}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/colon-equals", "A=${H:=x}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/equals", "A=${H=x}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/colon-at-end", "A=${H:\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/operator-at-end", "A=${H:-\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/default-at-end", "A=${H:-d\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/slash", "A=${H/x/y}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/percent", "A=${H%x}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/hash", "A=${H#x}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/length", "A=${#H}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/bang", "A=${!H}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/caret", "A=${H^^}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/comma", "A=${H,}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/substring", "A=${H:0:1}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/at", "A=${H@Q}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/index", "A=${H[0]}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/star", "A=${*}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/at-name", "A=${@}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/dollar-name", "A=${$}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/reference-as-name", "A=${${H}}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/reference-in-name", "A=${H${H}}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/dollar-in-name", "A=${$H}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/quoted-name", "A=${'H'}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/non-ascii", "A=${\xe9}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/non-ascii-later", "A=${H\xe9}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/backslash", "A=${H\\}\n", '1:3 bad reference', "-", HOST),
    ("bad-ref/double", 'A="${}"\n', '1:4 bad reference', "-"),
    ("bad-ref/double-no-close", 'A="${H"\n', '1:4 bad reference', "-", HOST),
    ("bad-ref/double-far-line", 'X=1\n\nA="b\nc ${H d}"\n', '4:3 bad reference', "-", HOST),
    ("bad-ref/double-name-newline", 'A="${H\n}"\n', '1:4 bad reference', "-", HOST),
    ("bad-ref/after-good", "A=${H}-${}\n", '1:8 bad reference', "-", HOST),
    ("bad-ref/after-literal", "A=\\${}${}\n", '1:7 bad reference', "-"),
    ("bad-ref/after-blanks", "A =  b ${}\n", '1:8 bad reference', "-"),
    ("bad-ref/after-crlf", 'X=1\r\n\r\nA="b\r\n${}"\r\n', '4:1 bad reference', "-"),
    ("bad-ref/after-escapes", r'A="\n\\\t${}"', '1:10 bad reference', "-"),
    ("bad-ref/after-astral", "A=\U0001f511${}\n", '1:4 bad reference', "-"),
    ("bad-ref/after-bom", "\ufeffA=${}\n", '1:3 bad reference', "-"),
    ("bad-ref/after-multi-line-name", "export A='1\n2'\nB=x${\n", '3:4 bad reference', "-"),
    ("bad-ref/in-default", "A=${U:-b${}}\n", '1:9 bad reference', "-"),
    ("bad-ref/in-unused-default", "A=${H:-b${}}\n", '1:9 bad reference', "-", HOST),
    ("bad-ref/in-unused-plus", "A=${U:+${B C}}\n", '1:8 bad reference', "-"),
    ("bad-ref/in-question-word", "A=${H:?${}}\n", '1:8 bad reference', "-", HOST),
    ("bad-ref/outer-unclosed", "A=${U:-${V}\n", '1:3 bad reference', "-"),
    ("bad-ref/outer-unclosed-double", 'A="${U:-${V}"\n', '1:4 bad reference', "-"),
    ("bad-ref/before-a-later-error", "A=${}\nB\n", '1:3 bad reference', "-"),
    ("bad-ref/after-an-earlier-error", "B\nA=${}\n", '1:2 no =', "-"),
    ("bad-ref/dash-means-operator", "A=${H-}${-H}\n", '1:8 bad reference', "-", HOST),
    # Measured on all ten implementations; PROC is set on the host
    ("all/basic-eq-double", "A==b\n", {"A": "=b"}, "PNEXJRGCVB"),
    ("all/basic-empty-value-spaces-then-next", "A=   \nB=c\n", {"A": "", "B": "c"}, "PNEXJRGCVB"),
    ("all/basic-empty-value", "A=\n", {"A": ""}, "PNEXJRGCVB"),
    ("all/basic-empty-value-then-next", "A=\nB=c\n", {"A": "", "B": "c"}, "PNEXJRGCVB"),
    ("all/basic-only-newlines", "\n\n\n", {}, "PNEXJRGCVB"),
    ("all/basic-lowercase-key", "abc=d\n", {"abc": "d"}, "PNEXJRGCVB"),
    ("all/basic-duplicate-order", "A=1\nB=x\nA=2\n", {"A": "2", "B": "x"}, "PNEXJRGCVB"),
    ("all/basic-duplicate", "A=1\nA=2\n", {"A": "2"}, "PNEXJRGCVB"),
    ("all/basic-json-value", 'A={"x": "y", "z": [1, 2]}\n', {"A": '{"x": "y", "z": [1, 2]}'}, "PNEXJRGC"),
    ("all/basic-empty-value-blank-then-next", "A=\n\nB=c\n", {"A": "", "B": "c"}, "PNEXJRGCVB"),
    ("all/basic-eq-in-value", "A=b=c==d\n", {"A": "b=c==d"}, "PNEXJRGCVB"),
    ("all/backtick-quotes-inside", 'A=`b "c" \'d\'`\n', {"A": '`b "c" \'d\'`'}, "PRGC"),
    ("all/backtick-unterm", "A=`b\nC=d\n", {"A": "`b", "C": "d"}, "PNEXJRGCV"),
    ("all/backtick-esc", "A=`b\\`c`\n", {"A": r"`b\`c`"}, "PGC"),
    ("all/backtick-simple", "A=`b`\n", {"A": "`b`"}, "PRGCV"),
    ("all/comment-after-dq-nospace", 'A="b"# c\n', {"A": "b"}, "PNEXJRGC"),
    ("all/comment-semicolon", "; c\nA=b\n", '1:1 bad name', "PGCV"),
    ("all/comment-inline-nospace", "A=b#c\n", {"A": "b#c"}, "PGCVB"),
    ("all/comment-full-line", "# c\nA=b\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/comment-after-sq-nospace", "A='b'#c\n", {"A": "b"}, "PNEXJRGC"),
    ("all/comment-ls-before-hash", "A=b\u2028# c\n", {"A": "b"}, "PNEXV"),
    ("all/comment-commented-assignment", "#A=b\nB=c\n", {"B": "c"}, "PNEXJRGCVB"),
    ("all/comment-hash-in-sq", "A='b # c'\n", {"A": "b # c"}, "PNEXJRGCVB"),
    ("all/comment-hash-in-bt", "A=`b # c`\n", {"A": "`b"}, "PRGCV"),
    ("all/comment-comment-with-quote", "A=b # it's\nC=d\n", {"A": "b", "C": "d"}, "PNEXJRGCVB"),
    ("all/comment-bare-key-hash-nospace", "A#c\n", '1:2 no =', "GCV"),
    ("all/comment-slashslash", "// c\nA=b\n", '1:1 bad name', "PGCV"),
    ("all/comment-full-line-with-quote", '# it\'s "x\nA=b\n', {"A": "b"}, "PNEXJRGCVB"),
    ("all/comment-value-tab-hash", "A=\t# c\n", {"A": ""}, "PNEXRVB"),
    ("all/comment-value-space-hash-nospaceafter", "A= #c\n", {"A": ""}, "PNEXJRVB"),
    ("all/comment-inline-double-hash", "A=b ## d\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/comment-fs-before-hash", "A=b\x1c# c\n", {"A": "b"}, "P"),
    ("all/comment-tab-indented", "\t# c\nA=b\n", {"A": "b"}, "PNEXRGCVB"),
    ("all/comment-indented", "   # c\nA=b\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/comment-inline-hash-then-space-hash", "A=b#c # d\n", {"A": "b#c"}, "PGCVB"),
    ("all/comment-hash-in-dq", 'A="b # c"\n', {"A": "b # c"}, "PNEXJRGCVB"),
    ("all/comment-value-hash-only", "A=#c\n", {"A": "#c"}, "PCB"),
    ("all/comment-comment-eof-nonl", "A=b\n# end", {"A": "b"}, "PNEXJRGCVB"),
    ("all/comment-after-sq-space", "A='b' # c\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/comment-inline-space-nospaceafter", "A=b #c\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/double-esc-r", 'A="b\\rc"\n', {"A": "b\rc"}, "PNEXGC"),
    ("all/double-esc-newline", 'A="b\\\nc"\n', {"A": "b\\\nc"}, "PNEXJC"),
    ("all/double-json-esc", 'A="{\\"x\\": \\"y\\"}"\n', {"A": '{"x": "y"}'}, "PRGCVB"),
    ("all/double-json-sq", 'A=\'{"x": "y"}\'\n', {"A": '{"x": "y"}'}, "PNEXJRGCVB"),
    ("all/double-semicolon-after", 'A="b";\n', '1:6 text after', "P"),
    ("all/double-esc-e0", 'A="\\e\\0\\033"\n', {"A": r"\e\0\033"}, "PNEXJB"),
    ("all/double-esc-t", 'A="b\\tc"\n', {"A": "b\tc"}, "PXC"),
    ("all/double-multiline-comment-after", 'A="b\nc" # d\nE=f\n', {"A": "b\nc", "E": "f"}, "PNEXJRGCVB"),
    ("all/double-unterm-comment", 'A="b # c\nC=d\n', '1:3 unterminated quote', "PGCV"),
    ("all/double-unterm-eof", 'A="b', '1:3 unterminated quote', "PGCV"),
    ("all/double-esc-U", 'A="\\U00000041"\n', {"A": r"\U00000041"}, "PNEXJCB"),
    ("all/double-mid-hash", 'A=b "c # d"\n', {"A": 'b "c'}, "PNEXJRGC"),
    ("all/double-unterm", 'A="b\nC=d\n', '1:3 unterminated quote', "PGCV"),
    ("all/double-esc-x", 'A="\\x41"\n', {"A": r"\x41"}, "PNEXJCB"),
    ("all/double-esc-space", 'A="b\\ c"\n', {"A": r"b\ c"}, "PNEXJCB"),
    ("all/double-esc-hash", 'A="b\\#c"\n', {"A": r"b\#c"}, "PNEXJCB"),
    ("all/double-adjacent-sq", 'A="b"\'c\'\n', '1:6 text after', "P"),
    ("all/double-only-backslash", 'A="\\"\n', '1:3 unterminated quote', "PGCV"),
    ("all/double-esc-unknown", 'A="b\\qc\\dd"\n', {"A": r"b\qc\dd"}, "PNEXJCB"),
    ("all/double-backslash-newline-close", 'A="a\\\n"\n', {"A": "a\\\n"}, "PNEXJC"),
    ("all/double-regex", 'A="^\\d+\\.\\w$"\n', {"A": r"^\d+\.\w$"}, "PNEXJCB"),
    ("all/double-esc-bs-bs-n", 'A="b\\\\\\nc"\n', {"A": "b\\\nc"}, "PGCV"),
    ("all/double-mid-space", 'A=b "c" d\n', {"A": 'b "c" d'}, "PNEXJRGC"),
    ("all/double-adjacent", 'A="b""c"\n', '1:6 text after', "P"),
    ("all/double-text-after-space", 'A="b" c\nD=e\n', '1:7 text after', "PV"),
    ("all/double-simple", 'A="b"\n', {"A": "b"}, "PNEXJRGCVB"),
    ("all/double-unterm-esc-eof", 'A="b\\', '1:3 unterminated quote', "PGCV"),
    ("all/double-esc-N", 'A="\\N{DIGIT ONE}"\n', {"A": r"\N{DIGIT ONE}"}, "PNEXJCB"),
    ("all/double-triple", 'A="""b"""\n', '1:5 text after', "P"),
    ("all/double-multiline-eq", 'A="b\nC=d\n"\nE=f\n', {"A": "b\nC=d\n", "E": "f"}, "PNEXJRGCVB"),
    ("all/double-unterm-later-quote", 'A="b\nC="d"\nE=f\n', '2:4 text after', "PV"),
    ("all/double-json-multiline-unquoted", 'A={\n "x": "y"\n}\nB=c\n', '2:2 bad name', "PV"),
    ("all/double-mid", 'A=b"c"d\n', {"A": 'b"c"d'}, "PNEXJRGC"),
    ("all/double-text-after", 'A="b"c\nD=e\n', '1:6 text after', "P"),
    ("all/double-esc-dollar-brace", 'A="\\${PROC}"\n', {"A": "${PROC}"}, "EXRGCVB", {'PROC': 'proc'}),
    ("all/double-dollar-quote", 'A=$"b"\n', {"A": '$"b"'}, "PNEXJRGC"),
    ("all/double-esc-n", 'A="b\\nc"\n', {"A": "b\nc"}, "PNEXJGCV"),
    ("all/double-sq-inside", 'A="b\'c"\n', {"A": "b'c"}, "PNEXJRGCVB"),
    ("all/encoding-invalid-utf8-comment", b'# caf\xe9\nC=d\n', '1:6 UTF-8', "PRV"),
    ("all/encoding-smart-quotes", "A=\u201cb\u201d\n", {"A": "\u201cb\u201d"}, "PNEXJRGCVB"),
    ("all/encoding-bom-twice", "\ufeff\ufeffA=b\n", '1:1 bad name', "GCV"),
    ("all/encoding-nul-key", "A\x00B=c\n", '1:2 NUL', "GCV"),
    ("all/encoding-bom-comment", "\ufeff# c\nA=b\n", {"A": "b"}, "PNEXRCVB"),
    ("all/encoding-esc-ctrl", "A=b\x1b[31mc\n", {"A": "b\x1b[31mc"}, "PNEXJRGCVB"),
    ("all/encoding-nul-value", "A=b\x00c\n", '1:4 NUL', ""),
    ("all/encoding-combining", "A=e\u0301\n", {"A": "e\u0301"}, "PNEXJRGCVB"),
    ("all/encoding-invalid-utf8", b'A=b\xff\xfe\nC=d\n', '1:4 UTF-8', "PRV"),
    ("all/error-error-crlf", "A B\r\nC=d\r\n", '1:3 no =', "PGCV"),
    ("all/error-if-block", "if true; then\nA=b\nfi\n", '1:4 no =', "PGCV"),
    ("all/error-error-after-comment", "# c\n\n\nA B=c\nD=e\n", '4:3 no =', "PCV"),
    ("all/error-blank-lines-before-error", "X=1\n\n\n\nA B\n", '5:3 no =', "PV"),
    ("all/error-shebang", "#!/bin/sh\nA=b\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/error-error-multi", "A=b\n=x\nC=d\n'q\nE=f\n", '2:1 bad name', "PV"),
    ("all/error-error-then-good", "A B=c\nD=e\n", '1:3 no =', "PCV"),
    ("all/error-text-after-multiline", 'A="b\nc" d\nE=f\n', '2:4 text after', "PV"),
    ("all/export-tab", "export\tA=b\n", {"A": "b"}, "PNEXRGCVB"),
    ("all/export-simple", "export A=b\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/export-multi-assign", "export A=b C=d\n", {"A": "b C=d"}, "PNEXJRGC"),
    ("all/export-bare", "export A\n", '1:9 no =', "RGV"),
    ("all/export-declare-x", "declare -x A=b\n", '1:9 no =', "PCV"),
    ("all/export-prefix-no-space", "exportA=b\n", {"exportA": "b"}, "PNEXJRGCVB"),
    ("all/export-bare-after-def", "A=b\nexport A\n", {"A": "b"}, "NEXJRGCB"),
    ("all/export-quoted", 'export A="b c"\n', {"A": "b c"}, "PNEXJRGCVB"),
    ("all/export-newline", "export\nA=b\n", '1:7 no =', "GV"),
    ("all/export-twice", "export export A=b\n", '1:15 no =', "PCV"),
    ("all/reference-default-with-space", 'A="${UNDEF:-a b}"\n', {"A": "a b"}, "PEXCB"),
    ("all/reference-dot-name", "B.C=x\nA=${B.C} $B.C\n", {"B.C": "x", "A": "x $B.C"}, "P"),
    ("all/reference-literal-in-single", "B=x\nA='a${B'\n", {"B": "x", "A": "a${B"}, "PNEXJRGCVB"),
    ("all/reference-lower-name", "b=x\nA=${b} $b\n", {"b": "x", "A": "x $b"}, "P"),
    ("all/reference-in-comment", "A=b # ${PROC}\n", {"A": "b"}, "PNEXJRGCVB", {'PROC': 'proc'}),
    ("all/reference-bcrypt", "A=$2b$12$abcDEF\n", {"A": "$2b$12$abcDEF"}, "PNJ"),
    ("all/reference-subst-injects-quote", "B='a # b'\nA=${B}\n", {"B": "a # b", "A": "a # b"}, "PEXRGCVB"),
    ("all/reference-nested-default", "A=${UNDEF:-${PROC}}\n", {"A": "proc"}, "EXCB", {'PROC': 'proc'}),
    ("all/reference-dash-name", "B-C=x\nA=${B-C}\n", {"B-C": "x", "A": "C"}, "EXC"),
    ("all/reference-default-undef", "A=${UNDEF:-d}\n", {"A": "d"}, "PEXCB"),
    ("all/reference-strip-op", "A=${PROC%c}\n", '1:3 bad reference', "C", {'PROC': 'proc'}),
    ("all/reference-forward-ref", "A=${B}\nB=b\n", {"A": "", "B": "b"}, "PXRGCVB"),
    ("all/reference-undef", "A=x${UNDEF}y\n", {"A": "xy"}, "PEXRGCVB"),
    ("all/reference-plus-nocolon", "A=${PROC+x}\n", {"A": "x"}, "EXCB", {'PROC': 'proc'}),
    ("all/reference-self-append", "A=x\nA=${A}y\n", {"A": "xy"}, "PXRGCVB"),
    ("all/reference-dollar-dollar-brace", "A=$${PROC}\n", {"A": "$proc"}, "PRG", {'PROC': 'proc'}),
    ("all/reference-self-ref", "A=${A}\n", {"A": ""}, "PEXRGCVB"),
    ("all/reference-dash-undef", "A=${UNDEF-d}\n", {"A": "d"}, "EXCB"),
    ("all/reference-bare-then-ref", "B\nA=x${B}y\n", '1:2 no =', "GV"),
    ("all/reference-assign-op", "A=${UNDEF:=d}\n", '1:3 bad reference', "C"),
    ("all/reference-dq-braces", 'A="${PROC}"\n', {"A": "proc"}, "PEXRGCVB", {'PROC': 'proc'}),
    ("all/reference-default-set", "A=${PROC:-d}\n", {"A": "proc"}, "PEXCB", {'PROC': 'proc'}),
    ("all/reference-mutual", "A=${B}\nB=${A}\n", {"A": "", "B": ""}, "PEXRGCVB"),
    ("all/reference-double-backslash-dollar", 'A="\\\\$PROC"\n', {"A": r"\$PROC"}, "PEX", {'PROC': 'proc'}),
    ("all/reference-default-with-hash", "A=${UNDEF:-a #b}\n", '1:3 bad reference', "CV"),
    ("all/reference-default-quoted", 'A=${UNDEF:-"d"}\n', {"A": '"d"'}, "PEXC"),
    ("all/reference-double-backslash-brace", 'A="\\\\${PROC}"\n', {"A": r"\proc"}, "PCVB", {'PROC': 'proc'}),
    ("all/reference-plus-undef", "A=${UNDEF:+x}\n", {"A": ""}, "EXCVB"),
    ("all/reference-undef-nobrace", "A=x$UNDEF y\n", {"A": "x$UNDEF y"}, "PNJ"),
    ("all/reference-question-undef", "A=${UNDEF:?err}\n", '1:3 is required', "CB"),
    ("all/reference-file-ref", "B=b\nA=${B}\n", {"B": "b", "A": "b"}, "PEXRGCVB"),
    ("all/reference-dq-nobraces", 'A="$PROC"\n', {"A": "$PROC"}, "PNJ", {'PROC': 'proc'}),
    ("all/reference-space-brace", "A=${ PROC }\n", '1:3 bad reference', "C", {'PROC': 'proc'}),
    ("all/reference-two-vars", "B=1\nC=2\nA=${B}${C}-${B}\n", {"B": "1", "C": "2", "A": "12-1"}, "PEXRGCVB"),
    ("all/reference-nobraces", "A=$PROC\n", {"A": "$PROC"}, "PNJ", {'PROC': 'proc'}),
    ("all/reference-braces", "A=${PROC}\n", {"A": "proc"}, "PEXRGCVB", {'PROC': 'proc'}),
    ("all/reference-unterm-brace", "A=${PROC\n", '1:3 bad reference', "CV", {'PROC': 'proc'}),
    ("all/reference-empty-brace", "A=${}\n", '1:3 bad reference', "C"),
    ("all/reference-escape-n-expanded", 'B=x\nA="${B}\\n${B}"\n', {"B": "x", "A": "x\nx"}, "PEXGCV"),
    ("all/reference-length-op", "A=${#PROC}\n", '1:3 bad reference', "C", {'PROC': 'proc'}),
    ("all/reference-question-nocolon", "A=${UNDEF?err}\n", '1:3 is required', "CB"),
    ("all/name-underscore", "_=c\n", {"_": "c"}, "PNEXJRGCV"),
    ("all/name-only-digits", "123=c\n", {"123": "c"}, "PNEXJRGC"),
    ("all/name-dot", "A.B=c\n", {"A.B": "c"}, "PNEXJRGCV"),
    ("all/name-sq-key-unterm", "'A=c\nB=d\n", '1:1 unterminated quote', "PGCV"),
    ("all/name-sq-key-text-after", "'k'x=v\n", '1:4 no =', "PGCV"),
    ("all/name-backslash-key", "A\\B=c\n", '1:2 bad name', "GCV"),
    ("all/name-dq-key-space", '"A B"=c\n', '1:1 bad name', "PGCV"),
    ("all/name-leading-digit", "1A=c\n", {"1A": "c"}, "PNEXJRGC"),
    ("all/name-sq-key-bare", "'k'\n", '1:4 no =', "GCV"),
    ("all/name-sq-key-space", "'A B'=c\n", '1:3 bad name', "GCV"),
    ("all/name-sq-key-newline", "'A\nB'=c\n", '1:3 bad name', "GCV"),
    ("all/name-plus-eq", "A+=c\n", '1:2 bad name', "GCV"),
    ("all/name-sq-key", "'A'=b\n", {"A": "b"}, "P"),
    ("all/name-empty-key-space", " =b\n", '1:2 bad name', "PV"),
    ("all/name-bare", "A\n", '1:2 no =', "GV"),
    ("all/name-two-words", "A B\n", '1:3 no =', "PGCV"),
    ("all/name-sq-key-empty", "''=c\n", '1:2 bad name', "PGCV"),
    ("all/name-sq-key-hash", "'A#B'=c\n", '1:3 bad name', "GCV"),
    ("all/name-sq-key-eq", "'A=B'=c\n", '1:3 bad name', "GCV"),
    ("all/name-empty-key-mid", "A=b\n=c\nD=e\n", '2:1 bad name', "PV"),
    ("all/name-proto", "__proto__=c\nA=b\n", {"__proto__": "c", "A": "b"}, "PRGCVB"),
    ("all/name-brackets", "A[0]=c\n", '1:2 bad name', "GV"),
    ("all/name-constructor", "constructor=c\ntoString=d\n", {"constructor": "c", "toString": "d"}, "PNEJRGCVB"),
    ("all/name-colon-in-key", "A:B=c\n", '1:2 bad name', "V"),
    ("all/name-eq-only", "=\n", '1:1 bad name', "PV"),
    ("all/newline-crcr", "A=b\r\rC=d", {"A": "b", "C": "d"}, "PNEXRG"),
    ("all/newline-crlf-blank", "A=b\r\n\r\nC=d\r\n", {"A": "b", "C": "d"}, "PNEXJRGCV"),
    ("all/newline-crlf-inline-comment", "A=b # x\r\nC=d\r\n", {"A": "b", "C": "d"}, "PNEXJRGCV"),
    ("all/newline-mixed", "A=b\rC=d\nE=f\r\nG=h", {"A": "b", "C": "d", "E": "f", "G": "h"}, "PNEXRG"),
    ("all/newline-crlf", "A=b\r\nC=d\r\n", {"A": "b", "C": "d"}, "PNEXJRGCV"),
    ("all/newline-lfcr", "A=b\n\rC=d\n\r", {"A": "b", "C": "d"}, "PNEXJRGCV"),
    ("all/newline-crlf-empty-value", "A=\r\nB=c\r\n", {"A": "", "B": "c"}, "PNEXJRGCV"),
    ("all/single-unterm-lone", "A='\nC=d\n", '1:3 unterminated quote', "PGCV"),
    ("all/single-unterm-comment", "A='b # c\nC=d\n", '1:3 unterminated quote', "PGCV"),
    ("all/single-esc-dollar", "A='a\\$b'\n", {"A": r"a\$b"}, "PNXJRGCVB"),
    ("all/single-adjacent", "A='b''c'\n", '1:6 text after', "P"),
    ("all/single-trailing-3backslash", "A='b\\\\\\'\nC=d\n", '1:3 unterminated quote', "PGCV"),
    ("all/single-unterm-later-quote", "A='b\nC='d'\nE=f\n", '2:4 text after', "PV"),
    ("all/single-text-after", "A='b'c\nD=e\n", '1:6 text after', "P"),
    ("all/single-esc-dq", 'A=\'a\\"b\'\n', {"A": r'a\"b'}, "PNEXJRGCVB"),
    ("all/single-mid", "A=b'c'd\n", {"A": "b'c'd"}, "PNEXJRGC"),
    ("all/single-empty", "A=''\n", {"A": ""}, "PNEXJRGCVB"),
    ("all/single-winpath", "A='C:\\dir\\new\\'\nC='d'\n", '2:4 text after', "PV"),
    ("all/single-dq-inside", 'A=\'b"c\'\n', {"A": 'b"c'}, "PNEXJRGCVB"),
    ("all/single-unterm", "A='b\nC=d\n", '1:3 unterminated quote', "PGCV"),
    ("all/single-dollar", "A='$PROC ${PROC}'\n", {"A": "$PROC ${PROC}"}, "NXJRGCVB", {'PROC': 'proc'}),
    ("all/single-multiline-hash", "A='b\n# c\nd'\nE=f\n", {"A": "b\n# c\nd", "E": "f"}, "PNEXJRGCVB"),
    ("all/single-bash-concat", "A='b'\\''c'\n", '1:6 text after', "P"),
    ("all/single-esc-n", "A='b\\nc'\n", {"A": r"b\nc"}, "PNEXJRGCVB"),
    ("all/single-inner-quote", "A='it's'\nB=c\n", '1:7 text after', "PV"),
    ("all/bare-tilde", "A=~/x\n", {"A": "~/x"}, "PNEXJRGCV"),
    ("all/bare-esc-n", "A=b\\nc\n", {"A": r"b\nc"}, "PNEXJGC"),
    ("all/bare-esc-dollar-brace", "A=\\${PROC}\n", {"A": "${PROC}"}, "EXRGVB", {'PROC': 'proc'}),
    ("all/bare-esc-hash", "A=b \\# c\n", {"A": r"b \# c"}, "PGC"),
    ("all/bare-trailing-backslash", "A=b\\\nC=d\n", {"A": "b\\", "C": "d"}, "PNEXJRGC"),
    ("all/bare-winpath", "A=C:\\new\\table\n", {"A": r"C:\new\table"}, "PNEXJGC"),
    ("all/bare-lone-backslash", "A=\\\n", {"A": "\\"}, "PNEXJRGC"),
    ("all/bare-special", "A=b;c|d&e<f(g)*?!~\n", {"A": "b;c|d&e<f(g)*?!~"}, "PNEXJRGCV"),
    ("all/bare-esc-space", "A=b\\ c\n", {"A": r"b\ c"}, "PNEXJGC"),
    ("all/bare-esc-backslash", "A=b\\\\c\n", {"A": r"b\\c"}, "PNEXJGC"),
    ("all/bare-percent", "A=100%\n", {"A": "100%"}, "PNEXJRGCVB"),
    ("all/bare-cmd-subst", "A=$(echo hi)\n", {"A": "$(echo hi)"}, "PNEJGC"),
    ("all/blanks-ps-between", "A=b\u2029C=d\n", {"A": "b\u2029C=d"}, "PNEXJRGCVB"),
    ("all/blanks-nbsp-after-eq", "A=\xa0b\n", {"A": "b"}, "PNEXGCV"),
    ("all/blanks-inner", "A=b  c\td\n", {"A": "b  c\td"}, "PNEXJRGC"),
    ("all/blanks-after-eq", "A= b\n", {"A": "b"}, "PNEXJRGCV"),
    ("all/blanks-eq-newline-value", "A=\n  b\n", '2:4 no =', "V"),
    ("all/blanks-ls-inline-comment", "A=b # x\u2028y\nC=d\n", {"A": "b", "C": "d"}, "PNEXJRGCVB"),
    ("all/blanks-nel-trailing", "A=b\x85\n", {"A": "b"}, "PGCV"),
    ("all/blanks-ls-in-dq", 'A="b\u2028c"\n', {"A": "b\u2028c"}, "PNEXJRGCVB"),
    ("all/blanks-long-space-run", "A=x' + 300 * ' ' + 'y\n", {"A": "x' + 300 * ' ' + 'y"}, "PNEXJRGC"),
    ("all/blanks-eq-newline-quoted", 'A=\n"b"\n', '2:1 bad name', "V"),
    ("all/blanks-trailing-tab", "A=b\t\n", {"A": "b"}, "PNEXRGCVB"),
    ("all/blanks-ls-comment", "# c\u2028A=b\n", {}, "PJRGCVB"),
    ("all/blanks-nbsp-in-dq", 'A="\xa0b\xa0"\n', {"A": "\xa0b\xa0"}, "PNEXJRGCVB"),
    ("all/blanks-nbsp-comment", "A=b\xa0# c\n", {"A": "b"}, "PNEXGV"),
    ("all/blanks-key-newline-eq2", "A\n=b\nC=d\n", '1:2 no =', "PGV"),
    ("all/blanks-zwsp-value", "A=\u200bb\n", {"A": "\u200bb"}, "PNEXJRGCVB"),
    ("all/blanks-leading-key", "   A=b\n", {"A": "b"}, "PNEXJRGCVB"),
    ("all/blanks-export-nbsp", "export\xa0A=b\n", {"A": "b"}, "PNEXGV"),
    ("all/blanks-after-dq", 'A="b"   \n', {"A": "b"}, "PNEXJRGCVB"),
    ("all/blanks-inside-sq", "A='  b  '\n", {"A": "  b  "}, "PNEXJRGCVB"),
    ("all/blanks-around-eq", "A = b\n", {"A": "b"}, "PNEXJRGCV"),
    ("all/blanks-vt-in-key", "A\x0bB=1\n", '1:3 no =', "PV"),
    ("all/blanks-ff-leading", "\x0cA=b\n", {"A": "b"}, "PNEXRGCV"),
    ("all/foreign-doc-marker", "---\nA=b\n", '1:4 no =', "GV"),
    ("all/foreign-colon-quoted", 'A: "b c"\n', '1:2 bad name', "PV"),
    ("all/foreign-colon-spaces", "A  :  b\n", '1:4 no =', "PV"),
    ("all/foreign-ini-section", "[default]\nA=b\n", '1:1 bad name', "GV"),
    ("all/foreign-colon-eq", "A: b=c\n", '1:2 bad name', "PV"),
]


@pytest.mark.parametrize("case", DOTENV_CASES, ids=[case[0] for case in DOTENV_CASES])
def test_dotenv_corpus(case):
    text, meaning, host = case[1], case[2], dict(*case[4:])
    for form in [text] if isinstance(text, bytes) else [text, text.encode()]:
        if isinstance(meaning, dict):
            assert list(hotenv.parse_dotenv(form, host).items()) == list(meaning.items())
        else:
            place, reason = meaning.split(" ", 1)
            message = parse_refusal(form, host)
            assert has_reason(message, place, reason), message


def test_dotenv_corpus_is_well_formed():
    assert len(DOTENV_CASES) >= 320
    assert len({case[0] for case in DOTENV_CASES}) == len(DOTENV_CASES)
    assert all(case[3] == "-" or set(case[3]) <= set("PNEXJRGCVB") for case in DOTENV_CASES)
    measured = [case for case in DOTENV_CASES if case[3] != "-"]
    assert len(measured) >= 200 and sum("P" in case[3] for case in measured) > len(measured) / 2


# ---- python-dotenv's grammar


class Complaint(Exception):
    pass


DECODED = {
    "'": {"\\\\": "\\", "\\'": "'"},
    '"': {"\\\\": "\\", "\\'": "'", '\\"': '"', "\\a": "\a", "\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r",
          "\\t": "\t", "\\v": "\v"},
}


def reference_entries(text):
    """python-dotenv 1.2.4's grammar, slowly: [(name, value or None, exported)]; Complaint where it complains."""
    text = text[1:] if text[:1] == "\ufeff" else text
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # ours differs inside quotes only: a newline is a newline
    entries, at = [], 0

    def past_blanks(at, newlines=False):
        while at < len(text) and text[at].isspace() and (newlines or text[at] != "\n"):
            at += 1
        return at

    def line_end(at):
        while at < len(text) and text[at] != "\n":
            at += 1
        return at

    while True:
        at = past_blanks(at, newlines=True)
        if at == len(text):
            return entries
        name = value = None
        exported = text[at:at + 6] == "export" and past_blanks(at + 6) > at + 6
        if exported:
            at = past_blanks(at + 6)
        if text[at:at + 1] == "'":
            close = text.find("'", at + 1)
            name, at = text[at + 1:close], close + 1
            if close == -1 or not name:
                raise Complaint
        elif text[at:at + 1] != "#":
            start = at
            while at < len(text) and text[at] not in "=#" and not text[at].isspace():
                at += 1
            name = text[start:at]
            if not name:
                raise Complaint
        at = past_blanks(at)
        if text[at:at + 1] == "=":
            value, at = reference_value(text, at + 1, past_blanks(at + 1), line_end)
        if text[past_blanks(at):][:1] == "#":
            at = line_end(at)
        at = past_blanks(at)
        if text[at:at + 1] not in ("", "\n"):
            raise Complaint
        if name is not None:
            entries.append((name, value, exported))


def reference_value(text, after_equals, at, line_end):
    first = text[at:at + 1]
    if first in ("", "\n") or first == "#" and at > after_equals:
        return "", at
    if first not in "'\"":
        raw = text[at:line_end(at)]
        cuts = [i for i in range(len(raw) - 1) if raw[i].isspace() and raw[i + 1] == "#"]
        return raw[:min(cuts, default=len(raw))].rstrip(), line_end(at)
    value, at = "", at + 1
    while text[at:at + 1] != first:
        if at >= len(text):
            raise Complaint
        step = 2 if text[at] == "\\" else 1
        value += DECODED[first].get(text[at:at + step], text[at:at + step])
        at += step
    return value, at + 1


class Bad(Exception):
    """A malformed reference; the offsets of the `$`s of the references that are open there, the outermost first."""


class Required(Exception):
    """A `?` operator that found nothing; the offset of its `$`."""


def read_references(text, at, escapes, open_at):
    """Our reference language by recursive descent: ([text | (offset, name, operator, word)], where it ended)."""
    parts = []
    while at < len(text) and not (open_at and text[at] == "}"):
        if text.startswith("\\${", at):
            parts.append("${")
            at += 3
        elif escapes and text[at:at + 2] in DECODED['"']:
            parts.append(DECODED['"'][text[at:at + 2]])
            at += 2
        elif text.startswith("${", at):
            opened, dollar, start = open_at + (at,), at, at + 2
            at = start
            while text[at:at + 1] in REFERENCE_NAME:
                at += 1
            operator = next((op for op in (":-", ":+", ":?", "-", "+", "?", "}") if text.startswith(op, at)), None)
            if at == start or operator is None:
                raise Bad(*opened)
            name, word, at = text[start:at], [], at + len(operator)
            if operator != "}":
                word, at = read_references(text, at, escapes, opened)
                if at >= len(text):
                    raise Bad(*opened)
                at += 1
            parts.append((dollar, name, operator, word))
        else:
            parts.append(text[at])
            at += 1
    return parts, at


REFERENCE_NAME = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.")


def evaluate(parts, known):
    value = ""
    for part in parts:
        if isinstance(part, str):
            value += part
            continue
        dollar, name, operator, word = part
        found = known.get(name)
        there = found is not None and (found != "" or operator[0] != ":")
        if operator[-1] == "+":
            value += evaluate(word, known) if there else ""
        elif operator[-1] == "-" and not there:
            value += evaluate(word, known)
        elif operator[-1] == "?" and not there:
            raise Required(dollar)
        else:
            value += found or ""
    return value


def random_dotenv(rng):
    """A text made of pieces in the shape of the grammar, most of the time; else of its structural characters alone."""
    start = rng.choice(["", "", "", "", "", "", "", "", "", "\ufeff"])
    if rng.random() < 0.25:
        return start + "".join(rng.choice(" =#'\"\\\n\r\tAexport\x0b\u2028\x00$") for _ in range(rng.randrange(14)))
    lines = []
    for _ in range(rng.randrange(1, 5)):
        name = rng.choice(["A", "B", "A.b-1", "export", "'Q'", "export A", "export\t'B'"] if rng.random() < 0.9 else
                          ["'A B'", "''", "\u00e9", "'", "", "export ", "A B", "#", "A:", "export\n"])
        equals = rng.choice(["=", "=", "=", " = ", "=\t", "\x0b=\x0c", "\u2028=\u3000", "\xa0=\x85"]
                            if rng.random() < 0.9 else ["", " ", ":", "\n=", " #", "#", "=="])
        value = rng.choice([
            "", "x", "b c", "#c", " #c", "x #c", "x#c", "\u00e9", "'q'", '"q"', "'a\\'b\\\\'", "' # '#",
            '"a\\"b\\n\\q\\\\" # c', '"\\\\"', "'two\n#lines'",
            '"two\\\r\nlines"', '"$x\\n # y"', '"' + "\\q" * 120 + '"',
            "'" + "\\'" * 120 + "'", "\\", "\\\\", "b\\", "b'", "$A", "{}", "x\x1c",
            "\x85", "\u2028x", "\x0b# ", "x \t \x0c#"])
        if rng.random() < 0.2:
            value += rng.choice(["x", " ", "'", '"', "#", "\\", "\r", "\x00", "\x0b", "\ufeff", '"q"'])
        end = rng.choice(["\n", "\n", "\n", "\r\n", "\r", "\n \n", " # c\n", "\x0b\n", "#\n"])
        lines.append(name + equals + value + end)
    text = start + "".join(lines)
    return text.rstrip("\n") if rng.random() < 0.3 else text


def expected_of_raw(text):
    """What a text without references means here, by python-dotenv's grammar; None where it must be refused."""
    meaning = {}
    if "\0" in text:
        return None
    try:
        entries = reference_entries(text)
    except Complaint:
        return None
    for name, value, exported in entries:
        if set(name) - REFERENCE_NAME - {"-"} or value is None and not (exported and name in meaning):
            return None
        if value is not None:
            meaning[name] = value
    return meaning


def test_whatever_python_dotenv_reads_means_the_same_here():
    rng, outcomes = random.Random(SEED), {True: 0, False: 0}
    for _ in range(amount(60_000)):
        text = random_dotenv(rng).replace("${", "$")
        expected = expected_of_raw(text)
        outcomes[expected is None] += 1
        try:
            got = list(hotenv.parse_dotenv(text if rng.random() < 0.5 else text.encode()).items())
        except hotenv.HotenvError as error:
            assert error.code == 7
            got = None
        assert got == (None if expected is None else list(expected.items())), ascii(text)
    assert min(outcomes.values()) > sum(outcomes.values()) / 5, "one side of the comparison was hardly tried"


# ---- references


def random_reference(rng, depth=0):
    usual = rng.random() < 0.95
    name = rng.choice(["S", "E", "U", "H", "NIL", "S.1"] if usual else ["", "S", "S ", "!S", "\u00e9", "${S}", "S:"])
    operator = rng.choice(["", "", ":-", "-", ":+", "+", ":?", "?"] if usual else ["", ":=", "=", ":", "/", "%", "[0]"])
    word = random_value(rng, depth + 1) if operator else ""
    return "${" + name + operator + word + ("}" if rng.random() < 0.97 else "")


def random_value(rng, depth=0):
    """Text for a bare or a double-quoted value: no blanks, `#` and bare quotes, so that it means the same in both."""
    pieces = ["x", "yz", "$", "$S", "{", "}", "\\${", "\u00e9", "\U0001f511", "\\\\", "-", ":", "?", "$$"]
    return "".join(random_reference(rng, depth) if depth < 4 and rng.random() < 0.45 else rng.choice(pieces)
                   for _ in range(rng.randrange(4)))


def test_references_mean_what_a_recursive_descent_says():
    known, outcomes = {"S": "set", "E": "", "S.1": "${S}", "H": "${H}\\n", "NIL": ""}, {}
    rng, host = random.Random(SEED), {"S": "hidden", "E": "hidden", "H": "${H}\\n", "NIL": ""}
    for _ in range(amount(60_000)):
        quoted, value = rng.random() < 0.5, random_value(rng)
        if quoted and rng.random() < 0.5:
            value = rng.choice(["\\n", '\\"', "\n", "\\q", "a #b"]) + value + rng.choice(["\\t", "\r\n", " ", "\\$"])
        text = "S=set\nE=\n'S.1'='${S}'\nA=" + ('"%s"' % value if quoted else "x" + value) + "\n"
        start = text.index("A=") + 3
        source = value if quoted else value.rstrip()
        try:
            parts, _end = read_references(source, 0, quoted, ())
            expected, places = evaluate(parts, known), ()
        except Bad as bad:
            expected, places = "bad reference", bad.args
        except Required as required:
            expected, places = "is required", required.args
        outcomes[bool(places) and expected] = outcomes.get(bool(places) and expected, 0) + 1
        if not places:
            expected = expected.replace("\r\n", "\n")
            assert hotenv.parse_dotenv(text, host)["A"] == ("" if quoted else "x") + expected, ascii(text)
            continue
        message = parse_refusal(text.encode(), host)
        if expected == "is required" or "?" not in value:  # with both mistakes either may be the first
            before = [text[:start + offset].replace("\r\n", "\n") for offset in places]
            wanted = ["%d:%d" % (part.count("\n") + 1, len(part) - part.rfind("\n")) for part in before]
            assert any(has_reason(message, place, expected) for place in wanted), (ascii(text), wanted, message)
    assert len(outcomes) == 3 and min(outcomes.values()) > amount(60_000) / 50, outcomes


def test_the_message_of_a_question_mark_is_never_shown():
    for text in ("A=${U:?xyzzy}", 'A="${U?xyz${H}zzy}"', "A=${U:?xyzzy ${U:-xyzzy}}", "A=${V:-${U?xyzzy}}"):
        message = parse_refusal(text, HOST)
        assert "xyz" not in message and "zzy" not in message and "host" not in message


# ---- cost

LINEAR = {
    "lines": lambda n: "".join("KEY_%d=value-%d-of-some-length\n" % (i, i) for i in range(n // 36)),
    "quoted-values": lambda n: "".join("K%d=\"quo\\ted '%d'\" # c\n" % (i, i) for i in range(n // 28)),
    "quoted-lines": lambda n: "K='" + "some words of it\n" * (n // 17) + "'\n",
    "one-double": lambda n: 'K="' + "x" * n + '"',
    "one-bare": lambda n: "K=" + "x" * n,
    "one-escaped": lambda n: 'K="' + "\\n\\q" * (n // 4) + '"',
    "blanks-inside": lambda n: "K=x" + " " * n + "y",
    "blanks-after": lambda n: "K=x" + " \t" * (n // 2) + "\nA=b",
    "blanks-first": lambda n: " " * n + "K=x",
    "blanks-before-junk": lambda n: "K" + " " * n + "x",
    "blanks-after-quote": lambda n: "K='x'" + " " * n + "x",
    "blank-lines": lambda n: "\n \r\n" * (n // 4),
    "blank-words": lambda n: "K=" + "x " * (n // 2) + "\n",
    "references": lambda n: "B=x\nK=" + "${B}" * (n // 4),
    "references-on-lines": lambda n: "B=x\n" + "".join("K%d=${B}${K%d:-y}\n" % (i, i) for i in range(n // 24)),
    "references-open": lambda n: "K=" + "${" * (n // 2),
    "references-unclosed": lambda n: "K=" + "${B" * (n // 3),
    "references-literal": lambda n: 'K="' + "\\${" * (n // 3) + '"',
    "references-single": lambda n: "K='" + "${" * (n // 2) + "'",
    "references-nested": lambda n: "K=" + "${B:-" * (n // 6) + "x" + "}" * (n // 6),
    "references-nested-used": lambda n: "B=x\nK=" + "${B:+" * (n // 6) + "x" + "}" * (n // 6),
    "references-nested-long": lambda n: "K=" + "${B:-" * (n // 12) + "x" * (n // 2) + "}" * (n // 12),
    "references-nested-open": lambda n: "K=" + "${B:-" * (n // 5),
    "references-in-required": lambda n: "K=" + "${B:?" * (n // 6) + "}" * (n // 6),
    "dollars": lambda n: "K=" + "$" * n,
    "braces": lambda n: "K=${B:-" + "{" * n + "}",
    "hashes": lambda n: "K=" + "#" * n,
    "hashes-and-blanks": lambda n: "K='x' " + " #" * (n // 2),
    "hash-lines": lambda n: "#\n" * (n // 2),
    "backslashes": lambda n: "K=" + "\\" * n,
    "backslashes-double": lambda n: 'K="' + "\\\\" * (n // 2) + '"',
    "backslashes-single": lambda n: "K='" + "\\\\" * (n // 2) + "'",
    "backslashes-unclosed": lambda n: 'K="' + "\\" * (n // 2 * 2 + 1) + '"',
    "backslashes-and-quotes": lambda n: 'K="' + '\\"' * (n // 2) + '"',
    "quotes-escaped": lambda n: "K='" + "\\'" * (n // 2) + "'",
    "quotes-escaped-then-reference": lambda n: 'K="' + '\\"' * (n // 2) + '${B}"',
    "quotes-escaped-then-junk": lambda n: "K='" + "\\'" * (n // 2) + "' x",
    "quotes-escaped-unclosed": lambda n: "K='" + "\\'" * (n // 2),
    "quotes": lambda n: "K=x" + "'\"" * (n // 2),
    "one-name": lambda n: "K" * n + "=x",
    "one-name-alone": lambda n: "K" * n,
    "one-quoted-name": lambda n: "'" + "K" * n + "'=x",
    "exports": lambda n: "K=1\n" + "export K\n" * (n // 9),
    "export-exports": lambda n: "export " * (n // 7),
    "late-error": lambda n: "KEY=value\r\n" * (n // 11) + "!",
    "many-entries-of-one": lambda n: "K=1\n" * (n // 4),
}


def seconds_to_parse(text, runs):
    """The best of some runs, in processor time, without the garbage collector's; a refusal counts as well."""
    best = float("inf")
    for _ in range(runs):
        gc.collect()
        gc.disable()
        started = time.process_time()
        try:
            hotenv.parse_dotenv(text)
        except hotenv.HotenvError as error:
            assert error.code == 7
        finally:
            spent = time.process_time() - started
            gc.enable()
        best = min(best, spent)
    return best


@pytest.mark.parametrize("shape", LINEAR)
def test_time_is_linear(shape):
    size = 10_000_000 if FULL else 1_000_000
    big = seconds_to_parse(LINEAR[shape](size), 1)
    for _ in range(3):  # more runs only where the first ones do not settle it
        small = seconds_to_parse(LINEAR[shape](size // 10), 3)
        if big <= 14 * small + 0.01 or big > 50 * small + 0.1:
            break
        big = min(big, seconds_to_parse(LINEAR[shape](size), 1))
    assert big <= 14 * small + 0.01


@pytest.mark.parametrize("shape", ["one-double", "one-bare", "one-escaped", "blanks-inside", "backslashes-double",
                                   "quoted-lines", "quotes-escaped", "references", "references-literal"])
def test_memory_is_linear(shape):
    """A value takes a few times its length: no list of its characters, no frame for each escape, no copy for a key."""
    text = LINEAR[shape](400_000 if FULL else 100_000)
    tracemalloc.start()
    try:
        hotenv.parse_dotenv(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(text) * (120 if shape.startswith("references") else 16)


def test_ordinary_lines_parse_at_15_megabytes_a_second():
    text = LINEAR["lines"](4_000_000)
    speeds = (len(text) / seconds_to_parse(text, 3) for _ in range(5))
    assert any(speed >= 15e6 for speed in speeds)


def test_many_lines_have_their_meaning():
    text = LINEAR["lines"](360_000)
    assert hotenv.parse_dotenv(text) == {"KEY_%d" % i: "value-%d-of-some-length" % i for i in range(10_000)}


def test_sixty_doublings_are_refused_at_once():
    lines = ["A0=x"] + ["A%d=${A%d}${A%d}" % (i, i - 1, i - 1) for i in range(1, 61)]
    quoted = [line.replace("=", '="', 1) + '"' for line in lines]
    for text in ("\n".join(lines[:28]), "\n".join(lines), "\n".join(quoted)):  # the first cannot hurt without a limit
        started = time.monotonic()
        assert "too large" in parse_refusal(text)
        assert time.monotonic() - started < 2
    twenty = hotenv.parse_dotenv("\n".join(lines[:21]))
    assert [len(value) for value in twenty.values()] == [2 ** i for i in range(21)]


@pytest.mark.parametrize("word", ["${A:-}", "${U:-${A}}", "${A:+${A}}", "${A:?}"])
def test_no_way_of_expanding_is_without_the_limit(word):
    text = "A=" + "x" * 100_000 + "\nB=" + word * 1_000
    started = time.monotonic()
    assert "too large" in parse_refusal(text)
    assert time.monotonic() - started < 2


def test_deep_nesting_is_read_or_refused():
    for depth in (1, 10, 30, 1_000, 100_000):
        text = "A=" + "${U:-" * depth + "x" + "}" * depth
        try:
            assert hotenv.parse_dotenv(text) == {"A": "x"}
        except hotenv.HotenvError as error:
            assert error.code == 7 and depth > 30
        assert "bad reference" in parse_refusal(text[:-1])


# ---- errors

# Characters that no message of ours has; whatever of them is in an error came out of the input.
FOREIGN = "\u0416\u0449\u044f\u03a9\u03b4\u05d0\u0e01\u4e2d\ue000\uf8ff\U0001f511\U0010fffd\u200b\u0301"


def random_junk(rng):
    structure = ["=", "'", '"', "\\", "#", " ", "\n", "\r", "${", "}", ":-", ":?", "?", "-", "+", "\x0b", "export ",
                 "A", "B", "\0", "\ufeff", "A=", "A='", 'B="', "\nA=", "${A", "${A:?"]
    return "".join(rng.choice(FOREIGN if rng.random() < 0.5 else structure) for _ in range(rng.randrange(1, 24)))


def test_no_error_shows_any_of_the_input():
    rng, refused = random.Random(SEED), 0
    escaped = [char.encode("unicode_escape").decode() for char in FOREIGN]
    for _ in range(amount(100_000)):
        text = random_junk(rng)
        if rng.random() < 0.3:
            text = bytearray(text.encode())
            text[rng.randrange(len(text))] = rng.randrange(128, 256)
            text = bytes(text)
        try:
            meaning = hotenv.parse_dotenv(text, {"B": rng.choice(FOREIGN)})
        except hotenv.HotenvError as error:
            refused += 1
            shown = " ".join(map(str, (error, repr(error), error.args, vars(error))))
            assert error.code == 7 and str(error).startswith("<stdin>:") and str(error).isprintable(), ascii(text)
            assert not set(FOREIGN) & set(shown) and not any(form in shown for form in escaped), ascii((text, shown))
            assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__), ascii(text)
        else:
            assert all(isinstance(part, str) for item in meaning.items() for part in item)
            assert all(key and not set(key) - REFERENCE_NAME - {"-"} for key in meaning), ascii(text)
            assert "\0" not in "".join(meaning.values())
    assert refused > amount(100_000) / 5


def test_an_error_shows_no_name_but_a_key():
    """What is no key may be the tail of a secret: a bare name, an exported one, the name of a reference."""
    for text in ("sesame", "sesame open", "A=open\nsesame", "export sesame", "A=b\nexport sesame # c",
                 "export 'sesame'", "'sesame' x", "sesame: x", "A=open${sesame", "A=open${sesame:=x}",
                 "A=open${sesame?}", "A=${U:-${sesame:?}}"):
        assert "sesame" not in parse_refusal(text)


def test_an_error_in_a_value_names_the_key_and_where_the_quote_opened():
    for text in ("KEY='b", "export KEY=\"b", "'KEY'='b' c", "KEY=${", "KEY=\"${U:?}\""):
        assert "KEY" in parse_refusal(text)
    assert "2:7" in parse_refusal("A=b\nKEY = 'c\nd' e")


def test_text_that_no_utf8_can_hold_is_refused():
    assert has_reason(parse_refusal("A=b\r\nB=c\udc80"), "2:4", "UTF-8")
    assert has_reason(parse_refusal("\ufeff\ud83d"), "1:1", "UTF-8")


def test_an_error_in_a_long_input_stays_short():
    secret = "sesame " * 1_000
    for text in ("A='" + secret, 'A="b" ' + secret, secret, "'" + secret + "'=b", "A=${" + secret, "A=b\n" + secret,
                 secret + "\0", "A=${U:?" + secret + "}", "A=${U:-" + secret, ("A=" + secret).encode() + b"\xff",
                 "=" + secret, "A b " + secret):
        message = parse_refusal(text)
        assert "sesame" not in message and len(message) < 300, message


# ==== environment =====================================================================================================
# How an entry becomes a value, and how the value gets to a command.


def entries(text):
    return hotenv._parse_entries(text)


@pytest.mark.parametrize("given, host, expected", [
    ({"A": "as it is, $HOME and all "}, {"HOME": "/h"}, {"A": "as it is, $HOME and all "}),
    ({"A": ""}, {"A": "host"}, {"A": ""}),
    ({"A": "${H}"}, {"H": "from the host"}, {"A": "from the host"}),
    ({"A": "${H}"}, {}, {"A": ""}),
    ({"URL": "http://${HOST}:${PORT:-80}/"}, {"HOST": "db"}, {"URL": "http://db:80/"}),
    ({"A": "1", "B": "${A}2", "C": "${B}3"}, {"A": "host"}, {"A": "1", "B": "12", "C": "123"}),
    ({"B": "${A}", "A": "later"}, {}, {"B": "", "A": "later"}),
    ({"PATH": "${PATH}:/x"}, {"PATH": "/bin"}, {"PATH": "/bin:/x"}),
    ({"A": "\\${H}"}, {"H": "no"}, {"A": "${H}"}),
    ({"A": "${H}"}, {"H": "${A} is not read again"}, {"A": "${A} is not read again"}),
    ({"A": "?no one asks"}, {}, {"A": "?no one asks"}),
    ([("A", "${H}"), ("A", "?x")], {"H": "1"}, {"A": "?x"}),  # the string of a pair is a literal; the last of two wins
    ("A=${H}\nB='${H}'\nC=\"${H}\"\n", {"H": "x"}, {"A": "x", "B": "${H}", "C": "x"}),
])
def test_an_entry_becomes_a_value_in_one_place(given, host, expected):
    before = dict(host)
    resolved = hotenv.resolve_env(entries(given) if isinstance(given, str) else given, host)
    assert resolved == expected and list(resolved) == list(expected) and host == before


def test_what_an_entry_refers_to_is_named_when_it_cannot_be_had_and_no_value_is():
    for text in ("s3cr3t ${H:?}", "s3cr3t ${", "s3cr3t ${H!}"):
        with pytest.raises(hotenv.HotenvError) as caught:
            hotenv.resolve_env({"KEY": text}, {"H": ""})
        assert caught.value.code == 7 and "KEY" in str(caught.value) and "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("given", [
    {"A": "?first", "LIT": "\\?x", "B": "?", "URL": "${A}/${B:-empty}", "C": "?and the last"},
    "A=?first\nLIT='\\?x'\nB=?\nURL=\"${A}/${B:-empty}\"\nC=?and the last\n",
])
def test_questions_are_asked_in_order_and_later_references_see_the_answers(given):
    asked = []

    def prompt(text):
        asked.append(text)
        return {"first": "answer ${URL}", "": "", "and the last": "?not asked again"}[text]

    resolved = hotenv.resolve_env(entries(given) if isinstance(given, str) else given, {}, prompt)
    assert asked == ["first", "", "and the last"]
    assert resolved == {"A": "answer ${URL}", "LIT": "\\?x", "B": "", "URL": "answer ${URL}/empty",
                        "C": "?not asked again"}


def test_a_quoted_question_is_a_literal():
    def never(text):
        pytest.fail("asked for %r" % text)

    text = "A='?x'\nB=\"?x\"\nC=x?\nD=\"${H}\"\nE=${H}\n"
    assert hotenv.resolve_env(entries(text), {"H": "?x"}, never) == {"A": "?x", "B": "?x", "C": "x?", "D": "?x",
                                                                     "E": "?x"}


# ---- the isolated environment

ESSENTIALS = ("PATH HOME SHELL USER LOGNAME TMPDIR TEMP TMP LANG LC_ALL LC_CTYPE TERM COLORTERM FORCE_COLOR NO_COLOR "
              "CI NODE_OPTIONS").split()
WINDOWS = "SYSTEMROOT APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) COMSPEC PATHEXT".split()
SOURCE = {"PATH": "/bin", "HOME": "/h", "TERM": "xterm", "AWS_KEY": "k", "EDITOR": "vi", "BLANK": ""}
BASE = {"PATH": "/bin", "HOME": "/h", "TERM": "xterm"}


@pytest.mark.parametrize("options, expected", [
    ({}, BASE),  # essentials passed, what is undeclared stripped, what is not there left out
    ({"pass_through": ["EDITOR"]}, {**BASE, "EDITOR": "vi"}),
    ({"pass_through": ["EDITOR", "NOWHERE"]}, {**BASE, "EDITOR": "vi"}),  # absent, not empty
    ({"pass_through": ["BLANK"]}, {**BASE, "BLANK": ""}),
    ({"pass_through": ["HOME"]}, BASE),
    ({"define": {"NEW": "1", "E": ""}}, {**BASE, "NEW": "1", "E": ""}),
    ({"pass_through": ["EDITOR"], "define": {"EDITOR": "ed"}}, {**BASE, "EDITOR": "ed"}),
    ({"define": {"PATH": "/d", "HOME": "/other"}}, {**BASE, "PATH": "/d", "HOME": "/other"}),
    ({"bin_paths": ["/a", "/b"]}, {**BASE, "PATH": "/a:/b:/bin"}),
    ({"bin_paths": ["/a"], "define": {"PATH": "/d"}}, {**BASE, "PATH": "/a:/d"}),
    ({"bin_paths": []}, BASE),
    ({"define": {"odd = name": "odd\nvalue"}}, {**BASE, "odd = name": "odd\nvalue"}),  # nothing is checked or cleaned
], ids=str)
def test_an_isolated_environment_has_its_layers(options, expected):
    source = dict(SOURCE)
    assert hotenv.build_isolated_env(source, **options) == expected and source == SOURCE


@pytest.mark.parametrize("source", [{}, {"PATH": ""}], ids=str)
def test_bin_paths_are_the_whole_path_where_there_is_none(source):
    """An empty member of PATH would be the current directory."""
    assert hotenv.build_isolated_env(source, bin_paths=["/a", "/b"])["PATH"] == "/a:/b"


def test_the_allowlist_is_the_documented_one():
    source = {name: "x" for name in [*ESSENTIALS, *WINDOWS, "path", "LC_ALL2", "LC_MESSAGES", "PWD", "LD_PRELOAD"]}
    assert list(hotenv.build_isolated_env(source)) == ESSENTIALS
    readme = " ".join((HERE / "README.md").read_text(encoding="utf-8").split())
    assert " ".join(ESSENTIALS) in readme.replace("`", "")


def test_the_allowlist_of_windows_is_the_documented_one(monkeypatch):
    loader = importlib.util.spec_from_file_location("hotenv_on_windows", str(HOTENV))
    module = importlib.util.module_from_spec(loader)
    monkeypatch.setattr(os, "name", "nt")
    loader.loader.exec_module(module)
    monkeypatch.undo()
    assert list(module.build_isolated_env({name: "x" for name in WINDOWS + ESSENTIALS})) == WINDOWS


@pytest.mark.parametrize("options, changes", [
    (["--isolated"], {}),
    (["--isolated", "--pass", "EDITOR", "--pass", "NOWHERE", "--pass", "BLANK"], {b"EDITOR": b"vi", b"BLANK": b""}),
    (["--isolated", "--pass", "OTHER"], {}),  # the snapshot stands over what is passed
    (["--isolated", "--define", "OTHER=defined", "--define", "NEW=a=b", "--define", "E="],
     {b"OTHER": b"defined", b"NEW": b"a=b", b"E": b""}),
    (["--isolated", "--define", "A=1", "--define", "A=2"], {b"A": b"2"}),
    (["--isolated", "--define", "PATH=/d", "--bin", "/x y", "--bin", "/z"], {b"PATH": b"/x y:/z:/d"}),
    (["--isolated", "--bin", "/x", "--only", "API_*"],
     {b"PATH": b"/x:" + PATHS.encode(), b"AWS_ID": None, b"AWS_KEY": None, b"TERM": None, b"OTHER": None}),
    (["--isolated", "--pass", "ODD", "--define", b"D=\xff\xfe", "--bin", b"/\xfd"],
     {b"ODD": b"\xff caf\xe9", b"D": b"\xff\xfe", b"PATH": b"/\xfd:" + PATHS.encode()}),
    (["--isolated", "--pass", b"N\xe9", "--define", b"\xe8=x"], {b"N\xe9": b"1", b"\xe8": b"x"}),
])
def test_run_isolated_starts_from_the_allowlist(daily, options, changes):
    host = {"ODD": b"\xff caf\xe9", b"N\xe9": "1"}
    done = daily.hotenv("run", *options, "--", ENV, "-0", env=host)
    expected = {b"PATH": PATHS.encode(), b"HOME": b"/h", b"LC_ALL": b"C.UTF-8", b"LANG": b"C.UTF-8", **SNAPSHOT,
                **changes}
    assert environment_of(done) == {name: value for name, value in expected.items() if value is not None}


@pytest.mark.parametrize("options, changes", [
    ([], {}),
    (["--define", "OTHER=defined", "--define", "NEW=a=b"], {b"OTHER": b"defined", b"NEW": b"a=b"}),
    (["--bin", "/x", "--bin", "/y"], {b"PATH": b"/x:/y:" + PATHS.encode()}),
    (["--define", "PATH=/d", "--bin", "/x"], {b"PATH": b"/x:/d"}),
    (["--define", "PATH=", "--bin", "/x"], {b"PATH": b"/x"}),
])
def test_define_and_bin_work_without_isolated(daily, options, changes):
    done = daily.hotenv("run", *options, "--", ENV, "-0")
    assert environment_of(done) == {**bytes_of(daily.env), **SNAPSHOT, **changes}


def test_a_command_is_found_in_bin(daily, project):
    tool = project.dir / "a tool"
    tool.write_text("#!/bin/sh\necho found $API_KEY\n")
    tool.chmod(0o755)
    done = daily.hotenv("run", "--isolated", "--bin", str(project.dir), "--", "a tool")
    assert done.stdout == b"found s3cr3t-1\n"


def test_bytes_survive_whatever_the_locale(daily, project):
    if not shutil.which("localedef"):
        pytest.skip("needs localedef")
    made = subprocess.run(["localedef", "-c", "-i", "en_US", "-f", "ISO-8859-1", str(project.root / "xx_XX")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not (project.root / "xx_XX" / "LC_CTYPE").exists():
        pytest.skip("localedef makes no Latin-1 locale here: %s" % made.stderr.decode(errors="replace").strip())
    odd = {"LOCPATH": str(project.root), "LC_ALL": "xx_XX", "PYTHONUTF8": "0", "ODD": b"\xe9"}
    kind = subprocess.run([sys.executable, "-c", "import sys; print(sys.getfilesystemencoding())"],
                          env={**daily.env, **odd}, stdout=subprocess.PIPE).stdout.strip()
    if kind == b"utf-8":
        pytest.skip("this Python does not take the locale")
    done = daily.hotenv("run", "--define", b"D=\xe9\xc3\xa9", "--define", b"N\xe9=1", "--bin", b"/\xe9", "--", ENV,
                        "-0", env=odd)
    found = environment_of(done)
    assert found[b"ODD"] == b"\xe9" and found[b"D"] == b"\xe9\xc3\xa9" and found[b"PATH"].startswith(b"/\xe9:")
    assert found[b"N\xe9"] == b"1"


@pytest.mark.parametrize("options, words", [
    (["--pass", "EDITOR"], ["--isolated"]),
    (["--pass", "EDITOR", "--define", "A=1"], ["--isolated"]),
    (["--define", "s3cr3t"], ["NAME=VALUE"]),
    (["--define", "=x"], ["NAME=VALUE"]),
    (["--isolated", "--pass"], ["--pass"]),
    (["--isol"], ["--isol"]),  # nothing can be abbreviated
])
def test_options_that_make_no_sense_are_refused_with_the_reason(daily, options, words):
    done = daily.hotenv("run", *options, "--", "echo", "ran")
    message = refusal(done, 2)
    assert all(word in message for word in words) and done.stdout == b""
    assert "s3cr3t" not in message  # what stands where NAME=VALUE should may be a value


def test_the_help_says_what_define_is_for(daily):
    text = " ".join(daily.hotenv("run", "--help").stdout.decode().split())
    assert re.search(r"--define NAME=VALUE\b[^-]*no secret", text)


# ---- names


@pytest.mark.parametrize("only, names", [
    ("API_KEY", "API_KEY"), ("API_KEY,OTHER", "API_KEY OTHER"), ("AWS_*", "AWS_ID AWS_KEY"),
    ("AWS_*,API_KEY,AWS_ID", "AWS_ID AWS_KEY API_KEY"), ("*", "API_KEY API_URL AWS_ID AWS_KEY TERM OTHER"),
    ("A*,T*", "API_KEY API_URL AWS_ID AWS_KEY TERM"),
])
def test_only_hands_over_what_it_names(daily, only, names):
    chosen = {name.encode(): SNAPSHOT[name.encode()] for name in names.split()}
    assert daily.dump("--only", only) == chosen
    done = daily.hotenv("run", "--only", only, "--", ENV, "-0")
    assert environment_of(done) == {**bytes_of(daily.env), **chosen}


@pytest.mark.parametrize("only, near", [
    ("API_KEX", "API_KEY"), ("OTHER,AP_KEY", "API_KEY"), ("AWZ_*", "AWS_"), ("api_key", ""), ("HOME", ""), ("", ""),
    ("API_KEY,", ""), ("*KEY", ""), ("s3cr3t-1", ""), ("\x1b[2J", "\\x1b[2J"), ("API_*Y", ""),
], ids=repr)
def test_a_name_that_is_not_there_is_refused_with_near_names_and_no_values(daily, only, near):
    command = ["run", "--only", only, "--", "echo", "ran"] if near else ["dump", "--only", only]
    done = daily.hotenv(*command)
    message = refusal(done, 2)
    assert near in message and done.stdout == b"" and "s3cr3t" not in message.replace(only or "\0", "")


# ==== session files ===================================================================================================
# The runtime directory, the socket and the marker: what they look like, who may have made them, what we remove.


@pytest.mark.parametrize("umask", [0o777, 0o000, 0o077], ids=oct)
def test_files_have_their_modes_whatever_the_umask(project, umask):
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "missing" / "too")
    project.serve(preexec_fn=lambda: os.umask(umask))
    path = Path(project.socket_path())
    assert project.marker.read_bytes() == b"socket=" + os.fsencode(str(path)) + b"\n"
    assert re.fullmatch(r"[0-9a-f]{8}\.sock", path.name) and path.parent == project.base / "missing/too/hotenv"
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(project.marker.stat().st_mode) == 0o600
    for made in (path.parent, path.parent.parent, path.parent.parent.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700 and made.stat().st_uid == os.geteuid()
    assert not stat.S_IMODE(path.stat().st_mode) & 0o077
    assert project.dump() == {b"A": b"1"}


@pytest.mark.parametrize("value", [None, "", "relative/dir"])
def test_no_usable_xdg_runtime_dir_means_tmp(project, value):
    standard = Path("/tmp/hotenv-%d" % os.getuid())
    there = standard.exists()
    if value is None:
        del project.env["XDG_RUNTIME_DIR"]
    else:
        project.env["XDG_RUNTIME_DIR"] = value
    server = project.serve()
    assert Path(project.socket_path()).parent == standard
    assert project.dump() == {b"A": b"1"}
    server.terminate()
    assert server.wait(PATIENCE) == 0
    assert project.files() == ["r"] or project.files() == []
    if not there:
        standard.rmdir()


def test_an_open_runtime_directory_of_ours_is_closed(project):
    project.runtime.mkdir()
    project.runtime.chmod(0o777)
    project.serve()
    assert stat.S_IMODE(project.runtime.stat().st_mode) == 0o700


def strange_runtime_link(project):
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir(0o700)
    project.runtime.symlink_to(elsewhere)


def strange_runtime_file(project):
    project.runtime.write_bytes(b"")


def strange_runtime_foreign(project):
    project.runtime.mkdir(0o700)
    os.chown(str(project.runtime), 4242, 4242)


def strange_base_file(project):
    project.base.rmdir()
    project.base.write_bytes(b"")


def strange_base_with_a_line_break(project):
    project.env["XDG_RUNTIME_DIR"] = str(project.base) + "/a\nb"


@pytest.mark.parametrize("make", [
    strange_runtime_link, strange_runtime_file, pytest.param(strange_runtime_foreign, marks=only_root),
    strange_base_file, strange_base_with_a_line_break,
])
def test_a_strange_runtime_directory_is_refused(project, make):
    make(project)
    before = project.files()
    message = refusal(project.hotenv("serve", input=b"A=1\n"), 8)
    assert "XDG_RUNTIME_DIR" in message or "runtime directory" in message
    assert project.files() == before


@pytest.mark.skipif(not LINUX, reason="elsewhere a path beyond sun_path is refused")
def test_a_socket_path_beyond_sun_path_works(project):
    project.env["XDG_RUNTIME_DIR"] = str(project.base / ("x" * 100))
    first = project.serve()
    assert len(project.socket_path()) > 108
    assert project.dump() == {b"A": b"1"}
    old = project.socket_path()
    assert "still answers" in refusal(project.hotenv("serve", input=b""), 10)
    second = project.serve(b"A=2\n", "--force")
    assert project.dump() == {b"A": b"2"} and not os.path.exists(old)  # who answers has tidied up
    for server in (second, first):
        server.terminate()
        assert server.wait(PATIENCE) == 0
    assert not list(project.root.rglob("*.sock")) and not project.marker.exists()


def test_a_socket_path_too_long_is_refused_where_nothing_can_be_done(project):
    project.env["XDG_RUNTIME_DIR"] = str(project.base / ("x" * 100))
    patch = "import os\nreal = os.path.isdir\nos.path.isdir = lambda path: path != '/proc/self/fd' and real(path)"
    message = refusal(project.hotenv("serve", input=b"A=1\n", patch=patch), 8)
    assert "too long" in message and "10" in message and "XDG_RUNTIME_DIR" in message and project.files() == []


def test_paths_are_bytes(project):
    odd = os.fsencode(str(project.dir)) + b"/with blank, \xc3\xa9 and \xff"
    try:
        os.mkdir(odd)
        os.mkdir(os.path.join(odd, b"r"))
    except OSError:
        pytest.skip("this file system wants UTF-8")
    project.dir = Path(os.fsdecode(odd))
    project.marker = project.dir / ".hotenv"
    server = project.serve(b"A=1\n", env={"XDG_RUNTIME_DIR": os.fsdecode(odd + b"/r")})
    assert project.dump() == {b"A": b"1"}
    assert b"still answers" in project.hotenv("serve", env={"XDG_RUNTIME_DIR": "/nowhere"}).stderr
    server.terminate()
    assert server.wait(PATIENCE) == 0 and not project.marker.exists()


def test_the_nearest_marker_upward_wins(project):
    deep = project.dir / "a" / "b" / "c"
    deep.mkdir(parents=True)
    project.serve(b"A=outer\n")
    assert project.dump(cwd=str(deep)) == {b"A": b"outer"}
    inner = project.start("serve", stdin=subprocess.PIPE, cwd=str(project.dir / "a"))
    inner.stdin.write(b"A=inner\n")
    inner.stdin.close()
    until((project.dir / "a" / ".hotenv").exists, "the inner marker")
    assert project.dump(cwd=str(deep)) == {b"A": b"inner"}
    assert project.dump() == {b"A": b"outer"}
    (project.dir / "a" / "b" / ".hotenv").write_bytes(b"damaged")
    refusal(project.run("true", cwd=str(deep)), 9)  # the nearest one counts, also when it is of no use


@pytest.mark.parametrize("content, code", [
    (b"socket=%s", 0), (b"socket=%s\n", 0), (b"\n\nsocket=%s\n\n", 0), (b"\n \t\nsocket=%s\n  \n", 0),
    (b"", 9), (b"\n", 9), (b"socket=", 9), (b"socket=\n", 9), (b"socket=relative.sock\n", 9), (b"socket%s\n", 9),
    (b"Socket=%s\n", 9), (b"sock=%s\n", 9), (b"export socket=%s\n", 9), (b"socket=%s\nsocket=%s\n", 9),
    (b"socket=%s\nmore\n", 9), (b"# note\nsocket=%s\n", 9), (b" socket=%s\n", 9), (b"socket= %s\n", 9),
    (b"socket=/a\0b\n", 9), (b"\xff\xfe", 9), (b"socket='%s'\n", 9), (b"socket=%s" + b"\n" * 8192, 9),
    (b"socket=/" + b"x" * 8300, 9), (b"socket=/nowhere/1.sock\n", 4), (b"socket=/etc/passwd\n", 4),
    (b"socket=/" + b"x" * 4000 + b"\n", 4), (b"socket=/tmp\n", 4), (b"socket=%s\r\n", 4), (b"socket=/\xff\n", 4),
], ids=short)
def test_a_marker_is_one_line_with_an_absolute_path(project, session, content, code):
    content = content.replace(b"%s", os.fsencode(session.socket_path()))
    project.marker.write_bytes(content)
    done = project.hotenv("dump")
    assert done.returncode == code
    if code:
        message = refusal(done, code)
        assert ("serve < " in message) if code == 4 else ("socket=<absolute path>" in message)
        assert not done.stdout


def marker_directory(project):
    project.marker.mkdir()


def marker_fifo(project):
    os.mkfifo(str(project.marker))


def marker_link_to_nothing(project):
    project.marker.symlink_to("nothing")


def marker_link_to_itself(project):
    project.marker.symlink_to(".hotenv")


def marker_device(project):
    project.marker.symlink_to("/dev/zero")


def marker_of_a_stranger(project):
    project.marker.write_bytes(b"socket=/tmp/x.sock\n")
    os.chown(str(project.marker), 4242, 4242)


def marker_by_a_link_of_a_stranger(project):
    (project.dir / "real").write_bytes(b"socket=/tmp/x.sock\n")
    project.marker.symlink_to("real")
    os.chown(str(project.marker), 4242, 4242, follow_symlinks=False)


def marker_by_a_second_link_of_a_stranger(project):
    (project.dir / "real").write_bytes(b"socket=/tmp/x.sock\n")
    (project.dir / "between").symlink_to("real")
    os.chown(str(project.dir / "between"), 4242, 4242, follow_symlinks=False)
    project.marker.symlink_to("between")


@pytest.mark.parametrize("plant", [
    marker_directory, marker_fifo, marker_link_to_nothing, marker_link_to_itself, marker_device,
    pytest.param(marker_of_a_stranger, marks=only_root), pytest.param(marker_by_a_link_of_a_stranger, marks=only_root),
    pytest.param(marker_by_a_second_link_of_a_stranger, marks=only_root),
])
def test_a_planted_marker_is_not_believed(project, plant):  # invariant 9
    plant(project)
    before = project.files()
    assert ".hotenv" in refusal(project.run("echo", "ran"), 8)
    message = refusal(project.hotenv("serve", input=b"A=1\n"), 10)  # and it is a marker, for serve
    assert "--force" in message
    assert project.files() == before


def test_an_unreadable_marker_is_a_system_error(project):
    patch = ("import errno, os\nreal = os.open\n"
             "def refuse(path, *a, **k):\n"
             "    if str(path).endswith('.hotenv'): raise PermissionError(errno.EACCES, 'Permission denied')\n"
             "    return real(path, *a, **k)\nos.open = refuse")
    project.marker.write_bytes(b"socket=/x\n")
    assert "Permission denied" in refusal(project.hotenv("dump", patch=patch), 8)


def test_a_link_of_ours_to_a_marker_of_ours_is_followed(project, session):
    project.marker.symlink_to(session.marker)
    assert project.run("true").returncode == 0


@only_root
def test_a_marker_or_a_link_of_root_is_believed_by_others(project, session):  # invariant 9
    project.marker.write_bytes(session.marker.read_bytes())
    project.marker.chmod(0o644)
    project.root.chmod(0o755)
    (project.dir / "below").mkdir()
    (project.dir / "below" / ".hotenv").symlink_to("../.hotenv")

    expected = session.socket_path()

    def read():
        return 0 if hotenv._read_marker(str(project.dir / "below" / ".hotenv")) == expected else 1

    assert in_child(read, uid=4242) == 0
    os.chown(str(project.marker), 65534, 65534)
    assert in_child(read, uid=65534) == 8  # the overflow uid is nobody's own: it stands for every stranger


@only_root
def test_a_server_of_another_user_is_not_believed(project):  # invariant 9
    path = str(project.root / "stranger.sock")
    project.root.chmod(0o777)
    stranger = os.fork()
    if not stranger:
        try:
            os.setgroups([])
            os.setuid(4242)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(5)
            while True:
                client, _ = listener.accept()
                client.recv(65536)
                try:
                    client.sendall(b'{"env":{"PATH":"/evil"}}\n')
                except OSError:
                    pass
                client.close()
        finally:
            os._exit(0)
    try:
        until(lambda: os.path.exists(path), "the stranger's socket")
        until(lambda: not in_child(lambda: socket.socket(socket.AF_UNIX).connect(path) or 0))
        project.marker.write_bytes(b"socket=" + os.fsencode(path) + b"\n")
        for command in (["dump"], ["run", "--", "echo", "ran"], ["dump", "--peer-uid", "4243"]):
            done = project.hotenv(*command)
            assert "uid 4242" in refusal(done, 9) and b"evil" not in done.stdout + done.stderr
        assert project.hotenv("dump", "--peer-uid", "4242").stdout == b"PATH=/evil\n"
        assert "cannot be believed" in refusal(project.hotenv("serve"), 10)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


def test_a_marker_is_whole_where_the_file_system_has_no_links(project):
    patch = ("import errno, os\ndef refuse(*a, **k): raise PermissionError(errno.EPERM, 'no links here')\n"
             "os.link = refuse")
    server = project.serve(patch=patch)
    assert stat.S_IMODE(project.marker.stat().st_mode) == 0o600 and project.dump() == {b"A": b"1"}
    refusal(project.hotenv("serve", patch=patch), 10)
    assert len(project.files()) == 3  # the marker, the runtime directory, one socket
    server.terminate()
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"]


def test_a_marker_is_whole_and_its_session_listens_when_it_is_seen(project):
    """On a slow disk and with a slow listen, which a poller must not notice."""
    patch = ("import os, time, _socket\nreal = os.write\n"
             "def write(*a):\n    time.sleep(0.1)\n    return real(*a)\nos.write = write\n"
             "class Slow(_socket.socket):\n"
             "    def listen(self, *a):\n        time.sleep(0.1)\n        super().listen(*a)\n"
             "class Module:\n    socket = Slow\n    def __getattr__(self, name): return getattr(_socket, name)\n"
             "hotenv._socket = Module()")
    process = project.start("serve", stdin=subprocess.DEVNULL, patch=patch)
    until(project.marker.exists, "a marker")
    assert project.ask() == b'{"env":{}}\n' and process.poll() is None


def test_force_leaves_no_moment_without_a_marker(project):
    project.serve(b"A=1\n")
    patch = ("import os\nreal = os.rename\n"
             "def rename(*a, **k):\n"
             "    open('seen', 'w').write(str(os.path.exists('.hotenv')))\n    return real(*a, **k)\n"
             "os.rename = rename")
    project.serve(b"A=2\n", "--force", patch=patch)
    assert (project.dir / "seen").read_text() == "True" and project.dump() == {b"A": b"2"}


def test_removing_a_marker_and_replacing_one_exclude_each_other(project):
    """Between the look at its marker and its removal an old server sleeps: a newcomer's must not be what it removes."""
    patch = ("import time\nreal = hotenv._SessionFiles.named\n"
             "def named(self):\n    found = real(self)\n"
             "    open('looked', 'w').close()\n    time.sleep(0.3)\n    return found\n"
             "hotenv._SessionFiles.named = named")
    old = project.serve(b"A=old\n", patch=patch)
    process, writer = held_stdin(project, "--force")
    old.terminate()
    until((project.dir / "looked").exists, "the look")
    os.close(writer)
    assert old.wait(PATIENCE) == 0
    project.wait_ready(process)
    assert project.ask() == b'{"env":{}}\n'


def test_a_lock_that_somebody_holds_stops_nobody(project):
    descriptor = os.open(str(project.dir), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    server = project.serve(patch="hotenv.LOCK_TIME = 0.05")
    server.terminate()
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"]
    os.close(descriptor)


def test_clean_up_spares_what_is_not_ours(project):  # invariant 7
    server = project.serve()
    path = Path(project.socket_path())
    path.unlink()
    path.write_bytes(b"somebody else's")
    project.marker.write_bytes(b"socket=/tmp/another.sock\n")
    server.terminate()
    assert server.wait(PATIENCE) == 0
    assert path.read_bytes() == b"somebody else's"
    assert project.marker.read_bytes() == b"socket=/tmp/another.sock\n"


def test_clean_up_finds_its_files_where_a_directory_was_renamed(project):
    server = project.serve()
    moved = project.root / "moved"
    project.dir.rename(moved)
    server.terminate()
    assert server.wait(PATIENCE) == 0
    assert not (moved / ".hotenv").exists() and project.files() == ["r/hotenv"]


def test_force_replaces_the_marker_and_removes_the_old_socket(project):
    old = project.serve(b"A=old\n", patch="hotenv.TICK = 0.05")
    old_path = project.socket_path()
    project.serve(b"A=new\n", "-f")
    assert project.dump() == {b"A": b"new"}
    assert not os.path.exists(old_path)
    assert old.wait(PATIENCE) == 0  # it notices, and leaves what is not its own
    assert project.dump() == {b"A": b"new"}


def test_force_starts_where_there_is_nothing_to_replace(project):
    project.serve(b"A=1\n", "--force")
    assert project.dump() == {b"A": b"1"}


@pytest.mark.parametrize("name, make_socket", [
    ("r/hotenv/0123abcd.sock", False),  # a file, where a socket of ours might lie
    ("r/hotenv/0123ABCD.sock", True), ("r/hotenv/other.sock", True), ("r/hotenv/0123abcd.sock.sock", True),
    ("r/0123abcd.sock", True), ("p/0123abcd.sock", True), ("r/hotenv/sub/0123abcd.sock", True),
])
def test_force_spares_an_old_socket_that_is_none_of_ours(project, name, make_socket):  # invariant 7
    other = project.root / name
    other.parent.mkdir(parents=True, exist_ok=True)
    project.runtime.mkdir(exist_ok=True)
    if make_socket:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(other))
    else:
        other.write_bytes(b"precious")
    namesake = project.runtime / other.name
    if not namesake.exists():
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(namesake))
    project.marker.write_bytes(b"socket=" + os.fsencode(str(other)) + b"\n")
    project.serve(b"A=1\n", "--force")
    assert other.exists() and namesake.exists() and project.dump() == {b"A": b"1"}


@pytest.mark.parametrize("plant", [marker_fifo, marker_link_to_nothing, marker_device])
def test_force_replaces_a_planted_marker_and_not_what_it_leads_to(project, plant):
    plant(project)
    project.serve(b"A=1\n", "--force")
    assert stat.S_ISREG(os.lstat(str(project.marker)).st_mode) and project.dump() == {b"A": b"1"}
    assert not (project.dir / "nothing").exists() and os.path.exists("/dev/zero")


def test_force_cannot_replace_a_directory_and_leaves_nothing(project):
    project.marker.mkdir()
    refusal(project.hotenv("serve", "--force", input=b"A=1\n"), 8)
    assert project.files() == ["p/.hotenv"]


@pytest.mark.parametrize("loss, removed", [
    ("unlink", True), ("replace", True), ("marker", False),
])
def test_a_server_that_lost_its_files_ends(project, loss, removed):
    server = project.serve(patch="hotenv.TICK = 0.05")
    path = Path(project.socket_path())
    if loss == "marker":
        project.marker.write_bytes(b"socket=/tmp/another.sock\n")
    else:
        path.unlink()
        if loss == "replace":
            path.write_bytes(b"")
    assert server.wait(PATIENCE) == 0
    assert project.marker.exists() != removed
    assert path.exists() == (loss == "replace")


def test_a_missing_marker_is_no_reason_to_end(project):
    patch = ("hotenv.TICK = 0.02\nreal = hotenv._SessionFiles.named\n"
             "def named(self):\n    open('looked', 'a').write('x')\n    return real(self)\n"
             "hotenv._SessionFiles.named = named")
    server = project.serve(patch=patch)
    path = project.socket_path()
    project.marker.unlink()
    looked = project.dir / "looked"
    start = until(lambda: looked.exists() and len(looked.read_bytes()), "a look")
    until(lambda: len(looked.read_bytes()) > start + 3 or server.poll() is not None, "more looks")
    assert server.poll() is None and project.dump("--socket", path) == {b"A": b"1"}


def test_no_name_is_taken_twice(project):
    """Session ids that are taken are passed over: 32 bits are few enough to meet."""
    project.runtime.mkdir(mode=0o700)
    taken = project.runtime / "00000000.sock"
    taken.write_bytes(b"taken")
    patch = ("import os\nreal, numbers = os.urandom, [b'\\0\\0\\0\\0', b'\\0\\0\\0\\0', b'\\0\\0\\0\\1']\n"
             "os.urandom = lambda n: numbers.pop(0) if n == 4 and numbers else real(n)")
    project.serve(patch=patch)
    assert project.socket_path().endswith("/00000001.sock") and taken.read_bytes() == b"taken"


@only_root
def test_nobody_is_told_that_hotenv_does_not_run_as_nobody(project):
    def ask():
        try:
            hotenv._runtime_dir()
        except hotenv.HotenvError as error:
            return 0 if "nobody" in str(error) else 1

    project.root.chmod(0o755)
    project.base.chmod(0o777)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(project.base)
    try:
        assert in_child(ask, uid=hotenv.OVERFLOW_UID) == 0
    finally:
        os.environ.pop("XDG_RUNTIME_DIR") if before is None else os.environ.update(XDG_RUNTIME_DIR=before)


def test_a_runtime_directory_that_cannot_be_made_leaves_no_parents(project):
    deep = str(project.root / "new" / "x" / ("y" * 300))
    done = project.hotenv("serve", env={"XDG_RUNTIME_DIR": deep})
    assert refusal(done, 8) and not (project.root / "new").exists()


# ==== protocol ========================================================================================================
# One JSON line each way. What is no request gets a reason, and changes nothing.

A_MILLION_DIGITS = b"1" * 1000000
BAD_REQUESTS = {
    "empty line": b"\n", "blanks": b"  \n", "not json": b"dump\n", "half json": b'{"command":"du\n', "null": b"null\n",
    "array": b'["dump"]\n', "string": b'"dump"\n', "two values": b'{"command":"dump"}{"command":"dump"}\n',
    "text after": b'{"command":"dump"} x\n', "single quotes": b"{'command':'dump'}\n",
    "trailing comma": b'{"command":"dump",}\n',
    "not utf-8": b'{"command":"run","args":["\xff"]}\n', "utf-16": '{"command":"dump"}\n'.encode("utf-16"),
    "bom": b'\xef\xbb\xbf{"command":"dump"}\n', "raw control": b'{"command":"run","args":["a\tb"]}\n',
    "nul": b"\0\n", "no command": b"{}\n", "unknown command": b'{"command":"stop"}\n',
    "other case": b'{"command":"Dump"}\n',
    "command is null": b'{"command":null}\n', "command is a list": b'{"command":["dump"]}\n',
    "command is 1": b'{"command":1}\n',
    "run without args": b'{"command":"run"}\n', "args empty": b'{"command":"run","args":[]}\n',
    "args is a string": b'{"command":"run","args":"ls"}\n',
    "args is an object": b'{"command":"run","args":{"0":"ls"}}\n',
    "args is null": b'{"command":"run","args":null}\n', "a number in args": b'{"command":"run","args":["ls",1]}\n',
    "null in args": b'{"command":"run","args":[null]}\n', "nan": b'{"command":NaN}\n',
    "nan elsewhere": b'{"command":"dump","x":NaN}\n', "infinity": b"-Infinity\n",
    "a million digits": A_MILLION_DIGITS + b"\n",
    "a million digits as command": b'{"command":' + A_MILLION_DIGITS + b"}\n",
    "a million digits and an exponent": b'{"command":1e' + A_MILLION_DIGITS + b"}\n",
    "100,000 brackets": b"[" * 100000 + b"\n", "100,000 closed brackets": b"[" * 100000 + b"]" * 100000 + b"\n",
    "100,000 braces": b'{"a":' * 100000 + b"\n", "lone escape": b'{"command":"\\"\n',
    "a byte too long": b'{"command":"dump","x":"' + b"x" * ((16 << 20) - 24) + b'"}\n',
    "much too long": b"x" * (17 << 20),
}
GOOD_REQUESTS = {
    "dump": b'{"command":"dump"}\n', "run": b'{"command":"run","args":["x"]}\n',
    "blanks": b'  { "command" : "dump" } \r\n',
    "unknown fields": b'{"version":3,"command":"dump","more":{"a":[1,2.5,null,true]}}\n',
    "args for dump": b'{"command":"dump","args":7}\n',
    "escapes": b'{"comm\\u0061nd":"\\u0064ump"}\n', "an empty argument": b'{"command":"run","args":[""]}\n',
    "a lone surrogate": b'{"command":"run","args":["\\ud800"]}\n',
    "the last of two": b'{"command":1,"command":"dump"}\n',
    "a million digits that nobody wants": b'{"command":"dump","n":' + A_MILLION_DIGITS + b"}\n",
    "the longest": b'{"command":"dump","x":"' + b"x" * ((16 << 20) - 25) + b'"}\n',
    "something after the newline": b'{"command":"dump"}\nand more\n',
    "two requests": b'{"command":"dump"}\n{"command":"stop"}\n',
}


@pytest.mark.parametrize("name", GOOD_REQUESTS)
def test_a_request_is_answered_with_the_whole_environment(session, name):
    request = GOOD_REQUESTS[name]
    assert len(request.split(b"\n")[0]) <= 16 << 20
    reply = session.ask(request)
    assert reply.count(b"\n") == 1 and reply.endswith(b"\n")
    assert json.loads(reply.decode("utf-8")) == {"env": {"A": "1", "B": "two words", "EMPTY": ""}}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_gets_a_reason_and_changes_nothing(session, name):  # invariant 6
    request = BAD_REQUESTS[name]
    ends, log = session.ends_at(), session.log()
    with session.connect() as client:
        try:
            client.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            pass
        reply = answer(client)
    assert reply.startswith(BAD_REQUEST) and reply.count(b"\n") == 1
    refused = json.loads(reply.decode("ascii"))
    assert set(refused) == {"error", "message"} and len(refused["message"]) > 10
    assert session.ends_at() == ends and session.log() == log


@pytest.mark.parametrize("request_", [b"", b'{"command":"dump"}', b'{"comm'], ids=short)
def test_the_end_of_input_before_a_newline_is_a_bad_request(session, request_):
    ends, log = session.ends_at(), session.log()
    with session.connect() as client:
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        assert answer(client).startswith(BAD_REQUEST)
    assert session.ends_at() == ends and session.log() == log


def test_a_request_may_come_byte_by_byte(session):
    with session.connect() as client:
        for position in range(len(DUMP)):
            client.sendall(DUMP[position:position + 1])
        assert b'"two words"' in answer(client)


def test_what_follows_the_request_is_never_answered_and_spoils_nothing(session):
    """Closing with unread bytes would reset the other side, which might then never read its answer."""
    for _ in range(20):
        with session.connect() as client:
            client.sendall(DUMP + b"x" * 100000)
            reply = b""
            while not reply.endswith(b"\n"):
                reply += client.recv(1000)
            assert reply.count(b'"env"') == 1 and client.recv(1000) == b""  # the end, and no reset


def test_unfinished_requests_share_their_memory(project):
    project.serve(patch="hotenv.MAX_UNFINISHED = 1 << 20")
    clients = [project.connect() for _ in range(9)]
    for client in clients[:8]:
        client.sendall(b"x" * (1 << 17))
    clients[8].sendall(b"x" * (1 << 17))
    readable = until(lambda: select.select(clients, [], [], 0)[0], "a refusal")
    assert answer(readable[0]).startswith(b'{"error":"')
    assert project.dump() == {b"A": b"1"}
    for client in clients:
        client.close()
    assert project.dump() == {b"A": b"1"}  # and what they held is free again
    with project.connect() as client:
        client.sendall(b'{"command":"dump","x":"' + b"x" * 900000)
        client.sendall(b'"}\n')
        assert b'"env"' in answer(client)


def test_the_snapshot_is_encoded_once(project):  # invariant 4
    patch = ("import json\nreal = hotenv._encode_snapshot\ncount = 0\n"
             "def encode(env):\n    open('encoded', 'a').write('x')\n    return real(env)\n"
             "hotenv._encode_snapshot = encode\n"
             "def never(*a, **k): open('encoded', 'a').write('json')\njson.dumps = json.dump = never")
    project.serve(b"A=1\nB=2\n", patch=patch)
    assert len({project.ask() for _ in range(3)} | {project.ask(GOOD_REQUESTS["run"])}) == 1
    assert (project.dir / "encoded").read_text() == "x"


@pytest.mark.parametrize("value",
                         ["", " ", "'\"\\", "a\nb\r\tc", "\x01\x7f", "\u00e9\u20ac\U0001f511", "}{\",:", "x" * 100000],
                         ids=short)
def test_values_arrive_to_the_byte(project, value):
    project.serve(b"A='%s'\nB=after\n" % value.replace("\\", "\\\\").replace("'", "\\'").encode())
    expected = value.replace("\r\n", "\n").replace("\r", "\n").encode()
    assert project.dump() == {b"A": expected, b"B": b"after"}
    assert project.run("env", "-0", env={"B": "before"}).stdout.split(b"\0").count(b"A=" + expected) == 1


# ==== server ==========================================================================================================
# Timers, signals, the request log, and clients that are slow, silent, many or gone.


def test_an_idle_session_ends_and_cleans_up(project):
    began = time.time()
    server = project.serve(b"A=1\n", "--timeout", "0.3")
    assert server.wait(PATIENCE) == 0 and time.time() - began >= 0.3
    assert project.files() == ["r/hotenv"] and project.log() == b""
    refusal(project.run("true"), 3)


def test_each_successful_request_sets_the_idle_timer_anew(project):  # invariant 6
    project.serve(b"A=1\n", "--timeout", "1000")
    for ask in (project.ask, lambda: project.run("true"), project.dump):
        os.utime(project.socket_path(), (1, 1))
        before = time.time()
        ask()
        assert before + 1000 - 0.1 <= project.ends_at() <= time.time() + 1000.1


def test_a_session_that_is_used_outlives_its_idle_timeout(project):
    server = project.serve(b"A=1\n", "--timeout", "0.4")
    first_end = project.ends_at()
    until(lambda: project.ask() and time.time() > first_end + 0.2)
    assert server.poll() is None
    assert server.wait(PATIENCE) == 0


def test_max_age_ends_a_session_that_is_used(project):
    server = project.serve(b"A=1\n", "--timeout", "1h", "--max-age", "0.4")
    end = project.ends_at()
    answers = []

    def ended():
        try:
            answers.append(project.ask())
        except OSError:
            pass
        return server.poll() is not None

    until(ended, "the end of a session at its maximal age")
    assert server.returncode == 0 and end <= time.time() < end + 5 and any(answers)
    assert abs(end - time.time()) < 5 and project.files() == ["r/hotenv"]


@pytest.mark.parametrize("how", ["refused", "gone before its answer", "silent", "gone in the middle of its answer"])
def test_what_is_no_success_does_not_reset_the_timer(project, how):  # invariant 6
    big = how == "gone in the middle of its answer"
    project.serve(b"A=1\n" + (b"B=" + b"x" * (8 << 20) + b"\n" if big else b""))
    ends = project.ends_at()
    client = project.connect()
    if how == "refused":
        client.sendall(b"{}\n")
        assert answer(client).startswith(BAD_REQUEST)
    elif how == "gone before its answer":
        client.sendall(DUMP[:-1])
    elif big:
        client.sendall(DUMP)
        assert client.recv(1000)
    client.close()
    with project.connect() as later:  # when this one is refused, the other has been dealt with
        later.sendall(b"{}\n")
        assert answer(later).startswith(BAD_REQUEST)
    assert project.ends_at() == ends and project.log() == b""


def test_log_and_time_stamp_are_written_before_the_client_is_let_go(project):  # invariant 6
    patch = ("import time\nreal, stamp = hotenv._Log.request, hotenv._SessionFiles.stamp\n"
             "def slow(self, *a):\n    time.sleep(0.15)\n    return real(self, *a)\n"
             "def late(self, *a):\n    time.sleep(0.15)\n    return stamp(self, *a)\n"
             "hotenv._Log.request, hotenv._SessionFiles.stamp = slow, late")
    project.serve(patch=patch)
    for count in (1, 2):
        os.utime(project.socket_path(), (1, 1))
        project.run("true")
        assert project.ends_at() > time.time() and len(project.log_lines()) == count


def test_after_a_stop_beyond_the_deadline_nothing_is_answered(project):  # invariant 3
    timeout, pause = (2.0, 3.0) if FULL else (0.4, 0.6)
    server = project.serve(b"A=s3cr3t\n", "--timeout", str(timeout))
    early = project.connect()
    os.kill(server.pid, signal.SIGSTOP)
    late = project.connect()
    stopped = time.time()
    early.sendall(DUMP)
    late.sendall(DUMP)
    until(lambda: time.time() > stopped + pause)
    os.kill(server.pid, signal.SIGCONT)
    assert answer(early) == b"" and answer(late) == b""
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"] and project.log() == b""


def test_after_the_deadline_no_answer_goes_on(project):  # invariant 3
    server = project.serve(b"A=" + b"x" * (8 << 20) + b"\n", "--timeout", "0.4")
    with project.connect() as slow:
        slow.sendall(DUMP)
        got = len(slow.recv(1000))
        assert server.wait(PATIENCE) == 0
        got += len(answer(slow))
        assert 0 < got < 4 << 20


def test_a_deadline_that_passes_while_a_request_is_read_counts(project):  # invariant 3
    patch = ("import time\nreal = hotenv._decode_request\n"
             "def slow(line):\n    time.sleep(0.5)\n    return real(line)\nhotenv._decode_request = slow")
    server = project.serve(b"A=s3cr3t\n", "--timeout", "0.4", patch=patch)
    assert project.ask() == b"" and server.wait(PATIENCE) == 0 and project.log() == b""


def resident(pid):
    return int(Path("/proc/%d/statm" % pid).read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@only_linux
@pytest.mark.parametrize("options", [[], ["--background"]], ids=short)
def test_a_session_is_small(project, options):
    """A script's syntax tree alone is 5 MB, and Python keeps it up to the script's last line."""
    project.hotenv("serve", *options) if options else project.serve(*options)
    assert project.dump() is not None
    idle = "import _ctypes, collections, re, resource, select, sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", idle], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as interpreter:
        interpreter.stdout.readline()
        assert resident(project.server_pid()) - resident(interpreter.pid) < 4_000_000
        interpreter.stdin.close()


@only_linux
def test_deadlines_are_on_a_clock_that_counts_suspend():  # invariant 3
    assert hotenv._CLOCK == time.CLOCK_BOOTTIME


POLLERS = {"the system's best": "", "poll alone": "import select; vars(select).pop('epoll', None); "}
with_each_poller = pytest.mark.parametrize("poller", POLLERS.values(), ids=list(POLLERS))


@with_each_poller
def test_a_thousand_silent_clients_delay_nobody(project, poller):  # invariant 5
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("needs 1,200 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    clients = []
    try:
        server = project.serve(b"A=1\n", "--timeout", "1h", patch=poller + "hotenv.REQUEST_TIME = 1.2")
        path = project.socket_path()
        began = time.monotonic()
        for number in range(1000):
            clients.append(project.connect(path))
            if number % 2:
                clients[-1].sendall(b'{"comm')
        for _ in range(20):
            asked = time.monotonic()
            assert b'"env"' in project.ask(path=path)
            assert time.monotonic() - asked < 1.0
        assert project.run("true").returncode == 0
        assert server.poll() is None
        for client in clients:  # each at its own deadline
            assert answer(client) == b""
        assert time.monotonic() - began >= 1.2
        assert b'"env"' in project.ask(path=path)
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_soft_limit_of_descriptors_is_raised(project):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    project.serve(preexec_fn=limits(NOFILE=(64, hard)), patch="hotenv.REQUEST_TIME = 1000.0")
    silent = [project.connect() for _ in range(150)]
    assert b'"env"' in project.ask()
    assert not select.select(silent[:1], [], [], 0)[0]  # nobody had to go for it
    for client in silent:
        client.close()


def cpu_seconds(pid):
    fields = Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@with_each_poller
def test_without_descriptors_the_oldest_silent_client_goes(project, poller):  # invariant 5
    server = project.serve(preexec_fn=limits(NOFILE=(64, 64)), patch=poller + "hotenv.REQUEST_TIME = 1000.0")
    clients = [project.connect() for _ in range(100)]
    assert project.run("true").returncode == 0
    assert answer(clients[0]) == b"" and not select.select([clients[-1]], [], [], 0)[0]
    assert server.poll() is None
    for client in clients:
        client.close()
    assert project.dump() == {b"A": b"1"}


@only_linux
@with_each_poller
def test_without_descriptors_the_server_neither_spins_nor_dies(project, poller):  # invariant 5
    server = project.serve(b"A=" + b"x" * (2 << 20) + b"\n", preexec_fn=limits(NOFILE=(64, 64)), patch=poller)
    clients = []
    for _ in range(100):  # each with a complete request, and none of them reads its answer
        clients.append(project.connect())
        clients[-1].sendall(DUMP)
    until(lambda: select.select(clients[:40], [], [], 0)[0] == clients[:40], "the first answers")
    before, began = cpu_seconds(server.pid), time.monotonic()
    until(lambda: time.monotonic() - began > 0.5)
    assert cpu_seconds(server.pid) - before < 0.2
    assert server.poll() is None
    for client in clients[:50]:
        client.close()
    assert all(answer(client).endswith(b'"}}\n') for client in clients[50:])
    assert b'"env"' in project.ask()
    for client in clients:
        client.close()


@with_each_poller
def test_a_slow_reader_of_a_large_snapshot_holds_up_nobody(project, poller):  # invariant 5
    size = 20 << 20
    project.serve(b"A=" + b"x" * size + b"\n", patch=poller)
    slow = [project.connect() for _ in range(3)]
    for client in slow:
        client.sendall(DUMP)
        assert client.recv(10)
    began = time.monotonic()
    assert len(project.ask()) == size + len(b'{"env":{"A":""}}\n')
    assert project.ask(b"{}\n").startswith(BAD_REQUEST)
    assert time.monotonic() - began < 5
    for client in slow:
        assert 10 + len(answer(client)) == size + len(b'{"env":{"A":""}}\n')
        client.close()
    assert len(project.log_lines()) == 4


def test_a_client_that_takes_no_answer_is_dropped(project):
    project.serve(b"A=" + b"x" * (8 << 20) + b"\n", patch="hotenv.ANSWER_TIME = 0.3")
    with project.connect() as stuck:
        stuck.sendall(DUMP)
        until(lambda: not writable(stuck), "the end of a connection that does not move")
        assert len(answer(stuck)) < 8 << 20
    assert project.log() == b""


def writable(client):
    try:
        client.send(b"\n")
        return True
    except OSError:
        return False


def test_a_client_that_reads_slowly_but_on_gets_it_all(project):
    """The deadline of an answer counts from its last progress, not from its start."""
    project.serve(b"A=" + b"x" * (1 << 20) + b"\n", patch="hotenv.ANSWER_TIME = 0.4")
    with project.connect() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(DUMP)
        began, got = time.monotonic(), 0
        while True:
            piece = slow.recv(1 << 18)
            if not piece:
                break
            got += len(piece)
            pause = time.monotonic() + 0.12
            until(lambda: time.monotonic() > pause)
        assert got > 1 << 20 and time.monotonic() - began > 0.45


def test_a_silent_client_is_dropped_at_its_deadline_and_expiry_is_on_time(project):  # invariant 5
    server = project.serve(b"A=1\n", "--timeout", "0.6", patch="hotenv.REQUEST_TIME = 0.2")
    silent = project.connect()
    assert answer(silent) == b""
    assert server.poll() is None
    silent.close()
    staying = project.connect()
    end = project.ends_at()
    assert server.wait(PATIENCE) == 0 and time.time() < end + 2
    staying.close()


def test_fifty_runs_against_a_server_that_is_stopped_all_succeed(project):
    server = project.serve()
    os.kill(server.pid, signal.SIGSTOP)
    began = time.monotonic()
    runs = [project.start("run", "--", "sh", "-c", 'echo "$A"', stdout=subprocess.PIPE) for _ in range(50)]
    until(lambda: time.monotonic() - began > 0.5)
    os.kill(server.pid, signal.SIGCONT)
    assert [run.communicate(timeout=PATIENCE)[0] for run in runs] == [b"1\n"] * 50
    assert [run.returncode for run in runs] == [0] * 50


def test_a_full_backlog_is_waited_for(project):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(project.root / "busy.sock"))
    listener.listen(0)
    waiting = []
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(str(project.root / "busy.sock"))
        except BlockingIOError:
            client.close()
            break
        waiting.append(client)
    run = project.start("dump", "--socket", str(project.root / "busy.sock"), stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(0.3)
    for _ in range(len(waiting) + 1):
        accepted, _ = listener.accept()
        if len(waiting):
            waiting.pop(0).close()
        try:
            accepted.settimeout(PATIENCE)
            if accepted.recv(100):
                accepted.sendall(b'{"env":{"A":"1"}}\n')
        except OSError:
            pass
        accepted.close()
    assert run.communicate(timeout=PATIENCE)[0] == b"A=1\n"
    listener.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_session_properly(project, number):
    server = project.serve()
    server.send_signal(number)
    assert server.wait(PATIENCE) == 0
    assert project.files() == ["r/hotenv"] and project.log() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_start_stays_ignored(project, number):
    """nohup and a shell's & mean it; SIGTERM always ends a session."""
    server = project.serve(preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    server.send_signal(number)
    assert project.dump() == {b"A": b"1"} and server.poll() is None
    server.terminate()
    assert server.wait(PATIENCE) == 0


@only_linux
def test_pkill_hotenv_ends_the_session(project):
    if not shutil.which("pkill"):
        pytest.skip("needs pkill")
    server = project.serve(start_new_session=True)
    subprocess.run(["pkill", "-g", str(server.pid), "hotenv"], check=True, timeout=PATIENCE)  # this one alone
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"]


LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (run|dump) ")


@pytest.mark.parametrize("options, lines", [
    ([], ["run python", "run two words", "run ", "dump -"]),
    (["--verbose"], ["run python script.py --debug", "run two words a  b", "run ", "dump -"]),
    (["-v"], ["run python script.py --debug", "run two words a  b", "run ", "dump -"]),
    (["--quiet"], []), (["-q"], []),
], ids=short)
def test_one_log_line_for_each_successful_request(project, options, lines):
    project.serve(b"A=1\n", *options, env={"TZ": "UTC-5"})
    before = time.time()
    for args in (["python", "script.py", "--debug"], ["two words", "a ", "b"], [""]):
        assert b'"env"' in project.ask(json.dumps({"command": "run", "args": args}).encode() + b"\n")
    project.ask(b"nonsense\n")
    project.ask()
    assert [line[20:] for line in project.log_lines()] == lines
    for line in project.log_lines():
        stamp = time.mktime(time.strptime(line[:19], "%Y-%m-%d %H:%M:%S")) - time.timezone
        assert abs(stamp - 5 * 3600 - before) < 60 or abs(stamp + time.timezone - before - 5 * 3600) < 60


@pytest.mark.parametrize("arg, shown", [
    ("\x1b[31mred", r"\x1b[31mred"), ("two\nlines", r"two\nlines"), ("a\rb", r"a\rb"), ("tab\t.", r"tab\t."),
    ("\u202egnp.exe", r"\u202egnp.exe"), ("\u2028", r"\u2028"), ("\x7f\x80", r"\x7f\x80"), ("\ud800", r"\ud800"),
    ("\udcff", r"\udcff"), ("\U000e0001", r"\U000e0001"), ("back\\slash", "back\\slash"),
    ("\u00e9\u20ac\U0001f511", "\u00e9\u20ac\U0001f511"),
    ("'quotes\"", "'quotes\""),
], ids=short)
def test_what_a_client_sends_is_escaped_in_the_log(session, arg, shown):  # invariant 10
    before = len(session.log_lines())
    assert b'"env"' in session.ask(json.dumps({"command": "run", "args": ["x", arg]}).encode() + b"\n")
    raw = session.log()
    assert raw.endswith(("run x " + shown + "\n").encode()) and raw.decode().count("\n") == before + 1


def filled_pipe(room):
    """(read end, write end) of a pipe that takes `room` bytes and then blocks whoever writes."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    written = 0
    try:
        while True:
            written += os.write(writer, b"." * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    left = room
    while left:
        taken = len(os.read(reader, min(left, 4096)))
        left -= taken
        written -= taken
    return reader, writer, written


@only_linux
@pytest.mark.parametrize("room", [0, 4096, 8192])
def test_a_stderr_that_nobody_reads_holds_up_neither_requests_nor_expiry(project, room):
    reader, writer, _ = filled_pipe(room)
    server = project.serve(b"A=1\n", "--verbose", "--timeout", "0.5", stderr=writer)
    request = json.dumps({"command": "run", "args": ["x" * 100000]}).encode() + b"\n"
    for _ in range(4):
        assert b'"env"' in project.ask(request)
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"]
    os.close(reader)
    os.close(writer)


@only_linux
def test_a_log_that_is_not_read_is_cut_with_a_count(project):
    reader, writer, junk = filled_pipe(0)
    server = project.serve(b"A=1\n", "--verbose", stderr=writer)
    os.close(writer)
    request = json.dumps({"command": "run", "args": ["x" * 20000]}).encode() + b"\n"
    for _ in range(100):
        assert b'"env"' in project.ask(request)
    text = b""
    while b"dropped" not in text:
        text += os.read(reader, 65536)
        project.ask() if len(text) > junk + (1 << 20) - 30000 else None
    server.terminate()
    while True:
        piece = os.read(reader, 65536)
        if not piece:
            break
        text += piece
    lines = text[junk:].decode().splitlines()
    dropped = [int(line.split()[3]) for line in lines if "dropped" in line]
    assert len(dropped) == 1 and dropped[0] > 20
    assert sum(" run " in line and len(line) == 20024 for line in lines) + dropped[0] >= 100
    os.close(reader)


@pytest.mark.parametrize("closed", [(2,), (1, 2), (0, 1, 2)], ids=str)
def test_closed_descriptors_are_never_taken_for_ours(project, closed):
    process = project.start("serve", "--verbose", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=None,
                            preexec_fn=lambda: [os.close(each) for each in closed])
    try:
        process.stdin.write(b"A=1\n")
        process.stdin.close()
    except BrokenPipeError:
        pass
    project.wait_ready(process)
    expected = b'{"env":{}}\n' if 0 in closed else b'{"env":{"A":"1"}}\n'
    for request in (DUMP, GOOD_REQUESTS["run"], DUMP):
        assert project.ask(request) == expected
    process.terminate()
    assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_log_ends_no_session(project):
    with open("/dev/full", "wb") as full:
        project.serve(stderr=full)
    assert project.dump() == {b"A": b"1"} and project.dump() == {b"A": b"1"}


def test_a_log_that_nobody_reads_any_more_ends_no_session(project):
    reader, writer = os.pipe()
    project.serve(stderr=writer)
    os.close(reader)
    os.close(writer)
    assert project.dump() == {b"A": b"1"} and project.dump() == {b"A": b"1"}


@only_linux
def test_a_server_at_its_descriptor_limit_cleans_up_all_the_same(project):
    server = project.serve(b"A=" + b"x" * (2 << 20) + b"\n", preexec_fn=limits(NOFILE=(40, 40)))
    clients = []
    for _ in range(60):
        clients.append(project.connect())
        clients[-1].sendall(b'{"command":"dump"}\n')
    until(lambda: len(select.select(clients, [], [], 0)[0]) > 20, "the first answers")
    server.terminate()
    assert server.wait(PATIENCE) == 0
    assert not project.marker.exists() and not list(project.runtime.glob("*.sock"))
    for client in clients:
        client.close()


def test_an_argument_that_is_all_escapes_holds_up_nobody(project):
    project.serve()
    with project.connect() as client:
        client.sendall(b'{"command":"run","args":["' + b"\xc2\x80" * 4_000_000 + b'"]}\n')
        began = time.monotonic()
        assert project.ask().startswith(b'{"env"')
        assert time.monotonic() - began < 2
        answer(client)
    assert all(len(line) < 5 * hotenv.MAX_LOG_LINE for line in project.log_lines())


def test_a_signal_with_a_handler_of_somebody_elses_does_not_end_the_session(project):
    server = project.serve(patch="import signal; signal.signal(signal.SIGUSR1, lambda *_: None)")
    server.send_signal(signal.SIGUSR1)
    assert project.run("true").returncode == 0 and server.poll() is None


# ==== client ==========================================================================================================
# Which session is asked, and what may be wrong with what answers.


def test_which_session_is_asked(project, session, answerer):
    other = answerer(b'{"env":{"A":"other"}}\n')
    project.serve(b"A=marker\n")
    by_option, by_variable = ["--socket", other.path], {"HOTENV_SOCKET": other.path}
    assert project.dump() == {b"A": b"marker"}
    assert project.dump(env={"HOTENV_SOCKET": ""}) == {b"A": b"marker"}
    assert project.dump(env=by_variable) == {b"A": b"other"}
    assert project.dump(*by_option) == {b"A": b"other"}
    assert project.dump("--socket", session.socket_path(), env=by_variable)[b"A"] == b"1"
    assert project.run("sh", "-c", "echo $A", env=by_variable).stdout == b"other\n"
    done = project.hotenv("run", *by_option, "--", "sh", "-c", "echo $A")
    assert done.stdout == b"other\n"
    refusal(project.hotenv("serve", env=by_variable), 10)  # serve ignores both


def test_no_session_and_how_to_start_one(project):
    for command in (["run", "--", "true"], ["dump"], ["run", "--only", "A", "--", "true"]):
        message = refusal(project.hotenv(*command), 3)
        assert "serve < " in message and ".hotenv" in message


def test_a_current_directory_that_is_gone_is_a_system_error(project):
    gone = project.root / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", str(gone),
                           *project.command(["run", "--", "true"])],
                          env=project.env, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert "directory" in refusal(done, 8)


@pytest.mark.parametrize("make", ["refused", "missing", "file", "datagram", "directory", "loop", "too long"])
def test_whatever_keeps_us_from_connecting_is_4(project, make):
    path = project.root / "x.sock"
    if make in ("refused", "datagram"):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if make == "datagram" else socket.SOCK_STREAM)
        made.bind(str(path))
    elif make == "file":
        path.write_bytes(b"")
    elif make == "directory":
        path.mkdir()
    elif make == "loop":
        path.symlink_to(path)
    elif make == "too long":
        path = Path("/" + "x" * 300)
    project.marker.write_bytes(b"socket=" + os.fsencode(str(path)) + b"\n")
    for command in (["run", "--", "true"], ["dump"]):
        message = refusal(project.hotenv(*command), 4)
        assert str(path) in message and "serve < " in message


ANSWERS = [
    (b"", 9), (b"\n", 9), (b"{}\n", 9), (b"[]\n", 9), (b"null\n", 9), (b'"env"\n', 9), (b"x", 9),
    (b'{"env":{"A":"1"}}', 9),
    (b'{"env":{"A":"1"}}\n{"env":{}}\n', 9), (b'{"env":{"A":"1"}}\n\n', 9), (b'\n{"env":{"A":"1"}}\n', 9),
    (b'{"env":{"A":"1"}} x\n', 9), (b'{"env":["A=1"]}\n', 9), (b'{"env":null}\n', 9), (b'{"env":"A=1"}\n', 9),
    (b'{"env":{"A":1}}\n', 9), (b'{"env":{"A":null}}\n', 9), (b'{"env":{"A":["1"]}}\n', 9), (b'{"env":{"":"1"}}\n', 9),
    (b'{"env":{"A=B":"1"}}\n', 9), (b'{"env":{"A":"\\u0000"}}\n', 9), (b'{"env":{"A\\u0000":"1"}}\n', 9),
    (b'{"env":{"A":"\\ud800"}}\n', 9), (b'{"env":{"\xff":"1"}}\n', 9), (b'{"env":{"A":"un', 9),
    (b'{"env":{"A":"un\n', 9),
    (b'{"env":{"A":"a\tb"}}\n', 9), (b'{"env":{"A":"\\x"}}\n', 9), (b"[" * 100000 + b"\n", 9),
    (b'{"a":' * 100000 + b"\n", 9),
    (b'{"env":' + b"1" * 1000000 + b"}\n", 9), (b'{"env":{"A":NaN}}\n', 9), (b'{"env":{},"x":Infinity}\n', 9),
    (b'{"error":"BAD_REQUEST","message":"why"}\n', 9), (b'{"error":"INTERNAL"}\n', 9),
    (b'{"error":1,"message":[]}\n', 9),
    (b'{"error":"BAD_REQUEST","env":{"A":"1"}}\n', 9), (b'\xef\xbb\xbf{"env":{}}\n', 9),
    (b'{"env":{"A":"1"}}\n', 0), (b'{"env":{},"more":[1.5e9]}\n', 0), (b' {"env" : {} }\r\n', 0),
    (b'{"env":{"A":"\\udcff"}}\n', 0),
    (b'{"env":{"A":"\xc3\xa9"}}\n', 0), (b'{"env":{"with blank":"1","a\\nb":""}}\n', 0),
    (b'{"env":{"A":"1","A":"2"}}\n', 0), (b'{"n":' + b"1" * 1000000 + b',"env":{}}\n', 0),
]


@pytest.mark.parametrize("response, code", ANSWERS, ids=short)
def test_an_answer_is_one_line_with_an_environment(answerer, response, code):
    path = answerer(response).path
    if not code:
        assert isinstance(hotenv.fetch(socket_path=path), dict)
        return
    with pytest.raises(hotenv.HotenvError) as refused:
        hotenv.fetch(socket_path=path)
    assert refused.value.code == code and str(refused.value).isprintable()
    assert refused.value.__cause__ is None and (refused.value.__context__ is None or refused.value.__suppress_context__)


@pytest.mark.parametrize("response",
                         [b"", b'{"env":{"A":"un\n', b'{"env":{"A":"un\\x"}}\n', b'{"env":{"A\tB":"1"}}\n'], ids=short)
def test_a_damaged_answer_is_9_for_run_and_dump(project, answerer, response):
    """In a process that never imported json, whose C half then reports errors in another way."""
    path = answerer(response).path
    refusal(project.hotenv("dump", env={"HOTENV_SOCKET": path}), 9)
    refusal(project.run("true", env={"HOTENV_SOCKET": path}), 9)


def test_the_message_of_a_server_is_shown_and_escaped(project, answerer):  # invariant 10
    path = answerer(b'{"error":"BAD_REQUEST","message":"\\u001b[2Jno\\n\\u202e ' + b"x" * 100000 + b'"}\n').path
    message = refusal(project.hotenv("dump", env={"HOTENV_SOCKET": path}), 9)
    assert r"BAD_REQUEST: \x1b[2Jno\n\u202e xxx" in message and len(message) < 2000


def test_nothing_of_a_bad_answer_is_shown(project, answerer):  # invariant 1
    for response in (b'{"env":{"A":"s3cr3t"\n', b'{"env":{"A":"s3cr3t\\u0000"}}\n', b's3cr3t\n',
                     b'{"env":{"A":["s3cr3t"]}}\n'):
        done = project.hotenv("dump", env={"HOTENV_SOCKET": answerer(response).path})
        assert b"s3cr3t" not in done.stderr + done.stdout and refusal(done, 9)


def test_an_answer_too_long_is_refused(answerer, monkeypatch):
    monkeypatch.setattr(hotenv, "MAX_RESPONSE", 1000)
    with pytest.raises(hotenv.HotenvError) as refused:
        hotenv.fetch(socket_path=answerer(b'{"env":{"A":"' + b"x" * 1000 + b'"}}\n').path)
    assert refused.value.code == 9 and "long" in str(refused.value)
    assert hotenv.fetch(socket_path=answerer(b'{"env":{"A":"' + b"x" * 900 + b'"}}\n').path)


@pytest.mark.parametrize("way", ["silence", "drip"])
def test_an_exchange_has_one_deadline_for_all_of_it(project, way):
    """A server that sends a byte now and then does not get more time with each of them."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(project.root / "slow.sock"))
    listener.listen(1)
    client = project.start("dump", "--socket", str(project.root / "slow.sock"), patch="hotenv.EXCHANGE_TIME = 0.4",
                           stderr=subprocess.PIPE)
    accepted, _ = listener.accept()
    began = time.monotonic()

    def ended():
        if way == "drip":
            try:
                accepted.send(b" ")
            except OSError:
                pass
        return client.poll() is not None

    until(ended, "the end of the client's patience")
    assert time.monotonic() - began < 5
    message = client.stderr.read().decode()
    assert client.returncode == 4 and "no answer in time" in message and message.count("\n") == 1
    accepted.close()
    listener.close()


def test_fetch_is_for_programs_too(session, monkeypatch):
    monkeypatch.chdir(str(session.dir))
    monkeypatch.delenv("HOTENV_SOCKET", raising=False)
    expected = {"A": "1", "B": "two words", "EMPTY": ""}
    assert hotenv.fetch() == expected
    assert hotenv.fetch("run", ["a", "b"], session.socket_path()) == expected
    assert session.log().endswith(b" run a b\n")


# ==== launch ==========================================================================================================
# What a command sees of hotenv: nothing but its variables.


def test_run_is_the_same_process(session):  # invariant 8
    process = session.start("run", "--", "sh", "-c", "echo $$", stdout=subprocess.PIPE)
    assert process.communicate(timeout=PATIENCE)[0] == b"%d\n" % process.pid


@pytest.mark.parametrize("status", [0, 1, 2, 3, 9, 127, 255])
def test_the_exit_status_is_the_commands(session, status):
    done = session.run("sh", "-c", "exit %d" % status)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGPIPE])
def test_death_by_a_signal_is_the_commands(session, number):
    assert session.run("sh", "-c", "ulimit -c 0; kill -%d $$" % number).returncode == -number


def test_signals_are_as_the_caller_had_them(session):  # invariant 8
    """Python ignores SIGPIPE and SIGXFSZ and handles SIGINT; a command inherits nothing of that."""
    assert session.run("sh", "-c", "yes | head -1").stderr == b""

    def ask(**options):
        program = [sys.executable, "-I", "-S", "-c",
                   "import _signal\nprint([int(_signal.getsignal(n) == _signal.SIG_IGN)"
                   " for n in (_signal.SIGHUP, _signal.SIGQUIT)])"]
        return session.run(*program, **options).stdout

    assert ask() == b"[0, 0]\n"
    ignore_both = (lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGHUP, signal.SIGQUIT)])
    assert ask(preexec_fn=ignore_both) == b"[1, 1]\n"
    if LINUX:
        status = session.run("cat", "/proc/self/status").stdout.decode()
        assert re.search(r"SigIgn:\s0+\n", status) and re.search(r"SigBlk:\s0+\n", status)
        assert re.search(r"SigCgt:\s0+\n", status)


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}  # a locale without any other character


def test_arguments_arrive_to_the_byte(session):
    args = [b"", b" ", b"two words", b"new\nline", b"\xff\xfe", "\u00e9\u20ac".encode(), b"--", b"-x", b"$HOME", b"*",
            b"'", b'"', b"\\"]
    for locale in ({}, {"LC_ALL": "C"}, ASCII, {"LC_ALL": "POSIX"}):
        done = session.run("printf", "%s\\0", *args, env=locale)
        assert done.stdout == b"".join(arg + b"\0" for arg in args) and done.stderr == b""


@pytest.fixture(scope="module")
def latin_1(tmp_path_factory):
    """A Latin-1 locale, made for the occasion."""
    if not shutil.which("localedef"):
        pytest.skip("needs localedef")
    where = tmp_path_factory.mktemp("locale") / "xx_XX.ISO-8859-1"
    subprocess.run(["localedef", "-c", "-i", "POSIX", "-f", "ISO-8859-1", str(where)], timeout=PATIENCE,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    env = {"LOCPATH": str(where.parent), "LC_ALL": "xx_XX.ISO-8859-1", "PYTHONUTF8": "0"}
    probe = "import sys; print(sys.getfilesystemencoding())"
    found = subprocess.run([sys.executable, "-c", probe], env=env, stdout=subprocess.PIPE, timeout=PATIENCE).stdout
    if b"8859" not in found:
        pytest.skip("cannot make a Latin-1 locale here")
    return env


@pytest.mark.parametrize("locale", ["latin-1", "ascii"])
def test_a_locale_changes_no_byte(project, request, locale):
    strange = ASCII if locale == "ascii" else request.getfixturevalue("latin_1")
    value = "\u00e9\u20ac\U0001f511".encode()
    project.serve(b"A=%s\n" % value, "--verbose", env=strange)
    assert project.ask() == b'{"env":{"A":"\\u00e9\\u20ac\\ud83d\\udd11"}}\n'
    for env in ({}, strange):
        assert project.dump(env=env) == {b"A": value}
        assert project.hotenv("dump", env=env).stdout == b"A=" + value + b"\n"
        done = project.run("sh", "-c", 'printf "%s %s" "$A" "$1"', "sh", "\u00e9".encode(), env=env)
        assert (done.stdout, done.stderr) == (value + b" " + "\u00e9".encode(), b"")
        assert project.log().decode("utf-8").endswith("sh \u00e9\n")


@pytest.mark.parametrize("extra", [
    {}, {"LC_CTYPE": "C.UTF-8"}, {"LC_CTYPE": "C"}, {"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": ""},
    {"PYTHONUTF8": "1"}, {"PYTHONCOERCECLOCALE": "0"}, {"EMPTY": ""}, {"A": "mine"},
], ids=str)
def test_a_command_sees_its_parents_environment_and_the_snapshot(session, extra):  # invariant 8
    done = subprocess.run(session.command(["run", "--", "/usr/bin/env", "-0"]), env=extra, cwd=str(session.dir),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    seen = dict(pair.split(b"=", 1) for pair in done.stdout.split(b"\0") if pair)
    assert done.stderr == b"" and done.returncode == 0
    if sys.platform == "darwin":
        seen.pop(b"__CF_USER_TEXT_ENCODING", None)
    mine = {os.fsencode(name): os.fsencode(value) for name, value in extra.items()}
    assert seen == {**mine, b"A": b"1", b"B": b"two words", b"EMPTY": b""}


def test_odd_bytes_in_the_callers_environment_stay(session):
    env = {b"ODD": b"\xff\xfe", b"O\xffD": b"1", b"PATH": b"/usr/bin:/bin", b"X": b"a\nb=c"}
    done = subprocess.run(session.command(["run", "--", "env", "-0"]), env=env, cwd=str(session.dir),
                          stdout=subprocess.PIPE, timeout=PATIENCE)
    assert set(b"%s=%s" % pair for pair in env.items()) < set(done.stdout.split(b"\0"))


def test_odd_bytes_of_the_servers_environment_arrive_by_reference(project):
    project.serve(b"A=<${ODD}>\n", env={"ODD": os.fsdecode(b"\xff\xc3\xa9")})
    assert project.dump() == {b"A": b"<\xff\xc3\xa9>"}
    assert project.run("sh", "-c", 'printf %s "$A"').stdout == b"<\xff\xc3\xa9>"


def script(path, text, mode=0o755):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


def test_a_script_without_a_shebang_is_the_shells(project, session):
    script(project.dir / "bin" / "plain", b'echo "$A:$0:$1:$2"\n')
    project.env["PATH"] += ":" + str(project.dir / "bin")
    env = {"HOTENV_SOCKET": session.socket_path()}
    expected = b"1:%s:a b:\n" % os.fsencode(str(project.dir / "bin" / "plain"))
    assert project.run("plain", "a b", "", env=env).stdout == expected
    assert project.run(str(project.dir / "bin" / "plain"), "a b", env=env).stdout == expected
    assert project.run("./plain", "a b", env=env, cwd=str(project.dir / "bin")).stdout == b"1:./plain:a b:\n"


def test_the_command_is_looked_up_on_the_new_path(project):
    script(project.dir / "new" / "tool", b"#!/bin/sh\necho new\n")
    script(project.dir / "old" / "tool", b"#!/bin/sh\necho old\n")
    script(project.dir / "no" / "tool", b"#!/bin/sh\necho not executable\n", 0o644)
    (project.dir / "dir" / "tool").mkdir(parents=True)
    project.serve("PATH={0}/dir:/nowhere:/etc/passwd:{0}/no:{0}/new:/bin:/usr/bin\n".format(project.dir).encode())
    assert project.run("tool", env={"PATH": str(project.dir / "old")}).stdout == b"new\n"
    refusal(project.run(str(project.dir / "no" / "tool")), 8)


def test_an_empty_part_of_path_is_the_current_directory(project, session):
    script(project.dir / "tool", b"#!/bin/sh\necho here\n")
    env = {"HOTENV_SOCKET": session.socket_path(), "PATH": "/nowhere:"}
    assert project.run("tool", env=env).stdout == b"here\n"


@pytest.mark.parametrize("command, reason", [
    (["no-such-command-anywhere"], "not found"), (["./missing"], "No such file"), (["/etc/passwd"], "ermission denied"),
    (["/"], ""), ([""], ""), (["/etc/passwd/x"], "ot a directory"), (["\x1b[31m\n"], r"\x1b[31m\n"), (["x" * 5000], ""),
], ids=short)
def test_what_cannot_be_run_is_8_with_the_reason(session, command, reason):
    message = refusal(session.run(*command), 8)
    assert reason in message and message.startswith("cannot run ")


def test_a_broken_interpreter_line_is_8(project, session):
    broken = script(project.dir / "broken", b"#!/no/such/interpreter\n")
    refusal(project.run(broken, env={"HOTENV_SOCKET": session.socket_path()}), 8)


@only_linux
@pytest.mark.parametrize("inherited", [False, True])
def test_an_environment_too_large_names_the_largest_variable(project, inherited):  # invariant 1
    size = 140000  # beyond what Linux takes for one string
    value = b"s3cr3t" + b"x" * size
    project.serve(b"SMALL=1\nHUGE_ONE=%s\n" % value)
    done = project.run("true", env={"OTHER": "y" * (100 if not inherited else 131000)})
    message = refusal(done, 8)
    assert "HUGE_ONE" in message and str(len(value)) in message and "s3cr3t" not in message


def test_open_descriptors_go_to_the_command_and_none_of_ours(session):
    reader, writer = os.pipe()
    list_them = "import os; print(sorted(int(n) for n in os.listdir('/dev/fd') if os.path.exists('/dev/fd/' + n)))"
    program = [sys.executable, "-I", "-S", "-c", list_them]
    plain = subprocess.run(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[writer],
                           timeout=PATIENCE)
    through = session.run(*program, pass_fds=[writer])
    assert through.stdout == plain.stdout and writer in json.loads(plain.stdout.decode())
    os.close(reader)
    os.close(writer)


def test_standard_input_is_the_commands(session):
    assert session.run("cat", input=b"all of it\n").stdout == b"all of it\n"


def test_the_terminal_is_the_commands(session):  # invariant 8
    script = "test -t 0 && test -t 1 && test -t 2; echo on=$?; read line; echo got $line"
    command = session.command(["run", "--", "sh", "-c", script])
    with on_terminal(*command, cwd=session.dir, env=session.env) as (pid, terminal):
        assert b"on=0" in read_until(terminal, b"on=0")
        os.write(terminal, b"typed\n")
        assert b"got typed" in read_until(terminal, b"got typed\r\n")
        assert os.waitpid(pid, 0)[1] == 0


def test_ctrl_c_is_the_commands(session):
    script = "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    command = session.command(["run", "--", "sh", "-c", script])
    with on_terminal(*command, cwd=session.dir, env=session.env) as (pid, terminal):
        read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        assert b"caught" in read_until(terminal, b"caught")
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 7


def test_optional_runs_without_a_session_and_says_so(project):
    done = project.hotenv("run", "--optional", "--", "sh", "-c", "echo $A; exit 5", env={"A": "mine"})
    assert done.returncode == 5 and done.stdout == b"mine\n"
    assert done.stderr.startswith(b"hotenv: ") and done.stderr.count(b"\n") == 1
    project.marker.write_bytes(b"socket=/nowhere.sock\n")
    assert project.hotenv("run", "--optional", "--", "echo", "ran").stdout == b"ran\n"  # 4
    project.marker.write_bytes(b"damaged")
    refusal(project.hotenv("run", "--optional", "--", "echo", "ran"), 9)
    project.marker.unlink()
    project.serve()
    done = project.hotenv("run", "--optional", "--", "sh", "-c", "echo $A", env={"A": "mine"})
    assert (done.stdout, done.stderr) == (b"1\n", b"")


def test_the_order_of_an_environment(session):
    """Host or allowlist, snapshot, --define, --bin."""
    host = {"A": "host", "B": "host", "H": "host", "HOME": "/h"}
    show = ["--", "sh", "-c", 'echo "$A|$B|$C|$H|$HOME|$PATH"']
    path = session.env["PATH"].encode()

    def seen(*options):
        return session.hotenv("run", *options, *show, env=host).stdout[:-1]

    assert seen() == b"1|two words||host|/h|" + path
    assert seen("--define", "A=mine", "--define", "C=a=b") == b"mine|two words|a=b|host|/h|" + path
    assert seen("--bin", "/x", "--bin", "/y") == b"1|two words||host|/h|/x:/y:" + path
    assert seen("--isolated") == b"1|two words|||/h|" + path
    assert seen("--isolated", "--pass", "H", "--define", "HOME=/d") == b"1|two words||host|/d|" + path
    assert seen("--only", "B") == b"host|two words||host|/h|" + path
    assert seen("--only", "A*,B") == b"1|two words||host|/h|" + path


# ---- no value on a command line


def command_lines():
    """Every command line on this machine, by process id."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found[int(entry)] = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                pass
    return found


def seen_in_command_lines(value, process):
    """How often `value` was on a command line until `process` says a line; and that line."""
    seen = 0
    give_up = time.monotonic() + PATIENCE
    while True:
        said = select.select([process.stdout], [], [], 0)[0]
        lines = command_lines()
        assert process.pid in lines  # we can see it
        seen += sum(value in line for line in lines.values())
        if said or time.monotonic() > give_up:
            return seen, process.stdout.readline()


@pytest.fixture(scope="module")
def one_value():
    """A session with one value that is found nowhere else, started in the background."""
    shared = Project()
    shared.value = b"v4lue" + os.urandom(12).hex().encode()
    assert shared.hotenv("serve", "--background", "--timeout", "1h",
                         input=b"SECRET=" + shared.value + b"\n").returncode == 0
    yield shared
    shared.close()


@only_linux
@pytest.mark.parametrize("options", [
    [], ["--isolated"], ["--only", "SECRET"], ["--only", "S*", "--isolated"],
    ["--define", "OTHER=1", "--bin", "/nowhere"],
    ["--optional"], ["--mask"],
], ids=" ".join)
def test_no_value_is_on_a_command_line_while_a_command_runs(one_value, options):  # invariant 1
    # The child, and a grandchild that has the value in its environment, while both run.
    script = 'sh -c "read x" <&0 & echo "${#SECRET}"; read x; wait'
    running = one_value.start("run", *options, "--", "sh", "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    seen, said = seen_in_command_lines(one_value.value, running)
    assert said == b"%d\n" % len(one_value.value)  # the value did arrive
    running.stdin.close()
    assert running.wait(PATIENCE) == 0 and seen == 0


@only_linux
@pytest.mark.parametrize("options", [["--background"], ["--verbose"]], ids=" ".join)
def test_no_value_is_on_a_command_line_while_a_session_starts_and_serves(project, options):  # invariant 1
    value = b"v4lue" + os.urandom(12).hex().encode()
    server = project.start("serve", *options, stdin=subprocess.PIPE)
    server.stdin.write(b"SECRET=" + value + b"\n")
    server.stdin.close()

    def ready():
        assert not any(value in line for line in command_lines().values())
        return project.marker.exists()

    until(ready, "a marker")
    assert value in project.ask()
    assert not any(value in line for line in command_lines().values())


@only_linux
def test_no_typed_value_is_on_a_command_line(project, prompting):  # invariant 1
    value = b"v4lue" + os.urandom(12).hex().encode()
    asking = prompting("--background")
    asking.seen(b"First: ")
    asking.type(value + b"\n")
    assert asking.ended() == 0 and value in project.ask()
    assert not any(value in line for line in command_lines().values())


# ---- without a session


@pytest.mark.parametrize("state", ["none", "dead", "live", "damaged", "a stranger's"])
def test_optional_runs_the_command_as_it_is_where_there_is_no_session(project, state):
    if state in ("dead", "live"):
        server = project.serve(b"A=session\n")
        if state == "dead":
            server.kill()
            server.wait()
    elif state == "damaged":
        project.marker.write_bytes(b"x\n")
    elif state != "none":
        if not ROOT:
            pytest.skip("needs root, to become somebody else")
        project.marker.write_bytes(b"socket=/x\n")
        os.chown(str(project.marker), 4242, 4242)
    done = project.hotenv("run", "--optional", "--define", "B=2", "--", "sh", "-c", "echo $A $B; exit 5",
                          env={"A": "host"})
    if state == "live":
        assert (done.returncode, done.stdout, done.stderr) == (5, b"session 2\n", b"")
    elif state in ("none", "dead"):
        assert (done.returncode, done.stdout) == (5, b"host 2\n")
        assert done.stderr.startswith(b"hotenv: ") and done.stderr.count(b"\n") == 1
    else:
        assert refusal(done, 9 if state == "damaged" else 8) and done.stdout == b""


def test_a_run_that_cannot_start_says_8_also_to_a_stderr_that_nobody_reads(project):
    project.serve()
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert project.run("/nonexistent", stderr=writer).returncode == 8
    finally:
        os.close(writer)


def test_only_is_checked_in_an_empty_session_too(project):
    project.serve(b"")
    done = project.hotenv("run", "--only", "API_KEY", "--", "true")
    assert "API_KEY" in refusal(done, 2)


@pytest.mark.parametrize("words", [["--only", "A,B"], ["--only", "A", "--only", "B"], ["--only", " A , B"]], ids=short)
def test_only_takes_names_with_commas_and_again(project, words):
    project.serve(b"A=1\nAB=2\nB=3\n")
    assert project.dump(*words) == {b"A": b"1", b"B": b"3"}


@pytest.mark.parametrize("words, said", [
    (["run", "./deploy.sh"], "run -- COMMAND"), (["run"], "run -- COMMAND"), (["hermetic", "x.py"], "-- TARGET"),
    (["serve", "secrets.env"], "serve < secrets.env"), (["serve", "--tiemout", "5m"], "serve --help"),
    (["run", "--trace", "--", "true"], "no guard is on"),
], ids=short)
def test_a_usual_slip_is_answered_with_what_was_meant(project, words, said):
    done = project.hotenv(*words)
    assert said in refusal(done, 1 if words[0] == "hermetic" else 2)


# ==== folds ===========================================================================================================
# Rooms that the file holds as text until one is entered.

FOLDS = sorted(hotenv._folds)


def top_level_names(source):
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return found


def test_no_two_rooms_share_a_name():
    names = top_level_names(HOTENV.read_text())
    for room in FOLDS:
        names += top_level_names(hotenv._folds[room][1])
    assert {name for name in names if names.count(name) > 1} <= {"_json_quote", "_json_scanner"}  # the fallback's


def test_a_room_calls_only_rooms_above_it():
    """As the head of the file says; a room is what stands below a banner, with its folds."""
    text = HOTENV.read_text()
    banners = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith("# ====")]
    defined, used = {}, []

    def look(source, above):
        for node in ast.parse(source).body:
            room = sum(banner < node.lineno + above for banner in banners)
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            mine = {each.id for each in targets if isinstance(each, ast.Name)} | {getattr(node, "name", "")}
            defined.update(dict.fromkeys(mine & set(vars(hotenv)), room))
            local = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
            local |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)
                      and isinstance(each.ctx, ast.Store)}
            used.append((room, sorted(mine)[-1], names - local - mine))

    look(text, 0)
    for line, source in hotenv._folds.values():
        look(source, line - 1)
    assert len(defined) > 300
    assert [(name, other) for room, name, names in used for other in names if defined.get(other, room) > room] == []


def codes_of(things):
    """The code of these functions, and of the methods of these classes."""
    for thing in things:
        if inspect.isfunction(thing):
            yield thing.__code__
        elif inspect.isclass(thing) and thing.__module__ == hotenv.__name__:
            yield from codes_of(vars(thing).values())


@pytest.mark.parametrize("room", FOLDS)
def test_a_fold_has_the_line_numbers_of_the_file(room):
    line, source = hotenv._folds[room]
    lines = HOTENV.read_text().split("\n")
    for offset, text in enumerate(source.split("\n")[1:-1]):
        assert lines[line + offset] == text
    defined = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    known = {code.co_firstlineno for code in codes_of(vars(hotenv).values())}
    assert any(line + node.lineno - 1 in known and lines[line + node.lineno - 2].lstrip().startswith("def " + node.name)
               for node in defined)


@pytest.mark.parametrize("call", [
    "parse_dotenv('A=1\\nB=${A}2\\n')['B'] == '12'", "parse_dotenv('A=1\\n') == {'A': '1'}",
    "resolve_env({'A': 'x', 'B': '${A}y'}, {}) == {'A': 'x', 'B': 'xy'}",
    "build_isolated_env({'HOME': '/', 'X': '1'}, define={'CI': '1'}) == {'HOME': '/', 'CI': '1'}",
    "Redactor({'A': 's3cr3t-1'})('s3cr3t-1') == '[hidden:A]'", "ShellSession().exec('echo 1').stdout == '1\\n'",
])
def test_what_is_public_works_first_thing(call):
    """In a process that has entered no fold before."""
    done = subprocess.run([sys.executable, "-c", f"import hotenv; print(hotenv.{call})"], cwd=str(HERE),
                          stdout=subprocess.PIPE, timeout=PATIENCE)
    assert done.stdout == b"True\n"


@pytest.mark.parametrize("name", sorted(hotenv._PUBLIC))
def test_public_names_in_folds_are_there_when_they_are_asked_for(name):
    code = f"import hotenv; print(hotenv.{name}.__name__, bool(hotenv.{name}.__doc__))"
    done = subprocess.run([sys.executable, "-c", code], cwd=str(HERE), stdout=subprocess.PIPE, timeout=PATIENCE)
    assert done.stdout.decode().split() == [name, "True"]


def test_what_is_run_every_day_enters_no_fold(project):
    ordinary = b"# a comment\nA=1\nexport B='x y' # another\n\n"
    end = "import atexit, os; atexit.register(lambda: os.write(2, repr(sorted(hotenv._entered)).encode()))"
    server = project.serve(ordinary, patch=end)
    server.terminate()
    assert server.wait(PATIENCE) == 0 and project.log() == b"[]"
    project.serve(b"A=1\n")
    code = ("import hotenv, os, sys; hotenv._exec = lambda *_: print(sorted(hotenv._entered), flush=True); "
            "hotenv.main(['run', '--', 'true']); hotenv.main(['dump']); print(sorted(hotenv._entered))")
    done = subprocess.run([sys.executable, "-c", code], cwd=str(project.dir), stdout=subprocess.PIPE, timeout=PATIENCE,
                          env={**project.env, "PYTHONPATH": str(HERE)})
    assert done.stdout.decode().split("\n")[:3] == ["[]", "A=1", "[]"]


def test_threads_may_ask_for_a_fold_at_once():
    code = ("import hotenv, sys, threading\nsys.setswitchinterval(1e-6)\nfailed = []\n"
            "def ask():\n    try: hotenv.Redactor({'A': '12345678'})\n"
            "    except BaseException as error: failed.append(error)\n"
            "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
            "for thread in threads: thread.start()\nfor thread in threads: thread.join()\nprint(failed)")
    done = subprocess.run([sys.executable, "-c", code], cwd=str(HERE), stdout=subprocess.PIPE, timeout=PATIENCE)
    assert done.stdout == b"[]\n"


# ==== redaction =======================================================================================================
# Values and their spellings, in a string and in a stream.


LONG_PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(
    base64.b64encode(random.Random(n).getrandbits(384).to_bytes(48, "big")).decode() for n in range(60)
) + "\n-----END PRIVATE KEY-----\n"

VALUES = {
    "TOKEN": TOKEN,
    "URL": "postgres://app:p%40ss/w?rd=1&x=~a'b@db.example:5432/main",
    "QUOTES": "it's \"quoted\" <b>&amp; `x` $HOME \\n!",
    "ACCENTS": "naïve-Größe-\U0001f511-key",
    "LINES": "first line's text\nsecond\tline\r\nthird line: ü",
    "PADDED": "  blanks around me \n",
    "JSON": json.dumps({"type": "service_account", "key": "-----BEGIN\nabc/def+ghi==\n"}, indent=2),
    "BYTES": os.fsdecode(b"latin-1 \xe9\xff text"),
    "HEX_ODD": "what-is-31-characters-in-length",
    "CONTROL": "esc\x1b[1m bell\x07 del\x7f nul-less",
    "PEM": LONG_PEM,
}


def raw(value):
    return value.encode("utf-8", "surrogateescape")


def encoded(coder):
    return lambda value: coder(raw(value.strip())).decode()


def small_hex(text):
    return re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text)


def quoted_url(safe):
    return encoded(lambda data: urllib.parse.quote_from_bytes(data, safe).encode())


SPELLINGS = {
    "as it is": lambda v: v,
    "base64": encoded(base64.b64encode),
    "base64 without padding": encoded(lambda data: base64.b64encode(data).rstrip(b"=")),
    "base64 for URLs": encoded(base64.urlsafe_b64encode),
    "hex": encoded(lambda data: data.hex().encode()),
    "hex, capitals": encoded(lambda data: data.hex().upper().encode()),
    "quote": quoted_url("/"),
    "quote, nothing safe": quoted_url(""),
    "quote, small hex": lambda v: small_hex(quoted_url("")(v)),
    "encodeURIComponent": quoted_url("!'()*"),
    "encodeURI": quoted_url("!'()*;,/?:@&=+$#"),
    "quote_plus": lambda v: urllib.parse.quote_plus(raw(v.strip())),
    "quote_plus, small hex": lambda v: small_hex(urllib.parse.quote_plus(raw(v.strip()))),
    "JSON": lambda v: json.dumps(v)[1:-1],
    "JSON with UTF-8": lambda v: json.dumps(v, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda v: json.dumps(v).replace("/", "\\/")[1:-1],
    "JSON of Go": lambda v: json.dumps(v, ensure_ascii=False)[1:-1].replace("&", "\\u0026").replace(
        "<", "\\u003c").replace(">", "\\u003e"),
    "shlex": shlex.quote,
    "single quotes": lambda v: "'" + v.replace("'", "'\\''") + "'",
    "html.escape": html.escape,
    "html.escape, quotes kept": lambda v: html.escape(v, quote=False),
    "HTML of Jinja": lambda v: html.escape(v).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    "XML": lambda v: html.escape(v).replace("&#x27;", "&apos;"),
    "repr": repr,
    "repr, the other quote": lambda v: repr(v + "'\"")[:-4],
    "repr in a longer text": lambda v: repr('"' + v),
    "ascii": ascii,
    "repr of bytes": lambda v: repr(raw(v)),
}


@pytest.fixture(scope="module")
def of_all_values():
    return hotenv.Redactor({"OTHER": "something else entirely", **VALUES})


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", VALUES)
def test_every_spelling_of_every_value_is_masked(of_all_values, spelling, name):
    value = VALUES[name]
    spelled = SPELLINGS[spelling](value)
    masked = of_all_values(f"<<{spelled}>>")
    assert masked.startswith("<<") and masked.endswith(">>")
    left = masked[2:-2].replace(f"[hidden:{name}]", "", 1)
    # Quotes and blanks around a value may stay, nothing else.
    assert left.strip("'\" \nb\\nt") == "", masked


@pytest.mark.parametrize("offset", range(3))
@pytest.mark.parametrize("name", VALUES)
def test_base64_of_a_text_that_holds_a_value_is_masked_at_each_offset(offset, name):
    value = raw(VALUES[name].strip())
    redactor = hotenv.Redactor({name: VALUES[name]})
    for coder in (base64.b64encode, base64.urlsafe_b64encode):
        for tail in (b"", b"\n", b":more text after it"):
            masked = redactor.mask(coder(b"user:"[:3 + offset] + value + tail))
            assert b"[hidden:%s]" % name.encode() in masked
            shown = masked.replace(b"[hidden:%s]" % name.encode(), b"")
            assert len(shown) <= 8 + len(coder(tail)) + 4


@pytest.mark.parametrize("command", [
    'printf %q "$V"', 'printf %s "${V@Q}"', 'set -x; : "$V"', "declare -p V", "export -p | grep -A9 ' V='", "set",
    'LC_ALL=C; printf %q "$V"', 'printf %s "$V" | base64', 'printf %s "$V" | xxd -p', 'printf %s "$V" | openssl base64',
    "env", "jq -n env", "jq -rn 'env.V|@uri,@base64,@html,@sh,@json'",
    "node -p 'JSON.stringify(process.env.V)+encodeURIComponent(process.env.V)+encodeURI(process.env.V)'",
    "node -p 'String(new URLSearchParams({v: process.env.V}))'",
])
def test_what_other_programs_make_of_a_value_is_masked(command):
    program = re.search(r"base64|xxd|openssl|jq|node|bash", command + " bash")[0]
    if not shutil.which(program) or not shutil.which("bash"):
        pytest.skip(f"no {program}, or no bash")
    for name in ("TOKEN", "URL", "QUOTES", "ACCENTS", "CONTROL", "JSON"):
        value = VALUES[name].strip()
        env = {"PATH": os.environ["PATH"], "V": value, "LC_ALL": "C.UTF-8", "HOME": "/"}
        ran = subprocess.run(["bash", "--norc", "-c", command], env=env, cwd="/", stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=30)
        if b"bad substitution" in ran.stdout:
            pytest.skip("this bash is too old for @Q")
        masked = hotenv.Redactor({name: value}).mask(ran.stdout)
        assert b"[hidden:%s]" % name.encode() in masked, ran.stdout
        pieces = [piece for piece in re.split(r"\W+", value, flags=re.ASCII) if len(piece) > 3 and piece != "HOME"]
        assert not [piece for piece in pieces if piece.encode() in masked], masked


def test_values_of_4_to_7_characters_are_masked_as_whole_words_only():
    redactor = hotenv.Redactor({"PORT": "8443", "PIN": "12-34", "SIGN": "$abc", "UMLAUT": "grün"})
    cases = {
        "8443": "[hidden:PORT]", "=8443,": "=[hidden:PORT],", "18443": "18443", "84430": "84430", "_8443": "_8443",
        "8443 8443": "[hidden:PORT] [hidden:PORT]", "\u201c8443\u201d": "\u201c[hidden:PORT]\u201d",
        "12-34": "[hidden:PIN]", "912-34": "912-34", "12-34-": "[hidden:PIN]-",
        "x$abc": "x[hidden:SIGN]", "$abcd": "$abcd", "grün": "[hidden:UMLAUT]", "grüner": "grüner",
        base64.b64encode(b"8443").decode(): "ODQ0Mw==",
    }
    assert {text: redactor(text) for text in cases} == cases
    for text, masked in cases.items():
        stream = redactor.stream()
        assert b"".join(stream.feed(bytes((byte,))) for byte in raw(text)) + stream.flush() == raw(masked)


def test_values_that_are_too_short_are_reported_and_empty_ones_are_no_value():
    redactor = hotenv.Redactor({"A": "abc", "B": "", "C": "  x  ", "D": "   \n\n      ", "E": "abcd"})
    assert redactor.unmaskable == ["A", "C"]
    assert redactor("abc x abcd         ") == "abc x [hidden:E]         "


def test_a_name_in_skip_is_left_alone():
    redactor = hotenv.Redactor({"APP_ENV": "production", "TOKEN": TOKEN}, skip=["APP_ENV"])
    assert redactor("production " + TOKEN) == "production [hidden:TOKEN]"


def test_without_values_everything_comes_through_at_once():
    redactor = hotenv.Redactor({})
    assert (redactor("any text"), redactor.longest, redactor.stream().feed(b"any")) == ("any text", 0, b"any")


@pytest.mark.parametrize("env, text, masked", [
    ({"A": "abcdefgh", "B": "abcdefghijkl"}, "abcdefghijkl abcdefghij", "[hidden:B] [hidden:A]ij"),
    ({"A": "abcdefgh", "B": "efghijkl"}, "-abcdefghijkl-", "-[hidden:A][hidden:B]-"),
    ({"A": "abcdefghijkl", "B": "cdefghij"}, "-abcdefghijkl-cdefghij", "-[hidden:A]-[hidden:B]"),
    ({"A": "aaaaaaaa"}, "aaaaaaa " + "a" * 13, "aaaaaaa [hidden:A]"),
    ({"A": "abababab"}, "xabababababy", "x[hidden:A]y"),
    ({"A": "abcdefgh", "B": "abcdefgh"}, "abcdefgh", "[hidden:A]"),
    ({"A": "abcdefgh"}, "abcdefghabcdefgh.abcdefgh", "[hidden:A].[hidden:A]"),
    ({"A": "8443", "B": "host-8443-name"}, "host-8443-name host-8443", "[hidden:B] host-[hidden:A]"),
    ({"A": "abcdabce-rest"}, "abcdabcdabce-rest", "abcd[hidden:A]"),
])
def test_values_that_overlap_are_all_masked_and_the_longest_is_named(env, text, masked):
    redactor = hotenv.Redactor(env)
    assert redactor(text) == masked
    for cut in range(len(text)):
        stream = redactor.stream()
        assert stream.feed(raw(text[:cut])) + stream.feed(raw(text[cut:])) + stream.flush() == raw(masked)


def test_several_lines_are_masked_as_a_whole_and_each_line_of_8_or_more():
    redactor = hotenv.Redactor({"KEY": LONG_PEM, "SHORT": "aaa\nbbb\nccc"})
    lines = LONG_PEM.splitlines()
    assert redactor(f"[{LONG_PEM}]") == "[[hidden:KEY]\n]"
    assert redactor("\r\n".join("    " + line for line in lines)) == "\r\n".join(["    [hidden:KEY]"] * len(lines))
    assert redactor(json.dumps({"key": LONG_PEM})) == '{"key": "[hidden:KEY]\\n"}'
    assert redactor("aaa\nbbb\nccc, aaa\nbbb") == "[hidden:SHORT], aaa\nbbb"


@pytest.mark.parametrize("size", [1023, 1024, 1025, 4096, 65536, 100_000])
def test_large_values_are_masked_whole_and_hold_back_no_more_than_longest(size):
    value = random.Random(SEED).getrandbits(4 * size).to_bytes(size // 2 + 1, "big").hex()[:size]
    redactor = hotenv.Redactor({"BIG": value})
    assert redactor.longest <= 2048
    assert redactor(f"({value})") == "([hidden:BIG])"
    assert redactor(base64.b64encode(b"xy" + raw(value)).decode()).count("[hidden:BIG]") == 1
    stream, text, out = redactor.stream(), raw(f"({value})"), b""
    for start in range(0, len(text), 700):
        out += stream.feed(text[start:start + 700])
        assert len(stream._data) <= redactor.longest + 1
    assert out + stream.flush() == b"([hidden:BIG])"


def test_text_that_is_no_unicode_is_masked_around():
    redactor = hotenv.Redactor({"A": "abcdefgh"})
    assert redactor("\ud800abcdefgh\udfff \udce9abcdefgh") == "\ud800[hidden:A]\udfff \udce9[hidden:A]"


def places_by_trying(redactor, data):
    """All places of all forms, found the slow way."""
    word = hotenv._WORD_BYTES
    for forms in (zip(redactor._forms, redactor._names), redactor._words.items()):
        for form, name in forms:
            start = data.find(form)
            while start >= 0:
                end = start + len(form)
                split = [at for at in (start, end) if 0 < at < len(data) and data[at - 1] in word and data[at] in word]
                if not (form in redactor._words and split):
                    yield start, -end, name
                start = data.find(form, start + 1)


def masked_by_trying(redactor, data):
    first, out, done, shown = {}, [], 0, ""
    for place in sorted(places_by_trying(redactor, data)):
        first.setdefault(place[0], place)
    for start, end, name in sorted(first.values()):
        if start > done:
            out.append(data[done:start])
            done, shown = start, ""
        if -end > done:
            out.append(b"[hidden:%s]" % name.encode() if name != shown else b"")
            done, shown = -end, name
    return b"".join(out) + data[done:]


def may_go_on(redactor, data):
    """How many bytes at the end of `data` may be the beginning of a form."""
    for length in range(min(len(data), redactor.longest), 0, -1):
        rest, before = data[-length:], data[-length - 1:-length]
        if any(len(form) > length and form.startswith(rest) for form in redactor._forms):
            return length
        inside = before and before[0] in hotenv._WORD_BYTES and rest[0] in hotenv._WORD_BYTES
        if not inside and any(word.startswith(rest) for word in redactor._words):
            return length
    return 0


def hostile_text(rnd, redactor, letters):
    forms = redactor._forms + list(redactor._words) or [b"-"]
    pieces = []
    for _ in range(rnd.randrange(1, 12)):
        form = rnd.choice(forms)
        start, end = sorted((rnd.randrange(len(form) + 1), rnd.randrange(len(form) + 1)))
        filling = raw("".join(rnd.choice(letters + " ") for _ in range(rnd.randrange(9))))
        pieces.append(rnd.choice((form, form[start:end], filling)))
    return b"".join(pieces)


def test_any_cut_of_a_stream_gives_what_the_whole_gives_and_holds_back_no_byte_too_many(monkeypatch):
    rnd = random.Random(SEED)
    for _ in range(amount(2500)):  # four cuts each
        letters = rnd.choice(("ab", "abc", "a'b\"\\\n", "abc é_-%"))
        monkeypatch.setattr(hotenv, "_LONGEST_FORM", rnd.choice((16, 20, 1024, 1024)))
        monkeypatch.setattr(hotenv, "_MASK_STEP", rnd.choice((9, 50, 65536)))
        redactor = hotenv.Redactor({f"N{n}": "".join(rnd.choices(letters, k=rnd.choice((3, 4, 5, 7, 8, 9, 12, 20, 40))))
                                    for n in range(rnd.randrange(1, 5))})
        data = hostile_text(rnd, redactor, letters)
        expected = masked_by_trying(redactor, data)
        assert redactor.mask(data) == expected
        for most in (1, 3, 9, 30):
            stream, out, at = redactor.stream(), b"", 0
            while at < len(data):
                step = rnd.randrange(1, most + 1)
                out += stream.feed(data[at:at + step])
                at += step
                if most == 9:
                    assert len(stream._data) - 1 == may_go_on(redactor, data[:at])
            assert out + stream.flush() == expected


def test_no_value_comes_through_in_any_of_many_random_cuts():
    rnd = random.Random(SEED)
    env = {f"V{n}": "".join(rnd.choices("abcdefABCDEF0123456789+/=$'\" ", k=rnd.randrange(4, 60))) for n in range(20)}
    env = {name: value for name, value in env.items() if len(value.strip()) >= 4}
    redactor = hotenv.Redactor(env)
    values = list(env.values())
    for _ in range(amount(10_000)):
        data = raw("".join(rnd.choice((" ", "=", "\n", "log: ")) + rnd.choice(values) + " " for _ in range(3)))
        cuts = sorted(rnd.randrange(len(data) + 1) for _ in range(rnd.randrange(6)))
        stream = redactor.stream()
        out = b"".join(stream.feed(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)])) + stream.flush()
        assert not [value for value in values if raw(value.strip()) in out]


@pytest.mark.parametrize("text", ["Password: ", "step 1 of 3...", "\r 42%", "x", "https://example.com/", "8442",
                                  "8443 ", "sk-live_", "18443 "])
def test_what_cannot_become_a_value_comes_through_at_once(text):
    stream = hotenv.Redactor({"TOKEN": VALUES["TOKEN"], "URL": VALUES["URL"], "PORT": "8443"}).stream()
    stream.feed(b"\n")
    assert stream.feed(raw(text)) == raw(text).replace(b"8443 ", b"[hidden:PORT] " if text[0] == "8" else b"8443 ")


def test_a_stream_waits_for_as_long_as_it_takes_and_lets_go_of_what_became_nothing():
    stream = hotenv.Redactor({"TOKEN": TOKEN}).stream()
    outs = [stream.feed(piece) for piece in (b"a sk-l", b"", b"ive-5", b"1H8sVq", b"0")]
    assert outs == [b"a ", b"", b"", b"", b"[hidden:TOKEN]"]
    assert [stream.feed(piece) for piece in (b"sk-live-", b"ssk-", b"live-6")] == [b"", b"sk-live-s", b"sk-live-6"]
    assert (stream.feed(b"sk-li"), stream.flush(), stream.feed(b"ve")) == (b"", b"sk-li", b"ve")


def log_text(size):
    rnd, lines = random.Random(SEED), []
    for second in range(size // 100):
        lines.append("2024-05-14T12:%02d:%02dZ INFO app[%d]: GET https://api.example.com/users/%x?page=%d 200 %d ms\n"
                     % (second // 60 % 60, second % 60, rnd.randrange(9999), rnd.getrandbits(64), rnd.randrange(90),
                        rnd.randrange(900)))
    return "".join(lines).encode()[:size]


def twenty():
    rnd = random.Random(SEED)
    made = {f"TOKEN_{n}": base64.b64encode(rnd.getrandbits(240).to_bytes(30, "big")).decode() for n in range(12)}
    return {**made, **{name: VALUES[name] for name in ("TOKEN", "URL", "JSON", "PEM", "LINES")},
            "PORT": "8443", "USER": "admin", "HOST": "https://api.internal.example"}


def rate(redactor, data, step=65536):
    """Bytes a second, the median of three runs."""
    took = []
    for _ in range(3):
        stream, begun = redactor.stream(), time.perf_counter()
        for start in range(0, len(data), step):
            stream.feed(data[start:start + step])
        stream.flush()
        took.append(time.perf_counter() - begun)
    return len(data) / statistics.median(took)


def test_masking_is_fast_enough_for_logs_and_for_text_of_first_characters():
    redactor = hotenv.Redactor(twenty())  # on a quiet machine both are above 25 MB/s
    rnd = random.Random(SEED)
    firsts = sorted({form[0] for form in redactor._forms})
    assert rate(redactor, log_text(2_000_000)) > 10e6
    assert rate(redactor, bytes(rnd.choices(firsts, k=1_000_000))) > 8e6


@pytest.mark.parametrize("value, text", [
    ("a" * 8, "a"), ("a" * 4096 + "b", "a"), ("a" * 2048 + "b" + "a" * 2048, "a"), ("ab" * 32768 + "c", "ab"),
    (LONG_PEM, LONG_PEM[:900]), ("x" * 100_000, "x" * 1000 + "y"),
], ids=range(6))
def test_hostile_text_costs_no_more_for_each_byte_of_a_longer_stream(value, text):
    redactor = hotenv.Redactor({"V": value})
    data = raw(text * ((200_000 if FULL else 100_000) // len(text)))
    assert rate(redactor, data) > 5e4
    assert rate(redactor, data[:10_000], step=10) > 2e4


def test_a_redactor_for_50_variables_is_built_in_milliseconds():
    env = {f"V{n}": base64.b64encode(random.Random(n).getrandbits(256).to_bytes(32, "big")).decode() for n in range(50)}
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        hotenv.Redactor(env)
        took.append(time.perf_counter() - begun)
    assert statistics.median(took) < 0.05


# ==== masked launch ===================================================================================================
# What runs with its output masked behaves as if it were run without.

MASKED = textwrap.dedent("""
    import os, sys
    sys.path.insert(0, %r)
    import hotenv
    hotenv._unfold("masked launch")
    secrets = {"TOKEN": %r, "PORT": "8443"}
    try:
        become = lambda: hotenv._exec(sys.argv[1:], {**os.environ, **secrets})
        sys.exit(hotenv._run_masked(become, hotenv.Redactor(secrets)))
    except hotenv.HotenvError as error:
        sys.exit((sys.stderr.write("hotenv: %%s\\n" %% error), error.code)[1])
""" % (str(HERE), TOKEN))

# Says "ready", counts the signals that come, says each; SIGUSR1 says the counts and ends it.
COUNTER = textwrap.dedent("""
    import os, signal
    counts = {}
    def count(signum, frame):
        counts[signum] = counts.get(signum, 0) + 1
        os.write(1, b"got %d\\n" % signum)
    def end(signum, frame):
        os.write(1, b"counts %a\\n" % sorted((int(s), n) for s, n in counts.items()))
        os._exit(5)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2, signal.SIGTSTP):
        signal.signal(signum, count)
    signal.signal(signal.SIGUSR1, end)
    os.write(1, b"ready\\n")
    while True:
        signal.pause()
""")


def masked_command(*argv, first=""):
    """The command that runs this one with its output masked."""
    return [sys.executable, "-c", first + MASKED, *argv]


def run_masked(*argv, **how):
    """A masked run, until it ends."""
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 30, **how}
    return subprocess.run(masked_command(*argv), **how)


@contextlib.contextmanager
def start_masked(*argv, first="", **how):
    """A masked run in a process group of its own; nothing of it is left when the test ends."""
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "preexec_fn": os.setpgrp, **how}
    process = subprocess.Popen(masked_command(*argv, first=first), bufsize=0, **how)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def children(pid):
    """[pid, state, name] of each child."""
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,pid=,stat=,comm="], stdout=subprocess.PIPE, timeout=30).stdout
    return [line.split(None, 3)[1:] for line in listed.decode().splitlines() if line.split()[0] == str(pid)]


def test_a_masked_command_keeps_its_exit_status_and_its_streams_apart():
    ran = run_masked("sh", "-c", "echo out $TOKEN; echo err $PORT >&2; exit 37")
    assert (ran.returncode, ran.stdout, ran.stderr) == (37, b"out [hidden:TOKEN]\n", b"err [hidden:PORT]\n")


FATAL = [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGQUIT, signal.SIGINT]


@pytest.mark.parametrize("signum", FATAL + [32, 33] * LINUX)  # these two the C library keeps for itself
def test_a_masked_command_that_dies_of_a_signal_takes_us_along(signum, tmp_path):
    code = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    ran = run_masked(sys.executable, "-c", code + f"os.kill(os.getpid(), {int(signum)})", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr, os.listdir(tmp_path)) == (-signum, b"", b"", [])


def test_a_masked_command_that_cannot_be_executed_is_exit_8_with_the_reason():
    ran = run_masked("/no/such/command")
    assert (ran.returncode, ran.stdout) == (8, b"")
    assert ran.stderr == b"hotenv: cannot run /no/such/command: No such file or directory\n"


@pytest.mark.parametrize("joined", ["pipe", "file", "apart"])
def test_two_descriptors_of_one_file_keep_their_order(joined, tmp_path):
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; printf sk-live-; printf '51H8sVq0\\n' >&2; done"
    expected = b"".join(b"o%d\ne%d\n[hidden:TOKEN]\n" % (i, i) for i in range(1, 10))
    with open(tmp_path / "out", "w+b", buffering=0) as file, open(tmp_path / "out", "ab", buffering=0) as other:
        how = {"pipe": {"stderr": subprocess.STDOUT}, "file": {"stdout": file, "stderr": file},
               "apart": {"stdout": file, "stderr": other}}[joined]
        ran = run_masked("sh", "-c", script, **how)
        file.seek(0)
        assert (ran.stdout if joined == "pipe" else file.read()) == expected


def test_a_prompt_without_a_newline_comes_through_and_a_value_written_in_pieces_does_not():
    parts = ("Password: ", "sk-live-", "51H8sVq0", ". and 844", "3\\n")
    script = "; read x; ".join("printf '%s'" % part for part in parts)
    with start_masked("sh", "-c", script, stdin=subprocess.PIPE) as process:
        out = read_until(process.stdout.fileno(), b"Password: ")
        for wanted in (b"", rb"TOKEN\]", b". and ", rb"PORT\]\n"):
            process.stdin.write(b"\n")
            out += read_until(process.stdout.fileno(), wanted)
        assert out == b"Password: [hidden:TOKEN]. and [hidden:PORT]\n"
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_reader_that_leaves_ends_a_masked_command_in_silence():
    with start_masked("yes", stderr=subprocess.PIPE) as process:
        assert read_until(process.stdout.fileno(), b"y\ny\n")
        process.stdout.close()
        assert process.wait(30) == -signal.SIGPIPE
        assert process.stderr.read() == b""
        process.stdout = None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_exit_8_with_the_reason():
    with open("/dev/full", "wb") as full:
        ran = run_masked("sh", "-c", "echo x; while :; do echo y; done", stdout=full)
    assert (ran.returncode, ran.stderr) == (8, b"hotenv: cannot write the command's output: No space left on device\n")


@pytest.mark.parametrize("left_behind", ["sleep 300", "yes $TOKEN"])
def test_what_a_grandchild_keeps_open_is_not_waited_for(left_behind):
    script = f"({left_behind}) & echo $! >&2; printf 'the end, sk-live'; exit 4"
    ran = run_masked("sh", "-c", script)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(ran.stderr), signal.SIGKILL)
    assert ran.returncode == 4 and b"the end, sk-live" in ran.stdout and b"51H8" not in ran.stdout


def test_all_that_a_masked_command_wrote_arrives_however_slow_the_reader():
    script = "import os; [os.write(1, b'%07d sk-live-51H8sVq0\\n' % n) for n in range(20000)]"
    with start_masked(sys.executable, "-c", script) as process:
        until(lambda: len(children(process.pid)) == 2)
        time.sleep(0.3)  # it runs against full pipes meanwhile
        out = b"".join(iter(lambda: process.stdout.read(65536), b""))
        assert process.wait(30) == 0
        assert out == b"".join(b"%07d [hidden:TOKEN]\n" % n for n in range(20000))


def test_stderr_comes_through_while_nobody_reads_stdout():
    script = "import os; os.write(2, b'one\\n'); os.write(1, b' 8443' * 12000); os.write(2, b'two\\n')"
    with start_masked(sys.executable, "-c", script, stderr=subprocess.PIPE) as process:
        assert read_until(process.stderr.fileno(), b"two\n") == b"one\ntwo\n"
        assert process.stdout.read().count(b"[hidden:PORT]") == 12000


def test_a_masked_command_finds_the_signals_and_descriptors_that_an_exec_would_give_it():
    ask = ("import os, signal; print([s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN],"
           "signal.pthread_sigmask(signal.SIG_BLOCK, ()), sorted(os.listdir('/dev/fd')))")

    def before():
        os.setpgrp()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    plain = subprocess.run([sys.executable, "-c", ask], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           preexec_fn=before, timeout=30).stdout
    with start_masked(sys.executable, "-c", ask, preexec_fn=before) as process:
        assert process.stdout.read() == plain
        assert process.wait(30) == 0


def test_a_closed_stdout_stays_closed():
    script = "echo $TOKEN >&2; if echo x 2>/dev/null; then exit 1; fi; exit 6"
    with start_masked("sh", "-c", script, stdout=None, stderr=subprocess.PIPE,
                      preexec_fn=lambda: (os.setpgrp(), os.close(1), os.close(0))) as process:
        assert process.stderr.read() == b"[hidden:TOKEN]\n"
        assert process.wait(30) == 6


SENDINGS = {
    "to our pid": lambda process, signum: os.kill(process.pid, signum),
    "to the group": lambda process, signum: os.killpg(process.pid, signum),
    "to each of the group, us first": lambda process, signum: [
        os.kill(pid, signum) for pid in [process.pid, *(int(child[0]) for child in children(process.pid))]],
    "to the child": lambda process, signum: [os.kill(int(pid), signum) for pid, _, name in children(process.pid)
                                             if "python" in name],
}


@pytest.mark.parametrize("sending", SENDINGS)
def test_a_signal_reaches_a_masked_command_once_however_it_was_sent(sending):
    with start_masked(sys.executable, "-c", COUNTER) as process:
        out = process.stdout.fileno()
        read_until(out, b"ready\n")
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2, signal.SIGQUIT):
            SENDINGS[sending](process, signum)
            read_until(out, b"got %d\n" % signum)
        os.kill(process.pid, signal.SIGUSR1)
        counts = ast.literal_eval(read_until(out, b"counts .*\n").decode().split("counts ")[1])
        assert dict(counts) == {1: 1, 2: 1, 3: 1, int(signal.SIGUSR2): 1, 15: 1}
        assert process.wait(30) == 5


def test_a_masked_run_may_have_any_number_of_descriptors():
    """select() takes none above 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1300:
        pytest.skip("needs 1,300 descriptors")

    def before():
        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_NOFILE, (1300, hard))

    crowd = "import os\nfor _ in range(1100): os.dup(0)\n"
    with start_masked(sys.executable, "-c", COUNTER, first=crowd, preexec_fn=before) as process:
        read_until(process.stdout.fileno(), b"ready\n")
        os.killpg(process.pid, signal.SIGTERM)
        read_until(process.stdout.fileno(), b"got 15\n")
        os.kill(process.pid, signal.SIGUSR1)
        read_until(process.stdout.fileno(), b"counts .*\n")
        assert process.wait(30) == 5


def test_a_signal_ends_a_masked_run_that_only_waits_for_a_slow_reader():
    with start_masked(sys.executable, "-c", "print('x' * 200000)") as process:
        until(lambda: select.select([process.stdout], [], [], 0)[0] and len(children(process.pid)) == 2)
        os.read(process.stdout.fileno(), 100_000)
        until(lambda: not [c for c in children(process.pid) if c[1][0] != "Z" and "python" in c[2]])
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM


def test_a_terminal_is_handed_over_untouched_with_a_note(tmp_path):
    ask = "import os; print([os.isatty(n) for n in (0, 1, 2)], os.environ['TOKEN'], end='')"
    with on_terminal(*masked_command(sys.executable, "-c", ask)) as (pid, terminal):
        seen = read_until(terminal, TOKEN.encode())
        assert seen == b"hotenv: stdout and stderr are terminals: not masked\r\n[True, True, True] sk-live-51H8sVq0"
    with on_terminal(*masked_command(sys.executable, "-c", ask), stderr=tmp_path / "err") as (pid, terminal):
        assert read_until(terminal, TOKEN.encode()) == b"[True, True, False] sk-live-51H8sVq0"
        assert os.waitpid(pid, 0)[1] == 0
        assert (tmp_path / "err").read_bytes() == b"hotenv: stdout is a terminal: not masked\n"


def test_ctrl_c_reaches_a_masked_command_once(tmp_path):
    out = tmp_path / "out"
    with on_terminal(*masked_command(sys.executable, "-c", COUNTER), stdout=out) as (pid, terminal):
        said = lambda wanted: lambda: out.exists() and wanted in out.read_bytes()
        until(said(b"ready\n"))
        for key, signum in ((b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT), (b"\x1a", signal.SIGTSTP)):
            os.write(terminal, key)
            until(said(b"got %d\n" % signum))
        os.kill(pid, signal.SIGUSR1)
        until(said(b"counts"))
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 5
        assert [n for _, n in ast.literal_eval(out.read_text().split("counts ")[1])] == [1, 1, 1]


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
@pytest.mark.parametrize("resumed", ["fg", "kill -CONT"])
def test_ctrl_z_stops_a_masked_command_and_us_and_both_go_on(tmp_path, resumed):
    out, script = tmp_path / "out", tmp_path / "driver.py"
    script.write_text(MASKED)
    command = "echo ready; read line; echo got $line and $TOKEN; exit 7"
    with on_terminal("bash", "--norc", "--noprofile", "-i") as (pid, terminal):
        os.write(terminal, f"PS1=; {sys.executable} {script} sh -c '{command}' >{out} 2>&1\n".encode())
        until(lambda: out.exists() and b"ready" in out.read_bytes())
        os.write(terminal, b"\x1a")
        read_until(terminal, b"Stopped")
        (ours, state, _), = [child for child in children(pid) if "ps" not in child[2]]
        assert state[0] == "T"
        assert [child[1][0] for child in children(ours) if child[2] == "sh"].count("T") >= 1
        if resumed != "fg":
            os.kill(int(ours), signal.SIGCONT)  # to us alone
            until(lambda: [c for c in children(pid) if c[0] == ours][0][1][0] != "T"
                  or "T" in [c[1][0] for c in children(ours)])
            os.write(terminal, b"sleep 0\n")
        os.write(terminal, b"fg\n")
        read_until(terminal, b"driver.py")
        os.write(terminal, b"words\n")
        until(lambda: b"got" in out.read_bytes())
        os.write(terminal, b"echo status=$?.\n")
        read_until(terminal, rb"status=7\.")
        assert out.read_bytes() == b"ready\ngot words and [hidden:TOKEN]\n"


def test_a_continue_sent_to_us_alone_goes_on_to_a_child_that_was_stopped():
    with start_masked("sh", "-c", "echo ready; kill -STOP $$; echo went on") as process:
        until(lambda: "T" in [child[1][0] for child in children(process.pid)])
        os.kill(process.pid, signal.SIGCONT)
        assert read_until(process.stdout.fileno(), b"went on") == b"ready\nwent on\n"
        assert process.wait(30) == 0


def test_no_value_is_on_an_argv_and_no_lookout_stays_when_we_are_killed():
    with start_masked("sleep", "300") as process:
        until(lambda: len(children(process.pid)) == 2)
        lookout, = [int(pid) for pid, _, name in children(process.pid) if "sleep" not in name]
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "args="], stdout=subprocess.PIPE, timeout=30).stdout
        lines = [line for line in listed.splitlines() if b"_run_masked" not in line]  # the driver of this test
        assert not [line for line in lines if TOKEN.encode() in line]
        process.kill()  # the one end that we cannot see coming

        def gone():
            ran = subprocess.run(["ps", "-o", "stat=", "-p", str(lookout)], stdout=subprocess.PIPE, timeout=30)
            return ran.stdout.strip()[:1] in (b"", b"Z")

        until(gone)


def test_when_a_masked_run_is_over_nothing_of_it_holds_a_descriptor():
    for _ in range(5):
        mine, handed = os.pipe()
        with start_masked("sh", "-c", "echo $TOKEN", pass_fds=[handed]) as process:
            os.close(handed)
            assert process.wait(30) == 0
            os.set_blocking(mine, False)
            assert os.read(mine, 1) == b""  # the end, and not "nothing yet"
            os.close(mine)


def test_a_signal_reaches_a_masked_command_that_has_left_our_group(tmp_path):
    code = ("import os, signal, time; os.setpgid(0, 0); signal.signal(signal.SIGTERM, lambda *_: os._exit(7)); "
            "print('ready', flush=True); time.sleep(60)")
    with start_masked(sys.executable, "-c", code) as process:
        read_until(process.stdout.fileno(), b"ready")
        os.killpg(process.pid, signal.SIGTERM)  # to our group: the command is in it no more
        assert process.wait(30) == 7


def test_no_command_runs_where_the_lookout_cannot(tmp_path):
    code = ("import hotenv, os, sys\nhotenv._unfold('masked launch')\nfork = os.fork\n"
            "def refused():\n    raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
            "os.fork = refused\n"
            "become = lambda: hotenv._exec(['touch', 'ran'], dict(os.environ))\n"
            "try: hotenv._run_masked(become, hotenv.Redactor({}))\nexcept OSError: print('refused')")
    done = subprocess.run([sys.executable, "-c", code], cwd=str(tmp_path), stdout=subprocess.PIPE, timeout=30,
                          env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.stdout == b"refused\n" and not (tmp_path / "ran").exists()


# ==== hermetic ========================================================================================================
# What guarded programs may do, and what lies on disk for them. One line, one action, each in a process of its own.

PYENV = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")


def installed_pythons():
    """This Python, and the oldest and newest that are installed beside it."""
    found = {}
    for path in glob.glob(PYENV + "/3.*/bin/python") + glob.glob("/usr/bin/python3.[0-9]*"):
        version = re.search(r"3\.(\d+)[^/]*(?:/bin/python)?$", path)
        if version and 8 <= int(version.group(1)) <= 14 and "-config" not in path:
            found.setdefault(int(version.group(1)), path)
    found.setdefault(sys.version_info[1], sys.executable)
    return [found[min(found)], found[max(found)]]


PYTHONS = installed_pythons()


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A runtime directory of the tests' own."""
    path = str(tmp_path_factory.mktemp("run"))
    os.chmod(path, 0o700)
    return path


def environment(runtime, **more):
    """This environment, without what configures guards or Pythons."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("HERMETIC_", "HOTENV", "PYTHON", "VIRTUAL_ENV"))}
    return dict(env, XDG_RUNTIME_DIR=str(runtime), **more)


def output_of(words, runtime, cwd, env=None, timeout=60, **kwargs):
    """These words, run until they end; what they say is text."""
    return subprocess.run([str(word) for word in words], cwd=str(cwd), env=env or environment(runtime), timeout=timeout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, **kwargs)


def hermetic(python, guards, *target, runtime, cwd, env=None, **kwargs):
    return output_of([python, str(HOTENV), "hermetic", *guards.split(), "--", *target], runtime, cwd, env, **kwargs)


def as_run(project, text, *words):
    """`hotenv run` with these words, behind a session that holds this text."""
    project.serve(text)
    return project.hotenv("run", *words, env=environment(project.base), input="", universal_newlines=True)


def guarded(python, mode, guards, code, runtime, cwd, env=None):
    """Run `code` under guards: in hotenv's own process, or in a Python that is started for it."""
    if mode == "bootstrapped":
        return hermetic(python, guards, python, "-c", code, runtime=runtime, cwd=cwd, env=env)
    script = os.path.join(str(cwd), "target_script.py")
    with open(script, "w") as file:
        file.write(code)
    return hermetic(python, guards, script, runtime=runtime, cwd=cwd, env=env)


CONNECT = "import socket; socket.create_connection(('0.1.2.3', 80), 0.2)"
CONNECT_BLOCKED = "[hermetic] blocked socket.create_connection host=0.1.2.3 reason=no-network"
NET, LOCAL, SUB, IMP = "--no-network", "--no-network --allow-localhost", "--no-subprocess", "--strict-imports"
FS, ANY = "--fs-readonly", "--fs-readonly=/"
GUARDS = {"NET": NET, "LOCAL": LOCAL, "SUB": SUB, "IMP": IMP, "FS": FS, "ANY": ANY}


def actions(table):
    """[(guards, action)] of a table with one a line; what is indented goes on with the line above it."""
    lines = re.sub(r"\n +", " ", table).strip().splitlines()
    return [tuple(part.strip() for part in line.split("|", 1)) for line in lines]


# guards | the action. `here` is the current directory, with a file `victim`; `outside`, beside it, has a file `old`.
BLOCKED = actions(r"""
NET   | import socket; socket.create_connection(("0.1.2.3", 80), 0.2)
NET   | import socket; socket.create_connection(("example.invalid", 80), 0.2)
NET   | import socket; socket.create_connection(("localhost", 9), 0.2)
NET   | import socket; socket.create_connection(("127.0.0.1", 9), 0.2)
NET   | import socket; socket.socket().connect(("0.1.2.3", 80))
NET   | import socket; socket.socket().connect(("example.invalid", 80))
NET   | import socket; socket.socket().connect_ex(("0.1.2.3", 80))
NET   | import socket; socket.socket().connect_ex(("example.invalid", 80))
NET   | import socket; socket.socket(socket.AF_INET6).connect(("::1", 9))
NET   | import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("0.1.2.3", 9))
NET   | import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", 0, ("0.1.2.3", 9))
NET   | import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("example.invalid", 9))
NET   | import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("0.1.2.3", 9))
NET   | import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("example.invalid", 9))
NET   | import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("0.1.2.3", 9))
NET   | import socket; socket.getaddrinfo("example.invalid", 80)
NET   | import socket; socket.gethostbyname("example.invalid")
NET   | import socket; socket.gethostbyname_ex("example.invalid")
NET   | import socket; socket.gethostbyaddr("0.1.2.3")
NET   | import socket; socket.getnameinfo(("0.1.2.3", 80), 0)
NET   | import socket; socket.socket().bind(("0.0.0.0", 0))
NET   | import socket; socket.socket().bind(("", 0))
NET   | import socket; socket.socket().bind(("example.invalid", 0))
NET   | import _socket; _socket.socket(2, 1).connect(("0.1.2.3", 80))
NET   | import _socket; _socket.getaddrinfo("example.invalid", 80)
NET   | import _socket; _socket.gethostbyname("example.invalid")
NET   | import urllib.request; urllib.request.urlopen("http://0.1.2.3/", timeout=0.2)
NET   | import urllib.request; urllib.request.urlopen("https://example.invalid/", timeout=0.2)
NET   | import http.client; http.client.HTTPConnection("example.invalid", timeout=0.2).connect()
NET   | import ftplib; ftplib.FTP("0.1.2.3", timeout=0.2)
NET   | import smtplib; smtplib.SMTP("0.1.2.3", timeout=0.2)
NET   | import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.open_connection("0.1.2.3", 80))
NET   | import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.open_connection("example.invalid", 80))
NET   | import ssl, socket; ssl.create_default_context().wrap_socket(socket.socket(), server_hostname="example.invalid")
NET   | import ssl;
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.invalid")
NET   | import socket, threading; t = threading.Thread(target=lambda: socket.create_connection(("0.1.2.3", 80), 0.2));
        t.start(); t.join()
NET   | import os, socket; pid = os.fork(); pid or socket.create_connection(("0.1.2.3", 80), 0.2); import sys;
        sys.exit(os.waitpid(pid, 0)[1] >> 8)
NET   | import socket;
        socket.create_connection(("0.1.2.3", 80), 0.2) if not __import__("sys").flags.bytes_warning else 0
NET   | import importlib; importlib.import_module("socket").create_connection(("0.1.2.3", 80), 0.2)
NET   | import multiprocessing.connection as c; c.Client(("0.1.2.3", 80))
NET   | import importlib; importlib.import_module("_socket").socket(2, 1).connect(("example.invalid", 80))
NET   | import sys; sys.modules.pop("_socket", 0); import _socket; _socket.socket(2, 1).connect(("example.invalid", 80))
LOCAL | import socket; socket.create_connection(("0.1.2.3", 80), 0.2)
LOCAL | import socket; socket.create_connection(("169.254.169.254", 80), 0.2, ("127.0.0.1", 0))
LOCAL | import socket; socket.create_connection(("128.0.0.1", 80), 0.2, ("127.0.0.1", 0))
LOCAL | import socket; socket.create_connection(("notlocalhost", 80), 0.2)
LOCAL | import socket; socket.create_connection(("localhost.example.invalid", 80), 0.2)
LOCAL | import socket; socket.create_connection(("0.0.0.0", 9), 0.2)
LOCAL | import socket; socket.socket(socket.AF_INET6).connect(("::ffff:0.1.2.3", 80))
--no-network --allow-domain internal | import socket; socket.getaddrinfo("metadata.google.internal", 80)
--no-network --allow-domain 254 | import socket;
        socket.create_connection(("169.254.169.254", 80), 0.2, ("127.0.0.1", 0))
--no-network --allow-domain example.invalid | import socket; socket.getaddrinfo("example.invalid.evil.test", 80)
--no-network --allow-domain example.invalid | import socket; socket.getaddrinfo("notexample.invalid", 80)
--no-network --allow-domain 0.1.2.3 | import socket; socket.create_connection(("0.1.2.30", 80), 0.2)
--no-network --allow-domain 2852039166.test | import socket;
        socket.create_connection(("2852039166", 80), 0.2, ("127.0.0.1", 0))
SUB   | import subprocess; subprocess.run(["touch", "made"])
SUB   | import subprocess; subprocess.call(["touch", "made"])
SUB   | import subprocess; subprocess.check_call(["touch", "made"])
SUB   | import subprocess; subprocess.check_output(["touch", "made"])
SUB   | import subprocess; subprocess.getoutput("touch made")
SUB   | import subprocess; subprocess.Popen(["touch", "made"]).wait()
SUB   | import subprocess; subprocess.Popen("touch made", shell=True).wait()
SUB   | import subprocess; subprocess.Popen(["touch", "made"], close_fds=False).wait()
SUB   | import os; os.system("touch made")
SUB   | import os; os.popen("touch made").read()
SUB   | import os; os.execv("/bin/sh", ["sh", "-c", "touch made"])
SUB   | import os; os.execve("/bin/sh", ["sh", "-c", "touch made"], {})
SUB   | import os; os.execvp("touch", ["touch", "made"])
SUB   | import os; os.execlp("touch", "touch", "made")
SUB   | import os; os.execvpe("touch", ["touch", "made"], dict(os.environ))
SUB   | import os; os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", "touch made"])
SUB   | import os; os.spawnlp(os.P_WAIT, "touch", "touch", "made")
SUB   | import os; os.posix_spawn("/bin/sh", ["sh", "-c", "touch made"], os.environ)
SUB   | import os; os.posix_spawnp("touch", ["touch", "made"], os.environ)
SUB   | import posix; posix.execv("/bin/sh", ["sh", "-c", "touch made"])
SUB   | import posix; posix.system("touch made")
SUB   | import os; os.fork() or os._exit(0)
SUB   | import os; os.forkpty()[0] or os._exit(0)
SUB   | import pty; pty.spawn(["touch", "made"])
SUB   | import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.create_subprocess_exec("touch", "made"))
SUB   | import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.create_subprocess_shell("touch made"))
SUB   | import multiprocessing as m; m.get_context("spawn").Process(target=print).start()
SUB   | import multiprocessing as m; m.get_context("fork").Process(target=print).start()
SUB   | import multiprocessing as m; m.get_context("forkserver").Process(target=print).start()
SUB   | import _posixsubprocess, multiprocessing.util as u;
        u.spawnv_passfds(b"/bin/sh", [b"sh", b"-c", b"touch made"], [])
SUB   | import webbrowser; webbrowser.GenericBrowser(["touch", "made"]).open("made")
SUB   | import concurrent.futures as f; f.ProcessPoolExecutor(1).submit(print).result(5)
ANY   | open("made", "w")
ANY   | open("made", "x")
ANY   | open("victim", "a")
ANY   | open("victim", "r+")
ANY   | open(b"made", "wb")
ANY   | import io; io.open("made", "w")
ANY   | import io; io.FileIO("made", "w")
ANY   | import _io; _io.open("made", "w")
ANY   | import codecs; codecs.open("made", "w", "utf-8")
ANY   | import pathlib; pathlib.Path("made").write_text("x")
ANY   | import pathlib; pathlib.Path("made").open("w")
ANY   | import pathlib; pathlib.Path("made").touch()
ANY   | import pathlib; pathlib.Path("victim").unlink()
ANY   | import os; os.open("made", os.O_WRONLY | os.O_CREAT)
ANY   | import os; os.open("made", os.O_RDONLY | os.O_CREAT)
ANY   | import os; os.open("victim", os.O_WRONLY | os.O_TRUNC)
ANY   | import os; os.open("made", os.O_WRONLY | os.O_CREAT, dir_fd=os.open(".", os.O_RDONLY))
ANY   | import os; os.remove("victim")
ANY   | import os; os.unlink("victim", dir_fd=os.open(".", os.O_RDONLY))
ANY   | import os; os.rename("victim", "made")
ANY   | import os; os.replace("victim", "made")
ANY   | import os; os.mkdir("made")
ANY   | import os; os.makedirs("made/deep")
ANY   | import os; os.rmdir("dir")
ANY   | import os; os.link("victim", "made")
ANY   | import os; os.symlink("victim", "made")
ANY   | import os; os.chmod("victim", 0o600)
ANY   | import os; os.fchmod(os.open("victim", os.O_RDONLY), 0o600)
ANY   | import os; os.chown("victim", -1, -1)
ANY   | import os; os.utime("victim", (1, 1))
ANY   | import os; os.truncate("victim", 0)
ANY   | import os; os.mkfifo("made")
ANY   | import os; os.mknod("made")
ANY   | import posix; posix.mkfifo("made")
ANY   | import os; hasattr(os, "setxattr") and os.setxattr("victim", "user.x", b"x") or open("made", "w")
ANY   | import shutil; shutil.copy("victim", "made")
ANY   | import shutil; shutil.move("victim", "made")
ANY   | import shutil; shutil.rmtree("dir")
ANY   | import tempfile; tempfile.mkdtemp(dir=".")
ANY   | import tempfile; tempfile.TemporaryFile(dir=".")
ANY   | import tempfile; tempfile.mkstemp(dir=".")
ANY   | import sqlite3; sqlite3.connect("made")
ANY   | import sqlite3; sqlite3.connect("file:made?mode=rwc", uri=True)
ANY   | import sqlite3; sqlite3.connect(":memory:").execute("ATTACH 'made' AS a"); __import__("os")._exit(9)
ANY   | import readline; readline.write_history_file("made")
ANY   | import gzip; gzip.open("made", "wb")
ANY   | import zipfile; zipfile.ZipFile("made", "w")
ANY   | import logging; logging.FileHandler("made")
ANY   | import socket; socket.socket(socket.AF_UNIX).bind("made")
ANY   | import os; os.open("/proc/self/fd/%d" % os.open("victim", os.O_RDONLY), os.O_WRONLY)
ANY   | import dbm.dumb; dbm.dumb.open("made", "c")
ANY   | import shelve; shelve.open("made")
FS    | open("/etc/passwd").read()
FS    | open(outside + "/old").read()
FS    | import os; os.open("/etc/passwd", os.O_RDONLY)
FS    | import os; os.open("passwd", os.O_RDONLY, dir_fd=os.open("/etc", os.O_RDONLY))
FS    | import os; os.listdir("/etc")
FS    | import os; list(os.scandir("/etc"))
FS    | import pathlib; pathlib.Path("/etc/passwd").read_text()
FS    | open("link").read()
FS    | open("../" + __import__("os").path.basename(outside) + "/old").read()
FS    | open("/proc/self/root/etc/passwd").read()
FS    | import sqlite3; sqlite3.connect("file:/etc/passwd?mode=ro", uri=True)
--fs-readonly=/ --fs-write dir | open("made", "w")
--fs-readonly=/ --fs-write dir | import os; os.symlink(os.path.abspath("victim"), "dir/l"); open("dir/l", "w")
--fs-readonly=/ --fs-write dir | import os; os.link("victim", "dir/l")
--fs-readonly=/ --fs-write dir | import os; os.rename("victim", "dir/l")
--fs-readonly=/ --fs-write dir | import os; os.chdir("dir");
        os.open("made", os.O_CREAT | os.O_WRONLY, dir_fd=os.open("..", os.O_RDONLY))
IMP   | import ctypes
IMP   | import _ctypes
IMP   | from ctypes import util
IMP   | import importlib; importlib.import_module("ctypes")
IMP   | import cffi
IMP   | import native_module
IMP   | import importlib.machinery as m;
        m.ExtensionFileLoader("native_module",
        "native_module.so").create_module(__import__("importlib.util").util.spec_from_file_location("native_module",
        "native_module.so"))
IMP   | import importlib.util as u; s = u.spec_from_file_location("native_module", "./native_module.so");
        u.module_from_spec(s)
""")

ALLOWED = actions(r"""
NET   | import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.sleep(0))
NET   | import socket; a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
NET   | import socket; a, b = socket.socketpair(); a.sendmsg([b"x"]); assert b.recv(1) == b"x"
NET   | import socket; s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(1); c = socket.socket(socket.AF_UNIX);
        c.connect("s")
NET   | import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind("d");
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "d")
NET   | import socket; s = socket.socket(socket.AF_UNIX); s.bind("\0hotenv-test-%d" % __import__("os").getpid())
NET   | import socket; socket.socket().bind(("127.0.0.1", 0))
NET   | import socket; socket.socket().bind(("localhost", 0))
NET   | import socket; socket.has_ipv6 and socket.socket(socket.AF_INET6).bind(("::1", 0))
NET   | import socket; socket.gethostname()
NET   | import socket; socket.getaddrinfo(None, 80); socket.getaddrinfo("127.0.0.1", 80);
        socket.getaddrinfo("localhost", 80)
NET   | import multiprocessing as m; m.set_start_method("fork"); l = m.Manager().list([1]); assert l[0] == 1
NET   | import subprocess; assert subprocess.check_output(["echo", "x"]) == b"x\n"
NET   | import http.server; http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler).server_close()
NET   | import ssl; ssl.create_default_context()
NET   | exec("try: import uvloop\nexcept ImportError: pass\nelse: raise SystemExit('uvloop was there')")
SUB   | exec("try: import uvloop\nexcept ImportError: pass\nelse: raise SystemExit('uvloop was there')")
NET   | import tempfile; left_open = tempfile.NamedTemporaryFile(dir="dir"); left_open.write(b"x")
NET   | import ssl; ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())
LOCAL | import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1);
        socket.create_connection(s.getsockname(), 2)
LOCAL | import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1);
        socket.create_connection(("localhost", s.getsockname()[1]), 2)
LOCAL | import socket; s = socket.socket(); s.bind(("127.3.2.1", 0)); s.listen(1);
        socket.create_connection(s.getsockname(), 2)
LOCAL | import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1);
        assert socket.socket().connect_ex(s.getsockname()) == 0
LOCAL | import socket; s = socket.socket(2, 2); s.bind(("127.0.0.1", 0));
        socket.socket(2, 2).sendto(b"x", s.getsockname())
LOCAL | import asyncio, socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1);
        asyncio.new_event_loop().run_until_complete(asyncio.open_connection(*s.getsockname()))
SUB   | import subprocess; assert isinstance(3, subprocess.Popen) is False;
        subprocess.Popen[bytes] if hasattr(subprocess.Popen, "__class_getitem__") else 0
SUB   | import platform; platform.processor(); platform.platform()
SUB   | import os; os.close(os.openpty()[0])
SUB   | import threading; t = threading.Thread(target=print); t.start(); t.join()
SUB   | import concurrent.futures as f; assert f.ThreadPoolExecutor(2).submit(int, "3").result() == 3
SUB   | open("made", "w").write("x")
SUB   | import asyncio; asyncio.new_event_loop().run_until_complete(asyncio.sleep(0))
ANY   | open("/dev/null", "w").write("x")
ANY   | import os; C = type("C", (), {"open": os.open}); os.close(C().open("victim", os.O_RDONLY))
NET   | import os, pathlib; pathlib.Path("made").touch(); os.mkfifo("fifo"); import socket;
        type("C", (), {"resolve": socket.gethostbyname})().resolve("127.0.0.1")
--fs-readonly=/ --fs-write . | import pathlib; pathlib.Path("made").touch(); pathlib.Path("made").write_text("x");
        pathlib.Path("made").unlink()
ANY   | import os; fd = os.open("victim", os.O_RDONLY); assert isinstance(fd, int); os.fdopen(fd).read()
ANY   | import os; r, w = os.pipe(); open(w, "w").write("x"); assert os.read(r, 1) == b"x"
ANY   | open("/dev/stderr", "w").write("")
ANY   | open("/etc/passwd").read()
ANY   | import sqlite3; sqlite3.connect(":memory:").execute("create table t(x)").execute("insert into t values (1)")
ANY   | import sqlite3; sqlite3.connect("file:base.db?mode=ro", uri=True).execute("select * from t").fetchall()
ANY   | import sqlite3; sqlite3.connect("file:base.db?immutable=1", uri=True).execute("select 1").fetchall()
ANY   | import plain_module, os; assert not os.path.exists("__pycache__")
ANY   | import subprocess; subprocess.run(["true"], check=True)
ANY   | import tempfile; tempfile.SpooledTemporaryFile().write(b"x")
FS    | open("victim").read(); import os; os.listdir("."); list(os.scandir())
FS    | import json, email, unittest, xml.dom.minidom, sqlite3, http.client, mimetypes; mimetypes.guess_type("a.html")
FS    | import random, secrets, uuid, tempfile, zipfile; random.random(); secrets.token_hex(); uuid.uuid4();
        uuid.uuid1()
FS    | open("/dev/urandom", "rb").read(1); open("/dev/null").read()
FS    | open("/proc/self/status").read(); import os; os.cpu_count()
FS    | import time, datetime; time.localtime(); datetime.datetime.now().astimezone()
FS    | import encodings.idna, encodings.cp1252; "x".encode("cp1252")
--fs-readonly=/ --fs-write dir | import os; open("dir/new", "w").write("x"); os.rename("dir/new", "dir/newer");
        os.remove("dir/newer"); os.mkdir("dir/sub"); os.rmdir("dir/sub")
--fs-readonly=/ --fs-write dir | import tempfile, shutil; d = tempfile.mkdtemp(dir="dir"); open(d + "/x", "w");
        shutil.rmtree(d)
--fs-readonly=/ --fs-write dir | import os; os.chdir("/");
        os.close(os.open("q", os.O_CREAT | os.O_WRONLY, dir_fd=os.open(here + "/dir", os.O_RDONLY)))
--fs-readonly=/ --fs-write dir | import sqlite3; c = sqlite3.connect("dir/x.db"); c.execute("create table t(x)");
        c.execute("ATTACH 'dir/y.db' AS y")
--fs-readonly=/ --fs-write dir | import dbm.dumb; dbm.dumb.open("dir/d", "c").close()
IMP   | import json, decimal, sqlite3, ssl, socket, hashlib, zlib, bz2, select, math, array, _datetime, unicodedata
IMP   | import uuid, pickle, asyncio, multiprocessing, subprocess, csv, xml.etree.ElementTree
IMP   | import plain_module
""")

EITHER = [(python, mode) for python in PYTHONS for mode in ("in-process", "bootstrapped")]


def stage(tmp_path):
    """A directory to act in."""
    here = tmp_path / "here"
    for directory in (here, here / "dir", tmp_path / "outside"):
        directory.mkdir()
    (here / "victim").write_text("precious")
    os.utime(str(here / "victim"), (1000000000, 1000000000))
    (tmp_path / "outside" / "old").write_text("old")
    (here / "link").symlink_to(tmp_path / "outside" / "old")
    (here / "plain_module.py").write_text("x = 1\n")
    (here / "uvloop.py").write_text("x = 1\n")
    (here / "native_module.so").write_bytes(b"\x7fELF, but not really")
    base = sqlite3.connect(str(here / "base.db"))
    base.execute("create table t(x)")
    base.commit()
    base.close()
    return here


def blocked_lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("[hermetic] blocked ")]


def state_of(here):
    return sorted((path, os.lstat(path).st_mode, os.lstat(path).st_mtime if os.path.isfile(path) else 0)
                  for path in glob.glob(f"{here}/**", recursive=True) if "target_script" not in path)


def combinations(table, seed):
    """Every action in every mode with HOTENV_TEST_FULL=1; else every other one, in one mode, others with each seed."""
    chosen = random.Random(seed)
    for number, (guards, code) in enumerate(table):
        if not FULL and (number + seed) % 2:
            continue
        for python, mode in EITHER if FULL else [chosen.choice(EITHER)]:
            yield number, GUARDS.get(guards, guards), code, python, mode


def act(case, runtime, base):
    number, guards, code, python, mode = case
    directory = base / f"{number}-{EITHER.index((python, mode))}"
    directory.mkdir()
    here = stage(directory)
    prelude = f"here, outside = {str(here)!r}, {str(directory / 'outside')!r}\n"
    before = state_of(here)
    done = guarded(python, mode, guards + " --trace", prelude + code + "\nprint('ran')\n", runtime, here)
    return done, before, state_of(here)


def test_what_must_be_blocked_is_blocked_and_has_no_effect(runtime, tmp_path):
    assert len(BLOCKED) >= 100
    cases = list(combinations(BLOCKED, SEED))
    wrong = []
    with ThreadPoolExecutor(3) as pool:
        for case, (done, before, after) in zip(cases, pool.map(lambda case: act(case, runtime, tmp_path), cases)):
            made = os.path.exists(str(tmp_path / f"{case[0]}-{EITHER.index(case[3:])}" / "here" / "made"))
            changed = "--fs-write" not in case[1] and before != after
            if done.returncode != 2 or not blocked_lines(done) or made or changed:
                wrong.append((case, done.returncode, made, done.stderr[-300:]))
    assert not wrong, "\n".join(map(str, wrong))


def test_what_a_well_behaved_program_does_is_left_alone(runtime, tmp_path):
    assert len(ALLOWED) >= 40
    cases = list(combinations(ALLOWED, SEED + 1))
    wrong = []
    with ThreadPoolExecutor(3) as pool:
        for case, (done, _, _) in zip(cases, pool.map(lambda case: act(case, runtime, tmp_path), cases)):
            if done.returncode or not done.stdout.endswith("ran\n"):
                wrong.append((case, done.returncode, done.stderr[-300:]))
    assert not wrong, "\n".join(map(str, wrong))


# ---- the way in


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Virtual environments of the oldest and the newest of these Pythons, one with a blank in its path."""
    base = tmp_path_factory.mktemp("foreign")
    environments = []
    for number, python in enumerate(PYTHONS):
        venv = base / f"venv {number}" if number else base / "venv0"
        subprocess.run([python, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=60)
        environments.append(venv)
    return environments


SHEBANGS = ["#!{python}", "#!{python} -s", "#!{python} -sE", "#!{python} -E", "#!{python} -I", "#!{python} -S",
            "#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -I", "#!/usr/bin/env -S python3 -s -E",
            "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''",
            "#!/bin/sh\n'''exec' \"{python}\" -E \"$0\" \"$@\"\n' '''",
            "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n' '''"]


@pytest.mark.parametrize("shebang", SHEBANGS)
def test_every_form_of_a_shebang_is_guarded_and_keeps_its_arguments(foreign, runtime, tmp_path, shebang):
    venv = foreign[0]
    bin_directory = venv / "bin"
    script = bin_directory / "tool"
    script.write_text(shebang.format(python=bin_directory / "python3") + textwrap.dedent("""
        import sys
        print(sys.argv, sys.flags.isolated, sys.flags.ignore_environment, sys.flags.no_site, __file__, __name__)
        print(sys.prefix, flush=True)
        """) + CONNECT + "\n")
    script.chmod(0o755)
    env = environment(runtime, PATH=f"{bin_directory}:{os.environ['PATH']}")
    bare = output_of(["tool", "--flag", "a b", "--", ""], runtime, tmp_path, env)
    done = hermetic(PYTHONS[1], "--no-network --trace", "tool", "--flag", "a b", "--", "", runtime=runtime,
                    cwd=tmp_path, env=env)
    assert bare.returncode in (0, 1) and bare.stdout.count("\n") == 2, bare.stderr
    assert done.stdout == bare.stdout
    assert done.returncode == 2, done.stderr
    assert blocked_lines(done) == [CONNECT_BLOCKED]


REFUSED = {
    "a native program": (["/bin/ls"], None),
    "a native program by name": (["ls"], None),
    "a shell script": (["./it"], "#!/bin/sh\necho ran\n"),
    "a perl script": (["./it"], "#!/usr/bin/env perl\nprint 'ran'\n"),
    "no shebang": (["./it"], "echo ran\n"),
    "env that hides the guards": (["./it"], "#!/usr/bin/env -i python3\nprint('ran')\n"),
    "a shebang with a module": (["./it"], "#!/usr/bin/python3 -mthis\nprint('ran')\n"),
    "Python without a script": ([sys.executable], None),
    "Python reading stdin": ([sys.executable, "-"], None),
    "nothing there": (["./missing"], None),
    "no such name": (["no-such-target-anywhere"], None),
    "an empty target": ([""], None),
    "no target": ([], None),
    "a Python that cannot load the guards": (["./it"], "#!{old}\nprint('ran')\n"),
    "and one that ignores PYTHONPATH": (["./it"], "#!{old} -E\nprint('ran')\n"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_guarded_is_refused_and_not_run(runtime, tmp_path, what):
    target, text = REFUSED[what]
    if text and "{old}" in text:
        old = glob.glob(PYENV + "/[23].[5-7]*/bin/python") + [
            path for path in map(shutil.which, ("python2", "python2.7")) if path and "shims" not in path]
        if not old:
            pytest.skip("no Python before 3.8 is installed")
        for number, path in enumerate(sorted(old)[1:], 1):
            script = tmp_path / f"it{number}"
            script.write_text(text.format(old=path))
            done = hermetic(PYTHONS[0], "--no-network", str(script), runtime=runtime, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (1, ""), (path, done.stderr)
        text = text.format(old=sorted(old)[0])
    if text:
        (tmp_path / "it").write_text(text)
        (tmp_path / "it").chmod(0o755)
    done = hermetic(PYTHONS[1], "--no-network", *target, runtime=runtime, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("hotenv: ")


@pytest.mark.parametrize("usage", ["--no-network", "--no-such-guard --", "--no-net -- x", "--profile nothing -- x",
                                   "--allow-domain= -- x", "--fs-readonly= -- x", "--allow-domain http://x -- x"])
def test_usage_errors_of_hermetic_are_exit_1(runtime, tmp_path, usage):
    done = output_of([PYTHONS[0], str(HOTENV), "hermetic", *usage.split()], runtime, tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("hotenv: ") and "Traceback" not in done.stderr


@pytest.mark.parametrize("python", PYTHONS, ids=["oldest", "newest"])
def test_targets_by_name_run_as_they_would_by_themselves(runtime, tmp_path, python):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mod.py").write_text(
        "import sys\ndef main(): print(sys.argv, __name__); return 7\nclass Deep:\n    main = staticmethod(main)\n"
        "data = 3\nif __name__ == '__main__': print('module', sys.argv[1:]); sys.exit(5)\n")
    (package / "__main__.py").write_text("import sys; print('package', sys.argv[1:]); sys.exit(4)\n")
    (tmp_path / "plain.py").write_text("import sys, pkg; print('plain', sys.argv, __file__, __name__); sys.exit(3)\n")
    cases = [(["pkg.mod:main", "a", "--", "-x"], 7, "['pkg.mod:main', 'a', '--', '-x'] pkg.mod\n"),
             (["pkg.mod:Deep.main", "a"], 7, "['pkg.mod:Deep.main', 'a'] pkg.mod\n"),
             (["pkg.mod:data", "a"], 5, "module ['a']\n"), (["pkg.mod", "--", "a"], 5, "module ['--', 'a']\n"),
             (["pkg", "a"], 4, "package ['a']\n"), (["./pkg", "a"], 4, "package ['a']\n"),
             (["./plain.py", "a"], 3, "plain ['./plain.py', 'a'] ./plain.py __main__\n"),
             ([python, "-m", "pkg.mod", "a"], 5, "module ['a']\n"),
             ([python, "-X", "dev", "plain.py"], 3, "plain ['plain.py'] plain.py __main__\n"),
             ([python, "-uWerror", "-c", "import sys; print(sys.argv)", "a"], 0, "['-c', 'a']\n")]
    for words, code, output in cases:
        done = hermetic(python, "--no-network", *words, runtime=runtime, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (code, output), (words, done.stderr)


def test_a_console_script_beside_this_python_runs_in_this_very_process(foreign, runtime, tmp_path):
    for venv, other in (foreign, foreign[::-1]):
        script = venv / "bin" / "beside"
        script.write_text(f"#!/bin/sh\n'''exec' \"{venv}/bin/python3\" \"$0\" \"$@\"\n' '''\n"
                          "import os, sys; print(os.getpid(), sys.prefix, 'hotenv' in sys.modules, sep=chr(10))\n")
        script.chmod(0o755)
        for python, same in ((venv / "bin" / "python3", True), (other / "bin" / "python3", False)):
            for flags in ([], ["-I"], ["-S"]):
                started = subprocess.Popen(
                    [str(python), *flags, str(HOTENV), "hermetic", "--no-network", "--",
                     "beside" if same else str(script)], cwd=str(tmp_path),
                    env=environment(runtime), stdout=subprocess.PIPE, universal_newlines=True)
                output = started.communicate(timeout=30)[0].splitlines()
                assert output == [str(started.pid), str(venv), "False"], (python, flags)


def test_a_sitecustomize_that_was_there_still_runs_after_the_guards(runtime, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import sys; print('theirs', hasattr(sys, '_hotenv'))\n")
    for python in PYTHONS:
        done = hermetic(python, "--no-network", python, "-c", "import sitecustomize; print(sitecustomize.__file__)",
                        runtime=runtime, cwd=tmp_path, env=environment(runtime, PYTHONPATH=str(theirs)))
        assert done.stdout == f"theirs True\n{theirs}/sitecustomize.py\n", done.stderr


def test_pythonpath_gets_no_empty_entry(runtime, tmp_path):
    (tmp_path / "random.py").write_text("raise SystemExit('shadowed')\n")
    script = tmp_path / "bin" / "show"
    script.parent.mkdir()
    script.write_text(f"#!{PYTHONS[0]}\nimport random, os, sys; print(os.environ['PYTHONPATH'], '' in sys.path)\n")
    script.chmod(0o755)
    for before in ({}, {"PYTHONPATH": ""}):
        done = hermetic(PYTHONS[1], "--no-network", str(script), runtime=runtime, cwd=tmp_path,
                        env=environment(runtime, **before))
        path, empty = done.stdout.split()
        assert os.pathsep not in path and empty == "False"


# ---- children

CHILDREN = {
    "run": "subprocess.run({child})", "env={{}}": "subprocess.run({child}, env={{}})",
    "another env": "subprocess.run({child}, env={{'PYTHONPATH': '/nowhere', 'HOTENV_GUARDS': '[]'}})",
    "close_fds": "subprocess.run({child}, env={{}}, close_fds=False)",
    "os.environ cleared": "os.environ.clear(); subprocess.run({child})",
    "system": "os.environ.clear(); os.system({text!r})",
    "spawn": "os.spawnve(os.P_WAIT, {child}[0], {child}, {{}})", "exec": "os.execve({child}[0], {child}, {{}})",
    "execv": "os.environ.clear(); os.execv({child}[0], {child})",
    "posix_spawn": "os.waitpid(os.posix_spawn({child}[0], {child}, {{}}), 0)",
    "asyncio": "import asyncio\n"
               "async def go(): await (await asyncio.create_subprocess_exec(*{child}, env={{}})).wait()\n"
               "asyncio.run(asyncio.wait_for(go(), 20))",
    "grandchild": "code = 'import subprocess; subprocess.run(%r, env={{}})' % ({child},); "
                  "subprocess.run([sys.executable, '-c', code], env={{}})",
    "native between": "subprocess.run(['/bin/sh', '-c', {text!r}])",
    "the directory is gone": "shutil_rmtree(); subprocess.run({child})",
    "the directory is gone, env={{}}": "shutil_rmtree(); subprocess.run({child}, env={{}})"}


@pytest.mark.parametrize("how", CHILDREN)
def test_guards_stay_on_in_child_pythons(runtime, tmp_path, how):
    mode = random.Random(f"{SEED}{how}").choice(["in-process", "bootstrapped"])
    for number, python in enumerate(PYTHONS if FULL else [random.Random(f"{how}{SEED}").choice(PYTHONS)]):
        private = tmp_path / str(number)  # its directory is removed
        private.mkdir()
        private.chmod(0o700)
        child = [python, "-c", CONNECT]
        text = f"{python} -c \"{CONNECT}\""
        code = ("import os, subprocess, sys, time\n"
                f"def shutil_rmtree(): os._exit if os.system('rm -r {private}/hotenv/guards-*') else 0\n"
                + CHILDREN[how].format(child=child, text=text))
        done = guarded(python, mode, "--no-network --trace", code, private, tmp_path, environment(private))
        assert CONNECT_BLOCKED in blocked_lines(done), done.stderr


def test_guards_stay_on_in_multiprocessing_children_and_pools(runtime, tmp_path):
    (tmp_path / "work.py").write_text(textwrap.dedent(f"""
        import multiprocessing, os, sys
        def connect(_):
            try:
                {CONNECT}
            except PermissionError as error:
                return type(error).__name__, error.errno
        if __name__ == "__main__":
            os.environ.pop("HOTENV_GUARDS"), os.environ.pop("PYTHONPATH", None)
            for method in ("spawn", "fork", "forkserver"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(method, pool.map(connect, [1]))
        """))
    for python in PYTHONS:
        done = hermetic(python, "--no-network --trace", python, "work.py", runtime=runtime, cwd=tmp_path)
        assert len(blocked_lines(done)) == 3 and done.stdout.count("13)") == 3, done.stderr
        assert done.returncode == 0, "what was blocked was blocked in the children"


BY_STATEMENT = ("try:\n    import _interpreters as module\n"
                "except ImportError:\n    import _xxsubinterpreters as module\n")
BY_CALL = ("import importlib\ntry:\n    module = importlib.import_module('_interpreters')\n"
           "except ImportError:\n    module = importlib.import_module('_xxsubinterpreters')\n")
A_SECOND_COPY = BY_CALL + "import sys\ndel sys.modules[module.__name__]\n" + BY_CALL


@pytest.mark.parametrize("python", PYTHONS, ids=["oldest", "newest"])
@pytest.mark.parametrize("mode", ["in-process", "bootstrapped"])
@pytest.mark.parametrize("got", [BY_STATEMENT, BY_CALL, A_SECOND_COPY], ids=["statement", "call", "second copy"])
def test_guards_stay_on_in_subinterpreters(runtime, tmp_path, python, mode, got):
    code = (got + "new = module.create()\nmodule.run_string(new, 'print(1 + 1, flush=True)')\n"
            f"try:\n    failed = module.run_string(new, {CONNECT!r})\nexcept Exception as error:\n    failed = error\n"
            "print(failed is not None)\nmodule.destroy(new)\nprint('on')\n")
    done = guarded(python, mode, "--no-network --trace", code, runtime, tmp_path)
    assert done.stdout == "2\nTrue\non\n", done.stderr
    assert blocked_lines(done) == [CONNECT_BLOCKED]
    assert done.returncode == 2


# ---- what lies on disk


def only_room(runtime):
    rooms = glob.glob(f"{runtime}/hotenv/guards-*")
    assert len(rooms) == 1, rooms
    return rooms[0]


def listing(room):
    return {name: open(os.path.join(room, name), "rb").read() for name in os.listdir(room)}


def plant_cached(room, python):
    os.unlink(f"{room}/__pycache__")
    os.mkdir(f"{room}/__pycache__")
    for name in ("sitecustomize", "guards"):
        source = f"{room}/{name}.py"
        cached = subprocess.check_output(
            [python, "-Ic", "import importlib.util as u, sys; print(u.cache_from_source(sys.argv[1]))", source],
            universal_newlines=True).strip()
        subprocess.run([python, "-Ic", "import py_compile, os, sys, shutil; s, c = sys.argv[1:]; t = os.stat(s); "
                        "open(s + '.evil', 'w').write(('print(\"PLANTED\")\\n').ljust(t.st_size)); "
                        "os.utime(s + '.evil', (t.st_atime, t.st_mtime)); py_compile.compile(s + '.evil', c, s); "
                        "os.unlink(s + '.evil')", source, cached], check=True)


PLANTS = {
    "a cached sitecustomize": plant_cached,
    "a changed guard": lambda room, _: open(f"{room}/guards.py", "w").write("print('PLANTED')\n"),
    "a longer guard": lambda room, _: open(f"{room}/guards.py", "a").write("\nprint('PLANTED')\n"),
    "a changed loader": lambda room, _: open(f"{room}/sitecustomize.py", "w").write("print('PLANTED')\n"),
    "another module": lambda room, _: open(f"{room}/random.py", "w").write("print('PLANTED')\n"),
    "a package in front": lambda room, _: (os.mkdir(f"{room}/sitecustomize"),
                                           open(f"{room}/sitecustomize/__init__.py", "w").write("print('PLANTED')\n")),
    "an extension in front": lambda room, _: open(f"{room}/sitecustomize.so", "w").write("PLANTED"),
    "a link for the loader": lambda room, _: (os.rename(f"{room}/sitecustomize.py", f"{room}/../elsewhere.py"),
                                              os.symlink("../elsewhere.py", f"{room}/sitecustomize.py")),
    "a directory for the guard": lambda room, _: (os.unlink(f"{room}/guards.py"), os.mkdir(f"{room}/guards.py")),
    "a file that others may write": lambda room, _: os.chmod(f"{room}/guards.py", 0o666),
    "no loader": lambda room, _: os.unlink(f"{room}/sitecustomize.py"),
    "nothing": lambda room, _: shutil.rmtree(room)}


@pytest.mark.parametrize("what", PLANTS)
def test_whatever_was_planted_beside_the_guards_is_replaced_before_it_runs(tmp_path, what):
    tmp_path.chmod(0o700)
    python = random.Random(f"{SEED}{what}").choice(PYTHONS)

    def go():
        return guarded(python, "bootstrapped", "--no-network --trace", "import random; " + CONNECT, tmp_path, tmp_path)
    assert go().returncode == 2
    room = only_room(tmp_path)
    good = listing(room)
    assert set(good) == {"sitecustomize.py", "guards.py", "__pycache__"}
    PLANTS[what](room, python)
    done = go()
    assert "PLANTED" not in done.stdout and done.returncode == 2 and blocked_lines(done), done.stderr
    assert only_room(tmp_path) == room and listing(room) == good
    assert all(os.lstat(f"{room}/{name}").st_mode & 0o777 == 0o600 for name in good)


def test_a_directory_that_is_a_link_or_open_to_others_is_refused(tmp_path):
    tmp_path.chmod(0o700)
    guarded(PYTHONS[0], "bootstrapped", "--no-network", "pass", tmp_path, tmp_path)
    room = only_room(tmp_path)
    os.rename(room, tmp_path / "moved")
    os.symlink(tmp_path / "moved", room)
    done = guarded(PYTHONS[0], "bootstrapped", "--no-network", "print('ran')", tmp_path, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("hotenv: cannot put the guards in place")
    os.unlink(room)
    os.mkdir(room)
    os.chmod(room, 0o777)
    done = guarded(PYTHONS[0], "bootstrapped", "--no-network", "print('ran')", tmp_path, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")


def test_many_starts_at_once_never_find_a_half_written_guard(tmp_path):
    tmp_path.chmod(0o700)
    code = "import time; " + CONNECT
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(
            lambda n: guarded(PYTHONS[n % 2], "bootstrapped", "--no-network", code, tmp_path, tmp_path),
            range(24 if FULL else 8)))
    assert [done.returncode for done in results] == [2] * len(results), [done.stderr for done in results]
    assert set(listing(only_room(tmp_path))) == {"sitecustomize.py", "guards.py", "__pycache__"}
    assert os.listdir(str(tmp_path / "hotenv")) == [os.path.basename(only_room(tmp_path))]


@pytest.mark.parametrize("python", PYTHONS, ids=["oldest", "newest"])
def test_the_room_alone_compiles_and_guards(python, tmp_path):
    """What is written for the target is this room, word for word."""
    room = hotenv._room_source()
    tmp_path.chmod(0o700)
    guarded(PYTHONS[1], "bootstrapped", "--no-network", "pass", tmp_path, tmp_path)
    assert listing(only_room(tmp_path))["guards.py"] == room
    env = environment(tmp_path, PYTHONPATH=only_room(tmp_path), HOTENV_GUARDS='[{"network": true}]')
    assert output_of([python, "-c", CONNECT], tmp_path, tmp_path, env).returncode == 2
    for damaged in ("", "[]", "{}", '[{"network": tru}]'):
        done = output_of([python, "-c", CONNECT], tmp_path, tmp_path, dict(env, HOTENV_GUARDS=damaged))
        assert done.returncode in (1, 2) and not re.search("TimeoutError|timed out", done.stderr), done.stderr
    del env["HOTENV_GUARDS"]
    assert output_of([python, "-c", "print('ran')"], tmp_path, tmp_path, env).stdout == ""


def test_a_hook_that_refuses_the_guards_ends_the_program(foreign, runtime, tmp_path):
    venv = foreign[0]
    site = glob.glob(f"{venv}/lib/python*/site-packages")[0]
    pth = os.path.join(site, "veto.pth")
    with open(pth, "w") as file:
        file.write("import sys; exec(\"def veto(e, a):\\n if e == 'sys.addaudithook': raise RuntimeError\\n"
                   "sys.addaudithook(veto)\")\n")
    try:
        done = guarded(f"{venv}/bin/python", "bootstrapped", "--no-network", "print('ran')", runtime, tmp_path)
    finally:
        os.unlink(pth)
    assert (done.returncode, done.stdout) == (1, "") and "hotenv: cannot guard" in done.stderr


# ---- exit status

WRITE = ("import sys, zipfile\nout = open('out', 'w'); out.write('half')\nprint('shown', end='')\n"
         "raw = open('raw', 'wb'); raw.write(b'half')\n")
FLUSH = "for f in out, raw, sys.stdout: f.flush()\n"
TRY = f"try:\n    {CONNECT}\nexcept OSError:\n    pass\n"
EXITS = {
    "raised": (CONNECT, 2),
    "caught": (TRY, 2),
    "caught, then exit 5": (TRY + "sys.exit(5)", 2),
    "caught, then an exception": (TRY + "1 / 0", 2),
    "in a thread": (
        "import threading\nt = threading.Thread(target=lambda: exec(%r)); t.start(); t.join()" % CONNECT, 2),
    "in a thread that main does not wait for": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), exec(%r))).start()" % CONNECT, 2),
    "at exit": ("import atexit\natexit.register(lambda: exec(%r))" % CONNECT, 2),
    "in __del__": ("import socket\nclass D:\n    def __del__(self, s=socket.socket()):\n"
                   "        try: s.connect(('0.1.2.3', 80))\n        except OSError: pass\nd = D()", 2),
    "os._exit": (TRY + FLUSH + "import os; os._exit(0)", 2),
    "posix._exit": (TRY + FLUSH + "import posix; posix._exit(0)", 2),
    "in a fork only": ("import os\n" + FLUSH + "pid = os.fork()\nif not pid:\n    " + TRY.replace("\n", "\n    ")
                       + "os._exit(0)\nprint(os.waitpid(pid, 0)[1] >> 8, file=sys.stderr)", 0),
    "before a fork only": (TRY + "import os\n" + FLUSH + "pid = os.fork()\nif not pid:\n    os._exit(0)\n"
                           "os.waitpid(pid, 0)[1] and out.write('the child was told')", 2),
    "nothing": ("", 0),
    "exit 5": ("sys.exit(5)", 5),
    "exit text": ("sys.exit('x')", 1),
    "exception": ("1 / 0", 1),
    "killed": ("import os, signal\n" + FLUSH + TRY + "os.kill(os.getpid(), signal.SIGTERM)", -15),
}


@pytest.mark.parametrize("how", EXITS)
def test_the_exit_status_tells_what_was_blocked_and_no_file_loses_its_end(runtime, tmp_path, how):
    code, status = EXITS[how]
    for number, (python, mode) in enumerate(EITHER if FULL else [random.Random(f"{SEED}{how}").choice(EITHER)]):
        here = tmp_path / str(number)
        here.mkdir()
        done = guarded(python, mode, "--no-network", WRITE + code, runtime, here)
        assert done.returncode == status, (python, mode, done.stderr)
        assert done.stdout == "shown"
        assert (here / "out").read_text() == "half" and (here / "raw").read_bytes() == b"half"


# ---- network


@pytest.fixture(scope="module")
def named(foreign):
    """Environments whose resolver knows *.test: this machine, but for creds.test, which is a metadata address."""
    for venv in foreign:
        site = glob.glob(f"{venv}/lib/python*/site-packages")[0]
        with open(f"{site}/names.pth", "w") as file:
            file.write("import names_of_the_test\n")
        with open(f"{site}/names_of_the_test.py", "w") as file:
            file.write(textwrap.dedent("""
                import _socket, sys
                real = _socket.getaddrinfo
                def getaddrinfo(host, port, *args, **kwargs):
                    name = host.lower().rstrip(".") if isinstance(host, str) else ""
                    if not name.endswith((".test", ".internal")):
                        return real(host, port, *args, **kwargs)
                    sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
                    sys.stderr.write("ASKED %s\\n" % host)
                    address = "169.254.169.254" if name.startswith(("creds", "metadata")) else "127.0.0.1"
                    return [(2, 1, 6, "", (address, port))]
                _socket.getaddrinfo = getaddrinfo
                """))
    yield [f"{venv}/bin/python" for venv in foreign]
    for venv in foreign:
        os.unlink(glob.glob(f"{venv}/lib/python*/site-packages/names.pth")[0])


REACH = [  # guards, host, what is done with it, reached?
    ("--allow-domain api.test", "api.test", "create", True),
    ("--allow-domain test", "api.test", "create", True),
    ("--allow-domain API.Test.", "api.test", "create", True),
    ("--allow-domain api.test", "API.TEST.", "create", True),
    ("--allow-domain *.test", "api.test", "create", True),
    ("--allow-domain .test", "api.test", "create", True),
    ("--allow-domain api.test", "api.test", "connect", True),
    ("--allow-domain api.test", "api.test", "connect_ex", True),
    ("--allow-domain api.test", "api.test", "sendto", True),
    ("--allow-domain api.test", "api.test", "sendmsg", True),
    ("--allow-domain api.test", "a.api.test", "create", True),
    ("--allow-domain api.test", "xapi.test", "create", False),
    ("--allow-domain api.test", "api.test.test", "create", False),
    ("--allow-domain api.test", "other.test", "create", False),
    ("--allow-domain api.test", "other.test", "connect", False),
    ("--allow-domain api.test", "other.test", "sendto", False),
    ("--allow-domain api.test", "127.0.0.1", "create", False),
    ("--allow-domain 127.0.0.1", "127.0.0.1", "create", True),
    ("--allow-domain ::1", "127.0.0.1", "create", False),
    ("--allow-domain 0.0.1", "127.0.0.1", "create", False),
    ("--allow-localhost", "api.test", "create", False),
    ("--allow-localhost", "localhost", "create", True),
    ("--allow-domain test", "creds.test", "create", False),
    ("--allow-domain creds.test", "creds.test", "create", False),
    ("--allow-domain internal", "metadata.google.internal", "create", False),
]


def test_only_allowed_hosts_are_reached_and_no_name_is_asked_for_in_vain(named, runtime, tmp_path):
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(50)
    port = server.getsockname()[1]
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", port))

    def reach(case):
        guards, host, how, reached = case
        act = {"create": "socket.create_connection((h, p), 2)", "connect": "socket.socket().connect((h, p))",
               "connect_ex": "assert not socket.socket().connect_ex((h, p))",
               "sendto": "socket.socket(2, 2).sendto(b'x', (h, p))",
               "sendmsg": "socket.socket(2, 2).sendmsg([b'x'], [], 0, (h, p))"}[how]
        python = random.Random(f"{SEED}{case}").choice(named)
        done = guarded(python, "bootstrapped", "--trace --no-network " + guards,
                       f"import socket; h, p = {host!r}, {port}; {act}; print('reached')", runtime, tmp_path)
        allowed_name = reached or "creds" in host
        return (done.stdout == "reached\n") == reached and done.returncode == (0 if reached else 2) and (
            allowed_name or "ASKED" not in done.stderr) and len(blocked_lines(done)) == (not reached) or (case, done)
    with ThreadPoolExecutor(3) as pool:
        wrong = [result for result in pool.map(reach, REACH) if result is not True]
    assert not wrong, wrong


def test_metadata_addresses_may_be_reached_by_exactly_their_own_name(named, runtime, tmp_path):
    """Reached as far as this machine goes: the kernel is asked, and says what it says about such an address."""
    for host in ("metadata.google.internal", "169.254.169.254"):
        code = ("import socket; s = socket.socket(2, 2); "  # connecting a datagram socket sends nothing
                f"found = socket.getaddrinfo({host!r}, 80, 2, 2); s.connect(found[0][4]); print('reached')")
        guards = f"--trace --no-network --allow-domain {host}"
        done = guarded(named[0], "bootstrapped", guards, code, runtime, tmp_path)
        assert not blocked_lines(done), done.stderr


# ---- the session


@pytest.mark.parametrize("guards", [NET, SUB, ANY, IMP, LOCAL])
def test_under_any_guard_the_runtime_directory_is_closed(runtime, tmp_path, guards):
    directory = os.path.join(runtime, "hotenv")
    os.makedirs(directory, exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    path = os.path.join(directory, f"{abs(hash(guards)) % 10**8:08d}.sock")
    server.bind(path)
    server.listen(5)
    (tmp_path / "link").symlink_to(directory)
    (tmp_path / "file").write_text("x")
    relative = os.path.relpath(path, str(tmp_path))
    name = os.path.basename(path)
    attempts = [
        f"s.connect({path!r})",
        f"s.connect({path.encode()!r})",
        f"s.connect({relative!r})",
        f"s.connect_ex({path!r})",
        f"s.connect('link/{name}')",
        f"os.chdir({directory!r}); s.connect({name!r})",
        f"open({directory!r} + '/new', 'w')",
        f"os.unlink({path!r})",
        f"os.rename({path!r}, 'moved')",
        f"os.link({path!r}, 'linked')",
        f"os.rename('file', {directory!r} + '/file')",
        f"os.chmod({directory!r}, 0o777)",
        f"os.symlink('/', {directory!r} + '/l')",
        f"socket.socket(socket.AF_UNIX).bind({directory!r} + '/mine')",
        f"os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open({directory!r}, os.O_RDONLY))",
        f"os.mkfifo({directory!r} + '/fifo')",
        f"os.rmdir({directory!r})",
    ]
    code = textwrap.dedent(f"""
        import os, socket
        before = sorted(os.listdir({directory!r}))
        top = os.getcwd()
        for attempt in {attempts!r}:
            os.chdir(top)
            s = socket.socket(socket.AF_UNIX)
            try:
                exec(attempt)
            except PermissionError:
                pass
            else:
                print('done:', attempt)
        assert sorted(os.listdir({directory!r})) == before
        """)
    for python, mode in EITHER if FULL else EITHER[:2]:
        done = guarded(python, mode, guards + " --trace", code, runtime, tmp_path)
        assert done.stdout == "" and done.returncode == 2, (done.stdout, done.stderr)
        assert len(blocked_lines(done)) == len(attempts), done.stderr
    server.close()
    os.unlink(path)


def test_hermetic_within_hermetic_keeps_both_sets_of_guards(runtime, tmp_path):
    code = "import os\n" + TRY + "try:\n    open('made', 'w')\nexcept OSError:\n    pass\n"
    for python in PYTHONS:
        inner = [python, str(HOTENV), "hermetic", "--fs-readonly=/", "--trace", "--", python, "-c", code]
        env = {"XDG_RUNTIME_DIR": runtime, "PATH": "/usr/bin"}
        outer = f"import subprocess; subprocess.run({inner!r}, env={env!r})"
        done = guarded(python, "bootstrapped", "--no-network --trace", outer, runtime, tmp_path)
        reasons = sorted(line.rsplit("=", 1)[1] for line in blocked_lines(done))
        assert reasons == ["fs-readonly", "no-network"], done.stderr


# ---- trace

TRACES = [
    (NET, "import socket; socket.create_connection(('example.invalid', 80))",
     "socket.create_connection host=example.invalid reason=no-network"),
    (NET, "import urllib.request as u; u.urlopen('http://example.invalid')",
     "socket.create_connection host=example.invalid reason=no-network"),
    (NET, "import socket; socket.socket().connect(('example.invalid', 80))",
     "socket.connect host=example.invalid reason=no-network"),
    (NET, "import socket; socket.socket().connect(('0.1.2.3', 80))", "socket.connect host=0.1.2.3 reason=no-network"),
    (SUB, "import subprocess; subprocess.run(['curl', '-s', 'x y'])",
     "subprocess.run argv=['curl','-s','x y'] reason=no-subprocess"),
    (SUB, "import subprocess; subprocess.check_output(['curl'])",
     "subprocess.check_output argv=['curl'] reason=no-subprocess"),
    (SUB, "import subprocess; subprocess.Popen('curl x', shell=True)",
     "subprocess.Popen argv=['/bin/sh','-c','curl x'] reason=no-subprocess"),
    (SUB, "import os; os.system('curl x')", "os.system argv=['curl x'] reason=no-subprocess"),
    (SUB, "import os; os.execvp('curl', ['curl', 'x'])", "os.execvp argv=['curl','x'] reason=no-subprocess"),
    (SUB, "import os; os.fork()", "os.fork reason=no-subprocess"),
    (ANY, "open('/nowhere/x', 'w')", "open path=/nowhere/x reason=fs-readonly"),
    (ANY, "open('/nowhere/x y', 'w')", "open path='/nowhere/x y' reason=fs-readonly"),
    (ANY, "open('/nowhere/x\\x1b[2J\\n\\udcff', 'w')", "open path='/nowhere/x\\x1b[2J\\n\\udcff' reason=fs-readonly"),
    (ANY, "import os; os.mkfifo('/nowhere/x')", "os.mkfifo path=/nowhere/x reason=fs-readonly"),
    (IMP, "import ctypes", "import module=ctypes reason=strict-imports"),
    (SUB, "import subprocess; subprocess.run(['x', '--token', 'hunter2', '--password=hunter2', 'API_KEY=hunter2', "
          "'-H', 'Authorization: Bearer hunter2', 'https://me:hunter2@host/', '--verbose', 'y'])",
     "subprocess.run argv=['x','--token','***','--password=***','API_KEY=***','-H',"
     "'Authorization: ***','https://***@host/','--verbose','y'] reason=no-subprocess"),
    (SUB, "import os; os.system('x --secret-key \"hunter2 hunter2\"')",
     "os.system argv=['x --secret-key ***'] reason=no-subprocess")]


@pytest.mark.parametrize("guards, code, line", TRACES)
def test_a_blocked_attempt_is_one_line_in_the_form_of_the_pep(runtime, tmp_path, guards, code, line):
    python, mode = random.Random(f"{SEED}{code}").choice(EITHER)
    done = guarded(python, mode, guards + " --trace", code, runtime, tmp_path)
    assert blocked_lines(done) == ["[hermetic] blocked " + line], done.stderr
    assert "hunter2" not in "".join(done.stderr.splitlines()[-1:])
    assert not blocked_lines(guarded(python, mode, guards, code, runtime, tmp_path)), "only with --trace"


@pytest.mark.parametrize("python", PYTHONS, ids=["oldest", "newest"])
def test_the_values_of_a_session_are_masked_in_traces_and_errors(project, python):
    code = textwrap.dedent("""
        import os, subprocess, socket
        assert os.environ['DB_URL'] == 's3cr3t-value' and os.environ['SHORT'] == 'ab'
        for act in (lambda: subprocess.run(['x', 'pre-s3cr3t-value-post', 'ab']),
                    lambda: open('/nowhere/s3cr3t-value', 'w'),
                    lambda: socket.create_connection(('s3cr3t-value.example.invalid', 1))):
            try:
                act()
            except OSError as error:
                print(error)
        """)
    done = as_run(project, b"DB_URL=s3cr3t-value\nSHORT=ab\n", "--profile=all", "--trace", "--", python, "-c", code)
    assert blocked_lines(done) == [
        "[hermetic] blocked subprocess.run argv=['x','pre-[DB_URL]-post','ab'] reason=no-subprocess",
        "[hermetic] blocked open path=/nowhere/[DB_URL] reason=fs-readonly",
        "[hermetic] blocked socket.create_connection host=[DB_URL].example.invalid reason=no-network"]
    assert "s3cr3t" not in done.stdout + done.stderr and done.returncode == 2


def test_the_trace_goes_to_the_stderr_there_was_at_the_start(runtime, tmp_path):
    code = "import os; os.dup2(os.open('elsewhere', os.O_CREAT | os.O_WRONLY), 2)\n" + TRY
    done = guarded(PYTHONS[0], "bootstrapped", "--no-network --trace", code, runtime, tmp_path)
    assert len(blocked_lines(done)) == 1 and (tmp_path / "elsewhere").read_text() == ""
    code = ("import os; os.closerange(3, 100); fds = [os.open('mine', os.O_CREAT | os.O_WRONLY) for _ in range(70)]\n"
            + TRY)
    done = guarded(PYTHONS[0], "bootstrapped", "--no-network --trace", code, runtime, tmp_path)
    assert len(blocked_lines(done)) == 1
    assert (tmp_path / "mine").read_text() == "", "it does not end up in a program's file"


def test_the_error_of_a_refused_read_names_the_ways_out(runtime, tmp_path):
    done = guarded(PYTHONS[0], "bootstrapped", FS, "open('/etc/passwd')", runtime, tmp_path)
    last = done.stderr.splitlines()[-1]
    assert "--fs-readonly=PATH" in last and "=/" in last and str(tmp_path) in last
    done = guarded(PYTHONS[0], "bootstrapped", FS, "open('new', 'w')", runtime, tmp_path)
    assert "--fs-write PATH" in done.stderr.splitlines()[-1]


# ---- configuration

CONFIGURED = [  # file, environment, command line -> what is blocked, of: local (127.0.0.1), sub, write, ctypes, passwd
    ({}, {}, "", ""),
    ({"no-network": True}, {}, "", "local"),
    ({"no_network": True}, {}, "", "local"),
    ({"no-network": True, "allow-localhost": True}, {}, "", ""),
    ({"no-network": True, "allow-localhost": True}, {}, "--no-network", "local"),
    ({"no-network": True}, {}, "--allow-localhost", ""),
    ({"allow-localhost": True}, {}, "--no-network", "local"),
    ({"allow-domain": ["127.0.0.1"]}, {}, "--no-network", "local"),
    ({"no-network": True, "allow-domain": ["127.0.0.1"]}, {}, "", ""),
    ({"no-network": True, "allow-localhost": True}, {"HERMETIC_FLAGS": "--no-network"}, "", "local"),
    ({"no-network": True}, {"HERMETIC_FLAGS": "--allow-localhost"}, "", ""),
    ({}, {"HERMETIC_FLAGS": "--no-network --allow-localhost"}, "--no-subprocess", "sub"),
    ({}, {"HERMETIC_FLAGS": "--allow-localhost"}, "--no-network", "local"),
    ({}, {"HERMETIC_PROFILE": "exec-deny,strict-imports"}, "", "sub ctypes"),
    ({}, {"HERMETIC_PROFILE": "net-hermetic"}, "", ""),
    ({}, {}, "--profile net-hermetic", ""),
    ({}, {}, "--profile exec-deny", "sub"),
    ({}, {}, "--profile strict-imports", "ctypes"),
    ({}, {}, "--profile fs-readonly", "write passwd"),
    ({}, {}, "--profile all", "local sub write ctypes passwd"),
    ({"profile": ["exec-deny"]}, {}, "--profile=strict-imports", "sub ctypes"),
    ({"profile": "exec-deny"}, {}, "", "sub"),
    ({}, {"HERMETIC_FS_ROOT": "/etc"}, "", "write"),
    ({}, {"HERMETIC_FS_ROOT": "/"}, "--fs-readonly", "write passwd"),
    ({"fs-readonly": "/etc"}, {}, "", "write"),
    ({"fs-readonly": True}, {}, "", "write passwd"),
    ({"fs-readonly": True}, {}, "--fs-readonly=/etc", "write"),
    ({"fs-readonly": "/etc"}, {}, "--fs-readonly", "write passwd"),
    ({"fs-readonly": True, "fs-write": ["."]}, {}, "", "passwd"),
    ({"fs-write": ["."]}, {}, "--fs-readonly=/", "write"),
    ({"fs-readonly": "/"}, {}, "--fs-write .", ""),
    ({"no-network": False}, {}, "", ""),
    ({"no-network": True}, {}, "--no-subprocess", "local sub"),
]

PROBE = """
import socket, subprocess
def local():
    try: socket.create_connection(("127.0.0.1", 9), 1)
    except ConnectionRefusedError: pass
def sub(): subprocess.run(["true"])
def write(): open("probe", "w").close()
def ctypes(): import ctypes
def passwd(): open("/etc/passwd").close()
for act in (local, sub, write, ctypes, passwd):
    try: act()
    except (PermissionError, ImportError): print(act.__name__)
"""


def as_toml(table):
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


def test_sources_add_up_and_no_allowance_opens_what_a_higher_source_closed(runtime, tmp_path):
    python = PYTHONS[1]
    if "tomllib" not in output_of([python, "-c", "import tomllib; print('tomllib')"], runtime, tmp_path).stdout:
        pytest.skip("no Python that reads TOML is installed")

    def ask(number):
        table, env, line, blocked = CONFIGURED[number]
        here = tmp_path / str(number)
        here.mkdir()
        (here / "probe.py").write_text(PROBE)
        if table and number % 2:
            (here / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.hermetic]\n" + as_toml(table))
        elif table:
            (here / "HERMETIC.toml").write_text(as_toml(table))
        done = hermetic(python, line, "./probe.py", runtime=runtime, cwd=here, env=environment(runtime, **env))
        right = done.stdout.split() == blocked.split() and done.returncode == (2 if blocked else 0)
        return right or (CONFIGURED[number], done)
    with ThreadPoolExecutor(3) as pool:
        wrong = [result for result in pool.map(ask, range(len(CONFIGURED))) if result is not True]
    assert not wrong, wrong


@pytest.mark.parametrize("name, text", [
    ("pyproject.toml", "[tool.hermetic]\nno-netwrok = true\n"), ("pyproject.toml", "[tool.hermetic]\nno-network = 3\n"),
    ("pyproject.toml", "[tool.hermetic\n"), ("HERMETIC.toml", "fs-write = [1]\n"),
    ("pyproject.toml", "[tool]\nhermetic = 3\n"),
    ("HERMETIC.toml", "allow-localhost = 'yes'\n")])
def test_a_configuration_with_a_mistake_is_refused(runtime, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    for python in PYTHONS:
        done = hermetic(python, "", python, "-c", "print('ran')", runtime=runtime, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("hotenv: "), done.stderr


@pytest.mark.parametrize("text, status", [
    ("[project\n", 0), ("[tool.other]\nno-network = true\n", 0),  # of no concern: not even parsed
    ('[tool."\\u0068ermetic"]\nno-network = true\n', 2),
])
def test_a_project_file_counts_where_it_can_speak_of_guards(runtime, tmp_path, text, status):
    python = PYTHONS[1]
    if "tomllib" not in output_of([python, "-c", "import tomllib; print('tomllib')"], runtime, tmp_path).stdout:
        pytest.skip("no Python that reads TOML is installed")
    (tmp_path / "pyproject.toml").write_text(text)
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
    assert hermetic(python, "", python, "-c", code, runtime=runtime, cwd=tmp_path).returncode == status


def test_a_python_without_tomllib_refuses_only_a_file_that_configures_guards(runtime, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'hermetic'\n[tool.black]\nline-length = 99\n# [tool.hermetic]\n")
    (tmp_path / "HERMETIC.toml").write_text("# nothing\n\n")
    for python in PYTHONS:
        assert hermetic(python, "", python, "-c", "print('ran')", runtime=runtime, cwd=tmp_path).stdout == "ran\n"


def test_a_session_cannot_configure_guards_nor_drop_them(project):
    done = as_run(project, b"HERMETIC_FLAGS=--allow-localhost\nHOTENV_GUARDS=\nPYTHONPATH=/nowhere\n", "--no-network",
                  "--trace", "--", PYTHONS[0], "-c", "import socket; socket.create_connection(('127.0.0.1', 9), 1)")
    assert done.returncode == 2 and len(blocked_lines(done)) == 1


def test_paths_with_blanks_and_quotes_survive_the_way_to_a_grandchild(runtime, tmp_path):
    odd = tmp_path / 'a "read": b'
    odd.mkdir()
    code = (f"open({str(odd)!r} + '/in', 'w').close()\n"
            "try:\n    open('/etc/passwd')\nexcept PermissionError:\n    print('ok')")
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], env={{}}, check=False)"
    command = ["hermetic", "--fs-readonly", "--fs-write", str(odd), "--", PYTHONS[0], "-c", parent]
    done = output_of([PYTHONS[0], str(HOTENV), *command], runtime, tmp_path)
    assert done.stdout == "ok\n" and (odd / "in").exists(), done.stderr


# ---- real programs

PROGRAMS = os.environ.get("HOTENV_TEST_PROGRAMS", "")
REAL = [  # guards, command, exit status, a word of its output. http and black come compiled; black wants its cache
    ("", ["http", "--version"], 0, "."), (NET, ["http", "--version"], 0, "."), (SUB, ["http", "--version"], 0, "."),
    (IMP, ["http", "--version"], 2, ""), (ANY, ["http", "--version"], 0, "."),
    (NET, ["http", "--ignore-stdin", "http://0.1.2.3/"], 2, ""),
    (NET, ["http", "--ignore-stdin", "https://example.invalid/"], 2, ""),
    (LOCAL, ["http", "--ignore-stdin", "--body", "http://127.0.0.1:{port}/"], 0, "hello from here"),
    ("--no-network --allow-domain localhost", ["http", "--ignore-stdin", "--body", "http://localhost:{port}/"], 0,
     "hello from here"),
    (NET, ["pip", "--version"], 0, "pip"), (SUB, ["pip", "--version"], 0, "pip"), (IMP, ["pip", "--version"], 0, "pip"),
    (ANY, ["pip", "list"], 0, "pytest"),
    (NET, ["pip", "download", "--no-deps", "--retries=0", "--index-url", "https://0.1.2.3/", "x"], 2, ""),
    (NET, ["black", "--version"], 0, "black"), (IMP, ["black", "--version"], 2, ""),
    (ANY, ["black", "-q", "--diff", "ugly.py"], 2, "x = 1"), (ANY, ["black", "-q", "ugly.py"], 2, ""),
    ("--fs-readonly=/ --fs-write .", ["black", "-q", "ugly.py"], 0, ""),
    (SUB, ["black", "-q", "--check", "ugly.py"], 1, ""),
    (NET, ["pytest", "-q", "test_it.py"], 0, "1 passed"), (SUB, ["pytest", "-q", "test_it.py"], 0, "1 passed"),
    (ANY, ["pytest", "-q", "-s", "-p", "no:cacheprovider", "test_it.py"], 0, "1 passed"),
    (NET, ["pytest", "-q", "test_net.py"], 2, "1 failed"), (IMP, ["pytest", "-q", "test_it.py"], 0, "1 passed")]


@pytest.mark.skipif(not PROGRAMS, reason="HOTENV_TEST_PROGRAMS names no venv with httpie, pytest and black")
def test_real_programs_work_and_are_held(runtime, tmp_path):
    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from here")

        def log_message(self, *args):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bins = PROGRAMS + "/bin"
    pipx = tmp_path / "pipx"
    pipx.mkdir()
    for name in ("http", "pip", "black", "pytest"):  # as pipx installs them: -E
        text = open(f"{bins}/{name}").read().split("\n", 1)
        (pipx / name).write_text(f"#!{bins}/python -E\n{text[1]}")
        (pipx / name).chmod(0o755)

    def go(number):
        guards, command, status, word = REAL[number]
        here = tmp_path / str(number)
        here.mkdir()
        (here / "ugly.py").write_text("x   =  1\n")
        (here / "test_it.py").write_text("def test_one(): assert True\n")
        (here / "test_net.py").write_text(f"def test_one():\n    {CONNECT}\n")
        python, path = [(f"{bins}/python", bins), (PYTHONS[0], bins), (PYTHONS[1], str(pipx))][number % 3]
        env = environment(runtime, PATH=f"{path}:{os.environ['PATH']}", HOME=str(here))
        target = [word.format(port=server.server_port) for word in command]
        target[0] = f"{path}/{target[0]}"
        done = hermetic(python, guards, *target, runtime=runtime, cwd=here, env=env)
        return done.returncode == status and word in done.stdout or (number, REAL[number], done)
    with ThreadPoolExecutor(3) as pool:
        wrong = [result for result in pool.map(go, range(len(REAL))) if result is not True]
    server.shutdown()
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("code, hidden", [
    ("import os; t = os.environ.pop('TOKEN'); os.system('echo ' + t)", "[TOKEN]"),
    ("import os, sqlite3; sqlite3.connect(os.environ['URL'])", "[URL]"),
    ("import os, shlex; os.system('echo ' + shlex.quote(os.environ['QUOTE']))", "[QUOTE]"),
])
def test_a_value_stays_out_of_traces_and_errors_however_it_was_used(project, code, hidden):
    text = b"TOKEN=sk-live-51H8sVq0\nURL=postgres://db.internal/pw-very-1234/\nQUOTE=\"it's-a-secret\"\n"
    done = as_run(project, text, "--no-subprocess", "--fs-readonly", "--trace", "--", sys.executable, "-c", code)
    assert done.returncode == 2 and hidden in done.stderr
    for value in ("sk-live", "pw-very", "a-secret"):
        assert value not in done.stderr.replace(code, "")


def test_in_process_the_target_is_compiled_as_it_is(runtime, tmp_path):
    (tmp_path / "it.py").write_text("def f(x: int): pass\nprint(f.__annotations__)\n")
    done = hermetic(sys.executable, "--no-network", "it.py", runtime=runtime, cwd=tmp_path)
    assert done.stdout == "{'x': <class 'int'>}\n"


def test_a_script_in_the_current_directory_needs_no_slash(runtime, tmp_path):
    (tmp_path / "report.py").write_text("print(__name__)\n")
    done = hermetic(sys.executable, "--no-network", "report.py", runtime=runtime, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__\n")


def test_without_a_guard_it_says_so(runtime, tmp_path):
    done = hermetic(sys.executable, "--allow-localhost", sys.executable, "-c", "pass", runtime=runtime, cwd=tmp_path)
    assert done.returncode == 0 and "no guard is on" in done.stderr


def test_workers_that_are_spawned_may_read_their_script_wherever_it_is(runtime, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "mp.py").write_text("import multiprocessing as m\nif __name__ == '__main__':\n"
                                    "    process = m.get_context('spawn').Process(target=print, args=('worked',))\n"
                                    "    process.start(); process.join(); raise SystemExit(process.exitcode)\n")
    done = hermetic(sys.executable, "--fs-readonly", "../mp.py", runtime=runtime, cwd=tmp_path / "here")
    assert (done.returncode, done.stdout) == (0, "worked\n"), done.stderr


# ==== shell session ===================================================================================================
# One bash after the other: whatever is typed, the session goes on, and says what happened.


@pytest.fixture
def quick(monkeypatch):
    """Less patience with what ignores an interrupt."""
    monkeypatch.setattr(hotenv, "_SHELL_GRACE", 0.4)


@pytest.fixture
def shell(quick, tmp_path):
    """A session of bash with the secrets, in an empty directory."""
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path), timeout=20) as session:
        yield session


def processes_with(mark):
    """The processes whose command line holds `mark`."""
    listing = subprocess.run(["ps", "-Ao", "stat=,pid=,args="], stdout=subprocess.PIPE).stdout
    return [row for row in listing.decode("utf-8", "replace").splitlines()
            if mark in row and not row.startswith("Z") and " ps " not in row]


WHATEVER = object()  # stands for a code, an output or a word that is not said
FUNCTIONS = ("printf command builtin return jobs export unset eval cd alias declare local shopt readonly set trap "
             "exec : true read echo test exit kill compgen __hotenv_probe").split()

# A name, a command, its exit code, its stdout, and what else must be so: `lost` (the shell ended), `late` (a time limit
# of 0.3 s, or of what follows the colon), `cut` (head and tail), a pattern for stderr. What is not said must be plain:
# nothing on stderr, not late, not lost, not cut. After each trial the session must still serve, with its exports.
TRIALS = [
    ("a comment", "# nothing", 0, ""),
    ("a comment behind", "echo a # b", 0, "a\n"),
    ("nothing", "", 0, ""),
    ("blanks", " \t ", 0, ""),
    ("newlines", "\n\n\n", 0, ""),
    ("lines", "echo a\necho b\n\necho c\n", 0, "a\nb\nc\n"),
    ("status of the last line", "echo a\nfalse", 1, "a\n"),
    ("a trailing ampersand", "true &", 0, "", r"\[1\] \d+\n"),
    ("a trailing backslash", "echo a \\", 0, "a \\\n"),
    ("a heredoc", "cat <<X\n$((1+1)) 'b\nX", 0, "2 'b\n"),
    ("a quoted heredoc", "cat <<'X'\n$((1+1))\nX\necho b", 0, "$((1+1))\nb\n"),
    ("an unfinished heredoc", "cat <<X\nabc", 0, "abc\n", "bash: .*here-document"),
    ("reads stdin", "cat", 0, ""),
    ("reads a variable", "read x; echo \"$?[$x]\"", 0, "1[]\n"),
    ("asks in Python", "python3 -c 'input()'", 1, "", "Traceback"),
    ("wants a terminal", "cat /dev/tty", 1, "", "cat: /dev/tty"),
    ("has no terminal", "test -t 0 -o -t 1 -o -t 2", 1, ""),
    ("bad syntax: for", "for i in 1 2", 2, "", "bash: .*syntax error"),
    ("bad syntax: )", ")", 2, "", "bash: .*syntax error"),
    ("bad syntax: }", "}", 2, "", "bash: .*syntax error"),
    ("bad syntax: {", "{ echo a", 2, "", "bash: .*syntax error"),
    ("bad syntax: } and a redirection", "}; } >x; {", 2, "", "bash: .*syntax error"),
    ("bad syntax: if, in line two", "echo a\nif", 2, "a\n", "bash: .*syntax error"),
    ("an open quote", "echo 'a", 2, "", "bash: .*unexpected EOF"),
    ("an open double quote", 'echo "a', 2, "", "bash: .*unexpected EOF"),
    ("an open substitution", "echo $(echo a", WHATEVER, "", "bash: .*unexpected EOF"),
    ("a tab between words", "printf '%s.' a\tb", 0, "a.b."),
    ("a tab in quotes", "printf %s 'a\tb'", 0, "a\tb"),
    ("quotes of all kinds", "echo 'a'\"'\"'b' \\\"c\\\" $'d\\'e'", 0, "a'b \"c\" d'e\n"),
    ("exclamation marks", "echo hi! !! !x '!1'\necho \"!!\"", 0, "hi! !! !x !1\n!!\n"),
    ("history asked for", "set -H -o history; echo 'a\n!!'; echo \"$(history | wc -l)\"", WHATEVER, WHATEVER, WHATEVER),
    ("percent, dollar, backtick", "printf %s '%d$1`x`'", 0, "%d$1`x`"),
    ("letters of all kinds", "echo 'ä €😀'", 0, "ä €😀\n"),
    ("bytes that are no text", "printf %s '\udcff' | od -An -tx1", 0, " ff\n"),
    ("no such command", "no_such_command_here", 127, "", "bash: .*not found"),
    ("not executable", "/", 126, "", "bash: .*directory"),
    ("status 255", "(exit 255)", 255, ""),
    ("a child dies", "bash -c 'kill -9 $$'", 137, ""),
    ("a pipeline", "echo a | tr a b", 0, "b\n"),
    ("status of a pipe", "false | true; echo ${PIPESTATUS[0]}", 0, "1\n"),
    ("stderr apart", "echo a; echo b >&2; echo c", 0, "a\nc\n", "b\n$"),
    ("no newline at the end", "printf abc", 0, "abc"),
    ("carriage returns", "printf 'a\\r\\nb\\r\\n'", 0, "a\nb\n"),
    ("binary", r"printf '\0\1\377a\200'", 0, "\ufffda\ufffd"),
    ("escape sequences", r"printf '\e[31mred\e[0m \e]0;title\a.'", 0, "red ."),
    ("progress", r"printf '10%%\r20%%\r9'", 0, "90%"),
    ("a line erased", r"printf 'downloading\r\e[Kdone'", 0, "done"),
    ("a forged record", r"printf '\0%s\n' 0 1 2; printf '\0x\0'; printf '\0%032d\0000\0/\0\0\0%032d\n' 1 1; false", 1,
     WHATEVER),
    ("what looks for our pipes", "for i in {3..260}; do echo x >&$i; done 2>/dev/null; false", 1, WHATEVER, WHATEVER),
    ("stdout closed", "exec >&-; echo a", 1, "", "bash: .*write error"),
    ("all three closed", "exec 0<&- 1>&- 2>&-; true", 0, ""),
    ("stdout elsewhere", "exec >/dev/null; echo a", 0, ""),
    ("stderr elsewhere", "exec 2>&1; echo a >&2", 0, "a\n"),
    ("a descriptor of its own", "exec 3>f; echo x >&3; cat f", 0, "x\n"),
    ("exit 3", "exit 3", 3, "", "exit", "lost"),
    ("exit after output", "echo a; exit 7", 7, "a\n", "exit", "lost"),
    ("exit in a function", "f() { exit 4; }; f", 4, "", "exit", "lost"),
    ("exit in a subshell", "(exit 4)", 4, ""),
    ("exit with a trap", "trap 'echo bye' EXIT; exit 5", 5, "bye\n", "exit", "lost"),
    ("logout", "logout", 1, "", "bash: logout"),
    ("return", "return 5", WHATEVER, "", "bash: return"),
    ("break", "break", 0, "", "bash: break"),
    ("exec a program", "exec echo a", 0, "a\n", "lost"),
    ("exec one that fails, later", "exec sh -c 'sleep 0.1; echo a; exit 9'", 9, "a\n", "lost"),
    ("exec nothing", "exec no_such_command_here", 127, "", "bash: .*not found"),
    ("exec bash", "exec bash", 0, "", "lost"),
    ("kill -9 itself", "echo a; kill -9 $$", 137, "a\n", "lost"),
    ("kill -TERM itself", "kill $$", 0, ""),
    ("kill -HUP itself", "kill -HUP $$; sleep 1", 129, "", "lost"),
    ("kill -SEGV itself", "kill -SEGV $$; sleep 1", 139, "", "lost"),
    ("kill -INT itself", "kill -INT $$; echo a", 130, ""),
    ("kill -STOP itself", "kill -STOP $$", 124, "", "late", "lost"),
    ("killed by its child", "(sleep 0.05; kill -9 $$) & sleep 30", 137, "", WHATEVER, "lost"),
    ("kill -9 all it may", "kill -9 0", 137, "", "lost"),
    ("set -e, then a failure", "set -e; false; echo no", 1, "", WHATEVER, "lost"),
    ("set -e, and no failure", "set -e; false || true; if false; then :; fi; echo $?", 0, "0\n"),
    ("set -e, interrupted", "set -e; sleep 30", 124, "", "late"),
    ("set -u", "set -u; echo $nothing; echo no", WHATEVER, "", "bash: .*nothing"),
    ("set -f", "set -f; echo *", 0, "*\n"),
    ("set -x", "set -x; echo a", 0, "a\n", r"\++ echo a"),
    ("set -v", "set -v; echo a", 0, "a\n"),
    ("set -n", "set -n; echo a", 0, "a\n"),
    ("set -C", "set -C; echo a", 0, "a\n"),
    ("set -m", "set -m; sleep 0.01; sleep 0.01 | echo a", 0, "a\n"),
    ("set -o posix", "set -o posix; echo a", 0, "a\n"),
    ("set -t", "set -t; echo a", 0, "a\n", WHATEVER, "lost?"),
    ("IFS", "IFS=0123456789x; echo a", 0, "a\n"),
    ("a DEBUG trap", "trap 'echo D; trap - DEBUG' DEBUG; :", 0, "D\n"),
    ("a DEBUG trap that stays", "set -T; trap 'false' DEBUG; echo a", 0, "a\n"),
    ("a DEBUG trap that stops everything", "shopt -s extdebug; trap 'false' DEBUG; echo a", 124, "", "late", "lost"),
    ("an ERR trap", "trap 'echo E' ERR; true", 0, ""),
    ("a RETURN trap", "set -T; trap 'echo R; false' RETURN; echo a", 0, "a\n"),
    ("PROMPT_COMMAND", "PROMPT_COMMAND='echo P; false'; echo a", 0, "a\n"),
    ("PROMPT_COMMAND that reads", "PROMPT_COMMAND='read x; read x'; echo a", 124, "a\n", "late", "lost?"),
    ("prompts", "PS1='$(echo no; exit 3)'; PS4='$(exit 4)'; PS0='$(exit 5)'; echo a", 0, "a\n"),
    ("a handler for what is not found", "command_not_found_handle() { echo H; }; nope", 0, "H\n"),
    ("functions for all builtins", "; ".join(f"function {name} {{ /bin/echo BAD; false; }}" for name in FUNCTIONS[1:]),
     0, ""),
    ("aliases", "alias eval=false builtin=false printf=false {=false", 0, ""),
    ("PWD unset", "unset PWD OLDPWD; echo a", 0, "a\n"),
    ("TMOUT", "TMOUT=1; echo a", 0, "a\n"),
    ("our functions redefined", "__hotenv_end() { :; }; unset -f __hotenv_begin", 1, "",
     "bash: .*__hotenv_end: readonly"),
    ("disowned", "sleep 30 & disown; echo a", 0, "a\n", WHATEVER),
    ("a coprocess", "coproc cat; echo a", 0, "a\n", WHATEVER),
    ("a nested shell that asks", "bash --norc -i", 0, "", WHATEVER),
    ("process substitution", "cat <(echo a)", 0, "a\n"),
    ("time", "time true", 0, "", "\nreal"),
    ("few descriptors", "ulimit -n 250; ls /dev/null", 0, "/dev/null\n"),
    ("umask", "umask 777; echo a", 0, "a\n"),
    ("no PATH", "PATH=; ls", 127, "", "bash: ls"),
    ("sleeps", "echo a; sleep 30; echo no", 124, "a\n", "late"),
    ("a busy loop", "while :; do :; done", 124, "", "late"),
    ("a loop of children", "while :; do sleep 30; done", 124, "", "late"),
    ("a slow pipeline", "sleep 30 | sleep 30; echo no", 124, "", "late"),
    ("a slow subshell", "(sleep 30; echo no); echo no", 124, "", "late"),
    ("a slow script", "bash -c 'sleep 30; echo no'; echo no", 124, "", "late"),
    ("a flood", "yes", 124, WHATEVER, "late", "cut"),
    ("waits for ever", "sleep 30 & wait", 124, "", WHATEVER, "late"),
    ("a fifo", "mkfifo p; cat p", 124, "", "late"),
    ("survives an interrupt", "sh -c 'trap : INT; sleep 30; sleep 30; echo 1'; echo no", 124, "1\nno\n", "late"),
    ("ignores an interrupt", "sh -c 'echo 1; trap \"\" INT; sleep 30'; echo no", 124, "1\n", "late", "lost"),
    ("the shell ignores it", "trap '' INT; sleep 30", 124, "", "late", "lost"),
    ("the shell handles it", "trap 'echo I' INT; sleep 30", 124, WHATEVER, "late"),
    ("exec something slow", "exec sleep 30", 124, "", "late", "lost"),
    ("no time at all", "sleep 30", 124, "", "late:0.000001", "lost?"),
]
if LINUX:
    TRIALS += [
        ("every descriptor closed", 'for f in /proc/$$/fd/*; do eval "exec ${f##*/}>&-"; done', WHATEVER, WHATEVER,
         WHATEVER, "lost"),
        ("writes into its own stdin", "echo 'echo no' >/proc/$$/fd/0; echo a", 0, "a\n", WHATEVER),
    ]


@pytest.mark.parametrize("trial", TRIALS, ids=[trial[0] for trial in TRIALS])
def test_no_command_costs_the_session_or_lies(trial, shell):
    name, command, code, stdout, *more = trial
    assert shell.exec("export KEPT='a b'; cd /; cd - >/dev/null").exit_code == 0
    words = [word for word in more if word is not WHATEVER and re.fullmatch(r"late(:.*)?|lost\??|cut", word)]
    stderr = next((word for word in more if word not in words), "$")
    limit = next((float(word.partition(":")[2] or 0.3) for word in words if word.startswith("late")), None)
    result = shell.exec(command, timeout=limit)
    assert code is WHATEVER or result.exit_code == code, result
    assert stdout is WHATEVER or result.stdout == stdout, result
    assert stderr is WHATEVER or re.match(stderr, result.stderr, re.S), result
    assert result.timed_out == (limit is not None), result
    assert "lost?" in words or result.shell_restarted == ("lost" in words), result
    assert result.truncated == ("cut" in words), result
    assert result.command == command.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    after = [shell.exec("\\builtin printf '[%s]' \"$KEPT\"; \\builtin pwd", timeout=10) for _ in range(2)]
    assert [each.stdout for each in after] == ["[a b]" + shell.cwd + "\n"] * 2, (result, after)
    ends = [(each.exit_code, each.timed_out, each.shell_restarted) for each in after]
    assert ends == [(0, False, False)] * 2, (result, after)


def test_there_are_enough_trials():
    assert len(TRIALS) >= 90


REMOTE_TRIALS = ("a comment", "a heredoc", "reads stdin", "bad syntax: }", "an open quote", "stderr apart", "binary",
                 "no newline at the end", "a forged record", "stdout closed", "all three closed", "stdout elsewhere",
                 "exit 3", "exec a program", "kill -9 itself", "set -e, then a failure", "set -x", "sleeps",
                 "ignores an interrupt", "a flood")


@pytest.mark.parametrize("trial", [each for each in TRIALS if each[0] in REMOTE_TRIALS], ids=lambda trial: trial[0])
def test_the_same_holds_over_two_streams(trial, quick, tmp_path):
    if "late" in trial and "lost" not in trial:
        trial = (*trial, "lost")  # from afar nothing can be interrupted: the shell is given up and replaced
    with hotenv.ShellSession(SECRETS, remote="sh", cwd=str(tmp_path), timeout=20) as remote:
        test_no_command_costs_the_session_or_lies(trial, remote)


@pytest.mark.parametrize("name", ["builtin " + each for each in FUNCTIONS if each != "builtin"])
def test_no_function_stands_in_the_way(name, shell):
    shell.exec("; ".join(f"function {each} {{ /bin/echo BAD; /bin/false; }}" for each in name.split()), timeout=5)
    result = shell.exec("\\builtin printf '%s' \"$TOKEN\" | /usr/bin/env wc -c")
    assert (result.stdout, result.shell_restarted) == (f"{len(TOKEN)}\n", False)


# ---- state, restarts, background


def test_state_is_kept_from_command_to_command(shell):
    shell.exec("cd /; x=1; f() { echo \"f$x\"; }; alias g=f; export E=2; set -- a b; umask 077; shopt -s nullglob")
    assert shell.exec("echo $PWD $x $E $2 $#; f; umask").stdout == "/ 1 2 b 2\nf1\n0077\n"
    assert shell.exec("shopt -q nullglob && f").stdout == "f1\n"
    assert shell.exec("g").stdout == "f1\n"


def test_the_last_status_is_there_for_the_next_command(shell):
    for code in (0, 1, 42, 255):
        shell.exec(f"(exit {code})")
        assert shell.exec("echo $?").stdout == f"{code}\n"
    assert shell.exec("cd /tmp && cd - >/dev/null; echo $?").stdout == "0\n"


@pytest.mark.parametrize("remote", [None, "sh"], ids=["local", "remote"])
def test_a_new_shell_has_directory_and_exports_and_says_that_it_is_new(remote, quick, tmp_path):
    value = "two\nlines 'single' \"double\" $x `y` \\ \t!"
    with hotenv.ShellSession({**SECRETS, "GONE": "12345678"}, remote=remote, cwd=str(tmp_path), timeout=20) as shell:
        shell.exec(f"mkdir 'a b'; cd 'a b'; export KEPT={shlex.quote(value)}; lost=1; f() {{ :; }}; unset GONE; "
                   "export PATH=$PATH:/x")
        assert shell.exec("true").exit_code == 0 and shell.exec("exit 3").shell_restarted
        result = shell.exec("printf %s \"$KEPT\"; echo \"[$lost][${GONE-gone}]\"; pwd; echo \"${PATH##*:}\"; type -t f")
        assert not result.shell_restarted and result.cwd == shell.cwd == str(tmp_path / "a b")
        assert result.stdout == f"{value}[][gone]\n{tmp_path}/a b\n/x\n"
        assert shell.exec("printf %s \"$PEM\" | wc -c").stdout.strip() == str(len(PEM))


@pytest.mark.parametrize("remote", [None, "sh"], ids=["local", "remote"])
@pytest.mark.parametrize("size", [1, 200_000])
def test_a_shell_that_has_died_meanwhile_is_replaced_before_a_command_runs(size, remote, quick, tmp_path):
    with hotenv.ShellSession(SECRETS, remote=remote, cwd=str(tmp_path), timeout=20) as shell:
        shell.exec("export KEPT=x; mkdir d; cd d; (sleep 0.02; echo b; kill -9 $$) & true")
        process = shell._process.pid
        until(lambda: os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        result = shell.exec(f"echo $KEPT; pwd; echo {'x' * size} | wc -c; echo ran >>ran; cat ran")
        assert result.as_dict().items() >= {
            "stdout": f"x\n{tmp_path}/d\n{size + 1}\nran\n", "exit_code": 0, "shell_restarted": True,
            "timed_out": False, "background": "b\n"}.items(), result
        assert not shell.exec("true").shell_restarted


def test_exports_are_noticed_whatever_made_them(shell):
    makers = ["export A=1", "B=2; export B", "declare -x C=3", "set -a; D=4; set +a", "read -r E <<<5; export E",
              "f() { export F=6; }; f", "f2() { export G=7; }", "f2", "alias ex='export H=8'", "ex",
              "printf -v I 9; export I", "echo 'export J=10' >s; . ./s", "A=11", "source ./s2 2>/dev/null; unset B",
              "for C in 12; do :; done", "eval 'export K=13'", "builtin export L=14"]
    for maker in makers:
        shell.exec(maker)
    shell.exec("kill -9 $$")
    assert shell.exec("echo $A,${B-gone},$C,$D,$E,$F,$G,$H,$I,$J,$K,$L").stdout == "11,gone,12,4,5,6,7,8,9,10,13,14\n"


def test_exports_are_listed_only_when_they_may_have_changed(shell):
    for command, listed in (("true", False), ("ls -la /dev/null", False), ("git status", False), ("export A=1", True),
                            ("A=1", True), ("f", True), ("cd /tmp", True), ("ls; B=1", True), ("ls $X", True)):
        assert (hotenv._plain_word(command.encode()) == b"''") == listed or command == "f", command


def test_a_directory_that_is_gone_does_not_keep_a_shell_from_coming_back(shell, tmp_path):
    (tmp_path / "d").mkdir()
    assert shell.exec("cd d; rmdir ../d; kill -9 $$").shell_restarted
    assert shell.exec("echo a").stdout == "a\n"


@pytest.mark.parametrize("name", ["a b", "a'b", "a\nb", "a\x1b[31mb", "-n", "*", "a\\nb", "ä\udcff"])
def test_a_directory_may_have_any_name(name, shell, tmp_path):
    (tmp_path / name).mkdir()
    result = shell.exec(f"cd ./{shlex.quote(name)}")
    assert (result.exit_code, result.cwd) == (0, f"{tmp_path}/{name}")
    assert shell.exec("kill -9 $$").shell_restarted and shell.exec("true").cwd == f"{tmp_path}/{name}"


def test_what_background_jobs_print_is_never_the_next_commands(shell, tmp_path):
    shell.exec("(sleep 0.05; echo late; echo err >&2; touch done) & true")
    until((tmp_path / "done").exists)
    result = shell.exec("echo a")
    assert (result.stdout, result.stderr, sorted(result.background.split())) == ("a\n", "", ["err", "late"])
    assert shell.exec("echo b").background == ""


def test_a_server_in_the_background_survives_a_time_limit(shell):
    server = "import signal, time; signal.signal(2, signal.default_int_handler); time.sleep(60)"
    started = shell.exec(f"python3 -c '{server}' & echo $!")
    pid = int(started.stdout)
    assert shell.exec("sleep 30", timeout=0.2).timed_out
    assert shell.exec(f"kill -0 {pid}").exit_code == 0
    assert shell.exec("sleep 0; jobs -p").stdout == f"{pid}\n"


def test_a_time_limit_interrupts_also_below_a_caller_that_ignores_interrupts():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with hotenv.ShellSession() as shell:
            shell.exec("kept=1")
            assert shell.exec("sleep 30", timeout=0.2).timed_out
            assert shell.exec("echo $kept").stdout == "1\n"  # the same shell
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_pipe_that_fills_while_nobody_reads_holds_up_no_command(shell):
    shell.exec("yes & echo $!")
    for _ in range(3):
        result = shell.exec("echo a >&2")
        assert not result.timed_out and "a\n" in result.stderr and len(result.background) < 200_000
    assert shell.exec("kill %1 2>/dev/null || kill $!").timed_out is False


def test_nothing_runs_on_when_a_session_is_closed(tmp_path):
    mark = f"4{os.getpid()}.{random.randrange(10 ** 6)}"
    with hotenv.ShellSession(cwd=str(tmp_path)) as shell:
        shell.exec(f"sleep {mark} & (sleep {mark} &) ; nohup sleep {mark} & disown; set -m; sleep {mark} & "
                   f"timeout 90 sleep {mark} &")
        until(lambda: len(processes_with("sleep " + mark)) >= 5)
        if LINUX:
            shell.exec("exit")
            until(lambda: not processes_with("sleep " + mark), patience=5)
    until(lambda: not processes_with("sleep " + mark), patience=5)
    with pytest.raises(hotenv.SessionPoisoned):
        shell.exec("echo a")
    shell.close()


ACCOUNTS = """
import os, hotenv
def ours():
    return len(os.listdir("/dev/fd"))
with hotenv.ShellSession(audit="audit") as shell:
    shell.exec("exit")
before = ours()
for remote in (None, "sh", None):
    with hotenv.ShellSession(remote=remote, audit="audit") as shell:
        shell.exec("exit")
        shell.exec("true")
for bad in ({"remote": "/no/such/program"}, {"remote": "false"}, {"cwd": "/no/such/directory"},
            {"audit": "/no/such/directory/audit"}):
    try:
        hotenv.ShellSession(**bad)
    except hotenv.HotenvError:
        print("refused")
print(ours() - before)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
"""


def test_a_session_leaves_no_descriptor_and_no_zombie_behind(tmp_path):
    done = subprocess.run([sys.executable, "-c", ACCOUNTS], cwd=str(tmp_path), stdout=subprocess.PIPE, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.stdout.decode().split("\n") == ["refused"] * 4 + ["0", "no child", ""]


def test_a_session_that_cannot_come_back_says_so_and_refuses(tmp_path):
    door = tmp_path / "door"
    door.write_text("#!/bin/sh\nexec sh\n")
    door.chmod(0o755)
    with hotenv.ShellSession(SECRETS, remote=str(door)) as shell:
        assert shell.exec("echo a").stdout == "a\n"
        door.write_text(f"#!/bin/sh\necho 'bad key {TOKEN}' >&2; exit 7\n")
        assert shell.exec("exit 3").exit_code == 3
        for _ in range(2):
            with pytest.raises(hotenv.SessionPoisoned) as caught:
                shell.exec("echo a")
            assert caught.value.code == 8 and "status 7" in str(caught.value) and "bad key" in str(caught.value)
            assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("options, words", [
    ({"remote": "false"}, "status 1"),
    ({"remote": "no-such-program"}, "No such file"),
    ({"remote": "sh", "cwd": "/no/such"}, "directory"),
    ({"cwd": "/no/such"}, "directory"),
    ({"remote": "sh", "isolated": True}, "isolated"),
    ({"remote": ""}, "command"),
    ({"policy": {"allowed": []}}, "JSON"),
    ({"policy": "/no/such"}, "policy"),
])
def test_a_session_that_cannot_open_says_why(options, words):
    with pytest.raises(hotenv.HotenvError, match=words):
        hotenv.ShellSession(SECRETS, **options)


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800", "x" * (16 << 20) + "y"],
                         ids=["NUL", "surrogate", "size"])
def test_a_command_that_cannot_be_sent_is_refused(command, shell):
    with pytest.raises(hotenv.HotenvError) as caught:
        shell.exec(command)
    assert caught.value.code == 2 and shell.exec("echo a").stdout == "a\n"


def test_a_command_that_is_cut_off_while_the_shell_still_reads_it_runs_not_even_in_part(shell, tmp_path):
    command = ": '\n" + "touch ran\n" * 40_000 + "'"
    for limit in (0.001, 0.004, 0.01, 0.02):
        result = shell.exec(command, timeout=limit)
        assert shell.exec("ls").stdout == "", (limit, result)


def test_a_record_that_an_interrupt_cut_short_is_not_mixed_with_the_next(shell):
    shell.exec("true")
    job, before = hotenv._Job(b"", 0), shell.cwd
    job.record += b"0\0/fal\0%s\0009\0/al\0%s\0" % (job.nonce, job.nonce)
    job.record += b"7\0/true\n\0001 2\0declare -x A=1\n\0%s\n and more" % job.nonce
    assert shell._accept(job) and (job.status, shell.cwd, shell._jobs) == (7, "/true", {1, 2}) and before != "/true"
    for record in (b"", b"x\0/\n\0\0", b"0\0/\n\0x\0", b"0\0/\n\0\0\0"):
        job.record[:] = record + b"\0%s\n" % job.nonce
        assert not shell._accept(job) and shell.cwd == "/true"


def test_two_threads_get_each_their_own_result(shell):
    results = {}

    def work(number):
        results[number] = [shell.exec(f"echo {number}.{step}; echo {number} >&2").stdout for step in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == {number: [f"{number}.{step}\n" for step in range(20)] for number in range(4)}


def test_interrupt_and_close_from_another_thread_end_a_command(shell):
    threading.Timer(0.1, shell.interrupt).start()
    result = shell.exec("echo a; sleep 30")
    assert (result.stdout, result.timed_out, result.exit_code, result.shell_restarted) == ("a\n", True, 124, False)
    threading.Timer(0.1, shell.close).start()
    with pytest.raises(hotenv.SessionPoisoned):
        shell.exec("sleep 30")


def test_an_exception_in_the_caller_leaves_no_output_for_the_next_command(shell):
    def interrupt(number, frame):
        raise KeyboardInterrupt
    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            shell.exec("sleep 0.3; echo old")
    finally:
        signal.signal(signal.SIGALRM, earlier)
    time.sleep(0.3)
    result = shell.exec("echo new")
    assert (result.stdout, result.background, result.shell_restarted) == ("new\n", "", True)


def test_random_commands_with_random_limits_get_only_their_own_results(quick, tmp_path):
    chance = random.Random(SEED)
    shapes = ["echo {n}", "echo {n}; sleep {s}; echo {n}e >&2", "sleep {s}; echo {n}", "sleep {s} & wait; echo {n}",
              "echo {n}; exit {x}", "for i in 1 2 3; do echo {n}; sleep {s}; done",
              "seq {n} {n}; (sleep {s}; exit {x})", "/bin/echo {n} | cat", "echo {n}; (exit {x})",
              "export N={n}; cd /; echo $N", "exec echo {n}", "trap '' INT; echo {n}; trap - INT",
              "python3 -c 'print({n})'", "cat <<X\n{n}\nX", "echo {n}; kill -INT $$", "bash -c 'echo {n}; sleep {s}'",
              "# {n}", "echo '{n}"]
    late = lost = 0
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path)) as shell:
        for step in range(amount(2000)):
            number = 10 ** 9 + step
            command = chance.choice(shapes).format(n=number, s=f"0.0{chance.randrange(30):02}",
                                                   x=chance.randrange(1, 120))
            result = shell.exec(command, timeout=chance.choice((0.0001, 0.001, 0.003, 0.01, 0.03, 5)))
            seen = set(re.findall(r"1\d{9}", result.stdout + result.stderr + result.background))
            assert seen <= {str(number)}, (command, result)
            assert result.timed_out == (result.exit_code == 124), (command, result)
            late, lost = late + result.timed_out, lost + result.shell_restarted
        assert shell.exec("echo alive").stdout == "alive\n"
    assert late and lost


# ---- what a shell is given, and what it leaves


def test_the_shell_gets_the_host_environment_and_the_secrets_over_it(monkeypatch):
    monkeypatch.setenv("FROM_HOST", "host")
    monkeypatch.setenv("TOKEN", "other")
    with hotenv.ShellSession(SECRETS) as shell:
        assert shell.exec("echo $FROM_HOST ${#TOKEN}").stdout == f"host {len(TOKEN)}\n"
        assert shell.unmaskable == ["PIN"] and shell.omitted == []
    with hotenv.ShellSession(SECRETS, isolated=True) as shell:
        assert shell.exec("echo [$FROM_HOST] ${#TOKEN} ${PATH:+path}").stdout == f"[] {len(TOKEN)} path\n"
    with hotenv.ShellSession() as shell:
        assert shell.exec("echo $TOKEN").stdout == "other\n"


@pytest.mark.parametrize("name, value", [
    ("BASH_ENV", "{evil}"),
    ("ENV", "{evil}"),
    ("PROMPT_COMMAND", ". {evil}"),
    ("PS0", "$(. {evil})"),
    ("PS1", "$(. {evil})"),
    ("PS4", "$(. {evil})"),
    ("SHELLOPTS", "xtrace:errexit"),
    ("BASHOPTS", "extdebug"),
    ("TMOUT", "1"),
    ("POSIXLY_CORRECT", "1"),
    ("IGNOREEOF", "9"),
    ("BASH_FUNC_printf%%", "() {{ . {evil}; }}"),
    ("BASH_FUNC_builtin%%", "() {{ . {evil}; }}"),
])
@pytest.mark.parametrize("isolated", [False, True], ids=["host", "given"])
def test_no_variable_makes_the_shell_run_something(name, value, isolated, monkeypatch, tmp_path):
    (tmp_path / "evil").write_text(f"echo evil; touch {tmp_path}/ran")
    value = value.format(evil=tmp_path / "evil")
    given = {name: value} if isolated and not name.startswith("BASH_FUNC") else {}
    if not given:
        monkeypatch.setenv(name, value)
    with hotenv.ShellSession(given) as shell:
        result = shell.exec("set -o | grep -c 'posix.*on'; printf a", timeout=5)
        assert (result.stdout, result.stderr, result.shell_restarted) == ("0\na", "", False)
    assert not (tmp_path / "ran").exists()


def test_no_command_and_no_secret_reaches_a_history_file(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HISTFILE", str(tmp_path / "history"))
    for remote in (None, "sh"):
        with hotenv.ShellSession(SECRETS, remote=remote) as shell:
            shell.exec(f"export X={TOKEN}")
            shell.exec("exit")
            shell.exec("true")
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.skipif(not LINUX, reason="/proc")
@pytest.mark.parametrize("remote", [None, "sh"], ids=["local", "remote"])
def test_no_secret_is_on_an_argv(remote):
    with hotenv.ShellSession(SECRETS, remote=remote) as shell:
        shell.exec("export X=1; kill -9 $$")
        shell.exec("true")
        shell.exec("sleep 60 & true")
        until(lambda: processes_with("sleep 60"))
        seen = b""
        for pid in [shell._process.pid, *hotenv._family(shell._process.pid)]:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                seen += file.read()
        assert b"sleep" in seen and TOKEN.encode() not in seen


def test_a_name_that_a_remote_shell_cannot_take_is_reported():
    with hotenv.ShellSession({"a.b": "12345678", "C": "12345678"}, remote="sh") as shell:
        assert shell.omitted == ["a.b"]
    with hotenv.ShellSession({"a.b": "12345678", "C": "12345678"}) as shell:
        assert shell.omitted == [] and "a.b=[" in shell.exec("env").stdout


# ---- masking and bounding


def test_nothing_that_comes_back_holds_a_value(shell, tmp_path):
    (tmp_path / TOKEN).mkdir()
    result = shell.exec(f"cd {TOKEN}; echo $TOKEN; echo $TOKEN >&2; printf '%s' \"$PEM\"; echo $TOKEN | base64; "
                        f"no_$TOKEN; echo '{TOKEN}'")
    assert TOKEN not in repr(result.as_dict()) and "MIIEvQ" not in result.stdout and "hidden:TOKEN" in result.cwd
    assert all("hidden:TOKEN" in text for text in (result.command, result.stdout, result.stderr))
    shell.exec("(echo $TOKEN; echo x >f) & wait; sleep 0.01; (sleep 0.05; echo $TOKEN; echo x >g) &")
    until((tmp_path / TOKEN / "g").exists)
    assert "hidden:TOKEN" in shell.exec("true").background
    assert TOKEN not in shell.cwd and TOKEN not in repr(result)


@pytest.mark.parametrize("written", [r"\e[1m%s\e[0m", r"%.6s\e[31m%s", r"\r%s", r"%.5s\0%s", r"a\r\n%s\r\n",
                                     r"%.4s\a%s"])
def test_escapes_in_a_value_do_not_hide_it_from_the_mask(written, shell):
    cut = re.search(r"%\.(\d)s", written)
    arguments = [TOKEN, TOKEN[int(cut[1]):]] if cut else [TOKEN]
    result = shell.exec(f"printf '{written}' {' '.join(arguments)}")
    assert "hidden:TOKEN" in result.stdout and TOKEN not in result.stdout and TOKEN[6:] not in result.stdout


def test_a_value_with_control_characters_is_masked_before_they_are_cleaned_away():
    value = "first\x1b[31msecond\x07third\r\nfourth"
    with hotenv.ShellSession({"ODD": value}) as shell:
        result = shell.exec("printf 'a %s b' \"$ODD\"")
        assert result.stdout.startswith("a [hidden:ODD]") and "second" not in result.stdout


def test_wherever_a_text_is_cut_off_no_part_of_a_value_stands_there():
    secret = "".join(random.Random(SEED).choice("abcdefghijklmnop") for _ in range(60))
    redactor, chance = hotenv.Redactor({"LONG": secret}), random.Random(SEED)
    text = b"".join(b"." * chance.randrange(3) + secret.encode() for _ in range(3 + 4 * redactor.longest // 60))
    for at in range(0, 400, 20 // amount(20)):
        for left in (hotenv._mask_piece(redactor, text[at:], "start"),
                     hotenv._mask_piece(redactor, text[:len(text) - at], "end")):
            assert left and not re.search(b"[a-p]{8}", left.replace(b"[hidden:LONG]", b"")), at


@pytest.mark.parametrize("escapes", ["", "\x1b[31m"], ids=["plain", "with escapes"])
def test_no_part_of_a_value_is_left_at_a_cut(escapes):
    secret = "".join(random.Random(SEED).choice("abcdefghijklmnop") for _ in range(120))
    redactor = hotenv.Redactor({"LONG": secret})
    chance = random.Random(SEED)
    for _ in range(amount(2000)):
        room_left = 400 + 4 * redactor.longest + 4096
        kept = hotenv._Kept(room_left)
        text = (escapes + "." * chance.randrange(1, 40) + secret) * chance.choice((1, 3, 9, 30, 200))
        pieces = text.encode()
        while pieces:
            size = chance.randrange(1, 500)
            kept.add(memoryview(pieces)[:size])
            pieces = pieces[size:]
        assert kept.size == len(text) and len(kept.head) + len(kept.tail) <= 3 * room_left + 500
        shown, cut = hotenv._presented(redactor, kept, 400)
        assert cut == (len(text) > 400) or not cut
        assert not any(secret[at:at + 6] in shown for at in range(len(secret) - 5)), shown
        assert not cut or len(shown) > 400


def test_output_is_cut_to_head_and_tail_with_the_exact_count():
    with hotenv.ShellSession(max_output=1000) as shell:
        result = shell.exec("seq 1 100000; seq 1 200 >&2")
        size = sum(len(str(number)) + 1 for number in range(1, 100001))
        assert result.truncated and len(result.stdout) < 1100 and f"[hotenv: {size} bytes in all" in result.stdout
        assert result.stdout.startswith("1\n2\n") and result.stdout.endswith("\n99999\n100000\n")
        assert result.stderr == "".join(f"{number}\n" for number in range(1, 201))
        assert not shell.exec("head -c 1000 /dev/zero | tr '\\0' x").truncated
        assert shell.exec("head -c 1001 /dev/zero | tr '\\0' x").truncated
    with hotenv.ShellSession(max_output=0) as shell:
        assert shell.exec("echo a").stdout.strip().startswith("[hotenv: 2 bytes")


@pytest.mark.skipif(not LINUX, reason="VmHWM")
@pytest.mark.parametrize("flood", ["head -c {} /dev/zero", "yes | head -c {}", "head -c {} /dev/zero >&2"])
def test_memory_stays_flat_however_much_is_printed(flood):
    program = textwrap.dedent("""
        import hotenv, sys
        shell = hotenv.ShellSession({"A": "12345678"})
        def most():
            return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
        shell.exec("yes | head -c 3000000")
        before = most()
        result = shell.exec(sys.argv[1], timeout=60)
        print(most() - before, result.truncated, result.timed_out)
        """)
    done = subprocess.run([sys.executable, "-c", program, flood.format(amount(500) * 1_000_000)], timeout=120,
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(HERE)})
    answer = done.stdout.decode().split()
    assert int(answer[0]) < 4096 and answer[1:] == ["True", "False"], answer


# ---- policy and audit

FIRST_WORDS = [
    ("ls -l", "ls"),
    ("a=1 b=$x ls; rm x", "ls rm"),
    ("if true; then echo a; else rm b; fi", "true echo rm"),
    ("for x in a b; do echo $x; done", "echo"),
    ("for ((i=0;i<3;i++)); do git x; done", "git"),
    ("case $x in a|b) foo;; (c) bar ;; *) baz; esac; qux", "foo bar baz qux"),
    ("case x in esac; ls", "ls"),
    ("f() { rm x; }; f", "rm f"),
    ("f () ( rm x )", "rm"),
    ("function g { ls; }; g", "ls g"),
    ("while read l; do x; done < <(gen)", "read x gen"),
    ("echo $(rm -rf `pwd`)", "echo rm pwd"),
    ("echo \"a $(curl x) b\" 'no $(x)'", "echo curl"),
    ('"$(rm x)" y', "rm $"),
    ("cat <<EOF\nrm this $(sudo x)\nEOF\nls", "cat sudo ls"),
    ("cat <<'EOF'\n$(sudo x)\nEOF\nls", "cat ls"),
    ("cat <<-EOF; mv\n\trm\n\tEOF\nls", "cat mv ls"),
    ("cat <<A <<B\nrm\nA\nrm\nB\nls", "cat ls"),
    ("2>/dev/null ls >x 2>&1 <y", "ls"),
    ("r'm' x; \\rm y; \"rm\" z; r\"\"m; $CMD q", "rm rm rm rm $CMD"),
    ("[[ a && b ]] && c", "c"),
    ("(( i = (2+3)*2 )) && d", "d"),
    ("(rm x)", "rm"),
    ("( (rm x); ls)", "rm ls"),
    ("a=(x y z); ls", "ls"),
    ("declare -a b=(q $(r)); ls", "declare r ls"),
    ("diff <(sort a) <(uniq b)", "diff sort uniq"),
    ("! grep x | tee y |& wc && a || b & c", "grep tee wc a b c"),
    ("time -p make", "make"),
    ("# rm\nls # rm", "ls"),
    ("echo a#b; ls", "echo ls"),
    ("echo ${a:-$(whoami)} $((1+2)) $((a+$(nproc)))", "echo whoami nproc"),
    ("x=$(cmd \"$(inner)\")", "cmd inner"),
    ("{ a; b; } && (c; d)", "a b c d"),
    ("echo a\\\nb; next", "echo next"),
    ("foo&>x; bar &>> y", "foo bar"),
    ("cmd <<< 'rm'; ls", "cmd ls"),
    ("`echo a`", "echo $"),
    ("", ""),
    ("until a; do b; done", "a b"),
    ("\trm", "rm"),
    ("a\nb\n\nc", "a b c"),
    ("echo $'it\\'s'; ls", "echo ls"),
    ('echo "a;b"; ls', "echo ls"),
    ("echo {a,b}; ls", "echo ls"),
    ("/bin/rm x", "/bin/rm"),
    ("echo \"${x:-`rm`}\"", "echo rm"),
    ("echo 'a\nrm\n'; ls", "echo ls"),
    ("echo \"it's\"; rm", "echo rm"),
    ("a && { b || c; } | d", "a b c d"),
    ("coproc rm", "rm"),
]


@pytest.mark.parametrize("command, words", FIRST_WORDS, ids=[repr(each[0]) for each in FIRST_WORDS])
def test_a_policy_sees_the_first_word_of_every_simple_command(command, words):
    assert sorted(hotenv._FirstWords(command).all()) == sorted(words.split())
    for word in set(words.split()):
        assert hotenv._denied({"deny": frozenset([word])}, command)
        assert hotenv._denied({"allow": frozenset(words.split()) - {word}}, command)
    assert not hotenv._denied({"allow": frozenset(words.split()), "deny": frozenset(["no"])}, command)


@pytest.mark.parametrize("command", ["echo '", 'echo "', "echo $(", "echo `", "case x in", ")", "ls !(a)",
                                     "((rm x); ls)", "echo $((rm x); ls)", "${", "$((", "(" * 10000, "[[ a"],
                         ids=lambda command: command[:12])
def test_a_policy_refuses_what_it_cannot_follow(command):
    assert hotenv._denied({"deny": frozenset()}, command) == "its commands cannot be told apart"


def test_reading_for_a_policy_takes_linear_time():
    for piece in ("echo $(", "a;", "'a' ", '"a" ', "# x\n", "`a` ", "<<A\n", "((1)) ", "${a", "\\",
                  "case a in b) c;; esac\n", "a=(", "(", "[[ "):
        begun = time.process_time()
        hotenv._denied({"deny": frozenset()}, piece * (40_000 // len(piece)))
        assert time.process_time() - begun < 1, piece


def test_a_policy_file_allows_and_denies(tmp_path):
    (tmp_path / "policy").write_text('{"allow": ["echo", "export", "cat"], "deny": ["cat"]}')
    with hotenv.ShellSession(SECRETS, policy=str(tmp_path / "policy"), audit=str(tmp_path / "audit")) as shell:
        assert shell.exec("echo a").stdout == "a\n"
        for command, words in ((f"rm {TOKEN}", "rm is not among"), ("echo a; /bin/cat x", "cat is denied"),
                               (f"{TOKEN} x", "hidden:TOKEN"), ("echo '", "told apart")):
            with pytest.raises(hotenv.PolicyDenied, match=words) as caught:
                shell.exec(command)
            assert caught.value.code == 10 and TOKEN not in str(caught.value)
        assert shell.exec("echo b").stdout == "b\n"
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["start", "end"] + ["blocked"] * 4 + ["start", "end"]
    assert lines[2]["command"] == "rm [hidden:TOKEN]" and "rm" in lines[2]["reason"]
    assert TOKEN not in (tmp_path / "audit").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"allow": "ls"}', '{"allow": [1]}', '{"block": []}', '{"deny": null}',
                                  "[" * 100000, '"\\ud800"', "\udcff"])
def test_a_policy_that_cannot_be_understood_is_refused(text, tmp_path):
    (tmp_path / "policy").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(hotenv.HotenvError) as caught:
        hotenv.ShellSession(policy=str(tmp_path / "policy"))
    assert caught.value.code == 2


def test_the_audit_has_a_line_for_the_start_and_the_end_of_every_command(quick, tmp_path):
    path = tmp_path / "audit"
    path.write_text('{"event": "earlier"}\n')
    path.chmod(0o644)
    with hotenv.ShellSession(SECRETS, audit=str(path), cwd=str(tmp_path)) as shell:
        shell.exec(f"echo {TOKEN}\x1b")
        shell.exec("false")
        shell.exec("exit 3")
        shell.exec("sleep 30", timeout=0.1)
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert TOKEN not in text and text.isprintable() is False and all(line.isprintable() for line in text.splitlines())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and lines[0] == {"event": "earlier"}
    pairs = [(event, step) for step in (1, 2, 3, 4) for event in ("start", "end")]
    assert [(line["event"], line["id"]) for line in lines[1:]] == pairs
    assert len({line["session"] for line in lines[1:]}) == 1
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", lines[1]["time"])
    ends = lines[2::2]
    assert [(end["exit_code"], end["timed_out"], end["shell_restarted"]) for end in ends] == [
        (0, False, False), (1, False, False), (3, False, True), (124, True, False)]
    assert ends[0]["cwd"] == str(tmp_path) and "stdout" not in ends[0]
    assert lines[1]["command"] == "echo [hidden:TOKEN]\x1b"


@pytest.mark.parametrize("kind", ["symlink", "hard link", "directory", "fifo", "device", "missing directory"])
def test_an_audit_file_that_is_no_plain_file_of_ours_is_refused(kind, tmp_path):
    path, other = tmp_path / "audit", tmp_path / "other"
    other.write_text("")
    {
        "symlink": lambda: path.symlink_to(other),
        "hard link": lambda: os.link(str(other), str(path)),
        "directory": path.mkdir,
        "fifo": lambda: os.mkfifo(str(path)),
    }.get(kind, lambda: None)()
    target = {"device": "/dev/null", "missing directory": "/no/such/audit"}.get(kind, str(path))
    with pytest.raises(hotenv.HotenvError, match="audit"):
        hotenv.ShellSession(audit=target)
    assert other.read_text() == ""


def test_a_command_whose_audit_line_cannot_be_written_is_refused(tmp_path):
    path = tmp_path / "audit"
    with hotenv.ShellSession(audit=str(path), cwd=str(tmp_path)) as shell:
        shell.exec("true")
        size = path.stat().st_size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            for room_left in (0, 20):
                resource.setrlimit(resource.RLIMIT_FSIZE, (size + room_left, limits[1]))
                with pytest.raises(hotenv.HotenvError, match="cannot write the audit"):
                    shell.exec("touch ran")
            first = len(path.read_bytes().splitlines(True)[0])  # of `true`
            two = first + 5 - 20 + first + 3  # the rest of the line above, and the one for the start of `touch b`
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + two, limits[1]))
            assert shell.exec("touch b").exit_code == 0 and (tmp_path / "b").exists()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not (tmp_path / "ran").exists()
        assert shell.exec("echo a").stdout == "a\n"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ends = [(line["event"], line["id"]) for line in lines[3:]]
    assert ends == [("start", 4), ("end", 4), ("start", 5), ("end", 5)], lines
    assert [line["event"] for line in lines[:3]] == ["start", "end", "start"]


# ---- ssh


def test_a_session_over_ssh_does_what_a_local_one_does(host, quick, tmp_path):
    with hotenv.ShellSession(SECRETS, remote=host.command, cwd=str(tmp_path), timeout=20) as shell:
        result = shell.exec("echo ${#TOKEN}; echo $TOKEN >&2; printf %s \"$PEM\" | wc -c; test -n \"$SSH_CONNECTION\"")
        assert result.as_dict().items() >= {
            "stdout": f"{len(TOKEN)}\n{len(PEM)}\n", "stderr": "[hidden:TOKEN]\n", "exit_code": 0,
            "cwd": str(tmp_path)}.items()
        shell.exec("export KEPT=x; mkdir d; cd d; unset PIN")
        result = shell.exec("echo a; exit 7")
        assert (result.stdout, result.exit_code, result.shell_restarted) == ("a\n", 7, True)
        assert shell.exec("echo $KEPT [${PIN-gone}]; pwd").stdout == f"x [gone]\n{tmp_path}/d\n"
        late = shell.exec("echo a; sleep 47.11", timeout=0.5)
        assert (late.stdout, late.exit_code, late.timed_out, late.shell_restarted) == ("a\n", 124, True, True)
        assert shell.exec("echo $KEPT; pwd").stdout == f"x\n{tmp_path}/d\n"
        if LINUX:
            until(lambda: not processes_with("sleep 47.11"), patience=10)
        assert shell.exec("seq 1 200000 | tail -1; cat").stdout == "200000\n"
        if LINUX:
            with open(f"/proc/{shell._process.pid}/cmdline", "rb") as file:
                assert TOKEN.encode() not in file.read()
        assert not processes_with(TOKEN)


def test_ssh_that_is_turned_away_says_why(host):
    with pytest.raises(hotenv.HotenvError, match="(?i)ended with status 255.*(denied|permission)"):
        hotenv.ShellSession(SECRETS, remote=[*host.command[:-1], "-l", "nobody-here", "host"])


# ==== mcp =============================================================================================================
# What an agent may ask for over stdin, and what it is told.


class Mcp:
    """`hotenv mcp` by raw JSON lines, in a project whose session holds `SECRETS`."""

    def __init__(self, project, *options):
        self.project, self.count = project, 0
        self.start_session(SECRETS)
        self.process = project.start("mcp", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)

    def start_session(self, snapshot):
        self.session = self.project.serve(hotenv._as_dotenv(snapshot).encode(), "--force")

    def stop_session(self):
        self.session.terminate()
        assert self.session.wait(PATIENCE) == 0

    def send(self, *messages):
        data = b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in messages)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self):
        guard = threading.Timer(20, self.process.kill)
        guard.start()
        line = self.process.stdout.readline()
        guard.cancel()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def ask(self, method, number=None, **params):
        self.count += 1
        number = self.count if number is None else number
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == number
        return answer.get("result") or answer.get("error") or answer["result"]

    def call(self, number, name, **arguments):
        """A call that is not waited for."""
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": {"name": name, "arguments": arguments}}

    def tool(self, name, **arguments):
        result = self.ask("tools/call", name=name, arguments=arguments)
        text = result["content"][0]["text"]
        return text if result["isError"] else json.loads(text)


@pytest.fixture
def mcp(project):
    return Mcp(project)


@pytest.fixture(scope="module")
def idle_mcp():
    """A server that many tests ask, and in which none opens a session."""
    holder = Project()
    yield Mcp(holder)
    holder.close()


def test_an_agent_opens_uses_and_closes_a_session(mcp, tmp_path):
    hello = mcp.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                    clientInfo={"name": "t", "version": "1"})
    assert hello["protocolVersion"] == "2025-06-18" and hello["serverInfo"]["name"] == "hotenv"
    assert "tools" in hello["capabilities"]
    mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert mcp.ask("ping") == {}
    opened = mcp.tool("session_open", cwd=str(tmp_path))
    assert opened == {"session": "s1", "cwd": str(tmp_path), "secrets": sorted(SECRETS), "unmaskable": ["PIN"],
                      "not_exported": []}
    result = mcp.tool("session_exec", session="s1", command="export A=1; cd /; echo $TOKEN; echo $TOKEN >&2; false")
    assert list(result) == ["command", "stdout", "stderr", "exit_code", "duration_ms", "cwd", "truncated", "timed_out",
                            "shell_restarted", "background"]
    assert (result["stdout"], result["stderr"]) == ("[hidden:TOKEN]\n", "[hidden:TOKEN]\n")
    assert (result["exit_code"], result["cwd"]) == (1, "/")
    assert mcp.tool("session_exec", session="s1", command="echo $A ${#TOKEN}; sleep 9", timeout=0.2)["exit_code"] == 124
    assert mcp.tool("session_list") == [{"session": "s1", "where": "this machine", "waiting": 0, "cwd": "/"}]
    assert mcp.tool("session_close", session="s1") == {"closed": "s1"} and mcp.tool("session_list") == []
    assert "session_open" in mcp.tool("session_exec", session="s1", command="true")


def test_the_list_of_tools_is_short_and_complete(project):
    server = Mcp(project, "--remote", "web=ssh -T web", "--remote", "db=docker exec -i db bash")
    tools = server.ask("tools/list")["tools"]
    assert len(json.dumps(tools)) < 4096
    assert [tool["name"] for tool in tools] == ["session_open", "session_exec", "session_list", "session_close"]
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)
    assert tools[0]["inputSchema"]["properties"]["remote"]["enum"] == ["db", "web"]


@pytest.mark.parametrize("offered, answered", [
    *((version, version) for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")),
    ("2099-01-01", "2025-11-25"), ("", "2025-11-25"), (None, "2025-11-25"), (7, "2025-11-25"),
])
def test_the_version_is_the_clients_or_our_newest(offered, answered, idle_mcp):
    assert idle_mcp.ask("initialize", protocolVersion=offered, capabilities={})["protocolVersion"] == answered


def test_the_revision_without_a_handshake_is_served_too(idle_mcp):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    found = idle_mcp.ask("server/discover", _meta=meta)
    assert "2026-07-28" in found["supportedVersions"] and found["resultType"] == "complete" and found["ttlMs"] >= 0
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "hotenv"
    assert idle_mcp.ask("tools/list", _meta=meta)["cacheScope"] == "private"
    assert idle_mcp.ask("tools/call", _meta=meta, name="session_list", arguments={})["resultType"] == "complete"
    refused = idle_mcp.ask("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"})
    assert refused["code"] == -32022
    assert refused["data"]["requested"] == "2099-01-01" and "2026-07-28" in refused["data"]["supported"]


BROKEN_LINES = [
    (b"nonsense\n", -32700),
    (b"{\n", -32700),
    (b"\n", -32700),
    (b"\xff\xfe\n", -32700),
    (b"[" * 100000 + b"\n", -32700),
    (b"null\n", -32700),
    (b"[]\n", -32600),
    (b"7\n", -32600),
    (b'"x"\n', -32600),
    (b"{}\n", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600),
    (b'{"jsonrpc":"2.0","id":1}\n', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":5}\n', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}\n', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}\n', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}\n', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["session_list"]}}\n', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","arguments":[1]}}\n', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"x\\u001b[31m\\ud800"}\n', -32601),
]


def test_no_line_upsets_the_server(idle_mcp):
    for line, code in BROKEN_LINES:
        idle_mcp.send(line)
        assert idle_mcp.receive()["error"]["code"] == code, line
    idle_mcp.send(b"x" * (40 << 20) + b"\n")
    assert idle_mcp.receive()["error"]["code"] == -32700
    for silent in ({"jsonrpc": "2.0", "method": "no/such"}, {"jsonrpc": "2.0", "id": 9, "result": {}},
                   {"jsonrpc": "2.0", "method": "notifications/cancelled"},
                   {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
                   {"jsonrpc": "2.0", "method": "x", "params": 3},
                   {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}):
        idle_mcp.send(silent)
    assert idle_mcp.ask("ping", "a string") == {}


def test_a_batch_is_answered_as_one(mcp):
    mcp.tool("session_open")
    mcp.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"},
              5, mcp.call(2, "session_exec", session="s1", command="echo a")])
    answers = {answer["id"]: answer for answer in mcp.receive()}
    assert answers[1]["result"] == {} and answers[None]["error"]["code"] == -32600
    assert json.loads(answers[2]["result"]["content"][0]["text"])["stdout"] == "a\n"
    mcp.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
    assert mcp.ask("ping") == {}


@pytest.mark.parametrize("tool, arguments, words", [
    ("session_exec", {}, "session is missing"),
    ("session_exec", {"session": "s1"}, "command is missing"),
    ("session_exec", {"session": 1, "command": "x"}, "string"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": "9"}, "number"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": -1}, "86400"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": float("nan")}, "86400"),
    ("session_exec", {"session": "s1", "command": "x", "timeout": True}, "number"),
    ("session_exec", {"session": "s1", "command": "x", "shell": "x"}, "no argument shell"),
    ("session_exec", {"session": "s9", "command": "x"}, "session_open"),
    ("session_open", {"remote": "x"}, "no argument remote"),
    ("session_open", {"cwd": "/no/such"}, "no directory"),
    ("session_open", {"isolated": "yes"}, "boolean"),
    ("session_close", {"session": "s9"}, "session_open"),
    ("session_list", {"x": 1}, "no argument"),
    ("session_exec", {"session": "s1", "command": "a\0"}, "session_open"),
])
def test_wrong_arguments_are_explained_to_the_agent(tool, arguments, words, idle_mcp):
    assert words in idle_mcp.tool(tool, **arguments)


def test_a_command_that_runs_holds_up_nothing_else_and_can_be_cancelled(mcp):
    assert mcp.tool("session_open")["session"] == "s1" and mcp.tool("session_open")["session"] == "s2"
    mcp.send(mcp.call("slow", "session_exec", session="s1", command="touch begun; sleep 30; echo slow"),
             mcp.call("queued", "session_exec", session="s1", command="echo queued"),
             mcp.call("never", "session_exec", session="s1", command="touch never"))
    assert mcp.tool("session_exec", session="s2", command="echo quick")["stdout"] == "quick\n" and mcp.ask("ping") == {}
    until((mcp.project.dir / "begun").exists)
    for number in ("never", "slow"):
        mcp.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": number, "reason": "x"}})
    answer = mcp.receive()
    assert answer["id"] == "queued" and '"stdout": "queued\\n"' in answer["result"]["content"][0]["text"]
    assert mcp.tool("session_exec", session="s1", command="echo after")["stdout"] == "after\n"
    assert not (mcp.project.dir / "never").exists()


def test_commands_of_one_session_run_in_order(mcp):
    mcp.tool("session_open")
    mcp.send(*(mcp.call(100 + step, "session_exec", session="s1", command=f"x=$x.{step}; echo $x")
               for step in range(20)))
    texts = [json.loads(mcp.receive()["result"]["content"][0]["text"])["stdout"] for _ in range(20)]
    assert texts == ["".join(f".{step}" for step in range(upto + 1)) + "\n" for upto in range(20)]


def test_a_session_that_is_closed_ends_its_command(mcp):
    mcp.tool("session_open")
    mcp.send(mcp.call("slow", "session_exec", session="s1", command="touch begun; sleep 30"))
    until((mcp.project.dir / "begun").exists)
    mcp.send(mcp.call("close", "session_close", session="s1"))
    answers = {answer["id"]: answer["result"] for answer in (mcp.receive(), mcp.receive())}
    assert answers["slow"]["isError"] and not answers["close"]["isError"]


def test_when_the_hotenv_session_has_ended_its_shells_are_closed_and_the_agent_is_told(mcp):
    mcp.tool("session_open")
    mark = f"5{os.getpid()}"
    mcp.tool("session_exec", session="s1", command=f"sleep {mark} & true")
    until(lambda: processes_with("sleep " + mark))
    mcp.stop_session()
    told = mcp.tool("session_exec", session="s1", command="echo $TOKEN")
    assert "s1" in told and "serve" in told and "session_open" in told
    until(lambda: not processes_with("sleep " + mark), patience=10)
    assert mcp.tool("session_list") == [] and "serve" in mcp.tool("session_open")
    mcp.start_session({"OTHER": "another value"})
    assert mcp.tool("session_open")["secrets"] == ["OTHER"]


def test_each_shell_has_the_snapshot_of_its_own_time(mcp):
    mcp.tool("session_open")
    (mcp.project.dir / ".hotenv").unlink()  # so that the next session stands beside this one
    mcp.start_session({"TOKEN": "another new value"})
    mcp.tool("session_open")
    show = "printf '%s.' ${#TOKEN}; echo $TOKEN"
    assert mcp.tool("session_exec", session="s1", command=show)["stdout"] == f"{len(TOKEN)}.[hidden:TOKEN]\n"
    assert mcp.tool("session_exec", session="s2", command=show)["stdout"] == "17.[hidden:TOKEN]\n"


def test_a_client_that_does_not_read_keeps_no_shell_alive(mcp):
    mark = f"7{os.getpid()}{random.randrange(10 ** 6)}"
    mcp.tool("session_open")
    mcp.tool("session_exec", session="s1", command=f"sleep {mark} & true")
    flood = "head -c 90000 /dev/zero | tr '\\0' a"
    mcp.send(*[mcp.call(number, "session_exec", session="s1", command=flood) for number in range(100, 106)])
    until(lambda: select.select([mcp.process.stdout], [], [], 0)[0], "an answer, which nobody reads")
    mcp.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    mcp.process.terminate()
    assert mcp.process.wait(10) == 0 and not processes_with("sleep " + mark)


@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT", "SIGHUP"])
def test_however_it_ends_its_shells_end_with_it(end, mcp):
    mark = f"6{os.getpid()}{random.randrange(10 ** 6)}"
    mcp.tool("session_open")
    mcp.tool("session_exec", session="s1", command=f"sleep {mark} & true")
    mcp.send(mcp.call(1, "session_exec", session="s1", command=f"sleep {mark}; true"))
    until(lambda: len(processes_with("sleep " + mark)) == 2)
    mcp.process.stdin.close() if end == "eof" else mcp.process.send_signal(getattr(signal, end))
    assert mcp.process.wait(10) == 0 and not processes_with("sleep " + mark)
    assert mcp.process.stderr.read() == b""


def test_nothing_but_answers_is_on_stdout_and_no_value_anywhere(project, tmp_path):
    server = Mcp(project, "--audit", str(tmp_path / "audit"), "--remote", "here=sh", "--remote",
                 f"bad=sh -c 'echo {TOKEN} >&2; exit 1'")
    seen = [server.ask("initialize"), server.ask("tools/list")]
    for arguments in ({}, {"remote": "here"}, {"remote": "bad"}, {"isolated": True},
                      {"remote": "here", "isolated": True}):
        seen.append(server.tool("session_open", **arguments))
    for session in ("s1", "s2", "s4"):
        for command in ("env", "set", "cat /proc/$$/environ", "echo $TOKEN >/dev/stderr", "export -p", "cd $TOKEN",
                        "echo $PEM | base64", "exit 3", "env"):
            seen.append(server.tool("session_exec", session=session, command=command))
    server.process.stdin.close()
    seen.append(server.process.stdout.read().decode() + server.process.stderr.read().decode())
    seen.append((tmp_path / "audit").read_text())
    for value in (TOKEN, "MIIEvQIBADANBgkq", "p%40ss w@h"):
        assert value not in json.dumps(seen)
    assert seen[-2] == "" and '"event": "end"' in seen[-1]


def test_policy_and_audit_hold_for_agents(project, tmp_path):
    (tmp_path / "policy").write_text('{"deny": ["rm"]}')
    server = Mcp(project, "--policy", str(tmp_path / "policy"), "--audit", str(tmp_path / "audit"))
    server.tool("session_open")
    assert "rm is denied" in server.tool("session_exec", session="s1", command="echo a; rm b")
    assert server.tool("session_exec", session="s1", command="echo a")["stdout"] == "a\n"
    lines = (tmp_path / "audit").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["blocked", "start", "end"]


@pytest.mark.parametrize("option", ["--policy", "--audit"])
def test_a_server_with_a_bad_policy_or_audit_does_not_start(option, project, tmp_path):
    (tmp_path / "bad").mkdir()
    server = Mcp(project, option, str(tmp_path / "bad"))
    assert server.process.wait(20) == 8 and b"bad" in server.process.stderr.read()


def mcp_python():
    """The interpreter of a virtual environment with the official client, or None."""
    python = os.path.join(os.environ.get("HOTENV_TEST_MCP", "/no/such"), "bin", "python")
    return python if os.path.exists(python) else None


OFFICIAL_CLIENT = """
import asyncio, json, sys, warnings
warnings.simplefilter("ignore")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def use(call, tools):
    names = [tool.name for tool in tools.tools]
    assert names == ["session_open", "session_exec", "session_list", "session_close"], names
    opened = json.loads((await call("session_open", {})).content[0].text)
    result = await call("session_exec", {"session": opened["session"], "command": "echo $TOKEN; echo $((6*7)); exit 3"})
    failed = await call("session_exec", {"session": "s9", "command": "true"})
    seen = json.loads(result.content[0].text)
    assert (getattr(failed, "isError", None) or getattr(failed, "is_error", None)) is True
    await call("session_close", {"session": opened["session"]})
    return [opened["secrets"], seen["stdout"], seen["exit_code"]]

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            await session.send_ping()
            print(json.dumps([getattr(hello, "protocolVersion", None) or hello.protocol_version,
                              await use(session.call_tool, await session.list_tools())]))
    try:
        from mcp import Client
    except ImportError:
        return
    async with Client(stdio_client(server)) as client:
        print(json.dumps([client.protocol_version, await use(client.call_tool, await client.list_tools())]))

asyncio.run(main())
"""


@pytest.mark.skipif(not mcp_python(), reason="HOTENV_TEST_MCP names no venv with the mcp package")
def test_the_official_client_gets_along_with_it(project):
    project.serve(hotenv._as_dotenv(SECRETS).encode())
    answer = subprocess.run([mcp_python(), "-c", OFFICIAL_CLIENT, sys.executable, str(HOTENV), "mcp"],
                            cwd=str(project.dir), timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert answer.returncode == 0, answer.stderr.decode()[-3000:]
    heard = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [each[1] for each in heard] == [[sorted(SECRETS), "[hidden:TOKEN]\n42\n", 3]] * len(heard)
    assert {each[0] for each in heard} <= {*hotenv._MCP_HANDSHAKE, hotenv._MCP_STATELESS} and heard


# ==== terminal ========================================================================================================
# What is asked for on a terminal, and how it is left behind.


class Shell:
    """The program as an interactive shell starts it: on a terminal, in its own process group, input from a file."""

    def __init__(self, project, args, text, foreground=True, patch=None):
        (project.root / "input").write_bytes(text)
        self.terminal, self.slave = pty.openpty()
        self.settings = termios.tcgetattr(self.slave)
        self.reports, report = os.pipe()
        order, self.orders = os.pipe()
        self.leader = os.fork()
        if not self.leader:
            try:
                self._lead(project, project.command(args, patch), foreground, report, order)
            finally:
                os._exit(99)
        os.close(report)
        os.close(order)
        self.pid = int(self.report())

    def _lead(self, project, command, foreground, report, order):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        for end in (self.reports, self.orders, self.terminal):
            os.close(end)
        child = os.fork()
        if not child:
            try:
                os.setpgid(0, 0)
                if foreground:
                    os.tcsetpgrp(self.slave, os.getpid())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                os.dup2(os.open(str(project.root / "input"), os.O_RDONLY), 0)
                os.dup2(self.slave, 1)
                os.dup2(self.slave, 2)
                os.closerange(3, 256)
                os.chdir(str(project.dir))
                os.execve(command[0], command, project.env)
            finally:
                os._exit(98)
        os.write(report, b"%d\n" % child)
        while True:
            status = os.waitpid(child, os.WUNTRACED)[1]
            os.tcsetpgrp(self.slave, os.getpid())
            if not os.WIFSTOPPED(status):
                os.write(report, b"%d\n" % (-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)))
                os.read(order, 1)  # a shell lives on until the terminal is closed
                return
            os.write(report, b"stopped\n")
            os.read(order, 1)
            os.tcsetpgrp(self.slave, child)
            os.kill(-child, signal.SIGCONT)

    def report(self):
        """What the leader says next: "stopped", an exit status, or a signal's number, negative."""
        if not select.select([self.reports], [], [], PATIENCE)[0]:
            pytest.fail("waited in vain for a report")
        return os.read(self.reports, 100).decode().strip()

    def ended(self):
        """The exit status, or the number of the signal, negative. From now on the pid may be somebody else's."""
        status, self.pid = int(self.report()), None
        return status

    def bring_to_the_foreground(self):
        os.write(self.orders, b"f")

    def type(self, text):
        os.write(self.terminal, text)

    def seen(self, what):
        return read_until(self.terminal, what)

    def echoes(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def restored(self):
        return termios.tcgetattr(self.slave) == self.settings

    def hang_up(self):
        """The terminal's window is closed: its leader gets SIGHUP, and so does whoever is in its foreground."""
        for end in (self.terminal, self.slave, self.orders, self.reports):
            os.close(end)
        os.kill(self.leader, signal.SIGHUP)
        os.waitpid(self.leader, 0)
        self.leader = None

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        if self.leader:
            self.hang_up()


@pytest.fixture
def prompting(project):
    made = []

    def make(*args, text=b"A=?First\n", **options):
        made.append(Shell(project, ["serve", "--prompt", *args], text, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_answers_are_typed_without_echo_in_file_order_before_anything_is_created(project, prompting):
    text = b"""A=?First question
LIT='?x'
DQ="?y"
B=?
C="${A}-${B}"
D=${B:-dflt}
E=  ?The last  # a comment
"""
    asking = prompting("--background", text=text)
    seen = asking.seen(b"First question: ")
    assert not asking.echoes() and project.files() == []
    if LINUX:
        children = Path("/proc/%d/task/%d/children" % (asking.pid, asking.pid))
        assert not children.exists() or children.read_text() == ""
    asking.type(b"s3cr3t answer\n")
    seen += asking.seen(b"value: ")
    assert not asking.echoes() and project.files() == []
    asking.type(b"\n")
    seen += asking.seen(b"The last: ")
    asking.type("s3cr3t \u00e9 ' \" ${A} #x\n".encode())
    assert asking.ended() == 0 and asking.restored()
    assert b"s3cr3t" not in seen + asking.seen(b"\n")
    assert project.dump() == {b"A": b"s3cr3t answer", b"LIT": b"?x", b"DQ": b"?y", b"B": b"", b"C": b"s3cr3t answer-",
                              b"D": b"dflt", b"E": "s3cr3t \u00e9 ' \" ${A} #x".encode()}


def test_without_prompt_a_question_is_a_literal(project):
    project.serve(b"A=?First\n")
    assert project.dump() == {b"A": b"?First"}


def test_a_foreground_session_asks_too_and_leaves_the_terminal_as_it_was(project, prompting):
    asking = prompting()
    asking.seen(b"First: ")
    asking.type(b"x\n")
    asking.seen(b"ready: 1 variable")
    assert asking.restored() and project.dump() == {b"A": b"x"}
    asking.type(b"\x03")
    assert asking.ended() == 0 and project.files() == ["r/hotenv"] and asking.restored()


def test_a_prompt_is_escaped(project, prompting):  # invariant 10
    asking = prompting("--background", text="A=?x\x1b[2J\u202ey\x07\x9b1m\n".encode())
    assert b"x\\x1b[2J\\u202ey\\x07\\x9b1m: " in asking.seen(b": ")
    asking.type(b"1\n")
    assert asking.ended() == 0


@pytest.mark.parametrize("how, number", [
    (b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT), (None, signal.SIGTERM), (None, signal.SIGHUP),
    (None, signal.SIGINT),
])
def test_a_signal_while_asking_leaves_nothing_and_restores_the_terminal(project, prompting, how, number):
    asking = prompting("--background", text=b"A=?First\nB=?Second\n")
    asking.seen(b"First: ")
    asking.type(b"s3cr3t\n")
    asking.seen(b"Second: ")
    assert not asking.echoes()
    if how:
        asking.type(b"half" + how)
    else:
        os.kill(asking.pid, number)
    assert asking.ended() == -number
    assert asking.restored() and project.files() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_keep_the_terminal_from_being_restored(project, prompting, number):
    patch = ("import os\nhotenv._unfold('terminal')\nreal = hotenv._Terminal._restore\n"
             "def restore(self):\n    os.kill(os.getpid(), {0})\n    sum(range(1000))\n    real(self)\n"
             "hotenv._Terminal._restore = restore").format(int(number))
    asking = prompting("--background", patch=patch)
    asking.seen(b"First: ")
    os.kill(asking.pid, signal.SIGHUP)
    assert asking.ended() in (-signal.SIGHUP, -number)
    assert asking.restored() and project.files() == []


def test_a_stop_restores_the_terminal_and_a_continue_asks_again_without_echo(project, prompting):
    asking = prompting("--background")
    asking.seen(b"First: ")
    for _ in range(2):
        asking.type(b"ha\x1a")
        assert asking.report() == "stopped"
        assert asking.restored() and project.files() == []
        asking.bring_to_the_foreground()
        asking.seen(b"First: ")
        assert not asking.echoes()
    asking.type(b"answer\n")
    assert asking.ended() == 0 and asking.restored()
    assert project.dump() == {b"A": b"answer"}


def test_the_terminal_is_restored_where_the_session_is_refused_after_a_question(project, prompting):
    asking = prompting("--background", text=b"A=?First\nB=${A:?}\n")
    asking.seen(b"First: ")
    asking.type(b"\n")
    assert asking.ended() == 7 and asking.restored() and project.files() == []


def test_nobody_is_asked_where_there_is_no_terminal(project):
    done = project.hotenv("serve", "--prompt", input=b"A=?First\n", start_new_session=True)
    assert "terminal" in refusal(done, 8) and project.files() == []


def test_nobody_is_asked_from_the_background(project, prompting):
    asking = prompting(foreground=False)
    assert "foreground" in asking.seen(b"\n").decode()
    assert asking.ended() == 8 and asking.restored() and project.files() == []


def test_input_that_is_wrong_is_refused_before_anybody_is_asked(project, prompting):
    asking = prompting(text=b"A=?First\nB\n")
    assert b"First: " not in asking.seen(b"\n") and asking.ended() == 7 and project.files() == []


def test_an_answer_that_is_no_utf8_arrives_to_the_byte(project, prompting):
    asking = prompting("--background")
    asking.seen(b"First: ")
    asking.type(b"\xff\xfe\n")
    assert asking.ended() == 0
    assert project.dump() == {b"A": b"\xff\xfe"} and project.run("printenv", "A").stdout == b"\xff\xfe\n"
    done = project.hotenv("dump", "--format", "dotenv")
    assert " A" in refusal(done, 2) and done.stdout == b""  # text alone goes through a dotenv file


def test_a_session_in_the_background_survives_its_terminal(project, prompting):
    started = prompting("--background")
    started.seen(b"First: ")
    started.type(b"1\n")
    assert started.ended() == 0
    server = project.server_pid()
    assert os.getsid(server) == server
    started.hang_up()
    assert project.dump() == {b"A": b"1"} and project.run("printenv", "A").stdout == b"1\n"


# ==== formats =========================================================================================================
# How an environment is printed: what each format carries, and what it refuses.


def test_dump_prints_names_and_values(project):
    project.serve("A=1\nB='two\nlines'\nEMPTY=\nC=\u00e9\nA=2\n".encode())
    for options in ([], ["--format", "plain"]):
        assert project.hotenv("dump", *options).stdout == "A=2\nB=two\nlines\nEMPTY=\nC=\u00e9\n".encode()


NASTY = {"A": "a'b\"c\\d`e$f!g", "B": "two\nlines\n", "C": "\r\n\r", "D": " lead and trail ", "E": "",
         "F": "${A} \\${A} #x",
         "G": "\u00e9\u20ac\U0001f511", "H": "\t\x01\x7f", "I": "\\", "J": "'", "K": "?ask", "L": "-n",
         "M": "\\r\r'\\'"}


def test_every_format_is_lossless(project, answerer):
    path = answerer(json.dumps({"env": NASTY}).encode() + b"\n").path

    def dump(form):
        done = project.hotenv("dump", "--socket", path, "--format", form)
        assert done.stderr == b"" and done.returncode == 0
        return done.stdout

    assert dict(pair.split("=", 1) for pair in dump("nul").decode().split("\0") if pair) == NASTY
    assert json.loads(dump("json").decode()) == NASTY
    assert hotenv.parse_dotenv(dump("dotenv").decode(), {"A": "not this"}) == NASTY
    assert dump("names").decode().split("\n") == list(NASTY) + [""]
    show = b"for n in A B C D E F G H I J K L M; do eval printf '%s\\\\0' \\\"\\$$n\\\"; done\n"
    shell = b"unset A\n" + dump("sh") + show
    for name in ("sh", "bash"):
        if shutil.which(name):
            done = subprocess.run([name], input=shell, stdout=subprocess.PIPE, env=project.env, timeout=PATIENCE)
            assert done.stdout.decode().split("\0")[:-1] == list(NASTY.values())


@pytest.mark.parametrize("form, env", [
    ("sh", {"A-B": "1"}), ("sh", {"A.B": "1"}), ("sh", {"1A": "1"}), ("sh", {"A B": "1"}), ("sh", {"\u00c9": "1"}),
    ("sh", {"UID": "1"}),
    ("dotenv", {"A B": "1"}), ("dotenv", {"\u00c9": "1"}), ("dotenv", {"A": "\udcff"}), ("dotenv", {"A\n": "1"}),
    ("names", {"A\nB": "1"}),
], ids=short)
def test_a_format_refuses_what_it_cannot_carry(project, answerer, form, env):
    path = answerer(json.dumps({"env": {"FINE": "1", **env}}).encode() + b"\n").path
    done = project.hotenv("dump", "--socket", path, "--format", form)
    assert done.stdout == b""  # half of an environment is worse than none
    assert hotenv._shown(list(env)[0]) in refusal(done, done.returncode) and done.returncode


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_8_and_a_closed_pipe_is_no_error(project):
    project.serve(b"A=" + b"x" * 200000 + b"\n")
    with open("/dev/full", "wb") as full:
        refusal(project.hotenv("dump", stdout=full), 8)
    reader, writer = os.pipe()
    os.close(reader)
    done = project.hotenv("dump", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    head = subprocess.run(["sh", "-c", '"$@" | head -c 1', "sh", *project.command(["dump"])], cwd=str(project.dir),
                          env=project.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert (head.stdout, head.stderr) == (b"A", b"")


def test_only_names_what_there_is(session):
    assert session.hotenv("dump", "--only", "A,E*").stdout == b"A=1\nEMPTY=\n"
    for wrong in ("X", "A,X", "", "A,,B", "Z*", "\x1b"):
        refusal(session.hotenv("dump", "--only", wrong), 2)


PIECES = ["'", '"', "\\", "`", "$", "${", "${A}", "$(", "}", "#", " #", "\n", "\r", "\r\n", "\t", "\v", "\f", "\x1c",
          "\x85", "\xa0", "\u2028", "\u3000", "\ufeff", "\x1b[31m", "=", " ", "export ", "?", "!", "~", "*", "%", "a",
          "Zz", "0", "\u00e9", "\u20ac", "\U0001f511", "\x7f", *map(chr, range(1, 32))]


def random_values(count):
    dice = random.Random(SEED)
    values = ["", *PIECES, *[each * 2 for each in PIECES], *["x" + each for each in PIECES],
              *[each + "x" for each in PIECES]]
    while len(values) < count:
        values.append("".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 12))))
    return {"V%d" % number: value for number, value in enumerate(values)}


def written(env):
    """Dotenv text for these values, in another way than hotenv's own."""
    def quoted(value):
        for plain, escape in (("\\", "\\\\"), ('"', '\\"'), ("\r", "\\r"), ("${", "\\${")):
            value = value.replace(plain, escape)
        return '"%s"' % value
    return "".join("%s=%s\n" % (name, quoted(value)) for name, value in env.items()).encode()


@pytest.fixture(scope="module")
def odd():
    """A session with whatever a value may hold."""
    shared = Project()
    shared.values = random_values(amount(8000))
    shared.serve(written(shared.values), "--timeout", "1h")
    assert json.loads(shared.ask().decode())["env"] == shared.values
    yield shared
    shared.close()


def dumped(project, form, *options):
    done = project.hotenv("dump", "--format", form, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_nul_names_and_plain_carry_everything(odd):
    assert json.loads(dumped(odd, "json").decode()) == odd.values
    pairs = "".join("%s=%s\0" % pair for pair in odd.values.items())
    assert dumped(odd, "nul") == pairs.encode()
    assert dumped(odd, "names").decode().split("\n") == [*odd.values, ""]
    assert dumped(odd, "plain") == odd.hotenv("dump").stdout == pairs.replace("\0", "\n").encode()


def test_dotenv_goes_back_through_our_parser_to_the_same_values(odd, project):
    text = dumped(odd, "dotenv")
    assert hotenv.parse_dotenv(text, {"A": "host"}) == odd.values
    project.serve(text)
    assert json.loads(project.ask().decode())["env"] == odd.values


def test_dotenv_goes_back_through_python_dotenv_to_the_same_values(odd):
    dotenv = pytest.importorskip("dotenv", reason="needs python-dotenv")
    if dotenv.dotenv_values(stream=io.StringIO("A='\\\\'\nB='b'\n")) != {"A": "\\", "B": "b"}:
        pytest.skip("this python-dotenv is an old one, whose quoted values cannot end in a backslash")
    text = dumped(odd, "dotenv").decode()
    plain = {name: value for name, value in odd.values.items() if "${" not in value or "\r" not in value}
    found = dotenv.dotenv_values(stream=io.StringIO(text, newline=""), interpolate=False)
    assert {name: found.get(name) for name in plain} == plain
    simple = {name: value for name, value in odd.values.items() if "${" not in value}
    found = dotenv.dotenv_values(stream=io.StringIO(hotenv._as_dotenv(simple), newline=""))
    assert dict(found) == simple


def shells():
    """Those that are there, each once: sh is one of the others, as a rule."""
    found = {}
    for name in ("sh", "dash", "bash", "zsh"):
        path = shutil.which(name)
        found.setdefault(path and os.path.realpath(path) or name, (name, path))
    return [pytest.param(name, marks=[] if path else pytest.mark.skip(reason="there is no %s here" % name))
            for name, path in found.values()]


def evaluated(project, shell, text):
    """The environment of a shell that has evaluated this."""
    (project.root / "eval").write_bytes(text)
    flags = ["-f"] if shell == "zsh" else []
    script = 'eval "$(cat "$1")" && exec %s -0' % ENV
    done = subprocess.run([shell, *flags, "-c", script, shell, str(project.root / "eval")], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, timeout=PATIENCE)
    return environment_of(done)


@pytest.mark.parametrize("shell", shells())
def test_sh_goes_through_eval_to_the_same_values(odd, project, shell):
    found = evaluated(project, shell, dumped(odd, "sh"))
    expected = {name.encode(): value.encode() for name, value in odd.values.items()}
    assert {name: value for name, value in found.items() if name in expected} == expected


NAMES = {
    "sh": "set | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'",
    "dash": "set | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'",
    "bash": "compgen -v; compgen -k; compgen -b",
    "zsh": "for m in parameter complist computil datetime files mapfile mathfunc net/socket net/tcp sched stat system "
           "terminfo termcap watch zftp zle zleparameter zprof zpty zselect; do zmodload zsh/$m 2>/dev/null; done; "
           "print -l ${(k)parameters} ${(k)builtins} ${(k)reswords}",
}


@pytest.mark.parametrize("shell", shells())
def test_sh_carries_every_name_but_the_listed_ones(project, shell):
    flags = ["-f"] if shell == "zsh" else []
    told = subprocess.run([shell, *flags, "-c", NAMES[shell]], stdout=subprocess.PIPE, timeout=PATIENCE).stdout.decode()
    known = """IFS PS1 PS2 PS3 PS4 PATH HOME ENV BASH_ENV MAIL MAILPATH CDPATH OPTARG OPTERR PWD OLDPWD TERM LANG LC_ALL
        LC_CTYPE TMOUT HISTFILE HISTFILESIZE HISTCONTROL HISTIGNORE FCEDIT EDITOR VISUAL POSIXLY_CORRECT REPLY ZDOTDIR
        FPATH MANPATH PROMPT PROMPT2 prompt NULLCMD READNULLCMD HISTCHARS histchars TZ IGNOREEOF INPUTRC GLOBIGNORE
        EXECIGNORE TIMEFORMAT COMP_WORDS COMPREPLY COPROC MAPFILE HOSTFILE NODE_OPTIONS LD_LIBRARY_PATH A a _1 __ A1 Z9_
        x if for do done time""".split()
    known += list("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    own = set(hotenv._SHELL_OWN.split())
    names = [name for name in sorted({*told.split(), *known}) if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)
             and name not in own]
    env = {name: "17 'x' $y " + name for name in names if name not in ("PATH", "LC_ALL")}
    found = evaluated(project, shell, hotenv._as_sh(env).encode() + b"hash -r 2>/dev/null || :\n")
    assert {name: found.get(name.encode()) for name in env} == {name: value.encode() for name, value in env.items()}


def test_the_listed_names_are_refused_by_name(project):
    own = hotenv._SHELL_OWN.split()
    assert len(own) == len(set(own)) > 50 and {"UID", "PPID", "status", "SHELLOPTS"} <= set(own)
    for name in own:
        with pytest.raises(hotenv.HotenvError, match="cannot carry %s:" % name) as caught:
            hotenv._as_sh({"A": "1", name: "s3cr3t"})
        assert caught.value.code == 2 and "s3cr3t" not in str(caught.value)
    project.serve(b"A=1\nUID=s3cr3t\na.b=2\nc-d=3\n1E=4\n")
    done = project.hotenv("dump", "--format", "sh")
    assert "cannot carry UID:" in refusal(done, 2) and done.stdout == b""
    for name in ("a.b", "c-d", "1E"):
        assert "cannot carry %s:" % name in refusal(project.hotenv("dump", "--format", "sh", "--only", name), 2)
    assert project.hotenv("dump", "--format", "sh", "--only", "A").stdout == b"export A='1'\n"


@pytest.mark.parametrize("form, name, value", [
    ("dotenv", "a b", "1"), ("dotenv", "\u00e9", "1"), ("dotenv", "A\nB", "1"), ("dotenv", "A", "\\udcff"),
    ("sh", "a b", "1"), ("sh", "\u00e9", "1"), ("sh", "A;echo", "1"), ("names", "A\nB", "1"),
])
def test_what_a_format_cannot_carry_is_refused_by_name(project, answerer, form, name, value):
    """A server of ours makes no such names; another implementation may."""
    fake = answerer(b'{"env":{"A":"s3cr3t","%s":"s3cr3t%s"}}\n' % (name.replace("\n", "\\n").encode(), value.encode()))
    done = project.hotenv("dump", "--format", form, "--socket", fake.path)
    message = refusal(done, 2)
    assert name.replace("\n", "\\n") in message and form in message and "s3cr3t" not in message and done.stdout == b""
    found = dict(pair.split(b"=", 1) for pair in dumped(project, "nul", "--socket", fake.path).split(b"\0") if pair)
    assert os.fsencode(name) in found


# ==== daily use =======================================================================================================
# status, stop, other sockets, the background, shellenv, a session on another host, and the README's recipes.


# ---- status


def test_status_tells_what_is_live_and_asks_nothing(project):
    server = project.serve(b"A=s3cr3t\n", "--timeout", "5m", stderr=subprocess.PIPE)
    below = project.dir / "below"
    below.mkdir()
    ends = project.ends_at()
    done = project.hotenv("status", "--json", cwd=str(below))
    found = json.loads(done.stdout.decode())
    assert done.returncode == 0 and done.stderr == b""
    assert found == {"live": True, "socket": project.socket_path(), "marker": str(project.marker), "pid": server.pid,
                     "since": project.marker.stat().st_mtime, "ends": ends}
    assert abs(found["since"] - time.time()) < PATIENCE and 270 < ends - time.time() <= 300
    shown = project.hotenv("status").stdout.decode()
    assert shown.startswith("live\n") and "s3cr3t" not in shown
    for piece in (project.socket_path(), str(project.marker), "pid %d" % server.pid, "in 4m",
                  time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ends))):
        assert piece in shown
    assert project.ends_at() == ends  # the timer runs on
    assert project.run("true").returncode == 0 and project.ends_at() > ends
    server.terminate()
    assert server.wait(PATIENCE) == 0
    assert server.stderr.read().decode().split()[2:] == ["run", "true"]  # and that is all there is in the log


def test_status_where_there_is_no_session(project):
    done = project.hotenv("status")
    assert "serve <" in refusal(done, 3) and done.stdout == b""
    done = project.hotenv("status", "--json")
    assert "serve <" in refusal(done, 3)
    assert json.loads(done.stdout.decode()) == {"live": False, "socket": None, "marker": None, "pid": None,
                                                "since": None, "ends": None}


def test_status_where_the_session_died(project):
    server = project.serve()
    path = project.socket_path()
    server.kill()
    server.wait()
    assert path in refusal(project.hotenv("status"), 4)
    done = project.hotenv("status", "--json")
    refusal(done, 4)
    assert json.loads(done.stdout.decode()) == {"live": False, "socket": path, "marker": str(project.marker),
                                                "pid": None, "since": None, "ends": None}


@pytest.mark.parametrize("named", ["--socket", "HOTENV_SOCKET"])
def test_status_of_a_named_socket(project, daily, named):
    path = daily.socket_path()
    if named == "--socket":
        done = project.hotenv("status", "--json", "--socket", path)
    else:
        done = project.hotenv("status", "--json", env={"HOTENV_SOCKET": path})
    found = json.loads(done.stdout.decode())
    assert (found["live"], found["socket"], found["marker"], found["since"]) == (True, path, None, None)
    assert found["pid"] == daily.server.pid and found["ends"] == os.stat(path).st_mtime


# ---- stop


@pytest.mark.parametrize("patch", [None, "import os\nif hasattr(os, 'pidfd_open'): del os.pidfd_open"],
                         ids=["as it is", "without pidfds"])
def test_stop_returns_when_the_files_are_gone(project, patch):
    assert project.hotenv("serve", "--background", input=b"A=1\n").returncode == 0
    server = project.server_pid()
    done = project.hotenv("stop", patch=patch)
    assert project.files() == ["r/hotenv"]
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def gone():
        try:
            return os.kill(server, 0) or LINUX and "State:\tZ" in Path("/proc/%d/status" % server).read_text()
        except OSError:
            return True

    until(gone, "the end of the server")
    refusal(project.hotenv("stop"), 3)


def test_stop_ends_the_nearest_session_and_no_other(project, daily):
    below = project.dir / "a" / "b"
    below.mkdir(parents=True)
    outer = project.serve(b"A=outer\n")
    assert project.hotenv("serve", "--background", input=b"A=inner\n", cwd=str(below.parent)).returncode == 0
    assert project.hotenv("stop", cwd=str(below)).returncode == 0
    assert project.dump(cwd=str(below)) == {b"A": b"outer"} and daily.server.poll() is None
    assert project.hotenv("stop", cwd=str(below)).returncode == 0
    assert outer.wait(PATIENCE) == 0


@pytest.mark.parametrize("named", ["--socket", "HOTENV_SOCKET"])
def test_stop_ends_the_session_that_is_named(project, named):
    server = project.serve()
    path = project.socket_path()
    options, env = (["--socket", path], {}) if named == "--socket" else ([], {"HOTENV_SOCKET": path})
    assert project.hotenv("stop", *options, env=env, cwd="/").returncode == 0
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"]


def test_stop_of_what_a_dead_server_left(project):
    server = project.serve()
    server.kill()
    server.wait()
    before = project.files()
    assert "--force" in refusal(project.hotenv("stop"), 4) and project.files() == before
    project.serve(b"A=2\n", "--force")
    assert project.dump() == {b"A": b"2"}


def test_stop_of_a_server_that_is_stopped_says_so(project):
    server = project.serve()
    server.send_signal(signal.SIGSTOP)
    try:
        message = refusal(project.hotenv("stop", patch="hotenv.EXCHANGE_TIME = 0.2"), 8)
    finally:
        server.send_signal(signal.SIGCONT)
    assert "stopped" in message
    assert server.wait(PATIENCE) == 0 and project.files() == ["r/hotenv"]


FAKE = """
import socket, sys
if sys.argv[2]:
    open("/proc/self/comm", "w").write(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(16)
held = []
print("up", flush=True)
while True:
    held.append(listener.accept()[0])
    if sys.argv[3] == "closes":
        held.pop().close()
"""


def fake_server(project, name, behaviour):
    path = str(project.root / "fake.sock")
    process = subprocess.Popen([sys.executable, "-c", FAKE, path, name, behaviour], stdout=subprocess.PIPE)
    project.started.append(process)
    assert process.stdout.readline() == b"up\n"
    project.marker.write_bytes(b"socket=" + os.fsencode(path) + b"\n")
    return process


@only_linux
@pytest.mark.parametrize("name", ["", "ssh", "hotenv2", "xhotenv"])
def test_stop_spares_a_process_that_is_not_ours(project, name):
    fake = fake_server(project, name, "holds")
    message = refusal(project.hotenv("stop"), 8)
    assert "forwarded" in message and "where the session was started" in message
    assert "forwarded" in project.hotenv("status").stdout.decode()
    assert fake.poll() is None and project.marker.exists()


@only_linux
@pytest.mark.parametrize("without", ["", "import os\nif hasattr(os, 'pidfd_open'): del os.pidfd_open\n"],
                         ids=["as it is", "without pidfds"])
def test_stop_spares_a_process_whose_connection_has_ended(project, without):
    """By then the number may be somebody else's."""
    fake = fake_server(project, "hotenv", "closes")
    patch = without + ("import select\nreal = hotenv._peer\n"
                       "def peer(sock):\n    found = real(sock)\n    select.select([sock], [], [], 30)\n"
                       "    return found\n"
                       "hotenv._peer = peer")
    refusal(project.hotenv("stop", patch=patch), 8)
    assert fake.poll() is None


@only_linux
@pytest.mark.parametrize("pid", [0, -1, 1])
def test_stop_never_signals_groups_or_init(project, pid):
    fake_server(project, "hotenv", "holds")
    patch = ("import os\nreal = hotenv._peer\nhotenv._peer = lambda sock: (%d, real(sock)[1])\n"
             "def never(*a): os.write(2, b'signalled'); os._exit(77)\n"
             "os.kill = hotenv._signal.pidfd_send_signal = never\n"
             "import builtins, io, signal\nsignal.pidfd_send_signal = never\nopened = open\n"
             "def fake(path, *a):\n"
             "    return io.BytesIO(b'hotenv\\n') if str(path).endswith('/comm') else opened(path, *a)\n"
             "builtins.open = fake" % pid)
    assert "signalled" not in refusal(project.hotenv("stop", patch=patch), 8)


@only_root
def test_stop_of_another_users_session_is_refused(project):
    server = project.serve()
    path = project.socket_path()
    for part in (project.root, project.base, project.runtime):
        part.chmod(0o755)
    os.chmod(path, 0o666)

    def stop():
        return hotenv.main(["stop", "--socket", path])

    assert in_child(stop, uid=4242) == 8 and server.poll() is None


# ---- which session


def test_socket_option_then_variable_then_marker(project, daily):
    project.serve(b"A=marker\n")
    other = Project()
    try:
        other.serve(b"A=variable\n")
        named = daily.socket_path()
        variable = {"HOTENV_SOCKET": other.socket_path()}
        assert project.dump("--socket", named, env=variable) == SNAPSHOT
        assert project.dump(env=variable) == {b"A": b"variable"}
        assert project.dump(env={"HOTENV_SOCKET": ""}) == {b"A": b"marker"}  # empty is unset
        assert project.dump() == {b"A": b"marker"}
        assert project.run("printenv", "A", env=variable).stdout == b"variable\n"
        assert project.hotenv("run", "--socket", named, "--", "printenv", "API_KEY",
                              env=variable).stdout == b"s3cr3t-1\n"
        assert "/nowhere" in refusal(project.hotenv("dump", env={"HOTENV_SOCKET": "/nowhere"}), 4)
    finally:
        other.close()


def test_serve_heeds_no_socket_from_outside(project, daily):
    server = project.serve(b"A=1\n", env={"HOTENV_SOCKET": daily.socket_path()})
    assert project.dump() == {b"A": b"1"} and server.poll() is None
    assert project.hotenv("serve", "--socket", "/x", input=b"").returncode == 2


@only_root
def test_a_session_of_another_user_is_believed_by_its_number(project):
    for module in ("argparse", "difflib"):
        __import__(module)  # another user may not be able to read this interpreter's library
    for part in (project.root, project.dir, project.base):
        os.chown(str(part), 4242, 4242)
    (project.root / "input").write_bytes(b"A=1\n")
    server = os.fork()
    if not server:
        try:
            if LINUX:  # after setuid this is root's file, until the next exec
                Path("/proc/self/comm").write_text("hotenv")
            os.setgroups([])
            os.setgid(4242)
            os.setuid(4242)
            os.setsid()
            os.dup2(os.open(str(project.root / "input"), os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            os.chdir(str(project.dir))
            os.environ["XDG_RUNTIME_DIR"] = str(project.base)
            os._exit(hotenv.main(["serve"]))
        finally:
            os._exit(99)
    stopper = threading.Thread(target=os.waitpid, args=(server, 0))
    try:
        path = until(lambda: project.marker.exists() and project.socket_path(), "a marker")
        for command in (["dump"], ["status"], ["stop"], ["run", "--", "echo", "ran"]):
            done = project.hotenv(*command[:1], "--socket", path, *command[1:])
            assert "--peer-uid 4242" in refusal(done, 9) and done.stdout == b""
        refusal(project.hotenv("dump"), 8)  # the marker is a stranger's too
        believed = ["--socket", path, "--peer-uid", "4242"]
        assert project.dump(*believed) == {b"A": b"1"}
        assert project.hotenv("run", *believed, "--", "printenv", "A").stdout == b"1\n"
        refusal(project.hotenv("dump", "--socket", path, "--peer-uid", "4243"), 9)
        assert project.hotenv("dump", "--peer-uid", "me").returncode == 2
        assert json.loads(project.hotenv("status", "--json", *believed).stdout.decode())["pid"] == server
        stopper.start()
        assert project.hotenv("stop", *believed).returncode == 0
        stopper.join(PATIENCE)
        assert not stopper.is_alive() and not os.path.exists(path)
    finally:
        if stopper.ident is None:
            stopper.start()
        if stopper.is_alive():
            os.kill(server, signal.SIGKILL)
        stopper.join(PATIENCE)


# ---- in the background


def test_background_returns_when_requests_are_accepted(project):
    for attempt in range(amount(60)):
        done = project.hotenv("serve", "--background", input=b"A=%d\n" % attempt)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert b'"A":"%d"' % attempt in project.ask()  # at once; and its caller's pipes were not kept open
        server = project.server_pid()
        assert os.getsid(server) == server
        assert project.hotenv("stop").returncode == 0


@pytest.mark.parametrize("text, options, env, code", [
    (b"A\n", [], {}, 7), (b"A=1\n", [], {"XDG_RUNTIME_DIR": "/dev/null"}, 8),
    (b"A=1\n", ["--timeout", "0"], {}, 2), (b"A=1\n", ["--log", "missing/log"], {}, 8),
])
def test_background_returns_with_what_went_wrong(project, text, options, env, code):
    done = project.hotenv("serve", "--background", *options, input=text, env=env)
    assert done.stderr.count(b"hotenv: ") == 1
    refusal(done, code)
    assert project.files() == []


def test_a_background_start_whose_caller_is_killed_leaves_nothing(project):
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "new")
    patch = ("import os, signal, time\nreal, caller = hotenv._SessionFiles.publish, os.getpid()\n"
             "def publish(*a):\n    os.kill(caller, signal.SIGKILL)\n"
             "    while os.getppid() == caller: time.sleep(0.001)\n    return real(*a)\n"
             "hotenv._SessionFiles.publish = publish")
    started = project.start("serve", "--background", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, patch=patch)
    said = started.stderr.read()  # until the session has ended as well
    assert started.wait(PATIENCE) == -signal.SIGKILL and b"Traceback" not in said
    assert project.files() == []


def test_background_refuses_where_a_session_is_and_leaves_it_alone(project):
    project.serve(b"A=old\n")
    assert "still answers" in refusal(project.hotenv("serve", "--background", input=b"A=new\n"), 10)
    assert project.dump() == {b"A": b"old"}


def test_background_holds_neither_the_directory_nor_inherited_descriptors(project):
    reading, writing = os.pipe()
    done = project.hotenv("serve", "--background", input=b"A=1\n", pass_fds=[writing])
    assert done.returncode == 0
    os.close(writing)
    server = project.server_pid()
    try:
        assert os.readlink("/proc/%d/cwd" % server) == "/"
    except OSError:
        pass  # not ours to look at, as it should be
    os.close(reading)
    assert project.dump() == {b"A": b"1"}


def test_the_log_of_a_background_session(project):
    log = project.dir / "a log"
    log.write_bytes(b"before\n")
    log.chmod(0o666)
    done = project.hotenv("serve", "--background", "--verbose", "--log", "a log", input=b"A=1\n",
                          preexec_fn=lambda: os.umask(0))
    assert done.returncode == 0 and stat.S_IMODE(log.stat().st_mode) == 0o600
    assert project.run("echo", "x y").stdout == b"x y\n"
    lines = log.read_bytes().splitlines()
    assert lines[0] == b"before" and lines[1].endswith(b" run echo x y") and len(lines) == 2
    assert project.hotenv("stop").returncode == 0 and log.read_bytes().splitlines() == lines


def test_a_new_log_is_private_whatever_the_umask(project):
    done = project.hotenv("serve", "--background", "--log", str(project.root / "log"), input=b"A=1\n",
                          preexec_fn=lambda: os.umask(0o777))
    assert done.returncode == 0 and stat.S_IMODE((project.root / "log").stat().st_mode) == 0o600


def log_link(path):
    path.with_name("target").write_bytes(b"precious\n")
    path.symlink_to("target")


def log_dangling_link(path):
    path.symlink_to("nowhere")


def log_fifo(path):
    os.mkfifo(str(path))


def log_fifo_with_a_reader(path):
    os.mkfifo(str(path))
    return os.open(str(path), os.O_RDONLY | os.O_NONBLOCK)


def log_directory(path):
    path.mkdir()


@pytest.mark.parametrize("plant", [log_link, log_dangling_link, log_fifo, log_fifo_with_a_reader, log_directory])
def test_a_log_goes_to_a_file_and_never_through_a_link(project, plant):
    reader = plant(project.dir / "log")
    before = project.files()
    assert "log" in refusal(project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n"), 8)
    assert project.files() == before
    assert not (project.dir / "target").exists() or (project.dir / "target").read_bytes() == b"precious\n"
    if reader is not None:
        os.close(reader)


def test_log_goes_with_background(project):
    assert "--background" in refusal(project.hotenv("serve", "--log", "x", input=b"A=1\n"), 2)
    assert project.files() == []


def test_background_returns_once_requests_are_accepted(project):
    done = project.hotenv("serve", "--background", input=b"A=1\n", timeout=10)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert project.dump() == {b"A": b"1"}
    server = project.server_pid()
    assert os.getsid(server) == server  # of its own: no terminal's hang-up reaches it
    if LINUX:
        assert Path("/proc/%d/comm" % server).read_text() == "hotenv\n"
        assert not ROOT or os.readlink("/proc/%d/cwd" % server) == "/"
    os.kill(server, signal.SIGTERM)
    until(lambda: project.files() == ["r/hotenv"], "the session's end")


def test_background_logs_where_it_is_told(project):
    log = project.dir / "requests.log"
    done = project.hotenv("serve", "--background", "--verbose", "--log", "requests.log", input=b"A=1\n",
                          preexec_fn=lambda: os.umask(0))
    assert done.returncode == 0 and stat.S_IMODE(log.stat().st_mode) == 0o600
    project.run("true", "and more")
    assert [line[20:] for line in log.read_text().splitlines()] == ["run true and more"]


@pytest.mark.parametrize("text, options, code", [
    (b"nonsense\n", [], 7), (b"A=1\n", ["--log", "/nowhere/log"], 8), (b"A=1\n", ["--log", "link"], 8),
    (b"A=1\n", ["--log", "fifo"], 8), (b"A=1\n", ["--log", "/dev/null"], 8),
], ids=short)
def test_background_returns_what_went_wrong(project, text, options, code):
    (project.dir / "link").symlink_to("target")
    os.mkfifo(str(project.dir / "fifo"))
    before = project.files()
    refusal(project.hotenv("serve", "--background", *options, input=text), code)
    assert project.files() == before


def test_a_background_start_that_fails_late_leaves_a_log_only_where_one_was(project):
    project.runtime.symlink_to("/tmp")
    before = project.files()
    refusal(project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n"), 8)
    assert project.files() == before
    (project.dir / "log").write_text("kept\n")
    refusal(project.hotenv("serve", "--background", "--log", "log", input=b"A=1\n"), 8)
    assert (project.dir / "log").read_text() == "kept\n"


def test_background_reports_a_failure_of_the_child(project):
    project.runtime.symlink_to("/tmp")
    refusal(project.hotenv("serve", "--background", input=b"A=1\n"), 8)
    project.runtime.unlink()
    patch = "import os\ndef stop(*a): os.kill(os.getpid(), 15)\nhotenv._raise_descriptor_limit = stop"
    assert project.hotenv("serve", "--background", input=b"A=1\n", patch=patch).returncode in (-15, 15, 143)
    assert project.files() == ["r/hotenv"] or project.files() == []
    project.serve()
    refusal(project.hotenv("serve", "--background", input=b"A=1\n"), 10)


# ---- a vendored copy


@pytest.fixture(scope="module")
def vendored():
    """A copy in a directory with an awkward name, beside files named like modules of the standard library."""
    shared = Project()
    shared.tools = shared.root / "it's a \"dir\" $HOME `x` \\ \u00e9"
    shared.tools.mkdir()
    shutil.copy(str(HOTENV), str(shared.tools / "hotenv.py"))
    source = HOTENV.read_text(encoding="utf-8")
    imports = re.findall(r"^\s*(?:import|from) ([a-z_.]+(?:, [a-z_]+)*)", source, re.MULTILINE)
    modules = {name.split(".")[0] for names in imports for name in names.split(", ")}
    modules |= {"enum", "tokenize", "linecache", "gettext"}
    early = subprocess.run([sys.executable, "-c", "import runpy, sys; print(*sys.modules)"],
                           stdout=subprocess.PIPE).stdout.decode()
    # What `-m` itself imports comes before any line of ours, and so does __future__.
    for name in modules - {"hotenv", "__future__", *early.split()}:
        planted = "open('%s/imported', 'a').write('%s ')\nraise SystemExit('planted')\n" % (shared.root, name)
        (shared.tools / (name + ".py")).write_text(planted)
    yield shared
    shared.close()


@pytest.mark.parametrize("how", ["by its path", "as a module"])
def test_neighbours_named_like_the_standard_library_do_not_matter(vendored, how):
    cwd = vendored.tools if how == "as a module" else vendored.dir
    program = {"by its path": [str(vendored.tools / "hotenv.py")], "as a module": ["-m", "hotenv"]}[how]

    def tool(*args, **more):
        return subprocess.run([sys.executable, *program, *args], cwd=str(cwd), env=vendored.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE, **more)

    for args in (["serve", "--background"], ["run", "--", "true"], ["dump", "--format", "json"], ["status"], ["stop"],
                 ["shellenv"], ["--help"]):
        done = tool(*args, input=b"A=1\nB=\"${A}\"\n")
        assert done.returncode == 0 and done.stderr == b"", (args, done.stderr)
        assert not (vendored.root / "imported").exists()


@pytest.mark.parametrize("shell", shells())
def test_shellenv_defines_a_function_that_runs_this_very_file(vendored, daily, shell):
    flags = ["-f"] if shell == "zsh" else []
    script = """
        eval "$("$1" "$2/hotenv.py" shellenv)" || exit 99
        cd "$3" || exit 98
        hotenv --version
        hotenv run -- printf '<%s>' "a b" '' "it's" '$x' '*' -- --help
        hotenv run -- sh -c 'exit 7'; echo "status $?"
        echo "from stdin" | hotenv run -- cat
        hotenv stop --nonsense; echo "status $?"
    """
    done = subprocess.run([shell, *flags, "-uc", script, shell, sys.executable, str(vendored.tools), str(daily.dir)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=daily.env, timeout=PATIENCE, cwd="/")
    assert done.stdout.decode() == ("hotenv %s\n<a b><><it's><$x><*><--><--help>status 7\nfrom stdin\nstatus 2\n"
                                    % hotenv.__version__), done.stderr
    assert done.stderr.decode().startswith("hotenv: stop: ") and "see: hotenv stop --help" in done.stderr.decode()
    assert not (vendored.root / "imported").exists()


def test_shellenv_names_this_very_interpreter_isolated(vendored):
    done = subprocess.run([sys.executable, str(vendored.tools / "hotenv.py"), "shellenv"], stdout=subprocess.PIPE,
                          env=vendored.env)
    words = shlex.split(done.stdout.decode())
    assert words[:2] == ["hotenv()", "{"] and os.path.normpath(words[2]) == os.path.normpath(sys.executable)
    assert {"-I", "-S"} == set(words[3:5])
    assert "path.append" in words[6] and done.stdout.count(b"\n") == 1


def test_shellenv_starts_from_the_compiled_file(vendored):
    """Shown by a compiled file that is another program, and is not checked against its source."""
    tools = vendored.root / "compiled"
    tools.mkdir()
    shutil.copy(str(HOTENV), str(tools / "hotenv.py"))
    run = ["sh", "-c", 'eval "$("$0" "$1/hotenv.py" shellenv)"; hotenv --version', sys.executable, str(tools)]
    assert subprocess.run(run, stdout=subprocess.PIPE, env=vendored.env).stdout.startswith(b"hotenv ")
    compiled, = (tools / "__pycache__").glob("hotenv.*.pyc")
    (tools / "other.py").write_text("def main():\n    print('from the compiled file')\n")
    py_compile.compile(str(tools / "other.py"), cfile=str(compiled),
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert subprocess.run(run, stdout=subprocess.PIPE, env=vendored.env).stdout == b"from the compiled file\n"


# ---- a session on another host


def recipe(beginning):
    """The lines of the README's block that begins like this."""
    found = [block for block in readme_blocks() if block.startswith(beginning)]
    assert len(found) == 1, "the README has %d blocks that begin with %r" % (len(found), beginning)
    return found[0].splitlines()


def test_a_session_is_forwarded_to_another_host_as_the_readme_shows(project, host):
    project.serve(b"API_KEY=abc123\n")
    far = str(project.root / "far away")
    os.mkdir(far)
    lines = recipe("ssh host 'mkdir")
    prompt = "host$ "
    here = [line for line in lines if not line.startswith(prompt)]
    there = [line[len(prompt):] for line in lines if line.startswith(prompt)]
    assert len(there) == 1 and there[0].startswith("hotenv run --socket ~/.hotenv-forward/")
    bin_dir = stand_ins(project, {"ssh": 'exec %s -F "%s/ssh_config" "$@"\n' % (shutil.which("ssh"), host.root)})
    forward = str(project.root / "forward")

    def ours(line):
        return line.replace("~/.hotenv-forward", forward).replace("/home/me/.hotenv-forward", forward)

    (Path(far) / "deploy.sh").write_text("#!/bin/sh\necho key $API_KEY\nhotenv status --socket %s/s.sock\n" % forward +
                                         "hotenv stop --socket %s/s.sock; echo stop $?\n" % forward)
    (Path(far) / "deploy.sh").chmod(0o755)
    session = "PATH='%s':$PATH\ncd '%s'\n%s\n" % (bin_dir, far, ours(there[0]))
    env = {**project.env, "PATH": "%s:%s" % (bin_dir, project.env["PATH"]), "SOCKET": project.socket_path()}
    for _ in range(2):  # and again, with what the first time left there
        for line in here:  # the last one opens a shell on the other host
            done = subprocess.run(["sh", "-c", ours(line)], env=env, cwd=str(project.dir), timeout=PATIENCE,
                                  input=session.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            seen = done.stdout.decode()
            assert done.returncode == 0, seen
        assert "key abc123\n" in seen, seen
        assert "live\n" in seen and "forwarded" in seen and "ends    unknown" in seen and "stop 8\n" in seen, seen
        assert stat.S_IMODE(os.stat(forward).st_mode) == 0o700
    assert project.dump() == {b"API_KEY": b"abc123"}  # it lives on


# ---- the README


def readme_blocks():
    """The indented code blocks of the README, without their indentation."""
    blocks, block = [], []
    text = re.sub(r"(?ms)^```.*?^```$", "", (HERE / "README.md").read_text(encoding="utf-8"))  # fenced: configuration
    for line in text.splitlines() + [""]:
        if line.startswith("    ") or (block and not line):
            block.append(line[4:])
        elif block:
            blocks.append("\n".join(block).strip("\n"))
            block = []
    return blocks + (["\n".join(block).strip("\n")] if block else [])


def stand_ins(project, programs):
    """A directory with `hotenv`, `python3` and these scripts."""
    directory = project.root / "stand-ins"
    directory.mkdir(exist_ok=True)
    python = shlex.quote(sys.executable)
    for name, body in {"hotenv": 'exec %s %s "$@"\n' % (python, shlex.quote(str(HOTENV))),
                       "python3": 'exec %s "$@"\n' % python,
                       **programs}.items():
        (directory / name).write_text(body if body.startswith("#!") else "#!/bin/sh\n" + body)
        (directory / name).chmod(0o755)
    return str(directory)


# What `docker run` does that matters here: names of variables become variables, mounted paths what is mounted there.
DOCKER = r'''#!/bin/sh
exec %s - "$@" <<'END'
import os, sys
words, env, mounts = sys.argv[2:], {"PATH": os.environ["PATH"]}, []
while words[0].startswith("-"):
    option = words.pop(0)
    if option == "-e":
        name, equals, value = words.pop(0).partition("=")
        env[name] = value if equals else os.environ[name]
    elif option == "-v":
        mounts.append(words.pop(0).split(":")[:2])
image = words.pop(0)
for outside, inside in mounts:
    words = [word.replace(inside, outside) for word in words]
    env = {name: value.replace(inside, outside) for name, value in env.items()}
os.execvpe(words[0], words, env)
END
'''
NC = r'''#!/bin/sh
exec %s -c 'import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[2])
client.sendall(sys.stdin.buffer.read())
sys.stdout.buffer.write(client.makefile("rb").read())' "$@"
'''
README_SECRETS = "API_KEY=abc123\nAWS_ID=1\nAWS_KEY=2\nDATABASE_URL=postgres://db/app\n"
# Those of the guards and of mcp are tried in their own sections.
ANOTHER_ROOM = re.compile(r"hotenv (?:hermetic|mcp)\b|^\{")
NOT_RUN = {  # how a block begins that is not run here, and why
    "python3 -m venv": "these very tests",
    "ssh host": "run against an sshd, above",
    "DB_USER=app": "run on a terminal, below",
    "[tool.hermetic]": "configuration, which the tests of the guards write",
}


class Reader:
    """Somebody who types what the README shows, in a project with scripts of their own."""

    def __init__(self, project):
        self.project = project
        shown = "cat '%s/secrets.env'\n" % project.dir
        bin_dir = stand_ins(project,
                            {**{name: shown for name in ("pass", "gpg", "sops", "op")},
                             "nc": NC % sys.executable, "docker": DOCKER % sys.executable})
        (project.dir / "tools").mkdir()
        (project.root / "main").mkdir()
        home = project.root / "home"
        (home / "trusted").mkdir(parents=True)
        for place in (project.dir, project.dir / "tools", home / "trusted"):
            shutil.copy(str(HOTENV), str(place))
        (project.dir / "secrets.env").write_text(README_SECRETS)
        (project.dir / ".git" / "info").mkdir(parents=True)
        for name in ("deploy.sh", "sync.sh", "build.sh", "test.sh"):
            script = project.dir / name
            script.write_text("#!/bin/sh\nenv > '%s/%s.ran'\n" % (project.root, name))
            script.chmod(0o755)
        self.env = {**project.env, "PATH": "%s:%s" % (bin_dir, project.env["PATH"]), "HOME": str(home),
                    "SSH_AUTH_SOCK": "agent"}

    def start(self, line, cwd=None):
        """A foreground session: in another window, so to say."""
        self.stop()
        before = self.project.marker_content()
        process = subprocess.Popen(["bash", "-c", line], cwd=str(cwd or self.project.dir), env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.project.started.append(process)
        marker = (cwd or self.project.dir) / ".hotenv"
        until(lambda: process.poll() is not None or marker.exists(), "a session by " + line)
        assert process.poll() is None, process.stderr.read()
        assert before is None or cwd

    def stop(self):
        if self.project.marker.exists():
            assert self.project.hotenv("stop").returncode == 0

    def type(self, script):
        done = subprocess.run(["bash", "-ec", script], cwd=str(self.project.dir), env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=PATIENCE)
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()

    def ran(self):
        """The variables that each script saw."""
        return {path.name[:-len(".ran")]: dict(line.split("=", 1) for line in path.read_text().splitlines()
                                               if "=" in line)
                for path in self.project.root.glob("*.ran")}


README_BLOCKS = [block for block in readme_blocks()
                 if not block.startswith(tuple(NOT_RUN)) and not ANOTHER_ROOM.search(block)]


@pytest.mark.parametrize("number", range(len(README_BLOCKS)),
                         ids=[block.split("\n")[0][:40] for block in README_BLOCKS])
def test_readme_recipes_run_as_written(project, number):
    block = README_BLOCKS[number]
    reader = Reader(project)
    foreground = re.compile(r"(?:^|\| )(?:hotenv|python3 \S*hotenv\.py) serve\b(?!.*--background)")
    if "\tpython3" in block:  # a Makefile
        if not shutil.which("make"):
            pytest.skip("needs make")
        (project.dir / "Makefile").write_text(block + "\n")
        reader.type("make deploy")
        assert "API_KEY" not in reader.ran()["deploy.sh"]
        project.serve(README_SECRETS.encode())
        reader.type("make deploy")
    elif block.startswith("$ "):  # with what is seen
        project.serve(b"API_KEY=abc123\n")
        reader.env["SOCKET"] = project.socket_path()
        if "| hotenv serve" in block:
            reader.stop()
        typed, seen = block[2:].split("\n", 1)
        assert reader.type(typed + " || true") == seen + "\n"
        return
    elif block.startswith("import hotenv"):
        project.serve(README_SECRETS.encode())
        lines = [re.sub(r"^(\w\S*\(.*\)) +# (\{.*\}|'[^']*').*", r"assert \1 == \2", line)
                 for line in block.split("\n")]
        assert any(line.startswith("assert ") for line in lines)
        (project.dir / "as_a_module.py").write_text("\n".join(lines))
        reader.type("python3 as_a_module.py")
        return
    elif "../main" in block:
        shutil.copy(str(project.dir / "secrets.env"), str(project.root / "main"))
        reader.start("hotenv serve < secrets.env", project.root / "main")
        reader.type(block)
    elif any(foreground.search(line) for line in block.split("\n")):
        for line in block.split("\n"):
            reader.start(line) if foreground.search(line) else reader.type(line)
        reader.type("hotenv run -- ./deploy.sh")
    else:
        if "--background" not in block:
            project.serve(README_SECRETS.encode())
            reader.env["SOCKET"] = project.socket_path()
        seen = reader.type(block)
        if "docker run --rm -e" in block:
            assert "API_KEY=abc123\n" in seen
        if "status" in block:
            assert seen.startswith("live\n") and json.loads(seen[seen.index("{"):])["live"] is True
        if "shellenv" in block:
            assert "abc123" in reader.type(block + "\nhotenv run -- printenv API_KEY")
        if "info/exclude" in block:
            assert (project.dir / ".git/info/exclude").read_text() == ".hotenv\n"
        if "build.sh" in block:
            ran = reader.ran()
            assert "DATABASE_URL" not in ran["sync.sh"] and ran["sync.sh"]["AWS_KEY"] == "2"
            assert ran["build.sh"]["SSH_AUTH_SOCK"] == "agent" and "XDG_RUNTIME_DIR" not in ran["build.sh"]
    for name, seen in reader.ran().items():
        if name + " " in block.replace("\n", " ") + " ":
            assert seen["API_KEY"] == "abc123"


def test_the_readmes_example_of_the_contract_asks_one_question(project, prompting):
    block = "\n".join(recipe("DB_USER=app"))
    asking = prompting("--background", text=block.encode())
    asking.seen(b"Password of the staging database: ")
    asking.type(b"p4ss\n")
    assert asking.ended() == 0
    assert project.dump() == {b"DB_USER": b"app", b"DB_PASSWORD": b"p4ss", b"REGION": b"eu-central-1",
                              b"DATABASE_URL": b"postgres://app:p4ss@db.internal/app"}


def test_status_json_says_that_there_is_no_session(project):
    done = project.hotenv("status", "--json")
    assert "serve <" in refusal(done, 3) and json.loads(done.stdout.decode())["live"] is False


def test_stop_works_where_pidfds_are_refused(project):
    server = project.serve()
    refused = "hotenv.os.pidfd_open = lambda pid: (_ for _ in ()).throw(OSError(38, 'Function not implemented'))"
    assert project.hotenv("stop", patch=refused).returncode == 0
    assert server.wait(PATIENCE) == 0 and project.files() == ["p", "r", "r/hotenv"][2:] + []


def test_stop_by_a_link_to_the_socket_returns_when_the_session_has_ended(project):
    server = project.serve()
    (project.root / "link").symlink_to(project.socket_path())
    began = time.monotonic()
    assert project.hotenv("stop", "--socket", str(project.root / "link")).returncode == 0
    assert server.wait(PATIENCE) == 0 and time.monotonic() - began < hotenv.EXCHANGE_TIME


def test_a_session_in_the_background_holds_nothing_of_its_caller(project):
    lock = os.open(str(project.root / "lock"), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert project.hotenv("serve", "--background", pass_fds=[lock]).returncode == 0
    finally:
        os.close(lock)
    with open(str(project.root / "lock")) as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_log_of_a_session_in_the_background_holds_requests_alone_also_from_a_terminal(project):
    child, master = pty.fork()
    if not child:
        os.chdir(str(project.dir))
        os.execve(sys.executable, [sys.executable, str(HOTENV), "serve", "--background", "--log", "log", "-t", "1"],
                  project.env)
    os.write(master, b"A=1\n\x04")
    os.waitpid(child, 0)
    assert project.run("true").returncode == 0
    until(lambda: not project.marker.exists(), "the end of the session")
    assert re.fullmatch(r"\S+ \S+ run true\n", (project.dir / "log").read_text())
    os.close(master)


# ==== command line ====================================================================================================
# What may be typed, what a mistake is answered with, and in which order serve refuses.

COMMANDS = sorted(hotenv._COMMANDS)


@pytest.mark.parametrize("args", [
    ["nonsense"], ["server"], ["--nonsense"], ["\x1b[31m\n"], ["serve", "extra"], ["serve", "--nonsense"],
    ["serve", "-q", "-v"], ["serve", "--quiet", "--verbose"], ["serve", "-qv"], ["serve", "--time", "5"],
    ["serve", "--back"],
    ["serve", "-t"], ["serve", "-t", "0"], ["serve", "-t", "-1"], ["serve", "-t", "367d"], ["serve", "-t", "x"],
    ["serve", "-t", ""],
    ["serve", "-t", "nan"], ["serve", "-t", "inf"], ["serve", "-t", "1e3"], ["serve", "-t", "1m1h"],
    ["serve", "-t", "5 m"],
    ["serve", "-t", "0x10"], ["serve", "-t", "0s"], ["serve", "-t", "\u0665"], ["serve", "-t", "9" * 5000],
    ["serve", "--max-age", "0"],
    ["serve", "--log", "x"], ["serve", "--quiet=yes"], ["serve", "\x1b[31m\n"],
    ["run"], ["run", "--"], ["run", "true"], ["run", "--opt", "--", "true"], ["run", "--pass", "X", "--", "true"],
    ["run", "--nonsense", "--", "true"], ["run", "--peer-uid", "x", "--", "true"], ["run", "--socket"],
    ["run", "extra", "--", "true"],
    ["dump", "extra"], ["dump", "--form", "json"], ["dump", "--format", "xml"], ["dump", "--peer-uid", "-"],
], ids=short)
def test_a_mistake_in_the_arguments_is_one_line_and_2(project, args):
    message = refusal(project.hotenv(*args, input=b"A=1\n"), 2)
    assert len(message) > 15 and project.files() == []


@pytest.mark.parametrize("define", ["NOVALUE", "=1", ""])
def test_a_define_without_a_name_or_a_value_is_2(project, session, define):
    for env in ({}, {"HOTENV_SOCKET": session.socket_path()}):
        refusal(project.hotenv("run", "--define", define, "--", "true", env=env), 2)


def test_no_command_at_all_prints_the_usage(project):
    done = project.hotenv()
    assert done.returncode == 2 and done.stdout == b"" and b"usage: " in done.stderr and b"serve" in done.stderr


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_a_screen_and_shows_an_example(project, command):
    own = [command] if command else []
    texts = {project.hotenv(*own, flag, env={"COLUMNS": columns}).stdout.decode()
             for flag, columns in (("--help", "200"), ("-h", "40"))}
    assert len(texts) == 1
    lines = texts.pop().splitlines()
    assert 3 <= len(lines) <= 24 and max(map(len, lines)) <= 100
    if command:
        assert any(line.startswith("example") for line in lines)
        assert any(command in line for line in lines[lines.index("example:"):])


def test_help_goes_to_stdout_and_is_no_error(project):
    for args in (["--help"], ["-h"], ["serve", "--help"], ["run", "-h"], ["dump", "--help"]):
        done = project.hotenv(*args)
        assert (done.returncode, done.stderr) == (0, b"") and done.stdout


def test_version(project):
    for flag in ("--version", "-V"):
        done = project.hotenv(flag)
        assert (done.returncode, done.stdout) == (0, b"hotenv %s\n" % hotenv.__version__.encode())


@pytest.mark.parametrize("text, seconds", [
    ("300", 300), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("366d", 366 * 86400), ("0.5h", 1800),
    ("1.5", 1.5),
    (".5s", 0.5), ("1d2h3m4s", 93784), ("1.m", 60), ("007", 7),
])
def test_durations(project, text, seconds):
    assert hotenv._parse_duration(text) == seconds
    assert hotenv._parse_duration(hotenv._duration(seconds)) == seconds


def test_the_time_stamp_is_the_nearer_of_both_ends(project):
    for options, seconds in ((["-t", "1h30m"], 5400), (["-t", "1h", "--max-age", "2m"], 120), ([], 300)):
        server = project.serve(b"A=1\n", *options)
        assert time.time() + seconds - 10 < project.ends_at() <= time.time() + seconds
        project.ask()
        assert time.time() + seconds - 10 < project.ends_at() <= time.time() + seconds
        server.terminate()
        server.wait(PATIENCE)


# ---- serve: what it reads, and in which order it refuses


def held_stdin(project, *args, **options):
    """serve with a stdin that does not end."""
    reader, writer = os.pipe()
    process = project.start("serve", *args, stdin=reader, stderr=subprocess.PIPE, **options)
    os.close(reader)
    return process, writer


def test_usage_is_refused_before_a_marker(project):
    project.marker.write_bytes(b"socket=/nowhere.sock\n")
    refusal(project.hotenv("serve", "--timeout", "0"), 2)


@pytest.mark.parametrize("plant", [None, marker_directory, marker_fifo, marker_link_to_nothing, marker_link_to_itself])
def test_a_marker_is_refused_before_stdin_is_read(project, plant):
    if plant:
        plant(project)
    else:
        project.marker.write_bytes(b"")
    process, writer = held_stdin(project)
    message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 10 and b"--force" in message and message.count(b"\n") == 1
    os.close(writer)
    refusal(project.hotenv("serve", input=b"not dotenv"), 10)


def test_input_is_refused_before_the_system(project):
    project.env["XDG_RUNTIME_DIR"] = "/dev/null"
    assert "<stdin>:1:" in refusal(project.hotenv("serve", input=b"not dotenv\n"), 7)
    refusal(project.hotenv("serve", input=b"A=1\n"), 8)


@pytest.mark.parametrize("text",
                         [b"=", b"A", b"A='", b"A=1\nB\n", b"A=${", b"A=\xff", b"A=\0", b"\xff\xfeA\0", b"x" * 100000],
                         ids=short)
def test_a_refused_input_creates_nothing(project, text):  # invariant 2
    for options in ([], ["--force"], ["--background"]):
        project.env["XDG_RUNTIME_DIR"] = str(project.base / "not" / "there")
        message = refusal(project.hotenv("serve", *options, input=text), 7)
        assert re.match(r"<stdin>:\d+:\d+: ", message)
        assert project.files() == []


def test_nothing_is_created_before_the_input_has_ended(project):  # invariant 2
    process, writer = held_stdin(project)
    os.write(writer, b"A=1\n" * 20000)  # more than a pipe holds: it is reading
    os.write(writer, b"B=2\n")
    assert project.files() == []
    os.close(writer)
    project.wait_ready(process)


def test_an_input_refused_under_force_leaves_the_old_session(project):
    project.serve(b"A=old\n")
    refusal(project.hotenv("serve", "--force", input=b"nonsense\n"), 7)
    assert project.dump() == {b"A": b"old"}


def test_the_refusal_says_whether_the_old_session_answers(project):
    server = project.serve(b"A=1\n")
    before = project.files()
    message = refusal(project.hotenv("serve", input=b"A=2\n"), 10)
    assert "still answers" in message and "stop" in message and "--force" in message
    assert project.files() == before and project.dump() == {b"A": b"1"}
    server.kill()
    server.wait()
    message = refusal(project.hotenv("serve", input=b"A=2\n"), 10)
    assert "nobody answers" in message and "--force" in message
    assert project.files() == before


def test_a_killed_session_is_recovered_by_force(project):
    server = project.serve(b"A=1\n")
    old = project.socket_path()
    server.kill()
    server.wait()
    refusal(project.run("true"), 4)
    project.serve(b"A=2\n", "--force")
    assert project.dump() == {b"A": b"2"} and not os.path.exists(old) and len(project.files()) == 3


def test_a_marker_that_came_while_stdin_was_read_is_refused(project):
    process, writer = held_stdin(project)
    os.write(writer, b"A=late\n")
    project.serve(b"A=early\n")
    before = project.files()
    os.close(writer)
    message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 10 and b"still answers" in message and message.count(b"\n") == 1
    assert project.files() == before and project.dump() == {b"A": b"early"}


def test_of_six_at_once_exactly_one_wins(project):
    started = [held_stdin(project) for _ in range(6)]
    for number, (_, writer) in enumerate(started):
        os.write(writer, b"A=%d\n" % number)
    for _, writer in started:
        os.close(writer)
    until(lambda: sum(process.poll() is not None for process, _ in started) == 5, "five losers")
    assert sorted(str(process.poll()) for process, _ in started) == ["10"] * 5 + ["None"]
    winner = [number for number, (process, _) in enumerate(started) if process.poll() is None]
    assert project.dump() == {b"A": b"%d" % winner[0]} and len(project.files()) == 3
    for process, _ in started:
        if process.poll() is not None:
            message = process.stderr.read()
            assert message.startswith(b"hotenv: ") and message.count(b"\n") == 1


@pytest.mark.parametrize("how", ["closed", "empty", "/dev/null", "blank lines"])
def test_an_empty_stdin_is_an_empty_session(project, how):
    if how == "closed":
        process = project.start("serve", stdin=None, preexec_fn=lambda: os.close(0))
    elif how == "/dev/null":
        process = project.start("serve", stdin=subprocess.DEVNULL)
    else:
        process = project.serve(b"" if how == "empty" else b"\n \n# nothing\n")
    project.wait_ready(process)
    assert project.ask() == b'{"env":{}}\n' and project.run("true").returncode == 0
    assert project.hotenv("dump").stdout == b"" and project.log_lines()[-1].endswith("dump -")


def test_a_stdin_that_cannot_be_read_is_8(project):
    descriptor = os.open(os.devnull, os.O_WRONLY)
    assert "stdin" in refusal(project.hotenv("serve", stdin=descriptor), 8)
    os.close(descriptor)
    assert project.files() == []


def test_an_input_too_long_is_7(project):
    patch = "hotenv.MAX_INPUT = 1000"
    assert "stdin" in refusal(project.hotenv("serve", input=b"A=" + b"x" * 999 + b"\n", patch=patch), 7)
    assert project.files() == []
    project.serve(b"A=" + b"x" * 997 + b"\n", patch=patch)


def test_once_read_stdin_is_let_go(project):
    """Whoever holds the other end of a pipe or a socket is not held in turn."""
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    process = project.start("serve", stdin=theirs)
    theirs.close()
    ours.sendall(b"A=1\n")
    ours.shutdown(socket.SHUT_WR)
    project.wait_ready(process)
    assert ours.recv(1) == b""
    ours.close()
    if LINUX and ROOT:
        assert os.readlink("/proc/%d/fd/0" % process.pid) == "/dev/null"


@only_linux
@pytest.mark.parametrize("built", ["", "import _ctypes; del _ctypes.call_function; "], ids=["as usual", "otherwise"])
def test_the_process_is_named_and_hardened_before_it_reads(project, built):  # invariant 1
    patch = (built + "import ctypes, os, resource\nreal = hotenv._read_input\n"
             "def read():\n"
             "    state = [ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE)]\n"
             "    os.write(2, (open('/proc/self/comm').read() + repr(state) + chr(10)).encode())\n"
             "    return real()\nhotenv._read_input = read")
    project.serve(patch=patch)
    assert project.log() == b"hotenv\n[0, 0, 0]\n"


@only_linux
def test_nothing_in_proc_shows_a_value(project):  # invariant 1
    server = project.serve(b"A=s3cr3t-value\n")
    project.dump()
    for name in ("cmdline", "environ", "comm"):
        try:
            assert b"s3cr3t" not in Path("/proc/%d/%s" % (server.pid, name)).read_bytes()
        except PermissionError:
            pass
    if not ROOT:  # root may read all
        for name in ("environ", "mem", "maps"):
            with pytest.raises(PermissionError):
                Path("/proc/%d/%s" % (server.pid, name)).open("rb").read(1)


def ended_by(process):
    process.wait(PATIENCE)
    return -process.returncode if process.returncode < 0 else None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_stdin_is_read_is_what_it_always_is(project, number):
    process, writer = held_stdin(project, env={"XDG_RUNTIME_DIR": str(project.base / "new")})
    os.write(writer, b"A=1\n" * 20000)
    process.send_signal(number)
    assert ended_by(process) == number and process.stderr.read() == b"" and project.files() == []
    os.close(writer)


STAGES = {"before bind": "_SessionFiles.bind", "before the marker": "_SessionFiles.stamp",
          "before listening": "_raise_descriptor_limit"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("stage", STAGES)
def test_a_signal_before_the_session_is_ready_leaves_nothing(project, stage, number):
    patch = ("import os, signal\nreal = hotenv.{0}\n"
             "def stop(*a):\n    os.kill(os.getpid(), {1})\n    return real(*a)\n"
             "hotenv.{0} = stop").format(STAGES[stage], int(number))
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "new")
    for options in ([], ["--force"]):
        done = project.hotenv("serve", *options, input=b"A=1\n", patch=patch)
        assert (done.returncode, done.stderr) == (-number, b"") and project.files() == []


@pytest.mark.parametrize("options", [[], ["--background"]])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_from_the_marker_on_a_signal_ends_a_session(project, number, options):
    """Whoever sees the marker may end what it names, and is not told that a program was killed."""
    patch = ("import os, signal\nreal = hotenv._SessionFiles.publish\n"
             "def publish(*a):\n    real(*a)\n    os.kill(os.getpid(), {0})\n"
             "hotenv._SessionFiles.publish = publish").format(int(number))
    done = project.hotenv("serve", *options, input=b"A=1\n", patch=patch)
    assert (done.returncode, done.stderr) == (0, b"")
    until(lambda: project.files() == ["r/hotenv"], "the end of it")


GOES_ON = """
import runpy, sys
sys.argv[0] = sys.argv.pop(1)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as finished:
    print("then", finished.code, flush=True)
    sys.exit(5)
"""


@pytest.mark.parametrize("options", [["--background"], ["--timeout", "0.1"]], ids=short)
def test_a_program_that_runs_the_script_goes_on_once_and_after_it(project, options):
    command = [sys.executable, "-c", GOES_ON, str(HOTENV), "serve", *options]
    done = subprocess.run(command, input=b"A=1\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                          cwd=str(project.dir), env=project.env)
    assert (done.returncode, done.stdout, done.stderr) == (5, b"then 0\n", b"")
    assert project.dump() == ({b"A": b"1"} if options == ["--background"] else None)


def test_what_is_left_of_a_session_in_a_program_disturbs_none_of_its_children(project):
    code = ("import hotenv, subprocess, sys; hotenv.main(['serve', '--timeout', '0.1'])\n"
            "print(subprocess.run(['sh', '-c', 'kill -TERM $$; echo survived']).returncode)")
    done = subprocess.run([sys.executable, "-c", code], input=b"", stdout=subprocess.PIPE, timeout=PATIENCE,
                          cwd=str(project.dir), env={**project.env, "PYTHONPATH": str(HERE)})
    assert done.stdout == b"-15\n"


@pytest.mark.parametrize("options", [[], ["--background"]], ids=short)
@pytest.mark.parametrize("thrown", ["GeneratorExit(response)", "SystemExit(response)"])
def test_whatever_ends_a_script_session_shows_no_value(project, thrown, options):
    lines = HOTENV.read_text().split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("def _hold("))
    lines.insert(at + 1, "    raise " + thrown)
    (project.root / "damaged.py").write_text("\n".join(lines))
    done = subprocess.run([sys.executable, str(project.root / "damaged.py"), "serve", *options], input=b"A=s3cr3t\n",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, cwd=str(project.dir),
                          env=project.env)
    assert done.returncode in (1, 8) and b"s3cr3t" not in done.stdout and project.files() == []


def test_a_background_start_that_reports_nothing_is_no_success(project):
    done = project.hotenv("serve", "--background", input=b"A=1\n", patch="hotenv._hold = lambda *_: 0")
    assert done.returncode == 8


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_after_the_end_of_a_session_is_late(project, number):
    """Python gives its handlers up before it gives up its modules."""
    patch = ("import os\nclass Last:\n    def __del__(self, kill=os.kill, pid=os.getpid()):\n"
             "        kill(pid, {0})\nhotenv.last = Last()").format(int(number))
    server = project.serve(patch=patch, stderr=subprocess.PIPE)
    Path(project.socket_path()).unlink()  # it ends by itself
    assert (server.wait(PATIENCE), server.stderr.read()) == (0, b"")


def test_a_log_holds_request_lines_and_nothing_else(project):
    server = project.serve(b"", stdout=subprocess.PIPE)
    assert project.log() == b""
    project.hotenv("dump")
    assert len(project.log_lines()) == 1
    server.terminate()
    assert server.stdout.read() == b"" and server.wait(PATIENCE) == 0 and len(project.log_lines()) == 1


@pytest.mark.parametrize("args, code", [
    (["run", "--", "true"], 3), (["dump"], 3), (["serve", "--nonsense"], 2), ([], 2), (["run"], 2), (["serve"], 7),
], ids=short)
def test_without_a_stderr_nothing_is_said_and_the_status_stays(project, args, code):
    done = project.hotenv(*args, input=b"nonsense\n", preexec_fn=lambda: os.close(2))
    assert (done.returncode, done.stdout) == (code, b"") and project.files() == []


@pytest.mark.parametrize("options, talks", [([], True), (["--quiet"], False)], ids=str)
def test_on_a_terminal_serve_says_that_it_is_ready(project, options, talks):
    with on_terminal(*project.command(["serve", *options]), cwd=project.dir, env=project.env) as (pid, terminal):
        hint = read_until(terminal, b"\n")
        assert b"Ctrl-D" in hint and hint.startswith(b"hotenv: ")
        os.write(terminal, b"A=1\nB=2\n\x04")
        until(project.marker.exists, "a marker")
        if talks:
            session_id = os.path.basename(project.socket_path())[:8].encode()
            assert b"hotenv: session %s ready: 2 variables, idle timeout 5m" % session_id in read_until(terminal, b"5m")
        project.ask()
        if talks:
            assert b" dump -" in read_until(terminal, b"dump -\r\n")
        os.write(terminal, b"\x03")
        shown = read_until(terminal)
        assert os.waitpid(pid, 0)[1] == 0 and (talks or b"ready" not in shown)


# ==== importing and packaging =========================================================================================
# One file that can be copied anywhere, and takes nothing from where it lies.

NEIGHBOURS = ["json", "signal", "secrets", "socket", "selectors", "argparse", "re", "os", "time", "errno", "stat",
              "select", "struct", "random", "ctypes", "resource", "fcntl", "collections", "difflib", "gettext",
              "locale", "shutil"]


@pytest.mark.parametrize("how", ["script", "module"])
def test_neighbours_are_never_imported(project, how):  # invariant 11
    tools = project.root / "tools"
    tools.mkdir()
    shutil.copy(str(HOTENV), str(tools / "hotenv.py"))
    for name in NEIGHBOURS:
        (tools / (name + ".py")).write_text("raise SystemExit('a neighbour was imported: %s')\n" % name)
    if how == "script":
        command = [sys.executable, str(tools / "hotenv.py")]
    else:
        # Python itself puts the current directory on the path for -m: what it needs before we can say a word, it finds
        # there too. Only those that come later are ours to keep out.
        command, project.dir = [sys.executable, "-m", "hotenv"], tools
        for name in ("os", "stat", "re", "collections", "locale", "random", "struct", "shutil"):
            (tools / (name + ".py")).unlink()
    project.marker = project.dir / ".hotenv"
    project.command = lambda args, patch=None: [*command, *args]
    refusal(project.hotenv("serve", "--timeout", "0"), 2)
    project.serve(b"A=1\n", "--verbose")
    assert project.run("sh", "-c", "echo $A").stdout == b"1\n"
    assert json.loads(project.hotenv("dump", "--format", "json").stdout.decode()) == {"A": "1"}
    assert project.hotenv("dump").stdout == b"A=1\n"


def test_importing_changes_nothing(project):  # invariant 11
    look = ("import os, signal, sys, threading\n"
            "def state():\n"
            "    handlers = [signal.getsignal(n) for n in range(1, 32)]\n"
            "    return (dict(os.environ), list(sys.path), handlers, os.umask(0o22), list(sys.argv), sys.flags,\n"
            "        sys.excepthook, threading.active_count(), os.listdir('.'), sys.getrecursionlimit())\n"
            "os.umask(0o22)\nsys.path.insert(0, %r)\nbefore, known = state(), set(sys.modules)\nimport hotenv\n"
            "assert state() == before, (before, state())\nprint(sorted(set(sys.modules) - known))") % str(HERE)
    done = subprocess.run([sys.executable, "-B", "-c", look], cwd=str(project.dir), stdout=subprocess.PIPE,
                          timeout=PATIENCE, env=project.env)
    assert done.returncode == 0
    assert set(ast.literal_eval(done.stdout.decode())) <= {"hotenv", "_json", "_socket", "_signal", "errno",
                                                           "__future__"}


NEVER_FOR_RUN = {"typing", "dataclasses", "subprocess", "pathlib", "logging", "ctypes", "secrets", "re", "enum",
                 "selectors", "signal", "socket", "json", "argparse", "collections", "inspect", "random", "hashlib",
                 "tempfile", "threading", "warnings", "fcntl"}


@pytest.mark.parametrize("args", [["run", "--", "/bin/true"], ["dump"]], ids=short)
def test_run_and_dump_import_next_to_nothing(session, args):  # invariant 11
    done = subprocess.run([sys.executable, "-I", "-S", "-X", "importtime", str(HOTENV), *args], stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, cwd=str(session.dir), env=session.env, timeout=PATIENCE)
    assert done.returncode == 0
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    assert "_socket" in imported and not imported & NEVER_FOR_RUN


def test_run_with_options_imports_only_argparse_more(session):
    done = subprocess.run([sys.executable, "-I", "-S", "-X", "importtime", str(HOTENV), "run", "--optional",
                           "--", "/bin/true"],
                          stderr=subprocess.PIPE, cwd=str(session.dir), env=session.env, timeout=PATIENCE)
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    assert done.returncode == 0 and "argparse" in imported
    assert not imported & {"typing", "dataclasses", "subprocess", "pathlib", "logging", "ctypes", "secrets", "inspect",
                           "tempfile"}


def test_without_the_c_halves_the_public_modules_do(project):
    """An interpreter that is built otherwise has no _socket, _signal or _json."""
    project.serve(b"A=1\n")
    block = ("import sys\nsys.modules['_json'] = None\nsys.path.insert(0, %r)\nimport hotenv\n"
             "sys.exit(hotenv.main(sys.argv[1:]))") % str(HERE)
    project.command = lambda args, patch=None: [sys.executable, "-c", block, *args]
    assert project.run("sh", "-c", "echo $A").stdout == b"1\n"
    assert project.hotenv("dump").stdout == b"A=1\n"
    server = project.serve(b"A=2\n", "--force")
    assert project.ask(b'{"command":"du\n').startswith(BAD_REQUEST)
    assert project.ask(A_MILLION_DIGITS + b"\n").startswith(BAD_REQUEST)
    assert project.ask(b"[" * 100000 + b"\n").startswith(BAD_REQUEST)
    assert project.dump() == {b"A": b"2"} and server.poll() is None


def test_without_unix_sockets_there_is_a_word_and_8(project):
    patch = "del hotenv._socket.AF_UNIX"
    for args in (["serve"], ["dump"], ["run", "--", "true"]):
        assert "Unix sockets" in refusal(project.hotenv(*args, patch=patch), 8)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs a list of the standard library's modules")
def test_only_the_standard_library_is_imported():
    imported = {alias.name.split(".")[0] for node in syntax() if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module.split(".")[0] for node in syntax() if isinstance(node, ast.ImportFrom)}
    hooks = {"sitecustomize", "usercustomize", "tomllib"}  # there or not: the two of site, and what 3.11 brought
    assert {"os", "select"} < imported <= sys.stdlib_module_names | hooks


def test_the_syntax_is_that_of_every_supported_python():
    assert sum(isinstance(node, ast.FunctionDef) for node in syntax((3, 8))) > 100


@pytest.fixture(scope="module")
def pyproject():
    path = HERE / "pyproject.toml"
    if not path.exists():
        pytest.skip("there is no pyproject.toml here")
    return path.read_text(encoding="utf-8")


def test_one_place_holds_the_version(pyproject):
    literal = re.findall(r'^__version__ = "(.+)"$', HOTENV.read_text(encoding="utf-8"), re.M)
    assert literal == [hotenv.__version__] and re.fullmatch(r"\d+\.\d+\.\d+", literal[0])
    assert literal[0] not in pyproject and re.search(r'dynamic *= *\[ *"version" *\]', pyproject)


def test_packaging_lists_no_dependency_and_pytest_alone_for_tests(pyproject):
    assert "pytest" in pyproject and re.search(r'^hotenv *= *"hotenv:main"', pyproject, re.M)
    declared = re.findall(r"^ *dependencies *= *(\[[^]]*\])", pyproject, re.M)
    assert [ast.literal_eval(each) for each in declared] in ([], [[]])
    extras = re.search(r"^\[project.optional-dependencies\]\n((?:[a-z].*\n)*)", pyproject, re.M)
    assert extras and [line.split("=")[0].strip() for line in extras[1].splitlines() if "=" in line] == ["test"]
    assert all(name.startswith("pytest")
               and not name.startswith("pytest-") for name in re.findall(r'"(.+?)"', extras[1]))


# ==== attacks =========================================================================================================
# Random requests, markers and answers; faults and signals at each step of a start; load; and a hunt for a secret.


def random_json(dice, depth=0):
    """JSON text, mostly valid; requests among it."""
    kind = dice.randrange(12 if depth < 4 else 8)
    if kind < 2:
        return dice.choice(["null", "true", "false", "NaN", "-Infinity", "tru", "nul", ""])
    if kind < 4:
        return dice.choice(["0", "-1", "1e999", "0." + "7" * 50, "1" * dice.choice([3, 400, 5000]), "-", "01", "1e",
                            "0x1"])
    if kind < 8:
        return dice.choice(['"dump"', '"run"', '"args"', '"\\ud800"', '"\\udc80\\ud800"', '"\\u12"', '"\\x"', '"',
                            '"\x01"', '""',
                            '"\u00e9\U0001f511"', json.dumps("x" * dice.randrange(5000))])
    parts = [random_json(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind < 10:
        return "[" + ",".join(parts) + "]"
    keys = ['"command"', '"args"', '"env"', '"x"', '"command"', "x"]
    return "{" + ",".join(dice.choice(keys) + ":" + part for part in parts) + "}"


def random_request(dice):
    """Bytes that a client might send; often a request, often nearly one."""
    kind = dice.randrange(10)
    if kind == 0:
        return bytes(dice.randrange(256) for _ in range(dice.randrange(200))) + b"\n"
    if kind == 1:
        return dice.choice([b"[", b'{"a":', b'[{"command":']) * dice.choice([10, 1000, 100000]) + b"\n"
    if kind == 2:
        whole = dice.choice(list(GOOD_REQUESTS.values())[:8])
        return whole[:dice.randrange(len(whole))] + dice.choice([b"", b"\n"])
    if kind == 3:
        args = [dice.choice(["x", "", "\x1b[2J", "\n", "\u202e", "\ud800",
                             "a" * 3000]) for _ in range(dice.randrange(4))]
        return json.dumps({"command": "run", "args": args}).encode() + b"\n"
    if kind == 4:
        return dice.choice(list(GOOD_REQUESTS.values())[:9]) + dice.choice([b"", b"\n", b"more", DUMP])
    if kind == 5:
        pair = [("command", dice.choice(['"dump"', '"run"', "1", "null"])), ("command", dice.choice(['"dump"', '"x"'])),
                ("args", dice.choice(['["a"]', "[]", '"a"', "[1]", '["a",null]']))]
        dice.shuffle(pair)
        return ("{" + ",".join('"%s":%s' % each for each in pair) + "}\n").encode()
    text = random_json(dice).encode("utf-8", "surrogatepass")
    return (text if dice.random() < 0.8 else text[:dice.randrange(len(text) + 1)]) + b"\n"


def no_constant(name):
    raise ValueError(name)


def strict_json(text):
    """What Python's own json makes of a text, without its liberties; ValueError for no JSON."""
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=no_constant)
    except RecursionError:
        raise ValueError("too deep")


def is_request(data):
    """Whether the server must answer these bytes with the environment: the specification, stated a second time."""
    line, newline, _ = data.partition(b"\n")
    try:
        request = strict_json(line.decode("utf-8"))
    except ValueError:
        return False
    if not newline or not isinstance(request, dict):
        return False
    args = request.get("args")
    if request.get("command") == "run":
        return isinstance(args, list) and bool(args) and all(type(arg) is str for arg in args)
    return request.get("command") == "dump"


def numbers_are_strings_to(data):
    """The oracle reads numbers as strings: a request in which that matters is left out."""
    return bool(re.search(rb'"(command|args)":\[?["a,]*-?[0-9]', data))


def send_interleaved(dice, project, requests):
    """Several clients at once, each sending its request in pieces; (request, answer or None where the client left)."""
    clients = [[project.connect(), request, 0, dice.random() < 0.1,
                dice.choice([1, 7, 100, 10 ** 9])] for request in requests]
    results = []
    waiting = [client for client in clients if client[1]]
    while waiting:
        client = dice.choice(waiting)
        sock, request, sent, leaves, step = client
        piece = request[sent:sent + (step if len(request) < 3000 else max(step, 4000))]
        try:
            sock.sendall(piece)
        except OSError:
            piece = request[sent:]  # it was answered before its end
        client[2] += len(piece)
        if client[2] >= len(request) or leaves and dice.random() < 0.2:
            waiting.remove(client)
    for sock, request, sent, leaves, _ in clients:
        if leaves:
            sock.close()  # with its answer unread, which the server sees as a reset
            results.append((request, None))
            continue
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        results.append((request, answer(sock)))
        sock.close()
    return results


def descriptors(pid):
    try:
        return len(os.listdir("/proc/%d/fd" % pid))
    except OSError:  # not root, not Linux
        return None


def resident(pid):
    try:
        return int(Path("/proc/%d/statm" % pid).read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return None


def test_no_request_however_strange_harms_the_server(project):
    dice = random.Random(SEED)
    server = project.serve(b"A=1\n", "--verbose", "--timeout", "1h")
    expected = b'{"env":{"A":"1"}}\n'
    before = None
    for _ in range(10):
        for _ in range(amount(1000) // 5):
            for request, reply in send_interleaved(dice, project, [random_request(dice) for _ in range(5)]):
                if reply is None or numbers_are_strings_to(request):
                    continue
                if is_request(request):
                    assert reply == expected, request[:200]
                else:
                    assert reply.startswith(b'{"error":"BAD_REQUEST"') and reply.count(b"\n") == 1, request[:200]
        assert project.ask() == expected
        if before is None:
            before = resident(server.pid)
    with project.connect():
        pass
    assert project.ask() == expected
    if descriptors(server.pid) is not None:
        fresh = project.start("serve", stdin=subprocess.PIPE, cwd=str(project.base))
        fresh.stdin.close()
        until((project.base / ".hotenv").exists, "another server")
        until(lambda: descriptors(server.pid) == descriptors(fresh.pid), "as many descriptors as a fresh server has")
    if before is not None:
        assert resident(server.pid) < before + (8 << 20)
    assert all(line.isprintable() and LOG_LINE.match(line) for line in project.log_lines())


def random_marker(dice, socket_path):
    path = os.fsencode(socket_path)
    valid = b"socket=" + path + b"\n"
    kind = dice.randrange(6)
    if kind == 0:
        return bytes(dice.randrange(256) for _ in range(dice.randrange(100)))
    if kind == 1:
        return valid[:dice.randrange(len(valid))]
    if kind == 2:
        at = dice.randrange(len(valid))
        return valid[:at] + bytes([dice.randrange(256)]) + valid[at + dice.randrange(2):]
    if kind == 3:
        return dice.choice([b"", b"\n", b" ", b"\r\n", b"#\n"]) * dice.randrange(4) + valid + dice.choice([b"", b"\n",
                                                                                                           b"\0",
                                                                                                           valid, b"x"])
    if kind == 4:
        return b"socket=" + dice.choice([b"", b"/", b"//", b"/..", b"/tmp/\xff",
                                         b"/" + b"x" * dice.choice([100, 5000, 9000]), b"~/x", b"x"]) + b"\n"
    return dice.choice([b"", b"\n", b"socket", b"socket=", b"SOCKET=" + path, b"socket =" + path, valid * 2,
                        valid.strip()])


def code_of(work):
    try:
        work()
        return 0
    except hotenv.HotenvError as error:
        assert str(error).isprintable() and str(error)
        return error.code


def marker_code(content, socket_path):
    """The specification of the marker, stated a second time: 9 for what is none, 0 for ours, 4 for another path."""
    lines = [line for line in content.split(b"\n") if line.strip()]
    if len(content) > 8192 or b"\0" in content or len(lines) != 1 or not lines[0].startswith(b"socket=/"):
        return 9
    return 0 if os.path.normpath(lines[0][7:]) == os.fsencode(socket_path) else 4


def test_no_marker_however_strange_harms_a_client(project, session, monkeypatch):
    dice = random.Random(SEED + 1)
    monkeypatch.chdir(str(project.dir))
    path = session.socket_path()
    real_runs = amount(40)
    for number in range(amount(1000)):
        content = random_marker(dice, path)
        project.marker.write_bytes(content)
        expected = marker_code(content, path)
        assert code_of(hotenv.fetch) == expected, content
        if number < real_runs:
            done = project.run("true")
            assert done.returncode == expected, content
            assert not expected or refusal(done, expected)


def random_answer(dice):
    kind = dice.randrange(5)
    valid = json.dumps({"env": {"A%d" % n: dice.choice(["", "x" * dice.randrange(3000), "\x00", "\ud800", "\udc80",
                                                        "\n"])
                                for n in range(dice.randrange(4))}}).encode() + b"\n"
    if kind == 0:
        return bytes(dice.randrange(256) for _ in range(dice.randrange(300))) + dice.choice([b"", b"\n"])
    if kind == 1:
        return valid[:dice.randrange(len(valid) + 1)]
    if kind == 2:
        at = dice.randrange(len(valid))
        return valid[:at] + bytes([dice.randrange(256)]) + valid[at + dice.randrange(2):]
    if kind == 3:
        return valid
    text = random_json(dice).encode("utf-8", "surrogatepass")
    return dice.choice([b"%s", b'{"env":%s}', b'{"env":{"A":%s}}', b'{"error":%s}',
                        b'{"env":{},"x":%s}']).replace(b"%s", text) + b"\n"


def is_environment(data):
    """Whether a client must take these bytes: the specification, stated a second time."""
    try:
        reply = strict_json(data.decode("utf-8"))
    except ValueError:
        return False
    if data.count(b"\n") != 1 or not data.endswith(b"\n") or not isinstance(reply,
                                                                            dict) or not isinstance(reply.get("env"),
                                                                                                    dict):
        return False
    if isinstance(reply.get("error"), str):
        return False
    for name, value in reply["env"].items():
        if not name or "=" in name or not isinstance(value, str) or "\0" in name + value:
            return False
        try:
            (name + value).encode("utf-8", "surrogateescape")
        except UnicodeError:
            return False
    return True


def test_no_answer_however_strange_harms_a_client(project, answerer):
    dice = random.Random(SEED + 2)
    server = answerer()
    real_runs = amount(40)
    for number in range(amount(1000)):
        server.response = random_answer(dice)
        if re.search(rb":\s*-?[0-9]", server.response):
            continue  # strict_json reads numbers as strings
        expected = 0 if is_environment(server.response) else 9
        assert code_of(lambda: hotenv.fetch(socket_path=server.path)) == expected, server.response[:200]
        if number < real_runs:
            done = project.run("/bin/true", env={"HOTENV_SOCKET": server.path})
            assert done.returncode == expected, server.response[:200]
            assert not expected or refusal(done, expected)


# Runs serve with the Nth of its system calls going wrong, or a signal arriving at it.
FAULTY = """
import os, errno, signal, _socket
calls, active, target, action = 0, False, {target}, {action!r}
def hit():
    global calls
    if not active:
        return
    calls += 1
    if calls == target:
        open({hit!r}, 'w').close()
        if action == 'signal':
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            raise OSError(getattr(errno, action), os.strerror(getattr(errno, action)))
def faulty(module, name):
    real = getattr(module, name)
    def call(*a, **k):
        hit()
        return real(*a, **k)
    setattr(module, name, call)
open = open
for name in 'mkdir open fchmod write link rename utime fstat pipe set_blocking urandom'.split():
    faulty(os, name)
class Socket(_socket.socket):
    def bind(self, *a): hit(); return super().bind(*a)
    def listen(self, *a): hit(); return super().listen(*a)
    def setblocking(self, *a): hit(); return super().setblocking(*a)
class Module:
    socket = Socket
    def __getattr__(self, name): return getattr(_socket, name)
hotenv._socket = Module()
real_hold, real_run = hotenv._hold, hotenv._Server.run
def hold(*a):
    global active
    active = True
    return real_hold(*a)
def run(self, *a):
    global active
    active = False
    open({ready!r}, 'w').close()
    return real_run(self, *a)
hotenv._hold, hotenv._Server.run = hold, run
"""


def start_with_fault(project, target, action, options):
    """(whether the fault was reached, the process, which has ended or is ready)."""
    ready, hit = project.root / "ready", project.root / "hit"
    for path in (ready, hit):
        if path.exists():
            path.unlink()
    patch = FAULTY.format(target=target, action=action, ready=str(ready), hit=str(hit))
    process = project.start("serve", *options, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, patch=patch)
    until(lambda: ready.exists() or process.poll() is not None, "a session, or the end of one")
    return hit.exists(), process


@pytest.mark.parametrize("action", ["ENOSPC", "EACCES", "EIO", "signal"])
def test_a_fault_at_any_step_of_a_start_leaves_nothing(project, action):  # invariant 2
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "new")
    stride = 1 if FULL else 3
    for options in ([], ["--force"]):
        target = 1 + random.Random(SEED).randrange(stride)
        while True:
            reached, process = start_with_fault(project, target, action, options)
            if action == "signal" and reached:
                process.wait(PATIENCE)
                assert (process.returncode, process.stderr.read()) in ((-signal.SIGTERM, b""), (0, b""))
            elif process.poll() is None:  # a fault in something that is best effort, or none
                process.terminate()
                assert process.wait(PATIENCE) == 0
                assert process.stderr.read() == b""
            else:
                message = process.stderr.read().decode()
                assert process.returncode == 8 and message.startswith("hotenv: "), (target, message)
                assert message.count("\n") == 1 and message[:-1].isprintable(), (target, message)
            left = [path for path in project.files() if not path.startswith("r/new") or path.endswith(".sock")]
            assert left == [], (target, options)
            shutil.rmtree(str(project.base / "new"), ignore_errors=True)
            if not reached:
                break
            target += stride
        assert target > 10


@only_linux
@only_root
@pytest.mark.parametrize("mount, code", [
    ("size=4k", 8), ("nr_inodes=2", 8), ("ro", 8),
], ids=str)
def test_a_full_or_read_only_file_system_leaves_nothing(project, mount, code):
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs mount namespaces")
    lines = ('mount -t tmpfs -o "$1" none . && cd "$PWD" && { head -c 4096 /dev/zero > full; } 2>/dev/null;'
             ' ls -A > ../before; shift; "$@"; echo $?; ls -A > ../after')
    done = subprocess.run(["unshare", "-m", "sh", "-c", lines, "sh", mount, *project.command(["serve"])],
                          cwd=str(project.dir), env=project.env, input=b"A=1\n", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.stdout == b"%d\n" % code, done.stderr
    assert done.stderr.startswith(b"hotenv: ") and done.stderr.count(b"\n") == 1
    assert (project.root / "before").read_bytes() == (project.root / "after").read_bytes()
    assert not list(project.base.rglob("*.sock"))


def test_whoever_polls_for_the_marker_finds_it_whole_and_can_run_at_once(project):
    """A tight poller against many starts: half a marker, or one before its socket, would be seen."""
    seen, wrong, stop = set(), [], threading.Event()

    def poll():
        while not stop.is_set():
            try:
                content = project.marker.read_bytes()
            except OSError:
                continue
            if content in seen:
                continue
            try:
                if not re.fullmatch(rb"socket=/\S+/[0-9a-f]{8}\.sock\n", content):
                    wrong.append(content)
                elif project.ask(path=os.fsdecode(content[7:-1])) != b'{"env":{"A":"1"}}\n':
                    wrong.append((content, "another answer"))
            except OSError as error:
                wrong.append((content, error))
            seen.add(content)

    poller = threading.Thread(target=poll)
    poller.start()
    starts = amount(200)
    try:
        for _ in range(starts):
            server = project.serve()
            until(lambda: project.marker_content() in seen, "the poller")
            server.terminate()
            assert server.wait(PATIENCE) == 0
    finally:
        stop.set()
        poller.join()
    assert not wrong and len(seen) == starts


def test_a_newcomers_marker_survives_an_old_server_that_ends(project):
    """--force while the old server is ending: whichever comes first, the new session stays reachable."""
    dice = random.Random(SEED)
    old = project.serve(b"A=0\n")
    for number in range(1, amount(200) + 1):
        process, writer = held_stdin(project, "--force")
        os.write(writer, b"A=%d\n" % number)
        before = project.marker_content()
        os.close(writer)
        wait = time.monotonic() + dice.random() * 0.06
        until(lambda: time.monotonic() > wait or project.marker_content() != before)
        old.terminate()
        assert old.wait(PATIENCE) == 0
        project.wait_ready(process, before if project.marker_content() == before else None)
        until(lambda: project.marker_content() not in (None, before), "the newcomer's marker")
        assert project.ask() == b'{"env":{"A":"%d"}}\n' % number
        old = process


def load_client(path, worker, count):
    """Exit status 0 if each of its requests was answered with the environment."""
    for number in range(count):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            while True:
                try:
                    client.connect(path)
                    break
                except BlockingIOError:
                    pass
            client.sendall(b'{"command":"run","args":["w%d.%d"]}\n' % (worker, number))
            if answer(client) != b'{"env":{"A":"1"}}\n':
                return 1
    return 0


def dying_client(path, dice):
    """Leaves in the middle of a request or of its answer, as if killed."""
    for _ in range(dice.randrange(1, 20)):
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            request = b'{"command":"run","args":["doomed"]}\n'
            client.sendall(request[:dice.randrange(len(request) + 1)])
        except OSError:
            pass
    os._exit(0)


def test_under_load_no_request_is_lost_and_each_is_logged(project):
    total, workers = amount(20000), 16
    project.serve(b"A=1\n", "--timeout", "1h")
    path = project.socket_path()
    dice = random.Random(SEED)
    children = []
    for worker in range(workers):
        children.append(os.fork())
        if not children[-1]:
            try:
                os._exit(load_client(path, worker, total // workers))
            finally:
                os._exit(99)
    first, status = 0, 0
    while not first:
        doomed = os.fork()
        if not doomed:
            try:
                dying_client(path, dice)
            finally:
                os._exit(99)
        os.waitpid(doomed, 0)
        dice.random()
        first, status = os.waitpid(children[0], os.WNOHANG)
    assert [status] + [os.waitpid(child, 0)[1] for child in children[1:]] == [0] * workers
    lines = project.log_lines()
    assert all(LOG_LINE.match(line) for line in lines)
    logged = sorted(line.split()[3] for line in lines if not line.endswith("doomed"))
    assert logged == sorted("w%d.%d" % (worker,
                                        number) for worker in range(workers) for number in range(total // workers))


class Watcher:
    """Reads every process's arguments and environment, over and over, and keeps where a secret was seen."""

    def __init__(self, secret):
        self.secret, self.found, self.rounds, self.stopped = secret, set(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def watch(self):
        while not self.stopped.is_set():
            for process in os.listdir("/proc"):
                if not process.isdigit():
                    continue
                for name in ("cmdline", "environ"):
                    try:
                        if self.secret in Path("/proc", process, name).read_bytes():
                            self.found.add((name, Path("/proc", process, "cmdline").read_bytes()))
                    except OSError:
                        pass
            self.rounds += 1


@only_linux
def test_a_secret_is_nowhere_but_in_the_commands_environment(project):  # invariant 1
    secret = b"s3cr3t-%08x-%d" % (random.Random(SEED).getrandbits(32), os.getpid())  # another suite may run beside us
    outputs = []

    def call(*args, **options):
        done = project.hotenv(*args, **options)
        outputs.append(done.stderr)
        return done

    text = b"TOKEN=%s\nDERIVED=x${TOKEN}y\n" % secret
    with Watcher(secret) as watcher:
        for bad in (b"A=%s'\nB='%s\n", b"%s\n", b"A='%s\n", b"A=${%s", b"'%s'x=1\n", b"A=\"%s\" %s\n", b"A=${X:?%s}\n",
                    b"A=%s\0\n"):
            assert call("serve", input=bad.replace(b"%s", secret)).returncode == 7
        project.serve(text, "--verbose")
        child = project.start("run", "--", "sh", "-c", "echo ready; read line; exit 3", stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        done_rounds = watcher.rounds
        until(lambda: watcher.rounds > done_rounds + 1, "two looks at every process")
        child.communicate(b"\n")
        assert secret in call("dump").stdout
        for form in ("sh", "json", "dotenv", "nul"):
            assert secret in call("dump", "--format", form).stdout
        assert secret not in call("dump", "--format", "names").stdout
        call("run", "--", "no-such-command")
        call("run", "--", "/etc/passwd")
        call("run", "--only", "NOTHING", "--", "true")
        call("serve", input=text)
        with open("/dev/full", "wb") as full:
            call("dump", stdout=full)
        for request in BAD_REQUESTS.values():
            if len(request) < 100:
                assert secret not in project.ask(request)
        project.serve(text + b"MORE=1\n", "--force")
        assert call("serve", "--background", "--force", "--log", "log", input=text).returncode == 0
        call("run", "--", "true")
    # Only where it has to be: the environment of a process that is a command (or is just becoming one).
    assert {name for name, _ in watcher.found} == {"environ"}
    # One that ended between the two looks has no arguments any more.
    assert {command.split(b"\0")[0] for _, command in watcher.found} <= {b"sh", b"true", b""}
    assert not [output for output in outputs if secret in output]
    for path in project.root.rglob("*"):
        if stat.S_ISREG(os.lstat(str(path)).st_mode):
            assert secret not in path.read_bytes(), path
            assert secret not in os.fsencode(str(path))
