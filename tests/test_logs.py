"""Log lines: logfmt, in UTC, one line each whatever they hold, and bounded in number."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator

import pytest

from gpuwhy import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the log goes; the root logger is given back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line(stream: io.StringIO) -> None:
    logs.setup("info", stream)
    logging.getLogger("gpuwhy.x").warning("scrape cut", extra={"family": "gpu", "took": 0.5})
    assert re.fullmatch(
        r'ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=warning logger=gpuwhy.x msg="scrape cut" '
        r"family=gpu took=0.5\n",
        stream.getvalue(),
    )


def test_the_level_holds(stream: io.StringIO) -> None:
    logs.setup("error", stream)
    logging.getLogger("gpuwhy.x").warning("unheard")
    assert stream.getvalue() == ""


def test_hostile_text_stays_on_one_line(stream: io.StringIO) -> None:
    logs.setup("info", stream)
    logging.getLogger("x").info("a\nlevel=error %s", "\x1b[2J\ud800", extra={"k": 'q"\r'})
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert r"\"" in line


def test_an_exception_stays_on_one_line(stream: io.StringIO) -> None:
    logs.setup("info", stream)
    try:
        raise RuntimeError("no")
    except RuntimeError:
        logging.getLogger("x").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "RuntimeError: no" in stream.getvalue()


def record(template: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord("x", logging.INFO, "f", 1, template, values, None)


def test_a_message_that_repeats_is_held_and_counted() -> None:
    now = 0.0
    limit = logs.RateLimit(burst=2, period_s=60, clock=lambda: now)
    passed = [limit.filter(record("pid %d is gone", pid)) for pid in range(10)]
    assert passed == [True, True] + [False] * 8
    assert limit.filter(record("another"))
    now = 61.0
    later = record("pid %d is gone", 11)
    assert limit.filter(later)
    assert vars(later)["suppressed"] == 8
    following = record("pid %d is gone", 12)
    assert limit.filter(following)
    assert "suppressed" not in vars(following)


def test_the_memory_of_messages_is_bounded() -> None:
    limit = logs.RateLimit()
    for number in range(5 * logs.KEPT):
        limit.filter(record(f"message {number}"))
    assert len(limit._counts) <= logs.KEPT
