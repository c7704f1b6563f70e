// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/graph_memory.h"

namespace hawser::cu {

CUresult CaptureWrite(StreamCommand&, CUdeviceptr, const HostRegion&) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult CaptureRead(StreamCommand&, CUdeviceptr, const HostRegion&) { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace hawser::cu
