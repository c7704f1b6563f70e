// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/kernel_scan.h"

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/backends/opencl/slicing/loop_scan.h"
#include "server/backends/opencl/slicing/program_text.h"

namespace hawser::server::slicing {
namespace {

using wire::Result;

// Steps of the scan: some hundred milliseconds. Real programs need thousands of times less.
constexpr int64_t kBudget = 20'000'000;
constexpr size_t kMostUses = size_t{4} << 20;

// What an identifier, or all that is behind it, means. Behaviour's bits come first.
enum Trait : uint16_t {
  kAffected = 1 << 5,  ///< A built-in that changes under an offset.
  kGrouping = 1 << 6,  ///< Shows how work-items are grouped.
  kEnqueues = 1 << 7,
  kPipes = 1 << 8,
};

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

constexpr std::string_view kAffectedNames[] = {"get_group_id", "get_num_groups", "get_global_size", "get_global_offset",
                                               "get_global_linear_id"};
// Those that the prelude defines anew.
constexpr std::string_view kCarriedNames[] = {"get_group_id",      "get_num_groups",       "get_global_size",
                                              "get_global_offset", "get_global_linear_id", "get_global_id",
                                              "get_work_dim"};

uint16_t TraitsOf(std::string_view name) {
  static const std::unordered_map<std::string_view, uint16_t> kKnown = {
      {"get_group_id", kAffected | kGrouping},
      {"get_num_groups", kAffected | kGrouping},
      {"get_global_size", kAffected},
      {"get_global_offset", kAffected},
      {"get_global_linear_id", kAffected},
      {"get_local_id", kGrouping},
      {"get_local_size", kGrouping},
      {"get_enqueued_local_size", kGrouping},
      {"get_local_linear_id", kGrouping},
      {"get_max_sub_group_size", kGrouping},
      {"barrier", kGrouping},
      {"local", kGrouping},
      {"__local", kGrouping},
      {"wait_group_events", kGrouping},
      {"prefetch", 0},
      {"enqueue_kernel", kEnqueues},
      {"enqueue_marker", kEnqueues},
      {"get_default_queue", kEnqueues},
      {"queue_t", kEnqueues},
      {"clk_event_t", kEnqueues},
      {"ndrange_t", kEnqueues},
      {"pipe", kPipes},
      {"__pipe", kPipes},
  };
  if (const auto found = kKnown.find(name); found != kKnown.end()) return found->second;
  for (const std::string_view start : {"work_group_", "sub_group_", "get_sub_group", "get_num_sub_group",
                                       "get_enqueued_num_sub", "intel_sub_group", "async_work_group_", "async_copy_"}) {
    if (StartsWith(name, start)) return kGrouping;
  }
  for (const std::string_view start : {"read_pipe", "write_pipe", "reserve_read_pipe", "reserve_write_pipe",
                                       "commit_read_pipe", "commit_write_pipe", "get_pipe_"}) {
    if (StartsWith(name, start)) return kPipes;
  }
  return 0;
}

class Scan {
 public:
  explicit Scan(const ProgramText& text) : text_(text), traits_(text.parts().size(), 0) {}

  /// False when it would take too long.
  bool Run() {
    const std::vector<Part>& parts = text_.parts();
    std::vector<std::vector<uint32_t>> users(parts.size());
    std::deque<uint32_t> pending;
    std::vector<bool> is_pending(parts.size(), true);
    size_t uses = 0;
    for (uint32_t i = 0; i < parts.size(); ++i) {
      pending.push_back(i);
      for (const Token& token : parts[i].tokens) {
        if (!token.IsIdentifier()) continue;
        for (const uint32_t used : text_.Named(token.text)) {
          if (used != i && (users[used].empty() || users[used].back() != i)) {
            users[used].push_back(i);
            if (++uses > kMostUses) return false;
          }
          if (--budget_ <= 0) return false;
        }
      }
    }
    // Until nothing new is learnt. Traits only grow, so this ends.
    while (!pending.empty()) {
      const uint32_t part = pending.front();
      pending.pop_front();
      is_pending[part] = false;
      const uint16_t now = static_cast<uint16_t>(traits_[part] | LookAt(parts[part]));
      if (budget_ <= 0) return false;
      if (now == traits_[part]) continue;
      traits_[part] = now;
      for (const uint32_t user : users[part]) {
        if (--budget_ <= 0) return false;
        if (!is_pending[user]) pending.push_back(user);
        is_pending[user] = true;
      }
    }
    return true;
  }

