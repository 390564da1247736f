"""The verdict as text for a terminal, made from the object of ``gpuwhy diagnose --json``.

Verdict first, then evidence with its source, the line of Python, the next action, the accounts,
and last what could not be seen. Pure text in, text out; every foreign name is made harmless.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from gpuwhy.evidence.terminal import Style, printable, ranges
from gpuwhy.evidence.words import ACCOUNT_WORDS, INFORMATION, cause_words, reason_words

Entry = Mapping[str, Any]

SHOWN_FROM = 0.01  # smaller accounts are not drawn
UNIT_WORDS = {"celsius": "°C"}


def render(verdict: Mapping[str, Any], style: Style, note: str | None = None) -> str:
    """The whole report; ``note`` is said of the source, such as "recorded 2026-11-02"."""
    seconds = _length(verdict["window"])
    blocks = [_run_block(run, entries, seconds, style) for run, entries in _by_run(verdict)]
    blind = _cannot_see(verdict["gpus"], style)
    blocks += [blind] if blind else []
    blocks.append([style.paint(line, "dim") for line in _window(verdict["window"], note)])
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _by_run(verdict: Mapping[str, Any]) -> list[tuple[Mapping[str, Any] | None, list[Entry]]]:
    """Runs in the order given, each with its GPUs; last the GPUs that no run holds."""
    runs = {run["run"]: run for run in verdict.get("runs", [])}
    names = list(runs) + [entry["run"] for entry in verdict["gpus"]]
    groups: list[tuple[Mapping[str, Any] | None, list[Entry]]] = []
    for name in dict.fromkeys(names):
        entries = [entry for entry in verdict["gpus"] if entry["run"] == name]
        if entries and name is not None:
            groups.append((runs.get(name, {"run": name}), entries))
    free = [entry for entry in verdict["gpus"] if entry["run"] is None]
    return [*groups, (None, free)] if free else groups


def _run_block(
    run: Mapping[str, Any] | None, entries: list[Entry], seconds: float, style: Style
) -> list[str]:
    lines = _run_head(run, entries, style) if run else []
    if run and len(entries) > 1:
        lines += ["", *_overview(entries, style)]
    for alike in _alike(entries):
        lines += [*([""] if lines else []), *_entries(alike, seconds, style)]
    return lines


def _run_head(run: Mapping[str, Any], entries: list[Entry], style: Style) -> list[str]:
    ranks = run.get("ranks") or [entry["rank"] for entry in entries]
    counted = f"{len(ranks)} rank{'s' if len(ranks) != 1 else ''}"
    head = f"{style.paint(printable(run['run']), 'bold')}  {style.paint(counted, 'dim')}"
    summary = str(run.get("summary") or "")
    return [head, *(style.column("", printable(summary), 0, 2) if summary else [])]


def _overview(entries: list[Entry], style: Style) -> list[str]:
    """One line for each GPU of a run of several."""
    lines = [style.paint("  GPU    rank  cause      lost     compute", "dim")]
    for entry in entries:
        lost = _lost(entry)
        compute = entry["accounts"].get("compute")
        lines.append(
            f"  {_short_gpu(entry):<5}  {_known(entry['rank']):<4}  {entry['cause']:<9}"
            f"  {_percent(lost):>5}    {_percent(compute):>6}  {style.bar(compute or 0, 24)}"
        )
    return lines


def _alike(entries: list[Entry]) -> list[list[Entry]]:
    """Entries with the same causes and functions told once; the worst of each group first."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        key = repr([(c["cause"], c.get("reason"), c.get("function")) for c in entry["causes"]])
        groups.setdefault(key + entry["cause"], []).append(entry)
    return [sorted(group, key=lambda entry: -(_lost(entry) or 0)) for group in groups.values()]


def _entries(alike: list[Entry], seconds: float, style: Style) -> list[str]:
    worst = alike[0]
    lines = _headline(alike, style)
    for number, cause in enumerate(worst["causes"]):
        if number:
            lines += ["", style.paint(f"  Also {cause_words(cause['cause'])}", "bold")]
        shares = [_cause_share(entry, number) for entry in alike]
        lines += _cause(cause, shares, seconds, bool(worst["accounts"]), style)
    return lines + _accounts(alike, style)


def _headline(alike: list[Entry], style: Style) -> list[str]:
    entry = alike[0]
    name = _names(alike)
    if entry["run"] is None:
        sight = " in sight" if entry["cause"] == "unknown" else ""
        return [f"{style.paint(name, 'bold')}: no training job{sight} holds it"]
    first = entry["causes"][0] if entry["causes"] else {}
    reason = reason_words(first.get("reason"))
    words = f"{name}: {cause_words(entry['cause'])}" + (f" ({reason})" if reason else "")
    colour = _colour(entry["cause"], first.get("reason"))
    wrapped = textwrap.wrap(printable(words), style.width, subsequent_indent="  ")
    return [style.paint(line, colour, "bold") for line in wrapped]


def _cause(
    cause: Mapping[str, Any],
    shares: Sequence[float],
    seconds: float,
    gpu_seen: bool,
    style: Style,
) -> list[str]:
    lines = style.column("lost", _cost(cause, shares, seconds, gpu_seen))
    for number, evidence in enumerate(cause.get("evidence", [])):
        lines += style.column("" if number else "evidence", evidence_line(evidence))
    function = cause.get("function")
    if function:
        where = f"{function['name']}  {function['file']}:{function['line']}"
        lines += style.column("function", printable(where))
    if cause.get("next_action"):
        lines += style.column("next", printable(cause["next_action"]))
    return lines


