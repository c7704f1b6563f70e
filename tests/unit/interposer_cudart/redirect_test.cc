// SPDX-License-Identifier: Apache-2.0
// Redirection: reading ELF files, finding an embedded runtime, near memory, patching, trampolines.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "interposer/cudart/redirect/elf_reader.h"
#include "interposer/cudart/redirect/near_memory.h"
#include "interposer/cudart/redirect/nvrtc.h"
#include "interposer/cudart/redirect/objects.h"
#include "interposer/cudart/redirect/our_runtime.h"
#include "interposer/cudart/redirect/patcher.h"
#include "interposer/cudart/redirect/runtime_finder.h"
#include "interposer/cudart/redirect/trampolines.h"
#include "tests/unit/interposer_cudart/elf_builder.h"

namespace hawser::redirect {
namespace {

using ::testing::ElementsAre;
using testing::ElfBuilder;

EmbeddedRuntime Find(const std::vector<uint8_t>& file) {
  const MemorySource source(file.data(), file.size());
  ElfReader reader(source);
  return reader.Open() ? FindRuntime(reader) : EmbeddedRuntime{};
}

TEST(RuntimeFinder, FindsTheEntriesOfAStaticRuntime) {
  const EmbeddedRuntime runtime = Find(ElfBuilder()
                                           .Section(".nvFatBinSegment")
                                           .Function("main", 0x1000, 64)
                                           .Function("cudaMalloc", 0x2000, 100)
                                           .Function("cudaGetLastError", 0x2080, 10)
                                           .Function("cudaFromTomorrow", 0x2090, 32)
                                           .Function("__cudaLaunchKernel", 0x20b0, 10)
                                           .Function("cudaLaunchKernel", 0x20b8, 10)
                                           .Function("cudaHelperOfTheProgram", 0x9000, 10)
                                           .Build());
  EXPECT_EQ(runtime.major, 13);
  EXPECT_TRUE(runtime.device_code);
  ASSERT_EQ(runtime.entries.size(), 4U);
  EXPECT_EQ(runtime.entries[0].name, "cudaMalloc");
  EXPECT_EQ(runtime.entries[0].room, 112U) << "up to the next multiple of 16";
  EXPECT_EQ(runtime.entries[2].name, "__cudaLaunchKernel");
  EXPECT_EQ(runtime.entries[2].room, 8U) << "up to the next function";
  EXPECT_THAT(runtime.unknown, ElementsAre("cudaFromTomorrow"));
}

TEST(RuntimeFinder, TellsTheVersionsApart) {
  ElfBuilder builder;
  builder.Function("cudaGetLastError", 0x2080, 10).Function("cudaThreadExit", 0x3000, 16);
  EXPECT_EQ(Find(builder.Build()).major, 12);
}

TEST(RuntimeFinder, EveryAddressIsRedirectedOnce) {
  const EmbeddedRuntime runtime = Find(ElfBuilder()
                                           .Function("cudaGetLastError", 0x2080, 32)
                                           .Function("cudaMemcpy", 0x2000, 32)
                                           .Function("cudaMemcpy_ptds", 0x2000, 32)
                                           .Build());
  EXPECT_EQ(runtime.entries.size(), 2U);
}

TEST(RuntimeFinder, SeesThatAProgramIsStripped) {
  const EmbeddedRuntime runtime = Find(ElfBuilder().Section(".nvFatBinSegment").Build());
  EXPECT_EQ(runtime.major, 0);
  EXPECT_TRUE(runtime.device_code);
  EXPECT_FALSE(runtime.imports_runtime);
}

TEST(RuntimeFinder, HostCodeThatNvccLinkedHasNoDeviceCode) {
  EXPECT_FALSE(Find(ElfBuilder().Section(".nv_fatbin").Function("main", 0x1000, 64).Build()).device_code);
}

TEST(RuntimeFinder, SeesThatTheRuntimeIsShared) {
  const EmbeddedRuntime runtime =
      Find(ElfBuilder().Section(".nvFatBinSegment").Import("__cudaRegisterFatBinary").Build());
  EXPECT_EQ(runtime.major, 0);
  EXPECT_TRUE(runtime.imports_runtime);
}

TEST(RuntimeFinder, FindsASharedRuntimeThatIsNotOurs) {
  ElfBuilder builder;
  builder.Export("cudaGetLastError", 0x2080, 16).Export("cudaMalloc", 0x2090, 16);
  EXPECT_EQ(Find(builder.Build()).entries.size(), 2U);
  EXPECT_EQ(Find(builder.Section(".hawser_runtime").Build()).major, 0);
}

TEST(RuntimeFinder, AnOrdinaryProgramHasNone) {
  const EmbeddedRuntime runtime = Find(ElfBuilder().Function("main", 0x1000, 10).Function("cudaCheck", 16, 16).Build());
  EXPECT_EQ(runtime.major, 0);
  EXPECT_FALSE(runtime.device_code);
}

TEST(ElfReader, RefusesWhatIsNotSound) {
  const std::vector<uint8_t> good = ElfBuilder().Function("cudaGetLastError", 0x2080, 16).Build();
  ASSERT_EQ(Find(good).major, 13);
  // Cut anywhere: no crash, and never a runtime with fewer names.
  for (size_t size = 0; size < good.size(); ++size) {
    const MemorySource source(good.data(), size);
    ElfReader reader(source);
    if (!reader.Open()) continue;
    EXPECT_EQ(FindRuntime(reader).major, 0) << size;
  }
  std::vector<uint8_t> wrong = good;
  wrong[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(Find(wrong).major, 0);
  wrong = good;
  reinterpret_cast<Elf64_Ehdr*>(wrong.data())->e_machine = EM_AARCH64;
  EXPECT_EQ(Find(wrong).major, 0);
  wrong = good;
  reinterpret_cast<Elf64_Ehdr*>(wrong.data())->e_shnum = 0xffff;
  EXPECT_EQ(Find(wrong).major, 0);
  wrong = good;
  reinterpret_cast<Elf64_Ehdr*>(wrong.data())->e_shstrndx = 77;
  EXPECT_EQ(Find(wrong).major, 0);
}

TEST(ElfReader, FindsNamesAcrossPieces) {
  ElfBuilder builder;
  // Names of 64 KiB and more before the one that is looked for.
  for (int i = 0; i < 9000; ++i) builder.Function("name" + std::to_string(i), 16 + i, 1);
  builder.Function("the_last_one", 8, 1);
  const std::vector<uint8_t> file = builder.Build();
  const MemorySource source(file.data(), file.size());
  ElfReader reader(source);
  ASSERT_TRUE(reader.Open());
  for (int i = 0; i < 9000; ++i) {
    ASSERT_TRUE(reader.NamesContain(SHT_SYMTAB, "name" + std::to_string(i))) << i;
  }
  EXPECT_TRUE(reader.NamesContain(SHT_SYMTAB, "the_last_one"));
  EXPECT_FALSE(reader.NamesContain(SHT_SYMTAB, "the_last_two"));
  EXPECT_FALSE(reader.NamesContain(SHT_DYNSYM, "the_last_one"));
}

TEST(ElfReader, DoesNotAllocateWhatAFileClaims) {
  std::vector<uint8_t> file = ElfBuilder().Function("cudaGetLastError", 0x2080, 16).Build();
  auto* header = reinterpret_cast<Elf64_Ehdr*>(file.data());
  auto* sections = reinterpret_cast<Elf64_Shdr*>(file.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type == SHT_SYMTAB) sections[i].sh_size = uint64_t{200} << 20;
  }
  EXPECT_EQ(Find(file).major, 0);
}

TEST(ElfReader, KnowsTheFileThatWasLoaded) {
  const int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  const FileSource source(descriptor);
  ElfReader reader(source);
  ASSERT_TRUE(reader.Open());
  EXPECT_TRUE(IsSameFile(reader, _r_debug.r_map->l_addr));
  EXPECT_FALSE(IsSameFile(ElfReader(source), _r_debug.r_map->l_addr)) << "nothing was read";
  close(descriptor);
}

// A page of code: at the beginning a function that returns `value`.
uint8_t* MakeFunction(uint8_t value, bool marked) {
  auto* code = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::vector<uint8_t> bytes;
  if (marked) bytes = {0xf3, 0x0f, 0x1e, 0xfa};
  bytes.insert(bytes.end(), {0xb8, value, 0, 0, 0, 0xc3});
  std::memcpy(code, bytes.data(), bytes.size());
  mprotect(code, 4096, PROT_READ | PROT_EXEC);
  return code;
}

int Call(const uint8_t* function) { return reinterpret_cast<int (*)()>(reinterpret_cast<uintptr_t>(function))(); }

int ReturnsNine() { return 9; }

TEST(Patcher, AJumpReplacesTheFunction) {
  for (const bool marked : {false, true}) {
    uint8_t* function = MakeFunction(1, marked);
    EXPECT_EQ(Call(function), 1);
    const auto address = reinterpret_cast<uintptr_t>(function);
    const uintptr_t jump = MakeJumpTo(address, reinterpret_cast<uintptr_t>(&ReturnsNine));
    ASSERT_NE(jump, 0U);
    ASSERT_TRUE(Apply({{address, 16, jump}}));
    EXPECT_EQ(Call(function), 9);
    // The mark for indirect calls stays where it was.
    EXPECT_EQ(function[0], marked ? 0xf3 : 0xe9);
  }
}

TEST(Patcher, SaysWhenCodeCannotBeChanged) {
  const long page = sysconf(_SC_PAGESIZE);
  EXPECT_FALSE(Apply({{static_cast<uintptr_t>(page), 16, static_cast<uintptr_t>(page)}})) << "nothing is mapped there";
}

TEST(NearMemory, IsWithinReachOfAJump) {
  const auto here = reinterpret_cast<uintptr_t>(MakeFunction(1, false));
  const auto memory = reinterpret_cast<uintptr_t>(MapNear(here, here + 4096, 3 * 4096));
  ASSERT_NE(memory, 0U);
  EXPECT_LT(memory > here ? memory - here : here - memory, uintptr_t{1} << 31);
}

TEST(Trampolines, SayWhatIsMissingWhenThereIsNoRuntime) {
  // Beside this test there is no libcudart.so.13: each function answers cudaErrorInsufficientDriver.
  const uint8_t* function = MakeFunction(1, false);
  const auto near = reinterpret_cast<uintptr_t>(function);
  const std::vector<uintptr_t> made = MakeTrampolines({"cudaMalloc", "cudaFree"}, OurRuntime(13), near, near + 4096);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(Call(reinterpret_cast<const uint8_t*>(made[1])), 35);
  EXPECT_EQ(Call(reinterpret_cast<const uint8_t*>(made[1])), 35);
}

TEST(Patcher, CodeIsReplacedWhileOthersComeBy) {
  for (const bool marked : {false, true}) {
    uint8_t* function = MakeFunction(1, marked);
    const auto address = reinterpret_cast<uintptr_t>(function);
    const uintptr_t jump = MakeJumpTo(address, reinterpret_cast<uintptr_t>(&ReturnsNine));
    ASSERT_NE(jump, 0U);
    const uintptr_t place = PlaceOfJump(address, 16);
    EXPECT_EQ(place, marked ? address + 4 : address);
    std::array<uint8_t, kJumpSize> original{};
    std::memcpy(original.data(), reinterpret_cast<const void*>(place), original.size());
    ASSERT_TRUE(Replace(place, MakeJump(place, jump)));
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!stop.load()) {
          const int answer = Call(function);
          if (answer != 1 && answer != 9) wrong.fetch_add(1);
        }
      });
    }
    // Not back again while others are about: they may be inside what was put back.
    EXPECT_EQ(Call(function), 9);
    EXPECT_TRUE(Replace(place, original));
    EXPECT_EQ(Call(function), 1);
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(Patcher, SaysWhatCannotBeReplaced) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  EXPECT_FALSE(Replace(page, MakeJump(page, page))) << "nothing is mapped there";
  const auto odd = reinterpret_cast<uintptr_t>(MakeFunction(1, false)) + 1;
  errno = 0;
  EXPECT_FALSE(Replace(odd, MakeJump(odd, odd)));
  EXPECT_EQ(errno, EINVAL);
}

