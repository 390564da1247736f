"""What a DataLoader's iterator holds ready, read from its own counters."""

from __future__ import annotations

from typing import Any


def loader_state(batches: Any) -> dict[str, int]:
    """Batches ready and outstanding in a DataLoader's iterator with workers; else nothing."""
    tasks = getattr(batches, "_task_info", None)
    if tasks is None:
        return {}
    cached = sum(len(info) == 2 for info in tasks.values())
    queues = {id(q): q for q in (batches._data_queue, batches._worker_result_queue)}
    return {
        "ready": cached + sum(queue.qsize() for queue in queues.values()),
        "outstanding": batches._tasks_outstanding,
        "sent": batches._send_idx,
        "received": batches._rcvd_idx,
    }
