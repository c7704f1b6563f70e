// SPDX-License-Identifier: Apache-2.0
// Pageable host memory in a graph: staging memory on the server stands for it. The guest fills it before each launch of
// the graph and fetches it after (docs/decisions/0006).
#ifndef HAWSER_INTERPOSER_CUDA_GRAPH_MEMORY_H_
#define HAWSER_INTERPOSER_CUDA_GRAPH_MEMORY_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "interposer/cuda/transfer.h"

namespace hawser::cu {

/// One piece of host memory that a graph reads or writes, and its stand-in. The stand-in ends with the last graph or
/// executable graph that shares it.
struct HostCopy {
  HostCopy() = default;
  ~HostCopy();
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  CUctx_st* context = nullptr;
  wire::Id staging;
  HostRegion memory;
  bool to_host = false;
  /// Functions that have run since the copy's data was fetched last: the first one that runs again belongs to another
  /// launch, and so does one of another executable graph. With FetchFor()'s lock.
  std::set<uint64_t> run_since;
  uint64_t run_in = 0;  ///< FunctionMemory::graph of those.
};
using HostCopies = std::vector<std::shared_ptr<HostCopy>>;

/// A function of graphs' nodes, by its name. It ends with the last graph, executable graph or launch that may call it.
class GraphFunction {
 public:
  explicit GraphFunction(uint64_t name) : callback(name) {}
  ~GraphFunction();
  GraphFunction(const GraphFunction&) = delete;
  GraphFunction& operator=(const GraphFunction&) = delete;

  const uint64_t callback;
};
using GraphFunctions = std::vector<std::shared_ptr<const GraphFunction>>;
/// Takes the one of that name out. Null: it is not there.
std::shared_ptr<const GraphFunction> TakeOut(GraphFunctions* functions, uint64_t callback);

/// A stand-in for that memory.
CUresult MakeHostCopy(CUctx_st* context, const HostRegion& memory, bool to_host, std::shared_ptr<HostCopy>* copy);
/// One of the copies brings something to that memory.
bool IsBroughtTo(const HostRegion& memory, const HostCopies& copies);
/// How a copy in a graph names it: tightly packed.
cuda::CopySide SideOf(const HostCopy& copy);

/// Before something captured that takes this memory from the host: where copies of the graph bring something there, a
/// function that has nothing to do but to fetch that and to fill what comes behind it.
CUresult CaptureHandOver(StreamCommand& command, const HostRegion& memory);
/// A copy from or to host memory, while the command's stream is being captured.
CUresult CaptureWrite(StreamCommand& command, CUdeviceptr to, const HostRegion& from);
CUresult CaptureRead(StreamCommand& command, CUdeviceptr from, const HostRegion& to);
CUresult CaptureWrite(StreamCommand& command, const cuda::CopySide& to, const HostRegion& from);
CUresult CaptureRead(StreamCommand& command, const cuda::CopySide& from, const HostRegion& to);

/// What a function in a graph finds in the host's memory, and what copies behind it take from there.
struct FunctionMemory {
  uint64_t function = 0;  ///< The same for what takes its place in the executable graph: one of the callbacks.
  uint64_t graph = 0;     ///< A number for each making or update of an executable graph.
  HostCopies fetch, fill;

  bool SamePieces(const FunctionMemory& other) const { return fetch == other.fetch && fill == other.fill; }
};
/// Around the function, on the thread that runs it: in a stream of this library's own, and waits. Of several functions
/// behind a copy, in no order among each other, the first one fetches what it brought: it may be changed then.
CUresult FetchFor(const FunctionMemory& memory);
CUresult FillFor(const FunctionMemory& memory);

/// Launches of an executable graph come one behind the other, in whatever streams they are; so must what fills and
/// fetches stand-ins around them, which its driver knows nothing of. Calls are of one thread at a time, as launches
/// are.
class LaunchOrder {
 public:
  LaunchOrder() = default;
  ~LaunchOrder() { Drop(); }
  LaunchOrder(const LaunchOrder&) = delete;
  LaunchOrder& operator=(const LaunchOrder&) = delete;

  /// What comes next in the command's stream is behind the launch before.
  CUresult Before(StreamCommand& command);
  /// The launch, and what belongs to it, is in the stream.
  CUresult After(StreamCommand& command);
  /// Waits until the last launch is over.
  CUresult Await();
  /// What is behind the last launch. Null: there was none.
  wire::Id event() const { return event_; }
  /// Keeps this until then.
  void Keep(GraphFunctions functions);

 private:
  void Drop();
  /// Without asking.
  bool IsKnownOver() const;

  wire::Id event_;  ///< Recorded behind the last launch; null: there was none, or it has been waited for.
  // Of the last launch; names, because its objects may have ended since.
  wire::Id context_, stream_;
  uint64_t position_ = 0;  ///< In the stream.
  LandingList landings_;
};

/// Before and after a launch of a graph with these copies. To be filled are also those that bring something to the host
/// where it is uncertain that they run: what they leave is fetched all the same.
CUresult FillBefore(StreamCommand& command, const HostCopies& copies);
CUresult FetchAfter(StreamCommand& command, const HostCopies& copies);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_GRAPH_MEMORY_H_
