// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/text_edits.h"

#include <algorithm>

namespace hawser::server::cuda_slicing {

std::string TextEdits::Apply() {
  std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string out;
  size_t at = 0;
  for (const Edit& edit : edits_) {
    if (edit.begin < at || edit.end < edit.begin || edit.end > text_.size()) {
      clean_ = false;
      continue;
    }
    out.append(text_.substr(at, edit.begin - at)).append(edit.with);
    at = edit.end;
  }
  out.append(text_.substr(at));
  return out;
}

}  // namespace hawser::server::cuda_slicing
