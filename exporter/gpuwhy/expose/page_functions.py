"""Hot functions of each run, over its ranks and the last minute."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwhy.evidence.words import PHASE_WORDS
from gpuwhy.expose.families.python import Place, shares
from gpuwhy.expose.limits import RECENT_S
from gpuwhy.expose.page_runs import by_run
from gpuwhy.expose.page_text import code, percent, text
from gpuwhy.expose.view import View
from gpuwhy.signals.row import RunSignals

SHOWN = 10
"""Functions of one run."""
SHOWN_FROM = 0.01
RUNS_OPEN = 3
"""Runs whose functions are unfolded: those with the worst verdicts."""
RUNS = 64
"""Runs that are listed; with more, the metrics have the rest."""


def render(view: View) -> Iterator[str]:
    """The section; each run's functions in a table."""
    yield "<h2>Hot functions, last minute</h2>"
    tables = _tables(view)
    if not tables:
        yield "<p>No Python stack was seen: the sources below say why.</p>"
    for number, (run, functions) in enumerate(list(tables.items())[:RUNS]):
        if number == RUNS_OPEN:
            yield "<details><summary>Those of the other runs</summary>"
        yield from _table(run, functions)
    yield "</details>" if len(tables) > RUNS_OPEN else ""
    if len(tables) > RUNS:
        yield f'<p>{len(tables) - RUNS} more runs: <a href="metrics">metrics</a>.</p>'


def _tables(view: View) -> dict[str, list[tuple[Place, float]]]:
    """The functions of each run, in the order of the verdicts."""
    runs: dict[str, list[RunSignals]] = {run: [] for run in by_run(view) if run is not None}
    for (_, run, _), seconds in view.ranks_over(RECENT_S).items():
        seen = [s for s in seconds if s.phases is not None or s.worker_function]
        runs.setdefault(run, []).extend(seen)
    return {run: shares(seconds)[:SHOWN] for run, seconds in runs.items() if seconds}


def _table(run: str, functions: list[tuple[Place, float]]) -> Iterator[str]:
    yield f'<table class="functions"><caption>Run {code(run)}</caption><thead><tr>'
    yield from (f'<th scope="col">{name}</th>' for name in ("share", "function", "doing"))
    yield "</tr></thead><tbody>"
    for (role, phase, (name, file, line)), share in functions:
        if share >= SHOWN_FROM:
            doing = f"rank: {PHASE_WORDS.get(phase, phase)}"
            yield (
                f'<tr><td>{percent(share)}</td><th scope="row">{code(name)} '
                f"{code(f'{file}:{line}')}</th>"
                f"<td>{'workers: make batches' if role == 'worker' else text(doing)}</td></tr>"
            )
    yield "</tbody></table>"
