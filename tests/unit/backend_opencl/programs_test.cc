// SPDX-License-Identifier: Apache-2.0
// Programs: building, logs, what is told about kernels, binaries, queries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::string_view kTwo = R"(
__attribute__((reqd_work_group_size(4, 1, 1)))
kernel void first(global const float* restrict input, constant int* table, local float* scratch, float4 value) {
  scratch[0] = input[0] + table[0] + value.x;
}
kernel void second(read_only image2d_t image, sampler_t sampler, uint count) {}
)";

std::vector<opencl::DeviceBuild> Builds(const opencl::BuildResult& result) {
  std::vector<opencl::DeviceBuild> builds;
  result.builds.ForEach([&](const opencl::DeviceBuild& build) { builds.push_back(build); });
  return builds;
}

std::vector<opencl::KernelInfo> Kernels(const opencl::BuildResult& result) {
  std::vector<opencl::KernelInfo> kernels;
  result.kernels.ForEach([&](const opencl::KernelInfo& kernel) { kernels.push_back(kernel); });
  return kernels;
}

TEST(Programs, ABuildTellsEverythingAboutItsKernels) {
  Session session;
  opencl::BuildProgram build;
  build.program = session.Source(kTwo);
  build.options = "-DUNUSED=1";
  const auto result = session.Ask<opencl::BuildResult>(build);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->message.status, CL_SUCCESS);
  EXPECT_EQ(result->message.kernels_status, 0u);
  const std::vector<opencl::DeviceBuild> builds = Builds(result->message);
  ASSERT_EQ(builds.size(), 1u);
  EXPECT_EQ(builds[0].device, session.Device());
  EXPECT_EQ(builds[0].status, CL_BUILD_SUCCESS);
  EXPECT_EQ(builds[0].binary_type, static_cast<uint32_t>(CL_PROGRAM_BINARY_TYPE_EXECUTABLE));
  EXPECT_EQ(builds[0].options, "-DUNUSED=1");

  std::vector<opencl::KernelInfo> kernels = Kernels(result->message);
  ASSERT_EQ(kernels.size(), 2u);
  if (kernels[0].name != "first") std::swap(kernels[0], kernels[1]);
  EXPECT_EQ(kernels[0].name, "first");
  EXPECT_EQ(kernels[1].name, "second");
  std::vector<opencl::KernelArg> args;
  kernels[0].args.ForEach([&](const opencl::KernelArg& arg) { args.push_back(arg); });
  ASSERT_EQ(args.size(), 4u);
  for (const opencl::KernelArg& arg : args) ASSERT_EQ(arg.status, CL_SUCCESS);
  EXPECT_EQ(args[0].name, "input");
  EXPECT_EQ(args[0].type_name, "float*");
  EXPECT_EQ(args[0].address_qualifier, static_cast<uint32_t>(CL_KERNEL_ARG_ADDRESS_GLOBAL));
  EXPECT_NE(args[0].type_qualifier & CL_KERNEL_ARG_TYPE_CONST, 0u);
  EXPECT_EQ(args[1].address_qualifier, static_cast<uint32_t>(CL_KERNEL_ARG_ADDRESS_CONSTANT));
  EXPECT_EQ(args[2].address_qualifier, static_cast<uint32_t>(CL_KERNEL_ARG_ADDRESS_LOCAL));
  EXPECT_EQ(args[3].address_qualifier, static_cast<uint32_t>(CL_KERNEL_ARG_ADDRESS_PRIVATE));
  EXPECT_EQ(args[3].type_name, "float4");
  args.clear();
  kernels[1].args.ForEach([&](const opencl::KernelArg& arg) { args.push_back(arg); });
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args[0].type_name, "image2d_t");
  EXPECT_EQ(args[0].access_qualifier, static_cast<uint32_t>(CL_KERNEL_ARG_ACCESS_READ_ONLY));

  std::map<uint32_t, std::vector<uint64_t>> info;
  kernels[0].work_groups.ForEach([&](const opencl::KernelWorkGroup& group) {
    EXPECT_EQ(group.device, session.Device());
    group.info.ForEach([&](const opencl::InfoValue& value) {
      if (value.status == CL_SUCCESS) info[value.param] = ValuesOf<uint64_t>(value.value);
    });
  });
  EXPECT_THAT(info[CL_KERNEL_COMPILE_WORK_GROUP_SIZE], ElementsAre(4, 1, 1));
  EXPECT_GT(info[CL_KERNEL_WORK_GROUP_SIZE].at(0), 0u);
  EXPECT_GT(info[CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE].at(0), 0u);
}

