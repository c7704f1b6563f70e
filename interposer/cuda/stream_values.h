// SPDX-License-Identifier: Apache-2.0
// Waits for and writes of values in memory (cuStreamBatchMemOp and the like) between C and the wire.
#ifndef HAWSER_INTERPOSER_CUDA_STREAM_VALUES_H_
#define HAWSER_INTERPOSER_CUDA_STREAM_VALUES_H_

#include <cuda.h>

#include <vector>

#include "proto/cuda/messages.h"

namespace hawser::cu {

/// CUDA_ERROR_INVALID_VALUE for what is none. Barriers and flushes are left out: commands of a stream are in order.
CUresult ToWire(const CUstreamBatchMemOpParams* operations, unsigned count, std::vector<cuda::StreamValue>* values);

CUstreamBatchMemOpParams FromWire(const cuda::StreamValue& value);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_STREAM_VALUES_H_
