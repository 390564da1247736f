"""A real headless Chromium, steered over its debugging pipe: no driver and no library between.

``Browser`` is one process, ``Tab`` one page of it. Whatever a page complains of on its console is
kept in ``Tab.complaints``, what it loaded in ``Tab.loaded``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEADLINE_S = 60.0
COMMAND = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
OPTIONS = (
    "--headless",
    "--no-sandbox",  # tests may run as root, in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_LAUNCH = (
    "import fcntl, os, sys\n"
    "read, write = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])\n"
    "os.dup2(read, 3), os.dup2(write, 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)
"""The browser reads commands from descriptor 3 and writes answers to 4."""


class BrowserError(Exception):
    """The browser refused a command, or did not answer in time."""


class Browser:
    """One browser process with a profile of its own."""

    def __init__(self) -> None:
        assert COMMAND is not None
        self._profile = tempfile.mkdtemp(prefix="gpuwhy-browser-")
        commands, to_browser = os.pipe()
        self._answers, answers = os.pipe()
        self._to_browser = to_browser
        arguments = [COMMAND, *OPTIONS, f"--user-data-dir={self._profile}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(commands), str(answers), *arguments],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._next = 0
        self._results: dict[int, dict[str, Any]] = {}
        self._events: dict[str, Callable[[str, dict[str, Any]], None]] = {}

    def send(self, method: str, session: str | None = None, **params: Any) -> Any:
        """A command's result. Raises BrowserError."""
        self._next += 1
        number = self._next
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to_browser, data) :]
        deadline = time.monotonic() + DEADLINE_S
        while number not in self._results:
            self.listen(deadline - time.monotonic())
        answer = self._results.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    def listen(self, seconds: float) -> None:
        """Take in what comes, waiting at most so long for it."""
        if seconds < 0:
            raise BrowserError("no answer in time")
        if not select.select([self._answers], [], [], seconds)[0]:
            return
        data = os.read(self._answers, 1 << 20)
        if not data:
            raise BrowserError("the browser ended")
        *messages, self._buffer = (self._buffer + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._results[message["id"]] = message
            elif message.get("sessionId") in self._events:
                self._events[message["sessionId"]](message["method"], message["params"])

    def tab(self) -> Tab:
        """A new page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        self._events[session] = tab.heard
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.send(f"{domain}.enable")
        return tab

    def close(self) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.send("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        for descriptor in (self._to_browser, self._answers):
            os.close(descriptor)
        shutil.rmtree(self._profile, ignore_errors=True)


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target
        self.complaints: list[str] = []
        self.loaded: dict[str, int] = {}  # bytes over the wire, by request
        self.urls: dict[str, str] = {}
        self._looks = (800, False, 1.0)

    def send(self, method: str, **params: Any) -> Any:
        return self.browser.send(method, self.session, **params)

    def heard(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"])[:2000])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.urls[params["requestId"]] = params["request"]["url"]
        elif method == "Network.loadingFinished":
            self.loaded[params["requestId"]] = int(params["encodedDataLength"])

    def look(self, width: int, height: int, *, dark: bool = False, scale: float = 1.0) -> None:
        """Size of the window in CSS pixels, and which scheme the user prefers."""
        self._looks = (width, dark, scale)
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def go(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.href.startsWith({url!r})")

    def run(self, script: str) -> Any:
        """The value of an expression, a promise's included."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"])[:3000])
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + DEADLINE_S
        while not (value := self.run(condition)):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {condition}; {self.complaints}")
            self.browser.listen(0.05)
        return value

    def key(self, key: str, *, text: str = "", shift: bool = False) -> None:
        """Press a key as a person does."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38}
        codes |= {"ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35}
        text = {"Enter": "\r", " ": " "}.get(key, text)
        common = {
            "key": key,
            "code": {" ": "Space"}.get(key, key),
            "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())),
            "modifiers": 8 if shift else 0,
        }
        down = "keyDown" if text else "rawKeyDown"
        self.send("Input.dispatchKeyEvent", type=down, text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of what is in the window, or of the whole page in a window of its height."""
        if whole:
            width, dark, scale = self._looks
            self.look(
                width, self.run("document.documentElement.scrollHeight"), dark=dark, scale=scale
            )
            self.run(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )
        data = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(data["data"]))

    def close(self) -> None:
        self.browser.send("Target.closeTarget", targetId=self.target)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser for a while."""
    found = Browser()
    try:
        yield found
    finally:
        found.close()
