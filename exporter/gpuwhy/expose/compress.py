"""Answers as gzip, for clients that take it."""

from __future__ import annotations

import gzip

from fastapi import Response

LEAST_BYTES = 1000
"""Shorter bodies are sent as they are."""
LEVEL = 4


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` header names gzip, or anything, with a weight above 0."""
    for part in accept_encoding.lower().split(","):
        coding, _, parameter = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return parameter.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def packed(body: bytes, content_type: str, accept_encoding: str) -> Response:
    """A response with this body, compressed where it is worth it and wanted."""
    headers = {"Content-Type": content_type, "Vary": "Accept-Encoding"}
    if len(body) >= LEAST_BYTES and takes_gzip(accept_encoding):
        body, headers["Content-Encoding"] = gzip.compress(body, LEVEL), "gzip"
    return Response(body, headers=headers)
