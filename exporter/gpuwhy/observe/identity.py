"""Which run a process belongs to, and which rank of it it is.

Pure functions over a few variables of the process's environment and its control group. The
environment is the one that the process was started with: what a program sets later is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import PurePosixPath

RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
        "MV2_COMM_WORLD_RANK", "JAX_PROCESS_ID", "JAX_PROCESS_INDEX")  # fmt: skip
LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
              "MV2_COMM_WORLD_LOCAL_RANK")  # fmt: skip
WORLD_SIZE = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
              "MV2_COMM_WORLD_SIZE", "JAX_NUM_PROCESSES")  # fmt: skip
OTHERS = ("GPUWHY_RUN", "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
          "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "GROUP_RANK",
          "JAX_COORDINATOR_ADDRESS", "KUBERNETES_SERVICE_HOST", "POD_NAME", "POD_NAMESPACE",
          "HOSTNAME", "JOB_COMPLETION_INDEX", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE")  # fmt: skip
VARIABLES = frozenset((*RANK, *LOCAL_RANK, *WORLD_SIZE, *OTHERS))
"""All that is ever kept of an environment."""

LONGEST = 120
"""Characters kept of a run's name: it becomes a label."""

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))  # noqa: S104 - compared only
_CONTAINER = re.compile(r"(?:^|[/\-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
_POD_UID = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f_\-]{27})")
_OPERATOR_POD = re.compile(r"^(.+)-(?:master|worker|launcher|chief|ps|evaluator)-\d+$")
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"  # the letters that Kubernetes makes names of
_JOB_POD = re.compile(rf"^(.+)-{_SUFFIX}$")
_INDEXED_POD = re.compile(rf"^(.+)-\d+-{_SUFFIX}$")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs, as far as its control group and environment tell."""

    container: str | None = None  # the first 12 digits of its id, as engines show it
    pod: str | None = None  # name of the Kubernetes pod
    namespace: str | None = None


def place_of(cgroup: str | None, env: Mapping[str, str]) -> Place:
    """Container and pod of a process; ``cgroup`` is the path in ``/proc/PID/cgroup``."""
    ids = _CONTAINER.findall(cgroup or "")
    container = ids[-1][:12] if ids else None
    in_pod = "KUBERNETES_SERVICE_HOST" in env or _POD_UID.search(cgroup or "") is not None
    if not in_pod:
        return Place(container)
    return Place(container, env.get("POD_NAME") or env.get("HOSTNAME"), env.get("POD_NAMESPACE"))


def pod_owner(pod: str, env: Mapping[str, str]) -> str:
    """The Job or PyTorchJob that a pod's name tells, else the pod itself.

    Job pods are ``JOB-xxxxx`` (``JOB-INDEX-xxxxx`` when indexed), those of the training operators
    ``JOB-worker-0``.
    """
    patterns = [_OPERATOR_POD, _JOB_POD]
    if "JOB_COMPLETION_INDEX" in env:
        patterns.insert(0, _INDEXED_POD)
    return next((found[1] for p in patterns if (found := p.match(pod))), pod)


def run_of(env: Mapping[str, str], place: Place, host: str) -> tuple[int, str] | None:
    """(precedence, name) of the run by the first sign there is, or None: see ``script_run``.

    A lower precedence is a better sign; the order is the one in which they stand below.
    """
    pod = pod_owner(place.pod, env) if place.pod else None
    names = (
        env.get("GPUWHY_RUN"),
        _slurm_run(env),
        None if env.get("TORCHELASTIC_RUN_ID") == "none" else env.get("TORCHELASTIC_RUN_ID"),
        f"{place.namespace}/{pod}" if pod and place.namespace else pod,
        _master_run(env, host),
        place.container,
    )
    for precedence, name in enumerate(names):
        if name and name.strip():
            return precedence, name.strip()[:LONGEST]
    return None


def script_run(script: str, start: float) -> str:
    """The run's name where nothing else tells: script and start (Unix seconds) in UTC."""
    when = datetime.fromtimestamp(start, timezone.utc)
    name = PurePosixPath(script.removeprefix("-m ")).name
    return f"{name[:80]}-{when:%Y%m%dT%H%M%SZ}"


def rank_of(env: Mapping[str, str]) -> int | None:
    """The global rank that the launcher gave, or None.

    Launchers that give the local rank alone (PyTorch Lightning) give the node's too; on the first
    node they are the same.
    """
    rank = _first_number(env, RANK)
    if rank is None and env.get("NODE_RANK", "0") == "0":
        return _first_number(env, LOCAL_RANK)
    return rank


def local_rank_of(env: Mapping[str, str]) -> int | None:
    """The rank within the host, or None."""
    return _first_number(env, LOCAL_RANK)


def world_size_of(env: Mapping[str, str]) -> int | None:
    """How many ranks the run has, or None."""
    return _first_number(env, WORLD_SIZE)


def ras_address_of(env: Mapping[str, str]) -> tuple[str, int] | None:
    """Where NCCL's RAS listens, if ``NCCL_RAS_ADDR`` (``HOST:PORT``) says so."""
    host, _, port = env.get("NCCL_RAS_ADDR", "").rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        return None
    return host.strip("[]"), int(port)


def script_of(argv: Sequence[str]) -> str | None:
    """What a Python command line runs: a file, ``-m MODULE`` or ``-c``; None for an interpreter
    without any."""
    arguments = iter(argv[1:])
    for argument in arguments:
        if argument in ("-m", "-c"):
            module = next(arguments, "")
            return "-c" if argument == "-c" else f"-m {module}"
        if argument.startswith("-m") and len(argument) > 2:
            return f"-m {argument[2:]}"
        if argument in ("-X", "-W", "--check-hash-based-pycs"):
            next(arguments, None)
        elif not argument.startswith("-"):
            return argument
    return None


def _slurm_run(env: Mapping[str, str]) -> str | None:
    array, task = env.get("SLURM_ARRAY_JOB_ID"), env.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else env.get("SLURM_JOB_ID")


def _master_run(env: Mapping[str, str], host: str) -> str | None:
    """``MASTER_ADDR:PORT`` of several ranks; a loopback address says nothing outside its host."""
    address, port = env.get("MASTER_ADDR"), env.get("MASTER_PORT")
    if address is None and "JAX_COORDINATOR_ADDRESS" in env:
        address, _, port = env["JAX_COORDINATOR_ADDRESS"].rpartition(":")
    if not address or (world_size_of(env) or 0) < 2:
        return None
    address = host if address in _LOOPBACK else address
    return f"{address}:{port}" if port else address


def _first_number(env: Mapping[str, str], names: Sequence[str]) -> int | None:
    for name in names:
        value = env.get(name, "")
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
    return None
