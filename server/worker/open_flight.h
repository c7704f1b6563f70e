// SPDX-License-Identifier: Apache-2.0
// How far a session that is alone may run ahead of the device, so that the first wait of a newcomer is bounded.
//
// What a lone session launches is not asked for and not measured one by one. Instead a *mark* (an event of the driver)
// is put behind a launch now and then, and no more often than each eighth of the bound.
// What lies between two marks that were passed tells how long the kernels in there take; with that, what is behind the
// mark that was passed last can be estimated. When it is more than the bound, the next launch waits (how, is the
// backend's affair) until about half of it is over, so the device never runs dry. Two launches may always be under way.
//
// What was learnt may be wrong: a kernel that had little to do has much now. So it is trusted no further than the
// stream is known to have gone: no more launches than the *window* are under way without proof that they end, eight to
// begin with, and there is a mark for each quarter of it, and every 128 launches. Proof is a mark that was passed, or
// that somebody saw launches end (Over(): who hears of them needs marks only every 1,024 launches, for their speed).
// While marks are passed in time the window doubles;
// when the session has not used it for long, it shrinks; when kernels turn out much longer than thought it is as at
// first.
//
// Marks that were not passed yet also say, when somebody else comes, that the device goes on (LaunchGate::Charge).
//
// Most launches are like the one before. As many of those as can be before anything is to be looked at are agreed upon
// at once, and then each is a count and three comparisons, all of one line of the cache; they are added up later.
#ifndef HAWSER_SERVER_WORKER_OPEN_FLIGHT_H_
#define HAWSER_SERVER_WORKER_OPEN_FLIGHT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace hawser::server {

/// What a lone session knows of a kernel's speed. One thread.
class OpenSpeed {
 public:
  bool known() const { return ns_per_item_ > 0; }
  double ns_per_item() const { return ns_per_item_; }
  void Set(double ns_per_item) { ns_per_item_ = ns_per_item; }
  /// No other one's, ever; not 0. Of a copy: the same.
  uint64_t id() const { return id_; }

 private:
  static uint64_t NextId() {
    static std::atomic<uint64_t> ids{0};
    return ids.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  double ns_per_item_ = 0;
  uint64_t id_ = NextId();
};

/// What one queue (or stream) has been given. `Mark`: a handle of an event; copyable. One thread.
template <typename Mark>
class OpenFlight {
 public:
  /// The bound, until Put() says another.
  static constexpr uint64_t kDefaultCapNs = 10'000'000;
  /// Launches without a mark and without proof.
  static constexpr uint32_t kMostUnmarked = 128;
  /// Launches without a mark; fewer at first.
  static constexpr uint32_t kMostUnmeasured = 1024;
  /// Marks within the bound.
  static constexpr uint32_t kMarks = 8;
  /// Launches without proof, at first; marks within them.
  static constexpr uint32_t kFirstWindow = 8;
  static constexpr uint32_t kWindowMarks = 4;

  /// The launch path: the next launch should wait: Look(), and if this is still so, until ResumeAt() is passed. What
  /// has no mark and was found to take longer than it was thought to gets one with the next launch, which can be waited
  /// for.
  bool full() const {
    if (given_ < agreed_) [[likely]]
      return false;
    return (flying_ns() >= cap_ns_ || unproven() >= window_) && unproven() >= 2 && !segments_.empty();
  }

  /// The launch path: `items` of this kernel were launched. True: Look(), and Over() with what is known; if Due() then,
  /// put a mark behind it, now.
  bool Add(const OpenSpeed& kernel, uint64_t items) {
    if (given_ < agreed_ && kernel.id() == agreed_kernel_ && items == agreed_items_) [[likely]] {
      ++given_;
      return false;
    }
    return AddSlowly(kernel, items);
  }
  /// How many launches it was told, ever. The reference stays good.
  const uint64_t& given() const { return given_; }
  /// Somebody saw that the first so many of these are over.
  void Over(uint64_t launches) { over_ = std::clamp(launches, over_, given_); }
  /// When Add() gave true: whether a mark is needed. If not, it is asked for later.
  bool Due() {
    Count();
    Fit();
    Prove();
    const uint64_t bare = std::min<uint64_t>(last_.launches, unproven());
    if ((last_.estimate_ns - proven_ns_) * kMarks >= cap_ns_ || bare >= stride() || last_.launches >= stretch_)
      return true;
    check_at_ = given_ + std::min<uint64_t>(stride() - bare, stretch_ - last_.launches);
    MoveMark();
    return false;
  }

