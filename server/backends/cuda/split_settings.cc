// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/split_settings.h"

#include <charconv>
#include <cstdlib>

namespace hawser::server::cuda_backend {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr uint64_t kMostCores = 1u << 24;
constexpr double kMostBeta = 1e6;

template <typename T>
bool Number(std::string_view text, T least, T most, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= least && *value <= most;
}

}  // namespace

Result<SplitSettings> SplitSettings::Parse(std::string_view text) {
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
      settings.splits = word != "off";
      good = word == "off" || word.empty() || word == "gate" ||
             (key == "blocks" && Number<uint64_t>(value, 1, UINT64_MAX, &settings.blocks));
    } else if (key == "cores") {
      good = Number<uint64_t>(value, 1, kMostCores, &settings.cores);
    } else if (key == "beta") {
      good = Number<double>(value, 1e-6, kMostBeta, &settings.beta);
    } else if (key == "refuse") {
      good = Number<uint64_t>(value, 1, UINT64_MAX, &settings.refuse);
    }
    if (!good) {
      return Status(Code::kInvalid, "HAWSER_CUDA_SPLIT has '" + std::string(word) +
                                        "'; it is off, gate or blocks=N, then perhaps ,cores=N, ,beta=X and ,refuse=N");
    }
  }
  return settings;
}

SplitSettings SplitSettings::FromEnvironment(std::string* problem) {
  const char* text = std::getenv("HAWSER_CUDA_SPLIT");
  Result<SplitSettings> settings = Parse(text == nullptr ? "" : text);
  if (!settings.ok()) {
    *problem = settings.status().text() + "; nothing is split";
    SplitSettings off;
    off.splits = false;
    return off;
  }
  if (const char* history = std::getenv("HAWSER_CUDA_SPLIT_HISTORY"); history != nullptr) settings->history = history;
  return *settings;
}

}  // namespace hawser::server::cuda_backend
