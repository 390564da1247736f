"""The page in a real headless Chromium: what is seen, heard and done with it.

``GPUWHY_PICTURES=FOLDER`` in the environment of the tests keeps pictures to look at.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.expose import browser as browsers
from tests.expose.browser import Browser, BrowserError, Tab
from tests.expose.hosts import MIX, host, served, watch
from tests.expose.samples import Clock
from tests.expose.test_flame import EVIL, JOB, TOKEN, needs_pyspy
from tests.expose.test_notifications import ALERT
from tests.expose.test_server import Served

from gpuwhy.expose.actions import Actions
from gpuwhy.expose.notifications import Notifications, parse
from gpuwhy.expose.state import State
from gpuwhy.signals.row import RunSignals

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
DRAWN = "document.querySelectorAll('#strips canvas').length >= 5"
PICTURES = os.environ.get("GPUWHY_PICTURES")  # read before the tests' environment is emptied
RECORDING = Path(__file__).parent.parent / "recordings" / "data_slow.gpuwhy.gz"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if browsers.COMMAND is None:
        pytest.skip("no browser: apt-get install chromium")
    with browsers.browser() as found:
        try:
            found.send("Browser.getVersion")
        except (BrowserError, OSError) as error:
            pytest.skip(f"the browser does not start here: {error}")
        yield found


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    found = chromium.tab()
    found.look(1280, 900)
    yield found
    found.close()


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(TOKEN)
    return path


@pytest.fixture(scope="module")
def states() -> dict[int, State]:
    """Hosts of three sizes, each with faulty and healthy runs."""
    return {
        1: host(["data_slow"]),
        8: host([*MIX, "power_cap"], 300),
        64: host((MIX * 10)[:64], 90),
    }


def text(tab: Tab, selector: str) -> str:
    found = tab.run(f"document.querySelector({selector!r}).innerText")
    assert isinstance(found, str)
    return found


def focused(tab: Tab) -> str:
    return str(tab.run("document.activeElement.id || document.activeElement.innerText"))


def keep(tab: Tab, name: str) -> None:
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        tab.picture(Path(PICTURES) / f"{name}.png", whole=True)


def violations(tab: Tab) -> list[Any]:
    """What axe-core has to say, with everything unfolded."""
    tab.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    tab.run(f"{AXE};0")
    told = "[one.id, one.nodes.length, one.nodes[0].html, one.nodes[0].failureSummary]"
    script = f"axe.run(document, {{runOnly: {json.dumps(RULES)}}})"
    script += f".then((found) => found.violations.map((one) => {told}))"
    return list(tab.run(script))


@pytest.mark.parametrize(
    ("gpus", "width", "height", "dark"),
    [
        (1, 400, 800, False),
        (1, 1280, 900, True),
        (8, 400, 800, True),
        (8, 2560, 1440, False),
        (64, 400, 800, False),
        (64, 1280, 900, True),
    ],
)
def test_every_size_is_readable_and_accessible(
    tab: Tab,
    states: dict[int, State],
    token: Path,
    gpus: int,
    width: int,
    height: int,
    dark: bool,
) -> None:
    received = Notifications()
    received.add(parse(json.dumps({"alerts": [ALERT]}).encode()))
    tab.look(width, height, dark=dark)
    with served(states[gpus], Actions(token), received) as url:
        tab.go(url)
        tab.wait(DRAWN)
        assert tab.run("document.documentElement.scrollWidth") <= width, "nothing sticks out"
        smallest = (
            "Math.min(...[...document.querySelectorAll('body *')]"
            ".filter((e) => e.innerText?.trim())"
            ".map((e) => parseFloat(getComputedStyle(e).fontSize)))"
        )
        assert tab.run(smallest) >= 12
        keep(tab, f"{gpus}-gpus-{width}-{'dark' if dark else 'light'}")
        assert violations(tab) == []
    assert tab.complaints == []


WRITTEN = """
window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    window.written.push({text, x, width: this.measureText(text).width});
    return write.call(this, text, x, y, ...rest);
};
"""
"""Notes what is written on a canvas."""


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("span", ["60", "900"])
def test_times_at_the_axis_stand_apart(
    tab: Tab, states: dict[int, State], width: int, span: str
) -> None:
    tab.send("Page.addScriptToEvaluateOnNewDocument", source=WRITTEN)
    tab.look(width, 900)
    with served(states[1]) as url:
        tab.go(url)
        tab.wait(DRAWN)
        tab.run(
            "window.written.length = 0; span.value = " + repr(span) + ";"
            "span.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        tab.wait("window.written.some(({text}) => /^..:../.test(text))")
        times = tab.run("window.written.filter(({text}) => /^..:../.test(text))")
    (first, *rest) = {one["text"]: one for one in times}.values()
    assert len(rest) >= 2
    for one, after in zip([first, *rest], rest, strict=False):
        assert one["x"] + one["width"] < after["x"], (one, after)


def test_the_first_answer_needs_no_script_and_all_of_it_weighs_little(
    tab: Tab, states: dict[int, State]
) -> None:
    with served(states[8]) as url:
        tab.send("Emulation.setScriptExecutionDisabled", value=True)
        tab.go(url)
        root = tab.send("DOM.getDocument")["root"]["nodeId"]
        html = tab.send("DOM.getOuterHTML", nodeId=root)
        assert "waiting for the input pipeline" in html["outerHTML"]
        tab.send("Emulation.setScriptExecutionDisabled", value=False)
        tab.send("Network.clearBrowserCache")
        tab.loaded.clear()
        tab.go(url)
        tab.wait(DRAWN)
        assert sum(tab.loaded.values()) < 300_000
        assert all(request.startswith((url, "about:")) for request in tab.urls.values())
        painted = tab.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        print(f"first paint {painted:.0f} ms, {sum(tab.loaded.values()) / 1000:.0f} kB")
        assert painted < 10_000  # about 100 ms; a machine that runs tests may be slow


def test_curves_say_in_words_what_they_draw_and_follow_a_moment_by_keyboard(
    tab: Tab, states: dict[int, State]
) -> None:
    with served(states[1]) as url:
        tab.go(url)
        tab.wait(DRAWN)
        labels = tab.run(
            "[...document.querySelectorAll('#strips [role=img]')].map((e) => e.ariaLabel)"
        )
        assert len(labels) == 9
        assert labels[0].startswith("Where does the GPU time go? compute 5")
        assert "mean over the last 15 minutes" in text(tab, "#when")
        tab.run("document.getElementById('at').focus()")
        for _ in range(3):
            tab.key("ArrowLeft")
        assert text(tab, "#when") == "08:14:56 UTC"
        assert tab.run("document.getElementById('at').getAttribute('aria-valuetext')") == (
            "08:14:56 UTC"
        )
        found = tab.run("fetch('api/v1/history?run=job-0').then((answer) => answer.json())")
        share = found["accounts"]["data"][-4]
        assert f"data {share * 100:.0f} %" in tab.run(
            "document.querySelector('#strip-ledger [role=img]').ariaLabel"
        )
        tab.run("document.querySelector('#moment button').click()")
        assert "mean over" in text(tab, "#when")
    assert tab.complaints == []


def test_what_is_looked_at_can_be_chosen_and_read_as_a_table(
    tab: Tab, states: dict[int, State]
) -> None:
    with served(states[8]) as url:
        tab.go(url)
        tab.wait(DRAWN)
        tab.run("document.getElementById('scope').focus()")
        tab.run(
            "{const s = document.getElementById('scope'); s.value = 'gpu=GPU-0001';"
            "s.dispatchEvent(new Event('change'))}"
        )
        tab.wait("document.querySelector('#strip-ledger .legend').innerText.includes('data')")
        tab.run("document.querySelector('#numbers summary').focus()")
        tab.key("Enter")
        tab.wait("document.querySelectorAll('#numbers tbody tr').length >= 4")
        head = text(tab, "#numbers thead")
        assert "compute" in head and "busy" in head and "power" in head


def test_all_that_acts_is_reached_by_tab_in_the_order_of_the_page(
    tab: Tab, states: dict[int, State], token: Path
) -> None:
    with served(states[8], Actions(token)) as url:
        tab.go(url)
        tab.wait(DRAWN)
        seen = []
        for _ in range(60):
            tab.key("Tab")
            seen.append(focused(tab))
            outline = tab.run("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none" or seen[-1] == "", f"the focus is not seen on {seen[-1]}"
            if seen[-1] == "ready":
                break
        order = [seen.index(name) for name in ("pause", "scope", "span", "at", "pid", "token")]
        assert order == sorted(order)
        assert any(name.startswith("GPU 1") for name in seen[1:9]), "tiles are links"


def test_new_seconds_come_without_a_reload_and_change_nothing_else(tab: Tab) -> None:
    state = host(["data_slow"], 120)
    with served(state) as url:
        tab.go(url)
        tab.wait(DRAWN)
        tab.run("window.here = true; document.querySelector('#time > details').open = true")
        tab.run("document.getElementById('pause').focus()")
        before = text(tab, "#fresh")
        watch(state, ["data_slow"], 5)
        tab.wait(f"document.getElementById('fresh').innerText !== {before!r}")
        assert tab.run("window.here") is True
        assert tab.run("document.querySelector('#time > details').open") is True
        assert focused(tab) == "pause"
        assert text(tab, "#said") == "", "nothing changed that would have to be said"
        watch(state, ["healthy"], 70)
        tab.wait("document.getElementById('said').innerText !== ''")
        assert text(tab, "#said").startswith("Run job-0: healthy")
        assert "healthy" in text(tab, "#answer h4")
        tab.wait("document.getElementById('at').max === '194'")
    assert tab.complaints == []


def test_paused_nothing_is_asked_for(tab: Tab) -> None:
    state = host(["data_slow"], 60)
    with served(state) as url:
        tab.go(url)
        tab.wait(DRAWN)
        tab.run("document.getElementById('pause').focus()")
        tab.key("Enter")
        assert text(tab, "#pause") == "Go on"
        time.sleep(0.5)
        asked = len(tab.urls)
        before = text(tab, "#fresh")
        watch(state, ["data_slow"], 5)
        time.sleep(3)
        tab.run("0")
        assert len(tab.urls) == asked and text(tab, "#fresh") == before
        tab.key("Enter")
        tab.wait(f"document.getElementById('fresh').innerText !== {before!r}")


def test_an_exporter_that_went_away_is_told(tab: Tab) -> None:
    with served(host(["healthy"], 60)) as url:
        tab.go(url)
        tab.wait(DRAWN)
    tab.wait("document.getElementById('trouble').innerText.includes('has not answered since')")
    assert "GPU 0" in text(tab, "#answer"), "what was known stays"


def test_the_colours_follow_the_scheme_of_the_user(tab: Tab, states: dict[int, State]) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    with served(states[1]) as url:
        tab.go(url)
        tab.wait(DRAWN)
        light = tab.run(back)
        tab.look(1280, 900, dark=True)
        assert tab.run(back) != light
        tab.wait(DRAWN)
    assert tab.complaints == []


def test_names_that_are_markup_stay_names(tab: Tab) -> None:
    def evil(run: RunSignals) -> RunSignals:
        functions = {phase: ((EVIL, EVIL, 1), share) for phase, (_, share) in run.functions.items()}
        return replace(run, run=EVIL, functions=functions, worker_function=((EVIL, EVIL, 2), 0.9))

    state = State(clock=Clock(1_800_000_000))
    watch(state, ["data_slow"], 60, change=evil)
    received = Notifications()
    alert = {**ALERT, "labels": {"alertname": EVIL, "run": EVIL}, "annotations": {"summary": EVIL}}
    received.add(parse(json.dumps({"alerts": [alert]}).encode()))
    with served(state, received=received) as url:
        tab.go(url)
        tab.wait(DRAWN)
        before = text(tab, "#fresh")
        watch(state, ["data_slow"], 3, change=evil)
        tab.wait(f"document.getElementById('fresh').innerText !== {before!r}")
        for selector in ("#answer h3", "#functions caption", "#notifications li", "#scope"):
            assert EVIL in text(tab, selector), selector
        assert tab.run("document.querySelectorAll('script:not([src])').length") == 0
        assert tab.run("[...document.querySelectorAll('script')].length") == 3
    assert tab.complaints == [], "the policy had nothing to stop"


def test_the_policy_stops_what_is_inline_and_what_is_from_elsewhere(
    tab: Tab, states: dict[int, State]
) -> None:
    with served(states[1]) as url:
        tab.go(url)
        tried = tab.run(
            "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; }"
            " catch (error) { return error.name; } })()"
        )
        assert tried == "TypeError", "no markup of texts"
        assert tab.run("fetch('http://127.0.0.1:1/').catch((error) => error.name)") == "TypeError"
        assert any("Content Security Policy" in complaint for complaint in tab.complaints)


@contextlib.contextmanager
def job(folder: Path) -> Iterator[int]:
    script = folder / "train.py"
    script.write_text(JOB)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    try:
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def test_a_flame_graph_is_asked_for_drawn_and_walked_by_keyboard(
    tab: Tab, token: Path, tmp_path: Path
) -> None:
    needs_pyspy()
    with job(tmp_path) as pid:
        state = host(["data_slow"], 30)
        watch(state, ["data_slow"], 2, pid=pid)
        with served(state, Actions(token)) as url:
            tab.go(url)
            tab.wait(DRAWN)
            tab.run("document.getElementById('token').focus()")
            tab.send("Input.insertText", text="not-the-right-token")
            tab.key("Enter")
            tab.wait("document.getElementById('taking').innerText.includes('wrong token')")
            tab.run("document.getElementById('token').value = ''")
            tab.run("document.getElementById('seconds').value = '5'")
            tab.send("Input.insertText", text=TOKEN)
            tab.key("Enter")
            tab.wait("document.querySelectorAll('.frame').length >= 4")
            names = tab.run("[...document.querySelectorAll('.frame')].map((one) => one.innerText)")
            assert any(EVIL in name for name in names)
            assert EVIL in text(tab, "#graph table")
            tab.run("document.querySelector('.frame[tabindex=\"0\"]').focus()")
            tab.key("ArrowDown")
            assert "% of samples" in tab.run("document.activeElement.ariaLabel")
            tab.key("Enter")
            tab.key("Escape")
            assert tab.run("document.activeElement.innerText") == "all samples"
            keep(tab, "flame")
            assert violations(tab) == []
    refused = [complaint for complaint in tab.complaints if "403" not in complaint]
    assert refused == []


@pytest.mark.parametrize(
    ("observed", "said"),
    [
        ([], "Nothing has been observed yet"),
        (
            [{"kind": "source", "source": "nvml", "up": False, "why": "no driver", "remedy": "x"}],
            "no driver",
        ),
    ],
    ids=["empty", "without NVML"],
)
def test_hosts_with_nothing_to_draw(tab: Tab, observed: list[dict[str, Any]], said: str) -> None:
    state = State(clock=Clock(100.0))
    if observed:
        state.feed([{"t": 99.0, **one} for one in observed])
    with served(state) as url:
        tab.go(url)
        assert said in text(tab, "main")
        keep(tab, "nothing" if not observed else "no-nvml")
        tab.wait("document.getElementById('no-history').innerText !== ''")
        assert violations(tab) == []
    assert tab.complaints == []


def test_a_recording_is_marked_and_goes_on(tab: Tab) -> None:
    exporter = Served("--recording", RECORDING, "--loop")
    try:
        exporter.wait("/api/v1/history", lambda answer: '"start":null' not in answer)
        tab.go(exporter.url + "/")
        tab.wait(DRAWN)
        assert "Recorded" in text(tab, "header") and "recorded" in tab.run("document.title")
        before = text(tab, "#fresh")
        tab.wait(f"document.getElementById('fresh').innerText !== {before!r}")
        assert "A recorded job cannot be asked" in text(tab, "#flame")
    finally:
        exporter.end()
    assert tab.complaints == []
