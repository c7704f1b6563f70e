// SPDX-License-Identifier: Apache-2.0
// What a stream or a graph node can be asked to do, described by value: it can be queried, changed, copied into an
// executable graph, and carried out any number of times.
#ifndef HAWSER_SOFTCUDA_DRIVER_WORK_H_
#define HAWSER_SOFTCUDA_DRIVER_WORK_H_

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "softcuda/driver/array.h"
#include "softcuda/driver/memory_map.h"
#include "softcuda/exec/launch.h"

namespace hawser::soft {

class Context;
class Graph;
struct Condition;
struct Event;
struct Function;
struct Pool;

struct EmptyWork {};

struct KernelWork {
  std::shared_ptr<Function> function;
  uint64_t handle = 0;  ///< The CUfunction or CUkernel that was named.
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t shared_bytes = 0;  ///< Dynamic.
  bool cooperative = false;
  std::array<uint32_t, 3> cluster{1, 1, 1};
  bool explicit_cluster = false;  ///< The launch or the function says how large a cluster is.
  std::vector<uint8_t> parameters;
};

/// Every copy. Linear copies are one row; memory types are HOST, DEVICE, UNIFIED (linear addresses) or ARRAY.
struct CopyWork {
  CUDA_MEMCPY3D copy{};
  ArrayPtr source;  ///< For CU_MEMORYTYPE_ARRAY.
  ArrayPtr target;
  bool pageable_source = false;  ///< The program may change it as soon as an asynchronous call returns.
  bool pageable_target = false;  ///< The program may read it as soon as an asynchronous call returns.
  bool known_source = false;     ///< Not pageable: that it is there still can be seen when the copy runs.
  bool known_target = false;     ///< The same.
  std::shared_ptr<std::vector<uint8_t>> staged;  ///< A pageable source, taken at the call; srcHost points into it.
};

struct MemsetWork {
  CUDA_MEMSET_NODE_PARAMS set{};
};

struct HostWork {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

struct CallbackWork {
  CUstreamCallback function = nullptr;
  CUstream stream = nullptr;
  void* data = nullptr;
};

struct EventRecordWork {
  std::shared_ptr<Event> event;
};

struct EventWaitWork {
  std::shared_ptr<Event> event;
};

struct ChildWork {
  std::shared_ptr<Graph> graph;
};

/// Runs one of its bodies, none, or one again and again (conditional.h).
struct ConditionalWork {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<std::shared_ptr<Graph>> bodies;
  std::shared_ptr<std::vector<CUgraph>> handles;  ///< The bodies', as the program knows them.
};

/// Stream-ordered memory. The addresses are known at the call, so only the freeing happens in order.
struct AllocWork {
  AllocationPtr allocation;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
};

struct FreeWork {
  CUdeviceptr address = 0;
};

struct MemoryOperationsWork {
  std::vector<CUstreamBatchMemOpParams> operations;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, MemsetWork, HostWork, CallbackWork, EventRecordWork,
                          EventWaitWork, ChildWork, AllocWork, FreeWork, MemoryOperationsWork, ConditionalWork>;

/// Takes the source's bytes away from the program.
void Stage(CopyWork* work);

/// Carries it out on the calling thread. After an error of the context only what must happen does (frees, callbacks).
/// Event, child and conditional work have no effect here: they are made of operations. `conditions`: what kernels may
/// set, or null.
void Execute(const Work& work, Context* context, exec::ConditionSink* conditions = nullptr);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_WORK_H_
