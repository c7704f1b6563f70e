// SPDX-License-Identifier: Apache-2.0
// The way to a policy that runs in a process of its own, as IsolatedPolicy sees it. Tests put something else in its
// place.
#ifndef HAWSER_SCHEDULER_ISOLATED_LINK_H_
#define HAWSER_SCHEDULER_ISOLATED_LINK_H_

#include <cstdint>
#include <string>

#include "scheduler/isolated/page.h"
#include "wire/deadline.h"
#include "wire/status.h"

namespace hawser::scheduler {

/// One thread.
class PolicyLink {
 public:
  virtual ~PolicyLink() = default;

  /// Where the next request is to be written.
  virtual RequestPage& page() = 0;
  /// Sends it, waits, and copies the answer, of which nothing is checked yet. kTimeout: there was none. kClosed: the
  /// process ended, with how. kProtocol: it does not keep to its turns.
  virtual wire::Status Exchange(const wire::Deadline& deadline, Reply* reply) = 0;
  /// Copies `size` bytes of the answer's text, at most kMostReplyText.
  virtual std::string Text(uint32_t size) = 0;
  /// Processor time of the process so far.
  virtual uint64_t CpuNs() = 0;
  /// Ends the process; nothing can be asked any more.
  virtual void Kill() = 0;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_LINK_H_
