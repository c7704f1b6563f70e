// SPDX-License-Identifier: Apache-2.0
// Completions are announced on the command channel while the data of reads arrives in its own time. The book knows
// which reads each command comes after (by its wait list, by its place in the queue, by barriers), and holds its
// completion back until their data has landed. The order in which the server announces does not matter. A write of what
// such a read brings takes its data when that has landed, as it does natively; so does a read into the same memory,
// whose data goes in behind that of the earlier ones.
//
// Threading: thread-safe; one mutex, taken only while data is on its way. It also guards the lists of landings in
// queues and events. The functions that free completions return them, so that the caller shows them without the mutex.
// What is to be called then is called by whoever lands the last one, without the mutex.
#ifndef HAWSER_INTERPOSER_OPENCL_LANDING_H_
#define HAWSER_INTERPOSER_OPENCL_LANDING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// What is called when the last of some reads has landed.
struct AfterLandings {
  size_t missing;  ///< The book's mutex.
  std::function<void()> call;
};

/// One read whose data nobody waits for, and where in the program's memory that goes (nowhere: 0 to 0).
struct Landing {
  Landing(const void* memory, size_t size) : begin(reinterpret_cast<uintptr_t>(memory)), end(begin + size) {}

  const uintptr_t begin, end;
  std::atomic<bool> landed{false};
  std::atomic<cl_int> failure{CL_SUCCESS};
  std::vector<cl_event> held;  ///< Completions that wait for it, each with a use; the book's mutex.
  std::vector<std::shared_ptr<AfterLandings>> then;  ///< The book's mutex.
};
using Landings = std::vector<std::shared_ptr<Landing>>;

class LandingBook {
 public:
  /// The process's book, never destroyed.
  static LandingBook& Get();

  /// A read into that memory is about to be sent.
  std::shared_ptr<Landing> Open(const void* memory = nullptr, size_t size = 0);
  /// Its data is there, or never will be (`failure`). Returns completions that may be shown now.
  std::vector<cl_event> Land(const std::shared_ptr<Landing>& landing, cl_int failure);
  /// No data is on its way: nothing else need be asked.
  bool Empty() const { return count_.load(std::memory_order_acquire) == 0; }

  /// What a new command of the queue comes after.
  Landings Before(cl_command_queue queue, cl_command_type type, cl_uint count, const cl_event* wait_list);
  /// The command was sent: what comes after it in the queue comes after these, and after its own read (or null).
  void Sent(cl_command_queue queue, cl_command_type type, const Landings& before, std::shared_ptr<Landing> own);
  /// Everything on its way to the queue's commands so far.
  Landings Of(cl_command_queue queue);

  /// The server announced that `event` is final. True: it is held (with a use) until data has landed; Land() will
  /// return it.
  bool Hold(cl_event event);

  static bool Landed(const Landings& landings);
  /// Those that bring data to the memory, and have not yet.
  static Landings Overlapping(const Landings& landings, const void* memory, size_t size);
  /// Calls when all have landed: at once if they have, else from Land().
  void Then(const Landings& landings, std::function<void()> call);

 private:
  std::mutex mutex_;
  std::atomic<size_t> count_{0};
};

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_LANDING_H_
