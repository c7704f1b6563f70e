// SPDX-License-Identifier: Apache-2.0
// Lets other threads have things done by the thread of an event loop, and wait for the result.
//
// Threads: Open() and Close() on the event loop's thread; Call() on any other. Lock: mutex_ guards the queue and
// nothing is called under it. A caller that stops waiting leaves its request behind: what runs on the event loop
// therefore owns everything that it touches, besides what belongs to the event loop anyway.
#ifndef HAWSER_SERVER_MAILBOX_H_
#define HAWSER_SERVER_MAILBOX_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/event_loop.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

class Mailbox {
 public:
  static constexpr std::chrono::seconds kPatience{5};

  wire::Status Open(EventLoop* loop);
  /// Requests that were not begun, and all that come, fail with kClosed.
  void Close();
  ~Mailbox() { Close(); }

  /// Runs `work` on the event loop. kClosed after Close(); kTimeout when the loop does not come to it in kPatience.
  template <typename Value>
  wire::Result<Value> Call(std::function<wire::Result<Value>()> work) {
    auto answer = std::make_shared<Answer<Value>>();
    const wire::Status posted = Post({[answer, work = std::move(work)] { answer->Give(work()); },
                                      [answer](const wire::Status& why) { answer->Give(why); }});
    if (!posted.ok()) return posted;
    return answer->Wait();
  }

 private:
  struct Request {
    std::function<void()> run;
    std::function<void(const wire::Status&)> fail;
  };
  template <typename Value>
  class Answer {
   public:
    void Give(wire::Result<Value> value) {
      const std::lock_guard lock(mutex_);
      value_ = std::move(value);
      given_.notify_all();
    }
    wire::Result<Value> Wait() {
      std::unique_lock lock(mutex_);
      if (!given_.wait_for(lock, kPatience, [&] { return value_.has_value(); })) {
        return wire::Status(wire::Code::kTimeout, "hawserd did not answer in time");
      }
      return std::move(*value_);
    }

   private:
    std::mutex mutex_;
    std::condition_variable given_;
    std::optional<wire::Result<Value>> value_;
  };

  wire::Status Post(Request request);
  void Run();
  static wire::Status Stopping();

  EventLoop* loop_ = nullptr;
  EventLoop::WatchId watch_ = 0;
  wire::Fd doorbell_;
  std::mutex mutex_;
  std::deque<Request> requests_;
  bool closed_ = true;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_MAILBOX_H_
