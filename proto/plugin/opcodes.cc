// SPDX-License-Identifier: Apache-2.0
// opcodes.h: the numbers of calls and notices, the types of handles, and what two builds compare.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

// Raised when a build must refuse to talk to an older one for a reason that the description does not show.
constexpr int kProtocolVersion = 1;

class OpcodesEmitter final : public Emitter {
 public:
  void Emit(const Model& model, const Package& package, Files* files) const override {
    Text text;
    AddOrigin(&text, package, "Numbers on the wire, and what two builds compare before they talk.");
    OpenHeader(&text, package, "opcodes.h");
    text.Add("#include <cstdint>\n\n");
    OpenNamespace(&text, package);
    text.Add(
        "\n/// Both ends of a session have the same of each.\n"
        "inline constexpr uint32_t kProtocolVersion = $version$;\n"
        "inline constexpr uint64_t kDescriptionHash = $hash$u;\n",
        {{"version", std::to_string(kProtocolVersion)}, {"hash", Hex(model.hash)}});
    const std::vector<const Message*> notices = package.Notices();
    if (!package.methods.empty() || !notices.empty()) AddOpcodes(package, notices, &text);
    if (!package.methods.empty()) AddHandles(package, &text);
    text.Add("\n");
    CloseNamespace(&text, package);
    CloseHeader(&text, package, "opcodes.h");
    (*files)[PathOf(package, "opcodes.h")] = text.str();
  }

 private:
  static void AddOpcodes(const Package& package, const std::vector<const Message*>& notices, Text* text) {
    text->Add("\nenum class Opcode : uint16_t {\n");
    for (const Method& method : package.methods) {
      if (!method.on_wire()) continue;
      text->Add("  k$name$ = $opcode$,\n",
                {{"name", method.name}, {"opcode", std::to_string(method.options.opcode())}});
    }
    text->Add("  // What the server says unasked.\n");
    for (const Message* notice : notices) {
      text->Add("  k$name$ = $opcode$,\n", {{"name", notice->name}, {"opcode", std::to_string(notice->notice)}});
    }
    text->Add(
        "};\n\n"
        "/// The call as applications know it (\"clCreateBuffer\"), or the name of the message; \"?\" when unknown.\n"
        "constexpr const char* OpcodeName(uint16_t opcode) {\n"
        "  switch (opcode) {\n");
    for (const Method& method : package.methods) {
      if (!method.on_wire()) continue;
      AddCase(text, method.options.opcode(), Quoted(method.api));
    }
    for (const Message* notice : notices) AddCase(text, notice->notice, Quoted(notice->name));
    text->Add(
        "    default: return \"?\";\n  }\n}\n"
        "constexpr const char* OpcodeName(Opcode opcode) { return OpcodeName(static_cast<uint16_t>(opcode)); }\n\n"
        "/// True for a call whose server answers with a message of its own.\n"
        "constexpr bool HasReply(Opcode opcode) {\n"
        "  switch (opcode) {\n");
    for (const Method& method : package.methods) {
      if (method.on_wire() && method.has_reply()) text->Add("    case Opcode::k$name$:\n", {{"name", method.name}});
    }
    text->Add("      return true;\n    default: return false;\n  }\n}\n");
  }

  static void AddCase(Text* text, uint32_t opcode, const std::string& value) {
    text->Add("    case $opcode$: return $value$;\n", {{"opcode", std::to_string(opcode)}, {"value", value}});
  }

  static void AddHandles(const Package& package, Text* text) {
    const std::vector<Handle> handles = package.Handles();
    text->Add("\n/// Type byte of an object's id (wire::Id::type()).\nenum class Handle : uint8_t {\n");
    for (const Handle handle : handles) {
      text->Add("  k$name$ = $number$,\n",
                {{"name", CamelCase(Handle_Name(handle))}, {"number", std::to_string(handle)}});
    }
    text->Add(
        "};\n\n/// \"context\", \"queue\", ...; \"?\" when unknown.\n"
        "constexpr const char* HandleName(uint8_t type) {\n  switch (type) {\n");
    for (const Handle handle : handles) {
      AddCase(text, static_cast<uint32_t>(handle), Quoted(LowerCase(Handle_Name(handle))));
    }
    text->Add(
        "    default: return \"?\";\n  }\n}\n"
        "constexpr bool IsHandle(uint8_t type) { return HandleName(type)[0] != '?'; }\n");
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeOpcodesEmitter() { return std::make_unique<OpcodesEmitter>(); }

}  // namespace hawser::plugin