  /// The mark that is Due(), for the launch that Add() was told. Look() before. `cap_ns`: the bound.
  void Put(Mark mark, std::shared_ptr<OpenSpeed> kernel, uint64_t items, uint64_t cap_ns) {
    Count();
    cap_ns_ = static_cast<double>(cap_ns);
    last_.mark = std::move(mark);
    last_.was_known = kernel->known();
    last_.kernel = std::move(kernel);
    last_.items = std::max<uint64_t>(1, items);
    last_.busy = !segments_.empty();
    last_.upto = given_;
    last_.filled = unproven() >= window_ / kWindowMarks;
    if (last_.launches >= stretch_) stretch_ = std::min(stretch_ * 2, kMostUnmeasured);
    check_at_ = given_ + std::min(stride(), stretch_);
    segments_.push_back(std::exchange(last_, Segment()));
    Forget();
  }

  /// So much was launched without Add(), up to this mark. Nothing is learnt from it.
  void Assume(Mark mark, double ns) {
    Count();
    Segment segment;
    segment.mark = std::move(mark);
    segment.launches = 1;
    segment.estimate_ns = ns;
    segment.upto = counted_ = ++given_;
    segments_.push_back(std::move(segment));
    flying_ns_ += ns;
  }
  double cap_ns() const { return cap_ns_; }
  /// How long the device will take for what is under way, by what is known.
  double flying_ns() const { return flying_ns_ + static_cast<double>(given_ - counted_) * agreed_ns_; }
  /// When Add() gave true: whether Due() could do with more Over() than there was.
  bool NeedsProof() const {
    const uint64_t launches = last_.launches + (given_ - counted_);
    return unproven() > 1 && (std::min(launches, unproven()) >= stride() || over_ < noted_given_);
  }

  /// Takes away what is over. `passed(mark)`: whether it was passed. `between(one, other)`: nanoseconds on the device
  /// between two marks that were; 0: not known. `quickly`: marks that Over() did not come to are not asked for, while
  /// it comes to others.
  template <typename IsPassed, typename Between>
  void Look(IsPassed&& passed, Between&& between, bool quickly = false) {
    Count();
    const bool heard = quickly && over_ > looked_over_;
    looked_over_ = over_;
    while (!segments_.empty() && (!heard || over_ >= segments_.front().upto) && passed(segments_.front().mark)) {
      Segment over = std::move(segments_.front());
      segments_.pop_front();
      Over(over.upto);
      if (has_passed_) Learn(over, static_cast<double>(between(passed_, over.mark)));
      passed_ = std::move(over.mark);
      has_passed_ = true;
      flying_ns_ = last_.estimate_ns - proven_ns_;  // Added up anew, so that no rounding is carried along.
      for (const Segment& left : segments_) flying_ns_ += left.estimate_ns;
    }
  }

  /// The mark at which the next launch may go on; there is one while full().
  const Mark& ResumeAt() const {
    // What is not believed is no reason to wait longer than until something is proven.
    if (flying_ns() < cap_ns_) return segments_[0].mark;
    // Something stays behind it, if there is something.
    size_t at = 0, end = segments_.size();
    if (last_.launches + (given_ - counted_) == 0 && end > 1) --end;
    double left = flying_ns() - segments_[0].estimate_ns;
    while (at + 1 < end && left > cap_ns_ / 2) left -= segments_[++at].estimate_ns;
    return segments_[at].mark;
  }
  bool has_marks() const { return !segments_.empty(); }

