// SPDX-License-Identifier: Apache-2.0
// The backend over a CUDA driver: executes a session's commands.
//
// Who owns what, who runs what
//   executor thread   all functions of cuda::Handler, in the guest's order; owns the object tables, the memory map and
//                     which context is current. Never waits for the device, but to end a context, nor for the guest.
//   lane threads      wait for the device; answers, data that lands, staging memory back (waits.h).
//   driver threads    host functions of graphs: gates at which the device waits for the guest (gate.h). What else waits
//                     for the guest is not the driver's affair (pending.cc).
//   turns', units' and the builder's thread  when others want the device too: launches that wait for their turn, are
//                     measured, and are made ready to run in parts (turns.h, units.h, sliced_kernels.h).
//   loader thread     compiles and loads modules (module_loader.h); answers from there.
//   bulk threads      (the worker's) call back when a transfer is over.
// Lock order: Waits' locks, then the driver's, then the worker's. Gates, StagingPool and EventPool are leaves.
//
// The functions of Handler are spread over files by subject: contexts.cc, memory.cc, copies.cc, spaces.cc,
// arrays.cc, exports.cc, modules.cc, launches.cc, streams.cc, pending.cc, graphs.cc, queries.cc.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_BACKEND_H_
#define HAWSER_SERVER_BACKENDS_CUDA_BACKEND_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "memmgr/ledger.h"
#include "proto/cuda/dispatch.h"
#include "proto/cuda/messages.h"
#include "server/backends/cuda/address_ranges.h"
#include "server/backends/cuda/copy_pieces.h"
#include "server/backends/cuda/create.h"
#include "server/backends/cuda/deferral.h"
#include "server/backends/cuda/disposals.h"
#include "server/backends/cuda/driver_choice.h"
#include "server/backends/cuda/gate.h"
#include "server/backends/cuda/heap_memory.h"
#include "server/backends/cuda/image_choice.h"
#include "server/backends/cuda/image_store.h"
#include "server/backends/cuda/image_uploads.h"
#include "server/backends/cuda/linear_memory.h"
#include "server/backends/cuda/memory_map.h"
#include "server/backends/cuda/module_loader.h"
#include "server/backends/cuda/objects.h"
#include "server/backends/cuda/refusing_gate.h"
#include "server/backends/cuda/sharing.h"
#include "server/backends/cuda/staging.h"
#include "server/backends/cuda/waits.h"
#include "server/worker/export_client.h"
#include "server/worker/session_backend.h"
#include "server/worker/split_settings.h"
#include "server/worker_settings.h"

namespace hawser::server::cuda_backend {

class GraphHostMemory;  // graph_host_memory.h
class JitOptions;       // jit.h

/// After one of these nothing works any more in the context.
bool BreaksContext(CUresult result);

class CudaBackend final : public cuda::Handler, public SessionBackend {
 public:
  /// `before`: the process's mappings before the driver was loaded.
  CudaBackend(ChosenDriver driver, const WorkerSettings& settings, AddressRanges before);
  /// Only tests come here; a worker ends without destructors. The device must come to an end.
  ~CudaBackend() override;

  // ------------------------------------------------------------------ SessionBackend
  const Dialect& dialect() const override { return CudaDialect(); }
  Outcome Execute(const wire::FrameHeader& header, wire::Bytes payload, std::string* error) override {
    if (deferring_ || news_.load(std::memory_order_relaxed)) [[unlikely]]
      return ExecuteBehind(header, payload, error);
    return ExecuteNow(header, payload, error);
  }
  void SetLater(Later later) override { later_ = std::move(later); }
  void Resume() override;
  Failure TakeFailure() override { return std::exchange(failure_, Failure()); }
  bool WantsHeap() override { return true; }
  uint64_t HeapSizeHint() override;
  void SetServices(const Services& services) override;

