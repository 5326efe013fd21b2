#!/usr/bin/env bash
# Run pytest in a copy of this tree, so that no test can change the checkout.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/voxveil-test.XXXXXX")
trap 'rm -rf "$copy"' EXIT
cd "$here"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ -e "$file" ] && printf '%s\0' "$file"
done | tar --null -T - -c | tar -x -C "$copy"
if [ -z "${VOXVEIL_TEST_DATA:-}" ] && [ -d "$here/../shared/data" ]; then
    export VOXVEIL_TEST_DATA=$here/../shared/data
fi
if [ -z "${VOXVEIL_TEST_REFERENCE:-}" ] && [ -d "$here/../shared/reference" ]; then
    export VOXVEIL_TEST_REFERENCE=$here/../shared/reference
fi
export PATH="$here/.venv/bin:$PATH" PYTHONPATH="$copy/src" PYTHONDONTWRITEBYTECODE=1 VOXVEIL_TEST_MODULES=required
export DVC_NO_ANALYTICS=1 DO_NOT_TRACK=1 MLFLOW_DISABLE_TELEMETRY=true
cd "$copy"
git init -q . && git add -A && git -c user.name=test -c user.email=test@localhost commit -qm copy
python -m pytest "$@"
