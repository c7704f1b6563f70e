// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/context.h"

#include <vector>

#include "interposer/cuda/heap_memory.h"
#include "interposer/cuda/mirror.h"
#include "interposer/cuda/module.h"
#include "interposer/cuda/stream.h"
#include "interposer/cuda/wire_call.h"

namespace hawser::cu {

CUctx_st* NewContext(int device, unsigned flags, bool primary) {
  auto* context = new CUctx_st(Kind::kContext);
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  context->legacy = new CUstream_st(Kind::kStream);
  context->legacy->context = context;
  return context;
}

CUresult StartContext(CUctx_st* context) {
  Client& client = Client::Get();
  context->id = client.session()->NewId(static_cast<uint8_t>(cuda::Handle::kContext));
  context->number = client.NewNumber();
  context->legacy->number = client.NewNumber();
  context->failed = 0;
  context->fault = 0;
  context->pending = 0;
  context->limits.ForgetAll();
  Registry::Get().Add(context);
  context->active.store(true, std::memory_order_release);
  cuda::CreateContext message;
  message.context = context->id;
  message.device = static_cast<uint32_t>(context->device);
  message.flags = context->flags;
  message.primary = context->primary ? 1 : 0;
  return FromWire(client.session()->Send(message));
}

void AwaitWork(CUctx_st* context) {
  const Landings landings = LandingsOf(context);
  cuda::SynchronizeContext message;
  message.context = context->id;
  // What went wrong in it is nobody's any more.
  (void)AskStatus(Client::Get().session(), message);
  (void)AwaitLandings(landings);
}

void ForgetContents(CUctx_st* context) {
  Client& client = Client::Get();
  std::vector<CUstream_st*> streams;
  std::vector<ModuleBase*> modules;
  {
    std::lock_guard lock(context->mutex);
    streams.assign(context->streams.begin(), context->streams.end());
    modules.assign(context->modules.begin(), context->modules.end());
    context->streams.clear();
    context->modules.clear();
    context->peers.clear();
  }
  for (CUstream_st* stream : streams) Registry::Get().Bury(stream);
  for (ModuleBase* module : modules) {
    // A library's code in this context: whoever takes it from the library's list ends it.
    if (ModuleBase* library = module->library; library != nullptr) {
      std::lock_guard lock(library->mutex);
      if (library->parts.erase(context) == 0) continue;
    }
    ForgetModule(module);
  }
  for (const PointerRange& range : client.pointers().RemoveContext(context->id.raw())) {
    HeapMemory::Get().Give(HeapMemory::PagesOf(range));
  }
  Mirrors::Get().ForgetContext(context);
}

}  // namespace hawser::cu
