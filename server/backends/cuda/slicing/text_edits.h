// SPDX-License-Identifier: Apache-2.0
// Changes of a text, gathered in any order and made in one pass.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_TEXT_EDITS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_TEXT_EDITS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::server::cuda_slicing {

class TextEdits {
 public:
  /// Borrowed.
  explicit TextEdits(std::string_view text) : text_(text) {}

  /// `with` instead of the bytes [begin, end). What is put in at one place stands there in the order of the calls.
  void Replace(size_t begin, size_t end, std::string with) { edits_.push_back({begin, end, std::move(with)}); }
  void Insert(size_t at, std::string what) { Replace(at, at, std::move(what)); }
  /// Where a view into the text begins.
  size_t Offset(std::string_view part) const { return static_cast<size_t>(part.data() - text_.data()); }
  std::string_view text() const { return text_; }

  /// The changed text. Of changes that overlap, and would give nonsense, the later ones are not made; see `clean`.
  std::string Apply();
  /// After Apply(): none overlapped.
  bool clean() const { return clean_; }

 private:
  struct Edit {
    size_t begin = 0;
    size_t end = 0;
    std::string with;
  };

  const std::string_view text_;
  std::vector<Edit> edits_;
  bool clean_ = true;
};

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_TEXT_EDITS_H_
