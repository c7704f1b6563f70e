// SPDX-License-Identifier: Apache-2.0
// Writes that "block" and are not complete yet, of one context.
//
// A blocking write returns when its data is taken (all that the specification asks for, clEnqueueWriteBuffer), not when
// it is written: that saves a round trip. Behind it in its own in-order queue nobody can tell. But drivers return from
// such a call when the write is complete, so programs go on in another queue, often another thread's, with nothing
// between the two. What is enqueued in other queues of the context therefore waits for these writes, on the server.
// Out-of-order queues do not take part with writes of their own: those wait in the call (transfers.h).
//
// A write has an event for this only where its context has more than one queue. Of what a queue wrote while it was the
// only one a marker is made when another queue is created, or when it is released itself.
//
// Threads: any. Lock order: the context's mutex, which guards its list of queues, then this class's own, under which
// nothing is called.
#ifndef HAWSER_INTERPOSER_OPENCL_BLOCKING_WRITES_H_
#define HAWSER_INTERPOSER_OPENCL_BLOCKING_WRITES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

struct _cl_event;
struct _cl_command_queue;

namespace hawser::ocl {

class Enqueue;

class BlockingWrites {
 public:
  /// One that is on its way; shared by the list and by what its event does at the end.
  struct Write {
    bool over = false;  ///< The list's mutex, as is the next one.
    _cl_event* event = nullptr;
  };

  BlockingWrites() = default;
  BlockingWrites(const BlockingWrites&) = delete;
  BlockingWrites& operator=(const BlockingWrites&) = delete;

  /// False: there is nothing to wait for.
  bool Any() const { return count_.load(std::memory_order_acquire) != 0; }
  /// Adds the events of those in other queues than `queue`, each with a use that the caller drops.
  void OfOthers(_cl_command_queue* queue, std::vector<_cl_event*>* events);

  /// Before the command is sent: has its end told. Null: its queue is the only one.
  static std::shared_ptr<Write> Begin(Enqueue& enqueue);
  /// It was sent.
  static void Sent(Enqueue& enqueue, const std::shared_ptr<Write>& write);
  /// A marker for what `queue` wrote while it was the only one, if some of its commands may be under way.
  static void Mark(_cl_command_queue* queue);

 private:
  static std::shared_ptr<Write> Watch(Enqueue& enqueue);
  void Add(const std::shared_ptr<Write>& write, _cl_event* event);
  void End(Write& write);

  std::atomic<uint32_t> count_{0};  ///< Of `writes_`.
  std::mutex mutex_;
  std::vector<std::shared_ptr<Write>> writes_;
};

/// A queue for commands of the host is made, and ends: the context's list of them.
void AddToContext(_cl_command_queue* queue);
void RemoveFromContext(_cl_command_queue* queue);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_BLOCKING_WRITES_H_
