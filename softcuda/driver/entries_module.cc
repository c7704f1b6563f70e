// SPDX-License-Identifier: Apache-2.0
// Entry points: modules, their functions and variables, and the linker.
#include <span>
#include <string>

#include "proto/facts/fatbin.h"
#include "softcuda/driver/capture.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/linker.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

CUmodule Handle(const ModulePtr& module) { return reinterpret_cast<CUmodule>(module->handle); }

CUresult Load(CUmodule* to, const void* image, const JitLogs& logs) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckUnsafe());
  Units units;
  HAWSER_TRY(ReadImage(image, context->device()->capability(), logs, &units));
  ModulePtr module;
  HAWSER_TRY(LoadModule(units, context, logs, &module));
  *to = Handle(module);
  return CUDA_SUCCESS;
}

CUresult FindModule(CUmodule handle, ModulePtr* module) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  *module = GetDriver()->modules.Find(handle);
  return *module == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) { return Load(module, image, {}); }

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count, CUjit_option* options,
                                    void** values) {
  JitLogs logs;
  HAWSER_TRY(ReadJitOptions(count, options, values, &logs));
  return Load(module, image, logs);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* image) { return Load(module, image, {}); }

CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* name) {
  std::string file;
  HAWSER_TRY(ReadImageFile(name, &file));
  // A file may be cut short: what its header claims must be there.
  if (!hawser::fatbin::ImageBytes(file.c_str(), file.size() + 1).ok()) return CUDA_ERROR_INVALID_IMAGE;
  return Load(module, file.c_str(), {});
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  ModulePtr module;
  HAWSER_TRY(FindModule(handle, &module));
  if (module->library != 0) return CUDA_ERROR_NOT_PERMITTED;
  HAWSER_TRY(CheckUnsafe());
  GetDriver()->modules.Remove(handle);
  UnloadModule(module);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* to, CUmodule handle, const char* name) {
  ModulePtr module;
  HAWSER_TRY(FindModule(handle, &module));
  if (to == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int index = module->program->FindKernel(name);
  if (index < 0) return CUDA_ERROR_NOT_FOUND;
  *to = reinterpret_cast<CUfunction>(module->functions[static_cast<size_t>(index)]->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  ModulePtr module;
  HAWSER_TRY(FindModule(handle, &module));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* to, unsigned int count, CUmodule handle) {
  ModulePtr module;
  HAWSER_TRY(FindModule(handle, &module));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count && i < module->functions.size(); ++i) {
    to[i] = reinterpret_cast<CUfunction>(module->functions[i]->handle);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  ModulePtr module;
  HAWSER_TRY(FindModule(handle, &module));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int index = module->program->FindSymbol(name);
  if (index < 0) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = module->variables[static_cast<size_t>(index)]->begin;
  if (bytes != nullptr) *bytes = module->program->symbols()[static_cast<size_t>(index)].size;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* to) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto state = std::make_shared<LinkState>();
  HAWSER_TRY(ReadJitOptions(count, options, values, &state->logs));
  state->capability = context->device()->capability();
  *to = reinterpret_cast<CUlinkState>(GetDriver()->links.Add(state));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* to) {
  return cuLinkCreate_v2(count, options, values, to);
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t size, const char* name,
                                  unsigned int, CUjit_option*, void**) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const auto state = driver->links.Find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  return state->Add(type, {static_cast<const std::byte*>(data), size}, name == nullptr ? "" : name);
}

CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                               unsigned int count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned int,
                                  CUjit_option*, void**) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const auto state = driver->links.Find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::string file;
  HAWSER_TRY(ReadImageFile(path, &file));
  return state->Add(type, std::as_bytes(std::span(file.data(), file.size())), path);
}

CUresult CUDAAPI cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int count,
                               CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}

CUresult CUDAAPI cuLinkComplete(CUlinkState handle, void** image, size_t* size) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const auto state = driver->links.Find(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(state->Complete());
  *image = state->linked.data();
  if (size != nullptr) *size = state->linked.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return driver->links.Remove(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // extern "C"
