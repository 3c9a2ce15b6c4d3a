#!/usr/bin/env python3
"""Measures hotenv beside a bare interpreter, and beside python-dotenv and execkit-mcp.

    python3 .ci/bench.py [--rounds N] [--only NAME]...

Each round takes every measurement once, so that whatever else the machine does, it does to all of
them. The table shows medians. `--only` picks the rows whose name contains NAME. The peers come from
a package index, and are installed into a temporary directory. It takes Python 3.10 and Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import platform
import random
import resource
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent.parent
FORK = multiprocessing.get_context("fork")
VARIABLES = "".join(f"SERVICE_{n:02}_TOKEN={'s3cr3t' * 6}{n}\n" for n in range(50))
REQUESTS = 1000  # by each client
NOWHERE = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1)]
STARTS = "import subprocess, sys\nfor _ in range(10): subprocess.run(sys.argv[1:])\n"

# Commands, whose processor time is told in milliseconds. FUNCTION is what shellenv prints.
COMMANDS = {
    "python -c pass": "python -c pass",
    "python -I -S -c pass": "python -I -S -c pass",
    "run, script": "python tools/hotenv.py run -- true",
    "run, -m, from the second time on": "python -m tools.hotenv run -- true",
    "run, installed": "hotenv run -- true",
    "run, function of shellenv": "FUNCTION run -- true",
    "dotenv run, installed": "dotenv -f env run -- true",
    "dotenv run, vendored, -B": "env PYTHONPATH=vendored python -B -m dotenv -f env run -- true",
    "run -- python -c pass": "hotenv run -- python -c pass",
    "hermetic -- python -c pass": "hotenv hermetic --no-network -- python -c pass",
    "10 starts of Python": "hotenv run -- python starts.py python -c pass",
    "10 guarded starts of Python": (
        "hotenv hermetic --no-network -- python starts.py python -c pass"
    ),
    "10 starts of true": "hotenv run -- python starts.py true",
    "10 guarded starts of true": "hotenv hermetic --no-network -- python starts.py true",
}
# The rows of the table, and what each is compared with.
ROWS = {
    "run, script": "python -c pass",
    "run, -m, from the second time on": "python -c pass",
    "run, installed": "python -c pass",
    "run, function of shellenv": "python -I -S -c pass",
    "dotenv run, installed": "run, installed",
    "dotenv run, vendored, -B": "run, script",
    "hermetic -- python -c pass": "run -- python -c pass",
    "10 guarded starts of Python": "10 starts of Python",
    "10 guarded starts of true": "10 starts of true",
    "requests/s, 4 clients": "requests/s, 4 clients, bare loop",
    "requests/s, 4 clients, log": "requests/s, 4 clients, bare loop",
    "requests/s, 8 clients": "requests/s, 8 clients, bare loop",
    "requests/s, 8 clients, log": "requests/s, 8 clients, bare loop",
    "parser, lines, MB/s": "python-dotenv, lines, MB/s",
    "parser, quoted, MB/s": "python-dotenv, quoted, MB/s",
    "parser, one long value, MB/s": "python-dotenv, one long value, MB/s",
    "masking, 20 tokens, MB/s": "",
    "masking, 20 mixed values, MB/s": "",
    "shell, true, ms": "",
    "shell, 50 MB of output, MB/s": "",
    "shell over MCP, true, ms": "execkit-mcp, true, ms",
    "memory of a server, script, MB": "memory of python, MB",
    "memory of a server, installed, MB": "memory of python, MB",
}
measurements: dict[str, Callable[[], float]] = {}


def main() -> None:
    """Measure in turns, and print the table."""
    parser = argparse.ArgumentParser(description="Measure hotenv beside its peers.")
    parser.add_argument("--rounds", type=int, default=31, help="how often each is measured")
    parser.add_argument("--only", action="append", metavar="NAME", help="rows that contain NAME")
    options = parser.parse_args()
    rows = [row for row in ROWS if any(word in row for word in options.only or [""])]
    needed = {*rows, *(ROWS[row] for row in rows)}
    with contextlib.ExitStack() as stack:
        hotenv = set_up(stack)
        for group in (add_commands, add_requests, add_memory):
            group(stack)
        add_parsers(hotenv)
        add_masking(hotenv)
        add_shells(stack, hotenv)
        found: dict[str, list[float]] = {name: [] for name in measurements if name in needed}
        for _ in range(1 + options.rounds):  # the first one fills caches, and does not count
            for name, values in found.items():
                values.append(measurements[name]())
    median = {name: statistics.median(values[1:]) for name, values in found.items()}
    print(f"Python {platform.python_version()}, medians of {options.rounds} rounds")
    for row in rows:
        line = f"{row:35}{median[row]:10.2f}"
        if ROWS[row] in median:
            other = median[ROWS[row]]
            compared = f"{median[row] / other:.2f} times, {median[row] - other:+.2f}"
            line += f"  beside {other:.2f} of {ROWS[row]}: {compared}"
        print(line)


def set_up(stack: contextlib.ExitStack) -> Any:
    """Go to a new directory with hotenv, python-dotenv and a session, and return the module."""
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
    os.chdir(place)
    os.environ.update(PATH=f"{place}/venv/bin:{os.environ['PATH']}", XDG_RUNTIME_DIR=str(place))
    for name in [name for name in os.environ if name.startswith(("PYTHON", "HOTENV"))]:
        del os.environ[name]
    subprocess.run([sys.executable, "-m", "venv", "venv"], check=True)
    install(str(HERE), "python-dotenv[cli]==1.2.4")
    packages = next(place.glob("venv/lib/python*/site-packages"))
    os.mkdir("tools")
    shutil.copy(HERE / "hotenv.py", "tools")
    for package in ("dotenv", "click"):  # as in a repository: without what Python has compiled
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(packages / package, f"vendored/{package}", ignore=ignored)
    Path("env").write_text(VARIABLES)
    Path("starts.py").write_text(STARTS)
    serve(stack, "hotenv", "--quiet")
    sys.path.insert(0, str(packages))
    return importlib.import_module("hotenv")


def install(*packages: str) -> None:
    """Install packages into the virtual environment."""
    pip = ["python", "-m", "pip", "install", "-q", *packages]
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)


def serve(stack: contextlib.ExitStack, program: str, options: str, name: str = "") -> str:
    """Begin a session, which ends with the stack, and return the path of its socket."""
    naming = f"--name {name}" if name else ""
    argv = f"{program} serve --background {naming} {options}".split()
    subprocess.run(argv, input=VARIABLES.encode(), check=True)
    stack.callback(subprocess.run, f"hotenv stop {naming}".split())
    return Path(f".hotenv.{name}".rstrip(".")).read_text().strip().partition("=")[2]


def milliseconds(call: Callable[..., object], *arguments: object) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    call(*arguments)
    return 1000 * (time.perf_counter() - begin)


def rate(amount: float, call: Callable[..., object], *arguments: object) -> float:
    """Return how much a call does in a second, which does so much in all."""
    return amount / milliseconds(call, *arguments) * 1000


def add_commands(stack: contextlib.ExitStack) -> None:
    """Add the processor time of each command, with all that it starts."""

    def processor_time(argv: list[str]) -> float:
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=NOWHERE)
        _, status, usage = os.wait4(child, 0)
        if status:
            raise RuntimeError(f"{argv} ended with {status}")
        return 1000 * (usage.ru_utime + usage.ru_stime)

    shown = subprocess.check_output(["python", "tools/hotenv.py", "shellenv", "bash"], text=True)
    function = shlex.split(shown.splitlines()[0])[2:-2]  # without `hotenv() {` and `"$@"; }`
    for name, command in COMMANDS.items():
        words = command.split()
        argv = [*function, *words[1:]] if words[0] == "FUNCTION" else words
        measurements[name] = partial(processor_time, argv)


def ask(path: str, times: int = 1) -> bytes:
    """Send so many requests to a socket, and return the last answer."""
    for _ in range(times):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b'{"command":"run","args":["true"]}\n')
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return answer


def ask_side_by_side(path: str, clients: int) -> None:
    """Let so many processes send their requests."""
    asking = [FORK.Process(target=ask, args=(path, REQUESTS)) for _ in range(clients)]
    for client in asking:
        client.start()
    for client in asking:
        client.join()


def bare_loop(listener: socket.socket, reply: bytes) -> None:
    """Do the least that a server in Python can do."""
    while True:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(reply)
        connection.close()


def add_requests(stack: contextlib.ExitStack) -> None:
    """Add the requests a second of a server, and of a loop that only receives and sends."""
    sockets = {
        "": serve(stack, "hotenv", "--quiet", "quiet"),
        ", log": serve(stack, "hotenv", "--log log", "logged"),
        ", bare loop": "loop",
    }
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("loop")
    listener.listen(128)
    loop = FORK.Process(target=bare_loop, args=(listener, ask(sockets[""])))
    loop.start()
    stack.callback(loop.kill)
    for clients in (4, 8):
        for kind, path in sockets.items():
            name = f"requests/s, {clients} clients{kind}"
            measurements[name] = partial(rate, clients * REQUESTS, ask_side_by_side, path, clients)


def add_memory(stack: contextlib.ExitStack) -> None:
    """Add the memory that a process shares with no file and no other process."""

    def private(pid: int) -> float:
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
        return (int(resident) - int(shared)) * resource.getpagesize() / 1e6

    idle = subprocess.Popen(["python", "-c", "input()"], stdin=subprocess.PIPE)
    stack.callback(idle.kill)
    measurements["memory of python, MB"] = partial(private, idle.pid)
    for kind, program in (("script", "python tools/hotenv.py"), ("installed", "hotenv")):
        ask(serve(stack, program, "--quiet", kind))
        status = subprocess.check_output(["hotenv", "status", "--json", "--name", kind])
        name = f"memory of a server, {kind}, MB"
        measurements[name] = partial(private, json.loads(status)["pid"])


def add_parsers(hotenv: Any) -> None:
    """Add the speed of both parsers, on texts that mean the same to both."""
    dotenv = importlib.import_module("dotenv")

    def theirs(text: str) -> dict[str, str]:
        return dict(dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False))

    plain = "SETTING_{0:06}=some-value-{0:06}-of-common-length\n"
    quoted = 'SETTING_{0:06}="a \\"b\\"\\nline {0:06}"  # remark\n'
    texts = {
        "lines": "".join(map(plain.format, range(9000))),
        "quoted": "".join(map(quoted.format, range(9000))),
        "one long value": 'KEY="' + "0123456789abcdefghijklmnopqrstuvwxyz+/\n" * 9000 + '"\n',
    }
    for name, text in texts.items():
        if hotenv.parse_dotenv(text) != theirs(text):
            raise RuntimeError(f"the parsers do not agree on {name}")
        size = len(text) / 1e6
        measurements[f"parser, {name}, MB/s"] = partial(rate, size, hotenv.parse_dotenv, text)
        measurements[f"python-dotenv, {name}, MB/s"] = partial(rate, size, theirs, text)


def add_masking(hotenv: Any) -> None:
    """Add the masking of a log that has a value in one of 500 lines."""
    draw = random.Random(20)
    tokens = [f"tok_{draw.getrandbits(144):036x}" for _ in range(20)]
    passwords = [f"p!{draw.getrandbits(48):012x}" for _ in range(6)]
    addresses = [f"postgres://app:{token[4:20]}@db.internal:5432/app" for token in tokens[:4]]
    key = "-----BEGIN KEY-----\n" + f"{draw.getrandbits(256):064x}\n" * 12
    mixed = [*tokens[:8], *passwords, *addresses, key, "hunter"]
    lines = [f"2026-02-14 INFO [worker-{n % 8}] GET /orders/{n:08x}\n" for n in range(160_000)]

    def mask(redactor: Any, log: bytes) -> None:
        stream = redactor.stream()
        for at in range(0, len(log), 65536):
            stream.feed(log[at : at + 65536])
        stream.flush()

    for name, values in (("20 tokens", tokens), ("20 mixed values", mixed)):
        for number in range(0, len(lines), 500):
            lines[number] = draw.choice(values) + "\n"
        log = "".join(lines).encode()
        redactor = hotenv.Redactor({f"V{n}": value for n, value in enumerate(values)})
        measurements[f"masking, {name}, MB/s"] = partial(rate, len(log) / 1e6, mask, redactor, log)


def mcp_server(stack: contextlib.ExitStack, *argv: str) -> Callable[..., Any]:
    """Start an MCP server, and return what calls a tool there."""
    pipe = subprocess.PIPE
    server: Any = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    stack.callback(server.wait)
    stack.callback(server.terminate)

    def ask_for(method: str, parameters: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        answers = map(json.loads, server.stdout)
        return next(answer["result"] for answer in answers if "id" in answer)

    def call(name: str, **arguments: str) -> Any:
        result = ask_for("tools/call", {"name": name, "arguments": arguments})
        return json.loads(result["content"][0]["text"])

    client = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    ask_for("initialize", hello)
    return call


def add_shells(stack: contextlib.ExitStack, hotenv: Any) -> None:
    """Add `true` and 50 MB of output in a shell, and `true` over MCP."""
    Path("output").write_text(("x" * 99 + "\n") * 500_000)
    shell = hotenv.ShellSession(hotenv.parse_dotenv(VARIABLES))
    stack.callback(shell.close)
    measurements["shell, true, ms"] = partial(milliseconds, shell.exec, "true")
    measurements["shell, 50 MB of output, MB/s"] = partial(rate, 50, shell.exec, "cat output")
    ours = mcp_server(stack, "hotenv", "mcp")
    true = partial(ours, "session_exec", command="true", session=ours("session_open")["session"])
    measurements["shell over MCP, true, ms"] = partial(milliseconds, true)
    try:
        install("execkit-mcp==0.10.1")
    except subprocess.CalledProcessError:
        print("execkit-mcp is left out: it could not be installed")
        return
    theirs = mcp_server(stack, "execkit-mcp")
    session = theirs("session_create", transport="local")["session_id"]
    true = partial(theirs, "session_exec", command="true", session_id=session)
    measurements["execkit-mcp, true, ms"] = partial(milliseconds, true)


if __name__ == "__main__":
    main()
