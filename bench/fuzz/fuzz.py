"""Fuzz one reader with coverage feedback (Atheris, libFuzzer's Python front end).

    pip install atheris==3.0.0
    PYTHONPATH=exporter:. python bench/fuzz/fuzz.py READER [-runs=1000000] [CORPUS ...]

READER is a name of ``tests/evidence/fuzz/targets.py``. Inputs that reach new branches are added to
the first folder; ``-merge=1 SMALL LARGE`` keeps the fewest that reach as much. An input that fails
is written to ``crash-...`` with its traceback.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["gpuwhy.evidence"], enable_loader_override=False):
    from tests.evidence.fuzz.targets import TARGETS

if __name__ == "__main__":
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
