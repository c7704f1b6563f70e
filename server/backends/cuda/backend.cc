// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/backend.h"

#include <algorithm>
#include <utility>

namespace hawser::server::cuda_backend {
namespace {

/// Host memory that guests may have pinned. NVIDIA's driver locks all of it in memory when the first context is made.
constexpr uint64_t kNvidiaHeap = 512u << 20;
constexpr uint64_t kSoftHeap = uint64_t{4} << 30;

}  // namespace

bool BreaksContext(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
      return true;
    default:
      return false;
  }
}

CudaBackend::CudaBackend(ChosenDriver driver, const WorkerSettings& settings, AddressRanges before)
    : chosen_(std::move(driver)), driver_(chosen_.driver.table), settings_(settings), before_(std::move(before)) {
  for (int i = 0; i < chosen_.devices; ++i) {
    CUdevice device = 0;
    if (driver_.cuDeviceGet(&device, i) == CUDA_SUCCESS) devices_.push_back(device);
  }
  warm_.resize(devices_.size(), nullptr);
}

CudaBackend::~CudaBackend() {
  EndSharing();
  gates_.OpenAll(nullptr);
  std::vector<wire::Id> contexts;
  if (objects_ != nullptr) {
    objects_->Table<Context>().ForEach([&](wire::Id id, Context& context) {
      if (context.error == 0) contexts.push_back(id);
    });
    for (const wire::Id id : contexts) {
      cuda::Release release;
      release.object = id;
      (void)ReleaseObject({}, release);
    }
  }
  loader_.reset();
  loaded_.clear();
  for (const auto& share : shares_) share->sharing.reset();
  waits_.reset();
  objects_.reset();
}

void CudaBackend::PrepareMemory() {
  const CudaMemory wish = settings_.cuda_memory;
  if (wish == CudaMemory::kHeap || (wish == CudaMemory::kAuto && chosen_.soft)) heap_memory_.Offer(services_.heap);
  if (wish == CudaMemory::kDriver || wish == CudaMemory::kHeap || (wish == CudaMemory::kAuto && chosen_.soft)) return;
  std::string why;
  if (!linear_.Prepare(devices_, &why)) {
    Log(wish == CudaMemory::kChunks ? "warning" : "info", "device memory does not come in chunks: " + why);
  }
}

uint64_t CudaBackend::HeapSizeHint() { return chosen_.soft ? kSoftHeap : kNvidiaHeap; }

void CudaBackend::SetServices(const Services& services) {
  services_ = services;
  objects_ = std::make_unique<Objects>(services_.limits.max_objects);
  SessionStatsPage* stats = services_.stats;
  ledger_ = std::make_unique<memmgr::LocalLedger>(&stats->device_memory_limit, services_.limits.device_memory,
                                                  &stats->device_memory);
  for (const CUdevice device : devices_) {
    char name[256] = {};
    size_t memory = 0;
    (void)driver_.cuDeviceGetName(name, sizeof(name) - 1, device);
    (void)driver_.cuDeviceTotalMem(&memory, device);
    stats->AddDevice(name, memory);
    device_name_ += std::string(name) + "\n";
  }
  PrepareMemory();
  staging_budget_ = std::make_unique<StagingBudget>(services_.limits.staging_memory);
  ImageStore::Options images;
  images.directory = settings_.cuda_cache;
  images.tenant = settings_.tenant;
  images.disk = settings_.cuda_cache_size;
  images_ = std::make_unique<ImageStore>(images, [this](const std::string& text) { Log("warning", text); });
  uploads_ = std::make_unique<ImageUploads>(images_->largest());
  waits_ = std::make_unique<Waits>(
      &driver_, chosen_.soft,
      [this] {
        if (services_.drain_kernel_output) services_.drain_kernel_output();
      },
      [this](CUcontext context, CUresult result) { OnLaneResult(context, result); });
  device_name_ += chosen_.summary;
  std::string problem;
  split_ = SplitSettings::FromEnvironment(kCudaSplit, services_.launch_gates != nullptr, &problem);
  if (!problem.empty()) Log("warning", problem);
  if (split_.refuse != 0) refusing_gate_ = std::make_unique<RefusingGate>(split_.refuse);
}

