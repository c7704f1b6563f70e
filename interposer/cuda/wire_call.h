// SPDX-License-Identifier: Apache-2.0
// A question to the server and its answer.
#ifndef HAWSER_INTERPOSER_CUDA_WIRE_CALL_H_
#define HAWSER_INTERPOSER_CUDA_WIRE_CALL_H_

#include <cstddef>
#include <vector>

#include "interposer/cuda/client.h"

namespace hawser::cu {

/// Holds the reply's bytes, into which its views point.
template <typename Reply>
class Answer {
 public:
  /// Sends and waits. CUDA_SUCCESS: there is a reply, whose own status is to be looked at. A refusal may be shorter
  /// than the reply: then its status is the result.
  template <typename Opcode, typename Message>
  CUresult Get(guest::Session* session, Opcode opcode, const Message& message) {
    if (const int32_t error = session->Call(opcode, message, &payload_); error != 0) return FromWire(error);
    wire::Reader reader(payload_);
    if (reply_.Decode(reader)) return CUDA_SUCCESS;
    wire::Reader head(payload_);
    const auto status = head.Get<int32_t>();
    return head.failed() || status == 0 ? CUDA_ERROR_UNKNOWN : FromWire(status);
  }
  /// The same, with the reply's status as the result.
  template <typename Message>
  CUresult Ask(guest::Session* session, const Message& message) {
    const CUresult error = Get(session, Message::kOpcode, message);
    return error != CUDA_SUCCESS ? error : FromWire(reply_.status);
  }

  const Reply* operator->() const { return &reply_; }
  const Reply& operator*() const { return reply_; }

 private:
  std::vector<std::byte> payload_;
  Reply reply_;
};

/// Sends and waits for a reply that is nothing but a status.
template <typename Message>
CUresult AskStatus(guest::Session* session, const Message& message) {
  Answer<cuda::Status> answer;
  return answer.Ask(session, message);
}

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_WIRE_CALL_H_
