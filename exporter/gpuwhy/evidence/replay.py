"""A pipeline run over observations that are at hand already, piece by piece: it keeps only the
last seconds of what it is fed, so seconds must be completed on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuwhy.observe.observation import Observation
from gpuwhy.pipeline import Pipeline

SPAN_S = 2.0
MOST = 500
KEEP_S = 7 * 86400


def replay(observations: Iterable[Observation]) -> Pipeline:
    """The pipeline after all of them, every second entered."""
    pipeline = Pipeline(keep_s=KEEP_S)
    for piece in pieces(observations):
        pipeline.feed(piece)
    pipeline.finish()
    return pipeline


def pieces(observations: Iterable[Observation]) -> Iterator[list[Observation]]:
    """Lists of what lies within SPAN_S, of at most MOST observations each."""
    piece: list[Observation] = []
    for seen in observations:
        if piece and (len(piece) >= MOST or abs(float(seen["t"]) - float(piece[0]["t"])) > SPAN_S):
            yield piece
            piece = []
        piece.append(seen)
    if piece:
        yield piece
