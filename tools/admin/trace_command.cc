// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/trace_command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <iostream>
#include <optional>

#include "tools/admin/chrome_trace.h"
#include "tools/admin/interrupt_watch.h"
#include "tools/operator_commands.h"

namespace hawser::tools {

using wire::Status;

namespace {

constexpr const char* kFooter = R"(
Examples:
  hawser trace --out trace.json --seconds 10
  hawser trace --out trace.json --commands --session 3

The file is for ui.perfetto.dev or chrome://tracing: a process for each session, with its grants (when it might use the
device: "alone", or in "turn"), its kernels by queue and, with --commands, every command that its worker executed. Without --seconds it ends with ^C. Sessions record only meanwhile.)";

}  // namespace

void TraceCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand(kTraceWord.name, kTraceWord.description);
  parser_->footer(kFooter);
  options_.Register(parser_, false);
  parser_->add_option("--out", out_, "The file; it appears when the trace is complete")->required()->type_name("FILE");
  parser_->add_option("--seconds", seconds_, "How long (default: until ^C)")->check(CLI::Range(0.01, 86400.0));
  parser_->add_option("--session", sessions_, "Only this session; may be given more than once")
      ->expected(1)
      ->take_all();
  parser_->add_flag("--commands", commands_, "Every command of a session, not only kernels: many events");
}

bool TraceCommand::Chosen() const { return parser_->parsed(); }

Status TraceCommand::Do() {
  InterruptWatch interrupt;
  std::string where;
  const auto client = options_.Connect(&where);
  if (!client.ok()) return client.status();
  ChromeTrace trace(out_);
  if (Status status = trace.Open(); !status.ok()) return status;
  interrupt.Start([client = client.value()] { client->Cancel(); });
  pb::TraceRequest request;
  request.mutable_sessions()->Add(sessions_.begin(), sessions_.end());
  request.set_commands(commands_);
  std::optional<std::chrono::milliseconds> length;
  if (seconds_ > 0) length = std::chrono::milliseconds(std::lround(seconds_ * 1000));
  bool begun = false;
  Status status = client.value()->Trace(request, length, [&](const pb::TraceBatch& batch) {
    if (!begun) std::cerr << "hawser: tracing " << where << (length ? "" : "; ^C ends it") << std::endl;
    begun = true;
    trace.Add(batch);
    return true;
  });
  // A server that stops ends the trace; what came is kept.
  if (!status.ok() && !begun) return status;
  if (!status.ok()) std::cerr << "hawser: the trace ends early: " << status.text() << std::endl;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (Status finished = trace.Finish(static_cast<uint64_t>(std::chrono::nanoseconds(now).count())); !finished.ok()) {
    return finished;
  }
  std::cerr << "hawser: " << trace.sessions() << " sessions and " << trace.events() << " events in " << out_;
  if (trace.lost() != 0) std::cerr << "; " << trace.lost() << " came too fast and are missing";
  std::cerr << std::endl;
  return {};
}

int TraceCommand::Run() {
  const Status status = Do();
  if (status.ok()) return 0;
  Complain("trace: " + status.text());
  return 1;
}

}  // namespace hawser::tools
