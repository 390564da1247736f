"""What the documents show of the program and of its figures, made again:

    PYTHONPATH=exporter:. .venv/bin/python -m scripts.documents [--check]

Blocks that begin with ``$ gpuwhy`` are filled with what that command prints; the tables between
``<!-- accuracy -->`` and ``<!-- cost -->`` marks with rows of docs/accuracy.md and docs/cost.md.
``--check`` writes nothing and exits with 1 if a page is not what would be written.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from gpuwhy.cli import main as gpuwhy

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "README.zh-CN.md", "docs/causes.md", "docs/traces.md")
ACCURACY = "docs/accuracy.md"
COST = "docs/cost.md"
WINDOW = "20 s"
"""The window whose figures are quoted."""
SHOWN = re.compile(r"^(```\n\$ (gpuwhy [^\n]+)\n)(.*?)^```$", re.DOTALL | re.MULTILINE)

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "accuracy": "| part | jobs | windows | right | 95 % interval | unknown | wrong |",
        "cost": "| job | windows on / control | slowdown, mean step | control without gpuwhy "
        "| exporter's CPU | memory |",
        "no cost": "The cost to a job has not been measured yet; no figure is claimed. How it will "
        "be measured: [docs/cost.md](docs/cost.md).",
        "cost known": "Measured on an H200, exporter at its defaults. More, and the commands that "
        "repeat it: [docs/cost.md](docs/cost.md).",
        "cost not known": "Measured on an H200, exporter at its defaults, in **too few windows for "
        "an interval**: nothing large was seen, and no more than that is claimed. More, and the "
        "commands that repeat it: [docs/cost.md](docs/cost.md).",
        "held back": "held back, all",
        "held back, faulty": "held back, faulty",
        "held back, healthy or pausing": "held back, healthy or pausing",
        "tuned on": "tuned on",
    },
    "zh": {
        "accuracy": "| 部分 | 任务数 | 窗口数 | 判对 | 95 % 区间 | 答 unknown | 判错 |",
        "cost": "| 任务 | 窗口数（开 / 对照） | 平均 step 变慢 | 不开 gpuwhy 的对照 "
        "| exporter 的 CPU | 内存 |",
        "no cost": "对任务的影响还没有测过，这里不写没有依据的数字；怎么测见 "
        "[docs/cost.md](docs/cost.md)。",
        "cost known": "在 H200 上以默认设置测得；完整数据和复现命令见 "
        "[docs/cost.md](docs/cost.md)。",
        "cost not known": "在 H200 上以默认设置测得，但**窗口太少，给不出区间**："
        "只能说没有看到大的影响，不能说更多。完整数据和复现命令见 [docs/cost.md](docs/cost.md)。",
        "held back": "预留，全部",
        "held back, faulty": "预留，有故障",
        "held back, healthy or pausing": "预留，健康或正常停顿",
        "tuned on": "参与过调参",
    },
}
"""Words of the tables, by language."""

CELLS: Mapping[str, Sequence[tuple[str, str]]] = {
    "en": (),
    "zh": (
        (r", bound by its GPU", "，受 GPU 限制"),
        (r", bound by launches", "，受 kernel 发射限制"),
        (r", bound by its loader's four workers", "，受 4 个 DataLoader worker 限制"),
        (r"([\d.]+ %) of a core", r"一个核的 \1"),
        (r" to (?=[-+\d])", " 到 "),
    ),
}
"""What stands in their cells, by language: a pattern and what takes its place."""


def main(arguments: Sequence[str]) -> int:
    """Write or check the pages; the exit status."""
    if list(arguments) not in ([], ["--check"]):
        sys.stderr.write("usage: python -m scripts.documents [--check]\n")
        return 2
    stale = []
    for name in PAGES:
        page = ROOT / name
        made = fresh(page)
        if made != page.read_text(encoding="utf-8"):
            stale.append(name)
            if not arguments:
                page.write_text(made, encoding="utf-8")
    if arguments and stale:
        sys.stderr.write(f"stale: {', '.join(stale)}: python -m scripts.documents\n")
    return 1 if arguments and stale else 0


def fresh(page: Path) -> str:
    """The text of a page with everything in it made again."""
    language = "zh" if ".zh" in page.name else "en"
    words = WORDS[language]
    text = SHOWN.sub(lambda m: f"{m[1]}{printed(m[2])}```", page.read_text(encoding="utf-8"))
    for name, table in (("accuracy", accuracy), ("cost", cost)):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, mark, rest = text.partition(begin)
        if mark:
            rows = table(words)
            for pattern, told in CELLS[language]:
                rows = re.sub(pattern, told, rows)
            text = before + begin + rows + end + rest.partition(end)[2]
    return text


@cache
def printed(command: str) -> str:
    """What a command on a recording prints, run in the root of the project."""
    # a stream with an encoding: the report draws its bars in what that can show
    written, here = io.BytesIO(), Path.cwd()
    output = io.TextIOWrapper(written, encoding="utf-8")
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(output):
            status = gpuwhy(shlex.split(command)[1:])
    finally:
        os.chdir(here)
    if status != 0:
        raise ValueError(f"{command}: exit status {status}")
    output.flush()
    return written.getvalue().decode()


def accuracy(words: Mapping[str, str]) -> str:
    """The rows of both parts at one window, as docs/accuracy.md has them."""
    lines = [words["accuracy"], "| --- " * 7 + "|"]
    for cells in _rows(ROOT / ACCURACY):
        if len(cells) == 8 and cells[1] == WINDOW and cells[0] in words:
            lines.append("| " + " | ".join([words[cells[0]], *cells[2:]]) + " |")
    return "\n".join(lines) + "\n"


def cost(words: Mapping[str, str]) -> str:
    """Each job's slowdown beside its control, and what the exporter used, as docs/cost.md has them;
    or that there is no figure yet."""
    rows = _rows(ROOT / COST)
    own = {cells[0]: cells for cells in rows if len(cells) == 5}
    jobs = [cells for cells in rows if len(cells) == 9 and "bound by" in cells[0]]
    if not jobs:
        return words["no cost"] + "\n"
    lines = [words["cost"], "| --- " * 6 + "|"]
    for cells in jobs:
        variant = next((name for name in own if f" {name}," in cells[0]), None)
        used = own[variant][1:3] if variant else ["-", "-"]
        lines.append("| " + " | ".join([cells[0], *cells[2:5], *used]) + " |")
    sure = all("(" in cells[3] for cells in jobs)
    return "\n".join([*lines, "", words["cost known" if sure else "cost not known"]]) + "\n"


def _rows(page: Path) -> list[list[str]]:
    """Cells of every line of a table in a page; none where there is no such page."""
    if not page.is_file():
        return []
    lines = page.read_text(encoding="utf-8").splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:1] == "|"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
