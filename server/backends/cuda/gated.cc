// SPDX-License-Identifier: Apache-2.0
// Launches while others want the device too, and the commands that wait behind them.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/backends/cuda/backend.h"
#include "server/device_key.h"

namespace hawser::server::cuda_backend {
namespace {

/// Cores of a multiprocessor, where the settings do not say.
constexpr uint64_t kCoresOfMultiprocessor = 128;
/// Looks before a launch is kept.
constexpr int kLooks = 40;

/// Time that has passed since the last step of whoever. Thread-safe.
class Progress {
 public:
  uint64_t Step() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    const auto passed = now - std::exchange(last_, now);
    ++steps_;
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count());
  }

  uint64_t steps() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return steps_;
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  uint64_t steps_ = 0;
};

}  // namespace

std::string CudaBackend::DeviceKeyOf(CUdevice device) const {
  const auto ordinal = static_cast<size_t>(std::find(devices_.begin(), devices_.end(), device) - devices_.begin());
  if (chosen_.soft) return CpuDeviceKey(ordinal);
  const auto ask = [&](CUdevice_attribute attribute) {
    int value = 0;
    return driver_.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value > 0
               ? static_cast<uint32_t>(value)
               : 0;
  };
  const uint32_t domain = ask(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID), bus = ask(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                 slot = ask(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  // There is a bridge at the first place.
  return domain + bus + slot != 0 ? PciDeviceKey(domain, bus, slot) : NvidiaDeviceKey(ordinal);
}

DeviceShare& CudaBackend::ShareOf(CUdevice device) {
  LaunchGate* gate = &open_gate_;
  if (refusing_gate_ != nullptr) {
    gate = refusing_gate_.get();
  } else if (services_.launch_gates != nullptr) {
    gate = &services_.launch_gates->Of(DeviceKeyOf(device));
  }
  for (const auto& share : shares_) {
    if (share->gate == gate) return *share;
  }
  DeviceShare& share = *shares_.emplace_back(std::make_unique<DeviceShare>());
  share.gate = gate;
  share.bounds_open = gate->OpenCapNs() != 0;
  share.device = device;
  gate->SetDrain([this, &share] { AwaitUnasked(share); });
  return share;
}

Sharing& CudaBackend::SharingOf(DeviceShare& share) {
  if (share.sharing == nullptr) {
    int processors = 1;
    (void)driver_.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, share.device);
    const uint64_t cores =
        split_.cores != 0 ? split_.cores : static_cast<uint64_t>(processors) * kCoresOfMultiprocessor;
    // One writer for each file; and devices differ in speed.
    const bool first = devices_.empty() || share.device == devices_.front();
    const std::string file =
        split_.history.empty() || first ? split_.history : split_.history + "." + DeviceKeyOf(share.device);
    share.sharing = std::make_unique<Sharing>(
        &driver_, share.gate, &split_, file, cores, services_.stats,
        [this](std::string_view level, const std::string& text) { Log(level, text); }, [this] { Wake(); });
  }
  return *share.sharing;
}

// --- launches

void CudaBackend::FindUnfinished(const Place& at, std::vector<std::shared_ptr<StreamState>>* before) {
  // To ask about a stream may end a capture that is under way; what is captured does not run anyway.
  if (captures()) return;
  const auto look = [&](const std::shared_ptr<StreamState>& stream) {
    if (stream->plain) return;
    if (driver_.cuStreamQuery(stream->native()) == CUDA_ERROR_NOT_READY) {
      before->push_back(stream);
    } else {
      stream->plain = true;
    }
  };
  look(at.stream->shared_from_this());
  if (at.stream->nonblocking) return;
  if (at.stream != at.context->legacy.get()) return look(at.context->legacy);
  ForEachStream(at.stream->context, [&](StreamState& stream) {
    if (!stream.nonblocking) look(stream.shared_from_this());
  });
}

int32_t CudaBackend::Submit(const cuda::Call& call, const Place& at, wire::Id context, KernelLaunch launch,
                            std::shared_ptr<KernelFacts> kernel, std::vector<wire::Id> events, wire::Id exec) {
  if (captures() && driver_.cuStreamIsCapturing != nullptr) {
    // A capture makes a node of it; and a stream that cannot be asked has its own reasons.
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver_.cuStreamIsCapturing(at.native(), &capture) != CUDA_SUCCESS ||
        capture != CU_STREAM_CAPTURE_STATUS_NONE) {
      return Finish(call, launch.Run(driver_, at.native()), context);
    }
  }
  auto turn = std::make_unique<Turn>();
  turn->stream = at.stream->shared_from_this();
  turn->timers = at.context->timers;
  turn->launch = std::move(launch);
  turn->kernel = std::move(kernel);
  turn->context = context;
  turn->events = std::move(events);
  turn->exec = exec;
  return Route(call, at, std::move(turn));
}

