// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/description_hash.h"

#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "hawser/options.pb.h"

namespace hawser::plugin {
namespace {

uint64_t Fnv1a(uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

/// A call without an opcode is a line of the coverage table.
void RemoveWhatIsNotSent(google::protobuf::FileDescriptorProto* file) {
  for (google::protobuf::ServiceDescriptorProto& service : *file->mutable_service()) {
    auto& methods = *service.mutable_method();
    methods.erase(std::remove_if(methods.begin(), methods.end(),
                                 [](const google::protobuf::MethodDescriptorProto& method) {
                                   return method.options().GetExtension(hawser::call).opcode() == 0;
                                 }),
                  methods.end());
  }
}

}  // namespace

uint64_t DescriptionHash(std::vector<const google::protobuf::FileDescriptor*> files) {
  std::sort(files.begin(), files.end(), [](const auto* a, const auto* b) { return a->name() < b->name(); });
  uint64_t hash = 0xcbf29ce484222325u;
  for (const google::protobuf::FileDescriptor* file : files) {
    google::protobuf::FileDescriptorProto proto;
    file->CopyTo(&proto);
    proto.clear_source_code_info();
    RemoveWhatIsNotSent(&proto);
    const std::string bytes = proto.SerializeAsString();
    // The length keeps "ab" + "c" apart from "a" + "bc".
    const uint64_t size = bytes.size();
    hash = Fnv1a(hash, {reinterpret_cast<const char*>(&size), sizeof(size)});
    hash = Fnv1a(hash, bytes);
  }
  return hash;
}

}  // namespace hawser::plugin
