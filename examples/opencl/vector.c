// SPDX-License-Identifier: Apache-2.0
// An ordinary OpenCL program: adds two vectors, reduces the sum on the device, checks both against the host,
// and prints checksums. Its output depends on nothing but the device's arithmetic, so two runs can be compared
// byte for byte. With --where it first says on which device it runs.
#include <CL/cl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCount = 1 << 20, kLocal = 64, kGroups = kCount / kLocal };

static const char kSource[] =
    "__kernel void add(__global const uint* a, __global const uint* b, __global uint* c) {\n"
    "  size_t i = get_global_id(0);\n"
    "  c[i] = a[i] + b[i];\n"
    "}\n"
    "__kernel void reduce(__global const uint* values, __global ulong* sums, __local ulong* scratch) {\n"
    "  size_t lid = get_local_id(0);\n"
    "  scratch[lid] = values[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  for (size_t width = get_local_size(0) / 2; width > 0; width /= 2) {\n"
    "    if (lid < width) scratch[lid] += scratch[lid + width];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  }\n"
    "  if (lid == 0) sums[get_group_id(0)] = scratch[0];\n"
    "}\n";

static void Require(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "vector: %s failed with OpenCL error %d\n", what, code);
  exit(1);
}

static cl_device_id FirstDevice(void) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS || count == 0) {
    fprintf(stderr, "vector: this process has no OpenCL platform\n");
    exit(2);
  }
  if (count > 16) count = 16;
  for (cl_uint i = 0; i < count; ++i) {
    cl_device_id device = NULL;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS) return device;
  }
  fprintf(stderr, "vector: no OpenCL platform of this process has a device\n");
  exit(2);
}

// FNV-1a, over the bytes in little-endian order.
static uint64_t Checksum(const void* data, size_t size) {
  const unsigned char* bytes = data;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

int main(int argc, char** argv) {
  cl_device_id device = FirstDevice();
  if (argc > 1 && strcmp(argv[1], "--where") == 0) {
    char name[256] = "";
    Require(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name) - 1, name, NULL), "clGetDeviceInfo");
    printf("device: %s\n", name);
  }

  uint32_t* a = malloc(kCount * sizeof(*a));
  uint32_t* b = malloc(kCount * sizeof(*b));
  uint32_t* c = malloc(kCount * sizeof(*c));
  uint64_t* sums = malloc(kGroups * sizeof(*sums));
  if (a == NULL || b == NULL || c == NULL || sums == NULL) {
    fprintf(stderr, "vector: out of memory\n");
    return 1;
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    a[i] = i * 2654435761u;
    b[i] = i ^ (i >> 7);
  }

  cl_int error;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  Require(error, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
  Require(error, "clCreateCommandQueue");
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
  Require(error, "clCreateProgramWithSource");
  Require(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  cl_kernel add = clCreateKernel(program, "add", &error);
  Require(error, "clCreateKernel(add)");
  cl_kernel reduce = clCreateKernel(program, "reduce", &error);
  Require(error, "clCreateKernel(reduce)");

  cl_mem device_a = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, kCount * sizeof(*a), a, &error);
  Require(error, "clCreateBuffer(a)");
  cl_mem device_b = clCreateBuffer(context, CL_MEM_READ_ONLY, kCount * sizeof(*b), NULL, &error);
  Require(error, "clCreateBuffer(b)");
  cl_mem device_c = clCreateBuffer(context, CL_MEM_READ_WRITE, kCount * sizeof(*c), NULL, &error);
  Require(error, "clCreateBuffer(c)");
  cl_mem device_sums = clCreateBuffer(context, CL_MEM_WRITE_ONLY, kGroups * sizeof(*sums), NULL, &error);
  Require(error, "clCreateBuffer(sums)");

  Require(clEnqueueWriteBuffer(queue, device_b, CL_FALSE, 0, kCount * sizeof(*b), b, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
  Require(clSetKernelArg(add, 0, sizeof(device_a), &device_a), "clSetKernelArg");
  Require(clSetKernelArg(add, 1, sizeof(device_b), &device_b), "clSetKernelArg");
  Require(clSetKernelArg(add, 2, sizeof(device_c), &device_c), "clSetKernelArg");
  Require(clSetKernelArg(reduce, 0, sizeof(device_c), &device_c), "clSetKernelArg");
  Require(clSetKernelArg(reduce, 1, sizeof(device_sums), &device_sums), "clSetKernelArg");
  Require(clSetKernelArg(reduce, 2, kLocal * sizeof(cl_ulong), NULL), "clSetKernelArg");
  const size_t global = kCount, local = kLocal;
  Require(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, &local, 0, NULL, NULL), "clEnqueueNDRangeKernel(add)");
  Require(clEnqueueNDRangeKernel(queue, reduce, 1, NULL, &global, &local, 0, NULL, NULL),
          "clEnqueueNDRangeKernel(reduce)");
  Require(clEnqueueReadBuffer(queue, device_c, CL_FALSE, 0, kCount * sizeof(*c), c, 0, NULL, NULL),
          "clEnqueueReadBuffer");
  Require(clEnqueueReadBuffer(queue, device_sums, CL_TRUE, 0, kGroups * sizeof(*sums), sums, 0, NULL, NULL),
          "clEnqueueReadBuffer");

  uint64_t expected = 0, found = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (c[i] != a[i] + b[i]) {
      fprintf(stderr, "vector: element %" PRIu32 " is %" PRIu32 ", not %" PRIu32 "\n", i, c[i], a[i] + b[i]);
      return 1;
    }
    expected += c[i];
  }
  for (uint32_t i = 0; i < kGroups; ++i) found += sums[i];
  if (found != expected) {
    fprintf(stderr, "vector: the device's sum is %" PRIu64 ", not %" PRIu64 "\n", found, expected);
    return 1;
  }
  printf("elements: %d\nchecksum of the sums: %016" PRIx64 "\nchecksum of the group sums: %016" PRIx64
         "\ntotal: %" PRIu64 "\n",
         kCount, Checksum(c, kCount * sizeof(*c)), Checksum(sums, kGroups * sizeof(*sums)), found);

  clReleaseMemObject(device_a);
  clReleaseMemObject(device_b);
  clReleaseMemObject(device_c);
  clReleaseMemObject(device_sums);
  clReleaseKernel(add);
  clReleaseKernel(reduce);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  free(a);
  free(b);
  free(c);
  free(sums);
  return 0;
}
