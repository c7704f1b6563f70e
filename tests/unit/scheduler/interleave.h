// SPDX-License-Identifier: Apache-2.0
// Runs a few threads in all orders in which their steps can follow each other. A step ends at each sequentially
// consistent operation on a ModelAtomic; relaxed ones do not end one (they must only inform). Each execution starts
// afresh and follows a recorded order; an order is not followed further when the state it leads to has been seen. The
// state is what memory holds and what each thread has read so far, which, the code being deterministic, says where it
// is.
//
// Memory is sequentially consistent here, as the protocol demands of the processor.
#ifndef HAWSER_TESTS_UNIT_SCHEDULER_INTERLEAVE_H_
#define HAWSER_TESTS_UNIT_SCHEDULER_INTERLEAVE_H_

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace hawser::scheduler::model {

class Explorer;
inline Explorer* current = nullptr;

/// What an execution consists of: made anew for each.
class World {
 public:
  virtual ~World() = default;
  /// The threads' code; each runs to its end.
  virtual std::vector<std::function<void()>> Threads() = 0;
  /// Called between steps; a text says what is wrong.
  virtual std::string Wrong() { return {}; }
  /// Nobody can take a step. A text says what is wrong, such as that somebody should have come to an end.
  virtual std::string WrongAtEnd(const std::vector<bool>& finished) = 0;
  /// Threads that end without finishing when death, a choice like a step, comes. Once in an execution; empty: never.
  virtual std::vector<size_t> Mortal() { return {}; }
};

class Explorer {
 public:
  /// `preemptions`: explores only orders in which so many times at most a thread is interrupted that could have gone
  /// on.
  explicit Explorer(std::function<std::unique_ptr<World>()> make, size_t preemptions = SIZE_MAX)
      : make_(std::move(make)), preemptions_(preemptions) {}

  /// Explores everything. Returns what was wrong first, with the order that led to it; empty: nothing.
  std::string Run(size_t max_states);

  size_t states() const { return seen_.size(); }
  size_t executions() const { return executions_; }
  bool deaths_now() const { return died_; }  ///< In this execution.
  size_t deaths() const { return deaths_; }  ///< States from which somebody was let die.

  // For ModelAtomic and Block().
  void Step();
  void Observe(uint64_t value);
  void BlockUntil(std::function<bool()> ready);
  /// The running thread's past no longer matters but for `digest`: all that its next steps depend on, beside memory.
  void Forget(uint64_t digest);
  void Register(const uint64_t* cell) { cells_.push_back(cell); }
  void Forget(const uint64_t* cell) { std::erase(cells_, cell); }

 private:
  struct Fiber {
    ucontext_t context{};
    jmp_buf jump;  ///< After the first time: needs no system call.
    bool started = false;
    std::shared_ptr<char[]> stack;
    std::function<void()> body;
    std::function<bool()> ready;  ///< Blocked until.
    bool finished = false;
    bool dead = false;
    uint64_t history = 1469598103934665603ull;
  };
  static constexpr size_t kDeath = 1000;
  static constexpr size_t kStack = 128 * 1024;

  static void Entry();
  void Suspend();
  std::string Execute(const std::vector<size_t>& path, std::vector<std::vector<size_t>>& more);
  std::vector<size_t> Choices(World& world);
  uint64_t State() const;
  void Resume(size_t fiber);

  std::function<std::unique_ptr<World>()> make_;
  const size_t preemptions_;
  std::unordered_set<uint64_t> seen_;
  std::vector<const uint64_t*> cells_;
  std::vector<Fiber> fibers_;
  std::vector<std::shared_ptr<char[]>> stacks_;
  ucontext_t main_{};
  jmp_buf main_jump_;
  size_t running_ = 0;
  bool died_ = false;
  size_t executions_ = 0, deaths_ = 0;
};

/// std::atomic as far as the protocol needs it.
template <typename T>
class ModelAtomic {
 public:
  ModelAtomic(T value = {}) : value_(value) { current->Register(&value_); }  // NOLINT(google-explicit-constructor)
  ~ModelAtomic() { current->Forget(&value_); }
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    Before(order);
    current->Observe(value_);
    return value_;
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    Before(order);
    value_ = value;
    current->Observe(value);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) { return Add(value, order); }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) { return Add(0 - value, order); }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    Before(order);
    const T before = value_;
    value_ = value;
    current->Observe(before);
    return before;
  }
  T peek() const { return value_; }

 private:
  static void Before(std::memory_order order) {
    if (order != std::memory_order_relaxed) current->Step();
  }
  T Add(T value, std::memory_order order) {
    Before(order);
    const T before = value_;
    value_ += value;
    current->Observe(before);
    return before;
  }
  uint64_t value_;
};

inline uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ (hash >> 33);
}

inline void Explorer::Step() {
  if (running_ == SIZE_MAX) return;
  Fiber& fiber = fibers_[running_];
  fiber.history = Mix(fiber.history, 1);
  Suspend();
}

inline void Explorer::Suspend() {
  if (_setjmp(fibers_[running_].jump) == 0) _longjmp(main_jump_, 1);
}

inline void Explorer::Forget(uint64_t digest) {
  if (running_ != SIZE_MAX) fibers_[running_].history = digest;
}

