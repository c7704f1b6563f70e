// SPDX-License-Identifier: Apache-2.0
// trace.h/.cc: a call or a notice as a line for people.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class TraceEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    if (package.methods.empty()) return;
    Text header;
    AddOrigin(&header, package, "A call or a notice as a line for people.");
    OpenHeader(&header, package, "trace.h");
    header.Add("#include <cstdint>\n#include <string>\n\n#include \"wire/codec.h\"\n\n");
    OpenNamespace(&header, package);
    header.Add(
        "\n/// \"clFlush(queue=queue#3.1)\": an id is type#index.generation; long values are cut. Any bytes will do: "
        "what\n"
        "/// cannot be decoded is shown as its size and its first bytes.\n"
        "std::string Trace(uint16_t opcode, wire::Bytes payload);\n\n"
        "/// The same for the server's answer to a call: \"clFinish -> (status=0)\".\n"
        "std::string TraceReply(uint16_t opcode, wire::Bytes payload);\n\n");
    CloseNamespace(&header, package);
    CloseHeader(&header, package, "trace.h");
    (*files)[PathOf(package, "trace.h")] = header.str();

    Text source;
    AddOrigin(&source, package, "Which opcode carries which message.");
    source.Add(
        "#include \"proto/$name$/trace.h\"\n\n#include \"proto/$name$/visit.h\"\n#include \"proto/trace_text.h\"\n\n",
        {{"name", package.cpp_name}});
    OpenNamespace(&source, package);
    source.Add(
        "namespace {\n\ntemplate <typename Message>\n"
        "std::string Line(std::string start, wire::Bytes payload) {\n"
        "  return proto::TraceMessage<Message>(std::move(start), payload, &HandleName);\n}\n\n"
        "}  // namespace\n\n"
        "std::string Trace(uint16_t opcode, wire::Bytes payload) {\n  switch (opcode) {\n");
    for (const Method& method : package.methods) {
      if (method.on_wire()) AddCase(method.options.opcode(), *method.request, method.api, &source);
    }
    for (const Message* notice : package.Notices()) AddCase(notice->notice, *notice, notice->name, &source);
    source.Add(
        "    default: return proto::TraceBytes(\"opcode \" + std::to_string(opcode), payload);\n  }\n}\n\n"
        "std::string TraceReply(uint16_t opcode, wire::Bytes payload) {\n  switch (opcode) {\n");
    for (const Method& method : package.methods) {
      if (method.on_wire() && method.has_reply()) {
        AddCase(method.options.opcode(), *method.reply, method.api + " -> ", &source);
      }
    }
    source.Add(
        "    default: return proto::TraceBytes(\"answer to opcode \" + std::to_string(opcode), payload);\n  }\n}\n\n");
    CloseNamespace(&source, package);
    (*files)[PathOf(package, "trace.cc")] = source.str();
  }

 private:
  static void AddCase(uint32_t opcode, const Message& message, const std::string& start, Text* text) {
    text->Add("    case $opcode$: return Line<$message$>($start$, payload);\n",
              {{"opcode", std::to_string(opcode)}, {"message", message.name}, {"start", Quoted(start)}});
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeTraceEmitter() { return std::make_unique<TraceEmitter>(); }

}  // namespace hawser::plugin
