"""``python -m gpuwhy`` is ``gpuwhy``."""

import sys

from gpuwhy.cli import main

if __name__ == "__main__":
    sys.exit(main())
