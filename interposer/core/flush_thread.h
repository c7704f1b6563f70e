// SPDX-License-Identifier: Apache-2.0
// Hands a socket what was sent and not flushed: about 50 us after the first byte of a batch.
#ifndef HAWSER_INTERPOSER_CORE_FLUSH_THREAD_H_
#define HAWSER_INTERPOSER_CORE_FLUSH_THREAD_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "interposer/core/command_stream.h"

namespace hawser::guest {

/// The thread starts with the first batch. A batch costs one lock, and one wake-up only if the thread sleeps: while
/// batches keep coming it looks by itself, less often the longer the application flushes everything itself.
///
/// Lock order: stream mutex, then this class's mutex. The stream is flushed without the latter.
class FlushThread {
 public:
  explicit FlushThread(CommandStream* stream) : stream_(stream) {}
  /// A batch began. Called under the stream mutex.
  void Arm();

 private:
  static void Run(void* self) { static_cast<FlushThread*>(self)->Main(); }
  void Main();

  CommandStream* const stream_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool started_ = false;
  bool armed_ = false;
  bool sleeping_ = false;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_FLUSH_THREAD_H_
