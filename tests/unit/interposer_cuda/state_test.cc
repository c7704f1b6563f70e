// SPDX-License-Identifier: Apache-2.0
// Context stacks, landings, objects, captures: what is kept for the application.
#include <gtest/gtest.h>

#include <thread>

#include "interposer/cuda/capture.h"
#include "interposer/cuda/thread_state.h"

namespace hawser::cu {
namespace {

TEST(ContextStackTest, PushesPopsAndReplaces) {
  CUctx_st a(Kind::kContext);
  CUctx_st b(Kind::kContext);
  ContextStack stack;
  EXPECT_EQ(stack.top(), nullptr);
  EXPECT_EQ(stack.Pop(), nullptr);
  stack.Set(&a);
  EXPECT_EQ(stack.top(), &a);
  stack.Push(&b);
  stack.Set(&a);
  EXPECT_EQ(stack.top(), &a);
  stack.Set(nullptr);  // As cuCtxSetCurrent(NULL): pops.
  EXPECT_EQ(stack.top(), &a);
  EXPECT_EQ(stack.Pop(), &a);
  EXPECT_TRUE(stack.empty());
}

TEST(ContextStackTest, EachThreadHasItsOwn) {
  CUctx_st a(Kind::kContext);
  ThreadState::Get().stack.Push(&a);
  CUctx_st* elsewhere = &a;
  std::thread([&] { elsewhere = ThreadState::Get().stack.top(); }).join();
  EXPECT_EQ(elsewhere, nullptr);
  EXPECT_EQ(ThreadState::Get().stack.Pop(), &a);
}

TEST(LandingListTest, KeepsWhatHasNotLanded) {
  LandingList list;
  EXPECT_TRUE(list.Open().empty());
  auto first = std::make_shared<Landing>(HostRegion());
  auto second = std::make_shared<Landing>(HostRegion());
  list.Add(first);
  list.Add(Landings{first, second});
  EXPECT_EQ(list.Open().size(), 2u);
  EXPECT_FALSE(AllLanded(list.Open()));
  first->landed = true;
  EXPECT_EQ(list.Open(), (Landings{second}));
  second->landed = true;
  EXPECT_TRUE(list.Open().empty());
}

TEST(LandingListTest, RegionsOverlapFromTheirFirstByteToTheirLast) {
  std::vector<std::byte> memory(1000);
  const HostRegion rows{memory.data() + 100, 10, 3, 2, 20, 100};  // Bytes 100 to 249.
  EXPECT_EQ(rows.extent(), 150u);
  const Landings landings = {std::make_shared<Landing>(rows)};
  const auto overlaps = [&](size_t offset, size_t size) {
    return Overlaps(landings, HostRegion::Linear(memory.data() + offset, size));
  };
  EXPECT_FALSE(overlaps(0, 100));
  EXPECT_TRUE(overlaps(0, 101));
  EXPECT_TRUE(overlaps(249, 1));
  EXPECT_FALSE(overlaps(250, 1));
  EXPECT_TRUE(overlaps(0, 1000));
  EXPECT_FALSE(overlaps(150, 0));
  EXPECT_FALSE(Overlaps({}, rows));
}

TEST(LandingListTest, ANewRecordForgetsTheOldOne) {
  LandingList list;
  list.Assign({std::make_shared<Landing>(HostRegion())});
  EXPECT_EQ(list.Open().size(), 1u);
  list.Assign({});
  EXPECT_TRUE(list.Open().empty());
}

TEST(ObjectTest, ADestroyedHandleIsRecognised) {
  auto* stream = new CUstream_st(Kind::kStream, wire::Id(18, 1, 1));
  Registry::Get().Add(stream);
  EXPECT_EQ(CheckObject(stream, Kind::kStream), CUDA_SUCCESS);
  EXPECT_EQ(CheckObject(stream, Kind::kEvent), CUDA_ERROR_INVALID_HANDLE);
  Registry::Get().Bury(stream);
  EXPECT_EQ(CheckObject(stream, Kind::kStream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CheckObject<CUstream>(nullptr, Kind::kStream), CUDA_ERROR_INVALID_HANDLE);
}

TEST(ObjectTest, GraphsAndPoolsAreRefusedWithTheManualsCode) {
  auto* event = new CUevent_st(Kind::kEvent, wire::Id(7, 1, 3));
  Registry::Get().Add(event);
  for (const Kind kind : {Kind::kGraph, Kind::kGraphExec, Kind::kNode, Kind::kPool}) {
    EXPECT_EQ(CheckObject(event, kind), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(CheckObject(event, Kind::kArray), CUDA_ERROR_INVALID_HANDLE);
  Registry::Get().Bury(event);
}

TEST(ObjectTest, AFailedCreationShowsInEveryUse) {
  auto* event = new CUevent_st(Kind::kEvent, wire::Id(7, 1, 2));
  Registry::Get().Add(event);
  Registry::Get().With(event->id, [](Object& object) { object.failed = CUDA_ERROR_OUT_OF_MEMORY; });
  EXPECT_EQ(CheckObject(event, Kind::kEvent), CUDA_ERROR_OUT_OF_MEMORY);
  Registry::Get().Bury(event);
}

std::shared_ptr<Capture> Begin(CUstream_st* stream, CUstreamCaptureMode mode) {
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  Captures::Get().Begin(capture);
  return capture;
}

TEST(CapturesTest, SpreadsToOtherStreamsAndEndsEverywhere) {
  CUstream_st origin(Kind::kStream);
  CUstream_st joined(Kind::kStream);
  const auto capture = Begin(&origin, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(Captures::Of(&origin), capture);
  EXPECT_EQ(Captures::Of(&joined), nullptr);
  Captures::Get().Join(&joined, capture);
  EXPECT_EQ(Captures::Of(&joined), capture);
  Captures::Get().End(capture);
  EXPECT_EQ(Captures::Of(&origin), nullptr);
  EXPECT_EQ(Captures::Of(&joined), nullptr);
  EXPECT_FALSE(joined.capturing.load());
}

TEST(CapturesTest, OnlyItsFirstStreamBreaksItByLeaving) {
  CUstream_st origin(Kind::kStream);
  const auto capture = Begin(&origin, CU_STREAM_CAPTURE_MODE_RELAXED);
  {
    CUstream_st joined(Kind::kStream);
    Captures::Get().Join(&joined, capture);
    Captures::Get().Leave(&joined);
    EXPECT_FALSE(capture->broken.load());
  }
  Captures::Get().Leave(&origin);
  EXPECT_TRUE(capture->broken.load());
  Captures::Get().End(capture);  // Touches neither.
}

TEST(CapturesTest, ModesSayWhoMayMakeUnsafeCalls) {
  CUstream_st stream(Kind::kStream);
  const auto elsewhere = [] {
    CUresult result{};
    std::thread([&] { result = Captures::Get().CheckUnsafeCall(); }).join();
    return result;
  };
  EXPECT_EQ(Captures::Get().CheckUnsafeCall(), CUDA_SUCCESS);

  auto capture = Begin(&stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(Captures::Get().CheckUnsafeCall(), CUDA_SUCCESS);
  EXPECT_EQ(elsewhere(), CUDA_SUCCESS);
  EXPECT_FALSE(capture->broken.load());
  Captures::Get().End(capture);

  capture = Begin(&stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(elsewhere(), CUDA_SUCCESS);
  EXPECT_FALSE(capture->broken.load());
  EXPECT_EQ(Captures::Get().CheckUnsafeCall(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_TRUE(capture->broken.load());
  Captures::Get().End(capture);

  capture = Begin(&stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(elsewhere(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_TRUE(capture->broken.load());
  Captures::Get().End(capture);
}

}  // namespace
}  // namespace hawser::cu
