#!/usr/bin/env python3
"""Measures hotenv beside a bare interpreter, and beside the programs that people use instead.

    python3 .ci/bench.py [--peers] [--json] [--quick] [--only NAME...] [--hotenv PATH]

Every number is a ratio or a difference of medians. The runs take turns, so that whatever else the
machine does, it does to both sides. The interpreter is the one that runs this file, in a plain
virtual environment without `.pth` files and without the caller's PYTHON* variables: beside an
interpreter that is slow to start, every ratio would look good. All that is measured lives in one
temporary directory, which is removed.

`--peers` installs python-dotenv, dotenv-cli, dotenvx, hermetic-seal, execkit-mcp and httpie into
that directory. This takes a package index. What is missing is named below the table.

Where a row has a figure, the figure must be reached. The exit status is 1 if one was missed, or if
a measurement failed. A missing peer is no reason.

To add a row, write a function that takes a Bench and yields Rows, and name it in MEASUREMENTS.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import glob
import importlib
import io
import json
import multiprocessing
import os
import platform
import py_compile
import random
import resource
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Iterator, Mapping, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = 31
QUICK_RUNS = 3
MEASUREMENT_LIMIT = 900  # seconds, after which a measurement is ended
PATIENCE = 20  # seconds, for a server to be there
MEGABYTE = 1_000_000
FORK = multiprocessing.get_context("fork")

# The environment of most measurements: 50 variables of 3 KB in all.
VARIABLES = "".join(
    f"SERVICE_{number:02}_TOKEN=s3cr3t-{number:02}-0123456789abcdefghijklmnopqrst\n"
    for number in range(50)
)


# ==== rows ========================================================================================


class Figure(NamedTuple):
    """What a measurement must reach."""

    bound: float
    is_minimum: bool

    def __str__(self) -> str:
        """Return the figure as the table shows it."""
        return f"at {'least' if self.is_minimum else 'most'} {self.bound:g}"

    def is_reached(self, measured: float) -> bool:
        """Is this measurement good enough?"""
        if self.is_minimum:
            return measured >= self.bound
        return measured <= self.bound


def at_most(bound: float) -> Figure:
    """Return a figure that is reached by less."""
    return Figure(bound, is_minimum=False)


def at_least(bound: float) -> Figure:
    """Return a figure that is reached by more."""
    return Figure(bound, is_minimum=True)


class Row(NamedTuple):
    """One line of the table. Without a figure it is shown for comparison."""

    what: str
    measured: float | None  # None: a peer is missing, or `note` says why
    figure: Figure | None = None
    unit: str = "times"
    note: str = ""
    has_failed: bool = False  # the measurement itself went wrong

    @property
    def shown(self) -> str:
        """What was measured, as the table shows it."""
        if self.measured is None:
            return "-"
        if self.unit == "times":
            return f"{self.measured:.2f}"
        return f"{self.measured:.2f} {self.unit}"

    @property
    def reached(self) -> bool | None:
        """Was the figure reached? None where there is no figure, or no measurement."""
        if self.figure is None or self.measured is None:
            return None
        return self.figure.is_reached(self.measured)


def milliseconds(seconds: float) -> str:
    """Return a time as notes show it."""
    return f"{seconds * 1000:.1f} ms"


# ==== measuring ===================================================================================
# Nothing here knows of hotenv: taking turns, timing a process, asking a socket.


def interleave(candidates: Mapping[Any, Callable[[], float]], rounds: int) -> dict[Any, float]:
    """Return the median of what each candidate returns.

    Each round calls every candidate once, in an order of its own. The first round warms the caches
    and does not count.
    """
    samples: dict[Any, list[float]] = {name: [] for name in candidates}
    draw = random.Random(1)
    for _ in range(rounds + 1):
        for name in draw.sample(list(candidates), len(candidates)):
            samples[name].append(candidates[name]())
    return {name: statistics.median(values[1:]) for name, values in samples.items()}


def seconds_of(function: Callable[..., object], *arguments: object) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


class Usage(NamedTuple):
    """What a process has cost, in seconds."""

    wall: float
    processor: float  # its own and its children's


class Process(NamedTuple):
    """How a process that is measured is started."""

    argv: list[str]
    environment: dict[str, str]
    before: Callable[[], object] | None = None  # called in it, between fork and exec

    def run(self) -> Usage:
        """Run the process until it ends, which it must do with status 0."""
        begin = time.perf_counter()
        if self.before is None:
            pid = self._spawn()
        else:
            pid = self._fork(self.before)
        try:
            _, status, usage = os.wait4(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        wall = time.perf_counter() - begin
        if status != 0:
            raise RuntimeError(f"{' '.join(self.argv)} ended with status {status:#x}")
        return Usage(wall, usage.ru_utime + usage.ru_stime)

    def _spawn(self) -> int:
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        return os.posix_spawn(self.argv[0], self.argv, self.environment, file_actions=quiet)

    def _fork(self, before: Callable[[], object]) -> int:
        pid = os.fork()
        if pid != 0:
            return pid
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            before()
            os.execve(self.argv[0], self.argv, self.environment)
        finally:
            os._exit(127)


class Spent(NamedTuple):
    """What several processes have cost, by name: medians, in seconds."""

    wall: dict[str, float]
    processor: dict[str, float]

    def ratio(self, what: str, name: str, base: str, figure: Figure | None = None) -> Row:
        """Return the row for how many times as long one takes as another."""
        if name not in self.wall or base not in self.wall:
            return Row(what, None, figure)
        processor = self.processor[name] / self.processor[base]
        note = (
            f"{milliseconds(self.wall[name])} and {milliseconds(self.wall[base])};"
            f" processor time {processor:.2f} times"
        )
        return Row(what, self.wall[name] / self.wall[base], figure, note=note)

    def time(self, what: str, name: str) -> Row:
        """Return the row for how long one takes."""
        note = f"processor time {milliseconds(self.processor[name])}"
        return Row(what, self.wall[name] * 1000, unit="ms", note=note)

    def more(self, what: str, name: str, base: str, figure: Figure) -> Row:
        """Return the row for how much more processor time one takes than another.

        Processor time shows less of what else the machine does than elapsed time.
        """
        elapsed = self.wall[name] - self.wall[base]
        processor = self.processor[name] - self.processor[base]
        note = f"{elapsed * 1000:+.1f} ms elapsed"
        return Row(what, processor * 1000, figure, unit="ms", note=note)


def compare_processes(commands: dict[str, Process], rounds: int) -> Spent:
    """Run each command once in every round."""
    processor: dict[str, list[float]] = {name: [] for name in commands}

    def run(name: str) -> float:
        usage = commands[name].run()
        processor[name].append(usage.processor)
        return usage.wall

    wall = interleave({name: functools.partial(run, name) for name in commands}, rounds)
    # The first round does not count here either.
    medians = {name: statistics.median(values[1:]) for name, values in processor.items()}
    return Spent(wall, medians)


def ask(path: str) -> bytes:
    """Send one request to a socket, and return the whole answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b'{"command":"run","args":["true"]}\n')
        pieces: list[bytes] = []
        while True:
            piece = connection.recv(1 << 16)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def requests_per_second(path: str, clients: int, requests: int) -> float:
    """Return how many requests a second are answered.

    So many client processes ask at the same time, each so many times, one request after the other.
    """
    gate = FORK.Barrier(clients)
    spans = FORK.SimpleQueue()

    def client() -> None:
        expected = len(ask(path))
        gate.wait(60)
        begin = time.perf_counter()
        for _ in range(requests):
            if len(ask(path)) != expected or expected == 0:
                sys.exit(1)
        spans.put((begin, time.perf_counter()))

    asking = [FORK.Process(target=client, daemon=True) for _ in range(clients)]
    try:
        for process in asking:
            process.start()
        for process in asking:
            process.join(60)
            if process.exitcode != 0:
                raise RuntimeError(f"a client of {path} got no proper answer")
    finally:
        for process in asking:
            process.kill()
    found = [spans.get() for _ in asking]
    first = min(begin for begin, _ in found)
    last = max(end for _, end in found)
    return float(clients * requests / (last - first))


