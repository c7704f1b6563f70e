// SPDX-License-Identifier: Apache-2.0
// The guest's memory at the server's SVM addresses. Allocations need not begin on a page, so two may share one.
#ifndef HAWSER_INTERPOSER_OPENCL_SVM_PAGES_H_
#define HAWSER_INTERPOSER_OPENCL_SVM_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hawser::ocl {

/// Thread-safe; one mutex, held over the system calls.
class SvmPages {
 public:
  /// The process's, never destroyed.
  static SvmPages& Get();

  /// Maps anonymous memory at exactly [address, address + size). False: something else of the process is there.
  bool Map(uintptr_t address, size_t size);
  /// Takes back one Map().
  void Unmap(uintptr_t address, size_t size);

 private:
  bool TakePage(uintptr_t page);
  void DropPage(uintptr_t page);

  std::mutex mutex_;
  std::map<uintptr_t, unsigned> shared_;  // First and last pages of allocations: how many use them.
};

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_SVM_PAGES_H_
