// SPDX-License-Identifier: Apache-2.0
#include "wire/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace hawser::wire {
namespace {

TEST(Status, OkIsTheDefault) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(Status::Ok().text().empty());
}

TEST(Status, CarriesErrnosWords) {
  errno = ENOENT;
  const Status status = Status::FromErrno("cannot open 'x'");
  EXPECT_EQ(status.code(), Code::kSystem);
  EXPECT_EQ(status.text(), "cannot open 'x': No such file or directory");
  EXPECT_EQ(Status::FromErrno("a", EPERM).text(), "a: Operation not permitted");
}

TEST(Result, HoldsAValueOrAReason) {
  Result<std::unique_ptr<int>> good(std::make_unique<int>(5));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(**good, 5);
  Result<std::unique_ptr<int>> bad(Status(Code::kRefused, "no"));
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), Code::kRefused);
}

}  // namespace
}  // namespace hawser::wire
