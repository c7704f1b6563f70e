// SPDX-License-Identifier: Apache-2.0
// How much memory a tenant holds. Reserve first, then call the driver; nothing is released while it is still mapped.
#ifndef HAWSER_MEMMGR_LEDGER_H_
#define HAWSER_MEMMGR_LEDGER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace hawser::memmgr {

/// Bytes.
struct LedgerCounters {
  uint64_t held = 0;      ///< Committed: the driver has them.
  uint64_t reserved = 0;  ///< Promised to calls under way.
  uint64_t peak = 0;      ///< The most that was ever held.
  uint64_t limit = 0;     ///< 0: none.
};

/// Thread-safe.
class Ledger {
 public:
  virtual ~Ledger() = default;

  /// Promises `bytes`. False when the tenant would hold more than its limit; then nothing changes.
  virtual bool Reserve(uint64_t bytes) = 0;
  /// The driver gave what was promised.
  virtual void Commit(uint64_t bytes) = 0;
  /// The driver did not.
  virtual void Cancel(uint64_t bytes) = 0;
  /// What was committed is gone.
  virtual void Release(uint64_t bytes) = 0;
  virtual LedgerCounters counters() const = 0;
};

/// A ledger of one process and one tenant, with an optional limit.
class LocalLedger final : public Ledger {
 public:
  explicit LocalLedger(uint64_t limit) : limit_(limit) {}

  bool Reserve(uint64_t bytes) override {
    uint64_t promised = promised_.load(std::memory_order_relaxed);
    do {
      if (bytes > UINT64_MAX - promised) return false;
      if (limit_ != 0 && (bytes > limit_ || promised > limit_ - bytes)) return false;
    } while (!promised_.compare_exchange_weak(promised, promised + bytes, std::memory_order_relaxed));
    return true;
  }
  void Commit(uint64_t bytes) override {
    const uint64_t held = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (held > peak && !peak_.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
    }
  }
  void Cancel(uint64_t bytes) override { promised_.fetch_sub(bytes, std::memory_order_relaxed); }
  void Release(uint64_t bytes) override {
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    promised_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  LedgerCounters counters() const override {
    LedgerCounters counters;
    counters.held = held_.load(std::memory_order_relaxed);
    const uint64_t promised = promised_.load(std::memory_order_relaxed);
    counters.reserved = promised - std::min(promised, counters.held);
    counters.peak = peak_.load(std::memory_order_relaxed);
    counters.limit = limit_;
    return counters;
  }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> promised_{0};  ///< Reserved and committed together.
  std::atomic<uint64_t> held_{0};
  std::atomic<uint64_t> peak_{0};
};

}  // namespace hawser::memmgr

#endif  // HAWSER_MEMMGR_LEDGER_H_
