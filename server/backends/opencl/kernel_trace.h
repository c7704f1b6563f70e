// SPDX-License-Identifier: Apache-2.0
// Records when kernels ran on the device, for the operator's timeline (hawser trace).
//
// Threads: Watch() on whichever thread enqueued the kernel; the driver's callbacks record. Lock: mutex_, for a handful
// of instructions in callbacks; nothing is called under it.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_KERNEL_TRACE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_KERNEL_TRACE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/backends/opencl/cl.h"
#include "server/session_stats.h"

namespace hawser::server::ocl {

/// Times come from the device's own clock where the queue measures (START to END), moved to CLOCK_MONOTONIC by the
/// smallest difference between the two clocks that was ever seen; else from the moments at which the driver says
/// CL_RUNNING and CL_COMPLETE.
class KernelTrace : public std::enable_shared_from_this<KernelTrace> {
 public:
  explicit KernelTrace(SessionStatsPage* stats) : stats_(stats) {}

  bool Wanted() const { return TraceRing::Wants(stats_->trace, TraceRingKind::kKernel); }
  /// `event` is the command that runs `kernel`. An event that ends with an error, and whose driver never says so, keeps
  /// its record (some hundred bytes) until the worker ends.
  void Watch(cl_event event, cl_kernel kernel, uint32_t track);

 private:
  struct Record;
  static void CL_CALLBACK OnRunning(cl_event event, cl_int status, void* record);
  static void CL_CALLBACK OnComplete(cl_event event, cl_int status, void* record);
  /// False when the queue does not measure.
  bool DeviceTimes(cl_event event, uint64_t now, uint64_t* begin, uint64_t* end);

  SessionStatsPage* const stats_;
  std::mutex mutex_;
  std::map<cl_device_id, int64_t> monotonic_minus_device_;  ///< The smallest seen.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_KERNEL_TRACE_H_
