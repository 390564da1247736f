"""The inputs that coverage-guided fuzzing has found worth keeping, one archive for each reader."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


@cache
def inputs(name: str) -> tuple[bytes, ...]:
    """Those of a reader, by name."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as packed:
        return tuple(packed.read(entry) for entry in sorted(packed.namelist()))
