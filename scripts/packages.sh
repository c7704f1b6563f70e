# SPDX-License-Identifier: Apache-2.0
# Sourced by ./hawser. Distribution packages: which ones, which are missing, how to install them.
# shellcheck shell=bash

# required_packages DISTRIBUTION: one name per line; fails for a distribution this script does not know.
required_packages() {
  # To build.
  local common=(
    ca-certificates cmake ninja-build g++ ccache pkg-config protobuf-compiler libprotobuf-dev libprotoc-dev
    libcli11-dev libspdlog-dev libtomlplusplus-dev libseccomp-dev liblz4-dev libzstd-dev libgtest-dev libgmock-dev nlohmann-json3-dev
    libgrpc++-dev protobuf-compiler-grpc
    opencl-headers ocl-icd-opencl-dev spirv-tools spirv-headers
  )
  # A device, and programs nobody here wrote to try it with.
  common+=(
    ocl-icd-libopencl1 pocl-opencl-icd clinfo clpeak ffmpeg python3 python3-pip python3-pyopencl python3-pytest python3-mako python3-numpy
  )
  # To check.
  common+=(binutils git xz-utils clang-format-14)
  # Virtual machines, for what needs a kernel of its own.
  common+=(qemu-system-x86 busybox-static cpio kmod)
  case "$1" in
    "debian 12") common+=(clang clang-tidy libclang-rt-14-dev) ;;
    "ubuntu 24.04") common+=(clang clang-tidy libclang-rt-18-dev) ;;
    *) return 1 ;;
  esac
  printf '%s\n' "${common[@]}"
}

# missing_packages NAME...: those that are not installed, one per line.
missing_packages() {
  # dpkg-query fails when it does not know a name at all, and still prints the others.
  { dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\n' "$@" 2>/dev/null || true; } |
    awk -F '\t' 'NR == FNR { wanted[$0]; next } $1 ~ /^ii/ { delete wanted[$2] } END { for (n in wanted) print n }' \
      <(printf '%s\n' "$@") - | sort
}

# The stamp says: with this package list and this state of dpkg nothing was missing.
packages_key() {
  local status=${HAWSER_DPKG_STATUS:-/var/lib/dpkg/status}
  { cat "$HAWSER_ROOT/scripts/packages.sh"; distribution; stat -c '%Y %s' "$status" 2>/dev/null; } | cksum
}

# as_root: the words that make the next command run as root, or failure.
as_root() {
  if [[ ${HAWSER_UID:-$(id -u)} == 0 ]]; then
    printf ''
  elif command -v sudo >/dev/null; then
    # Without a terminal sudo must not ask, or it would wait for ever.
    if [[ -t 0 ]] || sudo -n true 2>/dev/null; then printf 'sudo'; else return 1; fi
  else
    return 1
  fi
}

ensure_packages() {
  [[ -n ${HAWSER_SKIP_PACKAGES:-} ]] && return 0
  local stamp=$HAWSER_ROOT/build/.packages key
  key=$(packages_key)
  [[ -f $stamp && $(<"$stamp") == "$key" ]] && return 0

  local os names
  os=$(distribution)
  if ! names=$(required_packages "$os"); then
    die "the set-up knows Debian 12 and Ubuntu 24.04, and this is '$os'." \
      "Install what corresponds to these packages of Debian 12:" \
      "  $(required_packages 'debian 12' | tr '\n' ' ')" \
      "then type: HAWSER_SKIP_PACKAGES=1 ./hawser $*"
  fi
  local -a wanted missing
  mapfile -t wanted <<<"$names"
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if ((${#missing[@]} > 0)); then
    local root
    if ! root=$(as_root); then
      die "${#missing[@]} packages are missing, and installing them needs root. Type:" \
        "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" \
        "or run this command as root."
    fi
    say "Installing ${#missing[@]} distribution packages: ${missing[*]}"
    # The log is shown only when something goes wrong.
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086  # root is one word or none
    if ! $root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 update >"$log" 2>&1 ||
      ! $root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 \
        install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
      tail -n 25 "$log" >&2
      rm -f "$log"
      die "the packages could not be installed (the last lines of apt-get are above). Type:" \
        "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
    rm -f "$log"
    mapfile -t missing < <(missing_packages "${wanted[@]}")
    ((${#missing[@]} == 0)) || die "apt-get said it succeeded, but these are still missing: ${missing[*]}"
    key=$(packages_key)
  fi
  mkdir -p "$HAWSER_ROOT/build"
  printf '%s\n' "$key" >"$stamp"
}

# pyopencl's own tests come with its documentation package. Slim images leave /usr/share/doc out, so the
# package is unpacked under build/foreign; it needs no root and is not downloaded twice.
# Without a network the tests that want it are skipped and say so.
ensure_pyopencl_tests() {
  local target=$HAWSER_ROOT/build/foreign/python-pyopencl-doc
  local examples=usr/share/doc/python-pyopencl-doc/examples
  [[ -d $target/$examples ]] && return 0
  if [[ -f /$examples/test_wrapper.py ]]; then
    mkdir -p "$target/${examples%/*}"
    cp -r "/$examples" "$target/$examples"
    return 0
  fi
  local work
  work=$(mktemp -d)
  if (cd "$work" && chmod 755 . && apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root download python-pyopencl-doc \
      >log 2>&1 </dev/null); then
    mkdir -p "$target.new"
    dpkg -x "$work"/python-pyopencl-doc_*.deb "$target.new" && mv "$target.new" "$target"
  else
    say "note: pyopencl's own tests could not be fetched (apt-get download python-pyopencl-doc); they will be skipped."
  fi
  rm -rf "$work"
}
