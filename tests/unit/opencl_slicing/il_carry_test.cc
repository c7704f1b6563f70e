// SPDX-License-Identifier: Apache-2.0
// Rewritten intermediate language: valid, and every built-in has in each part what it has in the whole launch.
#include "server/backends/opencl/slicing/il/il_carry.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "server/backends/opencl/slicing/carry.h"
#include "server/backends/opencl/slicing/slice_plan.h"
#include "tests/unit/opencl_slicing/il_machine.h"
#include "tests/unit/opencl_slicing/il_text.h"

namespace hawser::server::slicing {
namespace {

using ::testing::HasSubstr;
using wire::Result;

Result<std::vector<uint32_t>> Carry(const std::vector<uint32_t>& words) {
  return WithIlCarry(std::as_bytes(std::span(words)));
}

IlModule Parsed(const std::vector<uint32_t>& words) {
  Result<IlModule> module = IlModule::Parse(std::as_bytes(std::span(words)));
  EXPECT_TRUE(module.ok()) << module.status().text();
  return std::move(*module);
}

// Stores every built-in that there is.
std::string StoreEverything() {
  std::string body, more;
  int slot = 0;
  const auto store = [&](const std::string& value) {
    const std::string n = std::to_string(slot++);
    more += "%slot" + n + " = OpConstant %ulong " + n + "\n";
    body += "%at" + n + " = OpInBoundsPtrAccessChain %global_ulong %out %slot" + n + "\n";
    body += "OpStore %at" + n + " " + value + " Aligned 8\n";
  };
  for (const std::string name : {"gid", "lid", "wgid", "nwg", "gsize", "wsize", "goff"}) {
    body += "%" + name + "_v = OpLoad %v3 %" + name + " Aligned 32\n";
    for (const std::string d : {"0", "1", "2"}) {
      body += "%" + name + d + " = OpCompositeExtract %ulong %" + name + "_v " + d + "\n";
      store("%" + name + d);
    }
    // And once more, one component alone.
    body += "%" + name + "_p = OpInBoundsAccessChain %in_ulong %" + name + " %u1\n";
    body += "%" + name + "_y = OpLoad %ulong %" + name + "_p\n";
    store("%" + name + "_y");
  }
  body += "%linear = OpLoad %ulong %glin\n";
  store("%linear");
  body += "%dims = OpLoad %uint %dim\n%dims_long = OpUConvert %ulong %dims\n";
  store("%dims_long");
  return IlKernel(body, more, "OpName %wgid_p \"second\"\n");
}

Grid GridOf(const LaunchShape& shape) {
  Grid grid;
  grid.dimensions = shape.dimensions;
  for (uint32_t d = 0; d < shape.dimensions; ++d) {
    grid.offset[d] = shape.offset[d];
    grid.global[d] = shape.global[d];
    grid.local[d] = shape.local[d];
  }
  return grid;
}

// What work-items of the parts stored, in some order.
std::vector<std::map<uint64_t, uint64_t>> InParts(IlMachine& machine, const LaunchShape& shape, uint64_t items) {
  std::vector<std::map<uint64_t, uint64_t>> all;
  std::optional<SlicePlan> plan = SlicePlan::Carried(shape, items, 1);
  EXPECT_TRUE(plan.has_value());
  int parts = 0;
  for (; plan && !plan->done(); ++parts) {
    const SlicePart part = plan->Next(items);
    Grid grid = GridOf(shape);
    grid.dimensions = 3;
    std::copy_n(part.offset, 3, grid.offset);
    std::copy_n(part.global, 3, grid.global);
    grid.offset[2] += CarryWord(plan->axis(), shape.dimensions, part.first_group, plan->groups(plan->axis()));
    const auto stored = machine.Launch(grid);
    all.insert(all.end(), stored.begin(), stored.end());
  }
  EXPECT_GT(parts, 1);
  return all;
}

TEST(IlCarry, PartsSeeTheWholeLaunch) {
  const std::vector<uint32_t> words = Assemble(StoreEverything());
  ASSERT_EQ(Problem(words), "");
  const Result<std::vector<uint32_t>> carried = Carry(words);
  ASSERT_TRUE(carried.ok()) << carried.status().text();
  ASSERT_EQ(Problem(carried.value()), "");
  const IlModule before = Parsed(words), after = Parsed(carried.value());
  IlMachine whole(before), split(after);

  LaunchShape line;
  line.global[0] = 48;
  line.local[0] = 4;
  LaunchShape plane;
  plane.dimensions = 2;
  plane.global[0] = 8;
  plane.global[1] = 12;
  plane.local[0] = 4;
  plane.local[1] = 3;
  LaunchShape cube = plane;
  cube.dimensions = 3;
  cube.global[2] = 6;
  cube.local[2] = 2;
  for (LaunchShape shape : {line, plane, cube}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{70'001}}) {
      for (uint32_t d = 0; d < shape.dimensions; ++d) shape.offset[d] = offset * (d + 1);
      auto expected = whole.Launch(GridOf(shape));
      // A whole launch is as it was, too.
      EXPECT_EQ(split.Launch(GridOf(shape)), expected);
      std::sort(expected.begin(), expected.end());
      for (const uint64_t items : {4u, 12u, 24u, 36u}) {
        auto stored = InParts(split, shape, items);
        std::sort(stored.begin(), stored.end());
        EXPECT_EQ(stored, expected) << shape.dimensions << " dimensions from " << offset << ", parts of " << items;
      }
    }
  }
}

TEST(IlCarry, ModuleThatIsNotRewrittenWouldShowTheParts) {
  const std::vector<uint32_t> words = Assemble(StoreEverything());
  const IlModule module = Parsed(words);
  IlMachine machine(module);
  LaunchShape line;
  line.global[0] = 48;
  line.local[0] = 4;
  EXPECT_NE(InParts(machine, line, 12), machine.Launch(GridOf(line)));
}

TEST(IlCarry, DeclaresWhatTheModuleLacks) {
  // One built-in only, of a module without the types for the rest.
  const std::vector<uint32_t> words = Assemble(R"(
    OpCapability Addresses
    OpCapability Kernel
    OpCapability Int64
    OpMemoryModel Physical64 OpenCL
    OpEntryPoint Kernel %k "k" %glin
    OpDecorate %glin BuiltIn GlobalLinearId
    %void = OpTypeVoid
    %ulong = OpTypeInt 64 0
    %in_ulong = OpTypePointer Input %ulong
    %main_type = OpTypeFunction %void
    %glin = OpVariable %in_ulong Input
    %k = OpFunction %void None %main_type
    %begin = OpLabel
    %v = OpLoad %ulong %glin
    OpReturn
    OpFunctionEnd)");
  const Result<std::vector<uint32_t>> carried = Carry(words);
  ASSERT_TRUE(carried.ok()) << carried.status().text();
  EXPECT_EQ(Problem(carried.value()), "");
}

TEST(IlCarry, NewerModulesNameAllVariablesInTheInterface) {
  std::vector<uint32_t> words = Assemble(IlKernel("%v = OpLoad %v3 %wgid"));
  const Result<std::vector<uint32_t>> carried = Carry(words);
  ASSERT_TRUE(carried.ok());
  const IlModule module = Parsed(carried.value());
  const IlBuiltins builtins(module);
  for (size_t i = 0; i < module.size(); ++i) {
    const IlInstruction instruction = module.at(i);
    if (instruction.opcode != static_cast<uint16_t>(spv::Op::OpEntryPoint)) continue;
    for (const auto& [builtin, variable] : builtins.variables()) {
      EXPECT_EQ(std::count(instruction.inputs.begin(), instruction.inputs.end(), variable), 1) << builtin;
    }
  }
}

TEST(IlCarry, RefusesWhatItCannotRewrite) {
  EXPECT_THAT(Carry(Assemble(IlKernel("%copy = OpCopyObject %in_v3 %wgid\n%v = OpLoad %v3 %copy"))).status().text(),
              HasSubstr("address of a built-in"));
  // Sizes of 32 bits have no room for the word.
  EXPECT_THAT(Carry(Assemble(R"(
    OpCapability Addresses
    OpCapability Kernel
    OpMemoryModel Physical32 OpenCL
    OpEntryPoint Kernel %k "k" %wgid
    OpDecorate %wgid BuiltIn WorkgroupId
    %void = OpTypeVoid
    %uint = OpTypeInt 32 0
    %v3 = OpTypeVector %uint 3
    %in_v3 = OpTypePointer Input %v3
    %main_type = OpTypeFunction %void
    %wgid = OpVariable %in_v3 Input
    %k = OpFunction %void None %main_type
    %begin = OpLabel
    %v = OpLoad %v3 %wgid
    OpReturn
    OpFunctionEnd)"))
                  .status()
                  .text(),
              HasSubstr("another type"));
  EXPECT_FALSE(WithIlCarry({}).ok());
}

}  // namespace
}  // namespace hawser::server::slicing
