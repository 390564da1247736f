"""The page's colours, made of the dashboards': ``python scripts/page_palette.py --write``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATH = ROOT / "exporter/gpuwhy/expose/static/palette.css"
HEAD = """/* The colours: one for an account, a phase and a signal wherever they are drawn.
   Made from grafana/source/palette.py by scripts/page_palette.py --write: do not edit. */
"""


def slug(name: str) -> str:
    """A name as part of a custom property or a class."""
    return re.sub("[^a-z0-9]", "-", name.lower())


def sheet() -> str:
    """The text of the style sheet."""
    from grafana.source import palette

    families: Mapping[str, Mapping[str, str]] = {
        "account": palette.ACCOUNTS,
        "phase": palette.PHASES,
        "signal": palette.SIGNALS,
    }
    names = [
        (f"{family}-{slug(name)}", name, family) for family in families for name in families[family]
    ]
    variables = [f"  --{key}: {families[family][name]};" for key, name, family in names]
    classes = [
        f".{key} {{ color: var(--{key}); }}" for key, _, family in names if family != "signal"
    ]
    root = "\n".join([":root {", *variables, f"  --limit: {palette.LIMIT};", "}"])
    return HEAD + root + "\n" + "\n".join(classes) + "\n"


def main(arguments: list[str]) -> int:
    """Print the sheet, or write it."""
    sys.path.insert(0, str(ROOT))
    if arguments == ["--write"]:
        PATH.write_text(sheet(), encoding="utf-8")
    elif arguments:
        sys.stderr.write("usage: python scripts/page_palette.py [--write]\n")
        return 2
    else:
        sys.stdout.write(sheet())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
