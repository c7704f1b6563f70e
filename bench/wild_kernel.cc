// SPDX-License-Identifier: Apache-2.0
#include "bench/wild_kernel.h"

namespace hawser::bench {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr char kSource[] = "__kernel void wild(__global int* out, long where) { out[where] = 1; }";
constexpr cl_long kFarAway = -(1ll << 45);

}  // namespace

Result<std::unique_ptr<WildKernel>> WildKernel::Create(const OpenClDevice& device) {
  std::unique_ptr<WildKernel> wild(new WildKernel(device));
  auto program = device.Build(kSource);
  if (!program.ok()) return program.status();
  wild->program_ = std::move(*program);
  auto kernel = OpenClDevice::CreateKernel(wild->program_, "wild");
  if (!kernel.ok()) return kernel.status();
  wild->kernel_ = std::move(*kernel);
  auto buffer = device.CreateBuffer(64);
  if (!buffer.ok()) return buffer.status();
  wild->buffer_ = std::move(*buffer);
  if (Status s = wild->Launch(0); !s.ok()) return s;
  if (Status s = Check(clFinish(device.queue()), "clFinish"); !s.ok()) return s;
  return wild;
}

Status WildKernel::Launch(cl_long where) {
  const cl_mem buffer = buffer_.get();
  cl_int error = clSetKernelArg(kernel_.get(), 0, sizeof(buffer), &buffer);
  error |= clSetKernelArg(kernel_.get(), 1, sizeof(where), &where);
  if (Status s = Check(error, "clSetKernelArg"); !s.ok()) return s;
  const size_t one = 1;
  return Check(clEnqueueNDRangeKernel(device_.queue(), kernel_.get(), 1, nullptr, &one, &one, 0, nullptr, nullptr),
               "clEnqueueNDRangeKernel");
}

Result<std::map<std::string, double>> WildKernel::Run() {
  if (Status s = Launch(kFarAway); !s.ok()) return s;
  const cl_int code = clFinish(device_.queue());
  // The worst that a server can do: to say that all went well.
  if (code == CL_SUCCESS) return Status(Code::kInvalid, "a kernel that wrote out of bounds was said to be complete");
  return std::map<std::string, double>{{"code", code}};
}

}  // namespace hawser::bench
