"""The files of the page, read once: a path from outside is a key of this table, never a path."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import Response

from gpuwhy.expose.compress import takes_gzip

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, plain and compressed; ``tag`` changes with its content."""

    body: bytes
    compressed: bytes
    content_type: str
    tag: str


def load(folder: Path = FOLDER) -> Mapping[str, Asset]:
    """Every file below the folder whose type is known, by its path in it."""
    return {
        path.relative_to(folder).as_posix(): _asset(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES
    }


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Asset(body, gzip.compress(body, 9, mtime=0), TYPES[path.suffix], tag)


def answer(asset: Asset, accept_encoding: str, if_none_match: str) -> Response:
    """The file, or 304 for a browser that has it."""
    headers = {"Cache-Control": "no-cache", "ETag": asset.tag, "Vary": "Accept-Encoding"}
    if asset.tag in if_none_match:
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = asset.content_type
    if takes_gzip(accept_encoding):
        return Response(asset.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(asset.body, headers=headers)