int32_t CudaBackend::Route(const cuda::Call& call, const Place& at, std::unique_ptr<Turn> turn) {
  Sharing& shared = SharingOf(*at.context->share);
  LaunchGate& gate = *at.context->gate;
  const wire::Id context = turn->context;
  turn->since = std::chrono::steady_clock::now();
  if (split_.size == 0 && gate.BeginOpen()) {
    // As for units: what its stream waits for may be something that only the guest knows. Then one launch goes on, and
    // what is under way still counts, and still tells a drain that the device goes on.
    if (!std::exchange(turn->late, false) && IsFull(*at.stream)) {
      gate.EndOpen();
      turn->pause = at.stream->open.ResumeAt();
      // Long kernels are no reason to give up.
      constexpr double kMostPatienceNs = 10e9;
      const double expected = std::min(4 * at.stream->open.flying_ns(), kMostPatienceNs);
      turn->patience = std::max<std::chrono::nanoseconds>(Turns::kPatience,
                                                          std::chrono::nanoseconds(static_cast<int64_t>(expected)));
      Hold(call, shared, std::move(turn));
      return 0;
    }
    // Somebody listens, or there was too much under way.
    if (unwatched()) {
      turn->result = turn->launch.Run(driver_, at.native());
    } else {
      (void)shared.turns.Give(*turn, 0, 0, /*entered=*/false);
    }
    gate.EndOpen();
    NoteOpen(at, turn->kernel, turn->launch.blocks());
    return Finish(call, turn->result, context);
  }
  const KernelFacts* facts = turn->kernel.get();
  if (split_.splits && turn->launch.graph == nullptr && turn->launch.AttributesAllowParts() &&
      shared.sizes.IsLong(*facts, turn->launch) && !shared.alarms.IsRaised(facts->key)) {
    turn->sliced =
        shared.sliced.Find(turn->kernel, at.context->native, turn->launch.one_row(), /*wait=*/split_.size != 0);
    turn->awaits_copy =
        turn->sliced == nullptr && shared.sliced.IsMaking(*turn->kernel, at.context->native, turn->launch.one_row());
    if (turn->sliced != nullptr && turn->launch.parameters.size() < turn->sliced->layout.own_bytes)
      turn->sliced = nullptr;
  }
  FindUnfinished(at, &turn->before);
  if (turn->sliced == nullptr && !turn->awaits_copy && turn->before.empty() && shared.turns.idle()) {
    const uint64_t estimate = shared.sizes.Estimate(facts, turn->launch.blocks() * turn->launch.block_threads());
    const uint64_t asked = PartSizes::Asked(estimate);
    if (gate.TryEnter(asked)) {
      (void)shared.turns.Give(*turn, estimate, asked, /*entered=*/true);
      return Finish(call, turn->result, context);
    }
  }
  Hold(call, shared, std::move(turn));
  return 0;
}

void CudaBackend::Hold(const cuda::Call& call, Sharing& shared, std::unique_ptr<Turn> turn) {
  turn->header.opcode = call.opcode;
  turn->header.flags = call.flags;
  turn->header.seq = call.seq;
  Footprint held = StreamFootprint(turn->context, turn->stream->id);
  for (size_t i = 0; i < turn->events.size() && i < 2; ++i) {
    (i == 0 ? held.event : held.second_event) = turn->events[i];
    held.changes_event = true;
  }
  if (turn->exec) {
    held.event = turn->exec;
    held.changes_event = true;
  }
  if (turn->hold == 0) turn->hold = deferral_.Hold(held, /*acts=*/true);
  deferring_ = true;
  shared.turns.Add(std::move(turn));
  concluded_later_ = true;
}

int32_t CudaBackend::RouteAgain(const cuda::Call& call, std::unique_ptr<Turn> turn) {
  turn->pause.reset();
  const Place at = At(turn->context, turn->stream->id, Gives::kPlain);
  if (!at.ok()) return Fail(call, at.status, {}, turn->context);
  return Route(call, at, std::move(turn));
}

// --- alone

void CudaBackend::MarkOpen(const Place& at, const std::shared_ptr<KernelFacts>& kernel, uint64_t items) {
  StreamState& stream = *at.stream;
  std::shared_ptr<const PooledEvent> mark;
  // An event would become a part of what is captured; and to ask for one may end that.
  if (!captures()) {
    LookOpen(stream);
    if (!stream.open.Due()) return;
    mark = PooledEvent::Take(at.context->timers);
  }
  if (mark == nullptr || driver_.cuEventRecord(mark->native(), at.native()) != CUDA_SUCCESS) {
    (void)stream.open.Take();
    return;
  }
  stream.open.Put(std::move(mark), std::shared_ptr<OpenSpeed>(kernel, &kernel->open), items,
                  at.context->gate->OpenCapNs());
}