  // ------------------------------------------------------------------ cuda::Handler
  int32_t GetInventory(const cuda::Call& call, const cuda::Nothing& message) override;
  int32_t ReleaseObject(const cuda::Call& call, const cuda::Release& message) override;
  int32_t Ask(const cuda::Call& call, const cuda::Query& message) override;
  int32_t CreateContext(const cuda::Call& call, const cuda::CreateContext& message) override;
  int32_t ResetPrimary(const cuda::Call& call, const cuda::ResetPrimary& message) override;
  int32_t SetContextFlags(const cuda::Call& call, const cuda::SetContextFlags& message) override;
  int32_t SetLimit(const cuda::Call& call, const cuda::SetLimit& message) override;
  int32_t GetLimit(const cuda::Call& call, const cuda::GetLimit& message) override;
  int32_t SetCacheConfig(const cuda::Call& call, const cuda::SetCacheConfig& message) override;
  int32_t SetPeerAccess(const cuda::Call& call, const cuda::SetPeerAccess& message) override;
  int32_t SynchronizeContext(const cuda::Call& call, const cuda::SynchronizeContext& message) override;
  int32_t Allocate(const cuda::Call& call, const cuda::Allocate& message) override;
  int32_t AllocatePitch(const cuda::Call& call, const cuda::AllocatePitch& message) override;
  int32_t Free(const cuda::Call& call, const cuda::Free& message) override;
  int32_t FreeInHeap(const cuda::Call& call, const cuda::FreeInHeap& message) override;
  int32_t GetMemoryInfo(const cuda::Call& call, const cuda::GetMemoryInfo& message) override;
  int32_t Write(const cuda::Call& call, const cuda::Write& message) override;
  int32_t Read(const cuda::Call& call, const cuda::Read& message) override;
  int32_t CopyLinear(const cuda::Call& call, const cuda::CopyLinear& message) override;
  int32_t CopyHeap(const cuda::Call& call, const cuda::CopyHeap& message) override;
  int32_t CopyRegion(const cuda::Call& call, const cuda::CopyRegion& message) override;
  int32_t WriteRegion(const cuda::Call& call, const cuda::WriteRegion& message) override;
  int32_t ReadRegion(const cuda::Call& call, const cuda::ReadRegion& message) override;
  int32_t Memset(const cuda::Call& call, const cuda::Memset& message) override;
  int32_t Prefetch(const cuda::Call& call, const cuda::Prefetch& message) override;
  int32_t Advise(const cuda::Call& call, const cuda::Advise& message) override;
  int32_t CreateStaging(const cuda::Call& call, const cuda::CreateStaging& message) override;
  int32_t WriteStaging(const cuda::Call& call, const cuda::WriteStaging& message) override;
  int32_t ReadStaging(const cuda::Call& call, const cuda::ReadStaging& message) override;
  int32_t CreatePool(const cuda::Call& call, const cuda::CreatePool& message) override;
  int32_t AllocateAsync(const cuda::Call& call, const cuda::AllocateAsync& message) override;
  int32_t FreeAsync(const cuda::Call& call, const cuda::FreeAsync& message) override;
  int32_t SetPool(const cuda::Call& call, const cuda::SetPool& message) override;
  int32_t SetPoolAttribute(const cuda::Call& call, const cuda::SetPoolAttribute& message) override;
  int32_t GraphMemory(const cuda::Call& call, const cuda::GraphMemory& message) override;
  int32_t GetPoolAttribute(const cuda::Call& call, const cuda::GetPoolAttribute& message) override;
  int32_t TrimPool(const cuda::Call& call, const cuda::TrimPool& message) override;
  int32_t SetPoolAccess(const cuda::Call& call, const cuda::SetPoolAccess& message) override;
  int32_t ReserveAddress(const cuda::Call& call, const cuda::ReserveAddress& message) override;
  int32_t FreeAddress(const cuda::Call& call, const cuda::FreeAddress& message) override;
  int32_t CreateAllocation(const cuda::Call& call, const cuda::CreateAllocation& message) override;
  int32_t MapAllocation(const cuda::Call& call, const cuda::MapAllocation& message) override;
  int32_t UnmapAddress(const cuda::Call& call, const cuda::UnmapAddress& message) override;
  int32_t SetAccess(const cuda::Call& call, const cuda::SetAccess& message) override;
  int32_t GetGranularity(const cuda::Call& call, const cuda::GetGranularity& message) override;
  int32_t CreateArray(const cuda::Call& call, const cuda::CreateArray& message) override;
  int32_t CreateMipmap(const cuda::Call& call, const cuda::CreateMipmap& message) override;
  int32_t GetMipmapLevel(const cuda::Call& call, const cuda::GetMipmapLevel& message) override;
  int32_t CreateTexture(const cuda::Call& call, const cuda::CreateTexture& message) override;
  int32_t DestroyTexture(const cuda::Call& call, const cuda::DestroyTexture& message) override;
  int32_t CreateSurface(const cuda::Call& call, const cuda::CreateSurface& message) override;
  int32_t DestroySurface(const cuda::Call& call, const cuda::DestroySurface& message) override;
  int32_t EncodeTensorMap(const cuda::Call& call, const cuda::EncodeTensorMap& message) override;
  int32_t ReplaceTensorMapAddress(const cuda::Call& call, const cuda::ReplaceTensorMapAddress& message) override;
  int32_t ExportMemory(const cuda::Call& call, const cuda::ExportMemory& message) override;
  int32_t ImportMemory(const cuda::Call& call, const cuda::ImportMemory& message) override;
  int32_t CloseMemory(const cuda::Call& call, const cuda::CloseMemory& message) override;
  int32_t ExportEvent(const cuda::Call& call, const cuda::ExportEvent& message) override;
  int32_t ImportEvent(const cuda::Call& call, const cuda::ImportEvent& message) override;
  int32_t UploadImage(const cuda::Call& call, const cuda::UploadImage& message) override;
  int32_t LoadModule(const cuda::Call& call, const cuda::LoadModule& message) override;
  int32_t DescribeKernel(const cuda::Call& call, const cuda::DescribeKernel& message) override;
  int32_t GetGlobal(const cuda::Call& call, const cuda::GetGlobal& message) override;
  int32_t GetFunction(const cuda::Call& call, const cuda::GetFunction& message) override;
  int32_t GetLibraryModule(const cuda::Call& call, const cuda::GetLibraryModule& message) override;
  int32_t SetFunctionAttribute(const cuda::Call& call, const cuda::SetFunctionAttribute& message) override;
  int32_t LinkImages(const cuda::Call& call, const cuda::LinkImages& message) override;
  int32_t DownloadImage(const cuda::Call& call, const cuda::DownloadImage& message) override;
  int32_t Launch(const cuda::Call& call, const cuda::Launch& message) override;
  int32_t LaunchWith(const cuda::Call& call, const cuda::LaunchWith& message) override;
  int32_t AskClusters(const cuda::Call& call, const cuda::AskClusters& message) override;
  int32_t CreateStream(const cuda::Call& call, const cuda::CreateStream& message) override;
  int32_t SetStreamAttribute(const cuda::Call& call, const cuda::SetStreamAttribute& message) override;
  int32_t SynchronizeStream(const cuda::Call& call, const cuda::SynchronizeStream& message) override;
  int32_t AwaitRoom(const cuda::Call& call, const cuda::AwaitRoom& message) override;
  int32_t WatchStream(const cuda::Call& call, const cuda::WatchStream& message) override;
  int32_t WaitEvent(const cuda::Call& call, const cuda::WaitEvent& message) override;
  int32_t EnqueueHostFunction(const cuda::Call& call, const cuda::EnqueueHostFunction& message) override;
  int32_t HostFunctionDone(const cuda::Call& call, const cuda::HostFunctionDone& message) override;
  int32_t EnqueueStreamValues(const cuda::Call& call, const cuda::EnqueueStreamValues& message) override;
  int32_t CreateEvent(const cuda::Call& call, const cuda::CreateEvent& message) override;
  int32_t RecordEvent(const cuda::Call& call, const cuda::RecordEvent& message) override;
  int32_t RecordContext(const cuda::Call& call, const cuda::RecordContext& message) override;
  int32_t HoldContext(const cuda::Call& call, const cuda::HoldContext& message) override;
  int32_t SynchronizeEvent(const cuda::Call& call, const cuda::SynchronizeEvent& message) override;
  int32_t WatchEvent(const cuda::Call& call, const cuda::WatchEvent& message) override;
  int32_t GetElapsed(const cuda::Call& call, const cuda::GetElapsed& message) override;
  int32_t BeginCapture(const cuda::Call& call, const cuda::BeginCapture& message) override;
  int32_t BeginCaptureToGraph(const cuda::Call& call, const cuda::BeginCaptureToGraph& message) override;
  int32_t EndCapture(const cuda::Call& call, const cuda::EndCapture& message) override;
  int32_t SetCaptureMode(const cuda::Call& call, const cuda::SetCaptureMode& message) override;
  int32_t GetCaptureInfo(const cuda::Call& call, const cuda::GetCaptureInfo& message) override;
  int32_t SetCaptureDependencies(const cuda::Call& call, const cuda::SetCaptureDependencies& message) override;
  int32_t CreateGraph(const cuda::Call& call, const cuda::CreateGraph& message) override;
  int32_t CloneGraph(const cuda::Call& call, const cuda::CloneGraph& message) override;
  int32_t AddNode(const cuda::Call& call, const cuda::AddNode& message) override;
  int32_t PlaceNode(const cuda::Call& call, const cuda::PlaceNode& message) override;
  int32_t AddAllocationNode(const cuda::Call& call, const cuda::AddAllocationNode& message) override;
  int32_t CreateCondition(const cuda::Call& call, const cuda::CreateCondition& message) override;
  int32_t AddConditionalNode(const cuda::Call& call, const cuda::AddConditionalNode& message) override;
  int32_t SetNode(const cuda::Call& call, const cuda::SetNode& message) override;
  int32_t EnableNode(const cuda::Call& call, const cuda::EnableNode& message) override;
  int32_t SetDependencies(const cuda::Call& call, const cuda::SetDependencies& message) override;
  int32_t GetNodes(const cuda::Call& call, const cuda::GetNodes& message) override;
  int32_t DescribeNode(const cuda::Call& call, const cuda::DescribeNode& message) override;
  int32_t SetNodeAttribute(const cuda::Call& call, const cuda::SetNodeAttribute& message) override;
  int32_t GetNodeAttribute(const cuda::Call& call, const cuda::GetNodeAttribute& message) override;
  int32_t CopyNodeAttributes(const cuda::Call& call, const cuda::CopyNodeAttributes& message) override;
  int32_t DrawGraph(const cuda::Call& call, const cuda::DrawGraph& message) override;
  int32_t FindNodeInClone(const cuda::Call& call, const cuda::FindNodeInClone& message) override;
  int32_t InstantiateGraph(const cuda::Call& call, const cuda::InstantiateGraph& message) override;
  int32_t UpdateGraph(const cuda::Call& call, const cuda::UpdateGraph& message) override;
  int32_t LaunchGraph(const cuda::Call& call, const cuda::LaunchGraph& message) override;

