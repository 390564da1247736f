"""Whether a card is sound: Xid, ECC, row remaps, links."""

from __future__ import annotations

from grafana.source import palette, words
from grafana.source.fields import by_name, colored
from grafana.source.panels import Panel, stat, timeseries
from grafana.source.queries import increase, on_gpu
from grafana.source.tables import table
from grafana.source.targets import query

DCGM = 'host=~"$host",UUID=~"$gpu"'
NOT_TOLD = "not told"
ALARM = ((None, palette.GOOD), (1.0, palette.BAD))


def uncorrected() -> Panel:
    """Uncorrected memory errors."""
    ours = on_gpu("gpuwhy_gpu_ecc_errors_total", 'error="uncorrected",lifetime="volatile"')
    dcgm = f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{DCGM}}}"
    return stat(
        "Uncorrected memory errors",
        "Uncorrected ECC errors in the time range. One is enough to lose a step or a job; they "
        "belong to the card, not to the program. Cards without ECC tell nothing.",
        [query(f"max({increase(ours)} or {increase(dcgm)})", now=True)],
        unit="none",
        low=0,
        decimals=0,
        steps=ALARM,
        missing=NOT_TOLD,
    )


def remap() -> Panel:
    """Row remaps that failed or wait."""
    return stat(
        "Row remaps",
        "Memory rows that failed are replaced at the next reset. Pending: the card waits for a "
        "reset. Failed: it has no spare rows left and is to be replaced.",
        [
            query(f"max({on_gpu('gpuwhy_gpu_row_remap_pending')})", "pending", now=True),
            query(
                f"max({on_gpu('gpuwhy_gpu_row_remap_failed')}"
                f" or DCGM_FI_DEV_ROW_REMAP_FAILURE{{{DCGM}}})",
                "failed",
                now=True,
            ),
        ],
        unit="none",
        mappings=words.yes_no(),
        names=True,
        missing=NOT_TOLD,
    )


def pcie() -> Panel:
    """PCIe generation and width now, against the most."""
    return stat(
        "PCIe link",
        "Lanes now as a share of the most that card and slot have, and the generation now. Judge "
        "the generation under load only: it sinks at rest. Fewer lanes than the slot has is a bad "
        "contact or riser.",
        [
            query(
                f"min({on_gpu('gpuwhy_gpu_pcie_link_width')}"
                f" / {on_gpu('gpuwhy_gpu_pcie_link_max_width')})",
                "lanes",
                now=True,
            ),
            query(f"min({on_gpu('gpuwhy_gpu_pcie_link_generation')})", "generation", now=True),
        ],
        unit="none",
        names=True,
        decimals=0,
        overrides=[by_name("lanes", unit="percentunit")],
        missing=NOT_TOLD,
    )


def nvlinks() -> Panel:
    """NVLinks up, of all."""
    return stat(
        "NVLinks up",
        "NVLinks that are up, and how many the card has. One that is down slows every gradient "
        "exchange of the host. Cards without NVLink tell nothing.",
        [
            query(f"min({on_gpu('gpuwhy_gpu_nvlinks_active')})", "up", now=True),
            query(f"max({on_gpu('gpuwhy_gpu_nvlinks')})", "in all", now=True),
        ],
        unit="none",
        names=True,
        decimals=0,
        missing=NOT_TOLD,
    )


def xids() -> Panel:
    """Xid events."""
    ours = f"max by (xid) ({on_gpu('gpuwhy_gpu_xid_last_timestamp_seconds')}) * 1000"
    last = f'count_values by (uuid) ("xid", DCGM_FI_DEV_XID_ERRORS{{{DCGM}}} > 0) * NaN'
    return table(
        "Which Xid events came?",
        "Numbers of the driver's error events (Xid) and when each last came. 13, 31 and 43 are "
        "mostly a program's own; 48, 63, 64, 79, 94, 95 are the card's. NVIDIA's catalogue lists "
        "them. dcgm-exporter tells only the last number, without a time.",
        [query(f"{ours} or on (xid) {last}", table=True)],
        columns={"xid": "Xid", "Value": "Last seen"},
        missing="none seen, or not told by this GPU or its exporter",
        overrides=[
            by_name("Xid", width=80),
            by_name("Last seen", unit="dateTimeAsIso", mappings=words.not_told()),
        ],
    )


def ecc() -> Panel:
    """Memory errors over time."""
    ours = on_gpu("gpuwhy_gpu_ecc_errors_total", 'lifetime="volatile"')
    rows = on_gpu("gpuwhy_gpu_row_remaps_total")
    return timeseries(
        "Do memory errors come in?",
        "ECC errors and remapped rows, new ones in the five minutes before. Corrected errors cost "
        "nothing; many of them announce uncorrected ones.",
        [
            query(f"sum by (error) (increase({ours}[5m]))", "ECC errors, {{error}}"),
            query(f"sum by (error) (increase({rows}[5m]))", "rows remapped, {{error}}"),
        ],
        unit="none",
        missing="no ECC counters (needs gpuwhy)",
        narrow=True,
        overrides=colored(
            {
                "ECC errors, corrected": palette.LINES[3],
                "ECC errors, uncorrected": palette.BAD,
                "rows remapped, corrected": palette.LINES[0],
                "rows remapped, uncorrected": palette.ACCOUNTS["comm"],
            }
        ),
    )


def links() -> Panel:
    """Link errors over time."""
    replays = on_gpu("gpuwhy_gpu_pcie_replays_total")
    dcgm = f"DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{DCGM}}}"
    errors = on_gpu("gpuwhy_gpu_nvlink_errors_total")
    return timeseries(
        "Do the links make errors?",
        "PCIe packets sent again and NVLink errors by kind, new ones in the five minutes before. "
        "A few are normal; a steady stream is a bad contact, cable or card, and slows transfers "
        "without any other sign.",
        [
            query(f"max(increase({replays}[5m]) or increase({dcgm}[5m]))", "PCIe replays"),
            query(f"sum by (error) (increase({errors}[5m]))", "NVLink {{error}}"),
        ],
        unit="none",
        missing=NOT_TOLD,
        narrow=True,
        overrides=[by_name("PCIe replays", color=palette.LINES[1])],
    )
