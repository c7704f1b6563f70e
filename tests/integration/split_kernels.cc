// SPDX-License-Identifier: Apache-2.0
// Kernels of many kinds; prints a line for each with a digest of what it wrote. The lines must be the same wherever and
// however it runs (split_same.py).
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr char kSource[] = R"(
#define TILE 8
static uint mix(uint x) { x ^= x >> 15; x *= 0x2c1b3c6du; return x ^ (x >> 12); }
static size_t group_of(void) { return get_group_id(1) * get_num_groups(0) + get_group_id(0); }
kernel void ids(global uint* in, global uint* out) {
  size_t w = get_global_size(0), h = get_global_size(1);
  size_t x = get_global_id(0) - get_global_offset(0), y = get_global_id(1) - get_global_offset(1),
         z = get_global_id(2) - get_global_offset(2);
  size_t at = (z * h + y) * w + x;
  out[at] = mix(in[at % 4096] + group_of() * 31 + get_num_groups(1) * 7 + get_work_dim() + get_group_id(2) * 3 +
                get_num_groups(2) + get_global_offset(1) * 5 + get_global_id(2));
}
kernel void volume(global uint* in, global uint* out) {  // In three dimensions only.
  size_t x = get_global_id(0) - get_global_offset(0), y = get_global_id(1) - get_global_offset(1),
         z = get_global_id(2) - get_global_offset(2);
  size_t group = (get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0);
  size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
  local uint first;
  if (get_local_id(0) + get_local_id(1) + get_local_id(2) == 0) first = at;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[at] = mix(in[group % 4096] + first * 3 + get_global_id(2) * 11 + get_global_offset(2) * 5 + get_work_dim() +
                get_num_groups(2) * 13 + get_global_size(2) * 17);
}
kernel void matmul(global const uint* in, global uint* out) {
  local uint a[TILE][TILE], b[TILE][TILE];
  size_t n = 64, x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
  uint sum = 0;
  for (size_t t = 0; t < n / TILE; ++t) {
    a[y][x] = in[(row % n) * n + t * TILE + x];
    b[y][x] = in[(t * TILE + y) * n + column % n];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k) sum += a[y][k] * b[k][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[row * get_global_size(0) + column] = sum;
}
kernel void stride(global const uint* in, global uint* out) {
  for (size_t i = get_global_id(0); i < 4096; i += get_global_size(0)) atomic_add(&out[in[i] % 64], in[i]);
}
kernel void plain(global const uint* in, global uint* out) {
  size_t at = get_global_id(0) % 4096;
  uint x = in[at];
  for (int i = 0; i < 50; ++i) x = mix(x + i);
  out[at] = x;
}
kernel void group_sum(global const uint* in, global uint* out) {
  local uint sums[64];
  size_t l = get_local_id(0);
  sums[l] = in[get_global_id(0) % 4096];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t s = get_local_size(0) / 2; s > 0; s /= 2) {
    if (l < s) sums[l] += sums[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = sums[0];
}
kernel void last_done(global const uint* in, global uint* out) {
  local uint last;
  if (get_local_id(0) == 0) {
    out[16 + get_group_id(0)] = in[get_group_id(0)] * 3;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    last = atomic_inc(&out[1]) == get_num_groups(0) - 1;
    if (last) {
      uint all = 0;
      for (uint i = 0; i < get_num_groups(0); ++i) all += out[16 + i];
      out[0] = all;
    }
  }
}
kernel void float_add(global const uint* in, volatile global float* out) {
  union { uint u; float f; } next, prev;
  volatile global float* to = out + get_global_id(0) % 32;
  do {
    prev.f = *to;
    next.f = prev.f + 0.25f;
  } while (atomic_cmpxchg((volatile global uint*)to, prev.u, next.u) != prev.u);
}
kernel void all_meet(global const uint* in, global uint* out) {  // Cannot be split: waits for the others.
  if (get_local_id(0) == 0) {
    atomic_inc(&out[0]);
    if (get_num_groups(0) == 1) while (atomic_add(&out[0], 0) < get_num_groups(0)) ;
  }
  out[1 + get_global_id(0)] = in[get_global_id(0) % 4096];
}
kernel void sobel(global const uint* in, global uint* out) {
  int w = get_global_size(0), h = get_global_size(1), x = get_global_id(0), y = get_global_id(1), gx = 0, gy = 0;
  for (int j = -1; j <= 1; ++j) {
    for (int i = -1; i <= 1; ++i) {
      int v = in[clamp(y + j, 0, h - 1) * w + clamp(x + i, 0, w - 1)] & 255;
      gx += i * (2 - abs(j)) * v;
      gy += j * (2 - abs(i)) * v;
    }
  }
  out[y * w + x] = abs(gx) + abs(gy);
}
)";

struct Case {
  const char* kernel;
  cl_uint dimensions;
  size_t global[3], local[3], offset[3];
};
constexpr Case kCases[] = {
    {"ids", 1, {4096, 1, 1}, {32, 1, 1}, {0, 0, 0}},       {"ids", 1, {4080, 1, 1}, {48, 1, 1}, {0, 0, 0}},
    {"ids", 1, {4032, 1, 1}, {48, 1, 1}, {100, 0, 0}},     {"ids", 2, {64, 64, 1}, {8, 4, 1}, {0, 0, 0}},
    {"ids", 2, {128, 32, 1}, {64, 1, 1}, {3, 40000, 0}},   {"ids", 2, {2048, 2, 1}, {16, 1, 1}, {0, 0, 0}},
    {"volume", 3, {16, 16, 16}, {4, 4, 4}, {0, 0, 0}},     {"volume", 3, {8, 8, 64}, {8, 4, 2}, {5, 0, 100000}},
    {"volume", 3, {64, 16, 4}, {4, 4, 4}, {0, 40000, 7}},  {"volume", 3, {1024, 2, 4}, {16, 2, 1}, {0, 0, 0}},
    {"ids", 3, {16, 16, 16}, {4, 4, 4}, {1, 2, 3}},        {"matmul", 2, {64, 64, 1}, {8, 8, 1}, {0, 0, 0}},
    {"stride", 1, {1024, 1, 1}, {0, 0, 0}, {0, 0, 0}},     {"stride", 1, {2048, 1, 1}, {64, 1, 1}, {0, 0, 0}},
    {"plain", 1, {4096, 1, 1}, {0, 0, 0}, {0, 0, 0}},      {"plain", 1, {4093, 1, 1}, {0, 0, 0}, {70000, 0, 0}},
    {"plain", 2, {4096, 3, 1}, {0, 0, 0}, {0, 0, 0}},      {"group_sum", 1, {8192, 1, 1}, {64, 1, 1}, {0, 0, 0}},
    {"last_done", 1, {4096, 1, 1}, {16, 1, 1}, {0, 0, 0}}, {"float_add", 1, {4096, 1, 1}, {64, 1, 1}, {0, 0, 0}},
    {"all_meet", 1, {64, 1, 1}, {64, 1, 1}, {0, 0, 0}},    {"sobel", 2, {64, 64, 1}, {0, 0, 0}, {0, 0, 0}},
};
constexpr size_t kWords = size_t{1} << 14;

void Check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, status);
  std::exit(1);
}

