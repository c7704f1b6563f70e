// SPDX-License-Identifier: Apache-2.0
// The backend over the platforms of the system's ICD loader: executes a session's commands.
//
// Who owns what, who runs what
//   executor thread   all functions of opencl::Handler, in the guest's order; owns the object tables, the staging
//                     pool's taking side and each queue's newest event. Never waits for the device or the compiler.
//   driver threads    callbacks: answers, announcements of events, staging memory back (completions.h).
//   builder thread    compiles, links, extracts binaries (builder.h); answers from there.
//   bulk threads      (the worker's) call back when a transfer is over (bulk_transfers.h).
//   split lanes       run what is left of launches that are split (splitter.h).
// Lock order: Completions::gate(), then the driver's locks, then the worker's. UserEvents' mutex is a leaf.
//
// The functions of Handler are spread over files by subject: contexts.cc, memory.cc, programs.cc, kernels.cc,
// split_launch.cc, events.cc, commands.cc, images.cc, transfers.cc, svm.cc, queries.cc.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_BACKEND_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/backends/opencl/build_report.h"
#include "server/backends/opencl/builder.h"
#include "server/backends/opencl/completions.h"
#include "server/backends/opencl/inventory.h"
#include "server/backends/opencl/kernel_trace.h"
#include "server/backends/opencl/memory_account.h"
#include "server/backends/opencl/objects.h"
#include "server/backends/opencl/splitter.h"
#include "server/backends/opencl/staging.h"
#include "server/backends/opencl/svm_ranges.h"
#include "server/backends/opencl/user_events.h"
#include "server/worker/backend.h"

namespace hawser::server::ocl {

class Command;

class OpenClBackend final : public Backend {
 public:
  explicit OpenClBackend(std::unique_ptr<Inventory> inventory);
  /// Ends what waits for the guest, then waits for the device, at most a few seconds (a kernel may never end).
  ~OpenClBackend() override;

  // ------------------------------------------------------------------ Backend
  Failure TakeFailure() override;
  bool WantsHeap() override;
  uint64_t HeapSizeHint() override;
  void SetServices(const Services& services) override;

