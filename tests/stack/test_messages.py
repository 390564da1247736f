"""What Docker Compose says where it cannot begin is what docs/stack.md explains."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripts.stack import packages

ROOT = Path(__file__).parents[2]
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
"""Root that is held to the modes of files, as others are."""


def up(engine: Path, before: Sequence[str] = ()) -> str:
    """What ``up`` says with the engine behind this socket."""
    tool = packages.programs("docker-compose")["docker-compose"]
    done = subprocess.run(
        [*before, tool, "up", "-d"],
        cwd=ROOT,
        env={**os.environ, "DOCKER_HOST": f"unix://{engine}", "DOCKER_CONFIG": str(engine.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    return done.stderr


def explained(message: str, told: str) -> bool:
    return message in told and f"`{message}`" in (ROOT / "docs/stack.md").read_text()


def test_without_an_engine(tmp_path: Path) -> None:
    told = up(tmp_path / "none.sock")
    assert explained("Cannot connect to the Docker daemon", told), told


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_without_the_right_to_use_it(tmp_path: Path) -> None:
    path = tmp_path / "closed.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0)
        told = up(path, WITHOUT_OVERRIDE if os.geteuid() == 0 else ())
    message = "permission denied while trying to connect to the Docker daemon socket"
    assert explained(message, told), told
