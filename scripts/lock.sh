# Resolves pyproject.toml for Python 3.10 to 3.14 on every platform, with hashes, into two locks.
# Pinned versions stay unless they must move; `./run lock --upgrade` takes the newest.
set -eu
. scripts/venv.sh
make_venv
compile() {
    .venv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.10 \
        --no-annotate --custom-compile-command "./run lock" pyproject.toml "$@"
}
compile --output-file requirements.lock "$@"
compile --extra dev --constraint requirements.lock --output-file requirements-dev.lock "$@"