  // ------------------------------------------------------------------ opencl::Handler
  int32_t GetInventory(const opencl::Call& call, const opencl::Nothing& message) override;
  int32_t ReleaseObject(const opencl::Call& call, const opencl::Release& message) override;
  int32_t WatchEventStatus(const opencl::Call& call, const opencl::WatchEvent& message) override;
  int32_t QueryObject(const opencl::Call& call, const opencl::Query& message) override;
  int32_t GetBinaries(const opencl::Call& call, const opencl::GetProgramBinaries& message) override;
  int32_t CopySVM(const opencl::Call& call, const opencl::SVMCopy& message) override;
  int32_t ReadSVM(const opencl::Call& call, const opencl::SVMRead& message) override;
  int32_t WriteSVM(const opencl::Call& call, const opencl::SVMWrite& message) override;
  int32_t CreateSubDevices(const opencl::Call& call, const opencl::CreateSubDevices& message) override;
  int32_t SetDefaultDeviceCommandQueue(const opencl::Call& call,
                                       const opencl::SetDefaultDeviceCommandQueue& message) override;
  int32_t GetDeviceAndHostTimer(const opencl::Call& call, const opencl::GetDeviceAndHostTimer& message) override;
  int32_t CreateContext(const opencl::Call& call, const opencl::CreateContext& message) override;
  int32_t CreateCommandQueueWithProperties(const opencl::Call& call, const opencl::CreateQueue& message) override;
  int32_t CreateBuffer(const opencl::Call& call, const opencl::CreateBuffer& message) override;
  int32_t CreateSubBuffer(const opencl::Call& call, const opencl::CreateSubBuffer& message) override;
  int32_t CreateImage(const opencl::Call& call, const opencl::CreateImage& message) override;
  int32_t CreatePipe(const opencl::Call& call, const opencl::CreatePipe& message) override;
  int32_t GetSupportedImageFormats(const opencl::Call& call, const opencl::GetSupportedImageFormats& message) override;
  int32_t SVMAlloc(const opencl::Call& call, const opencl::SVMAlloc& message) override;
  int32_t SVMFree(const opencl::Call& call, const opencl::SVMFree& message) override;
  int32_t CreateSamplerWithProperties(const opencl::Call& call, const opencl::CreateSampler& message) override;
  int32_t CreateProgramWithSource(const opencl::Call& call, const opencl::CreateProgramWithSource& message) override;
  int32_t CreateProgramWithBinary(const opencl::Call& call, const opencl::CreateProgramWithBinary& message) override;
  int32_t CreateProgramWithBuiltInKernels(const opencl::Call& call,
                                          const opencl::CreateProgramWithBuiltInKernels& message) override;
  int32_t CreateProgramWithIL(const opencl::Call& call, const opencl::CreateProgramWithIL& message) override;
  int32_t BuildProgram(const opencl::Call& call, const opencl::BuildProgram& message) override;
  int32_t CompileProgram(const opencl::Call& call, const opencl::CompileProgram& message) override;
  int32_t LinkProgram(const opencl::Call& call, const opencl::LinkProgram& message) override;
  int32_t SetProgramSpecializationConstant(const opencl::Call& call,
                                           const opencl::SetProgramSpecializationConstant& message) override;
  int32_t CreateKernel(const opencl::Call& call, const opencl::CreateKernel& message) override;
  int32_t CloneKernel(const opencl::Call& call, const opencl::CloneKernel& message) override;
  int32_t SetKernelArg(const opencl::Call& call, const opencl::SetKernelArg& message) override;
  int32_t SetKernelArgSVMPointer(const opencl::Call& call, const opencl::SetKernelArgSVMPointer& message) override;
  int32_t SetKernelExecInfo(const opencl::Call& call, const opencl::SetKernelExecInfo& message) override;
  int32_t CreateUserEvent(const opencl::Call& call, const opencl::CreateUserEvent& message) override;
  int32_t SetUserEventStatus(const opencl::Call& call, const opencl::SetUserEventStatus& message) override;
  int32_t Flush(const opencl::Call& call, const opencl::Flush& message) override;
  int32_t Finish(const opencl::Call& call, const opencl::Finish& message) override;
  int32_t EnqueueReadBuffer(const opencl::Call& call, const opencl::ReadBuffer& message) override;
  int32_t EnqueueReadBufferRect(const opencl::Call& call, const opencl::ReadBufferRect& message) override;
  int32_t EnqueueWriteBuffer(const opencl::Call& call, const opencl::WriteBuffer& message) override;
  int32_t EnqueueWriteBufferRect(const opencl::Call& call, const opencl::WriteBufferRect& message) override;
  int32_t EnqueueFillBuffer(const opencl::Call& call, const opencl::EnqueueFillBuffer& message) override;
  int32_t EnqueueCopyBuffer(const opencl::Call& call, const opencl::EnqueueCopyBuffer& message) override;
  int32_t EnqueueCopyBufferRect(const opencl::Call& call, const opencl::EnqueueCopyBufferRect& message) override;
  int32_t EnqueueReadImage(const opencl::Call& call, const opencl::ReadImage& message) override;
  int32_t EnqueueWriteImage(const opencl::Call& call, const opencl::WriteImage& message) override;
  int32_t EnqueueFillImage(const opencl::Call& call, const opencl::EnqueueFillImage& message) override;
  int32_t EnqueueCopyImage(const opencl::Call& call, const opencl::EnqueueCopyImage& message) override;
  int32_t EnqueueCopyImageToBuffer(const opencl::Call& call, const opencl::EnqueueCopyImageToBuffer& message) override;
  int32_t EnqueueCopyBufferToImage(const opencl::Call& call, const opencl::EnqueueCopyBufferToImage& message) override;
  int32_t EnqueueMigrateMemObjects(const opencl::Call& call, const opencl::EnqueueMigrateMemObjects& message) override;
  int32_t EnqueueNDRangeKernel(const opencl::Call& call, const opencl::EnqueueNDRangeKernel& message) override;
  int32_t EnqueueMarkerWithWaitList(const opencl::Call& call,
                                    const opencl::EnqueueMarkerWithWaitList& message) override;
  int32_t EnqueueBarrierWithWaitList(const opencl::Call& call,
                                     const opencl::EnqueueBarrierWithWaitList& message) override;
  int32_t EnqueueSVMFree(const opencl::Call& call, const opencl::EnqueueSVMFree& message) override;
  int32_t EnqueueSVMMemFill(const opencl::Call& call, const opencl::EnqueueSVMMemFill& message) override;
  int32_t EnqueueSVMMigrateMem(const opencl::Call& call, const opencl::EnqueueSVMMigrateMem& message) override;

