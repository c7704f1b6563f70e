// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/top_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <optional>

#include "tools/admin/interrupt_watch.h"
#include "tools/admin/json.h"
#include "tools/admin/text.h"
#include "tools/operator_commands.h"

namespace hawser::tools {

using wire::Status;

namespace {

constexpr const char* kFooter = R"(
Examples:
  hawser top
  hawser top --interval 0.5
  hawser top --once
  hawser top --once --json | jq '.tenants[] | {name, gpu_ns}'

DEVICE is the part of the time in which the device worked for a tenant or session, SHARE a tenant's part of all work,
QUEUE and IN FLIGHT the estimated length of what waits and of what the device has; without a scheduler nobody measures
them ("-"). UP and DOWN are bytes through the channels; data in a shared heap moves through none. ^C ends it.
DEVICE of (system) is the part of the time that was lost while the device changed hands, that of (waits) the part in
which it was kept idle on purpose, because somebody was about to go on; no tenant is charged with either.)";

// Hide the cursor and use the other screen; and back.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

}  // namespace

void TopCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand(kTopWord.name, kTopWord.description);
  parser_->footer(kFooter);
  options_.Register(parser_, false);
  parser_->add_option("--interval", interval_s_, "Seconds between two looks (default: 1)")
      ->check(CLI::Range(0.1, 3600.0));
  parser_->add_flag("--once", once_, "Print one screen, measured over one interval, and end");
  parser_->add_flag("--json", json_, "Print each snapshot as one line of JSON");
}

bool TopCommand::Chosen() const { return parser_->parsed(); }

void TopCommand::Show(const pb::Snapshot& now, const pb::Snapshot* before, const std::string& where) const {
  if (json_) {
    std::cout << ToJson(now).dump() << std::endl;
    return;
  }
  winsize size{};
  if (!screen_ || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  std::string text = TopText(now, before, where, size.ws_row > 1 ? size.ws_row - 1u : 0, size.ws_col);
  if (screen_) {
    // From the top, each line to its end, and nothing below: less flicker than clearing first.
    std::string drawn = "\x1b[H";
    for (const char c : text) drawn += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    text = drawn + "\x1b[J";
  } else if (!once_) {
    text += "\n";
  }
  std::cout << text << std::flush;
}

Status TopCommand::Do() {
  InterruptWatch interrupt;
  std::string where;
  const auto client = options_.Connect(&where);
  if (!client.ok()) return client.status();
  interrupt.Start([client = client.value()] { client->Cancel(); });
  screen_ = !once_ && !json_ && ::isatty(STDOUT_FILENO) == 1;
  if (screen_) std::cout << kEnter;
  std::optional<pb::Snapshot> before;
  Status status =
      client.value()->Watch(static_cast<uint32_t>(std::lround(interval_s_ * 1000)), [&](const pb::Snapshot& now) {
        // JSON has counters and no rates: the first snapshot is as good as any.
        if (!once_ || before || json_) Show(now, before ? &*before : nullptr, where);
        const bool more = !once_ || (!before && !json_);
        before = now;
        return more && !std::cout.fail();
      });
  if (screen_) std::cout << kLeave << std::flush;
  return status;
}

int TopCommand::Run() {
  const Status status = Do();
  if (status.ok()) return 0;
  Complain("top: " + status.text());
  return 1;
}

}  // namespace hawser::tools
