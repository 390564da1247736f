"""The NVML source on a stand-in driver library that fails on demand.

The stand-in injects errors; what real GPUs answer is covered by the recordings.
"""

import os
import shutil
import time
from pathlib import Path

import pytest
from tests.standin_nvml.standin import HangsError, StandIn, build, of, states

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

GPU0, GPU1 = "GPU-standin-0", "GPU-standin-1"
ALL = {"nvml", "gpm", "utilization_ring", "power_ring", "gpu_processes", "sm_share"}
RETRY = 61.0
ECC = [f"ecc_{life}_{error}corrected" for life in ("volatile", "aggregate") for error in ("", "un")]
ROWS = ["row_remaps_corrected", "row_remaps_uncorrected", "row_remap_pending", "row_remap_failed"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def standin(library, tmp_path):
    """Starts sources; each is ended with the test."""
    started = []

    def start(script="", **options):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(StandIn(library, folder, script, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="module")
def shared(library, tmp_path_factory):
    """One source for tests that leave nothing behind but refusals, which a minute forgets."""
    source = StandIn(library, tmp_path_factory.mktemp("shared"))
    yield source
    source.close()


def test_what_a_healthy_gpu_says(standin):
    source = standin(f"set link_count 4\nprocess 0 {os.getpid()} 1000 compute\ngpus 2")
    seen = source.poll()
    (info,) = of(seen, "gpu_info", uuid=GPU0)
    assert {k: info[k] for k in ("gpu", "name", "architecture", "bus", "numa")} == {
        "gpu": 0,
        "name": "NVIDIA H200",
        "architecture": "Hopper",
        "bus": "0000:1a:00.0",
        "numa": 0,
    }
    assert info["topology"] == [{"uuid": GPU1, "class": "NODE", "nvlinks": 3}]
    assert "unified_memory" not in info
    (gpu,) = of(seen, "gpu", uuid=GPU0)
    assert gpu["utilization"] == 0.97
    assert gpu["power_w"] == 132.06  # the instant, not the trailing mean
    assert gpu["power_mean_w"] == 238.95
    assert gpu["memory_temperature_c"] == 40
    assert gpu["memory_used"] == 2**30
    assert gpu["energy_j"] == 3523.619
    (limits,) = of(seen, "gpu_limits", uuid=GPU0)
    assert limits["power_limit_w"] == limits["power_default_w"] == limits["power_max_w"] == 700
    assert (limits["slowdown_c"], limits["shutdown_c"]) == (89, 95)
    assert (limits["nvlinks"], limits["nvlinks_active"]) == (4, 3)
    assert limits["mig_enabled"] is False
    assert "locked_sm_mhz" not in limits
    (reasons,) = of(seen, "gpu_reasons", uuid=GPU0)
    assert reasons["seconds"]["sw_power_cap"] == pytest.approx(1.16054304)
    (health,) = of(seen, "gpu_health", uuid=GPU0)
    assert health["xid_errors"] == 0
    assert (health["ecc_volatile_corrected"], health["ecc_aggregate_uncorrected"]) == (0, 11)
    assert (health["row_remap_pending"], health["row_remap_failed"]) == (True, False)
    assert health["nvlink_errors"] == {"replay": 4, "recovery": 8, "crc": 12}
    (held,) = of(seen, "gpu_processes", uuid=GPU0)
    assert held["processes"] == [{"pid": os.getpid(), "type": "compute", "memory": 1000}]
    assert {name: s["up"] for name, s in states(seen).items()} == dict.fromkeys(ALL, True)
    assert source.deadline_s <= 5.0
    assert of(seen, "source")[-1]["source"] == "nvml"


def test_each_thing_at_its_pace(standin):
    source = standin()
    first = source.poll()
    seen = source.polls(20, after_s=0.5)  # ten seconds by the source's clock
    count = {kind: len(of(seen, kind)) for kind in ("gpu", "gpu_processes", "gpu_info")}
    assert count == {"gpu": 20, "gpu_processes": 10, "gpu_info": 0}
    for kind in ("gpu_limits", "gpu_reasons", "gpu_health"):
        assert len(of(first, kind)) == len(of(seen, kind)) == 1, kind
    for name in ALL:
        assert len(of(seen, "source", source=name)) == 1, "said again every ten seconds"
    assert of(source.polls(110), "gpu_info")


def test_what_costs_the_driver_milliseconds_is_asked_seldom(standin):
    source = standin()
    source.poll()
    dear = {"MaxClockInfo": 0, "ApplicationsClock": 1, "TemperatureThreshold": 0, "MigMode": 1}
    before = {name: source.calls(f"nvmlDeviceGet{name}") for name in dear}
    source.polls(20)  # ten seconds by the source's clock
    after = {name: source.calls(f"nvmlDeviceGet{name}") for name in dear}
    assert {name: after[name] - before[name] for name in dear} == dear


def test_a_changed_limit_is_told_at_once(standin):
    source = standin()
    source.poll()
    source.script("set power_limit_mw 400000")
    (limits,) = of(source.polls(4), "gpu_limits")
    assert limits["power_limit_w"] == 400


@pytest.mark.parametrize(
    ("call", "kind", "fields"),
    [
        ("nvmlDeviceGetUtilizationRates", "gpu", ["utilization", "memory_utilization"]),
        ("nvmlDeviceGetClockInfo", "gpu", ["sm_mhz", "mem_mhz"]),
        ("nvmlDeviceGetPowerUsage", "gpu", ["power_mean_w"]),
        ("nvmlDeviceGetFieldValues", "gpu", ["power_w", "memory_temperature_c"]),
        ("nvmlDeviceGetTemperature", "gpu", ["temperature_c"]),
        ("nvmlDeviceGetCurrentClocksEventReasons", "gpu", ["reasons"]),
        ("nvmlDeviceGetTotalEnergyConsumption", "gpu", ["energy_j"]),
        ("nvmlDeviceGetName", "gpu_info", ["name"]),
        ("nvmlDeviceGetPciInfo_v3", "gpu_info", ["bus"]),
        ("nvmlDeviceGetMemoryAffinity", "gpu_info", ["numa"]),
        ("nvmlDeviceGetMaxClockInfo", "gpu_limits", ["max_sm_mhz", "max_mem_mhz"]),
        ("nvmlDeviceGetEnforcedPowerLimit", "gpu_limits", ["power_limit_w"]),
        ("nvmlDeviceGetCurrPcieLinkWidth", "gpu_limits", ["pcie_width"]),
        ("nvmlDeviceGetMigMode", "gpu_limits", ["mig_enabled"]),
        ("nvmlDeviceGetTotalEccErrors", "gpu_health", ECC),
        ("nvmlDeviceGetRemappedRows", "gpu_health", ROWS),
        ("nvmlDeviceGetPcieReplayCounter", "gpu_health", ["pcie_replays"]),
    ],
)
def test_each_call_may_be_refused_on_its_own(shared, call, kind, fields):
    shared.script("")
    (whole,) = of(shared.poll(RETRY), kind)
    for code in ("NOT_SUPPORTED", "UNKNOWN"):
        shared.script(f"fail {call} {code}")
        seen = shared.poll(RETRY)
        (observation,) = of(seen, kind)
        assert whole.keys() - observation.keys() == set(fields)
        assert states(seen)["nvml"]["up"] is True


def test_a_refused_call_is_left_alone_for_a_minute(standin):
    call = "nvmlDeviceGetUtilizationRates"
    source = standin(f"fail {call} NOT_SUPPORTED")
    source.polls(20)
    assert source.calls(call) == 1
    source.script("")
    assert "utilization" not in of(source.poll(), "gpu")[0]
    assert "utilization" in of(source.poll(RETRY), "gpu")[0]


def test_a_passing_error_is_tried_again_at_once(standin):
    source = standin("fail nvmlDeviceGetUtilizationRates UNKNOWN")
    source.poll()
    source.script("")
    assert "utilization" in of(source.poll(), "gpu")[0]


def test_missing_fields_are_named(standin):
    state = states(standin("fail nvmlDeviceGetTemperature NOT_SUPPORTED").poll(), GPU0)["nvml"]
    assert state["up"] is True
    assert state["missing"] == ["temperature_c"]


@pytest.mark.parametrize(
    ("script", "why", "remedy"),
    [
        ("fail nvmlInitWithFlags DRIVER_NOT_LOADED", "not loaded", "modprobe nvidia"),
        ("fail nvmlInitWithFlags LIB_RM_VERSION_MISMATCH", "different versions", "reboot"),
        ("fail nvmlInitWithFlags NO_PERMISSION", "refused", "/dev/nvidia"),
        ("fail nvmlInitWithFlags UNKNOWN", "daemon-reload", "restart the container"),
        ("gpus 0", "no GPU", "NVIDIA_VISIBLE_DEVICES"),
        ("fail nvmlInitWithFlags NOT_FOUND", "no GPU", "lspci"),
    ],
)
def test_no_driver_and_back(standin, script, why, remedy):
    source = standin(script)
    seen = states(source.poll())
    assert seen.keys() == ALL
    for state in seen.values():
        assert state["up"] is False
        assert why in state["why"]
        assert remedy in state["remedy"]
    assert source.restart_wanted == ("MISMATCH" in script)
    assert source.poll() == [], "said once, and not tried again at once"
    source.script("")
    back = source.polls(4)
    assert of(back, "gpu")
    assert states(back)["nvml"] == states(back)["nvml"] | {"up": True}
    assert "why" not in states(back)["nvml"]


def test_no_library(tmp_path):
    source = StandIn(tmp_path, tmp_path)  # a folder without the library
    state = states(source.poll())["nvml"]
    assert "libnvidia-ml.so.1" in state["why"]
    assert "install the NVIDIA driver" in state["remedy"]
    assert "error" in source.ask("describe")
    source.close()


def test_a_failing_driver_is_asked_ever_more_seldom(standin):
    source = standin("fail nvmlInitWithFlags DRIVER_NOT_LOADED")
    source.polls(400)  # 200 s
    assert 5 <= source.calls("nvmlInitWithFlags") <= 9


def test_a_reloaded_driver(standin):
    source = standin("gpus 2")
    source.poll()
    source.script("gpus 2\nfail nvmlDeviceGetUtilizationRates UNINITIALIZED")
    state = states(source.poll())["nvml"]
    assert (state["up"], "reloaded" in state["why"]) == (False, True)
    source.script("gpus 2")
    back = source.polls(4)
    assert {o["uuid"] for o in of(back, "gpu")} == {GPU0, GPU1}


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ("lost 1", "fallen off the bus"),
        ("fail * RESET_REQUIRED 1", "needs a reset"),
        ("fail * UNKNOWN 1", "Unknown Error"),
        ("fail * INVALID_ARGUMENT 1", "refuses every question"),
    ],
)
def test_a_gpu_is_lost_and_comes_back(standin, loss, why):
    source = standin("gpus 2")
    source.poll()
    source.script(f"gpus 2\n{loss}")
    seen = source.polls(4)
    assert len(of(seen, "gpu", uuid=GPU0)) == 4
    assert not of(seen, "gpu", uuid=GPU1)
    lost = states(seen, GPU1)["nvml"]
    assert (lost["up"], why in lost["why"]) == (False, True)
    assert lost["remedy"]
    assert states(seen, GPU1)["power_ring"]["up"] is False
    assert states(seen).get("nvml", {"up": True})["up"] is True, "one of two is left"
    assert len(of(source.polls(60), "gpu", uuid=GPU0)) == 60
    source.script("gpus 2")
    back = source.polls(240)
    assert of(back, "gpu", uuid=GPU1)
    assert states(back, GPU1)["nvml"]["up"] is True


