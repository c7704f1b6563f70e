// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/api.h"
#include "proto/cuda/opcodes.h"
#include "proto/cuda/trace.h"

namespace hawser::guest {

const Api& CudaApi() {
  static constexpr Api kApi{wire::Api::kCuda,
                            cuda::kProtocolVersion,
                            cuda::kDescriptionHash,
                            static_cast<uint16_t>(cuda::Opcode::kSessionLost),
                            "CUDA_ERROR_DEVICE_UNAVAILABLE",
                            [](uint16_t opcode) { return cuda::OpcodeName(opcode); },
                            &cuda::Trace};
  return kApi;
}

}  // namespace hawser::guest
