// SPDX-License-Identifier: Apache-2.0
// What the scheduler and a policy's own process share: a page that only the scheduler can write, and one that the
// policy's process writes.
//
// They take turns. The scheduler writes a request and then raises `turn`; the process answers on its page and then
// raises its own `turn` to the same number. An answer may be a question of its own (a setting, a line for the log);
// then the scheduler's next request is the answer to that. Whoever waits says so in `asleep` of the page that it can
// write, and the other then wakes it: a futex on `turn`.
//
// Trust: the process is not trusted. Its page is sealed, so it cannot shrink; whatever is on it is copied once, by
// CopyOut(), and only the copy is looked at. The scheduler's page is mapped for reading in the process, and the memory
// is sealed against any later mapping for writing. Both sides are of one build (`version` is checked), so the structs
// are plain.
#ifndef HAWSER_SCHEDULER_ISOLATED_PAGE_H_
#define HAWSER_SCHEDULER_ISOLATED_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hawser/policy.h"

namespace hawser::scheduler {

inline constexpr uint64_t kPageVersion = 0x6877'7370'0000'0001;  ///< Another layout, another number.
/// Descriptors on which the process finds the pages.
inline constexpr int kRequestFd = 3;
inline constexpr int kReplyFd = 4;

inline constexpr size_t kMostTenants = 4096;
inline constexpr size_t kMostRequestText = 4096;
inline constexpr size_t kMostReplyText = 65536;  ///< As much as the policy host takes of a dump().

/// What the scheduler wants.
enum class Ask : uint32_t {
  kLoad = 1,  ///< The plugin's file, from now on. The process then gives up what it needed for that.
  kEntry,     ///< hawser_policy_entry_v1()
  kInit,
  kFini,
  kTenantAdd,
  kTenantDel,
  kTenantConfig,
  kRunnable,
  kIdle,
  kSelect,
  kCharged,
  kPreempt,
  kOnTimer,
  kStage,
  kMemoryVictim,
  kMemoryWinner,
  kDump,
  kSetting,  ///< The answer to Answer::kSetting.
  kLogged,   ///< The answer to Answer::kLog.
};

/// What the process says.
enum class Answer : uint32_t {
  kDone = 1,  ///< What was asked is done.
  kRefused,   ///< To kLoad and kEntry: the text says why.
  kSetting,   ///< hawser_host.cfg(): the text is the key.
  kLog,       ///< hawser_host.log(): the text is the line.
};

/// A tenant is named by its place in the table of the request, from 1. 0 is nobody.
using Place = uint32_t;
inline constexpr Place kStranger = UINT32_MAX;  ///< A pointer that is no tenant's.

struct SharedTenant {
  uint64_t has_work = 0;
  hawser_tenant_view view{};  ///< `id` says who it is, also from one request to the next.
};

struct Request {
  Ask ask{};
  uint32_t tenants = 0;  ///< In the table.
  uint64_t now_ns = 0;
  Place tenant = 0;
  Place other = 0;
  uint64_t amount = 0;  ///< Nanoseconds or bytes.
  uint32_t why = 0;
  uint32_t text_size = 0;  ///< UINT32_MAX: no text.
  hawser_tenant_cfg config{};
};

/// Which callbacks a policy has: Reply::callbacks, bit by Ask.
constexpr uint64_t CallbackBit(Ask ask) { return uint64_t{1} << static_cast<uint32_t>(ask); }

struct Reply {
  static constexpr uint32_t kTimerSet = 1;
  static constexpr uint32_t kRevoked = 2;

  Answer answer{};
  int32_t result = 0;
  Place tenant = 0;  ///< Decided for, staged, victim, winner.
  uint32_t decision_size = 0;
  uint32_t flags = 0;  ///< Of the decision.
  uint32_t effects = 0;
  uint64_t slice_ns = 0, inflight_cap_ns = 0, unit_ns = 0, linger_ns = 0, wait_ns = 0;
  uint64_t timer_ns = 0;
  Place revoked = 0;
  uint32_t text_size = 0;
  uint64_t length = 0;  ///< What dump() returned.
  uint64_t callbacks = 0;
  uint32_t abi_minor = 0;
  int32_t level = 0;  ///< Of a line for the log.
};
static_assert(sizeof(Reply) % 8 == 0);

struct RequestPage {
  uint64_t version = kPageVersion;
  alignas(64) std::atomic<uint32_t> turn{0};
  alignas(64) std::atomic<uint32_t> asleep{0};  ///< The scheduler waits for the reply's turn.
  alignas(64) Request request;
  char text[kMostRequestText] = {};
  SharedTenant tenants[kMostTenants];
};

struct ReplyPage {
  alignas(64) std::atomic<uint32_t> turn{0};
  alignas(64) std::atomic<uint32_t> asleep{0};  ///< The process waits for the request's turn.
  alignas(64) Reply reply;
  alignas(8) char text[kMostReplyText] = {};
};

/// Copies memory that somebody else may be writing, whole words, each read once. `from` and `to` are aligned to 8.
inline void CopyOut(const void* from, void* to, size_t size) {
  const auto* words = static_cast<const uint64_t*>(from);
  auto* out = static_cast<unsigned char*>(to);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = __atomic_load_n(words + at / sizeof(uint64_t), __ATOMIC_RELAXED);
    __builtin_memcpy(out + at, &word, size - at < sizeof(word) ? size - at : sizeof(word));
  }
}

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_PAGE_H_
