"""A fresh clone on a machine where nothing was made before, for an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.clones import ROOT, free_ports

NOBODY = 65534
PYTHON = "/usr/bin/python3"
"""One that any user may run."""
DEADLINE_S = 360

pytestmark = [
    pytest.mark.full,  # everything is fetched anew
    pytest.mark.timeout(DEADLINE_S + 120),
    pytest.mark.skipif(shutil.which("git") is None, reason="no git to clone with"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter; that of pytest is closed anew by each other run."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_demonstration_from_a_fresh_clone(folder: Path) -> None:
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    (folder / "home").mkdir()
    user = NOBODY if os.geteuid() == 0 else None
    if user is not None:
        for path in (clone, *clone.rglob("*"), folder / "home"):
            os.chown(path, user, user, follow_symlinks=False)
    done = subprocess.run(
        ["sh", "run", "demo", "--for", "180s"],
        cwd=clone,
        env={**os.environ, **free_ports(), "HOME": str(folder / "home"), "PYTHON": PYTHON},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Each fault brought the notification of its cause" in done.stdout
    assert list((clone / ".run/demo").glob("*.pid")) == []
