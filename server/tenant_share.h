// SPDX-License-Identifier: Apache-2.0
// A tenant's part of the devices' time: what the operator may say about it.
#ifndef HAWSER_SERVER_TENANT_SHARE_H_
#define HAWSER_SERVER_TENANT_SHARE_H_

#include <cstdint>
#include <string>

#include "wire/status.h"

namespace hawser::server {

/// The same fields and meanings as hawser_tenant_cfg in include/hawser/policy.h.
struct TenantShare {
  static constexpr uint32_t kMaxWeight = 10000;
  static constexpr int32_t kMaxPriority = 1000;  ///< Also the least, negated.
  static constexpr uint32_t kWhole = 1'000'000;  ///< ppm
  static constexpr uint64_t kLongestSloNs = 3'600'000'000'000;

  uint32_t weight = 100;
  int32_t priority = 0;
  uint32_t min_share_ppm = 0;  ///< Reserved; 0: none.
  uint32_t max_share_ppm = 0;  ///< 0: no limit.
  uint64_t slo_ns = 0;         ///< Wanted time from a request's arrival to its end; 0: none.

  bool operator==(const TenantShare&) const = default;

  /// kInvalid, naming the field and what it may be.
  wire::Status Check() const {
    const auto wrong = [](const std::string& text) { return wire::Status(wire::Code::kInvalid, text); };
    if (weight < 1 || weight > kMaxWeight) {
      return wrong("weight must be between 1 and " + std::to_string(kMaxWeight) + ", and is " + std::to_string(weight));
    }
    if (priority < -kMaxPriority || priority > kMaxPriority) {
      return wrong("priority must be between -" + std::to_string(kMaxPriority) + " and " +
                   std::to_string(kMaxPriority) + ", and is " + std::to_string(priority));
    }
    if (min_share_ppm > kWhole || max_share_ppm > kWhole) {
      return wrong("a share cannot be more than the whole device (1000000 ppm)");
    }
    if (max_share_ppm != 0 && min_share_ppm > max_share_ppm) {
      return wrong("the reserved share (" + std::to_string(min_share_ppm) + " ppm) is more than the limit (" +
                   std::to_string(max_share_ppm) + " ppm)");
    }
    if (slo_ns > kLongestSloNs) return wrong("the wanted latency (slo) can be an hour at most");
    return {};
  }
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_TENANT_SHARE_H_
