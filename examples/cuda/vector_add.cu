// SPDX-License-Identifier: Apache-2.0
// Adds two vectors on the device and checks the sum.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                              \
  do {                                                                           \
    const cudaError_t error = (call);                                            \
    if (error != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));        \
      std::exit(1);                                                              \
    }                                                                            \
  } while (0)

__global__ void Add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  constexpr int kCount = 50000;
  constexpr size_t kBytes = kCount * sizeof(float);
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = 0.5f * i;
    b[i] = 2.0f * (i % 100);
  }
  float* device_a = nullptr;
  float* device_b = nullptr;
  float* device_sum = nullptr;
  CHECK(cudaMalloc(&device_a, kBytes));
  CHECK(cudaMalloc(&device_b, kBytes));
  CHECK(cudaMalloc(&device_sum, kBytes));
  CHECK(cudaMemcpy(device_a, a.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), kBytes, cudaMemcpyHostToDevice));
  Add<<<(kCount + 255) / 256, 256>>>(device_a, device_b, device_sum, kCount);
  CHECK(cudaGetLastError());
  std::vector<float> sum(kCount);
  CHECK(cudaMemcpy(sum.data(), device_sum, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_sum));
  for (int i = 0; i < kCount; ++i) {
    if (sum[i] != a[i] + b[i]) {
      std::printf("element %d is %g, not %g\n", i, sum[i], a[i] + b[i]);
      return 1;
    }
  }
  std::printf("%d sums are right\n", kCount);
}
