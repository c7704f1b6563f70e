// SPDX-License-Identifier: Apache-2.0
// The bulk channel, while transfers with and without a target are expected. Whatever comes, each is
// completed once, and no byte lands outside its target.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "server/worker/channel_bulk_receiver.h"
#include "tests/unit/server/fake_channel.h"

namespace {

constexpr size_t kTransfers = 4, kSize = 64, kGuard = 32;

struct Target {
  std::array<std::byte, kSize + kGuard> bytes;
  Target() { bytes.fill(std::byte{0x5c}); }
  void Check() const {
    for (size_t i = kSize; i < bytes.size(); ++i) {
      if (bytes[i] != std::byte{0x5c}) std::abort();
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hawser::server::ChannelBulkReceiver;
  hawser::server::FakeChannel channel;
  std::array<Target, kTransfers> targets;
  std::array<std::atomic<int>, kTransfers> done{};
  {
    ChannelBulkReceiver::Options options;
    options.staging_memory = 1u << 16;
    options.staging_patience = std::chrono::milliseconds(0);
    ChannelBulkReceiver receiver(&channel, options, [](const std::string&) {});
    channel.Feed(hawser::wire::AsBytes(data, size));
    for (size_t i = 0; i < kTransfers; ++i) {
      const bool known = i % 2 == 0;
      if (!receiver.Expect(i + 1, kSize, known ? targets[i].bytes.data() : nullptr, [&, i](int32_t) { ++done[i]; })) {
        std::abort();
      }
    }
    for (size_t i = 1; i < kTransfers; i += 2) receiver.SetTarget(i + 1, targets[i].bytes.data());
    channel.FeedEnd();
  }
  for (size_t i = 0; i < kTransfers; ++i) {
    targets[i].Check();
    if (done[i] != 1) std::abort();
  }
  return 0;
}