NvrtcFunctions FindFunctions(const std::vector<uint8_t>& file) {
  const MemorySource source(file.data(), file.size());
  ElfReader reader(source);
  return reader.Open() ? FindNvrtc(reader) : NvrtcFunctions{};
}

TEST(NvrtcFinder, KnowsItsFileByName) {
  EXPECT_TRUE(MayBeNvrtc("/usr/local/cuda/lib64/libnvrtc.so.13"));
  EXPECT_TRUE(MayBeNvrtc("libnvrtc-672ee683.so.11.2"));
  EXPECT_FALSE(MayBeNvrtc("/opt/libnvrtc.so.13/libcudart.so"));
  EXPECT_FALSE(MayBeNvrtc(""));
}

TEST(NvrtcFinder, FindsBothFunctionsAndTheirOthers) {
  ElfBuilder builder;
  builder.Export("nvrtcGetPTX", 0x1000, 50)
      .Export("nvrtcGetCUBIN", 0x1040, 100)
      .Export("nvrtcGetCUBINSize", 0x10b0, 20)
      .Export("nvrtcVersion", 0x10b8, 8)
      .Export("nvrtcGetPTXSize", 0x2000, 50);
  const NvrtcFunctions found = FindFunctions(builder.Build());
  EXPECT_TRUE(found.complete());
  EXPECT_EQ(found.get.cubin, 0x1040U);
  EXPECT_EQ(found.get.ptx, 0x1000U);
  EXPECT_EQ(found.get.room, 112U) << "up to the next multiple of 16";
  EXPECT_EQ(found.size.cubin, 0x10b0U);
  EXPECT_EQ(found.size.ptx, 0x2000U);
  EXPECT_EQ(found.size.room, 8U) << "up to the next function";
}