 private:
  // ------------------------------------------------------------------ lookups and failures (backend.cc)
  /// The object, or null after setting *status and reason_.
  template <typename T>
  T* Use(wire::Id id, int32_t* status) {
    wire::Lookup why = wire::Lookup::kOk;
    T* object = objects_->Table<T>().Find(id, &why);
    if constexpr (std::is_same_v<T, Event>) {
      if (old_events_ != nullptr) [[unlikely]]
        object = OldEvent(id, object);
    }
    if (object != nullptr && object->error == 0) [[likely]]
      return object;
    *status = object != nullptr ? object->error : ObjectType<T>::kInvalid;
    ExplainLookup(id, ObjectType<T>::kText, why, object != nullptr);
    return nullptr;
  }
  void ExplainLookup(wire::Id id, const char* what, wire::Lookup why, bool failed_before);
  /// Makes the context current.
  Context* Enter(wire::Id context, int32_t* status);
  int32_t EnterNative(CUcontext context);
  Place At(wire::Id context, wire::Id stream, Gives gives = Gives::kMore);
  void NoteGives(const Place& at, Gives gives);
  /// The stream is given something. If it is the legacy one, who asks for the end of another that is given nothing
  /// more shall not wait for this.
  void NoteGiven(Context& context, StreamState& stream);
  int32_t Explain(int32_t status, std::string_view reason) {
    reason_ = reason;
    return status;
  }
  /// A command without a reply failed: keeps a Failure, makes `object` report the error from now on. Returns `status`.
  int32_t Fail(const cuda::Call& call, int32_t status, wire::Id object = {}, wire::Id context = {});
  /// What a driver's function returned, as the outcome of a command without a reply.
  int32_t Finish(const cuda::Call& call, CUresult result, wire::Id context = {}, wire::Id object = {}) {
    if (result == CUDA_SUCCESS) [[likely]]
      return 0;
    Note(context, result);
    return Fail(call, static_cast<int32_t>(result), object, context);
  }
  /// Puts a new object under its name. One that is taken keeps what it names, and the new one ends.
  template <typename T>
  int32_t Keep(wire::Id id, T object) {
    const wire::Lookup result = objects_->Table<T>().InsertFrom(id, &object);
    if (result == wire::Lookup::kOk) [[likely]]
      return 0;
    DisposeShared(std::make_shared<T>(std::move(object)));
    ExplainLookup(id, ObjectType<T>::kText, result, false);
    return CUDA_ERROR_INVALID_VALUE;
  }
  template <typename Message>
  void Reply(const cuda::Call& call, const Message& message) {
    services_.replies->Send(call.opcode, call.seq, message, true);
  }
  template <typename Message>
  void ReplyWith(const cuda::Call& call, Message message, int32_t status) {
    message.status = status;
    Reply(call, message);
  }
  int32_t ReplyStatus(const cuda::Call& call, int32_t status) {
    ReplyWith(call, cuda::Status(), status);
    return 0;
  }
  template <typename Message>
  void Notify(const Message& message, bool flush = true) {
    services_.replies->Send(cuda::OpcodeOf<Message>::value, 0, message, flush);
  }
  /// Tells the guest, once, when the result says that the context is broken for good.
  void Note(wire::Id context, CUresult result);
  void OnLaneResult(CUcontext context, CUresult result);
  void Log(std::string_view level, const std::string& text) {
    if (services_.log) services_.log(level, text);
  }
  static constexpr int32_t kNotSupported = CUDA_ERROR_NOT_SUPPORTED;

