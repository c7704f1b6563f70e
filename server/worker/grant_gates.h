// SPDX-License-Identifier: Apache-2.0
// The gates of a worker whose server has a scheduler: one for each device that it uses, over the memory and the bells
// that it shares with hawserd (server/grants/grant_share.h). Each has a thread; so one is made when its device is used
// first.
#ifndef HAWSER_SERVER_WORKER_GRANT_GATES_H_
#define HAWSER_SERVER_WORKER_GRANT_GATES_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/grants/grant_share.h"
#include "server/worker/grant_gate.h"
#include "server/worker/launch_gate.h"
#include "wire/socket.h"

namespace hawser::server {

class GrantGates final : public LaunchGates {
 public:
  /// `bell` rings at the schedulers, `ask` at hawserd: a device is used for the first time.
  GrantGates(GrantShare share, wire::Fd bell, wire::Fd ask)
      : share_(std::move(share)), bell_(std::move(bell)), ask_(std::move(ask)) {}

  /// Beyond kMostDevices devices share gates.
  LaunchGate& Of(const std::string& device) override;

 private:
  const GrantShare share_;
  EventBell bell_, ask_;
  std::mutex mutex_;
  std::map<std::string, GrantGate*> known_;
  std::vector<std::unique_ptr<GrantGate>> gates_;  ///< By slot.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_GRANT_GATES_H_
