// SPDX-License-Identifier: Apache-2.0
// What is kept for a command queue, beyond the driver's own object.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_QUEUE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "server/backends/opencl/handle.h"
#include "server/backends/opencl/native_queue.h"
#include "server/backends/opencl/staging.h"
#include "server/worker/launch_gate.h"
#include "server/worker/open_flight.h"

namespace hawser::server::ocl {

struct ReadyGroup;

/// Shared by the object table and by every completion that is still to come.
struct alignas(64) Queue {
  // What every launch of a tenant who is alone looks at, together.
  /// Of its device; null where nothing is split or gated. Set by Splitter::AddQueue(), as is the next one.
  LaunchGate* gate = nullptr;
  bool bounded = false;  ///< The gate bounds what is under way unasked.
  bool in_order = true;
  bool open_closed = false;  ///< Nothing runs unasked behind `open_end`. Written by the executor, under open_mutex.
  bool held = false;         ///< The executor's: a lane has, or had, launches of it to let go.
  OpenFlight<Handle<cl_event>> open;  ///< The executor's; in order: how far the queue is ahead of the device.

  Handle<cl_context> context;
  NativeQueue native;
  bool profiling = false;
  uint32_t version = 0;  ///< The device's, 10 * major + minor.

  // The executor's.
  uint64_t number = 0;      ///< Of the newest command, counted from 1.
  Handle<cl_event> last;    ///< The newest command's event; in-order queues only.
  StagingPool::Owned slab;  ///< Where small writes of an in-order queue keep their data; see Transfers.
  uint64_t slab_used = 0;
  /// What the commands of an in-order queue wait for, beside each other and the device.
  enum class Ahead : uint8_t {
    kNothing,  ///< All runs by itself.
    kLane,     ///< Launches that the lane has been given already, in their order.
    kUnknown,  ///< Other queues, the guest, its data, or a launch that the lane will be given later.
  };
  Ahead ahead = Ahead::kNothing;
  /// What the lane will be given as soon as something is over, in order: see splitter.h. Null: nothing.
  std::shared_ptr<ReadyGroup> group;
  Handle<cl_command_queue> parts;  ///< Where parts of split launches run; null until there is one. See splitter.h.

  // Launches that nobody counts, because the tenant is alone: every few, so that a drain sees them end. See splitter.h.
  std::mutex open_mutex;  ///< A leaf, beside the driver's.
  std::deque<Handle<cl_event>> open_launches;
  Handle<cl_event> open_end;  ///< Waits for the device only; null: so little was enqueued.
  // The executor's.
  uint32_t open_count = 0;  ///< Out of order.
  uint32_t tiny_marks = 0;  ///< Marks in a row behind launches so short that measuring them is felt.
  uint32_t tiny_held = 0;   ///< Such launches while it is held, since the lane was last waited for.
  uint32_t lane_waits = 0;  ///< Waits for the lane, in a row, that were in vain.

  // Any thread's.
  std::atomic<uint32_t> in_lane{0};     ///< Launches that a lane will be given, or has and did not let go yet.
  std::atomic<uint64_t> urgent{0};      ///< Somebody waits for the commands up to this number.
  std::atomic<uint32_t> announcing{0};  ///< Completions that will be announced.
  std::atomic<uint64_t> done{0};        ///< In order: the commands up to this number have ended, as far as was heard.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_QUEUE_H_
