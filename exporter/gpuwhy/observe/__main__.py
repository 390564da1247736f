"""``python -m gpuwhy.observe '{"pace": "steady"}'``: the observer process, and what it can tell at
once: ``python -m gpuwhy.observe --describe``. Started by ``supervisor``, not by people."""

from __future__ import annotations

import json
import sys

from gpuwhy import logs
from gpuwhy.observe import describe, observer
from gpuwhy.observe.options import options_of
from gpuwhy.observe.time_slice import ask_for_short_slices


def main(arguments: list[str]) -> None:
    """Observe with the options of the first argument, or describe."""
    logs.setup("warning")
    if arguments[:1] == ["--describe"]:
        json.dump(describe.gather(), sys.stdout)
        return
    ask_for_short_slices()  # first, for all threads and samplers
    observer.main(options_of(json.loads(arguments[0]) if arguments else {}))


if __name__ == "__main__":
    main(sys.argv[1:])
