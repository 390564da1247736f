"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.evidence.bootstrap import Estimate
from gpuwhy.evidence.compare import Change, Comparison
from gpuwhy.evidence.terminal import Style, printable
from gpuwhy.evidence.traces import units
from gpuwhy.evidence.words import ACCOUNT_WORDS

SHOWN_FROM = 0.01

Form = Callable[[float], str]


def render(made: Comparison, style: Style) -> str:
    """The summary, the table, the next action, what differs."""
    lines = [style.paint(made.summary, "bold"), ""]
    lines += [style.paint(_row("", "before", "after", "change"), "dim")]
    if made.step_time is not None:
        lines.append(_line("step time", made.step_time, units.time, _percent))
    for account, change in made.accounts.items():
        if max(change.before.value, change.after.value) >= SHOWN_FROM:
            words = style.paint(f"  {ACCOUNT_WORDS.get(account, '')}", "dim")
            lines.append(_line(account, change, _share, _points) + words)
    if made.power is not None:
        lines.append(_line("power", made.power, lambda w: f"{w:.0f} W", lambda w: f"{w:+.0f} W"))
    lines += ["", *_next(made, style), *_differs(made, style)]
    names = f"before: {printable(made.before.name)}; after: {printable(made.after.name)}"
    note = "intervals hold 95 % of resamples; without one there were too few steps or seconds"
    lines += [style.paint(f"{names}; {note}", "dim")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _next(made: Comparison, style: Style) -> list[str]:
    if not made.after.causes:
        return []
    first = made.after.causes[0]
    return [*style.column("next", f"{first['cause']}: {printable(first['next_action'])}"), ""]


def _differs(made: Comparison, style: Style) -> list[str]:
    lines = [style.paint("What differs", "bold")]
    if not made.differs:
        lines.append("  nothing that was recorded of the two")
    for one in made.differs:
        before, after = (
            printable(one[k]) if one[k] is not None else "-" for k in ("before", "after")
        )
        lines += style.column(printable(one["what"]), f"{before}  ->  {after}", column=24)
    if made.warning:
        lines += ["", *style.column(style.paint("warning", "yellow"), made.warning)]
    return [*lines, ""]


def _line(name: str, change: Change, value: Form, delta: Form) -> str:
    return _row(
        name,
        _with_interval(change.before, value),
        _with_interval(change.after, value),
        _with_interval(change.change, delta),
    )


def _row(*cells: str) -> str:
    name, *others = cells
    return f"  {name:<12}" + "".join(f"{cell:<30}" for cell in others)


def _with_interval(of: Estimate, form: Form) -> str:
    text = form(of.value)
    if of.low is not None and of.high is not None:
        text += f" ({form(of.low)} to {form(of.high)})"
    return text


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _points(value: float) -> str:
    return f"{100 * value:+.1f} pp"


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %"
