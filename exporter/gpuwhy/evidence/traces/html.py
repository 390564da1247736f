"""The report of traces as one HTML file: no script, nothing loaded, fit to be printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gpuwhy
from gpuwhy.evidence.report import evidence_line
from gpuwhy.evidence.terminal import printable
from gpuwhy.evidence.traces import ncu, units
from gpuwhy.evidence.traces.analysis import Analysis
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.html_style import STYLE
from gpuwhy.evidence.traces.tables import Table
from gpuwhy.evidence.traces.timeline import SLICES, slices
from gpuwhy.evidence.words import ACCOUNT_WORDS, cause_words, reason_words
from gpuwhy.ledger import thresholds as th

NOTE = f"A cause is named from {th.CAUSE_RATIO:.1%} of the window on; accounts add up to all of it."
WIDTH, HEIGHT = 960, 72
ROWS = 200


def render(analysis: Analysis, names: Sequence[str]) -> str:
    """The whole document, of timelines."""
    tables = [_table(table) for table in analysis.tables]
    return _document(analysis.run, analysis.summary, [*_ranks(analysis), *tables], names)


def of_kernels(table: Table, names: Sequence[str]) -> str:
    """The document of Nsight Compute's kernels: what bounds those with most time, and the table."""
    bounds = Counter(row["bound"] for row in table.rows)
    body = [
        f"<div class='cause'><h3>{text(row['kernel'])}: {text(row['why'])}</h3>"
        f"<p class='next'>Next: {text(row['next_action'])}</p></div>"
        for row in table.rows[: ncu.ADVISED]
    ]
    summary = ", ".join(f"{count} {bound}" for bound, count in bounds.items())
    return _document("Kernels", summary, [*body, _table(table)], names, ncu.NOTE)


def of_verdict(verdict: Mapping[str, Any], names: Sequence[str]) -> str:
    """The document of a verdict without a timeline, such as that of logs."""
    start, end = (text(verdict["window"][edge]) for edge in ("start", "end"))
    body = [f"<p class='soft'>{start} to {end}</p>"]
    for entry in verdict["gpus"]:
        body += [f"<section><h2>{_who(entry)}: {text(cause_words(entry['cause']))}</h2>"]
        body += [*_told(entry), "</section>"]
    run = verdict["runs"][0] if verdict["runs"] else {"run": "no run", "summary": ""}
    return _document(run["run"], run["summary"], body, names)


def _document(
    title: str, summary: str, body: Sequence[str], names: Sequence[str], note: str = NOTE
) -> str:
    head = f"<h1>{text(title)}</h1><p class='summary'>{text(summary)}</p>"
    foot = f"<footer>From {text(', '.join(names))}, by gpuwhy {gpuwhy.__version__}. {note}</footer>"
    palette = (files("gpuwhy") / "expose" / "static" / "palette.css").read_text(encoding="utf-8")
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        # Nothing may be fetched, whatever a name in the trace holds.
        "<meta http-equiv='Content-Security-Policy' "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(title)}: {text(summary)}</title><style>{palette}{STYLE}</style></head>\n"
        f"<body>\n{chr(10).join([head, *body, foot])}\n</body></html>\n"
    )


def text(value: object) -> str:
    """A foreign text, harmless within HTML."""
    return escape(printable(value), quote=True)


def _ranks(analysis: Analysis) -> Iterator[str]:
    for entry, gpu in zip(analysis.ranks, analysis.gpus, strict=True):
        yield f"<section><h2>{_who(entry)}: {text(cause_words(entry['cause']))}</h2>"
        yield f"<p class='soft'>{_when(entry)}</p>"
        yield _strip(gpu)
        yield from _told(entry)
        yield "</section>"


def _told(entry: Mapping[str, Any]) -> Iterator[str]:
    yield _legend(entry["accounts"])
    for cause in entry["causes"]:
        yield _cause(cause)
    yield _cannot_see(entry["cannot_see"])


def _who(entry: Mapping[str, Any]) -> str:
    name = f" ({text(entry['name'])})" if entry.get("name") else ""
    rank = "" if entry["rank"] is None else f", rank {text(entry['rank'])}"
    return f"GPU {text(entry['gpu'])}{rank}{name}"


