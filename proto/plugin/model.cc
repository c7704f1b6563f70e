// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "proto/plugin/description_hash.h"

namespace hawser::plugin {

namespace pb = google::protobuf;

std::string Field::CppType() const {
  const std::string count = std::to_string(options.fixed());
  switch (shape) {
    case Shape::kScalar:
      return element;
    case Shape::kBool:
      return "uint8_t";
    case Shape::kBytes:
      return "wire::Bytes";
    case Shape::kFixedBytes:
      return "std::array<std::byte, " + count + ">";
    case Shape::kString:
      return "std::string_view";
    case Shape::kArray:
      return "wire::ArrayView<" + element + ">";
    case Shape::kFixedArray:
      return "std::array<" + element + ", " + count + ">";
    case Shape::kMessage:
      return message->name;
    case Shape::kList:
      return "wire::ListView<" + message->name + ">";
  }
  return {};
}

uint32_t Field::FixedSize() const {
  switch (shape) {
    case Shape::kScalar:
      return width;
    case Shape::kBool:
      return 1;
    case Shape::kFixedBytes:
      return options.fixed();
    case Shape::kFixedArray:
      return width * options.fixed();
    case Shape::kBytes:
    case Shape::kString:
    case Shape::kArray:
      return 4;
    case Shape::kMessage:
    case Shape::kList:
      return 0;  // SizeOf() of the value counts everything.
  }
  return 0;
}

const Field* Message::Find(std::string_view field) const {
  for (const Field& f : fields) {
    if (f.name == field) return &f;
  }
  return nullptr;
}

const LegalValues* Package::FindLegal(std::string_view name) const {
  for (const LegalValues& set : legal) {
    if (set.name() == name) return &set;
  }
  return nullptr;
}

const Method* Package::OnlyMethodOf(const Message& message) const {
  const Method* only = nullptr;
  for (const Method& method : methods) {
    if (method.request != &message) continue;
    if (only != nullptr) return nullptr;
    only = &method;
  }
  return only != nullptr && only->on_wire() ? only : nullptr;
}

std::vector<const Message*> Package::RequestMessages() const {
  std::set<const Message*> wanted;
  for (const Method& method : methods) {
    if (method.on_wire()) wanted.insert(method.request);
  }
  // Contents come before containers in `messages`, so one walk from the end finds all.
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    if (!wanted.count(it->get())) continue;
    for (const Field& field : (*it)->fields) {
      if (field.message != nullptr) wanted.insert(field.message);
    }
  }
  std::vector<const Message*> result;
  for (const auto& message : messages) {
    if (wanted.count(message.get())) result.push_back(message.get());
  }
  return result;
}

std::vector<const Message*> Package::Notices() const {
  std::vector<const Message*> result;
  for (const auto& message : messages) {
    if (message->notice != 0) result.push_back(message.get());
  }
  return result;
}

std::vector<Handle> Package::Handles() const {
  std::set<Handle> used;
  for (const auto& message : messages) {
    for (const Field& field : message->fields) used.insert(field.options.handle());
  }
  for (const Method& method : methods) used.insert(method.options.object());
  used.erase(NO_HANDLE);
  used.erase(ANY_HANDLE);
  return {used.begin(), used.end()};
}

namespace {

/// Reads one file. The first mistake stops it.
class PackageReader {
 public:
  PackageReader(const pb::FileDescriptor& file, Package* package) : file_(file), package_(*package) {}

  bool Read(std::string* error) {
    const bool good = ReadLegal() && ReadMessages() && ReadMethods() && CheckNumbers() && CheckVia();
    if (!good) *error = std::string(file_.name()) + ": " + error_;
    return good;
  }

 private:
  bool Wrong(std::string_view where, std::string_view what) {
    error_ = std::string(where) + ": " + std::string(what);
    return false;
  }

  bool ReadLegal() {
    package_.file = file_.name();
    const std::string full = std::string(file_.package());
    const size_t dot = full.rfind('.');
    if (full.compare(0, dot, "hawser") != 0) return Wrong("package " + full, "is not of the form hawser.<name>");
    package_.cpp_name = full.substr(dot + 1);
    package_.api = file_.options().GetExtension(hawser::api);
    if (package_.api.prefix().empty()) {
      package_.api.set_title("OpenCL");
      package_.api.set_prefix("cl");
      package_.api.set_invalid_value(-30);
    }
    for (int i = 0; i < file_.options().ExtensionSize(hawser::legal); ++i) {
      const LegalValues& set = file_.options().GetExtension(hawser::legal, i);
      if (set.name().empty() || package_.FindLegal(set.name()) != nullptr) {
        return Wrong("legal values '" + set.name() + "'", "need a name that no other set has");
      }
      if ((set.value_size() == 0) == (set.mask() == 0)) {
        return Wrong("legal values '" + set.name() + "'", "need either values or a mask");
      }
      package_.legal.push_back(set);
    }
    return true;
  }

  bool ReadMessages() {
    for (int i = 0; i < file_.message_type_count(); ++i) {
      if (!ReadMessage(*file_.message_type(i))) return false;
    }
    return true;
  }

