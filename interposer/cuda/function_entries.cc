// SPDX-License-Identifier: Apache-2.0
// cuFunc*.
#include "interposer/cuda/entry.h"
#include "interposer/cuda/function_attributes.h"
#include "interposer/cuda/module.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult Check(const void* handle, FunctionBase** function) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckFunction(handle, function);
}

}  // namespace

namespace hawser::cu {

CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, const void* handle) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  if (value == nullptr || attribute >= CU_FUNC_ATTRIBUTE_MAX || attribute >= function->attribute_count) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = function->attributes[static_cast<size_t>(attribute)];
  return CUDA_SUCCESS;
}

CUresult SetFunctionAttribute(const void* handle, CUfunction_attribute attribute, int value) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  CUctx_st* context = function->context;
  if (context == nullptr) (void)CurrentContext(&context, /*earlier=*/false);
  const Device* device = Client::Get().device(context != nullptr ? context->device : 0);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int most = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
                       function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
      if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
      break;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (static_cast<size_t>(attribute) < function->attributes.size()) {
    function->attributes[static_cast<size_t>(attribute)] = value;
  }
  cuda::SetFunctionAttribute message;
  if (context != nullptr) message.context = context->id;
  message.function = function->id;
  message.attribute = attribute;
  message.value = value;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult SetFunctionCache(const void* handle, CUfunc_cache config) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  if (config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  CUctx_st* context = function->context;
  if (context == nullptr) {
    if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  }
  cuda::SetCacheConfig message;
  message.context = context->id;
  message.function = function->id;
  message.config = config;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult ParameterInfo(const void* handle, size_t index, size_t* offset, size_t* size) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  if (offset == nullptr || index >= function->offsets.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->offsets[index];
  if (size != nullptr) *size = function->sizes[index];
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return GetFunctionAttribute(value, attribute, function);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return SetFunctionAttribute(function, attribute, value);
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return SetFunctionCache(function, config);
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return ParameterInfo(function, index, offset, size);
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ModuleBase* found = function->module;
  if (function->context == nullptr) {  // A library's: its code in the current context.
    CUctx_st* context = nullptr;
    if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
    if (const CUresult error = FindPart(function->module, context, &found); error != CUDA_SUCCESS) return error;
  }
  *module = static_cast<CUmod_st*>(found);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  FunctionBase* function = nullptr;
  if (const CUresult error = Check(handle, &function); error != CUDA_SUCCESS) return error;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  FunctionBase* function = nullptr;
  return Check(handle, &function);
}
