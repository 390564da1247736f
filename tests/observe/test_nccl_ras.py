"""The RAS client against a real server that speaks NCCL's protocol, well and badly."""

import contextlib
import json
import re
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from gpuwhy.observe.nccl_ras import QUIET_S, SLOWEST_S, RasSource, pause
from gpuwhy.observe.nccl_ras_answer import communicators, parse

FIXTURE = Path(__file__).parent / "fixtures/nccl_ras_straggler.jsonl"
RECORDED = [json.loads(line) for line in FIXTURE.read_text().splitlines()]


def answer(moment=0, *, hash_="0x501b7dc4e2a5c824", ranks=2):
    """A whole answer at one of the recorded moments, in NCCL's own layout."""
    whole = json.loads(json.dumps(RECORDED[0]["answer"]))
    communicator = whole["communicators"][0]
    communicator["hash"] = hash_
    for rank, part in zip(communicator["ranks"], RECORDED[moment].get("ranks", ()), strict=False):
        rank |= part
    del communicator["ranks"][ranks:]
    return whole


def text(whole):
    return json.dumps(whole, indent=2) + "\n"


def with_missing_rank():
    """As NCCL 2.28.9 writes it after a rank was killed: a comma is left out."""
    whole = answer(ranks=1)
    whole["communicators"][0]["missing_ranks"] = [
        {
            "rank": 1,
            "host": "192.0.2.2",
            "pid": 885,
            "cuda_dev": 1,
            "nvml_dev": 1,
            "status": {"unresponsive": True, "considered_dead": False},
        }
    ]
    broken = re.sub(r'("nvml_dev": 1),(\s+"status": \{\s+"unresp)', r"\1\2", text(whole))
    with pytest.raises(ValueError, match="delimiter"):
        json.loads(broken)
    return broken


