// SPDX-License-Identifier: Apache-2.0
// Integer, logic, shift and bit-field instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tests/conformance/harness.h"

namespace hawser::conformance {
namespace {

V Clamp32(int64_t v) { return static_cast<uint32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); }
uint32_t U(V v) { return static_cast<uint32_t>(v); }
uint16_t W(V v) { return static_cast<uint16_t>(v); }
int64_t S24(V v) { return static_cast<int32_t>(U(v) << 8) >> 8; }
int64_t U24(V v) { return U(v) & 0xffffff; }
__int128 Mul128(int64_t a, int64_t b) { return static_cast<__int128>(a) * b; }
unsigned __int128 MulU128(V a, V b) { return static_cast<unsigned __int128>(a) * b; }
int8_t Byte(V v, int k) { return static_cast<int8_t>(v >> (8 * k)); }
uint8_t UByte(V v, int k) { return static_cast<uint8_t>(v >> (8 * k)); }

V Bfe(V a, V b, V c, int width, bool sign) {  // Bit by bit, as the manual's pseudo-code has it.
  const auto pos = static_cast<int>(b & 0xff);
  const auto len = static_cast<int>(c & 0xff);
  const int top = std::min(pos + len - 1, width - 1);
  const bool fill = sign && len != 0 && (a >> top & 1) != 0;
  V d = 0;
  for (int i = 0; i < width; ++i) {
    const bool bit = i < len && pos + i < width ? (a >> (pos + i) & 1) != 0 : fill;
    d |= static_cast<V>(bit) << i;
  }
  return d;
}

TEST(Conformance, IntegerArithmetic) {
  Check({
      {"add.s16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return a + b; }},
      {"add.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return a + b; }},
      {"add.s64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return a + b; }},
      {"add.s32 %d, %a, -7;", "b32 b32", [](V a, V, V) { return a - 7; }},
      {"add.sat.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return Clamp32(int64_t{S(a)} + S(b)); }},
      {"sub.sat.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return Clamp32(int64_t{S(a)} - S(b)); }},
      {"sub.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return a - b; }},
      {"sub.u64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return a - b; }},
      {"add.u16x2 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return V{W(a + b)} | V{W((a >> 16) + (b >> 16))} << 16; }},
      {"mul.lo.s16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return a * b; }},
      {"mul.lo.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return a * b; }},
      {"mul.lo.u64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return a * b; }},
      {"mul.hi.s16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return static_cast<V>((H(a) * H(b)) >> 16); }},
      {"mul.hi.u16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return a * b >> 16; }},
      {"mul.hi.s32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return static_cast<V>((int64_t{S(a)} * S(b)) >> 32); }},
      {"mul.hi.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return a * b >> 32; }},
      {"mul.hi.s64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return static_cast<V>(Mul128(L(a), L(b)) >> 64); }},
      {"mul.hi.u64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return static_cast<V>(MulU128(a, b) >> 64); }},
      {"mul.wide.s16 %d, %a, %b;", "b32 b16,b16", [](V a, V b, V) { return static_cast<V>(H(a) * H(b)); }},
      {"mul.wide.u16 %d, %a, %b;", "b32 b16,b16", [](V a, V b, V) { return a * b; }},
      {"mul.wide.s32 %d, %a, %b;", "b64 b32,b32", [](V a, V b, V) { return static_cast<V>(int64_t{S(a)} * S(b)); }},
      {"mul.wide.u32 %d, %a, %b;", "b64 b32,b32", [](V a, V b, V) { return a * b; }},
      {"mad.lo.s32 %d, %a, %b, %c;", "b32 b32,b32,b32", [](V a, V b, V c) { return a * b + c; }},
      {"mad.lo.u16 %d, %a, %b, %c;", "b16 b16,b16,b16", [](V a, V b, V c) { return a * b + c; }},
      {"mad.lo.u64 %d, %a, %b, %c;", "b64 b64,b64,b64", [](V a, V b, V c) { return a * b + c; }},
      {"mad.hi.s32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return static_cast<V>((int64_t{S(a)} * S(b)) >> 32) + c; }},
      {"mad.hi.sat.s32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return Clamp32(((int64_t{S(a)} * S(b)) >> 32) + S(c)); }},
      {"mad.hi.u64 %d, %a, %b, %c;", "b64 b64,b64,b64",
       [](V a, V b, V c) { return static_cast<V>(MulU128(a, b) >> 64) + c; }},
      {"mad.wide.s32 %d, %a, %b, %c;", "b64 b32,b32,b64",
       [](V a, V b, V c) { return static_cast<V>(int64_t{S(a)} * S(b)) + c; }},
      {"mad.wide.u16 %d, %a, %b, %c;", "b32 b16,b16,b32", [](V a, V b, V c) { return a * b + c; }},
      {"mul24.lo.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return static_cast<V>(S24(a) * S24(b)); }},
      {"mul24.hi.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return static_cast<V>((S24(a) * S24(b)) >> 16); }},
      {"mul24.hi.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return static_cast<V>((U24(a) * U24(b)) >> 16); }},
      {"mad24.lo.u32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return static_cast<V>(U24(a) * U24(b)) + c; }},
      {"sad.s32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return c + static_cast<V>(std::abs(int64_t{S(a)} - S(b))); }},
      {"sad.u16 %d, %a, %b, %c;", "b16 b16,b16,b16", [](V a, V b, V c) { return c + (a < b ? b - a : a - b); }},
      {"div.s32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return b == 0 ? ~V{0} : static_cast<V>(int64_t{S(a)} / S(b)); }},
      {"div.u64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return b == 0 ? ~V{0} : a / b; }},
      {"div.s64 %d, %a, %b;", "b64 b64,b64",
       [](V a, V b, V) { return b == 0 ? ~V{0} : static_cast<V>(static_cast<__int128>(L(a)) / L(b)); }},
      {"rem.s32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return b == 0 ? a : static_cast<V>(int64_t{S(a)} % S(b)); }},
      {"rem.u16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return b == 0 ? a : a % b; }},
      {"abs.s32 %d, %a;", "b32 b32", [](V a, V, V) { return static_cast<V>(std::abs(int64_t{S(a)})); }},
      {"abs.s64 %d, %a;", "b64 b64", [](V a, V, V) { return L(a) < 0 ? 0 - a : a; }},
      {"neg.s16 %d, %a;", "b16 b16", [](V a, V, V) { return 0 - a; }},
      {"neg.s64 %d, %a;", "b64 b64", [](V a, V, V) { return 0 - a; }},
      {"min.s16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return H(a) < H(b) ? a : b; }},
      {"min.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return std::min(a, b); }},
      {"max.s64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return L(a) > L(b) ? a : b; }},
      {"max.s16x2 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) {
         return V{W(static_cast<V>(std::max(H(a), H(b))))} | V{W(static_cast<V>(std::max(H(a >> 16), H(b >> 16))))}
                                                                 << 16;
       }},
      {"min.relu.s32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return static_cast<V>(std::max(0, std::min(S(a), S(b)))); }},
      {"dp4a.s32.s32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         for (int k = 0; k < 4; ++k) c += static_cast<V>(Byte(a, k) * Byte(b, k));
         return c;
       }},
      {"dp4a.u32.s32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         for (int k = 0; k < 4; ++k) c += static_cast<V>(UByte(a, k) * Byte(b, k));
         return c;
       }},
      {"dp2a.hi.s32.u32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return c + static_cast<V>(H(a) * UByte(b, 2)) + static_cast<V>(H(a >> 16) * UByte(b, 3)); }},
      {"dp2a.lo.u32.s32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return c + static_cast<V>(W(a) * Byte(b, 0)) + static_cast<V>(W(a >> 16) * Byte(b, 1)); }},
  });
}

TEST(Conformance, Carry) {
  Check({
      {"add.cc.u32 %d, %a, %b; addc.u32 %d, %c, 0;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return c + ((a + b) >> 32); }},
      {"sub.cc.u32 %d, %a, %b; subc.u32 %d, %c, 0;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return c - (a < b ? 1 : 0); }},
      {"add.cc.u64 %d, %a, %b; addc.u64 %d, %c, 0;", "b64 b64,b64,b64",
       [](V a, V b, V c) { return c + (a + b < a ? 1 : 0); }},
      {"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return (a * b + c) >> 32; }},
      {"add.cc.u32 %t, %a, %b; addc.cc.u32 %t, %c, -1; addc.u32 %d, 0, 0;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return (c + 0xffffffff + ((a + b) >> 32)) >> 32; }},
      {"{ .reg .b32 %x<5>; mov.b64 {%x0,%x1}, %a; mov.b64 {%x2,%x3}, %b; sub.cc.u32 %x0, %x0, %x2; subc.u32 %x1, %x1, "
       "%x3;"
       " mov.b64 %d, {%x0,%x1}; }",
       "b64 b64,b64", [](V a, V b, V) { return a - b; }},
  });
}

TEST(Conformance, LogicAndShifts) {
  Check({
      {"and.b32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return a & b; }},
      {"or.b64 %d, %a, %b;", "b64 b64,b64", [](V a, V b, V) { return a | b; }},
      {"xor.b16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return a ^ b; }},
      {"not.b32 %d, %a;", "b32 b32", [](V a, V, V) { return ~a; }},
      {"cnot.b32 %d, %a;", "b32 b32", [](V a, V, V) { return a == 0 ? 1 : 0; }},
      {"and.pred %d, %a, !%b;", "pred pred,pred", [](V a, V b, V) { return a & ~b; }},
      {"xor.pred %d, %a, %b;", "pred pred,pred", [](V a, V b, V) { return a ^ b; }},
      {"not.pred %d, %a;", "pred pred", [](V a, V, V) { return ~a; }},
      // Constants as predicates, which compilers write.
      {"xor.pred %d, %a, -1;", "pred pred", [](V a, V, V) { return ~a; }},
      {"xor.pred %d, 0, !%a;", "pred pred", [](V a, V, V) { return ~a; }},
      {"or.pred %d, %a, 1;", "pred pred", [](V, V, V) { return 1; }},
      {"and.pred %d, -1, %a;", "pred pred", [](V a, V, V) { return a; }},
      {"not.pred %d, 0;", "pred pred", [](V, V, V) { return 1; }},
      {"shl.b16 %d, %a, %b;", "b16 b16,b32", [](V a, V b, V) { return b > 15 ? 0 : a << b; }},
      {"shl.b32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return b > 31 ? 0 : a << b; }},
      {"shl.b64 %d, %a, %b;", "b64 b64,b32", [](V a, V b, V) { return b > 63 ? 0 : a << b; }},
      {"shr.u16 %d, %a, %b;", "b16 b16,b32", [](V a, V b, V) { return b > 15 ? 0 : a >> b; }},
      {"shr.s16 %d, %a, %b;", "b16 b16,b32", [](V a, V b, V) { return static_cast<V>(H(a) >> std::min<V>(b, 15)); }},
      {"shr.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return b > 31 ? 0 : a >> b; }},
      {"shr.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return static_cast<V>(S(a) >> std::min<V>(b, 31)); }},
      {"shr.s64 %d, %a, %b;", "b64 b64,b32", [](V a, V b, V) { return static_cast<V>(L(a) >> std::min<V>(b, 63)); }},
      {"shr.b64 %d, %a, 70;", "b64 b64", [](V, V, V) { return 0; }},
      {"shf.l.wrap.b32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return ((b << 32 | a) << (c & 31)) >> 32; }},
      {"shf.r.clamp.b32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return (b << 32 | a) >> std::min<V>(c, 32); }},
      {"shf.l.clamp.b32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return c >= 32 ? a : ((b << 32 | a) << c) >> 32; }},
      {"lop3.b32 %d, %a, %b, %c, 0xe8;", "b32 b32,b32,b32", [](V a, V b, V c) { return (a & b) | (a & c) | (b & c); }},
      {"lop3.b32 %d, %a, %b, %c, 0x96;", "b32 b32,b32,b32", [](V a, V b, V c) { return a ^ b ^ c; }},
      {"lop3.b32 %d, %a, %b, %c, 0x1b;", "b32 b32,b32,b32",
       [](V a, V b, V c) { return (a & ~b & ~c) | (~a & b & c) | (~a & ~b & c) | (~a & ~b & ~c); }},
      {"prmt.b32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         V d = 0;
         for (int k = 0; k < 4; ++k) {
           const V sel = c >> (4 * k) & 15;
           V byte = (a | b << 32) >> (8 * (sel & 7)) & 255;
           if (sel > 7) byte = byte > 127 ? 255 : 0;
           d |= byte << (8 * k);
         }
         return d;
       }},
      {"prmt.b32.rc16 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V, V c) { return (c & 1) != 0 ? (a >> 16) * 0x10001 : (a & 0xffff) * 0x10001; }},
      {"prmt.b32.b4e %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         V d = 0;
         for (V k = 0; k < 4; ++k) d |= ((a | b << 32) >> (8 * (((c & 3) + 8 - k) & 7)) & 255) << (8 * k);
         return d;
       }},
  });
}

TEST(Conformance, BitFields) {
  Check({
      {"popc.b32 %d, %a;", "b32 b32", [](V a, V, V) { return static_cast<V>(std::popcount(U(a))); }},
      {"popc.b64 %d, %a;", "b32 b64", [](V a, V, V) { return static_cast<V>(std::popcount(a)); }},
      {"clz.b32 %d, %a;", "b32 b32", [](V a, V, V) { return static_cast<V>(std::countl_zero(U(a))); }},
      {"clz.b64 %d, %a;", "b32 b64", [](V a, V, V) { return static_cast<V>(std::countl_zero(a)); }},
      {"bfind.u32 %d, %a;", "b32 b32",
       [](V a, V, V) { return a == 0 ? ~V{0} : static_cast<V>(31 - std::countl_zero(U(a))); }},
      {"bfind.s32 %d, %a;", "b32 b32",
       [](V a, V, V) {
         const uint32_t x = S(a) < 0 ? ~U(a) : U(a);
         return x == 0 ? ~V{0} : static_cast<V>(31 - std::countl_zero(x));
       }},
      {"bfind.shiftamt.u64 %d, %a;", "b32 b64",
       [](V a, V, V) { return a == 0 ? ~V{0} : static_cast<V>(std::countl_zero(a)); }},
      {"brev.b32 %d, %a;", "b32 b32",
       [](V a, V, V) {
         V d = 0;
         for (int k = 0; k < 32; ++k) d = d << 1 | (a >> k & 1);
         return d;
       }},
      {"brev.b64 %d, %a;", "b64 b64",
       [](V a, V, V) {
         V d = 0;
         for (int k = 0; k < 64; ++k) d = d << 1 | (a >> k & 1);
         return d;
       }},
      {"bfe.u32 %d, %a, %b, %c;", "b32 b32,b32,b32", [](V a, V b, V c) { return Bfe(a, b, c, 32, false); }},
      {"bfe.s32 %d, %a, %b, %c;", "b32 b32,b32,b32", [](V a, V b, V c) { return Bfe(a, b, c, 32, true); }},
      {"bfe.s64 %d, %a, %b, %c;", "b64 b64,b32,b32", [](V a, V b, V c) { return Bfe(a, b, c, 64, true); }},
      {"bfi.b32 %d, %a, 0x12345678, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         V d = 0x12345678;
         for (V i = 0; i < (c & 0xff) && (b & 0xff) + i < 32; ++i) {
           const V at = (b & 0xff) + i;
           d = (d & ~(V{1} << at)) | (a >> i & 1) << at;
         }
         return d;
       }},
      {"szext.wrap.s32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return (b & 31) == 0 ? 0 : static_cast<V>(S(a << (32 - (b & 31))) >> (32 - (b & 31))); }},
      {"szext.clamp.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return b >= 32 ? a : a & ((V{1} << b) - 1); }},
      {"bmsk.clamp.b32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) { return a >= 32 ? 0 : ((V{1} << std::min<V>(b, 32)) - 1) << a; }},
      {"bmsk.wrap.b32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return ((V{1} << (b & 31)) - 1) << (a & 31); }},
      {"fns.b32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         if (b > 31) return ~V{0};
         const int32_t n = S(c);
         if (n == 0) return (a >> b & 1) != 0 ? b : ~V{0};
         int64_t left = n < 0 ? -int64_t{n} : int64_t{n};
         for (auto at = static_cast<int>(b); at >= 0 && at < 32; at += n < 0 ? -1 : 1) {
           if ((a >> at & 1) != 0 && --left == 0) return static_cast<V>(at);
         }
         return ~V{0};
       }},
  });
}

TEST(Conformance, CompareAndSelect) {
  Check({
      {"setp.lt.s16 %d, %a, %b;", "pred b16,b16", [](V a, V b, V) { return H(a) < H(b) ? 1 : 0; }},
      {"setp.le.s32 %d, %a, %b;", "pred b32,b32", [](V a, V b, V) { return S(a) <= S(b) ? 1 : 0; }},
      {"setp.lo.u32 %d, %a, %b;", "pred b32,b32", [](V a, V b, V) { return a < b ? 1 : 0; }},
      {"setp.hs.u64 %d, %a, %b;", "pred b64,b64", [](V a, V b, V) { return a >= b ? 1 : 0; }},
      {"setp.ge.s64 %d, %a, %b;", "pred b64,b64", [](V a, V b, V) { return L(a) >= L(b) ? 1 : 0; }},
      {"setp.eq.b32 %d, %a, 7;", "pred b32", [](V a, V, V) { return a == 7 ? 1 : 0; }},
      {"setp.ne.and.s32 %d, %a, %b, %c;", "pred b32,b32,pred", [](V a, V b, V c) { return a != b && c != 0 ? 1 : 0; }},
      {"setp.gt.or.u32 %d|%pq, %a, %b, !%c;", "pred b32,b32,pred",
       [](V a, V b, V c) { return a > b || c == 0 ? 1 : 0; }},
      {"setp.gt.xor.s32 %pd|%d, %a, %b, %c;", "pred b32,b32,pred",
       [](V a, V b, V c) { return static_cast<V>(!(S(a) > S(b))) ^ c; }},
      {"set.lt.u32.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return S(a) < S(b) ? ~V{0} : 0; }},
      {"set.ge.f32.u32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return a >= b ? B(1.0f) : 0; }},
      {"setp.gt.and.u32 %d, %a, %b, 0;", "pred b32,b32", [](V, V, V) { return 0; }},
      {"setp.gt.and.u32 %d, %a, %b, 1;", "pred b32,b32", [](V a, V b, V) { return a > b ? 1 : 0; }},
      {"selp.b32 %d, %a, %b, -1;", "b32 b32,b32", [](V a, V, V) { return a; }},
      {"selp.b32 %d, %a, %b, 0;", "b32 b32,b32", [](V, V b, V) { return b; }},
      {"selp.pred %d, %a, 1, %b;", "pred pred,pred", [](V a, V b, V) { return (b & 1) != 0 ? a : 1; }},
      {"selp.b32 %d, %a, %b, %c;", "b32 b32,b32,pred", [](V a, V b, V c) { return c != 0 ? a : b; }},
      {"selp.u64 %d, %a, 12, !%c;", "b64 b64,b64,pred", [](V a, V, V c) { return c == 0 ? a : 12; }},
      {"slct.u64.s32 %d, %a, %b, %c;", "b64 b64,b64,b32", [](V a, V b, V c) { return S(c) >= 0 ? a : b; }},
      {"slct.b32.f32 %d, %a, %b, %c;", "b32 b32,b32,f32", [](V a, V b, V c) { return F(c) >= 0 ? a : b; }},
      {"mov.b32 %d, %a; @%c mov.b32 %d, %b;", "b32 b32,b32,pred", [](V a, V b, V c) { return c != 0 ? b : a; }},
      {"mov.b32 %d, %a; @!%c add.s32 %d, %d, %b;", "b32 b32,b32,pred",
       [](V a, V b, V c) { return c != 0 ? a : a + b; }},
  });
}

}  // namespace
}  // namespace hawser::conformance
