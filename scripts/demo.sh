# SPDX-License-Identifier: Apache-2.0
# Sourced by ./hawser. Shows a program running on a device that its process does not have.
# shellcheck shell=bash

# What the demonstration started and made; removed however it ends.
demo_server=''
demo_work=''
demo_cleanup() {
  if [[ -n $demo_server ]] && kill "$demo_server" 2>/dev/null; then wait "$demo_server" 2>/dev/null || true; fi
  demo_server=''
  [[ -n $demo_work ]] && rm -rf "$demo_work"
  demo_work=''
}

# Which of these libraries a program loaded, from the dynamic linker's own protocol.
demo_loaded() { grep -ohE 'calling init: [^ ]*/lib(pocl|hawser_opencl)[^/ ]*' "$@" 2>/dev/null | sed 's|.*/||' | sort -u | paste -sd ' '; }

# Runs a program with the dynamic linker's protocol in $demo_work/<name>.ld.<pid>; output to <name>.out.
demo_observe() {
  local name=$1
  shift
  LD_DEBUG=files LD_DEBUG_OUTPUT="$demo_work/$name.ld" "$@" >"$demo_work/$name.out" 2>"$demo_work/$name.err" </dev/null ||
    { cat "$demo_work/$name.err" >&2; die "$name failed: $*"; }
}

demo() {
  local dir program server_line
  dir=$(build_dir)
  program=$dir/examples/opencl/vector
  demo_work=$(mktemp -d)
  trap demo_cleanup EXIT
  trap 'exit 130' INT TERM
  mkdir "$demo_work/no-platforms"
  # Local and remote compile for themselves, as two machines would.
  export POCL_CACHE_DIR=$demo_work/local-cache

  echo "1. The server"
  POCL_CACHE_DIR=$demo_work/server-cache XDG_CACHE_HOME=$demo_work/server-cache "$dir/server/hawserd" --listen "unix:$demo_work/hawser.sock" \
    >"$demo_work/hawserd.log" 2>&1 </dev/null &
  demo_server=$!
  for _ in $(seq 200); do
    server_line=$(grep -m1 'listening on' "$demo_work/hawserd.log" || true)
    [[ -n $server_line ]] && break
    kill -0 "$demo_server" 2>/dev/null || { cat "$demo_work/hawserd.log" >&2; die "hawserd ended at once (its log is above)"; }
    sleep 0.05
  done
  [[ -n $server_line ]] || { cat "$demo_work/hawserd.log" >&2; die "hawserd did not start to listen (its log is above)"; }
  echo "   hawserd (process $demo_server) owns the device and listens on a unix socket."
  echo "   Its devices, as a guest sees them:"
  "$dir/tools/hawser" devices --server "shm:$demo_work/hawser.sock" | sed 's/^/     /'

  echo
  echo "2. A guest without a device"
  # The loader is shown an empty folder instead of this machine's platforms.
  if OCL_ICD_VENDORS=$demo_work/no-platforms "$program" >"$demo_work/none.out" 2>&1; then
    die "the program found a device where there should be none"
  fi
  echo "   With no platform installed the program stops: $(<"$demo_work/none.out")"
  echo "   Hawser's guest library is not a device either: it only sends what it is asked to the server."

  echo
  echo "3. The same program, unchanged, through the server"
  demo_observe remote "$dir/tools/hawser" run --server "shm:$demo_work/hawser.sock" "$program"
  sed 's/^/     /' "$demo_work/remote.out"
  demo_observe local "$program"
  echo "   Driver libraries in its process:      $(demo_loaded "$demo_work"/remote.ld.*)"
  echo "   In the process of a local run:        $(demo_loaded "$demo_work"/local.ld.*)"
  if grep -qE 'calling init: [^ ]*/libpocl' "$demo_work"/remote.ld.*; then
    die "the guest process loaded a device driver of its own"
  fi
  cmp "$demo_work/remote.out" "$demo_work/local.out" || die "the remote result differs from the local one"
  echo "   Compared with a local run, byte for byte: equal ($(wc -c <"$demo_work/local.out") bytes of results)."

  demo_foreign "$dir"

  echo
  echo "4. A CUDA program"
  demo_cuda "$dir"

  echo
  echo "5. What the distance costs (medians; the same device on both sides)"
  local only=launch_finish_p50,launch_burst_rate,read_small_p50,h2d_pageable_16MiB,d2h_pageable_16MiB,h2d_mapped_16MiB
  "$dir/tools/hawser" bench opencl --quick --only "$only" --json "$demo_work/bench.json" >/dev/null 2>"$demo_work/bench.err" ||
    { cat "$demo_work/bench.err" >&2; die "the measurement failed"; }
  python3 "$HAWSER_ROOT/scripts/demo_table.py" "$demo_work/bench.json"

  demo_cleanup
  echo
  echo "The server is stopped and nothing is left behind. Next:"
  echo "   ./hawser serve                 a server of your own; in another terminal:"
  echo "   ./hawser run clinfo            any OpenCL or CUDA program"
  echo "   ./hawser run --device soft ./a.out   a CUDA program on this machine's CPU, without a server"
  echo "   ./hawser bench opencl --quick  all measurements"
}