void CudaBackend::LookOpen(StreamState& stream) {
  using Mark = std::shared_ptr<const PooledEvent>;
  stream.open.Look(
      [this](const Mark& mark) { return driver_.cuEventQuery(mark->native()) != CUDA_ERROR_NOT_READY; },
      [this](const Mark& one, const Mark& other) { return ElapsedNs(driver_, one->native(), other->native()); });
  stream.open.Over(stream.lane.over->load(std::memory_order_relaxed));
}

void CudaBackend::LeaveOpen(const Context& context, StreamState& stream) {
  if (!stream.launched_unasked || context.gate == &open_gate_) return;
  std::erase_if(left_streams_, [&](const LeftStream& left) {
    // Others' are asked where they are current; a drain forgets them in any case.
    return left.context == stream.context && driver_.cuEventQuery(left.end->native()) != CUDA_ERROR_NOT_READY;
  });
  LeftStream left{stream.context, stream.id, PooledEvent::Take(context.events)};
  if (left.end == nullptr || driver_.cuEventRecord(left.end->native(), stream.native()) != CUDA_SUCCESS) return;
  left_streams_.push_back(std::move(left));
}

bool CudaBackend::IsFull(StreamState& stream) {
  if (!stream.open.full()) return false;
  if (captures()) {
    (void)stream.open.Take();
    return false;
  }
  // Short work is over by then.
  for (int i = 0; i < kLooks; ++i) {
    LookOpen(stream);
    if (!stream.open.full()) return false;
    ::sched_yield();
  }
  return true;
}

// --- commands behind them

SessionBackend::Outcome CudaBackend::ExecuteNow(const wire::FrameHeader& header, wire::Bytes payload,
                                                std::string* error) {
  if (has_loaded_.load(std::memory_order_acquire)) [[unlikely]]
    AdoptLoaded();
  const cuda::Outcome outcome = cuda::Dispatch(header, payload, *this, error);
  return {.malformed = outcome.result != cuda::DispatchResult::kDone,
          .status = outcome.status,
          .deferred = std::exchange(concluded_later_, false)};
}

SessionBackend::Outcome CudaBackend::ExecuteBehind(const wire::FrameHeader& header, wire::Bytes payload,
                                                   std::string* error) {
  Resume();
  if (deferral_.idle()) return ExecuteNow(header, payload, error);
  if (static_cast<cuda::Opcode>(header.opcode) == cuda::Opcode::kRecordEvent) RenewEvent(payload);
  Footprint footprint = FootprintOf(header, payload);
  // Memory is short until something is freed: who allocates waits for that, but not for a function of the guest, who
  // may be waiting for this answer.
  if (footprint.kind == Footprint::Kind::kCreation && !functions_.empty()) footprint.frees = false;
  if (!deferral_.MustWait(footprint)) return ExecuteNow(header, payload, error);
  while (deferral_.full()) {
    // Only a guest that was asked for patience and had none comes here (TellCrowd).
    AwaitNews();
    Resume();
    if (!deferral_.MustWait(footprint)) return ExecuteNow(header, payload, error);
  }
  DeferredFrame frame;
  frame.header = header;
  frame.footprint = footprint;
  const cuda::Call call{header.seq, header.opcode, header.flags};
  if ((header.flags & wire::kWantStatus) != 0 && !functions_.empty()) {
    // Likewise: that it waits is all that can be said. What becomes of it is told as if nobody had asked.
    Report(header, {}, {});
    frame.header.flags &= static_cast<uint16_t>(~wire::kWantStatus);
  }
  switch (static_cast<cuda::Opcode>(header.opcode)) {
    case cuda::Opcode::kGetElapsed: {
      // One of them will be recorded.
      cuda::Elapsed reply;
      reply.status = CUDA_ERROR_NOT_READY;
      Reply(call, reply);
      return {};
    }
    case cuda::Opcode::kWatchStream:
    case cuda::Opcode::kWatchEvent:
      (void)ReplyStatus(call, CUDA_ERROR_NOT_READY);
      frame.answered = true;
      break;
    case cuda::Opcode::kReleaseObject: {
      // The guest gives the name's place to another object.
      cuda::Release message;
      wire::Reader reader(payload);
      if (message.Decode(reader)) objects_->Leave(message.object);
      break;
    }
    // Their data is on its way, and behind it the data of others.
    case cuda::Opcode::kWrite:
      ExpectEarly<cuda::Write>(call, payload);
      break;
    case cuda::Opcode::kWriteRegion:
      ExpectEarly<cuda::WriteRegion>(call, payload);
      break;
    case cuda::Opcode::kWriteStaging:
      ExpectEarly<cuda::WriteStaging>(call, payload);
      break;
    default:
      break;
  }
  frame.payload.assign(payload.begin(), payload.end());
  deferral_.Push(std::move(frame));
  TellCrowd();
  return {.deferred = true};
}

