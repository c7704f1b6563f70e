// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/extension_filter.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "interposer/opencl/objects.h"

namespace hawser::ocl {
namespace {

// Sorted. Three reasons to be here: language features of kernels; facts that queries tell; host functions that are
// core functions under another name (icd.cc has those).
constexpr std::string_view kAllowed[] = {
    "cl_amd_device_attribute_query",
    "cl_amd_fp64",
    "cl_amd_media_ops",
    "cl_amd_media_ops2",
    "cl_amd_popcnt",
    "cl_amd_printf",
    "cl_amd_vec3",
    "cl_arm_core_id",
    "cl_arm_integer_dot_product_accumulate_int16",
    "cl_arm_integer_dot_product_accumulate_int8",
    "cl_arm_integer_dot_product_accumulate_saturate_int8",
    "cl_arm_integer_dot_product_int8",
    "cl_arm_non_uniform_work_group_size",
    "cl_ext_cxx_for_opencl",
    "cl_ext_float_atomics",
    "cl_ext_image_unorm_int_2_101010",
    "cl_intel_bfloat16_conversions",
    "cl_intel_device_attribute_query",
    "cl_intel_media_block_io",
    "cl_intel_required_subgroup_size",
    "cl_intel_spirv_media_block_io",
    "cl_intel_spirv_subgroups",
    "cl_intel_split_work_group_barrier",
    "cl_intel_subgroup_2d_block_io",
    "cl_intel_subgroup_local_block_io",
    "cl_intel_subgroup_matrix_multiply_accumulate",
    "cl_intel_subgroup_split_matrix_multiply_accumulate",
    "cl_intel_subgroups",
    "cl_intel_subgroups_char",
    "cl_intel_subgroups_long",
    "cl_intel_subgroups_short",
    "cl_khr_3d_image_writes",
    "cl_khr_async_work_group_copy_fence",
    "cl_khr_byte_addressable_store",
    "cl_khr_create_command_queue",
    "cl_khr_depth_images",
    "cl_khr_device_enqueue_local_arg_types",
    "cl_khr_device_uuid",
    "cl_khr_expect_assume",
    "cl_khr_extended_async_copies",
    "cl_khr_extended_bit_ops",
    "cl_khr_extended_versioning",
    "cl_khr_fp16",
    "cl_khr_fp64",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_icd",
    "cl_khr_il_program",
    "cl_khr_image2d_from_buffer",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
    "cl_khr_integer_dot_product",
    "cl_khr_kernel_clock",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_pci_bus_info",
    "cl_khr_priority_hints",
    "cl_khr_select_fprounding_mode",
    "cl_khr_spir",
    "cl_khr_spirv_extended_debug_info",
    "cl_khr_spirv_linkonce_odr",
    "cl_khr_spirv_no_integer_wrap_decoration",
    "cl_khr_srgb_image_writes",
    "cl_khr_subgroup_ballot",
    "cl_khr_subgroup_clustered_reduce",
    "cl_khr_subgroup_extended_types",
    "cl_khr_subgroup_named_barrier",
    "cl_khr_subgroup_non_uniform_arithmetic",
    "cl_khr_subgroup_non_uniform_vote",
    "cl_khr_subgroup_rotate",
    "cl_khr_subgroup_shuffle",
    "cl_khr_subgroup_shuffle_relative",
    "cl_khr_subgroups",
    "cl_khr_throttle_hints",
    "cl_khr_work_group_uniform_arithmetic",
    "cl_nv_compiler_options",
    "cl_nv_device_attribute_query",
    "cl_nv_pragma_unroll",
};
static_assert(std::is_sorted(std::begin(kAllowed), std::end(kAllowed)));

/// Calls visit(name, blanks in front of it) for each name of the list.
template <typename Visitor>
void ForEachName(std::string_view list, Visitor visit) {
  while (!list.empty()) {
    const size_t begin = list.find_first_not_of(' ');
    if (begin == std::string_view::npos) return;
    const std::string_view blanks = list.substr(0, begin);
    list.remove_prefix(begin);
    const size_t end = std::min(list.find(' '), list.size());
    visit(list.substr(0, end), blanks);
    list.remove_prefix(end);
  }
}

}  // namespace

bool ExtensionWorksRemotely(std::string_view name) {
  return std::binary_search(std::begin(kAllowed), std::end(kAllowed), name);
}

std::string FilterExtensionList(std::string_view list) {
  std::string kept;
  ForEachName(list, [&](std::string_view name, std::string_view blanks) {
    if (!ExtensionWorksRemotely(name)) return;
    if (!kept.empty()) kept += blanks;
    kept += name;
  });
  return kept;
}

std::vector<std::byte> FilterExtensionVersions(std::span<const std::byte> versions) {
  std::vector<std::byte> kept;
  if (versions.size() % sizeof(cl_name_version) != 0) return kept;
  for (size_t at = 0; at < versions.size(); at += sizeof(cl_name_version)) {
    cl_name_version entry;
    std::memcpy(&entry, versions.data() + at, sizeof(entry));
    const std::string_view name(entry.name, strnlen(entry.name, sizeof(entry.name)));
    if (!ExtensionWorksRemotely(name)) continue;
    const auto bytes = versions.subspan(at, sizeof(entry));
    kept.insert(kept.end(), bytes.begin(), bytes.end());
  }
  return kept;
}

bool HasExtension(std::string_view list, std::string_view name) {
  bool found = false;
  ForEachName(list, [&](std::string_view each, std::string_view) { found = found || each == name; });
  return found;
}

}  // namespace hawser::ocl
