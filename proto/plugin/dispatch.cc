// SPDX-License-Identifier: Apache-2.0
// dispatch.h/.cc and forwarding_handler.h: the server's side. A frame is decoded and checked, and then
// its call is handed to the handler.
#include <set>

#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class DispatchEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    if (package.methods.empty()) return;
    (*files)[PathOf(package, "dispatch.h")] = Header(package);
    (*files)[PathOf(package, "dispatch.cc")] = Source(package);
    (*files)[PathOf(package, "forwarding_handler.h")] = Forwarding(package);
  }

 private:
  static std::string Header(const Package& package) {
    Text text;
    AddOrigin(&text, package, "The server's side: a frame is decoded and checked, then its call goes to the handler.");
    text.Add("//\n// Threading: none of its own; a handler is called on the thread that calls Dispatch().\n");
    OpenHeader(&text, package, "dispatch.h");
    text.Add(
        "#include <cstdint>\n#include <string>\n\n"
        "#include \"proto/$name$/messages.h\"\n#include \"wire/frame.h\"\n\n",
        {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add(
        "\n/// Which command a handler is working on.\n"
        "struct Call {\n"
        "  uint64_t seq = 0;     ///< FrameHeader::seq\n"
        "  uint16_t opcode = 0;  ///< FrameHeader::opcode\n"
        "  uint16_t flags = 0;   ///< FrameHeader::flags\n"
        "};\n\n"
        "/// What a server does for each call. A function returns the status of the API, 0 for success; views in\n"
        "/// the message live until it returns. Ids have the right type; whether they exist is for the handler.\n"
        "class Handler {\n public:\n  virtual ~Handler();\n\n");
    for (const Method& method : package.methods) {
      if (!method.on_wire()) continue;
      text.Add("  virtual int32_t $name$(const Call& call, const $ns$::$request$& message) = 0;\n",
               {{"name", method.name}, {"ns", package.cpp_name}, {"request", method.request->name}});
    }
    text.Add(
        "};\n\n"
        "enum class DispatchResult {\n"
        "  kDone,       ///< The handler ran, or a value was refused on its behalf; see Outcome::status.\n"
        "  kMalformed,  ///< No guest of ours sends this: end the session.\n"
        "};\n"
        "struct Outcome {\n"
        "  DispatchResult result = DispatchResult::kDone;\n"
        "  int32_t status = 0;  ///< What the handler returned; the API's invalid value for one that is not legal.\n"
        "};\n\n"
        "/// Decodes `payload` as header.opcode says, checks it, and calls the handler. On a malformed frame or a\n"
        "/// value that is not legal the handler is not called, and *error (may be null) says which field it was.\n"
        "Outcome Dispatch(const wire::FrameHeader& header, wire::Bytes payload, Handler& handler, std::string* "
        "error);\n\n");
    CloseNamespace(&text, package);
    CloseHeader(&text, package, "dispatch.h");
    return text.str();
  }

  static std::string Source(const Package& package) {
    Text text;
    AddOrigin(&text, package, "Decoding and checking of each request.");
    text.Add("#include \"proto/$name$/dispatch.h\"\n\n#include \"proto/checks.h\"\n\n", {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add(
        "namespace {\n\nusing proto::CheckId;\nusing proto::CheckIds;\nusing proto::CheckLegal;\nusing "
        "proto::Problem;\n\n"
        "struct AnyHandle {\n"
        "  static bool Matches(uint8_t type) { return IsHandle(type); }\n"
        "  static const char* Name() { return \"object\"; }\n};\n"
        "template <Handle kType>\nstruct Only {\n"
        "  static bool Matches(uint8_t type) { return type == static_cast<uint8_t>(kType); }\n"
        "  static const char* Name() { return HandleName(static_cast<uint8_t>(kType)); }\n};\n\n");
    AddLegal(package, &text);
    for (const Message* message : package.RequestMessages()) AddChecks(*message, &text);
    AddRun(package, &text);
    text.Add(
        "\n}  // namespace\n\nHandler::~Handler() = default;\n\n"
        "Outcome Dispatch(const wire::FrameHeader& header, wire::Bytes payload, Handler& handler, std::string* error) "
        "{\n"
        "  switch (header.opcode) {\n");
    for (const Method& method : package.methods) {
      if (!method.on_wire()) continue;
      text.Add(
          "    case static_cast<uint16_t>(Opcode::k$name$):\n"
          "      return Run<&Handler::$name$, $ns$::$request$>(header, payload, handler, error);\n",
          {{"name", method.name}, {"ns", package.cpp_name}, {"request", method.request->name}});
    }
    text.Add(
        "    default:\n"
        "      if (error != nullptr) *error = proto::UnknownOpcodeText(header);\n"
        "      return {DispatchResult::kMalformed, 0};\n"
        "  }\n}\n\n");
    CloseNamespace(&text, package);
    return text.str();
  }

  static void AddLegal(const Package& package, Text* text) {
    std::set<std::string> used;
    for (const Message* message : package.RequestMessages()) {
      for (const Field& field : message->fields) used.insert(field.options.legal());
    }
    for (const LegalValues& set : package.legal) {
      if (!used.count(set.name())) continue;
      text->Add("constexpr bool IsLegal$name$(uint64_t value) { return ", {{"name", CamelCase(set.name())}});
      if (set.mask() != 0) {
        text->Add("(value & ~uint64_t{$mask$}) == 0", {{"mask", Hex(set.mask())}});
      } else {
        for (int i = 0; i < set.value_size(); ++i) {
          text->Add("$or$value == $value$u", {{"or", i == 0 ? "" : " || "}, {"value", Hex(set.value(i))}});
        }
      }
      text->Add("; }\n");
    }
  }

  /// CheckIdsOf: type bytes. CheckValuesOf: legal values. FirstBadField: for the error text alone.
  static void AddChecks(const Message& message, Text* text) {
    AddFunction(message, "CheckIdsOf", text, [&](const Field& field) { return IdCheck(field); });
    AddFunction(message, "CheckValuesOf", text, [&](const Field& field) { return ValueCheck(field); });
    const bool empty = message.fields.empty();
    text->Add("[[maybe_unused]] const char* FirstBadField($name$$message$, wire::Reader&$reader$) {\n",
              {{"name", message.name}, {"message", empty ? "&" : "& message"}, {"reader", empty ? "" : " reader"}});
    for (const Field& field : message.fields) {
      text->Add("  $decode$;\n  if (reader.failed()) return \"$name$\";\n",
                {{"decode", DecodeStatement(field, "message." + field.name)}, {"name", field.name}});
    }
    text->Add("  return nullptr;\n}\n");
  }

  template <typename CheckOf>
  static void AddFunction(const Message& message, const char* name, Text* text, CheckOf check_of) {
    std::vector<std::string> checks;
    for (const Field& field : message.fields) {
      std::string check = check_of(field);
      if (!check.empty()) checks.push_back(std::move(check));
    }
    const bool empty = checks.empty();
    text->Add("[[maybe_unused]] bool $name$(const $message$&$m$, Problem*$problem$) {\n  return ",
              {{"name", name},
               {"message", message.name},
               {"m", empty ? "" : " message"},
               {"problem", empty ? "" : " problem"}});
    if (empty) text->Add("true");
    for (size_t i = 0; i < checks.size(); ++i) {
      text->Add("$and$$check$", {{"and", i == 0 ? "" : " &&\n         "}, {"check", checks[i]}});
    }
    text->Add(";\n}\n");
  }

  static std::string Nested(const Field& field, const char* function) {
    Text text;
    if (field.shape == Shape::kMessage) {
      text.Add("$function$(message.$name$, problem)", {{"function", function}, {"name", field.name}});
    } else {
      text.Add("proto::CheckEach(message.$name$, [&](const auto& each) { return $function$(each, problem); })",
               {{"function", function}, {"name", field.name}});
    }
    return text.str();
  }

  static std::string IdCheck(const Field& field) {
    if (field.message != nullptr) return Nested(field, "CheckIdsOf");
    if (!field.is_id()) return {};
    Text text;
    text.Add("$check$<$type$>(message.$name$, $nullable$, \"$name$\", problem)",
             {{"check", field.shape == Shape::kScalar ? "CheckId" : "CheckIds"},
              {"name", field.name},
              {"type", field.options.handle() == ANY_HANDLE
                           ? "AnyHandle"
                           : "Only<Handle::k" + CamelCase(Handle_Name(field.options.handle())) + ">"},
              {"nullable", field.options.nullable() ? "true" : "false"}});
    return text.str();
  }

  static std::string ValueCheck(const Field& field) {
    if (field.message != nullptr) return Nested(field, "CheckValuesOf");
    if (field.options.legal().empty()) return {};
    Text text;
    text.Add("CheckLegal(IsLegal$set$(message.$name$), message.$name$, \"$name$\", \"$legal$\", problem)",
             {{"set", CamelCase(field.options.legal())}, {"name", field.name}, {"legal", field.options.legal()}});
    return text.str();
  }

  static void AddRun(const Package& package, Text* text) {
    text->Add("\n/// The API's code for a value that is not legal.\nconstexpr int32_t kInvalidValue = $code$;\n\n",
              {{"code", std::to_string(package.api.invalid_value())}});
    text->Add(
        "template <auto kFunction, typename Message>\n"
        "Outcome Run(const wire::FrameHeader& header, wire::Bytes payload, Handler& handler, std::string* error) {\n"
        "  Message message;\n"
        "  wire::Reader reader(payload);\n"
        "  if (!message.Decode(reader) || !reader.Done()) [[unlikely]] {\n"
        "    if (error != nullptr) {\n"
        "      Message again;\n"
        "      wire::Reader from_the_start(payload);\n"
        "      const char* field = FirstBadField(again, from_the_start);\n"
        "      *error = proto::UndecodableText(OpcodeName(header.opcode), header, payload.size(), field, "
        "reader.remaining());\n"
        "    }\n"
        "    return {DispatchResult::kMalformed, 0};\n"
        "  }\n"
        "  Problem problem;\n"
        "  if (!CheckIdsOf(message, &problem)) [[unlikely]] {\n"
        "    if (error != nullptr) *error = proto::WrongIdText(OpcodeName(header.opcode), header, problem);\n"
        "    return {DispatchResult::kMalformed, 0};\n"
        "  }\n"
        "  if (!CheckValuesOf(message, &problem)) [[unlikely]] {\n"
        "    if (error != nullptr) *error = proto::IllegalValueText(OpcodeName(header.opcode), header, problem);\n"
        "    return {DispatchResult::kDone, kInvalidValue};\n"
        "  }\n"
        "  return {DispatchResult::kDone, (handler.*kFunction)(Call{header.seq, header.opcode, header.flags}, "
        "message)};\n"
        "}\n");
  }

  static std::string Forwarding(const Package& package) {
    Text text;
    AddOrigin(&text, package, "A handler whose calls all go to one generic function: for tests, fuzzing and tracing.");
    OpenHeader(&text, package, "forwarding_handler.h");
    text.Add("#include <utility>\n\n#include \"proto/$name$/dispatch.h\"\n\n", {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add(
        "\n/// `function(const Call&, const auto& message)` returns the status. `Base`: Handler, or what extends it.\n"
        "template <typename Function, typename Base = Handler>\nclass ForwardingHandler : public Base {\n public:\n"
        "  explicit ForwardingHandler(Function function) : function_(std::move(function)) {}\n\n");
    for (const Method& method : package.methods) {
      if (!method.on_wire()) continue;
      text.Add(
          "  int32_t $name$(const Call& call, const $ns$::$request$& message) override {\n"
          "    return function_(call, message);\n  }\n",
          {{"name", method.name}, {"ns", package.cpp_name}, {"request", method.request->name}});
    }
    text.Add("\n private:\n  Function function_;\n};\n\n");
    CloseNamespace(&text, package);
    CloseHeader(&text, package, "forwarding_handler.h");
    return text.str();
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeDispatchEmitter() { return std::make_unique<DispatchEmitter>(); }

}  // namespace hawser::plugin