  // ------------------------------------------------------------------ contexts (contexts.cc)
  int32_t RetainPrimary(CUdevice device, CUcontext* native);
  /// Everything of the context ends, then `end` is called for the native one.
  void EndContext(wire::Id id, Context& context, CUresult (*end)(const DriverTable& driver, const Context& context));
  void RegisterHeap(const Context& context);
  cuda::DeviceInfo DescribeDevice(int index, CUdevice device);

  // ------------------------------------------------------------------ memory (memory.cc)
  void PrepareMemory();
  /// Charges `charge` bytes, allocates by `allocate(CUdeviceptr*)`, and notes `size` bytes of memory.
  template <typename AllocateFunction>
  int32_t NewMemory(wire::Id context, uint64_t size, uint64_t charge, MemoryKind kind, AllocateFunction&& allocate,
                    uint64_t* address);
  /// The pages for `size` bytes that the guest offers; none: not usable here. False: they are not what they should be.
  bool Offered(const Context& context, uint64_t size, HeapPages* pages);
  /// Linear memory of a context, in those pages if there are any and the driver can.
  int32_t NewLinear(wire::Id id, const Context& context, uint64_t size, const HeapPages& pages, uint64_t* address,
                    uint32_t* in_heap);
  void ForgetMemory(uint64_t address);
  /// Frees linear memory when the device does not use it any more; it is charged until then.
  void FreeLater(wire::Id context, uint64_t address);
  /// Freed once all is over that the context's streams have to do now.
  struct PostponedFree {
    wire::Id context;
    CUcontext native = nullptr;
    bool behind_all = false;  ///< Else the driver sees to that.
    std::function<void()> free;
  };
  void FreeBehind(PostponedFree later);
  void FreePostponed();
  /// `free` runs as soon as nothing uses the memory; the range is forgotten now.
  std::function<void()> ForgetUntil(uint64_t address, std::function<void()> free);
  /// Waits for what is being freed, for a while, because there are not so many bytes. False when there never are, or
  /// when that may wait for the executor.
  bool AwaitFrees(uint64_t wanted);
  bool Owns(uint64_t address, uint64_t size) const { return size == 0 || memory_.Holds(address, size); }
  bool IsReserved(uint64_t address, uint64_t size) const;
  /// Mappings cover the range, and nothing else.
  bool IsAllMapped(uint64_t address, uint64_t size) const;
  bool OwnsHeap(uint64_t offset, uint64_t size) const {
    return offset <= services_.heap.size && size <= services_.heap.size - offset;
  }

  // ------------------------------------------------------------------ sharing with other processes (exports.cc)
  /// Driver, memory and server all let sessions share memory and events.
  bool CanShare() const;
  /// A number for the driver library: handles of one are nothing to another.
  uint64_t DriverMark() const;
  int32_t FindShared(ExportKind kind, const ExportToken& token, ExportedThing* thing,
                     std::vector<wire::Fd>* files) const;
  /// Memory in chunks. *token: what it is published by.
  int32_t ExportChunks(MemoryRange* range, ExportToken* token);
  /// `range`: empty, to be filled in but for owner and kind. Nothing of `thing` is trusted.
  int32_t OpenChunks(const Context& context, const ExportToken& token, const ExportedThing& thing,
                     const std::vector<wire::Fd>& files, MemoryRange* range);
  /// Ends an opening that the device may still use, in chunks or by the driver.
  CUresult CloseOpened(uint64_t address);

