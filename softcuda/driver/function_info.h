// SPDX-License-Identifier: Apache-2.0
// What can be asked of and set on functions; CUfunction and CUkernel share it.
#ifndef HAWSER_SOFTCUDA_DRIVER_FUNCTION_INFO_H_
#define HAWSER_SOFTCUDA_DRIVER_FUNCTION_INFO_H_

#include <cuda.h>

#include "softcuda/driver/device.h"
#include "softcuda/driver/module_store.h"

namespace hawser::soft {

CUresult GetFunctionAttribute(const Device& device, const Function& function, CUfunction_attribute attribute,
                              int* value);
/// Blocks that a cluster of the function must have in dimension 0, 1 or 2; 0: it may have any number.
int RequiredCluster(const Function& function, size_t dimension);
CUresult SetFunctionAttribute(const Device& device, Function* function, CUfunction_attribute attribute, int value);
/// CUDA_ERROR_INVALID_VALUE past the last parameter. `size` may be null.
CUresult GetParameter(const Function& function, size_t index, size_t* offset, size_t* size);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_FUNCTION_INFO_H_
