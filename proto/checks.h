// SPDX-License-Identifier: Apache-2.0
// What the generated dispatch checks with. A check that succeeds costs a comparison; text is made only
// once something is wrong.
#ifndef HAWSER_PROTO_CHECKS_H_
#define HAWSER_PROTO_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/id.h"

namespace hawser::proto {

/// The first thing that is wrong with a message. Texts are literals.
struct Problem {
  const char* field = nullptr;
  const char* expected = nullptr;  ///< Name of the handle type or of the set of legal values.
  uint64_t value = 0;
};

/// True when the type byte of `id` matches, or `id` is 0 where that is allowed. `Type` has
/// Matches(uint8_t) and Name().
template <typename Type>
bool CheckId(wire::Id id, bool nullable, const char* field, Problem* problem) {
  if (Type::Matches(id.type()) || (nullable && !id)) return true;
  *problem = {field, Type::Name(), id.raw()};
  return false;
}

template <typename Type, typename Ids>
bool CheckIds(const Ids& ids, bool nullable, const char* field, Problem* problem) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!CheckId<Type>(ids[i], nullable, field, problem)) return false;
  }
  return true;
}

inline bool CheckLegal(bool legal, uint64_t value, const char* field, const char* set, Problem* problem) {
  if (legal) return true;
  *problem = {field, set, value};
  return false;
}

/// `check` of each element of a wire::ListView, up to the first that fails.
template <typename List, typename Check>
bool CheckEach(const List& list, Check check) {
  bool good = true;
  list.ForEach([&](const auto& each) { good = good && check(each); });
  return good;
}

/// Error texts. `call` is the call's name. `field` may be null: then bytes follow the last field.
std::string UnknownOpcodeText(const wire::FrameHeader& header);
std::string UndecodableText(const char* call, const wire::FrameHeader& header, size_t payload, const char* field,
                            size_t left_over);
std::string WrongIdText(const char* call, const wire::FrameHeader& header, const Problem& problem);
std::string IllegalValueText(const char* call, const wire::FrameHeader& header, const Problem& problem);

}  // namespace hawser::proto

#endif  // HAWSER_PROTO_CHECKS_H_
