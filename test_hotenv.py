"""The promises of hotenv, kept against the real program.

HOTENV_TEST_FULL=1 runs the long forms (20 times as much of whatever is random), HOTENV_TEST_SEED=N changes what is
random. HOTENV_TEST_PROGRAMS names a virtual environment with httpie, pytest and black, HOTENV_TEST_MCP one with the mcp
package. What needs one of these, root, Linux or a tool that is not there is skipped with a word.
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
INSTALLED = [sys.executable, "-S", "-c", "import sys; sys.path.insert(0, %r); import hotenv; del sys.path[0];"
             "sys.exit(hotenv.main())" % str(HERE)]  # as pip does it: compiled once, where a script is at each start
PATIENCE = 30.0  # seconds until a condition that should have come about at once counts as a failure
STRANGER = 4242  # the uid of somebody else, where root may become one
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # the suite was started by nohup, or with a `&`
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)

os.environ.pop("HOTENV_SOCKET", None)  # the suite was started from within a session
only_linux = pytest.mark.skipif(not LINUX, reason="looks at /proc, which is Linux's")
only_root = pytest.mark.skipif(not ROOT, reason="needs root, to become somebody else")


def amount(n):
    """How often something random is tried: `n` times in the long form, a twentieth of that otherwise."""
    return n if FULL else max(1, n // 20)


# ==== the harness =====================================================================================================
# A project directory with a runtime directory of its own; what is started in it ends with it.


def until(condition, what="the condition", patience=PATIENCE):
    """The first true value of `condition()`; a failure if there is none in time."""
    give_up, value = time.monotonic() + patience, condition()
    while not value:
        if time.monotonic() > give_up:
            pytest.fail("waited in vain for " + what)
        time.sleep(0.002)
        value = condition()
    return value


class Project:
    """A fresh directory to start sessions in."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="hot-", dir="/tmp")).resolve()  # short: a socket's path must be
        self.dir, self.base, self.log_path = self.root / "p", self.root / "r", self.root / "log"
        self.dir.mkdir(), self.base.mkdir(0o700)
        self.runtime = self.base / "hotenv"
        self.env = {"PATH": PATHS, "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.base)}
        self.program, self.started, self.clients = INSTALLED, [], []

    marker = property(lambda self: self.dir / ".hotenv")

    def command(self, args):
        return [*self.program, *args]

    def for_strangers(self, owner=None):
        """From here on another user can run the program too: a copy of it, by a Python that everybody can reach.
        With an owner the directories are theirs, and what is started with what comes back as its preexec_fn."""
        for python in (sys.executable, "/usr/bin/python3"):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                probe = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]
                if not subprocess.run(probe, preexec_fn=become(STRANGER), timeout=PATIENCE).returncode:
                    self.root.chmod(0o755)
                    self.program = [python, shutil.copy(str(HOTENV), str(self.root))]
                    for path in [self.base, *self.dir.rglob("*"), self.dir] * (owner is not None):
                        os.chown(str(path), owner, owner)
                    return owner and become(owner)
        pytest.skip("no Python here that another user can run")

    def start(self, *args, env=None, **options):
        """The program with these arguments, not waited for."""
        with open(str(self.log_path), "ab") as log:
            options = {"cwd": str(self.dir), "stderr": log, **options}
            self.started.append(subprocess.Popen(self.command(args), env={**self.env, **(env or {})}, **options))
        return self.started[-1]

    def serve(self, text=b"A=1\n", *options, **more):
        before, process = self.marker_content(), self.start("serve", *options, stdin=PIPE, **more)
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(text)
        self.wait_ready(process, before)
        return process

    def wait_ready(self, process, before=None):
        until(lambda: self.marker_content() != before and not any(self.dir.glob(".hotenv.*"))  # it goes a moment later
              or process.poll() is not None, "a marker")
        if process.poll() is not None:
            pytest.fail("serve ended with %s: %s" % (process.returncode, self.log()))

    def held(self, *args, **options):
        """serve with a stdin that does not end: the process, and the other end of its stdin."""
        reader, writer = os.pipe()
        process = self.start("serve", *args, stdin=reader, **{"stderr": PIPE, **options})
        os.close(reader)
        return process, writer

    def hotenv(self, *args, env=None, timeout=PATIENCE, **options):
        """The program with these arguments, until it ends."""
        options = {"cwd": str(self.dir), "stdout": PIPE, "stderr": PIPE, **options}
        if "stdin" not in options:
            options.setdefault("input", b"")
        return subprocess.run(self.command(args), env={**self.env, **(env or {})}, timeout=timeout, **options)

    def run(self, *command, **options):
        return self.hotenv("run", "--", *command, **options)

    def dump(self, *options, **more):
        """The environment that the session hands out, or None where there is no session."""
        done = self.hotenv("dump", "--format", "nul", *options, **more)
        return None if done.returncode else environment_of(done)

    def log(self):
        return self.log_path.read_bytes() if self.log_path.exists() else b""

    def log_lines(self):
        return self.log().decode().splitlines()

    def marker_content(self):
        """What is in the marker; None where there is none, or something else in its place."""
        with contextlib.suppress(OSError):
            return self.marker.read_bytes() if stat.S_ISREG(os.lstat(str(self.marker)).st_mode) else None

    def socket_path(self):
        return os.fsdecode(self.marker.read_bytes()[len(b"socket="):-1])

    def points_at(self, path):
        """A marker of ours that names this socket."""
        self.marker.write_bytes(b"socket=" + os.fsencode(str(path)) + b"\n")

    def sh(self, lines):
        """What to find in the project (p) and the runtime base (r), as shell lines."""
        subprocess.run(["sh", "-ec", lines], cwd=str(self.root), check=True)

    def ends_at(self):
        """The moment when the session will end, as the socket's time stamp has it."""
        return os.stat(self.socket_path()).st_mtime

    def server_pid(self):
        """Who answers: a session in the background is no child of ours."""
        with self.connect() as client:
            return peer_pid(client)

    def connect(self, path=None):
        client = socket.socket(socket.AF_UNIX)
        self.clients.append(client)
        client.settimeout(PATIENCE)
        client.connect(path or self.socket_path())
        return client

    def ask(self, request=b'{"command":"dump"}\n', path=None):
        with self.connect(path) as client:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was answered before its end
                client.sendall(request)
            return answer(client)

    def files(self):
        """Everything below the project and the runtime base, by its path from there."""
        return sorted(str(each.relative_to(self.root)) for top in (self.dir, self.base) for each in top.rglob("*"))

    def close(self):
        for client in self.clients:
            client.close()
        for process in self.started:
            with contextlib.suppress(BrokenPipeError), process:
                process.kill()
        for path in self.runtime.glob("*.sock"):  # a session in the background is no child of ours
            with contextlib.suppress(OSError), self.connect(str(path)) as client:
                if peer_pid(client) not in (0, os.getpid()):
                    os.kill(peer_pid(client), signal.SIGKILL)
        shutil.rmtree(str(self.root), ignore_errors=True)
        if self.root.exists():  # a test took a permission away
            subprocess.run(["sh", "-c", 'chmod -R u+rwx "$0"; rm -rf "$0"', str(self.root)], stderr=DEVNULL)


@pytest.fixture(autouse=True)
def no_test_hangs():
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("this test hangs"))
    signal.alarm(900 if FULL else 120)
    yield
    signal.alarm(0)


@pytest.fixture
def project():
    with contextlib.closing(Project()) as fresh:
        yield fresh


def standing(text, *options, **env):
    """A session that many tests ask, and none ends."""
    shared = Project()
    shared.env.update(env)
    server = shared.serve(text, "--timeout", "1h", *options)
    yield shared
    assert server.poll() is None, "the session that many tests share has ended: " + shared.log()[-500:].decode()
    shared.close()


@pytest.fixture(scope="module")
def session():
    yield from standing(b"A=1\nB=two words\nEMPTY=\n", "--verbose")


@pytest.fixture(scope="module")
def daily():
    text = b"".join(b"%s=%s\n" % pair for pair in SNAPSHOT.items())
    for shared in standing(text, HOME="/h", EDITOR="vi", OTHER="host", BLANK="", LANG="C.UTF-8"):
        shared.host = {name.encode(): value.encode() for name, value in shared.env.items()}
        yield shared


SNAPSHOT = {b"API_KEY": b"s3cr3t-1", b"API_URL": b"s3cr3t-2", b"AWS_ID": b"s3cr3t-3", b"AWS_KEY": b"s3cr3t-4",
            b"TERM": b"snapshot", b"OTHER": b"s3cr3t-5"}
TOKEN, PEM = "sk-live-51H8sVq0", "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
SECRETS = {"TOKEN": TOKEN, "PEM": PEM, "PIN": "12", "URL": "postgres://u:p%40ss w@h/db?x='1'"}
DUMP, BAD_REQUEST = b'{"command":"dump"}\n', b'{"error":"BAD_REQUEST","message":"'
PATHS, ENV = "/usr/local/bin:/usr/bin:/bin", "/usr/bin/env"
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}  # a locale without any other character


def short(value):
    return repr(value)[:30]


def environment_of(done):
    assert done.returncode == 0, done.stderr
    return dict(pair.split(b"=", 1) for pair in done.stdout.split(b"\0") if pair)


def answer(client):
    """What comes until the other side closes."""
    chunks = []
    with contextlib.suppress(ConnectionResetError):
        chunks.extend(iter(lambda: client.recv(1 << 20), b""))
    return b"".join(chunks)


def peer_pid(client):
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED) if LINUX else client.getsockopt(0, 2)


def refusal(done, code):
    """The one line with which a command must have ended: ours, printable, and no traceback or bug."""
    message = done.stderr.decode()
    assert done.returncode == code and re.fullmatch(r"hotenv: (?!.*internal error).+\n", message), message
    assert message[:-1].isprintable()
    return message[len("hotenv: "):-1]


def ended(process, signum=None):
    """The exit status of a process that ends by itself, or by this signal."""
    process.send_signal(signum or 0)
    return process.wait(PATIENCE)


def children(pid):
    """[pid, state, name] of each child."""
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,pid=,stat=,comm="], stdout=PIPE, timeout=PATIENCE)
    return [line.split(None, 3)[1:] for line in listed.stdout.decode().splitlines() if line.split()[0] == str(pid)]


def limits(**soft_and_hard):
    """A preexec_fn that sets resource limits: limits(NOFILE=(64, 64))."""
    pairs = [(getattr(resource, "RLIMIT_" + name), pair) for name, pair in soft_and_hard.items()]
    return lambda: [resource.setrlimit(*each) for each in pairs]


def become(uid):
    """A preexec_fn that makes the child another user's."""
    return lambda: (os.setgroups([]), os.setgid(uid), os.setuid(uid))


def forked(work):
    """The pid of a child that does this and ends with what it returns, or 99 where it raises something else."""
    child = os.fork()
    if not child:
        status = 99
        try:
            status = work() or 0
        except hotenv.HotenvError as error:
            status = error.code
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def in_child(work):
    return os.WEXITSTATUS(os.waitpid(forked(work), 0)[1])


@contextlib.contextmanager
def on_terminal(*command, cwd=None, env=None, **redirected):
    """A process that leads a session on a new terminal: its pid, and the terminal's other end."""
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
    """What was seen and comes from a descriptor until `wanted`, a pattern, is in it; without one, until it ends."""
    give_up = time.monotonic() + PATIENCE
    while wanted is None or not re.search(wanted, seen):
        if not select.select([descriptor], [], [], max(0, give_up - time.monotonic()))[0]:
            pytest.fail("waited in vain for %r in %r" % (wanted, seen))
        piece = b""
        with contextlib.suppress(OSError):  # EIO, with which Linux says that all have closed a terminal
            piece = os.read(descriptor, 65536)
        if not piece:
            assert wanted is None, "the end came before %r in %r" % (wanted, seen)
            return seen
        seen += piece
    return seen


@pytest.fixture
def answerer(project):
    """answerer(response): a server of our own that gives every client the same bytes, whatever it asks."""
    def give(client, _, server):
        with contextlib.suppress(OSError):
            client.recv(1 << 20)
            client.sendall(server.response)
    def make(response=b""):
        server = ends.enter_context(socketserver.UnixStreamServer(str(project.root / os.urandom(8).hex()), give))
        server.path, server.response = server.server_address, response
        server.socket.listen(64)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        ends.callback(server.shutdown)
        return server
    with contextlib.ExitStack() as ends:
        yield make


class Host:
    """An sshd on loopback with a key of its own, and an `ssh` that finds it under the name `host`."""

    def __init__(self, root, started):
        self.root, self.command = root, ["ssh", "-T", "-F", str(root / "ssh_config"), "host"]
        sshd = shutil.which("sshd", path=PATHS + ":/usr/sbin")
        users = [each.pw_name for each in pwd.getpwall() if each.pw_uid == os.geteuid()]
        if not (sshd and users and shutil.which("ssh") and shutil.which("ssh-keygen")):
            pytest.skip("needs sshd, ssh, ssh-keygen, and a user name")
        if ROOT:
            os.makedirs("/run/sshd", exist_ok=True)  # where sshd locks its children up: no option names another place
        for name in ("server", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        said = root / "sshd_log"
        (root / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {root}/server\nAuthorizedKeysFile {root}/client.pub\n"
            "UsePAM no\nPidFile none\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n")
        (root / "ssh_config").write_text(
            f"Host host\nHostName 127.0.0.1\nPort {port}\nUser {users[0]}\nIdentityFile {root}/client\nBatchMode yes\n"
            f" IdentitiesOnly yes\n StrictHostKeyChecking no\n LogLevel ERROR\n UserKnownHostsFile {root}/known\n")
        with open(str(said), "wb") as log:
            self.process = subprocess.Popen([sshd, "-D", "-e", "-f", str(root / "sshd_config")], start_new_session=True,
                                            stdin=DEVNULL, stdout=log, stderr=log)
        started.append(self.process)
        until(lambda: self.process.poll() is not None or b"listening" in said.read_bytes(), "sshd")
        if self.process.poll() is not None or self.ssh("true").returncode:
            pytest.skip("sshd lets nobody in here: %s" % said.read_text().strip().splitlines()[-1:])

    def ssh(self, *words, **options):
        return subprocess.run([*self.command, *words], timeout=PATIENCE, stdout=PIPE, stderr=PIPE,
                              **{"stdin": DEVNULL, **options})


@pytest.fixture(scope="module")
def host():
    holder = Project()
    with contextlib.closing(holder):
        yield Host(holder.root, holder.started)


# Most tests wait for processes, so two forks of pytest share them: each takes the number of its next test from a pipe.
# What pytest would say of it in a fork goes through a file to the first process, where pytest says it.

pytest_plugins = [__name__]  # this file is a plugin too: its hook counts
SAYING = {"pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish", "pytest_warning_recorded"}


def pytest_runtestloop(session):
    config, items, first, seen = session.config, session.items, os.getpid(), set()
    plugin, option = config.pluginmanager.getplugin, config.getoption
    if (not 20 < len(items) < 8192 or (os.cpu_count() or 1) < 2 or session.testsfailed or hasattr(config, "workerinput")
            or option("capture") == "no" or any(map(option, ("collectonly", "usepdb", "trace", "setupshow")))):
        return None  # pytest's own loop does it: alone, or by hand, or for xdist
    path = config._tmp_path_factory.getbasetemp() / "reports"  # made before the forks, so that it is one for both
    reader, writer = os.pipe()
    os.write(writer, struct.pack("%dH" % len(items), *range(len(items))))  # at most 16 KiB: every pipe holds that
    os.close(writer)
    coming = (items[struct.unpack("H", number)[0]] for number in iter(lambda: os.read(reader, 2), b""))

    def work():
        capture, calls = plugin("capturemanager"), []
        capture.stop_global_capturing()  # or the two would capture into one file
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the dots are the first one's
        capture.start_global_capturing()
        capture.suspend_global_capture()
        config.pluginmanager.add_hookcall_monitoring(
            lambda name, _, given: name in SAYING and calls.append((name, given)), lambda *_: None)
        with contextlib.ExitStack() as left:
            left.callback(plugin("runner").pytest_sessionfinish, session)  # ends fixtures
            item, following = next(coming, None), next(coming, None)  # one ahead: a teardown wants to know what follows
            while item and not session.shouldfail and not session.shouldstop and os.getppid() == first:
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                reports.write(pickle.dumps(calls))
                calls.clear()
                item, following = following, next(coming, None)

    def all_is_told():
        for fork in [each for each in forks if forks[each] is None]:
            pid, status = os.waitpid(fork, os.WNOHANG)
            forks[fork] = status if pid else None
        with contextlib.suppress(EOFError, pickle.UnpicklingError):  # there is no more yet
            while True:
                begin = source.tell()
                for name, given in pickle.load(source):
                    seen.add(given.get("nodeid"))
                    call = getattr(config.hook, name)
                    call.call_historic(kwargs=given) if name == "pytest_warning_recorded" else call(**given)
        source.seek(begin)
        return None not in forks.values() or time.sleep(0.01)
    with open(path, "ab", 0) as reports, open(path, "rb") as source:
        forks = dict.fromkeys([forked(work), forked(work)])
        try:
            while not session.shouldfail and not session.shouldstop and not all_is_told():
                pass
        finally:
            list(coming)  # nobody begins another one
            while not all_is_told():
                pass
    os.close(reader)
    if session.shouldfail or session.shouldstop:
        raise (session.Failed if session.shouldfail else session.Interrupted)(session.shouldfail or session.shouldstop)
    for item in [each for each in items if each.nodeid not in seen] or items[-1:] * any(forks.values()):
        config.hook.pytest_runtest_logreport(report=pytest.TestReport(
            item.nodeid, item.location, {}, "failed", "its process ended with one of %s" % [*forks.values()], "call"))
    return True


# ==== limits and errors ===============================================================================================
# The documented limits, some of which other tests make shorter than they are; and what no error may do.


def test_limits_are_the_documented_ones_and_the_file_is_plain_code_on_the_standard_library():  # invariant 11
    documented = {
        "MAX_INPUT": 64 << 20, "MAX_EXPANSION": 64 << 20, "MAX_REQUEST": 256 << 10, "MAX_UNFINISHED": 16 << 20,
        "MAX_RESPONSE": 256 << 20, "MAX_MARKER": 8 << 10, "MAX_LOG_BACKLOG": 1 << 20, "DESCRIPTORS": 4096, "TICK": 10,
        "IDLE_TIMEOUT": 300, "MAX_DURATION": 366 * 86400, "REQUEST_TIME": 5, "ANSWER_TIME": 30, "EXCHANGE_TIME": 10,
        "LOCK_TIME": 1, "MAX_NESTING": 64}
    assert documented.items() <= vars(hotenv).items()
    nodes = list(ast.walk(ast.parse(HOTENV.read_text(encoding="utf-8"), feature_version=(3, 8))))  # the oldest Python
    assert not [each.lineno for each in nodes if isinstance(each, ast.Assert) or getattr(each, "type", 1) is None]
    called = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert not {"eval", "globals", "__import__"} & set(called) and called.count("exec") <= 1  # a guarded target
    # Invariant 3: deadlines are on a clock that counts suspend; no test can have this machine suspended.
    assert "CLOCK_BOOTTIME" in [getattr(node, "attr", getattr(node, "value", None)) for node in nodes
                                if isinstance(node, (ast.Attribute, ast.Constant))]
    imported = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    hooks = {"sitecustomize", "usercustomize", "tomllib"}  # there or not: the two of site, and what 3.11 brought
    assert {"os", "select"} < imported <= getattr(sys, "stdlib_module_names", imported) | hooks  # known since 3.10


@only_linux
def test_without_memory_there_is_a_word_and_no_value(project):  # invariants 1 and 2
    text = b"A=s3cr3t" + b"x" * (20 << 20) + b"\n"
    done = project.hotenv("serve", input=text, preexec_fn=limits(AS=(64 << 20, 64 << 20)))
    assert "memory" in refusal(done, 8) and b"s3cr3t" not in done.stderr and not project.files()


# ==== environment =====================================================================================================
# How an entry becomes a value, and how the value gets to a command.


@pytest.mark.parametrize("given, host, expected", [
    ({"A": "as it is, $HOME and all "}, {"HOME": "/h"}, {"A": "as it is, $HOME and all "}),
    ({"A": ""}, {"A": "host"}, {"A": ""}), ({"B": "${A}", "A": "later"}, {}, {"B": "", "A": "later"}),
    ({"A": "${H}"}, {"H": "from the host"}, {"A": "from the host"}), ({"A": "?no one asks"}, {}, {"A": "?no one asks"}),
    ({"A": "${H}"}, {}, {"A": ""}), ({"URL": "http://${HOST}:${PORT:-80}/"}, {"HOST": "db"}, {"URL": "http://db:80/"}),
    ({"A": "1", "B": "${A}2", "C": "${B}3"}, {"A": "host"}, {"A": "1", "B": "12", "C": "123"}),
    ({"PATH": "${PATH}:/x"}, {"PATH": "/bin"}, {"PATH": "/bin:/x"}), ({"A": "\\${H}"}, {"H": "no"}, {"A": "${H}"}),
    ({"A": "${H}"}, {"H": "${A} is not read again"}, {"A": "${A} is not read again"}),
    ("A=${H}\nB='${H}'\nC=\"${H}\"\n", {"H": "x"}, {"A": "x", "B": "${H}", "C": "x"}),
    ([("A", "${H}"), ("A", "?x")], {"H": "1"}, {"A": "?x"}),  # the string of a pair is a literal; the last of two wins
])
def test_an_entry_becomes_a_value_in_one_place(given, host, expected):
    before = dict(host)
    resolved = hotenv.parse_dotenv(given, host) if isinstance(given, str) else hotenv.resolve_env(given, host)
    assert resolved == expected and list(resolved) == list(expected) and host == before


def test_questions_are_asked_in_order_and_later_references_see_the_answers_or_are_named_with_no_value():
    for text in ("s3cr3t ${H:?}", "s3cr3t ${", "s3cr3t ${H!}"):
        with pytest.raises(hotenv.HotenvError, match="KEY") as caught:
            hotenv.resolve_env({"KEY": text}, {"H": ""})
        assert caught.value.code == 7 and "s3cr3t" not in str(caught.value)
    given = {"A": "?first", "LIT": "\\?x", "B": "?second", "URL": "${A}/${B:-empty}", "C": "?and the last"}
    answers, asked = {"first": "answer ${URL}", "second": "", "and the last": "?not asked again"}, []
    resolved = hotenv.resolve_env(given, {}, lambda text: asked.append(text) or answers[text])
    assert asked == list(answers) and resolved == {
        "A": "answer ${URL}", "LIT": "\\?x", "B": "", "URL": "answer ${URL}/empty", "C": "?not asked again"}


def test_an_isolated_environment_has_the_documented_allowlist_and_its_layers():
    essentials = ("PATH HOME SHELL USER LOGNAME TMPDIR TEMP TMP LANG LC_ALL LC_CTYPE TERM COLORTERM FORCE_COLOR "
                  "NO_COLOR CI NODE_OPTIONS").split()
    others = ["path", "LC_ALL2", "LC_MESSAGES", "PWD", "LD_PRELOAD"]
    assert list(hotenv.build_isolated_env(dict.fromkeys(essentials + others, "x"))) == essentials
    base = {"PATH": "/bin", "HOME": "/h", "TERM": "xterm"}  # essentials passed, what is undeclared stripped
    source = {**base, "AWS_KEY": "k", "EDITOR": "vi", "BLANK": ""}
    for options, changes in (
            ({}, {}), ({"bin_paths": ["/a", "/b"]}, {"PATH": "/a:/b:/bin"}),
            ({"pass_through": ["EDITOR", "NOWHERE", "BLANK", "HOME"]}, {"EDITOR": "vi", "BLANK": ""}),  # not empty
            ({"pass_through": ["EDITOR"], "define": {"EDITOR": "ed", "E": ""}}, {"EDITOR": "ed", "E": ""}),
            ({"bin_paths": [], "define": {"PATH": "/d", "HOME": "/other"}}, {"PATH": "/d", "HOME": "/other"}),
            ({"bin_paths": ["/a"], "define": {"PATH": "/d"}}, {"PATH": "/a:/d"}),
            ({"bin_paths": ["/a", "/b"], "define": {"PATH": ""}}, {"PATH": "/a:/b"}),
            ({"define": {"odd = name": "odd\nvalue"}}, {"odd = name": "odd\nvalue"})):  # nothing is checked or cleaned
        assert hotenv.build_isolated_env(source, **options) == {**base, **changes}, options
        assert source == {**base, "AWS_KEY": "k", "EDITOR": "vi", "BLANK": ""}, options


@pytest.mark.parametrize("options, changes", [
    *((["--isolated", *options], changes) for options, changes in (
        ([], {}), (["--pass", b"N\xe9", "--define", b"\xe8=x"], {b"N\xe9": b"1", b"\xe8": b"x"}),
        (["--pass", "OTHER"], {}), (["--define", "A=1", "--define", "A=2"], {b"A": b"2"}),  # the snapshot is above
        (["--pass", "EDITOR", "--pass", "NOWHERE", "--pass", "BLANK"], {b"EDITOR": b"vi", b"BLANK": b""}),
        (["--pass", "ED*,N*"], {b"EDITOR": b"vi", b"N\xe9": b"1"}),
        (["--define", "OTHER=own", "--define", "N=a=b", "--define", "E="], {b"OTHER": b"own", b"N": b"a=b", b"E": b""}),
        (["--define", "PATH=/d", "--bin", "/x y", "--bin", "/z"], {b"PATH": b"/x y:/z:/d"}),
        (["--bin", "/x", "--only", "API_*"], {b"PATH": b"/x:" + PATHS.encode(),
                                              **dict.fromkeys((b"AWS_ID", b"AWS_KEY", b"TERM", b"OTHER"))}),
        (["--pass", "ODD", "--define", b"D=\xff\xfe", "--bin", b"/\xfd"],
         {b"ODD": b"\xff caf\xe9", b"D": b"\xff\xfe", b"PATH": b"/\xfd:" + PATHS.encode()}))),
    ([], {}), (["--define", "OTHER=defined", "--define", "N=a=b"], {b"OTHER": b"defined", b"N": b"a=b"}),
    (["--define", "PATH=/d", "--bin", "/x", "--bin", "/y"], {b"PATH": b"/x:/y:/d"}),
    (["--define", "PATH=", "--bin", "/x"], {b"PATH": b"/x"})])
def test_run_isolated_starts_from_the_allowlist_and_otherwise_from_the_host(daily, options, changes):
    more = {b"ODD": b"\xff caf\xe9", b"N\xe9": b"1"}
    isolated = {b"PATH": PATHS.encode(), b"HOME": b"/h", b"LC_ALL": b"C.UTF-8", b"LANG": b"C.UTF-8"}
    done = daily.hotenv("run", *options, "--", ENV, "-0", env={os.fsdecode(name): more[name] for name in more})
    expected = {**(isolated if "--isolated" in options else {**daily.host, **more}), **SNAPSHOT, **changes}
    assert environment_of(done) == {name: value for name, value in expected.items() if value is not None}


@pytest.mark.parametrize("command, word", [
    (["run", "--define", "s3cr3t"], "NAME=VALUE"), (["run", "--isolated", "--pass"], "--pass"),
    *((["run" if near else "dump", "--only", only], near) for only, near in (
        ("API_KEX", "API_KEY"), ("OTHER,AP_KEY", "API_KEY"), ("AWZ_*", "AWS_"), ("api_key", "API_KEY"), ("HOME", ""),
        ("", ""), ("API_KEY,", ""), ("*KEY", ""), ("s3cr3t-1", ""), ("\x1b[2J", "\\x1b[2J"), ("API_*Y", "")))], ids=str)
def test_options_that_make_no_sense_are_refused_with_the_reason_or_near_names_and_no_values(daily, command, word):
    done = daily.hotenv(*command, *["--", "echo", "ran"] * (command[0] == "run"))
    message, given = refusal(done, 2), command[-1] if "--only" in command else ""
    assert word in message and done.stdout == b""
    assert "s3cr3t" not in message.replace(given or "\0", "")  # what stands where NAME=VALUE should may be a value


@pytest.mark.parametrize("only, names", [
    (["API_KEY"], "API_KEY"), (["API_KEY,OTHER"], "API_KEY OTHER"), (["AWS_*"], "AWS_ID AWS_KEY"),
    (["AWS_*,API_KEY,AWS_ID"], "AWS_ID AWS_KEY API_KEY"), (["*"], "API_KEY API_URL AWS_ID AWS_KEY TERM OTHER"),
    (["A*,T*"], "API_KEY API_URL AWS_ID AWS_KEY TERM"), (["API_KEY", "OTHER"], "API_KEY OTHER"),
    ([" API_KEY , OTHER"], "API_KEY OTHER")])
def test_only_hands_over_what_it_names(daily, only, names):
    chosen = {name: SNAPSHOT[name] for name in names.encode().split()}
    options = [word for each in only for word in ("--only", each)]
    assert daily.dump(*options) == chosen
    assert environment_of(daily.hotenv("run", *options, "--", ENV, "-0")) == {**daily.host, **chosen}


# ==== session files ===================================================================================================
# The runtime directory, the socket and the marker: what they look like, who may have made them, what we remove.


@pytest.fixture
def meddle(project):
    """meddle("linkat:error=EPERM") makes the kernel do that to what is started from then on (see strace's `inject`)."""
    if subprocess.run(["sh", "-c", "strace -D -qq -o /dev/null true"], stderr=DEVNULL).returncode:
        pytest.skip("needs strace, and the right to trace a child")
    plain = project.program
    def meddle(*rules, told="/dev/null"):
        words = ["trace=" + ",".join(rule.split(":")[0] for rule in rules), *("inject=" + rule for rule in rules)]
        project.program = ["strace", "-D", "-qq", "-o", str(told), *("-e" + word for word in words), *plain]
    return meddle


def mode(path):
    return stat.S_IMODE(os.lstat(str(path)).st_mode)


@pytest.mark.parametrize("umask", [0o777, 0o000, 0o077], ids=oct)
def test_files_have_their_modes_whatever_the_umask(project, umask):
    project.sh("mkdir -m 777 r/hotenv")  # ours, and open: it is closed
    project.serve()
    assert mode(project.runtime) == 0o700
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "missing" / "too")
    project.serve(b"A=1\n", "--force", preexec_fn=lambda: os.umask(umask))
    path = Path(project.socket_path())
    assert project.marker.read_bytes() == b"socket=" + os.fsencode(str(path)) + b"\n"
    assert re.fullmatch(r"[0-9a-f]{8}\.sock", path.name) and path.parent == project.base / "missing/too/hotenv"
    assert stat.S_ISSOCK(path.stat().st_mode) and not mode(path) & 0o077 and mode(project.marker) == 0o600
    assert project.dump() == {b"A": b"1"} and all(
        mode(made) == 0o700 and made.stat().st_uid == os.geteuid() for made in list(path.parents)[:3])


@pytest.mark.parametrize("value", [None, "", "relative/dir", "/a\nb"])  # a marker is one line
def test_no_usable_xdg_runtime_dir_means_tmp(project, value):
    project.env["XDG_RUNTIME_DIR"] = value
    value is None and project.env.pop("XDG_RUNTIME_DIR")
    server = project.serve()
    assert Path(project.socket_path()).parent == Path("/tmp/hotenv-%d" % os.getuid())
    assert project.dump() == {b"A": b"1"} and ended(server, signal.SIGTERM) == 0 and project.files() == []


@only_root
@pytest.mark.parametrize("uid", [STRANGER, 65534])  # nobody is a user like any other, where all users are known
def test_nobodys_runtime_directory_is_poisoned_by_another_user(project, uid):  # as by `sudo -E hotenv serve`
    theirs, server = project.for_strangers(uid), project.serve()
    assert Path(project.socket_path()).parent == Path("/tmp/hotenv-0") and not project.runtime.exists()
    assert project.dump() == {b"A": b"1"} and ended(server, signal.SIGTERM) == 0
    project.serve(b"A=2\n", preexec_fn=theirs)
    assert project.runtime.stat().st_uid == uid and project.dump(preexec_fn=theirs) == {b"A": b"2"}


@pytest.mark.parametrize("lines, below", [
    ("mkdir -m 700 far; ln -s ../far r/hotenv", ""), (": > r/hotenv", ""), ("rmdir r; : > r", ""),
    pytest.param("mkdir -m 700 r/hotenv; chown %d r/hotenv" % STRANGER, "", marks=only_root),
    (":", "new/x/" + "y" * 300),  # cannot be made
], ids=short)
def test_a_strange_runtime_directory_is_refused(project, lines, below):  # invariant 2
    project.sh(lines)
    project.env["XDG_RUNTIME_DIR"], before = str(project.base / below), project.files()
    message = refusal(project.hotenv("serve", input=b"A=1\n"), 8)
    assert ("XDG_RUNTIME_DIR" in message or "runtime directory" in message) and project.files() == before


def in_mounts(project, lines):
    """From here on the program is "$@" of shell lines in a mount namespace."""
    if not ROOT or subprocess.run(["sh", "-c", "unshare -m true"], stderr=DEVNULL).returncode:
        pytest.skip("needs root and mount namespaces")
    project.program = ["unshare", "-m", "sh", "-c", lines, "sh", *project.program]


@pytest.mark.skipif(not LINUX, reason="elsewhere a path beyond sun_path is refused")
def test_a_socket_path_beyond_sun_path_works_and_is_refused_where_nothing_can_be_done(project):
    project.env["XDG_RUNTIME_DIR"] = str(project.base / ("x" * 100))
    first, old = project.serve(), project.socket_path()
    assert len(old) > 108 and project.dump() == {b"A": b"1"}
    assert "still answers" in refusal(project.hotenv("serve", input=b""), 10)
    second = project.serve(b"A=2\n", "--force")
    assert project.dump() == {b"A": b"2"} and not os.path.exists(old)  # who answers has tidied up
    assert ended(second, signal.SIGTERM) == ended(first, signal.SIGTERM) == 0
    assert not list(project.root.rglob("*.sock")) and not project.marker.exists()
    project.env["XDG_RUNTIME_DIR"], left = str(project.base / ("y" * 100)), project.files()
    in_mounts(project, 'mount -t tmpfs none /proc && exec "$@"')
    message = refusal(project.hotenv("serve", input=b"A=1\n"), 8)
    assert "too long" in message and "10" in message and "XDG_RUNTIME_DIR" in message and project.files() == left


def test_paths_are_bytes(project):
    project.dir = project.dir / os.fsdecode(b"with blank, \xc3\xa9 and \xff")
    try:
        project.dir.joinpath("r").mkdir(parents=True)
    except OSError:
        pytest.skip("this file system wants UTF-8")
    server = project.serve(b"A=1\n", env={"XDG_RUNTIME_DIR": str(project.dir / "r")})
    assert project.dump() == {b"A": b"1"}
    assert b"still answers" in project.hotenv("serve", env={"XDG_RUNTIME_DIR": "/nowhere"}).stderr
    assert ended(server, signal.SIGTERM) == 0 and not project.marker.exists()


def test_the_nearest_marker_upward_wins(project):
    deep, between = project.dir / "a" / "b" / "c", project.dir / "a" / ".hotenv"
    deep.mkdir(parents=True)
    project.serve(b"A=outer\n")
    assert project.dump(cwd=str(deep)) == {b"A": b"outer"}
    project.start("serve", stdin=DEVNULL, cwd=str(between.parent))
    until(between.exists, "the inner marker")
    assert project.dump(cwd=str(deep)) == {} and project.dump() == {b"A": b"outer"}
    assert "A" in refusal(project.hotenv("run", "--only", "A", "--", "true", cwd=str(deep)), 2)  # it has no such name
    (deep.parent / ".hotenv").write_bytes(b"damaged")
    refusal(project.run("true", cwd=str(deep)), 9)  # the nearest one counts, also when it is of no use


def test_a_directory_above_that_cannot_be_searched_ends_the_walk_and_an_unreadable_marker_is_a_system_error(project):
    """Root may search and read them all, so that here a stranger asks."""
    project.sh("mkdir -p p/outer/inner; echo damaged > p/.hotenv")  # beyond reach, from in there
    theirs = project.for_strangers(STRANGER) if ROOT else None
    lines = ('cd outer/inner && chmod 0 .. && "$@" run --optional -- echo none; "$@" dump; echo $?; echo A=1 |'
             ' "$@" serve --background && "$@" run -- sh -c "echo \\$A" && "$@" status -q && "$@" stop; echo $?')
    done = subprocess.run(["sh", "-c", lines, "sh", *project.program], cwd=str(project.dir), env=project.env,
                          preexec_fn=theirs, stdout=PIPE, timeout=PATIENCE)
    project.dir.joinpath("outer").chmod(0o700)
    assert done.stdout == b"none\n3\n1\n0\n", done
    project.marker.chmod(0)
    assert "Permission denied" in refusal(project.hotenv("dump", preexec_fn=theirs), 8)


@pytest.mark.parametrize("content, code", [
    (b"socket=%s", 0), (b"socket=%s\n", 0), (b"\n\nsocket=%s\n\n", 0), (b"\n \t\nsocket=%s\n  \n", 0),
    (b"", 9), (b"\n", 9), (b"socket=", 9), (b"socket=\n", 9), (b"socket=relative.sock\n", 9), (b"socket%s\n", 9),
    (b"Socket=%s\n", 9), (b"sock=%s\n", 9), (b"export socket=%s\n", 9), (b"socket=%s\nsocket=%s\n", 9),
    (b"socket=%s\nmore\n", 9), (b"# note\nsocket=%s\n", 9), (b" socket=%s\n", 9), (b"socket= %s\n", 9),
    (b"socket=/a\0b\n", 9), (b"\xff\xfe", 9), (b"socket='%s'\n", 9), (b"socket=%s" + b"\n" * 8192, 9),
    (b"socket=/" + b"x" * 8300, 9), (b"socket=/nowhere/1.sock\n", 4), (b"socket=/etc/passwd\n", 4),
    (b"socket=/" + b"x" * 4000 + b"\n", 4), (b"socket=/tmp\n", 4), (b"socket=%s\r\n", 4), (b"socket=/\xff\n", 4),
], ids=short)
def test_a_marker_is_one_line_with_an_absolute_path(project, session, monkeypatch, content, code):
    project.marker.write_bytes(content.replace(b"%s", os.fsencode(session.socket_path())))
    monkeypatch.chdir(str(project.dir))
    with pytest.raises(hotenv.HotenvError) if code else contextlib.nullcontext() as caught:
        assert hotenv.fetch()["A"] == "1"
    if code:
        message = str(caught.value)
        assert caught.value.code == code and message.isprintable()
        assert ("serve < " if code == 4 else "socket=<absolute path>") in message


PLANTED = [each + " .hotenv" for each in ("mkdir", "mkfifo", "ln -s /dev/zero", "ln -s .hotenv", "ln -s nothing")]
STRANGERS = ["mv real .hotenv; chown {0} .hotenv", "ln -s real .hotenv; chown -h {0} .hotenv",
             "ln -s real between; ln -s between .hotenv; chown -h {0} between"]


@pytest.mark.parametrize("lines", PLANTED + [pytest.param(each, marks=only_root) for each in STRANGERS])
def test_a_planted_marker_is_not_believed_and_force_replaces_it_but_not_what_it_leads_to(project, lines):  # invariant 9
    project.sh("cd p; echo socket=/tmp/x.sock > real; " + lines.format(STRANGER))
    before = project.files()
    assert ".hotenv" in refusal(project.run("echo", "ran"), 8)
    assert "--force" in refusal(project.hotenv("serve", input=b"A=1\n"), 10)  # and it is a marker, for serve
    if "mkdir" in lines:
        refusal(project.hotenv("serve", "--force", input=b"A=1\n"), 8)
    assert project.files() == before
    if lines in PLANTED[1:]:
        project.serve(b"A=1\n", "--force")
        assert stat.S_ISREG(os.lstat(str(project.marker)).st_mode) and project.dump() == {b"A": b"1"}
        assert not (project.dir / "nothing").exists() and os.path.exists("/dev/zero")


@only_root
def test_a_marker_or_a_link_of_root_is_believed_by_others(project, session):  # invariant 9
    project.for_strangers()
    project.marker.write_bytes(session.marker.read_bytes())
    project.sh("cd p; chmod 644 .hotenv; mkdir below; ln -s ../.hotenv below/.hotenv")
    ask = {"cwd": str(project.dir / "below"), "preexec_fn": become(STRANGER)}
    # Believed: what keeps the stranger out is the directory of the socket that it names.
    assert session.socket_path() in refusal(project.hotenv("dump", **ask), 4)
    os.chown(str(project.marker), STRANGER + 1, STRANGER + 1)
    assert str(STRANGER + 1) in refusal(project.hotenv("dump", **ask), 8)


@pytest.fixture
def stranger(project):
    """A server of another user, and a marker of ours that names it."""
    if not ROOT:
        pytest.skip("needs root, to become somebody else")
    plain, theirs = project.program, project.for_strangers(STRANGER)
    project.serve(b"PATH=/evil\n", preexec_fn=theirs)
    os.chown(str(project.marker), 0, 0)
    project.program = plain


def test_a_server_of_another_user_is_not_believed(project, stranger):  # invariant 9
    for command in (["dump"], ["run", "--", "echo", "ran"], ["dump", "--peer-uid", "4243"]):
        done = project.hotenv(*command)
        assert "uid 4242" in refusal(done, 9) and b"evil" not in done.stdout + done.stderr
    assert project.hotenv("dump", "--peer-uid", "4242").stdout == b"PATH=/evil\n"
    assert "cannot be believed" in refusal(project.hotenv("serve"), 10)


@only_linux
def test_nobody_in_particular_is_refused_before_anything_is_read(project):  # invariant 9
    """In a user namespace that maps nobody every file and every process belongs to uid 65534."""
    if subprocess.run(["sh", "-c", "unshare -U true"], stderr=DEVNULL).returncode:
        pytest.skip("needs user namespaces")
    project.program = ["unshare", "-U", *project.program]
    process, writer = project.held()
    assert ended(process) == 8 and b"nobody" in process.stderr.read() and not project.files()
    os.close(writer), project.points_at("/x")
    refusal(project.hotenv("dump"), 8)


def test_a_marker_is_there_and_whole_and_its_session_listens_at_every_moment_and_a_newcomers_stays(project, meddle):
    plain = project.program
    meddle("?link,?linkat:error=EPERM")  # as on a file system that has none
    server = project.serve()
    assert mode(project.marker) == 0o600 and project.dump() == {b"A": b"1"}
    refusal(project.hotenv("serve"), 10)
    assert len(list(project.runtime.glob("*.sock"))) == 1 and os.listdir(str(project.dir)) == [".hotenv"]
    assert ended(server, signal.SIGTERM) == 0 and project.files() == ["r/hotenv"]
    # On a slow disk and with a slow listen, which a poller must not notice; also while --force replaces it.
    meddle("write,listen:delay_enter=100000", "?rename,?renameat,?renameat2,?unlink,unlinkat:delay_enter=30000")
    process = project.start("serve", stdin=DEVNULL)
    until(project.marker.exists, "a marker")
    assert project.ask() == b'{"env":{}}\n' and process.poll() is None
    before = project.marker_content()
    project.start("serve", "--force", stdin=DEVNULL)
    until(lambda: project.marker.read_bytes() != before, "another marker")  # an error, where there is none
    until(lambda: not any(project.dir.glob(".hotenv.*")) and project.ask() == b'{"env":{}}\n')
    # Between the look at its marker and its removal an old server sleeps: a newcomer's must not be what it removes.
    meddle("?unlink,unlinkat:delay_enter=150000")
    old, before = project.serve(b"A=old\n", "--force"), project.marker_content()
    project.program = plain
    process, writer = project.held("--force")
    until(lambda: Path("/proc/%d/comm" % process.pid).read_text() == "hotenv\n", "a server that reads")
    old.terminate(), os.close(writer)
    assert ended(old) == 0
    project.wait_ready(process, before)
    assert project.ask() == b'{"env":{}}\n'


def test_clean_up_finds_its_files_where_a_directory_was_renamed_and_spares_what_is_not_ours(project):  # invariant 7
    server, moved = project.serve(), project.root / "moved"
    project.dir.rename(moved)
    assert ended(server, signal.SIGTERM) == 0 and not (moved / ".hotenv").exists() and project.files() == ["r/hotenv"]
    moved.rename(project.dir)
    server, path = project.serve(), project.socket_path()
    project.sh("rm %s; echo precious > %s; echo socket=/tmp/another.sock > p/.hotenv" % (path, path))
    assert ended(server, signal.SIGTERM) == 0 and Path(path).read_bytes() == b"precious\n"
    assert project.marker.read_bytes() == b"socket=/tmp/another.sock\n"


def test_force_replaces_the_marker_and_removes_the_old_socket(project, session):
    """Over a link of ours, which is followed, it spares the session that it led to."""
    project.marker.symlink_to(session.marker)
    assert project.dump()[b"A"] == b"1"
    project.serve(b"A=new\n", "--force")
    old_path = project.socket_path()
    assert not project.marker.is_symlink() and project.dump() == {b"A": b"new"} and session.dump()[b"A"] == b"1"
    project.serve(b"A=newer\n", "-f")
    assert project.dump() == {b"A": b"newer"} and not os.path.exists(old_path)
    project.sh("rm p/.hotenv")
    project.serve(b"A=newest\n", "-f")  # there may be nothing to replace
    assert project.dump() == {b"A": b"newest"}


@pytest.mark.parametrize("name, make_socket", [
    ("r/hotenv/0123abcd.sock", False),  # a file, where a socket of ours might lie
    ("r/hotenv/0123ABCD.sock", True), ("r/hotenv/other.sock", True), ("r/hotenv/0123abcd.sock.sock", True),
    ("r/0123abcd.sock", True), ("p/0123abcd.sock", True), ("r/hotenv/sub/0123abcd.sock", True)])
def test_force_spares_an_old_socket_that_is_none_of_ours(project, name, make_socket):  # invariant 7
    other, namesake = project.root / name, project.runtime / Path(name).name
    project.sh("mkdir -p r/hotenv r/hotenv/sub%s" % ("" if make_socket else "; echo precious > " + name))
    for path in {other, namesake} if make_socket else ():
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    project.points_at(other)
    project.serve(b"A=1\n", "--force")
    assert other.exists() and namesake.exists() and project.dump() == {b"A": b"1"}


@pytest.mark.parametrize("mount", ["size=4k", "nr_inodes=2", "ro"])
def test_a_full_or_read_only_file_system_leaves_nothing(project, mount):  # invariant 2
    in_mounts(project, 'mount -t tmpfs -o %s none . && cd "$PWD" && { head -c 4096 /dev/zero > full; } 2>/dev/null;'
              ' ls -A > ../before; "$@"; code=$?; ls -A > ../after; exit $code' % mount)
    refusal(project.hotenv("serve", input=b"A=1\n"), 8)
    assert (project.root / "before").read_bytes() == (project.root / "after").read_bytes()
    assert not list(project.base.rglob("*.sock"))


# ==== protocol ========================================================================================================
# One JSON line each way. What is no request gets a reason, and changes nothing.

LONGEST = 256 << 10  # bytes of a request, its newline not counted
DIGITS = b"1" * 200000
TORN = [b'{"command":"du\n', DIGITS + b"\n", b"[" * 100000 + b"\n"]  # these three also where there is no C half of json
BAD_REQUESTS = [
    b"\n", b"  \n", b"dump\n", b"null\n", b'["dump"]\n', b'"dump"\n', b'{"command":"dump"}{"command":"dump"}\n',
    b'{"command":"dump"} x\n', b"{'command':'dump'}\n", b'{"command":"dump",}\n', b'{"command":"\\"\n',
    b'{"command":"run","args":["\xff"]}\n', '{"command":"dump"}\n'.encode("utf-16"), b"\0\n", b"{}\n",
    b'\xef\xbb\xbf{"command":"dump"}\n', b'{"command":"run","args":["a\tb"]}\n', b'{"command":"stop"}\n',
    b'{"command":"Dump"}\n', b'{"command":null}\n', b'{"command":["dump"]}\n', b'{"command":1}\n',
    b'{"command":"run"}\n', b'{"command":"run","args":[]}\n', b'{"command":"run","args":"ls"}\n',
    b'{"command":"run","args":{"0":"ls"}}\n', b'{"command":"run","args":null}\n',
    b'{"command":"run","args":["ls",1]}\n', b'{"command":"run","args":[null]}\n', b'{"command":NaN}\n',
    b'{"command":"dump","x":NaN}\n', b"-Infinity\n", *TORN, b'{"command":' + DIGITS + b"}\n",
    b'{"command":1e' + DIGITS + b"}\n", b"[" * 100000 + b"]" * 100000 + b"\n", b'{"a":' * 50000 + b"\n",
    b'{"command":"dump","x":"' + b"x" * (LONGEST - 24) + b'"}\n', b"x" * (17 << 20),  # the last two are too long
]
RUN = b'{"command":"run","args":["x"]}\n'
GOOD_REQUESTS = [
    DUMP, RUN, b'  { "command" : "dump" } \r\n', b'{"version":3,"command":"dump","more":{"a":[1,2.5,null,true]}}\n',
    b'{"command":"dump","args":7}\n', b'{"comm\\u0061nd":"\\u0064ump"}\n', b'{"command":"run","args":[""]}\n',
    b'{"command":"run","args":["\\ud800"]}\n', b'{"command":1,"command":"dump"}\n',
    b'{"command":"dump","n":' + DIGITS + b"}\n", b'{"command":"dump","x":"' + b"x" * (LONGEST - 25) + b'"}\n',
    b'{"command":"dump"}\nand more\n', b'{"command":"dump"}\n{"command":"stop"}\n']


@pytest.mark.parametrize("request_", GOOD_REQUESTS + BAD_REQUESTS, ids=short)
def test_a_request_gets_the_environment_and_a_bad_one_a_reason_and_changes_nothing(session, request_):  # invariant 6
    ends, log, reply = session.ends_at(), session.log(), session.ask(request_)
    told = json.loads(reply.decode("ascii"))
    assert reply.count(b"\n") == 1 and reply.endswith(b"\n")
    if request_ in GOOD_REQUESTS:
        assert len(request_.split(b"\n")[0]) <= LONGEST and told == {"env": {"A": "1", "B": "two words", "EMPTY": ""}}
    else:
        assert reply.startswith(BAD_REQUEST) and set(told) == {"error", "message"} and len(told["message"]) > 10
        assert session.ends_at() == ends and session.log() == log


def test_what_follows_the_request_is_never_answered_and_spoils_nothing(session):
    """Closing with unread bytes would reset the other side, which might then never read its answer."""
    for _ in range(20):
        with session.connect() as client:
            client.sendall(DUMP + b"x" * 100000)
            reply = b"".join(iter(lambda: client.recv(1000), b""))  # until the end: a reset is an error
            assert reply.count(b'"env"') == 1 and reply.endswith(b"\n")


def process_stat(pid):
    """State, parent and so on, from proc(5)."""
    return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()


def resident(pid):
    return int(process_stat(pid)[21]) * resource.getpagesize()


SHAPES = [  # what a request goes on with, what comes again and again, and how it ends
    (b'"dump","x":[', b"[],", b"[]]}"), (b'"dump","x":[', b'{"a":{}},', b"{}]}"), (b'"dump","x":', b"1", b"}"),
    (b'"dump","x":[', b"[" * 900 + b"]" * 900 + b",", b"[]]}"), (b'"run","args":[', b'"\xc2\x80",', b'""]}'),
    (b'"dump","x":[', b'"\\u00e9",', b"1]}"), (b'"dump"', b',"a":1', b"}"), (b'"dump","x":[', b"1,", b"1]}")]


@only_linux
@pytest.mark.parametrize("size", [LONGEST, 16 << 20], ids=["the longest", "16 MiB"])
def test_no_shape_of_a_request_holds_up_others(project, size):  # invariant 5
    def cpu_seconds():
        return sum(map(int, process_stat(server.pid)[11:13])) / os.sysconf("SC_CLK_TCK")
    server = project.serve(b"A=1\n", "--verbose")
    before = resident(server.pid)
    for shape in SHAPES:
        request = b'{"command":%s%s%s\n' % (shape[0], shape[1] * ((size - 100) // len(shape[1])), shape[2])
        begun = cpu_seconds()
        assert project.ask(request).startswith(b'{"env"' if size == LONGEST else BAD_REQUEST), short(shape)
        assert cpu_seconds() - begun <= 0.1, short(shape)
    assert resident(server.pid) - before < 8 << 20 and b'"env"' in project.ask()


def test_unfinished_requests_share_their_memory(project):  # invariant 5
    """Who has made no progress for longest goes; whoever is quick is served at once."""
    server = project.serve()
    before, clients = resident(server.pid) if LINUX else 0, [project.connect() for _ in range(100)]
    for client in clients:
        client.sendall(b'{"command":"dump","x":"' + b"x" * 200000)
    assert project.dump() == {b"A": b"1"}
    until(lambda: len(select.select(clients, [], [], 0)[0]) >= 100 - (16 << 20) // 200000)  # it may still be reading
    readable = select.select(clients, [], [], 0)[0]
    assert len(readable) < 40 and readable == clients[:len(readable)]
    assert not LINUX or resident(server.pid) - before < 40 << 20
    clients[-1].sendall(b'"}\n')
    assert b'"env"' in answer(clients[-1]) and project.dump() == {b"A": b"1"}


def test_values_arrive_to_the_byte_and_a_command_line_longer_than_a_request_runs_all_the_same(project):
    values = ["", " ", "'\"\\", "a\nb\r\tc", "\x01\x7f", "\u00e9\u20ac\U0001f511", "}{\",:", "x" * 100000]
    escaped = [value.replace("\\", "\\\\").replace("'", "\\'") for value in values]
    text = "".join("A%d='%s'\n" % pair for pair in enumerate(escaped)) + "R=<${ODD}>\n"
    project.serve(text.encode(), "--verbose", env={"ODD": os.fsdecode(b"\xff\xc3\xa9")})
    expected = {b"A%d" % number: value.replace("\r", "\n").encode() for number, value in enumerate(values)}
    expected[b"R"] = b"<\xff\xc3\xa9>"
    assert project.dump() == expected
    assert expected.items() <= environment_of(project.run("env", "-0", env={"A0": "before"})).items()
    done = project.run("sh", "-c", 'echo "$A1 $#"', "sh", *[b"\xc3\xa9" * 10000] * 50)
    assert (done.returncode, done.stdout) == (0, b"  50\n")
    line = project.log_lines()[-1]
    assert line[20:].startswith('run sh -c echo "$A1 $#" sh \u00e9\u00e9') and 30000 < len(line) < LONGEST


# ==== server ==========================================================================================================
# Timers, signals, the request log, and clients that are slow, silent, many or gone.


def test_an_idle_session_ends_and_a_used_one_only_by_its_max_age_and_then_no_answer_is_given_or_goes_on(project):
    server, first_end = project.serve(b"A=1\n", "--timeout", "0.3", "-q"), project.ends_at()
    with project.connect(), project.connect() as staying:
        staying.sendall(b'{"comm')
        until(lambda: (time.time(), project.ask())[0] > first_end + 0.2)
        used = time.time()
        assert server.poll() is None and ended(server) == 0 and 0.2 < time.time() - used < 3
    assert project.files() == ["r/hotenv"] and project.log() == b""
    refusal(project.run("true"), 3)
    server = project.serve(b"A=1\n", "--timeout", "1h", "--max-age", "0.4", "-q")
    path, end, answers = project.socket_path(), project.ends_at(), []
    with pytest.raises(OSError):
        while True:
            answers.append(project.ask(path=path))
    assert ended(server) == 0 and end <= time.time() < end + 5 and any(answers) and project.files() == ["r/hotenv"]
    # Nothing is answered after the deadline, and no answer goes on (invariant 3).
    server = project.serve(b"A=" + b"x" * (8 << 20) + b"\n", "--timeout", "0.4")
    with project.connect() as slow, project.connect() as early:
        slow.sendall(DUMP)
        got = len(slow.recv(1000))
        server.send_signal(signal.SIGSTOP)
        with project.connect() as late:
            early.sendall(DUMP), late.sendall(DUMP)
            until(lambda: time.time() > project.ends_at() + 0.1)
            server.send_signal(signal.SIGCONT)
            assert answer(early) == answer(late) == b""
        assert ended(server) == 0 and 0 < got + len(answer(slow)) < 4 << 20
    assert project.files() == ["r/hotenv"] and project.log() == b""


def test_each_success_is_logged_and_sets_the_idle_timer_before_its_client_is_let_go(project):  # invariant 6
    project.serve(b"A=1\n", "--timeout", "1000")
    asks = [project.dump, lambda: project.run("true"), *[project.ask] * amount(2000)]
    first = project.ends_at()
    for count, ask in enumerate(asks, 1):
        before = time.time()
        assert ask() and before + 1000 - 0.02 <= project.ends_at() <= time.time() + 1000.01
        assert len(project.log_lines()) == count
    assert project.ends_at() >= first + 0.02  # two starts of an interpreter take longer


MEGABYTE = 1 << 20
TOKENS = [b"t0ken-%s-" % os.urandom(8).hex().encode() for _ in range(20)]
LARGE_SIZE = 20 * MEGABYTE + len(json.dumps({"env": {"V%d" % n: "" for n in range(20)}}, separators=",:")) + 1


@pytest.fixture(scope="module")
def large():
    """A session with 20 values of a megabyte, each with a word of its own in it."""
    yield from standing(b"".join(b"V%d=%s%s\n" % (number, token, b"x" * (MEGABYTE - len(token)))
                                 for number, token in enumerate(TOKENS)))


def test_what_is_no_success_does_not_reset_the_timer_and_slow_readers_hold_up_nobody(large):  # invariants 4 to 6
    ends, log = large.ends_at(), large.log()
    for request, begins in ((b"{}\n", BAD_REQUEST), (DUMP[:-1], b""), (b"", b""), (DUMP, b'{"env"')):
        with large.connect() as client:  # refused; gone before its answer; silent; gone in the middle of its answer
            client.sendall(request)
            assert not begins or client.recv(len(begins)) == begins
    assert large.ask(b"{}\n").startswith(BAD_REQUEST)  # when this one is refused, the others have been dealt with
    assert large.ends_at() == ends and large.log() == log
    before, size = len(large.log_lines()), resident(large.server_pid()) if LINUX else 0
    slow = [large.connect() for _ in range(5)]
    for client in slow:
        client.sendall(DUMP)
        assert client.recv(10)
    began = time.monotonic()
    assert len(large.ask()) == LARGE_SIZE and large.ask(b"{}\n").startswith(BAD_REQUEST)
    assert time.monotonic() - began < 5
    assert not LINUX or resident(large.server_pid()) - size < LARGE_SIZE  # all get the same bytes
    assert [10 + len(answer(client)) for client in slow] == [LARGE_SIZE] * 5 and len(large.log_lines()) == before + 6


@pytest.fixture(scope="module")
def bare_memory():
    """What an interpreter with the modules of a server takes."""
    code = "import argparse, ctypes, fcntl, json, re, resource, selectors, signal, socket, sys; print(flush=1); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE) as interpreter:
        interpreter.stdout.readline()
        yield resident(interpreter.pid)
        interpreter.kill()


@only_linux
@pytest.mark.parametrize("options", [[], ["--background"]], ids=short)
def test_a_session_is_small(project, bare_memory, options):
    project.program = [sys.executable, str(HOTENV)]
    project.hotenv("serve", *options) if options else project.serve()
    assert project.dump() is not None and resident(project.server_pid()) - bare_memory < 8 * MEGABYTE


@only_linux
def test_each_value_is_once_in_the_memory_of_a_server(large, project, bare_memory):  # invariant 12
    assert len(large.ask()) == LARGE_SIZE
    assert resident(large.server_pid()) - bare_memory < 1.2 * LARGE_SIZE + 8 * MEGABYTE
    if not ROOT:
        pytest.skip("needs root, to look into a server")
    project.serve(b"".join(b'V%d="%s"\n' % number_and_token for number_and_token in enumerate(TOKENS)) + b"W=${V0}\n")
    for session, copies in ((large, 1), (project, 2)):
        pid, counts = session.server_pid(), dict.fromkeys(TOKENS, 0)
        with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
            for line in maps:
                start, end = (int(edge, 16) for edge in line.split()[0].split("-"))
                if " rw" in line:
                    memory.seek(start)
                    for token in re.findall(rb"t0ken-[0-9a-f]{16}-", memory.read(end - start)):
                        counts[token] += 1
        assert list(counts.values()) == [copies] + [1] * (len(TOKENS) - 1)


def test_a_thousand_silent_clients_delay_nobody(project):  # invariant 5
    """The soft limit of descriptors is raised for them, so that none of them has to go."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("needs 1,200 descriptors")
    with contextlib.ExitStack() as clients:
        clients.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        limits(NOFILE=(min(hard, 4096), hard))()
        server = project.serve(b"A=1\n", "--timeout", "1h", preexec_fn=limits(NOFILE=(64, hard)))
        for number in range(1000):
            clients.enter_context(project.connect()).sendall(b'{"comm' * (number % 2))
        for _ in range(20):
            asked = time.monotonic()
            assert b'"env"' in project.ask() and time.monotonic() - asked < 1.0
        poll = select.poll()
        poll.register(project.clients[0])
        assert poll.poll(0)[0][1] == select.POLLOUT and project.run("true").returncode == 0 and server.poll() is None


def sleeps(pid):
    """Whether a process only waits: a look every 2 ms, 50 times."""
    return sum(not time.sleep(0.002) and process_stat(pid)[0] == "S" for _ in range(50)) > 45


@only_linux
@pytest.mark.parametrize("request_", [b"", b'{"comm', DUMP], ids=["silent", "in its request", "not reading"])
def test_without_descriptors_those_without_progress_make_room(project, request_):  # invariant 5
    server = project.serve(b"A=" + b"x" * (2 << 20) + b"\n", preexec_fn=limits(NOFILE=(40, 40)))
    for _ in range(100):
        project.connect().sendall(request_)
    first, last = project.clients[0], project.clients[-1]
    assert len(project.ask()) > 2 << 20 and project.dump()
    assert len(answer(first)) < 2 << 20 and (request_ == DUMP or not select.select([last], [], [], 0)[0])
    assert sleeps(server.pid)
    assert ended(server, signal.SIGTERM) == 0 and project.files() == ["r/hotenv"]  # it has no descriptor to spare


@only_linux
def test_a_full_backlog_is_waited_for(project):
    path, waiting, request = str(project.root / "busy.sock"), [], b""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path), listener.listen(0)
        while not waiting or not waiting[-1].connect_ex(path):  # EAGAIN, at the last
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
        run = project.start("dump", "--socket", path, stdout=PIPE)
        until(lambda: run.poll() is not None or sleeps(run.pid), "somebody who waits")
        assert run.poll() is None
        for client in waiting:
            client.close()
        while not request:
            with listener.accept()[0] as accepted:
                request = accepted.recv(100)
                request and accepted.sendall(b'{"env":{"A":"1"}}\n')
    assert run.communicate(timeout=PATIENCE)[0] == b"A=1\n"


@only_linux
def test_a_signal_of_somebody_elses_and_a_client_under_kernel_guards_are_nothing_to_a_server(project):  # invariant 5
    handler = "import signal; signal.signal(signal.SIGUSR1, lambda *_: None); "
    project.program = [*INSTALLED[:-1], handler + INSTALLED[-1]]
    server = project.serve()
    os.kill(server.pid, signal.SIGUSR1)
    assert project.dump() == {b"A": b"1"}
    until(lambda: sleeps(server.pid), "a server that waits", 5)
    # Guards are known by the hard limit of their message queues, which nobody can raise again.
    for hard, code in ((1117, 9), (1117 + 4096, 9), (4096, 0), (1118, 0)):
        done = project.run("true", preexec_fn=limits(MSGQUEUE=(hard, hard)))
        assert refusal(done, code) if code else done.returncode == 0
    assert len(project.log_lines()) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_a_session_properly_and_stays_ignored_where_it_was_at_start(project, number):
    """nohup and a shell's & mean it; SIGTERM always ends a session."""
    server = project.serve()
    for harmless in (signal.SIGCONT, signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD):
        server.send_signal(harmless)
    assert b'"env"' in project.ask() and ended(server, number) == 0 and project.files() == ["r/hotenv"]
    if number in (signal.SIGINT, signal.SIGHUP):
        server = project.serve(preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
        server.send_signal(number)
        assert b'"env"' in project.ask() and ended(server, signal.SIGTERM) == 0


@only_linux
@pytest.mark.parametrize("options, code, said", [([], 4, b""), (["--optional"], 0, b"x\n")], ids=short)
def test_who_meets_the_end_of_a_session_finds_none(project, options, code, said):
    server, path = project.serve(), project.socket_path()
    server.send_signal(signal.SIGSTOP)
    run = project.start("run", *options, "--", "echo", "x", stdout=PIPE)
    until(lambda: Path("/proc/net/unix").read_text().count(" %s\n" % path) > 1, "a client, that is not yet accepted")
    server.terminate(), server.send_signal(signal.SIGCONT)
    assert run.communicate(timeout=PATIENCE)[0] == said and run.returncode == code
    assert project.log().startswith(b"hotenv: ") and project.log().count(b"\n") == 1


def test_every_client_beside_an_end_has_its_answer_or_none_and_stop_and_status_side_by_side_agree(project):
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
            assert ended(server, signal.SIGTERM) == 0 and list(codes) == [4] * 4
        project.log_path.unlink()
    for _ in range(amount(100)):
        server = project.serve()
        calls = [project.start(each, stdout=PIPE, stderr=PIPE) for each in ("stop", "status", "stop", "stop")]
        told = [(call.communicate(timeout=PATIENCE), call.returncode) for call in calls]
        assert {0} <= {code for _, code in told} <= {0, 3, 4}, told
        assert ended(server) == 0 and not project.marker.exists()
    server = project.serve()
    server.send_signal(signal.SIGSTOP)
    done = project.hotenv("status")
    assert done.returncode == 4 and b"stopped" in done.stdout + done.stderr
    assert "is stopped" in refusal(project.hotenv("serve", input=b""), 10) and project.hotenv("stop").returncode == 0
    assert ended(server) == 0 and project.files() == ["r/hotenv"]


LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (run|dump) ")


def run_request(*args):
    return json.dumps({"command": "run", "args": args}).encode() + b"\n"


@pytest.mark.parametrize("options, lines", [([], ["run python", "run two words", "run ", "dump -"]), (["-q"], []),
                                            (["--verbose"], ["run python script.py --debug", "run two words a  b",
                                                             "run ", "dump -"])], ids=short)
def test_one_log_line_for_each_successful_request(project, options, lines):
    project.serve(b"A=1\n", *options, env={"TZ": "UTC-5"})
    minutes = {time.strftime("%F %H:%M", time.gmtime(time.time() + 5 * 3600 + late)) for late in (-5, 0, 60)}
    for args in (["python", "script.py", "--debug"], ["two words", "a ", "b"], [""]):
        assert b'"env"' in project.ask(run_request(*args))
    assert project.ask(b"nonsense\n") and project.ask() and [line[20:] for line in project.log_lines()] == lines
    assert {line[:16] for line in project.log_lines()} <= minutes


@pytest.mark.parametrize("arg, shown", [
    ("\x1b[31mred", r"\x1b[31mred"), ("two\nlines", r"two\nlines"), ("a\rb", r"a\rb"), ("tab\t.", r"tab\t."),
    ("\u202egnp.exe", r"\u202egnp.exe"), ("\u2028", r"\u2028"), ("\x7f\x80", r"\x7f\x80"), ("\ud800", r"\ud800"),
    ("\udcff", r"\udcff"), ("\U000e0001", r"\U000e0001"), ("back\\slash \u00e9\u20ac\U0001f511 'quotes\"", ""),
], ids=short)
def test_what_a_client_sends_is_escaped_in_the_log(session, arg, shown):  # invariant 10
    before = session.log()
    assert b'"env"' in session.ask(run_request("x", arg))
    assert session.log()[len(before) + 20:] == b"run x %s\n" % (shown or arg).encode()


@only_linux
def test_whoever_does_not_read_the_log_holds_up_neither_requests_nor_the_end(project):
    """A pipe and a terminal that nobody reads, and one under Ctrl-S; by its timeout and by a signal."""
    servers, kept = [], []
    for kind, timeout in itertools.product(("pipe", "terminal", "stopped terminal"), ("0.5", "1h")):
        project.dir = project.root / (kind + timeout)
        project.dir.mkdir()
        reader, writer = os.pipe() if kind == "pipe" else pty.openpty()
        kept += reader, writer
        if kind == "pipe":
            os.write(writer, b"." * fcntl.fcntl(writer, 1032))  # F_GETPIPE_SZ: as much as there is room for
        elif kind == "stopped terminal":  # Ctrl-S
            termios.tcflow(writer, termios.TCOOFF)
        server = project.serve(b"A=1\n", "--verbose", "--timeout", timeout, stderr=writer)
        for _ in range(4):
            assert b'"env"' in project.ask(run_request("x" * 100000)), kind
        servers.append((kind, timeout, server, time.monotonic()))
        if timeout == "1h":
            server.terminate()
    for kind, timeout, server, began in servers:
        assert ended(server) == 0 and time.monotonic() - began < 6, (kind, timeout)
    assert not list(project.root.rglob("*.sock")) and not list(project.root.rglob(".hotenv"))
    for descriptor in kept:
        os.close(descriptor)


def test_a_log_that_is_read_late_is_whole_or_cut_with_a_count_and_so_is_one_that_found_no_room(project):
    def logged_and_lost(log, size):
        """How many requests of this size a log has, and how many it says that it has not."""
        notes = [re.search(r"\b(\d+) (?:log )?lines? .*(?:dropped|lost)", line) for line in log.decode().splitlines()]
        whole = [line for line, note in zip(log.decode().splitlines(), notes) if not note and line.endswith("x" * size)]
        return len(whole), sum(int(note[1]) for note in notes if note)
    for count, size in ((100, 20000), (1000, 200)):
        reader, writer = os.pipe()
        server = project.serve(b"A=1\n", "--verbose", stderr=writer)
        os.close(writer)
        for _ in range(count):
            assert b'"env"' in project.ask(run_request("x" * size))
        server.terminate()
        until(lambda: not project.marker.exists(), "the end")
        logged, lost = logged_and_lost(read_until(reader), size)
        assert ended(server) == 0 and logged + lost == count and (lost > 20 if size == 20000 else not lost), size
        os.close(reader)
    # A disk that is full, and a log that is emptied.
    server = project.serve(b"A=1\n", "--verbose", preexec_fn=limits(FSIZE=(1 << 16, 1 << 16)))
    for _ in range(900):
        assert b'"env"' in project.ask(run_request("x" * 100))
    begun = project.log()
    os.truncate(project.log_path, 0)
    assert b'"env"' in project.ask(run_request("x" * 100)) and ended(server, signal.SIGTERM) == 0
    logged, lost = logged_and_lost(begun + project.log(), 100)
    assert logged + lost == 901


@pytest.mark.parametrize("closed", [(2,), (1, 2), (0, 1, 2), "left", pytest.param("full", marks=only_linux)], ids=str)
def test_a_log_that_cannot_be_written_ends_no_session_and_no_descriptor_is_taken_for_a_closed_one(project, closed):
    reader, writer = os.pipe()
    numbers = closed if isinstance(closed, tuple) else ()
    with open("/dev/full", "wb") if closed == "full" else os.fdopen(writer, "wb") as log:
        server = project.serve(b"A=1\n", "--verbose", stdout=DEVNULL, stderr=None if numbers else log,
                               preexec_fn=lambda: [os.close(each) for each in numbers])
    os.close(reader)
    for request in (DUMP, RUN, DUMP):
        assert project.ask(request) == (b'{"env":{}}\n' if 0 in numbers else b'{"env":{"A":"1"}}\n')
    assert ended(server, signal.SIGTERM) == 0


# ==== client ==========================================================================================================
# Which session is asked, and what may be wrong with what answers.


def test_which_session_is_asked_also_by_a_program_and_what_names_a_stale_one(project, session, answerer, monkeypatch):
    other = answerer(b'{"env":{"A":"other"}}\n')
    project.serve(b"A=marker\n")
    by_option, by_variable = ["--socket", other.path], {"HOTENV_SOCKET": other.path}
    for options, env, value in (
            ([], {}, b"marker"), ([], {"HOTENV_SOCKET": ""}, b"marker"), ([], by_variable, b"other"),
            (by_option, {}, b"other"), (["--socket", session.socket_path()], by_variable, b"1")):
        assert project.dump(*options, env=env)[b"A"] == value
        assert project.hotenv("run", *options, "--", "sh", "-c", "printf %s $A", env=env).stdout == value
    refusal(project.hotenv("serve", env=by_variable), 10)  # serve ignores both
    told = project.hotenv("status", "--socket", session.socket_path()).stdout.decode()
    assert session.socket_path() in told and str(project.marker) not in told  # which is another session's
    monkeypatch.chdir(str(project.dir))
    assert hotenv.fetch() == {"A": "marker"}
    assert hotenv.fetch("run", ["a", "b"], session.socket_path()) == {"A": "1", "B": "two words", "EMPTY": ""}
    assert session.log().endswith(b" run a b\n")
    path = str(project.root / "gone.sock")  # a name that is stale: another session, by `serve --force`, is no help
    for command, options in itertools.product((["run", "--", "true"], ["dump"]), ([], ["--socket", path])):
        done = project.hotenv(command[0], *options, *command[1:], env={} if options else {"HOTENV_SOCKET": path})
        message = refusal(done, 4)
        assert path in message and "serve" not in message and "any more" not in message
        assert options or "unset" in message and "HOTENV_SOCKET" in message


@pytest.mark.parametrize("kind", ["none", "refused", "missing", "file", "datagram", "directory", "loop", "too long"])
def test_no_session_is_3_and_whatever_keeps_us_from_connecting_is_4_and_how_to_start_one(project, kind):
    path = Path("/" + "x" * 300) if kind == "too long" else project.root / "x.sock"
    if kind in ("refused", "datagram"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM) as made:
            made.bind(str(path))
    {"file": path.touch, "directory": path.mkdir, "loop": lambda: path.symlink_to(path)}.get(kind, str)()
    kind == "none" or project.points_at(path)
    for command in (["run", "--", "true"], ["dump"], ["run", "--only", "A", "--", "true"]):
        message = refusal(project.hotenv(*command), 3 if kind == "none" else 4)
        assert (".hotenv" if kind == "none" else str(path)) in message and "serve < " in message
    if kind == "none":
        project.program = ["sh", "-c", 'mkdir x && cd x && rmdir ../x && exec "$@"', "sh", *project.program]
        for command, code in ["run --", 8], ["serve", 8], ["hermetic --fs-readonly --", 1], ["run " + NET + " --", 8]:
            words = command.split() + ["true"] * command.endswith("--")
            assert "current directory" in refusal(project.hotenv(*words), code)  # it is gone
        assert project.files() == ["p/x"] * (project.dir / "x").exists()  # of a refused start, nothing


ANSWERS = [
    *((data, 9) for data in (
        b"\n", b"{}\n", b"[]\n", b"null\n", b'"env"\n', b"x", b'{"env":{"A":"1"}}', b'{"env":{"A":"1"}}\n{"env":{}}\n',
        b'{"env":{"A":"1"}}\n\n', b'\n{"env":{"A":"1"}}\n', b'{"env":{"A":"1"}} x\n', b'{"env":["A=1"]}\n',
        b'{"env":null}\n', b'{"env":"A=1"}\n', b'{"env":{"A":1}}\n', b'{"env":{"A":null}}\n', b'{"env":{"A":["1"]}}\n',
        b'{"env":{"":"1"}}\n', b'{"env":{"A=B":"1"}}\n', b'{"env":{"A":"\\u0000"}}\n', b'{"env":{"A\\u0000":"1"}}\n',
        b'{"env":{"A":"\\ud800"}}\n', b'{"env":{"\xff":"1"}}\n', b'{"env":{"A":"un', b'{"env":{"A":"un\n',
        b'{"env":{"A":"a\tb"}}\n', b'{"env":{"A":"\\x"}}\n', b"[" * 100000 + b"\n", b'{"a":' * 100000 + b"\n",
        b'{"env":' + b"1" * 1000000 + b"}\n", b'{"env":{"A":NaN}}\n', b'{"env":{},"x":Infinity}\n',
        b'{"error":"BAD_REQUEST","message":"why"}\n', b'{"error":"INTERNAL"}\n', b'{"error":1,"message":[]}\n',
        b'{"error":"BAD_REQUEST","env":{"A":"1"}}\n', b'\xef\xbb\xbf{"env":{}}\n')),
    *((data, 0) for data in (
        b'{"env":{"A":"1"}}\n', b'{"env":{},"more":[1.5e9]}\n', b' {"env" : {} }\r\n', b'{"env":{"A":"\\udcff"}}\n',
        b'{"env":{"A":"\xc3\xa9"}}\n', b'{"env":{"with blank":"1","a\\nb":""}}\n', b'{"env":{"A":"1","A":"2"}}\n',
        b'{"n":' + b"1" * 1000000 + b',"env":{}}\n')),
    (b"", 4),  # the session has just ended
    *[(b'{"env":{"A":"' + b"x" * (256 << 20) + b'"}}\n', 9)] * FULL,  # too long, which takes memory: long form only
]


@pytest.mark.parametrize("response, code", ANSWERS, ids=short)
def test_an_answer_is_one_line_with_an_environment(answerer, response, code):
    with pytest.raises(hotenv.HotenvError) if code else contextlib.nullcontext() as refused:
        assert isinstance(hotenv.fetch(socket_path=answerer(response).path), dict)
    if code:
        error = refused.value
        assert error.code == code and str(error).isprintable()
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_the_message_of_a_server_is_shown_escaped_and_nothing_of_a_bad_answer(project, answerer):  # invariants 1, 10
    """Also in a process that never imported json, whose C half then reports errors in another way."""
    server = answerer(b'{"error":"BAD_REQUEST","message":"\\u001b[2Jno\\n\\u202e ' + b"x" * 100000 + b'"}\n')
    project.env["HOTENV_SOCKET"] = server.path
    message = refusal(project.hotenv("dump"), 9)
    assert r"BAD_REQUEST: \x1b[2Jno\n\u202e xxx" in message and len(message) < 2000
    for entry in (b'"A":"s3cr3t', b'"A":"s3cr3t\\x"}}', b'"A\t":"s3cr3t"}}', b"s3cr3t"):
        server.response = b'{"env":{' * (entry != b"s3cr3t") + entry + b"\n"
        for done in (project.hotenv("dump"), project.run("true")):
            assert b"s3cr3t" not in done.stderr + done.stdout and refusal(done, 9)


def hastened(project, limit):
    """The program with a shorter limit, for what takes seconds; the limits that count are in a test of their own."""
    project.program = [*INSTALLED[:-1], INSTALLED[-1].replace("sys.exit", "hotenv.%s = 0.5; sys.exit" % limit)]


@pytest.mark.parametrize("lines, left", [("rm {0}", ""), ("rm {0}; : > {0}", "socket"), ("", "marker"),  # by --force
                                         ("echo socket=/tmp/x.sock > q/.hotenv", "marker")])
def test_a_server_that_lost_its_files_ends_but_a_missing_marker_is_no_reason(project, lines, left):
    hastened(project, "TICK")
    spared, its_path = project.serve(), project.socket_path()
    project.sh(f"rm p/.hotenv; mkdir q c; printf 'socket={its_path}\\n' > c/.hotenv")  # a copy, as by `cp -a`
    project.dir = project.root / "q"
    server, path, began = project.serve(), project.socket_path(), time.monotonic()
    project.sh(lines.format(path))
    assert lines or project.serve(b"A=new\n", "--force")
    assert ended(server) == 0 and time.monotonic() - began < 2.5  # by now the other one has looked at its files too
    assert (project.marker.exists(), os.path.exists(path)) == (left == "marker", left == "socket")
    assert (lines or project.dump() == {b"A": b"new"}) and project.dump("--socket", its_path) == {b"A": b"1"}
    assert spared.poll() is None and not os.path.lexists(path[:-len(".sock")])  # its link has gone in any case
    project.dir = project.root / "c"
    assert project.serve(b"A=c\n", "--force") and project.dump("--socket", its_path) == {b"A": b"1"}


def test_a_lock_that_somebody_holds_a_request_an_exchange_and_an_answer_have_their_time(project):
    descriptor = os.open(str(project.dir), os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    hastened(project, "LOCK_TIME")
    assert ended(project.serve(), signal.SIGTERM) == 0 and project.files() == ["r/hotenv"]
    os.close(descriptor), hastened(project, "REQUEST_TIME")
    project.serve()
    for request, more in ((b"", b""), (b'{"comm', b""), (b'{"comm', b"x")):  # the last one a byte now and then
        began, client = time.monotonic(), project.connect()
        client.sendall(request)
        while not select.select([client], [], [], 0.05)[0]:
            client.send(more)
        assert b"env" not in answer(client) and 0.45 < time.monotonic() - began < 3.5
    hastened(project, "EXCHANGE_TIME")
    for drip in (b"", b" "):  # which does not get more time with each of its bytes
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(project.root / ("slow%d.sock" % len(drip))))
            listener.listen(1)
            began = time.monotonic()
            client = project.start("run", "--socket", listener.getsockname(), "--", "true", stderr=PIPE)
            with listener.accept()[0] as accepted:
                while client.poll() is None:
                    with contextlib.suppress(OSError):
                        accepted.send(drip)
                    time.sleep(0.01)
            assert 0.45 < time.monotonic() - began < 3.5, drip
        assert client.returncode == 4 and re.fullmatch(".*no answer in time.*\n", client.stderr.read().decode()), drip
    # An answer has its time from its last progress.
    hastened(project, "ANSWER_TIME")
    project.serve(b"A=" + b"x" * (8 << 20) + b"\n", "--force")
    began, gone, idle, slow = time.monotonic(), 0, project.connect(), project.connect()
    for client in (idle, slow):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(DUMP)
        got = len(client.recv(1000))
    while time.monotonic() < began + (1.5 if gone else 3.5):
        time.sleep(0.1)
        got += len(slow.recv(1 << 19))
        try:
            idle.send(b"\n")
        except OSError:
            gone = gone or time.monotonic() - began
    assert 0.45 < gone and 1000 + len(answer(idle)) < 8 << 20 < got + len(answer(slow))


# ==== launch ==========================================================================================================
# What a command sees of hotenv: nothing but its variables.


@pytest.mark.parametrize("lines, status", [*(("exit %d" % status, status) for status in (0, 1, 2, 9, 127, 255)), *(
    ("ulimit -c 0; kill -%d $$" % number, -number) for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE))])
def test_run_is_the_same_process_and_its_end_the_commands(session, lines, status):  # invariant 8
    process = session.start("run", "--", "sh", "-c", "echo $$; " + lines, stdout=PIPE, stderr=PIPE)
    assert process.communicate(timeout=PATIENCE) == (b"%d\n" % process.pid, b"") and process.returncode == status


def test_a_command_has_signals_as_without_python_arguments_to_the_byte_and_the_terminal(session):  # invariant 8
    """Python ignores SIGPIPE and SIGXFSZ and handles SIGINT; a command inherits nothing of that."""
    assert session.run("sh", "-c", "yes | head -1").stderr == b""
    if LINUX:
        assert not re.search(rb"^Sig(Ign|Blk|Cgt):\s.*[^0\n]", session.run("cat", "/proc/self/status").stdout, re.M)
    args = [b"", b" ", b"two words", b"new\nline", b"\xff\xfe", "\u00e9\u20ac".encode(), b"--", b"-x", b"$HOME", b"*",
            b"'", b'"', b"\\"]
    for locale in ({}, {"LC_ALL": "C"}, ASCII, {"LC_ALL": "POSIX"}):
        done = session.run("printf", "%s\\0", *args, env=locale)
        assert done.stdout == b"".join(arg + b"\0" for arg in args) and done.stderr == b""
    lines = ("test -t 0 && test -t 1 && test -t 2; echo on=$?; read line; trap 'echo caught; exit 7' INT;"
             " echo got $line; while :; do sleep 0.02; done")
    command = session.command(["run", "--", "sh", "-c", lines])
    with on_terminal(*command, cwd=session.dir, env=session.env) as (pid, terminal):
        for wanted, typed in ((b"on=0", b"typed\n"), (b"got typed\r\n", b"\x03"), (b"caught", b"")):
            read_until(terminal, wanted), os.write(terminal, typed)
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.parametrize("locale", ["latin-1", "ascii"])
def test_a_locale_changes_no_byte(project, tmp_path, locale):
    strange = ASCII
    if locale == "latin-1":  # made for the occasion
        where = tmp_path / "xx_XX.ISO-8859-1"
        strange = {"LOCPATH": str(tmp_path), "LC_ALL": where.name, "PYTHONUTF8": "0"}
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(["localedef", "-c", "-i", "POSIX", "-f", "ISO-8859-1", str(where)], stderr=DEVNULL)
        ask = [sys.executable, "-c", "import sys; sys.exit('8859' not in sys.getfilesystemencoding())"]
        if subprocess.run(ask, env=strange).returncode:
            pytest.skip("cannot make a Latin-1 locale here")
    value = "\u00e9\u20ac\U0001f511".encode()
    project.serve(b"A=%s\n" % value, "--verbose", env=strange)
    assert project.ask() == b'{"env":{"A":"\\u00e9\\u20ac\\ud83d\\udd11"}}\n'
    for env in ({}, strange):
        assert project.dump(env=env) == {b"A": value}
        assert project.hotenv("dump", env=env).stdout == b"A=" + value + b"\n"
        done = project.run("sh", "-c", 'printf "%s %s" "$A" "$1"', "sh", b"\xc3\xa9", env=env)
        assert (done.stdout, done.stderr) == (value + b" \xc3\xa9", b"") and project.log().endswith(b"sh \xc3\xa9\n")
    done = project.hotenv("run", "--define", b"D=\xe9\xc3\xa9", "--define", b"N\xe9=1", "--bin", b"/\xe9", "--", ENV,
                          "-0", env={**strange, "ODD": b"\xe9"})
    assert {b"ODD": b"\xe9", b"D": b"\xe9\xc3\xa9", b"PATH": b"/\xe9:" + PATHS.encode(),
            b"N\xe9": b"1"}.items() <= environment_of(done).items()


@pytest.mark.parametrize("extra", [{}, {"LC_CTYPE": "C.UTF-8"}, {"LC_CTYPE": "C"}, {"LANG": "C"}, {"LC_ALL": "C"},
                                   {"LC_ALL": ""}, {"PYTHONUTF8": "1"}, {"PYTHONCOERCECLOCALE": "0"}, {"EMPTY": ""},
                                   {"A": "mine"}], ids=str)
def test_a_command_sees_its_parents_environment_and_the_snapshot(session, extra):  # invariant 8
    done = subprocess.run(session.command(["run", "--", ENV, "-0"]), env=extra, cwd=str(session.dir),
                          stdout=PIPE, stderr=PIPE, timeout=PATIENCE)
    seen, mine = environment_of(done), {os.fsencode(name): os.fsencode(value) for name, value in extra.items()}
    if sys.platform == "darwin":
        seen.pop(b"__CF_USER_TEXT_ENCODING", None)
    assert done.stderr == b"" and seen == {**mine, b"A": b"1", b"B": b"two words", b"EMPTY": b""}


def script(path, text, permissions=0o755):
    path.parent.mkdir(exist_ok=True), path.write_bytes(text), path.chmod(permissions)
    return str(path)


def test_the_command_is_looked_up_on_the_new_path_and_a_script_without_a_shebang_is_the_shells(project, session):
    for name, text in {"new/tool": b"#!/bin/sh\necho new\n", "old/tool": b"#!/bin/sh\necho old\n", "no/tool": b"",
                       "a tool": b"#!/bin/sh\necho here $A\n", "new/broken": b"#!/no/such/interpreter\n",
                       "bin/plain": b'echo "$A:$0:$1:$2"\n', "bin/dos": b"#!/bin/sh\r\necho\r\n", "no/x": b""}.items():
        script(project.dir / name, text, 0o755 if text else 0o644)
    project.sh("mkdir -p p/dir/tool")
    env = {"HOTENV_SOCKET": session.socket_path(), "PATH": "/nowhere:"}  # an empty part is "."
    assert project.run("a tool", env=env).stdout == b"here 1\n"
    done = project.hotenv("run", "--isolated", "--bin", str(project.dir), "--", "a tool", env=env)
    assert done.stdout == b"here 1\n"
    plain = project.dir / "bin/plain"
    env["PATH"] = PATHS + ":" + str(plain.parent)
    for name, shown in (("plain", plain), (plain, plain), ("./plain", "./plain")):
        assert project.run(name, "a b", "", cwd=plain.parent, env=env).stdout.decode() == "1:%s:a b:\n" % shown
    project.serve("PATH={0}/dir:/nowhere:/etc/passwd:{0}/no:{0}/new:/bin:/usr/bin\n".format(project.dir).encode())
    assert project.run("tool", env={"PATH": str(project.dir / "old")}).stdout == b"new\n"
    for name, reason in ((str(project.dir / "no/tool"), "ermission denied"), ("broken", "line, /no/such/interpreter,"),
                         (str(project.dir / "bin/dos"), r"/bin/sh\r, is missing"), ("x", "not found on PATH as a")):
        assert reason in refusal(project.run(name), 8)


@pytest.mark.parametrize("command, reason", [
    (["no-such-command-anywhere"], "not found"), (["./missing"], "No such file"), (["/etc/passwd"], "ermission denied"),
    (["/"], ""), ([""], ""), (["/etc/passwd/x"], "ot a directory"), (["\x1b[31m\n"], r"\x1b[31m\n"), (["x" * 5000], ""),
], ids=short)
def test_what_cannot_be_run_is_8_with_the_reason(session, command, reason):
    message = refusal(session.run(*command), 8)
    assert reason in message and message.startswith("cannot run ")
    with subprocess.Popen("true", stdin=PIPE) as gone:  # and to a stderr that nobody reads
        assert not gone.wait() and session.run(*command, stderr=gone.stdin).returncode == 8


@only_linux
@pytest.mark.parametrize("inherited", [100, 131000])
def test_an_environment_too_large_names_the_largest_variable(project, inherited):  # invariant 1
    value = b"s3cr3t" + b"x" * 140000  # beyond what Linux takes for one string
    project.serve(b"SMALL=1\nHUGE_ONE=%s\n" % value)
    message = refusal(project.run("true", env={"OTHER": "y" * inherited}), 8)
    assert "HUGE_ONE" in message and str(len(value)) in message and "s3cr3t" not in message


@pytest.mark.parametrize("options", [[], ["--mask"]], ids=str)
def test_a_command_finds_the_signals_and_descriptors_that_an_exec_would_give_it(session, options):  # invariant 8
    def before():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    ask = [sys.executable, "-ISc", "import os, signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), "
           "[s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN],"
           "sorted(int(n) for n in os.listdir('/dev/fd') if os.path.exists('/dev/fd/' + n)))"]
    with open(os.devnull) as handed:
        how = {"stdin": DEVNULL, "stdout": PIPE, "pass_fds": [handed.fileno()], "preexec_fn": before}
        plain, ran = subprocess.run(ask, timeout=PATIENCE, **how), session.hotenv("run", *options, "--", *ask, **how)
        assert ran.stdout == plain.stdout and b" %d" % handed.fileno() in plain.stdout and b"USR1" in plain.stdout


@only_linux
def test_a_dump_that_is_blocked_leaves_no_core(project):
    """Nor can its memory be read by others of the same user."""
    theirs, hard = project.for_strangers(STRANGER) if ROOT else None, resource.getrlimit(resource.RLIMIT_CORE)[1]
    how = {"preexec_fn": lambda: (limits(CORE=(hard, hard))(), theirs and theirs())}
    project.serve(b"A=%s\n" % (b"s3cr3t" * 50000), **how)
    reader, writer = os.pipe()
    dump = project.start("dump", stdout=writer, **how)
    os.close(writer)
    os.read(reader, 10)
    assert re.search(r"Max core file size +0 ", Path("/proc/%d/limits" % dump.pid).read_text())
    assert os.stat("/proc/%d/mem" % dump.pid).st_uid == 0
    os.close(reader)


@pytest.mark.parametrize("state", ["none", "dead", "live", "damaged", "a stranger's marker", "a stranger's server"])
def test_optional_runs_the_command_as_it_is_where_there_is_no_session(project, state, request):
    if "stranger" in state:
        request.getfixturevalue("stranger")
        os.chown(str(project.marker), STRANGER if "marker" in state else 0, 0)
    elif state in ("dead", "live"):
        server = project.serve(b"A=session\n")
        assert state == "live" or ended(server, signal.SIGKILL)
    elif state == "damaged":
        project.marker.write_bytes(b"x\n")
    done = project.hotenv("run", "--optional", "--define", "B=2", "--", "sh", "-c", "echo $A $B; exit 5",
                          env={"A": "host"})
    said, code = {"damaged": (b"", 9), "live": (b"session 2\n", 5)}.get(state, (b"host 2\n", 5))
    assert done.stdout == said and done.returncode == code
    assert done.stderr == b"" if state == "live" else refusal(done, code)


# ==== masked launch ===================================================================================================
# What runs with its output masked behaves as if it were run without.

LISTENER = """# Says "ready" and each signal that comes; SIGUSR1 ends it.
import os, signal
def say(signum, frame):
    os.write(1, b"got %d\\n" % signum)
    if signum == signal.SIGUSR1:
        os._exit(5)
for name in "INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "TSTP", "WINCH", "VTALRM", "IO", "RTMIN":
    signal.signal(getattr(signal, "SIG" + name, signal.SIGIO), say)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def heard(said, *signals):
    """Whether a listener has had these signals, each once, and the one that ended it."""
    return sorted(map(int, re.findall(rb"got (\d+)", said))) == sorted(map(int, (*signals, signal.SIGUSR1)))


def in_file(path, wanted):
    until(lambda: path.exists() and wanted in path.read_bytes(), "what a command writes")


class Masked(list):
    """How to run something with its output masked, from a session with a TOKEN and a PIN."""

    def run(self, *argv, **how):
        return self.project.hotenv(*self, *argv, **{"stdin": DEVNULL, **how})

    @contextlib.contextmanager
    def start(self, *argv, **how):
        """In a process group of its own; nothing of it is left when the test ends."""
        how = {"stdin": DEVNULL, "stdout": PIPE, "preexec_fn": os.setpgrp, **how}
        process = self.project.start(*self, *argv, bufsize=0, **how)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def on_terminal(self, *argv, **redirected):
        command = self.project.command([*self, *argv])
        return on_terminal(*command, cwd=self.project.dir, env=self.project.env, **redirected)


@pytest.fixture(scope="module")
def masked():
    for project in standing(b"TOKEN=%s\nPIN=pin-8443\n" % TOKEN.encode()):
        made = Masked(["run", "--mask", "--"])
        made.project = project
        yield made


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGQUIT, signal.SIGINT,
                                    *[32, 33] * LINUX])  # these two the C library keeps for itself
def test_a_masked_command_that_dies_of_a_signal_takes_us_along(masked, signum, tmp_path):
    code = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    ran = masked.run(sys.executable, "-c", code + f"os.kill(os.getpid(), {int(signum)})",
                     env={"HOTENV_SOCKET": masked.project.socket_path()}, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr, os.listdir(tmp_path)) == (-signum, b"", b"", [])


@pytest.mark.parametrize("joined", ["pipe", "file", "apart"])
def test_two_descriptors_of_one_file_keep_their_order(masked, joined, tmp_path):
    lines = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; printf sk-live-; printf '51H8sVq0\\n' >&2; done"
    with open(tmp_path / "out", "w+b", buffering=0) as file, open(tmp_path / "out", "ab", buffering=0) as other:
        streams = {"pipe": (PIPE, STDOUT), "file": (file, file), "apart": (file, other)}[joined]
        ran = masked.run("sh", "-c", lines, stdout=streams[0], stderr=streams[1])
        file.seek(0)
        assert (ran.stdout or file.read()) == b"".join(b"o%d\ne%d\n[hidden:TOKEN]\n" % (i, i) for i in range(1, 10))


def test_a_prompt_without_a_newline_comes_through_and_the_rest_however_slow_the_reader_but_no_value_in_pieces(masked):
    parts = ("Password: ", "sk-live-", "51H8sVq0", ". and pin-844", "3\\n")
    with masked.start("sh", "-c", "; read x; ".join("printf '%s'" % part for part in parts), stdin=PIPE) as process:
        out = read_until(process.stdout.fileno(), b"Password: ")
        for wanted in (b"", rb"TOKEN\]", b". and ", rb"PIN\]\n"):
            process.stdin.write(b"\n")
            out += read_until(process.stdout.fileno(), wanted)
        assert out == b"Password: [hidden:TOKEN]. and [hidden:PIN]\n"
        process.stdin.close()
        assert ended(process) == 0
    code = "import os; os.write(2, b'one\\n'); os.write(1, b' pin-8443' * 7000); os.write(2, b'two\\n')"
    with masked.start(sys.executable, "-c", code, stderr=PIPE) as process:
        assert read_until(process.stderr.fileno(), b"two\n") == b"one\ntwo\n"  # comes through while nobody reads stdout
        assert process.stdout.read() == b" [hidden:PIN]" * 7000
    code = "import os; [os.write(1, b'%07d sk-live-51H8sVq0\\n' % n) for n in range(20000)]"
    with masked.start(sys.executable, "-c", code) as process:
        until(lambda: process.poll() is None and sleeps(process.pid), "full pipes")
        assert process.stdout.read() == b"".join(b"%07d [hidden:TOKEN]\n" % n for n in range(20000))
        assert ended(process) == 0


@pytest.mark.parametrize("end", ["we are killed", "its reader is gone"])
def test_a_masked_command_is_our_only_child_and_dies_with_its_output(masked, end):
    with masked.start("yes", stderr=PIPE) as process:
        read_until(process.stdout.fileno(), b"y\ny\n")
        (child, _, name), = children(process.pid)
        {"we are killed": process.kill, "its reader is gone": process.stdout.close}[end]()
        assert name == "yes" and ended(process) == -(signal.SIGKILL if "we" in end else signal.SIGPIPE)
        until(lambda: subprocess.run(["ps", "-o", "stat=", "-p", child], stdout=PIPE).stdout[:1] in (b"", b"Z"))
        assert process.stderr.read() == b""


@pytest.mark.parametrize("left_behind", ["sleep 300", "yes $TOKEN"])
def test_what_a_grandchild_keeps_open_is_not_waited_for(masked, left_behind):
    ran = masked.run("sh", "-c", f"({left_behind}) & echo $! >&2; printf 'the end, sk-live'; exit 4")
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(ran.stderr), signal.SIGKILL)
    assert ran.returncode == 4 and b"the end, sk-live" in ran.stdout and b"51H8" not in ran.stdout


@pytest.mark.parametrize("send", [os.kill, os.killpg, lambda pid, signum: os.kill(int(children(pid)[0][0]), signum)],
                         ids=["to our pid", "to the group", "to the child"])
def test_a_signal_reaches_a_masked_command_once_however_it_was_sent(masked, send):
    with masked.start(sys.executable, "-c", LISTENER) as process:
        said = read_until(process.stdout.fileno(), b"ready\n")
        signals = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2, signal.SIGQUIT, signal.SIGWINCH,
                   signal.SIGVTALRM, signal.SIGIO, *[signal.SIGRTMIN] * LINUX]
        for signum in signals:
            send(process.pid, signum)
            said += read_until(process.stdout.fileno(), b"got %d\n" % signum)
        os.kill(process.pid, signal.SIGUSR1)
        assert heard(said + read_until(process.stdout.fileno()), *signals) and ended(process) == 5


def test_a_masked_command_keeps_its_exit_status_and_its_streams_apart_also_closed_full_or_many(masked):
    ran = masked.run("/no/such/command")
    assert refusal(ran, 8) == "cannot run /no/such/command: No such file or directory" and ran.stdout == b""
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            ran = masked.run("sh", "-c", "echo x; while :; do echo y; done", stdout=full)
        assert refusal(ran, 8) == "cannot write the command's output: No space left on device"
    ran = masked.run("sh", "-c", "echo out $TOKEN; echo err $PIN >&2; exit 37")
    assert (ran.returncode, ran.stdout, ran.stderr) == (37, b"out [hidden:TOKEN]\n", b"err [hidden:PIN]\n")
    ran = masked.run("sh", "-c", "echo $TOKEN >&2; if echo x 2>/dev/null; then exit 1; fi; exit 6", stdin=None,
                     stdout=None, preexec_fn=lambda: (os.close(1), os.close(0)))
    assert (ran.returncode, ran.stderr) == (6, b"[hidden:TOKEN]\n")  # a closed stdout stays closed
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 1300:
        pytest.skip("needs 1,300 descriptors")
    code = "import os, time; os.write(1, b'1'); time.sleep(0.05); os.write(2, b'2 ' + os.environ['TOKEN'].encode())"
    done = masked.run(sys.executable, "-c", code, close_fds=False, preexec_fn=lambda: (
        limits(NOFILE=(1300, 1300))(), [os.dup2(0, number) for number in range(3, 1100)]))  # select() has 1,024
    assert (done.stdout, done.stderr) == (b"1", b"2 [hidden:TOKEN]")


def test_a_signal_ends_a_masked_run_that_only_waits_for_a_slow_reader_and_then_nothing_of_it_holds_a_descriptor(masked):
    with masked.start(sys.executable, "-c", "print('x' * 200000)") as process:
        got = 0
        while got < 100_000:
            got += len(process.stdout.read(100_000 - got))
        until(lambda: not [child for child in children(process.pid) if child[1][0] != "Z"], "the end of the command")
        assert ended(process, signal.SIGTERM) == -signal.SIGTERM
    for _ in range(3):
        mine, handed = os.pipe()
        with masked.start("sh", "-c", "echo $TOKEN", pass_fds=[handed]) as process, open(mine, "rb", 0) as end:
            os.close(handed)
            assert ended(process) == 0
            os.set_blocking(mine, False)
            assert end.read(1) == b""  # the end, and not "nothing yet"


def test_a_terminal_is_handed_over_untouched_with_a_note_and_a_key_reaches_a_masked_command_once(masked, tmp_path):
    ask = "import os; print([os.isatty(n) for n in (0, 1, 2)], os.environ['TOKEN'], end='')"
    with masked.on_terminal(sys.executable, "-c", ask) as (pid, terminal):
        seen = read_until(terminal, TOKEN.encode())
        assert seen.endswith(b"[True, True, True] " + TOKEN.encode()) and b"stderr" in seen and b"not masked" in seen
    with masked.on_terminal(sys.executable, "-c", ask, stderr=tmp_path / "err") as (pid, terminal):
        assert read_until(terminal, TOKEN.encode()) == b"[True, True, False] " + TOKEN.encode()
        assert os.waitpid(pid, 0)[1] == 0
        assert (tmp_path / "err").read_bytes() == b"hotenv: stdout is a terminal: not masked\n"
    # Here we lead a session, and cannot leave its group.
    out = tmp_path / "out"
    keys = {signal.SIGINT: b"\x03", signal.SIGQUIT: b"\x1c", signal.SIGTSTP: b"\x1a"}
    with masked.on_terminal(sys.executable, "-c", LISTENER, stdout=out) as (pid, terminal):
        in_file(out, b"ready\n")
        for signum in keys:
            os.write(terminal, keys[signum])
            in_file(out, b"got %d\n" % signum)
        os.kill(pid, signal.SIGUSR1)
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 5 and heard(out.read_bytes(), *keys)


@pytest.fixture
def interactive(masked):
    """A bash with job control on a terminal, and what types a line into it and waits for what it shows."""
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    bash = ["bash", "--norc", "--noprofile", "-i"]
    with on_terminal(*bash, cwd=masked.project.dir, env=masked.project.env) as (pid, terminal):
        def type_line(line, shown=b""):
            os.write(terminal, line.encode() + b"\n" * (line != "\x1a"))
            read_until(terminal, shown)
        type_line("PS1=")
        yield pid, terminal, type_line


@pytest.mark.parametrize("resumed", ["fg", "kill -CONT"])
def test_ctrl_z_stops_a_masked_command_and_us_and_both_go_on(masked, interactive, tmp_path, resumed):
    (pid, _, type_line), out = interactive, tmp_path / "out"
    type_line("%s >%s 2>&1" % (shlex.join(masked.project.command(
        [*masked, "sh", "-c", "echo ready; read line; echo got $line and $TOKEN; exit 7"])), out))
    in_file(out, b"ready")
    type_line("\x1a", b"Stopped")
    (ours, state, _), = [child for child in children(pid) if "ps" not in child[2]]
    assert state[0] == "T" and [child[1][0] for child in children(ours)] == ["T"]
    if resumed != "fg":
        os.kill(int(ours), signal.SIGCONT)  # to us alone; from the background the command may not read
        until(lambda: [child[1][0] for child in children(pid) + children(ours)].count("T") == 2, "both to stop again")
    type_line("echo m=$?.", rb"m=\d+\.")
    type_line("fg", b"run --mask")
    type_line("words")
    in_file(out, b"got")
    type_line("echo status=$?.", rb"status=7\.")
    assert out.read_bytes() == b"ready\ngot words and [hidden:TOKEN]\n"


@pytest.mark.parametrize("signum, killing", [
    (15, "kill %1\n"), (2, "kill -INT -- -$!\n"), (15, "kill $!\n"), (2, "\x03")])
def test_what_a_shell_does_to_a_masked_job_it_does_once(masked, interactive, tmp_path, killing, signum):
    (pid, terminal, type_line), out, behind = interactive, tmp_path / "out", killing != "\x03"
    command = shlex.join(masked.project.command([*masked, sys.executable, "-c", LISTENER]))
    type_line("%s >%s 2>&1%s" % (command, out, " &" * behind))
    in_file(out, b"ready\n")
    os.write(terminal, killing.encode())
    in_file(out, b"got")
    ours, = [child for child, _, name in children(pid) if "ps" not in name]
    os.kill(int(children(ours)[0][0]), signal.SIGUSR1)
    type_line("wait $!; " * behind + "echo status=$?.", rb"status=5\.")
    assert heard(out.read_bytes(), signum)


@pytest.mark.parametrize("who", ["us", "the command"])
@pytest.mark.parametrize("apart", [os.setpgrp, os.setsid], ids=["group", "session"])
def test_a_masked_command_that_was_stopped_goes_on_whoever_is_continued(masked, who, apart):
    """Also where no shell looks after us: whatever we do meanwhile, we must not be stopped for good."""
    with masked.start("sh", "-c", "echo ready; kill -STOP $$; echo went on", preexec_fn=apart) as process:
        (child, _, _), = until(lambda: [child for child in children(process.pid) if child[1][0] == "T"])
        os.kill(process.pid if who == "us" else int(child), signal.SIGCONT)
        assert read_until(process.stdout.fileno(), b"went on") == b"ready\nwent on\n" and ended(process) == 0


@only_linux
def test_kill_9_ends_a_masked_command_as_it_ends_one_that_was_executed(masked):
    with masked.start("sh", "-c", "echo ready; exec " + unique_sleep()) as process:
        read_until(process.stdout.fileno(), b"ready")
        child = children(process.pid)[-1][0]
        process.kill()
        until(lambda: not os.path.exists(f"/proc/{child}"))


@pytest.mark.parametrize("room", [2, 3, 4])
def test_no_command_runs_alone_where_a_process_that_we_need_cannot_be_had(project, room):
    """The second is ours, the third the command, and one more helps us out of our group."""
    theirs = project.for_strangers(STRANGER) if ROOT else None
    project.serve(b"TOKEN=%s\n" % TOKEN.encode(), preexec_fn=theirs)
    reader, writer = os.pipe()
    done = project.hotenv("run", "--mask", "--", "sh", "-c", "echo $TOKEN; exec touch ran", pass_fds=[writer],
                          preexec_fn=lambda: (theirs and theirs(), limits(NPROC=(room, room))()))
    os.close(writer)
    assert read_until(reader) == b""  # all have ended
    os.close(reader)
    assert done.stdout == b"[hidden:TOKEN]\n" if not done.returncode else refusal(done, 8)
    assert project.dir.joinpath("ran").exists() == (done.returncode == 0)


# ==== importing and packaging =========================================================================================
# One file that can be copied anywhere, and takes nothing from where it lies.

@pytest.mark.parametrize("how", ["script", "module"])
def test_neighbours_are_never_imported(project, how):  # invariant 11
    tools, early = project.root / "tools", "os stat re collections locale random struct shutil "
    late = "json signal secrets socket selectors argparse time errno select ctypes resource fcntl difflib gettext"
    # Python itself puts the current directory on the path for -m: what it needs before we can say a word, it finds
    # there too. Only those that come later are ours to keep out.
    for name in (late if how == "module" else early + late).split():
        script(tools / (name + ".py"), b"raise SystemExit('a neighbour was imported')\n")
    project.program = [sys.executable, shutil.copy(str(HOTENV), str(tools / "hotenv.py"))]
    if how == "module":
        project.program, project.dir = [sys.executable, "-m", "hotenv"], tools
    refusal(project.hotenv("serve", "--timeout", "0"), 2)
    project.serve(b"A=1\n", "--verbose")
    assert json.loads(project.hotenv("dump", "--format", "json").stdout.decode()) == {"A": "1"}
    for options in ([], ["--mask"]):
        assert project.hotenv("run", *options, "--", "sh", "-c", "echo $A").stdout == b"1\n"


def test_importing_changes_nothing_and_without_the_c_halves_the_public_modules_do(project):  # invariant 11
    look = ("import os, signal, sys, threading\nos.umask(0o22)\nsys.path.insert(0, %r)\n"
            "state = lambda: (dict(os.environ), list(sys.path), [signal.getsignal(n) for n in range(1, 32)],\n"
            "    sys.flags, os.umask(0o22), list(sys.argv), sys.excepthook, threading.active_count(),\n"
            "    os.listdir('.'), sys.getrecursionlimit())\n"
            "before, known = state(), set(sys.modules)\nimport hotenv\n"
            "assert state() == before, (before, state())\nprint(*sorted(set(sys.modules) - known))") % str(HERE)
    done = subprocess.run([sys.executable, "-B", "-c", look], cwd=str(project.dir), stdout=PIPE,
                          timeout=PATIENCE, env=project.env)
    assert done.returncode == 0
    assert set(done.stdout.decode().split()) <= {"hotenv", "_json", "_socket", "_signal", "errno", "__future__"}
    # An interpreter that is built otherwise has no _json, or none that one of ours knows.
    project.serve(b"A=1\n")
    project.program = [*INSTALLED[:-1], "import sys; sys.modules['_json'] = None; " + INSTALLED[-1]]
    assert project.run("sh", "-c", "echo $A").stdout == b"1\n" and project.hotenv("dump").stdout == b"A=1\n"
    server = project.serve(b"A=2\n", "--force")
    assert all(project.ask(request).startswith(BAD_REQUEST) for request in TORN)
    assert project.dump() == {b"A": b"2"} and server.poll() is None


SLOW = "ctypes typing dataclasses subprocess pathlib logging secrets inspect tempfile".split()
PUBLIC = "re enum selectors signal socket json argparse collections random hashlib threading warnings fcntl".split()


@pytest.mark.parametrize("args, never", [
    (["run", "--", "/bin/true"], SLOW + PUBLIC), (["run", "--optional", "--", "true"], SLOW), (["dump"], SLOW[1:]),
], ids=short)
def test_run_and_dump_import_next_to_nothing(session, args, never):  # invariant 11
    program = [sys.executable, "-I", "-S", "-X", "importtime", str(HOTENV), *args]
    done = subprocess.run(program, stderr=PIPE, stdout=DEVNULL, cwd=str(session.dir), env=session.env, timeout=PATIENCE)
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    assert done.returncode == 0 and "_socket" in imported and not imported & set(never)


def test_packaging_holds_no_version_and_no_dependency_but_pytest_for_tests():
    path = HERE / "pyproject.toml"
    if not path.exists():
        pytest.skip("there is no pyproject.toml here")
    pyproject = path.read_text(encoding="utf-8")
    literal = re.findall(r'^__version__ = "(.+)"$', HOTENV.read_text(encoding="utf-8"), re.M)
    assert literal == [hotenv.__version__] and re.fullmatch(r"\d+\.\d+\.\d+", literal[0])
    assert literal[0] not in pyproject and re.search(r'dynamic *= *\[ *"version" *\]', pyproject)
    assert re.search(r'^hotenv *= *"hotenv:main"', pyproject, re.M)
    assert set(re.findall(r"^ *dependencies *= *(\[[^]]*\])", pyproject, re.M)) <= {"[]"}
    extras = re.search(r"^\[project.optional-dependencies\]\n((?:[a-z].*\n)*)", pyproject, re.M)
    assert extras and re.fullmatch(r'test *= *\["pytest[^"-]*"\]\n*', extras[1])


# ==== attacks =========================================================================================================
# Random requests, markers and answers; faults and signals at each step of a start; load; and a hunt for a secret.

PIECES = [b"", b" ", b"\n", b"\0", b"\xff", b"\x1b[2J", b"\xc3\xa9", *(
    rb'" \ { } [ ] , : null NaN 1e999 "\ud800" "\udc80" = / "args":["x"], "command":1, -0 01'.split())]


def mutated(dice, seeds):
    """One of these, with a few pieces of it replaced; often none."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(data) + 1)
        data[at:at + dice.randrange(4)] = dice.choice(PIECES)
    return bytes(data[:dice.choice([len(data), len(data), len(data), dice.randrange(len(data) + 1)])])


def strict_json(data):
    """What Python's own json makes of it, without its liberties; None for no JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(data.decode("utf-8"), parse_int=len, parse_float=len, parse_constant=int)  # no NaN


def is_request(data):
    """Whether the server must answer these bytes with the environment: the specification, stated a second time."""
    line, newline, _ = data.partition(b"\n")
    request = strict_json(line) if newline else None
    command, args = (request.get("command"), request.get("args")) if isinstance(request, dict) else (None, None)
    return command == "dump" or command == "run" and isinstance(args, list) and {*map(type, args)} == {str}


def test_no_request_however_strange_harms_the_server(project):
    """Five clients at a time, each of which sends its request in two pieces; some leave before they have an answer."""
    dice, expected, before = random.Random(SEED), b'{"env":{"A":"1"}}\n', 0
    server = project.serve(b"A=1\n", "--verbose", "--timeout", "1h")
    seeds = [each for each in GOOD_REQUESTS + BAD_REQUESTS if len(each) < 1000]
    for number in range(amount(40000) // 5):
        clients = [(project.connect(), mutated(dice, seeds), dice.randrange(100)) for _ in range(5)]
        for client, request, cut in clients:
            client.sendall(request[:cut])
        for client, request, cut in dice.sample(clients, 5):
            with client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(request[cut:]), client.shutdown(socket.SHUT_WR)
                if dice.random() < 0.9:
                    reply = answer(client)
                    assert reply == expected if is_request(request) else reply.startswith(BAD_REQUEST), request
        before = resident(server.pid) if LINUX and number < 20 else before
    assert project.ask() == expected and project.dump() == {b"A": b"1"}
    assert not LINUX or resident(server.pid) < before + (8 << 20)
    if LINUX and ROOT:
        until(lambda: len(os.listdir("/proc/%d/fd" % server.pid)) < 12, "the end of all connections")
    assert all(line.isprintable() and LOG_LINE.match(line) for line in project.log_lines())


def marker_code(content, socket_path):
    """The specification of the marker, stated a second time: 9 for what is none, 0 for ours, 4 for another path."""
    lines = [line for line in content.split(b"\n") if line.strip()]
    if len(content) > 8192 or b"\0" in content or len(lines) != 1 or not lines[0].startswith(b"socket=/"):
        return 9
    return 0 if os.path.normpath(lines[0][7:]) == os.fsencode(socket_path) else 4


def is_environment(data):
    """Whether a client must take these bytes: the specification, stated a second time."""
    reply = strict_json(data) if data.find(b"\n") == len(data) - 1 else None
    env = reply.get("env") if isinstance(reply, dict) and type(reply.get("error")) is not str else None
    with contextlib.suppress(UnicodeError):
        return isinstance(env, dict) and all(
            type(value) is str and name and "=" not in name and
            b"\0" not in (name + value).encode("utf-8", "surrogateescape") for name, value in env.items())


def test_no_marker_and_no_answer_however_strange_harms_a_client(project, session, answerer, monkeypatch):
    def code_of(*options):
        try:
            return 0 * len(hotenv.fetch(*options))
        except hotenv.HotenvError as error:
            assert str(error).isprintable() and str(error)
            return error.code
    dice, valid, server = random.Random(SEED + 1), session.marker.read_bytes(), answerer()
    monkeypatch.chdir(str(project.dir))
    markers = [valid, b"\n" + valid, valid + valid, b"socket=/" + b"x" * 9000 + b"\n", b"socket=~/x\n", valid.upper()]
    answers = [data for data, _ in ANSWERS if len(data) < 1000]
    for number in range(amount(10000)):
        content = mutated(dice, markers)
        project.marker.write_bytes(content)
        expected = marker_code(content, session.socket_path())
        assert code_of() == expected, content
        assert number > 2 or project.run("true").returncode == expected, content
        server.response = mutated(dice, answers)
        expected = 0 if is_environment(server.response) else 9 if server.response else 4
        assert code_of("dump", [], server.path) == expected, server.response
        assert number > 2 or project.run("true", env={"HOTENV_SOCKET": server.path}).returncode == expected, content


@pytest.mark.parametrize("action", ["error=ENOSPC", "error=EACCES", "error=EIO", "signal=SIGTERM"])
def test_a_fault_at_any_step_of_a_start_leaves_nothing(project, meddle, action):  # invariant 2
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "new")
    steps = "?mkdir ?mkdirat fchmod write ?link ?linkat ?rename ?renameat ?renameat2 utimensat bind listen ?flock"
    cases, told = list(itertools.product(steps.split(), (1, 2, 3), ([], ["--force"]))), project.root / "strace"
    for step, when, options in random.Random(SEED).sample(cases, min(len(cases), amount(160))):
        meddle("%s:%s:when=%d" % (step, action, when), told=told)
        done = project.hotenv("serve", "--timeout", "0.05", *options, input=b"A=1\n")
        where, said = (step, when, options, done), done.stderr.decode()
        if done.returncode not in (0, -signal.SIGTERM if "signal" in action else 0):
            assert done.returncode == 8 and "error" in action, where
            assert refusal(done, 8) if said or step != "write" else "INJECTED" in told.read_text(), where
        else:
            assert not said, where
        left = [path for path in project.files() if not path.startswith("r/new") or path.endswith(".sock")]
        assert left == [] and (done.returncode == 0 or not (project.base / "new").exists()), where
        shutil.rmtree(str(project.base / "new"), ignore_errors=True)


def test_under_load_no_request_is_lost_and_each_is_logged(project):
    """Eight clients at a time, each of which now and then leaves in the middle of another request."""
    project.serve(b"A=1\n", "--timeout", "1h")
    path, count, dice = project.socket_path(), amount(20000) // 8, random.Random(SEED)
    def ask(worker):
        for number in range(count):
            assert hotenv.fetch("run", ["w%d.%d" % (worker, number)], path) == {"A": "1"}
            with socket.socket(socket.AF_UNIX) as doomed:
                if not number % 5 and not doomed.connect_ex(path):
                    doomed.sendall(b'{"command":"run","args":["doomed"]}\n'[:dice.randrange(37)])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    logged = sorted(line.split()[3] for line in project.log_lines() if not line.endswith("doomed"))
    assert all(map(LOG_LINE.match, project.log_lines()))
    assert logged == sorted("w%d.%d" % (worker, number) for worker in range(8) for number in range(count))


@only_linux
def test_a_secret_is_nowhere_but_in_the_commands_environment(project):  # invariant 1
    secret = b"s3cr3t-" + os.urandom(8).hex().encode()  # another suite may run beside us
    text, outputs, found, rounds = b"TOKEN=%s\nDERIVED=x${TOKEN}y\n" % secret, [], set(), [0]
    def watch():
        """Reads every process's arguments and environment, over and over, and keeps where the secret was seen."""
        while rounds[-1] is not None:
            for process, name in itertools.product(filter(str.isdigit, os.listdir("/proc")), ("cmdline", "environ")):
                with contextlib.suppress(OSError):
                    if secret in Path("/proc", process, name).read_bytes():
                        found.add((name, Path("/proc", process, "cmdline").read_bytes().split(b"\0")[0]))
            rounds.insert(0, 1)
    def call(*args, **options):
        done = project.hotenv(*args, **options)
        outputs.append(done.stderr)
        return done
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for bad in (b"A=%s'\nB='%s", b"%s", b"A='%s", b"A=${%s", b"'%s'x=1", b'A="%s" %s', b"A=${X:?%s}", b"A=%s\0"):
            assert call("serve", input=bad.replace(b"%s", secret)).returncode == 7
        project.serve(text, "--verbose")
        for options in ([], ["--mask"], ["--isolated", "--only", "T*", "--define", "A=1", "--optional"]):
            lines = 'sh -c "read x" <&0 & echo ${#TOKEN}; read x; wait'  # a grandchild has the value too
            child = project.start("run", *options, "--", "sh", "-c", lines, stdin=PIPE, stdout=PIPE)
            assert child.stdout.readline() == b"%d\n" % len(secret)
            until(lambda seen=len(rounds): len(rounds) > seen + 1, "two looks at every process")
            child.communicate(b"")
        for form in ("plain", "sh", "json", "dotenv", "nul"):
            assert secret in call("dump", "--format", form).stdout
        for words in (["--", "no-such-command"], ["--", "/etc/passwd"], ["--only", "NOTHING", "--", "true"]):
            call("run", *words)
        call("serve", input=text)
        with open("/dev/full", "wb") as full:
            call("dump", stdout=full)
        assert all(len(request) > 100 or secret not in project.ask(request) for request in BAD_REQUESTS)
        assert call("serve", "--background", "--force", "--log", "log", input=text).returncode == 0
        call("run", "--", "true")
    finally:
        rounds.append(None)
        watcher.join()
    # Only where it has to be: the environment of a process that is a command (or is just becoming one, or has ended).
    assert found and found <= {("environ", b"sh"), ("environ", b"true"), ("environ", b"")}
    assert not [output for output in outputs if secret in output]
    for path in project.root.rglob("*"):
        assert secret not in os.fsencode(str(path))
        assert not stat.S_ISREG(os.lstat(str(path)).st_mode) or secret not in path.read_bytes(), path


# ==== dotenv ==========================================================================================================
# What the language means is two tables of texts. Then come two slow statements of it, python-dotenv's grammar and our
# own references, that the tables and random inputs are compared with; then what it costs, and what its errors may say.

HOST = {"H": "host", "NIL": "", "PROC": "proc", "X": '${H} # "\\n'}  # the environment that each case is read in

# What a text means; a bare string is the value of A, and the one variable.
MEANINGS = {
    "basic": [("A=p@$$!%^&*()[]{}|;:,.<>/?`~+-_", "p@$$!%^&*()[]{}|;:,.<>/?`~+-_"), ("A=export B=c", "export B=c"),
        ("B=1\nA=2\nB=3\nC=4", {"B": "3", "A": "2", "C": "4"}), ("\n\nA=b\n\n\nC=d\n", {"A": "b", "C": "d"}),
        ("A=a\x01\x08\x7fb", "a\x01\x08\x7fb"), ("A=\u201cb\u201d", "\u201cb\u201d"), ("A=\U0001f511", "\U0001f511"),
        ("A=   \nB=c", {"A": "", "B": "c"}), ("A=e\u0301", "e\u0301"), ("\ufeff# c\nA=b", "b"), ("A=1\n'A'=2", "2"),
        ("A=1\nA=", ""), (" \t\n ", {}), ("A==b", "=b"), ("A=", "")],
    "blanks": [("A=b # x\u2028y\nC=d", {"A": "b", "C": "d"}), ("A=\x1c\x1d\x1e\x1fb\x1f\x1e\x1d\x1c", "b"),
        ("A=\x85\u2028\u2029b\x85\u2028\u2029", "b"), ("A=\u200bb\u2060", "\u200bb\u2060"), (" \t A \t=\t b \t ", "b"),
        ("\xa0A\u3000=\u3000b\xa0", "b"), ("A=b\u2029C=d", "b\u2029C=d"), ('A="\xa0b\xa0"', "\xa0b\xa0"),
        ('A="  b\t"', "  b\t"), ("  A  =  b  ", "b"), ("A\x0b=\x0cb", "b"), ("A=b\xa0# c", "b"), ("A='b' \t ", "b")],
    "newline": [("A='b\u2028\x0b\x0c\x85c'\n", "b\u2028\x0b\x0c\x85c"), ("A=b\r\n\r\nC=d\r\n", {"A": "b", "C": "d"}),
        ("A=b # c\x0bd\x0ce\nC=d\n", {"A": "b", "C": "d"}), ("A=b\n\rC=d\n\r", {"A": "b", "C": "d"}), ("\ufeff", {}),
        ("A=b\rC=d\r", {"A": "b", "C": "d"}), ("A=b\r\nC=d", {"A": "b", "C": "d"}), ("# c\x85A=b\nC=d\n", {"C": "d"}),
        ("A=\rC=d", {"A": "", "C": "d"}), ('A="b\\r\\nc"\r\n', "b\r\nc"), ('A="b\\\r\nc"\r\n', "b\\\nc"),
        ("A=b\x0bC=d\n", "b\x0bC=d"), ("A=b\x85C=d\n", "b\x85C=d"), ("\x0b\x0c\u2028A=b\n", "b"),
        (b'\xef\xbb\xbfA=b\n', "b"), ('A="b\r\nc"\r\n', "b\nc"), ("A=\ufeffb\n", "\ufeffb"), ('A="b\n\rc"', "b\n\nc"),
        ("\ufeff\n A=b\n", "b"), ('A="b\rc"\r', "b\nc")],
    "export": [("A=b\nexport A\nC=d", {"A": "b", "C": "d"}), ("export export =b", {"export": "b"}), ("export A=", ""),
        ("export export=b", {"export": "b"}), ("export.A=b", {"export.A": "b"}), ("'export'=b", {"export": "b"}),
        ("export=b", {"export": "b"}), ("A=b\nexport A\nA=c", "c"), ("export\u2028A=b", "b"), ("export # c\nA=b", "b"),
        ("A=b\nexport A#c", "b"), ("export \t  A=b", "b"), ("  export A=b", "b"), ("export 'A'=b", "b"),
        ("export A = b", "b"), ("A=\nexport A", "")],
    "comment": [("A=#fff\nB=a#b#c", {"A": "#fff", "B": "a#b#c"}), ("A=''# c\nB=\"\" # d", {"A": "", "B": ""}),
        ("A=http://b // c", "http://b // c"), ("#a\n #b\n\t#c\nA=b", "b"), ("A=b#c\u2028#d", "b#c"), ('A="b"#c', "b"),
        ("A=b # ${\n# ${}", "b"), (r"A=b \#c", r"b \#c"), ("A=$b\x0b# c", "$b"), ("A=$b\x85", "$b"), ("A=b #", "b"),
        ("A=a #b #c", "a"), ("A= #", "")],
    "quoted": [("A='\\\" \\a \\b \\f \\n \\r \\t \\v'", r'\" \a \b \f \n \r \t \v'), ('A="b # c\n# d"', "b # c\n# d"),
        (r'A="\0 \1 \e \q \/ \# \= \$ \`"', r"\0 \1 \e \q \/ \# \= \$ \`"), (r"A='\x41 \u0041 \$'", r"\x41 \u0041 \$"),
        (r'A="\x41 \u0041 \N{DASH}"', r"\x41 \u0041 \N{DASH}"), ("A=\"\\\\ \\' \\\" \\a \\b\" ", "\\ ' \" \x07 \x08"),
        ("A='b\n\n c '\nD=e", {"A": "b\n\n c ", "D": "e"}), ("A='b=c'\nD=\"e=f\"", {"A": "b=c", "D": "e=f"}),
        ('A="\\\xe9\\\U0001f511"', "\\\xe9\\\U0001f511"), (r'A="\f \n \r \t \v"', "\x0c \n \r \t \x0b"), ('A=""', ""),
        ("A=`b`\nC=`d # e`", {"A": "`b`", "C": "`d"}), ('A="\nexport B=c\n"', "\nexport B=c\n"), ('A=b"c"d', 'b"c"d'),
        (r"'A'='\\ \' \n ${A}'", r"\ ' \n ${A}"), (r"A='C:\dir\new'", r"C:\dir\new"), (r'A="\\\\n\\\n"', "\\\\n\\\n"),
        (r"A='\\ \''", r"\ '"), (r'A="b\\"', "b\\"), (r"A='b\\'", "b\\"), ("A=''", "")],
    "bare": [("A=?Password\nB= ? x", {"A": "?Password", "B": "? x"}), ("A=$2b$12$abc/def.ghi", "$2b$12$abc/def.ghi"),
        ("A=b\\\nC=d\\", {"A": "b\\", "C": "d\\"}), ("A=b;c|d&e<f(g)*?!~", "b;c|d&e<f(g)*?!~"), ("A=?${U:-x}", "?x"),
        (r"A=\n\t\\ \' \x", r"\n\t\\ \' \x"), ('A={"b": "c"} # d', '{"b": "c"}'), ("A=$(id) `id`", "$(id) `id`"),
        ("A=b\\", "b\\")],
    "name": [("__proto__=c\nA=b", {"__proto__": "c", "A": "b"}), ("'a-b.c_1'=d", {"a-b.c_1": "d"}),
        ("aZ09_.-=b", {"aZ09_.-": "b"}), ("007=b", {"007": "b"}), ("-=b", {"-": "b"}), (".=b", {".": "b"}),
        ("'A' \t=  b", "b"), ("_=c", {"_": "c"})],
    "ref": [('A=1\nB=$A $$ $1 $\nC="$A"', {"A": "1", "B": "$A $$ $1 $", "C": "$A"}), ("A=1\nA=${A}2\nA=${A}3", "123"),
        ("A='${H}'\nB=${A}\nC=${B}", {"A": "${H}", "B": "${H}", "C": "${H}"}), ("A=1\nB=$${A}", {"A": "1", "B": "$1"}),
        ("A=1\nB=2\nC=${A}${B}${A}", {"A": "1", "B": "2", "C": "121"}), ("H=file\nA=${H}", {"H": "file", "A": "file"}),
        ("A=1\nB='${A} ${} ${'", {"A": "1", "B": "${A} ${} ${"}), ('A=1\nB="x\n${A}\ny"', {"A": "1", "B": "x\n1\ny"}),
        ("A=' # b'\nC=x${A} y", {"A": " # b", "C": "x # b y"}), (r"B=$ {A} {$A} $\{A}", {"B": r"$ {A} {$A} $\{A}"}),
        ("A='  b  '\nC=${A}", {"A": "  b  ", "C": "  b  "}), ("A='1\n2'\nB=${A}3", {"A": "1\n2", "B": "1\n23"}),
        ("A='\\n'\nB=\"${A}\"", {"A": r"\n", "B": r"\n"}), ('B=x\nA="${B}\\n${B}"', {"B": "x", "A": "x\nx"}),
        ("A=${H}\nH=file", {"A": "host", "H": "file"}), ("D='$'\nA=${D}{H}", {"D": "$", "A": "${H}"}),
        ('A=1\nB="<${A}>"', {"A": "1", "B": "<1>"}), ("A.B=1\nC=${A.B}", {"A.B": "1", "C": "1"}), ("A=<${NIL}>", "<>"),
        ("A-B=1\nC=${A-B}", {"A-B": "1", "C": "B"}), ("A=1\nB=${A}\nA=2", {"A": "2", "B": "1"}), ("A=${H}", "host"),
        ("A=1\nB=${A}}", {"A": "1", "B": "1}"}), ("H=\nA=<${H}>", {"H": "", "A": "<>"}), ("A=${H} # ${", "host"),
        ("1=x\nA=${1}", {"1": "x", "A": "x"}), ("A=${B}\nB=b", {"A": "", "B": "b"}), ("A=<${U}>", "<>"),
        ("H=${H}:more", {"H": "host:more"}), ("A= # ${}", "")],
    "operator": [("S=s\nA=${S:-w},${S-w},${S:+w},${S+w},${S:?w},${S?w}", {"S": "s", "A": "s,s,w,w,s,s"}),
        ("E=\nA=${E:-w},${E-w},${E:+w},${E+w},${E?w}", {"E": "", "A": "w,,,w,"}), ('A="${U:-d} ${H:+e}"', "d e"),
        ("H=\nA=${H:-d}\nB=${H-d}", {"H": "", "A": "d", "B": ""}), ("A=${U:-w},${NIL:-w},${H:-w},${U:-}", "w,w,host,"),
        ("A=${U--d}\nB=${U:--d}", {"A": "-d", "B": "-d"}), ("A=${U-w},${NIL-w},${H-w},${U-}", "w,,host,"),
        ("A=${U:+w},${NIL:+w},${H:+w},${H:+}", ",,w,"), ("NIL=x\nA=${NIL:-d}", {"NIL": "x", "A": "x"}),
        ("A=${U+w},${NIL+w},${H+w},${H+}", ",w,w,"), ("A=${H:?w},${NIL?w},${H?w}", "host,,host"),
        ("A=${U-b-c:-d}", "b-c:-d"), ("A='${U:-d}'", "${U:-d}"), ("A=${H+a:-b}", "a:-b")],
    "default": [("D='${H}'\nA=${U:-${D}}", {"D": "${H}", "A": "${H}"}), ("A=${U:-a${V:-b}c${W:-d}e}f", "abcdef"),
        (r'A="${U:-a\tb\\c\q}"', "a\tb\\c\\q"), ("A=${U:-\"b\" 'c'}", "\"b\" 'c'"), ("A=${U:-${V:-${W-d}}}", "d"),
        ("A=${H:+${H}:}x", "host:x"), ('A="${U:-  b  }"', "  b  "), ("A=${U:-  b  }c", "  b  c"), ("A=${U:- }", " "),
        ("A=${H:-${U:?w}}", "host"), ("A=${H:?${U:?w}}", "host"), (r'A="${U:-\"b\"}"', '"b"'), ("A=${U:-a#b}", "a#b"),
        ('A="${U:-a\nb}"', "a\nb"), ('A="${U:-a #b}"', "a #b"), (r"A=${U:-a\}b}", r"a\b}"), ("A=${U:-${V:-d}}", "d"),
        ("A=${U:-{b}}", "{b}"), ("A=${U:-$b$}", "$b$"), ("A=${U:-b} \t", "b")],
    "escape": [('A=\\$H\nB="\\$H"', {"A": r"\$H", "B": r"\$H"}), (r'A="${U:-\\${H}}"', r"\host"), (r"A=\${H}", "${H}"),
        (r"A=${U:-\\${H}}", r"\${H}"), (r"A=\${H}${H}", "${H}host"), (r'A="\\\\${H}"', r"\\host"), (r'A="\${"', "${"),
        (r'A="${U:-\${X}}"', "${X}"), (r'A="\\\${H}"', r"\${H}"), (r"A=${U:-\${X}}", "${X}"), (r"A='\${H}'", r"\${H}"),
        (r"A=\\\${H}", r"\\${H}"), (r'A="\\${H}"', r"\host"), (r"A=\$${H}", r"\$host"), (r"A=\\${H}", r"\${H}"),
        (r"A=${U:+\${x}}", "}"), (r'A="\${H}"', "${H}"), (r'A="\${}"', "${}")]}

# What is refused: LINE:COLUMN and the reason, and the texts of which each is refused there and for that.
REFUSALS = {
    "bad name": [("1:1", "=b", "\xe9=b", "\uff21=b", "$A=b", "}", "`A`=b", '"A"=b', '{\n  "A": "b"\n}', "; c\nA=b",
        "\ufeff\ufeffA=b"), ("1:2", "A\u0661=b", "A\u200b=b", "A\x07=b", "A+=b", "A: b", "A'B=c", r"A\=b", "' A'=b",
        " =b", "''=c", "A[0]=c", "A:B=c"), ("1:3", "AB\U0001f511=b", "'A\tB'=c", r"'A\nB'=c", "'A B'=c", "'A=B'=c"),
        ("1:4", "caf\xe9=b"), ("1:8", "export = 'b'", "export =b"), ("1:10", "export   =b"), ("2:3", "A=YWJj\nZG/m"),
        ("2:1", "A=b\n\ufeffC=d", "A=1\n${A}=b", "A=b\n=x\nC=d\n'q\nE=f", "A=b\n=c\nD=e", 'A=\n"b"'), ("2:2",
        "X=1\n''=b", 'A={\n "x": "y"\n}\nB=c'), ("2:8", "A=1\nexport\t=b"), ("3:3", "\n\n  =b")],
    "no =": [("1:2", "A# c", "A", "A\r\nB=c\r\n", "A\n=b", "B\nA=${}"), ("1:3", "\ufeffA B", "A #=c", "A \\\n=b",
        "- A=b", "A B=c", "A\u2028B=c", "A B"), ("1:4", "'A'", "if true; then\nA=b\nfi", "---\nA=b", "A  :  b"), ("1:7",
        "export"), ("1:5", "'A' b", "A \t \nB=c", "set A=b"), ("1:8", "EXPORT A=b"), ("1:10", "'export' A=b",
        "-----END X-----"), ("1:9", "export A\nA=b", "export A", "declare -x A=b"), ("1:11", "export A  "), ("2:4",
        "A=\n  b"), ("1:15", "export export A=b"), ("2:2", "A=b\nA", "A=\nb", "A=1\x0b\x0c\u2028\nC",
        "A=b\nB\n=c\nD='e"), ("2:5", "A=YWJj\nZGVm", "K=-----BEGIN KEY-----\nabcd"), ("2:9", "A=b\nexport B"), ("3:2",
        "A=1\rB=2\rC\r"), ("3:10", "A=b\nC=d\nexport A C"), ("4:2", "A='1\n2\n3'\nB"), ("4:3", "# c\n\n\nA B=c\nD=e"),
        ("5:3", "X=1\n\n\n\nA B")],
    "NUL": [("1:1", "\x00"), ("1:2", b'A\x00=\x00b\x00\n\x00', "A\x00B=c"), ("1:3", "'A\x00'=b",
        b'\xef\xbb\xbfA=\x00'), ("1:4", "A='\x00'", "A=b\x00c"), ("1:5", "A=\xe9\U0001f511\x00"), ("2:1",
        'A="b\n\x00"'), ("2:3", "A=b\n# \x00", "A=b\r\nC=\x00\r\n")],
    "UTF-8": [("1:1", b'\xff\xfeA\x00', b'\xef\xbbA=b'), ("1:2", b'A\xff=b'), ("1:3", b'A=\xe2\x82', b'A=\x80',
        b'A=\xc0\x80', b'A=\xed\xa0\x80', b'A=\xf4\x90\x80\x80', b'\xef\xbb\xbfA=\xff'), ("1:4", b'A=b\xff\xfe\nC=d'),
        ("1:5", b'A=\xc3\xa9\xf0\x9f\x94\x91\xff'), ("2:3", b'A=b\nC=\xf0\x9f'), ("1:6", b'A=caf\xe9',
        b'# caf\xe9\nC=d'), ("3:1", b'A=b\r\n\r\n\xff')],
    "text after": [("1:5", "A=''b", "A='''b'''", 'A="""b"""'), ("1:6", 'A="b"=c', 'A="\U0001f511"x', 'A="b"${H}',
        "A='b'\\", "A=\"b\"'c'", 'A="b""c"', r"A='b'\''c'"), ("1:7", "A='b' c", 'A="b" c\nD=e', "A='it's'\nB=c"),
        ("1:9", 'A="b" \t c # d'), ("2:4", 'A="b\nC="d"\nE=f', 'A="b\nc" d\nE=f', "A='b\nC='d'\nE=f",
        "A='C:\\dir\\new\\'\nC='d'"), ("4:4", "X=1\nA='b\n\nc' d", "X=1\r\nA='b\r\n\r\nc' d\r\n")],
    "unterminated quote": [("1:1", "'A", "'A=c\nB=d"), ("1:3", 'A="b', "A='b", 'A="', "A='", r'A="b\"', r"A='b\'",
        r'A="b\\\"', "A='b\\", "A='b\"", "\ufeffA='b", 'A="b # c\nC=d', 'A="b\nC=d', r'A="\"', 'A="b\\',
        "A='b\\\\\\'\nC=d"), ("1:9", "  A  =  'b"), ("1:10", 'export A="b'), ("2:3", "A=b\n  '"), ("3:3",
        "X=1\n\nA='b\nC=d\nE=f", "X=1\r\n\r\nA='b\r\nC=d\r\n", "A='1\n2' # c\nB=\"x")],
    "is required": [("1:3", "A=${U:?}", "A=${U?}", "\ufeffA=${U?}", "A=${B:?}\nB=1"), ("1:4", "A=<${U:?w}>",
        "A=<${NIL:?w}>", "A=<${U?w}>"), ("1:8", "A=${U:-${V:?w}}"), ("2:4", "E=\nA=<${E:?w}>", "X=1\r\nA=b${U?}\r\n"),
        ("2:9", "S=1\nA=${S:?}${U:?}"), ("4:3", 'X=1\n\nA="b\n  ${U:?w}"')],
    "bad reference": [("1:3", "A=${U:-a # b}", "A=${U:-a\nB=c}", r"A=${\${H}}", "A=${}", "A=${", "A=${ }", "A=${H",
        "A=${H B}", "A=${ H}", "A=${H }", "A=${:-d}", "A=${-d}", "A=${+d}", "A=${?d}", "A=${H:}", "A=${H:=x}", "A=${H:",
        "A=${H:-", "A=${H/x/y}", "A=${#H}", "A=${H^^}", "A=${H:0:1}", "A=${H@Q}", "A=${H[0]}", "A=${@}", "A=${${H}}",
        "A=${H${H}}", "A=${$H}", "A=${'H'}", "A=${\xe9}", "A=${H\xe9}", r"A=${H\}", "\ufeffA=${}", "A=${U:-${V}"),
        ("1:4", 'A="${}"', 'A="${H"', 'A="${H\n}"', "A=\U0001f511${}", 'A="${U:-${V}"'), ("1:7", r"A=\${}${}"), ("1:8",
        "A=${H}-${}", "A =  b ${}", "A=${U:+${B C}}", "A=${H:?${}}", "A=${H-}${-H}"), ("1:9", "A=${U:-b${}}",
        "A=${H:-b${}}"), ("1:10", r'A="\n\\\t${}"'), ("3:4", "export A='1\n2'\nB=x${"), ("4:1",
        'X=1\r\n\r\nA="b\r\n${}"\r\n'), ("4:3", 'X=1\n\nA="b\nc ${H d}"')]}


def checked(error):
    """The message of an error that has nothing else to tell."""
    message = str(error)
    assert error.code == 7 and message.startswith("<stdin>:") and message.isprintable()
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return message


def parse_refusal(text, host=HOST):
    with pytest.raises(hotenv.HotenvError) as caught:
        hotenv.parse_dotenv(text, host)
    return checked(caught.value)


def has_reason(message, place, reason):
    return message.startswith("<stdin>:%s: " % place) and reason in message.replace("`", "").replace("'", "")


def meanings(*topics):
    return [(text, {"A": meaning} if isinstance(meaning, str) else meaning)
            for topic in topics or MEANINGS for text, meaning in MEANINGS[topic]]


@pytest.mark.parametrize("topic", [*MEANINGS, *REFUSALS])
def test_what_a_dotenv_text_means_or_where_it_is_none_and_python_dotenvs_grammar_agrees(topic):
    refused = [(text, None, place) for place, *texts in REFUSALS.get(topic, ()) for text in texts]
    for text, meaning, *place in refused or meanings(topic):
        assert isinstance(text, bytes) or "${" in text or expected_of_raw(text) == meaning, ascii(text)
        for form in {text, text if isinstance(text, bytes) else text.encode()}:
            if place:
                assert has_reason(parse_refusal(form), *place, topic), (ascii(form), parse_refusal(form))
            else:
                assert list(hotenv.parse_dotenv(form, HOST).items()) == list(meaning.items()), ascii(form)


DECODED = {"'": {"\\\\": "\\", "\\'": "'"},
           '"': {"\\" + letter: meant for letter, meant in zip("\\'\"abfnrtv", "\\'\"\a\b\f\n\r\t\v")}}


def reference_entries(text):
    """python-dotenv 1.2.4's grammar, a step at a time: [(name, value or None, exported)], or ValueError."""
    text = re.sub("\r\n?", "\n", re.sub("^\ufeff", "", text))  # ours differs inside quotes only: a newline is a newline
    entries, at = [], 0
    def take(pattern):
        nonlocal at
        found = re.compile(pattern, re.DOTALL).match(text, at)
        if not found:
            raise ValueError
        at = found.end()
        return found
    while take(r"\s*") and at < len(text):
        exported, name, value = take(r"(export[^\S\n]+)?")[1], None, None
        if not text.startswith("#", at):
            name = "".join(take(r"'([^']+)'|(?!')([^=#\s]+)").groups(""))
        if take(r"[^\S\n]*") and text.startswith("=", at):
            blanks, quote = take(r"=([^\S\n]*)")[1], text[at:at + 1]
            if quote == "#" and blanks:
                value = ""
            elif quote and quote in "'\"":
                body = take(r"%s((?:\\.|[^\\%s])*)%s" % (quote, quote, quote))[1]
                value = re.sub(r"\\.", lambda found: DECODED[quote].get(found[0], found[0]), body, flags=re.DOTALL)
            else:
                value = re.split(r"\s#", take(r"[^\n]*")[0])[0].rstrip()
        take(r"[^\S\n]*(#[^\n]*)?(\n|$(?!\n))")
        if name is not None:
            entries.append((name, value, exported))
    return entries


def expected_of_raw(text):
    """What a text without references means here, by python-dotenv's grammar; None where it must be refused."""
    meaning = {}
    try:
        for name, value, exported in reference_entries(text):
            if not re.fullmatch(r"[\w.-]+", name, re.ASCII) or value is None and not (exported and name in meaning):
                return None
            meaning[name] = meaning[name] if value is None else value
    except ValueError:
        return None
    return None if "\0" in text else meaning


def python_dotenv():
    dotenv = pytest.importorskip("dotenv", reason="needs python-dotenv")
    if dotenv.dotenv_values(stream=io.StringIO("A='\\\\'\nB='b'\n")) != {"A": "\\", "B": "b"}:
        pytest.skip("this python-dotenv is older than 1.2.3: its quoted values cannot end in a backslash")
    return dotenv


def test_the_tables_agree_with_python_dotenv_itself():
    dotenv = python_dotenv()
    for text, meaning in meanings():
        if isinstance(text, str) and not re.search("\r|\ufeff|[$]{", text):
            found = dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False)
            if None not in found.values():  # as after `export NAME`, with which it loses a value
                assert found == meaning, ascii(text)


def random_dotenv(rng):
    """A text made of pieces in the shape of the grammar, most of the time; else of its structural characters alone."""
    start = rng.choice([""] * 9 + ["\ufeff"])
    if rng.random() < 0.25:
        return start + "".join(rng.choice(" =#'\"\\\n\r\tAexport\x0b\u2028\x00$") for _ in range(rng.randrange(14)))
    lines = []
    for _ in range(rng.randrange(1, 5)):
        name = rng.choice(["A", "B", "A.b-1", "export", "'Q'", "export A", "export\t'B'"] if rng.random() < 0.9 else
                          ["'A B'", "''", "\u00e9", "'", "", "export ", "A B", "#", "A:", "export\n"])
        equals = rng.choice(["=", "=", "=", " = ", "=\t", "\x0b=\x0c", "\u2028=\u3000", "\xa0=\x85"]
                            if rng.random() < 0.9 else ["", " ", ":", "\n=", " #", "#", "=="])
        value = rng.choice(["", "x", "b c", "#c", " #c", "x #c", "x#c", "\u00e9", "'q'", '"q"', "'a\\'b\\\\'",
                            "' # '#", '"a\\"b\\n\\q\\\\" # c', '"\\\\"', "'two\n#lines'", '"two\\\r\nlines"',
                            '"$x\\n # y"', '"' + "\\q" * 120 + '"', "'" + "\\'" * 120 + "'", "\\", "\\\\", "b\\", "b'",
                            "$A", "{}", "x\x1c", "\x85", "\u2028x", "\x0b# ", "x \t \x0c#"])
        if rng.random() < 0.2:
            value += rng.choice(["x", " ", "'", '"', "#", "\\", "\r", "\x00", "\x0b", "\ufeff", '"q"'])
        lines += name, equals, value, rng.choice(["\n", "\n", "\n", "\r\n", "\r", "\n \n", " # c\n", "\x0b\n", "#\n"])
    text = start + "".join(lines)
    return text.rstrip("\n") if rng.random() < 0.3 else text


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


class Bad(Exception):
    """A malformed reference; the offsets of the `$`s of the references that are open there, the outermost first."""


def expanded(text, known, escapes, required, at=0, opened=()):
    """(what it expands to, where it ends): our reference language by recursive descent. The `$`s of those that are
    required and missing are appended to a list."""
    value = ""
    while at < len(text) and not (opened and text[at] == "}"):
        step = text[at:at + 2]
        if text.startswith("\\${", at):
            value, at = value + "${", at + 3
        elif escapes and step in DECODED['"']:
            value, at = value + DECODED['"'][step], at + 2
        elif step == "${":
            name, operator = re.compile(r"([\w.]*)(:?[-+?]|}|)", re.ASCII).match(text, at + 2).groups()
            dollar, opening, missing, word = at, (*opened, at), [], ""
            if not name or not operator:
                raise Bad(*opening)
            at += 2 + len(name + operator)
            if operator != "}":
                word, at = expanded(text, known, escapes, missing, at, opening)
                if at >= len(text):
                    raise Bad(*opening)
                at += 1
            found = known.get(name)
            there = bool(found) if operator[0] == ":" else found is not None
            used = there == (operator[-1] == "+") and operator[-1] in "+-"
            required += missing if used else [dollar] if operator[-1] == "?" and not there else []
            value += word if used else "" if operator[-1] == "+" else found or ""
        else:
            value, at = value + text[at], at + 1
    return value, at


def random_value(rng, depth=0):
    """Text for a bare or a double-quoted value: no blanks, `#` and bare quotes, so that it means the same in both."""
    pieces = ["x", "yz", "$", "$S", "{", "}", "\\${", "\u00e9", "\U0001f511", "\\\\", "-", ":", "?", "$$"]
    text = ""
    for _ in range(rng.randrange(4)):
        if depth >= 4 or rng.random() >= 0.45:
            text += rng.choice(pieces)
            continue
        usual = rng.random() < 0.95
        text += "${" + rng.choice(["S", "E", "U", "H", "NIL", "S.1"] if usual else
                                  ["", "S", "S ", "!S", "\u00e9", "${S}", "S:"])
        operator = rng.choice(["", "", ":-", "-", ":+", "+", ":?", "?"] if usual else
                              ["", ":=", "=", ":", "/", "%", "[0]"])
        text += operator + (random_value(rng, depth + 1) if operator else "") + "}" * (rng.random() < 0.97)
    return text


def test_references_mean_what_a_recursive_descent_says_expand_to_64_megabytes_and_nest_deep_or_are_refused():
    known, outcomes = {"S": "set", "E": "", "S.1": "${S}", "H": "${H}\\n", "NIL": ""}, {}
    rng, host = random.Random(SEED), {"S": "hidden", "E": "hidden", "H": "${H}\\n", "NIL": ""}
    for _ in range(amount(60_000)):
        quoted, value = rng.random() < 0.5, random_value(rng)
        if quoted and rng.random() < 0.5:
            value = rng.choice(["\\n", '\\"', "\n", "\\q", "a #b"]) + value + rng.choice(["\\t", "\r\n", " ", "\\$"])
        text = "S=set\nE=\n'S.1'='${S}'\nA=" + ('"%s"' % value if quoted else "x" + value) + "\n"
        start, places = text.index("A=") + 3, []
        try:
            expected = expanded(value if quoted else value.rstrip(), known, quoted, places)[0]
            expected, places = "is required" if places else expected, places[:1]
        except Bad as bad:
            expected, places = "bad reference", bad.args
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
    lines = ["A0=x"] + ["A%d=${A%d}${A%d}" % (i, i - 1, i - 1) for i in range(1, 61)]
    quoted, long = [line.replace("=", '="', 1) + '"' for line in lines], "A=" + "x" * 100_000 + "\nB="
    for text in ("\n".join(lines[:28]), "\n".join(lines), "\n".join(quoted),  # the first cannot hurt without a limit
                 *[long + word * 1_000 for word in ("${A:-}", "${U:-${A}}", "${A:+${A}}", "${A:?}")]):
        started = time.monotonic()
        assert "too large" in parse_refusal(text) and time.monotonic() - started < 2
    assert [len(value) for value in hotenv.parse_dotenv("\n".join(lines[:21])).values()] == [2 ** i for i in range(21)]
    for depth in (1, 30, 1_000, 100_000):
        text = "A=" + "${U:-" * depth + "x" + "}" * depth
        assert "bad reference" in parse_refusal(text[:-1])
        try:
            assert hotenv.parse_dotenv(text) == {"A": "x"}
        except hotenv.HotenvError:
            assert depth > 30


# What is repeated, and what stands around it: head, unit, middle, and one closing unit for each unit.
LINEAR = {"lines": ("", "KEY_%d=value-%d-of-some-length\n"), "quoted values": ("", "K%d=\"quo\\ted '%d'\" # c\n"),
    "quoted lines": ("K='", "some words of it\n", "'\n"), "one double": ('K="', "x", '"'), "one bare": ("K=", "x"),
    "one escaped": ('K="', "\\n\\q", '"'), "blanks inside": ("K=x", " ", "y"), "blanks after": ("K=x", " \t", "\nA=b"),
    "blanks first": ("", " ", "K=x"), "blanks before junk": ("K", " ", "x"), "blanks after quote": ("K='x'", " ", "x"),
    "blank lines": ("", "\n \r\n"), "blank words": ("K=", "x ", "\n"), "references": ("B=x\nK=", "${B}"),
    "references on lines": ("B=x\n", "K%d=${B}${K%d:-y}\n"), "open references": ("K=", "${"),
    "unclosed references": ("K=", "${B"), "literal references": ('K="', "\\${", '"'),
    "references in single": ("K='", "${", "'"), "nested": ("K=", "${B:-", "x", "}"),
    "nested and used": ("B=x\nK=", "${B:+", "x", "}"), "nested and open": ("K=", "${B:-"),
    "nested in required": ("K=", "${B:?", "", "}"), "dollars": ("K=", "$"), "braces": ("K=${B:-", "{", "}"),
    "hashes": ("K=", "#"), "hashes and blanks": ("K='x' ", " #"), "hash lines": ("", "#\n"),
    "backslashes": ("K=", "\\"), "double backslashes": ('K="', "\\\\", '"'), "single backslashes": ("K='", "\\\\", "'"),
    "unclosed backslashes": ('K="\\', "\\\\"), "backslashes and quotes": ('K="', '\\"', '"'),
    "escaped quotes": ("K='", "\\'", "'"), "escaped quotes, reference": ('K="', '\\"', '${B}"'),
    "escaped quotes, junk": ("K='", "\\'", "' x"), "escaped quotes, open": ("K='", "\\'"), "quotes": ("K=x", "'\""),
    "one name": ("", "K", "=x"), "one name alone": ("", "K"), "one quoted name": ("'", "K", "'=x"),
    "exports": ("K=1\n", "export K\n"), "export exports": ("", "export "), "late error": ("", "KEY=value\r\n", "!"),
    "one name's entries": ("", "K=1\n"), "questions": ("", "A=?\n"), "questions with text": ("", "K%d=?text\n"),}


def repeated(shape, size):
    head, unit, middle, closing = (*LINEAR[shape], "", "")[:4]
    count = size // len(unit + closing)
    body = "".join(unit.replace("%d", str(n)) for n in range(count)) if "%d" in unit else unit * count
    return head + body + middle + closing * count


def seconds_to_parse(text, runs=1):
    """The best of some runs, in processor time, without the garbage collector's; a refusal counts as well."""
    gc.disable()
    started = time.process_time()
    with contextlib.suppress(hotenv.HotenvError):
        hotenv.parse_dotenv(text)
    took = time.process_time() - started
    gc.enable()
    return min(took, seconds_to_parse(text, runs - 1)) if runs > 1 else took


# How many times the size of the text its reading may take.
MEMORY = {**dict.fromkeys(["one double", "one bare", "one escaped", "blanks inside", "double backslashes",
          "quoted lines", "escaped quotes", "literal references"], 32), "references": 120, "questions": 60}


def beside_a_split(text):
    """How many times as long parsing takes as splitting each line at its `=`."""
    parsed, started = seconds_to_parse(text), time.process_time()
    dict([line.split("=", 1) for line in text.split("\n") if "=" in line])
    return parsed / (time.process_time() - started)


@pytest.mark.parametrize("shape", LINEAR)
def test_time_and_memory_are_linear(shape):
    """A value takes a few times its length: no list of its characters, no frame for each escape, no copy for a key."""
    size = 10_000_000 if FULL else 200_000
    big, small = seconds_to_parse(repeated(shape, size)), seconds_to_parse(repeated(shape, size // 10), 3)
    if big > 14 * small + 0.01:  # once more, where the first runs do not settle it
        big, small = seconds_to_parse(repeated(shape, size), 2), seconds_to_parse(repeated(shape, size // 10), 3)
    assert big <= 14 * small + 0.01 and big < size * 2e-6  # half a megabyte a second
    assert shape != "lines" or any(beside_a_split(repeated(shape, size * 9)) < 4 for _ in range(15))
    if shape in MEMORY:
        text = repeated(shape, 400_000 if FULL else 30_000)
        tracemalloc.start()
        hotenv.parse_dotenv(text)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < len(text) * MEMORY[shape]


def test_no_error_shows_any_of_the_input_but_a_key_and_where_it_stands_and_no_message_of_a_question_mark():
    rng, refused = random.Random(SEED), 0
    foreign = "\u0416\u0449\u044f\u03a9\u03b4\u05d0\u0e01\u4e2d\ue000\uf8ff\U0001f511\U0010fffd\u200b\u0301"  # not ours
    structure = ["=", "'", '"', "\\", "#", " ", "\n", "\r", "${", "}", ":-", ":?", "?", "-", "+", "\x0b", "export ",
                 "A", "B", "\0", "\ufeff", "A=", "A='", 'B="', "\nA=", "${A", "${A:?"]
    escaped = [char.encode("unicode_escape").decode() for char in foreign]
    for _ in range(amount(100_000)):
        text = "".join(rng.choice(foreign if rng.random() < 0.5 else structure) for _ in range(rng.randrange(1, 24)))
        if rng.random() < 0.3:
            text = bytearray(text.encode())
            text[rng.randrange(len(text))] = rng.randrange(128, 256)
            text = bytes(text)
        try:
            hotenv.parse_dotenv(text, {"B": rng.choice(foreign)})
        except hotenv.HotenvError as error:
            refused += 1
            shown = " ".join(map(str, (checked(error), repr(error), error.args, vars(error))))
            assert not set(foreign) & set(shown) and not any(form in shown for form in escaped), ascii((text, shown))
    assert refused > amount(100_000) / 5
    # What is no key may be the tail of a secret: a bare name, an exported one, the name of a reference.
    secret = "sesame " * 1_000
    for text in ("sesame", "sesame open", "A=open\nsesame", "export sesame", "A=b\nexport sesame # c",
                 "export 'sesame'", "'sesame' x", "sesame: x", "A=open${sesame", "A=open${sesame:=x}",
                 "A=open${sesame?}", "A=${U:-${sesame:?}}", "A=${U:?sesame}", 'A="${U?ses${H}same}"',
                 "A=${U:?sesame ${U:-sesame}}", "A=${V:-${U?sesame}}", "A='" + secret, 'A="b" ' + secret, secret, "'"
                 + secret + "'=b", "A=${" + secret, "A=b\n" + secret, secret + "\0", "A=${U:?" + secret + "}", "A=${U:-"
                 + secret, ("A=" + secret).encode() + b"\xff", "=" + secret, "A b " + secret):
        message = parse_refusal(text)
        assert "sesame" not in message and "host" not in message and len(message) < 300, message
    for text in ("KEY='b", "export KEY=\"b", "'KEY'='b' c", "KEY=${", "KEY=\"${U:?}\""):
        assert "KEY" in parse_refusal(text)
    assert "2:7" in parse_refusal("A=b\nKEY = 'c\nd' e")  # the opening quote
    assert has_reason(parse_refusal("A=b\r\nB=c\udc80"), "2:4", "UTF-8")  # text that no UTF-8 can hold


# ==== redaction =======================================================================================================
# Values and their spellings, in a string and in a stream.

LONG_PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(base64.b64encode(random.Random(n).getrandbits(384).to_bytes(
    48, "big")).decode() for n in range(60)) + "\n-----END PRIVATE KEY-----\n"
VALUES = {"TOKEN": TOKEN, "URL": "postgres://app:p%40ss/w?rd=1&x=~a'b@db.example:5432/main",
    "QUOTES": "it's \"quoted\" <b>&amp; `x` $HOME \\n!", "ACCENTS": "naïve-Größe-\U0001f511-key",
    "LINES": "first line's text\nsecond\tline\r\nthird line: ü", "PADDED": "  blanks around me \n",
    "JSON": json.dumps({"type": "service_account", "key": "-----BEGIN\nabc/def+ghi==\n"}, indent=2),
    "BYTES": os.fsdecode(b"latin-1 \xe9\xff text"), "HEX_ODD": "what-is-31-characters-in-length",
    "CONTROL": "esc\x1b[1m bell\x07 del\x7f nul-less", "PEM": LONG_PEM, "PATHS": r"C:\xyz\x07;\\nas-7\new"}


def raw(value):
    return value.encode("utf-8", "surrogateescape")


def encoded(coder):
    return lambda value: coder(raw(value.strip())).decode()


def quoted_url(safe):
    return encoded(lambda data: urllib.parse.quote_from_bytes(data, safe).encode())


SPELLINGS = {
    "as it is": str, "repr": repr, "ascii": ascii, "repr of bytes": lambda v: repr(raw(v)),
    "repr, the other quote": lambda v: repr(v + "'\"")[:-4], "base64": encoded(base64.b64encode),
    "base64 without padding": encoded(lambda data: base64.b64encode(data).rstrip(b"=")),
    "base64 for URLs": encoded(base64.urlsafe_b64encode), "hex": encoded(lambda data: data.hex().encode()),
    "quote": quoted_url("/"), "quote, nothing safe": quoted_url(""), "encodeURIComponent": quoted_url("!'()*"),
    "quote_plus": lambda v: urllib.parse.quote_plus(raw(v.strip())), "JSON": lambda v: json.dumps(v)[1:-1],
    "JSON with UTF-8": lambda v: json.dumps(v, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda v: json.dumps(v)[1:-1].replace("/", "\\/"),
    "JSON of Go": lambda v: re.sub("[&<>]", lambda found: "\\u%04x" % ord(found[0]),
                                   json.dumps(v, ensure_ascii=False)[1:-1]),
    "shlex": shlex.quote, "single quotes": lambda v: "'" + v.replace("'", "'\\''") + "'",
    "html.escape": html.escape, "html.escape, quotes kept": lambda v: html.escape(v, quote=False)}


def test_every_spelling_of_every_value_is_masked_and_what_cannot_become_a_value_comes_through_at_once():
    of_all = hotenv.Redactor({"OTHER": "something else entirely", **VALUES})
    for spelling, (name, value) in itertools.product(SPELLINGS, VALUES.items()):
        masked = of_all(f"<<{SPELLINGS[spelling](value)}>>")
        assert masked.startswith("<<") and masked.endswith(">>")
        left = masked[2:-2].replace(f"[hidden:{name}]", "", 1)  # quotes and blanks around a value may stay, no more
        assert left.strip("'\" \nb\\nt") == "", (spelling, masked)
    for name, coder, tail, offset in itertools.product(VALUES, (base64.b64encode, base64.urlsafe_b64encode),
                                                       (b"", b"\n", b":more text after it"), range(3)):
        masked = cut(of_all, coder(b"user:"[:3 + offset] + raw(VALUES[name].strip()) + tail))
        assert b"[hidden:%s]" % name.encode() in masked, (name, offset)
        assert len(masked.replace(b"[hidden:%s]" % name.encode(), b"")) <= 8 + len(coder(tail)) + 4
    for env, cases in MASKED:
        redactor = hotenv.Redactor(env)
        for text, masked in cases.items():
            size = len(raw(text))
            assert redactor(text) == masked == os.fsdecode(cut(redactor, raw(text), *range(1, size, 1 + size // 99)))
    assert hotenv.Redactor(MASKED[1][0]).unmaskable == ["A", "C"]  # too short; what is empty is no value
    lifted = hotenv.Redactor({"APP_ENV": "productive", "AWS_ID": "id-of-aws", "AWS_KEY": "key-of-aws", "TOKEN": TOKEN},
                             skip=["APP_ENV", "AWS_*"])
    assert lifted("productive id-of-aws key-of-aws " + TOKEN) == "productive id-of-aws key-of-aws [hidden:TOKEN]"
    assert (hotenv.Redactor({}).longest, hotenv.Redactor({}).stream().feed(b"any")) == (0, b"any")
    redactor = hotenv.Redactor({"TOKEN": TOKEN, "URL": VALUES["URL"], "WORD": "x443"})
    for text in ("Password: ", "step 1 of 3...", "\r 42%", "y", "https://example.com/", "x442", "sk-live_", "1x443 "):
        stream = redactor.stream()
        assert stream.feed(b"\n") + stream.feed(raw(text)) == b"\n" + raw(text)
    stream = redactor.stream()
    outs = [stream.feed(piece) for piece in (b"a sk-l", b"", b"ive-5", b"1H8sVq", b"0")]
    assert outs == [b"a ", b"", b"", b"", b"[hidden:TOKEN]"]
    assert [stream.feed(piece) for piece in (b"sk-live-", b"ssk-", b"live-6")] == [b"", b"sk-live-s", b"sk-live-6"]
    assert (stream.feed(b"sk-li"), stream.flush(), stream.feed(b"ve")) == (b"", b"sk-li", b"ve")


@pytest.mark.parametrize("command", ['printf %q "$V"', 'printf %s "${V@Q}"', 'set -x; : "$V"', "declare -p V",
    "export -p", "set", 'LC_ALL=C; printf %q "$V"', 'printf %s "$V" | base64', 'printf %s "$V" | xxd -p -c 256',
    'printf %s "$V" | openssl base64', "env", "jq -n env", "jq -rn 'env.V|@uri,@base64,@sh,@json'", "node -p "
    "'JSON.stringify(process.env.V)+encodeURIComponent(process.env.V)+new URLSearchParams({v: process.env.V})'"])
def test_what_other_programs_make_of_a_value_is_masked(command):
    program = re.search(r"base64|xxd|openssl|jq|node|bash", command + " bash")[0]
    if not shutil.which(program) or not shutil.which("bash"):
        pytest.skip(f"no {program}, or no bash")
    values = {name: VALUES[name].strip() for name in ("TOKEN", "URL", "QUOTES", "ACCENTS", "CONTROL", "JSON", "PATHS")}
    each = f"for value; do export V=\"$value\"; ( unset value; set --; {command}\n ) 2>&1; echo; done"
    ran = subprocess.run(["bash", "--norc", "-c", each, "bash", *values.values()], cwd="/", stdout=subprocess.PIPE,
                         env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/"}, timeout=PATIENCE)
    if b"bad substitution" in ran.stdout:
        pytest.skip("this bash is too old for @Q")
    masked = cut(hotenv.Redactor(values), ran.stdout)
    for name, value in values.items():
        assert b"[hidden:%s]" % name.encode() in masked, (name, ran.stdout)
        pieces = [piece for piece in re.split(r"\W+", value, flags=re.ASCII) if len(piece) > 3 and piece != "HOME"]
        assert not [piece for piece in pieces if piece.encode() in masked], masked


COMMON = """true false yes no on off null none debug info warning error test dev staging production localhost postgres
    root admin 0 1 80 443 3000 5432 8080 65535 00042""".split()


def test_words_that_are_nobodys_secret_are_not_masked_but_named(project):
    env = {"V%d" % n: word for n, word in enumerate(COMMON)}
    redactor = hotenv.Redactor({**env, "LEVEL": "INFO", "FLAG": "True", "PIN": "123456", "NAME": "productive"})
    text = " ".join(COMMON) + ' {"ok": true, "port": 5432} INFO True'
    assert redactor(text) == text and sorted(redactor.unmaskable) == sorted([*env, "LEVEL", "FLAG"])
    assert redactor("123456 productive") == "[hidden:PIN] [hidden:NAME]"
    project.serve(b"DEBUG=true\nPORT=5432\nDB_NAME=postgres\nAWS_ID=aws-id-1\nAWS_KEY=aws-key-1\nTOKEN=t0ken-t0ken\n")
    shown = '{"ok": true, "port": 5432, "db": "postgres"} aws-id-1 aws-key-1 t0ken-t0ken\n'
    done = project.hotenv("run", "--mask", "--no-mask", "AWS_*", "--", "printf", "%s", shown)
    assert done.stdout.decode() == shown.replace("t0ken-t0ken", "[hidden:TOKEN]")
    assert all(name in done.stderr for name in (b"DEBUG", b"PORT", b"DB_NAME")), done.stderr
    assert b"TOKEN" not in done.stderr and b"postgres" not in done.stderr


def cut(redactor, data, *at):
    """What a stream gives for `data` when it comes in pieces that are cut there."""
    stream, ends = redactor.stream(), [0, *at, len(data)]
    return b"".join([stream.feed(data[a:b]) for a, b in zip(ends, ends[1:])]) + stream.flush()


# An environment, and what each text becomes in it: short values are whole words, or masked not at all; of several
# names the first is shown; several lines are masked as a whole, and each of 8 characters or more.
MASKED = [
    ({"WORD": "x443", "PIN": "12-34", "SIGN": "$abc", "UMLAUT": "grün"}, {
        "x443": "[hidden:WORD]", "=x443,": "=[hidden:WORD],", "1x443": "1x443", "x4430": "x4430", "_x443": "_x443",
        "x443 x443": "[hidden:WORD] [hidden:WORD]", "\u201cx443\u201d": "\u201c[hidden:WORD]\u201d", "$abcd": "$abcd",
        "12-34": "[hidden:PIN]", "912-34": "912-34", "12-34-": "[hidden:PIN]-", "x$abc": "x[hidden:SIGN]",
        "grün": "[hidden:UMLAUT]", "grüner": "grüner", base64.b64encode(b"x443").decode(): "eDQ0Mw=="}),
    ({"A": "abc", "B": "", "C": "  x  ", "D": "   \n\n      ", "E": "abcd"},
     {"abc x abcd         ": "abc x [hidden:E]         "}), ({}, {"any text": "any text"}),
    ({"U": "ws://host///p\\'s/"}, {"/ws:/host/p\\'s;": "/[hidden:U];", "$'ws://host///p\\\\\\'s/'": "$'[hidden:U]'"}),
    ({"A": "abcdefgh", "B": "abcdefgh"}, {"\udce9abcdefgh": "\udce9[hidden:A]"}),
    ({"KEY": LONG_PEM, "SHORT": "aaa\nbbb\nccc"}, {
        f"[{LONG_PEM}]": "[[hidden:KEY]\n]", "aaa\nbbb\nccc, aaa\nbbb": "[hidden:SHORT], aaa\nbbb",
        "\r\n".join("    " + line for line in LONG_PEM.splitlines()): "\r\n".join(["    [hidden:KEY]"] * 62),
        json.dumps({"key": LONG_PEM}): '{"key": "[hidden:KEY]\\n"}'})]


@pytest.mark.parametrize("size", [63, 65, 1023, 1025, 40_000])
def test_large_values_are_masked_whole_and_hold_back_no_more_than_longest(size):
    value = random.Random(SEED).getrandbits(4 * size).to_bytes(size // 2 + 1, "big").hex()[:size]
    redactor = hotenv.Redactor({"BIG": value})
    assert redactor.longest <= 2048 and redactor(f"({value})") == "([hidden:BIG])"
    assert redactor(base64.b64encode(b"xy" + raw(value)).decode()).count("[hidden:BIG]") == 1
    assert cut(redactor, raw(f"({value})"), *range(700, size, 700)) == b"([hidden:BIG])"
    stream = redactor.stream()
    stream.feed(raw("(" + value[:-1]))
    assert len(stream.flush()) <= redactor.longest + 1  # of a value that has not come whole
    begun = time.process_time()
    hotenv.Redactor({"BIG": "abc1" * 10 * size})
    assert time.process_time() - begun < 2, "what a value costs grows with its length, not with its square"


def masked_by_trying(env, text):
    """Every place of every value, found the slow way; values of letters alone, so that most spellings are the same."""
    found = {}
    for (name, value), start in itertools.product(env.items(), range(len(text))):
        word = r"(?<!\w)%s(?!\w)" if len(value) < 8 else "%s"
        if re.compile(word % value).match(text, start) and len(value) > found.get(start, (0, ""))[0]:
            found[start] = len(value), name
    out, done, shown = "", 0, ""
    for start in sorted(found):
        size, name = found[start]
        if start > done:
            out, done, shown = out + text[done:start], start, ""
        if start + size > done:
            out, done, shown = out + ("[hidden:%s]" % name if name != shown else ""), start + size, name
    return out + text[done:]


def test_any_cut_of_a_stream_gives_what_the_whole_gives_and_lets_no_value_through():
    rng = random.Random(SEED)
    for _ in range(amount(2500)):
        letters = rng.choice(("ab", "abc", "xyz"))
        env = {f"N{n}": "".join(rng.choices(letters, k=rng.choice((4, 5, 7, 8, 9, 12, 20, 40))))
               for n in range(rng.randrange(1, 5))}
        env = {name: value for name, value in env.items() if list(env.values()).count(value) == 1}
        pieces = []
        for _ in range(rng.randrange(1, 12)):
            value = rng.choice(list(env.values()) or ["-"])
            start, end = sorted((rng.randrange(len(value) + 1), rng.randrange(len(value) + 1)))
            filling = "".join(rng.choice(letters + " ") for _ in range(rng.randrange(9)))
            pieces.append(rng.choice((value, value[start:end], filling)))
        text, redactor = "".join(pieces), hotenv.Redactor(env)
        expected = raw(masked_by_trying(env, text))
        assert cut(redactor, raw(text)) == expected, (env, text)
        for most in (1, 3, 9, 30):
            at = list(itertools.accumulate(rng.randrange(1, most + 1) for _ in text))
            assert cut(redactor, raw(text), *[each for each in at if each < len(text)]) == expected, (env, text)
    # What stands before the beginning of a value is never lost, and one of few characters may have many bytes.
    account = '{\n  "type": "service_account",\n  "key": "0123456789abcdef0123456789abcdef"\n}'
    redactor = hotenv.Redactor({"SA": account, "S": "\u65e5\u672c\u8a9e\u9375"})
    data = raw("ERROR 1\nERROR 2\n" + account[:50])
    assert cut(redactor, data).startswith(b"ERROR 1\nERROR 2\n{\n  [hidden:SA]")
    for text in data, data + raw(account + "\ndone \u65e5\u672c\u8a9e\u9375 \u65e5\u672c\u8a9e\u9375x"):
        assert {cut(redactor, text, at) for at in range(len(text))} == {cut(redactor, text)}
    assert cut(redactor, text).endswith(b"done [hidden:S] [hidden:S]x")
    env = {f"V{n}": "".join(rng.choices("abcdefABCDEF0123456789+/=$'\" ", k=rng.randrange(4, 60))) for n in range(20)}
    env = {name: value for name, value in env.items() if len(value.strip()) >= 4}
    redactor, values = hotenv.Redactor(env), list(env.values())
    for _ in range(amount(10_000)):
        data = raw("".join(rng.choice((" ", "=", "\n", "log: ")) + rng.choice(values) + " " for _ in range(3)))
        out = cut(redactor, data, *sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(6))))
        assert not [value for value in values if raw(value.strip()) in out]


def fast(redactor, data, least, step=65536):
    """Whether one of three runs takes so many bytes a second, in processor time."""
    for _ in range(3):
        stream, begun = redactor.stream(), time.process_time()
        for start in range(0, len(data), step):
            stream.feed(data[start:start + step])
        stream.flush()
        if len(data) / (time.process_time() - begun) > least:
            return True


def test_masking_is_fast_enough_for_logs_and_for_hostile_text():
    """On a quiet machine 80 MB/s, 16 where values and log are full of URLs, and 9 in writes of 64 bytes."""
    rng = random.Random(SEED)
    log = "".join("2024-05-14T12:00:%02dZ INFO app[%d]: GET https://api.example.com/users/%x?page=%d 200 %d ms\n"
                  % (n % 60, rng.randrange(9999), rng.getrandbits(64), rng.randrange(90), rng.randrange(900))
                  for n in range(15_000)).encode()
    env = {f"TOKEN_{n}": base64.b64encode(rng.getrandbits(240).to_bytes(30, "big")).decode() for n in range(20)}
    assert fast(hotenv.Redactor(env), log, 20e6) and fast(hotenv.Redactor(env), log[:300_000], 2e6, step=64)
    urls = {f"URL_{n}": "https://api.%d.internal.example/users/%d" % (n, n) for n in range(5)}
    assert fast(hotenv.Redactor({**env, **urls}), log, 4e6)
    for value, text in (("a" * 8, "a"), ("a" * 4096 + "b", "a"), ("a" * 2048 + "b" + "a" * 2048, "a"),
                        ("ab" * 32768 + "c", "ab"), (LONG_PEM, LONG_PEM[:900]), ("x" * 100_000, "x" * 1000 + "y")):
        redactor, data = hotenv.Redactor({"V": value}), raw(text * ((200_000 if FULL else 10_000) // len(text)))
        assert fast(redactor, data, 5e4) and fast(redactor, data[:2_000], 1e4, step=10), value[:9]


# ==== terminal ========================================================================================================
# What is asked for on a terminal, and how it is left behind.


class Asking:
    """A serve that asks, as a shell starts it: on a terminal, in its own process group, input from a file. This shell
    leaves the terminal as it finds it, and says how its job has ended or that it was stopped."""

    SHELL = """import os, signal, sys
path, behind, *command = sys.argv[1:]
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
while not os.path.exists(path) or not os.path.getsize(path):
    pass
child = os.fork()
if not child:
    os.setpgid(0, 0)
    behind or os.tcsetpgrp(1, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.dup2(os.open(path, 0), 0)
    os.execv(command[0], command)
while True:
    status = os.waitpid(child, os.WUNTRACED)[1]
    os.tcsetpgrp(1, os.getpid())
    stopped, killed = os.WIFSTOPPED(status), os.WIFSIGNALED(status)
    code = -os.WSTOPSIG(status) if stopped else -os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
    os.write(1, b"<%d>" % code)
    sys.stdin.readline()  # a shell lives on until the terminal is closed
    os.tcsetpgrp(1, child)
    os.kill(-child, signal.SIGCONT)
"""

    def __init__(self, leader, terminal, path, text, until):
        self.leader, self.terminal, self.settings = leader, terminal, termios.tcgetattr(terminal)
        self.said, self.known = b"", 0
        path.write_bytes(text)
        self.seen(until)

    def pid(self):
        return int(children(self.leader)[0][0])

    def ended(self):
        """The exit status, or the number of the signal that ended or stopped it, negative."""
        return int(re.findall(rb"<(-?\d+)>", self.seen(rb"<-?\d+>"))[-1])

    def seen(self, what):
        """All that was said, as soon as this is behind what was seen before."""
        self.said = self.said[:self.known] + read_until(self.terminal, what, self.said[self.known:])
        self.known += re.search(what, self.said[self.known:]).end()
        return self.said

    def type(self, text):
        os.write(self.terminal, text)

    def echoes(self):
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def restored(self):
        return termios.tcgetattr(self.terminal) == self.settings


@pytest.fixture
def prompting(project):
    with contextlib.ExitStack() as terminals:
        def make(*args, text=b"A=?First\n", until=b"First: ", behind=""):
            path = Path(tempfile.mkdtemp(dir=str(project.root)), "input")
            leads = terminals.enter_context(on_terminal(sys.executable, "-ISc", Asking.SHELL, str(path), behind,
                *project.command(["serve", "--prompt", *args]), cwd=project.dir, env=project.env))
            return Asking(*leads, path, text, until)
        make.hang_up = terminals.close
        yield make


def test_answers_are_typed_without_echo_in_file_order_before_anything_is_created_where_one_sees_it(project, prompting):
    done = project.hotenv("serve", "--prompt", input=b"A=?First\n", start_new_session=True)
    assert "terminal" in refusal(done, 8) and project.files() == []
    for code, options in ((8, {"behind": "yes"}), (7, {"text": b"A=?First\nB\n"})):  # refused anyway
        asking = prompting(until=b"\n", **options)
        assert b"First: " not in asking.said and (code == 7 or b"foreground" in asking.said)
        assert asking.ended() == code and asking.restored() and project.files() == []
    text = (b"A=?First question\nLIT='?x'\nDQ=\"?y\"\nSECOND=?\nC=\"${A}-${SECOND}\"\nD=${SECOND:-dflt}\nF=x?\n"
            b'G="${H}"\nI=${H}\nE=  ?The last  # a comment\n')
    project.env["H"] = "?x"  # no question is what is quoted, or what a reference stands for
    asking = prompting("--background", text=text, until=b"First question: ")
    for typed, following in ((b"s3cr3t answer\n", b"SECOND.*: "), (b"\n", b"The last: ")):  # without a text it is named
        assert not asking.echoes() and project.files() == []
        asking.type(typed)
        asking.seen(following)
    asking.type("s3cr3t \u00e9 ' \" ${A} #x\n".encode())
    assert asking.ended() == 0 and asking.restored() and b"s3cr3t" not in asking.said
    assert project.dump() == {b"A": b"s3cr3t answer", b"LIT": b"?x", b"DQ": b"?y", b"SECOND": b"",
                              b"C": b"s3cr3t answer-", b"D": b"dflt", b"F": b"x?", b"G": b"?x", b"I": b"?x",
                              b"E": "s3cr3t \u00e9 ' \" ${A} #x".encode()}


@pytest.mark.parametrize("typed, told", [(b"\x04", "Ctrl-D"), (b"x" * 5000 + b"\n", "more than a terminal takes"),
    (b"s3cr3t\nsecond\nthird\n", "several lines"), (b"nul\0\n", "what no environment holds")], ids=range(4))
def test_an_answer_that_would_be_lost_in_part_is_refused_with_a_word(project, prompting, typed, told):
    asking = prompting("--background")
    asking.type(typed)
    said = asking.seen(rb"First: |<-?\d+>")
    if b"<0>" in said:  # a session it is: then with the whole answer
        assert project.dump() == {b"A": typed.strip(b"\n")} and b"\n" not in typed.strip(b"\n"), told
        return
    assert re.search(rb"[a-z]{3} [a-z ]{3}", said.replace(b"First: ", b"")), (told, said)
    assert b"s3cr3t" not in said and b"xxx" not in said and project.files() == []


@pytest.mark.parametrize("key", [b"\x03", b"\x1c"])  # Ctrl-C, and Ctrl-\, which left its marker
def test_a_foreground_session_asks_too_escapes_its_question_and_leaves_nothing(project, prompting, key):
    asking = prompting(text="A=?x\x1b[2J\u202ey\x07\x9b1m\n".encode(), until=b": ")  # invariant 10
    assert b"x\\x1b[2J\\u202ey\\x07\\x9b1m: " in asking.said
    asking.type(b"x\n")
    asking.seen(b"ready: 1 variable")
    assert asking.restored() and project.dump() == {b"A": b"x"}
    asking.type(key)
    assert (asking.ended() == 0 or key != b"\x03") and asking.restored() and project.files() == ["r/hotenv"]


@pytest.mark.parametrize("how, number", [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT), (None, signal.SIGTERM),
                                         (None, signal.SIGHUP)])
def test_signals_while_asking_leave_nothing_and_restore_the_terminal(project, prompting, how, number):
    asking = prompting("--background", text=b"A=?First\nB=?Second\n")
    asking.type(b"s3cr3t\n")
    asking.seen(b"Second: ")
    assert not asking.echoes()
    asking.type(b"half" + how) if how else os.kill(asking.pid(), number)
    assert asking.ended() == -number and asking.restored() and project.files() == []
    asking = prompting("--background")
    pid = asking.pid()
    for each in (number, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):  # and many at once
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, each)
    assert asking.ended() < 0 and asking.restored() and project.files() == []


def test_a_stop_and_a_refusal_restore_the_terminal_and_a_continue_asks_again_without_echo(project, prompting):
    asking = prompting("--background", text=b"A=?First\nB=${A:?}\n")
    asking.type(b"\n")
    assert asking.ended() == 7 and asking.restored() and project.files() == []
    asking = prompting("--background")
    for _ in range(2):
        asking.type(b"ha\x1a")
        assert asking.ended() in (-signal.SIGTSTP, -signal.SIGSTOP) and asking.restored() and project.files() == []
        asking.type(b"fg\n")
        asking.seen(b"First: ")
        assert not asking.echoes()
    asking.type(b"\xff\xfe\n")  # arrives to the byte, and its session survives the terminal
    assert asking.ended() == 0 and asking.restored()
    server = project.server_pid()
    assert os.getsid(server) == server
    prompting.hang_up()
    assert project.dump() == {b"A": b"\xff\xfe"} and project.run("printenv", "A").stdout == b"\xff\xfe\n"
    done = project.hotenv("dump", "--format", "dotenv")
    assert " A" in refusal(done, 2) and done.stdout == b""  # text alone goes through a dotenv file


@pytest.mark.parametrize("options, talks", [([], True), (["--quiet"], False)], ids=str)
def test_what_is_typed_into_serve_is_not_shown_and_it_says_when_it_is_ready(project, options, talks):
    with on_terminal(*project.command(["serve", *options]), cwd=project.dir, env=project.env) as (pid, terminal):
        hint = read_until(terminal, b"^hotenv: .*Ctrl-D[^\n]*\n")
        warned = re.search(rb"see|show|visible", hint)
        until(lambda: warned or not termios.tcgetattr(terminal)[3] & termios.ECHO, "a warning, or no echo")
        os.write(terminal, b"A=s3cr3t\nB=2\n\x04")
        until(project.marker.exists, "a marker")
        assert termios.tcgetattr(terminal)[3] & termios.ECHO  # it is the user's again
        shown = hint
        if talks:
            shown += read_until(terminal, rb"hotenv: session [0-9a-f]{8} ready: 2 variables, idle timeout 5m")
        project.ask()
        shown += read_until(terminal, b"dump -\r\n") if talks else b""
        os.write(terminal, b"\x03")
        shown += read_until(terminal)
        assert os.waitpid(pid, 0)[1] == 0 and (talks or b"ready" not in shown)
        assert b"s3cr3t" not in shown or warned


# ==== formats =========================================================================================================
# How an environment is printed: what each format carries, and what it refuses.


def side_by_side(rows, check, at_once=2):
    """check(row) of every row, some at once: what fails is told with its row, and so is what must be skipped."""
    def tried(row):
        try:
            return check(row)
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
            return row, error
    with ThreadPoolExecutor(at_once) as pool:
        told = [each for each in pool.map(tried, rows) if each]
    wrong = [each for each in told if not isinstance(each[1], pytest.skip.Exception)]
    assert not wrong, "\n".join("%r: %r" % each for each in wrong)
    if told:
        pytest.skip("; ".join("%r: %s" % each for each in told))


def called(project, *args, env=None, input=b"", cwd=None):
    """The program as its console script starts it, in a fork of ours, without the time that a start takes."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(input), stdin.seek(0)
        child = os.fork()
        if not child:
            try:
                for number, stream in enumerate((stdin, stdout, stderr)):
                    os.dup2(stream.fileno(), number)
                os.setsid()
                os.chdir(str(cwd or project.dir)), os.environ.clear()
                os.environ.update({**project.env, **(env or {})})
                signal.alarm(0)
                sys.argv, sys.stdout = ["hotenv", *args], open(1, "w")
                sys.stderr = open(2, "w", errors="backslashreplace")
                status = hotenv.main(list(args))
                sys.stdout.flush(), sys.stderr.flush()
                os._exit(status)
            finally:
                os._exit(99)
        status = os.waitpid(child, 0)[1]
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return subprocess.CompletedProcess(args, code, *[(each.seek(0), each.read())[1] for each in (stdout, stderr)])


def outcome(done):
    return done.returncode, done.stdout, done.stderr


def test_dump_prints_names_and_values_a_full_disk_is_8_and_a_closed_pipe_is_no_error(project):
    long = b"x" * 200000
    project.serve("A=1\nB='two\nlines'\nEMPTY=\nC=\u00e9\nA=2\nLONG=".encode() + long)
    for options in ([], ["--format", "plain"]):
        shown = called(project, "dump", *options).stdout
        assert shown == "A=2\nB=two\nlines\nEMPTY=\nC=\u00e9\nLONG=".encode() + long + b"\n"
    for name, value in (("A", b"2"), ("B", b"two\nlines"), ("EMPTY", b""), ("C", b"\xc3\xa9")):  # for --password-stdin
        assert outcome(called(project, "dump", "--only", name, "--format", "value")) == (0, value, b"")
    for options in ([], ["--only", "A,B"], ["--only", "*"]):  # which value is that?
        done = called(project, "dump", *options, "--format", "value")
        assert "--only" in refusal(done, 2) and done.stdout == b""
    assert called(project, "dump", "--only", "A, E*").stdout == b"A=2\nEMPTY=\n"
    for wrong in ("X", "A,X", "", "A,,B", "Z*", "\x1b"):
        refusal(called(project, "dump", "--only", wrong), 2)
    plain, project.program = project.program, ["sh", "-c", '"$@" | head -c 1', "sh", *project.program]
    assert outcome(project.hotenv("dump"))[1:] == (b"A", b"")
    project.program = plain
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            refusal(project.hotenv("dump", stdout=full), 8)


ODD_PIECES = ["'", '"', "\\", "`", "$", "${", "${A}", "$(", "}", "#", " #", "\n", "\r", "\r\n", "\t", "\v", "\f",
              "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff", "\x1b[31m", "=", " ", "export ", "?", "!", "~",
              "*", "%", "a", "Zz", "0", "\u00e9", "\u20ac", "\U0001f511", "\x7f", *map(chr, range(1, 32))]


@pytest.fixture(scope="module")
def odd():
    """A session with whatever a value may hold."""
    def quoted(value):  # in another way than hotenv's own
        for plain, escape in (("\\", "\\\\"), ('"', '\\"'), ("\r", "\\r"), ("${", "\\${")):
            value = value.replace(plain, escape)
        return '"%s"' % value
    dice = random.Random(SEED)
    values = ["", "-n", "?ask", "\\r\r'\\'", "  lead and trail  ", *ODD_PIECES, *[each * 2 for each in ODD_PIECES],
              *["x" + each for each in ODD_PIECES], *[each + "x" for each in ODD_PIECES]]
    while len(values) < amount(8000):
        values.append("".join(dice.choice(ODD_PIECES) for _ in range(dice.randrange(1, 12))))
    values = {"V%d" % number: value for number, value in enumerate(values)}
    for shared in standing("".join("%s=%s\n" % (name, quoted(value)) for name, value in values.items()).encode()):
        shared.values = values
        assert json.loads(shared.ask().decode())["env"] == values
        yield shared


def dumped(project, form, *options):
    done = called(project, "dump", "--format", form, *options)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    return done.stdout


def test_json_nul_names_plain_and_dotenv_carry_everything_back_here_and_to_python_dotenv(odd, project):
    assert json.loads(dumped(odd, "json").decode()) == odd.values
    pairs = "".join("%s=%s\0" % pair for pair in odd.values.items())
    assert dumped(odd, "nul") == pairs.encode() and dumped(odd, "names").decode().split("\n") == [*odd.values, ""]
    assert dumped(odd, "plain") == pairs.replace("\0", "\n").encode()
    text = dumped(odd, "dotenv")
    assert hotenv.parse_dotenv(text, {"A": "host"}) == odd.values
    project.serve(text)
    assert json.loads(project.ask().decode())["env"] == odd.values
    dotenv = python_dotenv()
    plain = {name: value for name, value in odd.values.items() if "${" not in value or "\r" not in value}
    found = dotenv.dotenv_values(stream=io.StringIO(text.decode(), newline=""), interpolate=False)
    assert {name: found.get(name) for name in plain} == plain


def shells():
    """Those that are there, each once: sh is one of the others, as a rule."""
    found = {}
    for name in ("sh", "dash", "bash", "zsh"):
        path = shutil.which(name)
        found.setdefault(path and os.path.realpath(path) or name, (name, path))
    return [pytest.param(name, marks=[] if path else pytest.mark.skip(reason="there is no %s here" % name))
            for name, path in found.values()]


def evaluated(project, shell, text):
    (project.root / "eval").write_bytes(text)
    script = 'eval "$(cat "$1")" && exec %s -0' % ENV
    done = subprocess.run([shell, *["-f"][:shell == "zsh"], "-c", script, shell, str(project.root / "eval")],
                          stdout=PIPE, stderr=PIPE, timeout=PATIENCE,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "A": "not this"})
    return environment_of(done)


NAMES = {"sh": "set | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'", "bash": "compgen -v; compgen -k; compgen -b",
    "zsh": "for m in parameter complist computil datetime files mapfile mathfunc net/socket net/tcp sched stat system "
           "terminfo termcap watch zftp zle zleparameter zprof zpty zselect; do zmodload zsh/$m 2>/dev/null; done; "
           "print -l ${(k)parameters} ${(k)builtins} ${(k)reswords}"}
# What sh, bash or zsh hold read-only, keep for themselves, or take as a number or a list: found by trying.
SHELLS_OWN = set("""ARGC ARGV0 BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_LINENO
    BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO COLUMNS DIRSTACK EGID EPOCHREALTIME EPOCHSECONDS ERRNO EUID FUNCNAME
    FUNCNEST GID GROUPS HISTCHARS HISTCMD HISTSIZE KEYBOARD_HACK KEYTIMEOUT LINENO LINES LISTMAX MAILCHECK OPTIND
    PIPESTATUS PPID RANDOM SAVEHIST SECONDS SHELLOPTS SHLVL SRANDOM TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID
    USERNAME WATCH ZLE_RPROMPT_INDENT ZSH_EVAL_CONTEXT ZSH_SUBSHELL _ aliases argv builtins cdpath commands dirstack
    dis_aliases dis_builtins dis_functions dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases
    fignore fpath funcfiletrace funcsourcetrace funcstack functions functions_source functrace galiases histchars
    history historywords jobdirs jobstates jobtexts keymaps mailpath manpath module_path modules nameddirs options
    parameters patchars path pipestatus psvar reswords saliases signals status termcap terminfo userdirs usergroups
    watch widgets zsh_eval_context zsh_scheduled_events""".split())
OTHERS_KNOWN = """IFS PS1 PS2 PS3 PS4 HOME ENV BASH_ENV MAIL MAILPATH CDPATH OPTARG OPTERR PWD OLDPWD TERM LANG
    LC_CTYPE TMOUT HISTFILE HISTFILESIZE HISTCONTROL HISTIGNORE FCEDIT EDITOR VISUAL POSIXLY_CORRECT REPLY ZDOTDIR
    FPATH MANPATH PROMPT PROMPT2 prompt NULLCMD READNULLCMD TZ IGNOREEOF INPUTRC GLOBIGNORE EXECIGNORE TIMEFORMAT
    COMP_WORDS COMPREPLY COPROC MAPFILE HOSTFILE NODE_OPTIONS LD_LIBRARY_PATH A a _1 __ Z9_ x if for do done""".split()


@pytest.mark.parametrize("shell", shells())
def test_sh_carries_every_value_and_every_name_but_those_that_a_shell_keeps_for_itself(odd, project, answerer, shell):
    found = evaluated(project, shell, dumped(odd, "sh"))
    assert {name: found.get(name.encode()) for name in odd.values} == {
        name: value.encode() for name, value in odd.values.items()}
    listed = subprocess.check_output([shell, *["-f"][:shell == "zsh"], "-c", NAMES.get(shell, NAMES["sh"])])
    names = {*listed.decode().split(), *OTHERS_KNOWN, *map(chr, range(65, 91)), *map(chr, range(97, 123))}
    names = {name for name in names if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)} - SHELLS_OWN - {"PATH", "LC_ALL"}
    env = {name: "17 'x' $y " + name for name in sorted(names)}
    asked = answerer(json.dumps({"env": env}).encode() + b"\n").path
    found = evaluated(project, shell, dumped(project, "sh", "--socket", asked) + b"hash -r 2>/dev/null || :\n")
    assert {name: found.get(name.encode()) for name in env} == {name: value.encode() for name, value in env.items()}


# A server of ours makes no such names; another implementation may.
UNCARRIED = [("sh", name) for name in (*sorted(SHELLS_OWN), "a.b", "c-d", "1E", "a b", "\u00c9", "A;echo")]
ODD = [("sh", "PIPESTATUS"), ("sh", "ARGV0"), ("sh", "ZLE_RPROMPT_INDENT"), ("dotenv", "a b"), ("dotenv", "\u00e9"),
       ("dotenv", "A\nB"), ("dotenv", "A", "\udcff"), ("json", "A", "\udcff"), ("names", "A\nB")]


def test_what_a_format_cannot_carry_is_refused_by_name(project, answerer):
    server, some = answerer(), random.Random(SEED).sample(UNCARRIED, min(amount(300), len(UNCARRIED)))
    for form, name, *end in some + ODD:
        server.response = json.dumps({"env": {"FINE": "s3cr3t", name: "".join(["s3cr3t", *end])}}).encode() + b"\n"
        done = called(project, "dump", "--format", form, "--socket", server.path)
        message, shown = refusal(done, 2), name.replace("\n", "\\n")
        assert shown in message and form in message and "s3cr3t" not in message and done.stdout == b"", (form, name)
    found = called(project, "dump", "--format", "nul", "--socket", server.path)  # carries them all
    assert environment_of(found) == {b"FINE": b"s3cr3t", b"A\nB": b"s3cr3t"}


# ==== daily use =======================================================================================================
# status, stop, other sockets, the background, shellenv and a vendored copy.


def status_of(project, *options, code=0, **more):
    done = called(project, "status", "--json", *options, **more)
    assert done.returncode == code and bool(code) == bool(done.stderr), done.stderr
    return json.loads(done.stdout.decode())


def test_status_and_stop_of_a_live_session_which_is_asked_nothing_a_dead_one_and_none(project):
    server = project.serve(b"A=s3cr3t\n", "--timeout", "5m", stderr=PIPE)
    (project.dir / "below").mkdir()
    ends, path, marker = project.ends_at(), project.socket_path(), str(project.marker)
    found = status_of(project, cwd=project.dir / "below")
    assert {**found, "live": True, "socket": path, "marker": marker, "pid": server.pid, "ends": ends} == found
    assert abs(found["since"] - time.time()) < PATIENCE and 270 < ends - time.time() <= 300
    shown = called(project, "status").stdout.decode()
    assert shown.startswith("live\n") and "s3cr3t" not in shown
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ends))
    assert all(re.search(piece, shown) for piece in (path, marker, r"pid +%d\n" % server.pid, moment + ", in 4m"))
    assert project.ends_at() == ends  # the timer runs on
    assert project.run("true").returncode == 0 and project.ends_at() > ends
    assert ended(server, signal.SIGTERM) == 0
    assert server.stderr.read().decode().split()[2:] == ["run", "true"]  # and that is all there is in the log
    assert "serve <" in refusal(called(project, "status"), 3) and status_of(project, code=3)["live"] is False
    refusal(called(project, "stop"), 3)
    project.serve().kill()
    path, before = project.socket_path(), project.files()
    until(lambda: not project.dump(), "its end")
    assert path in refusal(called(project, "status"), 4) and "--force" in refusal(called(project, "stop"), 4)
    found = status_of(project, code=4)
    assert (found["live"], found["socket"], found["marker"], found["pid"]) == (False, path, str(project.marker), None)
    assert project.files() == before
    project.serve(b"A=2\n", "--force")
    assert project.dump() == {b"A": b"2"} and not os.path.exists(path)
    for code, options in ((0, {}), (3, {"cwd": "/"}), (4, {"env": {"HOTENV_SOCKET": path}})):
        assert outcome(called(project, "status", "-q", **options)) == (code, b"", b"")


def test_status_and_stop_of_a_named_socket_or_the_nearest_and_serve_heeds_none_and_stop_ends_no_other(project, daily):
    path = daily.socket_path()
    for named in (lambda path: (["--socket", path], {}), lambda path: ([], {"HOTENV_SOCKET": path})):
        server = project.serve(b"A=1\n", env={"HOTENV_SOCKET": path})
        assert project.dump(env={"HOTENV_SOCKET": ""}) == {b"A": b"1"}  # empty is unset
        found = status_of(project, *named(path)[0], env=named(path)[1])  # shows no marker of another session
        assert found == {**found, "live": True, "socket": path, "marker": str(daily.marker), "pid": daily.server_pid(),
                         "ends": os.stat(path).st_mtime}
        words, env = named(project.socket_path())
        assert called(project, "stop", *words, env=env, cwd="/").returncode == 0
        assert ended(server) == 0 and project.files() == ["r/hotenv"]
    below = project.dir / "a" / "b"
    below.mkdir(parents=True)
    outer = project.serve(b"A=outer\n")
    assert called(project, "serve", "--background", input=b"A=inner\n", cwd=below.parent).returncode == 0
    assert outcome(called(project, "stop", cwd=below)) == (0, b"", b"")
    assert project.dump(cwd=str(below)) == {b"A": b"outer"} and daily.dump() == SNAPSHOT
    (project.root / "link").symlink_to(project.socket_path())
    assert called(project, "stop", "--socket", str(project.root / "link")).returncode == 0
    assert ended(outer) == 0 and project.files() == ["p/a", "p/a/b", "r/hotenv"]


def strangers(project, owner=None):
    """project.for_strangers, started from the compiled file."""
    as_them, (python, file) = project.for_strangers(owner), project.program
    py_compile.compile(file)
    (project.root / "__pycache__").chmod(0o755)
    project.program = [python, *[word.replace(str(HERE), str(project.root)) for word in INSTALLED[1:]]]
    return as_them


def test_status_all_lists_and_stop_all_ends_every_session(project):
    """As somebody who has no other: /tmp/hotenv-UID is looked at, too, and `stop --all` means it."""
    uid = STRANGER + 1 if ROOT else os.geteuid()
    if not ROOT and os.path.exists("/tmp/hotenv-%d" % uid):
        pytest.skip("there may be sessions of yours, which this test would end")
    as_them = {"preexec_fn": strangers(project, uid) if ROOT else None}
    def all_of(command, code, *options):
        done = project.hotenv(command, "--all", *options, cwd="/", **as_them)
        assert done.returncode == code and (done.stdout or done.stderr or not code), done.stderr
        return done.stdout.decode()
    for command in ("status", "stop"):
        all_of(command, 3)
    places, servers = [project.dir / name for name in ("here", "lost", "dead")], []
    for place in places:
        place.mkdir(), os.chown(str(place), uid, uid)
        servers.append(project.start("serve", stdin=DEVNULL, cwd=str(place), **as_them))
    until(lambda: all((place / ".hotenv").exists() for place in places), "three sessions")
    paths = [(place / ".hotenv").read_text()[len("socket="):-1] for place in places]
    (places[1] / ".hotenv").unlink()  # git clean
    ended(servers[2], signal.SIGKILL)
    text, found = all_of("status", 0), {each["socket"]: each for each in json.loads(all_of("status", 0, "--json"))}
    assert sorted(found) == sorted(paths) and [found[path]["live"] for path in paths] == [True, True, False]
    assert [found[path]["ends"] for path in paths[:2]] == [os.stat(path).st_mtime for path in paths[:2]]
    assert [found[path]["marker"] for path in paths] == [str(places[0] / ".hotenv"), None, str(places[2] / ".hotenv")]
    assert all(path in text for path in paths) and "dead" in text and len(re.findall("(?m)^live", text)) == 2
    assert str(places[0]) in json.dumps(found[paths[0]]) and str(places[0]) in text
    all_of("stop", 0)
    assert [ended(server) for server in servers[:2]] == [0, 0] and not list(project.base.rglob("*.sock"))
    assert not list(project.dir.rglob(".hotenv"))  # nor what a kill -9 had left


@only_linux
@pytest.mark.parametrize("name", ["python3", "ssh", "hotenv2"])
def test_stop_spares_a_process_that_is_not_ours(project, name):
    project.points_at(project.root / "fake.sock")
    fake = subprocess.Popen([sys.executable, "-c", """if 1:
        import socket, sys, time
        open("/proc/self/comm", "w").write(sys.argv[2])
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(sys.argv[1])
        listener.listen(16)
        print("up", flush=True)
        time.sleep(1000)""", project.socket_path(), name], stdout=PIPE)
    project.started.append(fake)
    assert fake.stdout.readline() == b"up\n"
    message = refusal(called(project, "stop"), 8)
    assert "forwarded" in message and "where the session was started" in message
    assert re.search("forwarded|unknown", called(project, "status").stdout.decode())
    assert fake.poll() is None and project.marker.exists()


@only_linux
@only_root
def test_stop_from_another_pid_namespace_signals_nobody(project):
    if subprocess.run(["unshare", "-pf", "true"], stderr=DEVNULL).returncode:
        pytest.skip("needs pid namespaces")
    server, project.program = project.serve(), ["unshare", "-pf", *project.program]
    assert "another pid namespace" in refusal(project.hotenv("stop"), 8) and server.poll() is None


@only_root
def test_a_session_of_another_user_is_believed_by_its_number(project):
    stranger = strangers(project, STRANGER)
    server, path = project.serve(preexec_fn=stranger), project.socket_path()
    for command in ("dump", "status", "stop"):
        done = called(project, command, "--socket", path)
        assert "--peer-uid %d" % STRANGER in refusal(done, 9) and done.stdout == b""
        message = refusal(called(project, command), 8)  # the marker is a stranger's too
        assert "--socket" in message and "--peer-uid" in message
    believed = ["--socket", path, "--peer-uid", str(STRANGER)]
    assert project.dump(*believed) == {b"A": b"1"} and status_of(project, *believed)["pid"] == server.pid
    assert called(project, "stop", *believed).returncode == 0 and ended(server) == 0 and not os.path.exists(path)
    os.chown(str(project.base), 0, 0)
    server = project.serve(b"A=2\n", env={"XDG_RUNTIME_DIR": str(project.root / "ours")})
    for part, mode in ("ours", 0o755), ("ours/hotenv", 0o755), (project.socket_path(), 0o666):
        (project.root / part).chmod(mode)
    done = project.hotenv("stop", "--socket", project.socket_path(), "--peer-uid", "0", preexec_fn=stranger)
    assert refusal(done, 8) and server.poll() is None
    os.chown(str(project.dir), 0, 0)
    project.marker.unlink()  # and a read-only project is told where else to serve
    message = refusal(project.hotenv("serve", input=b"A=1\n", preexec_fn=stranger), 8)
    assert re.search("above|other|else|HOTENV_SOCKET|--socket", message), message


def test_background_returns_when_requests_are_accepted_and_holds_nothing_of_its_caller(project):
    with open(str(project.root / "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for attempt in range(amount(60)):
            words, options = ["serve", "--background", "--force"], {"pass_fds": [lock.fileno()]}
            assert outcome(project.hotenv(*words, input=b"A=%d\n" % attempt, **options)) == (0, b"", b"")
            assert b'"A":"%d"' % attempt in project.ask()  # at once; and its caller's pipes were not kept open
            server = project.server_pid()
            assert os.getsid(server) == server  # of its own: no terminal's hang-up reaches it
            if LINUX:
                assert Path("/proc/%d/comm" % server).read_text() == "hotenv\n"
                assert not ROOT or os.readlink("/proc/%d/cwd" % server) == "/"
    with open(str(project.root / "lock")) as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert "still answers" in refusal(project.hotenv("serve", "--background", input=b"A=new\n"), 10)


def planted(path, kind):
    """What is no file, or leads to another one."""
    if "link" in kind:
        path.symlink_to("target")
    if kind == "link":
        path.with_name("target").write_bytes(b"precious\n")
    if "fifo" in kind:
        os.mkfifo(str(path))
    if kind == "directory":
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "dangling link", "fifo", "fifo with a reader", "directory", "runtime",
                                  "missing/log", "/dev/null"])
def test_a_log_goes_to_a_file_alone_and_a_start_that_fails_says_why_and_leaves_none(project, kind):
    planted(project.dir / "log", kind) if kind != "runtime" else project.runtime.symlink_to("/tmp")  # which fails late
    reader = os.open(str(project.dir / "log"), os.O_RDONLY | os.O_NONBLOCK) if "reader" in kind else None
    before, log = project.files(), kind if "/" in kind else "log"
    refusal(project.hotenv("serve", "--background", "--log", log, input=b"A=1\n"), 8)
    assert project.files() == before and (kind != "link" or (project.dir / "target").read_bytes() == b"precious\n")
    if reader is not None:
        os.close(reader)


@pytest.mark.parametrize("mask, before", [(0, b"before\n"), (0o777, None)])
def test_the_log_of_a_background_session_is_private_and_holds_requests_alone(project, mask, before):
    log = project.dir / "a log"
    if before:
        log.write_bytes(before), log.chmod(0o666)
    command = project.command(["serve", "--background", "--verbose", "--log", "a log"])
    start = 'umask %o; exec "$@"' % mask
    with on_terminal("sh", "-c", start, "sh", *command, cwd=project.dir, env=project.env) as (pid, terminal):
        read_until(terminal, b"Ctrl-D"), os.write(terminal, b"A=1\n\x04")
        assert os.waitpid(pid, 0)[1] == 0
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert project.run("echo", "x y").stdout == b"x y\n" and project.hotenv("stop").returncode == 0
    assert re.fullmatch((before or b"") + rb"\S+ \S+ run echo x y\n", log.read_bytes())


def through_shellenv(shell, file, script, *args, env):
    start = 'eval "$("$1" "$2" shellenv)" || exit 99\nshift 2\n' + script
    return subprocess.run([shell, *["-f"][:shell == "zsh"], "-uc", start, shell, sys.executable, str(file), *args],
                          stdout=PIPE, stderr=PIPE, env=env, timeout=PATIENCE, cwd="/")


@pytest.mark.parametrize("shell", shells())
def test_shellenv_defines_a_function_that_runs_this_very_file_compiled_and_isolated(project, daily, shell):
    tools = project.root / "it's a \"dir\" $HOME `x` \\ \u00e9"
    tools.mkdir()
    (tools / "c.py").write_text("import sys\ndef main():\n    print('compiled', sys.flags.isolated)\n")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # another program, not checked against its source
    py_compile.compile(str(tools / "c.py"), cfile=str(tools / "c.pyc"), invalidation_mode=unchecked)
    done = through_shellenv(shell, shutil.copy(str(HOTENV), str(tools / "hotenv.py")), """
        cd "$1" || exit 98
        hotenv --version
        hotenv run -- printf '<%s>' "a b" '' "it's" '$x' '*' -- --help
        hotenv run -- sh -c 'exit 7'; echo "status $?"
        echo "from stdin" | hotenv run -- cat
        hotenv stop --nonsense; echo "status $?"
        hotenv hermetic --no-network -- echo guarded
        cp "$2"/c.pyc "$2"/__pycache__/hotenv.*.pyc; hotenv
    """, str(daily.dir), str(tools), env=daily.env)
    assert done.stdout.decode() == ("hotenv %s\n<a b><><it's><$x><*><--><--help>status 7\nfrom stdin\nstatus 2\n"
                                    "guarded\ncompiled 1\n" % hotenv.__version__), done.stderr
    assert done.stderr.decode().startswith("hotenv: ") and b"hotenv stop --help" in done.stderr
    text = called(daily, "shellenv", "fish").stdout.decode()  # `hotenv shellenv fish | source`
    assert re.match(r"function hotenv\b", text) and text.endswith("end\n") and "$argv" in text and "@" not in text
    assert called(daily, "shellenv", "zsh").stdout == called(daily, "shellenv").stdout


@pytest.mark.parametrize("name", ["bin/hotenv", "hotenv-1.0.py", "a link/hotenv", "a link/hot.py"])
def test_shellenv_never_runs_a_neighbour(project, name):
    """Installed as ~/bin/hotenv, or by a link: this very file, or a clear refusal."""
    file, real = project.root / name, project.root / "real" / "hotenv.py"
    for place in {file.parent, real.parent}:
        place.mkdir(exist_ok=True)
    (file.parent / "hotenv.py").write_text("def main():\n    print('the neighbour')\n")
    shutil.copy(str(HOTENV), str(real if "link" in name else file))
    if "link" in name:
        file.symlink_to("../real/hotenv.py")
    done = through_shellenv("sh", file, "hotenv --version; hotenv --version", env=project.env)
    assert done.stdout.decode() == "hotenv %s\n" % hotenv.__version__ * 2 or (
        done.stdout == b"" and len(refusal(done, done.returncode or 1)) > 20), done


# ==== command line ====================================================================================================
# What may be typed, what a mistake is answered with, and in which order serve refuses.

COMMANDS = "serve run dump status stop hermetic mcp shellenv".split()
TOPICS = "masking hermetic mcp dotenv sessions".split()


def executable(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)


# What is typed -> a pattern of the one line that answers it, with exit code 2.
MISTAKES = {
    "nonsense": "serve.*run.*dump", "server": r"\bserve\b", "--nonsense": "serve|help", "\x1b[31m\n": "serve|help",
    "start": "hotenv serve", "up": "hotenv serve", "exec ls": "hotenv run -- ls`", "get API_KEY": "dump|status",
    "show": "dump|status", "list": "dump|status", "env": "run -- env", "end": "hotenv stop", "kill": "hotenv stop",
    "down": "hotenv stop", "./here.sh -f": r"run -- \./here\.sh", "/bin/ls": "run -- /bin/ls", "-- env": "run -- env",
    "sh -c ls": "run -- sh", "statsu": "hotenv status", "rnu -- ls": "hotenv run -- ls", "RUN": "hotenv run",
    "./no-such.sh": r"run -- \./no-such\.sh", "exec -- ls -l": "hotenv run -- ls -l", "serve extra": "serve <",
    "serve --nonsense": "--nonsense", "serve -q -v": "not allowed with|-q.*-v",
    "serve --quiet --verbose": "not allowed with|quiet.*verbose", "serve -qv": "not allowed with|-q",
    "serve --time 5": "mean --timeout", "serve --ttl 5": "serve --help", "serve --back": "--back",
    "serve -t": "--timeout|-t", "serve --log x": "--background", "serve --max-age 0": "above 0|366",
    "serve --quiet=yes": "--quiet", "serve --socket /x": "--socket", "run": "run .*-- COMMAND",
    "run --": "run .*-- COMMAND", "run true": "hotenv run -- true$",
    "run --only A env": r"run \[options\] -- COMMAND", "run --opt -- true": "--opt",
    "run --pass X -- true": "--isolated", "run --isolate -- true": "--isolated", "run --masked -- true": "--mask",
    "run --nomask X -- true": "--no-mask", "run --optionl -- true": "--optional", "run --no-mask X -- true": "--mask",
    "run --peer-uid x -- true": "--peer-uid", "run --socket": "-- COMMAND", "run extra -- true": "extra",
    "run --define NO -- true": "NAME=VALUE", "run --define =1 -- true": "NAME=VALUE", "run --bin= -- true": "--bin",
    "run --trace -- true": "guard", "dump --json --format value": "not allowed", "dump extra": "extra",
    "dump --form json": "--form", "dump --format xml": "json", "dump --peer-uid -": "--peer-uid",
    "status --jsn": "--json", "status now": "now", "stop --all --socket /x": "--socket",
    "stop --all --socket ": "--socket", "status --all --socket /x": "--socket", "stop --al": "--al", "stop now": "now",
    "help nonsense": "masking|serve", "mcp --remote web": "NAME=CMD", "mcp extra": "extra",
    "shellenv tcsh": "fish", **{"serve -t " + wrong: "duration.*5m" for wrong in (
        "0", "-1", "367d", "x", "nan", "inf", "1e3", "1m1h", "0x10", "0s", "\u0665", "9" * 5000, "5_m")}}


def test_a_mistake_is_one_line_that_helps_and_2_no_command_prints_the_usage_and_the_program_is_named_as_called(project):
    executable(project.dir / "here.sh", "")
    wrong = []
    for typed, pattern in MISTAKES.items():
        done = called(project, *[word.replace("_", " ") for word in typed.split(" ")], input=b"A=1\n")
        message = refusal(done, 2)
        if not re.search(pattern, message) or len(message) > 1000 and len(typed) < 1000:
            wrong.append((typed, pattern, message))
    assert not wrong and project.files() == ["p/here.sh"]
    for args in (["hermetic", "--nonsense", "--", "x"], ["run"], ["dump"]):
        said = subprocess.run([sys.executable, os.path.relpath(str(HOTENV), str(project.dir)), *args], env=project.env,
                              cwd=str(project.dir), stderr=PIPE, stdin=DEVNULL).stderr.decode()
        assert "hotenv.py " in said and not re.search(r"[`\s]hotenv (run|serve|hermetic)\b", said[8:]), said
    done = called(project)
    assert done.returncode == 2 and done.stdout == b"" and b"usage: " in done.stderr and b"serve" in done.stderr
    # What cannot be run, or is not there, says what to do.
    project.serve(b"TOKEN=1\n")
    executable(project.dir / "orphan", "#!/no/such/python\n")
    executable(project.dir / "plain", "text", 0o644)
    for typed, code, words in (("run -- no-such", 8, "no-such"), ("run -- cd /", 8, "sh -c"), ("run -- echo_$A", 8,
            "sh -c"), ("run -- ll_&&_ls", 8, "sh -c"), ("run -- ./orphan", 8, "/no/such/python"), ("run -- /etc", 8,
            "/etc"), ("run -- ./plain", 8, "ermission"), ("run --only X -- true", 2, "no X"), ("run --only  -- true", 2,
            "on"), ("run --mask --no-mask Z -- true", 2, "no Z"), ("hermetic --no-network -- no-such", 1, "no program"),
            ("dump --only nothing-like-it", 2, "TOKEN"), ("run --socket /x -- true", 4, "without --socket")):
        done = called(project, *[word.replace("_", " ") for word in typed.split(" ")])
        assert words in refusal(done, code) and done.stdout == b"", typed
    with on_terminal(*project.command(["mcp"]), cwd=project.dir, env=project.env) as (pid, terminal):
        assert re.match(rb"hotenv: .*waiting for .*(agent|client|JSON|MCP).*help mcp", read_until(terminal, rb"\n"))


def test_help_fits_a_screen_and_shows_an_example_a_topic_explains_and_version_and_dump_json_are_understood(session):
    for command in (None, *COMMANDS):
        own = [command] if command else []
        ways = [[*own, "--help"], [*own, "-h"], *[["help", *(own or ["--help"])]] * (command not in TOPICS)]
        answers = [called(session, *way, env={"COLUMNS": "100"}) for way in ways]
        assert all((done.returncode, done.stderr) == (0, b"") for done in answers)
        text, = {done.stdout.decode() for done in answers}
        lines = text.splitlines()
        assert 3 <= len(lines) <= 24 and max(map(len, lines)) <= 100
        assert not command or any(command in line for line in lines[lines.index("example:"):])
        assert command or re.search(r"(?is)everyday.*\bserve\b.*\brun\b.*advanced.*\bmcp\b", text)
        assert command or all(name in text for name in (*COMMANDS, "version"))
    for words in (["--version"], ["-V"], ["version"]):
        assert outcome(called(session, *words))[:2] == (0, b"hotenv %s\n" % hotenv.__version__.encode())
    done = called(session, "dump", "--json")
    assert b"--format json" in done.stderr if done.returncode else json.loads(done.stdout.decode())["A"] == "1"
    for topic in TOPICS:
        done = called(session, "help", topic)
        lines = done.stdout.decode().splitlines()
        assert (done.returncode, done.stderr) == (0, b"") and len(lines) >= 5 and max(map(len, lines)) <= 100
        for word in COMMON if topic == "masking" else ():  # which words are nobody's secret is documented
            assert not word.isalpha() or re.search(r"\b%s\b" % word, done.stdout.decode())


def test_durations(project):
    for text, seconds in (("300", 300), ("1h30m", 5400), ("366d", 366 * 86400), (".5h", 1800), ("999.5", 999.5),
                          ("1d2h3m4s", 93784), ("7.m", 420), ("0070", 70)):
        for options in ("-t " + text, "-t 366d --max-age " + text):
            done = called(project, "serve", "--background", "--force", *options.split())
            assert done.returncode == 0 and time.time() + seconds - 10 < project.ends_at() <= time.time() + seconds
    project.ask()
    assert time.time() + seconds - 10 < project.ends_at() <= time.time() + seconds


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling link", "file"])
def test_usage_is_refused_before_a_marker_before_the_input_before_the_system(project, kind):
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "file")
    (project.base / "file").touch()  # so that no runtime directory can be made
    planted(project.marker, kind) if kind != "file" else project.marker.write_bytes(b"socket=/nowhere.sock\n")
    refusal(called(project, "serve", "--timeout", "0", input=b"not dotenv\n"), 2)
    process, writer = project.held()
    message = process.communicate(timeout=PATIENCE)[1]  # it does not wait for the end of stdin
    assert process.returncode == 10 and b"--force" in message and message.count(b"\n") == 1
    assert kind != "file" or b"nobody answers" in message
    os.close(writer)
    os.rmdir(str(project.marker)) if kind == "directory" else project.marker.unlink()
    assert "<stdin>:1:" in refusal(called(project, "serve", input=b"not dotenv\n"), 7)
    refusal(called(project, "serve", input=b"A=1\n"), 8)


def test_nothing_is_created_before_the_input_has_ended_and_then_the_older_session_wins_or_one_of_six(project):
    process, writer = project.held()
    os.write(writer, b"A=1\n" * 20000)  # more than a pipe holds: it is reading
    assert project.files() == []
    server, before = project.serve(b"A=early\n"), project.files()
    os.close(writer)
    message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 10 and message.count(b"\n") == 1
    assert all(each in message for each in (b"still answers", b"stop", b"--force"))
    refusal(called(project, "serve", "--force", input=b"nonsense\n"), 7)
    assert project.files() == before and project.dump() == {b"A": b"early"} and ended(server, signal.SIGTERM) == 0
    # Of six at once exactly one wins.
    started = [project.held() for _ in range(6)]
    for number, (_, writer) in enumerate(started):
        os.write(writer, b"A=%d\n" % number)
    for _, writer in started:
        os.close(writer)
    until(lambda: sum(process.poll() is not None for process, _ in started) == 5, "five losers")
    for number, (process, _) in enumerate(started):
        if process.poll() is None:
            assert project.dump() == {b"A": b"%d" % number} and len(list(project.runtime.glob("*.sock"))) == 1
        else:
            assert process.returncode == 10 and re.fullmatch(rb"hotenv: .*\n", process.stderr.read())


def test_an_empty_stdin_is_an_empty_session_and_stderr_says_so(project):
    for text, close in (None, lambda: os.close(0)), (None, None), (b"", None), (b"\n \n# nothing\n", None):
        before, lines = project.marker_content(), len(project.log_lines())
        if text is None:
            project.wait_ready(project.start("serve", "--force", stdin=DEVNULL, preexec_fn=close), before)
        else:
            project.serve(text, "--force")
        assert project.ask() == b'{"env":{}}\n' and called(project, "dump").stdout == b""
        said = project.log_lines()[lines:]
        assert said[-1].endswith("dump -") and (text or "empty" in said[0]) and project.run("true").returncode == 0


def test_what_cannot_be_read_or_a_signal_ends_creates_nothing_and_no_stderr_is_needed(project):  # invariant 2
    descriptor = os.open(os.devnull, os.O_WRONLY)
    assert "stdin" in refusal(project.hotenv("serve", stdin=descriptor), 8)
    os.close(descriptor)
    big, (process, writer) = b"# " + b"x" * (1 << 20) + b"\n", project.held()
    with contextlib.suppress(BrokenPipeError), open(writer, "wb") as pipe:
        for _ in range(65):
            pipe.write(big)
    assert b"64 MiB" in process.communicate(timeout=PATIENCE)[1] and process.returncode == 7 and project.files() == []
    for words, code in (("run -- true", 3), ("dump", 3), ("serve --nonsense", 2), ("", 2), ("run", 2), ("serve", 7)):
        done = project.hotenv(*words.split(), input=b"nonsense\n", preexec_fn=lambda: os.close(2))
        assert (done.returncode, done.stdout) == (code, b"") and project.files() == []
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT:
        env = {"XDG_RUNTIME_DIR": str(project.base / "new")}
        process, writer = project.held(env=env, preexec_fn=limits(CORE=(0, 0)))
        os.write(writer, b"A=1\n" * 20000)
        assert ended(process, number) == -number and process.stderr.read() == b"" and project.files() == []
        poll = select.poll()
        poll.register(writer, 0)
        assert poll.poll(PATIENCE * 1000)  # nothing of it reads on
        os.close(writer)
    project.env["XDG_RUNTIME_DIR"] = str(project.base / "not" / "there")
    texts = (b"=", b"A", b"A='", b"A=1\nB\n", b"A=${", b"A=\xff", b"A=\0", b"\xff\xfeA\0", b"x" * 100000)
    for options, text in zip(itertools.cycle([[], ["--force"], ["--background"], []]), texts):
        assert re.match(r"<stdin>:\d+:\d+: ", refusal(called(project, "serve", *options, input=text), 7))
        assert project.files() == []


@only_linux
def test_the_process_is_named_and_hardened_before_it_reads_and_lets_go_of_stdin(project):  # invariant 1
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    process = project.start("serve", stdin=theirs)
    theirs.close()
    place = Path("/proc/%d" % process.pid)
    until(lambda: (place / "comm").read_text() == "hotenv\n" and os.stat(str(place / "environ")).st_uid == 0 and
          re.search("core file size +0 ", (place / "limits").read_text()), "its name and its hardening")
    ours.sendall(b"A=s3cr3t-value\n"), ours.shutdown(socket.SHUT_WR)
    project.wait_ready(process)
    assert ours.recv(1) == b""  # whoever holds the other end is not held in turn
    ours.close()
    assert not ROOT or os.readlink(str(place / "fd" / "0")) == "/dev/null"
    for name in ("cmdline", "environ", "comm"):
        with contextlib.suppress(PermissionError):
            assert b"s3cr3t" not in (place / name).read_bytes()
    for name in () if ROOT else ("environ", "mem", "maps"):  # root may read all
        with pytest.raises(PermissionError):
            (place / name).open("rb").read(1)


@pytest.mark.parametrize("options", [["--background"], ["--timeout", "0.1"]], ids=short)
def test_a_program_that_runs_the_script_goes_on_once_and_after_it(project, options):
    project.program = [sys.executable, "-c", """if 1:
        import runpy, subprocess, sys
        sys.argv[0] = sys.argv.pop(1)
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as finished:
            killed = subprocess.run(["sh", "-c", "kill -TERM $$; echo survived"]).returncode
            print("then", finished.code, killed, flush=True)
            sys.exit(5)""", str(HOTENV)]
    assert outcome(project.hotenv("serve", *options, input=b"A=1\n")) == (5, b"then 0 -15\n", b"")
    project.program = INSTALLED
    assert project.dump() == ({b"A": b"1"} if options == ["--background"] else None)
    deaf = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}
    project.program = [sys.executable, "-i", str(HOTENV)]  # whose prompt must not read the secrets
    done = project.hotenv("serve", "--force", *options, input=b"A=s3cr3t\n", **deaf)
    assert b"SystemExit: 0" in done.stderr and b"s3cr3t" not in done.stderr


# ==== the README ======================================================================================================
# Every command in its code blocks runs as written, and shows what it is shown to show; its reference is complete.


def readme_text():
    return (HERE / "README.md").read_text(encoding="utf-8")


def readme_blocks():
    """The code blocks of the README and of `help sessions`: indented by four blanks or fenced, without either."""
    text = re.sub(r"(?ms)^```[^\n]*\n(.*?)^```$", lambda found: "\n" + re.sub("(?m)^", "    ", found[1]), readme_text())
    topic = subprocess.run([*INSTALLED, "help", "sessions"], stdout=PIPE, timeout=PATIENCE).stdout.decode()
    text += "\n" + re.sub(r"(?m)^(\S.*\n)(?= {4})", r"\1\n", topic)
    blocks = re.findall(r"(?m)(?<=\n\n)((?:(?: {4}.*)?\n)+)", text + "\n")
    return [block for block in (re.sub("(?m)^ {4}", "", each).strip("\n") for each in blocks) if block]


README_BLOCKS, README_SECRETS = readme_blocks(), "API_KEY=abc123\nAWS_ID=1\nAWS_KEY=2\nDATABASE_URL=postgres://db/app\n"
# Stand-ins: they do what matters here of what the real ones would do.
STAND_INS = {**dict.fromkeys("pass gpg sops op".split(), "printf '%s'\n" % README_SECRETS.replace("\n", "\\n")),
    **dict.fromkeys("pipx uv watch_file claude".split(), ":\n"), "sudo": 'exec "$@"\n',
    "git": "echo .git/info/exclude\n",
    "python3": 'case "$2" in venv|pytest) ;; *) exec "PYTHON" "$@";; esac\n',
    "hotenv": 'exec %s "$@"\n' % " ".join(map(shlex.quote, INSTALLED)),
    "ssh": 'exec %s -F "$SSH_CONFIG" "$@"\n' % shutil.which("ssh"), "nc": """#!PYTHON
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[2])
client.sendall(sys.stdin.buffer.read())
sys.stdout.buffer.write(client.makefile("rb").read())
""", "pip": """#!PYTHON
import socket, sys
"install" in sys.argv or socket.create_connection(("example.com", 443))
""", "docker": r"""#!PYTHON
import argparse, os, sys
if sys.argv[1] != "run":
    sys.exit(print(sys.stdin.read() and "Login Succeeded"))
parser = argparse.ArgumentParser()
parser.add_argument("--rm", action="store_true")
for option in "-e", "-v":
    parser.add_argument(option, action="append", default=[])
parser.add_argument("image")
told, words = parser.parse_known_args(sys.argv[2:])
env = dict(each.split("=") if "=" in each else (each, os.environ[each]) for each in ["PATH", *told.e])
for outside, inside in [each.split(":")[:2] for each in told.v]:  # a mounted path becomes what is mounted there
    words = [word.replace(inside, outside) for word in words]
    env = {name: value.replace(inside, outside) for name, value in env.items()}
os.execvpe(words[0], words, env)
"""}
SHELL_WORDS = ". : [ alias cd cat chmod cp echo env eval export for if ls mkdir printf set sh test trap".split()
FOREGROUND = re.compile(r"(?:^|[|&;] *)(?:hotenv|python3 (?:-m )?[\w./~-]*hotenv(?:\.py)?) serve\b(?!.*--background)")


class Reader:
    """Somebody who types what the README shows, in a project with scripts of their own."""

    def __init__(self, project, block):
        self.project, self.home, tools = project, project.root / "home", project.root / "bin"
        for place in (tools, "main", "p/tools", "p/.git/info", "p/yourproject/tools", "p/.venv/bin", "home/trusted"):
            (project.root / place).mkdir(parents=True)
        for place in (project.dir, project.dir / "tools", self.home, self.home / "trusted"):
            shutil.copy(str(HOTENV), str(place))
        for name, text in STAND_INS.items():
            text = text.replace("PYTHON", sys.executable)
            executable(tools / name, text if text.startswith("#!") else "#!/bin/sh\n" + text)
        self.env = {**project.env, "PATH": "%s:%s" % (tools, project.env["PATH"]), "HOME": str(self.home),
                    "SSH_AUTH_SOCK": "agent", "USER": "me", "PIP_RETRIES": "0"}
        for name in re.findall(r"\.venv/bin/\w+", block):
            executable(project.dir / name, "#!/bin/sh\n")
        for name in re.findall(r"(?<![\w/-])(?:\./)?([\w-]+\.(?:env(?:\.\w+)*|sh|py))\b", block):  # it names them
            if name != "hotenv.py":
                texts = {"py": "import os; print(os.environ.get('API_KEY', ''))\n",
                         "sh": '#!/bin/sh\n[ "$API_KEY$DATABASE_URL$TOKEN" ] && echo "ran"\n'}
                executable(project.dir / name, texts.get(name.split(".")[-1], README_SECRETS))

    def ready(self, block):
        """A session, where a block needs one and starts none; and the variable SOCKET."""
        if " serve" not in block:
            shown = re.search(r'(?m)^\{"env":(\{.*\})\}$', block)
            pairs = json.loads(shown[1]).items() if shown else ()
            self.project.serve(("".join("%s=%s\n" % pair for pair in pairs) or README_SECRETS).encode())
            shutil.copy(str(self.project.marker), str(self.project.root / "main"))
            self.env["SOCKET"] = self.project.socket_path()

    def types(self, commands, wanted=0):
        lines = []
        for command in commands:
            if FOREGROUND.search(command):  # in another window, so to say
                command = ("[ ! -e .hotenv ] || hotenv stop; { %s\n} >.said 2>&1 & until [ -e .hotenv ] || ! kill -0 "
                           "$! 2>/dev/null; do sleep 0.01; done; [ -e .hotenv ] || { cat .said; wait $!; }" % command)
            lines += ["echo @@@@", command, "status=$?"]
        done = subprocess.run(["bash", "-c", "\n".join([*lines, "exit $status"])], cwd=str(self.project.dir),
                              env=self.env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, timeout=PATIENCE)
        shown = done.stdout.decode().split("@@@@\n")[1:]
        assert wanted in (None, done.returncode) and len(shown) == len(commands), shown
        return shown


def alike(text):
    """Text with its moments, numbers, paths and blanks made the same."""
    for pattern, name in ((r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", "TIME"), (r"\b[0-9a-f]{8}\b", "ID"),
                          (r"(?<![\w/.:])/[\w./~-]+", "PATH"), (r"\b(\d+[dhms]?)+\b", "N")):
        text = re.sub(pattern, name, text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def commands_of(block):
    """[command, what it shows or None where nothing is shown] of a block of commands, None for another one."""
    if block.startswith("$ "):
        parts = [part.split("\n") for part in re.split(r"(?m)^\$ ", block)[1:]]
        ends = [next(n for n, line in enumerate(lines) if not line.endswith("\\")) + 1 for lines in parts]
        return [("\n".join(lines[:end]), "\n".join(lines[end:])) for lines, end in zip(parts, ends)]
    first = re.split(r"[\s;(]", re.sub(r"^(\w+=\S*\s+)*", "", re.sub(r"(?m)^#.*\n", "", block)))[0]
    if first in (*SHELL_WORDS, *STAND_INS) or re.match(r"\w+=\$\(", block):
        return [(command, None) for command in re.split(r"(?<!\\)\n(?![ \t}\n]|fi|done|$)", block)]


@pytest.mark.parametrize("block", README_BLOCKS, ids=short)
def test_what_the_readme_shows_is_so(project, request, block):
    reader, commands = Reader(project, block), commands_of(block)
    if re.match(r"(import|from) hotenv", block):
        reader.ready(block)
        lines = [re.sub(r"^(\w\S*\(.*\)|\S.*?)\s+# ([\[({'\"].*)", r"assert (\1) == (\2)", line)
                 for line in block.split("\n")]
        executable(project.dir / "as_a_module.py", "\n".join(lines))
        reader.types(["python3 as_a_module.py"])
        assert any(line.startswith("assert ") for line in lines)
    elif "\t" in block and re.match(r"[\w.-]+:", block):  # a Makefile: without a session, as in CI, and with one
        executable(project.dir / "Makefile", block + "\n")
        reader.env["TOKEN"] = "from the CI"
        reader.types(["make"]), reader.ready(block)
        reader.types(["make"])
    elif "host$ " in block:
        reader.ready(block)
        reader.env["SSH_CONFIG"] = str(request.getfixturevalue("host").root / "ssh_config")
        far = re.sub("~/|/home/me/", str(project.root) + "/far/", block)
        path = re.search(r"-R (\S+?):", far)[1]
        *ours, last, there = re.split(r"\n(?:host\$ )?", far)
        there = "cd %s; PATH=%s; %s; hotenv status --socket %s; hotenv stop --socket %s; echo stop $?" % (
            project.dir, reader.env["PATH"], there, path, path)
        os.mkdir(str(project.root / "far"))
        for _ in range(2):  # and again, with what the first time left there
            shown = reader.types([*ours, "%s %s" % (last, shlex.quote(there))])[-1]
            assert "ran\n" in shown and re.search("forwarded|unknown", shown) and "stop 8\n" in shown, shown
            assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    elif commands and "--prompt" in block:
        (project.dir / "staging.env").write_text("DB_PASSWORD=?Password\n")
        with on_terminal("bash", "-c", commands[0][0], cwd=project.dir, env=reader.env) as (_, terminal):
            read_until(terminal, b": $")
            os.write(terminal, b"p4ss\n")
            read_until(terminal)  # until it has ended: a session in the background holds no terminal
        assert b"p4ss" in project.dump().values()
    elif commands:
        reader.ready(block)
        wanted = re.search(r"# exit (\d+)", commands[-1][0])
        seen = reader.types([command for command, _ in commands],
                            None if commands[-1][1] else int(wanted[1]) if wanted else 0)
        for (command, expected), said in zip(commands, seen):
            assert not re.search("command not found|usage:|internal error", said), (command, said)
            said = re.sub(r"Traceback[\s\S]*|\[hermetic\] for Python.*\n", "", said)
            pattern = "" if expected is None else re.escape(alike(expected)).replace(re.escape("..."), r"[\s\S]*")
            assert expected is None or re.fullmatch(pattern, alike(said)), (command, said)
    else:
        assert re.search(r"[-=]>|[─│┌└▶►→]|\+--", block) or hotenv.parse_dotenv(block), "what is this? " + block


def test_the_readme_is_short_says_what_surprises_and_names_the_options_and_exit_codes_of_the_program(project):
    text, option = readme_text(), re.compile(r"(?<![\w-])(--[a-z][a-z-]+[a-z]|-[a-zA-Z])(?![\w-])")
    assert len(text.split()) <= 2900 and any("host$ " in block for block in README_BLOCKS)
    assert "pkill hotenv" not in text and "pkel/hotenv" in text and re.search(r"python-dotenv\W+(>=\s*)?1\.2\.3", text)
    assert hotenv.parse_dotenv("A=c2VjcmV0\nc2Vj=\n") == {"A": "c2VjcmV0", "c2Vj": ""}  # a wrapped value without quotes
    told = re.findall(r"(?i)[^.|]*\b(?:wrapped|second line|next line|unquoted)\b[^.|]*", text)
    assert any(re.search(r"\bnames?\b", each) for each in told), "names may hold a piece of a secret: say so"
    helps = {command: called(project, command, "--help").stdout.decode().split("example")[0] for command in COMMANDS}
    told = option.findall(text + "".join(called(project, "help", topic).stdout.decode() for topic in TOPICS))
    missing = {command: set(option.findall(said)) - {*told, "-h", "--help"} for command, said in helps.items()}
    assert not any(missing.values()), missing
    reference = re.search(r"(?ims)^#+ [^\n]*(?:reference|commands)[^\n]*$(.*?)(?=^## |\Z)", text)[1]
    cells = " ".join(line.split("|")[1] for line in reference.splitlines() if line.startswith("|"))
    shown = set(option.findall(" ".join(re.findall("`([^`]*)`", cells))))
    assert len(shown) > 15 and not shown - {*option.findall("".join(helps.values())), "--version", "-V"}
    codes = {int(code) for code in re.findall(r"(?m)^\|\s*(\d+)\s*\|", text)}
    assert codes == {0, 1} | {value for name, value in vars(hotenv).items() if name.startswith("EXIT_")}


# ==== kernel guards ===================================================================================================
# What Linux refuses to any program, whatever it is written in, and what it leaves alone. Only this machine is a target.

PYENV = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")


FOUND = {}
for path in glob.glob(PYENV + "/3.*/bin/python") + glob.glob("/usr/bin/python3.[0-9]*"):
    version = re.search(r"3\.(\d+)[^/]*(?:/bin/python)?$", path)
    if version and 8 <= int(version[1]) <= 14 and "-config" not in path:
        FOUND.setdefault(int(version[1]), path)
FOUND.setdefault(sys.version_info[1], sys.executable)
PYTHONS = [FOUND[min(FOUND)], FOUND[max(FOUND)]]  # the oldest and the newest of this one and those installed beside it
NET, LOCAL, SUB, IMP = "--no-network", "--no-network --allow-localhost", "--no-subprocess", "--strict-imports"
FS, ANY = "--fs-readonly", "--fs-readonly=/"

# The version of Landlock here; 0 where there is none, or no guard that knows this machine.
LANDLOCK = LINUX and os.uname().machine in ("x86_64", "aarch64", "riscv64") and max(
    0, ctypes.CDLL(None).syscall(444, None, ctypes.c_long(0), 1))
only_kernel = pytest.mark.skipif(LANDLOCK < 4, reason="needs a Linux whose Landlock refuses TCP (6.7)")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A runtime directory of the tests' own; in it a script as pip would write it: what it imports is compiled once."""
    path = str(tmp_path_factory.mktemp("run"))
    os.chmod(path, 0o700)
    Path(path, "installed").write_text("import sys\nsys.path.insert(0, %r)\nimport hotenv\ndel sys.path[0]\n"
                                       "sys.exit(hotenv.main(sys.argv[1:]))\n" % str(HERE))
    return path


def environment(runtime, **more):
    """This environment, without what configures guards or Pythons."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("HERMETIC_", "HOTENV", "PYTHON", "VIRTUAL_ENV"))}
    return dict(env, XDG_RUNTIME_DIR=str(runtime), **more)


def output_of(words, runtime, cwd, env=None, timeout=60, **kwargs):
    return subprocess.run([str(word) for word in words], cwd=str(cwd), env=env or environment(runtime), timeout=timeout,
                          universal_newlines=True, **{"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE, **kwargs})


@pytest.fixture
def hermetic(runtime, tmp_path):
    """hermetic(guards, *target): what a program and its words said; by default in an empty directory."""
    def run(guards, *target, python=sys.executable, cwd=tmp_path, **options):
        words = [python, runtime + "/installed", "hermetic", *guards.split(), "--", *target]
        return output_of(words, runtime, cwd, **options)
    return run


@pytest.fixture
def guarded(hermetic, tmp_path):
    """guarded(guards, code): what the code does in a Python that is started for it, or in hotenv's own process."""
    def run(guards, code, python=PYTHONS[0], mode="bootstrapped", cwd=tmp_path, **options):
        if mode == "bootstrapped":
            return hermetic(guards, python, "-c", code, python=python, cwd=cwd, **options)
        with tempfile.NamedTemporaryFile("w", prefix="target_script", suffix=".py", dir=str(cwd)) as script:
            print(code, file=script, flush=True)  # one for each call: several may share a directory
            return hermetic(guards, script.name, python=python, cwd=cwd, **options)
    return run


class Ears:
    """This machine, listening: what reaches it by TCP or UDP, in words of the transport."""

    def __enter__(self):
        self.tcp, self.udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.tcp.bind(("127.0.0.1", 0))
        self.tcp.listen(50)
        self.port = self.tcp.getsockname()[1]
        try:
            self.udp.bind(("127.0.0.1", self.port))
        except OSError:  # until one port is free for both
            return self.__enter__()
        return self

    def __exit__(self, *_):
        self.tcp.close(), self.udp.close()

    def reached(self):
        heard = []
        for ready in iter(lambda: select.select([self.tcp, self.udp], [], [], 0)[0], []):
            ready[0].accept()[0].close() if ready[0] is self.tcp else self.udp.recv(100)
            heard.append("tcp" if ready[0] is self.tcp else "udp")
        return heard


def c_calls(code):
    """A Python that makes these calls past all that Python knows of them; `to` is our port."""
    return ["{python}", "-c", "import ctypes, os, socket, struct; c = ctypes.CDLL(None, use_errno=True)\n"
            "to = struct.pack('=H', 2) + struct.pack('!H', {port}) + bytes([127, 0, 0, 1]) + bytes(8)\n" + code]


NODE = ("const s = require('net').connect({port}, '127.0.0.1', () => {{ s.end('x', () => process.exit()) }}); "
        "s.on('error', () => {{}})")
NODE_UDP = ("require('dgram').createSocket('udp4').on('error', () => {{}}).send('x', {port}, '127.0.0.1', "
            "() => process.exit())")
PERL = ("use IO::Socket::INET; (IO::Socket::INET->new(PeerAddr => '127.0.0.1:{port}', Proto => '%s') or exit)"
        "->send('x')")
# Guards; what a program can do: reach, change the file `victim`, make `made` (? not by every kernel); the program.
NATIVE = [
    (NET, "tcp", "curl -s -m 1 http://127.0.0.1:{port}/"), (NET, "tcp", "bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'"),
    (NET, "udp", "bash -c 'echo x > /dev/udp/127.0.0.1/{port}'"), (NET, "tcp", ["perl", "-e", PERL % "tcp"]),
    (NET, "udp", ["perl", "-e", PERL % "udp"]), (NET, "tcp", ["node", "-e", NODE]),
    (NET, "udp", ["node", "-e", NODE_UDP]), (SUB, "made", c_calls("c.system(b'echo x > made')")),
    (NET, "tcp", ["sh", "-c", "{python} -I -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"]),
    (NET, "tcp", c_calls("print(c.connect(c.socket(2, 1, 0), to, 16))")),
    (NET, "tcp?", c_calls("print(c.connect(c.socket(2, 1, 262), to, 16))")),  # MPTCP
    (NET, "tcp?", c_calls("print(c.sendto(c.socket(2, 1, 0), b'x', 1, 1 << 29, to, 16))")),  # MSG_FASTOPEN
    (NET, "udp", c_calls("print(c.sendto(c.socket(2, 2, 0), b'x', 1, 0, to, 16))")),
    (NET, "made?", c_calls("r = c.syscall(425, 4, bytes(120)); r < 0 or open('made', 'w')")),  # io_uring
    (SUB, "made", c_calls("c.fork() or open('made', 'w')")), (ANY, "made", "mkdir made"),
    (SUB, "made", "bash -c \"/bin/sh -c 'echo x > made'; (echo x > made)\""),
    (SUB, "made", ["perl", "-e", "exec '/bin/sh', '-c', 'echo x > made'"]),
    (ANY, "made", c_calls("c.creat(b'made', 0o600)")), (ANY, "made", "sh -c 'echo x > made'"),
    (ANY, "made", "ln victim made"), (ANY, "made", "mv victim made"), (ANY, "victim", "sh -c 'echo x >> victim'"),
    (ANY, "victim", "rm -f victim"), (ANY, "victim", "perl -e \"truncate 'victim', 1\""),
    (ANY, "victim", "touch victim"), (ANY, "victim", "chmod 604 victim"), (ANY, "made", ["{python}", "-c",
        "import sqlite3; sqlite3.connect(':memory:').execute(\"ATTACH 'made' AS a\").execute('create table a.t(x)')"]),
    (ANY, "made", ["{python}", "-c", "import readline; readline.write_history_file('made')"]),
    (ANY + " --fs-write dir", "made", "sh -c 'echo x > dir/in && echo x > made'")]


def effects(here, ears):
    status = os.lstat(here / "victim") if (here / "victim").exists() else None
    changed = status is None or status.st_mode & 0o777 != 0o600 or (status.st_mtime, status.st_size) != (1e9, 8)
    return ears.reached() + ["victim"] * changed + ["made"] * os.path.lexists(str(here / "made"))


def native_stage(base, uid=None):
    here = Path(tempfile.mkdtemp(dir=str(base)))
    (here / "dir").mkdir()
    (here / "victim").write_text("precious")
    (here / "victim").chmod(0o600)
    os.utime(str(here / "victim"), (1e9, 1e9))
    for path in (here, here / "dir", here / "victim") if uid else ():
        os.chown(str(path), uid, uid)
    return here


def words_of(program, **meant):
    """The words of a program of these tables; a skip where it is not installed."""
    words = [word.format(**meant) for word in (shlex.split(program) if isinstance(program, str) else program)]
    if not (shutil.which(words[0]) or words[0].startswith("./")):
        pytest.skip(words[0] + " is not installed")
    return words


@only_kernel
@pytest.mark.parametrize("user", [None, pytest.param(STRANGER, marks=only_root)], ids=["us", "a plain user"])
def test_the_kernel_closes_what_no_hook_sees(hermetic, runtime, project, tmp_path, user):
    if user:
        strangers(project)
        for place in [tmp_path, *tmp_path.parents][:3]:
            place.chmod(0o755)
        os.chown(str(project.base), user, user)

    def check(row):
        guards, effect, program = row
        python = project.program[0] if user else random.Random(f"{SEED}{row}").choice(PYTHONS)
        with Ears() as ears:
            words, here = words_of(program, python=python, port=ears.port), native_stage(tmp_path, user)
            if user:
                done = project.hotenv("hermetic", *guards.split(), "--", *words, cwd=str(here), preexec_fn=become(user))
                assert b"hotenv: " not in done.stderr, done.stderr
            else:
                free = native_stage(tmp_path)
                output_of(words, runtime, free)
                assert effect in effects(free, ears) or "?" in effect, "else nothing is shown"
                done = hermetic(guards, *words, python=python, cwd=here)
                assert done.returncode not in (1, 2) or "hotenv" not in done.stderr, done.stderr
            assert effects(here, ears) == [], done.stderr
    side_by_side(NATIVE, check)


SERVER = ("import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.settimeout(20); "
          "print(s.getsockname()[1], flush=True); c = s.accept()[0]; c.sendall(b'served'); c.close()")
POOL = ("import multiprocessing as m, sys\nif __name__ == '__main__':\n  import multiprocessing.shared_memory as s\n"
        "  b = s.SharedMemory(create=True, size=9); b.close(); b.unlink()\n  with m.get_context('fork').Pool(2) as p:\n"
        "    assert p.map(abs, [-1, 2]) == [1, 2]\n  l = m.Lock(); l.acquire(); l.release(); q = m.Queue(); q.put(1)\n"
        "  assert q.get(timeout=20) == 1\n")
ALL = "--no-network --no-subprocess --fs-readonly=/"
HARMLESS = [
    (ANY + " " + NET, ["{python}", "-c", POOL]), (ANY + " " + NET, "git log --oneline -1"), (SUB, "./plain"),
    (ANY + " " + NET, "sh -c 'echo one | cat | grep -q one && echo x > /dev/null'"),
    (ALL, ["{python}", "-c", "import sqlite3, threading as t; n = []\nfor i in range(9): x = t.Thread(target=n.append, "
     "args=(i,)); x.start(); x.join()\nassert len(n) == 9; sqlite3.connect(':memory:').execute('create table t(x)')"]),
    (ALL, ["node", "-e", "require('fs').readFile('victim', (e, d) => process.exit(String(d) === 'precious' ? 0 : 3))"]),
    (NET, "{python} -m pytest -q -p no:cacheprovider test_it.py"),
    (ANY + " --fs-write .", "sh -c 'echo x > a && mv a b && mkdir -p d/e && rm -r d b && chmod 600 victim'"),
    (ANY, "sh -c 'echo x > /dev/null; echo x 2>&1 > /dev/stdout; echo y >&2'"),
    (NET, ["perl", "-e", "use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or exit 3"])]


@only_kernel
def test_the_kernel_leaves_alone_what_a_harmless_program_does(hermetic, tmp_path):
    def check(row):
        guards, program = row
        words, here = words_of(program, python=sys.executable), native_stage(tmp_path)
        (here / "test_it.py").write_text("def test_one(): assert True\n")
        executable(here / "plain", "#!/bin/sh\nexit 0\n")
        if "git" in program:
            for line in "init -q", "add victim", "-c user.name=n -c user.email=e@x commit -qm first":
                subprocess.run(["git", *line.split()], cwd=str(here), check=True, timeout=PATIENCE)
        with tempfile.TemporaryFile() as out:  # redirected, as by a caller
            done = hermetic(guards, *words, cwd=here, stdout=out)
        assert done.returncode == 0, done.stderr
    side_by_side(HARMLESS, check)


@only_kernel
def test_a_program_without_network_may_serve_on_this_machine(runtime, tmp_path):
    for words in [sys.executable, "-c", SERVER], ["sh", "-c", shlex.join([sys.executable, "-Ic", SERVER])]:
        process = subprocess.Popen([sys.executable, str(HOTENV), "hermetic", NET, "--", *words], cwd=str(tmp_path),
                                   env=environment(runtime), stdout=PIPE)
        with process, socket.create_connection(("127.0.0.1", int(process.stdout.readline())), 20) as client:
            assert answer(client) == b"served"
        assert process.returncode == 0


def refusing(calls, error):
    """A preexec_fn that answers these system calls with this error, as a container's profile does."""
    own, prctl = {"x86_64": 157}.get(os.uname().machine, 167), ctypes.CDLL(None, use_errno=True).prctl
    program = [(0x20, 0, 0, 0)]
    if calls == "seccomp":  # prctl(PR_SET_SECCOMP) alone
        program += [(0x15, 0, 3, own), (0x20, 0, 0, 16), (0x15, 0, 1, 22), (0x06, 0, 0, 0x50000 | error)]
    for number in {"landlock": [444, 445, 446], "prctl": [own]}.get(calls, ()):
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error)]
    code = [struct.pack("HBBI", *line) for line in [*program, (0x06, 0, 0, 0x7FFF0000)]]
    buffer = ctypes.create_string_buffer(b"".join(code))
    def apply():
        wanted = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
        if prctl(38, 1, 0, 0, 0) or prctl(22, 2, wanted, 0, 0):
            os._exit(99)
    return apply


@only_kernel
def test_where_the_kernel_refuses_a_python_has_its_hook_and_another_program_is_refused(hermetic, guarded, tmp_path):
    def check(row):
        python, here = random.Random(f"{SEED}{row}").choice(PYTHONS), native_stage(tmp_path)
        outside = {"python": python, "cwd": here, "preexec_fn": refusing(*row)}
        code = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
        done = guarded("--no-network --fs-readonly=/ --trace", code, **outside)
        assert done.returncode == 2 and "blocked socket.create_connection" in done.stderr, done.stderr
        assert done.stderr.count("[hermetic] for Python code only: fs-readonly, no-network\n") == 1, done.stderr
        done = hermetic(ANY, "touch", "victim", **outside)
        assert done.returncode == 1 and re.match("hotenv: .*--fs-readonly", done.stderr), done.stderr
        with Ears() as ears:
            hermetic(NET, "bash", "-c", f"echo x > /dev/tcp/127.0.0.1/{ears.port}", **outside)
            assert effects(here, ears) == []
    side_by_side(itertools.product(["landlock", "seccomp", "prctl"], [errno.ENOSYS, errno.EPERM]), check)


@only_linux
def test_a_guarded_program_of_any_kind_is_marked_and_cannot_ask_the_session(project):
    project.serve(b"TOKEN=sk-live-51H8sVq0\n")
    ask = ("import os, resource, socket; s = socket.socket(socket.AF_UNIX); s.connect(%r)\n%%s\ns.sendall(%r)\n"
           "print(s.recv(9999))" % (project.socket_path(), DUMP))
    sign = ("import resource as r; print(r.getrlimit(r.RLIMIT_MSGQUEUE)[1] % 4096, *[line.split()[1] for line in "
            "open('/proc/self/status') if line.startswith(('NoNewPrivs', 'Seccomp:'))])")
    asks = [ask % "", ask % "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))",  # as su does
            ask % "pid = os.getpid()\nif os.fork(): os._exit(0)\nwhile os.path.exists('/proc/%d' % pid): pass"]
    lose = "import os, sys; os.execv('/bin/sh', ['sh', '-c', 'env -i $0 -Ic \"$1\"; :', sys.executable, %r])"
    env, known = environment(project.base), b"1117 1 2\n" if LANDLOCK else b"1117"
    assert "sk-live" in output_of([sys.executable, "-c", lose % asks[0]], project.base, project.dir).stdout
    for guards in (NET, SUB, ANY, IMP, LOCAL, NET + " --mask"):
        for code in (sign, *asks):
            done = project.hotenv("run", *guards.split(), "--", sys.executable, "-c", lose % code, env=env)
            silent = guards == SUB or "mask" in guards and code is asks[2]  # which speaks after the command's end
            expected = known if code is sign else b"b'{\"error\":\"BAD_REQUEST\""
            assert done.stdout.startswith(b"" if silent else expected) and b"sk-live" not in done.stdout, done
        low = project.hotenv("run", *guards.split(), "--", "true", env=env, preexec_fn=limits(MSGQUEUE=(1000, 1000)))
        assert "ulimit -q" in refusal(low, 1)  # too low to be marked
    wanted = "echo x > ${PYTHONPATH%%:*}/__pycache__/x"  # what a guarded Python imports is closed to the guarded
    assert project.hotenv("run", ANY, "--", "sh", "-c", wanted, env=env).returncode or not LANDLOCK


@only_kernel
@only_root
def test_the_guarded_are_told_where_they_have_another_group_or_their_pid_is_anothers_by_now(project):
    server = project.serve(preexec_fn=project.for_strangers(STRANGER))
    dump, last = ["sh", "-c", '"$0" -I "$1" dump', *project.program], Path("/proc/sys/kernel/ns_last_pid")
    other = lambda: (os.setgroups([STRANGER]), os.setgid(STRANGER + 1), os.setuid(STRANGER))  # noqa: E731
    for words, said in (dump, "A=1\n"), ([*project.program, "hermetic", NET, "--", *dump], ""):
        assert output_of(words, project.base, project.dir, project.env, preexec_fn=other).stdout == said
    held = os.listdir(f"/proc/{server.pid}/fd")
    with socket.socket(socket.AF_UNIX) as client:
        pid = forked(lambda: limits(MSGQUEUE=(1117, 1117))() and client.connect(project.socket_path()))
        os.waitpid(pid, 0), until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) > len(held), "it to be accepted")
        for _ in range(20 if os.access(str(last), os.W_OK) else 0):
            last.write_text(str(pid - 1))
            project.started.append(subprocess.Popen(["sleep", "60"]))
            if project.started[-1].pid == pid:
                break
        client.sendall(DUMP)
        assert answer(client).startswith(BAD_REQUEST)


# ==== hermetic ========================================================================================================
# What guarded Python programs may do. One line, one action, each in a process of its own.

CONNECT = "import socket; socket.create_connection(('0.1.2.3', 80), 0.2)"
CONNECT_BLOCKED = "[hermetic] blocked socket.create_connection host=0.1.2.3 reason=no-network"
GUARDS = {"NET": NET, "LOCAL": LOCAL, "SUB": SUB, "IMP": IMP, "FS": FS, "ANY": ANY}
REASONS = {"NET": "no-network", "SUB": "no-subprocess", "IMP": "strict-imports", "ANY": "fs-readonly"}


def actions(table):
    """[(guards, action, trace)] of a table: guards | action => trace ~~ action ...; imports what an action names."""
    found = []
    for guards, row in [line.split("|", 1) for line in re.sub(r"\n +", " ", table).strip().splitlines()]:
        guards = guards.strip()
        for action, _, trace in [each.strip().partition(" => ") for each in row.split("~~")]:
            names = sorted(set(re.findall(r"(?<![\w.'\"/])([a-z_]\w*)\.(?=\w)", action)))
            action = "".join(f"import {name}; " for name in names if importlib.util.find_spec(name)) + action
            found.append((GUARDS.get(guards, guards), action, trace and trace + " reason=" + REASONS[guards]))
    return found


# guards | the action. `here` is the current directory, with a file `victim`; `outside`, beside it, has a file `old`.
BLOCKED = actions(r"""
NET   | socket.create_connection(("0.1.2.3", 80), 0.2) ~~ socket.create_connection(("example.invalid", 80), 0.2) =>
    socket.create_connection host=example.invalid ~~ socket.create_connection(("localhost", 9), 0.2) ~~
    socket.create_connection(("127.0.0.1", 9), 0.2) ~~ socket.socket().connect(("0.1.2.3", 80)) => socket.connect
    host=0.1.2.3 ~~ socket.socket().connect(("example.invalid", 80)) => socket.connect host=example.invalid ~~
    socket.socket().connect_ex(("0.1.2.3", 80)) ~~ socket.socket().connect_ex(("example.invalid", 80)) ~~
    socket.socket(socket.AF_INET6).connect(("::1", 9)) ~~ socket.socket(2, 2).sendto(b"x", ("0.1.2.3", 9)) ~~
    socket.socket(2, 2).sendto(b"x", 0, ("0.1.2.3", 9)) ~~ socket.socket(2, 2).sendto(b"x", ("example.invalid", 9)) ~~
    socket.socket(2, 2).sendmsg([b"x"], [], 0, ("0.1.2.3", 9)) ~~ socket.socket(2, 2).connect(("0.1.2.3", 9)) ~~
    socket.getaddrinfo("example.invalid", 80) ~~ socket.gethostbyname("example.invalid") ~~
    socket.gethostbyaddr("0.1.2.3") ~~ socket.getnameinfo(("0.1.2.3", 80), 0) ~~ socket.socket().bind(("0.0.0.0", 0)) ~~
    socket.socket().bind(("", 0)) ~~ socket.socket().bind(("example.invalid", 0)) ~~ _socket.socket(2,
    1).connect(("0.1.2.3", 80)) ~~ import urllib.request as u; u.urlopen("http://example.invalid") =>
    socket.create_connection host=example.invalid ~~ smtplib.SMTP("0.1.2.3", timeout=0.2) ~~
    asyncio.run(asyncio.open_connection("0.1.2.3", 80)) ~~ t = threading.Thread(target=lambda:
    socket.create_connection(("0.1.2.3", 80), 0.2)); t.start(); t.join() ~~ pid = os.fork(); pid or
    socket.create_connection(("0.1.2.3", 80), 0.2); import sys; sys.exit(os.waitpid(pid, 0)[1] >> 8) ~~
    sys.modules.pop("_socket", 0); import _socket; _socket.socket(2, 1).connect(("0.1.2.3", 80))
LOCAL | socket.create_connection(("0.1.2.3", 80), 0.2) ~~ socket.create_connection(("169.254.169.254", 80), 0.2,
    ("127.0.0.1", 0)) ~~ socket.create_connection(("128.0.0.1", 80), 0.2, ("127.0.0.1", 0)) ~~
    socket.create_connection(("notlocalhost", 80), 0.2) ~~ socket.create_connection(("localhost.example.invalid", 80),
    0.2) ~~ socket.create_connection(("0.0.0.0", 9), 0.2) ~~ socket.socket(socket.AF_INET6).connect(("::ffff:0.1.2.3",
    80))
--no-network --allow-domain internal | socket.getaddrinfo("metadata.google.internal", 80)
--no-network --allow-domain 254 | socket.create_connection(("169.254.169.254", 80), 0.2, ("127.0.0.1", 0))
--no-network --allow-domain example.invalid | socket.getaddrinfo("example.invalid.evil.test", 80) ~~
    socket.getaddrinfo("notexample.invalid", 80)
--no-network --allow-domain 0.1.2.3 | socket.create_connection(("0.1.2.30", 80), 0.2)
--no-network --allow-domain 2852039166.test | socket.create_connection(("2852039166", 80), 0.2, ("127.0.0.1", 0))
SUB   | subprocess.check_output(["touch", "made"]) => subprocess.check_output argv=['touch','made'] ~~
    subprocess.run(["touch", "made", "x y"]) => subprocess.run argv=['touch','made','x y'] ~~ subprocess.run(["x",
    "--token", "a\0hunter2", "--password=hunter2", "API_KEY=hunter2", "-H", "Authorization: Bearer hunter2",
    "https://me:hunter2@host/", "--verbose", "y"]) => subprocess.run
    argv=['x','--token','***','--password=***','API_KEY=***','-H','Authorization:
    ***','https://***@host/','--verbose','y'] ~~ os.system('x --secret-key "hunter2 hunter2"') => os.system argv=['x
    --secret-key ***'] ~~ subprocess.getoutput("touch made") ~~ subprocess.Popen("touch made", shell=True).wait() =>
    subprocess.Popen argv=['/bin/sh','-c','touch made'] ~~ subprocess.Popen(["touch", "made"], close_fds=False).wait()
    ~~ os.system("touch made") => os.system argv=['touch made'] ~~ os.popen("touch made").read() ~~ os.execv("/bin/sh",
    ["sh", "-c", "touch made"]) ~~ os.execvp("touch", ["touch", "made"]) => os.execvp argv=['touch','made'] ~~
    os.execvpe("touch", ["touch", "made"], dict(os.environ)) ~~ os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", "touch
    made"]) ~~ os.posix_spawn("/bin/sh", ["sh", "-c", "touch made"], os.environ) ~~ os.posix_spawnp("touch", ["touch",
    "made"], os.environ) ~~ posix.execv("/bin/sh", ["sh", "-c", "touch made"]) ~~ os.fork() or os._exit(0) => os.fork ~~
    os.forkpty()[0] or os._exit(0) ~~ pty.spawn(["touch", "made"]) ~~
    asyncio.run(asyncio.create_subprocess_exec("touch", "made")) ~~ import multiprocessing as m;
    m.get_context("spawn").Process(target=print).start() ~~ import multiprocessing as m;
    m.get_context("fork").Process(target=print).start() ~~ import _posixsubprocess, multiprocessing.util as u;
    u.spawnv_passfds(b"/bin/sh", [b"sh", b"-c", b"touch made"], []) ~~ import concurrent.futures as f;
    f.ProcessPoolExecutor(1).submit(print).result(5)
ANY   | open("/nowhere/x", "w") => open path=/nowhere/x ~~ open("/nowhere/x y", "w") => open path='/nowhere/x y' ~~
    open("/nowhere/x\x1b[2J\n\udcff", "w") => open path='/nowhere/x\x1b[2J\n\udcff' ~~ open("made", "w") ~~ open("made",
    "x") ~~ open("victim", "a") ~~ open("victim", "r+") ~~ io.FileIO("made", "w") ~~ pathlib.Path("made").touch() ~~
    pathlib.Path("victim").unlink() ~~ os.open("made", os.O_WRONLY | os.O_CREAT) ~~ os.open("made", os.O_RDONLY |
    os.O_CREAT) ~~ os.open("victim", os.O_WRONLY | os.O_TRUNC) ~~ os.remove("victim") ~~ os.rename("victim", "made") ~~
    os.replace("victim", "made") ~~ os.mkdir("made") ~~ os.makedirs("made/deep") ~~ os.rmdir("dir") ~~ os.link("victim",
    "made") ~~ os.symlink("victim", "made") ~~ os.chmod("victim", 0o600) ~~ os.fchmod(os.open("victim", os.O_RDONLY),
    0o600) ~~ os.chown("victim", -1, -1) ~~ os.utime("victim", (1, 1)) ~~ os.truncate("victim", 0) ~~ hasattr(os,
    "setxattr") and os.setxattr("victim", "user.x", b"x") or open("made", "w") ~~ shutil.copy("victim", "made") ~~
    shutil.move("victim", "made") ~~ shutil.rmtree("dir") ~~ tempfile.mkdtemp(dir=".") ~~ sqlite3.connect("made") ~~
    sqlite3.connect("file:made?mode=rwc", uri=True) ~~ sqlite3.connect(":memory:?made").execute("create table t(x)") ~~
    ssl.create_default_context().keylog_filename = "made" ~~ socket.socket(socket.AF_UNIX).bind("made") ~~
    os.open("/proc/self/fd/%d" % os.open("victim", os.O_RDONLY), os.O_WRONLY)
FS    | [os.open(f, os.O_RDONLY, dir_fd=d)
    for _, _, fs, d in os.fwalk(".") for f in fs if f == "link"] ~~ sqlite3.connect("file:" + outside + "/old?mode=ro",
    uri=True) ~~ sqlite3.connect("file://localhost" + outside + "/old?mode=ro", uri=True) ~~ open("/etc/passwd").read()
    ~~ open(outside + "/old").read() ~~ os.open("/etc/passwd", os.O_RDONLY) ~~ os.listdir("/etc") ~~
    list(os.scandir("/etc")) ~~ pathlib.Path("/etc/passwd").read_text() ~~ open("link").read() ~~ open("../" +
    __import__("os").path.basename(outside) + "/old").read() ~~ open("/proc/self/root/etc/passwd").read()
--fs-readonly=/ --fs-write dir | open("made", "w") ~~ os.symlink(os.path.abspath("victim"), "dir/l"); open("dir/l", "w")
    ~~ os.link("victim", "dir/l") ~~ os.rename("victim", "dir/l")
--fs-readonly=/ --fs-write . | sqlite3.connect("file:" + outside + "/new", uri=True)
IMP   | import ctypes => import module=ctypes ~~ import _ctypes ~~ import cffi ~~ import native_module ~~ import
    importlib.machinery as m; m.ExtensionFileLoader("native_module",
    "native_module.so").create_module(__import__("importlib.util").util.spec_from_file_location("native_module",
    "native_module.so"))
""")

ALLOWED = actions(r"""
NET   | asyncio.run(asyncio.sleep(0)) ~~ a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x" ~~ a, b =
    socket.socketpair(); a.sendmsg([b"x"]); assert b.recv(1) == b"x" ~~ s = socket.socket(socket.AF_UNIX); s.bind("s");
    s.listen(1); c = socket.socket(socket.AF_UNIX); c.connect("s") ~~ s = socket.socket(socket.AF_UNIX,
    socket.SOCK_DGRAM); s.bind("d"); socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "d") ~~ s =
    socket.socket(socket.AF_UNIX); s.bind("\0hotenv-test-%d" % __import__("os").getpid()) ~~
    socket.socket().bind(("127.0.0.1", 0)) ~~ socket.socket().bind(("localhost", 0)) ~~ socket.has_ipv6 and
    socket.socket(socket.AF_INET6).bind(("::1", 0)) ~~ socket.gethostname() ~~ socket.getaddrinfo(None, 80);
    socket.getaddrinfo("127.0.0.1", 80); socket.getaddrinfo("localhost", 80) ~~ import multiprocessing as m;
    m.set_start_method("fork"); l = m.Manager().list([1]); assert l[0] == 1 ~~ assert subprocess.check_output(["echo",
    "x"]) == b"x\n" ~~ import http.server; http.server.HTTPServer(("127.0.0.1", 0),
    http.server.BaseHTTPRequestHandler).server_close() ~~ ssl.create_default_context() ~~ exec("try: import
    uvloop\nexcept ImportError: pass\nelse: raise SystemExit('uvloop was there')") ~~ left_open =
    tempfile.NamedTemporaryFile(dir="dir"); left_open.write(b"x") ~~
    ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO()) ~~ os.mkfifo("fifo"); import socket;
    type("C", (), {"resolve": socket.gethostbyname})().resolve("127.0.0.1") ~~ socket.getfqdn(); exec("try:
    socket.gethostbyname(socket.gethostname())\nexcept socket.gaierror: pass")
SUB   | exec("try: import uvloop\nexcept ImportError: pass\nelse: raise SystemExit('uvloop was there')") ~~ assert
    isinstance(3, subprocess.Popen) is False; subprocess.Popen[bytes] if hasattr(subprocess.Popen, "__class_getitem__")
    else 0 ~~ platform.processor(); platform.platform() ~~ os.close(os.openpty()[0]) ~~ t =
    threading.Thread(target=print); t.start(); t.join() ~~ import concurrent.futures as f; assert
    f.ThreadPoolExecutor(2).submit(int, "3").result() == 3 ~~ open("made", "w").write("x") ~~
    asyncio.run(asyncio.sleep(0))
LOCAL | s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1); socket.create_connection(s.getsockname(), 2) ~~ s =
    socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1); socket.create_connection(("localhost", s.getsockname()[1]),
    2) ~~ s = socket.socket(); s.bind(("127.3.2.1", 0)); s.listen(1); socket.create_connection(s.getsockname(), 2) ~~ s
    = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1); assert socket.socket().connect_ex(s.getsockname()) == 0 ~~
    s = socket.socket(2, 2); s.bind(("127.0.0.1", 0)); socket.socket(2, 2).sendto(b"x", s.getsockname()) ~~ s =
    socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1); asyncio.run(asyncio.open_connection(*s.getsockname())) ~~
    import email.utils, smtplib; email.utils.make_msgid(); smtplib.SMTP()
ANY   | open("/dev/null", "w").write("x") ~~ C = type("C", (), {"open": os.open}); os.close(C().open("victim",
    os.O_RDONLY)) ~~ fd = os.open("victim", os.O_RDONLY); assert isinstance(fd, int); os.fdopen(fd).read() ~~ r, w =
    os.pipe(); open(w, "w").write("x"); assert os.read(r, 1) == b"x" ~~ open("/dev/stderr", "w").write("") ~~
    open("/etc/passwd").read() ~~ sqlite3.connect(":memory:").execute("create table t(x)").execute("insert into t values
    (1)") ~~ sqlite3.connect("file:base.db?mode=ro", uri=True).execute("select * from t").fetchall() ~~
    sqlite3.connect("file:base.db?immutable=1", uri=True).execute("select 1").fetchall() ~~ import plain_module, os;
    assert not os.path.exists("__pycache__") ~~ subprocess.run(["true"], check=True) ~~
    tempfile.SpooledTemporaryFile().write(b"x") ~~ exec("import os\nfor act in os.remove, os.rmdir, os.listdir:\n   
    try: act('missing')" "\n    except FileNotFoundError: pass\n    else: raise SystemExit(3)")
--fs-readonly=/ --fs-write . | pathlib.Path("made").touch(); pathlib.Path("made").write_text("x");
    pathlib.Path("made").unlink()
FS    | open("victim").read(); import os; os.listdir("."); list(os.scandir()) ~~ import json, email, unittest,
    xml.dom.minidom, sqlite3, http.client, mimetypes; mimetypes.guess_type("a.html") ~~ import random, secrets, uuid,
    tempfile, zipfile; random.random(); secrets.token_hex(); uuid.uuid4(); uuid.uuid1() ~~ open("/dev/urandom",
    "rb").read(1); open("/dev/null").read() ~~ import os; os.cpu_count(); p = os.fork(); p or os._exit(not
    open("/proc/self/status").read()); assert not os.waitpid(p, 0)[1] ~~ time.localtime();
    datetime.datetime.now().astimezone() ~~ import encodings.idna, encodings.cp1252; "x".encode("cp1252") ~~
    assert not pathlib.Path("/etc/no-such.conf").exists(); exec("try: open('/etc/no-such.conf')"
    "\nexcept FileNotFoundError: pass\nelse: raise SystemExit(3)") ~~ glob.glob("link/*"); glob.glob("**",
    recursive=True)
--fs-readonly=/ --fs-write dir | open("dir/new", "w").write("x"); os.rename("dir/new", "dir/newer");
    os.remove("dir/newer"); os.mkdir("dir/sub"); os.rmdir("dir/sub") ~~ d = tempfile.mkdtemp(dir="dir"); open(d + "/x",
    "w"); shutil.rmtree(d) ~~ c = sqlite3.connect("dir/x.db"); c.execute("create table t(x)"); c.execute("ATTACH
    'dir/y.db' AS y") ~~ import dbm.dumb; dbm.dumb.open("dir/d", "c").close()
IMP   | import json, decimal, sqlite3, ssl, socket, hashlib, zlib, bz2, select, math, array, _datetime, unicodedata ~~
    import uuid, pickle, asyncio, multiprocessing, subprocess, csv, xml.etree.ElementTree ~~ import plain_module
""")

EITHER = [(python, mode) for python in PYTHONS for mode in ("in-process", "bootstrapped")]


def either(*seed):
    """Every Python in every mode in the long form; else one of them, another one with each seed."""
    return EITHER if FULL else [random.Random("%s%s" % (SEED, seed)).choice(EITHER)]


def stage(base):
    """A directory to act in, and one outside it."""
    here, outside = native_stage(base), Path(tempfile.mkdtemp(dir=str(base)))
    for path, text in ((outside / "old", "old"), (here / "plain_module.py", "x = 1\n"), (here / "uvloop.py", "x = 1\n"),
                       (here / "native_module.so", "\x7fELF, but not really")):
        path.write_text(text)
    (here / "link").symlink_to(outside / "old")
    with contextlib.closing(sqlite3.connect(str(here / "base.db"))) as database:
        database.execute("create table t(x)")
    return here, outside


def blocked_lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("[hermetic] blocked ")]


def state_of(here):
    return sorted((path, os.lstat(path).st_mode, os.lstat(path).st_mtime if os.path.isfile(path) else 0)
                  for path in glob.glob(f"{here}/**", recursive=True) if "target_script" not in path)


@pytest.mark.parametrize("table", [BLOCKED, ALLOWED], ids=["blocked", "allowed"])
def test_what_must_be_blocked_is_blocked_without_effect_and_what_a_well_behaved_program_does_is_left_alone(
        guarded, tmp_path, table):
    """Every action in every mode with HOTENV_TEST_FULL=1; else every third one, and what has a trace, in one mode."""
    def check(case):
        (guards, code, trace), python, mode = case
        here, outside = stage(tmp_path)
        prelude, before = f"here, outside = {str(here)!r}, {str(outside)!r}\n", state_of(here)
        done = guarded(guards + " --trace", prelude + code + "\nprint('ran')\n", python, mode, here)
        if table is ALLOWED:
            assert done.returncode == 0 and done.stdout.endswith("ran\n"), done
            return
        assert done.returncode == 2 and blocked_lines(done), done
        assert ("--fs-write" in guards or before == state_of(here)) and not (here / "made").exists()
        assert not trace or blocked_lines(done) == ["[hermetic] blocked " + trace] and "hunter2" not in trace
    assert len(BLOCKED) >= 115 and len(ALLOWED) >= 60
    side_by_side([(row, *each) for number, row in enumerate(table) if FULL or row[2] or not (number + SEED) % 3
                  for each in either(number)], check)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Virtual environments of the oldest and the newest of these Pythons, one with a blank in its path."""
    environments = [tmp_path_factory.mktemp("foreign") / name for name in ("venv0", "venv 1")]
    for python, venv in zip(PYTHONS, environments):
        subprocess.run([python, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=60)
    return environments


POOLS = """if __name__ == '__main__':
    os.environ.pop("HOTENV_GUARDS"), os.environ.pop("PYTHONPATH", None)
    import multiprocessing
    for method in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            try: pool.map(exec, [{child}[2]])
            except PermissionError as error: print(method, error.errno)"""
CHILDREN = [
    "subprocess.run({child})", "subprocess.run({child}, env={{}})", "subprocess.run(['/bin/sh', '-c', {text!r}])",
    "subprocess.run({child}, env={{'PYTHONPATH': '/nowhere', 'HOTENV_GUARDS': '[]'}})",
    "subprocess.run({child}, env={{b'PYTHONPATH': b'/nowhere', b'HOTENV_GUARDS': b''}})",
    "subprocess.run({child}, env=os.environb)",
    "subprocess.run({child}, env={{}}, close_fds=False)", "os.environ.clear(); subprocess.run({child})",
    "os.environ.clear(); os.system({text!r})", "os.spawnve(os.P_WAIT, {child}[0], {child}, {{}})",
    "os.execve({child}[0], {child}, {{}})", "os.environ.clear(); os.execv({child}[0], {child})",
    "os.waitpid(os.posix_spawn({child}[0], {child}, {{}}), 0)",
    "import asyncio\nasync def go(): await (await asyncio.create_subprocess_exec(*{child}, env={{}})).wait()\n"
    "asyncio.run(asyncio.wait_for(go(), 20))", "code = 'import subprocess; subprocess.run(%r, env={{}})' % ({child},); "
    "subprocess.run([sys.executable, '-c', code], env={{}})"]


def test_guards_stay_on_in_child_pythons_and_pools(guarded, tmp_path):
    def check(row):
        how, python, mode = row
        code = "import os, subprocess, sys, time\n" + how.format(
            child=[python, "-c", CONNECT], text=f"{python} -c \"{CONNECT}\"")
        done = guarded("--no-network --trace", code, python, mode, Path(tempfile.mkdtemp(dir=str(tmp_path))))
        assert blocked_lines(done) == [CONNECT_BLOCKED] * (1 + 2 * (how is POOLS)), done.stderr
        assert done.returncode == 2 * ("os.exec" in how), "what was blocked was blocked in the children"
        assert how is not POOLS or done.stdout.count(" 13\n") == 3, done
    side_by_side([(how, *each) for how in CHILDREN for each in either(how)] +
                 [(POOLS, python, "bootstrapped") for python in PYTHONS], check)


WRITE = ("import sys, zipfile\nout = open('out', 'w'); out.write('half')\nprint('shown', end='')\n"
         "raw = open('raw', 'wb'); raw.write(b'half')\n")
FLUSH = "for f in out, raw, sys.stdout: f.flush()\n"
TRY = f"try:\n    {CONNECT}\nexcept OSError:\n    pass\n"
EXITS = [
    (CONNECT, 2), (TRY, 2), (TRY + "sys.exit(5)", 2), (TRY + "1 / 0", 2), ("", 0), ("sys.exit(5)", 5), ("1 / 0", 1),
    ("sys.exit('x')", 1), ("import os, signal\n" + FLUSH + TRY + "os.kill(os.getpid(), signal.SIGTERM)", -15),
    ("import threading\nt = threading.Thread(target=lambda: exec(%r)); t.start(); t.join()" % CONNECT, 2),
    ("import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), exec(%r))).start()" % CONNECT, 2),
    ("import atexit\natexit.register(lambda: exec(%r))" % CONNECT, 2),
    ("import socket\nclass D:\n    def __del__(self, s=socket.socket()):\n        try: s.connect(('0.1.2.3', 80))\n"
     "        except OSError: pass\nd = D()", 2),
    (TRY + FLUSH + "import os; os._exit(0)", 2), (TRY + FLUSH + "import posix; posix._exit(0)", 2),
    ("import os\n" + FLUSH + "pid = os.fork()\nif not pid:\n    " + TRY.replace("\n", "\n    ")
     + "os._exit(0)\nprint(os.waitpid(pid, 0)[1] >> 8, file=sys.stderr)", 0),  # in a fork only
    (TRY + "import os\n" + FLUSH + "pid = os.fork()\nif not pid:\n    os._exit(0)\n"
     "os.waitpid(pid, 0)[1] and out.write('the child was told')", 2)]  # before a fork only


def test_the_exit_status_tells_what_was_blocked_and_no_file_loses_its_end(guarded, tmp_path):
    def check(row):
        ((code, status), python, mode), here = row, Path(tempfile.mkdtemp(dir=str(tmp_path)))
        done = guarded("--no-network", WRITE + code, python, mode, here)
        assert (done.returncode, done.stdout) == (status, "shown"), done.stderr
        assert (here / "out").read_text() == "half" and (here / "raw").read_bytes() == b"half"
        assert not blocked_lines(done), "only with --trace"
    side_by_side([(row, *each) for row in EXITS for each in either(row)], check)


@pytest.fixture
def named(foreign):
    """Environments whose resolver knows *.test: this machine, but for creds.test, which is a metadata address."""
    places = [glob.glob(f"{venv}/lib/python*/site-packages")[0] for venv in foreign]
    for place in places:
        Path(place, "names.pth").write_text("import names_of_the_test\n")
        Path(place, "names_of_the_test.py").write_text(textwrap.dedent("""
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
    for place in places:
        os.unlink(place + "/names.pth")


REACH = [(allowance, *case.split(), reached) for allowance, reached, cases in (  # host, and what is done with it
    ("domain api.test", True, "api.test create, API.TEST. create, api.test connect, api.test connect_ex, "
                              "api.test sendto, a.api.test create"),
    ("domain test", True, "api.test create"), ("domain API.Test.", True, "api.test create"),
    ("domain *.test", True, "api.test create"), ("domain .test", True, "api.test create"),
    ("domain 127.0.0.1", True, "127.0.0.1 create"), ("localhost", True, "localhost create"),
    ("domain api.test", False, "xapi.test create, api.test.test create, other.test create, other.test connect, "
                               "other.test sendto, 127.0.0.1 create"),
    ("domain ::1", False, "127.0.0.1 create"), ("domain 0.0.1", False, "127.0.0.1 create"),
    ("localhost", False, "api.test create"), ("domain test", False, "creds.test create"),
    ("domain creds.test", False, "creds.test create, creds.test connect"),
    ("domain internal", False, "metadata.google.internal create")) for case in cases.split(", ")]


def test_only_allowed_hosts_are_reached_and_no_name_is_asked_for_in_vain(named, guarded):
    with Ears() as ears:
        def check(case):
            guards, host, how, reached = case
            act = {"create": "socket.create_connection((h, p), 2)", "connect": "socket.socket().connect((h, p))",
                   "connect_ex": "assert not socket.socket().connect_ex((h, p))",
                   "sendto": "socket.socket(2, 2).sendto(b'x', (h, p))"}[how]
            code = f"import socket; h, p = {host!r}, {ears.port}; {act}; print('reached')"
            done = guarded("--trace --no-network --allow-" + guards, code, random.Random(f"{SEED}{case}").choice(named))
            assert (done.stdout == "reached\n") == reached and done.returncode == (0 if reached else 2), done
            assert len(blocked_lines(done)) == (not reached), done
            assert reached or "creds" in host or "ASKED" not in done.stderr, done
        side_by_side(REACH, check)
    # A metadata address is reached by exactly its own name, as far as this machine goes: the kernel is asked.
    for host in ("metadata.google.internal", "169.254.169.254"):
        code = ("import socket; s = socket.socket(2, 2); "  # connecting a datagram socket sends nothing
                f"found = socket.getaddrinfo({host!r}, 80, 2, 2); s.connect(found[0][4]); print('reached')")
        done = guarded(f"--trace --no-network --allow-domain {host}", code, named[0])
        assert not blocked_lines(done), done.stderr


def test_under_any_guard_the_runtime_directory_is_closed(guarded, runtime, tmp_path):
    os.makedirs(runtime + "/hotenv", exist_ok=True)
    path = runtime + "/hotenv/00000000.sock"
    (tmp_path / "link").symlink_to(runtime + "/hotenv")
    (tmp_path / "file").write_text("x")
    attempts = [
        "s.connect(path)", "s.connect(path.encode())", "s.connect(os.path.relpath(path))", "s.connect_ex(path)",
        "s.connect('link/00000000.sock')", "os.chdir(place); s.connect('00000000.sock')", "open(place + '/new', 'w')",
        "os.unlink(path)", "os.rename(path, 'moved')", "os.link(path, 'linked')", "os.rename('file', place + '/file')",
        "os.chmod(place, 0o777)", "os.symlink('/', place + '/l')", "os.rmdir(place)", "s.bind(place + '/mine')"]
    code = textwrap.dedent(f"""
        import os, socket
        path, top = {path!r}, os.getcwd()
        place = os.path.dirname(path)
        before = sorted(os.listdir(place))
        for attempt in {attempts!r}:
            os.chdir(top)
            s = socket.socket(socket.AF_UNIX)
            try: exec(attempt)
            except PermissionError: pass
            else: print('done:', attempt)
        assert sorted(os.listdir(place)) == before
        """)
    def check(row):
        guards, (python, mode) = row
        done = guarded(guards + " --trace", code, python, mode)
        assert done.stdout == "" and done.returncode == 2, (done.stdout, done.stderr)
        assert len(blocked_lines(done)) == len(attempts), done.stderr
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path), server.listen(5)
        side_by_side(itertools.product([NET, SUB, ANY, IMP, LOCAL], EITHER if FULL else EITHER[:2]), check)
    os.unlink(path)


def test_hermetic_within_hermetic_keeps_both_sets_of_guards_and_no_subinterpreter_is_without_any(guarded, runtime):
    code = "import os\n" + TRY + "try:\n    open('made', 'w')\nexcept OSError:\n    pass\n"
    subinterpreter = ("import concurrent.futures, importlib\nfor name in '_interpreters', '_xxsubinterpreters':\n"
                      "    try: importlib.import_module(name).create()\n    except ImportError: print('none')\n")
    for python in PYTHONS:
        inner = [python, str(HOTENV), "hermetic", "--fs-readonly=/", "--trace", "--", python, "-c", code]
        env = {"XDG_RUNTIME_DIR": runtime, "PATH": "/usr/bin"}
        done = guarded("--no-network --trace", f"import subprocess; subprocess.run({inner!r}, env={env!r})", python)
        reasons = sorted(line.rsplit("=", 1)[1] for line in blocked_lines(done))
        assert reasons == ["fs-readonly", "no-network"], done.stderr
        done = guarded(NET + " --trace", subinterpreter, python)
        assert (done.stdout, done.returncode) == ("none\nnone\n", 0) and "reason=hermetic" in done.stderr


HELD = (b"TOKEN=sk-live/51H8=Vq0+x\nURL=postgres://db.internal/pw-very-1234/\nQUOTE=\"it's-a-secret\"\nSHORT=ab\n"
        b"PEM=\"-----BEGIN KEY-----\\nMIIEvQIBADANBgkq\\nhkiG9w0BAQEFAASC\\n-----END KEY-----\"\n")
TRACED = [  # an action on e, the environment; what the trace says, but for its reason
    ("subprocess.run(['x', 'a-' + e['TOKEN'] + '-z', 'ab'])", "subprocess.run argv=['x','a-[hidden:TOKEN]-z','ab']"),
    ("open('/nowhere/' + e['QUOTE'], 'w')", "open path=/nowhere/[hidden:QUOTE]"),
    ("socket.create_connection(('it.sk-live/51H8=Vq0+x', 1))", "socket.create_connection host=it.[hidden:TOKEN]"),
    ("t = e.pop('TOKEN'); os.system('echo ' + t)", "os.system argv=['echo [hidden:TOKEN]']"),
    ("sqlite3.connect(e['URL'])", "[hidden:URL]"), ("os.system('echo ' + shlex.quote(e['QUOTE']))", "[hidden:QUOTE]"),
    ("subprocess.run(['x', e['PEM'].split(chr(10))[2]])", "argv=['x','[hidden:PEM]']"),
    ("subprocess.run(['x', e['PEM']])", "argv=['x','[hidden:PEM]']"),
    ("subprocess.run(['x', base64.b64encode(e['TOKEN'].encode()).decode()])", "argv=['x','[hidden:TOKEN]']"),
    ("subprocess.run(['x', urllib.parse.quote(e['TOKEN'], '')])", "argv=['x','[hidden:TOKEN]']")]


def run_behind(project, text, *words):
    """`hotenv run` with these words, behind a session that holds this text."""
    project.serve(text, "--force")
    return project.hotenv("run", *words, env=environment(project.base), input="", universal_newlines=True)


def test_no_spelling_of_a_value_comes_into_traces_and_errors_however_it_was_used(project):
    code = textwrap.dedent("""
        import base64, os, shlex, socket, sqlite3, subprocess, urllib.parse
        for action in %r:
            try: exec(action, dict(globals(), e=dict(os.environ)))
            except OSError as error: print(error)
        """ % ([action for action, _ in TRACED],))
    for python in PYTHONS:
        done = run_behind(project, HELD, "--profile=all", "--trace", "--", python, "-c", code)
        lines = blocked_lines(done)
        assert len(lines) == len(TRACED) and all(line in said for (_, line), said in zip(TRACED, lines)), done.stderr
        for value in ("sk-live", "pw-very", "a-secret", "hkiG9w0BAQEF", "MIIEvQIBADAN", "c2stbGl2ZS81", "51H8%3D"):
            assert value not in done.stdout + done.stderr
        assert done.returncode == 2
    code = "import os; os.system('echo ' + os.environ['MY_API_KEY'])"  # a secret by its name, of no session
    for command in "hermetic", "run":
        done = project.hotenv(command, SUB, "--trace", "--", PYTHONS[0], "-c", code, env={"MY_API_KEY": "sk-live-1234"})
        assert b"[hidden:MY_API_KEY]" in done.stderr and b"sk-live" not in done.stderr


def test_the_trace_goes_to_the_first_stderr_says_what_only_the_hook_holds_an_error_the_ways_out(guarded, tmp_path):
    for code in ("os.dup2(os.open('elsewhere', os.O_CREAT | os.O_WRONLY), 2)\n",
                 "os.closerange(3, 100); fds = [os.open('elsewhere', os.O_CREAT | os.O_WRONLY) for _ in range(70)]\n"):
        done = guarded("--no-network --trace", "import os; " + code + TRY)
        assert len(blocked_lines(done)) == 1
        assert (tmp_path / "elsewhere").read_text() == "", "it does not end up in a program's file"
    last = guarded(FS, "open('/etc/passwd')").stderr.splitlines()[-1]
    assert "--fs-readonly=PATH" in last and "=/" in last and str(tmp_path) in last
    assert "--fs-write PATH" in guarded(FS, "open('new', 'w')").stderr.splitlines()[-1]
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])"
    for guards, count in (LOCAL + " --trace", 1), (LOCAL, 0), (IMP + " --trace", 0), ("--allow-localhost", 0):
        done = guarded(guards, code, python=sys.executable)
        assert done.stderr.count("for Python code only: no-network") == count and done.returncode == 0, done.stderr
        assert ("no guard is on" in done.stderr) == (guards == "--allow-localhost")


def test_a_child_of_a_fork_beside_busy_threads_and_a_signal_handler_in_the_middle_of_a_check_are_guarded(guarded):
    code = textwrap.dedent("""
        import contextlib, os, socket, subprocess, threading
        def begin(work):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for each in threads: each.start()
            return threads
        def connect():
            with contextlib.suppress(PermissionError):
                seen.append(socket.create_connection(("127.0.0.1", PORT), 1))
        busy, children, seen = begin(lambda: [subprocess.run(["true"]) for _ in range(8)]), [], []
        for _ in range(25):
            pid = os.fork()
            if not pid:
                for each in begin(connect): each.join()
                os._exit(len(seen))
            children.append(os.waitpid(pid, 0)[1])
        for each in busy: each.join()
        print(sum(status not in (0, 2 << 8) for status in children))
        """)
    for python in PYTHONS:
        with Ears() as ears:  # the kernel's part is left out: --allow-domain is the hook's alone
            done = guarded("--no-network --allow-domain x.test", code.replace("PORT", str(ears.port)), python)
            assert done.stdout == "0\n" and ears.reached() == [], done.stderr
    code = textwrap.dedent("""
        import contextlib, signal, socket, time
        tried, reached = [], []
        def handler(*_):
            tried.append(1)
            with contextlib.suppress(PermissionError): reached.append(socket.socket().connect_ex(("127.0.0.1", 9)))
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            with contextlib.suppress(PermissionError): open("/etc/passwd")
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(tried) > 20, reached)
        """)
    assert guarded("--no-network --allow-domain x.test --fs-readonly", code, PYTHONS[1]).stdout == "True []\n"


COVERAGE = [sys.executable, "-m", "coverage", "run", "--data-file=x", "it.py"]


@pytest.mark.parametrize("code, target", [  # a program, and how it is started
    ("def f():\n    open('/made', 'w')\nf()\n", [sys.executable, "it.py"]), ("open('/made', 'w')\n", ["./it.py"]),
    ("import os\nos.execve('/nowhere/x', ['x'], {})\n", [sys.executable, "it.py"]),
    ("import os\nos.close(os.open('.', os.O_RDONLY))\nopen('/dev/null', 'w').close()\n"
     "os.path.exists('x') or os.mkfifo\n", COVERAGE),
    ("import pdb\nprint(__file__)\npdb.Pdb(nosigint=True).set_trace()\nprint(1)\n", [sys.executable, "it.py"])
], ids=short)
def test_tracebacks_coverage_and_pdb_show_nothing_of_ours(runtime, tmp_path, code, target):
    if target is COVERAGE and importlib.util.find_spec("coverage") is None:
        pytest.skip("coverage is not installed")
    (tmp_path / "it.py").write_text(code)
    done = output_of([sys.executable, str(HOTENV), "hermetic", ANY, "--fs-write=.", "--", *target], runtime, tmp_path,
                     **{"stdin": None, "input": "where\ncontinue\n"} if "pdb" in code else {})
    assert "hotenv.py" not in done.stderr + done.stdout and "sitecustomize" not in done.stderr + done.stdout, done
    if target is COVERAGE:
        report = output_of([*target[:3], "report", target[4]], runtime, tmp_path)
        assert "it.py" in report.stdout and "hotenv" not in report.stdout, report


@only_linux
def test_a_session_gives_a_guarded_target_a_process_image_of_its_own_and_configures_no_guard(project):
    """What --only left out is not in the target's memory, also where the target belongs to hotenv's own environment."""
    (project.dir / "it.py").write_text(textwrap.dedent("""
        import re
        found, memory = 0, open('/proc/self/mem', 'rb')
        for line in open('/proc/self/maps'):
            begin, end = [int(word, 16) for word in line.split()[0].split('-')]
            if ' rw' in line and 'vvar' not in line:
                memory.seek(begin)
                found += len(re.findall(b'left.out.valu[e]', memory.read(end - begin)))  # which does not find itself
        print(found)"""))
    done = run_behind(project, b"ONE=1\nTWO=left-out-value\n", "--only", "ONE", NET, "--", "./it.py")
    assert done.stdout == "0\n", done
    text = b"HERMETIC_FLAGS=--allow-localhost\nHOTENV_GUARDS=\nPYTHONPATH=/nowhere\n"
    done = run_behind(project, text, NET, "--trace", "--", PYTHONS[0], "-c", CONNECT.replace("0.1.2.3", "127.0.0.1"))
    assert done.returncode == 2 and len(blocked_lines(done)) == 1


# ==== hermetic host ===================================================================================================
# Which guards are asked for, what a target is, and how it is started.


SHEBANGS = ["#!{python}", "#!{python} -s", "#!{python} -sE", "#!{python} -E", "#!{python} -I", "#!{python} -S",
            "#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -I", "#!/usr/bin/env -S python3 -s -E",
            "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''",
            "#!/bin/sh\n'''exec' \"{python}\" -E \"$0\" \"$@\"\n' '''",
            "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n' '''"]


def test_every_form_of_a_shebang_is_guarded_and_keeps_its_arguments(foreign, hermetic, runtime, tmp_path):
    place = foreign[0] / "bin"
    env = environment(runtime, PATH=f"{place}:{os.environ['PATH']}")
    def check(shebang):
        words = ["tool%d" % SHEBANGS.index(shebang), "--flag", "a b", "--", ""]
        executable(place / words[0], shebang.format(python=place / "python3") + textwrap.dedent("""
            import sys
            print(sys.argv, sys.flags.isolated, sys.flags.ignore_environment, sys.flags.no_site, __file__, __name__)
            print(sys.prefix, flush=True)
            """) + CONNECT + "\n")
        bare = output_of(words, runtime, tmp_path, env)
        done = hermetic("--no-network --trace", *words, python=PYTHONS[1], env=env)
        assert bare.returncode in (0, 1) and bare.stdout.count("\n") == 2, bare.stderr
        assert (done.stdout, done.returncode) == (bare.stdout, 2), done.stderr
        assert blocked_lines(done) == [CONNECT_BLOCKED]
    side_by_side(SHEBANGS, check)


REFUSED = [  # target, text of ./it, guards
    (["/bin/ls"], "", IMP), (["ls"], "", FS), (["ls"], "", LOCAL), (["./it"], "#!/bin/sh\necho ran\n", "--profile=all"),
    (["./it"], "echo ran\n", "--no-network --allow-domain x.y"), ([sys.executable, "-I"], "", IMP),
    (["./it"], "#!/usr/bin/env -i python3\nprint('ran')\n", IMP), (["./it"], "#!/usr/bin/python3 -mthis\n", IMP),
    (["./missing"], "", NET), (["no-such-target-anywhere"], "", NET), ([""], "", NET), ([], "", NET), (["true"], "",
    ANY + " --fs-write="), (["true"], "", NET + " --allow-domain=."), (["./it"], "#!{old}\nprint('ran')\n", NET)]


def test_what_cannot_be_guarded_is_refused_and_not_run(hermetic, tmp_path):
    def check(row):
        (target, text, guards), old = row, sorted(glob.glob(PYENV + "/[23].[5-7]*/bin/python"))
        if "{old}" in text and not old:
            pytest.skip("no Python before 3.8 is installed")
        for each in old if "{old}" in text else [""]:
            here = Path(tempfile.mkdtemp(dir=str(tmp_path)))
            executable(here / "it", text.format(old=each))
            done = hermetic(guards, *target, python=PYTHONS[1], cwd=here)
            assert (done.returncode, done.stdout) == (1, ""), (each, done.stderr)
            assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1
    side_by_side(REFUSED, check)


def test_targets_by_name_run_as_they_would_by_themselves(hermetic, tmp_path):
    (tmp_path / "pkg").mkdir()
    for name, text in {
            "pkg/__init__.py": "", "pkg/__main__.py": "import sys; print('package', sys.argv[1:]); sys.exit(4)\n",
            "pkg/mod.py": "import sys\ndef main(): print(sys.argv, __name__); return 7\ndata = 3\n"
                          "class Deep: main = staticmethod(main)\n"
                          "if __name__ == '__main__': print('module', sys.argv[1:]); sys.exit(5)\n",
            "plain.py": "import sys, pkg; print('plain', sys.argv, __file__, __name__); sys.exit(3)\n",
            "away.py": "import os; os.chdir('/'); print(os.path.isabs(__file__), open(__file__).read(6))\n",
            "typed.py": "def f(x: int): pass\nprint(f.__annotations__)\n"}.items():
        (tmp_path / name).write_text(text)
    cases = [("pkg.mod:main a -- -x", 7, "['pkg.mod:main', 'a', '--', '-x'] pkg.mod\n"),
             ("pkg.mod:Deep.main a", 7, "['pkg.mod:Deep.main', 'a'] pkg.mod\n"),
             ("pkg.mod:data a", 5, "module ['a']\n"), ("pkg.mod -- a", 5, "module ['--', 'a']\n"),
             ("pkg a", 4, "package ['a']\n"), ("./pkg a", 4, "package ['a']\n"), ("away", 0, "True import\n"),
             ("./plain.py a", 3, f"plain ['./plain.py', 'a'] {tmp_path}/plain.py __main__\n"),
             ("typed.py", 0, "{'x': <class 'int'>}\n"),  # no slash is needed, and it is compiled as it is
             ("python -uWerror -c print(__import__('sys').argv) a", 0, "['-c', 'a']\n"),
             ("python -m pkg.mod a", 5, "module ['a']\n"),
             ("python -X dev plain.py", 3, f"plain ['plain.py'] {tmp_path}/plain.py __main__\n"),
             *((words + "away.py", 0, "True import\n") for words in ("", "./", "python ", "python -I "))]
    def check(row):
        python, (words, code, output) = row
        words = [python if word == "python" else word for word in words.split()]
        done = hermetic("--no-network", *words, python=python)
        assert (done.returncode, done.stdout) == (code, output), done.stderr
    side_by_side(itertools.product(PYTHONS, cases), check)


def test_a_console_script_beside_this_python_runs_in_this_very_process(foreign, runtime, tmp_path):
    def check(row):
        (venv, other), same, flags = row
        python, target = str((venv if same else other) / "bin" / "python3"), "beside" if same else f"{venv}/bin/beside"
        started = subprocess.Popen([python, *flags, runtime + "/installed", "hermetic", "--no-network", "--", target],
                                   cwd=str(tmp_path), env=environment(runtime), stdout=PIPE)
        output = started.communicate(timeout=30)[0].decode().splitlines()
        assert output == [str(started.pid), str(venv), "False"]
    for venv in foreign:
        executable(venv / "bin" / "beside", f"#!/bin/sh\n'''exec' \"{venv}/bin/python3\" \"$0\" \"$@\"\n' '''\n"
                   "import os, sys; print(os.getpid(), sys.prefix, 'hotenv' in sys.modules, sep=chr(10))\n")
    side_by_side(itertools.product([foreign, foreign[::-1]], [True, False], [[], ["-I"], ["-S"]]), check)


def test_a_sitecustomize_that_was_there_still_runs_after_the_guards_and_pythonpath_gets_no_empty_entry(
        guarded, hermetic, runtime, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import sys; print('theirs', hasattr(sys, '_hotenv'))\n")
    for python in PYTHONS:
        done = guarded("--no-network", "import sitecustomize; print(sitecustomize.__file__)", python,
                       env=environment(runtime, PYTHONPATH=str(theirs)))
        assert done.stdout == f"theirs True\n{theirs}/sitecustomize.py\n", done.stderr
    (tmp_path / "random.py").write_text("raise SystemExit('shadowed')\n")
    show = theirs / "show"
    executable(show, f"#!{PYTHONS[0]}\nimport random, os, sys; print(os.environ['PYTHONPATH'], '' in sys.path)\n")
    for before in ({}, {"PYTHONPATH": ""}):
        done = hermetic("--no-network", show, python=PYTHONS[1], env=environment(runtime, **before))
        path, empty = done.stdout.split()
        assert os.pathsep not in path and empty == "False"


ON, LOCAL_TOO = {"no-network": True}, {"no-network": True, "allow-localhost": True}
CONFIGURED = [  # file, environment, command line -> what is blocked, of: local (127.0.0.1), sub, write, ctypes, passwd
    ({}, {}, "", ""), (ON, {}, "", "local"), ({"no_network": True}, {}, "", "local"), (LOCAL_TOO, {}, "", ""),
    (LOCAL_TOO, {}, "--no-network", "local"), (ON, {}, "--allow-localhost", ""), ({"allow-localhost": True}, {},
    "--no-network", "local"), ({"allow-domain": ["127.0.0.1"]}, {}, "--no-network", "local"), ({"no-network": True,
    "allow-domain": ["127.0.0.1"]}, {}, "", ""), (LOCAL_TOO, {"HERMETIC_FLAGS": "--no-network"}, "", "local"), (ON,
    {"HERMETIC_FLAGS": "--allow-localhost"}, "", ""), ({}, {"HERMETIC_FLAGS": "--no-network --allow-localhost"},
    "--no-subprocess", "sub"), ({}, {"HERMETIC_FLAGS": "--allow-localhost"}, "--no-network", "local"), ({},
    {"HERMETIC_PROFILE": "exec-deny,strict-imports"}, "", "sub ctypes"), ({}, {"HERMETIC_PROFILE": "net-hermetic"}, "",
    ""), ({}, {}, "--profile net-hermetic", ""), ({}, {}, "--profile exec-deny", "sub"), ({}, {},
    "--profile strict-imports", "ctypes"), ({}, {}, "--profile fs-readonly", "write passwd"), ({}, {}, "--profile all",
    "local sub write ctypes passwd"), ({"profile": ["exec-deny"]}, {}, "--profile=strict-imports", "sub ctypes"),
    ({"profile": "exec-deny"}, {}, "", "sub"), ({}, {"HERMETIC_FS_ROOT": "/etc"}, "", "write"), ({},
    {"HERMETIC_FS_ROOT": "/"}, "--fs-readonly", "write passwd"), ({"fs-readonly": "/etc"}, {}, "", "write"),
    ({"fs-readonly": True}, {}, "", "write passwd"), ({"fs-readonly": True}, {}, "--fs-readonly=/etc", "write"),
    ({"fs-readonly": "/etc"}, {}, "--fs-readonly", "write passwd"), ({"fs-readonly": True, "fs-write": ["."]}, {}, "",
    "passwd"), ({"fs-write": ["."]}, {}, "--fs-readonly=/", "write"), ({"fs-readonly": "/"}, {}, "--fs-write .", ""),
    ({"no-network": False}, {}, "", ""), (ON, {}, "--no-subprocess", "local sub"), ("[project\n", {}, "", ""),
    ("[tool.other]\nno-network = true\n", {}, "", ""), ("[tool]\nhermetic = {no-network = true}\n", {}, "", "local"),
    ("tool = {hermetic = {no-network = true}}\n", {}, "", "local")]

PROBE = """
import socket, subprocess
for name, act in {"local": lambda: socket.create_connection(("127.0.0.1", 9), 1), "sub": lambda: subprocess.run("true"),
                  "write": lambda: open("probe", "w").close(), "ctypes": lambda: __import__("ctypes"),
                  "passwd": lambda: open("/etc/passwd").close()}.items():
    try: act()
    except (PermissionError, ImportError): print(name)
    except ConnectionRefusedError: pass
"""


def test_sources_add_up_and_no_allowance_opens_what_a_higher_source_closed(hermetic, runtime, tmp_path):
    (tmp_path / "pyproject.toml").write_text(  # configures no guard, also where Python reads no TOML
        "[project]\nname = 'hermetic'\n[tool.black]\nline-length = 99\n# [tool.hermetic]\n")
    for python in PYTHONS:
        assert hermetic("", python, "-c", "print('ran')", python=python).stdout == "ran\n"
    (tmp_path / "pyproject.toml").unlink()
    if "tomllib" not in output_of([python, "-c", "import tomllib; print('tomllib')"], runtime, tmp_path).stdout:
        pytest.skip("no Python that reads TOML is installed")
    def check(row):
        (table, env, line, blocked), here = row, Path(tempfile.mkdtemp(dir=str(tmp_path)))
        (here / "probe.py").write_text(PROBE)
        if isinstance(table, str):
            (here / "pyproject.toml").write_text(table)
        elif table:
            text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
            if CONFIGURED.index(row) % 2:
                (here / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.hermetic]\n" + text)
            else:
                (here / "HERMETIC.toml").write_text(text)
        done = hermetic(line, "./probe.py", python=python, cwd=here, env=environment(runtime, **env))
        assert (done.stdout.split(), done.returncode) == (blocked.split(), 2 if blocked else 0), done
    side_by_side(CONFIGURED, check)


def test_a_mistake_in_guards_or_their_configuration_is_the_usage_error_of_the_command(project):
    for usage in ("--no-network", "--no-such-guard --", "--no-net -- x", "--profile nothing -- x",
                  "--fs-readonly= -- x", "--allow-domain= -- x", "--allow-domain http://x -- x"):
        assert refusal(called(project, "hermetic", *usage.split()), 1), usage
    project.serve(b"A=1\n")
    for content in (
            b"[tool.hermetic]\nno-netwrok = true\n", b"[tool.hermetic]\nno-network = 3\n", b"[tool.hermetic\n",
            b"[tool]\nhermetic = 3\n", b"\xff\xfe[tool.hermetic]", b"[tool.hermetic]\nhelp = true\n",
            b"[tool.hermetic]\nfs-readonly = true\nfs-write = [1]\n", b"[hermetic]\nno-network = true\n",
            b"allow-localhost = 'yes'\n"):
        file = project.dir / ("pyproject.toml" if b"tool" in content else "HERMETIC.toml")
        file.write_bytes(content)
        for command, code in ("run", 2), ("hermetic", 1):
            done = called(project, command, SUB, "--", sys.executable, "-c", "print('ran')")
            assert refusal(done, code) and not done.stdout, content
        file.unlink()


def test_a_grandchild_has_paths_with_quotes_and_a_spawned_worker_may_read_its_script(hermetic, runtime, tmp_path):
    odd = tmp_path / 'a "read": b'
    odd.mkdir()
    code = (f"open({str(odd)!r} + '/in', 'w').close()\n"
            "try:\n    open('/etc/passwd')\nexcept PermissionError:\n    print('ok')")
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], env={{}}, check=False)"
    command = ["hermetic", "--fs-readonly", "--fs-write", str(odd), "--", PYTHONS[0], "-c", parent]
    done = output_of([PYTHONS[0], runtime + "/installed", *command], runtime, tmp_path)
    assert done.stdout == "ok\n" and (odd / "in").exists(), done.stderr
    (tmp_path / "mp.py").write_text("import multiprocessing as m\nif __name__ == '__main__':\n"
                                    "    process = m.get_context('spawn').Process(target=print, args=('worked',))\n"
                                    "    process.start(); process.join(); raise SystemExit(process.exitcode)\n")
    done = hermetic("--fs-readonly", "../mp.py", cwd=odd)
    assert (done.returncode, done.stdout) == (0, "worked\n"), done.stderr


PROGRAMS = os.environ.get("HOTENV_TEST_PROGRAMS", "")


@pytest.mark.skipif(not PROGRAMS, reason="HOTENV_TEST_PROGRAMS names no venv with httpie, pytest and black")
def test_real_programs_work_and_are_held(hermetic, runtime, tmp_path):
    def check(row):
        flag, (guards, command, status, word) = row
        name, *words = command.split()
        here, text = Path(tempfile.mkdtemp(dir=str(tmp_path))), open(f"{PROGRAMS}/bin/{name}").read().split("\n", 1)[1]
        (here / "test_it.py").write_text("def test_one(): assert True\n")
        (here / "test_net.py").write_text(f"def test_one():\n    {CONNECT}\n")
        executable(here / name, f"#!{PROGRAMS}/bin/python{flag}\n{text}")  # with -E as pipx installs it
        done = hermetic(guards, f"./{name}", *words, python=f"{PROGRAMS}/bin/python", cwd=here,
                        env=environment(runtime, HOME=str(here)))
        assert done.returncode == status and word in done.stdout, done
    rows = [(NET, "http --version", 0, "."), (ANY, "http --version", 0, "."), (ANY, "pip list", 0, "pytest"),
            (NET, "http --ignore-stdin http://0.1.2.3/", 2, ""), (NET, "pytest -q test_it.py", 0, "1 passed"),
            (NET, "pytest -q test_net.py", 2, "1 failed"), (IMP, "pytest -q test_it.py", 0, "1 passed"),
            (NET, "pip --version", 0, "pip")]
    flags = itertools.cycle(["", " -E", " -E", ""])  # each program with and without; FULL: each row
    side_by_side(itertools.product(["", " -E"], rows) if FULL else zip(flags, rows), check)


def test_many_starts_find_no_half_a_guard_old_ones_go_after_a_week_and_without_ours_no_child_starts(guarded, tmp_path):
    base, fresh = tmp_path / "hotenv", environment(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda n: guarded(NET, CONNECT, PYTHONS[n % 2], env=fresh), range(24 if FULL else 8)))
    assert [done.returncode for done in results] == [2] * len(results), [done.stderr for done in results]
    shutil.rmtree(str(next(base.iterdir())))
    assert guarded(NET, "pass", env=fresh, preexec_fn=limits(FSIZE=(9999, 9999))).returncode == 1  # as on a full disk
    assert {each.name for each in next(base.iterdir()).iterdir()} <= {"__pycache__"}
    for name, age in ("guards-00000001", 8 * 86400), ("guards-00000002", 6 * 86400), ("other", 8 * 86400):
        (base / name).mkdir(), (base / name / "hotenv.py").write_text("")
        os.utime(str(base / name), (time.time() - age,) * 2)
    for _ in range(2):
        assert guarded(NET, "pass", env=fresh).returncode == 0
        names = sorted(each.name for each in base.iterdir())
        assert len(names) == 3 and names[:1] == ["guards-00000002"] and "other" in names, names
    own = base / [name for name in names if name not in ("other", "guards-00000002")][0]
    os.utime(str(own), (0, 0)), guarded(NET, "pass", env=fresh)
    assert time.time() - own.stat().st_mtime < 60, "each start says that it is in use"
    odd = {**fresh, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}  # compiled, and there, anyway
    done = guarded(NET, "import sys; print(sys.pycache_prefix)", PYTHONS[1], env=odd).stdout
    assert (done, len(list((own / "__pycache__").iterdir()))) == ("None\n", 2 * len({*PYTHONS}))
    for taken in "hotenv.py", "sitecustomize.py":  # as a cleaner of /tmp does
        (own / taken).unlink(), shutil.rmtree(str(own / "__pycache__"))
        assert guarded(NET, "pass", env=fresh).returncode == 0, "what is missing is put back"
    code = ("import os, subprocess, sys; os.system('rm -r %s/guards-*')\n"
            "subprocess.run([sys.executable, '-c', 'print(1)'], env={})" % base)
    done = guarded(NET, code, PYTHONS[1], env=fresh)
    assert (done.returncode, done.stdout) == (2, "") and "are gone" in done.stderr


def test_damaged_guards_and_a_hook_that_refuses_them_end_the_program(foreign, guarded, runtime, tmp_path):
    home = guarded(NET, "import os; print(os.environ['PYTHONPATH'])").stdout.strip()
    for more in ({"HOTENV_GUARDS": ""}, {"HOTENV_GUARDS": "no-network"}, {}):
        env = environment(runtime, PYTHONPATH=home, **more)
        done = output_of([PYTHONS[0], "-c", "print('ran')"], runtime, tmp_path, env)
        assert (done.returncode, done.stdout) == (1, "") and "hotenv: cannot guard" in done.stderr
    veto = Path(glob.glob(f"{foreign[0]}/lib/python*/site-packages")[0], "veto.pth")
    veto.write_text("import sys; exec(\"def veto(e, a):\\n if e == 'sys.addaudithook': raise RuntimeError\\n"
                    "sys.addaudithook(veto)\")\n")
    done = guarded(NET, "print('ran')", foreign[0] / "bin" / "python")
    veto.unlink()
    assert (done.returncode, done.stdout) == (1, "") and "hotenv: cannot guard" in done.stderr


def test_a_script_that_stands_for_a_python_is_asked_for_the_real_one(hermetic, runtime, tmp_path):
    executable(tmp_path / "python3", f'#!/usr/bin/env bash\nexec "{PYTHONS[1]}" "$@"\n')
    env = environment(runtime, PATH=f"{tmp_path}:{os.environ['PATH']}")
    for guards in (NET, IMP, NET + " " + SUB):
        done = hermetic(guards, "python3", "-c", "import sys; print(sys.version_info[1]);" + CONNECT, python=PYTHONS[0],
                        env=env)
        version = re.search(r"3\.(\d+)", PYTHONS[1]).group(1)
        assert done.stdout == version + "\n" and (done.returncode == 2) == (NET in guards), done.stderr


# ==== shell session ===================================================================================================
# One bash after the other: whatever is typed, the session goes on, and says what happened.


@pytest.fixture
def shell(tmp_path):
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path), timeout=20) as session:
        yield session


both = pytest.mark.parametrize("remote", [None, "sh"], ids=["local", "remote"])


def processes_with(mark):
    listing = subprocess.run(["ps", "-Ao", "stat=,pid=,args="], stdout=PIPE).stdout
    return [row for row in listing.decode("utf-8", "replace").splitlines()
            if mark in row and not row.startswith("Z") and " ps " not in row]


def unique_sleep():
    return f"sleep 4{os.getpid()}.{random.randrange(10 ** 6)}"


def raised(work, *args, **options):
    with pytest.raises(hotenv.HotenvError) as caught:
        work(*args, **options)
    return caught.value


def in_python(program, *args, **options):
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), *args], env=env, timeout=120, stdout=PIPE,
                          stderr=PIPE, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


WHATEVER = object()  # stands for a code, an output or a word that is not said
FUNCTIONS = ("printf command builtin return jobs export unset eval cd alias declare local shopt readonly set trap "
             "exec : true read echo test exit kill compgen __hotenv_probe").split()

# A command, or several of which the last one is meant; its exit code, its stdout, and what else must be so: `lost` (the
# shell ended), `late` (a limit of 0.3 s), `2s` (what it took at least), `cut` (head and tail), a pattern for stderr.
# What is not said must be plain: nothing on stderr, not late, not lost, not cut. After each the session must still
# serve, with its exports. `far` is also tried over two streams, `status` where a signal is a status, as over ssh.
TRIALS = [
    ("# nothing", 0, "", "far"), ("echo a # b", 0, "a\n"), ("", 0, ""), (" \t ", 0, ""), ("\n\n\n", 0, ""),
    ("echo a\necho b\n\necho c\n", 0, "a\nb\nc\n"), ("echo a\nfalse", 1, "a\n"), ("true &", 0, "", r"\[1\] \d+\n"),
    ("echo a \\", 0, "a \\\n"), ("cat <<X\n$((1+1)) 'b\nX", 0, "2 'b\n", "far"), ("cat <<'X'\n$((1+1))\nX\necho b", 0,
    "$((1+1))\nb\n"), ("cat <<X\nabc", 0, "abc\n", "bash: .*here-document"), ("cat", 0, "", "far"),
    ("read x; echo \"$?[$x]\"", 0, "1[]\n"), ("python3 -c 'input()'", 1, "", "Traceback"), ("cat /dev/tty", 1, "",
    "cat: /dev/tty"), ("test -t 0 -o -t 1 -o -t 2", 1, ""), ("for i in 1 2", 2, "", "bash: .*syntax error"), (")", 2,
    "", "bash: .*syntax error"), ("}", 2, "", "bash: .*syntax error", "far"), ("{ echo a", 2, "",
    "bash: .*syntax error"), ("}; } >x; {", 2, "", "bash: .*syntax error"), ("echo a\nif", 2, "a\n",
    "bash: .*syntax error"), ("echo 'a", 2, "", "bash: .*unexpected EOF", "far"), ('echo "a', 2, "",
    "bash: .*unexpected EOF"), ("echo $(echo a", WHATEVER, "", "bash: .*unexpected EOF"), ("printf '%s.' a\tb", 0,
    "a.b."), ("printf %s 'a\tb'", 0, "a\tb"), ("echo 'a'\"'\"'b' \\\"c\\\" $'d\\'e'", 0, "a'b \"c\" d'e\n"),
    ("echo hi! !! !x '!1'\necho \"!!\"", 0, "hi! !! !x !1\n!!\n"),
    ("set -H -o history; echo 'a\n!!'; echo \"$(history | wc -l)\"", WHATEVER, WHATEVER, WHATEVER),
    ("printf %s '%d$1`x`'", 0, "%d$1`x`"), ("echo 'ä €😀'", 0, "ä €😀\n"), ("printf %s '\udcff' | od -An -tx1", 0,
    " ff\n"), ("no_such_command_here", 127, "", "bash: .*not found"), ("/", 126, "", "bash: .*directory"),
    ("(exit 255)", 255, ""), ("bash -c 'kill -9 $$'", 137, ""), ("echo a | tr a b", 0, "b\n"),
    ("false | true; echo ${PIPESTATUS[0]}", 0, "1\n"), ("echo a; echo b >&2; echo c", 0, "a\nc\n", "b\n$", "far"),
    ("printf abc", 0, "abc", "far"), ("printf 'a\\r\\nb\\r\\n'", 0, "a\nb\n"), (r"printf '\0\1\377a\200'", 0,
    "\ufffda\ufffd", "far"), (r"printf '\e[31mred\e[0m \e]0;title\a.'", 0, "red ."), (r"printf '10%%\r20%%\r9'", 0,
    "90%"), (r"printf 'downloading\r\e[Kdone'", 0, "done"),
    (r"printf '\0%s\n' 0 1 2; printf '\0x\0'; printf '\0%032d\0000\0/\0\0\0%032d\n' 1 1; false", 1, WHATEVER, "far"),
    ("for i in {3..260}; do echo x >&$i; done 2>/dev/null; false", 1, WHATEVER, WHATEVER), ("exec >&-; echo a", 1, "",
    "bash: .*write error", "far"), ("exec 0<&- 1>&- 2>&-; true", 0, "", "far"), ("exec >/dev/null; echo a", 0, "",
    "far"), ("exec 2>&1; echo a >&2", 0, "a\n"), ("exec 3>f; echo x >&3; cat f", 0, "x\n"), ("exit 3", 3, "", "lost",
    "far", "status"), ("echo a; exit 7", 7, "a\n", "lost"), ("f() { exit 4; }; f", 4, "", "lost"), ("(exit 4)", 4, ""),
    ("trap 'echo bye' EXIT; exit 5", 5, "bye\n", "lost"), ("logout", 1, "", "bash: logout"), ("return 5", WHATEVER, "",
    "bash: return"), ("break", 0, "", "bash: break"), ("kill -TERM $BASHPID; exit 5", 5, "", "lost", "status"),
    ("exec echo a", 0, "a\n", "lost", "far"), ("exec sh -c 'sleep 0.1; echo a; exit 9'", 9, "a\n", "lost"),
    ("exec no_such_command_here", 127, "", "bash: .*not found"), ("exec bash", 0, "", "lost"), ("echo a; kill -9 $$",
    137, "a\n", "lost", "far", "status"), ("kill $$", 0, ""), ("kill -HUP $$; sleep 1", 129, "", "lost"),
    ("kill -SEGV $$; sleep 1", 139, "", "lost", "status"), ("kill -INT $$; echo a", 130, ""), ("kill -STOP $$", 124, "",
    "late", "lost?"), ("(sleep 0.05; kill -9 $$) & sleep 30", 137, "", WHATEVER, "lost"), ("kill -9 0", 137, "",
    "lost"), ("set -e; false; echo no", 1, "", WHATEVER, "lost", "far"),
    ("set -e; false || true; if false; then :; fi; echo $?", 0, "0\n"), ("set -e; sleep 30", 124, "", "late"),
    ("set -u; echo $nothing; echo no", WHATEVER, "", "bash: .*nothing"), ("set -f; echo *", 0, "*\n"),
    ("set -x; echo a", 0, "a\n", r"\++ echo a", "far"), ("set -v; echo a", 0, "a\n"), ("set -n; echo a", 0, "a\n"),
    ("set -C; echo a", 0, "a\n"), ("set -m; sleep 0.01; sleep 0.01 | echo a", 0, "a\n"), ("set -o posix; echo a", 0,
    "a\n"), ("set -t; echo a", 0, "a\n", WHATEVER, "lost?"), ("IFS=0123456789x; echo a", 0, "a\n"),
    ("trap 'echo D; trap - DEBUG' DEBUG; :", 0, "D\n"), ("set -T; trap 'false' DEBUG; echo a", 0, "a\n"),
    ("shopt -s extdebug; trap 'false' DEBUG; echo a", 124, "", "late", "lost"), ("trap 'echo E' ERR; true", 0, ""),
    ("set -T; trap 'echo R; false' RETURN; echo a", 0, "a\n"), ("PROMPT_COMMAND='echo P; false'; echo a", 0, "a\n"),
    ("PROMPT_COMMAND='read x; read x'; echo a", 124, "a\n", "late", "lost?"),
    ("PS1='$(echo no; exit 3)'; PS4='$(exit 4)'; PS0='$(exit 5)'; echo a", 0, "a\n"),
    ("command_not_found_handle() { echo H; }; nope", 0, "H\n"),
    ("; ".join(f"function {name} {{ /bin/echo BAD; false; }}" for name in FUNCTIONS), 0, ""),
    ("alias eval=false builtin=false printf=false {=false", 0, ""), ("unset PWD OLDPWD; echo a", 0, "a\n"),
    ("TMOUT=1; echo a", 0, "a\n"), ("__hotenv_end() { :; }; unset -f __hotenv_begin", 1, "",
    "bash: .*__hotenv_end: readonly"), ("sleep 30 & disown; echo a", 0, "a\n", WHATEVER), ("coproc cat; echo a", 0,
    "a\n", WHATEVER), ("bash --norc -i", 0, "", WHATEVER), ("cat <(echo a)", 0, "a\n"), ("time true", 0, "", "\nreal"),
    ("ulimit -n 250; ls /dev/null", 0, "/dev/null\n"), ("umask 777; echo a", 0, "a\n"), ("PATH=; ls", 127, "",
    "bash: ls"), ("echo a; sleep 30; echo no", 124, "a\n", "late", "far"), ("while :; do :; done", 124, "", "late"),
    ("while :; do sleep 30; done", 124, "", "late"), ("sleep 30 | sleep 30; echo no", 124, "", "late"),
    ("(sleep 30; echo no); echo no", 124, "", "late"), ("bash -c 'sleep 30; echo no'; echo no", 124, "", "late"),
    ("yes", 124, WHATEVER, "late", "cut", "far"), ("sleep 30 & wait", 124, "", WHATEVER, "late"), ("mkfifo p; cat p",
    124, "", "late"), ("sh -c 'trap : INT; sleep 30; sleep 0.8; echo 1'; echo no", 124, "1\nno\n", "late"),
    ("sh -c 'trap : INT; sleep 30; sleep 30; echo 1'; echo no", 124, "", "late", "lost", "2s"),
    ("while :; do sleep 0.03; done", 124, "", "late"), ("while :; do sleep 0.03; done | while :; do sleep 0.03; done",
    124, "", "late", "lost?"), ("sh -c 'echo 1; trap \"\" INT; sleep 30'; echo no", 124, "1\n", "late", "lost", "far"),
    ("trap '' INT; sleep 30", 124, "", "late", "lost"), ("trap 'echo I' INT; sleep 30", 124, WHATEVER, "late"),
    ("exec sleep 30", 124, "", "late", "lost"),
    (["mkdir d; cd d; x=1; f() { echo \"f$x\"; }; alias g=f; export E=2; set -- a b; umask 077; shopt -s nullglob",
    "echo ${PWD##*/} $x $E $2 $#; f; umask; shopt -q nullglob && f; g; cd .."], 0, "d 1 2 b 2\nf1\n0077\nf1\nf1\n"),
    *[([f"(exit {code})", "echo $?"], 0, f"{code}\n") for code in (0, 1, 42, 255)],
    (["exec {a}>f1 10>f2 11>f3 12>f4 >f5; export A=1; exit 3", "cat f?"], 0, ""), (["export TOP=$PWD",
    "mkdir d; cd d; rmdir ../d; kill -9 $$", "echo a; cd $TOP"], 0, "a\n"), (["export A=1", "B=2; export B",
    "declare -x C=3", "set -a; D=4; set +a", "read -r E <<<5; export E", "f() { export F=6; }; f",
    "f2() { export G=7; }", "f2", "alias ex='export H=8'", "ex", "printf -v I 9; export I",
    "echo 'export J=10' >s; . ./s", "A=11", "source ./s2 2>/dev/null; unset B", "for C in 12; do :; done",
    "eval 'export K=13'", "builtin export L=14", "kill -9 $$", "echo $A,${B-gone},$C,$D,$E,$F,$G,$H,$I,$J,$K,$L"], 0,
    "11,gone,12,4,5,6,7,8,9,10,13,14\n"),
    (["python3 -c 'import signal, time; signal.signal(2, signal.default_int_handler); time.sleep(60)' & pid=$!",
    "sleep 30", "kill -0 $pid && [ $(jobs -p) = $pid ] && echo on; sleep 30"], 124, "on\n", "late")]
if LINUX:
    TRIALS += [('for f in /proc/$$/fd/*; do eval "exec ${f##*/}>&-"; done', WHATEVER, WHATEVER, WHATEVER, "lost"),
               ("echo 'echo no' >/proc/$$/fd/0; echo a", 0, "a\n", WHATEVER)]
# From afar nothing can be interrupted: the shell is given up and replaced.
EVERYWHERE = [*((trial, None) for trial in TRIALS), *((trial + ("lost",) * ("late" in trial), "sh") for trial in TRIALS
              if "far" in trial), *((trial, "sh -c 'sh; exit $?'") for trial in TRIALS if "status" in trial)]


def test_no_command_costs_the_session_or_lies():
    def check(row):
        (commands, code, stdout, *more), remote = row
        words = [word for word in more if re.fullmatch(r"late|lost\??|cut|2s|far|status", str(word))]
        stderr = next((word for word in more if word not in words), "$")
        with tempfile.TemporaryDirectory() as directory:
            directory = os.path.realpath(directory)
            with hotenv.ShellSession(SECRETS, cwd=directory, timeout=20, remote=remote) as session:
                assert session.exec("echo $?; export KEPT='a b'; cd /; cd - >/dev/null").stdout == "0\n"
                for command in [commands] if isinstance(commands, str) else commands:
                    result = session.exec(command, timeout=0.3 if "late" in words else None)
                after = [session.exec("\\builtin printf '[%s]' \"$KEPT\"; \\builtin pwd", timeout=20) for _ in range(2)]
        assert result.command == command
        assert [(each.stdout, each.exit_code, each.timed_out, each.shell_restarted) for each in after] == [
            ("[a b]" + directory + "\n", 0, False, False)] * 2, (result, after)
        assert code is WHATEVER or result.exit_code == code, result
        assert stdout is WHATEVER or result.stdout == stdout, result
        assert stderr is WHATEVER or re.match(stderr, result.stderr, re.S), result
        assert "lost?" in words or result.shell_restarted == ("lost" in words), result
        assert (result.timed_out, result.truncated) == ("late" in words, "cut" in words), result
        assert result.duration_ms >= 2000 * ("2s" in words), result
    side_by_side(sorted(EVERYWHERE, key=lambda each: "lost" not in each[0]), check, 6)  # those first that take long


@both
def test_a_new_shell_has_directory_and_exports_and_no_secret_is_on_an_argv_or_in_history(remote, monkeypatch, tmp_path):
    value, sleep, home = "two\nlines 'single' \"double\" $x `y` \\ \t!", unique_sleep(), tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home)), monkeypatch.setenv("HISTFILE", str(home / "history"))
    with hotenv.ShellSession({**SECRETS, "GONE": "12345678"}, remote=remote, cwd=str(tmp_path), timeout=20) as shell:
        shell.exec(f"mkdir 'a b'; cd 'a b'; export KEPT={shlex.quote(value)}; lost=1; f() {{ :; }}; unset GONE; "
                   "export PATH=$PATH:/x")
        assert shell.exec("true").exit_code == 0 and shell.exec("exit 3").shell_restarted
        result = shell.exec("printf %s \"$KEPT\"; echo \"[$lost][${GONE-gone}]\"; pwd; echo \"${PATH##*:}\"; type -t f")
        assert not result.shell_restarted and result.cwd == shell.cwd == str(tmp_path / "a b")
        assert result.stdout == f"{value}[][gone]\n{tmp_path}/a b\n/x\n"
        assert shell.exec("printf %s \"$PEM\" | wc -c").stdout.strip() == str(len(PEM))
        for end in ("exit 3", "set -e; false", "set -e; cd /no/such", "kill -HUP $$; sleep 1", "set -u; : $nothing",
                    "f() { exit; }; f >/dev/null"):  # the line that ends the shell still counts
            result = shell.exec(f"cd {tmp_path}; export A='{end}' B=\"$TOKEN\"; {end}")
            assert (result.cwd, result.timed_out) == (str(tmp_path), False), result
            assert shell.exec("echo $A $B; pwd; unset A B; cd /").stdout == f"{end} [hidden:TOKEN]\n{tmp_path}\n"
        shell.exec(f"export X={TOKEN}; kill -9 $$")
        shell.exec(f"{sleep} & true")
        until(lambda: processes_with(sleep))
        assert not processes_with(TOKEN)
    assert os.listdir(str(home)) == []


@both
@pytest.mark.parametrize("size", [1, 200_000])
def test_a_shell_that_has_died_meanwhile_is_replaced_before_a_command_runs(size, remote, tmp_path):
    with hotenv.ShellSession(SECRETS, remote=remote, cwd=str(tmp_path), timeout=20) as shell:
        pid = shell.exec("export KEPT=x; mkdir d; cd d; (sleep 0.02; echo b; kill -9 $$) & echo $$").stdout.strip()
        until(lambda: subprocess.run(["ps", "-o", "stat=", "-p", pid], stdout=PIPE).stdout[:1] in (b"", b"Z"))
        result = shell.exec(f"echo $KEPT; pwd; echo {'x' * size} | wc -c; echo ran >>ran; cat ran")
        assert result.as_dict().items() >= {"stdout": f"x\n{tmp_path}/d\n{size + 1}\nran\n", "exit_code": 0,
            "shell_restarted": True, "timed_out": False, "background": "b\n"}.items(), result
        assert not shell.exec("true").shell_restarted


def test_what_background_jobs_print_is_never_the_next_commands_and_a_directory_may_have_any_name(shell, tmp_path):
    shell.exec("(sleep 0.05; echo late; echo err >&2; touch done) & true")
    until((tmp_path / "done").exists)
    result = shell.exec("echo a")
    assert (result.stdout, result.stderr, sorted(result.background.split())) == ("a\n", "", ["err", "late"])
    assert shell.exec("echo b").background == ""
    shell.exec("yes & echo $!")  # a pipe that fills while nobody reads
    for _ in range(3):
        result = shell.exec("echo a >&2")
        assert not result.timed_out and "a\n" in result.stderr and len(result.background) < 200_000
    assert shell.exec("kill %1 2>/dev/null || kill $!").timed_out is False
    for name, shown in [("a b", "a b"), ("a'b", "a'b"), ("a\nb", r"a\nb"), ("a\x1b[31mb", r"a\x1b[31mb"), ("-n", "-n"),
                        ("*", "*"), ("a\\nb", "a\\nb"), ("ä\udcff", r"ä\udcff")]:
        (tmp_path / name).mkdir()
        result = shell.exec(f"cd {tmp_path}/{shlex.quote(name)}")
        assert (result.exit_code, result.cwd) == (0, f"{tmp_path}/{shown}")
        assert shell.exec("kill -9 $$").shell_restarted and shell.exec("true").cwd == f"{tmp_path}/{shown}"
        (tmp_path / name / "here").touch()
        assert shell.exec("ls").stdout == "here\n"


COUNTS = """
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


@contextlib.contextmanager
def interrupted(shell, begun=lambda: True, again=True):
    """From the moment when `begun()` is true until the end of the block the shell is interrupted, often or once."""
    chance, done = random.Random(SEED), threading.Event()
    def interrupts():
        until(begun)
        shell.interrupt()
        while again and not done.is_set():
            shell.interrupt()
            time.sleep(chance.random() / 300)
    thread = threading.Thread(target=interrupts)
    thread.start()
    yield
    done.set(), thread.join()


def test_every_process_below_gets_one_interrupt_and_one_at_any_moment_or_a_second_one_costs_no_shell(shell, tmp_path):
    (tmp_path / "counts").write_text(COUNTS)
    shell.exec("kept=1")
    with interrupted(shell, lambda: (tmp_path / "begun.1").exists() and (tmp_path / "begun.2").exists(), again=False):
        result = shell.exec("bash -c 'python3 counts 1; echo go on' | (python3 counts 2 >&2; grep -v x)", timeout=60)
    assert (result.stdout, result.timed_out) == ("begun\nSIGINT\ncleaned up\ngo on\n", True)
    assert result.stderr == "begun\nSIGINT\ncleaned up\n" and not result.shell_restarted
    for _ in range(amount(200)):
        loop = shell.exec("while :; do sleep 0.03; done; echo no", timeout=0.1)
        assert (loop.stdout, loop.timed_out, loop.shell_restarted) == ("", True, False), loop
    with interrupted(shell, (tmp_path / "begun.").exists):
        result = shell.exec("python3 counts", timeout=60)
    assert result.stdout.count("SIGINT") == 1 and "cleaned up" in result.stdout and not result.shell_restarted
    with interrupted(shell):
        results = [shell.exec("sleep 5; echo no") for _ in range(amount(700))]
    assert {(each.stdout, each.timed_out, each.shell_restarted) for each in results} == {("", True, False)}
    assert shell.exec("echo $kept").stdout == "1\n"


def test_a_limit_before_a_command_begins_costs_no_shell_and_under_random_ones_each_gets_only_its_own_result(tmp_path):
    def check(limit):
        with tempfile.TemporaryDirectory() as place, hotenv.ShellSession(SECRETS, cwd=place, timeout=20) as shell:
            shell.exec("kept=1")
            for _ in range(amount(200)):
                result = shell.exec("sleep 5", timeout=limit)
                assert (result.exit_code, result.timed_out, result.shell_restarted) == (124, True, False)
            assert shell.exec("echo $kept").stdout == "1\n"
            result = shell.exec(": '\n" + "touch ran\n" * 40_000 + "'", timeout=limit)
            assert shell.exec("ls").stdout == "", result
    side_by_side([0, -1, 1e-9, 0.0003, 0.001, 0.003, 0.004, 0.01, 0.02], check, 9)
    chance, late, lost = random.Random(SEED), 0, 0
    shapes = ["echo {n}", "echo {n}; sleep {s}; echo {n}e >&2", "sleep {s}; echo {n}", "sleep {s} & wait; echo {n}",
              "echo {n}; exit {x}", "for i in 1 2 3; do echo {n}; sleep {s}; done", "/bin/echo {n} | cat",
              "seq {n} {n}; (sleep {s}; exit {x})", "echo {n}; (exit {x})", "export N={n}; cd /; echo $N",
              "exec echo {n}", "python3 -c 'print({n})'", "cat <<X\n{n}\nX", "echo {n}; kill -INT $$", "# {n}",
              "echo '{n}", "bash -c 'echo {n}; sleep {s}'"]
    with hotenv.ShellSession(SECRETS, cwd=str(tmp_path)) as shell:
        for number in range(10 ** 9, 10 ** 9 + amount(2000)):
            numbers = {"n": number, "s": f"0.0{chance.randrange(30):02}", "x": chance.randrange(1, 120)}
            command = chance.choice(shapes).format(**numbers)
            result = shell.exec(command, timeout=chance.choice((0.0001, 0.001, 0.003, 0.01, 0.03, 5)))
            seen = set(re.findall(r"1\d{9}", result.stdout + result.stderr + result.background))
            assert seen <= {str(number)} and result.timed_out == (result.exit_code == 124), (command, result)
            late, lost = late + result.timed_out, lost + result.shell_restarted
        assert shell.exec("echo alive").stdout == "alive\n"
    assert late and lost


def test_nothing_runs_on_when_a_session_is_closed_or_dropped(tmp_path):
    sleep = unique_sleep()
    with hotenv.ShellSession(cwd=str(tmp_path)) as shell:
        shell.exec(f"{sleep} & ({sleep} &) ; nohup {sleep} & disown; set -m; {sleep} & timeout 90 {sleep} &")
        until(lambda: len(processes_with(sleep)) >= 5)
        if LINUX:
            shell.exec("exit")
            until(lambda: not processes_with(sleep), patience=5)
    until(lambda: not processes_with(sleep), patience=5)
    assert isinstance(raised(shell.exec, "echo a"), hotenv.SessionPoisoned)
    shell.close()
    shell = hotenv.ShellSession()
    shell.exec(f"{sleep} & true")
    until(lambda: processes_with(sleep))
    del shell
    gc.collect()
    assert not processes_with(sleep)


@only_linux
@both
def test_nothing_of_a_session_outlives_a_host_that_is_killed(remote):
    program, sleep = """if 1:
        import sys, hotenv
        shell = hotenv.ShellSession({"TOKEN": "sk-live-51H8sVq0"}, remote=sys.argv[2] or None)
        line = "%s & (%s & set -m; timeout 99 %s &) ; trap '' INT HUP TERM; %s"
        shell.exec(line.replace("%s", sys.argv[1]), timeout=99)
        """, unique_sleep()
    host = subprocess.Popen([sys.executable, "-c", program, sleep, remote or ""],
                            env={**os.environ, "PYTHONPATH": str(HERE)})
    until(lambda: len([row for row in processes_with(sleep) if "python" not in row]) >= 4)
    host.kill(), host.wait()
    until(lambda: not processes_with(sleep))


def test_threads_get_each_their_own_result_and_sessions_and_a_forked_child_ends_nothing_of_its_parent(shell):
    def work(number):
        own = hotenv.ShellSession(SECRETS)
        assert own.exec(f"echo {number} $TOKEN").stdout == f"{number} [hidden:TOKEN]\n"
        return own, [shell.exec(f"echo {number}.{step}; echo {number} >&2").stdout for step in range(20)]
    def leaves():
        with shell:
            return not isinstance(raised(shell.exec, "echo a"), hotenv.SessionPoisoned)
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(6)))
    assert [said for _, said in results] == [[f"{number}.{step}\n" for step in range(20)] for number in range(6)]
    for own, _ in results:  # which outlive the threads
        with own:
            result = own.exec("sleep 0.1; echo a")
            assert (result.stdout, result.shell_restarted) == ("a\n", False)
    shell.exec("kept=1")
    assert in_child(leaves) == 0
    with ThreadPoolExecutor(1) as pool:  # also while a command runs
        running = pool.submit(shell.exec, "sleep 0.3; echo $kept")
        until(lambda: processes_with("sleep 0.3"))
        assert in_child(lambda: shell.close() or 0) == 0
    assert (running.result().stdout, running.result().shell_restarted) == ("1\n", False)


def test_a_session_leaves_no_descriptor_and_no_zombie_behind_and_without_descriptors_it_is_refused(tmp_path):
    told = in_python("""
        import gc, os, resource, hotenv
        def ours():
            return len(os.listdir("/dev/fd"))
        with hotenv.ShellSession(audit="audit") as shell:
            shell.exec("exit")
        before = ours()
        for remote in (None, "sh", None):
            with hotenv.ShellSession(remote=remote, audit="audit") as shell:
                shell.exec("exit")
                shell.exec("true")
        shell = hotenv.ShellSession()  # which is dropped
        shell.exec("sleep 30 & true")
        del shell
        gc.collect()
        for bad in ({"remote": "/no/such/program"}, {"remote": "false"}, {"cwd": "/no/such/directory"},
                    {"audit": "/no/such/directory/audit"}):
            try:
                hotenv.ShellSession(**bad)
            except hotenv.HotenvError:
                print("refused")
        print(ours() - before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (260, 260))
        shells, held, before = [], [os.open(os.devnull, 0) for _ in range(180)], ours()
        try:
            for _ in range(99):
                shells.append(hotenv.ShellSession())
        except hotenv.HotenvError as error:
            print(error.code, "bash" in str(error))
        while shells:
            shells.pop().close()
        print(ours() - before)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child")
        """, cwd=str(tmp_path))
    assert told.split("\n") == ["refused"] * 4 + ["0", "8 True", "0", "no child", ""]


def test_a_session_that_cannot_come_back_says_so_and_refuses(tmp_path):
    door, audit = tmp_path / "door", tmp_path / "audit"
    executable(door, "#!/bin/sh\nexec sh\n")
    with hotenv.ShellSession(SECRETS, remote=str(door), audit=str(audit)) as shell:
        assert shell.exec("echo a").stdout == "a\n"
        door.write_text(f"#!/bin/sh\necho 'bad key {TOKEN}' >&2; exit 7\n")
        assert shell.exec("exit 3").exit_code == 3
        for _ in range(2):
            error = raised(shell.exec, "echo a")
            assert isinstance(error, hotenv.SessionPoisoned) and error.code == 8 and TOKEN not in str(error)
            assert "status 7" in str(error) and "bad key" in str(error)
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["start", "end", "start", "end", "start", "failed"]
    assert "status 7" in lines[-1]["reason"] and TOKEN not in audit.read_text()


def test_a_session_that_cannot_open_says_why_and_what_cannot_be_sent_or_is_no_limit_is_refused(shell, tmp_path):
    for options, code, words in [
            ({"remote": "false"}, 8, "status 1"), ({"remote": "no-such-program"}, 8, "No such file"),
            ({"remote": "sh", "cwd": "/no/such"}, 8, "directory"), ({"remote": "sh", "isolated": True}, 2, "isolated"),
            ({"cwd": "/no/such"}, 2, "directory"), ({"remote": ""}, 2, "command"), ({"remote": "ssh 'x"}, 2, "command"),
            ({"policy": {"allowed": []}}, 2, "JSON"), ({"policy": "/no/such"}, 8, "policy"),
            *(({"timeout": limit}, 2, "time limit") for limit in (float("nan"), "5", [1])),
            *(({"environment": {name: "1"}}, 2, "name") for name in ("A=B", "", 1)),
            *(({"environment": {"A": value}}, 2, "value") for value in (1, "x\0y", "\ud800"))]:
        error = raised(hotenv.ShellSession, **{"environment": SECRETS, **options})
        assert error.code == code and re.search(words, str(error)), (options, error)
    for text in (b"", b"[]", b"{", b'{"allow": "ls"}', b'{"allow": [1]}', b'{"block": []}', b'{"deny": null}',
                 b"[" * 100000, b'"\\ud800"', b"\xff"):
        (tmp_path / "policy").write_bytes(text)
        assert raised(hotenv.ShellSession, policy=str(tmp_path / "policy")).code == 2, text[:99]
    for command, limit in [("true", float("nan")), ("true", "5"), ("true", [1]), ("echo a\0b", 9), ("echo \ud800", 9),
                           ("x" * (16 << 20) + "y", 9)]:
        assert raised(shell.exec, command, timeout=limit).code == 2
        assert shell.exec("echo a", timeout=float("inf")).stdout == "a\n"


def test_interrupt_and_close_from_a_thread_or_a_handler_end_a_command_an_exception_leaves_no_output(shell, tmp_path):
    with interrupted(shell, (tmp_path / "begun").exists, again=False):
        result = shell.exec("echo a; touch begun; sleep 30")
    assert (result.stdout, result.timed_out, result.exit_code, result.shell_restarted) == ("a\n", True, 124, False)
    os.kill(int(shell.exec("echo $$").stdout), signal.SIGSTOP)  # the limit holds, and the shell goes on
    assert not shell.exec("sleep 30", timeout=0.2).shell_restarted
    mine, sleep = threading.get_ident(), unique_sleep()
    earlier = {number: signal.signal(number, handler) for number, handler in (
        (signal.SIGUSR1, lambda signum, frame: other.close()), (signal.SIGALRM, signal.default_int_handler),
        (signal.SIGINT, signal.SIG_IGN))}
    try:
        other = hotenv.ShellSession()  # whose caller ignores interrupts
        other.exec("kept=1")
        assert other.exec("sleep 30", timeout=0.2).timed_out and other.exec("echo $kept").stdout == "1\n"
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            shell.exec("sleep 0.3; echo old; touch old")
        result = shell.exec("sleep 0.3; echo new; ls")
        assert (result.stdout, result.background, result.shell_restarted) == ("new\nbegun\n", "", True)
        for each, close in (shell, shell.close), (other, lambda: signal.pthread_kill(mine, signal.SIGUSR1)):
            threading.Thread(target=lambda: until(lambda: processes_with(sleep)) and close()).start()
            assert isinstance(raised(each.exec, sleep), hotenv.SessionPoisoned) and not processes_with(sleep)
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def test_the_shell_gets_the_host_environment_and_the_secrets_over_it(monkeypatch):
    monkeypatch.setenv("FROM_HOST", "host"), monkeypatch.setenv("TOKEN", "other")
    with hotenv.ShellSession({**SECRETS, "a.b": "12345678"}) as shell:
        assert shell.exec("echo $FROM_HOST ${#TOKEN}").stdout == f"host {len(TOKEN)}\n"
        assert shell.unmaskable == ["PIN"] and shell.omitted == [] and "a.b=[" in shell.exec("env").stdout
        assert shell.exec("ls /proc/self/fd | wc -l").stdout == "4\n"  # 0, 1, 2 and the directory
    with hotenv.ShellSession({**SECRETS, "a.b": "12345678"}, remote="sh") as shell:
        assert shell.omitted == ["a.b"]  # which a remote shell cannot take
    with hotenv.ShellSession(SECRETS, isolated=True) as shell:
        assert shell.exec("echo [$FROM_HOST] ${#TOKEN} ${PATH:+path}").stdout == f"[] {len(TOKEN)} path\n"
    with hotenv.ShellSession() as shell:
        assert shell.exec("echo $TOKEN").stdout == "other\n"


EVIL = {"BASH_ENV": "{evil}", "ENV": "{evil}", "PROMPT_COMMAND": ". {evil}", "PS0": "$(. {evil})", "PS1": "$(. {evil})",
        "PS4": "$(. {evil})", "SHELLOPTS": "xtrace:errexit", "BASHOPTS": "extdebug", "TMOUT": "1", "IGNOREEOF": "9",
        "POSIXLY_CORRECT": "1", "BASH_FUNC_printf%%": "() {{ . {evil}; }}", "BASH_FUNC_builtin%%": "() {{ . {evil}; }}"}


@pytest.mark.parametrize("given", [False, True], ids=["host", "given"])
@pytest.mark.parametrize("name", EVIL)
def test_no_variable_makes_the_shell_run_something(name, given, monkeypatch, tmp_path):
    (tmp_path / "evil").write_text(f"echo evil; touch {tmp_path}/ran")
    value = EVIL[name].format(evil=tmp_path / "evil")
    environment = {name: value} if given and not name.startswith("BASH_FUNC") else {}
    if not environment:
        monkeypatch.setenv(name, value)
    with hotenv.ShellSession(environment) as shell:
        result = shell.exec("set -o | grep -c 'posix.*on'; printf a", timeout=5)
        assert (result.stdout, result.stderr, result.shell_restarted) == ("0\na", "", False)
        assert shell.omitted == [each for each in environment if each != "ENV"]
    assert not (tmp_path / "ran").exists()


def test_nothing_that_comes_back_holds_a_value_but_of_names_that_no_mask_lists_and_directories(shell, tmp_path):
    (tmp_path / TOKEN).mkdir()
    result = shell.exec(f"cd {TOKEN}; echo $TOKEN; echo $TOKEN >&2; printf '%s' \"$PEM\"; echo $TOKEN | base64; "
                        f"no_$TOKEN; echo '{TOKEN}'")
    assert TOKEN not in repr(result) + repr(result.as_dict()) and "MIIEvQ" not in result.stdout
    assert all("hidden:TOKEN" in text for text in (result.command, result.stdout, result.stderr, result.cwd))
    shell.exec("(sleep 0.05; echo $TOKEN; echo x >g) &")
    until((tmp_path / TOKEN / "g").exists)
    assert "hidden:TOKEN" in shell.exec("true").background and TOKEN not in shell.cwd
    for written in (r"\e[1m%s\e[0m", r"%.6s\e[31m%s", r"\r%s", r"%.5s\0%s", r"a\r\n%s\r\n", r"%.4s\a%s",
                    r"...%.6s%s\r...", r"Token: %s\rToken: ******\n", r"Token: %.6s\e[0m%s\rToken: ***\n",
                    r"......%.1s%s\r......\n"):
        cut = re.search(r"%\.(\d)s", written)
        said = shell.exec(f"printf '{written}' {TOKEN} {TOKEN[int(cut[1]):] if cut else ''}").stdout
        assert "hidden" in said or "TOKEN]" in said, (written, said)
        assert not any(TOKEN[at:at + 5] in said for at in range(len(TOKEN) - 4)), (written, said)
    assert shell.exec(f"printf 'xxxxxx%s\\r%s' '{TOKEN[6:]}' '{TOKEN[:6]}'").stdout == "[hidden:TOKEN]"
    with hotenv.ShellSession({"ODD": "first\x1b[31msecond\x07third\r\nfourth"}) as shell:  # masked before it is cleaned
        said = shell.exec("printf 'a %s b' \"$ODD\"").stdout
        assert said.startswith("a [hidden:ODD]") and "second" not in said
    given = {"LEVEL": "verbose-mode", "AWS_REGION": "eu-central-1", "AWS_ZONE": "eu-central-1a", "TOKEN": TOKEN,
             "HOME": str(tmp_path), "BELOW": str(tmp_path / "below")}
    (tmp_path / "below" / TOKEN).mkdir(parents=True)
    with hotenv.ShellSession(given, cwd=str(tmp_path), no_mask=["LEVEL", "AWS_*"]) as shell:
        result = shell.exec("echo $LEVEL $AWS_REGION $AWS_ZONE $TOKEN")
        assert result.stdout == "verbose-mode eu-central-1 eu-central-1a [hidden:TOKEN]\n"
        assert result.cwd == shell.cwd == str(tmp_path)
        assert shell.exec(f"cd below/{TOKEN}").cwd == f"{tmp_path}/below/[hidden:TOKEN]"


def test_output_is_cut_to_head_and_tail_with_the_exact_count_and_no_part_of_a_value_is_left_there(tmp_path):
    with hotenv.ShellSession(max_output=1000) as shell:
        result = shell.exec("seq 1 100000; seq 1 200 >&2")
        size = sum(len(str(number)) + 1 for number in range(1, 100001))
        assert result.truncated and len(result.stdout) < 1100 and f"[hotenv: {size} bytes in all" in result.stdout
        assert result.stdout.startswith("1\n2\n") and result.stdout.endswith("\n99999\n100000\n")
        assert result.stderr == "".join(f"{number}\n" for number in range(1, 201))
        for size in 1000, 1001:
            assert shell.exec(f"head -c {size} /dev/zero | tr '\\0' x").truncated == (size > 1000)
    with hotenv.ShellSession(max_output=-1) as shell:  # as 0
        assert shell.exec("echo a").stdout.strip().startswith("[hotenv: 2 bytes")
    chance = random.Random(SEED)
    secret = "".join(chance.choice("abcdefghijklmnop") for _ in range(120))
    with hotenv.ShellSession({"LONG": secret}, max_output=400, cwd=str(tmp_path)) as shell:
        for escapes in ["", "\x1b[31m" * 20] * amount(1000):
            text = (escapes + "." * chance.randrange(1, 40) + secret) * chance.choice((1, 3, 9, 30, 60, 200))
            (tmp_path / "text").write_text(text)
            result = shell.exec("cat text")
            left = re.sub(r"\[hidden:LONG\]", "", result.stdout)
            assert not any(secret[at:at + 6] in left for at in range(len(secret) - 5)), result.stdout
            assert result.truncated == ("[hotenv: " in result.stdout) and len(result.stdout) < 480


@only_linux
@both
def test_memory_stays_flat_however_much_is_printed(remote):
    told = in_python("""
        import hotenv, sys
        shell = hotenv.ShellSession({"A": "12345678"}, remote=sys.argv[1] or None)
        def most():
            return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
        floods = ["head -c %d /dev/zero", "yes | head -c %d", "head -c %d /dev/zero >&2"]
        before = [shell.exec(flood % 9_000_000, timeout=60) and most() for flood in floods * 2][-1]
        for flood in floods:
            result = shell.exec(flood % 60_000_000, timeout=60)
            print(most() - before < 4096 or most() - before, result.truncated, result.timed_out)
        """, remote or "")
    assert told == "True True False\n" * 3


FIRST_WORDS = {  # of each simple command
    "ls -l": "ls", "a=1 b=$x ls; rm x": "ls rm", "if true; then echo a; else rm b; fi": "true echo rm",
    "for x in a b; do echo $x; done": "echo", "for ((i=0;i<3;i++)); do git x; done": "git", "f() { rm x; }; f": "rm f",
    "f () ( rm x )": "rm", "while read l; do x; done < <(gen)": "read x gen", "echo $(rm -rf `pwd`)": "echo rm pwd",
    "echo \"a $(curl x) b\" 'no $(x)'": "echo curl", "cat <<'EOF'\n$(sudo x)\nEOF\nls": "cat ls",
    "cat <<-EOF; mv\n\trm\n\tEOF\nls": "cat mv ls", "cat <<A <<B\nrm\nA\nrm\nB\nls": "cat ls",
    "2>/dev/null ls >x 2>&1 <y": "ls", "r'm' x; \\rm y; \"rm\" z; r\"\"m; [ a ]": "rm rm rm rm [",
    "[[ a && b ]] && c": "c", "(( i = (2+3)*2 )) && d": "d", "(rm x)": "rm", "( (rm x); ls)": "rm ls",
    "a=(x y z); ls": "ls", "declare -a b=(q 'r s' \"$t\"); ls": "declare ls", "time -p make": "make", "\trm": "rm",
    "diff <(sort a) <(uniq b)": "diff sort uniq", "! grep x | tee y |& wc && a || b & c": "grep tee wc a b c", "": "",
    "# rm\nls # rm": "ls", "echo a#b; ls": "echo ls", "(a)#b\nc": "a c",
    "x=$(cmd \"$(inner)\")": "cmd inner", "/bin/rm x": "/bin/rm",
    "{ a; b; } && (c; d)": "a b c d", "echo a\\\nb; next": "echo next", "foo&>x; bar &>> y": "foo bar",
    "cmd <<< 'rm'; ls": "cmd ls", "until a; do b; done": "a b", "a\nb\n\nc": "a b c",
    "echo $'it\\'s'; ls": "echo ls", 'echo "a;b"; ls': "echo ls", "echo {a,b}; ls": "echo ls",
    "echo 'a\nrm\n'; ls": "echo ls", "echo \"it's\"; rm": "echo rm", "a && { b || c; } | d": "a b c d",
    "for ((;;)) do sudo ls; done": "sudo", "su\\\ndo x": "sudo", "s\\udo x; 'su'do y": "sudo sudo",
    "A=1 [[ ; sudo x; [[ a ]]": "[[ sudo", "for x do sudo; done": "sudo"}
NOT_FOLLOWED = [
    "echo '", 'echo "', "echo $(", "echo `", "case x in", ")", "ls !(a)", "${", "$((", "(" * 10000, "cat <<X\na",
    "case $x in a|b) foo;; (c) bar ;; esac", "select x in a; do b; done", "echo [[ a ]]", "echo `a \\`rm\\``",
    "coproc N { sudo ls; }", "function f { a; }", "echo \"${x:-`rm`}\"", 'x="${a:-"}"', "echo ${x@P}",
    "cat <<E\"O\"F\nE\nEOF\n", "$(cat <<A)\nsudo\nA", "$CMD q", '"$(rm x)" y', "`echo a`", "{fd}>/dev/null id"]
SUDO = [  # in every everyday spelling
    '"[[" ; sudo ls; echo "]]"', "A=1 case x; sudo ls", "echo a\\\n#; sudo ls", "\"$'\"; sudo ls; echo \"'\"",
    '"${x:-\'}"; sudo ls; echo "\'}"', "cat <<EOF\n\tEOF\n'\nEOF\nsudo ls\necho '",
    "[[ a == ' ]] ' ]]; sudo ls; echo ' '", "sudo ls\n ()", "cat <<X\n$(sudo ls)\nX", "cat <<X\n\"$(sudo ls)\"\nX",
    "a=$(sudo ls)", "a=($(sudo ls))", "echo ${a[$(sudo ls)]}", "((a[$(sudo ls)]))", "case x in $(sudo ls)) a;; esac",
    "[[ $(sudo ls) ]]", "if ! sudo ls; then :; fi", "case a in b) ;; esac; sudo ls", "case a in esac\nsudo ls",
    "function f { sudo ls; }", "function f () { sudo ls; }", "coproc sudo ls", "select x in a; do sudo ls; done",
    "for ((i=0;i<1;i++)) { sudo ls; }", "case x in (a) sudo ls;; esac", "case x in a) b ;& c) sudo ls;; esac",
    "a\r\nsudo ls", "echo \"`sudo ls`\"", "echo $(date)#x; sudo ls", "echo \\ #; sudo ls", "echo \\;# ; sudo ls",
    "echo $((1+1))#x; sudo ls", "echo <(true)#; sudo ls", "a=(1)#; sudo ls", "ls \r#x; sudo ls", "S=sudo; $S ls",
    "$(echo sudo) ls", "{sudo,ls}", "$'su\\x64o' ls", "a[1 + 2]=5 sudo ls", "/usr/bin/sud? ls", "{fd}>x sudo ls"]


def test_a_policy_sees_the_first_word_of_every_simple_command_in_linear_time_and_refuses_what_it_cannot_follow():
    for command, words in FIRST_WORDS.items():
        for word in set(words.split()):
            assert "is denied" in hotenv._denied({"deny": [word]}, command), command
            others = [each for each in words.split() if each != word]
            assert "not among" in hotenv._denied({"allow": others}, command), command
        assert hotenv._denied({"allow": words.split(), "deny": ["no"]}, command) == "", command
    for command in NOT_FOLLOWED:
        assert hotenv._denied({"deny": []}, command) == "its commands cannot be told apart", command[:99]
    assert not [command for command in SUDO if hotenv._denied({"deny": ["sudo"]}, command) == ""]
    for piece in ("echo $(", "a;", "'a' ", '"a" ', "# x\n", "`a` ", "<<A\n", "((1)) ", "${a", "\\", "((1+(2)",
                  "case a in b) c;; esac\n", "a=(", "(", "[[ ", "case x in ", "a=('x' ", '"', "<<A ", "\\\n"):
        begun = time.process_time()
        hotenv._denied({"deny": []}, piece * (40_000 // len(piece)))
        assert time.process_time() - begun < 1, piece


def test_a_policy_file_allows_and_denies_and_the_audit_has_a_line_for_the_start_and_the_end_of_every_command(tmp_path):
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
    assert hotenv._denied({"allow": []}, "ls") and not hotenv._denied({}, "ls")
    path = tmp_path / "audit.2"
    executable(path, '{"event": "earlier"}\n', 0o644)
    with hotenv.ShellSession(SECRETS, audit=str(path), cwd=str(tmp_path)) as shell:
        for command, limit in (f"echo {TOKEN}\x1b", None), ("false", None), ("exit 3", None), ("sleep 30", 0.1):
            shell.exec(command, timeout=limit)
        text = path.read_text()
        path.rename(tmp_path / "rotated")  # it follows its path when the file is rotated
        shell.exec("echo two")
        path.unlink()
        shell.exec("echo three")
    assert (tmp_path / "rotated").read_text() == text
    third = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["event"], line.get("command")) for line in third] == [("start", "echo three"), ("end", None)]
    lines = [json.loads(line) for line in text.splitlines()]
    assert TOKEN not in text and all(line.isprintable() for line in text.splitlines())
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "rotated").stat().st_mode) == 0o600
    assert lines[0] == {"event": "earlier"} and len({line["session"] for line in lines[1:]}) == 1
    assert [(line["event"], line["id"]) for line in lines[1:]] == [
        (event, step) for step in (1, 2, 3, 4) for event in ("start", "end")]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", lines[1]["time"])
    ends = lines[2::2]
    assert [(end["exit_code"], end["timed_out"], end["shell_restarted"]) for end in ends] == [
        (0, False, False), (1, False, False), (3, False, True), (124, True, False)]
    assert ends[0]["cwd"] == str(tmp_path) and "stdout" not in ends[0]
    assert lines[1]["command"] == "echo [hidden:TOKEN]\x1b"


def test_an_audit_that_is_no_plain_file_and_a_command_whose_line_cannot_be_written_are_refused(tmp_path, capfd):
    path, target = tmp_path / "audit", tmp_path / "target"
    for kind in "link", "hard link", "directory", "fifo", "/dev/null", "/no/such/audit":
        target.write_text("precious\n")
        os.link(str(target), str(path)) if kind == "hard link" else planted(path, kind)
        error = raised(hotenv.ShellSession, audit=kind if "/" in kind else str(path))
        assert error.code == 8 and "audit" in str(error) and target.read_text() == "precious\n", kind
        if "/" not in kind:
            path.rmdir() if kind == "directory" else path.unlink()
    with hotenv.ShellSession(audit=str(path), cwd=str(tmp_path)) as shell:
        shell.exec("true")
        size, limits = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
        start = len(path.read_bytes().splitlines(True)[0]) + 3  # of `touch b`
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            for room_left in (0, 20):
                resource.setrlimit(resource.RLIMIT_FSIZE, (size + room_left, limits[1]))
                with pytest.raises(hotenv.HotenvError, match="cannot write the audit"):
                    shell.exec("touch ran")
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + start + 1, limits[1]))
            assert shell.exec("touch b").exit_code == 0 and (tmp_path / "b").exists()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not (tmp_path / "ran").exists() and "cannot write the audit" in capfd.readouterr().err
        assert shell.exec("echo a").stdout == "a\n"
    whole = []
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):
            whole.append((json.loads(line)["event"], json.loads(line)["id"]))
    assert whole == [("start", 1), ("end", 1), ("start", 4), ("start", 5), ("end", 5)]


def test_a_session_over_ssh_does_what_a_local_one_does(host, tmp_path):
    with hotenv.ShellSession(SECRETS, remote=host.command, cwd=str(tmp_path), timeout=20) as shell:
        result = shell.exec("echo ${#TOKEN}; echo $TOKEN >&2; printf %s \"$PEM\" | wc -c; test -n \"$SSH_CONNECTION\"")
        assert result.as_dict().items() >= {"stdout": f"{len(TOKEN)}\n{len(PEM)}\n", "stderr": "[hidden:TOKEN]\n",
            "exit_code": 0, "cwd": str(tmp_path)}.items()
        shell.exec("export KEPT=x; mkdir d; cd d; unset PIN")
        result = shell.exec("echo a; exit 7")
        assert (result.stdout, result.exit_code, result.shell_restarted) == ("a\n", 7, True)
        assert shell.exec("echo $KEPT [${PIN-gone}]; pwd").stdout == f"x [gone]\n{tmp_path}/d\n"
        assert shell.exec("kill -9 $$").exit_code == 137 and shell.exec("true").exit_code == 0  # there again
        sleep = unique_sleep()
        late = shell.exec(f"echo a; {sleep}", timeout=0.5)
        assert (late.stdout, late.exit_code, late.timed_out, late.shell_restarted) == ("a\n", 124, True, True)
        assert shell.exec("echo $KEPT; pwd").stdout == f"x\n{tmp_path}/d\n"
        until(lambda: not processes_with(sleep))
        assert shell.exec("seq 1 200000 | tail -1; cat").stdout == "200000\n" and not processes_with(TOKEN)
    away = raised(hotenv.ShellSession, SECRETS, remote=[*host.command[:-1], "-l", "nobody-here", "host"])
    assert re.search("(?i)ended with status 255.*(denied|permission)", str(away))


# ==== mcp =============================================================================================================
# What an agent may ask for over stdin, and what it is told.


def as_dotenv(snapshot):
    quoted = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in snapshot.items()}
    return "".join(f"{name}='{value}'\n" for name, value in quoted.items()).encode()


class Mcp:
    """`hotenv mcp` by raw JSON lines, in a project whose session holds `SECRETS`."""

    def __init__(self, project, *options, serve=()):
        self.project, self.count, self.dir = project, 0, project.dir
        self.start_session(SECRETS, *serve)
        deaf = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}  # what is ignored stays so
        self.process = project.start("mcp", *options, stdin=PIPE, stdout=PIPE, stderr=PIPE, **deaf)

    def start_session(self, snapshot, *options):
        self.session = self.project.serve(as_dotenv(snapshot), "--force", *options)

    def send(self, *messages):
        for each in messages:
            line = each if isinstance(each, bytes) else json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n"
            self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def ask(self, method, number=None, **params):
        self.count += 1
        number = self.count if number is None else number
        self.send({"id": number, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == number
        return answer["result"] if "result" in answer else answer["error"]

    def begin(self, number, command, session="s1"):
        self.send({"id": number, "method": "tools/call",
                   "params": {"name": "session_exec", "arguments": {"session": session, "command": command}}})

    def tool(self, name, **arguments):
        result = self.ask("tools/call", name=name, arguments=arguments)
        text = result["content"][0]["text"]
        return text if result["isError"] else json.loads(text)

    def exec(self, command, session="s1", **arguments):
        return self.tool("session_exec", session=session, command=command, **arguments)


@pytest.fixture
def mcp(project):
    server = Mcp(project)
    assert server.tool("session_open")["session"] == "s1"
    return server


def test_an_agent_learns_of_the_tools_and_opens_uses_and_closes_a_session(project, tmp_path):
    mcp = Mcp(project, "--remote", "web=ssh -T web", "--remote", "db=docker exec -i db bash")
    known = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    for offered in (*known, "2099-01-01", "", None, 7):  # the version is the client's or our newest
        hello = mcp.ask("initialize", protocolVersion=offered, capabilities={}, clientInfo={"name": "t"})
        assert hello["protocolVersion"] == (offered if offered in known else known[-1])
    assert hello["serverInfo"]["name"] == "hotenv" and "tools" in hello["capabilities"]
    mcp.send({"method": "notifications/initialized"})
    assert mcp.ask("ping") == {}
    tools = mcp.ask("tools/list")["tools"]
    assert len(json.dumps(tools)) < 4096
    assert [tool["name"] for tool in tools] == ["session_open", "session_exec", "session_list", "session_close"]
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)
    assert tools[0]["inputSchema"]["properties"]["remote"]["enum"] == ["db", "web"]
    opened = mcp.tool("session_open", cwd=str(tmp_path))
    assert opened == {"session": "s1", "cwd": str(tmp_path), "secrets": sorted(SECRETS), "unmaskable": ["PIN"],
                      "not_exported": []}
    result = mcp.exec("export A=1; cd /; echo $TOKEN; echo $TOKEN >&2; false")
    assert list(result) == ["stdout", "stderr", "exit_code", "duration_ms", "cwd", "truncated", "timed_out",
                            "shell_restarted", "background"]
    assert (result["stdout"], result["stderr"]) == ("[hidden:TOKEN]\n", "[hidden:TOKEN]\n")
    assert (result["exit_code"], result["cwd"]) == (1, "/") and mcp.exec("exit 3")["exit_code"] == 3
    assert mcp.exec("echo $A ${#TOKEN}; sleep 9", timeout=0.2)["exit_code"] == 124
    mcp.begin(99, "cat >/dev/null <<X\n" + "x" * 20_000 + "\nX")
    assert len(json.dumps(mcp.receive())) < 500  # an answer does not grow with the command
    assert mcp.tool("session_list") == [{"session": "s1", "where": "this machine", "cwd": "/"}]
    assert mcp.tool("session_close", session="s1") == {"closed": "s1"} and mcp.tool("session_list") == []
    assert "session_open" in mcp.exec("true")
    if LINUX:  # others of the same user cannot read it
        assert os.stat(f"/proc/{mcp.process.pid}/environ").st_uid == 0
        assert re.search("core file size +0 ", Path(f"/proc/{mcp.process.pid}/limits").read_text())
    mcp.send({"id": "last", "method": "tools/call", "params": {"name": "session_open"}}), mcp.process.stdin.close()
    assert mcp.receive()["id"] == "last" and mcp.process.wait(20) == 0  # what was asked before the end is answered


def test_each_call_is_a_use_that_keeps_a_shell_beyond_the_idle_timeout_and_max_age_bounds_it(project):
    server = Mcp(project, serve=("--timeout", "0.6s", "--max-age", "2.5s", "--verbose"))
    server.tool("session_open")
    begun, told = time.monotonic(), []
    while "stdout" in server.exec("sleep 0.1"):
        told.append(time.monotonic() - begun)
    assert 1 < told[-1] < 3 and server.tool("session_list") == []
    assert [line.split()[-1] for line in project.log_lines()] == ["session_open", *["session_exec" for _ in told]]


BROKEN_LINES = {  # the code of the error: lines, where JSON is meant with what a good line has besides
    -32700: [b"nonsense", b"{", b"\xff\xfe", b"[" * 100000, b"x" * (40 << 20)],
    -32600: [b"null", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"7", b'"x"', b"{}", {"jsonrpc": "1.0"},
             b'{"jsonrpc":"2.0","id":1}', {"method": 5}, {"id": None}, {"id": [1]}, {"id": True}],
    -32602: [{"params": []}, {"method": "tools/call"}, *({"method": "tools/call", "params": params} for params in (
        {"name": "x"}, {"name": ["session_list"]}, {"name": "session_list", "arguments": [1]}))],
    -32601: [{"method": "no/such"}, {"method": "server/discover"}, {"method": "x\x1b[31m\ud800"}]}


def test_no_line_upsets_the_server_and_wrong_arguments_are_explained_to_the_agent(project):
    server, command = Mcp(project), {"session": "s1", "command": "x"}
    for code, lines in BROKEN_LINES.items():
        for line in lines:
            server.send(line + b"\n" if isinstance(line, bytes) else {"id": 1, "method": "ping", **line})
            assert server.receive()["error"]["code"] == code, str(line)[:99]
    for silent in (b"\n", b" \r\n", {"method": "no/such"}, {"id": 9, "result": {}}, {"method": "x", "params": 3},
                   *({"method": "notifications/cancelled", **more} for more in (
                       {}, {"params": {"requestId": {}}}, {"params": {"requestId": 77}}))):
        server.send(silent)
    assert server.ask("ping", "a string") == {}
    for tool, arguments, words in [
            ("exec", {}, "session is missing"), ("exec", {"session": "s1"}, "command is missing"),
            ("exec", {**command, "session": 1}, "string"), ("close", {"session": [1]}, "string"),
            ("exec", {**command, "session": "s9"}, "session_open"),
            *(("exec", {**command, "timeout": limit}, "86400") for limit in (-1, 0, float("nan"))),
            *(("exec", {**command, "timeout": limit}, "number") for limit in ("9", True)),
            ("exec", {**command, "shell": "x"}, "no argument shell"), ("open", {"remote": "x"}, "no argument remote"),
            ("open", {"cwd": "/no/such"}, "no directory"), ("open", {"isolated": "yes"}, "boolean"),
            ("close", {"session": "s9"}, "session_open"), ("list", {"x": 1}, "no argument")]:
        assert words in server.tool("session_" + tool, **arguments), (tool, arguments)


def test_commands_run_in_order_hold_up_no_other_session_and_end_when_cancelled_closed_or_without_a_hotenv_session(mcp):
    for step in range(20):
        mcp.begin(100 + step, f"x=$x.{step}; echo $x")
    texts = [json.loads(mcp.receive()["result"]["content"][0]["text"])["stdout"] for _ in range(20)]
    assert texts == ["".join(f".{step}" for step in range(upto + 1)) + "\n" for upto in range(20)]
    mcp.tool("session_open")
    mcp.begin("slow", "touch begun; sleep 30; echo slow")
    mcp.begin("queued", "echo queued"), mcp.begin("never", "touch never")
    assert mcp.exec("echo quick", "s2")["stdout"] == "quick\n" and mcp.ask("ping") == {}
    until((mcp.dir / "begun").exists)
    for number in ("never", "slow"):
        mcp.send({"method": "notifications/cancelled", "params": {"requestId": number, "reason": "x"}})
    answer = mcp.receive()
    assert answer["id"] == "queued" and '"stdout": "queued\\n"' in answer["result"]["content"][0]["text"]
    assert mcp.exec("echo after")["stdout"] == "after\n" and not (mcp.dir / "never").exists()
    mcp.begin("slow", "rm begun; sleep 30")
    until(lambda: not (mcp.dir / "begun").exists())
    close = {"name": "session_close", "arguments": {"session": "s1"}}
    mcp.send({"id": "close", "method": "tools/call", "params": close})
    answers = {answer["id"]: answer["result"] for answer in (mcp.receive(), mcp.receive())}
    assert answers["slow"]["isError"] and not answers["close"]["isError"]
    third, sleep = mcp.tool("session_open")["session"], unique_sleep()
    mcp.exec(f"{sleep} & true", third)
    until(lambda: processes_with(sleep))
    assert ended(mcp.session, signal.SIGTERM) == 0
    told = mcp.exec("echo $TOKEN", "s2")
    assert "s2" in told and third in told and "serve" in told and "session_open" in told
    until(lambda: not processes_with(sleep), patience=10)
    assert mcp.tool("session_list") == [] and "serve" in mcp.tool("session_open")
    mcp.start_session({"OTHER": "another value", "TOKEN": TOKEN})
    older = mcp.tool("session_open")
    mcp.project.marker.unlink()  # so that the next session stands beside this one
    mcp.start_session({"TOKEN": "another new value"})
    newer = mcp.tool("session_open")
    for opened, names, size in (older, ["OTHER", "TOKEN"], len(TOKEN)), (newer, ["TOKEN"], 17):
        said = mcp.exec("printf '%s.' ${#TOKEN}; echo $TOKEN", opened["session"])["stdout"]
        assert opened["secrets"] == names and said == f"{size}.[hidden:TOKEN]\n"


@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "not read"])
def test_however_it_ends_its_shells_end_with_it(end, mcp):
    sleep, process = unique_sleep(), mcp.process
    mcp.exec(f"{sleep} & true")
    if end == "not read":  # a client that does not read keeps no shell alive
        for number in range(100, 106):
            mcp.begin(number, "head -c 90000 /dev/zero | tr '\\0' a")
        until(lambda: select.select([process.stdout], [], [], 0)[0], "an answer, which nobody reads")
        mcp.send({"id": 1, "method": "ping"})
    else:
        mcp.begin(1, f"{sleep}; true")
        until(lambda: len(processes_with(sleep)) == 2)
    process.stdin.close() if end == "eof" else process.send_signal(getattr(signal, end, signal.SIGTERM))
    assert process.wait(10) == (-9 if end == "SIGKILL" else 0)
    until(lambda: not processes_with(sleep), patience=0.5 if end in ("eof", "SIGTERM", "SIGINT", "SIGHUP") else 10)
    assert process.stderr.read() == b""


def test_nothing_but_answers_is_on_stdout_no_value_anywhere_and_policy_audit_and_no_mask_hold(project, tmp_path):
    (tmp_path / "policy").write_text('{"deny": ["rm"]}')
    server = Mcp(project, "--audit", str(tmp_path / "audit"), "--remote", "here=sh", "--remote",
                 f"bad=sh -c 'echo {TOKEN} >&2; exit 1'", "--policy", str(tmp_path / "policy"))
    seen = [server.ask("initialize"), server.ask("tools/list"), *(server.tool("session_open", **given) for given in (
        {}, {"remote": "here"}, {"remote": "bad"}, {"isolated": True}, {"remote": "here", "isolated": True}))]
    seen += [server.exec(command, session) for session in ("s1", "s2", "s4") for command in (
        "env", "set", "cat /proc/$$/environ", "echo $TOKEN >/dev/stderr", "export -p", "cd $TOKEN", "exit 3", "env",
        "echo $PEM | base64")]
    assert "rm is denied" in server.exec("echo $TOKEN; rm b")
    server.process.stdin.close()
    seen.append(server.process.stdout.read().decode() + server.process.stderr.read().decode())
    seen.append((tmp_path / "audit").read_text())
    for value in (TOKEN, "MIIEvQIBADANBgkq", "p%40ss w@h"):
        assert value not in json.dumps(seen)
    events = [json.loads(line)["event"] for line in seen[-1].splitlines()]
    assert seen[-2] == "" and events[-3:] == ["start", "end", "blocked"] and events.count("blocked") == 1
    server = Mcp(project, "--no-mask", "TO*")
    server.tool("session_open")
    assert server.exec("echo $TOKEN")["stdout"] == TOKEN + "\n"
    for option in ("--policy", "--audit"):
        process = project.start("mcp", option, "/etc", stdin=PIPE, stdout=PIPE, stderr=PIPE)
        assert process.wait(20) == 8 and b"/etc" in process.stderr.read()


MCP_PYTHON = os.path.join(os.environ.get("HOTENV_TEST_MCP", "/no/such"), "bin", "python")


OFFICIAL_CLIENT = """
import asyncio, json, sys, warnings
warnings.simplefilter("ignore")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def use(version, call, tools):
    names = [tool.name for tool in tools.tools]
    assert names == ["session_open", "session_exec", "session_list", "session_close"], names
    opened = json.loads((await call("session_open", {})).content[0].text)
    result = await call("session_exec", {"session": opened["session"], "command": "echo $TOKEN; echo $((6*7)); exit 3"})
    failed = await call("session_exec", {"session": "s9", "command": "true"})
    seen = json.loads(result.content[0].text)
    assert (getattr(failed, "isError", None) or getattr(failed, "is_error", None)) is True
    await call("session_close", {"session": opened["session"]})
    print(json.dumps([version, [opened["secrets"], seen["stdout"], seen["exit_code"]]]))

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        await session.send_ping()
        await use(getattr(hello, "protocolVersion", None) or hello.protocol_version, session.call_tool,
                  await session.list_tools())
    try:
        from mcp import Client
    except ImportError:
        return
    async with Client(stdio_client(server)) as client:
        await use(client.protocol_version, client.call_tool, await client.list_tools())

asyncio.run(main())
"""


@pytest.mark.skipif(not os.path.exists(MCP_PYTHON), reason="HOTENV_TEST_MCP names no venv with the mcp package")
def test_the_official_client_gets_along_with_it(project):
    project.serve(as_dotenv(SECRETS))
    answer = subprocess.run([MCP_PYTHON, "-c", OFFICIAL_CLIENT, sys.executable, str(HOTENV), "mcp"],
                            cwd=str(project.dir), timeout=60, stdout=PIPE, stderr=PIPE)
    assert answer.returncode == 0, answer.stderr.decode()[-3000:]
    heard = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [each[1] for each in heard] == [[sorted(SECRETS), "[hidden:TOKEN]\n42\n", 3]] * len(heard)
    assert {each[0] for each in heard} <= {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} and heard
