"""The gate before actions: off, token, origin, rate."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.expose.samples import Clock

from gpuwhy.expose.actions import (
    HEADER,
    PAUSE_S,
    WRONG_PER_MINUTE,
    Actions,
    RefusedError,
    TokenError,
    same_origin,
)

TOKEN = "0123456789abcdef"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


def asked(token: str = TOKEN, **more: str) -> dict[str, str]:
    return {HEADER: token, "content-type": "application/json", "host": "h:9877", **more}


def refusal(actions: Actions, headers: dict[str, str]) -> RefusedError:
    with pytest.raises(RefusedError) as found:
        actions.begin(headers)
    return found.value


def test_off_unless_a_file_is_given() -> None:
    actions = Actions()
    assert not actions.on
    assert refusal(actions, asked()).status == 404
    assert "--web.token-file" in refusal(actions, asked()).reason


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "cannot be read"), ("short", "16 ASCII"), ("", "16 ASCII"), ("é" * 20, "16 ASCII")],
)
def test_a_file_without_a_good_token_is_refused(
    tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenError, match=said):
        Actions(path)


def test_one_at_a_time_and_then_a_pause(file: Path) -> None:
    clock = Clock(100.0)
    actions = Actions(file, clock)
    actions.begin(asked())
    assert refusal(actions, asked()).status == 429
    actions.done(acted=True)
    late = refusal(actions, asked())
    assert (late.status, late.retry_s) == (429, PAUSE_S)
    clock.now += PAUSE_S
    actions.begin(asked())
    actions.done(acted=False)
    actions.begin(asked())


@pytest.mark.parametrize("token", ["", "x", TOKEN + "0", TOKEN[:-1], TOKEN.upper()])
def test_a_wrong_token_is_refused(file: Path, token: str) -> None:
    assert refusal(Actions(file), asked(token)).status == 403


def test_many_wrong_tokens_shut_the_gate_for_a_minute_even_to_the_right_one(file: Path) -> None:
    clock = Clock(100.0)
    actions = Actions(file, clock)
    for _ in range(WRONG_PER_MINUTE):
        assert refusal(actions, asked("wrong")).status == 403
    assert refusal(actions, asked()).status == 429
    clock.now += 61
    actions.begin(asked())


def test_the_token_can_be_changed_while_serving(file: Path) -> None:
    actions = Actions(file)
    file.write_text("another-token-of-16")
    assert refusal(actions, asked()).status == 403
    file.unlink()
    assert refusal(actions, asked()).status == 503
    file.write_text("another-token-of-16")
    actions.begin(asked("another-token-of-16"))


def test_a_form_of_another_page_is_no_request(file: Path) -> None:
    kinds = {"content-type": "application/x-www-form-urlencoded"}
    assert refusal(Actions(file), {**asked(), **kinds}).status == 415


@pytest.mark.parametrize(
    ("headers", "same"),
    [
        ({}, True),
        ({"origin": "http://h:9877"}, True),
        ({"origin": "http://evil"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://h:9878"}, False),
        ({"sec-fetch-site": "same-origin", "origin": "http://h:9877"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site", "origin": "http://h:9877"}, False),
    ],
)
def test_another_origin_is_told_apart(file: Path, headers: dict[str, str], same: bool) -> None:
    assert same_origin({"host": "h:9877", **headers}) is same
    if not same:
        assert refusal(Actions(file), asked(**headers)).status == 403
