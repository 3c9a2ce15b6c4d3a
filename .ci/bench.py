#!/usr/bin/env python3
"""Measures hotenv beside a bare interpreter and the programs that people would use instead, all of them in one run.

    python3 .ci/bench.py [--peers] [--json] [--quick] [--only NAME...] [--hotenv PATH]

Every figure is a ratio or a difference of medians of runs that took turns, so that whatever else the machine did, it
did to both sides. Processes start in a plain virtual environment made for the purpose: no `.pth` file, none of the
caller's PYTHON* variables, because an interpreter that is slow to start makes every ratio look good. It is of the
Python that runs this file. All that is measured lives in one temporary directory, of which nothing is left.

`--peers` installs python-dotenv, dotenv-cli, dotenvx, hermetic-seal, execkit-mcp, and httpie as a program to guard,
into that directory, which takes a package index. What is missing is named below the table. The exit status is 1 if a
figure is missed or could not be measured, with a line for each on stderr; a peer that is missing is no reason.

To add a figure, write a function that takes a Bench and yields Rows, and put it into MEASUREMENTS at the end.
"""
from __future__ import annotations

import argparse
import contextlib
import ctypes
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
from typing import Any, Callable, Iterator, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS, QUICK_RUNS = 31, 3
MEASUREMENT_LIMIT = 900  # seconds; a measurement that hangs is ended rather than waited for
MEGABYTE = 1_000_000
FORK = multiprocessing.get_context("fork")
VARIABLES = "".join(f"SERVICE_{n:02}_TOKEN=s3cr3t-{n:02}-0123456789abcdefghijklmnopqrst\n" for n in range(50))


class Row(NamedTuple):
    """One line of the table. Without a figure it is shown for comparison only."""

    what: str
    measured: float | None  # None: a peer is missing, or `note` says what is
    figure: float | None = None
    at_least: bool = False
    unit: str = "times"
    note: str = ""

    @property
    def bound(self) -> str:
        return "" if self.figure is None else f"at {'least' if self.at_least else 'most'} {self.figure:g}"

    @property
    def found(self) -> str:
        return "-" if self.measured is None else f"{self.measured:.2f}" + f" {self.unit}" * (self.unit != "times")

    @property
    def reached(self) -> bool | None:
        if self.figure is None or self.measured is None:
            return None
        return self.measured >= self.figure if self.at_least else self.measured <= self.figure


# ==== measuring =======================================================================================================
# Nothing here knows of hotenv: taking turns, timing a process, asking a socket.

def interleave(candidates: dict[Any, Callable[[], float]], rounds: int) -> dict[Any, float]:
    """The median of what each candidate returns, one call of each in every round, in a new order each time."""
    samples: dict[Any, list[float]] = {name: [] for name in candidates}
    turns = random.Random(1)
    for _ in range(rounds + 1):
        for name in turns.sample(list(candidates), len(candidates)):
            samples[name].append(candidates[name]())
    # The first round warmed the caches.
    return {name: statistics.median(values[1:]) for name, values in samples.items()}


