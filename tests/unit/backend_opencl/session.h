// SPDX-License-Identifier: Apache-2.0
// A session as the backend sees it: commands go through the real dispatch, over the system's OpenCL platform, and
// what comes back is collected.
#ifndef HAWSER_TESTS_UNIT_BACKEND_OPENCL_SESSION_H_
#define HAWSER_TESTS_UNIT_BACKEND_OPENCL_SESSION_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/opencl/dispatch.h"
#include "server/backends/opencl/cl.h"
#include "server/worker/backend.h"
#include "server/worker/launch_gate.h"

namespace hawser::server::ocl {

using wire::Id;

/// How long a test waits for what must come. Long: only a failure takes so long.
inline constexpr std::chrono::seconds kPatience{60};

struct Frame {
  uint16_t opcode = 0;
  uint64_t seq = 0;
  std::vector<std::byte> payload;
  bool flush = false;
};

/// A decoded message together with the bytes that it views.
template <typename Message>
struct Received {
  std::shared_ptr<Frame> frame;
  Message message;
  const Message* operator->() const { return &message; }
};

class FakeReplies final : public Replies {
 public:
  void Flush() override;
  /// Frames, in the order in which they were sent. Waits for the first that `matches`; null after kPatience.
  std::shared_ptr<Frame> Await(const std::function<bool(const Frame&)>& matches);
  std::vector<std::shared_ptr<Frame>> All();
  size_t Count();
  /// True once everything that was sent has been flushed.
  bool AwaitFlushed();

 private:
  void SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool flush, EncodeFunction encode,
                   const void* message) override;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Frame>> frames_;
  size_t flushed_ = 0;
};

/// The guest's side of the bulk channel is Deliver() and Break().
class FakeBulkReceiver final : public BulkReceiver {
 public:
  bool Expect(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done) override;
  bool Drop(uint64_t transfer, uint64_t size) override {
    auto waste = std::make_shared<std::vector<std::byte>>(size);
    return Expect(transfer, size, waste->data(), [waste](int32_t) {});
  }
  void SetTarget(uint64_t transfer, std::byte* target) override;
  int32_t Receive(uint64_t transfer, uint64_t size, std::byte* target) override;

  /// All of a transfer's bytes; before or after it is expected.
  void Deliver(uint64_t transfer, std::vector<std::byte> data);
  void Break(uint64_t transfer, int32_t status);
  /// Waits until the transfer has been announced and has a target.
  bool AwaitTarget(uint64_t transfer);
  bool IsExpected(uint64_t transfer);
  void RefuseAll() { refuse_ = true; }

 private:
  struct Entry {
    bool expected = false;
    bool finished = false;
    uint64_t size = 0;
    std::byte* target = nullptr;
    std::function<void(int32_t)> done;
    std::optional<std::vector<std::byte>> data;
    int32_t broken = 0;
  };
  void Progress(uint64_t transfer);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Entry> entries_;
  bool refuse_ = false;
};

/// Sends from a thread of its own, as the worker does.
class FakeBulkSender final : public BulkSender {
 public:
  ~FakeBulkSender() override;
  void Send(uint64_t transfer, wire::Bytes data, std::function<void()> done) override;
  void Abort(uint64_t transfer, int32_t status) override;

  /// While held back nothing is sent.
  void Hold(bool hold);
  /// Sends no more, and forgets what is not sent yet.
  void Stop();
  struct Result {
    int32_t status = 0;
    std::vector<std::byte> data;
  };
  std::optional<Result> Await(uint64_t transfer);

 private:
  struct Job {
    uint64_t transfer;
    wire::Bytes data;
    std::function<void()> done;
  };
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<uint64_t, Result> results_;
  bool hold_ = false;
  bool stop_ = false;
  std::thread thread_;
};

struct SessionOptions {
  uint64_t heap = 0;
  Limits limits = {};
  LaunchGate* gate = nullptr;
};

