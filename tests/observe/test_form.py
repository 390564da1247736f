"""What comes from a file is held against the contract before anything relies on it."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from gpuwhy import cli
from gpuwhy.observe import form, recording

RECORDINGS = sorted(Path(__file__).parents[1].joinpath("recordings").glob("*.gpuwhy.gz"))
T = 1_700_000_000.0
HEADER = {"format": "gpuwhy-recording", "version": 1, "hardware": {"gpus": []}}
GPM = {"t": T, "kind": "gpm", "uuid": "GPU-1", "dt": 1.0, "graphics": 0.5}
TABLE = {"pid": 7, "ppid": 1, "role": "rank", "run": "r"}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_real_recordings_are_of_the_form(path: Path) -> None:
    assert sum(1 for _ in recording.read(path)[1]) > 100


@pytest.mark.parametrize(
    ("observation", "said"),
    [
        ({**GPM, "graphics": 7}, "gpm.graphics is out of range (0 to 1.001)"),
        ({**GPM, "graphics": True}, "gpm.graphics is no number"),
        ({**GPM, "sm": 10**400}, "gpm.sm is out of range"),
        ({**GPM, "uuid": ["GPU-1"]}, "gpm.uuid is no text"),
        ({"t": T, "kind": "gpm", "dt": 1.0}, "gpm has no uuid"),
        ({**GPM, "t": 1e300}, "gpm.t is out of range"),
        ({"t": -1.0, "kind": "of tomorrow"}, "of tomorrow.t is out of range"),
        (
            {"t": T, "kind": "ring", "uuid": "G", "ring": "power", "dt": 0, "values": []},
            "ring.dt is out of range (0.001 to 1e+06)",
        ),
        (
            {"t": T, "kind": "ring", "uuid": "G", "ring": "power", "dt": 0.1, "values": [1, "x"]},
            "ring.values[1] is no number",
        ),
        (
            {"t": T, "kind": "ring", "uuid": "G", "ring": "mood", "dt": 0.1, "values": []},
            "ring.ring is none of utilization, memory_utilization, power",
        ),
        ({"t": T, "kind": "processes", "processes": [1]}, "processes.processes[0] is no object"),
        (
            {"t": T, "kind": "processes", "processes": [{**TABLE, "cpu": [None]}]},
            "processes.processes[0].cpu is no number",
        ),
        (
            {"t": T, "kind": "processes", "processes": [{"role": "rank"}]},
            "processes.processes[0] has no pid",
        ),
        (
            {"t": T, "kind": "sm_share", "uuid": "G", "dt": 1, "shares": [[7]]},
            "sm_share.shares[0] is no list of 2 values",
        ),
        (
            {"t": T, "kind": "stack", "pid": 7, "dt": 0, "frames": [["f", None, 3]]},
            "stack.frames[0][1] is no text",
        ),
        ({"t": T, "kind": "host", "psi": {"cpu_some": "x"}}, "host.psi.cpu_some is no number"),
        ({"t": T, "kind": "gpu_info", "uuid": "G", "gpu": ["a"]}, "gpu_info.gpu is no whole"),
    ],
)
def test_names_kind_and_field(observation: dict[str, Any], said: str) -> None:
    found = form.wrong(observation)
    assert found is not None and found.startswith(said)


@pytest.mark.parametrize(
    "observation",
    [
        GPM,
        {**GPM, "of_tomorrow": object},
        {"t": T, "kind": "of tomorrow", "uuid": 3},
        {"t": T, "kind": "processes", "processes": [{**TABLE, "of_tomorrow": []}]},
        {"t": T, "kind": "stack", "pid": 7, "dt": 0, "frames": [["f", "a.py", 3, "scalar"]]},
        {"t": T, "kind": "stack", "pid": 7, "dt": 0, "frames": 12},
        {"t": T, "kind": "ring", "uuid": "G", "ring": "power", "dt": 0.02, "values": [1.5, None]},
    ],
)
def test_passes_what_is_good_or_newer(observation: dict[str, Any]) -> None:
    assert form.wrong(observation) is None


def _diagnosed(path: Path, lines: list[dict[str, Any]]) -> tuple[int, str]:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = cli.main(["diagnose", "--json", "--recording", str(path)])
    return status, said.getvalue()


@pytest.mark.parametrize(
    "wrong",
    [
        {**GPM, "t": 10**400},
        {**GPM, "graphics": -1e300},
        {"t": T, "kind": "gpu_processes", "uuid": "GPU-1", "processes": {"a": 1}},
        {"kind": "frame", "id": 0, "frame": [["f"], 1, "x"]},
        {"t": T, "kind": "stack", "pid": 7, "dt": 0, "frames": "here"},
        {"t": T, "kind": "source", "source": {}, "up": True},
    ],
)
def test_a_wrong_observation_is_bad_input_with_its_line(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    path = tmp_path / "edited.gpuwhy.gz"
    status, said = _diagnosed(path, [HEADER, GPM, wrong])
    assert status == 2
    assert f"{path}, line 3 is damaged" in said
    assert "unexpected" not in said


@pytest.mark.parametrize("gpus", [7, [1], [{"gpu": 0}], [{"uuid": "G", "gpu": "first"}]])
def test_a_wrong_header_is_bad_input(tmp_path: Path, gpus: Any) -> None:
    path = tmp_path / "edited.gpuwhy.gz"
    status, said = _diagnosed(path, [{**HEADER, "hardware": {"gpus": gpus}}, GPM])
    assert status == 2
    assert f"{path}, line 1: hardware" in said
