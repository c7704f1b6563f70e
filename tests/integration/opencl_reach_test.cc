// SPDX-License-Identifier: Apache-2.0
// A guest that is in control of its worker reaches nothing of hawserd, and no files but its own. On a CPU device that
// takes no bug: the kernels below make system calls.
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

#ifdef __x86_64__
// in[0]: the call's number, in[1] to in[4]: its arguments; `text` stands for the argument that is -1. out[0]: what the
// system returned.
constexpr const char* kSource = R"(
kernel void call(global const long* in, global char* text, global long* out) {
  long given[4];
  for (int i = 0; i < 4; ++i) given[i] = in[i + 1] == -1 ? (long)text : in[i + 1];
  long result;
  __asm__ volatile("mov %5, %%r10\n\tsyscall"
                   : "=a"(result)
                   : "a"(in[0]), "D"(given[0]), "S"(given[1]), "d"(given[2]), "r"(given[3])
                   : "rcx", "r10", "r11", "memory");
  out[0] = result;
}
)";
constexpr long kText = -1;

class ReachTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    char name[256] = "";
    ASSERT_EQ(clGetPlatformInfo(cl_.platform, CL_PLATFORM_NAME, sizeof(name), name, nullptr), CL_SUCCESS);
    cl_device_type type = 0;
    ASSERT_EQ(clGetDeviceInfo(cl_.device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
    if ((type & CL_DEVICE_TYPE_CPU) == 0) GTEST_SKIP() << "kernels of this device are no machine code of the worker's";
    kernel_ = cl_.Kernel("call");
    in_ = cl_.Buffer(5 * sizeof(cl_long));
    text_ = cl_.Buffer(4096);
    out_ = cl_.Buffer(sizeof(cl_long));
    ASSERT_EQ(clSetKernelArg(kernel_, 0, sizeof(in_), &in_), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel_, 1, sizeof(text_), &text_), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel_, 2, sizeof(out_), &out_), CL_SUCCESS);
    server_ = InWorker(SYS_getppid, {});
    ASSERT_GT(server_, 1) << "the kernel makes no system calls";
  }
  void TearDown() override {
    for (cl_mem buffer : {in_, text_, out_}) {
      if (buffer != nullptr) clReleaseMemObject(buffer);
    }
    if (kernel_ != nullptr) clReleaseKernel(kernel_);
  }

  /// What the system call returns in the worker; kText among the arguments: the address of `text`.
  long InWorker(long call, std::vector<long> arguments, const std::string& text = "") {
    arguments.insert(arguments.begin(), call);
    arguments.resize(5);
    cl_long result = 0;
    const size_t one = 1;
    EXPECT_EQ(
        clEnqueueWriteBuffer(cl_.queue, in_, CL_TRUE, 0, 5 * sizeof(cl_long), arguments.data(), 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(clEnqueueWriteBuffer(cl_.queue, text_, CL_TRUE, 0, text.size() + 1, text.c_str(), 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(clEnqueueNDRangeKernel(cl_.queue, kernel_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(cl_.queue, out_, CL_TRUE, 0, sizeof(result), &result, 0, nullptr, nullptr),
              CL_SUCCESS);
    return result;
  }
  long Open(const std::string& path, int flags) { return InWorker(SYS_open, {kText, flags, 0600}, path); }
  std::string OfServer(const std::string& file) const { return "/proc/" + std::to_string(server_) + "/" + file; }

  ClSetup cl_{0, kSource};
  cl_kernel kernel_ = nullptr;
  cl_mem in_ = nullptr, text_ = nullptr, out_ = nullptr;
  long server_ = 0;
};

bool Confined() { return ::syscall(444 /* landlock_create_ruleset */, nullptr, 0, 1 /* its version */) > 0; }

TEST_F(ReachTest, OtherProcessesAreOutOfReach) {
  EXPECT_EQ(InWorker(SYS_kill, {server_, 0}), -EPERM);
  EXPECT_EQ(InWorker(SYS_tgkill, {server_, server_, 0}), -EPERM);
  EXPECT_EQ(InWorker(SYS_ptrace, {16 /* PTRACE_ATTACH */, server_}), -EPERM);
  EXPECT_EQ(InWorker(SYS_prlimit64, {server_, RLIMIT_NOFILE, 0, 0}), -EPERM);
  EXPECT_EQ(InWorker(SYS_prlimit64, {0, RLIMIT_NOFILE, 0, 0}), 0) << "its own it may ask for";
  const auto worker = InWorker(SYS_getpid, {});
  EXPECT_EQ(InWorker(SYS_tgkill, {worker, InWorker(SYS_gettid, {}), 0}), 0) << "its own threads it may wake";
}

TEST_F(ReachTest, NeitherTerminalsNorNamespaces) {
  EXPECT_EQ(InWorker(SYS_ioctl, {0, TIOCSTI, kText}, "ls\n"), -EPERM);
  // The upper half of the argument means nothing to the kernel.
  EXPECT_EQ(InWorker(SYS_ioctl, {0, static_cast<long>(TIOCSTI | uint64_t{1} << 32), kText}, "ls\n"), -EPERM);
  EXPECT_EQ(InWorker(SYS_clone, {CLONE_NEWUSER | SIGCHLD, 0, 0, 0}), -EPERM);
  EXPECT_EQ(InWorker(SYS_clone3, {kText, 64}), -ENOSYS);
  EXPECT_EQ(InWorker(SYS_unshare, {CLONE_NEWUSER}), -EPERM);
}

TEST_F(ReachTest, MemoryOfOtherProcessesIsShut) {
  if (!Confined() && geteuid() != 0) GTEST_SKIP() << "this kernel has no Landlock, and hawserd has the worker's user";
  EXPECT_EQ(Open(OfServer("mem"), O_RDWR), -EACCES);
  EXPECT_EQ(Open(OfServer("environ"), O_RDONLY), -EACCES);
  EXPECT_LT(InWorker(SYS_readlink, {kText, kText, 1}, OfServer("exe")), 0);
  const long own = Open("/proc/self/mem", O_RDWR);
  EXPECT_GE(own, 0) << "its own it may have";
  if (own >= 0) {
    EXPECT_EQ(InWorker(SYS_close, {own}), 0);
  }
}

TEST_F(ReachTest, FilesElsewhereStayAsTheyAre) {
  if (!Confined()) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string made = "/var/tmp/hawser-reach-" + std::to_string(getpid());
  EXPECT_EQ(Open(made, O_CREAT | O_WRONLY), -EACCES);
  EXPECT_NE(::access(made.c_str(), F_OK), 0);
  ::unlink(made.c_str());
  EXPECT_EQ(InWorker(SYS_mkdir, {kText, 0700}, made), -EACCES);
  ::rmdir(made.c_str());
  // One that this program may write and remove.
  const int fd = ::open(made.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "mine", 4), 4);
  EXPECT_EQ(Open(made, O_WRONLY), -EACCES);
  EXPECT_EQ(InWorker(SYS_unlink, {kText}, made), -EACCES);
  EXPECT_EQ(InWorker(SYS_truncate, {kText, 0}, made), -EACCES);
  EXPECT_GE(Open(made, O_RDONLY), 0) << "reading is not restricted";
  EXPECT_EQ(::lseek(fd, 0, SEEK_END), 4);
  ::close(fd);
  ::unlink(made.c_str());
  EXPECT_EQ(Open("/proc/sys/kernel/core_pattern", O_WRONLY), -EACCES);
}

TEST_F(ReachTest, TemporaryFilesOfOthersStayAsTheyAre) {
  if (!Confined()) GTEST_SKIP() << "this kernel has no Landlock";
  const char* const variable = std::getenv("TMPDIR");
  const std::string base = variable != nullptr ? variable : "/tmp", name = "/reach-" + std::to_string(getpid());
  EXPECT_EQ(Open(base + name, O_CREAT | O_WRONLY), -EACCES) << "where sockets may be";
  ::unlink((base + name).c_str());
  // As long as this program runs, its server's worker has one; other servers' may have others.
  size_t own = 0;
  for (const auto& entry : std::filesystem::directory_iterator(base)) {
    if (!entry.path().filename().string().starts_with("hawser-worker-")) continue;
    const std::string made = entry.path().string() + name;
    if (Open(made, O_CREAT | O_WRONLY) < 0) continue;
    ++own;
    EXPECT_EQ(InWorker(SYS_unlink, {kText}, made), 0);
  }
  EXPECT_EQ(own, 1u);
}

TEST_F(ReachTest, WhatWorkersNeedStays) {
  const std::string made = "/dev/shm/hawser-reach-" + std::to_string(getpid());
  EXPECT_GE(Open(made, O_CREAT | O_RDWR), 0);
  EXPECT_EQ(InWorker(SYS_unlink, {kText}, made), 0);
  EXPECT_GE(Open("/dev/null", O_WRONLY), 0);
  // NVIDIA's driver does not begin where it may not name its threads.
  EXPECT_GE(Open("/proc/self/task/" + std::to_string(InWorker(SYS_getpid, {})) + "/comm", O_WRONLY), 0);
}
#else
TEST(ReachTest, SystemCalls) { GTEST_SKIP() << "the kernels are written for x86-64"; }
#endif

}  // namespace
}  // namespace hawser::test