def test_the_only_gpu_is_lost(standin):
    source = standin()
    source.poll()
    source.script("lost 0")
    state = states(source.poll())["nvml"]
    assert (state["up"], state["why"]) == (False, "the GPU has fallen off the bus")


def test_a_gpu_lost_before_we_came(standin):
    seen = standin("gpus 2\nlost 0").poll()
    assert {o["uuid"] for o in of(seen, "gpu")} == {GPU1}
    assert "GPU 0: the GPU has fallen off the bus" in states(seen)["nvml"]["why"]


def test_a_call_that_hangs(standin):
    source = standin()
    source.poll()
    source.script("hang nvmlDeviceGetPowerUsage")
    with pytest.raises(HangsError):
        source.poll(timeout_s=1.0)
    source.script("")
    assert of(source.answer()["observations"], "gpu"), "it goes on when the driver does"


def test_sentinels_are_absent(standin):
    seen = standin("set sentinels 1").polls(6, sleep_s=0.25)
    for gpu in of(seen, "gpu"):
        assert not gpu.keys() & {"sm_mhz", "mem_mhz", "temperature_c", "memory_used"}
    assert "pcie_replays" not in of(seen, "gpu_health")[0]
    assert of(seen, "ring", ring="power"), "two rotten samples do not spoil a ring"
    assert all(v < 1000 for o in of(seen, "ring") for v in o["values"] if v is not None)


