"""The command line as people type it: help, versions, exit statuses, messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpuwhy
from gpuwhy import settings
from gpuwhy.cli import COMMANDS, main
from gpuwhy.commands import diagnose
from gpuwhy.commands.command import CommandError

DIAGNOSE = (sys.executable, "-m", "gpuwhy", "diagnose")
RECORDING = Path(__file__).parent / "recordings" / "healthy.gpuwhy.gz"
Output = pytest.CaptureFixture[str]


def call(*arguments: str | Path) -> int:
    """The exit status, also where argparse ends the process."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def test_version(capsys: Output) -> None:
    assert call("--version") == 0
    assert capsys.readouterr().out == f"gpuwhy {gpuwhy.__version__}\n"


def test_without_a_command_the_help_and_status_2(capsys: Output) -> None:
    assert call() == 2
    assert "diagnose" in capsys.readouterr().out


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_help_names_every_option_its_variable_and_an_example(command: str, capsys: Output) -> None:
    assert call(command, "--help") == 0
    shown = capsys.readouterr().out
    for option in settings.options_of(command).values():
        assert f"--{option.name}" in shown
        assert option.variable in shown
    assert f"gpuwhy {command}" in shown.split("examples:")[1]
    assert "--config" in shown


def test_every_command_of_an_option_exists() -> None:
    assert {command.name for command in COMMANDS} == set(settings.EVERYWHERE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["diagnose", "--forr", "2s"], "--forr"),
        (["diagnos"], "diagnos"),
        (["diagnose", "--for", "20"], "option --for: '20' is no duration"),
        (["diagnose", "--for"], "--for"),
        (["record"], "FILE"),
        (["profile", "--pid", "x", "out.svg"], "option --pid: 'x' is no whole number"),
        (["profile", "--pid", "1", "--gpu", "0", "out.svg"], "--gpu and --pid"),
        (["serve", "--loop"], "--loop needs --recording"),
        (["--config", "/no/such/file", "doctor"], "/no/such/file: no such configuration file"),
        (["--log.level", "loud", "doctor"], "option --log.level: 'loud'"),
    ],
)
def test_bad_usage_is_status_2_and_names_the_option(
    arguments: list[str], message: str, capsys: Output
) -> None:
    assert call(*arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""
    assert "Traceback" not in told.err


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("GPUWHY_FOR", "soon")
    assert call("diagnose") == 2
    assert "environment variable GPUWHY_FOR: 'soon'" in capsys.readouterr().err


def test_config_check(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "gpuwhy.yml"
    path.write_text("for: 30s\n")
    assert call("--config", path, "--config.check") == 0
    assert capsys.readouterr().out == f"{path}: good\n"
    assert call("serve", "--config.check") == 0
    assert "no configuration file given" in capsys.readouterr().out
    path.write_text("for: 30s\nfro: 1\n")
    assert call("serve", "--config.check", "--config", path) == 2
    assert f"{path}:2: unknown key 'fro'; did you mean 'for'?" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["web.token-file", "recording", "web.config.file"])
def test_config_check_reads_the_files_that_are_named(
    tmp_path: Path, capsys: Output, option: str
) -> None:
    config = tmp_path / "gpuwhy.yml"
    config.write_text(f"{option}: {tmp_path}/none\n")
    assert call("serve", "--config.check", "--config", config) == 2
    assert f"{tmp_path}/none" in capsys.readouterr().err


def test_config_check_reads_the_web_configuration(tmp_path: Path, capsys: Output) -> None:
    web = tmp_path / "web.yml"
    web.write_text("basic_auth_users: {a: plain}\n")
    assert call("serve", "--web.config.file", web, "--config.check") == 2
    assert "basic_auth_users.a" in capsys.readouterr().err
    web.write_text("")
    assert call("serve", "--web.config.file", web, "--config.check") == 0


def test_a_failure_is_one_message_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def fail(*_: object) -> int:
        raise CommandError("no\x1b[2J such\nsecond line", 1)

    monkeypatch.setattr(diagnose, "run", fail)
    assert call("diagnose") == 1
    assert capsys.readouterr().err == "gpuwhy: no\\x1b[2J such\ngpuwhy: second line\n"


def test_the_unexpected_is_one_message_too(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def fail(*_: object) -> int:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(diagnose, "run", fail)
    assert call("diagnose") == 1
    told = capsys.readouterr().err
    assert "unexpected failure: ZeroDivisionError: of all things" in told
    assert "--log.level debug" in told
    assert call("diagnose", "--log.level", "debug") == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_failure(recordings: Path) -> None:
    process = subprocess.Popen(
        [*DIAGNOSE, "--json", "--recording", recordings / "healthy.gpuwhy.gz"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, b"")


def test_names_of_any_script_pass_an_ascii_terminal(recordings: Path) -> None:
    done = subprocess.run(
        [*DIAGNOSE, "--recording", recordings / "power_cap.gpuwhy.gz"],
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": "exporter"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.decode("ascii").startswith("power_cap")
    assert b"####" in done.stdout


def test_python_m_gpuwhy_is_gpuwhy(recordings: Path) -> None:
    done = subprocess.run(
        [*DIAGNOSE, "--json", "--recording", recordings / "data_slow.gpuwhy.gz"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["gpus"][0]["cause"] == "data"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_stream_is_no_failure(stream: str) -> None:
    closed = 1 if stream == "stdout" else 2
    command = [*DIAGNOSE, "--recording", str(RECORDING)]
    shell = f'exec "$@" {closed}>&-'
    done = subprocess.run(["sh", "-c", shell, "sh", *command], capture_output=True, text=True)
    assert done.returncode == 0
    assert "unexpected" not in done.stdout + done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*DIAGNOSE, "--recording", str(RECORDING)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "gpuwhy: cannot write the output: No space left on device\n"


INTERRUPT = """
import os, signal, sys, weakref
class Held: pass
def interrupt(_=None): os.kill(os.getpid(), signal.SIGINT)
class Finder:
    def find_spec(name, path=None, target=None):
        if name == MODULE:
            held = Held()
            Finder.seen = weakref.ref(held, interrupt)
            del held  # in a callback, as importlib's own are: an exception there is only printed
sys.meta_path.insert(0, Finder)
from gpuwhy.__main__ import main
sys.argv[1:] = ["diagnose", "--for", "1s"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["gpuwhy.settings", "gpuwhy.pipeline"])
def test_ctrl_c_is_quiet_however_early(module: str) -> None:
    """While modules are being imported: first the command line's own, then a command's."""
    hook = INTERRUPT.replace("MODULE", repr(module))
    ended = subprocess.run([sys.executable, "-c", hook], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_pipe_is_no_recording(tmp_path: Path, capsys: Output) -> None:
    pipe = tmp_path / "a.gpuwhy.gz"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        assert call("diagnose", "--recording", path) == 2
        assert f"cannot read {path}" in capsys.readouterr().err
    assert call("compare", RECORDING, pipe) == 2
    assert f"cannot read {pipe}" in capsys.readouterr().err
    for path in (pipe, tmp_path, Path("/dev/null")):
        assert call("record", path, "--for", "1s") == 2
        assert f"{path} is a" in capsys.readouterr().err