def wait_for(condition: Callable[[], object], what: str, pause: float = 0.0005) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {PATIENCE} s for {what}")
        time.sleep(pause)


@contextlib.contextmanager
def running(argv: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, which is gone when the block is left."""
    process = subprocess.Popen(argv, **options)
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.communicate(timeout=10)  # closes its pipes too
        process.kill()
        process.wait()


# ==== the bench ===================================================================================
# Where everything is measured: one temporary directory with a virtual environment, projects, peers.

# The beginnings of the names that are taken out of the caller's environment.
DROPPED = ("PYTHON", "HOTENV", "HERMETIC", "XDG_", "VIRTUAL_ENV")


class Peer(NamedTuple):
    """A program that people use instead of hotenv, or that hotenv is tried on."""

    installer: str  # pip or npm
    package: str
    program: str
    run_true: str = ""  # the arguments with which it runs `true`; {} is a dotenv file


PEERS = {
    "python-dotenv": Peer("pip", "python-dotenv[cli]==1.2.4", "dotenv", "-f {} run -- true"),
    "hermetic-seal": Peer("pip", "hermetic-seal==1.0.0", "hermetic"),
    "httpie": Peer("pip", "httpie", "http"),
    "execkit-mcp": Peer("pip", "execkit-mcp==0.10.1", "execkit-mcp"),
    "dotenv-cli": Peer("npm", "dotenv-cli", "dotenv", "-e {} -- true"),
    "dotenvx": Peer("npm", "@dotenvx/dotenvx", "dotenvx", "run --quiet -f {} -- true"),
}


class Bench:
    """What a measurement is given.

    `python` is the interpreter of the virtual environment, `command` the program hotenv that is
    installed there, `packages` the directory of its packages. `project` is a directory with a
    secrets.env, and `script` the copy of hotenv.py in it. `environment` is what processes get.
    `peers` has the command line of each peer that is there, `missing` a sentence for the others.
    """

    def __init__(self, hotenv: str, directory: str, is_quick: bool, with_peers: bool) -> None:
        """Make the virtual environment and a project, and install the peers if asked to."""
        self.hotenv = hotenv
        self.directory = directory
        self.is_quick = is_quick
        self.runs = QUICK_RUNS if is_quick else RUNS
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(DROPPED)
        }
        self.environment["HOME"] = self.make_directory("home")
        self.environment["XDG_RUNTIME_DIR"] = self.make_directory("r")

        venv = os.path.join(directory, "venv")
        self.call([sys.executable, "-m", "venv", "--without-pip", venv])
        self.python = f"{venv}/bin/python"
        self.packages = packages_of(venv)
        self.command = self.install(venv)
        self.project = self.make_project("project", VARIABLES)
        self.script = f"{self.project}/tools/hotenv.py"
        self.hello = self.write(f"{directory}/hello", f"#!{self.python}\nprint('hello')\n", 0o700)

        self.peers: dict[str, list[str]] = {}
        self.missing: list[str] = []
        for name, peer in PEERS.items():
            if not with_peers:
                self.missing.append(f"{name}: installed only with --peers")
                continue
            try:
                self.peers[name] = self._install_peer(name, peer)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                self.missing.append(f"{name}: {error}")

    # -- files --

    def make_directory(self, name: str) -> str:
        """Make a directory, and return its path."""
        path = os.path.join(self.directory, name)
        os.makedirs(path, mode=0o700)
        return path

    def make_project(self, name: str, text: str) -> str:
        """Make a directory with a secrets.env and a copy of the script, and return its path."""
        project = os.path.dirname(self.make_directory(f"{name}/tools"))
        self.write(f"{project}/secrets.env", text)
        shutil.copy(self.hotenv, f"{project}/tools/hotenv.py")
        return project

    def write(self, path: str, text: str, mode: int = 0o600) -> str:
        """Write a file, and return its path."""
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def install(self, venv: str) -> str:
        """Install hotenv as pip does, and return its program.

        The module's bytecode lies beside it. The program is what pip writes since version 25.
        """
        module = f"{packages_of(venv)}/hotenv.py"
        shutil.copy(self.hotenv, module)
        by_time = py_compile.PycInvalidationMode.TIMESTAMP
        py_compile.compile(module, doraise=True, invalidation_mode=by_time)
        lines = [
            f"#!{venv}/bin/python",
            "import sys",
            "from hotenv import main",
            "if __name__ == '__main__':",
            "    sys.exit(main())",
            "",
        ]
        return self.write(f"{venv}/bin/hotenv", "\n".join(lines), 0o700)

    def _install_peer(self, name: str, peer: Peer) -> list[str]:
        """Install a peer, and return the command line with which it runs `true`."""
        place = self.make_directory(name)
        if peer.installer == "pip":
            programs = f"{place}/bin"
            self.call([sys.executable, "-m", "venv", place])
            pip = [f"{programs}/python", "-m", "pip", "--quiet", "--no-cache-dir"]
            # With its bytecode, whatever the caller says about that.
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
            self.call([*pip, "install", peer.package], env=environment)
        else:
            programs = f"{place}/node_modules/.bin"
            npm = ["npm", "install", "--loglevel=error", "--no-audit", "--no-fund"]
            environment = {**os.environ, "npm_config_cache": f"{place}/cache"}
            self.call([*npm, "--prefix", place, peer.package], cwd=place, env=environment)
        arguments = peer.run_true.format(f"{self.project}/secrets.env").split()
        return [f"{programs}/{peer.program}", *arguments]

    # -- processes --

    def process(
        self,
        *argv: str,
        environment: dict[str, str] | None = None,
        before: Callable[[], object] | None = None,
    ) -> Process:
        """Return a process to measure, in the clean environment unless another is named."""
        return Process(list(argv), environment or self.environment, before)

    def call(self, argv: list[str], **options: Any) -> str:
        """Run a step of the preparation, and return its output. It is shown only on failure."""
        arguments: dict[str, Any] = {
            "env": self.environment,
            "cwd": self.directory,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "timeout": 300,
        }
        arguments.update(options)
        done = subprocess.run(argv, **arguments)
        output: str = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: {output.strip()[-500:]}")
        return output

    def module(self, name: str, packages: str = "") -> Any:
        """Import a module of the virtual environment here, where no start is measured."""
        sys.path.insert(0, packages or self.packages)
        try:
            return importlib.import_module(name)
        finally:
            del sys.path[0]

    # -- sessions --

    @contextlib.contextmanager
    def serving(
        self,
        project: str,
        *options: str,
        log: str = os.devnull,
        is_installed: bool = False,
        flags: tuple[str, ...] = (),
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start `serve` in a project. The caller finds out when it is ready.

        Its stderr goes to the file `log`. `flags` are the interpreter's.
        """
        if is_installed:
            program = [self.command]
        else:
            program = [self.python, *flags, f"{project}/tools/hotenv.py"]
        with open(f"{project}/secrets.env") as text, open(log, "w") as stderr:
            files = {"cwd": project, "stdin": text, "stderr": stderr}
            argv = [*program, "serve", *options]
            with running(argv, env=self.environment, **files) as process:
                yield process

    @contextlib.contextmanager
    def session(
        self, *options: str, text: str = VARIABLES, **how: Any
    ) -> Iterator[tuple[str, int]]:
        """Start a session in a project of its own. Yields the project and the server's pid."""
        project = self.make_project(f"session-{len(os.listdir(self.directory))}", text)
        marker = f"{project}/.hotenv"
        with self.serving(project, *options, **how) as process:
            wait_for(lambda: os.path.exists(marker) or process.poll() is not None, "a marker")
            if process.poll() is not None:
                raise RuntimeError(f"serve ended with status {process.returncode}")
            yield project, process.pid
        shutil.rmtree(project)


def packages_of(venv: str) -> str:
    """Return a virtual environment's site-packages, after removing the .pth files there.

    Each is read, and its code run, at every start of the interpreter.
    """
    packages = glob.glob(f"{venv}/lib/python*/site-packages")[0]
    for path in glob.glob(f"{packages}/*.pth"):
        os.remove(path)
    return packages


def socket_of(project: str) -> str:
    """Return the path of the socket that a project's marker names."""
    with open(f"{project}/.hotenv") as marker:
        return marker.read().strip()[len("socket=") :]


# ==== start-up ====================================================================================
# What `run -- true` costs, against an interpreter that does nothing, and against the peers.

RUN_TRUE = ["run", "--", "true"]


def start_up(bench: Bench) -> Iterator[Row]:
    """Compare every way in which `run` can be started."""
    import_isolated = (
        f"import sys; sys.path.append({bench.packages!r}); import hotenv; sys.exit(hotenv.main())"
    )
    with bench.session("--quiet") as (project, _):
        os.chdir(project)  # `run` finds its marker here, and -m its module
        script = f"{project}/tools/hotenv.py"
        isolated = [bench.python, "-I", "-S", "-c"]
        commands = {
            "pass": bench.process(bench.python, "-c", "pass"),
            "pass, isolated": bench.process(*isolated, "pass"),
            "script": bench.process(bench.python, script, *RUN_TRUE),
            "module": bench.process(bench.python, "-m", "tools.hotenv", *RUN_TRUE),
            "installed": bench.process(bench.command, *RUN_TRUE),
            "shellenv": bench.process(*shell_function(bench), *RUN_TRUE),
            "isolated": bench.process(*isolated, import_isolated, *RUN_TRUE),
        }
        for peer in ("python-dotenv", "dotenv-cli", "dotenvx"):
            if peer in bench.peers:
                commands[peer] = bench.process(*bench.peers[peer])
        if "python-dotenv" in bench.peers:
            commands["python-dotenv, vendored"] = vendored_python_dotenv(bench)
        spent = compare_processes(commands, bench.runs)

    yield spent.time("python3 -c pass", "pass")
    yield spent.time("python3 -I -S -c pass", "pass, isolated")
    bare = "python3 -c pass"
    yield spent.ratio(f"run, script / {bare}", "script", "pass", at_most(6.0))
    what = f"run, -m, from the second time on / {bare}"
    yield spent.ratio(what, "module", "pass", at_most(1.7))
    yield spent.ratio(f"run, installed / {bare}", "installed", "pass", at_most(1.4))
    yield spent.ratio(f"run, by shellenv / {bare}", "shellenv", "pass", at_most(1.3))
    yield spent.ratio(f"run, imported with -I -S / {bare}", "isolated", "pass", at_most(1.3))

    what = "run, installed / python-dotenv, installed"
    yield spent.ratio(what, "installed", "python-dotenv", at_most(0.33))
    what = "run, script / python-dotenv, vendored without bytecode"
    yield spent.ratio(what, "script", "python-dotenv, vendored", at_most(0.4))
    for peer in ("python-dotenv", "dotenv-cli", "dotenvx"):
        yield spent.ratio(f"run, script / {peer}, installed", "script", peer)


def shell_function(bench: Bench) -> list[str]:
    """Return what the function that `shellenv` prints calls, so that no shell is measured."""
    printed = bench.call([bench.python, bench.script, "shellenv", "bash"])
    begin = "hotenv() { "
    end = ' "$@"; }'
    for line in printed.splitlines():
        if line.startswith(begin) and line.endswith(end):
            return shlex.split(line[len(begin) : -len(end)])
    raise RuntimeError("shellenv prints no function hotenv")


def vendored_python_dotenv(bench: Bench) -> Process:
    """Copy python-dotenv and click into a repository, without bytecode, and return their start.

    That is how hotenv's script is there, too: it is compiled at each start.
    """
    packages = packages_of(f"{bench.directory}/python-dotenv")
    place = bench.make_directory("vendored")
    without = shutil.ignore_patterns("__pycache__")
    for name in ("dotenv", "click"):
        shutil.copytree(f"{packages}/{name}", f"{place}/{name}", ignore=without)
    environment = {**bench.environment, "PYTHONPATH": place}
    arguments = bench.peers["python-dotenv"][1:]
    return bench.process(bench.python, "-B", "-m", "dotenv", *arguments, environment=environment)


def ready(bench: Bench) -> Iterator[Row]:
    """Measure from the start of `serve` until a client that polls for its marker has an answer."""
    project = bench.make_project("ready", VARIABLES)

    def until_answered(is_installed: bool) -> float:
        begin = time.perf_counter()
        with bench.serving(project, is_installed=is_installed):
            wait_for(lambda: os.path.exists(f"{project}/.hotenv"), "a marker", pause=0.0002)
            ask(socket_of(project))
            return time.perf_counter() - begin

    bare = bench.process(bench.python, "-c", "pass")
    took = interleave(
        {
            "pass": lambda: bare.run().wall,
            "script": lambda: until_answered(is_installed=False),
            "installed": lambda: until_answered(is_installed=True),
        },
        bench.runs,
    )
    for kind in ("script", "installed"):
        what = f"serve until an answer, {kind} / python3 -c pass"
        yield Row(what, took[kind] / took["pass"], note=milliseconds(took[kind]))


# ==== the server ==================================================================================


def throughput(bench: Bench) -> Iterator[Row]:
    """Compare the server with a loop that does nothing but accept, receive, send and close."""
    requests = 50 if bench.is_quick else 1000
    rounds = 3 * bench.runs  # they spread by a tenth
    figures = {"quiet": at_least(0.88), "logged": at_least(0.8)}
    log = f"{bench.directory}/requests.log"
    with bench.session("--quiet") as (quiet, _), bench.session(log=log) as (logged, _):
        paths = {
            "bare": f"{bench.directory}/r/bare.sock",
            "quiet": socket_of(quiet),
            "logged": socket_of(logged),
        }
        arguments = (paths["bare"], ask(paths["quiet"]))
        loop = FORK.Process(target=bare_loop, args=arguments, daemon=True)
        loop.start()
        try:
            wait_for(lambda: os.path.exists(paths["bare"]), "the bare loop")
            for clients in (4, 8):
                asking = {
                    name: functools.partial(requests_per_second, path, clients, requests)
                    for name, path in paths.items()
                }
                rates = interleave(asking, rounds)
                for kind, figure in figures.items():
                    what = f"server, requests a second, {clients} clients, {kind} / bare loop"
                    note = f"{rates[kind]:,.0f} and {rates['bare']:,.0f} a second"
                    yield Row(what, rates[kind] / rates["bare"], figure, note=note)
        finally:
            loop.kill()


def bare_loop(path: str, reply: bytes) -> None:
    """Do the least that a server in Python can do, until this process is killed."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + "~")
    listener.listen(128)
    os.rename(path + "~", path)  # whoever sees it can connect
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(reply)
        connection.close()


def memory(bench: Bench) -> Iterator[Row]:
    """Compare a server that has answered with an interpreter that has imported the same modules.

    The response, and a fifth on top of it, is what a server has to hold.
    """
    texts = {
        "50 variables": VARIABLES,
        # As much as exec takes on most systems.
        "2,000 variables, 2 MB": "".join(f"KEY_{n:05}={'v' * 1000}\n" for n in range(2000)),
    }
    figures = {"script": at_most(16), "installed": at_most(3)}
    if not os.path.exists("/proc/self/statm"):
        for kind, figure in figures.items():
            what = f"server, {kind}: memory over its modules and 1.2 responses"
            yield Row(what, None, figure, unit="MB", note="there is no /proc/PID/statm here")
        return

    imports = "import sys, " + ", ".join(modules_of_a_server(bench))
    idle_code = f"{imports}\nprint(flush=True)\nsys.stdin.read()"
    responses: dict[str, int] = {}

    def serving(kind: str, what: str) -> float:
        is_installed = kind == "installed"
        session = bench.session("--quiet", text=texts[what], is_installed=is_installed)
        with session as (project, pid):
            for _ in range(5):
                responses[what] = len(ask(socket_of(project)))
            return resident(pid)

    def idle() -> float:
        argv = [bench.python, "-c", idle_code]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with running(argv, env=bench.environment, **pipes) as process:
            if not process.stdout or not process.stdout.readline():
                raise RuntimeError("the interpreter to compare with did not start")
            return resident(process.pid)

    candidates: dict[Any, Callable[[], float]] = {"idle": idle}
    for kind in figures:
        for what in texts:
            candidates[kind, what] = functools.partial(serving, kind, what)
    found = interleave(candidates, min(bench.runs, 11))
    for kind, figure in figures.items():
        for what in texts:
            used = found[kind, what]
            over = used - found["idle"] - 1.2 * responses[what] / MEGABYTE
            label = f"server, {kind}, {what}: memory over its modules and 1.2 responses"
            note = f"{used:.1f} MB, the interpreter {found['idle']:.1f} MB"
            yield Row(label, over, figure, unit="MB", note=note)


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB. A hardened process shows nothing else."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MEGABYTE


def modules_of_a_server(bench: Bench) -> list[str]:
    """Return the names of the modules that a server imports."""
    log = f"{bench.directory}/imports.log"
    with bench.session("--quiet", log=log, flags=("-X", "importtime")) as (project, _):
        ask(socket_of(project))
    no_modules = ("imported package", "sitecustomize", "usercustomize")
    names = []
    with open(log) as file:
        for line in file:
            name = line.rpartition("|")[2].strip()
            if line.startswith("import time:") and name not in no_modules:
                names.append(name)
    return names


# ==== the parser ==================================================================================


def compared_shapes(size: int) -> dict[str, str]:
    """Return texts of about so many characters that python-dotenv reads in the same way."""
    plain = "SERVICE_{0:06}_SETTING=some-value-{0:06}-of-common-length\n"
    quoted = 'SERVICE_{0:06}_SETTING="first \\"line\\"\\nsecond line {0:06}"  # with a remark\n'
    long_line = "0123456789abcdefghijklmnopqrstuvwxyz+/\n"
    return {
        "KEY=value lines": repeated(plain, size),
        "quoted lines": repeated(quoted, size),
        "one long value": 'KEY="' + long_line * (size // len(long_line)) + '"\n',
    }


def repeated(line: str, size: int) -> str:
    """Return a line so often that the text has about so many characters, each with its number."""
    return "".join(line.format(number) for number in range(size // len(line)))


def linear_shapes(size: int) -> dict[str, str]:
    """Return the shapes on which parsers turn quadratic.

    Some of them are refused, and that has to be linear too.
    """
    shapes = compared_shapes(size)
    shapes["blanks"] = "KEY=a" + " " * size + "b\n"
    shapes["blank lines"] = "\n" * size + "KEY=a\n"
    shapes["${"] = "KEY=" + "${" * (size // 2) + "\n"
    shapes["references"] = "A=b\nKEY=" + "${A}" * (size // 4) + "\n"
    shapes["#"] = "KEY=a" + "#" * size + "\n"
    shapes["blanks and #"] = "KEY=a" + " #" * (size // 2) + "\n"
    shapes["backslashes"] = 'KEY="' + "\\\\" * (size // 2) + '"\n'
    shapes["escaped quotes"] = 'KEY="' + '\\"' * (size // 2) + '"\n'
    shapes["a quote that never ends"] = 'KEY="' + "'\n" * (size // 2)
    shapes["exports"] = "A=b\n" + "export A\n" * (size // 9)
    return shapes


def parser_against_python_dotenv(bench: Bench) -> Iterator[Row]:
    """Compare the two parsers on texts that they read in the same way."""
    figures = {
        "KEY=value lines": at_least(9),
        "quoted lines": at_least(3.5),
        "one long value": at_least(20),
    }
    if "python-dotenv" not in bench.peers:
        for shape, figure in figures.items():
            yield Row(f"parser, {shape} / python-dotenv", None, figure)
        return
    parse = parser_of(bench)
    dotenv = bench.module("dotenv", packages_of(f"{bench.directory}/python-dotenv"))

    def parse_theirs(text: str) -> dict[str, str | None]:
        return dict(dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False))

    size = MEGABYTE // 10 if bench.is_quick else MEGABYTE
    for shape, text in compared_shapes(size).items():
        if parse(text) != parse_theirs(text):
            raise RuntimeError(f"the two parsers do not agree on {shape}")
        took = interleave(
            {
                "hotenv": functools.partial(seconds_of, parse, text),
                "python-dotenv": functools.partial(seconds_of, parse_theirs, text),
            },
            bench.runs,
        )
        speeds = [f"{len(text) / seconds / MEGABYTE:.1f} MB/s" for seconds in took.values()]
        what = f"parser, {shape} / python-dotenv"
        ratio = took["python-dotenv"] / took["hotenv"]
        yield Row(what, ratio, figures[shape], note=" and ".join(speeds))


def parser_is_linear(bench: Bench) -> Iterator[Row]:
    """Compare a text with one that is ten times as long."""
    parse = parser_of(bench)
    size = MEGABYTE // 10 if bench.is_quick else MEGABYTE // 3
    large_shapes = linear_shapes(10 * size)
    for shape, small in linear_shapes(size).items():
        large = large_shapes.pop(shape)
        took = interleave(
            {
                "small": functools.partial(seconds_of, parse, small),
                "large": functools.partial(seconds_of, parse, large),
            },
            min(bench.runs, 7),
        )
        what = f"parser, {shape}, ten times the size"
        note = f"{len(large) / took['large'] / MEGABYTE:,.0f} MB/s"
        yield Row(what, took["large"] / took["small"], at_most(12), note=note)


def parser_of(bench: Bench) -> Callable[[str], dict[str, str]]:
    """Return hotenv's parser, to which a refusal is an empty environment."""
    hotenv = bench.module("hotenv")

    def parse(text: str) -> dict[str, str]:
        try:
            return dict(hotenv.parse_dotenv(text))
        except hotenv.HotenvError:
            return {}

    return parse


# ==== masking =====================================================================================
# What Redactor does with a log.


class Masking(NamedTuple):
    """A log to mask."""

    variables: dict[str, str]
    log: bytes
    step: int  # bytes that are fed at once
    figure: Figure | None = None


def masking(bench: Bench) -> Iterator[Row]:
    """Measure how much of a log is masked in a second."""
    size = MEGABYTE // 2 if bench.is_quick else 20 * MEGABYTE
    log = log_text(size, order_line, twenty_variables()).encode()
    with_urls = log_text(size // 4, url_line, twenty_urls()).encode()
    cases = {
        "masking a log, 20 variables": Masking(twenty_variables(), log, 1 << 16, at_least(100)),
        "the same, URLs in both": Masking(twenty_urls(), with_urls, 1 << 16),
        "masking a log, in writes of 64 bytes": Masking(twenty_variables(), log[: size // 10], 64),
    }
    calls = {
        what: functools.partial(seconds_of, masker(bench, case)) for what, case in cases.items()
    }
    took = interleave(calls, bench.runs)
    for what, case in cases.items():
        yield Row(what, len(case.log) / took[what] / MEGABYTE, case.figure, unit="MB/s")


def masker(bench: Bench, case: Masking) -> Callable[[], bytes]:
    """Return a function that masks the log, after trying that it does."""
    redactor = bench.module("hotenv").Redactor(case.variables)
    pieces = [case.log[at : at + case.step] for at in range(0, len(case.log), case.step)]

    def mask() -> bytes:
        stream = redactor.stream()
        masked = [stream.feed(piece) for piece in pieces]
        masked.append(stream.flush())
        return b"".join(masked)

    secrets = [
        value.encode() for name, value in case.variables.items() if name not in redactor.unmaskable
    ]
    if len(secrets) < 19:
        raise RuntimeError("too few of the values can be masked")
    masked = mask()
    if any(value in masked for value in secrets):
        raise RuntimeError("a value came through")
    has_values = any(value in case.log for value in secrets)  # a short log may have none
    if has_values != (b"[hidden:" in masked):
        raise RuntimeError("the masks are not where the values were")
    return mask


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def characters(draw: random.Random, count: int, alphabet: str = LETTERS) -> str:
    """Return a random text."""
    return "".join(draw.choice(alphabet) for _ in range(count))


def twenty_variables() -> dict[str, str]:
    """Return the usual kinds: tokens, keys, passwords, addresses, short settings."""
    draw = random.Random(20)
    env = {}
    for number in range(6):
        env[f"SERVICE_{number}_TOKEN"] = "tok_" + characters(draw, 36)
    for number in range(5):
        env[f"SERVICE_{number}_KEY"] = f"{draw.getrandbits(256):064x}"
    for number in range(4):
        env[f"SERVICE_{number}_PASSWORD"] = characters(draw, 14, LETTERS + "!+/=")
    for number in range(3):
        password = characters(draw, 20)
        env[f"DATABASE_{number}_URL"] = f"postgres://app:{password}@db-{number}.internal:5432/app"
    env["SESSION_SALT"] = characters(draw, 8)
    env["STAGE"] = "staging"
    return env


def twenty_urls() -> dict[str, str]:
    """Return webhooks, services and registries with a password or a token in their address."""
    draw = random.Random(21)
    env = {}
    for number in range(7):
        token = characters(draw, 24)
        env[f"WEBHOOK_{number}_URL"] = f"https://hooks.example.com/services/T0{number}/{token}"
    for number in range(7):
        password = characters(draw, 20)
        env[f"SERVICE_{number}_URL"] = f"https://app:{password}@service-{number}.example.com/v2/"
    for number in range(6):
        key = characters(draw, 32)
        env[f"API_{number}_URL"] = f"https://api.example.com/v{number}/events?key={key}"
    return env


def log_text(
    size: int, one_line: Callable[[random.Random], str], variables: dict[str, str]
) -> str:
    """Return what a web service writes. One line of 500 has a value that should not be there."""
    draw = random.Random(500)
    values = list(variables.values())
    lines = []
    length = 0
    while length < size:
        line = one_line(draw)
        if draw.randrange(500) == 0:
            line += f" credentials={draw.choice(values)}"
        lines.append(line + "\n")
        length += len(line) + 1
    return "".join(lines)[:size]


def order_line(draw: random.Random) -> str:
    """Return a line of a service that takes orders."""
    took = draw.randrange(1, 900)
    order = draw.randrange(10**6)
    worker = f"[worker-{order % 8}]"
    second = f"{order % 60:02}:{took % 60:02}.{took:03}"
    queries = f"SELECT id, name, total FROM orders WHERE id = {order}: 1 row"
    customer = f"customer-{took}@example.com"
    said = draw.choice(
        [
            f'INFO  {worker} app.access: GET /api/v2/orders/{order} HTTP/1.1" 200 {took} ms',
            f"DEBUG {worker} app.database: {queries}",
            f"INFO  {worker} app.queue: job {order:032x} for {customer} done, {took} left",
            f"WARN  {worker} app.payments: request {order:08x} to payments.internal/v1, {took} ms",
            f"ERROR {worker} app.payments: connection to db-1.internal:5432 lost, {took % 5} of 5",
        ]
    )
    return f"2026-02-14T12:{second}Z {said}"


def url_line(draw: random.Random) -> str:
    """Return a line that is little else than URLs."""
    took = draw.randrange(1, 900)
    order = draw.randrange(10**6)
    site = "example.com"
    return draw.choice(
        [
            f"https://api.{site}/v2/orders/{order} {took} ms",
            f"https://cdn.{site}/assets/{order:08x}.js https://www.{site}/orders/{took}",
            f"https://service-{took % 7}.{site}/v2/jobs/{order:08x} {took} ms",
            f"https://hooks.{site}/services/{order:08x} https://payments.{site}/v2/{order:08x}",
        ]
    )


# ==== guards ======================================================================================
# What guards cost before the first line of a program.

GUARDS = {
    "--no-network": ["--no-network"],
    "all of them": ["--profile", "all"],
}


def guards(bench: Bench) -> Iterator[Row]:
    """Measure a guarded Python that starts in a guarded program, and hotenv in front of a program.

    The first is what each child of a guarded program costs. The second is what a user starts.
    """
    front = ["--no-network", "--", bench.hello]
    commands = {"bare": bench.process(bench.hello)}
    for name, options in GUARDS.items():
        commands[name] = bench.process(bench.hello, environment=inside(bench, options))
    commands["hotenv hermetic, installed"] = bench.process(bench.command, "hermetic", *front)
    script = [bench.python, bench.script]
    commands["hotenv hermetic, script"] = bench.process(*script, "hermetic", *front)
    if "hermetic-seal" in bench.peers:
        commands["hermetic-seal"] = bench.process(*bench.peers["hermetic-seal"], *front)
    spent = compare_processes(commands, bench.runs)

    yield spent.time("hello world, bare", "bare")
    for name in GUARDS:
        what = f"hook in a Python that starts, {name}: processor time over bare"
        yield spent.more(what, name, "bare", at_most(4))
    for name in ("hotenv hermetic, installed", "hotenv hermetic, script", "hermetic-seal"):
        yield spent.ratio(f"{name}, hello world / bare", name, "bare")


def inside(bench: Bench, options: list[str]) -> dict[str, str]:
    """Return the environment of a guarded program, which guards each Python started in it."""
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    shown = bench.call([bench.command, "hermetic", *options, "--", bench.python, "-c", code])
    return dict(json.loads(shown))


def kernel_guards(bench: Bench) -> Iterator[Row]:
    """Measure the kernel's part of the guards: its filters, and the imports that they need.

    The same start is compared with one where `uname` says i686, as by `setarch`. hotenv does not
    know the system calls of that machine, so that the hook alone is there.
    """
    what = "kernel guards, {}: processor time over the hook alone"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        for name in GUARDS:
            note = "not Linux on x86-64"
            yield Row(what.format(name), None, at_most(5), unit="ms", note=note)
        return

    filters = seccomp_filters(bench, be_x86_64)
    hook_filters = seccomp_filters(bench, be_i686)
    if filters <= hook_filters:
        raise RuntimeError(f"{filters} seccomp filters with the kernel, {hook_filters} without")
    commands = {}
    for name, options in GUARDS.items():
        argv = [bench.command, "hermetic", *options, "--", bench.hello]
        commands[name] = bench.process(*argv, before=be_x86_64)
        commands[f"{name}, hook"] = bench.process(*argv, before=be_i686)
    spent = compare_processes(commands, bench.runs)
    for name in GUARDS:
        yield spent.more(what.format(name), name, f"{name}, hook", at_most(5))


PER_LINUX = 0  # <linux/personality.h>
PER_LINUX32 = 8


def be_x86_64() -> None:
    """Let `uname` name the machine as it is. Both sides make a call, so that both cost the same."""
    ctypes.CDLL(None).personality(PER_LINUX)


def be_i686() -> None:
    """Let `uname` say i686 to this process and all that it starts."""
    ctypes.CDLL(None).personality(PER_LINUX32)


def seccomp_filters(bench: Bench, before: Callable[[], None]) -> int:
    """Return how many filters a guarded program is under, as its own /proc entry says."""
    code = "print(*[line for line in open('/proc/self/status') if 'Seccomp_filters' in line])"
    argv = [bench.command, "hermetic", "--no-network", "--", bench.python, "-c", code]
    # Before that line there may be one that says what is for Python code only.
    return int(bench.call(argv, preexec_fn=before).split(":")[-1])


def guarded_httpie(bench: Bench) -> Iterator[Row]:
    """Measure a real program under guards.

    hotenv stands in another environment first. Then it stands in the program's own, where it needs
    no second interpreter.
    """
    guarded = [
        "hotenv, installed",
        "hotenv, installed beside it",
        "hotenv, script",
        "hermetic-seal",
    ]
    if "httpie" not in bench.peers:
        for name in guarded:
            yield Row(f"http --version, {name} / bare", None)
        return
    version = [*bench.peers["httpie"], "--version"]
    target = ["--no-network", "--", *version]
    beside = bench.install(f"{bench.directory}/httpie")
    commands = {
        "bare": bench.process(*version),
        "hotenv, installed": bench.process(bench.command, "hermetic", *target),
        "hotenv, installed beside it": bench.process(beside, "hermetic", *target),
        "hotenv, script": bench.process(bench.python, bench.script, "hermetic", *target),
    }
    if "hermetic-seal" in bench.peers:
        commands["hermetic-seal"] = bench.process(*bench.peers["hermetic-seal"], *target)
    spent = compare_processes(commands, bench.runs)
    yield spent.time("http --version, bare", "bare")
    for name in guarded:
        yield spent.ratio(f"http --version, {name} / bare", name, "bare")


# ==== shell sessions ==============================================================================
# A command in a shell that stays: called in this process, and by an agent, whom this process plays.

IN_PROCESS = "in process"
MCP = "hotenv mcp"
EXECKIT = "execkit-mcp"


def shells(bench: Bench) -> Iterator[Row]:
    """Measure a command that does nothing, one that writes a lot, and a shell for one command."""
    ways = [IN_PROCESS, MCP, EXECKIT]
    size = 5 * MEGABYTE if bench.is_quick else 50 * MEGABYTE
    if shutil.which("bash"):
        found = measured_shells(bench, size)
    else:
        found = {}

    figures = {IN_PROCESS: at_most(0.3), MCP: at_most(1)}
    for way in ways:
        what = f"shell session, true, {way}"
        yield in_milliseconds(what, found.get(("true", way)), figures.get(way))
    for way in ways:
        what = f"shell session, {size // MEGABYTE} MB of output, {way}"
        figure = at_least(200) if way == IN_PROCESS else None
        seconds = found.get(("output", way))
        rate = None if seconds is None else size / seconds / MEGABYTE
        yield Row(what, rate, figure, unit="MB/s")
    for way in ways:
        what = f"shell session, open, true, close, {way}"
        yield in_milliseconds(what, found.get(("once", way)), None)


def in_milliseconds(what: str, seconds: float | None, figure: Figure | None) -> Row:
    """Return a row for a time."""
    measured = None if seconds is None else seconds * 1000
    return Row(what, measured, figure, unit="ms")


def measured_shells(bench: Bench, size: int) -> dict[tuple[str, str], float]:
    """Return seconds for each command and each way of calling it."""
    output = bench.write(f"{bench.directory}/output", ("x" * 99 + "\n") * (size // 100))
    with bench.session("--quiet") as (project, _), contextlib.ExitStack() as stack:
        os.chdir(project)
        starts = shell_starts(bench, project, stack)
        shells = {}
        for way, start in starts.items():
            shells[way] = start()
            stack.callback(shells[way].close)

        true = {way: functools.partial(seconds_of_true, shell) for way, shell in shells.items()}
        cat = {
            way: functools.partial(seconds_of_exec, shell, f"cat {output}")
            for way, shell in shells.items()
        }
        once = {
            way: functools.partial(seconds_of, use_once, start) for way, start in starts.items()
        }
        found = {}
        for what, calls, rounds in (
            ("true", true, bench.runs),
            ("output", cat, min(bench.runs, 5)),
            ("once", once, bench.runs),
        ):
            for way, seconds in interleave(calls, rounds).items():
                found[what, way] = seconds
    os.remove(output)
    return found


def shell_starts(
    bench: Bench, project: str, stack: contextlib.ExitStack
) -> dict[str, Callable[[], Any]]:
    """Return what opens a shell, for each way. All shells get the variables of the session."""
    hotenv = bench.module("hotenv")
    variables = hotenv.fetch()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}

    argv = [bench.python, f"{project}/tools/hotenv.py", "mcp"]
    server = stack.enter_context(running(argv, env=bench.environment, **pipes))
    agent = Agent(server, "session")
    starts: dict[str, Callable[[], Any]] = {
        IN_PROCESS: lambda: hotenv.ShellSession(variables),
        MCP: lambda: AgentShell(agent, "session_open", "session_close"),
    }
    if EXECKIT in bench.peers:
        environment = {**bench.environment, **variables}
        peer = stack.enter_context(running(bench.peers[EXECKIT], env=environment, **pipes))
        their_agent = Agent(peer, "session_id")
        starts[EXECKIT] = lambda: AgentShell(
            their_agent, "session_create", "session_destroy", transport="local"
        )
    return starts


class Agent:
    """An MCP client by JSON lines."""

    def __init__(self, process: subprocess.Popen[bytes], key: str) -> None:
        """Begin with a server. `key` is what it calls the name of a shell."""
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the server has no pipes")
        self.to_server = process.stdin
        self.from_server = process.stdout
        self.key = key
        self.number = 0
        self._ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "clientInfo": {"name": "bench", "version": "1"},
                "capabilities": {},
            },
        )
        self._tell({"method": "notifications/initialized"})

    def tool(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool, and return its result."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result}")
        return dict(json.loads(result["content"][0]["text"]))

    def _tell(self, message: dict[str, Any]) -> None:
        self.to_server.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.to_server.flush()

    def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self._tell({"id": self.number, "method": method, "params": parameters})
        for line in self.from_server:  # notifications come in between
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return dict(answer["result"])
        raise RuntimeError(f"the server ended at {method}")


class AgentShell:
    """As much of a ShellSession as is measured here, behind an agent's server."""

    def __init__(self, agent: Agent, opening: str, closing: str, **arguments: str) -> None:
        """Open a shell. `opening` and `closing` are the tools that do it."""
        self.agent = agent
        self.closing = closing
        self.name = {agent.key: agent.tool(opening, **arguments)[agent.key]}

    def exec(self, command: str) -> int:
        """Run a command, and return its exit status. An agent learns of it where it is not 0."""
        result = self.agent.tool("session_exec", **self.name, command=command)
        return int(result.get("exit_code", 0))

    def close(self) -> None:
        """Close the shell."""
        self.agent.tool(self.closing, **self.name)


def seconds_of_exec(shell: Any, command: str) -> float:
    """Return how long a command takes, which must end with 0."""
    begin = time.perf_counter()
    result = shell.exec(command)
    took = time.perf_counter() - begin
    if getattr(result, "exit_code", result) != 0:
        raise RuntimeError(f"{command} ended with {result}")
    return took


def seconds_of_true(shell: Any) -> float:
    """Return the median of a few calls of `true`, which are too short for one."""
    return statistics.median([seconds_of_exec(shell, "true") for _ in range(20)])


def use_once(start: Callable[[], Any]) -> None:
    """Open a shell, run one command, and close it."""
    shell = start()
    seconds_of_exec(shell, "true")
    shell.close()


# ==== command line ================================================================================

MEASUREMENTS: list[Callable[[Bench], Iterator[Row]]] = [
    start_up,
    ready,
    throughput,
    memory,
    parser_against_python_dotenv,
    parser_is_linear,
    masking,
    guards,
    kernel_guards,
    guarded_httpie,
    shells,
]


def measure(bench: Bench, names: list[str]) -> dict[str, list[Row]]:
    """Return the rows of the measurements with these names, or of all where there is no name."""
    rows: dict[str, list[Row]] = {}
    for measurement in MEASUREMENTS:
        name = measurement.__name__
        if names and name not in names:
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        os.chdir(bench.directory)
        rows[name] = []
        signal.alarm(MEASUREMENT_LIMIT)
        try:
            rows[name].extend(measurement(bench))
        except Exception as error:  # the other rows are worth having, and the exit status tells
            rows[name].append(Row(name, None, note=f"failed: {error}", has_failed=True))
        finally:
            signal.alarm(0)
    return rows


def as_table(rows: list[Row], missing: list[str]) -> str:
    """Return the rows as a table for people."""
    answers = {True: "yes", False: "NO", None: "-"}
    lines = [("what", "figure", "measured", "reached", "")]
    for row in rows:
        note = row.note
        if row.measured is None and not note:
            note = "missing"
        figure = str(row.figure or "")
        lines.append((row.what, figure, row.shown, answers[row.reached], note))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    table = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        table.append("  ".join([*cells, line[4]]).rstrip())
    table += [f"missing: {peer}" for peer in missing]
    return "\n".join(table)


def as_json(rows: dict[str, list[Row]], bench: Bench) -> str:
    """Return the rows, and on what they were measured, as JSON."""
    shown = []
    for name, its_rows in rows.items():
        for row in its_rows:
            entry: dict[str, Any] = {"measurement": name, **row._asdict(), "reached": row.reached}
            entry["figure"] = str(row.figure or "")
            shown.append(entry)
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.platform()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "runs": bench.runs,
        "missing": bench.missing,
        "rows": shown,
    }
    return json.dumps(found, indent=1)


def give_up(number: int, frame: object) -> None:
    """Unwind, so that every process is ended and the directory is removed."""
    if number == signal.SIGALRM:
        raise TimeoutError(f"not done after {MEASUREMENT_LIMIT} s")
    sys.exit(128 + number)


def command_line() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0],
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--peers", action="store_true", help="install the peers that come from PyPI and npm"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_RUNS} runs instead of {RUNS}: does it work?"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        choices=[measurement.__name__ for measurement in MEASUREMENTS],
        help="measure only these: %(choices)s",
    )
    parser.add_argument(
        "--hotenv",
        default=os.path.join(os.path.dirname(HERE), "hotenv.py"),
        metavar="PATH",
        help="the file to measure (default: the one above this directory)",
    )
    return parser


def main() -> int:
    """Do what the command line says, and return the exit status."""
    options = command_line().parse_args()
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, give_up)
    # Behind `&` the signal is ignored, and shells would start in another way.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="bench-hotenv-") as directory:
        hotenv = os.path.abspath(options.hotenv)
        bench = Bench(hotenv, os.path.realpath(directory), options.quick, options.peers)
        rows = measure(bench, options.only)
        os.chdir("/")
    table = [row for its_rows in rows.values() for row in its_rows]
    if options.json:
        print(as_json(rows, bench), flush=True)
    else:
        print(as_table(table, bench.missing), flush=True)

    wrong = [f"{row.what}: {row.note}" for row in table if row.has_failed]
    for row in table:
        if row.reached is False:
            wrong.append(f"missed: {row.what}: {row.shown}, {row.figure}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
