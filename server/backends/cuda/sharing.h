// SPDX-License-Identifier: Apache-2.0
// What a session needs once it shares a device, once somebody listens to its kernels, or once it is too far ahead of
// the device. Made then, for this device, so that a session that is alone has none of these threads.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SHARING_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SHARING_H_

#include <functional>
#include <memory>
#include <string>

#include "server/backends/cuda/part_sizes.h"
#include "server/backends/cuda/sliced_kernels.h"
#include "server/backends/cuda/strays.h"
#include "server/backends/cuda/turns.h"
#include "server/backends/cuda/units.h"
#include "server/worker/split_alarm.h"
#include "server/worker/split_settings.h"

namespace hawser::server::cuda_backend {

struct Sharing {
  /// All borrowed. `file`: where speeds of kernels are kept; may be empty.
  Sharing(const DriverTable* driver, LaunchGate* gate, const SplitSettings* settings, const std::string& file,
          uint64_t cores, SessionStatsPage* stats, const Units::Log& log, std::function<void()> wake)
      : alarms(kCudaSplit.variable, log, &stats->split_alarms),
        sizes(settings, gate, &history, cores),
        sliced(driver, log),
        strays(driver, gate),
        turns(driver, gate, &units, &sizes, &sliced, &alarms, &strays, std::move(wake)),
        units(driver, gate, &history, file, &alarms, stats, log) {
    if (!file.empty()) {
      if (const wire::Status status = history.Load(file); !status.ok()) log("warning", status.text());
    }
    units.OnOver([this] { turns.OnUnitOver(); }, [this](uint64_t nanoseconds) { turns.Owe(nanoseconds); });
  }
  /// The gate has been cancelled.
  ~Sharing() {
    turns.Stop();
    strays.Stop();
  }
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

  scheduler::KernelHistory history;
  SplitAlarms alarms;
  PartSizes sizes;
  SlicedKernels sliced;
  Strays strays;
  Turns turns;
  Units units;  ///< Its thread calls turns: it goes first.
};

/// What a session knows of a device whose time is shared out: of all contexts on it.
struct DeviceShare {
  LaunchGate* gate = nullptr;
  bool bounds_open = false;  ///< The gate bounds what is launched between BeginOpen() and EndOpen().
  CUdevice device = 0;       ///< It, or one of those that have this gate.
  std::unique_ptr<Sharing> sharing;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SHARING_H_
