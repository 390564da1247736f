"""Checks of plain values, put together from small ones; ``form`` makes the contract of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Limits = tuple[float, float]
Check = Callable[[Any], str | None]
"""None where the value is good, else what is wrong with it."""

MANY = 100_000
"""Most values in one list: a ring holds 120, a process table 1000."""


def number(limits: Limits, *, integer: bool) -> Check:
    low, high = limits
    word = "whole number" if integer else "number"

    def check_number(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int if integer else int | float):
            return f" is no {word}"
        if not low <= value <= high:  # false for NaN too
            return f" is out of range ({low:g} to {high:g})"
        return None

    return check_number


def instance(of: type, word: str) -> Check:
    return lambda value: None if isinstance(value, of) else f" is no {word}"


def one_of(words: tuple[Any, ...]) -> Check:
    told = ", ".join(map(str, words))
    return lambda value: (
        None if isinstance(value, str | int) and value in words else f" is none of {told}"
    )


def either(checks: list[Check]) -> Check:
    def check_either(value: Any) -> str | None:
        said = [one(value) for one in checks]
        return None if None in said else said[0]

    return check_either


def list_of(item: Check) -> Check:
    def check_list(value: Any) -> str | None:
        if not isinstance(value, list):
            return " is no list"
        if len(value) > MANY:
            return f" has more than {MANY} values"
        return next((f"[{i}]{wrong}" for i, v in enumerate(value) if (wrong := item(v))), None)

    return check_list


def row_of(*items: Check, least: int) -> Check:
    """A list whose places have meanings of their own."""

    def check_row(value: Any) -> str | None:
        if not isinstance(value, list) or len(value) < least:
            return f" is no list of {least} values"
        pairs = enumerate(zip(value, items, strict=False))
        return next((f"[{i}]{wrong}" for i, (v, item) in pairs if (wrong := item(v))), None)

    return check_row


def map_of(item: Check) -> Check:
    def check_map(value: Any) -> str | None:
        if not isinstance(value, dict):
            return " is no object"
        return next((f".{k}{wrong}" for k, v in value.items() if (wrong := item(v))), None)

    return check_map


def object_of(fields: Mapping[str, Check], required: tuple[str, ...] = ()) -> Check:
    def check_object(value: Any) -> str | None:
        if not isinstance(value, dict):
            return " is no object"
        for name in required:
            if name not in value:
                return f" has no {name}"
        for name, item in value.items():
            known = fields.get(name)
            wrong = known(item) if known is not None else None
            if wrong:
                return f".{name}{wrong}"
        return None

    return check_object
