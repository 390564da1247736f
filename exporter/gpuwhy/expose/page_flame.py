"""The form for a flame graph on request; where that is off, how it is switched on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuwhy.expose import processes
from gpuwhy.expose.page_text import text
from gpuwhy.expose.view import View

SECONDS = (5, 10, 30, 60)
"""How long a flame graph may be taken for."""


def render(view: View, *, on: bool) -> Iterator[str]:
    """The section."""
    yield '<section id="flame"><h2>Flame graph of a rank</h2>'
    if view.about.recorded:
        yield "<p>A recorded job cannot be asked for more than was recorded.</p>"
    elif not on:
        yield (
            "<p>Off. <code>gpuwhy serve --web.token-file FILE</code> switches it on for whoever "
            "holds the token in that file; <code>gpuwhy profile out.svg</code> on the host takes "
            "one without.</p>"
        )
    else:
        yield from _form(view)
    yield "</section>"


def _form(view: View) -> Iterator[str]:
    yield "<p>A rank and its workers, waits included, sampled without stopping them.</p>"
    yield "<noscript><p>It is drawn by a script; <code>gpuwhy profile out.svg</code> on the host "
    yield 'needs none.</p></noscript><form id="ask" hidden>'
    yield '<label>Rank <select id="pid" required>'
    yield from ranks(view)
    yield '</select></label> <label>for <select id="seconds">'
    for seconds in SECONDS:
        chosen = " selected" if seconds == SECONDS[1] else ""
        yield f'<option value="{seconds}"{chosen}>{seconds} s</option>'
    yield '</select></label> <label>Token <input id="token" type="password" required '
    yield 'autocomplete="off"></label> <button id="take">Take it</button></form>'
    yield '<p id="taking" role="status"></p><div id="graph"></div>'


def ranks(view: View) -> Iterator[str]:
    """An option for each rank in sight."""
    for process in processes.listing(view)["processes"]:
        if process.get("role") == "rank":
            yield f'<option value="{int(process["pid"])}">{text(_words(process))}</option>'


def _words(process: Mapping[str, Any]) -> str:
    rank = "" if process.get("rank") is None else f", rank {process['rank']}"
    script = process.get("script", "python")
    return f"{process.get('run', 'no run')}{rank}: {script}, PID {process['pid']}"
