// SPDX-License-Identifier: Apache-2.0
// Which commands wait behind a stream that is held, and in which order they go on.
#include "server/backends/cuda/deferral.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/worker/split_settings.h"

namespace hawser::server::cuda_backend {
namespace {

using Kind = Footprint::Kind;

const wire::Id kContext(1, 1, 1), kOther(1, 1, 2), kOne(2, 1, 1), kTwo(2, 1, 2), kEvent(3, 1, 1);

Footprint In(wire::Id stream, wire::Id context = kContext, bool nonblocking = false) {
  return {.kind = Kind::kStream, .nonblocking = nonblocking, .context = context, .stream = stream};
}
Footprint Record(wire::Id stream, wire::Id event) {
  Footprint footprint = In(stream);
  footprint.changes_event = true;
  footprint.event = event;
  return footprint;
}
Footprint Wait(wire::Id stream, wire::Id event) {
  Footprint footprint = In(stream);
  footprint.event = event;
  return footprint;
}

class Waiting {
 public:
  Deferral deferral;
  Deferral::Ticket held = 0;

  void Hold(const Footprint& stream) { held = deferral.Hold(stream); }
  void Release() { EXPECT_TRUE(deferral.Release(held)); }
  void Push(uint64_t number, const Footprint& footprint) {
    DeferredFrame frame;
    frame.header.seq = number;
    frame.footprint = footprint;
    deferral.Push(std::move(frame));
  }
  std::vector<uint64_t> Run() {
    std::vector<uint64_t> numbers;
    deferral.Run([&](DeferredFrame& frame) { numbers.push_back(frame.header.seq); });
    return numbers;
  }
};

TEST(CudaDeferral, NothingWaitsBehindNothing) {
  const Deferral deferral;
  EXPECT_TRUE(deferral.idle());
  EXPECT_FALSE(deferral.MustWait(In(kOne)));
  EXPECT_FALSE(deferral.MustWait({}));
}

TEST(CudaDeferral, WhoAsksWaitsForTheStreamItself) {
  Waiting waiting;
  const auto ask = [](Footprint stream) {
    stream.asks = true;
    return stream;
  };
  waiting.Hold(In({}));
  EXPECT_FALSE(waiting.deferral.MustWait(ask(In(kOne))));
  EXPECT_TRUE(waiting.deferral.MustWait(ask(In({}))));
  waiting.Push(1, In(kOne));
  EXPECT_TRUE(waiting.deferral.MustWait(ask(In(kOne))));
  waiting.Push(2, ask(In(kOne)));
  // And is before nothing.
  EXPECT_FALSE(waiting.deferral.MustWait(ask(In(kTwo))));
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1, 2}));
}

TEST(CudaDeferral, AnEventThatWaitsMayBeDetachedFromItsName) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  waiting.Push(1, Record(kOne, kEvent));
  waiting.Push(2, Wait(kTwo, kEvent));
  EXPECT_TRUE(waiting.deferral.MustWait(Record(kTwo, kEvent)));
  std::vector<uint64_t> detached;
  const auto note = [&](DeferredFrame& frame) { detached.push_back(frame.header.seq); };
  ASSERT_TRUE(waiting.deferral.CanDetach(kEvent));
  waiting.deferral.Detach(kEvent, note);
  EXPECT_EQ(detached, (std::vector<uint64_t>{1, 2}));
  EXPECT_FALSE(waiting.deferral.CanDetach(kEvent));
  // What it stood for is still waited for; who records it now, or waits for that, is behind its stream alone.
  const wire::Id third(2, 1, 3);
  EXPECT_FALSE(waiting.deferral.MustWait(Record(third, kEvent)));
  EXPECT_FALSE(waiting.deferral.MustWait(Wait(third, kEvent)));
  EXPECT_TRUE(waiting.deferral.MustWait(In(kTwo)));
  waiting.Push(3, Record(kTwo, kEvent));
  EXPECT_TRUE(waiting.deferral.MustWait(Wait(third, kEvent)));
  ASSERT_TRUE(waiting.deferral.CanDetach(kEvent));
  waiting.deferral.Detach(kEvent, note);
  EXPECT_EQ(detached, (std::vector<uint64_t>{1, 2, 3}));
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1, 2, 3}));
}

