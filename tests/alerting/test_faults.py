"""The alerts that no recorded job has: recorded jobs with a fault put into what was observed of
them, played through pipeline and exporter. Silence before, firing during, resolved after.

The rules are the real ones with their durations divided, as in the demonstration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.alerting import promtool, replay, test_recorded
from tests.alerting.faults import ALERTMANAGER, DCGM, FAILED, FAULTS, Fault

from gpuwhy.observe.observation import Observation


def name_of(fault: Fault) -> str:
    return f"{fault.alert}-{fault.says[0].split()[0]}"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return promtool.shortened(tmp_path_factory.mktemp("rules"))


def edited(fault: Fault) -> replay.Edit:
    """The fault between its times; a port that is up at any other."""

    def edit(o: Observation, since: float) -> Iterable[Observation]:
        port = {"device": "mlx5_0", "port": 1, "up": True}
        more = [{"t": o["t"], "kind": "network_port", **port}] if o["kind"] == "host" else []
        both = [o, *more]
        if not fault.begin <= since < fault.end:
            return both
        return [changed for one in both for changed in fault.change(one)]

    return edit


def series_of(fault: Fault) -> list[replay.Series]:
    played = fault.end + fault.after
    series = replay.replay(fault.recordings, played, edited(fault), step=1, **fault.state)
    scrapes = len(series[-1].values)
    series.append(replay.Series("up", DCGM, [1.0] * scrapes))
    series.append(replay.Series("up", ALERTMANAGER, [1.0] * scrapes))
    series.append(replay.Series(FAILED.name, FAILED.labels, [0.0] * scrapes))
    if fault.scraped is not None:
        for one in series:
            for i in range(fault.begin, fault.end):
                one.values[i] = fault.scraped(one, i)
    return replay.lasting(series, fault.resolved - played)


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_fault(fault: Fault, rules: Sequence[Path]) -> None:
    silent, firing = fault.begin - 4, fault.end - 5
    used = promtool.files_of(fault.alert, rules)
    found = promtool.history(series_of(fault), [silent, firing, fault.resolved], used, step=1)
    named = {at: [a for a in alerts if a.name == fault.alert] for at, alerts in found.items()}
    assert named[silent] == []
    assert named[firing], [a.labels for a in found[firing]]
    said = "\n".join(named[firing][0].annotations.values())
    for text in fault.says:
        assert text in said
    assert len(named[firing][0].annotations["summary"]) < 60
    assert "error expanding" not in said
    assert named[fault.resolved] == []


def test_every_alert_is_tried() -> None:
    tried = {fault.alert for fault in FAULTS}.union(*test_recorded.FAULTS.values())
    assert tried == set(promtool.alert_names())
