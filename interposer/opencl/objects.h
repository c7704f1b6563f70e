// SPDX-License-Identifier: Apache-2.0
// The guest's OpenCL objects: what an application's handles point to. Each holds the state from which queries are
// answered and errors are found without asking the server, and the id by which the server knows it.
//
// Lifetime: intrusive reference counts. `refs` counts what the application holds, `uses` what other objects of the
// guest hold (a kernel holds its program, and so on). The server's object is released when both are zero.
// The ICD loader reads the first member of every object, so `dispatch` comes first and nothing is virtual.
//
// Threading: OpenCL calls are thread-safe except clSetKernelArg and clSetKernelArgSVMPointer on one kernel.
// Each object has its own small mutex where its state can change after creation.
#ifndef HAWSER_INTERPOSER_OPENCL_OBJECTS_H_
#define HAWSER_INTERPOSER_OPENCL_OBJECTS_H_

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interposer/core/session.h"
#include "interposer/opencl/blocking_writes.h"
#include "wire/id.h"

namespace hawser::ocl {

/// The one dispatch table that every object points to.
const cl_icd_dispatch* Dispatch();

/// Marks a live object of each type; another value means the handle is none of ours or was freed.
enum class Magic : uint32_t {
  kFreed = 0xdeadc0de,
  kPlatform = 0x48570001,
  kDevice,
  kContext,
  kQueue,
  kMem,
  kSampler,
  kProgram,
  kKernel,
  kEvent,
};

struct Object {
  Object(Magic m, guest::Session* s, wire::Id i) : dispatch(Dispatch()), magic(m), session(s), id(i) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const cl_icd_dispatch* dispatch;  // First: read by the loader.
  Magic magic;
  std::atomic<uint32_t> refs{1};  // The application's references: what *_REFERENCE_COUNT reports.
  std::atomic<uint32_t> uses{1};  // 1 for all application references together, plus the guest's own.
  guest::Session* session;        // Where the object lives. Never destroyed.
  wire::Id id;
  std::atomic<cl_int> failed{CL_SUCCESS};  // The server could not create it: later uses return this.
};

/// Raw answers of info queries by parameter.
using InfoMap = std::unordered_map<cl_uint, std::pair<cl_int, std::vector<std::byte>>>;

/// Answers one clGet*Info from a value: the size rules are the same everywhere.
cl_int ReturnInfo(const void* value, size_t value_size, size_t size, void* out, size_t* size_ret);
template <typename T>
cl_int ReturnInfo(const T& value, size_t size, void* out, size_t* size_ret) {
  return ReturnInfo(&value, sizeof(T), size, out, size_ret);
}
cl_int ReturnString(const std::string& value, size_t size, void* out, size_t* size_ret);

using DestructorCallback = std::function<void()>;

struct Landing;

}  // namespace hawser::ocl

struct _cl_platform_id : hawser::ocl::Object {
  using Object::Object;
  hawser::ocl::InfoMap info;
  std::vector<cl_device_id> devices;  // Root devices.
};

struct _cl_device_id : hawser::ocl::Object {
  using Object::Object;
  cl_platform_id platform = nullptr;
  cl_device_id parent = nullptr;  // Sub-devices: holds a use.
  hawser::ocl::InfoMap info;
  bool shared_memory = false;  // Reads and writes the heap in place.
  // Copies of what launches and buffers are checked against.
  cl_device_type type = 0;
  cl_uint max_dimensions = 3;
  size_t max_group = 1;
  size_t max_items[3] = {1, 1, 1};
  cl_ulong max_alloc = 0;
  cl_uint base_align_bits = 1024;
  bool images = false;
  bool non_uniform_groups = false;
  cl_uint version = 0;  // major * 100 + minor * 10, of CL_DEVICE_VERSION
  std::vector<cl_device_partition_property> partition;
};