TEST(Programs, AFailedBuildHasALog) {
  Session session;
  opencl::BuildProgram build;
  build.program = session.Source("kernel void broken( { undeclared; }");
  const auto result = session.Ask<opencl::BuildResult>(build);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->message.status, CL_BUILD_PROGRAM_FAILURE);
  const std::vector<opencl::DeviceBuild> builds = Builds(result->message);
  ASSERT_EQ(builds.size(), 1u);
  EXPECT_EQ(builds[0].status, CL_BUILD_ERROR);
  EXPECT_THAT(std::string(builds[0].log), HasSubstr("error"));
  EXPECT_EQ(result->message.kernels.size(), 0u);
  EXPECT_FALSE(session.Kernel(build.program, "broken"));
}

TEST(Programs, BuildsRunBesideTheExecutorAndInOrder) {
  Session session;
  const Id queue = session.Queue();
  std::vector<uint64_t> seqs;
  std::vector<Id> programs;
  for (int i = 0; i < 4; ++i) {
    opencl::BuildProgram build;
    build.program = session.Source("kernel void k(global int* a) { a[0] = " + std::to_string(i) + "; }");
    programs.push_back(build.program);
    ASSERT_EQ(session.Do(build, &seqs.emplace_back()), CL_SUCCESS);
  }
  // Released while it is built: the builder keeps it.
  ASSERT_EQ(session.Release(programs[3]), CL_SUCCESS);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
  for (const uint64_t seq : seqs) {
    const auto result = session.AwaitReply<opencl::BuildResult>(seq);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->message.status, CL_SUCCESS);
  }
  std::vector<uint64_t> order;
  for (const std::shared_ptr<Frame>& frame : session.replies().All()) {
    if (frame->opcode == static_cast<uint16_t>(opencl::Opcode::kBuildProgram)) order.push_back(frame->seq);
  }
  EXPECT_EQ(order, seqs);
  const Id buffer = session.BufferOf(std::vector<int>{-1});
  for (int i = 0; i < 3; ++i) {
    const Id kernel = session.Kernel(programs[static_cast<size_t>(i)], "k");
    ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
    ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
    EXPECT_EQ(session.ReadAs<int>(queue, buffer, 1), std::vector<int>{i});
  }
}

TEST(Programs, AProgramIsBuiltTwice) {
  Session session;
  const Id queue = session.Queue();
  opencl::BuildProgram build;
  build.program = session.Source("kernel void k(global int* a) { a[0] = VALUE; }");
  const Id buffer = session.BufferOf(std::vector<int>{-1});
  for (const char* options : {"-DVALUE=11", "-DVALUE=22"}) {
    build.options = options;
    const auto result = session.Ask<opencl::BuildResult>(build);
    ASSERT_TRUE(result.has_value());
    ASSERT_EQ(result->message.status, CL_SUCCESS);
    const Id kernel = session.Kernel(build.program, "k");
    ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
    ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
    ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
    ASSERT_EQ(session.Release(kernel), CL_SUCCESS);
    EXPECT_EQ(session.ReadAs<int>(queue, buffer, 1),
              std::vector<int>{std::string_view(options) == "-DVALUE=11" ? 11 : 22});
  }
}

