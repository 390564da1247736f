"""``gpuwhy alerting render``: Alertmanager's configuration, by ``gpuwhy.expose.alerting``."""

from __future__ import annotations

import argparse

from gpuwhy.settings import Settings


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Hand the rest of the command line to the renderer, which parses it."""
    from gpuwhy.expose import alerting

    return alerting.main(arguments.rest)
