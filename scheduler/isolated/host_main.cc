// SPDX-License-Identifier: Apache-2.0
// hawser-policy-host: runs one scheduling policy that is not trusted. Started by hawserd and by `hawser`, never by
// people: hawser-policy-host POLICY PARENT ADDRESS_SPACE filter|no-filter, with the shared pages on descriptors 3, 4.
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/isolated/page.h"
#include "scheduler/isolated/plugin_side.h"
#include "scheduler/isolated/sandbox.h"

namespace {

using namespace hawser::scheduler;  // NOLINT: a program of one file.
using hawser::wire::Status;

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

int Complain(const std::string& text) {
  std::fprintf(stderr, "hawser-policy-host: %s\n", text.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const auto parent = argc == 5 ? Number(argv[2]) : std::nullopt;
  const auto address_space = argc == 5 ? Number(argv[3]) : std::nullopt;
  if (!parent || !address_space) return Complain("it is started by hawserd, not by people");
  const std::string policy = argv[1];
  const bool filter = std::strcmp(argv[4], "filter") == 0;
  if (const Status s = DieWithScheduler(static_cast<pid_t>(*parent)); !s.ok()) return Complain(s.text());
  void* in = ::mmap(nullptr, sizeof(RequestPage), PROT_READ, MAP_SHARED, kRequestFd, 0);
  void* out = ::mmap(nullptr, sizeof(ReplyPage), PROT_READ | PROT_WRITE, MAP_SHARED, kReplyFd, 0);
  if (in == MAP_FAILED || out == MAP_FAILED) return Complain("cannot map the pages that it shares with its parent");
  const auto* request = static_cast<const RequestPage*>(in);
  if (request->version != kPageVersion) return Complain("it is of another build than the program that started it");
  if (::close_range(kRequestFd, ~0u, 0) != 0) {
    for (int fd = kRequestFd; fd < 1024; ++fd) ::close(fd);
  }
  if (const Status s = LimitPolicyHost(*address_space); !s.ok()) return Complain(s.text());
  (void)HideFiles(policy);
  if (filter) {
    if (const Status s = AllowLoadingOnly(); !s.ok()) return Complain(s.text());
  }
  PluginSide side(*request, *static_cast<ReplyPage*>(out), policy,
                  [filter] { return filter ? AllowComputingOnly() : Status(); });
  while (side.Step()) continue;
  // The scheduler broke off. Nothing here is worth tidying up.
  ::_exit(3);
}