struct _cl_context : hawser::ocl::Object {
  using Object::Object;
  std::vector<cl_device_id> devices;
  std::vector<cl_context_properties> properties;  // As given, with the final 0; empty if none were given.
  bool shared_memory = false;                     // All devices do, and there is a heap: buffers live in it.
  void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*) = nullptr;
  void* notify_data = nullptr;
  std::mutex mutex;
  std::vector<hawser::ocl::DestructorCallback> destructors;                                // Called in reverse order.
  std::map<std::pair<cl_mem_flags, cl_uint>, std::vector<cl_image_format>> image_formats;  // FIRST time asked.
  struct SvmRange {
    size_t size;
    cl_svm_mem_flags flags;
    struct Map {
      uintptr_t address;
      size_t size;
      cl_map_flags flags;
    };
    std::vector<Map> maps;  // By clEnqueueSVMMap, not unmapped yet.
  };
  std::map<uintptr_t, SvmRange> svm;
  std::map<cl_device_id, cl_command_queue> default_queues;  // On the device. Not owned.
  std::vector<cl_command_queue> queues;                     // Not on the device. Not owned.
  std::atomic<uint32_t> queue_count{0};                     // Of `queues`.
  hawser::ocl::BlockingWrites writes;
};

struct _cl_command_queue : hawser::ocl::Object {
  using Object::Object;
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
  std::vector<cl_queue_properties> property_list;  // As given, with the final 0.
  bool has_property_list = false;
  cl_uint size = 0;
  bool out_of_order() const { return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0; }
  bool profiling() const { return (properties & CL_QUEUE_PROFILING_ENABLE) != 0; }

  // Progress. `enqueued` counts commands of this queue before they are sent, `sent` after (so that a finish, which
  // covers what is in the stream, never claims a command that another thread is only about to send); `finished` is
  // how many are known to be complete (a finish or a completion on an in-order queue). `enqueued` and `finished`
  // equal: idle, so that heap buffers may be touched at once. FinishQueue() keeps these.
  std::atomic<uint64_t> enqueued{0};
  std::atomic<uint64_t> sent{0};
  std::atomic<uint64_t> finished{0};
  // Reads on their way that came before (landing.h, whose book guards these): before whatever follows in an in-order
  // queue, and before what follows the last barrier of an out-of-order one.
  std::vector<std::shared_ptr<hawser::ocl::Landing>> landings, ordered_landings;
  std::atomic<bool> wrote_alone{false};           // Blocking writes that have no event: blocking_writes.h.
  std::atomic<bool> unflushed{false};             // Something was enqueued since the last flush.
  std::atomic<cl_int> pending_error{CL_SUCCESS};  // A late error, for the next call that may return it.
};

struct _cl_sampler : hawser::ocl::Object {
  using Object::Object;
  cl_context context = nullptr;
  cl_bool normalized = CL_TRUE;
  cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
  cl_filter_mode filter = CL_FILTER_NEAREST;
  std::vector<cl_sampler_properties> property_list;
  bool has_property_list = false;
};

struct _cl_mem : hawser::ocl::Object {
  using Object::Object;
  cl_context context = nullptr;
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  cl_mem_flags flags = 0;
  size_t size = 0;
  void* host_ptr = nullptr;  // As given with CL_MEM_USE_HOST_PTR (for sub-buffers: parent's plus origin).
  cl_mem parent = nullptr;   // Sub-buffer's or image's; holds a use.
  size_t origin = 0;
  uint64_t heap_offset = hawser::guest::Session::kNoHeap;  // In the heap (sub-buffers: parent's plus origin).
  bool owns_heap = false;                                  // Heap room is freed when the server says Released.
  std::vector<cl_mem_properties> property_list;
  bool has_property_list = false;
  // Images.
  cl_image_format format = {0, 0};
  cl_image_desc desc = {};
  size_t element_size = 0;
  size_t row_pitch = 0, slice_pitch = 0;  // As reported.
  // Pipes.
  cl_uint packet_size = 0, max_packets = 0;

  struct Mapping {
    void* pointer;
    cl_map_flags flags;
    size_t offset, size;          // Buffers.
    size_t origin[3], region[3];  // Images.
    size_t row_pitch, slice_pitch;
  };
  std::mutex mutex;
  std::vector<Mapping> mappings;
  std::byte* shadow = nullptr;  // Where mappings point when the device's memory cannot be mapped; kept.
  std::vector<hawser::ocl::DestructorCallback> destructors;
};