class Server:
    """Answers as NCCL does: a line for each command, the status, and the end of the stream.

    ``answers`` are taken in turn, the last one again and again; ``behave`` replaces the status.
    """

    def __init__(self, *answers, behave=None, hello=b"SERVER PROTOCOL 2\n", set_format=b"OK\n"):
        self.answers, self.behave = list(answers), behave
        self.hello, self.set_format = hello, set_format
        self.commands: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while not self.done.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self._serve(connection)

    def _serve(self, connection):
        for line in connection.makefile("r"):
            command = line.strip()
            self.commands.append(command)
            if command.upper().startswith("CLIENT PROTOCOL"):
                connection.sendall(self.hello)
            elif command.upper().startswith("SET FORMAT"):
                connection.sendall(self.set_format)
            elif command.upper() == "VERBOSE STATUS":
                (self.behave or self._status)(connection)
                return

    def _status(self, connection):
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        connection.sendall(said.encode() if isinstance(said, str) else said)

    def close(self):
        self.done.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def serve():
    servers = []

    def start(*answers, **options):
        servers.append(Server(*answers, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def source_for(*servers):
    return RasSource(lambda: [server.address for server in servers])


def split(observations):
    """(nccl observations, the last source observation or None)."""
    states = [o for o in observations if o["kind"] == "source"]
    return [o for o in observations if o["kind"] == "nccl"], states[-1] if states else None


def test_the_straggler_is_behind(serve):
    server = serve(*(text(answer(i)) for i in range(len(RECORDED))))
    source = source_for(server)
    now, counts = time.time(), []
    for i in range(len(RECORDED)):
        (seen,), _ = split(source.poll(now + 100.0 * i))  # the pause grows on a slow host
        (communicator,) = seen["communicators"]
        counts.append([rank["counts"]["AllReduce"] for rank in communicator["ranks"]])
    assert counts == [[309, 281], [309, 281], [321, 301], [341, 321]]
    assert server.commands == ["CLIENT PROTOCOL 2", "SET FORMAT json", "VERBOSE STATUS"] * 4
    assert seen["port"] == f"127.0.0.1:{server.address[1]}"
    assert seen["version"] == "2.28.9"
    assert abs(seen["t"] - time.time()) < 30
    assert (communicator["hash"], communicator["size"]) == ("0x501b7dc4e2a5c824", 2)
    rank = communicator["ranks"][1]
    assert rank | {"counts": {}} == {
        "rank": 1,
        "host": "192.0.2.2",
        "pid": 885,
        "gpu": 1,
        "state": "running",
        "async_error": 0,
        "counts": {},
        "missing": False,
    }
    assert rank["counts"]["Broadcast"] == 6


def test_it_says_so_when_up(serve):
    _, state = split(source_for(serve(text(answer()))).poll(time.time()))
    assert (state["source"], state["up"], state["reads"]) == ("nccl_ras", True, 1)


def test_a_killed_rank_is_missing(serve):
    (seen,), state = split(source_for(serve(with_missing_rank())).poll(time.time()))
    alive, dead = seen["communicators"][0]["ranks"]
    assert (alive["rank"], alive["missing"]) == (0, False)
    assert dead == {
        "rank": 1,
        "host": "192.0.2.2",
        "pid": 885,
        "gpu": 1,
        "state": "missing",
        "missing": True,
        "considered_dead": False,
        "unresponsive": True,
    }
    assert state["up"] is True


def test_nobody_there_is_no_fault():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()
    source = RasSource(lambda: [free])
    now = time.time()
    seen, state = split(source.poll(now))
    assert not seen
    assert (state["up"], state["why"]) == (False, "no NCCL job answers on this host")
    assert "remedy" not in state
    assert state["failures"] == 0
    assert state["period_s"] == QUIET_S


def test_a_quiet_host_is_asked_every_ten_seconds_and_a_job_every_two(serve):
    server = serve(text(answer()))
    there = []
    source = RasSource(lambda: there)
    now = 1_790_000_000.0
    for i in range(11):  # 20 s
        source.poll(now + 2.0 * i)
        there = [server.address] if i == 4 else there
    # Asked at 0, at 10 (the job has come) and then every 2 s.
    assert server.commands.count("VERBOSE STATUS") == 6


def hang(connection):
    time.sleep(3.0)


def reset(connection):
    connection.sendall(text(answer()).encode()[:300])
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half(connection):
    connection.sendall(text(answer()).encode()[:700])


def drip(connection):
    for byte in text(answer()).encode():
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def garbage(connection):
    connection.sendall(bytes(range(256)) * 4096)  # a megabyte


@pytest.mark.parametrize(
    ("behave", "why"),
    [
        (hang, "no full answer within 2 s"),
        (drip, "no full answer within 2 s"),
        (reset, "the connection broke"),
        (half, "cut off or is no JSON"),
        (garbage, "cut off or is no JSON"),
        (lambda c: c.sendall(b"[1, 2]"), "cut off or is no JSON"),
        (lambda c: c.sendall(b'{"communicators": 3}'), "cut off or is no JSON"),
        (lambda c: None, "cut off or is no JSON"),
    ],
)
def test_a_bad_answer_is_no_answer(serve, behave, why):
    source = source_for(serve(behave=behave))
    start = time.monotonic()
    seen, state = split(source.poll(time.time()))
    assert not seen
    assert (state["up"], why in state["why"]) == (False, True)
    assert state["failures"] == 1
    assert time.monotonic() - start < source.deadline_s


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"hello": b"HTTP/1.1 400 Bad Request\n"}, "something other than NCCL"),
        ({"hello": b"x" * 100_000}, "something other than NCCL"),
        ({"set_format": b"ERROR: Unknown command SET FORMAT json\n"}, "older than 2.28"),
    ],
)
def test_not_the_server_we_can_talk_to(serve, options, why):
    server = serve(text(answer()), **options)
    seen, state = split(source_for(server).poll(time.time()))
    assert not seen
    assert (state["up"], why in state["why"]) == (False, True)
    assert "VERBOSE STATUS" not in server.commands, "no needless gathering"