  /// Begins anew; gives the marks that were not seen passed, in order.
  std::vector<Mark> Take() {
    Count();
    std::vector<Mark> marks;
    for (Segment& segment : segments_) marks.push_back(std::move(segment.mark));
    segments_.clear();
    last_ = Segment();
    Forget();
    stretch_ = kMostUnmarked;
    passed_ = Mark();
    has_passed_ = false;
    flying_ns_ = 0;
    over_ = given_;
    return marks;
  }

 private:
  /// Launches up to a mark; the last of them is a `kernel`'s.
  struct Segment {
    Mark mark{};
    std::shared_ptr<OpenSpeed> kernel;  ///< Null while there is no mark, and of what was assumed.
    uint64_t items = 0;
    uint64_t upto = 0;  ///< given() with the last of them.
    uint32_t launches = 0;
    double kernel_ns = 0;    ///< The last one's estimate.
    double estimate_ns = 0;  ///< Of all.
    bool was_known = false;
    bool busy = false;    ///< The device had not passed the mark before when all of this was launched.
    bool filled = false;  ///< The window was made use of.
  };

  /// Launches until the window is made as small as what was used of it; and the most that it grows to.
  static constexpr uint64_t kHabit = 512;
  static constexpr uint32_t kMostWindow = 1U << 20;

  bool AddSlowly(const OpenSpeed& kernel, uint64_t items) {
    Count();
    // Of what is not known two are under way at a time.
    const double ns = kernel.known() ? kernel.ns_per_item() * static_cast<double>(items) : cap_ns_ / 2;
    flying_ns_ += ns;
    counted_ = ++given_;
    last_.estimate_ns += ns;
    last_.kernel_ns = ns;
    ++last_.launches;
    if (last_.estimate_ns >= mark_at_ns_ || given_ >= check_at_) return true;
    if (kernel.known()) Agree(kernel.id(), items, ns);
    return false;
  }
  /// Of so many launches like this one none has to be looked at, nor is this full() before one of them.
  void Agree(uint64_t kernel, uint64_t items, double ns) {
    double ns_left = mark_at_ns_ - last_.estimate_ns;
    uint64_t launches_left = check_at_ - given_;
    if (!segments_.empty()) {
      ns_left = std::min(ns_left, cap_ns_ - flying_ns_);
      launches_left = std::min(launches_left, window_ - std::min<uint64_t>(window_, unproven()));
    }
    // One less, for what rounding adds up to.
    const auto of_that_length = static_cast<uint64_t>(std::clamp(ns_left / std::max(ns, 1e-3), 0.0, 1e6));
    const uint64_t most = std::min(of_that_length, launches_left);
    agreed_ = given_ + (most == 0 ? 0 : most - 1);
    agreed_kernel_ = kernel;
    agreed_items_ = items;
    agreed_ns_ = ns;
  }
  /// Adds up what was launched by agreement, and ends that.
  void Count() {
    const uint64_t launches = std::exchange(counted_, given_);
    agreed_ = 0;
    if (launches == given_) return;
    const double ns = static_cast<double>(given_ - launches) * agreed_ns_;
    flying_ns_ += ns;
    last_.estimate_ns += ns;
    last_.kernel_ns = agreed_ns_;
    last_.launches += static_cast<uint32_t>(given_ - launches);
  }

  uint64_t unproven() const { return given_ - over_; }
  uint32_t stride() const { return std::min(kMostUnmarked, window_ / kWindowMarks); }
  void Fit() {
    used_ = std::max(used_, unproven());
    if (given_ < fit_at_) return;
    // Twice what is needed for no mark at all, so that whoever always has some under way is not asked each time.
    if (const uint64_t used = std::max<uint64_t>({2 * used_ * kWindowMarks, window_ / 4, kFirstWindow}); used < window_)
      window_ = static_cast<uint32_t>(used);
    used_ = 0;
    fit_at_ = given_ + kHabit;
  }

