// SPDX-License-Identifier: Apache-2.0
#include "server/worker/split_alarm.h"

#include <algorithm>

#include "server/worker_settings.h"

namespace hawser::server {
namespace {

/// Longer patience is no help: whoever keeps the device so long is ended before (scheduler.max_unit_ms).
constexpr uint64_t kMostPatienceNs = 3'600'000'000'000;
constexpr size_t kMostName = 128;

}  // namespace

bool SplitAlarms::IsRaised(const scheduler::KernelKey& key) const {
  if (!any_.load(std::memory_order_acquire)) [[likely]]
    return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = kernels_.find(key);
  return at != kernels_.end() && at->second.raised;
}

bool SplitAlarms::IsTrusted(const scheduler::KernelKey& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = kernels_.find(key);
  return at != kernels_.end() && at->second.trusted;
}

SplitAlarms::Kernel& SplitAlarms::Of(const scheduler::KernelKey& key) {
  if (const auto at = kernels_.find(key); at != kernels_.end()) return at->second;
  if (kernels_.size() >= kMostKernels) {
    const auto behaves = [](const auto& entry) { return !entry.second.raised; };
    const auto at = std::find_if(kernels_.begin(), kernels_.end(), behaves);
    kernels_.erase(at != kernels_.end() ? at : kernels_.begin());
  }
  return kernels_[key];
}

bool SplitAlarms::Raise(Kernel* kernel) {
  if (kernel->raised) return false;
  kernel->raised = true;
  any_.store(true, std::memory_order_release);
  if (raised_ != nullptr) raised_->fetch_add(1, std::memory_order_relaxed);
  return told_ < kMostTold && ++told_ != 0;
}

void SplitAlarms::OnEnd(const scheduler::KernelKey& key, std::string_view name, uint64_t estimated_ns,
                        uint64_t measured_ns) {
  if (measured_ns == 0) return;
  bool tell = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Kernel& kernel = Of(key);
    if (estimated_ns == 0 || measured_ns / kTimes <= std::max(estimated_ns, kRoughNs)) {
      kernel.late = 0;
      kernel.trusted = true;
      return;
    }
    if (++kernel.late >= kInARow) tell = Raise(&kernel);
  }
  if (tell) Tell(name, "its parts took more than twenty times as long as they should");
}

void SplitAlarms::OnStuck(const scheduler::KernelKey& key, std::string_view name) {
  bool tell = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tell = Raise(&Of(key));
  }
  if (tell) Tell(name, "a part of it did not end, so the rest was given to the device beside it");
}

void SplitAlarms::Tell(std::string_view name, std::string_view why) {
  std::string text = "kernel '" + OneLine(name.substr(0, kMostName)) + "' is split no more: ";
  text.append(why).append(
      "; its work-groups may wait for each other. It runs whole from here on, in this session. To have nothing "
      "split: ");
  text.append(setting_).append("=off in the workers' environment");
  log_("warning", text);
}

PartWatch::PartWatch(uint64_t estimated_ns) {
  const uint64_t most = kMostPatienceNs / SplitAlarms::kTimes;
  const uint64_t length = std::min(estimated_ns == 0 ? kUnknownNs : estimated_ns, most);
  patience_ = std::chrono::nanoseconds(std::max(kLeastNs, length * SplitAlarms::kTimes));
}

bool PartWatch::Look(bool runs, Clock::time_point now) {
  if (!runs) return false;
  if (!began_) began_ = now;
  return now - *began_ >= patience_;
}

}  // namespace hawser::server
