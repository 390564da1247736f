"""``./run demo``: recorded H200 jobs, healthy and faulty, as the GPUs of one recorded host.

They are played in a loop through the exporter, the real Prometheus and the real Alertmanager, whose
notifications are printed here. The rules are those of alerting/rules with every duration divided
by 15, so that minutes become seconds. Everything is marked as recorded.

With --for the demonstration ends by itself, with status 0 only if each fault brought the
notification of its cause, naming the function, limit or other process behind it, and nothing else
brought one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.stack import expect, tell
from scripts.stack.layout import ADDRESS, DEMO, LayoutError, Ports, Stack, unwritable
from scripts.stack.packages import ROOT, PackageError
from scripts.stack.processes import (
    ProcessError,
    ended_by_signals,
    running,
    start,
    stop_all,
    wait_ready,
)
from scripts.stack.receiver import Receiver
from scripts.stack.shorten import shorten

from gpuwhy import values
from gpuwhy.expose import alerting

RECORDINGS = ROOT / "tests/recordings"
HOST = "recorded-h200"
FACTOR = 15
SCRAPE_S = 2
"""Seconds between two scrapes, and what one may take: with one second a busy machine would leave
families out of them."""
LEAST_S = 60
"""Shorter is no test: windows, delays and grouping add up to about forty seconds."""


def main(arguments: Sequence[str]) -> int:
    """The command; its exit status: 0 as expected (or ended by hand), 1 not, 2 bad usage."""
    parsed = _parser().parse_args(arguments)
    with ended_by_signals():
        return _demonstrate(parsed)


def _demonstrate(parsed: argparse.Namespace) -> int:
    paths = sorted(parsed.recordings.glob(f"*{expect.SUFFIX}"))
    if not paths:
        return _fail(f"{parsed.recordings} holds no recordings (*{expect.SUFFIX})", 2)
    if any(running(file) for file in DEMO.glob("*.pid")):
        return _fail("a demonstration is running already; ./run down ends it", 1)
    receiver = None
    try:
        expected = [expect.load(path) for path in paths]
        ports = Ports.from_environment(
            os.environ, exporter=9877, prometheus=9090, alertmanager=9093
        )
        ports.check_free()
        receiver = Receiver()
        _start(ports, receiver, paths)
        _tell(ports, parsed.seconds)
        return _watch(ports, receiver, expected, parsed.seconds)
    except (
        LayoutError,
        PackageError,
        ProcessError,
        expect.ExpectationError,
        alerting.AlertingError,
    ) as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(unwritable(error), 1)
    except KeyboardInterrupt:
        return 0 if parsed.seconds is None else 130
    finally:
        stop_all(DEMO)
        if receiver is not None:
            receiver.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        type=_argument(values.duration(LEAST_S, 86400)),
        metavar="T",
        help="end after so long (such as 180s) and judge what arrived; default: until Ctrl-C",
    )
    parser.add_argument(
        "--recordings",
        type=Path,
        default=RECORDINGS,
        metavar="FOLDER",
        help="play these, each with its NAME.expected.json (default: tests/recordings)",
    )
    return parser


def _argument(parse: Callable[[str], float]) -> Callable[[str], float]:
    def parsed(text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


def _start(ports: Ports, receiver: Receiver, paths: Sequence[Path]) -> None:
    shutil.rmtree(DEMO, ignore_errors=True)  # the last one's data would fire at once
    stack = Stack(DEMO, ports, HOST, lambda text: shorten(text, FACTOR), _recorded)
    stack.lay_out(alerting.render(alerting.Alerting(page=receiver.url)))
    services = stack.services(["--loop", "--recording", *map(str, paths)])
    for service in services:
        start(service)
    for service in services:
        wait_ready(service)


def _recorded(configuration: str) -> str:
    """Prometheus's configuration, short of breath, and every alert marked as recorded."""
    short = shorten(configuration, FACTOR, SCRAPE_S)
    return short.replace("global:\n", "global:\n  external_labels: {recorded: 'true'}\n", 1)


def _tell(ports: Ports, seconds: float | None) -> None:
    length = "until Ctrl-C" if seconds is None else f"for {seconds:.0f} s"
    print(f"Recorded H200 GPUs, {length}; the first notifications come after about a minute.")
    print(*tell.addresses(ports), sep="\n", flush=True)


def _watch(
    ports: Ports,
    receiver: Receiver,
    expected: Sequence[expect.Expected],
    seconds: float | None,
) -> int:
    deadline = None if seconds is None else time.monotonic() + seconds
    while deadline is None or time.monotonic() < deadline:
        ended = [file.stem for file in DEMO.glob("*.pid") if running(file) is None]
        if ended:
            raise ProcessError(f"{', '.join(ended)} ended: see the logs in {DEMO}")
        time.sleep(0.5)
    complaints = expect.misjudged(expected, _verdicts(ports))
    complaints += expect.wanting(expected, receiver.arrived())
    _judge(expected, complaints)
    return 1 if complaints else 0


def _verdicts(ports: Ports) -> dict[str, object]:
    url = f"http://{ADDRESS}:{ports.exporter}/api/v1/verdicts?window=60s"
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return dict(json.load(response))
    except (OSError, ValueError) as error:
        raise ProcessError(f"the exporter does not tell its verdicts: {error}") from error


def _judge(expected: Sequence[expect.Expected], complaints: Sequence[str]) -> None:
    faults = sum(len(one.faults) for one in expected)
    quiet = sum(not one.faults for one in expected)
    print(f"\n{faults} faults, {quiet} recordings without one.")
    for complaint in complaints:
        print(f"NOT AS EXPECTED: {complaint}")
    if not complaints:
        print("Each fault brought the notification of its cause, and nothing else brought one.")


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"./run demo: {message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
