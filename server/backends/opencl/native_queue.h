// SPDX-License-Identifier: Apache-2.0
// The driver's queue behind a guest's, or two of them: one that measures its commands, for the scheduler, and one that
// does not, for tiny launches of a tenant who is alone. To read the clock for each costs a hundredth of such a launch.
//
// One of the two takes commands at any time. The other one goes on behind the newest command, so the guest's order is
// kept; it sees one queue, in order.
//
// Threading: get() from any thread, the rest from the executor.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_NATIVE_QUEUE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_NATIVE_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "server/backends/opencl/handle.h"

namespace hawser::server::ocl {

/// What the driver is asked for.
struct QueueRecipe {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  uint32_t version = 0;                         ///< The device's, 10 * major + minor.
  std::vector<cl_queue_properties> properties;  ///< Pairs, without the end.

  bool measures() const { return (bits() & CL_QUEUE_PROFILING_ENABLE) != 0; }
  bool in_order() const { return (bits() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0; }
  /// As CL_QUEUE_PROPERTIES has it.
  cl_command_queue_properties bits() const;
  /// The same queue, measuring.
  QueueRecipe Measuring() const;
  Handle<cl_command_queue> Create(cl_int* status) const;
};

class NativeQueue {
 public:
  NativeQueue() = default;
  NativeQueue(const NativeQueue&) = delete;
  NativeQueue& operator=(const NativeQueue&) = delete;

  /// `guest`: what the guest asked for. `measuring`: launches are to be measured all the same. An error of the driver
  /// otherwise.
  cl_int Create(const QueueRecipe& guest, bool measuring);

  /// Where commands go.
  cl_command_queue get() const { return current_.load(std::memory_order_acquire); }
  bool is_plain() const { return plain_ && get() == plain_.get(); }

  /// From here on nothing is measured. `newest`: the event of the newest command; null: there is none. False: it stays
  /// as it was: the guest wants to measure, or the queue is out of order, or the driver cannot.
  bool UsePlain(cl_event newest);
  /// From here on all is. False, out of memory: it stays as it was.
  bool UseMeasuring(cl_event newest);
  /// An event that is over when `event`, of a command that is not measured, is, and that says when. Null: out of
  /// memory.
  Handle<cl_event> MeasuredEnd(cl_event event) const;

 private:
  bool Switch(cl_command_queue to, cl_event newest);

  Handle<cl_command_queue> measuring_;  ///< Or whatever the guest asked for.
  Handle<cl_command_queue> plain_;      ///< Made when first needed.
  QueueRecipe plain_recipe_;
  bool may_be_plain_ = false;
  std::atomic<cl_command_queue> current_{nullptr};
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_NATIVE_QUEUE_H_
