// SPDX-License-Identifier: Apache-2.0
// Which of the machine's processors the software device is. An operator keeps it off those that something else needs:
// the programs whose kernels it runs, other servers.
#ifndef HAWSER_SOFTCUDA_DRIVER_PROCESSOR_SET_H_
#define HAWSER_SOFTCUDA_DRIVER_PROCESSOR_SET_H_

#include <sched.h>

#include <optional>
#include <string_view>

namespace hawser::soft {

/// Processors by their numbers, as the kernel counts them. Immutable; any thread.
class ProcessorSet {
 public:
  /// All that the process may use.
  ProcessorSet() = default;

  /// "0", "2-5,8": numbers and ranges of them, separated by commas. Nothing for a text that is none, is empty, or names
  /// a number above CPU_SETSIZE - 1.
  static std::optional<ProcessorSet> Parse(std::string_view text);

  /// How many it names; 0: all that the process may use.
  unsigned count() const { return count_; }

  /// The calling thread runs on these only from here on, and so do the threads that it starts. True without a call to
  /// the kernel for all. False: the kernel refused, as it does when the process may use none of them; nothing changed.
  bool Take() const;

  /// For a thread that computes, for good: Take(); and on processors of its own it does not take one from another such
  /// thread when it wakes (wire/short_slice.h). Whoever is to have the device next begins while the work before has
  /// some 0.1 ms left, and would compute for milliseconds before that ends.
  void Join() const;

  /// Whether Take() would succeed now. The calling thread's own processors stay.
  bool Usable() const;

 private:
  cpu_set_t set_{};
  unsigned count_ = 0;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_PROCESSOR_SET_H_
