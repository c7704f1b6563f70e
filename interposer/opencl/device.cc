// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/info_filter.h"
#include "interposer/opencl/partition.h"
#include "interposer/opencl/platforms.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {

template <>
cl_int RetainObject<cl_device_id>(cl_device_id device) {
  if (const cl_int error = CheckHandle(device)) return error;
  // Root devices live as long as the process; the specification does not count them.
  if (device->parent != nullptr) device->refs.fetch_add(1, std::memory_order_relaxed);
  return CL_SUCCESS;
}

template <>
cl_int ReleaseObject<cl_device_id>(cl_device_id device) {
  if (const cl_int error = CheckHandle(device)) return error;
  if (device->parent == nullptr) return CL_SUCCESS;
  uint32_t refs = device->refs.load(std::memory_order_relaxed);
  do {
    if (refs == 0) return CL_INVALID_DEVICE;
  } while (!device->refs.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel));
  if (refs == 1) DropUse(device);
  return CL_SUCCESS;
}

void Destroy(cl_device_id device) {
  Registry::Get().Remove(device);
  SendRelease(*device);
  cl_device_id parent = device->parent;
  device->magic = Magic::kFreed;
  delete device;
  DropUse(parent);
}

void AdoptDevice(cl_device_id device, guest::Session* session, const opencl::DeviceInfo& message) {
  device->session = session;
  device->id = message.device;
  device->shared_memory = message.shared_memory != 0;
  device->info = ToInfoMap(message.info);
  FilterDeviceInfo(device->info);
  const InfoMap& info = device->info;
  device->type = ValueOr<cl_device_type>(info, CL_DEVICE_TYPE, 0);
  device->max_dimensions = ValueOr<cl_uint>(info, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 3);
  device->max_group = ValueOr<size_t>(info, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
  if (const auto items = info.find(CL_DEVICE_MAX_WORK_ITEM_SIZES); items != info.end()) {
    const std::vector<std::byte>& value = items->second.second;
    std::memcpy(device->max_items, value.data(), std::min(value.size(), sizeof(device->max_items)));
  }
  device->max_alloc = ValueOr<cl_ulong>(info, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
  device->base_align_bits = ValueOr<cl_uint>(info, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024);
  device->images = ValueOr<cl_bool>(info, CL_DEVICE_IMAGE_SUPPORT, CL_FALSE) == CL_TRUE;
  device->non_uniform_groups = ValueOr<cl_bool>(info, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, CL_FALSE) == CL_TRUE;
  device->version = ParseVersion(TextOf(info, CL_DEVICE_VERSION));
  // OpenCL 2.x had them without a query.
  if (device->version >= 200 && device->version < 300) device->non_uniform_groups = true;
}

bool IsLegalDeviceType(cl_device_type type) {
  constexpr cl_device_type kTypes = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                    CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
  return type == CL_DEVICE_TYPE_ALL || (type != 0 && (type & ~kTypes) == 0);
}

bool MatchesType(cl_device_id device, cl_device_type type) {
  if (type == CL_DEVICE_TYPE_ALL) return (device->type & CL_DEVICE_TYPE_CUSTOM) == 0;
  return (device->type & type & ~cl_device_type{CL_DEVICE_TYPE_DEFAULT}) != 0;
}

std::vector<cl_device_id> DevicesOfType(cl_platform_id platform, cl_device_type type) {
  std::vector<cl_device_id> usable, found;
  for (cl_device_id device : platform->devices) {
    if (device->failed == CL_SUCCESS) usable.push_back(device);
  }
  cl_device_id by_default = nullptr;
  if (type != CL_DEVICE_TYPE_ALL && (type & CL_DEVICE_TYPE_DEFAULT) != 0 && !usable.empty()) {
    const auto marked = std::find_if(usable.begin(), usable.end(),
                                     [](cl_device_id device) { return (device->type & CL_DEVICE_TYPE_DEFAULT) != 0; });
    by_default = marked != usable.end() ? *marked : usable.front();
  }
  for (cl_device_id device : usable) {
    if (device == by_default || MatchesType(device, type)) found.push_back(device);
  }
  return found;
}

// ---------------------------------------------------------------------- entry points

cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint num_entries,
                                  cl_device_id* devices, cl_uint* num_devices) {
  Platforms::Get().Refresh();
  if (const cl_int error = CheckHandle(platform)) return error;
  if (!IsLegalDeviceType(type)) return CL_INVALID_DEVICE_TYPE;
  if ((devices == nullptr && num_devices == nullptr) || (devices != nullptr && num_entries == 0)) {
    return CL_INVALID_VALUE;
  }
  const std::vector<cl_device_id> found = DevicesOfType(platform, type);
  if (num_devices != nullptr) *num_devices = static_cast<cl_uint>(found.size());
  if (found.empty()) return CL_DEVICE_NOT_FOUND;
  for (size_t i = 0; devices != nullptr && i < std::min<size_t>(num_entries, found.size()); ++i) devices[i] = found[i];
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info param, size_t size, void* value,
                                   size_t* size_ret) {
  if (const cl_int error = CheckHandle(device)) return error;
  switch (param) {
    case CL_DEVICE_PLATFORM:
      return ReturnInfo(device->platform, size, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
      return ReturnInfo(device->parent, size, value, size_ret);
    case CL_DEVICE_REFERENCE_COUNT:
      return ReturnInfo(cl_uint{device->parent == nullptr ? 1 : device->refs.load()}, size, value, size_ret);
    case CL_DEVICE_PARTITION_TYPE:
      if (device->parent == nullptr) break;
      return ReturnInfo(device->partition.data(), device->partition.size() * sizeof(device->partition[0]), size, value,
                        size_ret);
    case CL_DEVICE_AVAILABLE:
      if (!device->session->lost()) break;
      return ReturnInfo(cl_bool{CL_FALSE}, size, value, size_ret);
    default:
      break;
  }
  return ReturnFrom(device->info, param, size, value, size_ret);
}

cl_int CL_API_CALL clCreateSubDevices(cl_device_id device, const cl_device_partition_property* properties,
                                      cl_uint num_entries, cl_device_id* out, cl_uint* num_devices) {
  if (const cl_int error = CheckHandle(device)) return error;
  if (out == nullptr && num_devices == nullptr) return CL_INVALID_VALUE;
  if (out != nullptr && num_entries == 0) return CL_INVALID_VALUE;
  Partition partition;
  if (const cl_int error = ParsePartition(device->info, properties, &partition)) return error;

  guest::Session* session = device->session;
  std::vector<wire::Id> names(partition.max_devices);
  for (wire::Id& name : names) name = session->NewId(HandleTraits<cl_device_id>::kType);
  opencl::CreateSubDevices message;
  message.device = device->id;
  message.properties = wire::ArrayView<int64_t>(partition.properties.data(), partition.properties.size());
  message.names = wire::ArrayView<wire::Id>(names.data(), names.size());
  std::vector<std::byte> payload;
  cl_int error = session->Call(opencl::Opcode::kCreateSubDevices, message, &payload);
  opencl::SubDevices reply;
  if (error == CL_SUCCESS) {
    wire::Reader reader(payload);
    error = reply.Decode(reader) ? reply.status : guest::Session::lost_code();
  }
  std::vector<cl_device_id> made;
  if (error == CL_SUCCESS) {
    reply.devices.ForEach([&](const opencl::DeviceInfo& info) {
      auto* sub = new _cl_device_id(Magic::kDevice, session, info.device);
      sub->platform = device->platform;
      sub->parent = Use(device);
      sub->partition.assign(partition.properties.begin(), partition.properties.end());
      AdoptDevice(sub, session, info);
      Registry::Get().Add(sub);
      made.push_back(sub);
    });
  }
  for (const wire::Id name : names) {
    if (std::none_of(made.begin(), made.end(), [&](cl_device_id sub) { return sub->id == name; })) {
      session->FreeId(name);
    }
  }
  if (error != CL_SUCCESS) return error;
  if (num_devices != nullptr) *num_devices = static_cast<cl_uint>(made.size());
  const bool keep = out != nullptr && num_entries >= made.size();
  for (size_t i = 0; i < made.size(); ++i) {
    if (keep) {
      out[i] = made[i];
    } else {
      ReleaseObject(made[i]);
    }
  }
  return out == nullptr || keep ? CL_SUCCESS : CL_INVALID_VALUE;
}

namespace {

cl_int AskTimers(cl_device_id device, opencl::Timers* timers) {
  opencl::GetDeviceAndHostTimer message;
  message.device = device->id;
  if (const cl_int error = device->session->CallInto(opencl::Opcode::kGetDeviceAndHostTimer, message, timers)) {
    return error;
  }
  return timers->status;
}

}  // namespace

cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id device, cl_ulong* device_time, cl_ulong* host_time) {
  if (const cl_int error = CheckHandle(device)) return error;
  if (device_time == nullptr || host_time == nullptr) return CL_INVALID_VALUE;
  opencl::Timers timers;
  if (const cl_int error = AskTimers(device, &timers)) return error;
  *device_time = timers.device;
  *host_time = timers.host;
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetHostTimer(cl_device_id device, cl_ulong* host_time) {
  if (const cl_int error = CheckHandle(device)) return error;
  if (host_time == nullptr) return CL_INVALID_VALUE;
  // The server's clock: the only one that can be compared with the device's.
  opencl::Timers timers;
  if (const cl_int error = AskTimers(device, &timers)) return error;
  *host_time = timers.host;
  return CL_SUCCESS;
}

}  // namespace hawser::ocl