TEST(CudaDeferral, AnEventThatAHeldLaunchRecordsKeepsItsName) {
  Waiting waiting;
  waiting.Hold(Record(kOne, kEvent));
  waiting.Push(1, Wait(kTwo, kEvent));
  EXPECT_FALSE(waiting.deferral.CanDetach(kEvent));
  EXPECT_TRUE(waiting.deferral.MustWait(Record(kTwo, kEvent)));
}

TEST(CudaDeferral, AHeldStreamHoldsItsOwn) {
  Deferral deferral;
  const Deferral::Ticket hold = deferral.Hold(In(kOne));
  EXPECT_TRUE(deferral.MustWait(In(kOne)));
  EXPECT_FALSE(deferral.MustWait(In(kTwo)));
  EXPECT_TRUE(deferral.MustWait({}));  // What fits no class.
  EXPECT_FALSE(deferral.MustWait({.kind = Kind::kFree}));
  EXPECT_FALSE(deferral.MustWait({.kind = Kind::kCreation}));
  EXPECT_FALSE(deferral.MustWait({.kind = Kind::kCreation, .frees = true}));
  EXPECT_TRUE(deferral.MustWait({.kind = Kind::kContext, .context = kContext}));
  EXPECT_FALSE(deferral.MustWait({.kind = Kind::kContext, .context = kOther}));
  EXPECT_TRUE(deferral.Release(hold));
  EXPECT_FALSE(deferral.Release(hold));
  EXPECT_TRUE(deferral.idle());
}

TEST(CudaDeferral, TheDefaultStreamWaitsForOthersAndTheyForIt) {
  {
    Deferral deferral;
    deferral.Hold(In(kOne));
    EXPECT_TRUE(deferral.MustWait(In({})));
    EXPECT_FALSE(deferral.MustWait(In({}, kOther)));
  }
  {
    Deferral deferral;
    deferral.Hold(In(kOne, kContext, /*nonblocking=*/true));
    EXPECT_FALSE(deferral.MustWait(In({})));
  }
  Deferral deferral;
  deferral.Hold(In({}));
  EXPECT_TRUE(deferral.MustWait(In({})));
  EXPECT_TRUE(deferral.MustWait(In(kOne)));
  EXPECT_FALSE(deferral.MustWait(In(kOne, kContext, /*nonblocking=*/true)));
  EXPECT_FALSE(deferral.MustWait(In(kOne, kOther)));
}

TEST(CudaDeferral, EventsCarryOrderFromStreamToStream) {
  Waiting waiting;
  waiting.Hold(In(kOne, kContext, true));
  EXPECT_FALSE(waiting.deferral.MustWait(Wait(kTwo, kEvent)));
  waiting.Push(1, Record(kOne, kEvent));
  EXPECT_TRUE(waiting.deferral.MustWait(Wait(kTwo, kEvent)));
  EXPECT_TRUE(waiting.deferral.MustWait({.kind = Kind::kEvent, .event = kEvent}));
  waiting.Push(2, Wait(kTwo, kEvent));
  // What is behind the wait waits as well; and the event cannot be recorded anew before.
  EXPECT_TRUE(waiting.deferral.MustWait(In(kTwo)));
  EXPECT_TRUE(waiting.deferral.MustWait(Record(wire::Id(2, 1, 3), kEvent)));
  waiting.Push(3, In(kTwo));
  EXPECT_TRUE(waiting.Run().empty());
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_TRUE(waiting.deferral.idle());
}

TEST(CudaDeferral, AnEventThatSomebodyWillWaitForStaysAsItIs) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  waiting.Push(1, Wait(kOne, kEvent));
  EXPECT_TRUE(waiting.deferral.MustWait({.kind = Kind::kEvent, .changes_event = true, .event = kEvent}));
  EXPECT_FALSE(waiting.deferral.MustWait({.kind = Kind::kEvent, .event = kEvent}));
}