template <typename Message>
void CudaBackend::ExpectEarly(const cuda::Call& call, wire::Bytes payload) {
  Message message;
  wire::Reader reader(payload);
  if (!message.Decode(reader) || message.transfer == 0 || message.size == 0) return;
  // Without its context it fails when its turn comes, and takes the data then.
  const Context* context = objects_->Table<Context>().Find(message.context);
  if (context == nullptr || context->error != 0 || EnterNative(context->native) != 0) return;
  Expected expected;
  expected.status = Expect(call, *context, message.context, message.transfer, message.size, &expected);
  expected_.emplace(message.transfer, std::move(expected));
}

void CudaBackend::Resume() {
  // What goes on may be news itself.
  while (news_.exchange(false, std::memory_order_acq_rel)) {
    DrainUnasked();
    TakeReleased();
    ResumeTurns();
    deferral_.Run([this](DeferredFrame& frame) {
      std::string error;
      watch_answered_ = frame.answered;
      old_events_ = static_cast<OldEvents*>(frame.events.get());
      const Outcome outcome = ExecuteNow(frame.header, frame.payload, &error);
      watch_answered_ = false;
      old_events_ = nullptr;
      Report(frame.header, outcome, error);
    });
    deferring_ = !deferral_.idle();
    TellCrowd();
  }
}

void CudaBackend::ResumeTurns() {
  std::vector<std::unique_ptr<Turn>> over;
  for (const auto& share : shares_) {
    if (share->sharing == nullptr || !share->sharing->turns.has_over()) continue;
    for (std::unique_ptr<Turn>& turn : share->sharing->turns.TakeOver()) over.push_back(std::move(turn));
  }
  for (std::unique_ptr<Turn>& turn : over) {
    const wire::FrameHeader header = turn->header;
    const wire::Id context = turn->context;
    const Deferral::Ticket hold = turn->hold;
    const cuda::Call call{header.seq, header.opcode, header.flags};
    const bool paused = turn->pause != nullptr;
    const int32_t status = paused ? RouteAgain(call, std::move(turn)) : Finish(call, turn->result, context);
    if (std::exchange(concluded_later_, false)) continue;
    (void)deferral_.Release(hold);
    Report(header, {.status = status}, {});
  }
}

void CudaBackend::Report(const wire::FrameHeader& header, const Outcome& outcome, const std::string& refusal) {
  if (later_.report) later_.report(header, outcome, refusal);
}

void CudaBackend::Wake() {
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    news_.store(true, std::memory_order_release);
  }
  news_changed_.notify_all();
  if (later_.wake) later_.wake();
}

void CudaBackend::AwaitNews() {
  std::unique_lock<std::mutex> lock(news_mutex_);
  news_changed_.wait(lock, [&] { return news_.load(std::memory_order_acquire); });
}

// --- from alone to not alone

/// What was enqueued unasked in one stream, up to its mark.
struct UnaskedPart {
  CUcontext context = nullptr;
  uint64_t stream = 0;
  std::shared_ptr<const PooledEvent> mark;
  std::atomic<bool> over{false};
};

struct CudaBackend::UnaskedDrain {
  explicit UnaskedDrain(DeviceShare& of) : share(of) {}
  DeviceShare& share;
  Gate over;
  Progress progress;
  std::mutex mutex;
  bool listed = false;  ///< All parts are in the list. With the mutex.
  std::vector<std::shared_ptr<UnaskedPart>> parts;
};

void CudaBackend::AwaitUnasked(DeviceShare& share) {
  constexpr std::chrono::milliseconds kLook(10), kPatience(100);
  auto drain = std::make_shared<UnaskedDrain>(share);
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    if (ending_) return;
    drains_.push_back(drain);
  }
  Wake();
  auto since = std::chrono::steady_clock::now();
  for (uint64_t steps = 0; !drain->over.WaitFor(kLook);) {
    const auto now = std::chrono::steady_clock::now();
    if (const uint64_t seen = drain->progress.steps(); seen != steps) {
      steps = seen;
      since = now;
    }
    // A function of the guest may take any time; nobody else shall wait for it, and its tenant not pay for it.
    if (now - since > kPatience && LeaveToStrays(*drain)) return;
  }
}

