// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/objects.h"

#include <utility>

namespace hawser::server::ocl {
namespace {

template <typename T>
constexpr uint8_t Type() {
  return static_cast<uint8_t>(ObjectType<T>::kType);
}

}  // namespace

Objects::Objects(uint32_t max_objects)
    : contexts_(Type<Context>(), max_objects),
      queues_(Type<QueueObject>(), max_objects),
      memory_(Type<Memory>(), max_objects),
      samplers_(Type<Sampler>(), max_objects),
      programs_(Type<ProgramObject>(), max_objects),
      kernels_(Type<Kernel>(), max_objects),
      events_(Type<Event>(), max_objects) {}
Objects::~Objects() = default;

template <typename T>
void Objects::PoisonAs(wire::Id id, int32_t error) {
  T object;
  object.error = error;
  (void)Table<T>().Insert(id, std::move(object));  // A name that is taken keeps its object.
}

void Objects::Poison(wire::Id id, int32_t error) {
  if (!id) return;
  switch (static_cast<opencl::Handle>(id.type())) {
    case opencl::Handle::kContext:
      return PoisonAs<Context>(id, error);
    case opencl::Handle::kQueue:
      return PoisonAs<QueueObject>(id, error);
    case opencl::Handle::kMem:
      return PoisonAs<Memory>(id, error);
    case opencl::Handle::kSampler:
      return PoisonAs<Sampler>(id, error);
    case opencl::Handle::kProgram:
      return PoisonAs<ProgramObject>(id, error);
    case opencl::Handle::kKernel:
      return PoisonAs<Kernel>(id, error);
    case opencl::Handle::kEvent:
      return PoisonAs<Event>(id, error);
    default:
      return;
  }
}

}  // namespace hawser::server::ocl
