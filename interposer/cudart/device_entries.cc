// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Device Management" and "Peer Device Memory Access".
#include <climits>
#include <cstring>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/versioned.h"

namespace hawser::cudart {

cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (properties == nullptr) return Record(cudaErrorInvalidValue);
  return WithDevice(ordinal, [&](Device& device) { return device.Properties(properties); });
}

}  // namespace hawser::cudart

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

// At most one way of waiting, and no flags that do not exist.
bool AreDeviceFlags(unsigned flags) {
  const unsigned schedule = flags & cudaDeviceScheduleMask;
  return (flags & ~static_cast<unsigned>(cudaDeviceMask)) == 0 && (schedule & (schedule - 1)) == 0;
}

int CurrentOrdinal() { return Runtime::Get().CurrentDevice(CurrentThread()); }

bool IsCacheConfig(cudaFuncCache config) {
  return config >= cudaFuncCachePreferNone && config <= cudaFuncCachePreferEqual;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Record(cudaErrorInvalidValue);
  *count = 0;
  Runtime& runtime = Runtime::Get();
  const cudaError_t error = runtime.Start();
  if (error == cudaSuccess) *count = runtime.device_count();
  return Record(error);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  if (value == nullptr) return Record(cudaErrorInvalidValue);
  // Both interfaces number the attributes alike.
  static_assert(int{cudaDevAttrMaxThreadsPerBlock} == int{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK});
  static_assert(int{cudaDevAttrMaxBlocksPerMultiprocessor} == int{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR});
  static_assert(int{cudaDevAttrMemoryPoolsSupported} == int{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED});
  static_assert(int{cudaDevAttrHostNumaId} == int{CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID});
  return WithDevice(
      ordinal, [&](Device& device) { return device.Attribute(static_cast<CUdevice_attribute>(attribute), value); });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
  return WithDevice(source, [&](Device& from) {
    Device* to = Runtime::Get().device(destination);
    if (to == nullptr) return cudaErrorInvalidDevice;
    if (value == nullptr) return cudaErrorInvalidValue;
    return FromDriver(Runtime::Get().driver().cuDeviceGetP2PAttribute(
        value, static_cast<CUdevice_P2PAttribute>(attribute), from.handle(), to->handle()));
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    if (id == nullptr || size <= 0) return cudaErrorInvalidValue;
    return FromDriver(Runtime::Get().driver().cuDeviceGetPCIBusId(id, size, device.handle()));
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* ordinal, const char* id) {
  return WithDriver([&](const Driver& driver) {
    if (ordinal == nullptr || id == nullptr) return cudaErrorInvalidValue;
    CUdevice handle = 0;
    if (const CUresult result = driver.cuDeviceGetByPCIBusId(&handle, id); result != CUDA_SUCCESS) {
      return FromDriver(result);
    }
    Runtime& runtime = Runtime::Get();
    for (int candidate = 0; candidate < runtime.device_count(); ++candidate) {
      if (runtime.device(candidate)->handle() != handle) continue;
      *ordinal = candidate;
      return cudaSuccess;
    }
    return cudaErrorInvalidDevice;
  });
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    if (width == nullptr || format == nullptr) return cudaErrorInvalidValue;
    const int bits = format->x + format->y + format->z + format->w;
    int most = 0;
    if (bits <= 0) return cudaErrorInvalidChannelDescriptor;
    // The attribute counts elements of any format; linear textures are limited in elements.
    const cudaError_t error = device.Attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, &most);
    *width = static_cast<size_t>(most);
    return error;
  });
}

