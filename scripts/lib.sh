# SPDX-License-Identifier: Apache-2.0
# Sourced by ./hawser. How the script talks, and where things are.
# shellcheck shell=bash

# Everything that is not the answer to the command goes to stderr, so that pipes stay clean.
say() { printf '%s\n' "$*" >&2; }
die() {
  printf 'hawser: %s\n' "$1" >&2
  shift
  local line
  for line in "$@"; do printf '        %s\n' "$line" >&2; done
  exit 1
}

# build_preset: which preset of CMakePresets.json the build tree uses (HAWSER_PRESET, default release).
build_preset() { printf '%s' "${HAWSER_PRESET:-release}"; }
# sanitized: whether that preset instruments what it builds.
sanitized() { [[ $(build_preset) =~ ^(asan|tsan|fuzz)$ ]]; }
build_dir() { printf '%s/build/%s' "$HAWSER_ROOT" "$(build_preset)"; }

# Version and name of this distribution, "debian 12". HAWSER_OS_RELEASE: another file, for tests.
distribution() {
  local file=${HAWSER_OS_RELEASE:-/etc/os-release}
  [[ -r $file ]] || { printf 'unknown'; return; }
  (
    ID='' VERSION_ID=''
    # shellcheck disable=SC1090
    . "$file"
    printf '%s %s' "${ID:-unknown}" "$VERSION_ID"
  )
}
