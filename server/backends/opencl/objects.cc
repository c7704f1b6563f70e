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
  const auto poison = [&]<typename... T>() { ((id.type() == Type<T>() ? PoisonAs<T>(id, error) : void()), ...); };
  poison.operator()<Context, QueueObject, Memory, Sampler, ProgramObject, Kernel, Event>();
}

}  // namespace hawser::server::ocl
