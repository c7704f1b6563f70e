// SPDX-License-Identifier: Apache-2.0
// Loads registered images when something in them is first used, as a library of the driver (cuLibraryLoadData): such a
// library and its kernels belong to no context, so they are loaded once for all devices and survive cudaDeviceReset().
//
// Threads: any. Lock order: Module::mutex or Variable::mutex, then the registry's.
#ifndef HAWSER_INTERPOSER_CUDART_LOADER_H_
#define HAWSER_INTERPOSER_CUDART_LOADER_H_

#include "interposer/cudart/registry.h"

namespace hawser::cudart {

class Loader {
 public:
  Loader(const Driver& driver, Registry& registry) : driver_(driver), registry_(registry) {}

  /// All need a current context. A failed load is remembered: every later use gets the same error.
  cudaError_t Load(Module& module);
  cudaError_t Kernel(Function& function, CUkernel* kernel);
  /// Where the variable is in the current context, and how large.
  cudaError_t Address(Variable& variable, uint64_t epoch, CUdeviceptr* address, size_t* size);
  void Unload(Module& module);

 private:
  cudaError_t LoadLocked(Module& module);
  cudaError_t PlaceManaged(Module& module);

  const Driver& driver_;
  Registry& registry_;
};

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_LOADER_H_
