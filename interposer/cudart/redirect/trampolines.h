// SPDX-License-Identifier: Apache-2.0
// Small pieces of code near a program, each of which goes on to a function of our runtime. Our runtime is opened by the
// first that is reached, so a program that never calls CUDA does not pay for it.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_TRAMPOLINES_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_TRAMPOLINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hawser::redirect {

/// Makes one trampoline for each name, in memory within reach of [low, high). `major` says which of our runtimes.
/// Returns their addresses, or nothing when there is no memory within reach. The trampolines live for ever.
std::vector<uintptr_t> MakeTrampolines(const std::vector<std::string>& names, int major, uintptr_t low, uintptr_t high);

/// A trampoline that goes to `target`, within reach of `from`; 0 when there is no memory.
uintptr_t MakeJumpTo(uintptr_t from, uintptr_t target);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_TRAMPOLINES_H_
