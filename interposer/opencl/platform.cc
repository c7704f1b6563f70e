// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/log.h"
#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/info_filter.h"
#include "interposer/opencl/platforms.h"
#include "proto/facts/error_names.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {

Platforms& Platforms::Get() {
  static auto* platforms = new Platforms;
  return *platforms;
}

guest::Session* Platforms::Refresh() {
  guest::Session* session = guest::Session::Current();
  if (session == nullptr || session == session_.load(std::memory_order_acquire)) return session;
  std::lock_guard lock(mutex_);
  if (session == session_.load(std::memory_order_relaxed)) return session;
  if (!Load(session)) return nullptr;
  session_.store(session, std::memory_order_release);
  return session;
}

std::vector<cl_platform_id> Platforms::List() {
  std::lock_guard lock(mutex_);
  return platforms_;
}

bool Platforms::Load(guest::Session* session) {
  session->SetNoticeSink(Notices());
  std::vector<std::byte> payload;
  if (session->Call(opencl::Opcode::kGetInventory, opencl::Nothing{}, &payload) != CL_SUCCESS) return false;
  wire::Reader reader(payload);
  opencl::Inventory inventory;
  if (!inventory.Decode(reader) || !reader.Done()) {
    guest::Log(guest::LogLevel::kError, "the server's list of devices cannot be read; is it of another version?");
    return false;
  }
  if (inventory.status != CL_SUCCESS) {
    guest::Log(guest::LogLevel::kError, "the server could not list its OpenCL devices: %s",
               opencl::ErrorName(inventory.status));
    return false;
  }
  size_t count = 0;
  inventory.platforms.ForEach([&](const opencl::PlatformInfo& message) {
    if (count == platforms_.size()) {
      platforms_.push_back(new _cl_platform_id(Magic::kPlatform, session, message.platform));
    }
    Adopt(platforms_[count++], session, message);
  });
  // A parent process knew more platforms: the child must not use them.
  for (size_t i = count; i < platforms_.size(); ++i) platforms_[i]->failed = CL_INVALID_PLATFORM;
  return true;
}

void Platforms::Adopt(cl_platform_id platform, guest::Session* session, const opencl::PlatformInfo& message) {
  platform->session = session;
  platform->id = message.platform;
  platform->info = ToInfoMap(message.info);
  FilterPlatformInfo(platform->info);
  size_t count = 0;
  uint32_t last_index = 0;
  message.devices.ForEach([&](const opencl::DeviceInfo& device) {
    if (count == platform->devices.size()) {
      platform->devices.push_back(new _cl_device_id(Magic::kDevice, session, device.device));
    }
    cl_device_id adopted = platform->devices[count++];
    adopted->platform = platform;
    AdoptDevice(adopted, session, device);
    last_index = std::max(last_index, device.device.index());
  });
  for (size_t i = count; i < platform->devices.size(); ++i) platform->devices[i]->failed = CL_INVALID_DEVICE;
  // The server named the root devices. Names for sub-devices come from the guest and must not be the same.
  while (count != 0 && session->NewId(HandleTraits<cl_device_id>::kType).index() < last_index) {
  }
}

InfoMap ToInfoMap(const wire::ListView<opencl::InfoValue>& values) {
  InfoMap map;
  values.ForEach([&](const opencl::InfoValue& value) {
    map[value.param] = {value.status, std::vector<std::byte>(value.value.begin(), value.value.end())};
  });
  return map;
}

// ---------------------------------------------------------------------- entry points

cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id* platforms, cl_uint* num_platforms) {
  if ((platforms == nullptr && num_platforms == nullptr) || (platforms != nullptr && num_entries == 0)) {
    return CL_INVALID_VALUE;
  }
  std::vector<cl_platform_id> list;
  if (Platforms::Get().Refresh() != nullptr) list = Platforms::Get().List();
  std::erase_if(list, [](cl_platform_id platform) { return platform->failed != CL_SUCCESS; });
  if (num_platforms != nullptr) *num_platforms = static_cast<cl_uint>(list.size());
  if (list.empty()) return CL_PLATFORM_NOT_FOUND_KHR;
  for (size_t i = 0; platforms != nullptr && i < std::min<size_t>(num_entries, list.size()); ++i) {
    platforms[i] = list[i];
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info param, size_t size, void* value,
                                     size_t* size_ret) {
  if (const cl_int error = CheckHandle(platform)) return error;
  return ReturnFrom(platform->info, param, size, value, size_ret);
}

cl_int CL_API_CALL clUnloadPlatformCompiler(cl_platform_id platform) { return CheckHandle(platform); }

cl_int CL_API_CALL clUnloadCompiler() { return CL_SUCCESS; }

}  // namespace hawser::ocl
