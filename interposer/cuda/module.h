// SPDX-License-Identifier: Apache-2.0
// Modules and libraries: loading, their kernels and globals.
#ifndef HAWSER_INTERPOSER_CUDA_MODULE_H_
#define HAWSER_INTERPOSER_CUDA_MODULE_H_

#include <string_view>

#include "interposer/cuda/client.h"
#include "interposer/cuda/image_offer.h"

namespace hawser::cu {

/// JIT options of a load, taken apart: numbers for the server, buffers for what it answers.
class JitOptions {
 public:
  /// CUDA_ERROR_INVALID_VALUE for options without values.
  CUresult Read(unsigned count, const CUjit_option* options, void* const* values);
  std::span<const cuda::JitOption> numbers() const { return numbers_; }
  uint32_t info_size() const { return info_size_; }
  uint32_t error_size() const { return error_size_; }
  /// Fills the application's log buffers and says in its arrays how much was written.
  void Answer(std::string_view info, std::string_view error);

 private:
  std::vector<cuda::JitOption> numbers_;
  void* const* values_ = nullptr;
  char* info_ = nullptr;
  char* error_ = nullptr;
  uint32_t info_size_ = 0;
  uint32_t error_size_ = 0;
  void** info_written_ = nullptr;
  void** error_written_ = nullptr;
  float* wall_time_ = nullptr;
};

/// Loads into `module`, which has a name and, if it is no library, a context. Waits.
CUresult LoadImages(ModuleBase* module, const ImageOffer& offer, JitOptions& options);
/// Sends bytes of the offer that the server asked for.
CUresult UploadMissing(guest::Session* session, const wire::ArrayView<uint32_t>& missing,
                       std::span<const ImageOffer* const> offers);

/// The kernel's handle; the same one each time. CUDA_ERROR_NOT_FOUND.
CUresult FindKernel(ModuleBase* module, std::string_view name, FunctionBase** function);
/// CUDA_ERROR_NOT_FOUND. `context`: for a library, in which one.
CUresult FindGlobal(ModuleBase* module, CUctx_st* context, std::string_view name, GlobalFacts* global);

/// The library's code in that context; the same handle each time.
CUresult FindPart(ModuleBase* library, CUctx_st* context, ModuleBase** part);

/// The module's end, and that of its functions' handles. Sends nothing.
void ForgetModule(ModuleBase* module);
/// The end of a library's code in contexts, with that of the library.
void EndParts(ModuleBase* library);

/// Logs once what there was, when the server's device runs none of it.
void SayNoCode(std::string_view what, std::string_view found);

/// A kernel's handle, CUfunction or CUkernel: both are accepted wherever one is.
CUresult CheckFunction(const void* handle, FunctionBase** function);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_MODULE_H_
