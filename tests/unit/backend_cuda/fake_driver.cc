// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/backend_cuda/fake_driver.h"

#include <cstring>

namespace hawser::server::cuda_backend {

namespace {

/// How far a stream is. Others that wait for it may outlive it.
class Progress {
 public:
  void Give() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++given_;
  }
  void Done() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++done_;
    }
    changed_.notify_all();
  }
  uint64_t given() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return given_;
  }
  void Await(uint64_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= number; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t given_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

struct FakeDriver::StreamObject {
  const std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  bool blocking = true;  ///< Ordered with the legacy stream.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool busy = false;
  bool stop = false;
  std::thread thread;

  StreamObject() : thread([this] { Run(); }) {}
  ~StreamObject() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    changed.notify_all();
    thread.join();
  }
  void Run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || !work.empty(); });
      if (work.empty()) return;
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      next();
      progress->Done();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void Enqueue(std::function<void()> function) {
    progress->Give();
    {
      const std::lock_guard<std::mutex> lock(mutex);
      work.push_back(std::move(function));
    }
    changed.notify_all();
  }
  bool idle() {
    const std::lock_guard<std::mutex> lock(mutex);
    return !busy && work.empty();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return !busy && work.empty(); });
  }
};

struct FakeDriver::EventObject {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;
  uint64_t done = 0;
};

namespace {

FakeDriver* fake = nullptr;
FakeDriver::StreamObject* legacy = nullptr;

enum Kernel : uintptr_t { kAdd = 1, kFault = 2, kBlock = 3 };

CUfunction KernelNamed(const std::string& name) {
  if (name == "add") return reinterpret_cast<CUfunction>(kAdd);
  if (name == "fault") return reinterpret_cast<CUfunction>(kFault);
  if (name == "block") return reinterpret_cast<CUfunction>(kBlock);
  return nullptr;
}

}  // namespace

/// The driver's entry points.
struct FakeCalls {
  using Stream = FakeDriver::StreamObject;
  using Event = FakeDriver::EventObject;

  static Stream* Of(CUstream stream) { return stream == nullptr ? legacy : reinterpret_cast<Stream*>(stream); }
  static Event* Of(CUevent event) { return reinterpret_cast<Event*>(event); }
  static CUresult Sticky() { return static_cast<CUresult>(fake->error_.load()); }
  static CUresult Enqueue(CUstream stream, std::function<void()> work) {
    if (Sticky() != CUDA_SUCCESS) return Sticky();
    Of(stream)->Enqueue([work = std::move(work), before = Before(stream)] {
      for (const auto& [other, number] : before) other->Await(number);
      if (Sticky() == CUDA_SUCCESS) work();
    });
    return CUDA_SUCCESS;
  }
  /// The legacy stream waits for what blocking streams have, and they for what it has.
  static std::vector<std::pair<std::shared_ptr<Progress>, uint64_t>> Before(CUstream stream) {
    std::vector<std::pair<std::shared_ptr<Progress>, uint64_t>> before;
    if (stream != nullptr) {
      if (Of(stream)->blocking) before.emplace_back(legacy->progress, legacy->progress->given());
      return before;
    }
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    for (const auto& [other, owned] : fake->streams_) {
      if (other->blocking) before.emplace_back(other->progress, other->progress->given());
    }
    return before;
  }

