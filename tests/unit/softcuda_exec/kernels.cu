// SPDX-License-Identifier: Apache-2.0
// Kernels as people write them, compiled by nvcc to PTX and checked against the CPU in cuda_kernels_test.cc.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cassert>
#include <cstdio>

#include "tests/unit/softcuda_exec/kernels.h"

namespace cg = cooperative_groups;

__constant__ float table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
__device__ int counter = 7;
__device__ int* counter_pointer = &counter;
__managed__ int managed_value = 3;
extern __shared__ int dynamic[];

extern "C" {

__global__ void collatz_kernel(const unsigned* in, unsigned* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = collatz(in[i]);
}

__global__ void block_sum(const int* in, int* out, int n) {
  __shared__ int part[8];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int v = i < n ? in[i] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned k = 0; k < blockDim.x / 32; ++k) sum += part[k];
    atomicAdd(out, sum);
  }
}

__global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(&bins[in[i]], 1u);
  }
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void fib_kernel(int* out) { out[threadIdx.x] = fib(static_cast<int>(threadIdx.x % 13)); }

__global__ void math_kernel(const double* in, double* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  double values[kMathFunctions];
  math_functions(in[i], values);
  for (int k = 0; k < kMathFunctions; ++k) out[i * kMathFunctions + k] = values[k];
}

__global__ void mathf_kernel(const float* in, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float values[kMathFunctions];
  math_functions_f(in[i], values);
  for (int k = 0; k < kMathFunctions; ++k) out[i * kMathFunctions + k] = values[k];
}

__global__ void integer_kernel(const long long* in, long long* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  long long values[kIntegerFunctions];
  integer_functions(in[i], in[(i + 1) % n], values);
  for (int k = 0; k < kIntegerFunctions; ++k) out[i * kIntegerFunctions + k] = values[k];
}

__global__ void sort_kernel(int* data) {
  int local[24];
  for (int k = 0; k < 24; ++k) local[k] = data[threadIdx.x * 24 + k];
  insertion_sort(local, 24);
  for (int k = 0; k < 24; ++k) data[threadIdx.x * 24 + k] = local[k];
}

__global__ void print_kernel(int n) {
  if (threadIdx.x < 2)
    printf("thread %d of %s: %5.2f %llx %c%%\n", static_cast<int>(threadIdx.x), "two", n * 1.5, 0xabcdefull << 20, 'z');
}

__global__ void assert_kernel(int n) { assert(static_cast<int>(threadIdx.x) < n); }
__global__ void trap_kernel() {
  if (threadIdx.x == 3) __trap();
}

__global__ void list_kernel(int* out, int n) {
  struct Node {
    Node* next;
    int value;
  };
  Node* head = nullptr;
  for (int k = 0; k < n; ++k) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (node == nullptr) {
      out[threadIdx.x] = -1;
      return;
    }
    node->next = head;
    node->value = k + static_cast<int>(threadIdx.x);
    head = node;
  }
  int sum = 0;
  while (head != nullptr) {
    Node* next = head->next;
    sum += head->value;
    free(head);
    head = next;
  }
  out[threadIdx.x] = sum;
}

__global__ void grid_sync_kernel(int* data, int* out) {
  cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  const int n = static_cast<int>(grid.size());
  for (int round = 0; round < 3; ++round) {
    data[i] = i + round;
    grid.sync();
    out[i] += data[(i + 37) % n];
    grid.sync();
  }
}