  uint16_t traits(uint32_t part) const { return traits_[part]; }

 private:
  uint16_t Behind(std::string_view name) {
    uint16_t all = TraitsOf(name);
    for (const uint32_t part : text_.Named(name)) {
      all = static_cast<uint16_t>(all | traits_[part]);
      --budget_;
    }
    return all;
  }

  uint16_t LookAt(const Part& part) {
    uint16_t all = 0;
    for (const Token& token : part.tokens) {
      if (token.IsIdentifier()) all = static_cast<uint16_t>(all | Behind(token.text));
      if (--budget_ <= 0) return all;
    }
    // A loop that waits is one, wherever it is named. The other kinds of behaviour end at a function.
    all = static_cast<uint16_t>(all & (kAffected | kGrouping | kEnqueues | kPipes | kWaits));
    const std::function<uint8_t(std::string_view)> behaviour_of = [this](std::string_view name) {
      return static_cast<uint8_t>(Behind(name) & (kObserves | kUpdates | kWaits | kOpenLoop | kHasVolatile));
    };
    return static_cast<uint16_t>(all | ScanLoops(part, behaviour_of, &budget_));
  }

  const ProgramText& text_;
  std::vector<uint16_t> traits_;
  int64_t budget_ = kBudget;
};

KernelTraits ConcludeFrom(uint16_t traits, const std::string& carry_problem) {
  KernelFindings found;
  found.affected = (traits & kAffected) != 0;
  found.groups = (traits & kGrouping) != 0;
  found.waits = (traits & kWaits) != 0;
  found.enqueues = (traits & kEnqueues) != 0;
  found.pipes = (traits & kPipes) != 0;
  return Conclude(found, carry_problem);
}

// Why the prelude must not be put in front; empty: it may. It makes macros of the built-ins' names, so those must be
// nothing but called, or end a macro's body, whose users then call it.
std::string CarryProblem(const ProgramText& text) {
  for (const std::string_view name : kCarriedNames) {
    if (text.IsPreprocessorName(name)) return "the preprocessor is asked about " + std::string(name);
    if (!text.Named(name).empty()) return "the program defines " + std::string(name) + " itself";
  }
  for (const Part& part : text.parts()) {
    const auto at = [&](size_t i) { return i < part.tokens.size() ? &part.tokens[i] : nullptr; };
    for (size_t i = 0; i < part.tokens.size(); ++i) {
      const Token& token = part.tokens[i];
      bool carried = false;
      for (const std::string_view name : kCarriedNames)
        carried = carried || (token.IsIdentifier() && token.text == name);
      if (!carried) continue;
      const Token* before = i == 0 ? nullptr : at(i - 1);
      const Token* behind = at(i + 1);
      const bool declared =
          before != nullptr && ((before->IsIdentifier() && !before->Is("return") && !before->Is("else") &&
                                 !before->Is("do") && !before->Is("case") && !before->Is("sizeof")) ||
                                before->Is(".") || before->Is("->") || before->Is("#"));
      if (declared || (behind != nullptr && !behind->Is("("))) {
        return std::string(token.text) + " stands where it is not called";
      }
      // PoCL 3.1 gives up the process over larger kernels with dimensions that are not constant; the prelude makes
      // kernels larger.
      const Token* dimension = at(i + 2);
      const Token* close = at(i + 3);
      const bool constant =
          dimension != nullptr &&
          (dimension->Is(")") || (dimension->kind == TokenKind::kNumber && close != nullptr && close->Is(")")));
      if (behind != nullptr && part.kind != Part::Kind::kMacro && !constant) {
        return std::string(token.text) + " is asked for a dimension that is no number";
      }
    }
  }
  return "";
}

}  // namespace

ProgramTraits ProgramTraits::Unknown(std::string reason) {
  ProgramTraits program;
  program.any_.reason = std::move(reason);
  program.carry_problem_ = program.any_.reason;
  return program;
}

ProgramTraits ProgramTraits::Scan(std::string_view source, std::string_view options) {
  Result<ProgramText> text = ProgramText::Parse(source, options);
  if (!text.ok()) return Unknown(text.status().text());
  class Scan scan(*text);
  if (!scan.Run()) return Unknown("the text takes too long to be looked at");
  ProgramTraits program;
  program.carry_problem_ = CarryProblem(*text);
  uint16_t all = 0;
  for (uint32_t i = 0; i < text->parts().size(); ++i) all = static_cast<uint16_t>(all | scan.traits(i));
  // Pasted names are not in the text. The prelude's macros catch those of built-ins all the same; where something could
  // be put together that waits, the program is left alone.
  if (text->pastes()) {
    all |= kAffected | kGrouping;
    text->ForEachToken([&](const Token*, const Token& token, const Token*) {
      for (const std::string_view piece : {"atom", "fence", "volatile", "GLOBAL_MEM", "pipe", "enqueue"}) {
        if (token.IsIdentifier() && token.text.find(piece) != std::string_view::npos) all |= kWaits;
      }
    });
  }
  program.any_ = ConcludeFrom(all, program.carry_problem_);
  if (text->is_clear() && !text->pastes()) {
    std::map<std::string, uint16_t, std::less<>> by_name;
    for (uint32_t i = 0; i < text->parts().size(); ++i) {
      const Part& part = text->parts()[i];
      if (part.kind != Part::Kind::kFunction) continue;
      for (const std::string_view name : part.names) by_name[std::string(name)] |= scan.traits(i);
    }
    for (const auto& [name, traits] : by_name) {
      program.kernels_.emplace(name, ConcludeFrom(traits, program.carry_problem_));
    }
  }
  program.SeeWhatWantsCarry();
  return program;
}

void ProgramTraits::SeeWhatWantsCarry() {
  const auto wants = [](const KernelTraits& kernel) { return kernel.may_split && kernel.needs_carry; };
  wants_carry_ = wants(any_);
  for (const auto& [name, kernel] : kernels_) wants_carry_ = wants_carry_ || wants(kernel);
}

KernelTraits Conclude(const KernelFindings& found, const std::string& carry_problem) {
  KernelTraits kernel;
  kernel.needs_carry = found.affected;
  kernel.sees_local_size = found.groups;
  if (!found.unknown.empty()) {
    kernel.reason = found.unknown;
  } else if (found.waits) {
    kernel.reason = "it may wait for another work-group";
  } else if (found.enqueues) {
    kernel.reason = "it may enqueue kernels itself";
  } else if (found.pipes) {
    kernel.reason = "it may use pipes";
  } else if (kernel.needs_carry && !carry_problem.empty()) {
    kernel.reason = "it needs the launch's true geometry, which cannot be given to it: " + carry_problem;
  }
  kernel.may_split = kernel.reason.empty();
  return kernel;
}

const KernelTraits& ProgramTraits::Of(std::string_view kernel) const {
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? any_ : found->second;
}

bool MayNeedCarry(std::string_view source) {
  if (source.find("##") != std::string_view::npos || source.find('\\') != std::string_view::npos ||
      source.find("%:") != std::string_view::npos) {
    return true;  // Names may be put together.
  }
  for (const std::string_view name : kAffectedNames) {
    if (source.find(name) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace hawser::server::slicing
