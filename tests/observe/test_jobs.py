"""The job table: who is rank, worker, child, launcher or tenant, and how names and numbers stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gpuwhy.observe.family import Process, is_launcher
from gpuwhy.observe.jobs import JobTable, Member

NOW = 1_796_042_100.0
BORN = NOW - 100.0  # 2026-11-30 12:33:20 UTC
TRAIN = ["python3", "train.py"]
SPAWNED = ["python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"]


class World:
    """A host's processes, and what a job table makes of them."""

    def __init__(self, **options: Any) -> None:
        self.table: dict[int, Process] = {}
        self.jobs = JobTable("node1", **options)

    def add(
        self,
        pid: int,
        argv: Sequence[str] = TRAIN,
        ppid: int = 1,
        *,
        env: Mapping[str, str] | None = None,
        start: float = BORN,
        python: str | None = "3.12",
        framework: bool = True,
        name: str = "python3",
        readable: bool = True,
        session: int = 7,
    ) -> None:
        self.table[pid] = Process(
            pid=pid,
            ticks=int(start * 100) % 10**9,
            ppid=ppid,
            session=session,
            start=start,
            name=name,
            argv=list(argv),
            python=python,
            framework=framework,
            env=dict(env or {}) if readable else None,
        )

    def tool(self, pid: int, argv: Sequence[str], ppid: int = 1, **more: Any) -> None:
        self.add(pid, argv, ppid, python=None, framework=False, name=argv[0], **more)

    def members(self, now: float = NOW) -> dict[int, Member]:
        return {member.pid: member for member in self.jobs.update(now, self.table)}

    def roles(self, now: float = NOW) -> dict[int, str]:
        return {pid: member.role for pid, member in self.members(now).items()}


def test_a_gpu_process_that_is_python_is_a_rank_and_the_rest_of_its_family_is_told() -> None:
    world = World()
    world.add(10)
    world.add(11, TRAIN, 10, name="pt_data_worker")
    world.add(12, TRAIN, 10)  # forked, older torch
    world.add(13, SPAWNED, 10)
    world.add(14, ["python3", "-c", "from multiprocessing.resource_tracker import main"], 10)
    world.tool(15, ["nvcc", "x.cu"], 10)
    world.add(20, ["python3", "unrelated.py"])
    world.jobs.gpu_processes("GPU-1", {10})
    members = world.members()
    assert {pid: m.role for pid, m in members.items()} == {
        10: "rank",
        11: "worker",
        12: "worker",
        13: "worker",
        14: "child",
        15: "child",
    }
    assert members[10].gpus == ("GPU-1",)
    assert {m.rank_life for m in members.values()} == {world.table[10].life}
    assert {m.run for m in members.values()} == {"train.py-20261130T123320Z"}
    assert {m.rank for m in members.values()} == {0}


def test_one_rank_may_drive_several_gpus() -> None:
    world = World()
    world.add(10)
    for uuid in ("GPU-2", "GPU-1"):
        world.jobs.gpu_processes(uuid, {10})
    assert world.members()[10].gpus == ("GPU-1", "GPU-2")


def test_workers_of_a_fork_server() -> None:
    server = ["python3", "-c", "from multiprocessing.forkserver import main"]
    world = World()
    world.add(10)
    world.add(11, server, 10)
    world.add(12, server, 11)
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.roles() == {10: "rank", 11: "child", 12: "worker"}


