# Lint, types, tests: all of them, whatever fails, with pytest's summaries last.
# Arguments go to pytest: ./run test tests/ledger -k order; --full adds the long suites.
set -eu
. scripts/venv.sh
make_venv
bin=.venv/bin
failed=
kinds=" and not full"
[ "${1:-}" != --full ] || { kinds=; shift; }
"$bin/ruff" format --check --quiet . || failed="$failed ruff-format"
"$bin/ruff" check --quiet . || failed="$failed ruff"
"$bin/mypy" || failed="$failed mypy"
case " $* " in
    *" tests"* | *" -k "*) # chosen ones
        "$bin/python" -m pytest "$@" || failed="$failed pytest"
        ;;
    *)
        "$bin/python" -m pytest -m "live$kinds" "$@" || failed="$failed live"
        "$bin/python" -m pytest -m "not live$kinds" -n logical --maxprocesses 4 --dist loadfile "$@" ||
            failed="$failed pytest"
        ;;
esac
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
