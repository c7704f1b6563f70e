// SPDX-License-Identifier: Apache-2.0
// The guest's objects behind CUDA's handles: CUcontext is a CUctx_st*, and so on. Everything that getters answer is
// here.
#ifndef HAWSER_INTERPOSER_CUDA_OBJECTS_H_
#define HAWSER_INTERPOSER_CUDA_OBJECTS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "interposer/cuda/kept_values.h"
#include "interposer/cuda/landing.h"
#include "interposer/cuda/object.h"

namespace hawser::cu {

struct Capture;

/// What the server told of a kernel. Written once, before `described` is set.
struct KernelFacts {
  std::string name;
  std::vector<uint32_t> offsets;  ///< Of each parameter, bytes.
  std::vector<uint32_t> sizes;
  std::vector<int32_t> attributes;  ///< Index: CUfunction_attribute.
  bool described = false;
};

struct GlobalFacts {
  uint64_t address = 0;
  uint64_t size = 0;
  bool managed = false;
};

/// What CUmodule and CUlibrary share.
struct ModuleBase : Object {
  using Object::Object;

  CUctx_st* context = nullptr;  ///< Null: a library.
  std::mutex mutex;             ///< Guards what follows.
  std::map<std::string, KernelFacts, std::less<>> kernels;
  std::map<std::string, GlobalFacts, std::less<>> globals;
  bool all_kernels = false;  ///< There are no others than those.
  bool all_globals = false;
  std::map<std::string, struct FunctionBase*, std::less<>> functions;  ///< Handles given out.
  std::map<CUctx_st*, ModuleBase*> parts;  ///< Of a library: its code in contexts, as far as it was asked for.

  /// Not null: the library whose code in `context` this is. It ends with either of them. Does not change.
  ModuleBase* library = nullptr;
};

struct OlderLaunch;

/// What CUfunction and CUkernel share: both are accepted wherever one of them is.
struct FunctionBase : Object {
  using Object::Object;

  ModuleBase* module = nullptr;
  CUctx_st* context = nullptr;  ///< Null: a library's kernel, for every context.
  std::string name;
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> sizes;
  uint32_t parameter_bytes = 0;
  std::array<std::atomic<int32_t>, 32> attributes{};
  uint32_t attribute_count = 0;
  std::shared_ptr<OlderLaunch> older;  ///< What cuFuncSetBlockShape and its kin said (older_launch_entries.cc).
};

}  // namespace hawser::cu

struct CUctx_st final : hawser::cu::Object {
  using Object::Object;

  int device = 0;
  bool primary = false;
  std::atomic<bool> active{true};  ///< A primary context ends and begins again under the same handle.
  std::atomic<unsigned> flags{0};
  uint64_t number = 0;              ///< cuCtxGetId
  std::atomic<int32_t> fault{0};    ///< CUresult: broken for good.
  std::atomic<int32_t> pending{0};  ///< CUresult of an earlier command, told once.
  std::atomic<unsigned> cache_config{0};
  hawser::cu::KeptValues limits;         ///< Key: CUlimit.
  struct CUstream_st* legacy = nullptr;  ///< The legacy default stream, id 0.
  /// Streams that the legacy one waits for may have landings that it has not.
  std::atomic<bool> blocking_land{false};
  std::mutex mutex;  ///< Guards what follows.
  std::set<struct CUstream_st*> streams;
  hawser::cu::LandingList left;  ///< Of streams that ended and that the legacy one does not wait for.
  std::set<hawser::cu::ModuleBase*> modules;
  std::set<int> peers;
  bool held = false;                   ///< cuCtxWaitEvent was called: a new stream may have to wait too,
  hawser::cu::LandingList held_after;  ///< and comes after these reads.
  uint32_t references = 1;             ///< cuCtxAttach, and the current stacks it is in do not count.
};

struct CUstream_st final : hawser::cu::Object {
  using Object::Object;

  CUctx_st* context = nullptr;
  unsigned flags = 0;
  std::atomic<int> priority{0};
  uint64_t number = 0;                 ///< cuStreamGetId
  std::atomic<uint64_t> submitted{0};  ///< Commands so far.
  std::atomic<uint64_t> finished{0};   ///< Of those, known to be done.
  std::atomic<uint64_t> watched{0};    ///< The ticket that the server was asked about.
  std::atomic<uint64_t> idle_at{0};    ///< Nothing was under way when the session had sent so many commands.
  std::atomic<uint64_t> wrote{0};      ///< Commands up to the last record of `write_mark`.
  bool own = false;                    ///< This library's: the application's commands are not in it.
  hawser::cu::LandingList landings;
  std::atomic<uint64_t> followed{0};  ///< Version of the legacy stream's landings that are among them.
  std::mutex mutex;
  std::shared_ptr<hawser::cu::Capture> capture;  ///< Null: not capturing. Guarded by mutex.
  std::map<int, CUstreamAttrValue> attributes;   ///< As set. Guarded by mutex.
  hawser::wire::Id write_mark;                   ///< An event, recorded behind writes (MarkWrite). Guarded by mutex,
  hawser::wire::Id write_mark_context;  ///< as is what it is of: a primary context begins again with another id.
  std::atomic<bool> capturing{false};

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
  /// What the stream is given from now on comes after these. `Landings`: one or several.
  template <typename Landings>
  void Follow(const Landings& these) {
    landings.Add(these);
    const bool others = blocking() && this != context->legacy && !landings.empty();
    if (others) context->blocking_land.store(true, std::memory_order_relaxed);
  }
};

struct CUevent_st final : hawser::cu::Object {
  using Object::Object;

  CUctx_st* context = nullptr;
  unsigned flags = 0;
  std::atomic<uint64_t> recorded{0};  ///< Count of records; 0: never.
  std::atomic<uint64_t> finished{0};  ///< The last record known to be done.
  std::atomic<uint64_t> watched{0};
  std::atomic<CUstream_st*> stream{nullptr};  ///< Of the last record; for knowing what a wait for it implies.
  std::atomic<uint64_t> position{0};          ///< Commands of that stream up to the record.
  hawser::cu::LandingList landings;
  std::mutex mutex;
  std::shared_ptr<hawser::cu::Capture> capture;  ///< Recorded in it. Guarded by mutex.

  /// Other processes may record it and wait for it: what is known here of its records is not all.
  bool interprocess() const { return (flags & CU_EVENT_INTERPROCESS) != 0; }
};

struct CUmod_st final : hawser::cu::ModuleBase {
  using ModuleBase::ModuleBase;
};
struct CUlib_st final : hawser::cu::ModuleBase {
  using ModuleBase::ModuleBase;
};
struct CUfunc_st final : hawser::cu::FunctionBase {
  using FunctionBase::FunctionBase;
};
struct CUkern_st final : hawser::cu::FunctionBase {
  using FunctionBase::FunctionBase;
};

#endif  // HAWSER_INTERPOSER_CUDA_OBJECTS_H_
