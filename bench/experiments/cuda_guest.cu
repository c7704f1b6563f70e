// SPDX-License-Identifier: Apache-2.0
// The experiments' CUDA program, as a user would write and build it: the runtime API and nvcc.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "bench/experiments/options.h"
#include "bench/experiments/runner.h"
#include "bench/experiments/work.h"

namespace experiments {
namespace {

__global__ void Matmul(const float* a, const float* b, float* out, int n, int rounds) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  }
  out[y * n + x] = sum;
}

__device__ float Pixel(const float* a, int n, int x, int y) {
  return a[min(max(y, 0), n - 1) * n + min(max(x, 0), n - 1)];
}

__global__ void Sobel(const float* a, const float*, float* out, int n, int rounds) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int d = 1; d <= rounds; ++d) {
    const float gx = Pixel(a, n, x + d, y - d) + 2 * Pixel(a, n, x + d, y) + Pixel(a, n, x + d, y + d) -
                     Pixel(a, n, x - d, y - d) - 2 * Pixel(a, n, x - d, y) - Pixel(a, n, x - d, y + d);
    const float gy = Pixel(a, n, x - d, y + d) + 2 * Pixel(a, n, x, y + d) + Pixel(a, n, x + d, y + d) -
                     Pixel(a, n, x - d, y - d) - 2 * Pixel(a, n, x, y - d) - Pixel(a, n, x + d, y - d);
    sum += sqrtf(gx * gx + gy * gy);
  }
  out[y * n + x] = sum;
}

__global__ void Binomial(const float* a, const float* b, float* out, int, int) {
  __shared__ float value[kNodes + 1];
  const int option = static_cast<int>(blockIdx.x), node = static_cast<int>(threadIdx.x);
  value[node] = fmaxf(0.0f, a[option] * powf(kUp, static_cast<float>(2 * node - kSteps)) - b[option]);
  for (int step = kSteps; step > 0; --step) {
    __syncthreads();
    const float next = kDiscount * (kProbability * value[node + 1] + (1 - kProbability) * value[node]);
    __syncthreads();
    if (node < step) value[node] = next;
  }
  if (node == 0) out[option] = value[0];
}

__global__ void Madd(const float* a, const float* b, float* out, int n, int rounds) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n * n) return;
  float sum = a[i];
  for (int round = 0; round < rounds; ++round) sum += b[i];
  out[i] = sum;
}

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(3);
}

// Its objects live as long as the program.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const Work& work) : work_(work) {
    const size_t bytes = work.results * sizeof(float);
    Check(cudaMalloc(&a_, bytes), "cudaMalloc");
    Check(cudaMalloc(&b_, bytes), "cudaMalloc");
    Check(cudaMalloc(&out_, bytes), "cudaMalloc");
    Check(cudaMemcpy(a_, work.a.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    Check(cudaMemcpy(b_, work.b.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    Check(cudaStreamCreate(&stream_), "cudaStreamCreate");
  }

  std::string Name() const override {
    cudaDeviceProp properties{};
    Check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return properties.name;
  }

  void Launch() override {
    const dim3 block(static_cast<unsigned>(work_.group[0]), static_cast<unsigned>(work_.group[1]));
    const dim3 grid(static_cast<unsigned>(work_.items[0] / work_.group[0]),
                    static_cast<unsigned>(work_.items[1] / work_.group[1]));
    if (work_.name == "matmul") Matmul<<<grid, block, 0, stream_>>>(a_, b_, out_, work_.size, work_.rounds);
    if (work_.name == "sobel") Sobel<<<grid, block, 0, stream_>>>(a_, b_, out_, work_.size, work_.rounds);
    if (work_.name == "binomial") Binomial<<<grid, block, 0, stream_>>>(a_, b_, out_, work_.size, work_.rounds);
    if (work_.name == "madd") Madd<<<grid, block, 0, stream_>>>(a_, b_, out_, work_.size, work_.rounds);
    Check(cudaGetLastError(), "a launch");
    cudaEvent_t event = nullptr;
    if (spare_.empty()) {
      Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    } else {
      event = spare_.back();
      spare_.pop_back();
    }
    Check(cudaEventRecord(event, stream_), "cudaEventRecord");
    events_.push_back(event);
  }

  void Wait() override {
    Check(cudaEventSynchronize(events_.front()), "cudaEventSynchronize");
    spare_.push_back(events_.front());
    events_.pop_front();
  }

  std::vector<float> Results() override {
    std::vector<float> out(work_.results);
    Check(cudaMemcpy(out.data(), out_, out.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }

 private:
  const Work& work_;
  float *a_ = nullptr, *b_ = nullptr, *out_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::deque<cudaEvent_t> events_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace
}  // namespace experiments

int main(int argc, char** argv) {
  experiments::Options options;
  experiments::Work work;
  std::string problem = experiments::Parse(argc, argv, &options);
  if (problem.empty() && !experiments::MakeWork(options.work, options.size, options.rounds, &work, options.columns)) {
    problem = "there is no work '" + options.work + "'";
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "%s: %s\n%s", argv[0], problem.c_str(), experiments::kUsage);
    return 2;
  }
  experiments::CudaDevice device(work);
  return experiments::Run(options, work, device);
}
