// SPDX-License-Identifier: Apache-2.0
#include "server/export_broker.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace hawser::server {
namespace {

using wire::Fd;
using wire::Result;
using wire::Status;

/// Answers in a row before others have their turn.
constexpr int kRequestsPerRound = 64;

/// Descriptors that workers may have kept here, all together: of what this process may have, by its own leave.
size_t MostFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<size_t>(limit.rlim_max, 1u << 20) / 4;  // hawserd raises its limit as far as it may.
}

}  // namespace

ExportBroker::ExportBroker(EventLoop* loop) : loop_(loop), table_(MostFiles()) {}

ExportBroker::~ExportBroker() {
  for (auto& [session, worker] : workers_) Close(worker);
}

Result<Fd> ExportBroker::Begin(uint64_t session, const std::string& tenant) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status::FromErrno("cannot create a worker's sockets");
  }
  Worker worker;
  worker.fd = Fd(ends[0]);
  Fd theirs(ends[1]);
  auto watch = loop_->Watch(worker.fd.get(), EPOLLIN, [this, session](uint32_t) { OnRequest(session); });
  if (!watch.ok()) return watch.status();
  worker.watch = *watch;
  workers_[session] = std::move(worker);
  table_.Begin(session, tenant);
  return theirs;
}

void ExportBroker::End(uint64_t session) {
  const auto at = workers_.find(session);
  if (at == workers_.end()) return;
  Close(at->second);
  workers_.erase(at);
  table_.End(session);
}

void ExportBroker::Close(Worker& worker) {
  loop_->Unwatch(std::exchange(worker.watch, 0));
  worker.fd.Reset();
}

void ExportBroker::OnRequest(uint64_t session) {
  const auto at = workers_.find(session);
  if (at == workers_.end() || !at->second.fd.valid()) return;
  for (int i = 0; i < kRequestsPerRound; ++i) {
    const ExportTable::Served served = table_.Serve(session, at->second.fd.get());
    if (served == ExportTable::Served::kBroken) Close(at->second);
    if (served != ExportTable::Served::kOne) return;
  }
}

}  // namespace hawser::server
