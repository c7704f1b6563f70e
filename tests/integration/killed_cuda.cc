// SPDX-License-Identifier: Apache-2.0
// killed_cuda SECONDS: threads that use the CUDA driver API, each in its own way, until a call fails or the time is
// over. Says "ready" when all is made, then what was seen (killed_guest.h). Exit status: see Outcome; 2 also for no
// device.
#include <cuda.h>

#include <algorithm>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/killed_guest.h"

namespace {

using hawser::test::Outcome;
using hawser::test::Promised;

constexpr uint32_t kItems = 1024;
constexpr size_t kBytes = kItems * sizeof(uint32_t), kBulk = size_t{4} << 20;

#define TRY(call)                                                                          \
  do {                                                                                     \
    if (const CUresult try_result = (call); try_result != CUDA_SUCCESS) return try_result; \
  } while (false)

/// Calls when the scope ends, whatever happened in it.
template <typename Call>
class AtEnd {
 public:
  explicit AtEnd(Call call) : call_(std::move(call)) {}
  ~AtEnd() { (void)call_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const Call call_;
};

void CUDA_CB OnStream(CUstream, CUresult, void* promised) { static_cast<Promised*>(promised)->Keep(); }
void CUDA_CB OnHost(void* promised) { static_cast<Promised*>(promised)->Keep(); }

/// What one thread has. Lives until all threads have ended, because the API may write into it until then.
struct Place {
  CUcontext context = nullptr;
  CUfunction add = nullptr;
  Outcome* outcome = nullptr;
  CUstream stream = nullptr, other = nullptr;
  CUdeviceptr memory = 0;
  std::vector<uint32_t> data = std::vector<uint32_t>(kBulk / sizeof(uint32_t));
  std::vector<uint32_t> back = std::vector<uint32_t>(kBulk / sizeof(uint32_t));

