// SPDX-License-Identifier: Apache-2.0
// What hawser-policy-host might become once its plugin has taken it over: it is started in its place, is told by the
// policy's "name" what to do, and does not keep to anything.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "scheduler/isolated/page.h"
#include "wire/futex.h"

namespace {

using namespace hawser::scheduler;  // NOLINT: a program of one file.

RequestPage* in = nullptr;
ReplyPage* out = nullptr;
uint32_t turn = 0;

void Wait() {
  auto& word = in->turn;
  out->asleep.store(1);
  while (word.load() == turn) hawser::wire::FutexWait(word, turn, std::chrono::seconds(1));
  out->asleep.store(0);
  ++turn;
}

void Post(const Reply& reply) {
  out->reply = reply;
  out->turn.store(turn);
  hawser::wire::FutexWake(out->turn);
}

/// An ordinary beginning, so that what is tried is tried on a policy in charge.
void BeginWell() {
  for (int i = 0; i < 2; ++i) {
    Wait();
    Reply reply;
    reply.answer = Answer::kDone;
    const std::string name = "rogue\n1";
    std::memcpy(out->text, name.data(), name.size());
    reply.text_size = static_cast<uint32_t>(name.size());
    reply.callbacks = UINT64_MAX & ~CallbackBit(Ask::kInit);
    Post(reply);
  }
}

/// The first with work.
Reply Good() {
  Reply reply;
  reply.answer = Answer::kDone;
  reply.decision_size = sizeof(hawser_decision);
  for (uint32_t i = 0; i < in->request.tenants && reply.tenant == 0; ++i) {
    if (in->tenants[i].has_work != 0) reply.tenant = i + 1;
  }
  if (in->request.ask == Ask::kPreempt) reply.result = 0;
  return reply;
}

[[noreturn]] void Random(uint64_t seed) {
  std::mt19937_64 random(seed);
  if (seed % 2 == 0) BeginWell();
  while (true) {
    Wait();
    Reply reply = Good();
    const uint64_t how = random() % 8;
    auto* bytes = reinterpret_cast<unsigned char*>(&reply);
    if (how == 0) {
      for (size_t i = 0; i < sizeof(reply); ++i) bytes[i] = static_cast<unsigned char>(random());
    } else if (how < 4) {
      bytes[random() % sizeof(reply)] = static_cast<unsigned char>(random());
    }
    if (random() % 4 == 0) {
      for (int i = 0; i < 64; ++i) out->text[random() % kMostReplyText] = static_cast<char>(random());
    }
    Post(reply);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  const std::string_view what = argv[1];
  if (what == "ends") return 7;
  if (what == "shrinks" && (::ftruncate(kRequestFd, 0) == 0 || ::ftruncate(kReplyFd, 0) == 0)) return 8;
  // The scheduler's page cannot be mapped for writing, however it is asked for.
  if (::mmap(nullptr, sizeof(RequestPage), PROT_READ | PROT_WRITE, MAP_SHARED, kRequestFd, 0) != MAP_FAILED) return 9;
  in = static_cast<RequestPage*>(::mmap(nullptr, sizeof(RequestPage), PROT_READ, MAP_SHARED, kRequestFd, 0));
  out = static_cast<ReplyPage*>(::mmap(nullptr, sizeof(ReplyPage), PROT_READ | PROT_WRITE, MAP_SHARED, kReplyFd, 0));
  if (in == MAP_FAILED || out == MAP_FAILED) return 10;
  if (what == "silent") {
    while (true) ::pause();
  }
  if (what.starts_with("random-")) Random(std::strtoull(argv[1] + 7, nullptr, 10));
  BeginWell();
  for (int step = 0;; ++step) {
    Wait();
    Reply reply = Good();
    if (step >= 20) {
      if (what == "wrong-turn") turn += 5;
      if (what == "no-answer") reply.answer = static_cast<Answer>(99);
      if (what == "refuses") reply.answer = Answer::kRefused;
      if (what == "long-text") reply.text_size = kMostReplyText + 1;
      if (what == "stranger") reply.tenant = 4000;
      if (what == "far-stranger") reply.tenant = kStranger - 1;
      if (what == "revokes") reply.effects = ~Reply::kTimerSet, reply.revoked = 4000;
      if (what == "asks-for-ever") reply.answer = Answer::kSetting, reply.text_size = 4;
      if (what == "says-it-sleeps") out->asleep.store(1);
      if (what == "turns-for-ever") {
        while (true) out->turn.fetch_add(7);
      }
      if (what == "stops-reading") {
        Post(reply);
        while (true) ::pause();
      }
    }
    Post(reply);
  }
}
