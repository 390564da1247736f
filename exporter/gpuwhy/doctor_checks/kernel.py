"""Checks of the kernel and of what a container hides: cgroups, PSI, /proc, CPUs, the clock."""

from __future__ import annotations

from gpuwhy.doctor_checks.check import Check, Result, degraded, failed, not_applicable, ok
from gpuwhy.doctor_checks.host import Host

INITIAL_CGROUP_NAMESPACE = "cgroup:[4026531835]"  # PROC_CGROUP_INIT_INO in proc_ns.h
INITIAL_PID_NAMESPACE = "pid:[4026531836]"
EARLIEST = 1735689600.0  # 2025-01-01 UTC: before it the clock was never set


def kernel(host: Host) -> Result:
    """Linux, on a processor that gpuwhy is tried on."""
    found = f"{host.system} {host.kernel} {host.machine}"
    if host.system != "Linux":
        return failed(found, "everything: gpuwhy reads /proc", "run gpuwhy on the Linux GPU host")
    if host.machine not in ("x86_64", "aarch64"):
        return degraded(found, "nothing known; this processor is not tried", "x86-64 or aarch64")
    return ok(found)


def pid_namespace(host: Host) -> Result:
    """Whether all processes of the host are in sight."""
    link = host.link("/proc/self/ns/pid")
    if link is None:
        return not_applicable("namespaces cannot be read")
    if link != INITIAL_PID_NAMESPACE:
        return degraded(
            "a PID namespace of its own",
            "jobs outside this container",
            "docker run --pid host (compose: pid: host)",
        )
    return ok()


def hidepid(host: Host) -> Result:
    """Whether /proc hides other users' processes from us (``hidepid``, proc(5))."""
    options = _proc_options(host)
    hidden = next((o for o in options if o.startswith("hidepid=")), "hidepid=0")
    if hidden in ("hidepid=0", "hidepid=off") or host.uid == 0:
        return ok(hidden if hidden != "hidepid=0" else "")
    return degraded(
        f"/proc is mounted with {hidden}",
        "other users' jobs",
        "run as root, or as a member of the group in /proc's gid= option",
    )


def cgroup(host: Host) -> Result:
    """Whether the limits and throttling of a job's own group can be read."""
    lost = "quota: CPU limits, throttling and memory pressure of the jobs"
    states = host.sources("cgroup")
    if states and not states[0]["up"]:
        return degraded(states[0].get("why", "it is down"), lost, states[0].get("remedy", ""))
    version = _cgroup_version(host)
    if version is None:
        remedy = "mount it: in a container, -v /sys/fs/cgroup:/sys/fs/cgroup:ro"
        return failed("/sys/fs/cgroup is not there", lost, remedy)
    if host.link("/proc/self/ns/cgroup") not in (None, INITIAL_CGROUP_NAMESPACE):
        return degraded(
            f"version {version}, in a cgroup namespace of its own",
            lost + " outside this container",
            "docker run --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup:ro "
            "(compose: cgroup: host)",
        )
    return ok(f"version {version}")


def pressure(host: Host) -> Result:
    """Pressure stall information."""
    if host.read("/proc/pressure/cpu") is None:
        return degraded(
            "/proc/pressure is not there",
            "pressure of the host and its groups on CPU, memory and I/O",
            "boot with psi=1 (kernel 4.20 or newer with CONFIG_PSI)",
        )
    return ok()


def scheduler_statistics(host: Host) -> Result:
    """How long a runnable thread waited for a CPU."""
    text = host.read("/proc/self/schedstat")
    if not text or text.split()[:2] == ["0", "0"]:
        return degraded(
            "/proc/PID/schedstat is missing or empty",
            "how long the main thread waits for a CPU, evidence of quota",
            "sysctl kernel.sched_schedstats=1, or a kernel with CONFIG_SCHED_INFO",
        )
    return ok()


def cpus(host: Host) -> Result:
    """CPUs that we ourselves may run on."""
    if host.allowed < 2 <= host.cores:
        return degraded(
            f"gpuwhy may use {host.allowed} of {host.cores} CPUs",
            "samples, when that CPU is busy",
            f"widen the affinity or cpuset of gpuwhy: taskset -cp 0-{host.cores - 1} PID",
        )
    return ok(f"{host.allowed} of {host.cores}")


def clock(host: Host) -> Result:
    """A clock that is set and kept in step, so that hosts can be laid over one another."""
    if host.now() < EARLIEST:
        return failed(
            "the clock stands before 2025",
            "every time stamp: verdicts cannot be laid beside other metrics",
            "timedatectl set-ntp true",
        )
    synchronised = host.synchronised()
    if synchronised is False:
        return degraded(
            "the kernel says that the clock is not kept in step",
            "activity in step across hosts; times beside other hosts' metrics",
            "timedatectl set-ntp true, or install chrony",
        )
    return ok("" if synchronised else "whether it is kept in step cannot be told")


def clock_source(host: Host) -> Result:
    """A clock source that is cheap to read."""
    name = host.read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if name is None:
        return not_applicable("the kernel does not tell")
    if name.strip() in ("hpet", "acpi_pm", "jiffies"):
        return degraded(
            f"clock source {name.strip()}",
            "CPU time: every reading of the clock is a slow call, in the job too",
            "dmesg | grep -i tsc tells why the TSC is not used",
        )
    return ok(name.strip())


def _proc_options(host: Host) -> list[str]:
    """Options of the mount at /proc: of the mount and of the file system (proc(5), mountinfo)."""
    for line in (host.read("/proc/self/mountinfo") or "").splitlines():
        mount, _, rest = line.partition(" - ")
        fields = mount.split()
        if len(fields) > 5 and fields[4] == "/proc":
            return [*fields[5].split(","), *rest.rpartition(" ")[2].strip().split(",")]
    return []


def _cgroup_version(host: Host) -> int | None:
    if host.path("/sys/fs/cgroup/cgroup.controllers").exists():
        return 2
    if any(host.path(f"/sys/fs/cgroup/{name}").exists() for name in ("cpu", "cpu,cpuacct")):
        return 1
    return None


CHECKS = (
    Check("kernel", kernel),
    Check("pid-namespace", pid_namespace),
    Check("hidepid", hidepid),
    Check("cgroup", cgroup),
    Check("psi", pressure),
    Check("schedstat", scheduler_statistics),
    Check("cpus", cpus),
    Check("clock", clock),
    Check("clock-source", clock_source),
)
