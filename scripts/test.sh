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
case " $* " in
    *" tests"* | *" -k "*) ;; # chosen ones
    *)
        # By themselves: they watch real jobs below pytest, which would be taken for a job of its
        # own, and these for its workers, once the tests of planted jobs have loaded torch into it.
        "$bin/python" -m pytest tests/end_to_end "$@" || failed="$failed end-to-end"
        set -- --ignore=tests/end_to_end "$@"
        ;;
esac
"$bin/python" -m pytest "$@" || failed="$failed pytest"
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
