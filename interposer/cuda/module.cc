// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/module.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>

#include "interposer/core/log.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/image_upload.h"

namespace hawser::cu {
namespace {

constexpr int kRounds = 8;  ///< A server that asks for more and more has lost its mind.
constexpr uint32_t kMaxLog = 1u << 20;

KernelFacts Facts(const cuda::KernelInfo& info) {
  KernelFacts facts;
  facts.name = info.name;
  facts.described = info.described != 0;
  const size_t parameters = std::min(info.offsets.size(), info.sizes.size());
  for (size_t i = 0; i < parameters; ++i) {
    facts.offsets.push_back(info.offsets[i]);
    facts.sizes.push_back(info.sizes[i]);
  }
  for (size_t i = 0; i < info.attributes.size(); ++i) facts.attributes.push_back(info.attributes[i]);
  return facts;
}

/// A layout that cannot be packed is the server's mistake.
bool Packable(const KernelFacts& facts) {
  constexpr uint32_t kMaxParameters = 65536;
  for (size_t i = 0; i < facts.offsets.size(); ++i) {
    if (facts.offsets[i] > kMaxParameters || facts.sizes[i] > kMaxParameters - facts.offsets[i]) return false;
  }
  return true;
}

void Remember(ModuleBase* module, CUctx_st* context, std::string_view name, const GlobalFacts& facts) {
  module->globals.insert_or_assign(std::string(name), facts);
  if (facts.address == 0 || context == nullptr) return;
  Client& client = Client::Get();
  const auto known = client.pointers().Find(facts.address);
  if (known && known->begin == facts.address && known->kind == PointerKind::kGlobal) return;
  PointerRange range;
  range.begin = facts.address;
  range.size = facts.size;
  range.kind = PointerKind::kGlobal;
  range.managed = facts.managed;
  range.device = context->device;
  range.context = context->id.raw();
  client.pointers().Add(range);
}

void Adopt(ModuleBase* module, const cuda::ModuleInfo& info) {
  std::lock_guard lock(module->mutex);
  info.kernels.ForEach([&](const cuda::KernelInfo& kernel) {
    KernelFacts facts = Facts(kernel);
    if (!Packable(facts)) facts.described = false;
    module->kernels.insert_or_assign(facts.name, facts);
  });
  info.globals.ForEach([&](const cuda::GlobalInfo& global) {
    Remember(module, module->context, global.name, {global.address, global.size, global.managed != 0});
  });
  module->all_kernels = info.all_kernels != 0;
  module->all_globals = info.all_globals != 0;
}

/// Under the module's lock.
CUresult Describe(ModuleBase* module, std::string_view name, KernelFacts* facts) {
  const auto known = module->kernels.find(name);
  if (known == module->kernels.end() && module->all_kernels) return CUDA_ERROR_NOT_FOUND;
  if (known != module->kernels.end() && known->second.described) {
    *facts = known->second;
    return CUDA_SUCCESS;
  }
  cuda::DescribeKernel message;
  message.module = module->id;
  if (module->context != nullptr) message.context = module->context->id;
  message.name = name;
  Answer<cuda::KernelReply> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  *facts = Facts(answer->kernel);
  facts->name = name;
  facts->described = true;
  if (!Packable(*facts)) return CUDA_ERROR_UNKNOWN;
  module->kernels.insert_or_assign(facts->name, *facts);
  return CUDA_SUCCESS;
}

FunctionBase* NewFunction(ModuleBase* module, const KernelFacts& facts) {
  guest::Session* session = Client::Get().session();
  const wire::Id id = session->NewId(static_cast<uint8_t>(cuda::Handle::kFunction));
  FunctionBase* function;
  if (module->context != nullptr) {
    function = new CUfunc_st(Kind::kFunction, id);
  } else {
    function = new CUkern_st(Kind::kKernel, id);
  }
  function->module = module;
  function->context = module->context;
  function->name = facts.name;
  function->offsets = facts.offsets;
  function->sizes = facts.sizes;
  for (size_t i = 0; i < facts.offsets.size(); ++i) {
    function->parameter_bytes = std::max(function->parameter_bytes, facts.offsets[i] + facts.sizes[i]);
  }
  function->attribute_count = static_cast<uint32_t>(std::min(facts.attributes.size(), function->attributes.size()));
  for (size_t i = 0; i < function->attribute_count; ++i) function->attributes[i] = facts.attributes[i];
  Registry::Get().Add(function);
  return function;
}

}  // namespace

CUresult JitOptions::Read(unsigned count, const CUjit_option* options, void* const* values) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (count > 64) return CUDA_ERROR_INVALID_VALUE;
  values_ = values;
  const auto slot = [values](unsigned i) { return const_cast<void**>(values + i); };
  for (unsigned i = 0; i < count; ++i) {
    const auto number = reinterpret_cast<uintptr_t>(values[i]);
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        info_ = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_size_ = static_cast<uint32_t>(std::min<uint64_t>(static_cast<uint32_t>(number), kMaxLog));
        info_written_ = slot(i);
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        error_ = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_size_ = static_cast<uint32_t>(std::min<uint64_t>(static_cast<uint32_t>(number), kMaxLog));
        error_written_ = slot(i);
        break;
      case CU_JIT_WALL_TIME:
        wall_time_ = reinterpret_cast<float*>(slot(i));
        break;
      case CU_JIT_THREADS_PER_BLOCK:
      case CU_JIT_MAX_REGISTERS:
      case CU_JIT_OPTIMIZATION_LEVEL:
      case CU_JIT_TARGET_FROM_CUCONTEXT:
      case CU_JIT_TARGET:
      case CU_JIT_FALLBACK_STRATEGY:
      case CU_JIT_GENERATE_DEBUG_INFO:
      case CU_JIT_LOG_VERBOSE:
      case CU_JIT_GENERATE_LINE_INFO:
      case CU_JIT_CACHE_MODE:
      case CU_JIT_POSITION_INDEPENDENT_CODE:
      case CU_JIT_MIN_CTA_PER_SM:
      case CU_JIT_MAX_THREADS_PER_BLOCK:
      case CU_JIT_OVERRIDE_DIRECTIVE_VALUES: {
        cuda::JitOption option;
        option.option = options[i];
        option.value = number;
        numbers_.push_back(option);
        break;
      }
      // What cuda.h calls deprecated: nearly all were for link-time optimization before CUDA 12, whose code no driver
      // takes any more. And hints for the compiler alone.
      case CU_JIT_NEW_SM3X_OPT:
      case CU_JIT_FAST_COMPILE:
      case CU_JIT_LTO:
      case CU_JIT_FTZ:
      case CU_JIT_PREC_DIV:
      case CU_JIT_PREC_SQRT:
      case CU_JIT_FMA:
      case CU_JIT_REFERENCED_KERNEL_NAMES:
      case CU_JIT_REFERENCED_KERNEL_COUNT:
      case CU_JIT_REFERENCED_VARIABLE_NAMES:
      case CU_JIT_REFERENCED_VARIABLE_COUNT:
      case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
      case CU_JIT_SPLIT_COMPILE:
      case CU_JIT_GLOBAL_SYMBOL_NAMES:  // Their number says whether there are any.
      case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
        break;
      case CU_JIT_GLOBAL_SYMBOL_COUNT: {
        if (static_cast<uint32_t>(number) == 0) break;
        static std::atomic_flag said;
        return RefuseOnce("CU_JIT_GLOBAL_SYMBOL_ADDRESSES",
                          "this process's addresses mean nothing to the server's device", &said);
      }
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (info_ == nullptr) info_size_ = 0;
  if (error_ == nullptr) error_size_ = 0;
  return CUDA_SUCCESS;
}

void JitOptions::Answer(std::string_view info, std::string_view error) {
  const auto put = [](std::string_view text, char* buffer, uint32_t size, void** written) {
    size_t length = 0;
    if (buffer != nullptr && size != 0) {
      length = std::min<size_t>(text.size(), size - 1);
      if (length != 0) std::memcpy(buffer, text.data(), length);
      buffer[length] = 0;
    }
    if (written != nullptr) *written = reinterpret_cast<void*>(static_cast<uintptr_t>(length));
  };
  put(info, info_, info_size_, info_written_);
  put(error, error_, error_size_, error_written_);
  if (wall_time_ != nullptr) *wall_time_ = 0;
}

CUresult UploadMissing(guest::Session* session, const wire::ArrayView<uint32_t>& missing,
                       std::span<const ImageOffer* const> offers) {
  for (size_t i = 0; i < missing.size(); ++i) {
    size_t index = missing[i];
    const ImageOffer* offer = nullptr;
    for (const ImageOffer* each : offers) {
      if (index < each->entries().size()) {
        offer = each;
        break;
      }
      index -= each->entries().size();
    }
    if (offer == nullptr) return CUDA_ERROR_UNKNOWN;
    const CUresult sent = SendImage(session, offer->entries()[index].hash, offer->bytes(index));
    if (sent != CUDA_SUCCESS) return sent;
  }
  return CUDA_SUCCESS;
}

CUresult LoadImages(ModuleBase* module, const ImageOffer& offer, JitOptions& options) {
  guest::Session* session = Client::Get().session();
  cuda::LoadModule message;
  message.module = module->id;
  if (module->context != nullptr) message.context = module->context->id;
  message.entries = wire::ListView<cuda::ImageEntry>(offer.entries());
  message.options = wire::ListView<cuda::JitOption>(options.numbers());
  message.info_log_size = options.info_size();
  message.error_log_size = options.error_size();
  const ImageOffer* const offers[] = {&offer};
  for (int round = 0; round < kRounds; ++round) {
    Answer<cuda::ModuleInfo> answer;
    if (const CUresult error = answer.Get(session, cuda::Opcode::kLoadModule, message); error != CUDA_SUCCESS) {
      return error;
    }
    if (answer->status == 0 && !answer->missing.empty()) {
      if (const CUresult error = UploadMissing(session, answer->missing, offers); error != CUDA_SUCCESS) return error;
      continue;
    }
    options.Answer(answer->info_log, answer->error_log);
    if (answer->status == 0) Adopt(module, *answer);
    // The program's load is over: whether these come there is nothing that it would want to know.
    if (answer->status == 0) (void)UploadMissing(session, answer->wanted, offers);
    if (answer->status == CUDA_ERROR_NO_BINARY_FOR_GPU) SayNoCode("a module cannot be loaded", answer->error_log);
    return FromWire(answer->status);
  }
  return CUDA_ERROR_UNKNOWN;
}

CUresult FindKernel(ModuleBase* module, std::string_view name, FunctionBase** function) {
  std::lock_guard lock(module->mutex);
  if (const auto known = module->functions.find(name); known != module->functions.end()) {
    *function = known->second;
    return CUDA_SUCCESS;
  }
  KernelFacts facts;
  if (const CUresult error = Describe(module, name, &facts); error != CUDA_SUCCESS) return error;
  FunctionBase* made = NewFunction(module, facts);
  module->functions[made->name] = made;
  cuda::GetFunction message;
  message.function = made->id;
  message.module = module->id;
  message.name = made->name;
  *function = made;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult FindGlobal(ModuleBase* module, CUctx_st* context, std::string_view name, GlobalFacts* global) {
  std::lock_guard lock(module->mutex);
  const auto known = module->globals.find(name);
  if (known == module->globals.end() && module->all_globals) return CUDA_ERROR_NOT_FOUND;
  // A library's globals are elsewhere in each context.
  if (known != module->globals.end() && known->second.address != 0 && module->context != nullptr) {
    *global = known->second;
    return CUDA_SUCCESS;
  }
  cuda::GetGlobal message;
  message.module = module->id;
  if (context != nullptr) message.context = context->id;
  message.name = name;
  Answer<cuda::GlobalReply> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  *global = {answer->global.address, answer->global.size, answer->global.managed != 0};
  if (global->managed && context != nullptr && global->size != 0) {
    // The host's code knows the variable by this address.
    const MirrorRange range{context, global->address, global->address, global->size, 0};
    const CUresult error = Mirrors::Get().AddManaged(range);
    if (error == CUDA_ERROR_NOT_SUPPORTED) {
      static std::atomic_flag said;
      return RefuseOnce("a __managed__ variable", "this process has something else at the server's address of it",
                        &said);
    }
    if (error != CUDA_SUCCESS) return error;
  }
  Remember(module, context, name, *global);
  return CUDA_SUCCESS;
}

CUresult FindPart(ModuleBase* library, CUctx_st* context, ModuleBase** part) {
  std::lock_guard lock(library->mutex);
  if (const auto known = library->parts.find(context); known != library->parts.end()) {
    *part = known->second;
    return CUDA_SUCCESS;
  }
  guest::Session* session = Client::Get().session();
  auto made = std::make_unique<CUmod_st>(Kind::kModule, session->NewId(static_cast<uint8_t>(cuda::Handle::kModule)));
  cuda::GetLibraryModule message;
  message.module = made->id;
  message.library = library->id;
  message.context = context->id;
  if (const CUresult error = AskStatus(session, message); error != CUDA_SUCCESS) {
    session->FreeId(made->id);
    return error;
  }
  made->context = context;
  made->library = library;
  made->kernels = library->kernels;
  made->all_kernels = library->all_kernels;
  *part = made.release();
  Registry::Get().Add(*part);
  library->parts[context] = *part;
  std::lock_guard context_lock(context->mutex);
  context->modules.insert(*part);
  return CUDA_SUCCESS;
}

void EndParts(ModuleBase* library) {
  std::map<CUctx_st*, ModuleBase*> parts;
  {
    std::lock_guard lock(library->mutex);
    parts.swap(library->parts);
  }
  for (const auto& [context, part] : parts) {
    cuda::Release message;
    message.object = part->id;
    (void)Client::Get().session()->Send(message);
    {
      std::lock_guard lock(context->mutex);
      context->modules.erase(part);
    }
    ForgetModule(part);
  }
}

void SayNoCode(std::string_view what, std::string_view found) {
  constexpr size_t kMost = 16;  // A program that tries one image after the other need not fill the log.
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;
  {
    std::lock_guard lock(mutex);
    if (said->size() == kMost || !said->emplace(found).second) return;
  }
  guest::Log(guest::LogLevel::kWarning, "%.*s: the server's device can run no code of it: %.*s",
             static_cast<int>(what.size()), what.data(), static_cast<int>(found.size()), found.data());
}

void ForgetModule(ModuleBase* module) {
  guest::Session* session = Client::Get().session();
  {
    std::lock_guard lock(module->mutex);
    for (const auto& [name, function] : module->functions) {
      const wire::Id id = function->id;
      Registry::Get().Bury(function);
      session->FreeId(id);
    }
    module->functions.clear();
    for (const auto& [name, global] : module->globals) {
      if (global.address == 0) continue;
      Client::Get().pointers().Remove(global.address, {PointerKind::kGlobal});
      MirrorRange removed;
      if (global.managed) (void)Mirrors::Get().Remove(global.address, &removed);
    }
  }
  const wire::Id id = module->id;
  Registry::Get().Bury(module);
  session->FreeId(id);
}

CUresult CheckFunction(const void* handle, FunctionBase** function) {
  auto* const base = static_cast<FunctionBase*>(static_cast<Object*>(const_cast<void*>(handle)));
  if (base == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Kind kind = base->kind.load(std::memory_order_relaxed);
  if (kind != Kind::kFunction && kind != Kind::kKernel) return CUDA_ERROR_INVALID_HANDLE;
  *function = base;
  return static_cast<CUresult>(base->failed.load(std::memory_order_relaxed));
}

}  // namespace hawser::cu