TEST(Programs, PrintingIsSeenInTime) {
  Session session;
  EXPECT_TRUE(session.Source("kernel void quiet(global int* a) { a[0] = 1; }"));
  EXPECT_EQ(session.output_enabled(), 0);
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program("kernel void loud() { printf(\"said %d\\n\", 7); }"), "loud");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(session.output_enabled(), 1);
  EXPECT_TRUE(session.Source("kernel void louder() { printf(\"x\"); }"));
  EXPECT_EQ(session.output_enabled(), 1) << "once";
  testing::internal::CaptureStdout();
  ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
  const int drains = session.drains();
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_GT(session.drains(), drains);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "said 7\n");
}

TEST(Programs, CompileAndLink) {
  Session session;
  const Id queue = session.Queue();
  const Id header = session.Source("#define ANSWER 42\n");
  const Id library = session.Source("int answer(void);\nint answer(void) { return 42; }\n");
  opencl::CompileProgram compile;
  opencl::Header named;
  named.program = header;
  named.name = "answer.h";
  compile.program = session.Source("#include \"answer.h\"\nkernel void k(global int* a) { a[0] = ANSWER; }");
  compile.headers = wire::ListView<opencl::Header>(std::span<const opencl::Header>(&named, 1));
  auto result = session.Ask<opencl::BuildResult>(compile);
  ASSERT_TRUE(result.has_value());
  if (result->message.status == CL_COMPILER_NOT_AVAILABLE) GTEST_SKIP() << "the platform cannot compile separately";
  ASSERT_EQ(result->message.status, CL_SUCCESS) << Builds(result->message).at(0).log;
  EXPECT_EQ(Builds(result->message).at(0).binary_type, static_cast<uint32_t>(CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT));
  EXPECT_EQ(result->message.kernels.size(), 0u);
  EXPECT_EQ(session.output_enabled(), 1) << "a header may print";

  opencl::CompileProgram other;
  other.program = library;
  result = session.Ask<opencl::BuildResult>(other);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->message.status, CL_SUCCESS);

  opencl::LinkProgram link;
  link.program = session.NewId(opencl::Handle::kProgram);
  link.context = session.Context();
  const Id inputs[] = {compile.program, library};
  link.inputs = wire::ArrayView<Id>(inputs, 2);
  result = session.Ask<opencl::BuildResult>(link);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->message.status, CL_SUCCESS);
  ASSERT_EQ(result->message.kernels.size(), 1u);
  const Id kernel = session.Kernel(link.program, "k");
  ASSERT_TRUE(kernel);
  const Id buffer = session.BufferOf(std::vector<int>{-1});
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 1), std::vector<int>{42});
}

TEST(Programs, LinkFailures) {
  Session session;
  opencl::LinkProgram link;
  link.program = session.NewId(opencl::Handle::kProgram);
  link.context = session.Context();
  auto result = session.Ask<opencl::BuildResult>(link);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->message.status, CL_INVALID_VALUE) << "no inputs";
  EXPECT_FALSE(session.Kernel(link.program, "k"));

  // Not compiled: the linker refuses, and the name reports that from then on.
  link.program = session.NewId(opencl::Handle::kProgram);
  const Id source = session.Source("kernel void k() {}");
  link.inputs = wire::ArrayView<Id>(&source, 1);
  result = session.Ask<opencl::BuildResult>(link);
  ASSERT_TRUE(result.has_value());
  EXPECT_LT(result->message.status, 0);
  EXPECT_FALSE(session.Kernel(link.program, "k"));
  EXPECT_EQ(session.Release(link.program), CL_SUCCESS);
}

