"""What the driver says of single GPUs, in the verdict: those that answer no more, and why one of
them gives less than the others.

A GPU that was well for most of a window has a verdict in which nothing is missing, and one that was
lost before has none at all: without this, nobody would be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Sources = Mapping[str, Mapping[str, object]]
"""The last word of each source: by its name, and by name and UUID of what it says of one GPU."""

WORDS = {
    "utilization": "utilisation",
    "power_w": "power",
    "sm_mhz": "clock",
    "temperature_c": "temperature",
    "reasons": "clock-event reasons",
    "memory_used": "memory in use",
}

Verdict = dict[str, Any]
Blind = dict[str, str]


def told(verdict: Verdict, sources: Sources) -> Verdict:
    """The verdict with what ``sources`` say of single GPUs in ``cannot_see``."""
    known = {entry["uuid"] for entry in verdict["gpus"]}
    elsewhere = [
        _blind(said, f"{uuid}: " if uuid else "")
        for uuid, said in _lost(sources)
        if uuid not in known
    ]
    gpus = [{**entry, "cannot_see": _of(entry, sources, elsewhere)} for entry in verdict["gpus"]]
    return {**verdict, "gpus": gpus}


def _of(entry: Verdict, sources: Sources, elsewhere: list[Blind]) -> list[Blind]:
    uuid = entry["uuid"]
    blind = [
        _in_own_words(one, sources.get(f"{one['signal']} {uuid}")) for one in entry["cannot_see"]
    ]
    own = sources.get(f"nvml {uuid}") or {}
    rest = [one for one in blind if one["signal"] != "nvml"]
    if _is_down(own):
        return [_blind(own), *rest]
    if len(rest) == len(blind) and own.get("missing"):
        return [*elsewhere, *blind, _lacks(own)]
    return [*elsewhere, *blind]


def _lost(sources: Sources) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(UUID, what was said) of each GPU that answers no more; "" for those that never gave one, of
    which NVML, which is up, speaks itself."""
    whole = sources.get("nvml") or {}
    told = str(whole.get("why") or "") if whole.get("up") else ""
    if told:
        yield "", whole
    for key, said in sources.items():
        name, _, uuid = key.partition(" ")
        # Once it gives no handle, the same GPU is spoken of by its number.
        if name == "nvml" and uuid and _is_down(said) and not told.endswith(str(said.get("why"))):
            yield uuid, said


def _is_down(said: Mapping[str, object]) -> bool:
    return said.get("up") is False


def _blind(said: Mapping[str, object], whom: str = "") -> Blind:
    why, remedy = said.get("why") or "it does not answer", said.get("remedy") or ""
    return {"signal": "nvml", "why": f"{whom}{why}", "remedy": str(remedy)}


def _lacks(said: Mapping[str, Any]) -> Blind:
    """Of a GPU that is up: values that it should give and does not."""
    names = ", ".join(WORDS.get(name, name) for name in said["missing"])
    why = said.get("why") or "this GPU and its driver do not give it"
    return {"signal": "nvml", "why": f"{names} not read: {why}", "remedy": "none"}


def _in_own_words(blind: Blind, said: Mapping[str, object] | None) -> Blind:
    """What the source said of this very GPU counts before what holds of any."""
    if said is None or not said.get("why"):
        return blind
    if _is_down(said):
        return {**blind, "why": str(said["why"]), "remedy": str(said.get("remedy") or "none")}
    return {**blind, "why": f"{blind['why']}: {said['why']}"}  # it is up, and lacks a part
