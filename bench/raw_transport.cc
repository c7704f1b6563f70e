// SPDX-License-Identifier: Apache-2.0
#include "bench/raw_transport.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/raw_stream.h"

namespace hawser::bench {
namespace {

using wire::Code;
using wire::Result;
using wire::SocketUse;
using wire::Status;
using wire::Transport;
using Clock = std::chrono::steady_clock;

constexpr size_t kPing = 64;
constexpr size_t kRecord = 100;
constexpr size_t kMessage = 1u << 20;
constexpr size_t kRecordsPerBatch = 100'000;
constexpr size_t kMessagesPerBatch = 64;
constexpr size_t kDone = 8;  ///< Bytes with which the child says that a batch has arrived.

/// Far longer than anybody spins.
constexpr std::chrono::milliseconds kSleep{4};

struct Amounts {
  size_t pings;
  size_t warm_pings;
  size_t batches;
};
constexpr Amounts kFull{20'000, 1'000, 21};
constexpr Amounts kQuick{4'000, 500, 7};

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

double Percentile(std::vector<double> values, double fraction) {
  const size_t at = std::min(values.size() - 1, static_cast<size_t>(fraction * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

bool Echo(RawStream& stream, size_t count) {
  std::array<std::byte, kPing> ping;
  for (size_t i = 0; i < count; ++i) {
    if (!stream.Read(ping) || !stream.Write(ping)) return false;
  }
  return true;
}

/// Takes batches of `bytes`, reading as much at a time as `buffer` holds, and confirms each.
bool Sink(RawStream& stream, size_t batches, size_t bytes, std::vector<std::byte>& buffer) {
  const std::array<std::byte, kDone> done{};
  for (size_t batch = 0; batch < batches; ++batch) {
    for (size_t left = bytes; left != 0;) {
      const size_t got = stream.ReadSome(std::span(buffer).first(std::min(buffer.size(), left)));
      if (got == 0) return false;
      left -= got;
    }
    if (!stream.Write(done)) return false;
  }
  return true;
}

/// Round trips, each timed.
Status Ping(RawStream& stream, const Amounts& amounts, RawResult* result) {
  std::array<std::byte, kPing> ping{};
  std::vector<double> micros;
  micros.reserve(amounts.pings);
  for (size_t i = 0; i < amounts.warm_pings + amounts.pings; ++i) {
    const Clock::time_point start = Clock::now();
    if (!stream.Write(ping) || !stream.Read(ping)) return Status(Code::kClosed, "the echoing process is gone");
    if (i >= amounts.warm_pings) micros.push_back(Seconds(Clock::now() - start) * 1e6);
  }
  result->rtt_p50_us = Percentile(micros, 0.50);
  result->rtt_p99_us = Percentile(micros, 0.99);
  return {};
}

/// Seconds per batch; the first batch, which touches the memory, does not count.
Result<double> Batches(RawStream& stream, size_t batches, const std::function<bool()>& send_batch) {
  std::vector<double> seconds;
  std::array<std::byte, kDone> done;
  for (size_t batch = 0; batch < batches + 1; ++batch) {
    const Clock::time_point start = Clock::now();
    if (!send_batch() || !stream.Read(done)) return Status(Code::kClosed, "the receiving process is gone");
    if (batch != 0) seconds.push_back(Seconds(Clock::now() - start));
  }
  return Percentile(seconds, 0.5);
}

/// Runs `child` in a forked process and `parent` here, each with its end of a new connection.
Status InTwoProcesses(Transport transport, bool through_channel, SocketUse use,
                      const std::function<bool(RawStream&)>& child, const std::function<Status(RawStream&)>& parent) {
  Result<std::unique_ptr<RawPair>> pair = MakeRawPair(transport, through_channel, use);
  if (!pair.ok()) return pair.status();
  const pid_t pid = ::fork();
  if (pid < 0) return Status::FromErrno("cannot start a process to measure against");
  if (pid == 0) {
    Result<std::unique_ptr<RawStream>> stream = (*pair)->Take(/*child=*/true);
    ::_exit(stream.ok() && child(**stream) ? 0 : 1);
  }
  Status status;
  {
    Result<std::unique_ptr<RawStream>> stream = (*pair)->Take(/*child=*/false);
    status = stream.ok() ? parent(**stream) : stream.status();
    if (!status.ok()) ::kill(pid, SIGKILL);
    int ended = 0;
    while (::waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    if (status.ok() && ended != 0) status = Status(Code::kClosed, "the process measured against failed");
  }
  return status;
}

/// Answers `count` pings when the other end sleeps, each with the nanoseconds that it took its time.
bool EchoLater(RawStream& stream, size_t count) {
  std::array<std::byte, kPing> ping;
  for (size_t i = 0; i < count; ++i) {
    if (!stream.Read(ping)) return false;
    const Clock::time_point start = Clock::now();
    std::this_thread::sleep_for(kSleep);
    const int64_t nanoseconds = (Clock::now() - start) / std::chrono::nanoseconds(1);
    std::memcpy(ping.data(), &nanoseconds, sizeof(nanoseconds));
    if (!stream.Write(ping)) return false;
  }
  return true;
}

}  // namespace

Result<double> MeasureParkedRoundTrip(Transport transport, bool quick) {
  const size_t count = quick ? 15 : 60;
  std::vector<double> micros;
  const Status status = InTwoProcesses(
      transport, /*through_channel=*/true, SocketUse::kCommand,
      [&](RawStream& stream) { return EchoLater(stream, count); },
      [&](RawStream& stream) -> Status {
        std::array<std::byte, kPing> ping{};
        for (size_t i = 0; i < count; ++i) {
          std::this_thread::sleep_for(kSleep);
          const Clock::time_point start = Clock::now();
          if (!stream.Write(ping) || !stream.Read(ping)) return Status(Code::kClosed, "the echoing process is gone");
          const Clock::duration all = Clock::now() - start;
          int64_t away = 0;
          std::memcpy(&away, ping.data(), sizeof(away));
          micros.push_back((Seconds(all) - static_cast<double>(away) * 1e-9) * 1e6);
        }
        return {};
      });
  if (!status.ok()) return status;
  return Percentile(micros, 0.5);
}

Result<RawResult> MeasureRaw(Transport transport, bool through_channel, bool quick) {
  const Amounts& amounts = quick ? kQuick : kFull;
  RawResult result;
  Status status = InTwoProcesses(
      transport, through_channel, SocketUse::kCommand,
      [&](RawStream& stream) {
        std::vector<std::byte> buffer(64u << 10);  // As a FrameReader reads.
        return Echo(stream, amounts.warm_pings + amounts.pings) &&
               Sink(stream, amounts.batches + 1, kRecordsPerBatch * kRecord, buffer);
      },
      [&](RawStream& stream) -> Status {
        if (Status ping = Ping(stream, amounts, &result); !ping.ok()) return ping;
        const std::array<std::byte, kRecord> record{};
        Result<double> seconds = Batches(stream, amounts.batches, [&] {
          for (size_t i = 0; i < kRecordsPerBatch; ++i) {
            if (!stream.WriteRecord(record)) return false;
          }
          return stream.Flush();
        });
        if (!seconds.ok()) return seconds.status();
        result.record_ns = *seconds / kRecordsPerBatch * 1e9;
        return {};
      });
  if (!status.ok()) return status;
  status = InTwoProcesses(
      transport, through_channel, SocketUse::kBulk,
      [&](RawStream& stream) {
        std::vector<std::byte> buffer(kMessage);
        return Sink(stream, amounts.batches + 1, kMessagesPerBatch * kMessage, buffer);
      },
      [&](RawStream& stream) -> Status {
        // Several sources in turn, so that the last level of cache does not flatter the result.
        std::vector<std::vector<std::byte>> messages(4, std::vector<std::byte>(kMessage, std::byte{1}));
        Result<double> seconds = Batches(stream, amounts.batches, [&] {
          for (size_t i = 0; i < kMessagesPerBatch; ++i) {
            if (!stream.Write(messages[i % messages.size()])) return false;
          }
          return true;
        });
        if (!seconds.ok()) return seconds.status();
        result.bulk_gib_s = static_cast<double>(kMessagesPerBatch * kMessage) / *seconds / double(1u << 30);
        return {};
      });
  if (!status.ok()) return status;
  return result;
}

}  // namespace hawser::bench
