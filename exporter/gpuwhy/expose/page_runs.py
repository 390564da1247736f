"""The verdict of each run and GPU in words, with its cost, its evidence and the next action."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuwhy.evidence.report import evidence_line
from gpuwhy.evidence.words import ACCOUNT_WORDS, cause_words, reason_words
from gpuwhy.expose.page_text import (
    Entry,
    anchor,
    bar,
    code,
    gravity,
    lost,
    mean_accounts,
    names,
    percent,
    slug,
    text,
    tone,
    window_seconds,
)
from gpuwhy.expose.view import View

SHOWN_FROM = 0.005  # accounts below half a percent are not drawn
RUNS_OPEN = 3
"""Runs that are unfolded: the worst ones."""
GROUPS_OPEN = 3
"""Of one run: the groups of GPUs that are unfolded, the worst ones."""

Runs = dict[str | None, list[Entry]]


def by_run(view: View) -> Runs:
    """The entries of each run, the worst run first; last what no run holds."""
    found: Runs = {}
    for entry in (view.verdicts or {}).get("gpus", []):
        found.setdefault(entry["run"], []).append(entry)
    order = sorted(found, key=lambda run: (run is not None, *_worst(found[run])), reverse=True)
    return {run: found[run] for run in order}


def _worst(entries: Sequence[Entry]) -> tuple[int, int]:
    return max(map(gravity, entries))


def render(view: View) -> Iterator[str]:
    """All runs: the worst unfolded, the others below one line that counts them."""
    runs = list(by_run(view).items())
    for name, entries in runs[:RUNS_OPEN]:
        yield from _one(name, entries, view)
    rest = runs[RUNS_OPEN:]
    if rest:
        entries = [entry for _, of_run in rest for entry in of_run]
        yield f'<details id="more-runs"><summary>{len(rest)} more: {_counts(entries)}</summary>'
        for name, of_run in rest:
            yield from _one(name, of_run, view)
        yield "</details>"


def _one(name: str | None, entries: Sequence[Entry], view: View) -> Iterator[str]:
    if name is None:
        yield from _free(entries)
        return
    runs = (view.verdicts or {}).get("runs", [])
    yield from _run(name, next((run for run in runs if run["run"] == name), {}), entries, view)


def _free(entries: Sequence[Entry]) -> Iterator[str]:
    held = "hold it" if len(entries) == 1 else "hold them"
    yield f'<section class="run" id="{anchor(None)}"><h3>No run</h3>'
    yield f"<p>{text(names(entries))}: no training job {held.replace('hold', 'holds')}.</p>"
    yield "</section>"


def _run(name: str, run: Mapping[str, Any], entries: Sequence[Entry], view: View) -> Iterator[str]:
    words = cause_words(run.get("cause", entries[0]["cause"]))
    yield f'<section class="run" id="{anchor(name)}" data-said="{text(f"Run {name}: {words}")}">'
    yield f"<h3>Run {code(name)}</h3>"
    if run.get("summary"):
        yield f'<p class="summary">{text(run["summary"])}</p>'
    groups = _alike(entries)
    for number, group in enumerate(groups):
        yield from _group(group, view, fold=number >= GROUPS_OPEN)
    yield "</section>"


def _alike(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries with the same causes, reasons and functions are told once; the worst first."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        causes = [(c["cause"], c.get("reason"), c.get("function")) for c in entry["causes"]]
        groups.setdefault(repr((entry["cause"], causes)), []).append(entry)
    told = [sorted(group, key=gravity, reverse=True) for group in groups.values()]
    return sorted(told, key=lambda group: gravity(group[0]), reverse=True)


def _group(group: Sequence[Entry], view: View, *, fold: bool) -> Iterator[str]:
    worst = group[0]
    title = f"{text(names(group))}: {text(_title(worst))}"
    if fold and worst["causes"]:
        title += f", {percent(lost(worst))}"
    yield f'<article class="verdict {tone(worst)}">'
    yield f"<details><summary><h4>{title}</h4></summary>" if fold else f"<h4>{title}</h4>"
    if len(group) > 1 and worst["causes"]:
        yield f'<p class="soft">Evidence of {text(names(group[:1]))}.</p>'
    for number in range(len(worst["causes"])):
        yield from _cause(number, group, view)
    yield from _accounts(group)
    yield "</details></article>" if fold else "</article>"


def _title(entry: Entry) -> str:
    """The answer; with its reason where the first cause is the answer."""
    first = entry["causes"][0] if entry["causes"] else {}
    same = first.get("cause") == entry["cause"]
    return _in_words(entry["cause"], first.get("reason") if same else None)


def _in_words(cause: str, reason: str | None) -> str:
    why = reason_words(reason)
    return f"{cause_words(cause)} ({why})" if why else cause_words(cause)


def _cause(number: int, group: Sequence[Entry], view: View) -> Iterator[str]:
    cause = group[0]["causes"][number]
    words = _in_words(cause["cause"], cause.get("reason"))
    if number or cause["cause"] != group[0]["cause"]:
        yield f"<h5>{'Also ' if number else ''}{text(words)}</h5>"
    yield f'<dl class="facts"><dt>Cost</dt><dd>{_cost(number, group, view)}</dd>'
    evidence = [f"<dd>{text(evidence_line(one))}</dd>" for one in cause.get("evidence", ())]
    if evidence:
        yield f"<dt>Evidence</dt>{''.join(evidence)}"
    function = cause.get("function")
    if function:
        where = f"{function['file']}:{function['line']}"
        yield f"<dt>Function</dt><dd>{code(function['name'])} {code(where)}</dd>"
    if cause.get("next_action"):
        yield f'<dt>Next</dt><dd class="next">{text(cause["next_action"])}</dd>'
    yield "</dl>"


def _cost(number: int, group: Sequence[Entry], view: View) -> str:
    """The share, GPU-seconds, and the price of an hour at that share where it is known."""
    shares = [entry["causes"][number].get("lost_ratio") for entry in group]
    if any(share is None for share in shares):
        return "not known"
    total, sure = sum(shares), group[0]["causes"][number].get("confidence")
    said = [_share(total, group, window_seconds(view.verdicts))]
    price = view.about.gpu_hour_price
    if price is not None and group[0]["accounts"]:
        said.append(f"{total * price:.2f} an hour at {price:g} a GPU-hour")
    if isinstance(sure, int | float):
        said.append(f"confidence {sure:.2f}")
    return "; ".join(said)


def _share(total: float, group: Sequence[Entry], seconds: float) -> str:
    whose = "the time" if group[0]["accounts"] else "the host's time"
    said = f"{percent(total / len(group))} of {whose}"
    if seconds and group[0]["accounts"]:
        said += f", {total * seconds:.0f} of {len(group) * seconds:.0f} GPU-seconds"
    return said


def _accounts(group: Sequence[Entry]) -> Iterator[str]:
    shares = mean_accounts(group)
    if not shares:
        yield "<p>No GPU of this job is in sight.</p>"
        return
    yield f'{bar(shares)}<table class="accounts"><caption>Where the time went</caption>'
    yield (
        '<thead><tr><th scope="col">account</th><th scope="col">share</th>'
        '<th scope="col">meaning</th></tr></thead><tbody>'
    )
    for name, share in shares.items():
        if share >= SHOWN_FROM:
            yield (
                f'<tr><th scope="row"><span class="swatch account-{slug(name)}"></span>{text(name)}'
                f"</th><td>{percent(share)}</td><td>{text(ACCOUNT_WORDS.get(name, ''))}</td></tr>"
            )
    yield "</tbody></table>"


def headline(view: View) -> str:
    """How many entries are in which state, the worst first; empty where there is but one."""
    entries = [entry for of_run in by_run(view).values() for entry in of_run]
    if len(entries) < 2:
        return ""
    gpus = len({entry["uuid"] for entry in entries if entry["uuid"]})
    return f"{gpus} GPU{'' if gpus == 1 else 's'}: {_counts(entries)}"


def _counts(entries: Sequence[Entry]) -> str:
    """``2 data, 1 unknown, 5 healthy``: the worst first."""
    states = Counter(_state(entry) for entry in sorted(entries, key=gravity, reverse=True))
    return text(", ".join(f"{count} {state}" for state, count in states.items()))


def tiles(view: View) -> Iterator[str]:
    """One tile for each GPU, where there are several: what it does, and the way to its verdict."""
    gpus: dict[str, list[Entry]] = {}
    for entry in (view.verdicts or {}).get("gpus", []):
        if entry["uuid"]:
            gpus.setdefault(entry["uuid"], []).append(entry)
    if len(gpus) < 2:
        return
    yield '<ul class="tiles" aria-label="GPUs">'
    for entries in gpus.values():
        worst = max(entries, key=gravity)
        yield (
            f'<li><a class="tile {tone(worst)}" href="#{anchor(worst["run"])}">'
            f"<span>{text(names(entries[:1]).split(',')[0])}</span> <b>{_short(worst)}</b>"
            f"{bar(mean_accounts(entries))}</a></li>"
        )
    yield "</ul>"


def _short(entry: Entry) -> str:
    state = text(_state(entry))
    return f"{state} {percent(lost(entry))}" if gravity(entry)[0] else state


def _state(entry: Entry) -> str:
    """``free``, ``healthy``, or the cause by its name."""
    return {"free": "free", "well": "healthy"}.get(tone(entry), str(entry["cause"]))
