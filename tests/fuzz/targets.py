"""Every parser of text that others write: what it may raise, and good inputs to begin from.

The readers of traces (Kineto, Nsight) have their own: tests/evidence/traces/test_fuzz.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import yaml
from alerting.source import thresholds
from tests.doctor_checks.fixture import observations

from gpuwhy import config_file, doctor, settings, values
from gpuwhy.doctor_checks import gpu, kernel, stack, stacks
from gpuwhy.doctor_checks.host import Host
from gpuwhy.evidence import commands_to_print, job_command, profile_labels
from gpuwhy.evidence.imports import dmon, dstat_csv, logs, nvidia_smi_csv, pyspy_raw
from gpuwhy.evidence.imports.text_table import LogError, utc_offset
from gpuwhy.expose import alerting, auth, compress, flame, notifications, web_config
from gpuwhy.expose.actions import RefusedError, same_origin
from gpuwhy.expose.alerting_receivers import ReceiverError
from gpuwhy.observe import (
    cgroup,
    form,
    host,
    identity,
    infiniband,
    interning,
    nccl_ras_answer,
    numa,
    procfs,
    pyspy_formats,
    pyspy_refusal,
    secrets,
    source_text,
    wire,
)
from gpuwhy.observe import (
    locals as integer_locals,
)
from gpuwhy.observe.source_text import SourceText
from gpuwhy.observe.stacks_reader import StackReader, Target
from gpuwhy.signals import phases

CORPUS = Path(__file__).with_name("corpus")
NOWHERE = Path("/nonexistent")


@dataclass(frozen=True)
class Parser:
    """``run`` takes an input; ``refusals`` are the answers to a bad one, all else is a defect."""

    run: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    modules: tuple[object, ...]  # whose lines count as covered
    values: bool = False  # the inputs are JSON or YAML
    around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext

    def inputs(self, name: str) -> list[bytes]:
        """The corpus: good inputs, those that found a defect, those that reach further lines."""
        return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def text(data: bytes) -> str:
    return data.decode(errors="replace")


# py-spy


def reader(role: str) -> StackReader:
    return StackReader(Target(7, 1.0, role, 7), frozenset((7,)), SourceText(NOWHERE))


def pyspy_dump(data: bytes) -> None:
    threads = pyspy_formats.parse_dump(data)
    for role in ("rank", "worker"):
        for seen in reader(role).dump(threads, 1e9):
            wire.encode(seen)
            assert form.wrong(seen) is None, form.wrong(seen)


def pyspy_trace(data: bytes) -> None:
    trace = pyspy_formats.parse_trace(data)
    for seen in reader("rank").record(trace, 1e9, 20):
        wire.encode(seen)
        assert form.wrong(seen) is None, form.wrong(seen)


def pyspy_messages(data: bytes) -> None:
    messages = text(data)
    pyspy_formats.failed_samples(messages)
    pyspy_formats.is_torn_read(messages)
    pyspy_formats.without_log(messages)
    pyspy_formats.failed_reads(messages)
    pyspy_formats.began(messages)
    pyspy_formats.stacks_seen(messages)
    assert pyspy_refusal.explain(7, messages, NOWHERE).why


@contextlib.contextmanager
def every_process() -> Iterator[None]:
    """Each process lives."""
    with mock.patch.object(procfs, "read_stat", lambda base: object()):
        yield


def source_line(data: bytes) -> None:
    source_text.classify(text(data))
    frames = [[name, name, 1] for name in text(data).split("\n")]
    phases.classify_worker(frames)


# /proc, /sys, cgroups: what a job or its container can write, and what the kernel does


class Files:
    """What every file holds, while one of the two below is entered."""

    data = b""
    text = ""

    @classmethod
    def hold(cls, data: bytes) -> None:
        cls.data, cls.text = data, text(data)


@contextlib.contextmanager
def every_file() -> Iterator[None]:
    """Each file of the kernel's reads as that."""
    with (
        mock.patch.object(procfs, "read_bytes", lambda path: Files.data),
        mock.patch.object(procfs, "read_small", lambda path: Files.data),
        mock.patch.object(procfs, "read_text", lambda path: Files.text),
        mock.patch.object(cgroup, "read_text", lambda path: Files.text),
        mock.patch.object(host, "read_text", lambda path: Files.text),
        mock.patch.object(numa, "read_text", lambda path: Files.text),
        mock.patch.object(infiniband, "_text", lambda path: Files.text.strip()),
        mock.patch.object(job_command, "read_bytes", lambda path: Files.data),
    ):
        yield


def process_files(data: bytes) -> None:
    Files.hold(data)
    procfs.read_stat("x")
    procfs.read_run_delay("x")
    procfs.read_io("x")
    procfs.read_status("x")
    procfs.read_loaded("x")
    procfs.boot_time("x")
    pyspy_refusal._yama(NOWHERE)
    pyspy_refusal._uid(pyspy_refusal._status(NOWHERE))
    pyspy_refusal._unreadable(7, NOWHERE)


