// SPDX-License-Identifier: Apache-2.0
// Threads that the guest library starts in somebody else's process.
#ifndef HAWSER_INTERPOSER_CORE_OWN_THREAD_H_
#define HAWSER_INTERPOSER_CORE_OWN_THREAD_H_

#include <cstddef>

namespace hawser::guest {

/// Room for the session's own work and for sinks.
inline constexpr size_t kSmallStack = 256u << 10;
/// What the system gives a thread: for threads that run the application's code.
inline constexpr size_t kDefaultStack = 0;

/// Starts a detached thread with all signals blocked, so that the application's handlers keep to its own threads.
/// `name` has at most 15 characters. False when the system has no thread left (logged).
bool StartThread(const char* name, size_t stack, void (*main)(void*), void* context);

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_OWN_THREAD_H_
