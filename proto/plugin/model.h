// SPDX-License-Identifier: Apache-2.0
// The description, read from its descriptors and checked: what the emitters work from.
#ifndef HAWSER_PROTO_PLUGIN_MODEL_H_
#define HAWSER_PROTO_PLUGIN_MODEL_H_

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hawser/options.pb.h"

namespace hawser::plugin {

struct Message;

/// How a field looks on the wire and in C++.
enum class Shape {
  kScalar,      // T (ids included)
  kBool,        // uint8_t, 0 or 1
  kBytes,       // wire::Bytes
  kFixedBytes,  // std::array<std::byte, N>
  kString,      // std::string_view
  kArray,       // wire::ArrayView<T>
  kFixedArray,  // std::array<T, N>
  kMessage,     // the struct
  kList,        // wire::ListView<struct>
};

struct Field {
  std::string name;
  Shape shape = Shape::kScalar;
  std::string element;               // C++ type of one scalar ("uint32_t", "wire::Id"); empty for other shapes.
  uint32_t width = 0;                // Its bytes.
  const Message* message = nullptr;  // kMessage, kList
  hawser::Field options;

  bool is_id() const { return options.handle() != NO_HANDLE; }
  /// The field's type in the generated struct.
  std::string CppType() const;
  /// Bytes it takes whatever it holds: the scalar, the array, or the count in front.
  uint32_t FixedSize() const;
};

struct Message {
  std::string name;
  std::vector<Field> fields;
  uint32_t notice = 0;  // Opcode, when the server sends it unasked.

  const Field* Find(std::string_view field) const;
};

/// One rpc.
struct Method {
  std::string api;   // As applications call it: "clCreateBuffer".
  std::string name;  // In C++: "CreateBuffer".
  const Message* request = nullptr;
  const Message* reply = nullptr;
  hawser::Call options;

  bool on_wire() const { return options.opcode() != 0; }
  bool is_api() const { return options.entry() != NOT_AN_API; }
  bool has_reply() const { return !reply->fields.empty(); }
};

/// One .proto file.
struct Package {
  std::string file;                                // "hawser/opencl.proto"
  std::string cpp_name;                            // "opencl": namespace hawser::opencl, folder proto/opencl/
  hawser::Api api;                                 // OpenCL's when the file says nothing.
  std::vector<std::unique_ptr<Message>> messages;  // A message comes after those it contains.
  std::vector<Method> methods;                     // In the order of the file.
  std::vector<LegalValues> legal;

  const LegalValues* FindLegal(std::string_view name) const;
  /// The only method whose request this message is; null when there is none or more than one.
  const Method* OnlyMethodOf(const Message& message) const;
  /// Messages that a server receives or that are part of one, in the order of `messages`.
  std::vector<const Message*> RequestMessages() const;
  std::vector<const Message*> Notices() const;
  /// Types of objects that its messages and calls name, in the order of their numbers.
  std::vector<Handle> Handles() const;
};

struct Model {
  uint64_t hash = 0;  // DescriptionHash() of all files.
  std::vector<Package> packages;
};

/// Reads and checks the description. On failure returns false and says in *error which file, which
/// message or call, and what is wrong with it.
bool ReadModel(const std::vector<const google::protobuf::FileDescriptor*>& files, Model* model, std::string* error);

}  // namespace hawser::plugin

#endif  // HAWSER_PROTO_PLUGIN_MODEL_H_
