// SPDX-License-Identifier: Apache-2.0
#include "bench/opencl_device.h"

#include <vector>

namespace hawser::bench {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

std::string PlatformText(cl_platform_id platform, cl_platform_info what) {
  char text[512] = "";
  clGetPlatformInfo(platform, what, sizeof(text) - 1, text, nullptr);
  return text;
}

std::string DeviceText(cl_device_id device, cl_device_info what) {
  char text[512] = "";
  clGetDeviceInfo(device, what, sizeof(text) - 1, text, nullptr);
  return text;
}

}  // namespace

Status Check(cl_int code, std::string_view what) {
  if (code == CL_SUCCESS) return Status::Ok();
  return Status(Code::kSystem, std::string(what) + " failed with OpenCL error " + std::to_string(code));
}

Result<std::unique_ptr<OpenClDevice>> OpenClDevice::Open(const std::string& filter) {
  cl_uint platform_count = 0;
  cl_int error = clGetPlatformIDs(0, nullptr, &platform_count);
  if (error != CL_SUCCESS || platform_count == 0) {
    return Status(Code::kInvalid, "the OpenCL loader finds no platform (error " + std::to_string(error) + ")");
  }
  std::vector<cl_platform_id> platforms(platform_count);
  if (Status s = Check(clGetPlatformIDs(platform_count, platforms.data(), nullptr), "clGetPlatformIDs"); !s.ok()) {
    return s;
  }
  for (cl_platform_id platform : platforms) {
    cl_uint device_count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &device_count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(device_count);
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, device_count, devices.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id device : devices) {
      const std::string name = DeviceText(device, CL_DEVICE_NAME);
      if (name.find(filter) == std::string::npos) continue;
      std::unique_ptr<OpenClDevice> opened(new OpenClDevice);
      opened->platform_ = platform;
      opened->device_ = device;
      opened->facts_ = {PlatformText(platform, CL_PLATFORM_NAME), name, DeviceText(device, CL_DEVICE_VERSION),
                        DeviceText(device, CL_DRIVER_VERSION)};
      opened->context_ = Context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error));
      if (Status s = Check(error, "clCreateContext"); !s.ok()) return s;
      opened->queue_ = Queue(clCreateCommandQueue(opened->context(), device, 0, &error));
      if (Status s = Check(error, "clCreateCommandQueue"); !s.ok()) return s;
      return opened;
    }
  }
  return Status(Code::kInvalid, filter.empty() ? std::string("the OpenCL platforms have no device")
                                               : "no OpenCL device has '" + filter + "' in its name");
}

Result<Buffer> OpenClDevice::CreateBuffer(size_t size, cl_mem_flags flags) const {
  cl_int error = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(context(), flags, size, nullptr, &error));
  if (Status s = Check(error, "clCreateBuffer"); !s.ok()) return s;
  return buffer;
}

Result<Program> OpenClDevice::Build(const std::string& source) const {
  cl_int error = CL_SUCCESS;
  const char* text = source.c_str();
  const size_t length = source.size();
  Program program(clCreateProgramWithSource(context(), 1, &text, &length, &error));
  if (Status s = Check(error, "clCreateProgramWithSource"); !s.ok()) return s;
  error = clBuildProgram(program.get(), 1, &device_, "", nullptr, nullptr);
  if (error != CL_SUCCESS) {
    std::vector<char> log(64 << 10);
    clGetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
    return Status(Code::kSystem,
                  "clBuildProgram failed with OpenCL error " + std::to_string(error) + ": " + std::string(log.data()));
  }
  return program;
}

Result<Kernel> OpenClDevice::CreateKernel(const Program& program, const char* name) {
  cl_int error = CL_SUCCESS;
  Kernel kernel(clCreateKernel(program.get(), name, &error));
  if (Status s = Check(error, std::string("clCreateKernel(") + name + ")"); !s.ok()) return s;
  return kernel;
}

}  // namespace hawser::bench