def test_thresholds_given_as_distance_only(standin):
    seen = standin("fail nvmlDeviceGetTemperatureThreshold NOT_SUPPORTED").poll()
    (limits,) = of(seen, "gpu_limits")
    # 38 C now, 49 C to the highest operating temperature; slowdown -2, shutdown -8 beyond it.
    found = [limits[k] for k in ("max_operating_c", "slowdown_c", "shutdown_c")]
    assert found == [87, 89, 95]


def test_impossible_processes_are_dropped(standin):
    mine, parent = os.getpid(), os.getppid()
    source = standin(
        f"process 0 {mine} 1000 compute\n"
        f"process 0 {parent} {2**64 - 1} compute\n"
        "process 0 0 5 compute\n"
        f"process 0 {2**32 - 1} 5 compute\n"
        "process 0 3999999999 5 graphics\n"
        f"process 0 {2**31 + 5} {mine} compute\n"
        f"share 0 {mine} 60 20\nshare 0 0 30 1\nshare 0 {2**32 - 1} 30 1\n"
        f"share 0 {parent} 40000 3"
    )
    seen = source.poll()
    (held,) = of(seen, "gpu_processes")
    assert held["processes"] == sorted(
        [{"pid": mine, "type": "compute", "memory": 1000}, {"pid": parent, "type": "compute"}],
        key=lambda p: p["pid"],
    )
    (share,) = of(seen, "sm_share")
    assert share["shares"] == [[mine, 0.6, 0.2]]
    state = states(seen, GPU0)["gpu_processes"]
    assert (state["up"], state["missing"]) == (True, ["pid"])
    assert f"cannot be (PID 0, {2**31 + 5}, 3999999999, {2**32 - 1})" in state["why"]


