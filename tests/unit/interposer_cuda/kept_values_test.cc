// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/kept_values.h"

#include <gtest/gtest.h>

namespace hawser::cu {
namespace {

/// Answers with 10, 11, 12...: who asked how often shows in the value.
class KeptValuesTest : public testing::Test {
 protected:
  uint64_t Get(uint64_t key) {
    uint64_t value = 0;
    EXPECT_EQ(values_.Get(key, &value,
                          [this](uint64_t* answer) {
                            *answer = next_++;
                            return CUDA_SUCCESS;
                          }),
              CUDA_SUCCESS);
    return value;
  }

  KeptValues values_;
  uint64_t next_ = 10;
};

TEST_F(KeptValuesTest, AsksOncePerKey) {
  EXPECT_EQ(Get(1), 10u);
  EXPECT_EQ(Get(1), 10u);
  EXPECT_EQ(Get(2), 11u);
  EXPECT_EQ(Get(1), 10u);
}

TEST_F(KeptValuesTest, AsksAgainForWhatChanged) {
  (void)Get(1);
  (void)Get(2);
  values_.Forget(1);
  EXPECT_EQ(Get(1), 12u);
  EXPECT_EQ(Get(2), 11u);
  values_.ForgetAll();
  EXPECT_EQ(Get(1), 13u);
  EXPECT_EQ(Get(2), 14u);
}

TEST_F(KeptValuesTest, AnAnswerThatWasOvertakenByAChangeIsNotKept) {
  uint64_t value = 0;
  const auto overtaken = [this](uint64_t* answer) {
    *answer = 5;
    values_.Forget(1);  // As from another thread, while this one waits.
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(values_.Get(1, &value, overtaken), CUDA_SUCCESS);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(Get(1), 10u);
}

TEST_F(KeptValuesTest, AFailureIsNotKept) {
  uint64_t value = 0;
  EXPECT_EQ(values_.Get(1, &value, [](uint64_t*) { return CUDA_ERROR_UNSUPPORTED_LIMIT; }),
            CUDA_ERROR_UNSUPPORTED_LIMIT);
  EXPECT_EQ(Get(1), 10u);
}

}  // namespace
}  // namespace hawser::cu
