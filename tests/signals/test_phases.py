"""Stacks as py-spy prints them, in plain and qualified form, and the phase they are."""

from __future__ import annotations

import pytest

from gpuwhy.signals.phases import WAIT, classify, classify_worker, is_library

SITE = "/venv/lib/python3.12/site-packages/"
STDLIB = "/usr/lib/python3.12/"
LOADER = SITE + "torch/utils/data/dataloader.py"
TRAIN = ["train", "/job/train.py", 60]
NEXT = [
    ["_MultiProcessingDataLoaderIter._try_get_data", LOADER, 1310],
    ["_MultiProcessingDataLoaderIter._get_data", LOADER, 1473],
    ["_MultiProcessingDataLoaderIter._next_data", LOADER, 1524],
    ["_BaseDataLoaderIter.__next__", LOADER, 741],
]


def stack(*frames: list[object]) -> list[list[object]]:
    return [*frames, TRAIN, ["<module>", "/job/train.py", 84]]


CASES = {
    "pinned wait": (
        "data_wait",
        stack(
            ["Condition.wait", STDLIB + "threading.py", 359],
            ["Queue.get", STDLIB + "queue.py", 180],
            *NEXT,
        ),
    ),
    "unpinned wait, plain names": (
        "data_wait",
        stack(
            ["select", STDLIB + "selectors.py", 415],
            ["wait", STDLIB + "multiprocessing/connection.py", 931],
            ["get", STDLIB + "multiprocessing/queues.py", 113],
            ["_try_get_data", LOADER, 1132],
            ["__next__", LOADER, 630],
        ),
    ),
    "no workers": (
        "data_inline",
        stack(
            ["Images.__getitem__", "/job/data.py", 12],
            ["_MapDatasetFetcher.fetch", SITE + "torch/utils/data/_utils/fetch.py", 54],
            ["_SingleProcessDataLoaderIter._next_data", LOADER, 789],
            ["_BaseDataLoaderIter.__next__", LOADER, 741],
        ),
    ),
    "workers being started": (
        "data_worker_start",
        stack(
            ["Popen._launch", STDLIB + "multiprocessing/popen_fork.py", 66],
            ["_MultiProcessingDataLoaderIter.__init__", LOADER, 1100],
            ["DataLoader._get_iterator", LOADER, 400],
            ["DataLoader.__iter__", LOADER, 440],
        ),
    ),
    "sampler in the main process": (
        "data_sampler",
        stack(
            ["BucketSampler.__iter__", "/job/sampler.py", 9],
            ["_BaseDataLoaderIter._next_index", LOADER, 700],
            ["_BaseDataLoaderIter.__next__", LOADER, 741],
        ),
    ),
    "a progress bar around the loader is not logging": (
        "data_wait",
        stack(*NEXT, ["tqdm.__iter__", SITE + "tqdm/std.py", 1181]),
    ),
    "backward": (
        "backward",
        stack(
            ["_engine_run_backward", SITE + "torch/autograd/graph.py", 869],
            ["backward", SITE + "torch/autograd/__init__.py", 381],
            ["Tensor.backward", SITE + "torch/_tensor.py", 631],
        ),
    ),
    "forward": (
        "forward",
        stack(
            ["Linear.forward", SITE + "torch/nn/modules/linear.py", 134],
            ["Module._call_impl", SITE + "torch/nn/modules/module.py", 1790],
        ),
    ),
    "transforms are data though they are modules": (
        "data_inline",
        stack(
            ["Resize.forward", SITE + "torchvision/transforms/v2/_geometry.py", 100],
            ["Module._call_impl", SITE + "torch/nn/modules/module.py", 1790],
        ),
    ),
    "optimizer": ("optimizer", stack(["Adam.step", SITE + "torch/optim/adam.py", 248])),
    "forward inside Lightning's optimizer closure": (
        "forward",
        stack(
            ["Linear.forward", SITE + "torch/nn/modules/linear.py", 134],
            ["Closure.closure", SITE + "lightning/pytorch/loops/optimization/automatic.py", 129],
            ["AdamW.step", SITE + "torch/optim/adamw.py", 200],
            ["_optimizer_step", SITE + "lightning/pytorch/loops/optimization/automatic.py", 250],
        ),
    ),
    "eval_frame is not compilation": (
        "forward",
        stack(
            ["Linear.forward", SITE + "torch/nn/modules/linear.py", 134],
            ["_fn", SITE + "torch/_dynamo/eval_frame.py", 1263],
        ),
    ),
    "compilation": (
        "compile",
        stack(
            ["synchronize", SITE + "torch/cuda/__init__.py", 1162],
            [
                "CachingAutotuner._make_launchers",
                SITE + "torch/_inductor/runtime/triton_heuristics.py",
                300,
            ],
        ),
    ),
    "synchronise": ("sync", stack(["synchronize", SITE + "torch/cuda/__init__.py", 1162])),
    "checkpoint": ("checkpoint", stack(["save", SITE + "torch/serialization.py", 900])),
    "wandb": ("logging", stack(["Run.log", SITE + "wandb/sdk/wandb_run.py", 1600])),
    "all_reduce": (
        "grad_sync",
        stack(["all_reduce", SITE + "torch/distributed/distributed_c10d.py", 2800]),
    ),
    "the user's own function": ("user", stack(["burn", "/job/train.py", 14])),
    "a known call of the user's line": (
        "sync",
        [["train", "/job/train.py", 70, "scalar"], ["<module>", "/job/train.py", 84]],
    ),
    "a copy of the user's line": (
        "h2d_copy",
        [["train", "/job/train.py", 61, "copy_to_device"], ["<module>", "/job/train.py", 84]],
    ),
    "a C call in the framework's own loop": (
        "framework",
        stack(["Trainer._run_epoch", SITE + "transformers/trainer.py", 1847]),
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_phase(name: str) -> None:
    wanted, frames = CASES[name]
    assert classify(frames).phase == wanted


def test_evaluation_is_a_context_of_the_phase() -> None:
    place = classify(stack(*NEXT, ["evaluate", "/job/train.py", 30]))
    assert (place.phase, place.context) == ("data_wait", "evaluation")


def test_the_function_to_name_is_the_users_deepest() -> None:
    frames = stack(
        ["compile", STDLIB + "re.py", 1],
        ["clean", "/job/text.py", 8],
        ["collate", "/job/text.py", 30],
    )
    assert classify(frames).function == ("clean", "/job/text.py", 8)


@pytest.mark.parametrize(
    ("file", "library"),
    [
        (SITE + "torch/nn/functional.py", True),
        (STDLIB + "threading.py", True),
        ("/root/.pyenv/versions/3.11.7/lib/python3.11/json/decoder.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/home/a/project/train.py", False),
        ("train.py", False),
        ("<stdin>", False),
    ],
)
def test_whose_code_it_is(file: str, library: bool) -> None:
    assert is_library(file) is library


LOOP = ["_worker_loop", SITE + "torch/utils/data/_utils/worker.py", 349]
FETCH = ["_MapDatasetFetcher.fetch", SITE + "torch/utils/data/_utils/fetch.py", 54]


def test_a_worker_waiting_for_an_index_is_idle() -> None:
    place = classify_worker(
        [
            ["select", STDLIB + "selectors.py", 415],
            ["Queue.get", STDLIB + "multiprocessing/queues.py", 113],
            LOOP,
            *stack(*NEXT),
        ]
    )
    assert place is not None
    assert not place.busy


def test_a_worker_is_named_by_the_datasets_method_not_its_helper() -> None:
    place = classify_worker(
        [
            ["burn", "/job/train.py", 14],
            ["Text.tokenize", "/job/train.py", 24],
            ["Text.__getitem__", "/job/train.py", 30],
            FETCH,
            LOOP,
        ]
    )
    assert place is not None
    assert place.busy
    assert place.function == ("Text.tokenize", "/job/train.py", 24)


def test_a_worker_is_named_by_the_helper_of_getitem() -> None:
    frames = [["decode", "/job/img.py", 5], ["Set.__getitem__", "/job/img.py", 9], FETCH, LOOP]
    place = classify_worker(frames)
    assert place is not None
    assert place.function == ("decode", "/job/img.py", 5)


def test_other_processes_are_no_workers() -> None:
    assert classify_worker(stack(["f", "/job/x.py", 1])) is None


@pytest.mark.parametrize(
    ("frames", "phase", "call"),
    [
        ([["wait", STDLIB + "threading.py", 359], ["get", STDLIB + "queue.py", 180]], "user", WAIT),
        ([["result", STDLIB + "concurrent/futures/_base.py", 451]], "user", WAIT),
        ([["IMapIterator.next", STDLIB + "multiprocessing/pool.py", 861]], "user", WAIT),
        ([["EpollSelector.select", STDLIB + "selectors.py", 468]], "user", WAIT),
        (
            [["select", STDLIB + "selectors.py", 468], ["load_batch", "/job/a.py", 3]],
            "data_inline",
            None,
        ),
        ([["dumps", STDLIB + "json/__init__.py", 231]], "user", None),
    ],
)
def test_a_wait_for_another_thread_is_no_python_of_the_job(
    frames: list[list[object]], phase: str, call: str | None
) -> None:
    place = classify(stack(*frames))
    assert (place.phase, place.call) == (phase, call)


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("batches", "data_inline"),
        ("iterate_minibatches", "data_inline"),
        ("sample_batch", "data_inline"),
        ("sample_images", "user"),  # what a diffusion model does
        ("generate_samples", "user"),
        ("generate_batch_samples", "user"),
        ("make_images", "user"),
        ("load_data_and_train", "user"),
    ],
)
def test_names_that_load_and_names_that_infer(name: str, phase: str) -> None:
    assert classify(stack([name, "/job/train.py", 12])).phase == phase
    assert classify(stack([name, "/job/train.py", 12, "sleep"])).phase == phase


def test_importing_a_loading_library_loads_no_batch() -> None:
    load = ["_call_with_frames_removed", "<frozen importlib._bootstrap>", 241]
    frames = stack(
        ["field", STDLIB + "dataclasses.py", 400],
        ["_declare", SITE + "datasets/features/features.py", 91],
        ["<module>", SITE + "datasets/features/features.py", 12],
        load,
        ["<module>", SITE + "datasets/__init__.py", 17],
        load,
    )
    assert classify(frames).phase == "import"
    own = stack(["fetch", SITE + "datasets/table.py", 9], ["<module>", "/job/loop.py", 3], load)
    assert classify(own).phase == "data_inline"
