// SPDX-License-Identifier: Apache-2.0
// A pipeline over several streams: while one part of the data is computed on, the next is copied to the device and the
// one before is copied back. Events order what must be in order, and measure the whole.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                              \
  do {                                                                           \
    const cudaError_t error = (call);                                            \
    if (error != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));        \
      std::exit(1);                                                              \
    }                                                                            \
  } while (0)

constexpr int kStreams = 4;
constexpr int kParts = 16;
constexpr int kPart = 4096;  // Elements.

// The mean of each element and its neighbours inside the part, through shared memory.
__global__ void Smooth(const int* in, int* out, int count) {
  extern __shared__ int tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int mine = threadIdx.x + 1;
  tile[mine] = i < count ? in[i] : 0;
  if (threadIdx.x == 0) tile[0] = i > 0 ? in[i - 1] : in[i];
  if (threadIdx.x == blockDim.x - 1) tile[mine + 1] = i + 1 < count ? in[i + 1] : in[i];
  __syncthreads();
  if (i < count) out[i] = (tile[mine - 1] + tile[mine] + tile[mine + 1]) / 3;
}

int main() {
  int* input = nullptr;
  int* output = nullptr;
  CHECK(cudaMallocHost(&input, kParts * kPart * sizeof(int)));
  CHECK(cudaMallocHost(&output, kParts * kPart * sizeof(int)));
  for (int i = 0; i < kParts * kPart; ++i) input[i] = (i * 7919) % 1000;

  cudaStream_t streams[kStreams];
  int* device_in[kStreams];
  int* device_out[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    CHECK(cudaMallocAsync(&device_in[s], kPart * sizeof(int), streams[s]));
    CHECK(cudaMallocAsync(&device_out[s], kPart * sizeof(int), streams[s]));
  }
  cudaEvent_t begin;
  cudaEvent_t end;
  cudaEvent_t done[kStreams];
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  for (cudaEvent_t& event : done) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

  CHECK(cudaEventRecord(begin, streams[0]));
  for (int part = 0; part < kParts; ++part) {
    const int s = part % kStreams;
    const size_t bytes = kPart * sizeof(int);
    CHECK(cudaMemcpyAsync(device_in[s], input + part * kPart, bytes, cudaMemcpyHostToDevice, streams[s]));
    Smooth<<<kPart / 256, 256, (256 + 2) * sizeof(int), streams[s]>>>(device_in[s], device_out[s], kPart);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(output + part * kPart, device_out[s], bytes, cudaMemcpyDeviceToHost, streams[s]));
  }
  for (int s = 0; s < kStreams; ++s) {
    CHECK(cudaEventRecord(done[s], streams[s]));
    CHECK(cudaStreamWaitEvent(streams[0], done[s]));
  }
  CHECK(cudaEventRecord(end, streams[0]));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));

  int wrong = 0;
  for (int i = 0; i < kParts * kPart; ++i) {
    const int left = i % kPart == 0 ? input[i] : input[i - 1];
    const int right = i % kPart == kPart - 1 ? input[i] : input[i + 1];
    if (output[i] != (left + input[i] + right) / 3) ++wrong;
  }
  for (int s = 0; s < kStreams; ++s) {
    CHECK(cudaFreeAsync(device_in[s], streams[s]));
    CHECK(cudaFreeAsync(device_out[s], streams[s]));
    CHECK(cudaEventDestroy(done[s]));
    CHECK(cudaStreamDestroy(streams[s]));
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFreeHost(input));
  CHECK(cudaFreeHost(output));
  std::fprintf(stderr, "%.3f ms\n", milliseconds);
  std::printf("%d parts in %d streams, %d wrong elements\n", kParts, kStreams, wrong);
  return wrong == 0 && milliseconds >= 0 ? 0 : 1;
}