TEST(NvrtcFinder, NeedsAllFour) {
  const auto without = [](const std::string& missing) {
    ElfBuilder builder;
    uint64_t value = 0x1000;
    for (const char* name : {"nvrtcGetPTX", "nvrtcGetCUBIN", "nvrtcGetCUBINSize", "nvrtcGetPTXSize"}) {
      value += 0x40;
      if (name == missing) {
        builder.Import(name);
      } else {
        builder.Export(name, value, 32);
      }
    }
    return FindFunctions(builder.Build()).complete();
  };
  EXPECT_TRUE(without("none"));
  for (const char* name : {"nvrtcGetPTX", "nvrtcGetCUBIN", "nvrtcGetCUBINSize", "nvrtcGetPTXSize"}) {
    EXPECT_FALSE(without(name)) << name;
  }
}

TEST(NvrtcFinder, LeavesFunctionsWithoutRoom) {
  ElfBuilder builder;
  builder.Export("nvrtcGetPTX", 0x1000, 50).Export("nvrtcGetCUBIN", 0x1040, 4).Export("other", 0x1044, 4);
  builder.Export("nvrtcGetCUBINSize", 0x10b0, 20).Export("nvrtcGetPTXSize", 0x2000, 50);
  EXPECT_FALSE(FindFunctions(builder.Build()).complete());
}