def test_only_impossible_processes_mean_that_nobody_is_in_sight(standin, tmp_path):
    """PID and memory in each other's place: the GPU must not pass for free."""
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    source = standin(f"process 0 {2**30} 77 compute", proc=str(tmp_path / "proc"))
    assert states(source.polls(2))["gpu_processes"]["up"] is True
    state = states(source.polls(14))["gpu_processes"]
    assert (state["up"], "do not exist" in state["why"]) == (False, True)


def test_kinds_of_processes(standin):
    mine, parent = os.getpid(), os.getppid()
    seen = standin(
        f"process 0 {mine} 7 compute\nprocess 0 {mine} 7 mps\nprocess 0 {parent} 7 graphics"
    ).poll()
    types = {p["pid"]: p["type"] for p in of(seen, "gpu_processes")[0]["processes"]}
    assert types == {mine: "mps", parent: "graphics"}


def test_memory_without_owner_means_another_pid_namespace(standin, tmp_path):
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532999]")
    source = standin("process 0 77 9 compute", proc=str(tmp_path / "proc"))
    seen = source.polls(14)
    state = states(seen)["gpu_processes"]
    assert (state["up"], "hostPID" in state["remedy"]) == (False, True)
    (tmp_path / "proc/77").mkdir()
    state = states(source.polls(2))["gpu_processes"]
    assert state["up"] is True