TEST(Programs, Binaries) {
  Session session;
  const Id queue = session.Queue();
  const Id program = session.Program("kernel void k(global int* a) { a[0] = 9; }");
  opencl::GetProgramBinaries get;
  get.program = program;
  const auto binaries = session.Ask<opencl::ProgramBinaries>(get);
  ASSERT_TRUE(binaries.has_value());
  ASSERT_EQ(binaries->message.status, CL_SUCCESS);
  std::vector<opencl::Blob> blobs;
  binaries->message.binaries.ForEach([&](const opencl::Blob& blob) { blobs.push_back(blob); });
  ASSERT_EQ(blobs.size(), 1u);
  ASSERT_FALSE(blobs[0].data.empty());

  opencl::CreateProgramWithBinary create;
  create.program = session.NewId(opencl::Handle::kProgram);
  create.context = session.Context();
  const Id device = session.Device();
  create.devices = wire::ArrayView<Id>(&device, 1);
  create.binaries = wire::ListView<opencl::Blob>(blobs);
  const auto status = session.Ask<opencl::BinaryStatus>(create);
  ASSERT_TRUE(status.has_value());
  ASSERT_EQ(status->message.status, CL_SUCCESS);
  ASSERT_EQ(status->message.binary_status.size(), 1u);
  EXPECT_EQ(status->message.binary_status[0], CL_SUCCESS);
  EXPECT_EQ(session.output_enabled(), 1) << "a binary may print";
  opencl::BuildProgram build;
  build.program = create.program;
  const auto result = session.Ask<opencl::BuildResult>(build);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->message.status, CL_SUCCESS);
  const Id kernel = session.Kernel(create.program, "k");
  const Id buffer = session.BufferOf(std::vector<int>{-1});
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 1), std::vector<int>{9});

  // Garbage, and one binary too few.
  opencl::Blob garbage;
  garbage.data = wire::AsBytes(std::string_view("this is no binary at all, whatever it says"));
  create.program = session.NewId(opencl::Handle::kProgram);
  create.binaries = wire::ListView<opencl::Blob>(std::span<const opencl::Blob>(&garbage, 1));
  const auto refused = session.Ask<opencl::BinaryStatus>(create);
  ASSERT_TRUE(refused.has_value());
  EXPECT_LT(refused->message.status, 0);
  create.program = session.NewId(opencl::Handle::kProgram);
  create.binaries = {};
  const auto none = session.Ask<opencl::BinaryStatus>(create);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->message.status, CL_INVALID_VALUE);
}

TEST(Programs, IntermediateLanguageAndBuiltIns) {
  Session session;
  opencl::CreateProgramWithIL create;
  create.program = session.NewId(opencl::Handle::kProgram);
  create.context = session.Context();
  create.il = wire::AsBytes(std::string_view("no intermediate language"));
  EXPECT_LT(session.Do(create), 0);
  EXPECT_FALSE(session.Kernel(create.program, "k"));

  opencl::CreateProgramWithBuiltInKernels builtin;
  builtin.program = session.NewId(opencl::Handle::kProgram);
  builtin.context = session.Context();
  const Id device = session.Device();
  builtin.devices = wire::ArrayView<Id>(&device, 1);
  builtin.names = "no.such.kernel";
  const auto reply = session.Ask<opencl::BuildResult>(builtin);
  ASSERT_TRUE(reply.has_value());
  EXPECT_LT(reply->message.status, 0);
  EXPECT_FALSE(session.Kernel(builtin.program, "no.such.kernel"));
}

TEST(Programs, SpecializationConstants) {
  Session session;
  opencl::SetProgramSpecializationConstant set;
  set.program = session.Source("kernel void k() {}");
  set.spec_id = 1;
  set.value = wire::AsBytes("abcd", 4);
  const auto reply = session.Ask<opencl::Status>(set);
  ASSERT_TRUE(reply.has_value());
  EXPECT_LT(reply->message.status, 0) << "only programs of intermediate language have them";
}

TEST(Programs, ManyKernels) {
  Session session;
  std::string source;
  for (int i = 0; i < 100; ++i) {
    source += "kernel void k" + std::to_string(i) + "(global int* a, int b, float c) { a[b] = c; }\n";
  }
  opencl::BuildProgram build;
  build.program = session.Source(source);
  const auto result = session.Ask<opencl::BuildResult>(build);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->message.status, CL_SUCCESS);
  EXPECT_EQ(result->message.kernels.size(), 100u);
}

