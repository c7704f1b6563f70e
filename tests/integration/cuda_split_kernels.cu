// SPDX-License-Identifier: Apache-2.0
// Kernels whose results show whether a launch in parts did what the whole one does. Prints one line for each: its name
// and a sum over all that it wrote. Ends with 1 when a call fails.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void Check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) Check((call), #call)

uint64_t Sum(const void* data, size_t size) {
  uint64_t sum = 1469598103934665603u;
  for (size_t i = 0; i < size; ++i) sum = (sum ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return sum;
}

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    CHECK(cudaMalloc(&data_, count * sizeof(T)));
    CHECK(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~Buffer() { (void)cudaFree(data_); }
  T* get() { return data_; }
  void Tell(const char* name) {
    std::vector<T> host(count_);
    CHECK(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    std::printf("%-12s %016llx\n", name, static_cast<unsigned long long>(Sum(host.data(), count_ * sizeof(T))));
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

}  // namespace

/// All that a thread can know of where it is, in three dimensions.
__global__ void places(uint32_t* out) {
  const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  uint32_t* at = out + 4 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
  at[0] = blockIdx.x << 20 | blockIdx.y << 10 | blockIdx.z;
  at[1] = gridDim.x << 20 | gridDim.y << 10 | gridDim.z;
  at[2] = threadIdx.x << 20 | threadIdx.y << 10 | threadIdx.z;
  at[3] = blockDim.x << 20 | blockDim.y << 10 | blockDim.z;
}

/// Shared memory, barriers, two dimensions, a parameter that is not aligned to 8.
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float x[8][8], y[8][8];
  const int row = static_cast<int>(blockIdx.y * 8 + threadIdx.y),
            column = static_cast<int>(blockIdx.x * 8 + threadIdx.x);
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    x[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 8; ++j) sum += x[threadIdx.y][j] * y[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__device__ __noinline__ float Twice(float value) { return value * 2; }

__global__ void stride(float* data, int n, char odd) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    data[i] = Twice(data[i]) + static_cast<float>(i % 7 + odd);
  }
}

__global__ void histogram(uint32_t* counts, int n) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(&counts[i * 7919 % 61], 1u);
  }
}

/// The block that is the last to be done sums up what all have written.
__global__ void last_done(uint32_t* parts, uint32_t* done, uint32_t* sum) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x * 3 + 1;
    __threadfence();
    last = atomicInc(done, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  uint32_t all = 0;
  for (uint32_t i = 0; i < gridDim.x; ++i) all += *static_cast<volatile uint32_t*>(&parts[i]);
  *sum = all;
}

/// The greatest of floats, by compare and exchange.
__global__ void greatest(float* value) {
  int* at = reinterpret_cast<int*>(value);
  const float mine = static_cast<float>((blockIdx.x * blockDim.x + threadIdx.x) * 37 % 1009);
  int seen = *at, before = 0;
  do {
    before = seen;
    seen = atomicCAS(at, before, __float_as_int(fmaxf(mine, __int_as_float(before))));
  } while (seen != before);
}

