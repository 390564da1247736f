"""The HTML report: one file, nothing loaded, foreign names harmless."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.evidence.traces.kineto_file import busy_steps
from tests.evidence.traces.test_ncu import DETAILS

from gpuwhy.evidence.imports import logs
from gpuwhy.evidence.traces import html, kineto, ncu, ncu_csv
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.gpu import gpus_of
from gpuwhy.evidence.traces.timeline import slices

NASTY = "</script><script>alert(1)</script>\x1b[2J\" onload='x'"


class Checker(HTMLParser):
    """Collects tags and attributes; open tags must be closed in order."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def document(tmp_path: Path) -> str:
    made = busy_steps(wait=1_000.0)
    for event in made.events:
        if event["cat"] == "kernel":
            event["name"] = NASTY
    path = made.write(tmp_path / "a.json")
    return html.render(analyse([kineto.read(path)]), [f"{NASTY}.json"])


@pytest.fixture
def of_kernels() -> str:
    table = ncu.table(ncu_csv.parse(DETAILS.replace("gemm", "<script>"), "a.csv"))
    return html.of_kernels(table, [f"{NASTY}.csv"])


@pytest.fixture
def of_logs(tmp_path: Path) -> str:
    path = tmp_path / "smi.csv"
    head = "timestamp, index, uuid, utilization.gpu [%], power.draw [W], memory.used [MiB]"
    line = "2026/07/14 08:12:{:02}.696, 0, <script>, 40 %, 300.00 W, 19818 MiB"
    path.write_text("\n".join([head, *(line.format(second) for second in range(10, 30))]))
    return html.of_verdict(logs.diagnose([(path, "nvidia-smi")]), [f"{NASTY}.csv"])


@pytest.fixture(params=["document", "of_kernels", "of_logs"])
def any_document(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_it_is_whole_and_loads_nothing(any_document: str) -> None:
    document = any_document
    checker = Checker()
    checker.feed(document)
    assert checker.open == []
    assert not checker.tags & {"script", "link", "img", "iframe", "object", "form"}
    addresses = [v for n, v in checker.attributes if n in ("src", "href", "action")]
    assert addresses == []
    assert not re.search(r"url\(|@import|https?://", document)
    assert "default-src 'none'" in document


def test_foreign_names_are_text(any_document: str) -> None:
    assert "<script" not in any_document
    assert "\x1b" not in any_document
    assert "&lt;/script&gt;" in any_document


def test_kernels_are_told_with_what_to_do(of_kernels: str) -> None:
    assert "bound by compute" in of_kernels
    assert "Next: Use tensor cores" in of_kernels


def test_logs_are_told_with_what_they_cannot_show(of_logs: str) -> None:
    assert "2026-07-14T08:12:10Z" in of_logs
    assert "no Python stacks" in of_logs


def test_times_of_day(document: str) -> None:
    """Waits and steps stand by UTC, so that they can be found on the dashboards' axis."""
    assert document.count(">UTC</th>") == 2
    assert ">22:13:20.0" in document


def test_it_prints_and_says_the_verdict(document: str) -> None:
    assert "@media print" in document
    assert "waiting for the input pipeline" in document
    assert document.count("<svg") == 1


def test_each_slice_of_the_picture_is_whole(tmp_path: Path) -> None:
    gpu = gpus_of(kineto.read(busy_steps(wait=700.0).write(tmp_path / "a.json")))[0]
    shares = slices(gpu, 100)
    assert next(iter(shares)) == "compute"
    assert sum(shares.values(), np.zeros(100)) == pytest.approx(1.0)
