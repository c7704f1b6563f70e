// SPDX-License-Identifier: Apache-2.0
#include "server/worker/crash_notice.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "server/worker/driver_messages.h"

namespace hawser::server {
namespace {

struct Course {
  int signal;
  std::string_view reason;
};
constexpr std::array<Course, 5> kCourses{{
    {SIGSEGV, "the device's process crashed (SIGSEGV): a kernel or the driver touched memory that is not its own"},
    {SIGBUS, "the device's process crashed (SIGBUS): a kernel or the driver touched memory that does not exist"},
    {SIGILL, "the device's process crashed (SIGILL): a kernel or the driver ran an illegal instruction"},
    {SIGFPE, "the device's process crashed (SIGFPE): a kernel or the driver divided by zero"},
    {SIGABRT, "the device's process aborted (SIGABRT): the driver found itself in an impossible state"},
}};

/// Ready before anything happens: a signal handler may not allocate.
struct Frame {
  std::array<std::byte, 256> bytes{};
  size_t size = 0;
};
std::array<Frame, kCourses.size()> frames;
std::atomic<ChannelReplies*> crash_replies{nullptr};
alignas(16) std::byte alternate_stack[64 << 10];

void OnSignal(int signal) {
  // A second fault takes the default course at once; a handler that hangs is ended by the alarm.
  ::alarm(2);
  DriverMessages::Rescue();
  for (size_t i = 0; i < kCourses.size(); ++i) {
    if (kCourses[i].signal != signal) continue;
    constexpr std::string_view kLevel = "error: ";
    (void)!::write(2, kLevel.data(), kLevel.size());
    (void)!::write(2, kCourses[i].reason.data(), kCourses[i].reason.size());
    (void)!::write(2, "\n", 1);
    if (ChannelReplies* replies = crash_replies.load(std::memory_order_acquire)) {
      replies->TrySendRaw({frames[i].bytes.data(), frames[i].size});
    }
  }
  ::alarm(0);
  ::raise(signal);  // SA_RESETHAND restored the default course.
}

}  // namespace

void InstallCrashHandlers() {
  stack_t stack{};
  stack.ss_sp = alternate_stack;
  stack.ss_size = sizeof(alternate_stack);
  ::sigaltstack(&stack, nullptr);
  for (size_t i = 0; i < kCourses.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = OnSignal;
    action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
    ::sigaction(kCourses[i].signal, &action, nullptr);
  }
}

void SetCrashReplies(ChannelReplies* replies, const Dialect& dialect) {
  for (size_t i = 0; i < kCourses.size(); ++i) frames[i].size = dialect.EncodeLost(kCourses[i].reason, frames[i].bytes);
  crash_replies.store(replies, std::memory_order_release);
}

void ForgetCrashReplies() { crash_replies.store(nullptr, std::memory_order_release); }

}  // namespace hawser::server
