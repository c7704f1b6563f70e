// SPDX-License-Identifier: Apache-2.0
// While one of these exists no work of any context runs: it begins when all that was submitted before is done, and what
// is submitted meanwhile waits for its end.
//
// Threads: any, but one at a time. Takes contexts' locks; waits for the device, like cuMemFree.
#ifndef HAWSER_SOFTCUDA_DRIVER_STANDSTILL_H_
#define HAWSER_SOFTCUDA_DRIVER_STANDSTILL_H_

#include <vector>

#include "softcuda/driver/context.h"
#include "softcuda/driver/queue.h"

namespace hawser::soft {

class Standstill {
 public:
  Standstill();
  ~Standstill();
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  struct Held {
    ContextPtr context;
    OperationPtr operation;
  };
  std::vector<Held> held_;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_STANDSTILL_H_
