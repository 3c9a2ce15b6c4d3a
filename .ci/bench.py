#!/usr/bin/env python3
"""Measures hotenv beside the programs that people would use instead, all of them in one run.

    python3 .ci/bench.py [--peers] [--json] [--quick] [--only NAME...] [--hotenv PATH]

Every figure is a ratio between medians of runs that took turns, so that whatever else the machine did, it did to both
sides. Processes start in a plain virtual environment made for the purpose: no `.pth` file, none of the caller's PYTHON*
variables, because an interpreter that is slow to start makes every ratio look good. What is measured lives in one
temporary directory; nothing outside it is written, and nothing is left of it at the end.

Peers: direnv and envdir are used when they are on PATH. `--peers` also installs python-dotenv, dotenv-cli, dotenvx,
hermetic-seal, execkit-mcp, and httpie as a program to guard, into the temporary directory, which takes a package index.
What is missing is named below the table.

To add a figure, write a function that takes a Bench and yields Rows, and put it into MEASUREMENTS at the end.
"""
from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import platform
import py_compile
import random
import resource
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS, QUICK_RUNS = 31, 3
MEASUREMENT_LIMIT = 900  # seconds; a measurement that hangs is ended rather than waited for
MEGABYTE = 1_000_000
REQUEST = b'{"command":"run","args":["true"]}\n'
# What pip and others write for an entry point, in essence.
PLAIN_SCRIPT = "import sys\nfrom hotenv import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
VARIABLES = "".join(f"SERVICE_{n:02}_TOKEN=s3cr3t-{n:02}-0123456789abcdefghijklmnopqrst\n" for n in range(50))
PYPI = {"python-dotenv": "python-dotenv[cli]==1.2.4", "hermetic-seal": "hermetic-seal==1.0.0", "httpie": "httpie",
        "execkit-mcp": "execkit-mcp==0.10.1"}


class Row(NamedTuple):
    """One line of the table. Without a figure it is shown for comparison only; without `measured`, `note` says why."""

    what: str
    measured: Optional[float]
    figure: Optional[float] = None
    at_least: bool = False
    unit: str = "times"
    note: str = ""

    @property
    def reached(self) -> Optional[bool]:
        if self.figure is None or self.measured is None:
            return None
        return self.measured >= self.figure if self.at_least else self.measured <= self.figure


# ==== measuring =======================================================================================================
# Nothing here knows of hotenv: taking turns, timing a process, asking a socket.

def interleave(candidates: Dict[Any, Callable[[], float]], rounds: int) -> Dict[Any, float]:
    """The median of what each candidate returns, one call of each in every round, in a new order each time."""
    samples: Dict[Any, List[float]] = {name: [] for name in candidates}
    turns = random.Random(1)
    for _ in range(rounds + 1):
        for name in turns.sample(sorted(candidates), len(candidates)):
            samples[name].append(candidates[name]())
    # The first round warmed the caches.
    return {name: statistics.median(values[1:]) for name, values in samples.items()}


