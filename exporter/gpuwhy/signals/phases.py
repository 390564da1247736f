"""One Python stack -> the phase of the host, its context, and the function to name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpuwhy.signals.phase_rules import CALL_PHASES, CONTEXTS, NEUTRAL, PRIORITY, matches
from gpuwhy.signals.row import Function

_RANK = {phase: i for i, phase in enumerate(PRIORITY)}
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/|/lib(?:64)?/python\d|/python\d+\.\d+/|^<(?!stdin|string)"
    r"|\.pyenv/versions/|/torchinductor_"
)
_TORCH_LOADER = re.compile(r"torch/utils/data/")
_ML_FRAMEWORK = re.compile(
    r"/(?:torch|transformers|accelerate|lightning|pytorch_lightning|deepspeed|megatron|jax|jaxlib"
    r"|flax|optax|keras|tensorflow|mmengine|composer|streaming|torchtitan|numpy|scipy)/"
)
_LOADING = re.compile(
    r"^__getitem__$|^__getitems__$|^_?(?:tokeni[sz]e|preprocess|augment|collate)|_(?:tokeni[sz]e|augment)$"
    r"|^_?(?:load|read|fetch|get|next|prepare|iter)_.*"
    r"(?:batch|sample|example|image|record|shard|data)"
    r"|^_?(?:decode|augment|transform|load|read|parse)_?(?:jpe?g|image|png|audio|video|text|record"
    r"|sample|example|batch)|^(?:data|batch)_?(?:loader|generator|iterator|iter)"
    # by themselves these are what a model does too: sample_images, generate_samples
    r"|^_?(?:sample|generate|make)_(?:\w+_)?(?:mini_?)?(?:batch|batches|data|examples?|records?)$"
    r"|^_?(?:iter(?:ate)?_)?(?:mini_?)?batches$"
)
_WAIT = re.compile(
    r"/(?:threading|queue|selectors|subprocess|asyncio/\w+|concurrent/futures/_base"
    r"|multiprocessing/(?:connection|pool|queues|synchronize|popen_\w+))\.py$"
)
"""Where the standard library blocks until another thread or process has done something."""
WAIT = "wait"
"""The call of a stack that ends there. What is waited for, the stack does not say."""
_TRAINS = re.compile(r"train|fit|model|loss|grad|eval", re.IGNORECASE)
"""A function that says so does more than loading: ``load_data_and_train``."""
_ENTRIES = ("__getitem__", "__getitems__", "__next__", "__iter__", "__call__")
"""How a worker enters the user's dataset."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stack is: phase, context ("evaluation" or None), the function to name for it, and
    whether its leaf is the user's own line (then a C call may hide below it), and what is called:
    one of CALLS, or WAIT."""

    phase: str
    context: str | None
    function: Function | None
    user_leaf: bool
    call: str | None


def last_part(name: str) -> str:
    """``_MultiProcessingDataLoaderIter._try_get_data`` -> ``_try_get_data``."""
    return name.rsplit(".", 1)[-1]


def is_library(file: str) -> bool:
    """Standard library, installed packages, and code made at run time."""
    return _LIBRARY.search(file) is not None


def classify(frames: Sequence[Sequence[Any]]) -> Place:
    """Classify a rank's stack, leaf first. An empty stack has phase ``user`` and no function."""
    return _classify(tuple((f[0], f[1], f[2], f[3] if len(f) > 3 else None) for f in frames))


@lru_cache(maxsize=20_000)
def _classify(frames: tuple[tuple[str, str, int, str | None], ...]) -> Place:
    if not frames:
        return Place("user", None, None, False, None)
    leaf = frames[0]
    user_leaf = not is_library(leaf[1])
    phase = _phase(frames, user_leaf)
    context = "evaluation" if any(_context(name, file) for name, file, _, _ in frames) else None
    return Place(phase, context, user_function(frames), user_leaf, _call(leaf, phase, user_leaf))


def _call(leaf: tuple[str, str, int, str | None], phase: str, user_leaf: bool) -> str | None:
    if user_leaf:
        return leaf[3]
    return WAIT if phase == "user" and is_library(leaf[1]) and _WAIT.search(leaf[1]) else None


