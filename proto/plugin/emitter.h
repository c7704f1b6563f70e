// SPDX-License-Identifier: Apache-2.0
// An emitter writes one kind of file from the model.
#ifndef HAWSER_PROTO_PLUGIN_EMITTER_H_
#define HAWSER_PROTO_PLUGIN_EMITTER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/plugin/model.h"
#include "proto/plugin/text.h"

namespace hawser::plugin {

/// What has been generated: path below the output folder, and text.
using Files = std::map<std::string, std::string>;

class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual void Emit(const Model& model, const Package& package, Files* files) const = 0;
};

/// One function for each emitter; each is in the file of that name.
std::unique_ptr<Emitter> MakeOpcodesEmitter();
std::unique_ptr<Emitter> MakeMessagesEmitter();
std::unique_ptr<Emitter> MakeVisitEmitter();
std::unique_ptr<Emitter> MakeDispatchEmitter();
std::unique_ptr<Emitter> MakeNoticesEmitter();
std::unique_ptr<Emitter> MakeTraceEmitter();
std::unique_ptr<Emitter> MakeGuestEntriesEmitter();
std::unique_ptr<Emitter> MakeSamplesEmitter();
std::unique_ptr<Emitter> MakeRoundTripEmitter();
std::unique_ptr<Emitter> MakeSeedsEmitter();
std::unique_ptr<Emitter> MakeCoverageEmitter();

/// "proto/opencl/messages.h"
std::string PathOf(const Package& package, const std::string& file);

/// The first lines of a generated C++ file: licence, origin, and `what` as a sentence.
void AddOrigin(Text* text, const Package& package, const std::string& what);

/// #ifndef and #define of a header, and its #endif.
void OpenHeader(Text* text, const Package& package, const std::string& file);
void CloseHeader(Text* text, const Package& package, const std::string& file);

void OpenNamespace(Text* text, const Package& package);
void CloseNamespace(Text* text, const Package& package);

/// Code that reads the field from `reader` into `target`, without the final semicolon.
std::string DecodeStatement(const Field& field, const std::string& target);

}  // namespace hawser::plugin

#endif  // HAWSER_PROTO_PLUGIN_EMITTER_H_
