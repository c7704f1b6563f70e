// SPDX-License-Identifier: Apache-2.0
// The two pages of a policy's process, made and sealed by the scheduler.
#ifndef HAWSER_SCHEDULER_ISOLATED_SHARED_PAGES_H_
#define HAWSER_SCHEDULER_ISOLATED_SHARED_PAGES_H_

#include <memory>

#include "scheduler/isolated/page.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::scheduler {

/// Maps both; unmaps them at its end.
class SharedPages {
 public:
  static wire::Result<std::unique_ptr<SharedPages>> Create();
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  RequestPage& request() { return *request_; }
  ReplyPage& reply() { return *reply_; }
  /// For the process. The first can only be mapped for reading any more.
  int request_fd() const { return request_fd_.get(); }
  int reply_fd() const { return reply_fd_.get(); }

 private:
  SharedPages() = default;

  wire::Fd request_fd_, reply_fd_;
  RequestPage* request_ = nullptr;
  ReplyPage* reply_ = nullptr;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_SHARED_PAGES_H_
