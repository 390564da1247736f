"""What leaves of a job whose command line, environment, locals and source are full of canaries."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.faults.rig import Rig

CANARIES = {
    "option": "canary-of-an-option-7Q",
    "url": "canary-of-a-url-7Q",
    "program": "canary-of-a-program-7Q",
    "variable": "canary-of-a-variable-7Q",
    "local": "canary-of-a-local-7Q",
    "argument": "canary-of-an-argument-7Q",
    "number": "77123456789",
    "float": "3.14159265877",
    "source": "canary-of-the-source-7Q",
    "item": "canary-of-an-item-7Q",
    "file": "canary-of-a-file-7Q",
    "standard output": "canary-of-the-output-7Q",
}
JOB = """
import os, sys, threading, time

def train(word, given):
    password = {local!r}
    pin = {number}
    learning_rate = {float}
    items = [{item!r}, word]
    secret_key = 77123456789
    for step in range(10**9):
        time.sleep(0.01)  # {source}
        open({path!r}).read()

print({output!r}, flush=True)
print("ready", flush=True)
train({argument!r}, os.environ["MY_SETTING"])
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    secret_file = folder / "data.txt"
    secret_file.write_text(CANARIES["file"])
    job = folder / "train_plain.py"
    c = CANARIES
    job.write_text(
        JOB.format(local=c["local"], number=c["number"], float=c["float"], item=c["item"],
                   source=c["source"], path=str(secret_file), argument=c["argument"],
                   output=c["standard output"])
    )  # fmt: skip
    environment = {
        **os.environ,
        **dict.fromkeys(
            ("MY_SETTING", "WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL"),
            c["variable"],
        ),
        "RANK": "0",
        "GPUWHY_RUN": "a-run-that-may-be-seen",
    }
    process = subprocess.Popen(
        [sys.executable, str(job), "--api-key", c["option"], f"--hub_token={c['option']}",
         f"--tracker=https://me:{c['url']}@host/x?token={c['url']}", "-c", c["program"]],
        cwd="/", env=environment, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    while process.stdout.readline() != b"ready\n":
        pass
    return process


def test_nothing_leaves_but_what_is_named(rig: Callable[..., Rig], tmp_path: Path) -> None:
    host = rig()
    job = start(tmp_path)
    try:
        host.script(f"process 0 {job.pid} 1073741824 compute")
        host.wait(lambda: (host.value("gpuwhy_source_reads_total", source="stacks") or 0) > 6,
                  "stacks and locals")  # fmt: skip
        host.wait(lambda: any(e["run"] == "a-run-that-may-be-seen" for e in host.entries()), "run")
        seen = {path: host.get(path) for path in (
            "/metrics", "/", "/api/v1/verdicts", "/api/v1/processes", "/api/v1/history",
        )}  # fmt: skip
        seen["recording"] = recorded(host, tmp_path / "a.gpuwhy.gz")
        seen["log"] = host.tail()
    finally:
        job.kill()
        job.wait()
    assert "a-run-that-may-be-seen" in seen["/metrics"], "the run is shown"
    assert '"step"' in seen["recording"], "and so is the step, from the job's locals"
    assert "--api-key ***" in seen["/api/v1/processes"]
    for where, text in seen.items():
        left = [what for what, canary in CANARIES.items() if canary in text]
        assert not left, f"{where} shows the {left}"


def recorded(host: Rig, path: Path) -> str:
    process = subprocess.Popen(
        [str(host.python), "-m", "gpuwhy", "record", str(path), "--for", "12s"],
        env=host.environment, cwd="/", stderr=subprocess.PIPE,
    )  # fmt: skip
    message = process.communicate(timeout=180)[1]
    assert process.returncode == 0, message
    return gzip.decompress(path.read_bytes()).decode()
