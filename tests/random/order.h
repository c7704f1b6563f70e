// SPDX-License-Identifier: Apache-2.0
// Which use of memory comes before which other, by what a program has done about it: vector clocks. A random program
// that asks here before each use, and adds an order where there is none, has no races, and then there is exactly one
// right content for each byte, whatever runs beside whatever.
#ifndef HAWSER_TESTS_RANDOM_ORDER_H_
#define HAWSER_TESTS_RANDOM_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace hawser::random {

/// Whose uses are in order by themselves: the host (its threads take turns), a stream, a queue.
using Agent = size_t;
inline constexpr Agent kTheHost = 0;

/// A moment of one agent.
struct Stamp {
  Agent agent = kTheHost;
  uint64_t time = 0;
};

/// What has certainly happened, of each agent.
class Clock {
 public:
  uint64_t at(Agent agent) const { return agent < times_.size() ? times_[agent] : 0; }
  bool Covers(Stamp stamp) const { return at(stamp.agent) >= stamp.time; }
  void Join(const Clock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
    for (size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }
  /// The agent whose clock this is does something.
  Stamp Tick(Agent agent) {
    if (times_.size() <= agent) times_.resize(agent + 1);
    return {agent, ++times_[agent]};
  }

 private:
  std::vector<uint64_t> times_;
};

/// Bytes that a program uses: what they must be, and who used them last, by parts of odd sizes. Parts begin at
/// multiples of `granule`: uses of fewer bytes than that come in order, too.
class UsedBytes {
 public:
  UsedBytes(size_t size, std::mt19937_64& random, size_t granule = 1) : expected(size) {
    std::set<size_t> edges = {0, size};
    for (int i = 0; i < 7; ++i) edges.insert(random() % (size + 1) / granule * granule);
    edges_.assign(edges.begin(), edges.end());
    cells_.resize(edges_.size() - 1);
  }

  /// An earlier use that is in no order with one that knows `clock`.
  std::optional<Stamp> Race(size_t offset, size_t size, bool write, const Clock& clock) const {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!Touches(i, offset, size)) continue;
      if (!clock.Covers(cells_[i].written)) return cells_[i].written;
      if (!write) continue;
      for (const Stamp read : cells_[i].read) {
        if (!clock.Covers(read)) return read;
      }
    }
    return std::nullopt;
  }
  void Use(size_t offset, size_t size, bool write, Stamp stamp) {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!Touches(i, offset, size)) continue;
      if (write) {
        cells_[i].written = stamp;
        cells_[i].read.clear();
        continue;
      }
      std::erase_if(cells_[i].read, [&](Stamp read) { return read.agent == stamp.agent; });
      cells_[i].read.push_back(stamp);
    }
  }

  std::vector<uint8_t> expected;

 private:
  struct Cell {
    Stamp written;
    std::vector<Stamp> read;
  };
  bool Touches(size_t cell, size_t offset, size_t size) const {
    return edges_[cell] < offset + size && offset < edges_[cell + 1];
  }

  std::vector<size_t> edges_;
  std::vector<Cell> cells_;
};

}  // namespace hawser::random

#endif  // HAWSER_TESTS_RANDOM_ORDER_H_
