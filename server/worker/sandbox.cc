// SPDX-License-Identifier: Apache-2.0
#include "server/worker/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#ifndef HAWSER_WITHOUT_SECCOMP
#include <seccomp.h>
#endif

namespace hawser::server {
namespace {

using wire::Code;
using wire::Status;

Status SetLimit(__rlimit_resource resource, uint64_t value, const char* what) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return Status::FromErrno(std::string("cannot read the limit on ") + what);
  // Never above what is allowed: an unprivileged hawserd cannot raise a hard limit.
  if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max) limit.rlim_max = value;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(resource, &limit) != 0) return Status::FromErrno(std::string("cannot limit ") + what);
  return {};
}

/// Of this thread, which is the only one; children have none either.
Status DropCapabilities() {
  // Those that the kernel does not know yet give an error, and are not there.
  for (int capability = 0; capability <= 63; ++capability) (void)::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return Status::FromErrno("cannot give up capabilities");
  return {};
}

#ifndef HAWSER_WITHOUT_SECCOMP
/// By name, so that one list serves every architecture and library version; unknown names are skipped.
constexpr const char* kRefused[] = {
    // network
    "bind",
    "connect",
    "listen",
    "accept",
    "accept4",
    // other processes
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "kill",
    "tkill",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_open",
    "pidfd_getfd",
    "pidfd_send_signal",
    // files and namespaces
    "mount",
    "umount",
    "umount2",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "setns",
    "unshare",
    "open_by_handle_at",
    "name_to_handle_at",
    "mknod",
    "mknodat",
    "quotactl",
    "quotactl_fd",
    "fanotify_init",
    // kernel administration
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "syslog",
    "iopl",
    "ioperm",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "stime",
    "sethostname",
    "setdomainname",
    "vhangup",
    "lookup_dcookie",
    "nfsservctl",
    // keys
    "keyctl",
    "add_key",
    "request_key",
    // identity
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setfsuid",
    "setfsgid",
    "setgroups",
    "capset",
    // ways around a filter
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "personality",
};
#endif

}  // namespace

Status DieWithParent(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Status::FromErrno("cannot tie the worker to hawserd");
  // The parent may have died before the call above; then nobody would ever send the signal.
  if (::getppid() != parent) return Status(Code::kClosed, "hawserd is gone");
  return {};
}

Status ApplyResourceLimits(const WorkerSettings& settings) {
  if (Status status = SetLimit(RLIMIT_CORE, 0, "core dumps"); !status.ok()) return status;
  if (Status status = SetLimit(RLIMIT_NOFILE, settings.open_files, "open files"); !status.ok()) return status;
  return {};
}

Status LimitAddressSpace(const WorkerSettings& settings) {
  if (settings.address_space == 0) return {};
  return SetLimit(RLIMIT_AS, settings.address_space, "address space");
}

void CloseFrom(int first, std::initializer_list<int> kept) {
  for (const int each : kept) {
    if (each < first) continue;
    for (int fd = first; fd < each; ++fd) ::close(fd);
    first = each + 1;
  }
  if (::close_range(static_cast<unsigned>(first), ~0u, 0) == 0) return;
  // Kernels before 5.9.
  const long most = ::sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < most; ++fd) ::close(fd);
}

Status DropPrivileges(const WorkerSettings& settings) {
  if (settings.run_as_uid != UINT32_MAX) {
    const gid_t gid = settings.run_as_gid;
    const uid_t uid = settings.run_as_uid;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(gid, gid, gid) != 0 || ::setresuid(uid, uid, uid) != 0) {
      return Status::FromErrno("cannot become user " + std::to_string(uid));
    }
    // Changing the user forgets the tie to the parent.
    if (Status status = DieWithParent(settings.server_pid); !status.ok()) return status;
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Status::FromErrno("cannot give up new privileges");
  return DropCapabilities();
}

#ifdef HAWSER_WITHOUT_SECCOMP
Status InstallSyscallFilter() {
  return Status(Code::kSystem, "this worker was built without libseccomp; switch server.syscall_filter off");
}
#else
Status InstallSyscallFilter() {
  const scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) return Status(Code::kSystem, "cannot create a system call filter");
  int error = ::seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  constexpr uint32_t kDeny = SCMP_ACT_ERRNO(EPERM);
  for (const char* name : kRefused) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || error < 0) continue;
    // Negative numbers stand for calls of other architectures.
    if (number >= 0) error = ::seccomp_rule_add(filter, kDeny, number, 0);
  }
  // A value of arguments: refused where (argument & mask) == value, or differs.
  const auto refuse = [&](int call, const scmp_arg_cmp& argument) {
    if (error >= 0) error = ::seccomp_rule_add(filter, kDeny, call, 1, argument);
  };
  // Threads of other processes, and limits of others (0 is the process itself).
  refuse(SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(::getpid())));
  refuse(SCMP_SYS(prlimit64), SCMP_A0(SCMP_CMP_NE, 0));
  // Typing on a terminal that hawserd was started from.
  for (const unsigned request : {unsigned{TIOCSTI}, unsigned{TIOCLINUX}}) {
    refuse(SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, request));
  }
  for (const uint64_t space :
       {uint64_t{CLONE_NEWUSER}, uint64_t{CLONE_NEWNS}, uint64_t{CLONE_NEWNET}, uint64_t{CLONE_NEWPID},
        uint64_t{CLONE_NEWIPC}, uint64_t{CLONE_NEWUTS}, uint64_t{CLONE_NEWCGROUP}}) {
    refuse(SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, space, space));
  }
  // Its flags are in memory, out of a filter's sight; without it everybody uses clone.
  if (error >= 0) error = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  if (error >= 0) {
    // Unix sockets cannot connect or listen; creating one is harmless, and libraries try.
    error = ::seccomp_rule_add(filter, kDeny, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX));
  }
  if (error >= 0) error = ::seccomp_load(filter);
  ::seccomp_release(filter);
  if (error < 0) return Status::FromErrno("cannot install the system call filter", -error);
  return {};
}

#endif

}  // namespace hawser::server
