"""Stacks, written once: the frames of a recording, or of the observer's pipe, as a tree that grows
from the root.

Stacks repeat, and most differ in their leaf alone. So a frame is written once for each caller it
was met under: ``{"kind": "frame", "id": n, "frame": [name, file, line], "caller": m}`` (no
``caller``: it is the root), and a stack is the id of its leaf. Ids count from 0; an id of 0 starts
the numbering anew. A minute of two DDP ranks with eight workers at 10 Hz takes 92 kB so, after
gzip, and 175 kB with whole stacks. Who reads gets equal stacks as one object, which takes a
fraction of the memory: they are not to be changed.
"""

from __future__ import annotations

from typing import Any

from gpuwhy.observe import form
from gpuwhy.observe.observation import Frame, Observation
from gpuwhy.observe.wire import WireError

MAX_FRAMES = 200_000
"""Kept at a time: bounds the memory of writer and reader."""

MAX_STACKS = 4_096
"""Whole stacks kept to be given again."""

MAX_DEPTH = 2_000
"""Frames of a stack; deeper ones lose their root. Python stops at 1,000 unless told otherwise."""


class FrameWriter:
    """Gives stacks their ids."""

    def __init__(self) -> None:
        self._ids: dict[tuple[Any, ...], int] = {}

    def lines(self, observation: Observation) -> list[dict[str, Any]]:
        """What to write for an observation: itself, or its new frames and it with an id."""
        if observation.get("kind") != "stack" or not observation.get("frames"):
            return [observation]
        leaf, lines = self.intern(observation["frames"])
        return [*lines, {**observation, "frames": leaf}]

    def intern(self, frames: list[Frame]) -> tuple[int, list[dict[str, Any]]]:
        """The id of a stack (not empty, leaf first) and the lines to write before it."""
        if len(self._ids) > MAX_FRAMES - MAX_DEPTH:
            self._ids.clear()
        lines: list[dict[str, Any]] = []
        caller = -1
        for frame in reversed(frames[:MAX_DEPTH]):
            key = (caller, *frame)
            known = self._ids.get(key)
            if known is None:
                known = self._ids[key] = len(self._ids)
                line = {"kind": "frame", "id": known, "frame": frame}
                lines.append(line if caller < 0 else {**line, "caller": caller})
            caller = known
        return caller, lines


class FrameReader:
    """Gives ids their stacks; every mistake in the lines is a WireError."""

    def __init__(self) -> None:
        self._nodes: list[tuple[Frame, int | None]] = []
        self._stacks: dict[int, list[Frame]] = {}

    def add(self, line: dict[str, Any]) -> None:
        """Take one ``frame`` line."""
        number, frame, caller = line.get("id"), line.get("frame"), line.get("caller")
        if number == 0:
            self._nodes.clear()
            self._stacks.clear()
        if number != len(self._nodes) or number >= MAX_FRAMES:
            raise WireError(f"frame {number} is out of order")
        if not isinstance(frame, list) or len(frame) > 4 or form.FRAME(frame):
            raise WireError(f"frame {number} is not [name, file, line]")
        if caller is not None and not self._is_known(caller):
            raise WireError(f"frame {number} has an unknown caller")
        self._nodes.append((frame, caller))

    def frames(self, leaf: Any) -> list[Frame]:
        """The frames of a stack, leaf first; the same object for the same stack."""
        known = self._stacks.get(leaf) if isinstance(leaf, int) else None
        return self._walk(leaf) if known is None else known

    def _walk(self, leaf: Any) -> list[Frame]:
        frames: list[Frame] = []
        at = leaf
        while at is not None:
            if not self._is_known(at) or len(frames) >= MAX_DEPTH:
                raise WireError("its stack has an unknown frame")
            frame, at = self._nodes[at]
            frames.append(frame)
        if len(self._stacks) >= MAX_STACKS:
            self._stacks.clear()
        self._stacks[leaf] = frames
        return frames

    def _is_known(self, number: Any) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._nodes)
