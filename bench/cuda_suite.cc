// SPDX-License-Identifier: Apache-2.0
#include "bench/cuda_suite.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "bench/catalogue.h"
#include "bench/local_server.h"
#include "bench/raw_transport.h"
#include "bench/temporary_directory.h"
#include "bench/worker_process.h"

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using wire::Result;
using wire::Status;
using wire::Transport;

constexpr std::chrono::seconds kCallTimeout{120};
constexpr size_t kKiB = 1u << 10, kMiB = 1u << 20;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

int Repetitions(size_t size, bool quick) {
  const size_t wanted = (quick ? 32 : 64) * kMiB / size;
  return static_cast<int>(std::clamp<size_t>(wanted, quick ? 2 : 1, 300));
}

/// How often each side copies so much in a round, one side after the other and each time in other memory: where the
/// pages lie alone makes a copy 10 % faster or slower.
int Blocks(size_t size, bool quick) {
  if (quick) return 1;
  return size <= 16 * kMiB ? 4 : 2;
}

std::vector<Measurement> CudaCatalogue(bool quick) {
  const int many = quick ? 500 : 3000;
  std::vector<Measurement> list;
  list.push_back({{{"measure", "launch_sync"}, {"iterations", many}},
                  {{"p50_us", {"cuda_launch_sync_p50", "launch + synchronize, p50", "us"}},
                   {"p99_us", {"cuda_launch_sync_p99", "launch + synchronize, p99", "us"}}}});
  list.push_back({{{"measure", "launch_burst"}, {"iterations", quick ? 5000 : 10000}},
                  {{"launches_per_s", {"cuda_burst_rate", "many launches, then synchronize", "1/s", Better::kHigher}},
                   {"enqueue_us", {"cuda_burst_enqueue", "the guest's part of such a launch", "us"}}}});
  list.push_back({{{"measure", "events"}, {"iterations", quick ? 2000 : 10000}},
                  {{"record_us", {"cuda_event_record", "recording an event", "us"}},
                   {"query_us", {"cuda_event_query", "querying a complete event", "us"}}}});
  list.push_back({{{"measure", "read_small"}, {"iterations", many}},
                  {{"p50_us", {"cuda_read_small_p50", "4-byte read, p50", "us"}},
                   {"p99_us", {"cuda_read_small_p99", "4-byte read, p99", "us"}}}});
  list.push_back({{{"measure", "step"}, {"iterations", quick ? 100 : 500}},
                  {{"p50_us", {"cuda_step_p50", "50 launches, 4 copies, 2 events, 1 wait, p50", "us"}}}});
  list.push_back({{{"measure", "allocate_free"}, {"iterations", quick ? 500 : 3000}},
                  {{"pair_us", {"cuda_malloc_free", "cuMemAlloc and cuMemFree of 1 MiB", "us"}}}});
  for (const int streams : {1, 4}) {
    const std::string number = std::to_string(streams);
    list.push_back({{{"measure", "streams"}, {"streams", streams}, {"iterations", 5}},
                    {{"ms",
                      {"cuda_streams_" + number,
                       "kernel and read of 16 MiB in " + number + (streams == 1 ? " stream" : " streams"), "ms"}}},
                    quick ? 1 : 6});
  }
  for (const char* memory : {"pageable", "pinned"}) {
    for (const char* direction : {"h2d", "d2h"}) {
      for (const size_t size : {4 * kKiB, 32 * kKiB, 128 * kKiB, kMiB, 16 * kMiB, 256 * kMiB}) {
        if (quick && size > 16 * kMiB) continue;
        const std::string id = std::string("cuda_") + direction + "_" + memory + "_" + SizeName(size);
        const std::string title = std::string(direction[0] == 'h' ? "H2D " : "D2H ") + memory + ", " + SizeName(size);
        list.push_back({{{"measure", "bandwidth"},
                         {"direction", direction},
                         {"memory", memory},
                         {"size", size},
                         {"iterations", Repetitions(size, quick)}},
                        {{"gib_s", {id, title, "GiB/s", Better::kHigher}}},
                        Blocks(size, quick)});
      }
    }
  }
  return list;
}

