"""Observations as they pass through the observer's pipe: lines of JSON, frames written once."""

from __future__ import annotations

from gpuwhy.observe import wire
from gpuwhy.observe.interning import FrameReader, FrameWriter
from gpuwhy.observe.observation import Observation


class PipeWriter:
    """The observer's end."""

    def __init__(self) -> None:
        self._frames = FrameWriter()

    def encode(self, observation: Observation) -> bytes:
        """Its lines. Raises TypeError or ValueError for what is no JSON."""
        return b"".join(map(wire.encode, self._frames.lines(observation)))


class PipeReader:
    """The other end, for one observer's life."""

    def __init__(self) -> None:
        self._frames = FrameReader()

    def decode(self, line: bytes) -> Observation | None:
        """The observation of a line, if it holds one. Raises WireError."""
        found = wire.decode_object(line)
        if found.get("kind") == "frame":
            self._frames.add(found)
            return None
        observation = wire.checked(found)
        if isinstance(observation.get("frames"), int):
            observation["frames"] = self._frames.frames(observation["frames"])
        return observation
