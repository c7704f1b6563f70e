// SPDX-License-Identifier: Apache-2.0
#include "bench/opencl_suite.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "bench/catalogue.h"
#include "bench/local_server.h"
#include "bench/raw_transport.h"
#include "bench/temporary_directory.h"
#include "bench/worker_process.h"
#include "wire/endpoint.h"
#include "wire/socket.h"

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using wire::Code;
using wire::Result;
using wire::Status;
using wire::Transport;

constexpr std::chrono::seconds kCallTimeout{60};
// A quick run may not begin a round that would take it past its 40 s.
constexpr double kQuickSeconds = 36;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The native device, or the device as seen over one transport.
struct Side {
  std::optional<Transport> transport;  ///< Nothing: native.
  Environment environment;
  std::unique_ptr<WorkerProcess> worker;
};

class Suite {
 public:
  Suite(const SuiteOptions& options, const std::function<void(const std::string&)>& progress)
      : options_(options), progress_(progress) {}

  Result<OpenClResults> Run() {
    const auto begin = Clock::now();
    results_.date = UtcNow();
    results_.quick = options_.quick;
    results_.machine = MachineFacts::Read();
    if (Status s = MeasureRawTransports(); !s.ok()) return s;
    if (Status s = MakeSides(); !s.ok()) return s;
    for (Side& side : sides_) {
      if (Status s = Open(side); !s.ok()) return s;
    }
    const int wanted = options_.rounds > 0 ? options_.rounds : options_.quick ? 3 : 5;
    double longest = 0;
    for (int round = 0; round < wanted; ++round) {
      const auto round_begin = Clock::now();
      if (options_.quick && round > 0 && Seconds(round_begin - begin) + longest > kQuickSeconds) break;
      progress_("round " + std::to_string(round + 1) + " of " + std::to_string(wanted));
      if (Status s = Round(round); !s.ok()) return s;
      longest = std::max(longest, Seconds(Clock::now() - round_begin));
      results_.rounds = round + 1;
    }
    results_.seconds = Seconds(Clock::now() - begin);
    Finish(results_);
    return results_;
  }

 private:
  static constexpr const char* kToken = "the-benchmark-itself";

  Status MakeSides() {
    if (temporary_.path().empty()) return Status::FromErrno("making a temporary directory");
    Environment native = {{"POCL_CACHE_DIR", temporary_.path() + "/native-cache"}, {"HAWSER_SERVER", ""}};
    // Native means the system's platforms, even when this process was itself pointed at Hawser's.
    const char* vendors = std::getenv("OCL_ICD_VENDORS");
    if (vendors != nullptr && options_.icd_directory == vendors) native.emplace_back("OCL_ICD_VENDORS", "");
    sides_.push_back({std::nullopt, native, nullptr});
    if (options_.native_only) return Status::Ok();

    if (options_.server.empty()) {
      // One tenant, whatever the transport: what is measured is whoever is alone, and not how tenants share.
      const std::string config = temporary_.path() + "/hawserd.toml";
      std::ofstream(config) << "[tenants.bench]\ntoken = \"" << kToken << "\"\n";
      auto server =
          LocalServer::Start(options_.hawserd, temporary_.path(), std::chrono::seconds(20), {"--config", config});
      if (!server.ok()) return server.status();
      server_ = std::move(*server);
    }
    for (const Transport transport : options_.transports) {
      Side side;
      side.transport = transport;
      // A guest's own cache directory would hide what the server does, so there is none.
      side.environment = {{"OCL_ICD_VENDORS", options_.icd_directory},
                          {"HAWSER_SERVER", server_ ? server_->Uri(transport) : options_.server}};
      if (server_) side.environment.emplace_back("HAWSER_TOKEN", kToken);
      sides_.push_back(std::move(side));
      results_.transports.push_back(transport);
    }
    return Status::Ok();
  }

  static Result<std::unique_ptr<WorkerProcess>> Fresh(const SuiteOptions& options, const Side& side, json* facts,
                                                      bool silent = false) {
    Environment environment = side.environment;
    if (silent) environment.emplace_back("HAWSER_LOG_FILE", "/dev/null");
    auto worker = WorkerProcess::Start(options.worker, environment);
    if (!worker.ok()) return worker.status();
    auto opened = (*worker)->Call({{"measure", "open"}, {"device", options.device}}, kCallTimeout);
    if (!opened.ok()) {
      return Status(opened.status().code(), SideName(side) + ": " + opened.status().text());
    }
    if (facts != nullptr) *facts = *opened;
    return std::move(*worker);
  }

  static std::string SideName(const Side& side) {
    return side.transport ? "remote over " + std::string(TransportName(*side.transport)) : "native";
  }

  Status Open(Side& side) {
    json facts;
    auto worker = Fresh(options_, side, &facts);
    if (!worker.ok()) {
      // A guest of a far server may have no device of its own: then there is only the remote side.
      if (!side.transport && !options_.server.empty()) {
        results_.note = "this machine has no OpenCL device of its own, so there is no native side";
        return Status::Ok();
      }
      return worker.status();
    }
    side.worker = std::move(*worker);
    const std::string name = facts.value("name", std::string());
    if (results_.device.empty()) {
      results_.device = name;
      results_.device_version = facts.value("version", std::string());
    } else if (name != results_.device) {
      results_.note = "the remote device is '" + name + "', another one than the native '" + results_.device +
                      "': the ratios compare two devices";
    }
    return Status::Ok();
  }

