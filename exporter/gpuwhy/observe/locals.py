"""The integer locals that may count steps and epochs. No other local leaves the observer.

py-spy prints every local of every frame; text, floats, containers and objects are dropped here,
and so is an integer whose name sounds like a secret. Frames of the standard library and of torch
hold no loop counter of a job. A loop at module level shows nothing: its variables are globals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 64
"""Values kept of one snapshot, from the leaf outwards."""

_INTEGER = re.compile(r"-?\d{1,18}$")  # not "True", "1.5", "+bigint"
_SECRET = re.compile(
    r"passw|passphrase|secret|token|auth|cred|api_?key|(?:^|_)key(?:$|_)|keys?$|(?:^|_)(?:pin|otp|pwd|salt|nonce|seed)(?:$|_)",
    re.IGNORECASE,
)
_LIBRARY = re.compile(r"/lib(?:64)?/python\d[\d.]*t?/(?!site-packages/|dist-packages/)|^<frozen ")
_TORCH = re.compile(r"(?:site|dist)-packages/torch/")

Text = tuple[str, str, str, str]
"""(function, file, name, what py-spy prints for the value)."""


def is_library(file: str) -> bool:
    """Standard library or torch: no code of the job, nor of a training framework."""
    return _LIBRARY.search(file) is not None or _TORCH.search(file) is not None


def counters(texts: Iterable[Text]) -> list[list[str | int]]:
    """``[function, file, name, value]`` of what may count steps, from the leaf outwards."""
    kept = [
        [function, file, name, int(text)]
        for function, file, name, text in texts
        if _INTEGER.match(text) and not _SECRET.search(name) and not is_library(file)
    ]
    return kept[:MOST]  # type: ignore[return-value]


def worker_index(texts: Iterable[Text]) -> list[list[str | int]]:
    """The batch that a DataLoader worker is making; nothing while it waits for an index."""
    return [
        [function, file, name, int(text)]
        for function, file, name, text in texts
        if name == "idx" and function.rsplit(".", 1)[-1] == "_worker_loop" and _INTEGER.match(text)
    ]