def timed_call(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


class Process(NamedTuple):
    """How one that is measured is started; `before` is called in it, between fork and exec."""

    argv: list[str]
    environment: dict[str, str]
    before: Callable[[], object] | None = None

    def run(self) -> tuple[float, float]:
        """Seconds until it has ended, which it has to do with status 0, and its and its children's processor time."""
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        begin = time.perf_counter()
        if self.before:
            null = subprocess.DEVNULL
            popen = subprocess.Popen(self.argv, env=self.environment, preexec_fn=self.before,  # it has to live on
                                     stdin=null, stdout=null, stderr=null)
            pid = popen.pid
        else:
            pid = os.posix_spawn(self.argv[0], self.argv, self.environment, file_actions=quiet)
        try:
            _, status, usage = os.wait4(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        took = time.perf_counter() - begin
        if status:
            raise RuntimeError(f"{' '.join(self.argv)} ended with status {status:#x}")
        return took, usage.ru_utime + usage.ru_stime


class Spent(NamedTuple):
    """Medians, of which processor time shows less of what else the machine did."""

    wall: dict[str, float]
    processor: dict[str, float]

    def row(self, what: str, name: str, base: str, figure: float | None = None) -> Row:
        if name not in self.wall:
            return Row(what, None, figure)
        spent = self.processor[name] / self.processor[base]
        note = f"{milliseconds(self.wall[name])}; processor time {spent:.2f} times"
        return Row(what, self.wall[name] / self.wall[base], figure, note=note)

    def bare(self, what: str, name: str) -> Row:
        note = f"processor time {milliseconds(self.processor[name])}"
        return Row(what, self.wall[name] * 1000, unit="ms", note=note)

    def over(self, what: str, name: str, base: str, figure: float) -> Row:
        note = f"{(self.wall[name] - self.wall[base]) * 1000:+.1f} ms elapsed"
        return Row(what, (self.processor[name] - self.processor[base]) * 1000, figure, unit="ms", note=note)


def processes(commands: dict[str, Process], runs: int) -> Spent:
    spent: dict[str, list[float]] = {name: [] for name in commands}

    def run(name: str) -> float:
        took, processor = commands[name].run()
        spent[name].append(processor)
        return took

    wall = interleave({name: lambda name=name: run(name) for name in commands}, runs)
    return Spent(wall, {name: statistics.median(values[1:]) for name, values in spent.items()})


def ask(path: str) -> bytes:
    """One request, and the whole answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b'{"command":"run","args":["true"]}\n')
        pieces = []
        while True:
            piece = connection.recv(1 << 16)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def requests_per_second(path: str, clients: int, requests: int) -> float:
    """What `clients` processes get answered together, each asking `requests` times, one after the other."""
    gate, spans = FORK.Barrier(clients), FORK.SimpleQueue()

    def client() -> None:
        expected = len(ask(path))
        gate.wait(60)
        begin = time.perf_counter()
        if not expected or any(len(ask(path)) != expected for _ in range(requests)):
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
    begins, ends = zip(*[spans.get() for _ in asking])
    return clients * requests / (max(ends) - min(begins))


def wait_for(condition: Callable[[], object], what: str, pause: float = 0.0005) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited 20 s for {what}")
        time.sleep(pause)


@contextlib.contextmanager
def running(argv: list[str], **options) -> Iterator[subprocess.Popen]:
    """A process that is gone when the block is left."""
    process = subprocess.Popen(argv, **options)
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.communicate(timeout=10)  # closes its pipes too
        process.kill()
        process.wait()


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


# ==== the bench =======================================================================================================
# Where everything is measured: one temporary directory with a virtual environment, projects and the peers.

DROPPED = ("PYTHON", "HOTENV", "HERMETIC", "XDG_", "VIRTUAL_ENV")  # of the caller's environment
# A peer: who installs it, its package, its program, and what `run -- true` is for it; {} is a dotenv file.
PEERS = {
    "python-dotenv": ("pip", "python-dotenv[cli]==1.2.4", "dotenv", "-f {} run -- true"),
    "hermetic-seal": ("pip", "hermetic-seal==1.0.0", "hermetic", ""),
    "httpie": ("pip", "httpie", "http", ""),
    "execkit-mcp": ("pip", "execkit-mcp==0.10.1", "execkit-mcp", ""),
    "dotenv-cli": ("npm", "dotenv-cli", "dotenv", "-e {} -- true"),
    "dotenvx": ("npm", "@dotenvx/dotenvx", "dotenvx", "run --quiet -f {} -- true"),
}


class Bench:
    """What a measurement is given: `runs`, paths, a clean `environment`, the `peers` found, and live sessions."""

    def __init__(self, hotenv: str, directory: str, quick: bool, peers: bool) -> None:
        self.hotenv, self.directory, self.quick = hotenv, directory, quick
        self.runs = QUICK_RUNS if quick else RUNS
        kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
        self.environment = {**kept, "HOME": self.make_directory("home"), "XDG_RUNTIME_DIR": self.make_directory("r")}
        venv = os.path.join(directory, "venv")
        self.call([sys.executable, "-m", "venv", "--without-pip", venv])
        self.packages, self.python, self.command = packages_of(venv), f"{venv}/bin/python", self.install(venv)
        self.project = self.make_project("project", VARIABLES)
        self.script = f"{self.project}/tools/hotenv.py"
        self.hello = self.write(f"{directory}/hello", f"#!{self.python}\nprint('hello')\n", 0o700)
        self.peers: dict[str, list[str]] = {}
        self.missing: list[str] = []
        for name in PEERS:
            try:
                if not peers:
                    raise RuntimeError("installed only with --peers")
                self.peers[name] = self._install_peer(name)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                self.missing.append(f"{name}: {error}")

    def make_directory(self, name: str) -> str:
        path = os.path.join(self.directory, name)
        os.makedirs(path, mode=0o700)
        return path

    def make_project(self, name: str, text: str) -> str:
        """A directory with its own secrets.env and its own copy of the script."""
        project = os.path.dirname(self.make_directory(f"{name}/tools"))
        self.write(f"{project}/secrets.env", text)
        shutil.copy(self.hotenv, f"{project}/tools/hotenv.py")
        return project

    def write(self, path: str, text: str, mode: int = 0o600) -> str:
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def install(self, venv: str) -> str:
        """hotenv as pip would install it: its bytecode beside it, and the script that pip 25 and later write."""
        module = shutil.copy(self.hotenv, f"{packages_of(venv)}/hotenv.py")
        py_compile.compile(module, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
        body = "import sys\nfrom hotenv import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
        return self.write(f"{venv}/bin/hotenv", f"#!{venv}/bin/python\n{body}", 0o700)

    def process(self, *argv: str, environment: dict[str, str] | None = None, before: Any = None) -> Process:
        return Process(list(argv), environment or self.environment, before)

    def timed(self, *argv: str) -> float:
        return self.process(*argv).run()[0]

    def call(self, argv: list[str], **options) -> str:
        """Runs a step of the preparation and returns its output, which is shown only if it fails."""
        options = {"env": self.environment, "cwd": self.directory, "stdin": subprocess.DEVNULL, **options}
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **options)
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout.decode(errors='replace').strip()[-500:]}")
        return done.stdout.decode()

    def module(self, name: str = "hotenv", packages: str = "") -> Any:
        """A module of the virtual environment, in this process: what is measured then is no start."""
        sys.path.insert(0, packages or self.packages)
        try:
            return importlib.import_module(name)
        finally:
            del sys.path[0]

    @contextlib.contextmanager
    def session(self, *options: str, text: str = VARIABLES, **how: Any) -> Iterator[tuple[str, int]]:
        """A live session in a project of its own, and its server's pid; it is gone afterwards."""
        project = self.make_project(f"session-{len(os.listdir(self.directory))}", text)
        with self.serving(project, *options, **how) as process:
            wait_for(lambda: os.path.exists(f"{project}/.hotenv") or process.poll() is not None, "a marker")
            if process.poll() is not None:
                raise RuntimeError(f"serve ended with status {process.returncode}")
            yield project, process.pid
        shutil.rmtree(project)

    @contextlib.contextmanager
    def serving(self, project: str, *options: str, log: str = os.devnull, installed: bool = False,
                flags: tuple[str, ...] = ()) -> Iterator[subprocess.Popen]:
        """`serve` just started, its stderr in the file `log`; the caller finds out whether it is ready already."""
        script = [self.command] if installed else [self.python, *flags, f"{project}/tools/hotenv.py"]
        with open(f"{project}/secrets.env") as text, open(log, "w") as stderr:
            argv = [*script, "serve", *options]
            with running(argv, env=self.environment, cwd=project, stdin=text, stderr=stderr) as process:
                yield process

    def _install_peer(self, name: str) -> list[str]:
        installer, package, program, arguments = PEERS[name]
        place = self.make_directory(name)
        if installer == "pip":
            programs = f"{place}/bin"
            self.call([sys.executable, "-m", "venv", place])
            pip = [f"{programs}/python", "-m", "pip", "--quiet", "--no-cache-dir", "install", package]
            self.call(pip, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
            packages_of(place)
        else:
            programs = f"{place}/node_modules/.bin"
            npm = ["npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", place, package]
            self.call(npm, cwd=place, env={**os.environ, "npm_config_cache": f"{place}/cache"})
        return [f"{programs}/{program}", *arguments.format(f"{self.project}/secrets.env").split()]


def packages_of(venv: str) -> str:
    """Its site-packages, without .pth files: each is read, and its code run, at every start of the interpreter."""
    packages = glob.glob(f"{venv}/lib/python*/site-packages")[0]
    for path in glob.glob(f"{packages}/*.pth"):
        os.remove(path)
    return packages


def socket_of(project: str) -> str:
    with open(f"{project}/.hotenv") as marker:
        return marker.read().strip()[len("socket="):]


# ==== start-up ========================================================================================================
# What `run -- true` costs, against an interpreter that does nothing and against the peers.

def start_up(bench: Bench) -> Iterator[Row]:
    run = ("run", "--", "true")
    isolated = f"import sys; sys.path.append({bench.packages!r}); import hotenv; sys.exit(hotenv.main())"
    figures = {"vendored script": 4.8, "-m, from the second time on": 1.8, "installed": 1.3, "by shellenv": 1.3,
               "imported with -I -S": 1.25}
    peers = {"python-dotenv": 0.95, "dotenv-cli": None, "dotenvx": None}
    with bench.session("--quiet") as (project, _):
        os.chdir(project)  # `run` finds its marker here, and -m its module
        spent = processes({
            "pass": bench.process(bench.python, "-c", "pass"),
            "pass -I -S": bench.process(bench.python, "-I", "-S", "-c", "pass"),
            "vendored script": bench.process(bench.python, f"{project}/tools/hotenv.py", *run),
            "-m, from the second time on": bench.process(bench.python, "-m", "tools.hotenv", *run),
            "installed": bench.process(bench.command, *run),
            "by shellenv": bench.process(*shell_function(bench), *run),
            "imported with -I -S": bench.process(bench.python, "-I", "-S", "-c", isolated, *run),
            **{peer: bench.process(*bench.peers[peer]) for peer in peers if peer in bench.peers},
        }, bench.runs)
    yield spent.bare("python3 -c pass", "pass")
    yield spent.bare("python3 -I -S -c pass", "pass -I -S")
    for name, figure in figures.items():
        yield spent.row(f"run, {name} / python3 -c pass", name, "pass", figure)
    for peer, figure in peers.items():
        measured, note = None, ""
        if peer in spent.wall:
            measured, note = spent.wall["vendored script"] / spent.wall[peer], milliseconds(spent.wall[peer])
        yield Row(f"run, vendored script / {peer}", measured, figure, note=note)


def shell_function(bench: Bench) -> list[str]:
    """What the function that `shellenv` prints calls, without the shell."""
    function = bench.call([bench.python, bench.script, "shellenv"]).strip()
    if not function.startswith("hotenv() { ") or not function.endswith(' "$@"; }'):
        raise RuntimeError(f"this is no function of shellenv's: {function}")
    return shlex.split(function[len("hotenv() { "):-len(' "$@"; }')])


def ready(bench: Bench) -> Iterator[Row]:
    """From the start of `serve` until somebody who polls for its marker has an answer."""
    project = bench.make_project("ready", VARIABLES)

    def until_answered(installed: bool) -> float:
        begin = time.perf_counter()
        with bench.serving(project, installed=installed):
            wait_for(lambda: os.path.exists(f"{project}/.hotenv"), "a marker", pause=0.0002)
            ask(socket_of(project))
            return time.perf_counter() - begin

    took = interleave({
        "pass": lambda: bench.timed(bench.python, "-c", "pass"),
        "vendored script": lambda: until_answered(False),
        "installed": lambda: until_answered(True)}, bench.runs)
    for kind in ("vendored script", "installed"):
        what = f"serve until an answer, {kind} / python3 -c pass"
        yield Row(what, took[kind] / took["pass"], 8, note=milliseconds(took[kind]))


# ==== the server ======================================================================================================

def throughput(bench: Bench) -> Iterator[Row]:
    """Requests a second, against a loop in the same Python that does nothing but accept, receive, send and close."""
    requests = 50 if bench.quick else 1000
    bare = f"{bench.directory}/r/bare.sock"
    with bench.session("--quiet") as (quiet, _), bench.session(log=f"{bench.directory}/requests.log") as (logged, _):
        paths = {"bare": bare, "quiet": socket_of(quiet), "logged": socket_of(logged)}
        loop = FORK.Process(target=bare_loop, args=(bare, ask(paths["quiet"])), daemon=True)
        loop.start()
        wait_for(lambda: os.path.exists(bare), "the bare loop")
        for clients in (4, 8):
            rates = interleave({name: lambda path=path: requests_per_second(path, clients, requests)
                                for name, path in paths.items()}, 3 * bench.runs)  # they spread by a tenth
            for kind, figure in (("quiet", 0.88), ("logged", 0.8)):
                yield Row(f"server, requests a second, {clients} clients, {kind} / bare loop",
                          rates[kind] / rates["bare"], figure, at_least=True,
                          note=f"{rates[kind]:,.0f} and {rates['bare']:,.0f} a second")
        loop.kill()


def bare_loop(path: str, reply: bytes) -> None:
    """The least that a server in Python can do. Runs in a process of its own until it is killed."""
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
    """Resident memory of a server that has answered, less that of an interpreter with the same modules.

    A script's own compilation leaves something behind, so it is measured both ways.
    """
    if not os.path.exists("/proc/self/statm"):
        return (yield Row("server, memory over its modules", None, 8, unit="MB", note="no /proc/PID/statm here"))
    idle_code = f"import sys, {', '.join(modules_of_a_server(bench))}\nprint(flush=True)\nsys.stdin.read()"
    responses: dict[str, int] = {}

    def serving(what: str, text: str, installed: bool) -> float:
        with bench.session("--quiet", text=text, installed=installed) as (project, pid):
            for _ in range(5):
                responses[what] = len(ask(socket_of(project)))
            return resident(pid)

    def idle() -> float:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with running([bench.python, "-c", idle_code], env=bench.environment, **pipes) as process:
            if not process.stdout.readline():
                raise RuntimeError("the interpreter to compare with did not start")
            return resident(process.pid)

    texts = {"50 variables": VARIABLES,  # and as much as exec takes on most systems
             "2,000 variables, 2 MB": "".join(f"KEY_{n:05}={'v' * 1000}\n" for n in range(2000))}
    servers = {(kind, what): lambda what=what, text=text, kind=kind: serving(what, text, kind == "installed")
               for kind in ("vendored script", "installed") for what, text in texts.items()}
    found = interleave({"idle": idle, **servers}, min(bench.runs, 11))
    for kind, what in servers:
        over = found[kind, what] - found["idle"] - 1.2 * responses[what] / MEGABYTE
        note = f"{found[kind, what]:.1f} MB, the interpreter {found['idle']:.1f}"
        yield Row(f"server, {kind}, {what}: memory over modules + 1.2 responses", over, 8, unit="MB", note=note)


def resident(pid: int) -> float:
    """Resident memory in MB. A hardened process shows nothing else."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MEGABYTE


def modules_of_a_server(bench: Bench) -> list[str]:
    log = f"{bench.directory}/imports.log"
    with bench.session("--quiet", log=log, flags=("-X", "importtime")) as (project, _):
        ask(socket_of(project))
    with open(log) as file:
        names = [line.rpartition("|")[2].strip() for line in file if line.startswith("import time:")]
    return [name for name in names if name not in ("imported package", "sitecustomize", "usercustomize")]


# ==== the parser ======================================================================================================

def compared_shapes(size: int) -> dict[str, str]:
    plain = "SERVICE_{:06}_SETTING=some-value-{:06}-of-common-length\n"
    quoted = 'SERVICE_{:06}_SETTING="first \\"line\\"\\nsecond line {:06}"  # with a remark\n'
    lines = {"KEY=value lines": plain, "quoted lines": quoted}
    shapes = {name: "".join(line.format(n, n) for n in range(size // len(line))) for name, line in lines.items()}
    return {**shapes, "one long value": 'KEY="' + "0123456789abcdefghijklmnopqrstuvwxyz+/\n" * (size // 39) + '"\n'}


def linear_shapes(size: int) -> dict[str, str]:
    """The shapes on which parsers turn quadratic; some of them are refused, and that has to be linear too."""
    return {
        **compared_shapes(size),
        "blanks": "KEY=a" + " " * size + "b\n",
        "blank lines": "\n" * size + "KEY=a\n",
        "${": "KEY=" + "${" * (size // 2) + "\n",
        "references": "A=b\nKEY=" + "${A}" * (size // 4) + "\n",
        "#": "KEY=a" + "#" * size + "\n",
        "blanks and #": "KEY=a" + " #" * (size // 2) + "\n",
        "backslashes": 'KEY="' + "\\\\" * (size // 2) + '"\n',
        "escaped quotes": 'KEY="' + '\\"' * (size // 2) + '"\n',
        "a quote that never ends": 'KEY="' + "'\n" * (size // 2),
        "exports": "A=b\n" + "export A\n" * (size // 9),
    }


def parser_against_python_dotenv(bench: Bench) -> Iterator[Row]:
    figures = {"KEY=value lines": 10, "quoted lines": 4, "one long value": 20}
    if "python-dotenv" not in bench.peers:
        return (yield from [Row(f"parser, {shape} / python-dotenv", None, figures[shape], True) for shape in figures])
    parse, dotenv = parser_of(bench), bench.module("dotenv", packages_of(f"{bench.directory}/python-dotenv"))

    def parse_theirs(text: str) -> dict:
        return dict(dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False))

    for shape, text in compared_shapes(MEGABYTE // (10 if bench.quick else 1)).items():
        if parse(text) != parse_theirs(text):
            raise RuntimeError(f"the two parsers do not agree on {shape}")
        took = interleave({"ours": lambda: timed_call(lambda: parse(text)),
                           "theirs": lambda: timed_call(lambda: parse_theirs(text))}, bench.runs)
        note = " and ".join(f"{len(text) / seconds / MEGABYTE:.1f} MB/s" for seconds in took.values())
        yield Row(f"parser, {shape} / python-dotenv", took["theirs"] / took["ours"], figures[shape], True, note=note)


def parser_is_linear(bench: Bench) -> Iterator[Row]:
    parse, size = parser_of(bench), MEGABYTE // (10 if bench.quick else 3)
    large_shapes = linear_shapes(10 * size)
    for shape, small in linear_shapes(size).items():
        large = large_shapes.pop(shape)
        took = interleave({"small": lambda: timed_call(lambda: parse(small)),
                           "large": lambda: timed_call(lambda: parse(large))}, min(bench.runs, 7))
        yield Row(f"parser, {shape}, ten times the size", took["large"] / took["small"], 12,
                  note=f"{len(large) / took['large'] / MEGABYTE:,.0f} MB/s")


def parser_of(bench: Bench) -> Callable[[str], dict]:
    hotenv = bench.module()

    def parse(text: str) -> dict:
        try:
            return dict(hotenv.parse_dotenv(text))
        except hotenv.HotenvError:
            return {}

    return parse


# ==== masking =========================================================================================================
# What Redactor does with a log.

def masking(bench: Bench) -> Iterator[Row]:
    size = MEGABYTE // 2 if bench.quick else 20 * MEGABYTE
    log, variables, urls = log_text(size, False), twenty_variables(), twenty_urls()
    cases = {"masking a log, 20 variables": (variables, log.encode(), 1 << 16, 80),
             "the same, URLs in both": (urls, log_text(size // 4, True).encode(), 1 << 16, 16),
             "masking a log, in writes of 64 bytes": (variables, log[:size // 10].encode(), 64, 9)}
    masks = {what: masker(bench, *case[:3]) for what, case in cases.items()}
    alone = interleave({what: lambda mask=mask: timed_call(mask) for what, mask in masks.items()}, bench.runs)
    for what, (_, text, _, figure) in cases.items():
        yield Row(what, len(text) / alone[what] / MEGABYTE, figure, at_least=True, unit="MB/s")

def masker(bench: Bench, variables: dict[str, str], log: bytes, step: int) -> Callable[[], bytes]:
    redactor = bench.module().Redactor(variables)
    pieces = [log[at:at + step] for at in range(0, len(log), step)]

    def mask() -> bytes:
        stream = redactor.stream()
        return b"".join([*map(stream.feed, pieces), stream.flush()])

    masked = mask()
    secrets = [value for name, value in variables.items() if name not in redactor.unmaskable]
    leaks = [[value for value in secrets if value.encode() in text] for text in (log, masked)]
    if len(secrets) < 19 or leaks[1] or bool(leaks[0]) != (b"[hidden:" in masked):
        raise RuntimeError("a value came through")
    return mask


def characters(draw: random.Random, count: int, more: str = "") -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + more
    return "".join(draw.choice(letters) for _ in range(count))


def twenty_variables() -> dict[str, str]:
    """Of the kinds that are usual: tokens, hexadecimal keys, passwords, addresses with a password, short settings."""
    draw = random.Random(20)
    return {
        **{f"SERVICE_{n}_TOKEN": "tok_" + characters(draw, 36) for n in range(6)},
        **{f"SERVICE_{n}_KEY": f"{draw.getrandbits(256):064x}" for n in range(5)},
        **{f"SERVICE_{n}_PASSWORD": characters(draw, 14, "!+/=") for n in range(4)},
        **{f"DATABASE_{n}_URL": f"postgres://app:{characters(draw, 20)}@db-{n}.internal:5432/app" for n in range(3)},
        "SESSION_SALT": characters(draw, 8),
        "STAGE": "staging",
    }


def twenty_urls() -> dict[str, str]:
    """Webhooks, services and registries with a password or a token in their address."""
    draw = random.Random(21)
    return {
        **{f"WEBHOOK_{n}_URL": f"https://hooks.example.com/services/T0{n}/{characters(draw, 24)}" for n in range(7)},
        **{f"SERVICE_{n}_URL": f"https://app:{characters(draw, 20)}@service-{n}.example.com/v2/" for n in range(7)},
        **{f"API_{n}_URL": f"https://api.example.com/v{n}/events?key={characters(draw, 32)}" for n in range(6)},
    }


def log_text(size: int, urls: bool) -> str:
    """What a web service writes; in one line of 500 there is a value that should not be."""
    draw = random.Random(500)
    values = list((twenty_urls() if urls else twenty_variables()).values())
    lines, length = [], 0
    while length < size:
        took, order = draw.randrange(1, 900), draw.randrange(10 ** 6)
        line = draw.choice((
            f'INFO  [worker-{order % 8}] app.access: GET /api/v2/orders/{order} HTTP/1.1" 200 {took * 37} {took} ms',
            f"DEBUG [worker-{order % 8}] app.database: SELECT id, name, total FROM orders WHERE id = {order}: 1 row",
            f"INFO  [worker-{order % 8}] app.queue: job {order:032x} for customer-{took}@example.com done, {took} left",
            f"WARN  [worker-{order % 8}] app.payments: request {order:08x} to payments.internal/v1 took {took} ms",
            f"ERROR [worker-{order % 8}] app.payments: connection to db-1.internal:5432 lost, attempt {took % 5} of 5"))
        line = f"2026-02-14T12:{order % 60:02}:{took % 60:02}.{took:03}Z {line}"
        if urls:
            line = draw.choice((
                f"https://api.example.com/v2/orders/{order} {took} ms",
                f"https://cdn.example.com/assets/{order:08x}.js https://www.example.com/orders/{took}",
                f"https://service-{took % 7}.example.com/v2/jobs/{order:08x} {took} ms",
                f"https://hooks.example.com/services/{order:08x} https://payments.example.com/v2/{order:08x}"))
        leak = f" credentials={draw.choice(values)}" if not draw.randrange(500) else ""
        lines.append(f"{line}{leak}\n")
        length += len(lines[-1])
    return "".join(lines)[:size]


# ==== guards ==========================================================================================================
# What guards cost before the first line of a program: in an interpreter that they reach by its environment, as one in a
# guarded program's children is; with hotenv in front, as a user starts it; and what of that is the kernel's part.

def guards(bench: Bench) -> Iterator[Row]:
    front, seal = ["--no-network", "--", bench.hello], bench.peers.get("hermetic-seal")
    spent = processes({
        "bare": bench.process(bench.hello),
        "--no-network": bench.process(bench.hello, environment=inside(bench, "--no-network")),
        "all of them": bench.process(bench.hello, environment=inside(bench, "--profile", "all")),
        "hotenv hermetic, installed": bench.process(bench.command, "hermetic", *front),
        "hotenv hermetic, vendored script": bench.process(bench.python, bench.script, "hermetic", *front),
        **({"hermetic-seal": bench.process(*seal, *front)} if seal else {})}, bench.runs)
    yield spent.bare("hello world, bare", "bare")
    for name in ("--no-network", "all of them"):
        yield spent.over(f"guards in a Python that starts, {name}: processor time over bare", name, "bare", 4)
    for name in ("hotenv hermetic, installed", "hotenv hermetic, vendored script", "hermetic-seal"):
        yield spent.row(f"{name}, hello world / bare", name, "bare")


def inside(bench: Bench, *options: str) -> dict[str, str]:
    """The environment of a guarded program, which guards each Python that is started in it."""
    code = "import json, os; print(json.dumps({k: os.environ[k] for k in ('PYTHONPATH', 'HOTENV_GUARDS')}))"
    shown = bench.call([bench.command, "hermetic", *options, "--", bench.python, "-c", code])
    return {**bench.environment, **json.loads(shown)}


def kernel_guards(bench: Bench) -> Iterator[Row]:
    """The same start where uname says what machine it is, and where it says i686 (as by `setarch`), whose system calls
    hotenv does not know: what is between them is all of the kernel's part, the imports that it needs too."""
    what = "kernel guards, {}: processor time over the hook alone"
    options = {"--no-network": ["--no-network"], "all of them": ["--profile", "all"]}
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return (yield from [Row(what.format(name), None, 5, unit="ms", note="not Linux on x86-64") for name in options])
    personality = ctypes.CDLL(None).personality
    known, unknown = lambda: personality(0), lambda: personality(8)  # PER_LINUX, PER_LINUX32
    layers = [seccomp_layers(bench, before) for before in (unknown, known)]
    if layers[0] + 1 != layers[1]:
        raise RuntimeError(f"a guarded program has {layers[1]} seccomp filters, and without the kernel {layers[0]}")
    commands = {}
    for name, words in options.items():
        argv = [bench.command, "hermetic", *words, "--", bench.hello]
        commands[name] = bench.process(*argv, before=known)
        commands[f"{name}, hook"] = bench.process(*argv, before=unknown)
    spent = processes(commands, bench.runs)
    for name in options:
        yield spent.over(what.format(name), name, f"{name}, hook", 5)


def seccomp_layers(bench: Bench, before: Callable[[], object]) -> int:
    """How many filters a guarded program is under; its own /proc entry says so."""
    code = "print([line for line in open('/proc/self/status') if line.startswith('Seccomp_filters:')][0].split()[1])"
    argv = [bench.command, "hermetic", "--no-network", "--", bench.python, "-c", code]
    return int(subprocess.check_output(argv, env=bench.environment, preexec_fn=before))


def guarded_httpie(bench: Bench) -> Iterator[Row]:
    """A real program; hotenv stands in another environment, and then in the program's own, where it needs no second
    interpreter."""
    http, seal = bench.peers.get("httpie"), bench.peers.get("hermetic-seal")
    figures = {"hotenv, installed": 1.15, "hotenv, installed beside it": 1.15, "hotenv, vendored script": None,
               "hermetic-seal": None}
    if not http:
        return (yield from [Row(f"http --version, {name} / bare", None, figures[name]) for name in figures])
    target = ["hermetic", "--no-network", "--", *http, "--version"]
    spent = processes({
        "bare": bench.process(*http, "--version"),
        "hotenv, installed": bench.process(bench.command, *target),
        "hotenv, installed beside it": bench.process(bench.install(f"{bench.directory}/httpie"), *target),
        "hotenv, vendored script": bench.process(bench.python, bench.script, *target),
        **({"hermetic-seal": bench.process(*seal, *target[1:])} if seal else {})}, bench.runs)
    yield spent.bare("http --version, bare", "bare")
    for name, figure in figures.items():
        yield spent.row(f"http --version, {name} / bare", name, "bare", figure)


# ==== shell sessions ==================================================================================================
# A command in a shell that stays, called in process and by an agent; this process is the agent.

def shells(bench: Bench) -> Iterator[Row]:
    if not shutil.which("bash"):
        return (yield Row("shell session, true, in process", None, 0.3, unit="ms", note="no bash here"))
    size = (5 if bench.quick else 50) * MEGABYTE
    output = bench.write(f"{bench.directory}/output", ("x" * 99 + "\n") * (size // 100))
    with bench.session("--quiet") as (project, _):
        os.chdir(project)
        took = compare_shells(bench, [bench.python, f"{project}/tools/hotenv.py", "mcp"], output)
    os.remove(output)
    figures = {("true", "in process"): 0.3, ("true", "hotenv mcp"): 1, ("open, true, close", "in process"): 10}
    for (what, way), seconds in took.items():
        row = Row(f"shell session, {what}, {way}", seconds * 1000, figures.get((what, way)), unit="ms")
        if what == "output":
            figure = 200 if way == "in process" else None
            what = f"shell session, {size // MEGABYTE} MB of output, {way}"
            row = Row(what, size / seconds / MEGABYTE, figure, at_least=True, unit="MB/s")
        yield row
    if "execkit-mcp" not in bench.peers:
        yield Row("shell session, true, execkit-mcp", None)


def compare_shells(bench: Bench, agent: list[str], output: str) -> dict[tuple[str, str], float]:
    """Called in the directory of a session, whose 50 variables all the shells get."""
    hotenv, execkit = bench.module(), bench.peers.get("execkit-mcp")
    variables = hotenv.fetch()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as stack:
        ours = Agent(stack.enter_context(running(agent, env=bench.environment, **pipes)), "session")
        ways: dict[str, Callable[[], Any]] = {
            "in process": lambda: hotenv.ShellSession(variables),
            "hotenv mcp": lambda: AgentShell(ours, "session_open", "session_close")}
        if execkit:
            process = stack.enter_context(running(execkit, env={**bench.environment, **variables}, **pipes))
            theirs = Agent(process, "session_id")
            ways["execkit-mcp"] = lambda: AgentShell(theirs, "session_create", "session_destroy", transport="local")
        opened = {}
        for way, start in ways.items():
            opened[way] = start()
            stack.callback(opened[way].close)
        found: dict[tuple[str, str], float] = {}

        def took(what: str, calls: dict[str, Callable[[], float]], rounds: int) -> dict[tuple[str, str], float]:
            return {(what, way): seconds for way, seconds in interleave(calls, rounds).items()}

        for what, command, times, rounds in (("true", "true", 20, bench.runs),
                                             ("output", f"cat {output}", 1, min(bench.runs, 5))):
            found.update(took(what, {way: lambda shell=shell: statistics.median(
                [timed_exec(shell, command) for _ in range(times)]) for way, shell in opened.items()}, rounds))
        found.update(took("open, true, close", {way: lambda start=start: timed_call(lambda: use_once(start))
                                                for way, start in ways.items()}, bench.runs))
    return found


class Agent:
    """An MCP client by JSON lines; `key` is how its server calls the name of a session."""

    def __init__(self, process: subprocess.Popen, key: str) -> None:
        self.process, self.key, self.number = process, key, 0
        client = {"clientInfo": {"name": "bench", "version": "1"}, "capabilities": {}}
        self._ask("initialize", {"protocolVersion": "2025-06-18", **client})
        self._tell({"method": "notifications/initialized"})

    def tool(self, name: str, **arguments: object) -> dict[str, Any]:
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result}")
        return json.loads(result["content"][0]["text"])

    def _tell(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self._tell({"id": self.number, "method": method, "params": parameters})
        for line in self.process.stdout:  # notifications come in between
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return answer["result"]
        raise RuntimeError(f"{' '.join(self.process.args)} ended at {method}")


class AgentShell:
    """As much of ShellSession as is measured here, behind an agent's server."""

    def __init__(self, agent: Agent, opening: str, closing: str, **arguments: str) -> None:
        self.agent, self.closing = agent, closing
        self.named = {agent.key: agent.tool(opening, **arguments)[agent.key]}

    def exec(self, command: str) -> int:
        return self.agent.tool("session_exec", **self.named, command=command)["exit_code"]

    def close(self) -> None:
        self.agent.tool(self.closing, **self.named)


def timed_exec(shell: Any, command: str) -> float:
    begin = time.perf_counter()
    status = shell.exec(command)
    took = time.perf_counter() - begin
    if getattr(status, "exit_code", status) != 0:
        raise RuntimeError(f"{command} ended with {status}")
    return took


def use_once(start: Callable[[], Any]) -> None:
    shell = start()
    timed_exec(shell, "true")
    shell.close()


# ==== command line ====================================================================================================

MEASUREMENTS: list[Callable[[Bench], Iterator[Row]]] = [
    start_up, ready, throughput, memory, parser_against_python_dotenv, parser_is_linear, masking, guards, kernel_guards,
    guarded_httpie, shells]


def measure(bench: Bench, names: list[str]) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for measurement in MEASUREMENTS:
        name = measurement.__name__
        if names and name not in names:
            continue
        print(f"measuring {name}", file=sys.stderr, flush=True)
        os.chdir(bench.directory)
        signal.alarm(MEASUREMENT_LIMIT)
        rows[name] = []
        try:
            rows[name].extend(measurement(bench))
        except Exception as error:  # the other figures are worth having, and the exit status tells
            rows[name].append(Row(name, None, note=f"failed: {error}"))
        finally:
            signal.alarm(0)
    return rows


def as_table(rows: list[Row], missing: list[str]) -> str:
    lines = [("what", "figure", "measured", "reached", "")]
    for row in rows:
        note = row.note or "missing" * (row.measured is None)
        lines.append((row.what, row.bound, row.found, {True: "yes", False: "NO", None: "-"}[row.reached], note))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths + [0])).rstrip() for line in lines]
    return "\n".join(table + [f"missing: {peer}" for peer in missing])


def as_json(rows: dict[str, list[Row]], bench: Bench) -> str:
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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # behind `&` it is ignored, and shells start otherwise
    with tempfile.TemporaryDirectory(prefix="hotenv-bench-") as directory:
        bench = Bench(os.path.abspath(options.hotenv), os.path.realpath(directory), options.quick, options.peers)
        rows = measure(bench, options.only)
        os.chdir("/")
    table = [row for name in rows for row in rows[name]]
    print(as_json(rows, bench) if options.json else as_table(table, bench.missing), flush=True)
    wrong = [f"missed: {row.what}: {row.found}, {row.bound}" for row in table if row.reached is False]
    wrong += [f"{row.what}: {row.note}" for row in table if row.note.startswith("failed: ")]
    print(*wrong, sep="\n", end="\n" * bool(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
