// SPDX-License-Identifier: Apache-2.0
// A session as the backend sees it: commands go through the real dispatch, over the fake driver, and what comes back is
// collected.
#ifndef HAWSER_TESTS_UNIT_BACKEND_CUDA_SESSION_H_
#define HAWSER_TESTS_UNIT_BACKEND_CUDA_SESSION_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "proto/cuda/messages.h"
#include "server/backends/cuda/backend.h"
#include "tests/unit/backend_cuda/fake_driver.h"
#include "tests/unit/backend_cuda/fake_vmm.h"

namespace hawser::server::cuda_backend {

/// How long a test waits for what must come. Long: only a failure takes so long.
inline constexpr std::chrono::seconds kPatience{60};

struct Frame {
  uint16_t opcode = 0;
  uint64_t seq = 0;
  std::vector<std::byte> payload;
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
  /// Called again and again while a test waits: what the executor would do meanwhile.
  std::function<void()> pump;

  void Flush() override {}
  /// The first frame, from number `from` on, that `matches`; null after kPatience.
  std::shared_ptr<Frame> Await(const std::function<bool(const Frame&)>& matches, size_t from = 0) {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    std::shared_ptr<Frame> found;
    while (found == nullptr && std::chrono::steady_clock::now() < give_up) {
      if (pump) pump();
      std::unique_lock<std::mutex> lock(mutex_);
      const auto look = [&] {
        for (size_t i = from; i < frames_.size() && found == nullptr; ++i) {
          if (matches(*frames_[i])) found = frames_[i];
        }
        return found != nullptr;
      };
      if (pump) {
        changed_.wait_for(lock, std::chrono::milliseconds(1), look);
      } else {
        changed_.wait_for(lock, kPatience, look);
      }
    }
    return found;
  }
  size_t count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return frames_.size();
  }
  std::vector<std::shared_ptr<Frame>> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return frames_;
  }

 protected:
  void SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool, EncodeFunction encode,
                   const void* message) override {
    auto frame = std::make_shared<Frame>();
    frame->opcode = opcode;
    frame->seq = seq;
    frame->payload.resize(size);
    wire::Writer writer(frame->payload.data(), size);
    encode(message, writer);
    const std::lock_guard<std::mutex> lock(mutex_);
    frames_.push_back(std::move(frame));
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Frame>> frames_;
};

/// The test says when data comes.
class FakeBulkIn final : public BulkReceiver {
 public:
  bool Expect(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return expected_.emplace(transfer, Expected{size, target, std::move(done)}).second;
  }
  bool Drop(uint64_t transfer, uint64_t size) override {
    auto waste = std::make_shared<std::vector<std::byte>>(size);
    return Expect(transfer, size, waste->data(), [waste](int32_t) {});
  }
  void SetTarget(uint64_t, std::byte*) override {}
  int32_t Receive(uint64_t transfer, uint64_t size, std::byte* target) override {
    const std::vector<std::byte>& data = ready[transfer];
    if (data.size() != size) return -5;
    std::memcpy(target, data.data(), size);
    return 0;
  }
  /// The guest's data arrives.
  void Deliver(uint64_t transfer, const std::vector<std::byte>& data, int32_t status = 0) {
    std::function<void(int32_t)> done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Expected& expected = expected_.at(transfer);
      if (status == 0) std::memcpy(expected.target, data.data(), std::min<uint64_t>(data.size(), expected.size));
      done = std::move(expected.done);
    }
    done(status);
  }
  std::map<uint64_t, std::vector<std::byte>> ready;  ///< For Receive.

 private:
  struct Expected {
    uint64_t size;
    std::byte* target;
    std::function<void(int32_t)> done;
  };
  std::mutex mutex_;
  std::map<uint64_t, Expected> expected_;
};

class FakeBulkOut final : public BulkSender {
 public:
  void Send(uint64_t transfer, wire::Bytes data, std::function<void()> done) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sent_[transfer].assign(data.begin(), data.end());
      changed_.notify_all();
    }
    if (done) done();
  }
  void Abort(uint64_t transfer, int32_t status) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    aborted_[transfer] = status;
    changed_.notify_all();
  }
  /// Data, or nothing and the status of an abort.
  std::pair<std::vector<std::byte>, int32_t> Await(uint64_t transfer) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return sent_.count(transfer) != 0 || aborted_.count(transfer) != 0; });
    return {sent_[transfer], aborted_.count(transfer) != 0 ? aborted_[transfer] : 0};
  }
  bool Has(uint64_t transfer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return sent_.count(transfer) != 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<std::byte>> sent_;
  std::map<uint64_t, int32_t> aborted_;
};

