// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <unordered_set>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/pointer_set.h"

namespace hawser::ocl {
namespace {

TEST(PointerSet, AgreesWithAnotherSet) {
  std::mt19937 random(1);
  PointerSet set;
  std::unordered_set<const void*> model;
  // Few addresses, so that they collide, and a size that grows several times.
  for (int step = 0; step < 20000; ++step) {
    const auto* pointer = reinterpret_cast<const void*>(uintptr_t{16} * (1 + random() % 700));
    if (random() % 2 == 0) {
      set.Insert(pointer);
      model.insert(pointer);
    } else {
      set.Erase(pointer);
      model.erase(pointer);
    }
    ASSERT_EQ(set.size(), model.size());
    if (step % 97 != 0) continue;
    for (uintptr_t i = 1; i <= 700; ++i) {
      const auto* each = reinterpret_cast<const void*>(16 * i);
      ASSERT_EQ(set.Contains(each), model.count(each) == 1) << step;
    }
  }
}

TEST(PointerSet, EmptyContainsNothing) {
  PointerSet set;
  EXPECT_FALSE(set.Contains(nullptr));
  EXPECT_FALSE(set.Contains(&set));
  set.Erase(&set);
  EXPECT_EQ(set.size(), 0u);
}

// Objects without a session: the registry never looks at it.
template <typename Handle>
std::remove_pointer_t<Handle>* Make(uint32_t generation, uint32_t index) {
  return new std::remove_pointer_t<Handle>(HandleTraits<Handle>::kMagic, nullptr,
                                           wire::Id(HandleTraits<Handle>::kType, generation, index));
}

TEST(Registry, FindsByIdWithOneMoreUse) {
  cl_event event = Make<cl_event>(1, 5);
  Registry& registry = Registry::Get();
  registry.Add(event);
  EXPECT_EQ(registry.FindEvent(event->id), event);
  EXPECT_EQ(event->uses, 2u);
  EXPECT_EQ(registry.FindEvent(wire::Id(7, 2, 5)), nullptr);  // Another generation.
  EXPECT_EQ(registry.FindEvent(wire::Id(7, 1, 6)), nullptr);  // Another index.
  EXPECT_EQ(registry.FindEvent(wire::Id(7, 1, 1u << 30)), nullptr);
  EXPECT_EQ(registry.FindQueue(event->id), nullptr);  // Another type.
  event->uses = 0;                                    // Its end has begun.
  EXPECT_EQ(registry.FindEvent(event->id), nullptr);
  registry.Remove(event);
  event->uses = 1;
  EXPECT_EQ(registry.FindEvent(event->id), nullptr);
  delete event;
}

TEST(Registry, KnowsAddressesOfMemoryObjectsSamplersAndQueues) {
  cl_mem mem = Make<cl_mem>(1, 3);
  cl_sampler sampler = Make<cl_sampler>(1, 3);
  Registry& registry = Registry::Get();
  registry.Add(mem);
  registry.Add(sampler);
  EXPECT_TRUE(registry.IsMem(mem));
  EXPECT_FALSE(registry.IsMem(sampler));
  EXPECT_TRUE(registry.IsSampler(sampler));
  EXPECT_FALSE(registry.IsQueue(mem));
  EXPECT_FALSE(registry.IsMem(reinterpret_cast<void*>(0x3f800000)));  // Never read.
  registry.Remove(mem);
  registry.Remove(sampler);
  EXPECT_FALSE(registry.IsMem(mem));
  delete mem;
  delete sampler;
}

TEST(Registry, MarksWhatTheServerCouldNotCreate) {
  cl_mem mem = Make<cl_mem>(1, 9);
  Registry& registry = Registry::Get();
  registry.Add(mem);
  registry.MarkFailed(wire::Id(3, 2, 9), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(CheckHandle(mem), CL_SUCCESS);
  registry.MarkFailed(mem->id, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(CheckHandle(mem), CL_MEM_OBJECT_ALLOCATION_FAILURE);
  registry.Remove(mem);
  delete mem;
}

TEST(Registry, ASecondObjectOfTheSameIdReplacesTheFirst) {
  // As in the child of a fork(), whose session counts from the start.
  cl_event parents = Make<cl_event>(1, 7);
  cl_event childs = Make<cl_event>(1, 7);
  Registry& registry = Registry::Get();
  registry.Add(parents);
  registry.Add(childs);
  registry.Remove(parents);
  EXPECT_EQ(registry.FindEvent(childs->id), childs);
  registry.Remove(childs);
  delete parents;
  delete childs;
}

TEST(Registry, ListsLiveEvents) {
  cl_event event = Make<cl_event>(1, 11);
  Registry& registry = Registry::Get();
  registry.Add(event);
  const std::vector<cl_event> events = registry.LiveEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], event);
  EXPECT_EQ(event->uses, 2u);
  registry.Remove(event);
  delete event;
}

TEST(Registry, ManyThreads) {
  Registry& registry = Registry::Get();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, t] {
      for (uint32_t i = 0; i < 2000; ++i) {
        cl_mem mem = Make<cl_mem>(1, 100 + t * 100 + i % 100);
        registry.Add(mem);
        EXPECT_TRUE(registry.IsMem(mem));
        registry.Remove(mem);
        EXPECT_FALSE(registry.IsMem(mem));
        delete mem;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Handles, CheckedByMagic) {
  cl_mem mem = Make<cl_mem>(1, 1);
  EXPECT_EQ(CheckHandle(mem), CL_SUCCESS);
  EXPECT_EQ(CheckHandle(cl_mem{nullptr}), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(CheckHandle(reinterpret_cast<cl_event>(mem)), CL_INVALID_EVENT);
  EXPECT_EQ(RetainObject(mem), CL_SUCCESS);
  EXPECT_EQ(mem->refs, 2u);
  mem->magic = Magic::kFreed;
  EXPECT_EQ(CheckHandle(mem), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(RetainObject(mem), CL_INVALID_MEM_OBJECT);
  delete mem;
}

}  // namespace
}  // namespace hawser::ocl
