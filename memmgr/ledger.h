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

/// A ledger of one session, with an optional limit. Others may look at it and change its limit: see the second
/// constructor.
class LocalLedger final : public Ledger {
 public:
  explicit LocalLedger(uint64_t limit) : fixed_limit_(limit) {}
  /// `limit` is read at each reservation, 0: `otherwise`; `shown` gets what is held. Both outlive the ledger.
  LocalLedger(const std::atomic<uint64_t>* limit, uint64_t otherwise, std::atomic<uint64_t>* shown)
      : limit_(limit), fixed_limit_(otherwise), shown_(shown) {}

  bool Reserve(uint64_t bytes) override {
    const uint64_t most = limit();
    uint64_t promised = promised_.load(std::memory_order_relaxed);
    do {
      if (bytes > UINT64_MAX - promised) return false;
      if (most != 0 && (bytes > most || promised > most - bytes)) return false;
    } while (!promised_.compare_exchange_weak(promised, promised + bytes, std::memory_order_relaxed));
    return true;
  }
  void Commit(uint64_t bytes) override {
    const uint64_t held = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (shown_ != nullptr) shown_->fetch_add(bytes, std::memory_order_relaxed);
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (held > peak && !peak_.compare_exchange_weak(peak, held, std::memory_order_relaxed)) {
    }
  }
  void Cancel(uint64_t bytes) override { promised_.fetch_sub(bytes, std::memory_order_relaxed); }
  void Release(uint64_t bytes) override {
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    if (shown_ != nullptr) shown_->fetch_sub(bytes, std::memory_order_relaxed);
    promised_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  LedgerCounters counters() const override {
    LedgerCounters counters;
    counters.held = held_.load(std::memory_order_relaxed);
    const uint64_t promised = promised_.load(std::memory_order_relaxed);
    counters.reserved = promised - std::min(promised, counters.held);
    counters.peak = peak_.load(std::memory_order_relaxed);
    counters.limit = limit();
    return counters;
  }

 private:
  uint64_t limit() const {
    const uint64_t now = limit_ != nullptr ? limit_->load(std::memory_order_relaxed) : 0;
    return now != 0 ? now : fixed_limit_;
  }

  const std::atomic<uint64_t>* const limit_ = nullptr;
  const uint64_t fixed_limit_;
  std::atomic<uint64_t>* const shown_ = nullptr;
  std::atomic<uint64_t> promised_{0};  ///< Reserved and committed together.
  std::atomic<uint64_t> held_{0};
  std::atomic<uint64_t> peak_{0};
};

}  // namespace hawser::memmgr

#endif  // HAWSER_MEMMGR_LEDGER_H_
