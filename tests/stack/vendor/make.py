"""Makes ``servicemonitor.schema.json`` anew, in an environment of its own that has the models:

    pip install cloudcoil-models-prometheus-operator==0.80.1.0
    python tests/stack/vendor/make.py

Words are left out of it, everything that decides is kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("servicemonitor.schema.json")
WORDS = ("description", "title", "default")


def plain(schema: Any) -> Any:
    """The schema without texts for readers; a property may bear the name of one."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: plain(value)
        for key, value in schema.items()
        if key not in WORDS or isinstance(value, dict)
    }


def main() -> None:
    from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor

    schema = plain(ServiceMonitor.model_json_schema(by_alias=True))
    FILE.write_text(json.dumps(schema, sort_keys=True, indent=1) + "\n")


if __name__ == "__main__":
    main()
