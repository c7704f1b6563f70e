// SPDX-License-Identifier: Apache-2.0
// Where a server's control plane is.
#ifndef HAWSER_TOOLS_ADMIN_ADDRESS_H_
#define HAWSER_TOOLS_ADMIN_ADDRESS_H_

#include <string>

#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::tools {

/// As --admin says, else $HAWSER_ADMIN, else beside the socket that --server, $HAWSER_SERVER or the default names.
/// kInvalid with what to type when there is no telling, as for servers on other machines.
wire::Result<wire::Endpoint> AdminEndpoint(const std::string& admin, const std::string& server);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_ADDRESS_H_