def command_line(data: bytes) -> None:
    Files.hold(data)
    argv = procfs.read_argv("x")
    shown = secrets.mask(argv)
    assert len(shown) <= secrets.LONGEST
    assert not re.search(r"[\x00-\x1f\x7f]", shown)
    identity.script_of(argv)
    identity.script_run(identity.script_of(argv) or "", 1e9)
    procfs.read_python("/nonexistent", argv)


def environment(data: bytes) -> None:
    Files.hold(data)
    env = procfs.read_environ("x", identity.VARIABLES) or {}
    assert set(env) <= identity.VARIABLES
    place = identity.place_of(text(data), env)
    run = identity.run_of(env, place, "host")
    assert run is None or 0 < len(run[1]) <= identity.LONGEST
    identity.rank_of(env)
    identity.world_size_of(env)
    identity.ras_address_of(env)


def printed_command(data: bytes) -> None:
    """A job's command line in what ``gpuwhy nsys`` and ``ncu`` print: it is to be pasted."""
    Files.hold(data)
    with contextlib.suppress(job_command.JobCommandError):
        printed(job_command.of_process(7, NOWHERE))
    argv = text(data).replace("\0", "\n").split("\n")
    printed(job_command.of_command(argv))


def printed(job: job_command.Job) -> None:
    """Each word is one word to a shell, and nothing in it is run, nor printed as a line."""
    for word in job.words:
        assert len(shlex.split(word)) == 1, word
        bare = re.sub(r"'[^']*'|\"'\"|\"\$\w+\"", "", word)
        assert not re.search(r"[\s$`;&|<>(){}*?~!#\\\"']", bare), word
    assert all(re.fullmatch(r"\w+", name) for name in (*job.variables, *job.hidden))
    assert re.fullmatch(r"[\w-]{1,40}", job.name)
    commands_to_print.nsys(job)
    commands_to_print.ncu(job)


class EveryFile(Host):
    """A host whose files, links and tools all say that."""

    def read(self, name: str) -> str | None:
        return Files.text

    def link(self, name: str) -> str | None:
        return Files.text


HOST = EveryFile(
    root=NOWHERE,
    seen=observations(),
    which=lambda name: name,
    tool=lambda command: Files.text,
    free_bytes=lambda path: 1 << 40,
    port_free=lambda port: True,
    py_spy=lambda: ("py-spy", Files.text),
)


def doctor_files(data: bytes) -> None:
    """What ``gpuwhy doctor`` reads of a host and of its tools."""
    Files.hold(data)
    for check in doctor.CHECKS:
        check.look(HOST)


GROUPS = [
    cgroup.Group("/a", 2, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, None),
    cgroup.Group("/a", 1, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE),
]


def cgroup_files(data: bytes) -> None:
    members = cgroup.memberships(text(data))
    cgroup.path_of(members)
    Files.hold(data)
    cgroup.find(7, members, NOWHERE, NOWHERE)
    for group in GROUPS:
        seen = cgroup.observe(group, [7], 1e9)
        wire.encode(seen)


def host_files(data: bytes) -> None:
    Files.hold(data)
    for seen in host.HostSource().poll(1e9):
        wire.encode(seen)


def infiniband_files(data: bytes) -> None:
    Files.hold(data)
    seen = infiniband.read_port(Path("/sys/class/infiniband/mlx5_0/ports/1"), 1e9)
    if seen is not None:
        wire.encode(seen)


# Answers, recordings


def nccl_ras(data: bytes) -> None:
    for found in nccl_ras_answer.communicators(nccl_ras_answer.parse(text(data))):
        wire.encode({"t": 1.0, "kind": "nccl", "communicators": [found]})


def recording_lines(data: bytes) -> None:
    frames = interning.FrameReader()
    for line in data.split(b"\n"):
        found = wire.decode_object(line)
        if found.get("kind") == "frame":
            frames.add(found)
            continue
        seen = wire.checked(found)
        if form.wrong(seen) is None and isinstance(seen.get("frames"), int):
            frames.frames(seen["frames"])
    form.HARDWARE(wire.decode_object(data.partition(b"\n")[0]).get("hardware"))


# Files and requests of people


SETTINGS = Path("settings.yml")


@contextlib.contextmanager
def every_path() -> Iterator[None]:
    """Each path reads as that, without a file system."""
    with (
        mock.patch.object(Path, "read_text", lambda self, encoding: Files.data.decode(encoding)),
        mock.patch.object(Path, "is_file", lambda self: True),
        mock.patch.object(
            Path, "stat", lambda self: os.stat_result([0] * 6 + [len(Files.data)] + [0] * 3)
        ),
        mock.patch.object(web_config, "MOST_COST", 5),  # else a check takes a second, as it must
        mock.patch.object(yaml, "SafeLoader", yaml.SafeLoader),
    ):
        yield


def hold(data: bytes) -> None:
    """YAML is parsed by libyaml in three of four cases: the same errors ten times as fast."""
    Files.hold(data)
    yaml.SafeLoader = PURE if len(data) % 4 == 0 else FAST  # type: ignore[misc]


