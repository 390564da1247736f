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

side_by_side() { # a file at a time to each process, in the order of the arguments
    "$bin/python" -m pytest --dist loadfile --no-loadscope-reorder "$@"
}
case " $* " in
    *" tests"* | *" -k "*) # chosen ones
        "$bin/python" -m pytest "$@" || failed="$failed pytest"
        ;;
    *)
        "$bin/python" -m pytest -m "live$kinds" "$@" || failed="$failed live"
        side_by_side -n 2 -m "services$kinds" tests/end_to_end "$@" || failed="$failed services"
        # Not beside jobs that have PyTorch loaded: an exporter that is shown no GPU takes any
        # such process for a rank.
        side_by_side -n 3 -m "services$kinds" tests/faults "$@" || failed="$failed faults"
        side_by_side -n logical --maxprocesses 4 -m "not live and not services$kinds" "$@" ||
            failed="$failed pytest"
        ;;
esac
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
