// SPDX-License-Identifier: Apache-2.0
// How a lone worker holds an open grant, so that its launches pass with an exchange and a load each.
//
// The worker counts as busy with one piece, which the first launch enters and which stands for all that is launched
// until the grant is taken back. Then another thread of the worker, which the scheduler's alarm wakes, waits for the
// launch that is just under way, waits for the device, and leaves for that piece: so the scheduler sees the device free
// when it is.
//
// What the two say to each other: the thread that launches says so (launching_), then looks at the page's word; the
// scheduler changes the word, then the alarm's thread looks whether somebody launches. One of them sees the other. And
// the piece is said to be held before it is entered, because the grant may be taken back, and the alarm rung, right
// after.
//
// Threading: Begin() and End() from one thread, Yield() from one other. held() from any. `Atomic` is std::atomic; the
// model check (tests/unit/scheduler/open_model_test.cc) has one of its own.
#ifndef HAWSER_SCHEDULER_GRANT_OPEN_HOLD_H_
#define HAWSER_SCHEDULER_GRANT_OPEN_HOLD_H_

#include <atomic>
#include <cstdint>

#include "scheduler/grant/gate.h"
#include "scheduler/grant/page.h"

namespace hawser::scheduler {

template <template <typename> class Atomic>
class BasicOpenHold {
 public:
  using Page = BasicGrantPage<Atomic>;

  /// Both must outlive it.
  BasicOpenHold(Page& page, BasicGate<Atomic>& gate) : page_(page), gate_(gate) {}
  BasicOpenHold(const BasicOpenHold&) = delete;
  BasicOpenHold& operator=(const BasicOpenHold&) = delete;

  /// A launch begins. True: it passes, and End() must follow once it is handed to the device; it is no piece of its
  /// own. False: it has to enter like others. `enter`: enters a piece that is estimated to take no time (TryEnter(0)),
  /// with whatever locks that needs; false: not now.
  template <typename Enter>
  bool Begin(const Enter& enter) {
    launching_.store(1, std::memory_order_seq_cst);
    const uint64_t word = page_.word.load(std::memory_order_seq_cst);
    if (word == open_word_) [[likely]]
      return true;
    return BeginSlowly(word, enter);
  }
  void End() { launching_.store(0, std::memory_order_release); }

  /// The piece is entered, or about to be.
  bool held() const { return held_.load(std::memory_order_seq_cst) != 0; }

  /// After an alarm, with the page's word as it is now. False: there is nothing to do until the next one. Otherwise the
  /// piece has left, and there may be more to do. `while_launching`: called with a function; returns when that says no.
  /// `drain`: returns when all that was launched has ended.
  template <typename WhileLaunching, typename Drain>
  bool Yield(uint64_t word, const WhileLaunching& while_launching, const Drain& drain) {
    if (!held() || ModeOf(word) == GateMode::kOpen) return false;
    // Whoever begins from here on sees that the grant is gone.
    while_launching([this] { return launching_.load(std::memory_order_seq_cst) != 0; });
    if (!held()) return true;  // The piece was refused.
    drain();
    held_.store(0, std::memory_order_seq_cst);
    gate_.Leave(0, 0);
    return true;
  }

  /// For the model check: what the launching thread's next steps depend on, beside the atomics.
  uint64_t Digest() const { return open_word_ + 1; }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;  ///< No word is that.

  template <typename Enter>
  [[gnu::noinline]] bool BeginSlowly(uint64_t word, const Enter& enter) {
    open_word_ = kNone;
    if (ModeOf(word) == GateMode::kOpen) {
      held_.store(1, std::memory_order_seq_cst);
      if (enter(word)) {
        open_word_ = word;
        return true;
      }
      held_.store(0, std::memory_order_seq_cst);
    }
    launching_.store(0, std::memory_order_release);
    return false;
  }

  Page& page_;
  BasicGate<Atomic>& gate_;
  Atomic<uint64_t> launching_{0};  ///< Between Begin() and End().
  Atomic<uint64_t> held_{0};
  uint64_t open_word_ = kNone;  ///< Of the thread that launches: the word under which the piece is held.
};

using OpenHold = BasicOpenHold<std::atomic>;

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_OPEN_HOLD_H_
