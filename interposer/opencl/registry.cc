// SPDX-License-Identifier: Apache-2.0
// Who locks what: one mutex for each type of object; nothing else is locked under it. Around fork() all of them are
// held, so that the child finds them free and the tables whole.
#include <pthread.h>

#include <array>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/pointer_set.h"

namespace hawser::ocl {
namespace {

constexpr size_t kTypes = 10;  // Handle types count from 1.

/// Objects of one type. Ids are dense (the guest's allocator reuses the last freed index), so the index of an id is
/// an index here.
struct Table {
  std::mutex mutex;
  std::vector<Object*> by_index;
  PointerSet pointers;  // Only for types that clSetKernelArg looks for.
};

std::array<Table, kTypes>& Tables() {
  static auto* tables = [] {
    auto* made = new std::array<Table, kTypes>;
    pthread_atfork(
        [] {
          for (Table& table : Tables()) table.mutex.lock();
        },
        [] {
          for (Table& table : Tables()) table.mutex.unlock();
        },
        [] {
          for (Table& table : Tables()) table.mutex.unlock();
        });
    return made;
  }();
  return *tables;
}

Table* TableOf(wire::Id id) { return id.type() < kTypes ? &Tables()[id.type()] : nullptr; }

bool HasPointers(Magic magic) { return magic == Magic::kMem || magic == Magic::kSampler || magic == Magic::kQueue; }

/// The live object of that id with one more use. The caller holds the table's mutex, so that it cannot be freed: an
/// object leaves the table before it is.
Object* TakeLocked(Object* object) { return TryUse(object) ? object : nullptr; }

Object* Find(wire::Id id) {
  Table* table = TableOf(id);
  if (table == nullptr) return nullptr;
  std::lock_guard lock(table->mutex);
  if (id.index() >= table->by_index.size()) return nullptr;
  Object* object = table->by_index[id.index()];
  return object != nullptr && object->id == id ? TakeLocked(object) : nullptr;
}

template <typename Handle>
bool IsLive(const void* pointer) {
  Table& table = Tables()[HandleTraits<Handle>::kType];
  std::lock_guard lock(table.mutex);
  return table.pointers.Contains(pointer);
}

}  // namespace

Registry& Registry::Get() {
  static auto* registry = new Registry;
  return *registry;
}

void Registry::Add(Object* object) {
  Table* table = TableOf(object->id);
  if (table == nullptr) return;
  const uint32_t index = object->id.index();
  std::lock_guard lock(table->mutex);
  if (index >= table->by_index.size()) table->by_index.resize(size_t{index} + 1 + table->by_index.size() / 2);
  // After fork() the child's session counts ids from the start; objects of the parent's session give way.
  table->by_index[index] = object;
  if (HasPointers(object->magic)) table->pointers.Insert(object);
}

void Registry::Remove(Object* object) {
  Table* table = TableOf(object->id);
  if (table == nullptr) return;
  const uint32_t index = object->id.index();
  std::lock_guard lock(table->mutex);
  if (index < table->by_index.size() && table->by_index[index] == object) table->by_index[index] = nullptr;
  if (HasPointers(object->magic)) table->pointers.Erase(object);
}

cl_event Registry::FindEvent(wire::Id id) {
  return id.type() == HandleTraits<cl_event>::kType ? static_cast<cl_event>(Find(id)) : nullptr;
}

cl_command_queue Registry::FindQueue(wire::Id id) {
  return id.type() == HandleTraits<cl_command_queue>::kType ? static_cast<cl_command_queue>(Find(id)) : nullptr;
}

cl_context Registry::FindContext(wire::Id id) {
  return id.type() == HandleTraits<cl_context>::kType ? static_cast<cl_context>(Find(id)) : nullptr;
}

std::vector<cl_event> Registry::LiveEvents() {
  std::vector<cl_event> events;
  Table& table = Tables()[HandleTraits<cl_event>::kType];
  std::lock_guard lock(table.mutex);
  for (Object* object : table.by_index) {
    if (object != nullptr && TakeLocked(object) != nullptr) events.push_back(static_cast<cl_event>(object));
  }
  return events;
}

void Registry::MarkFailed(wire::Id id, cl_int error) {
  Table* table = TableOf(id);
  if (table == nullptr) return;
  std::lock_guard lock(table->mutex);
  if (id.index() >= table->by_index.size()) return;
  Object* object = table->by_index[id.index()];
  if (object != nullptr && object->id == id) object->failed.store(error, std::memory_order_relaxed);
}

bool Registry::IsMem(const void* pointer) { return IsLive<cl_mem>(pointer); }
bool Registry::IsSampler(const void* pointer) { return IsLive<cl_sampler>(pointer); }
bool Registry::IsQueue(const void* pointer) { return IsLive<cl_command_queue>(pointer); }

}  // namespace hawser::ocl
