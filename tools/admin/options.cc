// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <utility>

#include "tools/admin/address.h"

namespace hawser::tools {

using wire::Result;
using wire::Status;

void AdminOptions::Register(CLI::App* parser, bool json) {
  parser
      ->add_option("--admin", admin, "The control plane's URI (default: $HAWSER_ADMIN, else beside --server's socket)")
      ->type_name("URI");
  parser->add_option("--server", server, "The server's URI (default: $HAWSER_SERVER, else where hawserd listens)")
      ->type_name("URI");
  if (json) parser->add_option("--json", json_file, "Write JSON to this file; - is stdout")->type_name("FILE");
}

Result<std::shared_ptr<AdminClient>> AdminOptions::Connect(std::string* where) const {
  const Result<wire::Endpoint> endpoint = AdminEndpoint(admin, server);
  if (!endpoint.ok()) return endpoint.status();
  if (where != nullptr) *where = endpoint.value().ToString();
  Result<std::unique_ptr<AdminClient>> client = AdminClient::Connect(endpoint.value());
  if (!client.ok()) return client.status();
  return std::shared_ptr<AdminClient>(std::move(*client));
}

Status AdminOptions::WriteJson(const nlohmann::ordered_json& json) const {
  if (json_file == "-") {
    std::cout << json.dump(2) << std::endl;
    return {};
  }
  const std::string temporary = json_file + ".part-" + std::to_string(::getpid());
  std::ofstream file(temporary, std::ios::trunc);
  file << json.dump(2) << "\n";
  file.close();
  if (file && ::rename(temporary.c_str(), json_file.c_str()) == 0) return {};
  Status status = Status::FromErrno("writing " + json_file);
  ::unlink(temporary.c_str());
  return status;
}

}  // namespace hawser::tools
