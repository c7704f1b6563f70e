// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's driver does and the software device does not, put in front of the latter (beside cubin_driver.cc, in
// one library):
//   * a stream takes so many commands at a time, $HAWSER_TEST_PENDING of them (1,024): who gives it another one waits
//     within the call until the device has gone on;
//   * functions that streams and graphs call run one at a time in the whole process;
//   * who frees memory, unmaps it or unloads code waits until nothing is under way in the context.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

// The name after cuda.h's macros.
#define HAWSER_TEXT(name) #name
#define HAWSER_EXPANDED_TEXT(name) HAWSER_TEXT(name)
#define HAWSER_NEXT(name) Next<decltype(&::name)>(HAWSER_EXPANDED_TEXT(name))

namespace {

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

size_t MostPending() {
  static const size_t most = [] {
    const char* const text = std::getenv("HAWSER_TEST_PENDING");
    return text != nullptr ? std::strtoul(text, nullptr, 10) : size_t{1024};
  }();
  return most;
}

/// What a stream was given and has not done, counted by events behind every few commands.
class Queue {
 public:
  void Add(CUstream stream) {
    static const auto create = HAWSER_NEXT(cuEventCreate);
    static const auto record = HAWSER_NEXT(cuEventRecord);
    static const auto query = HAWSER_NEXT(cuEventQuery);
    static const auto synchronize = HAWSER_NEXT(cuEventSynchronize);
    const size_t step = MostPending() / 8 + 1;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (++since_ >= step) {
      CUevent event = nullptr;
      if (!free_.empty()) {
        event = free_.back();
        free_.pop_back();
      } else if (create(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        return;
      }
      (void)record(event, stream);
      marks_.push_back(event);
      since_ = 0;
    }
    while (!marks_.empty() && query(marks_.front()) != CUDA_ERROR_NOT_READY) Pop();
    while (!marks_.empty() && marks_.size() * step + since_ > MostPending()) {
      (void)synchronize(marks_.front());
      Pop();
    }
  }

 private:
  void Pop() {
    free_.push_back(marks_.front());
    marks_.pop_front();
  }

  std::mutex mutex_;
  size_t since_ = 0;
  std::deque<CUevent> marks_;
  std::vector<CUevent> free_;
};

class Queues {
 public:
  static Queues& Get() {
    static auto* const queues = new Queues;
    return *queues;
  }
  std::shared_ptr<Queue> Find(CUcontext context, CUstream stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Queue>& queue = queues_[{context, stream}];
    if (queue == nullptr) queue = std::make_shared<Queue>();
    return queue;
  }
  void Forget(CUcontext context, CUstream stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_.erase({context, stream});
  }
  void ForgetAll(CUcontext context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(queues_, [&](const auto& each) { return each.first.first == context; });
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<CUcontext, CUstream>, std::shared_ptr<Queue>> queues_;
};

CUcontext Current() {
  static const auto current = Next<decltype(&::cuCtxGetCurrent)>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  (void)current(&context);
  return context;
}

/// Returns when the stream takes another command.
void Admit(CUstream stream) {
  static const auto capturing = HAWSER_NEXT(cuStreamIsCapturing);
  if (MostPending() == 0) return;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (capturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return;
  Queues::Get().Find(Current(), stream)->Add(stream);
}

/// While something is captured a context cannot be waited for.
std::atomic<int> captures{0};

void AwaitIdle() {
  static const auto synchronize = HAWSER_NEXT(cuCtxSynchronize);
  if (MostPending() != 0 && captures.load() == 0) (void)synchronize();
}

/// Held while a function runs that a stream or a graph calls.
std::mutex functions;

struct HostFunction {
  CUhostFn function;
  void* data;
};
struct Callback {
  CUstreamCallback function;
  void* data;
};

/// Lives for ever: graphs may call it again.
template <typename T>
T* Keep(const T& what) {
  static std::mutex mutex;
  static auto* const kept = new std::deque<T>;
  const std::lock_guard<std::mutex> lock(mutex);
  kept->push_back(what);
  return &kept->back();
}

void CUDA_CB CallHostFunction(void* data) {
  const auto* const call = static_cast<const HostFunction*>(data);
  const std::lock_guard<std::mutex> lock(functions);
  call->function(call->data);
}

void CUDA_CB CallCallback(CUstream stream, CUresult status, void* data) {
  const auto* const call = static_cast<const Callback*>(data);
  const std::lock_guard<std::mutex> lock(functions);
  call->function(stream, status, call->data);
}

CUDA_HOST_NODE_PARAMS OneAtATime(const CUDA_HOST_NODE_PARAMS* parameters) {
  return {CallHostFunction, Keep(HostFunction{parameters->fn, parameters->userData})};
}

}  // namespace

extern "C" {

// Commands of a stream. `stream` names one of the parameters.
#define HAWSER_LIMIT(name, stream, parameters, ...) \
  CUresult CUDAAPI name parameters {                \
    static const auto next = HAWSER_NEXT(name);     \
    Admit(stream);                                  \
    return next(__VA_ARGS__);                       \
  }

HAWSER_LIMIT(cuLaunchKernel, s,
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, CUstream s, void** parameters, void** extra),
             f, gx, gy, gz, bx, by, bz, shared, s, parameters, extra)
HAWSER_LIMIT(cuLaunchKernelEx, c->hStream, (const CUlaunchConfig* c, CUfunction f, void** parameters, void** extra), c,
             f, parameters, extra)
HAWSER_LIMIT(cuMemcpyHtoDAsync, s, (CUdeviceptr to, const void* from, size_t size, CUstream s), to, from, size, s)
HAWSER_LIMIT(cuMemcpyDtoHAsync, s, (void* to, CUdeviceptr from, size_t size, CUstream s), to, from, size, s)
HAWSER_LIMIT(cuMemcpyDtoDAsync, s, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s), to, from, size, s)
HAWSER_LIMIT(cuMemcpyAsync, s, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s), to, from, size, s)
HAWSER_LIMIT(cuMemcpy3DAsync, s, (const CUDA_MEMCPY3D* copy, CUstream s), copy, s)
HAWSER_LIMIT(cuMemsetD8Async, s, (CUdeviceptr to, unsigned char value, size_t count, CUstream s), to, value, count, s)
HAWSER_LIMIT(cuMemsetD16Async, s,
             (CUdeviceptr to, unsigned short value,  // NOLINT(google-runtime-int): CUDA's type.
              size_t count, CUstream s),
             to, value, count, s)
HAWSER_LIMIT(cuMemsetD32Async, s, (CUdeviceptr to, unsigned value, size_t count, CUstream s), to, value, count, s)
HAWSER_LIMIT(cuMemFreeAsync, s, (CUdeviceptr address, CUstream s), address, s)
HAWSER_LIMIT(cuGraphLaunch, s, (CUgraphExec exec, CUstream s), exec, s)
HAWSER_LIMIT(cuEventRecord, s, (CUevent event, CUstream s), event, s)
HAWSER_LIMIT(cuStreamWaitEvent, s, (CUstream s, CUevent event, unsigned flags), s, event, flags)
HAWSER_LIMIT(cuStreamBatchMemOp, s, (CUstream s, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags),
             s, count, operations, flags)

CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  static const auto next = HAWSER_NEXT(cuLaunchHostFunc);
  Admit(stream);
  return next(stream, CallHostFunction, Keep(HostFunction{function, data}));
}
CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data, unsigned flags) {
  static const auto next = HAWSER_NEXT(cuStreamAddCallback);
  Admit(stream);
  return next(stream, CallCallback, Keep(Callback{function, data}), flags);
}
CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* parameters) {
  static const auto next = HAWSER_NEXT(cuGraphAddHostNode);
  const CUDA_HOST_NODE_PARAMS wrapped = OneAtATime(parameters);
  return next(node, graph, dependencies, count, &wrapped);
}
CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  static const auto next = HAWSER_NEXT(cuGraphHostNodeSetParams);
  const CUDA_HOST_NODE_PARAMS wrapped = OneAtATime(parameters);
  return next(node, &wrapped);
}
CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* parameters) {
  static const auto next = HAWSER_NEXT(cuGraphHostNodeGetParams);
  const CUresult result = next(node, parameters);
  if (result != CUDA_SUCCESS || parameters->fn != CallHostFunction) return result;
  const HostFunction given = *static_cast<const HostFunction*>(parameters->userData);
  *parameters = {given.function, given.data};
  return result;
}
CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_HOST_NODE_PARAMS* parameters) {
  static const auto next = HAWSER_NEXT(cuGraphExecHostNodeSetParams);
  const CUDA_HOST_NODE_PARAMS wrapped = OneAtATime(parameters);
  return next(exec, node, &wrapped);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  static const auto next = HAWSER_NEXT(cuStreamBeginCapture);
  const CUresult result = next(stream, mode);
  if (result == CUDA_SUCCESS) captures.fetch_add(1);
  return result;
}
CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                             const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  static const auto next = HAWSER_NEXT(cuStreamBeginCaptureToGraph);
  const CUresult result = next(stream, graph, dependencies, edges, count, mode);
  if (result == CUDA_SUCCESS) captures.fetch_add(1);
  return result;
}
CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  static const auto next = HAWSER_NEXT(cuStreamEndCapture);
  static const auto capturing = HAWSER_NEXT(cuStreamIsCapturing);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (capturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) captures.fetch_sub(1);
  return next(stream, graph);
}

