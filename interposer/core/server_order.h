// SPDX-License-Identifier: Apache-2.0
// The order of two threads that goes over the server: one sends a command, the server goes on behind it, and another
// thread gets what comes of it (an answer, data, the wish to run a function). Processors keep it; ThreadSanitizer,
// which sees one process, has to be told.
#ifndef HAWSER_INTERPOSER_CORE_SERVER_ORDER_H_
#define HAWSER_INTERPOSER_CORE_SERVER_ORDER_H_

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace hawser::guest {

#if defined(__SANITIZE_THREAD__)
inline char g_server_order;
/// Something is about to be sent: what this thread has done comes before what the server does next.
inline void BeforeServer() { __tsan_release(&g_server_order); }
/// Something came from the server.
inline void BehindServer() { __tsan_acquire(&g_server_order); }
#else
inline void BeforeServer() {}
inline void BehindServer() {}
#endif

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_SERVER_ORDER_H_
