"""What a training loop does: steps, phases, progress, and where its rank stands among others."""

from __future__ import annotations

from gpuwhy.expose.metric import RUN, Metric, on_run

STEP = on_run(
    "gpuwhy_training_step",
    "Step in progress, read from the loop's own counter. Absent where no counter was found.",
)
STEP_INFO = Metric(
    "gpuwhy_training_step_info",
    "info",
    (*RUN, "name"),
    1,
    "GPU and run",
    "Name of the variable that gpuwhy_training_step was read from.",
)
EPOCH = on_run("gpuwhy_training_epoch", "Epoch in progress, read from the loop's own counter.")
MAX_STEPS = on_run("gpuwhy_training_max_steps", "Steps that the run means to make in all.")
STEPS_PER_SECOND = on_run("gpuwhy_training_steps_per_second", "Steps made a second.")
STEP_SECONDS = on_run("gpuwhy_training_step_seconds", "Time that one step takes.")
PHASE = Metric(
    "gpuwhy_training_phase_ratio",
    "gauge",
    (*RUN, "phase"),
    24,
    "GPU and run",
    "Share of the main thread's time in this phase of the host, over the 10 s that end with the "
    "last complete second. The host's phases are not the GPU's accounts.",
)
CONTEXT = Metric(
    "gpuwhy_training_context_ratio",
    "gauge",
    (*RUN, "context"),
    3,
    "GPU and run",
    "Share of the main thread's time inside startup, evaluation or checkpoint, over the same 10 s.",
)
SAMPLES = on_run(
    "gpuwhy_training_stack_samples", "Stack samples behind the phases, over the same 10 s."
)
PROGRESS_AGE = on_run(
    "gpuwhy_training_progress_age_seconds",
    "Time since the loop was last seen to make progress (a step, or a change of stack).",
)
AGE = on_run("gpuwhy_training_age_seconds", "Time since the rank's process started.")
WORLD_SIZE = on_run("gpuwhy_training_world_size", "Ranks of the whole run, as it says itself.")
PEERS = on_run("gpuwhy_training_peers", "Other ranks of the run that are in sight.")
RANK_AHEAD = on_run(
    "gpuwhy_training_rank_ahead",
    "1 if the rank has issued more collectives than the slowest one and waits for it, else 0.",
)
RANK_BEHIND = on_run(
    "gpuwhy_training_rank_behind", "1 if this is the rank that the others wait for, else 0."
)
PEER_MISSING = on_run(
    "gpuwhy_training_peer_missing", "1 if a rank of the communicator does not answer, else 0."
)
SM_SHARE = on_run(
    "gpuwhy_run_sm_ratio", "Share of the multiprocessors that this rank used on this GPU."
)
SM_OTHERS = on_run(
    "gpuwhy_run_other_sm_ratio",
    "Share of the multiprocessors that every other process used on this GPU.",
)
CPU = on_run("gpuwhy_run_cpu_cores", "Cores used by the rank's process.")
MAIN_CPU = on_run("gpuwhy_run_main_thread_cpu_cores", "Cores used by the rank's main thread.")
CHILDREN_CPU = on_run(
    "gpuwhy_run_children_cpu_cores", "Cores used by everything that the rank has started."
)
RUN_DELAY = on_run(
    "gpuwhy_run_main_thread_delay_ratio",
    "Share of time in which the main thread could have run and was given no CPU.",
)
THROTTLED = on_run(
    "gpuwhy_run_cpu_throttled_ratio",
    "Share of the periods of its CPU quota in which the job's cgroup was throttled.",
)
QUOTA = on_run("gpuwhy_run_cpu_quota_cores", "CPU quota of the job's cgroup; absent without one.")
ALLOWED = on_run(
    "gpuwhy_run_cpu_allowed_cores",
    "Fewest CPUs that the rank or one of its workers may run on (affinity or cpuset).",
)

METRICS = (
    STEP,
    STEP_INFO,
    EPOCH,
    MAX_STEPS,
    STEPS_PER_SECOND,
    STEP_SECONDS,
    PHASE,
    CONTEXT,
    SAMPLES,
    PROGRESS_AGE,
    AGE,
    WORLD_SIZE,
    PEERS,
    RANK_AHEAD,
    RANK_BEHIND,
    PEER_MISSING,
    SM_SHARE,
    SM_OTHERS,
    CPU,
    MAIN_CPU,
    CHILDREN_CPU,
    RUN_DELAY,
    THROTTLED,
    QUOTA,
    ALLOWED,
)