// The device nearest to what is asked for: as many as possible of the wished properties, the first among equals.
cudaError_t cudaChooseDevice(int* ordinal, const cudaDeviceProp* wish) {
  if (ordinal == nullptr || wish == nullptr) return Record(cudaErrorInvalidValue);
  return WithDriver([&](const Driver&) {
    Runtime& runtime = Runtime::Get();
    int best_score = -1;
    for (int candidate = 0; candidate < runtime.device_count(); ++candidate) {
      cudaDeviceProp have;
      const cudaError_t error = runtime.device(candidate)->Properties(&have);
      if (error != cudaSuccess) return error;
      int score = 0;
      score += wish->name[0] == '\0' || std::strncmp(wish->name, have.name, sizeof(have.name)) == 0;
      score += have.totalGlobalMem >= wish->totalGlobalMem;
      score += have.sharedMemPerBlock >= wish->sharedMemPerBlock;
      score += have.maxThreadsPerBlock >= wish->maxThreadsPerBlock;
      score += have.multiProcessorCount >= wish->multiProcessorCount;
      score += have.major > wish->major || (have.major == wish->major && have.minor >= wish->minor);
      if (score > best_score) {
        best_score = score;
        *ordinal = candidate;
      }
    }
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int ordinal) { return Record(Runtime::Get().SetDevice(CurrentThread(), ordinal)); }

cudaError_t cudaGetDevice(int* ordinal) {
  if (ordinal == nullptr) return Record(cudaErrorInvalidValue);
  Runtime& runtime = Runtime::Get();
  const cudaError_t error = runtime.Start();
  if (error == cudaSuccess) *ordinal = runtime.CurrentDevice(CurrentThread());
  return Record(error);
}

cudaError_t cudaInitDevice(int ordinal, unsigned device_flags, unsigned flags) {
  return WithDevice(ordinal, [&](Device& device) {
    if ((flags & ~static_cast<unsigned>(cudaInitDeviceFlagsAreValid)) != 0) return cudaErrorInvalidValue;
    if (flags != 0) {
      if (!AreDeviceFlags(device_flags)) return cudaErrorInvalidValue;
      if (const cudaError_t error = device.SetFlags(device_flags); error != cudaSuccess) return error;
    }
    CUcontext context = nullptr;
    return device.Primary(&context);
  });
}

// Only says which devices to try first; the first device is always valid here.
cudaError_t cudaSetValidDevices(int* ordinals, int count) {
  return WithDriver([&](const Driver&) {
    Runtime& runtime = Runtime::Get();
    if (count < 0 || count > runtime.device_count() || (count > 0 && ordinals == nullptr)) return cudaErrorInvalidValue;
    for (int i = 0; i < count; ++i) {
      if (runtime.device(ordinals[i]) == nullptr) return cudaErrorInvalidDevice;
    }
    if (count > 0) CurrentThread().device = ordinals[0];
    return cudaSuccess;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return WithDevice(CurrentOrdinal(), [&](Device& device) {
    return AreDeviceFlags(flags) ? device.SetFlags(flags) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return WithDevice(CurrentOrdinal(), [&](Device& device) {
    if (flags == nullptr) return cudaErrorInvalidValue;
    const cudaError_t error = device.GetFlags(flags);
    // Mapping host memory is always possible since unified addressing.
    if (error == cudaSuccess) *flags |= cudaDeviceMapHost;
    return error;
  });
}

cudaError_t cudaDeviceReset() { return Record(Runtime::Get().ResetDevice(CurrentThread())); }

cudaError_t cudaDeviceSynchronize() {
  return InContext([](const Driver& driver) { return driver.cuCtxSynchronize(); });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return InContext([&](const Driver& driver) { return driver.cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return InContext([&](const Driver& driver) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuCtxGetLimit(value, static_cast<CUlimit>(limit));
  });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return InContext([&](const Driver& driver) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto answer = CU_FUNC_CACHE_PREFER_NONE;
    const CUresult result = driver.cuCtxGetCacheConfig(&answer);
    *config = static_cast<cudaFuncCache>(answer);
    return result;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return InContext([&](const Driver& driver) {
    return IsCacheConfig(config) ? driver.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config))
                                 : CUDA_ERROR_INVALID_VALUE;
  });
}

// The banks of shared memory have had one fixed width since compute capability 5.0.
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return InContext([&](const Driver&) {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return InContext([&](const Driver&) {
    const bool known = config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte;
    return known ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return InContext([&](const Driver& driver) { return driver.cuCtxGetStreamPriorityRange(least, greatest); });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return InContext([](const Driver& driver) { return driver.cuCtxResetPersistingL2Cache(); });
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
  return InContext([&](const Driver& driver) {
    return driver.cuFlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                             static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  return WithDevice(ordinal, [&](Device& device) {
    Device* other = Runtime::Get().device(peer);
    if (other == nullptr) return cudaErrorInvalidDevice;
    if (can == nullptr) return cudaErrorInvalidValue;
    *can = 0;
    if (ordinal == peer) return cudaSuccess;
    return FromDriver(Runtime::Get().driver().cuDeviceCanAccessPeer(can, device.handle(), other->handle()));
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return InContext([&](const Driver& driver) {
    Device* other = Runtime::Get().device(peer);
    if (other == nullptr || peer == CurrentOrdinal()) return cudaErrorInvalidDevice;
    if (flags != 0) return cudaErrorInvalidValue;
    CUcontext context = nullptr;
    if (const cudaError_t error = other->Primary(&context); error != cudaSuccess) return error;
    return FromDriver(driver.cuCtxEnablePeerAccess(context, flags));
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return InContext([&](const Driver& driver) {
    Device* other = Runtime::Get().device(peer);
    if (other == nullptr || peer == CurrentOrdinal()) return cudaErrorInvalidDevice;
    if (other->held() == nullptr) return cudaErrorPeerAccessNotEnabled;
    return FromDriver(driver.cuCtxDisablePeerAccess(other->held()));
  });
}

}  // extern "C"