/// Memory that a test gives as bytes.
template <typename T>
wire::Bytes BytesOf(const std::vector<T>& values) {
  return wire::AsBytes(values.data(), values.size() * sizeof(T));
}
template <typename T>
std::vector<T> ValuesOf(wire::Bytes bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template <typename T>
std::vector<std::byte> OwnBytes(const std::vector<T>& values) {
  const wire::Bytes bytes = BytesOf(values);
  return {bytes.begin(), bytes.end()};
}

class Session {
 public:
  explicit Session(const SessionOptions& options = {});
  ~Session();

  SessionStatsPage& stats() { return *stats_.page(); }

  Backend& backend() { return *backend_; }
  FakeReplies& replies() { return replies_; }
  FakeBulkReceiver& bulk_in() { return bulk_in_; }
  FakeBulkSender& bulk_out() { return bulk_out_; }
  std::byte* heap() { return heap_.get(); }
  int drains() const { return drains_.load(); }
  int output_enabled() const { return output_enabled_.load(); }
  std::vector<std::string> Log();
  void EndBackend() { backend_.reset(); }

  /// Encodes, decodes and checks as the executor does; returns what the handler returned. The frame's bytes are gone
  /// afterwards.
  template <typename Message>
  int32_t Do(const Message& message, uint64_t* seq = nullptr) {
    std::vector<std::byte> payload(message.SizeOf());
    wire::Writer writer(payload.data(), payload.size());
    message.Encode(writer);
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(payload.size());
    header.opcode = static_cast<uint16_t>(opencl::OpcodeOf<Message>::value);
    header.seq = ++seq_;
    if (seq != nullptr) *seq = header.seq;
    std::string error;
    const opencl::Outcome outcome = opencl::Dispatch(header, payload, *backend_, &error);
    if (outcome.result != opencl::DispatchResult::kDone) return kMalformed;
    return outcome.status;
  }
  static constexpr int32_t kMalformed = -123456;

  /// Sends a command that has a reply and waits for it. Empty after kPatience, or when the handler did not return 0.
  template <typename Reply, typename Message>
  std::optional<Received<Reply>> Ask(const Message& message) {
    uint64_t seq = 0;
    if (Do(message, &seq) != CL_SUCCESS) return std::nullopt;
    return AwaitReply<Reply>(seq);
  }
  template <typename Reply>
  std::optional<Received<Reply>> AwaitReply(uint64_t seq) {
    return Decode<Reply>(replies_.Await([&](const Frame& frame) { return frame.seq == seq; }));
  }
  template <typename Notice>
  std::optional<Received<Notice>> AwaitNotice(const std::function<bool(const Notice&)>& matches) {
    return Decode<Notice>(replies_.Await([&](const Frame& frame) {
      if (frame.seq != 0 || frame.opcode != static_cast<uint16_t>(opencl::OpcodeOf<Notice>::value)) return false;
      Notice notice;
      wire::Reader reader(frame.payload);
      return notice.Decode(reader) && matches(notice);
    }));
  }
  /// The final announcement of an event: complete, or an error.
  std::optional<Received<opencl::EventStatus>> AwaitEvent(Id event) {
    return AwaitNotice<opencl::EventStatus>(
        [&](const opencl::EventStatus& notice) { return notice.event == event && notice.status <= CL_COMPLETE; });
  }
  bool HasEvent(Id event);
  bool AwaitReleased(Id object) {
    return AwaitNotice<opencl::Released>([&](const opencl::Released& notice) { return notice.object == object; })
        .has_value();
  }
  bool HasReleased(Id object);

  // ------------------------------------------------------------------ shorthands, for the first device
  Id NewId(opencl::Handle type) { return Id(static_cast<uint8_t>(type), 1, ++index_); }
  Id Device() const { return Id(static_cast<uint8_t>(opencl::Handle::kDevice), 1, 1); }
  Id Context();
  Id Queue(uint64_t properties = 0);
  Id Buffer(uint64_t size, uint64_t flags = CL_MEM_READ_WRITE);
  template <typename T>
  Id BufferOf(const std::vector<T>& values) {
    opencl::CreateBuffer create;
    create.buffer = NewId(opencl::Handle::kMem);
    create.context = Context();
    create.flags = CL_MEM_READ_WRITE;
    create.size = values.size() * sizeof(T);
    create.heap_offset = ~uint64_t{0};
    create.data = BytesOf(values);
    return Do(create) == CL_SUCCESS ? create.buffer : Id();
  }
  Id Source(std::string_view source);
  /// Null when the build fails.
  Id Program(std::string_view source, std::string_view options = "");
  Id Kernel(Id program, std::string_view name);
  int32_t SetBuffer(Id kernel, uint32_t index, Id buffer);
  template <typename T>
  int32_t SetValue(Id kernel, uint32_t index, const T& value) {
    opencl::SetKernelArg set;
    set.kernel = kernel;
    set.index = index;
    set.kind = 1;
    set.size = sizeof(T);
    set.value = wire::AsBytes(&value, sizeof(T));
    return Do(set);
  }
  int32_t Launch(Id queue, Id kernel, uint64_t global, const std::vector<Id>& wait_list = {}, Id event = {});
  int32_t Write(Id queue, Id buffer, wire::Bytes data, uint64_t offset = 0, const std::vector<Id>& wait_list = {},
                Id event = {});
  std::vector<std::byte> Read(Id queue, Id buffer, uint64_t size, uint64_t offset = 0,
                              const std::vector<Id>& wait_list = {}, Id event = {});
  template <typename T>
  std::vector<T> ReadAs(Id queue, Id buffer, uint64_t count) {
    return ValuesOf<T>(Read(queue, buffer, count * sizeof(T)));
  }
  int32_t Finish(Id queue);
  Id UserEvent();
  int32_t SetUserEvent(Id event, int32_t status);
  int32_t Release(Id object, bool notify = false);

 private:
  template <typename Message>
  static std::optional<Received<Message>> Decode(std::shared_ptr<Frame> frame) {
    if (frame == nullptr) return std::nullopt;
    Received<Message> received{std::move(frame), {}};
    wire::Reader reader(received.frame->payload);
    if (!received.message.Decode(reader) || !reader.Done()) return std::nullopt;
    return received;
  }

  struct Unmap {
    size_t size;
    void operator()(std::byte* memory) const;
  };
  FakeReplies replies_;
  FakeBulkReceiver bulk_in_;
  FakeBulkSender bulk_out_;
  std::unique_ptr<std::byte, Unmap> heap_{nullptr, Unmap{0}};
  std::atomic<int> drains_{0};
  std::atomic<int> output_enabled_{0};
  std::mutex log_mutex_;
  std::vector<std::string> log_;
  SessionStats stats_;
  std::optional<OneLaunchGate> gates_;
  std::unique_ptr<Backend> backend_;
  uint64_t seq_ = 0;
  uint32_t index_ = 0;
  Id context_;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_TESTS_UNIT_BACKEND_OPENCL_SESSION_H_
