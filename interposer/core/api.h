// SPDX-License-Identifier: Apache-2.0
// What the session must know of the API whose calls it carries. A guest library links only its own.
#ifndef HAWSER_INTERPOSER_CORE_API_H_
#define HAWSER_INTERPOSER_CORE_API_H_

#include <cstdint>
#include <string>

#include "wire/api.h"
#include "wire/codec.h"

namespace hawser::guest {

/// Static storage.
struct Api {
  wire::Api number;  ///< As the greeting says it.
  uint32_t version;  ///< kProtocolVersion and kDescriptionHash of its description.
  uint64_t description;
  uint16_t session_lost;       ///< The notice that ends a session; its first field is the reason.
  const char* lost_code_name;  ///< What calls return once the session is over, as people know it.
  const char* (*opcode_name)(uint16_t opcode);
  std::string (*trace)(uint16_t opcode, wire::Bytes payload);
};

const Api& OpenClApi();
const Api& CudaApi();

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_API_H_
