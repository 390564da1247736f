"""Our own objects in little memory: packed and unpacked within this process, never sent, never
stored, so that nothing foreign is ever unpacked."""

from __future__ import annotations

import pickle
import zlib


def pack(content: object) -> bytes:
    """Any object of ours that is plain data."""
    return zlib.compress(pickle.dumps(content, pickle.HIGHEST_PROTOCOL), 1)


def unpack(packed: bytes) -> object:
    """An equal object, made anew from what ``pack`` gave."""
    return pickle.loads(zlib.decompress(packed))  # noqa: S301 - ours alone
