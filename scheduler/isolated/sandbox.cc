// SPDX-License-Identifier: Apache-2.0
#include "scheduler/isolated/sandbox.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

using hawser::wire::Code;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // These reserve more addresses than there is memory, and read /proc.
#else
constexpr bool kSanitized = false;
#endif

Status SetLimit(__rlimit_resource resource, uint64_t value, const char* what) {
  const rlimit limit{value, value};
  rlimit now{};
  if (::getrlimit(resource, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < value) return {};
  if (::setrlimit(resource, &limit) != 0) return Status::FromErrno(std::string("cannot limit ") + what);
  return {};
}

/// By name, so that one list serves every architecture and library version; unknown names are skipped.
constexpr const char* kComputing[] = {
    "brk",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "futex",
    "membarrier",
    "rseq",
    "sched_yield",
    "nanosleep",
    "clock_nanosleep",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "time",
    "getcpu",
    "restart_syscall",
    "exit",
    "exit_group",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "getpid",
    "gettid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getrandom",
    "getrusage",
    "uname",
    "sysinfo",
    "sched_getaffinity",
    "read",
    "write",
    "writev",
    "close",
    "lseek",
    "fstat",
    "arch_prctl",
    "set_tid_address",
    "set_robust_list",
};
constexpr const char* kLoading[] = {
    "pread64",   "readv",      "stat",     "lstat",      "newfstatat", "fstatat64", "statx",   "access",
    "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd",     "statfs",    "fstatfs", "seccomp",
};

/// A filter that is being made.
class Filter {
 public:
  explicit Filter(uint32_t otherwise) : filter_(::seccomp_init(otherwise)) {
    error_ = filter_ != nullptr ? ::seccomp_attr_set(filter_, SCMP_FLTATR_CTL_TSYNC, 1) : -ENOMEM;
  }
  ~Filter() { ::seccomp_release(filter_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  template <typename... Conditions>
  void Rule(uint32_t action, const char* name, Conditions... conditions) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (error_ < 0 || number < 0) return;  // Negative: a call of other architectures.
    error_ = ::seccomp_rule_add(filter_, action, number, sizeof...(conditions), conditions...);
  }
  Status Install() {
    if (error_ >= 0) error_ = ::seccomp_load(filter_);
    return error_ >= 0 ? Status() : Status::FromErrno("cannot install the system call filter", -error_);
  }

 private:
  scmp_filter_ctx filter_;
  int error_ = 0;
};

}  // namespace

Status DieWithScheduler(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Status::FromErrno("cannot be tied to its parent");
  // The parent may have died before the call above; then nobody would ever send the signal.
  if (::getppid() != parent) return Status(Code::kClosed, "its parent is gone");
  return {};
}

Status LimitPolicyHost(uint64_t address_space) {
  Status status = SetLimit(RLIMIT_CORE, 0, "core dumps");
  if (status.ok()) status = SetLimit(RLIMIT_FSIZE, 0, "files");
  if (status.ok()) status = SetLimit(RLIMIT_NOFILE, 64, "open files");
  if (status.ok()) status = SetLimit(RLIMIT_MEMLOCK, 0, "locked memory");
  if (status.ok() && !kSanitized) status = SetLimit(RLIMIT_NPROC, 0, "processes");
  if (status.ok() && !kSanitized && address_space != 0) status = SetLimit(RLIMIT_AS, address_space, "memory");
  if (status.ok() && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    status = Status::FromErrno("cannot give up new privileges");
  }
  return status;
}

bool HideFiles(const std::string& plugin) {
  if (kSanitized) return false;
  landlock_ruleset_attr rules{};
  // All that the first version of this interface knows.
  rules.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  const auto fd = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0));
  if (fd < 0) return false;
  std::vector<std::string> readable = {"/lib",       "/lib32",         "/lib64",       "/usr/lib",        "/usr/lib32",
                                       "/usr/lib64", "/usr/local/lib", "/usr/libexec", "/etc/ld.so.cache"};
  std::error_code error;
  const std::filesystem::path file = std::filesystem::weakly_canonical(plugin, error);
  if (!error && file.has_parent_path() && plugin.find('/') != std::string::npos) {
    readable.push_back(file.parent_path().string());
  } else if (plugin.ends_with(".so")) {
    readable.emplace_back(".");
  }
  if (const char* paths = std::getenv("LD_LIBRARY_PATH"); paths != nullptr) {
    std::istringstream list(paths);
    for (std::string path; std::getline(list, path, ':');) readable.push_back(path.empty() ? "." : path);
  }
  for (const std::string& path : readable) {
    landlock_path_beneath_attr beneath{};
    beneath.parent_fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0) continue;
    beneath.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
    ::syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    ::close(beneath.parent_fd);
  }
  const bool hidden = ::syscall(SYS_landlock_restrict_self, fd, 0) == 0;
  ::close(fd);
  return hidden;
}

Status AllowLoadingOnly() {
  Filter filter(SCMP_ACT_ERRNO(EPERM));
  for (const char* name : kComputing) filter.Rule(SCMP_ACT_ALLOW, name);
  for (const char* name : kLoading) filter.Rule(SCMP_ACT_ALLOW, name);
  if (kSanitized) {  // They write into a pipe to learn whether memory can be read.
    for (const char* name : {"pipe", "pipe2"}) filter.Rule(SCMP_ACT_ALLOW, name);
  }
  constexpr scmp_datum_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
  filter.Rule(SCMP_ACT_ALLOW, "open", SCMP_A1(SCMP_CMP_MASKED_EQ, kWriting, O_RDONLY));
  filter.Rule(SCMP_ACT_ALLOW, "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, kWriting, O_RDONLY));
  // abort() sends itself a signal; nobody else may get one.
  const auto self = static_cast<scmp_datum_t>(::getpid());
  filter.Rule(SCMP_ACT_ALLOW, "tgkill", SCMP_A0(SCMP_CMP_EQ, self));
  // What AllowComputingOnly() needs. Filters can only be made narrower.
  filter.Rule(SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NO_NEW_PRIVS));
  filter.Rule(SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP));
  filter.Rule(SCMP_ACT_ALLOW, "prlimit64", SCMP_A2(SCMP_CMP_EQ, 0));  // To ask, not to set.
  return filter.Install();
}

Status AllowComputingOnly() {
  Filter filter(SCMP_ACT_ALLOW);
  constexpr uint32_t kDeny = SCMP_ACT_ERRNO(EPERM);
  for (const char* name : kLoading) filter.Rule(kDeny, name);
  for (const char* name : {"open", "openat", "prctl"}) filter.Rule(kDeny, name);
  return filter.Install();
}

}  // namespace hawser::scheduler
