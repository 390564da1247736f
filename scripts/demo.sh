# Recorded GPUs through the whole stack to printed notifications. ./run demo --help
set -eu
. scripts/runtime.sh
run_stack demo "$@"
