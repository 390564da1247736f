"""The HTML report: one file, nothing loaded, foreign names harmless."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.evidence.traces.kineto_file import busy_steps

from gpuwhy.evidence.traces import html, kineto
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


def test_it_is_whole_and_loads_nothing(document: str) -> None:
    checker = Checker()
    checker.feed(document)
    assert checker.open == []
    assert not checker.tags & {"script", "link", "img", "iframe", "object", "form"}
    addresses = [v for n, v in checker.attributes if n in ("src", "href", "action")]
    assert addresses == []
    assert not re.search(r"url\(|@import|https?://", document)
    assert "default-src 'none'" in document


def test_foreign_names_are_text(document: str) -> None:
    assert "<script" not in document
    assert "\x1b" not in document
    assert "&lt;/script&gt;" in document


def test_it_prints_and_says_the_verdict(document: str) -> None:
    assert "@media print" in document
    assert "waiting for the input pipeline" in document
    assert document.count("<svg") == 1


def test_each_slice_of_the_picture_is_whole(tmp_path: Path) -> None:
    gpu = gpus_of(kineto.read(busy_steps(wait=700.0).write(tmp_path / "a.json")))[0]
    shares = slices(gpu, 100)
    assert next(iter(shares)) == "compute"
    assert sum(shares.values(), np.zeros(100)) == pytest.approx(1.0)
