"""Where ``gpuwhy`` and ``python -m gpuwhy`` begin."""

import sys

from gpuwhy import interrupts


def main() -> int:
    """Run a command. The modules are imported only now, with Ctrl-C seen to."""
    interrupts.end_at_once()
    from gpuwhy import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
