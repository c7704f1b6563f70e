// SPDX-License-Identifier: Apache-2.0
// A shared pointer that threads load and store at the same time: std::atomic<std::shared_ptr>, and where the standard
// library does not have that yet (libstdc++ 11), its older functions for the same.
#ifndef HAWSER_SOFTCUDA_EXEC_ATOMIC_SHARED_H_
#define HAWSER_SOFTCUDA_EXEC_ATOMIC_SHARED_H_

#include <atomic>
#include <memory>
#include <utility>

namespace hawser::exec {

#ifdef __cpp_lib_atomic_shared_ptr
template <typename T>
using AtomicShared = std::atomic<std::shared_ptr<T>>;
#else
template <typename T>
class AtomicShared {
 public:
  explicit AtomicShared(std::shared_ptr<T> pointer) : pointer_(std::move(pointer)) {}
  std::shared_ptr<T> load(std::memory_order order = std::memory_order_seq_cst) const {
    return std::atomic_load_explicit(&pointer_, order);
  }
  void store(std::shared_ptr<T> pointer, std::memory_order order = std::memory_order_seq_cst) {
    std::atomic_store_explicit(&pointer_, std::move(pointer), order);
  }

 private:
  std::shared_ptr<T> pointer_;
};
#endif

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_ATOMIC_SHARED_H_