def test_torchrun_is_no_rank_and_its_ranks_share_a_run() -> None:
    world = World()
    world.add(9, ["python3", "/venv/bin/torchrun", "--nproc-per-node=2", "train.py"])
    for i in range(2):
        env = {"RANK": str(i + 4), "LOCAL_RANK": str(i), "WORLD_SIZE": "8"}
        env |= {"MASTER_ADDR": "head", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
        world.add(10 + i, TRAIN, 9, env=env)
        world.jobs.gpu_processes(f"GPU-{i}", {10 + i})
    members = world.members()
    assert {pid: m.role for pid, m in members.items()} == {9: "launcher", 10: "rank", 11: "rank"}
    assert {m.run for m in members.values()} == {"head:29500"}
    assert [(m.rank, m.local_rank, m.world_size) for m in members.values() if m.role == "rank"] == [
        (4, 0, 8),
        (5, 1, 8),
    ]


def test_without_a_visible_gpu_a_framework_makes_a_rank() -> None:
    world = World()
    world.add(8, ["python3", "-m", "torch.distributed.run", "train.py"])
    world.add(10, TRAIN, 8, env={"RANK": "0"})
    world.add(11, TRAIN, 10)
    world.add(20, ["python3", "server.py"], framework=False)
    world.jobs.gpu_processes("GPU-1", {31337})  # of another PID namespace: not in sight
    assert world.roles() == {8: "launcher", 10: "rank", 11: "worker"}


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(
    "program",
    [TRAIN, ["python3", "-m", "mine.train"], ["python3", "-u", "/srv/train.py"]],
)
def test_a_notebook_that_starts_a_job_is_another_run(listed: bool, program: list[str]) -> None:
    world = World()
    world.add(10, ["python3", "-m", "ipykernel_launcher", "-f", "kernel.json"])
    world.tool(11, ["sh", "-c", "the job"], 10)
    world.add(12, program, 11, start=BORN + 5)
    world.add(13, program, 12, framework=False)
    world.add(14, program, 12)
    if listed:
        world.jobs.gpu_processes("GPU-1", {10, 12})
    members = world.members()
    roles = {pid: member.role for pid, member in members.items()}
    assert roles == {10: "rank", 11: "child", 12: "rank", 13: "worker", 14: "worker"}
    assert {members[pid].rank_life for pid in (13, 14)} == {members[12].life}
    assert members[10].run != members[12].run == members[14].run
    assert members[12].rank == 0


def test_ranks_below_a_launcher_are_no_run_of_the_notebook_above() -> None:
    world = World()
    world.add(10, ["python3", "-m", "ipykernel_launcher", "-f", "kernel.json"])
    world.add(11, ["python3", "-m", "torch.distributed.run", "train.py"], 10)
    for rank in (0, 1):
        env = {"RANK": str(rank), "WORLD_SIZE": "2"}
        world.add(20 + rank, TRAIN, 11, env=env, start=BORN + 5 + rank)
    members = world.members()
    assert members[20].run == members[21].run == members[11].run != members[10].run
    assert [members[20 + rank].rank for rank in (0, 1)] == [0, 1]
    assert members[11].role == "launcher"


@pytest.mark.parametrize(
    "helper",
    [
        [
            "python3",
            "/v/site-packages/torch/_inductor/compile_worker/__main__.py",
        ],
        ["python3", "-m", "torch._inductor.compile_worker"],
        ["python3", "-m", "joblib.externals.loky.backend.popen_loky_posix"],
        ["python3", "-c", "from multiprocessing.forkserver import main; main()"],
    ],
)
def test_a_helper_of_a_library_is_no_rank(helper: list[str]) -> None:
    world = World()
    world.add(10)
    world.add(11, helper, 10)
    assert world.roles() == {10: "rank", 11: "child"}


def test_a_visible_gpu_process_settles_who_is_a_rank() -> None:
    world = World()
    world.add(10)
    world.add(20, ["python3", "notebook.py"])
    assert world.roles() == {10: "rank", 20: "rank"}
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.roles() == {10: "rank"}


def test_a_short_lived_process_is_no_rank() -> None:
    world = World()
    world.add(10, start=NOW - 1.5)
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.roles() == {}
    assert world.roles(NOW + 1.0) == {10: "rank"}


def test_we_are_no_job() -> None:
    world = World(observer=5, parent=4)
    world.add(4)
    world.add(5, ["python3", "-m", "gpuwhy.observe"], 4)
    world.add(6, ["python3", "helper.py"], 5)
    world.add(10, TRAIN, 4)
    assert world.roles() == {10: "rank"}


def test_a_gpu_process_that_is_no_python_is_a_tenant() -> None:
    world = World()
    world.tool(10, ["gromacs"])
    world.add(20, ["jupyterhub"], session=20)
    world.tool(21, ["bash"], 20, session=21)
    world.tool(22, ["vasp"], 21, session=21)  # in a terminal of Jupyter's
    world.jobs.gpu_processes("GPU-1", {10, 22})
    members = world.members()
    assert {pid: m.role for pid, m in members.items()} == {10: "tenant", 22: "tenant"}
    assert members[10].run == "gromacs-20261130T123320Z"
    assert members[10].rank is None


def test_a_program_that_python_started_is_a_rank() -> None:
    world = World()
    world.add(9, ["python3", "launch_me.py"], framework=False)
    world.tool(10, ["train.bin"], 9)
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.roles() == {10: "rank"}


def test_spawned_ranks_are_numbered_in_the_order_of_their_start() -> None:
    world = World()
    world.add(9)
    for i in range(4):
        world.add(13 - i, SPAWNED, 9, start=BORN + 1 + i)
        world.jobs.gpu_processes(f"GPU-{i}", {13 - i} | ({9} if i == 0 else set()))
    members = world.members()
    assert members[9].role == "launcher"
    assert [members[13 - i].rank for i in range(4)] == [0, 1, 2, 3]
    assert {m.run for m in members.values()} == {"train.py-20261130T123320Z"}


def test_lightning_starts_ranks_below_the_first() -> None:
    world = World()
    world.add(10)
    for i in (1, 2, 3):
        env = {"LOCAL_RANK": str(i), "NODE_RANK": "0", "WORLD_SIZE": "4"}
        world.add(10 + i, TRAIN, 10, env=env, start=BORN + 5)
    world.add(21, TRAIN, 10)
    world.add(22, TRAIN, 12, env={"LOCAL_RANK": "2", "NODE_RANK": "0"})
    for i in range(4):
        world.jobs.gpu_processes(f"GPU-{i}", {10 + i})
    members = world.members()
    assert {p: m.role for p, m in members.items() if m.role != "rank"} == {
        21: "worker",
        22: "worker",
    }
    assert [members[10 + i].rank for i in range(4)] == [0, 1, 2, 3]
    assert members[22].rank == 2
    assert len({m.run for m in members.values()}) == 1


def test_ranks_of_one_run_never_share_a_number() -> None:
    """Several plain processes in one Slurm job: srun gave none of them a number."""
    world = World()
    for i in range(3):
        world.add(10 + i, env={"SLURM_JOB_ID": "77", "SLURM_PROCID": "0"}, start=BORN + i)
        world.jobs.gpu_processes(f"GPU-{i}", {10 + i})
    assert [m.rank for m in world.members().values()] == [0, 1, 2]
    del world.table[10]
    assert [m.rank for m in world.members().values()] == [1, 2]  # for life
    world.add(13, env={"SLURM_JOB_ID": "77", "SLURM_PROCID": "0"}, start=BORN + 9)
    world.jobs.gpu_processes("GPU-0", {13})
    assert world.members()[13].rank == 0


def test_no_number_is_made_up_where_the_environment_is_refused() -> None:
    world = World()
    world.add(10, readable=False)
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.members()[10].rank is None


def test_a_run_keeps_its_name() -> None:
    world = World()
    world.add(9, ["torchrun"])
    world.add(10, TRAIN, 9, env={"RANK": "0"})
    world.jobs.gpu_processes("GPU-1", {10})
    before = world.members()[10].run
    del world.table[10]
    assert world.roles() == {}
    world.add(11, TRAIN, 9, env={"RANK": "0"}, start=BORN + 50)  # torchrun starts it again
    world.jobs.gpu_processes("GPU-1", {11})
    assert world.members()[11].run == before
    world.table[11].ppid = 1  # the launcher dies
    del world.table[9]
    assert world.members()[11].run == before


def test_two_jobs_of_one_script_begun_in_the_same_second_are_two_runs() -> None:
    world = World()
    world.add(10, TRAIN, start=BORN + 0.10)
    world.add(20, TRAIN, start=BORN + 0.30, session=8)
    world.jobs.gpu_processes("GPU-1", {10})
    world.jobs.gpu_processes("GPU-2", {20})
    first = world.members()
    assert first[10].run != first[20].run
    assert (first[10].rank, first[20].rank) == (0, 0)
    assert {m.run for m in world.members(NOW + 60).values()} == {m.run for m in first.values()}


def test_a_rank_stays_one_though_the_driver_forgets_it_for_a_moment() -> None:
    world = World()
    world.add(10)
    world.add(20, ["python3", "other.py"])
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.roles() == {10: "rank"}
    world.jobs.gpu_processes("GPU-1", set())
    assert world.roles() == {10: "rank"}
    assert world.members()[10].gpus == ()


def test_workers_respawn_and_outlive_their_rank() -> None:
    world = World()
    world.add(10)
    world.add(11, TRAIN, 10)
    world.jobs.gpu_processes("GPU-1", {10})
    assert world.roles() == {10: "rank", 11: "worker"}
    del world.table[11]
    world.add(12, TRAIN, 10, start=NOW - 0.5)
    assert world.roles() == {10: "rank", 12: "worker"}
    del world.table[10]
    world.table[12].ppid = 1
    orphan = world.members()[12]
    assert (orphan.role, orphan.rank) == ("worker", 0)


def test_a_reused_pid_is_a_new_process() -> None:
    world = World()
    world.add(10)
    world.add(11, TRAIN, 10)
    world.jobs.gpu_processes("GPU-1", {10})
    first = world.members()[10].run
    world.tool(11, ["bash"], 1, start=NOW)
    world.add(10, ["python3", "eval.py"], start=NOW + 1)
    second = world.members(NOW + 10)
    assert second.keys() == {10}
    assert second[10].run == "eval.py-20261130T123501Z" != first


def test_a_gpu_worker_is_known_by_its_stack() -> None:
    world = World()
    world.add(10)
    for pid in (11, 12):
        world.add(pid, SPAWNED, 10)
    world.jobs.gpu_processes("GPU-1", {10, 11, 12})
    assert world.roles() == {10: "launcher", 11: "rank", 12: "rank"}
    for pid in (11, 12):
        world.jobs.worker_seen(pid)
    assert world.roles() == {10: "rank", 11: "worker", 12: "worker"}


@pytest.mark.parametrize(
    ("line", "launches"),
    [
        ("torchrun train.py", True),
        ("python3 -u /venv/bin/torchrun train.py", True),
        ("python3 -m torch.distributed.run train.py", True),
        ("python3 -m torch.distributed.launch train.py", True),
        ("python3 /venv/bin/accelerate launch train.py", True),
        ("python3 /venv/bin/accelerate config", False),
        ("/usr/bin/mpirun -n 2 python3 train.py", True),
        ("srun python3 train.py", True),
        ("python3 train.py", False),
        ("python3 -m trainer.launch", False),
        ("python3 -c torchrun", False),
        ("", False),
    ],
)
def test_launchers(line: str, launches: bool) -> None:
    assert is_launcher(line.split()) is launches
