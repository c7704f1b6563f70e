// SPDX-License-Identifier: Apache-2.0
// Links that a guest asks for. They may take seconds, so they are the loader's work; the executor takes the images.
#include <utility>

#include "server/backends/cuda/jit.h"
#include "wire/sha256.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr std::string_view kNotLinked = "images cannot be linked";

}  // namespace

bool JitOptions::IsPlain(uint32_t option) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_LTO:
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
      return true;
    default:
      return false;
  }
}

/// A link on its way through the loader's thread.
struct CudaBackend::Link {
  struct Input {
    CUjitInputType type = CU_JIT_INPUT_PTX;
    std::string name;
    Assembled assembled;
  };
  cuda::Call call;
  wire::Id context;
  std::vector<Input> inputs;
  std::unique_ptr<JitOptions> options;
};

int32_t CudaBackend::LinkImages(const cuda::Call& call, const cuda::LinkImages& message) {
  const auto fail = [&](int32_t status) {
    FailJit<cuda::LinkResult>(call, kNotLinked, status, std::exchange(reason_, {}), nullptr);
    return 0;
  };
  int32_t status = 0;
  const Context* const context = Enter(message.context, &status);
  if (context == nullptr) return fail(status);
  auto link = std::make_shared<Link>();
  link->call = call;
  link->context = message.context;
  std::vector<uint32_t> missing;
  uint32_t index = 0;
  message.inputs.ForEach([&](const cuda::LinkInput& from) {
    if (status != 0) return;
    Link::Input& input = link->inputs.emplace_back();
    input.type = static_cast<CUjitInputType>(from.type);
    input.name = from.name;
    status = Assemble(from.entries, context->device, &input.assembled, index, &missing);
    const bool library = input.type == CU_JIT_INPUT_OBJECT || input.type == CU_JIT_INPUT_LIBRARY;
    if (library && status == CUDA_ERROR_NO_BINARY_FOR_GPU && chosen_.soft) {
      // Machine code alone, such as that of the device runtime: the software device has its own, and its linker says
      // what is missing.
      status = 0;
      reason_.clear();
    }
    index += from.entries.size();
  });
  if (status != 0) return fail(status);
  if (!missing.empty()) {
    cuda::LinkResult reply;
    reply.missing = wire::ArrayView<uint32_t>(missing.data(), missing.size());
    Reply(call, reply);
    return 0;
  }
  link->options = std::make_unique<JitOptions>(message.options, message.info_log_size, message.error_log_size);
  if (!link->options->good()) return fail(Explain(CUDA_ERROR_INVALID_VALUE, "an option for the linker is not known"));
  PostLoad(current_, [this, link] { RunLink(*link); });
  return 0;
}

/// The loader's thread.
void CudaBackend::RunLink(Link& link) {
  Linker linker(driver_, link.options.get());
  for (Link::Input& input : link.inputs) {
    Prepare(&input.assembled);
    for (Assembled::Part& part : input.assembled.parts) {
      const bool plain = part.type != CU_JIT_INPUT_FATBINARY;
      linker.Add(plain ? input.type : part.type, part.bytes, input.name);
    }
  }
  void* image = nullptr;
  size_t size = 0;
  if (const CUresult result = linker.Complete(&image, &size); result != CUDA_SUCCESS) {
    Note(link.context, result);
    return FailJit<cuda::LinkResult>(link.call, kNotLinked, result, {}, link.options.get());
  }
  if (size > images_->largest()) {
    return FailJit<cuda::LinkResult>(
        link.call, kNotLinked, CUDA_ERROR_OUT_OF_MEMORY,
        "the image that was made has " + std::to_string(size) + " bytes, which is more than is kept",
        link.options.get());
  }
  std::vector<std::byte> bytes(static_cast<std::byte*>(image), static_cast<std::byte*>(image) + size);
  cuda::LinkResult reply;
  reply.info_log = link.options->info();
  reply.error_log = link.options->error();
  reply.hash = wire::Sha256Of(bytes);
  reply.size = size;
  {
    // The executor has it before the guest can ask for it.
    const std::lock_guard<std::mutex> lock(loaded_mutex_);
    linked_.emplace_back(reply.hash, std::move(bytes));
    has_loaded_.store(true, std::memory_order_release);
  }
  Reply(link.call, reply);
}

}  // namespace hawser::server::cuda_backend
