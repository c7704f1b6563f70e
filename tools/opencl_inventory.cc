// SPDX-License-Identifier: Apache-2.0
#include "tools/opencl_inventory.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace hawser::tools {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// The four entry points that an inventory needs, with the types of the header.
struct Loader {
  decltype(&clGetPlatformIDs) get_platforms = nullptr;
  decltype(&clGetPlatformInfo) platform_info = nullptr;
  decltype(&clGetDeviceIDs) get_devices = nullptr;
  decltype(&clGetDeviceInfo) device_info = nullptr;
  std::string file;
};

Result<Loader> OpenLoader() {
  // Never closed: the platforms that it opens may have threads.
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return Status(Code::kInvalid, std::string("there is no OpenCL loader (") + dlerror() +
                                      "); install it: sudo apt-get install ocl-icd-libopencl1");
  }
  Loader loader;
  loader.get_platforms = reinterpret_cast<decltype(&clGetPlatformIDs)>(dlsym(library, "clGetPlatformIDs"));
  loader.platform_info = reinterpret_cast<decltype(&clGetPlatformInfo)>(dlsym(library, "clGetPlatformInfo"));
  loader.get_devices = reinterpret_cast<decltype(&clGetDeviceIDs)>(dlsym(library, "clGetDeviceIDs"));
  loader.device_info = reinterpret_cast<decltype(&clGetDeviceInfo)>(dlsym(library, "clGetDeviceInfo"));
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) loader.file = map->l_name;
  if (loader.get_platforms == nullptr || loader.platform_info == nullptr || loader.get_devices == nullptr ||
      loader.device_info == nullptr) {
    return Status(Code::kInvalid, loader.file + " is no OpenCL loader: it lacks basic entry points");
  }
  return loader;
}

std::string PlatformText(const Loader& loader, cl_platform_id platform, cl_platform_info what) {
  char text[1024] = "";
  loader.platform_info(platform, what, sizeof(text) - 1, text, nullptr);
  return text;
}

std::string DeviceText(const Loader& loader, cl_device_id device, cl_device_info what) {
  char text[1024] = "";
  loader.device_info(device, what, sizeof(text) - 1, text, nullptr);
  return text;
}

std::string TypeName(cl_device_type type) {
  if (type & CL_DEVICE_TYPE_GPU) return "GPU";
  if (type & CL_DEVICE_TYPE_CPU) return "CPU";
  if (type & CL_DEVICE_TYPE_ACCELERATOR) return "accelerator";
  return "custom";
}

DeviceEntry Describe(const Loader& loader, cl_device_id device) {
  DeviceEntry entry;
  entry.name = DeviceText(loader, device, CL_DEVICE_NAME);
  entry.version = DeviceText(loader, device, CL_DEVICE_VERSION);
  entry.driver = DeviceText(loader, device, CL_DRIVER_VERSION);
  cl_device_type type = 0;
  loader.device_info(device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
  entry.type = TypeName(type);
  cl_uint number = 0;
  if (loader.device_info(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(number), &number, nullptr) == CL_SUCCESS) {
    entry.compute_units = number;
  }
  if (loader.device_info(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(number), &number, nullptr) == CL_SUCCESS) {
    entry.clock_mhz = number;
  }
  cl_ulong bytes = 0;
  if (loader.device_info(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(bytes), &bytes, nullptr) == CL_SUCCESS) {
    entry.memory_bytes = bytes;
  }
  return entry;
}

}  // namespace

Result<std::string> FindOpenClLoader() {
  auto loader = OpenLoader();
  if (!loader.ok()) return loader.status();
  return loader->file;
}

Result<std::vector<PlatformEntry>> ListPlatforms() {
  auto loader = OpenLoader();
  if (!loader.ok()) return loader.status();
  std::vector<PlatformEntry> entries;
  cl_uint count = 0;
  // Without any platform the loader answers with an error of its own (CL_PLATFORM_NOT_FOUND_KHR).
  if (loader->get_platforms(0, nullptr, &count) != CL_SUCCESS || count == 0) return entries;
  std::vector<cl_platform_id> platforms(count);
  if (loader->get_platforms(count, platforms.data(), nullptr) != CL_SUCCESS) return entries;
  for (cl_platform_id platform : platforms) {
    PlatformEntry entry;
    entry.name = PlatformText(*loader, platform, CL_PLATFORM_NAME);
    entry.vendor = PlatformText(*loader, platform, CL_PLATFORM_VENDOR);
    entry.version = PlatformText(*loader, platform, CL_PLATFORM_VERSION);
    cl_uint device_count = 0;
    if (loader->get_devices(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &device_count) == CL_SUCCESS) {
      std::vector<cl_device_id> devices(device_count);
      if (loader->get_devices(platform, CL_DEVICE_TYPE_ALL, device_count, devices.data(), nullptr) == CL_SUCCESS) {
        for (cl_device_id device : devices) entry.devices.push_back(Describe(*loader, device));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string InventoryText(const std::vector<PlatformEntry>& platforms) {
  std::string out;
  for (size_t p = 0; p < platforms.size(); ++p) {
    const PlatformEntry& platform = platforms[p];
    out += "Platform " + std::to_string(p) + ": " + platform.name + " (" + platform.version + ")\n";
    if (platform.devices.empty()) out += "  no devices\n";
    for (size_t d = 0; d < platform.devices.size(); ++d) {
      const DeviceEntry& device = platform.devices[d];
      char memory[32];
      std::snprintf(memory, sizeof(memory), "%.1f GiB", static_cast<double>(device.memory_bytes) / double(1u << 30));
      out += "  Device " + std::to_string(d) + ": " + device.name + "\n";
      out += "    " + device.type + ", " + std::to_string(device.compute_units) + " compute units";
      if (device.clock_mhz > 0) out += ", " + std::to_string(device.clock_mhz) + " MHz";
      out += ", " + std::string(memory) + ", driver " + device.driver + "\n";
    }
  }
  return out;
}

nlohmann::json InventoryJson(const std::vector<PlatformEntry>& platforms) {
  nlohmann::json list = nlohmann::json::array();
  for (const PlatformEntry& platform : platforms) {
    nlohmann::json devices = nlohmann::json::array();
    for (const DeviceEntry& device : platform.devices) {
      devices.push_back({{"name", device.name},
                         {"type", device.type},
                         {"version", device.version},
                         {"driver", device.driver},
                         {"compute_units", device.compute_units},
                         {"clock_mhz", device.clock_mhz},
                         {"memory_bytes", device.memory_bytes}});
    }
    list.push_back({{"name", platform.name},
                    {"vendor", platform.vendor},
                    {"version", platform.version},
                    {"devices", std::move(devices)}});
  }
  return {{"platforms", std::move(list)}};
}

}  // namespace hawser::tools
