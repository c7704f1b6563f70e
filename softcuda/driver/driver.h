// SPDX-License-Identifier: Apache-2.0
// The one driver of a process: devices, memory, handle tables, threads. It is made by cuInit and never destroyed,
// because programs call from exit handlers.
//
// A child of fork() has none of the threads: every call there returns CUDA_ERROR_NOT_INITIALIZED.
#ifndef HAWSER_SOFTCUDA_DRIVER_DRIVER_H_
#define HAWSER_SOFTCUDA_DRIVER_DRIVER_H_

#include <cuda.h>

#include <memory>
#include <vector>

#include "softcuda/driver/address_range.h"
#include "softcuda/driver/array.h"
#include "softcuda/driver/conditional.h"
#include "softcuda/driver/context.h"
#include "softcuda/driver/device.h"
#include "softcuda/driver/external_memory.h"
#include "softcuda/driver/graph.h"
#include "softcuda/driver/handle_table.h"
#include "softcuda/driver/memory_map.h"
#include "softcuda/driver/module_store.h"
#include "softcuda/driver/pool.h"
#include "softcuda/driver/queue.h"
#include "softcuda/driver/settings.h"
#include "softcuda/driver/sharing.h"
#include "softcuda/driver/stream.h"
#include "softcuda/driver/texture_objects.h"
#include "softcuda/driver/virtual_memory.h"
#include "softcuda/exec/launch.h"

namespace hawser::soft {

struct LinkState;

class Driver {
 public:
  explicit Driver(const Settings& settings);

  const Settings settings;
  AddressRange addresses;
  MemoryMap memory;
  Queue queue;
  exec::Engine engine;
  std::vector<std::unique_ptr<Device>> devices;
  TextureObjects textures;
  VirtualMemory virtual_memory;
  Sharing sharing;

  HandleTable<Context> contexts;
  HandleTable<Stream> streams;
  HandleTable<Event> events;
  HandleTable<Module> modules;
  HandleTable<Library> libraries;
  HandleTable<Function> functions;
  HandleTable<Kernel> kernels;
  HandleTable<LinkState> links;
  HandleTable<Array> arrays;
  HandleTable<Graph> graphs;
  HandleTable<Condition> conditions;
  HandleTable<Node> nodes;
  HandleTable<ExecutableGraph> executables;
  HandleTable<Pool> pools;
  HandleTable<ExternalMemory> external_memory;

  /// Null when there is no device of this number.
  Device* FindDevice(CUdevice device);

  /// Device memory at `alignment` (0: that of cuMemAlloc), entered in the map. Its bytes: fresh and zero, or those of
  /// `window`, which begins a page.
  CUresult Allocate(Device* device, uint64_t size, uint64_t alignment, MemoryKind kind, uint64_t context,
                    AllocationPtr* allocation, FileWindow window = {});
  /// Takes it out of the map and gives its memory back. Nothing may use it any more.
  void Release(const AllocationPtr& allocation);
  /// The same for device memory that kernels of a wrong program may still be using: from now on an access is a fault,
  /// but the bytes go away only when all that `context` was given so far is done.
  void ReleaseLater(const AllocationPtr& allocation, Context* context);

 private:
  /// Out of the map and of the books; false when somebody else was faster.
  bool Forget(const AllocationPtr& allocation);
};

/// Null before cuInit, and in a child of fork().
Driver* GetDriver();
/// Makes it; CUDA_ERROR_NO_DEVICE when it has no devices, CUDA_ERROR_NOT_INITIALIZED in a child of fork().
CUresult StartDriver();

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_DRIVER_H_
