// SPDX-License-Identifier: Apache-2.0
// Addresses: whatever is accepted prints as an address that is accepted and means the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/endpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hawser::wire::Endpoint;
  const auto first = Endpoint::Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!first.ok()) {
    if (first.status().text().empty() || first.status().text().size() > 1000) std::abort();
    return 0;
  }
  const auto second = Endpoint::Parse(first.value().ToString());
  if (!second.ok()) std::abort();
  const Endpoint& a = first.value();
  const Endpoint& b = second.value();
  if (a.transport != b.transport || a.path != b.path || a.host != b.host || a.cid != b.cid || a.port != b.port) {
    std::abort();
  }
  return 0;
}
