// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/device_runtime.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/exec/kernel_runtime.h"
#include "softcuda/ptx/module.h"

namespace hawser::exec {
namespace {

/// Cooperative groups. A grid's handle is the address of its workspace, which cooperative launches alone have. Its
/// second word counts the blocks that arrived: the first block adds what makes the sum of all flip the top bit, as
/// cooperative_groups.h has it inline, so that both kinds of grid.sync() meet.
constexpr std::string_view kGroups = R"(
.version 7.0
.target sm_50
.address_size 64

.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %other;
  .reg .b32 %scope, %high, %low;
  .reg .b64 %handle;
  ld.param.u32 %scope, [scope];
  mov.u64 %handle, 0;
  setp.ne.u32 %other, %scope, 1;
  @%other bra done;
  mov.u32 %high, %envreg1;
  mov.u32 %low, %envreg2;
  mov.b64 %handle, {%low, %high};
done:
  st.param.b64 [handle], %handle;
  ret;
}

.visible .func (.param .b32 error) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %none, %other, %first, %waits;
  .reg .b32 %error, %x, %y, %z, %others, %add, %before, %now;
  .reg .b64 %handle;
  ld.param.u64 %handle, [handle];
  mov.u32 %error, 1;
  setp.eq.u64 %none, %handle, 0;
  @%none bra done;
  barrier.sync 0;
  mov.u32 %x, %tid.x;
  mov.u32 %y, %tid.y;
  mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y;
  or.b32 %x, %x, %z;
  setp.ne.u32 %other, %x, 0;
  @%other bra together;
  mov.u32 %x, %nctaid.x;
  mov.u32 %y, %nctaid.y;
  mov.u32 %z, %nctaid.z;
  mul.lo.u32 %others, %x, %y;
  mul.lo.u32 %others, %others, %z;
  sub.u32 %others, %others, 1;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  or.b32 %x, %x, %y;
  or.b32 %x, %x, %z;
  setp.eq.u32 %first, %x, 0;
  sub.u32 %add, 0x80000000, %others;
  selp.u32 %add, %add, 1, %first;
  fence.acq_rel.gpu;
  atom.add.u32 %before, [%handle + 4], %add;
arriving:
  ld.volatile.u32 %now, [%handle + 4];
  xor.b32 %now, %now, %before;
  and.b32 %now, %now, 0x80000000;
  setp.eq.u32 %waits, %now, 0;
  @%waits bra arriving;
  fence.acq_rel.gpu;
together:
  barrier.sync 0;
  mov.u32 %error, 0;
done:
  st.param.b32 [error], %error;
  ret;
}

.visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %error, %flags;
  .reg .b64 %handle;
  ld.param.u64 %handle, [handle];
  ld.param.u32 %flags, [flags];
  {
    .param .b64 of;
    .param .b32 with;
    .param .b32 result;
    st.param.b64 [of], %handle;
    st.param.b32 [with], %flags;
    call.uni (result), cudaCGSynchronizeGrid, (of, with);
    ld.param.b32 %error, [result];
  }
  st.param.b32 [error], %error;
  ret;
}
)";

struct ErrorText {
  int32_t number;
  std::string_view name;
  std::string_view text;
};