  Row& RowOf(const RowSpec& spec) {
    for (Row& row : results_.rows) {
      if (row.spec.id == spec.id) return row;
    }
    results_.rows.push_back({spec, {}, std::nullopt, {}});
    return results_.rows.back();
  }

  void Record(const Side& side, const RowSpec& spec, const json& values, const std::string& key) {
    if (!IsChosen(options_.only, spec.id) || !values.contains(key)) return;
    if (!side.transport) {
      if (!spec.remote_only) RowOf(spec).native_rounds.push_back(values.at(key).get<double>());
    } else {
      RowOf(spec).remote[*side.transport].rounds.push_back(values.at(key).get<double>());
    }
  }

  /// The sides in the order of this round: every second round turns it round, so that neither always
  /// runs on the warmer machine.
  std::vector<Side*> Order(int round) {
    std::vector<Side*> order;
    for (Side& side : sides_) order.push_back(&side);
    if (round % 2 == 1) std::reverse(order.begin(), order.end());
    return order;
  }

  Status Round(int round) {
    for (const Measurement& measurement : Catalogue(options_.quick)) {
      const bool chosen = std::any_of(measurement.rows.begin(), measurement.rows.end(),
                                      [&](const auto& row) { return IsChosen(options_.only, row.second.id); });
      if (!chosen) continue;
      for (int block = 0; block < measurement.blocks; ++block) {
        for (Side* side : Order(round + block)) {
          if (side->worker == nullptr) continue;
          auto values = side->worker->Call(measurement.request, kCallTimeout);
          if (!values.ok()) return Status(values.status().code(), SideName(*side) + ": " + values.status().text());
          for (const auto& [key, spec] : measurement.rows) Record(*side, spec, *values, key);
        }
      }
    }
    if (Status s = BuildRound(round); !s.ok()) return s;
    if (Status s = NeighbourRound(round); !s.ok()) return s;
    return PreloadRound();
  }

  Status BuildRound(int round) {
    const BuildRows rows = ProgramBuildRows();
    if (!IsChosen(options_.only, rows.cold.id) && !IsChosen(options_.only, rows.cached.id)) return Status::Ok();
    // Each side its own text: the two may share the server's or the user's caches.
    std::map<const Side*, json> requests;
    for (Side* side : Order(round)) {
      if (side->worker == nullptr) continue;
      requests[side] = {{"measure", "build"}, {"constant", random_()}};
      if (Status s = Build(*side, requests[side], rows.cold, rows.cold_launch); !s.ok()) return s;
    }
    const int blocks = options_.quick ? 1 : 4;
    for (int block = 0; block < blocks; ++block) {
      for (Side* side : Order(round + block)) {
        if (side->worker == nullptr) continue;
        if (Status s = Build(*side, requests[side], rows.cached, rows.cached_launch); !s.ok()) return s;
      }
    }
    return Status::Ok();
  }

  /// In a process of its own.
  Status Build(const Side& side, const json& request, const RowSpec& build, const RowSpec& launch) {
    auto worker = Fresh(options_, side, nullptr);
    if (!worker.ok()) return worker.status();
    auto values = (*worker)->Call(request, kCallTimeout);
    if (!values.ok()) return Status(values.status().code(), SideName(side) + ": " + values.status().text());
    Record(side, build, *values, "build_ms");
    Record(side, launch, *values, "first_launch_ms");
    return Status::Ok();
  }

  /// What somebody notices whose neighbour goes wrong: the longest of the launches in a fifth of a second, in the
  /// middle of which it happens. Natively the neighbour is another process on the same machine, and nobody can send
  /// garbage.
  Status NeighbourRound(int round) {
    const NeighbourRows rows = StallRows();
    if (options_.native_only || !options_.server.empty()) return Status::Ok();
    // It takes longer than the time that is left in a quick run.
    if (options_.only.empty() && options_.quick) return Status::Ok();
    if (!IsChosen(options_.only, rows.killed.id) && !IsChosen(options_.only, rows.wild.id) &&
        !IsChosen(options_.only, rows.garbage.id)) {
      return Status::Ok();
    }
    for (int block = 0; block < 2; ++block) {
      for (Side* side : Order(round + block)) {
        if (side->worker == nullptr) continue;
        // What it has to tidy up of its own belongs to no neighbour: freeing 256 MiB takes 90 ms.
        auto settled = side->worker->Call({{"measure", "longest_finish"}, {"milliseconds", 20}}, kCallTimeout);
        if (!settled.ok()) return settled.status();
        auto killed = Fresh(options_, *side, nullptr, /*silent=*/true);
        if (!killed.ok()) return killed.status();
        auto warm = (*killed)->Call({{"measure", "launch_burst"}, {"iterations", 1000}}, kCallTimeout);
        if (!warm.ok()) return warm.status();
        Status s = Disturb(*side, rows.killed, [&] {
          if (Status sent = (*killed)->Send({{"measure", "launch_burst"}, {"iterations", 10000}}); !sent.ok())
            return sent;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          (*killed)->Kill();
          return Status::Ok();
        });
        if (!s.ok()) return s;
        auto wild = Fresh(options_, *side, nullptr, /*silent=*/true);
        if (!wild.ok()) return wild.status();
        if (auto ready = (*wild)->Call({{"measure", "prepare_wild"}}, kCallTimeout); !ready.ok()) return ready.status();
        s = Disturb(*side, rows.wild, [&] {
          auto code = (*wild)->Call({{"measure", "wild"}}, kCallTimeout);
          // Natively the process has ended. Remotely it is told.
          return side->transport ? code.status() : Status::Ok();
        });
        if (!s.ok()) return s;
        // Not in the time that counts: to make it takes longer than to send it.
        std::vector<uint32_t> garbage((1u << 20) / sizeof(uint32_t));
        for (uint32_t& word : garbage) word = random_();
        if (s = Disturb(*side, rows.garbage, [&] { return SendGarbage(*side, garbage); }); !s.ok()) return s;
      }
    }
    return Status::Ok();
  }