  // ------------------------------------------------------------------ copies (copies.cc)
  /// How large a copy of `size` bytes between host and device may be at a time. What is captured keeps the shape that
  /// the guest gave it.
  uint64_t CopyPiece(const Place& at, uint64_t size) const {
    // More pieces would fill the driver's queue.
    constexpr uint64_t kMostPieces = 64;
    if (at.context->gate->Tenants() <= 1 || captures()) return UINT64_MAX;
    const uint64_t piece = std::max(kCopyPiece, size / kMostPieces);
    (void)at.stream->ahead.Count(static_cast<int32_t>(size / piece));
    return piece;
  }
  /// Room for a small write, filled with `data`; null without memory.
  std::byte* Slab(const Place& at, wire::Bytes data);
  /// Staging memory that a transfer fills, and what opens when it has: NoteCome().
  struct Expected {
    int32_t status = 0;
    uint64_t size = 0;
    std::shared_ptr<StagingPool::Block> block;
    std::shared_ptr<Gate> gate;
  };
  int32_t Expect(const cuda::Call& call, const Context& context, wire::Id context_id, uint64_t transfer, uint64_t size,
                 Expected* expected);
  /// Takes what was expected, of which AwaitData() has said false. An error where that was of another size: a guest
  /// may have given two commands one name.
  int32_t TakeCome(uint64_t transfer, uint64_t size, std::shared_ptr<StagingPool::Block>* block);
  /// Lets the guest send a transfer that nobody wants any more.
  void DrainTransfer(uint64_t transfer, uint64_t size);
  /// Calls copy(host memory, CUstream) for data that comes with the command or on the bulk channel.
  template <typename Copy>
  int32_t WriteWith(const cuda::Call& call, const Place& at, wire::Id context, uint64_t size, uint64_t transfer,
                    wire::Bytes data, Copy&& copy);
  /// Calls copy(host memory, CUstream) and answers with the data.
  template <typename Copy>
  int32_t ReadWith(const cuda::Call& call, const Place& at, wire::Id context, uint64_t size, uint64_t transfer,
                   Copy&& copy);
  /// Answers with data that is there.
  void Land(const cuda::Call& call, uint64_t size, uint64_t transfer, std::shared_ptr<StagingPool::Block> block,
            CUresult result);
  int32_t FailRead(const cuda::Call& call, uint64_t transfer, int32_t status);
  int32_t KeepUntilDone(const Place& at, StagingPool::Block block);
  int32_t KeepUntilDone(const Place& at, std::shared_ptr<StagingPool::Block> kept);
  /// A stand-in that its graphs need no more; launches of them may still be under way, in any stream.
  void KeepForGraphs(wire::Id context, StagingPool::Block block);
  /// One side of a driver's copy description. False after setting *status.
  bool DescribeSide(const cuda::CopySide& side, uint64_t width, uint64_t height, uint64_t depth, bool destination,
                    CUDA_MEMCPY3D* copy, int32_t* status);
  static void DescribeHost(std::byte* host, uint64_t width, uint64_t height, bool destination, CUDA_MEMCPY3D* copy);

  // ------------------------------------------------------------------ modules (modules.cc)
  struct Assembled;
  struct Load;
  struct Link;
  void RunLoad(Load& load);
  void RunLink(Link& link);
  /// Answers by a ModuleInfo or LinkResult that something cannot be done: `what` says it in words. Any thread. In
  /// jit.h.
  template <typename Answer>
  void FailJit(const cuda::Call& call, std::string_view what, int32_t status, const std::string& text,
               const JitOptions* options);
  std::shared_ptr<cuda_slicing::ModuleText> SourceText(const SourceImage& source, std::vector<uint32_t>* wanted);
  /// The loader's: a module for the executor to take, before the guest hears of it.
  void Hand(wire::Id id, Module module);
  void AdoptLoaded();
  /// Chooses what `device` runs.
  int32_t Assemble(const wire::ListView<cuda::ImageEntry>& entries, CUdevice device, Assembled* assembled,
                   uint32_t first_index, std::vector<uint32_t>* missing);
  int32_t DescribeFunction(CUfunction function, bool is_kernel, std::vector<uint32_t>* offsets,
                           std::vector<uint32_t>* sizes, std::vector<int32_t>* attributes, CUdevice device);
  /// Brings the bytes of a piece to their room, or will. Returns a status of the driver's.
  int32_t ReceivePiece(const cuda::UploadImage& message, const std::shared_ptr<ImageUpload>& upload, bool last);
  /// The loader's jobs, which run in order. `context` may be null.
  void PostLoad(CUcontext context, std::function<void()> job);
  int32_t ExplainUpload(const wire::Status& why);
  /// Gives the parts the form that a driver takes, and notes what is in them.
  void Prepare(Assembled* assembled);
  void MayPrint(wire::Bytes image);
  CUdevice AnyDevice() const;

  // ------------------------------------------------------------------ launches (launches.cc)
  int32_t FillAttribute(const cuda::LaunchAttribute& from, CUlaunchAttribute* to);

