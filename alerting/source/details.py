"""Lines of detail in the notification of a cause: each with its own look-up, left out where that
finds nothing. Gauges are looked up over the window, since a single scrape may lack them."""

from __future__ import annotations

from alerting.source.words import FUNCTION, PERCENT, every, found

HOLDS_UP = found(
    'topk(1, last_over_time(gpuwhy_verdict_lost_ratio{run=%q,cause="ACCOUNT",reason="straggler"}'
    "[5m]))",
    "The other ranks wait for rank {{ .Labels.rank }}.\n",
)
LOADER = found(
    'sum(avg_over_time(gpuwhy_dataloader_workers{run=%q,state="busy"}[5m]))',
    'Loader: {{ printf "%.1f" .Value }} of '
    + found(
        "sum(avg_over_time(gpuwhy_dataloader_workers{run=%q}[5m]))", '{{ printf "%.0f" .Value }}'
    )
    + " workers at work"
    + found(
        "avg(avg_over_time(gpuwhy_dataloader_ready_batches{run=%q}[5m]))",
        ', {{ printf "%.1f" .Value }} batches ready',
    )
    + ".\n",
)
DISPATCH = found(
    "max(avg_over_time(gpuwhy_run_main_thread_cpu_cores{run=%q}[5m]) "
    "or avg_over_time(gpuwhy_run_cpu_cores{run=%q}[5m]))",
    'The rank uses {{ printf "%.2f" .Value }} of a core',
) + found(
    "avg(rank:gpuwhy_held:info{run=%q} * on (uuid, mig) group_left () max by (uuid, mig) "
    "(gpu:sm_active:ratio))",
    f"; multiprocessors are active {PERCENT} of the time.\n",
    otherwise=".\n",
)
WAITED_FOR = found(
    'topk(1, last_over_time(gpuwhy_verdict_lost_ratio{run=%q,reason="straggler"}[5m]))',
    "They wait for rank {{ .Labels.rank }}, which loses " + PERCENT + " of its time"
    " to {{ .Labels.cause }}"
    "{{ with printf `last_over_time(gpuwhy_verdict_function_info{run=%q,rank=%q,cause=%q}[5m])`"
    " .Labels.run .Labels.rank .Labels.cause | query }}{{ with first . }}"
    f", in {FUNCTION}{{{{ end }}}}{{{{ end }}}}: mend that rank.\n",
    otherwise="No rank in sight is behind: look at the run's other hosts, then at the network.\n",
)
NEIGHBOURS = every(
    "topk(3, last_over_time(gpuwhy_process_info{run!=%q}[5m]) and on (instance, uuid, mig) "
    '(rank_account:gpuwhy_share:ratio{run=%q,account="shared"} > 0.02))',
    "Other process: pid {{ .Labels.pid }}{{ with .Labels.user }} of {{ . }}{{ end }}"
    "{{ with .Labels.run }}, run {{ . }}{{ end }}{{ with .Labels.pod }}, pod {{ . }}{{ end }}"
    "{{ with .Labels.script }}, {{ . }}{{ end }}.\n",
)
TRAFFIC = found(
    "max(rank:gpuwhy_held:info{run=%q} * on (uuid, mig) group_left () max by (uuid, mig) "
    "(gpu:pcie_transmit:bytes_per_second + on (host, instance, uuid, gpu, mig) "
    "gpu:pcie_receive:bytes_per_second))",
    "PCIe carries {{ humanize1024 .Value }}B/s both ways.\n",
)
QUOTA = found(
    "min(last_over_time(gpuwhy_run_cpu_quota_cores{run=%q}[5m]))",
    "Limit: a CPU quota of {{ .Value }} core(s)"
    + found(
        "max(avg_over_time(gpuwhy_run_cpu_throttled_ratio{run=%q}[5m]))",
        f", throttled in {PERCENT} of its periods",
    )
    + ".\n",
    otherwise=found(
        "min(last_over_time(gpuwhy_run_cpu_allowed_cores{run=%q}[5m]))",
        "Limit: rank or workers may run on {{ .Value }} CPU(s) only.\n",
    ),
)
STUCK = found(
    "max(gpuwhy_training_progress_age_seconds{run=%q})",
    "The main thread has not moved for {{ humanizeDuration .Value }}.\n",
) + found(
    "sum(gpuwhy_training_peer_missing{run=%q}) > 0",
    "A rank of the communicator does not answer.\n",
)
CLOCK = found(
    "topk(1, rank_reason:gpuwhy_throttle:ratio{run=%q,reason=`REASON`} * 0 + on (uuid, mig) "
    "group_left () max by (uuid, mig) "
    "(gpuwhy_gpu_sm_clock_hertz / gpuwhy_gpu_sm_clock_attainable_hertz))",
    f"Its clock is at {PERCENT} of what is attainable",
)
HOT = found(
    "max(rank:gpuwhy_held:info{run=%q} * on (uuid, mig) group_left () max by (uuid, mig) "
    "(gpu:temperature:celsius))",
    'Hottest GPU: {{ printf "%.0f" .Value }} C',
) + found(
    "min(rank:gpuwhy_held:info{run=%q} * on (uuid, mig) group_left () max by (uuid, mig) "
    "(gpu:slowdown_temperature:celsius))",
    ', slowing down from {{ printf "%.0f" .Value }} C.\n',
    otherwise=".\n",
)
LIMITS = found(
    "min(rank:gpuwhy_held:info{run=%q} * on (uuid, mig) group_left () max by (uuid, mig) "
    "(gpu:power_limit:watts))",
    'Power limit: {{ printf "%.0f" .Value }} W',
) + found(
    "max(rank:gpuwhy_held:info{run=%q} * on (uuid, mig) group_left () max by (uuid, mig) "
    "(gpu:power_default_limit:watts))",
    ' of {{ printf "%.0f" .Value }} W by default.\n',
    otherwise=".\n",
)
BLIND = every(
    "count by (signal) (last_over_time(gpuwhy_verdict_cannot_see{run=%q}[5m]) == 1)",
    "Not seen: {{ .Labels.signal }}.\n",
)