def test_shares_cover_the_time_since_the_last_read(standin):
    mine, parent = os.getpid(), os.getppid()
    source = standin(
        f"process 0 {mine} 7 compute\nprocess 0 {parent} 7 compute\nshare 0 {mine} 60 20"
    )
    first, *later = of(source.polls(4, sleep_s=0.3, after_s=1.0), "sm_share")
    assert first["dt"] == pytest.approx(1.0, abs=0.11), "the second before we came"
    assert later
    # The stand-in samples every 100 ms.
    covered = sum(share["dt"] for share in later)
    assert covered == pytest.approx(later[-1]["t"] - first["t"], abs=0.11)


def test_shares_are_read_seldom_where_there_is_nobody_to_share_with(standin):
    mine, parent = os.getpid(), os.getppid()
    alone = f"process 0 {mine} 7 compute\nshare 0 {mine} 60 20\n"
    source = standin(alone)
    source.poll()
    before = source.calls("nvmlDeviceGetProcessUtilization")
    source.polls(8, after_s=1.0)
    assert source.calls("nvmlDeviceGetProcessUtilization") - before <= 4  # two reads, two calls
    source.script(f"{alone}process 0 {parent} 7 compute")
    seen = source.polls(3, sleep_s=0.2, after_s=1.0)
    (first, *_) = of(seen, "sm_share")
    assert first["dt"] == pytest.approx(1.0, abs=0.25), "what was before the other came is left out"
    assert len(of(seen, "sm_share")) >= 2


def test_lists_that_seldom_hold_a_job_are_read_seldom(standin):
    mine, parent = os.getpid(), os.getppid()
    source = standin(f"process 0 {mine} 7 compute\nprocess 0 {mine} 7 mps")
    source.poll()
    seen = of(source.polls(4, after_s=1.0), "gpu_processes")
    assert [o["processes"][0]["type"] for o in seen] == ["mps"] * 4
    assert source.calls("nvmlDeviceGetMPSComputeRunningProcesses_v3") == 2  # one read, two calls
    source.script(f"process 0 {parent} 7 mps")
    seen = of(source.polls(6, after_s=1.0), "gpu_processes")
    assert seen[-1]["processes"] == [{"pid": parent, "type": "mps", "memory": 7}]


def test_mig(standin):
    mine = os.getpid()
    source = standin(f"mig 0\nprocess 0 {mine} 1000 compute")
    seen = source.polls(5, sleep_s=0.15)
    infos = {o["uuid"]: o for o in of(seen, "gpu_info")}
    rows = {u: (o.get("mig"), o.get("parent_uuid")) for u, o in infos.items()}
    assert rows == {
        GPU0: (None, None),
        "MIG-standin-0-2-0": ("2/0", GPU0),
        "MIG-standin-0-2-1": ("2/1", GPU0),
        "MIG-standin-0-3-0": ("3/0", GPU0),
    }
    assert infos["MIG-standin-0-2-0"]["sm_ratio"] == pytest.approx(16 / 132)
    for uuid in rows:
        gpu = of(seen, "gpu", uuid=uuid)[0]
        assert "utilization" not in gpu
        assert gpu["sm_mhz"] == 1905
        assert ("power_w" in gpu) == (uuid == GPU0), "power is the board's"
        assert of(seen, "gpu_limits", uuid=uuid)[0]["max_sm_mhz"] == 1980
    assert {o["uuid"] for o in of(seen, "gpm")} == {"MIG-standin-0-3-0"}
    shared = states(seen, "MIG-standin-0-2-1")["gpm"]
    assert (shared["up"], "share this GPU instance" in shared["why"]) == (False, True)
    assert {o["uuid"] for o in of(seen, "gpu_processes")} == rows.keys() - {GPU0}
    ring = states(seen, "MIG-standin-0-3-0")["utilization_ring"]
    assert (ring["up"], "MIG" in ring["why"]) == (False, True)
    assert of(seen, "gpu_limits", uuid=GPU0)[0]["mig_enabled"] is True
    assert not of(seen, "ring")


