// SPDX-License-Identifier: Apache-2.0
// The addresses of device memory: one range of this process that nothing else uses, reserved at the start without
// memory behind it. A device pointer is the host address of its bytes, so it can never be mistaken for memory that the
// program got elsewhere; and a guest on another machine can reserve the same range (HAWSER_SOFT_BASE,
// HAWSER_SOFT_RANGE).
//
// Threads: all functions may be called by any thread; one lock, never held while another of the driver's is taken.
#ifndef HAWSER_SOFTCUDA_DRIVER_ADDRESS_RANGE_H_
#define HAWSER_SOFTCUDA_DRIVER_ADDRESS_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hawser::soft {

class AddressRange {
 public:
  /// Reserves `size` bytes at `base`; where something lies there, wherever there is room; less when there is no room.
  AddressRange(uint64_t base, uint64_t size);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  /// Takes addresses; both numbers in bytes, alignment a power of two (at least a page is used). `hint`: preferred
  /// address, or 0. 0 when there are none left.
  uint64_t Take(uint64_t size, uint64_t alignment, uint64_t hint = 0);
  /// Gives back what Take() returned, memory included. False: it did not return that.
  bool Give(uint64_t address, uint64_t size);

  /// Puts fresh zeroed memory behind whole pages. False when the system has none.
  static bool Commit(uint64_t address, uint64_t size);
  /// Puts the bytes of a file (memfd) there, shared.
  static bool CommitFile(uint64_t address, uint64_t size, int file, uint64_t offset, int protection);
  /// Takes the memory away; access is then a fault.
  static void Decommit(uint64_t address, uint64_t size);

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  bool Contains(uint64_t address) const { return address >= begin_ && address < end_; }

  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t RoundToPage(uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

 private:
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  using Holes = std::map<uint64_t, uint64_t>;
  /// First hole from `from` on that has room; its start, or 0.
  uint64_t Search(uint64_t from, uint64_t size, uint64_t alignment, Holes::iterator* hole);

  std::mutex mutex_;
  uint64_t next_ = 0;  ///< Behind the last one that was given.
  Holes free_;         ///< begin -> end; neighbours are merged.
  std::map<uint64_t, uint64_t> taken_;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_ADDRESS_RANGE_H_