  static CUresult Init(unsigned) { return CUDA_SUCCESS; }
  static CUresult DriverVersion(int* version) {
    *version = 13000;
    return CUDA_SUCCESS;
  }
  static CUresult DeviceGet(CUdevice* device, int index) {
    *device = index;
    return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  }
  static CUresult DeviceCount(int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  }
  static CUresult DeviceName(char* name, int size, CUdevice) {
    std::strncpy(name, "Fake", static_cast<size_t>(size));
    return CUDA_SUCCESS;
  }
  static CUresult DeviceUuid(CUuuid* uuid, CUdevice) {
    std::memset(uuid->bytes, 7, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
  }
  static CUresult TotalMemory(size_t* bytes, CUdevice) {
    *bytes = fake->memory_;
    return CUDA_SUCCESS;
  }
  static CUresult DeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return attribute < 20 || attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ||
                   attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult Retain(CUcontext* context, CUdevice) {
    *context = reinterpret_cast<CUcontext>(uintptr_t{0x77});
    return CUDA_SUCCESS;
  }
  static CUresult Release(CUdevice) { return CUDA_SUCCESS; }
  static CUresult Reset(CUdevice) {
    fake->error_ = 0;
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    fake->blocks_.clear();
    fake->sizes_.clear();
    fake->allocated_ = 0;
    return CUDA_SUCCESS;
  }
  static CUresult SetFlags(CUdevice, unsigned) { return CUDA_SUCCESS; }
  static CUresult SetCurrent(CUcontext) { return CUDA_SUCCESS; }
  static CUresult DestroyContext(CUcontext) { return CUDA_SUCCESS; }
  static CUresult SynchronizeContext() {
    legacy->Wait();
    for (const auto& [stream, owned] : fake->streams_) stream->Wait();
    for (const auto& owned : fake->gone_streams_) owned->Wait();
    return Sticky();
  }

  static CUresult Alloc(CUdeviceptr* address, size_t size) {
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > fake->memory_ - fake->allocated_) return CUDA_ERROR_OUT_OF_MEMORY;
    auto block = std::make_unique<std::byte[]>(size);
    *address = reinterpret_cast<CUdeviceptr>(block.get());
    fake->blocks_[*address] = std::move(block);
    fake->sizes_[*address] = size;
    fake->allocated_ += size;
    return CUDA_SUCCESS;
  }
  static CUresult Free(CUdeviceptr address) {
    (void)SynchronizeContext();
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    if (fake->blocks_.erase(address) == 0) return CUDA_ERROR_INVALID_VALUE;
    fake->allocated_ -= fake->sizes_[address];
    fake->sizes_.erase(address);
    return CUDA_SUCCESS;
  }
  static CUresult Info(size_t* free, size_t* total) {
    *total = fake->memory_;
    *free = fake->memory_ - fake->allocated_;
    return CUDA_SUCCESS;
  }
  static CUresult Register(void*, size_t, unsigned) { return CUDA_SUCCESS; }
  static CUresult Unregister(void*) { return CUDA_SUCCESS; }
  static CUresult DevicePointer(CUdeviceptr* address, void* host, unsigned) {
    *address = reinterpret_cast<CUdeviceptr>(host);
    return CUDA_SUCCESS;
  }
  static CUresult ToDevice(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return Enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, size); });
  }
  static CUresult ToHost(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return Enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), size); });
  }
  static CUresult Within(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return Enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size); });
  }
  static CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream) {
    const CUDA_MEMCPY3D c = *copy;
    return Enqueue(stream, [c] {
      const auto* from = c.srcMemoryType == CU_MEMORYTYPE_HOST ? static_cast<const std::byte*>(c.srcHost)
                                                               : reinterpret_cast<const std::byte*>(c.srcDevice);
      auto* to = c.dstMemoryType == CU_MEMORYTYPE_HOST ? static_cast<std::byte*>(c.dstHost)
                                                       : reinterpret_cast<std::byte*>(c.dstDevice);
      for (size_t z = 0; z < c.Depth; ++z) {
        for (size_t y = 0; y < c.Height; ++y) {
          std::memcpy(to + (z * c.dstHeight + y) * c.dstPitch, from + (z * c.srcHeight + y) * c.srcPitch,
                      c.WidthInBytes);
        }
      }
    });
  }
  template <typename T>
  static CUresult Set(CUdeviceptr to, T value, size_t count, CUstream stream) {
    return Enqueue(stream, [=] {
      for (size_t i = 0; i < count; ++i) std::memcpy(reinterpret_cast<T*>(to) + i, &value, sizeof(value));
    });
  }

  static CUresult Load(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
    std::string text(static_cast<const char*>(image), 4);
    if (text.substr(1, 3) != "\xED\x55\xBA") text = static_cast<const char*>(image);
    if (text == "bad") return CUDA_ERROR_INVALID_PTX;
    std::unique_lock<std::mutex> lock(fake->mutex_);
    if (text == "slow") fake->changed_.wait(lock, [] { return fake->unblocked_; });
    fake->images_.push_back(text);
    *module = reinterpret_cast<CUmodule>(uintptr_t{0x88});
    return CUDA_SUCCESS;
  }
  static CUresult Unload(CUmodule) { return CUDA_SUCCESS; }
  static CUresult GetFunction(CUfunction* function, CUmodule, const char* name) {
    *function = KernelNamed(name);
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  }
  static CUresult GetGlobal(CUdeviceptr* address, size_t* size, CUmodule, const char* name) {
    if (std::string(name) != "counter") return CUDA_ERROR_NOT_FOUND;
    *address = reinterpret_cast<CUdeviceptr>(fake->counter_.data());
    *size = fake->counter_.size();
    return CUDA_SUCCESS;
  }
  static CUresult FunctionCount(unsigned* count, CUmodule) {
    *count = 3;
    return CUDA_SUCCESS;
  }
  static CUresult Functions(CUfunction* functions, unsigned count, CUmodule) {
    const CUfunction all[] = {KernelNamed("add"), KernelNamed("fault"), KernelNamed("block")};
    for (unsigned i = 0; i < count && i < 3; ++i) functions[i] = all[i];
    return CUDA_SUCCESS;
  }
  static CUresult FunctionName(const char** name, CUfunction function) {
    constexpr const char* kNames[] = {"", "add", "fault", "block"};
    *name = kNames[reinterpret_cast<uintptr_t>(function)];
    return CUDA_SUCCESS;
  }
  static CUresult ParameterInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
    if (reinterpret_cast<uintptr_t>(function) != kAdd || index > 2) return CUDA_ERROR_INVALID_VALUE;
    constexpr size_t kOffsets[] = {0, 8, 12}, kSizes[] = {8, 4, 4};
    *offset = kOffsets[index];
    *size = kSizes[index];
    return CUDA_SUCCESS;
  }
  static CUresult FunctionAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_SUCCESS;
  }
  static CUresult SetFunctionAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }

  static CUresult Launch(CUfunction function, unsigned grid_x, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream stream, void**, void** extra) {
    if (grid_x == 0) return CUDA_ERROR_INVALID_VALUE;
    ++fake->launches;
    struct {
      uint64_t pointer = 0;
      uint32_t count = 0, value = 0;
    } p;
    static_assert(sizeof(p) == 16);
    if (extra != nullptr) std::memcpy(&p, extra[1], std::min(sizeof(p), *static_cast<size_t*>(extra[3])));
    switch (reinterpret_cast<uintptr_t>(function)) {
      case kAdd:
        return Enqueue(stream, [p] {
          for (uint32_t i = 0; i < p.count; ++i) reinterpret_cast<uint32_t*>(p.pointer)[i] += p.value;
        });
      case kFault:
        return Enqueue(stream, [] { fake->error_ = CUDA_ERROR_ILLEGAL_ADDRESS; });
      case kBlock:
        return Enqueue(stream, [] {
          std::unique_lock<std::mutex> lock(fake->mutex_);
          fake->changed_.wait(lock, [] { return fake->unblocked_; });
        });
      default:
        return CUDA_ERROR_INVALID_HANDLE;
    }
  }

  static CUresult CreateStream(CUstream* stream, unsigned flags, int) {
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    auto owned = std::make_unique<Stream>();
    owned->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
    *stream = reinterpret_cast<CUstream>(owned.get());
    fake->streams_[owned.get()] = std::move(owned);
    return CUDA_SUCCESS;
  }
  static CUresult DestroyStream(CUstream stream) {
    // What is in it goes on.
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    const auto at = fake->streams_.find(Of(stream));
    if (at == fake->streams_.end()) return CUDA_ERROR_INVALID_HANDLE;
    fake->gone_streams_.push_back(std::move(at->second));
    fake->streams_.erase(at);
    return CUDA_SUCCESS;
  }
  static CUresult QueryStream(CUstream stream) {
    if (Sticky() != CUDA_SUCCESS) return Sticky();
    return Of(stream)->idle() ? Sticky() : CUDA_ERROR_NOT_READY;
  }
  static CUresult SynchronizeStream(CUstream stream) {
    Of(stream)->Wait();
    return Sticky();
  }
  static CUresult StreamWaits(CUstream stream, CUevent event, unsigned) {
    Event* waited = Of(event);
    uint64_t target = 0;
    {
      const std::lock_guard<std::mutex> lock(waited->mutex);
      target = waited->recorded;
    }
    return Enqueue(stream, [waited, target] {
      std::unique_lock<std::mutex> lock(waited->mutex);
      waited->changed.wait(lock, [&] { return waited->done >= target; });
    });
  }
  static CUresult CreateEvent(CUevent* event, unsigned) {
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    *event = reinterpret_cast<CUevent>(*fake->events_.insert(new Event).first);
    return CUDA_SUCCESS;
  }
  static CUresult DestroyEvent(CUevent event) {
    const std::lock_guard<std::mutex> lock(fake->mutex_);
    if (fake->events_.erase(Of(event)) == 0) return CUDA_ERROR_INVALID_HANDLE;
    // Streams may still record it or wait for it.
    fake->dead_events_.emplace_back(Of(event));
    return CUDA_SUCCESS;
  }
  static CUresult Record(CUevent event, CUstream stream) {
    if (Sticky() != CUDA_SUCCESS) return Sticky();
    Event* recorded = Of(event);
    uint64_t number = 0;
    {
      const std::lock_guard<std::mutex> lock(recorded->mutex);
      number = ++recorded->recorded;
    }
    // Not through Enqueue(): an event completes also when the context has broken.
    Of(stream)->Enqueue([recorded, number, before = Before(stream)] {
      for (const auto& [other, given] : before) other->Await(given);
      const std::lock_guard<std::mutex> lock(recorded->mutex);
      recorded->done = number;
      recorded->changed.notify_all();
    });
    return CUDA_SUCCESS;
  }
  static CUresult QueryEvent(CUevent event) {
    const std::lock_guard<std::mutex> lock(Of(event)->mutex);
    if (Of(event)->done < Of(event)->recorded) return CUDA_ERROR_NOT_READY;
    return Sticky();
  }
  static CUresult SynchronizeEvent(CUevent event) {
    Event* waited = Of(event);
    std::unique_lock<std::mutex> lock(waited->mutex);
    waited->changed.wait(lock, [&] { return waited->done >= waited->recorded; });
    return Sticky();
  }
  static CUresult HostFunction(CUstream stream, CUhostFn function, void* data) {
    return Enqueue(stream, [=] { function(data); });
  }
  static CUresult AddCallback(CUstream stream, CUstreamCallback function, void* data, unsigned) {
    // Not through Enqueue(): it is called also when the context has broken.
    if (Sticky() != CUDA_SUCCESS) return Sticky();
    Of(stream)->Enqueue([=, before = Before(stream)] {
      for (const auto& [other, number] : before) other->Await(number);
      function(stream, Sticky(), data);
    });
    return CUDA_SUCCESS;
  }
  static CUresult ErrorName(CUresult result, const char** name) {
    *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_THE_FAKE";
    return CUDA_SUCCESS;
  }
};