bool CudaBackend::LeaveToStrays(UnaskedDrain& drain) {
  const std::lock_guard<std::mutex> lock(drain.mutex);
  if (!drain.listed) return false;
  std::vector<std::shared_ptr<UnaskedPart>> left;
  for (const std::shared_ptr<UnaskedPart>& part : drain.parts) {
    if (part->over.load(std::memory_order_acquire)) continue;
    if (part->mark == nullptr || !gates_.Holds(part->context, part->stream)) return false;
    left.push_back(part);
  }
  for (const std::shared_ptr<UnaskedPart>& part : left) {
    const auto waits = [this, context = part->context, stream = part->stream] { return gates_.Holds(context, stream); };
    drain.share.sharing->strays.Add({part->context, nullptr, part->mark, waits});
  }
  return true;
}

void CudaBackend::DrainUnasked() {
  std::vector<std::shared_ptr<UnaskedDrain>> drains;
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    drains.swap(drains_);
  }
  for (const std::shared_ptr<UnaskedDrain>& drain : drains) {
    (void)SharingOf(drain->share);  // For what is left to its strays.
    Drain(drain);
  }
}

void CudaBackend::Drain(const std::shared_ptr<UnaskedDrain>& drain) {
  /// Opens when the last copy is gone.
  const std::shared_ptr<void> all(nullptr, [drain](void*) { drain->over.Open(); });
  const std::lock_guard<std::mutex> lock(drain->mutex);
  LaunchGate* const gate = drain->share.gate;
  const auto wait_for = [&](Context& context, StreamState* stream) {
    // What there is on other devices concerns nobody who waits for this one.
    if (context.gate != gate) return;
    if (!std::exchange(stream->launched_unasked, false) || EnterNative(context.native) != 0) return;
    for (const auto& mark : stream->open.Take()) {
      // So that a long queue is not taken for a kernel that never ends.
      waits_->OnEvent(
          context.native, mark->native(), mark, [all, drain, gate](CUresult) { gate->Charge(drain->progress.Step()); },
          &stream->lane);
    }
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (captures() && driver_.cuStreamIsCapturing != nullptr &&
        (driver_.cuStreamIsCapturing(stream->native(), &capture) != CUDA_SUCCESS ||
         capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
      return;
    }
    auto part = std::make_shared<UnaskedPart>();
    part->context = context.native;
    part->stream = stream->id.raw();
    part->mark = PooledEvent::Take(context.events);
    const CUstream native = stream == context.legacy.get() ? WatcherOf(context) : stream->native();
    if (part->mark != nullptr && driver_.cuEventRecord(part->mark->native(), native) != CUDA_SUCCESS) {
      part->mark = nullptr;
    }
    drain->parts.push_back(part);
    (void)waits_->After(&stream->lane, native, context.events, false,
                        [all, part](CUresult) { part->over.store(true, std::memory_order_release); });
  };
  objects_->Table<Context>().ForEach([&](wire::Id, Context& context) {
    if (context.error == 0) wait_for(context, context.legacy.get());
  });
  objects_->Table<Stream>().ForEach([&](wire::Id, Stream& stream) {
    if (stream.error != 0) return;
    Context* context = objects_->Table<Context>().Find(stream.state->context);
    if (context != nullptr && context->error == 0) wait_for(*context, stream.state.get());
  });
  std::erase_if(left_streams_, [&](LeftStream& left) {
    const Context* context = objects_->Table<Context>().Find(left.context);
    if (context == nullptr || context->error != 0) return true;
    if (context->gate != gate) return false;
    if (EnterNative(context->native) != 0) return true;
    auto part = std::make_shared<UnaskedPart>();
    part->context = context->native;
    part->stream = left.stream.raw();
    part->mark = left.end;
    drain->parts.push_back(part);
    waits_->OnEvent(context->native, left.end->native(), left.end,
                    [all, part](CUresult) { part->over.store(true, std::memory_order_release); });
    return true;
  });
  drain->listed = true;
}

void CudaBackend::EndSharing() {
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    ending_ = true;
    for (const std::shared_ptr<UnaskedDrain>& each : drains_) each->over.Open();
    drains_.clear();
  }
  for (const auto& share : shares_) {
    share->gate->SetDrain(nullptr);
    share->gate->Cancel();
    if (share->sharing == nullptr) continue;
    share->sharing->turns.Stop();
    share->sharing->strays.Stop();
  }
}

}  // namespace hawser::server::cuda_backend
