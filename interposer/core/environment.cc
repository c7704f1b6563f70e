// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/environment.h"

#include <errno.h>

#include <cstdlib>

namespace hawser::guest {
namespace {

std::string Text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool Flag(const char* name) {
  const std::string value = Text(name);
  return !value.empty() && value != "0";
}

}  // namespace

Environment Environment::Read(const Api& api) {
  Environment environment{.api = &api};  // So that no library links the default.
  environment.server = Text("HAWSER_SERVER");
  environment.token = Text("HAWSER_TOKEN");
  environment.strict = Flag("HAWSER_STRICT");
  environment.in_worker = Flag("HAWSER_WORKER");
  environment.stats_file = Text("HAWSER_STATS");
  environment.trace_file = Text("HAWSER_TRACE");
  environment.program = program_invocation_short_name;
  return environment;
}

}  // namespace hawser::guest
