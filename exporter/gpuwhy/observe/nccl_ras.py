"""NCCL RAS: which rank of a distributed job is behind, and which does not answer.

Slow by design: an answer is gathered from every process of the job, so the pause grows with the
job's hosts and with the time that an answer takes. A host without a NCCL job is no fault.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

from gpuwhy.observe import procfs
from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nccl_ras_answer import communicators, parse
from gpuwhy.observe.nccl_ras_client import Address, RasError, query
from gpuwhy.observe.nccl_ras_pids import RankHere, place
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.source_state import SourceState

DEFAULT_ADDRESSES: tuple[Address, ...] = (("127.0.0.1", 28028), ("::1", 28028))
"""NCCL binds the first address of "localhost", which may be either."""

QUERY_S = 2.0
BUSY_S = 2.0
QUIET_S = 10.0
SLOWEST_S = 60.0
PER_HOST_S = 0.5
"""Every host of the job may run an observer: together they ask at most twice a second."""
COST_SHARE = 0.02
"""At most this share of the time is spent waiting for answers."""

MOST_ADDRESSES = 8
ROUND_S = 8.0
"""No new question is asked in a round that has taken this long."""
MOST_ASKED = 3
"""Jobs in one network namespace share the port and answer in turn: ask again this often for one
that has not answered."""
REMEMBER_S = 30.0


class RasSource:
    """Source of ``nccl`` observations, one for each job that answers."""

    name = "nccl_ras"
    period_s = BUSY_S
    deadline_s = ROUND_S + 2.0 * QUERY_S

    def __init__(
        self,
        addresses: Callable[[], Iterable[Address]] = lambda: DEFAULT_ADDRESSES,
        ranks: Callable[[], Iterable[RankHere]] = tuple,
        proc: str | None = None,
    ) -> None:
        """``addresses`` gives the ports to try, as ``NCCL_RAS_ADDR`` of the jobs has them.
        ``ranks``: those on this host. ``proc`` tells the host's addresses; None: not known."""
        self._addresses = addresses
        self._ranks = ranks
        self._proc = proc
        self._state = SourceState(self.name)
        self._pace = Every(QUIET_S)
        self._known: dict[Address, dict[str, float]] = {}  # communicator hash -> last seen
        self._reads = self._failures = 0
        self._cpu_s = 0.0
        self._said: tuple[bool, str, str] = (False, "", "")

    def poll(self, now: float) -> list[Observation]:
        """Ask every port, if it is time to."""
        started = time.thread_time()
        out: list[Observation] = []
        if self._pace.due(now):
            out = self._ask_all(now)
        self._cpu_s += time.thread_time() - started
        return out + self._state.report(
            now,
            *self._said,
            period_s=self._pace.period_s,
            cpu_s=round(self._cpu_s, 3),
            reads=self._reads,
            failures=self._failures,
        )

    def close(self) -> None:
        """Nothing is held between polls."""

    def _ask_all(self, now: float) -> list[Observation]:
        start = time.monotonic()
        out: list[Observation] = []
        errors: list[tuple[Address, RasError]] = []
        for address in list(dict.fromkeys(self._addresses()))[:MOST_ADDRESSES]:
            if time.monotonic() - start > ROUND_S:
                break
            try:
                out += self._ask(address, now)
            except RasError as error:
                errors.append((address, error))
                self._failures += error.kind != "silent"
        self._said = (True, "", "") if out else explain(errors)
        self._pace.period_s = pause(out, time.monotonic() - start) if out else QUIET_S
        return out

    def _ask(self, address: Address, now: float) -> list[Observation]:
        """The answers of one port: again while a job that was there has not answered."""
        known = self._known.setdefault(address, {})
        for gone in [h for h, seen in known.items() if not seen <= now <= seen + REMEMBER_S]:
            del known[gone]
        answers = [self._answer(address)]
        seen = hashes(answers[0])
        for _ in range(MOST_ASKED - 1):
            if seen >= known.keys():
                break
            with contextlib.suppress(RasError):  # one answer is in hand
                answer = self._answer(address)
                answers += [answer] if not hashes(answer) <= seen else []
                seen |= hashes(answer)
        known.update(dict.fromkeys(seen, now))
        return answers

    def _answer(self, address: Address) -> Observation:
        text = query(address, QUERY_S)
        try:
            answer = parse(text)
        except ValueError:
            raise RasError("broken", "the answer is cut off or is no JSON") from None
        self._reads += 1
        host, port = address
        ours = frozenset[str]() if self._proc is None else procfs.local_addresses(self._proc)
        out: Observation = {
            "t": time.time(),
            "kind": "nccl",
            "port": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            "communicators": place(communicators(answer), self._ranks(), ours),
        }
        if isinstance(answer.get("nccl_version"), str):
            out["version"] = answer["nccl_version"]
        return out


def hashes(answer: Observation) -> set[str]:
    """Of the communicators in an answer: what jobs that share a port are known by."""
    return {communicator["hash"] for communicator in answer["communicators"]}


def pause(answers: list[Observation], took_s: float) -> float:
    """Seconds between rounds: longer for jobs over many hosts and for slow answers."""
    hosts: set[Any] = {
        rank.get("host")
        for answer in answers
        for communicator in answer["communicators"]
        for rank in communicator["ranks"]
    }
    return min(SLOWEST_S, max(BUSY_S, PER_HOST_S * len(hosts), took_s / COST_SHARE))


def explain(errors: list[tuple[Address, RasError]]) -> tuple[bool, str, str]:
    """State of the source where no job answered: neutral where none listens."""
    for (host, port), error in errors:
        if error.kind == "old":
            return False, str(error), "use NCCL 2.28 or newer (PyTorch 2.11 brings it)"
        if error.kind != "silent":
            return False, f"NCCL RAS at {host}:{port}: {error}", ""
    return False, "no NCCL job answers on this host", ""
