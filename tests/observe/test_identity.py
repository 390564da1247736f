"""Run and rank of a process, by the signs in their order."""

from __future__ import annotations

import pytest

from gpuwhy.observe.identity import (
    Place,
    local_rank_of,
    place_of,
    pod_owner,
    rank_of,
    ras_address_of,
    run_of,
    script_of,
    script_run,
    world_size_of,
)

DIGITS = "0123456789abcdef" * 4
EVERYTHING = {
    "GPUWHY_RUN": "mine",
    "SLURM_JOB_ID": "4711",
    "TORCHELASTIC_RUN_ID": "elastic",
    "MASTER_ADDR": "node7",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "8",
}


def name(env: dict[str, str], place: Place | None = None) -> str | None:
    found = run_of(env, place or Place(), "thishost")
    return None if found is None else found[1]


def test_the_first_sign_wins() -> None:
    env = dict(EVERYTHING)
    place = Place("c0ffee", "train-abc12", "team")
    seen = []
    for gone in ("GPUWHY_RUN", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", None, "MASTER_ADDR"):
        seen.append(name(env, place))
        if gone is None:
            place = Place("c0ffee")
        else:
            del env[gone]
    seen.append(name(env, place))
    assert seen == ["mine", "4711", "elastic", "team/train-abc12", "node7:29500", "c0ffee"]
    assert name({}, Place()) is None


def test_precedence_orders_the_signs() -> None:
    slurm, master = {"SLURM_JOB_ID": "1"}, {**EVERYTHING}
    for key in ("GPUWHY_RUN", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"):
        del master[key]
    a, b = run_of(slurm, Place(), "h"), run_of(master, Place(), "h")
    assert a is not None
    assert b is not None
    assert a[0] < b[0]


def test_torchruns_default_id_says_nothing() -> None:
    assert name({"TORCHELASTIC_RUN_ID": "none"}) is None


def test_slurm_array_tasks_are_apart() -> None:
    env = {"SLURM_JOB_ID": "4715", "SLURM_ARRAY_JOB_ID": "4711", "SLURM_ARRAY_TASK_ID": "3"}
    assert name(env) == "4711_3"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "WORLD_SIZE": "2"}, "thishost:1"),
        ({"MASTER_ADDR": "localhost", "WORLD_SIZE": "2"}, "thishost"),
        ({"MASTER_ADDR": "node7", "MASTER_PORT": "1", "WORLD_SIZE": "1"}, None),
        ({"MASTER_ADDR": "node7", "MASTER_PORT": "1"}, None),
        ({"JAX_COORDINATOR_ADDRESS": "node7:1234", "JAX_NUM_PROCESSES": "4"}, "node7:1234"),
    ],
)
def test_the_master_names_runs_of_several_ranks(env: dict[str, str], expected: str | None) -> None:
    assert name(env) == expected


def test_long_names_are_cut() -> None:
    assert name({"GPUWHY_RUN": "x" * 500}) == "x" * 120


@pytest.mark.parametrize(
    ("env", "rank"),
    [
        ({"RANK": "3", "LOCAL_RANK": "1", "SLURM_PROCID": "9"}, 3),
        ({"SLURM_PROCID": "9", "OMPI_COMM_WORLD_RANK": "2"}, 9),
        ({"OMPI_COMM_WORLD_RANK": "2"}, 2),
        ({"PMI_RANK": "5"}, 5),
        ({"JAX_PROCESS_ID": "6"}, 6),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, 1),
        ({"LOCAL_RANK": "1", "NODE_RANK": "2"}, None),
        ({"RANK": "-1"}, None),
        ({"RANK": "many"}, None),
        ({"RANK": "²"}, None),
        ({}, None),
    ],
)
def test_rank(env: dict[str, str], rank: int | None) -> None:
    assert rank_of(env) == rank


def test_local_rank_and_world_size() -> None:
    env = {"SLURM_LOCALID": "1", "SLURM_NTASKS": "16"}
    assert (local_rank_of(env), world_size_of(env)) == (1, 16)
    assert (local_rank_of({}), world_size_of({})) == (None, None)


@pytest.mark.parametrize(
    ("pod", "env", "owner"),
    [
        ("bert-worker-0", {}, "bert"),
        ("bert-large-master-0", {}, "bert-large"),
        ("bert-x7k2p", {}, "bert"),
        ("bert-3-x7k2p", {"JOB_COMPLETION_INDEX": "3"}, "bert"),
        ("bert-0", {}, "bert-0"),
        ("notebook", {}, "notebook"),
    ],
)
def test_owner_of_a_pod(pod: str, env: dict[str, str], owner: str) -> None:
    assert pod_owner(pod, env) == owner


@pytest.mark.parametrize(
    "path",
    [
        f"/docker/{DIGITS}",
        f"/system.slice/docker-{DIGITS}.scope",
        f"/machine.slice/libpod-{DIGITS}.scope/container",
        f"/../cri-containerd-{DIGITS}.scope",
        f"/kubepods/burstable/pod1/{DIGITS}",
    ],
)
def test_container_of_a_control_group(path: str) -> None:
    assert place_of(path, {}).container == DIGITS[:12]


def test_place_in_a_pod() -> None:
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "bert-x7k2p", "POD_NAMESPACE": "ml"}
    assert place_of("/", env) == Place(None, "bert-x7k2p", "ml")
    assert place_of("/user.slice", {"HOSTNAME": "node1"}) == Place()
    assert place_of(None, {}) == Place()


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (["python3", "train.py", "--lr", "1"], "train.py"),
        (["python3", "-u", "-X", "dev", "/job/train.py"], "/job/train.py"),
        (["python3", "-m", "trainer.run", "x"], "-m trainer.run"),
        (["python3", "-mtrainer"], "-m trainer"),
        (["python3", "-c", "print('x')"], "-c"),
        (["python3"], None),
    ],
)
def test_script(argv: list[str], script: str | None) -> None:
    assert script_of(argv) == script


def test_script_and_start_name_a_run() -> None:
    assert script_run("/job/train.py", 1_796_042_000.9) == "train.py-20261130T123320Z"
    assert script_run("-m pkg.train", 1_796_042_000.9) == "pkg.train-20261130T123320Z"


def test_ras_address() -> None:
    assert ras_address_of({"NCCL_RAS_ADDR": "localhost:12345"}) == ("localhost", 12345)
    assert ras_address_of({"NCCL_RAS_ADDR": "[::1]:12345"}) == ("::1", 12345)
    for wrong in ({}, {"NCCL_RAS_ADDR": "12345"}, {"NCCL_RAS_ADDR": "host:99999"}):
        assert ras_address_of(wrong) is None
