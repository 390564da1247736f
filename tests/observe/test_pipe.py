"""The observer's pipe: what goes in comes out, frames are written and kept once."""

from __future__ import annotations

import pytest

from gpuwhy.observe.pipe import PipeReader, PipeWriter
from gpuwhy.observe.wire import WireError

FRAMES = [["get", "/lib/queue.py", 171], ["train", "/job/train.py", 12]]


def stack(*frames: list[object]) -> dict[str, object]:
    return {"t": 1.0, "kind": "stack", "pid": 7, "dt": 0.1, "frames": [list(f) for f in frames]}


def through(*observations: dict[str, object]) -> list[dict[str, object]]:
    writer, reader = PipeWriter(), PipeReader()
    lines = b"".join(map(writer.encode, observations)).splitlines(keepends=True)
    return [found for line in lines if (found := reader.decode(line)) is not None]


def test_what_goes_in_comes_out():
    sent = [
        {"t": 1.0, "kind": "host", "cpus": 4},
        stack(*FRAMES),
        stack([*FRAMES[0], "sleep"], FRAMES[1]),
        stack(),
        stack(*FRAMES),
    ]
    assert through(*sent) == sent


def test_equal_stacks_are_one_object():
    first, other, again = through(stack(*FRAMES), stack(FRAMES[1]), stack(*FRAMES))
    assert first["frames"] is again["frames"]
    assert other["frames"] != first["frames"]


def test_frames_are_written_once():
    writer = PipeWriter()
    first, again = writer.encode(stack(*FRAMES)), writer.encode(stack(*FRAMES))
    assert (first.count(b"\n"), again.count(b"\n")) == (3, 1)
    assert b"train.py" not in again


@pytest.mark.parametrize("line", [b"", b"[]", b'{"t": 1, "kind": "stack", "frames": 3}'])
def test_a_line_that_is_no_observation(line):
    with pytest.raises(WireError):
        PipeReader().decode(line)
