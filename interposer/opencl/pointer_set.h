// SPDX-License-Identifier: Apache-2.0
// A set of addresses in one flat array: linear probing, deletion by shifting back, no allocation except to grow.
#ifndef HAWSER_INTERPOSER_OPENCL_POINTER_SET_H_
#define HAWSER_INTERPOSER_OPENCL_POINTER_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hawser::ocl {

/// Not null. Threading: none; the caller holds its own lock.
class PointerSet {
 public:
  void Insert(const void* pointer);
  void Erase(const void* pointer);
  bool Contains(const void* pointer) const;
  size_t size() const { return size_; }

 private:
  size_t HomeOf(const void* pointer) const {
    // Objects are at least 16 bytes apart.
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(pointer) >> 4) * 0x9e3779b97f4a7c15u >> shift_);
  }
  void Grow();

  std::vector<const void*> slots_;  // A power of two; at most half are taken.
  unsigned shift_ = 64;
  size_t size_ = 0;
};

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_POINTER_SET_H_