  // ------------------------------------------------------------------ sharing the device (gated.cc, footprints.cc)
  /// Of the device; made when a context is.
  DeviceShare& ShareOf(CUdevice device);
  std::string DeviceKeyOf(CUdevice device) const;
  Sharing& SharingOf(DeviceShare& share);
  CUresult RelaxCaptures();
  /// Some stream captures.
  bool captures() const { return capture_mark_.use_count() > 1; }
  /// A launch may be given to the driver at once, unless the gate says otherwise: nobody listens, nothing is forced.
  bool unwatched() const {
    return split_.size == 0 && !TraceRing::Wants(services_.stats->trace, TraceRingKind::kKernel);
  }
  /// Launches when the gate lets it; returns at once. `launch` is complete.
  int32_t Submit(const cuda::Call& call, const Place& at, wire::Id context, KernelLaunch launch,
                 std::shared_ptr<KernelFacts> kernel, std::vector<wire::Id> events = {}, wire::Id exec = {});
  /// Gives a launch to the driver, or to turns.
  int32_t Route(const cuda::Call& call, const Place& at, std::unique_ptr<Turn> turn);
  /// A launch that waited while alone; as Route().
  int32_t RouteAgain(const cuda::Call& call, std::unique_ptr<Turn> turn);
  /// Holds its stream and leaves it to turns; its outcome is told later.
  void Hold(const cuda::Call& call, Sharing& shared, std::unique_ptr<Turn> turn);
  /// `items` of a kernel were launched between BeginOpen() and EndOpen().
  void NoteOpen(const Place& at, const std::shared_ptr<KernelFacts>& kernel, uint64_t items) {
    at.stream->launched_unasked = true;
    if (at.context->share->bounds_open && at.stream->open.Add(kernel->open, items)) [[unlikely]]
      MarkOpen(at, kernel, items);
  }
  void MarkOpen(const Place& at, const std::shared_ptr<KernelFacts>& kernel, uint64_t items);
  /// Forgets what is over; whether there is still too much under way.
  bool IsFull(StreamState& stream);
  void LookOpen(StreamState& stream);
  /// The stream is about to end; what was launched unasked in it goes on, and a drain waits for it.
  void LeaveOpen(const Context& context, StreamState& stream);
  /// Streams that must be idle before something in this one runs at once.
  void FindUnfinished(const Place& at, std::vector<std::shared_ptr<StreamState>>* before);
  Outcome ExecuteNow(const wire::FrameHeader& header, wire::Bytes payload, std::string* error);
  Outcome ExecuteBehind(const wire::FrameHeader& header, wire::Bytes payload, std::string* error);
  void Report(const wire::FrameHeader& header, const Outcome& outcome, const std::string& refusal);
  void ResumeTurns();
  Footprint StreamFootprint(wire::Id context, wire::Id stream);
  /// The stream captures, or was reached by a capture.
  bool Captures(wire::Id stream);
  /// The stream's context is current.
  bool Captures(const StreamState& stream);
  /// Of what begins a capture in a stream.
  Footprint CaptureFootprint(Footprint stream);
  /// What waits to be given to the stream waits until the capture ends.
  void HoldForCapture(StreamState& stream);
  /// Of what changes a node, of an executable graph perhaps.
  template <typename Message>
  Footprint ExecFootprint(wire::Bytes payload);
  Footprint FootprintOf(const wire::FrameHeader& header, wire::Bytes payload);
  template <typename Message>
  Footprint FootprintOf(wire::Bytes payload);
  template <typename Message>
  void ExpectEarly(const cuda::Call& call, wire::Bytes payload);
  /// Any thread: there is something for Resume().
  void Wake();
  void AwaitNews();
  /// The gate's thread: waits until what was launched without asking is over.
  void AwaitUnasked(DeviceShare& share);
  struct UnaskedDrain;
  void Drain(const std::shared_ptr<UnaskedDrain>& drain);
  /// The rest of it can only go on when functions of the guest have ended: it is asked for when it does. False: not so.
  bool LeaveToStrays(UnaskedDrain& drain);
  void DrainUnasked();
  void EndSharing();

  // ------------------------------------------------------------------ what is not the device's affair (pending.cc)
  /// What the driver is given as a host function's argument: of a graph's node, which runs again and again.
  struct HostCall {
    CudaBackend* backend = nullptr;
    CUcontext context = nullptr;
    uint64_t callback = 0;  ///< The guest's name for it.
  };
  /// A function of the guest that is in a stream, or runs.
  struct RunningFunction {
    wire::Id context;
    Deferral::Ticket hold = 0;
  };
  /// A command whose data has not come.
  struct WaitingWrite {
    wire::FrameHeader header;
    Deferral::Ticket hold = 0;
    std::function<int32_t()> run;
  };
  struct RoomFor {
    wire::Id context, stream;
  };
  static void CUDA_CB RunHostCall(void* data);
  /// Functions of graphs may hold the device up, for as long as the guest likes.
  bool HostCallsDue() const { return !host_calls_.empty(); }
  /// What waits for the device is left to disposals_: drivers free when it is idle, and when that is may be the guest's
  /// affair. False: it is idle, of those that say so at no cost.
  bool FreesWait();
  /// Ends `owned` now, or by disposals_.
  template <typename Owned>
  void Dispose(Owned owned) {
    if (!FreesWait() || owned.get() == nullptr) return;
    disposals_.Add(current_, [kept = std::make_shared<Owned>(std::move(owned))] {});
  }
  /// The same, where others may own it too.
  void DisposeShared(std::shared_ptr<void> owned) {
    if (FreesWait() && owned != nullptr) disposals_.Add(current_, [kept = std::move(owned)] {});
  }
  /// Commands of the stream are kept until the ticket is released. `acts`: Deferral::Hold.
  Deferral::Ticket HoldStream(const StreamState& stream, bool acts = false);
  /// Any thread.
  void ReleaseLater(Deferral::Ticket ticket);
  void ReleaseNow(Deferral::Ticket ticket);
  void TakeReleased();
  /// Forgets the functions of a context that ends.
  void EndFunctions(wire::Id context);
  /// True: the data of a transfer is still to come. Then the stream is held, and the command at hand is concluded by
  /// run() when it is there.
  bool AwaitData(const cuda::Call& call, const Place& at, uint64_t transfer, uint64_t size,
                 std::function<int32_t()> run);
  /// False: NoteCome() will tell the executor.
  bool HasCome(uint64_t transfer, const Expected& expected);
  /// Any thread.
  void NoteCome(uint64_t transfer, Gate& gate);
  /// Puts a mark into the stream, and holds it when there are too many.
  void RunsAhead(const Place& at);
  /// Asks the guest for patience, or to go on; answers those who waited.
  void TellCrowd();

