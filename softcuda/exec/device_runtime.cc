// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/device_runtime.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "softcuda/ptx/module.h"

namespace hawser::exec {
namespace {

/// A grid's handle is the address of its workspace, which cooperative launches alone have. Its second word counts the
/// blocks that arrived: the first block adds what makes the sum of all flip the top bit, as cooperative_groups.h has
/// it inline, so that both kinds of grid.sync() meet.
constexpr std::string_view kText = R"(
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

constexpr std::array<std::string_view, 3> kNames = {"cudaCGGetIntrinsicHandle", "cudaCGSynchronize",
                                                    "cudaCGSynchronizeGrid"};

std::shared_ptr<const ptx::Module> Parsed() {
  static const auto module = [] {
    auto result = ptx::Parse(kText);
    return result.ok() ? std::move(result.value()) : nullptr;
  }();
  return module;
}

}  // namespace

std::shared_ptr<const ptx::Module> DeviceRuntimeFor(std::span<const std::shared_ptr<const ptx::Module>> modules) {
  bool named = false;
  for (const auto& module : modules) {
    for (const ptx::Function& function : module->functions) {
      if (std::find(kNames.begin(), kNames.end(), function.name) == kNames.end()) continue;
      if (function.defined) return nullptr;
      named = true;
    }
  }
  return named ? Parsed() : nullptr;
}

}  // namespace hawser::exec
