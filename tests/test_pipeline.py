"""However observations come in, the same seconds are entered."""

from __future__ import annotations

from pathlib import Path

from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

RECORDING = Path(__file__).parent / "recordings" / "data_slow.gpuwhy.gz"


def test_one_batch_or_many_give_the_same_verdict() -> None:
    observations = list(read(RECORDING)[1])
    whole, pieces = Pipeline(), Pipeline()
    whole.feed(observations)
    for i in range(0, len(observations), 7):
        pieces.feed(observations[i : i + 7])
    whole.finish()
    pieces.finish()
    assert whole.verdicts() == pieces.verdicts()


def test_a_sparse_recording_fed_at_once_loses_no_second() -> None:
    pipeline = Pipeline()
    pipeline.feed(
        {"kind": "gpu", "t": 1000.0 + 0.5 * i, "uuid": "g", "utilization": 0.5} for i in range(600)
    )
    pipeline.finish()
    assert pipeline.book.observed["g"] >= 298
