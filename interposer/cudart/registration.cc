// SPDX-License-Identifier: Apache-2.0
// The registration interface that compiled programs call before main() and around each launch (crt/host_runtime.h and
// crt/device_functions.h of the toolkit). CUDA 12 launches through cudaLaunchKernel(), CUDA 13 through
// __cudaGetKernel() and __cudaLaunchKernel().
#include "interposer/core/log.h"
#include "interposer/cudart/entry.h"
#include "interposer/cudart/launch.h"
#include "interposer/cudart/twin.h"

namespace {

using hawser::cudart::CurrentThread;
using hawser::cudart::LaunchConfiguration;
using hawser::cudart::Module;
using hawser::cudart::Runtime;
using hawser::guest::Log;
using hawser::guest::LogLevel;

Module* Find(void** handle) {
  Module* module = Runtime::Get().registry().FindModule(handle);
  if (module == nullptr) Log(LogLevel::kError, "something is registered for a device image that is not registered");
  return module;
}

}  // namespace

extern "C" {

HAWSER_CUDART_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(Runtime::Get().registry().AddModule(wrapper));
}

// Images are loaded at their first use, when everything has been registered long ago.
HAWSER_CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void** handle) { Find(handle); }

HAWSER_CUDART_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  Runtime& runtime = Runtime::Get();
  Module* module = runtime.registry().FindModule(handle);
  // An exit handler may come twice: through exit() and through the closing of a library.
  if (module == nullptr || !runtime.registry().RemoveModule(module)) return;
  if (runtime.started()) runtime.loader().Unload(*module);
}

HAWSER_CUDART_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char* /*device*/, const char* name,
                                                 int /*thread_limit*/, uint3* /*thread*/, uint3* /*block*/,
                                                 dim3* /*block_dim*/, dim3* /*grid_dim*/, int* /*warp_size*/) {
  if (Module* module = Find(handle); module != nullptr) Runtime::Get().registry().AddFunction(module, host, name);
}

HAWSER_CUDART_EXPORT void __cudaRegisterVar(void** handle, char* host, char* /*device*/, const char* name, int /*ext*/,
                                            size_t size, int /*constant*/, int /*global*/) {
  if (Module* module = Find(handle); module != nullptr) {
    Runtime::Get().registry().AddVariable(module, host, name, size, nullptr);
  }
}

HAWSER_CUDART_EXPORT void __cudaRegisterManagedVar(void** handle, void** pointer, char* /*device*/, const char* name,
                                                   int /*ext*/, size_t size, int /*constant*/, int /*global*/) {
  if (Module* module = Find(handle); module != nullptr) {
    Runtime::Get().registry().AddVariable(module, pointer, name, size, pointer);
  }
}

// A host variable that device code reads in place. That needs a device that sees all of the host's memory.
HAWSER_CUDART_EXPORT void __cudaRegisterHostVar(void** /*handle*/, const char* name, char* /*host*/, size_t /*size*/) {
  Log(LogLevel::kWarning, "the host variable '%s' is used in device code: not supported", name);
}

HAWSER_CUDART_EXPORT cudaError_t __cudaRegisterUnifiedTable(void** /*handle*/, void* /*table*/) {
  return hawser::cudart::NotSupported("__cudaRegisterUnifiedTable");
}

// Called before the first use of a managed variable: places the variables of the image. True when they may be used.
HAWSER_CUDART_EXPORT char __cudaInitModule(void** handle) {
  Module* module = Find(handle);
  if (module == nullptr) return 0;
  const cudaError_t error = hawser::cudart::InContext(
      [module](const hawser::cudart::Driver&) { return Runtime::Get().loader().Load(*module); });
  return error == cudaSuccess ? 1 : 0;
}

HAWSER_CUDART_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  LaunchConfiguration configuration{grid, block, shared_bytes, static_cast<cudaStream_t>(stream)};
  if (CurrentThread().launches.Push(configuration)) return 0;
  return static_cast<unsigned>(hawser::cudart::Record(cudaErrorLaunchMaxDepthExceeded));
}

HAWSER_CUDART_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                                            void* stream) {
  LaunchConfiguration configuration;
  if (!CurrentThread().launches.Pop(&configuration)) return hawser::cudart::Record(cudaErrorMissingConfiguration);
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

HAWSER_CUDART_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = nullptr;
  const cudaError_t error = hawser::cudart::InContext(
      [=](const hawser::cudart::Driver&) { return hawser::cudart::ResolveKernel(host, kernel); });
  // The caller keeps the handle and ignores the error, so each later launch through it must say why.
  if (error != cudaSuccess) hawser::cudart::RememberFailedKernel(error);
  return error;
}

HAWSER_CUDART_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                    size_t shared_bytes, cudaStream_t stream) {
  if (kernel == nullptr) return hawser::cudart::Record(hawser::cudart::FailedKernel());
  return hawser::cudart::InContext([&](const hawser::cudart::Driver& driver) {
    return hawser::cudart::Launch(driver, reinterpret_cast<CUfunction>(kernel), grid, block, arguments, shared_bytes,
                                  hawser::cudart::Resolve(stream));
  });
}

HAWSER_CUDART_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                         size_t shared_bytes, cudaStream_t stream) {
  const hawser::cudart::PerThreadScope scope;
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

}  // extern "C"
