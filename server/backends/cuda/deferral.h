// SPDX-License-Identifier: Apache-2.0
// Commands that must wait because of something before them: a launch that waits for its turn, a function of the guest,
// data that has not come, a stream that is too far ahead of the device (pending.cc). While nothing waits, nothing of
// this is used.
//
// A stream is held while one of these is in it; there may be several reasons at once. A command that is ordered behind
// what is held, by its stream, by the default stream's rules, by an event, or because it concerns everything, is kept
// with its bytes and executed by the executor itself once what was before it has been. Everything else goes on at once:
// other streams, what creates objects, what ends waits of the device.
//
// Only the guest ends some of these, and it may do so by any of its calls. So a call that has an answer must not wait
// here but for what it is really ordered with.
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
#include <memory>
#include <optional>
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
    kFree,      ///< Nothing: it may even be what others wait for.
    kCreation,  ///< Makes or asks something: behind what concerns everything, and perhaps behind what frees.
    kStream,    ///< In a stream.
    kEvent,     ///< Of events only.
    kContext,   ///< Waits for all of a context.
    kRelease,   ///< Ends something that others may still use: behind all, before nothing but what concerns everything.
    kEverything,  ///< Behind all, before all.
  };
  Kind kind = Kind::kEverything;
  bool nonblocking = false;  ///< The stream does not care for the legacy one.
  /// It gives its stream nothing: it is behind what the stream itself was given, and before nothing.
  bool asks = false;
  bool changes_event = false;
  bool frees = false;  ///< Memory that an allocation may need. Of a creation: it needs such.
  wire::Id context;
  wire::Id stream;  ///< Null: the context's legacy default stream.
  /// Or what else has a state that commands of streams use and others change: an executable graph.
  wire::Id event, second_event;

  bool operator==(const Footprint&) const = default;
};

/// Bytes of one command.
struct DeferredFrame {
  wire::FrameHeader header;
  std::vector<std::byte> payload;
  Footprint footprint;
  bool answered = false;         ///< Its question was answered; what remains is to tell when it is over.
  std::shared_ptr<void> events;  ///< Those that are no longer what their names stand for (Deferral::Detach()).
  uint64_t order = 0;            ///< Deferral's: which of two came first.
};

class Deferral {
 public:
  using Ticket = uint64_t;  ///< 0: none.
  /// So much that the guest is asked to send no more of it, and how much it takes until it may again.
  static constexpr size_t kManyFrames = 16384, kFewFrames = kManyFrames / 2;
  static constexpr size_t kManyBytes = size_t{32} << 20, kFewBytes = kManyBytes / 2;
  /// Nothing is taken any more; a guest that does as it is asked does not come here.
  static constexpr size_t kMostBytes = size_t{128} << 20;
  /// What keeping a command costs besides its own bytes.
  static constexpr size_t kFrameBytes = 256;

  /// Nothing is held and nothing waits.
  bool idle() const { return held_.empty() && frames_.empty(); }
  bool full() const { return bytes_ >= kMostBytes; }
  bool many() const { return frames_.size() >= kManyFrames || bytes_ >= kManyBytes; }
  bool few() const { return frames_.size() <= kFewFrames && bytes_ <= kFewBytes; }
  size_t size() const { return frames_.size(); }

  /// The stream of this footprint is held until Release(). `acts`: who holds it will give it something meanwhile.
  Ticket Hold(const Footprint& stream, bool acts = false);
  /// False: there is no such ticket. What waits goes on with Run().
  bool Release(Ticket ticket);
  /// Somebody who acts holds it.
  bool ActsIn(wire::Id context, wire::Id stream) const;

  /// Whether a command that comes now must wait.
  bool MustWait(const Footprint& footprint) const { return blocked_.Hits(footprint); }
  void Push(DeferredFrame frame);
  /// Whether the event's name could stand for another event, so that what waits keeps nobody from recording it. False:
  /// no command that waits names it, or whoever holds a stream does too, or there are so many that waiting costs less.
  bool CanDetach(wire::Id event) const;
  /// It will: calls detach(frame) for each command that waits and names it.
  void Detach(wire::Id event, const std::function<void(DeferredFrame&)>& detach);
  /// Executes all that need not wait any more, in order. `execute` may hold streams; what then has to wait does. Does
  /// nothing when nothing was released.
  void Run(const std::function<void(DeferredFrame&)>& execute);

 private:
  /// What is held, and what the commands that wait are ordered with.
  class Blocked {
   public:
    void Add(const Footprint& footprint);
    bool Hits(const Footprint& footprint) const { return hit_ == footprint || Finds(footprint); }
    /// It hits: what waits is looked at in order, and this only grows.
    void NoteHit(const Footprint& footprint) { hit_ = footprint; }

   private:
    bool Finds(const Footprint& footprint) const;

    using Ids = std::unordered_set<uint64_t>;
    static bool Has(const Ids& ids, wire::Id id) { return id && ids.count(id.raw()) != 0; }

    std::optional<Footprint> added_, hit_;  ///< The last ones: commands of one stream mostly come in rows.
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

  struct Held {
    Footprint stream;
    bool acts = false;
    uint64_t order = 0;  ///< Of the command that holds it.
  };

  /// Of a command that waits, when all that waits and came before it has been looked at. What is behind all, or behind
  /// all of a context, is not behind what came later: while others come and go it would wait for ever.
  bool Waits(const DeferredFrame& frame) const;
  static constexpr size_t kMostDetached = 1024;

  std::unordered_map<Ticket, Held> held_;
  Ticket next_ = 1;
  uint64_t detached_ = 0;                ///< Events that have no name any more; counted for names that nobody else has.
  uint64_t next_order_ = 1, order_ = 0;  ///< Of the next command; of the one that is executed by Run(), or 0.
  bool released_ = false;
  std::deque<std::unique_ptr<DeferredFrame>> frames_;
  size_t bytes_ = 0;
  Blocked blocked_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_DEFERRAL_H_
