// SPDX-License-Identifier: Apache-2.0
// Compiled by nvcc into fatbins of every kind; see image_test.cc.
#ifdef RELOCATABLE_MAIN
extern __device__ int helper(int x);
extern "C" __global__ void main_kernel(int* out) { *out = helper(20); }
#elif defined(RELOCATABLE_HELPER)
__device__ int helper(int x) { return x + 22; }
#else
__device__ int offset = 100;
extern "C" __global__ void shift(int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = i + offset;
}
#endif
