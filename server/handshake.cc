// SPDX-License-Identifier: Apache-2.0
#include "server/handshake.h"

#include <string_view>

#include "wire/codec.h"
#include "wire/frame.h"

namespace hawser::server {

std::vector<std::byte> WelcomeFrame(session::Welcome welcome) {
  welcome.magic = kMagic;
  welcome.version = session::kProtocolVersion;
  welcome.description = session::kDescriptionHash;
  wire::FrameHeader header;
  header.size = static_cast<uint32_t>(welcome.SizeOf());
  header.opcode = kWelcomeOpcode;
  std::vector<std::byte> frame(sizeof(header) + header.size);
  wire::Writer writer(frame.data(), frame.size());
  writer.Put(header);
  welcome.Encode(writer);
  return frame;
}

std::vector<std::byte> RefusalFrame(const std::string& why) {
  session::Welcome welcome;
  welcome.text = std::string_view(why).substr(0, 4096);
  return WelcomeFrame(welcome);
}

}  // namespace hawser::server
