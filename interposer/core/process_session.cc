// SPDX-License-Identifier: Apache-2.0
// The one session of a process: made on first use, abandoned in a child of fork().
//
// Locks: g_connect (only while there is no session). A child of fork() starts with a fresh one, because the thread
// that held it does not exist there. Everything here is trivially destructible: threads may still call during exit().
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <new>
#include <string>

#include "interposer/core/log.h"
#include "interposer/core/session.h"
#include "interposer/core/session_builder.h"
#include "interposer/core/stats_file.h"

namespace hawser::guest {
namespace {

using Clock = std::chrono::steady_clock;

/// Programs ask for platforms again and again; an unreachable server is asked at most so often.
constexpr std::chrono::seconds kRetry{1};

/// Used under g_connect.
struct Attempts {
  Clock::time_point next{};  ///< Not before.
  size_t said = 0;           ///< Hash of the last failure's text, so that each is said once.
};

/// Sessions of ancestors, which this process can neither use nor destroy.
struct Abandoned {
  Session* session;
  Abandoned* next;
};

std::atomic<Session*> g_session{nullptr};
std::mutex g_connect;
Attempts g_attempts;
Abandoned* g_abandoned = nullptr;
bool g_watching_forks = false;

void StartAfreshInChild() {
  if (Session* session = g_session.exchange(nullptr, std::memory_order_acq_rel)) {
    SessionBuilder::AbandonAfterFork(session);
    g_abandoned = new Abandoned{session, g_abandoned};
  }
  ForgetStatsAfterFork();
  new (&g_connect) std::mutex;
  g_attempts = {};
}

std::string Advice(const wire::Status& status, const std::string& server) {
  switch (status.code()) {
    case wire::Code::kInvalid:
      return "Correct $HAWSER_SERVER, for example unix:/run/hawser.sock or tcp:host:9700";
    case wire::Code::kRefused:
      return "No remote device is offered";
    default: {
      // A server listens on the socket that a shm: client connects to.
      const std::string listen = server.rfind("shm:", 0) == 0 ? "unix:" + server.substr(4) : server;
      return "Start a server there (hawser serve --listen " + listen + "), or unset HAWSER_SERVER to do without";
    }
  }
}

Session* ConnectNow(const Api& api) {
  const Environment environment = Environment::Read(api);
  if (environment.server.empty() || environment.in_worker) return nullptr;
  std::lock_guard lock(g_connect);
  if (Session* session = g_session.load(std::memory_order_acquire)) return session;
  if (!g_watching_forks) g_watching_forks = ::pthread_atfork(nullptr, nullptr, &StartAfreshInChild) == 0;
  if (Clock::now() < g_attempts.next) return nullptr;
  wire::Result<Session*> session = SessionBuilder::Connect(environment);
  if (!session.ok()) {
    g_attempts.next = Clock::now() + kRetry;
    const std::string text = "cannot use the server $HAWSER_SERVER=" + environment.server + ": " +
                             session.status().text() + ". " + Advice(session.status(), environment.server);
    const size_t hash = std::hash<std::string>()(text);
    if (hash != g_attempts.said) Log(LogLevel::kError, "%s", text.c_str());
    g_attempts.said = hash;
    return nullptr;
  }
  WriteStatsAtExit(environment.stats_file, &(*session)->stats());
  g_session.store(*session, std::memory_order_release);
  return *session;
}

}  // namespace

Session* Session::Current(const Api& api) {
  Session* session = g_session.load(std::memory_order_acquire);
  return session != nullptr ? session : ConnectNow(api);
}

Session* Session::IfConnected() { return g_session.load(std::memory_order_acquire); }

}  // namespace hawser::guest
