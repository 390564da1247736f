"""``--web.config.file``: TLS and basic authentication, in the form that Prometheus exporters use.

The keys are those of exporter-toolkit's web configuration; one that this server cannot honour is
refused by name and never passed over. Passwords are bcrypt hashes. Certificates and users are read
again when a file changes; turning TLS on or off needs a restart.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bcrypt
import yaml

HEADERS = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)
"""The headers that ``http_server_config.headers`` may set, as in exporter-toolkit."""

CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}


MOST_COST = 14
"""Of a bcrypt hash: one check takes about a second of CPU at this."""


class WebConfigError(Exception):
    """The file cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths are absolute or relative to the configuration file's folder."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    max_version: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED


@dataclass(frozen=True, slots=True)
class WebConfig:
    """What the file says; without a file there is neither TLS nor authentication."""

    tls: Tls | None = None
    users: Mapping[str, bytes] = field(default_factory=dict)  # bcrypt hashes
    headers: Mapping[str, str] = field(default_factory=dict)


def load(path: Path) -> WebConfig:
    """Read and check the file, its certificates included. Raises WebConfigError."""
    config = parse(_read(path), path)
    if config.tls is not None:
        load_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), config.tls, path)
    return config


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WebConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WebConfigError(f"{path}: is no UTF-8 text") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # 2026-99-99 is a ValueError
        raise WebConfigError(f"{path}: is no YAML: {error}".replace("\n", " ")) from error
    return _mapping(found or {}, path, "the file")


def parse(found: Mapping[str, Any], path: Path) -> WebConfig:
    """Check every key. Raises WebConfigError."""
    _only(found, ("tls_server_config", "http_server_config", "basic_auth_users"), path, "")
    tls = found.get("tls_server_config")
    http = _mapping(found.get("http_server_config") or {}, path, "http_server_config")
    _only(http, ("http2", "headers"), path, "http_server_config.")
    headers = _mapping(http.get("headers") or {}, path, "http_server_config.headers")
    _only(headers, HEADERS, path, "http_server_config.headers.")
    users = _mapping(found.get("basic_auth_users") or {}, path, "basic_auth_users")
    return WebConfig(
        None if tls is None else _tls(_mapping(tls, path, "tls_server_config"), path),
        {str(user): _hash(text, path, f"basic_auth_users.{user}") for user, text in users.items()},
        {
            name: _header(value, path, f"http_server_config.headers.{name}")
            for name, value in headers.items()
        },
    )


_TLS_KEYS = (
    "cert_file",
    "key_file",
    "client_ca_file",
    "client_auth_type",
    "min_version",
    "max_version",
)


def _tls(found: Mapping[str, Any], path: Path) -> Tls:
    prefix = "tls_server_config."
    _only(found, _TLS_KEYS, path, prefix)
    client_auth = _choice(found, "client_auth_type", "NoClientCert", CLIENT_AUTH, path)
    ca_file = _path(found, "client_ca_file", path) if "client_ca_file" in found else None
    if client_auth is not ssl.CERT_NONE and ca_file is None:
        raise WebConfigError(f"{path}: {prefix}client_auth_type needs {prefix}client_ca_file")
    return Tls(
        _path(found, "cert_file", path),
        _path(found, "key_file", path),
        ca_file,
        client_auth,
        _choice(found, "min_version", "TLS12", VERSIONS, path),
        _choice(found, "max_version", "TLS13", VERSIONS, path),
    )


def context_for(tls: Tls, path: Path) -> ssl.SSLContext:
    """A server's context. Raises WebConfigError if a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = tls.min_version, tls.max_version
    context.verify_mode = tls.client_auth
    load_certificates(context, tls, path)
    return context


def load_certificates(context: ssl.SSLContext, tls: Tls, path: Path) -> None:
    """Put the certificates into a context; new connections use them. Raises WebConfigError."""

    def put(keys: str, file: Path, into: Callable[[], None]) -> None:
        try:
            into()
        except (OSError, ssl.SSLError) as error:  # a password prompt would be an SSLError too
            raise WebConfigError(f"{path}: {keys}: {file}: {error.strerror or error}") from error

    def chain() -> None:
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: b"")

    ca_file = tls.client_ca_file
    for key, file in (("cert_file", tls.cert_file), ("key_file", tls.key_file)):
        put(f"tls_server_config.{key}", file, lambda file=file: file.open("rb").close())  # type: ignore[misc]
    put("tls_server_config.cert_file or key_file", tls.cert_file, chain)
    if ca_file is not None:
        put(
            "tls_server_config.client_ca_file",
            ca_file,
            lambda: context.load_verify_locations(ca_file),
        )


def _mapping(found: object, path: Path, key: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise WebConfigError(f"{path}: {key} must hold keys and values")
    return found


def _only(found: Mapping[str, Any], known: tuple[str, ...], path: Path, prefix: str) -> None:
    for key in found:
        if key not in known:
            raise WebConfigError(
                f"{path}: {prefix}{key} is not supported here; supported: {', '.join(known)}"
            )


def _path(found: Mapping[str, Any], key: str, path: Path) -> Path:
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise WebConfigError(f"{path}: tls_server_config.{key} must name a file")
    return path.parent / value


def _choice(
    found: Mapping[str, Any], key: str, default: str, choices: Mapping[str, Any], path: Path
) -> Any:
    value = found.get(key, default)
    if not isinstance(value, str) or value not in choices:
        raise WebConfigError(
            f"{path}: tls_server_config.{key}: {value!r} is not supported here; "
            f"supported: {', '.join(choices)}"
        )
    return choices[value]


def _hash(found: object, path: Path, key: str) -> bytes:
    """A bcrypt hash, tried once: a password in clear must not look like a hash that never fits."""
    cost = re.match(r"\$2[a-z]?\$([0-9]{2})\$", str(found))
    if cost and int(cost[1]) > MOST_COST:
        raise WebConfigError(
            f"{path}: {key} has a cost of {cost[1]}: each check would take seconds of CPU from the "
            "jobs; make one with `htpasswd -nBC 10 USER`"
        )
    try:
        hashed = str(found).encode()
        bcrypt.checkpw(b"", hashed)
    except ValueError as error:
        raise WebConfigError(
            f"{path}: {key} is no bcrypt hash; make one with `htpasswd -nBC 10 USER`"
        ) from error
    return hashed


def _header(found: object, path: Path, key: str) -> str:
    if not isinstance(found, str) or not found.isprintable() or not found.isascii():
        raise WebConfigError(f"{path}: {key} must be a line of ASCII text")
    return found
