"""``gpuwhy alerting render``: Alertmanager's configuration, by ``gpuwhy.expose.alerting``."""

from __future__ import annotations

import argparse
import importlib

from gpuwhy.settings import Settings

RENDERER = "gpuwhy.expose.alerting"


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Hand the rest of the command line to the renderer, which parses it."""
    return int(importlib.import_module(RENDERER).main(arguments.rest))
