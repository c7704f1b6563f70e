// SPDX-License-Identifier: Apache-2.0
// visit.h: names and values of a message's fields, one after the other.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class VisitEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    Text text;
    AddOrigin(&text, package, "Visit(message, visitor) calls visitor.Field(name, value) for each field in order.");
    OpenHeader(&text, package, "visit.h");
    text.Add("#include \"proto/$name$/messages.h\"\n\n", {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add("\n");
    for (const auto& message : package.messages) {
      const bool empty = message->fields.empty();
      text.Add("template <typename Visitor>\nvoid Visit(const $message$&$name$, Visitor&&$visitor$) {\n",
               {{"message", message->name}, {"name", empty ? "" : " message"}, {"visitor", empty ? "" : " visitor"}});
      for (const Field& field : message->fields) {
        text.Add("  visitor.Field(\"$name$\", message.$name$);\n", {{"name", field.name}});
      }
      text.Add("}\n");
    }
    text.Add("\n");
    CloseNamespace(&text, package);
    CloseHeader(&text, package, "visit.h");
    (*files)[PathOf(package, "visit.h")] = text.str();
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeVisitEmitter() { return std::make_unique<VisitEmitter>(); }

}  // namespace hawser::plugin
