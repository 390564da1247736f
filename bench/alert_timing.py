"""How long an alert takes, from the onset of a fault to the notification, and to its end.

    python3 -m bench.alert_timing --out "$OUT" --seconds 120

The exporter, Prometheus and Alertmanager run as ``./run demo`` runs them, with the shipped rules
whose durations are divided by ``--factor``, beside a planted job that becomes starved; once the
notification is there the job is stopped and started again without the fault, under the same run.
Writes ``alerts.json`` and prints a table. ``--play FAULTY HEALTHY`` takes two recordings instead of
jobs: a trial of everything but the job, without a GPU. Needs Python 3.11.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.alert_scene import JobScene, PlayedScene, Scene
from bench.cost import prepare
from bench.cost_usage import answer, cpu_s, pss
from bench.h200.job import JobError, free_port
from bench.h200.processes import descendants
from scripts.stack.layout import ADDRESS, LayoutError, Ports, Stack
from scripts.stack.packages import PackageError
from scripts.stack.processes import ProcessError, running, start, stop, stop_all, wait_ready
from scripts.stack.receiver import Receiver
from scripts.stack.shorten import shorten

from bench import cost_report
from gpuwhy.expose import alerting

POLL_S = 0.25
WINDOW_S = 20
"""Of the verdict that is asked for: what `gpuwhy diagnose` watches by default."""
SCRAPE_S = 5.0


Alert = Mapping[str, Any]


class TimedReceiver(Receiver):
    """A receiver of Alertmanager's webhooks that notes when each notification came."""

    def __init__(self) -> None:
        self.came: list[tuple[float, list[Alert]]] = []
        super().__init__(shows=False)

    def take(self, notification: Mapping[str, Any]) -> None:
        """Keep the alerts of a notification."""
        self.came.append((time.time(), list(notification.get("alerts", ()))))


def first(
    came: Sequence[tuple[float, Sequence[Alert]]], status: str, is_ours: Callable[[Alert], bool]
) -> tuple[float, Alert] | None:
    """When the first notification with one of our alerts in that status came, and the alert.

    While a weaker severity of an alert still fires, the alert is not resolved.
    """
    for when, alerts in came:
        ours = [alert for alert in alerts if is_ours(alert["labels"])]
        found = [alert for alert in ours if alert["status"] == status]
        if found and (status == "firing" or len(found) == len(ours)):
            return when, found[0]
    return None


