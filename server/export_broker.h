// SPDX-License-Identifier: Apache-2.0
// hawserd's end of the workers' questions about what sessions share.
#ifndef HAWSER_SERVER_EXPORT_BROKER_H_
#define HAWSER_SERVER_EXPORT_BROKER_H_

#include <cstdint>
#include <map>
#include <string>

#include "server/event_loop.h"
#include "server/export_table.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: the event loop's thread.
class ExportBroker {
 public:
  /// `loop` is borrowed.
  explicit ExportBroker(EventLoop* loop);
  ~ExportBroker();
  ExportBroker(const ExportBroker&) = delete;
  ExportBroker& operator=(const ExportBroker&) = delete;

  /// A session begins; the descriptor is its worker's.
  wire::Result<wire::Fd> Begin(uint64_t session, const std::string& tenant);
  void End(uint64_t session);

  const ExportTable& table() const { return table_; }

 private:
  struct Worker {
    wire::Fd fd;
    EventLoop::WatchId watch = 0;
  };

  void OnRequest(uint64_t session);
  /// A worker that breaks the rules, or has gone, is answered no more.
  void Close(Worker& worker);

  EventLoop* const loop_;
  ExportTable table_;  ///< Keeps a quarter of the descriptors that hawserd may have.
  std::map<uint64_t, Worker> workers_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_EXPORT_BROKER_H_
