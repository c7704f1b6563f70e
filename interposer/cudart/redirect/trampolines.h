// SPDX-License-Identifier: Apache-2.0
// Small pieces of code near a program or library, each of which goes on to a function elsewhere. Where that is, is
// found when it is first reached, so a program that never calls CUDA does not pay for it.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_TRAMPOLINES_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_TRAMPOLINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hawser::redirect {

/// Knows where trampolines go.
class Destination {
 public:
  Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  virtual ~Destination() = default;
  /// The function of that name. Called by whoever reaches its trampoline for the first time, with none of the loader's
  /// locks held: by several threads at once where several do. Each answer must do.
  virtual uintptr_t Find(const std::string& name) = 0;
};

/// Makes one trampoline for each name, in memory within reach of [low, high). Returns their addresses, or nothing when
/// there is no memory within reach. The trampolines live for ever, and so must `destination`.
std::vector<uintptr_t> MakeTrampolines(const std::vector<std::string>& names, Destination* destination, uintptr_t low,
                                       uintptr_t high);

/// A trampoline that goes to `target`, within reach of `from`; 0 when there is no memory.
uintptr_t MakeJumpTo(uintptr_t from, uintptr_t target);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_TRAMPOLINES_H_
