# Ends what ./run up started, and nothing else.
set -eu
. scripts/runtime.sh
run_stack down "$@"
