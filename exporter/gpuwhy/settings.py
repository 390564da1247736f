"""Every option once: its name, type, range, default and meaning.

An option is a flag, else a variable of the environment, else a key of one YAML file:
``--web.listen-address``, ``GPUWHY_WEB_LISTEN_ADDRESS``, ``web.listen-address: ...`` (or nested,
``web: {listen-address: ...}``). Whatever is wrong ends in a ``SettingsError`` that names the flag,
the variable, or the file and line.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from gpuwhy import values
from gpuwhy.config_file import Entry, SettingsError, read_entries

__all__ = ["OPTIONS", "Option", "Settings", "SettingsError", "load", "options_of"]

EVERYWHERE = (
    "diagnose",
    "record",
    "profile",
    "doctor",
    "serve",
    "trace",
    "compare",
    "nsys",
    "ncu",
    "alerting",
)
PREFIX = "GPUWHY_"
CONFIG_VARIABLE = "GPUWHY_CONFIG"


@dataclass(frozen=True, slots=True)
class Option:
    """One option: ``parse`` turns its text into a value or raises ValueError with the reason."""

    name: str
    meaning: str
    parse: Callable[[str], Any]
    commands: tuple[str, ...]
    metavar: str | None = None  # None: a switch
    many: bool = False
    shown_default: str | Mapping[str, str] | None = None  # the same everywhere, or by command

    def default_of(self, command: str) -> str | None:
        """What the help of a command shows as the default."""
        if isinstance(self.shown_default, str | None):
            return self.shown_default
        return self.shown_default.get(command)

    @property
    def variable(self) -> str:
        """The name in the environment."""
        return PREFIX + self.name.upper().replace(".", "_").replace("-", "_")


def _option(
    name: str, default: object, parse: Callable[[str], Any], meaning: str, **more: Any
) -> Any:
    option = Option(name, meaning, parse, more.pop("commands", EVERYWHERE), **more)
    return dataclasses.field(default=default, metadata={"option": option})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one run of ``gpuwhy``; ``None`` means that the command decides."""

    log_level: str = _option(
        "log.level",
        "info",
        values.one_of("debug", "info", "warning", "error"),
        "least severity written to standard error",
        metavar="LEVEL",
        shown_default="info",
    )
    gpu: str | None = _option(
        "gpu",
        None,
        values.text,
        "look at one GPU only: its index, or its UUID (or a MIG instance's)",
        metavar="N",
        commands=("diagnose", "profile", "nsys", "ncu"),
    )
    pid: int | None = _option(
        "pid",
        None,
        values.integer(1, 2**22),
        "the process to profile: a rank, or any Python process",
        metavar="P",
        commands=("profile", "nsys", "ncu"),
    )
    for_s: float | None = _option(
        "for",
        None,
        values.duration(1, 7 * 86400),
        "how long to watch, such as 20s, 5m or 1h30m",
        metavar="T",
        commands=("diagnose", "record", "profile", "nsys"),
        shown_default={
            "diagnose": "20s, or all of a recording",
            "record": "until stopped",
            "profile": "30s",
            "nsys": "60s",
        },
    )
    json: bool = _option(
        "json",
        False,
        values.boolean,
        "print one JSON object instead of text",
        commands=("diagnose", "doctor", "trace", "compare"),
    )
    recording: tuple[Path, ...] = _option(
        "recording",
        (),
        values.path,
        "work on what `gpuwhy record` kept instead of on this host; several files are the GPUs "
        "of one recorded host",
        metavar="FILE",
        many=True,
        commands=("diagnose", "serve"),
    )
    loop: bool = _option(
        "loop",
        False,
        values.boolean,
        "start the recordings again at their end",
        commands=("serve",),
    )
    web_listen_address: str = _option(
        "web.listen-address",
        "127.0.0.1:9877",
        values.address,
        "address and port to serve on; `:9877` is every interface",
        metavar="ADDRESS",
        commands=("serve",),
        shown_default="127.0.0.1:9877",
    )
    web_config_file: Path | None = _option(  # noqa: RUF009 - a field like the others
        "web.config.file",
        None,
        values.path,
        "TLS and basic authentication, in the form that Prometheus exporters use",
        metavar="FILE",
        commands=("serve",),
    )
    web_notifications_from: tuple[str, ...] = _option(
        "web.notifications-from",
        (),
        values.networks,
        "networks whose Alertmanager may post notifications to the page, beside this host: "
        "172.16.0.0/12, or several with commas",
        metavar="NETWORKS",
        commands=("serve",),
        shown_default="this host alone",
    )
    web_token_file: Path | None = _option(  # noqa: RUF009 - a field like the others
        "web.token-file",
        None,
        values.path,
        "switches flame graphs on the page on, for whoever gives the token that this file holds "
        "(16 characters or more)",
        metavar="FILE",
        commands=("serve",),
        shown_default="off",
    )
    gpu_hour_price: float | None = _option(
        "gpu-hour-price",
        None,
        values.number(0, 1e6),
        "price of one GPU for one hour, in any currency, for the cost of what is lost",
        metavar="PRICE",
        commands=("serve",),
    )
    max_overhead: float | None = _option(
        "max-overhead",
        None,
        values.ratio(0.001, 1),
        "CPU that sampling Python stacks may use, as a share of one core for each rank, "
        "such as 2% or 0.02",
        metavar="SHARE",
        commands=("diagnose", "record", "serve"),
        shown_default={
            "serve": "0.75%, at least 3% in all",
            "diagnose, record": "8%, at least 15%",
        },
    )


