"""The alerts on hardware: Xid, ECC, row remaps, links, a GPU that is gone, ports."""

from __future__ import annotations

from dataclasses import replace

from alerting.source.model import Alert, Group
from alerting.source.thresholds import Thresholds
from alerting.source.words import GPU_PLACE, MONITOR, ONE_GPU, SINCE, every

GPU = "host, instance, uuid, gpu, mig"
WHERE = 'GPU {{ $labels.gpu }} {{ printf "%.20s" $labels.host }}'
XID_WINDOW = "10m"
ERROR_WINDOW = "15m"
USERS = every(
    "topk(3, gpuwhy_process_info{uuid=%q})",
    "In use by{{ with .Labels.run }} run {{ . }},{{ end }} pid {{ .Labels.pid }}"
    "{{ with .Labels.user }} of {{ . }}{{ end }}.\n",
    key="$labels.uuid",
)


def group(limits: Thresholds) -> Group:
    """The alerts of this module."""
    return Group(
        "gpuwhy-health",
        [
            *_xids(limits),
            _gpu(
                limits,
                "GPUECCUncorrected",
                "critical",
                'increase(gpuwhy_gpu_ecc_errors_total{error="uncorrected",lifetime="volatile"}[1h])'
                " > 0",
                "uncorrected ECC error",
                "had an uncorrected memory error in the last hour: results since then may be wrong",
                "end the job, reset the GPU, and test its memory before using it again.",
            ),
            _gpu(
                limits,
                "GPURowRemapFailed",
                "critical",
                "gpuwhy_gpu_row_remap_failed == 1",
                "row remap failed",
                "could not remap a bad row of its memory",
                "take the card out of service; it is to be replaced.",
            ),
            _gpu(
                limits,
                "GPURowRemapPending",
                "warning",
                "gpuwhy_gpu_row_remap_pending == 1",
                "row remap pending",
                "has a bad row of memory whose remap waits for a reset",
                "drain the GPU and reset it at the next pause.",
            ),
            _degraded(limits),
            _gpu(
                limits,
                "GPUNVLinkDown",
                "warning",
                "gpuwhy_gpu_nvlinks - gpuwhy_gpu_nvlinks_active > 0",
                "NVLinks down",
                "has {{ $value }} NVLink(s) down: collectives take a slower way",
                "look for Xid 74 and the fabric manager's log; reset the GPU; reseat the bridge.",
            ),
            _gpu(
                limits,
                "GPUNVLinkErrors",
                "warning",
                f"sum by ({GPU}) (increase(gpuwhy_gpu_nvlink_errors_total[{ERROR_WINDOW}]))"
                f" >= {limits.nvlink_errors:g}",
                "NVLink errors",
                'counted {{ printf "%.0f" $value }} NVLink errors in '
                f"{ERROR_WINDOW}: each costs a resend",
                "compare with the GPUs beside it; reseat or replace what the link runs over.",
            ),
            _gpu(
                limits,
                "GPUPCIeReplays",
                "warning",
                f"increase(gpuwhy_gpu_pcie_replays_total[{ERROR_WINDOW}])"
                f" >= {limits.pcie_replays:g}",
                "PCIe replays",
                'sent {{ printf "%.0f" $value }} PCIe packets again in '
                f"{ERROR_WINDOW}: copies slow down",
                "reseat the card or its riser; check the slot and the cable.",
            ),
            _lost(limits),
            _port(limits),
        ],
    )


def _gpu(
    limits: Thresholds, name: str, severity: str, expr: str, title: str, what: str, next_action: str
) -> Alert:
    return Alert(
        name=name,
        expr=expr,
        severity=severity,
        summary=f"{WHERE}: {title}",
        description=f"{GPU_PLACE} {what}.\n{USERS}Next: {next_action}\n",
        dashboard=ONE_GPU + SINCE,
        pending=limits.health_for,
        keep_firing_for=limits.keep_firing_for,
    )


