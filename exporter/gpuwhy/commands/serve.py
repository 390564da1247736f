"""``gpuwhy serve``: the exporter, in ``gpuwhy.expose.server``."""

from __future__ import annotations

import argparse

from gpuwhy.commands.command import USAGE, CommandError
from gpuwhy.settings import Settings


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until stopped."""
    from gpuwhy.expose import server

    return server.run(settings)


def check_files(settings: Settings) -> None:
    """Raises CommandError with status 2 where a file that the settings name cannot be used."""
    from gpuwhy.expose import actions, web_config
    from gpuwhy.observe import recording

    try:
        if settings.web_config_file is not None:
            web_config.load(settings.web_config_file)
        if settings.web_token_file is not None:
            actions.read_token(settings.web_token_file)
        for path in settings.recording:
            recording.read_header(path)
    except (web_config.WebConfigError, actions.TokenError, recording.RecordingError) as error:
        raise CommandError(str(error), USAGE) from error
