"""The tests on pyodide's Python, without processes, threads, terminals and Unix sockets: what needs one is skipped."""
import glob
import os
import re
import signal
import subprocess
import sys
import threading
import types

MISSING = re.compile(r"module '(socket|os|resource|signal)' has no attribute|out of pty devices|Errno 28")
ENOUGH = 1200  # tests that need none of all this: parser, redaction, formats, protocol, policy


def run():
    sys.path[:0] = ["/clone", *glob.glob("/wheels/*.whl")]
    os.chdir("/clone")
    for name in ("resource", "pwd"):
        sys.modules[name] = types.ModuleType(name)
    os.geteuid = os.getuid = os.getegid = os.getgid = lambda: 0
    signal.alarm, signal.pthread_sigmask = lambda seconds: 0, lambda *_: set()
    import pytest

    passed = []

    class OnlyWhatIsThere:
        """A test that fails for want of something of the system is skipped; any other failure is one."""

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(self, item, call):
            report = (yield).get_result()
            if report.failed and call.excinfo and MISSING.search(str(call.excinfo.value)):
                report.outcome, report.longrepr = "skipped", (str(item.path), 0, "Skipped: not in this Python")
            if report.when == "call" and report.passed:
                passed.append(item)

    def refuse(*_, **__):
        pytest.skip("no processes, no threads")

    subprocess.Popen.__init__ = threading.Thread.start = refuse
    os.fork = os.posix_spawn = os.execve = refuse
    status = int(pytest.main(["-q", "-p", "no:cacheprovider", "test_hotenv.py"], plugins=[OnlyWhatIsThere()]))
    if len(passed) < ENOUGH:
        print(f"only {len(passed)} tests could be run, which is suspicious")
    return status or int(len(passed) < ENOUGH)