TEST(CudaDeferral, AllocationsWaitForWhatFreesAlone) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  Footprint free = In(kOne);
  free.frees = true;
  waiting.Push(1, free);
  EXPECT_TRUE(waiting.deferral.MustWait({.kind = Kind::kCreation, .frees = true}));
  EXPECT_FALSE(waiting.deferral.MustWait({.kind = Kind::kCreation}));
}

TEST(CudaDeferral, WhatConcernsEverythingIsBehindAllAndBeforeAll) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  waiting.Push(1, {});
  EXPECT_TRUE(waiting.deferral.MustWait(In(kTwo)));
  EXPECT_TRUE(waiting.deferral.MustWait({.kind = Kind::kCreation}));
  EXPECT_FALSE(waiting.deferral.MustWait({.kind = Kind::kFree}));
  waiting.Push(2, In(kTwo));
  EXPECT_TRUE(waiting.Run().empty());
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1, 2}));
}

TEST(CudaDeferral, WhatRunsMayHoldItsStreamAgain) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  for (uint64_t i = 1; i <= 3; ++i) waiting.Push(i, In(kOne));
  waiting.Release();
  std::vector<uint64_t> numbers;
  waiting.deferral.Run([&](DeferredFrame& frame) {
    numbers.push_back(frame.header.seq);
    if (frame.header.seq == 2) waiting.Hold(In(kOne));
  });
  EXPECT_EQ(numbers, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(waiting.deferral.size(), 1u);
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{3}));
}

TEST(CudaDeferral, AStreamIsHeldUntilAllReasonsAreGone) {
  Waiting waiting;
  const Deferral::Ticket first = waiting.deferral.Hold(In(kOne));
  waiting.Hold(In(kOne));
  waiting.Push(1, In(kOne));
  waiting.Release();
  EXPECT_TRUE(waiting.Run().empty());
  EXPECT_TRUE(waiting.deferral.MustWait(In(kOne)));
  EXPECT_TRUE(waiting.deferral.Release(first));
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1}));
}

TEST(CudaDeferral, WhoHoldsAStreamMayActInIt) {
  Deferral deferral;
  (void)deferral.Hold(In(kOne));
  const Deferral::Ticket acts = deferral.Hold(In(kTwo), /*acts=*/true);
  EXPECT_FALSE(deferral.ActsIn(kContext, kOne));
  EXPECT_TRUE(deferral.ActsIn(kContext, kTwo));
  EXPECT_FALSE(deferral.ActsIn(kOther, kTwo));
  EXPECT_TRUE(deferral.Release(acts));
  EXPECT_FALSE(deferral.ActsIn(kContext, kTwo));
}

TEST(CudaDeferral, WhatEndsSomethingIsBehindAllAndBeforeNothing) {
  Waiting waiting;
  Footprint release{.kind = Kind::kRelease, .frees = true};
  EXPECT_FALSE(waiting.deferral.MustWait(release));
  waiting.Hold(In(kOne));
  EXPECT_TRUE(waiting.deferral.MustWait(release));
  waiting.Push(1, release);
  EXPECT_FALSE(waiting.deferral.MustWait(In(kTwo)));
  EXPECT_FALSE(waiting.deferral.MustWait({.kind = Kind::kCreation}));
  EXPECT_FALSE(waiting.deferral.MustWait({.kind = Kind::kContext, .context = kOther}));
  // Memory may be short until then.
  EXPECT_TRUE(waiting.deferral.MustWait({.kind = Kind::kCreation, .frees = true}));
  waiting.Release();
  EXPECT_TRUE(waiting.deferral.MustWait({}));
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1}));
}

