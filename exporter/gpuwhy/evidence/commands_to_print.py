"""The commands of NVIDIA's profilers for a job, to be printed: gpuwhy starts none of them.

Options as documented at https://docs.nvidia.com/nsight-systems/UserGuide/index.html#cli-profile-command-switches
and https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html#command-line-options
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from gpuwhy.evidence.job_command import Job, environment

DEFAULT_FOR_S = 60.0
DEFAULT_DELAY_S = 30.0
LAUNCHES = 20
UTC_NOW = "$(date -u +%Y%m%dT%H%M%SZ)"
"""Put in by the shell when the command runs, so that the name is that of the recording."""

NVTX_LINE = "import torch; torch.autograd.profiler.emit_nvtx().__enter__()"
SECTIONS = ("SpeedOfLight", "Occupancy", "LaunchStats", "WarpStateStats")

_STEPS = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


def steps(text: str) -> tuple[int, int]:
    """``100-110`` -> (100, 110); ValueError for anything else."""
    found = _STEPS.fullmatch(text.strip())
    if not found or int(found[2]) <= int(found[1]):
        raise ValueError(f"{text!r} are no steps: write FIRST-LAST, such as 100-110")
    return int(found[1]), int(found[2])


def nsys(
    job: Job,
    for_s: float = DEFAULT_FOR_S,
    delay_s: float = DEFAULT_DELAY_S,
    of_steps: tuple[int, int] | None = None,
) -> str:
    """What to paste into a shell to record a timeline, with what it costs as comments."""
    options = ["--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none"]
    if of_steps is None:
        options += [f"--delay={delay_s:.0f}", f"--duration={for_s:.0f}", "--kill none"]
    else:
        options += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop", "--kill none"]
    report = f"{job.name}-%h-{UTC_NOW}"
    command = _shell(job, ["nsys profile", *options, f'--output="{report}"'])
    notes = [*_started_anew(job, "nsys"), *_nsys_cost(for_s, delay_s, of_steps is not None)]
    lines = [*_comments(notes), command, ""]
    if of_steps is not None:
        lines += [*_comments([_STEP_LINES]), *_step_lines(of_steps), ""]
    lines += [*_comments([_NVTX]), f"#   {NVTX_LINE}", ""]
    lines += [*_comments(["Afterwards:"]), f"gpuwhy trace {job.name}-*.nsys-rep"]
    return "\n".join(lines) + "\n"


def ncu(
    job: Job, kernels: Sequence[str] = (), launches: int = LAUNCHES, skip: int | None = None
) -> str:
    """What to paste into a shell to take single kernels apart, with what it costs as comments."""
    report = f"{job.name}-{UTC_NOW}.csv"
    options = [
        "--target-processes all",
        f"--launch-skip {skip if skip is not None else 200}",
        f"--launch-count {launches}",
        *(f"--section {section}" for section in SECTIONS),
        "--clock-control none",
        f'--csv --page raw --log-file "{report}"',
    ]
    if kernels:
        # The pattern is in quotes for the shell: templates and namespaces are left out of names.
        pattern = "|".join(re.escape(kernel) for kernel in kernels)
        options.insert(1, f"--kernel-name 'regex:{pattern}'")
    notes = [*_started_anew(job, "ncu"), *_ncu_cost(launches, bool(kernels))]
    command = _shell(job, ["ncu", *options])
    after = [*_comments(["Afterwards:"]), f"gpuwhy trace {job.name}-*.csv"]
    return "\n".join([*_comments(notes), command, "", *after]) + "\n"


def _shell(job: Job, options: Sequence[str]) -> str:
    """One command over several lines."""
    parts = [part for part in (environment(job), *options) if part]
    return " \\\n  ".join([*parts, " ".join(job.words)])


def _comments(paragraphs: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [f"# {line}" for line in textwrap.wrap(paragraph, 76, break_on_hyphens=False)]
    return lines


def _started_anew(job: Job, tool: str) -> list[str]:
    notes = [
        f"{tool} cannot attach to a job that runs: it has to be started anew under it. gpuwhy "
        "starts and stops nothing."
    ]
    if job.folder:
        notes.append(f"The running job was started in {job.folder}.")
    if job.variables:
        notes.append(
            "The variables below were set for it: set them in this shell first. Their values are "
            "not shown here."
        )
    if job.hidden:
        notes.append(f"Put the secrets of its command line into {', '.join(job.hidden)}.")
    return notes


def _nsys_cost(for_s: float, delay_s: float, by_steps: bool) -> list[str]:
    span = "the steps" if by_steps else f"{for_s:.0f} s from {delay_s:.0f} s after the start on"
    return [
        f"Records {span}, past the warm-up, and lets the job go on (nsys would end it otherwise). "
        "What it costs: every CUDA call takes a little longer while it is recorded, most visibly "
        "where launches are the cause; host memory and the file grow with the number of calls; "
        "writing the report comes on top of it.",
        "NCCL's collectives show by their kernels and NVTX ranges.",
    ]


def _ncu_cost(launches: int, narrowed: bool) -> list[str]:
    few = "of the kernels named" if narrowed else "of any kernel: narrow it with --kernels"
    return [
        f"Takes {launches} launches {few}, past the warm-up. What it costs: each of them runs "
        "several times over with the GPU to itself, so expect minutes where the job takes "
        "seconds; other ranks wait meanwhile and their collectives may time out: profile one "
        "rank alone. --clock-control none leaves the clocks as they are.",
        "It needs access to the GPU's counters: root, or the driver option "
        "NVreg_RestrictProfilingToAdminUsers=0. DCGM and a second profiler must not use them then.",
    ]


_STEP_LINES = "The job says which steps; put these two lines into its loop:"
_NVTX = (
    "Optional, for those who accept one line in the script: NVTX ranges of every operator, of the "
    "loader and of the optimizer, so that the report can name them (newer versions of nsys do the "
    "same by --pytorch=autograd-nvtx, without the line). It slows the host as well."
)


def _step_lines(of_steps: tuple[int, int]) -> list[str]:
    first, last = of_steps
    return [
        f"#   if step == {first}: torch.cuda.profiler.start()",
        f"#   if step == {last}: torch.cuda.profiler.stop()",
    ]
