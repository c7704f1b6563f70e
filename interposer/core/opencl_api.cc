// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/api.h"
#include "proto/opencl/opcodes.h"
#include "proto/opencl/trace.h"

namespace hawser::guest {

const Api& OpenClApi() {
  static constexpr Api kApi{wire::Api::kOpenCl,
                            opencl::kProtocolVersion,
                            opencl::kDescriptionHash,
                            static_cast<uint16_t>(opencl::Opcode::kSessionLost),
                            "CL_DEVICE_NOT_AVAILABLE",
                            [](uint16_t opcode) { return opencl::OpcodeName(opcode); },
                            &opencl::Trace};
  return kApi;
}

}  // namespace hawser::guest