OPTIONS: Mapping[str, Option] = {
    field.name: cast(Option, field.metadata["option"]) for field in dataclasses.fields(Settings)
}
"""Every option by the name of its field."""

FIELDS = {option.name: field for field, option in OPTIONS.items()}


def options_of(command: str) -> dict[str, Option]:
    """The options that a command takes, by field."""
    return {field: option for field, option in OPTIONS.items() if command in option.commands}


def load(
    flags: Mapping[str, object], environ: Mapping[str, str], config: Path | None = None
) -> Settings:
    """Settings from flags (by field; text, list of texts or True), environment and file.

    Raises SettingsError, naming where the bad value stands.
    """
    config = config or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    found = _from_file(config) if config else {}
    found |= _from_environment(environ)
    found |= _from_flags(flags)
    given: dict[str, Any] = {field: _value(field, entry) for field, entry in found.items()}
    settings = Settings(**given)
    _check_together(settings)
    return settings


def _from_flags(flags: Mapping[str, object]) -> dict[str, Entry]:
    return {
        field: Entry(_texts(value), f"option --{OPTIONS[field].name}")
        for field, value in flags.items()
        if value is not None
    }


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return ["true" if value is True else str(value)]


def _from_environment(environ: Mapping[str, str]) -> dict[str, Entry]:
    """An empty variable counts as unset; several files are separated as in PATH."""
    found = {}
    for field, option in OPTIONS.items():
        text = environ.get(option.variable)
        if text:
            parts = text.split(":") if option.many else [text]
            found[field] = Entry(parts, f"environment variable {option.variable}")
    return found


def _from_file(path: Path) -> dict[str, Entry]:
    found = {}
    for name, entry in read_entries(path).items():
        field = FIELDS.get(name)
        if field is None:
            raise SettingsError(f"{entry.where}: unknown key {name!r}{_suggestion(name)}")
        found[field] = Entry(entry.texts, f"{entry.where}: {name}")
    return found


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, FIELDS, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(sorted(FIELDS))}"


def _value(field: str, entry: Entry) -> object:
    option = OPTIONS[field]
    try:
        parsed = [option.parse(text) for text in entry.texts]
    except ValueError as error:
        raise SettingsError(f"{entry.where}: {error}") from error
    if option.many:
        return tuple(parsed)
    return _single(parsed, entry)


def _single(parsed: Sequence[object], entry: Entry) -> object:
    if len(parsed) != 1:
        raise SettingsError(f"{entry.where}: takes one value, got {len(parsed)}")
    return parsed[0]


def _check_together(settings: Settings) -> None:
    if settings.gpu is not None and settings.pid is not None:
        raise SettingsError("options --gpu and --pid name two targets: give one of them")
    if settings.loop and not settings.recording:
        raise SettingsError("option --loop needs --recording FILE: a live host does not repeat")
