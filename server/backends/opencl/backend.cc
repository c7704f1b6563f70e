// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/backend.h"

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "proto/facts/error_names.h"

namespace hawser::server {

wire::Result<std::unique_ptr<Backend>> CreateOpenClBackend() {
  wire::Result<std::unique_ptr<ocl::Inventory>> inventory = ocl::Inventory::Load();
  if (!inventory.ok()) return inventory.status();
  return std::unique_ptr<Backend>(std::make_unique<ocl::OpenClBackend>(std::move(*inventory)));
}

namespace ocl {
namespace {

// How long the end of a session waits for the device.
constexpr std::chrono::seconds kLongestEnd{5};

std::string IdText(wire::Id id) {
  char text[96];
  std::snprintf(text, sizeof(text), "%s %u.%u", opencl::HandleName(id.type()), id.index(), id.generation());
  return text;
}

}  // namespace

OpenClBackend::OpenClBackend(std::unique_ptr<Inventory> inventory)
    : inventory_(std::move(inventory)),
      completions_(std::make_unique<Completions>()),
      staging_(std::make_unique<StagingPool>(Limits().staging_memory)),
      user_events_(std::make_unique<UserEvents>(*completions_)),
      svm_(std::make_unique<SvmRanges>()),
      objects_(std::make_unique<Objects>(Limits().max_objects)),
      builder_(std::make_unique<Builder>()) {
  completions_->SetServices(services_);
}

OpenClBackend::~OpenClBackend() {
  builder_.reset();
  const bool lanes_idle = splitter_ == nullptr || splitter_->Stop(std::chrono::steady_clock::now() + kLongestEnd);
  user_events_->SetAll();
  if (!WaitUntilIdle() || !lanes_idle) {
    // A kernel that never ends: its callbacks may still come and find all of this.
    Log("warn", "the device did not come to an end within 5 s; the session's objects are left to the process's end");
    (void)splitter_.release();
    (void)objects_.release();
    (void)svm_.release();
    (void)user_events_.release();
    (void)staging_.release();
    (void)completions_.release();
    return;
  }
  splitter_.reset();
  objects_.reset();
  svm_.reset();
  // The driver lets go of a command's memory objects after it has called back.
  const auto end = std::chrono::steady_clock::now() + kLongestEnd;
  while (memory_account_ != nullptr && memory_account_->pending() != 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

bool OpenClBackend::WaitUntilIdle() {
  objects_->Table<QueueObject>().ForEach([&](wire::Id, QueueObject& object) {
    if (object.error != 0) return;
    RetireSlab(object.queue);
    int32_t status = CL_SUCCESS;
    if (Completion* drain = NewDrain(object.queue, &status); drain != nullptr) completions_->Arm(drain);
    clFlush(object.queue->native.get());
  });
  const auto end = std::chrono::steady_clock::now() + kLongestEnd;
  std::chrono::microseconds pause{10};
  while (completions_->Outstanding() != 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    completions_->Sweep();
    std::this_thread::sleep_for(pause);
    if (pause < std::chrono::milliseconds(10)) pause *= 2;
  }
  return true;
}

Backend::Failure OpenClBackend::TakeFailure() { return std::exchange(failure_, {}); }

bool OpenClBackend::WantsHeap() { return inventory_->AnySharedMemory(); }

uint64_t OpenClBackend::HeapSizeHint() { return inventory_->LargestSharedDevice(); }

void OpenClBackend::SetServices(const Services& services) {
  services_ = services;
  completions_->SetServices(services_);
  staging_->SetLimit(services_.limits.staging_memory);
  objects_ = std::make_unique<Objects>(services_.limits.max_objects);
  memory_account_ = std::make_shared<MemoryAccount>(services_.replies, &services_.stats->device_memory_limit,
                                                    &services_.stats->device_memory);
  kernel_trace_ = std::make_shared<KernelTrace>(services_.stats);
  inventory_->Describe(services_.stats);
  std::string problem;
  SplitSettings split = SplitSettings::FromEnvironment(kOpenClSplit, services_.launch_gates != nullptr, &problem);
  if (!problem.empty()) Log("error", problem);
  splitter_.reset();
  if (!split.splits && services_.launch_gates == nullptr) return;
  splitter_ = std::make_unique<Splitter>(std::move(split), services_.launch_gates, *services_.stats, *completions_,
                                         *user_events_, *kernel_trace_,
                                         [this](std::string_view level, const std::string& text) { Log(level, text); });
}

const Device* OpenClBackend::UseDevice(wire::Id id, int32_t* status) {
  wire::Lookup why = wire::Lookup::kOk;
  const Device* device = inventory_->Find(id, &why);
  if (device == nullptr) {
    *status = CL_INVALID_DEVICE;
    ExplainLookup(id, "device", why);
  }
  return device;
}

Program* OpenClBackend::UseProgram(wire::Id id, std::string_view what, int32_t* status, cl_program* native) {
  const ProgramObject* object = Use<ProgramObject>(id, what, status);
  if (object == nullptr) return nullptr;
  Program& program = *object->program;
  *native = program.native.load(std::memory_order_acquire);
  if (*native != nullptr) [[likely]]
    return &program;
  const int32_t error = program.error.load(std::memory_order_acquire);
  *status = Explain(error != 0 ? error : CL_INVALID_OPERATION,
                    error != 0 ? "the program could not be linked" : "the program is still being linked");
  return nullptr;
}

void OpenClBackend::ExplainLookup(wire::Id id, std::string_view what, wire::Lookup why) {
  reason_ = std::string(what) + " (" + IdText(id) + ") ";
  if (why == wire::Lookup::kOk) {
    reason_ += "could not be created earlier";
    return;
  }
  reason_ += wire::LookupText(why);
  Log("warn", "a command names what is not there: " + reason_);
}

int32_t OpenClBackend::Fail(const opencl::Call& call, int32_t status, wire::Id object, wire::Id queue) {
  objects_->Poison(object, status);
  failure_.object = object;
  failure_.queue = queue;
  failure_.text = opencl::OpcodeName(call.opcode);
  failure_.text += ": ";
  if (!reason_.empty()) failure_.text += reason_ + ": ";
  failure_.text += opencl::ErrorName(status);
  reason_.clear();
  return status;
}

int32_t OpenClBackend::ReplyStatus(const opencl::Call& call, int32_t status) {
  if (status != CL_SUCCESS) Fail(call, status);
  opencl::Status reply;
  reply.status = status;
  Reply(call, reply);
  return CL_SUCCESS;
}

}  // namespace ocl
}  // namespace hawser::server
