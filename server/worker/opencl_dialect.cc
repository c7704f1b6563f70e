// SPDX-License-Identifier: Apache-2.0
#include "proto/opencl/messages.h"
#include "proto/opencl/opcodes.h"
#include "server/worker/dialect.h"

namespace hawser::server {
namespace {

class OpenCl final : public Dialect {
 public:
  wire::Api api() const override { return wire::Api::kOpenCl; }
  const char* OpcodeName(uint16_t opcode) const override { return opencl::OpcodeName(opcode); }
  bool HasReply(uint16_t opcode) const override { return opencl::HasReply(static_cast<opencl::Opcode>(opcode)); }

  void SendStatus(Replies* replies, const wire::FrameHeader& command, int32_t status) const override {
    opencl::Status reply;
    reply.status = status;
    replies->Send(command.opcode, command.seq, reply, true);
  }
  void SendFailure(Replies* replies, const wire::FrameHeader& command, int32_t status, wire::Id object, wire::Id queue,
                   std::string_view text) const override {
    opencl::CommandFailed notice;
    notice.seq = command.seq;
    notice.opcode = command.opcode;
    notice.status = status;
    notice.object = object;
    notice.queue = queue;
    notice.text = Clip(text);
    replies->Notify(notice, false);
  }
  void SendLost(Replies* replies, std::string_view reason, uint32_t) const override {
    replies->Notify(Lost(reason), true);
  }
  void SendOutput(Replies* replies, wire::Bytes text, bool flush) const override {
    opencl::KernelOutput notice;
    notice.text = text;
    replies->Notify(notice, flush);
  }
  size_t EncodeLost(std::string_view reason, std::span<std::byte> frame) const override {
    return EncodeFrame(Lost(reason), opencl::Opcode::kSessionLost, frame);
  }

 private:
  static opencl::SessionLost Lost(std::string_view reason) {
    opencl::SessionLost notice;
    notice.reason = Clip(reason);
    return notice;
  }
};

}  // namespace

const Dialect& OpenClDialect() {
  static const OpenCl dialect;
  return dialect;
}

}  // namespace hawser::server
