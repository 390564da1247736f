"""Refusals: the error texts of py-spy 0.4.3 and the /proc that tells their causes apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuwhy.observe.pyspy_refusal import explain, stopped

DENIED = (
    "Permission Denied: Try running again with elevated permissions by going"
    " 'sudo env \"PATH=$PATH\" !!'\n"
)
NO_EXE = "Error: Failed to get process executable name. Check that the process is running.\n"
NO_PYTHON = (
    "Error: Failed to find python version from target process\n\nStack backtrace:\n   0: anyhow\n"
)
NO_INTERPRETER = "Error: Failed to find a python interpreter in the .data section\n"
STAT = "42 (python (x)) {state} 1 42 42 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 3 0 777 1000 10 0 0 0\n"
ALL_RIGHTS, NO_PTRACE = "000001ffffffffff", "000001fffff7ffff"


class Proc:
    """A fixture of /proc: process 42 is the job."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.job, self.own = root / "42", root / "self"
        for base in (self.job, self.own):
            (base / "ns").mkdir(parents=True)
            (base / "ns" / "user").symlink_to("user:[1]")
        (self.job / "stat").write_text(STAT.format(state="S"))
        (self.job / "exe").symlink_to("/usr/bin/python3.12")
        (self.job / "maps").write_text("7f00-7f01 r-xp 0 00:00 0 /usr/bin/python3.12\n")
        self.status(self.job, uid=61000, rights="0")
        self.status(self.own, uid=0, rights=ALL_RIGHTS)

    @staticmethod
    def status(base: Path, uid: int, rights: str, seccomp: int = 0) -> None:
        (base / "status").write_text(
            f"Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{rights}\n"
            f"Seccomp:\t{seccomp}\n"
        )

    def yama(self, scope: int) -> None:
        folder = self.root / "sys/kernel/yama"
        folder.mkdir(parents=True)
        (folder / "ptrace_scope").write_text(f"{scope}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_another_user(proc: Proc) -> None:
    proc.status(proc.own, uid=65000, rights=NO_PTRACE)
    refusal = explain(42, DENIED, proc.root)
    assert "belongs to user 61000" in refusal.why
    assert "user 65000 without CAP_SYS_PTRACE" in refusal.why
    assert "--cap-add SYS_PTRACE" in refusal.remedy
    assert "run gpuwhy as user 61000" in refusal.remedy


def test_yama(proc: Proc) -> None:
    proc.status(proc.own, uid=61000, rights=NO_PTRACE)
    proc.yama(1)
    refusal = explain(42, DENIED, proc.root)
    assert "ptrace_scope is 1" in refusal.why
    assert "sysctl kernel.yama.ptrace_scope=0" in refusal.remedy


def test_yama_that_forbids_all(proc: Proc) -> None:
    proc.yama(3)
    refusal = explain(42, DENIED, proc.root)
    assert "ptrace_scope is 3" in refusal.why
    assert "reboot" in refusal.remedy


def test_same_user_but_more_rights(proc: Proc) -> None:
    proc.status(proc.own, uid=61000, rights="0")
    refusal = explain(42, DENIED, proc.root)
    assert "holds rights that gpuwhy lacks" in refusal.why


def test_user_namespace(proc: Proc) -> None:
    (proc.job / "ns" / "user").unlink()
    (proc.job / "ns" / "user").symlink_to("user:[2]")
    assert "user namespace" in explain(42, DENIED, proc.root).why


def test_seccomp(proc: Proc) -> None:
    proc.status(proc.own, uid=0, rights=ALL_RIGHTS, seccomp=2)
    refusal = explain(42, DENIED, proc.root)
    assert "seccomp filter is active" in refusal.why
    assert "seccomp=unconfined" in refusal.remedy


def test_an_interpreter_in_a_closed_folder(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    library = "/root/.pyenv/versions/3.12.1/lib/libpython3.12.so.1.0"
    (proc.job / "maps").write_text(f"7f00-7f01 r-xp 0 00:00 0   {library}\n")
    monkeypatch.setattr(os, "access", lambda path, _: library not in str(path))
    refusal = explain(42, DENIED, proc.root)
    assert library in refusal.why
    assert "CAP_DAC_READ_SEARCH" in refusal.remedy


def test_interpreter_too_new(proc: Proc) -> None:
    refusal = explain(42, "Error: Unsupported version of Python: 3.17.0\n", proc.root)
    assert "Python 3.17.0" in refusal.why
    assert "upgrade py-spy" in refusal.remedy


@pytest.mark.parametrize("message", [NO_PYTHON, NO_INTERPRETER])
def test_free_threaded(proc: Proc, message: str) -> None:
    (proc.job / "exe").unlink()
    (proc.job / "exe").symlink_to("/opt/python3.14t")
    refusal = explain(42, message, proc.root)
    assert "free-threaded" in refusal.why
    (proc.job / "exe").unlink()
    (proc.job / "exe").symlink_to("/opt/trainer")
    (proc.job / "maps").write_text("7f00-7f01 r-xp 0 00:00 0 /opt/lib/libpython3.13t.so.1.0\n")
    assert "free-threaded" in explain(42, message, proc.root).why


def test_interpreter_newer_than_py_spy_knows(proc: Proc) -> None:
    """py-spy 0.4.1 on Python 3.15.0: it does not say that the version is why."""
    (proc.job / "exe").unlink()
    (proc.job / "exe").symlink_to("/usr/bin/python3.15")
    refusal = explain(42, NO_PYTHON, proc.root)
    assert "Python 3.15" in refusal.why
    assert "upgrade py-spy" in refusal.remedy


@pytest.mark.parametrize("message", [NO_PYTHON, NO_INTERPRETER])
def test_no_python(proc: Proc, message: str) -> None:
    (proc.job / "exe").unlink()
    (proc.job / "exe").symlink_to("/opt/trainer")
    (proc.job / "maps").write_text("7f00-7f01 r-xp 0 00:00 0 /opt/trainer\n")
    refusal = explain(42, message, proc.root)
    assert "no Python interpreter" in refusal.why
    assert refusal.remedy
    assert "backtrace" not in refusal.why


def test_gone(proc: Proc) -> None:
    assert explain(43, NO_EXE, proc.root).gone
    (proc.job / "stat").write_text(STAT.format(state="Z"))
    assert explain(42, NO_EXE, proc.root).gone


def test_an_unknown_error_is_passed_on_without_its_backtrace(proc: Proc) -> None:
    message = "Error: something new\n\nCaused by:\n    a reason\n\nStack backtrace:\n   0: anyhow\n"
    refusal = explain(42, message, proc.root)
    assert "something new" in refusal.why
    assert "a reason" in refusal.why
    assert "anyhow" not in refusal.why
    assert "gpuwhy doctor" in refusal.remedy
    assert explain(42, "", proc.root).why


def test_stopped() -> None:
    assert "kill -CONT 42" in stopped(42, "T").remedy
    assert "debugger" in stopped(42, "t").why
