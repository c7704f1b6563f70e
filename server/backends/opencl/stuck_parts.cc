// SPDX-License-Identifier: Apache-2.0
// Parts that do not behave as parts should: see server/worker/split_alarm.h. The rest is in splitter.h.
#include <utility>

#include "server/backends/opencl/splitter.h"

namespace hawser::server::ocl {

uint64_t Splitter::Expected(const std::optional<scheduler::KernelKey>& key, uint64_t items) {
  // Where the settings say how large parts are, how long they take is nobody's affair.
  if (!key || settings_.size != 0) return 0;
  return history_.Estimate(*key, items).value_or(0);
}

void Splitter::Judge(const SplitJob& job, uint64_t items, uint64_t expected, uint64_t time) {
  if (!job.key) return;
  alarms_.OnEnd(*job.key, job.name, expected, time);
  // That it waited says nothing of its speed.
  if (!alarms_.IsRaised(*job.key)) history_.Learn(*job.key, items, time);
}

bool Splitter::IsStuck(Lane& lane, UnderWay& part, const SplitJob& job) {
  PartWatch watch(part.expected);
  std::unique_lock<std::mutex> lock(lane.mutex);
  for (;;) {
    const auto is_over = [&] { return part.ended || stopping_; };
    if (lane.changed.wait_until(lock, watch.NextLook(Clock::now()), is_over)) return false;
    lock.unlock();
    cl_int execution = CL_QUEUED;
    clGetEventInfo(part.event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution, nullptr);
    if (watch.Look(execution == CL_RUNNING, Clock::now())) break;
    lock.lock();
  }
  alarms_.OnStuck(*job.key, job.name);
  return true;
}

void Splitter::Pay(Lane& lane, SplitJob& job) {
  uint64_t owed = 0;
  {
    const std::lock_guard<std::mutex> lock(lane.mutex);
    std::swap(owed, job.owed);
  }
  if (owed != 0 && !stopping_ && lane.gate->Enter(owed)) lane.gate->Leave(owed, owed);
}

}  // namespace hawser::server::ocl
