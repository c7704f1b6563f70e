// SPDX-License-Identifier: Apache-2.0
// Device code in two files (-rdc=true): a function, a variable and a kernel of the other.
#include "check.h"

extern __device__ int g_shared_number;
__device__ int Twice(int value);
void LaunchOther(int* out);

__global__ void Compute(int* out) { out[0] = Twice(21) + g_shared_number; }

int main() {
  int* out = nullptr;
  OK(cudaMalloc(&out, 8));
  Compute<<<1, 1>>>(out);
  LaunchOther(out + 1);
  int host[2] = {};
  OK(cudaMemcpy(host, out, 8, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 142);
  EXPECT(host[1] == 7);
  OK(cudaFree(out));
  return Done();
}
