// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them.
#ifndef HAWSER_SERVER_SIZE_H_
#define HAWSER_SERVER_SIZE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace hawser::server {

/// "4GiB", "512 MiB", "64KiB", "1000": bytes. nullopt when it is none of these or too large.
std::optional<uint64_t> ParseSize(std::string_view text);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_SIZE_H_
