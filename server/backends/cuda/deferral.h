// SPDX-License-Identifier: Apache-2.0
// Commands that must wait because a launch before them waits for its turn. While nothing waits, nothing of this is
// used.
//
// A stream is held while a launch of it waits, or while one runs in parts. A command that is ordered behind what is
// held, by its stream, by the default stream's rules, by an event, or because it concerns everything, is kept with its
// bytes and executed by the executor itself once what was before it has been. Everything else goes on at once: other
// streams, what creates objects, what ends waits of the device.
//
// What waits and what does not follows CUDA's order, and is stricter where that costs nothing: a command that fits no
// class is behind everything and before everything.
//
// Threading: the executor's.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_DEFERRAL_H_
#define HAWSER_SERVER_BACKENDS_CUDA_DEFERRAL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/id.h"

namespace hawser::server::cuda_backend {

/// What a command is ordered with.
struct Footprint {
  enum class Kind : uint8_t {
    kFree,        ///< Nothing: it may even be what others wait for.
    kCreation,    ///< Makes or asks something: behind what concerns everything, and perhaps behind what frees.
    kStream,      ///< In a stream.
    kEvent,       ///< Of events only.
    kContext,     ///< Waits for all of a context.
    kEverything,  ///< Behind all, before all.
  };
  Kind kind = Kind::kEverything;
  bool nonblocking = false;  ///< The stream does not care for the legacy one.
  bool changes_event = false;
  bool frees = false;  ///< In stream order: memory that an allocation may need. Of a creation: it needs such.
  wire::Id context;
  wire::Id stream;  ///< Null: the context's legacy default stream.
  wire::Id event, second_event;
};

/// Bytes of one command.
struct DeferredFrame {
  wire::FrameHeader header;
  std::vector<std::byte> payload;
  Footprint footprint;
  bool answered = false;  ///< Its question was answered; what remains is to tell when it is over.
};

class Deferral {
 public:
  /// As many commands as a driver keeps launches, and so many bytes.
  static constexpr size_t kMostFrames = 1024;
  static constexpr size_t kMostBytes = size_t{64} << 20;

  /// Nothing is held and nothing waits.
  bool idle() const { return held_.empty() && frames_.empty(); }
  bool full() const { return frames_.size() >= kMostFrames || bytes_ >= kMostBytes; }
  size_t size() const { return frames_.size(); }

  /// The stream of this footprint is held until Release().
  void Hold(const Footprint& stream);
  /// False: it was not.
  bool Release(wire::Id context, wire::Id stream);
  bool Holds(wire::Id context, wire::Id stream) const;

  /// Whether a command that comes now must wait.
  bool MustWait(const Footprint& footprint) const { return blocked_.Hits(footprint); }
  void Push(DeferredFrame frame);
  /// Executes all that need not wait any more, in order. `execute` may hold streams; what then has to wait does.
  void Run(const std::function<void(DeferredFrame&)>& execute);

 private:
  /// What is held, and what the commands that wait are ordered with.
  class Blocked {
   public:
    void Add(const Footprint& footprint);
    bool Hits(const Footprint& footprint) const;

   private:
    using Ids = std::unordered_set<uint64_t>;
    static bool Has(const Ids& ids, wire::Id id) { return id && ids.count(id.raw()) != 0; }

    bool any_ = false;
    bool everything_ = false;
    bool frees_ = false;
    Ids streams_;         ///< Created ones.
    Ids legacy_;          ///< Contexts whose legacy default stream is.
    Ids blocking_;        ///< Contexts of which a stream is that the legacy one waits for.
    Ids contexts_;        ///< Contexts of which any stream is.
    Ids changed_events_;  ///< Events that will be recorded, or end.
    Ids awaited_events_;  ///< Events that something will wait for.
  };

  static uint64_t KeyOf(wire::Id context, wire::Id stream) { return stream ? stream.raw() : context.raw(); }

  std::unordered_map<uint64_t, Footprint> held_;
  std::deque<DeferredFrame> frames_;
  size_t bytes_ = 0;
  Blocked blocked_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_DEFERRAL_H_