def test_an_old_one_has_a_remedy(serve):
    server = serve(set_format=b"ERROR: Unknown command SET FORMAT json\n")
    _, state = split(source_for(server).poll(time.time()))
    assert "2.28" in state["remedy"]


def test_one_bad_port_does_not_hide_the_other(serve):
    bad, good = serve(behave=reset), serve(text(answer()))
    seen, state = split(source_for(bad, good).poll(time.time()))
    assert len(seen) == 1
    assert state["up"] is True


def test_jobs_that_share_a_port_answer_in_turn(serve):
    one, two = text(answer(hash_="0x1")), text(answer(hash_="0x2"))
    source = source_for(serve(one, two, two, one, one, one, two))
    now = 1_790_000_000.0

    def hashes(t):
        return {c["hash"] for o in split(source.poll(t))[0] for c in o["communicators"]}

    assert hashes(now) == {"0x1"}
    assert hashes(now + 2) == {"0x1", "0x2"}
    assert hashes(now + 4) == {"0x1", "0x2"}


def test_a_job_that_is_gone_is_forgotten(serve):
    one, two = text(answer(hash_="0x1")), text(answer(hash_="0x2"))
    server = serve(one, two)
    source = source_for(server)
    now = 1_790_000_000.0
    source.poll(now)
    source.poll(now + 2)
    asked = server.commands.count("VERBOSE STATUS")
    source.poll(now + 40)
    assert server.commands.count("VERBOSE STATUS") == asked + 1


def test_a_megabyte_of_ranks(serve):
    whole = answer()
    (communicator,) = whole["communicators"]
    rank = communicator["ranks"][0]
    communicator["ranks"] = [{**rank, "rank": i, "host": f"192.0.2.{i // 8}"} for i in range(2048)]
    big = text(whole)
    assert len(big) > 2**20
    source = source_for(serve(big))
    (seen,), state = split(source.poll(time.time()))
    assert len(seen["communicators"][0]["ranks"]) == 2048
    assert state["period_s"] >= 60, "256 hosts ask as much together as two do"


def test_the_pause_grows_with_hosts_and_with_cost():
    def job(hosts):
        ranks = [{"rank": i, "host": f"h{i}"} for i in range(hosts)]
        return [{"communicators": [{"hash": "0x1", "ranks": ranks}]}]

    assert pause(job(1), 0.001) == 2.0
    assert pause(job(32), 0.001) == 16.0
    assert pause(job(2), 0.5) == 25.0
    assert pause(job(1000), 2.0) == SLOWEST_S


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"init_state": 0}, "running"),
        ({"init_state": 7}, "initializing"),
        ({"init_state": 2}, "failed"),
        ({"init_state": 0, "finalize_called": True}, "finalizing"),
        ({"init_state": 0, "finalize_called": True, "abort_flag": True}, "aborted"),
    ],
)
def test_states(status, state):
    whole = answer()
    whole["communicators"][0]["ranks"][0]["status"] = status
    assert communicators(whole)[0]["ranks"][0]["state"] == state


def test_what_ras_does_not_know_is_absent():
    whole = answer()
    whole["communicators"][0]["ranks"][0] |= {"pid": -1, "host": "unknown", "nvml_dev": -1}
    rank = communicators(whole)[0]["ranks"][0]
    assert not rank.keys() & {"pid", "host", "gpu"}


def test_odd_shapes_are_left_out():
    odd = {"communicators": [7, {}, {"hash": "0x1", "ranks": [None, {}, {"rank": True}]}]}
    assert communicators(odd) == [{"hash": "0x1", "ranks": []}]


def test_mending_leaves_valid_json_alone():
    whole = answer()
    whole["communicators"][0]["note"] = 'a "quoted" 1\\n "text"'
    assert parse(text(whole)) == whole
    assert parse(text(whole)[:-3].rstrip() + ",\n}\n") == whole
