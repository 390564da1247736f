# Ends what ./run up (or a demonstration that was killed) left running, and nothing else.
set -eu
. scripts/runtime.sh
run_stack down "$@"
