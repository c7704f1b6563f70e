// SPDX-License-Identifier: Apache-2.0
// Where a backend asks before it gives a device work. The scheduler's grants are put behind this interface; a backend
// asks it for each unit of work (a launch, or one part of a launch that was split) and knows no policy. Each device has
// a gate of its own: what waits at one, or is drained for one, concerns no other.
//
// Alone, a backend launches between BeginOpen() and EndOpen(): nothing is asked, measured or split, no timer runs, and
// nobody is told when it ends. When somebody else comes, the gate has the backend drained of that (SetDrain) and the
// grant goes on.
// Otherwise a unit is entered, runs, and is left: each Enter() that gave true is followed by exactly one Leave().
#ifndef HAWSER_SERVER_WORKER_LAUNCH_GATE_H_
#define HAWSER_SERVER_WORKER_LAUNCH_GATE_H_

#include <cstdint>
#include <functional>
#include <string>

namespace hawser::server {

/// Threading: all functions from any thread.
class LaunchGate {
 public:
  virtual ~LaunchGate() = default;

  /// True while nobody else wants the device: launch at once, and then call EndOpen(). False: ask for the unit with
  /// TryEnter() or Enter(). The executor's thread, or one other, never two at a time. Costs an exchange and a load.
  virtual bool BeginOpen() { return UnitNs() == 0; }
  virtual void EndOpen() {}
  /// How much may be under way on a queue that was launched under BeginOpen(), nanoseconds, as estimated
  /// (open_flight.h): the first wait of a newcomer. Asked now and then. 0: as much as it likes; nothing is estimated.
  virtual uint64_t OpenCapNs() const { return 0; }
  /// `drain` waits until what was launched under BeginOpen() so far has ended. A thread of the gate calls it when
  /// somebody else wants the device; between BeginOpen() and EndOpen() it is not called. Before the first BeginOpen().
  /// Null, before what it uses goes: waits for a drain that is under way.
  virtual void SetDrain(std::function<void()> drain) { (void)drain; }
  /// `closed` is called by a thread of the gate when somebody has come: UnitNs() is 0 no longer. It may be called
  /// without that; it takes no time. Before the first launch; null: waits for a call that is under way.
  virtual void SetClosed(std::function<void()> closed) { (void)closed; }

  /// UnitNs() of who should not split.
  static constexpr uint64_t kWhole = UINT64_MAX;
  /// How long one unit should keep the device, nanoseconds; longer launches are split when they can be. 0: alone.
  virtual uint64_t UnitNs() const = 0;
  /// How long the next part of a launch that is split should keep the device, nanoseconds: UnitNs(), or less where a
  /// slice has several parts (NextPieceNs(), early_leave.h). `grain_ns`: what the smallest possible part needs; 0: not
  /// known.
  virtual uint64_t PieceNs(uint64_t grain_ns) const {
    (void)grain_ns;
    return UnitNs();
  }
  /// Who shares the device at the moment, this session's tenant included. For first rounds (paper 004).
  virtual uint32_t Tenants() const = 0;

  /// True: go ahead. Never waits. `estimated_ns` is 0 when nothing is known.
  virtual bool TryEnter(uint64_t estimated_ns) = 0;
  /// Waits for the grant; never called on the executor or on a thread of the driver. False: the session ends.
  virtual bool Enter(uint64_t estimated_ns) = 0;
  /// As TryEnter() and Enter(), for a part of a launch that is split, which can still be made longer or shorter. When a
  /// grant has come under which nothing was entered yet, `resize` makes it as long as PieceNs() then says, and answers
  /// what it is estimated to take: grants of one tenant may differ in length. Called on this thread, perhaps several
  /// times. The last answer is what was entered, to be left with, and is written to `estimated_ns`.
  /// Parts come often: made of std::ref() it allocates nothing.
  using Resize = std::function<uint64_t()>;
  virtual bool TryEnterPart(uint64_t* estimated_ns, const Resize& resize) {
    (void)resize;
    return TryEnter(*estimated_ns);
  }
  virtual bool EnterPart(uint64_t* estimated_ns, const Resize& resize) {
    (void)resize;
    return Enter(*estimated_ns);
  }
  /// What was entered with this estimate is done. `measured_ns` as the device's clock has it; 0: not known (it failed).
  virtual void Leave(uint64_t estimated_ns, uint64_t measured_ns) = 0;
  /// Any thread: a TryEnter() that succeeds or an Enter() follows, on another thread or after a Leave(). Whoever
  /// schedules can begin to think.
  virtual void Announce(uint64_t estimated_ns) { (void)estimated_ns; }

  /// How long before its estimated end the last piece of a grant should leave early, nanoseconds, so that whoever is
  /// next gets ready meanwhile; 0: never. For a given piece: EarlyRestNs(), early_leave.h.
  virtual uint64_t EarlyNs() const { return 0; }
  /// Whether what is in flight is the last of its grant. Takes no lock.
  virtual bool Ends() const { return false; }
  /// A piece of Ends() is about to end: instead of Leave(), which LeaveLate() then makes up for. Takes no lock.
  virtual void LeaveEarly(uint64_t estimated_ns) { (void)estimated_ns; }
  virtual void LeaveLate(uint64_t estimated_ns, uint64_t measured_ns) { Leave(estimated_ns, measured_ns); }

  /// Within a drain: something has ended that was not entered; it took so long. Shows that the device goes on.
  virtual void Charge(uint64_t measured_ns) { (void)measured_ns; }
  /// Ends all waits, now and later.
  virtual void Cancel() = 0;
};

/// Without a scheduler.
class OpenGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return 0; }
  uint32_t Tenants() const override { return 1; }
  bool TryEnter(uint64_t) override { return true; }
  bool Enter(uint64_t) override { return true; }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {}
};

/// The gates of a session.
///
/// Threading: any thread.
class LaunchGates {
 public:
  virtual ~LaunchGates() = default;

  /// The gate to the device with this key (server/device_key.h); the same each time, and as long as this is there.
  /// Several devices may have one. Takes its time when asked first.
  virtual LaunchGate& Of(const std::string& device) = 0;
};

/// One gate to whatever device.
class OneLaunchGate final : public LaunchGates {
 public:
  /// Borrowed.
  explicit OneLaunchGate(LaunchGate& gate) : gate_(gate) {}
  LaunchGate& Of(const std::string&) override { return gate_; }

 private:
  LaunchGate& gate_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_LAUNCH_GATE_H_
