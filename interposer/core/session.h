// SPDX-License-Identifier: Apache-2.0
// The guest's end of a session: one ordered command stream for all threads of the process, answers and
// notices, bulk data, and what happens when the server goes away. Knows no call of an API by name.
//
// Who owns what
//   stream mutex    the command channel's sending side and the command counter. Held while one command is
//                   encoded; nobody waits for the server under it (except for room in the channel).
//   receive role    the command channel's receiving side. A thread that waits takes the role if it is free and
//                   delivers everybody's answers until its own is there (so a wait costs no hand-off between
//                   threads); else it sleeps until its condition holds or the role is free again.
//   bulk send mutex, bulk receive role: the same for the bulk channel.
// Threads of its own, each started only when first needed, detached, all with signals blocked:
//   receiver        receives while callbacks are registered and nobody waits; drains answers when the application
//                   sends for long without waiting; says that the session is over when nobody else does
//   flusher         hands sockets what nobody flushed for 50 us
//   bulk receiver   receives bulk data of reads that nobody waits for
//   callback        runs the application's callbacks in order, so that they may call the API
// Lock order: application's object locks -> stream mutex -> nothing of the application's. Sending never delivers.
// Delivery (NoticeSink, ReplySink, BulkSink) runs under the receive role and no other lock; it may send, it must not
// wait for the server. So a thread that waits holds no lock that a sink takes; in strict mode that means: every
// thread that sends.
//
// The session object is never destroyed (exit from any thread, dlclose and callbacks cannot outlive it).
// After fork() the child's copy is abandoned: it is lost() for good, without a word, and nothing of it is waited for.
#ifndef HAWSER_INTERPOSER_CORE_SESSION_H_
#define HAWSER_INTERPOSER_CORE_SESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "interposer/core/api.h"
#include "wire/codec.h"
#include "wire/id.h"
#include "wire/status.h"

namespace hawser::guest {

/// Receives one reply. Lives until one of its functions was called.
class ReplySink {
 public:
  virtual void OnReply(wire::Bytes payload) = 0;
  virtual void OnLost() = 0;  ///< The session ended first.

 protected:
  ~ReplySink() = default;
};

/// Receives what the server says unasked. One per session, set by the API layer.
class NoticeSink {
 public:
  virtual void OnNotice(uint16_t opcode, wire::Bytes payload) = 0;
  virtual void OnLost(const std::string& reason) = 0;

 protected:
  ~NoticeSink() = default;
};

/// Where the data of one bulk read goes.
class BulkSink {
 public:
  /// Memory for bytes [offset, offset + size) of the transfer, contiguous; null if out of range (the session then
  /// ends). For strided destinations return a buffer and spread it in OnChunk.
  virtual std::byte* Place(uint64_t offset, uint32_t size) = 0;
  virtual void OnChunk(uint64_t offset, uint32_t size) {
    (void)offset;
    (void)size;
  }
  /// All bytes are there (0), or the transfer failed (the API's error code; lost_code() when the session is over).
  virtual void OnEnd(int32_t status) = 0;

 protected:
  ~BulkSink() = default;
};

/// Counters since the start, for `hawser bench` and HAWSER_STATS.
struct Stats {
  std::atomic<uint64_t> commands{0}, bytes_up{0}, bytes_down{0}, waits{0}, bulk_up{0}, bulk_down{0};
};

class Session {
 public:
  /// The process's session; connects on first use to $HAWSER_SERVER (token: $HAWSER_TOKEN). Null when there is no
  /// server: not configured, unreachable, refusing (said once on stderr, with what to do). In the child of a fork()
  /// the parent's session is abandoned and the next call connects afresh.
  /// A process has one session for each API library that it loaded: the first caller's `api` counts in this one.
  static Session* Current(const Api& api = OpenClApi());
  /// The current session if there is one already; never connects.
  static Session* IfConnected();

