// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/emitter.h"
namespace hawser::plugin {
namespace {
class Empty final : public Emitter {
  void Emit(const Model&, const Package&, Files*) const override {}
};
}  // namespace
std::unique_ptr<Emitter> MakeRoundTripEmitter() { return std::make_unique<Empty>(); }
}  // namespace hawser::plugin
