// SPDX-License-Identifier: Apache-2.0
#include "server/worker/split_settings.h"

#include <charconv>
#include <cstdlib>

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr uint64_t kMostCores = 1u << 24;
constexpr double kMostBeta = 1e6;
constexpr uint64_t kMostHoldMs = 3'600'000;

template <typename T>
bool Number(std::string_view text, T least, T most, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= least && *value <= most;
}

Status Wrong(const SplitWords& words, std::string_view word) {
  std::string text = std::string(words.variable) + " has '" + std::string(word) + "'; it is off, gate or ";
  text += std::string(words.units) + "=N, then perhaps ,cores=N";
  text += words.refuses ? ", ,beta=X and ,refuse=N" : ", ,beta=X and ,hold=MS";
  return Status(Code::kInvalid, text);
}

}  // namespace

Result<SplitSettings> SplitSettings::Parse(const SplitWords& words, std::string_view text) {
  SplitSettings settings;
  bool more = true;
  for (bool first = true; more; first = false) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    bool good = false;
    if (first) {
      settings.splits = word.empty() ? words.by_default : word != "off";
      good = word == "off" || word.empty() || word == "gate" ||
             (key == words.units && Number<uint64_t>(value, 1, UINT64_MAX, &settings.size));
    } else if (key == "cores") {
      good = Number<uint64_t>(value, 1, kMostCores, &settings.cores);
    } else if (key == "beta") {
      good = Number<double>(value, 1e-6, kMostBeta, &settings.beta);
    } else if (key == "refuse" && words.refuses) {
      good = Number<uint64_t>(value, 1, UINT64_MAX, &settings.refuse);
    } else if (key == "hold" && words.holds) {
      good = Number<uint64_t>(value, 1, kMostHoldMs, &settings.hold_ms);
    }
    if (!good) return Wrong(words, word);
  }
  return settings;
}

SplitSettings SplitSettings::FromEnvironment(const SplitWords& words, bool has_gate, std::string* problem) {
  const char* text = std::getenv(words.variable);
  Result<SplitSettings> settings = Parse(words, text != nullptr ? text : has_gate ? "gate" : "");
  if (!settings.ok()) {
    *problem = settings.status().text() + "; nothing is split";
    return {};
  }
  if (const char* history = std::getenv(words.history); history != nullptr) settings->history = history;
  return *settings;
}

}  // namespace hawser::server
