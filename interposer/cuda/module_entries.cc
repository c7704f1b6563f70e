// SPDX-License-Identifier: Apache-2.0
// cuModule*.

#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/file_bytes.h"
#include "interposer/cuda/module.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult LoadModule(CUmodule* result, const ImageOffer& offer, JitOptions& options) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Captures::Get().CheckUnsafeCall(); error != CUDA_SUCCESS) return error;
  guest::Session* session = Client::Get().session();
  auto* module = new CUmod_st(Kind::kModule, session->NewId(static_cast<uint8_t>(cuda::Handle::kModule)));
  module->context = context;
  Registry::Get().Add(module);
  if (const CUresult error = LoadImages(module, offer, options); error != CUDA_SUCCESS) {
    ForgetModule(module);
    return error;
  }
  std::lock_guard lock(context->mutex);
  context->modules.insert(module);
  *result = module;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                                    void** values) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit;
  if (const CUresult error = jit.Read(count, options, values); error != CUDA_SUCCESS) return error;
  ImageOffer offer;
  if (const CUresult error = offer.AddImage(image); error != CUDA_SUCCESS) return error;
  return LoadModule(module, offer, jit);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* path) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> bytes;
  if (const CUresult error = ReadFile(path, &bytes); error != CUDA_SUCCESS) return error;
  ImageOffer offer;
  if (const CUresult error = offer.AddBytes(bytes); error != CUDA_SUCCESS) return error;
  JitOptions none;
  return LoadModule(module, offer, none);
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(module, Kind::kModule); error != CUDA_SUCCESS) return error;
  if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;  // It ends with the library.
  if (const CUresult error = Captures::Get().CheckUnsafeCall(); error != CUDA_SUCCESS) return error;
  cuda::Release message;
  message.object = module->id;
  const int32_t error = Client::Get().session()->Send(message);
  {
    std::lock_guard lock(module->context->mutex);
    module->context->modules.erase(module);
  }
  ForgetModule(module);
  return FromWire(error);
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* result, CUmodule module, const char* name) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (result == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(module, Kind::kModule); error != CUDA_SUCCESS) return error;
  FunctionBase* function = nullptr;
  const CUresult error = FindKernel(module, name, &function);
  if (error == CUDA_SUCCESS) *result = static_cast<CUfunc_st*>(function);
  return error;
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int* count, CUmodule module) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(module, Kind::kModule); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(module->mutex);
  if (!module->all_kernels) return CUDA_ERROR_NOT_SUPPORTED;
  *count = static_cast<unsigned>(module->kernels.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (functions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(module, Kind::kModule); error != CUDA_SUCCESS) return error;
  std::vector<std::string> names;
  {
    std::lock_guard lock(module->mutex);
    for (const auto& [name, facts] : module->kernels) names.push_back(name);
  }
  for (size_t i = 0; i < names.size() && i < count; ++i) {
    FunctionBase* function = nullptr;
    if (const CUresult error = FindKernel(module, names[i], &function); error != CUDA_SUCCESS) return error;
    functions[i] = static_cast<CUfunc_st*>(function);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule module, const char* name) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckObject(module, Kind::kModule); error != CUDA_SUCCESS) return error;
  GlobalFacts global;
  if (const CUresult error = FindGlobal(module, module->context, name, &global); error != CUDA_SUCCESS) return error;
  if (address != nullptr) *address = global.address;
  if (size != nullptr) *size = global.size;
  return CUDA_SUCCESS;
}
