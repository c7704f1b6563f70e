// SPDX-License-Identifier: Apache-2.0
// The first bytes of a connection, in pieces whose sizes the input chooses.
#include <algorithm>
#include <cstdlib>

#include "server/hello_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + data[0] % 64;
  hawser::wire::Bytes rest = hawser::wire::AsBytes(data + 1, size - 1);
  hawser::server::HelloReader reader;
  while (!rest.empty() && !reader.complete()) {
    const size_t wanted = reader.wanted();
    if (wanted == 0 || reader.received() + wanted > hawser::server::kMaxHello) std::abort();
    const size_t part = std::min({piece, wanted, rest.size()});
    if (!reader.Add(rest.first(part)).ok()) return 0;
    rest = rest.subspan(part);
  }
  if (reader.complete() && (reader.greeting().token.size() > 1024 || reader.greeting().program.size() > 256)) {
    std::abort();
  }
  return 0;
}
