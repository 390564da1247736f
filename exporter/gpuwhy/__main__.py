"""Where ``gpuwhy`` and ``python -m gpuwhy`` begin."""

import signal
import sys


def main() -> int:
    """Run a command; 130 where Ctrl-C ended it, even while its modules are being imported."""
    try:
        from gpuwhy import cli

        return cli.main()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough: the end is quiet
        return 130


if __name__ == "__main__":
    sys.exit(main())
