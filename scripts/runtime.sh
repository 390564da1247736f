# The interpreter that runs the stack, in $runtime: the developer's .venv where that is current, else
# .run/venv made from the lock. Sourced from the project's root; PYTHON chooses the interpreter.

make_runtime() {
    python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))'; then
        echo "gpuwhy needs Python 3.10 to 3.14; set PYTHON=/path/to/python3" >&2
        return 1
    fi
    case $(cat .venv/stamp 2>/dev/null) in
        "$(lock_stamp requirements-dev.lock) "*) runtime=.venv/bin/python; return 0 ;;
    esac
    runtime=.run/venv/bin/python
    stamp=$(lock_stamp requirements.lock)
    [ "$(cat .run/venv/stamp 2>/dev/null)" = "$stamp" ] && return 0
    echo "making .run/venv with $("$python" -V), once ..." >&2
    mkdir -p .run
    if ! "$python" -m venv --clear .run/venv; then
        echo "no virtual environment could be made; on Debian: apt-get install python3-venv" >&2
        return 1
    fi
    if ! "$runtime" -m pip install -qq --require-hashes -r requirements.lock; then
        echo "gpuwhy's dependencies could not be fetched: look at the network, and at pip's message above" >&2
        return 1
    fi
    echo "$stamp" >.run/venv/stamp
}

# lock_stamp FILE: what an environment made from the lock FILE is stamped with (scripts/venv.sh)
lock_stamp() {
    "$python" - "$1" <<'CODE'
import hashlib, pathlib, sys
print(sys.version, hashlib.sha256(pathlib.Path(sys.argv[1]).read_bytes()).hexdigest())
CODE
}

# run_stack MODULE [ARGUMENT...]: a module of scripts/stack, in the foreground
run_stack() {
    make_runtime || exit 1
    module=$1; shift
    PYTHONPATH=exporter exec "$runtime" -m "scripts.stack.$module" "$@"
}
