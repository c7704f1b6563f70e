// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/inventory.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "server/backends/opencl/device_threads.h"
#include "server/backends/opencl/info_parameters.h"
#include "server/backends/opencl/memory_probe.h"
#include "server/device_key.h"

namespace hawser::server::ocl {
namespace {

// Larger answers are a driver's mistake; nobody should have to carry them.
constexpr size_t kLargestValue = 1u << 20;

uint64_t DeviceNumber(cl_device_id device, cl_device_info param) {
  cl_ulong value = 0;
  clGetDeviceInfo(device, param, sizeof(value), &value, nullptr);
  return value;
}

std::string PlatformText(cl_platform_id platform, cl_platform_info param) {
  size_t size = 0;
  if (clGetPlatformInfo(platform, param, 0, nullptr, &size) != CL_SUCCESS || size > kLargestValue) return {};
  std::string text(size, '\0');
  if (clGetPlatformInfo(platform, param, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text;
}

bool IsHawsers(cl_platform_id platform) {
  return PlatformText(platform, CL_PLATFORM_NAME).find("Hawser") != std::string::npos ||
         PlatformText(platform, CL_PLATFORM_VENDOR).find("Hawser") != std::string::npos;
}

// "OpenCL 3.0 ..." gives 30. A device of a newer version than its platform can only use what the platform has.
uint32_t ParseVersion(std::string_view text) {
  constexpr std::string_view kPrefix = "OpenCL ";
  if (text.substr(0, kPrefix.size()) != kPrefix || text.size() < kPrefix.size() + 3) return 10;
  const char major = text[kPrefix.size()];
  const char minor = text[kPrefix.size() + 2];
  if (major < '1' || major > '9' || minor < '0' || minor > '9') return 10;
  return static_cast<uint32_t>(major - '0') * 10 + static_cast<uint32_t>(minor - '0');
}

std::string DeviceText(cl_device_id device, cl_device_info param) {
  size_t size = 0;
  if (clGetDeviceInfo(device, param, 0, nullptr, &size) != CL_SUCCESS || size > kLargestValue) return {};
  std::string text(size, '\0');
  if (clGetDeviceInfo(device, param, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text;
}

wire::Id RootId(uint32_t index) { return wire::Id(static_cast<uint8_t>(opencl::Handle::kDevice), 1, index); }

opencl::DeviceInfo InfoOf(const Device& device, const InfoValues& values) {
  opencl::DeviceInfo info;
  info.device = device.id;
  info.parent = device.parent;
  info.shared_memory = device.shared_memory ? 1 : 0;
  info.info = values.view();
  return info;
}

}  // namespace

template <typename Query>
void InfoValues::Ask(uint32_t param, Query&& query) {
  opencl::InfoValue answer;
  answer.param = param;
  size_t size = 0;
  answer.status = query(param, 0, nullptr, &size);
  if (answer.status == CL_SUCCESS && size > kLargestValue) answer.status = CL_OUT_OF_HOST_MEMORY;
  if (answer.status == CL_SUCCESS) {
    std::vector<std::byte>& bytes = bytes_.emplace_back(size);
    if (size != 0) answer.status = query(param, size, bytes.data(), nullptr);
    if (answer.status == CL_SUCCESS) answer.value = wire::Bytes(bytes.data(), bytes.size());
  }
  values_.push_back(answer);
}

InfoValues InfoValues::OfPlatform(cl_platform_id platform) {
  InfoValues values;
  for (const uint32_t param : PlatformParameters()) {
    values.Ask(param, [&](uint32_t name, size_t size, void* value, size_t* size_ret) {
      return clGetPlatformInfo(platform, name, size, value, size_ret);
    });
  }
  return values;
}

InfoValues InfoValues::OfDevice(cl_device_id device) {
  InfoValues values;
  for (const uint32_t param : DeviceParameters()) {
    values.Ask(param, [&](uint32_t name, size_t size, void* value, size_t* size_ret) {
      return clGetDeviceInfo(device, name, size, value, size_ret);
    });
  }
  return values;
}

wire::Result<std::unique_ptr<Inventory>> Inventory::Load() {
  const DeviceThreads threads;  // Drivers start them with the first question.
  auto inventory = std::make_unique<Inventory>();
  cl_uint count = 0;
  // CL_PLATFORM_NOT_FOUND_KHR: the loader has no platform.
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return inventory;
  std::vector<cl_platform_id> platforms(count);
  if (const cl_int status = clGetPlatformIDs(count, platforms.data(), nullptr); status != CL_SUCCESS) {
    return wire::Status(wire::Code::kSystem, "clGetPlatformIDs answered " + std::to_string(status) +
                                                 "; check the ICD files in /etc/OpenCL/vendors");
  }
  for (cl_platform_id platform : platforms) {
    if (!IsHawsers(platform)) inventory->AddPlatform(platform);
  }
  return inventory;
}

void Inventory::AddPlatform(cl_platform_id platform) {
  Platform& added = platforms_.emplace_back();
  added.id = wire::Id(static_cast<uint8_t>(opencl::Handle::kPlatform), 1, static_cast<uint32_t>(platforms_.size()));
  added.info = InfoValues::OfPlatform(platform);
  const uint32_t platform_version = ParseVersion(PlatformText(platform, CL_PLATFORM_VERSION));

  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return;
  std::vector<cl_device_id> devices(count);
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) return;
  size_t gpus = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const cl_device_id native = devices[i];
    Device device;
    device.id = RootId(++roots_);
    device.device = native;
    device.platform = platform;
    device.version = std::min(platform_version, ParseVersion(DeviceText(native, CL_DEVICE_VERSION)));
    device.shared_memory = WorksInPlace(platform, native);
    device.global_memory = DeviceNumber(native, CL_DEVICE_GLOBAL_MEM_SIZE);
    device.key = KeyOf(device, i, gpus);
    if ((DeviceNumber(native, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0) ++gpus;
    const wire::Id id = device.id;
    if (devices_.Insert(id, std::move(device)) != wire::Lookup::kOk) return;  // more than the table holds
    added.devices.push_back({id, InfoValues::OfDevice(native)});
  }
}

std::string Inventory::KeyOf(const Device& device, size_t index, size_t gpus) {
  const uint64_t type = DeviceNumber(device.device, CL_DEVICE_TYPE);
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return CpuDeviceKey(cpus_++);
  cl_device_pci_bus_info_khr pci{};
  if (clGetDeviceInfo(device.device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(pci), &pci, nullptr) == CL_SUCCESS) {
    return PciDeviceKey(pci.pci_domain, pci.pci_bus, pci.pci_device);
  }
  // NVIDIA's own question, which older drivers answer too. The number holds the slot and the function.
  constexpr cl_device_info kBus = 0x4008, kSlot = 0x4009, kDomain = 0x400A;
  cl_uint bus = 0, slot = 0, domain = 0;
  if (clGetDeviceInfo(device.device, kBus, sizeof(bus), &bus, nullptr) == CL_SUCCESS &&
      clGetDeviceInfo(device.device, kSlot, sizeof(slot), &slot, nullptr) == CL_SUCCESS) {
    (void)clGetDeviceInfo(device.device, kDomain, sizeof(domain), &domain, nullptr);
    return PciDeviceKey(domain, bus, slot >> 3);
  }
  const bool nvidia = PlatformText(device.platform, CL_PLATFORM_NAME).find("NVIDIA") != std::string::npos;
  return nvidia ? NvidiaDeviceKey(gpus) : OpenClDeviceKey(platforms_.size() - 1, index);
}

wire::Id Inventory::IdOf(cl_device_id device) const {
  wire::Id found;
  const_cast<Inventory*>(this)->devices_.ForEach([&](wire::Id id, Device& known) {
    if (known.device == device) found = id;
  });
  return found;
}

bool Inventory::AnySharedMemory() const { return LargestSharedDevice() != 0; }

void Inventory::Describe(SessionStatsPage* stats) const {
  for (const Platform& platform : platforms_) {
    for (const Root& root : platform.devices) {
      const Device* device = devices_.Find(root.device);
      char name[256] = "";
      if (device == nullptr ||
          clGetDeviceInfo(device->device, CL_DEVICE_NAME, sizeof(name) - 1, name, nullptr) != CL_SUCCESS) {
        continue;
      }
      stats->AddDevice(name, device->global_memory);
    }
  }
}

uint64_t Inventory::LargestSharedDevice() const {
  uint64_t largest = 0;
  const_cast<Inventory*>(this)->devices_.ForEach([&](wire::Id, Device& device) {
    if (device.shared_memory) largest = std::max(largest, device.global_memory);
  });
  return largest;
}

void Inventory::Send(Replies& replies, const opencl::Call& call) const {
  std::vector<opencl::PlatformInfo> platforms(platforms_.size());
  std::vector<std::vector<opencl::DeviceInfo>> devices(platforms_.size());
  for (size_t i = 0; i < platforms_.size(); ++i) {
    for (const Root& root : platforms_[i].devices) devices[i].push_back(InfoOf(*devices_.Find(root.device), root.info));
    platforms[i].platform = platforms_[i].id;
    platforms[i].info = platforms_[i].info.view();
    platforms[i].devices = wire::ListView<opencl::DeviceInfo>(devices[i]);
  }
  opencl::Inventory inventory;
  inventory.platforms = wire::ListView<opencl::PlatformInfo>(platforms);
  replies.Send(static_cast<opencl::Opcode>(call.opcode), call.seq, inventory, true);
}

int32_t Inventory::Partition(const opencl::CreateSubDevices& message, std::vector<wire::Id>* made) {
  const Device* parent = Find(message.device);
  if (parent == nullptr) return CL_INVALID_DEVICE;
  if (parent->version < 12) return CL_INVALID_VALUE;
  // However the guest ended its list: the driver stops at zeros of ours.
  std::vector<cl_device_partition_property> properties;
  for (uint32_t i = 0; i < message.properties.size(); ++i) properties.push_back(message.properties[i]);
  properties.push_back(0);
  properties.push_back(0);

  cl_uint count = 0;
  cl_int status = clCreateSubDevices(parent->device, properties.data(), 0, nullptr, &count);
  if (status != CL_SUCCESS) return status;
  if (count == 0 || count > message.names.size()) return CL_INVALID_VALUE;
  std::vector<cl_device_id> natives(count);
  status = clCreateSubDevices(parent->device, properties.data(), count, natives.data(), nullptr);
  if (status != CL_SUCCESS) return status;

  for (cl_uint i = 0; i < count; ++i) {
    Device device;
    device.owned = Handle<cl_device_id>(natives[i]);
    device.device = natives[i];
    device.id = message.names[i];
    device.parent = parent->id;
    device.platform = parent->platform;
    device.version = parent->version;
    device.shared_memory = parent->shared_memory;
    device.global_memory = parent->global_memory;
    device.key = parent->key;
    if (status == CL_SUCCESS && devices_.Insert(message.names[i], std::move(device)) == wire::Lookup::kOk) {
      made->push_back(message.names[i]);
    } else {
      status = CL_INVALID_VALUE;  // The name was taken; the rest is given back as it comes.
    }
  }
  if (status != CL_SUCCESS) {
    for (const wire::Id id : *made) devices_.Erase(id);
    made->clear();
  }
  return status;
}

void Inventory::CreateSubDevices(Replies& replies, const opencl::Call& call, const opencl::CreateSubDevices& message) {
  std::vector<wire::Id> made;
  opencl::SubDevices reply;
  reply.status = Partition(message, &made);
  std::deque<InfoValues> values;
  std::vector<opencl::DeviceInfo> devices;
  for (const wire::Id id : made) {
    const Device& device = *devices_.Find(id);
    devices.push_back(InfoOf(device, values.emplace_back(InfoValues::OfDevice(device.device))));
  }
  reply.devices = wire::ListView<opencl::DeviceInfo>(devices);
  replies.Send(static_cast<opencl::Opcode>(call.opcode), call.seq, reply, true);
}

void Inventory::NoteContext(wire::Id id) {
  Device* device = devices_.Find(id);
  if (device != nullptr) device->in_context = true;
}

void Inventory::Release(wire::Id id) {
  Device* device = devices_.Find(id);
  if (device == nullptr || device->IsRoot()) return;
  if (device->in_context) kept_.push_back(std::move(device->owned));
  devices_.Erase(id);
}

}  // namespace hawser::server::ocl
