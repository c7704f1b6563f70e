// SPDX-License-Identifier: Apache-2.0
// What the worker offers a backend: answers, bulk data, the heap, limits. The worker implements these;
// a backend (server/backends/...) executes commands over them and knows no transport.
//
// Threads: the executor thread runs all commands in order (Handler's functions). Driver callbacks run
// on threads of the driver. Replies, BulkReceiver and BulkSender may be called from any thread.
// Lock order: a backend's own locks, then Replies' or the bulk classes' (which never call out under a lock).
#ifndef HAWSER_SERVER_WORKER_SERVICES_H_
#define HAWSER_SERVER_WORKER_SERVICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "proto/opencl/messages.h"
#include "proto/opencl/opcodes.h"
#include "server/session_stats.h"
#include "wire/codec.h"

namespace hawser::server {

/// Frames to the guest. Never waits: what the guest does not take is kept, up to a limit, beyond which
/// the session ends (a guest that reads nothing hurts only itself).
class Replies {
 public:
  virtual ~Replies() = default;

  /// Encodes and queues one frame. `seq` is the command that is answered, 0 for a notice.
  /// `flush`: hand it to the transport at once (somebody waits for it); else with the next flush,
  /// which the executor does whenever it runs out of commands.
  template <typename Opcode, typename Message>
  void Send(Opcode opcode, uint64_t seq, const Message& message, bool flush) {
    SendEncoded(
        static_cast<uint16_t>(opcode), seq, message.SizeOf(), flush,
        [](const void* from, wire::Writer& writer) { static_cast<const Message*>(from)->Encode(writer); }, &message);
  }
  /// Notices of OpenCL: opcode known from the type.
  template <typename Message>
  void Notify(const Message& message, bool flush) {
    Send(opencl::OpcodeOf<Message>::value, 0, message, flush);
  }
  virtual void Flush() = 0;

 protected:
  using EncodeFunction = void (*)(const void* message, wire::Writer& writer);
  virtual void SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool flush, EncodeFunction encode,
                           const void* message) = 0;
};

/// Data from the guest on the bulk channel. Always drained, so that a guest thread that sends never
/// waits for the device: bytes whose target is not known yet gather in staging memory (bounded).
class BulkReceiver {
 public:
  virtual ~BulkReceiver() = default;

  /// Announces a transfer of `size` bytes, named by a command. `target` null: not known yet, see SetTarget.
  /// `done(status)` runs once, on the receiver's thread (or within SetTarget), after all bytes are at the
  /// target (0), or when the transfer cannot complete (an OpenCL error code).
  /// False, and no call of `done`, if the name was used before or the size is beyond the limits.
  virtual bool Expect(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done) = 0;
  /// Announces a transfer that nobody wants any more: its bytes are read and thrown away, without memory for them.
  /// False as for Expect.
  virtual bool Drop(uint64_t transfer, uint64_t size) = 0;
  /// Where the bytes shall go; copies what has gathered. Any thread.
  virtual void SetTarget(uint64_t transfer, std::byte* target) = 0;
  /// Waits for a transfer that was announced with a target; for the rare call whose result depends on the
  /// data (initial contents). The guest sends the data right behind the command.
  /// Returns 0 or an OpenCL error code.
  virtual int32_t Receive(uint64_t transfer, uint64_t size, std::byte* target) = 0;
};

/// Data to the guest on the bulk channel, in chunks, from a thread of its own.
class BulkSender {
 public:
  virtual ~BulkSender() = default;

  /// Sends `data`; it stays valid until `done` runs on the sender's thread. Transfers are sent in order.
  virtual void Send(uint64_t transfer, wire::Bytes data, std::function<void()> done) = 0;
  /// Tells the guest that the transfer failed with this OpenCL error code.
  virtual void Abort(uint64_t transfer, int32_t status) = 0;
};

/// Limits of one session, from hawserd's configuration.
struct Limits {
  uint64_t device_memory = 0;          ///< Bytes of buffers and images; 0: as the device.
  uint64_t staging_memory = 1u << 30;  ///< Bytes of host memory for data in flight.
  uint32_t max_objects = 1u << 20;     ///< Of each type.
  uint32_t inline_limit = 32u << 10;   ///< Data up to this size travels in commands and replies.
};

/// The session's heap: memory that the guest maps too. Null base: none.
struct Heap {
  std::byte* base = nullptr;
  uint64_t size = 0;
  int file = -1;  ///< The same memory as a file, sealed; borrowed.
};

class ExportClient;  // server/worker/export_client.h
class LaunchGates;   // server/worker/launch_gate.h

struct Services {
  Replies* replies = nullptr;
  BulkReceiver* bulk_in = nullptr;
  BulkSender* bulk_out = nullptr;
  Heap heap;
  Limits limits;
  /// Where a backend counts kernels and device memory, records a trace, and looks at limits that may change. Never
  /// null.
  SessionStatsPage* stats = UncountedSession();
  /// Asked before work goes to a device; null: open. Outlives the backend.
  LaunchGates* launch_gates = nullptr;
  /// Where a backend gives out what guests share; null: nowhere. Outlives the backend.
  ExportClient* exports = nullptr;
  /// Forwards what kernels printed so far to the guest; called before a completion is announced,
  /// so that output never comes after the finish that waits for it. Cheap when nothing prints.
  std::function<void()> drain_kernel_output;
  /// Call once when a program that may print is created; starts the forwarding.
  std::function<void()> enable_kernel_output;
  /// What assert() of kernels wrote to the driver's stderr since the last call, for the guest's; bounded.
  std::function<std::string()> take_assertions;
  /// Call once when a program with assertions is loaded; from then on they are looked for.
  std::function<void()> enable_assertions;
  /// One line for the log, prefixed with session and tenant.
  std::function<void(std::string_view level, const std::string& text)> log;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SERVICES_H_
