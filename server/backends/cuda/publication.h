// SPDX-License-Identifier: Apache-2.0
// Memory or an event that the guest has shared: holds its token, and withdraws it when it ends.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_PUBLICATION_H_
#define HAWSER_SERVER_BACKENDS_CUDA_PUBLICATION_H_

#include <optional>
#include <span>

#include "server/worker/export_client.h"

namespace hawser::server::cuda_backend {

/// Threading: one thread publishes; the last owner, whichever its thread, withdraws.
class Publication {
 public:
  /// `client` is borrowed.
  explicit Publication(ExportClient* client) : client_(client) {}
  ~Publication() {
    if (token_) client_->Withdraw(*token_);
  }
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  const std::optional<ExportToken>& token() const { return token_; }
  bool Publish(ExportKind kind, const ExportedThing& thing, std::span<const wire::Fd> files = {}) {
    token_ = client_->Publish(kind, thing, files);
    return token_.has_value();
  }

 private:
  ExportClient* const client_;
  std::optional<ExportToken> token_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_PUBLICATION_H_
