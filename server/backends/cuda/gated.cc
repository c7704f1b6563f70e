// SPDX-License-Identifier: Apache-2.0
// Launches while others want the device too, and the commands that wait behind them.
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// Cores of a multiprocessor, where the settings do not say.
constexpr uint64_t kCoresOfMultiprocessor = 128;

}  // namespace

Sharing& CudaBackend::sharing() {
  if (sharing_ == nullptr) {
    int processors = 1;
    (void)driver_.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, AnyDevice());
    const uint64_t cores =
        split_.cores != 0 ? split_.cores : static_cast<uint64_t>(processors) * kCoresOfMultiprocessor;
    sharing_ = std::make_unique<Sharing>(
        &driver_, gate_, &split_, cores, services_.stats,
        [this](std::string_view level, const std::string& text) { Log(level, text); }, [this] { Wake(); });
  }
  return *sharing_;
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
  objects_->Table<Stream>().ForEach([&](wire::Id, Stream& stream) {
    if (stream.error == 0 && stream.state->context == at.stream->context && !stream.state->nonblocking) {
      look(stream.state);
    }
  });
}

int32_t CudaBackend::Submit(const cuda::Call& call, const Place& at, wire::Id context, KernelLaunch launch,
                            std::shared_ptr<KernelFacts> kernel, std::vector<wire::Id> events) {
  if (captures() && driver_.cuStreamIsCapturing != nullptr) {
    // A capture makes a node of it; and a stream that cannot be asked has its own reasons.
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver_.cuStreamIsCapturing(at.native(), &capture) != CUDA_SUCCESS ||
        capture != CU_STREAM_CAPTURE_STATUS_NONE) {
      return Finish(call, launch.Run(driver_, at.native()), context);
    }
  }
  Sharing& shared = sharing();
  auto turn = std::make_unique<Turn>();
  turn->stream = at.stream->shared_from_this();
  turn->timers = at.context->timers;
  turn->launch = std::move(launch);
  turn->kernel = std::move(kernel);
  turn->context = context;
  if (split_.size == 0 && gate_->BeginOpen()) {
    // Alone, but somebody listens.
    at.stream->launched_unasked = true;
    (void)shared.turns.Give(*turn, 0, /*entered=*/false);
    gate_->EndOpen();
    return Finish(call, turn->result, context);
  }
  const KernelFacts* facts = turn->kernel.get();
  if (split_.splits && turn->launch.graph == nullptr && turn->launch.AttributesAllowParts() &&
      shared.sizes.IsLong(*facts, turn->launch)) {
    turn->sliced = shared.sliced.Find(turn->kernel, at.context->native, /*wait=*/split_.size != 0);
    if (turn->sliced != nullptr && turn->launch.parameters.size() < turn->sliced->layout.own_bytes)
      turn->sliced = nullptr;
  }
  FindUnfinished(at, &turn->before);
  if (turn->sliced == nullptr && turn->before.empty() && shared.turns.idle()) {
    const uint64_t estimate = shared.sizes.Estimate(facts, turn->launch.blocks() * turn->launch.block_threads());
    if (gate_->TryEnter(estimate)) {
      (void)shared.turns.Give(*turn, estimate, /*entered=*/true);
      return Finish(call, turn->result, context);
    }
  }
  turn->events = std::move(events);
  turn->since = std::chrono::steady_clock::now();
  turn->header.opcode = call.opcode;
  turn->header.flags = call.flags;
  turn->header.seq = call.seq;
  Footprint held = StreamFootprint(context, at.stream->id);
  for (size_t i = 0; i < turn->events.size() && i < 2; ++i) {
    (i == 0 ? held.event : held.second_event) = turn->events[i];
    held.changes_event = true;
  }
  deferral_.Hold(held);
  deferring_ = true;
  shared.turns.Add(std::move(turn));
  concluded_later_ = true;
  return 0;
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
  while (deferral_.full()) {
    // As a driver does whose queue is full. Others are waited for: the gate and the device, neither of which needs this
    // thread.
    AwaitNews();
    Resume();
  }
  if (deferral_.idle()) return ExecuteNow(header, payload, error);
  const Footprint footprint = FootprintOf(header, payload);
  if (!deferral_.MustWait(footprint)) return ExecuteNow(header, payload, error);
  DeferredFrame frame;
  frame.header = header;
  frame.footprint = footprint;
  const cuda::Call call{header.seq, header.opcode, header.flags};
  switch (static_cast<cuda::Opcode>(header.opcode)) {
    case cuda::Opcode::kWatchStream:
    case cuda::Opcode::kWatchEvent:
      (void)ReplyStatus(call, CUDA_ERROR_NOT_READY);
      frame.answered = true;
      break;
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
  if (!news_.exchange(false, std::memory_order_acq_rel)) return;
  DrainUnasked();
  if (sharing_ == nullptr || !sharing_->turns.has_over()) return;
  for (const std::unique_ptr<Turn>& turn : sharing_->turns.TakeOver()) {
    (void)deferral_.Release(turn->context, turn->stream->id);
    const cuda::Call call{turn->header.seq, turn->header.opcode, turn->header.flags};
    const int32_t status = Finish(call, turn->result, turn->context);
    Report(turn->header, {.status = status}, {});
  }
  deferral_.Run([this](DeferredFrame& frame) {
    std::string error;
    watch_answered_ = frame.answered;
    const Outcome outcome = ExecuteNow(frame.header, frame.payload, &error);
    watch_answered_ = false;
    Report(frame.header, outcome, error);
  });
  deferring_ = !deferral_.idle();
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

void CudaBackend::AwaitUnasked() {
  auto over = std::make_shared<Gate>();
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    if (ending_) return;
    drains_.push_back(over);
  }
  Wake();
  over->Wait();
}

void CudaBackend::DrainUnasked() {
  std::vector<std::shared_ptr<Gate>> drains;
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    drains.swap(drains_);
  }
  if (drains.empty()) return;
  /// Opens when the last copy is gone.
  const std::shared_ptr<void> all(nullptr, [drains](void*) {
    for (const std::shared_ptr<Gate>& each : drains) each->Open();
  });
  const auto wait_for = [&](const Context& context, StreamState* stream) {
    if (!std::exchange(stream->launched_unasked, false) || EnterNative(context.native) != 0) return;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (captures() && driver_.cuStreamIsCapturing != nullptr &&
        (driver_.cuStreamIsCapturing(stream->native(), &capture) != CUDA_SUCCESS ||
         capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
      return;
    }
    (void)waits_->After(&stream->lane, stream->native(), context.events, false, [all](CUresult) {});
  };
  objects_->Table<Context>().ForEach([&](wire::Id, Context& context) {
    if (context.error == 0) wait_for(context, context.legacy.get());
  });
  objects_->Table<Stream>().ForEach([&](wire::Id, Stream& stream) {
    if (stream.error != 0) return;
    const Context* context = objects_->Table<Context>().Find(stream.state->context);
    if (context != nullptr && context->error == 0) wait_for(*context, stream.state.get());
  });
}

void CudaBackend::EndSharing() {
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    ending_ = true;
    for (const std::shared_ptr<Gate>& each : drains_) each->Open();
    drains_.clear();
  }
  if (gate_ == nullptr) return;
  gate_->SetDrain(nullptr);
  gate_->Cancel();
  if (sharing_ != nullptr) sharing_->turns.Stop();
}

}  // namespace hawser::server::cuda_backend
