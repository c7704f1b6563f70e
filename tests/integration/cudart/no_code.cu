// SPDX-License-Identifier: Apache-2.0
// A program whose device code is machine code alone (see CMakeLists.txt), where the device runs PTX alone: launches are
// refused, the rest works. What is said about it on stderr: no_code_test.py.
#include "check.h"

__global__ void Store(int* to) { *to = 1; }

int main() {
  int* data = nullptr;
  OK(cudaMalloc(&data, 4));
  for (int round = 0; round < 3; ++round) {
    Store<<<1, 1>>>(data);
    EXPECT_ERROR(cudaErrorNoKernelImageForDevice, cudaGetLastError());
  }
  OK(cudaMemset(data, 0, 4));
  OK(cudaDeviceSynchronize());
  return Done();
}
