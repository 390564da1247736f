"""Exit status 0 if the exporter in this container is ready, else 1."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

URL = "http://127.0.0.1:9877/-/ready"

try:
    with urllib.request.urlopen(URL, timeout=3) as answer:
        sys.exit(answer.status != 200)
except (urllib.error.URLError, OSError) as error:
    sys.exit(f"{URL}: {error}")
