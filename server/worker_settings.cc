// SPDX-License-Identifier: Apache-2.0
#include "server/worker_settings.h"

#include <charconv>
#include <type_traits>

#include "wire/sha256.h"

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// Calls visit(key, member) for each field, so that writing and reading cannot disagree.
template <typename Settings, typename Visitor>
void ForEachField(Settings& settings, Visitor&& visit) {
  visit("session", settings.session);
  visit("tenant", settings.tenant);
  visit("program", settings.program);
  visit("guest_pid", settings.guest_pid);
  visit("transport", settings.transport);
  visit("api", settings.api);
  visit("server_pid", settings.server_pid);
  visit("device_memory", settings.device_memory);
  visit("staging_memory", settings.staging_memory);
  visit("max_objects", settings.max_objects);
  visit("inline_limit", settings.inline_limit);
  visit("address_space", settings.address_space);
  visit("open_files", settings.open_files);
  visit("grants", settings.grants);
  visit("exports", settings.exports);
  visit("share_memory", settings.share_memory);
  visit("syscall_filter", settings.syscall_filter);
  visit("confine", settings.confine);
  visit("writable", settings.writable);
  visit("driver_cache", settings.driver_cache);
  visit("temporary", settings.temporary);
  visit("spin_us", settings.spin_us);
  visit("run_as_uid", settings.run_as_uid);
  visit("run_as_gid", settings.run_as_gid);
  visit("cuda_device", settings.cuda_device);
  visit("cuda_memory", settings.cuda_memory);
  visit("cuda_driver", settings.cuda_driver);
  visit("cuda_cache", settings.cuda_cache);
  visit("cuda_cache_size", settings.cuda_cache_size);
}

struct EnumRange {
  unsigned first, last;
};
constexpr EnumRange RangeOf(wire::Transport) { return {1, 4}; }
constexpr EnumRange RangeOf(wire::Api) { return {0, wire::kApiCount - 1}; }
constexpr EnumRange RangeOf(CudaDevice) { return {0, 2}; }
constexpr EnumRange RangeOf(CudaMemory) { return {0, 3}; }

template <typename T>
std::string ToText(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return OneLine(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<unsigned>(value));
  } else {
    return std::to_string(value);
  }
}

template <typename T>
bool FromText(std::string_view text, T* value) {
  if constexpr (std::is_same_v<T, std::string>) {
    *value = text;
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    *value = text == "1";
    return text == "0" || text == "1";
  } else if constexpr (std::is_enum_v<T>) {
    constexpr EnumRange kRange = RangeOf(T{});
    unsigned number = 0;
    if (!FromText(text, &number) || number < kRange.first || number > kRange.last) return false;
    *value = static_cast<T>(number);
    return true;
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && end == text.data() + text.size();
  }
}

}  // namespace

std::string_view CudaDeviceName(CudaDevice device) {
  switch (device) {
    case CudaDevice::kAuto:
      return "auto";
    case CudaDevice::kNvidia:
      return "nvidia";
    case CudaDevice::kSoft:
      return "soft";
  }
  return "?";
}

Result<CudaDevice> ParseCudaDevice(std::string_view name) {
  for (const CudaDevice device : {CudaDevice::kAuto, CudaDevice::kNvidia, CudaDevice::kSoft}) {
    if (name == CudaDeviceName(device)) return device;
  }
  return Status(Code::kInvalid, "'" + std::string(name) + "' is none of auto, nvidia and soft");
}

std::string_view CudaMemoryName(CudaMemory memory) {
  switch (memory) {
    case CudaMemory::kAuto:
      return "auto";
    case CudaMemory::kChunks:
      return "chunks";
    case CudaMemory::kDriver:
      return "driver";
    case CudaMemory::kHeap:
      return "heap";
  }
  return "?";
}

Result<CudaMemory> ParseCudaMemory(std::string_view name) {
  for (const CudaMemory memory : {CudaMemory::kAuto, CudaMemory::kChunks, CudaMemory::kDriver, CudaMemory::kHeap}) {
    if (name == CudaMemoryName(memory)) return memory;
  }
  return Status(Code::kInvalid, "'" + std::string(name) + "' is none of auto, chunks, driver and heap");
}

std::string TenantFolderName(std::string_view tenant) {
  return wire::HexOf(wire::Sha256Of(wire::AsBytes(tenant))).substr(0, 32);
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

std::string WorkerSettings::Serialize() const {
  std::string text;
  ForEachField(*this, [&](const char* key, const auto& value) {
    text += key;
    text += '=';
    text += ToText(value);
    text += '\n';
  });
  return text;
}

Result<WorkerSettings> WorkerSettings::Parse(std::string_view text) {
  WorkerSettings settings;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t mark = line.find('=');
    if (mark == std::string_view::npos) return Status(Code::kInvalid, "no '=' in line '" + std::string(line) + "'");
    const std::string_view key = line.substr(0, mark), value = line.substr(mark + 1);
    bool known = false, good = false;
    ForEachField(settings, [&](const char* name, auto& field) {
      if (key != name) return;
      known = true;
      good = FromText(value, &field);
    });
    if (!known) return Status(Code::kInvalid, "unknown key '" + std::string(key) + "'");
    if (!good) return Status(Code::kInvalid, "bad value in line '" + std::string(line) + "'");
  }
  return settings;
}

}  // namespace hawser::server
