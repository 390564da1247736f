"""No path, command or shell from outside: held over the whole source, and tried on the server."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
from fastapi.testclient import TestClient

from gpuwhy.expose.app import make
from gpuwhy.expose.auth import Authenticator, Web
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State

PACKAGE = Path(__file__).parents[2] / "exporter/gpuwhy"
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput",
          "eval", "exec", "pickle.loads", "pickle.load", "yaml.load", "yaml.unsafe_load",
          "marshal.loads", "shelve.open"}  # fmt: skip


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield path, node


def test_no_shell_and_nothing_that_runs_what_it_reads() -> None:
    for path, call in calls():
        where = f"{path}:{call.lineno}"
        name = ast.unparse(call.func)
        # Its own seconds, packed in its own memory: nothing from outside comes there.
        own = (path.name, name) == ("packing.py", "pickle.loads")
        assert own or name not in SHELLS, where
        shell = next((k.value for k in call.keywords if k.arg == "shell"), None)
        assert shell is None or ast.unparse(shell) == "False", where


@pytest.mark.parametrize("module", ["actions", "auth"])
def test_secrets_are_compared_in_constant_time(module: str) -> None:
    """Nothing that is called a token or a password stands beside ``==``, ``!=`` or ``in``."""
    tree = ast.parse((PACKAGE / "expose" / f"{module}.py").read_text(encoding="utf-8"))
    used = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert "hmac.compare_digest" in used
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In):
            names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            assert not names & {"token", "given", "password", "raw", "hashed"}, ast.unparse(node)


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(make(State(), Web(None), Notifications()))


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2f..%2fetc/passwd",
        "/static//etc/passwd", "/static/%00", "/static/style.css/../../app.py", "/../etc/passwd",
        "/proc/self/environ", "/api/v1/../../etc/passwd", "/openapi.json", "/docs", "/redoc",
        "/debug/pprof", "/.git/config", "/api/v1/profile",
    ],
)  # fmt: skip
def test_no_path_leads_to_a_file(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 405)


@pytest.mark.parametrize(
    "header", ["Basic Zm9v\u00e9", "Basic", "Basic \x7f", "Bearer x", "Basic " + "A" * 8000]
)
def test_no_header_lets_in_or_ends_in_an_error_of_ours(header: str) -> None:
    users = {"ann": bcrypt.hashpw(b"right", bcrypt.gensalt(4))}
    assert not Authenticator(users).allows(header)


@pytest.mark.parametrize(
    "origin", ["http://[", "null", "https://evil.example", "http://testserver.evil.example", ""]
)
def test_no_action_from_another_origin(tmp_path: Path, origin: str) -> None:
    from gpuwhy.expose.actions import Actions

    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123")
    app = make(State(), Web(None), Notifications(), actions=Actions(token))
    headers = {"Origin": origin, "Gpuwhy-Token": "0123456789abcdef0123"}
    answer = TestClient(app).post("/api/v1/profile", json={"pid": 1}, headers=headers)
    assert answer.status_code == 403
    assert "another origin" in answer.text
