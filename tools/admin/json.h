// SPDX-License-Identifier: Apache-2.0
// Messages of the control plane as JSON for people and scripts.
#ifndef HAWSER_TOOLS_ADMIN_JSON_H_
#define HAWSER_TOOLS_ADMIN_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace hawser::tools {

/// Every field under its name in the .proto file, numbers as numbers (Protobuf's own JSON writes 64 bits as strings),
/// enum values in lower case without their prefix, optional fields and messages that are absent as null.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_JSON_H_
