// SPDX-License-Identifier: Apache-2.0
// The options that all commands for operators have.
#ifndef HAWSER_TOOLS_ADMIN_OPTIONS_H_
#define HAWSER_TOOLS_ADMIN_OPTIONS_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/admin/client.h"
#include "wire/status.h"

namespace CLI {
class App;
}

namespace hawser::tools {

struct AdminOptions {
  std::string admin;
  std::string server;
  std::string json_file;  ///< "-": stdout; empty: text.

  /// --admin and --server; --json too if `json`.
  void Register(CLI::App* parser, bool json);
  /// The control plane that they name. *where, if not null, becomes its URI.
  wire::Result<std::shared_ptr<AdminClient>> Connect(std::string* where = nullptr) const;
  /// Writes where --json says: a file that appears whole, or stdout.
  wire::Status WriteJson(const nlohmann::ordered_json& json) const;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_OPTIONS_H_
