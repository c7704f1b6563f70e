// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/kernel_types.h"

namespace hawser::ocl {
namespace {

struct Scalar {
  std::string_view name;
  uint32_t size;
};
constexpr Scalar kScalars[] = {
    {"char", 1},           {"uchar", 1},         {"unsigned char", 1}, {"short", 2},        {"ushort", 2},
    {"unsigned short", 2}, {"int", 4},           {"uint", 4},          {"unsigned int", 4}, {"long", 8},
    {"ulong", 8},          {"unsigned long", 8}, {"half", 2},          {"float", 4},        {"double", 8},
};

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }
bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

}  // namespace

uint32_t SizeOfType(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos) return 0;
  const std::string_view scalar = name.substr(0, end + 1);
  const std::string_view count = name.substr(end + 1);
  uint32_t elements = 0;
  if (count.empty()) elements = 1;
  if (count == "2") elements = 2;
  if (count == "4") elements = 4;
  if (count == "8") elements = 8;
  if (count == "16") elements = 16;
  for (const Scalar& each : kScalars) {
    if (each.name == scalar) return each.size * elements;
  }
  return 0;
}

void Classify(KernelMetadata::Arg& arg) {
  arg.kind = ArgKind::kUnknown;
  arg.value_size = 0;
  if (arg.status != CL_SUCCESS) return;
  const std::string_view type = arg.type_name;
  if (StartsWith(type, "image") && EndsWith(type, "_t")) {
    arg.kind = ArgKind::kImage;
  } else if (type == "sampler_t") {
    arg.kind = ArgKind::kSampler;
  } else if (type == "queue_t") {
    arg.kind = ArgKind::kQueue;
  } else if ((arg.type_qualifier & CL_KERNEL_ARG_TYPE_PIPE) != 0) {
    arg.kind = ArgKind::kPipe;
  } else if (arg.address == CL_KERNEL_ARG_ADDRESS_LOCAL) {
    arg.kind = ArgKind::kLocal;
  } else if (arg.address == CL_KERNEL_ARG_ADDRESS_GLOBAL || arg.address == CL_KERNEL_ARG_ADDRESS_CONSTANT) {
    arg.kind = ArgKind::kBuffer;
  } else if (arg.address == CL_KERNEL_ARG_ADDRESS_PRIVATE) {
    arg.kind = ArgKind::kValue;
    arg.value_size = SizeOfType(type);
  }
}

}  // namespace hawser::ocl
