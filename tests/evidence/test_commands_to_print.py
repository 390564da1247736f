"""The commands that are printed: complete, harmless, without a secret, and started by nobody."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evidence.traces.kineto_file import busy_steps

from gpuwhy.cli import main
from gpuwhy.evidence import commands_to_print, job_command
from gpuwhy.evidence.job_command import Job, of_command, of_process

Output = pytest.CaptureFixture[str]
SECRET = "abcdefGHIJKL1234567"


def command_in(text: str) -> str:
    """The one command of a printed text, as a shell would take it up to its next line."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join(lines).strip().split("\n\n")[0]


def words(text: str) -> list[str]:
    return shlex.split(command_in(text).replace("\\\n", " "))


def test_nsys() -> None:
    text = commands_to_print.nsys(of_command(["python", "train.py", "--lr", "1e-3"]), 60, 30)
    found = words(text)
    assert found[:2] == ["nsys", "profile"]
    assert found[-4:] == ["python", "train.py", "--lr", "1e-3"]
    joined = " ".join(found)
    for part in ("--trace=cuda,nvtx,osrt", "--duration=60", "--kill none", "--delay=30"):
        assert part in joined
    assert "date -u" in joined
    assert "costs" in text
    assert "emit_nvtx" in text


def test_the_name_is_the_time_at_which_it_runs() -> None:
    text = commands_to_print.nsys(of_command(["python", "train.py"]))
    (option,) = re.findall(r"--output=\S+ [^\"]*\"", command_in(text)) or [""]
    shown = subprocess.run(
        ["sh", "-c", f"printf %s {option}"], capture_output=True, text=True, check=True
    ).stdout
    assert re.fullmatch(r"--output=train-%h-\d{8}T\d{6}Z", shown)


def test_steps_are_marked_by_the_job() -> None:
    text = commands_to_print.nsys(of_command(["python", "train.py"]), of_steps=(100, 110))
    assert "--capture-range=cudaProfilerApi" in text
    assert "if step == 100: torch.cuda.profiler.start()" in text
    assert "--duration" not in text


@pytest.mark.parametrize("text", ["5", "9-3", "a-b", "-1-3", ""])
def test_steps_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="such as 100-110"):
        commands_to_print.steps(text)


def test_ncu() -> None:
    job = of_command(["python", "train.py"])
    found = words(commands_to_print.ncu(job, ["layer_norm", "a.b"], launches=7))
    assert found[0] == "ncu"
    assert found[found.index("--launch-count") + 1] == "7"
    assert found[found.index("--kernel-name") + 1] == r"regex:layer_norm|a\.b"
    assert found[found.index("--clock-control") + 1] == "none"
    assert "--csv" in found


@pytest.mark.parametrize(
    "argv",
    [
        ["python", "t.py", "--api-key", SECRET],
        ["python", "t.py", f"--api_key={SECRET}"],
        ["python", "t.py", "--hub_token", SECRET, "--lr", "1"],
        ["python", "t.py", f"https://me:{SECRET}@host/x"],
    ],
)
def test_secrets_are_put_as_names(argv: list[str]) -> None:
    for text in (commands_to_print.nsys(of_command(argv)), commands_to_print.ncu(of_command(argv))):
        assert SECRET not in text
        assert re.search(r'"\$[A-Z_]+"', command_in(text))


def test_odd_words_are_quoted() -> None:
    argv = ["python", "-c", "print('$HOME'); import os", "a b", "*.py", "$(rm -rf /)", ""]
    job = of_command(argv)
    shown = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {' '.join(job.words)}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert shown.split("\n")[:-1] == argv


@pytest.fixture
def running() -> Iterator[subprocess.Popen[bytes]]:
    """A real process, with an environment of its own."""
    code = "import time; time.sleep(60)"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "0", "WANDB_API_KEY": SECRET,
                   "HOME": "/x", "RANK": "3"}  # fmt: skip
    job = subprocess.Popen([sys.executable, "-c", code, f"--token={SECRET}"], env=environment)
    for _ in range(100):
        if b"sleep" in Path(f"/proc/{job.pid}/cmdline").read_bytes():
            break
        time.sleep(0.05)
    yield job
    job.kill()
    job.wait()


def test_a_running_job(running: subprocess.Popen[bytes]) -> None:
    job = of_process(running.pid)
    text = commands_to_print.nsys(job)
    assert {"CUDA_VISIBLE_DEVICES", "WANDB_API_KEY", "RANK"} <= set(job.variables)
    assert "HOME" not in job.variables
    assert 'WANDB_API_KEY="$WANDB_API_KEY"' in text
    assert SECRET not in text
    assert job.folder == str(Path.cwd())
    assert "has to be started anew" in text


def test_the_launcher_is_what_is_started_anew(tmp_path: Path) -> None:
    """A process table of files: torchrun starts two ranks."""
    for pid, parent, argv in (
        (10, 1, ["/usr/bin/python3", "/usr/bin/torchrun", "--nproc-per-node", "2", "train.py"]),
        (11, 10, ["/usr/bin/python3", "-u", "train.py"]),
    ):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in argv) + b"\0")
        (folder / "stat").write_text(f"{pid} (python3 (x)) S {parent} 1 1 0 -1")
        (folder / "environ").write_bytes(b"RANK=0\0NCCL_DEBUG=INFO\0")
    job = of_process(11, tmp_path)
    assert job.launched
    assert "torchrun" in " ".join(job.words)
    assert job.variables == ("NCCL_DEBUG",)  # the ranks' own are set by the launcher


def test_a_process_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(job_command.JobCommandError, match="still there"):
        of_process(11, tmp_path)


# -- the commands ----------------------------------------------------------------------------------


def test_nsys_on_the_command_line(capsys: Output) -> None:
    assert main(["nsys", "--for", "20s", "--delay", "1m", "--", "python", "train.py", "--x"]) == 0
    shown = capsys.readouterr().out
    assert "--duration=20" in shown
    assert "--delay=60" in shown
    assert shown.rstrip().endswith("gpuwhy trace train-*.nsys-rep")


def test_ncu_takes_kernels_from_a_trace(tmp_path: Path, capsys: Output) -> None:
    made = busy_steps()
    for i, event in enumerate(e for e in made.events if e["cat"] == "kernel"):
        names = ("void at::native::softmax<float>(x)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)")
        event["name"] = names[i % 2]
    trace = made.write(tmp_path / "a.json")
    assert main(["ncu", "--trace", str(trace), "--launches", "5", "--", "python", "t.py"]) == 0
    assert "--kernel-name regex:softmax" in " ".join(words(capsys.readouterr().out))


def test_bad_usage(tmp_path: Path, capsys: Output) -> None:
    assert main(["ncu", "--trace", str(tmp_path / "no.json"), "--", "python", "t.py"]) == 2
    assert main(["ncu", "--launches", "0", "--", "python", "t.py"]) == 2
    assert main(["nsys", "--pid", "4194303"]) == 1
    assert "still there" in capsys.readouterr().err


def test_environment_is_empty_where_nothing_matters() -> None:
    assert job_command.environment(Job(("python",))) == ""