 private:
  friend class Command;

  // ------------------------------------------------------------------ lookups and failures (backend.cc)
  /// The object, or null after setting *status and reason_. `what` is the parameter's name.
  template <typename T>
  T* Use(wire::Id id, std::string_view what, int32_t* status) {
    wire::Lookup why = wire::Lookup::kOk;
    T* object = objects_->Table<T>().Find(id, &why);
    if (object != nullptr && object->error == 0) [[likely]]
      return object;
    *status = object != nullptr ? object->error : ObjectType<T>::kInvalid;
    ExplainLookup(id, what, why);
    return nullptr;
  }
  const Device* UseDevice(wire::Id id, int32_t* status);
  /// The program's handle too; an error while a link is at work.
  Program* UseProgram(wire::Id id, std::string_view what, int32_t* status, cl_program* native);
  std::shared_ptr<Program> ShareProgram(wire::Id id) { return objects_->Table<ProgramObject>().Find(id)->program; }
  void ExplainLookup(wire::Id id, std::string_view what, wire::Lookup why);
  /// Keeps why a command fails, for Fail().
  int32_t Explain(int32_t status, std::string_view reason) {
    reason_ = reason;
    return status;
  }
  /// The command failed: keeps a Failure, makes `object` report the error from now on. Returns `status`.
  int32_t Fail(const opencl::Call& call, int32_t status, wire::Id object = {}, wire::Id queue = {});
  /// Puts a new object under its name. Fails when the name is taken.
  template <typename T>
  int32_t Keep(const opencl::Call& call, wire::Id id, T object) {
    const wire::Lookup result = objects_->Table<T>().InsertFrom(id, &object);
    if (result == wire::Lookup::kOk) [[likely]]
      return CL_SUCCESS;
    ExplainLookup(id, "the new object", result);
    return Fail(call, CL_INVALID_VALUE);
  }
  template <typename Message>
  void Reply(const opencl::Call& call, const Message& message) {
    services_.replies->Send(static_cast<opencl::Opcode>(call.opcode), call.seq, message, true);
  }
  int32_t ReplyStatus(const opencl::Call& call, int32_t status);
  void Log(std::string_view level, const std::string& text) {
    if (services_.log) services_.log(level, text);
  }

  // ------------------------------------------------------------------ memory (memory.cc)
  void ReleaseMemory(wire::Id id, bool notify);
  /// Announces the end of an object once all commands that are under way now are done.
  void ReleaseBehindQueues(Handle<cl_mem> memory, wire::Id id);
  static bool OnQueueDrained(Completion& completion, int32_t status);
  /// Initial contents, from the message or from the bulk channel. *data is null when there are none.
  int32_t InitialData(uint64_t transfer, uint64_t size, wire::Bytes inline_data, StagingPool::Owned* staged,
                      void** data);
  int32_t MakeBuffer(const opencl::CreateBuffer& message, Memory* memory);
  int32_t MakeImage(const opencl::CreateImage& message, Memory* memory);

  // ------------------------------------------------------------------ programs (programs.cc)
  std::vector<NamedDevice> NamedDevices(const std::vector<wire::Id>& ids);
  int32_t NamedDevices(const wire::ArrayView<wire::Id>& ids, std::vector<NamedDevice>* devices);
  /// A program of this text, with the prelude of slicing/carry.h before it where that may be of use.
  cl_program MakeFromSource(cl_context context, std::string_view source, bool* has_prelude, int32_t* status);
  int32_t KeepProgram(const opencl::Call& call, wire::Id id, const Context& context, cl_program native);
  void MayPrint();
  /// Puts a program of another source under the same name. Builds under way keep the old one.
  int32_t ReplaceSource(wire::Id id, wire::Bytes source);
  int32_t ReplyBuild(const opencl::Call& call, int32_t status);
  struct BuildJob;