  /// What is behind the last mark that is known to be over, by what was noted at an earlier look.
  void Prove() {
    if (!segments_.empty() || over_ < noted_given_) return;
    flying_ns_ = std::max(0.0, flying_ns_ - (noted_ns_ - proven_ns_));
    proven_ns_ = noted_ns_;
    noted_given_ = given_;
    noted_ns_ = last_.estimate_ns;
  }
  /// A new one begins.
  void Forget() {
    noted_given_ = given_;
    proven_ns_ = noted_ns_ = 0;
    MoveMark();
  }
  void MoveMark() { mark_at_ns_ = proven_ns_ + cap_ns_ / kMarks; }

  void Learn(const Segment& segment, double measured_ns) {
    if (measured_ns <= 0 || segment.kernel == nullptr) return;
    // What took longer than thought, with a pause of the program in between perhaps, proves something if it was short.
    const bool longer = measured_ns > 4 * segment.estimate_ns && measured_ns * kMarks >= cap_ns_;
    if (longer && segment.busy && measured_ns >= cap_ns_) {
      window_ = kFirstWindow;
      check_at_ = std::min(check_at_, given_ + stride());
    } else if (!longer && segment.filled) {
      window_ = std::min(window_ * 2, kMostWindow);
    }
    const auto items = static_cast<double>(segment.items);
    if (!segment.was_known) {
      // The only one in there, as each such one gets a mark.
      const double others = segment.estimate_ns - segment.kernel_ns;
      const double rate = std::max(measured_ns - others, measured_ns / 100) / items;
      if (segment.busy || !segment.kernel->known() || rate < segment.kernel->ns_per_item()) segment.kernel->Set(rate);
      return;
    }
    // The device may have idled in between.
    if (!segment.busy && measured_ns >= segment.estimate_ns) return;
    // Which of several kernels it was is not known; their sum is what counts.
    const double factor = measured_ns / segment.estimate_ns;
    const double learnt = segment.launches == 1 ? factor : std::clamp(factor, 0.25, 4.0);
    segment.kernel->Set(segment.kernel_ns / items * learnt);
    if (factor > 0.5 && factor < 2) return;
    // Then what came behind it, with the same estimates, takes as much longer.
    const auto correct = [&](Segment& one) {
      if (one.kernel != nullptr && !one.was_known) return;
      one.estimate_ns *= factor;
      one.kernel_ns *= factor;
    };
    for (Segment& one : segments_) correct(one);
    correct(last_);
    // Of what is over only so much as is still in there.
    proven_ns_ = std::min(proven_ns_, last_.estimate_ns);
    noted_ns_ = std::min(noted_ns_, last_.estimate_ns);
    MoveMark();
  }

  uint64_t given_ = 0;          ///< Launches that it was told.
  uint64_t agreed_ = 0;         ///< Up to this number, exclusive, they are agreed upon:
  uint64_t agreed_kernel_ = 0;  ///< this kernel's,
  uint64_t agreed_items_ = 0;   ///< with so many work-items,
  double agreed_ns_ = 0;        ///< of this length.
  uint64_t counted_ = 0;        ///< Up to this number they are in what follows.
  uint64_t over_ = 0;           ///< So many are known to be over.
  double cap_ns_ = kDefaultCapNs;
  double flying_ns_ = 0;      ///< Not seen end.
  uint64_t looked_over_ = 0;  ///< over_ at the last Look().
  uint64_t check_at_ = kFirstWindow / kWindowMarks;
  double mark_at_ns_ = kDefaultCapNs / double{kMarks};  ///< Of the estimate of last_.
  uint32_t stretch_ = kMostUnmarked;                    ///< Launches of last_ after which it gets a mark in any case.
  uint64_t noted_given_ = 0;                            ///< At a look: how many there were,
  double noted_ns_ = 0;                                 ///< and the estimate of last_.
  double proven_ns_ = 0;                                ///< Of the estimate of last_: over.
  uint32_t window_ = kFirstWindow;
  uint64_t used_ = 0;  ///< The most that was unproven of late.
  uint64_t fit_at_ = kHabit;
  Segment last_;  ///< Behind the last mark.
  std::deque<Segment> segments_;
  Mark passed_{};  ///< The latest that was passed.
  bool has_passed_ = false;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_OPEN_FLIGHT_H_
