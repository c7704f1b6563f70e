// SPDX-License-Identifier: Apache-2.0
// Object files and archives: the fatbins that are found lie within the input, whatever it claims.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "proto/facts/host_object.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto copy = std::make_unique<std::byte[]>(size);  // Its end is watched.
  if (size != 0) std::memcpy(copy.get(), data, size);
  const auto found = hawser::fatbin::FindFatbins({copy.get(), size});
  if (!found.ok()) return 0;
  if (found.value().empty() || found.value().size() > hawser::fatbin::kMaxObjectFatbins) std::abort();
  std::byte sum{0};
  for (const auto& fatbin : found.value()) {
    if (fatbin.data() < copy.get() || fatbin.size() > size || fatbin.data() + fatbin.size() > copy.get() + size) {
      std::abort();
    }
    for (const std::byte byte : fatbin) sum ^= byte;
  }
  volatile std::byte sink = sum;
  static_cast<void>(sink);
  return 0;
}
