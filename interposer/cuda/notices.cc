// SPDX-License-Identifier: Apache-2.0
// Runs under the session's receive role: may send, must not wait (interposer/core/session.h).
#include "interposer/cuda/notices.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "interposer/core/log.h"
#include "interposer/cuda/client.h"
#include "interposer/cuda/host_functions.h"
#include "proto/cuda/notices.h"
#include "proto/cuda_api/error_text.h"

namespace hawser::cu {
namespace {

using guest::Log;
using guest::LogLevel;

/// Through the program's own buffer, behind what it printed before and ahead of what it prints next. Past it only while
/// another thread holds that buffer: such a thread may be waiting for what this one receives.
void WriteOutput(wire::Bytes text) {
  if (::ftrylockfile(stdout) == 0) {
    (void)std::fwrite(text.data(), 1, text.size(), stdout);
    (void)std::fflush(stdout);
    ::funlockfile(stdout);
    return;
  }
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;  // Nobody reads it any more.
    }
    text = text.subspan(static_cast<size_t>(written));
  }
}

/// As a local driver would: past the program's buffer, line by line.
void WriteError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // Nobody reads it any more.
    text.remove_prefix(static_cast<size_t>(written));
  }
}

const char* Name(int32_t status) {
  const char* name = cuda_api::ErrorName(status);
  return name != nullptr ? name : "an unknown error";
}

void Raise(std::atomic<uint64_t>& counter, uint64_t to) {
  uint64_t value = counter.load(std::memory_order_relaxed);
  while (value < to && !counter.compare_exchange_weak(value, to, std::memory_order_acq_rel)) {
  }
}

class NoticeReceiver final : public guest::NoticeSink, public cuda::NoticeHandler {
 public:
  // guest::NoticeSink
  void OnNotice(uint16_t opcode, wire::Bytes payload) override {
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(payload.size());
    header.opcode = opcode;
    if (!cuda::DispatchNotice(header, payload, *this)) {
      Log(LogLevel::kWarning, "ignored a notice (opcode %u, %zu bytes) that this version cannot read", opcode,
          payload.size());
    }
  }
  void OnLost(const std::string&) override { HostFunctions::Get().Abandon(); }

  // cuda::NoticeHandler
  void OnCompleted(const cuda::Completed& notice) override {
    Registry::Get().With(notice.object, [&](Object& object) {
      if (auto* stream = dynamic_cast<CUstream_st*>(&object)) Raise(stream->finished, notice.ticket);
      if (auto* event = dynamic_cast<CUevent_st*>(&object)) Raise(event->finished, notice.ticket);
      // The legacy default stream has no name: its context's stands for it.
      if (auto* context = dynamic_cast<CUctx_st*>(&object)) Raise(context->legacy->finished, notice.ticket);
    });
  }

  void OnCommandFailed(const cuda::CommandFailed& notice) override {
    const char* reporter = "this message alone";
    if (notice.object) {
      Registry::Get().With(notice.object, [&](Object& object) { object.failed.store(notice.status); });
      reporter = "every call that uses what it should have created";
    } else {
      Registry::Get().With(notice.context, [&](Object& object) {
        auto* context = dynamic_cast<CUctx_st*>(&object);
        if (context == nullptr) return;
        int32_t none = 0;
        context->pending.compare_exchange_strong(none, notice.status);  // The first one is the cause.
        reporter = "the next call in its context";
      });
    }
    Log(LogLevel::kError, "%s (command %llu) failed on the server: %s%s%.*s; reported by %s",
        cuda::OpcodeName(static_cast<uint16_t>(notice.opcode)), static_cast<unsigned long long>(notice.seq),
        Name(notice.status), notice.text.empty() ? "" : ": ", static_cast<int>(notice.text.size()), notice.text.data(),
        reporter);
  }

  void OnRunHostFunction(const cuda::RunHostFunction& notice) override { HostFunctions::Get().Run(notice); }
  void OnKernelOutput(const cuda::KernelOutput& notice) override { WriteOutput(notice.text); }

  void OnContextFault(const cuda::ContextFault& notice) override {
    Registry::Get().With(notice.context, [&](Object& object) {
      if (auto* context = dynamic_cast<CUctx_st*>(&object)) {
        int32_t none = 0;
        context->fault.compare_exchange_strong(none, notice.status);
      }
    });
    // Whole lines: what assert() wrote.
    const std::string_view text(notice.text.data(), notice.text.size());
    if (notice.status == CUDA_ERROR_ASSERT && !text.empty() && text.back() == '\n') {
      WriteError(text);
      Log(LogLevel::kError, "a context is broken: %s", Name(notice.status));
      return;
    }
    Log(LogLevel::kError, "a context is broken: %s%s%.*s", Name(notice.status), notice.text.empty() ? "" : ": ",
        static_cast<int>(notice.text.size()), notice.text.data());
  }

  void OnCrowded(const cuda::Crowded& notice) override { Client::Get().SetCrowded(notice.crowded != 0); }
  void OnSessionLost(const cuda::SessionLost&) override {}  // The session itself listens to it.
};

}  // namespace

guest::NoticeSink* Notices() {
  static auto* receiver = new NoticeReceiver;
  return receiver;
}

}  // namespace hawser::cu
