// SPDX-License-Identifier: Apache-2.0
// Gives the pages of large freed buffers back to the system, when nobody waits for it.
#ifndef HAWSER_INTERPOSER_CORE_HEAP_RETURNER_H_
#define HAWSER_INTERPOSER_CORE_HEAP_RETURNER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "interposer/core/heap_allocator.h"

namespace hawser::guest {

/// Its thread starts with the first range, and begins to work 50 ms after the last one: a program that releases and
/// allocates in a loop keeps its pages. It sleeps while nothing is stale.
///
/// Lock order: this class's mutex and the allocator's are never held together.
class HeapReturner {
 public:
  explicit HeapReturner(HeapAllocator* heap) : heap_(heap) {}
  /// A range became stale. Any thread.
  void Note();

 private:
  static void Run(void* self) { static_cast<HeapReturner*>(self)->Main(); }
  void Main();
  /// Returns once a range was noted and no other since 50 ms; the number of the last.
  uint64_t AwaitRest(uint64_t done);
  bool IsNewest(uint64_t number);

  HeapAllocator* const heap_;
  std::mutex mutex_;
  std::condition_variable noted_;
  bool started_ = false;
  uint64_t notes_ = 0;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_HEAP_RETURNER_H_
