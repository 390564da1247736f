"""docs/accuracy.md, made of what ``bench.accuracy`` found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.accuracy import Job

HEAD = """# Accuracy

Made by `python -m bench.accuracy --write docs/accuracy.md`: every recording in `bench/recordings/`
(real training jobs on H200 GPUs with a planted fault, or none) is replayed, and the verdict of each
window is held against the truth that the job itself wrote. A window is *right* if exactly the
causes were named that cost 15 % or more (between 8 and 15 % either answer is right), *abstained* if
the answer was `unknown`. Jobs of the held-back part (`bench/heldout.txt`, listed before the first
recording was made) were not used to choose any rule or threshold; those that were looked into after
all stand in `bench/looked_at.txt` and count as tuned on.

"""


def page(scored: Sequence[Job], left_out: Sequence[tuple[Job, float]], seconds: int) -> str:
    from bench.accuracy import LENGTHS

    held = [j for j in scored if j.held_back]
    tuned = [j for j in scored if not j.held_back]
    parts = [HEAD, f"{len(scored)} ranks of {len({j.variant for j in scored})} jobs, "]
    parts.append(
        f"{seconds / 60:.0f} minutes of recording. The recordings are 35 to 36 s long, so "
    )
    parts.append("there are no windows of 60 s.\n\n## Windows\n\n")
    rows = [
        [name, f"{n} s", *_outcomes(found, n)]
        for n in LENGTHS
        for name, found in (
            ("held back", held),
            ("held back, faulty", [j for j in held if j.rank.causes]),
            ("held back, healthy or pausing", [j for j in held if not j.rank.causes]),
            ("tuned on", tuned),
        )
        if found
    ]
    heads = ["part", "window", "jobs", "windows", "right", "95 % interval", "abstained", "wrong"]
    parts.append(table(heads, rows))
    parts.append("\n## By framework and strength (20 s)\n\n")
    parts.append(_groups(scored, lambda j: str(j.rank.header["framework"]), "framework"))
    parts.append("\n" + _groups(scored, lambda j: str(j.rank.header["strength"]), "strength"))
    parts.append("\n## Planted against answered (20 s windows, largest cause)\n\n")
    parts.append(_confusion(scored))
    parts.append("\n## Every job\n\n" + _each(scored) + "\n" + _errors(held, tuned))
    if left_out:
        parts.append("\n## Left out\n\n")
        for job, loss in left_out:
            parts.append(
                f"- `{job.variant}` ({job.rank.header['job']}) was planted as healthy, but by its "
                f"own account its kernels fill only {1 - loss:.0%} of the time.\n"
            )
    return "".join(parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _outcomes(found: Sequence[Job], length: int) -> list[str]:
    from bench.accuracy import interval, rate

    low, high = interval(found, length)
    total = sum(sum(j.counts[length].values()) for j in found)
    return [
        str(len(found)),
        str(total),
        f"{rate(found, length):.1%}",
        f"{low:.1%} to {high:.1%}",
        f"{rate(found, length, 'abstained'):.1%}",
        f"{rate(found, length, 'wrong'):.1%}",
    ]


def _groups(scored: Sequence[Job], key: Callable[[Job], str], name: str) -> str:
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in scored:
        groups[key(job)].append(job)
    rows = [[k.replace("None", "healthy"), *_outcomes(v, 20)] for k, v in sorted(groups.items())]
    return table([name, "jobs", "windows", "right", "95 % interval", "abstained", "wrong"], rows)


def _confusion(scored: Sequence[Job]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for job in scored:
        counts[job.planted].update(job.answers)
    answers = sorted({a for c in counts.values() for a in c})
    rows = [[p, *[str(c[a] or "") for a in answers]] for p, c in sorted(counts.items())]
    return table(["planted \\ answered", *answers], rows)


def _each(scored: Sequence[Job]) -> str:
    rows = []
    for job in sorted(scored, key=lambda j: (j.counts[20]["wrong"] == 0, j.variant)):
        header, counts = job.rank.header, job.counts[20]
        error = f"{100 * sum(job.errors) / len(job.errors):.1f}" if job.errors else ""
        functions = ", ".join(f"`{n}`" for n in job.functions if n != "right")
        rows.append(
            [
                job.variant,
                str(header["rank"]),
                str(header["framework"]),
                str(header["way"]),
                job.planted,
                str(header["strength"] or ""),
                "yes" if job.held_back else "",
                f"{counts['right']}/{sum(counts.values())}",
                error,
                functions or ("right" if job.functions else ""),
            ]
        )
    heads = ["job", "rank", "framework", "way", "planted", "strength", "held back"]
    heads += ["right (20 s)", "ledger error, points", "function"]
    return table(heads, rows)


def _errors(held: Sequence[Job], tuned: Sequence[Job]) -> str:
    from bench.accuracy import percentile

    lines = []
    for name, found in (("held back", held), ("tuned on", tuned)):
        errors = [100 * e for j in found for e in j.errors]
        if errors:
            lines.append(
                f"Ledger against truth, {name}: median {percentile(errors, 0.5):.1f} points, "
                f"95th percentile {percentile(errors, 0.95):.1f} (20 s windows, one planted "
                "cause; overlapping windows of one job are alike).\n"
            )
    return "\n".join(lines)
