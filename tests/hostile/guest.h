// SPDX-License-Identifier: Apache-2.0
// A guest that sends any commands in any order to a backend: all of a description's, with values at random of which
// many name something that exists. A backend may refuse them; it must not crash, not hang, and no command may keep the
// executor.
#ifndef HAWSER_TESTS_HOSTILE_GUEST_H_
#define HAWSER_TESTS_HOSTILE_GUEST_H_

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "proto/seeds.h"
#include "server/worker/session_backend.h"
#include "tests/hostile/moody_gate.h"
#include "tests/hostile/random_values.h"
#include "tests/hostile/services.h"
#include "tests/hostile/sessions.h"

namespace hawser::hostile {

/// One session. One thread, as the executor is.
class Guest {
 public:
  virtual ~Guest() = default;
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  void Run();

 protected:
  explicit Guest(const Plan& plan) : values_(plan.seed), plan_(plan), random_(plan.seed + 1), heap_(1u << 20) {}

  /// To be called by the constructor of whoever has one. `heap`: the guest shares memory. Half of all sessions share
  /// the device.
  void Take(std::unique_ptr<server::SessionBackend> backend, bool heap);

  /// As an honest guest begins, so that there is something to name.
  virtual void Begin() = 0;
  /// All that a guest can send, filled from the sink's values.
  virtual void AddCalls(proto::SeedSink& sink) = 0;
  /// A command for people.
  virtual std::string Text(uint16_t opcode, wire::Bytes payload) = 0;
  /// How many of this kind are among what is sent next: 0, 1 or 2.
  virtual int Copies(const proto::Seed& seed) = 0;
  /// Each answer and each notice.
  virtual void Hear(const Answer& answer) = 0;

  template <typename Message>
  void Do(const char* name, uint16_t opcode, const Message& message) {
    std::vector<std::byte> payload(message.SizeOf());
    wire::Writer writer(payload.data(), payload.size());
    message.Encode(writer);
    Send(name, opcode, payload);
  }
  /// Until what was sent last is answered, or a second is over.
  void AwaitAnswer();
  [[noreturn]] static void Stop(int status, const std::string& why);

  RandomValues values_;

 private:
  /// One command, and what may happen beside it. One that is malformed ends a session, and changed nothing: here it
  /// goes on.
  void Send(std::string_view name, uint16_t opcode, const std::vector<std::byte>& payload);
  std::vector<proto::Seed> Calls();
  void HearAll();

  const Plan plan_;
  std::mt19937_64 random_;
  std::vector<std::byte> heap_;
  KeptReplies replies_;
  LateData data_;
  ReadData reader_;
  std::unique_ptr<server::SessionBackend> backend_;
  uint64_t seq_ = 0, answered_ = 0;
};

}  // namespace hawser::hostile

#endif  // HAWSER_TESTS_HOSTILE_GUEST_H_
