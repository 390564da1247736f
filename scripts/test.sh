# Lint, types, tests: all of them, whatever fails, with pytest's summary last.
# Arguments go to pytest: ./run test tests/ledger -k order
set -eu
. scripts/venv.sh
make_venv
bin=.venv/bin
failed=
"$bin/ruff" format --check --quiet . || failed="$failed ruff-format"
"$bin/ruff" check --quiet . || failed="$failed ruff"
"$bin/mypy" || failed="$failed mypy"
"$bin/python" -m pytest "$@" || failed="$failed pytest"
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
