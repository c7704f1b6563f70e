// SPDX-License-Identifier: Apache-2.0
// The kernel handles (cudaKernel_t) that the program was given. Every call that takes the address of a host stub also
// takes a kernel handle in its place, and only the driver may look inside one, so the runtime remembers them.
// Threads: any; the mutex is a leaf.
#ifndef HAWSER_INTERPOSER_CUDART_KERNEL_HANDLES_H_
#define HAWSER_INTERPOSER_CUDART_KERNEL_HANDLES_H_

#include <driver_types.h>

#include <shared_mutex>
#include <unordered_set>

namespace hawser::cudart {

class KernelHandles {
 public:
  static KernelHandles& Get() {
    static auto* handles = new KernelHandles;  // Never destroyed: launches come from exit handlers too.
    return *handles;
  }
  void Add(cudaKernel_t kernel) {
    {
      const std::shared_lock lock(mutex_);
      if (kernels_.count(kernel) != 0) return;
    }
    const std::unique_lock lock(mutex_);
    kernels_.insert(kernel);
  }
  bool Contains(const void* candidate) {
    const std::shared_lock lock(mutex_);
    return kernels_.count(candidate) != 0;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<const void*> kernels_;
};

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_KERNEL_HANDLES_H_
