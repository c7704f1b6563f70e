// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/loop_scan.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hawser::server::slicing {
namespace {

constexpr size_t kNone = SIZE_MAX;
// Statements within statements without braces; beyond, a text is taken for what it is: a trick.
constexpr int kDeepest = 64;

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }
bool Contains(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

enum class Atomic : uint8_t { kNo, kSilent, kUpdate, kCompare };

Atomic AtomicOf(std::string_view name) {
  bool known = false;
  for (const std::string_view start :
       {"atomic_", "atom_", "__sync_", "__atomic_", "__opencl_atomic_", "__c11_atomic_"}) {
    known = known || StartsWith(name, start);
  }
  if (!known) return Atomic::kNo;
  for (const std::string_view type :
       {"atomic_int", "atomic_uint", "atomic_long", "atomic_ulong", "atomic_float", "atomic_double", "atomic_half",
        "atomic_flag", "atomic_intptr_t", "atomic_uintptr_t", "atomic_size_t", "atomic_ptrdiff_t"}) {
    if (name == type) return Atomic::kNo;
  }
  if (Contains(name, "fence")) return Atomic::kNo;  // See IsFence().
  if (Contains(name, "store") || Contains(name, "init") || Contains(name, "flag_clear")) return Atomic::kSilent;
  if (Contains(name, "cmpxchg") || Contains(name, "compare") || Contains(name, "cmpswap")) return Atomic::kCompare;
  return Atomic::kUpdate;
}

bool IsFence(std::string_view name) {
  return name == "mem_fence" || name == "read_mem_fence" || Contains(name, "_fence") || name == "__sync_synchronize";
}

bool IsLoopWord(const Token& token) {
  return token.IsIdentifier() &&
         (token.text == "for" || token.text == "while" || token.text == "do" || token.text == "goto");
}

bool IsAssignment(const Token& token) {
  for (const std::string_view known : {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}) {
    if (token.Is(known)) return true;
  }
  return false;
}

struct Range {
  size_t begin = 0, end = 0;  ///< Tokens [begin, end).
  bool Has(size_t at) const { return at >= begin && at < end; }
};

struct Loop {
  Range all;
  Range condition;
  Range body;
  bool may_count = false;  ///< A for; see Counts().
  int8_t counts = -1;      ///< Counts(), once it is known.
};

struct Look {
  size_t at = 0;
  bool compare = false;  ///< A compare and exchange; `arguments` are its own.
  bool read_of_volatile = false;
  Range arguments;
};

class Scanner {
 public:
  Scanner(const Part& part, const std::function<uint8_t(std::string_view)>& behaviour_of, int64_t* budget)
      : part_(part), tokens_(part.tokens), behaviour_of_(behaviour_of), budget_(budget) {}

  uint8_t Run() {
    const bool whole = MatchBrackets();
    FindVolatile();
    FindLooks();
    if (!whole || !FindLoops()) {
      loops_.clear();
      const bool any = std::any_of(tokens_.begin(), tokens_.end(), IsLoopWord);
      if (any && part_.kind == Part::Kind::kMacro) result_ |= kOpenLoop;
      if (any) loops_.push_back({All(), {}, All(), false});
    }
    if (part_.kind == Part::Kind::kFunction && open_loop_) loops_.push_back({All(), {}, All(), false});
    Judge();
    return result_;
  }

 private:
  Range All() const { return {0, tokens_.size()}; }
  const Token& At(size_t i) const { return tokens_[i]; }
  bool Is(size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].Is(text); }
  bool Spend(size_t steps) {
    *budget_ -= static_cast<int64_t>(steps) + 1;
    return *budget_ > 0;
  }

  /// The bracket that belongs to the one at i, or i itself.
  size_t Partner(size_t i) const { return match_[i] == kNone ? i : match_[i]; }

  bool MatchBrackets() {
    match_.assign(tokens_.size(), kNone);
    std::vector<size_t> open;
    Spend(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (At(i).Is("(") || At(i).Is("[") || At(i).Is("{")) open.push_back(i);
      const std::string_view expected = At(i).Is(")") ? "(" : At(i).Is("]") ? "[" : At(i).Is("}") ? "{" : "";
      if (expected.empty()) continue;
      if (open.empty() || !At(open.back()).Is(expected)) return false;
      match_[i] = open.back();
      match_[open.back()] = i;
      open.pop_back();
    }
    return open.empty();
  }

  /// The call's arguments when tokens_[i] is called; empty otherwise.
  Range Arguments(size_t i) const {
    if (!Is(i + 1, "(") || match_[i + 1] == kNone) return {};
    return {i + 2, match_[i + 1]};
  }

  void FindVolatile() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!At(i).Is("volatile") && !At(i).Is("__volatile__") && !At(i).Is("__volatile")) continue;
      if (part_.kind != Part::Kind::kFunction) result_ |= kHasVolatile;
      bool local = i != 0 && (Is(i - 1, "local") || Is(i - 1, "__local"));
      size_t end = i + 1;
      while (end < tokens_.size() && !Is(end, ",") && !Is(end, ";") && !Is(end, ")") && !Is(end, "=") &&
             !Is(end, "{") && !Is(end, "[")) {
        local = local || Is(end, "local") || Is(end, "__local");
        ++end;
      }
      if (local) continue;  // Seen by its own group only.
      const bool named = At(end - 1).IsIdentifier() && end - 1 > i + 1;
      if (named) volatiles_.insert(At(end - 1).text);
      // "volatile int *a, *b": the second is one as well.
      for (size_t j = end; part_.kind == Part::Kind::kFunction && Is(j, ",") && Is(j + 1, "*"); j += 3) {
        if (j + 2 < tokens_.size()) volatiles_.insert(At(j + 2).text);
      }
      if (!named || Is(end, ")")) casts_.push_back(i);
    }
  }

  void FindLooks() {
    Spend(tokens_.size());
    std::vector<Range> atomics;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!At(i).IsIdentifier()) continue;
      const std::string_view name = At(i).text;
      const Atomic atomic = AtomicOf(name);
      const Range arguments = Arguments(i);
      if (atomic != Atomic::kNo && arguments.begin != 0) atomics.push_back(arguments);
      const uint8_t known = behaviour_of_(name);
      if ((known & kOpenLoop) != 0) {
        open_loop_ = true;
        if (part_.kind == Part::Kind::kMacro) result_ |= kOpenLoop;
      }
      if ((known & kHasVolatile) != 0) {
        if (part_.kind != Part::Kind::kFunction) result_ |= kHasVolatile;
        names_volatile_ = true;
        looks_.push_back({i, false, false, {}});
      }
      if (IsFence(name) || (known & kObserves) != 0 || IsGlobalBarrier(name, arguments)) {
        looks_.push_back({i, false, false, {}});
      } else if (atomic == Atomic::kCompare) {
        looks_.push_back({i, true, false, arguments});
      } else if ((atomic == Atomic::kUpdate || (known & kUpdates) != 0) && !IsUnused(i, arguments)) {
        // Who hands the value on says so with `return`, or is a macro: whoever names it uses it, or not.
        const bool hands_on = part_.kind == Part::Kind::kMacro || Returns(i);
        if (hands_on) result_ |= kUpdates;
        (hands_on ? handed_on_ : looks_).push_back({i, false, false, {}});
      }
    }
    const auto in_atomic = [&](size_t at) {
      return std::any_of(atomics.begin(), atomics.end(), [&](const Range& range) { return range.Has(at); });
    };
    for (const size_t at : casts_) {
      if (Spend(atomics.size()) && !in_atomic(at) && !IsParameter(at)) looks_.push_back({at, false, false, {}});
    }
    for (size_t i = 0; i < tokens_.size() && !volatiles_.empty(); ++i) {
      if (!At(i).IsIdentifier() || volatiles_.count(At(i).text) == 0) continue;
      if (Spend(atomics.size()) && !in_atomic(i) && !IsParameter(i)) looks_.push_back({i, false, true, {}});
    }
  }

  bool IsGlobalBarrier(std::string_view name, const Range& arguments) const {
    if (name != "barrier" && name != "work_group_barrier") return false;
    for (size_t i = arguments.begin; i < arguments.end; ++i) {
      if (Is(i, "CLK_GLOBAL_MEM_FENCE")) return true;
    }
    return false;
  }

  /// Before the body of a function.
  bool IsParameter(size_t at) const {
    if (part_.kind != Part::Kind::kFunction || tokens_.empty()) return false;
    const size_t last = tokens_.size() - 1;
    return !Is(last, "}") || match_[last] == kNone || at < match_[last];
  }

  /// A statement of its own.
  bool IsUnused(size_t i, const Range& arguments) const {
    if (arguments.begin == 0 || !Is(arguments.end + 1, ";") || i == 0) return false;
    for (const std::string_view before : {";", "{", "}", "else", "do"}) {
      if (Is(i - 1, before)) return true;
    }
    if (!Is(i - 1, ")") || match_[i - 1] == kNone || match_[i - 1] == 0) return false;
    const size_t open = match_[i - 1];
    for (const std::string_view before : {"if", "for", "while", "switch"}) {
      if (Is(open - 1, before)) return true;
    }
    return open + 2 == i - 1 && Is(open + 1, "void");
  }

  bool Returns(size_t i) {
    while (i-- > 0 && Spend(1)) {
      if (Is(i, "return")) return true;
      if (Is(i, ";") || Is(i, "{") || Is(i, "}") || IsAssignment(At(i))) return false;
    }
    return false;
  }

  // ---------------------------------------------------------------- loops
  /// One past the statement that begins at i; kNone when there is none that could be understood.
  size_t StatementEnd(size_t i, int depth) {
    if (depth > kDeepest || i >= tokens_.size() || !Spend(1)) return kNone;
    if (Is(i, "{")) return match_[i] + 1;
    if (Is(i, "if") || Is(i, "for") || Is(i, "while") || Is(i, "switch")) {
      if (!Is(i + 1, "(")) return kNone;
      const size_t end = StatementEnd(match_[i + 1] + 1, depth + 1);
      return Is(i, "if") && end != kNone && Is(end, "else") ? StatementEnd(end + 1, depth + 1) : end;
    }
    if (Is(i, "do")) {
      const size_t end = StatementEnd(i + 1, depth + 1);
      if (end == kNone || !Is(end, "while") || !Is(end + 1, "(")) return kNone;
      const size_t close = match_[end + 1] + 1;
      return Is(close, ";") ? close + 1 : close;
    }
    for (; i < tokens_.size(); ++i) {
      if (!Spend(1)) return kNone;
      if (Is(i, ";")) return i + 1;
      if (Is(i, "(") || Is(i, "[") || Is(i, "{")) {
        i = Partner(i);
      } else if (Is(i, ")") || Is(i, "]") || Is(i, "}")) {
        return part_.kind == Part::Kind::kMacro ? kNone : i;  // An attribute or label at the end of a block.
      }
    }
    // The end of a macro's body: whoever names it writes the semicolon.
    return part_.kind == Part::Kind::kMacro ? i : kNone;
  }

  bool FindLoops() {
    std::unordered_set<size_t> ends_of_do;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!At(i).IsIdentifier()) continue;
      if (At(i).text == "goto") {
        loops_.push_back({All(), {}, All(), false});
      } else if (At(i).text == "do") {
        const size_t body_end = StatementEnd(i + 1, 0);
        if (body_end == kNone || !Is(body_end, "while") || !Is(body_end + 1, "(")) return false;
        ends_of_do.insert(body_end);
        const size_t close = match_[body_end + 1];
        if (close == body_end + 3 && Is(body_end + 2, "0")) continue;  // The usual frame of a macro: no loop.
        loops_.push_back({{i, close + 1}, {body_end + 2, close}, {i + 1, body_end}, false});
      } else if (At(i).text == "for" || (At(i).text == "while" && ends_of_do.count(i) == 0)) {
        if (!Is(i + 1, "(")) return false;
        const size_t close = match_[i + 1], end = StatementEnd(close + 1, 0);
        if (end == kNone) return false;
        const bool is_for = At(i).text == "for";
        loops_.push_back({{i, end}, is_for ? Condition(i + 2, close) : Range{i + 2, close}, {close + 1, end}, is_for});
      }
    }
    return *budget_ > 0;
  }

  Range Condition(size_t begin, size_t end) const {
    size_t first = kNone;
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "(") || Is(i, "[") || Is(i, "{")) {
        i = Partner(i);
      } else if (Is(i, ";")) {
        if (first != kNone) return {first + 1, i};
        first = i;
      }
    }
    return {end, end};
  }

  /// Names in `names` that get a value in `where`.
  bool AnyAssigned(const Range& names, const Range& where) {
    std::unordered_set<std::string_view> wanted;
    for (size_t i = names.begin; i < names.end; ++i) {
      if (At(i).IsIdentifier()) wanted.insert(At(i).text);
    }
    if (!Spend(names.end - names.begin + where.end - where.begin)) return true;
    for (size_t i = where.begin; i < where.end; ++i) {
      if (!At(i).IsIdentifier() || wanted.count(At(i).text) == 0) continue;
      if (i > 0 && (Is(i - 1, "++") || Is(i - 1, "--") || Is(i - 1, "&"))) return true;
      size_t next = i + 1;  // Behind members and elements.
      while (next < where.end) {
        if (Is(next, "[")) {
          next = Partner(next) + 1;
        } else if (Is(next, ".") || Is(next, "->")) {
          next += 2;
        } else {
          break;
        }
      }
      if (next < where.end && IsAssignment(At(next))) return true;
    }
    return false;
  }

  bool Counts(Loop& loop) {
    if (loop.counts < 0) loop.counts = FindOutIfCounts(loop) ? 1 : 0;
    return loop.counts == 1;
  }

  bool FindOutIfCounts(const Loop& loop) {
    if (!loop.may_count || loop.condition.begin >= loop.condition.end) return false;
    if (!Spend(looks_.size() + loop.body.end - loop.body.begin)) return false;
    for (const Look& look : looks_) {
      if (loop.all.Has(look.at) && !loop.body.Has(look.at)) return false;
    }
    for (size_t i = loop.body.begin; i < loop.body.end; ++i) {
      if (Is(i, "break") || Is(i, "return") || Is(i, "goto")) return false;
    }
    return !AnyAssigned(loop.condition, loop.body);
  }

  /// Expected and new value are computed in the loop: see the top of the header.
  bool IsUpdateLoop(const Look& look, const Loop& loop) {
    if (!look.compare || look.arguments.begin == 0) return false;
    std::vector<Range> arguments;
    size_t begin = look.arguments.begin;
    for (size_t i = begin; i < look.arguments.end; ++i) {
      if (Is(i, "(") || Is(i, "[") || Is(i, "{")) {
        i = Partner(i);
      } else if (Is(i, ",")) {
        arguments.push_back({begin, i});
        begin = i + 1;
      }
    }
    arguments.push_back({begin, look.arguments.end});
    if (arguments.size() < 3) return false;
    const Range& expected = arguments[1];
    const Range& desired = arguments[2];
    const auto same = [](const Token& a, const Token& b) { return a.text == b.text; };
    const auto first = tokens_.begin();
    if (std::equal(first + static_cast<ptrdiff_t>(expected.begin), first + static_cast<ptrdiff_t>(expected.end),
                   first + static_cast<ptrdiff_t>(desired.begin), first + static_cast<ptrdiff_t>(desired.end), same)) {
      return false;
    }
    // "&expected" is given a value by the call itself.
    if (!AnyAssigned(expected, loop.all)) return false;
    if (AnyAssigned(desired, loop.all)) return true;
    for (size_t i = desired.begin; i < desired.end; ++i) {
      for (size_t j = expected.begin; j < expected.end && At(i).IsIdentifier(); ++j) {
        if (At(j).text == At(i).text) return true;
      }
    }
    return false;
  }

  /// Nothing in the loop is assigned, or done by a function, but it reads memory: its rounds can only differ by what
  /// others write.
  bool OnlyLooks(const Loop& loop) {
    if (loop.all.begin == 0 && loop.all.end == tokens_.size()) return false;  // A loop that was not understood.
    if (!Spend(loop.all.end - loop.all.begin)) return true;
    bool reads = false;
    for (size_t i = loop.all.begin; i < loop.all.end; ++i) {
      if (IsAssignment(At(i))) return false;
      reads = reads || Is(i, "[") || Is(i, "*") || Is(i, "->");
      if (!At(i).IsIdentifier() || !Is(i + 1, "(")) continue;
      const std::string_view name = At(i).text;
      const bool known = IsLoopWord(At(i)) || name == "if" || name == "switch" || name == "sizeof" ||
                         name == "barrier" || name == "work_group_barrier" || IsFence(name) || StartsWith(name, "get_");
      if (!known) return false;
    }
    return reads;
  }

  bool Names(const Range& range, std::string_view name) const {
    for (size_t i = range.begin; i < range.end; ++i) {
      if (At(i).text == name) return true;
    }
    return false;
  }

  void Judge() {
    for (const Look& look : looks_) {
      bool update = false, in_loop = false;
      if (!Spend(loops_.size())) break;
      for (Loop& loop : loops_) {
        if (!loop.all.Has(look.at)) continue;
        in_loop = true;
        bool harmless = IsUpdateLoop(look, loop);
        // What such a loop reads first is the value that it exchanges.
        for (size_t i = 0; look.read_of_volatile && !harmless && i < looks_.size(); ++i) {
          harmless = looks_[i].compare && loop.all.Has(looks_[i].at) && Spend(1) && IsUpdateLoop(looks_[i], loop) &&
                     Names(looks_[i].arguments, At(look.at).text);
        }
        update = update || harmless;
        if (!harmless && !Counts(loop)) result_ |= kWaits;
      }
      const bool silent = look.compare && !in_loop && IsUnused(look.at, look.arguments);
      if (!silent) result_ |= update ? kUpdates : kObserves;
    }
    for (const Look& look : handed_on_) {
      if (!Spend(loops_.size())) break;
      for (Loop& loop : loops_) {
        if (loop.all.Has(look.at) && !Counts(loop)) result_ |= kWaits;
      }
    }
    // What is volatile has a name that is not known here: any loop may read it.
    for (Loop& loop : loops_) {
      if (OnlyLooks(loop)) result_ |= kWaits;
      if (names_volatile_ && !Counts(loop)) result_ |= kWaits;
    }
    if (*budget_ <= 0) result_ |= kWaits | kObserves;
  }

  const Part& part_;
  const std::vector<Token>& tokens_;
  const std::function<uint8_t(std::string_view)>& behaviour_of_;
  int64_t* const budget_;
  std::vector<size_t> match_;
  std::unordered_set<std::string_view> volatiles_;
  std::vector<size_t> casts_;  ///< `volatile` without a name of its own.
  std::vector<Look> looks_;
  std::vector<Look> handed_on_;
  std::vector<Loop> loops_;
  bool open_loop_ = false;
  bool names_volatile_ = false;
  uint8_t result_ = 0;
};

}  // namespace

uint8_t ScanLoops(const Part& part, const std::function<uint8_t(std::string_view)>& behaviour_of, int64_t* budget) {
  return Scanner(part, behaviour_of, budget).Run();
}

}  // namespace hawser::server::slicing
