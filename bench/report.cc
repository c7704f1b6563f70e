// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

namespace hawser::bench {
namespace {

using nlohmann::json;
using wire::Transport;

std::string Digits(double value) {
  char text[32];
  const double size = std::fabs(value);
  const int decimals = size == 0 || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

std::string RatioText(const RemoteValue& value) { return value.ratio ? Digits(*value.ratio) + "x" : "-"; }
std::string MetText(const RemoteValue& value) { return !value.target ? "" : value.target->met ? "yes" : "NO"; }

/// Columns of one transport's table: measure, native, remote, ratio, target, met.
std::vector<std::array<std::string, 6>> Table(const OpenClResults& results, Transport transport) {
  std::vector<std::array<std::string, 6>> lines;
  for (const Row& row : results.rows) {
    const auto remote = row.remote.find(transport);
    if (remote == row.remote.end()) continue;
    const RemoteValue& value = remote->second;
    lines.push_back({row.spec.title, row.native ? Quantity(*row.native, row.spec.unit) : "-",
                     Quantity(value.median, row.spec.unit), RatioText(value), value.target ? value.target->text : "",
                     MetText(value)});
  }
  return lines;
}

std::vector<std::array<std::string, 2>> NativeTable(const OpenClResults& results) {
  std::vector<std::array<std::string, 2>> lines;
  for (const Row& row : results.rows) {
    if (row.native) lines.push_back({row.spec.title, Quantity(*row.native, row.spec.unit)});
  }
  return lines;
}

template <size_t N>
void AppendAligned(std::string& out, const std::vector<std::array<std::string, N>>& lines) {
  std::array<size_t, N> width{};
  for (const auto& line : lines) {
    for (size_t i = 0; i < N; ++i) width[i] = std::max(width[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::string text = "  ";
    for (size_t i = 0; i < N; ++i) {
      // Words to the left, numbers to the right.
      const bool number = i >= 1 && i <= 3;
      const std::string padding(width[i] - line[i].size(), ' ');
      text += (number ? padding + line[i] : line[i] + padding) + "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
}

std::string RawText(const RawTransport& raw) {
  return "64-byte round trip " + Quantity(raw.round_trip_us, "us") + ", between sleeping ends " +
         Quantity(raw.parked_round_trip_us, "us") + ", one way " + Quantity(raw.one_way_gib_s, "GiB/s");
}

template <size_t N>
void AppendMarkdown(std::string& out, const std::array<std::string, N>& cells) {
  out += "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  out += "\n";
}

std::string MachineText(const MachineFacts& machine) {
  return machine.processor + ", " + std::to_string(machine.cores) + " cores, " + Digits(machine.memory_gib) + " GiB, " +
         machine.distribution + ", " + machine.kernel + ", load before the run " + Digits(machine.load_before);
}

}  // namespace

std::string Quantity(double value, const std::string& unit) {
  if (unit == "1/s") {
    if (value >= 1e6) return Digits(value / 1e6) + " M/s";
    if (value >= 1e3) return Digits(value / 1e3) + " k/s";
    return Digits(value) + " /s";
  }
  if (unit == "us") {
    if (value >= 10e3) return Digits(value / 1e3) + " ms";
    if (value < 0.1) return Digits(value * 1e3) + " ns";
  }
  return unit.empty() ? Digits(value) : Digits(value) + " " + unit;
}

std::string ReportText(const OpenClResults& results) {
  std::string out = "Device: " + results.device + "\nMachine: " + MachineText(results.machine) + "\n";
  if (!results.note.empty()) out += "Note: " + results.note + "\n";
  if (results.transports.empty()) {
    out += "\nNative only, medians of " + std::to_string(results.rounds) + " rounds\n";
    AppendAligned(out, NativeTable(results));
    return out;
  }
  for (const Transport transport : results.transports) {
    out += "\nOver " + std::string(TransportName(transport)) + ", medians of " + std::to_string(results.rounds) +
           " rounds";
    if (const auto raw = results.raw.find(transport); raw != results.raw.end()) {
      out += " (the bare transport: " + RawText(raw->second) + ")";
    }
    out += "\n";
    auto lines = Table(results, transport);
    lines.insert(lines.begin(), {"measure", "native", "remote", "ratio", "target", "met"});
    AppendAligned(out, lines);
  }
  return out;
}

json ReportJson(const OpenClResults& results) {
  json measures = json::array();
  for (const Row& row : results.rows) {
    json measure = {{"id", row.spec.id},
                    {"title", row.spec.title},
                    {"unit", row.spec.unit},
                    {"better", row.spec.better == Better::kLower ? "lower" : "higher"},
                    {"native", row.native ? json(*row.native) : json(nullptr)},
                    {"native_rounds", row.native_rounds},
                    {"remote", json::object()}};
    for (const auto& [transport, value] : row.remote) {
      measure["remote"][std::string(TransportName(transport))] = {
          {"value", value.median},
          {"rounds", value.rounds},
          {"ratio", value.ratio ? json(*value.ratio) : json(nullptr)},
          {"target", value.target ? json(value.target->text) : json(nullptr)},
          {"limit", value.target ? json(value.target->limit) : json(nullptr)},
          {"met", value.target ? json(value.target->met) : json(nullptr)}};
    }
    measures.push_back(std::move(measure));
  }
  json raw = json::object();
  for (const auto& [transport, value] : results.raw) {
    raw[std::string(TransportName(transport))] = {{"round_trip_us", value.round_trip_us},
                                                  {"parked_round_trip_us", value.parked_round_trip_us},
                                                  {"one_way_gib_s", value.one_way_gib_s}};
  }
  json transports = json::array();
  for (const Transport transport : results.transports) transports.push_back(std::string(TransportName(transport)));
  return {{"schema", kOpenClSchema},
          {"hawser", results.hawser_version},
          {"date", results.date},
          {"command", results.command},
          {"quick", results.quick},
          {"rounds", results.rounds},
          {"seconds", results.seconds},
          {"machine",
           {{"processor", results.machine.processor},
            {"cores", results.machine.cores},
            {"memory_gib", results.machine.memory_gib},
            {"kernel", results.machine.kernel},
            {"distribution", results.machine.distribution},
            {"load_before", results.machine.load_before}}},
          {"device", {{"name", results.device}, {"version", results.device_version}}},
          {"note", results.note},
          {"transports", transports},
          {"raw", raw},
          {"measures", measures}};
}

std::string ReportMarkdown(const OpenClResults& results) {
  std::string out;
  out += "Measured on " + results.date.substr(0, 10) + " on " + MachineText(results.machine) +
         ". Device: " + results.device + " (" + results.device_version + "), the same on both sides. Medians of " +
         std::to_string(results.rounds) +
         " interleaved rounds; ratios are medians of the ratios of neighbouring measurements, because machines change "
         "their "
         "speed.\n\n";
  out += "```\n" + results.command + "\n```\n";
  if (!results.note.empty()) out += "\nNote: " + results.note + ".\n";
  for (const Transport transport : results.transports) {
    out += "\n### Over " + std::string(TransportName(transport)) + "\n\n";
    if (const auto raw = results.raw.find(transport); raw != results.raw.end()) {
      out += "The bare transport in the same run: " + RawText(raw->second) + ".\n\n";
    }
    AppendMarkdown<6>(out, {"measure", "native", "remote", "ratio", "to reach", "reached"});
    out += "|---|---:|---:|---:|---|---|\n";
    for (const auto& line : Table(results, transport)) AppendMarkdown(out, line);
  }
  if (results.transports.empty()) {
    out += "\n";
    AppendMarkdown<2>(out, {"measure", "native"});
    out += "|---|---:|\n";
    for (const auto& line : NativeTable(results)) AppendMarkdown(out, line);
  }
  return out;
}

}  // namespace hawser::bench
