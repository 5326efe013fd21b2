#!/usr/bin/env bash
# Remake the locks from pyproject.toml: one resolution (dev), the others are subsets of it.
# Needs uv (pip install uv). Installed with: pip install --no-deps -r requirements/NAME.txt
set -euo pipefail
cd "$(dirname "$0")/.."
UV=${UV:-uv}
compile() { # NAME, then the extras
    local name=$1 extras=() constraint=()
    shift
    for extra in "$@"; do extras+=(--extra "$extra"); done
    [ "$name" = dev ] || constraint=(--constraint requirements/dev.txt)
    "$UV" pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
        --no-emit-package voxveil "${constraint[@]}" "${extras[@]}" pyproject.toml -o "requirements/$name.txt" "${UPGRADE[@]}"
}
UPGRADE=()
[ "${1:-}" = --upgrade ] && UPGRADE=(--upgrade)
compile dev plots mlflow data train dp pipeline demo align judges research dev
compile gpu plots mlflow data train dp pipeline demo align judges research
compile cpu plots mlflow data pipeline align
compile mlflow mlflow
compile base
