// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <toml++/toml.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr uint64_t kMaxCount = 1u << 24;

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::FromErrno("cannot read '" + path + "'");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// Reads the keys of one table and remembers the first thing that is wrong. Keys that nobody asked
/// for are wrong too, so a misspelt limit never goes unnoticed.
class Section {
 public:
  Section(const toml::table* table, std::string name, const std::string& file, Status* status)
      : table_(table), name_(std::move(name)), file_(file), status_(status) {}

  void String(const char* key, std::string* value) {
    if (const toml::node* node = Find(key)) Take(*node, key, "a string", node->value_exact<std::string>(), value);
  }
  void Bool(const char* key, bool* value) {
    if (const toml::node* node = Find(key)) Take(*node, key, "true or false", node->value_exact<bool>(), value);
  }
  template <typename T>
  void Number(const char* key, T* value, uint64_t least, uint64_t most) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    std::optional<uint64_t> number;
    if (const auto given = node->value_exact<int64_t>(); given && *given >= 0) {
      number = static_cast<uint64_t>(*given);
    }
    Bounded(*node, key, "a number", number, value, least, most);
  }
  /// A number of bytes, or a string such as "4GiB".
  template <typename T>
  void Size(const char* key, T* value, uint64_t least, uint64_t most) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    std::optional<uint64_t> number;
    if (const auto given = node->value_exact<int64_t>(); given && *given >= 0) {
      number = static_cast<uint64_t>(*given);
    } else if (const auto text = node->value_exact<std::string>()) {
      number = ParseSize(*text);
    }
    Bounded(*node, key, "a size such as 64KiB or 4GiB", number, value, least, most);
  }
  void Strings(const char* key, std::vector<std::string>* values) {
    ForEachElement(key, "a list of strings", [&](const toml::node& element) {
      const auto value = element.value_exact<std::string>();
      if (value) values->push_back(*value);
      return value.has_value();
    });
  }
  void Numbers(const char* key, std::vector<uint32_t>* values) {
    ForEachElement(key, "a list of numbers", [&](const toml::node& element) {
      const auto value = element.value_exact<int64_t>();
      if (!value || *value < 0 || *value > UINT32_MAX) return false;
      values->push_back(static_cast<uint32_t>(*value));
      return true;
    });
  }
  /// The table under this key; its own Section must Finish().
  Section Table(const char* key) {
    const toml::node* node = Find(key);
    const toml::table* table = node != nullptr ? node->as_table() : nullptr;
    if (node != nullptr && table == nullptr) Wrong(*node, key, "must be a table");
    return Section(table, name_.empty() ? key : name_ + "." + key, file_, status_);
  }
  void ForEachKey(const std::function<void(const std::string& key, const toml::node& node)>& visit) {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      known_.insert(std::string(key.str()));
      visit(std::string(key.str()), node);
    }
  }
  void Wrong(const toml::node& node, const std::string& key, const std::string& what) {
    if (!status_->ok()) return;
    *status_ =
        Status(Code::kInvalid, file_ + ":" + std::to_string(node.source().begin.line) + ": " + Path(key) + " " + what);
  }
  const toml::node* Find(const char* key) {
    known_.insert(key);
    return table_ != nullptr ? table_->get(key) : nullptr;
  }
  void Finish() {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      const std::string name(key.str());
      if (known_.count(name) != 0) continue;
      std::string known;
      for (const std::string& one : known_) known += (known.empty() ? "" : ", ") + one;
      Wrong(node, name, "is not a key that hawserd knows; here it knows " + known);
    }
  }

 private:
  std::string Path(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }

  template <typename T>
  void Take(const toml::node& node, const char* key, const char* what, const std::optional<T>& given, T* value) {
    if (!given) return Wrong(node, key, std::string("must be ") + what);
    *value = *given;
  }
  template <typename T>
  void Bounded(const toml::node& node, const char* key, const char* what, std::optional<uint64_t> given, T* value,
               uint64_t least, uint64_t most) {
    if (!given) return Wrong(node, key, std::string("must be ") + what);
    if (*given < least || *given > most) {
      return Wrong(node, key, "must be between " + std::to_string(least) + " and " + std::to_string(most));
    }
    *value = static_cast<T>(*given);
  }
  void ForEachElement(const char* key, const char* what, const std::function<bool(const toml::node&)>& take) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) return Wrong(*node, key, std::string("must be ") + what);
    for (const toml::node& element : *array) {
      if (!take(element)) return Wrong(element, key, std::string("must be ") + what);
    }
  }

  const toml::table* const table_;
  const std::string name_;
  const std::string& file_;
  Status* const status_;
  std::set<std::string> known_;
};

