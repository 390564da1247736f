"""The frame of the curves: what is to be looked at, and the words that the legends use.

The curves themselves are drawn in the browser, of ``/api/v1/history``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

from gpuwhy.evidence.words import ACCOUNT_WORDS, PHASE_WORDS
from gpuwhy.expose.page_runs import Runs, by_run
from gpuwhy.expose.page_text import Entry, gpu_name, names, slug, text
from gpuwhy.expose.view import View

SPANS = ((900, "15 minutes"), (300, "5 minutes"), (60, "1 minute"))


def render(view: View) -> Iterator[str]:
    """The section, without curves."""
    yield '<section id="time"><h2>The last 15 minutes, second by second</h2>'
    yield '<noscript><p>The curves are drawn by a script. The same as numbers: <a href="api/v1/'
    yield 'history">history</a>, and in Grafana.</p></noscript>'
    yield '<div id="looks" hidden><label>Look at <select id="scope">'
    yield from scopes(view)
    yield '</select></label> <label>over the last <select id="span">'
    yield from (f'<option value="{seconds}">{words}</option>' for seconds, words in SPANS)
    yield '</select></label></div><p id="no-history" role="status"></p>'
    yield '<div><div id="strips" hidden></div>'
    yield '<div id="moment" hidden><label>At <input type="range" id="at" min="0" max="0" step="1">'
    yield '</label> <output id="when" for="at"></output></div></div>'
    yield '<details id="numbers" hidden><summary>The same as a table, minute by minute</summary>'
    yield '<div class="wide" role="region" tabindex="0" aria-label="Minute by minute"></div>'
    yield "</details>"
    yield from _glossary("accounts", "What the accounts mean", "account", ACCOUNT_WORDS)
    yield from _glossary("phases", "What the phases mean", "phase", PHASE_WORDS)
    yield "</section>"


def _glossary(name: str, title: str, family: str, words: Mapping[str, str]) -> Iterator[str]:
    yield f'<details><summary>{title}</summary><dl class="facts" id="{name}">'
    for key, meaning in words.items():
        swatch = f'<span class="swatch {family}-{slug(key)}"></span>'
        yield f'<dt data-name="{key}">{swatch}{key}</dt><dd>{text(meaning)}</dd>'
    yield "</dl></details>"


def scopes(view: View) -> Iterator[str]:
    """Options whose value is the query of ``/api/v1/history``; the worst run is chosen."""
    runs = by_run(view)
    held: Runs = {run: entries for run, entries in runs.items() if run is not None}
    gpus = {e["uuid"]: e for entries in runs.values() for e in entries if e["uuid"]}
    yield _option({}, "all GPUs of this host", chosen=not held)
    if held:
        yield '<optgroup label="Runs">'
        worst = next(iter(held))
        for run in sorted(held, key=str):
            yield _option({"run": run}, f"run {run}", chosen=run == worst)
        yield "</optgroup>"
    yield from _ranks(held)
    if gpus:
        yield '<optgroup label="GPUs, whoever uses them">'
        for uuid, entry in sorted(gpus.items(), key=_index):
            yield _option({"gpu": uuid}, gpu_name(entry))
        yield "</optgroup>"


def _index(item: tuple[str, Entry]) -> tuple[bool, int, str]:
    index = item[1]["gpu"]
    return index is None, index or 0, item[0]


def _ranks(held: Runs) -> Iterator[str]:
    several = [entry for entries in held.values() if len(entries) > 1 for entry in entries]
    if several:
        yield '<optgroup label="Ranks">'
        for entry in sorted(several, key=lambda one: (one["run"], one["rank"] or 0)):
            yield _option(_query(entry), f"{names([entry])} of {entry['run']}")
        yield "</optgroup>"


def _query(entry: Entry) -> dict[str, object]:
    found = {"run": entry["run"], "rank": entry["rank"], "gpu": entry["uuid"]}
    return {key: value for key, value in found.items() if value is not None}


def _option(query: Mapping[str, object], words: str, *, chosen: bool = False) -> str:
    value = text(urlencode(query))
    return f'<option value="{value}"{" selected" if chosen else ""}>{text(words)}</option>'
