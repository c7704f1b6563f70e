// SPDX-License-Identifier: Apache-2.0
// The session's shared virtual memory. Guests name it by address, so every address is checked against what the
// session owns.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SVM_RANGES_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SVM_RANGES_H_

#include <cstdint>
#include <map>

#include "server/backends/opencl/handle.h"

namespace hawser::server::ocl {

/// Threading: the executor's.
class SvmRanges {
 public:
  SvmRanges() = default;
  SvmRanges(const SvmRanges&) = delete;
  SvmRanges& operator=(const SvmRanges&) = delete;
  /// Frees what is left.
  ~SvmRanges() { Clear(); }

  void Add(cl_context context, void* memory, uint64_t size) {
    ranges_[Address(memory)] = Range{size, Handle<cl_context>::Share(context)};
  }
  /// All of [address, address + size) lies in one range. A size of 0 asks for the byte at `address`.
  bool Contains(uint64_t address, uint64_t size) const {
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return false;
    const auto& [begin, range] = *std::prev(after);
    const uint64_t offset = address - begin;
    return offset < range.size && size <= range.size - offset;
  }
  /// `address` is the beginning of a range.
  bool IsBase(uint64_t address) const { return ranges_.count(address) != 0; }
  /// Size of the range that begins at `address`; 0 when none does.
  uint64_t SizeOf(uint64_t address) const {
    const auto found = ranges_.find(address);
    return found == ranges_.end() ? 0 : found->second.size;
  }
  /// clSVMFree and forget. False when nothing begins there.
  bool Free(uint64_t address) {
    const auto found = ranges_.find(address);
    if (found == ranges_.end()) return false;
    clSVMFree(found->second.context.get(), Pointer(address));
    ranges_.erase(found);
    return true;
  }
  /// The driver frees it, in a command.
  void Forget(uint64_t address) { ranges_.erase(address); }
  void Clear() {
    while (!ranges_.empty()) Free(ranges_.begin()->first);
  }

  static void* Pointer(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }
  static uint64_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

 private:
  struct Range {
    uint64_t size = 0;
    Handle<cl_context> context;
  };
  std::map<uint64_t, Range> ranges_;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SVM_RANGES_H_
