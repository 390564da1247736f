"""One GPU (or MIG instance): everything about it over one another, then each in its own unit."""

from __future__ import annotations

from typing import Any

from grafana.source import dashboard as d
from grafana.source import gpu_health, gpu_now, gpu_units
from grafana.source.alerts import OF_GPU


def build() -> dict[str, Any]:
    """The dashboard."""
    return d.dashboard(
        "gpuwhy-gpu",
        "One GPU",
        "One GPU or MIG instance: what it does, what holds it back, who holds it, and whether it "
        "is sound.",
        [d.host(), d.gpu(of_run=False, many=False)],
        [
            (
                4,
                [
                    (6, gpu_now.cause()),
                    (3, gpu_now.busy()),
                    (3, gpu_now.active()),
                    (3, gpu_now.clock()),
                    (3, gpu_now.power()),
                    (3, gpu_now.temperature()),
                    (3, gpu_now.memory()),
                ],
            ),
            (12, [(24, gpu_units.overlay())]),
            (8, [(24, gpu_units.ledger())]),
            (5, [(10, gpu_now.identity()), (14, gpu_now.holders())]),
            d.heading("The same in units"),
            (6, [(24, gpu_units.activity())]),
            (6, [(24, gpu_units.clocks())]),
            (6, [(24, gpu_units.reasons())]),
            (6, [(24, gpu_units.power())]),
            (6, [(24, gpu_units.temperature())]),
            (6, [(24, gpu_units.memory())]),
            (6, [(24, gpu_units.traffic())]),
            (6, [(24, gpu_units.sharing())]),
            (6, [(12, gpu_units.period()), (12, gpu_units.swing())]),
            d.heading("Is the card sound?"),
            (
                4,
                [
                    (4, gpu_health.uncorrected()),
                    (4, gpu_health.remap()),
                    (4, gpu_health.pcie()),
                    (4, gpu_health.nvlinks()),
                    (8, gpu_health.xids()),
                ],
            ),
            (6, [(12, gpu_health.ecc()), (12, gpu_health.links())]),
        ],
        alerts=OF_GPU,
    )
