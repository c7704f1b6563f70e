// SPDX-License-Identifier: Apache-2.0
// What compiled programs register before main(): their device images, kernels and device variables, by host address
// (crt/host_runtime.h of the toolkit). Registering only remembers; images are loaded at their first use (loader.h).
//
// Threads: any. mutex_ guards the maps; records are never freed, so that a pointer to one stays good while a library is
// being closed by another thread.
#ifndef HAWSER_INTERPOSER_CUDART_REGISTRY_H_
#define HAWSER_INTERPOSER_CUDART_REGISTRY_H_

#include <driver_types.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "interposer/cudart/driver.h"
#include "interposer/cudart/thread_state.h"

namespace hawser::cudart {

struct Module;

/// A kernel: the address of its host stub, and its name in the image.
struct Function {
  Module* module = nullptr;
  const void* host = nullptr;
  std::string name;
  std::atomic<CUkernel> kernel = nullptr;  ///< Once looked up; loader.h.
};

/// A __device__, __constant__ or __managed__ variable.
struct Variable {
  Module* module = nullptr;
  std::string name;
  size_t size = 0;           ///< As the compiler said, in bytes.
  void** managed = nullptr;  ///< Where the program keeps its pointer; null for a variable that is not managed.

  /// Where the variable is in each context that asked; guarded by mutex.
  struct Place {
    CUcontext context;
    uint64_t epoch;
    CUdeviceptr address;
    size_t size;
  };
  std::mutex mutex;
  std::vector<Place> places;
};

/// A registered image (a "fat binary").
struct Module {
  const void* wrapper = nullptr;
  std::vector<Function*> functions;
  std::vector<Variable*> variables;

  std::mutex mutex;  ///< Guards loading; held while the driver loads.
  std::atomic<bool> tried = false;
  cudaError_t load_error = cudaSuccess;
  CUlibrary library = nullptr;
};

class Registry {
 public:
  Module* AddModule(const void* wrapper);
  /// Null for what is no handle of AddModule(), or was removed.
  Module* FindModule(void** handle);
  /// Forgets the module and all it registered; the records stay, because another thread may be using them. False when
  /// it was not registered.
  bool RemoveModule(Module* module);

  void AddFunction(Module* module, const void* host, const char* name);
  void AddVariable(Module* module, const void* host, const char* name, size_t size, void** managed);
  /// A managed variable is also known by the address that it got.
  void AddAlias(const void* host, Variable* variable);

  /// Null when the address was not registered. The thread's cache spares the lock.
  Function* FindFunction(const void* host, FunctionCache& cache);
  Variable* FindVariable(const void* host);
  /// The host stub of the loaded kernel for which `is_it(CUkernel)` holds; null when there is none. Looks at all.
  template <typename Predicate>
  const void* HostOf(Predicate is_it) {
    const std::shared_lock lock(mutex_);
    for (const auto& [host, function] : functions_) {
      const CUkernel kernel = function->kernel.load(std::memory_order_acquire);
      if (kernel != nullptr && is_it(kernel)) return host;
    }
    return nullptr;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<Module*> modules_;
  std::vector<Module*> removed_;
  std::unordered_map<const void*, Function*> functions_;
  std::unordered_map<const void*, Variable*> variables_;
  std::atomic<uint64_t> generation_ = 1;  // Changes with functions_, so that caches know.
};

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_REGISTRY_H_
