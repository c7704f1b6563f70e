// SPDX-License-Identifier: Apache-2.0
// The objects of one session, by the guest's ids. An object that could not be created stays in its table as the
// error that prevented it, so that its uses report that error and not merely "invalid".
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_OBJECTS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_OBJECTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "proto/opencl/opcodes.h"
#include "server/backends/opencl/handle.h"
#include "server/backends/opencl/image_shape.h"
#include "server/backends/opencl/queue.h"
#include "server/backends/opencl/splitter.h"
#include "wire/id.h"
#include "wire/object_table.h"

namespace hawser::server::ocl {

struct Context {
  int32_t error = 0;
  Handle<cl_context> native;
  std::vector<wire::Id> devices;
  uint32_t version = 0;  ///< The lowest of its devices', 10 * major + minor.
};

struct QueueObject {
  int32_t error = 0;
  std::shared_ptr<Queue> queue;
};

/// Buffers, sub-buffers, images and pipes.
struct Memory {
  int32_t error = 0;
  Handle<cl_mem> native;
  bool is_image = false;
  bool is_buffer = false;
  bool is_view = false;  ///< A one-dimensional image over a buffer: see ReleaseBehindQueues().
  uint64_t size = 0;     ///< Of a buffer, in bytes.
  /// Of a sub-buffer that the driver cannot copy rectangles of: what it lies in, and where. PoCL 3.1 crashes there.
  Handle<cl_mem> rectangles_in;
  uint64_t rectangles_at = 0;
  uint64_t charge = 0;  ///< Bytes counted against the session's limit.
  ImageShape image;
};

struct Sampler {
  int32_t error = 0;
  Handle<cl_sampler> native;
};

/// Shared with the builder thread.
struct Program {
  Handle<cl_context> context;
  std::vector<wire::Id> devices;
  uint32_t version = 0;
  bool is_il = false;
  /// The guest's text or intermediate language; kept only where launches are split.
  std::string source;
  bool has_prelude = false;  ///< slicing::CarryPrelude() stands before it.
  /// Of a program in intermediate language; as the guest set them.
  std::map<uint32_t, std::vector<std::byte>> specialization;
  /// Null while clLinkProgram is at work, or when it failed (see `error`). Set once; owned.
  std::atomic<cl_program> native{nullptr};
  std::atomic<int32_t> error{0};

  /// What the newest build found out; null when nothing is known.
  std::shared_ptr<const ProgramSplit> split() const {
    const std::lock_guard<std::mutex> lock(split_mutex);
    return known_split;
  }
  void SetSplit(std::shared_ptr<const ProgramSplit> split) {
    const std::lock_guard<std::mutex> lock(split_mutex);
    known_split = std::move(split);
  }
  mutable std::mutex split_mutex;  ///< A leaf.
  std::shared_ptr<const ProgramSplit> known_split;

  /// Makes another program the one that is built and asked. The executor may be using the old one: it is kept.
  void Replace(cl_program program) { replaced.emplace_back(native.exchange(program, std::memory_order_acq_rel)); }
  // The builder's.
  std::vector<Handle<cl_program>> replaced;
  bool was_built = false;
  bool carries = false;  ///< `native` is of rewritten intermediate language.

  ~Program() {
    if (cl_program program = native.load(); program != nullptr) clReleaseProgram(program);
  }
};
struct ProgramObject {
  int32_t error = 0;
  std::shared_ptr<Program> program;
};

struct Kernel {
  int32_t error = 0;
  Handle<cl_kernel> native;
  uint32_t version = 0;
  /// For each argument: 0 not known yet, 1 a plain value, 2 an object (a memory object, a sampler, a queue).
  std::vector<uint8_t> is_object;
  /// The memory objects and samplers that arguments name now, by index. Only where launches are split.
  std::vector<wire::Id> objects;
  /// Arguments in local memory that were set, by index, in bytes; 0: of another kind.
  std::vector<size_t> locals;
  KernelSplit split;

