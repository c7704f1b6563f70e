// SPDX-License-Identifier: Apache-2.0
// The scheduler as a plugin sees it, in hawser-policy-host: a hawser_host that is played from the shared pages, and the
// loop that turns requests into callbacks.
//
// Everything that a plugin may ask about is in the request; only settings and lines for the log are asked for while a
// callback runs. The plugin's handles and private memory live here. The plugin may write all over this process, so
// nothing here protects anything: that is done on the other side.
//
// Threading: one thread.
#ifndef HAWSER_SCHEDULER_ISOLATED_PLUGIN_SIDE_H_
#define HAWSER_SCHEDULER_ISOLATED_PLUGIN_SIDE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/core/policy_library.h"
#include "scheduler/core/tenant.h"
#include "scheduler/isolated/page.h"
#include "wire/status.h"

namespace hawser::scheduler {

class PluginSide {
 public:
  /// `loaded` is called between the loading of the plugin and its first use.
  PluginSide(const RequestPage& in, ReplyPage& out, std::string policy, std::function<wire::Status()> loaded);

  /// Waits for a request and answers it. Returns what it was; nothing: the scheduler does not keep to its turns.
  std::optional<Ask> Step();

 private:
  struct Local : hawser_tenant {
    uint64_t id = 0;
    std::vector<std::byte> memory;
  };

  static uint64_t HostNow(void* ctx);
  static void HostView(void* ctx, const hawser_tenant* tenant, hawser_tenant_view* view);
  static void* HostPrivate(void* ctx, hawser_tenant* tenant);
  static hawser_tenant* HostNextTenant(void* ctx, hawser_tenant* previous);
  static hawser_tenant* HostNextRunnable(void* ctx, hawser_tenant* previous);
  static void HostRevoke(void* ctx, hawser_tenant* tenant);
  static void HostTimer(void* ctx, uint64_t at_ns);
  static const char* HostSetting(void* ctx, const char* key);
  static void HostLog(void* ctx, int level, const char* text);

  bool Wait();
  void Post();
  void Say(const std::string& text);
  /// Brings tenants_ to what the request's table says.
  void ReadTenants();
  hawser_tenant* Next(const hawser_tenant* previous, bool with_work_only) const;
  hawser_tenant* At(Place place) const;
  Place PlaceOf(const hawser_tenant* tenant) const;  ///< kStranger for what is none; 0 for null.
  void Load();
  void Enter();
  void Call(Ask ask);

  const RequestPage& in_;
  ReplyPage& out_;
  const std::string name_;
  const std::function<wire::Status()> loaded_;
  uint32_t turn_ = 0;
  hawser_host host_{};
  std::optional<PolicyLibrary> library_;
  hawser_policy policy_{};
  void* state_ = nullptr;
  std::vector<std::unique_ptr<Local>> tenants_;  ///< In the table's order.
  std::unordered_map<const hawser_tenant*, Place> places_;
  std::map<std::string, std::optional<std::string>> settings_;  ///< That were asked for.
  Request request_;                                             ///< That is being answered.
  Reply reply_;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_PLUGIN_SIDE_H_
