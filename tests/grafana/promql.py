"""What a query asks for, by Prometheus's own parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.grafana.prometheus import Prometheus

Node = Mapping[str, Any]
COUNTING = ("rate", "irate", "increase")


def parse(prometheus: Prometheus, query: str) -> Node:
    """The syntax tree; raises QueryError for what is no PromQL."""
    tree: Node = prometheus.call("parse_query", query=query)
    return tree


def walk(node: Node, above: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Every node with those above it, the nearest last."""
    yield node, above
    for value in node.values():
        for below in value if isinstance(value, list) else [value]:
            if isinstance(below, Mapping) and "type" in below:
                yield from walk(below, (*above, node))


def selectors(tree: Node) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """The vector and matrix selectors."""
    for node, above in walk(tree):
        if node["type"] in ("vectorSelector", "matrixSelector"):
            yield node, above


def names(selector: Node) -> list[str]:
    """Metric names that a selector asks for."""
    if selector.get("name"):
        return [str(selector["name"])]
    for matcher in selector["matchers"]:
        if matcher["name"] == "__name__":
            return str(matcher["value"]).split("|")
    return []


def labels(selector: Node) -> dict[str, str]:
    """Labels that it selects by, with their values."""
    return {m["name"]: m["value"] for m in selector["matchers"] if m["name"] != "__name__"}


def caller(above: tuple[Node, ...]) -> str:
    """The function that takes a selector directly; empty if none does."""
    if above and above[-1]["type"] == "call":
        return str(above[-1]["func"]["name"])
    return ""
