// SPDX-License-Identifier: Apache-2.0
// Memory within reach of a 32-bit relative jump from a piece of code. Never freed: code may jump to it for ever.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_NEAR_MEMORY_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_NEAR_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace hawser::redirect {

/// Maps `size` bytes (whole pages), readable and writable, so that every byte of [low, high) and every byte of the new
/// memory lie less than 2 GiB apart. Null when there is no such hole.
void* MapNear(uintptr_t low, uintptr_t high, size_t size);

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_NEAR_MEMORY_H_
