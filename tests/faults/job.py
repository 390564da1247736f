"""A job to be watched while something is wrong with it. What it does stands on its command line."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

HOSTILE = ('a"b', "line\nbreak", "\x1b[31mred", "\udcff", "\u202eetar", "<script>alert(1)</script>",
           "x" * 65536)  # fmt: skip


def work(step: int = 0, pause_s: float = 0.02) -> None:
    while True:
        step += 1
        time.sleep(pause_s)


def threads(count: int) -> None:
    for _ in range(count):
        threading.Thread(target=work, args=(0, 1.0), daemon=True).start()  # not to load the host
    work()


def hostile() -> None:
    """Functions, files and threads with names that no program has by accident."""
    for name in HOSTILE:
        code = compile("def f():\n while True:\n  sleep(0.02)\n", f"/tmp/{name[:3000]}.py", "exec")
        space = {"sleep": time.sleep}
        exec(code, space)
        function = space["f"]
        names = {"co_name": name, "co_qualname": name}
        if sys.version_info < (3, 11):
            del names["co_qualname"]
        with contextlib.suppress(ValueError):
            function.__code__ = function.__code__.replace(**names)
        thread = threading.Thread(target=function, daemon=True, name=name[:3000])
        with contextlib.suppress(UnicodeEncodeError):
            thread.start()
    function()


def forks() -> None:
    """Children without end, each of which is soon gone."""
    while True:
        if os.fork() == 0:
            os._exit(0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


def becomes_another() -> None:
    time.sleep(float(sys.argv[2]))
    os.execv("/bin/sleep", ["sleep", "1000"])


WAYS = {
    "work": work,
    "threads": lambda: threads(int(sys.argv[2])),
    "hostile": hostile,
    "forks": forks,
    "exec": becomes_another,
    "exit": lambda: time.sleep(float(sys.argv[2])),
}

if __name__ == "__main__":
    print("ready", flush=True)
    WAYS[sys.argv[1]]()
