"""Options: flag before environment before file, and messages that say where the bad value is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gpuwhy import settings
from gpuwhy.settings import OPTIONS, Settings, SettingsError, load


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gpuwhy.yml"
    path.write_text("for: 10s\nweb:\n  listen-address: ':1'\nlog.level: error\n")
    return path


def test_flag_then_environment_then_file_then_default(config: Path) -> None:
    environ = {"GPUWHY_FOR": "20s", "GPUWHY_WEB_LISTEN_ADDRESS": ":2"}
    loaded = load({"for_s": "30s"}, environ, config)
    assert loaded.for_s == 30
    assert loaded.web_listen_address == ":2"
    assert loaded.log_level == "error"
    assert loaded.max_overhead is None


def test_the_environment_can_name_the_file(config: Path) -> None:
    assert load({}, {"GPUWHY_CONFIG": str(config)}).for_s == 10


def test_an_empty_variable_is_unset() -> None:
    assert load({}, {"GPUWHY_FOR": "", "GPUWHY_CONFIG": ""}) == Settings()


def test_several_recordings(tmp_path: Path) -> None:
    path = tmp_path / "c.yml"
    path.write_text("recording: [a, b]\n")
    assert load({}, {}, path).recording == (Path("a"), Path("b"))
    assert load({}, {"GPUWHY_RECORDING": "c:d"}, path).recording == (Path("c"), Path("d"))
    assert load({"recording": ["e"]}, {}, path).recording == (Path("e"),)


def test_switches() -> None:
    assert load({"json": True}, {}).json
    assert not load({}, {"GPUWHY_JSON": "no"}).json


BAD_VALUES = {
    "log.level": "loud",
    "gpu": " ",
    "pid": "0",
    "for": "20",
    "json": "maybe",
    "recording": "\0",
    "loop": "2",
    "web.listen-address": "9877",
    "web.config.file": "\0",
    "web.notifications-from": "172.16.0.1/12",
    "web.token-file": "\0",
    "gpu-hour-price": "-1",
    "max-overhead": "200%",
}


def test_every_option_has_a_bad_value_here() -> None:
    assert set(BAD_VALUES) == {option.name for option in OPTIONS.values()}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_bad_value_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    field, option = next((f, o) for f, o in OPTIONS.items() if o.name == name)
    bad = BAD_VALUES[name]
    flag: object = [bad] if option.many else bad
    with pytest.raises(SettingsError, match=f"option --{name}: "):
        load({field: flag}, {})
    with pytest.raises(SettingsError, match=f"environment variable {option.variable}: "):
        load({}, {option.variable: bad})
    path = tmp_path / "gpuwhy.yml"
    quoted = bad.replace("\0", "\\0")
    path.write_text(f'# a comment\n{name}: "{quoted}"\n')
    with pytest.raises(SettingsError, match=f"gpuwhy.yml:2: {name}: "):
        load({}, {}, path)


def test_an_unknown_key_names_its_line_and_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "gpuwhy.yml"
    path.write_text("web:\n  listen-adress: ':1'\n")
    with pytest.raises(SettingsError, match=r"yml:2: unknown key .*did you mean 'web.listen-addr"):
        load({}, {}, path)
    path.write_text("zzz: 1\n")
    with pytest.raises(SettingsError, match=r"known keys: .*log\.level"):
        load({}, {}, path)


def test_one_value_where_one_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "gpuwhy.yml"
    path.write_text("gpu: [0, 1]\n")
    with pytest.raises(SettingsError, match="takes one value, got 2"):
        load({}, {}, path)


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(SettingsError, match="--gpu and --pid"):
        load({"gpu": "0", "pid": "1"}, {})
    with pytest.raises(SettingsError, match="--loop needs --recording"):
        load({"loop": True}, {})


def test_every_field_is_an_option_with_words() -> None:
    assert [f.name for f in dataclasses.fields(Settings)] == list(OPTIONS)
    for option in OPTIONS.values():
        assert len(option.meaning) > 15
        assert set(option.commands) <= set(settings.EVERYWHERE)
        assert not option.shown_default or option.metavar, "a switch has no default to show"