def _when(entry: Mapping[str, Any]) -> str:
    window = entry["window"]
    length = units.time(window["seconds"])
    if window["start"] is None:
        return f"{length}, at a time that the file does not tell; {text(entry['file'])}"
    return f"{length}, {text(window['start'])} to {text(window['end'])}; {text(entry['file'])}"


def _strip(gpu: Gpu) -> str:
    """The window from left to right, every moment in its accounts from the bottom up."""
    shares = slices(gpu)
    base: NDArray[np.float64] = np.zeros(SLICES)
    paths = []
    for account, share in shares.items():
        paths.append(
            f"<path class='account-{account}' fill='currentColor' d='{_area(base, base + share)}'>"
            f"<title>{account}: {text(ACCOUNT_WORDS[account])}</title></path>"
        )
        base = base + share
    label = "Where each moment of the window went, by account"
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' preserveAspectRatio='none' role='img' "
        f"aria-label='{label}'>{''.join(paths)}</svg>"
    )


def _area(low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """A stepped area between two lines of shares, without the slices in which it is empty."""
    step = WIDTH / len(low)
    parts = []
    for i in np.flatnonzero(high - low > 0.002).tolist():
        top, height = HEIGHT * (1 - high[i]), HEIGHT * (high[i] - low[i])
        parts.append(f"M{i * step:.1f} {top:.1f}h{step:.1f}v{height:.1f}h{-step:.1f}z")
    return "".join(parts)


def _legend(accounts: Mapping[str, float]) -> str:
    items = [
        f"<li><i class='account-{account}'></i><b>{units.shown(share, 'ratio')}</b> {account} "
        f"<span class='soft'>{text(ACCOUNT_WORDS[account])}</span></li>"
        for account, share in sorted(accounts.items(), key=lambda item: -item[1])
        if share >= 0.001
    ]
    return f"<ul class='legend'>{''.join(items)}</ul>"


def _cause(cause: Mapping[str, Any]) -> str:
    reason = reason_words(cause["reason"])
    head = f"{units.shown(cause['lost_ratio'], 'ratio')} {text(cause_words(cause['cause']))}"
    head += f" <span class='soft'>({text(reason)})</span>" if reason else ""
    evidence = "".join(f"<li>{text(evidence_line(item))}</li>" for item in cause["evidence"])
    function = cause["function"]
    where = (
        f"<p><code>{text(function['name'])}  {text(function['file'])}:{text(function['line'])}"
        "</code></p>"
        if function
        else ""
    )
    following = f"<p class='next'>Next: {text(cause['next_action'])}</p>"
    return f"<div class='cause'><h3>{head}</h3><ul>{evidence}</ul>{where}{following}</div>"


def _cannot_see(blind: Sequence[Mapping[str, str]]) -> str:
    if not blind:
        return ""
    rows = "".join(
        f"<tr><td>{text(b['signal'])}</td><td>{text(b['why'])}</td><td>{text(b['remedy'])}</td></tr>"
        for b in blind
    )
    head = "<tr><th>cannot see</th><th>why</th><th>remedy</th></tr>"
    return f"<div class='wide'><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


def _table(table: Table) -> str:
    columns = [c for c in table.columns if any(row.get(c.key) is not None for row in table.rows)]
    head = "".join(f"<th{_number(c.unit)}>{text(c.title)}</th>" for c in columns)
    lines = []
    for row in table.rows[:ROWS]:
        cells = (
            f"<td{_number(c.unit)}>{text(units.shown(row.get(c.key), c.unit))}</td>"
            for c in columns
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = len(table.rows) - ROWS
    note = f"<p class='soft'>{text(table.note)}</p>" if table.note else ""
    note += f"<p class='soft'>and {more} more rows: --json has all</p>" if more > 0 else ""
    return (
        f"<section><h2>{text(table.title)}</h2>{note}<div class='wide'><table><thead><tr>{head}"
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div></section>"
    )


def _number(unit: str) -> str:
    return " class='number'" if unit else ""
