"""How a job was started, fit to be printed: secrets and environment as ``$NAME``, no values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwhy.observe.procfs import number, read_bytes
from gpuwhy.observe.secrets import MASK, mask

LONGEST = 1 << 20
PARENTS = 6
"""How far up a launcher is looked for."""

_LAUNCHERS = re.compile(
    r"(?:^|/)(?:torchrun|accelerate|deepspeed|colossalai|horovodrun|composer)$"
    r"|^torch\.distributed\.(?:run|launch)$|^accelerate\.commands\.launch$"
)
_MATTERS = re.compile(
    r"^(?:CUDA_|CUDNN_|NCCL_|TORCH|PYTORCH_|OMP_|MKL_|KMP_|HF_|TRANSFORMERS_|TOKENIZERS_|XLA_|JAX_"
    r"|WANDB_|MLFLOW_|DS_|MEGATRON_|PYTHONPATH$|LD_LIBRARY_PATH$|LD_PRELOAD$)"
)
_OF_A_RANK = re.compile(
    r"^(?:RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|NODE_RANK|MASTER_ADDR|MASTER_PORT)$"
)
_SET_BY_LAUNCHERS = re.compile(
    r"^(?:TORCHELASTIC_|TORCH_NCCL_ASYNC|OMP_NUM_THREADS$|TORCHINDUCTOR_)"
)


class JobCommandError(Exception):
    """A job's command line cannot be read; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Job:
    """``words`` are the words of a shell's command line, each quoted; ``variables`` the names of
    the environment that shape the job, to be given as ``NAME="$NAME"``."""

    words: tuple[str, ...]
    variables: tuple[str, ...] = ()
    folder: str | None = None  # where it was started
    launched: bool = False  # the words are those of a launcher that starts the ranks
    name: str = "job"  # fit for a file's name
    hidden: tuple[str, ...] = field(default=())  # names put in place of secrets


def of_command(command: Sequence[str]) -> Job:
    """A job that someone is about to start."""
    words, hidden = _words(command)
    return Job(words, launched=_is_launcher(command), name=_name(command), hidden=hidden)


def of_process(pid: int, proc: Path = Path("/proc")) -> Job:
    """The job that a process belongs to: its launcher's command line where one started it.

    Raises JobCommandError where it is gone, or may not be read.
    """
    argv = _argv(proc / str(pid))
    if not argv:
        raise JobCommandError(
            f"the command line of process {pid} cannot be read: is it still there, and is it "
            "yours? (root sees all). Give the command instead: gpuwhy nsys -- python train.py"
        )
    top = _launcher(pid, proc)
    launched = top is not None
    chosen = top if top is not None else pid
    argv = _argv(proc / str(chosen)) or argv
    words, hidden = _words(argv)
    return Job(
        words,
        _variables(proc / str(chosen), launched),
        _folder(proc / str(chosen)),
        launched,
        _name(argv),
        hidden,
    )


def _launcher(pid: int, proc: Path) -> int | None:
    """The nearest ancestor that is a launcher of ranks."""
    for _ in range(PARENTS):
        stat = read_bytes(proc / str(pid) / "stat") or b""
        parent = number(b"".join(stat.rpartition(b")")[2].split()[1:2]))
        if parent is None or parent <= 1:
            return None
        pid = parent
        if _is_launcher(_argv(proc / str(pid))):
            return pid
    return None


def _is_launcher(argv: Sequence[str]) -> bool:
    return any(_LAUNCHERS.search(word) for word in argv[:4])


def _argv(process: Path) -> list[str]:
    content = read_bytes(process / "cmdline") or b""
    return content[:LONGEST].decode(errors="replace").rstrip("\0").split("\0") if content else []


def _variables(process: Path, launched: bool) -> tuple[str, ...]:
    """Names only: the values stay where they are."""
    content = read_bytes(process / "environ") or b""
    names = {part.partition(b"=")[0].decode(errors="replace") for part in content.split(b"\0")}
    kept = [n for n in names if _MATTERS.match(n) and not _SET_BY_LAUNCHERS.match(n)]
    if not launched:
        kept += [name for name in names if _OF_A_RANK.match(name)]
    return tuple(sorted(name for name in kept if name.isascii() and name.isidentifier()))


def _folder(process: Path) -> str | None:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return None


def _words(argv: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Quoted words, and the variables that stand for what was masked."""
    words: list[str] = []
    hidden: list[str] = []
    before = ""
    for argument in argv:
        shown = _masked(before, argument)
        if MASK in shown:
            name = _variable(before if shown == MASK else shown)
            hidden.append(name)
            head, _, tail = shown.partition(MASK)
            words.append("".join(filter(None, (_quoted(head), f'"${name}"', _quoted(tail)))))
        else:
            words.append(_quoted(shown) or "''")
        before = argument
    return tuple(words), tuple(hidden)


def _masked(before: str, argument: str) -> str:
    """The argument as ``secrets.mask`` would show it after the one before."""
    if before == "-c":
        return argument if len(argument) < 200 else "..."
    alone = mask([before], LONGEST)
    return (
        mask([before, argument], LONGEST)[len(alone) :].lstrip(" ") if before else mask([argument])
    )


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""


def _variable(option: str) -> str:
    """``API_KEY`` of ``--api-key`` or ``--api-key=***``."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", option.partition("=")[0].partition("***")[0]).strip("_")
    return name.upper() or "SECRET"


def _name(argv: Sequence[str]) -> str:
    """The script's name, for the name of the report."""
    script = next((word for word in argv if word.endswith(".py")), argv[0] if argv else "job")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(script).stem).strip("-")[:40] or "job"


def environment(job: Job) -> str:
    """``env NAME="$NAME" ...`` before the command; nothing where no variable matters."""
    return (
        " ".join(["env", *(f'{name}="${name}"' for name in job.variables)]) if job.variables else ""
    )
