"""The first page: verdicts in words, and nothing of a job becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

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
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on") and name != "style"
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")
        if tag not in self.VOID:
            self.open.append(tag)

        if tag == "script":
            assert dict(attrs).get("src"), "no script but files of our own"

    def handle_data(self, data: str) -> None:
        assert not (self.open and self.open[-1] == "script" and data.strip())

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    assert not checker.open
    assert not checker.tags & {"img", "iframe", "style", "object", "embed"}
    assert not [link for link in checker.links if ":" in link or link.startswith("/")]
    assert len(checker.ids) == len(set(checker.ids))
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
        "47 % of the time, 29 of 61 GPU-seconds; 1.17 an hour at 2.5 a GPU-hour; confidence 0.90",
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
    assert all(tag.startswith('<script src="static/') for tag in re.findall("<script[^>]*>", html))
    assert "&lt;script&gt;alert" in html


def test_a_notification_has_its_lines() -> None:
    told = Notification("", "firing", "GPUDataStarved", "warning", "r", "short", "one\nNext: two")
    html = page.render(view(), [told])
    check(html)
    assert "short<br>one<br>Next: two</li>" in html


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
    assert "GPU 0: no training job holds it." in html
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


def entry(gpu: int, run: str | None, cause: str, lost: float = 0.5) -> dict[str, Any]:
    first = {**VERDICTS["gpus"][0]["causes"][0], "cause": cause, "lost_ratio": lost}
    return {
        **VERDICTS["gpus"][0],
        "gpu": gpu,
        "uuid": f"GPU-{gpu}",
        "run": run,
        "rank": None if run is None else gpu,
        "cause": cause,
        "causes": [] if cause == "none" else [first],
        "accounts": {"compute": 1.0} if cause == "none" else {"compute": 1 - lost, cause: lost},
    }


def judged(*entries: dict[str, Any]) -> View:
    runs = dict.fromkeys(e["run"] for e in entries if e["run"] is not None)
    summaries = [{"run": run, "ranks": [], "cause": "none", "summary": ""} for run in runs]
    return view(verdicts={**VERDICTS, "gpus": list(entries), "runs": summaries})


def test_gpus_with_the_same_verdict_are_told_once_with_the_cost_of_all() -> None:
    entries = [entry(gpu, "job", "data", 0.2 + gpu / 10) for gpu in range(4)]
    html = page.render(judged(*entries, entry(4, "job", "none")), [])
    check(html)
    assert html.count("waiting for the input pipeline") == 1
    assert "GPUs 0-3, ranks 0-3: waiting for the input pipeline" in html
    assert "Evidence of GPU 3, rank 3." in html
    assert "35 % of the time, 85 of 244 GPU-seconds; 3.50 an hour" in html
    assert "5 GPUs: 4 data, 1 healthy" in html


def test_the_worst_run_comes_first_and_of_many_the_others_are_folded_and_counted() -> None:
    entries = [entry(n, f"job-{n}", "none" if n % 2 else "data", n / 20) for n in range(8)]
    html = page.render(judged(*entries), [])
    check(html)
    order = re.findall("<h3>Run <code>(.*?)</code>", html)
    assert order[:4] == ["job-6", "job-4", "job-2", "job-0"]
    assert "<summary>5 more: 1 data, 4 healthy</summary>" in html
    assert html.index("<summary>5 more") < html.index("<h3>Run <code>job-0")


@pytest.mark.parametrize("count", [1, 2, 8, 64])
def test_each_gpu_of_several_has_a_tile_that_leads_to_its_verdict(count: int) -> None:
    html = page.render(judged(*(entry(n, f"job-{n}", "data") for n in range(count))), [])
    checker = check(html)
    tiles = [link for link in checker.links if link.startswith("#run-")]
    assert len(tiles) == (0 if count == 1 else count)
    assert {tile[1:] for tile in tiles} <= set(checker.ids)


def test_a_small_difference_does_not_change_the_order_of_what_is_read() -> None:
    for first, second in ((0.51, 0.49), (0.49, 0.51)):
        html = page.render(judged(entry(0, "a", "data", first), entry(1, "b", "host", second)), [])
        assert re.findall("<h3>Run <code>(.*?)</code>", html) == ["a", "b"]


def test_what_is_only_information_is_no_loss() -> None:
    found = entry(0, "job", "throttle")
    found["causes"][0]["reason"] = "at-default-limit"
    html = page.render(judged(found, entry(1, None, "none")), [])
    assert '<article class="verdict well">' in html
    assert "2 GPUs: 1 healthy, 1 free" in html


def test_hot_functions_of_rank_and_workers() -> None:
    html = page.render(view(), [])
    table = html[html.index("Hot functions") : html.index("What cannot be seen")]
    assert "<td>90 %</td>" in table and "workers: make batches" in table
    assert "<td>60 %</td>" in table and "rank: waits for the loader" in table
    assert "/job/data.py:24" in table


def test_a_host_without_nvml_says_why_and_what_mends_it() -> None:
    source = {"t": T, "source": "nvml", "up": False, "why": "no libnvidia-ml", "remedy": "mount it"}
    html = page.render(view(facts={"source": {"nvml": source}}), [])
    check(html)
    assert "<td>down</td><td>no libnvidia-ml. <strong>Remedy:</strong> mount it</td>" in html


def test_what_takes_several_sources_is_said_once() -> None:
    down = {"t": T, "up": False, "why": "no libnvidia-ml", "remedy": "mount it"}
    reports = {name: {**down, "source": name} for name in ("nvml", "gpm")}
    html = page.render(view(facts={"source": reports}), [])
    check(html)
    assert '<th scope="row">nvml, gpm</th><td>down</td>' in html


def test_what_one_gpu_does_not_give_stands_with_the_sources() -> None:
    whole = {"t": T, "source": "nvml", "up": True}
    part = {**whole, "uuid": "GPU-1", "missing": ["power_w", "reasons"]}
    html = page.render(view(facts={"source": {"nvml": whole, "nvml/GPU-1": part}}), [])
    check(html)
    said = "GPU-1: no power_w, reasons. <strong>Remedy:</strong> if it was there before, see dmesg"
    assert f"<td>partly up</td><td>{said}</td>" in html
    part["why"] = "the driver gives it for no GPU in MIG mode"
    html = page.render(view(facts={"source": {"nvml": whole, "nvml/GPU-1": part}}), [])
    assert "no power_w, reasons: the driver gives it for no GPU in MIG mode</td>" in html


def test_scopes_are_queries_of_the_history_and_the_worst_run_is_chosen() -> None:
    html = page.render(judged(entry(0, "a", "none"), entry(1, "b&c", "data")), [])
    options = re.findall('<option value="([^"]*)"( selected)?>([^<]*)', html)
    chosen = [value for value, selected, _ in options if selected]
    assert chosen[0] == "run=b%26c"
    assert ("gpu=GPU-1", "", "GPU 1") in options and ("", "", "all GPUs of this host") in options


def test_flame_graphs_are_offered_only_where_they_can_be_taken() -> None:
    assert "--web.token-file FILE" in page.render(view(), [])
    html = page.render(view(), [], profiling=True)
    check(html)
    assert '<option value="100">job-7, rank 0: train.py, PID 100</option>' in html
    recorded = page.render(view(about=Self(recorded=True)), [], profiling=True)
    assert "<form" not in recorded and "recorded job cannot be asked" in recorded
