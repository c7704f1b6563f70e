// SPDX-License-Identifier: Apache-2.0
// What all objects of the guest share, and the register of those that are alive.
//
// Handles that applications hold are pointers to these objects. A destroyed object keeps its memory for a while with
// its kind wiped out, so that a stale handle is recognised instead of followed.
#ifndef HAWSER_INTERPOSER_CUDA_OBJECT_H_
#define HAWSER_INTERPOSER_CUDA_OBJECT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "interposer/cuda/driver_api.h"
#include "proto/cuda/opcodes.h"
#include "wire/id.h"

namespace hawser::cu {

/// Values that no ordinary memory holds by chance.
enum class Kind : uint32_t {
  kDestroyed = 0xdeadc0de,
  kContext = 0x43754301,
  kModule,
  kLibrary,
  kFunction,
  kKernel,
  kStream,
  kEvent,
  kPool,
  kArray,
  kMipmap,
  kGraph,
  kGraphExec,
  kNode,
  kLinker,
};

/// Not copied: handles point to it.
struct Object {
  explicit Object(Kind its_kind, wire::Id its_id = {}) : kind(its_kind), id(its_id) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::atomic<Kind> kind;
  wire::Id id;                     ///< Its name on the wire; 0: unknown to the server.
  std::atomic<int32_t> failed{0};  ///< CUresult: the server could not create it.
};

/// Objects by name, for what the server says unasked, and those that were destroyed lately.
/// Thread-safe. One lock, a leaf.
class Registry {
 public:
  /// The process's registry, never destroyed.
  static Registry& Get();

  void Add(Object* object);
  /// The object's end: its kind is wiped out, its memory is given back much later.
  void Bury(Object* object);
  /// Calls function(object) under the lock when that name is alive.
  void With(wire::Id id, const std::function<void(Object&)>& function);
  void ForEach(const std::function<void(Object&)>& function);

 private:
  static constexpr size_t kKept = 4096;

  std::mutex mutex_;
  std::unordered_map<wire::Id, Object*> alive_;
  std::deque<Object*> buried_;
};

/// What a handle is refused with that is none: the manual lists no CUDA_ERROR_INVALID_HANDLE for calls about graphs and
/// pools.
constexpr CUresult NoHandle(Kind kind) {
  switch (kind) {
    case Kind::kPool:
    case Kind::kGraph:
    case Kind::kGraphExec:
    case Kind::kNode:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_HANDLE;
  }
}

/// CUDA_SUCCESS, NoHandle(kind), or the late error of an object that could not be created.
template <typename Handle>
CUresult CheckObject(Handle handle, Kind kind) {
  if (handle == nullptr || handle->kind.load(std::memory_order_relaxed) != kind) return NoHandle(kind);
  return static_cast<CUresult>(handle->failed.load(std::memory_order_relaxed));
}

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_OBJECT_H_
