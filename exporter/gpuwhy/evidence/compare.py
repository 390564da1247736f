"""Before and after: step time, accounts and power of two runs, and what else differs.

A difference is told as one only where its confidence interval leaves no doubt that there is any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuwhy.evidence.bootstrap import Estimate, around, draws, ratio, ratios
from gpuwhy.evidence.command_lines import Difference, differences
from gpuwhy.evidence.compare_samples import Sample
from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.accounts import ACCOUNTS, CAUSES

NOTICEABLE = 0.02
"""A change of an account by less than this share of the time is not worth a word."""
WORDS = {"launch": "launch overhead", "host": "host work", "comm": "communication",
         "copy": "copies", "shared": "sharing", "quota": "limits"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """A value before and after, and the change with its interval; None where it is not known."""

    before: Estimate
    after: Estimate
    change: Estimate

    def as_json(self) -> dict[str, Any]:
        parts = {"before": self.before, "after": self.after, "change": self.change}
        return {name: part.as_json() for name, part in parts.items()}

    @property
    def certain(self) -> bool:
        """Does the interval of the change exclude none?"""
        low, high = self.change.low, self.change.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(slots=True)
class Comparison:
    """``step_time`` in s, its change as a share of before (negative: faster); ``power`` in W."""

    before: Sample
    after: Sample
    step_time: Change | None
    accounts: dict[str, Change]
    power: Change | None
    differs: list[Difference]
    summary: str = ""

    @property
    def warning(self) -> str | None:
        """Where more than one thing differs, no one of them can be credited; where one of the two
        holds several jobs, neither can their steps."""
        several = [s for s in (self.before, self.after) if s.runs > 1]
        told = [
            f"{sample.name} holds {sample.runs} jobs, taken together: record one alone"
            for sample in several
        ]
        kinds = {str(one["what"]).partition(":")[0] for one in self.differs}
        if len(kinds) > 1:
            told.append(
                f"{len(kinds)} things differ between the two ({', '.join(sorted(kinds))}): "
                "what changed the speed cannot be told. Change one thing at a time"
            )
        return "; ".join(told) or None

    def as_json(self) -> dict[str, Any]:
        """The object of ``gpuwhy compare --json``."""
        return {
            "schema": 1,
            "before": self.before.name,
            "after": self.after.name,
            "summary": self.summary,
            "step_time": self.step_time.as_json() if self.step_time else None,
            "accounts": {name: change.as_json() for name, change in self.accounts.items()},
            "power": self.power.as_json() if self.power else None,
            "causes": {"before": self.before.causes, "after": self.after.causes},
            "differs": self.differs,
            "warning": self.warning,
        }


def compare(before: Sample, after: Sample) -> Comparison:
    """Compare two samples of the same form."""
    made = Comparison(
        before,
        after,
        _step_time(before, after),
        _accounts(before, after),
        _power(before, after),
        _differences(before, after),
    )
    made.summary = _summary(made)
    return made


def _step_time(before: Sample, after: Sample) -> Change | None:
    if not before.steps.sum() or not after.steps.sum():
        return None
    rows = [draws(len(s.steps), 1, i) for i, s in enumerate((before, after))]
    one, two = (
        ratio(s.step_seconds, s.steps, r) for s, r in zip((before, after), rows, strict=True)
    )
    drawn = [ratios(s.step_seconds, s.steps, r) for s, r in zip((before, after), rows, strict=True)]
    relative = None
    if drawn[0] is not None and drawn[1] is not None:
        relative = drawn[1] / drawn[0] - 1
    return Change(one, two, around(two.value / one.value - 1, relative))


def _accounts(before: Sample, after: Sample) -> dict[str, Change]:
    rows = [draws(len(s.weights), s.block, i) for i, s in enumerate((before, after))]
    made = {}
    for account in ACCOUNTS:
        if account not in before.accounts and account not in after.accounts:
            continue
        amounts = [s.accounts.get(account, np.zeros(len(s.weights))) for s in (before, after)]
        parts = list(zip(amounts, (before.weights, after.weights), rows, strict=True))
        one, two = (ratio(*part) for part in parts)
        drawn = [ratios(*part) for part in parts]
        change = drawn[1] - drawn[0] if drawn[0] is not None and drawn[1] is not None else None
        made[account] = Change(one, two, around(two.value - one.value, change))
    return made


def _power(before: Sample, after: Sample) -> Change | None:
    if before.power is None or after.power is None:
        return None
    parts = []
    for which, (sample, power) in enumerate(((before, before.power), (after, after.power))):
        known = power[~np.isnan(power)]
        parts.append((known, np.ones(len(known)), draws(len(known), sample.block, which)))
    one, two = (ratio(*part) for part in parts)
    drawn = [ratios(*part) for part in parts]
    change = drawn[1] - drawn[0] if drawn[0] is not None and drawn[1] is not None else None
    return Change(one, two, around(two.value - one.value, change))


def _differences(before: Sample, after: Sample) -> list[Difference]:
    made: list[Difference] = []
    for key in dict.fromkeys((*before.facts, *after.facts)):
        one, two = before.facts.get(key), after.facts.get(key)
        if one != two and key == "command line":
            made += differences(one, two)
        elif one != two:
            made.append({"what": key, "before": one, "after": two})
    return made


def slower(made: Comparison, by: float) -> bool | None:
    """Is the step slower by more than this share, beyond doubt? None where it cannot be told."""
    if made.step_time is None:
        return None
    change = made.step_time.change
    beyond_doubt = change.low is None or change.low > 0
    return change.value > by and beyond_doubt


# -- words -----------------------------------------------------------------------------------------


def _summary(made: Comparison) -> str:
    parts = [_speed(made.step_time)]
    moved = _moved(made)
    if moved is not None:
        name, change = moved
        parts.append(f"{_word(name)} from {change.before.value:.0%} to {change.after.value:.0%}")
    text = ", ".join(parts)
    left = [a for a in CAUSES if a in made.accounts]
    largest = max(left, key=lambda a: made.accounts[a].after.value, default=None)
    if largest is None:
        return text
    share = made.accounts[largest].after.value
    if share < th.CAUSE_RATIO:
        return f"{text}; no loss above {th.CAUSE_RATIO:.0%} is left"
    same = moved is not None and moved[0] == largest
    if same:
        return (
            f"{text}; it is still the largest loss" if moved and moved[1].change.value < 0 else text
        )
    was = max(left, key=lambda a: made.accounts[a].before.value)
    verb = "is still" if was == largest else "is now"
    return f"{text}; {_word(largest)} {verb} the largest, {share:.0%}"


def _speed(step: Change | None) -> str:
    if step is None:
        return "step time not known"
    factor = step.before.value / step.after.value
    if not step.certain and step.change.certain:
        return f"no certain change of the step time ({step.change.value:+.1%}, within its noise)"
    if factor >= 1.1:
        return f"{factor:.1f}x faster"
    if factor <= 1 / 1.1:
        return f"{1 / factor:.1f}x slower"
    return f"{abs(step.change.value):.1%} {'slower' if step.change.value > 0 else 'faster'}"


def _moved(made: Comparison) -> tuple[str, Change] | None:
    """The loss that changed most."""
    moved = [
        (name, change)
        for name, change in made.accounts.items()
        if name in CAUSES and abs(change.change.value) >= NOTICEABLE
    ]
    return max(moved, key=lambda one: abs(one[1].change.value)) if moved else None


def _word(account: str) -> str:
    return WORDS.get(account, account)
