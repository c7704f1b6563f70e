// SPDX-License-Identifier: Apache-2.0
// The memory and the doorbells that hawserd's schedulers and one worker share: for each device that the worker uses the
// page of scheduler/grant/page.h, and how each wakes the other.
//
// Ownership: hawserd creates the memory (a memfd whose size is sealed) and two eventfds for each worker and hands them
// to it when it starts it. hawserd -> worker: futexes in the memory. Worker -> hawserd: the eventfds. The bell is for
// the schedulers, each of which waits for it together with the bells of other workers. Not one futex for all: a worker
// that its guest took over could set it back and so swallow the rings of others. One for all devices of the worker: a
// scheduler that is rung for in vain looks at some pages, and descriptors are dearer. The other eventfd is for the
// first use of a device.
//
// A device is in a slot of the worker's own choice: it writes the device's key there, says that it asked, and rings.
// hawserd takes the slot to that device's scheduler; until then its word is that of a page that had no grant yet, and
// what waits there waits.
//
// Trust: what hawserd reads from the memory is a guest's as far as hawserd knows; scheduler/grant/page.h says what
// comes of it, server/grants/device_schedulers.h what of keys.
#ifndef HAWSER_SERVER_GRANTS_GRANT_SHARE_H_
#define HAWSER_SERVER_GRANTS_GRANT_SHARE_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "scheduler/grant/bell.h"
#include "scheduler/grant/page.h"
#include "server/device_key.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// What a bell in shared memory consists of. All zero is a fresh one.
struct FutexWords {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> waiters;
};

/// A bell whose both sides may be in different processes. One side that dies while it waits leaves a waiter behind:
/// then each ring costs a system call.
class FutexBell final : public scheduler::Bell {
 public:
  /// `words` is borrowed.
  explicit FutexBell(FutexWords& words) : words_(words) {}
  void Ring() override;
  uint64_t Ticket() override { return words_.rings.load(std::memory_order_seq_cst); }
  void Wait(uint64_t ticket, std::chrono::nanoseconds at_most) override;

 private:
  FutexWords& words_;
};

/// A worker's side of a bell that is an eventfd: it can be rung only.
class EventBell final : public scheduler::Bell {
 public:
  explicit EventBell(wire::Fd fd) : fd_(std::move(fd)) {}
  void Ring() override;
  uint64_t Ticket() override { return 0; }
  void Wait(uint64_t, std::chrono::nanoseconds) override {}

 private:
  const wire::Fd fd_;
};

/// One device of a worker.
struct GrantSlot {
  // The worker, once.
  alignas(64) char key[kLongestDeviceKey + 1];  ///< device_key.h. Written before `asked`.
  std::atomic<uint32_t> asked;                  ///< 1: the worker uses this device.
  // hawserd, at any time.
  alignas(64) std::atomic<uint32_t> tenants;  ///< That have had work lately, this worker's among them.
  /// How long before its end the last piece of a grant leaves, so that the next worker is ready when it ends; 0: not.
  std::atomic<uint64_t> handover_ns;

  scheduler::GrantPage page;
  alignas(64) FutexWords submit;  ///< Wakes whoever waits to submit.
  alignas(64) FutexWords alarm;   ///< Wakes whoever ends what runs uncounted.
};

struct GrantSharePage {
  static constexpr uint32_t kMagic = 0x52475748;  // "HWGR"
  static constexpr uint32_t kVersion = 3;

  // hawserd, before the worker starts.
  alignas(64) uint32_t magic;
  uint32_t version;
  uint32_t size;  ///< Bytes of this struct.

  GrantSlot slots[kMostDevices];
};

/// A mapped GrantSharePage. Movable; unmaps at the end.
class GrantShare {
 public:
  /// hawserd: a fresh one.
  static wire::Result<GrantShare> Create();
  /// Worker: the one behind this descriptor, which stays the caller's.
  static wire::Result<GrantShare> Attach(int fd);
  GrantShare() = default;
  GrantShare(GrantShare&& other) noexcept { *this = std::move(other); }
  GrantShare& operator=(GrantShare&& other) noexcept;
  ~GrantShare();

  /// hawserd's descriptor, to give to the worker; -1 after CloseDescriptor() and in a worker.
  int fd() const { return fd_.get(); }
  void CloseDescriptor() { fd_.Reset(); }

  bool valid() const { return page_ != nullptr; }
  GrantSharePage* page() const { return page_; }
  GrantSlot& slot(size_t index) const { return page_->slots[index]; }

 private:
  wire::Fd fd_;
  GrantSharePage* page_ = nullptr;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_GRANTS_GRANT_SHARE_H_
