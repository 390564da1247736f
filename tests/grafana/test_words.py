"""Whatever the exporter may answer has words and a colour in the panels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from grafana.source import palette, words
from grafana.source.input_pipeline import DATA
from tests.alerting.replay import RECORDINGS

from gpuwhy.expose.families.verdict import ANSWERS
from gpuwhy.ledger.accounts import ACCOUNTS, CAUSES, REASONS
from gpuwhy.observe.observation import SOURCES
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.phase_rules import PHASES as PHASE_NAMES


def test_accounts_and_causes_have_colour_and_words() -> None:
    assert tuple(sorted(palette.ACCOUNTS)) == tuple(sorted(ACCOUNTS))
    assert set(words.CAUSES) == {*CAUSES, "none", "unknown"} == set(ANSWERS)
    assert set(ANSWERS) <= set(palette.CAUSES)


@pytest.mark.parametrize(
    ("answer", "starts"),
    [
        ("throttle/at-default-limit", "None"),
        ("throttle/thermal", "Lowered"),
        ("none/", "None"),
        ("data/waiting", "Input"),
        ("host/straggler", "Host"),
    ],
)
def test_the_factory_limit_is_information(answer: str, starts: str) -> None:
    """As Grafana maps: the first pattern that fits all of the text."""
    results = [m["options"] for m in words.answers()]
    first = next(o for o in results if re.fullmatch(o["pattern"], answer))
    assert first["result"]["text"].startswith(starts)


@pytest.mark.parametrize("recording", sorted(RECORDINGS.glob("*.gpuwhy.gz")), ids=lambda p: p.name)
def test_every_recorded_case_has_words(recording: Path) -> None:
    pipeline = Pipeline()
    pipeline.feed(read(recording)[1])
    pipeline.finish()
    for entry in pipeline.verdicts()["gpus"]:
        for cause in entry["causes"]:
            case = f"{cause['cause']}/{cause['reason'] or ''}"
            for known in (words.CASES, {f"{start}.*": text for start, text in words.NEXT.items()}):
                assert any(re.fullmatch(pattern, case) for pattern in known), case


@pytest.mark.parametrize(
    "case",
    [
        f"{account}/{reason}"
        for account in (*CAUSES, "unknown")
        for reason in REASONS.get(account, ())
    ],
)
def test_every_reason_has_words(case: str) -> None:
    found = next(text for known, text in words.CASES.items() if re.fullmatch(known, case))
    assert found != "–" or case == "shared/other-process", "the cause says it all"
    assert any(re.fullmatch(f"{start}.*", case) for start in words.NEXT)


def test_phases_have_colour_and_words() -> None:
    assert set(palette.PHASES) == set(words.PHASES) == set(PHASE_NAMES)
    assert set(DATA.split("|")) <= set(palette.PHASES)


def test_sources_have_words_and_what_is_lost_without() -> None:
    assert set(words.SOURCES) == set(words.LOST_WITHOUT) == set(SOURCES)
