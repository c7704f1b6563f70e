// SPDX-License-Identifier: Apache-2.0
// Attributes and parameters of kernels: answered from what came with the module; changes are sent.
#ifndef HAWSER_INTERPOSER_CUDA_FUNCTION_ATTRIBUTES_H_
#define HAWSER_INTERPOSER_CUDA_FUNCTION_ATTRIBUTES_H_

#include "interposer/cuda/objects.h"

namespace hawser::cu {

/// `handle`: a CUfunction or a CUkernel.
CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, const void* handle);
CUresult SetFunctionAttribute(const void* handle, CUfunction_attribute attribute, int value);
CUresult SetFunctionCache(const void* handle, CUfunc_cache config);
CUresult ParameterInfo(const void* handle, size_t index, size_t* offset, size_t* size);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_FUNCTION_ATTRIBUTES_H_
