"""``gpuwhy diagnose --recording``: the verdict of a file, and every file that is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gpuwhy.cli import main

Output = pytest.CaptureFixture[str]


def diagnose(*arguments: str | Path) -> int:
    return main(["diagnose", *map(str, arguments)])


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt") as file:
        return file.read().splitlines()


def write(path: Path, rows: list[str]) -> Path:
    with gzip.open(path, "wt") as file:
        file.write("".join(row + "\n" for row in rows))
    return path


def test_the_verdict_in_words(recordings: Path, capsys: Output) -> None:
    assert diagnose("--recording", recordings / "data_slow.gpuwhy.gz") == 0
    shown = capsys.readouterr().out
    assert "GPU 0: waiting for the input pipeline" in shown
    assert "tokenize" in shown
    assert f"from {recordings}" in shown
    assert "\x1b" not in shown, "no colours where there is no terminal"


def test_the_verdict_as_json(recordings: Path, capsys: Output) -> None:
    assert diagnose("--json", "--recording", recordings / "healthy.gpuwhy.gz") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == 1
    assert made["gpus"][0]["cause"] == "none"
    assert sum(made["gpus"][0]["accounts"].values()) == pytest.approx(1, abs=0.01)


def length(made: dict[str, dict[str, str]]) -> float:
    from gpuwhy.evidence.report import _length

    return _length(made["window"])


def test_for_takes_the_last_of_a_recording(recordings: Path, capsys: Output) -> None:
    file = recordings / "data_slow.gpuwhy.gz"
    diagnose("--json", "--recording", file)
    whole = json.loads(capsys.readouterr().out)
    diagnose("--json", "--for", "5s", "--recording", file)
    last = json.loads(capsys.readouterr().out)
    assert length(last) == 5 < length(whole)
    assert last["window"]["end"] == whole["window"]["end"]


def test_one_gpu_by_index_or_uuid(recordings: Path, capsys: Output) -> None:
    file = recordings / "ddp_straggler.gpuwhy.gz"
    diagnose("--json", "--recording", file)
    both = json.loads(capsys.readouterr().out)
    assert [gpu["gpu"] for gpu in both["gpus"]] == [0, 1]
    uuid = both["gpus"][1]["uuid"]
    for name in ("1", uuid):
        assert diagnose("--json", "--gpu", name, "--recording", file) == 0
        one = json.loads(capsys.readouterr().out)
        assert [gpu["uuid"] for gpu in one["gpus"]] == [uuid]
        assert len(one["runs"]) == 1
    assert diagnose("--gpu", "7", "--recording", file) == 1
    assert f"no GPU 7 in sight; seen: 0 ({both['gpus'][0]['uuid']}), 1" in capsys.readouterr().err


def test_a_recording_of_nothing_is_status_1(
    recordings: Path, tmp_path: Path, capsys: Output
) -> None:
    header = lines(recordings / "healthy.gpuwhy.gz")[0]
    assert diagnose("--recording", write(tmp_path / "empty.gpuwhy.gz", [header])) == 1
    assert "nothing to diagnose" in capsys.readouterr().err


def damaged(tmp_path: Path, recordings: Path) -> dict[str, Path]:
    """Files that are no good recording, by what is wrong with them."""
    good = recordings / "healthy.gpuwhy.gz"
    rows = lines(good)
    cut = tmp_path / "cut.gpuwhy.gz"
    cut.write_bytes(good.read_bytes()[:-2000])
    foreign = tmp_path / "foreign.gpuwhy.gz"
    foreign.write_bytes(b"PK\x03\x04 something else")
    newer = json.dumps({**json.loads(rows[0]), "version": 99})
    return {
        "missing": tmp_path / "missing.gpuwhy.gz",
        "folder": tmp_path,
        "cut": cut,
        "foreign": foreign,
        "newer": write(tmp_path / "newer.gpuwhy.gz", [newer, *rows[1:]]),
        "no-json": write(tmp_path / "nojson.gpuwhy.gz", [*rows[:5], "{", *rows[5:]]),
        "no-header": write(tmp_path / "noheader.gpuwhy.gz", rows[1:]),
        "text": write(tmp_path / "text.gpuwhy.gz", ["hello"]),
        "other-fields": write(
            tmp_path / "fields.gpuwhy.gz",
            [rows[0], '{"kind": "gpu_info", "t": 1, "uuid": {}}'],
        ),
    }


DAMAGE = "missing folder cut foreign newer no-json no-header text other-fields"


@pytest.mark.parametrize("name", DAMAGE.split())
def test_a_bad_recording_is_status_2_and_named(
    name: str, recordings: Path, tmp_path: Path, capsys: Output
) -> None:
    path = damaged(tmp_path, recordings)[name]
    assert diagnose("--recording", path) == 2
    told = capsys.readouterr()
    assert str(path) in told.err
    assert told.out == ""
    assert "unexpected" not in told.err
    assert "Traceback" not in told.err
