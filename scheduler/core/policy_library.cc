// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/policy_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

using hawser::wire::Code;
using hawser::wire::Result;
using hawser::wire::Status;

// Each built-in policy is compiled with its entry function renamed.
extern "C" {
const hawser_policy* hawser_policy_entry_fair(const hawser_host*);
const hawser_policy* hawser_policy_entry_fifo(const hawser_host*);
const hawser_policy* hawser_policy_entry_rr(const hawser_host*);
const hawser_policy* hawser_policy_entry_credit(const hawser_host*);
const hawser_policy* hawser_policy_entry_band(const hawser_host*);
const hawser_policy* hawser_policy_entry_split(const hawser_host*);
const hawser_policy* hawser_policy_entry_drr(const hawser_host*);
const hawser_policy* hawser_policy_entry_prio(const hawser_host*);
const hawser_policy* hawser_policy_entry_slo(const hawser_host*);
}

namespace hawser::scheduler {
namespace {

constexpr const char* kSymbol = "hawser_policy_entry_v1";

/// Version 1.0 ended here; nothing shorter can be.
constexpr size_t kFirstSize = offsetof(hawser_policy, dump) + sizeof(hawser_policy::dump);

}  // namespace

const std::vector<BuiltinPolicy>& BuiltinPolicies() {
  static const std::vector<BuiltinPolicy> policies = {
      {"fair", "start-time fair queueing on device time, with anticipation (default)", hawser_policy_entry_fair},
      {"fifo", "in order of arrival, kernels whole; not fair", hawser_policy_entry_fifo},
      {"rr", "one slice of device time each, in turn", hawser_policy_entry_rr},
      {"credit", "GPUvm's CREDIT: who has most credit", hawser_policy_entry_credit},
      {"band", "GPUvm's BAND: credit, reservations, and a wait for who is about to come", hawser_policy_entry_band},
      {"split", "thread groups in rounds; who used twice the least sits one out", hawser_policy_entry_split},
      {"drr", "deficit round robin", hawser_policy_entry_drr},
      {"prio", "strict priorities with short pieces below the top, and aging", hawser_policy_entry_prio},
      {"slo", "earliest deadline within reservations, fair for the rest", hawser_policy_entry_slo},
  };
  return policies;
}

PolicyLibrary PolicyLibrary::Of(std::string name, PolicyEntry entry) {
  PolicyLibrary library;
  library.name_ = std::move(name);
  library.entry_ = entry;
  return library;
}

PolicyLibrary PolicyLibrary::Elsewhere(std::string name, std::shared_ptr<PolicyPlace> place) {
  PolicyLibrary library;
  library.name_ = std::move(name);
  library.place_ = std::move(place);
  return library;
}

Result<BegunPolicy> PolicyLibrary::Begin(const hawser_host& host) const {
  BegunPolicy begun;
  const hawser_policy* offered = nullptr;
  if (place_ != nullptr) {
    auto run = place_->Begin(host);
    if (!run.ok()) return run.status();
    begun.run = std::move(*run);
    begun.state = begun.run->state();
    offered = &begun.run->offered();
  } else {
    offered = entry_(&host);
  }
  const auto read = ReadPolicy(offered, name_);
  if (!read.ok()) return read.status();
  begun.policy = read.value();
  return begun;
}

PolicyLibrary PolicyLibrary::Fair() { return Of("fair", hawser_policy_entry_fair); }

bool PolicyLibrary::IsPath(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".so");
}

Result<PolicyLibrary> PolicyLibrary::Find(const std::string& name_or_path) {
  if (IsPath(name_or_path)) return Open(name_or_path);
  std::string known;
  for (const BuiltinPolicy& policy : BuiltinPolicies()) {
    if (policy.name == name_or_path) return Of(name_or_path, policy.entry);
    known += (known.empty() ? "" : ", ") + std::string(policy.name);
  }
  return Status(Code::kInvalid, "there is no policy '" + name_or_path + "'; choose among " + known +
                                    ", or give the path of a plugin (.so)");
}

Result<PolicyLibrary> PolicyLibrary::Open(const std::string& path) {
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = ::dlerror();
    return Status(Code::kInvalid,
                  "policy " + path + " cannot be loaded: " + (error != nullptr ? error : "unknown error"));
  }
  PolicyLibrary library;
  library.name_ = path;
  library.handle_ = std::shared_ptr<void>(handle, [](void* h) { ::dlclose(h); });
  library.entry_ = reinterpret_cast<PolicyEntry>(::dlsym(handle, kSymbol));
  if (library.entry_ == nullptr) {
    return Status(Code::kInvalid, "policy " + path + " does not export " + kSymbol + "(); is it a Hawser policy?");
  }
  return library;
}

Result<hawser_policy> ReadPolicy(const hawser_policy* offered, const std::string& from) {
  const std::string who = "policy " + from;
  if (offered == nullptr) return Status(Code::kRefused, who + " refused to run here (it returned no description)");
  if (offered->size < offsetof(hawser_policy, name)) {
    return Status(Code::kInvalid, who + ": its struct says it has " + std::to_string(offered->size) +
                                      " bytes; set .size to sizeof(hawser_policy)");
  }
  if (offered->abi_major != HAWSER_POLICY_ABI_MAJOR) {
    return Status(Code::kRefused, who + " was built for policy interface " + std::to_string(offered->abi_major) + "." +
                                      std::to_string(offered->abi_minor) + "; this host has " +
                                      std::to_string(HAWSER_POLICY_ABI_MAJOR) + "." +
                                      std::to_string(HAWSER_POLICY_ABI_MINOR) + ": compile it again");
  }
  if (offered->size < kFirstSize || offered->size > 65536) {
    return Status(Code::kInvalid, who + ": its struct says it has " + std::to_string(offered->size) +
                                      " bytes, version 1.0 had " + std::to_string(kFirstSize) +
                                      "; set .size to sizeof(hawser_policy)");
  }
  hawser_policy policy{};
  std::memcpy(&policy, offered, std::min<size_t>(offered->size, sizeof(policy)));
  policy.size = sizeof(policy);
  if (policy.flags != 0 || policy.reserved != 0) {
    return Status(Code::kInvalid, who + ": flags and reserved fields must be zero");
  }
  if (policy.name == nullptr || policy.name[0] == '\0') return Status(Code::kInvalid, who + " has no name");
  if (policy.select == nullptr) return Status(Code::kInvalid, who + " has no select()");
  if (policy.priv_size > 65536) {
    return Status(Code::kInvalid, who + " wants " + std::to_string(policy.priv_size) +
                                      " bytes for each tenant; at most 65536 are given");
  }
  return policy;
}

}  // namespace hawser::scheduler
