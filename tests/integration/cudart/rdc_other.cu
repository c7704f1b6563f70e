// SPDX-License-Identifier: Apache-2.0
// The other file of rdc_main.cu.
__device__ int g_shared_number = 100;
__device__ int Twice(int value) { return 2 * value; }
__global__ void Other(int* out) { *out = 7; }
void LaunchOther(int* out) { Other<<<1, 1>>>(out); }