# A CUDA program with nvcc's default, the static runtime, on the server's CUDA device: a GPU where the server has one,
# else the software device. Without nvcc: the one that calls the driver and carries its kernel as PTX.
demo_cuda() {
  local dir=$1 program=$1/examples/cuda/vector_add
  local how="It carries NVIDIA's runtime inside; as it was loaded, that runtime's entry points were led to Hawser's."
  if [[ ! -x $program ]]; then
    program=$dir/examples/cuda/driver_api
    how="There is no nvcc on this machine: this program needs none, it calls the driver and has its kernel as PTX."
  fi
  demo_observe cuda-remote "$dir/tools/hawser" run --server "shm:$demo_work/hawser.sock" "$program"
  sed 's/^/     /' "$demo_work/cuda-remote.out"
  echo "   The program is $(basename "$program"). $how"
  echo "   Hawser's driver library sent the calls to the server. There: $(grep -m1 -oE 'CUDA on [^,]*' "$demo_work/hawserd.log" || echo "the device that hawser devices shows")."
  demo_observe cuda-local "$dir/tools/hawser" run --device soft "$program"
  cmp "$demo_work/cuda-remote.out" "$demo_work/cuda-local.out" ||
    die "the remote result differs from that of the software device in the program's own process"
  echo "   The same on the software CUDA device without a server: equal, byte for byte."
}

# Programs that nobody here wrote.
demo_foreign() {
  local dir=$1
  local example=$HAWSER_ROOT/build/foreign/python-pyopencl-doc/usr/share/doc/python-pyopencl-doc/examples/demo.py
  local -a names=()
  if [[ -f $example ]]; then
    demo_observe pyopencl-remote "$dir/tools/hawser" run --server "shm:$demo_work/hawser.sock" /usr/bin/python3 "$example"
    demo_observe pyopencl-local /usr/bin/python3 "$example"
    cmp "$demo_work/pyopencl-remote.out" "$demo_work/pyopencl-local.out" ||
      die "pyopencl's example gives another result remotely than locally"
    names+=("pyopencl's example demo.py")
  fi
  demo_observe clinfo-remote "$dir/tools/hawser" run --server "shm:$demo_work/hawser.sock" clinfo --raw
  demo_observe clinfo-local clinfo --raw
  # The name of a device tells it apart from any other: both must see the same one.
  local field='CL_DEVICE_(NAME|VERSION|VENDOR|MAX_COMPUTE_UNITS|MAX_WORK_GROUP_SIZE) '
  cmp <(grep -oE "$field.*" "$demo_work/clinfo-remote.out") <(grep -oE "$field.*" "$demo_work/clinfo-local.out") ||
    die "clinfo sees another device remotely than locally"
  names+=("clinfo's device")
  local text
  text=$(printf '%s and ' "${names[@]}")
  echo "   The same with programs nobody here wrote: ${text% and } came out equal, too."
}
