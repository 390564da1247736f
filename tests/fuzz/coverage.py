"""``python -m tests.fuzz.coverage [--write]``: lines of each parser's modules that its corpus runs.

Kept in ``coverage.json``; a test holds that the corpus reaches no less. Modules hold more than
parsers (sources, routes), so the share is below 1.
"""

from __future__ import annotations

import contextlib
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.targets import PARSERS

KEPT = Path(__file__).with_name("coverage.json")


def measure(name: str) -> dict[str, int]:
    """``lines`` that the modules' functions have, and how many of them were ``run``."""
    parser = PARSERS[name]
    files = {str(module.__file__) for module in parser.modules}  # type: ignore[attr-defined]
    run: set[tuple[str, int]] = set()

    def trace(frame: types.FrameType, event: str, argument: object) -> object:
        file = frame.f_code.co_filename
        if file not in files:
            return None
        if event == "line":
            run.add((file, frame.f_lineno))
        return trace

    inputs, before = parser.inputs(name), sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        with parser.around():
            for data in inputs:
                with contextlib.suppress(*parser.refusals):
                    parser.run(data)
    finally:
        sys.settrace(before)
    lines = {(file, line) for file in files for line in _lines(file)}
    return {"lines": len(lines), "run": len(run & lines)}


def _lines(file: str) -> Iterator[int]:
    """Lines inside functions: those of the module itself run when it is imported."""
    waiting = [compile(Path(file).read_text(encoding="utf-8"), file, "exec")]
    top = waiting[0]
    while waiting:
        code = waiting.pop()
        waiting += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        if code is not top and not code.co_name[0].isupper():
            yield from (
                line for _, _, line in code.co_lines() if line and line > code.co_firstlineno
            )


def main() -> None:
    found = {name: measure(name) for name in PARSERS}
    for name, figures in found.items():
        print(f"{name}: {figures['run']} of {figures['lines']} lines")
    if "--write" in sys.argv:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