  // ------------------------------------------------------------------ commands
  /// Sends a command. Does not wait, except in strict mode (HAWSER_STRICT=1), where it returns the server's status;
  /// when the command's data follows as a bulk transfer, SendBulk waits and returns the status instead; between the
  /// two calls, take no lock that is held while anybody waits, and send nothing (see BulkOrder). (A call with a reply
  /// of its own is sent with SendForReply or Call, or, when it is answered on the bulk channel, not waited for.)
  /// Otherwise 0, or lost_code() when the session is over. Within delivery it never waits.
  template <typename Opcode, typename Message>
  int32_t Send(Opcode opcode, const Message& message) {
    return SendEncoded(OpcodeFacts(opcode), message.SizeOf(), &EncodeThunk<Message>, &message, nullptr,
                       FollowingTransfer(message));
  }
  template <typename Message>
  int32_t Send(const Message& message) {
    return Send(Message::kOpcode, message);
  }
  /// Sends a command that has no reply of its own and waits for the server's verdict (kWantStatus), as Send does in
  /// strict mode: 0, the API's error, or lost_code(). Not within delivery.
  template <typename Message>
  int32_t SendAndWait(const Message& message) {
    return SendAndWaitEncoded(OpcodeFacts(Message::kOpcode), message.SizeOf(), &EncodeThunk<Message>, &message);
  }
  /// Sends a command whose reply goes to `sink` (delivered by whichever thread receives). Does not wait.
  /// Not 0: nothing was sent and the sink will not be called.
  template <typename Opcode, typename Message>
  int32_t SendForReply(Opcode opcode, const Message& message, ReplySink* sink) {
    return SendEncoded(OpcodeFacts(opcode), message.SizeOf(), &EncodeThunk<Message>, &message, sink, 0);
  }
  /// Sends a command and waits for its reply, whose payload is kept in `payload`. 0 or lost_code().
  template <typename Opcode, typename Message>
  int32_t Call(Opcode opcode, const Message& message, std::vector<std::byte>* payload) {
    return CallEncoded(OpcodeFacts(opcode), message.SizeOf(), &EncodeThunk<Message>, &message, payload);
  }
  /// As Call, for replies of fixed size: decodes into `reply`, which must hold no views.
  template <typename Opcode, typename Message, typename Reply>
  int32_t CallInto(Opcode opcode, const Message& message, Reply* reply);

  /// Hands everything that was sent to the server. Cheap when nothing is kept. May wait for room in the channel.
  void Flush();

  // ------------------------------------------------------------------ waiting
  /// Waits until done() is true, delivering answers meanwhile. done() reads state that sinks change; it must be cheap,
  /// and is called without locks. Flushes first. 0, or lost_code() when the session ended before; then every sink
  /// has heard of it already. Not within delivery.
  template <typename Done>
  int32_t WaitUntil(Done&& done) {
    return WaitUntilErased([](void* context) { return (*static_cast<std::remove_reference_t<Done>*>(context))(); },
                           &done);
  }
  /// Delivers what has arrived; never waits.
  void Poll();
  /// Makes everybody in WaitUntil look at their done() although nothing arrived (a user event was set, for instance).
  void Wake();

  // ------------------------------------------------------------------ bulk data
  uint64_t NewTransfer();
  /// One whose data is sent long after its command; other transfers do not wait for it (BulkOrder).
  uint64_t NewLateTransfer();
  /// Sends one transfer's data: flushes the commands, then sends in chunks, behind the data of the commands before.
  /// May wait for the receiver, never for the device. `source` yields the address of bytes [offset, offset + size),
  /// which stay there until the next call. 0, lost_code(), or in strict mode the status of the command that named the
  /// transfer.
  int32_t SendBulk(uint64_t transfer, wire::Bytes data);
  int32_t SendBulkFrom(uint64_t transfer, uint64_t size,
                       const std::function<const std::byte*(uint64_t offset, uint32_t size)>& source);
  /// Announces where a transfer's data goes; call before sending the command that causes it. The sink lives until
  /// OnEnd or CancelBulk. On a session that is over nothing happens: the command cannot be sent either.
  void ExpectBulk(uint64_t transfer, BulkSink* sink);
  /// Takes the announcement back when the command could not be sent. Afterwards the sink is not called any more.
  /// False when it has heard OnEnd already, because the session ended meanwhile. Hold no lock that the sink takes.
  bool CancelBulk(uint64_t transfer);
  /// Waits until done() is true, receiving bulk data meanwhile.
  template <typename Done>
  int32_t WaitBulkUntil(Done&& done) {
    return WaitBulkUntilErased([](void* context) { return (*static_cast<std::remove_reference_t<Done>*>(context))(); },
                               &done);
  }
  /// Nobody waits for this transfer: the bulk receiver thread takes it.
  void ReceiveBulkInBackground();

