// SPDX-License-Identifier: Apache-2.0
// How many commands a stream has been given that the device has not done.
//
// A driver takes about a thousand for a stream; who gives it more waits within the call, and that must not be the
// executor (deferral.h). So they are counted, a *mark* (an event of the driver) is put between them now and then, and
// when the device has not passed the oldest of a few marks the stream gets nothing until it has passed half of them.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_AHEAD_H_
#define HAWSER_SERVER_BACKENDS_CUDA_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace hawser::server::cuda_backend {

/// `Mark`: a handle of an event; copyable. One thread.
template <typename Mark>
class Ahead {
 public:
  /// Commands between two marks, and marks. A command of the guest may be two of the driver's, so the product is less
  /// than half of what a driver takes.
  static constexpr int32_t kStep = 96;
  static constexpr size_t kMarks = 4;

  /// The launch path: the stream is given so many commands. True: Look(), and put a mark.
  bool Count(int32_t commands = 1) { return (left_ -= commands) < 0; }
  void Put(Mark mark) {
    marks_.push_back(std::move(mark));
    left_ = kStep;
  }
  /// There is no mark to be had; the next one is asked for later.
  void Skip() { left_ = kStep; }

  /// Takes away what is over. `passed(mark)`: whether it was passed.
  template <typename IsPassed>
  void Look(IsPassed&& passed) {
    while (!marks_.empty() && passed(marks_.front())) marks_.pop_front();
  }
  /// The stream should get nothing more until ResumeAt() is passed.
  bool full() const { return marks_.size() >= kMarks; }
  const Mark& ResumeAt() const { return marks_[marks_.size() / 2 - 1]; }

 private:
  int32_t left_ = kStep;
  std::deque<Mark> marks_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_AHEAD_H_
