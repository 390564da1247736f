"""The one configuration file: YAML, read with the line of every key kept for messages.

Values are taken as the text that stands in the file, so an address such as ``10.0.0.1:9877`` or a
word such as ``no`` means what the option makes of it, not what YAML makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

MAX_BYTES = 1_000_000  # a settings file is a page; anything larger is a wrong path


class SettingsError(ValueError):
    """A bad setting; the message names the file and line, the variable or the option."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The text of one option (several for a list) and where it stands."""

    texts: list[str]
    where: str


def read_entries(path: Path) -> dict[str, Entry]:
    """Every key of the file, nested keys joined by dots; an empty file has none.

    Raises SettingsError when the file cannot be read, is no YAML, or holds a key twice.
    """
    root = _compose(path, _text(path))
    entries: dict[str, Entry] = {}
    if root is None:
        return entries
    if not isinstance(root, yaml.MappingNode):
        raise SettingsError(f"{path}:1: expected `option: value` lines")
    for name, entry in _walk(path, root, ""):
        if name in entries:
            raise SettingsError(f"{entry.where}: {name!r} stands twice")
        entries[name] = entry
    return entries


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise SettingsError(f"{path}: no such configuration file")
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError(f"{path}: larger than {MAX_BYTES} bytes; no configuration file")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: is no UTF-8 text ({error.reason})") from error


def _compose(path: Path, text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise SettingsError(f"{path}:{line}: no valid YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "nested too deeply"
        raise SettingsError(f"{path}:1: no valid YAML: {reason}") from error


def _walk(path: Path, node: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, Entry]]:
    if prefix.count(".") > 8:
        raise SettingsError(f"{_where(path, node)}: nested too deeply")
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise SettingsError(f"{_where(path, key)}: a key must be a word")
        name = prefix + str(key.value)
        if isinstance(value, yaml.MappingNode):
            yield from _walk(path, value, name + ".")
        else:
            yield name, Entry(_scalars(path, name, value), _where(path, key))


def _scalars(path: Path, name: str, node: yaml.Node) -> list[str]:
    items = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for item in items:
        if not isinstance(item, yaml.ScalarNode) or item.tag == "tag:yaml.org,2002:null":
            raise SettingsError(f"{_where(path, item)}: {name}: expected a value")
    return [str(item.value) for item in items]


def _where(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
