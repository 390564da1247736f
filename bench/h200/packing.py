"""Which variants run at the same time: one a GPU, never two on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Variants = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Place:
    """A variant, the indices of its GPUs and the cores it may use."""

    variant: str
    gpus: list[int]
    cores: list[int]


def pack(wanted: list[str], variants: Variants, gpus: int, cores: list[int]) -> list[list[Place]]:
    """Slots in the order wanted; single-GPU variants share a slot, each on its own GPU and cores.

    A variant that is recorded from its start has a slot to itself. Raises ``KeyError`` for an
    unknown variant, ``ValueError`` for one that needs more GPUs than there are.
    """
    slots: list[list[Place]] = []
    open_slot: list[str] = []
    for name in wanted:
        need = variants[name].get("gpus", 1)
        if need > gpus:
            raise ValueError(f"{name} needs {need} GPUs, the machine has {gpus}")
        if need > 1 or gpus == 1 or _alone(variants[name]):
            slots.append([Place(name, list(range(need)), cores)])
            continue
        open_slot.append(name)
        if len(open_slot) == gpus:
            slots.append(_share(open_slot, cores))
            open_slot = []
    if open_slot:
        slots.append(_share(open_slot, cores))
    return slots


def _alone(entry: dict[str, Any]) -> bool:
    return "record_from" in entry.get("launch", {})


def _share(names: list[str], cores: list[int]) -> list[Place]:
    if len(names) == 1:
        return [Place(names[0], [0], cores)]
    part = max(len(cores) // len(names), 1)
    return [
        Place(name, [i], cores[i * part : (i + 1) * part] or cores) for i, name in enumerate(names)
    ]
