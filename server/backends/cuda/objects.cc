// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/objects.h"

#include <tuple>
#include <utility>

namespace hawser::server::cuda_backend {
namespace {

template <typename T>
LeavingTable<T> NewTable(uint32_t max, const LeavingTable<T>*) {
  return LeavingTable<T>(static_cast<uint8_t>(ObjectType<T>::kType), max);
}
template <typename Tables, size_t... kIndex>
Tables NewTables(uint32_t max, std::index_sequence<kIndex...>) {
  return Tables(NewTable(max, static_cast<std::tuple_element_t<kIndex, Tables>*>(nullptr))...);
}
template <typename T>
void PoisonIn(LeavingTable<T>& table, wire::Id id, int32_t error) {
  if (id.type() != static_cast<uint8_t>(ObjectType<T>::kType)) return;
  T object;
  object.error = error;
  (void)table.Insert(id, std::move(object));  // A name that is taken keeps its object.
}

}  // namespace

Objects::Objects(uint32_t max_objects)
    : tables_(NewTables<Tables>(max_objects, std::make_index_sequence<std::tuple_size_v<Tables>>())) {}
Objects::~Objects() = default;

void Objects::Poison(wire::Id id, int32_t error) {
  if (id) {
    std::apply([&](auto&... table) { (PoisonIn(table, id, error), ...); }, tables_);
  }
}

void Objects::Leave(wire::Id id) {
  if (id.type() == static_cast<uint8_t>(ObjectType<Module>::kType)) {
    Table<Function>().ForEach([&](wire::Id each, Function& function) {
      if (function.module == id) Table<Function>().Leave(each);
    });
  }
  std::apply([&](auto&... table) { (table.Leave(id), ...); }, tables_);
}

bool Objects::Erase(wire::Id id) {
  return std::apply([&](auto&... table) { return (table.Erase(id) || ...); }, tables_);
}

}  // namespace hawser::server::cuda_backend
