"""``gpuwhy trace`` on the command line: what is asked for, and every kind of bad input."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.evidence.traces.kineto_file import KinetoFile, busy_steps
from tests.evidence.traces.nsys_file import steps
from tests.evidence.traces.test_ncu import DETAILS

from gpuwhy.cli import main

Output = pytest.CaptureFixture[str]


def test_text(tmp_path: Path, capsys: Output) -> None:
    assert main(["trace", str(busy_steps(wait=1_000.0).write(tmp_path / "a.json.gz"))]) == 0
    shown = capsys.readouterr().out
    assert "waiting for the input pipeline" in shown
    for title in ("Steps", "Who the idle GPU waited for", "Kernels by duration"):
        assert title in shown


def test_json_has_the_objects_of_diagnose(tmp_path: Path, capsys: Output) -> None:
    files = [busy_steps(rank=r).write(tmp_path / f"rank{r}.json") for r in (1, 0)]
    assert main(["trace", "--json", *map(str, files)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == 1
    assert [entry["rank"] for entry in made["ranks"]] == [0, 1]
    wanted = {"gpu", "uuid", "mig", "run", "rank", "cause", "causes", "accounts", "cannot_see"}
    assert wanted <= set(made["ranks"][0])
    assert {"steps", "waits", "kernels", "launches"} <= set(made["tables"])
    for table in made["tables"].values():
        assert table["rows"]


def test_html(tmp_path: Path, capsys: Output) -> None:
    page = tmp_path / "report.html"
    trace = busy_steps().write(tmp_path / "a.json")
    assert main(["trace", str(trace), "--html", str(page)]) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert main(["trace", str(trace), "--html", str(tmp_path / "no" / "x.html")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_a_full_disk_leaves_the_older_page(tmp_path: Path, capsys: Output) -> None:
    page = tmp_path / "report.html"
    page.write_text("older")
    trace = busy_steps().write(tmp_path / "a.json")
    command = f"ulimit -f 1; exec {sys.executable} -m gpuwhy trace {trace} --html {page}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot write" in done.stderr and "choose a path with room" in done.stderr
    assert page.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "a.json"}
    assert main(["trace", str(trace), "--html", "/dev/full"]) == 1
    assert "No space left" in capsys.readouterr().err


def test_single_kernels(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "kernels.csv").write_text(DETAILS)
    assert main(["trace", str(tmp_path / "kernels.csv")]) == 0
    assert "compute-bound" in capsys.readouterr().out


def test_two_kinds_at_once(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "kernels.csv").write_text(DETAILS)
    trace = busy_steps().write(tmp_path / "a.json")
    assert main(["trace", str(trace), str(tmp_path / "kernels.csv")]) == 2
    assert "one kind at a time" in capsys.readouterr().err


def _bytes(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "bad.json"
        path.write_bytes(content)
        return path

    return make


def _truncated(folder: Path) -> Path:
    return _bytes(busy_steps().text().encode()[:-300])(folder)


def _truncated_gzip(folder: Path) -> Path:
    return _bytes(gzip.compress(busy_steps().text().encode())[:-200])(folder)


def _zipped_twice(folder: Path) -> Path:
    return _bytes(gzip.compress(gzip.compress(busy_steps().text().encode())))(folder)


def _utf16(folder: Path) -> Path:
    return _bytes(busy_steps().text().encode("utf-16"))(folder)


def _utf32(folder: Path) -> Path:
    return _bytes(busy_steps().text().encode("utf-32-be"))(folder)


def _zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "bad.json", "w") as archive:
        archive.writestr("trace.json", busy_steps().text())
    return folder / "bad.json"


def _host_only(folder: Path) -> Path:
    made = KinetoFile()
    made.span("aten::add", 1, 1)
    return made.write(folder / "bad.json")


def _cut_database(folder: Path) -> Path:
    path = steps(folder / "bad.sqlite")
    path.write_bytes(path.read_bytes()[:5_000])
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_bytes(b""), "is empty"),
        (_bytes(gzip.compress(b"")), "holds nothing once unpacked"),
        (_bytes(b"\x7fELF" + bytes(100)), "is no trace"),
        (_bytes(b"hello"), "is no trace"),
        (_bytes(b'{"a": 1}'), "no list traceEvents"),
        (_bytes(b"\x1f\x8b" + bytes(40)), "damaged gzip"),
        (_truncated, "breaks off"),
        (_truncated_gzip, "breaks off"),
        (_zipped_twice, "gzip within gzip"),
        (_utf16, "UTF-16"),
        (_utf32, "UTF-16 or UTF-32"),
        (_zip, "zip archive"),
        (_host_only, "no GPU events"),
        (_cut_database, "damaged"),
        (lambda folder: folder / "x.qdstrm", "QdstrmImporter"),
        (lambda folder: folder, "Is a directory"),
        (lambda folder: folder / "absent.json", "No such file"),
    ],
)
def test_bad_input_is_one_clear_message_and_status_2(
    make: Callable[[Path], Path], message: str, tmp_path: Path, capsys: Output
) -> None:
    assert main(["trace", str(make(tmp_path))]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert told.err.startswith("gpuwhy: ")
    assert told.out == ""


def test_a_recording_is_sent_to_diagnose(recordings: Path, capsys: Output) -> None:
    assert main(["trace", str(recordings / "healthy.gpuwhy.gz")]) == 2
    assert "gpuwhy diagnose --recording" in capsys.readouterr().err
