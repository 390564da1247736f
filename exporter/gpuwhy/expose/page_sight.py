"""What cannot be seen, why, and the remedy; the sources; notifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuwhy.expose.families.source import is_up, missing, reports_of
from gpuwhy.expose.notifications import Notification
from gpuwhy.expose.page_text import Entry, code, names, slug, text
from gpuwhy.expose.view import View
from gpuwhy.observe.observation import SOURCES


def blind(view: View) -> Iterator[str]:
    """What verdicts had to do without, each thing once, with whom it concerns."""
    yield "<h2>What cannot be seen</h2>"
    entries = (view.verdicts or {}).get("gpus", [])
    concerned: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        for one in entry.get("cannot_see", ()):
            key = (str(one["signal"]), str(one["why"]), str(one.get("remedy") or ""))
            concerned.setdefault(key, []).append(entry)
    if not concerned:
        yield "<p>Nothing that a verdict needed was missing.</p>" if entries else _nothing()
        return
    yield '<dl class="facts">'
    for (signal, why, remedy), of in sorted(concerned.items()):
        whom = "" if len(of) == len(entries) else f" ({text(names(of))})"
        mend = f" <strong>Remedy:</strong> {text(remedy)}" if remedy else ""
        yield f"<dt>{text(signal)}</dt><dd>{text(why)}{whom}.{mend}</dd>"
    yield "</dl>"


def _nothing() -> str:
    return "<p>There is no verdict that could lack anything; the sources say what is read.</p>"


def sources(view: View) -> Iterator[str]:
    """Every source with its state; what is down, if for one GPU or process only, comes with the
    reason and the remedy."""
    up = [source for source in SOURCES if is_up(view, source)]
    yield f"<h2>Sources</h2><p>Up: {', '.join(up) or 'none'}.</p>"
    rest = [s for s in SOURCES if s not in up or any(map(_lacks, reports_of(view, s)))]
    if rest:
        yield from _not_up(view, rest)


def _not_up(view: View, sources: Sequence[str]) -> Iterator[str]:
    yield '<table class="sources"><thead><tr>'
    yield from (f'<th scope="col">{name}</th>' for name in ("source", "state", "why"))
    yield "</tr></thead><tbody>"
    alike: dict[tuple[str, str], list[str]] = {}  # one reason takes several: no driver, six of them
    for source in sources:
        alike.setdefault(_state(view, source), []).append(source)
    for (state, why), of in alike.items():
        yield (
            f'<tr class="{slug(state)}"><th scope="row">{", ".join(of)}</th><td>{state}</td>'
            f"<td>{why}</td></tr>"
        )
    yield "</tbody></table>"


def _state(view: View, source: str) -> tuple[str, str]:
    """The state of a source, and as markup why it is so."""
    reports = reports_of(view, source)
    state = "down" if reports else "not heard of"
    state = "partly up" if is_up(view, source) else state
    why = dict.fromkeys(_said(report) for report in reports if _lacks(report))
    return state, " ".join(filter(None, why))


def _lacks(report: Mapping[str, Any]) -> bool:
    """Whether a part of a source, or all of it, does not give what it should."""
    return not report.get("up") or bool(missing(report))


def _said(report: Mapping[str, Any]) -> str:
    """Whom it concerns, why it is down, and the remedy, as markup."""
    whom = text(report.get("uuid") or (f"process {report['pid']}" if "pid" in report else ""))
    why, remedy = (text(report.get(key) or "").rstrip(".") for key in ("why", "remedy"))
    if fields := missing(report):
        remedy = remedy or ("" if why else "if it was there before, see dmesg")
        why = f"no {text(', '.join(fields))}" + (f": {why}" if why else "")
    why = f"{whom}: {why}" if whom and why and whom not in why else why
    return f"{why}{'.' * bool(why)} <strong>Remedy:</strong> {remedy}" if remedy else why


def notifications(found: Sequence[Notification]) -> Iterator[str]:
    """Those that Alertmanager had nobody to send to, and word of receivers that fail, newest first;
    nothing where there are none."""
    if not found:
        return
    yield "<h2>Notifications</h2>"
    yield "<p>What Alertmanager has no receiver for, and word of receivers that fail.</p>"
    yield '<ul class="notifications">'
    for one in found:
        run = f" run {code(one.run)}" if one.run else ""
        lines = "<br>".join(map(text, (one.summary, *one.description.splitlines())))
        yield (
            f'<li><time datetime="{text(one.received)}">{text(one.received)}</time> '
            f"{text(one.status)} <strong>{text(one.name)}</strong> {text(one.severity)}{run}: "
            f"{lines}</li>"
        )
    yield "</ul>"