class Session {
 public:
  struct Options {
    Limits limits;
    uint64_t memory = 64u << 20;
    bool soft = true;
    std::string cache;
    std::string tenant = "alice";
    size_t heap = 1u << 20;
    LaunchGate* gate = nullptr;    ///< Of all devices.
    LaunchGates* gates = nullptr;  ///< Or this.
    CudaMemory memory_from = CudaMemory::kAuto;
    FakeVmm* vmm = nullptr;  ///< Null: the driver has none.
    int heap_file = -1;      ///< Said to be the heap's.
    int devices = 1;         ///< As many must be what adjust() makes of the driver.
    std::function<void(DriverTable* driver)> adjust;
  };
  Session() : Session(Options()) {}
  explicit Session(const Options& options) : driver(options.memory), heap_(options.heap) {
    WorkerSettings settings;
    settings.cuda_cache = options.cache;
    settings.tenant = options.tenant;
    settings.cuda_memory = options.memory_from;
    ChosenDriver chosen = driver.Chosen(options.soft);
    chosen.devices = options.devices;
    if (options.vmm != nullptr) options.vmm->AddTo(&chosen.driver.table);
    if (options.adjust) options.adjust(&chosen.driver.table);
    backend = std::make_unique<CudaBackend>(std::move(chosen), settings, AddressRanges());
    Services services;
    services.replies = &replies;
    services.bulk_in = &bulk_in;
    services.bulk_out = &bulk_out;
    services.heap = {heap_.data(), heap_.size(), options.heap_file};
    services.limits = options.limits;
    services.log = [this](std::string_view, const std::string& text) { log += text + "\n"; };
    if (options.gate != nullptr) gates_.emplace(*options.gate);
    services.launch_gates = gates_ ? &*gates_ : options.gates;
    SessionBackend::Later later;
    later.wake = [] {};
    later.report = [this](const wire::FrameHeader& header, const SessionBackend::Outcome& outcome, const std::string&) {
      if (outcome.status != 0) (void)backend->TakeFailure();
      late[header.seq] = outcome;
    };
    backend->SetLater(later);
    backend->SetServices(services);
    replies.pump = [this] { backend->Resume(); };
  }
  ~Session() {
    driver.Unblock();
    backend.reset();
  }

  /// Runs one command; what its handler returned.
  template <typename Message>
  int32_t Do(const Message& message) {
    last_ = Run(message);
    return last_.status;
  }
  /// Runs one command and waits for its reply.
  template <typename Reply, typename Message>
  Received<Reply> Ask(const Message& message) {
    const uint64_t seq = Start(message);
    return Answer<Reply>(seq);
  }
  /// Runs one command; its reply may come later.
  template <typename Message>
  uint64_t Start(const Message& message) {
    (void)Do(message);
    return seq_;
  }
  template <typename Reply>
  Received<Reply> Answer(uint64_t seq) {
    return Decode<Reply>(replies.Await([&](const Frame& frame) { return frame.seq == seq; }));
  }
  template <typename Notice>
  Received<Notice> AwaitNotice(size_t from = 0) {
    return Decode<Notice>(replies.Await(
        [](const Frame& frame) {
          return frame.seq == 0 && frame.opcode == static_cast<uint16_t>(cuda::OpcodeOf<Notice>::value);
        },
        from));
  }
  bool Answered(uint64_t seq) {
    for (const auto& frame : replies.all()) {
      if (frame->seq == seq) return true;
    }
    return false;
  }
  SessionBackend::Outcome last() const { return last_; }

