# Makes .venv beside the project from the lock, once for each state of the lock. Sourced from the
# project's root by the other scripts; PYTHON chooses the interpreter (3.10 to 3.14).
TORCH=2.13.0 # the tests' training jobs; not a dependency of gpuwhy

say() { echo "$*" >&2; }

make_venv() {
    python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))'; then
        say "gpuwhy needs Python 3.10 to 3.14; set PYTHON=/path/to/python3"
        return 1
    fi
    stamp=$("$python" -c 'import hashlib, pathlib, sys
print(sys.version, hashlib.sha256(pathlib.Path("requirements-dev.lock").read_bytes()).hexdigest())')
    [ "$(cat .venv/stamp 2>/dev/null)" = "$stamp $TORCH" ] && return 0
    say "making .venv with $("$python" -V) ..."
    if ! "$python" -m venv --clear .venv; then
        say "no virtual environment could be made; on Debian: apt-get install python3-venv"
        return 1
    fi
    .venv/bin/python -m pip install -qq --require-hashes -r requirements-dev.lock
    install_torch
    .venv/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
    echo "$stamp $TORCH" >.venv/stamp
}

# PyPI's wheel for Linux on x86-64 brings 3 GB of CUDA, which no test needs: first the CPU build
# wherever pip is set up to look, then PyTorch's own index. Elsewhere PyPI's wheel is the CPU build.
install_torch() {
    pip=".venv/bin/python -m pip install -qq"
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        $pip "torch==$TORCH"
    elif ! $pip "torch==$TORCH+cpu" 2>/dev/null; then
        $pip --index-url https://download.pytorch.org/whl/cpu "torch==$TORCH+cpu" || {
            say "no CPU build of PyTorch $TORCH could be reached; taking PyPI's, of 3 GB"
            $pip "torch==$TORCH"
        }
    fi
}