def _xids(limits: Thresholds) -> list[Alert]:
    """By number, since most Xids are a program's own fault and some are a dying card."""
    listed = "|".join(str(xid) for xid in limits.critical_xids)
    recent = 'time() - gpuwhy_gpu_xid_last_timestamp_seconds{{xid{}"{}"}} < 600'
    hardware, others = recent.format("=~", listed), recent.format("!~", listed)
    alerts = [
        _gpu(
            limits,
            "GPUXidCritical",
            "critical",
            hardware,
            "Xid {{ $labels.xid }}, hardware",
            "reported Xid {{ $labels.xid }} {{ humanizeDuration $value }} ago, which stands for a "
            "fault of the hardware or the driver",
            "drain the GPU; look the number up in NVIDIA's Xid catalogue and do what it says.",
        ),
        _gpu(
            limits,
            "GPUXidError",
            "warning",
            others,
            "Xid {{ $labels.xid }}",
            "reported Xid {{ $labels.xid }} {{ humanizeDuration $value }} ago; most such errors "
            "are a program's own",
            "see the job's log; if it comes back with other jobs, test the card.",
        ),
    ]
    return [replace(alert, pending="0s") for alert in alerts]  # an event, not a state


def _degraded(limits: Thresholds) -> Alert:
    lower = " or ".join(
        f"gpuwhy_gpu_pcie_link_{what} < gpuwhy_gpu_pcie_link_max_{what}"
        for what in ("generation", "width")
    )
    busy = f"avg_over_time(gpu:busy:ratio[{limits.window}]) >= {limits.link_busy_ratio:g}"
    alert = _gpu(
        limits,
        "GPULinkDegraded",
        "warning",
        f"max by ({GPU}) ({lower})\nand on (instance, uuid, mig) {busy}",
        "PCIe link degraded",
        "works over a PCIe link below its best: "
        + _link("generation")
        + ", "
        + _link("width")
        + ". Copies take that much longer",
        "reseat the card or its riser; check the slot and the BIOS setting.",
    )
    return replace(alert, pending=limits.pending)


def _link(what: str) -> str:
    name = f"gpuwhy_gpu_pcie_link_{what}"
    most = f"gpuwhy_gpu_pcie_link_max_{what}"
    now = every(f"max({name}{{uuid=%q}})", f"{what} {{{{ .Value }}}}", key="$labels.uuid")
    return now + every(f"max({most}{{uuid=%q}})", " of {{ .Value }}", key="$labels.uuid")


def _lost(limits: Thresholds) -> Alert:
    seen = "count by (host, instance) (count by (host, instance, uuid) (%s))"
    before = seen % 'last_over_time(gpuwhy_gpu_info{mig=""}[1h])'
    now = seen % 'gpuwhy_gpu_info{mig=""}'
    return Alert(
        name="GPULost",
        expr=f"{before}\n-\n{now}\n> 0",
        severity="critical",
        summary='{{ printf "%.24s" $labels.host }}: {{ $value }} GPU(s) gone',
        description="{{ $value }} GPU(s) of {{ or $labels.host $labels.instance }} were there "
        "within the last hour and are not seen any more.\n"
        + every(
            'last_over_time(gpuwhy_gpu_info{mig="",instance=%q}[1h]) '
            "unless on (uuid) gpuwhy_gpu_info",
            "Gone: GPU {{ .Labels.gpu }}, {{ .Labels.uuid }}.\n",
            key="$labels.instance",
        )
        + "Next: look for Xid 79 (fallen off the bus) in the kernel's log; drain the host.\n",
        dashboard=MONITOR + SINCE,
        pending=limits.health_for,
        keep_firing_for=limits.keep_firing_for,
    )


def _port(limits: Thresholds) -> Alert:
    return Alert(
        name="NetworkPortDown",
        expr="gpuwhy_network_up == 0\nand on (instance, device, port) "
        f"max_over_time(gpuwhy_network_up[{limits.recent}]) == 1",
        severity="warning",
        summary='{{ printf "%.20s" $labels.device }} {{ printf "%.24s" $labels.host }}: port down',
        description="Port {{ $labels.port }} of {{ $labels.device }} on "
        "{{ or $labels.host $labels.instance }} was up and is down: collectives across hosts take "
        "a slower way or stop.\nNext: check cable, transceiver and the switch's port.\n",
        dashboard=MONITOR + SINCE,
        pending=limits.health_for,
        keep_firing_for=limits.keep_firing_for,
    )
