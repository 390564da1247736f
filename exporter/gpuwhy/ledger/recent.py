"""The last seconds of the book. Those that nobody looks at every second are kept packed.

A second of a GPU takes about 6 kB as objects and 110 bytes packed: quarter of an hour of 64 GPUs is
6 MB instead of 300.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from gpuwhy.ledger.entry import Entry
from gpuwhy.packing import pack, unpack

BLOCK_ROWS = 400
"""Rows (a GPU's second each) packed together: more pack better, but unpacking a block holds up
everybody else for 10 ms already."""


@dataclass(frozen=True, slots=True)
class Block:
    """Entries from second ``first`` to ``last``, packed."""

    first: int
    last: int
    data: bytes

    @classmethod
    def pack(cls, entries: Sequence[Entry]) -> Block:
        """Of one entry or more, in order."""
        return cls(entries[0].second.t, entries[-1].second.t, pack(entries))

    def unpack(self) -> list[Entry]:
        """Equal entries, made anew."""
        return cast(list[Entry], unpack(self.data))


@dataclass(frozen=True, slots=True)
class Stretch:
    """The entries from second ``first`` on, as they were when this was made. It may be read in any
    thread; blocks are unpacked one at a time, as it is read."""

    first: float
    packed: tuple[Block, ...]
    open: tuple[Entry, ...]

    def __iter__(self) -> Iterator[Entry]:
        for block in self.packed:
            for entry in block.unpack() if block.last >= self.first else ():
                if entry.second.t >= self.first:
                    yield entry
        yield from (entry for entry in self.open if entry.second.t >= self.first)


class Recent:
    """Entries of the last ``keep_s`` seconds in order; those older than ``open_s`` packed (none
    without it)."""

    def __init__(self, keep_s: float, open_s: float | None = None) -> None:
        self._keep_s, self._open_s = keep_s, open_s
        self._packed: deque[Block] = deque()
        self._open: deque[Entry] = deque()
        self._rows = 0  # of the open entries that are old enough to be packed
        self._old = 0  # and how many entries these are

    def append(self, entry: Entry) -> None:
        """Add the newest, forget what is older than is kept."""
        self._open.append(entry)
        now = entry.second.t
        while self._packed and now - self._packed[0].last >= self._keep_s:
            self._packed.popleft()
        while now - self._open[0].second.t >= self._keep_s:
            self._forget(self._open.popleft())
        if self._open_s is not None:
            self._pack(now - self._open_s)

    def since(self, first: float) -> Stretch:
        """From this second on."""
        kept = self._open[-1].second.t - self._keep_s + 1 if self._open else first
        return Stretch(max(first, kept), tuple(self._packed), tuple(self._open))

    @property
    def newest(self) -> int | None:
        """The last second entered."""
        return self._open[-1].second.t if self._open else None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.since(float("-inf")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self._open)

    def _forget(self, entry: Entry) -> None:
        if self._old:
            self._old -= 1
            self._rows -= _rows(entry)

    def _pack(self, before: float) -> None:
        """Pack the entries before this second, once there are enough of them."""
        while self._old + 1 < len(self._open) and self._open[self._old].second.t < before:
            self._rows += _rows(self._open[self._old])
            self._old += 1
        if self._rows >= BLOCK_ROWS:
            self._packed.append(Block.pack([self._open.popleft() for _ in range(self._old)]))
            self._rows = self._old = 0


def _rows(entry: Entry) -> int:
    """What an entry counts for: a second in which nothing was seen takes room too."""
    return 1 + len(entry.second.rows)
