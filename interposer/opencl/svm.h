// SPDX-License-Identifier: Apache-2.0
// What the SVM commands need to know of ranges.
#ifndef HAWSER_INTERPOSER_OPENCL_SVM_H_
#define HAWSER_INTERPOSER_OPENCL_SVM_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// Some device of the context offers coarse-grained SVM.
bool SupportsSvm(cl_context context);
/// Takes the range that begins at `address` out of the context and unmaps it. The server frees its own.
void ForgetSvm(cl_context context, uintptr_t address);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_SVM_H_
