// SPDX-License-Identifier: Apache-2.0
// What the physical devices of a server are called, so that everybody who computes on one of them asks the same
// scheduler: workers of every interface, however their drivers number the devices that they see.
//
//   pci:0000:65:00   by where it is on the bus, as CUDA and OpenCL both say
//   nvidia:1         the second of NVIDIA's, of a driver that does not say
//   cpu              everything that computes on the server's processors: those are shared, whatever they are called
//   cpu:1            the second of these, where HAWSER_CPU_DEVICES_APART=1 (for tests) says that they do not share
//   opencl:0:1       the second device of the first platform, when nothing else is known
#ifndef HAWSER_SERVER_DEVICE_KEY_H_
#define HAWSER_SERVER_DEVICE_KEY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hawser::server {

/// Devices of a server with a scheduler of their own, and of a session with a gate of their own. More of them share.
inline constexpr size_t kMostDevices = 16;
/// Bytes of a key, at most.
inline constexpr size_t kLongestDeviceKey = 31;

std::string PciDeviceKey(uint32_t domain, uint32_t bus, uint32_t slot);
std::string NvidiaDeviceKey(size_t ordinal);
/// The `index`-th device that computes on the processors. Looks at the environment.
std::string CpuDeviceKey(size_t index);
std::string OpenClDeviceKey(size_t platform, size_t index);

/// A key that came from a worker, which may say anything: of a bounded length, and nothing in it that would not be a
/// key's.
std::string CleanDeviceKey(std::string_view key);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_DEVICE_KEY_H_