FakeDriver::FakeDriver(uint64_t memory) : memory_(memory), counter_(64) {
  fake = this;
  legacy = new StreamObject;
}

FakeDriver::~FakeDriver() {
  Unblock();
  delete legacy;
  legacy = nullptr;
  streams_.clear();
  gone_streams_.clear();
  for (EventObject* event : events_) delete event;
  fake = nullptr;
}

void FakeDriver::Unblock() {
  const std::lock_guard<std::mutex> lock(mutex_);
  unblocked_ = true;
  changed_.notify_all();
}

size_t FakeDriver::live_objects() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return streams_.size() + blocks_.size();
}

std::vector<std::string> FakeDriver::loaded_images() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return images_;
}

DriverTable FakeDriver::table() const {
  DriverTable t;
  t.cuInit = FakeCalls::Init;
  t.cuDriverGetVersion = FakeCalls::DriverVersion;
  t.cuDeviceGet = FakeCalls::DeviceGet;
  t.cuDeviceGetCount = FakeCalls::DeviceCount;
  t.cuDeviceGetName = FakeCalls::DeviceName;
  t.cuDeviceGetUuid = FakeCalls::DeviceUuid;
  t.cuDeviceTotalMem = FakeCalls::TotalMemory;
  t.cuDeviceGetAttribute = FakeCalls::DeviceAttribute;
  t.cuDevicePrimaryCtxRetain = FakeCalls::Retain;
  t.cuDevicePrimaryCtxRelease = FakeCalls::Release;
  t.cuDevicePrimaryCtxReset = FakeCalls::Reset;
  t.cuDevicePrimaryCtxSetFlags = FakeCalls::SetFlags;
  t.cuCtxSetCurrent = FakeCalls::SetCurrent;
  t.cuCtxDestroy = FakeCalls::DestroyContext;
  t.cuCtxSynchronize = FakeCalls::SynchronizeContext;
  t.cuMemAlloc = FakeCalls::Alloc;
  t.cuMemFree = FakeCalls::Free;
  t.cuMemGetInfo = FakeCalls::Info;
  t.cuMemHostRegister = FakeCalls::Register;
  t.cuMemHostUnregister = FakeCalls::Unregister;
  t.cuMemHostGetDevicePointer = FakeCalls::DevicePointer;
  t.cuMemcpyHtoDAsync = FakeCalls::ToDevice;
  t.cuMemcpyDtoHAsync = FakeCalls::ToHost;
  t.cuMemcpyDtoDAsync = FakeCalls::Within;
  t.cuMemcpy3DAsync = FakeCalls::Copy3D;
  t.cuMemsetD8Async = FakeCalls::Set<unsigned char>;
  t.cuMemsetD16Async = FakeCalls::Set<unsigned short>;  // NOLINT(google-runtime-int): CUDA's type.
  t.cuMemsetD32Async = FakeCalls::Set<unsigned>;
  t.cuModuleLoadDataEx = FakeCalls::Load;
  t.cuModuleUnload = FakeCalls::Unload;
  t.cuModuleGetFunction = FakeCalls::GetFunction;
  t.cuModuleGetGlobal = FakeCalls::GetGlobal;
  t.cuModuleGetFunctionCount = FakeCalls::FunctionCount;
  t.cuModuleEnumerateFunctions = FakeCalls::Functions;
  t.cuFuncGetName = FakeCalls::FunctionName;
  t.cuFuncGetParamInfo = FakeCalls::ParameterInfo;
  t.cuFuncGetAttribute = FakeCalls::FunctionAttribute;
  t.cuFuncSetAttribute = FakeCalls::SetFunctionAttribute;
  t.cuLaunchKernel = FakeCalls::Launch;
  t.cuStreamCreateWithPriority = FakeCalls::CreateStream;
  t.cuStreamDestroy = FakeCalls::DestroyStream;
  t.cuStreamQuery = FakeCalls::QueryStream;
  t.cuStreamSynchronize = FakeCalls::SynchronizeStream;
  t.cuStreamWaitEvent = FakeCalls::StreamWaits;
  t.cuEventCreate = FakeCalls::CreateEvent;
  t.cuEventDestroy = FakeCalls::DestroyEvent;
  t.cuEventRecord = FakeCalls::Record;
  t.cuEventQuery = FakeCalls::QueryEvent;
  t.cuEventSynchronize = FakeCalls::SynchronizeEvent;
  t.cuLaunchHostFunc = FakeCalls::HostFunction;
  t.cuStreamAddCallback = FakeCalls::AddCallback;
  t.cuGetErrorName = FakeCalls::ErrorName;
  return t;
}

ChosenDriver FakeDriver::Chosen(bool soft) const {
  ChosenDriver chosen;
  chosen.driver.table = table();
  chosen.driver.path = "/fake/libcuda.so.1";
  chosen.driver.version = 13000;
  chosen.devices = 1;
  chosen.soft = soft;
  chosen.summary = "Fake, driver 13.0";
  return chosen;
}

}  // namespace hawser::server::cuda_backend
