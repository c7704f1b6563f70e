// SPDX-License-Identifier: Apache-2.0
// What becomes of a tenant's settings when an operator changes some of them.
#ifndef HAWSER_SERVER_ADMIN_SETTINGS_H_
#define HAWSER_SERVER_ADMIN_SETTINGS_H_

#include "server/admin/state.h"
#include "wire/status.h"

namespace hawser::server::admin {

/// kInvalid, and *settings untouched, when the outcome would not be legal. TenantChange::reset is the caller's.
wire::Status Apply(const TenantChange& change, TenantSettings* settings);

}  // namespace hawser::server::admin

#endif  // HAWSER_SERVER_ADMIN_SETTINGS_H_