  // ------------------------------------------------------------------ callbacks
  /// While the count is above zero somebody receives even if no thread waits.
  void AddListener();
  void RemoveListener();
  /// Runs `function` on the callback thread, in order.
  void PostCallback(std::function<void()> function);
  /// Runs what this library has to do by itself, in order, on a thread that no callback holds up.
  void PostChore(std::function<void()> function);

  // ------------------------------------------------------------------ heap (shm only)
  std::byte* heap_base() const { return heap_base_; }
  uint64_t heap_size() const { return heap_size_; }
  /// Moves the heap to that address, where the server has it too. False, and nothing changes, when something else is
  /// there already. Before the first allocation, on one thread.
  bool MoveHeap(uint64_t address);
  static constexpr uint64_t kNoHeap = ~uint64_t{0};
  /// Room for a buffer, aligned to 4096 bytes (small ones to 128); kNoHeap when there is none. Thread-safe, < 0.3 us.
  uint64_t HeapAllocate(uint64_t size);
  void HeapFree(uint64_t offset, uint64_t size);

  // ------------------------------------------------------------------ facts
  uint32_t inline_limit() const { return inline_limit_; }
  bool strict() const { return strict_; }
  bool lost() const { return life_.load(std::memory_order_acquire) != Life::kAlive; }
  /// What calls return once the session is over: CL_DEVICE_NOT_AVAILABLE. CUDA's errors are positive: its guest
  /// library turns this one into one of them.
  static constexpr int32_t lost_code() { return -2; }
  /// Once it is lost: the API's error that the server gave for the end; 0: none.
  uint32_t lost_cause() const { return lost_cause_.load(std::memory_order_relaxed); }
  void SetNoticeSink(NoticeSink* sink);
  Stats& stats() { return stats_; }
  /// Ids of new objects. Thread-safe.
  wire::Id NewId(uint8_t type);
  void FreeId(wire::Id id);

 private:
  friend class SessionBuilder;
  class Impl;
  enum class Life : uint8_t { kAlive, kLost, kAbandoned };
  using EncodeFunction = void (*)(const void* message, wire::Writer& writer);

  Session();
  ~Session() = delete;

  template <typename Message>
  static void EncodeThunk(const void* message, wire::Writer& writer) {
    static_cast<const Message*>(message)->Encode(writer);
  }
  /// The bulk transfer that the guest sends behind this command; 0: none.
  template <typename Message>
  static uint64_t FollowingTransfer(const Message& message) {
    if constexpr (requires {
                    message.transfer;
                    message.data;
                  }) {
      return message.transfer;
    } else {
      (void)message;
      return 0;
    }
  }
  /// An opcode of any API.
  struct CallFacts {
    uint16_t opcode;
    bool has_reply;
  };
  template <typename Opcode>
  static constexpr CallFacts OpcodeFacts(Opcode opcode) {
    return {static_cast<uint16_t>(opcode), HasReply(opcode)};  // The description's, found by the enum's namespace.
  }
  int32_t SendEncoded(CallFacts call, size_t size, EncodeFunction encode, const void* message, ReplySink* sink,
                      uint64_t transfer);
  int32_t SendAndWaitEncoded(CallFacts call, size_t size, EncodeFunction encode, const void* message);
  int32_t CallEncoded(CallFacts call, size_t size, EncodeFunction encode, const void* message,
                      std::vector<std::byte>* payload);
  int32_t WaitUntilErased(bool (*done)(void*), void* context);
  int32_t WaitBulkUntilErased(bool (*done)(void*), void* context);
  /// The server's answer cannot be decoded: the session ends. Returns lost_code().
  int32_t MalformedReply(uint16_t opcode);

  Impl* impl_ = nullptr;  // Never destroyed, like the session.
  std::byte* heap_base_ = nullptr;
  uint64_t heap_size_ = 0;
  uint32_t inline_limit_ = 32u << 10;
  bool strict_ = false;
  std::atomic<Life> life_{Life::kAlive};
  std::atomic<uint32_t> lost_cause_{0};  ///< Before life_ says that it is lost.
  Stats stats_;
};

template <typename Opcode, typename Message, typename Reply>
int32_t Session::CallInto(Opcode opcode, const Message& message, Reply* reply) {
  std::vector<std::byte> payload;
  const int32_t error = Call(opcode, message, &payload);
  if (error != 0) return error;
  wire::Reader reader(payload);
  return reply->Decode(reader)
             ? 0
             : MalformedReply(static_cast<uint16_t>(opcode));  // A refusal may be longer than the reply.
}

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_SESSION_H_
