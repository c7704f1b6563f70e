// SPDX-License-Identifier: Apache-2.0
// The platforms and devices of the server's ICD loader, and what a guest is told about them.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_INVENTORY_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_INVENTORY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/opencl/dispatch.h"
#include "proto/opencl/messages.h"
#include "server/backends/opencl/handle.h"
#include "server/worker/services.h"
#include "wire/id.h"
#include "wire/object_table.h"
#include "wire/status.h"

namespace hawser::server::ocl {

/// Answers to the questions of a table of parameters, as the driver gave them.
class InfoValues {
 public:
  InfoValues() = default;
  // A copy's views would be of the original, which a vector that grows ends: it would copy, since a deque's move may
  // throw.
  InfoValues(InfoValues&&) = default;
  InfoValues& operator=(InfoValues&&) = default;
  InfoValues(const InfoValues&) = delete;
  InfoValues& operator=(const InfoValues&) = delete;

  static InfoValues OfPlatform(cl_platform_id platform);
  static InfoValues OfDevice(cl_device_id device);

  wire::ListView<opencl::InfoValue> view() const { return wire::ListView<opencl::InfoValue>(values_); }

  /// query(param, size, value, size_ret) as the driver's functions.
  template <typename Query>
  void Ask(uint32_t param, Query&& query);

 private:
  std::deque<std::vector<std::byte>> bytes_;  ///< A deque: the views in values_ stay valid.
  std::vector<opencl::InfoValue> values_;
};

struct Device {
  wire::Id id;
  wire::Id parent;  ///< Null for a root device.
  cl_device_id device = nullptr;
  Handle<cl_device_id> owned;  ///< Sub-devices only.
  bool in_context = false;     ///< Sub-devices: a context was made of it.
  cl_platform_id platform = nullptr;
  uint32_t version = 0;  ///< 10 * major + minor; which entry points may be called.
  bool shared_memory = false;
  uint64_t global_memory = 0;
  std::string key;  ///< Which physical device it is, or is a part of: server/device_key.h.

  bool IsRoot() const { return !owned; }
};

/// Threading: made on the starting thread, then the executor's.
class Inventory {
 public:
  /// Asks the ICD loader. No platform is not an error: guests then see none.
  static wire::Result<std::unique_ptr<Inventory>> Load();

  /// Null: no such device; `why` as in ObjectTable.
  const Device* Find(wire::Id id, wire::Lookup* why = nullptr) const { return devices_.Find(id, why); }
  /// The id under which the guest knows a device of the driver; null when it does not.
  wire::Id IdOf(cl_device_id device) const;

  bool AnySharedMemory() const;
  uint64_t LargestSharedDevice() const;

  /// For the operator to see: names and memory of the devices.
  void Describe(SessionStatsPage* stats) const;

  /// Answers GetInventory. The information was gathered at Load(): the device's limits do not change.
  void Send(Replies& replies, const opencl::Call& call) const;

  /// Makes sub-devices of `device` and answers with them; names are used in order.
  void CreateSubDevices(Replies& replies, const opencl::Call& call, const opencl::CreateSubDevices& message);
  /// A context was made of the device.
  void NoteContext(wire::Id id);
  /// Root devices stay. A sub-device that was in a context is forgotten here, but given back only at the end: contexts
  /// and queues outlive their devices' release (OpenCL 3.0, clReleaseDevice), and those of PoCL 3.1 do not keep them.
  void Release(wire::Id id);

 private:
  struct Root {
    wire::Id device;
    InfoValues info;
  };
  struct Platform {
    wire::Id id;
    InfoValues info;
    std::vector<Root> devices;
  };

  void AddPlatform(cl_platform_id platform);
  /// Of a root device: `index` of its platform, of which so many are GPUs before it.
  std::string KeyOf(const Device& device, size_t index, size_t gpus);
  int32_t Partition(const opencl::CreateSubDevices& message, std::vector<wire::Id>* made);

  std::vector<Platform> platforms_;
  wire::ObjectTable<Device> devices_{static_cast<uint8_t>(opencl::Handle::kDevice)};
  std::vector<Handle<cl_device_id>> kept_;
  uint32_t roots_ = 0;
  uint32_t cpus_ = 0;  ///< Of the roots.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_INVENTORY_H_
