"""The first page: verdicts in words, and nothing of a job becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from tests.expose.samples import RECORDINGS, RUN, VERDICTS, T, replay, view

from gpuwhy.expose import page
from gpuwhy.expose.notifications import Notification
from gpuwhy.expose.view import Self, View

EVIL = "<script>alert('x')</script>\"&<img src=x onerror=y>"


class Checker(HTMLParser):
    """Elements are closed in order; what is loaded and linked is noted."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on") and name != "style"
            if name in ("href", "src"):
                self.links.append(value or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    assert not checker.open
    assert not checker.tags & {"script", "img", "iframe", "style"}
    assert not [link for link in checker.links if ":" in link or link.startswith("/")]
    return checker


def test_a_verdict_is_told_in_words_with_evidence_and_next_action() -> None:
    html = page.render(view(), [])
    check(html)
    for part in (
        "waiting for the input pipeline",
        "the main thread waits in next(loader) 65 % of the time",
        "[stacks]",
        "Text.tokenize",
        "/job/data.py:24",
        "Tokenise once, ahead of training.",
        "47 % of its time, 1.17 an hour at 2.5 a GPU-hour; 90 % sure",
        "Starved by its loader.",
        "What cannot be seen",
        "mount /sys/fs/cgroup",
        "UTC",
    ):
        assert part in html, part
    assert "Recorded" not in html


def test_a_recording_is_marked_as_such() -> None:
    html = page.render(view(about=Self(recorded=True)), [])
    assert "Recorded: this was observed earlier" in html
    assert "<title>gpuwhy (recorded)</title>" in html


def test_nothing_of_a_job_or_a_notification_becomes_markup() -> None:
    entry = VERDICTS["gpus"][0]
    cause = {
        **entry["causes"][0],
        "cause": EVIL,
        "reason": EVIL,
        "function": {"name": EVIL, "file": EVIL, "line": 1},
        "next_action": EVIL,
        "evidence": [{"text": EVIL, "value": 1, "unit": "", "source": EVIL}],
    }
    evil = {
        **entry,
        "run": EVIL,
        "cause": EVIL,
        "causes": [cause],
        "mig": EVIL,
        "accounts": {EVIL: 1.0},
        "cannot_see": [{"signal": EVIL, "why": EVIL, "remedy": EVIL}],
    }
    verdicts = {**VERDICTS, "gpus": [evil], "runs": [{"run": EVIL, "summary": EVIL}]}
    source = {"t": T, "source": "nvml", "up": False, "why": EVIL, "remedy": EVIL}
    shown = view(verdicts=verdicts, facts={"source": {"nvml": source}})
    html = page.render(shown, [Notification(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL)])
    check(html)
    assert "<script>alert" not in html and "<img" not in html
    assert "&lt;script&gt;alert" in html


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (View(now=T), "Nothing has been observed yet"),
        (View(now=T, last_t=T - 60), "Nothing has been observed for more than ten seconds"),
        (view(verdicts={"gpus": [], "runs": []}), "No GPU and no training job is in sight"),
    ],
)
def test_where_there_is_no_verdict_the_page_says_why(shown: View, said: str) -> None:
    html = page.render(shown, [])
    check(html)
    assert said in html


def test_a_gpu_without_a_run_and_a_run_without_a_gpu() -> None:
    entry = VERDICTS["gpus"][0]
    free = {**entry, "run": None, "rank": None, "cause": "none", "causes": []}
    blind = {**entry, "gpu": None, "uuid": None, "accounts": {}}
    html = page.render(view(verdicts={**VERDICTS, "gpus": [free, blind]}), [])
    check(html)
    assert "GPU 0: no training job holds it" in html
    assert "No GPU in sight, rank 0" in html
    assert f"Run <code>{RUN}</code>" in html


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.gpuwhy.gz")), ids=lambda p: p.name)
def test_every_recording_makes_a_whole_page(path: object) -> None:
    name = str(getattr(path, "name", "")).removesuffix(".gpuwhy.gz")
    shown = replay(name).view()
    html = page.render(shown, [])
    check(html)
    assert shown.verdicts is not None
    runs = {entry["run"] for entry in shown.verdicts["gpus"]}
    assert runs and all(f"Run <code>{run}</code>" in html for run in runs)
