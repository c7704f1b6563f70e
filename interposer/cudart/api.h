// SPDX-License-Identifier: Apache-2.0
// The toolkit's runtime API, declared so that its definitions here are exported although everything else is hidden.
#ifndef HAWSER_INTERPOSER_CUDART_API_H_
#define HAWSER_INTERPOSER_CUDART_API_H_

#define HAWSER_CUDART_EXPORT __attribute__((visibility("default")))

#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#endif  // HAWSER_INTERPOSER_CUDART_API_H_
