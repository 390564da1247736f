"""The canonical GPU series: both exporters, units, MIG, drifting labels, no many-to-many join."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from alerting.source import canonical
from tests.alerting import promtool, replay
from tests.alerting.replay import Series

ROOT = Path(__file__).parents[2]
PUBLIC = ROOT.parent / "shared/public-data/dcgm-exporter"
RULES = [ROOT / "prometheus/rules/recording.yml"]
SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
TARGET = {"host": "node", "instance": "dcgm-exporter:9400", "job": "dcgm-exporter"}
OURS = {"host": "node", "instance": "exporter:9877", "job": "gpuwhy"}
MIB = 1 << 20


def values(series: Iterable[Series], query: str) -> dict[tuple[str, str, str], float]:
    """The samples of a query a minute into the series, by (uuid, mig, instance)."""
    test = {"promql_expr_test": [{"expr": query, "eval_time": "1m", "exp_samples": []}]}
    told = promtool.run_tests(list(series), RULES, test)
    assert "many-to-many" not in told
    found = {}
    got = told.partition("got: ")[2] if "got: " in told else ""
    for labels, value in re.findall(r"\{([^}]*)\} ([0-9.eE+-]+)", got):
        pairs = dict(LABEL.findall(labels))
        key = (pairs.get("uuid", ""), pairs.get("mig", ""), pairs.get("instance", ""))
        assert key not in found
        found[key] = float(value)
    return found


def lasting(name: str, value: float, labels: dict[str, str]) -> Series:
    return Series(name, labels, [value] * 15)


def dcgm(field: str, value: float, uuid: str = "GPU-1", **more: str) -> Series:
    labels = {"gpu": "0", "UUID": uuid, "device": "nvidia0", "Hostname": "node", **TARGET, **more}
    return lasting(f"DCGM_FI_{field}", value, labels)


def ours(name: str, value: float, uuid: str = "GPU-1", mig: str = "", **more: str) -> Series:
    labels = {"uuid": uuid, "gpu": "0", **OURS, **({"mig": mig} if mig else {}), **more}
    return lasting(name, value, labels)


def scrape(text: str) -> list[Series]:
    """An exposition as it would be scraped: one sample for each series."""
    found: dict[replay.Key, Series] = {}
    for line in text.splitlines():
        if match := SAMPLE.match(line):
            name, labels, value = match.groups()
            made = lasting(name, float(value), {**dict(LABEL.findall(labels)), **TARGET})
            found[made.key] = made
    return list(found.values())


def test_ours_come_first_and_dcgm_fills_in() -> None:
    series = [
        ours("gpuwhy_gpu_power_watts", 300.0),
        dcgm("DEV_POWER_USAGE", 310.0),
        dcgm("DEV_POWER_USAGE", 99.0, "GPU-2"),
        dcgm("DEV_SM_CLOCK", 1410.0),
    ]
    power = values(series, "gpu:power:watts")
    assert power == {
        ("GPU-1", "", "exporter:9877"): 300.0,
        ("GPU-2", "", "dcgm-exporter:9400"): 99.0,
    }
    assert list(values(series, "gpu:sm_clock:hertz").values()) == [1.41e9]


def test_units_are_converted() -> None:
    series = [
        dcgm("DEV_GPU_UTIL", 93.0),
        dcgm("DEV_FB_USED", 1024.0),
        dcgm("DEV_FB_FREE", 2048.0),
        dcgm("DEV_FB_RESERVED", 512.0),
        dcgm("DEV_TOTAL_ENERGY_CONSUMPTION", 5_000_000.0),
    ]

    def only(name: str) -> float:
        (value,) = values(series, name).values()
        return value

    assert only("gpu:utilization:ratio") == pytest.approx(0.93)
    assert only("gpu:memory_used:bytes") == 1024 * MIB
    assert only("gpu:memory_total:bytes") == 3584 * MIB
    assert only("gpu:energy_joules:total") == 5000


def test_blank_values_are_absent() -> None:
    series = [
        dcgm("DEV_GPU_TEMP", 9223372036854775794.0),
        dcgm("DEV_MEMORY_TEMP", 0.0),
        dcgm("PROF_SM_ACTIVE", 140737488355328.0),
    ]
    for name in (
        "gpu:temperature:celsius",
        "gpu:memory_temperature:celsius",
        "gpu:sm_active:ratio",
    ):
        assert values(series, name) == {}


@pytest.mark.parametrize(
    "drift", [{"Hostname": "a"}, {"hostname": "a"}, {"pod": "a", "namespace": "n"}]
)
def test_drifting_labels_and_two_scrapes_of_one_gpu(drift: dict[str, str]) -> None:
    """A rename, pods and a second target must neither fail the rule nor hide the GPU."""
    again = {"instance": "other:9400", **drift}
    series = [
        ours("gpuwhy_gpu_power_watts", 300.0, "GPU-2"),
        dcgm("DEV_POWER_USAGE", 310.0),
        dcgm("DEV_POWER_USAGE", 311.0, **again),
    ]
    assert set(values(series, "gpu:power:watts").values()) == {300.0, 310.0, 311.0}


MIG = [
    ours("gpuwhy_gpu_info", 1, "MIG-a", "1/0", parent_uuid="GPU-1"),
    ours("gpuwhy_gpu_info", 1, "MIG-b", "2/0", parent_uuid="GPU-1"),
    ours("gpuwhy_gpu_info", 1, "MIG-c", "2/1", parent_uuid="GPU-1"),
]
"""Instance 1 with one compute instance, instance 2 with two."""


def test_under_mig_dcgm_takes_over_our_names() -> None:
    """Its UUID is the parent's for every instance."""
    series = [
        *MIG,
        dcgm("PROF_GR_ENGINE_ACTIVE", 0.1, GPU_I_ID="1", GPU_I_PROFILE="1g.10gb"),
        dcgm("PROF_GR_ENGINE_ACTIVE", 0.2, GPU_I_ID="2", GPU_I_PROFILE="2g.20gb"),
    ]
    busy = values(series, "gpu:busy:ratio")
    assert {key[:2]: value for key, value in busy.items()} == {
        ("MIG-a", "1/0"): 0.1,
        ("MIG-b", "2/0"): 0.2,
        ("MIG-c", "2/1"): 0.2,
    }


