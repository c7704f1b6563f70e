// SPDX-License-Identifier: Apache-2.0
// seeds.cc: a sample frame for each call and each notice; proto/seeds_main.cc writes them as files.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class SeedsEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    Text text;
    AddOrigin(&text, package, "A sample of everything that a peer can send.");
    text.Add("#include \"proto/$name$/samples.h\"\n#include \"proto/seeds.h\"\n\n", {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add("\nvoid AddSeeds(proto::SeedSink& sink) {\n");
    if (package.methods.empty()) {
      for (const auto& message : package.messages) Add("handshake", message->name, *message, 0, &text);
    }
    // OpenCL was here first.
    const std::string folder = package.cpp_name == "opencl" ? "" : package.cpp_name + "_";
    for (const Method& method : package.methods) {
      if (!method.on_wire()) continue;
      Add(folder + "calls", method.api, *method.request, method.options.opcode(), &text);
      if (method.has_reply()) Add(folder + "replies", method.api, *method.reply, method.options.opcode(), &text);
    }
    for (const Message* notice : package.Notices())
      Add(folder + "notices", notice->name, *notice, notice->notice, &text);
    text.Add("}\n\n");
    CloseNamespace(&text, package);
    (*files)[PathOf(package, "seeds.cc")] = text.str();
  }

 private:
  static void Add(const std::string& folder, const std::string& name, const Message& message, uint32_t opcode,
                  Text* text) {
    text->Add("  sink.Add<$message$>(\"$folder$\", \"$name$\", $opcode$);\n",
              {{"message", message.name}, {"folder", folder}, {"name", name}, {"opcode", std::to_string(opcode)}});
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeSeedsEmitter() { return std::make_unique<SeedsEmitter>(); }

}  // namespace hawser::plugin
