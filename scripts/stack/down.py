"""``./run down``: ends what ``./run up`` started, or what a demonstration left, and nothing else.

Data and logs stay."""

from __future__ import annotations

import sys

from scripts.stack.layout import DEMO, UP
from scripts.stack.processes import stop_all


def main() -> int:
    """The command; its exit status is 0, also where nothing was up."""
    ended = [*stop_all(UP), *stop_all(DEMO)]
    print(f"ended: {', '.join(ended)}" if ended else "nothing was up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
