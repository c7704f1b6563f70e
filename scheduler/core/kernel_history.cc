// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/kernel_history.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

using hawser::wire::Code;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

constexpr std::string_view kHeader = "hawser-history 1\n";
constexpr size_t kMaxText = 4u << 20;
constexpr double kWeightOfNew = 1.0 / 8;
constexpr double kSurprise = 4;

/// Takes a word up to the next blank or line end from the front of `line`.
std::string_view Word(std::string_view& line) {
  const size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

bool Number(std::string_view word, int base, uint64_t* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value, base);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

bool Number(std::string_view word, double* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

}  // namespace

KernelHistory::Entry& KernelHistory::Touch(const KernelKey& key) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    by_age_.splice(by_age_.end(), by_age_, found->second.age);
    return found->second;
  }
  if (entries_.size() >= capacity_ && !by_age_.empty()) {
    entries_.erase(by_age_.front());
    by_age_.pop_front();
  }
  Entry& entry = entries_[key];
  entry.age = by_age_.insert(by_age_.end(), key);
  return entry;
}

void KernelHistory::Record(const KernelKey& key, uint64_t threads, uint64_t ns) {
  if (threads == 0 || ns == 0) return;
  const double measured = static_cast<double>(ns) / static_cast<double>(threads);
  Entry& entry = Touch(key);
  const bool surprise = measured > entry.ns_per_thread * kSurprise || measured * kSurprise < entry.ns_per_thread;
  if (entry.measurements == 0 || surprise) {
    entry.ns_per_thread = measured;
  } else {
    entry.ns_per_thread += (measured - entry.ns_per_thread) * kWeightOfNew;
  }
  ++entry.measurements;
}

std::optional<double> KernelHistory::Rate(const KernelKey& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return 1e9 / found->second.ns_per_thread;
}

std::optional<uint64_t> KernelHistory::Estimate(const KernelKey& key, uint64_t threads) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  const double ns = found->second.ns_per_thread * static_cast<double>(threads);
  return ns < 1e18 ? static_cast<uint64_t>(std::ceil(ns)) : uint64_t{1'000'000'000'000'000'000};
}

std::string KernelHistory::Save() const {
  std::string text(kHeader);
  for (const KernelKey& key : by_age_) {
    const Entry& entry = entries_.at(key);
    char line[128];
    char number[64];
    const auto end = std::to_chars(number, number + sizeof(number), entry.ns_per_thread).ptr;
    std::snprintf(line, sizeof(line), "%016llx %016llx %.*s %llu\n", static_cast<unsigned long long>(key.kernel),
                  static_cast<unsigned long long>(key.device), static_cast<int>(end - number), number,
                  static_cast<unsigned long long>(entry.measurements));
    text += line;
  }
  return text;
}

Status KernelHistory::Load(std::string_view text) {
  if (text.size() > kMaxText) return Status(Code::kInvalid, "kernel history: longer than 4 MiB");
  if (!text.starts_with(kHeader)) {
    return Status(Code::kInvalid, "kernel history: does not begin with 'hawser-history 1'");
  }
  text.remove_prefix(kHeader.size());
  struct Line {
    KernelKey key;
    double ns_per_thread;
    uint64_t measurements;
  };
  std::vector<Line> lines;
  for (size_t number = 2; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    Line line{};
    const bool good = Number(Word(rest), 16, &line.key.kernel) && Number(Word(rest), 16, &line.key.device) &&
                      Number(Word(rest), &line.ns_per_thread) && Number(Word(rest), 10, &line.measurements) &&
                      rest.empty() && std::isfinite(line.ns_per_thread) && line.ns_per_thread > 1e-9 &&
                      line.ns_per_thread < 1e18 && line.measurements > 0;
    if (!good) return Status(Code::kInvalid, "kernel history: line " + std::to_string(number) + " is broken");
    lines.push_back(line);
  }
  for (const Line& line : lines) {
    Entry& entry = Touch(line.key);
    entry.ns_per_thread = line.ns_per_thread;
    entry.measurements = line.measurements;
  }
  return Status::Ok();
}

Status KernelHistory::SaveTo(const std::string& path) const {
  const std::string temporary = path + ".new." + std::to_string(::getpid());
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << Save();
    file.close();
    if (!file) return Status::FromErrno("writing " + temporary);
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::filesystem::remove(temporary, error);
    return Status(Code::kSystem, "kernel history: " + path + " cannot be replaced");
  }
  return Status::Ok();
}

Status KernelHistory::LoadFrom(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Status::Ok();
  const auto size = std::filesystem::file_size(path, error);
  if (error || size > kMaxText)
    return Status(Code::kInvalid, "kernel history: " + path + " cannot be read, or is longer than 4 MiB");
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return Status::FromErrno("reading " + path);
  return Load(text);
}

}  // namespace hawser::scheduler