void CudaBackend::ExplainLookup(wire::Id id, const char* what, wire::Lookup why, bool failed_before) {
  reason_ = std::string("the ") + what + " " + std::to_string(id.index()) + " ";
  reason_ += failed_before ? "could not be created" : std::string(wire::LookupText(why));
}

int32_t CudaBackend::EnterNative(CUcontext context) {
  if (current_ == context) [[likely]]
    return 0;
  const CUresult result = driver_.cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) current_ = context;
  return result;
}

Context* CudaBackend::Enter(wire::Id id, int32_t* status) {
  Context* context = Use<Context>(id, status);
  if (context == nullptr) return nullptr;
  *status = EnterNative(context->native);
  return *status == 0 ? context : nullptr;
}

Place CudaBackend::At(wire::Id context, wire::Id stream, Gives gives) {
  Place place;
  place.context = Enter(context, &place.status);
  if (place.context == nullptr) return place;
  if (!stream) {
    place.stream = place.context->legacy.get();
    NoteGives(place, gives);
    return place;
  }
  const Stream* object = Use<Stream>(stream, &place.status);
  if (object == nullptr) return place;
  if (object->state->context != context) [[unlikely]] {
    place.status = Explain(CUDA_ERROR_INVALID_HANDLE, "the stream is of another context");
    return place;
  }
  place.stream = object->state.get();
  NoteGives(place, gives);
  return place;
}

void CudaBackend::NoteGives(const Place& at, Gives gives) {
  if (gives == Gives::kNothing) return;
  if (gives == Gives::kMore) at.stream->plain = false;
  if (at.stream->ahead.Count()) [[unlikely]]
    RunsAhead(at);
  NoteGiven(*at.context, *at.stream);
}

void CudaBackend::NoteGiven(Context& context, StreamState& stream) {
  if (stream.nonblocking) return;
  if (&stream != context.legacy.get()) {
    if (!std::exchange(stream.given, true)) context.given.push_back(stream.shared_from_this());
    return;
  }
  for (const auto& other : context.given) {
    other->given = false;
    other->end.reset();
    // An event would become a part of what is captured.
    if (captures()) continue;
    std::shared_ptr<const PooledEvent> end = PooledEvent::Take(context.events);
    if (end != nullptr && driver_.cuEventRecord(end->native(), other->native()) == CUDA_SUCCESS) {
      other->end = std::move(end);
    }
  }
  context.given.clear();
}

int32_t CudaBackend::Fail(const cuda::Call& call, int32_t status, wire::Id object, wire::Id context) {
  failure_.object = object;
  failure_.queue = context;
  failure_.text = std::string(cuda::OpcodeName(call.opcode)) + " failed";
  if (status > 0) failure_.text += " with " + ErrorText(driver_, static_cast<CUresult>(status));
  if (!reason_.empty()) failure_.text += ": " + reason_;
  reason_.clear();
  if (object) objects_->Poison(object, status);
  return status;
}

void CudaBackend::Note(wire::Id context, CUresult result) {
  if (result == CUDA_SUCCESS || !BreaksContext(result) || !context) return;
  {
    const std::lock_guard<std::mutex> lock(faults_mutex_);
    if (!faulted_.insert(context.raw()).second) return;
  }
  if (services_.drain_kernel_output) services_.drain_kernel_output();
  cuda::ContextFault notice;
  notice.context = context;
  notice.status = result;
  std::string text = "the context is broken: " + ErrorText(driver_, result);
  Log("info", text);
  if (result == CUDA_ERROR_ASSERT && services_.take_assertions) {
    const std::string assertions = services_.take_assertions();
    if (!assertions.empty()) text = assertions;
  }
  notice.text = text;
  Notify(notice);
}

void CudaBackend::OnLaneResult(CUcontext context, CUresult result) {
  if (!BreaksContext(result)) return;
  wire::Id name;
  {
    const std::lock_guard<std::mutex> lock(faults_mutex_);
    const auto at = context_names_.find(context);
    if (at == context_names_.end()) return;
    name = at->second;
  }
  Note(name, result);
}

}  // namespace hawser::server::cuda_backend