void ReadSessionLimits(Section& section, SessionLimits* limits) {
  section.Size("device_memory", &limits->device_memory, 0, INT64_MAX);
  section.Size("staging_memory", &limits->staging_memory, 1u << 20, INT64_MAX);
  section.Number("max_objects", &limits->max_objects, 16, kMaxCount);
  section.Size("inline_limit", &limits->inline_limit, 256, 1u << 20);
  section.Size("address_space", &limits->address_space, 0, INT64_MAX);
  section.Number("open_files", &limits->open_files, 64, kMaxCount);
}

void ReadMode(Section& section, mode_t* mode) {
  const toml::node* node = section.Find("socket_mode");
  if (node == nullptr) return;
  const auto text = node->value_exact<std::string>();
  unsigned value = 0;
  const char* end = text ? text->data() + text->size() : nullptr;
  const bool good = text && !text->empty() && std::from_chars(text->data(), end, value, 8).ptr == end && value <= 0777;
  if (!good) return section.Wrong(*node, "socket_mode", "must be an octal mode in quotes, such as \"0660\"");
  *mode = value;
}

void ReadServer(Section section, Config* config) {
  section.Strings("listen", &config->listen);
  ReadMode(section, &config->socket_mode);
  section.String("worker", &config->worker);
  section.String("worker_user", &config->worker_user);
  section.Bool("syscall_filter", &config->syscall_filter);
  section.Bool("confine", &config->confine);
  section.Strings("writable", &config->writable);
  if (section.Find("driver_cache") != nullptr) section.String("driver_cache", &config->driver_cache.emplace());
  section.Number("spin_us", &config->spin_us, 0, 10000);
  section.String("log_file", &config->log_file);
  std::string level;
  section.String("log_level", &level);
  if (!level.empty()) {
    const Result<LogLevel> parsed = ParseLogLevel(level);
    if (parsed.ok()) config->log_level = parsed.value();
    if (!parsed.ok()) section.Wrong(*section.Find("log_level"), "log_level", ": " + parsed.status().text());
  }
  section.Finish();
}

void ReadLimits(Section section, Config* config) {
  section.Number("max_sessions", &config->max_sessions, 1, kMaxCount);
  section.Number("max_sessions_per_tenant", &config->max_sessions_per_tenant, 1, kMaxCount);
  section.Number("max_pending", &config->max_pending, 1, kMaxCount);
  section.Number("handshake_timeout_ms", &config->handshake_timeout_ms, 10, 600'000);
  ReadSessionLimits(section, &config->limits);
  section.Finish();
}

/// A setting that opens a door: only these words do.
void ReadWords(Section& section, const char* key, const char* danger, std::string_view expected, bool* value) {
  std::string words;
  section.String(key, &words);
  if (!words.empty() && words != expected) {
    section.Wrong(*section.Find(key), key,
                  std::string(danger) + "; to allow that write \"" + std::string(expected) + "\"");
  }
  *value = words == expected;
}

void ReadTcp(Section section, Config* config) {
  section.Bool("require_token", &config->require_token);
  ReadWords(section, "allow_unauthenticated_remote", "lets everybody who can reach the port use the devices",
            Config::kTrustWords, &config->allow_unauthenticated_remote);
  section.Finish();
}

void ReadAdmin(Section section, Config* config) {
  section.String("listen", &config->admin_listen);
  ReadWords(section, "allow_tcp", "lets everybody who can reach the port control the server", Config::kAdminTcpWords,
            &config->admin_allow_tcp);
  section.Finish();
}

void ReadOpenCl(Section section, Config* config) {
  section.String("icd_vendors", &config->icd_vendors);
  section.Bool("share_memory", &config->share_memory);
  Section env = section.Table("env");
  env.ForEachKey([&](const std::string& key, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value || key.find('=') != std::string::npos) return env.Wrong(node, key, "must be a string");
    config->env[key] = *value;
  });
  section.Finish();
}

