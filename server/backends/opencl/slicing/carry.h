// SPDX-License-Identifier: Apache-2.0
// Offset carry: how a part of a launch learns what the whole launch looks like.
//
// Kernels of one or two dimensions are launched with three, one work-item deep; the global offset of the third
// dimension then is a word that nobody else reads. Those of three share it: the word's low bits are their own ids of
// that dimension. A prelude in front of the program makes macros of the seven built-ins that could show the difference;
// they read that word. No kernel signature changes, no memory is needed for a launch, and the same program serves whole
// launches (there the word is 0) and parts.
//
// Traps (verified on PoCL 3.1): the word is read with get_global_id(2), because PoCL assumes get_global_offset below
// 65,536 when the grid is small, and folds comparisons wrongly; for the same reason the offset of the whole launch is
// computed from get_global_id. No bit from 59 up is ever set: compilers take ids for non-negative. `#line 1` keeps the
// lines of build logs right. The prelude does nothing unless its macro is defined by a build option, so that the
// decision can wait until the options are known.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_CARRY_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_CARRY_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hawser::server::slicing {

/// Work-groups along the divided axis that a word can hold, of a launch of so many dimensions.
constexpr uint64_t MostCarriedGroups(uint32_t dimensions) {
  return dimensions < 3 ? (uint64_t{1} << 27) - 1 : (uint64_t{1} << 16) - 1;
}
/// With three dimensions ids of the third, the launch's own offset included, are below this.
inline constexpr uint64_t kMostCarriedDepth = uint64_t{1} << 22;
/// Words are at least this. No launch of a guest may have ids as large in its third dimension.
inline constexpr uint64_t kFirstCarryWord = uint64_t{1} << 58;

/// Added to the build options of a program that has the prelude, to make it work.
inline constexpr std::string_view kCarryOption = "-DHAWSER_SPLIT_CARRY=1";

/// `axis` below `dimensions`, those of the guest's launch; the part begins with `first_group` of `groups`, at most
/// MostCarriedGroups(). To be added to the part's own offset in the third dimension.
constexpr uint64_t CarryWord(uint32_t axis, uint32_t dimensions, uint64_t first_group, uint64_t groups) {
  const uint64_t counts = dimensions < 3 ? groups << 27 | first_group : groups << 38 | first_group << 22;
  return kFirstCarryWord | uint64_t{dimensions - 1} << 56 | uint64_t{axis} << 54 | counts;
}

/// The text that goes in front of a program; ends with a line end.
std::string_view CarryPrelude();
std::string WithCarryPrelude(std::string_view source);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_CARRY_H_
