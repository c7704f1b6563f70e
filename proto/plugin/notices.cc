// SPDX-License-Identifier: Apache-2.0
// notices.h/.cc: the guest's side of what the server says unasked.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class NoticesEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    const std::vector<const Message*> notices = package.Notices();
    if (notices.empty()) return;
    Text header;
    AddOrigin(&header, package, "The guest's side of what the server says unasked.");
    header.Add("//\n// Threading: none of its own; a handler is called on the thread that calls DispatchNotice().\n");
    OpenHeader(&header, package, "notices.h");
    header.Add("#include \"proto/$name$/messages.h\"\n#include \"wire/frame.h\"\n\n", {{"name", package.cpp_name}});
    OpenNamespace(&header, package);
    header.Add(
        "\n/// Views in a notice live until the function returns.\nclass NoticeHandler {\n public:\n"
        "  virtual ~NoticeHandler();\n\n");
    for (const Message* notice : notices) {
      header.Add("  virtual void On$name$(const $ns$::$name$& notice) = 0;\n",
                 {{"name", notice->name}, {"ns", package.cpp_name}});
    }
    header.Add(
        "};\n\n/// Decodes a notice and hands it over. False, without a call, for an unknown opcode or a payload that\n"
        "/// cannot be decoded.\n"
        "bool DispatchNotice(const wire::FrameHeader& header, wire::Bytes payload, NoticeHandler& handler);\n\n");
    CloseNamespace(&header, package);
    CloseHeader(&header, package, "notices.h");
    (*files)[PathOf(package, "notices.h")] = header.str();

    Text source;
    AddOrigin(&source, package, "Decoding of notices.");
    source.Add("#include \"proto/$name$/notices.h\"\n\n", {{"name", package.cpp_name}});
    OpenNamespace(&source, package);
    source.Add(
        "namespace {\n\ntemplate <auto kFunction, typename Message>\n"
        "bool Run(wire::Bytes payload, NoticeHandler& handler) {\n"
        "  Message message;\n  wire::Reader reader(payload);\n"
        "  if (!message.Decode(reader) || !reader.Done()) return false;\n"
        "  (handler.*kFunction)(message);\n  return true;\n}\n\n}  // namespace\n\n"
        "NoticeHandler::~NoticeHandler() = default;\n\n"
        "bool DispatchNotice(const wire::FrameHeader& header, wire::Bytes payload, NoticeHandler& handler) {\n"
        "  switch (header.opcode) {\n");
    for (const Message* notice : notices) {
      source.Add(
          "    case static_cast<uint16_t>(Opcode::k$name$):\n"
          "      return Run<&NoticeHandler::On$name$, $ns$::$name$>(payload, handler);\n",
          {{"name", notice->name}, {"ns", package.cpp_name}});
    }
    source.Add("    default: return false;\n  }\n}\n\n");
    CloseNamespace(&source, package);
    (*files)[PathOf(package, "notices.cc")] = source.str();
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeNoticesEmitter() { return std::make_unique<NoticesEmitter>(); }

}  // namespace hawser::plugin
