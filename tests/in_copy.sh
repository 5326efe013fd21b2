#!/usr/bin/env bash
# Run pytest in a copy of the source, so that no test can change the checkout and no run in it a test.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/voxveil-test.XXXXXX")
trap 'rm -rf "$copy"' EXIT
# What a person's shell says of servers, stores and registers is for that person's runs, not for tests.
for name in $(compgen -e | grep -E '^(VOXVEIL|MLFLOW|DVC|AWS)_' || true); do
    case $name in VOXVEIL_TEST_* | VOXVEIL_SCREENSHOTS) ;; *) unset "$name" ;; esac
done
if [ -z "${VOXVEIL_TEST_DATA:-}" ] && [ -d "$here/../shared/data" ]; then
    export VOXVEIL_TEST_DATA=$here/../shared/data
fi
if [ -z "${VOXVEIL_TEST_REFERENCE:-}" ] && [ -d "$here/../shared/reference" ]; then
    export VOXVEIL_TEST_REFERENCE=$here/../shared/reference
fi
export PATH="$here/.venv/bin:$PATH" PYTHONPATH="$copy/src" PYTHONDONTWRITEBYTECODE=1 VOXVEIL_TEST_MODULES=required
export DVC_NO_ANALYTICS=1 DO_NOT_TRACK=1 MLFLOW_DISABLE_TELEMETRY=true
python "$here/tests/source_tree.py" "$here" "$copy"
cd "$copy"
python -m pytest "$@"
