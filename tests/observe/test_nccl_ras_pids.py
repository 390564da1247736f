"""PIDs of containers and of other hosts, which NCCL's RAS tells as they are there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.observe.proc_tree import ProcTree

from gpuwhy.observe import procfs
from gpuwhy.observe.nccl_ras_pids import RankHere, place
from gpuwhy.observe.processes import ProcessSource

OURS = {"127.0.0.1", "192.0.2.2"}


def pids(*said: dict[str, Any], here: list[RankHere], ours: set[str] = OURS) -> list[int | None]:
    ranks = [
        {"rank": i, "host": "192.0.2.2", "missing": False, **one} for i, one in enumerate(said)
    ]
    (placed,) = place([{"hash": "0x1", "size": 9, "ranks": ranks}], here, ours)
    assert (placed["hash"], placed["size"]) == ("0x1", 9)
    assert [r["rank"] for r in placed["ranks"]] == list(range(len(said)))
    return [rank.get("pid") for rank in placed["ranks"]]


def test_a_containers_pids_become_the_hosts() -> None:
    here = [RankHere(4101, 7, 0), RankHere(4102, 8, 1)]
    assert pids({"pid": 7}, {"pid": 8}, here=here) == [4101, 4102]


def test_pids_of_the_host_stay() -> None:
    here = [RankHere(884, 884, 0)]
    assert pids({"pid": 884}, {"pid": 885}, here=here) == [884, 885]
    assert pids({"pid": 884}, {"pid": 885}, here=[]) == [884, 885]


def test_ranks_of_other_hosts_are_no_process_here() -> None:
    here = [RankHere(884, 884, 0)]
    assert pids({"pid": 884}, {"pid": 884, "host": "192.0.2.3"}, here=here) == [884, None]
    elsewhere = {"pid": 884, "host": "192.0.2.3"}
    assert pids(elsewhere, here=here, ours=set()) == [884], "our addresses are not known"


def test_containers_with_the_same_pids_are_told_apart_by_rank_or_not_at_all() -> None:
    here = [RankHere(4101, 7, 0), RankHere(5101, 7, 1)]
    assert pids({"pid": 7}, {"pid": 7}, here=here) == [4101, 5101]
    nameless = [RankHere(4101, 7, None), RankHere(5101, 7, None)]
    assert pids({"pid": 7}, here=nameless) == [None]


def test_what_is_not_known_stays_so() -> None:
    assert pids({}, here=[RankHere(1, 1, 0)]) == [None]


def test_the_pid_that_a_process_has_in_its_container(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path / "proc")
    torch = "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so"
    tree.add(1, ["init"], exe=None)
    tree.add(4101, ["python", "train.py"], env={"RANK": "3"}, maps=[torch])
    tree.write("4101/status", "Name:\tpython\nNSpid:\t4101\t12\t7\nCpus_allowed_list:\t0-1\n")
    source = ProcessSource(proc=str(tree.root), cgroup_mount=str(tmp_path))
    source.poll(tree.now)
    assert source.ras_ranks() == [RankHere(4101, 7, 3)]


def test_this_hosts_own() -> None:
    assert procfs.read_namespace_pids("/proc/self")[0] == os.getpid()
    assert "127.0.0.1" in procfs.local_addresses("/proc")
    assert procfs.local_addresses("/none") == frozenset()


def test_addresses(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/fib_trie").write_text(
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n"
        "     |-- 192.0.2.0\n        /24 link UNICAST\n"
        "     |-- 192.0.2.2\n        /32 host LOCAL\n"
        "     |-- 192.0.2.255\n        /32 link BROADCAST\n"
    )
    (tmp_path / "net/if_inet6").write_text(
        "00000000000000000000000000000001 01 80 10 80       lo\nrubbish\n"
    )
    assert procfs.local_addresses(str(tmp_path)) == {"192.0.2.2", "::1"}