  bool ReadMessage(const pb::Descriptor& descriptor) {
    if (known_.count(&descriptor)) return true;
    const std::string where = "message " + std::string(descriptor.name());
    if (descriptor.file() != &file_) return Wrong(where, "is of another file");
    if (!reading_.insert(&descriptor).second) return Wrong(where, "contains itself");
    if (descriptor.nested_type_count() != 0 || descriptor.oneof_decl_count() != 0) {
      return Wrong(where, "nested types, maps, oneofs and optional fields have no packed form");
    }
    auto message = std::make_unique<Message>();
    message->name = descriptor.name();
    message->notice = descriptor.options().GetExtension(hawser::notice).opcode();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      Field field;
      if (!ReadField(*descriptor.field(i), i + 1, &field)) return false;
      message->fields.push_back(std::move(field));
    }
    known_[&descriptor] = message.get();
    package_.messages.push_back(std::move(message));
    return true;
  }

  bool ReadField(const pb::FieldDescriptor& descriptor, int number, Field* field) {
    const std::string where = "field " + std::string(descriptor.full_name());
    field->name = descriptor.name();
    field->options = descriptor.options().GetExtension(hawser::field);
    const hawser::Field& options = field->options;
    if (descriptor.number() != number) {
      return Wrong(where, "fields are numbered 1, 2, 3 in the order in which they are written");
    }
    using Type = pb::FieldDescriptor;
    const bool repeated = descriptor.is_repeated();
    switch (descriptor.type()) {
      case Type::TYPE_UINT32:
        SetScalar(field, "uint32_t", 4, repeated);
        break;
      case Type::TYPE_INT32:
        SetScalar(field, "int32_t", 4, repeated);
        break;
      case Type::TYPE_UINT64:
        SetScalar(field, options.handle() == NO_HANDLE ? "uint64_t" : "wire::Id", 8, repeated);
        break;
      case Type::TYPE_INT64:
        SetScalar(field, "int64_t", 8, repeated);
        break;
      case Type::TYPE_BOOL:
        if (repeated) return Wrong(where, "repeated bool has no packed form");
        field->shape = Shape::kBool;
        break;
      case Type::TYPE_BYTES:
        if (repeated) return Wrong(where, "repeated bytes have no packed form; use a message with bytes in it");
        field->shape = options.fixed() != 0 ? Shape::kFixedBytes : Shape::kBytes;
        break;
      case Type::TYPE_STRING:
        if (repeated) return Wrong(where, "repeated strings have no packed form; use a message with a string in it");
        field->shape = Shape::kString;
        break;
      case Type::TYPE_MESSAGE:
        if (!ReadMessage(*descriptor.message_type())) return false;
        field->message = known_[descriptor.message_type()];
        if (repeated && field->message->fields.empty()) return Wrong(where, "a list of empty messages");
        field->shape = repeated ? Shape::kList : Shape::kMessage;
        break;
      default:
        return Wrong(where, "its type has no packed form");
    }
    return CheckField(where, *field);
  }

  static void SetScalar(Field* field, const char* type, uint32_t width, bool repeated) {
    field->element = type;
    field->width = width;
    field->shape = !repeated ? Shape::kScalar : field->options.fixed() != 0 ? Shape::kFixedArray : Shape::kArray;
  }

  bool CheckField(const std::string& where, const Field& field) {
    const hawser::Field& options = field.options;
    const bool fixed = field.shape == Shape::kFixedBytes || field.shape == Shape::kFixedArray;
    const bool counted = field.shape == Shape::kBytes || field.shape == Shape::kString ||
                         field.shape == Shape::kArray || field.shape == Shape::kList;
    if (field.is_id() && field.element != "wire::Id") return Wrong(where, "a handle is a uint64");
    if ((options.creates() || options.nullable()) && !field.is_id()) {
      return Wrong(where, "only a handle is created or null");
    }
    if (options.fixed() != 0 && !fixed) return Wrong(where, "'fixed' is for bytes and repeated numbers");
    if (options.max() != 0 && !counted) return Wrong(where, "'max' is for what has a count");
    if (!options.legal().empty()) {
      if (package_.FindLegal(options.legal()) == nullptr) {
        return Wrong(where, "no legal values are called '" + options.legal() + "'");
      }
      if (field.shape != Shape::kScalar || field.is_id()) return Wrong(where, "'legal' is for a single number");
    }
    return true;
  }

  bool ReadMethods() {
    for (int i = 0; i < file_.service_count(); ++i) {
      const pb::ServiceDescriptor& service = *file_.service(i);
      for (int j = 0; j < service.method_count(); ++j) {
        const pb::MethodDescriptor& descriptor = *service.method(j);
        const std::string where = "rpc " + std::string(descriptor.name());
        if (descriptor.client_streaming() || descriptor.server_streaming()) return Wrong(where, "streams do not exist");
        if (!ReadMessage(*descriptor.input_type()) || !ReadMessage(*descriptor.output_type())) return false;
        Method method;
        method.api = descriptor.name();
        method.options = descriptor.options().GetExtension(hawser::call);
        method.name = method.is_api() ? WithoutPrefix(method.api) : method.api;
        method.request = known_[descriptor.input_type()];
        method.reply = known_[descriptor.output_type()];
        if (!CheckMethod(where, method)) return false;
        package_.methods.push_back(std::move(method));
      }
    }
    return true;
  }

