"""Why are my GPUs waiting? A run: the answer first, then the ledger, then the evidence."""

from __future__ import annotations

from typing import Any

from grafana.source import dashboard as d
from grafana.source import hosts, strips, verdicts
from grafana.source.alerts import OF_RUN


def build() -> dict[str, Any]:
    """The dashboard."""
    return d.dashboard(
        "gpuwhy-why",
        "Why are my GPUs waiting?",
        "One run: which cause, what it costs, what to do next; then the ledger of its GPU time and "
        "all evidence on one time axis.",
        [d.host(), d.run(), d.rank(), d.gpu(of_run=True, many=True)],
        [
            (
                4,
                [
                    (8, verdicts.cause()),
                    (4, verdicts.lost_share()),
                    (4, verdicts.cost()),
                    (8, verdicts.next_action()),
                ],
            ),
            (7, [(24, verdicts.table_of_ranks())]),
            (9, [(24, strips.ledger())]),
            (9, [(24, verdicts.timeline())]),
            d.heading("What the GPUs did, on one time axis"),
            (6, [(24, strips.activity())]),
            (6, [(24, strips.clocks())]),
            (6, [(24, strips.power())]),
            (6, [(24, strips.temperature())]),
            (6, [(24, strips.memory_controller())]),
            (6, [(24, strips.traffic())]),
            d.heading("What the job did, on the same axis"),
            (8, [(24, strips.phases())]),
            (6, [(24, strips.step_rate())]),
            (6, [(24, strips.step_time())]),
            (6, [(24, strips.queue())]),
            (6, [(24, strips.workers())]),
            d.heading("Where in the code, and what the host did"),
            (9, [(24, verdicts.functions())]),
            (6, [(24, hosts.cpu())]),
            (6, [(24, hosts.throttling())]),
            (6, [(24, hosts.disks())]),
            (6, [(24, hosts.network())]),
            (6, [(24, verdicts.cannot_see())]),
        ],
        alerts=OF_RUN,
    )
