// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/command.h"

#include <algorithm>

namespace hawser::server::ocl {

const Memory* Command::Buffer(wire::Id id, std::string_view what) {
  const Memory* memory = Use<Memory>(id, what);
  Require(memory == nullptr || memory->is_buffer, CL_INVALID_MEM_OBJECT, "the object is no buffer");
  return ok() ? memory : nullptr;
}

cl_mem Command::Buffer(wire::Id id, std::string_view what, uint64_t* size) {
  const Memory* memory = Buffer(id, what);
  if (memory == nullptr) return nullptr;
  *size = memory->size;
  return memory->native.get();
}

cl_mem Command::Image(wire::Id id, std::string_view what, const ImageShape** shape) {
  const Memory* memory = Use<Memory>(id, what);
  Require(memory == nullptr || memory->is_image, CL_INVALID_MEM_OBJECT, "the object is no image");
  if (!ok()) return nullptr;
  *shape = &memory->image;
  return memory->native.get();
}

cl_mem Command::AnyMemory(wire::Id id, std::string_view what) {
  const Memory* memory = Use<Memory>(id, what);
  return memory == nullptr ? nullptr : memory->native.get();
}

void Command::ResolveWaitList(const wire::ArrayView<wire::Id>& ids) {
  if (ids.size() >= kFew) many_.reserve(ids.size() + 1);  // One more may come.
  for (uint32_t i = 0; i < ids.size(); ++i) {
    int32_t status = CL_SUCCESS;
    const Event* event = backend_.Use<Event>(ids[i], "event of the wait list", &status);
    if (event == nullptr) {
      status_ = status == CL_INVALID_EVENT ? CL_INVALID_EVENT_WAIT_LIST : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
      return;
    }
    AddWait(event->native.get());
  }
}

void Command::AddWait(cl_event event) {
  if (many_.empty() && count_ < kFew) {
    few_[count_++] = event;
    return;
  }
  if (many_.empty()) many_.assign(few_, few_ + count_);
  many_.push_back(event);
  ++count_;
}

bool Command::AnyFailed() const {
  if (!backend_.completions_->MayHaveFailed()) [[likely]]
    return false;
  return std::any_of(waits(), waits() + count_, &Completions::HasFailed);
}

void Command::KeepEvent(cl_event native) {
  Event event;
  event.native = Handle<cl_event>::Share(native);
  event.queue = *queue_;
  event.position = (*queue_)->number;
  // A name that is taken is a guest's mistake; its command runs all the same.
  (void)backend_.Keep(call_, event_id_, std::move(event));
}

}  // namespace hawser::server::ocl
