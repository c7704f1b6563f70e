// SPDX-License-Identifier: Apache-2.0
// Transfers over the bulk channel, between a command that was enqueued and the worker's bulk threads.
//
// Mapped: the data goes straight from or to the memory that the driver maps. Queued are a map and, right behind it,
// an unmap that waits for a user event; it is set when the data is through. So later commands of the queue stay
// behind, and no thread waits.
//   read:   map done -> send from the mapping -> sent -> release the unmap
//   write:  map done -> the receiver's target is the mapping -> received -> release the unmap
// Staged: for what cannot be mapped without copies. A read is sent when its command is done; a write waits for a user
// event until its data is there.
//
// Threads: Begin...() on the executor; the rest on driver threads and the worker's bulk threads. Each object deletes
// itself when its last party has come.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_BULK_TRANSFERS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_BULK_TRANSFERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/backends/opencl/completions.h"
#include "server/backends/opencl/staging.h"
#include "server/backends/opencl/user_events.h"

namespace hawser::server::ocl {

/// Sends a mapping.
class MappedRead {
 public:
  /// `mapped` is the map's record, `through` what the unmap waits for.
  static void Begin(Completion* mapped, const std::byte* data, uint64_t size, uint64_t transfer,
                    Handle<cl_event> through, UserEvents& user_events);

 private:
  static bool OnMapped(Completion& completion, int32_t status);

  wire::Bytes data_;
  uint64_t transfer_ = 0;
  Handle<cl_event> through_;
  UserEvents* user_events_ = nullptr;
};

/// Receives into a mapping.
class MappedWrite {
 public:
  /// Announces the transfer. False when the receiver does not take it: then nothing begins, and the caller sets
  /// `through` and gives up the record.
  static bool Begin(Completion* mapped, std::byte* data, uint64_t size, uint64_t transfer, Handle<cl_event> through,
                    UserEvents& user_events);

 private:
  static bool OnMapped(Completion& completion, int32_t status);
  void OnReceived(int32_t status);
  void PartyCame();

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t transfer_ = 0;
  Handle<cl_event> through_;
  UserEvents* user_events_ = nullptr;
  std::unique_ptr<std::byte[]> spare_;  ///< Where the data goes when the map fails.
  std::atomic<int32_t> status_{0};
  std::atomic<bool> received_{false};
  std::atomic<uint32_t> parties_{2};  ///< The map's completion and the receiver.
};

/// Sends a staging block when the command that fills it is done; its event is announced meanwhile.
class StagedRead {
 public:
  static void Begin(Completion* read, StagingPool::Owned block, uint64_t size, uint64_t transfer);

 private:
  static bool OnRead(Completion& completion, int32_t status);

  StagingPool::Owned block_;
  uint64_t size_ = 0;
  uint64_t transfer_ = 0;
};

/// Receives into a staging block and then lets the command go that reads it.
class StagedWrite {
 public:
  /// Announces the transfer; null when the receiver does not take it. `there` is what the command will wait for.
  static StagedWrite* Begin(StagingPool::Owned block, uint64_t size, uint64_t transfer, Handle<cl_event> there,
                            UserEvents& user_events);
  std::byte* data() const { return block_->data; }
  /// The command was enqueued.
  void Arm(Completion* write);
  /// It was not.
  void Drop() { PartyCame(); }

 private:
  static bool OnWritten(Completion& completion, int32_t status);
  void PartyCame();

  StagingPool::Owned block_;
  Handle<cl_event> there_;
  UserEvents* user_events_ = nullptr;
  std::atomic<uint32_t> parties_{2};  ///< The command's completion and the receiver.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_BULK_TRANSFERS_H_
