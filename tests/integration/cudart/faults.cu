// SPDX-License-Identifier: Apache-2.0
// Kernel faults: told by the next call that may tell, then by all, until any thread resets the device; and out of memory.
#include <thread>

#include "check.h"

__global__ void WriteTo(int* where) { *where = 1; }
__global__ void Trap() { asm("trap;"); }

int main() {
  void* large = nullptr;
  EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&large, size_t{1} << 50));
  EXPECT_ERROR(cudaErrorMemoryAllocation, cudaGetLastError());
  OK(cudaGetLastError());

  int* good = nullptr;
  OK(cudaMalloc(&good, 4));
  WriteTo<<<1, 1>>>(good);
  OK(cudaDeviceSynchronize());
  WriteTo<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaGetLastError());
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaMalloc(&large, 4));
  OK(cudaDeviceReset());
  OK(cudaGetLastError());

  OK(cudaMalloc(&good, 4));
  WriteTo<<<1, 1>>>(good);
  OK(cudaDeviceSynchronize());
  Trap<<<1, 1>>>();
  EXPECT_ERROR(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  OK(cudaDeviceReset());
  OK(cudaMalloc(&good, 4));
  int value = 0;
  WriteTo<<<1, 1>>>(good);
  OK(cudaMemcpy(&value, good, 4, cudaMemcpyDeviceToHost));
  EXPECT(value == 1);

  // One thread's reset lets all of them go on.
  WriteTo<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaPeekAtLastError());
  std::thread([] { OK(cudaDeviceReset()); }).join();
  OK(cudaGetLastError());
  OK(cudaMalloc(&good, 4));
  WriteTo<<<1, 1>>>(good);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  return Done();
}
