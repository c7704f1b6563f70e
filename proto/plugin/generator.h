// SPDX-License-Identifier: Apache-2.0
// The plugin as protoc sees it: reads the model once and runs every emitter over each file.
#ifndef HAWSER_PROTO_PLUGIN_GENERATOR_H_
#define HAWSER_PROTO_PLUGIN_GENERATOR_H_

#include <google/protobuf/compiler/code_generator.h>

#include <string>
#include <vector>

#include "proto/plugin/emitter.h"

namespace hawser::plugin {

/// Everything that is generated from `model`.
Files Generate(const Model& model);

class Generator final : public google::protobuf::compiler::CodeGenerator {
 public:
  using FileDescriptors = std::vector<const google::protobuf::FileDescriptor*>;

  bool Generate(const google::protobuf::FileDescriptor* file, const std::string& parameter,
                google::protobuf::compiler::GeneratorContext* context, std::string* error) const override;
  bool GenerateAll(const FileDescriptors& files, const std::string& parameter,
                   google::protobuf::compiler::GeneratorContext* context, std::string* error) const override;
};

}  // namespace hawser::plugin

#endif  // HAWSER_PROTO_PLUGIN_GENERATOR_H_
