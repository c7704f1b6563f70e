// SPDX-License-Identifier: Apache-2.0
// A random program over CUDA's driver API that has no races, and knows what each byte must be.
//
// One thread decides; the calls are made by others in turn (Hands), so that host threads change between them. What the
// streams do meanwhile is up to the device. Gates hold streams: a call that need not wait for such a stream must come
// back all the same, and one that has to is made when the gate is about to open (Later).
#ifndef HAWSER_TESTS_RANDOM_CUDA_PROGRAM_H_
#define HAWSER_TESTS_RANDOM_CUDA_PROGRAM_H_

#include <cuda.h>

#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/random/cuda_operation.h"
#include "tests/random/hands.h"
#include "tests/random/order.h"

namespace hawser::random {

class CudaProgram {
 public:
  struct Options {
    bool tell = false;     ///< Says each step.
    bool mirrors = false;  ///< Also memory of the host that kernels use, and managed memory.
    bool graphs = false;
    bool events = false;  ///< Records events again while streams wait for what they stood for.
  };
  /// In the device's primary context.
  CudaProgram(uint64_t seed, CUcontext context, Options options);
  ~CudaProgram();
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  /// Returns true when every call succeeded and every byte that was looked at was right.
  bool Run(int steps);

 private:
  struct Stream {
    CUstream handle;
    Agent agent;
    bool blocking;  ///< In order with the legacy stream.
    size_t owner;   ///< The thread whose it is; kAnybody.
    Clock clock;
  };
  struct Gate {
    Stamp stamp;
    std::promise<void> function;  ///< Ends the host function.
    CUdeviceptr word;             ///< Or is written.
  };
  struct Graph {
    std::vector<Operation> operations;
    std::vector<CUgraphNode> nodes;  ///< Of explicit graphs.
    CUgraph graph;
    CUgraphExec executable;
    Clock launched;  ///< Its launches are one behind the other, in whatever streams.
  };
  struct Code {
    CUmodule module;
    Kernels kernels;
  };
  static constexpr size_t kAnybody = ~size_t{0};
  static constexpr size_t kGates = 1024;

  size_t Pick(size_t count) { return random_() % count; }
  bool Chance(unsigned percent) { return random_() % 100 < percent; }
  /// Has a thread make the call; ends the run if it fails.
  void Do(const std::string& what, const std::function<CUresult()>& call, size_t owner = kAnybody);
  void Wrong(const std::string& what);
  void Tell(const std::string& what) const;

  // Order.
  void Join(Stream& stream);
  Stamp Begin(Stream& stream);
  void WaitFor(Stream& stream, Stream& other);
  void WaitOnHost(Agent agent);
  void WaitForAll();
  void WaitForIdle(const Memory& memory);
  void OpenFor(const Clock& clock);
  void OpenAll();
  void OrderOnStream(Stream& stream, const Use& use);
  void OrderOnHost(const Use& use);
  Stream* Find(Agent agent);
  Stream& AnyStream();

  // Things.
  Memory* NewMemory(MemoryKind kind);
  void MakeMemory();
  void FreeMemory(size_t index);
  void EndUses(Memory& memory);
  void MakeStream();
  void DestroyStream();
  CUevent AnyEvent();
  void MakeCode();
  void UnloadCode();
  const Kernels& AnyKernels() { return code_[Pick(code_.size())].kernels; }

  // Steps.
  void Step();
  bool Choose(Operation* operation, bool in_graph, Agent stream);
  bool MayUse(const Memory& memory, Agent stream) const;
  void Fill(Operation* operation);
  void Enqueue(const Operation& operation, Stream& stream);
  void Synchronous(const Operation& operation);
  void AnOperation();
  void HostWrites(Memory& memory);
  void Check(Memory& memory);
  void CloseGate();
  void Query();
  void Attach();
  void MakeGraph();
  void Capture(Graph* graph, const Kernels& kernels);
  void Build(Graph* graph, const Kernels& kernels);
  void LaunchGraph();
  void UpdateGraph();
  void DestroyGraph(size_t index);

  std::mt19937_64 random_;
  const uint64_t seed_;
  const CUcontext context_;
  const Options options_;
  bool failed_ = false;
  CUdeviceptr words_ = 0;
  CUstream opener_ = nullptr;
  CUstream capture_[2] = {};
  size_t gates_made_ = 0;
  int memories_made_ = 0;
  Agent agents_ = 0;
  Clock host_;
  Clock gone_;  ///< Of streams that are destroyed.
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::unique_ptr<Gate>> gates_;  ///< Closed.
  std::deque<std::unique_ptr<Gate>> open_;    ///< Or about to be.
  std::vector<Stamp> host_functions_;
  std::vector<Graph> graphs_;
  std::vector<Code> code_;
  std::vector<CUevent> events_;
  std::deque<HostMix> mixes_;
  std::deque<std::promise<void>> reached_;
  Hands hands_;
  Later later_;
};

}  // namespace hawser::random

#endif  // HAWSER_TESTS_RANDOM_CUDA_PROGRAM_H_
