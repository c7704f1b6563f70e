// SPDX-License-Identifier: Apache-2.0
// Completions are announced on the command channel while the data of reads arrives in its own time. The book holds a
// completion back until the data has landed of every read that it may follow: its own, reads whose completion was
// announced before (whatever made this one wait for them), and earlier reads of the same in-order queue.
//
// Threading: thread-safe; one mutex, taken only while data is on its way. The functions that free completions return
// them, so that the caller shows them without the mutex.
#ifndef HAWSER_INTERPOSER_OPENCL_LANDING_H_
#define HAWSER_INTERPOSER_OPENCL_LANDING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// One read whose data nobody waits for. Its fields belong to the book.
struct Landing {
  uint64_t serial = 0;
  guest::Session* session = nullptr;
  cl_command_queue queue = nullptr;  // Compared only; not owned.
  uint64_t ordinal = 0;              // queue->sent right after its command; 0: not sent yet.
  bool announced = false;            // Its own completion has come.
  bool landed = false;
  bool follows_event = false;        // Lands because its event completes (a map's copy), not before.
  cl_int failure = CL_SUCCESS;
  std::vector<cl_event> held;        // Completions that wait for it, each with a use.
};

class LandingBook {
 public:
  /// The process's book, never destroyed.
  static LandingBook& Get();

  /// A read is about to be sent.
  std::shared_ptr<Landing> Open(cl_command_queue queue, bool follows_event = false);
  /// It was sent as the queue's command number `ordinal`.
  void Sent(Landing& landing, uint64_t ordinal);
  /// Its data is there, or never will be (`failure`). Returns completions that may be shown now.
  std::vector<cl_event> Land(const std::shared_ptr<Landing>& landing, cl_int failure);

  /// The server announced that `event` is final. True: it is held (with a use) until data has landed; Land() will
  /// return it.
  bool Hold(cl_event event);

  /// A mark for Clear(): everything opened so far.
  uint64_t Mark() const { return next_serial_.load(std::memory_order_acquire); }
  /// No read of `queue` up to its command number `ordinal`, and none announced before `mark`, is on its way.
  bool Clear(cl_command_queue queue, uint64_t ordinal, uint64_t mark);
  bool Empty() const { return count_.load(std::memory_order_acquire) == 0; }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Landing>> open_;  // By serial.
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> next_serial_{1};
};

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_LANDING_H_
