"""The NVML source on a real driver. Skipped on hosts that have none."""

import time
from itertools import pairwise

import pytest

from gpuwhy.observe.nvml import NvmlSource, describe

WATCH_S = 8.0


@pytest.fixture(scope="module")
def watched():
    """Some seconds of observations, polled at the source's own pace, and the time it took."""
    found = describe()
    if "error" in found:
        pytest.skip(found["error"])
    source = NvmlSource()
    seen, spent = [], []
    end = time.time() + WATCH_S
    while time.time() < end:
        start = time.perf_counter()
        seen.append(source.poll(time.time()))
        spent.append(time.perf_counter() - start)
        time.sleep(max(0.0, source.period_s - spent[-1]))
    source.close()
    each = sorted(spent[1:])
    print(f"\npoll: first {spent[0]:.3f} s, median {each[len(each) // 2]:.4f}, most {each[-1]:.4f}")
    print("last word of each source:")
    for state in {(o["source"], o.get("uuid")): o for o in of(seen, "source")}.values():
        print(" ", state)
    return seen


def of(polls, kind):
    return [o for poll in polls for o in poll if o["kind"] == kind]


def test_every_gpu_says_who_and_how_it_is(watched):
    uuids = {o["uuid"] for o in of(watched, "gpu_info")}
    assert uuids
    for kind in ("gpu", "gpu_limits"):
        assert {o["uuid"] for o in of(watched, kind)} == uuids
    for gpu in of(watched, "gpu"):
        assert 0 <= gpu.get("power_w", 0) < 2000
        assert 0 < gpu.get("temperature_c", 40) < 120


def test_rings_have_no_cell_twice_and_few_holes(watched):
    cells: dict[tuple[str, str], list[int]] = {}
    for row in of(watched, "ring"):
        first = round(row["t"] / row["dt"])
        taken = [first + i for i, v in enumerate(row["values"]) if v is not None]
        cells.setdefault((row["uuid"], row["ring"]), []).extend(taken)
        assert abs(row["t"] - time.time()) < 60
    for numbers in cells.values():
        assert len(numbers) == len(set(numbers))
        assert len(numbers) > 0.8 * (max(numbers) - min(numbers) + 1)


def test_gpm_intervals_follow_each_other(watched):
    for uuid in {o["uuid"] for o in of(watched, "gpm")}:
        means = [o for o in of(watched, "gpm") if o["uuid"] == uuid]
        for before, after in pairwise(means):
            assert after["t"] - after["dt"] == pytest.approx(before["t"], abs=0.01)
            assert after["dt"] >= 0.1


def test_a_poll_is_cheap(watched):
    last = of(watched, "source")[-1]
    assert last["source"] == "nvml"
    assert last["cpu_s"] < 0.25 * WATCH_S
