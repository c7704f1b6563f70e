// SPDX-License-Identifier: Apache-2.0
#include "proto/cuda_api/error_text.h"

#include <cuda.h>

namespace hawser::cuda_api {
namespace {

/// Where the name alone says too little; what programs are known to look for in the driver's texts is as they look for
/// it, and as the runtime has it (interposer/cudart/errors.cc).
const char* OwnText(int32_t code) {
  switch (code) {
    case CUDA_SUCCESS:
      return "no error";
    case CUDA_ERROR_INVALID_VALUE:
      return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "initialization error";
    case CUDA_ERROR_DEINITIALIZED:
      return "driver shutting down";
    case CUDA_ERROR_NO_DEVICE:
      return "no CUDA-capable device is detected";
    case CUDA_ERROR_INVALID_DEVICE:
      return "invalid device ordinal";
    case CUDA_ERROR_INVALID_IMAGE:
      return "this is no module image that the device understands";
    case CUDA_ERROR_INVALID_CONTEXT:
      return "invalid device context";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "no kernel image is available for execution on the device";
    case CUDA_ERROR_INVALID_PTX:
      return "the PTX could not be compiled";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "the PTX is newer than this driver";
    case CUDA_ERROR_FILE_NOT_FOUND:
      return "file not found";
    case CUDA_ERROR_OPERATING_SYSTEM:
      return "a call of the operating system failed";
    case CUDA_ERROR_INVALID_HANDLE:
      return "invalid resource handle";
    case CUDA_ERROR_NOT_FOUND:
      return "named symbol not found";
    case CUDA_ERROR_NOT_READY:
      return "device not ready";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "an illegal memory access was encountered";
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return "too many resources requested for launch";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return "a kernel ran for too long";
    case CUDA_ERROR_ASSERT:
      return "an assertion in a kernel failed";
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return "an illegal instruction was encountered";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "misaligned address";
    case CUDA_ERROR_LAUNCH_FAILED:
      return "unspecified launch failure";
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return "a cooperative launch has more blocks than can run at once";
    case CUDA_ERROR_NOT_PERMITTED:
      return "operation not permitted";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "operation not supported";
    default:
      return nullptr;
  }
}

struct Error {
  int32_t code;
  const char* name;
  const char* words;  ///< The name as lower-case words, made by generate.py.
};

constexpr Error kErrors[] = {
#define HAWSER_CUDA_ERROR(name, code, words) {code, #name, words},
#include "cuda_api/error_names.inc"
#undef HAWSER_CUDA_ERROR
};

const Error* Find(int32_t code) {
  for (const Error& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

const char* ErrorName(int32_t code) {
  const Error* const error = Find(code);
  return error == nullptr ? nullptr : error->name;
}

const char* ErrorText(int32_t code) {
  const Error* const error = Find(code);
  if (error == nullptr) return nullptr;
  const char* const own = OwnText(code);
  return own != nullptr ? own : error->words;
}

}  // namespace hawser::cuda_api