  wire::Id NewId(cuda::Handle type) { return wire::Id(static_cast<uint8_t>(type), 1, ++next_index_); }
  wire::Id NewContext(uint32_t device = 0) {
    cuda::CreateContext create;
    create.device = device;
    create.context = NewId(cuda::Handle::kContext);
    create.primary = 1;
    Do(create);
    return create.context;
  }
  wire::Id NewStream(wire::Id context) {
    cuda::CreateStream create;
    create.stream = NewId(cuda::Handle::kStream);
    create.context = context;
    Do(create);
    return create.stream;
  }
  uint64_t NewMemory(wire::Id context, uint64_t size) {
    cuda::Allocate allocate;
    allocate.context = context;
    allocate.size = size;
    return Ask<cuda::Address>(allocate)->address;
  }
  /// A module of the text, loaded; null id when that failed. `sm`: an image of a fatbin, for devices of that capability
  /// and later ones; 0: the text alone.
  wire::Id NewModule(wire::Id context, const std::string& text = "ptx", uint32_t sm = 0) {
    cuda::UploadImage upload;
    upload.hash = wire::Sha256Of(wire::AsBytes(text));
    upload.size = upload.total = text.size();
    upload.data = wire::AsBytes(text);
    if (Do(upload) != 0) return {};
    cuda::ImageEntry entry;
    entry.form = 2;
    entry.kind = 1;
    if (sm != 0) {
      entry.form = 1;
      entry.sm = sm;
    }
    entry.size = text.size();
    entry.hash = upload.hash;
    cuda::LoadModule load;
    load.module = NewId(cuda::Handle::kModule);
    load.context = context;
    load.entries = wire::ListView<cuda::ImageEntry>(std::span<const cuda::ImageEntry>(&entry, 1));
    return Ask<cuda::ModuleInfo>(load)->status == 0 ? load.module : wire::Id();
  }
  wire::Id NewFunction(wire::Id module, const std::string& name) {
    cuda::GetFunction get;
    get.function = NewId(cuda::Handle::kFunction);
    get.module = module;
    get.name = name;
    Do(get);
    return get.function;
  }
  int32_t Launch(wire::Id context, wire::Id stream, wire::Id function, wire::Bytes parameters = {}) {
    cuda::Launch launch;
    launch.context = context;
    launch.stream = stream;
    launch.function = function;
    launch.grid = {1, 1, 1};
    launch.block = {1, 1, 1};
    launch.parameters = parameters;
    return Do(launch);
  }
  int32_t Synchronize(wire::Id context, wire::Id stream = {}) {
    cuda::SynchronizeStream synchronize;
    synchronize.context = context;
    synchronize.stream = stream;
    return Ask<cuda::Status>(synchronize)->status;
  }

  std::map<uint64_t, SessionBackend::Outcome> late;  ///< Of commands that were deferred, by number.
  FakeDriver driver;
  FakeReplies replies;
  FakeBulkIn bulk_in;
  FakeBulkOut bulk_out;
  std::string log;
  std::unique_ptr<CudaBackend> backend;
  const std::vector<std::byte>& heap() const { return heap_; }
  std::vector<std::byte>& heap() { return heap_; }

 private:
  template <typename Message>
  SessionBackend::Outcome Run(const Message& message) {
    std::vector<std::byte> payload(message.SizeOf());
    wire::Writer writer(payload.data(), payload.size());
    message.Encode(writer);
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(payload.size());
    if constexpr (std::is_same_v<Message, cuda::Nothing>) {
      header.opcode = static_cast<uint16_t>(cuda::Opcode::kGetInventory);
    } else {
      header.opcode = static_cast<uint16_t>(cuda::OpcodeOf<Message>::value);
    }
    header.seq = ++seq_;
    std::string error;
    return backend->Execute(header, payload, &error);
  }
  template <typename Message>
  static Received<Message> Decode(std::shared_ptr<Frame> frame) {
    Received<Message> received;
    received.frame = std::move(frame);
    if (received.frame == nullptr) {
      ADD_FAILURE() << "what was waited for did not come";
      return received;
    }
    wire::Reader reader(received.frame->payload);
    EXPECT_TRUE(received.message.Decode(reader));
    return received;
  }

  std::vector<std::byte> heap_;
  std::optional<OneLaunchGate> gates_;
  uint64_t seq_ = 0;
  uint32_t next_index_ = 0;
  SessionBackend::Outcome last_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_TESTS_UNIT_BACKEND_CUDA_SESSION_H_
