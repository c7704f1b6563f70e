# SPDX-License-Identifier: Apache-2.0
# Sourced by ./hawser. Runs CTest and says at the end what passed, failed and was skipped, and why.
# shellcheck shell=bash

run_tests() {
  local dir status=0
  dir=$(build_dir)
  local results=$dir/test-results.xml
  rm -f "$results"
  # One more than there are processors: many tests wait.
  (cd "$dir" && ctest -j$(($(nproc) + 1)) --output-on-failure --test-output-size-passed 1000000 --output-junit "$results" "$@") </dev/null || status=$?
  if [[ -f $results ]]; then
    python3 "$HAWSER_ROOT/scripts/test_summary.py" "$results"
  else
    say "ctest wrote no results; arguments were: $*"
  fi
  return "$status"
}
