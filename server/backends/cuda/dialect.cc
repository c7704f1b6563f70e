// SPDX-License-Identifier: Apache-2.0
#include "server/worker/dialect.h"

#include <cuda.h>

#include "proto/cuda/messages.h"
#include "proto/cuda/opcodes.h"
#include "server/backends/cuda/create.h"
#include "server/session_stats.h"

namespace hawser::server::cuda_backend {
namespace {

class Cuda final : public Dialect {
 public:
  wire::Api api() const override { return wire::Api::kCuda; }
  const char* OpcodeName(uint16_t opcode) const override { return cuda::OpcodeName(opcode); }
  bool HasReply(uint16_t opcode) const override { return cuda::HasReply(static_cast<cuda::Opcode>(opcode)); }

  void SendStatus(Replies* replies, const wire::FrameHeader& command, int32_t status) const override {
    cuda::Status reply;
    reply.status = status;
    replies->Send(command.opcode, command.seq, reply, true);
  }
  /// `queue` is the context.
  void SendFailure(Replies* replies, const wire::FrameHeader& command, int32_t status, wire::Id object, wire::Id queue,
                   std::string_view text) const override {
    cuda::CommandFailed notice;
    notice.seq = command.seq;
    notice.opcode = command.opcode;
    notice.status = status;
    notice.object = object;
    notice.context = queue;
    notice.text = Clip(text);
    replies->Send(cuda::Opcode::kCommandFailed, 0, notice, true);
  }
  void SendLost(Replies* replies, std::string_view reason, uint32_t cause) const override {
    cuda::SessionLost notice = Lost(reason);
    if (cause == SessionStatsPage::kLaunchTimeout) notice.cause = CUDA_ERROR_LAUNCH_TIMEOUT;
    replies->Send(cuda::Opcode::kSessionLost, 0, notice, true);
  }
  void SendOutput(Replies* replies, wire::Bytes text, bool flush) const override {
    cuda::KernelOutput notice;
    notice.text = text;
    replies->Send(cuda::Opcode::kKernelOutput, 0, notice, flush);
  }
  size_t EncodeLost(std::string_view reason, std::span<std::byte> frame) const override {
    return EncodeFrame(Lost(reason), cuda::Opcode::kSessionLost, frame);
  }

 private:
  static cuda::SessionLost Lost(std::string_view reason) {
    cuda::SessionLost notice;
    notice.reason = Clip(reason);
    return notice;
  }
};

}  // namespace

const Dialect& CudaDialect() {
  static const Cuda dialect;
  return dialect;
}

}  // namespace hawser::server::cuda_backend
