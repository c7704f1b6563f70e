// SPDX-License-Identifier: Apache-2.0
// Overwrites the entries of an embedded runtime in memory, never in the file, by jumps to trampolines.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_PATCHER_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_PATCHER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hawser::redirect {

struct Patch {
  uintptr_t address = 0;  ///< Of the function.
  size_t room = 0;        ///< Bytes that may be overwritten.
  uintptr_t target = 0;   ///< Within 2 GiB.
};

/// How many bytes a jump needs.
inline constexpr size_t kJumpSize = 5;

/// Writes all the patches. Code pages are made writable without being executable meanwhile, so nobody may run them:
/// call before the object's constructors. False when the system forbids changing code (the pages are as before then),
/// with errno set.
bool Apply(const std::vector<Patch>& patches);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_PATCHER_H_
