// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/memory_account.h"

namespace hawser::server::ocl {
namespace {

// True while the executor gives an object back: the driver's callback then runs within that call.
thread_local bool on_executor = false;

}  // namespace

struct MemoryAccount::Pending {
  std::shared_ptr<MemoryAccount> account;
  wire::Id id;
  uint64_t charge = 0;
  bool notify = false;
};

void MemoryAccount::Announce(wire::Id id, bool flush) {
  opencl::Released notice;
  notice.object = id;
  replies_->Notify(notice, flush);
}

void CL_CALLBACK MemoryAccount::OnDestroyed(cl_mem, void* user_data) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(user_data));
  MemoryAccount& account = *pending->account;
  account.Uncharge(pending->charge);
  if (pending->notify) account.Announce(pending->id, !on_executor);
  account.pending_.fetch_sub(1, std::memory_order_release);
}

void MemoryAccount::Release(cl_mem memory, wire::Id id, uint64_t charge, bool notify) {
  if (charge != 0 || notify) {
    auto pending = std::make_unique<Pending>(Pending{shared_from_this(), id, charge, notify});
    pending_.fetch_add(1, std::memory_order_relaxed);
    if (clSetMemObjectDestructorCallback(memory, &OnDestroyed, pending.get()) == CL_SUCCESS) {
      (void)pending.release();
    } else {
      // No way to know (OpenCL 1.0): as good as gone.
      pending_.fetch_sub(1, std::memory_order_relaxed);
      Uncharge(charge);
      if (notify) Announce(id, false);
    }
  }
  on_executor = true;
  clReleaseMemObject(memory);
  on_executor = false;
}

}  // namespace hawser::server::ocl
