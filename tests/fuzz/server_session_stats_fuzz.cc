// SPDX-License-Identifier: Apache-2.0
// A session's statistics, written by a worker that its guest took over: hawserd reads whatever is there within bounds,
// and what it shows is clean.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "server/admin/convert.h"
#include "server/session_stats.h"
#include "server/trace_collector.h"

using hawser::server::SessionStatsPage;
using hawser::server::TraceReader;
using hawser::server::TraceRingEvent;

namespace {

void MustBeClean(const std::string& text) {
  // Cleaning what is clean changes nothing.
  const std::string clean = hawser::server::admin::CleanText(text);
  if (hawser::server::admin::CleanText(clean) != clean) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Large, and all of its words are plain: what a worker can do to it is write bytes.
  static const std::unique_ptr<SessionStatsPage> page = std::make_unique<SessionStatsPage>();
  void* const raw = page.get();
  std::memset(raw, 0, sizeof(*page));
  // The first bytes say where in the page the rest is repeated.
  if (size < 4) return 0;
  uint32_t at = 0;
  std::memcpy(&at, data, sizeof(at));
  data += 4;
  size -= 4;
  auto* const bytes = static_cast<uint8_t*>(raw);
  // The reader was somewhere before.
  TraceReader reader;
  reader.SkipTo(page->ring);
  for (size_t i = 0; size != 0 && i < 64 * size; ++i) bytes[(at + i) % sizeof(*page)] = data[i % size];

  for (const auto& device : page->Devices()) {
    if (device.name.size() > SessionStatsPage::kDeviceName) std::abort();
    MustBeClean(device.name);
  }
  (void)(page->bytes_up() + page->bytes_down());
  for (int round = 0; round < 2; ++round) {
    uint64_t events = 0;
    (void)reader.Drain(page->ring, [&](TraceRingEvent&& event) {
      ++events;
      if (event.end_ns < event.begin_ns || event.name.size() > hawser::server::TraceRing::kNameBytes) std::abort();
      MustBeClean(event.name);
    });
    if (events > hawser::server::TraceRing::kSlots) std::abort();
  }
  return 0;
}
