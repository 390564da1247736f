"""A Docker engine for tests, private to a folder.

There is no registry in reach of the tests: the images that the compose file names are stood in for
by Debian's own programs, under the same names and tags. Needs root and Debian's packages (see
``unavailable``); nothing outside the folder is touched, but for rules and a bridge of the network
that are taken back at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.stack import packages

ROOT = Path(__file__).parents[2]
NEEDED = ("runc", "mmdebstrap", "busybox", "iptables", "iptables-save", "ip")
PACKAGES = "runc iptables iproute2 busybox-static mmdebstrap"
BRIDGE = Path("/sys/class/net/docker0")
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
STARTS_S, ENDS_S = 60, 60


def unavailable() -> str | None:
    """Why there can be no engine here; None where there can."""
    if os.geteuid() != 0:
        return "not root: a Docker engine and another user's jobs need it"
    if BRIDGE.exists():
        return "a Docker engine is here already, whose network a second one would disturb"
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install {PACKAGES}"
    return None


@dataclass
class Engine:
    """A running engine."""

    folder: Path
    environment: Mapping[str, str]

    def docker(self, *arguments: str, check: bool = True, timeout: float = 120) -> str:
        """The output of ``docker``, errors included."""
        return self._run("docker", arguments, check, timeout)

    def compose(self, *arguments: str, check: bool = True, timeout: float = 280) -> str:
        """The output of ``docker compose`` at the project's root, errors included."""
        return self._run("docker-compose", arguments, check, timeout)

    def _run(self, program: str, arguments: tuple[str, ...], check: bool, timeout: float) -> str:
        command = [packages.programs(program)[program], *arguments]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0 or not check, f"{command}: {done.stdout[-3000:]}"
        return done.stdout


@contextlib.contextmanager
def engine(variables: Mapping[str, str]) -> Iterator[Engine]:
    """An engine in a folder of its own; everything of it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="engine-"))
    # In memory, up to 4 GB: images are some ten thousand small files, made and thrown away.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4g", "engine", folder], check=True)
    try:
        with _network(), _serving(folder, variables) as found:
            yield found
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


@contextlib.contextmanager
def _network() -> Iterator[None]:
    """What the engine does to the host's network is taken back."""
    rules = {kind: subprocess.check_output([f"{kind}-save"]) for kind in ("iptables", "ip6tables")}
    forward = FORWARD.read_text()
    try:
        yield
    finally:
        if BRIDGE.exists():
            subprocess.run(["ip", "link", "delete", BRIDGE.name], check=True)
        for kind, saved in rules.items():
            subprocess.run([f"{kind}-restore"], input=saved, check=True)
        FORWARD.write_text(forward)


@contextlib.contextmanager
def _serving(folder: Path, variables: Mapping[str, str]) -> Iterator[Engine]:
    (folder / "config.json").write_text("{}")
    programs = packages.programs("dockerd", "containerd", "docker", "docker-compose")
    beside = dict.fromkeys(str(path.parent) for path in programs.values())
    environment = {
        **os.environ,
        **variables,
        "PATH": os.pathsep.join([*beside, os.environ["PATH"]]),
        "DOCKER_HOST": f"unix://{folder}/docker.sock",
        "DOCKER_CONFIG": str(folder),
    }
    found = Engine(folder, environment)
    command = [
        *(programs["dockerd"], f"--host={environment['DOCKER_HOST']}"),
        *(f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"),
        "--storage-driver=overlay2",
    ]
    with (folder / "engine.log").open("wb") as log:
        service = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + STARTS_S
        while "Server Version" not in found.docker("info", check=False):
            told = (folder / "engine.log").read_text()[-3000:]
            assert service.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.1)
        yield found
    finally:
        if left := found.docker("ps", "-aq", check=False).split():
            found.docker("rm", "--force", "--volumes", *left, check=False)
        service.terminate()
        service.wait(ENDS_S)


