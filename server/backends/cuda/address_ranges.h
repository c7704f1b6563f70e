// SPDX-License-Identifier: Apache-2.0
// Where in this process's address space a driver puts device memory: guests keep their own memory out of there.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_ADDRESS_RANGES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_ADDRESS_RANGES_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace hawser::server::cuda_backend {

class AddressRanges {
 public:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  /// Ranges below this size are not worth telling.
  static constexpr uint64_t kLeast = 32u << 20;

  /// Mappings of this process of at least kLeast bytes, in order. Empty when /proc cannot be read.
  static AddressRanges Reserved();
  /// The same from the text of /proc/PID/maps.
  static AddressRanges FromMaps(std::string_view maps);

  /// What is here and not in `before`; what touches becomes one.
  AddressRanges Without(const AddressRanges& before) const;
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_ADDRESS_RANGES_H_
