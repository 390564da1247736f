"""What a command is, and the exit statuses that all of them share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

ANSWERED = 0  # also when the answer is "none" or "unknown"
NOTHING = 1  # nothing to observe, or a check that was asked for failed
USAGE = 2  # bad input or usage


class CommandError(Exception):
    """A failure that ends the command: the message says what happened and what mends it."""

    def __init__(self, message: str, status: int = NOTHING) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the command table. ``module`` is imported when the command runs, not before."""

    name: str
    summary: str
    description: str
    examples: str
    module: str
    positionals: Callable[[argparse.ArgumentParser], object] | None = None
