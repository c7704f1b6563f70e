// SPDX-License-Identifier: Apache-2.0
// How system calls (functions that no module defines) read their arguments and give their results. Private to
// softcuda/exec.
#ifndef HAWSER_SOFTCUDA_EXEC_SYSTEM_CALLS_H_
#define HAWSER_SOFTCUDA_EXEC_SYSTEM_CALLS_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "softcuda/exec/warp.h"

namespace hawser::exec {

struct SystemCall {
  static constexpr size_t kMaxArguments = 8;

  Handler handler = nullptr;
  size_t arguments = 0;                              ///< At least as many are given.
  std::array<uint32_t, kMaxArguments> structures{};  ///< Bytes of those that are structures of more than 8; others 0.
};

/// An argument of at most 8 bytes, zero-extended.
uint64_t Argument(const Warp& w, const Insn& i, size_t index, uint32_t lane);
/// An argument that is a structure; `bytes` as SystemCall::structures has it.
void StructureArgument(const Warp& w, const Insn& i, size_t index, uint32_t lane, void* to, size_t bytes);
/// Nothing where the caller expects none.
void SetResult(const Warp& w, const Insn& i, uint32_t lane, uint64_t value);

/// The call of the device runtime that has this name, or null (runtime_calls.cc).
const SystemCall* FindRuntimeCall(std::string_view name);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_SYSTEM_CALLS_H_