def test_under_mig_ours_come_first_and_unknown_instances_stay() -> None:
    series = [
        *MIG,
        ours("gpuwhy_gpu_busy_ratio", 0.7, "MIG-a", "1/0"),
        dcgm("PROF_GR_ENGINE_ACTIVE", 0.1, GPU_I_ID="1"),
        dcgm("PROF_GR_ENGINE_ACTIVE", 0.3, GPU_I_ID="5"),
        dcgm("PROF_GR_ENGINE_ACTIVE", 0.4, "GPU-9", GPU_I_ID="1"),
    ]
    busy = values(series, "gpu:busy:ratio")
    assert {key[:2]: value for key, value in busy.items()} == {
        ("MIG-a", "1/0"): 0.7,
        ("GPU-1", "5"): 0.3,
        ("GPU-9", "1"): 0.4,
    }


def public(name: str) -> str:
    path = PUBLIC / name
    if not path.is_file():
        pytest.skip(f"{path} is not there: the public outputs of dcgm-exporter were not tried")
    return path.read_text()


def test_a_real_l4() -> None:
    series = scrape(public("l4.prom"))
    uuid = "GPU-c2f76b33-7953-256e-8f33-1343419b1a1c"
    assert list(values(series, "gpu:power:watts").items()) == [
        ((uuid, "", "dcgm-exporter:9400"), 16.365)
    ]
    assert list(values(series, "gpu:sm_clock:hertz").values()) == [2.1e8]
    assert list(values(series, "gpu:memory_total:bytes").values()) == [(22563 + 470) * MIB]
    assert list(values(series, "gpu:busy:ratio").values()) == [0.0]
    assert values(series, "gpu:memory_temperature:celsius") == {}


def test_a_real_vgpu_without_power_and_temperature() -> None:
    series = scrape(public("vgpu-a100.prom"))
    assert list(values(series, "gpu:memory_clock:hertz").values()) == [1.215e9]
    for name in ("gpu:power:watts", "gpu:temperature:celsius", "gpu:busy:ratio"):
        assert values(series, name) == {}


def test_dcgm_beside_recordings_of_ours() -> None:
    """Everything at once: no rule fails, each GPU has one series of each name."""
    series = [*replay.replay(["data_slow", "ddp_straggler"], 70), *scrape(public("l4.prom"))]
    power = values(series, "gpu:power:watts")
    assert {key[0] for key in power} == {
        "recorded-data_slow-0",
        "recorded-ddp_straggler-0",
        "recorded-ddp_straggler-1",
        "GPU-c2f76b33-7953-256e-8f33-1343419b1a1c",
    }


def test_shares_add_up_to_one() -> None:
    series = replay.replay(["data_slow", "shared_victim", "ddp_straggler"], 70)
    device = values(series, "sum by (uuid) (gpu_run_account:gpuwhy_device_share:ratio)")
    assert list(device.values()) == pytest.approx([1.0] * 4, abs=0.03)  # a rate loses the first
    of_runs = values(series, "avg by (uuid) (sum by (uuid, run) (rank_account:gpuwhy_share:ratio))")
    assert list(of_runs.values()) == pytest.approx([1.0] * 4, abs=0.03)  # sample of a series


def test_every_canonical_series_has_a_unit() -> None:
    units = {"ratio", "hertz", "watts", "celsius", "bytes", "bytes_per_second", "total"}
    assert {name.rsplit(":", 1)[1] for name, _, _ in canonical.SERIES} <= units


def test_a_lowered_clock_keeps_its_reason() -> None:
    """At its factory power limit a card is well used; held back by heat it is not."""
    counters = [
        ours("gpuwhy_gpu_time_seconds_total", 0.0, run="a", account=account, reason=reason)
        for account, reason in (
            ("throttle", "thermal"),
            ("throttle", "at-default-limit"),
            ("data", "waiting"),
            ("data", "inline"),
        )
    ]
    for one in counters:
        one.values = [1.25 * i for i in range(15)]
    observed = ours("gpuwhy_gpu_observed_seconds_total", 0.0)
    observed.values = [5.0 * i for i in range(15)]
    share = "gpu_run_account:gpuwhy_device_share:ratio"
    lost = f'sum by (uuid) ({share}{{account=~"throttle|data",reason!="at-default-limit"}})'
    (found,) = values([*counters, observed], lost).values()
    assert found == pytest.approx(0.75)
    (rows,) = values([*counters, observed], f'count by (uuid) ({share}{{account="data"}})').values()
    assert rows == 1.0, "reasons of other accounts are added up"


def test_canonical_series_are_as_fine_as_the_scrapes() -> None:
    groups = {g["name"]: g for g in yaml.safe_load(RULES[0].read_text())["groups"]}
    scraped = yaml.safe_load((ROOT / "prometheus/prometheus.yml").read_text())["global"]
    assert groups["gpuwhy-canonical"]["interval"] == scraped["scrape_interval"]
