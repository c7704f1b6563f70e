// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/blocking_writes.h"

#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/transfers.h"

namespace hawser::ocl {

void BlockingWrites::OfOthers(cl_command_queue queue, std::vector<cl_event>* events) {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Write>& write : writes_) {
    if (write->event->queue != queue) events->push_back(Use(write->event));
  }
}

void BlockingWrites::Add(const std::shared_ptr<Write>& write, cl_event event) {
  const std::lock_guard lock(mutex_);
  if (write->over) return;
  write->event = Use(event);
  writes_.push_back(write);
  count_.store(static_cast<uint32_t>(writes_.size()), std::memory_order_release);
}

void BlockingWrites::End(Write& write) {
  {
    const std::lock_guard lock(mutex_);
    write.over = true;
    std::erase_if(writes_, [&write](const auto& each) { return each.get() == &write; });
    count_.store(static_cast<uint32_t>(writes_.size()), std::memory_order_release);
  }
  // Whoever tells of the end holds a use too: this is not the last one.
  if (write.event != nullptr) DropUse(write.event);
}

std::shared_ptr<BlockingWrites::Write> BlockingWrites::Watch(Enqueue& enqueue) {
  auto write = std::make_shared<Write>();
  // What runs at the end is the event's, which holds its context.
  enqueue.OnComplete([context = enqueue.queue()->context, write] { context->writes.End(*write); });
  return write;
}

std::shared_ptr<BlockingWrites::Write> BlockingWrites::Begin(Enqueue& enqueue) {
  cl_command_queue queue = enqueue.queue();
  const std::atomic<uint32_t>& queues = queue->context->queue_count;
  if (queues.load(std::memory_order_seq_cst) < 2) {
    // In this order; AddToContext() counts first. So one of the two sees the other.
    queue->wrote_alone.store(true, std::memory_order_seq_cst);
    if (queues.load(std::memory_order_seq_cst) < 2) return nullptr;
  }
  return Watch(enqueue);
}

void BlockingWrites::Sent(Enqueue& enqueue, const std::shared_ptr<Write>& write) {
  if (write != nullptr) enqueue.queue()->context->writes.Add(write, enqueue.made());
  if (enqueue.wants_event()) enqueue.made()->returned.store(true, std::memory_order_relaxed);
}

void BlockingWrites::Mark(cl_command_queue queue) {
  if (!queue->wrote_alone.exchange(false, std::memory_order_seq_cst)) return;
  if (queue->finished.load(std::memory_order_acquire) == queue->enqueued.load(std::memory_order_relaxed)) return;
  Enqueue enqueue(queue, CL_COMMAND_MARKER, 0, nullptr, nullptr);
  const std::shared_ptr<Write> write = Watch(enqueue);
  if (SubmitMarker(enqueue) == CL_SUCCESS) queue->context->writes.Add(write, enqueue.made());
}

void AddToContext(cl_command_queue queue) {
  cl_context context = queue->context;
  cl_command_queue only = nullptr;
  {
    const std::lock_guard lock(context->mutex);
    context->queues.push_back(queue);
    context->queue_count.store(static_cast<uint32_t>(context->queues.size()), std::memory_order_seq_cst);
    if (context->queues.size() == 2 && TryUse(context->queues[0])) only = context->queues[0];
  }
  if (only == nullptr) return;
  BlockingWrites::Mark(only);
  DropUse(only);
}

void RemoveFromContext(cl_command_queue queue) {
  cl_context context = queue->context;
  const std::lock_guard lock(context->mutex);
  std::erase(context->queues, queue);
  context->queue_count.store(static_cast<uint32_t>(context->queues.size()), std::memory_order_seq_cst);
}

}  // namespace hawser::ocl