def _cost(cause: Mapping[str, Any], shares: Sequence[float], seconds: float, gpu_seen: bool) -> str:
    share = sum(shares) / len(shares)
    if not gpu_seen:
        cost = f"{_percent(share)} of the host's time, over {seconds:.0f} s"
    else:
        cost = (
            f"{_percent(share)} of the time, {sum(shares) * seconds:.1f} of "
            f"{len(shares) * seconds:.1f} GPU-seconds"
        )
    sure = cause.get("confidence")
    if isinstance(sure, int | float):
        return f"{cost}; confidence {sure:.2f}"
    return f"{cost}; confidence {printable(sure)}" if sure else cost


def evidence_line(evidence: Mapping[str, Any]) -> str:
    """The words, their number and their source."""
    text = printable(evidence["text"])
    value = evidence.get("value")
    if value is not None:
        unit = evidence.get("unit")
        text += f": {_quantity(value, None if unit in text.split() else unit)}"
    source = evidence.get("source")
    return f"{text} [{printable(source)}]" if source else text


def _accounts(alike: list[Entry], style: Style) -> list[str]:
    """Where the time went: the mean of the entries, largest first."""
    accounts = _mean([entry["accounts"] for entry in alike])
    if not accounts:
        return style.column("accounts", "none: no GPU of this job is in sight")
    lines: list[str] = []
    for name, share in sorted(accounts.items(), key=lambda item: -item[1]):
        if share < SHOWN_FROM:
            continue
        meaning = style.paint(ACCOUNT_WORDS.get(name, ""), "dim")
        row = f"{printable(name):<10} {_percent(share):>5} {style.bar(share, 22)} {meaning}"
        label = "" if lines else style.paint("accounts", "dim") + "  "
        lines.append("  " + (label or " " * 10) + row)
    return lines


def _cannot_see(entries: Iterable[Entry], style: Style) -> list[str]:
    """What is missing, each once, with whom it concerns when not everyone."""
    entries = list(entries)
    concerned: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        for blind in entry.get("cannot_see", []):
            key = (blind["signal"], blind.get("why") or "", blind.get("remedy") or "")
            concerned.setdefault(key, []).append(entry)
    lines = [style.paint("Cannot see", "bold")] if concerned else []
    for (signal, why, remedy), of in concerned.items():
        whom = "" if len(of) == len(entries) else f" ({_names(of)})"
        lines += style.column(printable(signal), printable(why) + whom, column=18)
        if remedy:
            lines += style.column("", "remedy: " + printable(remedy), column=18)
    return lines


def _names(entries: Sequence[Entry]) -> str:
    """``GPUs 0-3, ranks 0-3`` of several, ``GPU 0, rank 0`` of one."""
    gpus = [entry["gpu"] for entry in entries if entry["gpu"] is not None]
    ranks = [entry["rank"] for entry in entries if entry["rank"] is not None]
    migs = [str(entry["mig"]) for entry in entries if entry.get("mig")]
    name = f"GPU{'s' if len(set(gpus)) > 1 else ''} {ranges(gpus)}" if gpus else "No GPU in sight"
    if migs:
        name += f" MIG {printable(', '.join(migs))}"
    if ranks:
        name += f", rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}"
    return name


def _short_gpu(entry: Entry) -> str:
    gpu = _known(entry["gpu"])
    return f"{gpu}:{printable(entry['mig'])}" if entry.get("mig") else gpu


def _colour(cause: str, reason: str | None) -> str:
    if cause == "none" or reason in INFORMATION:
        return "green"
    return "yellow" if cause == "unknown" else "red"


def _lost(entry: Entry) -> float | None:
    return entry["causes"][0]["lost_ratio"] if entry["causes"] else None


def _cause_share(entry: Entry, number: int) -> float:
    return float(entry["causes"][number]["lost_ratio"])


def _mean(accounts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    filled = [account for account in accounts if account]
    names = dict.fromkeys(name for account in filled for name in account)
    return {name: sum(a.get(name, 0.0) for a in filled) / len(filled) for name in names}


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f} %"


def _quantity(value: object, unit: object) -> str:
    """The number as a person would write it, with its unit."""
    if not isinstance(value, int | float):
        return printable(value)
    if unit == "ratio":
        return f"{value * 100:.0f} %"
    if unit == "pid":
        return f"PID {value:.0f}"
    if unit == "bytes/s":
        return f"{value / 1e9:.2g} GB/s"
    shown = f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"
    words = UNIT_WORDS.get(str(unit), printable(unit or ""))
    return f"{shown} {words.removesuffix('s') if shown == '1' else words}".rstrip()


def _known(value: object) -> str:
    return "-" if value is None else printable(value)


def _window(window: Mapping[str, Any], note: str | None) -> list[str]:
    seconds = _length(window)
    line = f"Watched {seconds:.0f} s" if seconds >= 10 else f"Watched {seconds:.2g} s"
    if window["start"] is not None:
        start, end = _moment(window["start"]), _moment(window["end"])
        line += f", {start:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
    return [line, printable(note)] if note else [line]


def _length(window: Mapping[str, Any]) -> float:
    """Seconds; a trace tells them by itself, since it may not know the time of day."""
    if "seconds" in window:
        return float(window["seconds"])
    return (_moment(window["end"]) - _moment(window["start"])).total_seconds()


def _moment(value: float | str) -> datetime:
    """A time of the window: Unix seconds or ISO 8601."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, timezone.utc)
    return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(timezone.utc)
