// SPDX-License-Identifier: Apache-2.0
// What a guest learns when a program is built: status and log for each device, and all about its kernels, so that the
// guest answers later questions itself.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_BUILD_REPORT_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_BUILD_REPORT_H_

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "proto/opencl/messages.h"
#include "server/backends/opencl/handle.h"
#include "wire/id.h"

namespace hawser::server::ocl {

/// A device with the name that the guest has for it.
struct NamedDevice {
  wire::Id id;
  cl_device_id native = nullptr;
  uint32_t version = 0;
};

/// Never asks for binaries: a driver would compile every kernel for them.
class BuildReport {
 public:
  /// `options` as the guest gave them; the driver may have got more.
  void AddBuilds(cl_program program, const std::vector<NamedDevice>& devices, std::string_view options);
  /// Makes every kernel for a moment. `devices` are those that the program was built for.
  void AddKernels(cl_program program, const std::vector<NamedDevice>& devices);

  /// Valid as long as the report, until something is added.
  opencl::BuildResult View(int32_t status) const;

 private:
  void AddKernel(cl_kernel kernel, const std::vector<NamedDevice>& devices);
  std::string_view Keep(std::string text);

  // Deques: what views point to stays where it is.
  std::deque<std::string> texts_;
  std::deque<std::vector<opencl::KernelArg>> args_;
  std::deque<std::vector<opencl::InfoValue>> infos_;
  std::deque<std::vector<opencl::KernelWorkGroup>> work_groups_;
  std::vector<opencl::DeviceBuild> builds_;
  std::vector<opencl::KernelInfo> kernels_;
  int32_t kernels_status_ = CL_SUCCESS;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_BUILD_REPORT_H_
