// SPDX-License-Identifier: Apache-2.0
// The session's objects of one type, of which some are about to end: the guest has released them, but commands that
// came before wait still (deferral.h). It uses their names anew, with another generation; so they make room in the
// table and are found by their whole name until they end.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_LEAVING_TABLE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_LEAVING_TABLE_H_

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wire/id.h"
#include "wire/object_table.h"

namespace hawser::server::cuda_backend {

/// As wire::ObjectTable. Objects move once: when they begin to leave.
template <typename T>
class LeavingTable {
 public:
  LeavingTable(uint8_t type, uint32_t max_objects) : here_(type, max_objects) {}

  wire::Lookup InsertFrom(wire::Id id, T* object) { return here_.InsertFrom(id, object); }
  wire::Lookup Insert(wire::Id id, T object) { return here_.InsertFrom(id, &object); }
  T* Find(wire::Id id, wire::Lookup* why = nullptr) {
    T* const found = here_.Find(id, why);
    if (found != nullptr || leaving_.empty()) [[likely]]
      return found;
    const auto at = leaving_.find(id.raw());
    if (at == leaving_.end()) return nullptr;
    if (why != nullptr) *why = wire::Lookup::kOk;
    return &at->second.second;
  }
  /// Another object may have its place from now on. Ids that name nothing are ignored.
  void Leave(wire::Id id) {
    T* const object = here_.Find(id);
    if (object == nullptr) return;
    leaving_.emplace(id.raw(), std::pair(id, std::move(*object)));
    (void)here_.Erase(id);
  }
  bool Erase(wire::Id id) {
    if (here_.Erase(id)) return true;
    // Out of the table first: a destructor may look here.
    return !leaving_.extract(id.raw()).empty();
  }
  /// The visitor must not insert; it may erase the object that it is called for.
  template <typename Visitor>
  void ForEach(Visitor&& visit) {
    here_.ForEach(visit);
    if (leaving_.empty()) return;
    std::vector<uint64_t> names;
    for (const auto& [name, object] : leaving_) names.push_back(name);
    for (const uint64_t name : names) {
      if (const auto at = leaving_.find(name); at != leaving_.end()) visit(at->second.first, at->second.second);
    }
  }

 private:
  wire::ObjectTable<T> here_;
  std::unordered_map<uint64_t, std::pair<wire::Id, T>> leaving_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_LEAVING_TABLE_H_
