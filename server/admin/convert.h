// SPDX-License-Identifier: Apache-2.0
// Between hawserd's plain values (state.h) and the messages of the control plane (proto/hawser/admin.proto).
#ifndef HAWSER_SERVER_ADMIN_CONVERT_H_
#define HAWSER_SERVER_ADMIN_CONVERT_H_

#include <string>
#include <string_view>

#include "hawser/admin.pb.h"
#include "server/admin/state.h"
#include "wire/status.h"

namespace hawser::server::admin {

namespace pb = ::hawser::admin::v1;

/// Valid UTF-8 without control characters, as Protobuf and terminals want it: other bytes become '?'.
std::string CleanText(std::string_view text);

void ToMessage(const ServerState& state, pb::ServerStatus* message);
void ToMessage(const PolicyState& state, pb::Policy* message);
void ToMessage(const TenantState& state, pb::Tenant* message);
void ToMessage(const SessionState& state, pb::Session* message);
void ToMessage(const Snapshot& state, pb::Snapshot* message);
void ToMessage(const TraceBatch& batch, pb::TraceBatch* message);

/// kInvalid when the request changes nothing, or a field cannot be right whatever the tenant has now.
wire::Result<TenantChange> FromMessage(const pb::SetTenantRequest& message);

}  // namespace hawser::server::admin

#endif  // HAWSER_SERVER_ADMIN_CONVERT_H_