void ReadCuda(Section section, Config* config) {
  std::string device;
  section.String("device", &device);
  if (!device.empty()) {
    const Result<CudaDevice> parsed = ParseCudaDevice(device);
    if (parsed.ok()) config->cuda_device = parsed.value();
    if (!parsed.ok()) section.Wrong(*section.Find("device"), "device", ": " + parsed.status().text());
  }
  std::string memory;
  section.String("memory", &memory);
  if (!memory.empty()) {
    const Result<CudaMemory> parsed = ParseCudaMemory(memory);
    if (parsed.ok()) config->cuda_memory = parsed.value();
    if (!parsed.ok()) section.Wrong(*section.Find("memory"), "memory", ": " + parsed.status().text());
  }
  section.String("driver", &config->cuda_driver);
  if (section.Find("cache") != nullptr) section.String("cache", &config->cuda_cache.emplace());
  section.Size("cache_size", &config->cuda_cache_size, 1u << 20, INT64_MAX);
  section.Finish();
}

void ReadScheduler(Section section, SchedulerSettings* scheduler) {
  section.String("policy", &scheduler->policy);
  section.Bool("isolated", &scheduler->isolated);
  section.String("policy_host", &scheduler->policy_host);
  section.Number("alone_after_ms", &scheduler->alone_after_ms, 0, 3'600'000);
  section.Number("max_unit_ms", &scheduler->max_unit_ms, 0, 3'600'000);
  section.Number("handover_us", &scheduler->handover_us, 0, 100'000);
  section.Number("starvation_ms", &scheduler->starvation_ms, 0, 3'600'000);
  Section settings = section.Table("settings");
  settings.ForEachKey([&](const std::string& key, const toml::node& node) {
    // A policy reads text; numbers are there for people.
    if (const auto text = node.value_exact<std::string>()) {
      scheduler->settings[key] = *text;
    } else if (const auto number = node.value_exact<int64_t>()) {
      scheduler->settings[key] = std::to_string(*number);
    } else {
      settings.Wrong(node, key, "must be a string or a whole number");
    }
  });
  section.Finish();
}

void ReadToken(Section& section, TenantConfig* tenant) {
  std::string file;
  section.String("token", &tenant->token);
  section.String("token_file", &file);
  if (file.empty()) return;
  const toml::node& node = *section.Find("token_file");
  if (!tenant->token.empty()) return section.Wrong(node, "token_file", "stands beside token; give one of the two");
  const Result<std::string> text = ReadFile(file);
  if (!text.ok()) return section.Wrong(node, "token_file", ": " + text.status().text());
  tenant->token = text.value();
  while (!tenant->token.empty() && (tenant->token.back() == '\n' || tenant->token.back() == '\r')) {
    tenant->token.pop_back();
  }
  if (tenant->token.empty()) section.Wrong(node, "token_file", ": '" + file + "' is empty");
}

void ReadShare(Section& section, const toml::node& tenant, TenantShare* share) {
  section.Number("weight", &share->weight, 1, TenantShare::kMaxWeight);
  if (const toml::node* node = section.Find("priority")) {
    const auto priority = node->value_exact<int64_t>();
    if (!priority || *priority < -TenantShare::kMaxPriority || *priority > TenantShare::kMaxPriority) {
      section.Wrong(*node, "priority", "must be between -1000 and 1000");
    } else {
      share->priority = static_cast<int32_t>(*priority);
    }
  }
  // In percent for people; fractions of a percent are what ppm are for.
  const auto percent = [&](const char* key, uint32_t* ppm) {
    const toml::node* node = section.Find(key);
    if (node == nullptr) return;
    const std::optional<double> value = node->value<double>();
    if (!value || !(*value >= 0 && *value <= 100)) return section.Wrong(*node, key, "must be a percentage, 0 to 100");
    *ppm = static_cast<uint32_t>(std::lround(*value * (TenantShare::kWhole / 100.0)));
  };
  percent("min_share", &share->min_share_ppm);
  percent("max_share", &share->max_share_ppm);
  if (const toml::node* node = section.Find("slo_ms")) {
    const std::optional<double> value = node->value<double>();
    if (!value || !(*value >= 0 && *value <= TenantShare::kLongestSloNs / 1e6)) {
      section.Wrong(*node, "slo_ms", "must be a time in milliseconds, an hour at most");
    } else {
      share->slo_ns = static_cast<uint64_t>(std::llround(*value * 1e6));
    }
  }
  if (const Status status = share->Check(); !status.ok()) section.Wrong(tenant, "min_share", ": " + status.text());
}

void ReadTenant(Section section, const std::string& name, const toml::node& node, Config* config) {
  TenantConfig tenant;
  tenant.name = name;
  tenant.limits = config->limits;
  section.Numbers("uid", &tenant.uids);
  section.Numbers("cid", &tenant.cids);
  section.Strings("socket", &tenant.sockets);
  ReadToken(section, &tenant);
  section.Number("max_sessions", &tenant.max_sessions, 1, kMaxCount);
  ReadSessionLimits(section, &tenant.limits);
  ReadShare(section, node, &tenant.share);
  section.Finish();
  if (tenant.token.size() > 1024) section.Wrong(node, "token", "is longer than 1024 bytes");
  if (!tenant.token.empty() && tenant.token.size() < 16) {
    section.Wrong(node, "token", "is shorter than 16 bytes and can be guessed");
  }
  if (tenant.uids.empty() && tenant.cids.empty() && tenant.sockets.empty() && tenant.token.empty()) {
    section.Wrong(node, "uid", "is missing, and so are cid, socket and token: nobody could ever be this tenant");
  }
  config->tenants.push_back(std::move(tenant));
}

/// No identity may belong to two tenants.
void CheckTenants(Section& tenants, const Config& config, const toml::table& table) {
  std::map<std::string, std::string> owners;
  for (const TenantConfig& tenant : config.tenants) {
    std::vector<std::pair<std::string, std::string>> identities;
    for (const uid_t uid : tenant.uids) identities.emplace_back("uid " + std::to_string(uid), "uid");
    for (const uint32_t cid : tenant.cids) identities.emplace_back("cid " + std::to_string(cid), "cid");
    for (const std::string& socket : tenant.sockets) identities.emplace_back("socket " + socket, "socket");
    if (!tenant.token.empty()) identities.emplace_back("token:" + tenant.token, "token");
    for (const auto& [identity, kind] : identities) {
      const auto [owner, fresh] = owners.emplace(identity, tenant.name);
      if (fresh) continue;
      tenants.Wrong(*table.get(tenant.name), tenant.name + "." + kind,
                    "belongs to tenant '" + owner->second + "' already");
    }
  }
}

}  // namespace

