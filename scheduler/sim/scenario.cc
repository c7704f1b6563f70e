// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sim/scenario.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

using hawser::wire::Code;
using hawser::wire::Result;
using hawser::wire::Status;
using nlohmann::json;

namespace hawser::scheduler {
namespace {

constexpr size_t kMaxText = 1u << 20;
constexpr size_t kMaxTenants = 256;
constexpr double kHourUs = 3.6e9;

/// Reads the members of one object; the first mistake sticks.
class Members {
 public:
  Members(const json& object, std::string where, Status& status)
      : object_(object), where_(std::move(where)), status_(status) {
    if (!object_.is_object()) Fail("is not an object");
  }

  /// A number of microseconds or milliseconds (`scale` nanoseconds each), as nanoseconds.
  void Time(const char* key, double scale, uint64_t* ns) {
    double value = 0;
    if (!Number(key, 0, kHourUs * 1000 / scale, &value)) return;
    *ns = static_cast<uint64_t>(std::llround(value * scale));
  }
  bool Number(const char* key, double least, double most, double* value) {
    const json* member = Take(key);
    if (member == nullptr) return false;
    if (!member->is_number() || !(member->get<double>() >= least) || !(member->get<double>() <= most)) {
      Fail(std::string(key) + " is not a number from " + Short(least) + " to " + Short(most));
      return false;
    }
    *value = member->get<double>();
    return true;
  }
  template <typename Integer>
  void Whole(const char* key, double least, double most, Integer* value) {
    double number = 0;
    if (!Number(key, least, most, &number)) return;
    if (number != std::floor(number)) return Fail(std::string(key) + " is not a whole number");
    *value = static_cast<Integer>(number);
  }
  void Text(const char* key, std::string* value) {
    const json* member = Take(key);
    if (member == nullptr) return;
    if (!member->is_string() || member->get_ref<const std::string&>().size() > 4096)
      return Fail(std::string(key) + " is not a text");
    *value = member->get<std::string>();
  }
  const json* Take(const char* key) {
    taken_.push_back(key);
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(key);
    return found != object_.end() ? &*found : nullptr;
  }
  /// After all were taken: is there one that nobody knows?
  void End() {
    if (!status_.ok()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(taken_.begin(), taken_.end(), key) == taken_.end())
        return Fail(std::string("'").append(key).append("' means nothing here"));
    }
  }
  void Fail(const std::string& what) {
    if (status_.ok()) status_ = Status(Code::kInvalid, where_ + ": " + what);
  }

 private:
  static std::string Short(double value) {
    std::string text = std::to_string(value);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
  }