  // ------------------------------------------------------------------ streams (streams.cc)
  CUresult SynchronizeBehind(const Place& at, std::function<void(CUresult)> done);
  /// cuStreamQuery() and Waits::Tell() of what the stream itself was given, not of what the legacy stream was since.
  /// Neither gives a stream something that others would come after.
  CUresult QueryEnd(const StreamState& stream);
  CUresult TellEnd(Context& context, StreamState& stream, std::function<void(CUresult)> done);
  /// TellEnd(); of the legacy stream: with those that it waits for, as natively.
  CUresult TellAll(const Place& at, std::function<void(CUresult)> done);
  /// A command in it comes after all of the legacy stream, and after nothing else; the legacy stream itself where there
  /// are no others. The context is current.
  CUstream WatcherOf(Context& context);
  /// The answer to WatchStream and WatchEvent; a notice when the answer was given before.
  int32_t AnswerWatch(const cuda::Call& call, bool answered, wire::Id object, uint64_t ticket, int32_t status);

  // ------------------------------------------------------------------ graphs (graphs.cc, node_attributes.cc)
  wire::Id NameNode(wire::Id graph, CUgraphNode node, const wire::ArrayView<wire::Id>& names, size_t* used);
  int32_t UseNodes(const wire::ArrayView<wire::Id>& ids, std::vector<CUgraphNode>* nodes);
  /// From an AddNode or a PlaceNode.
  template <typename Message>
  int32_t MakeNode(const Message& message);
  int32_t AddNativeNode(const cuda::NodeParameters& from, CUgraph graph, const std::vector<CUgraphNode>& dependencies,
                        CUgraphNode* node);
  /// Null, and `status` says why, for what is not a kernel's node.
  const Node* UseKernelNode(wire::Id id, int32_t* status);
  int32_t SetNativeAttribute(CUgraphNode node, const cuda::LaunchAttribute& attribute);
  /// Takes away the names of a graph's nodes and of all that is in them, and of the conditions made for it.
  void EndNodes(wire::Id graph);
  void EndInnerGraphs(const Node& node);
  struct KernelParameters;
  int32_t FillKernel(const cuda::NodeParameters& from, KernelParameters* to);
  int32_t FillCopy(const cuda::NodeParameters& from, CUDA_MEMCPY3D* to, CUcontext* context);
  int32_t FillMemset(const cuda::NodeParameters& from, CUDA_MEMSET_NODE_PARAMS* to, CUcontext* context);
  int32_t FillValues(const wire::ListView<cuda::StreamValue>& values,
                     std::vector<CUstreamBatchMemOpParams>* operations);
  /// `to` points into `operations`.
  int32_t FillBatch(const cuda::NodeParameters& from, std::vector<CUstreamBatchMemOpParams>* operations,
                    CUDA_BATCH_MEM_OP_NODE_PARAMS* to);
  int32_t DescribeBatch(CUgraphNode node, std::vector<cuda::StreamValue>* values);
  HostCall* NewHostCall(uint64_t callback);
  /// Calls visit(StreamState&) for each stream of the context, its legacy stream aside, with those that are ending.
  template <typename Visit>
  void ForEachStream(wire::Id context, const Visit& visit) {
    objects_->Table<Stream>().ForEach([&](wire::Id, Stream& stream) {
      if (stream.error == 0 && stream.state->context == context) visit(*stream.state);
    });
    for (const auto& state : ending_streams_) {
      if (state->context == context) visit(*state);
    }
  }
  /// Before a record: of an event that commands which wait have yet to use, they keep what it stands for now.
  void RenewEvent(wire::Bytes payload);
  using OldEvents = std::vector<std::pair<wire::Id, Event>>;
  Event* OldEvent(wire::Id id, Event* now) const;
  /// The guest has released it. Its context is current.
  void EndStream(const std::shared_ptr<StreamState>& stream);
  GraphHostMemory HostMemoryOfGraphs();
  /// What the guest has given the node: in the executable graph (null: in its graph).
  uint64_t NameIn(wire::Id id, const Node& node, const GraphExec* exec);
  /// What an answer says of the graph's host nodes (graph_host_memory.h), in `found`, to which it points.
  int32_t TellHostNodes(CUgraph graph, std::vector<cuda::HostNodeMemory>* found,
                        wire::ListView<cuda::HostNodeMemory>* functions);
  /// Of a graph from which an executable one is to be made. Not 0: a copy is too early (graph_host_memory.h). The
  /// result points to `filled`.
  template <typename Message, typename Result>
  int32_t CheckPieces(const Message& message, const Graph& graph, std::vector<wire::Id>* filled, Result* result);

