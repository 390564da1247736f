"""The last seconds of the book: packed or not, the same entries."""

from __future__ import annotations

from functools import cache

import pytest
from tests.expose.hosts import MIX
from tests.expose.samples import RECORDINGS

from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.recent import Block, Recent
from gpuwhy.ledger.verdict import verdict
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.row import Second


@cache
def entries_of(name: str) -> tuple[Entry, ...]:
    pipeline = Pipeline()
    pipeline.feed(read(RECORDINGS / f"{name}.gpuwhy.gz")[1])
    pipeline.finish()
    return tuple(pipeline.book.recent)


def empty(t: int) -> Entry:
    return Entry(Second(t, (), {}), {})


def fill(recent: Recent, seconds: range) -> Recent:
    for t in seconds:
        recent.append(empty(t))
    return recent


@pytest.mark.parametrize(
    "name", sorted(path.name.split(".")[0] for path in RECORDINGS.glob("*.gz"))
)
def test_a_recording_unpacks_as_it_was_packed(name):
    entries = list(entries_of(name))
    block = Block.pack(entries)
    assert block.unpack() == entries
    assert (block.first, block.last) == (entries[0].second.t, entries[-1].second.t)
    assert verdict(block.unpack()) == verdict(entries)


def test_packed_or_not_the_same_seconds_are_kept():
    plain, packing = Recent(900), Recent(900, open_s=60)
    for recent in (plain, packing):
        fill(recent, range(5000))
    assert [e.second.t for e in packing] == [e.second.t for e in plain] == list(range(4100, 5000))
    assert len(packing) == 900
    for first in (0, 4100, 4101, 4399.5, 4939, 4999, 6000):
        assert [e.second.t for e in packing.since(first)] == [
            e.second.t for e in plain.since(first)
        ]


def test_what_is_looked_at_every_second_is_never_packed():
    recent = fill(Recent(900, open_s=60), range(5000))
    (*_, block) = recent.since(0).packed
    assert block.last < 5000 - 60
    assert len(recent.since(0).open) < 60 + 400, "and old ones do not pile up unpacked"


def test_a_gap_and_a_long_silence():
    recent = fill(Recent(900, open_s=60), range(1000))
    recent.append(empty(1850))
    assert [e.second.t for e in recent] == [*range(951, 1000), 1850]
    recent.append(empty(90_000))
    assert [e.second.t for e in recent] == [90_000]
    fill(recent, range(90_001, 92_000))
    assert [e.second.t for e in recent] == list(range(91_100, 92_000))


def test_what_was_asked_for_stays_while_seconds_go_on():
    recent = fill(Recent(100, open_s=10), range(1000))
    stretch = recent.since(950)
    fill(recent, range(1000, 3000))
    assert [e.second.t for e in stretch] == list(range(950, 1000))


def test_packed_seconds_take_a_fraction_of_the_memory():
    entries = [entry for name in MIX for entry in entries_of(name)]
    rows = sum(len(entry.second.rows) for entry in entries)
    assert len(Block.pack(entries).data) < 600 * rows
