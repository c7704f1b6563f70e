// SPDX-License-Identifier: Apache-2.0
// opencl-coverage.md, cuda-coverage.md: what becomes of each call, as a table.
#include <algorithm>

#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class CoverageEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    if (package.methods.empty()) return;
    int calls = 0;
    int symbols = 0;
    bool many = false;
    int supported = 0;
    int never_wait = 0;
    for (const Method& method : package.methods) {
      if (!method.is_api()) continue;
      ++calls;
      symbols += Symbols(method);
      many = many || !method.options.symbols().empty();
      if (method.options.answer() == REFUSED) continue;
      ++supported;
      if (method.options.wait() == NEVER) ++never_wait;
    }
    Text text;
    text.Add(
        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
        "<!-- Generated from proto/$file$ by protoc-gen-hawser; to update: cmake --build <dir> --target "
        "update-coverage "
        "-->\n"
        "# $title$ calls\n\n"
        "$supported$ of $calls$ calls are supported; $never$ of them never wait for the server.$symbols$\n\n"
        "* **waits**: when the call waits for the server. \"when blocking\": only if the application asked to block, "
        "or\n"
        "  for what is not complete yet. \"first time\": the answer is kept. With `HAWSER_STRICT=1` every call waits.\n"
        "* **local**: answered from what the guest knows; nothing is sent to the server for the answer.\n\n"
        "| call | since | supported | waits | local | note |\n|---|---|---|---|---|---|\n",
        {{"file", package.file},
         {"title", package.api.title()},
         {"supported", std::to_string(supported)},
         {"calls", std::to_string(calls)},
         {"symbols",
          many ? " The library exports " + std::to_string(symbols) + " names for them (`_v2`, `_ptsz`, ...)." : ""},
         {"never", std::to_string(never_wait)}});
    for (const Method& method : package.methods) {
      if (!method.is_api()) continue;
      const hawser::Call& options = method.options;
      const bool refused = options.answer() == REFUSED;
      text.Add("| $call$ | $since$ | $supported$ | $waits$ | $local$ | $note$ |\n",
               {{"call", method.api},
                {"since", options.since()},
                {"supported", refused ? "no: " + options.refuse_code() : "yes"},
                {"waits", Waits(options.wait())},
                {"local", options.answer() == WIRE ? "no" : "yes"},
                {"note", Note(method)}});
    }
    (*files)[PathOf(package, package.cpp_name + "-coverage.md")] = text.str();
  }

 private:
  /// Names under which the call is exported.
  static int Symbols(const Method& method) {
    const std::string& names = method.options.symbols();
    return 1 + static_cast<int>(std::count(names.begin(), names.end(), ' '));
  }

  static std::string Waits(hawser::Wait wait) {
    switch (wait) {
      case ALWAYS:
        return "always";
      case BLOCKING:
        return "when blocking";
      case FIRST:
        return "first time";
      default:
        return "never";
    }
  }

  static std::string Note(const Method& method) {
    std::string note = method.options.reason();
    const std::string& via = method.options.via();
    if (!via.empty()) note += (note.empty() ? "" : "; ") + ("uses `" + via + "`");
    return note;
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeCoverageEmitter() { return std::make_unique<CoverageEmitter>(); }

}  // namespace hawser::plugin
