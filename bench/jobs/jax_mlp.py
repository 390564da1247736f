"""Train an MLP with JAX, on all the devices that the process sees."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from clock import Clock
from costs import Cost
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from options import Options, load
from pace import Pace, measure
from reporting import build_report

Array = Any
FEATURES = 1024


def init_parameters(options: Options) -> list[Array]:
    """Weights of the layers, as a list of matrices."""
    hidden = options.get("width", 8192) if options.scale == "full" else 64
    layers = options.get("layers", 4) if options.scale == "full" else 2
    widths = [FEATURES] + [hidden] * (layers + 1) + [FEATURES]
    keys = jax.random.split(jax.random.PRNGKey(0), len(widths))
    pairs = zip(keys, widths, widths[1:])  # noqa: B905
    return [jax.random.normal(key, (a, b)) / a**0.5 for key, a, b in pairs]


def loss_of(parameters: list[Array], rows: Array) -> Array:
    """Error of the reconstruction."""
    values = rows.astype(jnp.bfloat16) / 8
    x = values
    for weights in parameters[:-1]:
        x = jax.nn.gelu(x @ weights.astype(jnp.bfloat16))
    x = x @ parameters[-1].astype(jnp.bfloat16)
    return jnp.mean((x - values).astype(jnp.float32) ** 2)


def train_step(parameters: list[Array], rows: Array) -> tuple[list[Array], Array]:
    """One step of gradient descent."""
    loss, gradients = jax.value_and_grad(loss_of)(parameters, rows)
    return [p - 1e-4 * g for p, g in zip(parameters, gradients)], loss  # noqa: B905


def make_batch(packed: bytes, shape: tuple[int, int], step: int, budget_s: float) -> np.ndarray:
    """Rows of a batch from their compressed form; inflating goes on for the CPU time given."""
    until = time.thread_time() + budget_s
    rows = inflate(packed)
    while time.thread_time() < until:
        rows = inflate(packed)
    return np.roll(np.resize(rows, shape), step, axis=1)


def inflate(packed: bytes) -> np.ndarray:
    """The bytes of one block."""
    return np.frombuffer(zlib.decompress(packed), np.uint8)


def batches_of(options: Options, shape: tuple[int, int], cost: Cost) -> Iterator[np.ndarray]:
    """Batches made inline, or by threads ahead of the loop."""
    noise = np.random.default_rng(0).integers(0, 8, 1 << 18, dtype=np.uint8)
    packed = zlib.compress(noise.tobytes(), 1)
    threads = options.get("threads", 2)
    if threads == 0:
        return (make_batch(packed, shape, step, cost.now()) for step in itertools.count())
    ready: queue.Queue[np.ndarray] = queue.Queue(maxsize=8)

    def produce(first: int) -> None:
        for step in itertools.count(first, threads):
            ready.put(make_batch(packed, shape, step, cost.now()))

    for first in range(threads):
        threading.Thread(target=produce, args=(first,), daemon=True).start()
    return (ready.get() for _ in itertools.count())


def item_cost(options: Options, pace: Pace, starts: float) -> Cost:
    """CPU seconds of a batch for the share that the variant shall lose."""
    lost, threads = options.get("item_lost"), options.get("threads", 2)
    return Cost(pace.per_item(lost, threads, 1), starts) if lost else Cost()


def host_rows(options: Options, pace: Pace, device: Any) -> int:
    """Rows of a host-side cache that go to the device and back each step."""
    lost = options.get("copy_lost")
    if not lost:
        return 0
    block = np.ones((options.size(1 << 14, 1 << 8), FEATURES), np.float32)
    began = time.perf_counter()
    for _ in range(3):
        np.array(jax.device_put(block, device) + 0)
    block_s = (time.perf_counter() - began) / 3
    rows = int(pace.serial(lost) / block_s * len(block))
    return min(max(rows, 1), options.size(1 << 20, 1 << 10))


def main() -> None:
    """Run the variant."""
    options = load()
    clock = Clock(options)
    devices = jax.devices()
    mesh = Mesh(np.array(devices), ("batch",))
    split = NamedSharding(mesh, PartitionSpec("batch"))
    parameters = jax.device_put(init_parameters(options), NamedSharding(mesh, PartitionSpec()))
    rows = options.size(options.get("batch", 8192), 64) * len(devices)
    shape = (rows, FEATURES)
    sample = jax.device_put(np.ones(shape, np.uint8), split)
    jitted = jax.jit(train_step)
    last: list[Any] = [parameters, None]

    def one_step() -> None:
        last[:] = jitted(last[0], sample)

    pace = measure(one_step, lambda: jax.block_until_ready(last))
    step_of = train_step if options.get("op_by_op") else jitted
    clock.header(pace, devices=[str(device) for device in devices])
    starts = clock.start()
    report = build_report(options, pace, clock, starts)
    cache = np.ones((host_rows(options, pace, devices[0]), FEATURES), np.float32)
    batches = batches_of(options, shape, item_cost(options, pace, starts))
    data_lap = "data_wait" if options.get("threads", 2) else "data_inline"
    losses: list[Array] = []
    clock.lap("startup")
    for step in itertools.count():
        batch = next(batches)
        clock.lap(data_lap)
        batch = jax.device_put(batch, split)
        if len(cache):
            cache = np.array(jax.device_put(cache, devices[0]) * 0.999)
        clock.lap("h2d_copy")
        parameters, loss = step_of(parameters, batch)
        clock.lap("forward")
        losses = [*losses[-2:], loss]
        losses[0].block_until_ready()
        clock.lap("sync")
        report(step, loss)
        if clock.step(step):
            os._exit(0)


if __name__ == "__main__":
    main()
