// SPDX-License-Identifier: Apache-2.0
// Puts the files that a kernel source includes into the source, because they lie on the guest and the compiler runs on
// the server. A local implementation reads them when it builds; so does the guest.
#ifndef HAWSER_INTERPOSER_OPENCL_INCLUDE_EXPANDER_H_
#define HAWSER_INTERPOSER_OPENCL_INCLUDE_EXPANDER_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::ocl {

/// Directories named by -I in build options, in order. Understands "-Idir", "-I dir", quotes and escaped blanks.
std::vector<std::string> IncludeDirectories(std::string_view options);

/// The contents of a file, or nothing if there is none.
using FileReader = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads regular files of at most 16 MiB.
std::optional<std::string> ReadIncludeFile(const std::string& path);

/// Expands one source. Threading: none.
class IncludeExpander {
 public:
  /// `kept`: names that the call itself provides (headers of clCompileProgram); their directives stay.
  IncludeExpander(std::vector<std::string> directories, FileReader read, std::vector<std::string> kept = {})
      : directories_(std::move(directories)), read_(std::move(read)), kept_(std::move(kept)) {}

  /// The source with every #include replaced whose file exists, or nothing if there was none to replace (or if what
  /// would come of it is beyond reason). Directives in comments and of files that are not found stay as they are, so
  /// that the compiler's message does too. #line keeps the compiler's positions right.
  std::optional<std::string> Expand(std::string_view source);

 private:
  static constexpr size_t kLargest = 32u << 20;
  static constexpr size_t kDeepest = 64;

  void ExpandInto(std::string_view text, const std::string& name, const std::string& directory, std::string* out);
  bool ExpandDirective(std::string_view line, const std::string& directory, std::string* out);
  /// The path and contents of what a directive names.
  std::optional<std::pair<std::string, std::string>> FindFile(const std::string& name, bool quoted,
                                                              const std::string& directory) const;

  const std::vector<std::string> directories_;
  const FileReader read_;
  const std::vector<std::string> kept_;
  std::vector<std::string> open_;  // Files that are being expanded, outermost first.
  std::vector<std::string> once_;  // Files with #pragma once that were expanded.
  bool replaced_ = false;
  bool too_large_ = false;
};

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_INCLUDE_EXPANDER_H_
