"""``gpuwhy serve``: the exporter, in ``gpuwhy.expose.server``."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwhy.commands.command import USAGE, CommandError
from gpuwhy.settings import Settings


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until stopped."""
    from gpuwhy.expose import server

    return server.run(settings)


def check_web_config(path: Path) -> None:
    """Raises CommandError with status 2 where the web configuration cannot be used."""
    from gpuwhy.expose import web_config

    try:
        web_config.load(path)
    except web_config.WebConfigError as error:
        raise CommandError(str(error), USAGE) from error
