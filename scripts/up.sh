# The stack as plain processes on this host: exporter, Prometheus, Alertmanager. ./run up --help
set -eu
. scripts/runtime.sh
run_stack up "$@"