const RowSpec& ColdLoad() {
  static const RowSpec spec{"cuda_module_cold", "loading a module of 200 kernels, new to the server", "ms"};
  return spec;
}
const RowSpec& CachedLoad() {
  static const RowSpec spec{"cuda_module_cached", "the same in a second process", "ms"};
  return spec;
}
const RowSpec& StepWaits() {
  static const RowSpec spec{"cuda_step_waits", "waiting round trips per step", "", Better::kLower, true};
  return spec;
}

/// The driver directly, or the device as seen over one transport.
struct Side {
  std::optional<Transport> transport;  ///< Nothing: native.
  Environment environment;
  std::unique_ptr<WorkerProcess> worker;
};

class Suite {
 public:
  Suite(const CudaSuiteOptions& options, const std::function<void(const std::string&)>& progress)
      : options_(options), progress_(progress) {}

  Result<OpenClResults> Run() {
    const auto begin = Clock::now();
    results_.api = "CUDA";
    results_.date = UtcNow();
    results_.quick = options_.quick;
    results_.machine = MachineFacts::Read();
    if (options_.server.empty()) {
      for (const Transport transport : options_.transports) {
        progress_("the bare " + std::string(TransportName(transport)) + " transport");
        auto raw = MeasureRaw(transport, /*through_channel=*/false, options_.quick);
        if (!raw.ok()) return raw.status();
        auto parked = MeasureParkedRoundTrip(transport, options_.quick);
        if (!parked.ok()) return parked.status();
        results_.raw[transport] = {raw->rtt_p50_us, raw->bulk_gib_s, *parked};
      }
    }
    if (Status s = MakeSides(); !s.ok()) return s;
    for (Side& side : sides_) {
      if (Status s = Open(side); !s.ok()) return s;
    }
    const int wanted = options_.rounds > 0 ? options_.rounds : options_.quick ? 3 : 5;
    for (int round = 0; round < wanted; ++round) {
      progress_("round " + std::to_string(round + 1) + " of " + std::to_string(wanted));
      if (Status s = Round(round); !s.ok()) return s;
      results_.rounds = round + 1;
    }
    if (Status s = CountWaits(); !s.ok()) return s;
    results_.seconds = Seconds(Clock::now() - begin);
    Finish(results_);
    return results_;
  }

 private:
  Status MakeSides() {
    if (temporary_.path().empty()) return Status::FromErrno("making a temporary directory");
    sides_.push_back({std::nullopt, {{"LD_LIBRARY_PATH", options_.native_directory}, {"HAWSER_SERVER", ""}}, nullptr});
    if (options_.server.empty()) {
      // Modules are kept, as they would be on a server that somebody runs.
      const std::string config = temporary_.path() + "/hawserd.toml";
      std::ofstream(config) << "[cuda]\ncache = \"" << temporary_.path() << "/modules\"\n";
      auto server = LocalServer::Start(options_.hawserd, temporary_.path(), std::chrono::seconds(20),
                                       {"--config", config, "--device", options_.device});
      if (!server.ok()) return server.status();
      server_ = std::move(*server);
    }
    for (const Transport transport : options_.transports) {
      Side side;
      side.transport = transport;
      side.environment = {{"LD_LIBRARY_PATH", options_.guest_directory},
                          {"HAWSER_SERVER", server_ ? server_->Uri(transport) : options_.server}};
      sides_.push_back(std::move(side));
      results_.transports.push_back(transport);
    }
    return Status::Ok();
  }

  static std::string SideName(const Side& side) {
    return side.transport ? "remote over " + std::string(TransportName(*side.transport)) : "native";
  }

  Result<std::unique_ptr<WorkerProcess>> Fresh(const Side& side, const Environment& more, json* facts) {
    Environment environment = side.environment;
    environment.insert(environment.end(), more.begin(), more.end());
    auto worker = WorkerProcess::Start(options_.worker, environment);
    if (!worker.ok()) return worker.status();
    auto opened = (*worker)->Call({{"measure", "open"}}, kCallTimeout);
    if (!opened.ok()) return Status(opened.status().code(), SideName(side) + ": " + opened.status().text());
    if (facts != nullptr) *facts = *opened;
    return std::move(*worker);
  }