def make_images(found: Engine) -> None:
    """Stand-ins for the images that the compose file and the Dockerfile name."""
    _python(found, "docker.io/library/python:3.12-slim-bookworm")
    tools = packages.programs("prometheus", "promtool", "alertmanager", "amtool")
    _busybox(
        found,
        "docker.io/prom/prometheus:v3.5.3",
        {"prometheus": tools["prometheus"], "promtool": tools["promtool"]},
        "/prometheus",
    )
    _busybox(
        found,
        "docker.io/prom/alertmanager:v0.33.1",
        {"alertmanager": tools["alertmanager"], "amtool": tools["amtool"]},
        "/alertmanager",
        packages.working_folder(tools["alertmanager"]),
    )
    _grafana(found, "docker.io/grafana/grafana:13.2.0")


def _import(found: Engine, root: Path, name: str, *changes: str) -> None:
    archive = found.folder / "image.tar"
    subprocess.run(
        ["tar", "-C", root, "--exclude=./dev/*", "-cf", archive, "."],
        check=True,
        capture_output=True,
    )
    found.docker("import", *(f"--change={change}" for change in changes), str(archive), name)
    archive.unlink()
    shutil.rmtree(root)


def _python(found: Engine, name: str) -> None:
    """Debian's smallest system with its own Python: not the version of the name, which does not
    matter to what is tested."""
    root = found.folder / "python"
    include = "ca-certificates,netbase,python3,python3-venv"
    sources = "/etc/apt/sources.list.d/debian.sources"
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--include={include}"),
            *("--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"),
            *("bookworm", root),
            *([sources] if Path(sources).is_file() else []),
        ],
        check=True,
        capture_output=True,
    )
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    # Trust and index are this machine's, as they would be of any image built here.
    bundle = "etc/ssl/certs/ca-certificates.crt"
    shutil.copy(f"/{bundle}", root / bundle)
    (root / "etc/pip.conf").write_text(f"[global]\ncert = /{bundle}\n")
    path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    _import(found, root, name, f"ENV PATH={path}", "ENV LANG=C.UTF-8")


def _busybox_root(found: Engine) -> Path:
    """What Prometheus's own base image is: busybox and a libc."""
    root = found.folder / "busybox"
    for folder in ("bin", "tmp", "etc/ssl/certs", "lib/x86_64-linux-gnu", "lib64"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin/busybox")
    for applet in subprocess.check_output([root / "bin/busybox", "--list"], text=True).split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    for library in ("libc.so.6", "libresolv.so.2", "libnss_dns.so.2", "libnss_files.so.2"):
        place = Path("lib/x86_64-linux-gnu") / library
        if Path("/", place).exists():
            shutil.copy(Path("/", place), root / place)
    shutil.copy("/lib64/ld-linux-x86-64.so.2", root / "lib64")
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    (root / "etc/group").write_text("root:x:0:\nnobody:x:65534:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    return root


def _busybox(
    found: Engine,
    name: str,
    programs: Mapping[str, Path],
    data: str,
    templates: Path | None = None,
) -> None:
    root = _busybox_root(found)
    for program, path in programs.items():
        shutil.copy(path, root / "bin" / program)
    first = next(iter(programs))
    (root / "etc" / first).mkdir()
    (root / data.lstrip("/")).mkdir()
    if templates is not None:  # Debian's build opens them in its working directory
        for template in templates.glob("*.tmpl"):
            shutil.copy(template, root / data.lstrip("/"))
    os.chown(root / data.lstrip("/"), 65534, 65534)
    _import(
        found,
        root,
        name,
        *("USER nobody", f"WORKDIR {data}", f"VOLUME {data}", "ENV PATH=/bin"),
        f'ENTRYPOINT ["/bin/{first}"]',
    )


def _grafana(found: Engine, name: str) -> None:
    """Answers its health check and nothing else: it stands for ports and dependencies."""
    root = _busybox_root(found)
    (root / "www/api").mkdir(parents=True)
    (root / "www/api/health").write_text('{"database": "ok"}\n')
    _import(
        found,
        root,
        name,
        *("USER 472", "ENV PATH=/bin", "STOPSIGNAL SIGKILL"),
        'ENTRYPOINT ["/bin/httpd", "-f", "-p", "3000", "-h", "/www"]',
    )
