// SPDX-License-Identifier: Apache-2.0
// A worker of hawserd's schedulers as a part of the test: the descriptors as a process would get them, behind its
// gates.
#ifndef HAWSER_TESTS_UNIT_SERVER_SCHEDULED_WORKER_H_
#define HAWSER_TESTS_UNIT_SERVER_SCHEDULED_WORKER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/grants/device_schedulers.h"
#include "server/worker/grant_gates.h"

namespace hawser::server {

class ScheduledWorker {
 public:
  ScheduledWorker(DeviceSchedulers& schedulers, uint64_t session, const std::string& tenant) : schedulers_(schedulers) {
    wire::Result<GrantDescriptors> theirs = schedulers.Prepare(session);
    if (!theirs.ok()) ADD_FAILURE() << theirs.status().text();
    wire::Result<GrantShare> share = GrantShare::Attach(theirs->page.get());
    if (!share.ok()) ADD_FAILURE() << share.status().text();
    schedulers.SessionStarted(session, tenant);
    gates_ = std::make_unique<GrantGates>(std::move(*share), std::move(theirs->bell), std::move(theirs->ask));
  }

  /// What has to be told until then is not.
  LaunchGate& Of(const std::string& device) {
    LaunchGate& gate = gates_->Of(device);
    (void)schedulers_.TakeNotices();  // hawserd's event loop would hear that the worker asked.
    return gate;
  }

 private:
  DeviceSchedulers& schedulers_;
  std::unique_ptr<GrantGates> gates_;
};

}  // namespace hawser::server

#endif  // HAWSER_TESTS_UNIT_SERVER_SCHEDULED_WORKER_H_
