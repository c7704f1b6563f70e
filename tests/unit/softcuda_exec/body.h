// SPDX-License-Identifier: Apache-2.0
// Kernels of a few hand-written instructions.
#ifndef HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_BODY_H_
#define HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_BODY_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/softcuda_exec/device.h"

namespace hawser::exec {

inline const std::string kHead = ".version 8.4\n.target sm_80\n.address_size 64\n";

/// A kernel that stores %r0 for each thread at out + 4 * thread.
inline std::string Kernel(const std::string& body, const std::string& more = "") {
  return kHead + more +
         ".visible .entry k(.param .u64 out) {\n.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;\n"
         "ld.param.u64 %d0, [out]; mov.u32 %r9, %ntid.x; mov.u32 %r8, %ctaid.x; mov.u32 %r7, %tid.x;\n"
         "mad.lo.u32 %r8, %r8, %r9, %r7; mad.wide.u32 %d0, %r8, 4, %d0;\n" +
         body + "\nst.global.u32 [%d0], %r0; ret; }\n";
}

inline std::vector<uint32_t> RunBody(const std::string& body, uint32_t threads = 64, uint32_t blocks = 1,
                                     const std::string& more = "") {
  Device device(2);
  EXPECT_EQ(device.Load({Kernel(body, more)}), "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty());
  const uint64_t out = device.Allocate(4 * threads * blocks);
  const Outcome outcome = device.Run("k", {blocks, 1, 1}, {threads, 1, 1}, Arguments().Add(out));
  EXPECT_TRUE(outcome.ok()) << outcome.fault.Text();
  return device.Download<uint32_t>(out, threads * blocks);
}

inline Fault FaultOf(const std::string& body, uint32_t threads = 64) {
  Device device(0);
  EXPECT_EQ(device.Load({Kernel(body)}), "");
  const uint64_t out = device.Allocate(4 * threads);
  return device.Run("k", {1, 1, 1}, {threads, 1, 1}, Arguments().Add(out)).fault;
}

}  // namespace hawser::exec

#endif  // HAWSER_TESTS_UNIT_SOFTCUDA_EXEC_BODY_H_
