// SPDX-License-Identifier: Apache-2.0
// What the type of a kernel argument says about the values that it takes. Pure functions.
#ifndef HAWSER_INTERPOSER_OPENCL_KERNEL_TYPES_H_
#define HAWSER_INTERPOSER_OPENCL_KERNEL_TYPES_H_

#include <string_view>

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// Bytes of a scalar or vector type of OpenCL C by its name ("uint4", "unsigned int"); 0 for all others. Vectors of
/// three are 0 too: implementations disagree on whether three elements may be given for four.
uint32_t SizeOfType(std::string_view name);

/// Sets kind and value_size from the argument's qualifiers and type.
void Classify(KernelMetadata::Arg& arg);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_KERNEL_TYPES_H_
