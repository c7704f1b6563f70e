// SPDX-License-Identifier: Apache-2.0
// How much a policy that is not trusted may write into the operator's log.
#ifndef HAWSER_SCHEDULER_ISOLATED_LOG_BUDGET_H_
#define HAWSER_SCHEDULER_ISOLATED_LOG_BUDGET_H_

#include <cstdint>

namespace hawser::scheduler {

/// So many lines in each second of the host's time; the last one says that there were more.
class LogBudget {
 public:
  enum class Verdict { kWrite, kWriteLast, kDrop };

  Verdict Take(uint64_t now_ns) {
    const uint64_t second = now_ns / 1'000'000'000;
    if (second != second_) {
      second_ = second;
      lines_ = 0;
    }
    if (lines_ > kLines) return Verdict::kDrop;
    return ++lines_ > kLines ? Verdict::kWriteLast : Verdict::kWrite;
  }

 private:
  static constexpr uint32_t kLines = 100;
  uint64_t second_ = 0;
  uint32_t lines_ = 0;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_LOG_BUDGET_H_