def test_mig_is_switched_on(standin):
    source = standin()
    source.poll()
    source.script("mig 0")
    seen = source.polls(21)
    assert len({o["uuid"] for o in of(seen, "gpu_info")}) == 4


def test_a_virtual_gpu(standin):
    seen = standin(
        "set virtualization 2\nfail nvmlDeviceGetSamples NOT_SUPPORTED\nset gpm 0\n"
        "fail nvmlDeviceGetPowerUsage NOT_SUPPORTED\nfield_fail 186 NOT_SUPPORTED"
    ).poll()
    assert of(seen, "gpu_info")[0]["virtual"] is True
    assert "virtual GPU" in states(seen)["power_ring"]["why"]
    state = states(seen, GPU0)["nvml"]
    assert state["missing"] == ["power_w"]
    assert "virtual GPU" in state["why"]


def test_unified_memory(standin):
    seen = standin(
        "fail nvmlDeviceGetMemoryInfo NOT_SUPPORTED\nfail nvmlDeviceGetMemoryInfo_v2 NOT_SUPPORTED"
    ).poll()
    (info,) = of(seen, "gpu_info")
    assert info["unified_memory"] is True
    assert "memory_total" not in info
    assert "memory_used" not in of(seen, "gpu")[0]
    state = states(seen, GPU0)["nvml"]
    assert (state["up"], state["missing"]) == (True, ["memory_used"])
    assert "works in the host's" in state["why"]


def test_an_old_driver(standin):
    names = ["GetMemoryInfo_v2", "GetCurrentClocksEventReasons", "GetComputeRunningProcesses_v3"]
    old = "\n".join(f"fail nvmlDevice{name} FUNCTION_NOT_FOUND" for name in names)
    seen = standin(f"{old}\nprocess 0 {os.getpid()} 9 compute").poll()
    assert of(seen, "gpu")[0]["memory_used"] == 2 << 30  # with the reserve: all it can say
    assert len(of(seen, "gpu_processes")[0]["processes"]) == 1


def test_gpm_is_a_mean_of_its_interval(standin):
    seen = standin("set link_count 2").polls(8, sleep_s=0.2)
    means = of(seen, "gpm")
    assert len(means) == 6, "the first sample gives none, the first interval is false"
    for mean in means:
        assert 0.1 <= mean["dt"] < 3.0
        assert (mean["graphics"], mean["sm"], mean["dram"]) == (0.1, 0.2, 1.0)
        assert mean["pcie_tx"] == 20 * 2**20
    ends = [mean["t"] for mean in means]
    starts = [mean["t"] - mean["dt"] for mean in means]
    assert starts[1:] == pytest.approx(ends[:-1], abs=1e-3), "no gap and no overlap"


def test_gpm_samples_are_never_closer_than_100_ms(standin):
    source = standin()
    seen = source.polls(40, sleep_s=0.01)
    assert all(mean["dt"] >= 0.1 for mean in of(seen, "gpm"))
    assert of(seen, "gpm")


def test_gpm_without_dram(standin):
    means = of(standin("set nan 1").polls(4, sleep_s=0.15), "gpm")
    assert means
    assert not any("dram" in mean or "nvlink_tx" in mean for mean in means)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("set gpm 0", "Hopper and newer"),
        ("fail nvmlGpmQueryDeviceSupport FUNCTION_NOT_FOUND", "Hopper and newer"),
        ("fail nvmlGpmSampleGet NO_PERMISSION", "refuses it to this user"),
    ],
)
def test_no_gpm(standin, script, why):
    source = standin(script)
    seen = source.polls(6, sleep_s=0.15)
    assert not of(seen, "gpm")
    state = states(seen)["gpm"]
    assert (state["up"], why in state["why"]) == (False, True)
    assert state["remedy"]
    assert states(seen)["nvml"]["up"] is True
    assert source.calls("nvmlGpmQueryDeviceSupport") == 1