def timed(argv: List[str], environment: Dict[str, str], processor: Optional[List[float]] = None) -> float:
    """Seconds from before the spawn until the process has ended, which it has to do with status 0.

    The processor time of it and its children is added to `processor`.
    """
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environment, file_actions=quiet)
    try:
        _, status, usage = os.wait4(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    took = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(argv)} ended with status {status:#x}")
    if processor is not None:
        processor.append(usage.ru_utime + usage.ru_stime)
    return took


def timed_call(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def ask(path: str) -> bytes:
    """One request, and the whole answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(REQUEST)
        pieces = []
        while True:
            piece = connection.recv(1 << 16)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def requests_per_second(path: str, clients: int, requests: int) -> float:
    """What `clients` processes get answered together, each asking `requests` times, one after the other."""
    gate, opener = os.pipe()
    reports, report = os.pipe()
    pids = []
    try:
        for _ in range(clients):
            pid = os.fork()
            if not pid:
                _client(path, requests, gate, opener, report)
            pids.append(pid)
        os.close(opener)
        opener = -1
        while pids:
            if os.waitpid(pids[-1], 0)[1]:
                raise RuntimeError(f"a client of {path} got no proper answer")
            pids.pop()
        spans = list(struct.iter_unpack("dd", os.read(reports, 16 * clients)))
    finally:
        for descriptor in (gate, opener, reports, report):
            if descriptor >= 0:
                os.close(descriptor)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return clients * requests / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def _client(path: str, requests: int, gate: int, opener: int, report: int) -> None:
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)  # no client outlives the run, whatever the server does
        os.close(opener)
        expected = len(ask(path))
        os.read(gate, 1)  # returns when the last holder of the other end has closed it: all begin together
        begin = time.perf_counter()
        if expected and all(len(ask(path)) == expected for _ in range(requests)):
            os.write(report, struct.pack("dd", begin, time.perf_counter()))
            status = 0
    finally:
        os._exit(status)


def resident(pid: int) -> float:
    """Resident memory in MB. A hardened process shows nothing else."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MEGABYTE


def wait_for(condition: Callable[[], object], what: str, pause: float = 0.0005) -> object:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    raise RuntimeError(f"waited 20 s for {what}")


@contextlib.contextmanager
def running(argv: List[str], **options) -> Iterator[subprocess.Popen]:
    """A process that is gone when the block is left."""
    process = subprocess.Popen(argv, **options)
    try:
        yield process
    finally:
        for stop in (process.terminate, process.kill):
            stop()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


# ==== the bench =======================================================================================================
# Where everything is measured: one temporary directory with a virtual environment, a project and the peers.

DROPPED = ("PYTHON", "HOTENV", "HERMETIC", "XDG_", "VIRTUAL_ENV")  # of the caller's environment


class Session(NamedTuple):
    process: subprocess.Popen
    directory: str
    socket: str


class Bench:
    """What a measurement is given: `runs`, paths, a clean `environment`, the `peers` found, and live sessions."""

    def __init__(self, hotenv: str, directory: str, quick: bool, peers: bool) -> None:
        self.hotenv = hotenv
        self.directory = directory
        self.quick = quick
        self.runs = QUICK_RUNS if quick else RUNS
        self.peers: Dict[str, List[str]] = {}
        self.missing: List[str] = []
        home = self.make_directory("home")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(DROPPED)}
        self.environment = {**kept, "HOME": home, "XDG_RUNTIME_DIR": self.make_directory("r")}
        self.python = self._make_interpreter()
        self.command = self.console_script("hotenv", PLAIN_SCRIPT)
        self.project = self.make_project("project", VARIABLES)
        self.script = os.path.join(self.project, "tools", "hotenv.py")
        self._find_peers(peers)

    def make_directory(self, name: str) -> str:
        path = os.path.join(self.directory, name)
        os.makedirs(path, mode=0o700)
        return path

    def make_project(self, name: str, text: str) -> str:
        """A directory with its own secrets.env and its own copy of the script."""
        project = self.make_directory(name)
        self.write(os.path.join(project, "secrets.env"), text)
        os.mkdir(os.path.join(project, "tools"))
        shutil.copy(self.hotenv, os.path.join(project, "tools", "hotenv.py"))
        return project

    def write(self, path: str, text: str, mode: int = 0o600) -> str:
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def timed(self, *argv: str) -> float:
        return timed(list(argv), self.environment)

    def call(self, argv: List[str], **options) -> str:
        """Runs a step of the preparation and returns its output, which is shown only if it fails."""
        options = {"env": self.environment, "cwd": self.directory, "stdin": subprocess.DEVNULL, **options}
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **options)
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout.decode(errors='replace').strip()[-500:]}")
        return done.stdout.decode()

    def worker(self, function: str, *arguments: object, python: str = "") -> List[str]:
        """The argv that runs a function of this file in a process of its own. -B: no bytecode beside the sources."""
        code = f"import sys; sys.path.insert(0, {HERE!r}); import {NAME} as bench; bench.{function}(*{arguments!r})"
        return [python or self.python, "-B", "-c", code]

    def result_of(self, function: str, *arguments: object, python: str = "", cwd: str = "") -> Any:
        """What a function of this file prints as JSON, in a process of its own."""
        argv = self.worker(function, *arguments, python=python)
        done = subprocess.run(argv, env=self.environment, cwd=cwd or self.directory, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=True, timeout=MEASUREMENT_LIMIT)
        return json.loads(done.stdout)

    def _make_interpreter(self) -> str:
        venv = os.path.join(self.directory, "venv")
        self.call([sys.executable, "-m", "venv", "--without-pip", venv])
        self.packages = glob.glob(os.path.join(venv, "lib", "python*", "site-packages"))[0]
        remove_pth(venv)
        module = shutil.copy(self.hotenv, os.path.join(self.packages, "hotenv.py"))
        py_compile.compile(module, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
        return os.path.join(venv, "bin", "python")

    def console_script(self, name: str, body: str, python: str = "") -> str:
        """An installed command, with hotenv.py and its bytecode in the virtual environment's site-packages."""
        python = python or self.python
        return self.write(os.path.join(os.path.dirname(python), name), f"#!{python}\n{body}", 0o700)

    @contextlib.contextmanager
    def session(self, *options: str, text: str = VARIABLES, log: str = os.devnull, installed: bool = False,
                flags: Sequence[str] = ()) -> Iterator[Session]:
        """A live session in a project of its own, its stderr in the file `log`; its server is gone afterwards."""
        project = self.make_project(f"session-{len(os.listdir(self.directory))}", text)
        with self.serving(project, *options, log=log, installed=installed, flags=flags) as process:
            marker = os.path.join(project, ".hotenv")
            wait_for(lambda: os.path.exists(marker) or process.poll() is not None, "a marker")
            if process.poll() is not None:
                raise RuntimeError(f"serve ended with status {process.returncode}")
            yield Session(process, project, socket_of(project))
        shutil.rmtree(project)

    @contextlib.contextmanager
    def serving(self, project: str, *options: str, log: str = os.devnull, installed: bool = False,
                flags: Sequence[str] = ()) -> Iterator[subprocess.Popen]:
        """`serve` just started in a project; whether it is ready already is for the caller to find out."""
        script = [self.command] if installed else [self.python, *flags, os.path.join(project, "tools", "hotenv.py")]
        argv = [*script, "serve", *options]
        with open(os.path.join(project, "secrets.env")) as text, open(log, "w") as stderr:
            with running(argv, env=self.environment, cwd=project, stdin=text, stderr=stderr) as process:
                yield process

    @contextlib.contextmanager
    def background_session(self) -> Iterator[str]:
        """A project with a session as a user starts one; it is stopped afterwards."""
        project = self.make_project("background", VARIABLES)
        hotenv = [self.python, os.path.join(project, "tools", "hotenv.py")]
        with open(os.path.join(project, "secrets.env")) as text:
            self.call([*hotenv, "serve", "--background"], cwd=project, stdin=text)
        try:
            yield project
        finally:
            self.call([*hotenv, "stop"], cwd=project)
        shutil.rmtree(project)

    # -- peers

    def _find_peers(self, install: bool) -> None:
        secrets = os.path.join(self.project, "secrets.env")
        for name, prepare in (("python-dotenv", self._install_from_pypi), ("dotenv-cli", self._install_from_npm),
                              ("dotenvx", self._install_from_npm), ("direnv", self._set_up_direnv),
                              ("envdir", self._set_up_envdir), ("hermetic-seal", self._install_from_pypi),
                              ("httpie", self._install_from_pypi), ("execkit-mcp", self._install_from_pypi)):
            try:
                self.peers[name] = prepare(name, secrets, install)
            except (LookupError, OSError, RuntimeError, subprocess.SubprocessError) as error:
                self.missing.append(f"{name}: {error.args[0] if isinstance(error, LookupError) else error}")

    def _install_from_pypi(self, name: str, secrets: str, install: bool) -> List[str]:
        if not install:
            raise LookupError("installed only with --peers")
        venv = os.path.join(self.directory, name)
        programs = os.path.join(venv, "bin")
        pip = [os.path.join(programs, "python"), "-m", "pip", "--quiet", "--no-cache-dir", "install"]
        self.call([sys.executable, "-m", "venv", venv])
        self.call([*pip, PYPI[name]], env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
        remove_pth(venv)
        program = {"python-dotenv": "dotenv", "hermetic-seal": "hermetic", "httpie": "http"}.get(name, name)
        arguments = ["-f", secrets, "run", "--", "true"] if name == "python-dotenv" else []
        return [os.path.join(programs, program), *arguments]

    def _install_from_npm(self, name: str, secrets: str, install: bool) -> List[str]:
        if not install:
            raise LookupError("installed only with --peers")
        prefix = self.make_directory(name)
        package = {"dotenv-cli": "dotenv-cli", "dotenvx": "@dotenvx/dotenvx"}[name]
        npm = [on_path("npm"), "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", prefix, package]
        self.call(npm, cwd=prefix, env={**os.environ, "npm_config_cache": os.path.join(prefix, "cache")})
        program = os.path.join(prefix, "node_modules", ".bin", {"dotenv-cli": "dotenv", "dotenvx": "dotenvx"}[name])
        return [program, "-e", secrets, "--", "true"] if name == "dotenv-cli" else [
            program, "run", "--quiet", "-f", secrets, "--", "true"]

    def _set_up_direnv(self, name: str, secrets: str, install: bool) -> List[str]:
        direnv = on_path(name)
        directory = self.make_directory(name)
        self.write(os.path.join(directory, ".envrc"), f"dotenv {secrets}\n")
        self.environment["DIRENV_LOG_FORMAT"] = ""
        self.call([direnv, "allow", directory])
        return [direnv, "exec", directory, "true"]

    def _set_up_envdir(self, name: str, secrets: str, install: bool) -> List[str]:
        envdir = on_path(name)
        directory = self.make_directory(name)
        for line in VARIABLES.splitlines():
            variable, _, value = line.partition("=")
            self.write(os.path.join(directory, variable), value)
        return [envdir, directory, on_path("true")]


def on_path(program: str) -> str:
    found = shutil.which(program)
    if not found:
        raise LookupError("not on PATH")
    return found


def remove_pth(venv: str) -> None:
    """Each .pth file is read, and its code run, at every start of the interpreter."""
    for path in glob.glob(os.path.join(venv, "lib", "python*", "site-packages", "*.pth")):
        os.remove(path)


def socket_of(project: str) -> str:
    with open(os.path.join(project, ".hotenv")) as marker:
        return marker.read().strip()[len("socket="):]


# ==== start-up ========================================================================================================
# What `run -- true` costs, against an interpreter that does nothing and against the peers.

OLD_PIP_SCRIPT = (
    "# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom hotenv import main\nif __name__ == '__main__':\n"
    "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit(main())\n")
PEER_FIGURES = {"python-dotenv": 0.65, "dotenv-cli": 0.36, "dotenvx": 0.13, "direnv": None, "envdir": None}


def start_up(bench: Bench) -> Iterator[Row]:
    run = ("run", "--", "true")
    isolated = f"import sys; sys.path.append({bench.packages!r}); import hotenv; sys.exit(hotenv.main())"
    commands = {
        "pass": [bench.python, "-c", "pass"],
        "pass -I -S": [bench.python, "-I", "-S", "-c", "pass"],
        "vendored": [bench.python, bench.script, *run],
        "installed": [bench.command, *run],
        "old pip": [bench.console_script("hotenv-old-pip", OLD_PIP_SCRIPT), *run],
        "isolated": [bench.python, "-I", "-S", "-c", isolated, *run],
        **{peer: bench.peers[peer] for peer in PEER_FIGURES if peer in bench.peers},
    }
    with bench.session("--quiet") as session:
        os.chdir(session.directory)  # `run` finds its marker here
        took = interleave({name: lambda argv=argv: bench.timed(*argv) for name, argv in commands.items()}, bench.runs)
    base, ours = took["pass"], took["vendored"]
    yield Row("python3 -c pass", base * 1000, unit="ms")
    yield Row("python3 -I -S -c pass", took["pass -I -S"] * 1000, unit="ms")
    yield Row("run, vendored script / python3 -c pass", ours / base, 3.1, note=milliseconds(ours))
    yield Row("run, installed / python3 -c pass", took["installed"] / base, 1.4, note=milliseconds(took["installed"]))
    yield Row("run, installed by a pip before 25 (its script imports re)", took["old pip"] / base,
              note=milliseconds(took["old pip"]))
    over_bare = f"{milliseconds(took['isolated'])}; {took['isolated'] / took['pass -I -S']:.2f} of -I -S -c pass"
    yield Row("run, -I -S and import / python3 -c pass", took["isolated"] / base, 1.25, note=over_bare)
    for peer, figure in PEER_FIGURES.items():
        if peer in took:
            yield Row(f"run, vendored script / {peer}", ours / took[peer], figure, note=milliseconds(took[peer]))
        else:
            yield Row(f"run, vendored script / {peer}", None, figure, note="missing")


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def ready(bench: Bench) -> Iterator[Row]:
    """From the start of `serve` until somebody who polls for its marker has an answer."""
    project = bench.make_project("ready", VARIABLES)
    marker = os.path.join(project, ".hotenv")

    def until_answered(installed: bool) -> float:
        begin = time.perf_counter()
        with bench.serving(project, installed=installed):
            wait_for(lambda: os.path.exists(marker), "a marker", pause=0.0002)
            ask(socket_of(project))
            took = time.perf_counter() - begin
        return took

    took = interleave({
        "pass": lambda: bench.timed(bench.python, "-c", "pass"),
        "vendored script": lambda: until_answered(False),
        "installed": lambda: until_answered(True)}, bench.runs)
    for kind in ("vendored script", "installed"):
        what = f"serve until an answer, {kind} / python3 -c pass"
        yield Row(what, took[kind] / took["pass"], 4, note=milliseconds(took[kind]))


# ==== the server ======================================================================================================

def throughput(bench: Bench) -> Iterator[Row]:
    """Requests a second, against a loop in the same Python that does nothing but accept, receive, send and close."""
    requests = 50 if bench.quick else 1000
    log = os.path.join(bench.directory, "requests.log")
    bare = os.path.join(bench.directory, "r", "bare.sock")
    with bench.session("--quiet") as quiet, bench.session(log=log) as logged:
        loop = bench.worker("bare_loop", bare, len(ask(quiet.socket)))
        with running(loop, env=bench.environment):
            wait_for(lambda: os.path.exists(bare), "the bare loop")
            for clients in (4, 8):
                rates = interleave({
                    name: lambda path=path: requests_per_second(path, clients, requests)
                    for name, path in (("bare", bare), ("quiet", quiet.socket), ("logged", logged.socket))}, bench.runs)
                for kind, figure in (("quiet", 0.77), ("logged", 0.7)):
                    what = f"server, requests a second, {clients} clients, {kind} / bare loop"
                    note = f"{rates[kind]:,.0f} and {rates['bare']:,.0f} a second"
                    yield Row(what, rates[kind] / rates["bare"], figure, at_least=True, note=note)


def bare_loop(path: str, size: int) -> None:
    """The least that a server in Python can do. Runs in a process of its own until it is terminated."""
    reply = b"x" * size
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + "~")
    listener.listen(128)
    os.rename(path + "~", path)  # whoever sees it can connect
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(reply)
        connection.close()


def silent_connections(bench: Bench, count: int = 1000, requests: int = 50) -> Iterator[Row]:
    """One request while others are connected and say nothing; a round is over before the server drops those."""
    with bench.session("--quiet") as session:
        holder = bench.worker("hold_silently", session.socket, count)
        with running(holder, env=bench.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

            def one_request() -> float:
                ask(session.socket)  # answered after the server has dealt with all that came before
                return statistics.median(timed_call(lambda: ask(session.socket)) for _ in range(requests))

            def tell(word: bytes) -> int:
                process.stdin.write(word)
                process.stdin.flush()
                return int(process.stdout.readline())

            def beside_silence() -> float:
                tell(b"open\n")
                took = one_request()
                still_open.append(tell(b"close\n"))
                for _ in range(10):
                    ask(session.socket)
                return took

            still_open: List[int] = []
            took = interleave({"silent": beside_silence, "alone": one_request}, bench.runs)
    note = f"{took['silent'] * 1000:.3f} and {took['alone'] * 1000:.3f} ms"
    if min(still_open) < count:
        note += f"; only {min(still_open)} stayed open"
    what = f"server, one request, {count:,} silent connections / none"
    yield Row(what, took["silent"] / took["alone"], 1.5, note=note)


def hold_silently(path: str, count: int) -> None:
    """For each line read, opens `count` connections, or closes them and says how many the server had not closed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if 0 < hard < 1 << 20 else count + 100, hard))
    connections: List[socket.socket] = []
    for line in iter(sys.stdin.readline, ""):
        if line.strip() == "open":
            for _ in range(count):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(path)
                connections.append(connection)
            print(count, flush=True)
        else:
            print(sum(map(is_open, connections)), flush=True)
            for connection in connections:
                connection.close()
            connections.clear()


def is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def memory(bench: Bench) -> Iterator[Row]:
    """Resident memory of a server that has answered, less that of an interpreter with the same modules.

    A script's own compilation leaves something behind, so it is measured both ways.
    """
    if not os.path.exists("/proc/self/statm"):
        yield Row("server, memory over its modules", None, 4, unit="MB", note="no /proc/PID/statm here")
        return
    modules = modules_of_a_server(bench)
    largest = "".join(f"KEY_{n:05}={'v' * 1000}\n" for n in range(2000))  # as much as exec takes on most systems

    def serving(text: str, installed: bool) -> float:
        with bench.session("--quiet", text=text, installed=installed) as session:
            for _ in range(5):
                ask(session.socket)
            return resident(session.process.pid)

    def idle() -> float:
        code = f"import sys, {', '.join(modules)}\nprint(flush=True)\nsys.stdin.read()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with running([bench.python, "-c", code], env=bench.environment, **pipes) as process:
            if not process.stdout.readline():
                raise RuntimeError("the interpreter to compare with did not start")
            return resident(process.pid)

    texts = {"50 variables": VARIABLES, "2,000 variables, 2 MB": largest}
    servers = {(kind, what): lambda text=text, kind=kind: serving(text, kind == "installed")
               for kind in ("vendored script", "installed") for what, text in texts.items()}
    found = interleave({("", "idle"): idle, **servers}, bench.runs)
    alone = found["", "idle"]
    for kind, what in servers:
        over = found[kind, what] - alone - 2 * len(texts[what]) / MEGABYTE
        note = f"{found[kind, what]:.1f} MB, the interpreter {alone:.1f}"
        yield Row(f"server, {kind}, {what}: memory over modules + 2 snapshots", over, 4, unit="MB", note=note)


def modules_of_a_server(bench: Bench) -> List[str]:
    log = os.path.join(bench.directory, "imports.log")
    with bench.session("--quiet", log=log, flags=("-X", "importtime")) as session:
        ask(session.socket)
    with open(log) as file:
        names = [line.rpartition("|")[2].strip() for line in file if line.startswith("import time:")]
    return [name for name in names if name not in ("imported package", "sitecustomize", "usercustomize")]


# ==== the parser ======================================================================================================
# Measured in one process each, since importing costs more than parsing does.

def compared_shapes(size: int) -> Dict[str, str]:
    plain = "SERVICE_{:06}_SETTING=some-value-{:06}-of-common-length\n"
    quoted = 'SERVICE_{:06}_SETTING="first \\"line\\"\\nsecond line {:06}"  # with a remark\n'
    lines = {"KEY=value lines": plain, "quoted lines": quoted}
    shapes = {name: "".join(line.format(n, n) for n in range(size // len(line))) for name, line in lines.items()}
    return {**shapes, "one long value": 'KEY="' + "0123456789abcdefghijklmnopqrstuvwxyz+/\n" * (size // 39) + '"\n'}


def linear_shapes(size: int) -> Dict[str, str]:
    """The shapes on which parsers turn quadratic; some of them are refused, and that has to be linear too."""
    return {
        **compared_shapes(size),
        "blanks": "KEY=a" + " " * size + "b\n",
        "${": "KEY=" + "${" * (size // 2) + "\n",
        "#": "KEY=a" + "#" * size + "\n",
        "backslashes": 'KEY="' + "\\\\" * (size // 2) + '"\n',
    }


def parser_against_python_dotenv(bench: Bench) -> Iterator[Row]:
    figures = {"KEY=value lines": 12, "quoted lines": 3.5, "one long value": 15}
    if "python-dotenv" not in bench.peers:
        for shape, figure in figures.items():
            yield Row(f"parser, {shape} / python-dotenv", None, figure, at_least=True, note="missing")
        return
    python = os.path.join(os.path.dirname(bench.peers["python-dotenv"][0]), "python")
    for shape, (ours, theirs, size) in parsing(bench, "compare_parsers", python).items():
        note = f"{size / ours / MEGABYTE:.0f} and {size / theirs / MEGABYTE:.1f} MB/s"
        yield Row(f"parser, {shape} / python-dotenv", theirs / ours, figures[shape], at_least=True, note=note)


def parser_is_linear(bench: Bench) -> Iterator[Row]:
    for shape, (small, large, size) in parsing(bench, "compare_sizes").items():
        speed = size / large / MEGABYTE
        if shape == "KEY=value lines":
            yield Row(f"parser, 10 MB of {shape}", speed, 40, at_least=True, unit="MB/s")
        yield Row(f"parser, {shape}, ten times the size", large / small, 12, note=f"{speed:,.0f} MB/s")


def parsing(bench: Bench, function: str, python: str = "") -> Dict[str, list]:
    return bench.result_of(function, bench.packages, 100_000 if bench.quick else MEGABYTE, bench.runs, python=python)


def compare_parsers(packages: str, size: int, runs: int) -> None:
    parse = our_parser(packages)
    import dotenv
    import io

    def parse_theirs(text: str) -> dict:
        return dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False)

    found = {}
    for shape, text in compared_shapes(size).items():
        if parse(text) != parse_theirs(text):
            raise RuntimeError(f"the two parsers do not agree on {shape}")
        took = interleave({"ours": lambda: timed_call(lambda: parse(text)),
                           "theirs": lambda: timed_call(lambda: parse_theirs(text))}, runs)
        found[shape] = took["ours"], took["theirs"], len(text)
    print(json.dumps(found))


def compare_sizes(packages: str, size: int, runs: int) -> None:
    parse = our_parser(packages)
    large_shapes = linear_shapes(10 * size)
    found = {}
    for shape, small in linear_shapes(size).items():
        large = large_shapes.pop(shape)
        took = interleave({"small": lambda: timed_call(lambda: parse(small)),
                           "large": lambda: timed_call(lambda: parse(large))}, runs)
        found[shape] = took["small"], took["large"], len(large)
    print(json.dumps(found))


def our_parser(packages: str) -> Callable[[str], dict]:
    sys.path.append(packages)
    import hotenv

    def parse(text: str) -> dict:
        try:
            return dict(hotenv.parse_dotenv(text))
        except hotenv.HotenvError:
            return {}

    return parse


# ==== masking =========================================================================================================
# What Redactor does with a log, by itself and as `run --mask` with its processes and pipes.

def masking(bench: Bench) -> Iterator[Row]:
    size = MEGABYTE if bench.quick else 20 * MEGABYTE
    log = bench.write(os.path.join(bench.directory, "masking.log"), log_text(size))
    secrets = "".join(f"{name}='{value}'\n" for name, value in twenty_variables().items())
    alone = bench.result_of("mask_log", bench.packages, log, bench.runs)
    with bench.session("--quiet", text=secrets) as session:
        os.chdir(session.directory)
        mask = [bench.command, "run", "--mask", "--"]
        took = interleave({
            "pass": lambda: bench.timed(bench.python, "-c", "pass"),
            "true": lambda: bench.timed(*mask, "true"),
            "cat": lambda: bench.timed(*mask, "cat", log)}, bench.runs)
    os.remove(log)
    yield Row("masking a log, 20 variables", size / alone / MEGABYTE, 25, at_least=True, unit="MB/s")
    yield Row("run --mask -- cat log, installed", size / took["cat"] / MEGABYTE, unit="MB/s")
    yield Row("run --mask -- true, installed / python3 -c pass", took["true"] / took["pass"],
              note=milliseconds(took["true"]))


def twenty_variables() -> Dict[str, str]:
    """Of the kinds that are usual: tokens, hexadecimal keys, passwords, addresses with a password, short settings."""
    draw = random.Random(20)

    def characters(alphabet: str, count: int) -> str:
        return "".join(draw.choice(alphabet) for _ in range(count))

    hexadecimal, letters = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return {
        **{f"SERVICE_{n}_TOKEN": "tok_" + characters(letters, 36) for n in range(6)},
        **{f"SERVICE_{n}_KEY": characters(hexadecimal, 64) for n in range(5)},
        **{f"SERVICE_{n}_PASSWORD": characters(letters + "!+/=", 14) for n in range(4)},
        **{f"DATABASE_{n}_URL": f"postgres://app:{characters(letters, 20)}@db-{n}.internal:5432/app" for n in range(3)},
        "SESSION_SALT": characters(letters, 8),
        "STAGE": "staging",
    }


def log_text(size: int) -> str:
    """What a web service writes; in one line of 500 there is a value that should not be."""
    draw = random.Random(500)
    values = list(twenty_variables().values())
    lines, length = [], 0
    while length < size:
        took, order = draw.randrange(1, 900), draw.randrange(10 ** 6)
        text = draw.choice((
            f'INFO  [worker-{order % 8}] app.access: GET /api/v2/orders/{order} HTTP/1.1" 200 {took * 37} {took} ms',
            f"DEBUG [worker-{order % 8}] app.database: SELECT id, name, total FROM orders WHERE id = {order}: 1 row",
            f"INFO  [worker-{order % 8}] app.queue: job {order:032x} for customer-{took}@example.com done, {took} left",
            f"WARN  [worker-{order % 8}] app.payments: request {order:08x} to payments.internal/v1 took {took} ms",
            f"ERROR [worker-{order % 8}] app.payments: connection to db-1.internal:5432 lost, attempt {took % 5} of 5"))
        leak = f" credentials={draw.choice(values)}" if not draw.randrange(500) else ""
        lines.append(f"2026-02-14T12:{order % 60:02}:{took % 60:02}.{took:03}Z {text}{leak}\n")
        length += len(lines[-1])
    return "".join(lines)[:size]


def mask_log(packages: str, log: str, runs: int) -> None:
    sys.path.append(packages)
    import hotenv
    with open(log, "rb") as file:
        pieces = list(iter(lambda: file.read(1 << 16), b""))
    variables = twenty_variables()
    redactor = hotenv.Redactor(variables)

    def mask() -> bytes:
        stream = redactor.stream()
        return b"".join([*map(stream.feed, pieces), stream.flush()])

    masked = mask()
    if b"[hidden:" not in masked or any(value.encode() in masked for value in variables.values()):
        raise RuntimeError("a value came through")
    print(json.dumps(interleave({"mask": lambda: timed_call(mask)}, runs)["mask"]))


# ==== hermetic ========================================================================================================
# What guards cost before the first line of a program: in an interpreter that they reach by the bootstrap, as one in a
# guarded program's children is; and with hotenv in front, as a user starts it.

def guards(bench: Bench) -> Iterator[Row]:
    hello = bench.write(os.path.join(bench.directory, "hello"), f"#!{bench.python}\nprint('hello')\n", 0o700)
    bare, guarded, all_guards = bench.environment, inside(bench, "--no-network"), inside(bench, "--profile", "all")
    front = ["hermetic", "--no-network", "--", hello]
    seal = bench.peers.get("hermetic-seal")
    wall, processor = with_processor_time({
        "bare": ([hello], bare),
        "--no-network": ([hello], guarded),
        "all of them": ([hello], all_guards),
        "hotenv hermetic, installed": ([bench.command, *front], bare),
        "hotenv hermetic, vendored script": ([bench.python, bench.script, *front], bare),
        **({"hermetic-seal": ([*seal, *front[1:]], bare)} if seal else {})}, bench.runs)

    def note(name: str) -> str:
        return f"{milliseconds(wall[name])}; processor time {(processor[name] - processor['bare']) * 1000:+.1f} ms"

    yield Row("hello world, bare", wall["bare"] * 1000, unit="ms",
              note=f"processor time {milliseconds(processor['bare'])}")
    for name in ("--no-network", "all of them"):
        yield Row(f"guards by the bootstrap, {name}: over bare", (wall[name] - wall["bare"]) * 1000, 3, unit="ms",
                  note=note(name))
    for name in ("hotenv hermetic, installed", "hotenv hermetic, vendored script", "hermetic-seal"):
        if name in wall:
            yield Row(f"{name}, hello world / bare", wall[name] / wall["bare"], note=note(name))
        else:
            yield Row(f"{name}, hello world / bare", None, note="missing")


def inside(bench: Bench, *options: str) -> Dict[str, str]:
    """The environment of a guarded program, which guards each Python that is started in it."""
    names = "PYTHONPATH", "HOTENV_GUARDS"
    code = f"import os; print(*[os.environ[name] for name in {names}], sep='\\n')"
    shown = bench.call([bench.command, "hermetic", *options, "--", bench.python, "-c", code]).splitlines()
    return {**bench.environment, **dict(zip(names, shown))}


def guarded_httpie(bench: Bench) -> Iterator[Row]:
    """A real program; hotenv stands in another environment, and then in the program's own, where it needs no second
    interpreter."""
    http, seal = bench.peers.get("httpie"), bench.peers.get("hermetic-seal")
    ways = {"installed": [bench.command, "hermetic"], "vendored script": [bench.python, bench.script, "hermetic"]}
    if http:
        python = os.path.join(os.path.dirname(http[0]), "python")
        packages = glob.glob(os.path.join(os.path.dirname(python), "..", "lib", "python*", "site-packages"))[0]
        shutil.copy(bench.hotenv, os.path.join(packages, "hotenv.py"))
        ways["installed beside it"] = [bench.console_script("hotenv", PLAIN_SCRIPT, python), "hermetic"]
        front = {**ways, **({"hermetic-seal": seal} if seal else {})}
        target = ["--no-network", "--", *http, "--version"]
        wall, processor = with_processor_time({
            "bare": ([*http, "--version"], bench.environment),
            **{name: (argv + target, bench.environment) for name, argv in front.items()}}, bench.runs)
        yield Row("http --version, bare", wall["bare"] * 1000, unit="ms",
                  note=f"processor time {milliseconds(processor['bare'])}")
    for name in ("installed", "vendored script", "installed beside it", "hermetic-seal"):
        what = f"{'' if name == 'hermetic-seal' else 'hotenv hermetic, '}{name}, http --version / bare"
        figure = None if name == "hermetic-seal" else 1.25
        if not http or name not in wall:
            yield Row(what, None, figure, note="missing")
            continue
        note = f"{milliseconds(wall[name])}; processor time {processor[name] / processor['bare']:.2f} times"
        yield Row(what, wall[name] / wall["bare"], figure, note=note)


def with_processor_time(commands: Dict[str, Tuple[List[str], Dict[str, str]]],
                        runs: int) -> Tuple[Dict[str, float], Dict[str, float]]:
    """Medians of elapsed and of processor time; the second shows less of what else the machine did."""
    spent: Dict[str, List[float]] = {name: [] for name in commands}
    wall = interleave({
        name: lambda name=name, argv=argv, environment=environment: timed(argv, environment, spent[name])
        for name, (argv, environment) in commands.items()}, runs)
    return wall, {name: statistics.median(values[1:]) for name, values in spent.items()}


# ==== shell sessions ==================================================================================================
# A command in a shell that stays, called in process and by an agent; all shells in one process, which takes the turns.

def shells(bench: Bench) -> Iterator[Row]:
    if not shutil.which("bash"):
        yield Row("shell session, true, in process", None, 0.3, unit="ms", note="no bash here")
        return
    size = (5 if bench.quick else 50) * MEGABYTE
    output = bench.write(os.path.join(bench.directory, "output"), ("x" * 99 + "\n") * (size // 100))
    with bench.background_session() as project:
        agent = [bench.python, os.path.join(project, "tools", "hotenv.py"), "mcp"]
        took = bench.result_of("compare_shells", bench.packages, agent, bench.peers.get("execkit-mcp"), output,
                               bench.runs, cwd=project)
    os.remove(output)
    yield from shell_rows(took, size)


def shell_rows(took: Dict[str, float], size: int) -> Iterator[Row]:
    execkit = took.get("true, execkit-mcp")
    for what, seconds in took.items():
        note = ""
        figure = {"true, in process": 0.3, "true, hotenv mcp": 0.6, "open, true, close, in process": 8}.get(what)
        if what.startswith("output"):
            figure = 200 if what.endswith("in process") else None
            yield Row(f"shell session, {what}", size / seconds / MEGABYTE, figure, at_least=True, unit="MB/s")
            continue
        if execkit and what.startswith("true") and figure:  # a 20th of the peer's will do as well
            figure, note = max(figure, round(execkit * 1000 / 20, 2)), f"1/{execkit / seconds:.0f} of execkit-mcp"
        yield Row(f"shell session, {what}", seconds * 1000, figure, unit="ms", note=note)
    if not execkit:
        yield Row("shell session, true, execkit-mcp", None, note="missing")


class Agent:
    """An MCP client by JSON lines."""

    def __init__(self, process: subprocess.Popen, key: str) -> None:
        self.process = process
        self.key = key  # how the server calls the name of a session
        self.number = 0
        client = {"clientInfo": {"name": "bench", "version": "1"}, "capabilities": {}}
        self._ask("initialize", {"protocolVersion": "2025-06-18", **client})
        self._tell({"method": "notifications/initialized"})

    def tool(self, name: str, **arguments: object) -> Dict[str, Any]:
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result}")
        return json.loads(result["content"][0]["text"])

    def _tell(self, message: Dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _ask(self, method: str, parameters: Dict[str, Any]) -> Dict[str, Any]:
        self.number += 1
        self._tell({"id": self.number, "method": method, "params": parameters})
        while True:  # notifications come in between
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer["result"]


class AgentShell:
    """As much of ShellSession as is measured here, behind an agent's server."""

    def __init__(self, agent: Agent, opening: str, closing: str, **arguments: str) -> None:
        self.agent, self.closing = agent, closing
        self.named = {agent.key: agent.tool(opening, **arguments)[agent.key]}

    def exec(self, command: str) -> int:
        return self.agent.tool("session_exec", **self.named, command=command)["exit_code"]

    def close(self) -> None:
        self.agent.tool(self.closing, **self.named)


def compare_shells(packages: str, agent: List[str], execkit: Optional[List[str]], output: str, runs: int) -> None:
    """Called in the directory of a session, whose 50 variables all the shells get."""
    sys.path.append(packages)
    import hotenv
    variables = hotenv.fetch()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as stack:
        ours = Agent(stack.enter_context(running(agent, **pipes)), "session")
        ways: Dict[str, Callable[[], Any]] = {
            "in process": lambda: hotenv.ShellSession(variables),
            "hotenv mcp": lambda: AgentShell(ours, "session_open", "session_close")}
        if execkit:
            process = stack.enter_context(running(execkit, env={**os.environ, **variables}, **pipes))
            theirs = Agent(process, "session_id")
            ways["execkit-mcp"] = lambda: AgentShell(theirs, "session_create", "session_destroy", transport="local")
        opened = {}
        for way, start in ways.items():
            opened[way] = start()
            stack.callback(opened[way].close)
        found = {}
        commands = {"true": ("true", 20, runs), "export A=1": ("export A=1", 20, runs),
                    "output": (f"cat {output}", 1, min(runs, 5))}
        for what, (command, times, rounds) in commands.items():
            took = interleave({
                way: lambda shell=shell: statistics.median([timed_exec(shell, command) for _ in range(times)])
                for way, shell in opened.items()}, rounds)
            found.update((f"{what}, {way}", seconds) for way, seconds in took.items())
        took = interleave({way: lambda start=start: used_once(start) for way, start in ways.items()}, runs)
        found.update((f"open, true, close, {way}", seconds) for way, seconds in took.items())
    print(json.dumps(found))


def timed_exec(shell: Any, command: str) -> float:
    begin = time.perf_counter()
    status = shell.exec(command)
    took = time.perf_counter() - begin
    if getattr(status, "exit_code", status) != 0:
        raise RuntimeError(f"{command} ended with {status}")
    return took


def used_once(start: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    shell = start()
    timed_exec(shell, "true")
    shell.close()
    return time.perf_counter() - begin


# ==== command line ====================================================================================================

NAME = os.path.splitext(os.path.basename(__file__))[0]
MEASUREMENTS: List[Callable[[Bench], Iterator[Row]]] = [
    start_up,
    ready,
    throughput,
    silent_connections,
    memory,
    parser_against_python_dotenv,
    parser_is_linear,
    masking,
    guards,
    guarded_httpie,
    shells,
]


def measure(bench: Bench, names: List[str]) -> Dict[str, List[Row]]:
    rows: Dict[str, List[Row]] = {}
    os.chdir(bench.directory)
    for measurement in MEASUREMENTS:
        name = measurement.__name__
        if names and name not in names:
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        signal.alarm(MEASUREMENT_LIMIT)
        rows[name] = []
        try:
            rows[name].extend(measurement(bench))
        except Exception as error:  # the other figures are worth having, and the exit status tells
            rows[name].append(Row(name, None, note=f"failed: {error}"))
        finally:
            signal.alarm(0)
            os.chdir(bench.directory)
    return rows


def as_table(rows: List[Row], missing: List[str]) -> str:
    lines = [("what", "figure", "measured", "reached", "")]
    for row in rows:
        bound = "" if row.figure is None else f"{'at least' if row.at_least else 'at most'} {row.figure:g}"
        found = "-" if row.measured is None else f"{row.measured:.2f} {'' if row.unit == 'times' else row.unit}".strip()
        lines.append((row.what, bound, found, {True: "yes", False: "NO", None: "-"}[row.reached], row.note))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths + [0])).rstrip() for line in lines]
    return "\n".join(table + [f"missing: {peer}" for peer in missing])


