# What a release must pass: the tests, fresh locks, fresh generated files, audited dependencies (and
# a list of them, an SBOM); --full adds long suites.
set -eu
. scripts/venv.sh
make_venv
full=
for argument in "$@"; do
    case $argument in
        --full) full=yes ;;
        *) say "usage: ./run check [--full]"; exit 2 ;;
    esac
done

fresh() { # fresh COMMAND FILE...: the command leaves no difference in the files
    maker=$1; shift
    kept=$(mktemp -d)
    for file in "$@"; do cp "$file" "$kept/$(basename "$file")"; done
    $maker
    for file in "$@"; do
        diff -u "$kept/$(basename "$file")" "$file" || { say "$file is stale: commit what $maker made"; exit 1; }
    done
    rm -r "$kept"
}

fresh "sh scripts/lock.sh" requirements.lock requirements-dev.lock
.venv/bin/python -m gpuwhy.expose.catalogue --check docs/metrics.md
sh scripts/test.sh ${full:+--full}

audited=0
.venv/bin/python scripts/audit.py || audited=$?
case $audited in
    0) say "check: everything passed" ;;
    3) say "check: passed, but for the audit of dependencies, which COULD NOT BE MADE (see above)" ;;
    *) say "check: dependencies have known weaknesses: upgrade them (./run lock --upgrade)"; exit 1 ;;
esac
