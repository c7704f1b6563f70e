// SPDX-License-Identifier: Apache-2.0
// The server's objects of one type, found by the ids that the guest chose. Every id is untrusted.
#ifndef HAWSER_WIRE_OBJECT_TABLE_H_
#define HAWSER_WIRE_OBJECT_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/id.h"

namespace hawser::wire {

/// What became of an id.
enum class Lookup : uint8_t {
  kOk = 0,
  kNull,        ///< The id is 0.
  kWrongType,   ///< It names an object of another type.
  kOutOfRange,  ///< Its index is beyond the table's limit.
  kStale,       ///< Its slot has, or had, this or another generation; for Insert also: is in use.
  kEmpty,       ///< Nothing was ever there.
};

/// For messages: "no such object" and the like.
constexpr std::string_view LookupText(Lookup lookup) {
  switch (lookup) {
    case Lookup::kOk:
      return "found";
    case Lookup::kNull:
      return "is null";
    case Lookup::kWrongType:
      return "names an object of another type";
    case Lookup::kOutOfRange:
      return "is beyond the limit on objects";
    case Lookup::kStale:
      return "is stale: the slot holds or held another object";
    case Lookup::kEmpty:
      return "names no object";
  }
  return "is unknown";
}

/// Slots live in chunks that exist once an id of the chunk is inserted, so one hostile index costs
/// at most the list of chunks (8 bytes per 256 slots below the limit) and one chunk. Objects do not
/// move while they are in the table.
///
/// Threading: none; the caller holds its own lock.
template <typename T>
class ObjectTable {
 public:
  static constexpr uint32_t kDefaultMaxObjects = 1u << 20;

  explicit ObjectTable(uint8_t type, uint32_t max_objects = kDefaultMaxObjects)
      : type_(type), max_objects_(max_objects) {}

  /// Takes the object out of `object`, unless the id is of another type, beyond the limit, or not newer
  /// than what its slot holds or last held; then nothing changes, and the caller keeps it.
  Lookup InsertFrom(Id id, T* object) {
    if (const Lookup bad = CheckId(id); bad != Lookup::kOk) return bad;
    const size_t chunk = id.index() / kChunk;
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    if (chunks_[chunk] == nullptr) chunks_[chunk] = std::make_unique<Chunk>();
    Slot& slot = (*chunks_[chunk])[id.index() % kChunk];
    if (slot.object.has_value() || id.generation() <= slot.generation) return Lookup::kStale;
    slot.object.emplace(std::move(*object));
    slot.generation = id.generation();
    ++size_;
    return Lookup::kOk;
  }

  /// The same for an object that nobody misses: one that is refused ends here.
  Lookup Insert(Id id, T object) { return InsertFrom(id, &object); }

  /// The object, or null and the reason in `why` (if given).
  T* Find(Id id, Lookup* why = nullptr) {
    Lookup found = Lookup::kOk;
    Slot* slot = FindSlot(id, &found);
    if (why != nullptr) *why = found;
    return slot == nullptr ? nullptr : &*slot->object;
  }
  const T* Find(Id id, Lookup* why = nullptr) const {
    return const_cast<ObjectTable*>(this)->Find(id, why);  // NOLINT: Find changes nothing.
  }

  /// Destroys the object. False when the id names none.
  bool Erase(Id id) {
    Lookup found = Lookup::kOk;
    Slot* slot = FindSlot(id, &found);
    if (slot == nullptr) return false;
    // Out of the table first: a destructor may look here.
    [[maybe_unused]] const std::optional<T> object = std::exchange(slot->object, std::nullopt);
    --size_;
    return true;
  }

  size_t size() const { return size_; }

  /// Calls visit(Id, T&) for each object, by index. `visit` must not insert; it may erase the object
  /// it is called for.
  template <typename Visitor>
  void ForEach(Visitor&& visit) {
    for (size_t c = 0; c < chunks_.size(); ++c) {
      if (chunks_[c] == nullptr) continue;
      for (uint32_t i = 0; i < kChunk; ++i) {
        Slot& slot = (*chunks_[c])[i];
        if (!slot.object.has_value()) continue;
        visit(Id(type_, slot.generation, static_cast<uint32_t>(c * kChunk) + i), *slot.object);
      }
    }
  }

 private:
  static constexpr uint32_t kChunk = 256;
  struct Slot {
    uint32_t generation = 0;  ///< Of the object here, or of the last one that was.
    std::optional<T> object;
  };
  using Chunk = std::array<Slot, kChunk>;

  Lookup CheckId(Id id) const {
    if (!id) return Lookup::kNull;
    if (id.type() != type_) return Lookup::kWrongType;
    if (id.index() >= max_objects_) return Lookup::kOutOfRange;
    return Lookup::kOk;
  }
  Slot* FindSlot(Id id, Lookup* found) {
    *found = CheckId(id);
    if (*found != Lookup::kOk) return nullptr;
    const size_t chunk = id.index() / kChunk;
    *found = Lookup::kEmpty;
    if (chunk >= chunks_.size() || chunks_[chunk] == nullptr) return nullptr;
    Slot& slot = (*chunks_[chunk])[id.index() % kChunk];
    if (slot.object.has_value() && slot.generation == id.generation()) {
      *found = Lookup::kOk;
      return &slot;
    }
    if (slot.object.has_value() || slot.generation >= id.generation()) *found = Lookup::kStale;
    return nullptr;
  }

  const uint8_t type_;
  const uint32_t max_objects_;
  size_t size_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_OBJECT_TABLE_H_