Result<Config> Config::Parse(std::string_view text, const std::string& file) {
  toml::table root;
  try {
    root = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    return Status(Code::kInvalid,
                  file + ":" + std::to_string(error.source().begin.line) + ": " + std::string(error.description()));
  }
  Config config;
  Status status;
  Section top(&root, "", file, &status);
  ReadServer(top.Table("server"), &config);
  ReadLimits(top.Table("limits"), &config);
  ReadTcp(top.Table("tcp"), &config);
  ReadAdmin(top.Table("admin"), &config);
  Section unix_section = top.Table("unix");
  unix_section.Bool("require_tenant", &config.require_tenant);
  unix_section.Finish();
  ReadOpenCl(top.Table("opencl"), &config);
  ReadCuda(top.Table("cuda"), &config);
  ReadScheduler(top.Table("scheduler"), &config.scheduler);
  Section tenants = top.Table("tenants");
  tenants.ForEachKey([&](const std::string& name, const toml::node& node) {
    if (node.as_table() == nullptr) return tenants.Wrong(node, name, "must be a table");
    ReadTenant(tenants.Table(name.c_str()), name, node, &config);
  });
  if (const toml::table* table = root["tenants"].as_table()) CheckTenants(tenants, config, *table);
  top.Finish();
  if (!status.ok()) return status;
  return config;
}

Result<Config> Config::Load(const std::string& file) {
  Result<std::string> text = ReadFile(file);
  if (!text.ok()) return text.status();
  return Parse(text.value(), file);
}

}  // namespace hawser::server
