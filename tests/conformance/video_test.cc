// SPDX-License-Identifier: Apache-2.0
// Video instructions: on words, on bytes and halves of them, and on the lanes of two words, by the pseudocode of the
// PTX ISA (9.7.17, 9.7.18) written out in C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "tests/conformance/harness.h"

namespace hawser::conformance {
namespace {

int64_t Bits(V word, uint32_t at, uint32_t bits, bool sign) {
  const auto raw = static_cast<int64_t>(word >> at & ((V{1} << bits) - 1));
  return sign && (raw >> (bits - 1)) != 0 ? raw - (int64_t{1} << bits) : raw;
}

/// The part of a word that ".b1" or ".h0" names; all of it without a name.
int64_t Select(V word, const std::string& part, bool sign) {
  if (part.empty()) return Bits(word, 0, 32, sign);
  const auto number = static_cast<uint32_t>(part[2] - '0');
  return part[1] == 'b' ? Bits(word, 8 * number, 8, sign) : Bits(word, 16 * number, 16, sign);
}

int64_t Clamp(int64_t value, uint32_t bits, bool sign) {
  const int64_t span = int64_t{1} << bits;
  return sign ? std::clamp<int64_t>(value, -span / 2, span / 2 - 1) : std::clamp<int64_t>(value, 0, span - 1);
}

int64_t Operate(const std::string& op, int64_t a, int64_t b) {
  if (op == "vadd") return a + b;
  if (op == "vsub") return a - b;
  if (op == "vabsdiff") return a > b ? a - b : b - a;
  if (op == "vmin") return std::min(a, b);
  if (op == "vmax") return std::max(a, b);
  return (a + b + (a + b < 0 ? 0 : 1)) >> 1;  // vavrg
}

V Merge(int64_t value, const std::string& part, V rest) {
  if (part.empty()) return static_cast<V>(value);
  const uint32_t bits = part[1] == 'b' ? 8 : 16;
  const uint32_t at = bits * static_cast<uint32_t>(part[2] - '0');
  const V mask = ((V{1} << bits) - 1) << at;
  return (static_cast<V>(value) << at & mask) | (rest & ~mask);
}

const std::array<std::string, 7> kParts{"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
const std::array<std::string, 5> kOps{"vadd", "vsub", "vabsdiff", "vmin", "vmax"};
const std::array<std::string, 2> kTypes{"u32", "s32"};

bool Signed(const std::string& type) { return type[0] == 's'; }

TEST(Video, WordsAndTheirParts) {
  std::vector<Case> cases;
  size_t turn = 0;
  for (const std::string& op : kOps) {
    for (const std::string& d : kTypes) {
      for (const std::string& at : kTypes) {
        for (const std::string& bt : kTypes) {
          for (const bool sat : {false, true}) {
            const std::string a = kParts[turn % 7];
            const std::string b = kParts[(turn / 7 + turn) % 7];
            const std::string to = kParts[turn * 5 % 7];
            ++turn;
            const std::string name = op + "." + d + "." + at + "." + bt + (sat ? ".sat" : "");
            const auto value = [=](V x, V y, uint32_t bits) {
              const int64_t all = Operate(op, Select(x, a, Signed(at)), Select(y, b, Signed(bt)));
              return sat ? Clamp(all, bits, Signed(d)) : all;
            };
            cases.emplace_back(name + " %d, %a" + a + ", %b" + b + ";", "b32 b32,b32",
                               [=](V x, V y, V) { return static_cast<V>(value(x, y, 32)); });
            cases.emplace_back(name + ".add %d, %a" + a + ", %b" + b + ", %c;", "b32 b32,b32,b32",
                               [=](V x, V y, V z) { return static_cast<V>(value(x, y, 32)) + z; });
            if (!to.empty()) {
              cases.emplace_back(name + " %d" + to + ", %a" + a + ", %b" + b + ", %c;", "b32 b32,b32,b32",
                                 [=](V x, V y, V z) { return Merge(value(x, y, to[1] == 'b' ? 8 : 16), to, z); });
            }
            if (!sat) continue;  // What a result out of range is compared as is nobody's business.
            cases.emplace_back(name + ".min %d, %a" + a + ", %b" + b + ", %c;", "b32 b32,b32,b32", [=](V x, V y, V z) {
              return static_cast<V>(std::min(value(x, y, 32), Bits(z, 0, 32, Signed(d))));
            });
            cases.emplace_back(name + ".max %d, %a" + a + ", %b" + b + ", %c;", "b32 b32,b32,b32", [=](V x, V y, V z) {
              return static_cast<V>(std::max(value(x, y, 32), Bits(z, 0, 32, Signed(d))));
            });
          }
        }
      }
    }
  }
  Check(cases);
}

TEST(Video, ShiftsAndComparisons) {
  std::vector<Case> cases;
  size_t turn = 0;
  for (const bool left : {false, true}) {
    for (const std::string& type : kTypes) {
      for (const bool wrap : {false, true}) {
        for (const bool sat : {false, true}) {
          const std::string a = kParts[turn++ % 7];
          const std::string b = kParts[(turn * 3 + 1) % 7];
          const std::string name = std::string(left ? "vshl." : "vshr.") + type + "." + type + ".u32" +
                                   (sat ? ".sat" : "") + (wrap ? ".wrap" : ".clamp");
          cases.emplace_back(name + " %d, %a" + a + ", %b" + b + ";", "b32 b32,b32", [=](V x, V y, V) {
            int64_t by = Select(y, b, false);
            by = wrap ? by & 31 : std::min<int64_t>(by, 32);
            const int64_t from = Select(x, a, Signed(type));
            const int64_t all = left ? from * (int64_t{1} << by) : from >> by;
            return static_cast<V>(sat ? Clamp(all, 32, Signed(type)) : all);
          });
        }
      }
    }
  }
  const std::array<std::string, 6> compares{"eq", "ne", "lt", "le", "gt", "ge"};
  for (size_t k = 0; k < compares.size(); ++k) {
    for (const std::string& at : kTypes) {
      const std::string a = kParts[(k + turn++) % 7];
      const std::string b = kParts[turn % 7];
      const std::string bt = kTypes[k % 2];
      const auto holds = [=](V x, V y) -> V {
        const int64_t p = Select(x, a, Signed(at));
        const int64_t q = Select(y, b, Signed(bt));
        const std::array<bool, 6> results{p == q, p != q, p<q, p <= q, p> q, p >= q};
        return results[k] ? 1 : 0;
      };
      const std::string name = "vset." + at + "." + bt + "." + compares[k];
      cases.emplace_back(name + " %d, %a" + a + ", %b" + b + ";", "b32 b32,b32",
                         [=](V x, V y, V) { return holds(x, y); });
      cases.emplace_back(name + " %d.b2, %a" + a + ", %b" + b + ", %c;", "b32 b32,b32,b32",
                         [=](V x, V y, V z) { return Merge(static_cast<int64_t>(holds(x, y)), ".b2", z); });
    }
  }
  Check(cases);
}

TEST(Video, MultiplyAndAdd) {
  std::vector<Case> cases;
  size_t turn = 0;
  const std::array<std::array<std::string, 3>, 5> signs{
      {{"", "", ""}, {"-", "", ""}, {"", "-", ""}, {"", "", "-"}, {"-", "-", ""}}};
  for (const std::string& at : kTypes) {
    for (const std::string& bt : kTypes) {
      for (const uint32_t scale : {0u, 7u, 15u}) {
        for (const bool sat : {false, true}) {
          for (size_t k = 0; k < 6; ++k) {
            const bool plus_one = k == 5;
            const std::array<std::string, 3> sign = plus_one ? signs[0] : signs[k];
            const std::string a = kParts[turn % 7];
            const std::string b = kParts[(turn / 7 + turn * 2) % 7];
            ++turn;
            const bool product_negated = sign[0] != sign[1];
            const bool is_signed = Signed(at) || Signed(bt) || product_negated || !sign[2].empty();
            const std::string name = "vmad." + std::string(is_signed ? "s32." : "u32.") + at + "." + bt +
                                     (plus_one ? ".po" : "") + (sat ? ".sat" : "") +
                                     (scale == 0 ? "" : ".shr" + std::to_string(scale));
            cases.emplace_back(name + " %d, " + sign[0] + "%a" + a + ", " + sign[1] + "%b" + b + ", " + sign[2] + "%c;",
                               "b32 b32,b32,b32", [=](V x, V y, V z) {
                                 __int128 all =
                                     static_cast<__int128>(Select(x, a, Signed(at))) * Select(y, b, Signed(bt));
                                 if (product_negated) all = -all;
                                 const __int128 third = Bits(z, 0, 32, is_signed);
                                 all += sign[2].empty() ? third : -third;
                                 all = (all + (plus_one ? 1 : 0)) >> scale;
                                 if (sat) {
                                   const __int128 low = is_signed ? INT32_MIN : 0;
                                   const __int128 high = is_signed ? INT32_MAX : int64_t{UINT32_MAX};
                                   all = std::clamp(all, low, high);
                                 }
                                 return static_cast<V>(all);
                               });
          }
        }
      }
    }
  }
  Check(cases);
}

/// Lanes of a and b by number, those of b behind a's.
int64_t Lane(V a, V b, uint32_t lanes, uint32_t number, bool sign) {
  const uint32_t bits = 32 / lanes;
  return Bits(number < lanes ? a : b, bits * (number % lanes), bits, sign);
}

struct Lanes {
  std::string text;             ///< ".h10": the last digit is lane 0's.
  std::vector<uint32_t> order;  ///< Of lane 0, 1, ...
};

void CheckLanes(uint32_t lanes, const std::vector<Lanes>& of_a, const std::vector<Lanes>& of_b,
                const std::vector<Lanes>& masks) {
  std::vector<Case> cases;
  size_t turn = 0;
  const std::string number = std::to_string(lanes);
  for (const std::string op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset"}) {
    for (const std::string& at : kTypes) {
      for (const std::string& bt : kTypes) {
        for (const bool sat : {false, true}) {
          for (const bool adds : {false, true}) {
            const bool compares = op == "vset";
            if ((sat && adds) || (compares && sat)) continue;
            const std::string d = kTypes[turn % 2];
            const Lanes a = of_a[turn % of_a.size()];
            const Lanes b = of_b[turn / 2 % of_b.size()];
            const Lanes mask = masks[turn * 3 % masks.size()];
            ++turn;
            const std::string name = op + number + (compares ? "." : "." + d + ".") + at + "." + bt +
                                     (compares ? ".lt" : "") + (sat ? ".sat" : "") + (adds ? ".add" : "");
            cases.emplace_back(name + " %d" + mask.text + ", %a" + a.text + ", %b" + b.text + ", %c;",
                               "b32 b32,b32,b32", [=](V x, V y, V z) {
                                 const uint32_t bits = 32 / lanes;
                                 V packed = 0;
                                 V sum = z;
                                 for (uint32_t k = 0; k < lanes; ++k) {
                                   const V field = ((V{1} << bits) - 1) << (bits * k);
                                   if (std::find(mask.order.begin(), mask.order.end(), k) == mask.order.end()) {
                                     packed |= z & field;
                                     continue;
                                   }
                                   const int64_t p = Lane(x, y, lanes, a.order[k], Signed(at));
                                   const int64_t q = Lane(x, y, lanes, b.order[k], Signed(bt));
                                   int64_t value = compares ? (p < q ? 1 : 0) : Operate(op, p, q);
                                   if (sat) value = Clamp(value, bits, Signed(d));
                                   sum += static_cast<V>(value);
                                   packed |= static_cast<V>(value) << (bits * k) & field;
                                 }
                                 return adds ? sum : packed;
                               });
          }
        }
      }
    }
  }
  Check(cases);
}

TEST(Video, PairsOfHalves) {
  CheckLanes(2, {{"", {0, 1}}, {".h10", {0, 1}}, {".h31", {1, 3}}, {".h00", {0, 0}}},
             {{"", {2, 3}}, {".h32", {2, 3}}, {".h02", {2, 0}}},
             {{"", {0, 1}}, {".h0", {0}}, {".h1", {1}}, {".h10", {0, 1}}});
}

TEST(Video, FourBytes) {
  CheckLanes(4, {{"", {0, 1, 2, 3}}, {".b3210", {0, 1, 2, 3}}, {".b7041", {1, 4, 0, 7}}},
             {{"", {4, 5, 6, 7}}, {".b7654", {4, 5, 6, 7}}, {".b0123", {3, 2, 1, 0}}},
             {{"", {0, 1, 2, 3}}, {".b0", {0}}, {".b31", {1, 3}}, {".b320", {0, 2, 3}}, {".b3210", {0, 1, 2, 3}}});
}

}  // namespace
}  // namespace hawser::conformance