  const ChosenDriver chosen_;
  const DriverTable& driver_;
  const WorkerSettings settings_;
  const AddressRanges before_;
  Services services_;
  std::vector<CUdevice> devices_;
  std::vector<CUcontext> warm_;  ///< By device: retained while the inventory was made; null: none.

  std::unique_ptr<memmgr::Ledger> ledger_;
  std::unique_ptr<StagingBudget> staging_budget_;
  std::unique_ptr<ImageStore> images_;
  std::unique_ptr<ImageUploads> uploads_;
  Gates gates_;
  MemoryMap memory_;
  LinearMemory linear_{&driver_};
  HeapMemory heap_memory_{&driver_};
  std::unordered_set<uint64_t> textures_, surfaces_;
  std::map<uint64_t, uint64_t> reserved_;  ///< Address ranges: begin, size.
  std::map<uint64_t, std::shared_ptr<PhysicalMemory>> mapped_;
  std::unique_ptr<Waits> waits_;
  std::atomic<uint64_t> freeing_{0};  ///< Bytes that are charged, and of which the guest knows nothing any more.
  Disposals disposals_{&driver_};
  std::unique_ptr<Objects> objects_;

  CUcontext current_ = nullptr;
  uint64_t heap_address_ = 0;  ///< As devices see it; 0: they do not.
  uint64_t modules_loaded_ = 0;
  std::vector<PostponedFree> postponed_frees_;  ///< Until nothing is captured any more.
  std::multimap<wire::Sha256Digest, std::weak_ptr<cuda_slicing::ModuleText>> awaited_texts_;
  CUcontext heap_owner_ = nullptr;
  std::atomic<bool> may_print_{false};   ///< Some module may print; by the loader's thread.
  std::atomic<bool> may_assert_{false};  ///< The same for assertions.
  bool prints_ = false;                  ///< The services know of it.
  bool asserts_ = false;
  std::string reason_;
  Failure failure_;
  std::vector<std::unique_ptr<HostCall>> host_calls_;  ///< Of graph nodes; kept for the session's life.
  std::unordered_set<uint64_t> conditions_;            ///< Handles of graphs' conditions that the driver knows.

  // Sharing the device. See gated.cc.
  SplitSettings split_;
  OpenGate open_gate_;
  std::unique_ptr<RefusingGate> refusing_gate_;
  Deferral deferral_;
  bool deferring_ = false;        ///< deferral_ is not idle.
  bool concluded_later_ = false;  ///< The command at hand reports when its launch is over.
  bool watch_answered_ = false;   ///< The command at hand was answered when it came.
  const std::shared_ptr<const int> capture_mark_ = std::make_shared<const int>(0);  ///< Streams that capture have it.
  std::map<uint64_t, Expected> expected_;  ///< Transfers on their way, and those that wait to be used.
  std::unordered_map<uint64_t, RunningFunction> functions_;    ///< By run.
  std::unordered_map<uint64_t, WaitingWrite> waiting_writes_;  ///< By transfer.
  bool crowded_ = false;                                       ///< The guest was asked for patience.
  std::vector<std::pair<cuda::Call, RoomFor>> awaiting_room_;
  Later later_;
  std::atomic<bool> news_{false};
  std::mutex news_mutex_;
  std::condition_variable news_changed_;
  std::vector<std::shared_ptr<UnaskedDrain>> drains_;  ///< With news_mutex_.
  /// The end of what was launched unasked in streams that are gone.
  struct LeftStream {
    wire::Id context, stream;
    std::shared_ptr<const PooledEvent> end;
  };
  std::vector<LeftStream> left_streams_;
  /// Streams that the guest has released while there was something in them: they are in the context still.
  std::vector<std::shared_ptr<StreamState>> ending_streams_;
  OldEvents* old_events_ = nullptr;         ///< While a command is executed that has some.
  bool ending_ = false;                     ///< With news_mutex_.
  std::vector<Deferral::Ticket> released_;  ///< Likewise, as what follows.
  std::unordered_set<uint64_t> awaited_;    ///< Transfers of whose arrival the executor wants to know.
  std::vector<uint64_t> arrived_;           ///< Of these.
  std::string device_name_;
  std::vector<std::unique_ptr<DeviceShare>> shares_;  ///< One for each gate in use.

  std::mutex loaded_mutex_;
  std::vector<std::pair<wire::Id, Module>> loaded_;  ///< By the loader's thread, guarded by loaded_mutex_.
  /// The same, images that were linked.
  std::vector<std::pair<wire::Sha256Digest, std::vector<std::byte>>> linked_;
  std::atomic<bool> has_loaded_{false};
  std::unique_ptr<ModuleLoader> loader_;  ///< Null: nothing was loaded yet.

  std::mutex faults_mutex_;
  std::unordered_map<CUcontext, wire::Id> context_names_;
  std::unordered_set<uint64_t> faulted_;  ///< Contexts of which the guest knows.
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_BACKEND_H_
