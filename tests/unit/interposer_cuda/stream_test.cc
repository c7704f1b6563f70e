// SPDX-License-Identifier: Apache-2.0
// What is known of streams without asking.
#include "interposer/cuda/stream.h"

#include <gtest/gtest.h>

namespace hawser::cu {
namespace {

class KnownIdle : public testing::Test {
 protected:
  KnownIdle() {
    context_.legacy = &legacy_;
    for (CUstream_st* stream : {&legacy_, &blocking_, &free_}) stream->context = &context_;
    free_.flags = CU_STREAM_NON_BLOCKING;
    context_.streams = {&blocking_, &free_};
  }

  CUctx_st context_{Kind::kContext};
  CUstream_st legacy_{Kind::kStream}, blocking_{Kind::kStream}, free_{Kind::kStream};
};

TEST_F(KnownIdle, AStreamIsIdleWhenAllOfItIsKnownToBeDone) {
  EXPECT_TRUE(IsKnownIdle(&free_));
  free_.submitted = 3;
  EXPECT_FALSE(IsKnownIdle(&free_));
  free_.finished = 2;
  EXPECT_FALSE(IsKnownIdle(&free_));
  free_.finished = 3;
  EXPECT_TRUE(IsKnownIdle(&free_));
}

TEST_F(KnownIdle, ABlockingStreamWaitsForTheLegacyOneToo) {
  legacy_.submitted = 1;
  EXPECT_FALSE(IsKnownIdle(&blocking_));
  EXPECT_TRUE(IsKnownIdle(&free_));
  legacy_.finished = 1;
  EXPECT_TRUE(IsKnownIdle(&blocking_));
}

TEST_F(KnownIdle, TheLegacyStreamWaitsForAllBlockingOnes) {
  free_.submitted = 1;
  EXPECT_TRUE(IsKnownIdle(&legacy_));
  blocking_.submitted = 1;
  EXPECT_FALSE(IsKnownIdle(&legacy_));
  blocking_.finished = 1;
  EXPECT_TRUE(IsKnownIdle(&legacy_));
  blocking_.capturing = true;
  EXPECT_FALSE(IsKnownIdle(&legacy_));
}

using Unordered = KnownIdle;

TEST_F(Unordered, StreamsThatBlockAreOrderedWithTheLegacyOne) {
  context_.streams = {&blocking_};
  EXPECT_FALSE(HasUnordered(&legacy_));
  EXPECT_FALSE(HasUnordered(&blocking_)) << "of the two only the legacy one is beside it";
  CUstream_st second{Kind::kStream};
  second.context = &context_;
  context_.streams.insert(&second);
  EXPECT_FALSE(HasUnordered(&legacy_));
  EXPECT_TRUE(HasUnordered(&blocking_)) << "as those of two threads";
}

TEST_F(Unordered, OthersAreNot) {
  EXPECT_TRUE(HasUnordered(&legacy_));
  free_.own = true;
  EXPECT_FALSE(HasUnordered(&legacy_)) << "the application has no commands in it";
}

}  // namespace
}  // namespace hawser::cu
