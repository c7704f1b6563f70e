// SPDX-License-Identifier: Apache-2.0
// What workers tell hawserd of memory and events that their guests share with other processes of the tenant, and what
// it answers: packets of fixed size on a pair of sockets, one for each worker. The worker asks and waits. Memory in
// chunks comes with descriptors, which travel with the packets that name it (export_packet.h).
//
// A guest never sees a driver's handle, only the token that hawserd gives out for it; and hawserd knows whose worker
// asks by the socket, whatever the packet says.
#ifndef HAWSER_SERVER_EXPORTED_H_
#define HAWSER_SERVER_EXPORTED_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace hawser::server {

using ExportToken = std::array<std::byte, 64>;

enum class ExportKind : uint32_t { kMemory = 1, kEvent = 2 };

/// Of a driver, for the same driver in another worker.
struct ExportedThing {
  std::array<std::byte, 64> handle{};
  uint64_t size = 0;         ///< Bytes; 0 for an event.
  uint64_t driver = 0;       ///< Which driver the handle is of: others could make anything of it.
  uint32_t descriptors = 0;  ///< Memory in chunks: as many as it has, in order; the handle says how they lie.
  uint32_t unused = 0;

  bool operator==(const ExportedThing&) const = default;
};

/// The most that one thing has.
inline constexpr size_t kMaxExportedDescriptors = 128;

enum class ExportAction : uint32_t { kPublish = 1, kFind = 2, kWithdraw = 3 };

struct ExportRequest {
  ExportAction action = ExportAction::kFind;
  ExportKind kind = ExportKind::kMemory;
  ExportToken token{};  ///< Not for kPublish.
  ExportedThing thing;  ///< For kPublish.
};

enum class ExportVerdict : uint32_t {
  kOk = 0,
  kUnknown = 1,  ///< No such token; or it is another tenant's, which is not told.
  kOwn = 2,      ///< It is of the session that asks.
  kFull = 3,     ///< The session has given out as many as it may, or hawserd cannot keep what came.
};

struct ExportReply {
  ExportVerdict verdict = ExportVerdict::kUnknown;
  uint32_t unused = 0;
  ExportToken token{};  ///< Of kPublish.
  ExportedThing thing;  ///< Of kFind.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_EXPORTED_H_
