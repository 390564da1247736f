"""Variables of a dashboard, chosen and filled in as Grafana does it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.grafana.prometheus import Prometheus

Values = Mapping[str, str | list[str]]
ALL = "$__all"
_USED = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")
_LABEL_VALUES = re.compile(r"^label_values\((?:(?P<select>.*), ?)?(?P<label>\w+)\)$", re.DOTALL)
_QUERY_RESULT = re.compile(r"^query_result\((?P<query>.*)\)$", re.DOTALL)


def fill(text: str, values: Values, *, range_s: float, step_s: float, scrape_s: float = 5) -> str:
    """A query with every variable replaced."""
    rate_s = max(step_s + scrape_s, 4 * scrape_s)
    known: dict[str, str | list[str]] = {
        "__range": f"{range_s:.0f}s",
        "__interval": f"{step_s:.0f}s",
        "__interval_ms": f"{1000 * step_s:.0f}",
        "__rate_interval": f"{rate_s:.0f}s",
        **values,
    }

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name.isdigit():  # a group of label_replace
            return match[0]
        found = known[name]
        if isinstance(found, str):
            return found
        escaped = [re.sub(r"([\\^$*{}\[\]'+?.()|])", r"\\\\\1", one) for one in found]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    return _USED.sub(value, text)


def choose(
    dashboard: Mapping[str, Any],
    prometheus: Prometheus,
    end: float,
    range_s: float,
    given: Values,
) -> dict[str, str | list[str]]:
    """A value for each variable: what is given, else All, else the first that is there."""
    chosen: dict[str, str | list[str]] = {}
    for variable in dashboard["templating"]["list"]:
        name = variable["name"]
        if variable["type"] == "datasource" or name in given:
            chosen[name] = given.get(name, "prometheus")
            continue
        found = options(variable, prometheus, end, range_s, chosen)
        if not variable["multi"]:
            chosen[name] = found[0] if found else ""
        elif variable.get("allValue"):
            chosen[name] = variable["allValue"]
        else:
            chosen[name] = found
    return chosen


def options(
    variable: Mapping[str, Any],
    prometheus: Prometheus,
    end: float,
    range_s: float,
    values: Values,
) -> list[str]:
    """The values that a variable offers."""
    text = fill(variable["query"]["query"], values, range_s=range_s, step_s=5)
    labels = _LABEL_VALUES.match(text)
    if labels:
        series = prometheus.labels(labels["select"], end - range_s, end)
        return sorted({s[labels["label"]] for s in series if s.get(labels["label"])})
    result = _QUERY_RESULT.match(text)
    assert result, text
    pattern = variable["regex"].strip("/").replace("(?<", "(?P<")
    found = []
    for series in prometheus.at(result["query"], end):
        inside = ",".join(f'{k}="{v}"' for k, v in sorted(series["metric"].items()))
        match = re.search(pattern, f"{{{inside}}} 1 {end * 1000:.0f}")
        assert match, inside
        found.append((match["text"], match["value"]))
    return [value for _, value in sorted(found)]
