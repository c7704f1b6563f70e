// SPDX-License-Identifier: Apache-2.0
// A directory that goes away with its owner.
#ifndef HAWSER_BENCH_TEMPORARY_DIRECTORY_H_
#define HAWSER_BENCH_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace hawser::bench {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    std::string pattern = std::filesystem::temp_directory_path(error).string() + "/hawser-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  /// Empty when the directory could not be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_TEMPORARY_DIRECTORY_H_
