// SPDX-License-Identifier: Apache-2.0
// The process's CUDA: connected by cuInit, with everything that the server told of its devices.
//
// Threading: thread-safe. Init() takes a lock; everything it wrote is read without one afterwards. Never destroyed:
// programs call from exit handlers.
#ifndef HAWSER_INTERPOSER_CUDA_CLIENT_H_
#define HAWSER_INTERPOSER_CUDA_CLIENT_H_

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "interposer/core/session.h"
#include "interposer/cuda/kept_values.h"
#include "interposer/cuda/objects.h"
#include "interposer/cuda/pointer_map.h"
#include "proto/cuda/messages.h"
#include "proto/cuda_api/range_hints.h"

namespace hawser::cu {

/// A device as the server described it.
struct Device {
  static constexpr size_t kAttributes = 256;

  int ordinal = 0;
  std::string name;
  std::array<std::byte, 16> uuid{};
  uint64_t total_memory = 0;
  std::array<int32_t, kAttributes> attributes{};
  std::array<bool, kAttributes> known{};
  std::string pci_bus_id;
  int least_priority = 0;
  int greatest_priority = 0;
  std::vector<uint32_t> peers;
  std::vector<std::pair<uint32_t, uint64_t>> limits;
  KeptValues links;  ///< Of the link to another device. Key: that device << 32 | CUdevice_P2PAttribute.

  std::mutex mutex;  ///< Guards the primary context and the pools.
  CUctx_st* primary = nullptr;
  uint32_t primary_references = 0;
  unsigned primary_flags = 0;
  CUmemoryPool default_pool = nullptr;  ///< Null: nobody asked for it yet.
  CUmemoryPool current_pool = nullptr;  ///< Null: the default one.

  int attribute(CUdevice_attribute attribute) const { return attributes[static_cast<size_t>(attribute)]; }
};

class Client {
 public:
  static Client& Get();

  /// cuInit. CUDA_ERROR_NO_DEVICE when there is no server or it has none.
  CUresult Init();
  bool initialized() const { return ready_.load(std::memory_order_acquire); }
  /// CUDA_SUCCESS while calls can work.
  CUresult Check() const {
    if (!initialized()) [[unlikely]]
      return CUDA_ERROR_NOT_INITIALIZED;
    if (session_->lost()) [[unlikely]]
      return Lost();
    return CUDA_SUCCESS;
  }
  guest::Session* session() const { return session_; }
  PointerMap& pointers() { return pointers_; }
  cuda_api::RangeHints& hints() { return hints_; }  ///< About managed memory.

  size_t device_count() const { return devices_.size(); }
  /// Null: no such device.
  Device* device(int ordinal) {
    return ordinal >= 0 && static_cast<size_t>(ordinal) < devices_.size() ? devices_[static_cast<size_t>(ordinal)]
                                                                          : nullptr;
  }
  uint64_t NewNumber() { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// The heap can be used by kernels and copies on the server.
  bool heap_usable() const { return heap_address_ != 0; }
  /// Where the server has it.
  uint64_t heap_address() const { return heap_address_; }
  /// Device memory can lie in the heap.
  bool memory_in_heap() const { return memory_in_heap_; }
  /// True for addresses that this library keeps free for device memory.
  bool IsKept(uint64_t address, uint64_t size) const;
  /// Managed memory lies in the heap, at one address for all.
  bool managed_in_heap() const {
    return heap_usable() && reinterpret_cast<uintptr_t>(session_->heap_base()) == heap_address_;
  }
  /// Bytes [pointer, pointer + size) as an offset into the heap; kNoHeap: not (wholly) in it.
  uint64_t HeapOffset(const void* pointer, uint64_t size) const;

  /// Memory and events of this device may be shared with other processes.
  bool CanShare(int ordinal) const {
    return devices_[static_cast<size_t>(ordinal)]->attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED) != 0;
  }
  /// Memory is shared with other processes: from now on synchronous copies are done when they return, because another
  /// process may look at once.
  void NoteSharing() { sharing_.store(true, std::memory_order_relaxed); }
  bool sharing() const { return sharing_.load(std::memory_order_relaxed); }

  /// The server keeps many commands: ask for room before another one (StreamCommand::AwaitRoom).
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }
  void SetCrowded(bool crowded) { crowded_.store(crowded, std::memory_order_relaxed); }

  /// What calls return once the session is over: CUDA_ERROR_LAUNCH_TIMEOUT after a runaway kernel, else
  /// CUDA_ERROR_DEVICE_UNAVAILABLE.
  CUresult Lost() const;

 private:
  Client() = default;
  CUresult Load(guest::Session* session);
  void Adopt(const cuda::DeviceInfo& info);
  /// What this transport makes of a device.
  void Correct(Device& device) const;

  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  guest::Session* session_ = nullptr;
  std::vector<Device*> devices_;
  std::vector<std::pair<uint64_t, uint64_t>> kept_;  ///< Address, size.
  PointerMap pointers_;
  cuda_api::RangeHints hints_;
  uint64_t heap_address_ = 0;
  bool memory_in_heap_ = false;
  std::atomic<uint64_t> numbers_{0};
  std::atomic<bool> sharing_{false};
  std::atomic<bool> crowded_{false};
};

/// CUresult of what the session or the server said.
CUresult FromWire(int32_t status);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_CLIENT_H_