PURE = yaml.SafeLoader
FAST = getattr(yaml, "CSafeLoader", PURE)


def web_configuration(data: bytes) -> None:
    hold(data)
    web_config.parse(web_config._read(SETTINGS), SETTINGS)


def alerting_settings(data: bytes) -> None:
    hold(data)
    yaml.load(alerting.render(alerting.read(SETTINGS)), Loader=FAST)


def thresholds_file(data: bytes) -> None:
    hold(data)
    thresholds.load(SETTINGS)


def settings_file(data: bytes) -> None:
    hold(data)
    config_file.read_entries(SETTINGS)
    first = text(data).split("\n")[0]
    for option in settings.OPTIONS.values():
        with contextlib.suppress(ValueError):
            option.parse(first)


def notification(data: bytes) -> None:
    for found in notifications.parse(data):
        assert max(map(len, vars_of(found))) <= notifications.LONGEST


def vars_of(found: notifications.Notification) -> list[str]:
    return [getattr(found, name) for name in found.__slots__]


def request(data: bytes) -> None:
    """Headers and the body of a request for a flame graph."""
    header = text(data)
    auth.credentials(header)
    compress.takes_gzip(header)
    notifications.may_post(header)
    same_origin({"origin": header, "host": "a"})
    flame._numbers(data)


def offset(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        utc_offset(text(data))
    with contextlib.suppress(ValueError):
        values.seconds(text(data))


def imported_logs(data: bytes) -> None:
    shown = text(data)
    offset(data)
    kind = logs.kind_of(data)
    if kind == "nvidia-smi":
        seen = nvidia_smi_csv.parse(shown, "a", 0.0)
    elif kind == "dmon":
        seen = dmon.parse(shown, "a", 0.0, 1e9)
    elif kind == "dstat":
        seen = dstat_csv.parse(shown, "a", 0.0, 2026)
    elif kind == "py-spy":
        seen = list(pyspy_raw.observations(pyspy_raw.parse(shown, "a"), 7, [1e9]))
    else:
        return
    json.dumps(seen, allow_nan=False)


def profile(data: bytes) -> None:
    """py-spy's flame graph and speedscope profile, in which nothing of a command line may stay."""
    for kind in ("flamegraph", "speedscope", "folded"):
        try:
            shown = profile_labels.without_commands(text(data), kind)
        except ValueError:
            continue
        if kind == "flamegraph":
            assert not re.search(r"<title>process \d+:", shown)
        elif kind == "folded":
            assert all(re.fullmatch(r"[^\x00-\x1f]+ \d+", line) for line in shown.splitlines())


PARSERS: dict[str, Parser] = {
    "pyspy_dump": Parser(pyspy_dump, (ValueError,), (pyspy_formats, integer_locals), values=True),
    "pyspy_trace": Parser(pyspy_trace, (ValueError,), (pyspy_formats,), values=True),
    "pyspy_messages": Parser(pyspy_messages, (ValueError,), (pyspy_refusal,), around=every_process),
    "profile": Parser(profile, (), (profile_labels,), values=True),
    "source_line": Parser(source_line, (), (source_text,)),
    "process_files": Parser(process_files, (), (procfs,), around=every_file),
    "command_line": Parser(command_line, (), (secrets,), around=every_file),
    "printed_command": Parser(
        printed_command, (), (job_command, commands_to_print), around=every_file
    ),
    "doctor_files": Parser(doctor_files, (), (gpu, kernel, stack, stacks), values=True),
    "environment": Parser(environment, (), (identity,), around=every_file),
    "cgroup_files": Parser(cgroup_files, (), (cgroup,), around=every_file),
    "host_files": Parser(host_files, (), (host,), around=every_file),
    "infiniband_files": Parser(infiniband_files, (), (infiniband,), around=every_file),
    "nccl_ras": Parser(nccl_ras, (ValueError,), (nccl_ras_answer,), values=True),
    "recording_lines": Parser(
        recording_lines, (wire.WireError,), (wire, form, interning), values=True
    ),
    "web_configuration": Parser(
        web_configuration,
        (web_config.WebConfigError,),
        (web_config,),
        values=True,
        around=every_path,
    ),
    "alerting_settings": Parser(
        alerting_settings,
        (alerting.AlertingError, ReceiverError),
        (alerting,),
        values=True,
        around=every_path,
    ),
    "thresholds": Parser(
        thresholds_file,
        (thresholds.ThresholdError,),
        (thresholds,),
        values=True,
        around=every_path,
    ),
    "settings_file": Parser(
        settings_file,
        (config_file.SettingsError,),
        (config_file, values),
        values=True,
        around=every_path,
    ),
    "notification": Parser(notification, (ValueError,), (notifications,), values=True),
    "request": Parser(request, (RefusedError,), (flame, auth, compress)),
    "imported_logs": Parser(
        imported_logs, (LogError,), (nvidia_smi_csv, dmon, dstat_csv, pyspy_raw)
    ),
}