// Four functions in one page of code that return 1 (cubin), 2 (its size), 3 (PTX) and 4 (its size).
struct FakeNvrtc {
  FakeNvrtc() {
    code = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (uint8_t i = 0; i < 4; ++i) {
      const uint8_t bytes[] = {0xb8, static_cast<uint8_t>(i + 1), 0, 0, 0, 0xc3};
      std::memcpy(code + 64 * i, bytes, sizeof(bytes));
    }
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    functions.get = {0, 64, 128};
    functions.size = {64, 64, 192};
    functions.get.cubin = kBias;
    functions.size.cubin = kBias + 64;
    functions.get.ptx = kBias + 128;
    functions.size.ptx = kBias + 192;
  }
  uintptr_t base() const { return reinterpret_cast<uintptr_t>(code) - kBias; }

  static constexpr uintptr_t kBias = 0x100;  // A value of 0 in the file is no function.
  uint8_t* code;
  NvrtcFunctions functions;
};

std::atomic<int> g_questions{0};

TEST(Nvrtc, GivesPtxForMachineCode) {
  const FakeNvrtc fake;
  g_questions = 0;
  auto* nvrtc = new Nvrtc("libnvrtc", fake.base(), fake.functions, [] {
    g_questions.fetch_add(1);
    return true;
  });
  ASSERT_TRUE(nvrtc->Attach());
  EXPECT_EQ(g_questions.load(), 0) << "before anybody wants machine code";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Call(fake.code + 64), 4);
    EXPECT_EQ(Call(fake.code), 3);
  }
  EXPECT_EQ(Call(fake.code + 128), 3);
  EXPECT_EQ(g_questions.load(), 1);
}

TEST(Nvrtc, PutsItsCodeBackForDevicesThatTakeIt) {
  for (int round = 0; round < 50; ++round) {
    const FakeNvrtc fake;
    const std::vector<uint8_t> before(fake.code, fake.code + 4096);
    auto* nvrtc = new Nvrtc("libnvrtc", fake.base(), fake.functions, [] {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      return false;
    });
    ASSERT_TRUE(nvrtc->Attach());
    ASSERT_NE(std::memcmp(fake.code, before.data(), before.size()), 0);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int call = 0; call < 1000; ++call) {
          if (Call(fake.code) != 1) wrong.fetch_add(1);
          if (Call(fake.code + 64) != 2) wrong.fetch_add(1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(std::memcmp(fake.code, before.data(), before.size()), 0) << "as it was";
  }
}

TEST(Nvrtc, WithoutADriverNothingIsKnownToExecutePtxAlone) {
  // This test is run without one of ours, and whoever has NVIDIA's has a device that takes machine code.
  EXPECT_FALSE(DeviceExecutesPtxAlone());
}

}  // namespace
}  // namespace hawser::redirect
