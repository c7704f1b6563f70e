// SPDX-License-Identifier: Apache-2.0
// What the driver knows of a thread of the program: its stack of contexts, and which default stream and capture mode it
// uses.
//
// Threads: each sees its own. It is never destroyed on the main thread, whose exit handlers still call.
#ifndef HAWSER_SOFTCUDA_DRIVER_THREAD_STATE_H_
#define HAWSER_SOFTCUDA_DRIVER_THREAD_STATE_H_

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "softcuda/driver/context.h"

namespace hawser::soft {

struct ThreadState {
  uint64_t number = 0;  ///< Unique in the process.
  std::vector<ContextPtr> contexts;
  int per_thread_depth = 0;  ///< > 0: stream 0 is the thread's own.
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

ThreadState& ThisThread();

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_THREAD_STATE_H_