__global__ void lane_lock(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *reinterpret_cast<volatile int*>(count) = *reinterpret_cast<volatile int*>(count) + 1;
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void tile_kernel(const int* in, int* out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int v = in[threadIdx.x];
  int* o = out + threadIdx.x * 6;
  o[0] = cg::reduce(tile, v, cg::plus<int>());
  o[1] = static_cast<int>(tile.ballot(v % 2 == 0));
  o[2] = tile.shfl_xor(v, 3);
  o[3] = 0;
  if (v % 3 == 0) {
    auto active = cg::coalesced_threads();
    o[3] = static_cast<int>(active.size()) * 100 + static_cast<int>(active.thread_rank());
  }
  o[4] = static_cast<int>(__match_any_sync(0xffffffff, v % 4));
  o[5] = __syncthreads_count(v > 10);
}

struct Shape {
  __device__ virtual int area(int x) const { return x; }
};
struct Square : Shape {
  __device__ int area(int x) const override { return x * x; }
};
struct Double : Shape {
  __device__ int area(int x) const override { return 2 * x; }
};
__global__ void virtual_kernel(int* out) {
  Shape shape;
  Square square;
  Double twice;
  const Shape* all[3] = {&shape, &square, &twice};
  out[threadIdx.x] = all[threadIdx.x % 3]->area(static_cast<int>(threadIdx.x));
}

__global__ void struct_kernel(Parameters p, int* out) {
  const int* dynamic_ints = dynamic;
  dynamic[threadIdx.x] = p.values[threadIdx.x % 5];
  __syncthreads();
  out[threadIdx.x] =
      dynamic_ints[blockDim.x - 1 - threadIdx.x] + static_cast<int>(p.scale * table[threadIdx.x % 16]) + p.offset;
}

__global__ void globals_kernel() {
  atomicAdd(counter_pointer, 1);
  if (threadIdx.x == 0) managed_value += 10;
}

__global__ void switch_kernel(const int* in, int* out) { out[threadIdx.x] = many_ways(in[threadIdx.x]); }

__global__ void half_kernel(const float* in, float* out) {
  const float x = in[threadIdx.x];
  const float y = in[threadIdx.x + 1];
  const __half a = __float2half(x);
  const __half b = __float2half(y);
  float* o = out + threadIdx.x * 12;
  o[0] = __half2float(a);
  o[1] = __half2float(__hadd(a, b));
  o[2] = __half2float(__hmul(a, b));
  o[3] = __half2float(__hfma(a, b, a));
  o[4] = __half2float(__hsub(a, b));
  o[5] = __half2float(__hdiv(a, b));
  o[6] = __hlt(a, b) ? 1.0f : 0.0f;
  const __half2 v = __halves2half2(a, b);
  const __half2 w = __hfma2(v, v, v);
  o[7] = __low2float(w);
  o[8] = __high2float(w);
  const __nv_bfloat16 c = __float2bfloat16(x);
  const __nv_bfloat16 d = __float2bfloat16(y);
  o[9] = __bfloat162float(c);
  o[10] = __bfloat162float(__hadd(c, d));
  o[11] = __bfloat162float(__hmul(c, d));
}

__global__ void double_atomics(double* sum, float* fsum, int* low, unsigned long long* high) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(sum, i * 0.5);
  atomicAdd(fsum, 1.0f);
  atomicMin(low, 1000 - i);
  atomicMax(high, static_cast<unsigned long long>(i) << 33);
}

__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  const int x = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * 32 + threadIdx.y);
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  const int u = static_cast<int>(blockIdx.y * 32 + threadIdx.x);
  const int v = static_cast<int>(blockIdx.x * 32 + threadIdx.y);
  for (int j = 0; j < 32; j += 8) out[(v + j) * n + u] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void spin_for_warp(volatile int* flag, int* out) {
  // The first warp waits for the last one of its block.
  if (threadIdx.x / 32 == 0) {
    while (flag[blockIdx.x] == 0) {
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = flag[blockIdx.x];
  } else if (threadIdx.x == blockDim.x - 1) {
    flag[blockIdx.x] = 5;
  }
}

__global__ void wmma_kernel(const __half* a, const __half* b, float* c) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 1.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void bytes_kernel(const unsigned* in, unsigned* out) {
  const unsigned a = in[threadIdx.x];
  const unsigned b = in[threadIdx.x + 1];
  unsigned* o = out + threadIdx.x * 6;
  o[0] = __vabsdiffu4(a, b);
  o[1] = __vsadu4(a, b);
  o[2] = __vadd4(a, b);
  o[3] = __vmaxs2(a, b);
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(o[4]) : "r"(a), "r"(b), "r"(5));
  o[5] = static_cast<unsigned>(__dp4a(static_cast<int>(a), static_cast<int>(b), 7));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/// Each block of a cluster sums its part up; each thread then adds the blocks' sums up, over their shared memory.
__global__ void __cluster_dims__(4, 1, 1) cluster_kernel(const unsigned* in, unsigned* out) {
  __shared__ unsigned sum;
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
  cluster.sync();
  unsigned total = 0;
  for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) total += *cluster.map_shared_rank(&sum, rank);
  out[blockIdx.x * blockDim.x + threadIdx.x] = total + 1000000 * cluster.block_rank();
  cluster.sync();
}
#endif

}  // extern "C"