  const json& object_;
  const std::string where_;
  Status& status_;
  std::vector<std::string> taken_;
};

constexpr double kUs = 1e3, kMs = 1e6;

SimKernel ReadKernel(const json& object, const std::string& where, Status& status) {
  SimKernel kernel;
  Members members(object, where, status);
  members.Time("length_us", kUs, &kernel.length_ns);
  members.Time("unit_us", kUs, &kernel.unit_ns);
  members.Whole("threads", 1, 1e12, &kernel.threads);
  members.Whole("work_group", 1, 1e6, &kernel.work_group);
  members.End();
  if (status.ok() && kernel.length_ns == 0) members.Fail("length_us is 0");
  return kernel;
}

void ReadSleeps(Members& members, SimClient& client) {
  const json* sleeps = members.Take("sleep_ms");
  if (sleeps == nullptr) return;
  uint64_t last = 0;
  const auto good = [&](const json& sleep) {
    if (!sleep.is_array() || sleep.size() != 2 || !sleep[0].is_number() || !sleep[1].is_number()) return false;
    const double from = sleep[0].get<double>(), to = sleep[1].get<double>();
    if (!(from >= 0 && from < to && to <= kHourUs / 1000)) return false;
    client.sleeps.emplace_back(std::llround(from * kMs), std::llround(to * kMs));
    const bool in_order = client.sleeps.back().first >= last;
    last = client.sleeps.back().second;
    return in_order;
  };
  if (!sleeps->is_array() || sleeps->size() > 1000 || !std::all_of(sleeps->begin(), sleeps->end(), good)) {
    members.Fail("sleep_ms is not a list of [from, to] in order");
  }
}

void ReadTenant(const json& object, const std::string& where, Scenario& scenario, Status& status) {
  SimClient client;
  Members members(object, where, status);
  uint32_t copies = 1;
  uint64_t stagger_ns = 0;
  double min_share = 0, max_share = 0;
  std::string arrival = "closed";
  members.Text("name", &client.tenant.name);
  members.Whole("count", 1, kMaxTenants, &copies);
  members.Time("stagger_us", kUs, &stagger_ns);
  members.Whole("weight", 1, 1e6, &client.tenant.weight);
  members.Whole("priority", -1000, 1000, &client.tenant.priority);
  members.Time("slo_ms", kMs, &client.tenant.slo_ns);
  members.Number("min_share", 0, 1, &min_share);
  members.Number("max_share", 0, 1, &max_share);
  members.Text("arrival", &arrival);
  members.Time("think_us", kUs, &client.think_ns);
  members.Number("think_jitter", 0, 1, &client.think_jitter);
  members.Number("length_jitter", 0, 1, &client.length_jitter);
  members.Whole("depth", 1, 1000, &client.depth);
  members.Time("start_ms", kMs, &client.start_ns);
  members.Time("stop_ms", kMs, &client.stop_ns);
  members.Whole("requests", 0, 1e9, &client.requests);
  ReadSleeps(members, client);
  if (const json* kernels = members.Take("kernels"); kernels != nullptr) {
    if (!kernels->is_array() || kernels->empty() || kernels->size() > 1000) {
      members.Fail("kernels is not a list of kernels");
    } else {
      for (const json& kernel : *kernels) client.kernels.push_back(ReadKernel(kernel, where + " kernel", status));
    }
  }
  members.End();
  if (status.ok() && client.kernels.empty()) members.Fail("kernels is missing");
  if (status.ok() && client.tenant.name.empty()) members.Fail("name is missing");
  if (arrival == "periodic" || arrival == "poisson") {
    client.arrival = arrival == "periodic" ? SimClient::Arrival::kPeriodic : SimClient::Arrival::kPoisson;
    if (status.ok() && client.think_ns < 1000) members.Fail("think_us, the time between arrivals, must be 1 at least");
  } else if (arrival != "closed") {
    members.Fail("arrival is none of closed, periodic, poisson");
  }
  client.tenant.min_share_ppm = static_cast<uint32_t>(std::lround(min_share * 1e6));
  client.tenant.max_share_ppm = static_cast<uint32_t>(std::lround(max_share * 1e6));
  if (!status.ok()) return;
  if (scenario.clients.size() + copies > kMaxTenants) {
    return members.Fail("more than " + std::to_string(kMaxTenants) + " tenants");
  }
  for (uint32_t i = 0; i < copies; ++i) {
    SimClient copy = client;
    if (copies > 1) copy.tenant.name.append("-").append(std::to_string(i + 1));
    copy.start_ns += i * stagger_ns;
    scenario.clients.push_back(std::move(copy));
  }
}

void ReadSettings(Members& members, Scenario& scenario) {
  const json* settings = members.Take("settings");
  if (settings == nullptr) return;
  if (!settings->is_object() || settings->size() > 100) return members.Fail("settings is not an object");
  for (const auto& [key, value] : settings->items()) {
    if (value.is_string()) {
      scenario.settings[key] = value.get<std::string>();
    } else if (value.is_number_integer()) {
      scenario.settings[key] = std::to_string(value.get<int64_t>());
    } else {
      members.Fail("settings: " + key + " is neither text nor a whole number");
    }
  }
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view text, const std::string& from) {
  const std::string who = "scenario " + from;
  if (text.size() > kMaxText) return Status(Code::kInvalid, who + ": longer than 1 MiB");
  // Depth is bounded before the parser recurses.
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > 64) return Status(Code::kInvalid, who + ": nested too deeply");
  }
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return Status(Code::kInvalid, who + ": not JSON");
  Scenario scenario;
  scenario.name = from;
  Status status;
  Members members(root, who, status);
  members.Text("name", &scenario.name);
  members.Text("summary", &scenario.summary);
  members.Time("duration_ms", kMs, &scenario.duration_ns);
  members.Whole("seed", 0, 1e15, &scenario.seed);
  members.Time("handoff_us", kUs, &scenario.handoff_ns);
  members.Time("decision_us", kUs, &scenario.decision_ns);
  members.Time("starvation_ms", kMs, &scenario.starvation_ns);
  members.Time("max_unit_ms", kMs, &scenario.max_unit_ns);
  members.Time("alone_after_ms", kMs, &scenario.alone_after_ns);
  members.Whole("cores", 1, 1e6, &scenario.cores);
  members.Number("beta", 0, 1e6, &scenario.beta);
  ReadSettings(members, scenario);
  if (const json* tenants = members.Take("tenants"); tenants != nullptr) {
    if (!tenants->is_array() || tenants->size() > kMaxTenants) {
      members.Fail("tenants is not a list of tenants");
    } else {
      for (size_t i = 0; i < tenants->size() && status.ok(); ++i) {
        ReadTenant((*tenants)[i], who + ": tenant " + std::to_string(i + 1), scenario, status);
      }
    }
  }
  members.End();
  if (status.ok() && scenario.clients.empty()) members.Fail("tenants is missing");
  if (status.ok() && scenario.duration_ns == 0) members.Fail("duration_ms is 0");
  if (!status.ok()) return status;
  return scenario;
}

