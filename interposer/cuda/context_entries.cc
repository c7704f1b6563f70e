// SPDX-License-Identifier: Apache-2.0
// cuCtx*.
#include "interposer/cuda/capture.h"
#include "interposer/cuda/context.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/mirror.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// Null becomes the current one.
CUresult CheckNamedOrOwn(CUctx_st** context) {
  if (*context != nullptr) return CheckContext(*context);
  *context = ThreadState::Get().stack.top();
  return CheckOwnContext(*context);
}

}  // namespace

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* result, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || (flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (Client::Get().device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUctx_st* context = NewContext(device, flags, /*primary=*/false);
  if (const CUresult error = StartContext(context); error != CUDA_SUCCESS) {
    Registry::Get().Bury(context);
    return error;
  }
  ThreadState::Get().stack.Push(context);
  *result = context;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v4(context, nullptr, flags, device);
}

CUresult CUDAAPI cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned int flags,
                                CUdevice device) {
  return count != 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : cuCtxCreate_v4(context, nullptr, flags, device);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  ThreadState& thread = ThreadState::Get();
  if (thread.stack.top() == context) thread.stack.Pop();
  AwaitWork(context);
  guest::Session* session = Client::Get().session();
  cuda::Release message;
  message.object = context->id;
  const int32_t error = SendEnd(context, message);
  ForgetContents(context);
  const wire::Id id = context->id;
  Registry::Get().Bury(context);
  session->FreeId(id);
  return FromWire(error);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
  if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  ThreadState::Get().stack.Push(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  ContextStack& stack = ThreadState::Get().stack;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  CUctx_st* top = stack.Pop();
  if (context != nullptr) *context = top;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  if (context != nullptr) {
    if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  } else if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) {
    return error;
  }
  ThreadState::Get().stack.Set(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = ThreadState::Get().stack.top();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  context->flags = flags;
  cuda::SetContextFlags message;
  message.context = context->id;
  message.flags = flags;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (const CUresult error = CheckNamedOrOwn(&context); error != CUDA_SUCCESS) return error;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->number;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  if (const CUresult error = CheckNamedOrOwn(&context); error != CUDA_SUCCESS) return error;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
  CUresult error;
  if (context == nullptr) {
    error = CurrentContext(&context);
  } else {
    error = CheckContext(context);
    if (error == CUDA_SUCCESS) error = static_cast<CUresult>(context->fault.load());
  }
  if (error != CUDA_SUCCESS) return error;
  if (Captures::Get().CheckUnsafeCall() != CUDA_SUCCESS) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const uint64_t mark = Mirrors::Get().Mark();
  const Landings landings = LandingsOf(context);
  cuda::SynchronizeContext message;
  message.context = context->id;
  error = AskStatus(Client::Get().session(), message);
  if (error == CUDA_SUCCESS) error = AwaitLandings(landings);
  if (error == CUDA_SUCCESS) error = TakePending(context);
  return error != CUDA_SUCCESS ? error : Mirrors::Get().AfterWait(mark, context, nullptr);
}

CUresult CUDAAPI cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  const Device* device = Client::Get().device(context->device);
  if (least != nullptr) *least = device->least_priority;
  if (greatest != nullptr) *greatest = device->greatest_priority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const auto ask = [context, limit](uint64_t* result) {
    cuda::GetLimit message;
    message.context = context->id;
    message.limit = limit;
    Answer<cuda::Value> answer;
    const CUresult error = answer.Ask(Client::Get().session(), message);
    if (error == CUDA_SUCCESS) *result = answer->value;
    return error;
  };
  uint64_t result = 0;
  // A kernel that needs a larger stack makes the driver enlarge it; nothing but the program changes the others.
  const CUresult error =
      limit == CU_LIMIT_STACK_SIZE ? ask(&result) : context->limits.Get(static_cast<uint64_t>(limit), &result, ask);
  if (error == CUDA_SUCCESS) *value = result;
  return error;
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  cuda::SetLimit message;
  message.context = context->id;
  message.limit = limit;
  message.value = value;
  const CUresult error = AskStatus(Client::Get().session(), message);
  // The driver may round or clamp what it is told.
  context->limits.Forget(static_cast<uint64_t>(limit));
  return error;
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = static_cast<CUfunc_cache>(context->cache_config.load());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  context->cache_config = config;
  cuda::SetCacheConfig message;
  message.context = context->id;
  message.config = config;
  return FromWire(Client::Get().session()->Send(message));
}

// Bank sizes of shared memory: devices of today have one.
CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache() {
  CUctx_st* context = nullptr;
  return CurrentContext(&context);
}

CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (affinity == nullptr || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;  // As cuDeviceGetExecAffinitySupport says.
}

CUresult CUDAAPI cuCtxAttach(CUcontext* result, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (result == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(context->mutex);
  ++context->references;
  *result = context;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDetach(CUcontext context) {
  if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  {
    std::lock_guard lock(context->mutex);
    if (context->references > 1) {
      --context->references;
      return CUDA_SUCCESS;
    }
  }
  return cuCtxDestroy_v2(context);
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckContext(peer); error != CUDA_SUCCESS) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == context->device) return CUDA_ERROR_INVALID_CONTEXT;
  {
    std::lock_guard lock(context->mutex);
    if (context->peers.count(peer->device) != 0) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  }
  cuda::SetPeerAccess message;
  message.context = context->id;
  message.peer = peer->id;
  message.enabled = 1;
  const CUresult error = AskStatus(Client::Get().session(), message);
  std::lock_guard lock(context->mutex);
  if (error == CUDA_SUCCESS) context->peers.insert(peer->device);
  return error;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckContext(peer); error != CUDA_SUCCESS) return CUDA_ERROR_INVALID_CONTEXT;
  {
    std::lock_guard lock(context->mutex);
    if (context->peers.erase(peer->device) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  }
  cuda::SetPeerAccess message;
  message.context = context->id;
  message.peer = peer->id;
  return AskStatus(Client::Get().session(), message);
}