  // ------------------------------------------------------------------ kernels (kernels.cc)
  /// Runs a launch in parts, or asks the gate first; *taken: it was handled here. See splitter.h.
  int32_t LaunchSplit(const opencl::Call& call, const opencl::EnqueueNDRangeKernel& message, Command& command,
                      bool is_open, bool hold, bool* taken);
  bool Splits() const { return splitter_ != nullptr && splitter_->splits(); }
  bool HoldArguments(const Kernel& kernel, SplitJob* job);
  bool TakesObject(Kernel& kernel, uint32_t index);
  int32_t SetObjectArg(const opencl::SetKernelArg& message, Kernel& kernel);

  // ------------------------------------------------------------------ events and queues (events.cc)
  /// As far as can be seen nothing is under way on the device.
  bool IsIdle();
  void ReleaseQueue(wire::Id id);
  void ReleaseEvent(wire::Id id);
  static bool AnswerFinish(Completion& completion, int32_t status);
  /// Everything enqueued so far is done when this comes true. Null and *status when the driver refuses; null and
  /// CL_SUCCESS when nothing is under way.
  Completion* NewDrain(const std::shared_ptr<Queue>& queue, int32_t* status);

  // ------------------------------------------------------------------ transfers (transfers.cc)
  template <typename Enqueue>
  int32_t ReadInline(const opencl::Call& call, Command& command, uint64_t size, Enqueue&& enqueue);
  template <typename Enqueue>
  int32_t WriteInline(Command& command, wire::Bytes data, Enqueue&& enqueue);
  template <typename Map, typename Unmap>
  int32_t ReadMapped(const opencl::Call& call, Command& command, uint64_t transfer, uint64_t size, Map&& map,
                     Unmap&& unmap);
  template <typename Map, typename Unmap>
  int32_t WriteMapped(Command& command, uint64_t transfer, uint64_t size, Map&& map, Unmap&& unmap);
  template <typename Enqueue>
  int32_t ReadStaged(const opencl::Call& call, Command& command, uint64_t transfer, uint64_t size, Enqueue&& enqueue);
  template <typename Enqueue>
  int32_t WriteStaged(Command& command, uint64_t transfer, uint64_t size, Enqueue&& enqueue);
  int32_t FailRead(const opencl::Call& call, Command& command, uint64_t transfer, int32_t status);
  int32_t FailWrite(Command& command, uint64_t transfer, uint64_t size, int32_t status);
  /// The block of small writes is full, or the queue ends: it goes back when the queue's newest command is done.
  void RetireSlab(const std::shared_ptr<Queue>& queue);
  /// Room for a small write; null without memory.
  std::byte* SlabRoom(const std::shared_ptr<Queue>& queue, uint64_t size);
  /// Lets the guest send a transfer that nobody wants any more.
  void DrainTransfer(uint64_t transfer, uint64_t size);

  // ------------------------------------------------------------------ the end (backend.cc)
  bool WaitUntilIdle();

  Services services_;
  std::unique_ptr<Inventory> inventory_;
  // In pointers, so that all of it can be left behind when the device does not come to an end.
  std::unique_ptr<Completions> completions_;
  std::unique_ptr<StagingPool> staging_;
  std::unique_ptr<UserEvents> user_events_;
  std::unique_ptr<SvmRanges> svm_;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Splitter> splitter_;  ///< Null where nothing is split or gated.
  std::unique_ptr<Builder> builder_;

  std::shared_ptr<MemoryAccount> memory_account_;
  std::shared_ptr<KernelTrace> kernel_trace_;
  bool may_print_ = false;  ///< Some program prints, as far as one can see.
  std::string reason_;      ///< See Explain().
  Failure failure_;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_BACKEND_H_
