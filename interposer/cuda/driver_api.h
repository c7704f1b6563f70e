// SPDX-License-Identifier: Apache-2.0
// CUDA's driver API with every variant, old and new, under its own name: what this library exports.
#ifndef HAWSER_INTERPOSER_CUDA_DRIVER_API_H_
#define HAWSER_INTERPOSER_CUDA_DRIVER_API_H_

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>

#endif  // HAWSER_INTERPOSER_CUDA_DRIVER_API_H_