namespace hawser::ocl {

/// What clSetKernelArg expects for an argument.
enum class ArgKind : uint8_t { kUnknown, kValue, kBuffer, kImage, kPipe, kSampler, kLocal, kQueue };

/// What a build told about a kernel.
struct KernelMetadata {
  struct Arg {
    ArgKind kind = ArgKind::kUnknown;
    uint32_t value_size = 0;  // kValue: bytes, where the type's name tells; else 0.
    cl_int status = CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    cl_uint address = 0, access = 0;
    cl_ulong type_qualifier = 0;
    std::string type_name, name;
  };
  std::string name, attributes;
  std::vector<Arg> args;
  bool known = true;  // False: the server could tell nothing about the kernel but its number of arguments.
  // By argument: how the server was asked to set it when it last accepted (AcceptedKey() in kernel_args.cc), for
  // arguments whose type says too little to check them here. Changes after the build; 0: never asked.
  std::unique_ptr<std::atomic<uint64_t>[]> accepted;
  std::unordered_map<uint64_t, InfoMap> work_groups;  // By device id.
};

struct DeviceBuildState {
  cl_build_status status = CL_BUILD_NONE;
  cl_program_binary_type binary_type = CL_PROGRAM_BINARY_TYPE_NONE;
  size_t global_variable_size = 0;
  std::string log, options;
};

}  // namespace hawser::ocl

struct _cl_program : hawser::ocl::Object {
  using Object::Object;
  cl_context context = nullptr;
  std::vector<cl_device_id> devices;
  enum class Origin : uint8_t { kSource, kIL, kBinary, kBuiltIn, kLinked };
  Origin origin = Origin::kSource;
  std::string source;  // CL_PROGRAM_SOURCE
  std::vector<std::byte> il;
  std::mutex mutex;
  std::atomic<bool> building{false};
  std::unordered_map<uint64_t, hawser::ocl::DeviceBuildState> builds;  // By device id.
  // Shared with kernels, which keep theirs over a rebuild.
  std::vector<std::shared_ptr<const hawser::ocl::KernelMetadata>> kernels;
  bool executable = false;
  // Why `kernels` is empty although there is an executable; CL_SUCCESS: it is complete.
  cl_int kernels_status = CL_SUCCESS;
  std::atomic<uint32_t> attached_kernels{0};
  bool binaries_known = false;
  std::vector<std::vector<std::byte>> binaries;
  std::vector<hawser::ocl::DestructorCallback> release_callbacks;
};

struct _cl_kernel : hawser::ocl::Object {
  using Object::Object;
  cl_program program = nullptr;
  std::shared_ptr<const hawser::ocl::KernelMetadata> metadata;
  struct Arg {
    bool set = false;
    size_t local_size = 0;  // For __local arguments.
    cl_mem mem = nullptr;   // Not owned (the specification lets the application release it after a launch).
  };
  std::vector<Arg> args;
  uint32_t unset_args = 0;  // Launches need 0.
};

struct _cl_event : hawser::ocl::Object {
  using Object::Object;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;  // Null: user event. Holds a use.
  cl_command_type type = 0;
  std::atomic<cl_int> status{CL_QUEUED};  // CL_COMPLETE or negative: final.
  uint64_t queue_position = 0;            // When this command is complete, so many of the queue are (queue->sent + 1).
  uint64_t queue_bound = UINT64_MAX;  // When so many of the queue are, this command surely is. Written once it is sent.
  bool local = false;                 // The server does not know it: complete from birth.
  std::atomic<cl_int> server_status{CL_QUEUED};
  std::shared_ptr<hawser::ocl::Landing> landing;             // What must land before completion is shown (landing.h),
  std::vector<std::shared_ptr<hawser::ocl::Landing>> after;  // and what else must: the book's mutex.
  uint32_t blockers = 0;                // Landings that hold the completion back; the book's mutex.
  std::vector<hawser::wire::Id> waits;  // Events of its wait list that its place in the queue says nothing of. Written
                                        // before it is sent.
  std::atomic<bool> awaited{false};     // Something that waited for it is complete.
  std::atomic<bool> returned{false};    // The call that made it "blocked": whoever asks must see it final.
  std::atomic<bool> kept{false};        // Holds one use of itself until it is final.
  uint64_t times[5] = {};               // queued, submit, start, end, complete
  bool has_times = false;
  std::mutex mutex;
  struct Callback {
    cl_int status;
    void(CL_CALLBACK* function)(cl_event, cl_int, void*);
    void* data;
  };
  std::vector<Callback> callbacks;
  std::function<void()> on_complete;  // The guest's own, when the server says so: a map's copy, freeing a range.
};

#endif  // HAWSER_INTERPOSER_OPENCL_OBJECTS_H_
