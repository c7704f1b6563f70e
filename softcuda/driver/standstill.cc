// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/standstill.h"

#include "softcuda/driver/driver.h"

namespace hawser::soft {

Standstill::Standstill() {
  Driver* const driver = GetDriver();
  for (ContextPtr& context : driver->contexts.All()) {
    const std::lock_guard lock(context->mutex);
    OperationPtr operation = driver->queue.Hold(context->AllTails());
    context->standstill = operation;
    held_.push_back({std::move(context), std::move(operation)});
  }
  for (const Held& held : held_) driver->queue.Await(held.operation);
}

Standstill::~Standstill() {
  Driver* const driver = GetDriver();
  for (const Held& held : held_) {
    {
      const std::lock_guard lock(held.context->mutex);
      held.context->standstill = nullptr;
    }
    driver->queue.Finish(held.operation);
  }
}

}  // namespace hawser::soft