extern __shared__ uint32_t room[];
/// Dynamic shared memory.
__global__ void reversed(uint32_t* out) {
  room[threadIdx.x] = blockIdx.x * blockDim.x + threadIdx.x;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

/// A function of its own that asks where it is: such kernels are split in another way.
__device__ __noinline__ uint32_t Place() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
__global__ void guarded(uint32_t* out) { out[Place() * blockDim.x + threadIdx.x] += Place() * 100 + threadIdx.x; }

// Variables of the module: one that kernels and host share, one that a function uses, constants that are indexed, one
// that holds another's address, managed ones, and a counter that tells which block is the last.
__device__ uint32_t calls;
__global__ void counted() { atomicAdd(&calls, 1u); }

static __constant__ float weights[5];
__constant__ const float* chosen;
__device__ float table[64];
__device__ float* at_table = &table[8];
__device__ __managed__ uint32_t managed[16];
__device__ __noinline__ float Weight(int i) { return weights[i % 5] + at_table[i % 32]; }
__global__ void weighted(float* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float sum = chosen[i % 4] + weights[2];
#pragma unroll 1
  for (int k = 0; k < i % 9; ++k) sum += Weight(i + k) * weights[k % 5];
  out[i] = sum;
  if (threadIdx.x == 0) atomicAdd(&managed[blockIdx.x % 16], 1u + blockIdx.x);
}
__global__ void fill() { table[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(blockIdx.x) + 0.5f; }

__device__ uint32_t blocks_done;
__global__ void last_counts(uint32_t* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    out[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) out[gridDim.x] = gridDim.x;
}

// These run whole: a function that is called by an address, the time, waiting for the other blocks.
using Function = float (*)(int);
__device__ Function by_address = Weight;
__global__ void addressed(Function function, float* out) { out[blockIdx.x] = function(static_cast<int>(blockIdx.x)); }

__global__ void timed(long long* out) { out[blockIdx.x] = clock64() >= 0 ? blockIdx.x : 0; }

__global__ void all_meet(uint32_t* met, uint32_t* out) {
  if (threadIdx.x == 0) {
    atomicAdd(met, 1u);
    while (atomicAdd(met, 0u) < gridDim.x) {
    }
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = *met;
}

__device__ __noinline__ float Other(int i) { return 2 * weights[i % 5]; }
/// Keeps addresses of functions for a kernel that runs whole: those of a copy would be none of its module's.
__global__ void kept(Function* out) { out[blockIdx.x] = blockIdx.x % 2 == 0 ? Weight : Other; }
__global__ void called_kept(const Function* functions, float* out) {
  out[blockIdx.x] = functions[blockIdx.x](static_cast<int>(blockIdx.x));
}

/// One block after the other, from the last to the first; each asks all of its threads whether it is its turn.
__global__ void voted(uint32_t* turn, uint32_t* out) {
  const uint32_t mine = gridDim.x - 1 - blockIdx.x;
  while (__syncthreads_or(threadIdx.x == 0 && *static_cast<volatile uint32_t*>(turn) == mine) == 0) {
  }
  if (threadIdx.x == 0) {
    out[mine] = mine == 0 ? 1 : out[mine - 1] * 31 + mine;
    __threadfence();
    atomicAdd(turn, 1u);
  }
}

/// Places in a list come from an atomic, and what is read decides about who needs one: no block waits.
__global__ void listed(const uint32_t* in, uint32_t* count, uint32_t* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (in[i] % 3 != 1) out[atomicAdd(count, 1u)] = 1;
  }
}

/// All blocks wait for the last one, and by plain loads, of which no detector knows that: tries may be flag, as far as
/// the compiler can tell. Whole, such a launch ends where all of its blocks run at once.
__global__ void later(uint32_t* flag, uint32_t* tries, uint32_t* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == gridDim.x - 1) *flag = 7;
    uint32_t count = 0;
    do {
      tries[blockIdx.x] = ++count;
    } while (*flag == 0);
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] += *flag + blockIdx.x;
}

/// Nothing in it says so, but it is launched for all blocks at once.
__global__ void together(uint32_t* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * 5 + threadIdx.x; }

