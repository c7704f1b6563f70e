// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels (-rdc=true), as nvcc compiles them.
#include "check.h"

constexpr int kLength = 1000;

struct Wide {
  double factor;
  short offset;
};

__global__ void Scale(int* data, Wide by, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) data[i] = static_cast<int>(data[i] * by.factor) + by.offset;
}

/// Sorts by merging halves, each of which a child has sorted; the merging is what remains when they are done.
__global__ void Merge(int* data, int* room, int length) {
  const int half = length / 2;
  int a = 0, b = half;
  for (int i = 0; i < length; ++i) {
    room[i] = b >= length || (a < half && data[a] <= data[b]) ? data[a++] : data[b++];
  }
  for (int i = 0; i < length; ++i) data[i] = room[i];
}

__global__ void Sort(int* data, int* room, int length) {
  if (length <= 8) {
    for (int i = 1; i < length; ++i) {
      for (int k = i; k > 0 && data[k - 1] > data[k]; --k) {
        const int other = data[k];
        data[k] = data[k - 1];
        data[k - 1] = other;
      }
    }
    return;
  }
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Sort<<<1, 1>>>(data, room, length / 2);
  Sort<<<1, 1, 0, stream>>>(data + length / 2, room + length / 2, length - length / 2);
  cudaStreamDestroy(stream);
  Merge<<<1, 1, 0, cudaStreamTailLaunch>>>(data, room, length);
}

__device__ int g_errors[4];

__global__ void Root(int* data) {
  if (threadIdx.x != 0) return;
  Scale<<<(kLength + 127) / 128, 128>>>(data, Wide{2.0, 7}, kLength);
  Scale<<<dim3((kLength + 127) / 128), 128, 0, cudaStreamFireAndForget>>>(data + kLength, Wide{0.5, -1}, kLength);
  g_errors[0] = cudaGetLastError();
  Scale<<<1, 4096>>>(data, Wide{100.0, 0}, kLength);
  g_errors[1] = cudaPeekAtLastError();
  g_errors[2] = cudaGetLastError();
  g_errors[3] = cudaGetLastError();
}

__global__ void Say(int depth) {
  if (depth > 0) {
    printf("depth %d: %s\n", depth, cudaGetErrorString(cudaSuccess));
    Say<<<1, 1>>>(depth - 1);
  }
}

__device__ int g_count, g_seen;

__global__ void CountOne() { atomicAdd(&g_count, 1); }
__global__ void See() { g_seen = g_count; }

/// What the first block leaves for the end is behind what all blocks launch, so the grid cannot run in parts.
__global__ void Many() {
  CountOne<<<1, 3>>>();
  if (blockIdx.x == 0) See<<<1, 1, 0, cudaStreamTailLaunch>>>();
}

__global__ void Wrong(int* nowhere) { *nowhere = 1; }
__global__ void LaunchesWrong() { Wrong<<<1, 1>>>(nullptr); }

int main() {
  int* data = nullptr;
  OK(cudaMallocManaged(&data, 2 * kLength * sizeof(int)));
  for (int i = 0; i < 2 * kLength; ++i) data[i] = i;
  Root<<<1, 64>>>(data);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  bool scaled = true;
  for (int i = 0; i < kLength; ++i) {
    scaled = scaled && data[i] == 2 * i + 7 && data[kLength + i] == static_cast<int>((kLength + i) * 0.5) - 1;
  }
  EXPECT(scaled);
  int errors[4] = {};
  OK(cudaMemcpyFromSymbol(errors, g_errors, sizeof(errors)));
  EXPECT(errors[0] == cudaSuccess);
  EXPECT(errors[1] == cudaErrorInvalidConfiguration);
  EXPECT(errors[2] == cudaErrorInvalidConfiguration);
  EXPECT(errors[3] == cudaSuccess);

  unsigned random = 1;
  for (int i = 0; i < kLength; ++i) data[i] = static_cast<int>((random = random * 1664525u + 1013904223u) >> 8);
  Sort<<<1, 1>>>(data, data + kLength, kLength);
  OK(cudaDeviceSynchronize());
  bool sorted = true;
  for (int i = 1; i < kLength; ++i) sorted = sorted && data[i - 1] <= data[i];
  EXPECT(sorted);

  Say<<<1, 1>>>(3);
  OK(cudaDeviceSynchronize());

  for (int round = 1; round <= 3; ++round) {
    Many<<<64, 1>>>();
    int seen = 0;
    OK(cudaMemcpyFromSymbol(&seen, g_seen, sizeof(seen)));
    EXPECT(seen == round * 64 * 3);
  }

  LaunchesWrong<<<1, 1>>>();
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  OK(cudaDeviceReset());
  OK(cudaMalloc(&data, 4));
  return Done();
}
