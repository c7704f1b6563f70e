// SPDX-License-Identifier: Apache-2.0
// Launches: every size of argument, dynamic shared memory, attributes, cooperative groups, occupancy, printf, errors.
#include <cooperative_groups.h>

#include <unistd.h>

#include <cstring>

#include "check.h"

namespace cg = cooperative_groups;

struct Large {
  char bytes[300];
  double last;
};

__global__ void TakeAll(char a, short b, int c, long long d, float e, double f, Large g, float4 h, int* out) {
  out[0] = a + b + c + static_cast<int>(d) + static_cast<int>(e) + static_cast<int>(f) + g.bytes[299] +
           static_cast<int>(g.last) + static_cast<int>(h.w);
}

__global__ void Reverse(int* data) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void GridSum(int* data, int* sum) {
  cg::grid_group grid = cg::this_grid();
  data[grid.thread_rank()] = 1;
  grid.sync();
  if (grid.thread_rank() == 0) {
    for (unsigned i = 0; i < grid.size(); ++i) *sum += data[i];
  }
}

__global__ void Say(int number) { printf("kernel %d thread %d\n", number, threadIdx.x); }

template <typename T>
__global__ void Scale(T* data, T factor) {
  data[threadIdx.x] *= factor;
}

int main() {
  int* out = nullptr;
  OK(cudaMalloc(&out, 4096));
  OK(cudaMemset(out, 0, 4096));
  Large large = {};
  large.bytes[299] = 6;
  large.last = 7;
  TakeAll<<<1, 1>>>(1, 2, 3, 4, 5.0f, 6.0, large, make_float4(0, 0, 0, 8), out);
  int host[256];
  OK(cudaMemcpy(host, out, 4, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 1 + 2 + 3 + 4 + 5 + 6 + 6 + 7 + 8);

  for (int i = 0; i < 256; ++i) host[i] = i;
  OK(cudaMemcpy(out, host, sizeof(host), cudaMemcpyHostToDevice));
  Reverse<<<1, 256, 256 * sizeof(int)>>>(out);
  OK(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 255 && host[255] == 0);

  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(64);
  config.dynamicSmemBytes = 64 * sizeof(int);
  OK(cudaLaunchKernelEx(&config, Reverse, out));
  OK(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 255 - 63);

  float scale_data[] = {1, 2, 3, 4};
  float* floats = reinterpret_cast<float*>(out);
  OK(cudaMemcpy(floats, scale_data, sizeof(scale_data), cudaMemcpyHostToDevice));
  Scale<float><<<1, 4>>>(floats, 2.5f);
  OK(cudaMemcpy(scale_data, floats, sizeof(scale_data), cudaMemcpyDeviceToHost));
  EXPECT(scale_data[3] == 10.0f);

  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, Reverse));
  EXPECT(attributes.maxThreadsPerBlock >= 256);
  int blocks = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Reverse, 256, 1024));
  EXPECT(blocks > 0);
  int best_block = 0;
  int best_grid = 0;
  OK(cudaOccupancyMaxPotentialBlockSize(&best_grid, &best_block, Reverse, 0, 0));
  EXPECT(best_block > 0 && best_grid > 0);
  const char* name = nullptr;
  OK(cudaFuncGetName(&name, reinterpret_cast<const void*>(Reverse)));
  EXPECT(name != nullptr && std::strstr(name, "Reverse") != nullptr);
  cudaFunction_t function = nullptr;
  OK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(Reverse)));
  EXPECT(function != nullptr);

  int cooperative = 0;
  OK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  if (cooperative != 0) {
    OK(cudaMemset(out, 0, 4096));
    int* sum = out + 512;
    void* arguments[] = {&out, &sum};
    OK(cudaLaunchCooperativeKernel(GridSum, dim3(4), dim3(32), arguments, 0, nullptr));
    OK(cudaMemcpy(host, sum, sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 128);
  }

  // Errors come from the very call, are kept once, and leave the context alive.
  Reverse<<<0, 32>>>(out);
  EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
  Reverse<<<1, 4096>>>(out);
  EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
  Reverse<<<1, 32, size_t{1} << 30>>>(out);
  EXPECT_ERROR(cudaErrorInvalidValue, cudaPeekAtLastError());
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr));
  EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaGetLastError());
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());

  // What a kernel prints comes between what the program printed before and after.
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  const int real = dup(1);
  EXPECT(file != nullptr && dup2(fileno(file), 1) == 1);
  std::printf("before\n");
  Say<<<1, 2>>>(3);
  OK(cudaDeviceSynchronize());
  std::printf("after\n");
  std::fflush(stdout);
  dup2(real, 1);
  char text[256] = {};
  std::rewind(file);
  const size_t read = std::fread(text, 1, sizeof(text) - 1, file);
  std::printf("%.*s", static_cast<int>(read), text);
  EXPECT(std::strcmp(text, "before\nkernel 3 thread 0\nkernel 3 thread 1\nafter\n") == 0);
  OK(cudaFree(out));
  return Done();
}
