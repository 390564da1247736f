"""What a leaf line calls, and what may be read to find out."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpuwhy.observe.observation import CALLS
from gpuwhy.observe.source_text import SourceText, classify, read_line, resolve


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("total += loss.item()", "scalar"),
        ("values = logits.argmax(-1).tolist()", "scalar"),
        ("running += float(loss)", "scalar"),
        ('running += float(out["loss"])', "scalar"),
        ("batch = batch.to(device, non_blocking=True)", "copy_to_device"),
        ("x, y = x.cuda(), y.cuda()", "copy_to_device"),
        ('model = model.to("cuda:0")', "copy_to_device"),
        ("x = x.to(device=device, dtype=torch.float16)", "copy_to_device"),
        ("array = out.detach().cpu().numpy()", "copy_to_host"),
        ('x = x.to("cpu")', "copy_to_host"),
        ("x = x.to(device='cpu')", "copy_to_host"),
        ("torch.cuda.synchronize()", "synchronize"),
        ("end_event.synchronize()", "synchronize"),
        ("dist.all_reduce(grad)", "collective"),
        ("torch.distributed.barrier()", "collective"),
        ("work.wait()", "collective"),
        ("time.sleep(0.1)", "sleep"),
        ("gc.collect()", "gc"),
        ("for i in range(10):", None),
        ("x = x.to(torch.float16)", None),
        ("x = x.to(dtype=torch.bfloat16)", None),
        ("x = x.to(other.dtype)", None),
        ("# loss.item() was here", None),
        ('print("call loss.item() later")', None),
        ("x = f(x)  # then x.cuda()", None),
        ("loss = model(x.to(device)).item()", None),  # two kinds: which one it is cannot be told
        ("share = float(done / total)", None),
        ("items = d.items()", None),
        ("", None),
    ],
)
def test_classify(line: str, kind: str | None) -> None:
    assert classify(line) == kind
    assert kind is None or kind in CALLS


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """A /proc/PID of a job in a container: ``root`` is its own file system."""
    process = tmp_path / "proc" / "42"
    (process / "root" / "job").mkdir(parents=True)
    (process / "root" / "job" / "train.py").write_text("a = 1\nb = loss.item()\n")
    (process / "cwd").symlink_to("/job")
    return process


def test_lines_are_those_of_the_jobs_own_root(process: Path) -> None:
    now = time.time()
    assert read_line(process, "/job/train.py", 2, now) == "b = loss.item()"
    assert read_line(process, "train.py", 1, now) == "a = 1"
    for line in (0, 4, 10**9, -1):
        assert read_line(process, "/job/train.py", line, now) is None
    assert read_line(process, "/job/none.py", 1, now) is None
    assert read_line(process, "/etc/passwd", 1, now) is None, "the host's files are not the job's"


def test_links_stay_inside_the_jobs_root(process: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("x.item()\n")
    outside.touch()
    root = process / "root"
    (root / "job" / "absolute.py").symlink_to(outside)
    (root / "job" / "climbing.py").symlink_to("../" * 12 + str(outside))
    (root / "job" / "..data").symlink_to("v1")
    (root / "job" / "v1").mkdir()
    (root / "job" / "v1" / "mapped.py").write_text("x.cuda()\n")
    (root / "job" / "mapped.py").symlink_to("..data/mapped.py")  # a Kubernetes ConfigMap
    (root / "code").symlink_to("/job")
    (root / "job" / "loop.py").symlink_to("loop.py")
    now = time.time()
    assert read_line(process, "/job/absolute.py", 1, now) is None
    assert read_line(process, "/job/climbing.py", 1, now) is None
    assert read_line(process, "/job/loop.py", 1, now) is None
    assert read_line(process, "/job/mapped.py", 1, now) == "x.cuda()"
    assert read_line(process, "/code/train.py", 2, now) == "b = loss.item()"
    assert resolve(root, "/job/../../../job/train.py") == root / "job" / "train.py"


def test_only_regular_files_of_a_sane_size(process: Path) -> None:
    job = process / "root" / "job"
    os.mkfifo(job / "pipe.py")
    (job / "folder.py").mkdir()
    with (job / "huge.py").open("wb") as huge:
        huge.truncate(1 << 40)
    now = time.time()
    for name in ("pipe.py", "folder.py", "huge.py"):
        assert read_line(process, f"/job/{name}", 1, now) is None
    if os.geteuid() == 0:
        os.mknod(job / "zero.py", 0o20666, os.makedev(1, 5))
        assert read_line(process, "/job/zero.py", 1, now) is None


def test_a_file_changed_after_the_start_is_not_believed(process: Path) -> None:
    assert read_line(process, "/job/train.py", 2, time.time() - 3600) is None


def test_remembered_bounded_and_forgotten(process: Path) -> None:
    text = SourceText(process.parent)
    now = time.time()
    assert text.call(42, "/job/train.py", 2, now) == "scalar"
    (process / "root" / "job" / "train.py").unlink()
    assert text.call(42, "/job/train.py", 2, now) == "scalar"
    for line in range(10_000):
        text.call(42, "/job/train.py", line + 10, now)
    assert text.call(42, "/job/train.py", 2, now) is None, "the oldest lines are dropped"
    text.forget(42)
    assert text.call(42, "/job/train.py", 2, now) is None


@pytest.mark.parametrize(
    "file",
    ["/usr/lib/python3.11/threading.py", "<string>", "/x/site-packages/torch/nn/functional.py",
     "/job/native.so", "/dev/zero"],
)  # fmt: skip
def test_libraries_and_other_files_are_not_opened(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("gpuwhy.observe.source_text.read_line", fail)
    assert SourceText(tmp_path).call(1, file, 1, time.time()) is None
