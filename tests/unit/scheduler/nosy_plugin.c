/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that tries what no policy needs, while it is loaded and in init(), and says in the log what it could do. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hawser/policy.h"

static char could[4096];

static void note(const char* what, int did) {
  if (!did) return;
  strncat(could, " ", sizeof(could) - strlen(could) - 1);
  strncat(could, what, sizeof(could) - strlen(could) - 1);
}

static int opens(const char* path, int flags) {
  const int fd = open(path, flags, 0600);
  if (fd < 0) return 0;
  close(fd);
  return 1;
}

static int forks(void) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(pid, NULL, 0);
  return pid > 0;
}

static void* nothing(void* argument) { return argument; }

static int starts_a_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, nothing, NULL) != 0) return 0;
  pthread_join(thread, NULL);
  return 1;
}

static int takes_memory(void) {
  const size_t size = (size_t)4 << 30;
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED;
}

static void try_all(const char* when) {
  char parent[64];
  snprintf(parent, sizeof(parent), "/proc/%d/mem", (int)getppid());
  note(when, 1);
  note("passwd", opens("/etc/passwd", O_RDONLY));
  note("parent's-memory", opens(parent, O_RDONLY));
  note("write", opens("/tmp/hawser_nosy_plugin", O_CREAT | O_WRONLY));
  note("socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  note("internet", socket(AF_INET, SOCK_STREAM, 0) >= 0);
  note("fork", forks());
  note("thread", starts_a_thread());
  note("execute", execl("/bin/true", "true", (char*)NULL) == 0);
  note("kill", kill(getppid(), 0) == 0);
  note("trace", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0);
  note("stay", prctl(PR_SET_PDEATHSIG, 0) == 0);
  const struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
  note("more-files", setrlimit(RLIMIT_FSIZE, &more) == 0);
  note("memory", takes_memory());
  note("pages", opens("/proc/self/maps", O_RDONLY));
}

__attribute__((constructor)) static void early(void) { try_all("loading:"); }

static int nosy_init(const hawser_host* host, void** state) {
  void** pages = host->ctx; /* see bad_plugin.c */
  try_all("running:");
  note("request-page", mprotect(pages[0], 4096, PROT_READ | PROT_WRITE) == 0);
  host->log(host->ctx, HAWSER_LOG_WARNING, could);
  *state = NULL;
  return -1; /* it has seen enough */
}

static int nosy_select(void* state, hawser_decision* out) {
  (void)state;
  (void)out;
  return -1;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "nosy",
      .version = "1",
      .init = nosy_init,
      .select = nosy_select,
  };
  return &policy;
}
