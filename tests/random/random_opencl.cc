// SPDX-License-Identifier: Apache-2.0
// random_opencl [FIRST [COUNT [STEPS]]]: random OpenCL programs, of these seeds. HAWSER_RANDOM_TELL=1 says each step.
// Exit status: 0, all bytes were right; 1, not, with the seed; 2, no device.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/random/opencl_program.h"

namespace {

/// The first device of the first platform. Returns false if there is none that can be used.
bool Make(hawser::random::OpenclPlace* place) {
  cl_platform_id platform = nullptr;
  cl_int result = CL_SUCCESS;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) return false;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &place->device, nullptr) != CL_SUCCESS) return false;
  place->context = clCreateContext(nullptr, 1, &place->device, nullptr, nullptr, &result);
  if (result != CL_SUCCESS) return false;
  const char* source = hawser::random::Source();
  place->program = clCreateProgramWithSource(place->context, 1, &source, nullptr, &result);
  if (result != CL_SUCCESS) return false;
  cl_device_svm_capabilities svm = 0;
  (void)clGetDeviceInfo(place->device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, nullptr);
  place->svm = (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The heaps of guest and worker want the same addresses, which an instrumented one may have used for something else.
  if (place->svm) {
    void* const memory = clSVMAlloc(place->context, CL_MEM_READ_WRITE, 64, 0);
    if (memory == nullptr)
      printf("skipped here: SVM, whose addresses this instrumented build uses for something else\n");
    place->svm = memory != nullptr;
    clSVMFree(place->context, memory);
  }
#endif
  return clBuildProgram(place->program, 1, &place->device, "", nullptr, nullptr) == CL_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t count = argc > 2 ? strtoull(argv[2], nullptr, 10) : 10;
  const int steps = argc > 3 ? atoi(argv[3]) : 300;
  const bool tell = getenv("HAWSER_RANDOM_TELL") != nullptr;
  hawser::random::OpenclPlace place;
  if (!Make(&place)) {
    fprintf(stderr, "random_opencl: there is no OpenCL device\n");
    return 2;
  }
  for (uint64_t seed = first; seed < first + count; ++seed) {
    hawser::random::OpenclProgram program(seed, place, tell);
    if (!program.Run(steps)) _exit(1);  // Things are still under way.
  }
  (void)clReleaseProgram(place.program);
  (void)clReleaseContext(place.context);
  printf("%llu programs of %d steps: right\n", static_cast<unsigned long long>(count), steps);
  return 0;
}
