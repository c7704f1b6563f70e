// SPDX-License-Identifier: Apache-2.0
// Overwrites functions in memory, never in the file, by jumps to trampolines.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_PATCHER_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_PATCHER_H_

#include <array>
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

/// Where a jump at the beginning of `function` goes: behind the mark for indirect calls, if there is room for both.
uintptr_t PlaceOfJump(uintptr_t function, size_t room);
/// The jump to `target`, within 2 GiB, that is written there.
std::array<uint8_t, kJumpSize> MakeJump(uintptr_t place, uintptr_t target);

/// Overwrites as many bytes of code as a jump needs, while other threads may come by: whoever reaches `place` meanwhile
/// waits there. Nobody may be between its first byte and its last, so what is replaced is a jump, or code that nobody
/// runs yet. False when the system forbids code that is writable while it runs (nothing is changed then), or when
/// `place` is not even; errno is set.
bool Replace(uintptr_t place, const std::array<uint8_t, kJumpSize>& code);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_PATCHER_H_
