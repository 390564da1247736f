"""Secrets do not leave a command line, and the rest of it stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.observe.secrets import LONGEST, mask

SECRET = "hunter2-Very_Secret"


@pytest.mark.parametrize(
    "argv",
    [
        ["--token", SECRET],
        [f"--token={SECRET}"],
        [f"--hf-token={SECRET}"],
        [f"--apiKey={SECRET}"],
        [f"--wandb.api_key={SECRET}"],
        ["-password", SECRET],
        [f"WANDB_API_KEY={SECRET}"],
        [f"++logger.secret={SECRET}"],
        [f"https://user:{SECRET}@host/path"],
        [f"s3://bucket/x?X-Amz-Signature={SECRET}&v=1"],
        [f"https://host/?access_token={SECRET}"],
        [f"Authorization: Bearer {SECRET}"],
        ["-c", f"import x; x.login('{SECRET}')"],
        ["--dsn", f"postgres://u:{SECRET}@db"],
    ],
)
def test_a_secret_is_masked(argv: list[str]) -> None:
    shown = mask(["python3", "train.py", *argv])
    assert SECRET not in shown
    assert "hunter2" not in shown
    assert shown.startswith("python3 train.py ") or argv[0] == "-c"


@pytest.mark.parametrize(
    "token",
    [
        "hf_AbCdEfGhIjKlMnOpQrSt",
        "ghp_0123456789abcdefghijABCDEFGHIJ",
        "sk-proj-0123456789abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "glpat-0123456789abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        "0123456789abcdef0123456789abcdef01234567",
        "Zk9vQ2Fyd2FzaDEyMzQ1Njc4OTBBYmNEZWZHaElq",
    ],
)
def test_a_token_is_known_by_its_shape(token: str) -> None:
    assert token not in mask(["python3", "train.py", "positional", token])


@pytest.mark.parametrize(
    "argv",
    [
        ["--max-tokens", "512"],
        ["--tokenizer", "gpt2"],
        ["--num_keys=3"],
        ["--keyboard=us"],
        ["--author=me"],
        ["--monkey", "banana"],
        ["--data", "/data/imagenet/train/deadbeefdeadbeef"],
        ["s3://bucket/path/part-00001.parquet"],
        ["--use-auth-token", "--lr", "0.1"],
        ["https://host/?page=2"],
    ],
)
def test_the_rest_stays(argv: list[str]) -> None:
    line = ["python3", "train.py", *argv]
    assert mask(line) == " ".join(line)


def test_it_is_one_line_of_bounded_length() -> None:
    shown = mask(["python3", "a\nb\x1b[31m\u202ec", "x" * 1000])
    assert shown.startswith("python3 a b [31m c xxx")
    assert len(shown) == LONGEST
    assert shown.endswith("…")


@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_command_line_is_bearable(argv: list[str]) -> None:
    shown = mask(argv)
    assert len(shown) <= LONGEST
    assert not any(ord(c) < 32 for c in shown)
