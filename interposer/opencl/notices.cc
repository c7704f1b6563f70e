// SPDX-License-Identifier: Apache-2.0
// What the server says unasked, handed to those whom it concerns. Runs under the session's receive role; see
// delivery.h for what is allowed here.
#include "proto/opencl/notices.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "interposer/core/log.h"
#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "proto/facts/error_names.h"

namespace hawser::ocl {
namespace {

using guest::Log;
using guest::LogLevel;

/// Writes all of it to the program's standard output. Not through stdio: an OpenCL implementation writes what kernels
/// print with write(2) when a kernel ends, past the buffer of the program's own printf. Doing the same keeps the
/// output of `program > file` what it is on a local device.
void WriteOutput(wire::Bytes text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;  // Nobody reads it any more.
    }
    text = text.subspan(static_cast<size_t>(written));
  }
}

/// The server's text begins with the call and ends with the code, which the line says already.
std::string_view WithoutRepetition(std::string_view text, std::string_view call, std::string_view code) {
  if (text.substr(0, call.size()) == call) text.remove_prefix(call.size());
  if (text.substr(0, 2) == ": ") text.remove_prefix(2);
  if (text.size() >= code.size() && text.substr(text.size() - code.size()) == code) text.remove_suffix(code.size());
  if (text.size() >= 2 && text.substr(text.size() - 2) == ": ") text.remove_suffix(2);
  return text;
}

class NoticeReceiver final : public guest::NoticeSink, public opencl::NoticeHandler {
 public:
  // guest::NoticeSink
  void OnNotice(uint16_t opcode, wire::Bytes payload) override {
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(payload.size());
    header.opcode = opcode;
    if (!opencl::DispatchNotice(header, payload, *this)) {
      Log(LogLevel::kWarning, "ignored a notice (opcode %u, %zu bytes) that this version cannot read", opcode,
          payload.size());
    }
  }
  void OnLost(const std::string& reason) override {
    Log(LogLevel::kError, "the connection to the server ended: %s; every further call returns CL_DEVICE_NOT_AVAILABLE",
        reason.c_str());
    OnEventsLost();
    OnMemsLost();
  }

  // opencl::NoticeHandler
  void OnEventStatus(const opencl::EventStatus& notice) override { ocl::OnEventStatus(notice); }
  void OnReleased(const opencl::Released& notice) override { ocl::OnReleased(notice.object); }
  void OnKernelOutput(const opencl::KernelOutput& notice) override { WriteOutput(notice.text); }

  void OnCommandFailed(const opencl::CommandFailed& notice) override {
    const bool makes_event = notice.object.type() == HandleTraits<cl_event>::kType;
    const char* reporter = "this message alone";
    if (makes_event) {
      // The driver never saw the command, so that nothing else will end its event.
      opencl::EventStatus end;
      end.event = notice.object;
      end.status = notice.status;
      ocl::OnEventStatus(end);
      reporter = "the command's event";
    } else if (notice.object) {
      Registry::Get().MarkFailed(notice.object, notice.status);
      reporter = "every call that uses what it should have created";
    } else if (cl_command_queue queue = Registry::Get().FindQueue(notice.queue)) {
      cl_int none = CL_SUCCESS;
      queue->pending_error.compare_exchange_strong(none, notice.status);  // The first one is the cause.
      DropUse(queue);
      reporter = "the next call on its queue";
    }
    const std::string_view text =
        WithoutRepetition(notice.text, CallName(notice.opcode), opencl::ErrorName(notice.status));
    Log(LogLevel::kError, "%s (call #%llu) failed on the server: %s%s%.*s; reported by %s", CallName(notice.opcode),
        static_cast<unsigned long long>(notice.seq), opencl::ErrorName(notice.status), text.empty() ? "" : ": ",
        static_cast<int>(text.size()), text.data(), reporter);
  }

  void OnContextError(const opencl::ContextError& notice) override {
    std::string text(notice.text);
    cl_context context = Registry::Get().FindContext(notice.context);
    if (context == nullptr) return;
    if (context->notify == nullptr) {
      Log(LogLevel::kWarning, "the device says: %s", text.c_str());
      DropUse(context);
      return;
    }
    std::vector<std::byte> details(notice.private_info.begin(), notice.private_info.end());
    context->session->PostCallback([context, text = std::move(text), details = std::move(details)] {
      context->notify(text.c_str(), details.data(), details.size(), context->notify_data);
      DropUse(context);
    });
  }

  void OnSessionLost(const opencl::SessionLost& notice) override {
    // The connection closes right after; OnLost() says so too, but perhaps with less to say.
    Log(LogLevel::kError, "the server ends the session: %.*s", static_cast<int>(notice.reason.size()),
        notice.reason.data());
  }

 private:
  static const char* CallName(uint32_t opcode) {
    const char* name = opencl::OpcodeName(static_cast<uint16_t>(opcode));
    return name != nullptr ? name : "a call";
  }
};

}  // namespace

guest::NoticeSink* Notices() {
  static auto* receiver = new NoticeReceiver;
  return receiver;
}

}  // namespace hawser::ocl
