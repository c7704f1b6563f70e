// SPDX-License-Identifier: Apache-2.0
// Images of code that guests of one tenant have uploaded, by the SHA-256 of their bytes: in memory for the session, on
// disk for the tenant's next process.
//
// Nothing is believed: bytes are hashed when they come from the guest and again when they come from the disk, files are
// written under another name and renamed when complete, links are not followed, and each tenant has a folder of its
// own, so that no tenant can learn what another one has uploaded.
//
// Threading: the executor's, but for Save(). Several workers may use one folder at the same time.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_IMAGE_STORE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_IMAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wire/codec.h"
#include "wire/sha256.h"
#include "wire/status.h"

namespace hawser::server::cuda_backend {

using Image = std::shared_ptr<const std::vector<std::byte>>;

class ImageStore {
 public:
  struct Options {
    std::string directory;  ///< Of all tenants; empty: nothing is kept on disk.
    std::string tenant;
    uint64_t disk = 4ull << 30;            ///< Bytes of this tenant's folder; the oldest use goes first.
    uint64_t memory = 1ull << 30;          ///< Bytes of images in memory.
    uint64_t largest = uint64_t{1} << 31;  ///< Bytes of one image.
  };
  /// `log` hears of a folder that cannot be used; the store then keeps images in memory alone.
  ImageStore(Options options, const std::function<void(const std::string&)>& log);

  /// True when Get() would very likely give it.
  bool Has(const wire::Sha256Digest& hash) const;
  /// Null: it is not there. A file whose contents are not what its name says is removed.
  Image Get(const wire::Sha256Digest& hash);
  /// Takes what hashes to `hash`; kInvalid: it does not, or it is too large.
  wire::Status Put(const wire::Sha256Digest& hash, std::vector<std::byte> bytes);
  /// Put() in two steps, for what is known to hash to `hash`: in memory, at once; and on disk, where there is a folder,
  /// which takes as long as the disk does. Save(): any thread.
  void Keep(const wire::Sha256Digest& hash, Image image);
  void Save(const wire::Sha256Digest& hash, wire::Bytes bytes) const;

  uint64_t largest() const { return options_.largest; }
  uint64_t memory_used() const { return memory_used_; }
  /// Of this tenant; empty: none.
  const std::string& folder() const { return folder_; }

 private:
  std::string PathOf(const wire::Sha256Digest& hash) const;
  Image Read(const wire::Sha256Digest& hash);
  /// Room for `bytes` more.
  void MakeRoom(uint64_t bytes) const;

  const Options options_;
  std::string folder_;
  struct Entry {
    Image image;
    std::list<wire::Sha256Digest>::iterator use;
  };
  std::map<wire::Sha256Digest, Entry> memory_;
  std::list<wire::Sha256Digest> uses_;  ///< The latest first.
  uint64_t memory_used_ = 0;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_IMAGE_STORE_H_
