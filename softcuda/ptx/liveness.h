// SPDX-License-Identifier: Apache-2.0
// Where registers are alive, as one interval of instruction positions each.
#ifndef HAWSER_SOFTCUDA_PTX_LIVENESS_H_
#define HAWSER_SOFTCUDA_PTX_LIVENESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "softcuda/ptx/module.h"

namespace hawser::ptx {

/// Instruction i reads at position 2i and writes at 2i + 1.
struct LiveInterval {
  uint32_t begin = kNone;
  uint32_t end = 0;  ///< Inclusive.
  bool used() const { return begin != kNone; }
};

/// Calls f(register, writes, kills): every register that the instruction mentions. `kills`: all lanes that execute it
/// get a new value, and the old one is not needed. A guarded write keeps the old value of the other lanes and so kills
/// nothing.
void ForRegisters(const Function& function, const Instruction& instruction,
                  const std::function<void(uint32_t reg, bool writes, bool kills)>& f);

/// One interval per register that covers every position at which a thread may need its value; none when the function is
/// too large to look at closely.
std::optional<std::vector<LiveInterval>> LiveIntervals(const Function& function);

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_LIVENESS_H_
