"""The shape of the code, held by tests: who may touch the outside world, and how long a file is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "exporter" / "gpuwhy"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 400  # aim at 130, and at 300 for the longest
LONG_BY_NATURE = {
    "observe/observation.py",  # the contract: one class for each kind of observation
}

OWNERS = {
    "pynvml": {"observe/nvml_library.py"},
    "psutil": {"observe/"},
    "subprocess": {
        "observe/",
        "evidence/profile.py",
        "evidence/traces/convert.py",
        "doctor_checks/host.py",
    },
    "sqlite3": {"evidence/traces/nsys_sqlite.py"},
    "multiprocessing": {"observe/"},
    "requests": set(),
    "urllib.request": set(),
    "http.client": set(),
    "fastapi": {"expose/"},
    "uvicorn": {"expose/"},
    "bcrypt": {"expose/"},
    "prometheus_client": {"expose/"},
}
"""Foreign modules, and who alone may import them."""

PURE = ("signals/", "ledger/", "pipeline.py", "evidence/report.py", "evidence/words.py")
"""Plain data in, plain data out: these import nothing that can read a file, a clock or a socket."""
PURE_MAY_IMPORT = {
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "itertools",
    "math",
    "operator",
    "re",
    "statistics",
    "string",
    "textwrap",
    "typing",
    "numpy",
    "gpuwhy",
}

LAYERS = {
    "observe/": ("gpuwhy.signals", "gpuwhy.ledger", "gpuwhy.expose", "gpuwhy.evidence"),
    "signals/": ("gpuwhy.ledger", "gpuwhy.expose", "gpuwhy.evidence", "gpuwhy.commands"),
    "ledger/": ("gpuwhy.expose", "gpuwhy.evidence", "gpuwhy.commands"),
    "expose/": ("gpuwhy.commands",),
    "evidence/": ("gpuwhy.commands", "gpuwhy.expose"),
}
"""Data flows one way: what a folder must not import."""

OBSERVE_FOR_PURE = ("gpuwhy.observe.observation",)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imports(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def belongs(name: str, places: set[str] | tuple[str, ...]) -> bool:
    return any(
        name == place or (place.endswith("/") and name.startswith(place)) for place in places
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_foreign_libraries_stay_with_their_owners(path: Path) -> None:
    name = name_of(path)
    used = imports(path)
    used |= {module.split(".")[0] for module in used}
    strangers = {m for m in used & set(OWNERS) if not belongs(name, OWNERS[m])}
    assert not strangers, f"{name} imports {strangers}: ask their owners {OWNERS} instead"


@pytest.mark.parametrize("path", [p for p in MODULES if belongs(name_of(p), PURE)], ids=name_of)
def test_pure_modules_touch_nothing(path: Path) -> None:
    found = imports(path)
    strangers = {module.split(".")[0] for module in found} - PURE_MAY_IMPORT
    assert not strangers, f"{name_of(path)} is pure: {strangers}"
    observers = {
        module
        for module in found
        if module.startswith("gpuwhy.observe.") and not module.startswith(OBSERVE_FOR_PURE)
    }
    assert not observers, f"{name_of(path)} reads observations, not {observers}"
    assert not re.search(r"\b(open|print|input|eval|exec)\(", path.read_text()), (
        "no input, no output"
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_data_flows_one_way(path: Path) -> None:
    name = name_of(path)
    against = {
        module
        for folder, forbidden in LAYERS.items()
        if name.startswith(folder)
        for module in imports(path)
        if module.startswith(forbidden)
    }
    assert not against, f"{name} imports {against}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_what_it_is_and_stays_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text or ast.get_docstring(ast.parse(text)), f"{name_of(path)} has no docstring"
    if name_of(path) not in LONG_BY_NATURE:
        lines = text.count("\n")
        assert lines <= LONGEST_FILE, f"{name_of(path)}: {lines} lines are two topics in one room"


def test_no_shelling_out_to_nvidia_smi_and_no_blocking_calls() -> None:
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        assert "nvmlDeviceGetPcieThroughput" not in texts, f"{name_of(path)}: it blocks for 20 ms"
        starts = "subprocess" in path.read_text(encoding="utf-8")  # else it is the name of a format
        assert not (starts and "nvidia-smi" in texts), f"{name_of(path)} starts nvidia-smi"


def test_the_layout_is_the_documented_one() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    documented = (PACKAGE.parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = {folder for folder in folders if f"{folder}/" not in documented}
    assert not missing, f"docs/architecture.md does not name {missing}"
