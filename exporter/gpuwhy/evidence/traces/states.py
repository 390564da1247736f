"""What a host thread's span or call means: the states in which it keeps the GPU waiting.

A name decides: of an annotation (record_function, NVTX), a Python function, a CUDA call. Python
functions go through the same table as stacks that were sampled (``signals/phase_rules.py``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache

from gpuwhy.evidence.traces.trace import ANNOTATION, OPERATOR, PYTHON, SYSTEM
from gpuwhy.signals.phase_rules import CONTEXTS, NEUTRAL, PRIORITY, matches
from gpuwhy.signals.row import Function

STATES = (
    "startup",
    "checkpoint",
    "evaluation",
    "copy",
    "data",
    "comm",
    "logging",
    "garbage-collection",
    "synchronize",
    "profiler",
)
"""In the order in which they decide, which is that of the ledger's accounts."""

_ANNOTATIONS = (
    ("startup", r"dynamo_timed|\bcompile_(?:inner|fx)|torch_compile|\bwarm[ _-]?up\b"),
    ("checkpoint", r"(?:save|write|dump)[ _.-]?(?:checkpoint|model|state)|^checkpoint(?:ing)?$"),
    ("evaluation", r"(?<![a-z])(?:eval(?:uat(?:e|ion))?|valid(?:at(?:e|ion))?)(?![a-z])"),
    (
        "data",
        r"enumerate\(DataLoader\)|data[ _.-]?(?:load|wait|fetch|time|iter|next)|^data$"
        r"|(?:next|get|load|fetch|wait)[ _.-]?(?:for[ _.-]?)?(?:batch|data|input)"
        r"|input[ _]?pipeline",
    ),
    ("comm", r"^(?:gloo|mpi|ucc):|\bbarrier\b|all_?reduce_?wait|comm[ _.-]?wait"),
    ("logging", r"(?<![a-z])(?:log|logging|log_metrics|tensorboard|wandb)(?![a-z])"),
    ("garbage-collection", r"^gc(?:[ _.:-]|$)|garbage[ _-]?collect"),
)
_OPERATORS = (
    ("startup", r"dynamo_timed"),
    ("comm", r"^(?:gloo|mpi|ucc):|^c10d::(?:monitored_)?barrier"),
)
_OVERHEADS = (
    ("startup", r"(?:module|function) loading"),
    ("profiler", r"activity buffer|buffer flush|instrumentation|overhead|resource"),
)
"""What CUPTI tells of itself (category ``overhead``)."""

BLOCKED = re.compile(
    r"^(?:p?poll|p?select|epoll_p?wait|futex|sem_\w*wait|pthread_(?:cond|mutex|rwlock|join)\w*"
    r"|sigtimedwait|wait(?:pid|id|3|4)?|accept4?|recv\w*|msgrcv|flock)$"
)
"""Calls into the C library in which a thread waits for another, or for another process."""

_CALLS = (
    (
        "startup",
        r"^cu(?:da)?(?:Module|Library)(?:Load|Get)|CtxCreate|GraphInstantiate|^cu(?:da)?Init",
    ),
    ("copy", r"^cu(?:da)?Memcpy"),
    (
        "synchronize",
        r"^cu(?:da)?(?:Stream|Device|Event|Ctx|Thread)Synchronize"
        r"|^cu(?:da)?(?:Malloc|Free|HostAlloc|HostRegister|HostUnregister|Mem(?:Alloc|Free|Create"
        r"|Map|Unmap|Release|SetAccess|HostAlloc))",
    ),
)
"""Calls in which the host waits: allocating and freeing memory synchronises too. Launches and the
rest are dispatching."""

_PHASES = {
    "compile": "startup",
    "import": "startup",
    "checkpoint": "checkpoint",
    "logging": "logging",
    "data_worker_start": "data",
    "data_inline": "data",
    "data_sampler": "data",
    "data_wait": "data",
    "gc": "garbage-collection",
}
"""Host phases of Python functions that mean a state, whatever CUDA says of them."""

_PYTHON = re.compile(r"^(?P<file>[^()]+)\((?P<line>\d+)\): (?P<name>.+)$")
_COLLECTIVE = re.compile(r"torch/distributed/distributed_c10d\.py$")
_BLOCKING = frozenset({"barrier", "monitored_barrier", "recv", "wait", "broadcast_object_list"})
_FRAMEWORKS = re.compile(
    r"(?:torch(?:vision|audio|text)?|numpy|pandas|scipy|PIL|cv2|transformers|accelerate|datasets"
    r"|(?:pytorch_)?lightning|deepspeed|megatron|apex|tokenizers|timm|peft|trl|albumentations"
    r"|tqdm|wandb|tensorboard|sklearn|triton|jax(?:lib)?|flax|optax|keras|tensorflow|nvidia"
    r"|einops|xformers|flash_attn|diffusers|safetensors|huggingface_hub)(?:/|$)"
)
"""Packages whose paths the PyTorch profiler shortens to their names."""


def state_of(name: str, kind: int) -> str | None:
    """The state that a span means; None where it is the job's plain work."""
    if kind == PYTHON:
        return _python_state(name)
    if kind == SYSTEM:
        return _first(name.lower(), _OVERHEADS)
    if kind == OPERATOR:
        return _first(name, _OPERATORS)
    return _first(name, _ANNOTATIONS) if kind == ANNOTATION else None


def call_state(name: str) -> str | None:
    """The state that a CUDA API call means; None where it dispatches."""
    return _first(name, _CALLS)


def _first(name: str, rules: Iterable[tuple[str, str]]) -> str | None:
    return next((state for state, rule in rules if _search(rule, name)), None)


@lru_cache(maxsize=1000)
def _compiled(rule: str) -> re.Pattern[str]:
    return re.compile(rule, re.IGNORECASE)


def _search(rule: str, name: str) -> bool:
    return _compiled(rule).search(name) is not None


def python_function(name: str) -> Function | None:
    """``train.py(20): step`` -> ("step", "train.py", 20); None for built-ins and modules."""
    found = _PYTHON.match(name)
    return (found["name"], found["file"], int(found["line"])) if found else None


def is_user(function: Function) -> bool:
    """Is it the job's own code? The profiler shortens installed paths to ``torch/...`` and those
    of the standard library to ``threading.py``."""
    file = function[1]
    if "-packages/" in file or "/lib/python" in file or file.startswith("<"):
        return False
    module = file.partition("/")[0].removesuffix(".py")
    return _FRAMEWORKS.match(file) is None and module not in sys.stdlib_module_names


def frames_of(stack: str) -> list[Function]:
    """The frames of a ``Call stack`` of old versions, leaf first."""
    found = (python_function(part.strip()) for part in stack.split(";"))
    return [frame for frame in found if frame is not None]


def user_frame(frames: Sequence[Function]) -> Function | None:
    """The deepest frame of the job's own."""
    return next((frame for frame in frames if is_user(frame)), None)


def _python_state(name: str) -> str | None:
    function = python_function(name)
    if function is None:
        return "garbage-collection" if "gc.collect" in name else None
    short, file = function[0].rsplit(".", 1)[-1], "/" + function[1].lstrip("/")
    if NEUTRAL.search(file):
        return None
    if matches(short, file, CONTEXTS):
        return "evaluation"
    if _COLLECTIVE.search(file):
        return "comm" if short in _BLOCKING else None
    phases = [phase for phase in matches(short, file) if phase in _PHASES]
    return _PHASES[min(phases, key=PRIORITY.index)] if phases else None
