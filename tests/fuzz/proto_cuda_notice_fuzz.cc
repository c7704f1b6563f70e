// SPDX-License-Identifier: Apache-2.0
// What a guest does with a frame that answers no call: the input is a header and a payload.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "proto/cuda/notices.h"
#include "tests/fuzz/proto_touch.h"

namespace {

using namespace hawser::cuda;  // NOLINT: the notices' names, all of them.

class Handler final : public NoticeHandler {
 public:
  explicit Handler(hawser::wire::Bytes payload) : payload_(payload) {}
  void OnCompleted(const Completed& notice) override { Look(notice); }
  void OnCommandFailed(const CommandFailed& notice) override { Look(notice); }
  void OnRunHostFunction(const RunHostFunction& notice) override { Look(notice); }
  void OnKernelOutput(const KernelOutput& notice) override { Look(notice); }
  void OnContextFault(const ContextFault& notice) override { Look(notice); }
  void OnSessionLost(const SessionLost& notice) override { Look(notice); }
  void OnCrowded(const Crowded& notice) override { Look(notice); }
  int calls() const { return calls_; }

 private:
  template <typename Notice>
  void Look(const Notice& notice) {
    ++calls_;
    hawser::fuzz::MustEncodeTo(notice, payload_);
    hawser::fuzz::TouchAll(notice);
  }

  hawser::wire::Bytes payload_;
  int calls_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::wire::FrameHeader header;
  if (size < sizeof(header)) return 0;
  std::memcpy(&header, data, sizeof(header));
  const hawser::wire::Bytes payload = hawser::wire::AsBytes(data + sizeof(header), size - sizeof(header));
  Handler handler(payload);
  if (DispatchNotice(header, payload, handler) != (handler.calls() == 1)) std::abort();
  return 0;
}