  void NoteLocal(uint32_t index, size_t size) {
    if (index >= locals.size()) {
      if (size == 0) return;
      locals.resize(index + 1, 0);
    }
    locals[index] = size;
  }
  /// Says again which arguments of a fresh clone lie in local memory. A launch of a clone of PoCL 3.1's else takes as
  /// many bytes for their value, which they do not have, from beyond the end of an allocation.
  cl_int SetLocalsOf(cl_kernel clone) const {
    cl_int status = CL_SUCCESS;
    for (cl_uint i = 0; i < locals.size() && status == CL_SUCCESS; ++i) {
      if (locals[i] != 0) status = clSetKernelArg(clone, i, locals[i], nullptr);
    }
    return status;
  }
};

struct Event {
  int32_t error = 0;
  Handle<cl_event> native;
  std::shared_ptr<Queue> queue;  ///< Null: a user event.
  uint64_t position = 0;         ///< In the queue.
};

/// Type, code for an id that names nothing, and name for messages.
template <typename T>
struct ObjectType;
template <>
struct ObjectType<Context> {
  static constexpr opencl::Handle kType = opencl::Handle::kContext;
  static constexpr int32_t kInvalid = CL_INVALID_CONTEXT;
};
template <>
struct ObjectType<QueueObject> {
  static constexpr opencl::Handle kType = opencl::Handle::kQueue;
  static constexpr int32_t kInvalid = CL_INVALID_COMMAND_QUEUE;
};
template <>
struct ObjectType<Memory> {
  static constexpr opencl::Handle kType = opencl::Handle::kMem;
  static constexpr int32_t kInvalid = CL_INVALID_MEM_OBJECT;
};
template <>
struct ObjectType<Sampler> {
  static constexpr opencl::Handle kType = opencl::Handle::kSampler;
  static constexpr int32_t kInvalid = CL_INVALID_SAMPLER;
};
template <>
struct ObjectType<ProgramObject> {
  static constexpr opencl::Handle kType = opencl::Handle::kProgram;
  static constexpr int32_t kInvalid = CL_INVALID_PROGRAM;
};
template <>
struct ObjectType<Kernel> {
  static constexpr opencl::Handle kType = opencl::Handle::kKernel;
  static constexpr int32_t kInvalid = CL_INVALID_KERNEL;
};
template <>
struct ObjectType<Event> {
  static constexpr opencl::Handle kType = opencl::Handle::kEvent;
  static constexpr int32_t kInvalid = CL_INVALID_EVENT;
};

/// Threading: the executor's.
class Objects {
 public:
  explicit Objects(uint32_t max_objects);
  ~Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  template <typename T>
  wire::ObjectTable<T>& Table() {
    if constexpr (std::is_same_v<T, Context>) {
      return contexts_;
    } else if constexpr (std::is_same_v<T, QueueObject>) {
      return queues_;
    } else if constexpr (std::is_same_v<T, Memory>) {
      return memory_;
    } else if constexpr (std::is_same_v<T, Sampler>) {
      return samplers_;
    } else if constexpr (std::is_same_v<T, ProgramObject>) {
      return programs_;
    } else if constexpr (std::is_same_v<T, Kernel>) {
      return kernels_;
    } else {
      static_assert(std::is_same_v<T, Event>);
      return events_;
    }
  }

  /// Keeps `error` under a name that should have become an object. Ids of types that are not here are ignored.
  void Poison(wire::Id id, int32_t error);

 private:
  template <typename T>
  void PoisonAs(wire::Id id, int32_t error);

  wire::ObjectTable<Context> contexts_;
  wire::ObjectTable<QueueObject> queues_;
  wire::ObjectTable<Memory> memory_;
  wire::ObjectTable<Sampler> samplers_;
  wire::ObjectTable<ProgramObject> programs_;
  wire::ObjectTable<Kernel> kernels_;
  wire::ObjectTable<Event> events_;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_OBJECTS_H_
