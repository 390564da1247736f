"""The first page, made on the server: verdicts in words, what cannot be seen, notifications.

Plain HTML without a script. Every text of a job, a host or a notification is escaped; there is no
style but the sheet beside this file, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

from gpuwhy.evidence.report import evidence_line
from gpuwhy.evidence.words import ACCOUNT_WORDS, INFORMATION, cause_words, reason_words
from gpuwhy.expose.families.source import is_up, reports_of
from gpuwhy.expose.notifications import Notification
from gpuwhy.expose.view import View
from gpuwhy.observe.observation import SOURCES

Entry = Mapping[str, Any]

REFRESH_S = 10
SHOWN_FROM = 0.005  # accounts below half a percent are not drawn


def render(view: View, notifications: Sequence[Notification]) -> str:
    """The whole page."""
    recorded = " (recorded)" if view.about.recorded else ""
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="refresh" content="{REFRESH_S}">',
            f"<title>gpuwhy{recorded}</title>",
            '<link rel="stylesheet" href="static/style.css">\n</head>\n<body>',
            *_header(view),
            "<main>",
            *_verdicts(view),
            *_blind(view),
            *_notifications(notifications),
            *_sources(view),
            "</main>",
            *_footer(view),
            "</body>\n</html>\n",
        )
    )


def _header(view: View) -> Iterator[str]:
    yield "<header><h1>gpuwhy</h1>"
    if view.about.recorded:
        yield '<p class="recorded">Recorded: this was observed earlier and is played back.</p>'
    when = "nothing yet" if view.last_t is None else f"{_utc(view.last_t)} UTC"
    yield f"<p>Last complete second: {when}</p></header>"


def _verdicts(view: View) -> Iterator[str]:
    yield "<h2>Why the GPUs are not busy with their jobs</h2>"
    entries = (view.verdicts or {}).get("gpus", [])
    if not entries:
        yield f"<p>{_nothing(view)}</p>"
        return
    runs = {run["run"]: run for run in (view.verdicts or {}).get("runs", [])}
    for name in dict.fromkeys(entry["run"] for entry in entries):
        of_run = [entry for entry in entries if entry["run"] == name]
        yield from _run(name, runs.get(name), of_run, view)


def _nothing(view: View) -> str:
    if view.last_t is None:
        return "Nothing has been observed yet. A verdict needs a few seconds."
    if view.second is None:
        return (
            "Nothing has been observed for more than ten seconds. The sources below say why; "
            "<code>gpuwhy doctor</code> says what mends it."
        )
    return "No GPU and no training job is in sight. <code>gpuwhy doctor</code> says what is wrong."


def _run(
    name: str | None, run: Mapping[str, Any] | None, entries: Sequence[Entry], view: View
) -> Iterator[str]:
    yield "<section>"
    if name is None:
        listed = ", ".join(_gpu_name(entry) for entry in entries)
        yield f"<h3>No run</h3><p>{listed}: no training job holds it.</p></section>"
        return
    yield f"<h3>Run <code>{escape(name)}</code></h3>"
    if run and run.get("summary"):
        yield f"<p>{escape(str(run['summary']))}</p>"
    for entry in entries:
        yield from _entry(entry, view)
    yield "</section>"


def _entry(entry: Entry, view: View) -> Iterator[str]:
    rank = "" if entry["rank"] is None else f", rank {entry['rank']}"
    first = entry["causes"][0] if entry["causes"] else {}
    tone = _tone(entry["cause"], first.get("reason"))
    words = cause_words(entry["cause"])
    yield f'<article class="{tone}"><h4>{_gpu_name(entry)}{rank}: {escape(words)}</h4>'
    for cause in entry["causes"]:
        yield from _cause(cause, view)
    if entry["accounts"]:
        yield from _accounts(entry["accounts"])
    yield "</article>"


def _tone(cause: str, reason: str | None) -> str:
    if cause == "none" or reason in INFORMATION:
        return "well"
    return "unknown" if cause == "unknown" else "lost"


def _cause(cause: Mapping[str, Any], view: View) -> Iterator[str]:
    reason = reason_words(cause.get("reason"))
    title = f"{cause_words(cause['cause'])}{f' ({reason})' if reason else ''}"
    yield f"<h5>{escape(title)}</h5><dl>"
    yield f"<dt>Cost</dt><dd>{_cost(cause, view)}</dd>"
    for evidence in cause.get("evidence", ()):
        yield f"<dt>Evidence</dt><dd>{escape(evidence_line(evidence))}</dd>"
    function = cause.get("function")
    if function:
        where = f"{function['file']}:{function['line']}"
        yield (
            f"<dt>Function</dt><dd><code>{escape(function['name'])}</code> "
            f"<code>{escape(where)}</code></dd>"
        )
    if cause.get("next_action"):
        yield f"<dt>Next</dt><dd>{escape(str(cause['next_action']))}</dd>"
    yield "</dl>"


def _cost(cause: Mapping[str, Any], view: View) -> str:
    """The share; the price of an hour at that share, where GPU-hours have a price."""
    lost = cause.get("lost_ratio")
    if lost is None:
        return "not known"
    price = view.about.gpu_hour_price
    money = "" if price is None else f", {lost * price:.2f} an hour at {price:g} a GPU-hour"
    sure = cause.get("confidence")
    return f"{_percent(lost)} of its time{money}" + (
        f"; {_percent(sure)} sure" if isinstance(sure, int | float) else ""
    )


def _accounts(accounts: Mapping[str, float]) -> Iterator[str]:
    yield "<table><caption>Where the time went</caption><tbody>"
    for name, share in sorted(accounts.items(), key=lambda item: -item[1]):
        if share >= SHOWN_FROM:
            words = escape(ACCOUNT_WORDS.get(name, ""))
            meter = f'<meter min="0" max="1" value="{share:.3f}">{_percent(share)}</meter>'
            yield (
                f'<tr><th scope="row">{escape(name)}</th><td>{meter}</td>'
                f"<td>{_percent(share)}</td><td>{words}</td></tr>"
            )
    yield "</tbody></table>"


def _blind(view: View) -> Iterator[str]:
    """What verdicts had to do without, each thing once."""
    found = {
        (str(blind["signal"]), str(blind["why"]), str(blind.get("remedy") or ""))
        for entry in (view.verdicts or {}).get("gpus", [])
        for blind in entry.get("cannot_see", ())
    }
    if found:
        yield "<section><h2>What cannot be seen</h2><dl>"
        for signal, why, remedy in sorted(found):
            mend = f" <strong>Remedy:</strong> {escape(remedy)}" if remedy else ""
            yield f"<dt>{escape(signal)}</dt><dd>{escape(why)}{mend}</dd>"
        yield "</dl></section>"


def _notifications(notifications: Sequence[Notification]) -> Iterator[str]:
    if not notifications:
        return
    yield "<section><h2>Notifications without a receiver</h2>"
    yield "<p>No receiver is configured in Alertmanager, so they are shown here.</p><ul>"
    for one in notifications:
        run = f" run <code>{escape(one.run)}</code>" if one.run else ""
        yield (
            f"<li><time>{escape(one.received)}</time> {escape(one.status)} "
            f"<strong>{escape(one.name)}</strong> {escape(one.severity)}{run}: "
            f"{escape(one.summary)}<br>{escape(one.description)}</li>"
        )
    yield "</ul></section>"


def _sources(view: View) -> Iterator[str]:
    yield "<section><h2>Sources</h2><table><thead><tr><th>source</th><th>state</th><th>why</th>"
    yield "</tr></thead><tbody>"
    for source in SOURCES:
        reports = reports_of(view, source)
        up = is_up(view, source)
        state = "up" if up else "down" if reports else "not heard of"
        why = dict.fromkeys(_said(report) for report in reports if not report.get("up"))
        yield (
            f'<tr><th scope="row">{source}</th><td>{state}</td>'
            f"<td>{escape(' '.join(filter(None, why)))}</td></tr>"
        )
    yield "</tbody></table></section>"


def _said(report: Mapping[str, Any]) -> str:
    return " ".join(str(report[key]) for key in ("why", "remedy") if report.get(key))


def _footer(view: View) -> Iterator[str]:
    yield '<footer><p><a href="metrics">metrics</a> <a href="api/v1/verdicts">verdicts</a>'
    yield '<a href="api/v1/processes">processes</a> <a href="-/healthy">healthy</a>'
    yield f'<a href="-/ready">ready</a></p><p>gpuwhy {escape(view.about.version)}</p></footer>'


def _gpu_name(entry: Entry) -> str:
    if entry["gpu"] is None and entry["uuid"] is None:
        return "No GPU in sight"
    name = f"GPU {entry['gpu']}" if entry["gpu"] is not None else f"GPU {entry['uuid']}"
    return escape(f"{name} MIG {entry['mig']}" if entry.get("mig") else name)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _utc(t: float) -> str:
    return datetime.fromtimestamp(t, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
