// SPDX-License-Identifier: Apache-2.0
// Modules (code with its variables, in one context), libraries (code that belongs to no context and becomes a module in
// each that uses it), and their functions and kernels.
//
// Threads: immutable once made, except what is marked. A library's lock is taken before the memory map's.
#ifndef HAWSER_SOFTCUDA_DRIVER_MODULE_STORE_H_
#define HAWSER_SOFTCUDA_DRIVER_MODULE_STORE_H_

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/driver/memory_map.h"
#include "softcuda/exec/program.h"
#include "softcuda/ptx/module.h"

namespace hawser::soft {

class Context;
struct Module;
struct Library;

/// PTX modules that make one program.
struct Units : std::vector<std::shared_ptr<const ptx::Module>> {
  unsigned max_registers = 0;  ///< As in exec::LinkOptions.
};

/// What cuModuleLoadDataEx and cuLinkCreate are asked to fill in, and what they are asked for.
struct JitLogs {
  char* info = nullptr;
  unsigned info_bytes = 0;
  char* error = nullptr;
  unsigned error_bytes = 0;
  void** info_used = nullptr;  ///< Where the number of bytes written goes (the option's value).
  void** error_used = nullptr;
  float* wall_time = nullptr;  ///< Milliseconds; the option's value itself holds the float.
  bool verbose = false;
  unsigned max_registers = 0;  ///< 0: no wish.

  void Info(std::string_view text) const;
  void Error(std::string_view text) const;
};

/// CUDA_ERROR_INVALID_VALUE for a null array or an option that does not exist.
CUresult ReadJitOptions(unsigned count, const CUjit_option* options, void** values, JitLogs* logs);

/// Limits that a launch or a query needs and that a program can change.
struct FunctionSettings {
  std::atomic<int> max_dynamic_shared{-1};  ///< -1: what 48 KiB leave beside the static bytes.
  std::atomic<int> carveout{-1};
  std::atomic<int> cache_config{0};
  std::atomic<int> non_portable_cluster{0};   ///< Clusters of more than 8 blocks are allowed.
  std::array<std::atomic<int>, 3> cluster{};  ///< Blocks of a cluster, where the kernel's code does not say; 0: free.
};

struct Function {
  uint64_t handle = 0;
  std::weak_ptr<Module> module;
  std::shared_ptr<exec::Program> program;  ///< Bound; kept for launches in flight.
  int index = -1;
  std::weak_ptr<Context> context;
  FunctionSettings settings;

  const exec::KernelInfo& info() const { return program->kernels()[static_cast<size_t>(index)]; }
};

using FunctionPtr = std::shared_ptr<Function>;

struct Module {
  uint64_t handle = 0;
  std::weak_ptr<Context> context;
  uint64_t library = 0;  ///< Handle; 0: loaded by itself.
  std::shared_ptr<exec::Program> program;
  std::vector<AllocationPtr> variables;  ///< In the order of program->symbols().
  std::vector<FunctionPtr> functions;    ///< In the order of program->kernels().
};

using ModulePtr = std::shared_ptr<Module>;

struct Kernel {
  uint64_t handle = 0;
  std::weak_ptr<Library> library;
  std::string name;
};

struct Library {
  uint64_t handle = 0;
  Units units;
  std::vector<std::shared_ptr<Kernel>> kernels;
  std::mutex mutex;
  std::map<uint64_t, ModulePtr> modules;  ///< By Context::id(). Guarded.
};

/// Links and places a program in a context.
CUresult LoadModule(const Units& units, const std::shared_ptr<Context>& context, const JitLogs& logs,
                    ModulePtr* module);
/// Takes its functions out of the tables and frees its variables, once nothing runs that could use them.
void UnloadModule(const ModulePtr& module);

/// A library's code in a context, loaded if it was not.
CUresult ModuleFor(const std::shared_ptr<Library>& library, const std::shared_ptr<Context>& context, ModulePtr* module);

/// The function behind a CUfunction or, in the current context, a CUkernel.
CUresult ResolveFunction(CUfunction handle, FunctionPtr* function);
CUresult ResolveKernel(CUkernel handle, const std::shared_ptr<Context>& context, FunctionPtr* function);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_MODULE_STORE_H_