int main() {
  {
    const dim3 grid(5, 4, 3), block(4, 2, 3);
    Buffer<uint32_t> out(size_t{4} * 5 * 4 * 3 * 4 * 2 * 3);
    // In a row first: what runs the parts of a row cannot run those of more.
    places<<<60, block>>>(out.get());
    CHECK(cudaGetLastError());
    out.Tell("places, row");
    places<<<grid, block>>>(out.get());
    CHECK(cudaGetLastError());
    out.Tell("places");
  }
  {
    constexpr int kSize = 64;
    Buffer<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize);
    stride<<<9, 32>>>(a.get(), kSize * kSize, 1);
    stride<<<9, 32>>>(b.get(), kSize * kSize, 2);
    matmul<<<dim3(kSize / 8, kSize / 8), dim3(8, 8)>>>(a.get(), b.get(), c.get(), kSize);
    CHECK(cudaGetLastError());
    a.Tell("stride");
    c.Tell("matmul");
  }
  {
    Buffer<uint32_t> counts(61);
    histogram<<<13, 64>>>(counts.get(), 100000);
    counts.Tell("histogram");
  }
  {
    Buffer<uint32_t> parts(40), done(1), sum(1);
    last_done<<<40, 32>>>(parts.get(), done.get(), sum.get());
    sum.Tell("last_done");
  }
  {
    Buffer<float> value(1);
    greatest<<<20, 64>>>(value.get());
    value.Tell("greatest");
  }
  {
    Buffer<uint32_t> out(12 * 128);
    reversed<<<12, 128, 128 * sizeof(uint32_t)>>>(out.get());
    out.Tell("reversed");
  }
  {
    Buffer<uint32_t> out(5 * 3 * 2 * 16);
    guarded<<<dim3(5, 3, 2), 16>>>(out.get());
    guarded<<<dim3(5, 3, 2), 16>>>(out.get());
    out.Tell("guarded");
  }
  {
    // What one stream does shows in the other, by events, and in the default stream.
    cudaStream_t one = nullptr, other = nullptr;
    cudaEvent_t event = nullptr;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaEventCreate(&event));
    constexpr int kCount = 5000;
    Buffer<float> data(kCount), copy(kCount), after(kCount);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 10; ++i) {
      stride<<<11, 64, 0, one>>>(data.get(), kCount, static_cast<char>(i));
      CHECK(cudaEventRecord(event, one));
      CHECK(cudaStreamWaitEvent(other, event, 0));
      CHECK(cudaMemcpyAsync(copy.get(), data.get(), kCount * sizeof(float), cudaMemcpyDeviceToDevice, other));
      stride<<<7, 32, 0, other>>>(copy.get(), kCount, 3);
      CHECK(cudaEventRecord(event, other));
      CHECK(cudaStreamWaitEvent(one, event, 0));
    }
    // The default stream waits for `other`.
    CHECK(cudaMemcpyAsync(after.get(), copy.get(), kCount * sizeof(float), cudaMemcpyDeviceToDevice, nullptr));
    stride<<<5, 32>>>(after.get(), kCount, 5);
    after.Tell("streams");
    copy.Tell("other");
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(one));
    CHECK(cudaStreamDestroy(other));
  }
  {
    for (int i = 0; i < 3; ++i) counted<<<10, 10>>>();
    uint32_t total = 0;
    CHECK(cudaMemcpyFromSymbol(&total, calls, sizeof(total)));
    std::printf("%-12s %u\n", "counted", total);
  }
  {
    const float values[5] = {1.25f, -2, 3.5f, 0.125f, 7};
    CHECK(cudaMemcpyToSymbol(weights, values, sizeof(values)));
    float* to = nullptr;
    CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&to), table));
    CHECK(cudaMemcpyToSymbol(chosen, &to, sizeof(to)));
    Buffer<float> out(9 * 32);
    fill<<<8, 8>>>();
    weighted<<<9, 32>>>(out.get());
    out.Tell("weighted");
    // What the host writes between two launches is seen by the next one.
    const float other = 100;
    CHECK(cudaMemcpyToSymbol(weights, &other, sizeof(other), 2 * sizeof(float)));
    weighted<<<9, 32>>>(out.get());
    out.Tell("weighted");
    CHECK(cudaDeviceSynchronize());
    std::printf("%-12s %016llx\n", "managed", static_cast<unsigned long long>(Sum(managed, sizeof(managed))));
    Buffer<uint32_t> done(14);
    last_counts<<<13, 8>>>(done.get());
    last_counts<<<13, 8>>>(done.get());
    done.Tell("last_counts");
  }
  {
    Function function = nullptr;
    CHECK(cudaMemcpyFromSymbol(&function, by_address, sizeof(function)));
    Buffer<float> called(12);
    addressed<<<12, 1>>>(function, called.get());
    called.Tell("addressed");
    Buffer<long long> times(9);
    timed<<<9, 1>>>(times.get());
    times.Tell("timed");
    Buffer<uint32_t> met(1), out(2 * 32);
    all_meet<<<2, 32>>>(met.get(), out.get());
    out.Tell("all_meet");
    Buffer<Function> functions(12);
    kept<<<12, 1>>>(functions.get());
    called_kept<<<12, 1>>>(functions.get(), called.get());
    called.Tell("called_kept");
    Buffer<uint32_t> turn(1), turns(12);
    voted<<<12, 32>>>(turn.get(), turns.get());
    turns.Tell("voted");
    Buffer<uint32_t> count(1), list(500);
    listed<<<9, 16>>>(list.get(), count.get(), list.get() + 100, 100);
    list.Tell("listed");
  }
  {
    Buffer<uint32_t> flag(1), tries(12), out(12 * 8);
    for (int i = 0; i < 3; ++i) {
      later<<<12, 8>>>(flag.get(), tries.get(), out.get());
      CHECK(cudaMemset(flag.get(), 0, sizeof(uint32_t)));
    }
    out.Tell("later");
  }
  {
    Buffer<uint32_t> out(12 * 8);
    uint32_t* to = out.get();
    void* arguments[] = {&to};
    CHECK(cudaLaunchCooperativeKernel(together, dim3(12), dim3(8), arguments, 0, nullptr));
    out.Tell("together");
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}
