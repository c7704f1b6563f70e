// SPDX-License-Identifier: Apache-2.0
// random_cuda [FIRST [COUNT [STEPS [graphs] [events] [mirrors]]]]: random programs over CUDA's driver API, of these
// seeds; "graphs": with graphs; "events": few events, recorded again and again; "mirrors": also with memory of the host
// that kernels use, and managed memory.
// HAWSER_RANDOM_TELL=1 says each step. Exit status: 0, all bytes were right; 1, not, with the seed; 2, no device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/random/cuda_program.h"

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t count = argc > 2 ? strtoull(argv[2], nullptr, 10) : 10;
  const int steps = argc > 3 ? atoi(argv[3]) : 300;
  hawser::random::CudaProgram::Options options;
  options.tell = getenv("HAWSER_RANDOM_TELL") != nullptr;
  for (int i = 4; i < argc; ++i) {
    options.mirrors = options.mirrors || strcmp(argv[i], "mirrors") == 0;
    options.graphs = options.graphs || strcmp(argv[i], "graphs") == 0;
    options.events = options.events || strcmp(argv[i], "events") == 0;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    fprintf(stderr, "random_cuda: there is no CUDA device\n");
    return 2;
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    hawser::random::CudaProgram program(seed, context, options);
    if (!program.Run(steps)) _exit(1);  // Things are still under way.
  }
  (void)cuDevicePrimaryCtxRelease(device);
  printf("%llu programs of %d steps: right\n", static_cast<unsigned long long>(count), steps);
  return 0;
}