class Timing:
    """One run of a scene; ``result`` is what is written down."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.deadline = time.monotonic() + options.seconds
        self.ports = Ports(free_port(), free_port(), free_port())
        self.receiver = TimedReceiver()
        self.stack = Stack(folder / "stack", self.ports, "bench", self._short, self._short)
        self.scene = self._scene()
        self.times: dict[str, float] = {}
        self.result: dict[str, Any] = {
            "kind": "alerts",
            "t": time.time(),
            "machine": cost_report.machine(),
            "factor": options.factor,
            "scrape_s": max(1.0, round(SCRAPE_S / options.factor)),
            "cause": self.scene.cause,
        }

    def run(self) -> None:
        """Play the scene; what was reached stays in the result, with an error where it ended."""
        try:
            self._start()
            self.scene.begin()
            self._until("notified", self._fault)
            self.times["stopped"] = time.time()
            self.scene.mend()
            self._until("resolved", self._mended)
        except (JobError, LayoutError, PackageError, ProcessError, OSError, ValueError) as error:
            self.result["error"] = f"{type(error).__name__}: {error}"
        self._conclude()

    def close(self) -> None:
        """End everything."""
        self.scene.close()
        stop_all(self.stack.folder)
        self.receiver.close()

    def _short(self, text: str) -> str:
        return shorten(text, self.options.factor)

    def _scene(self) -> Scene:
        options = self.options
        if options.play:
            return PlayedScene(options.cause, options.play, self._play)
        return JobScene(options.faulty, options.healthy, options.after, self.folder)

    def _start(self) -> None:
        self.stack.lay_out(alerting.render(alerting.Alerting(page=self.receiver.url)))
        services = self.stack.services([])
        for service in services[1 if self.options.play else 0 :]:
            start(service)
            wait_ready(service)
        self.began, self.cpu_began = time.monotonic(), self._cpu_s()

    def _play(self, recording: Path) -> None:
        service = self.stack.services(["--loop", "--recording", str(recording.resolve())])[0]
        stop(service.pid_file)
        start(service)
        wait_ready(service)

    def _until(self, name: str, look: Callable[[], None]) -> None:
        while name not in self.times:
            if time.monotonic() > self.deadline:
                raise JobError(f"no {name} within the {self.options.seconds:.0f} s given")
            for file in self.stack.folder.glob("*.pid"):
                if running(file) is None:
                    raise ProcessError(f"{file.stem} ended: {self._tail(file.stem)}")
            self.scene.check()
            look()
            time.sleep(POLL_S)

    def _fault(self) -> None:
        now = time.time()
        if "onset" not in self.times:
            self._note("onset", self.scene.onset())
        if now < self.times.get("onset", now + 1):
            return
        if self._cause() == self.scene.cause:
            self._note("verdict", now)
        for alert in self._alerts():
            if self._is_ours(alert.get("labels", {})):
                self._note("pending" if alert["state"] == "pending" else "firing", now)
        if found := first(self.receiver.came, "firing", self._is_ours):
            self._note("notified", found[0])
            self.result["alert"] = found[1]["labels"]["alertname"]
            self.result["notification"] = found[1].get("annotations", {})

    def _mended(self) -> None:
        if "mended" not in self.times:
            self._note("mended", self.scene.mended())
        if "mended" in self.times and self._cause() == "none":
            self._note("verdict_none", time.time())
        if found := first(self.receiver.came, "resolved", self._is_ours):
            self._note("resolved", found[0])
            self.result["cause_when_resolved"] = self._cause()

    def _note(self, name: str, when: float | None) -> None:
        if when is not None:
            self.times.setdefault(name, when)

    def _is_ours(self, labels: Mapping[str, Any]) -> bool:
        return labels.get("cause") == self.scene.cause and self._is_run(labels.get("run"))

    def _is_run(self, run: object) -> bool:
        return self.scene.run in (None, run)

    def _cause(self) -> str | None:
        """The verdict's cause for the run; of all that are played, the fault where it is there."""
        url = f"http://{ADDRESS}:{self.ports.exporter}/api/v1/verdicts?window={WINDOW_S}s"
        causes = [
            gpu["cause"]
            for gpu in (answer(url) or {}).get("gpus", ())
            if gpu.get("run") and self._is_run(gpu["run"])
        ]
        return self.scene.cause if self.scene.cause in causes else next(iter(causes), None)

    def _alerts(self) -> list[dict[str, Any]]:
        told = answer(f"http://{ADDRESS}:{self.ports.prometheus}/api/v1/alerts") or {}
        return list(told.get("data", {}).get("alerts", ()))

    def _exporter(self) -> set[int]:
        pid = running(self.stack.folder / "exporter.pid")
        return descendants([pid]) if pid else set()

    def _cpu_s(self) -> float:
        return sum(cpu_s(pid) for pid in self._exporter())

    def _tail(self, name: str) -> str:
        log = self.stack.folder / f"{name}.log"
        return " | ".join(log.read_text(errors="replace").splitlines()[-5:]) if log.exists() else ""

    def _conclude(self) -> None:
        """Seconds between the moments, the exporter's own cost, logs where something failed."""
        self.result["moments"] = {name: round(t, 3) for name, t in self.times.items()}
        self.result["times"] = spans(self.times)
        self.result["notifications"] = [
            {"t": round(when, 3), "status": alert["status"]}
            | {name: alert["labels"].get(name) for name in ("alertname", "severity", "run")}
            for when, alerts in self.receiver.came
            for alert in alerts
        ]
        if pids := self._exporter() if not self.options.play else set():
            lasted = time.monotonic() - self.began
            used = self._cpu_s() - self.cpu_began
            own = {"cores": used / lasted, "pss": pss(pids), "seconds": lasted}
            self.result["exporter"] = own
        if "error" in self.result:
            names = ("exporter", "prometheus", "alertmanager")
            self.result["logs"] = {name: self._tail(name) for name in names}
            url = f"http://{ADDRESS}:{self.ports.exporter}/api/v1/verdicts?window={WINDOW_S}s"
            self.result["last"] = {"verdicts": answer(url), "alerts": self._alerts()}


def spans(times: Mapping[str, float]) -> dict[str, float | None]:
    """Seconds between two moments each, None where one was not reached."""
    wanted = {
        "verdict_s": ("onset", "verdict"),
        "pending_s": ("onset", "pending"),
        "firing_s": ("onset", "firing"),
        "notified_s": ("onset", "notified"),
        "restart_s": ("stopped", "mended"),
        "verdict_none_s": ("mended", "verdict_none"),
        "resolved_after_stop_s": ("stopped", "resolved"),
        "resolved_after_mend_s": ("mended", "resolved"),
    }
    return {
        name: round(times[b] - times[a], 2) if a in times and b in times else None
        for name, (a, b) in wanted.items()
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="bench.alert_timing", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("--faulty", default="c04", help="the variant that is starved (default: %(default)s)")
    option("--healthy", default="c01", help="its mended form (default: %(default)s)")
    option("--after", type=float, default=8, help="healthy seconds before the fault sets in")
    option("--factor", type=float, default=15, help="what durations are divided by")
    option("--seconds", type=float, default=120, help="for everything")
    option("--play", type=Path, nargs=2, metavar="FILE", help="recordings, instead of jobs")
    option("--cause", default="data", help="of the first recording (default: %(default)s)")
    option("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="folder of results")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when the alert came and was resolved, 1 otherwise."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    prepare(options.seconds)
    folder = Path(tempfile.mkdtemp(prefix="alerts-"))
    timing = Timing(options, folder)
    try:
        timing.run()
    finally:
        timing.close()
        (options.out / "alerts.json").write_text(json.dumps(timing.result, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
    print(cost_report.text([timing.result]))
    if error := timing.result.get("error"):
        sys.stderr.write(f"bench.alert_timing: {error}\n")
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
