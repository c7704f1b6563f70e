// SPDX-License-Identifier: Apache-2.0
#include "wire/endpoint.h"

#include <sys/un.h>

#include <charconv>
#include <optional>

namespace hawser::wire {
namespace {

constexpr size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;
constexpr size_t kMaxHost = 253;  // RFC 1035, and more than any numeric address needs.
constexpr size_t kMaxShown = 200;

/// The URI as it may appear in a message: bounded, and without bytes that upset a terminal.
std::string Shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kMaxShown)) shown += (c >= ' ' && c < 0x7f) ? c : '?';
  if (text.size() > kMaxShown) shown += "...";
  return shown;
}

Status Bad(std::string_view uri, std::string_view why) {
  return Status(Code::kInvalid, "address '" + Shown(uri) + "': " + std::string(why));
}

/// Decimal digits only: no sign, no blanks, no other base.
std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Status CheckPath(std::string_view uri, std::string_view path, size_t reserve) {
  if (path.empty()) return Bad(uri, "the path of the socket is missing");
  if (path.find('\0') != std::string_view::npos) return Bad(uri, "the path holds a zero byte");
  if (path.size() + reserve > kMaxUnixPath) {
    return Bad(uri, "the path of the socket takes " + std::to_string(path.size() + reserve) +
                        " bytes; the system allows " + std::to_string(kMaxUnixPath) + ", so use a shorter directory");
  }
  return {};
}

Result<Endpoint> ParseTcp(std::string_view uri, std::string_view rest) {
  std::string_view host;
  std::string_view port;
  if (!rest.empty() && rest.front() == '[') {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return Bad(uri, "the '[' of an IPv6 address is not closed");
    host = rest.substr(1, close - 1);
    const std::string_view after = rest.substr(close + 1);
    if (after.empty() || after.front() != ':') return Bad(uri, "expected ':port' after ']'");
    port = after.substr(1);
    if (host.find(':') == std::string_view::npos) return Bad(uri, "'[...]' must hold an IPv6 address");
  } else {
    const size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return Bad(uri, "expected tcp:host:port");
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
    if (host.find(':') != std::string_view::npos) {
      return Bad(uri, "write an IPv6 address in brackets, as in tcp:[::1]:9700");
    }
  }
  if (host.empty()) return Bad(uri, "the host is missing; to listen on every address write tcp:0.0.0.0:port");
  if (host.size() > kMaxHost) return Bad(uri, "the host name is longer than 253 characters");
  for (const char c : host) {
    if (c <= ' ' || c >= 0x7f || c == '[' || c == ']' || c == '/') {
      return Bad(uri, "the host name holds a character that no host name has");
    }
  }
  const std::optional<uint32_t> number = ParseNumber(port);
  if (!number || *number > 65535) return Bad(uri, "the port must be a number from 0 to 65535");
  Endpoint endpoint;
  endpoint.transport = Transport::kTcp;
  endpoint.host = host;
  endpoint.port = *number;
  return endpoint;
}

Result<Endpoint> ParseVsock(std::string_view uri, std::string_view rest) {
  Endpoint endpoint;
  endpoint.transport = Transport::kVsock;
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) {
    return Bad(uri, "expected vsock:cid:port, vsock::port (listen for any guest) or vsock:/path:port");
  }
  const std::string_view where = rest.substr(0, colon);
  const std::optional<uint32_t> port = ParseNumber(rest.substr(colon + 1));
  if (!port || *port == UINT32_MAX) return Bad(uri, "the port must be a number from 0 to 4294967294");
  endpoint.port = *port;
  if (where.empty()) {
    endpoint.cid = UINT32_MAX;
    return endpoint;
  }
  if (where.front() == '/') {
    const size_t suffix = 1 + std::to_string(*port).size();  // "_<port>"
    if (Status status = CheckPath(uri, where, suffix); !status.ok()) return status;
    endpoint.path = where;
    return endpoint;
  }
  const std::optional<uint32_t> cid = ParseNumber(where);
  if (!cid || *cid == UINT32_MAX) {
    return Bad(uri, "the CID must be a number (2 is the host), empty, or an absolute path");
  }
  endpoint.cid = *cid;
  return endpoint;
}

}  // namespace

std::string_view TransportName(Transport transport) {
  switch (transport) {
    case Transport::kShm:
      return "shm";
    case Transport::kUnix:
      return "unix";
    case Transport::kTcp:
      return "tcp";
    case Transport::kVsock:
      return "vsock";
  }
  return "unknown";
}

Result<Endpoint> Endpoint::Parse(std::string_view uri) {
  const size_t colon = uri.find(':');
  if (uri.empty()) return Bad(uri, "it is empty; write for example tcp:gpubox:9700 or shm:/run/hawser.sock");
  if (colon == std::string_view::npos) {
    return Bad(uri, "it names no transport; write shm:, unix:, tcp: or vsock: before it");
  }
  const std::string_view scheme = uri.substr(0, colon);
  const std::string_view rest = uri.substr(colon + 1);
  if (scheme == "tcp") return ParseTcp(uri, rest);
  if (scheme == "vsock") return ParseVsock(uri, rest);
  if (scheme != "shm" && scheme != "unix") {
    return Bad(uri, "unknown transport '" + Shown(scheme) + "'; known are shm, unix, tcp and vsock");
  }
  if (Status status = CheckPath(uri, rest, 0); !status.ok()) return status;
  Endpoint endpoint;
  endpoint.transport = scheme == "shm" ? Transport::kShm : Transport::kUnix;
  endpoint.path = rest;
  return endpoint;
}

std::string Endpoint::ToString() const {
  switch (transport) {
    case Transport::kShm:
      return "shm:" + path;
    case Transport::kUnix:
      return "unix:" + path;
    case Transport::kTcp: {
      const bool v6 = host.find(':') != std::string::npos;
      return "tcp:" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
    }
    case Transport::kVsock: {
      std::string where = path;
      if (path.empty() && cid != UINT32_MAX) where = std::to_string(cid);
      return "vsock:" + where + ":" + std::to_string(port);
    }
  }
  return {};
}

}  // namespace hawser::wire
