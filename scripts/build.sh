# SPDX-License-Identifier: Apache-2.0
# Sourced by ./hawser. Configures and builds the tree of the chosen preset.
# shellcheck shell=bash

# run_quietly WHAT COMMAND...: shows the output only when the command fails.
run_quietly() {
  local what=$1 log status=0
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0)); then
    tail -n 60 "$log" >&2
    rm -f "$log"
    die "$what failed (its last lines are above). To see everything, type:" "  cd $HAWSER_ROOT && $*"
  fi
  rm -f "$log"
}

# build [TARGET...]: brings the tree up to date. Two at a time wait for each other.
build() {
  local preset dir
  preset=$(build_preset)
  dir=$(build_dir)
  mkdir -p "$dir"
  (
    flock 9
    cd "$HAWSER_ROOT" || exit 1
    # Ninja configures again by itself when a CMake file changed; the presets are not among those it knows.
    if [[ ! -f $dir/build.ninja || CMakePresets.json -nt $dir/build.ninja ]]; then
      say "Configuring $dir"
      run_quietly "configuring" cmake --preset "$preset"
      touch "$dir/build.ninja"
    fi
    local -a command=(cmake --build --preset "$preset")
    (($# > 0)) && command+=(--target "$@")
    if [[ -n ${HAWSER_VERBOSE:-} ]]; then
      "${command[@]}" >&2 </dev/null || die "the build failed"
    else
      [[ -x $dir/tools/hawser ]] || say "Building (a few minutes the first time)"
      run_quietly "the build" "${command[@]}"
    fi
  ) 9>"$dir/.hawser-lock"
}
