# SPDX-License-Identifier: Apache-2.0
# Sourced by ./hawser. The CUDA toolkit: its headers to build against, its compiler for the example programs.
# shellcheck shell=bash

# The parts of the toolkit that are needed, as packages of the Python package index.
toolkit_packages=(
  nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-profiler-api==13.0.85
)

# The folder of a toolkit of version 13, or failure. cmake/HawserCuda.cmake looks in the same places.
installed_toolkit() {
  local nvcc dir
  nvcc=$(command -v nvcc || true)
  for dir in "${CUDA_PATH:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" /usr/local/cuda \
    "$HAWSER_ROOT/build/toolkit"; do
    [[ -n $dir && -x $dir/bin/nvcc && -f $dir/include/cudaTypedefs.h ]] || continue
    if "$dir/bin/nvcc" --version 2>/dev/null | grep -q 'release 13\.'; then
      printf '%s' "$dir"
      return 0
    fi
  done
  return 1
}

# Where the machine has no toolkit, the packages are unpacked under build/toolkit: no root, nothing outside the tree.
ensure_toolkit() {
  installed_toolkit >/dev/null && return 0
  local target=$HAWSER_ROOT/build/toolkit work
  say "Fetching the CUDA toolkit's headers and compiler (100 MB, once)"
  mkdir -p "$HAWSER_ROOT/build"
  work=$(mktemp -d "$HAWSER_ROOT/build/toolkit.XXXXXX")
  if ! python3 -m pip download --retries 2 --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$work/wheels" \
    "${toolkit_packages[@]}" >"$work/log" 2>&1 </dev/null; then
    tail -n 10 "$work/log" >&2
    rm -rf "$work"
    die "the CUDA toolkit could not be fetched (the last lines of pip are above)." \
      "Install CUDA 13 so that nvcc is on PATH, or type: python3 -m pip download ${toolkit_packages[*]}"
  fi
  local wheel
  for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
  done
  local root=$work/unpacked/nvidia/cu13
  chmod +x "$root"/bin/* "$root"/nvvm/bin/*
  # nvcc looks for lib64, the linker for names without a version.
  ln -s lib "$root/lib64"
  ln -s libcudart.so.13 "$root/lib/libcudart.so"
  rm -rf "$target"
  mv "$root" "$target"
  rm -rf "$work"
  installed_toolkit >/dev/null || die "the CUDA toolkit in $target does not run: $("$target/bin/nvcc" --version 2>&1 | tail -n 1)"
}

# Packages of Python's that nobody here wrote, each list under a folder of its own in build/foreign. Without a network their
# tests are skipped and say so.
# numba-cuda, a compiler from Python to PTX whose own tests are run (tests/foreign/numba_suite.py); without nvJitLink, on
# purpose.
numba_packages=(
  numba-cuda==0.30.4 numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6 packaging==26.3 cuda-core==1.2.2 cuda-bindings==13.5.0
  pytest==9.2.0 iniconfig==2.3.1 pluggy==1.7.0 pygments==2.21.0 psutil==7.2.2 filecheck==1.0.6
  cuda-pathfinder==1.9.0 nvidia-nvvm==13.5.37 nvidia-cuda-nvrtc==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
)
# CuPy, Dr.Jit, tinygrad and Taichi (tests/foreign/python_suite.py), OpenCV (opencv_check.py); what they need besides is numba-cuda's.
cupy_packages=(cupy-cuda13x==14.2.0)
drjit_packages=(drjit==1.5.0)
tinygrad_packages=(tinygrad==0.14.0)
taichi_packages=(taichi==1.7.4 colorama==0.4.6 dill==0.4.1 rich==15.0.0 markdown-it-py==4.3.0 mdurl==0.1.2)
opencv_packages=(opencv-python-headless==5.0.0.93)

ensure_python_packages() { # NAME PACKAGE...
  local name=$1 target=$HAWSER_ROOT/build/foreign/$1 work
  shift
  # The list is its own stamp: another list, another folder's worth.
  [[ -f $target/.packages && $(<"$target/.packages") == "$*" ]] && return 0
  mkdir -p "$HAWSER_ROOT/build/foreign"
  work=$(mktemp -d "$HAWSER_ROOT/build/foreign/$name.XXXXXX")
  # --target: nothing of the system's Python is touched.
  if python3 -m pip install --retries 2 --quiet --disable-pip-version-check --no-deps --only-binary :all: --no-compile \
    --target "$work/site" "$@" >"$work/log" 2>&1 </dev/null; then
    printf '%s\n' "$*" >"$work/site/.packages"
    rm -rf "$target"
    mv "$work/site" "$target"
  else
    say "note: ${1%%=*} could not be fetched ($(tail -n 1 "$work/log")); its tests will be skipped."
  fi
  rm -rf "$work"
}
ensure_foreign_python() {
  ensure_python_packages numba "${numba_packages[@]}"
  ensure_python_packages cupy "${cupy_packages[@]}"
  ensure_python_packages drjit "${drjit_packages[@]}"
  ensure_python_packages tinygrad "${tinygrad_packages[@]}"
  ensure_python_packages taichi "${taichi_packages[@]}"
  ensure_python_packages opencv "${opencv_packages[@]}"
}
