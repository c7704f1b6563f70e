// SPDX-License-Identifier: Apache-2.0
// A random OpenCL program that has no races, and knows what each byte must be. As cuda_program.h; gates are user
// events.
#ifndef HAWSER_TESTS_RANDOM_OPENCL_PROGRAM_H_
#define HAWSER_TESTS_RANDOM_OPENCL_PROGRAM_H_

#include <CL/cl.h>

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/random/hands.h"
#include "tests/random/opencl_operation.h"
#include "tests/random/order.h"

namespace hawser::random {

/// What is made once, for all programs.
struct OpenclPlace {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_program program = nullptr;
  bool svm = false;
};

class OpenclProgram {
 public:
  OpenclProgram(uint64_t seed, const OpenclPlace& place, bool tell);
  ~OpenclProgram();
  OpenclProgram(const OpenclProgram&) = delete;
  OpenclProgram& operator=(const OpenclProgram&) = delete;

  /// Returns true when every call succeeded and every byte that was looked at was right.
  bool Run(int steps);

 private:
  struct Queue {
    cl_command_queue handle;
    int number;
    bool in_order;
    Agent agent;    ///< In order: the queue's.
    Clock all;      ///< Of everything in it.
    Clock barrier;  ///< What each new command comes after.
    cl_event last;  ///< In order: of the last command; null if it has none.
  };
  struct Gate {
    cl_event event;
    Stamp stamp;
  };
  struct Command {
    cl_event event;
    Clock clock;
  };
  struct Mapped {
    Memory* memory;
    size_t offset, size, pitch, width;  ///< `size` bytes in rows of `width`, `pitch` apart.
    bool write, invalidate;
    uint8_t* pointer;
    Stamp stamp;
  };
  using Call = std::function<cl_int(const std::vector<cl_event>& after, cl_event* event)>;

  size_t Pick(size_t count) { return random_() % count; }
  bool Chance(unsigned percent) { return random_() % 100 < percent; }
  void Do(const std::string& what, const std::function<cl_int()>& call);
  void Wrong(const std::string& what);
  void Tell(const std::string& what) const;

  // Order.
  /// What a call has waited for when it returns. A write that blocks has taken its data, no more (OpenCL 2.2, 5.2.2);
  /// maps and reads that do are complete.
  enum class Blocks { kNot, kUntilTaken, kUntilComplete };
  /// Enqueues a command that is in order with whatever its uses need, and maybe more.
  Stamp Enqueue(Queue& queue, const std::string& what, const std::vector<Use>& uses, Blocks blocks, const Call& call,
                bool must_have_event = false);
  Command EventOf(Agent agent);
  void WaitOnHost(Agent agent);
  void WaitForAll();
  void OpenFor(const Clock& clock);
  void OpenAll();
  void OrderOnHost(const Use& use);
  Queue* Find(Agent agent);
  Queue& AnyQueue() { return *queues_[Pick(queues_.size())]; }
  void Watch(cl_event event);

  // Things.
  void MakeMemory();
  void FreeMemory(size_t index);
  void MakeQueue();
  void ReleaseQueue();

  // Steps.
  void Step();
  bool Choose(Operation* operation);
  bool IsMapped(const Memory& memory, size_t offset, size_t size, bool write, bool any) const;
  void AnOperation();
  void HostWrites(Memory& memory);
  void Check(Memory& memory);
  void Compare(const Memory& memory, size_t offset, size_t size, const uint8_t* read, const char* by);
  void Map(Memory& memory);
  void Unmap(size_t index);
  void CloseGate();
  void Barrier();

  std::mt19937_64 random_;
  const uint64_t seed_;
  const OpenclPlace place_;
  const bool tell_;
  bool failed_ = false;
  int memories_made_ = 0;
  int queues_made_ = 0;
  Agent agents_ = 0;
  Clock host_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::map<Agent, Command> commands_;  ///< Those of queues that are not in order, and of queues that are gone.
  std::vector<Gate> gates_;            ///< Closed.
  std::vector<Mapped> mapped_;
  std::vector<cl_kernel> kernels_;
  int watched_ = 0;
  std::atomic<int> seen_{0};
  Clock gone_;
  Hands hands_;
  Later later_;
};

}  // namespace hawser::random

#endif  // HAWSER_TESTS_RANDOM_OPENCL_PROGRAM_H_