inline void Explorer::Observe(uint64_t value) {
  if (running_ != SIZE_MAX) fibers_[running_].history = Mix(fibers_[running_].history, value);
}

inline void Explorer::BlockUntil(std::function<bool()> ready) {
  Fiber& fiber = fibers_[running_];
  fiber.ready = std::move(ready);
  fiber.history = Mix(fiber.history, 2);
  Suspend();
  fibers_[running_].ready = nullptr;
  Observe(7);
}

inline void Explorer::Entry() {
  Explorer& self = *current;
  self.fibers_[self.running_].body();
  self.fibers_[self.running_].finished = true;
  _longjmp(self.main_jump_, 1);
}

inline void Explorer::Resume(size_t fiber) {
  running_ = fiber;
  if (_setjmp(main_jump_) == 0) {
    Fiber& next = fibers_[fiber];
    if (next.started) _longjmp(next.jump, 1);
    next.started = true;
    ::setcontext(&next.context);
  }
  running_ = SIZE_MAX;
}

inline std::vector<size_t> Explorer::Choices(World& world) {
  std::vector<size_t> choices;
  for (size_t i = 0; i < fibers_.size(); ++i) {
    const Fiber& fiber = fibers_[i];
    if (!fiber.finished && !fiber.dead && (!fiber.ready || fiber.ready())) choices.push_back(i);
  }
  if (!died_ && !world.Mortal().empty()) choices.push_back(kDeath);
  return choices;
}

inline uint64_t Explorer::State() const {
  uint64_t hash = died_ ? 11 : 5;
  for (const uint64_t* cell : cells_) hash = Mix(hash, *cell);
  for (const Fiber& fiber : fibers_) hash = Mix(Mix(hash, fiber.history), fiber.finished ? 1 : fiber.dead ? 2 : 3);
  return hash;
}

inline std::string Explorer::Execute(const std::vector<size_t>& path, std::vector<std::vector<size_t>>& more) {
  ++executions_;
  cells_.clear();
  died_ = false;
  running_ = SIZE_MAX;
  fibers_.clear();
  auto world = make_();
  for (auto& body : world->Threads()) {
    Fiber& fiber = fibers_.emplace_back();
    fiber.body = std::move(body);
    if (stacks_.size() < fibers_.size()) stacks_.push_back(std::shared_ptr<char[]>(new char[kStack]));
    fiber.stack = stacks_[fibers_.size() - 1];
  }
  for (Fiber& fiber : fibers_) {
    ::getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    ::makecontext(&fiber.context, &Explorer::Entry, 0);
  }
  std::vector<size_t> taken;
  size_t left = preemptions_, last = SIZE_MAX;
  const auto trace = [&taken] {
    std::string text = "after";
    for (const size_t choice : taken) text.append(" ").append(choice == kDeath ? "death" : std::to_string(choice));
    return text;
  };
  while (true) {
    std::vector<size_t> choices = Choices(*world);
    if (std::string wrong = world->Wrong(); !wrong.empty()) return wrong + ", " + trace();
    const bool only_death = choices.empty() || (choices.size() == 1 && choices[0] == kDeath);
    if (only_death) {
      std::vector<bool> finished;
      for (const Fiber& fiber : fibers_) finished.push_back(fiber.finished || fiber.dead);
      if (std::string wrong = world->WrongAtEnd(finished); !wrong.empty()) return wrong + ", " + trace();
    }
    if (choices.empty()) return {};
    // Going on with the last one comes first, because it costs nothing.
    const auto same = std::find(choices.begin(), choices.end(), last);
    const bool can_go_on = same != choices.end();
    if (can_go_on) std::iter_swap(choices.begin(), same);
    size_t choice = choices[0];
    if (taken.size() < path.size()) {
      choice = path[taken.size()];
    } else {
      uint64_t state = State();
      if (preemptions_ != SIZE_MAX) state = Mix(Mix(state, left), last);
      if (!seen_.insert(state).second) return {};
      for (size_t i = 1; i < choices.size() && (!can_go_on || left > 0); ++i) {
        std::vector<size_t> other = taken;
        other.push_back(choices[i]);
        more.push_back(std::move(other));
      }
    }
    if (can_go_on && choice != last && choice != kDeath && preemptions_ != SIZE_MAX) --left;
    if (choice != kDeath) last = choice;
    taken.push_back(choice);
    if (choice == kDeath) {
      ++deaths_;
      died_ = true;
      for (const size_t mortal : world->Mortal()) fibers_[mortal].dead = true;
    } else {
      Resume(choice);
    }
  }
}

inline std::string Explorer::Run(size_t max_states) {
  current = this;
  std::vector<std::vector<size_t>> open = {{}};
  while (!open.empty()) {
    const std::vector<size_t> path = std::move(open.back());
    open.pop_back();
    if (std::string wrong = Execute(path, open); !wrong.empty()) return wrong;
    if (seen_.size() > max_states) return "more than " + std::to_string(max_states) + " states";
  }
  return {};
}

}  // namespace hawser::scheduler::model

#endif  // HAWSER_TESTS_UNIT_SCHEDULER_INTERLEAVE_H_
