// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/processor_set.h"

#include <charconv>

#include "wire/short_slice.h"

namespace hawser::soft {
namespace {

/// Takes a processor's number off the front of `text`.
std::optional<unsigned> TakeNumber(std::string_view* text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || number >= CPU_SETSIZE) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

/// Takes `mark` off the front of `text`, if it is there.
bool TakeMark(std::string_view* text, char mark) {
  if (text->empty() || text->front() != mark) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

std::optional<ProcessorSet> ProcessorSet::Parse(std::string_view text) {
  ProcessorSet result;
  do {
    const std::optional<unsigned> first = TakeNumber(&text);
    const std::optional<unsigned> last = first && TakeMark(&text, '-') ? TakeNumber(&text) : first;
    if (!last || *last < *first) return std::nullopt;
    for (unsigned i = *first; i <= *last; ++i) CPU_SET(i, &result.set_);
  } while (TakeMark(&text, ','));
  if (!text.empty()) return std::nullopt;
  result.count_ = static_cast<unsigned>(CPU_COUNT(&result.set_));
  return result;
}

bool ProcessorSet::Take() const { return count_ == 0 || ::sched_setaffinity(0, sizeof(set_), &set_) == 0; }

void ProcessorSet::Join() const {
  if (Take() && count_ != 0) (void)wire::TakeBatchClass();
}

bool ProcessorSet::Usable() const {
  cpu_set_t before;
  if (::sched_getaffinity(0, sizeof(before), &before) != 0) return false;
  const bool taken = Take();
  (void)::sched_setaffinity(0, sizeof(before), &before);
  return taken;
}

}  // namespace hawser::soft
