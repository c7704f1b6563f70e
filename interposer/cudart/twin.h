// SPDX-License-Identifier: Apache-2.0
// The flavours of the API for programs compiled with --default-stream per-thread: the same functions under names ending
// in _ptsz and _ptds, in which stream 0 means the calling thread's own stream. They are generated (generate.py).
#ifndef HAWSER_INTERPOSER_CUDART_TWIN_H_
#define HAWSER_INTERPOSER_CUDART_TWIN_H_

#include "interposer/cudart/api.h"
#include "interposer/cudart/thread_state.h"

namespace hawser::cudart {

/// While it lives, stream 0 is the calling thread's own stream in this thread.
class PerThreadScope {
 public:
  PerThreadScope() : before_(CurrentThread().per_thread_default) { CurrentThread().per_thread_default = true; }
  ~PerThreadScope() { CurrentThread().per_thread_default = before_; }
  PerThreadScope(const PerThreadScope&) = delete;
  PerThreadScope& operator=(const PerThreadScope&) = delete;

 private:
  const bool before_;
};

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_TWIN_H_
