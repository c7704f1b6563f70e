// SPDX-License-Identifier: Apache-2.0
// The experiments' OpenCL program. Any OpenCL 1.2 platform will do; it links with the ICD loader and nothing else.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

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

constexpr char kSource[] = R"(
kernel void matmul(global const float* a, global const float* b, global float* out, int n, int rounds) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  }
  out[y * n + x] = sum;
}
float pixel(global const float* a, int n, int x, int y) { return a[clamp(y, 0, n - 1) * n + clamp(x, 0, n - 1)]; }
kernel void sobel(global const float* a, global const float* b, global float* out, int n, int rounds) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int d = 1; d <= rounds; ++d) {
    const float gx = pixel(a, n, x + d, y - d) + 2 * pixel(a, n, x + d, y) + pixel(a, n, x + d, y + d) -
                     pixel(a, n, x - d, y - d) - 2 * pixel(a, n, x - d, y) - pixel(a, n, x - d, y + d);
    const float gy = pixel(a, n, x - d, y + d) + 2 * pixel(a, n, x, y + d) + pixel(a, n, x + d, y + d) -
                     pixel(a, n, x - d, y - d) - 2 * pixel(a, n, x, y - d) - pixel(a, n, x + d, y - d);
    sum += sqrt(gx * gx + gy * gy);
  }
  out[y * n + x] = sum;
}
kernel void binomial(global const float* a, global const float* b, global float* out, int n, int rounds) {
  local float value[NODES + 1];
  const int option = get_group_id(0), node = get_local_id(0);
  value[node] = fmax(0.0f, a[option] * pow(UP, (float)(2 * node - STEPS)) - b[option]);
  for (int step = STEPS; step > 0; --step) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const float next = DISCOUNT * (PROBABILITY * value[node + 1] + (1 - PROBABILITY) * value[node]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (node < step) value[node] = next;
  }
  if (node == 0) out[option] = value[0];
}
kernel void madd(global const float* a, global const float* b, global float* out, int n, int rounds) {
  const int i = get_global_id(0);
  if (i >= n * n) return;
  float sum = a[i];
  for (int round = 0; round < rounds; ++round) sum += b[i];
  out[i] = sum;
}
)";

void Check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  std::fprintf(stderr, "%s failed with OpenCL error %d\n", what, status);
  std::exit(3);
}

// Its objects live as long as the program.
class OpenClDevice final : public Device {
 public:
  OpenClDevice(const Work& work, const std::string& wanted) : work_(work) {
    Choose(wanted);
    cl_int status = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    Check(status, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device_, 0, &status);
    Check(status, "clCreateCommandQueue");
    Build();
    const cl_mem a = Buffer(work.a), b = Buffer(work.b);
    out_ = clCreateBuffer(context_, CL_MEM_WRITE_ONLY, work.results * sizeof(float), nullptr, &status);
    Check(status, "clCreateBuffer");
    const cl_int n = work.size, rounds = work.rounds;
    Check(clSetKernelArg(kernel_, 0, sizeof(a), &a), "clSetKernelArg");
    Check(clSetKernelArg(kernel_, 1, sizeof(b), &b), "clSetKernelArg");
    Check(clSetKernelArg(kernel_, 2, sizeof(out_), &out_), "clSetKernelArg");
    Check(clSetKernelArg(kernel_, 3, sizeof(n), &n), "clSetKernelArg");
    Check(clSetKernelArg(kernel_, 4, sizeof(rounds), &rounds), "clSetKernelArg");
  }

  std::string Name() const override { return NameOf(device_); }

  void Launch() override {
    cl_event event = nullptr;
    Check(clEnqueueNDRangeKernel(queue_, kernel_, work_.dimensions, nullptr, work_.items, work_.group, 0, nullptr,
                                 &event),
          "clEnqueueNDRangeKernel");
    Check(clFlush(queue_), "clFlush");
    events_.push_back(event);
  }

  void Wait() override {
    Check(clWaitForEvents(1, &events_.front()), "clWaitForEvents");
    clReleaseEvent(events_.front());
    events_.pop_front();
  }

  std::vector<float> Results() override {
    std::vector<float> out(work_.results);
    Check(clEnqueueReadBuffer(queue_, out_, CL_TRUE, 0, out.size() * sizeof(float), out.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    return out;
  }

 private:
  static std::string NameOf(cl_device_id device) {
    char name[256] = "";
    clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name) - 1, name, nullptr);
    return name;
  }

  void Choose(const std::string& wanted) {
    cl_uint count = 0;
    Check(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
    std::vector<cl_platform_id> platforms(count);
    Check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
    for (const cl_platform_id platform : platforms) {
      if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
      std::vector<cl_device_id> devices(count);
      if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) continue;
      for (const cl_device_id device : devices) {
        if (device_ == nullptr && NameOf(device).find(wanted) != std::string::npos) device_ = device;
      }
    }
    if (device_ == nullptr) Check(CL_DEVICE_NOT_FOUND, "looking for a device");
  }

  void Build() {
    const char* source = kSource;
    cl_int status = CL_SUCCESS;
    const cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
    Check(status, "clCreateProgramWithSource");
    char options[256];
    std::snprintf(options, sizeof(options), "-DNODES=%d -DSTEPS=%d -DUP=%.9ff -DPROBABILITY=%.9ff -DDISCOUNT=%.9ff",
                  kNodes, kSteps, static_cast<double>(kUp), static_cast<double>(kProbability),
                  static_cast<double>(kDiscount));
    status = clBuildProgram(program, 1, &device_, options, nullptr, nullptr);
    if (status != CL_SUCCESS) {
      std::vector<char> log(64 << 10);
      clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
      std::fprintf(stderr, "%s\n", log.data());
    }
    Check(status, "clBuildProgram");
    kernel_ = clCreateKernel(program, work_.name.c_str(), &status);
    Check(status, "clCreateKernel");
  }

  cl_mem Buffer(const std::vector<float>& data) {
    cl_int status = CL_SUCCESS;
    const size_t bytes = data.size() * sizeof(float);
    const cl_mem buffer = clCreateBuffer(context_, CL_MEM_READ_ONLY, bytes, nullptr, &status);
    Check(status, "clCreateBuffer");
    Check(clEnqueueWriteBuffer(queue_, buffer, CL_TRUE, 0, bytes, data.data(), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
    return buffer;
  }

  const Work& work_;
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_kernel kernel_ = nullptr;
  cl_mem out_ = nullptr;
  std::deque<cl_event> events_;
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
  experiments::OpenClDevice device(work, options.device);
  return experiments::Run(options, work, device);
}
