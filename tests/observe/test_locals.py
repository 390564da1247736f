"""Which locals leave the observer: integers that may count steps, and nothing else."""

from __future__ import annotations

import pytest

from gpuwhy.observe.locals import MOST, counters, worker_index

FILE = "/job/train.py"
TRAINER = "/venv/lib/python3.12/site-packages/transformers/trainer.py"


def test_integers_from_the_leaf_outwards() -> None:
    texts = [
        ("Trainer._run_epoch", TRAINER, "step", "11"),
        ("Trainer._inner_training_loop", TRAINER, "max_steps", "1000000"),
        ("main", FILE, "epoch", "-1"),
    ]
    assert counters(texts) == [[*text[:3], int(text[3])] for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "True",
        "1.5",
        "+bigint",
        '"42"',
        "[1, 2]",
        "None",
        "<Tensor at 0x7f>",
        "?",
        "",
        "0x7f",
        "1e3",
    ],
)
def test_whatever_is_no_integer_stays(text: str) -> None:
    assert counters([("train", FILE, "step", text)]) == []


@pytest.mark.parametrize(
    "name",
    ["token", "api_token", "password", "PASSWD", "secret_number", "auth_id", "api_key", "key",
     "private_keys", "pin", "card_pin", "otp", "credential"],
)  # fmt: skip
def test_secrets_stay(name: str) -> None:
    assert counters([("train", FILE, name, "1234")]) == []


@pytest.mark.parametrize("name", ["step", "i", "it", "batch_idx", "n_iter", "epoch", "global_step"])
def test_counters_of_plain_loops_go(name: str) -> None:
    assert counters([("train", FILE, name, "7")]) == [["train", FILE, name, 7]]


@pytest.mark.parametrize(
    "file",
    ["/usr/lib/python3.11/threading.py", "/opt/conda/lib/python3.12/multiprocessing/queues.py",
     "/venv/lib/python3.13t/selectors.py", "<frozen runpy>",
     "/venv/lib/python3.12/site-packages/torch/optim/adam.py"],
)  # fmt: skip
def test_library_frames_count_no_steps(file: str) -> None:
    assert counters([("run", file, "step", "7")]) == []


def test_bounded() -> None:
    assert len(counters(("deep", FILE, f"n{i}", "1") for i in range(1000))) == MOST


def test_the_batch_of_a_worker() -> None:
    file = "/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py"
    texts = [
        ("fetch", file.replace("worker", "fetch"), "idx", "201"),
        ("_worker_loop", file, "idx", "50"),
        ("_worker_loop", file, "worker_id", "0"),
        ("train", FILE, "step", "3"),
    ]
    assert worker_index(texts) == [["_worker_loop", file, "idx", 50]]