// What frees.
#define HAWSER_FREE(name, type)                 \
  CUresult CUDAAPI name(type what) {            \
    static const auto next = HAWSER_NEXT(name); \
    AwaitIdle();                                \
    return next(what);                          \
  }

HAWSER_FREE(cuMemFree, CUdeviceptr)
HAWSER_FREE(cuMemHostUnregister, void*)
HAWSER_FREE(cuModuleUnload, CUmodule)
HAWSER_FREE(cuLibraryUnload, CUlibrary)
HAWSER_FREE(cuArrayDestroy, CUarray)
HAWSER_FREE(cuMipmappedArrayDestroy, CUmipmappedArray)
HAWSER_FREE(cuMemPoolDestroy, CUmemoryPool)
HAWSER_FREE(cuIpcCloseMemHandle, CUdeviceptr)

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
  static const auto next = HAWSER_NEXT(cuMemUnmap);
  AwaitIdle();
  return next(address, size);
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  static const auto next = HAWSER_NEXT(cuStreamDestroy);
  Queues::Get().Forget(Current(), stream);
  return next(stream);
}
CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  static const auto next = HAWSER_NEXT(cuCtxDestroy);
  Queues::Get().ForgetAll(context);
  return next(context);
}
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  static const auto next = HAWSER_NEXT(cuDevicePrimaryCtxReset);
  Queues::Get().ForgetAll(Current());
  return next(device);
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  static const auto next = HAWSER_NEXT(cuDevicePrimaryCtxRelease);
  // Whether it ends is not known here; what is under way is counted anew.
  Queues::Get().ForgetAll(Current());
  return next(device);
}

}  // extern "C"
