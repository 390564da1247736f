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
from scripts.stack.demo import FACTOR
from scripts.stack.shorten import shorten
from tests.alerting.replay import SCRAPE_S, Series

ROOT = Path(__file__).parents[2]
RULES = (*(ROOT / "prometheus/rules").glob("*.yml"), *(ROOT / "alerting/rules").glob("*.yml"))
NAME = re.compile(r"\b(?:gpuwhy|DCGM|alertmanager)_\w+|\bup\b")
GOT = re.compile(r"Labels:\{(.*?)\}\s*Annotations:\{(.*?)\}(?=\s*[,\n\]])", re.DOTALL)
HEAD = re.compile(r"(\w+), time: (\w+),")
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


def shortened(folder: Path) -> list[Path]:
    """The rules as the demonstration has them, so that a test needs seconds for minutes."""
    paths = []
    for rule in RULES:
        path = folder / rule.name
        path.write_text(shorten(rule.read_text(), FACTOR))
        paths.append(path)
    return paths


def files_of(alert: str, rules: Sequence[Path]) -> list[Path]:
    """The recording rules and the file that has the alert."""
    return [p for p in rules if p.name == "recording.yml" or alert in alert_names([p])]


def history(
    series: Sequence[Series],
    seconds: Sequence[int],
    rules: Sequence[Path] = RULES,
    step: float = SCRAPE_S,
) -> dict[int, list[Fired]]:
    """The alerts that fire so many seconds after the first scrape: promtool, asked to expect
    nothing, says what it got."""
    names = alert_names(rules)
    cases = [
        {"eval_time": f"{at}s", "alertname": name, "exp_alerts": []}
        for at in seconds
        for name in names
    ]
    told = run_tests(series, rules, {"alert_rule_test": cases}, step)
    found: dict[int, list[Fired]] = {at: [] for at in seconds}
    for block in told.split("    alertname: ")[1:]:
        name, time = HEAD.match(block).groups()  # type: ignore[union-attr]
        at = _seconds(time)
        got = block.split("got:[", 1)[1]
        for labels, texts in GOT.findall(got):
            one = Fired(_pairs(labels), _pairs(texts))
            assert one.name == name
            found[at].append(one)
    return found


def run_tests(
    series: Sequence[Series], rules: Sequence[Path], test: dict[str, object], step: float = SCRAPE_S
) -> str:
    """The output of ``promtool test rules``."""
    used = set(NAME.findall("\n".join(path.read_text() for path in rules)))
    content = {
        "rule_files": [str(path) for path in rules],
        "evaluation_interval": f"{3 * step:g}s",
        "tests": [
            {
                "interval": f"{step:g}s",
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
    assert done.returncode == 0 or "got:" in told, told[:3000]
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
