// SPDX-License-Identifier: Apache-2.0
// protoc-gen-hawser: run by protoc with --hawser_out; see proto/README.md.
#include <google/protobuf/compiler/plugin.h>

#include "proto/plugin/generator.h"

int main(int argc, char** argv) {
  const hawser::plugin::Generator generator;
  return google::protobuf::compiler::PluginMain(argc, argv, &generator);
}