  Status Open(Side& side) {
    json facts;
    auto worker = Fresh(side, {}, &facts);
    if (!worker.ok()) {
      if (!side.transport && !options_.server.empty()) {
        results_.note = "this machine has no CUDA device of its own, so there is no native side";
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

  void Record(const Side& side, const RowSpec& spec, double value) {
    if (!side.transport) {
      RowOf(spec).native_rounds.push_back(value);
    } else {
      RowOf(spec).remote[*side.transport].rounds.push_back(value);
    }
  }

  /// Every second round turns the order round, so that neither side always runs on the warmer machine.
  std::vector<Side*> Order(int round) {
    std::vector<Side*> order;
    for (Side& side : sides_) {
      if (side.worker != nullptr) order.push_back(&side);
    }
    if (round % 2 == 1) std::reverse(order.begin(), order.end());
    return order;
  }

  /// Each side once, in the order of that number.
  Status Block(const Measurement& measurement, int number) {
    for (Side* side : Order(number)) {
      auto values = side->worker->Call(measurement.request, kCallTimeout);
      if (!values.ok()) return Status(values.status().code(), SideName(*side) + ": " + values.status().text());
      for (const auto& [key, spec] : measurement.rows) {
        if (IsChosen(options_.only, spec.id) && values->contains(key)) {
          Record(*side, spec, values->at(key).get<double>());
        }
      }
    }
    return Status::Ok();
  }

  Status Round(int round) {
    for (const Measurement& measurement : CudaCatalogue(options_.quick)) {
      const bool chosen = std::any_of(measurement.rows.begin(), measurement.rows.end(),
                                      [&](const auto& row) { return IsChosen(options_.only, row.second.id); });
      if (!chosen) continue;
      for (int block = 0; block < measurement.blocks; ++block) {
        if (Status s = Block(measurement, round + block); !s.ok()) return s;
      }
    }
    if (!IsChosen(options_.only, ColdLoad().id) && !IsChosen(options_.only, CachedLoad().id)) return Status::Ok();
    for (Side* side : Order(round)) {
      // Each side its own text: two transports share the server's cache.
      const json request = {{"measure", "module_load"}, {"constant", random_() & 0x7fffffffu}};
      for (const bool cold : {true, false}) {
        auto worker = Fresh(*side, {}, nullptr);
        if (!worker.ok()) return worker.status();
        auto values = (*worker)->Call(request, kCallTimeout);
        if (!values.ok()) return Status(values.status().code(), SideName(*side) + ": " + values.status().text());
        Record(*side, cold ? ColdLoad() : CachedLoad(), values->at("load_ms").get<double>());
      }
    }
    return Status::Ok();
  }

  /// The guest counts its waits and writes them down when it ends: two runs of different length tell what a step costs.
  Status CountWaits() {
    if (!IsChosen(options_.only, StepWaits().id)) return Status::Ok();
    constexpr int kShort = 10, kLong = 110;
    for (Side& side : sides_) {
      if (!side.transport || side.worker == nullptr) continue;
      double counted[2] = {};
      int run = 0;
      for (const int steps : {kShort, kLong}) {
        const std::string file = temporary_.path() + "/stats.json";
        {
          auto worker = Fresh(side, {{"HAWSER_STATS", file}}, nullptr);
          if (!worker.ok()) return worker.status();
          auto values = (*worker)->Call({{"measure", "step"}, {"iterations", steps}}, kCallTimeout);
          if (!values.ok()) return values.status();
        }
        std::ifstream stream(file);
        const json stats = json::parse(stream, nullptr, /*allow_exceptions=*/false);
        if (!stats.is_object() || !stats.contains("waits")) return Status::Ok();  // A guest that does not count.
        counted[run++] = stats.at("waits").get<double>();
      }
      Record(side, StepWaits(), (counted[1] - counted[0]) / (kLong - kShort));
    }
    return Status::Ok();
  }

  const CudaSuiteOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  // Order of destruction: workers first, then the server, then the directory they live in.
  TemporaryDirectory temporary_;
  std::unique_ptr<LocalServer> server_;
  std::vector<Side> sides_;
  OpenClResults results_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace

Result<OpenClResults> RunCudaSuite(const CudaSuiteOptions& options,
                                   const std::function<void(const std::string&)>& progress) {
  // Writing to a worker that died must return an error.
  std::signal(SIGPIPE, SIG_IGN);
  Suite suite(options, progress);
  return suite.Run();
}

}  // namespace hawser::bench
