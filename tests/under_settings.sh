#!/usr/bin/env bash
# Run the tests that train under other kernels, other numbers of threads and made-up rounding, and print
# what fails or comes nearer to failing. Takes some minutes a setting.
#   tests/under_settings.sh [FOLDER [PYTEST ARGUMENT ...]]
# FOLDER keeps what was measured (default .voxveil/margins); a setting that it has is not run again.
# SETTINGS="name ..." chooses; the first must be default.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(realpath -m "${1:-$here/.voxveil/margins}")
shift || true
declare -A variables=(
    [default]=
    [aten-default]=ATEN_CPU_CAPABILITY=default
    [aten-avx2]=ATEN_CPU_CAPABILITY=avx2
    [onednn-sse41]=DNNL_MAX_CPU_ISA=SSE41
    [onednn-avx2]=DNNL_MAX_CPU_ISA=AVX2
    [onednn-off]=VOXVEIL_TEST_ONEDNN=off
    [mkl-compatible]=MKL_CBWR=COMPATIBLE
    [threads-1]=OMP_NUM_THREADS=1
    [threads-2]=OMP_NUM_THREADS=2
    [threads-4]=OMP_NUM_THREADS=4
    [openblas-haswell]=OPENBLAS_CORETYPE=Haswell
    [openblas-nehalem]=OPENBLAS_CORETYPE=Nehalem
    [numpy-plain]="NPY_DISABLE_CPU_FEATURES=X86_V3 AVX2 FMA3"
    [perturbed-3e-7]=VOXVEIL_TEST_PERTURBED=3e-7
    [perturbed-1e-6]=VOXVEIL_TEST_PERTURBED=1e-6
)
all="default aten-default aten-avx2 onednn-sse41 onednn-avx2 onednn-off mkl-compatible threads-1 threads-2 threads-4"
all+=" openblas-haswell openblas-nehalem numpy-plain perturbed-3e-7 perturbed-1e-6"
mkdir -p "$folder"
for setting in ${SETTINGS:-$all}; do
    file=$folder/$setting.jsonl
    [ -e "$file" ] && continue
    rm -f "$file.part"
    env GOMP_SPINCOUNT=0 ${variables[$setting]:+"${variables[$setting]}"} "$here/tests/in_copy.sh" \
        -m "torch and not services and not long and not containers and not e2e" \
        -p numeric_margins --margins "$file.part" -o enable_assertion_pass_hook=true "$@" \
        >"$folder/$setting.log" 2>&1 || true
    mv "$file.part" "$file"
done
python3 "$here/tests/numeric_margins.py" "$folder"
