// SPDX-License-Identifier: Apache-2.0
#include "server/worker/guest_session.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "proto/session/messages.h"
#include "server/handshake.h"
#include "server/worker/crash_notice.h"
#include "server/worker/heap_place.h"

namespace hawser::server {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

void SendRefusal(int command_socket, const std::string& why) {
  (void)wire::SendWithFds(command_socket, RefusalFrame(why), {});
}

Result<std::unique_ptr<GuestSession>> GuestSession::Start(const WorkerSettings& settings, Fd command, Fd bulk,
                                                          SessionBackend* backend, SessionLog* log,
                                                          SessionStatsPage* stats, LaunchGates* gates,
                                                          ExportClient* exports) {
  std::unique_ptr<GuestSession> session(new GuestSession(settings, backend, log, stats, gates, exports));
  const Status opened = settings.transport == Transport::kShm
                            ? session->OpenShm(std::move(command))
                            : session->OpenSockets(std::move(command), std::move(bulk));
  if (!opened.ok()) return opened;
  session->StartServices();
  if (Status status = session->SendWelcome(); !status.ok()) return status;
  stats->phase.store(SessionStatsPage::kRunning, std::memory_order_relaxed);
  return session;
}

GuestSession::~GuestSession() {
  watch_.reset();
  ForgetCrashReplies();
  if (command_) Shutdown();
  output_.reset();
  bulk_out_.reset();
  bulk_in_.reset();
  replies_.reset();
  if (heap_.base != nullptr) ::munmap(heap_.base, heap_.size);
}

void GuestSession::Shutdown() {
  command_->Shutdown();
  bulk_->Shutdown();
}

uint32_t GuestSession::bulk_chunk() const {
  // Through shared memory a chunk is copied in and out again: one that stays in the cache is faster.
  return settings_.transport == Transport::kShm ? 256u << 10 : 1u << 20;
}

Status GuestSession::OpenShm(Fd command) {
  liveness_ = std::move(command);
  Result<std::unique_ptr<wire::ShmSession>> shm = wire::ShmSession::Create(wire::ShmLayout{});
  if (!shm.ok()) return shm.status();
  shm_ = std::move(*shm);
  command_ = shm_->CommandChannel(wire::ShmSession::Side::kServer, liveness_.get());
  bulk_ = shm_->BulkChannel(wire::ShmSession::Side::kServer, liveness_.get());
  if (settings_.share_memory && backend_->WantsHeap()) MakeHeap();
  return {};
}

Status GuestSession::OpenSockets(Fd command, Fd bulk) {
  if (Status status = wire::TuneStream(command.get(), settings_.transport, wire::SocketUse::kCommand); !status.ok()) {
    return status;
  }
  if (Status status = wire::TuneStream(bulk.get(), settings_.transport, wire::SocketUse::kBulk); !status.ok()) {
    return status;
  }
  command_ = wire::MakeSocketChannel(std::move(command), settings_.transport);
  bulk_ = wire::MakeSocketChannel(std::move(bulk), settings_.transport);
  return {};
}

void GuestSession::MakeHeap() {
  uint64_t size = backend_->HeapSizeHint();
  if (settings_.device_memory != 0) size = std::min(size, settings_.device_memory);
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  size -= size % page;
  if (size == 0) return;
  // A session without a heap works, only slower.
  Result<Fd> fd = wire::CreateHeap(size, "hawser-heap");
  if (!fd.ok()) return log_->Write("warning", "no shared heap: " + fd.status().text());
  Result<std::byte*> base = MapHeap(size, fd->get());
  if (!base.ok()) return log_->Write("warning", base.status().text());
  heap_fd_ = std::move(*fd);
  heap_ = {*base, size, heap_fd_.get()};
}

Status GuestSession::SendWelcome() {
  session::Welcome welcome;
  welcome.accepted = 1;
  welcome.session = settings_.session;
  welcome.heap_size = heap_.size;
  welcome.inline_limit = settings_.inline_limit;
  welcome.bulk_chunk = bulk_chunk();
  const std::vector<std::byte> frame = WelcomeFrame(welcome);
  if (shm_ == nullptr) return command_->WriteAll(frame);
  std::vector<int> fds{shm_->memfd()};
  if (heap_fd_.valid()) fds.push_back(heap_fd_.get());
  return wire::SendWithFds(liveness_.get(), frame, fds);
}

void GuestSession::StartServices() {
  replies_ = std::make_unique<ChannelReplies>(
      command_.get(), ChannelReplies::kDefaultMaxBacklog,
      [this](const Status& status) {
        // A guest that is gone is no error, and the executor sees it by itself.
        if (status.code() == Code::kClosed) return command_->Shutdown();
        executor_->Lose(status.text(), /*tell_guest=*/false);
      },
      stats_);
  // Looking at a socket is a system call; looking at a ring is a load.
  constexpr uint32_t kMaxSocketSpin = 20;
  const uint32_t spin = shm_ != nullptr ? settings_.spin_us : std::min(settings_.spin_us, kMaxSocketSpin);
  executor_ = std::make_unique<Executor>(command_.get(), backend_, replies_.get(), log_,
                                         wire::SpinPolicy{std::chrono::microseconds(spin)}, stats_);
  ChannelBulkReceiver::Options receive;
  receive.staging_memory = settings_.staging_memory;
  receive.stats = stats_;
  bulk_in_ = std::make_unique<ChannelBulkReceiver>(bulk_.get(), receive, [this](const std::string& violation) {
    executor_->Lose("the bulk stream is broken: " + violation);
  });
  bulk_out_ = std::make_unique<ChannelBulkSender>(bulk_.get(), bulk_chunk(), stats_);
  output_ =
      std::make_unique<KernelOutput>(replies_.get(), &backend_->dialect(), [this] { return replies_->backlog(); });
  SetCrashReplies(replies_.get(), backend_->dialect());

  Services services;
  services.replies = replies_.get();
  services.bulk_in = bulk_in_.get();
  services.bulk_out = bulk_out_.get();
  services.heap = heap_;
  services.stats = stats_;
  services.launch_gates = gates_;
  services.exports = exports_;
  services.limits.device_memory = settings_.device_memory;
  services.limits.staging_memory = settings_.staging_memory;
  services.limits.max_objects = settings_.max_objects;
  services.limits.inline_limit = settings_.inline_limit;
  services.drain_kernel_output = [this] { output_->Drain(); };
  services.enable_kernel_output = [this] {
    if (Status status = output_->Enable(); !status.ok()) log_->Write("warning", status.text());
  };
  services.take_assertions = [this] { return messages_.Take(); };
  services.enable_assertions = [this] {
    if (Status status = messages_.Enable(); !status.ok()) log_->Write("warning", status.text());
  };
  services.log = [this](std::string_view level, const std::string& text) { log_->Write(level, text); };
  backend_->SetServices(services);

  if (shm_ == nullptr) return;
  // Not over sockets, whose readers see the end themselves.
  Result<std::unique_ptr<HangUpWatch>> watch = HangUpWatch::Start(liveness_.get(), [this] {
    executor_->Abandon();
    Shutdown();
  });
  if (!watch.ok()) return log_->Write("warning", watch.status().text());
  watch_ = std::move(*watch);
}

}  // namespace hawser::server
