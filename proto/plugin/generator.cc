// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/generator.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <memory>

namespace hawser::plugin {

namespace pb = google::protobuf;

Files Generate(const Model& model) {
  const std::unique_ptr<Emitter> emitters[] = {
      MakeOpcodesEmitter(), MakeMessagesEmitter(),     MakeVisitEmitter(),    MakeDispatchEmitter(),
      MakeNoticesEmitter(), MakeTraceEmitter(),        MakeSamplesEmitter(),  MakeRoundTripEmitter(),
      MakeSeedsEmitter(),   MakeGuestEntriesEmitter(), MakeCoverageEmitter(),
  };
  Files files;
  for (const Package& package : model.packages) {
    for (const std::unique_ptr<Emitter>& emitter : emitters) emitter->Emit(model, package, &files);
  }
  return files;
}

bool Generator::Generate(const pb::FileDescriptor* file, const std::string& parameter,
                         pb::compiler::GeneratorContext* context, std::string* error) const {
  return GenerateAll({file}, parameter, context, error);
}

bool Generator::GenerateAll(const FileDescriptors& files, const std::string&, pb::compiler::GeneratorContext* context,
                            std::string* error) const {
  Model model;
  if (!ReadModel(files, &model, error)) return false;
  for (const auto& [path, content] : plugin::Generate(model)) {
    const std::unique_ptr<pb::io::ZeroCopyOutputStream> stream(context->Open(path));
    pb::io::CodedOutputStream(stream.get()).WriteString(content);
  }
  return true;
}

}  // namespace hawser::plugin