def test_rings_come_whole_and_once(standin):
    source = standin()
    cells: dict[int, float] = {}
    for _ in range(5):
        for row in of(source.poll(after_s=1.0), "ring", ring="power"):
            assert row["dt"] == 0.02
            first = round(row["t"] / 0.02)
            new = {first + i: v for i, v in enumerate(row["values"]) if v is not None}
            assert not new.keys() & cells.keys()
            cells |= new
        time.sleep(0.4)
    assert sorted(cells) == list(range(min(cells), max(cells) + 1))
    # The stand-in's value tells the number of the sample.
    assert all(round(v * 1000) % 1000 == cell % 1000 for cell, v in cells.items())
    assert 60 <= len(cells) <= 130


@pytest.mark.parametrize(("gpm", "reads"), [(1, 2), (0, 11)])
def test_the_utilisation_ring_stands_by_where_gpm_serves(standin, gpm, reads):
    source = standin(f"set gpm {gpm}")
    seen = source.polls(11, sleep_s=0.05, after_s=1.0)
    power = source.calls("nvmlDeviceGetSamples") - 2 * reads
    assert power == 2 * 11, "two calls for each read of a ring"
    assert states(seen)["utilization_ring"]["up"] is True


def test_a_ring_that_wraps_between_reads(standin):
    source = standin("set power_ring 20")
    source.poll(after_s=1.0)
    time.sleep(1.0)
    seen = source.poll(after_s=11.0)
    (row,) = of(seen, "ring", ring="power")
    assert row["lost"] == pytest.approx(0.6, abs=0.15)  # 1 s less 20 samples of 20 ms
    assert states(seen)["power_ring"]["lost_s"] == pytest.approx(row["lost"], abs=0.002)


def test_xid_events(standin):
    source = standin("gpus 2")
    source.poll()
    source.script("gpus 2\nxid 1 79\nxid 1 31\nxid 0 94")
    seen = source.poll()
    assert [(o["uuid"], o["xid"]) for o in of(seen, "xid")] == [(GPU1, 79), (GPU1, 31), (GPU0, 94)]
    (health,) = of(seen, "gpu_health", uuid=GPU1)
    assert (health["xid_errors"], health["last_xid"]) == (2, 31)
    assert not of(source.poll(), "xid")


def test_no_xid_events_where_none_can_be_received(standin):
    seen = standin("set event_types 0").poll()
    assert "xid_errors" not in of(seen, "gpu_health")[0]


def test_numa_node_from_sysfs(standin, tmp_path):
    for bus, node in (("0000:1a:00.0", "1\n"), ("0000:1b:00.0", "-1\n")):
        (tmp_path / "pci" / bus).mkdir(parents=True)
        (tmp_path / "pci" / bus / "numa_node").write_text(node)
    seen = standin("gpus 2", pci=str(tmp_path / "pci")).poll()
    assert [o["numa"] for o in of(seen, "gpu_info")] == [1, 0]


def test_describe(standin):
    found = standin("gpus 2").ask("describe")
    assert (found["driver"], found["nvml"], found["cuda"]) == ("580.159.04", "13.580.159", "13.0")
    assert [gpu["uuid"] for gpu in found["gpus"]] == [GPU0, GPU1]
    assert found["nvidia_ml_py"]


def test_only_one_module_imports_pynvml():
    package = Path(__file__).parents[2] / "exporter/gpuwhy"
    importers = [p.name for p in package.rglob("*.py") if "import pynvml" in p.read_text()]
    assert importers == ["nvml_library.py"]
