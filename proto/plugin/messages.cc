// SPDX-License-Identifier: Apache-2.0
// messages.h: a struct for each message with its packed codec.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class MessagesEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    Text text;
    AddOrigin(&text, package,
              "Messages and their packed codec. Views point into the frame that was decoded; nothing allocates.");
    OpenHeader(&text, package, "messages.h");
    text.Add(
        "#include <array>\n#include <cstddef>\n#include <cstdint>\n#include <string_view>\n\n"
        "#include \"proto/$name$/opcodes.h\"\n#include \"wire/codec.h\"\n#include \"wire/id.h\"\n\n",
        {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    for (const auto& message : package.messages) AddMessage(package, *message, &text);
    if (!package.methods.empty()) AddTraits(package, &text);
    text.Add("\n");
    CloseNamespace(&text, package);
    CloseHeader(&text, package, "messages.h");
    (*files)[PathOf(package, "messages.h")] = text.str();
  }

 private:
  static void AddMessage(const Package& package, const Message& message, Text* text) {
    text->Add("\nstruct $name$ {\n", {{"name", message.name}});
    uint32_t fixed = 0;
    for (const Field& field : message.fields) {
      text->Add("  $type$ $name$$init$;\n",
                {{"type", field.CppType()}, {"name", field.name}, {"init", Initializer(field)}});
      fixed += field.FixedSize();
    }
    if (const std::string call = CallOf(package, message); !call.empty()) {
      text->Add("\n  static constexpr Opcode kOpcode = Opcode::k$name$;\n", {{"name", call}});
    }
    text->Add(
        "\n  /// Bytes that every such message takes: scalars, arrays of fixed size, counts.\n"
        "  static constexpr size_t kFixedSize = $fixed$;\n\n  size_t SizeOf() const {\n    return kFixedSize",
        {{"fixed", std::to_string(fixed)}});
    for (const Field& field : message.fields) {
      if (const char* size = VariableSize(field)) {
        text->Add(" + $name$.$size$", {{"name", field.name}, {"size", size}});
      }
    }
    const bool empty = message.fields.empty();
    text->Add(";\n  }\n\n  void Encode(wire::Writer&$writer$) const {\n", {{"writer", empty ? "" : " writer"}});
    for (const Field& field : message.fields) text->Add("    $code$;\n", {{"code", EncodeOf(field)}});
    text->Add("  }\n\n  bool Decode(wire::Reader& reader) {\n");
    for (const Field& field : message.fields)
      text->Add("    $code$;\n", {{"code", DecodeStatement(field, field.name)}});
    text->Add("    return !reader.failed();\n  }\n};\n");
  }

  /// The one call or notice that the message serves; empty: none, or several.
  static std::string CallOf(const Package& package, const Message& message) {
    if (const Method* method = package.OnlyMethodOf(message)) return method->name;
    return message.notice != 0 ? message.name : "";
  }

  static const char* Initializer(const Field& field) {
    switch (field.shape) {
      case Shape::kScalar:
        return field.is_id() ? "" : " = 0";
      case Shape::kBool:
        return " = 0";
      case Shape::kFixedBytes:
      case Shape::kFixedArray:
        return "{}";
      default:
        return "";
    }
  }

  /// What a field adds to SizeOf() beyond its fixed part, or null.
  static const char* VariableSize(const Field& field) {
    switch (field.shape) {
      case Shape::kBytes:
      case Shape::kString:
        return "size()";
      case Shape::kArray:
        return "byte_size()";
      case Shape::kMessage:
      case Shape::kList:
        return "SizeOf()";
      default:
        return nullptr;
    }
  }

  static std::string EncodeOf(const Field& field) {
    switch (field.shape) {
      case Shape::kBytes:
        return "writer.PutBytes(" + field.name + ")";
      case Shape::kString:
        return "writer.PutString(" + field.name + ")";
      case Shape::kArray:
        return "writer.PutArray(" + field.name + ")";
      case Shape::kMessage:
      case Shape::kList:
        return field.name + ".Encode(writer)";
      default:
        return "writer.Put(" + field.name + ")";
    }
  }

  static void AddTraits(const Package& package, Text* text) {
    text->Add(
        "\n/// Opcode of a message that serves exactly one call or notice. Others have none.\n"
        "template <typename Message>\nstruct OpcodeOf;\n");
    for (const auto& message : package.messages) {
      const std::string call = CallOf(package, *message);
      if (call.empty()) continue;
      text->Add("template <>\nstruct OpcodeOf<$message$> {\n  static constexpr Opcode value = Opcode::k$name$;\n};\n",
                {{"message", message->name}, {"name", call}});
    }
    text->Add(
        "\n/// What the server answers to such a request.\n"
        "template <typename Message>\nstruct ReplyOf;\n");
    for (const auto& message : package.messages) {
      const Method* method = package.OnlyMethodOf(*message);
      if (method == nullptr || !method->has_reply()) continue;
      text->Add("template <>\nstruct ReplyOf<$message$> {\n  using type = $reply$;\n};\n",
                {{"message", message->name}, {"reply", method->reply->name}});
    }
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeMessagesEmitter() { return std::make_unique<MessagesEmitter>(); }

}  // namespace hawser::plugin
