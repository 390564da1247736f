"""``docs/configuration.md``, made from the options: ``python -m gpuwhy.settings_page --write``."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuwhy.settings import OPTIONS, Option

PATH = Path("docs/configuration.md")

HEAD = """# Configuration

Made from the code by `python -m gpuwhy.settings_page --write`: do not edit.

Each option is taken from the command line, else from the environment, else from one YAML file
that `--config FILE` or `GPUWHY_CONFIG` names. The file's keys are the names of the flags without
their dashes; a dot may also be written as a level:

```yaml
log.level: warning
web:
  listen-address: 127.0.0.1:9877
```

An unknown key, a key that stands twice and a bad value are refused with the file and line, and
exit status 2. `gpuwhy --config FILE --config.check` checks the options, the environment and the
file, and does nothing else. An empty variable counts as unset; several recordings are separated by
`:` in a variable and are a list in the file.

| option | variable | commands | default | meaning |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The text of the page."""
    return HEAD + "".join(_row(option) + "\n" for option in OPTIONS.values())


def _row(option: Option) -> str:
    flag = f"`--{option.name}{f' {option.metavar}' if option.metavar else ''}`"
    cells = (flag, f"`{option.variable}`", _commands(option), _default(option), option.meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _commands(option: Option) -> str:
    return ", ".join(f"`{command}`" for command in option.commands)


def _default(option: Option) -> str:
    if option.shown_default is None:
        return "off" if option.metavar is None else "-"
    if isinstance(option.shown_default, str):
        return option.shown_default
    return "; ".join(f"{command}: {text}" for command, text in option.shown_default.items())


def main(arguments: list[str]) -> int:
    """Print the page, or write it."""
    if arguments == ["--write"]:
        PATH.write_text(page(), encoding="utf-8")
    elif arguments:
        sys.stderr.write("usage: python -m gpuwhy.settings_page [--write]\n")
        return 2
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
