"""The page at ``/``: the verdicts in words first, then the curves, the code, and what is not seen.

Made whole on the server, so that the first answer needs no script. A script then brings the parts
marked ``data-live`` up to date and draws the curves. Every text of a job, a host or a notification
is escaped, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuwhy.expose import page_flame, page_functions, page_runs, page_sight, page_time
from gpuwhy.expose.notifications import Notification
from gpuwhy.expose.page_text import clock_time, text
from gpuwhy.expose.view import View

REFRESH_S = 10
"""Where no script runs, the browser asks for the page again so often."""

MODULES = (
    "curves",
    "dom",
    "flame",
    "flamegraph",
    "history",
    "strip",
    "strips",
    "units",
)
"""What ``page.js`` imports, asked for at once instead of one after the other."""
SCRIPTS = "".join(
    f'<link rel="modulepreload" href="static/{module}.js">\n' for module in MODULES
) + (
    '<script src="static/vendor/uPlot.iife.min.js" defer></script>\n'
    '<script src="static/vendor/idiomorph.min.js" defer></script>\n'
    '<script src="static/page.js" type="module"></script>'
)
STYLES = "".join(
    f'<link rel="stylesheet" href="static/{sheet}">\n'
    for sheet in ("vendor/uPlot.min.css", "palette.css", "style.css")
)


def render(view: View, notifications: Sequence[Notification], *, profiling: bool = False) -> str:
    """The whole page; ``profiling``: flame graphs may be asked for."""
    parts = (
        _head(view),
        _header(view),
        ("<main>",),
        _live("answer", _answer(view)),
        page_time.render(view),
        _live("functions", page_functions.render(view)),
        _live("notifications", page_sight.notifications(notifications)),
        _live("blind", page_sight.blind(view)),
        page_flame.render(view, on=profiling),
        _live("sources", page_sight.sources(view)),
        ("</main>",),
        _footer(view),
        ("</body>\n</html>\n",),
    )
    return "\n".join(line for part in parts for line in part)


def _live(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f'<section id="{name}" data-live>'
    yield from lines
    yield "</section>"


def _head(view: View) -> Iterator[str]:
    recorded = " (recorded)" if view.about.recorded else ""
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f'<meta name="gpuwhy-version" content="{text(view.about.version)}">'
    yield f'<noscript><meta http-equiv="refresh" content="{REFRESH_S}"></noscript>'
    yield f'<title>gpuwhy{recorded}</title>\n<link rel="icon" href="static/icon.svg">'
    yield f"{STYLES}{SCRIPTS}\n</head>\n<body>"


def _header(view: View) -> Iterator[str]:
    yield '<header><h1>gpuwhy</h1><p id="fresh" data-live>Last complete second: '
    yield ("nothing yet" if view.last_t is None else clock_time(view.last_t)) + "</p>"
    yield '<button id="pause" type="button" hidden>Pause</button>'
    if view.about.recorded:
        yield '<p class="recorded">Recorded: this was observed earlier and is played back.</p>'
    yield '<p id="trouble" role="alert"></p><p id="said" role="status" class="unseen"></p></header>'


def _answer(view: View) -> Iterator[str]:
    yield "<h2>Why the GPUs are not busy with their jobs</h2>"
    if not (view.verdicts or {}).get("gpus"):
        yield f"<p>{_nothing(view)}</p>"
        return
    said = page_runs.headline(view)
    if said:
        yield f'<p class="headline">{said}</p>'
    yield from page_runs.tiles(view)
    yield from page_runs.render(view)


def _nothing(view: View) -> str:
    if view.last_t is None:
        return "Nothing has been observed yet. A verdict needs a few seconds."
    if view.second is None:
        return (
            "Nothing has been observed for more than ten seconds. The sources below say why; "
            "<code>gpuwhy doctor</code> says what mends it."
        )
    return "No GPU and no training job is in sight. <code>gpuwhy doctor</code> says what is wrong."


def _footer(view: View) -> Iterator[str]:
    yield '<footer><p><a href="metrics">metrics</a> <a href="api/v1/verdicts">verdicts</a>'
    yield '<a href="api/v1/history">history</a> <a href="api/v1/processes">processes</a>'
    yield '<a href="-/healthy">healthy</a> <a href="-/ready">ready</a></p>'
    yield f"<p>gpuwhy {text(view.about.version)}. Times are UTC.</p></footer>"
