// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/server/fake_backend.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "server/worker/launch_gate.h"

namespace hawser::server {

int32_t FakeCalls::Run(const opencl::Call& call, const opencl::Nothing&) {
  opencl::Inventory inventory;
  state_->services.replies->Send(opencl::Opcode::kGetInventory, call.seq, inventory, true);
  return 0;
}

int32_t FakeCalls::Run(const opencl::Call&, const opencl::CreateBuffer& message) {
  std::vector<std::byte> contents(message.size);
  if (message.transfer != 0) {
    const int32_t status = state_->services.bulk_in->Receive(message.transfer, message.size, contents.data());
    if (status != 0) {
      state_->failure.object = message.buffer;
      state_->failure.text = "initial contents did not come";
      return status;
    }
  }
  std::lock_guard lock(state_->mutex);
  state_->buffers[message.buffer.raw()] = std::move(contents);
  return 0;
}

int32_t FakeCalls::Run(const opencl::Call&, const opencl::WriteBuffer& message) {
  std::byte* target = nullptr;
  {
    std::lock_guard lock(state_->mutex);
    std::vector<std::byte>& buffer = state_->buffers[message.buffer.raw()];
    if (message.size > (1u << 26)) return -61;
    buffer.resize(message.size);
    target = buffer.data();
    if (message.transfer == 0) {
      std::memcpy(target, message.data.data(), std::min<size_t>(message.size, message.data.size()));
      return 0;
    }
  }
  const wire::Id event = message.event;
  Replies* const replies = state_->services.replies;
  const bool expected =
      state_->services.bulk_in->Expect(message.transfer, message.size, target, [replies, event](int32_t status) {
        opencl::EventStatus notice;
        notice.event = event;
        notice.status = status;
        replies->Notify(notice, true);
      });
  return expected ? 0 : -30;
}

int32_t FakeCalls::Run(const opencl::Call& call, const opencl::ReadBuffer& message) {
  std::lock_guard lock(state_->mutex);
  const auto at = state_->buffers.find(message.buffer.raw());
  opencl::ReadReply reply;
  if (at == state_->buffers.end()) {
    reply.status = -38;  // CL_INVALID_MEM_OBJECT
    if (message.transfer != 0) {
      state_->services.bulk_out->Abort(message.transfer, reply.status);
    } else {
      state_->services.replies->Send(opencl::Opcode::kEnqueueReadBuffer, call.seq, reply, true);
    }
    return 0;
  }
  if (message.transfer != 0) {
    state_->services.bulk_out->Send(message.transfer, at->second, [] {});
  } else {
    reply.data = at->second;
    state_->services.replies->Send(opencl::Opcode::kEnqueueReadBuffer, call.seq, reply, true);
  }
  return 0;
}

int32_t FakeCalls::Run(const opencl::Call&, const opencl::CreateContext& message) {
  if (!message.devices.empty()) return 0;
  state_->failure.object = message.context;
  state_->failure.text = "a context without devices";
  return -30;
}

int32_t FakeCalls::Run(const opencl::Call& call, const opencl::Finish&) {
  state_->services.drain_kernel_output();
  state_->services.replies->Send(opencl::Opcode::kFinish, call.seq, opencl::Status{}, true);
  return 0;
}

int32_t FakeCalls::Run(const opencl::Call&, const opencl::Flush& message) {
  switch (static_cast<Prank>(message.queue.index())) {
    case Prank::kCrash: {
      volatile uintptr_t nowhere = 16;
      *reinterpret_cast<volatile int*>(nowhere) = 1;
      break;
    }
    case Prank::kAbort:
      std::abort();
    case Prank::kHang:
      state_->services.log("info", "hanging from now on");
      for (;;) ::pause();
    case Prank::kPrint: {
      state_->services.enable_kernel_output();
      (void)!::write(1, "printed\n", 8);
      break;
    }
    case Prank::kOpenNetwork: {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      const int error = fd < 0 ? errno : 0;
      if (fd >= 0) ::close(fd);
      return error;
    }
    case Prank::kLog:
      state_->services.log("warning", "a line for the log");
      break;
    case Prank::kUseDevice: {
      LaunchGates* const gates = state_->services.launch_gates;
      LaunchGate* const gate = gates != nullptr ? &gates->Of("cpu") : nullptr;
      if (gate != nullptr && gate->Enter(1000)) gate->Leave(1000, 1000);
      break;
    }
    case Prank::kFlood: {
      const std::string text(60000, 'x');
      opencl::KernelOutput notice;
      notice.text = wire::AsBytes(text);
      for (int i = 0; i < 5000; ++i) state_->services.replies->Notify(notice, true);
      break;
    }
  }
  return 0;
}

}  // namespace hawser::server
