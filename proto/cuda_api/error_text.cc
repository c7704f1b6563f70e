// SPDX-License-Identifier: Apache-2.0
#include "proto/cuda_api/error_text.h"

#include <cuda.h>

namespace hawser::cuda_api {
namespace {

/// Our own words where the name alone says too little.
const char* OwnText(int32_t code) {
  switch (code) {
    case CUDA_SUCCESS:
      return "no error";
    case CUDA_ERROR_INVALID_VALUE:
      return "an argument is outside what the call accepts";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "not enough memory for this request";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "cuInit has not been called, or failed";
    case CUDA_ERROR_DEINITIALIZED:
      return "the driver is shutting down";
    case CUDA_ERROR_NO_DEVICE:
      return "there is no usable CUDA device";
    case CUDA_ERROR_INVALID_DEVICE:
      return "there is no device of this number";
    case CUDA_ERROR_INVALID_IMAGE:
      return "this is no module image that the device understands";
    case CUDA_ERROR_INVALID_CONTEXT:
      return "no context is current, or it is not valid";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "the image has no code that this device can run";
    case CUDA_ERROR_INVALID_PTX:
      return "the PTX could not be compiled";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "the PTX is newer than this driver";
    case CUDA_ERROR_FILE_NOT_FOUND:
      return "no such file";
    case CUDA_ERROR_OPERATING_SYSTEM:
      return "a call of the operating system failed";
    case CUDA_ERROR_INVALID_HANDLE:
      return "the handle names no live object of the right kind";
    case CUDA_ERROR_NOT_FOUND:
      return "nothing of this name was found";
    case CUDA_ERROR_NOT_READY:
      return "the work has not finished yet";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "a kernel accessed memory that is not allocated";
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return "the launch needs more resources than the device has";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return "a kernel ran for too long";
    case CUDA_ERROR_ASSERT:
      return "an assertion in a kernel failed";
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return "a kernel met an instruction that the device cannot execute";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "a kernel accessed an address that is not aligned to the access";
    case CUDA_ERROR_LAUNCH_FAILED:
      return "a kernel failed while it ran";
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return "a cooperative launch has more blocks than can run at once";
    case CUDA_ERROR_NOT_PERMITTED:
      return "the operation is not permitted here";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "the operation is not supported";
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
