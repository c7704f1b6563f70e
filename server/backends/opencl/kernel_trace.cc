// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/kernel_trace.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace hawser::server::ocl {

/// Shared by the two callbacks, whose order the driver chooses.
struct KernelTrace::Record {
  std::shared_ptr<KernelTrace> owner;
  uint32_t track = 0;
  std::string name;
  uint64_t enqueued_ns = 0;
  std::atomic<uint64_t> running_ns{0};
};

void KernelTrace::Watch(cl_event event, cl_kernel kernel, uint32_t track) {
  auto record = std::make_shared<Record>();
  record->owner = shared_from_this();
  record->track = track;
  record->enqueued_ns = TraceRing::Now();
  size_t size = 0;
  if (clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) == CL_SUCCESS && size > 1) {
    record->name.resize(size);
    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, record->name.data(), nullptr);
    record->name.resize(size - 1);  // Without the zero.
  }
  const auto watch = [&](cl_int status, auto callback) {
    auto holder = std::make_unique<std::shared_ptr<Record>>(record);
    if (clSetEventCallback(event, status, callback, holder.get()) == CL_SUCCESS) (void)holder.release();
  };
  watch(CL_RUNNING, &OnRunning);
  watch(CL_COMPLETE, &OnComplete);
}

void CL_CALLBACK KernelTrace::OnRunning(cl_event, cl_int, void* user_data) {
  const std::unique_ptr<std::shared_ptr<Record>> record(static_cast<std::shared_ptr<Record>*>(user_data));
  (*record)->running_ns.store(TraceRing::Now(), std::memory_order_relaxed);
}

void CL_CALLBACK KernelTrace::OnComplete(cl_event event, cl_int status, void* user_data) {
  const uint64_t now = TraceRing::Now();
  const std::unique_ptr<std::shared_ptr<Record>> holder(static_cast<std::shared_ptr<Record>*>(user_data));
  const Record& record = **holder;
  if (status != CL_COMPLETE || !record.owner->Wanted()) return;
  uint64_t begin = 0, end = 0;
  if (!record.owner->DeviceTimes(event, now, &begin, &end)) {
    begin = record.running_ns.load(std::memory_order_relaxed);
    // A driver that tells both at the end, or not in order.
    if (begin == 0) begin = record.enqueued_ns;
    end = now;
  }
  record.owner->stats_->ring.Record(TraceRingKind::kKernel, record.track, begin, end, record.name);
}

bool KernelTrace::DeviceTimes(cl_event event, uint64_t now, uint64_t* begin, uint64_t* end) {
  cl_ulong start_time = 0, end_time = 0;
  cl_command_queue queue = nullptr;
  cl_device_id device = nullptr;
  if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start_time), &start_time, nullptr) !=
          CL_SUCCESS ||
      clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end_time), &end_time, nullptr) != CL_SUCCESS ||
      clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, nullptr) != CL_SUCCESS || queue == nullptr ||
      clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, nullptr) != CL_SUCCESS) {
    return false;
  }
  // This callback comes some time after the end, never before it: the smallest difference is nearest to the truth.
  const int64_t seen = static_cast<int64_t>(now) - static_cast<int64_t>(end_time);
  int64_t difference = seen;
  {
    const std::lock_guard lock(mutex_);
    int64_t& least = monotonic_minus_device_.emplace(device, seen).first->second;
    difference = least = std::min(least, seen);
  }
  *end = static_cast<uint64_t>(static_cast<int64_t>(end_time) + difference);
  *begin = *end - std::min<uint64_t>(*end, end_time - std::min(start_time, end_time));
  return true;
}

}  // namespace hawser::server::ocl
