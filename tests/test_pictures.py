"""The command that makes the documents' pictures: on the real page, and with what draws nothing."""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from pathlib import Path

import pytest
from scripts import pictures
from scripts.stack.packages import ROOT
from tests.expose import browser

DRAWER = """#!{python}
import os, sys, urllib.parse, urllib.request
from pathlib import Path
dashboard, begin, end, out = sys.argv[1:]
run = dict(urllib.parse.parse_qsl(os.environ["VARS"]))["run"]
query = urllib.parse.urlencode({{"query": f'gpuwhy_run_gpu_held_seconds_total{{{{run="{{run}}"}}}}',
                                 "time": end}})
answer = urllib.request.urlopen(f"{{os.environ['PROM']}}/api/v1/query?{{query}}").read()
assert b'"result":[]' not in answer, answer
assert Path(dashboard).is_file() and float(begin) < float(end)
Path(out).write_bytes(Path({png!r}).read_bytes())
"""
"""Draws nothing, but asks for the run that it is to draw."""


def png(width: int, height: int, interlaced: int = 0) -> bytes:
    """White, 8 bits, RGB."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)
    lines = zlib.compress((b"\0" + b"\xff" * 3 * width) * height)
    chunks = ((b"IHDR", head), (b"IDAT", lines), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(pictures._chunk(kind, data) for kind, data in chunks)


def size(data: bytes) -> tuple[int, int]:
    """Width and height, as the head of a PNG says."""
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def test_the_top_of_a_picture_is_a_picture() -> None:
    assert size(pictures.top(png(30, 20), 7)) == (30, 7)
    assert size(pictures.top(png(30, 20), 99)) == (30, 20)
    with pytest.raises(ValueError, match="plain PNG"):
        pictures.top(png(30, 20, interlaced=1), 7)


@pytest.mark.parametrize("name", pictures.DASHBOARDS)
def test_pictures_are_of_dashboards_that_have_these_variables(name: str) -> None:
    wanted = pictures.DASHBOARDS[name]
    path = ROOT / "grafana/dashboards" / wanted.file
    variables = json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]
    given = {pair.partition("=")[0] for pair in wanted.variables.split("&")}
    assert given <= {variable["name"] for variable in variables}


def test_the_page_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if browser.COMMAND is None:
        pytest.skip("no browser: apt-get install chromium")
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    monkeypatch.setattr(pictures, "PAGE_S", 60)
    monkeypatch.setattr(pictures, "PAGES", {"page-data": pictures.PAGES["page-data"]})
    assert pictures.main([]) == 0
    wanted = pictures.PAGES["page-data"]
    assert size((tmp_path / "page-data.png").read_bytes()) == (wanted.width, wanted.height)


def test_a_dashboard_is_drawn_on_the_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, program = tmp_path / "drawn", tmp_path / "draw"
    drawn.write_bytes(png(1400, 2000))
    program.write_text(DRAWER.format(python=sys.executable, png=os.fspath(drawn)))
    program.chmod(0o755)
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    pictures.dashboards(program)
    for name, wanted in pictures.DASHBOARDS.items():
        assert size((tmp_path / f"{name}.png").read_bytes()) == (1400, wanted.height)
