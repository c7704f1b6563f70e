// SPDX-License-Identifier: Apache-2.0
// hawser-worker: serves one guest process and ends with it. Started by hawserd, never by people.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "server/grants/grant_share.h"
#include "server/session_stats.h"
#include "server/worker/backend_factory.h"
#include "server/worker/confinement.h"
#include "server/worker/crash_notice.h"
#include "server/worker/driver_messages.h"
#include "server/worker/export_client.h"
#include "server/worker/grant_gates.h"
#include "server/worker/guest_session.h"
#include "server/worker/sandbox.h"

namespace hawser::server {
namespace {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

Result<WorkerSettings> ReadSettings() {
  const Fd fd(kSettingsFd);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::pread(fd.get(), buffer, sizeof(buffer), static_cast<off_t>(text.size()));
    if (got < 0) return Status::FromErrno("cannot read the settings; hawser-worker is started by hawserd");
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return WorkerSettings::Parse(text);
}

/// Streams of this process: nothing to read, nothing printed until KernelOutput says so.
Status PrepareStreams() {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid() || ::dup2(null.get(), 0) < 0 || ::dup2(null.get(), 1) < 0) {
    return Status::FromErrno("cannot open /dev/null");
  }
  // What a driver prints must not wait in a buffer of the C library.
  ::setvbuf(stdout, nullptr, _IONBF, 0);
  return {};
}

/// Heaps grow in large steps. A driver's compiler asks for 20 to 100 MiB on a thread whose heap is empty. The C library
/// grows the heap of a thread that is not the first page by page, a system call each: 16,000 of them were a twelfth of
/// a build. A heap that begins as large as one may be is not grown; memory that nobody touches costs nothing. Setting
/// any of the three ends their adjustment at run time, so all are set.
void GrowHeapsInLargeSteps() {
  ::mallopt(M_TOP_PAD, 64 << 20);  // HEAP_MAX_SIZE of glibc.
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

Status Harden(const WorkerSettings& settings) {
  if (Status status = DieWithParent(settings.server_pid); !status.ok()) return status;
  if (Status status = PrepareStreams(); !status.ok()) return status;
  const bool shm = settings.transport == wire::Transport::kShm;
  const int bell = settings.grants ? kBellFd : -1;
  const int ask = settings.grants ? kAskFd : -1;
  const int exports = settings.exports ? kExportFd : -1;
  CloseFrom(shm ? kBulkFd : kBulkFd + 1, {bell, exports, ask});
  for (const int kept : {bell, exports, ask}) {
    if (kept >= 0) ::fcntl(kept, F_SETFD, FD_CLOEXEC);
  }
  for (int fd = kCommandFd; fd <= (shm ? kCommandFd : kBulkFd); ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (Status status = ApplyResourceLimits(settings); !status.ok()) return status;
  ::signal(SIGPIPE, SIG_IGN);
  // Our own ICD must never find its way into the server's list of platforms.
  ::setenv("HAWSER_WORKER", "1", 1);
  ::unsetenv("HAWSER_SERVER");
  if (!settings.driver_cache.empty()) ::setenv("XDG_CACHE_HOME", settings.driver_cache.c_str(), 1);
  if (!settings.temporary.empty()) ::setenv("TMPDIR", settings.temporary.c_str(), 1);
  if (Status status = DropPrivileges(settings); !status.ok()) return status;
  if (!settings.confine || !CanBeConfined(settings)) return {};
  Result<bool> confined = Confine(PlacesOf(settings));
  if (!confined.ok()) return confined.status();
  if (!*confined) return {};
  // Which it cannot find out by itself.
  ::setenv("HAWSER_SOFT_SHARES", "off", 1);
  return {};
}

/// hawserd stops a worker with SIGTERM, which is blocked in every thread and taken by this one: from
/// here the guest can be told properly, whatever the executor is doing.
class StopWatcher {
 public:
  /// Before any thread starts.
  static void BlockSignal() {
    const sigset_t set = Signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
  void Start(GuestSession* session, const SessionStatsPage* stats) {
    std::thread([this, session, stats] {
      const sigset_t set = Signals();
      int signal = 0;
      while (::sigwait(&set, &signal) != 0) {
      }
      stopped_ = true;
      const std::string reason(stats->stop_reason, ::strnlen(stats->stop_reason, sizeof(stats->stop_reason)));
      session->Stop(reason.empty() ? "the server was stopped" : reason,
                    stats->stop_cause.load(std::memory_order_relaxed));
      // An executor that is in the middle of something long does not come back in time.
      ::sleep(1);
      DriverMessages::Rescue();
      ::_exit(kStopped);
    }).detach();
  }
  bool stopped() const { return stopped_; }

 private:
  static sigset_t Signals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTERM);
    return set;
  }

  std::atomic<bool> stopped_{false};
};

int Main() {
  GrowHeapsInLargeSteps();
  StopWatcher::BlockSignal();
  Result<WorkerSettings> settings = ReadSettings();
  SessionLog log;
  if (!settings.ok()) {
    log.Write("error", settings.status().text());
    return kStartFailed;
  }
  // Before Harden() closes its descriptor.
  Result<SessionStats> stats = SessionStats::Attach(kStatsFd);
  if (!stats.ok()) {
    log.Write("error", stats.status().text());
    return kStartFailed;
  }
  GrantShare grants;
  if (settings->grants) {
    Result<GrantShare> share = GrantShare::Attach(kGrantFd);
    if (!share.ok()) {
      log.Write("error", share.status().text());
      return kStartFailed;
    }
    grants = std::move(*share);
  }
  if (Status status = Harden(*settings); !status.ok()) {
    log.Write("error", status.text());
    return status.code() == Code::kClosed ? kOrphaned : kStartFailed;
  }
  Fd command(kCommandFd), bulk(settings->transport == wire::Transport::kShm ? -1 : kBulkFd);
  InstallCrashHandlers();
  const auto fail = [&](const std::string& why) {
    log.Write("error", why);
    SendRefusal(kCommandFd, why);
    return kStartFailed;
  };
  Result<ChosenBackend> chosen = CreateBackend(*settings, &log);
  if (!chosen.ok()) return fail(chosen.status().text());
  if (!chosen->reserves_addresses) {
    if (Status status = LimitAddressSpace(*settings); !status.ok()) return fail(status.text());
  }
  if (settings->syscall_filter) {
    if (Status status = InstallSyscallFilter(); !status.ok()) return fail(status.text());
  }
  std::unique_ptr<GrantGates> gates;
  if (grants.valid()) gates = std::make_unique<GrantGates>(std::move(grants), Fd(kBellFd), Fd(kAskFd));
  std::unique_ptr<ExportClient> exports;
  if (settings->exports) exports = std::make_unique<ExportClient>(Fd(kExportFd));
  auto session = GuestSession::Start(*settings, std::move(command), std::move(bulk), chosen->backend.get(), &log,
                                     stats->page(), gates.get(), exports.get());
  // From here on out at once, with everything that still runs: the backend knows the gates and the session's services,
  // and its destructor would come after theirs.
  if (!session.ok()) {
    if (session.status().code() == Code::kClosed) ::_exit(kGuestLeft);
    log.Write("error", session.status().text());
    ::_exit(kStartFailed);
  }
  StopWatcher watcher;
  watcher.Start(session->get(), stats->page());
  const Executor::End end = (*session)->Run();
  DriverMessages::Rescue();
  if (end == Executor::End::kGuestLeft) ::_exit(kGuestLeft);
  ::_exit(watcher.stopped() ? kStopped : kProtocolError);
}

}  // namespace
}  // namespace hawser::server

// _exit: kernels may still run and driver threads may still use what destructors would free; the end
// of the process frees everything at once.
int main() { ::_exit(hawser::server::Main()); }
