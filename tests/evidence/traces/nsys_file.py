"""SQLite databases built to the documented schema of Nsight Systems' export.

No report of nsys could be made where this was written, so these are not exports: they have the
tables and columns that https://docs.nvidia.com/nsight-systems/UserGuide/index.html documents, as of
schema 3.16 (``CURRENT``), and of the export of 2020.4, before processes and schema versions were
told (``OLD``).
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

PID = 4242
GLOBAL_PID = PID << 24
MAIN = GLOBAL_PID | PID

STRINGS = {
    1: "void gemm<float>(int)", 2: "gemm", 3: "cudaLaunchKernel_v7000", 4: "cudaMemcpyAsync_v3020",
    5: "cudaStreamSynchronize_v3020", 6: "sem_clockwait", 7: "enumerate(DataLoader)#x, op_id = 4",
    8: "aten::mm, seq = 12", 9: "python", 10: "read",
}  # fmt: skip

CURRENT = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, uuid TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.1');
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.7.1.84');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, NULL, NULL);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200', 'GPU-1234');
"""

OLD = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL,
  deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL,
  demangledName INT NOT NULL, shortName INT NOT NULL,
  gridX INT NOT NULL, gridY INT NOT NULL, gridZ INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL,
  deviceId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, bytes INT NOT NULL,
  copyKind INT NOT NULL, srcKind INT NOT NULL, dstKind INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL,
  eventClass INT NOT NULL, globalTid INT NOT NULL, correlationId INT NOT NULL, nameId INT NOT NULL,
  returnValue INT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT,
  globalTid INT);
"""


class NsysFile:
    """Adds rows in microseconds."""

    def __init__(self, path: Path, schema: str = CURRENT) -> None:
        self.path = path
        self.old = schema is OLD
        self.database = sqlite3.connect(path)
        self.database.executescript(schema)
        self.database.executemany("INSERT INTO StringIds VALUES (?, ?)", STRINGS.items())
        self._correlation = 0

    def _insert(self, table: str, **values: object) -> None:
        if self.old:
            values.pop("globalPid", None)
        if self.old and table.startswith("CUPTI_ACTIVITY_KIND_R"):
            values["globalTid"] = values.get("globalTid", 0)
        columns = ", ".join(values)
        marks = ", ".join("?" * len(values))
        self.database.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values())
        )

    def call(self, name: int, start: float, length: float) -> int:
        self._correlation += 1
        self._insert(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=int(start * 1000),
            end=int((start + length) * 1000), eventClass=0, correlationId=self._correlation,
            nameId=name, returnValue=0, globalTid=0 if self.old else MAIN,
        )  # fmt: skip
        return self._correlation

    def launch(self, at: float, start: float, length: float) -> None:
        correlation = self.call(3, at, 5)
        self._insert(
            "CUPTI_ACTIVITY_KIND_KERNEL", start=int(start * 1000),
            end=int((start + length) * 1000), deviceId=0, contextId=1, streamId=7,
            correlationId=correlation, demangledName=1, shortName=2, gridX=4, gridY=2, gridZ=1,
            globalPid=GLOBAL_PID,
        )  # fmt: skip

    def copy(self, at: float, start: float, length: float) -> None:
        correlation = self.call(4, at, 5)
        self._insert(
            "CUPTI_ACTIVITY_KIND_MEMCPY", start=int(start * 1000),
            end=int((start + length) * 1000), deviceId=0, streamId=7, correlationId=correlation,
            bytes=1 << 20, copyKind=1, srcKind=0, dstKind=2, globalPid=GLOBAL_PID,
        )  # fmt: skip

    def range(self, start: float, length: float, text: str | None = None, string: int = 0) -> None:
        values: dict[str, object] = {"start": int(start * 1000), "eventType": 59, "text": text}
        values["end"] = int((start + length) * 1000)
        values["globalTid"] = 0 if self.old else MAIN
        if not self.old:
            values["textId"] = string or None
        self._insert("NVTX_EVENTS", **values)

    def system(self, name: int, start: float, length: float) -> None:
        self._insert(
            "OSRT_API", start=int(start * 1000), end=int((start + length) * 1000), eventClass=0,
            globalTid=MAIN, nameId=name, returnValue=0,
        )  # fmt: skip

    def write(self) -> Path:
        self.database.commit()
        self.database.close()
        return self.path


def steps(path: Path, schema: str = CURRENT, wait: float = 1_000.0, named: bool = True) -> Path:
    """Steps of ``wait`` us for the loader and 1 ms of work, as ranges where ``named``."""
    made = NsysFile(path, schema)
    for number in range(4):
        at = 1_000 + number * (wait + 1_020)
        if named:
            made.range(at, wait + 1_000, text=f"step {number}")
            made.range(at, wait, text="data wait")
        elif schema is CURRENT:
            made.system(6, at, wait)
        for i in range(10):
            made.launch(at + wait + i * 10, at + wait + 20 + i * 100, 100)
    return made.write()