  CUresult Make() {
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    return cuMemAlloc(&memory, kBytes);
  }
  void End() const {
    (void)cuMemFree(memory);
    (void)cuStreamDestroy(other);
    (void)cuStreamDestroy(stream);
  }
  CUresult Add(CUdeviceptr to, uint32_t value, CUstream on) const {
    uint32_t count = kItems;
    void* parameters[] = {&to, &count, &value};
    return cuLaunchKernel(add, kItems / 128, 1, 1, 128, 1, 1, 0, on, parameters, nullptr);
  }
  /// All of `count` numbers are `value`.
  void Expect(const uint32_t* numbers, size_t count, uint32_t value, const char* what) const {
    if (!std::all_of(numbers, numbers + count, [&](uint32_t number) { return number == value; })) outcome->Wrong(what);
  }
};

CUresult Launches(Place& at, unsigned round) {
  TRY(cuMemsetD32Async(at.memory, round, kItems, at.stream));
  for (int i = 0; i < 20; ++i) TRY(at.Add(at.memory, 1, at.stream));
  TRY(cuStreamSynchronize(at.stream));
  TRY(cuMemcpyDtoH(at.back.data(), at.memory, kBytes));
  at.Expect(at.back.data(), kItems, round + 20, "a copy after launches");
  return CUDA_SUCCESS;
}

CUresult Callbacks(Place& at, unsigned round) {
  CUevent event = nullptr;
  TRY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  const AtEnd destroy([event] { return cuEventDestroy(event); });
  TRY(cuMemsetD32Async(at.memory, round, kItems, at.stream));
  // A host function is left out once there is an error, a callback is told of it.
  Promised* function = at.outcome->Promise("a host function", false);
  if (const CUresult result = cuLaunchHostFunc(at.stream, OnHost, function); result != CUDA_SUCCESS) {
    function->Withdraw();
    return result;
  }
  TRY(cuEventRecord(event, at.stream));
  TRY(cuStreamWaitEvent(at.other, event, 0));
  TRY(at.Add(at.memory, 5, at.other));
  Promised* callback = at.outcome->Promise("a stream's callback");
  if (const CUresult result = cuStreamAddCallback(at.other, OnStream, callback, 0); result != CUDA_SUCCESS) {
    callback->Withdraw();
    return result;
  }
  TRY(cuEventRecord(event, at.other));
  TRY(cuEventSynchronize(event));
  if (function->wrong() || callback->wrong()) at.outcome->Wrong("called twice before the event");
  TRY(cuMemcpyDtoHAsync(at.back.data(), at.memory, kBytes, at.other));
  TRY(cuStreamSynchronize(at.other));
  at.Expect(at.back.data(), kItems, round + 5, "a copy behind a callback");
  return CUDA_SUCCESS;
}

CUresult Waits(Place& at, unsigned round) {
  // Each word is written once by another thread, on another stream, after this one waits for it.
  CUdeviceptr word = 0;
  TRY(cuMemAlloc(&word, sizeof(uint32_t)));
  const AtEnd free([word] { return cuMemFree(word); });
  TRY(cuMemsetD32Async(word, 0, 1, at.stream));
  TRY(cuStreamSynchronize(at.stream));  // The other stream is in no order with this one.
  TRY(cuStreamWaitValue32(at.stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  TRY(cuMemsetD32Async(at.memory, round, kItems, at.stream));
  CUresult set = CUDA_SUCCESS;
  {
    const std::jthread setter([&] {
      set = cuCtxSetCurrent(at.context);
      std::this_thread::sleep_for(std::chrono::microseconds(round % 7 * 100));
      if (set == CUDA_SUCCESS) set = cuStreamWriteValue32(at.other, word, 1, CU_STREAM_WRITE_VALUE_DEFAULT);
    });
    TRY(cuStreamSynchronize(at.stream));
  }
  TRY(set);
  TRY(cuMemcpyDtoH(at.back.data(), at.memory, kBytes));
  at.Expect(at.back.data(), kItems, round, "a copy behind a wait for a value");
  return CUDA_SUCCESS;
}

CUresult Objects(Place& at, unsigned round) {
  CUmodule module = nullptr;
  const std::string text = std::string(hawser::Kernels()) + "\n// " + std::to_string(round % 8) + "\n";
  TRY(cuModuleLoadData(&module, text.c_str()));
  const AtEnd unload([module] { return cuModuleUnload(module); });
  CUfunction add = nullptr;
  TRY(cuModuleGetFunction(&add, module, "add"));
  CUdeviceptr memory = 0;
  TRY(cuMemAllocAsync(&memory, kBytes, at.stream));
  TRY(cuMemsetD32Async(memory, round, kItems, at.stream));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  TRY(cuStreamBeginCapture(at.other, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUresult captured = CUDA_SUCCESS;
  for (int i = 0; i < 3 && captured == CUDA_SUCCESS; ++i) captured = at.Add(memory, 2, at.other);
  const CUresult ended = cuStreamEndCapture(at.other, &graph);
  const AtEnd destroy_graph([&] { return graph != nullptr ? cuGraphDestroy(graph) : CUDA_SUCCESS; });
  TRY(captured);
  TRY(ended);
  TRY(cuGraphInstantiate(&executable, graph, 0));
  const AtEnd destroy_executable([executable] { return cuGraphExecDestroy(executable); });
  TRY(cuGraphLaunch(executable, at.stream));
  TRY(cuMemcpyDtoHAsync(at.back.data(), memory, kBytes, at.stream));
  TRY(cuMemFreeAsync(memory, at.stream));
  TRY(cuStreamSynchronize(at.stream));
  at.Expect(at.back.data(), kItems, round + 6, "a copy after a graph");
  return CUDA_SUCCESS;
}

CUresult Bulk(Place& at, unsigned round) {
  CUdeviceptr from = 0, to = 0;
  TRY(cuMemAlloc(&from, kBulk));
  const AtEnd free_from([from] { return cuMemFree(from); });
  TRY(cuMemAlloc(&to, kBulk));
  const AtEnd free_to([to] { return cuMemFree(to); });
  void* pinned = nullptr;
  TRY(cuMemAllocHost(&pinned, kBulk));
  const AtEnd free_pinned([pinned] { return cuMemFreeHost(pinned); });
  std::fill(at.data.begin(), at.data.end(), round);
  TRY(cuMemcpyHtoDAsync(from, at.data.data(), kBulk, at.stream));
  TRY(cuMemcpyDtoDAsync(to, from, kBulk, at.stream));
  TRY(cuMemcpyDtoHAsync(pinned, to, kBulk, at.stream));
  TRY(cuMemcpyHtoDAsync(from, pinned, kBulk, at.stream));
  TRY(cuMemcpyDtoHAsync(at.back.data(), from, kBulk, at.stream));
  TRY(cuStreamSynchronize(at.stream));
  at.Expect(static_cast<const uint32_t*>(pinned), kBulk / sizeof(uint32_t), round, "a large copy to pinned memory");
  at.Expect(at.back.data(), at.back.size(), round, "a large copy");
  return CUDA_SUCCESS;
}

CUresult Managed(Place& at, unsigned round) {
  CUdeviceptr memory = 0;
  TRY(cuMemAllocManaged(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
  const AtEnd free([memory] { return cuMemFree(memory); });
  // Only this stream's: the host may use it while the others' kernels run.
  TRY(cuStreamAttachMemAsync(at.stream, memory, 0, CU_MEM_ATTACH_SINGLE));
  TRY(cuStreamSynchronize(at.stream));
  auto* const numbers = reinterpret_cast<uint32_t*>(memory);
  std::fill_n(numbers, kItems, round);
  for (uint32_t i = 1; i <= 3; ++i) {
    TRY(at.Add(memory, 1, at.stream));
    TRY(cuStreamSynchronize(at.stream));
    at.Expect(numbers, kItems, round + i, "managed memory");
  }
  return CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc == 2 ? atoi(argv[1]) : 1);
  Outcome outcome;
  using Round = CUresult (*)(Place&, unsigned);
  constexpr Round kRounds[] = {Launches, Callbacks, Waits, Objects, Bulk, Managed};
  std::vector<Place> places(std::size(kRounds));
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  const CUresult made = [&] {
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuDevicePrimaryCtxRetain(&context, device));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, hawser::Kernels()));
    for (Place& place : places) {
      place.context = context, place.outcome = &outcome;
      TRY(cuModuleGetFunction(&place.add, module, "add"));
      TRY(place.Make());
    }
    return CUDA_SUCCESS;
  }();
  if (made != CUDA_SUCCESS) {
    outcome.Told(made);
    return outcome.Report();
  }
  printf("ready\n");
  fflush(stdout);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < places.size(); ++i) {
      threads.emplace_back([&, i] {
        if (const CUresult current = cuCtxSetCurrent(context); current != CUDA_SUCCESS) return outcome.Told(current);
        hawser::test::Repeat(&outcome, end, [&](unsigned round) { return kRounds[i](places[i], round); });
      });
    }
  }
  for (const Place& place : places) place.End();
  (void)cuModuleUnload(module);
  (void)cuDevicePrimaryCtxRelease(device);
  return outcome.Report();
}