TEST(CudaDeferral, WhatIsBehindAllIsNotBehindWhatCameLater) {
  for (const Footprint& behind :
       {Footprint{.kind = Kind::kRelease}, Footprint{}, Footprint{.kind = Kind::kContext, .context = kContext}}) {
    Waiting waiting;
    waiting.Hold(In(kOne));
    waiting.Push(1, behind);
    const Deferral::Ticket later = waiting.deferral.Hold(In(kTwo));
    waiting.Release();
    EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{1}));
    EXPECT_TRUE(waiting.deferral.Release(later));
  }
  // Nor behind another context's.
  Waiting contexts;
  const Deferral::Ticket pending = contexts.deferral.Hold(In(kTwo, kOther));
  contexts.Hold(In(kOne));
  contexts.Push(1, In(kTwo, kOther));
  contexts.Push(2, {.kind = Kind::kContext, .context = kContext});
  contexts.Release();
  EXPECT_EQ(contexts.Run(), (std::vector<uint64_t>{2}));
  EXPECT_TRUE(contexts.deferral.Release(pending));
  // But behind what a command holds that came before.
  Waiting waiting;
  waiting.Hold(In(kOne));
  waiting.Push(1, In(kOne));
  waiting.Push(2, {.kind = Kind::kRelease});
  waiting.Release();
  std::vector<uint64_t> numbers;
  waiting.deferral.Run([&](DeferredFrame& frame) {
    numbers.push_back(frame.header.seq);
    if (frame.header.seq == 1) waiting.Hold(In(kOne));
  });
  EXPECT_EQ(numbers, (std::vector<uint64_t>{1}));
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{2}));
}

TEST(CudaDeferral, RowsOfCommandsOfSeveralStreamsKeepTheirOrder) {
  Waiting waiting;
  const Deferral::Ticket other = waiting.deferral.Hold(In(kTwo));
  waiting.Hold(In(kOne));
  for (uint64_t i = 0; i < 20; ++i) waiting.Push(i, In(i / 5 % 2 == 0 ? kOne : kTwo));
  waiting.Release();
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{0, 1, 2, 3, 4, 10, 11, 12, 13, 14}));
  EXPECT_TRUE(waiting.deferral.Release(other));
  EXPECT_EQ(waiting.Run(), (std::vector<uint64_t>{5, 6, 7, 8, 9, 15, 16, 17, 18, 19}));
  EXPECT_TRUE(waiting.deferral.idle());
}

TEST(CudaDeferral, ManyAreToldAndFewAgain) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  for (uint64_t i = 0; i < Deferral::kManyFrames; ++i) {
    EXPECT_FALSE(waiting.deferral.many());
    waiting.Push(i, In(kOne));
  }
  EXPECT_TRUE(waiting.deferral.many());
  EXPECT_FALSE(waiting.deferral.few());
  EXPECT_FALSE(waiting.deferral.full());
  waiting.Release();
  uint64_t run = 0;
  waiting.deferral.Run([&](DeferredFrame&) {
    if (++run == Deferral::kManyFrames - Deferral::kFewFrames) waiting.Hold(In(kOne));
  });
  EXPECT_TRUE(waiting.deferral.few());
}

TEST(CudaDeferral, ItIsFullAtSomeTime) {
  Waiting waiting;
  waiting.Hold(In(kOne));
  const uint64_t most = Deferral::kMostBytes / Deferral::kFrameBytes;
  for (uint64_t i = 0; i < most; ++i) waiting.Push(i, In(kOne));
  EXPECT_TRUE(waiting.deferral.full());
}

TEST(CudaSplitSettings, AreReadAndRefused) {
  EXPECT_TRUE(SplitSettings::Parse(kCudaSplit, "")->splits);
  EXPECT_TRUE(SplitSettings::Parse(kCudaSplit, "gate")->splits);
  EXPECT_FALSE(SplitSettings::Parse(kCudaSplit, "off")->splits);
  auto all = SplitSettings::Parse(kCudaSplit, "blocks=7,cores=100,beta=2.5,refuse=3");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size, 7u);
  EXPECT_EQ(all->cores, 100u);
  EXPECT_EQ(all->beta, 2.5);
  EXPECT_EQ(all->refuse, 3u);
  for (const char* text :
       {"on", "blocks", "blocks=0", "blocks=x", "gate,beta=0", "gate,cores=1e9", "gate,", "gate,x=1"}) {
    EXPECT_FALSE(SplitSettings::Parse(kCudaSplit, text).ok()) << text;
  }
}

}  // namespace
}  // namespace hawser::server::cuda_backend