  template <typename Mishap>
  Status Disturb(Side& side, const RowSpec& row, Mishap&& mishap) {
    if (Status s = side.worker->Send({{"measure", "longest_finish"}, {"milliseconds", 200}}); !s.ok()) return s;
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    if (Status s = mishap(); !s.ok()) return Status(s.code(), SideName(side) + ": a neighbour: " + s.text());
    auto values = side.worker->Receive(kCallTimeout);
    if (!values.ok()) return Status(values.status().code(), SideName(side) + ": " + values.status().text());
    Record(side, row, *values, "longest_us");
    return Status::Ok();
  }

  Status SendGarbage(const Side& side, const std::vector<uint32_t>& garbage) {
    if (!side.transport) return Status::Ok();
    auto endpoint = wire::Endpoint::Parse(server_->Uri(*side.transport));
    if (!endpoint.ok()) return endpoint.status();
    auto connection = wire::Connect(*endpoint, wire::SocketUse::kCommand, std::chrono::seconds(5));
    if (!connection.ok()) return connection.status();
    const char* bytes = reinterpret_cast<const char*>(garbage.data());
    size_t left = garbage.size() * sizeof(uint32_t);
    // Until the server has had enough of it.
    while (left != 0) {
      const ssize_t count = ::send(connection->get(), bytes, left, MSG_NOSIGNAL);
      if (count <= 0) break;
      bytes += count, left -= static_cast<size_t>(count);
    }
    return Status::Ok();
  }

  /// The bare transports, before anything else runs: they need no server, only this machine.
  Status MeasureRawTransports() {
    if (options_.native_only || !options_.server.empty()) return Status::Ok();
    for (const Transport transport : options_.transports) {
      progress_("the bare " + std::string(TransportName(transport)) + " transport");
      auto raw = MeasureRaw(transport, /*through_channel=*/false, options_.quick);
      if (!raw.ok()) return raw.status();
      auto parked = MeasureParkedRoundTrip(transport, options_.quick);
      if (!parked.ok()) return parked.status();
      results_.raw[transport] = {raw->rtt_p50_us, raw->bulk_gib_s, *parked};
    }
    return Status::Ok();
  }

  Status PreloadRound() {
    const RowSpec spec = PreloadRow();
    if (options_.native_only || !IsChosen(options_.only, spec.id)) return Status::Ok();
    std::vector<double> without, with;
    for (int i = 0; i < (options_.quick ? 30 : 100); ++i) {
      for (const bool preload : {false, true}) {
        const auto begin = Clock::now();
        auto child = SpawnChild({"/bin/true"}, {{"LD_PRELOAD", preload ? options_.client_library : ""}}, -1, -1, -1);
        if (!child.ok()) return child.status();
        int status = 0;
        waitpid(*child, &status, 0);
        if (status != 0) return Status(Code::kInvalid, "/bin/true with the guest library preloaded failed");
        (preload ? with : without).push_back(Seconds(Clock::now() - begin) * 1e6);
      }
    }
    Row& row = RowOf(spec);
    row.native_rounds.insert(row.native_rounds.end(), without.begin(), without.end());
    for (const Transport transport : results_.transports) {
      auto& rounds = row.remote[transport].rounds;
      rounds.insert(rounds.end(), with.begin(), with.end());
    }
    return Status::Ok();
  }

  const SuiteOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  // Order of destruction: workers first, then the server, then the directory they live in.
  TemporaryDirectory temporary_;
  std::unique_ptr<LocalServer> server_;
  std::vector<Side> sides_;
  OpenClResults results_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace

Result<OpenClResults> RunOpenClSuite(const SuiteOptions& options,
                                     const std::function<void(const std::string&)>& progress) {
  // Writing to a worker that died must return an error.
  std::signal(SIGPIPE, SIG_IGN);
  Suite suite(options, progress);
  return suite.Run();
}

}  // namespace hawser::bench
