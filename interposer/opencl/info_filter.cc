// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/info_filter.h"

#include <cstring>
#include <string_view>

#include "interposer/opencl/extension_filter.h"

namespace hawser::ocl {
namespace {

/// Parameters that exist only with an extension. Whatever is neither core nor listed here is not answered, so that a
/// program never finds a fact about something that it cannot use.
struct ExtensionParams {
  cl_uint first, last;
  std::string_view extension;
};
constexpr ExtensionParams kExtensionParams[] = {
    {0x105F, 0x105F, "cl_khr_extended_versioning"},      {0x106A, 0x106E, "cl_khr_device_uuid"},
    {0x1073, 0x1074, "cl_khr_integer_dot_product"},      {0x1076, 0x1076, "cl_khr_kernel_clock"},
    {0x2035, 0x2035, "cl_khr_subgroup_named_barrier"},   {0x4000, 0x400A, "cl_nv_device_attribute_query"},
    {0x4030, 0x404F, "cl_amd_device_attribute_query"},   {0x40E0, 0x40E0, "cl_khr_spir"},
    {0x4108, 0x4108, "cl_intel_required_subgroup_size"}, {0x410F, 0x410F, "cl_khr_pci_bus_info"},
    {0x4230, 0x4230, "cl_ext_cxx_for_opencl"},           {0x4231, 0x4233, "cl_ext_float_atomics"},
    {0x4250, 0x4256, "cl_intel_device_attribute_query"},
};

constexpr cl_uint kDriverVersion = 0x102D;
static_assert(CL_DRIVER_VERSION == kDriverVersion);

bool IsCoreDeviceParam(cl_uint param) {
  // 0x105F and 0x106A to 0x106E lie between core parameters and belong to extensions.
  return (param >= 0x1000 && param <= 0x1069 && param != 0x105F) || (param >= 0x106F && param <= 0x1072);
}

bool IsCorePlatformParam(cl_uint param) {
  return (param >= CL_PLATFORM_PROFILE && param <= CL_PLATFORM_EXTENSIONS_WITH_VERSION) ||
         param == CL_PLATFORM_ICD_SUFFIX_KHR;
}

bool KeepDeviceParam(cl_uint param, std::string_view extensions) {
  if (IsCoreDeviceParam(param)) return true;
  for (const ExtensionParams& params : kExtensionParams) {
    if (param >= params.first && param <= params.last) return HasExtension(extensions, params.extension);
  }
  return false;
}

void SetText(InfoMap& info, cl_uint param, const std::string& text) {
  const auto it = info.find(param);
  if (it == info.end() || it->second.first != CL_SUCCESS) return;
  const auto* bytes = reinterpret_cast<const std::byte*>(text.c_str());
  it->second.second.assign(bytes, bytes + text.size() + 1);
}

template <typename T>
void MaskBits(InfoMap& info, cl_uint param, T mask) {
  const std::optional<T> value = ValueOf<T>(info, param);
  if (!value) return;
  const T masked = *value & mask;
  std::memcpy(info[param].second.data(), &masked, sizeof(masked));
}

void FilterExtensions(InfoMap& info, cl_uint list_param, cl_uint versions_param) {
  SetText(info, list_param, FilterExtensionList(TextOf(info, list_param)));
  const auto versions = info.find(versions_param);
  if (versions != info.end() && versions->second.first == CL_SUCCESS) {
    versions->second.second = FilterExtensionVersions(versions->second.second);
  }
}

}  // namespace

void FilterPlatformInfo(InfoMap& info) {
  FilterExtensions(info, CL_PLATFORM_EXTENSIONS, CL_PLATFORM_EXTENSIONS_WITH_VERSION);
  std::erase_if(info, [](const auto& entry) { return !IsCorePlatformParam(entry.first); });
}

void FilterDeviceInfo(InfoMap& info) {
  FilterExtensions(info, CL_DEVICE_EXTENSIONS, CL_DEVICE_EXTENSIONS_WITH_VERSION);
  const std::string extensions = TextOf(info, CL_DEVICE_EXTENSIONS);
  std::erase_if(info, [&](const auto& entry) { return !KeepDeviceParam(entry.first, extensions); });
  // Host functions cannot run on the server, and host and device do not share fine-grained memory.
  MaskBits<cl_device_exec_capabilities>(info, CL_DEVICE_EXECUTION_CAPABILITIES, ~cl_bitfield{CL_EXEC_NATIVE_KERNEL});
  MaskBits<cl_device_svm_capabilities>(info, CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
}

std::string TextOf(const InfoMap& info, cl_uint param) {
  const auto it = info.find(param);
  if (it == info.end() || it->second.first != CL_SUCCESS) return {};
  const auto* text = reinterpret_cast<const char*>(it->second.second.data());
  return std::string(text, strnlen(text, it->second.second.size()));
}

cl_int ReturnFrom(const InfoMap& info, cl_uint param, size_t size, void* out, size_t* size_ret) {
  const auto it = info.find(param);
  if (it == info.end()) return CL_INVALID_VALUE;
  if (it->second.first != CL_SUCCESS) return it->second.first;
  return ReturnInfo(it->second.second.data(), it->second.second.size(), size, out, size_ret);
}

cl_uint ParseVersion(std::string_view version) {
  constexpr std::string_view kPrefix = "OpenCL ";
  if (version.substr(0, kPrefix.size()) != kPrefix) return 0;
  version.remove_prefix(kPrefix.size());
  cl_uint numbers[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    size_t digits = 0;
    while (digits < version.size() && digits < 3 && version[digits] >= '0' && version[digits] <= '9') {
      numbers[i] = numbers[i] * 10 + static_cast<cl_uint>(version[digits++] - '0');
    }
    if (digits == 0) return 0;
    version.remove_prefix(digits);
    if (i == 0) {
      if (version.empty() || version.front() != '.') return 0;
      version.remove_prefix(1);
    }
  }
  return numbers[0] * 100 + numbers[1] * 10;
}

}  // namespace hawser::ocl
