// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of text into lines of bounded length.
#ifndef HAWSER_SERVER_LINE_SPLITTER_H_
#define HAWSER_SERVER_LINE_SPLITTER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hawser::server {

class LineSplitter {
 public:
  static constexpr size_t kMaxLine = 4096;

  /// Calls visit(line) for each line that is complete, or longer than kMaxLine.
  template <typename Visitor>
  void Add(std::string_view text, Visitor&& visit) {
    for (const char c : text) {
      if (c != '\n') kept_ += c;
      if (c == '\n' || kept_.size() >= kMaxLine) Finish(visit);
    }
  }
  /// What is left at the end of the stream.
  template <typename Visitor>
  void Finish(Visitor&& visit) {
    if (kept_.empty()) return;
    const std::string line = std::exchange(kept_, std::string());
    visit(line);
  }

 private:
  std::string kept_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_LINE_SPLITTER_H_
