"""Known weaknesses of the locked dependencies, and a list of them all (SBOM, CycloneDX).

    python scripts/audit.py      status 0: audited, none known; 1: some; 3: it could not be audited

pip-audit says "no known vulnerabilities" too where an index answers without advisories, as mirrors
do. So it is first asked about a release that has some: what does not know those proves nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock")
SBOM = ROOT / "dist/gpuwhy.cdx.json"
AUDIT, CYCLONEDX = "pip-audit==2.10.1", "cyclonedx-bom==7.5.0"
KNOWN_WEAK = "jinja2==2.11.2"  # CVE-2020-28493 and later ones
CLEAN, WEAK, NOT_AUDITED = 0, 1, 3

Report = Mapping[str, Any]


def tool(package: str, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A pinned tool in an environment of its own, which uv keeps."""
    run = [sys.executable, "-m", "uv", "tool", "run", "--from", package, command, *arguments]
    return subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=False)


def asked(requirements: Path, *options: str) -> Report | None:
    """What pip-audit reports of a file of requirements; None where it cannot ask."""
    done = tool(
        AUDIT, "pip-audit", "--requirement", str(requirements), "--disable-pip", "--format=json",
        "--progress-spinner=off", *options,
    )  # fmt: skip
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        return None


def weaknesses(report: Report) -> list[str]:
    """One line for each: package, identifier, the versions that mend it."""
    return [
        f"{package['name']} {package['version']}: {weak['id']}, mended in "
        f"{', '.join(weak['fix_versions']) or 'no version yet'}"
        for package in report["dependencies"]
        for weak in package.get("vulns", ())
    ]


def left_out(report: Report) -> list[str]:
    """Packages that could not be looked up."""
    return [package["name"] for package in report["dependencies"] if "skip_reason" in package]


def verdict(known_weak: Report | None, reports: Mapping[str, Report | None]) -> tuple[int, str]:
    """Status and sentence."""
    found = [line for report in reports.values() if report for line in weaknesses(report)]
    if found:
        return WEAK, "dependencies with known weaknesses:\n  " + "\n  ".join(dict.fromkeys(found))
    if known_weak is None or not weaknesses(known_weak):
        return NOT_AUDITED, "dependencies NOT audited: no advisory database is reached from here"
    blind = [name for name, report in reports.items() if report is None or left_out(report)]
    if blind:
        return NOT_AUDITED, f"dependencies NOT audited: packages of {', '.join(blind)} not found"
    return CLEAN, f"dependencies audited, no weakness known: {', '.join(reports)}"


def audit() -> tuple[int, str]:
    """Ask about the release known to be weak, then about the locks."""
    with tempfile.TemporaryDirectory() as folder:
        weak = Path(folder) / "weak.txt"
        weak.write_text(KNOWN_WEAK + "\n", encoding="utf-8")
        known_weak = asked(weak, "--no-deps")
    return verdict(known_weak, {lock: asked(ROOT / lock, "--require-hashes") for lock in LOCKS})


def make_sbom() -> str | None:
    """Write the list; what went wrong, if something did."""
    SBOM.parent.mkdir(exist_ok=True)
    done = tool(
        CYCLONEDX, "cyclonedx-py", "requirements", LOCKS[0], "--pyproject", "pyproject.toml",
        "--output-format", "JSON", "--output-reproducible", "--output-file", str(SBOM),
    )  # fmt: skip
    return None if done.returncode == 0 else f"no SBOM was made: {done.stderr.strip()[-300:]}"


def main() -> int:
    status, sentence = audit()
    print(sentence)
    wrong = make_sbom()
    print(wrong or f"SBOM: {SBOM.relative_to(ROOT)}")
    return status or (NOT_AUDITED if wrong else CLEAN)


if __name__ == "__main__":
    sys.exit(main())
