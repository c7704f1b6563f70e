// SPDX-License-Identifier: Apache-2.0
// How many blocks go into one part, and how long that will take: from the measured speed of the kernel on the device;
// before anything is measured, by paper 004's formula.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_PART_SIZES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_PART_SIZES_H_

#include <cstdint>

#include "server/backends/cuda/kernel_launch.h"
#include "server/backends/cuda/sliced_kernels.h"
#include "server/worker/launch_gate.h"
#include "server/worker/split_settings.h"

namespace hawser::server::cuda_backend {

/// Threading: any thread.
class PartSizes {
 public:
  /// A launch is never cut into more parts, but where the settings say their size.
  static constexpr uint64_t kMostParts = 4096;
  /// Most of its time that a part may spend on blocks that end at once: one in so many.
  static constexpr uint64_t kInVain = 20;

  /// All borrowed. `cores`: of the device, for first rounds.
  PartSizes(const SplitSettings* settings, const LaunchGate* gate, scheduler::KernelHistory* history, uint64_t cores)
      : settings_(settings), gate_(gate), history_(history), cores_(cores) {}

  /// False: the settings say how large parts are, whatever they take.
  bool FromTheGate() const { return settings_->size == 0; }
  /// What the gate is asked for where nothing is known: something, or any number of such launches would fit in a slice.
  static constexpr uint64_t kUnknownNs = 250'000;
  static constexpr uint64_t Asked(uint64_t estimate) { return estimate != 0 ? estimate : kUnknownNs; }

  /// Nanoseconds; 0: not known.
  uint64_t Estimate(const KernelFacts* kernel, uint64_t threads) const;
  /// Sizes of its parts follow from more than a guess: its speed was measured, or the settings say them.
  bool IsKnown(const KernelFacts& kernel) const;
  /// Whether splitting it would be of any use now. What is not known yet is long when it has more than two first
  /// groups: whole, it might keep the device for any time.
  bool IsLong(const KernelFacts& kernel, const KernelLaunch& launch) const;
  /// Blocks of the next part, of `remaining`; at least 1.
  uint64_t Blocks(const KernelFacts& kernel, const KernelLaunch& launch, uint64_t remaining) const;

 private:
  /// How long a part should be of which the gate says that it be so long; 0: no parts.
  static uint64_t LengthNs(uint64_t gates, const KernelFacts& kernel, const KernelLaunch& launch);

  const SplitSettings* const settings_;
  const LaunchGate* const gate_;
  scheduler::KernelHistory* const history_;
  const uint64_t cores_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_PART_SIZES_H_
