// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/interposer_cudart/fake_driver.h"

#include <cstdlib>
#include <cstring>

#include "interposer/cudart/driver.h"
#include "interposer/cudart/runtime.h"

namespace hawser::cudart::testing {
namespace {

FakeDriver* g_fake = nullptr;
thread_local CUcontext g_current = nullptr;
int g_context_generation = 0;

// Contexts, libraries and kernels are small numbers; 0x1000 + 16 * generation + device.
CUcontext ContextOf(CUdevice device) {
  return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(0x1000 + 16 * g_context_generation + device));
}

CUresult Count(const char* name) {
  ++g_fake->calls[name];
  return CUDA_SUCCESS;
}

CUresult Init(unsigned) { return Count("cuInit"), g_fake->init_result; }
CUresult DriverVersion(int* version) { return *version = 13000, Count("cuDriverGetVersion"); }
CUresult DeviceCount(int* count) { return *count = g_fake->device_count, Count("cuDeviceGetCount"); }
CUresult DeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, Count("cuDeviceGet"); }
CUresult DeviceName(char* name, int size, CUdevice device) {
  std::strncpy(name, device == 0 ? "Fake 0" : "Fake 1", static_cast<size_t>(size));
  return Count("cuDeviceGetName");
}
CUresult DeviceUuid(CUuuid* uuid, CUdevice) { return std::memset(uuid, 7, sizeof(*uuid)), Count("cuDeviceGetUuid"); }
CUresult DeviceMemory(size_t* bytes, CUdevice) { return *bytes = 1 << 30, Count("cuDeviceTotalMem"); }
CUresult DeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  Count("cuDeviceGetAttribute");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return *value = 1024, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return *value = 64, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return *value = INT32_MAX, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return *value = 65535, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return *value = 1234567, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return *value = 9, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
      return CUDA_ERROR_INVALID_VALUE;  // A driver that does not know it.
    default:
      return *value = 1, CUDA_SUCCESS;
  }
}
CUresult Retain(CUcontext* context, CUdevice device) {
  return *context = ContextOf(device), Count("cuDevicePrimaryCtxRetain");
}
CUresult Release(CUdevice) { return Count("cuDevicePrimaryCtxRelease"); }
CUresult Reset(CUdevice) {
  ++g_context_generation;
  return Count("cuDevicePrimaryCtxReset");
}
CUresult GetCurrent(CUcontext* context) { return *context = g_current, CUDA_SUCCESS; }
CUresult SetCurrent(CUcontext context) { return g_current = context, Count("cuCtxSetCurrent"); }
CUresult ContextDevice(CUdevice* device) {
  return *device = static_cast<CUdevice>(reinterpret_cast<uintptr_t>(g_current) % 16), CUDA_SUCCESS;
}
CUresult Synchronize() {
  Count("cuCtxSynchronize");
  const CUresult result = g_fake->next_sync;
  return result;
}
CUresult StreamSynchronize(CUstream) { return Count("cuStreamSynchronize"); }
CUresult StreamQuery(CUstream) { return Count("cuStreamQuery"), CUDA_ERROR_NOT_READY; }
CUresult Alloc(CUdeviceptr* address, size_t size) {
  if (size > (1 << 30)) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(std::malloc(size));
  return Count("cuMemAlloc");
}
CUresult AllocAsync(CUdeviceptr* address, size_t size, CUstream) { return Alloc(address, size); }
CUresult FreeAsync(CUdeviceptr address, CUstream) {
  return std::free(reinterpret_cast<void*>(address)), Count("cuMemFreeAsync");
}
CUresult Free(CUdeviceptr address) { return std::free(reinterpret_cast<void*>(address)), Count("cuMemFree"); }
CUresult HtoD(CUdeviceptr to, const void* from, size_t size) {
  return std::memcpy(reinterpret_cast<void*>(to), from, size), Count("cuMemcpyHtoD");
}
CUresult DtoH(void* to, CUdeviceptr from, size_t size) {
  return std::memcpy(to, reinterpret_cast<void*>(from), size), Count("cuMemcpyDtoH");
}
CUresult HtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  g_fake->async_streams.push_back(stream);
  return std::memcpy(reinterpret_cast<void*>(to), from, size), Count("cuMemcpyHtoDAsync");
}
CUresult Any(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size), Count("cuMemcpy");
}
CUresult LoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                  unsigned) {
  Count("cuLibraryLoadData");
  g_fake->loaded.push_back(code);
  *library = reinterpret_cast<CUlibrary>(uintptr_t{0x2000});
  return g_fake->load_result;
}
CUresult Unload(CUlibrary) { return Count("cuLibraryUnload"); }
CUresult GetKernel(CUkernel* kernel, CUlibrary, const char* name) {
  Count("cuLibraryGetKernel");
  for (size_t i = 0; i < g_fake->kernels.size(); ++i) {
    if (g_fake->kernels[i] == name) return *kernel = reinterpret_cast<CUkernel>(0x3000 + i), CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult Place(std::map<std::string, std::vector<char>>& in, CUdeviceptr* address, size_t* size, const char* name) {
  const auto found = in.find(name);
  if (found == in.end()) return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(found->second.data());
  *size = found->second.size();
  return CUDA_SUCCESS;
}
CUresult GetGlobal(CUdeviceptr* address, size_t* size, CUlibrary, const char* name) {
  return Count("cuLibraryGetGlobal"), Place(g_fake->globals, address, size, name);
}
CUresult PointerAttribute(void* data, CUpointer_attribute, CUdeviceptr) {
  const unsigned managed = g_fake->managed_reachable ? 1 : 0;
  return std::memcpy(data, &managed, sizeof(managed)), CUDA_SUCCESS;
}
CUresult GetManaged(CUdeviceptr* address, size_t* size, CUlibrary, const char* name) {
  return Count("cuLibraryGetManaged"), Place(g_fake->managed, address, size, name);
}
CUresult LaunchKernel(CUfunction function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                      unsigned shared_bytes, CUstream stream, void** arguments, void**) {
  FakeLaunch launch;
  launch.kernel = g_fake->kernels.at(reinterpret_cast<uintptr_t>(function) - 0x3000);
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = shared_bytes;
  launch.stream = stream;
  if (arguments != nullptr) launch.first_argument = *static_cast<int*>(arguments[0]);
  g_fake->launches.push_back(launch);
  return CUDA_SUCCESS;
}
CUresult ArrayDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray) {
  *descriptor = {};
  descriptor->Width = 64;
  descriptor->Height = 32;
  descriptor->Format = CU_AD_FORMAT_FLOAT;
  descriptor->NumChannels = 4;
  return CUDA_SUCCESS;
}
CUresult ProcAddress(const char* symbol, void** function, int, cuuint64_t flags,
                     CUdriverProcAddressQueryResult* status) {
  *status = CU_GET_PROC_ADDRESS_SUCCESS;
  *function = reinterpret_cast<void*>(0x4000 + flags);
  if (std::strcmp(symbol, "cuInit") == 0) return CUDA_SUCCESS;
  *function = nullptr;
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_ERROR_NOT_FOUND;
}

template <typename Function>
void* Plain(Function function) {
  return reinterpret_cast<void*>(function);
}

void* Lookup(const char* name, const char*, int) {
  static const std::map<std::string, void*> functions = {
      {"cuInit", Plain(&Init)},
      {"cuDriverGetVersion", Plain(&DriverVersion)},
      {"cuDeviceGetCount", Plain(&DeviceCount)},
      {"cuDeviceGet", Plain(&DeviceGet)},
      {"cuDeviceGetName", Plain(&DeviceName)},
      {"cuDeviceGetUuid", Plain(&DeviceUuid)},
      {"cuDeviceTotalMem", Plain(&DeviceMemory)},
      {"cuDeviceGetAttribute", Plain(&DeviceAttribute)},
      {"cuDevicePrimaryCtxRetain", Plain(&Retain)},
      {"cuDevicePrimaryCtxRelease", Plain(&Release)},
      {"cuDevicePrimaryCtxReset", Plain(&Reset)},
      {"cuCtxGetCurrent", Plain(&GetCurrent)},
      {"cuCtxSetCurrent", Plain(&SetCurrent)},
      {"cuCtxGetDevice", Plain(&ContextDevice)},
      {"cuCtxSynchronize", Plain(&Synchronize)},
      {"cuStreamSynchronize", Plain(&StreamSynchronize)},
      {"cuStreamQuery", Plain(&StreamQuery)},
      {"cuMemAlloc", Plain(&Alloc)},
      {"cuMemAllocAsync", Plain(&AllocAsync)},
      {"cuMemFreeAsync", Plain(&FreeAsync)},
      {"cuMemFree", Plain(&Free)},
      {"cuMemcpyHtoD", Plain(&HtoD)},
      {"cuMemcpyDtoH", Plain(&DtoH)},
      {"cuMemcpyHtoDAsync", Plain(&HtoDAsync)},
      {"cuMemcpy", Plain(&Any)},
      {"cuLibraryLoadData", Plain(&LoadData)},
      {"cuLibraryUnload", Plain(&Unload)},
      {"cuLibraryGetKernel", Plain(&GetKernel)},
      {"cuLibraryGetGlobal", Plain(&GetGlobal)},
      {"cuLibraryGetManaged", Plain(&GetManaged)},
      {"cuPointerGetAttribute", Plain(&PointerAttribute)},
      {"cuLaunchKernel", Plain(&LaunchKernel)},
      {"cuArray3DGetDescriptor", Plain(&ArrayDescriptor)},
      {"cuGetProcAddress", Plain(&ProcAddress)},
  };
  const auto found = functions.find(name);
  return found != functions.end() ? found->second : nullptr;
}

}  // namespace

FakeDriver& InstallFakeDriver() {
  delete g_fake;
  g_fake = new FakeDriver;
  g_current = nullptr;
  SetDriverLookupForTest(&Lookup);
  Runtime::ReplaceForTest();
  return *g_fake;
}

}  // namespace hawser::cudart::testing
