// SPDX-License-Identifier: Apache-2.0
// The server's platforms and root devices as this process sees them: fetched once per session, never freed.
#ifndef HAWSER_INTERPOSER_OPENCL_PLATFORMS_H_
#define HAWSER_INTERPOSER_OPENCL_PLATFORMS_H_

#include "interposer/opencl/objects.h"
#include "proto/opencl/messages.h"

namespace hawser::ocl {

/// Threading: all functions may be called from any thread.
class Platforms {
 public:
  static Platforms& Get();

  /// Connects and asks the server when that has not happened yet in this process. After fork() the child gets a
  /// session of its own; handles stay what they are, because the loader and the program keep them. Null when there is
  /// no server. Cheap once done.
  guest::Session* Refresh();
  /// In the server's order. Empty until Refresh() succeeded once.
  std::vector<cl_platform_id> List();

 private:
  bool Load(guest::Session* session);
  static void Adopt(cl_platform_id platform, guest::Session* session, const opencl::PlatformInfo& message);

  std::mutex mutex_;
  std::atomic<guest::Session*> session_{nullptr};
  std::vector<cl_platform_id> platforms_;
};

/// Takes over what the server tells about a device (device.cc).
void AdoptDevice(cl_device_id device, guest::Session* session, const opencl::DeviceInfo& message);
/// Copies a list of raw answers.
InfoMap ToInfoMap(const wire::ListView<opencl::InfoValue>& values);

/// Whether the device answers to this CL_DEVICE_TYPE_* query.
bool MatchesType(cl_device_id device, cl_device_type type);
/// The platform's devices that match, in order.
std::vector<cl_device_id> DevicesOfType(cl_platform_id platform, cl_device_type type);
/// False for bits that no device type has.
bool IsLegalDeviceType(cl_device_type type);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_PLATFORMS_H_
