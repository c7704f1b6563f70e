// SPDX-License-Identifier: Apache-2.0
#include "server/device_key.h"

#include <cstdio>
#include <cstdlib>

namespace hawser::server {

std::string PciDeviceKey(uint32_t domain, uint32_t bus, uint32_t slot) {
  char text[kLongestDeviceKey + 1];
  (void)std::snprintf(text, sizeof(text), "pci:%04x:%02x:%02x", domain, bus, slot);
  return text;
}

std::string NvidiaDeviceKey(size_t ordinal) { return "nvidia:" + std::to_string(ordinal); }

std::string CpuDeviceKey(size_t index) {
  const char* apart = std::getenv("HAWSER_CPU_DEVICES_APART");
  const bool are_apart = apart != nullptr && std::string_view(apart) == "1";
  return are_apart ? "cpu:" + std::to_string(index) : "cpu";
}

std::string OpenClDeviceKey(size_t platform, size_t index) {
  return "opencl:" + std::to_string(platform) + ":" + std::to_string(index);
}

std::string CleanDeviceKey(std::string_view key) {
  std::string clean(key.substr(0, kLongestDeviceKey));
  for (char& c : clean) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':';
    if (!good) c = '_';
  }
  return clean.empty() ? "_" : clean;
}

}  // namespace hawser::server