TEST(Programs, KernelNamesThatAreNot) {
  Session session;
  const Id program = session.Program("kernel void k() {}");
  EXPECT_FALSE(session.Kernel(program, "other"));
  EXPECT_FALSE(session.Kernel(program, ""));
  EXPECT_FALSE(session.Kernel(session.Source("kernel void k() {}"), "k")) << "not built";
  EXPECT_FALSE(session.Source(""));
}

std::optional<Received<opencl::QueryReply>> AskQuery(Session& session, uint32_t kind, Id object, uint32_t param,
                                                     uint64_t max_size = 4096, wire::Bytes input = {}) {
  opencl::Query query;
  query.kind = kind;
  query.object = object;
  query.device = session.Device();
  query.param = param;
  query.max_size = max_size;
  query.input = input;
  return session.Ask<opencl::QueryReply>(query);
}

TEST(Queries, OfEveryKind) {
  Session session;
  const Id program = session.Program("kernel void k(local int* a) {}");
  const Id kernel = session.Kernel(program, "k");
  auto reply = AskQuery(session, 1, program, CL_PROGRAM_NUM_KERNELS);
  ASSERT_TRUE(reply.has_value());
  ASSERT_EQ(reply->message.status, CL_SUCCESS);
  EXPECT_EQ(ValuesOf<uint64_t>(reply->message.value), std::vector<uint64_t>{1});
  reply = AskQuery(session, 2, program, CL_PROGRAM_BUILD_STATUS);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(ValuesOf<int32_t>(reply->message.value), std::vector<int32_t>{CL_BUILD_SUCCESS});
  reply = AskQuery(session, 3, kernel, CL_KERNEL_NUM_ARGS);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(ValuesOf<uint32_t>(reply->message.value), std::vector<uint32_t>{1});

  // Local memory counts the arguments that are set by now.
  opencl::SetKernelArg set;
  set.kernel = kernel;
  set.kind = 4;
  set.size = 256;
  ASSERT_EQ(session.Do(set), CL_SUCCESS);
  reply = AskQuery(session, 4, kernel, CL_KERNEL_LOCAL_MEM_SIZE);
  ASSERT_TRUE(reply.has_value());
  ASSERT_EQ(reply->message.status, CL_SUCCESS);
  EXPECT_GE(ValuesOf<uint64_t>(reply->message.value).at(0), 256u);
  const uint64_t size = 16;
  reply = AskQuery(session, 5, kernel, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 4096, wire::AsBytes(&size, 8));
  ASSERT_TRUE(reply.has_value());  // Whether the device has sub-groups or not.
}

TEST(Queries, HandlesPointersAndSizesAreRefused) {
  Session session;
  const Id program = session.Program("kernel void k() {}");
  const Id kernel = session.Kernel(program, "k");
  for (const auto& [kind, object, param] : std::vector<std::tuple<uint32_t, Id, uint32_t>>{
           {1, program, CL_PROGRAM_CONTEXT},
           {1, program, CL_PROGRAM_DEVICES},
           {1, program, CL_PROGRAM_BINARIES},
           {1, program, CL_PROGRAM_BINARY_SIZES},
           {3, kernel, CL_KERNEL_PROGRAM},
           {3, kernel, CL_KERNEL_CONTEXT},
           {2, program, 0xffff},
           {1, Id(static_cast<uint8_t>(opencl::Handle::kProgram), 1, 999), CL_PROGRAM_NUM_KERNELS},
           {1, kernel, CL_PROGRAM_NUM_KERNELS},
           {3, program, CL_KERNEL_NUM_ARGS}}) {
    const auto reply = AskQuery(session, kind, object, param);
    ASSERT_TRUE(reply.has_value()) << kind << " " << param;
    EXPECT_LT(reply->message.status, 0) << kind << " " << param;
    EXPECT_TRUE(reply->message.value.empty());
  }
  const auto small = AskQuery(session, 1, program, CL_PROGRAM_KERNEL_NAMES, 1);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->message.status, CL_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser::server::ocl
