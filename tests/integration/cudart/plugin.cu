// SPDX-License-Identifier: Apache-2.0
// A library with device code and a static runtime of its own, whose constructor uses the device already.
#include "check.h"

__global__ void Square(int* value) { *value *= *value; }
__constant__ int g_seven = 7;

static int g_from_constructor = 0;

static struct AtLoad {
  AtLoad() {
    int seven = 0;
    if (cudaMemcpyFromSymbol(&seven, g_seven, sizeof(seven)) == cudaSuccess) g_from_constructor = seven;
  }
} g_at_load;

extern "C" int plugin_run() {
  int* device = nullptr;
  int value = 12;
  OK(cudaMalloc(&device, sizeof(int)));
  OK(cudaMemcpy(device, &value, sizeof(int), cudaMemcpyHostToDevice));
  Square<<<1, 1>>>(device);
  OK(cudaMemcpy(&value, device, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(value == 144);
  EXPECT(g_from_constructor == 7);
  OK(cudaFree(device));
  return Done();
}
