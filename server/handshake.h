// SPDX-License-Identifier: Apache-2.0
// The first frames of a connection, as both hawserd and its workers write them.
#ifndef HAWSER_SERVER_HANDSHAKE_H_
#define HAWSER_SERVER_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/session/messages.h"
#include "wire/frame.h"

namespace hawser::server {

using wire::kHelloOpcode;
using wire::kWelcomeOpcode;
inline constexpr uint32_t kMagic = 0x52535748;  // "HWSR"
/// Header and payload of a Hello together are never larger.
inline constexpr size_t kMaxHello = 4096;

/// A whole frame; fills in magic, version and description.
std::vector<std::byte> WelcomeFrame(session::Welcome welcome);
/// A welcome that is none.
std::vector<std::byte> RefusalFrame(const std::string& why);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_HANDSHAKE_H_
