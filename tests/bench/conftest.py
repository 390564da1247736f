"""The bench is no package that is installed: its folder's parent goes on the path."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


@pytest.fixture(scope="session")
def jobs() -> Path:
    """The folder of the planted jobs."""
    return ROOT / "bench" / "jobs"


@pytest.fixture(scope="session")
def job_module(jobs: Path) -> Callable[[str], ModuleType]:
    """Loads a module of the jobs that imports none of its neighbours."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"bench_jobs_{name}", jobs / f"{name}.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load
