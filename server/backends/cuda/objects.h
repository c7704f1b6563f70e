// SPDX-License-Identifier: Apache-2.0
// The objects of one session, by the guest's ids. An object that could not be created stays in its table as the error
// that prevented it, so that its uses report that error and not merely "invalid".
#ifndef HAWSER_SERVER_BACKENDS_CUDA_OBJECTS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_OBJECTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memmgr/ledger.h"
#include "proto/cuda/opcodes.h"
#include "server/backends/cuda/ahead.h"
#include "server/backends/cuda/driver_table.h"
#include "server/backends/cuda/leaving_table.h"
#include "server/backends/cuda/staging.h"
#include "server/backends/cuda/waits.h"
#include "server/worker/launch_gate.h"
#include "server/worker/open_flight.h"
#include "wire/id.h"

namespace hawser::server::cuda_backend {

/// A driver's handle that is destroyed with its owner.
template <typename Native, CUresult (CUDAAPI* DriverTable::*kDestroy)(Native)>
class Owned {
 public:
  Owned() = default;
  Owned(const DriverTable* driver, Native native) : driver_(driver), native_(native) {}
  Owned(Owned&& other) noexcept : driver_(other.driver_), native_(std::exchange(other.native_, Native{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(native_, other.native_);
    return *this;
  }
  ~Owned() {
    if (native_ != Native{} && driver_->*kDestroy != nullptr) (void)(driver_->*kDestroy)(native_);
  }
  Native get() const { return native_; }
  Native release() { return std::exchange(native_, Native{}); }

 private:
  const DriverTable* driver_ = nullptr;
  Native native_{};
};

using OwnedStream = Owned<CUstream, &DriverTable::cuStreamDestroy>;
using OwnedEvent = Owned<CUevent, &DriverTable::cuEventDestroy>;
using OwnedModule = Owned<CUmodule, &DriverTable::cuModuleUnload>;
using OwnedLibrary = Owned<CUlibrary, &DriverTable::cuLibraryUnload>;
using OwnedPool = Owned<CUmemoryPool, &DriverTable::cuMemPoolDestroy>;
using OwnedArray = Owned<CUarray, &DriverTable::cuArrayDestroy>;
using OwnedMipmap = Owned<CUmipmappedArray, &DriverTable::cuMipmappedArrayDestroy>;
using OwnedAllocation = Owned<CUmemGenericAllocationHandle, &DriverTable::cuMemRelease>;
using OwnedGraph = Owned<CUgraph, &DriverTable::cuGraphDestroy>;
using OwnedGraphExec = Owned<CUgraphExec, &DriverTable::cuGraphExecDestroy>;

class Publication;
struct DeviceShare;
struct KernelFacts;
struct ModuleCode;

/// Of the executor, but for its lane's jobs.
struct StreamState : std::enable_shared_from_this<StreamState> {
  StreamState() { lane.launches = &open.given(); }

  OwnedStream owned;  ///< Null: the legacy default stream.
  wire::Id id;        ///< Null: likewise.
  wire::Id context;
  Waits::StreamLane lane;
  StagingPool::Block slab;  ///< Small writes on their way.
  uint64_t slab_used = 0;
  wire::Id captures;                        ///< The graph that a capture on this stream makes.
  std::shared_ptr<const int> capture_mark;  ///< Not null while it captures: all of these are counted.
  bool nonblocking = false;                 ///< It does not care for the legacy default stream.
  bool given = false;  ///< Of one that the legacy stream waits for: it was given something since that was.
  std::shared_ptr<const PooledEvent> end;  ///< If not: behind its last command. Null: not known.
  bool plain = true;              ///< Nothing in it but what the device does by itself, at once, or it was seen idle.
  bool launched_unasked = false;  ///< Since the gate last asked for that to end.
  OpenFlight<std::shared_ptr<const PooledEvent>> open;  ///< What was launched unasked, of its context's timers.
  Ahead<std::shared_ptr<const PooledEvent>> ahead;      ///< What it was given, of its context's events.
  uint64_t capture_hold = 0;  ///< Deferral's: what was to wait when the capture began waits until it ends.

  CUstream native() const { return owned.get(); }
};

struct Context {
  int32_t error = 0;
  CUcontext native = nullptr;
  CUdevice device = 0;
  LaunchGate* gate = nullptr;    ///< Of the device.
  DeviceShare* share = nullptr;  ///< The same gate's.
  bool primary = false;
  bool reported = false;  ///< The guest knows that it is broken.
  std::shared_ptr<StagingPool> staging;
  std::shared_ptr<std::vector<StagingPool::Block>> parked;  ///< Of graphs that have ended, while a stream captures.
  std::shared_ptr<EventPool> events;
  std::shared_ptr<EventPool> timers;
  std::shared_ptr<StreamState> legacy;
  std::vector<std::shared_ptr<StreamState>> given;  ///< Those of StreamState::given.
  bool has_blocking = false;                        ///< There was a stream that the legacy one waits for.
  /// Such a stream, without commands of the guest's (CudaBackend::WatcherOf()). Null: not made.
  std::shared_ptr<StreamState> watcher;
};
/// Where a command is put.
struct Place {
  int32_t status = 0;
  Context* context = nullptr;
  StreamState* stream = nullptr;
  CUstream native() const { return stream->native(); }
  bool ok() const { return status == 0; }
};
/// What a command gives its stream.
enum class Gives : uint8_t {
  kNothing,
  kPlain,  ///< What the device does by itself and at once (StreamState::plain).
  kMore,
};
struct Stream {
  int32_t error = 0;
  std::shared_ptr<StreamState> state;
};
struct EventState {
  OwnedEvent owned;
  CUcontext native_context = nullptr;
  Waits::Progress behind;  ///< What it was recorded behind.
};
struct Event {
  int32_t error = 0;
  wire::Id context;
  unsigned flags = 0;
  bool fixed = false;  ///< Others than the session's commands know the driver's event: graphs, other sessions.
  std::shared_ptr<EventState> state;         ///< A lane may wait for it still.
  std::shared_ptr<Publication> publication;  ///< Not null once the guest has shared it.

  /// An event of the driver's that is the session's from now on.
  static Event Of(const DriverTable* driver, wire::Id context_id, const Context& context, CUevent native,
                  unsigned flags) {
    Event event;
    event.flags = flags;
    event.context = context_id;
    event.state = std::make_shared<EventState>();
    event.state->owned = OwnedEvent(driver, native);
    event.state->native_context = context.native;
    return event;
  }
  CUevent native() const { return state->owned.get(); }
};
struct Module {
  int32_t error = 0;
  wire::Id context;  ///< Null: a library.
  OwnedModule module;
  /// A library's, and that of its code in one context, as long as this may be used.
  std::shared_ptr<OwnedLibrary> library;
  CUmodule part = nullptr;  ///< A library's code in one context: the driver's, which ends with the library.
  std::shared_ptr<const ModuleCode> code;

  bool is_library() const { return library != nullptr && part == nullptr; }
  CUmodule native() const { return part != nullptr ? part : module.get(); }
  CUlibrary native_library() const { return library != nullptr ? library->get() : nullptr; }
};
struct Function {
  int32_t error = 0;
  wire::Id module;
  bool is_kernel = false;  ///< A CUkernel of a library, for every context.
  CUfunction native = nullptr;
  uint64_t parameter_bytes = 0;  ///< That a launch must bring.
  std::shared_ptr<KernelFacts> facts;
};
struct Pool {
  int32_t error = 0;
  CUdevice device = 0;
  CUmemoryPool native = nullptr;
  OwnedPool owned;  ///< Null for a device's default pool.
};
/// Charged until its name and all of its mappings have ended.
class PhysicalMemory {
 public:
  PhysicalMemory(OwnedAllocation owned, memmgr::Ledger* ledger, uint64_t size)
      : owned_(std::move(owned)), ledger_(ledger), size_(size) {}
  ~PhysicalMemory() { ledger_->Release(size_); }
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  CUmemGenericAllocationHandle native() const { return owned_.get(); }

 private:
  OwnedAllocation owned_;
  memmgr::Ledger* const ledger_;
  const uint64_t size_;
};
struct Allocation {
  int32_t error = 0;
  std::shared_ptr<PhysicalMemory> memory;
  uint64_t size = 0;
};
struct Staging {
  int32_t error = 0;
  wire::Id context;
  StagingPool::Block block;
  uint64_t size = 0;
};
struct Array {
  int32_t error = 0;
  wire::Id context;
  CUarray native = nullptr;
  OwnedArray owned;  ///< Null: a level of a mipmap.
  uint64_t charge = 0;
};
struct Mipmap {
  int32_t error = 0;
  wire::Id context;
  OwnedMipmap owned;
  uint64_t charge = 0;
};
struct Graph {
  int32_t error = 0;
  CUgraph native = nullptr;
  OwnedGraph owned;    ///< Null while a capture fills it, and for an inner graph.
  bool inner = false;  ///< A child graph, or a body of a conditional node: ends with its node.
  bool loops = false;  ///< The body of a loop.
  unsigned depth = 0;  ///< Bodies around it.
  int32_t lacks = 0;   ///< Why a node that the guest believes to be there is not; then it cannot be instantiated.
  /// Names of its nodes.
  std::unordered_map<CUgraphNode, wire::Id> names;
  std::vector<uint64_t> conditions;  ///< Handles of conditions that were made for it.
};
struct GraphExec {
  int32_t error = 0;
  OwnedGraphExec owned;
  /// Of nodes (by their names) that were changed in it alone: SetNodeResult::before of the next change.
  std::unordered_map<uint64_t, uint64_t> names;
  std::shared_ptr<KernelFacts> facts;
};
struct Node {
  int32_t error = 0;
  CUgraphNode native = nullptr;
  wire::Id graph;
  std::vector<wire::Id> inner;  ///< Names of the graphs in it, once they have some.
};

/// Type, code for an id that names nothing, and name for messages.
template <typename T>
struct ObjectType;
#define HAWSER_OBJECT(Type, Kind, Code, Text)                 \
  template <>                                                 \
  struct ObjectType<Type> {                                   \
    static constexpr cuda::Handle kType = cuda::Handle::Kind; \
    static constexpr int32_t kInvalid = Code;                 \
    static constexpr const char* kText = Text;                \
  };
HAWSER_OBJECT(Context, kContext, CUDA_ERROR_INVALID_CONTEXT, "context")
HAWSER_OBJECT(Stream, kStream, CUDA_ERROR_INVALID_HANDLE, "stream")
HAWSER_OBJECT(Event, kEvent, CUDA_ERROR_INVALID_HANDLE, "event")
HAWSER_OBJECT(Module, kModule, CUDA_ERROR_INVALID_HANDLE, "module")
HAWSER_OBJECT(Function, kFunction, CUDA_ERROR_INVALID_HANDLE, "function")
HAWSER_OBJECT(Pool, kPool, CUDA_ERROR_INVALID_VALUE, "memory pool")
HAWSER_OBJECT(Allocation, kAllocation, CUDA_ERROR_INVALID_VALUE, "allocation")
HAWSER_OBJECT(Staging, kStaging, CUDA_ERROR_INVALID_VALUE, "staging memory")
HAWSER_OBJECT(Array, kArray, CUDA_ERROR_INVALID_HANDLE, "array")
HAWSER_OBJECT(Mipmap, kMipmap, CUDA_ERROR_INVALID_HANDLE, "mipmapped array")
HAWSER_OBJECT(Graph, kGraph, CUDA_ERROR_INVALID_VALUE, "graph")
HAWSER_OBJECT(GraphExec, kGraphExec, CUDA_ERROR_INVALID_VALUE, "executable graph")
HAWSER_OBJECT(Node, kNode, CUDA_ERROR_INVALID_VALUE, "graph node")
#undef HAWSER_OBJECT

/// Threading: the executor's.
class Objects {
 public:
  explicit Objects(uint32_t max_objects);
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  template <typename T>
  LeavingTable<T>& Table() {
    return std::get<LeavingTable<T>>(tables_);
  }

  /// Keeps `error` under a name that should have become an object. Ids of types that are not here are ignored.
  void Poison(wire::Id id, int32_t error);
  /// The guest has released it, and what was before that waits. The names of a module's functions end with it.
  void Leave(wire::Id id);
  /// False when the id names nothing.
  bool Erase(wire::Id id);

 private:
  using Tables = std::tuple<LeavingTable<Node>, LeavingTable<GraphExec>, LeavingTable<Graph>, LeavingTable<Function>,
                            LeavingTable<Module>, LeavingTable<Array>, LeavingTable<Mipmap>, LeavingTable<Staging>,
                            LeavingTable<Allocation>, LeavingTable<Pool>, LeavingTable<Event>, LeavingTable<Stream>,
                            LeavingTable<Context>>;

  Tables tables_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_OBJECTS_H_