def as_json(rows: Dict[str, List[Row]], bench: Bench) -> str:
    return json.dumps({
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.platform()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "runs": bench.runs,
        "missing": bench.missing,
        "rows": [{"measurement": name, **row._asdict(), "reached": row.reached} for name in rows for row in rows[name]],
    }, indent=1)


def give_up(number: int, frame: object) -> None:
    """Unwinds, so that every process is ended and the directory is removed."""
    if number == signal.SIGALRM:
        raise TimeoutError(f"not done after {MEASUREMENT_LIMIT} s")
    sys.exit(128 + number)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--peers", action="store_true", help="install the peers that come from PyPI and npm")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs instead of {RUNS}: whether it works")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", choices=[m.__name__ for m in MEASUREMENTS],
                        help="measure only these: %(choices)s")
    parser.add_argument("--hotenv", default=os.path.join(os.path.dirname(HERE), "hotenv.py"), metavar="PATH",
                        help="the file to measure (default: the one above this directory)")
    options = parser.parse_args()
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, give_up)
    with tempfile.TemporaryDirectory(prefix="hotenv-bench-") as directory:
        bench = Bench(os.path.abspath(options.hotenv), os.path.realpath(directory), options.quick, options.peers)
        rows = measure(bench, options.only)
        os.chdir("/")
    table = [row for name in rows for row in rows[name]]
    print(as_json(rows, bench) if options.json else as_table(table, bench.missing))
    return int(any(row.note.startswith("failed: ") for row in table))


if __name__ == "__main__":
    sys.exit(main())
