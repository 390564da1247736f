"""The documents say what is true: outputs and figures are those of the program, links lead
somewhere, commands exist with their options, and both READMEs are in step."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from scripts import documents
from scripts.pictures import DASHBOARDS, LARGEST, PAGES

from gpuwhy.cli import COMMANDS, build_parser
from gpuwhy.evidence.words import CAUSE_WORDS
from gpuwhy.expose import alerting
from gpuwhy.ledger import accounts, thresholds

ROOT = Path(__file__).parent.parent
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
SKIPPED = {".venv", ".run", ".git", ".whl", ".hypothesis", ".pytest_cache", "node_modules"}
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")


def pages() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.md") if not SKIPPED & set(p.relative_to(ROOT).parts))


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", documents.PAGES)
def test_what_is_shown_is_what_is_printed_and_measured(name: str) -> None:
    made = documents.fresh(ROOT / name)
    assert made == text(ROOT / name), "make it again: python -m scripts.documents"


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(re.sub(r"lost +\d+ % of", "lost 1 % of", text(ENGLISH), count=1))
    assert documents.fresh(page) == text(ENGLISH) != page.read_text()


def test_figures_of_cost_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = "| cnn c01, bound by its GPU | 51 ms | 9 / 8 | +0.10 % | 0 % | - | - | - | - |\n"
    own = "| c01 | 8 % of a core | 123 MB | 2 s | 3 s |\n"
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    words = documents.WORDS["en"]
    assert documents.cost(words) == words["no cost"] + "\n"
    (tmp_path / documents.COST).write_text(cells + own)
    shown = documents.cost(words)
    row = "| cnn c01, bound by its GPU | 9 / 8 | +0.10 % | 0 % | 8 % of a core | 123 MB |"
    assert row in shown
    assert words["cost not known"] in shown
    (tmp_path / documents.COST).write_text(cells.replace("+0.10 %", "+0.10 % (0.00 to +0.20)"))
    assert words["cost known"] in documents.cost(words)


# -- links and anchors ---------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", text(page))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_document_is_in_the_list() -> None:
    listed = text(ROOT / "docs/README.md")
    missing = [p.name for p in (ROOT / "docs").glob("*.md") if f"({p.name})" not in listed]
    assert missing == ["README.md"]


# -- commands ------------------------------------------------------------------------------------


def commands(page: Path) -> Iterator[str]:
    """Whatever stands as a command of ours in a page: in blocks, line by line, and in code."""
    blocks = [body for kind, body in FENCE.findall(text(page)) if kind in ("", "sh", "bash")]
    lines = [line.removeprefix("$ ") for body in blocks for line in body.splitlines()]
    for line in [*lines, *CODE.findall(FENCE.sub("", text(page)))]:
        for part in re.split(r"[;|]|&&", line.partition("  #")[0]):
            found = re.search(r'(?:^|PATH" )(?:sudo )?((?:gpuwhy|\./run) .+)', part.strip())
            if found:
                yield found[1]


def wrong(command: str) -> str | None:
    """The command, if it does not exist or lacks one of its options; else None."""
    words = re.sub(r"[\[\],]", " ", command.partition("-- ")[0]).split()
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    name = None if words[1].startswith("-") else words[1]
    known = OF_RUN if words[0] == "./run" else options_of_commands()
    return None if name in known and options <= known[name] else command


OF_RUN: dict[str | None, set[str]] = {
    "test": set(),
    "check": {"--full"},
    "demo": {"--for", "--recordings", "--help"},
    "up": {"--receivers", "--help"},
    "down": {"--help"},
    "lock": {"--upgrade"},
}
"""Held against the scripts below."""


def test_options_of_run_exist() -> None:
    assert {p.stem for p in (ROOT / "scripts").glob("*.sh")} - {"runtime", "venv"} == set(OF_RUN)
    for name, options in OF_RUN.items():
        files = [ROOT / f"scripts/{name}.sh", ROOT / f"scripts/stack/{name}.py"]
        source = "".join(file.read_text() for file in files if file.is_file())
        assert all(option in source for option in options - {"--help"}), name


@cache
def options_of_commands() -> dict[str | None, set[str]]:
    """The options of each command; under None those of `gpuwhy` alone."""
    parser = build_parser()
    subparsers = next(a for a in parser._actions if isinstance(a, _SubParsersAction))
    every: dict[str | None, set[str]] = {None: options(parser)}
    for name, sub in subparsers.choices.items():
        below = [a for a in sub._actions if isinstance(a, _SubParsersAction)]
        parts = [sub, *(deeper for action in below for deeper in action.choices.values())]
        every[name] = set().union(*map(options, parts))
    every["alerting"] |= set(re.findall(r'"(--\w+)"', inspect.getsource(alerting)))
    return every


def options(parser: ArgumentParser) -> set[str]:
    return {text for action in parser._actions for text in action.option_strings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist_with_their_options(page: Path) -> None:
    assert [command for command in commands(page) if wrong(command)] == []


@pytest.mark.parametrize(
    "command", ["gpuwhy diagnosis", "gpuwhy diagnose --fro 20s", "./run dmo", "./run demo --til 3s"]
)
def test_a_command_that_does_not_exist_is_noticed(command: str) -> None:
    assert wrong(command)


def test_modules_that_are_named_exist() -> None:
    for page in pages():
        for module in re.findall(r"python3? -m ([a-z_][\w.]+)", text(page)):
            path = module.replace(".", "/")
            places = [ROOT / path, ROOT / "exporter" / path]
            known = any(p.with_suffix(".py").is_file() or p.is_dir() for p in places)
            assert known or module in ("pytest", "pip", "venv"), f"{page.name}: {module}"


# -- both READMEs --------------------------------------------------------------------------------


def skeleton(page: Path) -> dict[str, list[str]]:
    """What must be the same in every language, in order."""
    blocks = [re.sub(r" +#.*", "", body) for _, body in FENCE.findall(text(page))]
    prose = FENCE.sub("", text(page))
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    return {
        "depth of headings": re.findall(r"^#+", prose, re.MULTILINE),
        "blocks": blocks,
        "pictures": re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose),
        "links": [link for link in LINK.findall(prose) if "README" not in link[:6]],
        "code": sorted(set(CODE.findall(prose)) - {"nvidia-smi"}),
        "columns": [str(row.count("|")) for row in rows],
        "percentages": sorted(re.findall(r"\d[\d.]* ?%", prose)),
    }


def test_the_readmes_are_in_step() -> None:
    english, chinese = skeleton(ENGLISH), skeleton(CHINESE)
    for what, expected in english.items():
        assert chinese[what] == expected, what


def test_every_cause_and_command_is_told() -> None:
    for page in (ENGLISH, CHINESE):
        missing = [cause for cause in CAUSE_WORDS if f"`{cause}`" not in text(page)]
        missing += [c.name for c in COMMANDS if f"`gpuwhy {c.name}" not in text(page)]
        assert not missing, page.name


def test_the_readmes_say_how_many_held_back_jobs_are_right_and_which_are_not() -> None:
    rows = documents._rows(ROOT / documents.ACCURACY)
    held_back = [row for row in rows if len(row) == 10 and row[6] == "yes"]
    failing = {row[3] for row in held_back if len(set(row[7].split("/"))) > 1}
    jobs = len({row[0] for row in held_back})
    for page, all_right in (
        (ENGLISH, f"all {jobs} held back are right"),
        (CHINESE, f"预留的 {jobs} 个任务全部判对"),
    ):
        assert (all_right in text(page)) == (not failing), page.name
        assert all(f"`{way}`" in text(page) for way in failing), f"{page.name} names what fails"


def test_each_cause_has_its_section_and_every_threshold_is_told() -> None:
    page = ROOT / "docs/causes.md"
    assert set(accounts.CAUSES) <= anchors(page)
    named = {name for name in vars(thresholds) if name.isupper()}
    told = set(re.findall(r"`([A-Z][A-Z_]{3,})`", text(page)))
    assert told - {"OMP_PROC_BIND", "KMP_AFFINITY"} <= named
    assert named <= told
    reasons = {r for of in accounts.REASONS.values() for r in of if r}
    untold = {r for r in reasons if f"`{r}`" not in text(page)}
    assert not untold


def test_the_straggler_is_told_as_it_was_recorded() -> None:
    shown = documents.printed(
        "gpuwhy diagnose --recording tests/recordings/ddp_straggler.gpuwhy.gz"
    )
    busy = re.findall(r"GPU busy: (\d+) %", shown)
    work = set(re.findall(r"compute +(\d+) %", shown))
    assert (busy, work) == (["93", "19"], {"19"})
    assert all(
        f"{share} %" in text(page) for share in (*busy, *work) for page in (ENGLISH, CHINESE)
    )
    assert f"{100 * thresholds.CAUSE_RATIO:g} %" in text(ENGLISH)


# -- pictures and examples -----------------------------------------------------------------------


def test_pictures_are_there_small_and_used() -> None:
    made = {f"{name}.png" for name in (*PAGES, *DASHBOARDS)}
    there = {path.name: path for path in (ROOT / "docs/pictures").glob("*")}
    assert set(there) == made
    everything = "".join(text(page) for page in pages())
    for name, path in there.items():
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert path.stat().st_size <= LARGEST, name
        assert f"pictures/{name})" in everything, name


def test_the_scrape_configuration_is_yaml() -> None:
    for page in (ENGLISH, CHINESE, ROOT / "docs/security.md"):
        for kind, body in FENCE.findall(text(page)):
            if kind == "yaml":
                assert yaml.safe_load(body)


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch: apt-get install patch")
def test_the_patches_of_adding_fit() -> None:
    """Each by itself, without writing; that the commands then pass is a test of the long suite."""
    for kind, body in FENCE.findall(text(ROOT / "docs/adding.md")):
        if kind == "diff":
            command = ["patch", "-p1", "--forward", "--dry-run"]
            done = subprocess.run(command, cwd=ROOT, input=body, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch: apt-get install patch")
def test_a_signal_an_alert_and_a_panel_are_added_as_written(tmp_path: Path) -> None:
    """The patches and commands of docs/adding.md, in a copy of the project."""
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns(*SKIPPED, "__pycache__")
    shutil.copytree(ROOT, copy, ignore=ignored)
    for folder in (".venv", ".run"):
        if (ROOT / folder).exists():
            (copy / folder).symlink_to(ROOT / folder)
    for kind, body in FENCE.findall(text(ROOT / "docs/adding.md")):
        if kind == "diff":
            command = ["patch", "-p1", "--forward"]
        else:
            command = ["sh", "-ec", body.replace(".venv/bin/python", sys.executable)]
        done = subprocess.run(command, cwd=copy, input=body, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
