// SPDX-License-Identifier: Apache-2.0
// samples.h: fills each message with values that a receiver accepts.
#include <algorithm>

#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class SamplesEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    Text text;
    AddOrigin(&text, package, "Fills a message with values that a receiver accepts, all different where they may be.");
    OpenHeader(&text, package, "samples.h");
    text.Add("#include \"proto/$name$/messages.h\"\n#include \"proto/sample_arena.h\"\n\n",
             {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add("\n");
    for (const auto& message : package.messages) {
      const bool empty = message->fields.empty();
      text.Add("inline void FillSample([[maybe_unused]] proto::SampleArena&$arena$, $name$*$message$) {\n",
               {{"arena", empty ? "" : " arena"}, {"name", message->name}, {"message", empty ? "" : " message"}});
      for (const Field& field : message->fields) text.Add("  $code$;\n", {{"code", Fill(package, field)}});
      text.Add("}\n");
    }
    text.Add("\n");
    CloseNamespace(&text, package);
    CloseHeader(&text, package, "samples.h");
    (*files)[PathOf(package, "samples.h")] = text.str();
  }

 private:
  static std::string Fill(const Package& package, const Field& field) {
    const std::string target = "message->" + field.name;
    const std::string type = field.is_id() ? std::to_string(IdType(package, field)) : "0";
    const std::string name = '"' + field.name + '"';
    const std::string creates = field.options.creates() ? ", true" : "";
    switch (field.shape) {
      case Shape::kScalar:
        if (field.is_id()) return target + " = arena.Id(" + type + creates + ")";
        if (!field.options.legal().empty()) return target + " = " + Legal(package, field);
        return target + " = arena.Number<" + field.element + ">(" + name + ")";
      case Shape::kBool:
        return target + " = arena.OneOf<decltype(" + target + ")>({0, 1})";
      case Shape::kBytes:
        return target + " = arena.Bytes(" + Count(field, 20) + ", " + name + ")";
      case Shape::kString:
        return target + " = arena.String(" + Count(field, 11) + ")";
      case Shape::kFixedBytes:
        return "arena.Fill(" + target + ", " + name + ")";
      case Shape::kFixedArray:
        return "for (" + field.element + "& each : " + target + ") each = arena.Element<" + field.element + ">(" +
               type + ", " + name + creates + ")";
      case Shape::kArray:
        return target + " = arena.Array<" + field.element + ">(" + Count(field, 3) + ", " + type + ", " + name +
               creates + ")";
      case Shape::kMessage:
        return "FillSample(arena, &" + target + ")";
      case Shape::kList:
        return target + " = arena.List<" + field.message->name + ">(" + Count(field, 2) + ", " + name + ", [&](" +
               field.message->name + "* each) { FillSample(arena, each); })";
    }
    return {};
  }

  /// Any type of the package will do for ANY_HANDLE.
  static int IdType(const Package& package, const Field& field) {
    return field.options.handle() == ANY_HANDLE ? package.Handles().back() : field.options.handle();
  }

  static std::string Legal(const Package& package, const Field& field) {
    const LegalValues& set = *package.FindLegal(field.options.legal());
    if (set.mask() != 0) return "arena.Bits<" + field.element + ">(" + Hex(set.mask()) + ")";
    std::string values;
    for (const uint64_t value : set.value()) values += (values.empty() ? "" : ", ") + Hex(value);
    return "arena.OneOf<" + field.element + ">({" + values + "})";
  }

  static std::string Count(const Field& field, uint32_t wanted) {
    const uint32_t max = field.options.max();
    return std::to_string(max == 0 ? wanted : std::min(max, wanted));
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeSamplesEmitter() { return std::make_unique<SamplesEmitter>(); }

}  // namespace hawser::plugin