  std::string WithoutPrefix(const std::string& api) const {
    return api.substr(std::min(api.size(), package_.api.prefix().size()));
  }

  bool CheckMethod(const std::string& where, const Method& method) {
    const hawser::Call& options = method.options;
    const std::string& prefix = package_.api.prefix();
    if (method.is_api() && method.api.compare(0, prefix.size(), prefix) != 0) {
      return Wrong(where, "API calls begin with '" + prefix + "'");
    }
    if (method.is_api() && options.since().empty()) return Wrong(where, "say 'since' which version");
    if (!method.on_wire() && !method.is_api()) return Wrong(where, "a protocol message needs an opcode");
    if (!method.on_wire() && !method.request->fields.empty()) return Wrong(where, "has a request but no opcode");
    if (options.via().empty() && !method.on_wire() && options.answer() == WIRE) {
      return Wrong(where, "crosses the wire with neither an opcode nor 'via'");
    }
    switch (options.entry()) {
      case RETAIN:
      case RELEASE:
        if (options.object() == NO_HANDLE || options.object() == ANY_HANDLE) return Wrong(where, "names no 'object'");
        return true;
      case REFUSE:
        if (options.refuse_code().empty() || options.c_params().empty() || options.reason().empty()) {
          return Wrong(where, "REFUSE needs refuse_code, reason and c_params");
        }
        return true;
      case ENQUEUE:
        return CheckEnqueue(where, method);
      default:
        return true;
    }
  }

  bool CheckEnqueue(const std::string& where, const Method& method) {
    const std::vector<Field>& fields = method.request->fields;
    if (method.options.command_type().empty()) return Wrong(where, "ENQUEUE needs command_type");
    const size_t count = fields.size();
    if (count < 3 || fields[0].name != "queue" || fields[count - 2].name != "wait_list" ||
        fields[count - 1].name != "event") {
      return Wrong(where, "ENQUEUE needs the fields queue, ..., wait_list, event");
    }
    for (size_t i = 1; i + 2 < count; ++i) {
      const Field& field = fields[i];
      const bool mem = field.options.handle() == MEM;
      const bool bytes = field.shape == Shape::kBytes || field.shape == Shape::kFixedBytes;
      const bool number = !field.is_id() && (field.shape == Shape::kScalar || field.shape == Shape::kFixedArray);
      if (mem && field.shape != Shape::kFixedArray) continue;
      if (bytes) continue;
      if (number && !field.options.c_type().empty()) continue;
      return Wrong(where, "no entry point can be made for field '" + field.name + "' (a number needs a c_type)");
    }
    return true;
  }

  bool CheckNumbers() {
    std::map<uint32_t, std::string> used;
    std::set<std::string> calls;
    std::set<std::string> names;
    for (const Method& method : package_.methods) {
      if (!calls.insert(method.api).second) return Wrong("rpc " + method.api, "the name is used twice");
      if (!method.on_wire()) continue;  // Not a name in C++.
      if (!names.insert(method.name).second) return Wrong("rpc " + method.api, "the name is used twice");
      if (!Use(&used, method.options.opcode(), method.api)) return false;
    }
    for (const Message* message : package_.Notices()) {
      if (!names.insert(message->name).second) return Wrong("notice " + message->name, "is also the name of a call");
      if (!Use(&used, message->notice, message->name)) return false;
    }
    return true;
  }

  bool Use(std::map<uint32_t, std::string>* used, uint32_t opcode, const std::string& name) {
    // From 0xfff0 on is the set-up of a session.
    if (opcode >= 0xfff0) return Wrong(name, "opcode " + std::to_string(opcode) + " does not exist");
    const auto [at, fresh] = used->emplace(opcode, name);
    if (!fresh) return Wrong(name, "opcode " + std::to_string(opcode) + " belongs to " + at->second);
    return true;
  }

  bool CheckVia() {
    for (const Method& method : package_.methods) {
      const std::string& via = method.options.via();
      if (via.empty()) continue;
      bool found = false;
      for (const Method& other : package_.methods) found = found || (other.api == via && other.on_wire());
      if (!found) return Wrong("rpc " + method.api, "goes via '" + via + "', which is no call with an opcode");
    }
    return true;
  }

  const pb::FileDescriptor& file_;
  Package& package_;
  std::map<const pb::Descriptor*, const Message*> known_;
  std::set<const pb::Descriptor*> reading_;
  std::string error_;
};

}  // namespace

bool ReadModel(const std::vector<const pb::FileDescriptor*>& files, Model* model, std::string* error) {
  model->hash = DescriptionHash(files);
  for (const pb::FileDescriptor* file : files) {
    Package package;
    if (!PackageReader(*file, &package).Read(error)) return false;
    model->packages.push_back(std::move(package));
  }
  return true;
}

}  // namespace hawser::plugin
