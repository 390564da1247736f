"""Rules evaluated by the real promtool: which alerts fire at a time, with their texts."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from scripts.stack import packages
from tests.alerting.replay import SCRAPE_S, Series

ROOT = Path(__file__).parents[2]
RULES = (*(ROOT / "prometheus/rules").glob("*.yml"), *(ROOT / "alerting/rules").glob("*.yml"))
NAME = re.compile(r"\b(?:gpuwhy|DCGM)_\w+|\bup\b")
GOT = re.compile(r"Labels:\{(.*?)\}\s*Annotations:\{(.*?)\}(?=\s*[,\n\]])", re.DOTALL)
PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Fired:
    """A firing alert."""

    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def name(self) -> str:
        return self.labels["alertname"]


def alert_names(rules: Iterable[Path] = RULES) -> list[str]:
    """The alerts of these files, each once."""
    names = [
        rule["alert"]
        for path in rules
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    return list(dict.fromkeys(names))


def fired(series: Sequence[Series], minutes: float, rules: Sequence[Path] = RULES) -> list[Fired]:
    """The alerts that fire so many minutes after the first scrape."""
    return history(series, [minutes], rules)[minutes]


def history(
    series: Sequence[Series], minutes: Sequence[float], rules: Sequence[Path] = RULES
) -> dict[float, list[Fired]]:
    """The same at several times: promtool, asked to expect nothing, says what it got."""
    names = alert_names(rules)
    cases = [
        {"eval_time": f"{round(60 * at)}s", "alertname": name, "exp_alerts": []}
        for at in minutes
        for name in names
    ]
    told = run_tests(series, rules, {"alert_rule_test": cases})
    found: dict[float, list[Fired]] = {at: [] for at in minutes}
    for block in told.split("    alertname: ")[1:]:
        name, seconds = re.match(r"(\w+), time: (\S+),", block).groups()  # type: ignore[union-attr]
        at = next(m for m in minutes if _seconds(seconds) == round(60 * m))
        got = block.split("got:[", 1)[1]
        for labels, texts in GOT.findall(got):
            one = Fired(_pairs(labels), _pairs(texts))
            assert one.name == name
            found[at].append(one)
    return found


def run_tests(series: Sequence[Series], rules: Sequence[Path], test: dict[str, object]) -> str:
    """The output of ``promtool test rules``."""
    used = set(NAME.findall("\n".join(path.read_text() for path in rules)))
    content = {
        "rule_files": [str(path) for path in rules],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": f"{SCRAPE_S}s",
                "input_series": [_input(one) for one in series if one.name in used],
                **test,
            }
        ],
    }
    promtool = packages.programs("promtool")["promtool"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "test.json"  # YAML too, and far faster to write
        file.write_text(json.dumps(content))
        done = subprocess.run(
            [promtool, "test", "rules", file], capture_output=True, text=True, check=False
        )
    told = done.stdout + done.stderr
    assert "FAILED" in told or done.returncode == 0, told
    assert "error" not in told.lower().split("exp:")[0], told[:3000]
    return told


def _input(one: Series) -> dict[str, str]:
    labels = ",".join(f"{k}={json.dumps(v)}" for k, v in sorted(one.labels.items()))
    texts, before = [], None
    for value in one.values:
        # A series that a scrape does not hold any more is marked stale, then absent.
        texts.append(repr(value) if value is not None else "_" if before is None else "stale")
        before = value
    return {"series": f"{one.name}{{{labels}}}", "values": " ".join(texts)}


def _pairs(text: str) -> dict[str, str]:
    return {key: json.loads(f'"{value}"') for key, value in PAIR.findall(text)}


def _seconds(text: str) -> int:
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(int(n) * units[u] for n, u in re.findall(r"(\d+)([hms])", text))
