"""The hottest Python functions of ranks and workers, bounded, with the rest counted."""

from __future__ import annotations

from gpuwhy.expose.metric import RUN, Metric, on_run

TOP = 10
"""Functions exposed per rank."""

FUNCTION = Metric(
    "gpuwhy_python_function_ratio",
    "gauge",
    (*RUN, "role", "phase", "function", "file", "line"),
    TOP,
    "GPU and run",
    "Share of time in this function over the last 60 s. role rank: of the main thread's time, the "
    "hottest in each phase; role worker: of the workers' time at work, phase empty. The function "
    "is the deepest one outside the standard library and site-packages, where there is one.",
)
DROPPED = on_run(
    "gpuwhy_python_functions_left_out",
    "Functions seen in the last 60 s beyond those that are exposed.",
)
LEFT_OUT = on_run(
    "gpuwhy_python_functions_left_out_ratio",
    "Share of time in the functions that are not exposed.",
)

METRICS = (FUNCTION, DROPPED, LEFT_OUT)
