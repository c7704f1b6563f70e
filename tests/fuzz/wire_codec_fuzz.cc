// SPDX-License-Identifier: Apache-2.0
// The bounded reader: the input is a list of one-byte instructions and the bytes they read. No view
// ever leaves the input, and after an error everything is empty.
#include <cstdint>
#include <cstdlib>

#include "wire/codec.h"

namespace {

using hawser::wire::Bytes;
using hawser::wire::Reader;

struct Item {
  uint8_t tag = 0;
  Bytes bytes;
  void Decode(Reader& reader) {
    tag = reader.Get<uint8_t>();
    bytes = reader.GetBytes(64);
  }
};

void MustBeWithin(Bytes view, Bytes whole) {
  if (view.empty()) return;
  if (view.data() < whole.data() || view.data() + view.size() > whole.data() + whole.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes whole = hawser::wire::AsBytes(data, size);
  Reader reader(whole);
  uint64_t sum = 0;
  while (!reader.failed() && reader.remaining() != 0) {
    switch (reader.Get<uint8_t>() % 8) {
      case 0:
        sum += reader.Get<uint16_t>();
        break;
      case 1:
        sum += reader.Get<uint64_t>();
        break;
      case 2:
        MustBeWithin(reader.GetBytes(), whole);
        break;
      case 3:
        MustBeWithin(reader.GetBytes(16), whole);
        break;
      case 4:
        MustBeWithin(hawser::wire::AsBytes(reader.GetString(100)), whole);
        break;
      case 5: {
        const auto view = reader.GetArray<uint64_t>(1000);
        for (size_t i = 0; i < view.size(); ++i) sum += view[i];
        MustBeWithin(Bytes(view.raw(), view.byte_size()), whole);
        break;
      }
      case 6: {
        const auto view = reader.GetArray<uint8_t>();
        for (size_t i = 0; i < view.size(); ++i) sum += view[i];
        break;
      }
      default: {
        hawser::wire::ListView<Item> list;
        list.Decode(reader, 1000);
        uint32_t visited = 0;
        list.ForEach([&](const Item& item) {
          ++visited;
          MustBeWithin(item.bytes, whole);
        });
        if (visited != list.size()) std::abort();
        break;
      }
    }
  }
  if (reader.failed() && (reader.remaining() != 0 || reader.Get<uint64_t>() != 0 || !reader.GetBytes().empty())) {
    std::abort();
  }
  [[maybe_unused]] volatile uint64_t keep = sum;  // The reads above must happen.
  return 0;
}