/// Every RuntimeError, as the runtime's manual words it. The last stands for all others.
constexpr std::array kErrors = {
    ErrorText{RuntimeError::kSuccess, "cudaSuccess", "no error"},
    ErrorText{RuntimeError::kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    ErrorText{RuntimeError::kMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    ErrorText{RuntimeError::kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    ErrorText{RuntimeError::kInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    ErrorText{RuntimeError::kLaunchMaxDepthExceeded, "cudaErrorLaunchMaxDepthExceeded",
              "launch would exceed maximum depth of nested launches"},
    ErrorText{RuntimeError::kInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    ErrorText{RuntimeError::kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    ErrorText{RuntimeError::kUnsupportedLimit, "cudaErrorUnsupportedLimit",
              "limit is not supported on this architecture"},
    ErrorText{RuntimeError::kInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    ErrorText{RuntimeError::kLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
              "too many resources requested for launch"},
    ErrorText{RuntimeError::kNotSupported, "cudaErrorNotSupported", "operation not supported"},
    ErrorText{-1, "unrecognized error code", "unrecognized error code"},
};

/// A function from an error's number to an address in `hawser_errors`, where the texts lie one behind the other.
std::string Lookup(const std::string& function, const std::vector<size_t>& offsets) {
  std::string out = ".visible .func (.param .b64 text) " + function + "(.param .b32 error)\n{\n";
  out +=
      "  .reg .pred %this;\n  .reg .b32 %error, %offset;\n  .reg .b64 %text, %wide;\n  ld.param.u32 %error, [error];\n";
  out += "  mov.u32 %offset, " + std::to_string(offsets.back()) + ";\n";
  for (size_t i = 0; i + 1 < kErrors.size(); ++i) {
    out += "  setp.eq.s32 %this, %error, " + std::to_string(kErrors[i].number) + ";\n";
    out += "  selp.b32 %offset, " + std::to_string(offsets[i]) + ", %offset, %this;\n";
  }
  out += "  mov.u64 %text, hawser_errors;\n  cvta.global.u64 %text, %text;\n  cvt.u64.u32 %wide, %offset;\n";
  return out + "  add.u64 %text, %text, %wide;\n  st.param.b64 [text], %text;\n  ret;\n}\n";
}

std::string ErrorsText() {
  std::string bytes;
  size_t size = 0;
  const auto add = [&](std::string_view text) {
    const size_t offset = size;
    for (const char c : text) bytes += std::to_string(static_cast<int>(c)) + ", ";
    bytes += "0, ";
    size += text.size() + 1;
    return offset;
  };
  std::vector<size_t> names, texts;
  for (const ErrorText& error : kErrors) {
    names.push_back(add(error.name));
    texts.push_back(add(error.text));
  }
  std::string text = ".version 7.0\n.target sm_50\n.address_size 64\n.global .align 1 .b8 hawser_errors[";
  text += std::to_string(size + 1) + "] = {" + bytes + "0};\n";
  for (const std::string prefix : {"cuda", "__cudaCDP2"}) {
    text += Lookup(prefix + "GetErrorName", names) + Lookup(prefix + "GetErrorString", texts);
  }
  return text;
}

std::shared_ptr<const ptx::Module> Parsed(std::string_view text) {
  auto result = ptx::Parse(text);
  return result.ok() ? std::move(result.value()) : nullptr;
}

std::shared_ptr<const ptx::Module> Groups() {
  static const auto module = Parsed(kGroups);
  return module;
}

std::shared_ptr<const ptx::Module> Errors() {
  static const auto module = Parsed(ErrorsText());
  return module;
}

struct Part {
  std::shared_ptr<const ptx::Module> (*module)();
  std::array<std::string_view, 4> names;
};

constexpr std::array kParts = {
    Part{Groups, {"cudaCGGetIntrinsicHandle", "cudaCGSynchronize", "cudaCGSynchronizeGrid"}},
    Part{Errors, {"cudaGetErrorName", "cudaGetErrorString", "__cudaCDP2GetErrorName", "__cudaCDP2GetErrorString"}},
};

bool Needs(const Part& part, std::span<const std::shared_ptr<const ptx::Module>> modules) {
  bool named = false;
  for (const auto& module : modules) {
    for (const ptx::Function& function : module->functions) {
      if (std::find(part.names.begin(), part.names.end(), function.name) == part.names.end()) continue;
      if (function.defined) return false;
      named = true;
    }
  }
  return named;
}

}  // namespace

std::vector<std::shared_ptr<const ptx::Module>> DeviceRuntimeFor(
    std::span<const std::shared_ptr<const ptx::Module>> modules) {
  std::vector<std::shared_ptr<const ptx::Module>> needed;
  for (const Part& part : kParts) {
    if (Needs(part, modules)) needed.push_back(part.module());
  }
  return needed;
}

}  // namespace hawser::exec
