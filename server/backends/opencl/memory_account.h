// SPDX-License-Identifier: Apache-2.0
// How much device memory a session holds, and the memory objects whose end is still to be noticed.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_MEMORY_ACCOUNT_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_MEMORY_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/backends/opencl/cl.h"
#include "server/worker/services.h"
#include "wire/id.h"

namespace hawser::server::ocl {

/// Nothing is given back before the driver has really destroyed the object: until then commands may use it.
///
/// Threading: the executor charges and releases; the driver's destructor callback runs on any thread.
class MemoryAccount : public std::enable_shared_from_this<MemoryAccount> {
 public:
  /// `limit` in bytes, 0: none; the operator may change it at any time. `shown`: what is held, for the operator to see.
  MemoryAccount(Replies* replies, const std::atomic<uint64_t>* limit, std::atomic<uint64_t>* shown)
      : replies_(replies), limit_(limit), shown_(shown) {}

  /// False when the session would hold more than its limit.
  bool Charge(uint64_t bytes) {
    const uint64_t held = held_.load(std::memory_order_relaxed);
    const uint64_t limit = limit_->load(std::memory_order_relaxed);
    // held may be above a limit that was lowered.
    if (limit != 0 && (bytes > limit || held > limit - bytes)) return false;
    held_.fetch_add(bytes, std::memory_order_relaxed);
    shown_->fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }
  void Uncharge(uint64_t bytes) {
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    shown_->fetch_sub(bytes, std::memory_order_relaxed);
  }

  /// Gives the guest's reference back. When the object is gone: uncharges, and sends Released if asked to.
  void Release(cl_mem memory, wire::Id id, uint64_t charge, bool notify);
  /// Sends Released now. From the executor, which flushes when it has nothing to do, no flush is needed.
  void Announce(wire::Id id, bool flush);

  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  /// Objects that were released and are not gone.
  uint32_t pending() const { return pending_.load(std::memory_order_acquire); }

 private:
  struct Pending;
  static void CL_CALLBACK OnDestroyed(cl_mem memory, void* pending);

  Replies* const replies_;
  const std::atomic<uint64_t>* const limit_;
  std::atomic<uint64_t>* const shown_;
  std::atomic<uint64_t> held_{0};
  std::atomic<uint32_t> pending_{0};
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_MEMORY_ACCOUNT_H_
