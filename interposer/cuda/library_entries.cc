// SPDX-License-Identifier: Apache-2.0
// cuLibrary* and cuKernel*: code that belongs to no context.
#include "interposer/cuda/entry.h"
#include "interposer/cuda/file_bytes.h"
#include "interposer/cuda/function_attributes.h"
#include "interposer/cuda/module.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult LoadLibrary(CUlibrary* result, const ImageOffer& offer, JitOptions& options) {
  guest::Session* session = Client::Get().session();
  auto* library = new CUlib_st(Kind::kLibrary, session->NewId(static_cast<uint8_t>(cuda::Handle::kModule)));
  Registry::Get().Add(library);
  if (const CUresult error = LoadImages(library, offer, options); error != CUDA_SUCCESS) {
    ForgetModule(library);
    return error;
  }
  *result = library;
  return CUDA_SUCCESS;
}

/// Library options change nothing that can be seen from here; unknown ones are refused.
CUresult CheckOptions(unsigned count, const CUlibraryOption* options, void* const* values) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] >= CU_LIBRARY_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    if (options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult CheckKernel(CUkernel kernel, FunctionBase** function) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckFunction(kernel, function);
}

CUresult Global(CUlibrary library, const char* name, bool managed, CUdeviceptr* address, size_t* size) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (name == nullptr || (address == nullptr && size == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(library, Kind::kLibrary); error != CUDA_SUCCESS) return error;
  GlobalFacts global;
  if (const CUresult error = FindGlobal(library, context, name, &global); error != CUDA_SUCCESS) return error;
  if (managed && !global.managed) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = global.address;
  if (size != nullptr) *size = global.size;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options, void** jit_values,
                                   unsigned int jit_count, CUlibraryOption* options, void** values,
                                   unsigned int count) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckOptions(count, options, values); error != CUDA_SUCCESS) return error;
  JitOptions jit;
  if (const CUresult error = jit.Read(jit_count, jit_options, jit_values); error != CUDA_SUCCESS) return error;
  ImageOffer offer;
  if (const CUresult error = offer.AddImage(code); error != CUDA_SUCCESS) return error;
  return LoadLibrary(library, offer, jit);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                                       void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                                       void** values, unsigned int count) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (library == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckOptions(count, options, values); error != CUDA_SUCCESS) return error;
  JitOptions jit;
  if (const CUresult error = jit.Read(jit_count, jit_options, jit_values); error != CUDA_SUCCESS) return error;
  std::vector<std::byte> bytes;
  if (const CUresult error = ReadFile(path, &bytes); error != CUDA_SUCCESS) return error;
  ImageOffer offer;
  if (const CUresult error = offer.AddBytes(bytes); error != CUDA_SUCCESS) return error;
  return LoadLibrary(library, offer, jit);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (library == nullptr || library->kind != Kind::kLibrary) return CUDA_ERROR_INVALID_HANDLE;
  EndParts(library);
  cuda::Release message;
  message.object = library->id;
  const int32_t error = Client::Get().session()->Send(message);
  ForgetModule(library);
  return FromWire(error);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(library, Kind::kLibrary); error != CUDA_SUCCESS) return error;
  FunctionBase* function = nullptr;
  const CUresult error = FindKernel(library, name, &function);
  if (error == CUDA_SUCCESS) *kernel = static_cast<CUkern_st*>(function);
  return error;
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(library, Kind::kLibrary); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(library->mutex);
  if (!library->all_kernels) return CUDA_ERROR_NOT_SUPPORTED;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary library) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (kernels == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(library, Kind::kLibrary); error != CUDA_SUCCESS) return error;
  std::vector<std::string> names;
  {
    std::lock_guard lock(library->mutex);
    for (const auto& [name, facts] : library->kernels) names.push_back(name);
  }
  for (size_t i = 0; i < names.size() && i < count; ++i) {
    if (const CUresult error = cuLibraryGetKernel(&kernels[i], library, names[i].c_str()); error != CUDA_SUCCESS) {
      return error;
    }
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* result, CUlibrary library) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(library, Kind::kLibrary); error != CUDA_SUCCESS) return error;
  ModuleBase* part = nullptr;
  const CUresult error = FindPart(library, context, &part);
  if (error == CUDA_SUCCESS) *result = static_cast<CUmod_st*>(part);
  return error;
}

// No device has unified function pointers here, so there are no such functions.
CUresult CUDAAPI cuLibraryGetUnifiedFunction(void** function, CUlibrary library, const char* name) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = CheckObject(library, Kind::kLibrary);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library, const char* name) {
  return Global(library, name, /*managed=*/false, address, size);
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr* address, size_t* size, CUlibrary library, const char* name) {
  return Global(library, name, /*managed=*/true, address, size);
}

// Both kinds of handle are accepted everywhere, so one object can be both.
CUresult CUDAAPI cuKernelGetFunction(CUfunction* result, CUkernel kernel) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckKernel(kernel, &function); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *result = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckKernel(kernel, &function); error != CUDA_SUCCESS) return error;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (function->context != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *library = static_cast<CUlib_st*>(function->module);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel kernel) {
  FunctionBase* function = nullptr;
  if (const CUresult error = CheckKernel(kernel, &function); error != CUDA_SUCCESS) return error;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return ParameterInfo(kernel, index, offset, size);
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return GetFunctionAttribute(value, attribute, kernel);
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return SetFunctionAttribute(kernel, attribute, value);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice) {
  return SetFunctionCache(kernel, config);
}
