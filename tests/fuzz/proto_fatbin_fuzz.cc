// SPDX-License-Identifier: Apache-2.0
// Module images: sizes and entries never reach beyond the input, whatever it claims.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "proto/facts/fatbin.h"

namespace {

using hawser::fatbin::Entry;
using hawser::fatbin::Reader;

/// Reads every byte of a text or payload, for the sanitizers; and checks that it lies within the input.
template <typename Range>
void Touch(const Range& range, const std::byte* begin, size_t size) {
  if (range.empty()) return;
  const auto* const first = reinterpret_cast<const std::byte*>(range.data());
  if (first < begin || range.size() > size || first + range.size() > begin + size) std::abort();
  std::byte sum{0};
  for (size_t i = 0; i < range.size(); ++i) sum ^= first[i];
  volatile std::byte sink = sum;
  static_cast<void>(sink);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto copy = std::make_unique<std::byte[]>(size);  // Its end is watched.
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::span<const std::byte> bytes(copy.get(), size);
  static_cast<void>(hawser::fatbin::Identify(bytes));
  const auto whole = hawser::fatbin::ImageBytes(copy.get(), size);
  if (whole.ok() && whole.value() > size) std::abort();

  Reader reader(bytes);
  if (!reader.Start().ok()) return 0;
  for (;;) {
    Entry entry;
    const auto more = reader.Next(&entry);
    if (!more.ok() || !more.value()) break;
    Touch(entry.payload, copy.get(), size);
    Touch(entry.name, copy.get(), size);
    Touch(entry.options, copy.get(), size);
    if (entry.Describe().empty()) std::abort();
  }
  return 0;
}
