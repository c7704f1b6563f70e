// SPDX-License-Identifier: Apache-2.0
// The control plane's stubs, on a connection of their own to a test's hawserd.
#ifndef HAWSER_TESTS_INTEGRATION_ADMIN_CLIENT_H_
#define HAWSER_TESTS_INTEGRATION_ADMIN_CLIENT_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "hawser/admin.grpc.pb.h"

namespace hawser::server {

namespace pb = ::hawser::admin::v1;

class AdminClient {
 public:
  explicit AdminClient(const std::string& target)
      : channel_(grpc::CreateChannel(target, grpc::InsecureChannelCredentials())),
        stub_(pb::Admin::NewStub(channel_)) {}

  /// Calls stub->*method; the reply, with the status in *status (which must be OK if it is null).
  template <typename Request, typename Reply>
  Reply Call(grpc::Status (pb::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
             const std::type_identity_t<Request>& request, grpc::Status* status = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    Reply reply;
    const grpc::Status result = (stub_.get()->*method)(&context, request, &reply);
    if (status != nullptr) {
      *status = result;
    } else if (!result.ok()) {
      ADD_FAILURE() << result.error_code() << ": " << result.error_message();
    }
    return reply;
  }

  static std::chrono::system_clock::time_point Deadline() {
    return std::chrono::system_clock::now() + std::chrono::seconds(30);
  }

  pb::Admin::Stub& stub() { return *stub_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::Admin::Stub> stub_;
};

}  // namespace hawser::server

#endif  // HAWSER_TESTS_INTEGRATION_ADMIN_CLIENT_H_