uint64_t Digest(const std::vector<cl_uint>& words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const cl_uint word : words) hash = (hash ^ word) * 0x100000001b3;
  return hash;
}

}  // namespace

int main() {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_int status = CL_SUCCESS;
  Check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  Check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  Check(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  Check(status, "clCreateCommandQueueWithProperties");
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
  Check(status, "clCreateProgramWithSource");
  Check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  std::vector<cl_uint> in(4096), out(kWords);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<cl_uint>(i * 2654435761u);
  cl_mem from = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, in.size() * 4, in.data(), &status);
  Check(status, "clCreateBuffer");
  cl_mem to = clCreateBuffer(context, CL_MEM_READ_WRITE, kWords * 4, nullptr, &status);
  Check(status, "clCreateBuffer");
  for (const Case& one : kCases) {
    cl_kernel kernel = clCreateKernel(program, one.kernel, &status);
    Check(status, one.kernel);
    Check(clSetKernelArg(kernel, 0, sizeof(from), &from), "clSetKernelArg");
    Check(clSetKernelArg(kernel, 1, sizeof(to), &to), "clSetKernelArg");
    const cl_uint zero = 0;
    Check(clEnqueueFillBuffer(queue, to, &zero, sizeof(zero), 0, kWords * 4, 0, nullptr, nullptr), "fill");
    cl_event event = nullptr;
    Check(clEnqueueNDRangeKernel(queue, kernel, one.dimensions, one.offset, one.global,
                                 one.local[0] == 0 ? nullptr : one.local, 0, nullptr, &event),
          one.kernel);
    Check(clReleaseKernel(kernel), "clReleaseKernel");
    Check(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, kWords * 4, out.data(), 1, &event, nullptr), "read");
    cl_int ended = CL_QUEUED;
    cl_command_type type = 0;
    Check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(ended), &ended, nullptr), "event");
    Check(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr), "event");
    clReleaseEvent(event);
    std::printf("%s %u %zux%zux%zu status %d type %x: %016llx\n", one.kernel, one.dimensions, one.global[0],
                one.global[1], one.global[2], ended, type, static_cast<unsigned long long>(Digest(out)));
  }
  clReleaseMemObject(from);
  clReleaseMemObject(to);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
