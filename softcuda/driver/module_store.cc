// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/module_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/log.h"

namespace hawser::soft {
namespace {

/// Copies a text into a log buffer, cut to fit, and says how much of the buffer is used.
void Fill(char* buffer, unsigned bytes, void** used, std::string_view text) {
  if (buffer == nullptr || bytes == 0) return;
  const size_t length = std::min<size_t>(text.size(), bytes - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
  if (used != nullptr) *used = reinterpret_cast<void*>(length + 1);
}

CUresult LinkError(const std::string& text, const JitLogs& logs) {
  logs.Error(text);
  Log("a module was not loaded: " + text);
  return CUDA_ERROR_INVALID_PTX;
}

/// Memory for the program's variables, and their initial values.
CUresult Place(const exec::Program& program, const ContextPtr& context, std::vector<AllocationPtr>* variables) {
  Driver* const driver = GetDriver();
  for (const exec::Symbol& symbol : program.symbols()) {
    const MemoryKind kind = symbol.managed ? MemoryKind::kManaged : MemoryKind::kModule;
    AllocationPtr allocation;
    const CUresult result = driver->Allocate(context->device(), std::max<uint64_t>(symbol.size, 1), symbol.alignment,
                                             kind, context->handle, &allocation);
    if (result != CUDA_SUCCESS) return result;
    variables->push_back(std::move(allocation));
  }
  return CUDA_SUCCESS;
}

void FreeVariables(std::vector<AllocationPtr>* variables) {
  for (const AllocationPtr& variable : *variables) GetDriver()->Release(variable);
  variables->clear();
}

}  // namespace

void JitLogs::Info(std::string_view text) const { Fill(info, info_bytes, info_used, text); }
void JitLogs::Error(std::string_view text) const { Fill(error, error_bytes, error_used, text); }

CUresult ReadJitOptions(unsigned count, const CUjit_option* options, void** values, JitLogs* logs) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        logs->info = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        logs->info_bytes = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
        logs->info_used = &values[i];
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        logs->error = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        logs->error_bytes = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
        logs->error_used = &values[i];
        break;
      case CU_JIT_WALL_TIME:
        logs->wall_time = reinterpret_cast<float*>(&values[i]);
        break;
      case CU_JIT_MAX_REGISTERS:
        logs->max_registers = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
        break;
      case CU_JIT_LOG_VERBOSE:
        logs->verbose = values[i] != nullptr;
        break;
      default:
        // Other wishes about code generation have no meaning for an interpreter.
        if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (logs->info_used != nullptr) *logs->info_used = nullptr;  // Nothing written yet.
  if (logs->error_used != nullptr) *logs->error_used = nullptr;
  if (logs->info != nullptr && logs->info_bytes != 0) *logs->info = '\0';
  if (logs->error != nullptr && logs->error_bytes != 0) *logs->error = '\0';
  return CUDA_SUCCESS;
}

CUresult LoadModule(const Units& units, const ContextPtr& context, const JitLogs& logs, ModulePtr* loaded) {
  const auto start = std::chrono::steady_clock::now();
  exec::LinkOptions options;
  options.compute_capability = context->device()->capability();
  options.registers_per_block =
      static_cast<uint32_t>(context->device()->Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
  options.max_registers = units.max_registers;
  auto linked = exec::Program::Link(units, options);
  if (!linked.ok()) return LinkError(linked.status().text(), logs);
  auto module = std::make_shared<Module>();
  module->context = context;
  module->program = std::move(linked.value());
  CUresult result = Place(*module->program, context, &module->variables);
  if (result == CUDA_SUCCESS) {
    std::vector<uint64_t> addresses;
    for (const AllocationPtr& variable : module->variables) addresses.push_back(variable->begin);
    const wire::Status status = module->program->Bind(addresses);
    if (!status.ok()) result = LinkError(status.text(), logs);
  }
  if (result != CUDA_SUCCESS) {
    FreeVariables(&module->variables);
    return result;
  }
  Driver* const driver = GetDriver();
  for (size_t i = 0; i < module->program->kernels().size(); ++i) {
    auto function = std::make_shared<Function>();
    function->module = module;
    function->program = module->program;
    function->index = static_cast<int>(i);
    function->context = context;
    driver->functions.Add(function);
    module->functions.push_back(std::move(function));
  }
  driver->modules.Add(module);
  if (logs.wall_time != nullptr) {
    *logs.wall_time = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  if (logs.verbose && !module->program->unsupported().empty()) {
    std::string text = "instructions that this device cannot execute:";
    for (const std::string& name : module->program->unsupported()) text += " " + name;
    logs.Info(text);
  }
  *loaded = std::move(module);
  return CUDA_SUCCESS;
}

void UnloadModule(const ModulePtr& module) {
  if (const ContextPtr context = module->context.lock(); context != nullptr && !context->destroyed()) context->Drain();
  Driver* const driver = GetDriver();
  for (const FunctionPtr& function : module->functions) driver->functions.Remove(function->handle);
  FreeVariables(&module->variables);
}

CUresult ModuleFor(const std::shared_ptr<Library>& library, const ContextPtr& context, ModulePtr* module) {
  const std::lock_guard lock(library->mutex);
  const auto found = library->modules.find(context->id());
  if (found != library->modules.end()) {
    *module = found->second;
    return CUDA_SUCCESS;
  }
  const CUresult result = LoadModule(library->units, context, {}, module);
  if (result != CUDA_SUCCESS) return result;
  (*module)->library = library->handle;
  library->modules[context->id()] = *module;
  return CUDA_SUCCESS;
}

CUresult ResolveKernel(CUkernel handle, const ContextPtr& context, FunctionPtr* function) {
  const std::shared_ptr<Kernel> kernel = GetDriver()->kernels.Find(handle);
  const std::shared_ptr<Library> library = kernel == nullptr ? nullptr : kernel->library.lock();
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ModulePtr module;
  if (const CUresult result = ModuleFor(library, context, &module); result != CUDA_SUCCESS) return result;
  const int index = module->program->FindKernel(kernel->name);
  if (index < 0) return CUDA_ERROR_NOT_FOUND;
  *function = module->functions[static_cast<size_t>(index)];
  return CUDA_SUCCESS;
}

CUresult ResolveFunction(CUfunction handle, FunctionPtr* function) {
  *function = GetDriver()->functions.Find(handle);
  if (*function != nullptr) return CUDA_SUCCESS;
  ContextPtr context;
  if (const CUresult result = CurrentContext(&context); result != CUDA_SUCCESS) return result;
  return ResolveKernel(reinterpret_cast<CUkernel>(handle), context, function);
}

}  // namespace hawser::soft
