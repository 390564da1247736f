"""The page's files: what they weigh, whose they are, and colours in step with the dashboards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.expose.samples import Clock, view

from gpuwhy.evidence.words import ACCOUNT_WORDS, PHASE_WORDS
from gpuwhy.expose import assets, page
from gpuwhy.expose.app import make
from gpuwhy.expose.auth import Web
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State
from gpuwhy.ledger.accounts import ACCOUNTS
from gpuwhy.signals.phase_rules import PHASES

ALL_BYTES = 300_000
FILES = assets.load()
PALETTE = FILES["palette.css"].body.decode()


@pytest.fixture
def client() -> TestClient:
    return TestClient(make(State(clock=Clock(1.0)), Web(None), Notifications()))


def slug(name: str) -> str:
    return re.sub("[^a-z0-9]", "-", name.lower())


def test_everything_that_is_loaded_stays_small_even_uncompressed() -> None:
    html = page.render(view(), [])
    names = re.findall('(?:src|href)="static/([^"]+)"', html)
    assert set(names) <= set(FILES)
    modules = {name for name in FILES if name.endswith(".js") and "/" not in name}
    assert modules <= set(names), "a module that is not asked for at once comes late"
    assert sum(len(FILES[name].body) for name in names) + len(html) < ALL_BYTES


def test_what_others_wrote_comes_with_its_licence() -> None:
    vendor = [name for name in FILES if name.startswith("vendor/") and "VERSIONS" not in name]
    libraries = {name.split("/")[1].split(".")[0] for name in vendor}
    versions = FILES["vendor/VERSIONS.txt"].body.decode()
    assert all(f"{library} " in versions for library in libraries)
    assert libraries == {"uPlot", "idiomorph"}
    for library in libraries:
        assert "ermission" in FILES[f"vendor/{library}.LICENSE.txt"].body.decode()


def test_a_browser_that_has_a_file_is_not_sent_it_again(client: TestClient) -> None:
    first = client.get("/static/style.css")
    assert first.headers["content-type"].startswith("text/css")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/static/style.css", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304 and not again.content
    assert client.get("/").headers["cache-control"] == "no-store"


def test_files_are_compressed_for_whom_takes_it(client: TestClient) -> None:
    name = "vendor/uPlot.iife.min.js"
    plain = client.get(f"/static/{name}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == FILES[name].body
    packed = client.get(f"/static/{name}", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip" and packed.content == FILES[name].body
    assert int(packed.headers["content-length"]) < 30_000


@pytest.mark.parametrize("name", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "nothing.js", ""])
def test_no_other_file_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_the_page_may_run_its_own_scripts_and_no_others(client: TestClient) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "unsafe" not in policy and "http" not in policy and "data:" not in policy


def test_every_account_and_phase_has_a_colour_and_words() -> None:
    for family, names, words in (
        ("account", ACCOUNTS, ACCOUNT_WORDS),
        ("phase", PHASES, PHASE_WORDS),
    ):
        assert set(names) == set(words)
        for name in names:
            variable = f"--{family}-{slug(name)}"
            assert f"{variable}: #" in PALETTE
            assert f".{family}-{slug(name)} {{ color: var({variable}); }}" in PALETTE
            for script in ("strips.js",):
                assert f'"{name}"' in FILES[script].body.decode(), f"{name} is drawn nowhere"


def test_colours_and_words_are_those_of_the_dashboards() -> None:
    if not (Path(__file__).parents[2] / "grafana/source/palette.py").exists():
        pytest.skip("the dashboards' source is not here")
    from grafana.source import words
    from scripts import page_palette

    assert page_palette.sheet() == PALETTE, "python scripts/page_palette.py --write"
    assert {name: PHASE_WORDS[name] for name in words.PHASES} == words.PHASES