def _phase(frames: tuple[tuple[str, str, int, str | None], ...], user_leaf: bool) -> str:
    best: str | None = None
    closure_seen = False
    for i, (name, file, _, _) in enumerate(frames):
        if _imported(frames, i):
            best = "import"  # whatever a library does while it is being imported
            continue
        short = last_part(name)
        for phase in _frame_phases(short, file):
            if phase == "optimizer" and closure_seen:
                continue  # Lightning runs forward and backward inside the optimizer's closure
            if best is None or _RANK[phase] < _RANK[best]:
                best = phase
        closure_seen = closure_seen or short == "closure"
    call = CALL_PHASES.get(frames[0][3] or "") if user_leaf else None
    if call is not None and call in _RANK and (best is None or _RANK[call] < _RANK[best]):
        return call
    if best is not None:
        return best
    if any(_loads(name, file) for name, file, _, _ in frames):
        return "data_inline"
    return "user" if user_leaf or not _ML_FRAMEWORK.search(frames[0][1]) else "framework"


def _imported(frames: tuple[tuple[str, str, int, str | None], ...], i: int) -> bool:
    """Is frame ``i`` a library's module that is being imported? (``import datasets`` loads no
    batch; and a training loop may run while the user's own module is imported.)"""
    name, file = frames[i][:2]
    called_by = frames[i + 1][1] if i + 1 < len(frames) else ""
    return name == "<module>" and is_library(file) and called_by.startswith("<frozen importlib")


@lru_cache(maxsize=50_000)
def _frame_phases(name: str, file: str) -> tuple[str, ...]:
    return () if NEUTRAL.search(file) else tuple(dict.fromkeys(matches(name, file)))


@lru_cache(maxsize=50_000)
def _loads(name: str, file: str) -> bool:
    """Is it the user's own loading code, by what people call it? (JAX and hand-written loops have
    no DataLoader to be known by.)"""
    short = last_part(name)
    return not is_library(file) and bool(_LOADING.search(short)) and not _TRAINS.search(short)


@lru_cache(maxsize=50_000)
def _context(name: str, file: str) -> bool:
    return bool(matches(last_part(name), file, CONTEXTS))


def user_function(frames: Sequence[Sequence[Any]]) -> Function | None:
    """The deepest frame outside library code; where there is none, the deepest one outside the
    machine-learning frameworks and the standard library."""
    for name, file, line, *_ in frames:
        if not is_library(file):
            return (name, file, int(line))
    for name, file, line, *_ in frames:
        packaged = "site-packages/" in file or "dist-packages/" in file
        if packaged and not _ML_FRAMEWORK.search(file):
            return (name, file, int(line))
    return None


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Where a DataLoader worker is: at work or waiting for an index, and in which function."""

    busy: bool
    handing_over: bool  # the result is being sent to the rank
    function: Function | None


def classify_worker(frames: Sequence[Sequence[Any]]) -> WorkerPlace | None:
    """Classify a worker's main-thread stack; None where it is no DataLoader worker's.

    Frames from ``_worker_loop`` towards the root belong to the parent at the time of the fork.
    """
    return _classify_worker(tuple((f[0], f[1], f[2]) for f in frames))


@lru_cache(maxsize=20_000)
def _classify_worker(frames: tuple[tuple[str, str, int], ...]) -> WorkerPlace | None:
    for i, (name, _, _) in enumerate(frames):
        if last_part(name) in ("_worker_loop", "producer", "worker_loop"):
            below = frames[:i]
            break
    else:
        return None
    names = {(last_part(name), file.rsplit("/", 1)[-1]) for name, file, _ in below}
    waits = ("get", "queues.py") in names or not below
    fetching = any("_utils/fetch.py" in file or "_utils/collate" in file for _, file, _ in below)
    if waits and not fetching:
        return WorkerPlace(False, False, None)
    return WorkerPlace(True, ("put", "queues.py") in names, _dataset_function(below))


def _dataset_function(below: Sequence[tuple[str, str, int]]) -> Function | None:
    """The deepest user frame; where that is a plain helper below a named method of the dataset
    itself, the method, which is what people look for (names are qualified from Python 3.11)."""
    owner = next(
        (f[0].rpartition(".")[0] for f in reversed(below) if last_part(f[0]) in _ENTRIES), ""
    )
    for frame in below:
        if is_library(frame[1]) or not owner:
            continue
        holder, _, method = frame[0].rpartition(".")
        if holder == owner and not method.startswith("__"):
            return frame
    return user_function(below)
