// SPDX-License-Identifier: Apache-2.0
// roundtrip_test.cc: one test for each message; tests/unit/proto/round_trip.h says what is tested.
#include "proto/plugin/emitter.h"

namespace hawser::plugin {
namespace {

class RoundTripEmitter final : public Emitter {
 public:
  void Emit(const Model&, const Package& package, Files* files) const override {
    Text text;
    AddOrigin(&text, package, "Each message comes out of its codec as it went in.");
    text.Add("#include \"tests/unit/proto/round_trip.h\"\n\n#include \"proto/$name$/samples.h\"\n\n",
             {{"name", package.cpp_name}});
    OpenNamespace(&text, package);
    text.Add("namespace {\n\n");
    for (const auto& message : package.messages) {
      text.Add("TEST($suite$RoundTrip, $name$) { proto::TestRoundTrip<$name$>(); }\n",
               {{"suite", CamelCase(package.cpp_name)}, {"name", message->name}});
    }
    text.Add("\n}  // namespace\n");
    CloseNamespace(&text, package);
    (*files)[PathOf(package, "roundtrip_test.cc")] = text.str();
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeRoundTripEmitter() { return std::make_unique<RoundTripEmitter>(); }

}  // namespace hawser::plugin