Result<Scenario> FindScenario(const std::string& name_or_path) {
  constexpr std::string_view kRandom = "random-";
  if (name_or_path.starts_with(kRandom)) {
    uint64_t seed = 0;
    const char* end = name_or_path.data() + name_or_path.size();
    const auto read = std::from_chars(name_or_path.data() + kRandom.size(), end, seed);
    if (read.ec == std::errc() && read.ptr == end) return RandomScenario(seed);
  }
  if (name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".json")) {
    std::string known;
    for (const BuiltinScenario& scenario : BuiltinScenarios()) {
      if (scenario.name == name_or_path) return ParseScenario(scenario.json, name_or_path);
      known += (known.empty() ? "" : ", ") + std::string(scenario.name);
    }
    return Status(Code::kInvalid, "there is no scenario '" + name_or_path + "'; choose among " + known +
                                      ", or give the path of a file (.json)");
  }
  std::ifstream file(name_or_path, std::ios::binary);
  if (!file) return Status::FromErrno("scenario " + name_or_path);
  std::string text(kMaxText + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseScenario(text, name_or_path);
}

Scenario RandomScenario(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](uint64_t least, uint64_t most) { return least + random() % (most - least + 1); };
  Scenario scenario;
  scenario.name = "random-" + std::to_string(seed);
  scenario.seed = seed;
  scenario.duration_ns = pick(1, 4) * 1'000'000'000;
  scenario.handoff_ns = pick(0, 1) * 10'000;
  const uint64_t tenants = pick(1, 8);
  for (uint64_t i = 0; i < tenants; ++i) {
    SimClient client;
    client.tenant.name = std::string("t").append(std::to_string(i + 1));
    client.tenant.weight = static_cast<uint32_t>(pick(1, 8) * 50);
    client.tenant.priority = static_cast<int32_t>(pick(0, 2));
    client.arrival = static_cast<SimClient::Arrival>(pick(0, 2));
    client.depth = static_cast<uint32_t>(pick(1, 4));
    client.length_jitter = static_cast<double>(pick(0, 2)) / 4;
    client.think_jitter = static_cast<double>(pick(0, 2)) / 4;
    SimKernel kernel;
    kernel.length_ns = pick(50, 20'000) * 1000;
    kernel.unit_ns = pick(0, 2) == 0 ? 0 : std::min<uint64_t>(kernel.length_ns, pick(50, 500) * 1000);
    if (pick(0, 3) == 0) kernel.threads = pick(1, 1000) * 1024;
    client.kernels.push_back(kernel);
    // An open client asks for at most half of its part, so that queues end.
    client.think_ns = client.arrival == SimClient::Arrival::kClosed ? pick(0, 1) * pick(10, 2000) * 1000
                                                                    : kernel.length_ns * tenants * pick(2, 6);
    client.start_ns = pick(0, 1) * pick(0, 500) * 1'000'000;
    if (pick(0, 3) == 0) {
      const uint64_t from = pick(100, 900) * 1'000'000;
      client.sleeps.emplace_back(from, from + pick(50, 900) * 1'000'000);
    }
    scenario.clients.push_back(std::move(client));
  }
  return scenario;
}

}  // namespace hawser::scheduler
