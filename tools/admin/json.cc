// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/json.h"

#include <google/protobuf/descriptor.h>

#include <cctype>
#include <string>

namespace hawser::tools {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

/// SESSION_STATE_RUNNING of SessionState: "running".
std::string NameOf(const EnumValueDescriptor& value) {
  std::string prefix;
  for (const char c : value.type()->name()) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  prefix += '_';
  std::string name(value.name());
  if (name.rfind(prefix, 0) == 0) name.erase(0, prefix.size());
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// `index` of a repeated field, or -1.
Json Value(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return index < 0 ? (reflection.*single)(message, field) : (reflection.*repeated)(message, field, index);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_STRING:
      return get(&Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_ENUM:
      return NameOf(*get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(index < 0 ? reflection.GetMessage(message, field)
                              : reflection.GetRepeatedMessage(message, field, index));
  }
  return nullptr;
}

}  // namespace

Json ToJson(const Message& message) {
  Json object = Json::object();
  const auto* type = message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    Json& value = object[std::string(field->name())];
    if (field->is_repeated()) {
      value = Json::array();
      for (int k = 0; k < reflection.FieldSize(message, field); ++k) value.push_back(Value(message, field, k));
    } else if (field->has_presence() && !reflection.HasField(message, field)) {
      value = nullptr;
    } else {
      value = Value(message, field, -1);
    }
  }
  return object;
}

}  // namespace hawser::tools
