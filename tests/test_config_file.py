"""The configuration file: keys with their lines, and every way in which it can be bad."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwhy.config_file import SettingsError, read_entries


def write(folder: Path, text: str) -> Path:
    path = folder / "gpuwhy.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_keys_nest_and_values_stay_as_they_stand(tmp_path: Path) -> None:
    path = write(
        tmp_path, "web:\n  listen-address: 10.0.0.1:9877\ngpu: 010\nrecording: [a, b]\njson: no\n"
    )
    entries = read_entries(path)
    assert {name: entry.texts for name, entry in entries.items()} == {
        "web.listen-address": ["10.0.0.1:9877"],
        "gpu": ["010"],  # YAML would make 8 of it
        "recording": ["a", "b"],
        "json": ["no"],
    }
    assert entries["web.listen-address"].where == f"{path}:2"


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    assert read_entries(write(tmp_path, "# nothing yet\n")) == {}


BAD = {
    "a list": ("- a\n", ":1: expected"),
    "a scalar": ("word\n", ":1: expected"),
    "no yaml": ("gpu: 1\nfor: [\n", "no valid YAML"),
    "a tab": ("gpu: 1\n\tfor: 2\n", ":2: no valid YAML"),
    "twice": ("gpu: 1\nfor: 2s\ngpu: 2\n", ":3: 'gpu' stands twice"),
    "twice, nested": ("web.listen-address: ':1'\nweb: {listen-address: ':2'}\n", "stands twice"),
    "no value": ("gpu: 1\nfor:\n", ":2: for: expected a value"),
    "a key that is a list": ("[a]: 1\n", ":1: a key must be a word"),
    "a list of lists": ("recording: [[a]]\n", ":1: recording: expected a value"),
    "an alias loop": ("a: &x {b: *x}\n", "nested too deeply"),
    "two documents": ("gpu: 1\n---\ngpu: 2\n", "no valid YAML"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    path = write(tmp_path, text)
    with pytest.raises(SettingsError) as refused:
        read_entries(path)
    assert str(refused.value).startswith(f"{path}:")
    assert message in str(refused.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such configuration file"):
        read_entries(tmp_path / "missing.yml")
    with pytest.raises(SettingsError, match="no such configuration file"):
        read_entries(tmp_path)
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="no UTF-8"):
        read_entries(binary)
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * 2_000_000)
    with pytest.raises(SettingsError, match="larger than"):
        read_entries(large)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("ab:-[]{}&*!|>'\"#% \n\t,?"), max_size=40))
def test_any_text_is_entries_or_a_settings_error(tmp_path: Path, text: str) -> None:
    try:
        read_entries(write(tmp_path, text))
    except SettingsError as error:
        assert str(error)
